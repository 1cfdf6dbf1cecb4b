//! Follows the hub's feed of changes and wakes what they concern. The hub never waits for it.

use super::Context;
use muster_contract::ClientError;
use muster_contract::v1::change::Change;
use std::time::Duration;

/// One question; proxies in between cut off much longer ones.
const WAIT_SECONDS: u32 = 25;
/// How often to ask a hub again that does not answer.
const RETRY: Duration = Duration::from_secs(1);

/// Never ends.
pub async fn follow(ctx: &Context) {
    loop {
        let from = head(ctx).await;
        ctx.is_fed(true);
        // The feed does not report what changed before `from`: so everything is reconciled.
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
            Err(error) => no_answer(ctx, &error).await,
        }
    }
}

/// Until the feed no longer reaches back to where this is.
async fn from_there(ctx: &Context, after: i64) {
    let mut feed = ctx.hub.follow(after);
    let mut was_silent = false;
    loop {
        match feed.next(WAIT_SECONDS).await {
            Ok(page) => {
                ctx.metrics.hub_is_there(true);
                if std::mem::take(&mut was_silent) {
                    // It may have other settings now, or other records, and its feed would report neither.
                    ctx.is_fed(true);
                    ctx.start_over();
                }
                ctx.metrics.fed(page.changes.len());
                page.changes.iter().for_each(|change| tell(ctx, change));
            }
            Err(ClientError::Refused { status: 410, .. }) => {
                tracing::warn!("the hub's feed does not reach back far enough; reconciling everything");
                ctx.is_fed(false);
                return;
            }
            Err(error) => {
                was_silent = true;
                no_answer(ctx, &error).await;
            }
        }
    }
}

fn tell(ctx: &Context, change: &Change) {
    // Before anybody reads it.
    ctx.hosts.note_change(change);
    ctx.clusters.note_change(change);
    for hook in &ctx.hooks.changed {
        hook(ctx, change);
    }
}

async fn no_answer(ctx: &Context, error: &ClientError) {
    tracing::debug!(%error, "cannot read the hub's feed; trying again");
    ctx.is_fed(false);
    if ctx.metrics.hub_is_there(false) {
        ctx.hooks.lost.iter().for_each(|hook| hook(ctx));
    }
    tokio::time::sleep(RETRY).await;
}
