//! The Range header: which bytes of a representation are wanted.

use std::ops::Range;

/// More parts than any player or boot loader asks for; beyond, the whole is sent.
const MOST_PARTS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// No range, one we do not understand, or one that is not worth it.
    Whole,
    /// In the order asked for; never empty.
    Parts(Vec<Range<u64>>),
    /// Understood, but nothing of it exists.
    Nothing,
}

/// A header that is not well formed is ignored, as the standard asks.
pub fn wanted(header: &str, len: u64) -> Wanted {
    let Some((unit, list)) = header.split_once('=') else {
        return Wanted::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Wanted::Whole;
    }
    let mut parts = Vec::new();
    let mut understood = false;
    for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let Some(part) = part(text, len) else {
            return Wanted::Whole;
        };
        understood = true;
        parts.extend(part);
    }
    if parts.is_empty() {
        return if understood {
            Wanted::Nothing
        } else {
            Wanted::Whole
        };
    }
    // Someone who asks for more than there is, in pieces, is answered with all there is, once.
    let total: u64 = parts
        .iter()
        .map(|part| part.end - part.start)
        .fold(0, u64::saturating_add);
    if parts.len() > 1 && (parts.len() > MOST_PARTS || total > len) {
        return Wanted::Whole;
    }
    Wanted::Parts(parts)
}

/// `None`: not well formed. `Some(None)`: outside.
fn part(text: &str, len: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        let suffix = number(last)?;
        let start = len.saturating_sub(suffix);
        return Some((suffix > 0 && len > 0).then_some(start..len));
    }
    let first = number(first)?;
    let end = if last.is_empty() {
        u64::MAX
    } else {
        number(last)?.saturating_add(1)
    };
    if end <= first && first != u64::MAX {
        return None;
    }
    Some((first < len).then(|| first..end.min(len)))
}

/// Digits only; a number too large for us is larger than any image.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_range_header() {
        let parts = |list: &[(u64, u64)]| Wanted::Parts(list.iter().map(|(a, b)| *a..*b).collect());
        let table = [
            ("bytes=0-0", parts(&[(0, 1)])),
            ("bytes=0-99", parts(&[(0, 100)])),
            ("bytes=0-100", parts(&[(0, 100)])),
            ("bytes=0-18446744073709551615", parts(&[(0, 100)])),
            ("bytes=0-99999999999999999999999", parts(&[(0, 100)])),
            ("bytes=10-", parts(&[(10, 100)])),
            ("bytes=99-", parts(&[(99, 100)])),
            ("bytes=-1", parts(&[(99, 100)])),
            ("bytes=-100", parts(&[(0, 100)])),
            ("bytes=-1000", parts(&[(0, 100)])),
            ("Bytes=1-2", parts(&[(1, 3)])),
            ("bytes = 1-2", parts(&[(1, 3)])),
            ("bytes=1-2, 4-5", parts(&[(1, 3), (4, 6)])),
            ("bytes=4-5,1-2", parts(&[(4, 6), (1, 3)])),
            ("bytes=1-2,,4-5,", parts(&[(1, 3), (4, 6)])),
            ("bytes=1-2,500-", parts(&[(1, 3)])),
            ("bytes=0-9,-10", parts(&[(0, 10), (90, 100)])),
            ("bytes=0-99,0-0", Wanted::Whole),
            ("bytes=100-", Wanted::Nothing),
            ("bytes=100-200", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=200-300,400-", Wanted::Nothing),
            ("bytes=18446744073709551615-", Wanted::Nothing),
            ("bytes=", Wanted::Whole),
            ("bytes=,", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=1-2-3", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=0x1-2", Wanted::Whole),
            ("bytes 0-1", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("", Wanted::Whole),
        ];
        for (header, expected) in table {
            assert_eq!(wanted(header, 100), expected, "{header}");
        }
        assert_eq!(wanted("bytes=0-", 0), Wanted::Nothing);
        assert_eq!(wanted("bytes=-5", 0), Wanted::Nothing);
    }

    #[test]
    fn a_flood_of_parts_is_answered_with_the_whole() {
        let list: Vec<String> = (0..65).map(|n| format!("{n}-{n}")).collect();
        assert_eq!(wanted(&format!("bytes={}", list.join(",")), 1000), Wanted::Whole);
        assert!(matches!(
            wanted(&format!("bytes={}", list[..64].join(",")), 1000),
            Wanted::Parts(_)
        ));
    }
}
