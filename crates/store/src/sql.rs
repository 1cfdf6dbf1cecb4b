//! Values and rows on their way into and out of SQL: many rows per statement, few distinct statements.

use crate::StoreError;
use jiff::Timestamp;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Row};
use std::fmt::Write;
use std::str::FromStr;

/// Rows per statement. Few sizes, so that every statement stays in the connection's cache of prepared ones.
const SIZES: [usize; 4] = [64, 16, 4, 1];

/// The only kinds of column the schema has.
#[derive(Debug, Clone)]
pub enum Value {
    Text(String),
    Int(i64),
    Bytes(Vec<u8>),
    NoText,
}

impl Value {
    pub fn text(text: impl std::fmt::Display) -> Self {
        Self::Text(text.to_string())
    }

    /// Text of foreign origin: PostgreSQL takes no NUL.
    pub fn foreign(text: &str) -> Self {
        Self::Text(clean(text))
    }

    pub fn maybe_text(text: Option<impl std::fmt::Display>) -> Self {
        text.map_or(Self::NoText, Self::text)
    }

    pub fn time(at: Timestamp) -> Self {
        Self::Int(at.as_microsecond())
    }
}

pub(crate) fn clean(text: &str) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text.to_owned()
    }
}

type Bound<'q> = Query<'q, Any, AnyArguments>;

pub(crate) fn bind(query: Bound<'_>, value: Value) -> Bound<'_> {
    match value {
        Value::Text(text) => query.bind(text),
        Value::Int(number) => query.bind(number),
        Value::Bytes(bytes) => query.bind(bytes),
        Value::NoText => query.bind(None::<String>),
    }
}

/// A statement put together at run time, out of our own words and placeholders only.
pub(crate) fn query(text: String, values: Vec<Value>) -> Bound<'static> {
    values.into_iter().fold(sqlx::query(AssertSqlSafe(text)), bind)
}

/// Gives the number of rows affected.
pub(crate) async fn execute(
    connection: &mut AnyConnection,
    text: &'static str,
    values: Vec<Value>,
) -> Result<u64, StoreError> {
    let query = values.into_iter().fold(sqlx::query(text), bind);
    Ok(query.execute(connection).await?.rows_affected())
}

/// Runs `head (values …) tail` over all rows, many at a time. Gives the number of rows affected.
pub(crate) async fn execute_rows<const N: usize>(
    connection: &mut AnyConnection,
    head: &str,
    rows: Vec<[Value; N]>,
    tail: &str,
) -> Result<u64, StoreError> {
    execute_all(connection, head, N, rows.into_iter().flatten().collect(), tail).await
}

/// The same for rows of `width` values, one after the other.
pub(crate) async fn execute_all(
    connection: &mut AnyConnection,
    head: &str,
    width: usize,
    values: Vec<Value>,
    tail: &str,
) -> Result<u64, StoreError> {
    let mut affected = 0;
    for (text, values) in statements(Marks::of(connection), head, width, values, tail) {
        affected += query(text, values)
            .execute(&mut *connection)
            .await?
            .rows_affected();
    }
    Ok(affected)
}

/// The same for statements that answer.
pub(crate) async fn fetch_rows<const N: usize>(
    connection: &mut AnyConnection,
    head: &str,
    rows: Vec<[Value; N]>,
    tail: &str,
) -> Result<Vec<AnyRow>, StoreError> {
    fetch_all(connection, head, N, rows.into_iter().flatten().collect(), tail).await
}

/// The same for rows of `width` values, one after the other.
pub(crate) async fn fetch_all(
    connection: &mut AnyConnection,
    head: &str,
    width: usize,
    values: Vec<Value>,
    tail: &str,
) -> Result<Vec<AnyRow>, StoreError> {
    let mut found = Vec::new();
    for (text, values) in statements(Marks::of(connection), head, width, values, tail) {
        found.append(&mut query(text, values).fetch_all(&mut *connection).await?);
    }
    Ok(found)
}

