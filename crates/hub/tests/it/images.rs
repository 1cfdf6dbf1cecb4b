//! Discovery images from a hub as it runs, and from a service beside it.

use crate::rest::PULL_SECRET;
use muster_contract::Trust;
use muster_contract::client::http;
use muster_hub::{Config, serve};
use muster_image::iso::Iso;
use muster_image::{Catalog, Depot, Images, Layout, OsImage, RemoteHub, Settings};
use serde_json::{Value, json};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A hub with one base image, until this is dropped.
struct House {
    url: String,
    iso: String,
    http: reqwest::Client,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
    dir: tempfile::TempDir,
}

impl House {
    async fn start() -> House {
        House::start_in(tempfile::tempdir().unwrap(), 0, None).await
    }

    /// On what an earlier one left in this directory.
    async fn start_in(dir: tempfile::TempDir, port: u16, sha256: Option<&str>) -> House {
        House::start_with(dir, port, sha256, None).await
    }

    async fn start_with(
        dir: tempfile::TempDir,
        port: u16,
        sha256: Option<&str>,
        image_service_url: Option<String>,
    ) -> House {
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
        // Larger than all buffers between hub and client, so that a slow client really is behind.
        bytes.extend((0..32 << 20).map(|n: u32| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]));
        if !iso.exists() {
            std::fs::write(&iso, bytes).unwrap();
        }
        let iso = iso.to_string_lossy().into_owned();
        let images = json!([{ "openshift_version": "4.20", "cpu_architecture": "x86_64", "url": iso,
            "version": "build-1", "sha256": sha256 }]);
        let config = Config {
            listen: SocketAddr::from(([127, 0, 0, 1], port)),
            data_dir: dir.path().join("data"),
            os_images: Some(images.to_string()),
            image_service_url,
            ..Config::default()
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let task = tokio::spawn(async move {
            let until = async { drop(stopped.await) };
            serve::run(config, until, |ready| tell.send(ready.address).unwrap())
                .await
                .unwrap();
        });
        House {
            url: format!("http://{}", told.await.unwrap()),
            iso,
            http: http(&Trust::default(), Duration::from_secs(60)).unwrap(),
            stop,
            task,
            dir,
        }
    }

    /// Stopped, and started again on the same address.
    async fn restarted(self) -> House {
        let port = self.url.rsplit(':').next().unwrap().parse().unwrap();
        drop(self.stop);
        self.task.await.unwrap();
        House::start_in(self.dir, port, None).await
    }

    async fn patch(&self, infra_env: &Value, wish: Value) {
        let id = infra_env["id"].as_str().unwrap();
        let url = format!("{}{}/infra-envs/{id}", self.url, muster_contract::v2::BASE);
        let reply = self.http.patch(url).json(&wish).send().await.unwrap();
        let status = reply.status();
        assert_eq!(status, 201, "{}", reply.text().await.unwrap());
    }

