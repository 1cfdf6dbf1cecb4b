//! A network of its own for a test, which only root may make.

/// Runs a test in a thread that sees no link but `lo`.
pub fn alone(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        // SAFETY: it concerns this thread only, which ends with the test.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
            test();
        } else {
            skipped("this needs root");
        }
    });
    thread.join().expect("the test fails in its thread");
}

/// Says loudly that a test is not run; where everything must be tested, it fails.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "CI must run this test: {why}");
    eprintln!("\nSKIPPED: {why}\n");
}
