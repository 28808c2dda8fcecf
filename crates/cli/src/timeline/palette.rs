//! A colour for each thing that streams and threads are busy with: those that every terminal has.

use anstyle::AnsiColor;
use tracesmith_trace::overview::ActivityKind;

/// The colour of an activity.
pub(crate) fn color(activity: ActivityKind) -> AnsiColor {
    match activity {
        ActivityKind::Kernel => AnsiColor::Green,
        ActivityKind::Communication => AnsiColor::Magenta,
        ActivityKind::Copy => AnsiColor::Yellow,
        ActivityKind::Set => AnsiColor::Blue,
        ActivityKind::Graph => AnsiColor::BrightGreen,
        ActivityKind::Sync => AnsiColor::Red,
        ActivityKind::Call => AnsiColor::Cyan,
        ActivityKind::Marker => AnsiColor::BrightBlue,
        ActivityKind::Host => AnsiColor::White,
    }
}
