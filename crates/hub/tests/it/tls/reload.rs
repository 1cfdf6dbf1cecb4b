//! A certificate that is exchanged while the hub runs.

use super::house::{Authority, House, PATIENCE, pem};
use jiff::Timestamp;
use serde_json::json;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Sends a request and reads its answer, on a connection that stays open.
async fn asked(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), path: &str) -> String {
    let text = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the hub hung up");
        answer.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_connections_are_shown_the_new_certificate_and_those_that_are_there_go_on() {
    let authority = Authority::new("lab");
    let house = House::with_files(&authority).await;
    let made = house.infra_env(json!({})).await;
    let path = format!("/byid/{}/4.20/x86_64/full.iso", made["id"].as_str().unwrap());
    let (_, whole) = house.get(&path).await;
    let (mut waiting, first) = house.connect().await;
    assert!(asked(&mut waiting, "/livez").await.starts_with("HTTP/1.1 200"));
    // In the middle of an image: more than what fits between the hub and its client is still to come.
    let (mut reading, _) = house.connect().await;
    let text = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    reading.write_all(text.as_bytes()).await.unwrap();
    let mut image = vec![0; 64 * 1024];
    reading.read_exact(&mut image).await.unwrap();

    authority.put(&house.files(), &["127.0.0.1", "hub.example.com"]);
    // The hub looks by itself.
    let begin = Instant::now();
    let second = loop {
        let (_, shown) = house.connect().await;
        if shown != first {
            break shown;
        }
        assert!(begin.elapsed() < PATIENCE, "the new certificate is not shown");
    };
    assert!(
        asked(&mut waiting, "/livez").await.starts_with("HTTP/1.1 200"),
        "still there"
    );
    reading.read_to_end(&mut image).await.unwrap();
    let body = image.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(image[body..] == whole, "the image is whole");

    let status = house.client().hub_status().await.unwrap().tls.unwrap();
    assert_eq!(
        (status.fingerprint, status.reloads, status.trouble),
        (second, 1, None)
    );
    assert!(
        status.names.contains(&"hub.example.com".to_owned()),
        "{:?}",
        status.names
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pair_that_cannot_be_used_leaves_the_one_before_it_and_is_told_until_it_is_mended() {
    let authority = Authority::new("lab");
    let house = House::with_files(&authority).await;
    let files = house.files();
    let (_, first) = house.connect().await;
    let good = (
        std::fs::read_to_string(&files.cert).unwrap(),
        std::fs::read_to_string(&files.key).unwrap(),
    );
    let (expired, its_key) = authority.issue_until(&["127.0.0.1"], 2001);
    let (other, _) = authority.issue(&["127.0.0.1"]);
    let broken = pem("CERTIFICATE", b"no certificate");
    let cases = [
        (&other, &good.1, "--tls-key: the key in"),
        (&broken, &good.1, "cannot be read"),
        (&expired, &its_key, "is valid from"),
        (&good.0, &broken, "no private key"),
    ];
    for (number, (cert, key, word)) in (1..).zip(cases) {
        std::fs::write(&files.cert, cert).unwrap();
        std::fs::write(&files.key, key).unwrap();
        assert!(house.tls.look(Timestamp::now()).is_err(), "{word}");
        assert_eq!(
            house.connect().await.1,
            first,
            "the one before it is shown: {word}"
        );
        // Looking again is no other failure.
        house.tls.look(Timestamp::now()).unwrap_err();
        let status = house.client().hub_status().await.unwrap().tls.unwrap();
        assert!(
            status.trouble.as_ref().unwrap().contains(word),
            "{word}: {status:?}"
        );
        assert_eq!((status.fingerprint, status.reloads), (first.clone(), 0));
        let metrics = String::from_utf8(house.get("/metrics").await.1).unwrap();
        assert!(metrics.contains("muster_tls_reload_failing 1"), "{metrics}");
        // The hub may look between the two files, too.
        let failures = metrics
            .lines()
            .find_map(|line| line.strip_prefix("muster_tls_reload_failures_total "));
        assert!(
            failures.unwrap().parse::<u32>().unwrap() >= number,
            "{failures:?}"
        );
    }
    // Put back as it was.
    std::fs::write(&files.cert, &good.0).unwrap();
    std::fs::write(&files.key, &good.1).unwrap();
    house.tls.look(Timestamp::now()).unwrap();
    let status = house.client().hub_status().await.unwrap().tls.unwrap();
    assert_eq!(
        (status.fingerprint, status.trouble, status.reloads),
        (first.clone(), None, 0)
    );
    // And one that is new.
    authority.put(&files, &["127.0.0.1"]);
    house.tls.look(Timestamp::now()).unwrap();
    assert_ne!(house.connect().await.1, first);
}
