//! The hosts of a measurement: who they are, and their requests as bytes.
//!
//! A host's inventory is a template of a simulated machine with the host's number in six places of digits; making it
//! costs a copy, not a rendering.

use std::io::Write;

use anyhow::{Context, Result, bail};
use muster_simfleet::{Machine, Profile, Setup, inventory};
use serde_json::{Value, json};

use super::load::Work;
use crate::http;

/// Hosts per InfraEnv, and the length of the lists that are measured.
pub const POOL: u32 = 1_000;
const V2: &str = "/api/assisted-install/v2";
const PULL_SECRET: &str = r#"{"auths":{"example.com":{"auth":"ZGVtbzpkZW1v"}}}"#;
const PROFILE: Profile = Profile::Rack;
const NAME: &str = "bench";
const OTHER_NAME: &str = "later";
/// One for each digit of a host's number; none of them is in an inventory.
const MARKS: [char; 6] = ['~', '^', '`', '!', '?', '|'];

pub struct Fleet {
    pub hosts: u32,
    pub pools: Vec<String>,
    /// Made once: the generator has better things to do.
    pub ids: Vec<String>,
    /// The agent the hub wants, so that nobody is told to upgrade.
    agent: String,
    /// The name of the interface that has a host's address.
    pub interface: String,
    reply: Template,
    /// The same hosts with other names.
    renamed: Template,
}

impl Fleet {
    /// Makes the InfraEnvs and asks the hub which agent it wants.
    pub fn create(url: &str, hosts: u32) -> Result<Self> {
        let mut pools = Vec::new();
        for number in 0..hosts.div_ceil(POOL) {
            let body = json!({ "name": format!("bench-{number}"), "pull_secret": PULL_SECRET });
            pools.push(id(&http::post(&format!("{url}{V2}/infra-envs"), &body)?)?);
        }
        Self::of_pools(url, hosts, pools)
    }

    /// For InfraEnvs that are there already, each for so many hosts as `POOL` says.
    pub fn of_pools(url: &str, hosts: u32, pools: Vec<String>) -> Result<Self> {
        let body = json!({ "host_id": host_id(0) });
        let view = http::post(&format!("{url}{V2}/infra-envs/{}/hosts", pools[0]), &body)?;
        let runner = view["next_step_runner_command"]["args"][0]
            .as_str()
            .context("no runner in the answer")?;
        let runner: Value = serde_json::from_str(runner)?;
        let agent = runner
            .as_object()
            .and_then(|all| all.iter().find(|(name, _)| name.contains("version")));
        let agent = agent
            .and_then(|(_, value)| value.as_str())
            .context("no agent in the answer")?
            .to_owned();
        Ok(Self {
            hosts,
            pools,
            ids: (0..hosts).map(host_id).collect(),
            agent,
            interface: inventory::nic_name(PROFILE, 0),
            reply: Template::inventory(NAME)?,
            renamed: Template::inventory(OTHER_NAME)?,
        })
    }

    /// Makes a cluster for hosts to be bound to.
    pub fn cluster(url: &str, name: &str) -> Result<String> {
        let versions = http::get(&format!("{url}{V2}/openshift-versions"))?;
        let versions = versions.as_object().context("no versions in the answer")?;
        let version = versions
            .iter()
            .find(|(_, about)| about["default"] == true)
            .or(versions.iter().next());
        let version = version.context("the hub knows no version")?.0;
        let body = json!({ "name": name, "openshift_version": version, "pull_secret": PULL_SECRET,
            "base_dns_domain": "example.com" });
        id(&http::post(&format!("{url}{V2}/clusters"), &body)?)
    }

    fn pool(&self, host: u32) -> &str {
        &self.pools[(host / POOL) as usize]
    }

