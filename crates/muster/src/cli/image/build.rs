//! `muster image build`: Muster's own discovery image, from the distribution's kernel and the agent.

use super::cache;
use crate::exit::{Failure, Outcome};
use crate::output::{self, Format};
use crate::size::size;
use clap::{Args, ValueEnum};
use muster_image::build::{self, BuildError, Built, KernelSource, Plan, Role};
use std::path::PathBuf;

/// Any fixed day does: equal input shall give equal images.
const DATE: u64 = 1_767_225_600;

/// Build Muster's own discovery image
///
/// A bootable ISO of a distribution's kernel and an initramfs with muster-agent as its first program: for BIOS and
/// UEFI, as a CD or written raw to a disk or USB stick. It needs programs of the distribution (xorriso, isolinux, GRUB,
/// mtools) and names the Debian packages that are missing. It downloads and unpacks the kernel package without
/// installing it. Equal input gives equal bytes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster image build
  muster image build --agent ./muster-agent -o discovery.iso -o json
  muster image build --kernel-package linux-image-cloud-amd64 -o small.iso
  muster image build --kernel /boot/vmlinuz-6.1.0 --modules /lib/modules/6.1.0 -o own.iso
  muster image build --append 'console=ttyS1,115200n8' -o serial.iso
  muster image build --system -o system.img

--system makes an installed system for trials: install it to a host like any
disk image, and the host reports that it is installed.

If SOURCE_DATE_EPOCH is set, everything in the image has that date.")]
pub struct BuildArgs {
    /// The agent, a static program; muster-agent beside this program when absent
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Debian package of the kernel
    #[arg(long, value_name = "NAME", default_value = "linux-image-amd64")]
    kernel_package: String,
    /// A kernel (bzImage) instead of a package
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,
    /// The modules of that kernel, such as /lib/modules/6.1.0; leave it out when the kernel has everything built in
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// Where kernel packages are stored; $XDG_CACHE_HOME/muster/kernels when absent
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// An installed system for trials instead of a discovery image
    #[arg(long)]
    system: bool,
    /// More kernel arguments
    #[arg(
        long,
        value_name = "KARGS",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    append: String,
    /// The image to write; one of the words json, yaml, name or table says how the result is printed. May be given twice
    #[arg(short, long, value_name = "FILE|FORMAT")]
    output: Vec<PathBuf>,
}

pub fn run(args: BuildArgs) -> Outcome {
    let role = if args.system {
        Role::System
    } else {
        Role::Discovery
    };
    let (target, format) = outputs(&args.output, role)?;
    let kernel = match args.kernel {
        Some(kernel) => KernelSource::Files {
            kernel,
            modules: args.modules,
        },
        None => KernelSource::Package {
            name: args.kernel_package,
            cache: cache(args.cache_dir, "kernels"),
        },
    };
    let plan = Plan {
        role,
        agent: agent(args.agent)?,
        kernel,
        append: args.append,
        target,
        date: date()?,
    };
    let built = build::build(&plan, &mut |text| eprintln!("{text}")).map_err(failure)?;
    let sentence = sentence(&built);
    output::done(format, &built.sha256, &built, &sentence)
}

fn sentence(built: &Built) -> String {
    format!(
        "built {}, {}, volume {}, kernel {}\nsha256 {}",
        built.file.display(),
        size(built.bytes),
        built.volume,
        built.kernel_version,
        built.sha256
    )
}

/// `-o` is the format everywhere else and the file for every other builder: a word that is a format is one.
fn outputs(given: &[PathBuf], role: Role) -> Outcome<(PathBuf, Format)> {
    let (mut file, mut format) = (None, None);
    for value in given {
        let word = value.to_str().and_then(|word| Format::from_str(word, true).ok());
        let twice = match word {
            Some(word) => format.replace(word).is_some(),
            None => file.replace(value.clone()).is_some(),
        };
        if twice {
            let text = format!("--output {} is one file or one format too many", value.display());
            return Err(Failure::usage(text));
        }
    }
    let default = match role {
        Role::Discovery => "muster-discovery.iso",
        Role::System => "muster-system.img",
    };
    Ok((
        file.unwrap_or_else(|| default.into()),
        format.unwrap_or(Format::Table),
    ))
}

fn agent(given: Option<PathBuf>) -> Outcome<PathBuf> {
    if let Some(agent) = given {
        return Ok(agent);
    }
    let beside = std::env::current_exe()?.with_file_name("muster-agent");
    if !beside.is_file() {
        let text = format!("there is no {}", beside.display());
        return Err(Failure::usage(text).next("name the agent with --agent FILE"));
    }
    Ok(beside)
}

fn date() -> Outcome<u64> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text
            .trim()
            .parse()
            .map_err(|_| Failure::usage(format!("SOURCE_DATE_EPOCH is not a number of seconds: {text}"))),
        Err(_) => Ok(DATE),
    }
}

fn failure(error: BuildError) -> Failure {
    let next = match &error {
        BuildError::Missing { packages, .. } => format!("apt-get install {}", packages.join(" ")),
        BuildError::Input(_) | BuildError::Program { .. } | BuildError::Io { .. } => String::new(),
    };
    let is_usage = matches!(error, BuildError::Input(_));
    let failure = Failure::from(anyhow::Error::new(error)).next(next);
    match is_usage {
        true => Failure::usage(failure.cause),
        false => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_told_from_a_file() {
        let outputs = |given: &[&str]| {
            let given: Vec<PathBuf> = given.iter().map(PathBuf::from).collect();
            super::outputs(&given, Role::Discovery)
        };
        let (file, format) = outputs(&["x.iso", "json"]).unwrap();
        assert_eq!((file.to_str(), format), (Some("x.iso"), Format::Json));
        let (file, format) = outputs(&[]).unwrap();
        assert_eq!(
            (file.to_str(), format),
            (Some("muster-discovery.iso"), Format::Table)
        );
        let (file, _) = outputs(&["./json"]).unwrap();
        assert_eq!(file.to_str(), Some("./json"));
        assert!(outputs(&["a.iso", "b.iso"]).is_err() && outputs(&["json", "yaml"]).is_err());
    }
}
