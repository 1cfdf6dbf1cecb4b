//! The wire form of the kinds: examples survive, required things are there, rules and columns are in place.

mod words;

use super::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn definition(kind: &str) -> Value {
    let all = own(ClusterRefs::Fixed).into_iter().chain(hive());
    let found = all.into_iter().find(|crd| crd.spec.names.kind == kind);
    serde_json::to_value(found.unwrap_or_else(|| panic!("no {kind}"))).unwrap()
}

fn schema(kind: &str) -> Value {
    definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

fn survives<T: Serialize + DeserializeOwned>(object: Value) {
    let read: T = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
}

fn strings(list: &Value) -> Vec<&str> {
    let mut words: Vec<_> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    words.sort_unstable();
    words
}

fn columns(kind: &str) -> Vec<String> {
    let definition = definition(kind);
    let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"]
        .as_array()
        .cloned();
    columns
        .unwrap_or_default()
        .iter()
        .map(|column| {
            let text = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
            let priority = column["priority"]
                .as_i64()
                .map(|number| format!(" {number}"))
                .unwrap_or_default();
            format!("{} {} {}{priority}", text("name"), text("type"), text("jsonPath"))
        })
        .collect()
}

fn rules_at<'a>(schema: &'a Value, path: &[&str]) -> Vec<&'a str> {
    let place = path
        .iter()
        .fold(schema, |place, name| &place["properties"][*name]);
    let rules = place["x-kubernetes-validations"].as_array().into_iter().flatten();
    rules.filter_map(|rule| rule["message"].as_str()).collect()
}

#[test]
fn an_infra_env_as_people_write_it_survives() {
    survives::<InfraEnv>(json!({
        "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "InfraEnv",
        "metadata": {"name": "lab", "namespace": "pool"},
        "spec": {
            "pullSecretRef": {"name": "pull"}, "clusterRef": {"name": "c", "namespace": "n"},
            "proxy": {"httpProxy": "http://p:1", "httpsProxy": "http://p:1", "noProxy": "a,b"},
            "additionalNTPSources": ["ntp.example.com"], "sshAuthorizedKey": "ssh-ed25519 AAAA",
            "agentLabels": {"rack": "a"},
            "nmStateConfigLabelSelector": {"matchLabels": {"cluster": "c"}},
            "ignitionConfigOverride": "{}", "cpuArchitecture": "aarch64", "ipxeScriptType": "BootOrderControl",
            "kernelArguments": [{"operation": "append", "value": "console=ttyS0"}],
            "additionalTrustBundle": "pem", "osImageVersion": "4.18",
            "mirrorRegistryRef": {"namespace": "n", "name": "mirrors"}, "imageType": "minimal-iso",
            "agentApproval": {"autoApprove": true}, "networkDiscoveryDelaySeconds": 5
        },
        "status": {
            "isoDownloadURL": "http://x/iso", "createdTime": "2026-05-04T03:02:01Z",
            "conditions": [{"type": "ImageCreated", "status": "True", "reason": "InfraEnvAvailable", "message": "m",
                "lastTransitionTime": "2026-05-04T03:02:01Z"}],
            "agentLabelSelector": {"matchLabels": {"infraenvs.agent-install.openshift.io": "lab"}},
            "debugInfo": {"eventsURL": "e", "staticNetworkDownloadURL": "s"},
            "bootArtifacts": {"initrd": "i", "rootfs": "r", "kernel": "k", "ipxeScript": "x",
                "discoveryIgnitionURL": "d"}
        }
    }));
}

