//! Copies of recordings without the recorded service's free texts, fit to be kept as test data.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

const FREE_TEXTS: &[&str] = &["message", "status_info", "reason"];
const MASKED: &str = "(text)";

/// Writes the masked copy, one exchange per line so that changes show up as lines.
pub fn copy(file: &Path, dir: &Path) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let mut exchanges: Vec<Value> =
        serde_json::from_str(&text).context("a recording is a list of exchanges")?;
    exchanges.iter_mut().for_each(exchange);
    std::fs::create_dir_all(dir)?;
    let lines: Vec<String> = exchanges.iter().map(Value::to_string).collect();
    let name = file.file_name().context("a recording is a file")?;
    std::fs::write(dir.join(name), format!("[\n{}\n]\n", lines.join(",\n")))?;
    Ok(())
}

/// Masks one exchange in place; requests stay as they are.
pub fn exchange(exchange: &mut Value) {
    let Some(body) = exchange.pointer_mut("/response/body") else {
        return;
    };
    // A download that is not JSON is text as a whole.
    if body
        .as_str()
        .is_some_and(|text| !text.is_empty() && !text.starts_with('<'))
    {
        *body = Value::from(MASKED);
    }
    value("", body);
}

fn value(key: &str, masked: &mut Value) {
    match masked {
        Value::Object(map) => map.iter_mut().for_each(|(key, member)| value(key, member)),
        Value::Array(elements) => elements.iter_mut().for_each(|element| value(key, element)),
        Value::String(text) => {
            if let Some(mut inner) = inside(text) {
                value(key, &mut inner);
                *text = inner.to_string();
            } else if FREE_TEXTS.contains(&key) && !text.is_empty() {
                *text = MASKED.to_owned();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The JSON kept inside a string, if it is some.
pub fn inside(text: &str) -> Option<Value> {
    text.trim_start()
        .starts_with(['{', '['])
        .then(|| serde_json::from_str(text).ok())
        .flatten()
}
