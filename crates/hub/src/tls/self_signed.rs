//! An authority of the hub's own, for a start without one: made once, kept beside the data, and used to sign the hub's
//! certificate, anew when its names change or its time runs out. Those who trust the authority notice nothing of that.

use super::pair::{Facts, Files, fingerprint};
use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// In the data directory.
const DIRECTORY: &str = "tls";
/// Images and installed hosts carry the authority: it outlives them.
const AUTHORITY_LASTS: SignedDuration = SignedDuration::from_hours(20 * 365 * 24);
/// Below what the strictest clients allow.
const CERTIFICATE_LASTS: SignedDuration = SignedDuration::from_hours(365 * 24);
/// So long before its end another one is made: a hub that starts only now and then shall not be too late.
const RENEWED_BEFORE: SignedDuration = SignedDuration::from_hours(60 * 24);
/// Clocks of machines that just started may be slow.
const SLOW_CLOCKS: SignedDuration = SignedDuration::from_hours(48);

/// The files of an authority and of what it signs.
#[derive(Debug, Clone)]
pub struct SelfSigned {
    directory: PathBuf,
    /// What the certificate is for.
    names: Vec<String>,
}

impl SelfSigned {
    pub fn new(data_dir: &Path, mut names: Vec<String>) -> Self {
        names.sort();
        names.dedup();
        Self {
            directory: data_dir.join(DIRECTORY),
            names,
        }
    }

    /// What clients have to trust.
    pub fn authority(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    fn authority_key(&self) -> PathBuf {
        self.directory.join("ca.key")
    }

    pub fn files(&self) -> Files {
        Files {
            cert: self.directory.join("hub.crt"),
            key: self.directory.join("hub.key"),
        }
    }

    pub fn fingerprint(&self) -> Result<String> {
        let path = self.authority();
        let authority = CertificateDer::from_pem_file(&path);
        let authority = authority.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(fingerprint(&authority))
    }

    /// Makes what is missing and what is due. An authority that is there stays: others trust it.
    pub fn ensure(&self, now: Timestamp) -> Result<()> {
        private_directory(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        let issuer = match std::fs::read_to_string(self.authority_key()) {
            Ok(key) => self.known(&key)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.found(now)?,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", self.authority_key().display()));
            }
        };
        if self.is_due(now) {
            self.sign(&issuer, now)?;
        }
        Ok(())
    }

    fn known(&self, key: &str) -> Result<Issuer<'static, KeyPair>> {
        let path = self.authority_key();
        let key =
            KeyPair::from_pem(key).with_context(|| format!("{} holds no key of ours", path.display()))?;
        let path = self.authority();
        anyhow::ensure!(
            path.exists(),
            "{} is gone, and its key is still there: put it back, or remove {} to begin anew",
            path.display(),
            self.directory.display()
        );
        Ok(Issuer::new(authority(&key), key))
    }

    /// The certificate first: an authority without its key is made anew, a key alone would keep the hub from starting.
    fn found(&self, now: Timestamp) -> Result<Issuer<'static, KeyPair>> {
        let key = KeyPair::generate().context("cannot make a key")?;
        let mut params = authority(&key);
        valid(&mut params, now, AUTHORITY_LASTS);
        let certificate = params
            .self_signed(&key)
            .context("cannot make an authority for the hub")?;
        put(&self.authority(), &certificate.pem(), 0o644)?;
        put(&self.authority_key(), &key.serialize_pem(), 0o600)?;
        Ok(Issuer::new(params, key))
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let files = self.files();
        let pair = files.read().and_then(|contents| files.pair(&contents));
        let Ok(pair) = pair else { return true };
        let Facts {
            mut names,
            not_before,
            not_after,
            fingerprint: _,
            is_authority: _,
        } = pair.facts;
        names.sort();
        names != self.names || now < not_before || now + RENEWED_BEFORE > not_after
    }

    fn sign(&self, issuer: &Issuer<'_, KeyPair>, now: Timestamp) -> Result<()> {
        let mut params = CertificateParams::new(self.names.clone())
            .with_context(|| format!("no certificate can be made for {}", self.names.join(", ")))?;
        params.distinguished_name = named("Muster hub");
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        valid(&mut params, now, CERTIFICATE_LASTS);
        let key = KeyPair::generate().context("cannot make a key")?;
        let certificate = params
            .signed_by(&key, issuer)
            .context("cannot sign the hub's certificate")?;
        let files = self.files();
        put(&files.key, &key.serialize_pem(), 0o600)?;
        put(&files.cert, &certificate.pem(), 0o644)
    }
}