#[test]
fn an_agent_survives_and_always_says_role_and_approved() {
    survives::<Agent>(json!({
        "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "Agent",
        "metadata": {"name": "a", "namespace": "pool"},
        "spec": {"approved": false, "role": "", "clusterDeploymentName": {"name": "c", "namespace": "n"},
            "hostname": "h", "machineConfigPool": "ignition", "installation_disk_id": "d", "installerArgs": "[]",
            "ignitionEndpointTokenReference": {"namespace": "n", "name": "t"},
            "ignitionEndpointHTTPHeaders": {"NodePool": "x"}, "nodeLabels": {"a": "b"}},
        "status": {"bootstrap": true, "role": "master", "kind": "Host",
            "inventory": {"hostname": "h", "bmcV6Address": "::", "memory": {"physicalBytes": 1},
                "cpu": {"count": 2, "clockMegahertz": 2000},
                "interfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:01", "clientID": "x",
                    "ipV4Addresses": [], "ipV6Addresses": [], "flags": []}],
                "disks": [{"id": "d", "byID": "/dev/disk/by-id/d",
                    "installationEligibility": {"eligible": true, "notEligibleReasons": []}}],
                "boot": {"currentBootMode": "uefi"}, "systemVendor": {"virtual": true},
                "gpus": [{"vendorID": "1", "deviceID": "2"}]},
            "progress": {"currentStage": "Done", "progressStages": ["Done"]},
            "ntpSources": [{"sourceName": "n", "sourceState": "synced"}],
            "debugInfo": {"state": "known-unbound", "stateInfo": "i", "eventsURL": "e", "logsURL": "l"},
            "validationsInfo": {"hardware": [{"id": "has-min-memory", "status": "success", "message": "m"}]},
            "installation_disk_id": "d",
            "deprovision_info": {"cluster_name": "c", "cluster_namespace": "n", "node_name": "h", "message": "m"},
            "csrStatus": {"approvedCSRs": [{"name": "csr", "type": "client", "approvedAt": "2026-05-04T03:02:01Z"}]}}
    }));
    let plain = serde_json::to_value(Agent::new("a", Default::default())).unwrap();
    assert_eq!(plain["spec"], json!({"approved": false, "role": ""}));
}

#[test]
fn required_lists_are_written_even_when_empty() {
    let interface = serde_json::to_value(agent::HostInterface::default()).unwrap();
    assert_eq!(
        interface,
        json!({"ipV4Addresses": [], "ipV6Addresses": [], "flags": []})
    );
    let disk = serde_json::to_value(agent::Disk::default()).unwrap();
    assert_eq!(
        disk,
        json!({"id": "", "installationEligibility": {"notEligibleReasons": []}})
    );
    let before_discovery = serde_json::to_value(agent::Inventory::default()).unwrap();
    assert_eq!(
        before_discovery,
        json!({"memory": {}, "cpu": {}, "boot": {}, "systemVendor": {}})
    );
}

#[test]
fn a_cluster_as_people_write_it_survives() {
    survives::<AgentClusterInstall>(json!({
        "apiVersion": "extensions.hive.openshift.io/v1beta1", "kind": "AgentClusterInstall",
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {"clusterDeploymentRef": {"name": "c"}, "imageSetRef": {"name": "4.18"},
            "networking": {"clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
                "machineNetwork": [{"cidr": "192.0.2.0/24"}], "serviceNetwork": ["172.30.0.0/16"],
                "networkType": "OVNKubernetes", "userManagedNetworking": false},
            "provisionRequirements": {"controlPlaneAgents": 3, "workerAgents": 2},
            "apiVIPs": ["192.0.2.2"], "ingressVIPs": ["192.0.2.3"], "sshPublicKey": "ssh-ed25519 AAAA",
            "compute": [{"name": "worker", "hyperthreading": "Enabled"}],
            "ignitionEndpoint": {"url": "https://x", "caCertificateReference": {"namespace": "n", "name": "ca"}},
            "diskEncryption": {"enableOn": "all", "mode": "tpmv2"}, "platformType": "BareMetal",
            "external": {"platformName": "oci", "cloudControllerManager": "External"},
            "manifestsConfigMapRefs": [{"name": "m"}], "loadBalancer": {"type": "UserManaged"},
            "clusterMetadata": {"clusterID": "i", "infraID": "j", "adminKubeconfigSecretRef": {"name": "k"}}},
        "status": {"conditions": [{"type": "Completed", "status": "False", "reason": "InstallationNotStarted",
                "message": "m", "lastProbeTime": "2026-05-04T03:02:01Z", "lastTransitionTime": "2026-05-04T03:02:01Z"}],
            "progress": {"totalPercentage": 0}, "debugInfo": {"state": "ready"}}
    }));
    survives::<HypershiftAgentServiceConfig>(json!({
        "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "HypershiftAgentServiceConfig",
        "metadata": {"name": "h", "namespace": "n"},
        "spec": {"databaseStorage": {"accessModes": ["ReadWriteOnce"]}, "filesystemStorage": {},
            "osImages": [{"openshiftVersion": "4.20", "version": "1", "url": "https://x"}],
            "kubeconfigSecretRef": {"name": "k"}}
    }));
    survives::<ClusterDeployment>(json!({
        "apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment", "metadata": {"name": "c", "namespace": "n"},
        "spec": {"clusterName": "c", "baseDomain": "example.com", "pullSecretRef": {"name": "pull"},
            "platform": {"agentBareMetal": {"agentSelector": {"matchLabels": {"a": "b"}}}},
            "clusterInstallRef": {"group": "extensions.hive.openshift.io", "version": "v1beta1",
                "kind": "AgentClusterInstall", "name": "c"}}
    }));
}

