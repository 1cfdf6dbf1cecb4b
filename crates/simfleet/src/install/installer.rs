//! The installer on a simulated host: what it does and reports from the install step until the machine reboots.

use super::logs::{self, LogsPart};
use super::node::Node;
use super::peers::Peers;
use super::{Ask, Ids, Patience, Role, Turn};
use crate::request::{Call, Outcome};
use crate::seed::Draws;
use crate::setup::Setup;
use Stage::{
    Configuring, Copying, Done, Failed, Installing, Joined, Rebooting, Starting, WaitingForBootkube,
    WaitingForControlPlane, WaitingForController, WaitingForIgnition, Writing,
};
use http::Method;
use muster_contract::v2::agent::args::InstallArgs;
use muster_contract::v2::install::ReportHostProgress;
use muster_vocabulary::{ClusterKind, Stage, Word};
use serde::Deserialize;

/// One thing an installer does; each is one call, or the same call until its answer is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Report(Stage),
    LookAtCluster,
    FetchBootstrapFile,
    FetchHostFile,
    AwaitMasters,
    SendLogs(LogsPart),
}

use Act::{AwaitMasters, FetchBootstrapFile, FetchHostFile, LookAtCluster, Report, SendLogs};

const BOOTSTRAP: &[Act] = &[
    Report(Starting),
    LookAtCluster,
    Report(Installing),
    FetchBootstrapFile,
    FetchHostFile,
    Report(Writing),
    Report(Copying),
    Report(WaitingForControlPlane),
    AwaitMasters,
    Report(WaitingForBootkube),
    Report(WaitingForController),
    SendLogs(LogsPart::Begin),
    SendLogs(LogsPart::Upload),
    SendLogs(LogsPart::End),
    Report(Rebooting),
];
const SINGLE_NODE: &[Act] = &[
    Report(Starting),
    LookAtCluster,
    Report(Installing),
    FetchBootstrapFile,
    Report(WaitingForBootkube),
    FetchHostFile,
    Report(Writing),
    Report(Copying),
    SendLogs(LogsPart::Begin),
    SendLogs(LogsPart::Upload),
    SendLogs(LogsPart::End),
    Report(Rebooting),
];
const MASTER: &[Act] = &[
    Report(Starting),
    LookAtCluster,
    Report(Installing),
    FetchHostFile,
    Report(Writing),
    Report(Copying),
    SendLogs(LogsPart::Begin),
    SendLogs(LogsPart::Upload),
    SendLogs(LogsPart::End),
    Report(Rebooting),
];
const WORKER: &[Act] = &[
    Report(Starting),
    LookAtCluster,
    Report(Installing),
    FetchHostFile,
    Report(Writing),
    Report(WaitingForControlPlane),
    AwaitMasters,
    SendLogs(LogsPart::Begin),
    SendLogs(LogsPart::Upload),
    SendLogs(LogsPart::End),
    Report(Rebooting),
];

/// The image is written in steps of 5 %, each reported.
const WRITING_STEP: u8 = 5;
const WRITING_STEP_MS: u64 = 2_000;
const STAGE_MS: u64 = 20_000;
/// After a small call.
const CALL_MS: u64 = 1_000;
/// Between looks at the other hosts.
const LOOK_MS: u64 = 10_000;

/// The unit in the ignition of clusters without a controller; it makes the system report for itself.
const OWN_REPORTS: &[u8] = b"muster-installed.service";

/// Why an installer reports a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Asked,
    Files,
}

impl Trouble {
    fn text(self) -> &'static str {
        match self {
            Self::Asked => "the simulation was asked to fail here",
            Self::Files => "cannot download the configuration of this host",
        }
    }
}

#[derive(Debug)]
pub struct Installer {
    pub ids: Ids,
    pub role: Role,
    acts: &'static [Act],
    at: usize,
    percent: u8,
    patience: Patience,
    trouble: Option<Trouble>,
    is_day_2: bool,
    reports_itself: bool,
    counts_reboots: bool,
    /// When the next call is due; never while one is on its way.
    pub due_ms: u64,
}

/// Of a cluster, the part installers read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Cluster {
    kind: Word<ClusterKind>,
}

impl Installer {
    pub fn new(args: &InstallArgs, now_ms: u64) -> Self {
        let role = Role::of(&args.role, args.control_plane_count);
        Self {
            ids: Ids {
                cluster: args.cluster_id,
                infra_env: args.infra_env_id,
                host: args.host_id,
            },
            role,
            acts: match role {
                Role::Bootstrap => BOOTSTRAP,
                Role::SingleNode => SINGLE_NODE,
                Role::Master | Role::Arbiter => MASTER,
                Role::Worker => WORKER,
            },
            at: 0,
            percent: 0,
            patience: Patience::default(),
            trouble: None,
            is_day_2: false,
            reports_itself: false,
            counts_reboots: args.notify_num_reboots,
            due_ms: now_ms,
        }
    }

    /// Makes it fail, as if the stage it is in had gone wrong.
    pub fn fail(&mut self, now_ms: u64) {
        self.trouble = Some(Trouble::Asked);
        self.due_ms = now_ms;
    }

    /// The system it has written; nothing when nobody will hear of it again.
    pub fn node(&self, boots_at_ms: u64) -> Option<Node> {
        let node = || {
            Node::new(
                self.ids,
                self.role,
                self.reports_itself,
                self.counts_reboots,
                boots_at_ms,
            )
        };
        (!self.is_day_2).then(node)
    }

