//! What each event does in each phase, row by row.

use super::super::super::{Kind, Media, Report, Return, Role, Route, Status, rules, steps};
use super::*;
use crate::refusal::Class;

fn goes(phase: Phase, event: Event) -> Phase {
    step(&lent(phase), event).unwrap().host.phase
}

fn refuses(phase: Phase, event: Event) -> Class {
    step(&lent(phase), event).unwrap_err().class
}

#[test]
fn registering_sends_every_waiting_host_back_to_discovery() {
    use Phase::*;
    for phase in [
        Discovery,
        Binding,
        ResetPending,
        PrepareFailed,
        Unbinding,
        ReturnPending,
        Reclaiming,
        ReclaimRebooting,
    ] {
        let after = step(&lent(phase), registered()).unwrap().host;
        assert_eq!(after.phase, Discovery, "{phase:?}");
        assert!(!after.gates.inventory, "{phase:?} must report its hardware anew");
        assert_eq!(
            after.cluster,
            phase_cluster(phase),
            "registering never changes the lender"
        );
    }
}

#[test]
fn an_agent_that_restarts_while_preparing_keeps_its_hardware() {
    for phase in [Phase::Preparing, Phase::Prepared] {
        let after = step(&lent(phase), registered()).unwrap().host;
        assert_eq!(
            (after.phase, after.gates.inventory, after.status()),
            (Phase::Discovery, true, Status::Known)
        );
    }
}

#[test]
fn a_restart_in_the_middle_of_an_installation_is_an_error_unless_the_hub_was_down() {
    let mut host = lent(Phase::InProgress);
    host.progress = progress(Stage::Writing);
    assert_eq!(step(&host, registered()).unwrap().host.status(), Status::Error);
    let away = Around {
        hub_was_down: true,
        ..in_cluster(noon(), cluster::Phase::Installing)
    };
    assert_eq!(
        next(&host, &registered(), &away).unwrap().host.status(),
        Status::InstallingInProgress
    );
}

#[test]
fn booting_the_image_again_after_the_reboot_asks_for_the_boot_order() {
    let mut host = lent(Phase::InProgress);
    host.progress = progress(Stage::Rebooting);
    let after = step(&host, registered()).unwrap().host;
    assert_eq!(after.status(), Status::InstallingPendingUserAction);
    assert_eq!(step(&after, registered()).unwrap_err().class, Class::TryAgain);
    let mut added = lent(Phase::Added);
    added.kind = Kind::AddToExistingClusterHost;
    added.progress = progress(Stage::Done);
    assert_eq!(step(&added, registered()).unwrap().host.phase, Phase::BootFix);
}

#[test]
fn no_refused_registration_makes_a_real_agent_block_for_ever() {
    for phase in Phase::ALL {
        if let Err(refused) = step(&lent(phase), registered()) {
            assert!(
                matches!(refused.class, Class::TryAgain | Class::Unavailable),
                "{phase:?}"
            );
        }
    }
}

#[test]
fn only_a_free_and_ready_host_can_be_bound() {
    let bind = Event::Bind { to: BETA };
    let bound = step(&free(), bind.clone()).unwrap();
    assert_eq!(
        (bound.host.cluster, bound.host.status()),
        (Some(BETA), Status::Binding)
    );
    assert!(
        bound
            .journal
            .iter()
            .any(|entry| entry.name == "host_bind_succeeded" && entry.cluster == Some(BETA))
    );
    let mut silent = free();
    silent.connected = false;
    let mut small = free();
    small.gates.min_hardware = false;
    let mut unknown = free();
    unknown.gates = Gates::default();
    for host in [
        silent,
        small,
        unknown,
        lent(Phase::Unbinding),
        lent(Phase::Discovery),
    ] {
        let refused = step(&host, bind.clone()).unwrap_err();
        assert_eq!(refused.class, Class::Conflict);
        assert!(!refused.next_action.is_empty(), "{refused:?}");
    }
}

#[test]
fn binding_keeps_what_the_pool_said_about_the_host() {
    let mut host = free();
    host.role = Role::Master;
    host.requested_hostname = Some("rack-7".into());
    let after = step(&host, Event::Bind { to: BETA }).unwrap().host;
    assert_eq!((after.role, after.name().as_str()), (Role::Master, "rack-7"));
}