#[test]
fn machines_of_cluster_api_survive() {
    survives::<AgentMachine>(json!({
        "apiVersion": "capi-provider.agent-install.openshift.io/v1beta1", "kind": "AgentMachine",
        "metadata": {"name": "m", "namespace": "n"},
        "spec": {"providerID": "agent://a", "agentLabelSelector": {"matchLabels": {"a": "b"}}},
        "status": {"ready": true, "agentRef": {"name": "a", "namespace": "p"},
            "addresses": [{"type": "ExternalIP", "address": "192.0.2.9"}]}
    }));
    survives::<AgentMachineTemplate>(json!({
        "apiVersion": "capi-provider.agent-install.openshift.io/v1beta1", "kind": "AgentMachineTemplate",
        "metadata": {"name": "m", "namespace": "n"}, "spec": {"template": {"spec": {}}}
    }));
}

#[test]
fn required_fields_are_the_known_ones() {
    let agent = schema("Agent");
    assert_eq!(
        strings(&agent["properties"]["spec"]["required"]),
        ["approved", "role"]
    );
    let inventory = &agent["properties"]["status"]["properties"]["inventory"]["properties"];
    assert_eq!(
        strings(&inventory["interfaces"]["items"]["required"]),
        ["flags", "ipV4Addresses", "ipV6Addresses"]
    );
    assert_eq!(strings(&inventory["disks"]["items"]["required"]), ["id"]);
    let infra_env = schema("InfraEnv");
    assert_eq!(
        strings(&infra_env["properties"]["spec"]["required"]),
        ["pullSecretRef"]
    );
    let name = &infra_env["properties"]["spec"]["properties"]["pullSecretRef"]["properties"]["name"];
    assert_eq!(name["default"], "");
    let install = schema("AgentClusterInstall");
    assert_eq!(
        strings(&install["properties"]["spec"]["required"]),
        ["clusterDeploymentRef", "networking", "provisionRequirements"]
    );
    assert_eq!(strings(&install["required"]), ["spec"]);
    let cluster = schema("AgentCluster");
    assert_eq!(
        strings(&cluster["properties"]["status"]["required"]),
        ["clusterDeploymentReference"]
    );
    let classification = schema("AgentClassification");
    assert_eq!(
        strings(&classification["properties"]["spec"]["required"]),
        ["labelKey", "labelValue", "query"]
    );
    let service = schema("AgentServiceConfig");
    assert_eq!(
        strings(&service["properties"]["spec"]["required"]),
        ["databaseStorage", "filesystemStorage"]
    );
    let hosted = schema("HypershiftAgentServiceConfig");
    assert_eq!(
        strings(&hosted["properties"]["spec"]["required"]),
        ["databaseStorage", "filesystemStorage", "kubeconfigSecretRef"]
    );
}

