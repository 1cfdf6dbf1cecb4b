//! Names the host must, and must not, be able to resolve.

use super::facts::{ClusterFacts, Subject};
use super::finding::Outcome;

const NOT_NEEDED: &str = "The cluster answers this name itself, so no DNS record is needed.";

/// Names the agent is asked to resolve, so that steps and checks never disagree.
pub fn wanted(cluster: &ClusterFacts) -> Vec<String> {
    if cluster.base_domain.is_empty() {
        return Vec::new();
    }
    let zone = zone(cluster);
    vec![
        format!("api.{zone}"),
        format!("api-int.{zone}"),
        apps_name(&zone),
        format!("{WILDCARD}.{zone}."),
        format!("{WILDCARD}.{zone}"),
    ]
}

const WILDCARD: &str = "validateNoWildcardDNS";

fn zone(cluster: &ClusterFacts) -> String {
    format!("{}.{}", cluster.name, cluster.base_domain)
}

fn apps_name(zone: &str) -> String {
    format!("console-openshift-console.apps.{zone}")
}

fn needs_dns(subject: &Subject<'_>, cluster: &ClusterFacts) -> bool {
    let self_answering = cluster.is_single_node() && !cluster.day_two && subject.settings.single_node_dns;
    cluster.user_managed_networking && !self_answering
}

fn resolves(subject: &Subject<'_>, name: &str) -> Option<bool> {
    let report = subject.reports.domain_resolutions.as_ref()?;
    let mut answers = report
        .resolutions
        .iter()
        .filter(|answer| answer.domain_name == name)
        .peekable();
    answers.peek()?;
    Some(answers.any(|answer| answer.has_address()))
}

fn must_resolve(
    subject: &Subject<'_>,
    cluster: &ClusterFacts,
    shown: &str,
    name: impl FnOnce(&str) -> String,
) -> Outcome {
    if !needs_dns(subject, cluster) {
        return Outcome::pass(NOT_NEEDED);
    }
    if cluster.base_domain.is_empty() {
        return Outcome::broken(
            "The cluster has no base domain, so the hub cannot check its names; set one.",
        );
    }
    let zone = zone(cluster);
    match resolves(subject, &name(&zone)) {
        None => Outcome::wait(format!("for the host to resolve {shown}.{zone}")),
        Some(found) => Outcome::judge(
            found,
            format!("The host can resolve {shown}.{zone}."),
            format!(
                "The host cannot resolve {shown}.{zone}; add a record for it to the DNS server the host uses."
            ),
        ),
    }
}

pub(super) fn api(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    must_resolve(subject, cluster, "api", |zone| format!("api.{zone}"))
}

pub(super) fn api_int(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    must_resolve(subject, cluster, "api-int", |zone| format!("api-int.{zone}"))
}

pub(super) fn apps(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    must_resolve(subject, cluster, "*.apps", apps_name)
}

pub(super) fn no_wildcard(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    if cluster.day_two {
        return Outcome::pass("The cluster runs already, so its domain is in order.");
    }
    let zone = zone(cluster);
    let answers =
        [format!("{WILDCARD}.{zone}."), format!("{WILDCARD}.{zone}")].map(|name| resolves(subject, &name));
    if answers.contains(&Some(true)) {
        return Outcome::fail(format!(
            "Any name below {zone} resolves, so nodes would look up outside names there; remove the record *.{zone}."
        ));
    }
    if answers.iter().all(Option::is_none) {
        return Outcome::wait("for the host to look for a wildcard record");
    }
    Outcome::pass(format!("There is no wildcard record below {zone}."))
}
