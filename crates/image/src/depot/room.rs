//! Who must go so that a new base image fits, both within the bound and on the disk; decided here, carried out by the depot.

use super::shelf::Held;
use std::collections::HashMap;

/// What a download needs and what there is, at one moment.
pub(super) struct Question<'a> {
    pub key: &'a str,
    /// Of the whole image, and how much of it is on the disk already.
    pub need: u64,
    pub have: u64,
    /// All there is on the shelf, least recently used first.
    pub held: Vec<Held>,
    /// Bytes promised to images that are being prepared, this one and others.
    pub promised: &'a HashMap<String, u64>,
    pub bound: u64,
    pub free: u64,
}

/// Those who go, in this order; or why nothing helps.
pub(super) fn leaving(question: Question<'_>) -> Result<Vec<Held>, String> {
    let Question {
        key,
        need,
        have,
        held,
        promised,
        bound,
        free,
    } = question;
    if need > bound {
        return Err(format!(
            "it has {need} bytes, more than the {bound} all base images may take"
        ));
    }
    let of_others = held.into_iter().filter(|held| held.key != key);
    // What is being prepared keeps its room, used and unused.
    let (busy, idle): (Vec<Held>, Vec<Held>) = of_others.partition(|held| promised.contains_key(&held.key));
    let there = |key: &str| -> u64 {
        let same = busy.iter().filter(|held| held.key == key);
        same.map(|held| held.len).sum()
    };
    let (mut taken, mut coming) = (0_u64, 0_u64);
    for (other, bytes) in promised.iter().filter(|(other, _)| *other != key) {
        taken = taken.saturating_add((*bytes).max(there(other)));
        coming = coming.saturating_add(bytes.saturating_sub(there(other)));
    }
    if taken.saturating_add(need) > bound {
        return Err(format!(
            "it has {need} bytes, but downloads of other base images need {taken} of the {bound} that all \
             may take; ask again when they have ended, or allow more"
        ));
    }
    let mut kept: u64 = idle.iter().map(|held| held.len).sum();
    let mut missing = need
        .saturating_sub(have)
        .saturating_add(coming)
        .saturating_sub(free);
    if missing > kept {
        return Err(format!("it has {need} bytes, and the disk has room for {free}"));
    }
    let mut goes = |held: &Held| {
        if taken.saturating_add(kept).saturating_add(need) <= bound && missing == 0 {
            return false;
        }
        kept -= held.len;
        missing = missing.saturating_sub(held.len);
        true
    };
    Ok(idle.into_iter().take_while(|held| goes(held)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::shelf::Kind;
    use super::*;
    use std::time::UNIX_EPOCH;

    fn held(list: &[(&str, u64)]) -> Vec<Held> {
        let one = |(key, len): &(&str, u64)| Held {
            key: (*key).to_owned(),
            kind: Kind::Whole,
            len: *len,
            used: UNIX_EPOCH,
        };
        list.iter().map(one).collect()
    }

    fn asked(
        need: u64,
        shelf: &[(&str, u64)],
        promised: &[(&str, u64)],
        free: u64,
    ) -> Result<String, String> {
        let promised = promised
            .iter()
            .map(|(key, bytes)| ((*key).to_owned(), *bytes))
            .collect();
        let question = Question {
            key: "new",
            need,
            have: 0,
            held: held(shelf),
            promised: &promised,
            bound: 100,
            free,
        };
        leaving(question).map(|list| {
            list.into_iter()
                .map(|held| held.key)
                .collect::<Vec<_>>()
                .join(" ")
        })
    }

    #[test]
    fn only_as_many_go_as_must_and_never_one_that_is_being_prepared() {
        let shelf = [("a", 30), ("b", 30), ("c", 30)];
        assert_eq!(asked(10, &shelf, &[], 1000).unwrap(), "");
        assert_eq!(asked(20, &shelf, &[], 1000).unwrap(), "a");
        assert_eq!(asked(50, &shelf, &[], 1000).unwrap(), "a b");
        assert_eq!(asked(20, &shelf, &[("a", 0)], 1000).unwrap(), "b");
        assert_eq!(asked(10, &shelf, &[("d", 20)], 1000).unwrap(), "a");
        assert!(
            asked(101, &shelf, &[], 1000)
                .unwrap_err()
                .contains("more than the 100")
        );
        let error = asked(50, &shelf, &[("d", 60)], 1000).unwrap_err();
        assert!(error.contains("other base images need 60 of the 100"), "{error}");
        // Of a part that is promised 40 bytes, 10 are here: the other 30 are spoken for on the disk, too.
        assert_eq!(asked(20, &[("d", 10), ("a", 15)], &[("d", 40)], 50).unwrap(), "");
        assert_eq!(asked(20, &[("d", 10), ("a", 15)], &[("d", 40)], 40).unwrap(), "a");
        assert!(asked(20, &[("d", 10), ("a", 15)], &[("d", 40)], 20).is_err());
    }
}
