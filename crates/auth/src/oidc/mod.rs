//! Tokens of an OpenID Connect issuer: what its documents say, when its keys are fetched, and what its tokens claim.
//! Whoever uses this fetches the documents.

mod discovery;
mod jwks;
mod keys;
mod mapping;
mod verify;

pub use discovery::{BadDiscovery, Discovery, Issuer};
pub use jwks::{BadJwks, Jwks, PublicKey, Skipped, Unusable};
pub use keys::{Fetch, Keys, Rotation};
pub use mapping::{BadClaimPath, ClaimPath, Identity, Mapping};
pub use verify::{Expected, LONGEST_TOKEN, verify};

#[cfg(test)]
mod tests;
