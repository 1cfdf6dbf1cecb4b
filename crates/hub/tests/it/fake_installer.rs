//! A small real program in the place of `openshift-install`, and clusters at any point of an installation.

use crate::door::Door;
use crate::place::Place;
use muster_domain::ClusterId;
use muster_domain::cluster::Cluster;
use muster_hub::{Clock, Hub};
use muster_store::Commit;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;
use uuid::Uuid;

/// Writes what the real one writes, and beside itself what it saw.
pub const WORKS: &str = r#"#!/bin/sh
set -e
cd "$4"
echo "level=info msg=\"create $2\"" >&2
case "$2" in
manifests)
    stat -c %a . > "$0.mode"
    env | sort > "$0.env"
    pwd > "$0.dir"
    cp install-config.yaml "$0.config"
    mkdir -p manifests openshift
    printf 'kind: Network\nspec:\n  mtu: 1500\n' > manifests/cluster-network-02-config.yml
    # The real one keeps its state and takes the config away.
    mv install-config.yaml .openshift_install_state.json
    ;;
ignition-configs)
    ls manifests openshift > "$0.manifests"
    cp manifests/cluster-network-02-config.yml "$0.network"
    mkdir -p auth
    for role in bootstrap master worker; do
        printf '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/%s"}]}}' "$role" > "$role.ign"
    done
    printf '{"clusterName":"c","clusterID":"6c3b2b4e-8a8c-4a86-9d3a-1f6f2f1d0c55","infraID":"c-x"}' > metadata.json
    printf 'apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    certificate-authority-data: QQ==\n    server: https://api.c.example.com:6443\nusers: []\ncontexts: []\n' > auth/kubeconfig
    printf 'correct-horse' > auth/kubeadmin-password
    ;;
single-node-ignition-config)
    mkdir -p auth
    printf '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/in/place"}]}}' > bootstrap-in-place-for-live-iso.ign
    printf '{"clusterID":"6c3b2b4e-8a8c-4a86-9d3a-1f6f2f1d0c55"}' > metadata.json
    printf 'kind: Config\nclusters: []\n' > auth/kubeconfig
    printf 'correct-horse' > auth/kubeadmin-password
    ;;
esac
"#;

pub struct Program {
    pub home: TempDir,
    pub path: PathBuf,
}

impl Program {
    pub fn new(text: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("openshift-install");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { home, path }
    }

    /// What it wrote beside itself.
    pub fn saw(&self, what: &str) -> String {
        let path = self.home.path().join(format!("openshift-install.{what}"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The directories of its runs that are still there.
    pub fn work_dirs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.home.path().join("work"));
        entries
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect()
    }

    pub async fn door(&self) -> Door {
        Door::with(Place::new().await, Clock::System, |settings| {
            settings.installer.program = Some(self.path.to_str().unwrap().into());
            settings.installer.work_dir = self.home.path().join("work");
        })
        .await
    }
}

/// Puts a cluster into a state that would take a whole installation to reach.
pub async fn alter(hub: &Hub, id: Uuid, change: impl Fn(&mut Cluster)) -> Cluster {
    let mut cluster = Cluster::clone(&hub.index.cluster(ClusterId(id)).unwrap());
    change(&mut cluster);
    let commit = Commit {
        puts: vec![cluster.clone().into()],
        ..Commit::new(hub.now())
    };
    cluster.revision = hub.store.commit(commit).await.unwrap().revisions[0];
    hub.index.put(cluster.clone().into());
    cluster
}
