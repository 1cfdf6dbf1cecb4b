//! What a refused input looks like: the field, the problem, the way out, and the body shape it travels in.

/// The answer of every function in this module.
pub type Checked<T = ()> = Result<T, Invalid>;

/// Which of the two bodies of a 400 clients expect for this violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Enum, pattern, length, format, missing field: `{code, message}`.
    Schema,
    /// Anything that needs thought: `{kind, id, href, code, reason}`.
    Rule,
}

/// A value we do not accept. Reads as one sentence: "`name` is 60 characters long: use at most 54."
///
/// `problem` must never repeat a secret; the functions here do not put values of secret fields into it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}: {fix}.")]
pub struct Invalid {
    /// Path in the request body, such as `api_vips.0.ip`.
    pub field: String,
    /// What is wrong, as a predicate ("is not JSON").
    pub problem: String,
    /// What to do, as an imperative ("paste the whole file").
    pub fix: String,
    pub shape: Shape,
}

impl Invalid {
    /// What is wrong, as a sentence.
    pub fn complaint(&self) -> String {
        format!("`{}` {}.", self.field, self.problem)
    }

    /// What to do, as a sentence.
    pub fn advice(&self) -> String {
        let mut letters = self.fix.chars();
        match letters.next() {
            Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
            None => String::new(),
        }
    }

    pub fn schema(field: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> Invalid {
        Invalid {
            field: field.into(),
            problem: problem.into(),
            fix: fix.into(),
            shape: Shape::Schema,
        }
    }

    pub fn rule(field: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> Invalid {
        Invalid {
            field: field.into(),
            problem: problem.into(),
            fix: fix.into(),
            shape: Shape::Rule,
        }
    }
}

/// Shortens a value before it is quoted in a message, so that a megabyte of input is not echoed.
pub(crate) fn quoted(value: &str) -> String {
    const LONGEST: usize = 60; // Enough to recognise one's own typing.
    let mut text: String = value.chars().take(LONGEST).collect();
    if text.len() < value.len() {
        text.push('…');
    }
    format!("{text:?}")
}
