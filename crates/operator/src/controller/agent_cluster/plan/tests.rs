use super::endpoint::without_path;
use super::*;
use crate::crd::AgentCluster;
use crate::crd::agent_cluster::ApiEndpoint;
use crate::crd::agent_cluster_install::IgnitionEndpoint;
use crate::crd::reference::FullRef;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn agent_cluster() -> AgentCluster {
    let mut cluster: AgentCluster = parse(json!({
        "apiVersion": "capi-provider.agent-install.openshift.io/v1beta1", "kind": "AgentCluster",
        "metadata": {
            "name": "blue", "namespace": "hcp", "uid": "uid-of-blue",
            "finalizers": [finalizer::AGENT_CLUSTER],
            "labels": { label::BACKUP: "true" },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "blue-1", "uid": "uid-of-cluster",
            }],
        },
        "spec": {},
    }));
    cluster.spec.ignition_endpoint = Some(IgnitionEndpoint {
        url: "https://ignition.example.com/ignition".into(),
        ca_certificate_reference: Some(FullRef {
            namespace: "hcp".into(),
            name: "ignition-ca".into(),
        }),
    });
    cluster.spec.control_plane_endpoint = Some(ApiEndpoint {
        host: "api.example.com".into(),
        port: Some(6443),
    });
    cluster
}

/// With everything there is to begin with.
fn snapshot() -> Snapshot {
    Snapshot {
        key: Key::new("hcp", "blue"),
        cluster: Arc::new(agent_cluster()),
        owner: Some(Arc::new(parse(json!({
            "metadata": { "name": "blue-1", "namespace": "hcp" },
            "spec": { "controlPlaneRef": {
                "apiGroup": "hypershift.openshift.io", "kind": "HostedControlPlane", "name": "plane",
            } },
        })))),
        control_plane: Plane::Found(Arc::new(parse(json!({
            "metadata": { "name": "plane", "namespace": "hcp" },
            "spec": { "dns": { "baseDomain": "example.com" }, "pullSecret": { "name": "pull" } },
            "status": { "kubeConfig": { "name": "admin", "key": "kubeconfig" } },
        })))),
        deployment: None,
        taken: None,
        install: None,
        unlabelled: Vec::new(),
        elsewhere: false,
        retry: Duration::from_secs(10),
        now: Timestamp::from_second(1000).unwrap(),
    }
}

fn change(snapshot: &mut Snapshot, change: impl FnOnce(&mut AgentCluster)) {
    change(Arc::make_mut(&mut snapshot.cluster));
}

/// With the objects the plan asks for.
fn made(mut snapshot: Snapshot) -> Snapshot {
    for _ in 0..3 {
        for step in plan(&snapshot).steps {
            match step {
                Step::CreateDeployment(deployment) => {
                    let mut deployment = *deployment;
                    deployment.metadata.uid = Some("uid-of-deployment".into());
                    snapshot.deployment = Some(Arc::new(deployment));
                }
                Step::CreateInstall(install) => snapshot.install = Some(Arc::new(*install)),
                Step::Status(status) => {
                    change(&mut snapshot, |cluster| cluster.status = Some(parse(status)));
                }
                _ => {}
            }
        }
    }
    snapshot
}

