//! The agent's log: lines on standard error, and the last of them in memory for `logs-gather`.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Enough for days of polling; a few megabytes at most.
const KEPT_LINES: usize = 20_000;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
static SCREENS: OnceLock<Vec<File>> = OnceLock::new();

/// In an image, people look at a screen or at a serial line; the kernel gives programs only the last of its consoles.
pub fn show_on(screens: Vec<File>) {
    let _ = SCREENS.set(screens);
}

pub fn write(text: fmt::Arguments<'_>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let line = format!("{}.{:03} {text}", now.as_secs(), now.subsec_millis());
    // A console may be gone, which the macro takes for a reason to stop.
    let _ = std::panic::catch_unwind(|| eprintln!("{line}"));
    for mut screen in SCREENS.get().into_iter().flatten() {
        let _ = writeln!(screen, "{line}\r");
    }
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() == KEPT_LINES {
        lines.pop_front();
    }
    lines.push_back(line);
}

/// All lines that are still kept.
pub fn text() -> String {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    for line in lines.iter() {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Adds a line to the log.
#[macro_export]
macro_rules! note {
    ($($arg:tt)*) => { $crate::log::write(format_args!($($arg)*)) };
}
