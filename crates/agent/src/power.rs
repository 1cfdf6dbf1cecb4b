//! Restarting the machine, or what is done instead.

use crate::note;
use crate::settings::Settings;
use crate::sys;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Remembers that the machine is gone, or would be.
#[derive(Debug, Default)]
pub struct Power {
    is_gone: AtomicBool,
}

impl Power {
    /// In a dry run, and with a hook, the agent ends in place of the machine.
    pub fn reboot(&self, settings: &Settings) -> anyhow::Result<()> {
        match &settings.reboot_hook {
            Some(hook) => {
                note!("instead of a reboot: {hook}");
                let status = Command::new("/bin/sh").arg("-c").arg(hook).status()?;
                anyhow::ensure!(status.success(), "the reboot hook ended with {status}");
            }
            None if settings.dry_run => note!("dry run: the machine would reboot now"),
            None => {
                note!("rebooting");
                sys::power::reboot()?;
            }
        }
        self.is_gone.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// As if somebody had pulled the plug: the agent ends at its next look.
    pub fn switch_off(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
    }

    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }
}
