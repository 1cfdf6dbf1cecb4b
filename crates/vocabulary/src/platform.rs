//! What a cluster runs on.

crate::words! {
    /// Where a cluster runs.
    #[derive(Default)]
    pub enum PlatformType {
        #[default]
        Baremetal = "baremetal",
        Nutanix = "nutanix",
        Vsphere = "vsphere",
        None = "none",
        External = "external",
    }
}
