//! A copy of all objects of one kind, kept fresh by a watch, found by key and by index.
//!
//! What the operator writes itself is taken over from the answer at once, so that the next snapshot does not contain an
//! object from before its own write. The store of kube-rs takes nothing from writes and has no indexes, hence this one.

use crate::error::{Error, chain};
use crate::key::Key;
use crate::runtime::foreign::there;
use crate::runtime::object::RawObject;
use futures_util::TryStreamExt;
use kube::api::{Api, ApiResource};
use kube::core::Resource;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// How often the cache tries to list a kind that is not installed, by default.
const ABSENT_RETRY: Duration = Duration::from_secs(30);

/// A server that has just begun may not know its kinds and rights yet: this many answers in a row are believed.
const ABSENT_TRIES: u32 = 3;

/// The time between them.
const ABSENT_AGAIN: Duration = Duration::from_secs(2);

/// How often the cache asks a server that does not answer for its versions.
const DISCOVERY_RETRY: Duration = Duration::from_secs(1);

/// The version to speak, of those that a server has.
pub type Choose = fn(&[String]) -> &'static str;

/// What can be cached.
pub trait Kind: Resource + DeserializeOwned + Send + Sync + 'static {}
impl<K: Resource + DeserializeOwned + Send + Sync + 'static> Kind for K {}

/// How objects of a kind are found by something they contain.
pub struct Index<K> {
    pub name: &'static str,
    /// The values an object is found by.
    values: fn(&K) -> Vec<String>,
}

impl<K> Index<K> {
    pub const fn new(name: &'static str, values: fn(&K) -> Vec<String>) -> Self {
        Self { name, values }
    }
}

// Whatever the kind is.
impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Index<K> {}

/// For an index by namespace.
pub fn namespace_of<K: Resource>(object: &K) -> Vec<String> {
    object.meta().namespace.iter().cloned().collect()
}

/// Which objects of a kind are cached.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Empty: all namespaces, or a kind without namespaces.
    pub namespaces: Vec<String>,
    /// A selector over labels; absent: all.
    pub labels: Option<String>,
    /// How often the cache tries to list a kind that is not installed.
    pub absent_retry: Duration,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            labels: None,
            absent_retry: ABSENT_RETRY,
        }
    }
}

pub struct ObjectCache<K> {
    kube: kube::Client,
    resource: RwLock<ApiResource>,
    /// Absent: the version is known from the beginning.
    choose: Option<Choose>,
    scope: Scope,
    indexes: Vec<Index<K>>,
    state: RwLock<State<K>>,
    /// How many watches have not brought their first list yet.
    waiting: watch::Sender<usize>,
}

struct State<K> {
    objects: HashMap<Key, Arc<K>>,
    found: HashMap<(&'static str, String), BTreeSet<Key>>,
    /// Deleted objects and their last version: an answer to a write that arrives after the deletion is too late.
    gone: HashMap<Key, String>,
}

impl<K: Kind> State<K> {
    /// Whether this version of an object is newer than what is known of it.
    fn is_news(&self, key: &Key, version: Option<&str>) -> bool {
        let known = self.objects.get(key);
        let known = known.map(|object| object.meta().resource_version.as_deref());
        let last = self.gone.get(key).map(|last| Some(last.as_str()));
        known.into_iter().chain(last).all(|old| is_newer(version, old))
    }
}

/// An object came, changed or went.
#[derive(Debug)]
pub struct Change<K> {
    pub key: Key,
    pub before: Option<Arc<K>>,
    pub after: Option<Arc<K>>,
}

impl<K> Change<K> {
    /// As it was and as it is: who was concerned before may be concerned by the change, too.
    pub fn objects(&self) -> impl Iterator<Item = &K> {
        self.before.iter().chain(&self.after).map(Arc::as_ref)
    }

