//! A private Kubernetes API server on loopback, with etcd and the controllers that clean up; gone with its guard.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::{hub, port, process, project, tools, wait};

/// Three seconds on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Who the operator is in tests: a user with no rights but those bound to it.
pub const OPERATOR: &str = "muster-operator";

/// Only what nobody else does: objects go with their owners, namespaces with what is in them.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller";

/// A running server.
pub struct Cluster {
    /// A kubeconfig that may do everything.
    pub admin: PathBuf,
    /// A kubeconfig of the user `muster-operator`.
    pub operator: PathBuf,
    /// The programs, for tests that want a server of their own.
    pub bin: PathBuf,
    // The order matters: each stops before what it depends on.
    #[expect(dead_code, reason = "kept for its drop")]
    controllers: process::Service,
    #[expect(dead_code, reason = "kept for its drop")]
    apiserver: process::Service,
    #[expect(dead_code, reason = "kept for its drop")]
    etcd: process::Service,
    #[cfg_attr(not(test), expect(dead_code, reason = "kept for its drop"))]
    home: TempDir,
}

impl Cluster {
    pub fn start() -> Result<Self> {
        let programs = tools::ensure_kube()?;
        let temporary = tempfile::Builder::new().prefix("muster-kube-").tempdir()?;
        let home = temporary.path();
        let bin = home.join("bin");
        programs.link_into(&bin)?;

        let port = port::free()?;
        let admin = kubeconfig(home, port, "admin")?;
        let operator = kubeconfig(home, port, OPERATOR)?;
        fs::write(
            home.join("tokens.csv"),
            format!("admin,admin,1,\"system:masters\"\n{OPERATOR},{OPERATOR},2\n"),
        )?;
        let key = home.join("service-accounts.key");
        tools::ensure_openssl()?;
        process::output(
            Command::new("openssl")
                .args(["genrsa", "-out"])
                .arg(&key)
                .arg("2048"),
        )?;

        let client = format!("http://127.0.0.1:{}", port::free()?);
        let mut etcd = start("etcd", home, &etcd_words(home, &client)?)?;
        let mut apiserver = start("kube-apiserver", home, &apiserver_words(home, port, &client))?;
        wait::until("the API server to be ready", START_LIMIT, || {
            for (name, server) in [("etcd", &mut etcd), ("kube-apiserver", &mut apiserver)] {
                if let Some(status) = server.ended()? {
                    bail!("{name} ended at once ({status}); {}", hub::tail(&log(home, name)));
                }
            }
            Ok(process::succeeds(kubectl(&bin, &admin).args(["get", "--raw=/readyz"])).then_some(()))
        })
        .with_context(|| hub::tail(&log(home, "kube-apiserver")))?;
        for config in [&admin, &operator] {
            make_whole(&bin, config)?;
        }
        let controllers = start("kube-controller-manager", home, &controller_words(&admin))?;
        Ok(Self {
            admin,
            operator,
            bin,
            controllers,
            apiserver,
            etcd,
            home: temporary,
        })
    }

    /// `kubectl` with the rights to do everything.
    pub fn kubectl(&self) -> Command {
        kubectl(&self.bin, &self.admin)
    }

