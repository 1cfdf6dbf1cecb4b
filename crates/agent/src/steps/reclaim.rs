//! Brings a running system back to discovery from the inside: fetches the discovery kernel and starts it.
//!
//! The files go to `boot/discovery` of the system. The running kernel hands over to the fetched one directly (kexec) where
//! it may; a system with boot loader entries gets one more, so that a restart by firmware works too. Whether one of the
//! two is possible is found out while the files are fetched: a hub that hears of a failure then asks a person.

use super::Context;
use crate::install::source::{Fetch, fetch_file};
use crate::note;
use crate::sys::{self, power};
use anyhow::{Context as _, bail};
use muster_contract::v2::agent::args::{BootArtifactsArgs, RebootForReclaimArgs};
use std::fs::File;
use std::path::{Path, PathBuf};

const BOOT: &str = "boot";
const FOLDER: &str = "boot/discovery";
const LOADER: &str = "boot/loader";
const ENTRY: &str = "boot/loader/entries/00-muster-discovery.conf";
const COMMAND_LINE: &str = "cmdline";
/// What CoreOS images need to start as a live system; others ignore it.
const LIVE: &str =
    "random.trust_cpu=on rd.luks.options=discard ignition.firstboot ignition.platform.id=metal";
/// Consoles and our own words stay the same; the word of the installed system must not.
const KEPT: [&str; 4] = ["console=", "muster.", "no_timer_check", "panic="];
const LEFT: &str = "muster.system";

/// Agents in a container see the system below a folder; without it, it is their own.
fn system(context: &Context, mount: &str) -> PathBuf {
    let mounted = context.machine.path(mount);
    if mounted.is_dir() {
        mounted
    } else {
        context.machine.root.clone()
    }
}

pub fn download(context: &Context, args: &BootArtifactsArgs) -> anyhow::Result<String> {
    let system = system(context, &args.host_fs_mount_dir);
    let folder = system.join(FOLDER);
    let running = context.machine.text("proc/cmdline");
    let line = command_line(&running, &args.rootfs_url);
    if context.settings.dry_run {
        note!(
            "dry run: the agent would fetch {} and {} to {}",
            args.kernel_url,
            args.initrd_url,
            folder.display()
        );
        return Ok(String::new());
    }
    note!("the hub wants this machine back: fetching the discovery kernel");
    let boot = system.join(BOOT);
    if boot.is_dir() {
        // CoreOS keeps it read-only; a container sees that mount below the folder of the system.
        sys::make_writable(&boot).with_context(|| {
            format!(
                "{} is read-only and the agent cannot make it writable",
                boot.display()
            )
        })?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (url, name) in [(&args.kernel_url, "vmlinuz"), (&args.initrd_url, "initrd")] {
        let fetch = Fetch {
            http: context.hub.http.clone(),
            clock: context.clock.clone(),
            url: url.clone(),
        };
        fetch_file(&fetch, &folder.join(name))?;
    }
    std::fs::write(folder.join(COMMAND_LINE), &line)?;
    let has_loader = system.join(LOADER).is_dir();
    if has_loader {
        write_entry(&system, &line)?;
    }
    match load(context, &folder) {
        Ok(()) => {}
        Err(error) if has_loader => note!("starting discovery by the boot loader: {error:#}"),
        Err(error) => bail!(
            "the agent can start the discovery kernel neither directly ({error:#}) nor by a boot loader: \
             this system has no loader entries"
        ),
    }
    power::sync();
    Ok(String::new())
}

/// The root of the live system comes over the network: it would fill the memory a second time in the initrd.
fn command_line(running: &str, rootfs_url: &str) -> String {
    let mut line = LIVE.to_owned();
    if !rootfs_url.is_empty() {
        line.push_str(&format!(" coreos.live.rootfs_url={rootfs_url}"));
    }
    let kept = |word: &&str| *word != LEFT && KEPT.iter().any(|prefix| word.starts_with(prefix));
    for word in running.split_ascii_whitespace().filter(kept) {
        line.push(' ');
        line.push_str(word);
    }
    line
}

fn write_entry(system: &Path, line: &str) -> anyhow::Result<()> {
    let path = system.join(ENTRY);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let text = format!(
        "title Discovery\nversion 999\nlinux /discovery/vmlinuz\ninitrd /discovery/initrd\noptions {line}\n"
    );
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

pub fn reboot(context: &Context, args: &RebootForReclaimArgs) -> anyhow::Result<String> {
    let system = system(context, &args.host_fs_mount_dir);
    if !context.settings.dry_run && context.settings.reboot_hook.is_none() {
        match load(context, &system.join(FOLDER)) {
            Ok(()) => {
                note!("going back to discovery");
                power::reboot_into_loaded()?;
            }
            Err(error) if system.join(ENTRY).exists() => {
                note!("going back to discovery by the boot loader: {error:#}");
            }
            Err(error) => return Err(error.context("cannot start the discovery kernel")),
        }
    }
    context.shared.power.reboot(&context.settings)?;
    Ok(String::new())
}

/// Makes the kernel ready to be started. It can be done again.
fn load(context: &Context, folder: &Path) -> anyhow::Result<()> {
    if !context.machine.is_live() {
        bail!("this is not the machine the agent runs on");
    }
    let open = |name: &str| File::open(folder.join(name)).with_context(|| format!("{name} is not there"));
    let line = std::fs::read_to_string(folder.join(COMMAND_LINE)).unwrap_or_default();
    power::kexec_load(&open("vmlinuz")?, &open("initrd")?, &line)
        .context("the running kernel does not take another one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consoles_and_our_own_words_are_kept_on_the_way_back() {
        let line = command_line(
            "root=/dev/vda4 console=ttyS0 muster.system muster.url=http://h quiet",
            "http://h/rootfs",
        );
        assert!(
            line.ends_with("coreos.live.rootfs_url=http://h/rootfs console=ttyS0 muster.url=http://h"),
            "{line}"
        );
        assert!(!line.contains("root=/dev"));
        assert!(!command_line("", "").contains("rootfs_url"));
    }
}