    /// Whether this part of it is another one now. What came or went differs in everything.
    pub fn differs_in<'a, T: PartialEq>(&'a self, part: impl Fn(&'a K) -> T) -> bool {
        self.before.as_deref().map(&part) != self.after.as_deref().map(&part)
    }
}

impl<K: Kind> ObjectCache<K> {
    pub fn new(kube: kube::Client, resource: ApiResource, scope: Scope) -> Self {
        let watches = scope.namespaces.len().max(1);
        Self {
            kube,
            resource: RwLock::new(resource),
            choose: None,
            scope,
            indexes: Vec::new(),
            state: RwLock::new(State {
                objects: HashMap::new(),
                found: HashMap::new(),
                gone: HashMap::new(),
            }),
            waiting: watch::Sender::new(watches),
        }
    }

    /// Before anything is cached. One that is there already is not added again.
    pub fn add_index(&mut self, index: Index<K>) {
        if !self.has(&index) {
            self.indexes.push(index);
        }
    }

    fn has(&self, index: &Index<K>) -> bool {
        self.indexes.iter().any(|one| one.name == index.name)
    }

    /// The version is found out whenever a watch begins: the kind may be installed later, or in another version.
    pub fn speaks(mut self, choose: Choose) -> Self {
        self.choose = Some(choose);
        self
    }

    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().objects.get(key).cloned()
    }

    pub fn all(&self) -> Vec<Arc<K>> {
        self.read().objects.values().cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those an index finds, in the order of their keys.
    pub fn by(&self, index: Index<K>, value: &str) -> Vec<Arc<K>> {
        let state = self.read();
        let keys = state.found.get(&(index.name, value.to_owned()));
        let keys = keys.into_iter().flatten();
        keys.filter_map(|key| state.objects.get(key).cloned()).collect()
    }

    /// From the cache if the object can be in it, else from the API.
    pub async fn find(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        if let Some(object) = self.get(key) {
            return Ok(Some(object));
        }
        // A reference without a name is nobody's; the API would not even answer.
        if key.name.is_empty() || self.scope.labels.is_none() && self.covers(&key.namespace) {
            return Ok(None);
        }
        let found = there(self.api(&key.namespace).get(&key.name).await)?;
        Ok(found.and_then(|object| parse(&object)).map(Arc::new))
    }

    /// The untyped API: what comes back is parsed behind a boundary, and only if it is news.
    pub fn api(&self, namespace: &str) -> Api<RawObject> {
        let resource = self.resource();
        match namespace {
            "" => Api::all_with(self.kube.clone(), &resource),
            namespace => Api::namespaced_with(self.kube.clone(), namespace, &resource),
        }
    }

    /// In the version that is spoken now.
    pub fn resource(&self) -> ApiResource {
        self.resource
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    async fn choose_version(&self) {
        let Some(choose) = self.choose else { return };
        let groups = loop {
            match self.kube.list_api_groups().await {
                Ok(groups) => break groups.groups,
                Err(kube::Error::Api(status)) => {
                    tracing::debug!(%status, "cannot read the API versions of the server");
                    return;
                }
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "the API server did not answer; trying again");
                    tokio::time::sleep(DISCOVERY_RETRY).await;
                }
            }
        };
        let mut resource = self.resource.write().unwrap_or_else(PoisonError::into_inner);
        let group = groups.into_iter().find(|group| group.name == resource.group);
        let served: Vec<String> = group
            .into_iter()
            .flat_map(|group| group.versions)
            .map(|version| version.version)
            .collect();
        let version = choose(&served);
        resource.version = version.into();
        resource.api_version = format!("{}/{version}", resource.group);
    }

    /// Whether the cache watches this namespace.
    pub fn covers(&self, namespace: &str) -> bool {
        self.scope.namespaces.is_empty() || self.scope.namespaces.iter().any(|ours| ours == namespace)
    }

    /// Waits until every watch has brought its first list.
    pub async fn ready(&self) {
        // The sender lives as long as the cache.
        let _ = self.waiting.subscribe().wait_for(|left| *left == 0).await;
    }

    /// Watches until it is dropped, and calls `tell` with every change.
    pub async fn run(&self, tell: impl Fn(&Change<K>) + Send + Sync) {
        let namespaces = match self.scope.namespaces.as_slice() {
            [] => vec![""],
            some => some.iter().map(String::as_str).collect(),
        };
        let watches = namespaces
            .into_iter()
            .map(|namespace| self.follow(namespace, &tell));
        futures_util::future::join_all(watches).await;
    }

