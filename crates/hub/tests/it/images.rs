//! Discovery images from a hub as it runs, and from a service beside it.

use crate::rest::PULL_SECRET;
use muster_hub::{Config, serve};
use muster_image::iso::Iso;
use muster_image::{Catalog, Depot, Images, Layout, OsImage, RemoteHub, Settings};
use serde_json::{Value, json};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A hub with one base image, until this is dropped.
struct House {
    url: String,
    iso: String,
    http: reqwest::Client,
    _stop: oneshot::Sender<()>,
    dir: tempfile::TempDir,
}

impl House {
    async fn start() -> House {
        let dir = tempfile::tempdir().unwrap();
        let iso = dir.path().join("base.iso");
        let packed = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../image/tests/fixtures/embed-areas-2023-07.x86_64.iso.xz"
        );
        let mut bytes = Vec::new();
        let packed = std::fs::File::open(packed).unwrap();
        lzma_rust2::XzReader::new(packed, true)
            .read_to_end(&mut bytes)
            .unwrap();
        std::fs::write(&iso, bytes).unwrap();
        let iso = iso.to_string_lossy().into_owned();
        let images = json!([{ "openshift_version": "4.20", "cpu_architecture": "x86_64", "url": iso, "version": "build-1" }]);
        let config = Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data_dir: dir.path().join("data"),
            os_images: Some(images.to_string()),
            ..Config::default()
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        tokio::spawn(async move {
            let until = async { drop(stopped.await) };
            serve::run(config, until, |address| tell.send(address).unwrap())
                .await
                .unwrap();
        });
        House {
            url: format!("http://{}", told.await.unwrap()),
            iso,
            http: reqwest::Client::new(),
            _stop: stop,
            dir,
        }
    }

    async fn infra_env(&self, wish: Value) -> Value {
        let mut body = json!({ "name": "lab", "pull_secret": PULL_SECRET, "openshift_version": "4.20" });
        body.as_object_mut()
            .unwrap()
            .extend(wish.as_object().unwrap().clone());
        let url = format!("{}{}/infra-envs", self.url, muster_contract::v2::BASE);
        let reply = self.http.post(url).json(&body).send().await.unwrap();
        assert_eq!(reply.status(), 201);
        reply.json().await.unwrap()
    }

    async fn get(&self, url: &str) -> (u16, Vec<u8>) {
        let reply = self.http.get(url).send().await.unwrap();
        (reply.status().as_u16(), reply.bytes().await.unwrap().to_vec())
    }
}

/// The configuration inside an image, and its kernel arguments.
fn inside(image: Vec<u8>) -> (Value, String) {
    let iso = Iso::open(Layout::of_bytes(image)).unwrap();
    let area = iso
        .read(iso.find("images/ignition.img").unwrap(), 1 << 22)
        .unwrap();
    let mut archive = Vec::new();
    flate2::read::GzDecoder::new(area.as_slice())
        .read_to_end(&mut archive)
        .unwrap();
    let (start, end) = (
        archive.iter().position(|byte| *byte == b'{').unwrap(),
        archive.iter().rposition(|byte| *byte == b'}').unwrap(),
    );
    let menu = iso
        .read(iso.find("EFI/fedora/grub.cfg").unwrap(), 1 << 20)
        .unwrap();
    (
        serde_json::from_slice(&archive[start..=end]).unwrap(),
        String::from_utf8(menu).unwrap(),
    )
}

#[tokio::test]
async fn the_link_of_an_infra_env_leads_to_its_image() {
    let house = House::start().await;
    let made = house
        .infra_env(json!({ "kernel_arguments": [{ "operation": "append", "value": "p=q" }] }))
        .await;
    let id = made["id"].as_str().unwrap();
    let link = made["download_url"].as_str().unwrap();
    assert!(link.starts_with(&house.url), "{link}");
    let (status, image) = house.get(link).await;
    assert_eq!(status, 200);
    let (config, menu) = inside(image.clone());
    assert!(config.to_string().contains(id));
    assert!(menu.contains("ignition.platform.id=metal p=q\n"));

    let short = format!("{}/i/{id}.iso", house.url);
    assert!(house.get(&short).await == (200, image));
    let (status, script) = house.get(&format!("{}/i/{id}.ipxe", house.url)).await;
    assert_eq!((status, script.starts_with(b"#!ipxe\n")), (200, true));
    let script = String::from_utf8(script).unwrap();
    for word in script.split_whitespace().filter(|word| word.contains("http://")) {
        let link = &word[word.find("http://").unwrap()..];
        assert_eq!(house.get(link).await.0, 200, "{link}");
    }
    // Everything else is still answered on such connections.
    assert_eq!(house.get(&format!("{}/health", house.url)).await.0, 200);
    let other = format!("{}/byid/{}/4.20/x86_64/full.iso", house.url, uuid::Uuid::new_v4());
    assert_eq!(house.get(&other).await.0, 404);
}

#[tokio::test]
async fn a_service_beside_the_hub_gives_the_same_image() {
    let house = House::start().await;
    let made = house
        .infra_env(
            json!({ "image_type": "minimal-iso", "proxy": { "http_proxy": "http://p.example.com:1" } }),
        )
        .await;
    let id = made["id"].as_str().unwrap();
    let link = made["download_url"].as_str().unwrap();
    let depot = Depot::open(&house.dir.path().join("depot"), 1 << 30).unwrap();
    let os = OsImage {
        openshift_version: "4.20".into(),
        cpu_architecture: "x86_64".into(),
        url: house.iso.clone(),
        version: "build-1".into(),
        sha256: None,
    };
    let settings = Settings {
        base_url: house.url.clone(),
        ..Settings::default()
    };
    let source = Arc::new(RemoteHub::new(&house.url));
    let images = Images::new(depot, Catalog { images: vec![os] }, source, settings);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let beside = format!("http://{}", listener.local_addr().unwrap());
    let router = muster_image::serve::router::alone(&images);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let same = link.replacen(&house.url, &beside, 1);
    let (status, image) = house.get(&same).await;
    assert_eq!(status, 200);
    assert!(house.get(link).await.1 == image);
    assert!(house.get(&format!("{beside}/i/{id}.iso")).await == (200, image));
    let missing = format!("{beside}/byid/{}/4.20/x86_64/full.iso", uuid::Uuid::new_v4());
    assert_eq!(house.get(&missing).await.0, 404);
}
