//! Every label, annotation, finalizer and key of a Secret that is read or written: they are API.

use kube::ResourceExt;
use std::collections::BTreeMap;
use uuid::Uuid;

pub mod label {
    /// On Agent, BareMetalHost and PreprovisioningImage: name of the InfraEnv in the same namespace.
    pub const INFRA_ENV: &str = "infraenvs.agent-install.openshift.io";
    /// On Agent: name of the BareMetalHost in the same namespace.
    pub const BARE_METAL_HOST: &str = "agent-install.openshift.io/bmh";
    /// On Agent: namespace of the ClusterDeployment it is bound to; stays, empty, when it is not.
    pub const CLUSTER_DEPLOYMENT_NAMESPACE: &str = "agent-install.openshift.io/clusterdeployment-namespace";
    pub const HAS_NON_ROTATIONAL_DISK: &str =
        "inventory.agent-install.openshift.io/storage-hasnonrotationaldisk";
    pub const CPU_ARCHITECTURE: &str = "inventory.agent-install.openshift.io/cpu-architecture";
    pub const CPU_VIRT_ENABLED: &str = "inventory.agent-install.openshift.io/cpu-virtenabled";
    pub const HOST_MANUFACTURER: &str = "inventory.agent-install.openshift.io/host-manufacturer";
    pub const HOST_PRODUCT_NAME: &str = "inventory.agent-install.openshift.io/host-productname";
    pub const HOST_IS_VIRTUAL: &str = "inventory.agent-install.openshift.io/host-isvirtual";
    /// On Agent: what all labels begin with that come from its inventory.
    pub const INVENTORY_PREFIX: &str = "inventory.agent-install.openshift.io/";
    /// On Agent, followed by the key of a classification.
    pub const CLASSIFICATION_PREFIX: &str = "agentclassification.agent-install.openshift.io/";
    /// On Agent: name of the AgentMachine that reserved it.
    pub const AGENT_MACHINE: &str = "agentMachineRef";
    /// On ClusterDeployment: name of the AgentCluster it stands for.
    pub const AGENT_CLUSTER: &str = "agentClusterRef";
    /// On Secret and ConfigMap, `true`: it is watched.
    pub const WATCH: &str = "agent-install.openshift.io/watch";
    /// On much, `true` unless somebody chose another value: it is part of backups.
    pub const BACKUP: &str = "cluster.open-cluster-management.io/backup";
    /// On PreprovisioningImage, `true`.
    pub const NOT_IN_BACKUP: &str = "velero.io/exclude-from-backup";
    /// On secrets with credentials of clusters.
    pub const HIVE_CLUSTER_DEPLOYMENT: &str = "hive.openshift.io/cluster-deployment-name";
    /// On secrets with credentials of clusters: `kubeconfig` or `kubeadmincreds`.
    pub const HIVE_SECRET_TYPE: &str = "hive.openshift.io/secret-type";
    /// On AgentClusterInstall: becomes the cluster's tags.
    pub const CONSUMER: &str = "agentclusterinstalls.agent-install.openshift.io/consumer";
    /// On Machine and AgentMachine: name of the Cluster.
    pub const CAPI_CLUSTER: &str = "cluster.x-k8s.io/cluster-name";
}

pub mod annotation {
    /// On InfraEnv: the hub's id, kept so that running agents find their hub again after a restore.
    pub const INFRA_ENV_ID: &str = "infraenv.agent-install.openshift.io/id";
    /// On ClusterDeployment: the hub's id of the cluster.
    pub const CLUSTER_ID: &str = "clusterdeployments.agent-install.openshift.io/id";

