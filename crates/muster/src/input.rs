//! Files, keys and lists that people hand over on the command line.

use crate::exit::{Failure, Outcome};
use clap::builder::{OsStringValueParser, TypedValueParser};
use muster_contract::Secret;
use muster_contract::v2::host::KeyValue;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Enough for a hub that installs nothing yet: right in shape, of no use at any registry.
const PRACTICE_PULL_SECRET: &str =
    r#"{"auths":{"registry.example.com":{"auth":"bXVzdGVyLXByYWN0aWNlOm11c3Rlci1wcmFjdGljZS1vbmx5"}}}"#;

/// The text of a file; `-` is stdin.
pub fn text(path: &Path) -> Outcome<String> {
    let read = match path.to_str() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        _ => std::fs::read_to_string(path),
    };
    read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))
}

pub fn text_opt(path: Option<&Path>) -> Outcome<Option<String>> {
    path.map(|path| text(path).map(|text| text.trim_end().to_owned()))
        .transpose()
}

pub fn pull_secret_opt(path: Option<&Path>) -> Outcome<Option<Secret>> {
    Ok(text_opt(path)?.map(|text| Secret(text.trim().to_owned())))
}

/// The given pull secret, or one for practice, with a word about it.
pub fn pull_secret(path: Option<&Path>) -> Outcome<Secret> {
    Ok(pull_secret_opt(path)?.unwrap_or_else(|| {
        eprintln!("note: no --pull-secret FILE given; using a placeholder, which cannot download anything");
        Secret::from(PRACTICE_PULL_SECRET)
    }))
}

/// JSON as it is, or the content of the file with this name.
pub fn json(flag: &str, given: String) -> Outcome<String> {
    let text = match given.trim_start().starts_with(['[', '{']) {
        true => given,
        false => text(Path::new(&given))?,
    };
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!("{flag} is not JSON: {error}"))),
    }
}

/// An empty text counts as nothing, as an empty variable does.
pub fn json_opt(flag: &str, given: Option<String>) -> Outcome<Option<String>> {
    let given = given.filter(|given| !given.trim().is_empty());
    given.map(|given| json(flag, given)).transpose()
}

/// The bytes of a file; `-` is stdin.
pub fn bytes(path: &Path) -> Outcome<Vec<u8>> {
    let read = match path.to_str() {
        Some("-") => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        }
        _ => std::fs::read(path),
    };
    read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))
}

/// `key=value`.
pub fn key_value(text: &str) -> Result<KeyValue, String> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    if key.is_empty() {
        return Err(format!("`{text}` has no name before `=`"));
    }
    Ok(KeyValue {
        key: key.into(),
        value: value.into(),
    })
}

/// A list as a query writes it: given several times or once with commas, it is the same.
pub fn comma_list(items: &[String]) -> Option<String> {
    if items.is_empty() {
        None
    } else {
        Some(items.join(","))
    }
}

/// A parser for one of the wire's fixed words, which help and completion can list.
macro_rules! word_parser {
    ($enum:ty) => {{
        use clap::builder::TypedValueParser;
        clap::builder::PossibleValuesParser::new(<$enum>::ALL.iter().map(|word| word.word()))
            .try_map(|word| word.parse::<$enum>())
    }};
}
pub(crate) use word_parser;

/// A path that may be empty: a variable that is set to nothing is as good as none, and whoever reads it leaves it out.
pub fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_split_at_the_first_equals_sign() {
        let label = key_value("zone=a=b").unwrap();
        assert_eq!((label.key.as_str(), label.value.as_str()), ("zone", "a=b"));
        assert_eq!(key_value("gpu").unwrap().value, "");
        assert!(key_value("=x").is_err());
    }
}
