//! The life of a lent machine: discovered, lent, installed, returned, lent again; on every way into discovery.

use anyhow::{Context, Result, ensure};

use super::bases;
use super::machine::{Firmware, First, Machine, Media};
use super::net;
use super::place::{BOOT, INSTALL, Place, TALK};
use super::stage::{DISCOVERY, SYSTEM};

/// A line in which an installed system of ours tells that it runs.
pub const SYSTEM_RUNS: &str = "muster-system:";

const SINGLE: [&str; 3] = ["--single-node", "--machine-network", net::NETWORK];

/// A card of its own, with a name from DHCP.
pub fn card(name: &str) -> String {
    format!("user,id=net0,hostname={name}")
}

/// A CD-ROM as a file, and an image packed with xz.
pub fn iso(place: &mut Place<'_>) -> Result<()> {
    let cd = Media::Cd(place.iso()?.display().to_string());
    let mut machine = place.machine("iso-1", Firmware::Bios, cd, card("iso-1"))?;
    whole(place, &mut machine, "img.xz", First::Disk)
}

/// A CD-ROM that is read from the hub sector by sector, as BMCs do.
pub fn media(place: &mut Place<'_>) -> Result<()> {
    let cd = Media::Cd(place.image_url()?);
    let mut machine = place.machine("media-1", Firmware::Bios, cd, card("media-1"))?;
    whole(place, &mut machine, "img.gz", First::Disk)
}

/// UEFI, and an image that is not packed.
pub fn uefi(place: &mut Place<'_>) -> Result<()> {
    let cd = Media::Cd(place.iso()?.display().to_string());
    let mut machine = place.machine("uefi-1", Firmware::Uefi, cd, card("uefi-1"))?;
    whole(place, &mut machine, "img", First::Disk)
}

/// iPXE always comes first: the hub's script decides between discovery and the disk.
pub fn ipxe(place: &mut Place<'_>) -> Result<()> {
    let script = place.dir().join("boot.ipxe");
    let url = format!(
        "{}/api/assisted-install/v2/infra-envs/{}/downloads/files?file_name=ipxe-script&ipxe_script_type=boot-order-control",
        place.guest_url(),
        place.infra_env
    );
    // A DHCP server has room for 128 characters.
    std::fs::write(&script, format!("#!ipxe\nchain {url}\n"))?;
    let name = format!("{}.ipxe", place.infra_env);
    place.stage.files.put(&name, &script);
    let net = format!(
        "{},bootfile={}",
        card("ipxe-1"),
        place.stage.files.guest_url(&name)
    );
    let mut machine = place.machine("ipxe-1", Firmware::Bios, Media::Network, net)?;
    whole(place, &mut machine, "img.zst", First::Media)
}

/// Without DHCP: the image carries the address of the machine.
pub fn addressed(place: &mut Place<'_>) -> Result<()> {
    const NAME: &str = "addressed-1";
    let cd = Media::Cd(place.iso_path().display().to_string());
    let mut machine = place.machine(NAME, Firmware::Uefi, cd, card(NAME))?;
    let network = place.dir().join("network.yaml");
    std::fs::write(&network, network_of(&machine.spec.mac()))?;
    let network = network.display().to_string();
    place.muster(&["infra-env", "update", "lab", "--static-network", &network])?;
    place.iso()?;
    machine.start(First::Media)?;
    let host = place.until_registered(&mut machine, BOOT)?;
    let inventory = host["inventory"].as_str().unwrap_or_default();
    ensure!(
        inventory.contains(&format!("{ADDRESS}/24")),
        "it has another address: {inventory}"
    );
    // Nobody gave it a name either.
    place.muster(&["host", "update", &machine.uuid, "--name", NAME])?;
    place.until(&mut machine, "known-unbound", TALK).map(drop)
}

/// DHCP would never give this one.
const ADDRESS: &str = "10.0.2.177";

