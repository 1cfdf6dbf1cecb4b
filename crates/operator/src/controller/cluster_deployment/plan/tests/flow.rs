//! From adoption to a running cluster.

use super::*;
use crate::controller::cluster_deployment::snapshot::Login;
use kube::ResourceExt;
use muster_contract::time::DateMs;

fn steps(snapshot: &Snapshot) -> Vec<Step> {
    super::super::plan(snapshot).steps
}

#[test]
fn objects_carry_the_id_and_finalizers_before_the_hub_hears_of_the_cluster() {
    let mut fresh = deployment();
    fresh.metadata.annotations = None;
    fresh.metadata.finalizers = Some(vec!["theirs".into()]);
    let mut snapshot = Snapshot {
        deployment: Some(Arc::new(fresh)),
        ..snapshot(json!({}))
    };
    let patched = steps(&snapshot);
    let [Step::PatchDeployment(patch)] = patched.as_slice() else {
        panic!("{patched:?}")
    };
    assert_eq!(
        patch["metadata"]["annotations"][annotation::CLUSTER_ID],
        json!(ID)
    );
    assert_eq!(
        patch["metadata"]["finalizers"],
        json!(["theirs", finalizer::CLUSTER_DEPLOYMENT])
    );
    snapshot.deployment = Some(Arc::new(deployment()));
    let mut bare = install(json!({}));
    bare.metadata.owner_references = None;
    snapshot.install = Some(Arc::new(bare));
    let patched = steps(&snapshot);
    let [Step::PatchInstall(patch)] = patched.as_slice() else {
        panic!("{patched:?}")
    };
    assert_eq!(patch["metadata"]["ownerReferences"][0]["uid"], json!(ID));
    assert_eq!(
        patch["metadata"]["finalizers"],
        json!([finalizer::AGENT_CLUSTER_INSTALL])
    );
}

#[test]
fn a_cluster_of_another_object_is_not_touched() {
    let snapshot = Snapshot {
        rival: Some(Key::new("clusters", "older")),
        ..with_row(json!({}), "insufficient")
    };
    let plan = super::super::plan(&snapshot);
    let install = shown(&snapshot, &plan);
    says(&install, type_::SPEC_SYNCED, Truth::False, "InputError");
    assert!(
        plan.steps
            .iter()
            .all(|step| matches!(step, Step::Status(_) | Step::Tell(_))),
        "{plan:?}"
    );
}

#[test]
fn the_installation_starts_when_exactly_the_wanted_hosts_are_known_and_approved() {
    assert_eq!(steps(&manned(with_row(json!({}), "ready"))), [Step::Install]);
    let starts = |change: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = manned(with_row(json!({}), "ready"));
        change(&mut snapshot);
        steps(&snapshot).contains(&Step::Install)
    };
    assert!(!starts(
        &|snapshot| snapshot.row.as_mut().unwrap().view.status = "insufficient".into()
    ));
    assert!(
        !starts(&|snapshot| drop(snapshot.row.as_mut().unwrap().hosts.pop())),
        "one too few"
    );
    assert!(
        !starts(&|snapshot| enlist(snapshot, &agent(200), "worker", "known")),
        "one too many"
    );
    assert!(!starts(&|snapshot| snapshot.row.as_mut().unwrap().hosts[1]
        .host
        .status = "disconnected".into()));
    assert!(!starts(&|snapshot| {
        let mut agent = agent(101);
        agent.spec.approved = false;
        snapshot.row.as_mut().unwrap().hosts[1].agent = Some(Arc::new(agent));
    }));
    assert!(!starts(&|snapshot| {
        let mut agent = agent(101);
        say(&mut agent, "SpecSynced", false);
        snapshot.agents[1].0 = Arc::new(agent);
    }));
    assert!(
        !starts(&|snapshot| snapshot.row.as_mut().unwrap().hosts[1].agent = None),
        "nobody approved it"
    );
}

#[test]
fn an_approval_that_the_agent_does_not_show_yet_is_waited_for() {
    let mut snapshot = manned(with_row(json!({}), "ready"));
    let mut fresh = agent(101);
    say(&mut fresh, "RequirementsMet", false);
    snapshot.row.as_mut().unwrap().hosts[1].agent = Some(Arc::new(fresh));
    assert!(
        !steps(&snapshot).contains(&Step::Install),
        "its disk or name may not have reached the hub"
    );
}

