//! Secrets and ConfigMaps that the objects name: what is wrong with them is reported, and the operator notices when
//! somebody mends it.

use super::*;

fn unwatched(mut found: Found) -> Found {
    found.missing_labels = [("watched".to_owned(), "true".to_owned())].into();
    found
}

/// Worlds in which something that is named is not as it should be, with the step that has it watched from then on.
fn flawed_worlds() -> Vec<(&'static str, Snapshot, Option<Step>)> {
    let labels = unwatched(Found::default()).missing_labels;
    let here = |name: &str| Key::new("clusters", name);
    let secret = |name: &str| Some(Step::LabelSecret(here(name), labels.clone()));
    let map = |name: &str| Some(Step::LabelConfigMap(here(name), labels.clone()));
    let endpoint = json!({ "ignitionEndpoint": { "url": "https://hub/x",
        "caCertificateReference": { "name": "ca", "namespace": "clusters" } } });
    let mirrored = json!({ "mirrorRegistryRef": { "name": "mirrors", "namespace": "clusters" } });
    let mirrors = |content: Option<Found>| Snapshot {
        mirrors: content,
        ..with_row(mirrored.clone(), "ready")
    };
    let manifests = json!({ "manifestsConfigMapRefs": [{ "name": "one" }, { "name": "two" }] });
    let one = found(&[("a.yaml", "1")]);
    let twice = [
        ("one".to_owned(), one.clone()),
        ("two".to_owned(), unwatched(one)),
    ];
    vec![
        (
            "a pull secret without its key",
            Snapshot {
                pull_secret: Some(unwatched(found(&[("other", "{}")]))),
                ..snapshot(json!({}))
            },
            secret("pull"),
        ),
        (
            "an authority without its certificate",
            Snapshot {
                ignition_ca: Some(unwatched(found(&[("other", "pem")]))),
                ..snapshot(endpoint)
            },
            secret("ca"),
        ),
        ("no mirrors yet", mirrors(None), None),
        (
            "mirrors without registries",
            mirrors(Some(unwatched(found(&[("other", "")])))),
            map("mirrors"),
        ),
        (
            "mirrors that are no TOML",
            mirrors(Some(unwatched(found(&[("registries.conf", "what = [")])))),
            map("mirrors"),
        ),
        (
            "one manifest in two ConfigMaps",
            Snapshot {
                config_maps: twice.into(),
                ..with_row(manifests, "ready")
            },
            map("two"),
        ),
    ]
}

#[test]
fn what_is_wrong_with_something_named_is_an_input_error_and_read_again() {
    for (what, mut snapshot, watched) in flawed_worlds() {
        let plan = super::super::plan(&snapshot);
        assert_eq!(plan.then, Then::After(SOON), "{what}");
        assert_eq!(
            said(&shown(&snapshot, &plan), type_::SPEC_SYNCED),
            ("False".to_owned(), "InputError".to_owned()),
            "{what}"
        );
        let label = |step: &&Step| matches!(step, Step::LabelSecret(..) | Step::LabelConfigMap(..));
        let labelled: Vec<&Step> = plan.steps.iter().filter(label).collect();
        assert_eq!(labelled, Vec::from_iter(&watched), "{what}");
        let all = [
            &mut snapshot.pull_secret,
            &mut snapshot.ignition_ca,
            &mut snapshot.mirrors,
        ];
        let found = all.into_iter().flatten().chain(snapshot.config_maps.values_mut());
        found.for_each(|found| found.missing_labels.clear());
        rests(snapshot, &plan);
    }
}
