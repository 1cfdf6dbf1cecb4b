//! Nodes that are followed until they are done.

use super::certificates::{client, node, serving};
use super::*;
use crate::controller::agent::spoke::Spoke;
use crate::runtime::spoke::NoSpoke;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestStatus,
};
use k8s_openapi::api::core::v1::Node;
use muster_contract::v2::install::HostStage;

fn joining(stage: &'static str, spoke: Result<Spoke, NoSpoke>) -> Snapshot {
    let row = day_two(at_stage(lent("installing-in-progress", BLUE), stage));
    let mut snapshot = snapshot(Some(wanting("blue")), Some(row));
    snapshot.spoke = Some(spoke);
    snapshot
}

fn spoke(node: Option<Node>, csrs: Vec<CertificateSigningRequest>) -> Result<Spoke, NoSpoke> {
    Ok(Spoke {
        node,
        machine: None,
        csrs,
    })
}

fn approved(csr: CertificateSigningRequest) -> CertificateSigningRequest {
    decided(csr, "Approved")
}

fn decided(mut csr: CertificateSigningRequest, word: &str) -> CertificateSigningRequest {
    csr.status = Some(CertificateSigningRequestStatus {
        conditions: Some(vec![CertificateSigningRequestCondition {
            type_: word.into(),
            status: "True".into(),
            ..CertificateSigningRequestCondition::default()
        }]),
        ..CertificateSigningRequestStatus::default()
    });
    csr
}

fn tracked(agent: &Agent) -> Vec<String> {
    let status = agent.status.as_ref().and_then(|status| status.csr_status.clone());
    let all = status.unwrap_or_default().approved_csrs;
    all.into_iter().map(|csr| csr.type_).collect()
}

#[test]
fn what_somebody_refused_stays_refused() {
    for word in ["Denied", "Failed"] {
        let planned = plan(&joining("Rebooting", spoke(None, vec![decided(client(), word)])));
        assert_eq!(deeds(&planned), Vec::<&Deed>::new(), "{word}");
        assert_eq!(
            tracked(&after(&wanting("blue"), &planned)),
            [] as [String; 0],
            "{word}"
        );
    }
}

#[test]
fn first_the_client_then_with_the_node_the_server_then_the_host_is_done() {
    let first = plan(&joining("Rebooting", spoke(None, vec![client(), serving()])));
    assert_eq!(deeds(&first), [&Deed::ApproveCsr("csr-client-auth".into())]);
    assert_eq!(first.then, Then::Again);
    assert_eq!(tracked(&after(&wanting("blue"), &first)), [] as [String; 0]);

    let planned = plan(&joining(
        "Rebooting",
        spoke(None, vec![approved(client()), serving()]),
    ));
    let agent = after(&wanting("blue"), &planned);
    assert_eq!(tracked(&agent), ["client"]);
    assert_eq!(
        (deeds(&planned).len(), planned.then),
        (0, Then::After(Duration::from_secs(60)))
    );

    let both = vec![approved(client()), serving()];
    let mut second = joining("Rebooting", spoke(Some(node(false)), both));
    second.agent = Some(Arc::new(agent));
    let plan_of = plan(&second);
    assert_eq!(deeds(&plan_of), [&Deed::ApproveCsr("csr-server-auth".into())]);
    assert_eq!(
        calls(&plan_of),
        [&Call::Progress(HostStage::Joined, String::new())]
    );

    let both = vec![approved(client()), approved(serving())];
    let third = joining("Joined", spoke(Some(node(true)), both));
    let plan_of = plan(&third);
    assert_eq!(
        (deeds(&plan_of).len(), calls(&plan_of)),
        (0, vec![&Call::Progress(HostStage::Done, String::new())])
    );
}

