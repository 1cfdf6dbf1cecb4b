//! What the object asks for and the hub does not have yet.

use super::{Call, Step, Sync, Then, inventory, is_day_two};
use crate::controller::agent::snapshot::Snapshot;
use crate::crd::Agent;
use crate::crd::agent::AgentSpec;
use crate::crd::keys::data;
use crate::key::Key;
use crate::runtime::secret::Found;
use muster_contract::Secret;
use muster_contract::v1::host::{ChangeHost, HostDetail, HostSetting};
use muster_contract::v2::agent::inventory::Disk;
use muster_contract::v2::host::{
    CertificateVerification, DiskRole, DiskSelection, FencingCredentials, KeyValue, UpdateHost,
};
use muster_domain::input::bounds::place;
use muster_vocabulary::{HostStatus, Role, Word};
use serde_json::json;
use std::collections::BTreeMap;

/// What is to be done about what the object asks for.
pub struct Settings {
    /// Come first, and also when something is wrong with the rest: only then does the operator notice a mended
    /// Secret.
    pub labels: Vec<Step>,
    pub calls: Result<Vec<Step>, Sync>,
    /// The operator cannot watch Secrets that are not there, so it polls for them.
    pub then: Then,
}

pub fn settings(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Settings {
    let calls = calls(snapshot, agent, row);
    let retry = match &calls {
        Ok(_) => Then::Rest,
        Err(sync) => sync.then(snapshot),
    };
    // Afterwards nobody reads them any more.
    let wanted = is_editable(&row.host.status) && lacks_secrets(snapshot, &agent.spec);
    let then = match wanted {
        true => retry.or(Then::After(snapshot.retry)),
        false => retry,
    };
    Settings {
        labels: labels(snapshot, &agent.spec),
        calls: calls.map(|calls| calls.into_iter().map(Step::Hub).collect()),
        then,
    }
}

fn calls(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Result<Vec<Call>, Sync> {
    let is_editable = is_editable(&row.host.status);
    let mut calls = Vec::new();
    let args = list("installerArgs", &agent.spec.installer_args)?;
    if is_editable {
        calls.extend(installing_with(args, agent, row));
    }
    calls.extend(any_time(agent, row));
    if is_editable {
        let (update, clear) = in_time(snapshot, agent, row)?;
        if update != UpdateHost::default() {
            calls.push(Call::Update(Box::new(update)));
        }
        if !clear.is_empty() {
            calls.push(Call::Change(ChangeHost {
                clear,
                ..ChangeHost::default()
            }));
        }
    }
    Ok(calls)
}

fn lacks_secrets(snapshot: &Snapshot, spec: &AgentSpec) -> bool {
    let token = spec.ignition_endpoint_token_reference.is_some() && snapshot.token.is_none();
    let fencing = !spec.fencing_credentials_secret_ref.is_empty() && snapshot.fencing.is_none();
    token || fencing
}

/// Before the installation begins.
fn is_editable(status: &Word<HostStatus>) -> bool {
    status.is(HostStatus::may_be_edited)
}

/// Secrets that are used are watched from now on, and part of backups.
fn labels(snapshot: &Snapshot, spec: &AgentSpec) -> Vec<Step> {
    let token = spec.ignition_endpoint_token_reference.as_ref().map(Key::from);
    let fencing = Key::new(&snapshot.key.namespace, &spec.fencing_credentials_secret_ref);
    let used = [(token, &snapshot.token), (Some(fencing), &snapshot.fencing)];
    let missing = used.into_iter().filter_map(|(key, found)| {
        let labels = found.as_ref().map(|found| found.missing_labels.clone())?;
        (!labels.is_empty()).then_some(Step::LabelSecret(key?, labels))
    });
    missing.collect()
}

fn installing_with(args: Vec<String>, agent: &Agent, row: &HostDetail) -> Vec<Call> {
    let spec = &agent.spec;
    let mut calls = Vec::new();
    if args != list("installerArgs", &row.host.installer_args).unwrap_or_default() {
        calls.push(Call::InstallerArgs(args));
    }
    if spec.ignition_config_overrides != row.host.ignition_config_overrides {
        calls.push(Call::Ignition(spec.ignition_config_overrides.clone()));
    }
    calls
}

/// Whoever has an Agent has somebody who follows its node.
fn any_time(agent: &Agent, row: &HostDetail) -> Option<Call> {
    let is_new = agent.spec.approved != row.approved || !row.followed;
    is_new.then(|| {
        Call::Change(ChangeHost {
            approved: Some(agent.spec.approved),
            followed: Some(true),
            clear: Vec::new(),
        })
    })
}

fn list(field: &str, text: &str) -> Result<Vec<String>, Sync> {
    match text {
        "" => Ok(Vec::new()),
        text => serde_json::from_str(text).map_err(|error| {
            Sync::Input(format!(
                "{field} is not a JSON list of strings: {}.",
                place(&error)
            ))
        }),
    }
}

fn in_time(
    snapshot: &Snapshot,
    agent: &Agent,
    row: &HostDetail,
) -> Result<(UpdateHost, Vec<HostSetting>), Sync> {
    let (spec, host) = (&agent.spec, &row.host);
    let mut clear = Vec::new();
    let given = |wanted: &str, now: &str| (!wanted.is_empty() && wanted != now).then(|| wanted.to_owned());
    if spec.hostname.is_empty() && !row.given_name.is_empty() {
        clear.push(HostSetting::Hostname);
    }
    // The pool of its role is what a host joins anyway.
    let pool = host.machine_config_pool_name.as_str();
    let is_of_role = match Role::from_word(pool) {
        Some(Role::Master | Role::Arbiter | Role::Worker) => true,
        Some(Role::AutoAssign) | None => pool.is_empty(),
    };
    if spec.machine_config_pool.is_empty() && !is_of_role {
        clear.push(HostSetting::MachineConfigPool);
    }
    if spec.fencing_credentials_secret_ref.is_empty() && !host.fencing_credentials.is_empty() {
        clear.push(HostSetting::Fencing);
    }
    // What the hub chose by itself stays.
    if spec.installation_disk_id.is_empty() && spec.installation_disk_path.is_empty() && row.disk_chosen {
        clear.push(HostSetting::InstallationDisk);
    }
    let update = UpdateHost {
        host_role: role(spec, row)?,
        host_name: given(&spec.hostname, &row.given_name),
        disks_selected_config: disk(spec, row)?,
        disks_skip_formatting: None,
        machine_config_pool_name: given(&spec.machine_config_pool, pool),
        ignition_endpoint_token: token(snapshot, spec, row)?.map(Into::into),
        ignition_endpoint_http_headers: headers(snapshot, spec, row),
        node_labels: node_labels(spec, row),
        fencing_credentials: fencing(snapshot, spec, row)?,
    };
    Ok((update, clear))
}

/// An empty role leaves the choice to the hub, also after a person had made it. What the hub itself decided for hosts of
/// running clusters and of single-node ones stays.
fn role(spec: &AgentSpec, row: &HostDetail) -> Result<Option<Role>, Sync> {
    let now = &row.host.role;
    let wanted = match spec.role.as_str() {
        "" if is_day_two(row) || row.host.bootstrap || now.is_empty() => return Ok(None),
        "" => Role::AutoAssign,
        word => word
            .parse::<Role>()
            .map_err(|error| Sync::Input(format!("role {error}.")))?,
    };
    Ok((*now != wanted).then_some(wanted))
}

/// By id or by path. What the host does not have is never replaced by something else that it has.
fn disk(spec: &AgentSpec, row: &HostDetail) -> Result<Option<Vec<DiskSelection>>, Sync> {
    let wanted = [&spec.installation_disk_path, &spec.installation_disk_id];
    let Some(wanted) = wanted.into_iter().find(|wanted| !wanted.is_empty()) else {
        return Ok(None);
    };
    // While the host is handed over nobody knows its disks.
    let Some(inventory) = inventory::parse(row).map_err(Sync::Backend)? else {
        return Ok(None);
    };
    let Some(disk) = inventory.disks.iter().find(|disk| is_called(disk, wanted)) else {
        return Err(Sync::Input(format!("The host has no disk {wanted}.")));
    };
    if !disk.installation_eligibility.eligible {
        let why = disk.installation_eligibility.not_eligible_reasons.join("; ");
        return Err(Sync::Input(format!(
            "Muster cannot install to disk {wanted}: {why}."
        )));
    }
    let now = row.host.installation_disk_id.as_str();
    if !now.is_empty() && is_called(disk, now) {
        return Ok(None);
    }
    Ok(Some(vec![DiskSelection {
        id: wanted.clone(),
        role: Some(DiskRole::Install),
    }]))
}

fn is_called(disk: &Disk, name: &str) -> bool {
    let device = format!("/dev/{}", disk.name);
    let names = [&disk.id, &disk.by_path, &disk.by_id, &disk.path, &device];
    !name.is_empty() && names.into_iter().any(|known| known == name)
}

/// Empty clears it.
fn token(snapshot: &Snapshot, spec: &AgentSpec, row: &HostDetail) -> Result<Option<String>, Sync> {
    let Some(reference) = &spec.ignition_endpoint_token_reference else {
        return Ok(row.host.ignition_endpoint_token_set.then(String::new));
    };
    let key = Key::from(reference);
    let value = value(snapshot.token.as_ref(), &key, data::IGNITION_TOKEN)?;
    let known = row.host.ignition_endpoint_token_set && snapshot.token_is_known;
    Ok((!known).then(|| value.to_owned()))
}

fn value<'a>(found: Option<&'a Found>, key: &Key, name: &str) -> Result<&'a str, Sync> {
    let found = found.ok_or_else(|| Sync::Backend(format!("There is no Secret {key}.")))?;
    found
        .value(name)
        .ok_or_else(|| Sync::Backend(format!("Secret {key} has no key {name:?}.")))
}

