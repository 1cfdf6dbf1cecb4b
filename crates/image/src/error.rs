//! What can go wrong between a base image and a discovery image.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file cannot serve as a base image; the text says what is missing or broken.
    #[error("cannot use this as a base image: {0}")]
    BadBase(String),
    /// The base image is fine but has no such part.
    #[error("this base image has no {0}")]
    Absent(&'static str),
    #[error("{what} takes {have} bytes but the image has room for {room}")]
    TooLarge {
        what: &'static str,
        have: u64,
        room: u64,
    },
    #[error("cannot read the base image")]
    Io(#[from] io::Error),
}

impl ImageError {
    pub(crate) fn bad(text: impl Into<String>) -> ImageError {
        ImageError::BadBase(text.into())
    }
}
