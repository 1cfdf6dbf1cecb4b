//! The controller inside a new cluster: it sees the installation through to its end.
//!
//! Every master that has joined is a candidate and looks at the cluster's hosts now and then; the one they agree on
//! does the work. All of it can be done twice, so a change of mind does no harm.

use super::logs::{self, LogsPart};
use super::peers::Peers;
use super::{Ask, Ids, Turn};
use crate::request::Outcome;
use crate::setup::Setup;
use http::Method;
use muster_contract::time::DateMs;
use muster_contract::v2::BASE;
use muster_contract::v2::event::TriggerEvent;
use muster_contract::v2::install::{CompleteInstallation, IngressCert, ReportClusterProgress};
use muster_contract::v2::operator::ReportOperator;
use muster_vocabulary::{Category, ClusterStatus, FinalizingStage, OperatorStatus, Severity, Word};
use serde::Deserialize;
use std::borrow::Cow;
use uuid::Uuid;

/// Between looks, and before a call is repeated: controllers never give up.
const LOOK_MS: u64 = 10_000;
/// How long an operator takes from one state to the next.
const OPERATOR_MS: u64 = 10_000;
const CALL_MS: u64 = 1_000;

/// A certificate for no one: valid from 2020 to 2099, and its key was thrown away.
pub const INGRESS_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIBATAKBggqhkjOPQQDAjAlMSMwIQYDVQQDDBppbmdyZXNz
LW9wZXJhdG9yQHNpbXVsYXRlZDAgFw0yMDAxMDEwMDAwMDBaGA8yMDk5MTIzMTIz
NTk1OVowJTEjMCEGA1UEAwwaaW5ncmVzcy1vcGVyYXRvckBzaW11bGF0ZWQwWTAT
BgcqhkjOPQIBBggqhkjOPQMBBwNCAASxLauZ8s1P5zHi5DwybJMFSIWIQ34dOhzo
hvpo3+aOIMptuxjGICW0LNXqtZv7GUDm+wG29Etz3pHwlWZS2vKUo0IwQDAPBgNV
HRMBAf8EBTADAQH/MA4GA1UdDwEB/wQEAwIChDAdBgNVHQ4EFgQUBM0BsgmzWe0I
O2jixZTzXAB5Ot4wCgYIKoZIzj0EAwIDSAAwRQIhAK4bkHA16iwMmUysxPeYWJfl
IIommfIeFqOUKyIKkHYHAiBQstsU3MfBJCfv4E2BRmqmxtpJm590NMNoqOlB5zYF
UQ==
-----END CERTIFICATE-----
";

/// The stages that only clusters with operators of their own go through.
const OLM_STAGES: [FinalizingStage; 4] = [
    FinalizingStage::OlmManifests,
    FinalizingStage::OlmCsvInit,
    FinalizingStage::OlmCsv,
    FinalizingStage::OlmSetupJobs,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    LookAround,
    LookAtCluster,
    TellReboots,
    Stage(FinalizingStage),
    ListOperators,
    ReportOperator,
    Kubeconfig,
    IngressCert,
    Complete,
    Logs(LogsPart),
    End,
}

#[derive(Debug)]
pub struct Controller {
    step: Step,
    version: String,
    /// Hosts whose reboot is still to be told.
    hosts: Vec<Uuid>,
    /// Operators that are not there yet.
    operators: Vec<Operator>,
    has_olm: bool,
    counts_reboots: bool,
    is_lost: bool,
}

#[derive(Debug)]
struct Operator {
    name: String,
    version: String,
    next: OperatorStatus,
}

/// Of a cluster, the part controllers read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Cluster<'a> {
    status: Word<ClusterStatus>,
    #[serde(borrow)]
    openshift_version: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OperatorSeen<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    version: Cow<'a, str>,
    #[serde(borrow)]
    operator_type: Cow<'a, str>,
    status: Word<OperatorStatus>,
}

impl Controller {
    pub fn new(counts_reboots: bool) -> Self {
        Self {
            step: Step::LookAround,
            version: String::new(),
            hosts: Vec::new(),
            operators: Vec::new(),
            has_olm: false,
            counts_reboots,
            is_lost: false,
        }
    }

