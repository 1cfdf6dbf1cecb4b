//! The guides for Kubernetes, carried out as they are written.

use crate::described::state;
use crate::gitops::{Said, kubectl, run};
use crate::lent::machine;
use crate::world::{PULL_SECRET, World, id_of};
use muster_operator::crd::{Agent, AgentClusterInstall, ClusterDeployment, InfraEnv};
use std::path::Path;
use tokio::process::Command;

const KUBECTL: &str = include_str!("../../../../docs/guides/kubectl.md");
const KUBERNETES: &str = include_str!("../../../../docs/guides/kubernetes.md");
const GITOPS: &str = include_str!("../../../../docs/guides/gitops.md");

/// What stands between two fences.
#[derive(Debug)]
pub struct Block {
    /// To be saved under this name.
    pub file: Option<String>,
    pub text: String,
}

/// A block of YAML is saved under the name that the line before it ends with: `` `name.yaml`: ``.
pub fn blocks(guide: &str) -> Vec<Block> {
    let mut all = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for line in guide.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(_)) => {
                let name = before.strip_prefix('`').and_then(|name| name.strip_suffix("`:"));
                open = Some(Block {
                    file: name.map(str::to_owned),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => all.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) if !line.is_empty() => before = line,
            (None, None) => {}
        }
        if line.starts_with("```") {
            before = "";
        }
    }
    all
}

/// Carries a block out in a shell, which remembers what the blocks before it found out.
pub async fn carry_out(world: &World, home: &Path, block: &Block) -> Said {
    // The namespaces of a test have names of their own, and are there.
    let text = block
        .text
        .replace("kubectl create namespace", "kubectl get namespace")
        .replace("blue-team", &world.clusters)
        .replace("hardware", &world.pool);
    if let Some(name) = &block.file {
        std::fs::write(home.join(name), text).unwrap();
        return Said {
            code: 0,
            out: String::new(),
            err: String::new(),
        };
    }
    let program = kubectl(world);
    let program = Path::new(program.as_std().get_program()).parent().unwrap();
    let path = std::env::join_paths([program.to_owned()].into_iter().chain(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    )));
    let script = format!("[ -f known ] && . ./known\n{text}\necho \"agent=$agent\" > known\n");
    let mut shell = Command::new("bash");
    shell
        .args(["-e", "-o", "pipefail", "-c", &script])
        .current_dir(home);
    shell
        .env("PATH", path.unwrap())
        .env("KUBECONFIG", &world.server.admin);
    run(shell).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_of_kubectl_can_be_followed() {
    let mut world = World::start().await;
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("pull-secret.json"), PULL_SECRET).unwrap();
    let mut agent = None;
    for block in blocks(KUBECTL) {
        let said = carry_out(&world, home.path(), &block).await;
        assert_eq!(said.code, 0, "{}\n{}{}", block.text, said.out, said.err);
        if block.text.contains("isoDownloadURL") {
            assert!(said.out.contains("http"), "{}", said.out);
            let pool = id_of(&world.get::<InfraEnv>(&world.pool, "lab").await);
            world.fleet(pool, 1, |config| config.first_index = 0);
            let name = machine(pool, 0).id().to_string();
            world.when(&world.pool, &name, "there", |_: &Agent| true).await;
            agent = Some(name);
        }
        if block.text.contains("--for=condition=Completed") {
            let install: AgentClusterInstall = world.get(&world.clusters, "blue").await;
            assert!(["installed", "adding-hosts"].contains(&state(&install)));
            let kubeconfig = std::fs::read_to_string(home.path().join("blue.kubeconfig")).unwrap();
            assert!(kubeconfig.contains("clusters:"), "{kubeconfig}");
        }
        if block.text.contains(".status.conditions[*]") {
            assert!(said.out.contains("Completed=True"), "{}", said.out);
        }
        if block.text.contains("delete clusterdeployment") {
            world.gone::<ClusterDeployment>(&world.clusters, "blue").await;
        }
    }
    world.gone::<InfraEnv>(&world.pool, "lab").await;
    world.gone::<Agent>(&world.pool, &agent.unwrap()).await;
}

#[test]
fn every_file_that_a_guide_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    for guide in [KUBECTL, KUBERNETES, GITOPS] {
        let links = guide
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            // With a place in it, or one in the guide itself.
            let file = link.split('#').next().unwrap_or_default();
            assert!(root.join(file).exists(), "{link}");
        }
    }
    assert!(blocks(KUBECTL).len() > 10 && blocks(GITOPS).len() >= 3);
}

#[test]
fn what_the_guides_show_of_objects_can_be_read() {
    for guide in [KUBERNETES, GITOPS] {
        let shown: Vec<_> = blocks(guide)
            .into_iter()
            .filter(|block| block.text.contains("metadata:"))
            .collect();
        assert!(!shown.is_empty());
        for block in shown {
            let object: serde_json::Value = serde_norway::from_str(&block.text).unwrap();
            assert!(object["metadata"].is_object(), "{}", block.text);
        }
    }
}