    /// On Agent: copies of what the hub knows, for a restore.
    pub const AGENT_STATE: &str = "agent.agent-install.openshift.io/state";
    pub const AGENT_ROLE: &str = "agent.agent-install.openshift.io/role";
    pub const AGENT_INVENTORY: &str = "agent.agent-install.openshift.io/inventory";
    pub const AGENT_VALIDATIONS: &str = "agent.agent-install.openshift.io/validations-info";
    pub const AGENT_STAGE: &str = "agent.agent-install.openshift.io/current-stage";
    /// On Agent, our own: the ClusterDeployment of the cluster that the noted state was reached in, as `namespace/name`; only of
    /// installed hosts.
    pub const INSTALLED_IN: &str = "agent.agent-install.openshift.io/installed-in";
    /// On Agent, any value: its Node is not removed from the cluster it leaves.
    pub const SKIP_SPOKE_CLEANUP: &str = "agent.agent-install.openshift.io/skip-spoke-cleanup";
    /// On Agent: node labels that came from its InfraEnv, separated by commas.
    pub const INHERITED_NODE_LABELS: &str = "agent.agent-install.openshift.io/inherited-node-labels";
    /// On Agent, our own: the values they had there, as a JSON object. Who changes one makes the label their own.
    pub const INHERITED_VALUES: &str = "agent.agent-install.openshift.io/inherited-node-label-values";
    /// On Agent: version of the inventory labels.
    pub const INVENTORY_VERSION: &str = "inventory.agent-install.openshift.io/version";
    pub const INVENTORY_VERSION_VALUE: &str = "0.1";
    /// On Agent: namespace of the AgentMachine that reserved it.
    pub const AGENT_MACHINE_NAMESPACE: &str = "agentMachineRefNamespace";

    /// On AgentMachine, our own: what its Agent has to get back when its host comes again, as JSON.
    pub const KEEPSAKE: &str = "agentmachine.agent-install.openshift.io/keepsake";

    /// On InfraEnv, `true`: its image contains Ironic's agent and belongs to machines of the bare metal operator.
    pub const ENABLE_IRONIC_AGENT: &str = "infraenv.agent-install.openshift.io/enable-ironic-agent";
    pub const IRONIC_AGENT_IMAGE: &str = "infraenv.agent-install.openshift.io/ironic-agent-image-override";
    pub const IP_FAMILY: &str = "infraenv.agent-install.openshift.io/ip-family";
    /// On InfraEnv: keys of its labels, separated by commas, that become node labels of its Agents.
    pub const PROPAGATE_NODE_LABELS: &str = "infraenv.agent-install.openshift.io/propagate-node-labels";

    /// On BareMetalHost: what its Agent gets.
    pub const BMAC_ROLE: &str = "bmac.agent-install.openshift.io/role";
    pub const BMAC_HOSTNAME: &str = "bmac.agent-install.openshift.io/hostname";
    pub const BMAC_MACHINE_CONFIG_POOL: &str = "bmac.agent-install.openshift.io/machine-config-pool";
    pub const BMAC_INSTALLER_ARGS: &str = "bmac.agent-install.openshift.io/installer-args";
    pub const BMAC_IGNITION_OVERRIDES: &str = "bmac.agent-install.openshift.io/ignition-config-overrides";
    pub const BMAC_CLUSTER_REFERENCE: &str = "bmac.agent-install.openshift.io/cluster-reference";
    pub const BMAC_FENCING_SECRET: &str = "bmac.agent-install.openshift.io/fencing-credentials-secret-name";
    pub const BMAC_CREATE_FENCING_SECRET: &str =
        "bmac.agent-install.openshift.io/create-fencing-credentials-secret";
    pub const BMAC_NODE_LABEL_PREFIX: &str = "bmac.agent-install.openshift.io.node-label.";
    pub const BMAC_AGENT_LABEL_PREFIX: &str = "bmac.agent-install.openshift.io.agent-label.";
    pub const BMAC_REMOVE_ON_DELETE: &str = "bmac.agent-install.openshift.io/remove-agent-and-node-on-delete";
    pub const BMAC_HOST_MANAGEMENT: &str =
        "bmac.agent-install.openshift.io/allow-provisioned-host-management";
    pub const BMAC_DRAIN_TIMEOUT: &str = "bmac.agent-install.openshift.io/drain-timeout";
    pub const BMAC_DRAIN_STARTED_AT: &str = "bmac.agent-install.openshift.io/drain-started-at";
    pub const BMAC_DRAIN_STATUS: &str = "bmac.agent-install.openshift.io/drain-status";
    pub const BMAC_SPOKE_CREATED: &str = "bmac.agent-install.openshift.io/spoke-bmh-machine-created";
    /// On BareMetalHost: the authority that was added to its ignition overrides, so that it can be taken out again.
    pub const BMAC_AUTHORITY: &str = "bmac.agent-install.openshift.io/ignition-authority";
    /// On BareMetalHost: since when its Agent has been waiting to come back, as soon as that was begun.
    pub const BMAC_RETURN_BEGUN: &str = "bmac.agent-install.openshift.io/return-begun";
    /// On BareMetalHost, any value: it gets its deploy step back when it has been fetched, whatever others boot.
    pub const BMAC_RETURNS_CONVERGED: &str = "bmac.agent-install.openshift.io/returns-converged";
    /// On PreprovisioningImage: the image that was published last.
    pub const PUBLISHED_IMAGE: &str = "preprovisioningimage.agent-install.openshift.io/published-image";
    pub const METAL3_DETACHED: &str = "baremetalhost.metal3.io/detached";
    pub const METAL3_PAUSED: &str = "baremetalhost.metal3.io/paused";
    pub const METAL3_STATUS: &str = "baremetalhost.metal3.io/status";
    pub const METAL3_INSPECT: &str = "inspect.metal3.io";
    pub const METAL3_HARDWARE_DETAILS: &str = "inspect.metal3.io/hardwaredetails";
    pub const METAL3_REBOOT: &str = "reboot.metal3.io";

