//! The disk to install to: chosen by a person, and left to the inventory again.

use crate::door::{Door, V1, V2};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

const FOUND: &str = "/dev/disk/by-id/wwn-0x1";
const LARGER: &str = "/dev/disk/by-id/wwn-0x2";

/// A free host with a second disk, larger than the one that is found suitable.
async fn host_with_two_disks(door: &Door, pool: Uuid) -> Uuid {
    let host = door.worker(pool, 1).await;
    let text = row(door, host).await["inventory"].as_str().unwrap().to_owned();
    let mut inventory: Value = serde_json::from_str(&text).unwrap();
    let mut larger = inventory["disks"][0].clone();
    larger["size_bytes"] = json!(larger["size_bytes"].as_i64().unwrap() * 2);
    for (field, value) in [
        ("id", LARGER),
        ("by_id", LARGER),
        ("name", "sdb"),
        ("path", "/dev/sdb"),
    ] {
        larger[field] = json!(value);
    }
    inventory["disks"].as_array_mut().unwrap().push(larger);
    let report = json!({ "step_type": "inventory", "step_id": "inventory-2", "exit_code": 0,
        "output": inventory.to_string(), "error": "" });
    let told = door
        .post(
            &format!("{V2}/infra-envs/{pool}/hosts/{host}/instructions"),
            report,
        )
        .await;
    assert_eq!(told.status, StatusCode::NO_CONTENT, "{}", told.text);
    host
}

async fn row(door: &Door, host: Uuid) -> Value {
    door.get(&format!("{V1}/hosts/{host}")).await.body["hosts"][0].clone()
}

#[tokio::test]
async fn a_disk_that_a_person_chose_can_be_left_to_the_inventory_again() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let host = host_with_two_disks(&door, pool).await;
    let before = row(&door, host).await;
    assert_eq!(
        (&before["installation_disk_id"], &before["disk_chosen"]),
        (&json!(FOUND), &Value::Null)
    );
    let v1 = format!("{V1}/infra-envs/{pool}/hosts/{host}");
    let clear = json!({ "clear": ["installation-disk"] });
    let untouched = door.ask(Method::PATCH, &v1, Some(&clear)).await;
    assert_eq!(untouched.status, StatusCode::OK, "{}", untouched.text);
    assert_eq!(
        untouched.body["updated_at"], before["updated_at"],
        "nobody chose it"
    );
    let wish = json!({ "disks_selected_config": [{ "id": LARGER, "role": "install" }] });
    let v2 = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    let chosen = door.ask(Method::PATCH, &v2, Some(&wish)).await;
    assert_eq!(chosen.status, StatusCode::CREATED, "{}", chosen.text);
    let shown = row(&door, host).await;
    assert_eq!(
        (&shown["installation_disk_id"], &shown["disk_chosen"]),
        (&json!(LARGER), &json!(true))
    );
    let cleared = door.ask(Method::PATCH, &v1, Some(&clear)).await;
    assert_eq!(cleared.status, StatusCode::OK, "{}", cleared.text);
    for shown in [cleared.body, row(&door, host).await] {
        assert_eq!(
            (&shown["installation_disk_id"], &shown["disk_chosen"]),
            (&json!(FOUND), &Value::Null)
        );
    }
}
