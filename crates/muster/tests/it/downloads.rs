//! A download in flight while the hub is killed: the client asks for the rest, and has the right image in the end.

use crate::image::base_image;
use crate::served::{Place, Served};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tempfile::TempDir;

/// Far more than all buffers between the hub and a client that reads half of it.
const LARGE: u32 = 64 << 20;

/// One reply that is being read, by hand, so that nothing resumes it behind our back.
struct Reading {
    stream: TcpStream,
    head: String,
    body: Vec<u8>,
}

impl Reading {
    fn begin(address: &str, path: &str, more: &str) -> Reading {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut begun = Vec::new();
        let end = loop {
            if let Some(at) = begun.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "the hub hung up");
            begun.extend_from_slice(&piece[..read]);
        };
        let body = begun.split_off(end);
        Reading {
            stream,
            head: String::from_utf8(begun).unwrap().to_lowercase(),
            body,
        }
    }

    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.strip_prefix(": ")).unwrap_or_default()
    }

    fn read_to(&mut self, len: usize) {
        let mut piece = vec![0; 64 * 1024];
        while self.body.len() < len {
            let read = self.stream.read(&mut piece).unwrap();
            assert!(read > 0, "the hub hung up");
            self.body.extend_from_slice(&piece[..read]);
        }
    }

    /// What comes until the connection ends, in whatever way.
    fn read_on(&mut self) {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).ok();
        self.body.append(&mut rest);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_that_a_killed_hub_broke_off_goes_on_where_it_was() {
    let folder = TempDir::new().unwrap();
    let iso = base_image(folder.path());
    let mut bytes = std::fs::read(&iso).unwrap();
    bytes.extend((0..LARGE).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]));
    std::fs::write(&iso, bytes).unwrap();
    let os_images = json!([{"openshift_version": "4.20", "cpu_architecture": "x86_64", "version": "9.6.1",
        "url": iso.to_str().unwrap()}])
    .to_string();
    let place = Place::sqlite();
    let mut hub = Served::start_with(&place, &["--os-images", &os_images]);
    let address = hub.address().to_owned();
    let secret = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
    let wish = json!({"name": "lab", "pull_secret": secret, "openshift_version": "4.20"});
    let wish = serde_json::from_value(wish).unwrap();
    let id = hub.hub.create_infra_env(&wish).await.unwrap().id;
    let path = format!("/byid/{id}/4.20/x86_64/full.iso");

    let mut client = Reading::begin(&address, &path, "");
    let total: usize = client.header("content-length").parse().unwrap();
    client.read_to(total / 2);
    hub.kill();
    client.read_on();
    let have = client.body.len();
    assert!(have < total, "the hub had sent everything before it was killed");

    let hub = Served::start_on(&place, &address, &["--os-images", &os_images]);
    let more = format!("Range: bytes={have}-\r\nIf-Range: {}\r\n", client.header("etag"));
    let mut rest = Reading::begin(&address, &path, &more);
    assert!(rest.head.starts_with("http/1.1 206"), "{}", rest.head);
    assert_eq!(
        rest.header("content-range"),
        format!("bytes {have}-{}/{total}", total - 1)
    );
    rest.read_on();
    client.body.append(&mut rest.body);
    let mut whole = Reading::begin(&address, &path, "");
    whole.read_on();
    assert!(client.body == whole.body, "the halves are of different images");
    assert_eq!(whole.body.len(), total);
    drop(hub);
}
