//! What machines boot, and who has them afterwards.

use super::*;

#[test]
fn a_live_image_is_given_to_a_machine_that_is_ready_and_to_no_other() {
    for state in STATES {
        let booted = reconciled(&live(host(state), None));
        let expected = matches!(state, "ready" | "available").then_some(URL);
        assert_eq!(image_url(&booted), expected, "{state}");
        assert_eq!(booted.host.spec.online, expected.is_some(), "{state}");
        assert_eq!(noted(&booted, annotation::METAL3_INSPECT), Some("disabled"));
    }
}

#[test]
fn what_people_chose_about_inspection_and_backups_stays() {
    let mut chosen = annotated(host("available"), &[(annotation::METAL3_INSPECT, "")]);
    chosen.labels_mut().insert(label::BACKUP.into(), "mine".into());
    let booted = reconciled(&live(chosen, None));
    assert_eq!(noted(&booted, annotation::METAL3_INSPECT), Some(""));
    assert_eq!(booted.host.labels()[label::BACKUP], "mine");
}

#[test]
fn a_fresh_image_cools_down_for_a_minute_before_any_machine_is_touched() {
    for old in [host("available"), booted_live("provisioned")] {
        let mut old = reconciled(&live(old, None));
        let mut fresh = infra_env(SignedDuration::from_secs(20));
        fresh.status.as_mut().unwrap().iso_download_url = "http://hub.example.com/newer.iso".into();
        old.infra_env = Some(Arc::new(fresh));
        let plan = plan(&old);
        assert_eq!(
            (plan.steps.len(), plan.then),
            (0, Then::After(std::time::Duration::from_secs(40)))
        );
        old.now = now() + SignedDuration::from_secs(40);
        let ready = old.host.state() == "available";
        let next = reconciled(&old);
        let expected = ready.then_some("http://hub.example.com/newer.iso");
        assert_eq!(
            image_url(&next),
            expected,
            "a running machine gives its image back first"
        );
    }
}

const NEWER: &str = "http://hub.example.com/newer.iso";

/// The image of the InfraEnv became another an hour ago.
fn with_newer_image(mut snapshot: Snapshot) -> Snapshot {
    let mut newer = infra_env(SignedDuration::from_hours(1));
    newer.status.as_mut().unwrap().iso_download_url = NEWER.into();
    snapshot.infra_env = Some(Arc::new(newer));
    snapshot
}

#[test]
fn another_image_reboots_machines_that_are_offered_and_none_that_is_needed() {
    let offered = [
        "discovering",
        "known",
        "disconnected",
        "insufficient",
        "disabled",
        "pending-for-input",
        "discovering-unbound",
        "known-unbound",
        "disconnected-unbound",
        "insufficient-unbound",
        "disabled-unbound",
        "unbinding-pending-user-action",
    ];
    for word in muster_domain::host::Status::ALL
        .iter()
        .map(|status| status.word())
    {
        let expected = (!offered.contains(&word)).then_some(URL);
        let running = reconciled(&live(booted_live("provisioned"), Some(agent(word, ""))));
        // One that comes back has been given discovery again by then.
        let running = reconciled(&in_state(&running, "available"));
        let running = in_state(&running, "provisioned");
        assert_eq!(image_url(&running), Some(URL), "{word}");
        let after = reconciled(&with_newer_image(running));
        assert_eq!(image_url(&after), expected, "{word}");
        let again = reconciled(&in_state(&after, "available"));
        let expected = expected.unwrap_or(NEWER);
        assert_eq!(
            image_url(&again),
            Some(expected),
            "{word}: given back, and set anew"
        );
    }
    let stages = ["Rebooting", "Joined", "Done", "Failed"];
    for agent in stages.map(|stage| agent("installing-in-progress", stage)) {
        let running = reconciled(&live(booted_live("provisioned"), Some(agent)));
        let after = reconciled(&with_newer_image(running));
        assert_eq!(image_url(&after), Some(URL));
        assert!(noted(&after, annotation::METAL3_DETACHED).is_some());
    }
}

