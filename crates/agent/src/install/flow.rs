//! The stages of one installation, in their order.

use super::image::Image;
use super::report::{Ended, Percent, patiently, stage};
use super::source::Source;
use super::spool::{self, Replay, Spool};
use super::writer::{Target, write_body};
use super::{check, coreos, decode};
use crate::init::network::KEPT;
use crate::steps::{Context, gather};
use crate::{ignition, note};
use anyhow::Context as _;
use muster_contract::v2::agent::args::InstallArgs;
use muster_contract::v2::agent::inventory::Disk;
use muster_vocabulary::{ClusterKind, InstallRole, Role, Stage, Word};
use serde::Deserialize;
use std::borrow::Cow;
use std::cell::RefCell;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// Between looks at the other hosts.
const LOOK: Duration = Duration::from_secs(10);
/// A control plane can be worked with when so many of its nodes have joined.
const ENOUGH_MASTERS: usize = 2;
/// A damaged download may come whole the second time; a damaged file does not.
const WRITE_TRIES: u32 = 2;

/// Runs to the reboot, or to the report of what went wrong.
pub fn run(context: &Context, order: &InstallArgs) {
    match install(context, order) {
        Ok(()) => {}
        Err(Ended::Unwanted(reason)) => note!("the installation ends: {reason}"),
        Err(Ended::Failed(error)) => {
            let reason = format!("{error:#}");
            if let Err(error) = stage(context, Stage::Failed, Some(reason)) {
                note!("cannot report the failure to the hub: {error}");
            }
        }
    }
}

fn install(context: &Context, order: &InstallArgs) -> Result<(), Ended> {
    stage(context, Stage::Starting, None)?;
    let cluster = patiently(context, false, || context.hub.cluster(order.cluster_id))?;
    let is_day_2 = is_day_2(&cluster);
    stage(context, Stage::Installing, Some(order.role.to_string()))?;
    if order.role == InstallRole::Bootstrap {
        refuse_bootkube(context, order)?;
    }
    let config = patiently(context, true, || context.hub.host_ignition(context.ids))?;
    stage(context, Stage::Writing, None)?;
    write(context, order, &config)?;
    if order.role == InstallRole::Worker && !is_day_2 {
        stage(context, Stage::WaitingForControlPlane, None)?;
        await_masters(context, order.cluster_id)?;
    }
    // Nobody waits for logs.
    if let Err(error) = gather(context, order.cluster_id) {
        note!("{error:#}");
    }
    stage(context, Stage::Rebooting, None)?;
    context
        .shared
        .power
        .reboot(&context.settings)
        .map_err(Ended::Failed)
}

fn is_day_2(cluster: &[u8]) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Cluster {
        kind: Word<ClusterKind>,
    }
    serde_json::from_slice::<Cluster>(cluster)
        .is_ok_and(|cluster| cluster.kind == ClusterKind::AddHostsCluster)
}

/// The bootstrap host of an OpenShift cluster runs a temporary control plane in containers before it is written to.
/// That needs the reference's installer; a bootstrap host of other systems is only the first one installed.
fn refuse_bootkube(context: &Context, order: &InstallArgs) -> Result<(), Ended> {
    let config = patiently(context, true, || {
        context.hub.cluster_file(order.cluster_id, "bootstrap.ign")
    })?;
    let needs_it = config.windows(b"bootkube".len()).any(|part| part == b"bootkube");
    if needs_it {
        return Err(Ended::Failed(anyhow::anyhow!(
            "this host was chosen to bootstrap OpenShift, which this agent cannot do: boot the host from an OpenShift \
             discovery image, whose agent can"
        )));
    }
    Ok(())
}

