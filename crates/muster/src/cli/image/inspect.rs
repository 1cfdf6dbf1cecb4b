//! `muster image inspect`: what an image is and where things are in it.

use crate::exit::{Failure, Kind, Outcome};
use crate::output::{self, Column, Format, OutputArgs, col};
use crate::size::size;
use clap::Args;
use muster_image::base::areas::Family;
use muster_image::base::inspection::{Config, Inspection, inspect};
use muster_image::build::Role;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// Inspect an image
///
/// Shows what kind of image it is, which areas Muster would write to, and whether it already holds a configuration.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster image inspect discovery.iso
  muster image inspect rhcos-live.x86_64.iso --sha256
  muster image inspect discovery.iso -o json")]
pub struct InspectArgs {
    /// An ISO, or a disk image that was made of one
    file: PathBuf,
    /// Also compute the checksum, which reads the whole file
    #[arg(long)]
    sha256: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const AREAS: [Column; 3] = [col("AREA"), col("OFFSET"), col("LENGTH")];

pub fn run(args: &InspectArgs) -> Outcome {
    let name = args.file.display();
    let file = File::open(&args.file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::new(Kind::NotFound, format!("there is no file {name}")),
        _ => Failure::other(format!("cannot read {name}: {error}")),
    })?;
    let seen = inspect(&Arc::new(file), args.sha256).map_err(|error| {
        let error = anyhow::Error::new(error).context(name.to_string());
        Failure::from(error)
    })?;
    match args.output.output {
        Format::Table | Format::Wide => output::print(&text(&name.to_string(), &seen)),
        Format::Json | Format::Yaml => output::data(args.output.output, &seen),
        Format::Name => output::print(&format!("{}\n", seen.volume)),
    }
}

fn text(name: &str, seen: &Inspection) -> String {
    let mut pairs = vec![
        ("FILE", name.to_owned()),
        ("FAMILY", family(seen).to_owned()),
        ("VOLUME", seen.volume.clone()),
        ("VERSION", seen.version.clone().unwrap_or_default()),
    ];
    pairs.extend(seen.kernel_version.clone().map(|version| ("KERNEL", version)));
    pairs.push(("SIZE", format!("{} ({} bytes)", size(seen.bytes), seen.bytes)));
    pairs.push(("CONFIG", config(seen.config).to_owned()));
    let arguments = seen.kernel_arguments.clone();
    pairs.push(("KARGS", arguments.unwrap_or_else(|| "no area".to_owned())));
    pairs.extend(seen.sha256.clone().map(|sum| ("SHA256", sum)));
    let head = output::details(pairs.into_iter());
    let rows = seen.areas.iter().map(|area| {
        vec![
            area.name.to_owned(),
            area.offset.to_string(),
            area.length.to_string(),
        ]
    });
    format!("{head}\n{}", output::table(&AREAS, rows.collect(), false))
}

fn family(seen: &Inspection) -> &'static str {
    match (seen.family, seen.role) {
        (Family::Muster, Some(Role::System)) => "muster (a system to install)",
        (Family::Muster, Some(Role::Discovery) | None) => "muster",
        (Family::Coreos, _) => "coreos",
        (Family::Generic, _) => "generic",
    }
}

fn config(config: Config) -> &'static str {
    match config {
        Config::Embedded => "embedded",
        Config::None => "none",
        Config::NoArea => "no area; one is made when the image is served",
    }
}
