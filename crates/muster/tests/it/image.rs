//! Images: looked into, served apart from the hub, and what is said when one cannot be built.

use crate::program::{command, finish, run};
use crate::served::{Place, Served};
use crate::wire::{self, request};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A genuine live image, small because its large files are cut short.
pub fn base_image(folder: &Path) -> PathBuf {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../image/tests/fixtures/embed-areas-2023-07.x86_64.iso.xz");
    let mut bytes = Vec::new();
    let packed = std::fs::File::open(packed).unwrap();
    lzma_rust2::XzReader::new(packed, true)
        .read_to_end(&mut bytes)
        .unwrap();
    let path = folder.join("live.iso");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// `muster image serve`; killed with the test unless it ended before.
struct Service {
    process: Child,
    address: String,
}

impl Service {
    fn start(hub: &str, os_images: &str, folder: &Path) -> Service {
        let mut serve = command(&["image", "serve", "--listen", "127.0.0.1:0", "--log", "warn"]);
        serve.args(["--hub", hub, "--os-images", os_images, "--base-url", hub]);
        serve.arg("--cache-dir").arg(folder);
        let mut process = serve.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("muster image service is ready at http://");
        Service {
            address: address.unwrap_or_else(|| panic!("it said {line:?}")).to_owned(),
            process,
        }
    }

    fn get(&self, path: &str) -> wire::Answer {
        get(&self.address, path)
    }

    /// The exit code after SIGTERM.
    fn stop(mut self) -> Option<i32> {
        let id = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < Duration::from_secs(30), "it does not stop");
            std::thread::yield_now();
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn get(address: &str, path: &str) -> wire::Answer {
    wire::send(address, &request("GET", path, None)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_of_its_own_gives_the_same_bytes_as_the_hub() {
    let folder = TempDir::new().unwrap();
    let iso = base_image(folder.path());
    let os_images = json!([{"openshift_version": "4.20", "cpu_architecture": "x86_64", "version": "9.6.1",
        "url": iso.to_str().unwrap()}])
    .to_string();
    let releases = json!([{"openshift_version": "4.20", "cpu_architecture": "x86_64", "version": "4.20.1",
        "url": "registry.example.com/release:4.20.1", "default": true}])
    .to_string();
    let place = Place::sqlite();
    let hub = Served::start_with(
        &place,
        &["--os-images", &os_images, "--release-images", &releases],
    );
    let secret = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
    let wish = json!({"name": "lab", "pull_secret": secret, "openshift_version": "4.20",
        "kernel_arguments": [{"operation": "append", "value": "console=ttyS0"}]});
    let wish = serde_json::from_value(wish).unwrap();
    let id = hub.hub.create_infra_env(&wish).await.unwrap().id;

    let service = Service::start(&hub.url, &os_images, &folder.path().join("cache"));
    let paths = [
        format!("/byid/{id}/4.20/x86_64/full.iso"),
        format!("/byid/{id}/4.20/x86_64/minimal.iso"),
        format!("/images/{id}/pxe-initrd?version=4.20&arch=x86_64"),
        "/boot-artifacts/kernel?version=4.20&arch=x86_64".to_owned(),
        format!("/i/{id}.iso"),
        format!("/i/{id}.ipxe"),
    ];
    for path in &paths {
        let (here, there) = (get(hub.address(), path), service.get(path));
        assert_eq!(here.status, 200, "{path}: {}", here.text());
        assert!(!here.body.is_empty(), "{path}");
        assert!(
            here == there,
            "{path} differs: {} and {}",
            here.text(),
            there.text()
        );
    }
    let full = service.get(&paths[0]).body;
    let plain = std::fs::read(&iso).unwrap();
    assert!(
        full.len() == plain.len() && full != plain,
        "the configuration is in it"
    );
    assert_eq!(service.get("/health").status, 200);
    assert_eq!(
        service
            .get("/byid/00000000-0000-0000-0000-000000000000/4.20/x86_64/full.iso")
            .status,
        404
    );
    assert_eq!(service.stop(), Some(0));
}

#[test]
fn a_service_without_a_hub_says_so_and_serves_what_needs_none() {
    let folder = TempDir::new().unwrap();
    let iso = base_image(folder.path());
    let os_images = json!([{"openshift_version": "4.20", "version": "9.6.1", "url": iso.to_str().unwrap()}]);
    // Nobody listens on port 1.
    let service = Service::start("http://127.0.0.1:1", &os_images.to_string(), folder.path());
    let kernel = service.get("/boot-artifacts/kernel?version=9.6.1&arch=x86_64");
    assert_eq!(kernel.status, 200, "{}", kernel.text());
    let refused = service.get("/byid/00000000-0000-0000-0000-000000000000/4.20/x86_64/full.iso");
    assert_eq!(refused.status, 500);
    assert!(
        refused.text().contains("cannot reach the hub"),
        "{}",
        refused.text()
    );
    assert_eq!(service.stop(), Some(0));
}

#[test]
fn an_image_is_looked_into() {
    let folder = TempDir::new().unwrap();
    let iso = base_image(folder.path());
    let file = iso.to_str().unwrap();
    let table = run(&["image", "inspect", file, "--sha256"]);
    assert_eq!(table.code, 0, "{}", table.err);
    for part in [
        "FAMILY:",
        "coreos",
        "CONFIG:",
        "none",
        "SHA256:",
        "AREA",
        "payload",
        "kernel-arguments",
    ] {
        assert!(table.out.contains(part), "{part} is missing in\n{}", table.out);
    }
    let seen: Value = serde_json::from_str(&run(&["image", "inspect", file, "-o", "json"]).out).unwrap();
    assert_eq!(seen["family"], "coreos");
    assert_eq!(seen["config"], "none");
    assert_eq!(seen["sha256"], Value::Null);
    let areas = seen["areas"].as_array().unwrap();
    let payload = areas.iter().find(|area| area["name"] == "payload").unwrap();
    assert_eq!(payload["length"], 262_144);

    // Somebody puts a configuration in.
    let mut bytes = std::fs::read(&iso).unwrap();
    bytes[usize::try_from(payload["offset"].as_u64().unwrap()).unwrap()] = 0x1f;
    std::fs::write(&iso, bytes).unwrap();
    let seen: Value = serde_json::from_str(&run(&["image", "inspect", file, "-o", "json"]).out).unwrap();
    assert_eq!(seen["config"], "embedded");
}

#[test]
fn what_is_no_image_is_refused_in_one_line() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing.iso");
    assert_eq!(run(&["image", "inspect", missing.to_str().unwrap()]).code, 4);
    let text = folder.path().join("text.iso");
    std::fs::write(&text, vec![b'x'; 100_000]).unwrap();
    let ran = run(&["image", "inspect", text.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(
        ran.err.contains("text.iso") && ran.err.contains("not an ISO 9660 image"),
        "{}",
        ran.err
    );
}

#[test]
fn an_agent_that_needs_libraries_is_refused_before_anything_is_fetched() {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("x.iso");
    let ran = run(&[
        "image",
        "build",
        "--agent",
        env!("CARGO_BIN_EXE_muster"),
        "-o",
        target.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("needs libraries") && ran.err.contains("musl"),
        "{}",
        ran.err
    );
    assert!(!target.exists());
    let ran = run(&["image", "build", "--agent", "/nowhere/agent"]);
    assert!(
        ran.code == 1 && ran.err.contains("could not read /nowhere/agent"),
        "{}",
        ran.err
    );
}

#[test]
fn packages_that_are_missing_are_named() {
    let folder = TempDir::new().unwrap();
    let agent = folder.path().join("agent");
    // The head of a static program.
    let mut elf = vec![0; 64];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    elf[0x12] = 62;
    std::fs::write(&agent, elf).unwrap();
    let mut build = command(&["image", "build", "--agent", agent.to_str().unwrap()]);
    build.env("PATH", "/nowhere").current_dir(folder.path());
    let ran = finish(build);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let next = ran.err.lines().find(|line| line.starts_with("next: ")).unwrap();
    for package in ["xorriso", "mtools", "grub-common", "apt-get install"] {
        assert!(next.contains(package), "{package} is missing in {next}");
    }
    assert!(ran.err.contains("grub-mkimage"), "{}", ran.err);
}