#[test]
fn what_was_not_approved_is_not_noted_and_is_approved_later() {
    let open = || joining("Rebooting", spoke(None, vec![client()]));
    let mut failed = open();
    failed.failure = Some(Failure::Spoke("forbidden".into()));
    let planned = plan(&failed);
    let agent = after(&wanting("blue"), &planned);
    assert_eq!(
        (tracked(&agent), deeds(&planned).len(), planned.then),
        (Vec::new(), 0, Then::After(Duration::from_secs(10)))
    );
    failed.agent = Some(Arc::new(agent.clone()));
    assert_eq!(plan(&failed).steps, [], "a second failure is no news");
    let mut again = open();
    again.agent = Some(Arc::new(agent));
    assert_eq!(
        deeds(&plan(&again)),
        [&Deed::ApproveCsr("csr-client-auth".into())]
    );
}

#[test]
fn a_note_about_a_request_that_is_open_is_not_believed() {
    let planned = plan(&joining("Rebooting", spoke(None, vec![approved(client())])));
    let mut open = joining("Rebooting", spoke(None, vec![client()]));
    let noted = after(&wanting("blue"), &planned);
    open.agent = Some(Arc::new(noted.clone()));
    let plan = plan(&open);
    assert_eq!(deeds(&plan), [&Deed::ApproveCsr("csr-client-auth".into())]);
    assert_eq!(tracked(&after(&noted, &plan)), [] as [String; 0]);
}

#[test]
fn a_node_without_certificates_is_not_done() {
    let ready = plan(&joining("Rebooting", spoke(Some(node(true)), Vec::new())));
    assert_eq!(calls(&ready), [&Call::Progress(HostStage::Joined, String::new())]);
}

/// A node whose host has a power controller.
fn joining_metal(stage: &'static str, csrs: Vec<CertificateSigningRequest>) -> Snapshot {
    let mut snapshot = joining(stage, spoke(Some(node(true)), csrs));
    let mut agent = wanting("blue");
    agent
        .labels_mut()
        .insert(label::BARE_METAL_HOST.into(), "metal-1".into());
    snapshot.agent = Some(Arc::new(agent));
    snapshot
}

#[test]
fn certificates_of_a_machine_with_a_power_controller_are_approved_too() {
    let metal = joining_metal("Rebooting", vec![client(), serving()]);
    assert!(ask::question(&metal).unwrap().csrs);
    let deeds: Vec<_> = deeds(&plan(&metal)).into_iter().cloned().collect();
    let wanted = ["csr-client-auth", "csr-server-auth"].map(|name| Deed::ApproveCsr(name.into()));
    assert_eq!(deeds, wanted);
}

#[test]
fn a_node_with_a_machine_in_its_cluster_needs_no_certificates_from_here() {
    let mut metal = joining_metal("Joined", vec![client(), serving()]);
    metal.metal_joined = true;
    assert!(!ask::question(&metal).unwrap().csrs);
    let quiet = plan(&metal);
    assert_eq!(deeds(&quiet), Vec::<&Deed>::new());
    assert_eq!(calls(&quiet), [&Call::Progress(HostStage::Done, String::new())]);
}

#[test]
fn clusters_that_know_no_machines_have_all_certificates_approved() {
    use crate::crd::AgentClusterInstall;
    let on = |change: fn(&mut AgentClusterInstall)| {
        let mut install = AgentClusterInstall::new("blue", Default::default());
        install.spec.provision_requirements.control_plane_agents = 3;
        change(&mut install);
        let mut metal = joining_metal("Joined", Vec::new());
        metal.metal_joined = true;
        metal.install = Some(Arc::new(install));
        ask::question(&metal).unwrap().csrs
    };
    assert!(!on(|_| ()));
    assert!(!on(|install| install.spec.platform_type = "BareMetal".into()));
    assert!(on(|install| install.spec.platform_type = "None".into()));
    assert!(on(|install| install.spec.platform_type = "External".into()));
    assert!(on(|install| {
        install.spec.networking.user_managed_networking = Some(true);
    }));
    assert!(on(|install| install
        .spec
        .provision_requirements
        .control_plane_agents = 1));
    assert!(on(|install| {
        install.status = Some(crate::crd::agent_cluster_install::AgentClusterInstallStatus {
            user_managed_networking: Some(true),
            ..Default::default()
        });
    }));
}

