//! What a compiler process calls TTIR.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(module) = tilewright_ttir::parse(text) {
        // What cannot be verified is an error, not a panic.
        let _ = tilewright_ttir::verify(&module);
    }
});
