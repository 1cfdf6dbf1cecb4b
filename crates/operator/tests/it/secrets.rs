//! What people keep in Secrets, proxies and overrides, good or bad: no status, label, annotation or Event shows it.

use crate::described::one_host;
use crate::world::{World, condition, named};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use kube::Resource;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use muster_operator::crd::infra_env::{IMAGE_CREATED, reason};
use muster_operator::crd::keys::annotation;
use muster_operator::crd::{Agent, AgentClusterInstall, ClusterDeployment, InfraEnv};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

/// Every secret of this test begins with it.
const SECRET: &str = "quokka";

fn pull_secret(word: &str) -> String {
    let login = STANDARD.encode(format!("user:{SECRET}-{word}"));
    json!({ "auths": { "registry.example.com": { "auth": login } } }).to_string()
}

fn secret(name: &str, values: &[(&str, &str)]) -> Secret {
    let values = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Secret {
        metadata: named(name),
        string_data: Some(values.collect()),
        ..Secret::default()
    }
}

/// What the operator writes into the objects of a kind: all but their specs and what people annotated themselves.
async fn shown_in<K>(world: &World, namespace: &str) -> Vec<Value>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug
        + Serialize,
{
    let all = world
        .api::<K>(namespace)
        .list(&ListParams::default())
        .await
        .unwrap();
    let value_of = |object: K| {
        let mut object = serde_json::to_value(object).unwrap();
        object.as_object_mut().unwrap().remove("spec");
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.remove(annotation::INSTALL_CONFIG_OVERRIDES);
        }
        object
    };
    all.items.into_iter().map(value_of).collect()
}

async fn shown(world: &World) -> Vec<Value> {
    let mut all = Vec::new();
    for namespace in [&world.pool, &world.clusters] {
        all.extend(shown_in::<InfraEnv>(world, namespace).await);
        all.extend(shown_in::<Agent>(world, namespace).await);
        all.extend(shown_in::<ClusterDeployment>(world, namespace).await);
        all.extend(shown_in::<AgentClusterInstall>(world, namespace).await);
        all.extend(shown_in::<Event>(world, namespace).await);
    }
    all
}

/// As it is, in base64 as in a pull secret, or escaped in a text.
fn holds(text: &str) -> bool {
    let login = STANDARD.encode(format!("user:{SECRET}"));
    // The last letters of base64 depend on what follows.
    text.contains(SECRET) || text.contains(&login[..login.len() - 4])
}

async fn nobody_tells(world: &World) {
    for object in shown(world).await {
        let text = object.to_string();
        assert!(!holds(&text), "a secret is shown: {object:#}");
    }
}

#[test]
fn a_secret_is_found_however_it_is_written() {
    assert!(holds(&pull_secret("pull")));
    assert!(holds("http://user:quokka-proxy@10.0.0.1"));
    assert!(!holds("nothing"));
}

