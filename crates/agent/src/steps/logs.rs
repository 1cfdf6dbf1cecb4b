//! Collects what the machine can tell about a failure and sends it to the hub.

use super::Context;
use crate::collect;
use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use muster_contract::v2::agent::args::LogsGatherArgs;
use muster_contract::v2::install::LogsState;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use uuid::Uuid;

pub fn step(context: &Context, args: &LogsGatherArgs) -> anyhow::Result<String> {
    gather(context, args.cluster_id).map(|()| String::new())
}

/// Sends the logs and tells the hub about it. Hubs that do not want to hear of the progress get the logs all the same.
pub fn gather(context: &Context, cluster: Uuid) -> anyhow::Result<()> {
    let _ = context.hub.logs_progress(context.ids, LogsState::Collecting);
    let inventory = serde_json::to_string_pretty(&collect::inventory(&context.machine, 0))?;
    let name = context.ids.host.to_string();
    let archive = archive(
        &name,
        &[
            ("agent.log", crate::log::text().as_bytes()),
            ("dmesg.log", &kernel_log()),
            ("inventory.json", inventory.as_bytes()),
            ("mounts", context.machine.text("proc/mounts").as_bytes()),
            ("cmdline", context.machine.text("proc/cmdline").as_bytes()),
        ],
    )?;
    context
        .hub
        .upload_logs(context.ids, cluster, &archive)
        .context("cannot send the logs")?;
    let _ = context.hub.logs_progress(context.ids, LogsState::Completed);
    Ok(())
}

/// What the kernel still has; nothing where we may not read it.
fn kernel_log() -> Vec<u8> {
    let Ok(mut kernel) = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg")
    else {
        return Vec::new();
    };
    let mut log = Vec::new();
    // One record per read; larger ones do not exist.
    let mut record = vec![0; 16 * 1024];
    loop {
        match kernel.read(&mut record) {
            Ok(0) => return log,
            Ok(length) => log.extend_from_slice(&record[..length]),
            // Overwritten while we read.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(_) => return log,
        }
    }
}

/// A tar.gz with these files in one folder.
pub fn archive(folder: &str, files: &[(&str, &[u8])]) -> io::Result<Vec<u8>> {
    let mut out = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(content.len() as u64);
        out.append_data(&mut header, format!("{folder}/{name}"), *content)?;
    }
    out.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tar_reads_what_we_write() {
        let archive = archive("host", &[("a.log", b"one\n"), ("empty", b""), ("b", &[7; 1000])]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs.tar.gz");
        std::fs::write(&path, archive).unwrap();
        let done = std::process::Command::new("tar")
            .arg("-xzf")
            .arg(&path)
            .arg("-C")
            .arg(folder.path())
            .status();
        assert!(done.unwrap().success());
        assert_eq!(std::fs::read(folder.path().join("host/a.log")).unwrap(), b"one\n");
        assert_eq!(std::fs::read(folder.path().join("host/b")).unwrap(), [7; 1000]);
    }
}
