//! How many control plane nodes a version allows, and how that agrees with the old availability mode.

use super::error::{Checked, Invalid};
use super::schema;
use crate::catalog::Version;
use muster_vocabulary::HighAvailabilityMode;

/// The size of a control plane when nothing is said.
pub const DEFAULT_COUNT: i64 = 3;

/// Brings both fields together: `None` in the old field and a count of 1 mean the same.
pub fn control_plane(count: Option<i64>, mode: Option<&str>, version: &str) -> Checked<i64> {
    let mode = mode
        .map(|word| schema::word::<HighAvailabilityMode>("high_availability_mode", word))
        .transpose()?;
    let field = "control_plane_count";
    let count = match (count, mode) {
        (Some(count), Some(HighAvailabilityMode::None)) if count != 1 => {
            return Err(Invalid::rule(
                field,
                format!("is {count} although `high_availability_mode` is None"),
                "set it to 1 or drop the mode",
            ));
        }
        (Some(1), Some(HighAvailabilityMode::Full)) => {
            return Err(Invalid::rule(
                field,
                "is 1 although `high_availability_mode` is Full",
                "drop the mode, the count alone says it",
            ));
        }
        (Some(count), _) => count,
        (None, Some(HighAvailabilityMode::None)) => 1,
        (None, Some(HighAvailabilityMode::Full) | None) => DEFAULT_COUNT,
    };
    allowed(field, count, version)?;
    Ok(count)
}

fn allowed(field: &str, count: i64, version: &str) -> Checked {
    let version = Version::parse(version).unwrap_or_default();
    // Two nodes need an arbiter or fencing, which came with 4.19; four and five came with 4.18.
    let many = if version >= Version::new(4, 19) {
        2..=5
    } else if version >= Version::new(4, 18) {
        3..=5
    } else {
        3..=3
    };
    if count == 1 || many.contains(&count) {
        return Ok(());
    }
    let range = if many.start() == many.end() {
        many.start().to_string()
    } else {
        format!("{} to {}", many.start(), many.end())
    };
    Err(Invalid::rule(
        field,
        format!(
            "is {count}, which {}.{} cannot form",
            version.major, version.minor
        ),
        format!("use 1 for a single node or {range}"),
    ))
}
