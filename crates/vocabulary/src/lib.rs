//! The closed sets of words that the hub and its clients share, as enums with their predicates, and the typed ids.
//!
//! A new word is a new variant, and no match over these enums has a `_` arm: it compiles when everyone handles it.

// The macros name this crate as others see it.
extern crate self as muster_vocabulary;

mod access;
mod check;
mod cluster;
mod host;
mod id;
mod image;
mod operator;
mod platform;
mod report;
mod role;
mod route;
mod setting;
mod severity;
mod stage;
mod step;
mod word;

pub use access::{AccessRole, Generation};
pub use check::CheckStatus;
pub use cluster::{ClusterKind, ClusterStatus, PreparationStatus};
pub use host::{HostKind, HostStatus, MediaStatus};
pub use id::{ClusterId, HostId, HostKey, InfraEnvId};
pub use image::BaseImageState;
pub use operator::OperatorStatus;
pub use platform::PlatformType;
pub use report::{LogsState, NtpSourceState, ReplyResult, VipType, VipVerification};
pub use role::{InstallRole, Role};
pub use route::Route;
pub use setting::{
    CertificateVerification, CloudControllerManager, DiskEncryptionMode, DiskRole, HighAvailabilityMode,
    LoadBalancerType, NetworkType, RoleSet,
};
pub use severity::{Category, Severity};
pub use stage::{FinalizingStage, Stage};
pub use step::{PostStepAction, StepType};
pub use word::{UnknownWord, Word, Words};

// For the macros, which other crates use, too.
#[doc(hidden)]
pub use serde;
