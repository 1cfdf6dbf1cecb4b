//! The agent against a hub that plays a script over real HTTP, on a clock that only moves when the agent sleeps.

mod faults;
mod installation;
mod protocol;
mod steps;
mod world;
