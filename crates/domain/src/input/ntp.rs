//! Time sources: comma lists of names or addresses, in one of two fields that exclude each other.

use std::net::IpAddr;

use super::error::{Checked, Invalid, quoted};
use super::name::is_dns_name;

/// A comma list; an empty text is an empty list.
pub fn ntp_sources(field: &str, text: &str) -> Checked<Vec<String>> {
    let entries = text.split(',').map(str::trim).filter(|_| !text.trim().is_empty());
    entries
        .map(|entry| {
            if entry.parse::<IpAddr>().is_ok() || is_dns_name(entry) {
                return Ok(entry.to_owned());
            }
            Err(Invalid::rule(
                field,
                format!("has an entry that is no host name or address ({})", quoted(entry)),
                "list names or addresses separated by commas",
            ))
        })
        .collect()
}

/// `replacing` takes the place of the image's time sources, `additional` is put beside them: only one makes sense.
pub fn not_both(additional: (&str, &str), replacing: (&str, &str)) -> Checked {
    let ((additional_field, additional), (replacing_field, replacing)) = (additional, replacing);
    if additional.is_empty() || replacing.is_empty() {
        return Ok(());
    }
    Err(Invalid::rule(
        replacing_field,
        format!("is set together with `{additional_field}`"),
        format!(
            "keep `{replacing_field}` to replace the built-in time sources or `{additional_field}` to add to them"
        ),
    ))
}
