//! Everything about images from the outside: genuine CoreOS images in, bytes and HTTP replies out.

#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod bound;
mod built;
mod depot;
mod eras;
mod faults;
mod law;
mod loaders;
mod sample;
mod serving;
mod world;
