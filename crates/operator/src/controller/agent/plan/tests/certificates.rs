//! Requests for certificates, and nodes that are followed.

use super::*;
use crate::controller::agent::plan::csr::{self, Wants};
use crate::controller::agent::spoke::Spoke;
use crate::runtime::spoke::NoSpoke;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
};
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeStatus};
use muster_contract::v2::install::HostStage;

/// CN=system:node:worker-1, O=system:nodes, no other names.
const CLIENT: &[u8] = include_bytes!("client.csr.pem");
/// The same with DNS:worker-1, DNS:worker-1.example.com and IP:10.0.0.5.
const SERVING: &[u8] = include_bytes!("serving.csr.pem");
/// CN=system:node:worker-1, O=system:nodes, O=system:masters.
const GREEDY: &[u8] = include_bytes!("greedy.csr.pem");

fn request(pem: &[u8], user: &str, groups: &[&str], usages: &[&str]) -> CertificateSigningRequest {
    let texts = |list: &[&str]| Some(list.iter().map(|text| (*text).to_owned()).collect());
    let mut csr = CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.to_vec()),
            username: Some(user.into()),
            groups: texts(groups),
            usages: texts(usages),
            ..CertificateSigningRequestSpec::default()
        },
        ..CertificateSigningRequest::default()
    };
    csr.metadata.name = Some(format!("csr-{}", usages.last().unwrap().replace(' ', "-")));
    csr
}

const BOOTSTRAPPER: &str = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
const BOOTSTRAP_GROUPS: [&str; 3] = [
    "system:serviceaccounts",
    "system:serviceaccounts:openshift-machine-config-operator",
    "system:authenticated",
];

fn client() -> CertificateSigningRequest {
    request(
        CLIENT,
        BOOTSTRAPPER,
        &BOOTSTRAP_GROUPS,
        &["digital signature", "client auth"],
    )
}

fn serving() -> CertificateSigningRequest {
    let groups = ["system:nodes", "system:authenticated"];
    request(
        SERVING,
        "system:node:worker-1",
        &groups,
        &["digital signature", "key encipherment", "server auth"],
    )
}

fn node(ready: bool) -> Node {
    let address = |kind: &str, address: &str| NodeAddress {
        type_: kind.into(),
        address: address.into(),
    };
    let mut node = Node {
        status: Some(NodeStatus {
            addresses: Some(vec![
                address("Hostname", "worker-1"),
                address("InternalDNS", "worker-1.example.com"),
                address("InternalIP", "10.0.0.5"),
            ]),
            conditions: Some(vec![NodeCondition {
                type_: "Ready".into(),
                status: if ready { "True" } else { "False" }.into(),
                ..NodeCondition::default()
            }]),
            ..NodeStatus::default()
        }),
        ..Node::default()
    };
    node.metadata.name = Some("worker-1".into());
    node
}

#[test]
fn requests_of_the_node_are_recognised() {
    assert_eq!(csr::judge(&client(), "worker-1", None), Some(Wants::Client));
    assert_eq!(csr::judge(&client(), "WORKER-1", None), Some(Wants::Client));
    assert_eq!(
        csr::judge(&client(), "worker-1.example.com", None),
        Some(Wants::Client)
    );
    assert_eq!(
        csr::judge(&serving(), "worker-1", Some(&node(false))),
        Some(Wants::Serving)
    );
    assert_eq!(
        csr::judge(&serving(), "worker-1", None),
        None,
        "it waits for the node"
    );
}

