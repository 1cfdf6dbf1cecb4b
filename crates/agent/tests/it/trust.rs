//! Whose certificates the agent believes.

use crate::world::*;
use muster_agent::http::{Trust, client};
use serde_json::json;
use std::sync::Arc;

#[test]
fn the_trust_bundle_of_the_infra_env_is_believed() {
    let url = serve_tls(Arc::default(), Arc::new(|_: &Request| status(204)));
    let world = World::new();
    let ask = || client(&Trust::of(&world.settings())).unwrap().get(&url).call();
    let stranger = ask().unwrap_err();
    assert!(stranger.to_string().contains("UnknownIssuer"), "{stranger}");
    let bundle = "/etc/pki/ca-trust/source/anchors/assisted-infraenv-additional-trust-bundle.pem";
    let encoded: String = AUTHORITY.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let file = json!({"path": bundle, "contents": {"source": format!("data:,{encoded}")}});
    world.file("config.ign", json!({"storage": {"files": [file]}}).to_string());
    assert_eq!(ask().unwrap().status().as_u16(), 204);
}
