//! From the claims of an issuer to a user, an organisation and roles: every issuer has its own names for them.

use crate::bad_token::BadToken;
use crate::claims::checked_name;
use muster_vocabulary::AccessRole;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Directories put people into hundreds of groups; nobody is in more.
const MOST_VALUES: usize = 1024;
const LONGEST_PATH: usize = 256;
const DEEPEST_PATH: usize = 8;

/// Where a claim is: names with dots between them (`realm_access.roles`), or a JSON pointer for names that have dots
/// themselves (`/https:~1~1example.com~1roles`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimPath(Vec<String>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a claim is named like `realm_access.roles`, or as a JSON pointer like `/https:~1~1example.com~1roles`"
)]
pub struct BadClaimPath;

impl FromStr for ClaimPath {
    type Err = BadClaimPath;

    fn from_str(text: &str) -> Result<Self, BadClaimPath> {
        let names: Option<Vec<String>> = match text.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(unescaped).collect(),
            None => Some(text.split('.').map(str::to_owned).collect()),
        };
        let fits = |names: &Vec<String>| {
            names.len() <= DEEPEST_PATH
                && text.len() <= LONGEST_PATH
                && names.iter().all(|name| !name.is_empty())
        };
        names.filter(fits).map(Self).ok_or(BadClaimPath)
    }
}

/// As in RFC 6901: `~1` is a slash, `~0` is a tilde, and nothing else follows a tilde.
fn unescaped(name: &str) -> Option<String> {
    let mut pieces = name.split('~');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push(match piece.chars().next() {
            Some('0') => '~',
            Some('1') => '/',
            Some(_) | None => return None,
        });
        out.push_str(&piece[1..]);
    }
    Some(out)
}

impl fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self
            .0
            .iter()
            .all(|name| !name.contains('.') && !name.starts_with('/'))
        {
            return f.write_str(&self.0.join("."));
        }
        let escaped = self
            .0
            .iter()
            .map(|name| name.replace('~', "~0").replace('/', "~1"));
        escaped.into_iter().try_for_each(|name| write!(f, "/{name}"))
    }
}

impl ClaimPath {
    #[cfg(test)]
    pub(super) fn from_names(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn find<'a>(&self, claims: &'a Map<String, Value>) -> Option<&'a Value> {
        let (first, rest) = self.0.split_first()?;
        rest.iter()
            .try_fold(claims.get(first)?, |value, name| value.get(name))
    }
}

/// How an issuer says who somebody is.
#[derive(Debug, Clone)]
pub struct Mapping {
    pub user: ClaimPath,
    pub org: Option<ClaimPath>,
    pub roles: Option<ClaimPath>,
    /// What the issuer calls our roles. Its other roles and groups mean nothing here.
    pub names: BTreeMap<String, AccessRole>,
    /// What everybody may who has a token of the issuer.
    pub everybody: BTreeSet<AccessRole>,
}

impl Default for Mapping {
    /// The claims of most issuers, and our own words for roles.
    fn default() -> Self {
        let path = |name: &str| ClaimPath(vec![name.to_owned()]);
        Self {
            user: path("preferred_username"),
            org: Some(path("org")),
            roles: Some(path("roles")),
            names: AccessRole::ALL
                .iter()
                .map(|role| (role.word().to_owned(), *role))
                .collect(),
            everybody: BTreeSet::new(),
        }
    }
}

/// Who somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    pub org: String,
    pub roles: BTreeSet<AccessRole>,
}

impl Mapping {
    pub fn identity(&self, claims: &Map<String, Value>) -> Result<Identity, BadToken> {
        let user = one(&self.user, claims)?;
        let org = self.org.as_ref().map_or(Ok(None), |path| one(path, claims))?;
        Ok(Identity {
            user: user.ok_or_else(|| BadToken::claim(&self.user.to_string(), "is not there"))?,
            org: org.unwrap_or_default(),
            roles: self.roles(claims)?,
        })
    }

    fn roles(&self, claims: &Map<String, Value>) -> Result<BTreeSet<AccessRole>, BadToken> {
        let Some(path) = &self.roles else {
            return Ok(self.everybody.clone());
        };
        let words = words(path, claims)?;
        let known = words.into_iter().filter_map(|word| self.names.get(word).copied());
        Ok(self.everybody.iter().copied().chain(known).collect())
    }
}

/// A name: a text, or a list with one text. `None` when there is none, or an empty one.
fn one(path: &ClaimPath, claims: &Map<String, Value>) -> Result<Option<String>, BadToken> {
    let wrong = |why| BadToken::claim(&path.to_string(), why);
    let name = match path.find(claims) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(name)) => name,
        Some(Value::Array(list)) => match list.as_slice() {
            [] => return Ok(None),
            [Value::String(name)] => name,
            [_] => return Err(wrong("is neither text nor list of texts")),
            [..] => return Err(wrong("names several where one is wanted")),
        },
        Some(_) => return Err(wrong("is neither text nor list of texts")),
    };
    checked_name(name).map_err(wrong)?;
    Ok(Some(name.clone()).filter(|name| !name.is_empty()))
}

/// A list of words, or a text with spaces between them.
fn words<'a>(path: &ClaimPath, claims: &'a Map<String, Value>) -> Result<Vec<&'a str>, BadToken> {
    let wrong = |why| BadToken::claim(&path.to_string(), why);
    let words: Option<Vec<&str>> = match path.find(claims) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(text)) => Some(text.split_whitespace().take(MOST_VALUES + 1).collect()),
        Some(Value::Array(list)) => list.iter().take(MOST_VALUES + 1).map(Value::as_str).collect(),
        Some(_) => None,
    };
    let words = words.ok_or_else(|| wrong("is neither text nor list of texts"))?;
    match words.len() {
        ..=MOST_VALUES => Ok(words),
        _ => Err(wrong("holds more values than are looked at")),
    }
}