/// How parameters are marked. SQLite takes `$1` too, but looks each up in a list of all of them, which hurts with
/// hundreds.
#[derive(Clone, Copy)]
enum Marks {
    Bare,
    Numbered,
}

impl Marks {
    fn of(connection: &AnyConnection) -> Self {
        if connection.backend_name() == "SQLite" {
            Self::Bare
        } else {
            Self::Numbered
        }
    }
}

fn statements(
    marks: Marks,
    head: &str,
    width: usize,
    values: Vec<Value>,
    tail: &str,
) -> impl Iterator<Item = (String, Vec<Value>)> {
    let mut values = values.into_iter();
    std::iter::from_fn(move || {
        let rows = values.len() / width;
        let size = SIZES.into_iter().find(|size| *size <= rows)?;
        let some = values.by_ref().take(size * width).collect();
        Some((format!("{head} {}{tail}", placeholders(marks, size, width)), some))
    })
}

/// `values ($1,$2),($3,$4)`
fn placeholders(marks: Marks, rows: usize, columns: usize) -> String {
    let mut text = String::with_capacity(rows * columns * 5 + 8);
    text.push_str("values ");
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ",(" });
        for column in 0..columns {
            let comma = if column == 0 { "" } else { "," };
            let _ = match marks {
                Marks::Bare => write!(text, "{comma}?"),
                Marks::Numbered => write!(text, "{comma}${}", row * columns + column + 1),
            };
        }
        text.push(')');
    }
    text
}

/// Reading a column by position, with a word for what it is when it cannot be read.
pub(crate) trait Columns {
    fn text(&self, index: usize) -> Result<&str, StoreError>;
    fn maybe_text(&self, index: usize) -> Result<Option<&str>, StoreError>;
    fn int(&self, index: usize) -> Result<i64, StoreError>;
    fn maybe_int(&self, index: usize) -> Result<Option<i64>, StoreError>;
    fn maybe_bytes(&self, index: usize) -> Result<Option<Vec<u8>>, StoreError>;

    fn time(&self, index: usize) -> Result<Timestamp, StoreError> {
        time(self.int(index)?)
    }

    fn maybe_time(&self, index: usize) -> Result<Option<Timestamp>, StoreError> {
        self.maybe_int(index)?.map(time).transpose()
    }

    fn parsed<T>(&self, index: usize, what: &str) -> Result<T, StoreError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        parsed(self.text(index)?, what)
    }

    fn maybe_parsed<T>(&self, index: usize, what: &str) -> Result<Option<T>, StoreError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        self.maybe_text(index)?.map(|text| parsed(text, what)).transpose()
    }
}

impl Columns for AnyRow {
    fn text(&self, index: usize) -> Result<&str, StoreError> {
        Ok(self.try_get(index)?)
    }

    fn maybe_text(&self, index: usize) -> Result<Option<&str>, StoreError> {
        Ok(self.try_get(index)?)
    }

    fn int(&self, index: usize) -> Result<i64, StoreError> {
        Ok(self.try_get(index)?)
    }

    fn maybe_int(&self, index: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.try_get(index)?)
    }

    fn maybe_bytes(&self, index: usize) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.try_get(index)?)
    }
}

fn time(microseconds: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(microseconds).map_err(|error| StoreError::corrupt("time", error))
}

fn parsed<T>(text: &str, what: &str) -> Result<T, StoreError>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| StoreError::corrupt(what, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_split_into_few_sizes_of_statement() {
        let values = vec![Value::Int(1); 2 * 86];
        let sizes: Vec<usize> = statements(Marks::Numbered, "insert", 2, values, "")
            .map(|(_, values)| values.len() / 2)
            .collect();
        assert_eq!(sizes, [64, 16, 4, 1, 1]);
        assert_eq!(placeholders(Marks::Numbered, 2, 2), "values ($1,$2),($3,$4)");
        assert_eq!(placeholders(Marks::Bare, 2, 2), "values (?,?),(?,?)");
    }
}
