//! Keys of the hub's own: ES256 signs tokens and verifies them, several keys at a time while one replaces another.

mod der;
mod document;
mod set;
mod signing;
mod thumbprint;
mod verifying;

pub use set::{Kept, KeySet, MOST_KEYS};
pub use signing::SigningKey;
pub use thumbprint::KeyId;
pub use verifying::VerifyingKey;

#[cfg(test)]
mod tests;

pub(crate) use thumbprint::{of_ec, of_rsa};

use crate::told::Told;

/// Why a key cannot be used. Nothing of the key is in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the key is not in PEM: it has to begin with `-----BEGIN`")]
    NotPem,
    #[error("the file of the key is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("there is no {wanted} key in the PEM text")]
    None { wanted: &'static str },
    #[error("there are several keys in the PEM text where one is wanted")]
    Several,
    #[error("there are more than {MOST_KEYS} keys")]
    TooMany,
    #[error("the key is encrypted; give it without a passphrase, in a file that only the hub can read")]
    Encrypted,
    #[error("a PEM block {0} is no key that can be used here; a key of the curve P-256 is wanted")]
    Label(Told),
    #[error("the key is damaged: its contents are not those of a key")]
    Malformed,
    #[error("the key is not for ECDSA; make one with `openssl ecparam -name prime256v1 -genkey -noout`")]
    NotEc,
    #[error(
        "the key is of another curve than P-256; make one with `openssl ecparam -name prime256v1 -genkey -noout`"
    )]
    Curve,
    #[error("the private key does not hold its public key; write it anew with `openssl ec -in OLD -out NEW`")]
    NoPublicKey,
    #[error(
        "the public key is in compressed form; write it anew with `openssl ec -pubin -conv_form uncompressed`"
    )]
    Compressed,
    #[error("the public key is no point of the curve P-256")]
    NotOnCurve,
    #[error("the public key does not belong to the private key")]
    Mismatch,
    #[error("the system has no random numbers")]
    NoRandomness,
}

impl From<der::Malformed> for KeyError {
    fn from(_: der::Malformed) -> Self {
        Self::Malformed
    }
}
