//! The steps a hub can ask for: each takes its arguments as JSON in strings and gives one answer.

mod addresses;
mod clock;
mod connectivity;
mod domains;
mod endpoint;
mod lease;
mod logs;
mod reclaim;
pub mod registries;
mod speed;

pub use logs::{archive, gather};

use crate::clock::Clock;
use crate::collect::{self, Machine};
use crate::hub::{Hub, Ids};
use crate::install;
use crate::settings::Settings;
use muster_contract::v2::agent::args::UpgradeAgentArgs;
use muster_contract::v2::agent::replies::UpgradeAgentReply;
use muster_contract::v2::step::StepType;
use muster_vocabulary::ReplyResult;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Everything a step may need.
#[derive(Debug, Clone)]
pub struct Context {
    pub settings: Arc<Settings>,
    pub hub: Hub,
    pub machine: Machine,
    pub clock: Arc<dyn Clock>,
    pub ids: Ids,
    pub shared: Arc<Shared>,
}

/// What steps and sessions have in common while the agent runs.
#[derive(Debug, Default)]
pub struct Shared {
    pub install: install::Slot,
    pub power: crate::power::Power,
    busy: Mutex<HashSet<StepType>>,
    /// What the agent calls itself since the hub asked it to be another version.
    version: Mutex<Option<String>>,
}

impl Shared {
    pub fn version(&self, settings: &Settings) -> String {
        let version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        version.clone().unwrap_or_else(|| settings.agent_version.clone())
    }

    pub fn become_version(&self, version: &str) {
        if !version.is_empty() {
            *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.to_owned());
        }
    }

    fn take(&self, step: StepType) -> bool {
        self.busy
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(step)
    }

    fn give_back(&self, step: StepType) {
        self.busy
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&step);
    }
}

/// What came of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    pub exit_code: i64,
    pub output: String,
    pub error: String,
}

/// The step is not known, or its arguments are not.
pub const NO_SUCH_ACTION: i64 = -1;
/// The medium the machine was started from cannot be read any more.
pub const MEDIA_LOST: i64 = 256;

impl Outcome {
    pub fn failed(exit_code: i64, error: impl ToString) -> Self {
        Self {
            exit_code,
            output: String::new(),
            error: error.to_string(),
        }
    }
}

/// Says an error with all its causes.
fn from_result(result: anyhow::Result<String>) -> Outcome {
    match result {
        Ok(output) => Outcome {
            output,
            ..Outcome::default()
        },
        Err(error) => Outcome::failed(1, format!("{error:#}")),
    }
}

fn json(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string(value)?)
}

fn one<T: DeserializeOwned>(args: &[String]) -> Option<T> {
    let [arg] = args else { return None };
    serde_json::from_str(arg).ok()
}

/// Long ones that a hub hands out again while they run.
fn runs_alone(step: StepType) -> bool {
    matches!(
        step,
        StepType::ContainerImageAvailability
            | StepType::InstallationDiskSpeedCheck
            | StepType::UpgradeAgent
            | StepType::DownloadBootArtifacts
    )
}

/// Does one step. A step that must run alone and runs already answers nothing, successfully; hubs ignore that.
pub fn run(context: &Context, step: StepType, args: &[String]) -> Outcome {
    if !runs_alone(step) {
        return dispatch(context, step, args);
    }
    if !context.shared.take(step) {
        return Outcome::default();
    }
    let outcome = dispatch(context, step, args);
    context.shared.give_back(step);
    outcome
}

/// Nothing on an installed system may be read or written to, except to come back.
fn is_for_installed(step: StepType) -> bool {
    matches!(step, StepType::DownloadBootArtifacts | StepType::RebootForReclaim)
}

fn dispatch(context: &Context, step: StepType, args: &[String]) -> Outcome {
    if context.settings.is_installed && !is_for_installed(step) {
        let text = format!("failed to find action for step {step}: this machine runs its installed system");
        return Outcome::failed(NO_SUCH_ACTION, text);
    }
    let known = match step {
        StepType::Inventory => Some(inventory(context, args)),
        StepType::ConnectivityCheck => one(args).map(|hosts| connectivity::check(context, hosts)),
        StepType::FreeNetworkAddresses => one(args).map(|nets| addresses::free(context, nets)),
        StepType::VerifyVips => one(args).map(|vips| addresses::verify_vips(context, vips)),
        StepType::DhcpLeaseAllocate => one(args).map(|args| lease::allocate(&args)),
        StepType::ApiVipConnectivityCheck => one(args).map(|args| endpoint::api_vip(context, &args)),
        StepType::TangConnectivityCheck => one(args).map(|args| endpoint::tang(context, &args)),
        StepType::NtpSynchronizer => one(args).map(|args| clock::synchronize(context, &args)),
        StepType::DomainResolution => one(args).map(|args| domains::resolve(context, &args)),
        StepType::InstallationDiskSpeedCheck => speed::from_args(context, args),
        StepType::ContainerImageAvailability => one(args).map(|args| registries::reach(context, &args)),
        StepType::LogsGather => one(args).map(|args| logs::step(context, &args)),
        StepType::Install => one(args).map(|args| install::start(context, args)),
        StepType::StopInstallation => Some({
            context.shared.install.cancel();
            Ok(String::new())
        }),
        StepType::UpgradeAgent => one(args).map(|args| upgrade(context, &args)),
        StepType::DownloadBootArtifacts => one(args).map(|args| reclaim::download(context, &args)),
        StepType::RebootForReclaim => one(args).map(|args| reclaim::reboot(context, &args)),
        StepType::Execute | StepType::NextStepRunner => None,
    };
    known.map_or_else(
        || {
            Outcome::failed(
                NO_SUCH_ACTION,
                format!(
                    "failed to find action for step {step}: its {} arguments are not known",
                    args.len()
                ),
            )
        },
        from_result,
    )
}

fn inventory(context: &Context, args: &[String]) -> anyhow::Result<String> {
    let min = args
        .iter()
        .find_map(|arg| arg.strip_prefix("--disk-min-size=")?.parse().ok());
    json(&collect::inventory(&context.machine, min.unwrap_or_default()))
}

/// The agent comes with its image and is replaced with it. It takes the name it is asked to have, because hubs repeat
/// the wish until the names agree.
fn upgrade(context: &Context, args: &UpgradeAgentArgs) -> anyhow::Result<String> {
    context.shared.become_version(&args.agent_image);
    json(&UpgradeAgentReply {
        agent_image: args.agent_image.clone(),
        result: ReplyResult::Success.into(),
    })
}
