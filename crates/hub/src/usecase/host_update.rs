//! A person changes what a host is called, what it becomes, and how it is installed.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need, Stored};
use crate::usecase::host_report::judge_disks;
use muster_contract::secret::HIDDEN;
use muster_contract::v2::host::{DiskRole, UpdateHost};
use muster_domain::host::{Decision, Host, Report, Role, disks, rules};
use muster_domain::input;
use muster_domain::inventory::Inventory;
use muster_domain::{HostKey, Refused, Severity};
use serde_json::json;
use std::sync::Arc;

pub async fn host_update(
    hub: &Hub,
    key: HostKey,
    change: &UpdateHost,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    check(change)?;
    hub.change_host(key, Need::Reports, opctx, |snapshot| decide(snapshot, change))
        .await
}

/// What can be judged without looking at the host.
fn check(change: &UpdateHost) -> Result<(), Error> {
    if let Some(name) = &change.host_name {
        input::name::hostname(name)?;
    }
    if let Some(labels) = &change.node_labels {
        input::node_label::node_labels(&pairs(labels))?;
    }
    if let Some(headers) = &change.ignition_endpoint_http_headers {
        input::ignition_endpoint::ignition_headers(&pairs(headers))?;
    }
    if let Some(token) = &change.ignition_endpoint_token {
        input::ignition_endpoint::ignition_token(&token.0)?;
    }
    if let Some(fencing) = &change.fencing_credentials {
        if fencing.password.0 == HIDDEN {
            return Err(input::Invalid::rule(
                "fencing_credentials.password",
                "is what is shown in place of a password",
                "give the password itself, or leave the credentials out to keep them",
            )
            .into());
        }
        input::fencing::fencing(&input::fencing::FencingCredentials {
            address: fencing.address.clone(),
            username: fencing.username.clone(),
            password: fencing.password.0.clone(),
            certificate_verification: fencing.certificate_verification.unwrap_or_default().into(),
            mac_address: fencing.mac_address.clone(),
        })?;
    }
    Ok(())
}

fn pairs(items: &[muster_contract::v2::host::KeyValue]) -> Vec<(String, String)> {
    items
        .iter()
        .map(|item| (item.key.clone(), item.value.clone()))
        .collect()
}

fn decide(snapshot: &HostSnapshot, change: &UpdateHost) -> Result<HostChange, Error> {
    let mut host = snapshot.host.clone();
    let mut inventory = snapshot
        .stored
        .get(&Report::Inventory)
        .and_then(|text| Inventory::parse(text).ok())
        .unwrap_or_default();
    apply(&mut host, change, &inventory)?;
    let open = host.role == Role::AutoAssign;
    if open && rules::has_role_for_good(&snapshot.host, snapshot.cluster.as_deref()) {
        (host.role, host.suggested_role) = (snapshot.host.role, snapshot.host.suggested_role);
    }
    if host == snapshot.host {
        return Ok(snapshot.plain(decision(host)));
    }
    rules::editable(&snapshot.host)?;
    let mut new = Stored::new();
    if host.role != snapshot.host.role && snapshot.stored.contains_key(&Report::Inventory) {
        // Another role needs another size of disk.
        judge_disks(snapshot, &mut host, &mut inventory);
        new.insert(Report::Inventory, inventory.to_json());
    }
    host.updated_at = snapshot.now;
    let mut decision = decision(host);
    if decision.host.role != snapshot.host.role {
        let text = format!(
            "Host {}: role is {} now.",
            decision.host.name(),
            decision.host.role.word()
        );
        decision
            .journal
            .push(decision.host.entry("host_role_updated", Severity::Info, text));
    }
    snapshot.measured(decision, new)
}

fn decision(host: Host) -> Decision {
    Decision {
        host,
        journal: Vec::new(),
        effects: Vec::new(),
        forget: Vec::new(),
        why: "changed by a person",
    }
}

