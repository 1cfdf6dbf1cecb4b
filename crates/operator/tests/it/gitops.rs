//! Manifests as people keep them in Git, applied with the program people apply them with.

use crate::described::says;
use crate::lent::{self, machine, word};
use crate::world::{World, condition, id_of};
use kube::ResourceExt;
use muster_contract::v2::manifest::ManifestsQuery;
use muster_operator::crd::infra_env::{IMAGE_CREATED, reason};
use muster_operator::crd::keys::label;
use muster_operator::crd::{Agent, AgentClusterInstall, InfraEnv};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::process::Command;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/manifests/gitops");
/// The namespace that the examples name.
const SITE: &str = "namespace: edge-north";

/// The program, and who uses it.
pub fn kubectl(world: &World) -> Command {
    let programs = std::env::var_os("MUSTER_TEST_KUBE_BIN")
        .expect("MUSTER_TEST_KUBE_BIN is not set; run these tests with `cargo xtask test --only kube`");
    let mut command = Command::new(PathBuf::from(programs).join("kubectl"));
    command.env("KUBECONFIG", &world.server.admin);
    command
}

pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub async fn run(mut command: Command) -> Said {
    let output = command.output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

async fn ask<S: AsRef<OsStr>>(world: &World, arguments: impl IntoIterator<Item = S>) -> Said {
    let mut command = kubectl(world);
    command.args(arguments);
    run(command).await
}

/// The examples, with the namespace of this test.
fn examples(world: &World) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let files = std::fs::read_dir(EXAMPLES)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace(SITE, &format!("namespace: {}", world.clusters));
        std::fs::write(home.path().join(path.file_name().unwrap()), text).unwrap();
    }
    home
}

async fn apply(world: &World, home: &Path) -> Vec<String> {
    let said = ask(
        world,
        [OsStr::new("apply"), OsStr::new("--filename"), home.as_os_str()],
    )
    .await;
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(!said.err.contains("Warning"), "{}", said.err);
    said.out.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manifests_of_gitops_examples_apply() {
    let mut world = World::start().await;
    let site = world.clusters.clone();
    let home = examples(&world);
    assert_eq!(apply(&world, home.path()).await.len(), 7);

    let is_there = |infra_env: &InfraEnv| {
        let conditions = infra_env
            .status
            .as_ref()
            .map(|status| status.conditions.as_slice());
        condition(conditions.unwrap_or_default(), IMAGE_CREATED)
            .is_some_and(|(status, why, _)| (status, why) == ("True", reason::AVAILABLE))
    };
    let infra_env: InfraEnv = world.when(&site, "edge-north", "with an image", is_there).await;
    let install: AgentClusterInstall = world
        .when(
            &site,
            "edge-north",
            "in order",
            |install: &AgentClusterInstall| says(install, "SpecSynced") == word("True", "SyncOK"),
        )
        .await;
    assert_eq!(says(&install, "Completed").1, "InstallationNotStarted");

    let id = world.cluster_id("edge-north").await;
    let pool = id_of(&infra_env);
    let row = world.hub.infra_env(pool).await.unwrap();
    assert_eq!(row.cluster_id, Some(id));
    assert!(
        row.static_network_config.contains("10.64.7.11"),
        "the network of its host"
    );
    assert!(row.ignition_config_override.contains("/etc/site"));
    let cluster = world.hub.cluster(id).await.unwrap();
    assert!(cluster.install_config_overrides.contains("baselineCapabilitySet"));
    assert_eq!(
        cluster.machine_networks.unwrap()[0].cidr.as_deref(),
        Some("10.64.0.0/16")
    );
    let manifests = world.hub.manifests(id, &ManifestsQuery::default()).await.unwrap();
    assert_eq!(manifests[0].file_name, "50-worker-chrony.yaml");

    world.fleet(pool, 1, |config| config.first_index = 0);
    let name = machine(pool, 0).id().to_string();
    let agent: Agent = world
        .when(&site, &name, "known", |agent: &Agent| {
            lent::state(agent) == "known"
        })
        .await;
    assert_eq!(agent.labels()["site"], "north");
    assert_eq!(agent.labels()[label::INFRA_ENV], "edge-north");
    let table = ask(&world, ["get", "agents", "--namespace", &site]).await.out;
    let mut lines = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(
        lines.next().unwrap(),
        ["NAME", "CLUSTER", "APPROVED", "ROLE", "STAGE"],
        "{table}"
    );
    assert_eq!(
        lines.next().unwrap()[..3],
        [name.as_str(), "edge-north", "false"],
        "{table}"
    );

    // What the operator adds is not in Git; what is in Git it leaves as it is.
    world.operator().idle().await;
    let again = apply(&world, home.path()).await;
    let touched: Vec<&String> = again
        .iter()
        .filter(|line| !line.ends_with("unchanged") && !line.starts_with("secret/"))
        .collect();
    assert!(touched.is_empty(), "{touched:?}");

    ask(
        &world,
        [
            "patch",
            "agent",
            &name,
            "--namespace",
            &site,
            "--type=merge",
            "--patch",
            r#"{"spec":{"approved":true}}"#,
        ],
    )
    .await;
    world
        .when(
            &site,
            "edge-north",
            "installed",
            |install: &AgentClusterInstall| {
                says(install, "Completed") == word("True", "InstallationCompleted")
            },
        )
        .await;
    world.operator().idle().await;
    let after = apply(&world, home.path()).await;
    let touched: Vec<&String> = after
        .iter()
        .filter(|line| !line.ends_with("unchanged") && !line.starts_with("secret/"))
        .collect();
    assert!(
        touched.is_empty(),
        "nor is it so once the cluster runs: {touched:?}"
    );

    let gone = ask(
        &world,
        [
            OsStr::new("delete"),
            OsStr::new("--wait=false"),
            OsStr::new("--filename"),
            home.path().as_os_str(),
        ],
    )
    .await;
    assert_eq!(gone.code, 0, "{}", gone.err);
    world.cluster_is_gone("edge-north", id).await;
    world.gone::<InfraEnv>(&site, "edge-north").await;
    world.gone::<Agent>(&site, &name).await;
}
