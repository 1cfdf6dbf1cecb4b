//! Machines of hosts that join running clusters: what they trust, and which objects the cluster gets.

use super::super::{authority, machine};
use super::*;
use crate::controller::bare_metal_host::snapshot::Tenant;
use crate::crd::agent_cluster_install::AgentClusterInstall;
use crate::crd::cluster_deployment::ClusterDeployment;
use crate::crd::reference::ClusterRef;
use crate::runtime::spoke::NoSpoke;
use std::time::Duration;

/// A certificate, as clusters have them.
const CERTIFICATE: &str = include_str!("authority.pem");
const AGAIN: Then = Then::After(Duration::from_secs(60));

fn cluster() -> Tenant {
    let mut deployment = ClusterDeployment::default();
    deployment.spec.installed = true;
    let mut install = AgentClusterInstall::default();
    install.spec.provision_requirements.control_plane_agents = 3;
    Tenant {
        key: Key::new("clusters", "blue"),
        deployment: Arc::new(deployment),
        install: Some(Arc::new(install)),
    }
}

/// A host of a running cluster, in a state of the hub.
fn joining(state: &str) -> Snapshot {
    let mut agent = agent(state, "");
    agent.spec.cluster_deployment_name = Some(ClusterRef {
        name: "blue".into(),
        namespace: "clusters".into(),
    });
    let status = agent.status.as_mut().unwrap();
    status.role = "worker".into();
    status.inventory.hostname = "rack-one".into();
    let mut snapshot = converged(deployed("provisioning"), Some(agent));
    snapshot.tenant = Some(cluster());
    snapshot
}

fn found(bundle: &str) -> Option<Result<Option<authority::Found>, NoSpoke>> {
    Some(Ok(Some(authority::Found {
        place: Key::new("kube-system", "root-ca"),
        bundle: Some(bundle.into()),
    })))
}

fn waiting_with(bundle: &str, overrides: Option<&str>) -> Snapshot {
    let mut snapshot = joining("known");
    snapshot.authority = found(bundle);
    if let Some(text) = overrides {
        let host = annotated(
            (*snapshot.host).clone(),
            &[(annotation::BMAC_IGNITION_OVERRIDES, text)],
        );
        snapshot.host = Arc::new(host);
    }
    snapshot
}

fn overrides(snapshot: &Snapshot) -> Value {
    let text = noted(snapshot, annotation::BMAC_IGNITION_OVERRIDES).unwrap();
    let agent = snapshot.agent.as_ref().unwrap();
    assert_eq!(agent.spec.ignition_config_overrides, text, "the Agent gets it");
    serde_json::from_str(text).unwrap()
}

fn sources(config: &Value) -> Vec<String> {
    let all = config["ignition"]["security"]["tls"]["certificateAuthorities"].as_array();
    let source = |one: &Value| one["source"].as_str().unwrap().to_owned();
    all.into_iter().flatten().map(source).collect()
}

pub(super) fn reports(plan: &Plan) -> Vec<String> {
    let found = plan.steps.iter().filter_map(|step| match step {
        Step::Report(texts) => Some(texts.clone()),
        _ => None,
    });
    found.flatten().collect()
}

#[test]
fn a_host_that_joins_trusts_the_authority_of_its_cluster() {
    let after = reconciled(&waiting_with(&format!("\n{CERTIFICATE}\n\n"), None));
    let config = overrides(&after);
    assert_eq!(config["ignition"]["version"], "3.1.0");
    let [source] = &sources(&config)[..] else {
        panic!("{config}");
    };
    let text = source
        .strip_prefix("data:text/plain;charset=utf-8;base64,")
        .unwrap();
    use base64::Engine;
    let text = base64::prelude::BASE64_STANDARD.decode(text).unwrap();
    assert_eq!(text, CERTIFICATE.trim().as_bytes());
    assert!(plan(&after).steps.is_empty(), "and nothing is written again");
}

