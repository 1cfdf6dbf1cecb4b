//! The feed is never ahead of what the same hub shows: whoever is woken by it reads once, and is not told again.

use crate::door::{Door, V1, V2};
use crate::place::Place;
use muster_hub::{Clock, worker};

async fn clusters_listed(door: &Door) -> String {
    door.get(&format!("{V2}/clusters")).await.text
}

#[tokio::test]
async fn a_change_is_told_when_lists_show_it() {
    let door = Door::open().await;
    // Its memory has only what it learned by itself, as long as a commit has not got through to it.
    let late = door.blind().await;
    let cluster = door.cluster("alpha").await.to_string();
    assert!(!clusters_listed(&late).await.contains(&cluster), "so it is late");
    let told = late.get(&format!("{V1}/changes")).await.text;
    assert!(told.contains(&cluster), "{told}");
    let listed = clusters_listed(&late).await;
    assert!(listed.contains(&cluster), "{listed}");
}

#[tokio::test]
async fn whoever_follows_from_the_newest_change_on_has_missed_nothing() {
    let door = Door::open().await;
    let late = door.blind().await;
    let before = door.cluster("alpha").await.to_string();
    // A later change that is known first.
    late.cluster("beta").await;
    let newest = late.get(&format!("{V1}/status")).await.body["newest_change"].clone();
    let listed = clusters_listed(&late).await;
    let told = late.get(&format!("{V1}/changes?after={newest}")).await.text;
    assert!(
        listed.contains(&before) || told.contains(&before),
        "neither in {listed} nor in {told}"
    );
}

#[tokio::test]
async fn what_never_got_through_to_memory_is_taken_over_by_the_hub_itself() {
    let door = Door::open().await;
    let late = door.blind().await;
    let cluster = door.cluster("alpha").await.to_string();
    worker::feed::catch_up(&late.hub).await.unwrap();
    assert!(clusters_listed(&late).await.contains(&cluster));
}

#[tokio::test]
async fn rows_that_nobody_can_read_do_not_end_the_feed_for_what_comes_after_them() {
    let door = Door::at(Place::on_disk().await, Clock::System).await;
    let late = door.blind().await;
    let pool = door.infra_env("pool").await;
    worker::feed::catch_up(&late.hub).await.unwrap();
    for number in 1..=4 {
        door.worker(pool, number).await;
    }
    let rubbish = "update hosts set doc = 'rubbish'";
    door.tamper(rubbish, rubbish).await;
    let cluster = door.cluster("alpha").await.to_string();
    worker::feed::catch_up(&late.hub).await.unwrap();
    assert_eq!(late.hub.store.unreadable().len(), 4, "they are set aside");
    assert!(clusters_listed(&late).await.contains(&cluster));
    let told = late.get(&format!("{V1}/changes")).await;
    assert!(told.text.contains(&cluster), "{}", told.text);
}