    /// The call that is due; nothing is due until its outcome is known.
    pub fn ask(&mut self) -> Ask {
        self.due_ms = u64::MAX;
        let files = || format!("{}/downloads/files", self.ids.cluster_path());
        match (self.trouble, self.acts[self.at]) {
            (Some(trouble), _) => self.report(Failed, Some(trouble.text().to_owned())),
            (None, Report(stage)) => self.report(stage, self.info(stage)),
            (None, LookAtCluster) => Ask::get(self.ids.cluster_path()),
            (None, FetchBootstrapFile) => Ask::get(format!("{}?file_name=bootstrap.ign", files())),
            (None, FetchHostFile) => Ask::get(self.ids.ignition_path()),
            (None, AwaitMasters) => Ask::get(format!("{}/hosts", self.ids.cluster_path())),
            (None, SendLogs(part)) => logs::of_host(&self.ids, part),
        }
    }

    fn report(&self, stage: Stage, progress_info: Option<String>) -> Ask {
        let body = ReportHostProgress {
            current_stage: Some(stage),
            progress_info,
        };
        Ask {
            call: Call::Progress,
            ..Ask::send(Method::PUT, format!("{}/progress", self.ids.host_path()), &body)
        }
    }

    fn info(&self, stage: Stage) -> Option<String> {
        match (stage, self.role) {
            (Installing, role) => Some(role.word().to_owned()),
            (Writing, _) => (self.percent > 0).then(|| format!("{}%", self.percent)),
            (WaitingForControlPlane, Role::Bootstrap) => Some("until two masters have joined".to_owned()),
            (WaitingForController, _) => Some("until the controller runs".to_owned()),
            (WaitingForControlPlane, Role::Master | Role::Arbiter | Role::Worker | Role::SingleNode)
            | (
                Starting | WaitingForBootkube | Copying | Rebooting | WaitingForIgnition | Configuring
                | Joined | Done | Failed,
                _,
            ) => None,
        }
    }

    pub fn receive(&mut self, now_ms: u64, setup: &Setup, draws: &mut Draws, outcome: &Outcome) -> Turn {
        let body = match outcome {
            Outcome::Response {
                status: 200..=299,
                body,
            } => body,
            Outcome::Response { .. } | Outcome::Lost => return self.refused(now_ms, setup, draws, outcome),
        };
        self.patience.restore();
        if self.trouble.is_some() {
            return Turn::Failed;
        }
        match self.acts[self.at] {
            Report(stage) => return self.reported(now_ms, setup, stage),
            LookAtCluster => {
                let cluster: Cluster = serde_json::from_slice(body).unwrap_or_default();
                self.is_day_2 = cluster.kind == ClusterKind::AddHostsCluster;
            }
            FetchHostFile => {
                self.reports_itself = body.windows(OWN_REPORTS.len()).any(|part| part == OWN_REPORTS);
            }
            AwaitMasters if !Peers::read(body).is_some_and(|p| p.control_plane_is_up(self.ids.host)) => {
                self.due_ms = now_ms + setup.look_ms(LOOK_MS);
                return Turn::Goes;
            }
            AwaitMasters | FetchBootstrapFile | SendLogs(_) => {}
        }
        self.go_on(now_ms + setup.install_work_ms(CALL_MS))
    }

    fn reported(&mut self, now_ms: u64, setup: &Setup, stage: Stage) -> Turn {
        let first = self.percent == 0;
        if stage == Writing && self.percent < 100 {
            self.percent += WRITING_STEP;
            self.due_ms = now_ms + setup.install_work_ms(WRITING_STEP_MS);
        } else {
            self.percent = 0;
            self.go_on(now_ms + setup.install_work_ms(STAGE_MS));
        }
        if first { Turn::Reached(stage) } else { Turn::Goes }
    }

    fn go_on(&mut self, due_ms: u64) -> Turn {
        self.at = (self.at + 1).min(self.acts.len() - 1);
        // The control plane of an existing cluster is there.
        while self.is_day_2 && matches!(self.acts[self.at], Report(WaitingForControlPlane) | AwaitMasters) {
            self.at += 1;
        }
        self.due_ms = due_ms;
        Turn::Goes
    }

    fn refused(&mut self, now_ms: u64, setup: &Setup, draws: &mut Draws, outcome: &Outcome) -> Turn {
        let act = self.acts[self.at];
        // Nobody waits for logs.
        if self.trouble.is_none() && matches!(act, SendLogs(_)) {
            return self.go_on(now_ms + setup.install_work_ms(CALL_MS));
        }
        let retry = if self.trouble.is_none() && matches!(act, FetchBootstrapFile | FetchHostFile) {
            self.patience.retry_file_at(now_ms, setup, draws, outcome)
        } else {
            self.patience.retry_at(now_ms, setup, draws, outcome)
        };
        match (retry, act) {
            (Some(at), _) => {
                self.due_ms = at;
                Turn::Goes
            }
            (None, FetchBootstrapFile | FetchHostFile | LookAtCluster | AwaitMasters)
                if self.trouble.is_none() =>
            {
                self.patience.restore();
                self.trouble = Some(Trouble::Files);
                self.due_ms = now_ms;
                Turn::Goes
            }
            (None, _) if self.trouble.is_some() || !is_conflict(outcome) => Turn::Failed,
            (None, _) => Turn::Ended,
        }
    }
}

/// The hub has other plans for the host; that is no failure of the installer.
fn is_conflict(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Response { status: 409, .. })
}
