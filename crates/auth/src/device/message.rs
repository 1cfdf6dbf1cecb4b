//! What a client and the issuer tell each other.

use crate::strict_json::{self, Fault};
use crate::told::Told;
use jiff::SignedDuration;
use serde_json::{Map, Value};
use std::fmt;

/// Tokens of people with many groups are long, and three may come at once.
const LONGEST: usize = 128 * 1024;
/// What people type, and the addresses they open.
const LONGEST_CODE: usize = 64;
const LONGEST_URL: usize = 2048;
/// RFC 8628: when the issuer tells none.
const INTERVAL: SignedDuration = SignedDuration::from_secs(5);
/// Nobody takes longer to log in, and nobody is asked more seldom.
const LONGEST_LIFE: i64 = 24 * 3600;
const LONGEST_INTERVAL: i64 = 300;

/// For a body of type `application/x-www-form-urlencoded`.
pub type Form = Vec<(&'static str, String)>;

/// A text that goes to the issuer or to the hub, and nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// One that was kept from an earlier login.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

pub fn ask_for_device(client_id: &str, scopes: &[&str]) -> Form {
    vec![("client_id", client_id.to_owned()), ("scope", scopes.join(" "))]
}

pub fn ask_for_tokens(client_id: &str, device_code: &Secret) -> Form {
    vec![
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:device_code".to_owned(),
        ),
        ("device_code", device_code.0.clone()),
        ("client_id", client_id.to_owned()),
    ]
}

/// New tokens for old ones (RFC 6749).
pub fn refresh(client_id: &str, refresh_token: &Secret) -> Form {
    vec![
        ("grant_type", "refresh_token".to_owned()),
        ("refresh_token", refresh_token.0.clone()),
        ("client_id", client_id.to_owned()),
    ]
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    #[error("the answer of the issuer is longer than {LONGEST} bytes")]
    TooLong,
    #[error("the answer of the issuer {0}")]
    Json(Fault),
    #[error("the answer of the issuer has no `{0}`")]
    Missing(&'static str),
    /// It would be shown to a person, or opened.
    #[error("`{0}` in the answer of the issuer is not what it should be")]
    Member(&'static str),
    #[error("the issuer refused: {0}")]
    Refused(Told),
}

/// What a person needs to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceAnswer {
    pub device_code: Secret,
    /// To be typed by a person, and harmless in a terminal.
    pub user_code: String,
    pub verification_uri: String,
    /// With the code in it.
    pub verification_uri_complete: Option<String>,
    pub expires_in: SignedDuration,
    pub interval: SignedDuration,
}

impl DeviceAnswer {
    pub fn read(body: &[u8]) -> Result<Self, BadAnswer> {
        let mut answer = Answer::read(body)?;
        if let Some(error) = answer.text("error")? {
            return Err(BadAnswer::Refused(Told::new(&error)));
        }
        let user_code = answer.needed("user_code")?;
        if user_code.len() > LONGEST_CODE
            || !user_code
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        {
            return Err(BadAnswer::Member("user_code"));
        }
        let expires_in = answer
            .seconds("expires_in")?
            .ok_or(BadAnswer::Missing("expires_in"))?;
        let interval = answer.seconds("interval")?.unwrap_or(INTERVAL);
        Ok(Self {
            device_code: Secret(answer.needed("device_code")?),
            user_code,
            // The name in early drafts, which some issuers still write.
            verification_uri: match answer.page("verification_uri")? {
                Some(page) => page,
                None => answer
                    .page("verification_url")?
                    .ok_or(BadAnswer::Missing("verification_uri"))?,
            },
            verification_uri_complete: answer.page("verification_uri_complete")?,
            expires_in: expires_in.min(SignedDuration::from_secs(LONGEST_LIFE)),
            interval: interval.clamp(
                SignedDuration::from_secs(1),
                SignedDuration::from_secs(LONGEST_INTERVAL),
            ),
        })
    }
}

/// What the issuer gives in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    pub access_token: Secret,
    pub id_token: Option<Secret>,
    pub refresh_token: Option<Secret>,
    pub expires_in: Option<SignedDuration>,
}

/// Either tokens, or an error by its word.
pub(super) enum TokenAnswer {
    Tokens(Box<Tokens>),
    Error(String),
}

impl Tokens {
    /// Of a refresh, which has an answer at once.
    pub fn read(body: &[u8]) -> Result<Self, BadAnswer> {
        match TokenAnswer::read(body)? {
            TokenAnswer::Tokens(tokens) => Ok(*tokens),
            TokenAnswer::Error(word) => Err(BadAnswer::Refused(Told::new(&word))),
        }
    }
}

impl TokenAnswer {
    pub(super) fn read(body: &[u8]) -> Result<Self, BadAnswer> {
        let mut answer = Answer::read(body)?;
        if let Some(word) = answer.text("error")? {
            return Ok(Self::Error(word));
        }
        if !answer.needed("token_type")?.eq_ignore_ascii_case("bearer") {
            return Err(BadAnswer::Member("token_type"));
        }
        let access_token = Secret(answer.needed("access_token")?);
        Ok(Self::Tokens(Box::new(Tokens {
            access_token,
            id_token: answer.text("id_token")?.map(Secret),
            refresh_token: answer.text("refresh_token")?.map(Secret),
            expires_in: answer.seconds("expires_in")?,
        })))
    }
}

struct Answer(Map<String, Value>);

impl Answer {
    fn read(body: &[u8]) -> Result<Self, BadAnswer> {
        if body.len() > LONGEST {
            return Err(BadAnswer::TooLong);
        }
        strict_json::object(body).map(Self).map_err(BadAnswer::Json)
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, BadAnswer> {
        match self.0.shift_remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(BadAnswer::Member(name)),
        }
    }

    fn needed(&mut self, name: &'static str) -> Result<String, BadAnswer> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.ok_or(BadAnswer::Missing(name))
    }

    /// An address that a person is told to open.
    fn page(&mut self, name: &'static str) -> Result<Option<String>, BadAnswer> {
        let good = |url: &String| {
            let web = url.starts_with("https://") || url.starts_with("http://");
            web && url.len() <= LONGEST_URL && url.bytes().all(|byte| byte.is_ascii_graphic())
        };
        match self.text(name)? {
            Some(url) if good(&url) => Ok(Some(url)),
            Some(_) => Err(BadAnswer::Member(name)),
            None => Ok(None),
        }
    }

    /// Some issuers write numbers as text.
    fn seconds(&mut self, name: &'static str) -> Result<Option<SignedDuration>, BadAnswer> {
        let seconds = match self.0.shift_remove(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.parse::<u32>().ok(),
            Some(value) => value.as_u64().and_then(|seconds| u32::try_from(seconds).ok()),
        };
        let seconds = seconds.ok_or(BadAnswer::Member(name))?;
        Ok(Some(SignedDuration::from_secs(i64::from(seconds))))
    }
}
