//! How the operators of a cluster are doing.

crate::words! {
    /// The state of an operator.
    pub enum OperatorStatus {
        Failed = "failed",
        Progressing = "progressing",
        Available = "available",
    }
}
