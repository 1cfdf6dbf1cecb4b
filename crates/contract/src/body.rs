//! Strict reading of request bodies: like serde_json, but an error names the field it is in, an object is an
//! object (derived decoders would also take a list with the fields in order), and no field is given twice (two readers
//! of such a body would disagree about what it says).

use serde::Deserialize;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde_json::error::Category;
use serde_json::{Map, Value};
use std::fmt;

/// Why a body was not understood, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyError {
    /// Names and positions from the outside in, such as `disks_selected_config.0.role`; empty for the body itself.
    pub path: String,
    pub message: String,
}

/// Reads a JSON body into a request type.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BodyError> {
    typed(parse(bytes)?)
}

/// The first half of [`decode`]: what JSON itself says, before it is of any type.
pub fn parse(bytes: &[u8]) -> Result<Value, BodyError> {
    let read = serde_json::from_slice(bytes);
    let Unique(value) = read.map_err(|error| match error.classify() {
        // Our own words.
        Category::Data => BodyError::custom(error),
        Category::Io | Category::Syntax | Category::Eof => {
            BodyError::custom(format_args!("cannot be read as JSON: {}", place(&error)))
        }
    })?;
    Ok(value)
}

/// The second half: a request type of it.
pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T, BodyError> {
    T::deserialize(Strict(value))
}

/// Reads the parameters of a query, in which every value is a text.
pub fn decode_query<T: DeserializeOwned>(parameters: Vec<(String, String)>) -> Result<T, BodyError> {
    let fields = parameters.into_iter().map(|(name, value)| (name, Text(value)));
    T::deserialize(de::value::MapAccessDeserializer::new(Fields {
        fields,
        value: None,
    }))
}

impl BodyError {
    /// Some decoders of others repeat what they could not read.
    fn without(self, value: &str) -> Self {
        if !value.is_empty() && self.message.contains(value) {
            return Self::custom("is a text that cannot be read as what belongs here");
        }
        self
    }

    fn inside(mut self, name: &str) -> Self {
        self.path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{name}.{}", self.path)
        };
        self
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "body: {}", self.message),
            path => write!(f, "{path} in body: {}", self.message),
        }
    }
}

impl std::error::Error for BodyError {}

/// In words of our own, and never with the value: it may be a secret at the wrong place, and errors end up in logs.
impl serde::de::Error for BodyError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        Self {
            path: String::new(),
            message: match message.starts_with("UUID parsing failed") {
                true => "is not a UUID".into(),
                false => message,
            },
        }
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::custom(format_args!("is {} and must be {}", named(found), plain(wanted)))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::custom(format_args!(
            "is {} that does not fit: give {}",
            named(found),
            plain(wanted)
        ))
    }

    fn invalid_length(length: usize, wanted: &dyn Expected) -> Self {
        Self::custom(format_args!("has {length} entries: give {}", plain(wanted)))
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::custom(format_args!("is not a known word: use {}", one_of(known)))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let field: String = field.chars().take(LONGEST_NAME).collect();
        Self::custom(match known {
            [] => format!("`{field}` is unknown: there are no fields here"),
            known => format!("`{field}` is not a known field: use {}", one_of(known)),
        })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("`{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::custom(format_args!("`{field}` is given twice"))
    }
}

/// A longer name is no typing mistake.
const LONGEST_NAME: usize = 80;

fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match words.as_slice() {
        [] => "another value".into(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Decoders of others name types as Rust does.
fn plain(wanted: &dyn Expected) -> String {
    let wanted = wanted.to_string();
    match wanted.as_str() {
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" => "a text".into(),
        "a sequence" => "a list".into(),
        "a map" => "an object".into(),
        _ => wanted,
    }
}

/// What kind of value it is, not which.
fn named(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(_) => "a yes or no".into(),
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number".into(),
        Unexpected::Char(_) | Unexpected::Str(_) => "a text".into(),
        Unexpected::Bytes(_) => "bytes".into(),
        Unexpected::Unit | Unexpected::Option => "null".into(),
        Unexpected::NewtypeStruct | Unexpected::Map => "an object".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant => "a word".into(),
        Unexpected::Other(kind) => kind.to_owned(),
    }
}

/// A value in which no object has a key twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if object.contains_key(&name) {
                let name: String = name.chars().take(LONGEST_NAME).collect();
                return Err(A::Error::custom(format_args!("`{name}` is given twice")));
            }
            let Unique(value) = fields.next_value()?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

