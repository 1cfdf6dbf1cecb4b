//! Tests of the host checks.

mod fixture;
mod sets;
mod verdicts_by_check;
