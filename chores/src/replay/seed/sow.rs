//! Brings a hub into the state a recording starts from, by the requests users and agents would send.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::super::client::{Client, Reply};
use super::super::ids::IdMap;
use super::super::mask::inside;
use super::super::recording::{BASE, Recording, word};
use super::plan::{HostSeed, Plan, Start};

/// The inventory of a machine that every hub lets into a cluster, for hosts whose own is not recorded.
const SAMPLE: &str = include_str!("sample_inventory.json");
const AGENT: &str = "quay.io/edge-infrastructure/assisted-installer-agent:latest";
/// "user:password" for two registries; nothing is ever pulled with it.
const PULL_SECRET: &str = r#"{"auths":{"cloud.openshift.com":{"auth":"dXNlcjpwYXNzd29yZAo=","email":"dummy@example.com"},"quay.io":{"auth":"dXNlcjpwYXNzd29yZAo=","email":"dummy@example.com"}}}"#;

pub fn sow(recording: &Recording, client: &Client, ids: &mut IdMap) -> Result<()> {
    let plan = Plan::of(recording);
    let mut sower = Sower { client, ids };
    for view in &plan.clusters {
        sower
            .cluster(view)
            .with_context(|| format!("cluster {}", word(view, "name")))?;
    }
    for view in &plan.infra_envs {
        sower
            .infra_env(view)
            .with_context(|| format!("infra-env {}", word(view, "name")))?;
    }
    for host in &plan.hosts {
        sower
            .host(host)
            .with_context(|| format!("host {}", word(&host.view, "id")))?;
    }
    Ok(())
}

struct Sower<'a> {
    client: &'a Client,
    ids: &'a mut IdMap,
}

