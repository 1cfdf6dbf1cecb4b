//! What an operator asks of the hub: objects under ids it chose, addresses, releases, hosts by their id. Good and bad.

use crate::door::{Answer, Door, PULL_SECRET, V1, V2};
use crate::fake_installer::alter;
use crate::place::Place;
use axum::http::{Method, StatusCode, header};
use muster_domain::cluster::Vip;
use muster_hub::{Clock, Settings};
use serde_json::{Value, json};
use uuid::Uuid;

const RELEASE: &str = "registry.example.com:5000/ocp/release:4.20.7-x86_64";

async fn put(door: &Door, path: &str, body: &Value) -> Answer {
    door.ask(Method::PUT, &format!("{V1}{path}"), Some(body)).await
}

fn pool(name: &str) -> Value {
    json!({ "name": name, "pull_secret": PULL_SECRET })
}

fn cluster(name: &str) -> Value {
    json!({ "name": name, "openshift_version": "4.20", "pull_secret": PULL_SECRET, "base_dns_domain": "example.com" })
}

fn running(name: &str, own_id: Uuid) -> Value {
    json!({ "name": name, "api_vip_dnsname": format!("api.{name}.example.com"), "openshift_cluster_id": own_id })
}

fn is(host: &Value, what: &str) -> bool {
    host[what].as_bool().unwrap_or_default()
}

/// A refusal that says what is wrong, in the shape of this API.
fn assert_problem(answer: &Answer, status: StatusCode, what: &str) {
    assert_eq!(answer.status, status, "{what}: {}", answer.text);
    assert_eq!(
        answer.headers[header::CONTENT_TYPE],
        "application/problem+json",
        "{what}"
    );
    assert_eq!(answer.body["status"], status.as_u16(), "{what}");
    let detail = answer.body["detail"].as_str().unwrap_or_default();
    assert!(!detail.is_empty(), "{what}: {}", answer.text);
    assert!(
        !answer.text.contains("dXNlcjpwYXNzd29yZA"),
        "{what} shows a secret"
    );
}

#[tokio::test]
async fn an_infra_env_is_made_once_under_its_id_and_shown_ever_after() {
    let door = Door::open().await;
    let id = Uuid::new_v4();
    let path = format!("/infra-envs/{id}");
    let made = put(&door, &path, &pool("lab")).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    assert_eq!(
        (&made.body["id"], &made.body["name"]),
        (&json!(id), &json!("lab"))
    );
    let again = put(&door, &path, &pool("another")).await;
    assert_eq!(
        (again.status, &again.body["name"]),
        (StatusCode::OK, &json!("lab")),
        "it is not changed by being made again"
    );
    let all = door.get(&format!("{V2}/infra-envs")).await.body;
    assert_eq!(all.as_array().unwrap().len(), 1);

    let links = door.get(&format!("{V1}{path}/links")).await;
    assert_eq!(links.status, StatusCode::OK);
    for name in [
        "iso",
        "kernel",
        "initrd",
        "rootfs",
        "ipxe_script",
        "discovery_ignition",
        "events",
    ] {
        let link = links.body[name].as_str().unwrap_or_default();
        assert!(
            link.starts_with("http") && link.contains(&id.to_string())
                || name == "kernel"
                || name == "rootfs",
            "{name}: {links}",
            links = links.text
        );
    }
    let files = links.body["discovery_ignition"].as_str().unwrap();
    let base = &door.hub.settings.base_url;
    let ignition = door.get(files.strip_prefix(base.as_str()).unwrap()).await;
    assert_eq!(ignition.status, StatusCode::OK, "the address leads somewhere");
    assert!(ignition.body["ignition"].is_object(), "{}", ignition.text);
}

