//! Installations in which something goes wrong: nobody is stuck without a reason and a next action, nobody is lost.

mod checks;
mod crashes;
mod deletes;
mod limits;
mod messages;
mod restarts;
mod stages;
mod stops;
