//! Brings a running system back to discovery from the inside: fetches the discovery kernel and starts it.
//!
//! The files go to `boot/discovery` of the system, with a boot entry of the common kind, so that a restart by firmware
//! works too. The restart itself hands over to the fetched kernel directly (kexec) where the running kernel allows it.

use super::Context;
use crate::install::source::{Fetch, fetch_file};
use crate::note;
use crate::sys::power;
use anyhow::Context as _;
use muster_contract::v2::agent::args::{BootArtifactsArgs, RebootForReclaimArgs};
use std::fs::File;
use std::path::{Path, PathBuf};

const FOLDER: &str = "boot/discovery";
const ENTRY: &str = "boot/loader/entries/00-muster-discovery.conf";
const COMMAND_LINE: &str = "cmdline";
/// What CoreOS images need to start as a live system; others ignore it.
const LIVE: &str =
    "random.trust_cpu=on rd.luks.options=discard ignition.firstboot ignition.platform.id=metal";

fn system(context: &Context, mount: &str) -> PathBuf {
    context.machine.path(mount)
}

pub fn download(context: &Context, args: &BootArtifactsArgs) -> anyhow::Result<String> {
    let system = system(context, &args.host_fs_mount_dir);
    let folder = system.join(FOLDER);
    let running = context.machine.text("proc/cmdline");
    let line = command_line(&running, &args.rootfs_url);
    if context.settings.dry_run {
        note!(
            "dry run: {} and {} would be fetched to {}",
            args.kernel_url,
            args.initrd_url,
            folder.display()
        );
        return Ok(String::new());
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (url, name) in [(&args.kernel_url, "vmlinuz"), (&args.initrd_url, "initrd")] {
        let fetch = Fetch {
            http: context.hub.http.clone(),
            clock: context.clock.clone(),
            url: url.clone(),
        };
        fetch_file(&fetch, &folder.join(name))?;
    }
    std::fs::write(folder.join(COMMAND_LINE), &line)?;
    write_entry(&system, &line)?;
    power::sync();
    Ok(String::new())
}

/// The root of the live system comes over the network: it would fill the memory a second time in the initrd.
fn command_line(running: &str, rootfs_url: &str) -> String {
    let mut line = LIVE.to_owned();
    if !rootfs_url.is_empty() {
        line.push_str(&format!(" coreos.live.rootfs_url={rootfs_url}"));
    }
    let kept = |word: &&str| {
        ["console=", "muster.", "no_timer_check"]
            .iter()
            .any(|prefix| word.starts_with(prefix))
    };
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
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

pub fn reboot(context: &Context, args: &RebootForReclaimArgs) -> anyhow::Result<String> {
    let folder = system(context, &args.host_fs_mount_dir).join(FOLDER);
    if !context.settings.dry_run && context.settings.reboot_hook.is_none() {
        match load(&folder) {
            Ok(()) => {
                note!("going back to discovery");
                power::reboot_into_loaded()?;
            }
            Err(error) => note!("the discovery kernel cannot be started directly: {error:#}"),
        }
    }
    context.shared.power.reboot(&context.settings)?;
    Ok(String::new())
}

fn load(folder: &Path) -> anyhow::Result<()> {
    let open = |name: &str| File::open(folder.join(name)).with_context(|| format!("{name} is not there"));
    let line = std::fs::read_to_string(folder.join(COMMAND_LINE)).unwrap_or_default();
    power::kexec_load(&open("vmlinuz")?, &open("initrd")?, &line)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consoles_and_our_own_words_are_kept_on_the_way_back() {
        let line = command_line(
            "root=/dev/vda4 console=ttyS0 muster.url=http://h quiet",
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