    /// Runs `kubectl` and gives back what it printed.
    pub fn ask<S: AsRef<OsStr>>(&self, words: &[S]) -> Result<String> {
        let text = process::output(self.kubectl().args(words))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Applies all manifests in a file or directory.
    pub fn apply(&self, path: &Path) -> Result<()> {
        let words = ["apply", "--server-side", "--force-conflicts", "-f"].map(OsStr::new);
        self.ask(&[&words[..], &[path.as_os_str()]].concat())?;
        Ok(())
    }

    /// Waits until objects of all kinds defined so far can be made.
    pub fn await_kinds(&self) -> Result<()> {
        let wish = [
            "wait",
            "--for=condition=Established",
            "crd",
            "--all",
            "--timeout=60s",
        ];
        self.ask(&wish).map(|_| ())
    }
}

fn kubectl(bin: &Path, config: &Path) -> Command {
    let mut command = Command::new(bin.join("kubectl"));
    project::without_proxy(&mut command)
        .arg("--kubeconfig")
        .arg(config)
        .arg("--request-timeout=30s");
    command
}

fn start(name: &'static str, home: &Path, words: &[String]) -> Result<process::Service> {
    let mut command = process::ending_with_us(home.join("bin").join(name));
    let written = File::create(log(home, name))?;
    project::without_proxy(&mut command)
        .args(words)
        .current_dir(home)
        .stdout(written.try_clone()?)
        .stderr(written);
    process::Service::start(name, &mut command, Signal::TERM)
}

fn log(home: &Path, name: &str) -> PathBuf {
    home.join(format!("{name}.log"))
}

/// Writes the kubeconfig of a user whose token is its name: the server is ours alone and lives for minutes.
fn kubeconfig(home: &Path, port: u16, user: &str) -> Result<PathBuf> {
    let authority = home.join("certificates/apiserver.crt");
    let text = format!(
        "apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {{server: \"https://127.0.0.1:{port}\", certificate-authority: {}}}
users:
- name: {user}
  user: {{token: {user}}}
contexts:
- name: test
  context: {{cluster: test, user: {user}}}
current-context: test
",
        authority.display()
    );
    let file = home.join(format!("{user}.kubeconfig"));
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// Puts the certificate itself in the place of its path: clusters' kubeconfigs must not name files.
fn make_whole(bin: &Path, config: &Path) -> Result<()> {
    let whole = process::output(kubectl(bin, config).args(["config", "view", "--flatten", "--raw"]))?;
    fs::write(config, whole).with_context(|| format!("writing {}", config.display()))
}

fn etcd_words(home: &Path, client: &str) -> Result<Vec<String>> {
    let peer = format!("http://127.0.0.1:{}", port::free()?);
    Ok(vec![
        format!("--data-dir={}", home.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // Nobody cuts the power of this one.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ])
}

fn apiserver_words(home: &Path, port: u16, etcd: &str) -> Vec<String> {
    let at = |file: &str| home.join(file).display().to_string();
    vec![
        format!("--etcd-servers={etcd}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", at("certificates")),
        format!("--service-account-issuer=https://127.0.0.1:{port}"),
        format!("--service-account-key-file={}", at("service-accounts.key")),
        format!(
            "--service-account-signing-key-file={}",
            at("service-accounts.key")
        ),
        format!("--token-auth-file={}", at("tokens.csv")),
        "--authorization-mode=RBAC".into(),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        "--endpoint-reconciler-type=none".into(),
        // It would wait for accounts that a controller we do not run makes.
        "--disable-admission-plugins=ServiceAccount".into(),
        // As OpenShift has it: whoever changes the owners of an object needs the right to delete it.
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".into(),
        // As clusters have it: what fetches a host back runs privileged.
        "--allow-privileged=true".into(),
    ]
}

fn controller_words(config: &Path) -> Vec<String> {
    let config = config.display();
    vec![
        format!("--kubeconfig={config}"),
        format!("--authentication-kubeconfig={config}"),
        format!("--authorization-kubeconfig={config}"),
        "--secure-port=0".into(),
        "--leader-elect=false".into(),
        format!("--controllers={CONTROLLERS}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_knows_its_users_cleans_up_after_owners_and_is_gone_with_its_guard() {
        let cluster = Cluster::start().unwrap();
        let home = cluster.home.path().to_path_buf();
        cluster.ask(&["create", "namespace", "one"]).unwrap();
        let may = |config: &Path| {
            process::succeeds(kubectl(&cluster.bin, config).args(["get", "secrets", "--all-namespaces"]))
        };
        assert!(may(&cluster.admin));
        assert!(!may(&cluster.operator), "the operator has rights nobody gave it");
        cluster
            .ask(&["delete", "namespace", "one", "--timeout=60s"])
            .unwrap();
        let (bin, admin) = (
            fs::read_link(cluster.bin.join("kubectl")).unwrap(),
            cluster.admin.clone(),
        );
        drop(cluster);
        assert!(!home.exists());
        assert!(!process::succeeds(
            Command::new(bin)
                .arg("--kubeconfig")
                .arg(admin)
                .args(["get", "ns"])
        ));
    }
}
