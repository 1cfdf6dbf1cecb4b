//! Installations that coreos-installer does: what it is told, and what is checked before it starts.

use crate::installation::*;
use crate::world::*;
use serde_json::json;
use std::io::Write;
use std::process::{Command, Stdio};

/// It notes what it is told, keeps the image it is given, and fails as often as there are lines in `fail`.
const FAKE: &str = r#"#!/bin/sh
here=$(dirname "$0")
printf '%s ' "$@" >> "$here/told"
echo >> "$here/told"
while [ $# -gt 0 ]; do
    case "$1" in
    --image-file) cp "$2" "$here/image" ;;
    --ignition-file) cp "$2" "$here/ignition" ;;
    esac
    shift
done
if [ -s "$here/fail" ]; then
    sed -i 1d "$here/fail"
    echo "Error: the image cannot be fetched" >&2
    exit 1
fi
printf 'Read disk 1/2 (50%%)\rRead disk 2/2 (100%%)\n' >&2
"#;

/// Written by a child, so that no other test's child has it open for writing while it starts.
fn with_program(world: World) -> World {
    let path = world.path("usr/bin/coreos-installer");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let script = "cat > \"$0\" && chmod 755 \"$0\"";
    let mut child = Command::new("/bin/sh")
        .args(["-c", script, path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(FAKE.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    world
}

fn told(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("usr/bin/told")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn order_without_image(world: &World) {
    let mut order = order(world, "");
    order["installer_args"] = json!("[\"-n\"]");
    world.script.say(steps(&[("install", order)]));
    *world.script.until.lock().unwrap() = Some(has_ended);
    world.run();
}

#[test]
fn an_image_with_a_sum_is_checked_and_handed_over_as_it_was_checked() {
    let world = with_program(Plan::new(image()).world());
    let stages = install(&world, &format!("#sha256={}", hash(&image()).to_uppercase()));
    assert_eq!(stages.last().unwrap().0, "Rebooting", "{stages:?}");
    let told = told(&world);
    let disk = world.path("dev/vda");
    assert!(told[0].starts_with("install --ignition-file "), "{told:?}");
    assert!(
        told[0].contains("--append-karg ip=eth0:dhcp --image-file "),
        "{told:?}"
    );
    assert!(
        told[0].ends_with(&format!("/image-os.raw --insecure {} ", disk.display())),
        "{told:?}"
    );
    assert!(std::fs::read(world.path("usr/bin/image")).unwrap() == image());
    assert_eq!(
        std::fs::read_to_string(world.path("usr/bin/ignition")).unwrap(),
        IGNITION
    );
}

#[test]
fn a_damaged_image_never_reaches_the_program() {
    let sum = hash(&image());
    let mut damaged = image();
    damaged[5 * MIB] ^= 1;
    let world = with_program(Plan::new(damaged).world());
    let stages = install(&world, &format!("#sha256={sum}"));
    let (stage, info) = stages.last().unwrap();
    assert!(stage == "Failed" && info.contains("damaged"), "{stages:?}");
    assert_eq!(told(&world), Vec::<String>::new());
}

#[test]
fn an_image_that_memory_does_not_hold_is_checked_and_fetched_by_the_program() {
    let world = with_program(Plan::new(image()).world());
    world.file("proc/meminfo", "MemAvailable: 1000 kB\n");
    install(&world, &format!("#sha256={}", hash(&image())));
    let url = format!("--image-url {}/os.raw --fetch-retries 10 --insecure ", world.url);
    assert!(told(&world)[0].contains(&url), "{:?}", told(&world));
}

#[test]
fn a_signature_is_checked_where_there_is_one() {
    for (code, is_insecure) in [(200, false), (404, true)] {
        let world = Plan::new(image())
            .world_with(move |_, request| request.is("HEAD", "/os.raw.sig").then(|| status(code)));
        let world = with_program(world);
        install(&world, "");
        let told = told(&world);
        assert_eq!(told[0].contains("--insecure"), is_insecure, "{told:?}");
        assert!(told[0].contains("--image-url"), "{told:?}");
    }
}

#[test]
fn without_an_image_in_the_order_the_agents_own_is_written_or_that_of_the_medium() {
    let world = Plan::new(image()).world();
    let url = format!("{}/os.raw", world.url);
    let world = with_program(world.flag("--image-url").flag(&url));
    order_without_image(&world);
    assert!(
        told(&world)[0].contains(&format!("-n --image-url {url} ")),
        "{:?}",
        told(&world)
    );
    let world = with_program(Plan::new(image()).world());
    order_without_image(&world);
    let told = told(&world);
    assert!(
        told[0].contains("-n ") && !told[0].contains("--image-url"),
        "{told:?}"
    );
    assert!(!told[0].contains("--insecure"), "{told:?}");
}

#[test]
fn a_program_that_fails_is_tried_once_more_and_its_words_are_told() {
    let world = with_program(Plan::new(image()).world());
    world.file("usr/bin/fail", "once\n");
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_eq!(told(&world).len(), 2);
    let world = with_program(Plan::new(image()).world());
    world.file("usr/bin/fail", "once\ntwice\n");
    let stages = install(&world, "");
    assert!(
        stages.last().unwrap().1.contains("cannot be fetched"),
        "{stages:?}"
    );
}