#[test]
fn an_agent_that_lags_behind_its_host_reboots_nothing() {
    let free = agent("known-unbound", "");
    let frozen = |states: Option<Vec<String>>| {
        let mut snapshot =
            with_newer_image(reconciled(&live(booted_live("provisioned"), Some(free.clone()))));
        snapshot.states_in_hub = states;
        let after = reconciled(&snapshot);
        assert_eq!(image_url(&after), Some(URL));
        plan(&after).then
    };
    assert_eq!(
        frozen(Some(vec!["installing".into()])),
        Then::Rest,
        "the Agent will tell"
    );
    assert_eq!(
        frozen(None),
        Then::After(std::time::Duration::from_secs(60)),
        "the hub is asked again"
    );
}

#[test]
fn the_deploy_step_waits_for_an_image_of_the_infra_env() {
    let cases = [
        (None, None),
        (Some(image("False", "InfraEnvAvailable")), None),
        (Some(image("True", "ImageSuccess")), None),
        (Some(image("True", "InfraEnvAvailable")), Some(START)),
    ];
    for (image, expected) in cases {
        let mut snapshot = converged(host("available"), None);
        snapshot.image = image.map(Arc::new);
        assert_eq!(method(&reconciled(&snapshot)), expected);
    }
    let mut preset = deployed("registering");
    preset.spec.automated_cleaning_mode = Some("metadata".into());
    let mut snapshot = converged(preset.clone(), None);
    snapshot.image = None;
    assert_eq!(
        *reconciled(&snapshot).host,
        preset,
        "what was set before is accepted as it is"
    );
}

#[test]
fn without_its_infra_env_a_machine_is_only_kept() {
    let mut snapshot = live(host("available"), Some(agent("known-unbound", "")));
    snapshot.infra_env = None;
    let kept = reconciled(&snapshot);
    assert_eq!(image_url(&kept), None);
    assert_eq!(kept.host.finalizers(), [finalizer::BARE_METAL_HOST]);
    assert!(!kept.host.labels().contains_key(label::BACKUP));
}

#[test]
fn a_machine_that_runs_a_cluster_is_detached() {
    let stages = [
        "",
        "Writing image to disk",
        "Rebooting",
        "Joined",
        "Done",
        "Failed",
    ];
    for stage in stages {
        let snapshot = reconciled(&live(booted_live("provisioned"), Some(agent("installed", stage))));
        let expected = matches!(stage, "Rebooting" | "Joined" | "Done" | "Failed").then_some(OURS);
        assert_eq!(noted(&snapshot, annotation::METAL3_DETACHED), expected, "{stage}");
    }
    for state in STATES {
        let snapshot = reconciled(&converged(deployed(state), Some(agent("installed", "Done"))));
        let expected = (state == "provisioned").then_some(OURS);
        assert_eq!(noted(&snapshot, annotation::METAL3_DETACHED), expected, "{state}");
    }
}

