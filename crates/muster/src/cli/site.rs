//! The flags of `muster serve` with which a site decides something for all its hosts and clusters.

use clap::ArgAction;
use clap::builder::BoolishValueParser;
use muster_hub::Site;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Site")]
pub struct SiteArgs {
    /// The agent that discovered hosts run, as a container image
    #[arg(long, value_name = "IMAGE")]
    agent_image: Option<String>,
    /// Whether the hub replaces agents that run another image
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    upgrade_agents: bool,
    /// The installer that writes disks, as a container image
    #[arg(long, value_name = "IMAGE")]
    installer_image: Option<String>,
    /// The controller inside new clusters, as a container image
    #[arg(long, value_name = "IMAGE")]
    controller_image: Option<String>,
    /// What gathers logs of a failed installation: one image, or a JSON map with one per operator
    #[arg(long, value_name = "IMAGE|JSON")]
    must_gather_images: Option<String>,
    /// Validations of hosts to switch off, by id, separated by commas
    #[arg(long, value_name = "IDS")]
    disabled_host_checks: Option<String>,
    /// Validations of clusters to switch off, by id, separated by commas
    #[arg(long, value_name = "IDS")]
    disabled_cluster_checks: Option<String>,
    /// Steps that the hub never asks agents for, by type, separated by commas
    #[arg(long, value_name = "TYPES")]
    disabled_steps: Option<String>,
    /// Time servers of InfraEnvs and clusters that name none, separated by commas
    #[arg(long, value_name = "SERVERS")]
    default_ntp: Option<String>,
    /// Whether single nodes get a name server that answers the cluster's own names; if not, the hub checks DNS records
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    single_node_dns: bool,
    /// New clusters wait for slow or silent hosts, for a day at most, instead of failing
    #[arg(long)]
    soft_timeouts: bool,
    /// PEM file with the authority behind the hub's certificate; hosts trust it
    #[arg(long, value_name = "FILE")]
    service_ca: Option<PathBuf>,
    /// Hosts accept any certificate of the hub
    #[arg(long)]
    skip_cert_verification: bool,
    /// How many days the hub keeps the history of hosts and clusters
    #[arg(long, value_name = "DAYS", default_value = "90")]
    event_days: u32,
}

impl SiteArgs {
    pub fn site(self) -> Site {
        let Self {
            agent_image,
            upgrade_agents,
            installer_image,
            controller_image,
            must_gather_images,
            disabled_host_checks,
            disabled_cluster_checks,
            disabled_steps,
            default_ntp,
            single_node_dns,
            soft_timeouts,
            service_ca,
            skip_cert_verification,
            event_days,
        } = self;
        Site {
            agent_image,
            installer_image,
            controller_image,
            must_gather_images,
            upgrade_agents,
            disabled_host_checks,
            disabled_cluster_checks,
            disabled_steps,
            default_ntp,
            single_node_dns,
            soft_timeouts,
            // An empty variable is as good as none.
            service_ca: service_ca.filter(|path| !path.as_os_str().is_empty()),
            skip_cert_verification,
            event_days,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        site: SiteArgs,
    }

    fn site(args: &[&str]) -> Site {
        let args = std::iter::once("muster").chain(args.iter().copied());
        Command::try_parse_from(args).expect("valid flags").site.site()
    }

    #[test]
    fn without_flags_a_site_is_the_usual_one() {
        assert_eq!(format!("{:?}", site(&[])), format!("{:?}", Site::default()));
    }

    #[test]
    fn switches_that_are_on_can_be_turned_off_in_the_words_of_people() {
        let site = site(&[
            "--upgrade-agents",
            "no",
            "--single-node-dns=false",
            "--soft-timeouts",
            "--service-ca",
            "ca.pem",
        ]);
        assert!(!site.upgrade_agents && !site.single_node_dns && site.soft_timeouts);
        assert_eq!(site.service_ca, Some(PathBuf::from("ca.pem")));
    }
}
