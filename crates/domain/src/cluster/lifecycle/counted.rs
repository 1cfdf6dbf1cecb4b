//! The hosts were counted: where the whole cluster stands because of them.

use super::super::network::node_address;
use super::super::tally::{Group, Tally};
use super::super::{Cluster, IgnitionSource, PreparationStatus, Vip};
use super::{Around, Decision, Draft, Phase, finish, prepare, stay};
use crate::journal::Severity;
use muster_vocabulary::Word;

/// Moves on until the count says nothing new, so that counting twice is counting once.
pub(super) fn counted(cluster: &Cluster, tally: &Tally, around: &Around<'_>) -> Decision {
    let mut all = once(cluster, tally, around);
    // Preparing, installing, finalizing, installed: no count passes more phases than that.
    for _ in 0..Phase::ALL.len() {
        let more = once(&all.cluster, tally, around);
        if more.cluster == all.cluster {
            break;
        }
        all.journal.extend(more.journal);
        all.effects.extend(more.effects);
        (all.cluster, all.why) = (more.cluster, more.why);
    }
    all
}

fn once(cluster: &Cluster, tally: &Tally, around: &Around<'_>) -> Decision {
    match cluster.phase {
        Phase::Preparing => preparing(cluster, tally, around),
        Phase::Installing | Phase::BootFix => installing(cluster, tally, around),
        Phase::Finalizing => finalizing(cluster, tally, around),
        Phase::Draft
        | Phase::Installed
        | Phase::AddingHosts
        | Phase::Error
        | Phase::Cancelled
        | Phase::Unmonitored => stay(cluster, "its hosts do not move this phase"),
    }
}

fn preparing(cluster: &Cluster, tally: &Tally, around: &Around<'_>) -> Decision {
    let ready = |group: &Group| group.known + group.preparing + group.prepared + group.prepare_failed;
    let made = cluster.install.preparation.status == PreparationStatus::Success;
    let complete = tally.is_enough(cluster, |group| group.expected);
    if made && complete && tally.sum(|group| group.prepared) == tally.hosts {
        return start(cluster, tally, around);
    }
    if !complete || tally.sum(ready) < tally.hosts {
        let why = "A host went missing or became unfit while the hub prepared the installation; see the hosts' \
             status.";
        return prepare::fail_short(cluster, why.into(), around);
    }
    if tally.sum(|group| group.prepare_failed) > 0 {
        let why = "A host failed its last tests before the installation; see the hosts' status.";
        return prepare::fail(cluster, why.into(), around);
    }
    stay(cluster, "still preparing")
}

fn start(cluster: &Cluster, tally: &Tally, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(cluster).enter(Phase::Installing, around);
    let row = &mut draft.cluster;
    row.install.progress.preparing = 100;
    row.install.progress.weigh();
    row.install.can_lose_worker = tally.can_lose_worker();
    if row.single_node()
        && row.api_vips.is_empty()
        && let Some(ip) = node_address(cluster, &tally.node_addresses)
    {
        let vip = Vip {
            ip,
            verification: Word::default(),
        };
        (row.api_vips, row.ingress_vips) = (vec![vip.clone()], vec![vip]);
    }
    draft.because("the hub has made the files and prepared all hosts", around)
}

fn installing(cluster: &Cluster, tally: &Tally, around: &Around<'_>) -> Decision {
    if !tally.enough_installing(cluster) {
        return finish::fail(cluster, shortage(cluster, tally), "too many hosts failed", around);
    }
    let mut draft = Draft::of(cluster);
    advance(&mut draft.cluster, tally);
    if tally.sum(|group| group.boot_fix) > 0 {
        return draft
            .enter(Phase::BootFix, around)
            .because("a host did not boot from its disk", around);
    }
    if tally.enough_installed(cluster) {
        return finalize(draft, "enough hosts are installed", around);
    }
    draft
        .enter(Phase::Installing, around)
        .because("hosts are being installed", around)
}

fn finalize(draft: Draft<'_>, why: &'static str, around: &Around<'_>) -> Decision {
    let mut draft = draft.enter(Phase::Finalizing, around);
    // The stage's clock stood still while a person was needed.
    if let Some(finalizing) = &mut draft.cluster.install.finalizing {
        (finalizing.started_at, finalizing.timed_out) = (around.now, false);
    }
    draft.because(why, around)
}

fn shortage(cluster: &Cluster, tally: &Tally) -> String {
    let failed = tally.sum(|group| group.failed);
    let lost = tally.hosts - tally.sum(|group| group.installing + group.failed);
    let what = match (failed, lost) {
        (0, 0) => "hosts were removed".to_owned(),
        (failed, 0) => format!("{failed} failed"),
        (0, lost) => format!("{lost} left the installation"),
        (failed, lost) => format!("{failed} failed and {lost} left the installation"),
    };
    format!(
        "Too few of the cluster's hosts are left ({what}; it needs {} control plane hosts and, if it has several workers, two of them). \
         See the hosts' status and logs, then reset the cluster to try again.",
        cluster.control_plane_count
    )
}

fn finalizing(cluster: &Cluster, tally: &Tally, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(cluster);
    advance(&mut draft.cluster, tally);
    if tally.sum(|group| group.boot_fix) > 0 {
        return draft
            .enter(Phase::BootFix, around)
            .because("a host did not boot from its disk", around);
    }
    let proven = match cluster.ignition_source {
        IgnitionSource::Installer => cluster.install.has_kubeconfig && finish::operators_final(cluster),
        // Such a cluster has no controller that could tell: its hosts are all there is to see.
        IgnitionSource::Uploaded | IgnitionSource::Endpoint => true,
    };
    if !(proven && tally.all_ended() && tally.enough_installed(cluster)) {
        return draft.because("services are still starting", around);
    }
    complete(draft, tally, around)
}

fn complete(draft: Draft<'_>, tally: &Tally, around: &Around<'_>) -> Decision {
    let failed = tally.sum(|group| group.failed);
    let late = finish::failed_operators(&draft.cluster);
    let name = draft.cluster.name.clone();
    let mut draft = draft.enter(Phase::Installed, around);
    draft.cluster.install.progress.complete();
    draft.cluster.install_completed_at = Some(around.now);
    let mut text = String::from("Installed.");
    if failed > 0 {
        text.push_str(&format!(
            " {failed} worker(s) failed; the cluster works without them. Unbind them, or install them again later as additional hosts."
        ));
    }
    if !late.is_empty() {
        let late = late.join(", ");
        text.push_str(&format!(" These operators did not start: {late}."));
        let warning = format!("Cluster {name} works, but these operators did not start: {late}.");
        draft = draft.telling(
            "cluster_degraded_OLM_operators_failed",
            Severity::Warning,
            warning,
        );
    }
    draft
        .saying(text)
        .telling(
            "cluster_installation_completed",
            Severity::Info,
            format!("Cluster {name} is installed."),
        )
        .because("everything that the cluster waited for is there", around)
}

/// Takes over what the count says about progress; percentages only grow.
fn advance(cluster: &mut Cluster, tally: &Tally) {
    let progress = &mut cluster.install.progress;
    progress.installing = progress.installing.max(tally.percent());
    progress.weigh();
    cluster.install.can_lose_worker = tally.can_lose_worker();
}
