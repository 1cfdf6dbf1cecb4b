//! The cache without a server: what it keeps, what it finds, what it reports.

use super::*;
use crate::crd::NMStateConfig;
use kube::ResourceExt;
use serde_json::json;
use std::sync::Mutex;

fn cache() -> ObjectCache<NMStateConfig> {
    cache_of(Scope::default())
}

fn cache_of(scope: Scope) -> ObjectCache<NMStateConfig> {
    let service = tower::service_fn(async |_: http::Request<kube::client::Body>| {
        Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
    });
    let resource = ApiResource::erase::<NMStateConfig>(&());
    let mut cache = ObjectCache::new(kube::Client::new(service, "default"), resource, scope);
    cache.add_index(BY_RACK);
    cache
}

const BY_RACK: Index<NMStateConfig> = Index::new("rack", |config| {
    config.labels().get("rack").into_iter().cloned().collect()
});

fn object(name: &str, version: &str, rack: &str) -> RawObject {
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
    let cache = cache();
    cache.took(object("a", "1", "r1"), |_| ());
    cache.took(object("b", "2", "r1"), |_| ());
    cache.took(object("a", "3", "r2"), |_| ());
    assert_eq!(names(cache.by(BY_RACK, "r1")), ["b"]);
    assert_eq!(names(cache.by(BY_RACK, "r2")), ["a"]);
    assert!(cache.get(&Key::new("n", "a")).is_some());
    cache.remove(&Key::new("n", "b"), None, &|_: &Change<_>| ());
    assert!(cache.by(BY_RACK, "r1").is_empty());
    assert_eq!(cache.len(), 1);
}

#[tokio::test]
async fn an_older_version_that_arrives_late_changes_nothing() {
    let cache = cache();
    let changes = Mutex::new(Vec::new());
    let tell = |change: &Change<NMStateConfig>| {
        let version = change.after.as_ref().and_then(|config| config.resource_version());
        changes
            .lock()
            .unwrap()
            .push((change.before.is_some(), version.unwrap_or_default()));
    };
    cache.took(object("a", "9", "r"), tell);
    cache.took(object("a", "8", "old"), tell);
    cache.took(object("a", "9", "r"), tell);
    cache.took(object("a", "10", "new"), tell);
    assert_eq!(
        *changes.lock().unwrap(),
        [(false, "9".to_owned()), (true, "10".to_owned())]
    );
    assert_eq!(names(cache.by(BY_RACK, "new")), ["a"]);
}

#[tokio::test]
async fn an_answer_that_arrives_after_the_deletion_does_not_bring_the_object_back() {
    let cache = cache();
    cache.took(object("a", "1", "r"), |_| ());
    cache.remove(&Key::new("n", "a"), Some("5".into()), &|_: &Change<_>| ());
    cache.took(object("a", "4", "r"), |_| ());
    assert!(cache.is_empty());
    cache.took(object("a", "6", "r"), |_| ());
    assert_eq!(cache.len(), 1, "made anew");
}

#[tokio::test]
async fn what_a_new_list_lacks_is_gone() {
    let cache = cache();
    cache.took(object("a", "1", "r"), |_| ());
    cache.took(object("b", "2", "r"), |_| ());
    let gone = Mutex::new(Vec::new());
    let listed = HashSet::from([Key::new("n", "a")]);
    cache.keep_only("", &listed, &|change: &Change<_>| {
        gone.lock().unwrap().push(change.key.name.clone())
    });
    assert_eq!(*gone.lock().unwrap(), ["b"]);
}

#[tokio::test]
async fn an_object_that_cannot_be_read_does_not_hide_others() {
    let cache = cache();
    let mut broken = serde_json::to_value(object("bad", "1", "r")).unwrap();
    broken["spec"] = json!({"interfaces": "none"});
    let broken = serde_json::from_value(broken).unwrap();
    cache.took(broken, |_| ());
    cache.took(object("good", "2", "r"), |_| ());
    assert_eq!(names(cache.all()), ["good"]);
}

#[tokio::test]
async fn an_answer_about_an_object_that_is_not_watched_is_not_kept() {
    for (selector, rack, kept) in [
        ("rack=r1", "r1", true),
        ("rack=r1", "r2", false),
        ("rack", "r2", true),
        ("shelf", "r1", false),
    ] {
        let cache = cache_of(Scope {
            labels: Some(selector.into()),
            ..Scope::default()
        });
        cache.took(object("a", "1", rack), |_| ());
        assert_eq!(cache.len() == 1, kept, "{selector} {rack}");
    }
}

