//! A network of its own for a test, which only root may make.

use std::io::Write;

/// Runs a test in a thread that sees no link but `lo`.
pub fn alone(test: impl FnOnce() + Send + 'static) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        // SAFETY: it concerns this thread only, which ends with the test.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
            test();
        } else {
            skipped("this needs root");
        }
    });
    let thread = thread.expect("a thread for the test");
    thread.join().expect("the test fails in its thread");
}

/// Says loudly that a test is not run, on the terminal itself because the test runner swallows what is printed; where
/// everything must be tested, it fails.
pub fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let text = format!("\nSKIPPED {name}: {why}\n");
    std::io::stderr().write_all(text.as_bytes()).ok();
    assert!(std::env::var_os("CI").is_none(), "CI must run this test: {why}");
}
