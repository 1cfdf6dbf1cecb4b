//! Where settings come from, and which one wins.

use crate::canned::Canned;
use crate::program::{command, finish};

fn hub_of(hub: &Canned) -> String {
    hub.url.clone()
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file() {
    let good = Canned::start(&[]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("muster.toml");
    let list = |flag: Option<&str>, env: Option<&str>, in_file: Option<&str>| {
        let hub = in_file.map(|url| format!("hub = '{url}'\n")).unwrap_or_default();
        std::fs::write(&file, format!("{hub}[host]\noutput = 'name'\n")).unwrap();
        let mut run = command(&["host", "list"]);
        run.current_dir(dir.path());
        if let Some(url) = flag {
            run.args(["--hub", url]);
        }
        if let Some(url) = env {
            run.env("MUSTER_HUB", url);
        }
        finish(run)
    };
    let bad = "http://127.0.0.1:1";
    let good = hub_of(&good);
    assert_eq!(list(None, None, Some(&good)).code, 0, "the file is read");
    assert_eq!(
        list(None, Some(&good), Some(bad)).code,
        0,
        "the environment beats the file"
    );
    assert_eq!(
        list(Some(&good), Some(bad), Some(bad)).code,
        0,
        "a flag beats both"
    );
    assert_eq!(list(Some(bad), Some(&good), Some(&good)).code, 6);
    assert_eq!(
        list(None, None, Some(&good)).out.lines().count(),
        3,
        "sections belong to subcommands"
    );
}

#[test]
fn the_users_file_and_a_named_file_are_read() {
    let hub = Canned::start(&[]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("muster")).unwrap();
    std::fs::write(
        dir.path().join("muster/config.toml"),
        format!("hub = '{}'", hub.url),
    )
    .unwrap();
    let mut run = command(&["cluster", "list"]);
    run.env("XDG_CONFIG_HOME", dir.path());
    assert_eq!(finish(run).code, 0);

    let named = dir.path().join("other.toml");
    std::fs::write(&named, "hub = 'http://127.0.0.1:1'").unwrap();
    let mut run = command(&["cluster", "list", "--config", named.to_str().unwrap()]);
    run.env("XDG_CONFIG_HOME", dir.path());
    assert_eq!(
        finish(run).code,
        6,
        "a named file is read instead of the usual ones"
    );
}

#[test]
fn an_unknown_key_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("muster.toml"), "[serve]\nlissten = '1.2.3.4:5'\n").unwrap();
    let mut run = command(&["host", "list"]);
    run.current_dir(dir.path());
    let ran = finish(run);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("`serve.lissten`") && ran.err.contains("muster.toml"),
        "{}",
        ran.err
    );
}

#[test]
fn a_missing_named_file_is_an_error() {
    let ran = crate::program::run(&["--config", "no-such-file.toml", "host", "list"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("no-such-file.toml"), "{}", ran.err);
}
