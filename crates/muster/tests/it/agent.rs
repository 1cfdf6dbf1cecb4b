//! The real agent against the real hub: it arrives, is lent and comes back; installs, and reports from its disk.

use crate::tour::Hub;
use clap::Parser;
use muster_agent::clock::Real;
use muster_agent::http::{Trust, client};
use muster_agent::hub::{self as agent_hub, CallError, Ids};
use muster_agent::install::area;
use muster_agent::runner::Agent;
use muster_agent::settings::Settings;
use muster_agent::system;
use muster_contract::Secret;
use muster_vocabulary::Stage;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

const MIB: usize = 1 << 20;

/// A machine in a folder: large enough for any role.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new(name: &str, serial: &str, uuid: &str, mac: &str) -> Self {
        let this = Self {
            root: tempfile::tempdir().unwrap(),
        };
        let cpus: String = (0..8)
            .map(|number| format!("processor\t: {number}\nmodel name\t: CPU\nflags\t\t: vmx\n\n"))
            .collect();
        for (path, content) in [
            ("proc/sys/kernel/hostname", name),
            ("proc/sys/kernel/random/boot_id", name),
            ("proc/cmdline", "console=ttyS0"),
            ("proc/cpuinfo", &cpus),
            (
                "proc/meminfo",
                "MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\n",
            ),
            ("sys/class/dmi/id/board_serial", serial),
            ("sys/class/dmi/id/product_uuid", uuid),
            ("sys/class/dmi/id/sys_vendor", "Example"),
            ("sys/class/net/eth0/address", mac),
            ("sys/class/net/eth0/flags", "0x1003"),
            ("sys/class/net/eth0/carrier", "1"),
            ("sys/class/net/eth0/mtu", "1500"),
            ("sys/class/net/eth0/device/vendor", "0x1af4"),
            ("sys/block/vda/size", &(DISK_BYTES / 512).to_string()),
            ("sys/block/vda/queue/rotational", "0"),
            ("sys/block/vda/serial", "disk-one"),
            ("addresses", "eth0 192.0.2.15/24"),
            (
                "proc/net/route",
                "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                 eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
            ),
        ] {
            this.file(path, content);
        }
        this.file("dev/vda", "");
        let disk = std::fs::File::options()
            .write(true)
            .open(this.path("dev/vda"))
            .unwrap();
        disk.set_len(DISK_BYTES).unwrap();
        this
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn file(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn settings(&self, url: &str, infra_env: &str, flags: &[&str]) -> Settings {
        let root = self.root.path().to_str().unwrap();
        let all = [
            "agent",
            "--url",
            url,
            "--infra-env-id",
            infra_env,
            "--root",
            root,
            "--poll=1",
            "--interval=1",
        ];
        Settings::try_parse_from([&all[..], flags].concat()).unwrap()
    }

    /// Boots discovery.
    fn boot(&self, url: &str, infra_env: &str, flags: &[&str]) -> Booted {
        let settings = self.settings(url, infra_env, flags).complete().unwrap();
        let agent = Arc::new(Agent::new(settings, Arc::new(Real)).unwrap());
        let own = agent.clone();
        Booted {
            agent,
            thread: Some(std::thread::spawn(move || own.run())),
        }
    }
}

/// An agent that runs until the test, or the agent itself, ends it.
struct Booted {
    agent: Arc<Agent>,
    thread: Option<JoinHandle<()>>,
}

impl Booted {
    fn id(&self) -> String {
        self.agent.host.to_string()
    }

