//! The violations a schema alone can see: missing, too short, too long, not one of the words, not a UUID.

use muster_vocabulary::Words;
use uuid::Uuid;

use super::error::{Checked, Invalid, quoted};

/// The field must be there.
pub fn required<'a, T: ?Sized>(field: &str, value: Option<&'a T>) -> Checked<&'a T> {
    value.ok_or_else(|| Invalid::schema(field, "is missing", "add it, it is required"))
}

/// Length in characters, both ends included.
pub fn length(field: &str, value: &str, least: usize, most: usize) -> Checked {
    let count = value.chars().count();
    if count < least {
        return Err(Invalid::schema(
            field,
            format!("has {count} characters"),
            format!("give at least {least}"),
        ));
    }
    if count > most {
        return Err(Invalid::schema(
            field,
            format!("has {count} characters"),
            format!("use at most {most}"),
        ));
    }
    Ok(())
}

/// The value must be one of the words the wire knows.
pub fn one_of(field: &str, value: &str, words: &[&str]) -> Checked {
    if words.contains(&value) {
        return Ok(());
    }
    Err(not_one_of(field, value, words))
}

fn not_one_of(field: &str, value: &str, words: &[&str]) -> Invalid {
    Invalid::schema(
        field,
        format!("cannot be {}", quoted(value)),
        format!("use one of {}", words.join(", ")),
    )
}

/// One of the words of a set.
pub fn word<T: Words>(field: &str, value: &str) -> Checked<T> {
    T::from_word(value).ok_or_else(|| {
        let words: Vec<&str> = T::ALL.iter().map(|word| word.word()).collect();
        not_one_of(field, value, &words)
    })
}

pub fn uuid(field: &str, value: &str) -> Checked<Uuid> {
    // Only the hyphenated form: the other spellings `uuid` reads are not on this wire.
    let hyphenated = value.len() == 36;
    match Uuid::try_parse(value) {
        Ok(id) if hyphenated => Ok(id),
        Ok(_) | Err(_) => Err(Invalid::schema(
            field,
            format!("is not a UUID ({})", quoted(value)),
            "use the form 00000000-0000-0000-0000-000000000000",
        )),
    }
}

pub fn at_least(field: &str, value: i64, least: i64) -> Checked {
    if value >= least {
        return Ok(());
    }
    Err(Invalid::schema(
        field,
        format!("is {value}"),
        format!("use {least} or more"),
    ))
}
