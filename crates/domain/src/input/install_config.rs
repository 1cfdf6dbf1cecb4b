//! Overrides of the install config: a JSON object in a text.

use serde_json::Value;

use super::error::{Checked, Invalid};

/// An empty text clears the overrides.
pub fn install_config_overrides(text: &str) -> Checked {
    if text.is_empty() {
        return Ok(());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) => Err(invalid("is JSON but no object")),
        Err(error) => Err(invalid(&format!(
            "is not JSON (line {}, column {})",
            error.line(),
            error.column()
        ))),
    }
}

fn invalid(problem: &str) -> Invalid {
    Invalid::rule(
        "install_config_overrides",
        problem,
        "give a JSON object with the parts of the install config to change",
    )
}
