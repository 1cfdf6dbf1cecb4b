//! What the hub is asked for, and when it is asked again.

use super::*;
use muster_contract::v2::cluster_setting::{LoadBalancerType, PlatformType, RoleSet};

fn create(spec: Value) -> CreateCluster {
    let plan = super::super::plan(&snapshot(spec));
    match plan.steps.as_slice() {
        [Step::Create(desired)] => *desired.clone(),
        other => panic!("{other:?}"),
    }
}

/// The change for a cluster that is as `row` shows it.
fn change(spec: Value) -> Option<UpdateCluster> {
    change_of(with_row(spec, "insufficient"))
}

fn change_of(snapshot: Snapshot) -> Option<UpdateCluster> {
    super::super::plan(&snapshot)
        .steps
        .into_iter()
        .find_map(|step| match step {
            Step::Update(change) => Some(*change),
            _ => None,
        })
}

#[test]
fn a_new_cluster_gets_name_release_size_and_platform() {
    let desired = create(json!({}));
    assert_eq!(
        (desired.name.as_str(), desired.base_dns_domain.as_deref()),
        ("blue", Some("example.com"))
    );
    assert_eq!(
        (
            desired.openshift_version.as_str(),
            desired.ocp_release_image.as_deref()
        ),
        ("4.21.28", Some(IMAGE))
    );
    assert_eq!(desired.cpu_architecture.map(|arch| arch.word()), Some("x86_64"));
    assert_eq!(
        (desired.control_plane_count, desired.user_managed_networking),
        (Some(3), Some(false))
    );
    assert_eq!(
        desired.platform.map(|platform| platform.r#type),
        Some(PlatformType::Baremetal)
    );
    assert_eq!(desired.hyperthreading, Some(RoleSet::All));
    assert_eq!(
        (
            desired.disk_encryption,
            desired.ignition_endpoint,
            desired.load_balancer,
            desired.http_proxy
        ),
        (None, None, None, None)
    );
    assert_eq!(
        (desired.machine_networks, desired.api_vips),
        (None, None),
        "what is not said is left to the hub"
    );
}

#[test]
fn one_host_has_platform_none_and_manages_its_own_network() {
    let one = |extra: Value| {
        let mut spec = json!({ "provisionRequirements": { "controlPlaneAgents": 1 } });
        spec.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let desired = create(spec);
        (desired.platform.unwrap().r#type, desired.user_managed_networking)
    };
    assert_eq!(one(json!({})), (PlatformType::None, Some(true)));
    assert_eq!(
        one(json!({ "platformType": "BareMetal" })),
        (PlatformType::None, Some(true))
    );
    assert_eq!(
        one(json!({ "platformType": "External" })),
        (PlatformType::External, Some(true))
    );
    let three = |extra: Value| {
        let desired = create(extra);
        (desired.platform.unwrap().r#type, desired.user_managed_networking)
    };
    assert_eq!(
        three(json!({ "platformType": "None" })),
        (PlatformType::None, Some(true))
    );
    assert_eq!(
        three(json!({ "networking": { "userManagedNetworking": true } })),
        (PlatformType::None, Some(true))
    );
    assert_eq!(
        three(json!({ "platformType": "VSphere" })),
        (PlatformType::Vsphere, Some(false))
    );
}

#[test]
fn everything_that_is_said_reaches_the_hub() {
    let desired = create(json!({
        "networking": { "machineNetwork": [{ "cidr": "192.0.2.0/24" }], "serviceNetwork": ["172.31.0.0/16"],
            "clusterNetwork": [{ "cidr": "10.132.0.0/14", "hostPrefix": 24 }], "networkType": "OVNKubernetes" },
        "apiVIPs": ["192.0.2.5"], "ingressVIP": "192.0.2.6", "sshPublicKey": " ssh-ed25519 key\n",
        "ntpSources": ["a", "b"], "proxy": { "httpProxy": "http://p:1" }, "mastersSchedulable": true,
        "controlPlane": { "name": "master", "hyperthreading": "Disabled" },
        "compute": [{ "name": "worker", "hyperthreading": "Enabled" }],
        "diskEncryption": { "enableOn": "masters", "mode": "tang", "tangServers": "[]" },
        "loadBalancer": { "type": "UserManaged" }, "ignitionEndpoint": { "url": "https://hub/x" },
    }));
    assert_eq!(
        desired.machine_networks.unwrap()[0].cidr.as_deref(),
        Some("192.0.2.0/24")
    );
    assert_eq!(desired.cluster_networks.unwrap()[0].host_prefix, Some(24));
    let vip =
        |vips: &Option<Vec<muster_contract::v2::network::Vip>>| vips.as_ref().unwrap()[0].ip.clone().unwrap();
    assert_eq!(
        (vip(&desired.api_vips), vip(&desired.ingress_vips)),
        ("192.0.2.5".into(), "192.0.2.6".into())
    );
    assert_eq!(
        (desired.ssh_public_key.as_deref(), desired.ntp_sources.as_deref()),
        (Some("ssh-ed25519 key"), Some("a,b"))
    );
    assert_eq!(
        (desired.http_proxy.as_deref(), desired.schedulable_masters),
        (Some("http://p:1"), Some(true))
    );
    assert_eq!(desired.hyperthreading, Some(RoleSet::Workers));
    assert_eq!(desired.disk_encryption.unwrap().enable_on, Some(RoleSet::Masters));
    assert_eq!(
        desired.load_balancer.unwrap().r#type,
        Some(LoadBalancerType::UserManaged)
    );
    assert_eq!(
        desired.ignition_endpoint.unwrap().url.as_deref(),
        Some("https://hub/x")
    );
}

#[test]
fn a_password_that_the_hub_does_not_show_is_sent_until_it_is_known() {
    let change_for = |shown: &str, known: bool| {
        let mut snapshot = with_row(
            json!({ "proxy": { "httpProxy": "http://u:new@p:1" } }),
            "insufficient",
        );
        snapshot.proxy_is_known = known;
        snapshot.row.as_mut().unwrap().view.http_proxy = shown.into();
        change_of(snapshot).and_then(|update| update.http_proxy)
    };
    assert_eq!(change_for("http://u:***@p:1", true), None);
    for (shown, known) in [
        ("http://u:***@p:1", false),
        ("http://u:***@other:1", true),
        ("", true),
    ] {
        assert_eq!(
            change_for(shown, known).as_deref(),
            Some("http://u:new@p:1"),
            "{shown} {known}"
        );
    }
}

#[test]
fn a_cluster_that_is_as_wanted_is_not_asked_for_again_and_hub_defaults_are_not_fought() {
    assert_eq!(change(json!({})), None);
    let known = Snapshot {
        pull_secret_is_known: false,
        proxy_is_known: false,
        ..with_row(json!({}), "insufficient")
    };
    let change = change_of(known).unwrap();
    assert_eq!(
        change,
        UpdateCluster {
            pull_secret: Some("{}".into()),
            ..UpdateCluster::default()
        }
    );
}

#[test]
fn changes_reach_the_hub_and_so_does_what_is_removed() {
    let size = change(json!({ "provisionRequirements": { "controlPlaneAgents": 5 } })).unwrap();
    assert_eq!(
        (size.control_plane_count, size.user_managed_networking),
        (Some(5), Some(false)),
        "they go together"
    );
    let mut snapshot = with_row(json!({}), "ready");
    let view = &mut snapshot.row.as_mut().unwrap().view;
    view.http_proxy = "http://p:1".into();
    view.ignition_endpoint =
        serde_json::from_value(json!({ "url": "https://hub/x", "ca_certificate": "QQ==" })).unwrap();
    view.disk_encryption = serde_json::from_value(json!({ "enable_on": "all", "mode": "tpmv2" })).unwrap();
    let change = change_of(snapshot).unwrap();
    assert_eq!(change.http_proxy.as_deref(), Some(""));
    let endpoint = change.ignition_endpoint.unwrap();
    assert_eq!(
        (endpoint.url.as_deref(), endpoint.ca_certificate.as_deref()),
        (Some(""), Some(""))
    );
    assert_eq!(change.disk_encryption.unwrap().enable_on, Some(RoleSet::None));
}

#[test]
fn settings_are_left_alone_while_the_cluster_installs_and_most_of_them_afterwards() {
    let spec = json!({ "sshPublicKey": "new", "provisionRequirements": { "controlPlaneAgents": 5 } });
    assert_eq!(change_of(with_row(spec.clone(), "installing")), None);
    let change = change_of(with_row(spec, "adding-hosts")).unwrap();
    assert_eq!(
        change,
        UpdateCluster {
            ssh_public_key: Some("new".into()),
            ..UpdateCluster::default()
        }
    );
}

#[test]
fn what_is_missing_is_named_and_distinguished_from_what_is_wrong() {
    let synced = |snapshot: &Snapshot| {
        let plan = super::super::plan(snapshot);
        (said(&shown(snapshot, &plan), type_::SPEC_SYNCED).1, plan.then)
    };
    let mut no_set = snapshot(json!({}));
    no_set.image_set = None;
    assert_eq!(synced(&no_set), ("BackendError".into(), Then::After(SOON)));
    let mut no_release = snapshot(json!({ "imageSetRef": null }));
    no_release.image_set = None;
    assert_eq!(synced(&no_release), ("InputError".into(), Then::Rest));
    let mut no_secret = snapshot(json!({}));
    no_secret.pull_secret = None;
    assert_eq!(synced(&no_secret), ("BackendError".into(), Then::After(SOON)));
    let mut no_key = snapshot(json!({}));
    no_key.pull_secret = Some(found(&[("other", "hunter2")]));
    assert_eq!(synced(&no_key), ("InputError".into(), Then::After(SOON)));
    let mut bad_image = snapshot(json!({}));
    bad_image.release = Some(Err(Refusal::Input("tells no version".into())));
    assert_eq!(synced(&bad_image), ("InputError".into(), Then::Rest));
    let shown = shown(&no_secret, &super::super::plan(&no_secret));
    for type_ in [
        type_::VALIDATED,
        type_::REQUIREMENTS_MET,
        type_::COMPLETED,
        type_::FAILED,
        type_::STOPPED,
    ] {
        says(&shown, type_, Truth::Unknown, "NotAvailable");
    }
    rests(no_secret.clone(), &super::super::plan(&no_secret));
}

#[test]
fn an_installed_cluster_needs_neither_release_nor_pull_secret() {
    let mut snapshot = snapshot(json!({ "imageSetRef": null }));
    snapshot.image_set = None;
    let mut installed = deployment();
    installed.spec.installed = true;
    installed.spec.pull_secret_ref = None;
    installed.spec.cluster_metadata = serde_json::from_value(json!({
        "clusterID": Uuid::from_u128(77), "infraID": "x", "adminKubeconfigSecretRef": { "name": "k" } }))
    .unwrap();
    snapshot.deployment = Some(Arc::new(installed.clone()));
    snapshot.pull_secret = None;
    let plan = super::super::plan(&snapshot);
    let [Step::Import(desired)] = plan.steps.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (
            desired.api_vip_dnsname.as_str(),
            desired.openshift_version.as_deref()
        ),
        ("api.blue.example.com", None)
    );
    assert_eq!(desired.openshift_cluster_id, Uuid::from_u128(77));
    let by_digest = Snapshot {
        release: Some(Err(Refusal::Input("nobody knows the version of a digest".into()))),
        deployment: Some(Arc::new(installed)),
        ..super::snapshot(json!({}))
    };
    let plan = super::super::plan(&by_digest);
    assert!(
        matches!(plan.steps.as_slice(), [Step::Import(desired)] if desired.openshift_version.is_none()),
        "{plan:?}"
    );
    snapshot.row = Some(row("adding-hosts"));
    snapshot.pull_secret_is_known = true;
    let plan = super::super::plan(&snapshot);
    says(
        &shown(&snapshot, &plan),
        type_::SPEC_SYNCED,
        Truth::True,
        "SyncOK",
    );
    rests(snapshot, &plan);
}

#[test]
fn credentials_of_an_installed_cluster_prove_that_it_is_one_after_a_restore_without_status() {
    let metadata = json!({ "clusterMetadata": { "clusterID": Uuid::from_u128(77), "infraID": ID,
        "adminKubeconfigSecretRef": { "name": "k" }, "adminPasswordSecretRef": { "name": "p" } } });
    let plan = super::super::plan(&snapshot(metadata));
    assert!(matches!(plan.steps.as_slice(), [Step::Import(_)]), "{plan:?}");
}

#[test]
fn overrides_of_people_and_mirrors_are_put_together() {
    let spec = json!({ "mirrorRegistryRef": { "namespace": "clusters", "name": "mirrors" } });
    let mut snapshot = with_row(spec, "insufficient");
    let conf = "[[registry]]\nlocation = \"quay.io/release\"\n[[registry.mirror]]\nlocation = \"local:5000/release\"\n";
    snapshot.mirrors = Some(found(&[("registries.conf", conf), ("ca-bundle.crt", "PEM\n")]));
    let mut install = AgentClusterInstall::clone(snapshot.install.as_ref().unwrap());
    install.annotations_mut().insert(
        annotation::INSTALL_CONFIG_OVERRIDES.into(),
        r#"{"fips":true}"#.into(),
    );
    snapshot.install = Some(Arc::new(install));
    let overrides = |snapshot: &Snapshot| {
        super::super::plan(snapshot)
            .steps
            .into_iter()
            .find_map(|step| match step {
                Step::Override(text) => Some(text),
                _ => None,
            })
    };
    let text = overrides(&snapshot).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let source = json!([{ "source": "quay.io/release", "mirrors": ["local:5000/release"] }]);
    assert_eq!(
        all,
        json!({ "fips": true, "imageDigestSources": source, "additionalTrustBundle": "PEM" })
    );
    snapshot.row.as_mut().unwrap().view.install_config_overrides = text;
    assert_eq!(overrides(&snapshot), None);
    for (broken, line) in [
        ("what = [", 1),
        ("[[registry]]\nlocation = \"a\"\nmirror = \"s3cr3t\"", 3),
    ] {
        snapshot.mirrors = Some(found(&[("registries.conf", broken)]));
        let plan = super::super::plan(&snapshot);
        let shown = shown(&snapshot, &plan);
        says(&shown, type_::SPEC_SYNCED, Truth::False, "InputError");
        let text = format!("\"registries.conf\" is not a list of registries in TOML (line {line})");
        assert!(
            format!("{:?}", shown.status).contains(&format!("{text:?}")[1..50]),
            "{text}"
        );
    }
}

#[test]
fn a_file_that_the_hub_refuses_is_named_with_its_config_map() {
    let config_maps = [("more".to_owned(), found(&[("readme.txt", "hello")]))].into();
    let origin = |file| super::super::manifest::origin(&config_maps, file);
    assert_eq!(origin("readme.txt"), r#"ConfigMap "more", key "readme.txt""#);
    assert_eq!(origin("gone.yaml"), r#"manifest "gone.yaml""#);
}

#[test]
fn ignored_checks_are_sent_as_lists_and_no_annotation_leaves_them_to_the_hub() {
    let mut install = install(json!({}));
    let key = annotation::IGNORED_CLUSTER_VALIDATIONS;
    assert_eq!(manifest::ignored(&install, key), "");
    for (text, sent) in [("", "[]"), ("a, b", r#"["a","b"]"#), (r#"["a"]"#, r#"["a"]"#)] {
        install.annotations_mut().insert(key.into(), text.into());
        assert_eq!(manifest::ignored(&install, key), sent);
    }
    let mut snapshot = with_row(json!({}), "insufficient");
    snapshot.install = Some(Arc::new(install));
    let plan = super::super::plan(&snapshot);
    let ignore = SetIgnoredValidations {
        cluster_validation_ids: Some(r#"["a"]"#.into()),
        host_validation_ids: Some(String::new()),
    };
    assert_eq!(plan.steps, [Step::Ignore(ignore.clone())]);
    let mut running = Snapshot {
        row: Some(row("adding-hosts")),
        ..snapshot.clone()
    };
    assert_eq!(
        super::super::plan(&running).steps,
        [Step::Ignore(ignore)],
        "hosts that join a running cluster are checked, too"
    );
    let view = &mut running.row.as_mut().unwrap().view;
    view.ignored_cluster_validations = r#"["a"]"#.into();
    let plan = super::super::plan(&running);
    rests(running, &plan);
    snapshot.row = Some(row("installing"));
    let steps = super::super::plan(&snapshot).steps;
    assert!(
        !steps.iter().any(|step| matches!(step, Step::Ignore(_))),
        "{steps:?}"
    );
}

#[test]
fn manifests_become_those_of_the_config_maps() {
    use crate::controller::cluster_deployment::snapshot::Manifest;
    use muster_contract::v2::manifest::ManifestFolder::{Manifests, Openshift};
    let mut snapshot = with_row(
        json!({ "manifestsConfigMapRefs": [{ "name": "one" }, { "name": "two" }] }),
        "ready",
    );
    let plan = |snapshot: &Snapshot| super::super::plan(snapshot);
    says(
        &shown(&snapshot, &plan(&snapshot)),
        type_::SPEC_SYNCED,
        Truth::False,
        "BackendError",
    );
    snapshot
        .config_maps
        .insert("one".into(), found(&[("a.yaml", "1"), ("b.yaml", "2")]));
    snapshot
        .config_maps
        .insert("two".into(), found(&[("c.yaml", "3")]));
    let kept = |folder, content: &str| Manifest {
        folder,
        content: content.into(),
    };
    let kept = [
        ("a.yaml", kept(Openshift, "1")),
        ("b.yaml", kept(Openshift, "old")),
        ("d.yaml", kept(Manifests, "4")),
    ];
    let kept = kept
        .into_iter()
        .map(|(name, manifest)| (name.to_owned(), manifest))
        .collect();
    snapshot.row.as_mut().unwrap().manifests = Some(kept);
    let put = |file: &str, content: &str| Step::PutManifest(file.into(), content.into());
    let steps = [
        Step::DeleteManifest(Manifests, "d.yaml".into()),
        put("b.yaml", "2"),
        put("c.yaml", "3"),
        Step::ManifestsAreDone,
    ];
    assert_eq!(plan(&snapshot).steps, steps);
    snapshot
        .config_maps
        .insert("two".into(), found(&[("a.yaml", "3")]));
    says(
        &shown(&snapshot, &plan(&snapshot)),
        type_::SPEC_SYNCED,
        Truth::False,
        "InputError",
    );
}

#[test]
fn a_label_becomes_tags_that_the_hub_takes() {
    let mut snapshot = snapshot(json!({}));
    let mut install = AgentClusterInstall::clone(snapshot.install.as_ref().unwrap());
    install
        .labels_mut()
        .insert(crate::crd::keys::label::CONSUMER.into(), "team-a.b".into());
    snapshot.install = Some(Arc::new(install));
    let plan = super::super::plan(&snapshot);
    let [Step::Create(desired)] = plan.steps.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(desired.tags.as_deref(), Some("team_a_b"));
}