fn write(context: &Context, order: &InstallArgs, config: &[u8]) -> Result<(), Ended> {
    let image = Image::of(context, order)?;
    let program = coreos::program(&context.machine).filter(|_| !context.settings.dry_run);
    let config = match &program {
        Some(_) => Cow::Borrowed(config),
        None => {
            refuse_unknown(&image)?;
            whole_config(context, &image, config)?
        }
    };
    let mut percent = Percent::new(context);
    let mut left = WRITE_TRIES;
    loop {
        let disk = check::disk(context, order)?;
        left -= 1;
        let job = Job {
            context,
            order,
            image: &image,
            disk: &disk,
            config: &config,
        };
        let written = match &program {
            Some(program) => {
                coreos::install(context, order, (program, &image, &config), |at| percent.tell(at))
            }
            None => job.write(&mut percent),
        };
        match written {
            Ok(()) => return Ok(()),
            Err(_) if context.shared.install.is_cancelled() => {
                return Err(Ended::Unwanted("the hub told it to stop".into()));
            }
            Err(Ended::Failed(error)) if left > 0 => note!("fetching the image once more: {error:#}"),
            Err(ended) => return Err(ended),
        }
    }
}

/// What only coreos-installer can do.
fn refuse_unknown(image: &Image) -> anyhow::Result<()> {
    if let Some(arg) = image.args.iter().find(|arg| arg.starts_with("--save-part")) {
        anyhow::bail!("{arg} needs coreos-installer, which this image does not have");
    }
    anyhow::ensure!(
        !image.url.is_empty(),
        "no system is named: give the host --image-url in its installer arguments, or the agent muster.image_url="
    );
    Ok(())
}

/// coreos-installer's `--copy-network` means the settings this machine has now.
fn whole_config<'a>(context: &Context, image: &Image, config: &'a [u8]) -> anyhow::Result<Cow<'a, [u8]>> {
    if !image.has("--copy-network") {
        return Ok(Cow::Borrowed(config));
    }
    let files = context.machine.list(KEPT).into_iter().map(|name| {
        let content = context.machine.text(&format!("{KEPT}/{name}"));
        (format!("/{KEPT}/{name}"), format!("{content}\n"))
    });
    let files: Vec<(String, String)> = files.collect();
    let config = ignition::add_secret_files(config, &files)
        .context("cannot add the network settings to the config of this host")?;
    Ok(Cow::Owned(config))
}

/// One image for one disk.
struct Job<'a> {
    context: &'a Context,
    order: &'a InstallArgs,
    image: &'a Image,
    disk: &'a Disk,
    config: &'a [u8],
}

impl Job<'_> {
    /// First everything is done but the writing. What is wrong with the image shows here, and the disk keeps what it has.
    /// Then it is done again, with what was kept in memory, or fetched a second time when it did not fit.
    fn write(&self, percent: &mut Percent<'_>) -> Result<(), Ended> {
        let size = u64::try_from(self.disk.size_bytes).unwrap_or_default();
        let spool = Spool::new(spool::room(&self.context.machine));
        let first = Input::Fetched(Box::new(self.image.fetch(self.context)), Some(spool));
        let spool = self.pass(first, &Target::pretend(size), |at| percent.tell(at / 2))?;
        if self.context.settings.dry_run {
            note!("dry run: the agent would write {} now", self.disk.path);
            percent.tell(100);
            return Ok(());
        }
        let disk = check::disk(self.context, self.order)?;
        let target = Target::open(&self.context.machine.path(&disk.path))
            .with_context(|| format!("cannot open {}", disk.path))?;
        note!("the image is whole: {} is written", disk.path);
        let second = match spool.and_then(Spool::replay) {
            Some(replay) => Input::Kept(replay, self.context.shared.install.cancel.clone()),
            None => Input::Fetched(Box::new(self.image.fetch(self.context)), None),
        };
        self.pass(second, &target, |at| percent.tell(50 + at / 2))?;
        percent.tell(100);
        Ok(())
    }

    /// Puts the image on the target; its first MiB only when all the rest is there and right.
    fn pass(
        &self,
        input: Input,
        target: &Target,
        mut tell: impl FnMut(u64),
    ) -> anyhow::Result<Option<Spool>> {
        let input = RefCell::new(input);
        let written = {
            let mut decoded = decode::decoder(Shared(&input)).context("cannot read the image")?;
            write_body(&mut decoded, target, || {
                if let Some(at) = input.borrow().percent() {
                    tell(at);
                }
            })?
        };
        let mut input = input.into_inner();
        let sum = input.finish().context("cannot read the image to its end")?;
        if let Some(sum) = sum {
            self.image.check_sum(&sum)?;
        }
        written.check_length()?;
        written.complete(target, Some(self.config))?;
        Ok(match input {
            Input::Fetched(_, spool) => spool,
            Input::Kept(..) => None,
        })
    }
}

