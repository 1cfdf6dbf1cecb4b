//! Discovery images as overlays of byte ranges: a base image is kept once, and every InfraEnv's image is a list of
//! segments made in memory. Bytes in, bytes out: no database, no decisions.

pub mod base;
pub mod beside;
pub mod build;
pub mod catalog;
mod consoles;
pub mod cpio;
pub mod depot;
pub mod error;
pub mod iso;
pub mod layout;
pub mod network;
pub mod overlay;
pub mod remote;
pub mod serve;
pub mod source;

pub use catalog::{Catalog, OsImage};
pub use depot::Depot;
pub use error::ImageError;
pub use layout::Layout;
pub use overlay::Payload;
pub use remote::RemoteHub;
pub use serve::{Images, Settings};
