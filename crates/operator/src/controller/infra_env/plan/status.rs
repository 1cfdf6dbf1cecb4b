//! What the object says about its image.

use super::{InvalidSpec, Snapshot, Step};
use crate::controller::infra_env::snapshot::Row;
use crate::crd::condition::{Finding, Truth, find_service, set_service};
use crate::crd::infra_env::{
    BootArtifacts, CLEANUP, IMAGE_CREATED, InfraEnvDebugInfo, InfraEnvStatus, reason,
};
use crate::crd::keys::label;
use crate::runtime::event::News;
use crate::runtime::{clock, merge};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;

pub fn available(snapshot: &Snapshot, row: &Row) -> (InfraEnvStatus, Finding) {
    let links = &row.links;
    let boot_order = snapshot.infra_env.spec.ipxe_script_type == "BootOrderControl";
    let ipxe_script = if boot_order {
        &links.ipxe_boot_order_script
    } else {
        &links.ipxe_script
    };
    let has_network = !row.view.static_network_config.is_empty();
    let status = InfraEnvStatus {
        iso_download_url: links.iso.clone(),
        // With the content of the image its address changes, and this with both.
        created_time: row.image_changed_at().map(clock::time),
        debug_info: Some(InfraEnvDebugInfo {
            events_url: links.events.clone(),
            static_network_download_url: if has_network {
                links.static_network.clone()
            } else {
                String::new()
            },
        }),
        boot_artifacts: Some(BootArtifacts {
            initrd: links.initrd.clone(),
            rootfs: links.rootfs.clone(),
            kernel: links.kernel.clone(),
            ipxe_script: ipxe_script.clone(),
            discovery_ignition_url: links.discovery_ignition.clone(),
        }),
        ..blank(snapshot)
    };
    let message = match snapshot.passes_over_version() {
        false => "The image can be downloaded.",
        true => {
            "The image can be downloaded. osImageVersion has no effect until the cluster of clusterRef is \
             installed."
        }
    };
    (status, finding(Truth::True, reason::AVAILABLE, message))
}

/// The links stay as they are.
pub fn in_preparation(snapshot: &Snapshot, text: &str) -> (InfraEnvStatus, Finding) {
    let message = format!("The hub is preparing the image: {text}");
    (
        now(snapshot),
        finding(Truth::True, reason::IN_PREPARATION, &message),
    )
}

/// There is no image, so there is no link to it.
pub fn flawed(snapshot: &Snapshot, mistake: &InvalidSpec) -> (InfraEnvStatus, Finding) {
    let status = InfraEnvStatus {
        iso_download_url: String::new(),
        created_time: None,
        ..now(snapshot)
    };
    let finding = match mistake {
        InvalidSpec::NoCluster(text) | InvalidSpec::OtherCluster(text) => {
            finding(Truth::Unknown, reason::MISSING_CLUSTER, text)
        }
        InvalidSpec::Input(text) | InvalidSpec::Missing(text) => finding(Truth::False, reason::FAILED, text),
    };
    (status, finding)
}

/// It cannot go yet; the image is as it was. Each change of the reason is an event.
pub fn delayed(snapshot: &Snapshot, reason: &str, text: String) -> Vec<Step> {
    let before = snapshot.infra_env.status.clone().unwrap_or_default();
    let mut after = before.clone();
    let note = format!("The operator cannot delete the InfraEnv in the hub yet: {text}");
    set_service(
        &mut after.conditions,
        Finding::new(CLEANUP, false, reason, note.clone()),
        snapshot.now,
    );
    let Some(patch) = merge::diff(&before, &after) else {
        return Vec::new();
    };
    let news = News {
        warning: true,
        reason: "DeletionDelayed".into(),
        note,
    };
    vec![Step::Status(patch), Step::Tell(news)]
}

/// The steps from the status there is to the one there should be, none when they are the same.
pub fn steps(snapshot: &Snapshot, (mut status, finding): (InfraEnvStatus, Finding)) -> Vec<Step> {
    let before = snapshot.infra_env.status.clone().unwrap_or_default();
    status.conditions.clone_from(&before.conditions);
    let was = find_service(&before.conditions, IMAGE_CREATED).map(|condition| condition.status.clone());
    let news = (was.as_deref() != Some(finding.status.word())).then(|| News {
        warning: finding.status == Truth::False,
        reason: finding.reason.clone(),
        note: finding.message.clone(),
    });
    set_service(&mut status.conditions, finding, snapshot.now);
    let patch = merge::diff(&before, &status).map(Step::Status);
    patch.into_iter().chain(news.map(Step::Tell)).collect()
}

pub fn reason_now(snapshot: &Snapshot) -> Option<&str> {
    let status = snapshot.infra_env.status.as_ref()?;
    find_service(&status.conditions, IMAGE_CREATED).map(|condition| condition.reason.as_str())
}

fn finding(status: Truth, reason: &str, message: &str) -> Finding {
    Finding::new(IMAGE_CREATED, status, reason, message)
}

fn blank(snapshot: &Snapshot) -> InfraEnvStatus {
    let own_name = [(label::INFRA_ENV.to_owned(), snapshot.infra_env.name_any())];
    InfraEnvStatus {
        agent_label_selector: Some(LabelSelector {
            match_labels: Some(own_name.into()),
            match_expressions: None,
        }),
        ..InfraEnvStatus::default()
    }
}

fn now(snapshot: &Snapshot) -> InfraEnvStatus {
    InfraEnvStatus {
        agent_label_selector: blank(snapshot).agent_label_selector,
        ..snapshot.infra_env.status.clone().unwrap_or_default()
    }
}
