//! The operator: Kubernetes objects on one side, the hub on the other.
//!
//! It watches objects (`runtime::cache`) and follows the hub's feed (`runtime::feed`). Both wake keys on the queues of
//! controllers, and each controller reads a snapshot, makes a plan and applies it. Nothing is remembered but in the
//! objects and in the hub.

pub mod connection;
pub mod controller;
pub mod crd;
pub mod error;
pub mod key;
pub mod options;
pub mod runtime;

pub use connection::Connection;
pub use error::Error;
pub use key::Key;
pub use options::{Election, MetalBoot, Options};

use controller::agent::{self, plan::csr};
use controller::{Controller, Group};
use muster_contract::HubClient;
use runtime::event::Recorder;
use runtime::joining::Joiners;
use runtime::metrics::Metrics;
use runtime::provider::Providers;
use runtime::registry::{Queues, Registry};
use runtime::{Context, feed, joining, lease, metrics, work};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Works until `stop`; objects that are being reconciled are finished. Without a server it works as soon as there is one. Metrics
/// and health are served on `metrics`, if it is given.
pub async fn run(
    options: Options,
    connection: Connection,
    metrics: Option<TcpListener>,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let me = identity();
    let ctx = Arc::new(context(&options, connection, &me)?);
    // End with this function, whatever happens.
    let mut background = JoinSet::new();
    if let Some(listener) = metrics {
        background.spawn(metrics::serve(ctx.clone(), listener));
    }
    let watching = ctx.clone();
    background.spawn(async move { watching.caches.run(&watching).await });
    let following = ctx.clone();
    background.spawn(async move { feed::follow(&following).await });
    let hearing = ctx.clone();
    let joiners = Joiners {
        node_of: csr::node_of,
        wake: |ctx, agent| ctx.queue(&agent::CONTROLLER).wake(agent),
    };
    background.spawn(async move { joining::run(&hearing, joiners).await });
    let (stopping, stopped) = watch::channel(false);
    let work = async {
        let mut all = JoinSet::new();
        for group in Group::ALL {
            all.spawn(lead(
                ctx.clone(),
                group,
                options.clone(),
                me.clone(),
                stopped.clone(),
            ));
        }
        all.join_all().await;
    };
    tokio::select! {
        () = async { stop.await; stopping.send_replace(true); std::future::pending().await } => {}
        () = work => {}
        // They never end by themselves: without any of them the operator would miss changes without noticing.
        Some(_) = background.join_next() => return Err(Error::Panic),
    }
    Ok(())
}

/// Sends no request: the operator waits for a server that does not answer at the start as it does later.
fn context(options: &Options, connection: Connection, me: &str) -> Result<Context, Error> {
    let Connection { kube, requests } = connection;
    let running = options.controllers.0.as_slice();
    let mut registry = Registry::new(&kube, &options.namespaces, options.retry);
    // Others may read what a controller caches that is switched off.
    let switched_off = controller::ALL.iter().filter(|one| !running.contains(one));
    switched_off.for_each(|controller| registry.add(controller, false));
    running
        .iter()
        .for_each(|controller| registry.add(controller, true));
    let (caches, hooks) = registry.done();
    Ok(Context {
        hub: HubClient::trusting(&options.hub_url, &options.hub_trust)?,
        hosts: Default::default(),
        clusters: Default::default(),
        caches,
        queues: Queues::of(running),
        hooks,
        recorder: Recorder::new(kube.clone(), me),
        metrics: Metrics::new(requests),
        sent: Default::default(),
        last_clusters: Default::default(),
        spokes: Default::default(),
        joining: Default::default(),
        providers: Providers::new(own_lease(options, &kube)).limited_to(&options.agent_namespaces),
        planes: Default::default(),
        reclaim_image: options.reclaim_image.clone(),
        metal_boot: options.metal_boot,
        ironic: options.ironic.clone(),
        ironic_images: options.ironic_images.clone(),
        pause_provisioned: options.pause_provisioned,
        clock: options.clock.clone(),
        retry: options.retry,
        kube,
    })
}

/// The namespace in which operators agree who acts.
fn own_lease(options: &Options, kube: &kube::Client) -> Option<String> {
    match &options.election {
        Election::Off => None,
        Election::On { namespace, .. } => Some(
            namespace
                .clone()
                .unwrap_or_else(|| kube.default_namespace().to_owned()),
        ),
    }
}

/// Works as long as this operator is the one that acts; waits to become it again.
async fn lead(
    ctx: Arc<Context>,
    group: Group,
    options: Options,
    me: String,
    mut stop: watch::Receiver<bool>,
) {
    let controllers = options.controllers.0.iter().copied();
    let controllers: Vec<Controller> = controllers.filter(|one| one.group == group).collect();
    if controllers.is_empty() {
        // The sender lives as long as this.
        let _ = stop.wait_for(|stop| *stop).await;
        return;
    }
    ctx.metrics.takes_part();
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => return,
        () = ctx.caches.ready() => ctx.metrics.caches_are_ready(),
    }
    let Election::On { namespace, terms } = options.election else {
        ctx.metrics.leads(true);
        ctx.start_over();
        return work_all(ctx, &controllers, stop).await;
    };
    let namespace = namespace.unwrap_or_else(|| ctx.kube.default_namespace().to_owned());
    let election = lease::Election::new(ctx.kube.clone(), &namespace, group.lease(), &me, terms);
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = election.win() => {}
        }
        ctx.metrics.leads(true);
        ctx.start_over();
        let stopped = tokio::select! {
            () = work_all(ctx.clone(), &controllers, stop.clone()) => true,
            () = election.keep() => false,
        };
        ctx.metrics.leads(false);
        if stopped {
            return election.release().await;
        }
        controllers.iter().for_each(|one| ctx.queue(one).abandon());
        if group == Group::Service {
            ctx.joining.leave_all();
        }
    }
}

async fn work_all(ctx: Arc<Context>, controllers: &[Controller], stop: watch::Receiver<bool>) {
    let mut all = JoinSet::new();
    for controller in controllers {
        all.spawn(work::run(ctx.clone(), *controller, stop.clone()));
    }
    all.join_all().await;
}

/// A new one at every start: nobody takes this operator for its predecessor.
fn identity() -> String {
    let pod = std::env::var("HOSTNAME").unwrap_or_else(|_| "muster-operator".into());
    format!("{pod}_{}", Uuid::new_v4())
}