#[tokio::test(flavor = "multi_thread")]
async fn good_secrets_are_written_nowhere() {
    let mut world = World::start().await;
    let proxy = json!({ "httpProxy": format!("http://user:{SECRET}-proxy@10.0.0.1:3128") });
    let pool = world
        .pool_of("lab", |infra_env| {
            infra_env.spec.proxy = serde_json::from_value(proxy.clone()).unwrap();
            infra_env.spec.ignition_config_override =
                json!({ "ignition": { "version": "3.2.0" }, "storage": { "files": [
                { "path": "/etc/x", "contents": { "source": format!("data:,{SECRET}-file") } }] } })
                .to_string();
        })
        .await;
    let changed = json!({ "stringData": { ".dockerconfigjson": pull_secret("pool") } });
    world
        .patch::<Secret>(&world.pool, "lab-pull", changed)
        .await
        .unwrap();
    let mut spec = one_host();
    spec["proxy"] = proxy;
    world.describe("blue", spec).await;
    let changed = json!({ "stringData": { ".dockerconfigjson": pull_secret("cluster") } });
    world
        .patch::<Secret>(&world.clusters, "blue-pull", changed)
        .await
        .unwrap();
    let name = world.free_hosts(pool, 1).await.remove(0);
    let token = format!("{SECRET}-token");
    world
        .create(&world.clusters, &secret("token", &[("ignition-token", &token)]))
        .await;
    let settings = json!({ "spec": {
        "approved": true,
        "ignitionEndpointTokenReference": { "namespace": world.clusters, "name": "token" },
        "ignitionEndpointHTTPHeaders": { "X-Key": format!("{SECRET}-header") },
        "ignitionConfigOverrides": json!({ "ignition": { "version": "3.2.0" }, "storage": { "files": [
            { "path": "/etc/y", "contents": { "source": format!("data:,{SECRET}-node") } }] } }).to_string(),
    }});
    world.change_agent(&name, settings).await.unwrap();
    world.want(&name, Some("blue")).await.unwrap();
    world.install_in("blue", "adding-hosts").await;
    nobody_tells(&world).await;
    world.delete_deployment("blue").await;
    world.gone::<ClusterDeployment>(&world.clusters, "blue").await;
    nobody_tells(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_named_without_its_content() {
    let world = World::start().await;
    let failed = |infra_env: &InfraEnv| {
        let status = infra_env.status.clone().unwrap_or_default();
        condition(&status.conditions, IMAGE_CREATED).is_some_and(|(_, why, _)| why == reason::FAILED)
    };
    let word = |what: &str| format!("{SECRET}-{what}");
    world
        .infra_env("proxy", |infra_env| {
            let proxy = json!({ "httpProxy": format!("ftp://user:{}@10.0.0.1", word("proxy")) });
            infra_env.spec.proxy = serde_json::from_value(proxy).unwrap();
        })
        .await;
    world
        .infra_env("ignition", |infra_env| {
            infra_env.spec.ignition_config_override = format!(r#"{{"ignition": {}}}"#, word("ignition"));
        })
        .await;
    world.infra_env("pull", |_| ()).await;
    // The API server sees to it that it is JSON.
    let no_login = json!({ "auths": { "registry.example.com": { "auth": word("pull") } } }).to_string();
    let broken = json!({ "stringData": { ".dockerconfigjson": no_login } });
    world
        .patch::<Secret>(&world.pool, "pull-pull", broken.clone())
        .await
        .unwrap();
    for name in ["proxy", "ignition", "pull"] {
        world.when(&world.pool, name, "failed", failed).await;
    }

    let map = ConfigMap {
        metadata: named("extra"),
        data: Some([("a.yaml".to_owned(), format!("a: [{}", word("manifest")))].into()),
        ..ConfigMap::default()
    };
    world.create(&world.clusters, &map).await;
    let mut spec = one_host();
    spec["manifestsConfigMapRefs"] = json!([{ "name": "extra" }]);
    world.describe("manifest", spec).await;
    let mut spec = one_host();
    spec["proxy"] = json!({ "httpProxy": format!("ftp://user:{}@10.0.0.1", word("proxy")) });
    world.describe("proxy", spec).await;
    world.describe("overrides", one_host()).await;
    let broken_overrides = format!(r#"{{"fips": {}}}"#, word("config"));
    let annotated =
        json!({ "metadata": { "annotations": { annotation::INSTALL_CONFIG_OVERRIDES: broken_overrides } } });
    world.change_install("overrides", annotated).await;
    world.describe("pull", one_host()).await;
    world
        .patch::<Secret>(&world.clusters, "pull-pull", broken)
        .await
        .unwrap();
    for name in ["manifest", "proxy", "overrides", "pull"] {
        world
            .install_says(name, "SpecSynced", "False", "InputError")
            .await;
    }

    let pool = world.pool_of("lab", |_| ()).await;
    let (bmc, ignition, token) = (
        world.silent_host(pool).await,
        world.silent_host(pool).await,
        world.silent_host(pool).await,
    );
    let parts = [
        ("address", format!("redfish://user:{}@bmc", word("address"))),
        ("username", "u".to_owned()),
        ("password", word("password")),
        ("certificateVerification", word("verification")),
    ];
    let parts = parts.each_ref().map(|(key, value)| (*key, value.as_str()));
    world.create(&world.pool, &secret("bmc", &parts)).await;
    let lines = format!("{}\nX: y", word("token"));
    world
        .create(&world.pool, &secret("token", &[("ignition-token", &lines)]))
        .await;
    for (name, spec) in [
        (&bmc, json!({ "fencingCredentialsSecretRef": "bmc" })),
        (
            &ignition,
            json!({ "ignitionConfigOverrides": format!(r#"{{"ignition": {}}}"#, word("ignition")) }),
        ),
        (
            &token,
            json!({ "ignitionEndpointTokenReference": { "namespace": world.pool, "name": "token" } }),
        ),
    ] {
        world.change_agent(name, json!({ "spec": spec })).await.unwrap();
        let refused = |agent: &Agent| crate::lent::says(agent, "SpecSynced").0 == "False";
        world.agent_when(name, "refused", refused).await;
    }
    nobody_tells(&world).await;
}
