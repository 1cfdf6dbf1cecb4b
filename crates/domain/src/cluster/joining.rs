//! Whether a cluster can take a host at all, whatever the host's own state.

use super::Cluster;
use crate::host::Host;
use crate::infra_env::InfraEnv;
use crate::refusal::{Class, Refused};

/// Lends a host of that InfraEnv to the cluster, or says why not.
pub fn takes(cluster: &Cluster, host: &Host, infra_env: Option<&InfraEnv>) -> Result<(), Refused> {
    if let Some(pool) = infra_env
        && !fits(&cluster.cpu_architecture, &pool.cpu_architecture)
    {
        return Err(Refused::new(
            Class::Invalid,
            "architecture-differs",
            format!(
                "Cluster {} needs {} hosts; {} has {}.",
                cluster.name, cluster.cpu_architecture, pool.name, pool.cpu_architecture
            ),
            "Choose a host of the right architecture.",
        ));
    }
    // What the old tenant put on a host that moves does not come along.
    if host.is_free() {
        cluster.fits_settings_of(host)?;
    }
    if !cluster.accepts_hosts() {
        let status = cluster.status();
        return Err(Refused::conflict(
            "cluster-takes-no-hosts",
            format!("Cluster {} is {status} and takes no hosts now.", cluster.name),
            "Wait for its installation to end, or reset it.",
        ));
    }
    Ok(())
}

/// The same for a machine that registers for the first time, with an image that belongs to a cluster; `None` when that
/// cluster is gone. Its agent must keep asking: the cluster may be restored, reset, or the host be given another image.
pub fn takes_new(cluster: Option<&Cluster>, infra_env: &InfraEnv) -> Result<(), Refused> {
    let Some(cluster) = cluster else {
        return Err(Refused::new(
            Class::Unavailable,
            "cluster-is-gone",
            format!(
                "The cluster of InfraEnv {} does not exist any more.",
                infra_env.name
            ),
            "Give the InfraEnv another cluster, or boot the host from an image of another InfraEnv.",
        ));
    };
    if !cluster.accepts_hosts() {
        return Err(Refused::new(
            Class::Unavailable,
            "cluster-takes-no-hosts",
            format!("Cluster {} takes no more hosts now.", cluster.name),
            "Wait for its installation to end, or reset it.",
        ));
    }
    Ok(())
}

/// Whether hosts of this architecture can join a cluster of that one. Clusters without an architecture, and those of
/// several, take all; ARM has two names.
pub fn fits(cluster: &str, host: &str) -> bool {
    let plain = |name: &str| if name == "aarch64" { "arm64" } else { name }.to_owned();
    matches!(cluster, "" | "multi") || plain(cluster) == plain(host)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn architectures_fit_by_either_name_and_multi_fits_all() {
        for (cluster, host, wanted) in [
            ("x86_64", "x86_64", true),
            ("x86_64", "arm64", false),
            ("aarch64", "arm64", true),
            ("multi", "s390x", true),
            ("", "ppc64le", true),
        ] {
            assert_eq!(fits(cluster, host), wanted, "{host} in {cluster}");
        }
    }
}
