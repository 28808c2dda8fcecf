//! A process whose own libraries lie where they do in every run.

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::personality::{self, Persona};

/// Set in the process that has its addresses where they are in every run.
const SETTLED: &str = "TRACESMITH_SETTLED";

/// Starts this program again without random addresses, so that its own libraries lie where they do in every run and
/// recorded addresses are free. Where that is not allowed it goes on: they mostly are.
pub(crate) fn reexec_without_aslr() {
    if std::env::var_os(SETTLED).is_some() || !fix_addresses() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // Comes back only when it fails, and then there is nothing to say.
    let _ = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(SETTLED, "1")
        .exec();
}

/// Programs that are started from now on have no random addresses. False when they had none already, or always will.
pub(super) fn fix_addresses() -> bool {
    let Ok(persona) = personality::get() else {
        return false;
    };
    let is_fixed = persona.contains(Persona::ADDR_NO_RANDOMIZE);
    !is_fixed && personality::set(persona | Persona::ADDR_NO_RANDOMIZE).is_ok()
}
