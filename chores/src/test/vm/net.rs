//! One network for several machines: a machine without a guest is its switch, its gateway and its DHCP server.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rustix::process::Signal;

use crate::process::{self, Service};
use crate::tools::qemu;

/// How guests reach loopback of the machine they are emulated on.
pub const HOST: &str = "10.0.2.2";
/// The network all guests are in.
pub const NETWORK: &str = "10.0.2.0/24";

/// A switch with a port for each machine.
pub struct Switch {
    dir: PathBuf,
    _qemu: Service,
}

impl Switch {
    pub fn start(dir: &Path, ports: &[&str]) -> Result<Self> {
        let mut command = process::ending_with_us(qemu::SYSTEM);
        command.args(["-machine", "none", "-nodefaults", "-display", "none"]);
        command.args([
            "-netdev",
            "user,id=gateway",
            "-netdev",
            "hubport,id=uplink,hubid=0,netdev=gateway",
        ]);
        for port in ports {
            let ends = ends(dir, port, "switch", "guest");
            command.args(["-netdev", &format!("dgram,id=wire-{port},{ends}")]);
            let plug = format!("hubport,id=port-{port},hubid=0,netdev=wire-{port}");
            command.args(["-netdev", &plug]);
        }
        let log = File::create(dir.join("switch.log"))?;
        command.stdout(log.try_clone()?).stderr(log);
        Ok(Self {
            dir: dir.to_owned(),
            _qemu: Service::start("the switch", &mut command, Signal::TERM)?,
        })
    }

    /// The other end of a port, as a machine's network card is given it.
    pub fn plug(&self, port: &str) -> String {
        format!("dgram,id=net0,{}", ends(&self.dir, port, "guest", "switch"))
    }
}

/// Datagrams between two files: either side may come and go.
fn ends(dir: &Path, port: &str, here: &str, there: &str) -> String {
    let file = |side: &str| dir.join(format!("{port}.{side}")).display().to_string();
    format!(
        "local.type=unix,local.path={},remote.type=unix,remote.path={}",
        file(here),
        file(there)
    )
}
