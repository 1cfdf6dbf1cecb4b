//! The JSON that hub and agents exchange inside strings: step arguments, replies and the inventory.
//!
//! Reading ignores fields it does not know, because agents are newer and older than the hub.

pub mod args;
pub mod inventory;
pub mod replies;
