//! Machines that register and report when a test says so, and the pool and clusters around them.

use futures_util::StreamExt;
use futures_util::stream;
use muster_contract::client::Result;
use muster_contract::v2::cluster_request::CreateCluster;
use muster_contract::v2::host::RegisterHost;
use muster_contract::v2::infra_env::CreateInfraEnv;
use muster_contract::v2::step::{NextStepRunnerArgs, PostStepReply, StepType};
use muster_contract::{HubClient, Secret};
use muster_simfleet::{Machine, Profile, Setup, inventory};
use serde_json::json;
use uuid::Uuid;

/// Requests under way at a time.
pub const IN_FLIGHT: usize = 64;
const PULL_SECRET: &str = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;

/// A pool of machines that are all alike.
pub struct Machines {
    pub infra_env: Uuid,
    agent_version: String,
    setup: Setup,
}

impl Machines {
    pub async fn new(hub: &HubClient) -> Self {
        let wish = CreateInfraEnv {
            name: "pool".into(),
            pull_secret: Secret::from(PULL_SECRET),
            ..serde_json::from_value(json!({ "name": "", "pull_secret": "" })).unwrap()
        };
        let infra_env = hub.create_infra_env(&wish).await.unwrap().id;
        let setup = Setup {
            infra_env_id: infra_env,
            profile: Some(Profile::Rack),
            ..Setup::default()
        };
        let mut machines = Self {
            infra_env,
            agent_version: String::new(),
            setup,
        };
        // The hub tells every agent which version it wants; ours comply at once.
        let probe = Uuid::new_v4();
        let told = hub
            .register_host(infra_env, &machines.registration(probe))
            .await
            .unwrap();
        let args = told.next_step_runner_command.unwrap().args.remove(0);
        machines.agent_version = serde_json::from_str::<NextStepRunnerArgs>(&args)
            .unwrap()
            .agent_version;
        hub.delete_host(infra_env, probe).await.unwrap();
        machines
    }

    pub fn id(&self, index: u32) -> Uuid {
        self.machine(index).id()
    }

    fn machine(&self, index: u32) -> Machine {
        Machine::new(&self.setup, index, index)
    }

    fn registration(&self, host_id: Uuid) -> RegisterHost {
        RegisterHost {
            host_id,
            discovery_agent_version: Some(self.agent_version.clone()),
        }
    }

    pub async fn register(&self, hub: &HubClient, index: u32) -> Result<()> {
        let body = self.registration(self.id(index));
        hub.register_host(self.infra_env, &body).await.map(drop)
    }

    /// Hardware and time sources: what makes a host ready to be lent.
    pub async fn report(&self, hub: &HubClient, index: u32) -> Result<()> {
        let hardware = serde_json::to_string(&inventory::of(&self.machine(index), 1)).unwrap();
        let clock =
            json!({ "ntp_sources": [{ "source_name": "clock.example.com", "source_state": "synced" }] });
        for (step, output) in [
            (StepType::Inventory, hardware),
            (StepType::NtpSynchronizer, clock.to_string()),
        ] {
            let reply = PostStepReply {
                step_id: Some(format!("{}-1", step.word())),
                step_type: Some(step),
                exit_code: Some(0),
                output: Some(output),
                error: None,
            };
            hub.post_step_reply(self.infra_env, self.id(index), &reply)
                .await?;
        }
        Ok(())
    }

    /// What its agent does next, by the status of its host: it is told to register again, or asked for its hardware.
    /// Whatever is refused is tried again later.
    pub async fn obey(&self, hub: &HubClient, index: u32, status: &str) {
        let called = ["binding", "unbinding", "disconnected"]
            .iter()
            .any(|word| status.starts_with(word));
        if called && self.register(hub, index).await.is_err() {
            return;
        }
        if called || status.starts_with("discovering") {
            let _ = self.report(hub, index).await;
        }
    }

    /// All of them registered and reported, a few dozen at a time.
    pub async fn arrive(&self, hub: &HubClient, indexes: impl IntoIterator<Item = u32>) {
        let arrivals = indexes.into_iter().map(async |index| {
            self.register(hub, index).await?;
            self.report(hub, index).await
        });
        let done: Vec<Result<()>> = stream::iter(arrivals).buffer_unordered(IN_FLIGHT).collect().await;
        done.into_iter().for_each(|one| one.unwrap());
    }
}

pub async fn cluster(hub: &HubClient, name: &str) -> Uuid {
    let wish = json!({ "name": name, "openshift_version": "4.20", "pull_secret": PULL_SECRET,
        "base_dns_domain": "example.com" });
    let wish: CreateCluster = serde_json::from_value(wish).unwrap();
    hub.create_cluster(&wish).await.unwrap().id
}
