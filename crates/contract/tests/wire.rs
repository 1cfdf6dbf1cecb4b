//! What is written reads back the same, key by key: the rules real clients rely on.

use muster_contract::v1::change::{Change, ChangesPage};
use muster_contract::v1::plan::{PlanRequest, Verb};
use muster_contract::v2::agent::args::InstallArgs;
use muster_contract::v2::agent::inventory::Inventory;
use muster_contract::v2::agent::replies::ImageAvailabilityReply;
use muster_contract::v2::cluster::{ClusterProgressView, ClusterView};
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::event::EventView;
use muster_contract::v2::host::{HostProgressView, HostView, RegisteredHostView};
use muster_contract::v2::infra_env::{InfraEnvView, Proxy};
use muster_contract::v2::operator::MonitoredOperatorView;
use muster_contract::v2::requirement::PreflightRequirementsView;
use muster_contract::v2::step::{PostStepAction, StepsView};
use muster_contract::v2::validation::SetIgnoredValidations;
use muster_contract::v2::version::OpenshiftVersionsView;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const ID: &str = "6e1f3c1e-5c2a-4b4d-9a53-0f6a1c7c1b11";
const OTHER: &str = "0d2c6a4e-90b7-4df0-8a4f-3f7c55b0e1aa";
const UNSET: &str = "0001-01-01T00:00:00.000Z";

#[track_caller]
fn same<T: Serialize + DeserializeOwned>(sample: Value) {
    let read: T = serde_json::from_value(sample.clone()).expect("the sample fits the type");
    assert_eq!(serde_json::to_value(&read).expect("wire types are JSON"), sample);
}

fn bare_host() -> Value {
    json!({
        "kind": "Host", "id": ID, "href": "/h", "infra_env_id": OTHER, "status": "known-unbound", "status_info": "fine",
        "status_updated_at": "2026-01-02T03:04:05.006Z", "progress_stages": [], "stage_started_at": UNSET,
        "stage_updated_at": UNSET, "checked_in_at": "2026-01-02T03:04:05.000Z", "registered_at": UNSET,
        "created_at": "2026-01-02T03:04:05.12345Z", "updated_at": "0001-01-01T00:00:00Z", "deleted_at": null,
        "logs_started_at": UNSET, "logs_collected_at": UNSET, "role": "auto-assign",
    })
}

