//! `muster operator`: the hub's hosts and clusters as Kubernetes objects.

use super::Global;
use super::serve::{LogFormat, start_log, stop_signal};
use crate::exit::{Failure, Outcome};
use crate::output;
use clap::ArgAction;
use clap::builder::BoolishValueParser;
use muster_contract::Trust;
use muster_operator::controller::Chosen;
use muster_operator::controller::preprovisioning_image::ironic::architecture;
use muster_operator::crd::{self, ClusterRefs};
use muster_operator::{Connection, Election, Key, MetalBoot, Options};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::TcpListener;

/// Run the Kubernetes operator, or print what a cluster needs for it
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  muster operator crds | kubectl apply --server-side -f -
  muster operator run --hub http://127.0.0.1:8090"
)]
pub struct OperatorArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Run(Box<RunArgs>),
    Crds(CrdsArgs),
}

/// Run the operator
///
/// Keeps InfraEnvs, Agents and clusters the same in Kubernetes and in the hub, and turns Agents into machines of
/// Cluster API. Of several operators one acts; another takes over when it is gone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  muster operator run
  muster operator run --kubeconfig ~/.kube/config --hub http://hub.example.com:8090
  muster operator run --hub https://hub.example.com:8443 --ca ca.crt
  muster operator run --controllers infra-env --no-leader-election
  muster operator run --metrics 0.0.0.0:8080
  muster operator run --converged --ironic-agent-image arm64=registry.example.com/ipa:arm64

When MUSTER_IRONIC_AGENT_IMAGE and MUSTER_PAUSE_PROVISIONED are not set, the operator reads
the names that the reference service has for them: IRONIC_AGENT_IMAGE, with
IRONIC_AGENT_IMAGE_ARM for arm64, and PAUSE_PROVISIONED_BMHS.")]
pub struct RunArgs {
    #[command(flatten)]
    kube: KubeArgs,
    /// Format of the log
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// What to log, such as `info` or `muster_operator=debug`
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
}

/// How the operator finds its cluster and what it does there; the same for `serve --kube`.
#[derive(Debug, Clone, clap::Args)]
pub struct KubeArgs {
    /// How to reach the cluster; $KUBECONFIG, ~/.kube/config or the pod's own account when absent
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Which controllers run, by name; with a minus before each name, all others run
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, default_value = "")]
    controllers: Chosen,
    /// Only objects of this namespace (may be repeated); all namespaces when absent
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,
    /// Machines of Cluster API take Agents of this namespace only (may be repeated; with --namespace, one of those);
    /// of all namespaces that the operator watches when absent
    #[arg(long, value_name = "NAME")]
    agent_namespace: Vec<String>,
    /// Act without leader election
    #[arg(long)]
    no_leader_election: bool,
    /// Namespace of the Lease of leader election; the namespace of the kubeconfig or pod when absent
    #[arg(long, value_name = "NAME")]
    lease_namespace: Option<String>,
    /// Serve the operator's metrics and health here
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// The container image with `muster-agent` that fetches nodes of installed clusters back from the inside; when
    /// absent, somebody has to boot them
    #[arg(long, value_name = "IMAGE")]
    reclaim_image: Option<String>,
    /// Let Ironic's agent start discovery on BareMetalHosts (the deploy step `start_assisted_install`); when absent,
    /// they boot the discovery image as a live image
    #[arg(long)]
    converged: bool,
    /// The Secret that says where Ironic is (`IRONIC_BASE_URL`, and if there is one `IRONIC_INSPECTOR_BASE_URL`) and
    /// which image its agent has (`IRONIC_AGENT_IMAGE`); for --converged
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        default_value = "openshift-machine-api/metal3-image-customization-config",
        value_parser = secret_key
    )]
    ironic_config: Key,
    /// The container image of Ironic's agent where neither an InfraEnv nor that Secret names one (may be repeated); for
    /// machines of architecture ARCH, x86_64 when absent; for --converged
    #[arg(long, value_name = "[ARCH=]IMAGE", value_delimiter = ',', value_parser = agent_image)]
    ironic_agent_image: Vec<(String, String)>,
    /// The one for arm64: deployments of the reference service have a variable of its own for it
    #[arg(long, value_name = "IMAGE", hide = true)]
    ironic_agent_image_arm: Option<String>,
    /// Whether the operator pauses BareMetalHosts of installed hosts once they are detached, so that a restore from a
    /// backup does not touch their machines
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pause_provisioned: bool,
}

