//! When the clock must evaluate a cluster again, and why some phases may last for ever.

use super::event::Timers;
use super::{Cluster, FinalizingStage, Phase, finalizing};
use crate::host::LogsInfo;
pub use crate::host::deadline::Patience;
use jiff::Timestamp;

pub fn patience(phase: Phase) -> Patience {
    match phase {
        Phase::Draft => {
            Patience::Endless("waits for its creator: settings, hosts, install or delete end the waiting")
        }
        Phase::Preparing => Patience::Limited("18 minutes: ready again, with the reason"),
        Phase::Installing => Patience::Limited("24 hours: error; each host has its own limits before that"),
        Phase::Finalizing => Patience::Limited(
            "5 hours (24 with soft timeouts), and a limit for each stage: error, or a warning",
        ),
        Phase::Installed => Patience::Endless("works; taking on hosts or deleting it end this"),
        Phase::AddingHosts => Patience::Endless("works; its new hosts are installed one by one"),
        Phase::BootFix => Patience::Limited("24 hours: error"),
        Phase::Error => Patience::Endless("waits for a person: reset, cancel or delete"),
        Phase::Cancelled => Patience::Endless("waits for a person: reset or delete"),
        Phase::Unmonitored => Patience::Endless("a placeholder that nobody watches; delete ends it"),
    }
}

/// What a deadline ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Preparation,
    BootFix,
    Installation,
    Finalizing,
    Stage { stage: FinalizingStage, fatal: bool },
    Logs,
}

/// When [`super::Event::Due`] should be sent next; `None` when only others can move the cluster.
pub fn of(cluster: &Cluster, timers: &Timers) -> Option<Timestamp> {
    end(cluster, timers).map(|(at, _)| at)
}

/// The next deadline and what it ends.
pub fn end(cluster: &Cluster, timers: &Timers) -> Option<(Timestamp, Ends)> {
    let since = cluster.since;
    match cluster.phase {
        Phase::Preparing => Some((since + timers.preparation, Ends::Preparation)),
        Phase::BootFix => Some((since + timers.boot_fix, Ends::BootFix)),
        Phase::Installing => Some((since + timers.installation, Ends::Installation)),
        Phase::Finalizing => Some(finalizing(cluster, timers)),
        Phase::Error | Phase::Cancelled => logs(cluster, timers),
        Phase::Draft | Phase::Installed | Phase::AddingHosts | Phase::Unmonitored => None,
    }
}

fn finalizing(cluster: &Cluster, timers: &Timers) -> (Timestamp, Ends) {
    let soft = cluster.org_soft_timeouts_enabled;
    let whole = if soft {
        (cluster.since + timers.installation, Ends::Installation)
    } else {
        (cluster.since + timers.finalizing, Ends::Finalizing)
    };
    match cluster.install.finalizing {
        Some(now) if !now.timed_out => {
            // Reported before the hosts were all there: its time counts from when it could go on.
            let began = now.started_at.max(cluster.since);
            let at = began + finalizing::limit_for(now.stage, soft, &cluster.operators);
            let fatal = !soft && finalizing::is_fatal_when_late(now.stage);
            let stage = (
                at,
                Ends::Stage {
                    stage: now.stage,
                    fatal,
                },
            );
            if stage.0 < whole.0 { stage } else { whole }
        }
        Some(_) | None => whole,
    }
}

fn logs(cluster: &Cluster, timers: &Timers) -> Option<(Timestamp, Ends)> {
    let logs = &cluster.install.logs;
    let limit = match logs.info {
        LogsInfo::Requested => timers.log_pending,
        LogsInfo::Collecting => timers.log_collection,
        LogsInfo::None | LogsInfo::Completed | LogsInfo::Timeout => return None,
    };
    let began = logs.started_at.unwrap_or(cluster.since).max(cluster.since);
    Some((began + limit, Ends::Logs))
}
