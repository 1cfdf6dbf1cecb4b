//! The five-minute tour with a real hub and simulated hosts: arrive, lend, move, take back.

use crate::program::{Ran, command, finish};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Plenty for four hosts that poll every second; a slow machine shall not fail the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running part of the program; it ends with the test.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Hub {
    process: Running,
    url: String,
    data: tempfile::TempDir,
    flags: Vec<String>,
}

impl Hub {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(flags: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let (process, url) = Self::serve(&data, "127.0.0.1:0", &flags);
        Self {
            process,
            url,
            data,
            flags,
        }
    }

    /// `kill -9`, and once more with the same data at the same address.
    pub fn restart(&mut self) {
        self.kill();
        let listen = self.url.strip_prefix("http://").unwrap();
        (self.process, self.url) = Self::serve(&self.data, listen, &self.flags);
    }

    pub fn kill(&mut self) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
    }

    fn serve(data: &tempfile::TempDir, listen: &str, flags: &[String]) -> (Running, String) {
        let dir = data.path().join("data");
        let mut serve = command(&["serve", "--listen", listen, "--data-dir", dir.to_str().unwrap()]);
        let mut child = serve
            .args(flags)
            // What makes the files of installations looks for programs of its own.
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line
            .trim()
            .strip_prefix("muster is ready at ")
            .unwrap()
            .to_owned();
        (Running(child), url)
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    fn sim(&self, infra_env: &str, hosts: &str) -> Running {
        self.sim_with(infra_env, hosts, &[])
    }

    pub fn sim_with(&self, infra_env: &str, hosts: &str, flags: &[&str]) -> Running {
        let mut sim = command(&["sim", "--infra-env", infra_env, "--hosts", hosts, "--poll", "1"]);
        sim.args(flags);
        sim.envs(self.variables()).stderr(Stdio::null());
        Running(sim.spawn().unwrap())
    }

    pub fn run(&self, line: &str) -> Ran {
        let mut command = command(&line.split(' ').collect::<Vec<_>>());
        command.envs(self.variables());
        finish(command)
    }

    /// Where it is, and whom to believe.
    fn variables(&self) -> [(&str, String); 2] {
        let authority = match self.url.starts_with("https://") {
            true => self.authority(),
            false => String::new(),
        };
        [("MUSTER_HUB", self.url.clone()), ("MUSTER_CA", authority)]
    }

    /// With `--tls-self-signed`.
    pub fn authority(&self) -> String {
        let path = self.data.path().join("data/tls/ca.crt");
        path.to_str().unwrap().to_owned()
    }

    /// What a command prints that has to work.
    pub fn ok(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!(ran.code, 0, "muster {line}\n{}{}", ran.out, ran.err);
        ran.out
    }

    pub fn until(&self, line: &str, enough: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let out = self.ok(line);
            if enough(&out) {
                return out;
            }
            assert!(start.elapsed() < PATIENCE, "muster {line} still says\n{out}");
        }
    }
}

#[test]
fn hosts_arrive_are_lent_moved_and_taken_back() {
    let hub = Hub::start();
    assert!(hub.ok("status").contains("sqlite"));
    let lab = hub.ok("infra-env create lab -o name");
    let _fleet = hub.sim(lab.trim(), "4");
    // One of these four machines is too small for any role; it is free all the same.
    let judged = "host list --free --status known-unbound,insufficient-unbound -o name";
    hub.until(judged, |out| out.lines().count() == 4);
    let free = hub.ok("host list --status known-unbound -o name");
    let host = free.lines().next().unwrap();

    hub.ok("cluster create a");
    hub.ok("cluster create b");
    assert!(
        hub.ok(&format!("host explain {host} --cluster a"))
            .contains("bind: allowed")
    );
    let told = hub.ok("infra-env explain lab");
    assert!(told.contains("infra-env/lab is has-free-hosts"), "{told}");
    assert!(told.contains("next: Bind one of its"), "{told}");
    assert!(
        hub.ok(&format!("host bind {host} --cluster a --dry-run"))
            .contains("1. ")
    );
    assert_eq!(hub.ok("cluster hosts a -o name"), "", "a dry run changes nothing");

    assert!(
        hub.ok(&format!("host bind {host} --cluster a --wait --timeout 1m"))
            .contains("bound to cluster/a")
    );
    assert_eq!(hub.ok("cluster hosts a -o name").trim(), host);
    let again = hub.run(&format!("host bind {host} --cluster b"));
    assert_eq!(again.code, 3, "a lent host is refused: {}", again.err);
    assert!(again.err.contains("next: "), "{}", again.err);

    assert!(
        hub.ok(&format!("host move {host} --to b --wait --timeout 1m"))
            .contains("moved to cluster/b")
    );
    assert_eq!(hub.ok("cluster hosts a -o name"), "");
    assert_eq!(hub.ok("cluster hosts b -o name").trim(), host);

    assert!(
        hub.ok(&format!("host unbind {host} --wait --timeout 1m"))
            .contains("known-unbound")
    );
    hub.ok(&format!("host bind {host} --cluster a --wait --timeout 1m"));
    hub.ok("cluster delete a --wait --timeout 1m");
    hub.ok("cluster delete b");
    assert_eq!(hub.ok(judged).lines().count(), 4, "all are free again");
    assert!(!hub.ok(&format!("event list --host {host}")).is_empty());
}

#[test]
fn the_images_and_scripts_hosts_boot_with_can_be_downloaded() {
    let hub = Hub::start();
    hub.ok("infra-env create lab");
    let ignition: serde_json::Value =
        serde_json::from_str(&hub.ok("infra-env download lab discovery-ignition")).unwrap();
    assert!(ignition["ignition"]["version"].is_string());
    assert!(hub.ok("infra-env download lab ipxe-script").starts_with("#!ipxe"));
    assert!(hub.ok("infra-env download lab image-url").starts_with("http://"));
    hub.ok("infra-env update lab --image-type minimal-iso");
    assert!(hub.ok("infra-env get lab").contains("minimal-iso"));
    hub.ok("infra-env delete lab");
    assert_eq!(hub.run("infra-env get lab").code, 4);
}

#[test]
fn a_hub_that_is_told_to_stop_ends_in_peace() {
    let mut hub = Hub::start();
    let pid = hub.process.0.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert!(hub.process.0.wait().unwrap().success());
}
