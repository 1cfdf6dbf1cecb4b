//! Words that are allowed, what their absence means, and what people read when they ask.

use super::*;

/// The schema of a field below the spec; `[]` stands for the items of a list.
fn field<'a>(schema: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(schema, |place, name| match name {
        "[]" => &place["items"],
        name => &place["properties"][name],
    })
}

#[test]
fn only_known_words_are_allowed() {
    let install = schema("AgentClusterInstall");
    let hyperthreading = ["", "Disabled", "Enabled"];
    for (path, words) in [
        (
            "spec.platformType",
            &["", "BareMetal", "External", "None", "Nutanix", "VSphere"][..],
        ),
        (
            "spec.networking.networkType",
            &[
                "Calico",
                "Cilium",
                "CiscoACI",
                "None",
                "OVNKubernetes",
                "OpenShiftSDN",
            ],
        ),
        ("spec.controlPlane.hyperthreading", &hyperthreading),
        ("spec.arbiter.hyperthreading", &hyperthreading),
        ("spec.compute.[].hyperthreading", &hyperthreading),
        ("spec.diskEncryption.mode", &["tang", "tpmv2"]),
        (
            "spec.diskEncryption.enableOn",
            &[
                "all",
                "arbiters",
                "arbiters,workers",
                "masters",
                "masters,arbiters",
                "masters,arbiters,workers",
                "masters,workers",
                "none",
                "workers",
            ],
        ),
        ("spec.external.cloudControllerManager", &["", "External"]),
        ("spec.loadBalancer.type", &["ClusterManaged", "UserManaged"]),
    ] {
        assert_eq!(strings(&field(&install, path)["enum"]), words, "{path}");
    }
    let machine = schema("AgentMachine");
    assert_eq!(
        strings(&field(&machine, "status.addresses.[].type")["enum"]),
        [
            "ExternalDNS",
            "ExternalIP",
            "Hostname",
            "InternalDNS",
            "InternalIP"
        ]
    );
}

/// As the rules write it.
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}

#[test]
fn what_the_rules_take_for_the_absence_of_a_field_is_its_default() {
    let install = schema("AgentClusterInstall");
    for (path, absent) in rules::FROZEN.iter().chain(rules::COUNTS) {
        let path = path.join(".");
        // It follows from others, and no schema can say that.
        if path == "networking.userManagedNetworking" {
            continue;
        }
        let field = field(&install, &format!("spec.{path}"));
        let empty = match field["type"].as_str() {
            Some("string") => json!(""),
            Some("array") => json!([]),
            Some("boolean") => json!(false),
            Some("integer") => json!(0),
            other => panic!("{path} is {other:?}"),
        };
        let default = field.get("default").unwrap_or(&empty);
        assert_eq!(*absent, literal(default), "{path}");
    }
}

#[test]
fn kubectl_explain_speaks_to_those_who_write_the_objects() {
    for crd in own(ClusterRefs::Fixed).into_iter().chain(hive()) {
        let text = serde_json::to_string(&crd).unwrap();
        for word in ["by merge patches", "this type", "derive", "serde"] {
            assert!(!text.contains(word), "{}: {word}", crd.spec.names.kind);
        }
    }
}