#[tokio::test]
async fn an_answer_about_an_object_in_a_namespace_that_is_not_watched_is_not_kept() {
    for (namespaces, kept) in [(vec![], true), (vec!["n"], true), (vec!["elsewhere"], false)] {
        let cache = cache_of(Scope {
            namespaces: namespaces.iter().map(ToString::to_string).collect(),
            ..Scope::default()
        });
        cache.took(object("a", "1", "r1"), |_| ());
        assert_eq!(cache.len() == 1, kept, "{namespaces:?}");
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
        // The kind was removed, and its objects with it.
        (NotInstalled, ABSENT_TRIES, true, NoneThere),
        // The right was never given, or was withdrawn: that deletes nothing.
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

#[tokio::test]
async fn an_answer_that_arrives_after_a_list_without_the_object_does_not_bring_it_back() {
    let cache = cache();
    cache.took(object("a", "1", "r"), |_| ());
    // It was changed, deleted, and missing on a new list; then the change is answered.
    cache.keep_only("", &HashSet::new(), &|_: &Change<_>| ());
    cache.took_change(object("a", "2", "r"), |_| ());
    assert!(cache.is_empty());
}

/// What is true, what the watch has still to bring, and the answers to own changes that are still on their way.
#[derive(Default)]
struct Server {
    version: u64,
    objects: BTreeMap<String, u64>,
    watch: std::collections::VecDeque<(String, u64, bool)>,
    answers: Vec<(String, u64, bool)>,
}

impl Server {
    fn write(&mut self, name: &str, own: bool) {
        self.version += 1;
        let is_new = self.objects.insert(name.to_owned(), self.version).is_none();
        self.watch.push_back((name.to_owned(), self.version, true));
        if own {
            self.answers.push((name.to_owned(), self.version, is_new));
        }
    }

    fn delete(&mut self, name: &str) {
        if self.objects.remove(name).is_some() {
            self.version += 1;
            self.watch.push_back((name.to_owned(), self.version, false));
        }
    }
}

/// Whatever the order in which watch, lists and answers arrive: in the end the cache has what is there, and whoever is
/// told of changes was told of the last one of each object.
#[tokio::test]
async fn in_the_end_the_cache_is_true_and_has_notified_every_change() {
    for seed in 0..300u64 {
        let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut roll = |sides: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            usize::try_from(dice % sides).unwrap()
        };
        let (cache, changes) = (cache(), Mutex::new(BTreeMap::new()));
        let tell = |change: &Change<NMStateConfig>| {
            let after = change.after.as_ref().and_then(|config| config.resource_version());
            changes.lock().unwrap().insert(change.key.name.clone(), after);
        };
        let at = |name: &str, version: u64| object(name, &version.to_string(), "r");
        let mut server = Server::default();
        let deliver = |server: &mut Server| {
            let Some((name, version, is_there)) = server.watch.pop_front() else {
                return;
            };
            match is_there {
                true => cache.put(at(&name, version), &tell),
                false => cache.remove(&Key::new("n", &name), Some(version.to_string()), &tell),
            }
        };
        let answer = |(name, version, is_new): (String, u64, bool)| match is_new {
            true => cache.took(at(&name, version), tell),
            false => cache.took_change(at(&name, version), tell),
        };
        for _ in 0..60 {
            let name = ["a", "b", "c"][roll(3)];
            match roll(8) {
                0 | 1 => server.write(name, false),
                // Whoever changes an object waits for the answer before the next change of it.
                2 | 3 if server.answers.iter().all(|(other, ..)| other != name) => server.write(name, true),
                4 => server.delete(name),
                5 if !server.answers.is_empty() => {
                    let next = roll(server.answers.len() as u64);
                    answer(server.answers.swap_remove(next));
                }
                // The watch is cut off, and a list takes its place. What was being made is not answered later than that.
                6 if roll(4) == 0 => {
                    server.watch.clear();
                    let made: Vec<_> = server.answers.extract_if(.., |(.., is_new)| *is_new).collect();
                    made.into_iter().for_each(answer);
                    for (name, version) in &server.objects {
                        cache.put(at(name, *version), &tell);
                    }
                    let listed = server.objects.keys().map(|name| Key::new("n", name)).collect();
                    cache.keep_only("", &listed, &tell);
                }
                _ => deliver(&mut server),
            }
        }
        while !server.watch.is_empty() {
            deliver(&mut server);
        }
        server.answers.drain(..).for_each(answer);
        let kept = cache.all().into_iter();
        let kept: BTreeMap<_, _> = kept.map(|one| (one.name_any(), one.resource_version())).collect();
        let there = server.objects.iter();
        let there: BTreeMap<_, _> = there
            .map(|(name, at)| (name.clone(), Some(at.to_string())))
            .collect();
        assert_eq!(kept, there, "seed {seed}");
        let last = changes
            .lock()
            .unwrap()
            .clone()
            .into_iter()
            .filter(|(_, at)| at.is_some());
        assert_eq!(
            last.collect::<BTreeMap<_, _>>(),
            there,
            "reported with seed {seed}"
        );
    }
}
