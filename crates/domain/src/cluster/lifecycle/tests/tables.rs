//! State by state: what each event does to a cluster.

use super::*;
use crate::cluster::finalizing::limit_for;
use crate::host::{Effect, LogsInfo, Phase as On};
use crate::journal::Severity;
use crate::refusal::Class;

fn status(cluster: &Cluster) -> &'static str {
    cluster.status().word()
}

#[test]
fn an_installation_starts_from_ready_only_and_counts_its_attempts() {
    let draft = cluster(Phase::Draft);
    let decision = next(&draft, &Event::Install, noon()).unwrap();
    let row = &decision.cluster;
    assert_eq!(status(row), "preparing-for-installation");
    assert_eq!(
        decision.effects,
        [Effect::MakeFiles {
            cluster: row.id,
            attempt: 2
        }]
    );
    assert_eq!((row.install.attempt, row.install_started_at), (2, Some(noon())));
    assert_eq!(
        names(&decision),
        ["cluster_prepare_installation_started", "cluster_status_updated"]
    );
    let mut poor = draft.clone();
    poor.gates.required = false;
    poor.validations = r#"{"network":[{"id":"api-vips-valid","status":"failure","message":""}],"hosts-data":[{"id":"pull-secret-set","status":"success"}]}"#.into();
    let refused = next(&poor, &Event::Install, noon()).unwrap_err();
    assert_eq!(
        (refused.class, refused.code.as_str()),
        (Class::Conflict, "cluster-not-ready")
    );
    assert!(
        refused.reason.contains("api-vips-valid") && !refused.reason.contains("pull-secret"),
        "{refused}"
    );
}

#[test]
fn files_that_cannot_be_made_bring_the_cluster_back_with_the_reason() {
    let preparing = cluster(Phase::Preparing);
    let decision = next(&preparing, &files(1, Err("exit 1: bad pull secret")), noon()).unwrap();
    let row = &decision.cluster;
    assert_eq!(
        (status(row), row.install.preparation.status),
        ("ready", PreparationStatus::Failed)
    );
    assert!(row.status_info.contains("bad pull secret"), "{}", row.status_info);
    assert_eq!(
        names(&decision),
        ["prepare_installation_failed", "cluster_status_updated"]
    );
    // Still said after the next round of checks, and gone with the next attempt.
    let measured = after(
        row,
        Event::Measured {
            gates: ready(),
            complaints: String::new(),
        },
    );
    assert!(measured.status_info.contains("bad pull secret"));
    assert!(
        !after(&measured, Event::Install)
            .status_info
            .contains("bad pull secret")
    );
}

#[test]
fn a_cluster_that_is_kept_back_says_by_what() {
    let gates = Gates {
        inputs: true,
        vips_defined: true,
        required: false,
    };
    let complaints = "Waiting for the check api-vips-valid (for a host to report its networks)".to_owned();
    let row = after(&cluster(Phase::Draft), Event::Measured { gates, complaints });
    assert_eq!(status(&row), "insufficient");
    assert_eq!(
        row.status_info,
        "Not ready for installation yet. Waiting for the check api-vips-valid (for a host to report its networks)."
    );
}

#[test]
fn a_result_of_an_older_attempt_changes_nothing() {
    let preparing = cluster(Phase::Preparing);
    for event in [files(0, Ok(())), files(0, Err("late")), files(2, Ok(()))] {
        assert_eq!(after(&preparing, event), preparing);
    }
    assert_eq!(
        after(&cluster(Phase::Draft), files(1, Ok(()))),
        cluster(Phase::Draft)
    );
    let made = after(&preparing, files(1, Ok(())));
    assert_eq!(made.install.preparation.status, PreparationStatus::Success);
    assert_eq!(after(&made, files(1, Err("again"))), made);
}