#[test]
fn unbinding_goes_through_a_boot_only_where_the_disk_may_be_written() {
    use Phase::*;
    for phase in [Discovery, Binding] {
        assert_eq!(goes(phase, Event::Unbind), Unbinding, "{phase:?}");
    }
    for phase in [Installed, Added, Failed, Cancelled, ResetPending] {
        assert_eq!(goes(phase, Event::Unbind), ReturnPending, "{phase:?}");
    }
    for phase in [
        Preparing,
        Prepared,
        PrepareFailed,
        Installing,
        InProgress,
        BootFix,
        Resetting,
    ] {
        assert_eq!(refuses(phase, Event::Unbind), Class::Conflict, "{phase:?}");
        assert_eq!(
            goes(phase, Event::Release),
            ReturnPending,
            "a deleted cluster lets {phase:?} go"
        );
    }
    assert_eq!(step(&free(), Event::Unbind).unwrap_err().code, "host-is-free");
}

#[test]
fn nothing_of_the_last_tenant_survives_the_return() {
    for event in [Event::Unbind, Event::Release, Event::Reclaim] {
        for phase in Phase::ALL {
            let mut host = lent(phase);
            host.tenant = secretive();
            host.role = Role::Master;
            let Ok(decision) = step(&host, event.clone()) else {
                continue;
            };
            let after = decision.host;
            assert_eq!(after.tenant, Tenant::default(), "{phase:?} {event:?}");
            assert!(
                !serde_json::to_string(&after).unwrap().contains("canary"),
                "{phase:?} {event:?}"
            );
            assert_eq!(
                (after.cluster, after.role, after.kind),
                (None, Role::AutoAssign, Kind::Host)
            );
            let left = decision
                .journal
                .iter()
                .find(|entry| entry.name == "host_unbind_succeeded")
                .unwrap();
            assert_eq!(
                left.cluster,
                Some(ALPHA),
                "the old cluster's history shows that the host left"
            );
        }
    }
}

/// Free and not back yet: on each way, and lost on it.
fn on_their_way_back() -> Vec<Host> {
    let ways = [
        (Phase::Discovery, Event::Unbind),
        (Phase::Installed, Event::Unbind),
        (Phase::Installed, Event::Reclaim),
        (Phase::Installing, Event::Release),
    ];
    let mut hosts: Vec<Host> = ways
        .map(|(phase, event)| step(&lent(phase), event).unwrap().host)
        .into();
    let unbinding = &hosts[0];
    let silent = next(unbinding, &Event::Due, &at(noon() + minutes(4)))
        .unwrap()
        .host;
    let heard = step(&silent, Event::CheckedIn).unwrap().host;
    let no_media = step(unbinding, Event::MediaLost).unwrap().host;
    let rebooting = step(&hosts[2], Event::ReclaimReady).unwrap().host;
    hosts.extend([silent, heard, no_media, rebooting]);
    hosts
}

#[test]
fn nobody_writes_on_a_host_that_is_on_its_way_back_and_what_was_written_goes_when_it_registers() {
    for mut host in on_their_way_back() {
        let refused = rules::editable(&host).unwrap_err();
        assert_eq!(refused.code, "host-not-editable", "{:?}", host.status());
        // As a hub without that rule would have left it.
        host.tenant = secretive();
        host.role = Role::Worker;
        let back = step(&host, registered()).unwrap();
        assert_eq!(back.host.tenant, Tenant::default(), "{:?}", host.status());
        assert_eq!(back.host.role, Role::AutoAssign);
        assert!(rules::editable(&back.host).is_ok());
        assert!(back.journal.iter().any(|entry| entry.name == "host_returned"));
    }
}

