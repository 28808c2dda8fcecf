//! The origin of a recording. A replay runs its kernels on this machine.

use std::fs;

use tracesmith_replay::Origin;

use crate::output::Output;

/// Warns if a recording was made on another machine.
pub(super) fn warn_if_recorded_elsewhere(origin: &Origin, output: &mut Output) {
    if is_recorded_elsewhere(origin) {
        output.warning(&format!(
            "recorded on another machine ({}): the replay runs its kernels on this machine, so use only files that you trust",
            if origin.name.is_empty() {
                "unknown"
            } else {
                &origin.name
            }
        ));
    }
}

/// Whether a recording was made on another machine.
pub(super) fn is_recorded_elsewhere(origin: &Origin) -> bool {
    is_elsewhere(origin, &here())
}

/// This machine, as described in recordings.
fn here() -> Origin {
    let machine_id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    Origin {
        name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        machine_id: machine_id.trim().to_owned(),
    }
}

/// Host names are not unique, especially in containers. If both machines have a machine ID, it decides.
fn is_elsewhere(origin: &Origin, here: &Origin) -> bool {
    if origin.machine_id.is_empty() || here.machine_id.is_empty() {
        return origin.name != here.name;
    }
    origin.machine_id != here.machine_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart_by_their_number_or_else_by_their_name() {
        let machine = |name: &str, machine_id: &str| Origin {
            name: name.to_owned(),
            machine_id: machine_id.to_owned(),
        };
        assert!(!is_elsewhere(&machine("a", "1"), &machine("b", "1")));
        assert!(is_elsewhere(&machine("a", "1"), &machine("a", "2")));
        assert!(is_elsewhere(&machine("a", ""), &machine("b", "2")));
        assert!(!is_elsewhere(&machine("a", ""), &machine("a", "2")));
        assert!(!is_elsewhere(&here(), &here()));
    }
}
