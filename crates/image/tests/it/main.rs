//! Everything about images from the outside: genuine CoreOS images in, bytes and HTTP replies out.

mod eras;
mod sample;
