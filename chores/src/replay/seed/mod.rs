//! Seeds: what a recording that begins in the middle takes for granted, brought about by ordinary requests.
//!
//! Known limits: only what the answers show (or what a refused delete implies) is seeded; hosts are taken no
//! further than a bound host before installation; settings are those of the views, not their history, so
//! lists of events differ; the pull secret is a dummy.

mod plan;
mod sow;

pub use sow::sow;
