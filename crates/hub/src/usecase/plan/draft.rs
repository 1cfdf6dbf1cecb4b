//! A plan in the making: steps, what blocks, and what is lost for good.

use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot};
use muster_contract::v1::plan::{Blocker, PlanStep, PlanView, Verb};
use muster_contract::v1::row_status::RowStatus;
use muster_domain::Refused;
use muster_domain::cluster::Cluster;
use muster_domain::host::{Event, Host, Route, Status, returning, rules};
use std::borrow::Cow;
use std::sync::Arc;

/// A plan in the making.
pub(super) struct Draft {
    verb: Verb,
    pub steps: Vec<PlanStep>,
    pub blockers: Vec<Blocker>,
    pub warnings: Vec<String>,
}

impl Draft {
    pub fn new(verb: Verb) -> Self {
        Self {
            verb,
            steps: Vec::new(),
            blockers: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub fn view(self) -> PlanView {
        let Self {
            verb,
            steps,
            blockers,
            warnings,
        } = self;
        PlanView {
            verb: verb.into(),
            allowed: blockers.is_empty(),
            steps,
            blockers,
            warnings,
        }
    }

    pub fn block(&mut self, subject: &str, refused: &Refused) {
        if self.blockers.iter().any(|known| known.code == refused.code) {
            return;
        }
        self.block_each(subject, refused);
    }

    /// One of several subjects that may block for the same reason.
    pub fn block_each(&mut self, subject: &str, refused: &Refused) {
        self.blockers.push(Blocker {
            code: Cow::Owned(refused.code.clone()),
            subject: subject.to_owned(),
            reason: refused.reason.clone(),
            next_action: refused.next_action.clone(),
        });
    }

    /// One of several questions that are asked even if another one was answered with no.
    pub fn check<T>(&mut self, snapshot: &HostSnapshot, answer: Result<T, Error>) {
        if let Err(Error::Refused(refused)) = answer {
            self.block(&subject(&snapshot.host), &refused);
        }
    }

    /// The verb's own answer has the last word.
    pub fn allowed(
        &mut self,
        snapshot: &HostSnapshot,
        change: Result<HostChange, Error>,
    ) -> Result<Option<HostChange>, Error> {
        match change {
            Ok(change) => {
                self.blockers.clear();
                Ok(Some(change))
            }
            Err(Error::Refused(refused)) => {
                self.block(&subject(&snapshot.host), &refused);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub fn step(
        &mut self,
        host: &Host,
        action: String,
        from: Option<Status>,
        to: Option<Status>,
    ) -> &mut PlanStep {
        self.step_about(
            subject(host),
            action,
            from.map(RowStatus::from),
            to.map(RowStatus::from),
        )
    }

    pub fn step_about(
        &mut self,
        subject: String,
        action: String,
        from: Option<RowStatus>,
        to: Option<RowStatus>,
    ) -> &mut PlanStep {
        let order = u32::try_from(self.steps.len() + 1).unwrap_or(u32::MAX);
        self.steps.push(PlanStep {
            order,
            subject,
            action: action.into(),
            from,
            to,
            note: None,
            destroys: Vec::new(),
        });
        self.steps.last_mut().expect("a step was pushed a line above")
    }

    pub fn give_back(&mut self, before: &Host, after: &Host) {
        let (from, to) = (Some(before.status()), Some(after.status()));
        let action = match after.route() {
            Some(Route::Reclaim) => "return to its pool by itself",
            Some(Route::AgentRestart | Route::Boot) | None => "return to its pool",
        };
        let step = self.step(before, action.into(), from, to);
        step.destroys = lost(before);
        let way = after.route().map_or("", returning::happens);
        step.note = Some(stopped_first(before, way));
    }

    /// How a returned host becomes free; says the status it has then.
    pub fn come_back(&mut self, snapshot: &HostSnapshot, after: &Host) -> Status {
        if after.route() == Some(Route::Boot) {
            let action = "boot the discovery image, by hand or by BMC";
            self.step(after, action.into(), None, None);
        }
        self.register_again(snapshot, after, None);
        let ready = Status::KnownUnbound;
        let step = self.step(after, "report its hardware".into(), None, Some(ready));
        step.note = Some("Free for the next cluster.".into());
        ready
    }

    pub fn register_again(&mut self, snapshot: &HostSnapshot, after: &Host, cluster: Option<&Arc<Cluster>>) {
        let around = snapshot.hub.around(cluster.map(AsRef::as_ref), snapshot.now);
        let event = Event::Registered {
            agent_version: after.agent_version.clone(),
        };
        let arrives = muster_domain::host::lifecycle::next(after, &event, &around);
        let to = arrives.map(|decision| decision.host.status()).ok();
        let step = self.step(after, "register again".into(), Some(after.status()), to);
        let when = match after.route() {
            Some(Route::Boot | Route::Reclaim) => "As soon as it runs the discovery image.",
            Some(Route::AgentRestart) | None => "At the agent's next poll, within about a minute.",
        };
        step.note = Some(when.into());
    }

    pub fn forget(&mut self, host: &Host) {
        let step = self.step(host, "delete the host".into(), Some(host.status()), None);
        step.destroys = lost(host);
        step.destroys.push("its inventory and other reports".into());
        let left = if rules::group(host.phase) == rules::PhaseGroup::Writing {
            "What was written to its disk stays there, and its history stays."
        } else {
            "Its disk is not touched, and its history stays."
        };
        step.note = Some(stopped_first(host, left));
    }
}

/// Who leaves in the middle of an installation is cancelled before.
fn stopped_first(host: &Host, note: &str) -> String {
    match rules::is_being_installed(host) {
        true => {
            format!("Its installation is cancelled first: its agent is told to stop the installer. {note}")
        }
        false => note.into(),
    }
}

pub(super) fn subject(host: &Host) -> String {
    format!("host/{}", host.name())
}

/// What the borrower put on the host and will not find again: what the receipt of its return will name.
pub(super) fn lost(host: &Host) -> Vec<String> {
    let kinds = returning::cleared(host).into_iter();
    kinds.map(|kind| format!("its {kind}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_change::Stored;
    use crate::{Clock, Hub, Settings};
    use muster_domain::host::Phase;
    use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
    use muster_store::{Database, Store};
    use std::collections::BTreeSet;
    use uuid::Uuid;

    /// A lent host; alive or silent.
    async fn lent(phase: Phase, connected: bool) -> HostSnapshot {
        let store = Store::open(&Database::Memory).await.unwrap();
        let hub = Hub::open(store, Settings::plain().unwrap(), Clock::System)
            .await
            .unwrap();
        let key = HostKey {
            infra_env: InfraEnvId(Uuid::from_u128(1)),
            host: HostId(Uuid::from_u128(2)),
        };
        let now = hub.now();
        let mut host = Host::arriving(key, Some(ClusterId(Uuid::from_u128(3))), now);
        (host.phase, host.connected) = (phase, connected);
        HostSnapshot {
            hub,
            host,
            stored: Stored::new(),
            cluster: None,
            infra_env: None,
            now,
        }
    }

    #[tokio::test]
    async fn from_every_phase_the_plan_tells_the_route_that_is_kept_and_leads_to_its_phase() {
        let mut left = BTreeSet::new();
        for phase in Phase::ALL.into_iter().filter(|phase| !phase.is_returning()) {
            for connected in [true, false] {
                let snapshot = lent(phase, connected).await;
                for event in [Event::Unbind, Event::Release, Event::Reclaim] {
                    let Ok(decision) = snapshot.next(&event) else {
                        continue;
                    };
                    let (before, after) = (&snapshot.host, decision.host);
                    let said = format!("{event:?} in {phase:?}, connected: {connected}");
                    let route = after.returning.as_ref().expect("it is on its way").route;
                    assert_eq!(after.phase, returning::first_phase(before, route), "{said}");
                    let mut draft = Draft::new(Verb::Unbind);
                    draft.give_back(before, &after);
                    let arrived = draft.come_back(&snapshot, &after);
                    let told = draft.view().steps;
                    let note = told[0].note.as_deref().unwrap_or_default();
                    assert!(note.ends_with(returning::happens(route)), "{said}: {note}");
                    assert_eq!(
                        told[0].to.as_ref().map(RowStatus::as_str),
                        Some(after.status().word()),
                        "{said}"
                    );
                    let boots = told
                        .iter()
                        .any(|step| step.action.starts_with("boot the discovery image"));
                    assert_eq!(boots, route == Route::Boot, "{said}: {told:?}");
                    assert_eq!(arrived, Status::KnownUnbound);
                    left.insert(phase);
                }
            }
        }
        let all = Phase::ALL.into_iter().filter(|phase| !phase.is_returning());
        assert_eq!(left, all.collect::<BTreeSet<_>>(), "each of them was left");
    }
}
