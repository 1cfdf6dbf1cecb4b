//! What is answered without TLS: what firmware needs, and where the rest is.

use super::house::{House, ask};
use muster_contract::{v1, v2};
use muster_hub::config::TlsChoice;
use reqwest::Method;
use serde_json::{Value, json};

async fn house() -> House {
    House::start(|config| {
        config.tls = TlsChoice::SelfSigned;
        config.plain_listen = Some("127.0.0.1:0".parse().unwrap());
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_boots_from_the_plain_listener() {
    let house = house().await;
    let plain = format!("http://{}", house.plain.unwrap());
    let made = house.infra_env(json!({})).await;
    let id = made["id"].as_str().unwrap();
    assert!(
        made["download_url"].as_str().unwrap().starts_with(&plain),
        "{made}"
    );
    let (_, links) = house.get(&format!("{}/infra-envs/{id}/links", v1::BASE)).await;
    let links: Value = serde_json::from_slice(&links).unwrap();
    for name in [
        "iso",
        "kernel",
        "initrd",
        "rootfs",
        "ipxe_script",
        "ipxe_boot_order_script",
    ] {
        let link = links[name].as_str().unwrap();
        assert!(link.starts_with(&plain), "{name}: {link}");
        let (status, _) = ask(&house.http, link, Some("bytes=0-9")).await;
        assert!([200, 206].contains(&status), "{name}: {status}");
    }
    for name in ["discovery_ignition", "static_network", "events"] {
        let link = links[name].as_str().unwrap();
        assert!(link.starts_with(&house.url), "{name}: {link}");
    }
    let (status, script) = ask(&house.http, &format!("{plain}/i/{id}.ipxe"), None).await;
    let script = String::from_utf8(script).unwrap();
    assert_eq!(status, 200);
    assert!(
        script.contains(&plain) && !script.contains("https://"),
        "{script}"
    );
    // The second script leads to the first one.
    let chain = links["ipxe_boot_order_script"].as_str().unwrap();
    let chain = String::from_utf8(ask(&house.http, chain, None).await.1).unwrap();
    assert!(chain.contains(&plain) && !chain.contains("https://"), "{chain}");
    // The agent in the image speaks https all the same.
    let file = format!(
        "{}/infra-envs/{id}/downloads/files?file_name=discovery.ign",
        v2::BASE
    );
    let config = String::from_utf8(house.get(&file).await.1).unwrap();
    assert!(config.contains(&format!("--url \\\"{}", house.url)), "{config}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_more_without_tls_is_told_where_it_is() {
    let house = house().await;
    let made = house.infra_env(json!({})).await;
    let id = made["id"].as_str().unwrap();
    let file = format!(
        "{}/infra-envs/{id}/downloads/files?file_name=discovery.ign",
        v2::BASE
    );
    let both = format!("{file}&file_name=ipxe-script");
    let (hosts, image) = (
        format!("{}/hosts", v1::BASE),
        format!("/byid/{id}/4.20/x86_64/full.iso"),
    );
    let (list, register) = (
        format!("{}/infra-envs", v2::BASE),
        format!("{}/infra-envs/{id}/hosts", v2::BASE),
    );
    let (plain, secure) = (house.plain.unwrap(), house.address);
    for (address, method, path) in [
        (plain, Method::GET, list.as_str()),
        (plain, Method::POST, &register),
        (plain, Method::GET, &file),
        (plain, Method::GET, &both),
        (plain, Method::GET, &hosts),
        (plain, Method::GET, "/metrics"),
        (plain, Method::GET, "/docs"),
        (plain, Method::GET, "/health"),
        (plain, Method::DELETE, &image),
        // Plain HTTP at the port that speaks https: not even images.
        (secure, Method::GET, &image),
        (secure, Method::GET, &list),
        (secure, Method::POST, &register),
        (secure, Method::GET, "/"),
    ] {
        let request = house
            .http
            .request(method.clone(), format!("http://{address}{path}"));
        let reply = request.body("{}").send().await.unwrap();
        assert_eq!(reply.status(), 426, "{method} {path}");
        let kind = reply.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!(
            kind.contains("problem+json"),
            path.starts_with(v1::BASE),
            "{kind}"
        );
        let told = reply.text().await.unwrap();
        assert!(told.contains(&house.url), "{method} {path}: {told}");
    }
    // Names that are not ours are strange here, too.
    for address in [plain, secure] {
        let request = house
            .http
            .get(format!("http://{address}/"))
            .header("Host", "evil.example");
        assert_eq!(request.send().await.unwrap().status(), 421);
    }
}

#[tokio::test]
async fn a_plain_listener_stands_only_beside_one_with_tls() {
    let dir = tempfile::tempdir().unwrap();
    let config = |change: fn(&mut muster_hub::Config)| {
        let mut config = muster_hub::Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            data_dir: dir.path().join("data"),
            ..muster_hub::Config::default()
        };
        change(&mut config);
        config
    };
    let cases: [fn(&mut muster_hub::Config); 3] = [
        |config| config.plain_listen = Some("127.0.0.1:0".parse().unwrap()),
        |config| {
            config.tls = TlsChoice::SelfSigned;
            config.plain_url = Some("http://hub:1".into());
        },
        |config| {
            config.tls = TlsChoice::SelfSigned;
            config.plain_listen = Some("127.0.0.1:0".parse().unwrap());
            config.plain_url = Some("https://hub:1".into());
        },
    ];
    for change in cases {
        let ended =
            muster_hub::serve::run(config(change), std::future::pending(), |_| panic!("it starts")).await;
        let told = format!("{:#}", ended.unwrap_err());
        assert!(told.contains("--plain-"), "{told}");
    }
}
