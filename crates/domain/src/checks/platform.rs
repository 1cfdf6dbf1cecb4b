//! Whether host, platform, agent and images go together.

use super::facts::{ClusterFacts, Subject};
use super::finding::Outcome;
use super::hardware::with_inventory;
use crate::cluster::PlatformType;
use crate::host;
use crate::image_name::same_image;

pub(super) fn network_settings(subject: &Subject<'_>) -> Outcome {
    with_inventory(subject, |inventory| {
        let product = inventory.product_name();
        if product != "OpenStack Compute" {
            let product = if product.is_empty() {
                "this machine"
            } else {
                product
            };
            return Outcome::pass(format!("The cluster can manage networking on {product}."));
        }
        match subject.cluster {
            None => Outcome::Silent,
            Some(cluster) => Outcome::judge(
                cluster.user_managed_networking || cluster.is_single_node(),
                "You manage networking on OpenStack yourself.",
                "Machines on OpenStack cannot share virtual addresses; use user-managed networking for the cluster.",
            ),
        }
    })
}

pub(super) fn compatible(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    with_inventory(subject, |inventory| {
        let needed = match cluster.platform {
            PlatformType::Vsphere => "VMware",
            PlatformType::Nutanix => "Nutanix",
            other @ (PlatformType::Baremetal | PlatformType::None | PlatformType::External) => {
                return Outcome::pass(format!("The host can be used on platform {other}."));
            }
        };
        let maker = inventory.manufacturer();
        Outcome::judge(
            maker.to_ascii_lowercase().contains(&needed.to_ascii_lowercase()),
            format!("The host can be used on platform {}.", cluster.platform),
            format!(
                "Platform {} takes {needed} machines only and this one is made by {maker:?}; bind another host or change the platform.",
                cluster.platform
            ),
        )
    })
}

pub(super) fn agent(subject: &Subject<'_>) -> Outcome {
    match &subject.settings.wanted_agent {
        Some(wanted) if subject.agent_version.is_empty() || same_image(wanted, subject.agent_version) => {
            Outcome::pass("The host's agent suits the hub.")
        }
        // An agent that still differs runs the same image under another name, or one that works well enough.
        Some(wanted) if subject.agent_stays => Outcome::pass(format!(
            "The host still runs agent {}: it did not become {wanted} when the hub told it to. If steps \
             fail, boot a current discovery image.",
            subject.agent_version
        )),
        Some(wanted) => Outcome::fail(format!(
            "The hub is replacing the host's agent by {wanted}; this takes a few minutes. If it does not \
             end, boot a current discovery image."
        )),
        None => Outcome::pass("The host's agent suits the hub."),
    }
}

pub(super) fn images_available(subject: &Subject<'_>) -> Outcome {
    let tried = subject.reports.images_status.iter();
    let failed: Vec<_> = tried.filter(|(_, status)| !status.is_available()).collect();
    let missing: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
    let cause = match failed.iter().find(|(_, status)| !status.error.is_empty()) {
        Some((_, status)) => format!(" ({})", status.error),
        None => String::new(),
    };
    Outcome::judge(
        missing.is_empty(),
        "No pull of an image has failed.",
        format!(
            "Cannot pull {}{cause}; check the registry, the pull secret and the proxy as seen from the host.",
            missing.join(", ")
        ),
    )
}

pub(super) fn images_outcome(subject: &Subject<'_>) -> host::Outcome {
    let tried = &subject.reports.images_status;
    if tried.values().any(|status| !status.is_available()) {
        return host::Outcome::Failed;
    }
    let all_tried = subject
        .wanted_images
        .iter()
        .all(|image| tried.contains_key(image));
    // A cluster may want none; a free host has not been asked yet.
    let asked = subject.cluster.is_some() || !tried.is_empty();
    if asked && all_tried {
        host::Outcome::Passed
    } else {
        host::Outcome::Unknown
    }
}
