//! The stages of one installation, in their order.

use super::report::{Ended, Percent, patiently, stage};
use super::source::{Fetch, Source};
use super::spool::{self, Replay, Spool};
use super::writer::{Target, write_body};
use super::{check, coreos, decode};
use crate::init::network::KEPT;
use crate::steps::{Context, gather};
use crate::{ignition, note};
use anyhow::{Context as _, ensure};
use muster_contract::v2::agent::args::InstallArgs;
use muster_contract::v2::agent::inventory::Disk;
use muster_contract::v2::install::HostStage;
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
pub fn run(context: &Context, order: &InstallArgs, disk: &Disk) {
    match install(context, order, disk) {
        Ok(()) => {}
        Err(Ended::Unwanted(reason)) => note!("the installation ends: {reason}"),
        Err(Ended::Failed(error)) => {
            let reason = format!("{error:#}");
            if let Err(error) = stage(context, HostStage::Failed, Some(reason)) {
                note!("the failure cannot be told: {error}");
            }
        }
    }
}

fn install(context: &Context, order: &InstallArgs, disk: &Disk) -> Result<(), Ended> {
    stage(context, HostStage::StartingInstallation, None)?;
    let cluster = patiently(context, false, || context.hub.cluster(order.cluster_id))?;
    let is_day_2 = is_day_2(&cluster);
    stage(context, HostStage::Installing, Some(order.role.to_string()))?;
    if order.role == "bootstrap" {
        refuse_bootkube(context, order)?;
    }
    let config = patiently(context, true, || context.hub.host_ignition(context.ids))?;
    stage(context, HostStage::WritingImageToDisk, None)?;
    write(context, order, disk, &config)?;
    if order.role == "worker" && !is_day_2 {
        stage(context, HostStage::WaitingForControlPlane, None)?;
        await_masters(context, order.cluster_id)?;
    }
    // Nobody waits for logs.
    if let Err(error) = gather(context, order.cluster_id) {
        note!("{error:#}");
    }
    stage(context, HostStage::Rebooting, None)?;
    context
        .shared
        .power
        .reboot(&context.settings)
        .map_err(Ended::Failed)
}

fn is_day_2(cluster: &[u8]) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Cluster<'a> {
        #[serde(borrow)]
        kind: Cow<'a, str>,
    }
    serde_json::from_slice::<Cluster<'_>>(cluster).is_ok_and(|cluster| cluster.kind == "AddHostsCluster")
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

/// What coreos-installer's arguments mean to us.
#[derive(Debug, Default, PartialEq, Eq)]
struct Image {
    url: String,
    sha256: String,
    /// All arguments, without what only we understand.
    args: Vec<String>,
}

fn image(context: &Context, order: &InstallArgs) -> anyhow::Result<Image> {
    let args: Vec<String> = if order.installer_args.is_empty() {
        Vec::new()
    } else {
        serde_json::from_str(&order.installer_args).context("the installer's arguments cannot be read")?
    };
    let mut image = parse_args(args);
    if image.url.is_empty() {
        image.url.clone_from(&context.settings.image_url);
        image.sha256.clone_from(&context.settings.image_sha256);
    }
    Ok(image)
}

/// The sum of an image may stand behind its address: `#sha256=…`.
fn parse_args(args: Vec<String>) -> Image {
    let mut image = Image::default();
    let mut is_url = false;
    for arg in args {
        let url = match arg.strip_prefix("--image-url=") {
            Some(url) => Some(url),
            None if is_url => Some(arg.as_str()),
            None => None,
        };
        is_url = arg == "--image-url";
        let Some(url) = url else {
            image.args.push(arg);
            continue;
        };
        let (bare, sum) = url.split_once("#sha256=").unwrap_or((url, ""));
        image.sha256 = sum.to_ascii_lowercase();
        image.url = bare.to_owned();
        image.args.push(arg.replace(url, bare));
    }
    image
}

fn write(context: &Context, order: &InstallArgs, disk: &Disk, config: &[u8]) -> Result<(), Ended> {
    let image = image(context, order)?;
    let mut percent = Percent::new(context);
    if let Some(program) = coreos::program().filter(|_| !context.settings.dry_run) {
        check::still_wanted(context, &context.shared.install, order)?;
        return Ok(coreos::install(
            &program,
            &context.shared.install,
            &disk.path,
            config,
            &image.args,
            |at| percent.tell(at),
        )?);
    }
    if let Some(arg) = image.args.iter().find(|arg| arg.starts_with("--save-part")) {
        return Err(anyhow::anyhow!("{arg} needs coreos-installer, which this image does not have").into());
    }
    if image.url.is_empty() {
        return Err(anyhow::anyhow!(
            "no system is named: give the host --image-url in its installer arguments, or the agent muster.image_url="
        )
        .into());
    }
    let config = whole_config(context, &image, config)?;
    let mut left = WRITE_TRIES;
    loop {
        check::still_wanted(context, &context.shared.install, order)?;
        left -= 1;
        let job = Job {
            context,
            order,
            image: &image,
            disk,
            config: &config,
        };
        match job.write(&mut percent) {
            Ok(()) => return Ok(()),
            Err(_) if context.shared.install.is_cancelled() => {
                return Err(Ended::Unwanted("it was told to stop".into()));
            }
            Err(error) if left == 0 => return Err(error.into()),
            Err(error) => note!("the image is fetched once more: {error:#}"),
        }
    }
}

