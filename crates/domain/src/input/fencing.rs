//! Credentials of a host's management controller, used to fence it in two-node clusters.

use muster_vocabulary::{CertificateVerification, Word};
use serde::{Deserialize, Serialize};

use super::address;
use super::error::{Checked, Invalid};
use super::schema;

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FencingCredentials {
    pub address: String,
    pub username: String,
    pub password: String,
    #[serde(default = "enabled")]
    pub certificate_verification: Word<CertificateVerification>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

fn enabled() -> Word<CertificateVerification> {
    CertificateVerification::Enabled.into()
}

/// Written by hand so that the credentials never reach a log through `{:?}`.
impl std::fmt::Debug for FencingCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FencingCredentials")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

pub fn fencing(credentials: &FencingCredentials) -> Checked {
    let field = |name: &str| format!("fencing_credentials.{name}");
    let filled = [
        ("address", &credentials.address),
        ("username", &credentials.username),
        ("password", &credentials.password),
    ];
    if let Some((name, _)) = filled.iter().find(|(_, value)| value.trim().is_empty()) {
        return Err(Invalid::schema(
            field(name),
            "is empty",
            "give address, username and password together",
        ));
    }
    schema::word::<CertificateVerification>(
        &field("certificate_verification"),
        credentials.certificate_verification.as_str(),
    )?;
    if credentials
        .address
        .chars()
        .any(|c| c.is_whitespace() || c.is_control())
    {
        return Err(Invalid::rule(
            field("address"),
            "holds blanks",
            "give the address of the management controller as one word",
        ));
    }
    match credentials.mac_address.as_deref().filter(|mac| !mac.is_empty()) {
        Some(mac) => address::mac(&field("mac_address"), mac).map(|_| ()),
        None => Ok(()),
    }
}
