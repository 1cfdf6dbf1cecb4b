//! What people write into an Agent, and what the operator sends to the hub.

use super::*;
use crate::crd::reference::FullRef;
use crate::runtime::secret::Found;
use muster_contract::v1::host::HostSetting;
use muster_contract::v2::host::HostRoleChoice;
use muster_vocabulary::Word;

fn calls_of(agent: &Agent, row: HostDetail) -> Result<Vec<Call>, Sync> {
    calls_in(&snapshot(Some(agent.clone()), Some(row)))
}

fn calls_in(snapshot: &Snapshot) -> Result<Vec<Call>, Sync> {
    let (agent, row) = (snapshot.agent.as_ref().unwrap(), snapshot.row.as_ref().unwrap());
    let calls = settings::settings(snapshot, agent, row).calls?;
    let calls = calls.into_iter().filter_map(|step| match step {
        Step::Hub(call) => Some(call),
        _ => None,
    });
    Ok(calls.collect())
}

fn update(agent: &Agent, row: HostDetail) -> UpdateHost {
    match calls_of(agent, row).unwrap().pop() {
        Some(Call::Update(update)) => *update,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_the_hub_has_already_is_not_sent_again() {
    let mut agent = agent();
    agent.spec.hostname = "chosen".into();
    agent.spec.role = "worker".into();
    agent.spec.approved = true;
    agent.spec.installer_args = "[ \"--append-karg\", \"a=b\" ]".into();
    agent.spec.node_labels.insert("zone".into(), "north".into());
    agent.spec.machine_config_pool = "infra".into();
    agent.spec.installation_disk_path = "/dev/sda".into();
    let mut row = row("known-unbound");
    row.given_name = "chosen".into();
    row.approved = true;
    row.host.role = "worker".into();
    row.host.installer_args = "[\"--append-karg\",\"a=b\"]".into();
    row.host.node_labels = "{\"zone\":\"north\"}".into();
    row.host.machine_config_pool_name = "infra".into();
    row.host.installation_disk_id = "/dev/disk/by-id/wwn-1".into();
    assert_eq!(calls_of(&agent, row), Ok(Vec::new()));
}

#[test]
fn everything_new_goes_in_one_request() {
    let mut agent = agent();
    agent.spec.hostname = "chosen".into();
    agent.spec.role = "worker".into();
    agent.spec.machine_config_pool = "infra".into();
    agent.spec.installation_disk_id = "/dev/disk/by-id/wwn-1".into();
    agent.spec.node_labels.insert("zone".into(), "north".into());
    agent
        .spec
        .ignition_endpoint_http_headers
        .insert("X".into(), "y".into());
    let update = update(&agent, row("known-unbound"));
    assert_eq!(
        (update.host_name.as_deref(), update.host_role),
        (Some("chosen"), Some(HostRoleChoice::Worker))
    );
    assert_eq!(update.machine_config_pool_name.as_deref(), Some("infra"));
    assert_eq!(
        update.disks_selected_config.unwrap()[0].id,
        "/dev/disk/by-id/wwn-1"
    );
    assert_eq!(update.node_labels.unwrap()[0].value, "north");
    assert_eq!(update.ignition_endpoint_http_headers.unwrap()[0].key, "X");
}

#[test]
fn what_is_taken_out_of_the_object_is_taken_from_the_host() {
    let mut row = row("known-unbound");
    row.given_name = "chosen".into();
    row.approved = true;
    row.ignition_headers_set = true;
    row.host.role = "worker".into();
    row.host.machine_config_pool_name = "infra".into();
    row.host.fencing_credentials = "{}".into();
    row.host.node_labels = "{\"zone\":\"north\"}".into();
    row.host.installer_args = "[\"-a\"]".into();
    row.host.ignition_config_overrides = "{}".into();
    row.host.ignition_endpoint_token_set = true;
    let calls = calls_of(&agent(), row).unwrap();
    let clear = vec![
        HostSetting::Hostname,
        HostSetting::MachineConfigPool,
        HostSetting::Fencing,
    ];
    assert_eq!(calls[0], Call::InstallerArgs(Vec::new()));
    assert_eq!(calls[1], Call::Ignition(String::new()));
    assert!(matches!(&calls[2], Call::Change(change) if change.approved == Some(false)));
    let Call::Update(update) = &calls[3] else {
        panic!("{calls:?}")
    };
    assert_eq!(update.host_role, Some(HostRoleChoice::AutoAssign));
    assert_eq!(
        (
            update.node_labels.clone(),
            update.ignition_endpoint_http_headers.clone()
        ),
        (Some(vec![]), Some(vec![]))
    );
    assert_eq!(update.ignition_endpoint_token.as_ref().unwrap().0, "");
    assert!(matches!(&calls[4], Call::Change(change) if change.clear == clear));
}

#[test]
fn what_the_hub_decided_for_hosts_of_running_clusters_stays() {
    let mut row = day_two(lent("known", BLUE));
    row.host.role = "worker".into();
    row.host.machine_config_pool_name = "worker".into();
    assert_eq!(calls_of(&wanting("blue"), row), Ok(Vec::new()));
}

#[test]
fn settings_wait_for_their_time() {
    let mut agent = wanting("blue");
    (agent.spec.hostname, agent.spec.installer_args) = ("chosen".into(), "[\"-a\"]".into());
    for status in [
        "installing",
        "installed",
        "preparing-failed",
        "error",
        "resetting",
        "unbinding",
        "reclaiming",
    ] {
        let calls = calls_of(&agent, lent(status, BLUE)).unwrap();
        assert_eq!(calls, [], "{status}");
    }
    for status in [
        "discovering",
        "known",
        "disconnected",
        "insufficient",
        "pending-for-input",
        "binding",
    ] {
        assert_eq!(calls_of(&agent, lent(status, BLUE)).unwrap().len(), 2, "{status}");
    }
}

#[test]
fn mistakes_are_the_objects() {
    let change = |change: fn(&mut crate::crd::agent::AgentSpec)| {
        let mut agent = agent();
        change(&mut agent.spec);
        calls_of(&agent, row("known-unbound"))
    };
    let mistakes = [
        change(|spec| spec.installer_args = "--not-json".into()),
        change(|spec| spec.role = "king".into()),
        change(|spec| spec.installation_disk_path = "/dev/not-found-by-hints".into()),
        change(|spec| spec.installation_disk_id = "/dev/disk/by-id/wwn-2".into()),
    ];
    for mistake in mistakes {
        assert!(matches!(mistake, Err(Sync::Input(_))), "{mistake:?}");
    }
    let Err(Sync::Input(text)) = change(|spec| spec.installer_args = "\"--append-karg=s3cr3t\"".into())
    else {
        panic!("it is no list");
    };
    assert_eq!(
        text,
        "installerArgs is not a JSON list of strings: it goes wrong at line 1, column 22."
    );
    let mut broken = agent();
    broken.spec.role = "king".into();
    let plan = plan(&snapshot(Some(broken), Some(row("known-unbound"))));
    assert_eq!(
        (synced(&plan), plan.then),
        (says("False", "InputError"), Then::Rest)
    );
}

#[test]
fn disks_are_not_chosen_while_nobody_knows_them() {
    let mut agent = wanting("blue");
    agent.spec.installation_disk_path = "/dev/sda".into();
    let mut bare = lent("binding", BLUE);
    bare.host.inventory = String::new();
    assert_eq!(calls_of(&agent, bare), Ok(Vec::new()));
}

fn secret(pairs: &[(&str, &str)], labelled: bool) -> Found {
    let missing = if labelled {
        Vec::new()
    } else {
        vec![("watch".to_owned(), "true".to_owned())]
    };
    Found {
        values: pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        missing_labels: missing.into_iter().collect(),
    }
}

#[test]
fn a_token_is_sent_once_and_again_after_it_was_changed_or_lost() {
    let mut agent = wanting("blue");
    agent.spec.ignition_endpoint_token_reference = Some(FullRef {
        namespace: "pool".into(),
        name: "token".into(),
    });
    let at = |row: HostDetail, known: bool, token: Option<Found>| {
        let mut snapshot = snapshot(Some(agent.clone()), Some(row));
        (snapshot.token, snapshot.token_is_known) = (token, known);
        snapshot
    };
    let token = || Some(secret(&[("ignition-token", "t0ken")], true));
    let mut has = lent("known", BLUE);
    has.host.ignition_endpoint_token_set = true;
    assert_eq!(calls_in(&at(has.clone(), true, token())), Ok(Vec::new()));
    for (row, known) in [(has.clone(), false), (lent("known", BLUE), true)] {
        let calls = calls_in(&at(row, known, token())).unwrap();
        let [Call::Update(update)] = &calls[..] else {
            panic!("{calls:?}")
        };
        assert_eq!(update.ignition_endpoint_token.as_ref().unwrap().0, "t0ken");
    }
    for missing in [None, Some(secret(&[("other", "x")], true))] {
        let mistake = calls_in(&at(has.clone(), false, missing));
        assert!(
            matches!(&mistake, Err(Sync::Backend(text)) if !text.contains("t0ken")),
            "{mistake:?}"
        );
    }
}

#[test]
fn fencing_credentials_are_sent_once_and_again_after_they_were_changed_or_lost() {
    let mut agent = agent();
    agent.spec.fencing_credentials_secret_ref = "bmc".into();
    let at = |shown: &str, known: bool| {
        let mut row = row("known-unbound");
        row.host.fencing_credentials = shown.into();
        let mut snapshot = snapshot(Some(agent.clone()), Some(row));
        let parts = [("address", "redfish://bmc"), ("username", "u"), ("password", "p")];
        (snapshot.fencing, snapshot.fencing_is_known) = (Some(secret(&parts, true)), known);
        calls_in(&snapshot).unwrap()
    };
    let shown = r#"{"address":"redfish://bmc","username":"u","password":"***"}"#;
    assert_eq!(at(shown, true), Vec::new());
    let other = shown.replace("\"u\"", "\"somebody\"");
    for calls in [at(shown, false), at("", true), at(&other, true)] {
        let [Call::Update(update)] = &calls[..] else {
            panic!("{calls:?}")
        };
        assert_eq!(update.fencing_credentials.as_ref().unwrap().password.0, "p");
    }
}

#[test]
fn a_secret_that_is_used_for_the_first_time_is_watched_from_then_on() {
    let mut agent = agent();
    agent.spec.fencing_credentials_secret_ref = "bmc".into();
    let mut snapshot = snapshot(Some(agent), Some(row("known-unbound")));
    let parts = [("address", "redfish://bmc"), ("username", "u"), ("password", "p")];
    snapshot.fencing = Some(secret(&parts, false));
    let steps = plan(&snapshot).steps;
    let labelled = |step: &Step| matches!(step, Step::LabelSecret(key, _) if *key == Key::new("pool", "bmc"));
    let label = steps.iter().position(labelled).unwrap();
    let Some(Step::Hub(Call::Update(update))) = steps.get(label + 1) else {
        panic!("{steps:?}")
    };
    assert_eq!(
        update.fencing_credentials.as_ref().unwrap().address,
        "redfish://bmc"
    );
}

#[test]
fn a_secret_that_is_not_good_is_watched_all_the_same() {
    let good = [("address", "redfish://bmc"), ("username", "u"), ("password", "p")];
    let (incomplete, mut bad) = (good[..2].to_vec(), good.to_vec());
    bad.push(("certificateVerification", "Perhaps"));
    let later = Then::After(Duration::from_secs(10));
    let cases = [
        (bad, "InputError", Then::Rest),
        (incomplete, "BackendError", later),
    ];
    for status in ["known-unbound", "insufficient-unbound"] {
        for (parts, reason, then) in &cases {
            let mut agent = agent();
            if status == "insufficient-unbound" {
                agent = wanting("blue");
            }
            agent.spec.fencing_credentials_secret_ref = "bmc".into();
            agent.spec.ignition_endpoint_token_reference = Some(FullRef {
                namespace: "clusters".into(),
                name: "token".into(),
            });
            let mut snapshot = snapshot(Some(agent), Some(row(status)));
            snapshot.token = Some(secret(&[("ignition-token", "t0ken")], false));
            snapshot.fencing = Some(secret(parts, false));
            let plan = plan(&snapshot);
            let labelled: Vec<_> = plan
                .steps
                .iter()
                .filter_map(|step| match step {
                    Step::LabelSecret(key, _) => Some(key.clone()),
                    _ => None,
                })
                .collect();
            let wanted = [Key::new("clusters", "token"), Key::new("pool", "bmc")];
            assert_eq!(
                (labelled, plan.then),
                (wanted.to_vec(), *then),
                "{status} {reason}"
            );
            if status == "known-unbound" {
                assert_eq!(synced(&plan), says("False", reason));
            }
        }
    }
}

#[test]
fn a_missing_secret_is_read_again_whatever_else_is_wrong() {
    let mut agent = agent();
    agent.spec.fencing_credentials_secret_ref = "bmc".into();
    let plan_of = |agent: Agent, status: &'static str| plan(&snapshot(Some(agent), Some(row(status))));
    let later = Then::After(Duration::from_secs(10));
    assert_eq!(plan_of(agent.clone(), "known-unbound").then, later);
    agent.spec.role = "king".into();
    let flawed = plan_of(agent.clone(), "known-unbound");
    assert_eq!(
        (synced(&flawed), flawed.then),
        (says("False", "InputError"), later)
    );
    agent.spec.role = Word::default();
    agent.spec.cluster_deployment_name = wanting("blue").spec.cluster_deployment_name;
    assert_eq!(
        plan_of(agent, "insufficient-unbound").then,
        later,
        "it waits for its cluster"
    );
}

#[test]
fn a_secret_that_went_is_not_read_again_when_nobody_needs_it_any_more() {
    let mut agent = wanting("blue");
    agent.spec.ignition_endpoint_token_reference = Some(FullRef {
        namespace: "clusters".into(),
        name: "token".into(),
    });
    let then = |status| plan(&snapshot(Some(agent.clone()), Some(lent(status, BLUE)))).then;
    assert_eq!(then("known"), Then::After(Duration::from_secs(10)));
    for status in ["installing", "installed", "added-to-existing-cluster", "error"] {
        assert_eq!(then(status), Then::Rest, "{status}");
    }
}

#[test]
fn a_disk_that_nobody_asks_for_any_more_is_left_to_the_hub_and_one_it_chose_itself_stays() {
    let mut chosen = row("known-unbound");
    (chosen.disk_chosen, chosen.host.installation_disk_id) = (true, "/dev/disk/by-id/wwn-1".into());
    let clear = Call::Change(ChangeHost {
        clear: vec![HostSetting::InstallationDisk],
        ..ChangeHost::default()
    });
    assert_eq!(calls_of(&agent(), chosen.clone()), Ok(vec![clear]));
    let mut found = chosen.clone();
    found.disk_chosen = false;
    assert_eq!(calls_of(&agent(), found), Ok(Vec::new()));
    for desired in [
        |spec: &mut crate::crd::agent::AgentSpec| spec.installation_disk_path = "/dev/sda".into(),
        |spec: &mut crate::crd::agent::AgentSpec| spec.installation_disk_id = "/dev/disk/by-id/wwn-1".into(),
    ] {
        let mut agent = agent();
        desired(&mut agent.spec);
        assert_eq!(
            calls_of(&agent, chosen.clone()),
            Ok(Vec::new()),
            "it has what it asks for"
        );
    }
    let mut installing = lent("installing", BLUE);
    installing.disk_chosen = true;
    assert_eq!(
        calls_of(&wanting("blue"), installing),
        Ok(Vec::new()),
        "it is too late"
    );
}
