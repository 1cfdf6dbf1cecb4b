//! Stored documents have versions: what an earlier release wrote is brought up to date when it is read, what a later one
//! wrote is not read at all.
//!
//! The version is a column beside the document, so that the newest, which nearly all are, is parsed once. Each kind has a
//! file here with its steps: pure functions from one version to the next, kept for ever. Writing always writes the newest.
//! ADR 10 says more, also when a change needs a step.

mod cluster;
mod effect;
mod host;
mod infra_env;
mod report;

pub(crate) use report::{CURRENT as REPORT_VERSION, report};

use crate::sql::Value as Column;
use crate::{RowKind, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Makes a document of one version one of the next. It leaves alone what does not look as it should: reading it says
/// so.
pub type Step = fn(Value) -> Value;

/// What is stored as JSON beside its version.
pub trait Document: Serialize + DeserializeOwned {
    const KIND: RowKind;
    /// The first makes version 1, which 0.1.0 wrote, version 2.
    const STEPS: &'static [Step];
}

/// What release 0.1.0 wrote, without a number.
const FIRST: i64 = 1;

/// The version that so many steps lead to.
const fn newest<S>(steps: &[S]) -> i64 {
    FIRST + steps.len() as i64
}

/// For the columns `version, doc`.
pub(crate) fn written<T: Document>(document: &T) -> Result<[Column; 2], StoreError> {
    // One that cannot be written is a bug in its type; it must not take the batch down with it.
    let text = serde_json::to_string(document).map_err(|error| StoreError::corrupt(T::KIND.word(), error))?;
    Ok([Column::Int(newest(T::STEPS)), Column::Text(text)])
}

/// The reason says nothing of its content, which may be secret.
pub(crate) fn read<T: Document>(version: i64, text: &str) -> Result<T, String> {
    let steps = left(version, T::STEPS)?;
    if steps.is_empty() {
        return serde_json::from_str(text).map_err(|error| misfit(&error));
    }
    let old: Value = serde_json::from_str(text).map_err(|error| misfit(&error))?;
    let new = steps.iter().fold(old, |document, step| step(document));
    serde_json::from_value(new).map_err(|error| {
        let newest = newest(T::STEPS);
        let why = missing_field(&error).unwrap_or_else(|| "a value in it is not what it should be".into());
        format!("its document of version {version} was brought to version {newest}, and does not fit: {why}")
    })
}

/// The steps from that version to the newest.
fn left<S>(version: i64, steps: &'static [S]) -> Result<&'static [S], String> {
    let newest = newest(steps);
    if version > newest {
        return Err(format!(
            "its document is of version {version}, and this program knows versions up to {newest}: a newer program wrote it"
        ));
    }
    let done = usize::try_from(version.saturating_sub(FIRST))
        .map_err(|_| format!("its document claims to be of version {version}, which never existed"))?;
    Ok(steps.get(done..).unwrap_or_default())
}

/// What is wrong, and where. The reader's own words may repeat the value.
fn misfit(error: &serde_json::Error) -> String {
    let place = format!("line {}, column {}", error.line(), error.column());
    match (error.is_data(), missing_field(error)) {
        (true, Some(missing)) => format!("its document does not fit: {missing} ({place})"),
        (true, None) => format!("its document does not fit: a value is not what it should be ({place})"),
        (false, _) => format!("its document is no JSON ({place})"),
    }
}

/// The names of our own fields are no secret.
fn missing_field(error: &serde_json::Error) -> Option<String> {
    let text = error.to_string();
    let name = text.strip_prefix("missing field `")?.split('`').next()?;
    Some(format!("the field `{name}` is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    /// As it is today: two names, and no `name` any more.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Person {
        first: String,
        last: String,
    }

    /// Version 1 had one name with a space in it, version 2 two of them in a list.
    fn name_to_names(mut document: Value) -> Value {
        if let Some(name) = document.as_object_mut().and_then(|fields| fields.remove("name")) {
            let parts: Vec<_> = name.as_str().unwrap_or_default().split(' ').collect();
            document["names"] = json!(parts);
        }
        document
    }

    fn names_to_fields(document: Value) -> Value {
        json!({ "first": document["names"][0], "last": document["names"][1] })
    }

    impl Document for Person {
        const KIND: RowKind = RowKind::Order;
        const STEPS: &'static [Step] = &[name_to_names, names_to_fields];
    }

    fn ada() -> Person {
        Person {
            first: "Ada".into(),
            last: "Lovelace".into(),
        }
    }

    fn why(version: i64, text: &str) -> String {
        read::<Person>(version, text).unwrap_err()
    }

    #[test]
    fn documents_of_every_version_are_read_as_the_newest() {
        for (version, text) in [
            (1, r#"{"name":"Ada Lovelace"}"#),
            (2, r#"{"names":["Ada","Lovelace"]}"#),
            (3, r#"{"first":"Ada","last":"Lovelace"}"#),
        ] {
            assert_eq!(read(version, text), Ok(ada()), "version {version}");
        }
    }

    #[test]
    fn what_is_written_is_of_the_newest_version() {
        let [Column::Int(version), Column::Text(text)] = written(&ada()).unwrap() else {
            panic!("a number and a text");
        };
        assert_eq!(version, 3);
        assert_eq!(read(version, &text), Ok(ada()));
    }

    #[test]
    fn a_document_of_a_newer_program_is_not_read_even_if_it_would_fit() {
        let told = why(4, r#"{"first":"Ada","last":"Lovelace"}"#);
        assert!(told.contains("version 4") && told.contains("up to 3"), "{told}");
        for never in [0, -1, i64::MIN] {
            assert!(why(never, "{}").contains("never existed"));
        }
    }

    #[test]
    fn why_a_document_cannot_be_read_is_told_without_its_content() {
        for (version, text, expected) in [
            (3, r#"{"first":"secret"#, "no JSON"),
            (3, "secret", "no JSON"),
            (3, r#"{"first":"secret"}"#, "`last` is missing"),
            (3, r#"{"first":["secret"],"last":"x"}"#, "line 1, column"),
            (3, r#"{"secret":1}"#, "line 1, column"),
            (2, r#"{"names":["secret"]}"#, "brought to version 3"),
            (1, r#"["secret"]"#, "brought to version 3"),
        ] {
            let told = why(version, text);
            assert!(told.contains(expected), "{text}: {told}");
            assert!(!told.contains("secret"), "{told}");
        }
    }
}
