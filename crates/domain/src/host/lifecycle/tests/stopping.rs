//! Installers that are stopped, hosts that come back with a receipt, and logs that are asked for.

use super::super::super::returning::{TakenBack, first_phase, route};
use super::super::super::steps::{After, Step, orders};
use super::super::super::{LogsInfo, Role, Route, Status, words};
use super::*;
use crate::journal::Entry;

fn measured() -> Event {
    Event::Measured {
        gates: good_gates(),
        complaints: String::new(),
    }
}

/// A worker whose installer was just started.
fn installing() -> Host {
    let mut host = lent(Phase::Prepared);
    host.role = Role::Worker;
    let around = in_cluster(noon(), cluster::Phase::Installing);
    let host = next(&host, &measured(), &around).unwrap().host;
    assert_eq!(
        (host.status(), host.installer_may_run),
        (Status::Installing, true)
    );
    host
}

fn after(host: &Host, event: Event) -> Host {
    step(host, event).unwrap().host
}

fn receipt(journal: &[Entry]) -> Option<&Entry> {
    journal.iter().find(|entry| entry.name == "host_returned")
}

#[test]
fn a_cancelled_host_is_freed_only_after_its_installer_stopped() {
    let mut host = after(&installing(), Event::Cancel);
    host = after(&host, Event::Unbind);
    assert_eq!(host.status(), Status::UnbindingPendingUserAction);
    let told = orders(&host);
    assert_eq!(
        (told.steps, told.next_poll_seconds, told.after),
        (&[Step::StopInstallation][..], 5, After::Continue)
    );
    let stopped = after(&host, Event::InstallerStopped);
    assert_eq!(orders(&stopped).after, After::Exit);
    let home = after(&after(&stopped, registered()), measured());
    assert_eq!(home.status(), Status::KnownUnbound);
}

#[test]
fn a_host_that_registers_with_a_running_installer_waits_for_its_end() {
    let host = after(&after(&installing(), Event::Cancel), Event::Unbind);
    let back = after(&after(&host, registered()), measured());
    assert_eq!(back.status(), Status::DiscoveringUnbound);
    assert!(orders(&back).steps.contains(&Step::StopInstallation));
    assert!(step(&back, Event::Bind { to: BETA }).is_err());
    assert!(
        back.status_info.contains("stop-installation"),
        "{}",
        back.status_info
    );
    let stopped = after(&back, Event::InstallerStopped);
    assert_eq!(stopped.status(), Status::KnownUnbound);
    // Its hardware is not known yet when the answer comes: then that is what it waits for.
    let early = after(&after(&host, registered()), Event::InstallerStopped);
    assert_eq!(early.status(), Status::DiscoveringUnbound);
    assert_eq!(early.status_info, words::status_text(Status::DiscoveringUnbound));
}

#[test]
fn a_reboot_a_wrong_boot_and_a_stop_prove_that_the_installer_ended() {
    let around = in_cluster(noon(), cluster::Phase::Installing);
    let goes = |host: &Host, event: Event| next(host, &event, &around).unwrap().host;
    let stage = |stage| Event::Progressed {
        stage,
        info: String::new(),
    };
    let writing = goes(&installing(), stage(Stage::Writing));
    assert!(writing.installer_may_run);
    let rebooting = goes(&writing, stage(Stage::Rebooting));
    assert!(!rebooting.installer_may_run);
    let mut odd = rebooting.clone();
    odd.installer_may_run = true;
    assert!(!goes(&odd, registered()).installer_may_run);
    assert!(!goes(&writing, Event::InstallerStopped).installer_may_run);
    assert!(goes(&writing, Event::InstallFailed { why: "exit 1".into() }).installer_may_run);
}

#[test]
fn a_wrong_boot_names_the_disk_as_the_firmware_lists_it() {
    let mut host = lent(Phase::InProgress);
    host.progress = progress(Stage::Rebooting);
    host.tenant.installation_disk_label = "MODEL_960 SER0000520 (sda, /dev/disk/by-id/wwn-0x5)".into();
    let said = after(&host, registered()).status_info;
    assert!(
        said.contains("MODEL_960 SER0000520 (sda, /dev/disk/by-id/wwn-0x5)"),
        "{said}"
    );
}