/// Where JSON cannot be read. The reader's own words may repeat the value.
pub(crate) fn place(error: &serde_json::Error) -> String {
    format!(
        "it goes wrong at line {}, column {}",
        error.line(),
        error.column()
    )
}

struct Strict(Value);

impl<'de> Deserializer<'de> for Strict {
    type Error = BodyError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, Some(number)) => visitor.visit_f64(number),
                (None, None, None) => Err(BodyError::custom("is a number that does not fit")),
            },
            Value::String(text) => {
                let kept = text.clone();
                visitor
                    .visit_string(text)
                    .map_err(|error: BodyError| error.without(&kept))
            }
            Value::Array(items) => visitor.visit_seq(Items {
                items: items.into_iter(),
                at: 0,
            }),
            Value::Object(fields) => visitor.visit_map(Fields {
                fields: fields.into_iter().map(|(name, value)| (name, Strict(value))),
                value: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        match self.0 {
            Value::Object(_) => self.deserialize_any(visitor),
            other => Err(BodyError::invalid_type(kind(&other), &"an object")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        let _ = (name, variants);
        match self.0 {
            Value::String(word) => visitor.visit_enum(word.into_deserializer()),
            other => Err(BodyError::invalid_type(kind(&other), &"a word")),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

fn kind(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Other("null"),
        Value::Bool(flag) => Unexpected::Bool(*flag),
        Value::Number(_) => Unexpected::Other("a number"),
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Other("a list"),
        Value::Object(_) => Unexpected::Other("an object"),
    }
}

struct Items {
    items: std::vec::IntoIter<Value>,
    at: usize,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = BodyError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, BodyError> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        let at = self.at;
        self.at += 1;
        seed.deserialize(Strict(item))
            .map(Some)
            .map_err(|error| error.inside(&at.to_string()))
    }
}

/// Names with their values, of a body or a query.
struct Fields<I, D> {
    fields: I,
    value: Option<(String, D)>,
}

impl<'de, I, D> MapAccess<'de> for Fields<I, D>
where
    I: Iterator<Item = (String, D)>,
    D: Deserializer<'de, Error = BodyError>,
{
    type Error = BodyError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, BodyError> {
        let Some((name, value)) = self.fields.next() else {
            return Ok(None);
        };
        let key = seed.deserialize(IntoDeserializer::<BodyError>::into_deserializer(name.as_str()))?;
        self.value = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, BodyError> {
        let (name, value) = self
            .value
            .take()
            .ok_or_else(|| BodyError::custom("a value without a name"))?;
        seed.deserialize(value).map_err(|error| error.inside(&name))
    }
}

/// A value of a query; whoever wants a number gets it read.
struct Text(String);

macro_rules! read_as {
    ($($deserialize:ident => $visit:ident, $kind:literal);* $(;)?) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(BodyError::invalid_type(Unexpected::Other("a text"), &$kind)),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Text {
    type Error = BodyError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        let kept = self.0.clone();
        visitor
            .visit_string(self.0)
            .map_err(|error: BodyError| error.without(&kept))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    read_as! {
        deserialize_bool => visit_bool, "true or false";
        deserialize_i8 => visit_i8, "a number";
        deserialize_i16 => visit_i16, "a number";
        deserialize_i32 => visit_i32, "a number";
        deserialize_i64 => visit_i64, "a number";
        deserialize_u8 => visit_u8, "a number of 0 or more";
        deserialize_u16 => visit_u16, "a number of 0 or more";
        deserialize_u32 => visit_u32, "a number of 0 or more";
        deserialize_u64 => visit_u64, "a number of 0 or more";
        deserialize_f32 => visit_f32, "a number";
        deserialize_f64 => visit_f64, "a number";
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::cluster_request::CreateCluster;
    use crate::v2::host::{BindHost, UpdateHost};
    use crate::v2::infra_env::CreateInfraEnv;
    use crate::v2::step::PostStepReply;

    fn refusal<T: DeserializeOwned + fmt::Debug>(body: &str) -> String {
        decode::<T>(body.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn null_and_absent_mean_the_same() {
        let body = r#"{"host_role":null,"disks_selected_config":null}"#;
        assert_eq!(
            decode::<UpdateHost>(body.as_bytes()).unwrap(),
            UpdateHost::default()
        );
    }

    #[test]
    fn unknown_fields_are_refused_at_any_depth() {
        assert!(refusal::<BindHost>(r#"{"force":true}"#).contains("`force`"));
        let deep = r#"{"name":"a","pull_secret":"{}","proxy":{"ftp_proxy":"x"}}"#;
        assert!(
            refusal::<CreateInfraEnv>(deep).starts_with("proxy in body: `ftp_proxy` is not a known field")
        );
    }

    #[test]
    fn an_unknown_word_is_refused_with_its_place_and_the_allowed_words() {
        let text = refusal::<UpdateHost>(r#"{"disks_selected_config":[{"id":"a","role":"boot"}]}"#);
        assert_eq!(
            text,
            "disks_selected_config.0.role in body: is not a known word: use `none` or `install`"
        );
    }

    #[test]
    fn a_field_given_twice_is_refused_at_any_depth() {
        assert!(
            refusal::<BindHost>(r#"{"cluster_id":"a","cluster_id":"b"}"#)
                .contains("`cluster_id` is given twice")
        );
        let deep = r#"{"name":"a","pull_secret":"{}","proxy":{"no_proxy":"a","no_proxy":"b"}}"#;
        assert!(refusal::<CreateInfraEnv>(deep).contains("`no_proxy` is given twice"));
    }

    #[test]
    fn a_list_is_not_an_object() {
        assert!(refusal::<BindHost>(r#"["6e1f3c1e-5c2a-4b4d-9a53-0f6a1c7c1b11"]"#).contains("an object"));
        let text = refusal::<CreateInfraEnv>(r#"{"name":"a","pull_secret":"{}","proxy":["a","b","c"]}"#);
        assert!(
            text.starts_with("proxy in body: is a list and must be an object"),
            "{text}"
        );
    }

    #[test]
    fn wrong_types_and_cut_off_bodies_are_refused() {
        assert!(refusal::<PostStepReply>(r#"{"exit_code":"0"}"#).starts_with("exit_code in body"));
        assert!(
            refusal::<CreateCluster>(r#"{"name":"a","openshift_version":4.2}"#)
                .starts_with("openshift_version")
        );
        assert_eq!(
            refusal::<CreateCluster>(r#"{"name":"a""#),
            "body: cannot be read as JSON: it goes wrong at line 1, column 11"
        );
        assert!(refusal::<CreateCluster>("{}").contains("`name` is missing"));
    }

    #[test]
    fn what_is_wanted_is_told_in_words_of_people() {
        for (body, told) in [
            (
                r#"{"control_plane_count":"x9"}"#,
                "control_plane_count in body: is a text and must be a whole number",
            ),
            (
                r#"{"user_managed_networking":3}"#,
                "user_managed_networking in body: is a number and must be true or false",
            ),
            (
                r#"{"api_vips":{}}"#,
                "api_vips in body: is an object and must be a list",
            ),
            (r#"{"name":7}"#, "name in body: is a number and must be a text"),
        ] {
            assert_eq!(refusal::<CreateCluster>(body), told);
        }
        assert_eq!(
            refusal::<BindHost>(r#"{"cluster_id":"6e1f"}"#),
            "cluster_id in body: is not a UUID"
        );
    }

    #[test]
    fn no_refusal_repeats_a_value() {
        let secret = "s3cr3t-canary";
        for body in [
            r#"{"fencing_credentials":"s3cr3t-canary"}"#,
            r#"{"fencing_credentials":{"password":["s3cr3t-canary"]}}"#,
            r#"{"host_role":"s3cr3t-canary"}"#,
            r#"{"disks_selected_config":"s3cr3t-canary"}"#,
            r#"{"disks_selected_config":[{"id":"a","role":"s3cr3t-canary"}]}"#,
            r#"{"ignition_endpoint_token":{"s3cr3t-canary":1}}"#,
            r#""s3cr3t-canary""#,
        ] {
            let told = refusal::<UpdateHost>(body);
            assert!(!told.contains(secret), "{told}");
        }
        for body in [r#"{"cluster_id":"s3cr3t-canary"}"#, r#"{"cluster_id":987654321}"#] {
            let told = refusal::<BindHost>(body);
            assert!(!told.contains(secret) && !told.contains("987654321"), "{told}");
        }
        assert!(!refusal::<PostStepReply>(r#"{"exit_code":"s3cr3t-canary"}"#).contains(secret));
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let body = br#"{"name":"a","pull_secret":"{\"auths\":{}}"}"#;
        let printed = format!("{:?}", decode::<CreateInfraEnv>(body).unwrap());
        assert!(!printed.contains("auths") && printed.contains("***"), "{printed}");
    }
}
