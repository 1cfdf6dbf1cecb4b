//! BareMetalHosts that a cluster has already under the name of a machine that joins it.

use super::super::machine;
use super::joins::{created, deeds, first, installing, reports};
use super::*;

#[test]
fn a_host_of_the_cluster_that_runs_the_operator_keeps_its_power_controller() {
    let uid = "5f0c1f3e-0000-4000-8000-000000000001";
    let mut known = first();
    known.metal = Some(json!({ "metadata": { "name": "rack-1", "uid": uid }, "spec": {} }));
    let mut snapshot = installing(known);
    assert_eq!(deeds(&plan(&snapshot)).len(), 2, "another one is changed");
    let mut host = (*snapshot.host).clone();
    host.metadata.uid = Some(uid.into());
    snapshot.host = Arc::new(host);
    let plan = plan(&snapshot);
    assert!(deeds(&plan).is_empty(), "{plan:?}");
    let texts = reports(&plan);
    assert!(
        texts.len() == 1 && texts[0].contains("this very object"),
        "{texts:?}"
    );
}

/// The cluster has the copy of this machine, but for what is changed.
fn beside(change: impl FnOnce(&mut Value)) -> Snapshot {
    let made = deeds(&plan(&installing(first())));
    let mut metal = created(&made[0]).clone();
    change(&mut metal["spec"]);
    let known = machine::Known {
        metal: Some(metal),
        ..first()
    };
    installing(known)
}

fn refusal(snapshot: &Snapshot) -> Option<String> {
    let plan = plan(snapshot);
    let texts = reports(&plan);
    let noted = after(snapshot, &plan);
    let is_noted = super::noted(&noted, annotation::BMAC_SPOKE_CREATED).is_some();
    assert_eq!(
        (deeds(&plan).is_empty(), is_noted),
        (!texts.is_empty(), texts.is_empty())
    );
    texts.into_iter().next()
}

#[test]
fn another_machine_of_the_same_name_is_not_overwritten() {
    let other_machine = json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "blue-rack-9",
        "namespace": "openshift-machine-api" });
    let elsewhere = json!({ "kind": "Machine", "name": "blue-rack-1", "namespace": "elsewhere" });
    let other_kind = json!({ "kind": "Metal3Machine", "name": "blue-rack-1" });
    let cases: [(&str, Value, &str); 5] = [
        ("bootMACAddress", json!("52:54:00:00:00:99"), "MAC address"),
        (
            "bmc",
            json!({ "address": "redfish://root:secret@10.0.0.7/1" }),
            "power controller",
        ),
        ("consumerRef", other_machine, "another Machine"),
        ("consumerRef", elsewhere, "another Machine"),
        ("consumerRef", other_kind, "another Machine"),
    ];
    for (field, value, expected) in cases {
        let text = refusal(&beside(|spec| spec[field] = value)).unwrap();
        assert!(
            text.contains(expected) && text.contains("clusters/blue"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn the_copy_of_this_machine_is_known_in_whatever_letters_and_however_little_is_said_of_it() {
    let changes: [fn(&mut Value); 4] = [
        |spec| spec["bootMACAddress"] = json!(MAC),
        |spec| spec["consumerRef"] = Value::Null,
        |spec| *spec = json!({ "online": true }),
        |spec| spec["consumerRef"] = json!({ "kind": "Machine", "name": "blue-rack-1" }),
    ];
    for change in changes {
        assert_eq!(refusal(&beside(change)), None);
    }
}
