#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tracesmith_interop::fuzz::import_any("chrome", data));