/// Where the bytes of an image come from.
enum Input {
    Fetched(Box<Source>, Option<Spool>),
    Kept(Replay, Arc<AtomicBool>),
}

impl Input {
    fn percent(&self) -> Option<u64> {
        match self {
            Self::Fetched(source, _) => source.percent(),
            Self::Kept(replay, _) => replay.percent(),
        }
    }

    /// Reads what is left. The sum of what was fetched; what was kept had its own.
    fn finish(&mut self) -> std::io::Result<Option<String>> {
        let mut rest = vec![0; 64 * 1024];
        while self.read(&mut rest)? > 0 {}
        Ok(match self {
            Self::Fetched(source, _) => Some(source.finish()?),
            Self::Kept(..) => None,
        })
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Fetched(source, spool) => {
                let length = source.read(buffer)?;
                if let Some(spool) = spool {
                    spool.keep(&buffer[..length]);
                }
                Ok(length)
            }
            Self::Kept(_, cancel) if cancel.load(Ordering::SeqCst) => Err(std::io::Error::other("stopped")),
            Self::Kept(replay, _) => replay.read(buffer),
        }
    }
}

/// One reader for the decoder and for who wants to know how far it is.
struct Shared<'a>(&'a RefCell<Input>);

impl Read for Shared<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().read(buffer)
    }
}

fn await_masters(context: &Context, cluster: Uuid) -> Result<(), Ended> {
    loop {
        let hosts = patiently(context, false, || context.hub.cluster_hosts(cluster))?;
        if masters_are_up(&hosts, context.ids.host) {
            return Ok(());
        }
        context.clock.sleep(LOOK);
    }
}

fn masters_are_up(hosts: &[u8], me: Uuid) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Peer {
        id: Uuid,
        role: Word<Role>,
        progress: Option<Progress>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Progress {
        current_stage: Word<Stage>,
    }
    let Ok(peers) = serde_json::from_slice::<Vec<Peer>>(hosts) else {
        return false;
    };
    let masters: Vec<&Peer> = peers
        .iter()
        .filter(|peer| peer.role == Role::Master && peer.id != me)
        .collect();
    let has_joined = |peer: &&&Peer| {
        let progress = peer.progress.as_ref();
        progress.is_some_and(|progress| progress.current_stage.is(Stage::has_joined))
    };
    masters.iter().filter(has_joined).count() >= masters.len().min(ENOUGH_MASTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_wait_for_as_many_masters_as_there_can_be() {
        let host = |id: u128, stage: &str| serde_json::json!({"id": Uuid::from_u128(id), "role": "master", "progress": {"current_stage": stage}});
        let up = |hosts: &[serde_json::Value]| {
            masters_are_up(&serde_json::to_vec(hosts).unwrap(), Uuid::from_u128(9))
        };
        assert!(up(&[]));
        assert!(!up(&[host(1, "Rebooting")]));
        assert!(up(&[host(1, "Done")]));
        assert!(!up(&[
            host(1, "Done"),
            host(2, "Rebooting"),
            host(3, "Rebooting")
        ]));
        assert!(up(&[host(1, "Done"), host(2, "Joined"), host(3, "Rebooting")]));
    }
}
