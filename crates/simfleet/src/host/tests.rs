//! The agent's behaviours against scripted answers of a hub, on a clock the test moves.

use super::agent::{CALL_RETRIES, GIVE_UP_MS, NOTHING_TO_RUN_MS};
use super::*;
use crate::answer::Oddities;
use crate::fault::Fault;
use crate::inventory;
use crate::profile::Profile;
use crate::{answer, job};
use serde_json::{Value, json};
use std::collections::HashSet;

const START: u64 = 1_800_000_000_000;
const MINUTE: u64 = 60_000;

/// A host, its clock, and all that it sent.
struct Bench {
    host: SimHost,
    now_ms: u64,
}

fn setup() -> Setup {
    Setup {
        infra_env_id: Uuid::from_u128(7),
        ..Setup::default()
    }
}

fn bench(setup: Setup) -> Bench {
    Bench {
        host: SimHost::new(Arc::new(setup), 0, START),
        now_ms: START,
    }
}

fn with_faults(faults: &[&str]) -> Bench {
    let faults = faults.iter().map(|text| text.parse::<Fault>().unwrap()).collect();
    bench(Setup { faults, ..setup() })
}

fn response(status: u16, body: Value) -> Outcome {
    Outcome::Response {
        status,
        body: serde_json::to_vec(&body).unwrap(),
    }
}

fn registration(host: &SimHost) -> Outcome {
    let args = json!({"agent_version": "agent:1", "host_id": host.id(), "infra_env_id": Uuid::from_u128(7)});
    response(
        201,
        json!({"id": host.id(), "next_step_runner_command": {"args": [args.to_string()]}}),
    )
}

fn steps(steps: &[(&str, &[&str])]) -> Outcome {
    let steps: Vec<Value> = steps
        .iter()
        .map(|(word, args)| json!({"step_type": word, "step_id": format!("{word}-1"), "args": args}))
        .collect();
    response(
        200,
        json!({"next_instruction_seconds": 60, "post_step_action": "continue", "instructions": steps}),
    )
}

fn exit(seconds: i64, words: &[(&str, &[&str])]) -> Outcome {
    let Outcome::Response { body, .. } = steps(words) else {
        unreachable!()
    };
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    body["next_instruction_seconds"] = json!(seconds);
    body["post_step_action"] = json!("exit");
    response(200, body)
}