fn said(plan: &Plan) -> (bool, String, String) {
    let status = plan.steps.iter().find_map(|step| match step {
        Step::Status(status) => Some(status.clone()),
        _ => None,
    });
    let status = status.unwrap_or_else(|| panic!("{plan:?}"));
    let ready = &status["conditions"][0];
    assert_eq!(ready["type"], "Ready");
    (
        status["ready"] == true,
        ready["reason"].as_str().unwrap().to_owned(),
        ready["message"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn a_hosted_cluster_becomes_a_deployment_that_is_installed() {
    let plan = plan(&snapshot());
    let [Step::CreateDeployment(deployment)] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(plan.then, Then::Again);
    assert_eq!(Key::of(&**deployment), Key::new("hcp", "blue"));
    assert_eq!(deployment.labels()[label::AGENT_CLUSTER], "blue");
    assert_eq!(deployment.owner_references()[0].uid, "uid-of-blue");
    let spec = &deployment.spec;
    assert!(spec.installed);
    assert_eq!(
        (spec.cluster_name.as_str(), spec.base_domain.as_str()),
        ("plane", "example.com")
    );
    assert_eq!(deployment.install_name(), Some("blue"));
    let metadata = spec.cluster_metadata.clone().unwrap();
    assert_eq!(
        (metadata.cluster_id.as_str(), metadata.infra_id.as_str()),
        ("uid-of-cluster", "uid-of-cluster")
    );
    assert_eq!(metadata.admin_kubeconfig_secret_ref.name, "admin");
    assert_eq!(metadata.admin_password_secret_ref, None);
}

#[test]
fn secrets_are_labelled_before_they_are_named() {
    let mut snapshot = snapshot();
    let labels = BTreeMap::from([(label::BACKUP.to_owned(), "true".to_owned())]);
    snapshot.unlabelled = vec![(Key::new("hcp", "pull"), labels.clone())];
    let plan = plan(&snapshot);
    assert!(
        matches!(&plan.steps[..], [Step::LabelSecret(key, _), Step::CreateDeployment(_)] if key.name == "pull"),
        "{plan:?}"
    );
}

#[test]
fn what_is_waited_for_is_said() {
    let lacks = |edit: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = snapshot();
        edit(&mut snapshot);
        let plan = plan(&snapshot);
        let (ready, reason, text) = said(&plan);
        assert!(!ready);
        assert_eq!(reason, "WaitingForControlPlane");
        (text, plan.then)
    };
    let (text, then) = lacks(&|snapshot| snapshot.owner = None);
    assert!(text.contains("blue-1") && then == Then::Rest, "{text}");
    let (text, then) = lacks(&|snapshot| snapshot.control_plane = Plane::Absent);
    assert!(
        text.contains("HostedControlPlane plane") && then == Then::Rest,
        "{text}"
    );
    let (text, _) = lacks(&|snapshot| {
        bare(snapshot);
    });
    assert!(text.contains("status.kubeConfig"), "{text}");
}

/// The control plane has not begun.
fn bare(snapshot: &mut Snapshot) {
    let Plane::Found(plane) = &mut snapshot.control_plane else {
        panic!("{:?}", snapshot.control_plane)
    };
    Arc::make_mut(plane).status = None;
}

#[test]
fn a_control_plane_that_nobody_watches_is_asked_for_and_less_often_when_it_cannot_be_read() {
    let of = |edit: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = snapshot();
        edit(&mut snapshot);
        let owner = Arc::make_mut(snapshot.owner.as_mut().unwrap());
        owner.spec.control_plane_ref.as_mut().unwrap().api_group = Some("other.example.com".into());
        let plan = plan(&snapshot);
        let (_, reason, text) = said(&plan);
        assert_eq!(reason, "WaitingForControlPlane");
        let Then::After(wait) = plan.then else {
            panic!("nobody watches that kind: {plan:?}")
        };
        (wait, text)
    };
    let (unready, _) = of(&bare);
    let (absent, _) = of(&|snapshot| snapshot.control_plane = Plane::Absent);
    let (refused, text) = of(&|snapshot| {
        snapshot.control_plane = Plane::NotAllowed("planes.other.example.com".into());
    });
    assert_eq!(unready, WAIT);
    assert!(unready < absent && absent < refused);
    assert!(
        text.contains("the verb get on planes.other.example.com") && text.contains("agentClusterRef"),
        "{text}"
    );
}

#[test]
fn the_install_is_made_after_the_deployment_and_then_the_cluster_is_ready() {
    let mut snapshot = made(snapshot());
    let install = snapshot.install.clone().unwrap();
    assert_eq!(install.spec.networking.user_managed_networking, Some(true));
    assert_eq!(install.spec.provision_requirements.control_plane_agents, 3);
    let endpoint = install.spec.ignition_endpoint.clone().unwrap();
    assert_eq!(endpoint.url, "https://ignition.example.com");
    assert_eq!(endpoint.ca_certificate_reference.unwrap().name, "ignition-ca");
    assert_eq!(install.owner_references()[0].uid, "uid-of-deployment");
    let status = snapshot.cluster.status.clone().unwrap();
    assert!(status.ready);
    assert_eq!(status.cluster_deployment_reference.name, "blue");
    assert_eq!(
        plan(&snapshot),
        Plan::default(),
        "a second reconcile writes nothing"
    );
    change(&mut snapshot, |cluster| {
        cluster.spec.control_plane_endpoint = None
    });
    let again = plan(&snapshot);
    assert!(
        again
            .steps
            .iter()
            .all(|step| !format!("{step:?}").contains("\"ready\": Bool(false)")),
        "{again:?}"
    );
}

#[test]
fn without_an_endpoint_of_the_control_plane_it_is_not_ready() {
    let mut snapshot = snapshot();
    change(&mut snapshot, |cluster| {
        cluster.spec.control_plane_endpoint = None
    });
    let snapshot = made(snapshot);
    let status = snapshot.cluster.status.clone().unwrap();
    assert!(!status.ready);
    assert_eq!(status.conditions[0].reason, "WaitingForControlPlaneEndpoint");
    assert_eq!(
        status.cluster_deployment_reference.name, "blue",
        "machines can be bound all the same"
    );
}

#[test]
fn a_deployment_that_went_is_not_made_anew() {
    let mut snapshot = made(snapshot());
    snapshot.deployment = None;
    let (_, reason, _) = said(&plan(&snapshot));
    assert_eq!(reason, "ClusterDeploymentNotFound");
}

/// What is left of an AgentCluster of this name that was there before.
fn predecessor(snapshot: &Snapshot) -> ClusterDeployment {
    let mut old = deployment::new(snapshot).unwrap();
    old.metadata.owner_references.as_mut().unwrap()[0].uid = "of its predecessor".into();
    old.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(900).unwrap()));
    old
}

