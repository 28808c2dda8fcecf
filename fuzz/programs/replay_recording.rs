#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tracesmith_replay::fuzz::recording(data));
