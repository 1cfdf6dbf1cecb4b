//! Asks registries in their own language: manifests and layers, with the tokens they want to see.

use super::manifest::{ACCEPT, Manifest, architecture};
use super::name::Name;
use super::places::Place;
use super::{CREDENTIALS, rounded};
use crate::http::{Http, Trust, client};
use crate::steps::Context;
use muster_contract::secret::Secret;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::Read;
use std::time::{Duration, Instant};
use ureq::Body;
use ureq::http::Response;

/// Registries refuse larger ones.
const LARGEST_MANIFEST: u64 = 4 << 20;
/// So much of a layer tells the rate, if it comes in this time.
const SAMPLE_BYTES: u64 = 16 << 20;
const SAMPLE_TIME: Duration = Duration::from_secs(20);
/// Less tells how far the registry is, and not how fast.
const LEAST_SAMPLE: u64 = 64 << 10;

/// Why an image is not available.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    MayPass(String),
    #[error("{0}")]
    Final(String),
}

impl From<ureq::Error> for Failure {
    fn from(error: ureq::Error) -> Self {
        Self::MayPass(error.to_string())
    }
}

fn refused(status: u16, what: &str) -> Failure {
    let text = format!("the registry answers {what} with {status}");
    if status >= 500 || matches!(status, 408 | 429) {
        Failure::MayPass(text)
    } else {
        Failure::Final(text)
    }
}

/// A pull secret.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Credentials {
    auths: HashMap<String, Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    /// `user:password` in base64, just as HTTP wants it.
    auth: Secret,
}

impl Credentials {
    /// The entry that names most of the repository's path.
    fn find(&self, name: &Name) -> Option<&Secret> {
        let path = format!("{}/{}", name.registry, name.repository);
        let is_for = |key: &str| {
            path.strip_prefix(key)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let plain = |key: &String| {
            let key = key.trim_start_matches("https://").trim_start_matches("http://");
            let key = key
                .trim_end_matches('/')
                .trim_end_matches("/v1")
                .trim_end_matches("/v2");
            key.strip_prefix("index.")
                .filter(|rest| *rest == "docker.io")
                .unwrap_or(key)
                .to_owned()
        };
        let fitting = self.auths.iter().map(|(key, entry)| (plain(key), entry));
        let best = fitting
            .filter(|(key, _)| is_for(key))
            .max_by_key(|(key, _)| key.len());
        best.map(|(_, entry)| &entry.auth)
            .filter(|auth| !auth.0.is_empty())
    }
}

/// What a registry wants to see: the answer's `WWW-Authenticate`.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer {
        realm: String,
        service: String,
        scope: String,
    },
}

fn challenge(header: &str) -> Option<Challenge> {
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut scope) = <(String, String, String)>::default();
    let mut rest = rest;
    // Values stand in quotes, and commas may stand in values.
    while let Some((key, more)) = rest.split_once("=\"") {
        let (value, more) = more.split_once('"')?;
        match key.trim_matches([',', ' ']) {
            "realm" => realm = value.to_owned(),
            "service" => service = value.to_owned(),
            "scope" => scope = value.to_owned(),
            _ => {}
        }
        rest = more;
    }
    (!realm.is_empty()).then_some(Challenge::Bearer {
        realm,
        service,
        scope,
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Token {
    token: Secret,
    access_token: Secret,
}

/// Registries, until the time of the step is over.
pub struct Registry {
    strict: Http,
    /// For those that the config calls insecure.
    lax: Http,
    credentials: Credentials,
    until: Instant,
}

/// One registry, one repository, and what it wants to see.
struct Session<'a> {
    registry: &'a Registry,
    http: &'a Http,
    scheme: &'static str,
    name: Name,
    authorization: Option<Secret>,
}

impl Registry {
    pub fn new(context: &Context, until: Instant) -> anyhow::Result<Self> {
        let trust = Trust::of(&context.settings);
        // Whether the hub's certificate is checked says nothing of registries.
        let strict = client(&Trust {
            insecure: false,
            ..trust.clone()
        })?;
        let lax = client(&Trust {
            insecure: true,
            ..trust
        })?;
        let text = context.machine.text(CREDENTIALS);
        let credentials = serde_json::from_str(&text).unwrap_or_default();
        Ok(Self {
            strict,
            lax,
            credentials,
            until,
        })
    }

    /// The size of an image, and how fast it comes in MB/s.
    pub fn pull(&self, place: &Place) -> Result<(u64, f64), Failure> {
        let first = self.pull_by("https", place);
        match first {
            Err(_) if place.is_insecure => self.pull_by("http", place),
            other => other,
        }
    }

    fn pull_by(&self, scheme: &'static str, place: &Place) -> Result<(u64, f64), Failure> {
        let mut session = Session {
            registry: self,
            http: if place.is_insecure {
                &self.lax
            } else {
                &self.strict
            },
            scheme,
            name: Name::parse(&place.name),
            authorization: None,
        };
        let mut manifest = session.manifest(&session.name.reference.clone())?;
        if manifest.is_list() {
            let here = manifest.here().map(str::to_owned);
            let none = || Failure::Final(format!("there is none for {}", architecture()));
            manifest = session.manifest(&here.ok_or_else(none)?)?;
        }
        let rate = match manifest.largest() {
            Some(layer) => session.rate(&layer.digest)?,
            None => None,
        };
        // A size without a rate would be taken for an image that never comes.
        Ok(rate.map_or((0, 0.0), |rate| (manifest.size(), rate)))
    }

    fn left(&self) -> Result<Duration, Failure> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::Final("the time is over".into()));
        }
        Ok(left)
    }
}

