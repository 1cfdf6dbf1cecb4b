//! What bound hosts say of the ways to each other: the reply to the step that the hub gives them, which names the others.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::fleet::Fleet;

/// For each host its reply, ready to be sent.
pub struct Peers(Vec<Vec<u8>>);

impl Peers {
    /// Asks for the work of the first so many hosts. A host that is alone in its cluster has nothing to say.
    pub fn ask(fleet: &Fleet, url: &str, hosts: u32) -> Result<Self> {
        // The hub does not ask again while it waits for an answer to an earlier poll.
        let nobody = json!({ "step_type": "connectivity-check", "step_id": "", "exit_code": 0, "error": "",
            "output": json!({ "remote_hosts": [] }).to_string() });
        let reply = |host| {
            fleet.tell(url, host, &nobody)?;
            let work = fleet.work(url, host)?;
            Ok(reply(&work, &fleet.interface, &fleet.address(host)).unwrap_or_default())
        };
        let replies = (0..hosts).map(reply).collect::<Result<Vec<_>>>()?;
        ensure!(
            replies.iter().any(|reply| !reply.is_empty()),
            "the hub tells none of {hosts} hosts to try others"
        );
        Ok(Self(replies))
    }

    pub fn of(&self, host: u32) -> Option<&[u8]> {
        let reply = self.0.get(host as usize)?;
        (!reply.is_empty()).then_some(reply)
    }
}

/// That all others can be reached, from this interface.
fn reply(work: &Value, interface: &str, address: &str) -> Option<Vec<u8>> {
    let steps = work["instructions"].as_array()?;
    let step = steps
        .iter()
        .find(|step| step["step_type"] == "connectivity-check")?;
    let others: Vec<Value> = serde_json::from_str(step["args"][0].as_str()?).ok()?;
    let remote: Vec<Value> = others
        .iter()
        .map(|other| reached(other, interface, address))
        .collect();
    let output = json!({ "remote_hosts": remote }).to_string();
    let reply = json!({ "step_type": "connectivity-check", "step_id": step["step_id"], "exit_code": 0, "error": "",
        "output": output });
    Some(reply.to_string().into_bytes())
}

fn reached(other: &Value, interface: &str, address: &str) -> Value {
    let nics = other["nics"].as_array().into_iter().flatten();
    let ways = nics.flat_map(|nic| {
        let addresses = nic["ip_addresses"].as_array().into_iter().flatten();
        addresses.filter_map(|ip| Some((nic["mac"].as_str()?, ip.as_str()?)))
    });
    let (mut frames, mut packets, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for (mac, ip) in ways {
        let ip = ip.split('/').next().unwrap_or(ip);
        frames.push(
            json!({ "outgoing_nic": interface, "outgoing_ip_address": address, "remote_ip_address": ip,
            "remote_mac": mac, "successful": true }),
        );
        packets.push(
            json!({ "outgoing_nic": interface, "remote_ip_address": ip, "successful": true,
            "average_rtt_ms": 0.3 }),
        );
        sizes.push(json!({ "outgoing_nic": interface, "remote_ip_address": ip, "mtu_successful": true }));
    }
    json!({ "host_id": other["host_id"], "l2_connectivity": frames, "l3_connectivity": packets, "mtu_report": sizes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_reaches_every_other_it_is_told_of() {
        let others = r#"[{"host_id":"b","nics":[{"name":"e0","mac":"m","ip_addresses":["10.0.0.2/8"]}]},
            {"host_id":"c","nics":[]}]"#;
        let work = json!({ "instructions": [
            { "step_type": "inventory", "step_id": "i", "args": [] },
            { "step_type": "connectivity-check", "step_id": "s", "args": [others] },
        ] });
        let said: Value = serde_json::from_slice(&reply(&work, "e1", "10.0.0.1").unwrap()).unwrap();
        assert_eq!(
            (said["step_id"].as_str(), said["exit_code"].as_i64()),
            (Some("s"), Some(0))
        );
        let output: Value = serde_json::from_str(said["output"].as_str().unwrap()).unwrap();
        let remote = output["remote_hosts"].as_array().unwrap();
        assert_eq!(remote.len(), 2);
        assert_eq!(remote[0]["l2_connectivity"][0]["remote_ip_address"], "10.0.0.2");
        assert_eq!(remote[0]["l3_connectivity"][0]["outgoing_nic"], "e1");
        assert_eq!(remote[1]["l2_connectivity"], json!([]));
    }

    #[test]
    fn a_host_that_is_told_of_nobody_has_nothing_to_say() {
        assert_eq!(reply(&json!({ "instructions": [] }), "e1", "10.0.0.1"), None);
    }
}
