//! What is to be said about an AgentServiceConfig, and about that of a hosted cluster. Pure.

use crate::crd::agent_service_config::{
    AgentServiceConfigSpec, DEPLOYMENTS_HEALTHY, NAME, RECONCILE_COMPLETED, reason,
};
use crate::crd::condition::{Finding, set_service};
use crate::crd::keys::{self, annotation, finalizer};
use crate::crd::{AgentServiceConfig, HypershiftAgentServiceConfig};
use crate::runtime::merge;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::Value;

/// What to change in its status. The operator leaves one that another service manages to that service.
pub fn plan(config: &AgentServiceConfig, hub_is_there: bool, now: Timestamp) -> Option<Value> {
    let is_anothers = keys::has_finalizer(config, finalizer::AGENT_SERVICE_CONFIG);
    if config.name_any() != NAME || is_anothers || config.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let before = config.status.clone().unwrap_or_default();
    let mut after = before.clone();
    set_service(&mut after.conditions, finding(config), now);
    set_service(&mut after.conditions, health(hub_is_there), now);
    merge::diff(&before, &after)
}

/// The same for that of a hosted cluster.
pub fn hosted(config: &HypershiftAgentServiceConfig, now: Timestamp) -> Option<Value> {
    let of_service = |finalizer: &String| finalizer.ends_with("agent-install.openshift.io/ai-deprovision");
    let is_anothers = config.finalizers().iter().any(of_service);
    if is_anothers || config.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let before = config.status.clone().unwrap_or_default();
    let mut after = before.clone();
    let secret = &config.spec.kubeconfig_secret_ref.name;
    let message = format!(
        "This operator does not serve the API of another cluster, so this object has no effect. Apply the output \
         of muster operator crds to the hosted cluster. Then run an operator for it: muster operator run \
         --kubeconfig FILE --hub URL, with the kubeconfig from Secret {secret:?}. Then delete this object."
    );
    let finding = Finding::new(
        RECONCILE_COMPLETED,
        false,
        reason::HOSTED_CLUSTER_NOT_SERVED,
        message,
    );
    set_service(&mut after.conditions, finding, now);
    merge::diff(&before, &after)
}

/// People and policies wait for this one.
fn health(hub_is_there: bool) -> Finding {
    match hub_is_there {
        true => Finding::new(
            DEPLOYMENTS_HEALTHY,
            true,
            reason::DEPLOYMENT_SUCCEEDED,
            "The hub answers.",
        ),
        false => Finding::new(
            DEPLOYMENTS_HEALTHY,
            false,
            reason::DEPLOYMENT_FAILURE,
            "The hub does not answer.",
        ),
    }
}

fn finding(config: &AgentServiceConfig) -> Finding {
    let settings = ignored(&config.spec).into_iter();
    let settings = settings.map(|(field, instead)| (field.to_owned(), instead));
    let ignored: Vec<_> = settings.chain(ignored_annotations(config)).collect();
    if ignored.is_empty() {
        return Finding::new(
            RECONCILE_COMPLETED,
            true,
            reason::RECONCILE_SUCCEEDED,
            "There is nothing to apply: whatever installs the hub creates its volumes.",
        );
    }
    let list: Vec<String> = ignored
        .into_iter()
        .map(|(field, instead)| format!("{field} ({instead})"))
        .collect();
    let message = format!(
        "These settings have no effect here: {}. Set them as named, then remove them from this object.",
        list.join(", ")
    );
    Finding::new(RECONCILE_COMPLETED, false, reason::SETTINGS_NOT_APPLIED, message)
}

/// Settings that are made, each with what does the same. Volumes are not among them: nobody can leave them out.
fn ignored(spec: &AgentServiceConfigSpec) -> Vec<(&'static str, &'static str)> {
    let AgentServiceConfigSpec {
        filesystem_storage: _,
        database_storage: _,
        image_storage: _,
        mirror_registry_ref,
        os_images,
        must_gather_images,
        ipxe_http_route,
        unauthenticated_registries,
        os_image_ca_cert_ref,
        os_image_additional_params_ref,
        ingress,
    } = spec;
    let all = [
        (
            !os_images.is_empty(),
            "osImages",
            "hub.osImages of the chart, or --os-images of muster serve",
        ),
        (
            mirror_registry_ref.is_some(),
            "mirrorRegistryRef",
            "mirrorRegistryRef of each InfraEnv and AgentClusterInstall",
        ),
        (
            ipxe_http_route == "enabled",
            "iPXEHTTPRoute",
            "hub.baseUrl of the chart, or --base-url of muster serve, with http://",
        ),
        (
            !must_gather_images.is_empty(),
            "mustGatherImages",
            "--must-gather-images of muster serve, in hub.extraArgs of the chart",
        ),
        (
            !unauthenticated_registries.is_empty(),
            "unauthenticatedRegistries",
            "Muster does not check pull secrets against a list of registries",
        ),
        (
            os_image_ca_cert_ref.is_some(),
            "OSImageCACertRef",
            "serve the images from a host with a public certificate, or over http with their sha256",
        ),
        (
            os_image_additional_params_ref.is_some(),
            "OSImageAdditionalParamsRef",
            "write the parameters into the addresses of the images",
        ),
        (ingress.is_some(), "ingress", "ingress of the chart"),
    ];
    let made = all.into_iter().filter(|(is_made, ..)| *is_made);
    made.map(|(_, field, instead)| (field, instead)).collect()
}

/// Annotations by which another service is set up.
fn ignored_annotations(config: &AgentServiceConfig) -> impl Iterator<Item = (String, &'static str)> {
    let annotations = config.annotations().iter();
    annotations.filter_map(|(key, value)| Some((format!("annotation {key}"), instead_of(key, value)?)))
}

