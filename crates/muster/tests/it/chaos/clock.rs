//! The clock goes two hours ahead and two hours back while the hub runs.

use super::claims::lasts;
use super::crew::Size;
use super::processes::ENDING_WITH_US;
use super::trial::{AGAIN, Trial};
use crate::served::{Place, Served};
use jiff::Timestamp;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The library that tells programs another time.
const LIBRARY: &str = "MUSTER_TEST_FAKETIME";
/// What a hub says because of its clock; nothing is expected.
const WORDS: &[&str] = &["clock"];

/// Workers look by themselves every few seconds.
const A_WHILE: Duration = Duration::from_secs(6);

/// Seconds a change may be old, where it is seen whether the clock jumped.
const ABOUT: i64 = 60;

/// The library leaves files in shared memory; these go with the hub.
const OWN_MEMORY: [&str; 7] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    r#"mount -t tmpfs none /dev/shm && exec env "$@""#,
    "sh",
    "LC_ALL=C",
];

/// What the hub takes for the time.
struct Clock {
    file: PathBuf,
}

impl Clock {
    fn under(place: Place) -> (Self, Place) {
        let library = std::env::var(LIBRARY).unwrap_or_else(|_| {
            panic!("{LIBRARY} is not set; run this with `cargo xtask test --only chaos`")
        });
        let clock = Self {
            file: place.path().join("clock"),
        };
        clock.set(0);
        let mut around: Vec<String> = ENDING_WITH_US.map(str::to_owned).into();
        around.extend(OWN_MEMORY.map(str::to_owned));
        around.push(format!("LD_PRELOAD={library}"));
        around.push(format!("FAKETIME_TIMESTAMP_FILE={}", clock.file.display()));
        // Only what people call the time is wrong, and it is looked up each time.
        around.extend(["FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_NO_CACHE=1"].map(str::to_owned));
        (clock, place.within(around))
    }

    /// So many seconds from the truth.
    fn set(&self, offset: i64) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{offset:+}")).unwrap();
        std::fs::rename(&new, &self.file).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn a_clock_that_jumps_two_hours_ahead_and_back_changes_nothing() {
    let (clock, place) = Clock::under(Place::sqlite());
    let served = Served::start(&place);
    let mut trial = Trial::begin(&[&served], Size::SOME).await;
    for (what, offset) in [
        ("two hours ahead", 7200),
        ("back to the truth", 0),
        ("two hours behind", -7200),
        ("ahead to the truth", 0),
    ] {
        let trouble = trial.trouble(what, WORDS);
        clock.set(offset);
        let jumped = Instant::now();
        let jumps = async || (strays(&served).await - offset).abs() <= ABOUT;
        trial
            .claims
            .soon(jumped, AGAIN, "the hub's clock jumps", jumps)
            .await;
        trial.recovers(&served, &trouble).await;
        lasts(A_WHILE).await;
        trial.all_is_well(jumped);
    }
    trial.ends(served, || Served::start(&place)).await;
}

/// How many seconds the time of the newest change is from the truth.
async fn strays(served: &Served) -> i64 {
    let last = served.changes().await.pop().unwrap();
    last.at.as_second() - Timestamp::now().as_second()
}