#[test]
fn a_late_report_of_the_last_borrower_is_not_kept_and_goes_when_the_host_registers() {
    for host in on_their_way_back() {
        let takes = [
            rules::takes_inventory(&host),
            rules::takes_reports(&host),
            rules::takes_tests(&host),
        ];
        assert_eq!(takes, [false; 3], "{:?} {:?}", host.phase, host.status());
        let back = step(&host, registered()).unwrap();
        // As a hub without that rule would have left them.
        for report in [
            Report::ApiVipConnectivity,
            Report::TangConnectivity,
            Report::Connectivity,
        ] {
            assert!(back.forget.contains(&report), "{:?} {report:?}", host.phase);
        }
        assert!(rules::takes_inventory(&back.host) && rules::takes_reports(&back.host));
    }
    let rebooted = step(&free(), registered()).unwrap();
    assert!(
        !rebooted.forget.contains(&Report::Connectivity),
        "another boot is no return"
    );
}

#[test]
fn settings_are_for_hosts_in_discovery_and_no_others_whoever_has_them() {
    for phase in Phase::ALL {
        for cluster in [None, Some(ALPHA)] {
            for comes_back in [false, true] {
                let mut host = lent(phase);
                host.cluster = cluster;
                host.returning = comes_back.then(|| Return::of(&host, Route::AgentRestart, noon()));
                let is_discovered = matches!(phase, Phase::Discovery | Phase::Binding);
                let is_lost = cluster.is_none() && comes_back;
                assert_eq!(
                    rules::editable(&host).is_ok(),
                    is_discovered && !is_lost,
                    "{phase:?}, lent to {cluster:?}, on its way back: {comes_back}"
                );
            }
        }
    }
}

#[test]
fn whoever_may_not_take_a_host_in_the_middle_of_its_installation_is_told_what_ends_it() {
    let joined = Around {
        cluster: Some(ClusterState {
            adds_hosts: true,
            ..cluster_state(cluster::Phase::AddingHosts)
        }),
        ..at(noon())
    };
    let with_cluster = in_cluster(noon(), cluster::Phase::Installing);
    for event in [Event::Unbind, Event::Reclaim, Event::Move { to: BETA }] {
        for phase in Phase::ALL {
            let host = lent(phase);
            if !rules::is_being_installed(&host) {
                continue;
            }
            for (around, way_out) in [(&with_cluster, Event::Cancel), (&joined, Event::Reset)] {
                let refused = next(&host, &event, around).unwrap_err();
                let way = format!("{way_out:?}");
                assert!(
                    refused.next_action.starts_with(&way),
                    "{phase:?} {event:?}: {refused:?}"
                );
                let out = next(&host, &way_out, around).unwrap().host;
                assert!(!rules::is_being_installed(&out), "{phase:?} {event:?}");
            }
        }
    }
}

#[test]
fn a_host_that_got_lost_on_its_way_back_is_told_to_register_when_it_is_heard_again() {
    let heard = on_their_way_back().swap_remove(5);
    assert_eq!(heard.status(), Status::DiscoveringUnbound);
    assert_eq!(steps::orders(&heard).after, steps::After::Exit);
}

#[test]
fn what_is_written_on_a_free_host_stays_for_whoever_it_is_lent_to_and_goes_when_it_leaves_there() {
    let mut host = free();
    assert!(rules::editable(&host).is_ok());
    host.tenant = secretive();
    let rebooted = step(&host, registered()).unwrap().host;
    assert_eq!(rebooted.tenant, secretive(), "another boot is no return");
    host = step(&host, Event::Bind { to: BETA }).unwrap().host;
    host = step(&host, registered()).unwrap().host;
    assert_eq!(host.tenant, secretive());
    host = step(&host, Event::Unbind).unwrap().host;
    assert_eq!(host.tenant, Tenant::default());
}

#[test]
fn a_host_whose_disk_is_written_is_deleted_only_when_no_cluster_can_cancel_that_and_is_cancelled_first() {
    use crate::cluster::Phase as Of;
    let host = lent(Phase::InProgress);
    for phase in Of::ALL {
        let mut cluster = crate::cluster::diagram::blank(noon());
        cluster.phase = phase;
        let runs_alone = !phase.can_be_cancelled();
        assert_eq!(
            rules::deletable(&host, Some(&cluster)).is_ok(),
            runs_alone,
            "{phase:?}"
        );
    }
    let names = |host: &Host| {
        let told = farewell(host, &in_cluster(noon(), Of::AddingHosts));
        told.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
    };
    let all = [
        "host_installation_cancelled",
        "host_status_updated",
        "host_deregistered",
    ];
    assert_eq!(names(&host), all);
    assert_eq!(names(&lent(Phase::Added)), all[2..]);
}

