//! Turns a host's orders into the steps its agent understands, with their arguments.

use crate::Hub;
use crate::index::Slot;
use crate::shared_facts::SharedFacts;
use jiff::Timestamp;
use muster_contract::v2::step::{PostStepAction, StepView, StepsView};
use muster_domain::cluster::Cluster;
use muster_domain::host::install_order::{self, Ingredients, InstallOrder, ReleaseImages, System};
use muster_domain::host::steps::{Orders, Step, orders};
use muster_domain::host::{Host, Outcome, Role, Status};
use muster_domain::image_name::same_image;
use muster_domain::infra_env::InfraEnv;
use muster_vocabulary::{DiskEncryptionMode, VipType};
use serde_json::json;
use std::sync::Arc;

/// In larger clusters hosts take turns: a full mesh every minute would drown the network.
const CONNECTIVITY_HOSTS_PER_MINUTE: usize = 150;

pub fn of(hub: &Hub, slot: &Slot, host: &Host, now: Timestamp) -> StepsView {
    if let Some(upgrade) = upgrade(hub, slot, host, now) {
        return upgrade;
    }
    let cluster = host.cluster.and_then(|id| hub.index.cluster(id));
    let shared = host.cluster.and_then(|id| hub.shared_facts.of(id));
    let desk = Desk {
        hub,
        slot,
        host,
        cluster,
        shared,
        now,
    };
    desk.write(orders(host))
}

/// For an agent whose host is gone: stop what it may still write, end, and register again.
pub fn start_over() -> StepsView {
    let orders = muster_domain::host::steps::GONE;
    let steps = orders.steps.iter().map(|step| view(*step, Vec::new()));
    StepsView {
        next_instruction_seconds: orders.next_poll_seconds,
        post_step_action: PostStepAction::Exit,
        instructions: Some(steps.collect()),
    }
}

impl Hub {
    /// Images every host of the cluster must be able to pull before it is installed.
    pub fn wanted_images(&self, cluster: &Cluster) -> Vec<String> {
        // A test that nobody is asked to run cannot be waited for.
        if self
            .settings
            .disabled_steps
            .contains(Step::ContainerImageAvailability.word())
        {
            return Vec::new();
        }
        let release = ReleaseImages::of(&self.settings.catalog, cluster);
        install_order::wanted_images(cluster, &self.settings.images, release)
    }

    /// Whether the host's disk is measured before it is installed.
    pub fn skips_disk_speed(&self, host: &Host) -> bool {
        self.settings
            .disabled_steps
            .contains(Step::InstallationDiskSpeedCheck.word())
            || install_order::skips_disk_speed(host)
    }

    /// What people should know about the operating system that a host would be installed with.
    pub fn system_warning(&self, host: &Host, cluster: &Cluster) -> Option<String> {
        let pool = self.index.infra_env(host.infra_env)?;
        match System::of(host, &self.ingredients(cluster, &pool)) {
            System::Unnamed(warning) => Some(warning),
            System::Running | System::Other(_) => None,
        }
    }

    fn ingredients<'a>(&'a self, cluster: &'a Cluster, pool: &'a InfraEnv) -> Ingredients<'a> {
        Ingredients {
            cluster,
            pool,
            images: &self.settings.images,
            release: ReleaseImages::of(&self.settings.catalog, cluster),
            catalog: &self.settings.catalog,
        }
    }
}

struct Desk<'a> {
    hub: &'a Hub,
    slot: &'a Slot,
    host: &'a Host,
    cluster: Option<Arc<Cluster>>,
    shared: Option<Arc<SharedFacts>>,
    now: Timestamp,
}

