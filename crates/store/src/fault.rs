//! Why a database does not work, as far as it says: people can fix most of it.

use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseFault {
    Full,
    ReadOnly,
    /// Another program holds what a write needs.
    Busy,
    /// Did not answer in time, or ended a transaction that took too long.
    Slow,
    /// No connection to the server.
    Away,
    /// The server takes neither the user nor the password, or not from here.
    Refused,
    /// The server has no database of that name.
    Missing,
    /// The server has no connection left.
    Crowded,
    /// The disk failed under a read or a write.
    Disk,
    /// The hub itself is stopping.
    Closed,
    Other,
}

impl DatabaseFault {
    /// What the database does, to be put after "The database".
    pub fn text(self) -> &'static str {
        match self {
            Self::Full => "has no room left on its disk",
            Self::ReadOnly => "is read-only",
            Self::Busy => "is held by another program",
            Self::Slow => "does not answer in time",
            Self::Away => "cannot be reached",
            Self::Refused => "does not let the hub's user in",
            Self::Missing => "does not exist on its server",
            Self::Crowded => "has no connection left for the hub",
            Self::Disk => "reports an error of its disk, which may be full or failing",
            Self::Closed => "is closed, because the hub stops",
            Self::Other => "is not available",
        }
    }

    /// What to do about it; the hub goes on by itself when it is done.
    pub fn fix(self) -> &'static str {
        match self {
            Self::Full => "Make room on that disk, then ask again.",
            Self::ReadOnly => "Make it writable, then ask again.",
            Self::Crowded => "Raise the server's limit of connections, then ask again.",
            Self::Disk => "Check that disk, then ask again.",
            Self::Refused => {
                "Set user and password as the server has them, and let it take connections from the hub."
            }
            Self::Missing => "Create it, or name the right one.",
            Self::Away => "Check that its server runs, and ask again in a moment.",
            Self::Busy | Self::Slow | Self::Closed | Self::Other => "Ask again in a moment.",
        }
    }

    pub(crate) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(cause) if cause.kind() == io::ErrorKind::TimedOut => Self::Slow,
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => Self::Away,
            sqlx::Error::PoolTimedOut => Self::Slow,
            sqlx::Error::PoolClosed => Self::Closed,
            sqlx::Error::Database(refusal) => refusal.code().map_or(Self::Other, |code| Self::coded(&code)),
            _ => Self::Other,
        }
    }

    /// PostgreSQL's codes have five characters, the first two of which are a class; SQLite's are numbers whose low byte
    /// tells.
    fn coded(code: &str) -> Self {
        if code.len() == 5 {
            return match (code, &code[..2]) {
                ("53100", _) => Self::Full,
                ("53300", _) => Self::Crowded,
                ("25006", _) => Self::ReadOnly,
                ("25P03" | "25P04" | "57014", _) => Self::Slow,
                ("55P03", _) | (_, "40") => Self::Busy,
                (_, "08" | "57") => Self::Away,
                (_, "28") => Self::Refused,
                (_, "3D") => Self::Missing,
                (_, "58") => Self::Disk,
                _ => Self::Other,
            };
        }
        match code.parse::<u32>().map(|code| code & 0xff) {
            Ok(13) => Self::Full,
            Ok(8) => Self::ReadOnly,
            Ok(5 | 6 | 15) => Self::Busy,
            Ok(10 | 14) => Self::Disk,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_known_by_the_code_of_either_database() {
        for (code, fault) in [
            ("13", DatabaseFault::Full),
            ("53100", DatabaseFault::Full),
            ("1032", DatabaseFault::ReadOnly),
            ("25006", DatabaseFault::ReadOnly),
            ("778", DatabaseFault::Disk),
            ("517", DatabaseFault::Busy),
            ("55P03", DatabaseFault::Busy),
            ("57P01", DatabaseFault::Away),
            ("28P01", DatabaseFault::Refused),
            ("3D000", DatabaseFault::Missing),
            ("25P03", DatabaseFault::Slow),
        ] {
            assert_eq!(DatabaseFault::coded(code), fault, "{code}");
        }
    }
}
