//! A hub that speaks https, over real connections: to those who believe it, to those who do not, and to those who are slow.

mod greeting;
mod house;
mod plain;
mod reload;

use house::{Authority, House, ask, pem};
use jiff::Timestamp;
use muster_contract::Trust;
use muster_contract::client::{ClientError, HubClient};
use muster_hub::config::TlsChoice;
use muster_hub::tls::pair::Files;
use muster_hub::{Config, serve};
use muster_image::RemoteHub;
use muster_image::source::PayloadSource;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_served_with_tls_and_the_feed_follows() {
    let authority = Authority::new("lab");
    let house = House::with_files(&authority).await;
    let hub = house.client();
    assert!(house.url.starts_with("https://"), "{}", house.url);
    let mut feed = hub.follow(hub.hub_status().await.unwrap().newest_change);
    let made = house.infra_env(json!({})).await;
    assert!(
        made["download_url"].as_str().unwrap().starts_with(&house.url),
        "{made}"
    );
    let seen = feed.next(20).await.unwrap();
    assert!(!seen.changes.is_empty(), "the feed tells of the InfraEnv");

    let status = hub.hub_status().await.unwrap().tls.unwrap();
    assert!(status.names.contains(&"127.0.0.1".to_owned()), "{status:?}");
    assert_eq!((status.self_signed, status.trouble), (false, None));
    let metrics = String::from_utf8(house.get("/metrics").await.1).unwrap();
    for line in [
        "muster_tls_reload_failing 0",
        "muster_tls_certificate_expiry_timestamp_seconds ",
        "muster_tls_handshakes_total{result=\"done\"} ",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_and_any_part_of_them_are_the_same_bytes_with_tls_and_without() {
    let house = House::start(|config| {
        config.tls = TlsChoice::SelfSigned;
        config.plain_listen = Some("127.0.0.1:0".parse().unwrap());
    })
    .await;
    let made = house.infra_env(json!({})).await;
    let id = made["id"].as_str().unwrap();
    let path = format!("/byid/{id}/4.20/x86_64/full.iso");
    let (status, whole) = house.get(&path).await;
    assert_eq!(status, 200);
    assert!(whole.len() > 4 << 20, "{}", whole.len());
    let plain = house.plain.unwrap();
    let (_, without) = ask(&house.http, &format!("http://{plain}{path}"), None).await;
    assert!(whole == without, "the same image");
    let end = whole.len();
    // Within one buffer, across many, the first and the last byte, and all but one.
    for (from, to) in [
        (0, 1),
        (end - 1, end),
        (1, end),
        (40_000, 200_000),
        (65_535, 65_537),
        (end / 2, end / 2 + 3_000_000),
    ] {
        let range = format!("bytes={from}-{}", to - 1);
        let (status, part) = ask(&house.http, &format!("{}{path}", house.url), Some(&range)).await;
        assert_eq!(status, 206, "{range}");
        assert!(part == whole[from..to], "{range}: {} bytes", part.len());
    }
    for kind in ["kernel", "rootfs"] {
        let path = format!("/boot-artifacts/{kind}?version=4.20&arch=x86_64");
        let with = house.get(&path).await;
        let without = ask(&house.http, &format!("http://{plain}{path}"), None).await;
        assert!(with == without, "{kind}: {} and {}", with.0, without.0);
    }
    // What is not there, and what is no image, on connections that began with images.
    assert_eq!(house.get("/byid/nobody/4.20/x86_64/full.iso").await.0, 404);
    assert_eq!(house.get("/health").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_makes_its_own_authority_once_and_its_images_carry_it() {
    let house = House::start(|config| config.tls = TlsChoice::SelfSigned).await;
    let made = house.infra_env(json!({})).await;
    let id = made["id"].as_str().unwrap();
    let path = format!("/api/assisted-install/v2/infra-envs/{id}/downloads/files?file_name=discovery.ign");
    let config = String::from_utf8(house.get(&path).await.1).unwrap();
    assert!(
        config.contains("--cacert /etc/assisted-service/service-ca-cert.crt"),
        "{config}"
    );
    let authority = std::fs::read_to_string(house.authority()).unwrap();
    let (_, trust) = house.get("/api/muster/v1/trust").await;
    let trust: serde_json::Value = serde_json::from_slice(&trust).unwrap();
    assert_eq!(trust["service_ca"], authority.as_str());
    let mode = std::fs::metadata(house.dir.path().join("data/tls"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);

    let before = house.client().hub_status().await.unwrap().tls.unwrap();
    let house = house.restarted(|config| config.tls = TlsChoice::SelfSigned).await;
    assert_eq!(std::fs::read_to_string(house.authority()).unwrap(), authority);
    let after = house.client().hub_status().await.unwrap().tls.unwrap();
    assert_eq!(
        (before.fingerprint, before.self_signed),
        (after.fingerprint, after.self_signed)
    );
    // Under another name there is another certificate, of the same authority.
    let house = house
        .restarted(|config| {
            config.tls = TlsChoice::SelfSigned;
            config.allowed_hosts = vec!["hub.lab.example".into()];
        })
        .await;
    let named = house.client().hub_status().await.unwrap().tls.unwrap();
    assert!(named.names.contains(&"hub.lab.example".to_owned()), "{named:?}");
    assert_eq!(std::fs::read_to_string(house.authority()).unwrap(), authority);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_believe_the_hub_says_why() {
    let authority = Authority::new("lab");
    let house = House::with_files(&authority).await;
    let strange = Trust::from_pem(Authority::new("another").pem().as_bytes(), "ca.pem").unwrap();
    let asked = HubClient::trusting(&house.url, &strange)
        .unwrap()
        .hub_status()
        .await;
    match asked.unwrap_err() {
        ClientError::Untrusted(why) => assert!(why.contains("not signed by an authority"), "{why}"),
        other => panic!("{other:?}"),
    }
    // The same machine, under a name that is not in the certificate.
    let by_name = house.url.replace("127.0.0.1", "localhost");
    let asked = HubClient::trusting(&by_name, &house.trust)
        .unwrap()
        .hub_status()
        .await;
    match asked.unwrap_err() {
        ClientError::Untrusted(why) => {
            assert!(why.contains("127.0.0.1") && why.contains("localhost"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    // A fleet of simulated hosts hears the same.
    let address = muster_simfleet::wire::HubAddress::parse(&house.url).unwrap();
    let refused = muster_simfleet::stream::Stream::open(&address, &strange.config().into()).await;
    let why = muster_contract::tls::distrust(&refused.unwrap_err()).unwrap();
    assert!(why.contains("not signed by an authority"), "{why}");
    let believed = muster_simfleet::stream::Stream::open(&address, &house.trust.config().into()).await;
    assert!(believed.is_ok(), "{believed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_service_of_its_own_asks_the_hub_with_tls() {
    let house = House::start(|config| config.tls = TlsChoice::SelfSigned).await;
    let made = house.infra_env(json!({})).await;
    let id = made["id"].as_str().unwrap();
    let script = async |trust: &Trust| {
        let authorities = trust.authorities().iter().map(AsRef::as_ref);
        RemoteHub::trusting(&house.url, authorities).script(id).await
    };
    assert!(script(&house.trust).await.unwrap().starts_with("#!ipxe"));
    let strange = Trust::from_pem(Authority::new("another").pem().as_bytes(), "ca.pem").unwrap();
    assert_eq!(script(&strange).await.unwrap_err().status, 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_in_the_same_process_believes_the_hub_by_what_it_shows() {
    let authority = Authority::new("lab");
    let (house, other) = (
        House::with_files(&authority).await,
        House::with_files(&authority).await,
    );
    // For names that are not those of this process.
    authority.put(&house.files(), &["hub.example.com"]);
    house.tls.look(Timestamp::now()).unwrap();
    let tls = house.tls.clone();
    let own = Trust::own(move || tls.certificate());
    let hub = HubClient::trusting(&house.url, &own).unwrap();
    hub.hub_status().await.unwrap();
    // It follows the hub to its next certificate.
    authority.put(&house.files(), &["hub.example.com"]);
    house.tls.look(Timestamp::now()).unwrap();
    HubClient::trusting(&house.url, &own)
        .unwrap()
        .hub_status()
        .await
        .unwrap();
    let asked = HubClient::trusting(&other.url, &own).unwrap().hub_status().await;
    assert!(matches!(asked, Err(ClientError::Untrusted(_))), "{asked:?}");
}

#[tokio::test]
async fn a_pair_that_cannot_be_used_is_refused_at_the_start_with_the_setting_that_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new("lab");
    let (cert, key) = authority.issue(&["127.0.0.1"]);
    let (_, other_key) = authority.issue(&["127.0.0.1"]);
    let broken = pem("CERTIFICATE", b"no certificate");
    let bad_key = pem("PRIVATE KEY", b"no key");
    for (cert, key, flag, word) in [
        (None, Some(&key), "--tls-cert", "cannot read"),
        (Some(&cert), None, "--tls-key", "cannot read"),
        (Some(&key), Some(&key), "--tls-cert", "no certificate"),
        (Some(&broken), Some(&key), "--tls-cert", "cannot be read"),
        (Some(&cert), Some(&cert), "--tls-key", "no private key"),
        (Some(&cert), Some(&bad_key), "--tls-key", "cannot be used"),
        (Some(&cert), Some(&other_key), "--tls-key", "does not belong"),
    ] {
        let files = Files {
            cert: dir.path().join("hub.crt"),
            key: dir.path().join("hub.key"),
        };
        for (path, text) in [(&files.cert, cert), (&files.key, key)] {
            std::fs::remove_file(path).ok();
            if let Some(text) = text {
                std::fs::write(path, text).unwrap();
            }
        }
        let config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            data_dir: dir.path().join("data"),
            tls: TlsChoice::Files(files),
            ..Config::default()
        };
        let ended = serve::run(config, std::future::pending(), |_| {
            panic!("it starts without {flag}")
        })
        .await;
        let told = format!("{:#}", ended.unwrap_err());
        assert!(
            told.starts_with(flag) && told.contains(word),
            "{flag} {word}: {told}"
        );
    }
}
