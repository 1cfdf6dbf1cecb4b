//! Machines that come back to the pool (R4).

use super::*;

#[test]
fn a_live_image_is_removed_once_and_given_again_when_the_machine_is_available() {
    let lent = detached(annotated(
        booted_live("provisioned"),
        &[
            (annotation::METAL3_HARDWARE_DETAILS, "{}"),
            (annotation::BMAC_SPOKE_CREATED, "today"),
        ],
    ));
    let begun = reconciled(&live(lent, Some(waiting())));
    assert_eq!(image_url(&begun), None);
    for gone in [
        annotation::METAL3_DETACHED,
        annotation::METAL3_PAUSED,
        annotation::METAL3_HARDWARE_DETAILS,
        annotation::BMAC_SPOKE_CREATED,
    ] {
        assert_eq!(noted(&begun, gone), None, "{gone}");
    }
    let deprovisioning = reconciled(&in_state(&begun, "deprovisioning"));
    assert_eq!(image_url(&deprovisioning), None);
    let available = reconciled(&in_state(&deprovisioning, "available"));
    assert_eq!(image_url(&available), Some(URL));
    // It boots. Until its agent registers the Agent says what it said before.
    let booted = reconciled(&in_state(&available, "provisioned"));
    assert_eq!(image_url(&booted), Some(URL), "and is not fetched again");
    assert_eq!(noted(&booted, annotation::METAL3_DETACHED), None);
    let mut back = booted;
    back.agent = Some(Arc::new(agent("known-unbound", "")));
    let back = reconciled(&back);
    assert_eq!(image_url(&back), Some(URL));
    assert_eq!(noted(&back, annotation::BMAC_RETURN_BEGUN), None);
}

#[test]
fn a_deploy_step_is_removed_and_given_again_when_the_machine_is_available() {
    let lent = detached(deployed("provisioned"));
    let begun = reconciled(&converged(lent, Some(waiting())));
    assert_eq!(method(&begun), None);
    assert_eq!(noted(&begun, annotation::METAL3_DETACHED), None);
    assert_eq!(noted(&begun, annotation::METAL3_PAUSED), None);
    let deprovisioning = reconciled(&in_state(&begun, "deprovisioning"));
    assert_eq!(method(&deprovisioning), None);
    let available = reconciled(&in_state(&deprovisioning, "available"));
    assert_eq!(method(&available), Some(START));
    let booted = reconciled(&in_state(&available, "provisioning"));
    assert_eq!(method(&booted), Some(START), "and it is not fetched again");
}

#[test]
fn a_host_that_was_never_detached_comes_back_too() {
    // Its installation was cancelled, or failed early.
    let begun = reconciled(&live(booted_live("provisioned"), Some(waiting())));
    assert_eq!(image_url(&begun), None);
    let begun = reconciled(&converged(deployed("provisioning"), Some(waiting())));
    assert_eq!(
        method(&begun),
        None,
        "nor is it put back while nobody has reacted"
    );
    let again = reconciled(&in_state(&begun, "available"));
    assert_eq!(method(&again), Some(START));
}

#[test]
fn the_second_return_is_as_good_as_the_first() {
    let first = reconciled(&live(booted_live("provisioned"), Some(waiting())));
    let available = reconciled(&in_state(&first, "available"));
    let mut lent = in_state(&available, "provisioned");
    lent.agent = Some(Arc::new(agent("installed", "Done")));
    let mut lent = reconciled(&lent);
    assert_eq!(noted(&lent, annotation::METAL3_DETACHED), Some(OURS));
    lent.agent = Some(Arc::new(waiting()));
    assert_eq!(image_url(&reconciled(&lent)), None);
}

#[test]
fn a_machine_that_was_switched_off_while_its_host_came_back_by_itself_is_not_left_in_the_dark() {
    let begun = reconciled(&live(booted_live("provisioned"), Some(waiting())));
    let mut off = in_state(&begun, "available");
    // Its agent was alive, registered, and somebody has borrowed the host already.
    off.agent = Some(Arc::new(agent("installing-in-progress", "Starting installation")));
    assert_eq!(image_url(&reconciled(&off)), Some(URL));
}

#[test]
fn a_detached_machine_keeps_its_image_and_one_that_comes_back_is_not_detached_again() {
    let mut lent = live(
        detached(booted_live("provisioned")),
        Some(agent("installed", "Done")),
    );
    let mut newer = infra_env(SignedDuration::from_hours(1));
    newer.status.as_mut().unwrap().iso_download_url = "http://hub.example.com/newer.iso".into();
    lent.infra_env = Some(Arc::new(newer));
    assert_eq!(image_url(&reconciled(&lent)), Some(URL));
    let mut held = deployed("provisioned");
    held.spec.custom_deploy = None;
    let held = annotated(held, &[(annotation::METAL3_DETACHED, OURS)]);
    let snapshot = reconciled(&converged(held, Some(agent("installed", "Done"))));
    assert_eq!(method(&snapshot), None);
    for (boot, machine) in ways() {
        for state in STATES {
            let snapshot = super::snapshot(boot, machine(state), Some(waiting()));
            assert_eq!(snapshot.way(), boot);
            let snapshot = reconciled(&snapshot);
            assert_eq!(
                noted(&snapshot, annotation::METAL3_DETACHED),
                None,
                "{boot:?} {state}"
            );
        }
    }
}