impl Desk<'_> {
    fn write(&self, orders: Orders) -> StepsView {
        let steps: Vec<_> = orders
            .steps
            .iter()
            .filter(|step| !self.hub.settings.disabled_steps.contains(step.word()))
            .filter_map(|step| {
                let args = self.args(*step)?;
                let outstanding = &self.slot.live.outstanding;
                outstanding
                    .hand_out(*step, &args, self.now)
                    .then(|| view(*step, args))
            })
            .collect();
        StepsView {
            next_instruction_seconds: orders
                .next_poll_seconds
                .min(self.hub.settings.longest_poll_seconds),
            post_step_action: orders.after,
            instructions: (!steps.is_empty()).then_some(steps),
        }
    }

    /// `None`: there is nothing to ask, and the step is left out.
    fn args(&self, step: Step) -> Option<Vec<String>> {
        let one = |value: serde_json::Value| Some(vec![value.to_string()]);
        match step {
            Step::Inventory => Some(vec![self.host.id.to_string()]),
            Step::NtpSynchronizer => one(json!({ "ntp_source": self.ntp_sources() })),
            Step::ConnectivityCheck => self.connectivity(),
            Step::FreeNetworkAddresses => {
                let networks = &self.shared.as_ref()?.networks;
                (!networks.is_empty()).then(|| vec![json!(networks).to_string()])
            }
            Step::DomainResolution => self.domains(),
            Step::VerifyVips => self.vips(),
            Step::ApiVipConnectivityCheck => self.api_vip(),
            Step::TangConnectivityCheck => {
                let encryption = &self.cluster.as_ref()?.disk_encryption;
                if encryption.mode == DiskEncryptionMode::Tang && encryption.is_on() {
                    one(json!({ "tang_servers": encryption.tang_servers }))
                } else {
                    None
                }
            }
            Step::StopInstallation => Some(Vec::new()),
            Step::LogsGather => {
                let cluster = self.host.cluster?;
                Some(install_order::logs_gather(
                    self.host,
                    cluster,
                    self.masters().as_deref(),
                ))
            }
            Step::DownloadBootArtifacts => self.boot_artifacts(),
            Step::RebootForReclaim => one(json!({ "host_fs_mount_dir": "/host" })),
            Step::UpgradeAgent => one(json!({ "agent_image": self.hub.settings.images.agent })),
            Step::Install => self.install(),
            Step::InstallationDiskSpeedCheck => match self.host.gates.disk_speed {
                Outcome::Unknown => install_order::disk_speed(self.host),
                Outcome::Passed | Outcome::Failed => None,
            },
            Step::ContainerImageAvailability => match self.host.gates.images {
                Outcome::Unknown => {
                    install_order::image_availability(&self.hub.wanted_images(self.cluster.as_deref()?))
                }
                Outcome::Passed | Outcome::Failed => None,
            },
            // No cluster waits for addresses from DHCP: `input::platform::vip_dhcp_served` refuses that.
            Step::DhcpLeaseAllocate => None,
            Step::Execute | Step::NextStepRunner => None,
        }
    }

    fn install(&self) -> Option<Vec<String>> {
        let (hub, cluster) = (self.hub, self.cluster.as_deref()?);
        let pool = hub.index.infra_env(self.host.infra_env)?;
        let order = InstallOrder::of(self.host, &hub.ingredients(cluster, &pool));
        Some(vec![order.to_json()])
    }

    /// A bootstrap host gathers the logs of the masters it started as well.
    fn masters(&self) -> Option<Vec<String>> {
        let cluster = self.cluster.as_deref()?;
        if !self.host.bootstrap {
            return None;
        }
        let nets: Vec<ipnet::IpNet> = cluster
            .machine_networks
            .iter()
            .filter_map(|net| net.parse().ok())
            .collect();
        let slots = self.hub.index.hosts_of_cluster(cluster.id);
        let others = slots
            .iter()
            .map(|slot| slot.row())
            .filter(|host| host.role == Role::Master && host.id != self.host.id);
        let addresses = others.filter_map(|host| {
            let all = host.digest.nics.iter().flat_map(|nic| &nic.addresses);
            let mut plain = all
                .filter_map(|text| text.parse::<ipnet::IpNet>().ok())
                .map(|net| net.addr());
            plain.find(|address| nets.iter().any(|net| net.contains(address)))
        });
        Some(addresses.map(|address| address.to_string()).collect())
    }

    fn ntp_sources(&self) -> String {
        if let Some(cluster) = &self.cluster {
            let own = if cluster.ntp_sources.is_empty() {
                &cluster.additional_ntp_source
            } else {
                &cluster.ntp_sources
            };
            if !own.is_empty() {
                return own.clone();
            }
        }
        let pool = self.hub.index.infra_env(self.host.infra_env);
        pool.map(|pool| {
            if pool.ntp_sources.is_empty() {
                pool.additional_ntp_sources.clone()
            } else {
                pool.ntp_sources.clone()
            }
        })
        .unwrap_or_default()
    }

    fn connectivity(&self) -> Option<Vec<String>> {
        let shared = self.shared.as_ref()?;
        let turns = shared
            .targets
            .len()
            .div_ceil(CONNECTIVITY_HOSTS_PER_MINUTE)
            .max(1);
        let minute = usize::try_from(self.now.as_second() / 60).unwrap_or_default();
        let own_turn = self.host.id.0.as_bytes()[15] as usize;
        if !(minute + own_turn).is_multiple_of(turns) {
            return None;
        }
        let mut text = String::from("[");
        for (_, target) in shared.targets.iter().filter(|(id, _)| *id != self.host.id) {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(target);
        }
        text.push(']');
        (text.len() > 2).then(|| vec![text])
    }

    fn domains(&self) -> Option<Vec<String>> {
        let cluster = self.cluster.as_ref()?;
        let (name, domain) = (&cluster.name, &cluster.base_dns_domain);
        if name.is_empty() || domain.is_empty() {
            return None;
        }
        let zone = format!("{name}.{domain}");
        let mut names = vec![
            format!("api.{zone}"),
            format!("api-int.{zone}"),
            format!("console-openshift-console.apps.{zone}"),
            format!("validateNoWildcardDNS.{zone}."),
            format!("validateNoWildcardDNS.{zone}"),
        ];
        if !cluster.adds_hosts() {
            let registry = cluster.ocp_release_image.split('/').next().unwrap_or_default();
            let named = registry.contains('.') && registry.parse::<std::net::IpAddr>().is_err();
            named.then(|| names.push(registry.split(':').next().unwrap_or_default().to_owned()));
        }
        let domains: Vec<_> = names
            .into_iter()
            .map(|name| json!({ "domain_name": name }))
            .collect();
        Some(vec![json!({ "domains": domains }).to_string()])
    }

    fn vips(&self) -> Option<Vec<String>> {
        let cluster = self.cluster.as_ref()?;
        if cluster.user_managed_networking || cluster.vip_dhcp_allocation {
            return None;
        }
        let api = cluster
            .api_vips
            .iter()
            .map(|vip| json!({ "vip": vip.ip, "vip_type": VipType::Api }));
        let ingress = cluster
            .ingress_vips
            .iter()
            .map(|vip| json!({ "vip": vip.ip, "vip_type": VipType::Ingress }));
        let all: Vec<_> = api.chain(ingress).collect();
        (!all.is_empty()).then(|| vec![serde_json::Value::from(all).to_string()])
    }

    fn api_vip(&self) -> Option<Vec<String>> {
        let cluster = self.cluster.as_ref()?;
        let pool = match self.host.tenant.machine_config_pool.as_str() {
            "" => Role::Worker.word(),
            pool => pool,
        };
        let (mut ask, endpoint) = (serde_json::Map::new(), &cluster.ignition_endpoint);
        let url = match endpoint.url.as_str() {
            "" => format!("http://{}:22624/config/{pool}", cluster.api_vip_dns_name),
            url => format!("{}/{pool}", url.trim_end_matches('/')),
        };
        ask.insert("url".into(), url.into());
        if !endpoint.ca_certificate.is_empty() {
            ask.insert("ca_certificate".into(), endpoint.ca_certificate.clone().into());
        }
        if !self.host.tenant.ignition_token.is_empty() {
            ask.insert(
                "ignition_endpoint_token".into(),
                self.host.tenant.ignition_token.clone().into(),
            );
        }
        if !self.host.tenant.ignition_headers.is_empty() {
            let headers = self.host.tenant.ignition_headers.iter();
            let headers: Vec<_> = headers
                .map(|(key, value)| json!({ "key": key, "value": value }))
                .collect();
            ask.insert("request_headers".into(), headers.into());
        }
        Some(vec![serde_json::Value::Object(ask).to_string()])
    }

    fn boot_artifacts(&self) -> Option<Vec<String>> {
        let pool = self.hub.index.infra_env(self.host.infra_env)?;
        let links = self.hub.settings.boot_links(&pool);
        Some(vec![
            json!({
                "kernel_url": links.kernel,
                "rootfs_url": links.rootfs,
                "initrd_url": links.initrd,
                "host_fs_mount_dir": "/host",
            })
            .to_string(),
        ])
    }
}

