//! Numbers of foreign files that cannot be taken as they are: used as far as they go, and counted.

use tracesmith_format::Timestamp;
use tracesmith_format::tables::HealthCause;

use crate::import::Builder;

/// What could not be used, by count.
#[derive(Default)]
pub(super) struct Doubts {
    pub(super) missing_times: u64,
    pub(super) backwards: u64,
    pub(super) out_of_range: u64,
    pub(super) unknown_names: u64,
}

impl Doubts {
    /// Start and end. One that ends before it starts keeps its start.
    #[inline]
    pub(super) fn forwards(&mut self, start: Timestamp, end: Timestamp) -> (Timestamp, Timestamp) {
        if end < start && end != Timestamp::NONE {
            self.backwards += 1;
            return (start, Timestamp::NONE);
        }
        (start, end)
    }

    /// A number that counts something; what does not fit reads as 0.
    #[inline]
    pub(super) fn number<T: TryFrom<i64> + Default>(&mut self, value: Option<i64>) -> T {
        let Some(value) = value else {
            return T::default();
        };
        T::try_from(value).unwrap_or_else(|_| {
            self.out_of_range += 1;
            T::default()
        })
    }

    /// Writes the counts into the trace.
    pub(super) fn note(self, builder: &mut Builder<'_, '_>) {
        builder.doubt(
            HealthCause::ZERO_TIME,
            "times that are missing",
            self.missing_times,
        );
        builder.doubt(
            HealthCause::ZERO_TIME,
            "events that end before they start, kept without an end",
            self.backwards,
        );
        builder.doubt(HealthCause::OTHER, "numbers out of range", self.out_of_range);
        builder.doubt(
            HealthCause::OTHER,
            "names that are in no table",
            self.unknown_names,
        );
    }
}