#[test]
fn the_receipt_says_how_and_how_fast_the_host_came_back_and_what_was_cleared() {
    let mut host = lent(Phase::Installed);
    host.progress = progress(Stage::Done);
    host.tenant = secretive();
    let left = after(&host, Event::Unbind);
    assert_eq!(left.returning.as_ref().map(|back| back.route), Some(Route::Boot));
    let around = at(noon() + minutes(7));
    let home = next(&left, &registered(), &around).unwrap();
    let entry = receipt(&home.journal).unwrap();
    assert!(entry.message.contains("after 7 min"), "{}", entry.message);
    assert!(entry.message.contains("ignition token"), "{}", entry.message);
    assert!(!entry.message.contains("canary"), "{}", entry.message);
    assert!(
        entry.props.contains("\"route\":\"boot\"") && entry.props.contains("\"seconds\":420"),
        "{}",
        entry.props
    );
    assert_eq!((home.host.returning, entry.cluster), (None, None));
}

#[test]
fn a_host_that_got_lost_on_the_way_back_has_its_receipt_when_it_turns_up() {
    let left = after(&lent(Phase::Discovery), Event::Unbind);
    let lost = next(&left, &Event::Due, &at(noon() + minutes(15))).unwrap();
    assert!(receipt(&lost.journal).is_none());
    let home = next(&lost.host, &registered(), &at(noon() + minutes(90))).unwrap();
    assert!(receipt(&home.journal).is_some());
    let again = next(&home.host, &registered(), &at(noon() + minutes(91))).unwrap();
    assert!(receipt(&again.journal).is_none());
}

#[test]
fn a_reclaim_that_fails_is_told_as_a_boot() {
    let mut host = lent(Phase::Installed);
    host.progress = progress(Stage::Done);
    let left = after(&host, Event::Reclaim);
    let route = |host: &Host| host.returning.as_ref().map(|back| back.route);
    assert_eq!(route(&left), Some(Route::Reclaim));
    let failed = after(
        &left,
        Event::ReclaimFailed {
            why: "no room".into(),
        },
    );
    assert_eq!(route(&failed), Some(Route::Boot));
}

/// Whether a lent host may leave a phase depends on who asks; a cluster that is deleted lets every one go.
#[test]
fn from_every_phase_the_route_is_the_same_before_and_after_and_the_phase_follows_from_it() {
    let mut left = std::collections::BTreeSet::new();
    for phase in Phase::ALL.into_iter().filter(|phase| !phase.is_returning()) {
        for (connected, stage) in [
            (true, None),
            (true, Some(Stage::Writing)),
            (true, Some(Stage::Done)),
            (false, None),
        ] {
            let mut host = lent(phase);
            (host.connected, host.progress.stage) = (connected, stage);
            for (event, taken) in [
                (Event::Unbind, TakenBack::LetGo),
                (Event::Release, TakenBack::LetGo),
                (Event::Reclaim, TakenBack::InBand),
            ] {
                let Ok(decision) = step(&host, event.clone()) else {
                    continue;
                };
                let back = decision.host;
                let decided = route(&host, taken);
                let said = format!("{event:?} in {phase:?}, connected: {connected}, {stage:?}");
                assert_eq!(
                    back.returning.as_ref().map(|back| back.route),
                    Some(decided),
                    "{said}"
                );
                assert_eq!(back.phase, first_phase(&host, decided), "{said}");
                for asked_again in [TakenBack::LetGo, TakenBack::InBand] {
                    assert_eq!(route(&back, asked_again), decided, "{said}");
                }
                let by_itself = taken == TakenBack::InBand && host.status().can_reclaim();
                assert_eq!(decided == Route::Reclaim, by_itself, "{said}");
                let state = back.status();
                let wanted = match decided {
                    Route::AgentRestart if matches!(phase, Phase::Discovery | Phase::Binding) => {
                        Status::Unbinding
                    }
                    // A person may come first.
                    Route::AgentRestart | Route::Boot => Status::UnbindingPendingUserAction,
                    Route::Reclaim => Status::Reclaiming,
                };
                assert_eq!(state, wanted, "{said}");
                assert_eq!(
                    decided == Route::Reclaim,
                    state.way_back() == Some(Route::Reclaim),
                    "{said}"
                );
                left.insert((phase, decided));
            }
        }
    }
    let of = |phase| -> Vec<Route> {
        let routes = left.iter().filter(|(from, _)| *from == phase);
        routes.map(|(_, route)| *route).collect()
    };
    for phase in Phase::ALL.into_iter().filter(|phase| !phase.is_returning()) {
        let wanted: &[Route] = match phase {
            Phase::Discovery | Phase::Binding => &[Route::AgentRestart],
            Phase::Installed | Phase::Added => Route::ALL,
            _ => &[Route::AgentRestart, Route::Boot],
        };
        assert_eq!(of(phase), wanted, "{phase:?}");
    }
}

