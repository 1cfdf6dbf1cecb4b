//! How memory is had and given back.

use libmimalloc_sys::{mi_option_set_default, mi_option_t};

/// The hub and simulated fleets allocate all the time from all threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay`; the crate has no name for it.
const PURGE_DELAY: mi_option_t = 15;

/// Milliseconds. A second would be usual, and a hub that rests after a large list would never see it pass.
const SOON: std::ffi::c_long = 10;

/// To be called before there is a second thread. `MIMALLOC_PURGE_DELAY` in the environment wins.
#[expect(unsafe_code, reason = "options of the allocator are set by a C function")]
pub fn give_back_soon() {
    // SAFETY: it stores a number, and nobody else reads or writes options yet.
    unsafe { mi_option_set_default(PURGE_DELAY, SOON) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of options may move when the allocator is updated.
    #[test]
    #[expect(unsafe_code, reason = "options of the allocator are read by a C function")]
    fn the_option_is_still_the_one_that_is_meant() {
        // SAFETY: it reads a number that nobody writes here.
        let usual = unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(usual, 1000, "the delay that mimalloc has by itself");
    }
}
