//! Hub and operator in one process: `muster serve --kube`, the program as people run it.

use crate::own_server::{Place, world_at};
use crate::world::{free_address, web_client};
use muster_contract::HubClient;
use muster_operator::crd::InfraEnv;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// Where the program is.
const PROGRAM: &str = "MUSTER_TEST_PROGRAM";

/// How long a running program may take to end once it is asked to.
const END: Duration = Duration::from_secs(60);

fn start(home: &Path, kubeconfig: &Path, listen: SocketAddr, metrics: SocketAddr) -> Child {
    let program = std::env::var_os(PROGRAM).unwrap_or_else(|| panic!("{PROGRAM} is not set"));
    let log = std::fs::File::create(home.join("log")).unwrap();
    Command::new(program)
        .args([
            "serve",
            "--kube",
            "--controllers=-agent-machine,-agent-cluster",
            "--lease-namespace=default",
        ])
        .arg(format!("--listen={listen}"))
        .arg(format!("--metrics={metrics}"))
        .arg("--data-dir")
        .arg(home.join("data"))
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn answers(address: SocketAddr, path: &str) -> Option<u16> {
    let answer = web_client()
        .get(format!("http://{address}{path}"))
        .send()
        .await
        .ok()?;
    Some(answer.status().as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_with_an_operator_serves_while_the_api_server_does_not_answer_and_finds_it_when_it_comes() {
    let place = Place::open().await;
    let mut front = place.front("one").await;
    place.define_kinds(&front).await;
    let world = world_at(&front).await;
    front.stop().await;

    let home = tempfile::tempdir().unwrap();
    let (listen, metrics) = (free_address(), free_address());
    let mut program = start(home.path(), &front.server().operator, listen, metrics);
    let log = || std::fs::read_to_string(home.path().join("log")).unwrap_or_default();
    world
        .until("the hub serves", async || {
            answers(listen, "/ready").await == Some(200)
        })
        .await;
    world
        .until("the operator is alive", async || {
            answers(metrics, "/healthz").await == Some(200)
        })
        .await;
    assert_eq!(answers(metrics, "/readyz").await, Some(503), "{}", log());
    assert!(program.try_wait().unwrap().is_none(), "it ended: {}", log());

    front.start(&place).await;
    world.infra_env("lab", |_| ()).await;
    let available = |infra_env: &InfraEnv| {
        let status = infra_env.status.as_ref();
        status.is_some_and(|status| !status.iso_download_url.is_empty())
    };
    world.when(&world.pool, "lab", "has an image", available).await;
    assert_eq!(answers(metrics, "/readyz").await, Some(200));
    let hub = HubClient::new(&format!("http://{listen}")).unwrap();
    assert_eq!(hub.infra_envs(&Default::default()).await.unwrap().len(), 1);

    let id = program.id().unwrap().to_string();
    let signalled = Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
    assert!(signalled.success());
    let ended = tokio::time::timeout(END, program.wait()).await;
    let ended = ended
        .unwrap_or_else(|_| panic!("it does not end: {}", log()))
        .unwrap();
    assert!(ended.success(), "{ended}: {}", log());
}
