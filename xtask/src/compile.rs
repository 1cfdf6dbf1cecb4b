//! Compiling with somebody waiting: what is being compiled, how far it is, and about how long it takes.

use std::cell::RefCell;
use std::fmt;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::process::{self, Heard, Piece};
use crate::project::{self, Profile};

/// Often enough to see that it lives, seldom enough for a log.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Before that an estimate is a guess: cargo has begun with what is quick.
const FIRST_ESTIMATE: Duration = Duration::from_secs(30);

/// Wider than any terminal, so that cargo names all that it compiles at the moment.
const WIDTH: &str = "200";

/// Of how many crates cargo works on the names are told.
const NAMED: usize = 3;

/// How much of the time is gone when so much of the crates is compiled, from builds on two cores: the large ones, ours
/// among them, come late.
const SHARES: &[(f64, f64)] = &[
    (0.0, 0.0),
    (0.1, 0.12),
    (0.25, 0.19),
    (0.5, 0.34),
    (0.75, 0.55),
    (0.9, 0.77),
    (0.97, 0.88),
    (1.0, 1.0),
];

/// What is compiled, and what that costs from nothing.
pub struct Work {
    what: &'static str,
    /// The time of all compilers, added up crate by crate.
    cpu: Duration,
    /// What is there afterwards, and when only something has changed before.
    product: PathBuf,
}

impl Work {
    pub fn up(profile: Profile) -> Self {
        Self {
            what: "Muster",
            cpu: Duration::from_secs(420),
            product: project::binary(profile),
        }
    }

    pub fn chores() -> Self {
        let folder = project::target().join(Profile::Dev.directory());
        Self {
            what: "the chores",
            cpu: Duration::from_secs(300),
            product: folder.join("chores"),
        }
    }

    /// What it takes from nothing, here.
    fn expected(&self) -> Duration {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
        self.cpu / cores as u32
    }
}

/// Runs cargo. On a terminal its own bar shows how far it is; elsewhere a line every few seconds does.
pub fn run(mut cargo: Command, work: &Work) -> Result<()> {
    if work.product.exists() {
        eprintln!("Compiling what changed in {}.", work.what);
    } else {
        eprintln!(
            "Compiling {} for the first time: {} on this machine.",
            work.what,
            About(work.expected())
        );
    }
    if stderr().is_terminal() {
        return process::run(&mut cargo, project::BUILD_LIMIT);
    }
    cargo
        .env("CARGO_TERM_COLOR", "never")
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", WIDTH);
    let watch = RefCell::new(Watch::start());
    process::run_heard(
        cargo,
        Heard::Errors,
        project::BUILD_LIMIT,
        |piece| watch.borrow_mut().hear(piece),
        || {
            if let Some(line) = watch.borrow_mut().due(Instant::now()) {
                eprintln!("{line}");
            }
        },
    )
}

/// What cargo has said, and when somebody was told.
struct Watch {
    started: Instant,
    told: Instant,
    newest: Option<Progress>,
    /// How much was there already.
    fresh: Option<f64>,
}

/// How far cargo is.
#[derive(Debug, PartialEq)]
struct Progress {
    done: u32,
    of: u32,
    now: String,
}

impl Watch {
    fn start() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            told: now,
            newest: None,
            fresh: None,
        }
    }

    fn hear(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Line(line) if is_news(line) => eprintln!("{line}"),
            Piece::Line(_) => {}
            Piece::Passing(text) => {
                let Some(progress) = progress(text) else { return };
                let share = progress.share();
                self.fresh.get_or_insert(share);
                self.newest = Some(progress);
            }
        }
    }

    /// The line that is to be told now.
    fn due(&mut self, now: Instant) -> Option<String> {
        if now.duration_since(self.told) < TELL_EVERY {
            return None;
        }
        self.told = now;
        let gone = now.duration_since(self.started);
        let clock = format!("{}:{:02} so far", gone.as_secs() / 60, gone.as_secs() % 60);
        let Some(Progress { done, of, now }) = &self.newest else {
            return Some(format!("  cargo prepares, {clock}"));
        };
        let left = self
            .left(gone)
            .map_or(String::new(), |left| format!(", {left} to go"));
        Some(format!("  {done} of {of} compiled, now {now}: {clock}{left}"))
    }

    /// Told only of a build from nothing, and only once it can be told.
    fn left(&self, gone: Duration) -> Option<About> {
        let share = self.newest.as_ref()?.share();
        let is_cold = self.fresh.is_some_and(|fresh| fresh < 0.05);
        let spent = spent(share);
        (is_cold && gone >= FIRST_ESTIMATE && spent > 0.0).then(|| About(gone.mul_f64((1.0 - spent) / spent)))
    }
}