#[test]
fn an_agent_trusts_it_no_later_than_it_belongs_to_the_cluster() {
    let mut snapshot = joining("known-unbound");
    let mut agent = (**snapshot.agent.as_ref().unwrap()).clone();
    agent.spec.cluster_deployment_name = None;
    snapshot.agent = Some(Arc::new(agent));
    let lent = [(annotation::BMAC_CLUSTER_REFERENCE, "clusters/blue")];
    snapshot.host = Arc::new(annotated((*snapshot.host).clone(), &lent));
    snapshot.deployment = snapshot.tenant.take().map(|tenant| tenant.deployment);
    assert_eq!(authority::question(&snapshot), Some(Key::new("clusters", "blue")));
    snapshot.authority = found(CERTIFICATE);
    let steps = plan(&snapshot).steps;
    let patches: Vec<&Value> = steps
        .iter()
        .filter_map(|step| match step {
            Step::PatchAgent(patch) => Some(&patch["spec"]),
            _ => None,
        })
        .collect();
    let [spec] = patches[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(spec["clusterDeploymentName"]["name"], "blue");
    let config: Value = serde_json::from_str(spec["ignitionConfigOverrides"].as_str().unwrap()).unwrap();
    assert_eq!(sources(&config).len(), 1);
}

#[test]
fn what_people_wrote_stays_beside_it() {
    let own = r#"{"ignition":{"version":"3.2.0","security":{"tls":{"certificateAuthorities":[{"source":"https://mine"}]}}},
        "storage":{"files":[{"path":"/etc/mine","contents":{"source":"data:,x"}}]},"future":[1]}"#;
    let after = reconciled(&waiting_with(CERTIFICATE, Some(own)));
    let config = overrides(&after);
    assert_eq!(config["ignition"]["version"], "3.2.0");
    assert_eq!(config["storage"]["files"][0]["path"], "/etc/mine");
    assert_eq!(config["future"], json!([1]));
    let both = sources(&config);
    assert!(
        both.len() == 2 && both.contains(&"https://mine".to_owned()),
        "{both:?}"
    );
}

#[test]
fn overrides_that_people_wrote_on_the_agent_stay_too() {
    let own = r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/etc/mine"}]}}"#;
    let mut snapshot = waiting_with(CERTIFICATE, None);
    let mut agent = (**snapshot.agent.as_ref().unwrap()).clone();
    agent.spec.ignition_config_overrides = own.into();
    snapshot.agent = Some(Arc::new(agent));
    let config = overrides(&reconciled(&snapshot));
    assert_eq!(config["storage"]["files"][0]["path"], "/etc/mine");
    assert_eq!(sources(&config).len(), 1);
}

#[test]
fn overrides_that_nothing_can_be_added_to_are_a_complaint() {
    for text in [
        "not json",
        "[]",
        r#"{"ignition":{"version":"2.2.0"}}"#,
        r#"{"ignition":{"version":"3.1.0","security":{"tls":{"certificateAuthorities":{}}}}}"#,
    ] {
        let snapshot = reconciled(&waiting_with(CERTIFICATE, Some(text)));
        let texts = mistakes(&plan(&snapshot));
        assert!(
            texts.len() == 1 && texts[0].contains("ignition-config-overrides"),
            "{texts:?}"
        );
        assert_eq!(noted(&snapshot, annotation::BMAC_IGNITION_OVERRIDES), Some(text));
    }
}

#[test]
fn a_cluster_without_a_readable_authority_is_reported_and_read_again() {
    let answers: [(Result<Option<authority::Found>, NoSpoke>, &str); 4] = [
        (Err(NoSpoke::NoKubeconfig), "kubeconfig"),
        (
            Err(NoSpoke::Failed("connection refused".into())),
            "connection refused",
        ),
        (Ok(None), "kube-system/root-ca"),
        (found("no certificate").unwrap(), "kube-system/root-ca"),
    ];
    for (answer, expected) in answers {
        let mut snapshot = joining("known");
        snapshot.authority = Some(answer);
        let snapshot = reconciled(&snapshot);
        let plan = plan(&snapshot);
        let texts = reports(&plan);
        assert!(texts.len() == 1 && texts[0].contains(expected), "{texts:?}");
        assert_eq!(plan.then, AGAIN);
        assert_eq!(noted(&snapshot, annotation::BMAC_IGNITION_OVERRIDES), None);
    }
}

