//! The lines of the list: rows below the headings of their groups, and which of them are shown.

use tracesmith_trace::overview::{LabeledRow, RowKey};

/// Which rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowsShown {
    All,
    Devices,
}

/// Whether rows of counters are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountersShown {
    Yes,
    No,
}

/// One line of the list: what rows stand below, or a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Group(String),
    Row { key: RowKey, label: String },
}

impl Line {
    pub(super) fn is_row(&self) -> bool {
        matches!(self, Self::Row { .. })
    }

    pub(super) fn is_counter(&self) -> bool {
        matches!(
            self,
            Self::Row {
                key: RowKey::Counter(_),
                ..
            }
        )
    }
}

/// The rows, each group below its heading.
pub(super) fn lines(rows: Vec<LabeledRow>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut group = None;
    for row in rows {
        if group.as_ref() != Some(&row.group) {
            lines.push(Line::Group(row.group.clone()));
            group = Some(row.group);
        }
        lines.push(Line::Row {
            key: row.key,
            label: row.label,
        });
    }
    lines
}

/// The lines that are left when some rows are hidden. A group whose rows are all hidden is hidden, too.
pub(super) fn chosen(all: &[Line], rows_shown: RowsShown, counters_shown: CountersShown) -> Vec<Line> {
    let is_shown = |line: &&Line| match line {
        Line::Group(_) => true,
        Line::Row { key, .. } => {
            (rows_shown == RowsShown::All || key.device().is_some())
                && (counters_shown == CountersShown::Yes || !line.is_counter())
        }
    };
    let mut lines: Vec<Line> = all.iter().filter(is_shown).cloned().collect();
    let has_rows = |number: usize| lines.get(number + 1).is_some_and(Line::is_row);
    let kept: Vec<bool> = (0..lines.len())
        .map(|number| lines[number].is_row() || has_rows(number))
        .collect();
    let mut kept = kept.into_iter();
    lines.retain(|_| kept.next().unwrap_or(true));
    lines
}
