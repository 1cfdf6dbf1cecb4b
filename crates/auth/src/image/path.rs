//! Signed paths short enough for the firmware of BMCs: no query, and an ending that they recognise.
//!
//! `/i/INFRA-ENV.TAG.iso` holds as long as the key does, `/i/INFRA-ENV.SECONDS.TAG.iso` until that second (in hex).

use super::{ImageKey, ImageKeys, KeyAge};
use crate::base64url;
use jiff::Timestamp;
use muster_vocabulary::InfraEnvId;

/// Firmware cuts what is longer, or refuses it.
pub const LONGEST_PATH: usize = 127;
const PREFIX: &str = "/i/";
/// No token begins like this, so a tag of one is never one of the other.
const PURPOSE: &str = "muster image path\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortFile {
    Iso,
    Script,
}

impl ShortFile {
    pub const ALL: [Self; 2] = [Self::Iso, Self::Script];

    pub fn ending(self) -> &'static str {
        match self {
            Self::Iso => ".iso",
            Self::Script => ".ipxe",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    #[error("the address is not one of a signed image")]
    Shape,
    #[error("the signature of the address is not right; ask for a new address")]
    Signature,
    #[error("the address has expired; ask for a new one")]
    Expired,
}

/// A path that was read, and not verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortPath<'a> {
    /// Whose key to verify it with.
    pub infra_env: InfraEnvId,
    pub file: ShortFile,
    pub expires_at: Option<Timestamp>,
    stem: &'a str,
    tag: Vec<u8>,
}

/// Seconds are whole; without `expires_at` the path holds as long as the key.
pub fn sign_path(
    key: &ImageKey,
    infra_env: InfraEnvId,
    file: ShortFile,
    expires_at: Option<Timestamp>,
) -> String {
    let stem = match expires_at {
        Some(at) => format!("{infra_env}.{:x}", at.as_second()),
        None => infra_env.to_string(),
    };
    let tag = key.sign(signed(&stem, file).as_bytes());
    format!("{PREFIX}{stem}.{}{}", base64url::encode(tag), file.ending())
}

fn signed(stem: &str, file: ShortFile) -> String {
    format!("{PURPOSE}{stem}{}", file.ending())
}

impl<'a> ShortPath<'a> {
    pub fn read(path: &'a str) -> Result<Self, BadPath> {
        Self::parts(path).ok_or(BadPath::Shape)
    }

    fn parts(path: &'a str) -> Option<Self> {
        let name = path.strip_prefix(PREFIX).filter(|_| path.len() <= LONGEST_PATH)?;
        let file = ShortFile::ALL
            .into_iter()
            .find(|file| name.ends_with(file.ending()))?;
        let (stem, tag) = name.strip_suffix(file.ending())?.rsplit_once('.')?;
        let (id, end) = match stem.split_once('.') {
            Some((id, end)) => (id, Some(end)),
            None => (stem, None),
        };
        let infra_env: InfraEnvId = id.parse().ok()?;
        let expires_at = match end {
            Some(end) => Some(Timestamp::from_second(i64::from_str_radix(end, 16).ok()?).ok()?),
            None => None,
        };
        Some(Self {
            infra_env,
            file,
            expires_at,
            stem,
            tag: base64url::decode(tag).ok()?,
        })
    }

    pub fn verify(&self, keys: &ImageKeys, now: Timestamp) -> Result<KeyAge, BadPath> {
        let text = signed(self.stem, self.file);
        let age = keys
            .of(text.as_bytes(), &self.tag, now)
            .ok_or(BadPath::Signature)?;
        match self.expires_at.is_some_and(|at| at <= now) {
            true => Err(BadPath::Expired),
            false => Ok(age),
        }
    }
}
