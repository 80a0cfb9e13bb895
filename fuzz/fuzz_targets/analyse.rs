//! Candidates that are nearly real: lines and words of real ones, edited.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_fuzz::{Candidate, stable};

fuzz_target!(|candidate: Candidate| {
    stable(&candidate.0);
});