#[tokio::test]
async fn a_key_is_taken_from_an_infra_env_that_an_update_leaves_alone() {
    let door = Door::open().await;
    let id = Uuid::new_v4();
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK5fZ7RM4rPRmz3yCqBRUGGcbgyWYFXr8nYrVvYyB7Ck me";
    let mut body = pool("lab");
    body["ssh_authorized_key"] = json!(key);
    put(&door, &format!("/infra-envs/{id}"), &body).await;
    let empty = json!({ "ssh_authorized_key": "" });
    let updated = door
        .ask(Method::PATCH, &format!("{V2}/infra-envs/{id}"), Some(&empty))
        .await;
    assert_eq!(
        updated.body["ssh_authorized_key"], key,
        "clients mean no change by it"
    );

    let path = format!("{V1}/infra-envs/{id}");
    let change = async |path: &str, body: Value| door.ask(Method::PATCH, path, Some(&body)).await;
    let nothing = change(&path, json!({})).await;
    assert_eq!(
        (nothing.status, &nothing.body["ssh_authorized_key"]),
        (StatusCode::OK, &json!(key))
    );
    let cleared = change(&path, json!({ "clear": ["ssh-authorized-key"] })).await;
    assert_eq!(cleared.status, StatusCode::OK, "{}", cleared.text);
    assert_eq!(
        cleared.body["ssh_authorized_key"].as_str().unwrap_or_default(),
        ""
    );
    let seen = door.get(&format!("{V2}/infra-envs/{id}")).await.body;
    assert_eq!(seen["ssh_authorized_key"].as_str().unwrap_or_default(), "");
    assert_eq!(seen["pull_secret_set"], json!(true), "the rest stays");

    for body in [
        json!({ "clear": ["pull-secret"] }),
        json!({ "name": "x" }),
        json!([]),
    ] {
        let what = body.to_string();
        assert_problem(&change(&path, body).await, StatusCode::BAD_REQUEST, &what);
    }
    let nowhere = format!("{V1}/infra-envs/{}", Uuid::new_v4());
    let answer = change(&nowhere, json!({ "clear": ["ssh-authorized-key"] })).await;
    assert_problem(&answer, StatusCode::NOT_FOUND, "no such InfraEnv");
}

#[tokio::test]
async fn an_infra_env_gets_another_cluster_once_its_own_is_gone() {
    let door = Door::open().await;
    let [old, new, id, late] = std::array::from_fn(|_| Uuid::new_v4());
    put(&door, &format!("/clusters/{old}"), &cluster("blue")).await;
    let mut body = pool("lab");
    body["cluster_id"] = json!(old);
    put(&door, &format!("/infra-envs/{id}"), &body).await;
    put(&door, &format!("/infra-envs/{late}"), &pool("late")).await;
    let change = async |id: Uuid, cluster: Uuid| {
        let body = json!({ "cluster_id": cluster });
        door.ask(Method::PATCH, &format!("{V1}/infra-envs/{id}"), Some(&body))
            .await
    };
    assert_problem(
        &change(id, new).await,
        StatusCode::CONFLICT,
        "its cluster is there",
    );
    let delete = format!("{V2}/clusters/{old}");
    assert!(door.ask(Method::DELETE, &delete, None).await.status.is_success());
    assert_problem(&change(id, new).await, StatusCode::NOT_FOUND, "no such cluster");

    let mut machine = json!({ "host_id": Uuid::new_v4() });
    machine["discovery_agent_version"] = json!(door.hub.settings.images.agent);
    let hosts = format!("{V2}/infra-envs/{id}/hosts");
    let refused = door.post(&hosts, machine.clone()).await;
    assert_eq!(
        refused.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        refused.text
    );
    let why = door.get(&format!("{V1}/infra-envs/{id}/explain")).await.text;
    assert!(why.contains("does not exist any more"), "{why}");

    put(&door, &format!("/clusters/{new}"), &cluster("blue")).await;
    let changed = change(id, new).await;
    assert_eq!(
        (changed.status, &changed.body["cluster_id"]),
        (StatusCode::OK, &json!(new)),
        "{}",
        changed.text
    );
    let host = door.post(&hosts, machine).await;
    assert_eq!(
        (host.status, &host.body["cluster_id"]),
        (StatusCode::CREATED, &json!(new)),
        "{}",
        host.text
    );
    assert_problem(
        &change(late, new).await,
        StatusCode::BAD_REQUEST,
        "its hosts are lent one by one",
    );
}

