//! Request files, whatever their bytes.
#![no_main]

#[path = "../checks.rs"]
#[allow(dead_code, reason = "each target uses one of them")]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::request(bytes));