#[test]
fn a_free_host_has_no_cluster_id_and_keeps_what_is_never_left_out() {
    let host = HostView {
        progress: Some(HostProgressView::default()),
        ..HostView::default()
    };
    let wire = serde_json::to_value(&host).unwrap();
    let mut keys: Vec<&str> = wire.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let expected = "checked_in_at created_at deleted_at href id infra_env_id kind logs_collected_at logs_started_at \
                    progress progress_stages registered_at stage_started_at stage_updated_at status status_info \
                    status_updated_at updated_at";
    assert_eq!(keys.join(" "), expected);
    assert_eq!(
        wire["progress"],
        json!({"stage_started_at": UNSET, "stage_updated_at": UNSET})
    );
    assert_eq!(
        (&wire["deleted_at"], &wire["progress_stages"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(wire["created_at"], "0001-01-01T00:00:00Z");
}

#[test]
fn hosts_read_back_the_same() {
    same::<HostView>(bare_host());
    let mut bound = bare_host();
    let more = json!({
        "cluster_id": OTHER, "bootstrap": true, "timestamp": 1_700_000_000, "inventory": "{\"hostname\":\"a\"}",
        "node_labels": "{\"rack\":\"1\"}", "suggested_role": "master", "media_status": "disconnected",
        "progress_stages": ["Installing"], "ignition_endpoint_token_set": true, "requested_hostname": "a",
        "progress": {"current_stage": "Installing", "installation_percentage": 7, "progress_info": "5%",
                     "stage_started_at": UNSET, "stage_updated_at": UNSET, "stage_timed_out": true},
    });
    bound
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    same::<HostView>(bound);
}

#[test]
fn a_registration_is_answered_with_the_host_and_the_command_side_by_side() {
    let mut sample = bare_host();
    sample["next_step_runner_command"] = json!({"args": ["{}"], "retry_seconds": 60});
    same::<RegisteredHostView>(sample);
}

#[test]
fn clusters_read_back_the_same() {
    let full = ClusterView {
        progress: Some(ClusterProgressView::default()),
        ..ClusterView::default()
    };
    let bare = serde_json::to_value(&full).unwrap();
    for key in [
        "api_vips",
        "ingress_vips",
        "hosts",
        "host_networks",
        "cluster_networks",
        "service_networks",
        "machine_networks",
        "monitored_operators",
        "operator_bundles",
        "deleted_at",
    ] {
        assert_eq!(bare.get(key), Some(&Value::Null), "{key}");
    }
    assert_eq!(bare["last-installation-preparation"], json!({}));
    assert_eq!(bare["install_completed_at"], UNSET);
    assert_eq!(
        bare["image_info"],
        json!({"created_at": "0001-01-01T00:00:00Z", "expires_at": UNSET})
    );
    let mut sample = bare;
    let more = json!({
        "name": "c", "platform": {"type": "none", "external": {}}, "vip_dhcp_allocation": false, "hosts": [bare_host()],
        "user_managed_networking": true, "schedulable_masters": false, "network_type": "OVNKubernetes",
        "cluster_networks": [{"cluster_id": ID, "cidr": "10.0.0.0/14", "host_prefix": 23}], "hyperthreading": "all",
        "api_vips": [{"cluster_id": ID, "ip": "10.0.0.2", "verification": "succeeded"}], "ignition_endpoint": {},
        "disk_encryption": {"enable_on": "masters,workers", "mode": "tpmv2"}, "control_plane_count": 3,
        "load_balancer": {"type": "cluster-managed"}, "high_availability_mode": "Full", "operator_bundles": [],
        "last-installation-preparation": {"status": "failed", "reason": "why"}, "total_host_count": 1,
    });
    sample
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    same::<ClusterView>(sample);
}

#[test]
fn infra_envs_show_an_empty_proxy_and_an_unset_expiry() {
    let wire = serde_json::to_value(InfraEnvView {
        proxy: Some(Proxy::default()),
        ..InfraEnvView::default()
    })
    .unwrap();
    assert_eq!((&wire["proxy"], &wire["expires_at"]), (&json!({}), &json!(UNSET)));
    assert!(wire.get("cluster_id").is_none() && wire.get("pull_secret_set").is_none());
    same::<InfraEnvView>(wire);
}

#[test]
fn steps_say_null_when_there_is_nothing_to_do() {
    let none = StepsView {
        post_step_action: PostStepAction::Exit,
        ..StepsView::default()
    };
    assert_eq!(
        serde_json::to_value(&none).unwrap(),
        json!({"post_step_action": "exit", "instructions": null})
    );
    same::<StepsView>(
        json!({"next_instruction_seconds": 60, "post_step_action": "continue", "instructions":
        [{"step_type": "inventory", "step_id": "inventory-0a1b2c3d", "args": [ID]},
         {"step_type": "upgrade-agent", "args": []}]}),
    );
}

#[test]
fn small_answers_read_back_the_same() {
    same::<EventView>(
        json!({"name": "n", "host_id": ID, "severity": "info", "message": "m", "event_time": UNSET}),
    );
    same::<ErrorBody>(serde_json::to_value(ErrorBody::new(404, "gone")).unwrap());
    same::<InfraErrorBody>(json!({"code": 405, "message": "m"}));
    same::<OpenshiftVersionsView>(
        json!({"4.20.1": {"display_name": "4.20.1", "support_level": "production",
        "cpu_architectures": ["x86_64"]}}),
    );
    same::<MonitoredOperatorView>(
        json!({"cluster_id": ID, "name": "console", "operator_type": "builtin",
        "timeout_seconds": 60, "status_updated_at": UNSET, "bundles": null, "source_bundles": null}),
    );
    same::<PreflightRequirementsView>(
        json!({"operators": [], "ocp": {"master": {"qualitative": null, "quantitative":
        {"cpu_cores": 4, "network_latency_threshold_ms": 100, "packet_loss_percentage": 0}}}}),
    );
    same::<SetIgnoredValidations>(json!({"host-validation-ids": "[\"all\"]"}));
}

#[test]
fn the_error_code_is_a_number_and_a_string() {
    let wire = serde_json::to_value(ErrorBody::new(409, "no")).unwrap();
    assert_eq!(
        wire,
        json!({"kind": "Error", "id": 409, "href": "", "code": "409", "reason": "no"})
    );
}

#[test]
fn inventories_tolerate_nulls_and_unknown_fields() {
    let text = json!({
        "hostname": "a", "news": 1, "cpu": {"count": 8, "frequency": 2800, "flags": null},
        "disks": [{"name": "sda", "partitionTypes": "x",
                   "installation_eligibility": {"eligible": true, "not_eligible_reasons": null}}],
        "routes": [{"interface": "e0", "destination": "", "family": 4}],
    });
    let inventory: Inventory = serde_json::from_value(text).unwrap();
    let wire = serde_json::to_value(&inventory).unwrap();
    assert_eq!(wire["cpu"], json!({"count": 8, "frequency": 2800, "flags": []}));
    assert_eq!(wire["disks"][0]["partitionTypes"], "x");
    assert_eq!(wire["routes"][0]["destination"], "");
    assert_eq!(wire["interfaces"], json!([]));
    same::<ImageAvailabilityReply>(
        json!({"images": [{"name": "i", "result": "success", "size_bytes": 7, "time": 0.5}]}),
    );
}

#[test]
fn install_arguments_keep_the_flag_that_is_always_sent() {
    let wire = serde_json::to_value(InstallArgs {
        check_cvo: Some(false),
        ..InstallArgs::default()
    })
    .unwrap();
    assert_eq!(
        (&wire["check_cvo"], &wire["service_ips"]),
        (&json!(false), &Value::Null)
    );
}

#[test]
fn muster_types_read_back_the_same() {
    let plan = PlanRequest {
        verb: Verb::DeleteInfraEnv,
        infra_env_id: None,
        host_id: None,
        cluster_id: None,
    };
    assert_eq!(
        serde_json::to_value(&plan).unwrap(),
        json!({"verb": "delete-infra-env"})
    );
    same::<ChangesPage>(
        json!({"next": 8, "changes": [{"seq": 8, "kind": "infra-env", "id": ID, "op": "delete",
        "revision": 3, "at": "2026-01-02T03:04:05Z"}]}),
    );
    assert!(serde_json::from_value::<Change>(json!({"seq": 1})).is_err());
}
