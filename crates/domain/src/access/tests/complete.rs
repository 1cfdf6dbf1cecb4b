//! Nothing is served without a line in the table, and the table has no line for what is not served.

use super::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn every_documented_operation_has_a_line_and_no_other_has() {
    let document: serde_json::Value = serde_json::from_str(&read("docs/openapi.json")).unwrap();
    let mut served = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            served.insert(format!("{id}: {} {path}", method.to_uppercase()));
        }
    }
    assert!(served.len() > 100, "only {} operations were found", served.len());
    let known: BTreeSet<_> = table::documented()
        .map(|operation| format!("{}: {} {}", operation.id, operation.method.word(), operation.path))
        .collect();
    let missing: Vec<_> = served.difference(&known).collect();
    let too_many: Vec<_> = known.difference(&served).collect();
    assert!(
        missing.is_empty(),
        "add them to crates/domain/src/access/table: {missing:#?}"
    );
    assert!(too_many.is_empty(), "nobody serves them: {too_many:#?}");
}

/// What stands between quotation marks behind `start`, up to `end`.
fn texts<'a>(source: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let (_, rest) = source.split_once(start).unwrap();
    let (list, _) = rest.split_once(end).unwrap();
    list.split('"').skip(1).step_by(2).collect()
}

#[test]
fn every_path_of_images_has_a_line() {
    let source = read("crates/image/src/serve/path.rs");
    let prefixes: BTreeSet<_> = texts(&source, "pub const PREFIXES", "];").into_iter().collect();
    assert_eq!(prefixes.len(), 6, "{prefixes:?}");
    let known: BTreeSet<_> = table::all()
        .filter_map(|operation| operation.path.strip_suffix("{*rest}"))
        .collect();
    assert_eq!(known, prefixes);
    for prefix in prefixes {
        let operation = table::find_image(&format!("{prefix}anything/full.iso")).unwrap();
        assert_eq!(operation.path, format!("{prefix}{{*rest}}"));
    }
    assert_eq!(table::find_image("/api/assisted-install/v2/infra-envs"), None);
    assert_eq!(table::find_image("/imagesx"), None);
}

/// Routes beside the APIs, and those that are not offered, are in no document.
#[test]
fn every_other_route_has_a_line() {
    let base = |path: &str| format!("/api/assisted-install/v2{path}");
    let mut found = 0;
    for (file, within) in [
        ("crates/hub/src/http/health.rs", false),
        ("crates/hub/src/http/docs.rs", false),
        ("crates/hub/src/http/mod.rs", false),
        ("crates/hub/src/http/v2/later.rs", true),
    ] {
        let source = read(file);
        for rest in source.split(".route(\"").skip(1) {
            let (path, handler) = rest.split_once('"').unwrap();
            let path = if within { base(path) } else { path.to_owned() };
            let method = if handler.starts_with(", post(") {
                "POST"
            } else {
                "GET"
            };
            assert!(
                table::find_route(method, &path).is_some(),
                "{method} {path} of {file}"
            );
            found += 1;
        }
    }
    assert_eq!(found, 16, "routes that are served outside of the document");
}

#[test]
fn lines_are_found_by_name_and_by_route() {
    let mut ids = BTreeSet::new();
    let mut routes = BTreeSet::new();
    for operation in table::all() {
        assert!(ids.insert(operation.id), "{} is there twice", operation.id);
        assert!(
            routes.insert((operation.method, operation.path)),
            "{} is there twice",
            operation.path
        );
        assert_eq!(table::find(operation.id), Some(operation));
        assert_eq!(
            table::find_route(operation.method.word(), operation.path),
            Some(operation)
        );
    }
    assert_eq!(table::find_route("HEAD", "/docs"), table::find("docs"));
    assert_eq!(table::find_route("DELETE", "/docs"), None);
    assert_eq!(table::find("v2GetHosts"), None);
}

#[test]
fn tokens_are_taken_where_somebody_may_show_them() {
    for operation in table::all() {
        let id = operation.id;
        let open = operation.action == Action::Open;
        let reports = operation.action == Action::Report;
        assert_eq!(operation.carriers.is_empty(), open, "{id}");
        let in_path = operation.takes(Carrier::Path);
        assert!(
            open || operation.takes(Carrier::Authorization) != (reports || in_path),
            "{id}"
        );
        let by_machine = [Carrier::SecretKey, Carrier::ApiKey]
            .iter()
            .any(|carrier| operation.takes(*carrier));
        assert_eq!(
            by_machine || in_path,
            operation.machines != Machines::NoOne,
            "{id}"
        );
        let by_image = [Carrier::ImageToken, Carrier::ImageTokenQuery]
            .iter()
            .any(|carrier| operation.takes(*carrier));
        let readers = matches!(operation.machines, Machines::Readers | Machines::Media);
        assert_eq!(by_image || in_path, readers, "{id}");
    }
}

/// Every operation and every role, for people to read. Two columns for each: with a free host, and with one that is bound.
#[test]
fn roles_and_operations() {
    let mut lines = vec![
        "+ may, - does not learn that it exists, x is told no; with a free and with a bound host".to_owned(),
    ];
    let names: Vec<_> = people().iter().map(|(name, _)| *name).collect();
    lines.push(format!("{:44}{}", "", names.join(", ")));
    for operation in table::all() {
        let signs: Vec<_> = people()
            .iter()
            .map(|(_, caller)| -> String {
                let asked = |host| sign(may(caller, operation, &named(operation.action, host), NOW));
                [asked(free()), asked(bound())].into_iter().collect()
            })
            .collect();
        lines.push(format!("{:44}{}", operation.id, signs.join(" ")));
    }
    insta::assert_snapshot!(lines.join("\n"));
}
