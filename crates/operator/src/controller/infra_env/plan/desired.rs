//! What the hub is to have, and what that changes about what it has.

use super::{Cluster, DesiredIronic, InvalidSpec, Known, Snapshot, network};
use crate::controller::infra_env::secret_proxy;
use crate::controller::preprovisioning_image::ironic;
use crate::crd::infra_env::InfraEnvSpec;
use crate::crd::keys::data;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::ResourceExt;
use muster_contract::Secret;
use muster_contract::v2::infra_env::{
    CpuArchitecture, CreateInfraEnv, ImageType, InfraEnvView, KernelArgument, KernelArgumentOperation, Proxy,
    StaticNetworkConfig, UpdateInfraEnv,
};
use muster_domain::input::proxy;
use muster_vocabulary::UnknownWord;
use serde_json::{Value, json};
use std::str::FromStr;

/// Where hosts read the registries to use instead of others.
const REGISTRIES_CONF: &str = "/etc/containers/registries.conf";

pub fn desired(snapshot: &Snapshot) -> Result<CreateInfraEnv, InvalidSpec> {
    let spec = &snapshot.infra_env.spec;
    let cluster_id = cluster(snapshot, spec)?;
    Ok(CreateInfraEnv {
        name: snapshot.infra_env.name_any(),
        pull_secret: pull_secret(snapshot)?,
        cluster_id,
        openshift_version: snapshot.version().map(str::to_owned),
        cpu_architecture: Some(architecture(spec)?),
        os_stream: None,
        image_type: Some(image_type(spec)?),
        ssh_authorized_key: Some(spec.ssh_authorized_key.clone()),
        proxy: Some(proxy(spec)),
        additional_ntp_sources: Some(time_sources(snapshot)),
        ntp_sources: Some(spec.ntp_sources.join(",")),
        static_network_config: Some(networks(snapshot)?),
        kernel_arguments: Some(kernel_arguments(spec)?),
        ignition_config_override: Some(with_ironic(snapshot, ignition(snapshot)?)?),
        additional_trust_bundle: Some(trust_bundle(snapshot)),
        network_discovery_delay_seconds: spec.network_discovery_delay_seconds,
        rendezvous_ip: None,
    })
}

fn cluster(snapshot: &Snapshot, spec: &InfraEnvSpec) -> Result<Option<uuid::Uuid>, InvalidSpec> {
    let name = spec
        .cluster_ref
        .as_ref()
        .map(|reference| crate::key::Key::from(reference).to_string());
    let name = name.unwrap_or_default();
    match &snapshot.cluster {
        Cluster::NotWanted => Ok(None),
        Cluster::Absent => Err(InvalidSpec::NoCluster(format!(
            "There is no ClusterDeployment {name} yet."
        ))),
        Cluster::NotInHub => Err(InvalidSpec::NoCluster(format!(
            "The hub does not know ClusterDeployment {name} yet; it needs a valid AgentClusterInstall."
        ))),
        Cluster::Found { id, .. } => match snapshot.held_by {
            None => Ok(Some(*id)),
            Some(other) => Err(InvalidSpec::OtherCluster(format!(
                "In the hub this InfraEnv belongs to cluster {other}, which is not the cluster of \
                 ClusterDeployment {name}. The operator moves it when that cluster is deleted."
            ))),
        },
    }
}

/// Those that name none have what the hub gives to all.
fn time_sources(snapshot: &Snapshot) -> String {
    let spec = &snapshot.infra_env.spec;
    if spec.additional_ntp_sources.is_empty() && spec.ntp_sources.is_empty() {
        return snapshot.default_ntp.clone();
    }
    spec.additional_ntp_sources.join(",")
}

fn pull_secret(snapshot: &Snapshot) -> Result<Secret, InvalidSpec> {
    let name = &snapshot.infra_env.spec.pull_secret_ref.name;
    let Some(secret) = &snapshot.pull_secret else {
        return Err(InvalidSpec::Missing(format!(
            "There is no Secret {name:?} with the pull secret."
        )));
    };
    match secret.value(data::PULL_SECRET) {
        Some(value) => Ok(value.into()),
        None => Err(InvalidSpec::Missing(format!(
            "Secret {name:?} has no key {:?}.",
            data::PULL_SECRET
        ))),
    }
}

fn architecture(spec: &InfraEnvSpec) -> Result<CpuArchitecture, InvalidSpec> {
    match spec.cpu_architecture.as_str() {
        "" => Ok(CpuArchitecture::default()),
        word => parse("cpuArchitecture", word),
    }
}

fn image_type(spec: &InfraEnvSpec) -> Result<ImageType, InvalidSpec> {
    match (spec.image_type.as_str(), spec.cpu_architecture.as_str()) {
        // There is no minimal image for these machines.
        ("", "s390x") => Ok(ImageType::FullIso),
        ("", _) => Ok(ImageType::MinimalIso),
        (word, _) => parse("imageType", word),
    }
}