#[test]
fn an_installation_that_is_held_by_either_object_does_not_start() {
    let held = manned(with_row(json!({ "holdInstallation": true }), "ready"));
    assert!(!steps(&held).contains(&Step::Install));
    for (text, holds) in [("true", true), ("1", true), ("false", false), ("perhaps", false)] {
        let mut snapshot = manned(with_row(json!({}), "ready"));
        let mut paused = deployment();
        paused
            .annotations_mut()
            .insert(annotation::HIVE_PAUSE.into(), text.into());
        snapshot.deployment = Some(Arc::new(paused));
        assert_eq!(!steps(&snapshot).contains(&Step::Install), holds, "{text}");
    }
}

#[test]
fn a_preparation_that_failed_is_not_begun_again_at_once() {
    let mut snapshot = manned(with_row(json!({}), "ready"));
    let view = &mut snapshot.row.as_mut().unwrap().view;
    view.last_installation_preparation.status = "failed".into();
    view.status_updated_at = DateMs(Some(now() - jiff::SignedDuration::from_secs(15)));
    let plan = super::super::plan(&snapshot);
    assert_eq!(plan.then, Then::After(Duration::from_secs(45)));
    assert!(!plan.steps.contains(&Step::Install));
    rests(snapshot.clone(), &plan);
    snapshot.now = now() + jiff::SignedDuration::from_secs(45);
    assert_eq!(steps(&snapshot), [Step::Install]);
}

#[test]
fn a_kubeconfig_is_kept_as_soon_as_there_is_one() {
    let mut snapshot = with_row(json!({}), "installing");
    assert!(
        !steps(&snapshot)
            .iter()
            .any(|step| matches!(step, Step::PutSecret(_) | Step::PatchInstall(_)))
    );
    snapshot.row.as_mut().unwrap().credentials.kubeconfig = Some("hunter2".into());
    let all = steps(&snapshot);
    let [Step::PutSecret(secret), Step::PatchInstall(patch)] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(
        (secret.key.name.as_str(), secret.exists),
        ("blue-admin-kubeconfig", false)
    );
    assert_eq!(secret.labels["hive.openshift.io/secret-type"], "kubeconfig");
    assert_eq!(
        (&secret.owner["kind"], &secret.owner["blockOwnerDeletion"]),
        (&json!("ClusterDeployment"), &json!(true))
    );
    assert!(
        !format!("{secret:?}").contains("hunter2"),
        "values are not printed"
    );
    let metadata = &patch["spec"]["clusterMetadata"];
    assert_eq!(
        (&metadata["clusterID"], &metadata["infraID"]),
        (&json!(Uuid::from_u128(77)), &json!(ID))
    );
    assert_eq!(metadata.get("adminPasswordSecretRef"), None);
}

fn metadata(password: bool) -> Value {
    let mut metadata = json!({ "clusterID": Uuid::from_u128(77), "infraID": ID,
        "adminKubeconfigSecretRef": { "name": "blue-admin-kubeconfig" } });
    if password {
        metadata["adminPasswordSecretRef"] = json!({ "name": "blue-admin-password" });
    }
    json!({ "clusterMetadata": metadata })
}

#[test]
fn an_installed_cluster_leaves_credentials_then_its_flag_then_takes_more_hosts() {
    let mut snapshot = with_row(metadata(false), "installed");
    snapshot.row.as_mut().unwrap().credentials =
        crate::controller::cluster_deployment::snapshot::Credentials {
            kubeconfig: Some("whole".into()),
            login: Some(Login {
                username: "kubeadmin".into(),
                password: "horse".into(),
            }),
        };
    snapshot.kept.kubeconfig = Some(found(&[("kubeconfig", "early")]));
    let all = steps(&snapshot);
    let [
        Step::PutSecret(kubeconfig),
        Step::PutSecret(password),
        Step::PatchInstall(patch),
    ] = all.as_slice()
    else {
        panic!("{all:?}")
    };
    assert_eq!((kubeconfig.exists, password.exists), (true, false));
    assert_eq!(password.labels["hive.openshift.io/secret-type"], "kubeadmincreds");
    assert_eq!(
        patch["spec"]["clusterMetadata"]["adminPasswordSecretRef"]["name"],
        "blue-admin-password"
    );

    snapshot.install = Some(Arc::new(install(metadata(true))));
    snapshot.kept.kubeconfig = Some(found(&[("kubeconfig", "whole")]));
    snapshot.kept.password = Some(found(&[("username", "kubeadmin"), ("password", "horse")]));
    let all = steps(&snapshot);
    let [Step::PatchDeployment(patch)] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(patch["spec"]["installed"], true);
    assert_eq!(patch["spec"]["clusterMetadata"]["infraID"], json!(ID));

    let mut flagged = deployment();
    flagged.spec.installed = true;
    snapshot.deployment = Some(Arc::new(flagged));
    assert_eq!(steps(&snapshot), [Step::AddHosts]);
}

