//! Clusters with a real hub and simulated hosts: installed, grown, stopped, and every host back in the pool.

use crate::tour::Hub;

/// Fast enough for a test, slow enough to be stopped on the way; somebody boots the discovery image on machines that
/// wait for it.
const PACE: [&str; 6] = ["--seed", "3", "--install-time", "5s", "--return-boots", "10s"];

/// The first free hosts, once all four have arrived; with this seed all of them are good for any role.
fn free_hosts(hub: &Hub) -> Vec<String> {
    let free = hub.until("host list --status known-unbound -o name", |out| {
        out.lines().count() == 4
    });
    free.lines().map(str::to_owned).collect()
}

#[test]
fn a_cluster_of_ones_own_ignition_is_installed_grows_and_gives_its_hosts_back() {
    let hub = Hub::start();
    let lab = hub.ok("infra-env create lab -o name");
    let _fleet = hub.sim_with(lab.trim(), "4", &PACE);
    let hosts = free_hosts(&hub);
    let (first, second) = (&hosts[0], &hosts[1]);

    hub.ok("cluster create edge --single-node");
    hub.ok(&format!("host bind {first} --cluster edge --wait --timeout 1m"));
    hub.ok("cluster wait edge --for ready --timeout 1m");
    let failed = hub.run("cluster install edge --wait --timeout 1m");
    assert_eq!(failed.code, 1, "{}{}", failed.out, failed.err);
    assert!(
        failed.err.contains("openshift-install"),
        "nothing makes its files: {}",
        failed.err
    );
    assert!(hub.ok("cluster get edge").contains("PREPARATION:  failed: "));

    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("master.ign");
    std::fs::write(&config, r#"{"ignition":{"version":"3.2.0"}}"#).unwrap();
    hub.ok(&format!(
        "cluster ignition set edge --role master {}",
        config.display()
    ));
    assert!(hub.ok("cluster ignition list edge").contains("master  3.2.0"));
    assert!(
        hub.ok("cluster install edge --dry-run")
            .contains("lost for good: ")
    );
    assert_eq!(
        hub.ok("cluster install edge --wait --timeout 1m"),
        "cluster/edge installed\n"
    );
    let shown = hub.ok("cluster get edge");
    assert!(
        shown.contains("PROGRESS:     100%") && shown.contains("Done"),
        "{shown}"
    );
    assert!(hub.ok("cluster file edge master.ign").contains("3.2.0"));

    hub.ok("cluster add-hosts edge");
    assert!(
        hub.ok(&format!("host bind {second} --cluster edge --wait --timeout 1m"))
            .ends_with(", known\n"),
        "it can be installed at once"
    );
    assert!(
        hub.ok(&format!("host install {second} --wait --timeout 1m"))
            .contains("added-to-existing-cluster")
    );
    assert!(
        hub.ok(&format!("host reclaim {second} --wait --timeout 1m"))
            .ends_with(" reclaimed, known-unbound\n")
    );
    hub.ok("cluster delete edge --wait --timeout 1m");
    hub.until("host list --free --status known-unbound -o name", |out| {
        out.lines().count() == 4
    });
}

#[test]
fn three_masters_are_installed_cancelled_reset_and_installed_again() {
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../hub/tests/it/installation/openshift-install"
    );
    let hub = Hub::start_with(&["--openshift-install", program]);
    let lab = hub.ok("infra-env create lab -o name");
    let _fleet = hub.sim_with(lab.trim(), "4", &PACE);
    let hosts = free_hosts(&hub);

    hub.ok("cluster create prod --api-vip 10.64.0.5 --ingress-vip 10.64.0.6");
    for host in &hosts[..3] {
        hub.ok(&format!("host bind {host} --cluster prod --wait --timeout 1m"));
    }
    hub.ok("cluster wait prod --for ready --timeout 1m");
    assert!(
        hub.ok("cluster install prod")
            .contains("preparing-for-installation")
    );
    hub.until("cluster get prod", |out| out.contains("STATUS:       installing"));
    assert!(hub.ok("cluster cancel prod --dry-run").contains("cancelled"));
    assert_eq!(
        hub.ok("cluster cancel prod --wait --timeout 1m"),
        "cluster/prod cancelled\n"
    );
    assert_eq!(
        hub.ok("cluster reset prod --wait --timeout 1m"),
        "cluster/prod reset, ready\n"
    );
    let ran = hub.run("cluster install prod --wait --timeout 1m");
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "cluster/prod installed\n"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("Writing image to disk"), "{}", ran.err);
    assert!(hub.ok("cluster credentials prod").contains("kubeadmin"));
    assert!(hub.ok("cluster kubeconfig prod").contains("kind: Config"));

    hub.ok("cluster delete prod --wait --timeout 1m");
    hub.until("host list --free --status known-unbound -o name", |out| {
        out.lines().count() == 4
    });
    hub.ok("cluster create next --api-vip 10.64.0.5 --ingress-vip 10.64.0.6");
    for host in &hosts {
        hub.ok(&format!("host bind {host} --cluster next --wait --timeout 1m"));
    }
    hub.ok("cluster wait next --for ready --timeout 1m");
    assert_eq!(hub.ok("cluster hosts next -o name").lines().count(), 4);
}

#[test]
fn a_deleted_cluster_takes_early_bound_hosts_with_it_and_gives_late_bound_ones_back() {
    let hub = Hub::start();
    let pool = hub.ok("infra-env create pool -o name");
    let _free = hub.sim_with(pool.trim(), "4", &PACE);
    let late = free_hosts(&hub).remove(0);

    hub.ok("cluster create edge");
    let private = hub.ok("infra-env create private --cluster edge -o name");
    let _early = hub.sim_with(private.trim(), "2", &["--seed", "7"]);
    hub.until("cluster hosts edge -o name", |out| out.lines().count() == 2);
    hub.ok(&format!("host bind {late} --cluster edge --wait --timeout 1m"));

    let plan = hub.ok("cluster delete edge --dry-run");
    assert_eq!(plan.matches("delete the host").count(), 2, "{plan}");
    assert_eq!(plan.matches("return to its pool").count(), 1, "{plan}");
    hub.ok("cluster delete edge --wait --timeout 1m");
    hub.until("host list --free --status known-unbound -o name", |out| {
        out.lines().count() == 4 && out.contains(&late)
    });
    assert_eq!(
        hub.ok("host list -o name").lines().count(),
        4,
        "the early-bound are gone"
    );
}
