//! The device seems idle, and works on what was launched before the recording began.

use super::{Facts, Finding, percent};
use crate::analysis::idle::IdleCause;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((device, idle, _)) = facts.idle_worth(IdleCause::BeforeRecording, WORTH) else {
        return Vec::new();
    };
    let evidence = device.gaps_of(IdleCause::BeforeRecording);
    let last = evidence.iter().map(|gap| gap.end_ns).max().unwrap_or(0);
    let span = facts.trace.span().map(|(first, last)| (first.0, last.0));
    vec![Finding {
        rule: "before_recording",
        sentence: format!(
            "{} of the time {} has no work in the trace, because it finishes work that was launched before the \
             recording began ({})",
            percent(idle, facts.span_ns),
            device.name(),
            units::nanos(idle)
        ),
        advice: format!(
            "This is not idle time of the program: analyze the time after it with --from {}",
            units::time_argument(span, last)
        )
        .into(),
        assumption: "the first work of a stream waits only for earlier work",
        saves_ns: None,
        saves_share: None,
        evidence,
    }]
}