#[test]
fn a_host_whose_cluster_is_deleted_in_the_middle_of_its_installation_is_told_as_cancelled() {
    for phase in Phase::ALL.into_iter().filter(|phase| phase.needs_cluster()) {
        let host = lent(phase);
        let told = step(&host, Event::Release).unwrap().journal;
        let cancelled = told
            .iter()
            .filter(|entry| entry.name == "host_installation_cancelled");
        assert_eq!(
            cancelled.count(),
            usize::from(rules::is_being_installed(&host)),
            "{phase:?}"
        );
    }
}

#[test]
fn a_move_from_discovery_is_one_step_and_leaves_nothing_behind() {
    let mut host = lent(Phase::Discovery);
    host.tenant = secretive();
    let moved = step(&host, Event::Move { to: BETA }).unwrap().host;
    assert_eq!((moved.cluster, moved.status()), (Some(BETA), Status::Binding));
    assert_eq!(moved.tenant, Tenant::default());
}

#[test]
fn a_move_of_an_installed_host_waits_for_its_boot_and_then_finishes() {
    let returned = step(&lent(Phase::Installed), Event::Move { to: BETA })
        .unwrap()
        .host;
    assert_eq!(
        (returned.phase, returned.moving_to),
        (Phase::ReturnPending, Some(BETA))
    );
    let booted = step(&returned, registered()).unwrap().host;
    let ready = step(
        &booted,
        Event::Measured {
            gates: good_gates(),
            complaints: String::new(),
        },
    )
    .unwrap();
    assert_eq!(ready.host.status(), Status::KnownUnbound);
    assert_eq!(
        ready.effects,
        vec![super::super::super::Effect::FinishMove {
            host: ready.host.key(),
            to: BETA
        }]
    );
    let finish = |refused| Event::FinishMove { to: BETA, refused };
    let arrived = step(&ready.host, finish(None)).unwrap().host;
    assert_eq!(
        (arrived.cluster, arrived.moving_to, arrived.status()),
        (Some(BETA), None, Status::Binding)
    );
    let given_up = step(&ready.host, finish(Some(gone()))).unwrap();
    assert_eq!(given_up.host.moving_to, None);
    let names: Vec<_> = given_up.journal.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["host_bind_failed"]);
    assert_eq!(given_up.journal[0].props, r#"{"code":"cluster-not-found"}"#);
}

#[test]
fn a_move_waits_for_a_host_that_is_not_ready_whatever_its_target_says_and_goes_on_when_it_is() {
    let mut waiting = Vec::new();
    for phase in [
        Phase::Unbinding,
        Phase::ReturnPending,
        Phase::Reclaiming,
        Phase::ReclaimRebooting,
    ] {
        waiting.push(lent(phase));
    }
    let mut discovering = free();
    discovering.gates = Gates::default();
    let mut small = free();
    small.gates.min_hardware = false;
    let mut silent = free();
    silent.connected = false;
    let mut written = free();
    written.installer_may_run = true;
    waiting.extend([discovering, small, silent, written]);
    for mut host in waiting {
        host.moving_to = Some(BETA);
        for refused in [None, Some(gone())] {
            let decision = step(&host, Event::FinishMove { to: BETA, refused }).unwrap();
            assert_eq!(decision.host, host, "{:?}", host.status());
            assert_eq!((decision.journal.len(), decision.effects.len()), (0, 0));
        }
        host = step(&host, registered()).unwrap().host;
        host = step(&host, Event::InstallerStopped).unwrap().host;
        let gates = good_gates();
        let complaints = String::new();
        let ready = step(&host, Event::Measured { gates, complaints }).unwrap();
        assert_eq!(ready.effects.len(), 1, "{:?} is asked again", host.phase);
    }
}

#[test]
fn a_move_that_was_called_off_or_leads_elsewhere_is_not_finished() {
    for to in [None, Some(ALPHA)] {
        let mut host = free();
        host.moving_to = to;
        for refused in [None, Some(gone())] {
            assert_eq!(
                step(&host, Event::FinishMove { to: BETA, refused }).unwrap().host,
                host
            );
        }
    }
}

