//! What controllers bring to the operator: the kinds they read, the indexes these are found by, and the hooks that wake
//! their queues.
//!
//! Hooks are plain functions, not closures: all they need is in the context.

use super::Context;
use super::cache::{Change, Choose, Index, Kind, ObjectCache, Scope};
use super::queue::Queue;
use super::work::Reconcile;
use futures_util::future::{BoxFuture, join_all};
use kube::api::ApiResource;
use muster_contract::v1::change::Change as HubChange;
use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

/// A controller, as it is written down in the file of its folder and named in the list of all.
#[derive(Clone, Copy)]
pub struct Controller {
    pub name: &'static str,
    pub group: Group,
    /// How many objects are reconciled at the same time.
    pub workers: usize,
    /// Says what it reads and what wakes it.
    pub register: fn(&mut Registry),
    pub reconcile: Reconcile,
}

/// Controllers that act under the same lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    Service,
    CapiProvider,
}

impl Group {
    pub const ALL: [Self; 2] = [Self::Service, Self::CapiProvider];

    pub fn lease(self) -> &'static str {
        match self {
            Self::Service => crate::crd::keys::lease::SERVICE,
            Self::CapiProvider => crate::crd::keys::lease::CAPI_PROVIDER,
        }
    }
}

/// Names are unique.
impl PartialEq for Controller {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Controller {}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A kind whose objects are cached.
pub trait Cached: Kind {
    fn resource() -> ApiResource;

    /// Which of its objects.
    fn which() -> Which {
        Which::InNamespaces
    }

    /// How the version is chosen where servers have different ones.
    fn chooses_version() -> Option<Choose> {
        None
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those in the namespaces that the operator watches.
    InNamespaces,
    /// The same, and only with this label; with a value, or with any.
    Labelled(&'static str, Option<&'static str>),
    /// All there are, as of kinds without namespaces.
    Everywhere,
}

/// Called with each change of an object.
pub type Hook<K> = fn(&Context, &Change<K>);

/// Filled by the `register` function of each controller.
pub struct Registry {
    kube: kube::Client,
    namespaces: Vec<String>,
    retry: Duration,
    /// Whether the controller that registers now is switched on: otherwise nothing wakes it, while others may still read
    /// what it caches.
    is_on: bool,
    caches: Caches,
    hub: HubHooks,
}

impl Registry {
    /// The cache tries to list foreign kinds that are not installed every few `retry`.
    pub fn new(kube: &kube::Client, namespaces: &[String], retry: Duration) -> Self {
        Self {
            kube: kube.clone(),
            namespaces: namespaces.to_vec(),
            retry,
            is_on: true,
            caches: Caches::default(),
            hub: HubHooks::default(),
        }
    }

    pub fn add(&mut self, controller: &Controller, is_on: bool) {
        self.is_on = is_on;
        (controller.register)(self);
    }

    pub fn done(self) -> (Caches, HubHooks) {
        (self.caches, self.hub)
    }

    /// The controller reads this kind.
    pub fn reads<K: Cached>(&mut self) -> &mut Self {
        self.followed::<K>();
        self
    }

    /// The controller finds objects by this.
    pub fn index<K: Cached>(&mut self, index: Index<K>) -> &mut Self {
        self.followed::<K>().cache.add_index(index);
        self
    }

    /// Each change of an object of this kind concerns the controller.
    pub fn on<K: Cached>(&mut self, hook: Hook<K>) -> &mut Self {
        let is_on = self.is_on;
        let hooks = &mut self.followed::<K>().hooks;
        hooks.extend(is_on.then_some(hook));
        self
    }

    /// Something changed in the hub.
    pub fn on_hub(&mut self, hook: fn(&Context, &HubChange)) -> &mut Self {
        self.hub.changed.extend(self.is_on.then_some(hook));
        self
    }

    /// The hub does not answer any more. That it does again is a reason to start over.
    pub fn on_hub_lost(&mut self, hook: fn(&Context)) -> &mut Self {
        self.hub.lost.extend(self.is_on.then_some(hook));
        self
    }

    /// Everything must be reconciled: the operator began to lead, or the feed was cut off.
    pub fn on_start_over(&mut self, hook: fn(&Context)) -> &mut Self {
        self.hub.start_over.extend(self.is_on.then_some(hook));
        self
    }

