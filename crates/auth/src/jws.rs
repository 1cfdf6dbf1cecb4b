//! Signed tokens in compact form (RFC 7515): three parts, read strictly. What is in them is believed by nobody before the
//! signature was verified.

use crate::bad_token::{BadToken, Part};
use crate::base64url;
use crate::strict_json;
use crate::told::Told;
use serde_json::{Map, Value};

/// The algorithms there are. A key has one of them; what a token says must agree with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Es256,
    Rs256,
    Hs256,
}

impl Algorithm {
    pub fn word(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::Hs256 => "HS256",
        }
    }
}

/// What a token says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    alg: String,
    pub kid: Option<String>,
    pub typ: Option<String>,
    /// The name of something else in it.
    other: Option<String>,
}

/// A token that is in order, and not verified.
#[derive(Debug)]
pub struct Compact<'a> {
    pub header: Header,
    /// What is signed: header and claims as they came.
    pub signed: &'a [u8],
    claims: &'a str,
    signature: &'a str,
}

impl<'a> Compact<'a> {
    pub fn read(token: &'a str, limit: usize) -> Result<Self, BadToken> {
        if token.is_empty() {
            return Err(BadToken::Empty);
        }
        if token.len() > limit {
            return Err(BadToken::TooLong { limit });
        }
        let parts = token.split('.').count();
        let mut three = token.split('.');
        let (Some(header), Some(claims), Some(signature), 3) =
            (three.next(), three.next(), three.next(), parts)
        else {
            return Err(BadToken::Parts { parts });
        };
        Ok(Self {
            header: Header::read(header)?,
            signed: &token.as_bytes()[..header.len() + 1 + claims.len()],
            claims,
            signature,
        })
    }

    pub fn signature(&self) -> Result<Vec<u8>, BadToken> {
        decoded(Part::Signature, self.signature)
    }

    /// What the token claims. Ask only after its signature was verified, or to find the key that it needs.
    pub fn claims(&self) -> Result<Map<String, Value>, BadToken> {
        members(Part::Claims, self.claims)
    }
}

impl Header {
    fn read(text: &str) -> Result<Self, BadToken> {
        let map = members(Part::Header, text)?;
        if map.contains_key("crit") {
            return Err(BadToken::Critical);
        }
        let mut header = Self {
            alg: String::new(),
            kid: None,
            typ: None,
            other: None,
        };
        for (name, value) in map {
            let known = match name.as_str() {
                "alg" => Some(&mut header.alg),
                "kid" => Some(header.kid.insert(String::new())),
                "typ" => Some(header.typ.insert(String::new())),
                // They would change what is signed, or how it is written.
                "b64" | "zip" | "enc" => return Err(BadToken::HeaderMember(Told::new(&name))),
                _ => None,
            };
            match (known, value) {
                (Some(place), Value::String(text)) => *place = text,
                (Some(_), _) => return Err(BadToken::HeaderMember(Told::new(&name))),
                (None, _) => header.other = Some(name),
            }
        }
        match header.alg.is_empty() {
            true => Err(BadToken::NoAlgorithm),
            false => Ok(header),
        }
    }

    /// The algorithm is that of the key, and nothing that the token says can change it.
    pub fn needs(&self, algorithm: Algorithm) -> Result<(), BadToken> {
        match self.alg == algorithm.word() {
            true => Ok(()),
            false => Err(self.refused(algorithm.word())),
        }
    }

    /// Which of the algorithms of an issuer it is.
    pub fn asymmetric(&self) -> Result<Algorithm, BadToken> {
        let known = [Algorithm::Es256, Algorithm::Rs256];
        let found = known.into_iter().find(|known| self.alg == known.word());
        found.ok_or_else(|| self.refused("ES256 or RS256"))
    }

    fn refused(&self, needed: &'static str) -> BadToken {
        BadToken::Algorithm {
            told: Told::new(&self.alg),
            needed,
        }
    }

    /// For tokens of our own, which hold nothing that we do not write.
    pub fn has_nothing_else(&self) -> Result<(), BadToken> {
        match &self.other {
            Some(name) => Err(BadToken::HeaderMember(Told::new(name))),
            None => Ok(()),
        }
    }

    /// Types are compared as media types are; one that is not told is any of them.
    pub fn is_of_type(&self, accepted: &[&str]) -> Result<(), BadToken> {
        let Some(typ) = &self.typ else {
            return Ok(());
        };
        let short = typ
            .get(.."application/".len())
            .filter(|start| start.eq_ignore_ascii_case("application/"));
        let name = &typ[short.map_or(0, str::len)..];
        match accepted.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            true => Ok(()),
            false => Err(BadToken::Type(Told::new(typ))),
        }
    }
}

/// Header and claims as they are signed.
pub fn to_be_signed(algorithm: Algorithm, kid: Option<&str>, claims: &Map<String, Value>) -> String {
    let mut header = Map::new();
    header.insert("alg".to_owned(), algorithm.word().into());
    if let Some(kid) = kid {
        header.insert("kid".to_owned(), kid.into());
    }
    header.insert("typ".to_owned(), "JWT".into());
    format!("{}.{}", written(&header), written(claims))
}

fn written(map: &Map<String, Value>) -> String {
    base64url::encode(Value::Object(map.clone()).to_string())
}

fn members(part: Part, text: &str) -> Result<Map<String, Value>, BadToken> {
    strict_json::object(&decoded(part, text)?).map_err(|how| BadToken::Json { part, how })
}

fn decoded(part: Part, text: &str) -> Result<Vec<u8>, BadToken> {
    base64url::decode(text).map_err(|how| BadToken::Spelling { part, how })
}
