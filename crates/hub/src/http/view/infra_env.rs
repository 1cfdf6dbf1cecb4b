//! How an InfraEnv looks on the wire.

use crate::Hub;
use muster_contract::time::DateMs;
use muster_contract::v2::infra_env::{InfraEnvView, Proxy};
use muster_domain::infra_env::InfraEnv;
use muster_domain::input::proxy;

pub fn full(hub: &Hub, infra_env: &InfraEnv) -> InfraEnvView {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    InfraEnvView {
        kind: "InfraEnv".into(),
        id: infra_env.id.0,
        href: format!("{}/infra-envs/{}", muster_contract::v2::BASE, infra_env.id),
        name: infra_env.name.clone(),
        r#type: infra_env.image_type.word().into(),
        cluster_id: infra_env.cluster.map(|cluster| cluster.0),
        openshift_version: infra_env.openshift_version.clone(),
        cpu_architecture: infra_env.cpu_architecture.clone().into(),
        os_stream: String::new(),
        proxy: Some(Proxy {
            http_proxy: some(&proxy::shown(&infra_env.proxy.http)),
            https_proxy: some(&proxy::shown(&infra_env.proxy.https)),
            no_proxy: some(&infra_env.proxy.no),
        }),
        additional_ntp_sources: infra_env.additional_ntp_sources.clone(),
        ntp_sources: infra_env.ntp_sources.clone(),
        ssh_authorized_key: infra_env.ssh_authorized_key.clone(),
        pull_secret_set: !infra_env.pull_secret.is_empty(),
        static_network_config: infra_env.static_network_config.clone(),
        kernel_arguments: infra_env.kernel_arguments.clone(),
        ignition_config_override: infra_env.ignition_config_override.clone(),
        additional_trust_bundle: infra_env.additional_trust_bundle.clone(),
        network_discovery_delay_seconds: infra_env.network_discovery_delay_seconds,
        rendezvous_ip: infra_env.rendezvous_ip.clone(),
        download_url: hub.settings.download_url(infra_env),
        size_bytes: None,
        generator_version: String::new(),
        expires_at: DateMs::default(),
        user_name: infra_env.user.clone(),
        org_id: infra_env.org.clone(),
        email_domain: infra_env.email_domain.clone(),
        created_at: infra_env.created_at.into(),
        updated_at: infra_env.updated_at.into(),
    }
}