fn kernel_arguments(spec: &InfraEnvSpec) -> Result<Vec<KernelArgument>, InvalidSpec> {
    let argument = |argument: &crate::crd::infra_env::KernelArgument| {
        let operation = match argument.operation.as_str() {
            "" => KernelArgumentOperation::default(),
            word => parse("kernelArguments", word)?,
        };
        Ok(KernelArgument {
            operation: Some(operation),
            value: Some(argument.value.clone()),
        })
    };
    spec.kernel_arguments.iter().map(argument).collect()
}

fn parse<T: FromStr<Err = UnknownWord>>(field: &str, word: &str) -> Result<T, InvalidSpec> {
    word.parse()
        .map_err(|error| InvalidSpec::Input(format!("{field} {error}.")))
}

/// All three, also when empty: what was taken out of the object is taken out of the hub.
fn proxy(spec: &InfraEnvSpec) -> Proxy {
    let wanted = spec.proxy.clone().unwrap_or_default();
    Proxy {
        http_proxy: Some(wanted.http_proxy),
        https_proxy: Some(wanted.https_proxy),
        no_proxy: Some(wanted.no_proxy),
    }
}

fn networks(snapshot: &Snapshot) -> Result<Vec<StaticNetworkConfig>, InvalidSpec> {
    let mut networks = Vec::new();
    for config in &snapshot.networks {
        if network::chooses(&snapshot.infra_env, config).map_err(InvalidSpec::Input)? {
            networks.push(network::wire(config));
        }
    }
    Ok(networks)
}

/// Certificates of the object, and of the mirror registries it uses.
fn trust_bundle(snapshot: &Snapshot) -> String {
    let own = snapshot.infra_env.spec.additional_trust_bundle.trim();
    let mirrors = snapshot
        .mirrors
        .as_ref()
        .and_then(|map| map.value(data::CA_BUNDLE))
        .unwrap_or_default();
    [own, mirrors.trim()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn with_ironic(snapshot: &Snapshot, ignition: String) -> Result<String, InvalidSpec> {
    match &snapshot.ironic {
        DesiredIronic::NotWanted => Ok(ignition),
        DesiredIronic::Unknown => {
            let before = snapshot
                .row
                .as_ref()
                .map(|row| &row.view.ignition_config_override);
            let kept = before.and_then(|before| ironic::carry_over(before, &ignition));
            Ok(kept.unwrap_or(ignition))
        }
        DesiredIronic::Known(agent) => ironic::add_to(&ignition, agent, &snapshot.infra_env)
            .map_err(|why| InvalidSpec::Input(format!("ignitionConfigOverride: {why}"))),
    }
}

/// The override of the object; the mirror registries are one more file in it.
fn ignition(snapshot: &Snapshot) -> Result<String, InvalidSpec> {
    let own = snapshot.infra_env.spec.ignition_config_override.clone();
    let Some(reference) = &snapshot.infra_env.spec.mirror_registry_ref else {
        return Ok(own);
    };
    let Some(map) = &snapshot.mirrors else {
        return Err(InvalidSpec::Missing(format!(
            "There is no ConfigMap {}/{}.",
            reference.namespace, reference.name
        )));
    };
    let Some(registries) = map.value(data::REGISTRIES_CONF) else {
        let text = format!(
            "ConfigMap {}/{} has no {}.",
            reference.namespace,
            reference.name,
            data::REGISTRIES_CONF
        );
        return Err(InvalidSpec::Missing(text));
    };
    let mut config = match own.as_str() {
        "" => json!({ "ignition": { "version": "3.1.0" } }),
        text => serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            InvalidSpec::Input(format!(
                "ignitionConfigOverride is not JSON (line {line}, column {column})."
            ))
        })?,
    };
    add_file(&mut config, REGISTRIES_CONF, registries)
        .ok_or_else(|| InvalidSpec::Input("ignitionConfigOverride: storage.files is not a list".into()))?;
    Ok(config.to_string())
}

fn add_file(config: &mut Value, path: &str, content: &str) -> Option<()> {
    let storage = config
        .as_object_mut()?
        .entry("storage")
        .or_insert_with(|| json!({}));
    let files = storage
        .as_object_mut()?
        .entry("files")
        .or_insert_with(|| json!([]));
    let source = format!(
        "data:text/plain;charset=utf-8;base64,{}",
        BASE64_STANDARD.encode(content)
    );
    files.as_array_mut()?.push(json!({
        "path": path, "mode": 0o644, "overwrite": true, "contents": { "source": source },
    }));
    Some(())
}

