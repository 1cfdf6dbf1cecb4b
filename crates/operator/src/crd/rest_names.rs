//! The hub's texts name fields of REST; people who write Kubernetes objects know them under other names.

/// Field of REST → field of an object, or where else people say it.
const NAMES: &[(&str, &str)] = &[
    ("additional_ntp_source", "ntpSources"),
    ("additional_ntp_sources", "additionalNTPSources"),
    ("additional_trust_bundle", "additionalTrustBundle"),
    ("api_vip_dnsname", "baseDomain"),
    ("api_vips", "apiVIPs"),
    ("base_dns_domain", "baseDomain"),
    ("ca_certificate", "caCertificateReference"),
    ("certificate_verification", "certificateVerification"),
    ("cloud_controller_manager", "cloudControllerManager"),
    ("cluster_id", "clusterRef"),
    ("cluster_network_cidr", "clusterNetwork"),
    ("cluster_network_host_prefix", "hostPrefix"),
    ("cluster_networks", "clusterNetwork"),
    ("control_plane_count", "controlPlaneAgents"),
    ("cpu_architecture", "cpuArchitecture"),
    ("disk_encryption", "diskEncryption"),
    ("disks_selected_config", "installation_disk_id"),
    ("enable_on", "enableOn"),
    ("fencing_credentials", "fencingCredentialsSecretRef"),
    // Of a ConfigMap with manifests.
    ("file_name", "key"),
    ("high_availability_mode", "controlPlaneAgents"),
    ("host_name", "hostname"),
    ("host_prefix", "hostPrefix"),
    ("host_role", "role"),
    ("http_proxy", "httpProxy"),
    ("https_proxy", "httpsProxy"),
    ("ignition_config_override", "ignitionConfigOverride"),
    ("ignition_config_overrides", "ignitionConfigOverrides"),
    ("ignition_endpoint", "ignitionEndpoint"),
    ("ignition_endpoint_http_headers", "ignitionEndpointHTTPHeaders"),
    ("ignition_endpoint_token", "ignitionEndpointTokenReference"),
    ("image_type", "imageType"),
    ("ingress_vips", "ingressVIPs"),
    ("install_config_overrides", "install-config-overrides"),
    ("installer_args", "installerArgs"),
    ("ipxe_script_type", "ipxeScriptType"),
    ("kernel_arguments", "kernelArguments"),
    ("load_balancer", "loadBalancer"),
    ("mac_address", "macAddress"),
    ("machine_config_pool_name", "machineConfigPool"),
    ("machine_network_cidr", "machineNetwork"),
    ("machine_networks", "machineNetwork"),
    ("network_discovery_delay_seconds", "networkDiscoveryDelaySeconds"),
    ("network_type", "networkType"),
    ("no_proxy", "noProxy"),
    ("node_labels", "nodeLabels"),
    ("ntp_sources", "ntpSources"),
    ("ocp_release_image", "imageSetRef"),
    ("openshift_cluster_id", "clusterID"),
    ("openshift_version", "osImageVersion"),
    ("platform_name", "platformName"),
    ("pull_secret", "pullSecretRef"),
    ("requested_hostname", "hostname"),
    ("schedulable_masters", "mastersSchedulable"),
    ("service_network_cidr", "serviceNetwork"),
    ("service_networks", "serviceNetwork"),
    ("ssh_authorized_key", "sshAuthorizedKey"),
    ("ssh_public_key", "sshPublicKey"),
    ("static_network_config", "nmStateConfigLabelSelector"),
    ("tang_servers", "tangServers"),
    ("user_managed_networking", "userManagedNetworking"),
];

/// These are words like others unless they are quoted as a field.
const QUOTED: &[(&str, &str)] = &[
    ("args", "installerArgs"),
    ("config", "ignitionConfigOverrides"),
    ("content", "value"),
];

/// A text of the hub as people read it beside their objects.
pub fn in_kubernetes(text: &str) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (before, from) = rest.split_at(start);
        let length = from.find(|letter| !is_part(letter)).unwrap_or(from.len());
        let (word, after) = from.split_at(length);
        translated.push_str(before);
        rest = after;
        if translated.ends_with('`')
            && after.starts_with(['`', '.'])
            && let Some((_, name)) = QUOTED.iter().find(|(rest, _)| *rest == word)
        {
            translated.push_str(name);
            rest = place(after, &mut translated);
            continue;
        }
        match NAMES.binary_search_by_key(&word, |(rest, _)| rest) {
            Ok(found) => {
                translated.push_str(NAMES[found].1);
                rest = place(after, &mut translated);
            }
            Err(_) => translated.push_str(word),
        }
    }
    translated.push_str(rest);
    translated
}

