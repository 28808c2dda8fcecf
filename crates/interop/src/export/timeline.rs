//! What the trace's timeline counts, in terms of other clocks.

use tracesmith_format::tables::{ClockKind, ClockPair};
use tracesmith_trace::Trace;
use tracesmith_trace::units::name_or_unknown;

/// What the clock of the timeline counts, in a word.
pub(super) fn clock_name(trace: &Trace) -> String {
    let reference = trace.clock_map.reference();
    let clock = trace.clocks.iter().find(|clock| clock.id == reference);
    name_or_unknown(clock.and_then(|clock| clock.kind.name())).to_owned()
}

/// The timeline's zero in nanoseconds since 1970, where the trace knows it: by the first reading of its clock beside
/// one that counts from there.
pub(super) fn epoch_nanos(trace: &Trace) -> Option<i128> {
    let reference = trace.clock_map.reference();
    let is_real = |id| {
        trace
            .clocks
            .iter()
            .any(|clock| clock.id == id && clock.kind == ClockKind::REALTIME)
    };
    if is_real(reference) {
        return Some(0);
    }
    trace.rows::<ClockPair>().iter().find_map(|pair| {
        let (ours, real) = if pair.first == reference && is_real(pair.second) {
            (pair.first_time, pair.second_time)
        } else if pair.second == reference && is_real(pair.first) {
            (pair.second_time, pair.first_time)
        } else {
            return None;
        };
        Some(i128::from(real.0) - i128::from(ours.0))
    })
}
