//! Whether a request for a certificate is one that the node of this host, and nobody else, would make.

use crate::runtime::joining::same_node;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::net::IpAddr;
use x509_parser::asn1_rs::Any;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::OID_PKCS9_EXTENSION_REQUEST;
use x509_parser::prelude::FromDer;

/// What the certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// To speak to the API server as the node.
    Client,
    /// To be spoken to as the node.
    Serving,
}

impl Wants {
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Serving => "serving",
        }
    }
}

/// What was decided about a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Open,
    Approved(Option<Time>),
    Refused,
}

const NODE_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";
const BOOTSTRAPPER: &str = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
const BOOTSTRAPPER_GROUPS: [&str; 3] = [
    "system:serviceaccounts:openshift-machine-config-operator",
    "system:serviceaccounts",
    "system:authenticated",
];
const AUTHENTICATED: &str = "system:authenticated";

pub fn decision(csr: &CertificateSigningRequest) -> Decision {
    let conditions = csr
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut decision = Decision::Open;
    for condition in conditions {
        match condition.type_.as_str() {
            "Denied" | "Failed" => return Decision::Refused,
            "Approved" => decision = Decision::Approved(condition.last_update_time.clone()),
            _ => {}
        }
    }
    decision
}

/// The node that the request is about, whoever made it.
pub fn node_of(csr: &CertificateSigningRequest) -> Option<String> {
    let request = Request::parse(&csr.spec.request.0)?;
    request.common_name.strip_prefix(NODE_PREFIX).map(str::to_owned)
}

/// Nothing when the request is not of this host's node, or asks for anything that such a node does not need.
pub fn judge(csr: &CertificateSigningRequest, host: &str, node: Option<&Node>) -> Option<Wants> {
    let request = Request::parse(&csr.spec.request.0)?;
    let name = request.common_name.strip_prefix(NODE_PREFIX)?;
    if !same_node(name, host) {
        return None;
    }
    if is_client(csr, &request) {
        return Some(Wants::Client);
    }
    is_serving(csr, &request, node?).then_some(Wants::Serving)
}

fn is_client(csr: &CertificateSigningRequest, request: &Request) -> bool {
    let groups: BTreeSet<&str> = csr.spec.groups.iter().flatten().map(String::as_str).collect();
    csr.spec.username.as_deref() == Some(BOOTSTRAPPER)
        && groups == BTreeSet::from(BOOTSTRAPPER_GROUPS)
        && request.organizations == [NODES]
        && request.names.is_empty()
        && has_usages(csr, "client auth")
}

fn is_serving(csr: &CertificateSigningRequest, request: &Request, node: &Node) -> bool {
    let username = csr.spec.username.as_deref().unwrap_or_default();
    let groups: Vec<&str> = csr.spec.groups.iter().flatten().map(String::as_str).collect();
    username == request.common_name
        && groups.len() >= 2
        && groups.contains(&AUTHENTICATED)
        && request.organizations.iter().any(|name| name == NODES)
        && has_usages(csr, "server auth")
        && !request.names.is_empty()
        && request.names.iter().all(|name| belongs(name, node))
}

/// Exactly these, and the encipherment of keys that RSA needs.
fn has_usages(csr: &CertificateSigningRequest, main: &str) -> bool {
    let usages: BTreeSet<&str> = csr.spec.usages.iter().flatten().map(String::as_str).collect();
    let least = BTreeSet::from(["digital signature", main]);
    let most = BTreeSet::from(["digital signature", "key encipherment", main]);
    usages == least || usages == most
}

fn belongs(name: &Name, node: &Node) -> bool {
    let addresses = || {
        node.status
            .iter()
            .flat_map(|status| status.addresses.iter().flatten())
    };
    match name {
        Name::Dns(name) => {
            let kinds = ["InternalDNS", "ExternalDNS", "Hostname"];
            *name == node.name_any()
                || addresses().any(|known| kinds.contains(&known.type_.as_str()) && known.address == *name)
        }
        Name::Ip(ip) => {
            let kinds = ["InternalIP", "ExternalIP"];
            addresses().any(|known| kinds.contains(&known.type_.as_str()) && known.address.parse() == Ok(*ip))
        }
        Name::Other => false,
    }
}

/// What a PKCS#10 request asks for.
struct Request {
    common_name: String,
    organizations: Vec<String>,
    names: Vec<Name>,
}

enum Name {
    Dns(String),
    Ip(IpAddr),
    Other,
}

impl Request {
    fn parse(pem: &[u8]) -> Option<Self> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem).ok()?;
        if pem.label != "CERTIFICATE REQUEST" {
            return None;
        }
        let (rest, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let subject = &request.certification_request_info.subject;
        let texts = |values: Vec<Option<String>>| values.into_iter().collect::<Option<Vec<_>>>();
        let text =
            |value: &x509_parser::x509::AttributeTypeAndValue<'_>| value.as_str().ok().map(str::to_owned);
        let mut common_names = texts(subject.iter_common_name().map(text).collect())?;
        let common_name = common_names.pop().filter(|_| common_names.is_empty())?;
        Some(Self {
            common_name,
            organizations: texts(subject.iter_organization().map(text).collect())?,
            names: names(&request)?,
        })
    }
}

/// All other names that are asked for. Nothing when it can be read in more than one way: the signer must not read
/// more in it than this code does.
fn names(request: &X509CertificationRequest<'_>) -> Option<Vec<Name>> {
    let attributes = request.certification_request_info.iter_attributes();
    let mut asked = attributes.filter(|attribute| attribute.oid == OID_PKCS9_EXTENSION_REQUEST);
    let Some(first) = asked.next() else {
        return Some(Vec::new());
    };
    if asked.next().is_some() || !is_single(first.value) {
        return None;
    }
    let ParsedCriAttribute::ExtensionRequest(wanted) = first.parsed_attribute() else {
        return None;
    };
    let mut names = Vec::new();
    for extension in &wanted.extensions {
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(found) if is_single(extension.value) => {
                names.extend(found.general_names.iter().map(name));
            }
            ParsedExtension::SubjectAlternativeName(_)
            | ParsedExtension::ParseError { .. }
            | ParsedExtension::Unparsed => return None,
            _ => {}
        }
    }
    Some(names)
}

/// One value, whole, and nothing behind it. Of an attribute only what was read is there: it is not whole if it has more.
fn is_single(der: &[u8]) -> bool {
    Any::from_der(der).is_ok_and(|(rest, _)| rest.is_empty())
}

fn name(name: &GeneralName<'_>) -> Name {
    match name {
        GeneralName::DNSName(name) => Name::Dns((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match (<[u8; 4]>::try_from(*bytes), <[u8; 16]>::try_from(*bytes)) {
            (Ok(four), _) => Name::Ip(four.into()),
            (_, Ok(sixteen)) => Name::Ip(sixteen.into()),
            _ => Name::Other,
        },
        _ => Name::Other,
    }
}