/// coreos-installer's `--copy-network` means the settings this machine has now.
fn whole_config<'a>(context: &Context, image: &Image, config: &'a [u8]) -> anyhow::Result<Cow<'a, [u8]>> {
    if !image.args.iter().any(|arg| arg == "--copy-network") {
        return Ok(Cow::Borrowed(config));
    }
    let files = context.machine.list(KEPT).into_iter().map(|name| {
        let content = context.machine.text(&format!("{KEPT}/{name}"));
        (format!("/{KEPT}/{name}"), format!("{content}\n"))
    });
    let files: Vec<(String, String)> = files.collect();
    let config = ignition::add_secret_files(config, &files)
        .context("the network settings cannot be added to the config of this host")?;
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
    fn write(&self, percent: &mut Percent<'_>) -> anyhow::Result<()> {
        let size = u64::try_from(self.disk.size_bytes).unwrap_or_default();
        let spool = Spool::new(spool::room(&self.context.machine));
        let first = Input::Fetched(Box::new(self.fetch()), Some(spool));
        let spool = self.pass(first, &Target::pretend(size), |at| percent.tell(at / 2))?;
        if self.context.settings.dry_run {
            note!("dry run: {} would be written now", self.disk.path);
            percent.tell(100);
            return Ok(());
        }
        check::still_wanted(self.context, &self.context.shared.install, self.order)?;
        let target = Target::open(&self.context.machine.path(&self.disk.path))
            .with_context(|| format!("{} cannot be opened", self.disk.path))?;
        note!("the image is whole: {} is written", self.disk.path);
        let second = match spool.and_then(Spool::replay) {
            Some(replay) => Input::Kept(replay, self.context.shared.install.cancel.clone()),
            None => Input::Fetched(Box::new(self.fetch()), None),
        };
        self.pass(second, &target, |at| percent.tell(50 + at / 2))?;
        percent.tell(100);
        Ok(())
    }

    fn fetch(&self) -> Source {
        let fetch = Fetch {
            http: self.context.hub.http.clone(),
            clock: self.context.clock.clone(),
            url: self.image.url.clone(),
        };
        Source::new(fetch, self.context.shared.install.cancel.clone())
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
            let mut decoded = decode::decoder(Shared(&input)).context("the image cannot be read")?;
            write_body(&mut decoded, target, || {
                if let Some(at) = input.borrow().percent() {
                    tell(at);
                }
            })?
        };
        let mut input = input.into_inner();
        let sum = input.finish().context("the image cannot be read to its end")?;
        let wanted = &self.image.sha256;
        ensure!(
            wanted.is_empty() || sum.as_ref().is_none_or(|sum| sum == wanted),
            "the image is damaged: its sha256 is {} instead of {wanted}",
            sum.unwrap_or_default(),
        );
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
    struct Peer<'a> {
        id: Uuid,
        #[serde(borrow)]
        role: Cow<'a, str>,
        #[serde(borrow)]
        progress: Option<Progress<'a>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Progress<'a> {
        #[serde(borrow)]
        current_stage: Cow<'a, str>,
    }
    let Ok(peers) = serde_json::from_slice::<Vec<Peer<'_>>>(hosts) else {
        return false;
    };
    let masters: Vec<&Peer<'_>> = peers
        .iter()
        .filter(|peer| peer.role == "master" && peer.id != me)
        .collect();
    let has_joined = |peer: &&&Peer<'_>| {
        let stage = peer
            .progress
            .as_ref()
            .map(|progress| progress.current_stage.as_ref());
        stage == Some(HostStage::Joined.word()) || stage == Some(HostStage::Done.word())
    };
    masters.iter().filter(has_joined).count() >= masters.len().min(ENOUGH_MASTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_and_its_sum_are_found_in_the_arguments() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let image = parse_args(words(
            "--append-karg ip=eth0:dhcp --image-url http://h/os.raw.xz#sha256=ABCD",
        ));
        assert_eq!(
            (image.url.as_str(), image.sha256.as_str()),
            ("http://h/os.raw.xz", "abcd")
        );
        assert_eq!(
            image.args,
            words("--append-karg ip=eth0:dhcp --image-url http://h/os.raw.xz")
        );
        let image = parse_args(words("--image-url=http://h/os.raw -n"));
        assert_eq!(
            (image.url.as_str(), image.sha256.as_str()),
            ("http://h/os.raw", "")
        );
        assert_eq!(parse_args(Vec::new()), Image::default());
    }

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