    /// Until it reboots by itself.
    fn join(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Booted {
    fn drop(&mut self) {
        self.agent.shared.power.switch_off();
    }
}

const SYSTEM: &str = "4c4c4544-0051-3610-8034-b5c04f4e3332";
/// Sparse: nobody writes all of it.
const DISK_BYTES: u64 = 128 << 30;

#[test]
fn a_machine_arrives_is_lent_and_comes_back() {
    let hub = Hub::start();
    let lab = hub.ok("infra-env create lab -o name");
    let machine = Machine::new("rack-7", "CN7016", SYSTEM, "52:54:00:aa:00:01");
    let infra_env = infra_env_id(&hub, lab.trim());
    let agent = machine.boot(hub.url(), &infra_env, &["--dry-run"]);
    let id = agent.id();
    await_free(&hub, &id);
    let seen: serde_json::Value = serde_json::from_str(&hub.ok(&format!("host get {id} -o json"))).unwrap();
    let inventory: serde_json::Value = serde_json::from_str(seen["inventory"].as_str().unwrap()).unwrap();
    assert_eq!(inventory["hostname"], "rack-7");
    assert_eq!(inventory["cpu"]["count"], 8);
    assert_eq!(inventory["disks"][0]["serial"], "disk-one");
    assert_eq!(inventory["interfaces"][0]["ipv4_addresses"][0], "192.0.2.15/24");
    // Without time servers the hub's own clock is compared; its answer may come after the first verdict.
    hub.until(&format!("host get {id} -o json"), |out| {
        let seen: serde_json::Value = serde_json::from_str(out).unwrap();
        seen["ntp_sources"]
            .as_str()
            .is_some_and(|sources| sources.contains("synced"))
    });

    hub.ok("cluster create a --single-node --machine-network 192.0.2.0/24");
    hub.ok(&format!("host bind {id} --cluster a --wait --timeout 1m"));
    hub.until("cluster hosts a -o json", |out| out.contains("\"known\""));
    hub.ok(&format!("host unbind {id} --wait --timeout 1m"));
    await_free(&hub, &id);
}

#[test]
fn an_agent_believes_a_hub_with_an_authority_of_its_own_because_its_image_says_so() {
    let hub = Hub::start_with(&["--tls-self-signed"]);
    assert!(hub.url().starts_with("https://"), "{}", hub.url());
    let lab = hub.ok("infra-env create lab -o name");
    let machine = Machine::new("rack-7", "CN7016", SYSTEM, "52:54:00:aa:00:01");
    machine.file("config.ign", &hub.ok("infra-env download lab discovery-ignition"));
    let root = machine.root.path().to_str().unwrap();
    let flags = ["agent", "--root", root, "--poll=1", "--interval=1", "--dry-run"];
    let settings = Settings::try_parse_from(flags).unwrap().complete().unwrap();
    assert_eq!(settings.url, hub.url());
    let agent = Arc::new(Agent::new(settings, Arc::new(Real)).unwrap());
    let own = agent.clone();
    let booted = Booted {
        agent,
        thread: Some(std::thread::spawn(move || own.run())),
    };
    await_free(&hub, &booted.id());

    // Another hub's authority is as good as none.
    let other = Hub::start_with(&["--tls-self-signed"]);
    let infra_env = infra_env_id(&hub, lab.trim()).parse().unwrap();
    let asking = |authority: &str| {
        let trust = Trust {
            root: machine.root.path().into(),
            cacert: Some(authority.into()),
            ..Trust::default()
        };
        agent_hub::Hub {
            url: hub.url().to_owned(),
            token: Secret::default(),
            http: client(&trust).unwrap(),
            clock: Arc::new(Real),
        }
    };
    let ids = Ids {
        infra_env,
        host: booted.agent.host,
    };
    let told = asking(&other.authority()).progress_now(ids, Stage::Starting, None);
    match told.unwrap_err() {
        CallError::Untrusted(why) => assert!(why.contains("not signed by an authority"), "{why}"),
        error => panic!("{error:?}"),
    }
    asking(&hub.authority()).host(ids).unwrap();
}

#[test]
fn machines_with_cloned_and_meaningless_numbers_are_told_apart() {
    let hub = Hub::start();
    let lab = hub.ok("infra-env create lab -o name");
    let infra_env = infra_env_id(&hub, lab.trim());
    let machines = [
        // Clones: the same numbers, and they look right. Their owner chose MACs.
        ("clone-1", "CN7016", SYSTEM, "52:54:00:aa:00:01", "mac"),
        ("clone-2", "CN7016", SYSTEM, "52:54:00:aa:00:02", "mac"),
        // Junk: nobody has to choose.
        (
            "junk-1",
            "To be filled by O.E.M.",
            "03000200-0400-0500-0006-000700080009",
            "52:54:00:aa:00:03",
            "auto",
        ),
        (
            "junk-2",
            "To be filled by O.E.M.",
            "03000200-0400-0500-0006-000700080009",
            "52:54:00:aa:00:04",
            "auto",
        ),
        (
            "junk-3",
            "0000000000",
            "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
            "52:54:00:aa:00:05",
            "auto",
        ),
    ];
    let booted: Vec<(Machine, Booted)> = machines
        .iter()
        .map(|(name, serial, uuid, mac, rule)| {
            let machine = Machine::new(name, serial, uuid, mac);
            let agent = machine.boot(hub.url(), &infra_env, &["--dry-run", "--identity", rule]);
            (machine, agent)
        })
        .collect();
    let all = "host list --free --status known-unbound,insufficient-unbound -o name";
    hub.until(all, |out| out.lines().count() == machines.len());
    let listed = hub.ok("host list");
    for (name, ..) in machines {
        assert!(listed.contains(name), "{name} in {listed}");
    }
    // The id of a MAC does not change when the machine starts again.
    let again = booted[0]
        .0
        .boot(hub.url(), &infra_env, &["--dry-run", "--identity", "mac"]);
    assert_eq!(again.id(), booted[0].1.id());
}

fn await_free(hub: &Hub, id: &str) {
    hub.until("host list --free --status known-unbound -o name", |out| {
        out.contains(id)
    });
}

fn infra_env_id(hub: &Hub, name: &str) -> String {
    let seen: serde_json::Value =
        serde_json::from_str(&hub.ok(&format!("infra-env get {name} -o json"))).unwrap();
    seen["id"].as_str().unwrap().to_owned()
}

/// The system to install: a boot sector, and a place for the config.
fn image() -> Vec<u8> {
    let mut image: Vec<u8> = (0..8 * MIB).map(|at| (at / 7 % 253) as u8).collect();
    image[..MIB].fill(0);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    image[3 * MIB..3 * MIB + 16].copy_from_slice(b"MUSTER-CONFIG-0\n");
    image[3 * MIB + 16..3 * MIB + 24].copy_from_slice(&(256u64 << 10).to_le_bytes());
    image
}

/// A web server that sends the image, but the first time only half of it: it says so, and goes on when it is told to.
struct Mirror {
    url: String,
    half_sent: Receiver<()>,
    go_on: Sender<()>,
}

impl Mirror {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/os.raw", listener.local_addr().unwrap());
        let (tell, half_sent) = channel();
        let (go_on, wait) = channel();
        std::thread::spawn(move || {
            let image = image();
            let mut is_first = true;
            for mut stream in listener.incoming().flatten() {
                let start = asked_from(&stream);
                let end = if std::mem::take(&mut is_first) {
                    image.len() / 2
                } else {
                    image.len()
                };
                let (kind, total) = (
                    if start > 0 {
                        "206 Partial Content"
                    } else {
                        "200 OK"
                    },
                    image.len(),
                );
                let head = format!(
                    "HTTP/1.1 {kind}\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{total}\r\n\
                     Connection: close\r\n\r\n",
                    total - start,
                    total - 1
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&image[start..end]);
                if end < total {
                    tell.send(()).unwrap();
                    wait.recv().unwrap();
                }
            }
        });
        Self {
            url,
            half_sent,
            go_on,
        }
    }
}

fn asked_from(stream: &TcpStream) -> usize {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut start = 0;
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().unwrap();
        }
    }
    start
}

