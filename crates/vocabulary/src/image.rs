//! How far the image service is with a base image.

crate::words! {
    /// How far a base image is, which discovery images are made of.
    pub enum BaseImageState {
        /// Nobody has asked for it yet.
        Absent = "absent",
        Fetching = "fetching",
        Importing = "importing",
        Ready = "ready",
        Failed = "failed",
    }
}
