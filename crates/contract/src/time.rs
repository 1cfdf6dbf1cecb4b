//! The two ways REST v2 writes a time, each with its own word for "not set".

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Clients compare with this text to see that something has not happened yet.
const UNSET_MS: &str = "0001-01-01T00:00:00.000Z";
const UNSET: &str = "0001-01-01T00:00:00Z";
/// 0001-01-01 in seconds before 1970; whatever is not later reads as "not set".
const UNSET_SECOND: i64 = -62_135_596_800;

/// A time with exactly three digits of fraction. Never left out: unset is the first day of year 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
pub struct DateMs(pub Option<Timestamp>);

/// A time with as many digits of fraction as it needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
pub struct GoTime(pub Option<Timestamp>);

impl Serialize for DateMs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(at) => serializer.collect_str(&format_args!("{at:.3}")),
            None => serializer.serialize_str(UNSET_MS),
        }
    }
}

impl Serialize for GoTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(at) => serializer.collect_str(&at),
            None => serializer.serialize_str(UNSET),
        }
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let at: Timestamp = text
        .parse()
        .map_err(|_| D::Error::custom(format!("`{text}` is not an RFC 3339 time")))?;
    Ok(Some(at).filter(|at| at.as_second() > UNSET_SECOND))
}

impl<'de> Deserialize<'de> for DateMs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for GoTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Self)
    }
}

impl From<Timestamp> for DateMs {
    fn from(at: Timestamp) -> Self {
        Self(Some(at))
    }
}

impl From<Option<Timestamp>> for DateMs {
    fn from(at: Option<Timestamp>) -> Self {
        Self(at)
    }
}

impl From<Timestamp> for GoTime {
    fn from(at: Timestamp) -> Self {
        Self(Some(at))
    }
}

impl From<Option<Timestamp>> for GoTime {
    fn from(at: Option<Timestamp>) -> Self {
        Self(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> String {
        serde_json::to_string(&serde_json::from_str::<DateMs>(text).unwrap()).unwrap()
    }

    fn go(text: &str) -> String {
        serde_json::to_string(&serde_json::from_str::<GoTime>(text).unwrap()).unwrap()
    }

    #[test]
    fn dates_have_exactly_three_digits_of_fraction() {
        assert_eq!(ms(r#""2026-05-04T03:02:01Z""#), r#""2026-05-04T03:02:01.000Z""#);
        assert_eq!(
            ms(r#""2026-05-04T03:02:01.9999Z""#),
            r#""2026-05-04T03:02:01.999Z""#
        );
    }

    #[test]
    fn go_times_drop_trailing_zeros() {
        assert_eq!(
            go(r#""2026-05-04T03:02:01.120000Z""#),
            r#""2026-05-04T03:02:01.12Z""#
        );
        assert_eq!(
            go(r#""2026-05-04T03:02:01.000000009Z""#),
            r#""2026-05-04T03:02:01.000000009Z""#
        );
        assert_eq!(go(r#""2026-05-04T03:02:01.000Z""#), r#""2026-05-04T03:02:01Z""#);
    }

    #[test]
    fn unset_is_the_first_day_of_year_one_and_reads_back_as_unset() {
        assert_eq!(ms("null"), r#""0001-01-01T00:00:00.000Z""#);
        assert_eq!(
            ms(r#""0001-01-01T00:00:00.000Z""#),
            r#""0001-01-01T00:00:00.000Z""#
        );
        assert_eq!(go(r#""0001-01-01T00:00:00Z""#), r#""0001-01-01T00:00:00Z""#);
        assert_eq!(
            serde_json::from_str::<DateMs>(r#""0001-01-01T00:00:00.000Z""#).unwrap(),
            DateMs::default()
        );
        assert!(serde_json::from_str::<GoTime>(r#""yesterday""#).is_err());
    }
}
