//! The reference `cargo xtask bench hub` measures the hub against: the same HTTP server with handlers that do nothing.

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::routing::get;

/// About as long as the answer to a free host's poll.
const ANSWER: &str = r#"{"next_instruction_seconds":60,"post_step_action":"continue","instructions":[{"step_type":"inventory","step_id":"inventory-00000000","args":["00000000-0000-4000-8000-000000000000"]},{"step_type":"ntp-synchronizer","step_id":"ntp-synchronizer-00000000","args":["{\"ntp_source\":\"\"}"]}]}"#;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let answer = async || ([(header::CONTENT_TYPE, "application/json")], ANSWER);
    let read = async |_: Bytes| StatusCode::NO_CONTENT;
    let path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions";
    let router = Router::new().route(path, get(answer).post(read));
    muster_hub::http::server::serve(listener, router, std::future::pending()).await
}
