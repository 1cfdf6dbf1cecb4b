//! Who is woken, and how many clusters are watched. No cluster is asked here.

use super::*;
use kube::Config;

fn key(name: &str) -> Key {
    Key::new("n", name)
}

fn client() -> Client {
    Client::try_from(Config::new("https://192.0.2.1".parse().unwrap())).unwrap()
}

/// As reconciling the Agent does it.
fn watch_node(joining: &Joining, cluster: &str, made_from: u64, agent: &str) -> NodeWatch {
    let (cluster, agent, node) = (key(cluster), key(agent), format!("{agent}.example.com"));
    match joining.go_on(&cluster, made_from, &agent, &node) {
        Some(node_watch) => node_watch,
        None => joining.begin(&cluster, made_from, client(), &agent, &node),
    }
}

fn number(joining: &Joining, cluster: &str) -> u64 {
    joining.state().clusters[&key(cluster)].number
}

#[tokio::test]
async fn a_cluster_is_watched_once_for_all_that_join_it_and_until_the_last_one_is_done() {
    let joining = Joining::default();
    assert_eq!(
        watch_node(&joining, "blue", 1, "a"),
        NodeWatch::None,
        "it only begins"
    );
    watch_node(&joining, "blue", 1, "b");
    watch_node(&joining, "green", 1, "c");
    assert_eq!(joining.len(), 2);
    let mut placed = joining.take_orders().unwrap();
    let mut first = placed.try_recv().unwrap();
    let asked = (first.watched.cluster.clone(), first.watched.number);
    assert_eq!(asked, (key("blue"), number(&joining, "blue")));
    assert_eq!(placed.try_recv().unwrap().watched.cluster, key("green"));
    assert!(placed.try_recv().is_err(), "one watch per cluster");
    joining.leave(&key("a"));
    joining.leave(&key("a"));
    assert_eq!(joining.len(), 2);
    assert_eq!(first.stop.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    joining.leave(&key("b"));
    assert_eq!(joining.len(), 1);
    assert_eq!(first.stop.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    // The host goes to another cluster.
    watch_node(&joining, "red", 1, "c");
    assert_eq!(joining.state().clusters.keys().collect::<Vec<_>>(), [&key("red")]);
    joining.leave_all();
    assert!(joining.is_empty());
}

#[tokio::test]
async fn those_that_join_are_woken_when_the_watch_goes_otherwise_and_when_it_is_about_their_node() {
    let joining = Joining::default();
    watch_node(&joining, "blue", 1, "a");
    watch_node(&joining, "blue", 1, "b");
    let number = number(&joining, "blue");
    let turn = |phase: Phase| {
        let mut woken = joining.turn(&key("blue"), number, phase);
        woken.sort();
        woken
    };
    assert_eq!(turn(Phase::Watches), [key("a"), key("b")]);
    assert_eq!(turn(Phase::Watches), [], "that is no news");
    assert_eq!(watch_node(&joining, "blue", 1, "a"), NodeWatch::Running);
    let called = |node: &str| joining.called(&key("blue"), number, node);
    assert_eq!(called("a.example.com"), [key("a")]);
    assert_eq!(called("A"), [key("a")], "nodes may go by the short name");
    assert_eq!(called("c"), []);
    assert_eq!(called(""), []);
    assert_eq!(turn(Phase::Begins), [key("a"), key("b")]);
    assert_eq!(watch_node(&joining, "blue", 1, "a"), NodeWatch::None);
}

#[tokio::test]
async fn that_a_cluster_refuses_is_said_once_to_each() {
    let joining = Joining::default();
    watch_node(&joining, "blue", 1, "a");
    let number = number(&joining, "blue");
    let refused = Phase::Refused("forbidden".into());
    assert_eq!(joining.turn(&key("blue"), number, refused), [key("a")]);
    for agent in ["a", "b"] {
        assert_eq!(
            watch_node(&joining, "blue", 1, agent),
            NodeWatch::Refused("forbidden".into())
        );
        assert_eq!(watch_node(&joining, "blue", 1, agent), NodeWatch::None);
    }
}

#[tokio::test]
async fn another_kubeconfig_makes_another_watch_with_all_that_join() {
    let joining = Joining::default();
    watch_node(&joining, "blue", 1, "a");
    watch_node(&joining, "blue", 1, "b");
    let old = number(&joining, "blue");
    watch_node(&joining, "blue", 2, "a");
    let new = number(&joining, "blue");
    assert_eq!(joining.turn(&key("blue"), old, Phase::Watches), [], "it is over");
    assert_eq!(joining.called(&key("blue"), old, "a"), []);
    assert_eq!(joining.turn(&key("blue"), new, Phase::Watches).len(), 2);
    assert_eq!(joining.len(), 1);
}

#[tokio::test]
async fn there_is_a_limit_to_clusters_that_are_watched_at_a_time() {
    let joining = Joining::default();
    for index in 0..MOST + 1 {
        watch_node(&joining, &format!("cluster-{index}"), 1, &format!("a{index}"));
    }
    assert_eq!(joining.len(), MOST);
    joining.leave(&key("a0"));
    watch_node(&joining, "late", 1, "late");
    assert_eq!(joining.len(), MOST);
}
