//! Additional trust bundles: PEM text in which every block must be an X.509 certificate.

use x509_parser::pem::Pem;

use super::error::{Checked, Invalid};
use super::schema;

pub const FIELD: &str = "additional_trust_bundle";
/// Column width of the reference; larger bundles do not fit the image anyway.
pub const LONGEST: usize = 65_535;

/// Returns the bundle without surrounding blanks; an empty one stays empty ("none").
pub fn trust_bundle(text: &str) -> Checked<String> {
    schema::length(FIELD, text, 0, LONGEST)?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(String::new());
    }
    let mut blocks = 0;
    for pem in Pem::iter_from_buffer(text.as_bytes()) {
        blocks += 1;
        let pem = pem.map_err(|_| broken(blocks, "cannot be read as PEM"))?;
        if pem.label != "CERTIFICATE" {
            return Err(broken(blocks, "is not a certificate"));
        }
        pem.parse_x509()
            .map_err(|_| broken(blocks, "does not hold a valid X.509 certificate"))?;
    }
    // The reader passes over text it does not know, so a half block would go unnoticed without counting.
    if blocks == 0 || blocks != text.matches("-----BEGIN ").count() {
        return Err(Invalid::rule(
            FIELD,
            "holds no complete PEM certificate",
            "give blocks from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----",
        ));
    }
    Ok(text.to_owned())
}

fn broken(block: usize, what: &str) -> Invalid {
    Invalid::rule(
        FIELD,
        format!("has a block (number {block}) that {what}"),
        "give only PEM certificates",
    )
}