#[tokio::test]
async fn an_infra_env_that_names_no_time_source_any_more_has_that_of_the_site() {
    let site = |settings: &mut Settings| settings.default_ntp = "ntp.site.example.com".into();
    let door = Door::with(Place::new().await, Clock::System, site).await;
    let id = Uuid::new_v4();
    let made = put(&door, &format!("/infra-envs/{id}"), &pool("lab")).await;
    assert_eq!(made.body["additional_ntp_sources"], "ntp.site.example.com");
    let update = async |body: Value| {
        let answer = door
            .ask(Method::PATCH, &format!("{V2}/infra-envs/{id}"), Some(&body))
            .await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        let text = |name: &str| answer.body[name].as_str().unwrap_or_default().to_owned();
        (text("additional_ntp_sources"), text("ntp_sources"))
    };
    let own = update(json!({ "additional_ntp_sources": "", "ntp_sources": "ntp.example.com" })).await;
    assert_eq!(own, (String::new(), "ntp.example.com".into()));
    let none = update(json!({ "ntp_sources": "" })).await;
    assert_eq!(none, ("ntp.site.example.com".into(), String::new()));
}

#[tokio::test]
async fn two_that_make_one_infra_env_at_once_get_the_same() {
    let door = Door::open().await;
    let path = format!("/infra-envs/{}", Uuid::new_v4());
    let (one, two) = (pool("one"), pool("two"));
    let (first, second) = tokio::join!(put(&door, &path, &one), put(&door, &path, &two));
    assert!(
        first.status.is_success() && second.status.is_success(),
        "{} {}",
        first.text,
        second.text
    );
    assert_eq!(first.body["name"], second.body["name"]);
}

#[tokio::test]
async fn an_infra_env_that_cannot_be_is_refused_and_leaves_nothing() {
    let door = Door::open().await;
    let id = Uuid::new_v4();
    let path = format!("/infra-envs/{id}");
    let with = |field: &str, value: Value| {
        let mut body = pool("lab");
        body[field] = value;
        body
    };
    let cases = [
        (
            "no pull secret",
            json!({ "name": "lab" }),
            StatusCode::BAD_REQUEST,
        ),
        (
            "no name",
            json!({ "pull_secret": PULL_SECRET }),
            StatusCode::BAD_REQUEST,
        ),
        (
            "a pull secret of nonsense",
            with("pull_secret", json!("{}")),
            StatusCode::BAD_REQUEST,
        ),
        (
            "an unknown architecture",
            with("cpu_architecture", json!("pdp11")),
            StatusCode::BAD_REQUEST,
        ),
        (
            "a proxy that is no address",
            with("proxy", json!({ "http_proxy": "proxy" })),
            StatusCode::BAD_REQUEST,
        ),
        (
            "an override that is no JSON",
            with("ignition_config_override", json!("{")),
            StatusCode::BAD_REQUEST,
        ),
        (
            "no such cluster",
            with("cluster_id", json!(Uuid::new_v4())),
            StatusCode::NOT_FOUND,
        ),
        ("a list", json!([]), StatusCode::BAD_REQUEST),
    ];
    for (what, body, status) in cases {
        assert_problem(&put(&door, &path, &body).await, status, what);
    }
    let broken = door
        .send(
            Method::PUT,
            &format!("{V1}{path}"),
            "application/json",
            "{\"name\":",
        )
        .await;
    assert_problem(&broken, StatusCode::BAD_REQUEST, "half a body");
    assert_problem(
        &put(&door, "/infra-envs/first", &pool("lab")).await,
        StatusCode::BAD_REQUEST,
        "no UUID",
    );
    let links = door.get(&format!("{V1}{path}/links")).await;
    assert_problem(&links, StatusCode::NOT_FOUND, "nothing was made");
}

