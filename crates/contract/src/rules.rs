//! The serialisation rules of REST v2 that plain derives do not know: what is omitted, and what is tolerated.

use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) use muster_vocabulary::words;

pub(crate) fn is_zero(number: &i64) -> bool {
    *number == 0
}

pub(crate) fn is_zero_float(number: &f64) -> bool {
    *number == 0.0
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Null reads as the empty value: other services write null where this one writes "" or [].
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Query flags as clients write them: `true`, `True` and `1` are yes, everything else is no.
pub(crate) fn loose_bool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    Ok(word.map(|word| {
        let word = word.to_ascii_lowercase();
        [
            "true", "1", "yes", "ok", "y", "on", "selected", "checked", "t", "enabled",
        ]
        .contains(&word.as_str())
    }))
}

/// Whole numbers are written without a fraction: `2800`, not `2800.0`.
pub(crate) fn short_float<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // Beyond 2^53 a float no longer names one integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

pub(crate) fn short_float_option<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => short_float(number, serializer),
        None => serializer.serialize_none(),
    }
}

/// A list in a query, written as `a,b`. Repeated keys are to be joined with commas before decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommaList<T>(pub Vec<T>);

impl<T> Default for CommaList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for CommaList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items
            .map(|item| {
                let item: StrDeserializer<'_, D::Error> = item.into_deserializer();
                T::deserialize(item)
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl<T: Serialize> Serialize for CommaList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut words = Vec::with_capacity(self.0.len());
        for item in &self.0 {
            match serde_json::to_value(item).map_err(serde::ser::Error::custom)? {
                serde_json::Value::String(word) => words.push(word),
                other => words.push(other.to_string()),
            }
        }
        serializer.serialize_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::event::{EventSeverity, EventsQuery};

    #[test]
    fn lists_in_queries_are_split_at_commas() {
        let query: EventsQuery =
            serde_json::from_value(serde_json::json!({"severities": "info,error", "deleted_hosts": "True"}))
                .unwrap();
        assert_eq!(
            query.severities,
            Some(CommaList(vec![EventSeverity::Info, EventSeverity::Error]))
        );
        assert_eq!(query.deleted_hosts, Some(true));
        let back = serde_json::to_value(&query).unwrap();
        assert_eq!(back["severities"], "info,error");
    }

    #[test]
    fn an_unknown_word_names_the_allowed_ones() {
        let error = "loud".parse::<EventSeverity>().unwrap_err().to_string();
        assert_eq!(
            error,
            "is not a known word: use `info`, `warning`, `error` or `critical`"
        );
    }
}
