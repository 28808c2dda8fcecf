//! What to do about errors of a session.

use tracesmith_replay::Error;

/// The hint for an error of the replay.
pub(super) fn hint(error: &anyhow::Error) -> Option<String> {
    let hint = match error.downcast_ref::<Error>()? {
        Error::NeedsDevice { .. } => "read it at a position in `readable`, or with `at` `begin` or `end`",
        Error::Replacement(_) => {
            "name the new kernel with `symbol`; --mode dry-run --replace checks it without a GPU"
        }
        error if error.is_fault() => "the session has ended; start another one",
        _ => return None,
    };
    Some(hint.to_owned())
}
