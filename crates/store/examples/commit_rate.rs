//! Measures the store: durable commits per second of many writers, and the reads a fleet of that size needs.
//!
//! `cargo run --release -p muster-store --example commit_rate -- [DATABASE] [HOSTS]`, by default a SQLite file in the
//! temporary directory and 100,000 hosts. Beside the rate stands that of bare inserts, each with a wait for the disk.

use jiff::Timestamp;
use muster_domain::host::{Host, Report};
use muster_domain::id::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_domain::journal::Severity;
use muster_store::{Commit, Database, EventQuery, HostFilter, ReportWrite, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use uuid::Uuid;

/// As many as requests in flight on a busy hub.
const WRITERS: usize = 64;

/// Single-row commits measured.
const COMMITS: usize = 30_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = std::env::temp_dir().join(format!("muster-commit-rate-{}", std::process::id()));
    let database: Database = match arguments.next() {
        Some(text) => text.parse()?,
        None => Database::directory(&directory),
    };
    let fleet: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    println!("{database:?}, {fleet} hosts, {WRITERS} writers");
    bare_syncs(&std::env::temp_dir())?;
    let store = Store::open(&database).await?;
    let infra_env = InfraEnvId(Uuid::new_v4());

    let started = Instant::now();
    let hosts: Arc<Vec<HostKey>> = Arc::new(
        (0..fleet)
            .map(|_| HostKey {
                infra_env,
                host: HostId(Uuid::new_v4()),
            })
            .collect(),
    );
    commits(&store, fleet, |number| {
        (
            arriving(hosts[number]),
            vec![(Report::Inventory, Some(inventory()))],
        )
    })
    .await?;
    rate("registrations with an inventory of 5 KB", fleet, started);

    let keys = hosts.iter().take(COMMITS).copied().collect::<Vec<_>>();
    let mut rows = Vec::with_capacity(keys.len());
    for key in &keys {
        rows.push(store.find(*key).await?.ok_or("a host is missing")?);
    }
    let cluster = ClusterId(Uuid::new_v4());
    let started = Instant::now();
    commits(&store, rows.len(), |number| {
        let mut host = rows[number].clone();
        host.cluster = Some(cluster);
        (host, Vec::new())
    })
    .await?;
    rate("binds (one row, one event, one change)", rows.len(), started);

    reads(&store, infra_env, cluster).await?;
    let checkins: Vec<_> = hosts.iter().map(|key| (*key, Timestamp::now(), 0)).collect();
    let started = Instant::now();
    store.checkins_flush(&checkins).await?;
    rate("check-ins in one flush", fleet, started);
    let started = Instant::now();
    store.checkins_flush(&checkins).await?;
    rate("check-ins in the next flush", fleet, started);
    let started = Instant::now();
    println!(
        "check-ins loaded: {} in {:?}",
        store.checkins_load().await?.len(),
        started.elapsed()
    );
    store.close().await;
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(())
}

fn arriving(key: HostKey) -> Host {
    let mut host = Host::arriving(key, None, Timestamp::now());
    host.status_info = "Waiting for the host's inventory and for its first checks".into();
    host
}

fn inventory() -> String {
    format!("{{\"disks\":\"{}\"}}", "x".repeat(5_000))
}

/// Writers take numbers until all are taken.
async fn commits<F>(store: &Store, count: usize, make: F) -> Result<(), Box<dyn std::error::Error>>
where
    F: Fn(usize) -> (Host, Vec<(Report, Option<String>)>),
{
    let next = AtomicUsize::new(0);
    let writer = || async {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok::<_, muster_store::StoreError>(());
            }
            let (host, reports) = make(number);
            let mut commit = Commit::new(Timestamp::now());
            commit.in_any_order = true;
            commit
                .journal
                .push(host.entry("host_status_updated", Severity::Info, "The host moved on"));
            let key = host.key();
            commit
                .reports
                .extend(reports.into_iter().map(|(report, body)| ReportWrite {
                    host: key,
                    report,
                    body,
                }));
            commit.puts.push(host.into());
            store.commit(commit).await?;
        }
    };
    futures_util::future::try_join_all((0..WRITERS).map(|_| writer())).await?;
    Ok(())
}

async fn reads(
    store: &Store,
    infra_env: InfraEnvId,
    cluster: ClusterId,
) -> Result<(), Box<dyn std::error::Error>> {
    let wanted = [Report::Inventory, Report::Validations];
    for (what, filter) in [
        (
            "of the pool",
            HostFilter {
                infra_env: Some(infra_env),
                ..HostFilter::default()
            },
        ),
        (
            "of a cluster",
            HostFilter {
                cluster: Some(cluster),
                ..HostFilter::default()
            },
        ),
        (
            "free",
            HostFilter {
                infra_env: Some(infra_env),
                free: Some(true),
                ..HostFilter::default()
            },
        ),
    ] {
        let mut after = None;
        for _ in 0..3 {
            let started = Instant::now();
            let page = store
                .hosts_page(&filter, after, 1000, &wanted, |_, _| None)
                .await?;
            println!(
                "a page of {} hosts {what} with reports: {:?}",
                page.len(),
                started.elapsed()
            );
            after = page.last().map(|(host, _)| host.key());
        }
    }
    let started = Instant::now();
    let (mut after, mut count) = (None, 0);
    loop {
        let piece = store.load::<Host>(after, 10_000).await?;
        count += piece.len();
        match piece.last() {
            Some(last) => after = Some(last.key()),
            None => break,
        }
    }
    println!("hosts loaded: {count} in {:?}", started.elapsed());
    let started = Instant::now();
    let query = EventQuery {
        infra_env: Some(infra_env),
        limit: Some(100),
        desc: true,
        ..EventQuery::default()
    };
    let page = store.events_list(&query).await?;
    println!(
        "a page of {} out of {} events: {:?}",
        page.events.len(),
        page.total,
        started.elapsed()
    );
    Ok(())
}

/// What the disk alone allows: small appends, each with its own wait.
fn bare_syncs(directory: &std::path::Path) -> std::io::Result<()> {
    use std::io::Write;
    const SYNCS: usize = 200;
    let path = directory.join(format!("muster-sync-{}", std::process::id()));
    let mut file = std::fs::File::create(&path)?;
    let started = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
    }
    rate(
        "bare appends of 4 KB with a wait for the disk each",
        SYNCS,
        started,
    );
    std::fs::remove_file(path)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(what: &str, count: usize, started: Instant) {
    let elapsed = started.elapsed();
    println!(
        "{what}: {:.0}/s ({count} in {elapsed:.2?})",
        count as f64 / elapsed.as_secs_f64()
    );
}
