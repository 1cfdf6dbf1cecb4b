//! Tests of the host checks.

mod fixture;
mod sets;
mod sizes;
mod verdicts_by_check;
