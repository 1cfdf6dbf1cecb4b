//! How the operators of a cluster are doing.

crate::words! {
    /// How an operator is doing.
    pub enum OperatorStatus {
        Failed = "failed",
        Progressing = "progressing",
        Available = "available",
    }
}
