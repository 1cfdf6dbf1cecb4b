//! Texts and archives that boot a host into discovery: Ignition, iPXE scripts, kernel arguments, initrd files.

pub mod cpio;
pub mod ignition;
pub mod initrd;
pub mod ipxe;
pub mod kargs;
pub mod merge;
pub mod quote;
pub mod static_network;
mod units;

#[cfg(test)]
mod tests;
