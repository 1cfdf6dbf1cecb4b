//! Tells a newcomer what the simulated hosts do: one line whenever a host shows up or changes its status.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

/// What was last said about each host.
pub struct Arrivals {
    url: String,
    infra_env: String,
    seen: BTreeMap<String, String>,
}

impl Arrivals {
    pub fn of(url: &str, infra_env: &str) -> Self {
        Self {
            url: url.to_owned(),
            infra_env: infra_env.to_owned(),
            seen: BTreeMap::new(),
        }
    }

    /// One line for each host whose status is new.
    pub fn news(&mut self) -> Result<Vec<String>> {
        let hosts = super::hosts(&self.url, &self.infra_env)?;
        Ok(hosts.iter().filter_map(|host| self.note(host)).collect())
    }

    /// How many hosts have reported their hardware: free and ready, lacking something, or already lent to a cluster.
    pub fn settled(&self) -> usize {
        self.seen
            .values()
            .filter(|status| !status.starts_with("discovering"))
            .count()
    }

    fn note(&mut self, host: &Value) -> Option<String> {
        let id = host["id"].as_str()?;
        let status = host["status"].as_str()?;
        let before = self.seen.insert(id.to_owned(), status.to_owned());
        let name = host["requested_hostname"]
            .as_str()
            .filter(|name| !name.is_empty())
            .unwrap_or(id);
        match before {
            Some(before) if before == status => None,
            Some(before) => Some(format!("host {name}: {before} -> {status}")),
            None => Some(format!("host {name} arrived: {status}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_host_is_mentioned_when_it_arrives_and_when_it_changes_and_not_otherwise() {
        let mut arrivals = Arrivals::of("http://127.0.0.1:1", "e");
        let host = |status| json!({ "id": "h1", "requested_hostname": "rack1-u2", "status": status });
        assert_eq!(
            arrivals.note(&host("discovering-unbound")).as_deref(),
            Some("host rack1-u2 arrived: discovering-unbound")
        );
        assert_eq!(arrivals.note(&host("discovering-unbound")), None);
        assert_eq!(arrivals.settled(), 0);
        let changed = arrivals.note(&host("known-unbound"));
        assert_eq!(
            changed.as_deref(),
            Some("host rack1-u2: discovering-unbound -> known-unbound")
        );
        assert_eq!(arrivals.settled(), 1);
    }
}