#[test]
fn requests_of_others_and_for_more_are_not() {
    let mut other_groups = client();
    other_groups
        .spec
        .groups
        .as_mut()
        .unwrap()
        .push("system:masters".into());
    let mut wrong_usages = client();
    wrong_usages
        .spec
        .usages
        .as_mut()
        .unwrap()
        .push("server auth".into());
    let mut garbage = client();
    garbage.spec.request = ByteString(b"-----BEGIN NONSENSE-----".to_vec());
    let usages = ["digital signature", "client auth"];
    let refused = [
        ("another host", client(), "worker-2"),
        (
            "another requester",
            request(CLIENT, "somebody", &BOOTSTRAP_GROUPS, &usages),
            "worker-1",
        ),
        ("more groups", other_groups, "worker-1"),
        ("more usages", wrong_usages, "worker-1"),
        (
            "more organizations",
            request(GREEDY, BOOTSTRAPPER, &BOOTSTRAP_GROUPS, &usages),
            "worker-1",
        ),
        (
            "a client with other names",
            request(SERVING, BOOTSTRAPPER, &BOOTSTRAP_GROUPS, &usages),
            "worker-1",
        ),
        ("garbage", garbage, "worker-1"),
    ];
    for (why, csr, host) in refused {
        assert_eq!(csr::judge(&csr, host, Some(&node(true))), None, "{why}");
    }
    let mut elsewhere = node(true);
    elsewhere
        .status
        .as_mut()
        .unwrap()
        .addresses
        .as_mut()
        .unwrap()
        .pop();
    assert_eq!(
        csr::judge(&serving(), "worker-1", Some(&elsewhere)),
        None,
        "an address that is not the node's"
    );
    let mut impostor = serving();
    impostor.spec.username = Some("system:node:worker-2".into());
    assert_eq!(csr::judge(&impostor, "worker-1", Some(&node(true))), None);
}

fn joining(stage: &'static str, spoke: Result<Spoke, NoSpoke>) -> World {
    let row = day_two(at_stage(lent("installing-in-progress", BLUE), stage));
    let mut world = world(Some(wanting("blue")), Some(row));
    world.spoke = Some(spoke);
    world
}

fn spoke(node: Option<Node>, csrs: Vec<CertificateSigningRequest>) -> Result<Spoke, NoSpoke> {
    Ok(Spoke {
        node,
        machine: None,
        csrs,
    })
}

fn approved(mut csr: CertificateSigningRequest) -> CertificateSigningRequest {
    csr.status = Some(CertificateSigningRequestStatus {
        conditions: Some(vec![CertificateSigningRequestCondition {
            type_: "Approved".into(),
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
fn first_the_client_then_with_the_node_the_server_then_the_host_is_done() {
    let first = plan(&joining("Rebooting", spoke(None, vec![client(), serving()])));
    assert_eq!(deeds(&first), [&Deed::ApproveCsr("csr-client-auth".into())]);
    assert_eq!(first.then, Then::Look);
    assert_eq!(tracked(&after(&wanting("blue"), &first)), [] as [String; 0]);

    let seen = plan(&joining(
        "Rebooting",
        spoke(None, vec![approved(client()), serving()]),
    ));
    let agent = after(&wanting("blue"), &seen);
    assert_eq!(tracked(&agent), ["client"]);
    assert_eq!(
        (deeds(&seen).len(), seen.then),
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
    failed.trouble = Some(Failure::Spoke("forbidden".into()));
    let told = plan(&failed);
    let agent = after(&wanting("blue"), &told);
    assert_eq!(
        (tracked(&agent), deeds(&told).len(), told.then),
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
    let seen = plan(&joining("Rebooting", spoke(None, vec![approved(client())])));
    let mut open = joining("Rebooting", spoke(None, vec![client()]));
    let noted = after(&wanting("blue"), &seen);
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
fn joining_metal(stage: &'static str, csrs: Vec<CertificateSigningRequest>) -> World {
    let mut world = joining(stage, spoke(Some(node(true)), csrs));
    let mut agent = wanting("blue");
    agent
        .labels_mut()
        .insert(label::BARE_METAL_HOST.into(), "metal-1".into());
    world.agent = Some(Arc::new(agent));
    world
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
    let mut world = joining("Joined", spoke(Some(node(true)), Vec::new()));
    let mut agent = wanting("blue");
    agent.spec.node_labels.insert("zone".into(), "north".into());
    world.agent = Some(Arc::new(agent));
    let mut row = world.row.clone().unwrap();
    row.host.node_labels = "{\"zone\":\"north\"}".into();
    world.row = Some(row);
    let labels = BTreeMap::from([("zone".to_owned(), "north".to_owned())]);
    assert_eq!(
        deeds(&plan(&world)),
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