#[test]
fn made_anew_while_the_old_deployment_still_goes_it_waits_and_then_makes_its_own() {
    let mut snapshot = snapshot();
    snapshot.deployment = Some(Arc::new(predecessor(&snapshot)));
    let waits = plan(&snapshot);
    assert!(
        matches!(&waits.steps[..], [Step::Status(_), Step::Tell(_)]),
        "it is not adopted: {waits:?}"
    );
    let (ready, reason, text) = said(&waits);
    assert_eq!((ready, reason.as_str()), (false, "ClusterDeploymentNotFound"));
    assert!(text.contains("still being deleted"), "{text}");
    let mut snapshot = made(snapshot);
    assert_eq!(snapshot.named(), None, "what goes is not named");
    assert_eq!(
        plan(&snapshot),
        Plan::default(),
        "a second reconcile writes nothing"
    );
    snapshot.deployment = None;
    let again = plan(&snapshot);
    assert!(
        matches!(&again.steps[..], [Step::CreateDeployment(_)]),
        "{again:?}"
    );
    let done = made(snapshot);
    assert!(done.cluster.status.as_ref().unwrap().ready);
    assert_eq!(done.named(), Some(Key::new("hcp", "blue")));
}

#[test]
fn a_deployment_that_was_this_clusters_and_goes_stays_named() {
    let mut snapshot = made(snapshot());
    let deployment = Arc::make_mut(snapshot.deployment.as_mut().unwrap());
    deployment.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(900).unwrap()));
    let planned = plan(&snapshot);
    let [Step::Status(status), Step::Tell(_)] = &planned.steps[..] else {
        panic!("{planned:?}")
    };
    assert!(status.get("clusterDeploymentReference").is_none(), "{status}");
}

