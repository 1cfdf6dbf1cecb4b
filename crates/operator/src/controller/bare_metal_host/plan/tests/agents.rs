//! What Agents get from their BareMetalHosts.

use super::*;
use crate::crd::metal3::{Bmc, RootDeviceHints};
use crate::crd::reference::ClusterRef;
use crate::crd::{AgentClusterInstall, ClusterDeployment};
use crate::runtime::secret::Found;

fn free() -> Agent {
    agent("known-unbound", "")
}

fn given(annotations: &[(&str, &str)], agent: Agent) -> Agent {
    let snapshot = live(annotated(booted_live("provisioned"), annotations), Some(agent));
    (**reconciled(&snapshot).agent.as_ref().unwrap()).clone()
}

#[test]
fn an_agent_is_approved_and_knows_its_machine() {
    let mut fresh = free();
    fresh.spec.approved = false;
    fresh.metadata.labels = None;
    let agent = given(&[], fresh);
    assert!(agent.spec.approved);
    assert_eq!(agent.labels()[label::BARE_METAL_HOST], "rack-1");
}

#[test]
fn what_is_written_on_the_machine_is_copied_and_what_is_not_stays() {
    let mut own = free();
    own.spec.hostname = "mine".into();
    own.spec.role = "worker".into();
    let agent = given(
        &[
            (annotation::BMAC_ROLE, "master"),
            (annotation::BMAC_MACHINE_CONFIG_POOL, "infra"),
            (annotation::BMAC_INSTALLER_ARGS, "[]"),
            (annotation::BMAC_IGNITION_OVERRIDES, "{}"),
            ("bmac.agent-install.openshift.io.agent-label.zone", "north"),
            ("bmac.agent-install.openshift.io.node-label.example.com/rack", "7"),
        ],
        own,
    );
    let spec = &agent.spec;
    assert_eq!((spec.hostname.as_str(), spec.role.as_str()), ("mine", "master"));
    assert_eq!(
        (spec.machine_config_pool.as_str(), spec.installer_args.as_str()),
        ("infra", "[]")
    );
    assert_eq!(spec.ignition_config_overrides, "{}");
    assert_eq!(agent.labels()["zone"], "north");
    assert_eq!(spec.node_labels, [("example.com/rack".into(), "7".into())].into());
}

#[test]
fn a_label_that_cannot_be_one_is_complained_about_and_the_rest_is_done() {
    let host = annotated(
        booted_live("provisioned"),
        &[
            ("bmac.agent-install.openshift.io.agent-label.zone", "the north"),
            (annotation::BMAC_ROLE, "worker"),
        ],
    );
    let snapshot = live(host, Some(free()));
    assert_eq!(mistakes(&plan(&snapshot)).len(), 1);
    assert_eq!(reconciled(&snapshot).agent.as_ref().unwrap().spec.role, "worker");
}

#[test]
fn node_labels_are_those_of_the_machine_and_of_the_infra_env_and_nobody_fights() {
    let mut infra_env = infra_env(SignedDuration::from_hours(1));
    for (key, value) in [("zone", "north"), ("row", "4"), ("rack", "7")] {
        infra_env.labels_mut().insert(key.into(), value.into());
    }
    infra_env
        .annotations_mut()
        .insert(annotation::PROPAGATE_NODE_LABELS.into(), "zone,row,rack".into());
    let mut agent = free();
    for (key, value) in [("zone", "north"), ("row", "4"), ("rack", "7"), ("stray", "x")] {
        agent.spec.node_labels.insert(key.into(), value.into());
    }
    agent
        .annotations_mut()
        .insert(annotation::INHERITED_NODE_LABELS.into(), "rack,row,zone".into());
    let own = [
        ("bmac.agent-install.openshift.io.node-label.zone", "south"),
        ("bmac.agent-install.openshift.io.node-label.rack", "7"),
    ];
    let agent = given(&own, agent);
    let expected: BTreeMap<String, String> = [("zone", "south"), ("row", "4"), ("rack", "7")]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    assert_eq!(agent.spec.node_labels, expected);
    // The Agent's own controller, with what is noted now.
    use crate::controller::agent::plan::metadata;
    let inherited = metadata::inherit(&infra_env, &agent.spec.node_labels, &metadata::noted(&agent));
    assert_eq!(inherited.node_labels, expected);
    assert_eq!(inherited.values.into_keys().collect::<Vec<_>>(), ["rack", "row"]);
}