#[tokio::test]
async fn a_cluster_is_made_once_under_its_id() {
    let door = Door::open().await;
    let id = Uuid::new_v4();
    let path = format!("/clusters/{id}");
    let made = put(&door, &path, &cluster("blue")).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    assert_eq!(
        (&made.body["id"], &made.body["kind"]),
        (&json!(id), &json!("Cluster"))
    );
    assert!(
        !made.text.contains("dXNlcjpwYXNzd29yZA"),
        "its pull secret is not shown"
    );
    let again = put(&door, &path, &cluster("red")).await;
    assert_eq!(
        (again.status, &again.body["name"]),
        (StatusCode::OK, &json!("blue"))
    );
    let imported = put(&door, &format!("{path}/import"), &running("red", Uuid::new_v4())).await;
    assert_eq!(
        (imported.status, &imported.body["kind"]),
        (StatusCode::OK, &json!("Cluster")),
        "and is not turned into another kind"
    );
}

#[tokio::test]
async fn a_cluster_that_cannot_be_is_refused_and_leaves_nothing() {
    let door = Door::open().await;
    let id = Uuid::new_v4();
    let path = format!("/clusters/{id}");
    let with = |field: &str, value: Value| {
        let mut body = cluster("blue");
        body[field] = value;
        body
    };
    for (what, body) in [
        ("no name", with("name", json!(null))),
        ("a name that is no DNS label", with("name", json!("Blue Cluster"))),
        ("no version", with("openshift_version", json!(null))),
        ("an unknown version", with("openshift_version", json!("3.11"))),
        ("seven masters", with("control_plane_count", json!(7))),
        (
            "a network that is none",
            with("machine_networks", json!([{ "cidr": "10.0.0.0/99" }])),
        ),
        (
            "an address that is none",
            with("api_vips", json!([{ "ip": "10.0.0" }])),
        ),
        ("a pull secret of nonsense", with("pull_secret", json!("hunter2"))),
    ] {
        let answer = put(&door, &path, &body).await;
        assert_problem(&answer, StatusCode::BAD_REQUEST, what);
        assert!(!answer.text.contains("hunter2"), "{what} is quoted");
    }
    let links = door.get(&format!("{V1}{path}/links")).await;
    assert_problem(&links, StatusCode::NOT_FOUND, "nothing was made");
}

#[tokio::test]
async fn a_single_node_that_has_its_own_address_can_still_be_changed() {
    let door = Door::open().await;
    let id = Uuid::new_v4();
    let mut body = cluster("edge");
    body["control_plane_count"] = json!(1);
    let made = put(&door, &format!("/clusters/{id}"), &body).await;
    assert_eq!(made.body["user_managed_networking"], json!(true), "{}", made.text);
    alter(&door.hub, id, |cluster| {
        cluster.api_vips = vec![Vip {
            ip: "192.168.7.20".into(),
            ..Vip::default()
        }];
    })
    .await;
    let path = format!("{V2}/clusters/{id}");
    let change = async |body: Value| door.ask(Method::PATCH, &path, Some(&body)).await;
    let changed =
        change(json!({ "pull_secret": PULL_SECRET, "http_proxy": "http://proxy.example.com:3128" })).await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    let given = change(json!({ "api_vips": [{ "ip": "192.168.7.21" }] })).await;
    assert_eq!(given.status, StatusCode::BAD_REQUEST, "{}", given.text);
}

