//! `muster cluster manifest`: Kubernetes objects that are created during the installation.

use super::Named;
use crate::exit::{Failure, Outcome};
use crate::input::{self, word_parser};
use crate::names::Names;
use crate::output::{self, Column, Format, Shown, col};
use crate::resolve;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use muster_contract::client::HubClient;
use muster_contract::v2::manifest::{
    CreateManifest, ManifestFolder, ManifestQuery, ManifestView, ManifestsQuery,
};
use std::path::PathBuf;

/// Manifests: Kubernetes objects that the installation creates
#[derive(Debug, Args)]
pub struct ManifestArgs {
    #[command(subcommand)]
    verb: ManifestVerb,
}

#[derive(Debug, Subcommand)]
enum ManifestVerb {
    Add(AddArgs),
    /// List manifests
    #[command(after_help = "\
Examples:
  muster cluster manifest list demo
  muster cluster manifest list demo --all    those made for the installation, too")]
    List {
        #[command(flatten)]
        cluster: Named,
        /// Also those that the hub made for the installation
        #[arg(long)]
        all: bool,
    },
    /// Print a manifest
    #[command(
        visible_alias = "show",
        after_help = "Examples:\n  muster cluster manifest get demo 50-ntp.yaml\n  \
                      muster cluster manifest get demo openshift/50-ntp.yaml --file ntp.yaml"
    )]
    Get {
        #[command(flatten)]
        cluster: Named,
        /// Its name, with the folder when that is not `manifests`
        #[arg(value_name = "[FOLDER/]NAME")]
        manifest: String,
        /// Write to this file instead of stdout
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Delete a manifest
    #[command(after_help = "Examples:\n  muster cluster manifest delete demo openshift/50-ntp.yaml")]
    Delete {
        #[command(flatten)]
        cluster: Named,
        /// Its name, with the folder when that is not `manifests`
        #[arg(value_name = "[FOLDER/]NAME")]
        manifest: String,
    },
}

/// Add a manifest; it replaces one of the same name in the same folder
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster manifest add demo 50-ntp.yaml
  muster cluster manifest add demo 99-kubelet.yaml --folder openshift
  make-manifest | muster cluster manifest add demo - --name 50-ntp.yaml")]
struct AddArgs {
    #[command(flatten)]
    cluster: Named,
    /// YAML or JSON (- for stdin)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the installer finds it
    #[arg(long, value_name = "FOLDER", default_value = "manifests", value_parser = word_parser!(ManifestFolder))]
    folder: ManifestFolder,
    /// Its name, when not that of the file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl Shown for ManifestView {
    const COLUMNS: &'static [Column] = &[col("FOLDER"), col("NAME"), col("SOURCE")];

    fn cells(&self, _: &Names) -> Vec<String> {
        vec![
            self.folder.to_string(),
            self.file_name.clone(),
            self.manifest_source.to_string(),
        ]
    }

    fn handle(&self) -> String {
        format!("{}/{}", self.folder, self.file_name)
    }
}

pub async fn run(hub: &HubClient, args: ManifestArgs, format: Format) -> Outcome {
    match args.verb {
        ManifestVerb::Add(args) => add(hub, args, format).await,
        ManifestVerb::List { cluster, all } => {
            let cluster = resolve::cluster(hub, &cluster.cluster).await?;
            let query = ManifestsQuery {
                include_system_generated: all.then_some(true),
            };
            output::list(format, &hub.manifests(cluster.id, &query).await?, &Names::none())
        }
        ManifestVerb::Get {
            cluster,
            manifest,
            file,
        } => {
            let cluster = resolve::cluster(hub, &cluster.cluster).await?;
            let content = hub.manifest_file(cluster.id, &query(&manifest)).await?;
            output::save(file.as_deref(), &content)
        }
        ManifestVerb::Delete { cluster, manifest } => {
            let cluster = resolve::cluster(hub, &cluster.cluster).await?;
            let query = query(&manifest);
            hub.delete_manifest(cluster.id, &query).await?;
            let handle = format!("{}/{}", query.folder.unwrap_or_default(), query.file_name);
            let sentence = format!("cluster/{}: manifest {handle} deleted", cluster.name);
            output::done(format, &handle, &cluster, &sentence)
        }
    }
}

async fn add(hub: &HubClient, args: AddArgs, format: Format) -> Outcome {
    let name = args.name.or_else(|| {
        let name = args.file.file_name()?.to_str()?;
        (name != "-").then(|| name.to_owned())
    });
    let Some(file_name) = name else {
        return Err(Failure::usage("the manifest has no name").next("give it one with --name"));
    };
    let body = CreateManifest {
        folder: Some(args.folder),
        file_name,
        content: STANDARD.encode(input::bytes(&args.file)?),
    };
    let cluster = resolve::cluster(hub, &args.cluster.cluster).await?;
    let made = hub.create_manifest(cluster.id, &body).await?;
    let sentence = format!("cluster/{}: manifest {} added", cluster.name, made.handle());
    output::done(format, &made.handle(), &made, &sentence)
}

/// `openshift/50-ntp.yaml`; without a folder it is the first one.
fn query(text: &str) -> ManifestQuery {
    let (folder, name) = match text.split_once('/') {
        Some((folder, name)) => match folder.parse::<ManifestFolder>() {
            Ok(folder) => (folder, name),
            Err(_) => (ManifestFolder::default(), text),
        },
        None => (ManifestFolder::default(), text),
    };
    ManifestQuery {
        folder: Some(folder),
        file_name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_named_as_it_is_listed() {
        let named = |text| (query(text).folder.unwrap().word(), query(text).file_name);
        assert_eq!(named("a.yaml"), ("manifests", "a.yaml".into()));
        assert_eq!(named("openshift/a.yaml"), ("openshift", "a.yaml".into()));
        assert_eq!(named("sub/a.yaml"), ("manifests", "sub/a.yaml".into()));
    }
}