#[test]
fn lost_media_counts_as_lost_contact_and_comes_back() {
    let mut host = lent(Phase::Discovery);
    let lost = step(&host, Event::MediaLost).unwrap().host;
    assert_eq!(lost.status(), Status::Disconnected);
    assert_eq!(
        step(&lost, Event::MediaBack).unwrap().host.status(),
        Status::Known
    );
    host.phase = Phase::Installing;
    assert_eq!(
        step(&host, Event::MediaLost).unwrap().host.status(),
        Status::Error
    );
    assert_eq!(
        step(&free(), Event::MediaLost).unwrap().host.status(),
        Status::DisconnectedUnbound
    );
    assert_eq!(
        step(&free(), Event::MediaLost).unwrap().host.media,
        Media::Disconnected
    );
}

#[test]
fn progress_goes_forward_and_ends_as_installed() {
    let around = in_cluster(noon(), cluster::Phase::Installing);
    let tell = |host: &Host, stage, info: &str| {
        next(
            host,
            &Event::Progressed {
                stage,
                info: info.into(),
            },
            &around,
        )
        .map(|decision| decision.host)
    };
    let mut host = lent(Phase::Installing);
    host.role = Role::Master;
    let started = tell(&host, Stage::Starting, "").unwrap();
    assert_eq!(
        (started.status(), started.progress.percentage),
        (Status::InstallingInProgress, 12)
    );
    let writing = tell(&started, Stage::Writing, "10%").unwrap();
    assert_eq!(
        tell(&writing, Stage::Writing, "10%").unwrap(),
        writing,
        "the same report twice is no news"
    );
    assert_eq!(
        tell(&writing, Stage::Starting, "").unwrap_err().class,
        Class::Conflict
    );
    assert_eq!(
        tell(&writing, Stage::WaitingForIgnition, "").unwrap_err().code,
        "stage-unknown-for-role"
    );
    let done = tell(&writing, Stage::Done, "").unwrap();
    assert_eq!(
        (done.status(), done.progress.percentage),
        (Status::Installed, 100)
    );
    let failed = tell(&writing, Stage::Failed, "disk on fire").unwrap();
    assert_eq!(
        (failed.status(), failed.progress.stage),
        (Status::Error, Some(Stage::Writing))
    );
    assert_eq!(
        tell(&free(), Stage::Starting, "").unwrap_err().class,
        Class::Invalid
    );
}

#[test]
fn the_reboot_is_the_end_of_a_day_two_host() {
    let mut around = in_cluster(noon(), cluster::Phase::AddingHosts);
    around.cluster.as_mut().unwrap().adds_hosts = true;
    let mut host = lent(Phase::InProgress);
    host.kind = Kind::AddToExistingClusterHost;
    let after = next(
        &host,
        &Event::Progressed {
            stage: Stage::Rebooting,
            info: String::new(),
        },
        &around,
    )
    .unwrap()
    .host;
    assert_eq!(
        (after.status(), after.progress.stage),
        (Status::AddedToExistingCluster, Some(Stage::Done))
    );
}

#[test]
fn a_followed_day_two_host_goes_on_after_its_reboot_until_it_is_done() {
    let mut around = in_cluster(noon(), cluster::Phase::AddingHosts);
    around.cluster.as_mut().unwrap().adds_hosts = true;
    let mut host = lent(Phase::InProgress);
    (host.kind, host.followed) = (Kind::AddToExistingClusterHost, true);
    let mut seen = Vec::new();
    for stage in [Stage::Rebooting, Stage::Joined, Stage::Done] {
        let info = String::new();
        host = next(&host, &Event::Progressed { stage, info }, &around)
            .unwrap()
            .host;
        seen.push((host.status(), host.progress.stage));
    }
    assert_eq!(
        seen,
        [
            (Status::InstallingInProgress, Some(Stage::Rebooting)),
            (Status::InstallingInProgress, Some(Stage::Joined)),
            (Status::AddedToExistingCluster, Some(Stage::Done)),
        ]
    );
}

