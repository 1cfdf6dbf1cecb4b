//! The lifecycle by tables, by its graph, and by laws over random histories.
