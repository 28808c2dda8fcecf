//! Links the shared object so that `dlclose` never unmaps it: its threads would run on in memory that is gone.
//! The real driver stays for the same reason.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
