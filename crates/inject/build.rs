//! Tells the linker that the library is never to be unloaded: its thread and
//! the callbacks that the driver holds would run on in unmapped memory.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtracesmith_inject.so");
}