/// The architecture under its usual name, and the image.
fn agent_image(text: &str) -> Result<(String, String), String> {
    let (word, image) = text.split_once('=').unwrap_or(("", text));
    match image.contains('=') || image.chars().any(char::is_whitespace) {
        true => Err("it has the form [ARCH=]IMAGE".into()),
        false => Ok((architecture(word.trim()).to_owned(), image.to_owned())),
    }
}

fn secret_key(text: &str) -> Result<Key, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Key::new(namespace, name))
        }
        _ => Err("it has the form NAMESPACE/NAME".into()),
    }
}

/// Print the definitions of the operator's kinds
///
/// As YAML, for `kubectl apply --server-side`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  muster operator crds | kubectl apply --server-side -f -
  muster operator crds --hive    for clusters without Hive")]
pub struct CrdsArgs {
    /// ClusterDeployment and ClusterImageSet, too: for clusters in which Hive does not run
    #[arg(long)]
    hive: bool,
    /// Let the cluster of an InfraEnv be changed after its creation
    #[arg(long)]
    allow_cluster_ref_changes: bool,
}

pub fn run(global: &Global, args: OperatorArgs) -> Outcome {
    match args.verb {
        Verb::Crds(args) => print_crds(&args),
        Verb::Run(args) => super::on_all_cores(run_operator(global, *args)),
    }
}

fn print_crds(args: &CrdsArgs) -> Outcome {
    let refs = if args.allow_cluster_ref_changes {
        ClusterRefs::Free
    } else {
        ClusterRefs::Fixed
    };
    let mut definitions = crd::own(refs);
    if args.hive {
        definitions.extend(crd::hive());
    }
    output::print(&crd::yaml(&definitions))
}

async fn run_operator(global: &Global, args: RunArgs) -> Outcome {
    start_log(&args.log, args.log_format)?;
    let trust = global.trust()?;
    let stop = stop_signal()?;
    let connection = args.kube.connect().await?;
    args.kube.run(connection, &global.hub, trust, stop).await
}

impl KubeArgs {
    /// By architecture. An empty variable is as good as none.
    fn ironic_images(&self) -> BTreeMap<String, String> {
        let arm = self.ironic_agent_image_arm.iter();
        let arm = arm.map(|image| ("arm64".to_owned(), image.clone()));
        // The later of two counts.
        arm.chain(self.ironic_agent_image.clone())
            .filter(|(_, image)| !image.is_empty())
            .collect()
    }

    /// Agents of a namespace that is not watched would never be taken, and nobody would know why.
    fn sees_its_agents(&self) -> Outcome {
        let seen = |name: &&String| self.namespace.is_empty() || self.namespace.contains(name);
        match self.agent_namespace.iter().find(|name| !seen(name)) {
            None => Ok(()),
            Some(name) => Err(
                Failure::other(format!("the operator does not see --agent-namespace {name}"))
                    .next(format!("add --namespace {name}, or leave out --namespace")),
            ),
        }
    }

    /// Finds out how the cluster is reached, and does not reach for it yet.
    pub async fn connect(&self) -> Outcome<Connection> {
        Connection::open(self.kubeconfig.as_deref()).await.map_err(failed)
    }

    /// Runs an operator for a hub until `stop`. It waits for a cluster that does not answer.
    pub async fn run(
        self,
        connection: Connection,
        hub: &str,
        trust: Trust,
        stop: impl Future<Output = ()>,
    ) -> Outcome {
        self.sees_its_agents()?;
        let ironic_images = self.ironic_images();
        let election = if self.no_leader_election {
            Election::Off
        } else {
            Election::On {
                namespace: self.lease_namespace,
                terms: Default::default(),
            }
        };
        let options = Options {
            hub_url: hub.to_owned(),
            hub_trust: trust,
            controllers: self.controllers,
            namespaces: self.namespace,
            agent_namespaces: self.agent_namespace,
            election,
            reclaim_image: self.reclaim_image,
            metal_boot: if self.converged {
                MetalBoot::Converged
            } else {
                MetalBoot::LiveImage
            },
            ironic_images,
            pause_provisioned: self.pause_provisioned,
            ironic: self.ironic_config,
            ..Options::default()
        };
        let metrics = match self.metrics {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        muster_operator::run(options, connection, metrics, stop)
            .await
            .map_err(failed)
    }
}

async fn listen(address: SocketAddr) -> Outcome<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::other(format!("cannot serve metrics on {address}: {error}"))
            .next("give --metrics an address of this machine and a port that nothing else uses")
    })
}

