//! The one table over all operations: nothing that listens answers without a line in it.

mod hub;
mod images;
mod v1;
mod v2;

use super::operation::{Action, Carrier, Machines, Method, Operation};

/// People only.
const PEOPLE: &[Carrier] = &[Carrier::Authorization];
/// Machines only.
const MACHINES: &[Carrier] = &[Carrier::SecretKey];
const PEOPLE_OR_MACHINES: &[Carrier] = &[Carrier::Authorization, Carrier::SecretKey];
/// With a machine's token in an address that was given to a person.
const PEOPLE_OR_LINK: &[Carrier] = &[Carrier::Authorization, Carrier::ApiKey];
const PEOPLE_MACHINES_OR_LINK: &[Carrier] = &[Carrier::Authorization, Carrier::SecretKey, Carrier::ApiKey];

const fn row(
    id: &'static str,
    method: Method,
    path: &'static str,
    action: Action,
    machines: Machines,
    carriers: &'static [Carrier],
) -> Operation {
    Operation {
        id,
        method,
        path,
        action,
        machines,
        carriers,
    }
}

/// For people only.
const fn people(id: &'static str, method: Method, path: &'static str, action: Action) -> Operation {
    row(id, method, path, action, Machines::NoOne, PEOPLE)
}

/// For machines only.
const fn machines(id: &'static str, method: Method, path: &'static str, machines: Machines) -> Operation {
    row(id, method, path, Action::Report, machines, MACHINES)
}

/// Operations that the OpenAPI document describes.
pub fn documented() -> impl Iterator<Item = &'static Operation> {
    v2::TABLE.iter().chain(v1::TABLE)
}

pub fn all() -> impl Iterator<Item = &'static Operation> {
    documented()
        .chain(v2::NOT_OFFERED)
        .chain(hub::TABLE)
        .chain(images::TABLE)
}

/// The line of an operation. Whoever serves an operation asks as it starts, and does not start without an answer.
pub fn find(id: &str) -> Option<&'static Operation> {
    all().find(|operation| operation.id == id)
}

/// The same by method and path, as routes are written.
pub fn find_route(method: &str, path: &str) -> Option<&'static Operation> {
    let method = if method == "HEAD" { "GET" } else { method };
    all().find(|operation| operation.path == path && operation.method.word() == method)
}

/// The line of a path that is an image's, whatever follows its beginning.
pub fn find_image(path: &str) -> Option<&'static Operation> {
    images::TABLE
        .iter()
        .find(|operation| path.starts_with(operation.path.trim_end_matches(images::REST)))
}