impl Session<'_> {
    fn manifest(&mut self, reference: &str) -> Result<Manifest, Failure> {
        let mut answer = self.get("manifests", reference)?;
        let body = answer
            .body_mut()
            .with_config()
            .limit(LARGEST_MANIFEST)
            .read_to_vec()?;
        if let Some(wanted) = reference.strip_prefix("sha256:") {
            let sum: String = Sha256::digest(&body)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            if sum != wanted {
                return Err(Failure::Final(format!("the manifest {reference} is damaged")));
            }
        }
        serde_json::from_slice(&body)
            .map_err(|error| Failure::Final(format!("the manifest {reference} cannot be read: {error}")))
    }

    /// Reads the beginning of a layer; MB/s.
    fn rate(&mut self, digest: &str) -> Result<Option<f64>, Failure> {
        let start = Instant::now();
        let answer = self.get("blobs", digest)?;
        let mut reader = answer.into_body().into_reader();
        let mut buffer = vec![0; 64 * 1024];
        let mut bytes = 0;
        while bytes < SAMPLE_BYTES && start.elapsed() < SAMPLE_TIME {
            let length = reader
                .read(&mut buffer)
                .map_err(|error| Failure::MayPass(error.to_string()))?;
            if length == 0 {
                break;
            }
            bytes += length as u64;
        }
        let seconds = start.elapsed().as_secs_f64().max(0.000_001);
        Ok((bytes >= LEAST_SAMPLE).then(|| rounded(bytes as f64 / seconds / 1_000_000.0)))
    }

    /// With the token the registry wants, if it wants one.
    fn get(&mut self, kind: &str, reference: &str) -> Result<Response<Body>, Failure> {
        let url = format!(
            "{}://{}/v2/{}/{kind}/{reference}",
            self.scheme,
            self.name.host(),
            self.name.repository
        );
        let mut answer = self.once(&url)?;
        if answer.status().as_u16() == 401 {
            let header = answer
                .headers()
                .get("www-authenticate")
                .and_then(|value| value.to_str().ok());
            let wanted = header.and_then(challenge);
            let wanted =
                wanted.ok_or_else(|| Failure::Final("it wants credentials of an unknown kind".into()))?;
            self.authorization = Some(self.authorize(wanted)?);
            answer = self.once(&url)?;
        }
        match answer.status().as_u16() {
            200..=299 => Ok(answer),
            status => Err(refused(status, &format!("{kind}/{reference}"))),
        }
    }

    fn once(&self, url: &str) -> Result<Response<Body>, Failure> {
        let mut request = self.http.get(url).header("Accept", ACCEPT);
        if let Some(value) = &self.authorization {
            request = request.header("Authorization", &value.0);
        }
        Ok(request
            .config()
            .timeout_global(Some(self.registry.left()?))
            .build()
            .call()?)
    }

    fn authorize(&self, wanted: Challenge) -> Result<Secret, Failure> {
        let credentials = self.registry.credentials.find(&self.name);
        let basic = credentials.map(|auth| Secret::from(format!("Basic {}", auth.0)));
        let (realm, service, scope) = match wanted {
            Challenge::Basic => {
                let none =
                    || Failure::Final("it wants credentials, and the pull secret has none for it".into());
                return basic.ok_or_else(none);
            }
            Challenge::Bearer {
                realm,
                service,
                scope,
            } => (realm, service, scope),
        };
        let scope = if scope.is_empty() {
            format!("repository:{}:pull", self.name.repository)
        } else {
            scope
        };
        let mut request = self
            .http
            .get(&realm)
            .query("service", &service)
            .query("scope", &scope);
        if let Some(basic) = &basic {
            request = request.header("Authorization", &basic.0);
        }
        let mut answer = request
            .config()
            .timeout_global(Some(self.registry.left()?))
            .build()
            .call()?;
        let status = answer.status();
        if !status.is_success() {
            return Err(refused(status.as_u16(), "the request for a token"));
        }
        let body = answer
            .body_mut()
            .with_config()
            .limit(LARGEST_MANIFEST)
            .read_to_vec()?;
        let token: Token = serde_json::from_slice(&body)
            .map_err(|error| Failure::Final(format!("cannot read its token: {error}")))?;
        let token = if token.token.0.is_empty() {
            token.access_token
        } else {
            token.token
        };
        Ok(Secret::from(format!("Bearer {}", token.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let header = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push""#;
        assert_eq!(
            challenge(header),
            Some(Challenge::Bearer {
                realm: "https://auth.example/token".into(),
                service: "registry.example".into(),
                scope: "repository:a/b:pull,push".into(),
            })
        );
        assert_eq!(challenge("Basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(challenge("Bearer"), None);
        assert_eq!(challenge("Negotiate"), None);
    }

    #[test]
    fn the_most_exact_credentials_are_taken() {
        let text = r#"{"auths":{"quay.example":{"auth":"QQ=="},"quay.example/org":{"auth":"Qg=="},
            "https://index.docker.io/v1/":{"auth":"Qw=="},"empty.example":{"auth":""}}}"#;
        let all: Credentials = serde_json::from_str(text).unwrap();
        let found = |image: &str| all.find(&Name::parse(image)).map(|auth| auth.0.clone());
        assert_eq!(found("quay.example/org/app:1").as_deref(), Some("Qg=="));
        assert_eq!(found("quay.example/organ/app:1").as_deref(), Some("QQ=="));
        assert_eq!(found("busybox").as_deref(), Some("Qw=="));
        assert_eq!(found("empty.example/a"), None);
        assert_eq!(found("other.example/a"), None);
    }
}
