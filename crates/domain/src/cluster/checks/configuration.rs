//! What the cluster's creator must provide besides networks and hosts.

use super::Subject;
use crate::checks::finding::Outcome;
use crate::cluster::{NetworkType, PlatformType};

pub(super) fn pull_secret(subject: &Subject<'_>) -> Outcome {
    Outcome::judge(
        subject.facts.pull_secret_set,
        "The cluster has a pull secret.",
        "The cluster has no pull secret, so it could not pull images; set one.",
    )
}

pub(super) fn dns_domain(subject: &Subject<'_>) -> Outcome {
    Outcome::judge(
        !subject.facts.base_domain.is_empty(),
        "The base domain is set.",
        "The cluster has no base domain; set base_dns_domain.",
    )
}

pub(super) fn custom_manifests(subject: &Subject<'_>) -> Outcome {
    let network = &subject.facts.network_type;
    if !network.is(NetworkType::comes_from_elsewhere) {
        return Outcome::pass("The cluster needs no manifests of its own.");
    }
    Outcome::judge(
        subject.has_manifests,
        "The cluster brings manifests for its network.",
        format!("Network type {network} does not come with OpenShift; upload the manifests that install it."),
    )
}

pub(super) fn platform(subject: &Subject<'_>) -> Outcome {
    let needs_manifests =
        subject.facts.platform == PlatformType::External && subject.facts.external_platform == "oci";
    Outcome::judge(
        !needs_manifests || subject.has_manifests,
        "The platform has what it needs.",
        "Oracle Cloud needs manifests of its provider (cloud controller, storage); upload them.",
    )
}
