//! How much of anything an input may hold: one table for what people send, one for what agents report, and one walk
//! over a decoded body that reads every list, map and text in it, known to the tables or not.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{Checked, Invalid, quoted};

/// The most of one field: entries of a list, characters of a text.
type Bound = (&'static str, usize);

/// Names, versions, addresses, domains: what people type.
const SHORT: usize = 1024;
/// Texts that are put together: lists in a text, PEM, properties.
const LONG: usize = 64 * 1024;
/// Beyond any network plan; every pair of networks of a cluster is a possible mistake.
const NETWORKS: usize = 256;
/// Servers on a SAN see each volume on each path.
const DISKS: usize = 4096;
/// Nodes with hundreds of pods have two interfaces for each.
const INTERFACES: usize = 4096;
/// Hosts that one image knows or one host asks.
const HOSTS: usize = 4096;
/// Arguments, labels, headers, time sources: what one host or cluster gets.
const SETTINGS: usize = 256;
/// Disks that were tried, or images: what a host's reports add up to.
pub const RESULTS: usize = DISKS;
/// Keys of an object: typed ones have dozens.
const KEYS: usize = 1024;
/// The text of an Ignition config; [`super::ignition`] says why.
const IGNITION: usize = super::ignition::TEXT_MAX;

/// Lists in requests.
const LISTS: &[Bound] = &[
    ("api_vips", 16),
    ("args", SETTINGS),
    ("clear", 16),
    ("cluster_networks", NETWORKS),
    ("disks_selected_config", DISKS),
    ("disks_skip_formatting", DISKS),
    ("ignition_endpoint_http_headers", SETTINGS),
    ("ingress_vips", 16),
    ("kernel_arguments", SETTINGS),
    ("mac_interface_map", INTERFACES),
    ("machine_networks", NETWORKS),
    ("node_labels", SETTINGS),
    ("olm_operators", SETTINGS),
    ("operator_bundles", SETTINGS),
    ("optional_operators", SETTINGS),
    ("service_networks", NETWORKS),
    ("static_network_config", HOSTS),
];

/// Texts in requests. An entry of a list of texts has the name of the list; a body that is a text has none.
const TEXTS: &[Bound] = &[
    ("", 1024 * 1024),
    ("additional_ntp_source", LONG),
    ("additional_ntp_sources", LONG),
    ("additional_trust_bundle", super::trust_bundle::LONGEST),
    ("address", SHORT),
    ("api_vip_dns_name", SHORT),
    ("api_vip_dnsname", SHORT),
    ("args", SHORT),
    ("base_dns_domain", SHORT),
    ("ca_certificate", 2 * LONG),
    ("cidr", SHORT),
    ("cluster-validation-ids", LONG),
    ("cluster_network_cidr", SHORT),
    ("config", IGNITION),
    // A little more than base64 of the largest manifest, which is measured when it is decoded.
    ("content", 2 * super::manifest::CONTENT_MAX),
    ("discovery_agent_version", SHORT),
    ("disk_id", SHORT),
    // What a step wrote before it failed.
    ("error", 1024 * 1024),
    ("error_info", LONG),
    ("file_name", SHORT),
    ("host-validation-ids", LONG),
    ("host_name", SHORT),
    ("http_proxy", SHORT),
    ("https_proxy", SHORT),
    ("id", SHORT),
    ("ignition_config_override", IGNITION),
    ("ignition_endpoint_token", LONG),
    ("ip", SHORT),
    ("key", SHORT),
    ("logical_nic_name", SHORT),
    ("mac_address", SHORT),
    ("machine_config_pool_name", SHORT),
    ("machine_network_cidr", SHORT),
    ("message", LONG),
    ("name", SHORT),
    ("network_yaml", 4 * LONG),
    ("no_proxy", LONG),
    ("ntp_sources", LONG),
    ("ocp_release_image", SHORT),
    ("openshift_version", SHORT),
    ("optional_operators", SHORT),
    ("os_stream", SHORT),
    // The inventory of a large server has some hundred KiB.
    ("output", 8 * 1024 * 1024),
    ("password", SHORT),
    ("platform_name", SHORT),
    ("progress_info", LONG),
    ("properties", LONG),
    ("props", LONG),
    ("pull_secret", 4 * LONG),
    ("rendezvous_ip", SHORT),
    ("service_network_cidr", SHORT),
    ("ssh_authorized_key", LONG),
    ("ssh_public_key", LONG),
    ("status_info", LONG),
    ("step_id", SHORT),
    ("tags", LONG),
    ("tang_servers", LONG),
    ("updated_content", 2 * super::manifest::CONTENT_MAX),
    ("updated_file_name", SHORT),
    ("url", 4 * SHORT),
    ("username", SHORT),
    ("value", 4 * SHORT),
    ("version", SHORT),
];

/// Lists in what agents report.
const REPORTED_LISTS: &[Bound] = &[
    // A report that is itself a list: one entry for each network or address that was asked for.
    ("", SETTINGS),
    ("cnames", SETTINGS),
    ("disks", DISKS),
    ("flags", 1024),
    // The networks that hosts are asked about have at most that many.
    ("free_addresses", 64 * 1024),
    ("gpus", SETTINGS),
    ("images", SETTINGS),
    ("interfaces", INTERFACES),
    ("ipv4_addresses", SETTINGS),
    ("ipv6_addresses", SETTINGS),
    ("l2_connectivity", 4 * INTERFACES),
    ("l3_connectivity", 4 * INTERFACES),
    ("mtu_report", 4 * INTERFACES),
    ("not_eligible_reasons", SETTINGS),
    ("ntp_sources", SETTINGS),
    ("reasons", SETTINGS),
    ("remote_hosts", HOSTS),
    ("resolutions", SETTINGS),
    ("routes", 16 * 1024),
    ("signatures", SETTINGS),
    ("tang_server_response", SETTINGS),
];

/// Texts in what agents report that are longer than the others.
const REPORTED_TEXTS: &[Bound] = &[
    ("ignition", IGNITION),
    ("payload", LONG),
    ("protected", LONG),
    // What smartctl says about a disk.
    ("smart", 4 * LONG),
];

/// What is in no table: fields that newer clients and agents send, before somebody gives them a bound of their own.
const OTHER_LIST: usize = SETTINGS;
const OTHER_TEXT: usize = LONG;
const OTHER_REPORTED_LIST: usize = 4096;
const OTHER_REPORTED_TEXT: usize = 16 * 1024;

/// The most entries that a list of this name may have in a request, if it has a bound of its own.
pub fn list_in_request(name: &str) -> Option<usize> {
    most(LISTS, name)
}

/// The most characters that a text of this name may have in a request, if it has a bound of its own.
pub fn text_in_request(name: &str) -> Option<usize> {
    most(TEXTS, name)
}

fn most(table: &[Bound], name: &str) -> Option<usize> {
    table
        .iter()
        .find(|(field, _)| *field == name)
        .map(|(_, most)| *most)
}

/// Judges a request body before anything is made of it. Reads each value once.
pub fn request(body: &Value) -> Checked {
    Walk {
        list: |name| list_in_request(name).unwrap_or(OTHER_LIST),
        text: |name| text_in_request(name).unwrap_or(OTHER_TEXT),
    }
    .value(&Place::Body, body)
}

/// Judges what an agent found out. Nobody can mend what a firmware says about itself, so zeros in it are dropped.
pub fn report(body: &mut Value) -> Checked {
    drop_zeros(body);
    Walk {
        list: |name| most(REPORTED_LISTS, name).unwrap_or(OTHER_REPORTED_LIST),
        text: |name| most(REPORTED_TEXTS, name).unwrap_or(OTHER_REPORTED_TEXT),
    }
    .value(&Place::Body, body)
}

/// Reads what an agent found out.
pub fn reported<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut body: Value = serde_json::from_str(text).map_err(|error| place(&error))?;
    report(&mut body).map_err(|invalid| invalid.to_string())?;
    serde_json::from_value(body).map_err(|_| match serde_json::from_str::<T>(text) {
        Err(error) => place(&error),
        Ok(_) => "it is not what it should be".into(),
    })
}

