//! Demangles kernel names.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// The longest name. A name that refers to parts of itself can grow exponentially.
const MAX_BYTES: usize = 16 << 10;

/// The demangled name. `None` if the name is not mangled.
pub(super) fn demangled(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new(name).ok()?;
    let mut bounded = Bounded(String::new());
    let options = DemangleOptions::new();
    symbol.structured_demangle(&mut bounded, &options).ok()?;
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
    fn mangled_names_become_readable() {
        assert_eq!(
            demangled("_Z17layer_norm_kernelPKfPf").unwrap(),
            "layer_norm_kernel(float const*, float*)"
        );
        for other in ["saxpy", "", "_Z", "_Znonsense", "_ZZZZZZ"] {
            assert_eq!(demangled(other), None, "{other}");
        }
    }

    #[test]
    fn names_that_explode_are_left_alone() {
        let mut name = "_Z1fP1a".to_owned();
        for _ in 0..200 {
            name += "FS_S_S_E";
        }
        let _ = demangled(&name);
        assert_eq!(demangled(&format!("_Z{}", "P".repeat(100_000))), None);
    }
}
