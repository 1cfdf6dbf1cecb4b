//! Names of keys that follow from the keys themselves (RFC 7638), so that nobody has to hand them out.

use crate::base64url;
use ring::digest::{SHA256, digest};
use std::fmt;
use std::sync::Arc;

/// The thumbprint of a key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(Arc<str>);

impl KeyId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Of a key of P-256; the two coordinates have 32 bytes each.
pub(crate) fn of_ec(x: &[u8], y: &[u8]) -> KeyId {
    let (x, y) = (base64url::encode(x), base64url::encode(y));
    of_text(&format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#))
}

pub(crate) fn of_rsa(modulus: &[u8], exponent: &[u8]) -> KeyId {
    let (n, e) = (base64url::encode(modulus), base64url::encode(exponent));
    of_text(&format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#))
}

fn of_text(text: &str) -> KeyId {
    KeyId(base64url::encode(digest(&SHA256, text.as_bytes())).into())
}
