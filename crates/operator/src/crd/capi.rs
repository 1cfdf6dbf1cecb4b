//! Machine and Cluster of Cluster API: the parts that are read here, in any version.

use super::keys::annotation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::ApiResource;
use kube::core::{GroupVersionKind, Object};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub const GROUP: &str = "cluster.x-k8s.io";
/// Newest first. Owner references are accepted with any of them.
pub const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

pub const MACHINE: &str = "Machine";
pub const CLUSTER: &str = "Cluster";

pub type Machine = Object<MachineSpec, MachineStatus>;
pub type Cluster = Object<ClusterSpec, Value>;
/// Whatever runs the control plane of a cluster; what is read of it has the same place everywhere.
pub type ControlPlane = Object<ControlPlaneSpec, ControlPlaneStatus>;

/// The kind of control plane that is watched; others are read when they are needed.
pub const HOSTED_GROUP: &str = "hypershift.openshift.io";
pub const HOSTED_KIND: &str = "HostedControlPlane";

/// In the version that is spoken until it is known which the server has.
pub fn machines() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, newest(&[]), "Machine"), "machines")
}

pub fn clusters() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, newest(&[]), "Cluster"), "clusters")
}

pub fn hosted_control_planes() -> ApiResource {
    let kind = GroupVersionKind::gvk(HOSTED_GROUP, "v1beta1", HOSTED_KIND);
    ApiResource::from_gvk_with_plural(&kind, "hostedcontrolplanes")
}

/// The owner of this kind of Cluster API, named in any version.
pub fn owner<'a>(object: &'a impl ResourceExt, kind: &str) -> Option<&'a OwnerReference> {
    let of_group = |owner: &&OwnerReference| {
        let group = owner.api_version.split_once('/').map(|(group, _)| group);
        group == Some(GROUP) && owner.kind == kind
    };
    object.owner_references().iter().find(of_group)
}

/// The newest version that a server has; the oldest known one when it has none of them.
pub fn newest(served: &[String]) -> &'static str {
    let [newest, oldest] = VERSIONS;
    match served.iter().any(|served| served == newest) {
        true => newest,
        false => oldest,
    }
}

/// Only the word `true` holds an object; nothing else does.
pub fn is_paused(object: &impl ResourceExt) -> bool {
    object
        .annotations()
        .get(annotation::CAPI_PAUSED)
        .is_some_and(|value| value == "true")
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    #[serde(default)]
    pub bootstrap: Bootstrap,
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_secret_name: Option<String>,
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    #[serde(default)]
    pub conditions: Vec<MachineCondition>,
    /// Where newer versions keep the conditions of older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecated>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Deprecated {
    #[serde(default)]
    pub v1beta1: DeprecatedConditions,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeprecatedConditions {
    #[serde(default)]
    pub conditions: Vec<MachineCondition>,
}

/// Reasons may be missing and severities present in older versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineCondition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    #[serde(default)]
    pub reason: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ForeignRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ForeignRef>,
    /// Nothing of the cluster is touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

/// Older versions write `apiVersion` and `namespace`, newer ones `apiGroup`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub name: String,
}

/// Names in it belong to the control plane's namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneSpec {
    #[serde(default)]
    pub dns: ControlPlaneDns,
    #[serde(default)]
    pub pull_secret: Named,
    #[serde(default)]
    pub platform: ControlPlanePlatform,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneDns {
    #[serde(default)]
    pub base_domain: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlPlanePlatform {
    #[serde(default)]
    pub agent: AgentPlatform,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentPlatform {
    /// Where the cluster's Agents are taken from.
    #[serde(default)]
    pub agent_namespace: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneStatus {
    #[serde(default)]
    pub kube_config: Named,
    #[serde(default)]
    pub kubeadmin_password: Named,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Named {
    #[serde(default)]
    pub name: String,
}

impl ForeignRef {
    /// A control plane of HyperShift.
    pub fn is_hosted(&self) -> bool {
        self.group() == HOSTED_GROUP && self.kind == HOSTED_KIND
    }

    pub fn group(&self) -> &str {
        let from_version = || {
            self.api_version
                .as_deref()?
                .split_once('/')
                .map(|(group, _)| group)
        };
        self.api_group
            .as_deref()
            .or_else(from_version)
            .unwrap_or_default()
    }
}

impl MachineStatus {
    /// In this version's conditions first, then in those of the older one.
    pub fn condition(&self, type_: &str) -> Option<&MachineCondition> {
        let older = self.deprecated.iter().flat_map(|old| &old.v1beta1.conditions);
        self.conditions
            .iter()
            .chain(older)
            .find(|condition| condition.type_ == type_)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_of_both_versions_have_their_group() {
        let older: ForeignRef = serde_json::from_value(
            json!({"apiVersion": "controlplane.example.com/v1beta1", "kind": "K", "name": "n", "namespace": "x"}),
        )
        .unwrap();
        let newer: ForeignRef =
            serde_json::from_value(json!({"apiGroup": "controlplane.example.com", "kind": "K", "name": "n"}))
                .unwrap();
        assert_eq!(
            (older.group(), newer.group()),
            ("controlplane.example.com", "controlplane.example.com")
        );
    }

    #[test]
    fn the_newest_version_that_is_there_is_spoken() {
        let served = |versions: &[&str]| versions.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(newest(&served(&["v1beta1", "v1beta2"])), "v1beta2");
        assert_eq!(newest(&served(&["v1alpha4", "v1beta1"])), "v1beta1");
        assert_eq!(newest(&[]), "v1beta1");
    }

    #[test]
    fn owners_are_found_in_any_version_and_only_in_the_group() {
        let machine = |api_version: &str, kind: &str| -> crate::crd::AgentMachine {
            serde_json::from_value(json!({
                "apiVersion": "capi-provider.agent-install.openshift.io/v1beta1", "kind": "AgentMachine",
                "metadata": { "name": "m", "ownerReferences": [
                    { "apiVersion": api_version, "kind": kind, "name": "owner", "uid": "u" }] },
                "spec": {},
            }))
            .unwrap()
        };
        for version in ["cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"] {
            assert_eq!(owner(&machine(version, MACHINE), MACHINE).unwrap().name, "owner");
            assert_eq!(owner(&machine(version, "MachineSet"), MACHINE), None);
        }
        assert_eq!(
            owner(&machine("machine.openshift.io/v1beta1", MACHINE), MACHINE),
            None
        );
    }

    #[test]
    fn the_hook_is_found_where_either_version_puts_it() {
        let status: MachineStatus = serde_json::from_value(json!({
            "conditions": [{"type": "Deleting", "status": "True", "reason": "WaitingForPreTerminateHook"}],
            "deprecated": {"v1beta1": {"conditions": [
                {"type": "PreTerminateDeleteHookSucceeded", "status": "False", "severity": "Info"}]}}
        }))
        .unwrap();
        assert_eq!(
            status.condition("Deleting").unwrap().reason,
            "WaitingForPreTerminateHook"
        );
        assert_eq!(
            status
                .condition("PreTerminateDeleteHookSucceeded")
                .unwrap()
                .status,
            "False"
        );
    }

    #[test]
    fn what_is_not_known_here_survives() {
        let spec =
            json!({"clusterName": "c", "bootstrap": {"dataSecretName": "d", "configRef": {"name": "x"}}});
        let read: MachineSpec = serde_json::from_value(spec.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), spec);
    }
}