    async fn follow(&self, namespace: &str, tell: &(impl Fn(&Change<K>) + Send + Sync)) {
        let (mut has_arrived, mut was_listed) = (false, false);
        let mut arrived = || {
            if !std::mem::replace(&mut has_arrived, true) {
                self.waiting.send_modify(|left| *left -= 1);
            }
        };
        let mut times_absent = 0;
        loop {
            self.choose_version().await;
            let config = watcher::Config {
                label_selector: self.scope.labels.clone(),
                ..watcher::Config::default()
            };
            let mut events = std::pin::pin!(watcher(self.api(namespace), config).default_backoff());
            let mut listed = HashSet::new();
            loop {
                match events.try_next().await {
                    Ok(Some(Event::Init)) => listed.clear(),
                    Ok(Some(Event::InitApply(object))) => {
                        listed.insert(Key::of(&object));
                        self.put(object, tell);
                    }
                    Ok(Some(Event::InitDone)) => {
                        self.keep_only(namespace, &listed, tell);
                        listed.clear();
                        (was_listed, times_absent) = (true, 0);
                        arrived();
                    }
                    Ok(Some(Event::Apply(object))) => self.put(object, tell),
                    Ok(Some(Event::Delete(object))) => {
                        self.remove(&Key::of(&object), object.meta().resource_version.clone(), tell);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        let Some(absence) = absence(&error) else {
                            tracing::warn!(kind = %self.resource().kind, error = %chain(&error), "a watch ended \
                                early; starting it again");
                            continue;
                        };
                        times_absent += 1;
                        let pause = match absence.means(times_absent, was_listed) {
                            Meaning::AskAgain => ABSENT_AGAIN,
                            Meaning::KeepAll => {
                                let kind = self.resource().kind;
                                tracing::warn!(%kind, "the operator may not read this kind any more; it keeps its \
                                    last copy");
                                self.scope.absent_retry
                            }
                            Meaning::NoneThere => {
                                absence.tell(&self.resource().kind, times_absent);
                                self.keep_only(namespace, &HashSet::new(), tell);
                                was_listed = false;
                                arrived();
                                self.scope.absent_retry
                            }
                        };
                        tokio::time::sleep(pause).await;
                        break;
                    }
                }
            }
        }
    }

    /// Takes over what the API answered to a write. What is not watched is not kept: no watch would report its
    /// deletion.
    pub fn took(&self, object: RawObject, tell: impl Fn(&Change<K>)) {
        let selector = self.scope.labels.as_deref();
        let is_selected = selector.is_none_or(|selector| selects(selector, object.meta().labels.as_ref()));
        if is_selected && self.covers(&Key::of(&object).namespace) {
            self.put(object, &tell);
        }
    }

    /// The same for the change of an object that is there. One that is not here by now went while the answer was on
    /// its way, perhaps before the newest list, and no watch would report that again; only a label can have brought
    /// it in.
    pub fn took_change(&self, object: RawObject, tell: impl Fn(&Change<K>)) {
        if self.scope.labels.is_some() || self.get(&Key::of(&object)).is_some() {
            self.took(object, tell);
        }
    }

    fn put(&self, object: RawObject, tell: &impl Fn(&Change<K>)) {
        let key = Key::of(&object);
        let version = object.meta().resource_version.as_deref();
        // Most of what a watch brings was the answer to a write before, and is not worth being parsed.
        if !self.read().is_news(&key, version) {
            return;
        }
        let Some(after) = parse::<K>(&object).map(Arc::new) else {
            return;
        };
        let change = {
            let mut state = self.write();
            if !state.is_news(&key, version) {
                return;
            }
            state.gone.remove(&key);
            let before = state.objects.get(&key).cloned();
            if let Some(before) = &before {
                self.unfile(&mut state, &key, before);
            }
            self.file(&mut state, &key, &after);
            state.objects.insert(key.clone(), after.clone());
            Change {
                key,
                before,
                after: Some(after),
            }
        };
        tell(&change);
    }

