//! Manifests from ConfigMaps, and changes to the install config: what people add to an installation.

use super::{InvalidSpec, Snapshot, Step};
use crate::controller::cluster_deployment::snapshot::Row;
use crate::crd::AgentClusterInstall;
use crate::crd::agent_cluster_install::AgentClusterInstallSpec;
use crate::crd::keys::{annotation, data};
use crate::runtime::secret::Found;
use kube::ResourceExt;
use muster_contract::v2::manifest::ManifestFolder;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Names of the ConfigMaps; the list wins over the old field for a single one.
pub fn config_maps(spec: &AgentClusterInstallSpec) -> Vec<String> {
    if !spec.manifests_config_map_refs.is_empty() {
        return spec
            .manifests_config_map_refs
            .iter()
            .map(|reference| reference.name.clone())
            .collect();
    }
    let one = spec
        .manifests_config_map_ref
        .iter()
        .map(|reference| reference.name.clone());
    one.filter(|name| !name.is_empty()).collect()
}

/// Shows whether anything in the ConfigMaps changed.
pub fn fingerprint(config_maps: &BTreeMap<String, Found>) -> String {
    let all: BTreeMap<_, _> = config_maps
        .iter()
        .map(|(name, found)| (name, &found.values))
        .collect();
    json!(all).to_string()
}

/// Content by file name.
pub fn wanted<'a>(
    snapshot: &'a Snapshot,
    install: &AgentClusterInstall,
) -> Result<BTreeMap<&'a str, &'a str>, InvalidSpec> {
    let mut files = BTreeMap::new();
    for name in config_maps(&install.spec) {
        let Some(found) = snapshot.config_maps.get(&name) else {
            return Err(InvalidSpec::Missing(format!(
                "There is no ConfigMap {name:?} with manifests."
            )));
        };
        for (file, content) in &found.values {
            if files.insert(file.as_str(), content.as_str()).is_some() {
                return Err(InvalidSpec::Content(format!(
                    "The manifest {file:?} is in two ConfigMaps; give each file one name."
                )));
            }
        }
    }
    Ok(files)
}

/// Where people find a file that the hub does not take.
pub fn origin(config_maps: &BTreeMap<String, Found>, file: &str) -> String {
    let holds = |(_, found): &(&String, &Found)| found.values.contains_key(file);
    match config_maps.iter().find(holds) {
        Some((name, _)) => format!("ConfigMap {name:?}, key {file:?}"),
        None => format!("manifest {file:?}"),
    }
}

/// What makes the hub's manifests those that are wanted; nothing when they were not read.
pub fn steps(row: &Row, wanted: &BTreeMap<&str, &str>) -> Vec<Step> {
    let Some(kept) = &row.manifests else {
        return Vec::new();
    };
    let place = ManifestFolder::Openshift;
    let wrong = |file: &str, folder| folder != place || !wanted.contains_key(file);
    let dropped = kept
        .iter()
        .filter(|(file, manifest)| wrong(file, manifest.folder));
    let dropped = dropped.map(|(file, manifest)| Step::DeleteManifest(manifest.folder, file.clone()));
    let fits = |file: &str, content: &str| {
        let kept = kept.get(file).filter(|manifest| manifest.folder == place);
        kept.is_some_and(|manifest| manifest.content == content.as_bytes())
    };
    let put = wanted.iter().filter(|(file, content)| !fits(file, content));
    let put = put.map(|(file, content)| Step::PutManifest((*file).to_owned(), (*content).to_owned()));
    dropped.chain(put).chain([Step::ManifestsAreDone]).collect()
}

/// Changes to the install config: people's own, and the registries to use instead of others.
pub fn overrides(snapshot: &Snapshot, install: &AgentClusterInstall) -> Result<String, InvalidSpec> {
    let key = annotation::INSTALL_CONFIG_OVERRIDES;
    let given = install
        .annotations()
        .get(key)
        .map(String::as_str)
        .unwrap_or_default();
    let mirrors = mirrors(snapshot, install)?;
    if mirrors.is_empty() {
        return Ok(given.to_owned());
    }
    let mut all = match given {
        "" => Map::new(),
        text => match serde_json::from_str(text) {
            Ok(Value::Object(all)) => all,
            Ok(_) | Err(_) => {
                return Err(InvalidSpec::Input(format!(
                    "The annotation {key} is not a JSON object."
                )));
            }
        },
    };
    for (name, value) in mirrors {
        // People's own word counts more.
        all.entry(name).or_insert(value);
    }
    Ok(Value::Object(all).to_string())
}

#[derive(Deserialize)]
struct Registries {
    #[serde(default)]
    registry: Vec<Registry>,
}

#[derive(Deserialize)]
struct Registry {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    location: String,
    #[serde(default)]
    mirror: Vec<Mirror>,
}

#[derive(Deserialize)]
struct Mirror {
    location: String,
}

fn mirrors(snapshot: &Snapshot, install: &AgentClusterInstall) -> Result<Map<String, Value>, InvalidSpec> {
    let Some(reference) = &install.spec.mirror_registry_ref else {
        return Ok(Map::new());
    };
    let name = crate::key::Key::from(reference);
    let wrong = |text: String| InvalidSpec::Content(format!("mirrorRegistryRef: {text}"));
    let Some(found) = &snapshot.mirrors else {
        return Err(wrong(format!("there is no ConfigMap {name}")));
    };
    let text = found.value(data::REGISTRIES_CONF);
    let text =
        text.ok_or_else(|| wrong(format!("ConfigMap {name} has no key {:?}", data::REGISTRIES_CONF)))?;
    let registries: Registries = toml::from_str(text).map_err(|error| {
        // The reader's own words repeat the value.
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = 1 + before.unwrap_or_default().matches('\n').count();
        wrong(format!(
            "{:?} is not a list of registries in TOML (line {line})",
            data::REGISTRIES_CONF
        ))
    })?;
    let source = |registry: &Registry| {
        let source = if registry.prefix.is_empty() {
            &registry.location
        } else {
            &registry.prefix
        };
        let mirrors: Vec<&str> = registry
            .mirror
            .iter()
            .map(|mirror| mirror.location.as_str())
            .collect();
        json!({ "source": source, "mirrors": mirrors })
    };
    let sources: Vec<Value> = registries
        .registry
        .iter()
        .filter(|registry| !registry.mirror.is_empty())
        .map(source)
        .collect();
    let mut all = Map::new();
    if !sources.is_empty() {
        all.insert("imageDigestSources".into(), sources.into());
    }
    let bundle = found
        .value(data::CA_BUNDLE)
        .map(str::trim)
        .filter(|bundle| !bundle.is_empty());
    if let Some(bundle) = bundle {
        all.insert("additionalTrustBundle".into(), bundle.into());
    }
    Ok(all)
}

/// The checks that are ignored, as the hub takes them: without the annotation nothing, which means the hub's own choice.
pub fn ignored(install: &AgentClusterInstall, annotation: &str) -> String {
    match install.annotations().get(annotation).map(|text| text.trim()) {
        None => String::new(),
        // Some write a JSON list, as REST clients do.
        Some(text) if text.starts_with('[') => text.to_owned(),
        Some(text) => {
            let ids: Vec<&str> = text
                .split(',')
                .map(str::trim)
                .filter(|id| !id.is_empty())
                .collect();
            json!(ids).to_string()
        }
    }
}