fn cluster(hub: &Hub, machine: &Machine, name: &str, host: &str) {
    let ignition = machine.path("server.ign");
    std::fs::write(&ignition, r#"{"ignition":{"version":"3.4.0"}}"#).unwrap();
    hub.ok(&format!(
        "cluster create {name} --single-node --machine-network 192.0.2.0/24"
    ));
    hub.ok(&format!(
        "cluster ignition set {name} --role master {}",
        ignition.display()
    ));
    hub.ok(&format!("host bind {host} --cluster {name} --wait --timeout 1m"));
    hub.ok(&format!("cluster wait {name} --for ready --timeout 1m"));
}

#[test]
fn a_machine_is_installed_while_the_hub_restarts_reports_from_its_disk_and_comes_back() {
    let mut hub = Hub::start();
    let lab = hub.ok("infra-env create lab -o name");
    let infra_env = infra_env_id(&hub, lab.trim());
    let machine = Machine::new("rack-7", "CN7016", SYSTEM, "52:54:00:aa:00:01");
    let mirror = Mirror::start();
    let flags = ["--reboot-hook=true", "--image-url", &mirror.url];
    let agent = machine.boot(hub.url(), &infra_env, &flags);
    let id = agent.id();
    await_free(&hub, &id);
    cluster(&hub, &machine, "edge", &id);
    hub.ok("cluster install edge");
    mirror
        .half_sent
        .recv_timeout(std::time::Duration::from_secs(60))
        .unwrap();
    hub.restart();
    mirror.go_on.send(()).unwrap();
    agent.join();

    let disk = std::fs::File::open(machine.path("dev/vda")).unwrap();
    let config = String::from_utf8(area::read_back(&disk).unwrap()).unwrap();
    assert!(config.contains("muster-installed.service"), "{config}");

    // The machine starts from its disk.
    machine.file("proc/cmdline", "console=ttyS0 muster.system");
    let root = machine.root.path().to_str().unwrap();
    let settings =
        Settings::try_parse_from(["agent", "--root", root, "--reboot-hook=true", "--poll=1"]).unwrap();
    std::thread::spawn(move || system::run(&settings, Arc::new(Real)));
    hub.ok("cluster wait edge --for installed --timeout 1m");

    // Deleted: the machine waits for somebody to boot discovery, which takes it back whatever runs on its disk.
    hub.ok("cluster delete edge");
    hub.until("host list -o json", |out| {
        out.contains("unbinding-pending-user-action")
    });
    machine.file("proc/cmdline", "console=ttyS0");
    let again = machine.boot(hub.url(), &infra_env, &flags);
    assert_eq!(again.id(), id);
    await_free(&hub, &id);
    cluster(&hub, &machine, "second", &id);
}
