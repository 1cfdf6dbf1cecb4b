//! Tokens and keys, pure: the hub's own tokens, proof for images, tokens of an OpenID Connect issuer and the device flow.
//!
//! Time arrives as an argument. Nothing here opens a connection, reads a file or remembers anything beside what its caller
//! holds. Randomness comes from the system where a key or a signature is made. Who may do what is decided in
//! `domain::access`; this crate only says who speaks.

mod bad_token;
mod base64url;
mod claims;
pub mod device;
pub mod image;
mod jws;
mod key;
pub mod oidc;
mod strict_json;
pub mod token;
mod told;

pub use bad_token::{BadToken, Part};
pub use base64url::Misspelled;
pub use claims::{AgentClaims, BadClaims, Claims, ClusterClaims, HostClaims, LONGEST_NAME, Life, UserClaims};
pub use jws::Algorithm;
pub use key::{Kept, KeyError, KeyId, KeySet, MOST_KEYS, SigningKey, VerifyingKey};
pub use strict_json::Fault;
pub use told::Told;
