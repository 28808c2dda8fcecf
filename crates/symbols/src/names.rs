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
    cpp(name).unwrap_or_else(|| name.to_owned())
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new(name).ok()?; // not a name of C++
    let mut bounded = Bounded(String::new());
    let options = DemangleOptions::new();
    symbol.structured_demangle(&mut bounded, &options).ok()?; // too long
    // A part that the compiler split off, or a clone, counts as the function itself.
    if let Some(clone) = bounded.0.find(" [clone ") {
        bounded.0.truncate(clone);
    }
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
}
