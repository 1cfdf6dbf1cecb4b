//! Texts and archives that boot a host into discovery or install it: Ignition, iPXE scripts, install config, kubeconfig.

pub mod host_ignition;
pub mod ignition;
pub mod initrd;
pub mod install_config;
pub mod ipxe;
pub mod kargs;
pub mod kubeconfig;
pub mod manifests;
pub mod merge;
pub mod olm;
pub mod quote;
pub mod single_node_names;
pub mod static_network;
mod units;

#[cfg(test)]
mod tests;
