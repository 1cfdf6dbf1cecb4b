//! The private half of a key.

use super::document::{self, Kind};
use super::{KeyError, KeyId, VerifyingKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

pub struct SigningKey {
    pair: EcdsaKeyPair,
    /// Kept for whoever writes the key down.
    scalar: [u8; 32],
    public: VerifyingKey,
}

impl SigningKey {
    pub fn generate() -> Result<Self, KeyError> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| KeyError::NoRandomness)?;
        Self::from_document(Kind::Pkcs8, made.as_ref())
    }

    /// PKCS#8 or SEC1.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let mut keys = document::blocks(text)?;
        keys.retain(|(kind, _)| *kind != Kind::Public);
        match (keys.pop(), keys.is_empty()) {
            (Some((kind, document)), true) => Self::from_document(kind, &document),
            (None, true) => Err(KeyError::None { wanted: "private" }),
            (_, false) => Err(KeyError::Several),
        }
    }

    pub(super) fn from_document(kind: Kind, document: &[u8]) -> Result<Self, KeyError> {
        let private = document::read_private(kind, document)?;
        let point = private.point.ok_or(KeyError::NoPublicKey)?;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            private.scalar,
            point,
            &SystemRandom::new(),
        )
        .map_err(|_| KeyError::Mismatch)?;
        Ok(Self {
            public: VerifyingKey::of_point(pair.public_key().as_ref())?,
            scalar: private.scalar.try_into().map_err(|_| KeyError::Malformed)?,
            pair,
        })
    }

    pub fn public(&self) -> &VerifyingKey {
        &self.public
    }

    pub fn id(&self) -> &KeyId {
        self.public.id()
    }

    /// Refuses a public key that was given beside this one and belongs to another.
    pub fn belongs_to(&self, public: &VerifyingKey) -> Result<(), KeyError> {
        match self.public == *public {
            true => Ok(()),
            false => Err(KeyError::Mismatch),
        }
    }

    pub fn to_pkcs8_pem(&self) -> String {
        document::pem(
            document::PKCS8,
            document::write_pkcs8(&self.scalar, &self.point()),
        )
    }

    pub fn to_sec1_pem(&self) -> String {
        document::pem(document::SEC1, document::write_sec1(&self.scalar, &self.point()))
    }

    fn point(&self) -> Vec<u8> {
        self.pair.public_key().as_ref().to_vec()
    }

    /// 64 bytes, different ones each time.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.pair.sign(&SystemRandom::new(), message);
        signature
            .map(|signature| signature.as_ref().to_vec())
            .map_err(|_| KeyError::NoRandomness)
    }
}

/// Nothing of the secret.
impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", self.id())
    }
}
