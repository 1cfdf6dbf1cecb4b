//! Effects wait until they are done.

use crate::place::Place;
use crate::sample::*;
use jiff::Timestamp;
use muster_domain::host::Effect;
use muster_domain::id::{ClusterId, HostKey};
use muster_store::{Commit, OutboxRetry, Store};
use uuid::Uuid;

crate::on_both!(
    an_effect_waits_until_it_is_done,
    a_failed_effect_comes_back_later,
    an_effect_of_a_clock_that_was_ahead_is_due_when_the_clock_is_right_again,
    a_wish_renewed_while_being_worked_on_is_kept,
    an_effect_that_cannot_be_read_keeps_no_other_waiting,
);

fn finish(host: HostKey) -> Effect {
    Effect::FinishMove {
        host,
        to: ClusterId(Uuid::new_v4()),
    }
}

async fn wish(store: &Store, at: Timestamp, effects: &[Effect]) {
    store
        .commit(Commit {
            effects: effects.to_vec(),
            ..Commit::new(at)
        })
        .await
        .unwrap();
}

async fn effects(store: &Store, now: Timestamp) -> Vec<Effect> {
    store
        .outbox_due(now, 100)
        .await
        .unwrap()
        .into_iter()
        .map(|item| item.effect)
        .collect()
}

async fn an_effect_waits_until_it_is_done(place: &Place) {
    let store = place.open().await;
    let (a, b) = (finish(key()), finish(key()));
    wish(&store, at(10), std::slice::from_ref(&a)).await;
    wish(&store, at(5), std::slice::from_ref(&b)).await;
    assert_eq!(effects(&store, at(4)).await, []);
    assert_eq!(store.outbox_next().await.unwrap(), Some(at(5)));
    assert_eq!(effects(&store, at(10)).await, [b, a.clone()]);
    let first = store.outbox_due(at(10), 1).await.unwrap()[0].id;
    store
        .commit(Commit {
            outbox_done: vec![first],
            ..commit()
        })
        .await
        .unwrap();
    assert_eq!(effects(&store, at(10)).await, [a]);
    assert_eq!(store.counts().await.unwrap().outbox, 1);
}

async fn a_failed_effect_comes_back_later(place: &Place) {
    let store = place.open().await;
    wish(&store, at(0), &[finish(key())]).await;
    let item = store.outbox_due(at(0), 1).await.unwrap().remove(0);
    let retry = OutboxRetry {
        id: item.id,
        due_at: at(30),
        error: "no answer".into(),
    };
    store
        .commit(Commit {
            outbox_retry: vec![retry],
            ..commit()
        })
        .await
        .unwrap();
    assert_eq!(effects(&store, at(29)).await, []);
    let again = store.outbox_due(at(30), 1).await.unwrap().remove(0);
    assert_eq!(
        (again.id, again.attempts, again.last_error.as_str()),
        (item.id, 1, "no answer")
    );
}

async fn an_effect_of_a_clock_that_was_ahead_is_due_when_the_clock_is_right_again(place: &Place) {
    let store = place.open().await;
    let effect = finish(key());
    wish(&store, at(7200), std::slice::from_ref(&effect)).await;
    assert_eq!(effects(&store, at(0)).await, [effect]);
}

async fn a_wish_renewed_while_being_worked_on_is_kept(place: &Place) {
    let store = place.open().await;
    let host = key();
    let (old, new) = (finish(host), finish(host));
    wish(&store, at(0), &[old]).await;
    let taken = store.outbox_due(at(0), 1).await.unwrap()[0].id;
    wish(&store, at(1), std::slice::from_ref(&new)).await;
    store
        .commit(Commit {
            outbox_done: vec![taken],
            ..commit()
        })
        .await
        .unwrap();
    assert_eq!(effects(&store, at(1)).await, [new]);
}

async fn an_effect_that_cannot_be_read_keeps_no_other_waiting(place: &Place) {
    let store = place.open().await;
    wish(&store, at(0), &[finish(key())]).await;
    place.tamper("update outbox set effect = 'rubbish'").await;
    let good = finish(key());
    wish(&store, at(1), std::slice::from_ref(&good)).await;
    assert_eq!(effects(&store, at(1)).await, [good]);
    assert_eq!(place.count("outbox").await, 2, "it is not lost");
}