    pub fn ask(&mut self, ids: &Ids, now_ms: u64) -> Ask {
        let cluster = ids.cluster_path();
        match self.step {
            Step::LookAround => Ask::get(format!("{cluster}/hosts")),
            Step::LookAtCluster | Step::End => Ask::get(cluster),
            Step::TellReboots => self.reboot_event(ids, now_ms),
            Step::Stage(stage) => {
                let finalizing_stage = Some(stage);
                let body = ReportClusterProgress { finalizing_stage };
                Ask::send(Method::PUT, format!("{cluster}/progress"), &body)
            }
            Step::ListOperators => Ask::get(format!("{cluster}/monitored-operators")),
            Step::ReportOperator => Ask::send(
                Method::PUT,
                format!("{cluster}/monitored-operators"),
                &self.operator(),
            ),
            Step::Kubeconfig => Ask::get(format!(
                "{cluster}/downloads/credentials?file_name=kubeconfig-noingress"
            )),
            Step::IngressCert => {
                let body = IngressCert(INGRESS_CERTIFICATE.to_owned());
                Ask::send(Method::POST, format!("{cluster}/uploads/ingress-cert"), &body)
            }
            Step::Complete => {
                let body = CompleteInstallation {
                    is_success: true,
                    ..CompleteInstallation::default()
                };
                Ask::send(
                    Method::POST,
                    format!("{cluster}/actions/complete-installation"),
                    &body,
                )
            }
            Step::Logs(part) => logs::of_controller(ids, part),
        }
    }

    fn operator(&self) -> ReportOperator {
        let Some(operator) = self.operators.last() else {
            return ReportOperator::default();
        };
        let info = match operator.next {
            OperatorStatus::Available => "it works",
            OperatorStatus::Progressing | OperatorStatus::Failed => "it is being set up",
        };
        ReportOperator {
            name: Some(operator.name.clone()),
            version: Some(operator.version.clone()).filter(|version| !version.is_empty()),
            status: Some(operator.next),
            status_info: Some(info.to_owned()),
        }
    }

    fn reboot_event(&self, ids: &Ids, now_ms: u64) -> Ask {
        let at = i64::try_from(now_ms)
            .ok()
            .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let body = TriggerEvent {
            name: Some("reboots_for_node".to_owned()),
            cluster_id: Some(ids.cluster),
            host_id: self.hosts.last().copied(),
            severity: Severity::Info,
            category: Some(Category::User),
            message: "The node rebooted once on its way into the cluster".to_owned(),
            event_time: DateMs(at),
            ..TriggerEvent::default()
        };
        Ask::send(Method::POST, format!("{BASE}/events"), &body)
    }

    /// When the next call is due, and what this one came to.
    pub fn receive(&mut self, ids: &Ids, now_ms: u64, setup: &Setup, outcome: &Outcome) -> (u64, Turn) {
        let later = now_ms + setup.look_ms(LOOK_MS);
        let body: &[u8] = match outcome {
            Outcome::Response {
                status: 200..=299,
                body,
            } => body,
            Outcome::Response {
                status: 401 | 403 | 404,
                ..
            } if matches!(self.step, Step::LookAround | Step::LookAtCluster) => {
                return (u64::MAX, Turn::Ended);
            }
            // Logs and events are worth one attempt.
            Outcome::Response { .. } if matches!(self.step, Step::Logs(_) | Step::TellReboots) => &[],
            // The hub may have changed its mind about the cluster.
            Outcome::Response {
                status: 400..=499, ..
            } => {
                self.step = Step::LookAround;
                return (later, Turn::Goes);
            }
            Outcome::Response { .. } | Outcome::Lost => return (later, Turn::Goes),
        };
        let pause = self.advance(ids, body);
        match (self.step, pause) {
            (Step::End, _) => (u64::MAX, Turn::Ended),
            (_, Pause::Look) => (later, Turn::Goes),
            (_, Pause::Work(ms)) => (now_ms + setup.install_work_ms(ms), Turn::Goes),
        }
    }

