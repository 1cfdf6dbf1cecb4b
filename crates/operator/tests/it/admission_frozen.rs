//! Objects of installations that have begun, and objects from before a rule: what nobody touched is not refused.

use crate::admission::{agent, infra_env, install, put, refusal};
use crate::own_server::{OURS, Place, world_at};
use crate::world::World;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use muster_operator::crd::{Agent, AgentClassification, AgentClusterInstall, InfraEnv};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::path::Path;

async fn began(world: &World, name: &str, reason: &str) {
    let conditions = json!([{"type": "Completed", "status": "False", "reason": reason}]);
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    let api = world.api::<AgentClusterInstall>(&world.pool);
    api.patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

async fn change(world: &World, name: &str, spec: Value) -> Result<AgentClusterInstall, kube::Error> {
    world.patch(&world.pool, name, json!({"spec": spec})).await
}

fn workers(count: u32) -> Value {
    json!({"provisionRequirements": {"workerAgents": count}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_failed_keeps_its_settings_and_may_want_other_hosts() {
    let world = World::without_operator().await;
    put(&world, install("c", json!({}))).await.unwrap();
    began(&world, "c", "InstallationFailed").await;
    let refused = refusal(change(&world, "c", json!({"sshPublicKey": "b"})).await);
    assert!(
        refused.contains("spec.sshPublicKey cannot be changed"),
        "{refused}"
    );
    change(&world, "c", workers(2)).await.expect("other hosts");
    let more = json!({"provisionRequirements": {"controlPlaneAgents": 5}});
    change(&world, "c", more).await.expect("other hosts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_node_that_is_installed_may_want_workers_whatever_its_network_says() {
    let world = World::without_operator().await;
    let one = json!({"controlPlaneAgents": 1});
    let by_user = json!({"userManagedNetworking": true});
    let with_workers = json!({"controlPlaneAgents": 1, "workerAgents": 2});
    for (name, spec, later) in [
        ("left-out", json!({"provisionRequirements": one}), workers(2)),
        (
            "written",
            json!({"provisionRequirements": one, "networking": by_user}),
            workers(2),
        ),
        (
            "metal",
            json!({"provisionRequirements": one, "networking": by_user, "platformType": "BareMetal"}),
            workers(2),
        ),
        (
            "shrinks",
            json!({"provisionRequirements": with_workers, "networking": {"userManagedNetworking": false}}),
            workers(0),
        ),
    ] {
        put(&world, install(name, spec)).await.unwrap();
        for reason in ["InstallationInProgress", "InstallationCompleted"] {
            began(&world, name, reason).await;
        }
        change(&world, name, later)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let (kept, other) = (
        json!({"provisionRequirements": one}),
        json!({"userManagedNetworking": false}),
    );
    put(&world, install("kept", kept)).await.unwrap();
    began(&world, "kept", "InstallationCompleted").await;
    let refused = refusal(change(&world, "kept", json!({"networking": other})).await);
    assert!(
        refused.contains("userManagedNetworking cannot be changed"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn before_it_begins_a_single_node_with_workers_has_to_say_who_manages_its_network() {
    let world = World::without_operator().await;
    let one = json!({"provisionRequirements": {"controlPlaneAgents": 1}, "platformType": "BareMetal",
        "networking": {"userManagedNetworking": true}});
    put(&world, install("c", one)).await.unwrap();
    assert!(refusal(change(&world, "c", workers(1)).await).contains("BareMetal"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_may_be_named_later_and_then_stays() {
    let world = World::without_operator().await;
    put(&world, install("c", json!({"imageSetRef": null})))
        .await
        .unwrap();
    change(&world, "c", json!({"imageSetRef": {"name": "4.18"}}))
        .await
        .expect("there was none");
    for other in [json!(null), json!({"name": "4.19"})] {
        let refused = refusal(change(&world, "c", json!({"imageSetRef": other})).await);
        assert!(refused.contains("imageSetRef cannot be changed"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_platform_says_which_one_it_is() {
    let world = World::without_operator().await;
    let external = |external: Value| json!({"platformType": "External", "external": external});
    for (spec, word) in [
        (json!({"platformType": "External"}), "platformName"),
        (external(json!({"platformName": ""})), "platformName"),
        (external(json!({"platformName": "oci"})), "cloudControllerManager"),
    ] {
        let refused = refusal(put(&world, install("c", spec)).await);
        assert!(refused.contains(word), "{refused}");
    }
    for (name, spec) in [
        ("unknown", external(json!({}))),
        ("mine", external(json!({"platformName": "mine"}))),
        (
            "oci",
            external(json!({"platformName": "oci", "cloudControllerManager": "External"})),
        ),
        ("other", json!({"external": {"platformName": "oci"}})),
    ] {
        put(&world, install(name, spec))
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let refused = refusal(change(&world, "other", json!({"platformType": "External"})).await);
    assert!(refused.contains("cloudControllerManager"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_came_with_both_disks_can_still_be_changed() {
    let world = World::without_operator().await;
    let both = json!({"apiVersion": "agent-install.openshift.io/v1beta1", "kind": "Agent", "metadata": {"name": "a"},
        "spec": {"role": "", "approved": false, "installation_disk_id": "a", "installation_disk_path": "/dev/a"}});
    put(&world, both).await.expect("as it comes from a backup");
    let patch = async |spec: Value| {
        world
            .patch::<Agent>(&world.pool, "a", json!({"spec": spec}))
            .await
    };
    patch(json!({"approved": true})).await.expect("something else");
    patch(json!({"installation_disk_path": null}))
        .await
        .expect("it has one disk now");
    let refused = refusal(patch(json!({"installation_disk_path": "/dev/b"})).await);
    assert!(refused.contains("installation_disk"), "{refused}");
}

/// Writes an object as it is, as tools do that do not know patches.
async fn put_again<K>(world: &World, name: &str)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug
        + Serialize,
{
    let object: K = world.get(&world.pool, name).await;
    let before = object.resource_version();
    let api = world.api::<K>(&world.pool);
    let after = api.replace(name, &PostParams::default(), &object).await;
    let after = after.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(after.resource_version(), before, "nothing changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_as_it_is_was_never_changed() {
    let world = World::without_operator().await;
    let reference = json!({"pullSecretRef": {"name": "p"}, "clusterRef": {"name": "c", "namespace": "n"}});
    put(&world, infra_env("bound", reference)).await.unwrap();
    put_again::<InfraEnv>(&world, "bound").await;
    agent(&world, "installing", "installing-in-progress", "Host").await;
    put_again::<Agent>(&world, "installing").await;
    let classification = json!({"apiVersion": "agent-install.openshift.io/v1beta1", "kind": "AgentClassification",
        "metadata": {"name": "large"}, "spec": {"labelKey": "size", "labelValue": "large", "query": "true"}});
    put(&world, classification).await.unwrap();
    put_again::<AgentClassification>(&world, "large").await;
    let whole = json!({"platformType": "External", "external": {"platformName": "mine"}, "diskEncryption": {},
        "controlPlane": {"name": "master"}, "loadBalancer": {}, "proxy": {}});
    for (name, spec) in [("plain", json!({})), ("whole", whole)] {
        put(&world, install(name, spec)).await.unwrap();
        for reason in [
            "InstallationInProgress",
            "InstallationFailed",
            "InstallationCompleted",
        ] {
            began(&world, name, reason).await;
            put_again::<AgentClusterInstall>(&world, name).await;
        }
    }
}

/// Our kinds without any rule, as they are where others defined them.
fn without_rules() -> Vec<Value> {
    fn strip(schema: &mut Value) {
        match schema {
            Value::Object(fields) => {
                fields.remove("x-kubernetes-validations");
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let ours = muster_operator::crd::own(muster_operator::crd::ClusterRefs::Fixed);
    let plain = ours.into_iter().map(|crd| {
        let mut crd = serde_json::to_value(crd).unwrap();
        strip(&mut crd);
        crd
    });
    plain.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_before_there_were_rules_can_still_be_changed() {
    let place = Place::open().await;
    let front = place.front("only").await;
    let home = tempfile::tempdir().unwrap();
    let plain = home.path().join("plain.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": without_rules()});
    std::fs::write(&plain, list.to_string()).unwrap();
    place.define(&front, &[&plain]).await;
    let world = world_at(&front).await;
    let oci = json!({"platformType": "External", "external": {"platformName": "oci"}});
    for (name, spec) in [("nameless", json!({"platformType": "External"})), ("oci", oci)] {
        put(&world, install(name, spec)).await.unwrap();
    }
    let both = json!({"pullSecretRef": {"name": "p"}, "clusterRef": {"name": "c"}, "osImageVersion": "4.18"});
    put(&world, infra_env("both", both)).await.unwrap();
    place.define(&front, &[Path::new(OURS)]).await;
    world
        .until("the rules hold", async || {
            let wrong = install("probe", json!({"platformType": "External"}));
            put(&world, wrong).await.is_err()
        })
        .await;
    for name in ["nameless", "oci"] {
        change(&world, name, json!({"sshPublicKey": "b"}))
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        began(&world, name, "InstallationCompleted").await;
        change(&world, name, workers(2))
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let other = json!({"spec": {"sshAuthorizedKey": "b"}});
    world.patch::<InfraEnv>(&world.pool, "both", other).await.unwrap();
}
