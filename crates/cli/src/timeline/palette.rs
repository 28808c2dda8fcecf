//! A colour for each thing that streams and threads are busy with: those that every terminal has.

use anstyle::AnsiColor;
use tracesmith_trace::overview::Activity;

/// The colour of an activity.
pub(crate) fn color(activity: Activity) -> AnsiColor {
    match activity {
        Activity::Kernel => AnsiColor::Green,
        Activity::Communication => AnsiColor::Magenta,
        Activity::Copy => AnsiColor::Yellow,
        Activity::Set => AnsiColor::Blue,
        Activity::Graph => AnsiColor::BrightGreen,
        Activity::Sync => AnsiColor::Red,
        Activity::Call => AnsiColor::Cyan,
        Activity::Marker => AnsiColor::BrightBlue,
        Activity::Host => AnsiColor::White,
    }
}
