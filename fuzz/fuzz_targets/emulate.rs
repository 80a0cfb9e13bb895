//! Kernels that are nearly real, launched.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_fuzz::kernel::{Edited, emulate};

fuzz_target!(|edited: Edited| {
    emulate(&edited);
});
