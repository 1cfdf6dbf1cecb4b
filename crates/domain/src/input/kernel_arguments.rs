//! Kernel arguments of an InfraEnv: the image can only be added to, so only `append` is possible.

use serde::{Deserialize, Serialize};

use super::error::{Checked, Invalid, quoted};
use super::schema;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelArgument {
    pub operation: String,
    pub value: String,
}

pub fn kernel_arguments(arguments: &[KernelArgument]) -> Checked {
    for (index, argument) in arguments.iter().enumerate() {
        let operation = format!("kernel_arguments.{index}.operation");
        schema::one_of(&operation, &argument.operation, &["append", "replace", "delete"])?;
        if argument.operation != "append" {
            return Err(Invalid::rule(
                operation,
                format!(
                    "cannot be {}, a discovery image can only be added to",
                    quoted(&argument.operation)
                ),
                "use append",
            ));
        }
        value(&format!("kernel_arguments.{index}.value"), &argument.value)?;
    }
    Ok(())
}

/// One argument per entry: blanks only inside double quotes, no control characters, quotes closed.
fn value(field: &str, text: &str) -> Checked {
    let mut inside = false;
    let mut blank_outside = false;
    for c in text.chars() {
        inside ^= c == '"';
        blank_outside |= c.is_whitespace() && !inside;
    }
    if text.is_empty() || inside || blank_outside || text.chars().any(char::is_control) {
        return Err(Invalid::schema(
            field,
            format!("is not one kernel argument ({})", quoted(text)),
            "give one argument per entry and put double quotes round blanks",
        ));
    }
    Ok(())
}