fn failed(error: muster_operator::Error) -> Failure {
    Failure::other(muster_operator::error::chain(&error))
        .next("check --kubeconfig, and that the account may do what deploy/manifests/clusterrole.yaml says")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use muster_operator::controller::{agent_machine, node_provider_id};

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        kube: KubeArgs,
    }

    #[test]
    fn controllers_can_be_left_out_on_the_command_line() {
        let left_out = [agent_machine::CONTROLLER, node_provider_id::CONTROLLER];
        let mut others = Chosen::default();
        others.0.retain(|one| !left_out.contains(one));
        for words in [
            &["muster", "--controllers=-agent-machine,-node-provider-id"][..],
            &["muster", "--controllers", "-agent-machine,-node-provider-id"],
        ] {
            assert_eq!(Cli::try_parse_from(words).unwrap().kube.controllers, others);
        }
        let all = Cli::try_parse_from(["muster"]).unwrap();
        assert_eq!(all.kube.controllers, Chosen::default());
        let wrong = Cli::try_parse_from(["muster", "--controllers=-agents"]).unwrap_err();
        assert!(
            wrong.to_string().contains("agent-machine"),
            "it names those there are: {wrong}"
        );
    }

    fn images(words: &[&str]) -> Vec<(String, String)> {
        let words = std::iter::once("muster").chain(words.iter().copied());
        let parsed = Cli::try_parse_from(words).unwrap().kube.ironic_images();
        parsed.into_iter().collect()
    }

    #[test]
    fn images_of_ironics_agent_are_told_apart_by_architecture() {
        let pair = |arch: &str, image: &str| (arch.to_owned(), image.to_owned());
        assert_eq!(images(&[]), []);
        assert_eq!(images(&["--ironic-agent-image="]), [], "an empty variable");
        assert_eq!(
            images(&["--ironic-agent-image", "registry:5000/ipa@sha256:1"]),
            [pair("x86_64", "registry:5000/ipa@sha256:1")]
        );
        let both = [pair("arm64", "ipa:arm"), pair("x86_64", "ipa:1")];
        for words in [
            &[
                "--ironic-agent-image=amd64=ipa:1",
                "--ironic-agent-image=aarch64=ipa:arm",
            ][..],
            &["--ironic-agent-image=ipa:1,arm64=ipa:arm"],
            &["--ironic-agent-image=ipa:1", "--ironic-agent-image-arm=ipa:arm"],
            &[
                "--ironic-agent-image=ipa:1,arm64=ipa:arm",
                "--ironic-agent-image-arm=ipa:other",
            ],
        ] {
            assert_eq!(images(words), both, "{words:?}");
        }
        let wrong = Cli::try_parse_from(["muster", "--ironic-agent-image", "a=b=c"]).unwrap_err();
        assert!(wrong.to_string().contains("[ARCH=]IMAGE"), "{wrong}");
    }

    #[test]
    fn machines_are_paused_unless_somebody_says_no() {
        let pauses = |words: &[&str]| Cli::try_parse_from(words).unwrap().kube.pause_provisioned;
        assert!(pauses(&["muster"]));
        assert!(!pauses(&["muster", "--pause-provisioned", "no"]));
    }

    #[test]
    fn agents_are_taken_only_from_namespaces_that_are_seen() {
        let cases: [(&[&str], bool); 4] = [
            (&["muster"], true),
            (
                &["muster", "--agent-namespace", "pool", "--agent-namespace", "lab"],
                true,
            ),
            (
                &["muster", "--namespace", "pool", "--agent-namespace", "pool"],
                true,
            ),
            (
                &["muster", "--namespace", "blue", "--agent-namespace", "pool"],
                false,
            ),
        ];
        for (words, goes) in cases {
            let kube = Cli::try_parse_from(words).unwrap().kube;
            assert_eq!(kube.sees_its_agents().is_ok(), goes, "{words:?}");
        }
    }
}