/// A host of a running cluster whose node is followed, in this stage when its time is over.
fn late_node(stage: Stage) -> Host {
    let mut host = lent(Phase::InProgress);
    (host.kind, host.followed, host.role) = (Kind::AddToExistingClusterHost, true, Role::Worker);
    host.progress = progress(stage);
    let around = in_cluster(noon() + minutes(90), cluster::Phase::AddingHosts);
    next(&host, &Event::Due, &around).unwrap().host
}

fn reports(host: &Host, stage: Stage) -> Result<Decision, Refused> {
    let info = String::new();
    let around = in_cluster(noon() + minutes(100), cluster::Phase::AddingHosts);
    next(host, &Event::Progressed { stage, info }, &around)
}

#[test]
fn a_followed_node_that_comes_up_after_its_time_has_recovered() {
    for stage in [Stage::Configuring, Stage::Joined] {
        let late = late_node(stage);
        assert_eq!((late.status(), late.progress.timed_out), (Status::Error, true));
        let done = reports(&late, Stage::Done).unwrap();
        assert_eq!(
            (done.host.status(), done.host.progress.stage),
            (Status::AddedToExistingCluster, Some(Stage::Done))
        );
        assert!(
            done.host.status_info.contains("recovered"),
            "{}",
            done.host.status_info
        );
        assert!(
            done.journal
                .iter()
                .any(|entry| entry.message.contains("recovered"))
        );
    }
    let late = late_node(Stage::Configuring);
    assert_eq!(reports(&late, Stage::Joined).unwrap_err().code, "not-installing");
}

#[test]
fn nobody_else_recovers_from_a_failure() {
    let unfollowed = Host {
        followed: false,
        ..late_node(Stage::Joined)
    };
    let of_a_new_cluster = Host {
        kind: Kind::Host,
        ..late_node(Stage::Joined)
    };
    let mut writing = late_node(Stage::Joined);
    writing.progress.stage = Some(Stage::Writing);
    let mut failed = late_node(Stage::Joined);
    failed.progress.timed_out = false;
    for host in [unfollowed, of_a_new_cluster, writing, failed] {
        let refused = reports(&host, Stage::Done).unwrap_err();
        assert_eq!(refused.code, "not-installing", "{host:?}");
    }
}

#[test]
fn preparing_follows_the_tests_and_the_cluster() {
    let measure = |host: &Host, gates, phase| {
        let event = Event::Measured {
            gates,
            complaints: "why".into(),
        };
        next(host, &event, &in_cluster(noon(), phase))
            .unwrap()
            .host
            .status()
    };
    let mut known = lent(Phase::Discovery);
    known.role = Role::Worker;
    assert_eq!(
        measure(&known, good_gates(), cluster::Phase::Preparing),
        Status::PreparingForInstallation
    );
    assert_eq!(
        measure(&known, good_gates(), cluster::Phase::Draft),
        Status::Known
    );
    let preparing = lent(Phase::Preparing);
    let gates = |disk_speed, images| Gates {
        disk_speed,
        images,
        ..good_gates()
    };
    use Outcome::*;
    for (gates, phase, wanted) in [
        (
            gates(Passed, Passed),
            cluster::Phase::Preparing,
            Status::PreparingSuccessful,
        ),
        (
            gates(Unknown, Passed),
            cluster::Phase::Preparing,
            Status::PreparingForInstallation,
        ),
        (
            gates(Failed, Failed),
            cluster::Phase::Preparing,
            Status::Insufficient,
        ),
        (
            gates(Passed, Failed),
            cluster::Phase::Preparing,
            Status::PreparingFailed,
        ),
        (gates(Passed, Passed), cluster::Phase::Draft, Status::Known),
    ] {
        assert_eq!(measure(&preparing, gates, phase), wanted, "{gates:?} {phase:?}");
    }
    assert_eq!(
        measure(&lent(Phase::Prepared), good_gates(), cluster::Phase::Installing),
        Status::Installing
    );
    assert_eq!(
        measure(&lent(Phase::InProgress), good_gates(), cluster::Phase::Error),
        Status::Error
    );
}

