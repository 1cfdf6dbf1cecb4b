//! Proof that somebody may read the image of one InfraEnv: tokens in addresses, and short signed paths for firmware.
//!
//! Both are made with the key of the InfraEnv. They are read first, to learn which InfraEnv's keys to ask for, and then
//! verified with these.

mod path;
mod token;

pub use path::{BadPath, LONGEST_PATH, ShortFile, ShortPath, sign_path};
pub use token::{ImageToken, issue};

use jiff::Timestamp;
use ring::hmac;

/// RFC 7518 asks for as many bytes as the hash has.
const SHORTEST_KEY: usize = 32;

/// The key of an InfraEnv, of which only somebody who was given an address knows something.
#[derive(Clone)]
pub struct ImageKey(hmac::Key);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key of an InfraEnv's images is shorter than {SHORTEST_KEY} bytes")]
pub struct KeyTooShort;

impl ImageKey {
    /// The bytes of the text are the key, as assisted-service takes them.
    pub fn new(text: &str) -> Result<Self, KeyTooShort> {
        match text.len() {
            ..SHORTEST_KEY => Err(KeyTooShort),
            _ => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()))),
        }
    }

    fn sign(&self, text: &[u8]) -> hmac::Tag {
        hmac::sign(&self.0, text)
    }

    /// Takes as long whatever is wrong.
    fn signed(&self, text: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.0, text, tag).is_ok()
    }
}

impl std::fmt::Debug for ImageKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ImageKey(…)")
    }
}

/// The key of an InfraEnv, and the one before as long as media may still be read with it.
#[derive(Debug, Clone)]
pub struct ImageKeys {
    pub current: ImageKey,
    pub previous: Option<(ImageKey, Timestamp)>,
}

/// Which of the keys made what was shown. What the one before made may be read to its end, and begins nothing new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAge {
    Current,
    Previous,
}

impl ImageKeys {
    fn of(&self, text: &[u8], tag: &[u8], now: Timestamp) -> Option<KeyAge> {
        if self.current.signed(text, tag) {
            return Some(KeyAge::Current);
        }
        let previous = self.previous.as_ref().filter(|(_, until)| now < *until);
        previous
            .filter(|(key, _)| key.signed(text, tag))
            .map(|_| KeyAge::Previous)
    }
}

#[cfg(test)]
mod tests;
