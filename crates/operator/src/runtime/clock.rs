//! The time, in whole seconds as Kubernetes writes it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub fn now() -> Timestamp {
    seconds(Timestamp::now())
}

/// Fractions are lost on the way through the API; a time with one would never equal what comes back.
pub fn seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

pub fn time(at: Timestamp) -> Time {
    Time(seconds(at))
}