/// What is to be changed about the hub's InfraEnv; nothing when it is as wanted.
pub fn difference(now: &InfraEnvView, desired: &CreateInfraEnv, known: Known) -> Option<UpdateInfraEnv> {
    let text = |now: &str, desired: &Option<String>| desired.clone().filter(|desired| desired != now);
    let some = |desired: &Option<String>| desired.clone().filter(|desired| !desired.is_empty());
    let image_type = desired.image_type.filter(|desired| desired.word() != now.r#type);
    let delay = desired.network_discovery_delay_seconds.unwrap_or_default();
    let update = UpdateInfraEnv {
        pull_secret: (!known.pull_secret).then(|| desired.pull_secret.clone()),
        // The hub shows the image it chose for the version, which may have another number.
        openshift_version: desired.openshift_version.clone().filter(|_| !known.version),
        // Empty means unchanged here; see `drops_key`.
        ssh_authorized_key: text(&now.ssh_authorized_key, &some(&desired.ssh_authorized_key)),
        os_stream: None,
        image_type,
        proxy: desired.proxy.clone().filter(|desired| {
            !(same_proxy(now.proxy.as_ref(), desired) && (known.proxy || !has_password(desired)))
        }),
        additional_ntp_sources: text(&now.additional_ntp_sources, &desired.additional_ntp_sources),
        ntp_sources: text(&now.ntp_sources, &desired.ntp_sources),
        static_network_config: desired
            .static_network_config
            .clone()
            .filter(|desired| !same_networks(&now.static_network_config, desired)),
        kernel_arguments: desired
            .kernel_arguments
            .clone()
            .filter(|desired| !same_arguments(now.kernel_arguments.as_deref(), desired)),
        ignition_config_override: text(&now.ignition_config_override, &desired.ignition_config_override),
        additional_trust_bundle: text(
            now.additional_trust_bundle.trim(),
            &desired.additional_trust_bundle,
        ),
        network_discovery_delay_seconds: (now.network_discovery_delay_seconds.unwrap_or_default() != delay)
            .then_some(delay),
        rendezvous_ip: None,
    };
    (update != UpdateInfraEnv::default()).then_some(update)
}

/// The cluster that hosts are to belong to, when the ClusterDeployment got another one.
pub fn moves(now: &InfraEnvView, desired: &CreateInfraEnv) -> Option<uuid::Uuid> {
    let belongs_elsewhere = |wanted: &uuid::Uuid| now.cluster_id.is_some_and(|now| now != *wanted);
    desired.cluster_id.filter(belongs_elsewhere)
}

/// The key that was in the object is not there any more.
pub fn drops_key(now: &InfraEnvView, desired: &CreateInfraEnv) -> bool {
    !now.ssh_authorized_key.is_empty() && desired.ssh_authorized_key.as_deref().is_none_or(str::is_empty)
}

fn same_proxy(now: Option<&Proxy>, desired: &Proxy) -> bool {
    let words = |proxy: &Proxy| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        [
            text(&proxy.http_proxy),
            text(&proxy.https_proxy),
            text(&proxy.no_proxy),
        ]
    };
    let shown = |[http, https, no]: [String; 3]| [proxy::shown(&http), proxy::shown(&https), no];
    // The hub shows all but passwords.
    shown(words(&now.cloned().unwrap_or_default())) == shown(words(desired))
}

fn has_password(proxy: &Proxy) -> bool {
    let text = |url: &Option<String>| url.clone().unwrap_or_default();
    secret_proxy(&text(&proxy.http_proxy), &text(&proxy.https_proxy)).is_some()
}

/// The hub keeps them sorted and with MACs in lower case.
fn same_networks(now: &str, desired: &[StaticNetworkConfig]) -> bool {
    let now: Vec<StaticNetworkConfig> = match now {
        "" => Vec::new(),
        text => serde_json::from_str(text).unwrap_or_default(),
    };
    sorted(&now) == sorted(desired)
}

fn sorted(networks: &[StaticNetworkConfig]) -> Vec<(String, Vec<(String, String)>)> {
    let plain = |network: &StaticNetworkConfig| {
        let interfaces = network.mac_interface_map.iter().flatten();
        let mut interfaces: Vec<_> = interfaces
            .map(|entry| {
                let name = entry.logical_nic_name.clone().unwrap_or_default();
                (entry.mac_address.to_lowercase(), name)
            })
            .collect();
        interfaces.sort();
        (network.network_yaml.clone().unwrap_or_default(), interfaces)
    };
    let mut all: Vec<_> = networks.iter().map(plain).collect();
    all.sort();
    all
}

fn same_arguments(now: Option<&str>, desired: &[KernelArgument]) -> bool {
    let now: Vec<KernelArgument> = match now {
        None | Some("") => Vec::new(),
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
    };
    now == desired
}
