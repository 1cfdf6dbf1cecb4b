//! What plans promise about roles and disks: compared with the host at once, and with the installer's order later.

use super::Subject;
use crate::world::World;
use muster_domain::HostKey;
use muster_domain::host::install_order;
use serde_json::Value;
use std::collections::BTreeMap;

/// Of one host.
#[derive(Debug, Clone, Default, PartialEq)]
struct Promise {
    /// A role, and whether it starts the control plane.
    becomes: Option<String>,
    disk: Option<String>,
    /// The same disk as installers are told it; known once the verb is carried out.
    boot_device: String,
    /// Said only when it is more than the disk that is installed to.
    formatted: Option<usize>,
}

#[derive(Debug, Default)]
pub struct Promises {
    by_host: BTreeMap<HostKey, Promise>,
    /// How many orders to install were compared.
    pub ordered: u32,
}

fn of_host(plan: &Value, who: &BTreeMap<String, Subject>) -> BTreeMap<HostKey, Promise> {
    let mut all: BTreeMap<HostKey, Promise> = BTreeMap::new();
    for step in plan["steps"].as_array().expect("a list") {
        let text = |field: &str| step[field].as_str().unwrap_or_default().to_owned();
        let Some(Subject::Host(key)) = who.get(&text("subject")) else {
            continue;
        };
        let action = text("action");
        if let Some(role) = action.strip_prefix("become ") {
            let role = role.strip_suffix(" and start installing").unwrap_or(role);
            all.entry(*key).or_default().becomes = Some(role.to_owned());
        }
        // A disk without a path is "its installation disk".
        let disk = action
            .strip_prefix("install to ")
            .and_then(|rest| rest.split(' ').next());
        let disk = disk.filter(|disk| disk.starts_with('/'));
        if let Some(disk) = disk {
            let promise = all.entry(*key).or_default();
            promise.disk = Some(disk.to_owned());
            let destroyed = step["destroys"].as_array().into_iter().flatten();
            let mut texts = destroyed.filter_map(|text| text.as_str()?.strip_prefix("the boot sectors of "));
            promise.formatted = texts.next().and_then(|rest| rest.split(' ').next()?.parse().ok());
        }
    }
    all
}

/// How a plan says what a host becomes.
fn becoming(role: &str, bootstrap: bool) -> String {
    match bootstrap {
        true => format!("{role} and start the control plane"),
        false => role.to_owned(),
    }
}

impl Promises {
    /// A new world, in which nothing was promised yet.
    pub fn begin(&mut self, world: &mut World) {
        self.by_host.clear();
        world.heard = Some(Vec::new());
    }

    /// The verb has just been carried out: roles and disks are decided.
    pub fn made(&mut self, world: &World, plan: &Value, who: &BTreeMap<String, Subject>) {
        for (key, mut promise) in of_host(plan, who) {
            let row = world.hub.index.host(key).expect("it is still there");
            if let Some(becomes) = &promise.becomes {
                assert_eq!(*becomes, becoming(row.role.word(), row.bootstrap), "{plan}");
            }
            if let Some(disk) = &promise.disk {
                assert_eq!(*disk, row.tenant.installation_disk_path, "{plan}");
                is_formatted(&promise, install_order::disks_to_format(&row).len());
            }
            promise.boot_device = row.tenant.installation_disk_id;
            self.by_host.insert(key, promise);
        }
    }

    /// What installers were told since the last look is what was promised.
    pub fn kept(&mut self, world: &mut World) {
        for heard in world.heard.replace(Vec::new()).unwrap_or_default() {
            let key = world.key(heard.machine);
            for order in orders(&heard.body) {
                let promise = self
                    .by_host
                    .get(&key)
                    .unwrap_or_else(|| panic!("nobody planned {order}"));
                self.ordered += 1;
                let told = match order["role"].as_str().expect("a role") {
                    "bootstrap" => becoming("master", true),
                    role => becoming(role, false),
                };
                assert_eq!(promise.becomes.as_ref(), Some(&told), "{order}");
                assert_eq!(order["boot_device"], promise.boot_device.as_str(), "{order}");
                is_formatted(promise, order["disks_to_format"].as_array().map_or(0, Vec::len));
            }
        }
    }
}

fn is_formatted(promise: &Promise, disks: usize) {
    match promise.formatted {
        Some(count) => assert_eq!(count, disks, "{promise:?}"),
        None => assert!(disks <= 1, "{disks} disks are formatted: {promise:?}"),
    }
}

/// Orders to install in what a machine was answered.
fn orders(body: &[u8]) -> Vec<Value> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let steps = answer["instructions"].as_array().cloned().unwrap_or_default();
    let install = steps.iter().filter(|step| step["step_type"] == "install");
    install
        .map(|step| serde_json::from_str(step["args"][0].as_str().expect("text")).expect("JSON"))
        .collect()
}
