//! The reference page stands alone and shows everything.

use crate::door::Door;
use axum::http::{StatusCode, header};
use muster_hub::http::openapi;
use serde_json::Value;

#[tokio::test]
async fn the_root_leads_to_the_reference() {
    let door = Door::open().await;
    let answer = door.get("/").await;
    assert!(answer.status.is_redirection());
    assert_eq!(answer.headers[header::LOCATION], "/docs");
}

#[tokio::test]
async fn the_page_shows_every_operation_and_loads_nothing() {
    let door = Door::open().await;
    let answer = door.get("/docs").await;
    assert_eq!(answer.status, StatusCode::OK);
    let page = answer.text;
    for item in openapi::document()["paths"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_object)
    {
        for operation in item.values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }
    for forbidden in ["src=", "@import", "url(", "http://", "https://"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}

#[tokio::test]
async fn every_link_inside_the_page_has_a_target() {
    let door = Door::open().await;
    let page = door.get("/docs").await.text;
    for link in page
        .split("href=\"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
    }
}