#[test]
fn only_clusters_that_run_are_asked_and_only_until_the_host_is_installed() {
    assert_eq!(
        authority::question(&joining("known")),
        Some(Key::new("clusters", "blue"))
    );
    assert_eq!(
        authority::question(&joining("known-unbound")),
        Some(Key::new("clusters", "blue")),
        "on its way there"
    );
    for state in [
        "installing-in-progress",
        "installed",
        "added-to-existing-cluster",
        "error",
    ] {
        assert_eq!(authority::question(&joining(state)), None, "{state}");
    }
    let mut new = joining("known");
    new.tenant.as_mut().unwrap().deployment = Arc::default();
    assert_eq!(authority::question(&new), None);
    let mut unbound = joining("known");
    unbound.tenant = None;
    assert_eq!(authority::question(&unbound), None);
    let mut leaves = joining("known");
    let mut host = (*leaves.host).clone();
    host.metadata.deletion_timestamp = Some(clock::time(now()));
    leaves.host = Arc::new(host);
    assert_eq!(authority::question(&leaves), None);
}

#[test]
fn a_host_that_is_back_trusts_its_last_cluster_no_longer() {
    let own = r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/etc/mine"}]}}"#;
    for before in [None, Some(own)] {
        let mut snapshot = reconciled(&waiting_with(CERTIFICATE, before));
        let mut free = (**snapshot.agent.as_ref().unwrap()).clone();
        free.spec.cluster_deployment_name = None;
        free.status.as_mut().unwrap().debug_info.state = "known-unbound".into();
        snapshot.agent = Some(Arc::new(free));
        (snapshot.tenant, snapshot.authority) = (None, None);
        let back = reconciled(&snapshot);
        let left = noted(&back, annotation::BMAC_IGNITION_OVERRIDES);
        let left = left.map(|text| serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(left, before.map(|text| serde_json::from_str(text).unwrap()));
        assert_eq!(noted(&back, annotation::BMAC_AUTHORITY), None);
        let agent = &back.agent.as_ref().unwrap().spec;
        assert_eq!(agent.ignition_config_overrides.is_empty(), before.is_none());
        assert!(!agent.ignition_config_overrides.contains("base64"));
    }
}

#[test]
fn another_authority_takes_the_place_of_the_one_before() {
    let mut snapshot = reconciled(&waiting_with(CERTIFICATE, None));
    let before = sources(&overrides(&snapshot));
    snapshot.authority = found(&format!("{CERTIFICATE}{CERTIFICATE}"));
    let after = sources(&overrides(&reconciled(&snapshot)));
    assert_eq!(after.len(), 1);
    assert_ne!(after, before);
}

fn master() -> Value {
    json!({ "spec": { "providerSpec": { "value": { "image": { "checksum": "sum", "url": "http://image" } } } } })
}

pub(super) fn installing(known: machine::Known) -> Snapshot {
    let mut snapshot = joining("installing-in-progress");
    snapshot.machines = Some(Ok(known));
    let mut host = (*snapshot.host).clone();
    host.spec.bmc =
        serde_json::from_value(json!({ "address": "redfish://10.0.0.9/1", "credentialsName": "secret-1" }))
            .unwrap();
    host.spec.rest.insert("bootMode".into(), json!("UEFI"));
    snapshot.host = Arc::new(host);
    snapshot
}

pub(super) fn first() -> machine::Known {
    machine::Known {
        master: Some(master()),
        ..machine::Known::default()
    }
}

pub(super) fn deeds(plan: &Plan) -> Vec<machine::Deed> {
    let deeds = plan.steps.iter().filter_map(|step| match step {
        Step::Join(deed) => Some(deed.clone()),
        _ => None,
    });
    deeds.collect()
}

pub(super) fn created(deed: &machine::Deed) -> &Value {
    match &deed.write {
        machine::Write::Create(object) => object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cluster_gets_the_objects_of_its_new_machine_and_then_that_is_noted() {
    let snapshot = installing(first());
    let plan = plan(&snapshot);
    let [metal, machine] = &deeds(&plan)[..] else {
        panic!("{plan:?}");
    };
    let order: Vec<bool> = plan
        .steps
        .iter()
        .map(|step| matches!(step, Step::PatchHost(_)))
        .collect();
    assert_eq!(
        order[..3],
        [false, false, true],
        "noted when both are there: {plan:?}"
    );

    assert_eq!(
        (metal.thing, metal.name.as_str()),
        (machine::Thing::Metal, "rack-1")
    );
    let metal = created(metal);
    assert_eq!(metal["metadata"]["namespace"], "openshift-machine-api");
    assert_eq!(
        metal["spec"]["bmc"],
        json!({ "address": "", "credentialsName": "" })
    );
    assert_eq!(metal["spec"]["bootMode"], "UEFI");
    assert_eq!(metal["spec"]["bootMACAddress"], MAC.to_uppercase());
    assert_eq!(
        metal["spec"]["consumerRef"],
        json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "blue-rack-1",
            "namespace": "openshift-machine-api" })
    );
    let annotations = &metal["metadata"]["annotations"];
    assert_eq!(annotations["inspect.metal3.io"], "disabled");
    let details = annotations["inspect.metal3.io/hardwaredetails"].as_str().unwrap();
    let details: Value = serde_json::from_str(details).unwrap();
    assert_eq!(details["hostname"], "rack-one");

    assert_eq!(
        (machine.thing, machine.name.as_str()),
        (machine::Thing::Machine, "blue-rack-1")
    );
    let machine = created(machine);
    assert_eq!(
        machine["metadata"],
        json!({ "name": "blue-rack-1", "namespace": "openshift-machine-api",
            "annotations": { "metal3.io/BareMetalHost": "openshift-machine-api/rack-1" },
            "labels": {
                "machine.openshift.io/cluster-api-cluster": "blue",
                "machine.openshift.io/cluster-api-machine-role": "worker",
                "machine.openshift.io/cluster-api-machine-type": "worker",
            } })
    );
    assert_eq!(
        machine["spec"],
        json!({ "providerSpec": { "value": {
            "apiVersion": "baremetal.cluster.k8s.io/v1alpha1", "kind": "BareMetalMachineProviderSpec",
            "image": { "checksum": "sum", "url": "http://image" },
        } } })
    );
    let after = after(&snapshot, &plan);
    assert!(noted(&after, annotation::BMAC_SPOKE_CREATED).is_some());
    assert_eq!(machine::question(&after), None, "once");
}

#[test]
fn what_is_there_already_is_changed_where_it_differs_and_keeps_the_rest() {
    let made = deeds(&plan(&installing(first())));
    let mut known = machine::Known {
        metal: Some(created(&made[0]).clone()),
        machine: Some(created(&made[1]).clone()),
        ..first()
    };
    assert!(
        deeds(&plan(&installing(known.clone()))).is_empty(),
        "somebody was killed before it was noted"
    );
    known.metal.as_mut().unwrap()["metadata"]["annotations"]["theirs"] = json!("kept");
    known.metal.as_mut().unwrap()["spec"]["bmc"]["credentialsName"] = json!("left-over");
    known.machine.as_mut().unwrap()["spec"]["providerID"] = json!("kept");
    known.machine.as_mut().unwrap()["metadata"]["labels"] = json!({ "theirs": "kept" });
    let plan = plan(&installing(known));
    let [metal, machine] = &deeds(&plan)[..] else {
        panic!("{plan:?}");
    };
    assert_eq!(
        metal.write,
        machine::Write::Change(json!({ "spec": { "bmc": { "credentialsName": "" } } }))
    );
    let machine::Write::Change(patch) = &machine.write else {
        panic!("{machine:?}");
    };
    assert_eq!(patch["metadata"]["labels"].as_object().unwrap().len(), 3);
    assert_eq!(patch.get("spec"), None);
}

#[test]
fn details_that_were_consumed_are_not_written_again() {
    let mut metal = created(&deeds(&plan(&installing(first())))[0]).clone();
    metal["metadata"]["annotations"] = json!({ "inspect.metal3.io": "disabled" });
    metal["status"] = json!({ "hardware": { "hostname": "rack-one" } });
    let known = machine::Known {
        metal: Some(metal),
        ..first()
    };
    let things: Vec<_> = deeds(&plan(&installing(known)))
        .iter()
        .map(|deed| deed.thing)
        .collect();
    assert_eq!(things, [machine::Thing::Machine]);
}

#[test]
fn a_cluster_that_cannot_get_the_objects_is_reported_and_tried_again() {
    let mut unreachable = installing(first());
    unreachable.machines = Some(Err(NoSpoke::Failed("it has no Machines".into())));
    let mut refused = installing(first());
    refused.failure = Some("BareMetalHost openshift-machine-api/rack-1: forbidden".into());
    let mut image = first();
    image.master = Some(json!({ "spec": { "providerSpec": { "value": {} } } }));
    for (snapshot, expected) in [
        (unreachable, "no Machines"),
        (refused, "forbidden"),
        (installing(image), "image"),
    ] {
        let plan = plan(&snapshot);
        let texts = reports(&plan);
        assert!(
            texts.len() == 1 && texts[0].contains(expected) && texts[0].contains("clusters/blue"),
            "{texts:?}"
        );
        assert_eq!((plan.then, deeds(&plan).len()), (AGAIN, 0));
        assert_eq!(
            noted(&after(&snapshot, &plan), annotation::BMAC_SPOKE_CREATED),
            None
        );
    }
}

#[test]
fn a_cluster_without_masters_is_left_alone_and_not_reported() {
    let plan = plan(&installing(machine::Known::default()));
    assert!(plan.steps.is_empty(), "{plan:?}");
    assert_eq!(plan.then, AGAIN);
}

#[test]
fn clusters_without_machines_and_hosts_that_are_not_being_installed_are_passed_over() {
    assert!(machine::question(&joining("installing")).is_some());
    assert!(machine::question(&joining("installing-in-progress")).is_some());
    for state in [
        "known",
        "preparing-successful",
        "installing-pending-user-action",
        "added-to-existing-cluster",
    ] {
        assert_eq!(machine::question(&joining(state)), None, "{state}");
    }
    let with = |change: fn(&mut AgentClusterInstall)| {
        let mut snapshot = joining("installing");
        let tenant = snapshot.tenant.as_mut().unwrap();
        let mut install = (**tenant.install.as_ref().unwrap()).clone();
        change(&mut install);
        tenant.install = Some(Arc::new(install));
        machine::question(&snapshot)
    };
    assert!(with(|_| ()).is_some());
    assert_eq!(with(|install| install.spec.platform_type = "None".into()), None);
    assert_eq!(
        with(|install| install.spec.networking.user_managed_networking = Some(true)),
        None
    );
    assert_eq!(
        with(|install| install.spec.provision_requirements.control_plane_agents = 1),
        None
    );
    let capabilities = |more: &str| {
        format!(
            r#"{{"capabilities":{{"baselineCapabilitySet":"None","additionalEnabledCapabilities":[{more}]}}}}"#
        )
    };
    for (more, expected) in [(r#""baremetal""#, false), (r#""baremetal","MachineAPI""#, true)] {
        let mut snapshot = joining("installing");
        let tenant = snapshot.tenant.as_mut().unwrap();
        let mut install = (**tenant.install.as_ref().unwrap()).clone();
        install
            .annotations_mut()
            .insert(annotation::INSTALL_CONFIG_OVERRIDES.into(), capabilities(more));
        tenant.install = Some(Arc::new(install));
        assert_eq!(machine::question(&snapshot).is_some(), expected, "{more}");
    }
    let mut gone = joining("installing");
    gone.tenant.as_mut().unwrap().install = None;
    assert_eq!(machine::question(&gone), None);
    let mut new = joining("installing");
    new.tenant.as_mut().unwrap().deployment = Arc::default();
    assert_eq!(machine::question(&new), None);
}

#[test]
fn whatever_way_a_host_came_back_its_next_cluster_gets_the_objects_anew() {
    let mut snapshot = joining("known-unbound");
    let host = annotated(
        (*snapshot.host).clone(),
        &[(annotation::BMAC_SPOKE_CREATED, "today")],
    );
    snapshot.host = Arc::new(host);
    assert_eq!(
        noted(&reconciled(&snapshot), annotation::BMAC_SPOKE_CREATED),
        None
    );
    let mut installed = joining("added-to-existing-cluster");
    let host = annotated(
        (*installed.host).clone(),
        &[(annotation::BMAC_SPOKE_CREATED, "today")],
    );
    installed.host = Arc::new(host);
    assert_eq!(
        noted(&reconciled(&installed), annotation::BMAC_SPOKE_CREATED),
        Some("today")
    );
}
