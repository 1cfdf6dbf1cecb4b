//! Spans of time as people read and type them: `3m`, `10m`, `2h`.

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// How long ago, in the largest unit that fits; `-` when it never happened.
pub fn since(then: Option<Timestamp>, now: Timestamp) -> String {
    match then {
        Some(then) => span(now.duration_since(then).as_secs()),
        None => "-".into(),
    }
}

pub fn span(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m", s / 60),
        s @ 3600..86_400 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

/// `90`, `90s`, `10m`, `1h 30m`; a plain number counts seconds.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is not a span of time"));
    }
    let span: SignedDuration = text
        .parse()
        .map_err(|_| format!("`{text}` is not a span of time; write 30s, 10m or 2h"))?;
    Duration::try_from(span).map_err(|_| format!("`{text}` is negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_use_one_unit() {
        assert_eq!(
            [0, 59, 60, 3599, 7200, 200_000].map(span),
            ["0s", "59s", "1m", "59m", "2h", "2d"]
        );
    }

    #[test]
    fn spans_are_read_with_or_without_a_unit() {
        let seconds = |text| parse_span(text).map(|span| span.as_secs());
        assert_eq!(seconds("90"), Ok(90));
        assert_eq!(seconds("10m"), Ok(600));
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert!(parse_span("soon").is_err() && parse_span("-5").is_err() && parse_span("-5m").is_err());
    }
}