#[test]
fn the_installation_goes_on_when_files_are_made_and_all_hosts_are_prepared() {
    let preparing = cluster(Phase::Preparing);
    let made = after(&preparing, files(1, Ok(())));
    let prepared = masters(On::Prepared);
    assert_eq!(count(&preparing, &prepared).cluster.phase, Phase::Preparing);
    assert_eq!(
        count(&made, &masters(On::Preparing)).cluster.phase,
        Phase::Preparing
    );
    let decision = count(&made, &prepared);
    let row = &decision.cluster;
    assert_eq!((status(row), row.install.progress.total), ("installing", 10));
    assert_eq!(names(&decision), ["cluster_status_updated"]);
}

#[test]
fn hosts_that_get_lost_or_fail_their_tests_stop_the_preparation() {
    let made = after(&cluster(Phase::Preparing), files(1, Ok(())));
    let mut hosts = masters(On::Prepared);
    hosts[1].phase = On::PrepareFailed;
    let decision = count(&made, &hosts);
    assert_eq!(status(&decision.cluster), "ready");
    assert_eq!(
        names(&decision),
        ["prepare_installation_failed", "cluster_status_updated"]
    );
    hosts[1].phase = On::Discovery;
    hosts[1].connected = false;
    assert_eq!(status(&count(&made, &hosts).cluster), "insufficient");
    // A host that registered again in the middle of its tests takes them again.
    hosts[1].connected = true;
    assert_eq!(
        status(&count(&made, &hosts).cluster),
        "preparing-for-installation"
    );
    hosts.pop();
    assert_eq!(status(&count(&made, &hosts).cluster), "insufficient");
}

#[test]
fn the_recorded_percentages_come_out() {
    let staged = |stages: [Option<Stage>; 3]| {
        let mut hosts = masters(On::InProgress);
        for (host, stage) in hosts.iter_mut().zip(stages) {
            host.progress.stage = stage;
        }
        hosts[0].bootstrap = true;
        hosts
    };
    let mut installing = cluster(Phase::Installing);
    installing.install.progress = Progress {
        preparing: 100,
        total: 10,
        ..Progress::default()
    };
    use Stage::*;
    for (stages, part, total) in [
        ([None; 3], 0, 10),
        ([Some(Starting), Some(Writing), None], 14, 19),
        ([Some(Installing); 3], 22, 25),
        (
            [Some(WaitingForControlPlane), Some(Rebooting), Some(Rebooting)],
            55,
            48,
        ),
        ([Some(Rebooting), Some(Done), Some(Done)], 88, 71),
        ([Some(Done); 3], 100, 80),
    ] {
        let progress = count(&installing, &staged(stages)).cluster.install.progress;
        assert_eq!((progress.installing, progress.total), (part, total), "{stages:?}");
    }
    let mut alone = single_node(Phase::Installing);
    alone.install.progress.preparing = 100;
    let node = at_stage(host(1, Role::Master, On::InProgress), WaitingForBootkube);
    assert_eq!(count(&alone, &[node]).cluster.install.progress.total, 35);
}

#[test]
fn a_cluster_is_done_when_hosts_operators_and_certificate_are_there() {
    let mut installing = cluster(Phase::Installing);
    installing.install.progress.preparing = 100;
    let hosts: Vec<_> = masters(On::Installed)
        .into_iter()
        .map(|host| at_stage(host, Stage::Done))
        .collect();
    let finalizing = count(&installing, &hosts).cluster;
    assert_eq!(
        (status(&finalizing), finalizing.install.progress.total),
        ("finalizing", 80)
    );
    let with_console = after(&finalizing, console(OperatorStatus::Available));
    assert_eq!(with_console.install.progress.total, 95);
    assert_eq!(count(&with_console, &hosts).cluster.phase, Phase::Finalizing);
    let proven = after(&with_console, Event::IngressCert);
    let decision = count(&proven, &hosts);
    let row = &decision.cluster;
    assert_eq!(
        (status(row), row.install.progress.total, row.status_info.as_str()),
        ("installed", 100, "Installed.")
    );
    assert_eq!(row.install_completed_at, Some(noon()));
    assert_eq!(
        names(&decision),
        ["cluster_installation_completed", "cluster_status_updated"]
    );
    // Without the console it waits, whatever else is there.
    let no_console = after(&finalizing, Event::IngressCert);
    assert_eq!(count(&no_console, &hosts).cluster.phase, Phase::Finalizing);
}

