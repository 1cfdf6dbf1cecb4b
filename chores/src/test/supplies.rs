//! What later suites need is fetched and built while the first ones compile: most of it waits for the network, and the
//! rest takes what compilers leave of the cores.

use std::thread::{self, JoinHandle};

use anyhow::Result;

use crate::{process, tools};

/// Its name, and how it is had.
type Supply = (&'static str, fn() -> Result<()>);

/// The one that is needed last is last.
const ALL: &[Supply] = &[
    ("PostgreSQL", || tools::ensure_postgres().map(drop)),
    ("libfaketime", || tools::ensure_faketime().map(drop)),
    ("QEMU", tools::qemu::ensure),
    ("Kubernetes", || tools::ensure_kube().map(drop)),
    ("Lua", tools::ensure_lua),
    ("Helm", || tools::ensure_helm().map(drop)),
    ("Python clients", || tools::ensure_python().map(drop)),
    ("coreos-installer", || tools::ensure_coreos_installer().map(drop)),
    ("the agent of images", || tools::agent::build().map(drop)),
];

/// On the way; dropping it waits for what has begun.
pub struct Supplies(Option<JoinHandle<()>>);

impl Supplies {
    pub fn send_for() -> Self {
        Self(Some(thread::spawn(bring)))
    }
}

fn bring() {
    // Of this thread and of what it starts; without it things only take longer.
    let _ = rustix::process::nice(10);
    for (name, ensure) in ALL {
        if process::interrupted() {
            return;
        }
        // The suite that needs it tries again, and fails with the reason.
        if let Err(error) = ensure() {
            println!("could not fetch {name} ahead of time: {error:#}");
        }
    }
}

impl Drop for Supplies {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take()
            && thread.join().is_err()
        {
            println!("the thread that fetched things ahead of time panicked");
        }
    }
}