fn hints(value: Value) -> BareMetalHost {
    let mut host = booted_live("provisioned");
    host.spec.root_device_hints = Some(serde_json::from_value::<RootDeviceHints>(value).unwrap());
    host
}

fn chosen(hint: Value, agent: Agent) -> String {
    let snapshot = reconciled(&live(hints(hint), Some(agent)));
    snapshot.agent.as_ref().unwrap().spec.installation_disk_id.clone()
}

fn with_disks() -> Agent {
    let mut agent = free();
    let disks = &mut agent.status.as_mut().unwrap().inventory.disks;
    disks[0].installation_eligibility.eligible = false;
    let mut large = disk("sdc");
    large.size_bytes = 4_000_000_000_000;
    large.drive_type = "HDD".into();
    large.by_path = "/dev/disk/by-path/pci-1".into();
    large.hctl = "1:0:0:0".into();
    large.model = "Barracuda 4T".into();
    large.vendor = "Seagate".into();
    large.serial = "S3".into();
    large.wwn = "0x3".into();
    disks.push(large);
    agent
}

#[test]
fn each_hint_finds_its_disk() {
    let cases = [
        json!({ "deviceName": "/dev/sdc" }),
        json!({ "deviceName": "/dev/disk/by-path/pci-1" }),
        json!({ "hctl": "1:0:0:0" }),
        json!({ "model": "racuda" }),
        json!({ "vendor": "Sea" }),
        json!({ "serialNumber": "S3" }),
        json!({ "minSizeGigabytes": 4000 }),
        json!({ "wwn": "0x3" }),
        json!({ "rotational": true }),
        json!({ "rotational": true, "vendor": "Sea", "wwnWithExtension": "not in inventories" }),
        // As templates write what nobody filled in.
        json!({ "deviceName": "", "hctl": "", "model": "", "vendor": "", "serialNumber": "S3", "wwn": "",
            "wwnWithExtension": "", "minSizeGigabytes": 0 }),
    ];
    for hint in cases {
        assert_eq!(chosen(hint.clone(), with_disks()), "sdc", "{hint}");
    }
    for nothing in [
        json!({ "deviceName": "" }),
        json!({ "serialNumber": "", "wwn": "", "wwnVendorExtension": "", "minSizeGigabytes": 0 }),
    ] {
        assert_eq!(chosen(nothing.clone(), with_disks()), "", "{nothing}");
    }
    assert_eq!(chosen(json!({ "rotational": false }), with_disks()), "sdb");
    assert_eq!(
        chosen(json!({ "minSizeGigabytes": 500 }), with_disks()),
        "sdb",
        "the first that fits"
    );
}

#[test]
fn hints_that_fit_no_disk_never_choose_another() {
    let cases = [
        json!({ "deviceName": "/dev/sda" }),
        json!({ "deviceName": "/dev/sdz" }),
        json!({ "minSizeGigabytes": 4001 }),
        json!({ "serialNumber": "S" }),
        json!({ "rotational": true, "vendor": "Intel" }),
        json!({ "wwnWithExtension": "0x1" }),
        json!({ "wwnWithExtension": "0x1", "deviceName": "" }),
    ];
    for hint in cases {
        assert_eq!(
            chosen(hint.clone(), with_disks()),
            "/dev/not-found-by-hints",
            "{hint}"
        );
    }
}

#[test]
fn a_disk_with_several_ways_to_it_is_preferred_and_a_choice_that_fits_stays() {
    let mut agent = with_disks();
    agent.spec.installation_disk_id = "sdc".into();
    assert_eq!(chosen(json!({ "minSizeGigabytes": 1 }), agent.clone()), "sdc");
    let mut many_ways = disk("dm-0");
    many_ways.drive_type = "Multipath".into();
    agent.status.as_mut().unwrap().inventory.disks.push(many_ways);
    assert_eq!(chosen(json!({ "minSizeGigabytes": 1 }), agent), "dm-0");
}

