//! Installed machines that come back to discovery.

use super::*;

fn installed(setup: Setup) -> World {
    let mut world = World::installing(setup, &["master"]);
    world.run_for(15 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
    world
}

#[test]
fn an_installed_machine_boots_discovery_only_when_told() {
    let mut world = installed(setup());
    world.row(0).status = "unbinding-pending-user-action".into();
    world.run_for(600 * MINUTE);
    assert_eq!(world.registrations(0), 1);
    world.hosts[0].boot_discovery(world.now_ms);
    world.run_for(5 * MINUTE);
    assert_eq!(world.registrations(0), 2);
    assert_eq!(world.row(0).status, "discovering-unbound");
    assert_eq!(world.hosts[0].condition(), Condition::Running);
}

#[test]
fn someone_who_looks_after_installed_machines_boots_discovery_when_the_hub_waits_for_it() {
    let mut world = installed(Setup {
        return_boots_ms: Some(MINUTE),
        ..setup()
    });
    world.run_for(30 * MINUTE);
    assert_eq!(world.registrations(0), 1, "an installed machine is left alone");
    world.row(0).status = "unbinding-pending-user-action".into();
    world.run_for(5 * MINUTE);
    assert_eq!(world.registrations(0), 2);
    assert_eq!(world.row(0).status, "discovering-unbound");
}

/// Asks for a reclaim, and says what a hub says at each step of it.
fn reclaim(world: &mut World) {
    world.row(0).status = "reclaiming".into();
    world.row(0).orders = vec![("download-boot-artifacts", r#"{"kernel_url":"k"}"#.to_owned())];
    world.hosts[0].start_reclaim(world.now_ms);
    world.run_for(2 * MINUTE);
}

#[test]
fn a_reclaimed_machine_boots_discovery_by_itself() {
    let mut world = installed(setup());
    reclaim(&mut world);
    assert_eq!(
        world
            .last_reply(0, "download-boot-artifacts")
            .unwrap()
            .get("exit_code"),
        None
    );
    assert_eq!(world.hosts[0].condition(), Condition::Installed);
    world.row(0).orders = vec![(
        "reboot-for-reclaim",
        r#"{"host_fs_mount_dir":"/host"}"#.to_owned(),
    )];
    world.row(0).exits = true;
    world.run_for(2 * MINUTE);
    assert!(world.last_reply(0, "reboot-for-reclaim").is_some());
    world.row(0).orders.clear();
    world.row(0).exits = false;
    world.run_for(5 * MINUTE);
    assert_eq!(world.registrations(0), 2);
    assert_eq!(world.hosts[0].condition(), Condition::Running);
}

#[test]
fn a_reclaim_that_cannot_store_its_artifacts_says_so_and_leaves_the_system() {
    let mut world = installed(with_faults(&["reclaim-failure:1"]));
    reclaim(&mut world);
    let replies = world.calls(0, "/instructions");
    let first = replies
        .iter()
        .find(|call| call.body["step_type"] == "download-boot-artifacts");
    assert_eq!(first.unwrap().body["exit_code"], 1);
    world.row(0).orders.clear();
    world.row(0).exits = true;
    world.run_for(10 * MINUTE);
    assert_eq!(world.hosts[0].condition(), Condition::Installed);
    assert_eq!(
        world.registrations(0),
        1,
        "there is no agent on an installed system"
    );
}

#[test]
fn someone_who_looks_after_installed_machines_starts_reclaims() {
    let mut world = installed(Setup {
        return_boots_ms: Some(MINUTE),
        ..setup()
    });
    world.row(0).status = "reclaiming".into();
    world.row(0).orders = vec![("download-boot-artifacts", r#"{"kernel_url":"k"}"#.to_owned())];
    world.run_for(5 * MINUTE);
    assert!(world.last_reply(0, "download-boot-artifacts").is_some());
}