    /// Starts a request about a host; its headers follow.
    fn head(&self, method: &str, host: u32, rest: &str, out: &mut Vec<u8>) {
        let id = &self.ids[host as usize];
        for part in [
            method,
            " ",
            V2,
            "/infra-envs/",
            self.pool(host),
            "/hosts/",
            id,
            rest,
            " HTTP/1.1\r\nhost: bench\r\n",
        ] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    fn act(&self, host: u32, rest: &str, body: &[u8], out: &mut Vec<u8>) {
        self.head("POST", host, rest, out);
        end_head(body.len(), out);
        out.extend_from_slice(body);
    }

    pub fn register(&self, host: u32, out: &mut Vec<u8>) {
        let id = &self.ids[host as usize];
        let body = format!(
            r#"{{"host_id":"{id}","discovery_agent_version":"{}"}}"#,
            self.agent
        );
        head(out, "POST", &format!("{V2}/infra-envs/{}/hosts", self.pool(host)));
        end_head(body.len(), out);
        out.extend_from_slice(body.as_bytes());
    }

    pub fn ask(&self, host: u32, now: u64, out: &mut Vec<u8>) {
        self.head("GET", host, &format!("/instructions?timestamp={now}"), out);
        for part in ["discovery_agent_version: ", &self.agent, "\r\n\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    pub fn reply(&self, host: u32, out: &mut Vec<u8>) {
        self.report(host, false, out);
    }

    /// An inventory like the usual one or, `renamed`, with another name in it.
    pub fn report(&self, host: u32, renamed: bool, out: &mut Vec<u8>) {
        let template = if renamed { &self.renamed } else { &self.reply };
        self.head("POST", host, "/instructions", out);
        end_head(template.text.len(), out);
        template.write(host, out);
    }

    /// What a host reports of itself, as text.
    pub fn inventory(&self, host: u32) -> String {
        let mut text = Vec::new();
        self.reply.write(host, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Any report, whole.
    pub fn say(&self, host: u32, report: &[u8], out: &mut Vec<u8>) {
        self.act(host, "/instructions", report, out);
    }

    /// The work that the hub has for a host, as its agent reads it.
    pub fn work(&self, url: &str, host: u32) -> Result<Value> {
        let (pool, id) = (self.pool(host), &self.ids[host as usize]);
        let path = format!("{url}{V2}/infra-envs/{pool}/hosts/{id}/instructions");
        http::get_with(&path, ("discovery_agent_version", &self.agent))
    }

    /// One report, sent by itself.
    pub fn tell(&self, url: &str, host: u32, report: &Value) -> Result<()> {
        let (pool, id) = (self.pool(host), &self.ids[host as usize]);
        let path = format!("{url}{V2}/infra-envs/{pool}/hosts/{id}/instructions");
        http::post(&path, report).map(drop)
    }

    /// Where a host is reached: what its inventory says.
    pub fn address(&self, host: u32) -> String {
        let [first, second, third] = [host / 10_000, host / 100 % 100, host % 100];
        format!("10.1{first:02}.1{second:02}.1{third:02}")
    }

    pub fn bind(&self, host: u32, cluster: &str, out: &mut Vec<u8>) {
        let body = format!(r#"{{"cluster_id":"{cluster}"}}"#);
        self.act(host, "/actions/bind", body.as_bytes(), out);
    }

    pub fn unbind(&self, host: u32, out: &mut Vec<u8>) {
        self.act(host, "/actions/unbind", b"", out);
    }
}

/// What a host calls itself in its inventory.
pub fn host_name(host: u32, renamed: bool) -> String {
    let name = if renamed { OTHER_NAME } else { NAME };
    format!("{name}-{host:06}")
}

/// A plain GET, for lists.
pub struct Get(pub String);

impl Work for Get {
    fn request(&self, _: u64, step: usize, out: &mut Vec<u8>) -> bool {
        head(out, "GET", &self.0);
        out.extend_from_slice(b"\r\n");
        step == 0
    }
}

fn id(view: &Value) -> Result<String> {
    view["id"]
        .as_str()
        .map(str::to_owned)
        .context("the answer has no id")
}

fn head(out: &mut Vec<u8>, method: &str, path: &str) {
    for part in [method, " ", path, " HTTP/1.1\r\nhost: bench\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn end_head(length: usize, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = write!(
        out,
        "content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
}

/// Spread like real ones: neighbours in a fleet are not neighbours in an index.
pub fn host_id(host: u32) -> String {
    let mix = |seed: u64| {
        let mut x = (u64::from(host) + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(seed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let (a, b) = (mix(1), mix(2));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        a >> 32,
        a & 0xffff,
        (a >> 16) & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    )
}

/// A text with a number in it, many times.
struct Template {
    text: Vec<u8>,
    /// Where a digit goes, and which.
    places: Vec<(usize, usize)>,
}

impl Template {
    fn inventory(name: &str) -> Result<Self> {
        let number: String = MARKS.iter().collect();
        let pairs = |between: &str| format!("~^{between}`!{between}?|");
        let setup = Setup {
            profile: Some(PROFILE),
            ..Setup::default()
        };
        let mut inventory = inventory::of(&Machine::new(&setup, 0, 0), 0);
        inventory.hostname = format!("{name}-{number}");
        if let Some(vendor) = &mut inventory.system_vendor {
            vendor.serial_number = format!("MS{number}");
        }
        for (at, nic) in inventory.interfaces.iter_mut().enumerate() {
            nic.mac_address = format!("52:54:{at:02}:{}", pairs(":"));
            if !nic.ipv4_addresses.is_empty() {
                nic.ipv4_addresses = vec![format!("10.1{}/8", pairs(".1"))];
            }
        }
        for (at, disk) in inventory.disks.iter_mut().enumerate() {
            disk.wwn = format!("0x500253800{at}{number}");
            disk.serial = format!("S{at}{number}");
            disk.by_id = format!("/dev/disk/by-id/wwn-{}", disk.wwn);
            disk.id.clone_from(&disk.by_id);
        }
        let reply = json!({ "step_type": "inventory", "step_id": "inventory-00000000", "exit_code": 0, "error": "",
            "output": serde_json::to_string(&inventory)? });
        Self::new(reply.to_string())
    }

    fn new(text: String) -> Result<Self> {
        let mut text = text.into_bytes();
        let mut places = Vec::new();
        for (at, byte) in text.iter_mut().enumerate() {
            if let Some(digit) = MARKS.iter().position(|mark| *byte == *mark as u8) {
                places.push((at, digit));
                *byte = b'0';
            }
        }
        if places.len() % MARKS.len() != 0 || places.is_empty() {
            bail!("the inventory uses a character that marks a digit");
        }
        Ok(Self { text, places })
    }

    fn write(&self, number: u32, out: &mut Vec<u8>) {
        let mut digits = [b'0'; 16];
        let mut into = &mut digits[..];
        let _ = write!(into, "{number:06}");
        let start = out.len();
        out.extend_from_slice(&self.text);
        for (at, digit) in &self.places {
            out[start + at] = digits[*digit];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_an_inventory_of_its_own() {
        let template = Template::inventory(NAME).unwrap();
        let text = |number| {
            let mut out = Vec::new();
            template.write(number, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert!(text(1234).contains("bench-001234"));
        assert!(text(1234).contains("10.100.112.134/8"));
        let fleet = Fleet {
            hosts: 0,
            pools: Vec::new(),
            ids: Vec::new(),
            agent: String::new(),
            interface: inventory::nic_name(PROFILE, 0),
            reply: Template::inventory(NAME).unwrap(),
            renamed: Template::inventory(OTHER_NAME).unwrap(),
        };
        assert!(text(1234).contains(&fleet.address(1234)));
        assert!(text(1234).contains(&fleet.interface));
        assert_ne!(text(1), text(2));
        assert_eq!(text(7), text(7));
        assert!(
            (4_000..8_000).contains(&template.text.len()),
            "{}",
            template.text.len()
        );
    }

    #[test]
    fn ids_are_uuids_and_differ() {
        let ids: std::collections::BTreeSet<_> = (0..10_000).map(host_id).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 36 && id.as_bytes()[14] == b'4'));
    }
}