#[test]
fn without_hints_the_choice_is_left_to_others_and_with_hints_a_path_gives_way() {
    let mut agent = with_disks();
    agent.spec.installation_disk_path = "/dev/sdb".into();
    assert_eq!(given(&[], agent.clone()).spec, agent.spec);
    assert_eq!(chosen(json!({}), agent.clone()), "");
    let snapshot = reconciled(&live(hints(json!({ "wwn": "0x3" })), Some(agent)));
    let spec = &snapshot.agent.as_ref().unwrap().spec;
    assert_eq!(
        (
            spec.installation_disk_id.as_str(),
            spec.installation_disk_path.as_str()
        ),
        ("sdc", "")
    );
}

fn naming(cluster: &str, agent: Agent) -> Snapshot {
    let host = annotated(
        booted_live("provisioned"),
        &[(annotation::BMAC_CLUSTER_REFERENCE, cluster)],
    );
    let mut snapshot = live(host, Some(agent));
    let mut deployment = ClusterDeployment::new("blue", Default::default());
    deployment.spec.cluster_install_ref = serde_json::from_value(json!({
        "group": "extensions.hive.openshift.io", "version": "v1beta1", "kind": "AgentClusterInstall", "name": "blue",
    }))
    .unwrap();
    snapshot.deployment = Some(Arc::new(deployment));
    snapshot.install = Some(Arc::new(AgentClusterInstall::default()));
    snapshot
}

fn reference(snapshot: &Snapshot) -> Option<ClusterRef> {
    snapshot
        .agent
        .as_ref()
        .unwrap()
        .spec
        .cluster_deployment_name
        .clone()
}

fn blue() -> Option<ClusterRef> {
    Some(ClusterRef {
        name: "blue".into(),
        namespace: "clusters".into(),
    })
}

fn lent(state: &str) -> Agent {
    let mut agent = agent(state, "");
    agent.spec.cluster_deployment_name = blue();
    agent
}

#[test]
fn a_cluster_that_is_named_gets_the_host_and_an_empty_name_takes_it_back() {
    assert_eq!(reference(&reconciled(&naming("clusters/blue", free()))), blue());
    assert_eq!(reference(&reconciled(&naming("", lent("known")))), None);
    let nobody = live(booted_live("provisioned"), Some(lent("known")));
    assert_eq!(reference(&reconciled(&nobody)), blue(), "not named: not touched");
}

#[test]
fn a_name_that_cannot_be_one_is_complained_about() {
    for wrong in ["blue", "clusters/", "/blue", "a/b/c"] {
        let snapshot = naming(wrong, free());
        assert_eq!(mistakes(&plan(&snapshot)).len(), 1, "{wrong}");
        assert_eq!(reference(&reconciled(&snapshot)), None);
    }
    let mut early = naming("clusters/blue", free());
    let mut infra_env = infra_env(SignedDuration::from_hours(1));
    infra_env.spec.cluster_ref = blue();
    early.infra_env = Some(Arc::new(infra_env));
    assert_eq!(mistakes(&plan(&early)).len(), 1);
    assert_eq!(reference(&reconciled(&early)), None);
}

#[test]
fn a_cluster_that_goes_or_is_not_there_is_not_given_the_host_again() {
    let mut gone = naming("clusters/blue", free());
    gone.deployment = None;
    let mut leaving = naming("clusters/blue", free());
    let mut deployment = (**leaving.deployment.as_ref().unwrap()).clone();
    deployment.metadata.deletion_timestamp = Some(clock::time(now()));
    leaving.deployment = Some(Arc::new(deployment));
    let mut without_install = naming("clusters/blue", free());
    without_install.install = None;
    let mut install_leaves = naming("clusters/blue", free());
    let mut install = AgentClusterInstall::default();
    install.metadata.deletion_timestamp = Some(clock::time(now()));
    install_leaves.install = Some(Arc::new(install));
    for snapshot in [gone, leaving, without_install, install_leaves] {
        assert_eq!(reference(&reconciled(&snapshot)), None);
        assert!(matches!(plan(&reconciled(&snapshot)).then, Then::After(_)));
    }
}