fn view(step: Step, args: Vec<String>) -> StepView {
    // The agent echoes the id; it only has to differ from poll to poll.
    let step_id = if step == Step::UpgradeAgent {
        String::new()
    } else {
        format!("{}-{:08x}", step.word(), rand::random::<u32>())
    };
    StepView {
        step_type: step,
        step_id,
        args,
    }
}

/// The answer never reached the agent: nothing in it counts as handed out.
pub fn take_back(slot: &Slot, steps: &StepsView) {
    let handed = steps.instructions.iter().flatten();
    for step in handed {
        slot.live.outstanding.answered(step.step_type);
    }
    if is_upgrade(steps) {
        slot.live.not_asked_to_upgrade();
    }
}

pub fn is_upgrade(steps: &StepsView) -> bool {
    holds(steps, Step::UpgradeAgent)
}

pub fn is_install(steps: &StepsView) -> bool {
    holds(steps, Step::Install)
}

fn holds(steps: &StepsView, wanted: Step) -> bool {
    steps
        .instructions
        .iter()
        .flatten()
        .any(|step| step.step_type == wanted)
}

/// The agent image the host should run instead of its own.
fn other_agent<'a>(hub: &'a Hub, host: &Host) -> Option<&'a str> {
    let wanted = hub.settings.checks.wanted_agent.as_deref()?;
    (!host.agent_version.is_empty() && !same_image(&host.agent_version, wanted)).then_some(wanted)
}