    pub const INSTALL_CONFIG_OVERRIDES: &str = "agent-install.openshift.io/install-config-overrides";
    pub const IGNORED_CLUSTER_VALIDATIONS: &str = "agent-install.openshift.io/ignored-cluster-validations";
    pub const IGNORED_HOST_VALIDATIONS: &str = "agent-install.openshift.io/ignored-host-validations";
    /// On AgentClusterInstall: the pool of workers of the running cluster was paused from here.
    pub const WORKERS_PAUSED: &str = "agentclusterinstall.agent-install.openshift.io/workers-paused";
    /// On AgentServiceConfig: `false` turns off the images of another service.
    pub const IMAGE_SERVICE: &str = "agent-install.openshift.io/enable-image-service";
    /// On AgentServiceConfig, followed by the name of a setting of another service.
    pub const SERVICE_PREFIX: &str = "unsupported.agent-install.openshift.io/";
    /// On ClusterDeployment, a boolean: the installation is held.
    pub const HIVE_PAUSE: &str = "hive.openshift.io/reconcile-pause";
    /// On objects of Cluster API, only `true` counts.
    pub const CAPI_PAUSED: &str = "cluster.x-k8s.io/paused";
    /// On Machine: its deletion waits until the Agent has left the cluster.
    pub const CAPI_DELETE_HOOK: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/agentmachine";
}

pub mod finalizer {
    pub const INFRA_ENV: &str = "infraenv.agent-install.openshift.io/ai-deprovision";
    pub const AGENT: &str = "agent.agent-install.openshift.io/ai-deprovision";
    pub const CLUSTER_DEPLOYMENT: &str = "clusterdeployments.agent-install.openshift.io/ai-deprovision";
    pub const AGENT_CLUSTER_INSTALL: &str = "agentclusterinstall.agent-install.openshift.io/ai-deprovision";
    pub const AGENT_CLASSIFICATION: &str = "agentclassification.agent-install.openshift.io";
    /// Of a service that manages its AgentServiceConfig; never written here.
    pub const AGENT_SERVICE_CONFIG: &str = "agentserviceconfig.agent-install.openshift.io/ai-deprovision";
    pub const BARE_METAL_HOST: &str = "bmac.agent-install.openshift.io/deprovision";
    pub const PREPROVISIONING_IMAGE: &str = "preprovisioningimage.agent-install.openshift.io/ai-deprovision";
    pub const AGENT_MACHINE: &str = "agentmachine.agent-install.openshift.io/deprovision";
    /// Without a dot in the middle: that is how it is known.
    pub const AGENT_CLUSTER: &str = "agentclustercapi-provider.agent-install.openshift.io/deprovision";
}