fn instead_of(key: &str, value: &str) -> Option<&'static str> {
    if key == annotation::IMAGE_SERVICE {
        return (value != "true").then_some("the hub always serves images; you do not have to boot them");
    }
    Some(match key.strip_prefix(annotation::SERVICE_PREFIX)? {
        "assisted-service-configmap" => "flags of muster serve, in hub.extraArgs of the chart",
        "assisted-image-service-skip-verify-tls" => {
            "serve the images from a host with a public certificate, or over http with their sha256"
        }
        "assisted-service-allow-unrestricted-image-pulls" => {
            "Muster does not check pull secrets against a list of registries"
        }
        "assisted-service-pvc-prefix" => "persistence.existingClaim of the chart",
        "assisted-service-secrets-prefix" => "database.existingSecret of the chart",
        _ => "Muster has no such setting",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::agent_service_config::{MustGatherImage, OsImage};
    use serde_json::json;

    fn config() -> AgentServiceConfig {
        AgentServiceConfig::new(NAME, AgentServiceConfigSpec::default())
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    #[test]
    fn settings_without_effect_are_named_with_what_to_do_instead() {
        let mut one = config();
        one.spec.os_images = vec![OsImage::default()];
        one.spec.ipxe_http_route = "enabled".into();
        let shown = plan(&one, true, now()).unwrap();
        let said = &shown["conditions"][0];
        assert_eq!(
            (&said["type"], &said["status"], &said["reason"]),
            (
                &json!("ReconcileCompleted"),
                &json!("False"),
                &json!("SettingsNotApplied")
            )
        );
        let message = said["message"].as_str().unwrap();
        for word in ["osImages", "hub.osImages", "--os-images", "iPXEHTTPRoute"] {
            assert!(message.contains(word), "{message}");
        }
        assert!(!message.contains("mirrorRegistryRef"), "{message}");
        one.status = serde_json::from_value(shown).unwrap();
        assert_eq!(plan(&one, true, now()), None, "said once");
    }

    #[test]
    fn images_that_gather_logs_are_named_with_the_flag_that_takes_them() {
        let mut one = config();
        one.spec.must_gather_images = vec![MustGatherImage::default()];
        let shown = plan(&one, true, now()).unwrap();
        let message = shown["conditions"][0]["message"].as_str().unwrap();
        for word in ["mustGatherImages", "--must-gather-images", "hub.extraArgs"] {
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn annotations_that_set_up_another_service_are_named_with_what_to_do_instead() {
        let message_of = |key: &str, value: &str| {
            let mut one = config();
            one.annotations_mut().insert(key.into(), value.into());
            let shown = plan(&one, true, now()).unwrap();
            shown["conditions"][0]["message"].as_str().unwrap().to_owned()
        };
        for name in [
            "assisted-service-configmap",
            "assisted-image-service-skip-verify-tls",
            "assisted-service-allow-unrestricted-image-pulls",
            "assisted-service-pvc-prefix",
            "assisted-service-secrets-prefix",
            "something-new",
        ] {
            let key = format!("unsupported.agent-install.openshift.io/{name}");
            assert!(
                message_of(&key, "x").contains(&format!("annotation {key} (")),
                "{name}"
            );
        }
        let images = "agent-install.openshift.io/enable-image-service";
        assert!(message_of(images, "false").contains(images));
        assert!(!message_of(images, "true").contains(images), "it is so anyway");
        assert!(!message_of("example.com/mine", "x").contains("mine"));
    }

    #[test]
    fn that_of_a_hosted_cluster_says_what_to_run_instead() {
        let mut one = HypershiftAgentServiceConfig::new("hosted", Default::default());
        one.spec.kubeconfig_secret_ref.name = "hosted-kubeconfig".into();
        let shown = hosted(&one, now()).unwrap();
        let said = &shown["conditions"][0];
        assert_eq!(
            (&said["type"], &said["status"]),
            (&json!("ReconcileCompleted"), &json!("False"))
        );
        let message = said["message"].as_str().unwrap();
        for word in ["--kubeconfig", "hosted-kubeconfig"] {
            assert!(message.contains(word), "{message}");
        }
        one.status = serde_json::from_value(shown).unwrap();
        assert_eq!(hosted(&one, now()), None, "said once");
        one.status = None;
        one.metadata.finalizers = Some(vec![finalizer::AGENT_SERVICE_CONFIG.into()]);
        assert_eq!(hosted(&one, now()), None, "that of another service");
    }

    #[test]
    fn whether_the_hub_answers_is_said_beside_it() {
        let mut one = config();
        for (there, status) in [(true, "True"), (false, "False"), (true, "True")] {
            let shown = plan(&one, there, now()).unwrap();
            let said = &shown["conditions"][1];
            assert_eq!(
                (&said["type"], &said["status"]),
                (&json!("DeploymentsHealthy"), &json!(status))
            );
            one.status = serde_json::from_value(shown).unwrap();
        }
        assert_eq!(plan(&one, true, now()), None, "said once");
    }

    #[test]
    fn volumes_alone_are_no_complaint() {
        let mut one = config();
        one.spec.filesystem_storage = json!({ "accessModes": ["ReadWriteOnce"] });
        one.spec.ipxe_http_route = "disabled".into();
        let said = plan(&one, true, now()).unwrap();
        assert_eq!(said["conditions"][0]["status"], "True");
    }

    #[test]
    fn one_of_another_name_or_of_another_service_is_left_alone() {
        let mut other = config();
        other.metadata.name = Some("other".into());
        assert_eq!(plan(&other, true, now()), None);
        let mut anothers = config();
        anothers.metadata.finalizers = Some(vec![finalizer::AGENT_SERVICE_CONFIG.into()]);
        assert_eq!(plan(&anothers, true, now()), None);
    }
}
