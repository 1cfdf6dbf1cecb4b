//! A Kubernetes API server and what it needs, built from Go modules into the cache.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::go::{self, Go, Workshop};

/// The newest release, which is the first to refuse what will be refused everywhere tomorrow.
const KUBERNETES: &str = "1.36.3";
const ETCD: &str = "v3.7.3";

const KUBERNETES_PROGRAMS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kubectl"];

/// Where people keep programs for such tests already; may lack the controllers.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// The programs by name.
pub struct Kube {
    programs: BTreeMap<&'static str, PathBuf>,
}

impl Kube {
    /// Puts them all into one directory.
    pub fn link_into(&self, bin: &Path) -> Result<()> {
        fs::create_dir_all(bin)?;
        for (name, file) in &self.programs {
            std::os::unix::fs::symlink(file, bin.join(name))
                .with_context(|| format!("linking {}", file.display()))?;
        }
        Ok(())
    }
}

pub fn ensure() -> Result<Kube> {
    let given = env::var_os(ASSETS)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let mut programs = BTreeMap::new();
    for name in KUBERNETES_PROGRAMS.into_iter().chain(["etcd"]) {
        let there = given
            .as_ref()
            .map(|assets| assets.join(name))
            .filter(|file| file.exists());
        let file = match there {
            Some(file) => file,
            None if name == "etcd" => go::programs(&format!("etcd-{ETCD}"), build_etcd)?.join(name),
            None => go::programs(&format!("kubernetes-v{KUBERNETES}"), build_kubernetes)?.join(name),
        };
        programs.insert(
            name,
            file.canonicalize()
                .with_context(|| format!("there is no {name}"))?,
        );
    }
    Ok(Kube { programs })
}

fn build_etcd(go: &Go, shop: &Workshop) -> Result<()> {
    let home = shop.home.join("etcd");
    fs::create_dir(&home)?;
    fs::write(home.join("go.mod"), "module test/etcd\n\ngo 1.26.0\n")?;
    let module = "go.etcd.io/etcd/server/v3";
    go.run(&home, &["get", &format!("{module}@{ETCD}")])?;
    let output = shop.bin.join("etcd");
    let output = output.to_str().context("the cache has a strange name")?;
    go.run(
        &home,
        &[
            "build",
            "-p",
            "2",
            "-trimpath",
            "-ldflags",
            "-s -w",
            "-o",
            output,
            module,
        ],
    )
}

fn build_kubernetes(go: &Go, shop: &Workshop) -> Result<()> {
    let home = shop.home.join("kubernetes");
    fs::create_dir(&home)?;
    let module = go.download(&shop.home, &format!("k8s.io/kubernetes@v{KUBERNETES}"))?;
    let upstream = fs::read_to_string(&module.go_mod).context("reading the module file of Kubernetes")?;
    fs::write(home.join("go.mod"), module_file(&staging(&upstream)?))?;
    let mut words = vec!["build", "-p", "2", "-trimpath", "-ldflags"];
    let flags = version_flags();
    let packages = KUBERNETES_PROGRAMS.map(|name| format!("k8s.io/kubernetes/cmd/{name}"));
    let output = format!("{}/", shop.bin.display());
    words.extend([flags.as_str(), "-o", &output]);
    words.extend(packages.iter().map(String::as_str));
    go.run(&home, &words)
}

/// The libraries that Kubernetes keeps beside itself, where the published module does not carry them.
fn staging(upstream: &str) -> Result<Vec<String>> {
    let mut names: Vec<String> = upstream
        .lines()
        .filter_map(|line| line.trim().split_once("=> ./staging/src/"))
        .map(|(_, name)| name.trim().to_owned())
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        bail!("the module file of Kubernetes names no staging libraries; has it changed?");
    }
    Ok(names)
}

/// Each of them is published on its own, as v0 of the same release.
fn module_file(staging: &[String]) -> String {
    let library = KUBERNETES.replacen("1.", "0.", 1);
    let replacements: String = staging
        .iter()
        .map(|name| format!("replace {name} => {name} v{library}\n"))
        .collect();
    format!(
        "module test/kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v{KUBERNETES}\n\n{replacements}"
    )
}

/// Without them the server would call itself 0.0.0 and clients would believe it.
fn version_flags() -> String {
    let mut parts = KUBERNETES.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!(
        "-s -w -X {package}.gitVersion=v{KUBERNETES} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_staging_library_is_replaced_once_by_its_published_release() {
        let upstream = "replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n";
        let file = module_file(&staging(upstream).unwrap());
        assert_eq!(
            file.matches("replace k8s.io/api => k8s.io/api v0.36.3").count(),
            1
        );
        assert!(file.contains("require k8s.io/kubernetes v1.36.3"));
        assert!(staging("module x\n").is_err());
    }

    #[test]
    fn the_server_knows_its_version() {
        let flags = version_flags();
        assert!(
            flags.contains("gitVersion=v1.36.3") && flags.contains("gitMinor=36"),
            "{flags}"
        );
    }
}
