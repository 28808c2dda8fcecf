#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    tracesmith_stacks::fuzz::walk(data);
});