#[test]
fn a_deployment_of_another_is_neither_taken_nor_made_again() {
    let mut snapshot = snapshot();
    let mut taken = deployment::new(&snapshot).unwrap();
    taken
        .labels_mut()
        .insert(label::AGENT_CLUSTER.into(), "red".into());
    snapshot.taken = Some(Arc::new(taken));
    let planned = plan(&snapshot);
    let (ready, reason, text) = said(&planned);
    assert_eq!((ready, reason.as_str()), (false, "ClusterDeploymentTaken"));
    assert!(text.contains("hcp/blue") && text.contains("red"), "{text}");
    assert_eq!(planned.then, Then::Rest, "a change of its label is watched");
    assert!(
        matches!(&planned.steps[..], [Step::Status(_), Step::Tell(news)] if news.warning),
        "{planned:?}"
    );
    assert_eq!(
        plan(&made(snapshot)),
        Plan::default(),
        "a second reconcile writes nothing"
    );
}

#[test]
fn a_deployment_that_was_restored_is_adopted() {
    let mut snapshot = made(snapshot());
    let deployment = Arc::make_mut(snapshot.deployment.as_mut().unwrap());
    deployment.metadata.labels = None;
    deployment.metadata.owner_references.as_mut().unwrap()[0].uid = "of its predecessor".into();
    let plan = plan(&snapshot);
    let [Step::PatchDeployment(patch)] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(patch["metadata"]["labels"][label::AGENT_CLUSTER], "blue");
    let owners = patch["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0]["uid"], "uid-of-blue");
}

#[test]
fn paused_it_lets_its_deployment_go_and_does_no_more() {
    let mut snapshot = made(snapshot());
    change(&mut snapshot, |cluster| {
        cluster
            .annotations_mut()
            .insert("cluster.x-k8s.io/paused".into(), "true".into());
    });
    let held = plan(&snapshot);
    let [Step::PatchDeployment(patch)] = &held.steps[..] else {
        panic!("{held:?}")
    };
    assert_eq!(patch["metadata"]["ownerReferences"], json!([]));
    change(&mut snapshot, |cluster| {
        cluster.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(900).unwrap()));
    });
    let leaves = plan(&snapshot);
    assert!(
        matches!(&leaves.steps[..], [Step::PatchDeployment(_), Step::Patch(_)]),
        "first the one, then the other: {leaves:?}"
    );
}

#[test]
fn only_the_word_true_pauses() {
    let mut snapshot = made(snapshot());
    change(&mut snapshot, |cluster| {
        cluster
            .annotations_mut()
            .insert("cluster.x-k8s.io/paused".into(), "yes".into());
    });
    assert_eq!(plan(&snapshot), Plan::default());
    assert!(!capi::is_paused(&*snapshot.cluster));
}

#[test]
fn deleted_it_takes_off_its_finalizer_and_its_deployment_goes_with_it() {
    let mut snapshot = made(snapshot());
    change(&mut snapshot, |cluster| {
        cluster.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(900).unwrap()));
    });
    let gone = plan(&snapshot);
    assert_eq!(
        gone.steps,
        [Step::Patch(json!({ "metadata": { "finalizers": [] } }))]
    );
}

#[test]
fn a_paused_cluster_and_one_of_somebody_else_are_left_alone() {
    let mut held = snapshot();
    Arc::make_mut(held.owner.as_mut().unwrap()).spec.paused = Some(true);
    assert_eq!(plan(&held), Plan::default());
    let mut foreign = snapshot();
    foreign.elsewhere = true;
    assert_eq!(plan(&foreign).steps, []);
}

#[test]
fn the_path_of_the_endpoint_is_cut_off_and_addresses_get_brackets() {
    let cases = [
        (
            "https://ignition.example.com/ignition",
            "https://ignition.example.com",
        ),
        (
            "https://ignition.example.com:8443/a/b?c",
            "https://ignition.example.com:8443",
        ),
        ("https://192.0.2.1:31000/ignition", "https://192.0.2.1:31000"),
        (
            "https://fd2e:6f44::1:31000/ignition",
            "https://[fd2e:6f44::1]:31000",
        ),
        ("https://fd2e:6f44::1/ignition", "https://[fd2e:6f44::1]"),
        (
            "https://[fd2e:6f44::1]:31000/ignition",
            "https://[fd2e:6f44::1]:31000",
        ),
        ("", ""),
    ];
    for (url, wanted) in cases {
        assert_eq!(without_path(url).as_deref(), Ok(wanted));
    }
    assert!(without_path("ignition.example.com").is_err());
}
