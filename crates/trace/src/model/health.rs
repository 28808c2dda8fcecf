//! What was lost, cut or doubtful, as recorded and as found while reading.

use serde::{Serialize, Serializer};
use tracesmith_format::tables::{Health, HealthCause};
use tracesmith_format::{BlockKind, Damage};

use crate::units;

/// Everything that keeps a trace from being whole.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HealthReport {
    /// What the recorder noted, amounts of the same cause and table added up.
    pub recorded: Vec<HealthItem>,
    /// What could not be read of the file.
    pub damage: Vec<Damage>,
    /// Strings that were not UTF-8.
    pub mended_strings: u64,
    /// Clocks whose times could not be brought to the common timeline.
    pub unlinked_clocks: Vec<String>,
}

/// One cause of loss or doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthItem {
    /// What happened.
    #[serde(serialize_with = "cause_name")]
    pub cause: HealthCause,
    /// The table that it concerns, if one in particular.
    pub table: Option<BlockKind>,
    /// How many records.
    pub count: u64,
    /// How many bytes.
    pub bytes: u64,
    /// In words, where the recorder had some.
    pub detail: String,
}

fn cause_name<S: Serializer>(cause: &HealthCause, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(cause.name().unwrap_or("other"))
}

impl HealthReport {
    /// Whether nothing is amiss.
    pub fn is_good(&self) -> bool {
        self.recorded.is_empty()
            && self.damage.is_empty()
            && self.mended_strings == 0
            && self.unlinked_clocks.is_empty()
    }

    /// What is amiss, in words: one line for each.
    pub fn sentences(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.damage.iter().map(|damage| damage.to_string()).collect();
        for item in &self.recorded {
            let mut line = item.cause.name().unwrap_or("other").to_owned();
            if let Some(table) = item.table {
                line += &format!(" ({table})");
            }
            if item.count > 0 {
                line += &format!(": {}", units::counted(item.count, "record", "records"));
            }
            if item.bytes > 0 {
                line += &format!(", {}", units::bytes(item.bytes));
            }
            if !item.detail.is_empty() {
                line += &format!(": {}", item.detail);
            }
            lines.push(line);
        }
        if self.mended_strings > 0 {
            lines.push(format!(
                "{} not UTF-8",
                units::counted(self.mended_strings, "string is", "strings are")
            ));
        }
        for clock in &self.unlinked_clocks {
            lines.push(format!(
                "times of {clock} cannot be aligned with the others: no clock pairs link them"
            ));
        }
        lines
    }

    /// Adds what a recorder noted.
    pub(crate) fn add(&mut self, row: &Health, detail: &str) {
        let table = (row.table != 0).then_some(BlockKind(row.table));
        let same = self
            .recorded
            .iter_mut()
            .find(|item| item.cause == row.cause && item.table == table && item.detail == detail);
        match same {
            Some(item) => {
                item.count = item.count.saturating_add(row.count);
                item.bytes = item.bytes.saturating_add(row.bytes);
            }
            None => self.recorded.push(HealthItem {
                cause: row.cause,
                table,
                count: row.count,
                bytes: row.bytes,
                detail: detail.to_owned(),
            }),
        }
    }
}