/// The reader's own words may repeat the value.
pub fn place(error: &serde_json::Error) -> String {
    format!(
        "it goes wrong at line {}, column {}",
        error.line(),
        error.column()
    )
}

/// Databases and programs take a zero for the end of a text, each in its own way: no text has one.
pub fn no_zero(field: &str, text: &str) -> Checked {
    if !text.contains('\0') {
        return Ok(());
    }
    Err(Invalid::schema(
        field,
        "has a zero character",
        "leave it out, texts end without one",
    ))
}

pub fn drop_zeros(body: &mut Value) {
    match body {
        // Looking for one costs a fraction of copying without it.
        Value::String(text) if text.contains('\0') => text.retain(|c| c != '\0'),
        Value::String(_) => {}
        Value::Array(items) => items.iter_mut().for_each(drop_zeros),
        Value::Object(fields) => fields.values_mut().for_each(drop_zeros),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

struct Walk {
    list: fn(&str) -> usize,
    text: fn(&str) -> usize,
}

impl Walk {
    fn value(&self, place: &Place<'_>, value: &Value) -> Checked {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
            Value::String(text) => self.string(place, text),
            Value::Array(items) => self.array(place, items),
            Value::Object(fields) => self.object(place, fields),
        }
    }

    fn string(&self, place: &Place<'_>, text: &str) -> Checked {
        let most = (self.text)(place.name());
        // The name of the place is made only when it is needed.
        if text.len() <= most && !text.contains('\0') {
            return Ok(());
        }
        let field = place.to_string();
        no_zero(&field, text)?;
        within(&field, text, most)
    }

    fn array(&self, place: &Place<'_>, items: &[Value]) -> Checked {
        let most = (self.list)(place.name());
        if items.len() > most {
            return Err(too_many(place, items.len(), "entries", most));
        }
        for (at, item) in items.iter().enumerate() {
            self.value(&Place::Item(place, at), item)?;
        }
        Ok(())
    }

    fn object(&self, place: &Place<'_>, fields: &serde_json::Map<String, Value>) -> Checked {
        if fields.len() > KEYS {
            return Err(too_many(place, fields.len(), "fields", KEYS));
        }
        for (name, value) in fields {
            if name.len() > SHORT || name.contains('\0') {
                return Err(Invalid::schema(
                    place.to_string(),
                    format!("has a field of the impossible name {}", quoted(name)),
                    "use the names of the API's description",
                ));
            }
            self.value(&Place::Field(place, name), value)?;
        }
        Ok(())
    }
}

fn too_many(place: &Place<'_>, count: usize, what: &str, most: usize) -> Invalid {
    Invalid::schema(
        place.to_string(),
        format!("has {count} {what}"),
        format!("give at most {most}"),
    )
}

fn within(field: &str, text: &str, most: usize) -> Checked {
    if text.len() <= most {
        return Ok(());
    }
    super::schema::length(field, text, 0, most)
}

/// Where a value stands, from the inside out: texts are made of it for refusals only.
enum Place<'a> {
    Body,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// The nearest name; entries have that of their list.
    fn name(&self) -> &str {
        match self {
            Place::Body => "",
            Place::Field(_, name) => name,
            Place::Item(list, _) => list.name(),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outer, own): (_, &dyn fmt::Display) = match self {
            Place::Body => return f.write_str("body"),
            Place::Field(outer, name) => (outer, name),
            Place::Item(outer, at) => (outer, at),
        };
        match outer {
            Place::Body => write!(f, "{own}"),
            outer => write!(f, "{outer}.{own}"),
        }
    }
}
