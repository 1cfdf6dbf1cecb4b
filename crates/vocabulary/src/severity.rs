//! How bad an event is, and for whom it is meant.

crate::words! {
    /// How serious it is.
    #[cfg_attr(feature = "openapi", schema(as = EventSeverity))]
    #[derive(Default)]
    pub enum Severity {
        #[default]
        Info = "info",
        Warning = "warning",
        Error = "error",
        Critical = "critical",
    }
}

crate::words! {
    /// Whom an event is about.
    #[cfg_attr(feature = "openapi", schema(as = EventCategory))]
    #[derive(Default)]
    pub enum Category {
        #[default]
        User = "user",
        // For statistics; shown only on request.
        Metrics = "metrics",
    }
}