#[tokio::test]
async fn a_running_cluster_is_imported_once_under_its_id() {
    let door = Door::open().await;
    let (id, own_id) = (Uuid::new_v4(), Uuid::new_v4());
    let path = format!("/clusters/{id}/import");
    let made = put(&door, &path, &running("spoke", own_id)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    assert_eq!(
        (&made.body["kind"], &made.body["status"]),
        (&json!("AddHostsCluster"), &json!("adding-hosts"))
    );
    assert_eq!(made.body["openshift_cluster_id"], json!(own_id));
    let again = put(&door, &path, &running("spoke", Uuid::new_v4())).await;
    assert_eq!(
        (again.status, &again.body["openshift_cluster_id"]),
        (StatusCode::OK, &json!(own_id))
    );
    let other = format!("/clusters/{}/import", Uuid::new_v4());
    for (what, body) in [
        (
            "no name",
            json!({ "api_vip_dnsname": "api.example.com", "openshift_cluster_id": own_id }),
        ),
        (
            "no address",
            json!({ "name": "spoke", "openshift_cluster_id": own_id }),
        ),
        (
            "no id of its own",
            json!({ "name": "spoke", "api_vip_dnsname": "api.example.com" }),
        ),
    ] {
        assert_problem(&put(&door, &other, &body).await, StatusCode::BAD_REQUEST, what);
    }
}

#[tokio::test]
async fn releases_are_told_by_their_image_or_not_at_all() {
    let door = Door::open().await;
    let told = door.get(&format!("{V1}/releases?image={RELEASE}")).await;
    assert_eq!(
        (told.status, &told.body["version"]),
        (StatusCode::OK, &json!("4.20.7"))
    );
    for query in [
        "",
        "?image=",
        "?image=registry.example.com/release:latest",
        "?image=registry.example.com/release",
    ] {
        let answer = door.get(&format!("{V1}/releases{query}")).await;
        assert_problem(&answer, StatusCode::BAD_REQUEST, query);
    }
}

#[tokio::test]
async fn a_host_is_approved_followed_and_relieved_of_settings_where_it_is() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let host = door.worker(pool, 1).await;
    let path = format!("{V1}/infra-envs/{pool}/hosts/{host}");
    let change = async |body: Value| door.ask(Method::PATCH, &path, Some(&body)).await;

    let approved = change(json!({ "approved": true })).await;
    assert_eq!(approved.status, StatusCode::OK, "{}", approved.text);
    let seen = door.get(&format!("{V1}/hosts/{host}")).await.body["hosts"][0].clone();
    assert_eq!((is(&seen, "approved"), is(&seen, "followed")), (true, false));
    let nothing = change(json!({})).await;
    assert_eq!(nothing.status, StatusCode::OK);
    assert!(is(&nothing.body, "approved"), "what is not named stays");
    let back = change(json!({ "approved": false, "followed": true })).await;
    assert_eq!(
        (is(&back.body, "approved"), is(&back.body, "followed")),
        (false, true)
    );

    for (what, body) in [
        ("a word for yes", json!({ "approved": "yes" })),
        ("an unknown setting", json!({ "clear": ["everything"] })),
        ("a list", json!([true])),
    ] {
        assert_problem(&change(body).await, StatusCode::BAD_REQUEST, what);
    }
    let nobody = format!("{V1}/infra-envs/{pool}/hosts/{}", Uuid::new_v4());
    let answer = door
        .ask(Method::PATCH, &nobody, Some(&json!({ "approved": true })))
        .await;
    assert_problem(&answer, StatusCode::NOT_FOUND, "no such host");
    let elsewhere = format!("{V1}/infra-envs/{}/hosts/{host}", Uuid::new_v4());
    let answer = door
        .ask(Method::PATCH, &elsewhere, Some(&json!({ "approved": true })))
        .await;
    assert_problem(&answer, StatusCode::NOT_FOUND, "no such InfraEnv");
    assert_problem(
        &door.get(&format!("{V1}/hosts/first")).await,
        StatusCode::BAD_REQUEST,
        "no UUID",
    );
}

#[tokio::test]
async fn whoever_starts_an_agent_can_ask_how_it_knows_the_hub() {
    let door = Door::open().await;
    let plain = door.get(&format!("{V1}/trust")).await;
    assert_eq!(
        (plain.status, &plain.body),
        (StatusCode::OK, &json!({ "service_ca": "", "insecure": false }))
    );
    let door = Door::with(Place::new().await, Clock::System, |settings| {
        settings.trust.service_ca = "CA OF THE HUB".into();
        settings.trust.insecure = true;
    })
    .await;
    let own = door.get(&format!("{V1}/trust")).await.body;
    assert_eq!(own, json!({ "service_ca": "CA OF THE HUB", "insecure": true }));
}
