//! An installed system on a simulated host: what the hub hears of it after it has booted from its disk.
//!
//! In a real cluster the controller, which watches the nodes, reports most of this. Here each machine tells it of
//! itself, because only the machine knows whether it booted the right disk; to the hub it looks the same. Clusters
//! without a controller do it this way in earnest: a unit in their ignition reports.

use super::controller::Controller;
use super::peers::Peers;
use super::{Ask, Ids, Role, Turn};
use crate::request::{Call, Outcome};
use crate::setup::Setup;
use Stage::{Configuring, Done, Failed, Joined, WaitingForIgnition};
use http::Method;
use muster_contract::v2::install::ReportHostProgress;
use muster_vocabulary::Stage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Report(Stage),
    AwaitController,
}

use Act::{AwaitController, Report};

const WITH_CONTROLLER: &[Act] = &[Report(Configuring), Report(Joined), AwaitController, Report(Done)];
/// Workers are configured by the control plane, and wait for it.
const WORKER: &[Act] = &[
    Report(WaitingForIgnition),
    Report(Configuring),
    Report(Joined),
    AwaitController,
    Report(Done),
];
const BY_ITSELF: &[Act] = &[Report(Configuring), Report(Joined), Report(Done)];
const SINGLE_NODE: &[Act] = &[Report(Joined), Report(Done)];

const STAGE_MS: u64 = 20_000;
/// Between looks at the other hosts, and before a report is repeated: controllers never give up.
const LOOK_MS: u64 = 10_000;

#[derive(Debug)]
pub struct Node {
    pub ids: Ids,
    acts: &'static [Act],
    at: usize,
    failing: bool,
    is_candidate: bool,
    counts_reboots: bool,
    controller: Option<Controller>,
    /// When the next call is due; never while one is on its way.
    pub due_ms: u64,
}

impl Node {
    pub fn new(ids: Ids, role: Role, reports_itself: bool, counts_reboots: bool, boots_at_ms: u64) -> Self {
        let acts = match role {
            Role::SingleNode => SINGLE_NODE,
            // The controller was there before the bootstrap host rebooted.
            Role::Bootstrap => BY_ITSELF,
            Role::Master | Role::Arbiter | Role::Worker if reports_itself => BY_ITSELF,
            Role::Master | Role::Arbiter => WITH_CONTROLLER,
            Role::Worker => WORKER,
        };
        Self {
            ids,
            acts,
            at: 0,
            failing: false,
            is_candidate: role.leads() && !reports_itself,
            counts_reboots,
            controller: None,
            due_ms: boots_at_ms,
        }
    }

    /// Makes it fail, as if it could not join its cluster.
    pub fn fail(&mut self, now_ms: u64) {
        self.failing = true;
        self.due_ms = now_ms;
    }

    /// The call that is due; nothing is due until its outcome is known.
    pub fn ask(&mut self, now_ms: u64) -> Ask {
        self.due_ms = u64::MAX;
        if let Some(controller) = &mut self.controller {
            return controller.ask(&self.ids, now_ms);
        }
        if self.failing {
            return self.report(Failed);
        }
        match self.acts[self.at] {
            Report(stage) => self.report(stage),
            AwaitController => Ask::get(format!("{}/hosts", self.ids.cluster_path())),
        }
    }

    fn report(&self, stage: Stage) -> Ask {
        let body = ReportHostProgress {
            current_stage: Some(stage),
            progress_info: (stage == Failed).then(|| "the simulation was asked to fail here".to_owned()),
        };
        Ask {
            call: Call::Progress,
            ..Ask::send(Method::PUT, format!("{}/progress", self.ids.host_path()), &body)
        }
    }

    pub fn receive(&mut self, now_ms: u64, setup: &Setup, outcome: &Outcome) -> Turn {
        if let Some(controller) = &mut self.controller {
            let (due_ms, turn) = controller.receive(&self.ids, now_ms, setup, outcome);
            self.due_ms = due_ms;
            return turn;
        }
        match outcome {
            Outcome::Response {
                status: 200..=299,
                body,
            } => self.accepted(now_ms, setup, body),
            // The hub is further than this, or has other plans; the next report will tell.
            Outcome::Response { status: 409, .. } if !self.failing => self.go_on(now_ms, setup),
            Outcome::Response {
                status: 400..=407 | 409..=428 | 430..=499,
                ..
            } => Turn::Ended,
            Outcome::Response { .. } | Outcome::Lost => self.again(now_ms, setup),
        }
    }

    fn accepted(&mut self, now_ms: u64, setup: &Setup, body: &[u8]) -> Turn {
        if self.failing {
            return Turn::Failed;
        }
        match self.acts[self.at] {
            Report(stage) => {
                self.go_on(now_ms, setup);
                Turn::Reached(stage)
            }
            AwaitController => match Peers::read(body) {
                Some(peers) if !peers.still_installs(self.ids.host) => Turn::Ended,
                Some(peers) if peers.controller_runs(self.ids.host) => self.go_on(now_ms, setup),
                Some(_) | None => self.again(now_ms, setup),
            },
        }
    }

    /// Nothing is left to be told.
    pub fn is_done(&self) -> bool {
        self.at >= self.acts.len() && self.controller.is_none()
    }

    fn again(&mut self, now_ms: u64, setup: &Setup) -> Turn {
        self.due_ms = now_ms + setup.look_ms(LOOK_MS);
        Turn::Goes
    }

    fn go_on(&mut self, now_ms: u64, setup: &Setup) -> Turn {
        self.at += 1;
        if self.at < self.acts.len() {
            self.due_ms = now_ms + setup.install_work_ms(STAGE_MS);
            return Turn::Goes;
        }
        if !self.is_candidate {
            return Turn::Ended;
        }
        self.controller = Some(Controller::new(self.counts_reboots));
        self.due_ms = now_ms + setup.look_ms(LOOK_MS);
        Turn::Goes
    }
}