    async fn range(&self, url: &str, range: &str, if_range: &str) -> reqwest::Response {
        let request = self.http.get(url).header("Range", range);
        let request = match if_range {
            "" => request,
            etag => request.header("If-Range", etag),
        };
        request.send().await.unwrap()
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

/// As the operator reads them.
struct Links {
    iso: String,
    initrd: String,
    changed: String,
}

impl House {
    async fn links(&self, infra_env: &Value) -> Links {
        let id = infra_env["id"].as_str().unwrap();
        let (status, body) = self
            .get(&format!("{}/api/muster/v1/infra-envs/{id}/links", self.url))
            .await;
        assert_eq!(status, 200);
        let body: Value = serde_json::from_slice(&body).unwrap();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        Links {
            iso: text("iso"),
            initrd: text("initrd"),
            changed: text("image_changed_at"),
        }
    }
}

#[tokio::test]
async fn the_links_of_v1_change_with_what_is_in_the_image_and_older_ones_lead_to_the_image_of_now() {
    let house = House::start().await;
    let made = house.infra_env(json!({})).await;
    let first = house.links(&made).await;
    let plain = made["download_url"].as_str().unwrap();
    assert!(
        first.iso.ends_with("/full.iso") && first.iso.len() <= plain.len() + 11,
        "{}",
        first.iso
    );
    let mac = [json!({ "mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0" })];
    let network = |comment: &str, address: &str| {
        let yaml = format!(
            "{comment}interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    \
             address:\n    - ip: {address}\n      prefix-length: 24\n"
        );
        json!({ "static_network_config": [{ "network_yaml": yaml, "mac_interface_map": mac }] })
    };
    let file = r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/etc/new"}]}}"#;
    let mut seen = vec![first.iso.clone()];
    for change in [
        network("", "192.0.2.7"),
        network("", "192.0.2.8"),
        json!({ "proxy": { "http_proxy": "http://p.example.com:1" } }),
        json!({ "ssh_authorized_key":
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK5fZ7RM4rPRmz3yCqBRUGGcbgyWYFXr8nYrVvYyB7Ck me" }),
        json!({ "ignition_config_override": file }),
        json!({ "kernel_arguments": [{ "operation": "append", "value": "p=q" }] }),
        json!({ "network_discovery_delay_seconds": 7 }),
        json!({ "additional_ntp_sources": "time.example.com" }),
        json!({ "pull_secret": PULL_SECRET.replace("registry", "another") }),
    ] {
        house.patch(&made, change.clone()).await;
        let links = house.links(&made).await;
        assert!(!seen.contains(&links.iso), "{change}: {}", links.iso);
        assert!(links.changed > first.changed, "{change}");
        seen.push(links.iso);
    }
    let last = house.links(&made).await;
    assert_ne!(last.initrd, first.initrd);
    // Nothing of this is in the image, or it is in it as it was.
    for same in [
        json!({ "ignition_config_override": file }),
        network("# Rack 7\n", "192.0.2.8"),
    ] {
        house.patch(&made, same.clone()).await;
        let links = house.links(&made).await;
        assert_eq!((&links.iso, &links.changed), (&last.iso, &last.changed), "{same}");
    }
    let id = made["id"].as_str().unwrap();
    let key = format!(
        "{}{}/infra-envs/{id}/regenerate-signing-key",
        house.url,
        muster_contract::v2::BASE
    );
    assert_eq!(house.http.post(key).send().await.unwrap().status(), 204);
    let house = house.restarted().await;
    let links = house.links(&made).await;
    assert_eq!(
        (links.iso, links.changed),
        (last.iso.clone(), last.changed.clone()),
        "whoever restarts"
    );

    let images = service(&house);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let beside = format!("http://{}", listener.local_addr().unwrap());
    let router = muster_image::serve::router::alone(&images);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let image = house.get(plain).await.1;
    assert!(inside(image.clone()).0.to_string().contains("/etc/new"));
    let elsewhere = last.iso.replacen(&house.url, &beside, 1);
    for address in [&first.iso, &last.iso, &elsewhere] {
        assert!(house.get(address).await == (200, image.clone()), "{address}");
    }
    assert!(house.get(&first.initrd).await == house.get(&last.initrd).await);
    assert_eq!(house.get(&last.initrd).await.0, 200);
    // The image of REST v2 has the address that it always had.
    let (_, view) = house
        .get(&format!(
            "{}{}/infra-envs/{id}",
            house.url,
            muster_contract::v2::BASE
        ))
        .await;
    let view: Value = serde_json::from_slice(&view).unwrap();
    assert_eq!(view["download_url"], made["download_url"]);
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
    let images = service(&house);
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

#[tokio::test]
async fn a_bmc_that_reads_virtual_media_is_shown_as_its_host() {
    let house = House::start().await;
    let made = house.infra_env(json!({})).await;
    house
        .range(made["download_url"].as_str().unwrap(), "bytes=0-4095", "")
        .await;
    let id = house.host(&made, "worker-8", "192.0.2.7/24", "127.0.0.1").await;
    let told = house.downloads(&made).await;
    assert_eq!(told["downloads"][0]["host_name"], "worker-8", "{told}");
    assert_eq!(told["downloads"][0]["host_id"], id.to_string());
}

#[tokio::test]
async fn what_a_service_beside_the_hub_has_sent_is_shown_by_the_hub() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let beside = format!("http://{}", listener.local_addr().unwrap());
    let house = House::start_with(tempfile::tempdir().unwrap(), 0, None, Some(beside.clone())).await;
    let made = house.infra_env(json!({})).await;
    let link = made["download_url"].as_str().unwrap();
    assert!(link.starts_with(&beside), "{link}");
    let images = service(&house);
    let router = muster_image::serve::router::alone(&images);
    tokio::spawn(async move { axum::serve(listener, router).await });
    house.range(link, "bytes=0-4095", "").await.bytes().await.unwrap();
    let told = house.downloads(&made).await;
    assert_eq!(told["downloads"][0]["read_bytes"], 4096, "{told}");
    assert_eq!(told["base_image"]["state"], "ready");
    // Those who watch it see the same as from a hub.
    let (status, metrics) = house.get(&format!("{beside}/metrics")).await;
    let metrics = String::from_utf8(metrics).unwrap();
    assert_eq!(status, 200, "{metrics}");
    for line in [
        "muster_image_downloads 0",
        "muster_image_downloads_waiting 0",
        "muster_image_bytes_total 4096",
        "muster_image_cache_misses_total 1",
        "muster_image_cache_hits_total 0",
        "muster_base_images_disk_bytes 0",
        "muster_base_images_disk_limit_bytes 1073741824",
        "muster_base_image_state{version=\"build-1\",architecture=\"x86_64\",state=\"ready\"} 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} is not in\n{metrics}"
        );
    }
}

/// An image service of its own for the images of this hub.
fn service(house: &House) -> Images {
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
    Images::new(depot, Catalog { images: vec![os] }, source, settings)
}

fn etag(reply: &reqwest::Response) -> String {
    reply.headers()["etag"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_change_in_the_middle_of_a_download_is_never_mixed_into_it() {
    let house = House::start().await;
    let made = house.infra_env(json!({})).await;
    let link = made["download_url"].as_str().unwrap();
    let old = house.get(link).await.1;
    let mut slow = house.http.get(link).send().await.unwrap();
    let old_etag = etag(&slow);
    let mut body = slow.chunk().await.unwrap().unwrap().to_vec();
    assert!(body.len() < old.len());
    house.patch(&made, json!({ "ignition_config_override": r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/etc/new"}]}}"# })).await;
    let new = house.http.get(link).send().await.unwrap();
    assert_ne!(etag(&new), old_etag);
    let new_etag = etag(&new);
    let new = new.bytes().await.unwrap();
    assert!(new != old);
    // The reply that was on its way ends as it began.
    while let Some(piece) = slow.chunk().await.unwrap() {
        body.extend_from_slice(&piece);
    }
    assert!(body == old);
    // One that broke off starts anew, for what it began with is gone.
    let resumed = house.range(link, "bytes=200000-", &old_etag).await;
    assert_eq!(
        (resumed.status().as_u16(), etag(&resumed)),
        (200, new_etag.clone())
    );
    assert!(resumed.bytes().await.unwrap() == new);
    let resumed = house.range(link, "bytes=200000-", &new_etag).await;
    assert_eq!(resumed.status(), 206);
    assert!(resumed.bytes().await.unwrap() == new[200_000..]);
}

#[tokio::test]
async fn a_download_goes_on_after_the_hub_was_restarted() {
    let house = House::start().await;
    let made = house
        .infra_env(json!({ "image_type": "minimal-iso",
        "proxy": { "http_proxy": "http://p.example.com:1" } }))
        .await;
    for link in [
        made["download_url"].as_str().unwrap().to_owned(),
        format!("{}/i/{}.iso", house.url, made["id"].as_str().unwrap()),
    ] {
        assert_eq!(house.get(&link).await.0, 200);
    }
    let full = made["download_url"]
        .as_str()
        .unwrap()
        .replace("minimal.iso", "full.iso");
    // What was read before the restart; that a reply in flight may be cut is tested with a process that is killed.
    let tag = etag(&house.http.head(&full).send().await.unwrap());
    let begin = house
        .range(&full, "bytes=0-999999", &tag)
        .await
        .bytes()
        .await
        .unwrap();
    let house = house.restarted().await;
    let rest = house.range(&full, "bytes=1000000-", &tag).await;
    assert_eq!(rest.status(), 206, "the same image under the same name");
    let rest = rest.bytes().await.unwrap();
    let whole = house.get(&full).await.1;
    assert!([begin, rest].concat() == whole);
}

#[tokio::test]
async fn a_base_image_with_another_checksum_is_not_served_and_the_reply_says_why() {
    let sum = "0123456789abcdef".repeat(4);
    let house = House::start_in(tempfile::tempdir().unwrap(), 0, Some(&sum)).await;
    let made = house.infra_env(json!({})).await;
    let (status, text) = house.get(made["download_url"].as_str().unwrap()).await;
    let text = String::from_utf8(text).unwrap();
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("checksum") && text.contains(&sum), "{text}");
    let told = house.downloads(&made).await;
    assert_eq!(told["base_image"]["state"], "failed");
    assert!(
        told["base_image"]["why"].as_str().unwrap().contains(&sum),
        "{told}"
    );
}

impl House {
    async fn downloads(&self, infra_env: &Value) -> Value {
        let base = format!("{}{}", self.url, muster_contract::v1::BASE);
        let url = format!(
            "{base}/infra-envs/{}/downloads",
            infra_env["id"].as_str().unwrap()
        );
        let reply = self.http.get(url).send().await.unwrap();
        assert_eq!(reply.status(), 200);
        reply.json().await.unwrap()
    }

    /// A host of this InfraEnv with these addresses; all our clients are at 127.0.0.1.
    async fn host(&self, infra_env: &Value, name: &str, address: &str, bmc: &str) -> uuid::Uuid {
        let id = uuid::Uuid::new_v4();
        let base = format!("{}{}", self.url, muster_contract::v2::BASE);
        let hosts = format!("{base}/infra-envs/{}/hosts", infra_env["id"].as_str().unwrap());
        let body = json!({ "host_id": id, "discovery_agent_version": "test" });
        let reply = self.http.post(&hosts).json(&body).send().await.unwrap();
        assert_eq!(reply.status(), 201);
        let inventory = json!({ "hostname": name, "interfaces": [{ "name": "eth0",
            "mac_address": "52:54:00:aa:00:01", "ipv4_addresses": [address], "ipv6_addresses": [] }],
            "bmc_address": bmc, "bmc_v6address": "::/0" });
        let reply = json!({ "step_type": "inventory", "step_id": "inventory-1", "exit_code": 0,
            "output": inventory.to_string() });
        let path = format!("{hosts}/{id}/instructions");
        let reply = self.http.post(path).json(&reply).send().await.unwrap();
        assert_eq!(reply.status(), 204);
        id
    }
}

#[tokio::test]
async fn everybody_can_see_how_far_a_host_has_read() {
    let house = House::start().await;
    let made = house.infra_env(json!({})).await;
    let before = house.downloads(&made).await;
    assert_eq!(
        before,
        json!({ "downloads": [], "base_image": { "version": "build-1",
        "cpu_architecture": "x86_64", "state": "absent", "done_bytes": 0 } })
    );
    let link = made["download_url"].as_str().unwrap();
    let total = house.http.head(link).send().await.unwrap().headers()["content-length"]
        .to_str()
        .unwrap()
        .parse::<u64>()
        .unwrap();
    let part = house.range(link, &format!("bytes=0-{}", total * 2 / 5), "").await;
    part.bytes().await.unwrap();
    // The root file system is nobody's and everybody's; whoever has an image of ours fetched it for us.
    let rootfs = format!("{}/boot-artifacts/rootfs?version=build-1&arch=x86_64", house.url);
    assert_eq!(house.get(&rootfs).await.0, 200);
    let id = house.host(&made, "worker-7", "127.0.0.1/8", "0.0.0.0").await;
    let told = house.downloads(&made).await;
    let list = told["downloads"].as_array().unwrap();
    assert_eq!(list.len(), 2, "{told}");
    let image = list.iter().find(|one| one["file"] == "full.iso").unwrap();
    assert_eq!(
        (image["percent"].as_u64(), image["total_bytes"].as_u64()),
        (Some(40), Some(total))
    );
    assert_eq!(
        (image["host_name"].as_str(), image["client"].as_str()),
        (Some("worker-7"), Some("127.0.0.1"))
    );
    assert_eq!(image["host_id"], id.to_string());
    assert_eq!(told["base_image"]["state"], "ready");
    let metrics = String::from_utf8(house.get(&format!("{}/metrics", house.url)).await.1).unwrap();
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    assert!(value("muster_image_bytes_total ") > total * 2 / 5);
    assert_eq!(value("muster_image_downloads "), 0);
    assert_eq!(
        value("muster_base_image_state{version=\"build-1\",architecture=\"x86_64\",state=\"ready\"} "),
        1
    );
    assert!(value("muster_base_image_bytes{version=\"build-1\",architecture=\"x86_64\"} ") > 1 << 20);
    let other = format!(
        "{}{}/infra-envs/{}/downloads",
        house.url,
        muster_contract::v1::BASE,
        uuid::Uuid::new_v4()
    );
    assert_eq!(house.get(&other).await.0, 404);
}
