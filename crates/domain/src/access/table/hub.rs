//! What the hub serves beside its APIs.

use super::{people, row};
use crate::access::operation::{Action, Machines, Method, Operation};

const fn open(id: &'static str, path: &'static str) -> Operation {
    row(id, Method::Get, path, Action::Open, Machines::NoOne, &[])
}

pub(super) const TABLE: &[Operation] = &[
    open("livez", "/livez"),
    open("isReady", "/ready"),
    open("readyz", "/readyz"),
    open("health", "/health"),
    open("start", "/"),
    open("docs", "/docs"),
    open("openapi", "/openapi.json"),
    open("openapiBelowBase", "/api/assisted-install/openapi"),
    open("openapiOfV2", "/api/assisted-install/v2/openapi"),
    people("metrics", Method::Get, "/metrics", Action::Watch),
];