    fn followed<K: Cached>(&mut self) -> &mut Followed<K> {
        let scope = scope(K::which(), &self.namespaces, self.retry);
        let kube = &self.kube;
        let new = || -> Box<dyn Follow> {
            let cache = ObjectCache::new(kube.clone(), K::resource(), scope);
            let cache = match K::chooses_version() {
                Some(choose) => cache.speaks(choose),
                None => cache,
            };
            Box::new(Followed::<K> {
                cache,
                hooks: Vec::new(),
            })
        };
        let kept = self.caches.0.entry(TypeId::of::<K>()).or_insert_with(new);
        let kept: &mut dyn Any = &mut **kept;
        kept.downcast_mut().expect("each is kept under its own type")
    }
}

fn scope(which: Which, namespaces: &[String], retry: Duration) -> Scope {
    let labels = match which {
        Which::InNamespaces | Which::Everywhere => None,
        Which::Labelled(key, None) => Some(key.to_owned()),
        Which::Labelled(key, Some(value)) => Some(format!("{key}={value}")),
    };
    Scope {
        namespaces: match which {
            Which::Everywhere => Vec::new(),
            Which::InNamespaces | Which::Labelled(..) => namespaces.to_vec(),
        },
        labels,
        absent_retry: 3 * retry,
    }
}

/// What else wakes controllers.
#[derive(Default)]
pub struct HubHooks {
    pub changed: Vec<fn(&Context, &HubChange)>,
    pub lost: Vec<fn(&Context)>,
    pub start_over: Vec<fn(&Context)>,
}

/// A cache, and who wants to know of what changes in it.
struct Followed<K> {
    cache: ObjectCache<K>,
    hooks: Vec<Hook<K>>,
}

/// The same whatever the kind.
trait Follow: Any + Send + Sync {
    fn run<'a>(&'a self, ctx: &'a Context) -> BoxFuture<'a, ()>;
    fn ready(&self) -> BoxFuture<'_, ()>;
}

impl<K: Cached> Follow for Followed<K> {
    fn run<'a>(&'a self, ctx: &'a Context) -> BoxFuture<'a, ()> {
        Box::pin(self.cache.run(|change| self.tell(ctx, change)))
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.cache.ready())
    }
}

impl<K> Followed<K> {
    fn tell(&self, ctx: &Context, change: &Change<K>) {
        for hook in &self.hooks {
            hook(ctx, change);
        }
    }
}

/// Copies of everything that is read, by the type of the objects.
#[derive(Default)]
pub struct Caches(HashMap<TypeId, Box<dyn Follow>>);

impl Caches {
    pub async fn ready(&self) {
        join_all(self.0.values().map(|one| one.ready())).await;
    }

    /// Watches everything, and passes each change on. Ends when it is dropped.
    pub async fn run(&self, ctx: &Context) {
        join_all(self.0.values().map(|one| one.run(ctx))).await;
    }

    fn followed<K: Cached>(&self) -> &Followed<K> {
        let kept = self.0.get(&TypeId::of::<K>());
        let kept = kept.and_then(|kept| (&**kept as &dyn Any).downcast_ref());
        kept.expect("whoever reads a kind says so when it registers")
    }
}

impl Context {
    /// Objects of this kind as they are known here.
    pub fn cache<K: Cached>(&self) -> &ObjectCache<K> {
        &self.caches.followed::<K>().cache
    }

    /// Passes a change on before the watch reports it.
    pub fn tell<K: Cached>(&self, change: &Change<K>) {
        self.caches.followed::<K>().tell(self, change);
    }

    /// Where objects wait for this controller; one that does not run lets nothing wait.
    pub fn queue(&self, of: &Controller) -> &Queue {
        self.queues.0.get(of.name).unwrap_or(&self.queues.1)
    }
}

/// One queue per controller that runs, by name, and one that takes nothing.
#[derive(Debug)]
pub struct Queues(BTreeMap<&'static str, Queue>, Queue);

impl Queues {
    pub fn of(running: &[Controller]) -> Self {
        let closed = Queue::default();
        closed.close();
        let queues = running.iter().map(|one| (one.name, Queue::default()));
        Self(queues.collect(), closed)
    }

    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Queue)> {
        self.0.iter().map(|(name, queue)| (*name, queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Chosen, infra_env};
    use crate::crd::NMStateConfig;
    use crate::runtime::Next;
    use crate::runtime::object::RawObject;
    use crate::{Connection, Options};
    use serde_json::json;

    const ADDED: Controller = Controller {
        name: "added",
        group: Group::Service,
        workers: 1,
        register: |registry| {
            registry.on(itself);
        },
        reconcile: |_, _| Box::pin(async { Ok(Next::Rest) }),
    };

    fn itself(ctx: &Context, change: &Change<NMStateConfig>) {
        ctx.queue(&ADDED).wake(change.key.clone());
        ctx.queue(&infra_env::CONTROLLER).wake(change.key.clone());
    }

    /// Of an operator that runs these, with a server that says nothing.
    fn context(running: &[Controller]) -> Context {
        let service = tower::service_fn(async |_: http::Request<kube::client::Body>| {
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
        });
        let connection = Connection {
            kube: kube::Client::new(service, "default"),
            requests: Default::default(),
        };
        let options = Options {
            controllers: Chosen(running.to_vec()),
            ..Options::default()
        };
        crate::context(&options, connection, "me").unwrap()
    }

    fn tell(ctx: &Context) {
        let object = json!({ "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "NMStateConfig",
            "metadata": { "name": "net", "namespace": "n", "resourceVersion": "1" }, "spec": {} });
        let object: RawObject = serde_json::from_value(object).unwrap();
        ctx.cache::<NMStateConfig>()
            .took(object, |change| ctx.tell(change));
    }

    #[tokio::test]
    async fn a_controller_hears_of_what_it_registered_for_and_only_those_that_run_have_queues() {
        let ctx = context(&[ADDED]);
        tell(&ctx);
        let waiting: Vec<_> = ctx
            .queues
            .all()
            .map(|(name, queue)| (name, queue.len()))
            .collect();
        assert_eq!(waiting, [("added", 1)]);
        assert!(ctx.queue(&infra_env::CONTROLLER).is_empty());
    }

    #[tokio::test]
    async fn what_a_controller_caches_that_is_switched_off_can_be_read_and_wakes_nobody() {
        let ctx = context(&[]);
        tell(&ctx);
        assert_eq!(ctx.cache::<NMStateConfig>().len(), 1);
        assert_eq!(ctx.queues.all().count(), 0);
    }
}
