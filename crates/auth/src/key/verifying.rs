//! The public half of a key: verifies, and has the name of the key.

use super::document::{self, Kind};
use super::{KeyError, KeyId, of_ec};
use ring::agreement::{self, EphemeralPrivateKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    /// Uncompressed: 4, and two coordinates of 32 bytes.
    point: [u8; 65],
    id: KeyId,
}

impl VerifyingKey {
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let mut keys = document::blocks(text)?;
        keys.retain(|(kind, _)| *kind == Kind::Public);
        match (keys.pop(), keys.is_empty()) {
            (Some((_, document)), true) => Self::from_document(&document),
            (None, true) => Err(KeyError::None { wanted: "public" }),
            (_, false) => Err(KeyError::Several),
        }
    }

    pub(super) fn from_document(document: &[u8]) -> Result<Self, KeyError> {
        Self::on_curve(document::read_public(document)?)
    }

    /// A point that somebody gave: every verification would fail with one that is not on the curve, and nobody would
    /// know why.
    pub(crate) fn on_curve(point: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let own = EphemeralPrivateKey::generate(&agreement::ECDH_P256, &random)
            .map_err(|_| KeyError::NoRandomness)?;
        let theirs = agreement::UnparsedPublicKey::new(&agreement::ECDH_P256, point);
        agreement::agree_ephemeral(own, &theirs, |_| ()).map_err(|_| KeyError::NotOnCurve)?;
        Self::of_point(point)
    }

    pub(super) fn of_point(point: &[u8]) -> Result<Self, KeyError> {
        let point: [u8; 65] = point.try_into().map_err(|_| KeyError::Malformed)?;
        let id = of_ec(&point[1..33], &point[33..]);
        Ok(Self { point, id })
    }

    pub fn id(&self) -> &KeyId {
        &self.id
    }

    pub fn to_pem(&self) -> String {
        document::pem(document::PUBLIC, document::write_public(&self.point))
    }

    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.point);
        key.verify(message, signature).is_ok()
    }
}

impl std::fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VerifyingKey({})", self.id)
    }
}