/// What is remembered of headers, which the hub does not show.
pub fn headers_text(spec: &AgentSpec) -> String {
    json!(spec.ignition_endpoint_http_headers).to_string()
}

fn headers(snapshot: &Snapshot, spec: &AgentSpec, row: &HostDetail) -> Option<Vec<KeyValue>> {
    let wanted = &spec.ignition_endpoint_http_headers;
    let known = match wanted.is_empty() {
        true => !row.ignition_headers_set,
        false => row.ignition_headers_set && snapshot.headers_are_known,
    };
    (!known).then(|| pairs(wanted))
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<KeyValue> {
    let pair = |(key, value): (&String, &String)| KeyValue {
        key: key.clone(),
        value: value.clone(),
    };
    map.iter().map(pair).collect()
}

fn node_labels(spec: &AgentSpec, row: &HostDetail) -> Option<Vec<KeyValue>> {
    let now: BTreeMap<String, String> = serde_json::from_str(&row.host.node_labels).unwrap_or_default();
    (now != spec.node_labels).then(|| pairs(&spec.node_labels))
}

fn fencing(
    snapshot: &Snapshot,
    spec: &AgentSpec,
    row: &HostDetail,
) -> Result<Option<FencingCredentials>, Sync> {
    if spec.fencing_credentials_secret_ref.is_empty() {
        return Ok(None);
    }
    let key = Key::new(&snapshot.key.namespace, &spec.fencing_credentials_secret_ref);
    let part = |name: &str| value(snapshot.fencing.as_ref(), &key, name).map(str::to_owned);
    let verification = snapshot
        .fencing
        .as_ref()
        .and_then(|found| found.value(data::CERTIFICATE_VERIFICATION));
    let verification = verification
        .map(str::parse::<CertificateVerification>)
        .transpose();
    let wanted = FencingCredentials {
        address: part(data::ADDRESS)?,
        username: part(data::USERNAME)?,
        password: part(data::PASSWORD)?.into(),
        certificate_verification: verification.map_err(|error| {
            Sync::Input(format!(
                "{} in Secret {key} {error}.",
                data::CERTIFICATE_VERIFICATION
            ))
        })?,
        mac_address: None,
    };
    let shown = FencingCredentials {
        password: Secret::hidden(),
        ..wanted.clone()
    };
    let now: Option<FencingCredentials> = serde_json::from_str(&row.host.fencing_credentials).ok();
    let known = now.as_ref() == Some(&shown) && snapshot.fencing_is_known;
    Ok((!known).then_some(wanted))
}

/// What is remembered of credentials, whose password the hub does not show.
pub fn fencing_text(found: &Found) -> String {
    let parts = [
        data::ADDRESS,
        data::USERNAME,
        data::PASSWORD,
        data::CERTIFICATE_VERIFICATION,
    ];
    json!(parts.map(|part| found.value(part))).to_string()
}
