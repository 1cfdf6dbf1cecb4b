//! Hosts that are fetched back from the inside of their clusters.

use super::lend::decided;
use super::*;
use crate::controller::agent::spoke::Spoke;
use crate::runtime::spoke::NoSpoke;
use k8s_openapi::api::core::v1::Node;
use muster_contract::v1::trust::TrustView;

fn reclaimable(spoke: Result<Spoke, NoSpoke>) -> Snapshot {
    let mut snapshot = snapshot(Some(agent()), Some(at_stage(lent("installed", BLUE), "Done")));
    snapshot.reclaim_image = Some("registry.example.com/muster:1".into());
    snapshot.spoke = Some(spoke);
    snapshot
}

fn with_node() -> Spoke {
    let mut node = Node::default();
    node.metadata.name = Some("worker-1.example.com".into());
    Spoke {
        node: Some(node),
        ..Spoke::default()
    }
}

#[test]
fn a_host_that_runs_is_fetched_back_from_the_inside() {
    let plan = plan(&reclaimable(Ok(with_node())));
    assert_eq!(calls(&plan), [&Call::Reclaim]);
    let kinds: Vec<_> = deeds(&plan)
        .iter()
        .map(|deed| match deed {
            Deed::Apply(object) => object["kind"].as_str().unwrap().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "Namespace",
            "ServiceAccount",
            "Role",
            "RoleBinding",
            "Secret",
            "DaemonSet"
        ]
    );
    let Some(Deed::Apply(set)) = deeds(&plan).last().copied() else {
        panic!()
    };
    assert_eq!(set["metadata"]["name"], "worker-1-example-com-reclaim");
    let words = set["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    assert!(
        words.contains("--url=http://hub.example.com:8090\"") && words.contains(HOST),
        "{words}"
    );
}

#[test]
fn a_move_by_way_of_the_inside_shows_as_a_move_while_the_host_is_on_its_way() {
    let mut leaves = reclaimable(Ok(with_node()));
    (leaves.agent, leaves.target) = (Some(Arc::new(wanting("green"))), target(GREEN));
    assert_eq!(calls(&plan(&leaves)), [&Call::Reclaim]);
    for status in ["reclaiming", "reclaiming-rebooting"] {
        let plan = decided(wanting("green"), at_stage(lent(status, BLUE), "Done"));
        assert_eq!(synced(&plan), says("True", "Moving"), "{status}");
        assert_eq!(
            (calls(&plan).len(), plan.then),
            (0, Then::Rest),
            "{status}: the feed tells"
        );
    }
}

#[test]
fn a_host_whose_cluster_cannot_help_is_waited_for() {
    let failures = [
        reclaimable(Err(NoSpoke::NoKubeconfig)),
        reclaimable(Err(NoSpoke::Failed("no answer".into()))),
        reclaimable(Ok(Spoke::default())),
        Snapshot {
            failure: Some(Failure::Spoke("forbidden".into())),
            ..reclaimable(Ok(with_node()))
        },
    ];
    for snapshot in failures {
        assert_eq!(calls(&plan(&snapshot)), [&Call::Unbind], "{:?}", snapshot.spoke);
    }
}

#[test]
fn a_host_with_a_power_controller_is_not_fetched_from_the_inside() {
    let mut snapshot = reclaimable(Ok(with_node()));
    let mut agent = agent();
    agent
        .labels_mut()
        .insert(label::BARE_METAL_HOST.into(), "metal-1".into());
    snapshot.agent = Some(Arc::new(agent));
    snapshot.has_metal = true;
    assert_eq!(calls(&plan(&snapshot)), [&Call::Unbind]);
    snapshot.has_metal = false;
    assert_eq!(
        calls(&plan(&snapshot)),
        [&Call::Reclaim],
        "its power controller is gone"
    );
}

/// What is put into the cluster, by kind.
fn applied(snapshot: &Snapshot) -> BTreeMap<String, Value> {
    let plan = plan(snapshot);
    let object = |deed: &Deed| match deed {
        Deed::Apply(object) => (**object).clone(),
        other => panic!("{other:?}"),
    };
    let objects = deeds(&plan).into_iter().map(object);
    objects
        .map(|object| (object["kind"].as_str().unwrap().to_owned(), object))
        .collect()
}

#[test]
fn the_agent_on_the_node_trusts_the_hub_like_one_of_a_discovery_image() {
    let mut snapshot = reclaimable(Ok(with_node()));
    let pod = |snapshot: &Snapshot| applied(snapshot)["DaemonSet"]["spec"]["template"]["spec"].clone();
    let plain = pod(&snapshot);
    snapshot.trust = TrustView {
        service_ca: "CA OF THE HUB".into(),
        insecure: false,
    };
    let map = applied(&snapshot)["ConfigMap"].clone();
    assert_eq!(map["metadata"]["name"], "reclaim-config");
    assert_eq!(map["data"]["service-ca-cert.crt"], "CA OF THE HUB");
    let trusting = pod(&snapshot);
    let words = trusting["containers"][0]["args"].to_string();
    assert!(
        words.contains("--cacert=/etc/assisted-service/service-ca-cert.crt"),
        "{words}"
    );
    assert!(!words.contains("--insecure"), "{words}");
    let mount = &trusting["containers"][0]["volumeMounts"][1];
    assert_eq!(mount["mountPath"], "/etc/assisted-service");
    assert_eq!(trusting["volumes"][1]["name"], mount["name"]);
    assert_eq!(trusting["volumes"][1]["configMap"]["name"], "reclaim-config");
    snapshot.trust = TrustView {
        service_ca: String::new(),
        insecure: true,
    };
    let careless = pod(&snapshot);
    assert!(
        careless["containers"][0]["args"]
            .to_string()
            .contains("--insecure=true")
    );
    assert_eq!(careless["volumes"], plain["volumes"]);
    assert!(!applied(&snapshot).contains_key("ConfigMap"));
}

#[test]
fn a_long_name_of_a_node_makes_no_object_that_would_be_refused() {
    let mut spoke = with_node();
    let long = format!("worker-1.{}.example.com", "x".repeat(60));
    spoke.node.as_mut().unwrap().metadata.name = Some(long);
    let set = applied(&reclaimable(Ok(spoke)))["DaemonSet"].clone();
    let name = format!("{HOST}-reclaim");
    assert_eq!(set["metadata"]["name"], name);
    assert_eq!(set["spec"]["selector"]["matchLabels"]["name"], name);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"]["name"], name);
    assert!(name.len() <= 63);
}

#[test]
fn the_cluster_of_a_host_is_asked_only_when_there_is_something_to_learn() {
    let quiet = snapshot(Some(wanting("blue")), Some(lent("known", BLUE)));
    assert_eq!(ask::question(&quiet), None);
    let returning = reclaimable(Err(NoSpoke::NoKubeconfig));
    assert_eq!(
        ask::question(&returning).unwrap().cluster,
        Key::new("clusters", "blue")
    );
    let joining = day_two(at_stage(lent("installing-in-progress", BLUE), "Rebooting"));
    let question = ask::question(&snapshot(Some(wanting("blue")), Some(joining))).unwrap();
    assert!(question.csrs && !question.machine);
}
