#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    tracesmith_symbols::fuzz::cache_entry(data);
});
