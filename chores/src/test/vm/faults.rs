//! What goes wrong around a real machine: damaged images, power cuts, hubs that die; and how it all ends well.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::machine::{Firmware, First, Machine, Media};
use super::place::{BOOT, INSTALL, Place, TALK};
use super::stage::{SYSTEM, sha256};
use super::story::{SYSTEM_RUNS, card, ready};

const CLUSTER: &str = "one";

/// So slow that a person could pull the plug in the middle of writing.
const SLOW: u64 = 2 << 20;
/// Up to the middle an image is only checked.
const IN_THE_MIDDLE: u64 = 65;

pub fn run(place: &mut Place<'_>) -> Result<()> {
    let cd = Media::Cd(place.iso()?.display().to_string());
    let mut machine = place.machine("faults-1", Firmware::Bios, cd, card("faults-1"))?;
    machine.fill_samples()?;
    machine.spec.disk_bytes_per_second = Some(SLOW);
    machine.start(First::Disk)?;
    place.until(&mut machine, "known-unbound", BOOT)?;
    ready(place, &mut machine, CLUSTER)?;
    damaged_image(place, &mut machine).context("a damaged image")?;
    power_cut(place, &mut machine).context("a power cut in the middle of writing")?;
    hub_restarts(place, &mut machine).context("a hub that dies during the installation")?;
    resumed_download(place).context("a hub that dies during a download")
}

/// An image whose download is interrupted by the hub's death goes on where it was, and is the same image.
fn resumed_download(place: &mut Place<'_>) -> Result<()> {
    let url = place.image_url()?;
    let mut begun = ureq::get(&url).call()?;
    let header = |name: &str| begun.headers().get(name).and_then(|value| value.to_str().ok());
    let etag = header("etag").context("the image has no entity tag")?.to_owned();
    let length: usize = header("content-length").context("no length")?.parse()?;
    // Most of it is still to come, more than fits into the buffers on the way.
    let mut bytes = vec![0; length / 8];
    let mut reader = begun.body_mut().as_reader();
    reader.read_exact(&mut bytes)?;
    place.kill_hub()?;
    // What was on its way still arrives; then the connection breaks.
    let broken = reader.read_to_end(&mut bytes);
    ensure!(
        broken.is_err() && bytes.len() < length,
        "the download was not in flight"
    );
    place.start_hub()?;
    let range = format!("bytes={}-", bytes.len());
    let rest = fetch(&url, &[("Range", &range), ("If-Range", &etag)])?;
    ensure!(rest.status == 206, "the download starts over: {}", rest.status);
    bytes.extend(rest.bytes);
    ensure!(bytes == fetch(&url, &[])?.bytes, "the rest is of another image");
    place.say("hub", "went on with a download where it was killed");
    Ok(())
}

struct Fetched {
    status: u16,
    bytes: Vec<u8>,
}