const INVENTORY: (&str, &[&str]) = ("inventory", &["id"]);
const NTP: (&str, &[&str]) = ("ntp-synchronizer", &[r#"{"ntp_source":""}"#]);

impl Bench {
    /// Waits for the next request, however long that takes.
    fn next(&mut self) -> Request {
        self.next_before(u64::MAX).expect("the host waits for ever")
    }

    /// The next request, unless the host wants nothing before `limit_ms`.
    fn next_before(&mut self, limit_ms: u64) -> Option<Request> {
        loop {
            match self.host.poll(self.now_ms) {
                Next::Send(request) => return Some(request),
                Next::WaitUntil(at) if at < limit_ms => self.now_ms = at,
                Next::WaitUntil(_) | Next::Idle => return None,
            }
        }
    }

    fn give(&mut self, request: Request, outcome: Outcome) {
        self.host.receive(self.now_ms, request.tag, outcome);
    }

    /// Expects a request of this kind and answers it.
    fn expect(&mut self, what: &str, outcome: Outcome) -> Request {
        let mut request = self.next();
        assert_eq!(kind(&request), what, "{} {}", request.method, request.path);
        let spent = Tag {
            call: Call::Logs,
            run: 0,
            boot: 0,
        };
        let tag = std::mem::replace(&mut request.tag, spent);
        self.host.receive(self.now_ms, tag, outcome);
        request
    }

    fn register(&mut self) {
        let answer = registration(&self.host);
        self.expect("register", answer);
    }

    /// Polls once, takes these steps and answers the replies with `status`; returns the replies.
    fn round(&mut self, answer: Outcome, status: u16) -> Vec<Value> {
        self.expect("poll", answer);
        let mut replies = Vec::new();
        let until = self.now_ms + MINUTE;
        while let Some(request) = self.next_before(until) {
            replies.push(body(&request));
            self.give(
                request,
                Outcome::Response {
                    status,
                    body: Vec::new(),
                },
            );
        }
        replies
    }
}

fn kind(request: &Request) -> &'static str {
    match request.tag.call {
        Call::Register => "register",
        Call::Poll => "poll",
        Call::Reply(_) => "reply",
        Call::Progress => "progress",
        Call::Install => "install",
        Call::Logs => "logs",
        Call::Watch => "watch",
    }
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

fn words(replies: &[Value]) -> Vec<&str> {
    replies
        .iter()
        .map(|reply| reply["step_type"].as_str().unwrap())
        .collect()
}

#[test]
fn a_host_registers_and_asks_for_steps_as_the_hub_names_it() {
    let mut bench = bench(setup());
    let answer = registration(&bench.host);
    let register = bench.expect("register", answer);
    assert_eq!(
        register.path,
        format!("{BASE}/infra-envs/{}/hosts", Uuid::from_u128(7))
    );
    assert_eq!(body(&register)["host_id"], json!(bench.host.id()));
    let poll = bench.next();
    let path = format!(
        "{BASE}/infra-envs/{}/hosts/{}",
        Uuid::from_u128(7),
        bench.host.id()
    );
    assert_eq!(
        poll.path,
        format!("{path}/instructions?timestamp={}", START / 1000)
    );
    assert_eq!(
        poll.agent_version.as_deref(),
        Some("agent:1"),
        "the runner is the image the hub chose"
    );
    let (http, _tag) = poll.into_http("secret").unwrap();
    assert_eq!(http.headers()["discovery_agent_version"], "agent:1");
    assert_eq!(http.headers()["x-secret-key"], "secret");
}

#[test]
fn exit_kills_running_steps_and_registers_again_at_once() {
    let mut bench = bench(setup());
    bench.register();
    bench.expect("poll", exit(0, &[INVENTORY]));
    let polled_at = bench.now_ms;
    bench.register();
    assert_eq!(bench.now_ms, polled_at);
    let replies = bench.round(steps(&[]), 204);
    assert!(replies.is_empty(), "the inventory step died with its runner");
}

#[test]
fn exit_waits_as_long_as_told() {
    let mut bench = bench(setup());
    bench.register();
    bench.expect("poll", exit(120, &[]));
    let polled_at = bench.now_ms;
    bench.register();
    assert_eq!(bench.now_ms, polled_at + 2 * MINUTE);
}

#[test]
fn an_unchanged_answer_is_sent_once_an_hour() {
    let mut bench = bench(setup());
    bench.register();
    assert_eq!(bench.round(steps(&[INVENTORY, NTP]), 204).len(), 2);
    let first = bench.now_ms;
    let mut sent_again = None;
    for _ in 0..62 {
        if !bench.round(steps(&[INVENTORY, NTP]), 204).is_empty() {
            sent_again = Some(bench.now_ms);
            break;
        }
    }
    let pause = sent_again.expect("it is sent again after an hour") - first;
    assert!((59 * MINUTE..=62 * MINUTE).contains(&pause), "{pause}");
}

#[test]
fn exit_makes_the_same_inventory_come_again() {
    let mut bench = bench(setup());
    bench.register();
    let first = bench.round(steps(&[INVENTORY]), 204);
    bench.expect("poll", exit(0, &[]));
    bench.register();
    assert_eq!(bench.round(steps(&[INVENTORY]), 204), first);
}

#[test]
fn a_failed_poll_makes_answers_come_again() {
    let mut bench = bench(setup());
    bench.register();
    assert_eq!(bench.round(steps(&[NTP]), 204).len(), 1);
    bench.expect("poll", response(500, json!({})));
    let failed_at = bench.now_ms;
    assert_eq!(bench.round(steps(&[NTP]), 204).len(), 1);
    assert!(bench.now_ms >= failed_at + 500);
}

#[test]
fn a_reply_the_hub_refused_is_sent_at_the_next_run() {
    let mut bench = bench(setup());
    bench.register();
    assert_eq!(words(&bench.round(steps(&[INVENTORY]), 500)), ["inventory"]);
    assert_eq!(words(&bench.round(steps(&[INVENTORY]), 204)), ["inventory"]);
    assert!(bench.round(steps(&[INVENTORY]), 204).is_empty());
}

#[test]
fn a_lost_reply_is_repeated_within_the_call_and_then_dropped() {
    let mut bench = bench(setup());
    bench.register();
    bench.expect("poll", steps(&[INVENTORY]));
    for _ in 0..=CALL_RETRIES {
        bench.expect("reply", Outcome::Lost);
    }
    assert_eq!(words(&bench.round(steps(&[INVENTORY]), 204)), ["inventory"]);
}

#[test]
fn refusals_of_a_registration_block_the_agent_for_ever() {
    for status in [401, 403, 404, 409] {
        let mut bench = bench(setup());
        bench.expect("register", response(status, json!({})));
        assert_eq!(bench.host.condition(), Condition::Blocked);
        assert!(bench.next_before(u64::MAX).is_none());
    }
}

#[test]
fn other_failures_of_a_registration_are_retried_every_minute() {
    let mut bench = bench(setup());
    for round in 0..5 {
        bench.expect("register", response(400, json!({})));
        assert_eq!(bench.now_ms, START + round * MINUTE);
    }
}

#[test]
fn a_registration_without_a_command_waits_an_hour() {
    let mut bench = bench(setup());
    bench.expect("register", response(201, json!({"id": "x"})));
    bench.register();
    assert_eq!(bench.now_ms, START + NOTHING_TO_RUN_MS);
}

#[test]
fn a_blocked_agent_comes_back_when_someone_reboots_it() {
    let mut bench = bench(Setup {
        revive_ms: Some(5 * MINUTE),
        ..setup()
    });
    bench.register();
    bench.expect("poll", response(404, json!({})));
    assert_eq!(bench.host.condition(), Condition::Blocked);
    bench.register();
    assert_eq!(bench.now_ms, START + 5 * MINUTE + BOOT_MS);
}

#[test]
fn polls_that_fail_for_a_quarter_of_an_hour_lead_to_a_registration() {
    let mut bench = bench(setup());
    bench.register();
    let mut polls = 0;
    loop {
        let request = bench.next();
        if kind(&request) == "register" {
            break;
        }
        bench.give(request, response(500, json!({})));
        polls += 1;
    }
    let waited = bench.now_ms - START;
    assert!(
        (GIVE_UP_MS..GIVE_UP_MS + MINUTE + 1).contains(&waited),
        "{waited}"
    );
    assert!((20..40).contains(&polls), "{polls} polls with growing pauses");
}

#[test]
fn replies_come_in_the_order_in_which_steps_end() {
    let images = r#"{"images":["a/b:c"]}"#;
    let orders: HashSet<Vec<String>> = (0..50)
        .map(|index| {
            let mut bench = Bench {
                host: SimHost::new(Arc::new(setup()), index, START),
                now_ms: START,
            };
            bench.register();
            bench.expect(
                "poll",
                steps(&[("container-image-availability", &[images]), INVENTORY, NTP]),
            );
            let mut order = Vec::new();
            while order.len() < 3 {
                let request = bench.next();
                if kind(&request) == "poll" {
                    bench.give(request, steps(&[]));
                    continue;
                }
                order.push(body(&request)["step_type"].as_str().unwrap().to_owned());
                bench.give(request, response(204, json!(null)));
            }
            order
        })
        .collect();
    assert!(
        orders
            .iter()
            .all(|order| order[2] == "container-image-availability")
    );
    assert!(orders.len() > 1, "inventory and time checks overtake each other");
}

#[test]
fn a_second_image_check_answers_nothing_while_the_first_runs() {
    let args: &[&str] = &[r#"{"images":["a/b:c"]}"#];
    let mut bench = with_faults(&["slow-replies:1:10m"]);
    bench.register();
    bench.expect("poll", steps(&[("container-image-availability", args)]));
    bench.expect("poll", steps(&[("container-image-availability", args)]));
    let mut outputs = Vec::new();
    while outputs.len() < 2 {
        let request = bench.next();
        if kind(&request) == "reply" {
            outputs.push(body(&request).get("output").is_some());
        }
        bench.give(request, steps(&[]));
    }
    outputs.sort_unstable();
    assert_eq!(outputs, [false, true]);
}

#[test]
fn unknown_steps_and_bad_arguments_fail() {
    let mut bench = bench(setup());
    bench.register();
    let replies = bench.round(
        steps(&[("make-coffee", &["now"]), ("domain-resolution", &[])]),
        204,
    );
    assert_eq!(replies.len(), 2);
    assert!(
        replies.iter().all(|reply| reply["exit_code"] == -1),
        "{replies:?}"
    );
    assert!(words(&replies).contains(&"make-coffee"));
}

#[test]
fn an_upgraded_agent_registers_with_its_new_version() {
    let mut bench = bench(setup());
    bench.register();
    let replies = bench.expect(
        "poll",
        steps(&[("upgrade-agent", &[r#"{"agent_image":"agent:2"}"#])]),
    );
    assert_eq!(replies.agent_version.as_deref(), Some("agent:1"));
    let reply = bench.expect("reply", response(204, json!(null)));
    assert!(body(&reply)["output"].as_str().unwrap().contains("success"));
    let register = bench.next();
    assert_eq!(body(&register)["discovery_agent_version"], "agent:2");
}

#[test]
fn a_silent_host_stops_and_may_come_back() {
    let mut gone = with_faults(&["silent:1:90s"]);
    gone.register();
    gone.round(steps(&[]), 204);
    gone.round(steps(&[]), 204);
    assert!(gone.next_before(u64::MAX).is_none());

    let mut back = with_faults(&["silent:1:90s:10m"]);
    back.register();
    back.round(steps(&[]), 204);
    back.round(steps(&[]), 204);
    back.expect("poll", steps(&[]));
    assert_eq!(back.now_ms, START + 90_000 + 10 * MINUTE);
}

#[test]
fn lost_and_doubled_replies_do_as_they_say() {
    let mut lost = with_faults(&["lost-replies:1:100%"]);
    lost.register();
    assert!(lost.round(steps(&[INVENTORY, NTP]), 204).is_empty());

    let mut doubled = with_faults(&["doubled-replies:1"]);
    doubled.register();
    let replies = doubled.round(steps(&[INVENTORY]), 204);
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[0], replies[1]);
}

#[test]
fn lost_media_fails_every_step() {
    let mut bench = with_faults(&["media-loss:1:30s"]);
    bench.register();
    assert_eq!(bench.round(steps(&[NTP]), 204)[0].get("exit_code"), None);
    for _ in 0..2 {
        assert_eq!(bench.round(steps(&[NTP]), 204)[0]["exit_code"], 256);
    }
}

#[test]
fn a_skewed_clock_and_a_flapping_inventory_are_seen_by_the_hub() {
    let mut bench = with_faults(&["clock-skew:1:-5m", "flapping-inventory:1:2m"]);
    bench.register();
    let poll = bench.expect("poll", steps(&[]));
    assert!(poll.path.ends_with(&format!("timestamp={}", START / 1000 - 300)));
    let sent: Vec<usize> = (0..6)
        .map(|_| bench.round(steps(&[INVENTORY]), 204).len())
        .collect();
    assert!(
        sent.iter().sum::<usize>() >= 3,
        "it changes every other round: {sent:?}"
    );
}

#[test]
fn cloned_boards_share_an_id_but_not_their_network_cards() {
    let faults = vec!["dup-uuid:2".parse().unwrap()];
    let setup = Arc::new(Setup { faults, ..setup() });
    let hosts: Vec<SimHost> = (0..3)
        .map(|index| SimHost::new(setup.clone(), index, START))
        .collect();
    assert_eq!(hosts[0].id(), hosts[1].id());
    assert_ne!(hosts[0].id(), hosts[2].id());
    assert_ne!(hosts[0].machine().mac(0), hosts[1].machine().mac(0));
}

#[test]
fn the_poll_override_scales_all_pauses() {
    let mut bench = bench(Setup {
        poll_ms: Some(1_000),
        ..setup()
    });
    bench.register();
    bench.expect("poll", steps(&[INVENTORY]));
    let polled_at = bench.now_ms;
    bench.expect("reply", response(204, json!(null)));
    bench.expect("poll", steps(&[]));
    assert_eq!(bench.now_ms, polled_at + 1_000);
}

/// All requests of a host in its first hours, as bytes.
fn life(seed: u64) -> Vec<u8> {
    let mut bench = bench(Setup { seed, ..setup() });
    let mut bytes = Vec::new();
    for round in 0..200u16 {
        let request = bench.next();
        bytes.extend(request.path.as_bytes());
        bytes.extend(request.request_id.as_bytes());
        bytes.extend(&request.body);
        let outcome = match (kind(&request), round % 7) {
            (_, 6) => Outcome::Lost,
            ("register", _) => registration(&bench.host),
            ("poll", _) => steps(&[INVENTORY, NTP]),
            _ => response(204, json!(null)),
        };
        bench.give(request, outcome);
    }
    bytes
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert_eq!(life(5), life(5));
    assert_ne!(life(5), life(6));
}

#[test]
fn a_hundred_thousand_hosts_differ_and_fit_in_60_mb() {
    // With a cache of two answers (64 bytes) and an entry in the heap of wake-ups (24 bytes), a host stays below 300.
    assert!(size_of::<SimHost>() <= 200, "{} bytes", size_of::<SimHost>());
    assert!((size_of::<SimHost>() + 64 + 24) * 100_000 < 60_000_000);
    let setup = Arc::new(setup());
    let (mut ids, mut macs, mut addresses) = (HashSet::new(), HashSet::new(), HashSet::new());
    for index in 0..100_000 {
        let machine = SimHost::new(setup.clone(), index, START).machine();
        assert!(ids.insert(machine.id()), "host {index} has the id of another");
        assert!(
            (0..4).all(|nic| macs.insert(machine.mac(nic))),
            "host {index} has the MAC of another"
        );
        assert!(
            addresses.insert(machine.address()),
            "host {index} has the address of another"
        );
    }
}

#[test]
fn inventories_are_as_large_as_real_ones_and_name_a_default_route() {
    for profile in Profile::ALL {
        let setup = Arc::new(Setup {
            profile: Some(profile),
            ..setup()
        });
        let machine = SimHost::new(setup, 3, START).machine();
        let inventory = inventory::of(&machine, 0);
        let size = serde_json::to_vec(&inventory).unwrap().len();
        assert!((1_500..8_000).contains(&size), "{profile}: {size} bytes");
        assert!(
            inventory
                .routes
                .iter()
                .any(|route| route.destination == "0.0.0.0" && !route.gateway.is_empty())
        );
        assert_eq!(inventory.interfaces[0].name, inventory.routes[0].interface);
    }
}

#[test]
fn every_step_the_hub_may_send_is_answered_from_its_arguments() {
    let peer = json!([{"host_id": Uuid::from_u128(8), "nics": [{"name": "e", "mac": "aa", "ip_addresses": ["10.64.1.9"]},
        {"name": "f", "mac": "bb", "ip_addresses": null}]}])
    .to_string();
    let cases: &[(&str, &[&str], &str)] = &[
        (
            "connectivity-check",
            &[&peer],
            r#""remote_ip_address":"10.64.1.9","successful":true"#,
        ),
        ("free-network-addresses", &[r#"["10.64.0.0/24"]"#], "10.64.0.2"),
        (
            "ntp-synchronizer",
            &[r#"{"ntp_source":"a,b"}"#],
            r#""source_name":"a","source_state":"synced""#,
        ),
        (
            "domain-resolution",
            &[r#"{"domains":[{"domain_name":"api.x"}]}"#],
            "10.64.0.5",
        ),
        (
            "api-vip-connectivity-check",
            &[r#"{"url":"http://x"}"#],
            r#""is_success":true"#,
        ),
        (
            "tang-connectivity-check",
            &[r#"{"tang_servers":"[{\"url\":\"http://t\"}]"}"#],
            "http://t",
        ),
        (
            "installation-disk-speed-check",
            &[r#"{"path":"/dev/sda"}"#, "480.00"],
            r#""io_sync_duration":3"#,
        ),
        (
            "container-image-availability",
            &[r#"{"images":["i"]}"#],
            r#""result":"success""#,
        ),
        (
            "verify-vips",
            &[r#"[{"vip":"1.2.3.4","vip_type":"api"}]"#],
            "succeeded",
        ),
        (
            "dhcp-lease-allocate",
            &[r#"{"interface":"e","api_vip_mac":"a","ingress_vip_mac":"b"}"#],
            "10.64.0.1",
        ),
        ("download-boot-artifacts", &[r#"{"kernel_url":"k"}"#], ""),
        ("stop-installation", &[], ""),
    ];
    let machine = bench(setup()).host.machine();
    for (word, args, expected) in cases {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let answer = answer::answer(&machine, &job::Work::of(word), &args, Oddities::default());
        assert_eq!(answer.exit_code, 0, "{word}: {}", answer.error);
        assert!(answer.output.contains(expected), "{word}: {}", answer.output);
    }
}
