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
            say_skipped();
        }
    });
    let thread = thread.expect("a thread for the test");
    thread.join().expect("the test fails in its thread");
}

/// Written to the terminal itself: the test runner swallows what is printed.
fn say_skipped() {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let text = format!("\nSKIPPED {name}: a network of its own needs root\n");
    std::io::stderr().write_all(text.as_bytes()).ok();
    assert!(
        std::env::var_os("CI").is_none(),
        "CI must run the tests that need root"
    );
}
