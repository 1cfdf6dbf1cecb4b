//! `muster-agent`: started by a service, by hand, or as the first process of a discovery image.

use clap::Parser;
use muster_agent::clock::Real;
use muster_agent::collect::{Machine, inventory};
use muster_agent::runner::Agent;
use muster_agent::settings::Settings;
use muster_agent::{init, system};
use std::path::Path;
use std::sync::Arc;

fn main() -> anyhow::Result<()> {
    if init::is_init() {
        let environment = init::prepare();
        init::watch_over(Path::new("/proc/self/exe"), &environment);
    }
    let in_image = std::env::var_os(init::IN_IMAGE).is_some();
    // The kernel passes words it does not know as arguments; they are not for us.
    let mut settings = if in_image {
        Settings::parse_from(["muster-agent"])
    } else {
        Settings::parse()
    };
    settings.in_image = in_image;
    if in_image {
        init::show_on_consoles();
        if system::is_it(&Machine::at(&settings.root)) {
            return system::run(&settings, Arc::new(Real));
        }
    }
    settings.token = std::env::var("PULL_SECRET_TOKEN").unwrap_or_default().into();
    if settings.print_inventory {
        let found = inventory(&Machine::at(&settings.root), 0);
        println!("{}", serde_json::to_string_pretty(&found)?);
        return Ok(());
    }
    let is_installed = settings.is_installed;
    let agent = Agent::new(settings.complete()?, Arc::new(Real))?;
    if is_installed {
        agent.watch()
    } else {
        agent.run()
    }
    Ok(())
}