#[test]
fn discovery_words_follow_the_findings_in_order() {
    let measure = |host: &Host, gates| {
        step(
            host,
            Event::Measured {
                gates,
                complaints: "why".into(),
            },
        )
        .unwrap()
        .host
        .status()
    };
    let (bound, pool) = (lent(Phase::Discovery), free());
    let but = |change: fn(&mut Gates)| {
        let mut gates = good_gates();
        change(&mut gates);
        gates
    };
    for (gates, in_cluster, in_pool) in [
        (good_gates(), Status::Known, Status::KnownUnbound),
        (
            but(|gates| gates.inventory = false),
            Status::Discovering,
            Status::DiscoveringUnbound,
        ),
        (
            but(|gates| gates.min_hardware = false),
            Status::Insufficient,
            Status::InsufficientUnbound,
        ),
        (
            but(|gates| gates.inputs = false),
            Status::PendingForInput,
            Status::KnownUnbound,
        ),
        (
            but(|gates| gates.sufficient = false),
            Status::Insufficient,
            Status::KnownUnbound,
        ),
        (
            but(|gates| gates.vsphere_disks = false),
            Status::Insufficient,
            Status::KnownUnbound,
        ),
        (
            but(|gates| gates.inventory_fully_truncated = true),
            Status::Insufficient,
            Status::InsufficientUnbound,
        ),
    ] {
        assert_eq!(measure(&bound, gates), in_cluster, "{gates:?}");
        assert_eq!(measure(&pool, gates), in_pool, "{gates:?}");
    }
}

#[test]
fn every_deadline_passes_into_something_a_person_can_read() {
    let due = |mut host: Host, after: SignedDuration, heard: bool| {
        host.role = Role::Worker;
        let now = noon() + after;
        if heard {
            host.checked_in_at = now;
        }
        let mut around = in_cluster(now, cluster::Phase::Installing);
        around.cluster.as_mut().unwrap().can_do_without = true;
        next(&host, &Event::Due, &around).unwrap().host.status()
    };
    let staged = |stage| {
        let mut host = lent(Phase::InProgress);
        host.progress = progress(stage);
        host
    };
    use Phase::*;
    for (host, after, heard, wanted) in [
        (free(), minutes(3), false, Status::DisconnectedUnbound),
        (lent(Discovery), minutes(3), false, Status::Disconnected),
        (lent(Binding), minutes(3), false, Status::Disconnected),
        (lent(Binding), minutes(15), true, Status::Disconnected),
        (lent(Unbinding), minutes(3), false, Status::DisconnectedUnbound),
        (lent(Unbinding), minutes(15), true, Status::DisconnectedUnbound),
        (
            lent(Reclaiming),
            minutes(60),
            true,
            Status::UnbindingPendingUserAction,
        ),
        (
            lent(ReclaimRebooting),
            minutes(60),
            false,
            Status::UnbindingPendingUserAction,
        ),
        (lent(Preparing), minutes(17), true, Status::PreparingFailed),
        (lent(Preparing), minutes(3), false, Status::Disconnected),
        (lent(Installing), minutes(20), true, Status::Error),
        (lent(Installing), minutes(3), false, Status::Error),
        (staged(Stage::Writing), minutes(30), true, Status::Error),
        (
            staged(Stage::Rebooting),
            minutes(40),
            false,
            Status::InstallingPendingUserAction,
        ),
        (
            staged(Stage::Rebooting),
            minutes(39),
            false,
            Status::InstallingInProgress,
        ),
        (
            staged(Stage::WaitingForIgnition),
            SignedDuration::from_hours(24),
            false,
            Status::Error,
        ),
        (lent(BootFix), minutes(60), false, Status::Error),
        (
            lent(Resetting),
            minutes(3),
            false,
            Status::ResettingPendingUserAction,
        ),
    ] {
        assert_eq!(
            due(host.clone(), after, heard),
            wanted,
            "{:?} {:?} {after:?}",
            host.phase,
            host.progress.stage
        );
    }
}

#[test]
fn the_bootstrap_host_may_be_silent_for_longer() {
    let mut host = lent(Phase::Discovery);
    host.bootstrap = true;
    let due = |host: &Host, after| {
        next(host, &Event::Due, &at(noon() + minutes(after)))
            .unwrap()
            .host
            .connected
    };
    assert!(due(&host, 4));
    assert!(!due(&host, 5));
}
