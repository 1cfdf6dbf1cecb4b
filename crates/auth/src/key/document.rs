//! Keys of P-256 as documents: SEC1, PKCS#8 and SubjectPublicKeyInfo, and the PEM around them.

use super::KeyError;
use super::der::{
    BIT_STRING, FIRST, INTEGER, OBJECT_ID, OCTET_STRING, Reader, SECOND, SECOND_BITS, SEQUENCE, element,
};
use crate::told::Told;
use pem::{EncodeConfig, LineEnding, Pem};

/// `id-ecPublicKey` and `prime256v1`.
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// Sixteen keys with all that openssl writes around them are far below this.
const LONGEST: usize = 64 * 1024;

pub const SEC1: &str = "EC PRIVATE KEY";
pub const PKCS8: &str = "PRIVATE KEY";
pub const PUBLIC: &str = "PUBLIC KEY";

/// A private key: its number, and its point if the document has it.
pub struct Private<'a> {
    pub scalar: &'a [u8],
    pub point: Option<&'a [u8]>,
}

/// What a PEM block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sec1,
    Pkcs8,
    Public,
}

/// The keys of a PEM text in order.
pub fn blocks(text: &str) -> Result<Vec<(Kind, Vec<u8>)>, KeyError> {
    if text.len() > LONGEST {
        return Err(KeyError::TooLong { limit: LONGEST });
    }
    let blocks = pem::parse_many(text).map_err(|_| KeyError::Malformed)?;
    if blocks.is_empty() {
        return Err(KeyError::NotPem);
    }
    let mut keys = Vec::new();
    for block in blocks {
        let kind = match block.tag() {
            SEC1 if block.headers().get("Proc-Type").is_some() => return Err(KeyError::Encrypted),
            "ENCRYPTED PRIVATE KEY" => return Err(KeyError::Encrypted),
            SEC1 => Kind::Sec1,
            PKCS8 => Kind::Pkcs8,
            // Go programs write the second name for the same contents.
            PUBLIC | "EC PUBLIC KEY" => Kind::Public,
            // openssl writes the name of the curve in front of a key.
            "EC PARAMETERS" => continue,
            other => return Err(KeyError::Label(Told::new(other))),
        };
        keys.push((kind, block.into_contents()));
    }
    Ok(keys)
}

pub fn pem(tag: &str, contents: Vec<u8>) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new(tag, contents), config)
}

pub fn read_private(kind: Kind, document: &[u8]) -> Result<Private<'_>, KeyError> {
    match kind {
        Kind::Sec1 => sec1(document, true),
        Kind::Pkcs8 => pkcs8(document),
        Kind::Public => Err(KeyError::None { wanted: "private" }),
    }
}

/// `outermost`: nothing else tells the curve.
fn sec1(document: &[u8], outermost: bool) -> Result<Private<'_>, KeyError> {
    let mut whole = Reader::new(document);
    let mut key = Reader::new(whole.element(SEQUENCE)?);
    whole.end()?;
    if key.element(INTEGER)? != [1] {
        return Err(KeyError::Malformed);
    }
    let scalar = key.element(OCTET_STRING)?;
    match key.optional(FIRST)? {
        Some(named) => {
            let mut named = Reader::new(named);
            // A curve that is spelled out, and not named, is no object id.
            if named.optional(OBJECT_ID)? != Some(P256) {
                return Err(KeyError::Curve);
            }
            named.end()?;
        }
        None if outermost => return Err(KeyError::Curve),
        None => {}
    }
    let point = match key.optional(SECOND)? {
        Some(inner) => {
            let mut inner = Reader::new(inner);
            let point = point(inner.element(BIT_STRING)?)?;
            inner.end()?;
            Some(point)
        }
        None => None,
    };
    key.end()?;
    match scalar.len() {
        32 => Ok(Private { scalar, point }),
        _ => Err(KeyError::Malformed),
    }
}

fn pkcs8(document: &[u8]) -> Result<Private<'_>, KeyError> {
    let mut whole = Reader::new(document);
    let mut key = Reader::new(whole.element(SEQUENCE)?);
    whole.end()?;
    if !matches!(key.element(INTEGER)?, [0 | 1]) {
        return Err(KeyError::Malformed);
    }
    algorithm(key.element(SEQUENCE)?)?;
    let mut private = sec1(key.element(OCTET_STRING)?, false)?;
    // Attributes say nothing that is needed here.
    key.optional(FIRST)?;
    if let Some(bits) = key.optional(SECOND_BITS)? {
        private.point = private.point.or(Some(point(bits)?));
    }
    key.end()?;
    Ok(private)
}

/// The point of a public key.
pub fn read_public(document: &[u8]) -> Result<&[u8], KeyError> {
    let mut whole = Reader::new(document);
    let mut key = Reader::new(whole.element(SEQUENCE)?);
    whole.end()?;
    algorithm(key.element(SEQUENCE)?)?;
    let point = point(key.element(BIT_STRING)?)?;
    key.end()?;
    Ok(point)
}

fn algorithm(contents: &[u8]) -> Result<(), KeyError> {
    let mut algorithm = Reader::new(contents);
    if algorithm.element(OBJECT_ID)? != EC {
        return Err(KeyError::NotEc);
    }
    if algorithm.optional(OBJECT_ID)? != Some(P256) {
        return Err(KeyError::Curve);
    }
    Ok(algorithm.end()?)
}

/// A bit string begins with how many of its bits mean nothing.
fn point(bits: &[u8]) -> Result<&[u8], KeyError> {
    match bits {
        [0, point @ ..] => match (point, point.len()) {
            ([4, ..], 65) => Ok(point),
            ([2 | 3, ..], 33) => Err(KeyError::Compressed),
            (_, _) => Err(KeyError::Malformed),
        },
        [..] => Err(KeyError::Malformed),
    }
}

/// As Go writes it, with the name of the curve.
pub fn write_sec1(scalar: &[u8], point: &[u8]) -> Vec<u8> {
    let curve = element(FIRST, &[&element(OBJECT_ID, &[P256])]);
    element(
        SEQUENCE,
        &[&one(), &element(OCTET_STRING, &[scalar]), &curve, &second(point)],
    )
}

pub fn write_pkcs8(scalar: &[u8], point: &[u8]) -> Vec<u8> {
    let key = element(
        SEQUENCE,
        &[&one(), &element(OCTET_STRING, &[scalar]), &second(point)],
    );
    let version = element(INTEGER, &[&[0]]);
    element(SEQUENCE, &[&version, &named(), &element(OCTET_STRING, &[&key])])
}

pub fn write_public(point: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[&named(), &bits(point)])
}

fn one() -> Vec<u8> {
    element(INTEGER, &[&[1]])
}

fn named() -> Vec<u8> {
    element(
        SEQUENCE,
        &[&element(OBJECT_ID, &[EC]), &element(OBJECT_ID, &[P256])],
    )
}

fn bits(point: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], point])
}

fn second(point: &[u8]) -> Vec<u8> {
    element(SECOND, &[&bits(point)])
}