#[test]
fn the_way_of_being_detached_follows_what_is_to_happen_on_deletion() {
    let remove = [(annotation::BMAC_REMOVE_ON_DELETE, "true")];
    let snapshot = reconciled(&converged(annotated(deployed("provisioned"), &remove), None));
    let delayed = Some(r#"{"deleteAction":"delay"}"#);
    assert_eq!(noted(&snapshot, annotation::METAL3_DETACHED), delayed);
    let mut changed = (*snapshot.host).clone();
    changed
        .annotations_mut()
        .remove(annotation::BMAC_REMOVE_ON_DELETE);
    let snapshot = reconciled(&converged(changed, None));
    assert_eq!(noted(&snapshot, annotation::METAL3_DETACHED), Some(OURS));
    let theirs = annotated(deployed("provisioned"), &[(annotation::METAL3_DETACHED, "by me")]);
    let snapshot = reconciled(&converged(theirs, None));
    assert_eq!(noted(&snapshot, annotation::METAL3_DETACHED), Some("by me"));
}

#[test]
fn a_machine_is_paused_when_it_is_let_go_and_its_whole_status_is_saved() {
    let detached = annotated(deployed("provisioned"), &[(annotation::METAL3_DETACHED, OURS)]);
    let snapshot = reconciled(&converged(detached.clone(), None));
    assert_eq!(noted(&snapshot, annotation::METAL3_PAUSED), None, "not yet");
    assert_eq!(noted(&snapshot, annotation::METAL3_STATUS), None);
    let mut let_go = detached;
    let_go.status = Some(status("provisioned", "detached"));
    let snapshot = reconciled(&converged(let_go.clone(), None));
    assert_eq!(noted(&snapshot, annotation::METAL3_PAUSED), Some(OURS));
    let saved: Value = serde_json::from_str(noted(&snapshot, annotation::METAL3_STATUS).unwrap()).unwrap();
    assert_eq!(saved, let_go.status.unwrap().0, "with what nobody knows here");
    let mut stale = snapshot.clone();
    let mut newer = (*snapshot.host).clone();
    newer.status.as_mut().unwrap().0["poweredOn"] = json!(false);
    stale.host = Arc::new(newer);
    let refreshed = reconciled(&stale);
    assert!(
        noted(&refreshed, annotation::METAL3_STATUS)
            .unwrap()
            .contains("false")
    );
}

#[test]
fn a_pause_without_a_saved_status_is_somebody_elses() {
    let theirs = [
        (annotation::METAL3_DETACHED, OURS),
        (annotation::METAL3_PAUSED, "by me"),
    ];
    for (boot, machine) in ways() {
        for state in ["", "provisioned"] {
            let mut paused = annotated(machine(state), &theirs);
            if !state.is_empty() {
                paused.status = Some(status(state, "detached"));
            }
            for agent in [agent("installed", "Done"), waiting()] {
                let snapshot = super::snapshot(boot, paused.clone(), Some(agent));
                assert_eq!(snapshot.way(), boot);
                let snapshot = reconciled(&snapshot);
                assert_eq!(
                    noted(&snapshot, annotation::METAL3_PAUSED),
                    Some("by me"),
                    "{boot:?}"
                );
                assert_eq!(noted(&snapshot, annotation::METAL3_STATUS), None, "{boot:?}");
            }
        }
    }
}

#[test]
fn a_host_from_a_backup_is_let_go_so_that_its_status_is_restored_and_then_paused_again() {
    let mut restored = detached(deployed("provisioned"));
    let before = restored.status.take();
    let snapshot = reconciled(&converged(restored, None));
    assert_eq!(noted(&snapshot, annotation::METAL3_PAUSED), None);
    assert!(
        noted(&snapshot, annotation::METAL3_STATUS).is_some(),
        "it is restored from there"
    );
    // The bare metal operator restores the status and removes the annotation.
    let mut host = (*snapshot.host).clone();
    host.status = before;
    host.annotations_mut().remove(annotation::METAL3_STATUS);
    let snapshot = reconciled(&converged(host, None));
    assert_eq!(noted(&snapshot, annotation::METAL3_PAUSED), Some(OURS));
}

#[test]
fn people_may_keep_the_bare_metal_operator_in_charge() {
    let manage = [(annotation::BMAC_HOST_MANAGEMENT, "")];
    let managed = annotated(detached(deployed("provisioned")), &manage);
    let snapshot = reconciled(&converged(managed.clone(), None));
    assert_eq!(noted(&snapshot, annotation::METAL3_DETACHED), None);
    assert_eq!(noted(&snapshot, annotation::METAL3_PAUSED), None);
    let both = annotated(managed, &[(annotation::BMAC_REMOVE_ON_DELETE, "true")]);
    let live_too = annotated(detached(booted_live("provisioned")), &manage);
    for refused in [
        converged(both, None),
        live(live_too, Some(agent("installed", "Done"))),
    ] {
        assert_eq!(mistakes(&plan(&refused)).len(), 1);
        assert!(noted(&reconciled(&refused), annotation::METAL3_DETACHED).is_some());
    }
}

#[test]
fn a_machine_with_the_deploy_step_written_on_it_takes_that_way_where_others_boot_live_images() {
    let preset = reconciled(&live(deployed("available"), None));
    assert_eq!((method(&preset), image_url(&preset)), (Some(START), None));
    assert_eq!(
        noted(&preset, annotation::METAL3_INSPECT),
        None,
        "it is inspected as it likes"
    );
    let lent = reconciled(&live(deployed("provisioned"), Some(agent("installed", "Done"))));
    assert_eq!(noted(&lent, annotation::METAL3_DETACHED), Some(OURS));
    // Back, and on the same way again.
    let fetched = reconciled(&live((*lent.host).clone(), Some(waiting())));
    assert_eq!((method(&fetched), image_url(&fetched)), (None, None));
    let back = reconciled(&in_state(
        &reconciled(&in_state(&fetched, "deprovisioning")),
        "available",
    ));
    assert_eq!((method(&back), image_url(&back)), (Some(START), None));
    assert_eq!(noted(&back, annotation::BMAC_RETURNS_CONVERGED), None);
}

#[test]
fn a_deploy_step_beside_a_live_image_is_a_mistake_and_changes_nothing() {
    let mut both = booted_live("provisioned");
    both.spec.custom_deploy = deployed("provisioned").spec.custom_deploy;
    let snapshot = live(both, Some(agent("known-unbound", "")));
    let texts = mistakes(&plan(&snapshot));
    assert!(
        texts[0].contains("customDeploy") && texts[0].contains("spec.image"),
        "{texts:?}"
    );
    let kept = reconciled(&snapshot);
    assert_eq!((method(&kept), image_url(&kept)), (Some(START), Some(URL)));
    assert_eq!(noted(&kept, annotation::METAL3_DETACHED), None);
}

#[test]
fn the_way_of_a_machine_follows_what_it_runs_then_what_is_written_on_it_then_the_others() {
    let coming_back = |host| annotated(host, &[(annotation::BMAC_RETURNS_CONVERGED, "true")]);
    let mut both = booted_live("provisioned");
    both.spec.custom_deploy = deployed("").spec.custom_deploy;
    let table = [
        (host("available"), MetalBoot::LiveImage, MetalBoot::Converged),
        (
            deployed("provisioned"),
            MetalBoot::Converged,
            MetalBoot::Converged,
        ),
        (
            coming_back(host("available")),
            MetalBoot::Converged,
            MetalBoot::Converged,
        ),
        (
            booted_live("provisioned"),
            MetalBoot::LiveImage,
            MetalBoot::LiveImage,
        ),
        (
            coming_back(booted_live("provisioned")),
            MetalBoot::LiveImage,
            MetalBoot::LiveImage,
        ),
        (both, MetalBoot::LiveImage, MetalBoot::LiveImage),
    ];
    for (host, where_live, where_converged) in table {
        assert_eq!(way(MetalBoot::LiveImage, &host), where_live, "{host:?}");
        assert_eq!(way(MetalBoot::Converged, &host), where_converged, "{host:?}");
    }
}

#[test]
fn a_machine_that_booted_live_before_others_are_deployed_is_kept_and_comes_back_as_the_others_do() {
    let free = reconciled(&converged(
        booted_live("provisioned"),
        Some(agent("known-unbound", "")),
    ));
    assert_eq!(
        noted(&free, annotation::METAL3_DETACHED),
        None,
        "nothing is installed"
    );
    assert_eq!((method(&free), image_url(&free)), (None, Some(URL)));
    let mut lent = free;
    lent.agent = Some(Arc::new(agent("installed", "Done")));
    let mut lent = reconciled(&lent);
    assert_eq!(noted(&lent, annotation::METAL3_DETACHED), Some(OURS));
    lent.agent = Some(Arc::new(waiting()));
    let begun = reconciled(&lent);
    assert_eq!((method(&begun), image_url(&begun)), (None, None));
    let back = reconciled(&in_state(
        &reconciled(&in_state(&begun, "deprovisioning")),
        "available",
    ));
    assert_eq!((method(&back), image_url(&back)), (Some(START), None));
}

#[test]
fn where_machines_are_not_paused_they_are_detached_only_and_old_pauses_are_kept() {
    let mut let_go = annotated(deployed("provisioned"), &[(annotation::METAL3_DETACHED, OURS)]);
    let_go.status = Some(status("provisioned", "detached"));
    let mut snapshot = converged(let_go, None);
    snapshot.pauses = false;
    let kept = reconciled(&snapshot);
    assert_eq!(noted(&kept, annotation::METAL3_DETACHED), Some(OURS));
    assert_eq!(noted(&kept, annotation::METAL3_PAUSED), None);
    assert_eq!(noted(&kept, annotation::METAL3_STATUS), None);
    let mut before = converged(detached(deployed("provisioned")), None);
    before.pauses = false;
    assert_eq!(reconciled(&before).host, before.host);
    // From a backup: nobody else would ever undo the pause.
    let mut restored = detached(deployed("provisioned"));
    restored.status = None;
    let mut snapshot = converged(restored, None);
    snapshot.pauses = false;
    assert_eq!(noted(&reconciled(&snapshot), annotation::METAL3_PAUSED), None);
}
