//! Queries: lists may be given once with commas or as repeated keys, and nothing in them is longer than it can be.

use crate::http::problem;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use muster_domain::input::{Checked, Invalid, bounds};
use serde::de::DeserializeOwned;
use std::collections::HashMap;

/// More parameters than any operation has, and more values than any list of them is given in one line.
const MOST_PARAMETERS: usize = 64;
const MOST_VALUES: usize = 2048;

/// Query parameters.
pub struct Args<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Args<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let unusable = |message: String| problem::framework(StatusCode::BAD_REQUEST, message);
        let folded = fold(parts.uri.query().unwrap_or_default())
            .map_err(|invalid| unusable(format!("the hub cannot use the query: {invalid}")))?;
        let pairs: Vec<(String, String)> =
            serde_urlencoded::from_str(&folded).map_err(|_| unusable("cannot read the query".into()))?;
        muster_contract::body::decode_query(pairs)
            .map(Self)
            .map_err(|error| match error.path.as_str() {
                "" => unusable(format!("query: {}", error.message)),
                path => unusable(format!("{path} in query: {}", error.message)),
            })
    }
}

struct List<'a> {
    key: &'a str,
    values: String,
    count: usize,
}

/// Joins repeated keys with commas, the form in which lists are read. Reads each pair once.
fn fold(query: &str) -> Checked<String> {
    let mut lists: Vec<List<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        no_zero(key, part)?;
        let count = 1 + value.matches(',').count() + value.matches("%2").count();
        match places.get(key) {
            Some(place) => lists[*place].add(value, count)?,
            None if lists.len() == MOST_PARAMETERS => {
                return Err(too_many("query", "parameters", MOST_PARAMETERS));
            }
            None => {
                places.insert(key, lists.len());
                lists.push(List {
                    key,
                    values: String::new(),
                    count: 0,
                });
                lists.last_mut().map_or(Ok(()), |list| list.add(value, count))?;
            }
        }
    }
    let pairs = lists.iter().map(|list| format!("{}={}", list.key, list.values));
    Ok(pairs.collect::<Vec<_>>().join("&"))
}

impl List<'_> {
    fn add(&mut self, value: &str, count: usize) -> Checked {
        if self.count > 0 {
            self.values.push_str("%2C");
        }
        self.values.push_str(value);
        self.count += count;
        if self.count > MOST_VALUES {
            return Err(too_many(self.key, "values", MOST_VALUES));
        }
        Ok(())
    }
}

/// A zero is percent-encoded in every address that has one; once decoded, no database takes it.
pub fn no_zero(field: &str, encoded: &str) -> Checked {
    if encoded.contains("%00") {
        bounds::no_zero(field, "\0")?;
    }
    Ok(())
}

fn too_many(field: &str, what: &str, most: usize) -> Invalid {
    let field: String = field.chars().take(60).collect();
    Invalid::schema(
        field,
        format!("has too many {what}"),
        format!("give at most {most}"),
    )
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn repeated_keys_become_one_list() {
        assert_eq!(
            fold("severities=info&severities=error&limit=3").unwrap(),
            "severities=info%2Cerror&limit=3"
        );
        assert_eq!(fold("").unwrap(), "");
        assert_eq!(fold("a=1%2C2&b&a=3").unwrap(), "a=1%2C2%2C3&b=");
    }

    #[test]
    fn more_parameters_or_values_than_any_operation_takes_are_refused_by_name() {
        let many = |count: usize| (0..count).map(|n| format!("k{n}=1&")).collect::<String>();
        assert!(fold(&many(64)).is_ok());
        assert_eq!(fold(&many(65)).unwrap_err().field, "query");
        for list in ["status=a&".repeat(2049), format!("status={}", "a,".repeat(2049))] {
            assert_eq!(fold(&list).unwrap_err().field, "status");
        }
        assert!(fold(&"status=a&".repeat(2048)).is_ok());
    }

    #[test]
    fn a_zero_is_refused_by_the_name_of_its_parameter() {
        let no = fold("limit=1&file_name=a%00.yaml").unwrap_err();
        assert_eq!(no.field, "file_name");
    }
}