#[test]
fn failed_workers_and_optional_operators_are_told_but_do_not_fail_the_cluster() {
    let mut finalizing = cluster(Phase::Finalizing);
    finalizing.install.has_kubeconfig = true;
    finalizing.operators.push(Operator {
        name: "lso".into(),
        status: OperatorStatus::Failed,
        ..Operator::default()
    });
    finalizing = after(&finalizing, console(OperatorStatus::Available));
    let mut hosts = masters(On::Installed);
    hosts.extend((4..=6).map(|n| host(n, Role::Worker, On::Installed)));
    hosts[5].phase = On::Failed;
    let decision = count(&finalizing, &hosts);
    let said = &decision.cluster.status_info;
    assert_eq!(status(&decision.cluster), "installed");
    assert!(said.contains("1 worker") && said.contains("lso"), "{said}");
    assert!(names(&decision).contains(&"cluster_degraded_OLM_operators_failed"));
    hosts[4].phase = On::InProgress;
    assert_eq!(
        status(&count(&finalizing, &hosts).cluster),
        "finalizing",
        "a host is still on the way"
    );
}

#[test]
fn a_cluster_without_a_controller_is_done_with_its_hosts() {
    for source in [IgnitionSource::Uploaded, IgnitionSource::Endpoint] {
        let mut installing = cluster(Phase::Installing);
        installing.ignition_source = source;
        let decision = count(&installing, &masters(On::Installed));
        assert_eq!(status(&decision.cluster), "installed");
        let moves: Vec<_> = decision
            .journal
            .iter()
            .filter(|entry| entry.name == "cluster_status_updated")
            .collect();
        assert!(moves[0].message.contains("-> finalizing") && moves[1].message.contains("-> installed"));
    }
}

#[test]
fn enough_hosts_means_the_whole_control_plane_and_two_of_several_workers() {
    let of = |masters: usize, arbiters: usize, workers: usize| {
        let roles = std::iter::repeat_n(Role::Master, masters)
            .chain(std::iter::repeat_n(Role::Arbiter, arbiters))
            .chain(std::iter::repeat_n(Role::Worker, workers));
        let hosts: Vec<Host> = roles
            .enumerate()
            .map(|(n, role)| host(n as u128 + 1, role, On::InProgress))
            .collect();
        hosts
    };
    let goes = |count_wanted: i64, mut hosts: Vec<Host>, failing: &[usize]| {
        for at in failing {
            hosts[*at].phase = On::Failed;
        }
        let mut installing = cluster(Phase::Installing);
        installing.control_plane_count = count_wanted;
        status(&count(&installing, &hosts).cluster)
    };
    assert_eq!(goes(3, of(3, 0, 0), &[]), "installing");
    assert_eq!(goes(3, of(3, 0, 0), &[0]), "error");
    assert_eq!(goes(5, of(5, 0, 0), &[]), "installing");
    assert_eq!(goes(5, of(5, 0, 0), &[4]), "error");
    assert_eq!(goes(5, of(3, 0, 0), &[]), "error", "two masters were taken away");
    assert_eq!(goes(3, of(3, 0, 3), &[3]), "installing");
    assert_eq!(goes(3, of(3, 0, 3), &[3, 4]), "error");
    assert_eq!(goes(3, of(3, 0, 1), &[3]), "installing", "one worker is a bonus");
    assert_eq!(goes(2, of(2, 1, 0), &[]), "installing");
    assert_eq!(goes(2, of(2, 1, 0), &[2]), "error", "nobody decides between two");
    assert_eq!(goes(2, of(2, 0, 0), &[]), "error");
    let mut fenced = of(2, 0, 0);
    for host in &mut fenced {
        host.tenant.fencing = "{}".into();
    }
    assert_eq!(goes(2, fenced, &[]), "installing");
    assert_eq!(goes(1, of(1, 0, 0), &[]), "installing");
    assert_eq!(goes(1, of(1, 0, 0), &[0]), "error");
}

