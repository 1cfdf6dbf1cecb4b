//! `cargo xtask test`: every check there is, with the servers they need.

mod chaos;
mod clients;
mod deploy;
mod fuzz;
mod house;
pub mod kube;
mod oracle;
mod packages;
mod report;
mod skips;
mod suites;
mod supplies;
mod tour;
mod vm;

use std::time::Instant;

use anyhow::{Result, bail};

use crate::{process, tools};
use house::{House, Scope};
use report::{Outcome, Report};
use suites::{ON_REQUEST, SUITES, Suite};
use supplies::Supplies;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask test                             everything, as CI does
  cargo xtask test --list                      what there is
  cargo xtask test --only fmt --only clippy    some of it
  cargo xtask test --only kube --named capi    some tests of one suite")]
pub struct Test {
    /// Run only this suite (may be repeated)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Of the Rust tests of these suites, run only those with this in their names
    #[arg(long, value_name = "TEXT", requires = "only")]
    named: Option<String>,
    /// List the suites and run none
    #[arg(long)]
    list: bool,
}

/// Runs the suites; `false` when one failed.
pub fn command(args: &Test) -> Result<bool> {
    if args.list {
        for suite in SUITES.iter().chain(ON_REQUEST) {
            println!("{:<14} {}", suite.name, suite.about);
        }
        return Ok(true);
    }
    let chosen = choose(&args.only)?;
    // A skipped test is a hole: at a desk it is announced, in CI nobody would read it.
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let scope = if args.only.is_empty() {
        Scope::Everything
    } else {
        Scope::Chosen
    };
    let supplies = (scope == Scope::Everything).then(Supplies::send_for);
    let mut house = House::new(scope, args.named.clone());
    let mut report = Report::default();
    for suite in chosen {
        let started = Instant::now();
        println!("\n=== {}: {}", suite.name, suite.about);
        let done = suite.run(&mut house);
        let skipped = house.skipped();
        report.add(suite.name, started.elapsed(), judge(done, &skipped, ci));
        report.skipped(suite.name, skipped);
        if process::interrupted() {
            bail!("interrupted");
        }
    }
    drop(house);
    drop(supplies);
    print!("{report}");
    Ok(report.is_good())
}

fn choose(only: &[String]) -> Result<Vec<&'static Suite>> {
    for name in only {
        if !SUITES.iter().chain(ON_REQUEST).any(|suite| suite.name == name) {
            bail!("there is no suite {name:?}; `cargo xtask test --list` names them all");
        }
    }
    if only.is_empty() {
        return Ok(SUITES.iter().collect());
    }
    Ok(SUITES
        .iter()
        .chain(ON_REQUEST)
        .filter(|suite| only.iter().any(|name| suite.name == name))
        .collect())
}

/// A suite that ran is as good as its tests, and on CI only when all of them ran.
fn judge(result: Result<()>, skipped: &[String], ci: bool) -> Outcome {
    match result {
        Ok(()) if ci && !skipped.is_empty() => Outcome::Failed(format!(
            "tests were skipped, which CI does not accept: {}",
            skipped.join("; ")
        )),
        Ok(()) => Outcome::Passed,
        Err(error) => match error.downcast_ref::<tools::Unavailable>() {
            Some(reason) if !ci => Outcome::Skipped(reason.to_string()),
            Some(reason) => Outcome::Failed(format!("would be skipped, which CI does not accept: {reason}")),
            None => Outcome::Failed(format!("{error:#}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn only_named_suites_run_and_a_misspelt_name_is_refused() {
        let names = |only: &[&str]| -> Result<Vec<&str>> {
            let only: Vec<String> = only.iter().map(ToString::to_string).collect();
            Ok(choose(&only)?.iter().map(|suite| suite.name).collect())
        };
        assert_eq!(names(&["clippy", "fmt"]).unwrap(), ["fmt", "clippy"]);
        assert_eq!(names(&[]).unwrap().len(), SUITES.len());
        assert!(names(&["ftm"]).unwrap_err().to_string().contains("ftm"));
    }

    #[test]
    fn what_cannot_be_had_is_skipped_at_a_desk_and_fails_in_ci() {
        let missing = || Err(tools::Unavailable("no apt-get".into()).into());
        assert_eq!(
            judge(missing(), &[], false),
            Outcome::Skipped("no apt-get".into())
        );
        assert!(matches!(judge(missing(), &[], true), Outcome::Failed(_)));
        assert_eq!(
            judge(Err(anyhow!("broken")), &[], false),
            Outcome::Failed("broken".into())
        );
        assert_eq!(judge(Ok(()), &[], true), Outcome::Passed);
    }

    #[test]
    fn a_suite_with_a_skipped_test_passes_at_a_desk_and_fails_in_ci() {
        let skipped = ["SKIPPED mounting: no root".to_owned()];
        assert_eq!(judge(Ok(()), &skipped, false), Outcome::Passed);
        let Outcome::Failed(reason) = judge(Ok(()), &skipped, true) else {
            panic!("CI accepts a skipped test");
        };
        assert!(reason.contains("no root"), "{reason}");
        let broken = judge(Err(anyhow!("broken")), &skipped, true);
        assert_eq!(broken, Outcome::Failed("broken".into()));
    }
}