impl Sower<'_> {
    fn cluster(&mut self, view: &Map<String, Value>) -> Result<()> {
        if word(view, "kind") == "AddHostsCluster" {
            let name = word(view, "name");
            let domain = Some(word(view, "base_dns_domain")).filter(|domain| !domain.is_empty());
            let api = format!("api.{name}.{}", domain.unwrap_or("example.com"));
            let body =
                json!({ "name": name, "api_vip_dnsname": api, "openshift_cluster_id": word(view, "id") });
            return self.create("/clusters/import", &body, view);
        }
        let mut body = kept(
            view,
            &[
                "name",
                "base_dns_domain",
                "ssh_public_key",
                "control_plane_count",
                "high_availability_mode",
                "cpu_architecture",
                "network_type",
                "hyperthreading",
                "tags",
            ],
        );
        body.insert("pull_secret".into(), json!(PULL_SECRET));
        body.insert(
            "openshift_version".into(),
            json!(minor(word(view, "openshift_version"))),
        );
        for flag in [
            "user_managed_networking",
            "vip_dhcp_allocation",
            "schedulable_masters",
        ] {
            if view.get(flag) == Some(&Value::Bool(true)) {
                body.insert(flag.into(), json!(true));
            }
        }
        for vips in ["api_vips", "ingress_vips"] {
            let given = view
                .get(vips)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            if !given.is_empty() {
                let addresses: Vec<Value> = given.iter().map(|vip| json!({ "ip": vip["ip"] })).collect();
                body.insert(vips.into(), json!(addresses));
            }
        }
        self.create("/clusters", &Value::Object(body), view)
    }

    fn infra_env(&mut self, view: &Map<String, Value>) -> Result<()> {
        let mut body = kept(
            view,
            &[
                "name",
                "ssh_authorized_key",
                "cpu_architecture",
                "cluster_id",
                "proxy",
            ],
        );
        body.insert("pull_secret".into(), json!(PULL_SECRET));
        body.insert(
            "openshift_version".into(),
            json!(minor(word(view, "openshift_version"))),
        );
        if let Some(kind) = view.get("type") {
            body.insert("image_type".into(), kind.clone());
        }
        self.create("/infra-envs", &Value::Object(body), view)
    }

    fn create(&mut self, route: &str, body: &Value, view: &Map<String, Value>) -> Result<()> {
        let reply = self.send("POST", route, Some(body), &[201])?;
        let ours = reply.body();
        let id = ours
            .get("id")
            .and_then(Value::as_str)
            .context("the answer has no id")?;
        self.ids.insert(word(view, "id"), id);
        Ok(())
    }

    fn host(&mut self, host: &HostSeed) -> Result<()> {
        let HostSeed { view, start } = host;
        let hosts = format!("/infra-envs/{}/hosts", word(view, "infra_env_id"));
        let one = format!("{hosts}/{}", word(view, "id"));
        self.ids.keep(word(view, "id"));
        let registered = self.register(&hosts, view)?;
        if *start == Start::Registered {
            return Ok(());
        }
        // An infra-env with a cluster has bound it already.
        let early = registered.body().get("cluster_id").is_some();
        self.report(&one, view)?;
        self.settings(&one, view)?;
        if *start == Start::Reported || early {
            return Ok(());
        }
        let bind = json!({ "cluster_id": word(view, "cluster_id") });
        self.send("POST", &format!("{one}/actions/bind"), Some(&bind), &[200])?;
        if *start == Start::Binding {
            return Ok(());
        }
        self.send("GET", &format!("{one}/instructions"), None, &[200])?;
        self.register(&hosts, view)?;
        if *start == Start::Rejoined {
            return Ok(());
        }
        self.report(&one, view)?;
        if *start == Start::Unbinding {
            self.send("POST", &format!("{one}/actions/unbind"), None, &[200])?;
        }
        Ok(())
    }

    fn register(&mut self, hosts: &str, view: &Map<String, Value>) -> Result<Reply> {
        let version = Some(word(view, "discovery_agent_version")).filter(|version| !version.is_empty());
        let body =
            json!({ "host_id": word(view, "id"), "discovery_agent_version": version.unwrap_or(AGENT) });
        self.send("POST", hosts, Some(&body), &[201])
    }

    /// The reports whose results the view shows.
    fn report(&mut self, one: &str, view: &Map<String, Value>) -> Result<()> {
        self.send("GET", &format!("{one}/instructions"), None, &[200])?;
        let inventory = Some(word(view, "inventory")).filter(|text| !text.is_empty());
        let mut replies = vec![(
            "inventory",
            inventory.map_or_else(|| sample(word(view, "id")), str::to_owned),
        )];
        if let Some(sources) = inside(word(view, "ntp_sources")) {
            replies.push(("ntp-synchronizer", json!({ "ntp_sources": sources }).to_string()));
        }
        if inside(word(view, "domain_name_resolutions")).is_some() {
            replies.push((
                "domain-resolution",
                word(view, "domain_name_resolutions").to_owned(),
            ));
        }
        for (step, output) in replies {
            let body = json!({
                "step_type": step,
                "step_id": format!("{step}-5eed5eed"),
                "exit_code": 0,
                "output": output,
                "error": "",
            });
            self.send("POST", &format!("{one}/instructions"), Some(&body), &[204])?;
        }
        Ok(())
    }

    fn settings(&mut self, one: &str, view: &Map<String, Value>) -> Result<()> {
        let mut body = Map::new();
        let reported = inside(word(view, "inventory")).unwrap_or_default();
        let name = word(view, "requested_hostname");
        if !name.is_empty() && name != word(view, "id") && reported["hostname"] != json!(name) {
            body.insert("host_name".into(), json!(name));
        }
        if !["", "auto-assign"].contains(&word(view, "role")) {
            body.insert("host_role".into(), view["role"].clone());
        }
        if body.is_empty() {
            return Ok(());
        }
        self.send("PATCH", one, Some(&Value::Object(body)), &[201])
            .map(drop)
    }

    fn send(&mut self, method: &str, route: &str, body: Option<&Value>, good: &[u16]) -> Result<Reply> {
        let mut headers = BTreeMap::from([("User-Agent".to_owned(), "seed".to_owned())]);
        headers.extend(body.map(|_| ("Content-Type".to_owned(), "application/json".to_owned())));
        let path = self.ids.to_ours(&format!("{BASE}{route}"));
        let body = body.map(|body| self.ids.to_ours(&body.to_string()));
        let reply = self.client.send(method, &path, &headers, body.as_deref());
        if !good.contains(&reply.status) {
            bail!("{method} {path} is answered {} {}", reply.status, reply.text);
        }
        Ok(reply)
    }
}

/// The sample, made a machine of its own by the end of the host's id.
fn sample(host: &str) -> String {
    let tail: String = host.chars().filter(char::is_ascii_hexdigit).skip(28).collect();
    let number = u16::from_str_radix(&tail, 16).unwrap_or_default();
    let mut inventory: Value = serde_json::from_str(SAMPLE).unwrap_or_default();
    inventory["hostname"] = json!(format!("seed-{tail}"));
    inventory["interfaces"][0]["mac_address"] =
        json!(format!("52:54:00:5e:{:02x}:{:02x}", number >> 8, number & 255));
    inventory["interfaces"][0]["ipv4_addresses"] = json!([format!("192.168.111.{}/24", number % 200 + 20)]);
    inventory.to_string()
}

fn kept(view: &Map<String, Value>, keys: &[&str]) -> Map<String, Value> {
    keys.iter()
        .filter_map(|key| Some(((*key).to_owned(), view.get(*key)?.clone())))
        .collect()
}

/// Views show the exact release; users ask for the minor version.
fn minor(version: &str) -> String {
    let parts: Vec<&str> = version.split('.').take(2).collect();
    if version.is_empty() {
        "4.20".to_owned()
    } else {
        parts.join(".")
    }
}
