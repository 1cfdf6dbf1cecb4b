//! What a simulated host answers to a step: everything works, and follows from the arguments.

use crate::inventory;
use crate::job::{Work, digest};
use crate::machine::{API_ADDRESS, Machine, NETWORK, PREFIX, address_of};
use muster_contract::v2::agent::args::{
    ApiVipCheckArgs, BootArtifactsArgs, ConnectivityCheckHost, DhcpLeaseArgs, DiskSpeedArgs,
    DomainResolutionArgs, ImageAvailabilityArgs, InstallArgs, LogsGatherArgs, NtpArgs, RebootForReclaimArgs,
    TangCheckArgs, UpgradeAgentArgs, VipArg,
};
use muster_contract::v2::agent::replies::{
    ApiVipCheckReply, ConnectivityReply, DhcpLeaseReply, DiskSpeedReply, DomainResolution,
    DomainResolutionReply, FreeNetworkAddresses, ImageAvailability, ImageAvailabilityReply, L2Connectivity,
    L3Connectivity, MtuReport, NtpReply, NtpSource, RemoteHost, TangCheckReply, TangServerReply,
    UpgradeAgentReply, VerifiedVip,
};
use muster_contract::v2::step::StepType;
use muster_vocabulary::{NtpSourceState, ReplyResult, VipVerification};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The agent has no such step, or cannot read its arguments.
pub const NO_ACTION: i64 = -1;
/// The discovery image could not be read.
pub const MEDIA_LOST: i64 = 256;
/// What the container runtime ends with when it cannot start a container.
pub const CANNOT_START: i64 = 125;

/// Enough addresses to choose virtual ones from.
const FREE_ADDRESSES: usize = 32;
/// A good disk; 10 ms would be too slow.
const IO_SYNC_MS: i64 = 3;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub exit_code: i64,
    pub output: String,
    pub error: String,
}

impl Answer {
    pub fn failed(exit_code: i64, error: impl Into<String>) -> Self {
        Self {
            exit_code,
            output: String::new(),
            error: error.into(),
        }
    }

    fn output(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(output) => Self {
                exit_code: 0,
                output,
                error: String::new(),
            },
            Err(error) => Self::failed(1, error.to_string()),
        }
    }
}

/// What is odd about a machine at the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Oddities {
    /// The state of an inventory that changes, see [`inventory::of`].
    pub revision: u64,
    /// How long the disk takes to write, when it is slow.
    pub io_sync_ms: Option<i64>,
    pub images_fail: bool,
}

/// The answer to a step.
pub fn answer(machine: &Machine, work: &Work, args: &[String], odd: Oddities) -> Answer {
    match work {
        Work::Step(kind) => step(machine, *kind, args, odd).unwrap_or_else(|error| {
            Answer::failed(NO_ACTION, format!("cannot use the arguments of {kind}: {error}"))
        }),
        Work::Busy(StepType::Install) => Answer::failed(
            CANNOT_START,
            r#"the container name "assisted-installer" is already in use"#,
        ),
        Work::Busy(_) | Work::SendLogs(_) => Answer::default(),
        Work::Unknown(word) => Answer::failed(NO_ACTION, format!("failed to find action for step {word}")),
    }
}

fn step(machine: &Machine, kind: StepType, args: &[String], odd: Oddities) -> Result<Answer, String> {
    Ok(match kind {
        StepType::Inventory => {
            if args.is_empty() {
                return Err("the host id is missing".into());
            }
            Answer::output(&inventory::of(machine, odd.revision))
        }
        StepType::ConnectivityCheck => Answer::output(&connectivity(machine, &one::<Vec<_>>(args)?)),
        StepType::FreeNetworkAddresses => Answer::output(&free_addresses(&one::<Vec<String>>(args)?)),
        StepType::DhcpLeaseAllocate => Answer::output(&dhcp_lease(&one(args)?)),
        StepType::ApiVipConnectivityCheck => Answer::output(&api_vip(one(args)?)),
        StepType::TangConnectivityCheck => Answer::output(&tang(&one(args)?)?),
        StepType::NtpSynchronizer => Answer::output(&ntp(&one(args)?)),
        StepType::DomainResolution => Answer::output(&domains(one(args)?)),
        StepType::InstallationDiskSpeedCheck => Answer::output(&disk_speed(args, odd.io_sync_ms)?),
        StepType::ContainerImageAvailability => Answer::output(&images(one(args)?, odd.images_fail)),
        StepType::VerifyVips => Answer::output(&vips(one(args)?)),
        StepType::UpgradeAgent => {
            let agent_image = one::<UpgradeAgentArgs>(args)?.agent_image;
            Answer::output(&UpgradeAgentReply {
                agent_image,
                result: ReplyResult::Success.into(),
            })
        }
        StepType::Install => silent(one::<InstallArgs>(args)?),
        StepType::LogsGather => silent(one::<LogsGatherArgs>(args)?),
        StepType::DownloadBootArtifacts => silent(one::<BootArtifactsArgs>(args)?),
        StepType::RebootForReclaim => silent(one::<RebootForReclaimArgs>(args)?),
        StepType::StopInstallation => Answer::default(),
        StepType::Execute | StepType::NextStepRunner => {
            Answer::failed(NO_ACTION, format!("failed to find action for step {kind}"))
        }
    })
}

