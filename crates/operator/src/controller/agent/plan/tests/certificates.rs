//! Requests for certificates.

use crate::controller::agent::plan::csr::{self, Wants};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeStatus};

/// CN=system:node:worker-1, O=system:nodes, no other names.
const CLIENT: &[u8] = include_bytes!("client.csr.pem");
/// The same with DNS:worker-1, DNS:worker-1.example.com and IP:10.0.0.5.
const SERVING: &[u8] = include_bytes!("serving.csr.pem");
/// Each asks for names of the node first, and then in another way for more: in a second attribute, in a second value of the
/// one attribute, in an extension that cannot be read.
const EVASIVE: [&[u8]; 3] = [
    include_bytes!("twofold.csr.pem"),
    include_bytes!("double.csr.pem"),
    include_bytes!("broken.csr.pem"),
];
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

pub(super) fn client() -> CertificateSigningRequest {
    request(
        CLIENT,
        BOOTSTRAPPER,
        &BOOTSTRAP_GROUPS,
        &["digital signature", "client auth"],
    )
}

pub(super) fn serving() -> CertificateSigningRequest {
    serving_with(SERVING)
}

fn serving_with(pem: &[u8]) -> CertificateSigningRequest {
    let groups = ["system:nodes", "system:authenticated"];
    request(
        pem,
        "system:node:worker-1",
        &groups,
        &["digital signature", "key encipherment", "server auth"],
    )
}

pub(super) fn node(ready: bool) -> Node {
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

#[test]
fn a_request_that_can_be_read_in_two_ways_is_left_alone() {
    for (number, pem) in EVASIVE.into_iter().enumerate() {
        let judged = csr::judge(&serving_with(pem), "worker-1", Some(&node(true)));
        assert_eq!(judged, None, "number {number}");
    }
}

#[test]
fn a_serving_certificate_without_any_name_serves_nobody() {
    let judged = csr::judge(&serving_with(CLIENT), "worker-1", Some(&node(true)));
    assert_eq!(judged, None);
}