fn fetch(url: &str, headers: &[(&str, &str)]) -> Result<Fetched> {
    let mut request = ureq::get(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut reply = request.call()?;
    Ok(Fetched {
        status: reply.status().as_u16(),
        bytes: reply.body_mut().with_config().limit(1 << 30).read_to_vec()?,
    })
}

/// Longer than the hub waits for a sign of life.
const AWAY: Duration = Duration::from_secs(5 * 60);
/// Shorter than that: a host that installs and is silent for too long has failed.
const SHORTLY_AWAY: Duration = Duration::from_secs(45);

/// A cable that is out for minutes costs nothing but time, whatever the machine is doing.
pub fn network(place: &mut Place<'_>) -> Result<()> {
    let cd = Media::Cd(place.iso()?.display().to_string());
    let mut machine = place.machine("network-1", Firmware::Bios, cd, card("network-1"))?;
    machine.start(First::Disk)?;
    let process = machine.pid();
    place.until(&mut machine, "known-unbound", BOOT)?;
    place.say("network-1", "its cable is out for five minutes");
    machine.plug(false)?;
    let out = Instant::now();
    place.until(&mut machine, "disconnected-unbound", AWAY)?;
    place.stays(&mut machine, "disconnected-unbound", out + AWAY)?;
    place.say("network-1", "its cable is in again");
    machine.plug(true)?;
    place.until(&mut machine, "known-unbound", TALK)?;
    ready(place, &mut machine, CLUSTER)?;
    interrupted_download(place, &mut machine).context("a cable that is out during the download")?;
    ensure!(machine.pid() == process, "somebody restarted the machine");
    Ok(())
}

fn interrupted_download(place: &Place<'_>, machine: &mut Machine) -> Result<()> {
    let image = place.stage.path(SYSTEM);
    let length = fs::metadata(&image)?.len();
    let name = format!("interrupted-{}", machine.uuid);
    let gate = place.stage.files.put_gated(&name, &image, length / 3);
    let url = place.stage.files.guest_url(&name);
    let args = format!("{url}#sha256={}", sha256(&image)?);
    place.choose_system(machine, &["--image-url".into(), args])?;
    place.install(CLUSTER)?;
    gate.until_held(INSTALL)?;
    place.say(&machine.spec.name, "its cable is out during the download");
    machine.plug(false)?;
    gate.open();
    place.stays(machine, "installing-in-progress", Instant::now() + SHORTLY_AWAY)?;
    machine.plug(true)?;
    place.until(machine, "installed", INSTALL)?;
    place.until_cluster(CLUSTER, "installed", TALK)
}

/// Refused, told, and whatever was on the disk is still there.
fn damaged_image(place: &Place<'_>, machine: &mut Machine) -> Result<()> {
    let before = machine.samples()?;
    let url = place.stage.files.guest_url(SYSTEM);
    let wrong = format!("{url}#sha256={}", "0".repeat(64));
    place.choose_system(machine, &["--image-url".into(), wrong])?;
    place.install(CLUSTER)?;
    let failed = place.until_error(machine, INSTALL)?;
    ensure!(failed.contains("sha256"), "the reason is missing: {failed}");
    ensure!(machine.samples()? == before, "the disk was written to");
    again(place, machine)
}

/// The disk must not start half a system: the machine comes back to discovery by itself, and can be installed.
fn power_cut(place: &Place<'_>, machine: &mut Machine) -> Result<()> {
    let before = machine.samples()?;
    place.choose_system(machine, &place.stage.installer_args(SYSTEM)?)?;
    place.install(CLUSTER)?;
    place.until_written(machine, IN_THE_MIDDLE, INSTALL)?;
    place.say(&machine.spec.name, "loses power in the middle of writing");
    machine.cut()?;
    ensure!(machine.boot_sector()? == [0; 512], "half a system can be started");
    ensure!(machine.samples()? != before, "nothing was written yet");
    machine.spec.disk_bytes_per_second = None;
    machine.start(First::Disk)?;
    let failed = place.until_error(machine, BOOT)?;
    ensure!(failed.contains("restarted"), "the reason is missing: {failed}");
    again(place, machine)
}

/// After a failure: the cluster starts over with the same machine.
fn again(place: &Place<'_>, machine: &mut Machine) -> Result<()> {
    place.until_cluster(CLUSTER, "error", TALK)?;
    place.say("cluster", "is reset");
    place.muster(&["cluster", "reset", CLUSTER])?;
    place.until(machine, "known", TALK)?;
    Ok(())
}

/// Dies while the image is downloaded, and once more while the machine reboots; nothing is lost.
fn hub_restarts(place: &mut Place<'_>, machine: &mut Machine) -> Result<()> {
    let image = place.stage.path(SYSTEM);
    let length = fs::metadata(&image)?.len();
    let name = format!("restarts-{}", machine.uuid);
    let gate = place.stage.files.put_gated(&name, &image, length / 3);
    let args = format!(
        "{}#sha256={}",
        place.stage.files.guest_url(&name),
        sha256(&image)?
    );
    place.choose_system(machine, &["--image-url".into(), args])?;
    place.install(CLUSTER)?;
    gate.until_held(INSTALL)?;
    place.kill_hub()?;
    gate.open_to(length / 3 * 2);
    gate.until_held(INSTALL)?;
    place.start_hub()?;
    place.say("hub", "is back in the middle of the download");
    gate.open();
    place.until_stage(machine, "Rebooting", INSTALL)?;
    place.kill_hub()?;
    place.until_said(machine, SYSTEM_RUNS, BOOT)?;
    place.start_hub()?;
    place.say("hub", "is back after the machine's reboot");
    place.until(machine, "installed", INSTALL)?;
    place.until_cluster(CLUSTER, "installed", TALK)
}