#[test]
fn a_shortage_of_hosts_is_a_critical_event_with_a_next_action() {
    let mut hosts = masters(On::InProgress);
    hosts[2].phase = On::Failed;
    let decision = count(&cluster(Phase::Installing), &hosts);
    let entry = &decision.journal[0];
    assert_eq!(
        (entry.name.as_str(), entry.severity),
        ("cluster_installation_failed", Severity::Critical)
    );
    assert!(decision.cluster.status_info.contains("1 failed"));
    assert_eq!(decision.cluster.install_completed_at, Some(noon()));
}

#[test]
fn a_wrong_boot_stops_the_cluster_until_it_is_fixed() {
    let mut hosts = masters(On::InProgress);
    hosts[1].phase = On::BootFix;
    let waiting = count(&cluster(Phase::Installing), &hosts).cluster;
    assert_eq!(status(&waiting), "installing-pending-user-action");
    assert_eq!(count(&waiting, &hosts).cluster, waiting);
    hosts[1].phase = On::InProgress;
    assert_eq!(status(&count(&waiting, &hosts).cluster), "installing");
    hosts[1].phase = On::Failed;
    assert_eq!(status(&count(&waiting, &hosts).cluster), "error");
    assert_eq!(
        status(&count(&waiting, &masters(On::Installed)).cluster),
        "finalizing"
    );
}

#[test]
fn the_finalizing_clock_stands_still_while_a_person_is_needed() {
    let mut finalizing = cluster(Phase::Finalizing);
    finalizing.install.finalizing = Some(Finalizing {
        stage: FinalizingStage::ClusterOperators,
        started_at: noon(),
        timed_out: true,
    });
    let mut hosts = masters(On::Installed);
    hosts.extend((4..=6).map(|n| host(n, Role::Worker, On::Installed)));
    hosts[5].phase = On::BootFix;
    let waiting = count(&finalizing, &hosts).cluster;
    assert_eq!(waiting.phase, Phase::BootFix);
    hosts[5].phase = On::Installed;
    let later = noon() + minutes(200);
    let event = Event::Counted { tally: tally(&hosts) };
    let back = next(&waiting, &event, later).unwrap().cluster;
    let stage = back.install.finalizing.unwrap();
    assert_eq!(
        (back.phase, stage.started_at, stage.timed_out),
        (Phase::Finalizing, later, false)
    );
}

#[test]
fn a_single_node_lends_its_address_to_the_cluster_and_takes_it_back() {
    let mut preparing = single_node(Phase::Preparing);
    preparing.machine_networks = vec!["192.168.111.0/24".into()];
    let made = after(&preparing, files(1, Ok(())));
    let mut node = host(1, Role::Master, On::Prepared);
    node.digest.nics = vec![host::Nic {
        name: "eth0".into(),
        mac: String::new(),
        addresses: vec!["10.0.0.4/8".into(), "192.168.111.91/24".into()],
    }];
    let installing = count(&made, &[node]).cluster;
    assert_eq!(installing.phase, Phase::Installing);
    assert_eq!(
        (
            installing.api_vips[0].ip.as_str(),
            installing.ingress_vips[0].ip.as_str()
        ),
        ("192.168.111.91", "192.168.111.91")
    );
    let reset = after(&installing, Event::Reset);
    assert!(reset.api_vips.is_empty() && reset.ingress_vips.is_empty());
}

