//! Agents that are out of date, late, or talkative.

use crate::door::{Answer, Door, V1, V2};
use crate::place::Place;
use axum::http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use muster_hub::{Clock, Hub};
use serde_json::{Value, json};
use uuid::Uuid;

const WANTED: &str = "registry.example.com/agent@sha256:aa";

async fn register(door: &Door, pool: Uuid, host: Uuid, agent: &str) {
    let body = json!({ "host_id": host, "discovery_agent_version": agent });
    let answer = door.post(&format!("{V2}/infra-envs/{pool}/hosts"), body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}

async fn steps(door: &Door, pool: Uuid, host: Uuid) -> Vec<String> {
    let answer = door
        .get(&format!("{V2}/infra-envs/{pool}/hosts/{host}/instructions"))
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let all = answer.body["instructions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    all.iter()
        .map(|step| step["step_type"].as_str().unwrap().to_owned())
        .collect()
}

async fn reply(door: &Door, pool: Uuid, host: Uuid, step: &str, exit_code: i64, output: Value) -> Answer {
    let body = json!({ "step_type": step, "step_id": format!("{step}-1"), "exit_code": exit_code,
        "output": output.to_string(), "error": "" });
    door.post(&format!("{V2}/infra-envs/{pool}/hosts/{host}/instructions"), body)
        .await
}

async fn host(door: &Door, pool: Uuid, host: Uuid) -> Value {
    door.get(&format!("{V2}/infra-envs/{pool}/hosts/{host}"))
        .await
        .body
}

fn finding(host: &Value, id: &str) -> String {
    let all: Value = serde_json::from_str(host["validations_info"].as_str().unwrap()).unwrap();
    let mut findings = all
        .as_object()
        .unwrap()
        .values()
        .flat_map(|part| part.as_array().unwrap());
    let found = findings.find(|finding| finding["id"] == id).unwrap();
    found["status"].as_str().unwrap().to_owned()
}

async fn events(door: &Door, pool: Uuid, name: &str) -> usize {
    let all = door.get(&format!("{V2}/events?infra_env_id={pool}")).await.body;
    let all = all.as_array().unwrap();
    all.iter().filter(|event| event["name"] == name).count()
}

async fn wanting() -> (Door, Clock) {
    wanting_at(Place::new().await).await
}

async fn wanting_at(place: Place) -> (Door, Clock) {
    let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
    let door = Door::with(place, clock.clone(), |settings| {
        settings.checks.wanted_agent = Some(WANTED.into());
    })
    .await;
    (door, clock)
}

#[tokio::test]
async fn an_agent_that_cannot_be_replaced_is_left_alone_and_its_host_can_be_used() {
    let (door, _) = wanting().await;
    let pool = door.infra_env("pool").await;
    let id = Uuid::from_u128(1);
    register(&door, pool, id, "mirror.example.com/agent:old").await;
    let failed = json!({ "agent_image": WANTED, "result": "failure" });
    for _ in 0..3 {
        assert_eq!(steps(&door, pool, id).await, ["upgrade-agent"]);
        reply(&door, pool, id, "upgrade-agent", 0, failed.clone()).await;
    }
    door.report(pool, id, 1).await;
    assert_eq!(
        finding(&host(&door, pool, id).await, "compatible-agent"),
        "failure"
    );
    assert!(!steps(&door, pool, id).await.contains(&"upgrade-agent".to_owned()));
    let seen = host(&door, pool, id).await;
    assert_eq!(finding(&seen, "compatible-agent"), "success", "{seen}");
    let cluster = door.cluster("alpha").await;
    assert_eq!(door.bind(pool, id, cluster).await.status, StatusCode::OK);
}

#[tokio::test]
async fn steps_of_an_answer_that_failed_are_handed_out_with_the_next() {
    let (door, _) = wanting_at(Place::on_disk().await).await;
    let pool = door.infra_env("pool").await;
    let id = Uuid::from_u128(1);
    register(&door, pool, id, "mirror.example.com/agent:old").await;
    door.break_writes().await;
    let answer = door
        .get(&format!("{V2}/infra-envs/{pool}/hosts/{id}/instructions"))
        .await;
    assert!(answer.status.is_server_error(), "{}", answer.text);
    door.mend_writes().await;
    // It was never asked: it is asked as often as any other.
    let failed = json!({ "agent_image": WANTED, "result": "failure" });
    for _ in 0..3 {
        assert_eq!(steps(&door, pool, id).await, ["upgrade-agent"]);
        reply(&door, pool, id, "upgrade-agent", 0, failed.clone()).await;
    }
}

#[tokio::test]
async fn a_clock_that_is_found_wrong_while_nothing_can_be_written_is_told_by_the_next_poll() {
    let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
    let door = Door::at(Place::on_disk().await, clock.clone()).await;
    let pool = door.infra_env("pool").await;
    let id = door.worker(pool, 1).await;
    let poll = async |ahead: i64| {
        let time = clock.now().as_second() + ahead;
        let path = format!("{V2}/infra-envs/{pool}/hosts/{id}/instructions?timestamp={time}");
        door.get(&path).await.status
    };
    assert_eq!(poll(0).await, StatusCode::OK);
    door.break_writes().await;
    assert!(poll(7200).await.is_server_error());
    door.mend_writes().await;
    assert_eq!(poll(7200).await, StatusCode::OK);
    assert_eq!(
        finding(
            &host(&door, pool, id).await,
            "time-synced-between-host-and-service"
        ),
        "failure"
    );
}

#[tokio::test]
async fn the_same_agent_under_another_name_is_neither_replaced_nor_complained_about() {
    let (door, _) = wanting().await;
    let pool = door.infra_env("pool").await;
    let id = Uuid::from_u128(1);
    register(&door, pool, id, "mirror.example.com/agent:v7@sha256:aa").await;
    assert_eq!(steps(&door, pool, id).await[0], "inventory");
    door.report(pool, id, 1).await;
    assert_eq!(
        finding(&host(&door, pool, id).await, "compatible-agent"),
        "success"
    );
}

#[tokio::test]
async fn replaced_agents_are_told_of_once_an_hour() {
    let (door, clock) = wanting().await;
    let pool = door.infra_env("pool").await;
    let id = Uuid::from_u128(1);
    register(&door, pool, id, "mirror.example.com/agent:old").await;
    let failed = json!({ "agent_image": WANTED, "result": "failure" });
    for _ in 0..3 {
        steps(&door, pool, id).await;
        reply(&door, pool, id, "upgrade-agent", 0, failed.clone()).await;
    }
    assert_eq!(events(&door, pool, "upgrade_agent_started").await, 1);
    assert_eq!(events(&door, pool, "upgrade_agent_failed").await, 1);
    clock.advance(SignedDuration::from_mins(61));
    reply(&door, pool, id, "upgrade-agent", 0, failed).await;
    assert_eq!(events(&door, pool, "upgrade_agent_failed").await, 2);
}

#[tokio::test]
async fn late_answers_to_tests_for_a_cluster_do_not_stick_to_a_host_that_left_it() {
    let door = Door::open().await;
    let (pool, cluster) = (door.infra_env("pool").await, door.cluster("alpha").await);
    let id = door.worker(pool, 1).await;
    assert_eq!(door.bind(pool, id, cluster).await.status, StatusCode::OK);
    door.register(pool, id).await;
    let unbind = format!("{V2}/infra-envs/{pool}/hosts/{id}/actions/unbind");
    assert_eq!(door.ask(Method::POST, &unbind, None).await.status, StatusCode::OK);
    let image = "secret.example.com/of/the/old/tenant:1";
    let images = json!({ "images": [{ "name": image, "result": "failure", "size_bytes": 0, "time": 1.0,
        "download_rate": 0.0 }] });
    let speed = json!({ "io_sync_duration": 30, "path": "/dev/disk/by-id/wwn-0x1" });
    for _ in 0..2 {
        for (step, output) in [
            ("container-image-availability", &images),
            ("installation-disk-speed-check", &speed),
        ] {
            let answer = reply(&door, pool, id, step, 0, output.clone()).await;
            assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text);
        }
        let seen = host(&door, pool, id).await;
        assert!(seen.get("cluster_id").is_none());
        assert!(!seen.to_string().contains(image), "{seen}");
        assert!(seen.get("disks_info").is_none(), "{seen}");
        // First on its way, then free.
        door.register(pool, id).await;
    }
    assert_eq!(events(&door, pool, "image_status_updated").await, 0);
}

#[tokio::test]
async fn the_password_of_a_power_controller_is_never_shown_again() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let id = door.worker(pool, 1).await;
    let path = format!("{V2}/infra-envs/{pool}/hosts/{id}");
    let given = json!({ "address": "redfish://bmc", "username": "admin", "password": "pa55word",
        "certificate_verification": "Disabled" });
    let change = json!({ "fencing_credentials": given });
    let changed = door.ask(Method::PATCH, &path, Some(&change)).await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    let body = json!({ "name": "two", "openshift_version": "4.20", "pull_secret": crate::door::PULL_SECRET,
        "base_dns_domain": "example.com", "control_plane_count": 2 });
    let cluster = door.post(&format!("{V2}/clusters"), body).await.body["id"].clone();
    let bound = door
        .post(&format!("{path}/actions/bind"), json!({ "cluster_id": cluster }))
        .await;
    assert_eq!(bound.status, StatusCode::OK, "{}", bound.text);
    let cluster = cluster.as_str().unwrap();
    let v1 = format!("{V1}/hosts/{id}");
    for place in [
        path.clone(),
        format!("{V2}/infra-envs/{pool}/hosts"),
        format!("{V2}/clusters/{cluster}"),
        format!("{V2}/clusters/{cluster}/hosts"),
        v1,
    ] {
        let seen = door.get(&place).await;
        assert_eq!(seen.status, StatusCode::OK, "{place}: {}", seen.text);
        assert!(!seen.text.contains("pa55word"), "{place}: {}", seen.text);
    }
    assert!(!changed.text.contains("pa55word") && !bound.text.contains("pa55word"));
    let shown = host(&door, pool, id).await["fencing_credentials"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        shown,
        json!({ "address": "redfish://bmc", "username": "admin", "password": "***",
            "certificate_verification": "Disabled" })
    );
    // Who reads, changes and writes back does not lose the password unnoticed.
    let echo = json!({ "fencing_credentials": shown });
    let refused = door.ask(Method::PATCH, &path, Some(&echo)).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
}

