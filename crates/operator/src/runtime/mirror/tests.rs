//! The mirror without a server: what it keeps, what it finds, what it tells.

use super::*;
use crate::crd::NMStateConfig;
use kube::ResourceExt;
use serde_json::json;
use std::sync::Mutex;

fn mirror() -> Mirror<NMStateConfig> {
    mirror_of(Scope::default())
}

fn mirror_of(scope: Scope) -> Mirror<NMStateConfig> {
    let service = tower::service_fn(async |_: http::Request<kube::client::Body>| {
        Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
    });
    let resource = ApiResource::erase::<NMStateConfig>(&());
    Mirror::new(kube::Client::new(service, "default"), resource, scope)
        .index("rack", |config: &NMStateConfig| {
            config.labels().get("rack").into_iter().cloned().collect()
        })
}

fn object(name: &str, version: &str, rack: &str) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "NMStateConfig",
        "metadata": {"name": name, "namespace": "n", "resourceVersion": version, "labels": {"rack": rack}},
        "spec": {}
    }))
    .unwrap()
}

fn names(found: Vec<Arc<NMStateConfig>>) -> Vec<String> {
    found.iter().map(|config| config.name_any()).collect()
}

#[tokio::test]
async fn objects_are_found_by_key_and_by_index_and_only_where_they_are_now() {
    let mirror = mirror();
    mirror.took(object("a", "1", "r1"), |_| ());
    mirror.took(object("b", "2", "r1"), |_| ());
    mirror.took(object("a", "3", "r2"), |_| ());
    assert_eq!(names(mirror.by("rack", "r1")), ["b"]);
    assert_eq!(names(mirror.by("rack", "r2")), ["a"]);
    assert!(mirror.get(&Key::new("n", "a")).is_some());
    mirror.remove(&Key::new("n", "b"), None, &|_: &Change<_>| ());
    assert!(mirror.by("rack", "r1").is_empty());
    assert_eq!(mirror.len(), 1);
}

#[tokio::test]
async fn an_older_version_that_arrives_late_changes_nothing() {
    let mirror = mirror();
    let told = Mutex::new(Vec::new());
    let tell = |change: &Change<NMStateConfig>| {
        let version = change.after.as_ref().and_then(|config| config.resource_version());
        told.lock()
            .unwrap()
            .push((change.before.is_some(), version.unwrap_or_default()));
    };
    mirror.took(object("a", "9", "r"), tell);
    mirror.took(object("a", "8", "old"), tell);
    mirror.took(object("a", "9", "r"), tell);
    mirror.took(object("a", "10", "new"), tell);
    assert_eq!(
        *told.lock().unwrap(),
        [(false, "9".to_owned()), (true, "10".to_owned())]
    );
    assert_eq!(names(mirror.by("rack", "new")), ["a"]);
}

#[tokio::test]
async fn an_answer_that_arrives_after_the_deletion_does_not_bring_the_object_back() {
    let mirror = mirror();
    mirror.took(object("a", "1", "r"), |_| ());
    mirror.remove(&Key::new("n", "a"), Some("5".into()), &|_: &Change<_>| ());
    mirror.took(object("a", "4", "r"), |_| ());
    assert!(mirror.is_empty());
    mirror.took(object("a", "6", "r"), |_| ());
    assert_eq!(mirror.len(), 1, "made anew");
}

#[tokio::test]
async fn what_a_new_list_lacks_is_gone() {
    let mirror = mirror();
    mirror.took(object("a", "1", "r"), |_| ());
    mirror.took(object("b", "2", "r"), |_| ());
    let gone = Mutex::new(Vec::new());
    let listed = HashSet::from([Key::new("n", "a")]);
    mirror.keep_only("", &listed, &|change: &Change<_>| {
        gone.lock().unwrap().push(change.key.name.clone())
    });
    assert_eq!(*gone.lock().unwrap(), ["b"]);
}

#[tokio::test]
async fn an_object_that_cannot_be_read_does_not_hide_others() {
    let mirror = mirror();
    let mut broken = object("bad", "1", "r");
    broken.data["spec"] = json!({"interfaces": "none"});
    mirror.took(broken, |_| ());
    mirror.took(object("good", "2", "r"), |_| ());
    assert_eq!(names(mirror.all()), ["good"]);
}

#[tokio::test]
async fn an_answer_about_an_object_that_is_not_watched_is_not_kept() {
    for (selector, rack, kept) in [
        ("rack=r1", "r1", true),
        ("rack=r1", "r2", false),
        ("rack", "r2", true),
        ("shelf", "r1", false),
    ] {
        let mirror = mirror_of(Scope {
            labels: Some(selector.into()),
            ..Scope::default()
        });
        mirror.took(object("a", "1", rack), |_| ());
        assert_eq!(mirror.len() == 1, kept, "{selector} {rack}");
    }
}

#[tokio::test]
async fn an_answer_about_an_object_in_a_namespace_that_is_not_watched_is_not_kept() {
    for (namespaces, kept) in [(vec![], true), (vec!["n"], true), (vec!["elsewhere"], false)] {
        let mirror = mirror_of(Scope {
            namespaces: namespaces.iter().map(ToString::to_string).collect(),
            ..Scope::default()
        });
        mirror.took(object("a", "1", "r1"), |_| ());
        assert_eq!(mirror.len() == 1, kept, "{namespaces:?}");
    }
}

#[test]
fn a_server_that_does_not_know_its_kinds_or_rights_yet_is_not_believed_at_once() {
    use Absence::{NotAllowed, NotInstalled};
    use Meaning::{AskAgain, KeepAll, NoneThere};
    for (absence, times, was_listed, meaning) in [
        // Kinds of others, which most clusters do not have.
        (NotInstalled, 1, false, NoneThere),
        // A server that has just begun.
        (NotAllowed, 1, false, AskAgain),
        (NotAllowed, 1, true, AskAgain),
        (NotInstalled, 1, true, AskAgain),
        // The kind was taken away, and its objects with it.
        (NotInstalled, ABSENT_TRIES, true, NoneThere),
        // The right was never given, or was taken away: that deletes nothing.
        (NotAllowed, ABSENT_TRIES, false, NoneThere),
        (NotAllowed, ABSENT_TRIES, true, KeepAll),
    ] {
        assert_eq!(
            absence.means(times, was_listed),
            meaning,
            "{absence:?} {times} {was_listed}"
        );
    }
}
