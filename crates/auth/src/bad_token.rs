//! Why a token is refused. The text never holds the token itself, and has a stable word for logs, audit and metrics.

use crate::base64url::Misspelled;
use crate::strict_json::Fault;
use crate::told::Told;
use std::fmt;

/// One of the three parts of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Header,
    Claims,
    Signature,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Claims => "claims",
            Self::Signature => "signature",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("there is no token")]
    Empty,
    #[error("the token is longer than {limit} characters")]
    TooLong { limit: usize },
    #[error("the token has {parts} parts; a signed token has three")]
    Parts { parts: usize },
    #[error("the {part} of the token {how}")]
    Spelling { part: Part, how: Misspelled },
    #[error("the {part} of the token {how}")]
    Json { part: Part, how: Fault },
    #[error("the token does not say which algorithm signed it")]
    NoAlgorithm,
    #[error("the token is signed with {told}; only {needed} is accepted")]
    Algorithm { told: Told, needed: &'static str },
    /// `crit`: whoever does not understand what it names must refuse the token.
    #[error("the token demands extensions (`crit`), and none is known here")]
    Critical,
    #[error("the header of the token holds {0}, which is not accepted")]
    HeaderMember(Told),
    #[error("the token is of type {0}, which is not accepted here")]
    Type(Told),
    #[error("the token does not say which key signed it, and there are several")]
    KeyNotNamed,
    #[error("the token was signed with key {0}, which is not known here")]
    UnknownKey(Told),
    /// Whoever made the keys did not answer for so long that they are not trusted any more.
    #[error("the keys of the issuer are too old to be trusted; the issuer has not answered")]
    KeysTooOld,
    #[error("the signature of the token is not right")]
    Signature,
    #[error("the token has no claim `{0}`")]
    Missing(&'static str),
    #[error("the claim `{name}` of the token {why}")]
    Claim { name: Told, why: &'static str },
    #[error("the token has a claim {0} that a token of its kind does not have")]
    Unexpected(Told),
    #[error("the token names both an InfraEnv and a cluster; it may name one")]
    TwoObjects,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    NotYet,
    #[error("the token was issued in the future; compare the clocks")]
    FromTheFuture,
    #[error("the token comes from the issuer {0}, which is not the one that is trusted")]
    Issuer(Told),
    #[error("the token is meant for somebody else than this hub")]
    Audience,
    /// An image token of another InfraEnv.
    #[error("the token is for another InfraEnv")]
    OtherInfraEnv,
}

impl BadToken {
    /// For logs, audit and metrics: one of a closed set.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong { .. } => "too-long",
            Self::Parts { .. } => "parts",
            Self::Spelling { .. } => "spelling",
            Self::Json { .. } => "json",
            Self::NoAlgorithm => "no-algorithm",
            Self::Algorithm { .. } => "algorithm",
            Self::Critical => "critical",
            Self::HeaderMember(_) => "header-member",
            Self::Type(_) => "type",
            Self::KeyNotNamed => "key-not-named",
            Self::UnknownKey(_) => "unknown-key",
            Self::KeysTooOld => "keys-too-old",
            Self::Signature => "signature",
            Self::Missing(_) => "claim-missing",
            Self::Claim { .. } => "claim",
            Self::Unexpected(_) => "claim-unexpected",
            Self::TwoObjects => "two-objects",
            Self::Expired => "expired",
            Self::NotYet => "not-yet",
            Self::FromTheFuture => "from-the-future",
            Self::Issuer(_) => "issuer",
            Self::Audience => "audience",
            Self::OtherInfraEnv => "other-infra-env",
        }
    }

    pub(crate) fn claim(name: &str, why: &'static str) -> Self {
        Self::Claim {
            name: Told::new(name),
            why,
        }
    }
}
