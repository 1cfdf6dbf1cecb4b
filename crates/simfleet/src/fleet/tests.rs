//! A small fleet over real connections, against a hub that knows just enough.

use super::*;
use std::sync::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Request lines and bodies in the order they came.
type Seen = Arc<Mutex<Vec<(String, String)>>>;

async fn serve(stream: TcpStream, seen: Seen) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            stream.read_line(&mut header).await?;
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if header == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let answer = answer(&line);
        seen.lock()
            .unwrap()
            .push((line, String::from_utf8(body).unwrap()));
        stream.write_all(answer.as_bytes()).await?;
    }
}

fn answer(line: &str) -> String {
    if line.starts_with("GET") {
        // In two chunks, to try both ways of framing an answer.
        let (a, b) = (
            r#"{"next_instruction_seconds":60,"post_step_action":"continue","#,
            r#""instructions":[{"step_type":"inventory","step_id":"inventory-1","args":["x"]}]}"#,
        );
        return format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
            a.len(),
            b.len()
        );
    }
    if line.contains("/instructions") {
        return "HTTP/1.1 204 No Content\r\n\r\n".to_owned();
    }
    let body = r#"{"next_step_runner_command":{"args":[]}}"#;
    format!(
        "HTTP/1.1 201 Created\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn start_hub() -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let all = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, all.clone()));
        }
    });
    (url, seen)
}

async fn until(what: &str, is_true: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_fleet_registers_polls_and_reports_until_stopped() {
    let (hub_url, seen) = start_hub().await;
    let config = FleetConfig {
        hub_url,
        hosts: 50,
        connections: 4,
        poll: Some(Duration::from_millis(50)),
        ..FleetConfig::default()
    };
    let fleet = Fleet::new(config).unwrap();
    let stats = fleet.stats();
    let (stop, stopped) = watch::channel(false);
    let run = tokio::spawn(fleet.run(stopped));
    until("every host reporting once", || stats.view().replies == 50).await;
    until("more polls", || stats.view().polls > 200).await;
    stop.send(true).unwrap();
    tokio::time::timeout(Duration::from_secs(5), run)
        .await
        .expect("it stops")
        .unwrap();
    let view = stats.view();
    assert_eq!((view.registers, view.running, view.errors()), (50, 50, 0));
    assert_eq!(view.replies, 50, "an unchanged inventory is not repeated");
    assert!(view.poll_p99_us >= view.poll_p50_us && view.poll_p50_us > 0);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len() as u64, view.requests());
}

#[tokio::test]
async fn machines_of_a_running_fleet_are_switched_from_outside() {
    let (hub_url, _seen) = start_hub().await;
    let config = FleetConfig {
        hub_url,
        hosts: 5,
        first_index: 100,
        connections: 2,
        poll: Some(Duration::from_millis(50)),
        ..FleetConfig::default()
    };
    let fleet = Fleet::new(config).unwrap();
    let (stats, remote) = (fleet.stats(), fleet.remote());
    let (stop, stopped) = watch::channel(false);
    let run = tokio::spawn(fleet.run(stopped));
    until("every host running", || stats.view().running == 5).await;
    assert!(remote.power(103, Power::Off));
    until("one host without power", || stats.view().off == 1).await;
    assert!(remote.boot_discovery(103));
    until("it registers again", || stats.view().registers == 6).await;
    until("every host running again", || stats.view().running == 5).await;
    assert!(
        !remote.boot_discovery(99),
        "that machine belongs to another fleet"
    );
    drop(stop);
    run.await.unwrap();
    assert!(!remote.boot_discovery(100), "the fleet has ended");
}

#[tokio::test]
async fn a_hub_that_is_away_costs_requests_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hub_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let config = FleetConfig {
        hub_url,
        hosts: 3,
        poll: Some(Duration::ZERO),
        ..FleetConfig::default()
    };
    let fleet = Fleet::new(config).unwrap();
    let stats = fleet.stats();
    let (stop, stopped) = watch::channel(false);
    let run = tokio::spawn(fleet.run(stopped));
    until("three attempts", || stats.view().lost >= 3).await;
    drop(stop);
    tokio::time::timeout(Duration::from_secs(5), run)
        .await
        .expect("it stops")
        .unwrap();
    assert_eq!(stats.view().registering, 3);
}

#[test]
fn addresses_of_hubs_are_read() {
    let address = |url: &str| HubAddress::parse(url);
    assert_eq!(address("http://hub:8090/").unwrap().authority, "hub:8090");
    assert_eq!(address("hub").unwrap().authority, "hub:80");
    assert_eq!(
        address("http://[::1]:9/a/").unwrap(),
        HubAddress {
            authority: "[::1]:9".into(),
            prefix: "/a".into(),
            is_secure: false,
        }
    );
    let secure = address("https://hub").unwrap();
    assert!(secure.is_secure && secure.authority == "hub:443");
    assert!(address("ftp://hub").unwrap_err().contains("https://"));
    assert!(address("http://").is_err());
}

#[test]
fn a_fleet_beyond_the_address_space_is_refused() {
    let config = FleetConfig {
        first_index: MAX_HOSTS - 1,
        hosts: 2,
        ..FleetConfig::default()
    };
    assert!(matches!(Fleet::new(config), Err(FleetError::TooMany { .. })));
}