/// Steps that say nothing when they succeed; their arguments were only checked.
fn silent<T>(_checked: T) -> Answer {
    Answer::default()
}

/// The only argument, which is JSON.
pub fn one<T: DeserializeOwned>(args: &[String]) -> Result<T, String> {
    match args {
        [arg] => serde_json::from_str(arg).map_err(|error| error.to_string()),
        _ => Err(format!("expected one, got {}", args.len())),
    }
}

fn connectivity(machine: &Machine, peers: &[ConnectivityCheckHost]) -> ConnectivityReply {
    let nic = inventory::nic_name(machine.profile, 0);
    let address = machine.address().to_string();
    let remote_hosts = peers
        .iter()
        .map(|peer| remote_host(peer, &nic, &address))
        .collect();
    ConnectivityReply { remote_hosts }
}

fn remote_host(peer: &ConnectivityCheckHost, nic: &str, address: &str) -> RemoteHost {
    let mut remote = RemoteHost {
        host_id: peer.host_id,
        ..RemoteHost::default()
    };
    for (mac, ip) in peer
        .nics
        .iter()
        .flat_map(|nic| nic.ip_addresses.iter().map(|ip| (&nic.mac, ip)))
    {
        let ip = ip.split('/').next().unwrap_or(ip);
        remote.l2_connectivity.push(L2Connectivity {
            outgoing_nic: nic.to_owned(),
            outgoing_ip_address: address.to_owned(),
            remote_ip_address: ip.to_owned(),
            remote_mac: mac.clone(),
            successful: true,
        });
        remote.l3_connectivity.push(L3Connectivity {
            outgoing_nic: nic.to_owned(),
            remote_ip_address: ip.to_owned(),
            successful: true,
            // One switch away: 0.2 to 0.9 ms.
            average_rtt_ms: 0.2 + (digest(ip) % 8) as f64 / 10.0,
            packet_loss_percentage: 0.0,
        });
        remote.mtu_report.push(MtuReport {
            outgoing_nic: nic.to_owned(),
            remote_ip_address: ip.to_owned(),
            mtu_successful: true,
        });
    }
    remote
}

fn free_addresses(networks: &[String]) -> Vec<FreeNetworkAddresses> {
    networks.iter().filter_map(|network| free_in(network)).collect()
}

fn free_in(network: &str) -> Option<FreeNetworkAddresses> {
    let (base, prefix) = network.split_once('/')?;
    let base: Ipv4Addr = base.parse().ok()?;
    let size = 32u32
        .checked_sub(prefix.parse().ok()?)
        .and_then(|bits| 1u32.checked_shl(bits))?;
    // The network itself, the gateway and the broadcast address are never free.
    let candidates = (2..size.saturating_sub(1)).map(|at| base.to_bits().saturating_add(at));
    let free = candidates
        .filter(|address| !may_be_a_host(*address))
        .take(FREE_ADDRESSES);
    let free_addresses = free
        .map(|address| Ipv4Addr::from_bits(address).to_string())
        .collect();
    Some(FreeNetworkAddresses {
        network: network.to_owned(),
        free_addresses,
    })
}

fn may_be_a_host(address: u32) -> bool {
    let shift = 32 - u32::from(PREFIX);
    let inside = address >> shift == NETWORK.to_bits() >> shift;
    // The last two addresses of each /24 are never given to hosts.
    inside && address >= address_of(0).to_bits() && (1..=254).contains(&(address & 0xFF))
}