/// Whether its agent was asked often enough for the one it should run.
pub fn keeps_agent(hub: &Hub, host: &Host) -> bool {
    let wanted = hub.settings.checks.wanted_agent.as_deref();
    wanted.is_some_and(|wanted| !wanted.is_empty() && host.agent_instead_of == wanted)
}

fn upgrade(hub: &Hub, slot: &Slot, host: &Host, now: Timestamp) -> Option<StepsView> {
    let wanted = other_agent(hub, host)?;
    if keeps_agent(hub, host) {
        return None;
    }
    match host.status() {
        Status::Binding
        | Status::Discovering
        | Status::DiscoveringUnbound
        | Status::Insufficient
        | Status::InsufficientUnbound
        | Status::Known
        | Status::KnownUnbound
        | Status::PendingForInput => {}
        Status::Disconnected
        | Status::DisconnectedUnbound
        | Status::Disabled
        | Status::DisabledUnbound
        | Status::PreparingForInstallation
        | Status::PreparingFailed
        | Status::PreparingSuccessful
        | Status::Installing
        | Status::InstallingInProgress
        | Status::InstallingPendingUserAction
        | Status::Installed
        | Status::AddedToExistingCluster
        | Status::Error
        | Status::Cancelled
        | Status::Resetting
        | Status::ResettingPendingUserAction
        | Status::Unbinding
        | Status::UnbindingPendingUserAction
        | Status::Reclaiming
        | Status::ReclaimingRebooting => return None,
    }
    let args = vec![json!({ "agent_image": wanted }).to_string()];
    let only = |instructions| StepsView {
        next_instruction_seconds: 60.min(hub.settings.longest_poll_seconds),
        post_step_action: PostStepAction::Continue,
        instructions,
    };
    // While it pulls its new image there is no use in anything else: what it starts now ends with it.
    if !slot.live.outstanding.hand_out(Step::UpgradeAgent, &args, now) {
        return Some(only(None));
    }
    if !slot.live.ask_to_upgrade() {
        slot.live.outstanding.answered(Step::UpgradeAgent);
        return None;
    }
    Some(only(Some(vec![view(Step::UpgradeAgent, args)])))
}

/// True once: the agent was asked often enough, and now the check about it must run again.
pub fn gives_up_upgrading(hub: &Hub, slot: &Slot, host: &Host) -> bool {
    other_agent(hub, host).is_some() && !keeps_agent(hub, host) && slot.live.give_up_upgrading()
}
