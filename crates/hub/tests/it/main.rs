//! The hub through its door, on a real store.

mod docs;
mod door;
mod events;
mod openapi;
mod simulation;
mod v1;
