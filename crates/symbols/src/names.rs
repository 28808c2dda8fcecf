//! Demangles names.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// The longest name. A name that refers to parts of itself can grow exponentially.
const MAX_BYTES: usize = 16 << 10;

/// The demangled Rust or C++ name. Other names stay unchanged.
pub(crate) fn demangled(name: &str) -> String {
    // A C++ demangler accepts old Rust names, too, so try Rust first.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let mut bounded = Bounded(String::new());
        if write!(bounded, "{rust:#}").is_ok() {
            return bounded.0;
        }
    }
    let Some(mut readable) = demangle_cpp(name) else {
        return name.to_owned();
    };
    // A part that the compiler moved away, or a copy that it made, is the function all the same.
    if let Some(clone) = readable.find(" [clone ") {
        readable.truncate(clone);
    }
    readable
}

/// The name that a C++ compiler mangled to this one. None if it is no such name, or longer than 16 KiB.
pub fn demangle_cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new(name).ok()?; // not a name of C++
    let mut bounded = Bounded(String::new());
    let options = DemangleOptions::new();
    symbol.structured_demangle(&mut bounded, &options).ok()?; // too long
    Some(bounded.0)
}

/// A string with a maximum length.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_languages_are_read() {
        assert_eq!(demangled("_ZN2at6native3addEv"), "at::native::add()");
        assert_eq!(
            demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(demangled("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangled("_Z4stepi.cold"), "step(int)");
        for plain in ["main", "_Z", "_Znonsense", "", "_R"] {
            assert_eq!(demangled(plain), plain);
        }
    }

    #[test]
    fn mangled_names_become_readable() {
        let kernel = demangle_cpp("_Z17layer_norm_kernelPKfPf");
        assert_eq!(kernel.as_deref(), Some("layer_norm_kernel(float const*, float*)"));
        for other in ["main", "saxpy", "", "_Z", "_Znonsense", "_ZZZZZZ"] {
            assert_eq!(demangle_cpp(other), None, "{other}");
        }
    }

    #[test]
    fn names_that_explode_are_left_alone() {
        let mut name = "_Z1fP1a".to_owned();
        for _ in 0..200 {
            name += "FS_S_S_E";
        }
        let _ = demangle_cpp(&name);
        assert_eq!(demangle_cpp(&format!("_Z{}", "P".repeat(100_000))), None);
    }
}