#[test]
fn where_hive_is_it_says_itself_that_the_cluster_is_installed() {
    let mut snapshot = with_row(metadata(true), "installed");
    let mut hives = deployment();
    hives
        .metadata
        .finalizers
        .as_mut()
        .unwrap()
        .push("hive.openshift.io/deprovision".into());
    snapshot.deployment = Some(Arc::new(hives));
    assert_eq!(
        steps(&snapshot),
        [Step::AddHosts],
        "and nobody waits for its flag"
    );
}

#[test]
fn hosts_that_join_a_running_cluster_are_installed_one_by_one() {
    let mut snapshot = with_row(json!({ "holdInstallation": true }), "adding-hosts");
    enlist(&mut snapshot, &agent(100), "worker", "known");
    let mut unapproved = agent(101);
    unapproved.spec.approved = false;
    enlist(&mut snapshot, &unapproved, "worker", "known");
    enlist(&mut snapshot, &agent(102), "worker", "added-to-existing-cluster");
    let install = Step::InstallHost {
        infra_env: POOL,
        host: Uuid::from_u128(100),
    };
    assert_eq!(steps(&snapshot), [install]);
}

#[test]
fn a_hub_that_does_not_answer_does_not_make_a_good_cluster_look_bad() {
    let mut snapshot = with_row(json!({}), "insufficient");
    let plan = super::super::plan(&snapshot);
    snapshot.install = Some(Arc::new(shown(&snapshot, &plan)));
    snapshot.row = None;
    snapshot.hub_error = Some("connection refused".into());
    assert_eq!(
        super::super::plan(&snapshot),
        Plan::of(Vec::new(), Then::After(SOON))
    );
    snapshot.install = Some(Arc::new(install(json!({}))));
    let plan = super::super::plan(&snapshot);
    let install = shown(&snapshot, &plan);
    says(&install, type_::SPEC_SYNCED, Truth::False, "BackendError");
    says(&install, type_::COMPLETED, Truth::Unknown, "NotAvailable");
    rests(snapshot, &plan);
}

#[test]
fn what_the_hub_refuses_is_shown_by_its_class_and_a_bad_moment_is_not() {
    let show = |failure: Failure| {
        let snapshot = Snapshot {
            failure: Some(failure),
            ..with_row(json!({}), "insufficient")
        };
        let plan = super::super::plan(&snapshot);
        (said(&shown(&snapshot, &plan), type_::SPEC_SYNCED).1, plan.then)
    };
    let text = || "because".to_owned();
    assert_eq!(
        show(Failure::Hub(Refusal::Input(text()))),
        ("InputError".into(), Then::Rest)
    );
    assert_eq!(
        show(Failure::Hub(Refusal::Internal(text()))),
        ("BackendError".into(), Then::After(SOON))
    );
    assert_eq!(
        show(Failure::Manifests(Refusal::Input(text()))),
        ("InputError".into(), Then::After(LATER))
    );
    assert_eq!(
        show(Failure::NotNow(text())),
        ("SyncOK".into(), Then::After(SOON))
    );
}

#[test]
fn used_secrets_and_config_maps_are_labelled_once() {
    let mut snapshot = with_row(
        json!({ "manifestsConfigMapRef": { "name": "one" } }),
        "installing",
    );
    let labels: BTreeMap<_, _> = [("agent-install.openshift.io/watch".to_owned(), "true".to_owned())].into();
    snapshot.pull_secret.as_mut().unwrap().missing_labels = labels.clone();
    let map = Found {
        missing_labels: labels.clone(),
        ..Found::default()
    };
    snapshot.config_maps.insert("one".into(), map);
    let labelled = [
        Step::LabelSecret(Key::new("clusters", "pull"), labels.clone()),
        Step::LabelConfigMap(Key::new("clusters", "one"), labels),
    ];
    assert_eq!(steps(&snapshot), labelled);
}

#[test]
fn progress_failure_and_completion_are_one_event_each() {
    let events_of = |snapshot: &Snapshot| -> Vec<String> {
        let steps = steps(snapshot).into_iter();
        steps
            .filter_map(|step| {
                if let Step::Tell(news) = step {
                    Some(news.reason)
                } else {
                    None
                }
            })
            .collect()
    };
    let mut snapshot = with_row(json!({}), "installing");
    assert_eq!(events_of(&snapshot), ["InstallationInProgress"]);
    let plan = super::super::plan(&snapshot);
    snapshot.install = Some(Arc::new(shown(&snapshot, &plan)));
    assert_eq!(events_of(&snapshot), [] as [String; 0]);
    snapshot.row = Some(row("error"));
    assert_eq!(events_of(&snapshot), ["InstallationFailed"]);
}
