//! Rules of the house that no compiler knows: words stand nowhere as text, and small programs stay small.

use muster_vocabulary::{
    BaseImageState, CheckStatus, ClusterStatus, DiskEncryptionMode, FinalizingStage, HostKind, HostStatus,
    InstallRole, LoadBalancerType, NetworkType, NtpSourceState, PlatformType, PreparationStatus, ReplyResult,
    Role, RoleSet, Stage, StepType, VipVerification, Words,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that talk about hosts and clusters.
const CRATES: [&str; 10] = [
    "agent", "auth", "contract", "domain", "hub", "image", "muster", "operator", "simfleet", "store",
];

/// Words of ours that everybody uses for everything else, too; to look for them would tell nothing.
const ORDINARY: [&str; 6] = ["none", "None", "all", "external", "install", "inventory"];

/// Texts that are spelled like a word of ours and mean something else: where, which, and what it is there.
const OTHERS: &[(&str, &str, &str)] = &[
    (
        "agent/src/init/connection/keyfile.rs",
        "disabled",
        "a method of NetworkManager",
    ),
    (
        "agent/src/init/connection/keyfile.rs",
        "master",
        "a key of NetworkManager",
    ),
    ("agent/src/collect/vendor.rs", "nutanix", "a maker of machines"),
    (
        "agent/src/init/connection/yaml.rs",
        "absent",
        "a state of nmstate",
    ),
    ("agent/src/settings.rs", "installed", "an option of the program"),
    ("auth/src/device/message.rs", "error", "a field of OAuth"),
    ("domain/src/host/install_order.rs", "bootstrap", "a field"),
    (
        "domain/src/host/words.rs",
        "Done",
        "a sentence that clients compare with",
    ),
    ("domain/src/input/bounds.rs", "error", "a field"),
    (
        "domain/src/render/install_config.rs",
        "arbiter",
        "a key of the installer",
    ),
    (
        "domain/src/render/install_config.rs",
        "baremetal",
        "a key of the installer",
    ),
    (
        "domain/src/render/install_config.rs",
        "nutanix",
        "a key of the installer",
    ),
    (
        "domain/src/render/install_config.rs",
        "vsphere",
        "a key of the installer",
    ),
    ("domain/src/render/manifests.rs", "tang", "a key of Ignition"),
    (
        "domain/src/render/single_node_names.rs",
        "master",
        "a label of Kubernetes",
    ),
    ("hub/src/tls/mod.rs", "failed", "a label of a metric"),
    (
        "muster/src/cli/cluster/install.rs",
        "cancelled",
        "what a verb has done",
    ),
    (
        "muster/src/cli/cluster/install.rs",
        "installed",
        "what a verb has done",
    ),
    (
        "muster/src/cli/host/install.rs",
        "installed",
        "what a verb has done",
    ),
    (
        "operator/src/controller/agent/plan/day_two.rs",
        "baremetal",
        "a capability of OpenShift",
    ),
    (
        "operator/src/controller/agent/plan/csr.rs",
        "Failed",
        "a condition of Kubernetes",
    ),
    (
        "operator/src/controller/bare_metal_host/plan/boot.rs",
        "disabled",
        "a setting of Metal3",
    ),
    (
        "operator/src/controller/bare_metal_host/plan/drain.rs",
        "Failed",
        "a phase of Kubernetes",
    ),
    (
        "operator/src/controller/bare_metal_host/plan/machine.rs",
        "disabled",
        "a setting of Metal3",
    ),
    (
        "operator/src/controller/cluster_deployment/plan/credential.rs",
        "installed",
        "a field",
    ),
    (
        "operator/src/crd/agent_cluster_install/mod.rs",
        "Failed",
        "a condition",
    ),
    (
        "operator/src/crd/agent_service_config.rs",
        "disabled",
        "a setting",
    ),
    (
        "operator/src/crd/metal3.rs",
        "disabled",
        "an option of the derive, and a setting of Metal3",
    ),
    ("operator/src/crd/metal3.rs", "ready", "a state of Metal3"),
    ("operator/src/crd/rules.rs", "arbiter", "a field"),
];

fn words_of<T: Words>() -> impl Iterator<Item = &'static str> {
    T::ALL.iter().map(|word| word.word())
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Sources without tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("sources can be read") {
        let path = entry.expect("sources can be read").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// What stands between two quotation marks in a line of code.
fn texts(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with("//") {
        ""
    } else {
        line
    };
    let marks = code.matches('"').count();
    code.split('"').take(marks).skip(1)
}

#[test]
fn words_stand_in_the_vocabulary_and_nowhere_else() {
    let words: BTreeSet<&str> = words_of::<HostStatus>()
        .chain(words_of::<ClusterStatus>())
        .chain(words_of::<Stage>())
        .chain(words_of::<FinalizingStage>())
        .chain(words_of::<Role>())
        .chain(words_of::<InstallRole>())
        .chain(words_of::<HostKind>())
        .chain(words_of::<PlatformType>())
        .chain(words_of::<PreparationStatus>())
        .chain(words_of::<CheckStatus>())
        .chain(words_of::<RoleSet>())
        .chain(words_of::<NetworkType>())
        .chain(words_of::<DiskEncryptionMode>())
        .chain(words_of::<LoadBalancerType>())
        .chain(words_of::<VipVerification>())
        .chain(words_of::<NtpSourceState>())
        .chain(words_of::<ReplyResult>())
        .chain(words_of::<StepType>())
        .chain(words_of::<BaseImageState>())
        .filter(|word| !ORDINARY.contains(word))
        .collect();
    let (mut files, mut wrong) = (Vec::new(), Vec::new());
    for name in CRATES {
        sources(&crates().join(name).join("src"), &mut files);
    }
    assert!(files.len() > 400, "only {} sources were found", files.len());
    for file in files {
        let source = fs::read_to_string(&file).expect("sources can be read");
        let code = source
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let place = file
            .strip_prefix(crates())
            .expect("it was found there")
            .display()
            .to_string();
        for (line, at) in code.lines().zip(1..) {
            let found = texts(line).filter(|text| words.contains(text));
            let other = |text: &&str| {
                OTHERS
                    .iter()
                    .any(|(path, word, _)| *path == place && word == text)
            };
            wrong.extend(
                found
                    .filter(|text| !other(text))
                    .map(|text| format!("{place}:{at}: {text:?}")),
            );
        }
    }
    assert!(
        wrong.is_empty(),
        "these words have an enum in muster-vocabulary:\n{}",
        wrong.join("\n")
    );
}

/// What a package is linked with, by name.
fn linked(package: &str) -> BTreeSet<String> {
    let told = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--package",
            package,
            "--edges",
            "normal",
            "--prefix",
            "none",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let text = String::from_utf8(told.stdout).expect("cargo writes text");
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_agent_is_linked_with_wire_types_and_with_no_decisions() {
    let agent = linked("muster-agent");
    assert!(
        agent.contains("muster-contract") && agent.contains("muster-vocabulary"),
        "{agent:?}"
    );
    for heavy in ["muster-domain", "reqwest", "tokio", "utoipa"] {
        assert!(!agent.contains(heavy), "the agent is linked with {heavy}");
    }
}

#[test]
fn the_simulated_fleet_the_wire_and_tokens_know_no_decisions() {
    for package in [
        "muster-auth",
        "muster-simfleet",
        "muster-contract",
        "muster-vocabulary",
    ] {
        let linked = linked(package);
        assert!(linked.contains(package), "{linked:?}");
        assert!(
            !linked.contains("muster-domain"),
            "{package} is linked with muster-domain"
        );
    }
}
