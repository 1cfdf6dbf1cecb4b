//! Who may do what, decided in one place: [`may`] over one table of all operations, and [`Sight`] for lists.
//!
//! Roles are held within an organisation, except that of the admin. InfraEnvs belong to a user and an organisation, and are
//! run by the infrastructure admins of that organisation; hosts belong to whom their InfraEnv belongs. Clusters belong to the
//! user who made them; creators of the same organisation see them. Free hosts are offered to organisations. Secrets are read
//! by owners, and by no role alone.

mod caller;
mod facts;
mod judge;
mod machines;
mod operation;
mod people;
mod sight;
pub mod table;
mod verdict;

pub use caller::{Caller, Who};
pub use facts::{ClusterFacts, Facts, HostFacts, InfraEnvFacts, Offer, Owner, TokenFacts};
pub use judge::may;
pub use operation::{Action, Carrier, Machines, Method, Operation};
pub use sight::{PersonSight, Sight};
pub use verdict::{Reason, Verdict};

#[cfg(test)]
mod tests;