fn network_of(mac: &str) -> String {
    format!(
        "- mac_interface_map:
  - {{mac_address: \"{mac}\", logical_nic_name: eth0}}
  network_yaml: |
    interfaces:
    - name: eth0
      type: ethernet
      state: up
      ipv4:
        enabled: true
        dhcp: false
        address:
        - {{ip: {ADDRESS}, prefix-length: 24}}
    routes:
      config:
      - {{destination: 0.0.0.0/0, next-hop-address: {}, next-hop-interface: eth0}}
",
        net::HOST
    )
}

/// From an empty disk to the second cluster; `usual` is what the machine's firmware tries first.
fn whole(place: &mut Place<'_>, machine: &mut Machine, image: &str, usual: First) -> Result<()> {
    machine.start(usual)?;
    place.until(machine, "known-unbound", BOOT)?;
    installed(place, machine, "one", image)?;
    place.delete_cluster("one")?;
    place.until(machine, "unbinding-pending-user-action", TALK)?;
    machine.restart(First::Media)?;
    place.until(machine, "known-unbound", BOOT)?;
    second(place, machine)
}

/// Lends the machine to a new cluster and installs it there.
pub fn installed(place: &Place<'_>, machine: &mut Machine, cluster: &str, image: &str) -> Result<()> {
    ready(place, machine, cluster)?;
    let name = SYSTEM.replace("img", image);
    place.choose_system(machine, &place.stage.installer_args(&name)?)?;
    place.install(cluster)?;
    place.until(machine, "installed", INSTALL)?;
    place.until_cluster(cluster, "installed", TALK)?;
    ensure!(
        machine.said().contains(SYSTEM_RUNS),
        "the hub believes that the host is installed, but its system has never run"
    );
    Ok(())
}

/// Lends the machine to a new cluster, up to where it could be installed.
pub fn ready(place: &Place<'_>, machine: &mut Machine, cluster: &str) -> Result<()> {
    place.cluster(cluster, &["master"], &SINGLE)?;
    place.bind(machine, cluster)?;
    place.until(machine, "known", TALK)?;
    Ok(())
}

/// A machine that came back is as good as new.
pub fn second(place: &Place<'_>, machine: &mut Machine) -> Result<()> {
    ready(place, machine, "two")?;
    place.until_cluster("two", "ready", TALK)
}

/// Taken back by the hub alone: the installed system fetches discovery and boots it, nobody touches the machine.
pub fn reclaim(place: &mut Place<'_>) -> Result<()> {
    let cd = Media::Cd(place.iso()?.display().to_string());
    let mut machine = place.machine("reclaim-1", Firmware::Bios, cd, card("reclaim-1"))?;
    machine.start(First::Disk)?;
    let process = machine.pid();
    place.until(&mut machine, "known-unbound", BOOT)?;
    installed(place, &mut machine, "one", "img.zst")?;
    let before = machine.boot_sector()?;
    place.say("reclaim-1", "is reclaimed");
    place.muster(&["host", "reclaim", &machine.uuid])?;
    place.until(&mut machine, "known-unbound", BOOT + TALK)?;
    ensure!(machine.pid() == process, "somebody restarted the machine");
    ensure!(
        machine.boot_sector()? == before,
        "reclaiming wrote to the disk's first sector"
    );
    second(place, &mut machine)
}

/// What registers has found its configuration, which is all that we put into such an image.
pub fn generic(place: &mut Place<'_>) -> Result<()> {
    let iso = place.iso()?.display().to_string();
    for (name, firmware) in [("generic-1", Firmware::Bios), ("generic-2", Firmware::Uefi)] {
        let mut machine = place.machine(name, firmware, Media::Cd(iso.clone()), card(name))?;
        machine.start(First::Media)?;
        place.until(&mut machine, "known-unbound", BOOT)?;
        ensure!(
            machine.said().contains(MARK),
            "the kernel was not given the arguments of the InfraEnv"
        );
        machine.cut()?;
    }
    Ok(())
}

/// The root file system is left out and everything behind it moved; the machine reads what is left from the hub.
pub fn minimal(place: &mut Place<'_>) -> Result<()> {
    let full = place.image_url()?.replace("minimal.iso", "full.iso");
    let length = |url: &str| -> Result<u64> {
        let reply = ureq::head(url).call()?;
        let length = reply.headers().get("content-length");
        length
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .context("an image without a length")
    };
    let (full, small) = (length(&full)?, length(&place.image_url()?)?);
    ensure!(
        small + (4 << 20) < full,
        "{small} of {full} bytes are not minimal"
    );
    let cd = Media::Cd(place.image_url()?);
    let mut machine = place.machine("minimal-1", Firmware::Bios, cd, card("minimal-1"))?;
    machine.start(First::Media)?;
    place.until(&mut machine, "known-unbound", BOOT)?;
    ensure!(
        machine.said().contains("coreos.live.rootfs_url="),
        "the kernel was not told where its root file system is"
    );
    Ok(())
}

/// An argument the console shows when the kernel was given it.
const MARK: &str = "muster.test=arrived";

pub fn base(scenario: &str) -> &'static str {
    match scenario {
        "generic" => bases::GENERIC,
        "minimal" => bases::COREOS,
        _ => DISCOVERY,
    }
}

/// More words for the creation of a scenario's InfraEnv.
pub fn infra_env(scenario: &str) -> &'static [&'static str] {
    match scenario {
        // A script of iPXE names consoles that these machines do not have.
        "ipxe" => &["--kernel-arg", "console=ttyS0", "--kernel-arg", "no_timer_check"],
        "generic" => &["--kernel-arg", MARK],
        "minimal" => &["--image-type", "minimal-iso"],
        _ => &[],
    }
}
