//! Whether container images are available, asked of a registry that plays a script.

use crate::installation::hash;
use crate::world::*;
use serde_json::{Value, json};
use std::sync::Arc;

const LAYER: usize = 100_000;
const SIZE: f64 = 1_234_567.0;

/// A registry with the image `org/app:1`, a list of one image for every kind of machine, for who has the token.
fn registry(request: &Request, url: &str) -> Answer {
    let image = json!({"config": {"digest": "c", "size": SIZE as u64 - LAYER as u64},
        "layers": [{"digest": "sha256:layer", "size": LAYER}]})
    .to_string();
    let digest = format!("sha256:{}", hash(image.as_bytes()));
    let platform = |architecture: &str| json!({"digest": digest, "platform": {"os": "linux", "architecture": architecture}});
    let list =
        json!({"manifests": [platform("amd64"), platform("arm64"), platform("s390x"), platform("ppc64le")]});
    let path = request.path.split('?').next().unwrap();
    if path == "/token" {
        return token(request);
    }
    if request.header("authorization") != Some("Bearer let-me-in") {
        let scope = "repository:org/app:pull";
        return Answer {
            headers: vec![(
                "WWW-Authenticate",
                format!("Bearer realm=\"{url}/token\",service=\"r\",scope=\"{scope}\""),
            )],
            ..status(401)
        };
    }
    match path {
        "/v2/org/app/manifests/1" => reply(list),
        "/v2/org/app/blobs/sha256:layer" => Answer {
            body: vec![7; LAYER],
            ..status(200)
        },
        "/v2/org/app/manifests/sha256:0000" => reply(json!({})),
        other if other == format!("/v2/org/app/manifests/{digest}") => Answer {
            body: image.into_bytes(),
            ..status(200)
        },
        _ => status(404),
    }
}

/// For who has the pull secret, and asks for the right thing.
fn token(request: &Request) -> Answer {
    let is_known = request.header("authorization") == Some("Basic dXNlcjpwYXNz");
    if !is_known || !request.path.contains("service=r&scope=repository") {
        return status(401);
    }
    reply(json!({"token": "let-me-in"}))
}

/// A registry with TLS; `world` is the machine that asks.
fn start(seen: &Arc<Seen>) -> String {
    let own: Arc<std::sync::OnceLock<String>> = Arc::default();
    let url = own.clone();
    let handler = move |request: &Request| registry(request, url.get().unwrap());
    let url = serve_tls(seen.clone(), Arc::new(handler));
    own.set(url.clone()).unwrap();
    url
}

fn machine(url: &str) -> (World, String) {
    let world = World::new().flag("--dry-run");
    let host = url.trim_start_matches("https://").to_owned();
    world.file("etc/pki/ca-trust/source/anchors/ca.pem", AUTHORITY);
    let secret = json!({"auths": {(host.as_str()): {"auth": "dXNlcjpwYXNz"}}});
    world.file("root/.docker/config.json", secret.to_string());
    (world, host)
}

fn ask(world: &World, images: &[String]) -> Vec<Value> {
    let args = json!({"images": images, "timeout": 30});
    world
        .script
        .say(steps(&[("container-image-availability", args)]))
        .after(1, steps(&[]));
    world.run();
    let told = world.replies()[0].clone();
    let output: Value = serde_json::from_str(told["output"].as_str().unwrap()).unwrap();
    output["images"].as_array().unwrap().clone()
}

#[test]
fn an_image_that_a_pull_would_get_is_available_with_its_size_and_rate() {
    let seen: Arc<Seen> = Arc::default();
    let url = start(&seen);
    let (world, host) = machine(&url);
    let images = ask(&world, &[format!("{host}/org/app:1")]);
    assert_eq!(images[0]["result"], "success", "{images:?}");
    assert_eq!(images[0]["size_bytes"].as_f64(), Some(SIZE));
    assert!(
        images[0]["download_rate"].as_f64().unwrap() >= 0.001,
        "{images:?}"
    );
    assert!(images[0]["time"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_a_pull_would_not_get_is_not_available() {
    let seen: Arc<Seen> = Arc::default();
    let url = start(&seen);
    let (world, host) = machine(&url);
    let names = ["org/app:2", "org/app@sha256:0000"];
    let mut images = names.map(|name| format!("{host}/{name}")).to_vec();
    images.push("127.0.0.1:1/org/app:1".into());
    for image in ask(&world, &images) {
        assert_eq!(image["result"], "failure", "{image}");
        assert!(image.get("size_bytes").is_none(), "{image}");
    }
}

#[test]
fn without_credentials_or_trust_nothing_is_available() {
    let seen: Arc<Seen> = Arc::default();
    let url = start(&seen);
    let (world, host) = machine(&url);
    std::fs::remove_file(world.path("root/.docker/config.json")).unwrap();
    assert_eq!(
        ask(&world, &[format!("{host}/org/app:1")])[0]["result"],
        "failure"
    );
    let (world, host) = machine(&url);
    let heard = seen.all().len();
    std::fs::remove_file(world.path("etc/pki/ca-trust/source/anchors/ca.pem")).unwrap();
    assert_eq!(
        ask(&world, &[format!("{host}/org/app:1")])[0]["result"],
        "failure"
    );
    assert_eq!(seen.all().len(), heard, "nothing is said to a stranger");
}

#[test]
fn a_registry_that_fails_once_is_asked_again() {
    let failures = std::sync::atomic::AtomicUsize::new(0);
    let handler = move |request: &Request| {
        let is_first = failures.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2;
        match request.path.as_str() {
            _ if is_first => status(503),
            "/v2/org/app/manifests/1" => reply(json!({"layers": []})),
            _ => status(404),
        }
    };
    let url = serve_tls(Arc::default(), Arc::new(handler));
    let (world, host) = machine(&url);
    assert_eq!(
        ask(&world, &[format!("{host}/org/app:1")])[0]["result"],
        "success"
    );
}

#[test]
fn mirrors_are_asked_first_and_may_speak_plain_http_where_the_config_says_so() {
    let seen: Arc<Seen> = Arc::default();
    let handler = |request: &Request| match request.path.as_str() {
        "/v2/mirrored/app/manifests/1" => reply(json!({"layers": []})),
        _ => status(404),
    };
    let url = serve(seen.clone(), Arc::new(handler));
    let mirror = url.trim_start_matches("http://");
    let (world, _) = machine("https://other");
    let image = ["quay.invalid/org/app:1".to_owned()];
    world.file(
        "etc/containers/registries.conf",
        format!("[[registry]]\nlocation = \"quay.invalid/org\"\n[[registry.mirror]]\nlocation = \"{mirror}/mirrored\"\ninsecure = true\n"),
    );
    assert_eq!(ask(&world, &image)[0]["result"], "success");
}
