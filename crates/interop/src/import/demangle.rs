//! Names of C++ functions for people.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// Longest name: one that repeats itself by reference can grow without end.
const MAX_BYTES: usize = 16 << 10;

/// The name that the compiler mangled to this one; none if it is no such name.
pub(super) fn demangled(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new(name).ok()?; // what does not parse is no mangled name
    let mut bounded = Bounded(String::new());
    symbol
        .structured_demangle(&mut bounded, &DemangleOptions::new())
        .ok()?; // too long for people to read
    Some(bounded.0)
}

/// A string that refuses to grow beyond its bound.
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
    fn mangled_names_become_readable_and_others_stay() {
        assert_eq!(demangled("_Z4worki").as_deref(), Some("work(int)"));
        for other in ["main", "", "_Z", "_Znonsense"] {
            assert_eq!(demangled(other), None, "{other}");
        }
    }
}