fn is_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}

/// `.0.ip` of REST is `[0]` of a list of addresses; `.0` followed by another field is that field of the entry.
fn place<'a>(after: &'a str, translated: &mut String) -> &'a str {
    let Some(from) = after.strip_prefix('.') else {
        return after;
    };
    let length = from
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(from.len());
    if length == 0 {
        return after;
    }
    let (index, rest) = from.split_at(length);
    translated.push_str(&format!("[{index}]"));
    match rest.strip_prefix(".ip") {
        Some(end) if !end.starts_with(is_part) => end,
        Some(_) | None => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::path::Path;

    fn of_repository(path: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
    }

    #[test]
    fn names_and_places_are_written_as_objects_have_them() {
        for (hub, translated) in [
            (
                "`api_vips` cannot be set while you manage the network yourself.",
                "`apiVIPs` cannot be set while you manage the network yourself.",
            ),
            (
                "`api_vips.1.ip` is bad: use ingress_vips",
                "`apiVIPs[1]` is bad: use ingressVIPs",
            ),
            ("proxy.http_proxy is bad", "proxy.httpProxy is bad"),
            (
                "`cluster_networks.0.host_prefix` is 3",
                "`clusterNetwork[0].hostPrefix` is 3",
            ),
            ("set base_dns_domain.", "set baseDomain."),
            (
                "`args` has the flag `--x`: leave args out",
                "`installerArgs` has the flag `--x`: leave args out",
            ),
            ("`args.1` is bad", "`installerArgs[1]` is bad"),
            (
                "`config` is not JSON, a config is",
                "`ignitionConfigOverrides` is not JSON, a config is",
            ),
            ("`file_name` cannot be \"a.txt\"", "`key` cannot be \"a.txt\""),
            ("`content` is not base64", "`value` is not base64"),
            ("`api_vip_dnsname` is no name", "`baseDomain` is no name"),
            (
                "my_api_vips /etc/api_vips-x api.2 näme",
                "my_api_vips /etc/api_vips-x api.2 näme",
            ),
            ("", ""),
        ] {
            assert_eq!(in_kubernetes(hub), translated);
            assert_eq!(
                in_kubernetes(translated),
                translated,
                "translated once more it stays the same"
            );
        }
    }

    #[test]
    fn every_name_is_one_that_an_object_has() {
        let folders = ["deploy/crds", "deploy/crds-hive"];
        let files = folders
            .iter()
            .flat_map(|folder| std::fs::read_dir(of_repository(folder)).unwrap());
        let crds: String = files
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        // An annotation, a key of a Secret, and keys of ConfigMaps.
        let elsewhere = [
            "install_config_overrides",
            "certificate_verification",
            "file_name",
        ];
        for (_, name) in NAMES.iter().filter(|(rest, _)| !elsewhere.contains(rest)) {
            assert!(crds.contains(&format!(" {name}:")), "{name}");
        }
    }

    /// What operators never set, so that the hub never refuses it.
    const NEVER_SET: &[&str] = &[
        "api_vip_dns_name",
        "disks_skip_formatting",
        "olm_operators",
        "operator_bundles",
        "os_stream",
        "rendezvous_ip",
        "vip_dhcp_allocation",
    ];

    #[test]
    fn every_field_that_the_hub_may_refuse_has_a_name_here() {
        let text = std::fs::read_to_string(of_repository("docs/openapi.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        // They are the same in both.
        let same = ["hyperthreading", "name", "platform", "proxy", "tags", "folder"];
        for request in [
            "CreateCluster",
            "UpdateCluster",
            "ImportCluster",
            "CreateInfraEnv",
            "UpdateInfraEnv",
            "UpdateHost",
            "SetInstallerArgs",
            "SetHostIgnition",
            "CreateManifest",
        ] {
            let fields = document["components"]["schemas"][request]["properties"]
                .as_object()
                .unwrap_or_else(|| panic!("{request} has no properties"));
            for field in fields.keys().filter(|field| !same.contains(&field.as_str())) {
                let known = NAMES.iter().chain(QUOTED).any(|(rest, _)| rest == field);
                assert!(known || NEVER_SET.contains(&field.as_str()), "{request}.{field}");
            }
        }
        assert!(NAMES.is_sorted(), "the table is searched by halves");
    }
}
