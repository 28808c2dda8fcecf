//! Restarts the process without address space layout randomization (ASLR).

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::personality::{self, Persona};

/// Set in the process without ASLR.
const SETTLED: &str = "TRACESMITH_SETTLED";

/// Restarts this program without ASLR, so that its libraries do not use recorded addresses. If this is not allowed,
/// it continues. The addresses are usually free anyway.
pub(crate) fn reexec_without_aslr() {
    if std::env::var_os(SETTLED).is_some() || !fix_addresses() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // Returns only on failure. Then the program continues.
    let _ = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(SETTLED, "1")
        .exec();
}

/// Disables ASLR for programs that are started from now on. Returns false if it was disabled already, or if that is
/// not possible.
pub(super) fn fix_addresses() -> bool {
    let Ok(persona) = personality::get() else {
        return false;
    };
    let is_fixed = persona.contains(Persona::ADDR_NO_RANDOMIZE);
    !is_fixed && personality::set(persona | Persona::ADDR_NO_RANDOMIZE).is_ok()
}