#[test]
fn while_it_is_installed_a_host_stays_where_it_is() {
    assert_eq!(reference(&reconciled(&naming("", lent("installing")))), blue());
    let mut day_two = lent("installing");
    day_two.status.as_mut().unwrap().kind = "AddToExistingClusterHost".into();
    assert_eq!(reference(&reconciled(&naming("", day_two))), None);
}

fn fenced(annotations: &[(&str, &str)]) -> Snapshot {
    let mut host = annotated(booted_live("provisioned"), annotations);
    host.spec.bmc = Some(Bmc {
        address: "redfish://10.0.0.9".into(),
        credentials_name: "rack-1-bmc".into(),
        disable_certificate_verification: true,
        ..Bmc::default()
    });
    live(host, Some(free()))
}

fn found(values: &[(&str, &str)]) -> Option<Found> {
    let values = values.iter();
    Some(Found {
        values: values
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect(),
        ..Found::default()
    })
}

#[test]
fn a_secret_for_fencing_is_named_or_made_of_the_credentials() {
    let named = fenced(&[
        (annotation::BMAC_FENCING_SECRET, "mine"),
        (annotation::BMAC_CREATE_FENCING_SECRET, "true"),
    ]);
    assert_eq!(
        reconciled(&named)
            .agent
            .as_ref()
            .unwrap()
            .spec
            .fencing_credentials_secret_ref,
        "mine"
    );
    let mut made = fenced(&[(annotation::BMAC_CREATE_FENCING_SECRET, "true")]);
    assert_eq!(mistakes(&plan(&made)).len(), 1, "there are no credentials");
    made.credentials = found(&[("username", "root"), ("password", "hunter2")]);
    let first = plan(&made);
    let [Step::PutSecret(secret), Step::PatchAgent(_)] = &first.steps[..] else {
        panic!("{first:?}");
    };
    assert_eq!(secret.key, Key::new("pool", "host-1-fencing-credentials"));
    assert_eq!(secret.labels.len(), 2);
    assert!(!format!("{secret:?}").contains("hunter2"));
    let mut made = after(&made, &first);
    let values = [
        ("address", "redfish://10.0.0.9"),
        ("username", "root"),
        ("password", "hunter2"),
        ("certificateVerification", "Disabled"),
    ];
    made.fencing = found(&values);
    assert_eq!(plan(&made).steps, []);
    made.credentials = found(&[("username", "root"), ("password", "changed")]);
    let [Step::PutSecret(secret)] = &plan(&made).steps[..] else {
        panic!("a new password reaches the copy");
    };
    assert!(secret.exists);
}

#[test]
fn credentials_that_are_incomplete_are_watched_and_asked_for_again() {
    let wanted = [(annotation::BMAC_CREATE_FENCING_SECRET, "true")];
    let again = Then::After(std::time::Duration::from_secs(60));
    let absent = reconciled(&fenced(&wanted));
    assert_eq!((mistakes(&plan(&absent)).len(), plan(&absent).then), (1, again));

    let mut half = absent.clone();
    half.credentials = found(&[("username", "root")]);
    let labels = crate::crd::keys::used_labels(&Default::default());
    half.credentials.as_mut().unwrap().missing_labels = labels.clone();
    let first = plan(&half);
    let credentials = Key::new("pool", "rack-1-bmc");
    assert_eq!(first.steps[0], Step::LabelSecret(credentials, labels));
    assert_eq!((mistakes(&first).len(), first.then), (1, Then::Again));
    let half = reconciled(&half);
    assert_eq!((mistakes(&plan(&half)).len(), plan(&half).then), (1, again));
    let agent = &half.agent.as_ref().unwrap().spec;
    assert_eq!(agent.fencing_credentials_secret_ref, "");
}

#[test]
fn a_copy_for_fencing_is_known_by_its_name() {
    let agent_of = |name: &str| super::super::fencing::agent_of_copy(&Key::new("pool", name));
    assert_eq!(
        agent_of("host-1-fencing-credentials"),
        Some(Key::new("pool", "host-1"))
    );
    assert_eq!(agent_of("rack-1-bmc"), None);
}
