//! The health checks as Argo CD runs them: a Lua script that looks at a global named `obj`.

use std::process::Command;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::{process, project, tools};

/// A kind, its status, and what Argo CD should show.
struct Case {
    script: &'static str,
    status: Value,
    health: &'static str,
    message: &'static str,
}

const INFRA_ENV: &str = "agent-install.openshift.io_InfraEnv";
const AGENT: &str = "agent-install.openshift.io_Agent";
const CLUSTER: &str = "extensions.hive.openshift.io_AgentClusterInstall";
const CAPI_CLUSTER: &str = "capi-provider.agent-install.openshift.io_AgentCluster";
const MACHINE: &str = "capi-provider.agent-install.openshift.io_AgentMachine";

pub fn run() -> Result<()> {
    tools::ensure_lua()?;
    let mut wrong = Vec::new();
    let cases = cases();
    for case in &cases {
        let shown = judge(case)?;
        let wanted = format!("{}: {}", case.health, case.message);
        if shown != wanted {
            wrong.push(format!(
                "{} of {} is `{shown}`, not `{wanted}`",
                case.script, case.status
            ));
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    println!("{} health checks as expected", cases.len());
    Ok(())
}

fn judge(case: &Case) -> Result<String> {
    let object = match &case.status {
        Value::Null => json!({"spec": {}}),
        status => json!({"spec": {}, "status": status}),
    };
    let script = project::root()
        .join("deploy/argocd/health")
        .join(format!("{}.lua", case.script));
    let program = format!(
        "obj = {}; local health = dofile({}); io.write(health.status .. ': ' .. health.message)",
        literal(&object),
        quoted(&script.display().to_string())
    );
    let text = process::output(Command::new("lua5.1").arg("-e").arg(program))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A value as Lua would write it; what is null is absent, as in the tables Argo CD makes.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "nil".into(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("{{{}}}", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("[{}] = {}", quoted(key), literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": format!("{kind} says {reason}")})
}

fn case(script: &'static str, conditions: &[Value], health: &'static str, message: &'static str) -> Case {
    Case {
        script,
        status: json!({"conditions": conditions}),
        health,
        message,
    }
}

fn new(script: &'static str, message: &'static str) -> Case {
    Case {
        script,
        status: Value::Null,
        health: "Progressing",
        message,
    }
}

fn cases() -> Vec<Case> {
    let mut cases = infra_env_cases();
    cases.extend(agent_cases());
    cases.extend(cluster_cases());
    cases.extend(capi_cluster_cases());
    cases.extend(machine_cases());
    cases
}

fn capi_cluster_cases() -> Vec<Case> {
    let ready = |status, reason| [condition("Ready", status, reason)];
    vec![
        new(CAPI_CLUSTER, "Waiting for the control plane"),
        case(
            CAPI_CLUSTER,
            &ready("False", "WaitingForControlPlane"),
            "Progressing",
            "Ready says WaitingForControlPlane",
        ),
        case(
            CAPI_CLUSTER,
            &ready("False", "BadIgnitionEndpoint"),
            "Degraded",
            "Ready says BadIgnitionEndpoint",
        ),
        Case {
            script: CAPI_CLUSTER,
            status: json!({"ready": true, "conditions": ready("True", "Ready")}),
            health: "Healthy",
            message: "Machines can be added",
        },
        // Never taken back, so the condition has the last word.
        Case {
            script: CAPI_CLUSTER,
            status: json!({"ready": true, "conditions": ready("False", "ClusterDeploymentNotFound")}),
            health: "Degraded",
            message: "Ready says ClusterDeploymentNotFound",
        },
        // The released provider says no more than this.
        Case {
            script: CAPI_CLUSTER,
            status: json!({"ready": true}),
            health: "Healthy",
            message: "Machines can be added",
        },
    ]
}

fn infra_env_cases() -> Vec<Case> {
    let image = |status, reason| [condition("ImageCreated", status, reason)];
    vec![
        new(INFRA_ENV, "Waiting for the discovery image"),
        case(
            INFRA_ENV,
            &image("True", "InfraEnvAvailable"),
            "Healthy",
            "ImageCreated says InfraEnvAvailable",
        ),
        case(
            INFRA_ENV,
            &image("False", "ImageCreationError"),
            "Degraded",
            "ImageCreated says ImageCreationError",
        ),
        case(
            INFRA_ENV,
            &image("Unknown", "MissingClusterDeployment"),
            "Progressing",
            "ImageCreated says MissingClusterDeployment",
        ),
    ]
}

/// The conditions of a free, approved, fit host, with some of them replaced.
fn agent(other: &[Value]) -> Vec<Value> {
    let usual = [
        condition("SpecSynced", "True", "SyncOK"),
        condition("Connected", "True", "AgentIsConnected"),
        condition("RequirementsMet", "True", "AgentIsReady"),
        condition("Validated", "True", "ValidationsPassing"),
        condition("Installed", "False", "InstallationNotStarted"),
        condition("Bound", "False", "Unbound"),
    ];
    let kept = usual
        .into_iter()
        .filter(|one| !other.iter().any(|new| new["type"] == one["type"]));
    kept.chain(other.iter().cloned()).collect()
}

fn agent_cases() -> Vec<Case> {
    let bound = || condition("Bound", "True", "Bound");
    vec![
        new(AGENT, "Waiting for the host to report"),
        case(AGENT, &agent(&[]), "Healthy", "Bound says Unbound"),
        case(
            AGENT,
            &agent(&[condition("RequirementsMet", "False", "AgentIsNotApproved")]),
            "Suspended",
            "RequirementsMet says AgentIsNotApproved",
        ),
        case(
            AGENT,
            &agent(&[condition("Validated", "False", "ValidationsFailing")]),
            "Degraded",
            "Validated says ValidationsFailing",
        ),
        case(
            AGENT,
            &agent(&[condition("Connected", "False", "AgentIsDisconnected")]),
            "Degraded",
            "Connected says AgentIsDisconnected",
        ),
        case(
            AGENT,
            &agent(&[condition("SpecSynced", "False", "InputError")]),
            "Degraded",
            "SpecSynced says InputError",
        ),
        case(
            AGENT,
            &agent(&[condition("SpecSynced", "False", "BackendError")]),
            "Progressing",
            "SpecSynced says BackendError",
        ),
        case(
            AGENT,
            &agent(&[bound(), condition("Installed", "False", "InstallationInProgress")]),
            "Progressing",
            "Installed says InstallationInProgress",
        ),
        case(
            AGENT,
            &agent(&[bound(), condition("Installed", "False", "InstallationFailed")]),
            "Degraded",
            "Installed says InstallationFailed",
        ),
        // An installed host no longer polls; that is no harm.
        case(
            AGENT,
            &agent(&[bound(), condition("Installed", "True", "InstallationCompleted")]),
            "Healthy",
            "Installed says InstallationCompleted",
        ),
        case(
            AGENT,
            &agent(&[
                condition("Installed", "True", "InstallationCompleted"),
                condition("SpecSynced", "False", "BackendError"),
            ]),
            "Healthy",
            "Installed says InstallationCompleted",
        ),
        case(
            AGENT,
            &agent(&[condition("Bound", "False", "UnbindingPendingUserAction")]),
            "Suspended",
            "Bound says UnbindingPendingUserAction",
        ),
    ]
}

fn cluster_cases() -> Vec<Case> {
    let completed = |status, reason| condition("Completed", status, reason);
    let met = |status, reason| condition("RequirementsMet", status, reason);
    vec![
        new(CLUSTER, "Waiting for the installation to start"),
        case(
            CLUSTER,
            &[
                completed("True", "InstallationCompleted"),
                condition("Stopped", "True", "InstallationCompleted"),
            ],
            "Healthy",
            "Completed says InstallationCompleted",
        ),
        case(
            CLUSTER,
            &[
                completed("False", "InstallationFailed"),
                condition("Failed", "True", "InstallationFailed"),
            ],
            "Degraded",
            "Failed says InstallationFailed",
        ),
        case(
            CLUSTER,
            &[condition("SpecSynced", "False", "InputError")],
            "Degraded",
            "SpecSynced says InputError",
        ),
        case(
            CLUSTER,
            &[condition("SpecSynced", "False", "BackendError")],
            "Progressing",
            "SpecSynced says BackendError",
        ),
        case(
            CLUSTER,
            &[
                condition("SpecSynced", "True", "SyncOK"),
                completed("False", "InstallationNotStarted"),
                met("True", "ClusterIsReady"),
                condition("LastInstallationPreparationFailed", "True", "it failed"),
            ],
            "Degraded",
            "LastInstallationPreparationFailed says it failed",
        ),
        case(
            CLUSTER,
            &[
                completed("False", "InstallationInProgress"),
                condition("LastInstallationPreparationFailed", "True", "it failed"),
            ],
            "Progressing",
            "Completed says InstallationInProgress",
        ),
        case(
            CLUSTER,
            &[condition("Stopped", "True", "InstallationCancelled")],
            "Degraded",
            "Stopped says InstallationCancelled",
        ),
        case(
            CLUSTER,
            &[
                completed("False", "InstallationOnHold"),
                met("True", "ClusterIsReady"),
            ],
            "Suspended",
            "Completed says InstallationOnHold",
        ),
        case(
            CLUSTER,
            &[
                completed("False", "InstallationNotStarted"),
                met("False", "UnapprovedAgents"),
            ],
            "Suspended",
            "RequirementsMet says UnapprovedAgents",
        ),
        case(
            CLUSTER,
            &[
                completed("False", "InstallationNotStarted"),
                met("False", "InsufficientAgents"),
            ],
            "Progressing",
            "RequirementsMet says InsufficientAgents",
        ),
        case(
            CLUSTER,
            &[
                completed("False", "InstallationInProgress"),
                met("True", "ClusterAlreadyInstalling"),
            ],
            "Progressing",
            "Completed says InstallationInProgress",
        ),
    ]
}

fn machine_cases() -> Vec<Case> {
    let ready = Case {
        script: MACHINE,
        status: json!({"ready": true, "conditions": [condition("Ready", "True", "Installed")]}),
        health: "Healthy",
        message: "The host is installed",
    };
    vec![
        new(MACHINE, "Waiting for a host"),
        ready,
        case(
            MACHINE,
            &[condition("Ready", "False", "NoSuitableAgents")],
            "Progressing",
            "Ready says NoSuitableAgents",
        ),
        case(
            MACHINE,
            &[
                condition("Installed", "False", "InstallationFailed"),
                condition("Ready", "False", "InstallationFailed"),
            ],
            "Degraded",
            "Installed says InstallationFailed",
        ),
    ]
}