/// All of an authority follows from its key, its times aside.
fn authority(key: &KeyPair) -> CertificateParams {
    let id = Sha256::digest(key.public_key_raw());
    let id: String = id.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let mut params = CertificateParams::default();
    // Hosts that know several hubs can tell them apart.
    params.distinguished_name = named(&format!("Muster hub authority {id}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut all = DistinguishedName::new();
    all.push(DnType::CommonName, name);
    all
}

/// In whole days: certificates need nothing finer.
fn valid(params: &mut CertificateParams, now: Timestamp, lasts: SignedDuration) {
    let day = |at: Timestamp| {
        let date = at.to_zoned(TimeZone::UTC).date();
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        date_time_ymd(date.year().into(), month, day)
    };
    params.not_before = day(now - SLOW_CLOCKS);
    params.not_after = day(now + lasts);
}

/// Written beside it and moved there: whoever reads it finds the old one or the new one.
fn put(path: &Path, text: &str, mode: u32) -> Result<()> {
    let beside = path.with_extension("new");
    let write = || {
        let mut file: File = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(&beside)?;
        // One left over from a crash keeps the mode it had.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

fn private_directory(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn made(directory: &Path, names: &[&str], now: Timestamp) -> (SelfSigned, Facts) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let own = SelfSigned::new(directory, names);
        own.ensure(now).unwrap();
        let files = own.files();
        let pair = files.pair(&files.read().unwrap()).unwrap();
        (own, pair.facts)
    }

    #[test]
    fn an_authority_is_made_once_and_a_certificate_whenever_names_or_time_ask_for_it() {
        let home = tempfile::tempdir().unwrap();
        let (own, first) = made(home.path(), &["hub.example.com", "10.0.0.5", "::1"], NOON);
        assert_eq!(first.names, ["10.0.0.5", "::1", "hub.example.com"]);
        assert!(first.is_valid_at(NOON) && !first.is_authority);
        let authority = own.fingerprint().unwrap();
        let again = |names: &[&str], now| {
            let (own, facts) = made(home.path(), names, now);
            assert_eq!(own.fingerprint().unwrap(), authority, "hosts trust it");
            facts
        };
        let later = NOON + SignedDuration::from_hours(100 * 24);
        assert_eq!(again(&["::1", "hub.example.com", "10.0.0.5"], later), first);
        let renamed = again(&["hub.example.com"], later);
        assert_eq!(renamed.names, ["hub.example.com"]);
        let much_later = later + SignedDuration::from_hours(310 * 24);
        let renewed = again(&["hub.example.com"], much_later);
        assert!(renewed.not_after > renamed.not_after);
        assert_ne!(renewed.fingerprint, renamed.fingerprint);
    }

    #[test]
    fn keys_are_for_nobody_else() {
        let home = tempfile::tempdir().unwrap();
        let (own, _) = made(home.path(), &["hub"], NOON);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home.path().join(DIRECTORY)), 0o700);
        assert_eq!(mode(&own.authority_key()), 0o600);
        assert_eq!(mode(&own.files().key), 0o600);
    }

    #[test]
    fn an_authority_that_somebody_took_away_is_not_replaced_behind_the_backs_of_those_who_trust_it() {
        let home = tempfile::tempdir().unwrap();
        let (own, _) = made(home.path(), &["hub"], NOON);
        std::fs::remove_file(own.authority()).unwrap();
        let told = own.ensure(NOON).unwrap_err().to_string();
        assert!(told.contains("ca.crt") && told.contains("begin anew"), "{told}");
    }
}