impl Progress {
    fn share(&self) -> f64 {
        f64::from(self.done) / f64::from(self.of.max(1))
    }
}

/// Which part of the time is gone when this part of the crates is compiled.
fn spent(share: f64) -> f64 {
    let between = SHARES.windows(2).find(|pair| share <= pair[1].0);
    between.map_or(1.0, |pair| {
        let ((from, low), (to, high)) = (pair[0], pair[1]);
        low + (high - low) * (share - from) / (to - from)
    })
}

/// What a person wants to read of cargo: not the name of each crate, and nothing when all went well.
fn is_news(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    !matches!(word, "" | "Compiling" | "Downloaded" | "Finished")
}

/// Cargo's `Building [==>  ] 12/345: serde, tokio(build)`.
fn progress(text: &str) -> Option<Progress> {
    let (_, rest) = text.split_once("] ")?;
    let (counts, names) = rest.split_once(':').unwrap_or((rest, ""));
    let (done, of) = counts.trim().split_once('/')?;
    let names: Vec<&str> = names.trim().split(", ").filter(|name| !name.is_empty()).collect();
    let (shown, more) = names.split_at(names.len().min(NAMED));
    let now = match (shown, more) {
        ([], _) => "linking".to_owned(),
        (shown, []) => shown.join(", "),
        (shown, _) => format!("{} and others", shown.join(", ")),
    };
    Some(Progress {
        done: done.parse().ok()?,
        of: of.parse().ok()?,
        now,
    })
}

/// A span as an estimate may tell it.
struct About(Duration);

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_secs() + 30) / 60 {
            0 => write!(f, "less than a minute"),
            1 => write!(f, "about a minute"),
            minutes => write!(f, "about {minutes} minutes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAR: &str = "    Building [=====>                ] 12/345: serde, tokio, syn, libc(build)";

    #[test]
    fn the_bar_of_cargo_is_read() {
        let seen = progress(BAR).unwrap();
        assert_eq!((seen.done, seen.of), (12, 345));
        assert_eq!(seen.now, "serde, tokio, syn and others");
        assert_eq!(
            progress("    Building [====>] 3/4: muster(bin)").unwrap().now,
            "muster(bin)"
        );
        assert_eq!(progress(" Downloading 3 crates, remaining bytes: 12"), None);
    }

    #[test]
    fn only_what_a_person_wants_to_read_is_passed_on() {
        for line in [
            "   Compiling serde v1.0.0",
            "    Finished `quick` profile",
            "",
            "  Downloaded a v1",
        ] {
            assert!(!is_news(line), "{line}");
        }
        for line in [
            "error: could not compile",
            "    Updating the index",
            "  --> src/main.rs:1",
        ] {
            assert!(is_news(line), "{line}");
        }
    }

    #[test]
    fn something_is_told_every_few_seconds_even_when_cargo_says_nothing() {
        let mut watch = Watch::start();
        let after = |seconds| watch_at(&watch, seconds);
        let (soon, first, second) = (after(1), after(10), after(20));
        assert_eq!(watch.due(soon), None);
        assert_eq!(watch.due(first).unwrap(), "  cargo prepares, 0:10 so far");
        watch.hear(Piece::Passing(BAR));
        let line = watch.due(second).unwrap();
        assert_eq!(
            line,
            "  12 of 345 compiled, now serde, tokio, syn and others: 0:20 so far"
        );
    }

    #[test]
    fn an_estimate_is_given_for_a_build_from_nothing_and_never_grows_out_of_nothing() {
        let mut watch = Watch::start();
        watch.hear(Piece::Passing("Building [>] 0/100: a"));
        watch.hear(Piece::Passing("Building [=>] 50/100: b"));
        let minute = watch_at(&watch, 60);
        assert!(
            watch
                .due(minute)
                .unwrap()
                .ends_with("1:00 so far, about 2 minutes to go")
        );
        let mut warm = Watch::start();
        warm.hear(Piece::Passing("Building [=>] 90/100: b"));
        let minute = watch_at(&warm, 60);
        assert!(warm.due(minute).unwrap().ends_with("1:00 so far"));
    }

    fn watch_at(watch: &Watch, seconds: u64) -> Instant {
        watch.started + Duration::from_secs(seconds)
    }

    #[test]
    fn the_time_that_is_gone_grows_with_what_is_done() {
        let all: Vec<f64> = (0..=100)
            .map(|percent| spent(f64::from(percent) / 100.0))
            .collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        assert_eq!((all[0], all[100]), (0.0, 1.0));
    }

    #[test]
    fn estimates_are_told_in_minutes() {
        let told = |seconds| About(Duration::from_secs(seconds)).to_string();
        assert_eq!(told(20), "less than a minute");
        assert_eq!(told(80), "about a minute");
        assert_eq!(told(290), "about 5 minutes");
    }
}
