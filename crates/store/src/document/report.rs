//! The versions of what is stored beside a host: texts that whoever asks for them parses.

use super::{left, newest};
use muster_domain::host::Report;
use serde_json::Value;

/// All kinds count together, so that one number says which program wrote a report; a step leaves alone what it is not about.
type Step = fn(Report, Value) -> Value;

const STEPS: &[Step] = &[];

pub(crate) const CURRENT: i64 = newest(STEPS);

/// The text as this program would have written it.
pub(crate) fn report(kind: Report, version: i64, text: &str) -> Result<String, String> {
    brought_up(STEPS, kind, version, text).map_err(|why| format!("of its report {}: {why}", kind.word()))
}

fn brought_up(steps: &'static [Step], kind: Report, version: i64, text: &str) -> Result<String, String> {
    let steps = left(version, steps)?;
    // A report that is no JSON counts as none wherever it is parsed: there is nothing to bring up to date.
    let old = (!steps.is_empty())
        .then(|| serde_json::from_str(text).ok())
        .flatten();
    Ok(match old {
        Some(old) => steps
            .iter()
            .fold(old, |report, step| step(kind, report))
            .to_string(),
        None => text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Version 1 had the list alone.
    fn named_list(kind: Report, report: Value) -> Value {
        match kind {
            Report::NtpSources => json!({ "ntp_sources": report }),
            Report::Inventory
            | Report::Connectivity
            | Report::DisksInfo
            | Report::ImagesStatus
            | Report::DomainNameResolutions
            | Report::ApiVipConnectivity
            | Report::TangConnectivity
            | Report::FreeAddresses
            | Report::Validations => report,
        }
    }

    const LATER: &[Step] = &[named_list];

    #[test]
    fn reports_are_brought_up_to_date_each_as_its_kind_needs_it() {
        let read = |kind, version, text| brought_up(LATER, kind, version, text);
        assert_eq!(
            read(Report::NtpSources, 1, "[]").unwrap(),
            r#"{"ntp_sources":[]}"#
        );
        assert_eq!(
            read(Report::NtpSources, 2, "[ ]").unwrap(),
            "[ ]",
            "as it was written"
        );
        assert_eq!(read(Report::Inventory, 1, "[]").unwrap(), "[]");
        assert_eq!(read(Report::Inventory, 1, "rubbish").unwrap(), "rubbish");
    }

    #[test]
    fn a_report_of_a_newer_program_is_named_and_not_read() {
        let told = report(Report::Inventory, CURRENT + 1, "secret").unwrap_err();
        assert!(
            told.contains("inventory") && told.contains("newer program"),
            "{told}"
        );
        assert!(!told.contains("secret"), "{told}");
    }
}
