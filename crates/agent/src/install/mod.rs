//! Installs a system: from the hub's order to the reboot, each stage reported as it begins.

pub mod area;
mod check;
mod coreos;
mod decode;
mod flow;
mod image;
mod report;
pub mod source;
mod spool;
pub mod writer;

use crate::note;
use crate::steps::Context;
use muster_contract::v2::agent::args::InstallArgs;
use report::Ended;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// At most one installation at a time, which can be told to stop.
#[derive(Debug, Default)]
pub struct Slot {
    is_running: AtomicBool,
    cancel: Arc<AtomicBool>,
}

impl Slot {
    pub fn is_running(&self) -> bool {
        self.is_running.load(Ordering::SeqCst)
    }

    /// The installation ends before its next byte. When none runs, nothing happens.
    pub fn cancel(&self) {
        if self.is_running() {
            note!("telling the installation to stop");
            self.cancel.store(true, Ordering::SeqCst);
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::SeqCst)
    }

    fn take(&self) -> bool {
        let taken = !self.is_running.swap(true, Ordering::SeqCst);
        if taken {
            self.cancel.store(false, Ordering::SeqCst);
        }
        taken
    }

    fn give_back(&self) {
        self.is_running.store(false, Ordering::SeqCst);
    }
}

/// Checks the order and begins. The agent answers the step at once; what follows is reported as progress. Hubs repeat
/// the order until they hear of the first stage: an installation that runs is not begun again.
pub fn start(context: &Context, order: InstallArgs) -> anyhow::Result<String> {
    if !context.shared.install.take() {
        return Ok(String::new());
    }
    // Who orders what cannot be done hears it as the answer; the disk is looked for again before it is written to.
    if let Err(ended) = check::disk(context, &order) {
        context.shared.install.give_back();
        return match ended {
            Ended::Failed(error) => Err(error),
            Ended::Unwanted(reason) => {
                note!("the agent ignores the order: {reason}");
                Ok(String::new())
            }
        };
    }
    let context = context.clone();
    std::thread::spawn(move || {
        flow::run(&context, &order);
        context.shared.install.give_back();
    });
    Ok(String::new())
}