/// What the generated client of each operation can read. The reason that comes with another status is lost on it.
const KNOWN: [(&str, &[u16]); 5] = [
    ("register", &[400, 401, 403, 404, 405, 409, 500, 501, 503]),
    ("poll", &[401, 403, 404, 405, 500, 501, 503]),
    ("step reply", &[400, 401, 403, 404, 405, 500, 501, 503]),
    ("progress", &[401, 403, 404, 405, 500, 503]),
    ("logs progress", &[401, 403, 404, 405, 409, 500, 501, 503]),
];

/// Answered as the recorded service answers it: an installer sends what was answered by a 5xx again.
const AS_RECORDED: [(&str, u16); 2] = [("progress", 400), ("progress", 409)];

#[tokio::test]
async fn the_reason_of_every_refusal_reaches_the_agent() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let (nowhere, nobody) = (Uuid::from_u128(0xdead), Uuid::from_u128(0xbeef));
    let host = door.worker(pool, 1).await;
    let path = |pool: Uuid, host: Uuid| format!("{V2}/infra-envs/{pool}/hosts/{host}");
    let step = |output: &str| json!({ "step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "output": output });
    let stage = json!({ "current_stage": "Rebooting" });
    let logs = json!({ "logs_state": "collecting" });
    let asked = [
        (
            "register",
            Method::POST,
            format!("{V2}/infra-envs/{nowhere}/hosts"),
            Some(json!({ "host_id": host })),
        ),
        (
            "poll",
            Method::GET,
            format!("{}/instructions", path(nowhere, host)),
            None,
        ),
        (
            "step reply",
            Method::POST,
            format!("{}/instructions", path(nowhere, host)),
            Some(step("{}")),
        ),
        (
            "step reply",
            Method::POST,
            format!("{}/instructions", path(pool, nobody)),
            Some(step("{}")),
        ),
        (
            "step reply",
            Method::POST,
            format!("{}/instructions", path(pool, host)),
            Some(step("no JSON")),
        ),
        (
            "progress",
            Method::PUT,
            format!("{}/progress", path(pool, nobody)),
            Some(stage.clone()),
        ),
        (
            "progress",
            Method::PUT,
            format!("{}/progress", path(pool, host)),
            Some(stage),
        ),
        (
            "logs progress",
            Method::PUT,
            format!("{}/logs-progress", path(pool, nobody)),
            Some(logs),
        ),
    ];
    for (operation, method, path, body) in asked {
        let answer = door.ask(method, &path, body.as_ref()).await;
        let status = answer.status.as_u16();
        assert!(status >= 400, "{operation} {path}: {status}");
        let known = KNOWN
            .iter()
            .any(|(name, known)| *name == operation && known.contains(&status));
        assert!(
            known || AS_RECORDED.contains(&(operation, status)),
            "{operation} {path}: {status} {}",
            answer.text
        );
        let reason = answer.body["reason"].as_str().unwrap_or_default();
        assert!(!reason.is_empty(), "{operation} {path}: {}", answer.text);
    }
    let poll = door.get(&format!("{}/instructions", path(nowhere, host))).await;
    assert_eq!(poll.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(poll.text.contains("There is no InfraEnv"), "{}", poll.text);
}

#[tokio::test]
async fn what_a_cluster_only_waits_for_is_no_order_to_change_it() {
    let door = Door::open().await;
    let cluster = door.cluster("alpha").await;
    let vips =
        json!({ "api_vips": [{ "ip": "192.168.7.100" }], "ingress_vips": [{ "ip": "192.168.7.101" }] });
    let path = format!("{V2}/clusters/{cluster}");
    let changed = door.ask(Method::PATCH, &path, Some(&vips)).await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    let told = door.get(&format!("{V1}/clusters/{cluster}/explain")).await.body;
    let action = |code: &str| {
        let all = told["blockers"].as_array().unwrap();
        let one = all.iter().find(|one| one["code"] == code);
        one.unwrap_or_else(|| panic!("{told}"))["next_action"].clone()
    };
    assert_eq!(action("api-vips-valid"), "Wait for what the check says.");
    assert_eq!(
        action("sufficient-masters-count"),
        "Bind more hosts, or change their roles."
    );
}

#[tokio::test]
async fn a_host_that_only_waits_says_by_name_for_what() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let id = door.worker(pool, 1).await;
    let cluster = door.cluster("alpha").await;
    let vips =
        json!({ "api_vips": [{ "ip": "192.168.7.100" }], "ingress_vips": [{ "ip": "192.168.7.101" }] });
    let path = format!("{V2}/clusters/{cluster}");
    let changed = door.ask(Method::PATCH, &path, Some(&vips)).await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    assert_eq!(door.bind(pool, id, cluster).await.status, StatusCode::OK);
    door.register(pool, id).await;
    reply(&door, pool, id, "inventory", 0, crate::door::inventory(1)).await;
    let names = json!({ "resolutions": [{ "domain_name": "validateNoWildcardDNS.alpha.example.com", "cnames": [],
        "ipv4_addresses": [], "ipv6_addresses": [] }] });
    reply(&door, pool, id, "domain-resolution", 0, names).await;
    steps(&door, pool, id).await;
    let now = Timestamp::now().as_second();
    door.get(&format!(
        "{V2}/infra-envs/{pool}/hosts/{id}/instructions?timestamp={now}"
    ))
    .await;
    door.settle().await;
    let seen = host(&door, pool, id).await;
    assert_eq!(seen["status"], "insufficient");
    let group = "belongs-to-majority-group";
    assert_eq!(
        (
            finding(&seen, "ntp-synced").as_str(),
            finding(&seen, group).as_str()
        ),
        ("pending", "pending"),
        "it was not asked yet"
    );
    let told = "Cannot be installed yet. Waiting for the check belongs-to-majority-group \
                (until 3 hosts of the cluster have tried to reach each other)";
    assert_eq!(seen["status_info"], told);
    let explained = door
        .get(&format!("{V1}/infra-envs/{pool}/hosts/{id}/explain"))
        .await
        .body;
    assert_eq!(
        explained["why"],
        format!("{told} Waited for: belongs-to-majority-group.")
    );
    assert_eq!(explained["blockers"][0]["code"], group);
    assert_eq!(explained["next_action"], "Wait for what the check says.");
    let view = door.get(&path).await.body;
    let said = view["status_info"].as_str().unwrap();
    assert!(said.starts_with("Not ready for installation yet. "), "{said}");

    // Once it has answered, it is a failure, but in nobody's way.
    reply(&door, pool, id, "ntp-synchronizer", 1, Value::Null).await;
    let seen = host(&door, pool, id).await;
    assert_eq!(finding(&seen, "ntp-synced"), "failure");
    let said = seen["status_info"].as_str().unwrap();
    assert!(said.starts_with(told), "{said}");
    assert!(
        said.contains(" ; Not blocking: The host follows no time server"),
        "{said}"
    );
    reply(
        &door,
        pool,
        id,
        "ntp-synchronizer",
        0,
        json!({ "ntp_sources": [{ "source_name": "a", "source_state": "synced" }] }),
    )
    .await;
    assert_eq!(finding(&host(&door, pool, id).await, "ntp-synced"), "success");
    reply(&door, pool, id, "ntp-synchronizer", 1, Value::Null).await;
    assert_eq!(
        finding(&host(&door, pool, id).await, "ntp-synced"),
        "success",
        "what it told before counts"
    );
}

/// Makes the checks run again, over what is stored.
async fn rename(door: &Door, pool: Uuid, host: Uuid, name: &str) {
    let body = json!({ "host_name": name });
    let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    let answer = door.ask(Method::PATCH, &path, Some(&body)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}

#[tokio::test]
async fn hardware_that_could_not_be_read_is_still_told_of_by_a_hub_that_has_just_started() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let id = Uuid::from_u128(1);
    register(&door, pool, id, "agent:1").await;
    let refused = reply(&door, pool, id, "inventory", 0, json!([1])).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    let is_told = |host: Value| {
        host["validations_info"]
            .as_str()
            .unwrap()
            .contains("The hub cannot read the host's inventory")
    };
    assert!(is_told(host(&door, pool, id).await));
    let again = door.blind().await;
    rename(&again, pool, id, "other").await;
    assert!(is_told(host(&again, pool, id).await));
    again.report(pool, id, 1).await;
    assert_eq!(finding(&host(&again, pool, id).await, "has-inventory"), "success");
}

#[tokio::test]
async fn an_agent_that_was_left_alone_stays_so_after_a_restart() {
    let (door, clock) = wanting().await;
    let pool = door.infra_env("pool").await;
    let id = Uuid::from_u128(1);
    register(&door, pool, id, "mirror.example.com/agent:old").await;
    let failed = json!({ "agent_image": WANTED, "result": "failure" });
    for _ in 0..3 {
        assert_eq!(steps(&door, pool, id).await, ["upgrade-agent"]);
        reply(&door, pool, id, "upgrade-agent", 0, failed.clone()).await;
    }
    door.report(pool, id, 1).await;
    steps(&door, pool, id).await;
    let mut settings = door.hub.settings.clone();
    settings.was_here_before = true;
    let again = Hub::open(door.hub.store.clone(), settings, clock).await.unwrap();
    let again = door.replaced_by(again);
    rename(&again, pool, id, "other").await;
    assert_eq!(
        finding(&host(&again, pool, id).await, "compatible-agent"),
        "success"
    );
    assert!(
        !steps(&again, pool, id)
            .await
            .contains(&"upgrade-agent".to_owned())
    );
}
