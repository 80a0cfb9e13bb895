//! Any bytes at all.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    tilewright_fuzz::screen(bytes);
});