#[test]
fn cancelling_and_resetting_by_phase() {
    let goes = |phase: Phase, event: Event| {
        next(&cluster(phase), &event, noon())
            .map(|decision| status(&decision.cluster))
            .map_err(|refused| refused.code)
    };
    use Phase::*;
    for (phase, cancelled, reset) in [
        (Draft, None, None),
        (Preparing, Some("ready"), Some("insufficient")),
        (Installing, Some("cancelled"), Some("insufficient")),
        (Finalizing, Some("cancelled"), Some("insufficient")),
        (BootFix, Some("cancelled"), Some("insufficient")),
        (Error, Some("cancelled"), Some("insufficient")),
        (Cancelled, None, Some("insufficient")),
        (Installed, None, None),
        (AddingHosts, None, None),
        (Unmonitored, None, None),
    ] {
        let no = |code: &str| Err(code.to_owned());
        assert_eq!(
            goes(phase, Event::Cancel),
            cancelled.map_or_else(|| no("nothing-to-cancel"), Ok),
            "{phase:?}"
        );
        assert_eq!(
            goes(phase, Event::Reset),
            reset.map_or_else(|| no("nothing-to-reset"), Ok),
            "{phase:?}"
        );
    }
}

#[test]
fn a_reset_forgets_the_installation_but_not_its_number() {
    let mut failed = cluster(Phase::Error);
    failed.install.progress.complete();
    failed.install.has_kubeconfig = true;
    failed.openshift_cluster_id = Some(Uuid::from_u128(9));
    failed.operators[0].status = OperatorStatus::Available;
    let decision = next(&failed, &Event::Reset, noon()).unwrap();
    let row = &decision.cluster;
    assert_eq!(
        row.install,
        Install {
            attempt: 1,
            ..Install::default()
        }
    );
    assert_eq!(
        (row.openshift_cluster_id, row.operators[0].status),
        (None, OperatorStatus::Unknown)
    );
    assert_eq!(decision.effects, [Effect::DropFiles { cluster: row.id }]);
    assert_eq!(
        names(&decision),
        ["cluster_installation_reset", "cluster_status_updated"]
    );
}

#[test]
fn deadlines_end_what_takes_too_long() {
    let due = |cluster: &Cluster, after: SignedDuration| {
        let decision = next(cluster, &Event::Due, noon() + after).unwrap();
        (status(&decision.cluster), decision)
    };
    let hours = SignedDuration::from_hours;
    let (word, decision) = due(&cluster(Phase::Preparing), minutes(18));
    assert_eq!(
        (word, names(&decision)[0]),
        ("ready", "installation_preparing_timed_out")
    );
    assert_eq!(
        due(&cluster(Phase::Preparing), minutes(17)).0,
        "preparing-for-installation"
    );
    assert_eq!(due(&cluster(Phase::BootFix), hours(24)).0, "error");
    assert_eq!(due(&cluster(Phase::Installing), hours(24)).0, "error");
    assert_eq!(due(&cluster(Phase::Finalizing), hours(5)).0, "error");
    let soft = |phase| {
        let mut cluster = cluster(phase);
        cluster.org_soft_timeouts_enabled = true;
        cluster
    };
    assert_eq!(due(&soft(Phase::Finalizing), hours(5)).0, "finalizing");
    assert_eq!(due(&soft(Phase::Finalizing), hours(24)).0, "error");
    for (stage, is_soft, limit, wanted) in [
        (FinalizingStage::RouterCa, false, 70, "error"),
        (FinalizingStage::RouterCa, true, 70, "finalizing"),
        (FinalizingStage::ClusterOperators, true, 70, "finalizing"),
        (FinalizingStage::OlmManifests, false, 10, "finalizing"),
        (FinalizingStage::OlmCsv, false, 70, "finalizing"),
        (FinalizingStage::OlmSetupJobs, false, 10, "error"),
    ] {
        let mut finalizing = cluster(Phase::Finalizing);
        finalizing.org_soft_timeouts_enabled = is_soft;
        let staged = after(&finalizing, Event::FinalizingStage { stage });
        assert_eq!(
            deadline::of(&staged, &Timers::USUAL),
            Some(noon() + minutes(limit)),
            "{stage:?}"
        );
        let (word, decision) = due(&staged, minutes(limit));
        assert_eq!(word, wanted, "{stage:?}");
        if wanted == "finalizing" {
            assert_eq!(names(&decision), ["finalizing_stage_timed_out"]);
            assert!(decision.cluster.install.finalizing.unwrap().timed_out);
        }
    }
}