fn dhcp_lease(args: &DhcpLeaseArgs) -> DhcpLeaseReply {
    // All hosts must get the same lease for the same MAC.
    let address =
        |mac: &str| Ipv4Addr::from_bits(NETWORK.to_bits() + 100 + (digest(mac) % 100) as u32).to_string();
    let lease = |old: &str, mac: &str| match old {
        "" => format!("lease {{\n  fixed-address {};\n}}\n", address(mac)),
        old => old.to_owned(),
    };
    DhcpLeaseReply {
        api_vip_address: address(&args.api_vip_mac),
        ingress_vip_address: address(&args.ingress_vip_mac),
        api_vip_lease: lease(&args.api_vip_lease, &args.api_vip_mac),
        ingress_vip_lease: lease(&args.ingress_vip_lease, &args.ingress_vip_mac),
    }
}

fn api_vip(args: ApiVipCheckArgs) -> ApiVipCheckReply {
    // What a running cluster hands out speaks of the cluster.
    let ignition = serde_json::json!({
        "ignition": { "config": { "merge": [{ "source": args.url }] }, "version": "3.2.0" },
        "storage": { "files": [] },
    });
    ApiVipCheckReply {
        is_success: true,
        url: args.url,
        download_error: String::new(),
        ignition: ignition.to_string(),
    }
}

#[derive(Deserialize)]
struct TangServer {
    url: String,
}

fn tang(args: &TangCheckArgs) -> Result<TangCheckReply, String> {
    let servers: Vec<TangServer> =
        serde_json::from_str(&args.tang_servers).map_err(|error| error.to_string())?;
    let reply = |server: TangServer| TangServerReply {
        tang_url: server.url,
        payload: "e30".into(),
        signatures: Vec::new(),
    };
    Ok(TangCheckReply {
        is_success: true,
        tang_server_response: servers.into_iter().map(reply).collect(),
    })
}

fn ntp(args: &NtpArgs) -> NtpReply {
    let asked = args
        .ntp_source
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let mut names: Vec<&str> = asked.collect();
    if names.is_empty() {
        names.push("clock.sim.example");
    }
    let source = |(at, name): (usize, &str)| NtpSource {
        source_name: name.to_owned(),
        source_state: match at {
            0 => NtpSourceState::Synced,
            _ => NtpSourceState::Combined,
        }
        .into(),
    };
    NtpReply {
        ntp_sources: names.into_iter().enumerate().map(source).collect(),
    }
}

fn domains(args: DomainResolutionArgs) -> DomainResolutionReply {
    let resolution = |domain_name: String| {
        // The name that tells whether there is a wildcard record: there is none.
        let known = !domain_name
            .to_ascii_lowercase()
            .starts_with("validatenowildcarddns");
        DomainResolution {
            domain_name,
            ipv4_addresses: if known {
                vec![API_ADDRESS.to_string()]
            } else {
                Vec::new()
            },
            ..DomainResolution::default()
        }
    };
    let names = args.domains.into_iter().map(|domain| domain.domain_name);
    DomainResolutionReply {
        resolutions: names.map(resolution).collect(),
    }
}

fn disk_speed(args: &[String], slow_ms: Option<i64>) -> Result<DiskSpeedReply, String> {
    // The second argument is the time the check may take.
    let [disk, _limit] = args else {
        return Err(format!("expected two, got {}", args.len()));
    };
    let disk: DiskSpeedArgs = serde_json::from_str(disk).map_err(|error| error.to_string())?;
    Ok(DiskSpeedReply {
        path: disk.path,
        io_sync_duration: slow_ms.unwrap_or(IO_SYNC_MS),
    })
}

fn images(args: ImageAvailabilityArgs, fail: bool) -> ImageAvailabilityReply {
    let image = |name: String| ImageAvailability {
        name,
        result: match fail {
            true => ReplyResult::Failure,
            false => ReplyResult::Success,
        }
        .into(),
        size_bytes: 333_000_000.0,
        time: 4.2,
        download_rate: 79.3,
    };
    ImageAvailabilityReply {
        images: args.images.into_iter().map(image).collect(),
    }
}

fn vips(args: Vec<VipArg>) -> Vec<VerifiedVip> {
    let verified = |arg: VipArg| VerifiedVip {
        vip: arg.vip,
        vip_type: arg.vip_type,
        verification: VipVerification::Succeeded.into(),
    };
    args.into_iter().map(verified).collect()
}
