//! The bound on what base images take: with many downloads at once, and with what earlier ones left.

use crate::depot::{Mirror, Mood, files};
use crate::sample;
use muster_image::Depot;
use muster_image::depot::State;
use std::path::Path;

/// Images and what was begun of them.
fn taken(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let counts = |path: &Path| path.extension().is_some_and(|end| end == "iso" || end == "part");
    files
        .filter(|file| counts(&file.path()))
        .map(|file| file.metadata().unwrap().len())
        .sum()
}

#[tokio::test]
async fn two_that_are_fetched_at_once_do_not_exceed_the_bound_together() {
    let bytes = sample::bytes("2022-02");
    let len = bytes.len() as u64;
    let mirror = Mirror::start(bytes, &[Mood::Halts, Mood::Fine]);
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), len + len / 2).unwrap();
    let [first, second] = ["a", "b"].map(|name| mirror.named(name, None));
    let mut state = depot.watch(&first);
    let begun = |state: &State| matches!(state, State::Fetching { done_bytes: 1.., .. });
    state.wait_for(begun).await.unwrap();
    let error = depot.get(&second).await.unwrap_err();
    assert!(
        error.to_string().contains("downloads of other base images"),
        "{error}"
    );
    mirror.go_on();
    depot.get(&first).await.unwrap();
    assert_eq!((taken(dir.path()), depot.evictions()), (len, 0));
    // Once it is here it is one like any other, and goes for the next.
    let depot = Depot::open(dir.path(), len + len / 2).unwrap();
    depot.get(&second).await.unwrap();
    assert_eq!((taken(dir.path()), depot.evictions()), (len, 1));
}

#[tokio::test]
async fn a_crowd_of_first_fetches_stays_within_the_bound() {
    let bytes = sample::bytes("2022-02");
    let bound = 2 * bytes.len() as u64;
    let mirror = Mirror::start(bytes, &[Mood::Halts]);
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), bound).unwrap();
    let images: Vec<_> = (0..6).map(|n| mirror.named(&format!("v{n}"), None)).collect();
    let mut states: Vec<_> = images.iter().map(|image| depot.watch(image)).collect();
    let mut running = 0;
    for state in &mut states {
        let known = |state: &State| {
            matches!(
                state,
                State::Fetching { done_bytes: 1.., .. } | State::Failed { .. }
            )
        };
        let state = state.wait_for(known).await.unwrap();
        running += usize::from(matches!(&*state, State::Fetching { .. }));
    }
    assert_eq!(running, 2, "as many as fit whole");
    mirror.go_on();
    let mut ready = 0;
    for state in &mut states {
        let over = |state: &State| matches!(state, State::Ready(_) | State::Failed { .. });
        ready += usize::from(matches!(&*state.wait_for(over).await.unwrap(), State::Ready(_)));
    }
    assert_eq!(ready, 2);
    assert_eq!(taken(dir.path()), bound);
}

#[tokio::test]
async fn what_broken_downloads_left_counts_and_goes_when_room_is_needed() {
    let bytes = sample::bytes("2022-02");
    let len = bytes.len() as u64;
    let mirror = Mirror::start(bytes, &[Mood::Fine]);
    let dir = tempfile::tempdir().unwrap();
    let left = |end: &str| dir.path().join(format!("gone-x86_64-0.{end}"));
    std::fs::write(left("part"), vec![0; 600_000]).unwrap();
    std::fs::write(left("mark"), "{}").unwrap();
    let [first, second] = ["a", "b"].map(|name| mirror.named(name, None));
    let roomy = Depot::open(dir.path(), len + 600_000).unwrap();
    roomy.get(&first).await.unwrap();
    assert!(left("part").exists(), "there is room for both");
    let depot = Depot::open(dir.path(), 2 * len).unwrap();
    depot.get(&second).await.unwrap();
    assert!(!left("part").exists() && !left("mark").exists());
    assert_eq!((files(dir.path(), "iso"), depot.evictions()), (2, 0));
}