/// Keys inside Secrets and ConfigMaps.
pub mod data {
    pub const PULL_SECRET: &str = ".dockerconfigjson";
    pub const KUBECONFIG: &str = "kubeconfig";
    pub const USERNAME: &str = "username";
    pub const PASSWORD: &str = "password";
    pub const ADDRESS: &str = "address";
    pub const CERTIFICATE_VERIFICATION: &str = "certificateVerification";
    pub const CA_CERTIFICATE: &str = "tls.crt";
    pub const IGNITION_TOKEN: &str = "ignition-token";
    pub const CAPI_USER_DATA: &str = "value";
    pub const REGISTRIES_CONF: &str = "registries.conf";
    pub const CA_BUNDLE: &str = "ca-bundle.crt";
    pub const IRONIC_URL: &str = "IRONIC_BASE_URL";
    pub const IRONIC_INSPECTOR_URL: &str = "IRONIC_INSPECTOR_BASE_URL";
    pub const IRONIC_AGENT_IMAGE: &str = "IRONIC_AGENT_IMAGE";
}

/// Leases by which operators agree who acts.
pub mod lease {
    pub const SERVICE: &str = "77190dcb.agent-install.openshift.io";
    pub const CAPI_PROVIDER: &str = "7605f49b.agent-install.openshift.io";
}

/// The hub's id of an object: what its annotation says, else the object's own uid, which is one too. Decided before
/// anything is made, so that making it twice makes one.
pub fn hub_id(object: &impl ResourceExt, annotation: &str) -> Option<Uuid> {
    let noted = object
        .annotations()
        .get(annotation)
        .and_then(|text| text.parse().ok());
    noted.or_else(|| object.meta().uid.as_ref()?.parse().ok())
}

pub fn has_finalizer(object: &impl ResourceExt, finalizer: &str) -> bool {
    object.finalizers().iter().any(|name| name == finalizer)
}

/// The labels that a Secret or ConfigMap gets when it is used. A value somebody chose stays.
pub fn used_labels(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut missing = BTreeMap::new();
    if labels.get(label::WATCH).is_none_or(|value| value != "true") {
        missing.insert(label::WATCH.into(), "true".into());
    }
    if !labels.contains_key(label::BACKUP) {
        missing.insert(label::BACKUP.into(), "true".into());
    }
    missing
}

/// A legal label value made of any text, or nothing.
pub fn label_value(text: &str) -> Option<String> {
    const LONGEST: usize = 63;
    let legal = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let kept: String = text.chars().filter(legal).take(LONGEST).collect();
    let kept = kept.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    (!kept.is_empty()).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::InfraEnv;

    #[test]
    fn the_annotation_decides_the_id_and_the_uid_stands_in_for_it() {
        let uid = "0b7b0f4e-0a5b-4f0c-9c0e-1d2d3a4b5c6d";
        let noted = "7f3a1f60-4a55-4d5f-8f4f-0f6a1c7c1b11";
        let mut infra_env = InfraEnv::default();
        assert_eq!(hub_id(&infra_env, annotation::INFRA_ENV_ID), None);
        infra_env.metadata.uid = Some(uid.into());
        assert_eq!(hub_id(&infra_env, annotation::INFRA_ENV_ID), uid.parse().ok());
        infra_env
            .annotations_mut()
            .insert(annotation::INFRA_ENV_ID.into(), noted.into());
        assert_eq!(hub_id(&infra_env, annotation::INFRA_ENV_ID), noted.parse().ok());
    }

    #[test]
    fn a_used_secret_is_labelled_once_and_keeps_a_value_that_was_chosen() {
        let fresh = used_labels(&BTreeMap::new());
        assert_eq!(fresh.len(), 2);
        assert!(used_labels(&fresh).is_empty());
        let chosen = BTreeMap::from([(label::BACKUP.to_owned(), "cluster-activation".to_owned())]);
        assert!(!used_labels(&chosen).contains_key(label::BACKUP));
    }

    #[test]
    fn label_values_are_legal_or_absent() {
        assert_eq!(label_value("Red Hat, Inc."), Some("RedHatInc".into()));
        assert_eq!(label_value("()"), None);
        assert_eq!(label_value(&"x".repeat(80)).map(|value| value.len()), Some(63));
    }
}
