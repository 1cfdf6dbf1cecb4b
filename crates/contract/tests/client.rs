//! The client against a socket that answers what the test says and tells what it was asked.

use muster_contract::v1::change::ChangesQuery;
use muster_contract::v2::event::{EventSeverity, EventsQuery};
use muster_contract::{ClientError, HubClient, rules::CommaList};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use uuid::Uuid;

const HOST: &str = r#"{"kind":"Host","id":"00000000-0000-0000-0000-000000000000","href":"/h","status":"binding",
    "infra_env_id":"00000000-0000-0000-0000-000000000000","status_info":"","status_updated_at":"","progress_stages":null,
    "stage_started_at":"","stage_updated_at":"","checked_in_at":"","registered_at":"","created_at":"","updated_at":"",
    "deleted_at":null,"logs_started_at":"","logs_collected_at":""}"#;

/// Answers one request, and hands back the head and body it read.
async fn answer_once(status: &'static str, body: &'static str) -> (HubClient, JoinHandle<String>) {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!(
        "http://{}",
        socket.local_addr().expect("a bound socket has an address")
    );
    let asked = tokio::spawn(async move {
        let (mut stream, _) = socket.accept().await.expect("the client connects");
        let mut seen = Vec::new();
        let mut chunk = [0; 4096];
        while !whole(&seen) {
            let read = stream.read(&mut chunk).await.expect("the request arrives");
            seen.extend_from_slice(&chunk[..read]);
        }
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .await
            .expect("the client reads the answer");
        String::from_utf8(seen).expect("requests are text")
    });
    (HubClient::new(&url).expect("a good URL"), asked)
}

fn whole(seen: &[u8]) -> bool {
    let text = String::from_utf8_lossy(seen);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    body.len() >= length.unwrap_or(0)
}

#[tokio::test]
async fn a_bind_posts_the_cluster_to_the_host() {
    let (hub, asked) = answer_once("200 OK", HOST).await;
    let host = hub
        .bind_host(Uuid::nil(), Uuid::nil(), Uuid::max())
        .await
        .unwrap();
    assert_eq!(host.status, "binding");
    let asked = asked.await.unwrap();
    let path = format!(
        "POST /api/assisted-install/v2/infra-envs/{0}/hosts/{0}/actions/bind",
        Uuid::nil()
    );
    assert!(asked.starts_with(&path), "{asked}");
    assert!(
        asked.ends_with(&format!(r#"{{"cluster_id":"{}"}}"#, Uuid::max())),
        "{asked}"
    );
}

#[tokio::test]
async fn queries_carry_lists_with_commas_and_leave_out_what_is_not_set() {
    let (hub, asked) = answer_once("200 OK", "[]").await;
    let severities = Some(CommaList(vec![EventSeverity::Warning, EventSeverity::Error]));
    let query = EventsQuery {
        severities,
        deleted_hosts: Some(true),
        limit: Some(-1),
        ..EventsQuery::default()
    };
    assert!(hub.events(&query).await.unwrap().is_empty());
    let asked = asked.await.unwrap();
    assert!(
        asked.contains("/v2/events?limit=-1&severities=warning%2Cerror&deleted_hosts=true "),
        "{asked}"
    );
}

#[tokio::test]
async fn following_the_feed_moves_on_only_with_an_answer() {
    let (hub, asked) = answer_once("200 OK", r#"{"changes":[],"next":41}"#).await;
    let mut feed = hub.follow(40);
    feed.next(25).await.unwrap();
    assert_eq!(feed.after, 41);
    assert!(
        asked
            .await
            .unwrap()
            .starts_with("GET /api/muster/v1/changes?after=40&wait_seconds=25 ")
    );
    assert!(matches!(feed.next(0).await, Err(ClientError::Unreachable(_))));
    assert_eq!(feed.after, 41);
}

#[tokio::test]
async fn errors_have_kinds() {
    let (hub, _) = answer_once("404 Not Found", r#"{"code":404,"message":"no such cluster"}"#).await;
    assert_eq!(
        hub.cluster(Uuid::nil()).await.unwrap_err(),
        ClientError::NotFound("no such cluster".into())
    );
    let (hub, _) = answer_once("200 OK", "not json").await;
    assert!(matches!(
        hub.changes(&ChangesQuery::default()).await,
        Err(ClientError::Decode(_))
    ));
    assert!(matches!(
        HubClient::new("hub:8090/x"),
        Err(ClientError::BadInput(_))
    ));
}

#[tokio::test]
async fn a_hub_that_says_nothing_is_not_waited_for_without_end() {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!(
        "http://{}",
        socket.local_addr().expect("a bound socket has an address")
    );
    let hub = HubClient::with_silence(&url, Duration::from_millis(50)).expect("a good URL");
    let asked = tokio::spawn(async move { hub.hub_status().await });
    // Held open, and never answered.
    let (_stream, _) = socket.accept().await.expect("the client connects");
    let error = asked.await.expect("no panic").expect_err("nobody answered");
    assert!(matches!(error, ClientError::Unreachable(_)), "{error:?}");
}
