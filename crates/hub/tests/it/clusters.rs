//! Clusters over REST v2.

use crate::rest::{Door, PULL_SECRET, UNKNOWN, id};
use axum::http::StatusCode;
use serde_json::{Value, json};

#[tokio::test]
async fn a_new_one_is_insufficient_and_asks_for_input_once_it_was_looked_at() {
    let door = Door::open().await;
    let made = door.cluster(json!({})).await;
    assert_eq!(made["status"], "insufficient");
    assert_eq!(made["network_type"], "OVNKubernetes");
    assert_eq!(made["platform"]["type"], "baremetal");
    let shown = door.get(&format!("/clusters/{}", id(&made))).await.json();
    assert_eq!(shown["status"], "pending-for-input");
    assert!(
        shown["validations_info"]
            .as_str()
            .unwrap()
            .contains("dns-domain-defined")
    );
}

#[tokio::test]
async fn a_single_node_manages_its_own_network() {
    let door = Door::open().await;
    let made = door.cluster(json!({ "high_availability_mode": "None" })).await;
    assert_eq!(
        (&made["control_plane_count"], &made["user_managed_networking"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(made["platform"]["type"], "none");
}

#[tokio::test]
async fn ipv6_machines_get_ipv6_pods_and_services() {
    let door = Door::open().await;
    let made = door
        .cluster(json!({ "machine_networks": [{ "cidr": "fd2e:6f44:5dd8::/64" }] }))
        .await;
    assert_eq!(made["cluster_networks"][0]["cidr"], "fd01::/48");
    assert_eq!(made["service_networks"][0]["cidr"], "fd02::/112");
}

#[tokio::test]
async fn a_change_is_judged_and_shown_at_once() {
    let door = Door::open().await;
    let made = door.cluster(json!({})).await;
    let path = format!("/clusters/{}", id(&made));
    let wish = json!({
        "base_dns_domain": "example.com",
        "api_vips": [{ "ip": "192.168.7.5" }],
        "ingress_vips": [{ "ip": "192.168.7.4" }],
        "machine_networks": [{ "cidr": "192.168.7.0/24" }],
        "olm_operators": [{ "name": "lso" }],
    });
    let reply = door.ask("PATCH", &path, Some(&wish)).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let changed = reply.json();
    assert_eq!(changed["status"], "insufficient");
    assert_eq!(changed["api_vips"][0]["ip"], "192.168.7.5");
    assert_eq!(changed["monitored_operators"].as_array().unwrap().len(), 2);
    assert_eq!(changed["ssh_public_key"], Value::Null);
    for wrong in [
        json!({ "machine_networks": [{ "cidr": "10.128.0.0/16" }] }),
        json!({ "api_vips": [] }),
        json!({ "user_managed_networking": true }),
        json!({ "ntp_sources": "a.example.com", "additional_ntp_source": "b.example.com" }),
    ] {
        let refused = door.ask("PATCH", &path, Some(&wrong)).await;
        assert_eq!(
            refused.status,
            StatusCode::BAD_REQUEST,
            "{wrong}: {}",
            refused.text()
        );
    }
    let shown = door.get(&path).await.json();
    assert_eq!(shown["machine_networks"][0]["cidr"], "192.168.7.0/24");
}

#[tokio::test]
async fn a_list_leaves_hosts_out_unless_asked() {
    let door = Door::open().await;
    let made = door.cluster(json!({})).await;
    let pool = door.infra_env(json!({ "cluster_id": id(&made) })).await;
    assert_eq!(pool["cluster_id"], made["id"]);
    let host = json!({ "host_id": UNKNOWN, "discovery_agent_version": "a" });
    door.create(&format!("/infra-envs/{}/hosts", id(&pool)), host)
        .await;
    let listed = door.get("/clusters").await.json();
    assert_eq!(
        (&listed[0]["hosts"], &listed[0]["total_host_count"]),
        (&json!([]), &json!(1))
    );
    let listed = door.get("/clusters?with_hosts=true").await.json();
    assert_eq!(listed[0]["hosts"][0]["id"], UNKNOWN);
    let path = format!("/clusters/{}", id(&made));
    assert_eq!(door.get(&path).await.json()["hosts"][0]["id"], UNKNOWN);
    assert_eq!(
        door.get(&format!("{path}?exclude-hosts=true")).await.json()["hosts"],
        Value::Null
    );
    let raw = door.get(&format!("{path}/hosts")).await.json();
    assert_eq!(raw[0]["id"], UNKNOWN);
    assert!(raw[0].get("requested_hostname").is_none(), "{raw}");
    assert_eq!(
        door.get(&format!("{path}/hosts?status=known")).await.json(),
        json!([])
    );
    assert_eq!(
        door.ask("DELETE", &path, None).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(door.get(&path).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_imported_one_takes_hosts_at_once() {
    let door = Door::open().await;
    let wish = json!({ "name": "given", "api_vip_dnsname": "api.prod.example.com", "openshift_cluster_id": UNKNOWN });
    let made = door.create("/clusters/import", wish).await;
    assert_eq!(
        (&made["name"], &made["base_dns_domain"]),
        (&json!("prod"), &json!("example.com"))
    );
    assert_eq!(
        (&made["kind"], &made["status"]),
        (&json!("AddHostsCluster"), &json!("adding-hosts"))
    );
    let path = format!("/clusters/{}", id(&made));
    let wish = json!({ "pull_secret": PULL_SECRET, "api_vip_dns_name": "api.other.example.com" });
    let changed = door.ask("PATCH", &path, Some(&wish)).await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text());
    assert_eq!(changed.json()["api_vip_dns_name"], "api.other.example.com");
    assert_eq!(
        door.get(&format!("/clusters?openshift_cluster_id={UNKNOWN}"))
            .await
            .json()[0]["id"],
        made["id"]
    );
}

#[tokio::test]
async fn ignored_checks_must_exist_and_be_ignorable() {
    let door = Door::open().await;
    let made = door.cluster(json!({})).await;
    let path = format!("/clusters/{}/ignored-validations", id(&made));
    let wish = json!({ "host-validation-ids": "[\"has-min-cpu-cores\"]" });
    let done = door.ask("PUT", &path, Some(&wish)).await;
    assert_eq!(done.status, StatusCode::CREATED, "{}", done.text());
    assert_eq!(door.get(&path).await.json(), wish);
    for wrong in ["[\"connected\"]", "[\"no-such-check\"]", "has-min-cpu-cores"] {
        let refused = door
            .ask("PUT", &path, Some(&json!({ "host-validation-ids": wrong })))
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

#[tokio::test]
async fn what_is_not_offered_says_so_after_the_id_was_checked() {
    let door = Door::open().await;
    let made = id(&door.cluster(json!({})).await);
    for rest in ["ui-settings", "supported-platforms"] {
        assert_eq!(
            door.get(&format!("/clusters/{made}/{rest}")).await.status,
            StatusCode::NOT_IMPLEMENTED
        );
        assert_eq!(
            door.get(&format!("/clusters/{UNKNOWN}/{rest}")).await.status,
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            door.get(&format!("/clusters/zzz/{rest}")).await.status,
            StatusCode::BAD_REQUEST
        );
    }
    let domains = door.get("/domains").await;
    assert_eq!(
        (domains.status, &domains.json()["kind"]),
        (StatusCode::NOT_IMPLEMENTED, &json!("Error"))
    );
}

#[tokio::test]
async fn the_hub_tells_what_it_offers() {
    let door = Door::open().await;
    assert_eq!(
        door.get("/component-versions").await.json()["versions"]
            .as_object()
            .unwrap()
            .len(),
        4
    );
    let latest = door
        .get("/openshift-versions?version=4.20&only_latest=true")
        .await
        .json();
    assert!(
        latest
            .as_object()
            .unwrap()
            .keys()
            .all(|version| version.starts_with("4.20")),
        "{latest}"
    );
    assert_eq!(door.get("/supported-operators/lso").await.json(), json!([]));
    let features = door
        .get("/support-levels/features?openshift_version=4.20")
        .await
        .json();
    assert_eq!(features["features"]["SNO"], "supported");
    assert_eq!(
        door.get("/support-levels/features").await.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        door.get("/clusters/default-config").await.json()["cluster_network_cidr"],
        "10.128.0.0/14"
    );
    let made = id(&door.cluster(json!({})).await);
    let needs = door
        .get(&format!("/clusters/{made}/preflight-requirements"))
        .await
        .json();
    assert_eq!(needs["ocp"]["master"]["quantitative"]["cpu_cores"], 4);
}

#[tokio::test]
async fn addresses_from_dhcp_are_refused_where_nobody_would_ever_get_them() {
    let door = Door::open().await;
    let mut wish = json!({ "name": "leased", "openshift_version": "4.20", "pull_secret": PULL_SECRET,
        "base_dns_domain": "example.com", "network_type": "Cilium", "vip_dhcp_allocation": true });
    let refused = door.ask("POST", "/clusters", Some(&wish)).await;
    let told = refused.json().to_string();
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{told}");
    for word in ["vip_dhcp_allocation", "api_vips"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    wish["vip_dhcp_allocation"] = json!(false);
    let made = door.ask("POST", "/clusters", Some(&wish)).await.json();
    let later = json!({ "vip_dhcp_allocation": true });
    let refused = door
        .ask("PATCH", &format!("/clusters/{}", id(&made)), Some(&later))
        .await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn chosen_operators_are_told_as_chosen() {
    let door = Door::open().await;
    let made = door.cluster(json!({})).await;
    let wish = json!({ "olm_operators": [{ "name": "lso" }, { "name": "numaresources" }] });
    let changed = door
        .ask("PATCH", &format!("/clusters/{}", id(&made)), Some(&wish))
        .await
        .json();
    let findings: Value =
        serde_json::from_str(changed["validations_info"].as_str().expect("text")).expect("JSON");
    let told = |id: &str| {
        let all = findings["operators"].as_array().expect("a list");
        let one = all
            .iter()
            .find(|one| one["id"] == id)
            .expect("every operator is listed");
        one["message"].as_str().expect("text").to_owned()
    };
    for chosen in [
        "lso-requirements-satisfied",
        "numa-resources-requirements-satisfied",
    ] {
        assert!(
            told(chosen).contains("installed with the cluster"),
            "{}",
            told(chosen)
        );
    }
    assert!(told("cnv-requirements-satisfied").contains("not selected"));
}
