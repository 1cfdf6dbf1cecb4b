//! Images and what machines boot with.

use super::row;
use crate::access::operation::{Action, Carrier, Machines, Method, Operation};

/// How routes write that anything may follow.
pub(super) const REST: &str = "{*rest}";

const SHOWN: &[Carrier] = &[
    Carrier::Authorization,
    Carrier::ApiKey,
    Carrier::ImageToken,
    Carrier::ImageTokenQuery,
];
/// A key in the query goes before a token in the path.
const TOKEN: &[Carrier] = &[Carrier::Path, Carrier::ApiKey];
const PATH: &[Carrier] = &[Carrier::Path];

const fn image(id: &'static str, path: &'static str, carriers: &'static [Carrier]) -> Operation {
    row(
        id,
        Method::Get,
        path,
        Action::ReadImage,
        Machines::Media,
        carriers,
    )
}

pub(super) const TABLE: &[Operation] = &[
    image("imageById", "/byid/{*rest}", SHOWN),
    image("imageByToken", "/bytoken/{*rest}", TOKEN),
    image("imageByApiKey", "/byapikey/{*rest}", PATH),
    image("imageOfInfraEnv", "/images/{*rest}", SHOWN),
    image("imageByShortPath", "/i/{*rest}", PATH),
    // Parts of base images, the same for everybody: firmware and early user space fetch them without any token.
    row(
        "bootArtifact",
        Method::Get,
        "/boot-artifacts/{*rest}",
        Action::Open,
        Machines::NoOne,
        &[],
    ),
];
