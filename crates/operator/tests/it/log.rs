//! What operators and hubs of this process log, kept to be shown when a test fails.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, Once, PoisonError};
use tracing_subscriber::EnvFilter;

/// Lines that are kept: some minutes of all tests together.
const KEPT: usize = 50_000;
/// Lines that are shown.
const SHOWN: usize = 300;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Begins with the first operator.
pub fn keep() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let filter = EnvFilter::new("warn,muster_operator=debug,muster_hub=info");
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(|| Line);
        // Whoever shows logs some other way sees them there.
        drop(subscriber.try_init());
    });
}

/// The last lines that name any of these, such as namespaces, or that warn.
pub fn tail(words: &[String]) -> String {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let concerns = |line: &&String| {
        let warns = || [" WARN ", " ERROR "].iter().any(|level| line.contains(level));
        words.iter().any(|word| line.contains(word)) || warns()
    };
    let mut last: Vec<_> = lines
        .iter()
        .rev()
        .filter(concerns)
        .take(SHOWN)
        .map(String::as_str)
        .collect();
    last.reverse();
    last.concat()
}

struct Line;

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