#[test]
fn every_setting_of_an_installation_is_either_frozen_or_free() {
    fn leaves(path: &str, schema: &Value, found: &mut Vec<String>) {
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            let path = format!("{path}.{name}");
            let is_free = rules::FREE_WHILE_INSTALLING
                .iter()
                .any(|free| path == format!(".{free}"));
            match property["properties"].is_object() {
                _ if is_free => {}
                true => leaves(&path, property, found),
                false => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    leaves(
        "",
        &schema("AgentClusterInstall")["properties"]["spec"],
        &mut found,
    );
    let known = rules::FROZEN.iter().chain(rules::COUNTS);
    let mut known: Vec<String> = known.map(|(path, _)| format!(".{}", path.join("."))).collect();
    found.sort();
    known.sort();
    assert_eq!(found, known);
}

#[test]
fn columns_are_the_familiar_ones() {
    assert_eq!(
        columns("Agent"),
        [
            "Cluster string .spec.clusterDeploymentName.name",
            "Approved boolean .spec.approved",
            "Role string .status.role",
            "Stage string .status.progress.currentStage",
            "Hostname string .status.inventory.hostname 1",
            "Requested Hostname string .spec.hostname 1",
        ]
    );
    assert_eq!(
        columns("InfraEnv"),
        [
            "ISO Created At string .status.createdTime",
            "ISO URL string .status.isoDownloadURL 1",
        ]
    );
    assert_eq!(
        columns("AgentClusterInstall"),
        [
            "Cluster string .spec.clusterDeploymentRef.name",
            "State string .status.debugInfo.state",
        ]
    );
    assert_eq!(columns("ClusterImageSet"), ["Release string .spec.releaseImage"]);
    assert_eq!(
        columns("ClusterDeployment"),
        [
            "InfraID string .spec.clusterMetadata.infraID",
            "Platform string .metadata.labels.hive\\.openshift\\.io/cluster-platform",
            "Region string .metadata.labels.hive\\.openshift\\.io/cluster-region",
            "Version string .metadata.labels.hive\\.openshift\\.io/version",
            "ClusterType string .metadata.labels.hive\\.openshift\\.io/cluster-type",
            "ProvisionStatus string .status.conditions[?(@.type=='Provisioned')].reason",
            "PowerState string .status.powerState",
            "Age date .metadata.creationTimestamp",
        ]
    );
    assert!(columns("AgentMachine").is_empty());
}

#[test]
fn names_scopes_and_subresources_are_the_known_ones() {
    let table = [
        (
            "InfraEnv",
            "infraenvs.agent-install.openshift.io",
            "",
            "",
            "Namespaced",
            true,
        ),
        (
            "Agent",
            "agents.agent-install.openshift.io",
            "",
            "",
            "Namespaced",
            true,
        ),
        (
            "NMStateConfig",
            "nmstateconfigs.agent-install.openshift.io",
            "",
            "",
            "Namespaced",
            true,
        ),
        (
            "AgentServiceConfig",
            "agentserviceconfigs.agent-install.openshift.io",
            "",
            "",
            "Cluster",
            true,
        ),
        (
            "HypershiftAgentServiceConfig",
            "hypershiftagentserviceconfigs.agent-install.openshift.io",
            "hasc",
            "",
            "Namespaced",
            true,
        ),
        (
            "AgentClusterInstall",
            "agentclusterinstalls.extensions.hive.openshift.io",
            "aci",
            "",
            "Namespaced",
            true,
        ),
        (
            "ClusterDeployment",
            "clusterdeployments.hive.openshift.io",
            "cd",
            "",
            "Namespaced",
            true,
        ),
        (
            "ClusterImageSet",
            "clusterimagesets.hive.openshift.io",
            "imgset",
            "",
            "Cluster",
            true,
        ),
        (
            "AgentMachine",
            "agentmachines.capi-provider.agent-install.openshift.io",
            "",
            "",
            "Namespaced",
            true,
        ),
        (
            "AgentMachineTemplate",
            "agentmachinetemplates.capi-provider.agent-install.openshift.io",
            "agentmt",
            "cluster-api",
            "Namespaced",
            false,
        ),
    ];
    for (kind, name, short, category, scope, has_status) in table {
        let crd = definition(kind);
        let names = &crd["spec"]["names"];
        assert_eq!(crd["metadata"]["name"], name);
        assert_eq!(strings(&names["shortNames"]).concat(), short, "{kind}");
        assert_eq!(strings(&names["categories"]).concat(), category, "{kind}");
        assert_eq!(crd["spec"]["scope"], scope, "{kind}");
        let status = &crd["spec"]["versions"][0]["subresources"]["status"];
        assert_eq!(status.is_object(), has_status, "{kind}");
    }
}

#[test]
fn the_providers_kinds_are_served_in_both_versions_and_found_by_cluster_api() {
    for kind in ["AgentMachine", "AgentMachineTemplate", "AgentCluster"] {
        let crd = definition(kind);
        let versions: Vec<_> = crd["spec"]["versions"].as_array().unwrap().iter().collect();
        let facts: Vec<_> = versions
            .iter()
            .map(|version| {
                (
                    version["name"].as_str().unwrap(),
                    version["served"] == true,
                    version["storage"] == true,
                )
            })
            .collect();
        assert_eq!(
            facts,
            [("v1alpha1", true, false), ("v1beta1", true, true)],
            "{kind}"
        );
        assert_eq!(versions[0]["deprecated"], true);
        assert_eq!(
            versions[0]["deprecationWarning"],
            "v1alpha1 is deprecated; use v1beta1"
        );
        assert_eq!(versions[1].get("deprecated"), None);
        assert_eq!(versions[0]["schema"], versions[1]["schema"]);
        let labels = json!({
            "cluster.x-k8s.io/provider": "agent", "cluster.x-k8s.io/v1alpha3": "v1alpha1",
            "cluster.x-k8s.io/v1alpha4": "v1alpha1", "cluster.x-k8s.io/v1beta1": "v1alpha1",
        });
        assert_eq!(crd["metadata"]["labels"], labels, "{kind}");
    }
}

#[test]
fn rules_of_webhooks_are_in_the_schema() {
    let infra_env = schema("InfraEnv");
    let messages = rules_at(&infra_env, &["spec"]);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages
            .iter()
            .any(|message| message.contains("clusterRef cannot be"))
    );
    let agent = schema("Agent");
    assert_eq!(rules_at(&agent, &["spec"]).len(), 1);
    assert!(rules_at(&agent, &[])[0].contains("while the host is being installed"));
    let install = schema("AgentClusterInstall");
    assert_eq!(rules_at(&install, &["spec"]).len(), 3);
    let frozen = rules::FROZEN.len() + rules::COUNTS.len();
    assert_eq!(
        rules_at(&install, &[]).len(),
        frozen + 3,
        "one for each field, and those of networks"
    );
    assert_eq!(rules_at(&install, &["spec", "external", "platformName"]).len(), 1);
    let classification = schema("AgentClassification");
    assert_eq!(rules_at(&classification, &["spec"]).len(), 2);
    assert_eq!(rules_at(&classification, &["spec", "labelValue"]).len(), 2);
}

#[test]
fn the_cluster_of_an_infra_env_can_be_set_free() {
    let count = |refs| {
        let crd = own(refs)
            .into_iter()
            .find(|crd| crd.spec.names.kind == "InfraEnv")
            .unwrap();
        let crd = serde_json::to_value(crd).unwrap();
        rules_at(
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            &["spec"],
        )
        .len()
    };
    assert_eq!(count(ClusterRefs::Fixed) - count(ClusterRefs::Free), 1);
}

#[test]
fn defaults_and_allowed_words_are_in_the_schema() {
    let infra_env = schema("InfraEnv");
    let spec = &infra_env["properties"]["spec"]["properties"];
    assert_eq!(spec["cpuArchitecture"]["default"], "x86_64");
    assert_eq!(spec["ipxeScriptType"]["default"], "DiscoveryImageAlways");
    assert_eq!(
        spec["agentApproval"]["properties"]["autoApprove"]["default"],
        false
    );
    assert_eq!(spec["networkDiscoveryDelaySeconds"]["minimum"], json!(0.0));
    assert_eq!(
        spec["nmStateConfigLabelSelector"]["x-kubernetes-map-type"],
        "atomic"
    );
    assert_eq!(
        strings(&spec["kernelArguments"]["items"]["properties"]["operation"]["enum"]),
        ["append", "delete", "replace"]
    );
    assert!(spec["imageType"].get("enum").is_none(), "any word is accepted");
    let config = schema("NMStateConfig");
    let config = &config["properties"]["spec"]["properties"];
    assert_eq!(config["config"]["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(config["interfaces"]["minItems"], 1);
    let install = schema("AgentClusterInstall");
    let spec = &install["properties"]["spec"]["properties"];
    assert_eq!(spec["apiVIPs"]["maxItems"], 2);
    assert_eq!(
        spec["diskEncryption"]["properties"]["enableOn"]["enum"]
            .as_array()
            .unwrap()
            .len(),
        9
    );
    assert_eq!(
        spec["loadBalancer"]["properties"]["type"]["default"],
        "ClusterManaged"
    );
}

#[test]
fn every_field_is_explained_and_nulls_are_dropped() {
    fn walk(kind: &str, path: &str, schema: &Value) {
        assert!(schema.get("nullable").is_none(), "{kind} {path} is nullable");
        if let Some(properties) = schema["properties"].as_object() {
            for (name, property) in properties {
                let path = format!("{path}.{name}");
                let top = ["kind", "apiVersion", "metadata"].contains(&name.as_str())
                    && path.matches('.').count() == 1;
                assert!(
                    top || property["description"].is_string(),
                    "{kind} {path} is not explained"
                );
                walk(kind, &path, property);
            }
        }
        if schema["items"].is_object() {
            walk(kind, &format!("{path}[]"), &schema["items"]);
        }
    }
    for crd in own(ClusterRefs::Fixed).into_iter().chain(hive()) {
        let kind = crd.spec.names.kind.clone();
        let crd = serde_json::to_value(crd).unwrap();
        walk(
            &kind,
            "",
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        );
    }
}

#[test]
fn kinds_of_hive_keep_fields_that_are_not_known_here() {
    let schema = schema("ClusterDeployment");
    let spec = &schema["properties"]["spec"];
    assert_eq!(spec["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(
        spec["properties"]["platform"]["x-kubernetes-preserve-unknown-fields"],
        true
    );
}

#[test]
fn the_definitions_are_one_yaml_text() {
    let text = yaml(&own(ClusterRefs::Fixed));
    assert_eq!(text.matches("\nkind: CustomResourceDefinition\n").count(), 10);
    assert!(text.starts_with("---\napiVersion: apiextensions.k8s.io/v1\n"));
}
