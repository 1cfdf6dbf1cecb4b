//! The keys of an issuer (RFC 7517). Keys that are of no use here are skipped, so that an issuer may have them.

use crate::base64url;
use crate::jws::Algorithm;
use crate::key::{KeyId, VerifyingKey, of_rsa};
use crate::strict_json::{self, Fault};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use serde_json::{Map, Value};

/// Large issuers have a dozen keys, each of which takes 2 KiB with its certificates.
const LONGEST: usize = 256 * 1024;
const MOST_KEYS: usize = 64;
const LONGEST_KID: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadJwks {
    #[error("the issuer's keys are longer than {LONGEST} bytes")]
    TooLong,
    #[error("the document with the issuer's keys {0}")]
    Json(Fault),
    #[error("the document with the issuer's keys has no list `keys`")]
    NoList,
    #[error("the issuer has more than {MOST_KEYS} keys")]
    TooMany,
    #[error("the issuer has no key that can be used: RS256 with 2048 to 8192 bits, or ES256")]
    NoneUsable,
}

/// Why a key is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("is not an object with a `kty`")]
    Shape,
    #[error("is of another kind than RSA and EC with P-256")]
    Kind,
    #[error("is not for signatures")]
    Use,
    #[error("is for another algorithm than RS256 and ES256")]
    Algorithm,
    #[error("has a part that is missing or misspelled")]
    Part,
    #[error("has a modulus outside of 2048 to 8192 bits, or an exponent that is not odd")]
    Size,
    #[error("is no point of its curve")]
    Point,
    #[error("shows its private part, so anybody may have signed with it")]
    Private,
    #[error("has a name that is longer than 256 characters")]
    Name,
}

/// A key that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Which one in the list.
    pub place: usize,
    pub why: Unusable,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Ec(VerifyingKey),
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

/// A key that can verify, with one algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    pub kid: Option<String>,
    material: Material,
}

impl PublicKey {
    pub fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::Ec(_) => Algorithm::Es256,
            Material::Rsa { .. } => Algorithm::Rs256,
        }
    }

    pub fn thumbprint(&self) -> KeyId {
        match &self.material {
            Material::Ec(key) => key.id().clone(),
            Material::Rsa { modulus, exponent } => of_rsa(modulus, exponent),
        }
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Ec(key) => key.verifies(message, signature),
            Material::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                    .is_ok()
            }
        }
    }

    fn read(value: &Value) -> Result<Self, Unusable> {
        let jwk = value.as_object().ok_or(Unusable::Shape)?;
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let kty = text("kty").ok_or(Unusable::Shape)?;
        let algorithm = match (kty, text("crv")) {
            ("RSA", _) => Algorithm::Rs256,
            ("EC", Some("P-256")) => Algorithm::Es256,
            (_, _) => return Err(Unusable::Kind),
        };
        if jwk.contains_key("d") {
            return Err(Unusable::Private);
        }
        if !is_for_signatures(jwk) {
            return Err(Unusable::Use);
        }
        if text("alg").is_some_and(|told| told != algorithm.word()) {
            return Err(Unusable::Algorithm);
        }
        let kid = text("kid").map(str::to_owned);
        if kid.as_ref().is_some_and(|kid| kid.len() > LONGEST_KID) {
            return Err(Unusable::Name);
        }
        let part = |name: &str| {
            text(name)
                .and_then(|text| base64url::decode(text).ok())
                .ok_or(Unusable::Part)
        };
        let material = match algorithm {
            Algorithm::Rs256 => rsa(part("n")?, part("e")?)?,
            Algorithm::Es256 => ec(&part("x")?, &part("y")?)?,
            Algorithm::Hs256 => return Err(Unusable::Kind),
        };
        Ok(Self { kid, material })
    }
}

fn is_for_signatures(jwk: &Map<String, Value>) -> bool {
    let meant = jwk.get("use").is_none_or(|told| told == "sig");
    let operations = jwk.get("key_ops").and_then(Value::as_array);
    meant && operations.is_none_or(|list| list.iter().any(|told| told == "verify"))
}

/// Some issuers write a zero in front, which is not part of the number.
fn rsa(mut modulus: Vec<u8>, exponent: Vec<u8>) -> Result<Material, Unusable> {
    if modulus.first() == Some(&0) {
        modulus.remove(0);
    }
    let bits = modulus
        .first()
        .map_or(0, |first| modulus.len() * 8 - first.leading_zeros() as usize);
    let odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
    let exponent_fits =
        matches!(exponent.as_slice(), [3..=255, ..] | [1..=255, _, ..]) && exponent.len() <= 4;
    match (2048..=8192).contains(&bits) && odd(&modulus) && exponent_fits && odd(&exponent) {
        true => Ok(Material::Rsa { modulus, exponent }),
        false => Err(Unusable::Size),
    }
}

fn ec(x: &[u8], y: &[u8]) -> Result<Material, Unusable> {
    if (x.len(), y.len()) != (32, 32) {
        return Err(Unusable::Part);
    }
    let point = [&[4], x, y].concat();
    VerifyingKey::on_curve(&point)
        .map(Material::Ec)
        .map_err(|_| Unusable::Point)
}

/// The keys of a document, at least one of which is of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jwks {
    pub keys: Vec<PublicKey>,
    pub skipped: Vec<Skipped>,
}

impl Jwks {
    pub fn read(document: &[u8]) -> Result<Self, BadJwks> {
        if document.len() > LONGEST {
            return Err(BadJwks::TooLong);
        }
        let map = strict_json::object(document).map_err(BadJwks::Json)?;
        let list = map.get("keys").and_then(Value::as_array).ok_or(BadJwks::NoList)?;
        if list.len() > MOST_KEYS {
            return Err(BadJwks::TooMany);
        }
        let mut jwks = Self {
            keys: Vec::new(),
            skipped: Vec::new(),
        };
        for (place, value) in list.iter().enumerate() {
            match PublicKey::read(value) {
                Ok(key) => jwks.keys.push(key),
                Err(why) => jwks.skipped.push(Skipped { place, why }),
            }
        }
        match jwks.keys.is_empty() {
            true => Err(BadJwks::NoneUsable),
            false => Ok(jwks),
        }
    }
}
