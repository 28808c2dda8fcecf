//! What a trace does not say, or says in a way that cannot be: every answer that rests on it carries these counts.

use serde::Serialize;
use tracesmith_format::tables::HealthCause;

use crate::model::trace::Trace;
use crate::units;

/// What keeps an answer from being sure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DataQuality {
    /// Device work without a start or an end, left out of everything.
    pub without_time: u64,
    /// Device work that ends before it starts; taken as of no length.
    pub backwards: u64,
    /// Calls without a start or an end, left out, and such that end before they start, taken as of no length.
    pub calls_without_time: u64,
    /// Device work whose call is not in the trace.
    pub without_call: u64,
    /// Device work that starts before the call that asked for it: the clocks disagree.
    pub before_its_call: u64,
    /// By how much at most, in nanoseconds.
    pub before_its_call_by: u64,
    /// Records that were lost, as the trace itself says.
    pub lost_records: u64,
    /// Places at which the files that the trace was made from were truncated.
    pub truncated: u64,
    /// Whether it was made from files of other tools.
    #[serde(skip)]
    pub is_imported: bool,
    /// Parts of the file that cannot be read.
    pub damaged_blocks: u64,
    /// Clocks whose times could not be brought to the common timeline.
    pub unlinked_clocks: u64,
    /// How far device times of different clocks can be off, in nanoseconds.
    pub uncertainty: u64,
}

impl DataQuality {
    /// Adds what the trace says of itself, once all that was wanted of it is read.
    pub(super) fn add_health(&mut self, trace: &Trace) {
        let health = trace.health();
        let losses = [
            HealthCause::RING_FULL,
            HealthCause::VENDOR_DROPPED,
            HealthCause::PROCESS_DIED,
            HealthCause::DAMAGED,
        ];
        let cut = health
            .recorded
            .iter()
            .filter(|item| item.cause == HealthCause::CUT);
        self.truncated = cut.map(|item| item.count.max(1)).fold(0, u64::saturating_add);
        self.is_imported = trace.metadata.contains_key("import.format");
        self.lost_records = health
            .recorded
            .iter()
            .filter(|item| losses.contains(&item.cause))
            .map(|item| item.count.max(1))
            .fold(0, u64::saturating_add);
        self.damaged_blocks = health.damage.len() as u64;
        self.unlinked_clocks = health.unlinked_clocks.len() as u64;
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        let nothing = Self {
            is_imported: self.is_imported,
            ..Self::default()
        };
        *self == nothing
    }

    /// The same as sentences, one for each doubt.
    pub fn sentences(&self) -> Vec<String> {
        let count = |number: u64, one: &str, many: &str| {
            if number == 1 {
                format!("1 {one}")
            } else {
                format!("{} {many}", units::count(number))
            }
        };
        let mut sentences = Vec::new();
        let mut say = |number: u64, sentence: String| {
            if number > 0 {
                sentences.push(sentence);
            }
        };
        say(
            self.without_time,
            format!(
                "{} no start or no end: not counted",
                count(self.without_time, "GPU operation has", "GPU operations have")
            ),
        );
        say(
            self.backwards,
            format!(
                "{} before the start: counted with no length",
                count(self.backwards, "GPU operation ends", "GPU operations end")
            ),
        );
        say(
            self.calls_without_time,
            format!(
                "{} impossible times: left out or counted with no length",
                count(self.calls_without_time, "call has", "calls have")
            ),
        );
        say(
            self.without_call,
            format!(
                "{} no API call in the trace: launch latencies and queue lengths leave {}; idle time before {} is \
                 'call not recorded'",
                count(self.without_call, "GPU operation has", "GPU operations have"),
                if self.without_call == 1 {
                    "it out"
                } else {
                    "them out"
                },
                if self.without_call == 1 { "it" } else { "them" },
            ),
        );
        say(
            self.before_its_call,
            format!(
                "{} before the API call, by up to {}: the clocks of CPU and GPU disagree",
                count(
                    self.before_its_call,
                    "GPU operation starts",
                    "GPU operations start"
                ),
                units::nanos(self.before_its_call_by)
            ),
        );
        say(
            self.lost_records,
            format!(
                "{} lost while recording",
                count(self.lost_records, "record was", "records were")
            ),
        );
        say(
            self.truncated,
            match (self.is_imported, self.truncated) {
                (true, 1) => "the imported file was truncated: its last events are missing".to_owned(),
                (true, count) => {
                    format!("imported files are truncated or damaged in {count} places: events are missing")
                }
                (false, _) => "the file was truncated: its last events are missing".to_owned(),
            },
        );
        say(
            self.damaged_blocks,
            format!(
                "{} cannot be read",
                count(self.damaged_blocks, "part of the file", "parts of the file")
            ),
        );
        say(
            self.unlinked_clocks,
            format!(
                "{} linked to the others: their times are used unchanged",
                count(self.unlinked_clocks, "clock is not", "clocks are not")
            ),
        );
        say(
            self.uncertainty,
            format!(
                "times of different clocks can be off by {}",
                units::nanos(self.uncertainty)
            ),
        );
        sentences
    }
}