    fn remove(&self, key: &Key, version: Option<String>, tell: &impl Fn(&Change<K>)) {
        let change = {
            let mut state = self.write();
            if let Some(version) = version {
                state.gone.insert(key.clone(), version);
            }
            let Some(before) = state.objects.remove(key) else {
                return;
            };
            self.unfile(&mut state, key, &before);
            Change {
                key: key.clone(),
                before: Some(before),
                after: None,
            }
        };
        tell(&change);
    }

    /// After a new list: what is not on it went while nobody watched.
    fn keep_only(&self, namespace: &str, listed: &HashSet<Key>, tell: &impl Fn(&Change<K>)) {
        let mine = |key: &&Key| namespace.is_empty() || key.namespace == namespace;
        self.write().gone.retain(|key, _| !mine(&key));
        let gone: Vec<Key> = {
            let state = self.read();
            state
                .objects
                .keys()
                .filter(mine)
                .filter(|key| !listed.contains(*key))
                .cloned()
                .collect()
        };
        for key in gone {
            self.remove(&key, None, tell);
        }
    }

    fn file(&self, state: &mut State<K>, key: &Key, object: &K) {
        for Index { name, values } in &self.indexes {
            for value in values(object) {
                state.found.entry((name, value)).or_default().insert(key.clone());
            }
        }
    }

    fn unfile(&self, state: &mut State<K>, key: &Key, object: &K) {
        for Index { name, values } in &self.indexes {
            for value in values(object) {
                let place = (*name, value);
                if let Some(keys) = state.found.get_mut(&place) {
                    keys.remove(key);
                    if keys.is_empty() {
                        state.found.remove(&place);
                    }
                }
            }
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State<K>> {
        // Nothing panics while it is held.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State<K>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One bad object must not hide the others.
pub fn parse<K: Kind>(object: &RawObject) -> Option<K> {
    match object.parse() {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::warn!(key = %Key::of(object), %error, "cannot parse an object; skipping it");
            None
        }
    }
}

/// Versions are numbers that grow, as the API promises; texts that are not are taken as newer.
fn is_newer(new: Option<&str>, old: Option<&str>) -> bool {
    let number = |text: Option<&str>| text?.parse::<u64>().ok();
    match (number(new), number(old)) {
        (Some(new), Some(old)) => new > old,
        _ => new != old,
    }
}

/// Whether labels fit a selector, of the two forms that are used here: a key, or a key and its value.
fn selects(selector: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
    let found = |key: &str| labels.and_then(|labels| labels.get(key));
    match selector.split_once('=') {
        Some((key, value)) => found(key).is_some_and(|found| found == value),
        None => found(selector).is_some(),
    }
}

/// Why a kind cannot be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absence {
    NotInstalled,
    NotAllowed,
}

/// What follows from it.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    AskAgain,
    /// Objects were there, and no answer says that they went.
    KeepAll,
    NoneThere,
}

impl Absence {
    /// Most clusters lack some kinds of others; a missing right is a mistake, which is logged once.
    fn tell(self, kind: &str, times: u32) {
        match self {
            Self::NotAllowed if times == ABSENT_TRIES => tracing::warn!(
                kind,
                "the operator may not list this kind and ignores its objects; see deploy/manifests/clusterrole.yaml"
            ),
            Self::NotInstalled | Self::NotAllowed => {
                tracing::debug!(
                    kind,
                    "this kind is not installed, or the operator may not list it"
                );
            }
        }
    }

    /// `times`: how often in a row it was said.
    fn means(self, times: u32, was_listed: bool) -> Meaning {
        match self {
            // What was never there is believed at once: most kinds of others are not installed.
            Self::NotInstalled if !was_listed => Meaning::NoneThere,
            Self::NotInstalled | Self::NotAllowed if times < ABSENT_TRIES => Meaning::AskAgain,
            Self::NotAllowed if was_listed => Meaning::KeepAll,
            Self::NotInstalled | Self::NotAllowed => Meaning::NoneThere,
        }
    }
}

fn absence(error: &watcher::Error) -> Option<Absence> {
    let (watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause)) = error else {
        return None;
    };
    match cause {
        kube::Error::Api(status) if status.code == 403 => Some(Absence::NotAllowed),
        kube::Error::Api(status) if status.code == 404 => Some(Absence::NotInstalled),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
