//! A hub with TLS that runs until it is dropped, an authority that signs certificates for it, and clients.

use crate::rest::PULL_SECRET;
use muster_contract::Trust;
use muster_contract::client::{HubClient, http};
use muster_hub::config::TlsChoice;
use muster_hub::serve::{self, Ready};
use muster_hub::tls::Tls;
use muster_hub::tls::pair::Files;
use muster_hub::{Config, tls};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use serde_json::{Value, json};
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// For what happens soon or not at all.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct House {
    pub url: String,
    pub address: SocketAddr,
    pub plain: Option<SocketAddr>,
    pub tls: Tls,
    pub trust: Trust,
    pub http: reqwest::Client,
    pub dir: tempfile::TempDir,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl House {
    pub async fn start(change: impl FnOnce(&mut Config)) -> House {
        House::start_in(tempfile::tempdir().unwrap(), None, change).await
    }

    /// With a certificate in files.
    pub async fn with_files(authority: &Authority) -> House {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        authority.put(&files, &["127.0.0.1"]);
        let trust = Trust::from_pem(authority.pem().as_bytes(), "ca.pem").unwrap();
        House::start_in(dir, Some(trust), |config| config.tls = TlsChoice::Files(files)).await
    }

    async fn start_in(
        dir: tempfile::TempDir,
        trust: Option<Trust>,
        change: impl FnOnce(&mut Config),
    ) -> House {
        let mut config = Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data_dir: dir.path().join("data"),
            os_images: Some(os_images(&dir)),
            ..Config::default()
        };
        change(&mut config);
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let task = tokio::spawn(async move {
            let until = async { drop(stopped.await) };
            serve::run(config, until, |ready| tell.send(ready).unwrap())
                .await
                .unwrap();
        });
        let Ready {
            address,
            url,
            plain,
            tls,
        } = told.await.unwrap();
        let authority = dir.path().join("data/tls/ca.crt");
        let trust = trust.unwrap_or_else(|| Trust::from_file(&authority).unwrap());
        House {
            url,
            address,
            plain,
            tls: tls.unwrap(),
            http: http(&trust, PATIENCE).unwrap(),
            trust,
            dir,
            stop,
            task,
        }
    }

    pub async fn restarted(self, change: impl FnOnce(&mut Config)) -> House {
        drop(self.stop);
        self.task.await.unwrap();
        House::start_in(self.dir, None, change).await
    }

    pub fn authority(&self) -> PathBuf {
        self.dir.path().join("data/tls/ca.crt")
    }

    pub fn files(&self) -> Files {
        files(&self.dir)
    }

    pub fn client(&self) -> HubClient {
        HubClient::trusting(&self.url, &self.trust).unwrap()
    }

    pub async fn get(&self, path: &str) -> (u16, Vec<u8>) {
        ask(&self.http, &format!("{}{path}", self.url), None).await
    }

    pub async fn infra_env(&self, wish: Value) -> Value {
        let mut body = json!({ "name": "lab", "pull_secret": PULL_SECRET, "openshift_version": "4.20" });
        body.as_object_mut()
            .unwrap()
            .extend(wish.as_object().unwrap().clone());
        let url = format!("{}{}/infra-envs", self.url, muster_contract::v2::BASE);
        let reply = self.http.post(url).json(&body).send().await.unwrap();
        assert_eq!(reply.status(), 201);
        reply.json().await.unwrap()
    }

    /// A connection of its own, and the fingerprint of what it was shown.
    pub async fn connect(&self) -> (TlsStream<TcpStream>, String) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = self.address.ip().into();
        let connector = TlsConnector::from(Arc::new(self.trust.config()));
        let stream = connector.connect(name, stream).await.unwrap();
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
        (stream, tls::pair::fingerprint(&shown))
    }
}

fn files(dir: &tempfile::TempDir) -> Files {
    Files {
        cert: dir.path().join("hub.crt"),
        key: dir.path().join("hub.key"),
    }
}

/// One base image, larger than what is copied at a time.
fn os_images(dir: &tempfile::TempDir) -> String {
    let iso = dir.path().join("base.iso");
    if !iso.exists() {
        let packed = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../image/tests/fixtures/embed-areas-2023-07.x86_64.iso.xz"
        );
        let packed = std::fs::File::open(packed).unwrap();
        let mut bytes = Vec::new();
        lzma_rust2::XzReader::new(packed, true)
            .read_to_end(&mut bytes)
            .unwrap();
        bytes.extend((0..16 << 20).map(|n: u32| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]));
        std::fs::write(&iso, bytes).unwrap();
    }
    json!([{ "openshift_version": "4.20", "cpu_architecture": "x86_64", "url": iso, "version": "build-1" }])
        .to_string()
}

pub async fn ask(http: &reqwest::Client, url: &str, range: Option<&str>) -> (u16, Vec<u8>) {
    let request = http.get(url);
    let request = match range {
        Some(range) => request.header("Range", range),
        None => request,
    };
    let reply = request.send().await.unwrap();
    (reply.status().as_u16(), reply.bytes().await.unwrap().to_vec())
}

/// Signs what it is asked to.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate and its key.
    pub fn issue(&self, names: &[&str]) -> (String, String) {
        self.issue_until(names, 4000)
    }

    /// One that ends with the beginning of that year.
    pub fn issue_until(&self, names: &[&str], year: i32) -> (String, String) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::ExplicitNoCa;
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        (cert.pem(), key.serialize_pem())
    }

    pub fn put(&self, files: &Files, names: &[&str]) {
        let (cert, key) = self.issue(names);
        std::fs::write(&files.cert, cert).unwrap();
        std::fs::write(&files.key, key).unwrap();
    }
}

/// Text in the form of PEM, whatever is in it.
pub fn pem(label: &str, content: &[u8]) -> String {
    use base64::Engine;
    let body = base64::engine::general_purpose::STANDARD.encode(content);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}
