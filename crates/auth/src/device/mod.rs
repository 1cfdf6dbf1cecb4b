//! Logging in from a terminal (RFC 8628): the messages, and when to ask again. Whoever uses this sends them.

mod message;
mod polling;

pub use message::{BadAnswer, DeviceAnswer, Form, Secret, Tokens, ask_for_device, ask_for_tokens, refresh};
pub use polling::{GivenUp, Outcome, Polling, Turn};

#[cfg(test)]
mod tests;