    fn advance(&mut self, ids: &Ids, body: &[u8]) -> Pause {
        let next = Pause::Work(CALL_MS);
        match self.step {
            Step::LookAround => return self.look_around(ids, body),
            Step::LookAtCluster => return self.look_at_cluster(body),
            Step::TellReboots => {
                self.hosts.pop();
                // Told once, even when the rest has to be done again.
                self.counts_reboots = !self.hosts.is_empty();
                self.step = self.after_looking();
            }
            Step::Stage(stage) => self.step = self.after_stage(stage),
            Step::ListOperators => return self.list_operators(body),
            Step::ReportOperator => {
                self.operators.pop();
                if self.operators.is_empty() {
                    self.step = Step::ListOperators;
                    return Pause::Work(OPERATOR_MS);
                }
            }
            Step::Kubeconfig => self.step = Step::IngressCert,
            Step::IngressCert if self.has_olm => self.step = Step::Stage(OLM_STAGES[0]),
            Step::IngressCert => self.step = Step::Stage(FinalizingStage::Done),
            Step::Complete => self.step = Step::Logs(LogsPart::Upload),
            Step::Logs(LogsPart::Begin) if self.is_lost => self.step = Step::Logs(LogsPart::Upload),
            Step::Logs(LogsPart::Begin) => self.step = Step::Complete,
            Step::Logs(LogsPart::Upload) => self.step = Step::Logs(LogsPart::End),
            Step::Logs(LogsPart::End) | Step::End => self.step = Step::End,
        }
        next
    }

    fn look_around(&mut self, ids: &Ids, body: &[u8]) -> Pause {
        let Some(peers) = Peers::read(body) else {
            return Pause::Look;
        };
        if peers.leader() == Some(ids.host) {
            self.hosts = peers.0.iter().map(|peer| peer.id).collect();
            self.step = Step::LookAtCluster;
            return Pause::Work(CALL_MS);
        }
        if !peers.still_installs(ids.host) || peers.all_masters_are_done() {
            self.step = Step::End;
        }
        Pause::Look
    }

    fn look_at_cluster(&mut self, body: &[u8]) -> Pause {
        let cluster: Cluster<'_> = serde_json::from_slice(body).unwrap_or_default();
        self.version = cluster.openshift_version.into_owned();
        use ClusterStatus::*;
        self.step = match cluster.status.known() {
            Some(Finalizing) => self.after_looking(),
            Some(Error | Cancelled) => {
                self.is_lost = true;
                Step::Logs(LogsPart::Begin)
            }
            Some(PreparingForInstallation | Installing | InstallingPendingUserAction) => {
                self.step = Step::LookAround;
                return Pause::Look;
            }
            Some(PendingForInput | Insufficient | Ready | Installed | AddingHosts | Unmonitored) | None => {
                Step::End
            }
        };
        Pause::Work(CALL_MS)
    }

    fn after_looking(&self) -> Step {
        if self.counts_reboots && !self.hosts.is_empty() {
            Step::TellReboots
        } else {
            Step::Stage(FinalizingStage::ClusterOperators)
        }
    }

    fn after_stage(&self, stage: FinalizingStage) -> Step {
        match stage {
            FinalizingStage::ClusterOperators => Step::ListOperators,
            FinalizingStage::RouterCa => Step::Kubeconfig,
            FinalizingStage::OlmManifests
            | FinalizingStage::OlmCsvInit
            | FinalizingStage::OlmCsv
            | FinalizingStage::OlmSetupJobs => {
                let next = OLM_STAGES.iter().skip_while(|olm| **olm != stage).nth(1);
                Step::Stage(*next.unwrap_or(&FinalizingStage::Done))
            }
            FinalizingStage::Done => Step::Logs(LogsPart::Begin),
        }
    }

    fn list_operators(&mut self, body: &[u8]) -> Pause {
        let seen: Vec<OperatorSeen<'_>> = serde_json::from_slice(body).unwrap_or_default();
        self.has_olm = seen.iter().any(|operator| operator.operator_type == "olm");
        let missing = seen
            .into_iter()
            .filter(|operator| operator.status != OperatorStatus::Available);
        self.operators = missing
            .map(|operator| Operator {
                version: if operator.version.is_empty() {
                    self.version.clone()
                } else {
                    operator.version.into_owned()
                },
                next: if operator.status == OperatorStatus::Progressing {
                    OperatorStatus::Available
                } else {
                    OperatorStatus::Progressing
                },
                name: operator.name.into_owned(),
            })
            .collect();
        self.step = if self.operators.is_empty() {
            Step::Stage(FinalizingStage::RouterCa)
        } else {
            Step::ReportOperator
        };
        Pause::Work(CALL_MS)
    }
}

/// How long until the next call.
#[derive(Debug, Clone, Copy)]
enum Pause {
    Look,
    Work(u64),
}
