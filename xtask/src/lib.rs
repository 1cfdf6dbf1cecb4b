//! What `cargo xtask up` and the chores share: child processes, waiting, where things are, packages, a running hub.

pub mod apt;
pub mod hub;
pub mod process;
pub mod project;
pub mod turn;
pub mod wait;

/// What the program `chores` does, and how its own help says it.
pub const CHORES: &[(&str, &str)] = &[
    (
        "test",
        "Check the formatting, the lints and every test, starting the servers they need",
    ),
    (
        "gen",
        "Write the generated documents: OpenAPI, CLI reference, states, CRDs, manifests",
    ),
    ("image", "Build the container image and write it as an archive"),
    (
        "replay",
        "Replay recordings against a hub and print the differences exchange by exchange",
    ),
    ("bench", "Measure"),
];
