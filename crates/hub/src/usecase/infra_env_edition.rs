//! What is in an image of an InfraEnv, by a short name.

use crate::Hub;
use crate::usecase::infra_env_create::{ignition_of, initrd_of};
use muster_domain::infra_env::{ImageType, InfraEnv};
use muster_domain::render::kargs;
use sha2::{Digest, Sha256};

/// Management controllers take only short addresses, and two contents of one InfraEnv have to differ, not all that there
/// are: 40 bits.
const NAME_BYTES: usize = 5;

/// The same for the same content; empty if none can be made. Full and minimal images and the files for network boots are
/// made of the same parts.
pub fn edition_name(hub: &Hub, infra_env: &InfraEnv) -> String {
    let Ok(ignition) = ignition_of(hub, infra_env, ImageType::FullIso) else {
        return String::new();
    };
    let arguments = kargs::appended(infra_env.kernel_arguments.as_deref());
    let parts = [
        ignition.into_bytes(),
        initrd_of(infra_env).unwrap_or_default(),
        arguments.join("\n").into_bytes(),
        infra_env.openshift_version.clone().into_bytes(),
        infra_env.cpu_architecture.clone().into_bytes(),
        infra_env.image_type.file().into(),
    ];
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let name = hash.finalize();
    name[..NAME_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