#[test]
fn patient_operators_stretch_the_stages_that_wait_for_them() {
    let operators = [Operator {
        name: "odf".into(),
        timeout_seconds: 3 * 3600,
        ..Operator::default()
    }];
    let hours = SignedDuration::from_hours(3);
    assert_eq!(limit_for(FinalizingStage::OlmCsv, false, &operators), hours);
    assert_eq!(
        limit_for(FinalizingStage::RouterCa, false, &operators),
        minutes(70)
    );
}

#[test]
fn finalizing_stages_go_forward_only() {
    let finalizing = cluster(Phase::Finalizing);
    let done = after(
        &finalizing,
        Event::FinalizingStage {
            stage: FinalizingStage::Done,
        },
    );
    let back = Event::FinalizingStage {
        stage: FinalizingStage::RouterCa,
    };
    assert_eq!(after(&done, back.clone()), done);
    let refused = next(&cluster(Phase::Cancelled), &back, noon()).unwrap_err();
    assert_eq!(refused.class, Class::Invalid);
    // All that was waited for may be there before the controller has said its last word.
    let installed = after(&cluster(Phase::Installed), back);
    assert_eq!(
        (installed.phase, installed.install.finalizing.map(|now| now.stage)),
        (Phase::Installed, Some(FinalizingStage::RouterCa))
    );
}

#[test]
fn reports_of_unknown_operators_are_refused_and_late_ones_ignored() {
    let event = Event::OperatorReported {
        name: "odd".into(),
        status: OperatorStatus::Available,
        version: String::new(),
        info: String::new(),
    };
    assert_eq!(
        next(&cluster(Phase::Finalizing), &event, noon())
            .unwrap_err()
            .class,
        Class::Missing
    );
    let cancelled = cluster(Phase::Cancelled);
    assert_eq!(after(&cancelled, console(OperatorStatus::Available)), cancelled);
}

#[test]
fn the_ingress_certificate_is_taken_while_finalizing_and_after() {
    for phase in Phase::ALL {
        let taken = next(&cluster(phase), &Event::IngressCert, noon()).is_ok();
        assert_eq!(
            taken,
            matches!(phase, Phase::Finalizing | Phase::Installed),
            "{phase:?}"
        );
    }
}

#[test]
fn the_controllers_logs_are_waited_for_a_while() {
    let asked = after(
        &cluster(Phase::Error),
        Event::LogsProgress {
            state: LogsInfo::Requested,
        },
    );
    assert_eq!(deadline::of(&asked, &Timers::USUAL), Some(noon() + minutes(10)));
    let given_up = next(&asked, &Event::Due, noon() + minutes(10)).unwrap().cluster;
    assert_eq!(given_up.install.logs.info, LogsInfo::Timeout);
    let collecting = after(
        &asked,
        Event::LogsProgress {
            state: LogsInfo::Collecting,
        },
    );
    assert_eq!(
        deadline::of(&collecting, &Timers::USUAL),
        Some(noon() + minutes(60))
    );
    let stored = after(&collecting, Event::LogsUploaded);
    assert_eq!(stored.install.logs.collected_at, Some(noon()));
}

#[test]
fn only_an_installing_cluster_cannot_be_deleted() {
    for phase in Phase::ALL {
        let deleted = next(&cluster(phase), &Event::Delete, noon());
        assert_eq!(deleted.is_err(), phase == Phase::Installing, "{phase:?}");
    }
}
