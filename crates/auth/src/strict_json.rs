//! JSON in which nothing can be read in two ways: every name once, nothing after the end, no depth without end.

use crate::told::Told;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::fmt;

/// Tokens and the documents of issuers are flat; this is several times what any of them has.
const DEEPEST: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Not JSON, or something follows after its end.
    Syntax,
    NotAnObject,
    Twice(Told),
    TooDeep,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax => f.write_str("is not one JSON text"),
            Self::NotAnObject => f.write_str("is not a JSON object"),
            Self::Twice(name) => write!(f, "names {name} twice"),
            Self::TooDeep => f.write_str("is nested too deeply"),
        }
    }
}

/// Reads one object.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, Fault> {
    let noted = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let seed = Node {
        depth: 0,
        noted: &noted,
    };
    let read = seed
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    match (read, noted.into_inner()) {
        (Ok(Value::Object(map)), _) => Ok(map),
        (Ok(_), _) => Err(Fault::NotAnObject),
        (Err(_), Some(fault)) => Err(fault),
        (Err(_), None) => Err(Fault::Syntax),
    }
}

/// A value at some depth; what is wrong with it beside its syntax is noted for the caller.
#[derive(Clone, Copy)]
struct Node<'a> {
    depth: usize,
    noted: &'a RefCell<Option<Fault>>,
}

impl Node<'_> {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == DEEPEST {
            return Err(self.fault(Fault::TooDeep));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }

    fn fault<E: serde::de::Error>(self, fault: Fault) -> E {
        let text = fault.to_string();
        *self.noted.borrow_mut() = Some(fault);
        E::custom(text)
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        serde_json::Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number without end"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let (inner, mut values) = (self.inner()?, Vec::new());
        while let Some(value) = list.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let (inner, mut map) = (self.inner()?, Map::new());
        while let Some(name) = members.next_key::<String>()? {
            if map.contains_key(&name) {
                return Err(self.fault(Fault::Twice(Told::new(&name))));
            }
            let value = members.next_value_seed(inner)?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(40), "]".repeat(40));
        let endless = "[".repeat(100_000);
        let twice = |name: &str| Fault::Twice(Told::new(name));
        for (text, fault) in [
            ("", Fault::Syntax),
            ("{", Fault::Syntax),
            ("{}{}", Fault::Syntax),
            ("{} x", Fault::Syntax),
            ("\u{feff}{}", Fault::Syntax),
            ("{'a':1}", Fault::Syntax),
            ("{\"a\":1,}", Fault::Syntax),
            ("{\"a\":1e999}", Fault::Syntax),
            ("[]", Fault::NotAnObject),
            ("null", Fault::NotAnObject),
            ("{\"alg\":\"none\",\"alg\":\"ES256\"}", twice("alg")),
            // The same name, spelled with an escape.
            ("{\"alg\":1,\"\\u0061lg\":2}", twice("alg")),
            ("{\"a\":{\"b\":1,\"b\":1}}", twice("b")),
            (deep.as_str(), Fault::TooDeep),
            (endless.as_str(), Fault::TooDeep),
        ] {
            assert_eq!(object(text.as_bytes()), Err(fault), "{text:.60}");
        }
        assert_eq!(object(b"{\"a\":\"\xff\"}"), Err(Fault::Syntax));
        assert!(object(br#" {"a":[1,-2,0.5,true,null,{"a":"x"}]} "#).is_ok());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in values()) {
            let map = Map::from_iter([("v".to_owned(), value)]);
            let text = serde_json::to_vec(&map).unwrap();
            prop_assert_eq!(object(&text), Ok(map));
        }

        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = object(&bytes);
        }
    }
}
