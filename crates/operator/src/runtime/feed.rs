//! Follows the hub's feed of changes and wakes what they concern. The hub never waits for it.

use super::Context;
use muster_contract::ClientError;
use muster_contract::v1::change::Change;
use std::time::Duration;

/// One question; proxies in between cut off much longer ones.
const WAIT_SECONDS: u32 = 25;
/// A hub that is away is asked again this often.
const RETRY: Duration = Duration::from_secs(1);

/// Never ends.
pub async fn follow(ctx: &Context) {
    loop {
        let from = head(ctx).await;
        ctx.is_fed(true);
        // What changed before `from` was not seen: so everything is reconciled.
        ctx.start_over();
        from_there(ctx, from).await;
        // A hub that says so again and again is not asked in a circle.
        tokio::time::sleep(RETRY).await;
    }
}

/// The newest place in the feed.
async fn head(ctx: &Context) -> i64 {
    loop {
        match ctx.hub.hub_status().await {
            Ok(status) => {
                ctx.metrics.hub_is_there(true);
                return status.newest_change;
            }
            Err(error) => away(ctx, &error).await,
        }
    }
}

/// Until the feed no longer reaches back to where this is.
async fn from_there(ctx: &Context, after: i64) {
    let mut feed = ctx.hub.follow(after);
    let mut was_away = false;
    loop {
        match feed.next(WAIT_SECONDS).await {
            Ok(page) => {
                ctx.metrics.hub_is_there(true);
                if std::mem::take(&mut was_away) {
                    // It may have other settings now, or other records: of neither its feed would tell.
                    ctx.is_fed(true);
                    ctx.start_over();
                }
                ctx.metrics.fed(page.changes.len());
                page.changes.iter().for_each(|change| tell(ctx, change));
            }
            Err(ClientError::Refused { status: 410, .. }) => {
                tracing::warn!("the hub's feed does not reach back far enough; everything is read anew");
                ctx.is_fed(false);
                return;
            }
            Err(error) => {
                was_away = true;
                away(ctx, &error).await;
            }
        }
    }
}

fn tell(ctx: &Context, change: &Change) {
    // Before anybody reads it.
    ctx.hosts.heard(change);
    ctx.clusters.heard(change);
    for hook in &ctx.hooks.changed {
        hook(ctx, change);
    }
}

async fn away(ctx: &Context, error: &ClientError) {
    tracing::debug!(%error, "the feed cannot be read; it is tried again");
    ctx.is_fed(false);
    if ctx.metrics.hub_is_there(false) {
        ctx.hooks.lost.iter().for_each(|hook| hook(ctx));
    }
    tokio::time::sleep(RETRY).await;
}
