//! A deadline passed: every phase that waits has one, and this is what happens then.

use super::super::deadline::{Ends, end};
use super::super::{Cluster, FinalizingStage};
use super::{Around, Decision, Draft, finish, prepare, stay};
use crate::host::LogsInfo;
use crate::journal::Severity;

/// After a long absence several deadlines may have passed: all of them count.
pub(super) fn due(cluster: &Cluster, around: &Around<'_>) -> Decision {
    let mut all = one(cluster, around);
    // A slow stage, its whole phase, the logs: no more than that can follow each other.
    for _ in 0..3 {
        let more = one(&all.cluster, around);
        if more.cluster == all.cluster {
            break;
        }
        all.journal.extend(more.journal);
        all.effects.extend(more.effects);
        (all.cluster, all.why) = (more.cluster, more.why);
    }
    all
}

fn one(cluster: &Cluster, around: &Around<'_>) -> Decision {
    let Some((_, ends)) = end(cluster, around.timers).filter(|(at, _)| *at <= around.now) else {
        return stay(cluster, "nothing is due yet");
    };
    match ends {
        Ends::Preparation => prepare::time_out(cluster, around),
        Ends::BootFix => {
            let hours = around.timers.boot_fix.as_hours();
            let why = format!(
                "Nobody fixed a host's boot order within {hours} hours; fix it, then reset the cluster to \
                 try again."
            );
            finish::fail(cluster, why, "nobody fixed the boot order", around)
        }
        Ends::Installation => {
            let hours = around.timers.installation.as_hours();
            let why = format!(
                "The installation did not end within {hours} hours; see the hosts' stages and logs, then reset the cluster."
            );
            finish::fail(cluster, why, "the installation took too long", around)
        }
        Ends::Finalizing => {
            let hours = around.timers.finalizing.as_hours();
            let why = format!(
                "The cluster's services did not start within {hours} hours; see its operators and logs, then reset the cluster."
            );
            finish::fail(cluster, why, "finalizing took too long", around)
        }
        Ends::Stage { stage, fatal: true } => {
            let why = format!(
                "\"{}\" took too long; see the cluster's operators and logs, then reset the cluster.",
                stage.word()
            );
            finish::fail(cluster, why, "a finalizing stage took too long", around)
        }
        Ends::Stage { stage, fatal: false } => slow(cluster, stage, around),
        Ends::Logs => {
            let mut draft = Draft::of(cluster);
            draft.cluster.install.logs.info = LogsInfo::Timeout;
            draft.because("the logs did not arrive in time", around)
        }
    }
}

fn slow(cluster: &Cluster, stage: FinalizingStage, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(cluster);
    if let Some(finalizing) = &mut draft.cluster.install.finalizing {
        finalizing.timed_out = true;
    }
    let text = format!(
        "Cluster {} takes longer than expected in \"{}\".",
        cluster.name,
        stage.word()
    );
    draft
        .telling("finalizing_stage_timed_out", Severity::Warning, text)
        .because("slow, but it may go on", around)
}