fn apply(host: &mut Host, change: &UpdateHost, inventory: &Inventory) -> Result<(), Error> {
    let UpdateHost {
        host_role,
        host_name,
        disks_selected_config,
        disks_skip_formatting,
        machine_config_pool_name,
        ignition_endpoint_token,
        ignition_endpoint_http_headers,
        node_labels,
        fencing_credentials,
    } = change;
    if let Some(role) = host_role {
        host.role = *role;
        host.suggested_role = Some(host.role);
    }
    if let Some(name) = host_name {
        let name = Some(name.clone());
        if host.is_free() {
            host.requested_hostname = name
        } else {
            host.tenant.hostname = name
        }
    }
    if let Some(selected) = disks_selected_config {
        let install = selected
            .iter()
            .filter(|disk| disk.role == Some(DiskRole::Install));
        choose_disk(
            host,
            inventory,
            &install.map(|disk| disk.id.as_str()).collect::<Vec<_>>(),
        )?;
    }
    if let Some(skips) = disks_skip_formatting {
        let skips: Vec<_> = skips
            .iter()
            .map(|skip| (skip.disk_id.clone(), skip.skip_formatting))
            .collect();
        host.tenant.skip_formatting = disks::skip_list(&host.tenant.skip_formatting, &skips, inventory)
            .map_err(|disk| {
                input::Invalid::rule(
                    "disks_skip_formatting",
                    format!("names disk {disk}, which the host does not have"),
                    "use an id from the host's inventory",
                )
            })?;
    }
    if let Some(pool) = machine_config_pool_name {
        host.tenant.machine_config_pool.clone_from(pool);
    }
    if let Some(token) = ignition_endpoint_token {
        host.tenant.ignition_token.clone_from(&token.0);
    }
    if let Some(headers) = ignition_endpoint_http_headers {
        host.tenant.ignition_headers = pairs(headers);
    }
    if let Some(labels) = node_labels {
        host.tenant.node_labels = pairs(labels);
    }
    if let Some(fencing) = fencing_credentials {
        host.tenant.fencing = json!(fencing).to_string();
    }
    Ok(())
}

fn choose_disk(host: &mut Host, inventory: &Inventory, wanted: &[&str]) -> Result<(), Error> {
    let conflict = |code, reason, next| Err(Refused::conflict(code, reason, next).into());
    let [wanted] = wanted else {
        if wanted.is_empty() {
            return Ok(());
        }
        return conflict(
            "several-install-disks",
            "`disks_selected_config` chooses more than one disk to install to.".to_owned(),
            "Choose one.",
        );
    };
    let Some(disk) = disks::find(inventory, wanted).filter(|disk| disk.installation_eligibility.eligible)
    else {
        return conflict(
            "disk-not-eligible",
            format!(
                "{} has no disk {wanted} that the hub can install to.",
                host.name()
            ),
            "Choose one that its inventory marks as eligible.",
        );
    };
    disks::note(&mut host.tenant, Some(disk));
    host.tenant.disk_chosen = true;
    Ok(())
}

pub async fn installer_args(
    hub: &Hub,
    key: HostKey,
    args: &[String],
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    input::installer_args::installer_args(args)?;
    setting(
        hub,
        key,
        opctx,
        "host_installer_args_applied",
        "extra installer arguments",
        |host| {
            host.tenant.installer_args = args.to_vec();
        },
    )
    .await
}

pub async fn ignition_overrides(
    hub: &Hub,
    key: HostKey,
    config: &str,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    if !config.is_empty() {
        input::ignition::ignition("config", config)?;
    }
    setting(
        hub,
        key,
        opctx,
        "host_discovery_ignition_config_applied",
        "its own ignition",
        |host| {
            host.tenant.ignition_overrides = config.to_owned();
        },
    )
    .await
}

async fn setting(
    hub: &Hub,
    key: HostKey,
    opctx: &OpContext,
    event: &str,
    what: &str,
    apply: impl Fn(&mut Host),
) -> Result<Arc<Host>, Error> {
    hub.change_host(key, Need::Row, opctx, |snapshot| {
        let mut host = snapshot.host.clone();
        apply(&mut host);
        if host == snapshot.host {
            return Ok(snapshot.plain(decision(host)));
        }
        rules::editable(&snapshot.host)?;
        host.updated_at = snapshot.now;
        let mut decision = decision(host);
        let text = format!("Host {}: {what} changed.", decision.host.name());
        decision
            .journal
            .push(decision.host.entry(event, Severity::Info, text));
        Ok(snapshot.plain(decision))
    })
    .await
}
