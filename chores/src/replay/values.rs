//! Single values: dates, words that mean something to programs, and texts meant for people.

/// Keys whose values programs compare, so ours must be the same word.
const WORDS: &[&str] = &[
    "kind",
    "status",
    "role",
    "type",
    "severity",
    "step_type",
    "post_step_action",
    "code",
    "current_stage",
    "finalizing_stage",
];
/// Texts for people: ours are our own words.
const TEXTS: &[&str] = &["message", "status_info", "reason"];
/// Written with as many digits as the clock gave; every other date has exactly three.
const FREE_PRECISION: &[&str] = &["created_at", "updated_at"];
/// All words a check's status can have.
pub const CHECK_WORDS: &[&str] = &[
    "success",
    "failure",
    "pending",
    "error",
    "disabled",
    "success-suppress-output",
];

pub fn is_word(key: &str) -> bool {
    WORDS.contains(&key)
}

pub fn is_text(key: &str) -> bool {
    TEXTS.contains(&key)
}

/// How a date looks from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Date {
    Never,
    NeverWithMillis,
    Real,
    RealWithMillis,
}

impl Date {
    pub fn name(self) -> &'static str {
        match self {
            Date::Never => "zero date",
            Date::NeverWithMillis => "zero date with three digits",
            Date::Real => "date",
            Date::RealWithMillis => "date with three digits",
        }
    }
}

/// The class of a date, `None` for anything else.
pub fn date(key: &str, text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    let digits =
        |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|b| b.iter().all(u8::is_ascii_digit));
    if !(bytes.len() >= 20 && digits(0..4) && bytes[4] == b'-' && bytes[10] == b'T' && digits(17..19)) {
        return None;
    }
    let fraction = text[19..]
        .strip_prefix('.')
        .map_or("", |rest| rest.trim_end_matches(|c: char| !c.is_ascii_digit()));
    let millis = fraction.len() == 3 && text.ends_with('Z') && !FREE_PRECISION.contains(&key);
    Some(match (text.starts_with("0001-01-01"), millis) {
        (true, true) => Date::NeverWithMillis,
        (true, false) => Date::Never,
        (false, true) => Date::RealWithMillis,
        (false, false) => Date::Real,
    })
}
