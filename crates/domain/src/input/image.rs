//! What a discovery image is made for: architecture, kind of ISO, and the few settings bound to that kind.

use super::address;
use super::error::{Checked, Invalid, quoted};
use super::schema;
use crate::infra_env::ImageType;

/// Architectures an image can be built for, as people may write them.
pub const IMAGE_ARCHITECTURES: [&str; 5] = ["x86_64", "aarch64", "arm64", "ppc64le", "s390x"];
/// A cluster may also take its release for several architectures at once.
pub const CLUSTER_ARCHITECTURES: [&str; 6] = ["x86_64", "aarch64", "arm64", "ppc64le", "s390x", "multi"];
pub const IMAGE_TYPES: [&str; 3] = ["full-iso", "minimal-iso", "disconnected-iso"];
pub const DEFAULT_ARCHITECTURE: &str = "x86_64";
pub const DOWNLOADS: [&str; 3] = ["discovery.ign", "ipxe-script", "static-network-config"];
pub const IPXE_SCRIPT_TYPES: [&str; 2] = ["discovery-image-always", "boot-order-control"];

/// Two families of names are in use; ours is the one clients see.
pub fn normal_architecture(word: &str) -> &str {
    match word {
        "amd64" => "x86_64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Checks and normalises; absent means x86_64. `words` is one of the two lists above.
pub fn cpu_architecture(word: Option<&str>, words: &[&str]) -> Checked<String> {
    let word = word
        .filter(|word| !word.is_empty())
        .unwrap_or(DEFAULT_ARCHITECTURE);
    schema::one_of("cpu_architecture", normal_architecture(word), words)?;
    Ok(normal_architecture(word).to_owned())
}

/// An InfraEnv made for one cluster boots machines the cluster can take.
pub fn same_architecture(infra_env: &str, cluster: &str) -> Checked {
    let (infra_env, cluster) = (normal_architecture(infra_env), normal_architecture(cluster));
    if infra_env == cluster || cluster == "multi" {
        return Ok(());
    }
    Err(Invalid::rule(
        "cpu_architecture",
        format!("is {infra_env} but the cluster is made of {cluster} machines"),
        format!("use {cluster}, or a cluster with a multi-architecture release"),
    ))
}

/// The kind of ISO: as asked, else full on s390x (which cannot boot the minimal one), else the hub's default.
pub fn image_type(word: Option<&str>, architecture: &str, default: &str) -> Checked<String> {
    let Some(word) = word.filter(|word| !word.is_empty()) else {
        return Ok(if architecture == "s390x" {
            "full-iso"
        } else {
            default
        }
        .to_owned());
    };
    schema::one_of("image_type", word, &IMAGE_TYPES)?;
    Ok(word.to_owned())
}

/// Full and minimal images are made here. A disconnected one holds a whole installer and its releases, and the machine
/// never speaks to a hub: better said now than by a download that is not there.
pub fn offered(image_type: ImageType) -> Checked {
    match image_type {
        ImageType::FullIso | ImageType::MinimalIso => Ok(()),
        ImageType::DisconnectedIso => Err(Invalid::rule(
            "image_type",
            "is disconnected-iso, an image for machines that install themselves without a hub; this hub \
             does not make it",
            "use full-iso or minimal-iso",
        )),
    }
}

/// The address of the node that leads a disconnected installation; an empty text clears it.
pub fn rendezvous_ip(text: &str, image_type: &str) -> Checked {
    if text.is_empty() {
        return Ok(());
    }
    if image_type != "disconnected-iso" {
        return Err(Invalid::rule(
            "rendezvous_ip",
            format!("has no meaning for {image_type}"),
            "leave it out",
        ));
    }
    address::ip("rendezvous_ip", text).map(|_| ())
}

pub fn network_discovery_delay(seconds: i64) -> Checked {
    schema::at_least("network_discovery_delay_seconds", seconds, 0)
}

/// The file asked for, and that an iPXE variant is asked only of the iPXE script.
pub fn download(file_name: Option<&str>, ipxe_script_type: Option<&str>) -> Checked {
    let file = schema::required("file_name", file_name)?;
    schema::one_of("file_name", file, &DOWNLOADS)?;
    let Some(kind) = ipxe_script_type else {
        return Ok(());
    };
    schema::one_of("ipxe_script_type", kind, &IPXE_SCRIPT_TYPES)?;
    if file == "ipxe-script" {
        return Ok(());
    }
    Err(Invalid::rule(
        "ipxe_script_type",
        format!("is given with {}", quoted(file)),
        "use it only with `file_name` ipxe-script",
    ))
}