#[test]
fn a_reset_host_whose_agent_lives_needs_nobody_to_boot_it() {
    let reset = after(&installing(), Event::Reset);
    assert_eq!(orders(&reset).steps, [Step::StopInstallation]);
    let stopped = after(&reset, Event::InstallerStopped);
    assert_eq!(stopped.status(), Status::ResettingPendingUserAction);
    assert_eq!(orders(&stopped).after, After::Exit);
    let again = after(&after(&stopped, registered()), measured());
    assert_eq!(again.status(), Status::Known);
    let mut rebooted = lent(Phase::ResetPending);
    rebooted.progress = progress(Stage::Joined);
    assert_eq!(orders(&rebooted).after, After::Continue);
}

#[test]
fn whoever_fails_or_is_cancelled_is_asked_for_logs_and_given_up_after_a_while() {
    for event in [Event::Cancel, Event::InstallFailed { why: "exit 1".into() }] {
        let host = after(&installing(), event);
        assert_eq!(host.logs.info, LogsInfo::Requested);
        assert!(orders(&host).steps.contains(&Step::LogsGather));
        let later = next(&host, &Event::Due, &at(noon() + minutes(2))).unwrap().host;
        assert_eq!(later.logs.info, LogsInfo::Timeout);
    }
    let mut collected = after(&installing(), Event::InstallFailed { why: "no".into() });
    collected.logs.info = LogsInfo::Completed;
    assert_eq!(after(&collected, Event::Cancel).logs.info, LogsInfo::Completed);
}

#[test]
fn only_a_spare_worker_fails_alone() {
    let mut around = in_cluster(noon() + minutes(60), cluster::Phase::BootFix);
    around.cluster.as_mut().unwrap().can_do_without = true;
    for (role, bootstrap, wanted) in [
        (Role::Worker, false, Status::Error),
        (Role::Master, false, Status::InstallingPendingUserAction),
        (Role::Arbiter, false, Status::InstallingPendingUserAction),
        (Role::Worker, true, Status::InstallingPendingUserAction),
    ] {
        let mut host = lent(Phase::BootFix);
        (host.role, host.bootstrap) = (role, bootstrap);
        assert_eq!(
            next(&host, &Event::Due, &around).unwrap().host.status(),
            wanted,
            "{role:?}"
        );
    }
}

#[test]
fn a_host_whose_boot_order_was_fixed_can_finish_at_once() {
    let mut host = lent(Phase::BootFix);
    host.role = Role::Master;
    host.progress = progress(Stage::Rebooting);
    let done = Event::Progressed {
        stage: Stage::Done,
        info: String::new(),
    };
    assert_eq!(after(&host, done).status(), Status::Installed);
}

#[test]
fn the_plan_gives_a_ready_host_its_role_and_says_so() {
    let host = lent(Phase::Discovery);
    let event = Event::Assigned {
        role: Role::Master,
        bootstrap: true,
    };
    let decision = step(&host, event.clone()).unwrap();
    assert_eq!(
        (decision.host.role, decision.host.bootstrap),
        (Role::Master, true)
    );
    let told: Vec<_> = decision.journal.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(told, ["host_role_updated", "host_bootstrap_set"]);
    assert!(step(&lent(Phase::Binding), event).is_err());
}
