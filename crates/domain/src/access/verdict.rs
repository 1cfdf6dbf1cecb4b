//! The answer to "may this caller do that?".

use muster_vocabulary::AccessRole;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// There is no such object, or the caller must not learn that there is one.
    NotFound,
    Forbidden(Reason),
}

/// Why somebody may not. The door turns the first two into 401, the third into an answer that agents survive, and the rest
/// into 403.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    NotKnown,
    /// A newer credential was given to the same host.
    OldCredential,
    /// The tokens of the InfraEnv or the cluster were revoked, or it was deleted.
    Revoked,
    NeedsRole(AccessRole),
    /// It may be seen, and is changed by others.
    NotOwner,
    /// Secrets are for those whose they are, whatever roles others have.
    OwnersOnly,
    MachinesOnly,
    PeopleOnly,
    /// A machine of the same InfraEnv that is not this one.
    AnotherMachine,
}

impl Verdict {
    pub fn is_allowed(self) -> bool {
        match self {
            Self::Allowed => true,
            Self::NotFound | Self::Forbidden(_) => false,
        }
    }

    /// The first that is no permission.
    pub(super) fn and(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Allowed => next(),
            Self::NotFound | Self::Forbidden(_) => self,
        }
    }
}

impl Reason {
    /// For audit and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotKnown => "not-known",
            Self::OldCredential => "old-credential",
            Self::Revoked => "revoked",
            Self::NeedsRole(_) => "needs-role",
            Self::NotOwner => "not-owner",
            Self::OwnersOnly => "owners-only",
            Self::MachinesOnly => "machines-only",
            Self::PeopleOnly => "people-only",
            Self::AnotherMachine => "another-machine",
        }
    }

    pub fn next_action(self) -> &'static str {
        match self {
            Self::NotKnown => "Log in, or show a token.",
            Self::OldCredential => "Boot the machine again: it registers and gets a new credential.",
            Self::Revoked => "Boot the machine from a new image of its InfraEnv.",
            Self::NeedsRole(_) => "Ask an administrator for the role.",
            Self::NotOwner => "Ask its owner, or an administrator.",
            Self::OwnersOnly => "Ask its owner.",
            Self::MachinesOnly => "Use the operation that is meant for people.",
            Self::PeopleOnly => "Log in as a person.",
            Self::AnotherMachine => "Use the credential of that machine.",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotKnown => f.write_str("The request does not say who makes it."),
            Self::OldCredential => f.write_str("The host was given a newer credential than this one."),
            Self::Revoked => f.write_str("This token was revoked."),
            Self::NeedsRole(role) => write!(f, "This takes the role `{role}`."),
            Self::NotOwner => f.write_str("You may see this and not change it."),
            Self::OwnersOnly => f.write_str("Only its owner may read this, because it holds secrets."),
            Self::MachinesOnly => f.write_str("Only machines report here."),
            Self::PeopleOnly => f.write_str("A token of a machine or an image is not good for this."),
            Self::AnotherMachine => f.write_str("This token is not that machine's."),
        }
    }
}
