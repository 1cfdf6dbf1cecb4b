//! The suites, in the order they run: the cheapest first.

use std::time::Duration;

use anyhow::{Result, bail};

use super::house::House;
use super::{chaos, clients, deploy, fuzz, kube, oracle, tour, vm};
use crate::{generated, process, project, replay, tools};

/// A cold build on two cores is in here; a suite that hangs still ends before CI gives up on the whole.
pub const LIMIT: Duration = Duration::from_secs(25 * 60);

/// Where tests look for a server on which they may create databases.
const POSTGRES: &str = "MUSTER_TEST_POSTGRES";

/// Which database tests use that run on either.
const DATABASE: &str = "MUSTER_TEST_DATABASE";

pub struct Suite {
    pub name: &'static str,
    pub about: &'static str,
    kind: Kind,
}

enum Kind {
    /// The tests of a package that need nothing else.
    Package(&'static str),
    /// The tests of a package, which find a PostgreSQL server in `MUSTER_TEST_POSTGRES`.
    WithPostgres(&'static str),
    /// The tests of a package twice: in memory, and each with a PostgreSQL database of its own.
    OnBoth(&'static str),
    Own(fn(&mut House) -> Result<()>),
}

impl Suite {
    pub fn run(&self, house: &mut House) -> Result<()> {
        match &self.kind {
            Kind::Package(package) => house.tests(package, &[]),
            // A server given by whoever runs us is used as it is.
            Kind::WithPostgres(package) if std::env::var_os(POSTGRES).is_some() => house.tests(package, &[]),
            Kind::WithPostgres(package) => {
                let url = house.postgres()?.url.clone();
                house.tests(package, &[(POSTGRES, &url)])
            }
            Kind::OnBoth(package) => {
                let url = match std::env::var(POSTGRES) {
                    Ok(given) => given,
                    Err(_) => house.postgres()?.url.clone(),
                };
                let on = |database| [(POSTGRES, url.as_str()), (DATABASE, database)];
                let in_memory = house.tests(package, &on("memory"));
                println!("the same on PostgreSQL");
                in_memory.and(house.tests(package, &on("postgres")))
            }
            Kind::Own(run) => run(house),
        }
    }
}

/// What takes too long for every run: only when it is named.
pub const ON_REQUEST: &[Suite] = &[
    Suite {
        name: "container",
        about: "the container image: one static program, no root, a root that cannot be written; compiles everything anew",
        kind: Kind::Own(|_| deploy::container()),
    },
    Suite {
        name: "musl",
        about: "the container image with the program as it ships; compiles for long",
        kind: Kind::Own(|_| deploy::shipped_container()),
    },
];

pub const SUITES: &[Suite] = &[
    Suite {
        name: "fmt",
        about: "the formatting of all code",
        kind: Kind::Own(|_| format()),
    },
    Suite {
        name: "clippy",
        about: "lints, warnings are errors",
        kind: Kind::Own(|_| lint()),
    },
    Suite {
        name: "vocabulary",
        about: "the words that everyone shares, and that they stand nowhere as text",
        kind: Kind::Package("muster-vocabulary"),
    },
    Suite {
        name: "auth",
        about: "keys, tokens and the device flow",
        kind: Kind::Package("muster-auth"),
    },
    Suite {
        name: "domain",
        about: "decisions: tables and laws",
        kind: Kind::Package("muster-domain"),
    },
    Suite {
        name: "contract",
        about: "wire types and the client",
        kind: Kind::Package("muster-contract"),
    },
    Suite {
        name: "store",
        about: "SQL on SQLite and on a real PostgreSQL",
        kind: Kind::WithPostgres("muster-store"),
    },
    Suite {
        name: "hub",
        about: "the hub over HTTP, on SQLite and on a real PostgreSQL",
        kind: Kind::OnBoth("muster-hub"),
    },
    Suite {
        name: "simfleet",
        about: "simulated hosts",
        kind: Kind::Package("muster-simfleet"),
    },
    Suite {
        name: "image",
        about: "discovery images: formats of every era, byte ranges, serving, building",
        kind: Kind::Own(images),
    },
    Suite {
        name: "agent",
        about: "the agent of discovery images, against a scripted hub",
        kind: Kind::Own(agent),
    },
    Suite {
        name: "muster",
        about: "the binary: CLI, crashes and restarts, on SQLite and on a real PostgreSQL",
        kind: Kind::WithPostgres("muster"),
    },
    Suite {
        name: "chaos",
        about: "the hub with full disks, frozen databases and hubs, wrong clocks and kill -9; five minutes at most",
        kind: Kind::Own(chaos::run),
    },
    Suite {
        name: "xtask",
        about: "this tool itself, and its chores",
        kind: Kind::Own(ourselves),
    },
    Suite {
        name: "doc",
        about: "the examples in the code's documentation",
        kind: Kind::Own(|_| examples()),
    },
    Suite {
        name: "gen",
        about: "generated files are fresh",
        kind: Kind::Own(|_| generated::check()),
    },
    Suite {
        name: "kube",
        about: "the operator on a real Kubernetes API server, under the role it ships with",
        kind: Kind::Own(kube::run),
    },
    Suite {
        name: "deploy",
        about: "the chart with a real Helm, health checks of Argo CD",
        kind: Kind::Own(|_| deploy::run()),
    },
    Suite {
        name: "replay",
        about: "recorded exchanges of the reference get the same status, keys and types",
        kind: Kind::Own(play_recordings),
    },
    Suite {
        name: "oracle",
        about: "coreos-installer reads in our images what we meant to write, for every era of the format",
        kind: Kind::Own(oracle::run),
    },
    Suite {
        name: "aicli",
        about: "aicli and assisted-service-client, unmodified, on SQLite and on PostgreSQL",
        kind: Kind::Own(clients::run),
    },
    Suite {
        name: "schemathesis",
        about: "generated requests from the OpenAPI document, none may end in a 5xx",
        kind: Kind::Own(fuzz::run),
    },
    Suite {
        name: "tour",
        about: "README's five-minute tour, as pasted",
        kind: Kind::Own(tour::run),
    },
    Suite {
        name: "vm",
        about: "machines in QEMU: discovered, lent, installed, returned; ISO, virtual media, iPXE, UEFI, faults",
        kind: Kind::Own(vm::run),
    },
];

fn format() -> Result<()> {
    tools::ensure_rust_components()?;
    process::run(project::cargo().args(["fmt", "--all", "--check"]), LIMIT)
}

fn lint() -> Result<()> {
    tools::ensure_compiler()?;
    tools::ensure_rust_components()?;
    let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(project::cargo().args(words), LIMIT)
}

fn ourselves(house: &mut House) -> Result<()> {
    let up = house.tests("xtask", &[]);
    up.and(house.tests("chores", &[]))
}

fn examples() -> Result<()> {
    process::run(project::cargo().args(["test", "--workspace", "--doc"]), LIMIT)
}

/// Where the programs that build images are not available, the tests that need them are skipped; on CI that is a
/// failure.
fn images(house: &mut House) -> Result<()> {
    if let Err(error) = tools::qemu::ensure_builders() {
        println!("cannot build images here: {error:#}");
    }
    house.tests("muster-image", &[])
}

/// Its tests of networks need a DHCP server, and root; what cannot be run is left out, and on CI that is a failure.
fn agent(house: &mut House) -> Result<()> {
    if let Err(error) = tools::ensure_dnsmasq() {
        println!("the agent meets no DHCP server here: {error:#}");
    }
    house.tests("muster-agent", &[])
}

/// All of the project's recordings, each against a fresh hub.
fn play_recordings(house: &mut House) -> Result<()> {
    let binary = house.binary()?;
    let files = replay::project_recordings()?;
    if files.is_empty() {
        bail!("there is no recording to replay");
    }
    let options = replay::Options {
        binary: Some(binary),
        strict: true,
        ..Default::default()
    };
    let summary = replay::replay_files(&files, None, &options)?;
    println!("{summary}");
    if summary.failed(options.strict) {
        bail!("the hub's answers differ from the recordings");
    }
    Ok(())
}