#[test]
fn a_ready_node_gets_its_labels() {
    let mut snapshot = joining("Joined", spoke(Some(node(true)), Vec::new()));
    let mut agent = wanting("blue");
    agent.spec.node_labels.insert("zone".into(), "north".into());
    snapshot.agent = Some(Arc::new(agent));
    let mut row = snapshot.row.clone().unwrap();
    row.host.node_labels = "{\"zone\":\"north\"}".into();
    snapshot.row = Some(row);
    let labels = BTreeMap::from([("zone".to_owned(), "north".to_owned())]);
    assert_eq!(
        deeds(&plan(&snapshot)),
        [&Deed::LabelNode("worker-1".into(), labels)]
    );
}

#[test]
fn a_cluster_that_does_not_answer_shows_and_is_asked_again() {
    let plan = plan(&joining("Rebooting", Err(NoSpoke::Failed("no route".into()))));
    assert_eq!(
        (synced(&plan), plan.then),
        (
            says("False", "BackendError"),
            Then::After(Duration::from_secs(10))
        )
    );
}

#[test]
fn a_watched_node_is_rarely_polled_and_one_that_may_not_be_watched_is_polled_and_reported() {
    use crate::runtime::joining::NodeWatch;
    let plan_with = |node_watch: NodeWatch| {
        let mut snapshot = joining("Rebooting", spoke(None, Vec::new()));
        snapshot.node_watch = node_watch;
        plan(&snapshot)
    };
    let minutes = |count: u64| Then::After(Duration::from_secs(60 * count));
    assert_eq!(plan_with(NodeWatch::None).then, minutes(1));
    assert_eq!(plan_with(NodeWatch::Running).then, minutes(10));
    let refused = plan_with(NodeWatch::Refused("nodes is forbidden".into()));
    assert_eq!(refused.then, minutes(1));
    let warned = refused.steps.iter().any(|step| {
        let Step::Tell(news) = step else { return false };
        news.reason == "NodeNotWatched" && news.note.ends_with("nodes is forbidden")
    });
    assert!(warned, "{refused:?}");
}

/// A node whose host failed because the stage took too long, or for another reason.
fn late(stage: &'static str, timed_out: bool, ready: bool) -> Snapshot {
    let csrs = vec![approved(client()), approved(serving())];
    let mut snapshot = joining(stage, spoke(Some(node(ready)), csrs));
    let row = snapshot.row.as_mut().unwrap();
    row.host.status = "error".into();
    row.host.progress.as_mut().unwrap().stage_timed_out = timed_out;
    snapshot
}

#[test]
fn a_node_that_comes_up_after_its_time_recovers_its_host() {
    let plan_of = plan(&late("Joined", true, true));
    let [Call::Progress(HostStage::Done, info)] = calls(&plan_of)[..] else {
        panic!("{plan_of:?}")
    };
    assert!(info.contains("after its time limit"), "{info}");
}

#[test]
fn what_the_hub_would_refuse_for_ever_is_not_asked() {
    // In a stage in which the cluster needs no certificates approved.
    let waits = plan(&late("Configuring", true, false));
    assert_eq!(calls(&waits), Vec::<&Call>::new());
    assert_eq!(
        waits.then,
        Then::After(Duration::from_secs(60)),
        "it may still come up"
    );
    let failed = late("Joined", false, true);
    assert_eq!(ask::question(&failed), None);
    assert_eq!(calls(&plan(&failed)), Vec::<&Call>::new());
    let mut cancelled = late("Joined", true, true);
    cancelled.row.as_mut().unwrap().host.status = "cancelled".into();
    assert_eq!(ask::question(&cancelled), None);
}
