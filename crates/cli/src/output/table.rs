//! Tables for people: aligned, as wide as the terminal, long names cut in the middle.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::HEADING;
use super::names::{Names, WIDEST, fitted};

/// Space between columns.
const GAP: &str = "  ";
/// No column that can give way gets narrower than this.
const NARROWEST: usize = 12;

/// Where a column's text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Numbers.
    Right,
    /// Words.
    Left,
    /// Words that may be cut in their middle when the terminal is narrow.
    Flexible,
    /// Words that may be cut at their end when the terminal is narrow.
    Clipped,
    /// Names of C++ functions, which are shortened to what tells them apart.
    Name,
}

impl Align {
    fn is_shrinkable(self) -> bool {
        matches!(self, Align::Flexible | Align::Clipped | Align::Name)
    }
}

/// A table with a head.
pub(crate) struct TextTable {
    columns: Vec<(Cow<'static, str>, Align)>,
    rows: Vec<Vec<Cell>>,
    empty_columns: EmptyColumns,
}

/// What happens to columns without a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmptyColumns {
    LeftOut,
    Kept,
}

/// A text with a style.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell {
            text: text.into(),
            style: Style::new(),
        }
    }
}

impl Cell {
    /// A text in a style.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Cell {
            text: text.into(),
            style,
        }
    }

    /// The same text in another style.
    pub(crate) fn with_style(self, style: Style) -> Self {
        Cell { style, ..self }
    }
}

impl TextTable {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        TextTable {
            columns: columns
                .iter()
                .map(|(name, align)| (Cow::Borrowed(*name), *align))
                .collect(),
            rows: Vec::new(),
            empty_columns: EmptyColumns::LeftOut,
        }
    }

    /// A table whose columns are known only now.
    pub(crate) fn with_columns(columns: Vec<(String, Align)>) -> Self {
        TextTable {
            columns: columns
                .into_iter()
                .map(|(name, align)| (Cow::Owned(name), align))
                .collect(),
            rows: Vec::new(),
            empty_columns: EmptyColumns::LeftOut,
        }
    }

    /// The same table with all its columns, those without a value included.
    pub(crate) fn keeping_empty_columns(self) -> Self {
        TextTable {
            empty_columns: EmptyColumns::Kept,
            ..self
        }
    }

    /// A row of such a table.
    pub(crate) fn row_of(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.into());
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The lines to print. Columns that are empty in every row are left out, unless they are kept.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<String> {
        self.lines_with(width, Names::Short)
    }

    /// The same, with names as they are wanted.
    pub(super) fn lines_with(&self, width: Option<usize>, names: Names) -> Vec<String> {
        let widths = self.widths(width, names);
        let short = self.short_names(&widths, names);
        let head: Vec<Cell> = self
            .columns
            .iter()
            .map(|(title, _)| Cell::styled(title.clone(), HEADING))
            .collect();
        let rows = self.rows.iter().enumerate();
        std::iter::once(self.line(&head, &widths, &BTreeMap::new(), 0))
            .chain(rows.map(|(number, row)| self.line(row, &widths, &short, number)))
            .collect()
    }

    /// The names of each column of names, shortened to its width.
    fn short_names(&self, widths: &[usize], names: Names) -> BTreeMap<usize, Vec<String>> {
        let is_shortened = |column: &usize| names == Names::Short && self.columns[*column].1 == Align::Name;
        let columns = (0..self.columns.len()).filter(is_shortened);
        columns
            .map(|column| {
                let texts: Vec<&str> = self.rows.iter().map(|row| row[column].text.as_str()).collect();
                (column, fitted(&texts, widths[column]))
            })
            .collect()
    }

    /// The width of each column; 0 for one that is left out.
    fn widths(&self, available: Option<usize>, names: Names) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let widest = self
                    .rows
                    .iter()
                    .map(|row| row[column].text.width())
                    .max()
                    .unwrap_or(0);
                let left_out =
                    widest == 0 && !self.rows.is_empty() && self.empty_columns == EmptyColumns::LeftOut;
                let widest = match (self.columns[column].1, names) {
                    (Align::Name, Names::Short) => widest.min(WIDEST),
                    _ => widest,
                };
                if left_out {
                    0
                } else {
                    widest.max(self.columns[column].0.width())
                }
            })
            .collect();
        let Some(available) = available else { return widths };
        let shown = widths.iter().filter(|width| **width > 0).count();
        let mut total = widths.iter().sum::<usize>() + GAP.len() * shown.saturating_sub(1);
        // The widest column that can give way does so, until all fits.
        while total > available {
            let widest = (0..widths.len())
                .filter(|column| self.columns[*column].1.is_shrinkable() && widths[*column] > NARROWEST)
                .filter(|column| self.columns[*column].1 != Align::Name || names == Names::Short)
                .max_by_key(|column| widths[*column]);
            let Some(widest) = widest else { break };
            widths[widest] -= 1;
            total -= 1;
        }
        widths
    }

    fn line(
        &self,
        row: &[Cell],
        widths: &[usize],
        short: &BTreeMap<usize, Vec<String>>,
        number: usize,
    ) -> String {
        let mut line = String::new();
        let mut shown = (0..row.len()).filter(|column| widths[*column] > 0).peekable();
        while let Some(column) = shown.next() {
            let (Cell { text, style }, width) = (&row[column], widths[column]);
            let text = match (self.columns[column].1, short.get(&column)) {
                (_, Some(names)) => names[number].clone(),
                (Align::Clipped, _) => clipped(text, width),
                _ => shortened(text, width),
            };
            let padding = " ".repeat(width.saturating_sub(text.width()));
            let last = shown.peek().is_none();
            match self.columns[column].1 {
                Align::Right => line += &format!("{padding}{style}{text}{style:#}"),
                _ if last => line += &format!("{style}{text}{style:#}"),
                _ => line += &format!("{style}{text}{style:#}{padding}"),
            }
            if !last {
                line += GAP;
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A text cut in its middle: the ends of kernel names are what tells them apart.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let keep = width.saturating_sub(1);
    let head = take_width(text.chars(), keep.div_ceil(2));
    let tail: String = take_width(text.chars().rev(), keep / 2).chars().rev().collect();
    format!("{head}…{tail}")
}

/// A text cut at its end.
pub(crate) fn clipped(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    format!("{}…", take_width(text.chars(), width.saturating_sub(1)))
}

fn take_width(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut taken = String::new();
    for char in chars {
        taken.push(char);
        if taken.width() > width {
            taken.pop();
            break;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> TextTable {
        let mut table = TextTable::new(&[
            ("rows", Align::Right),
            ("empty", Align::Left),
            ("name", Align::Flexible),
        ]);
        table.row(["7".into(), "".into(), "a_kernel_with_a_very_long_name".into()]);
        table.row(["1,234".into(), "".into(), "b".into()]);
        table
    }

    fn plain(lines: Vec<String>) -> Vec<String> {
        lines
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        assert_eq!(
            plain(sample().lines(None)),
            [" rows  name", "    7  a_kernel_with_a_very_long_name", "1,234  b"]
        );
    }

    #[test]
    fn long_names_are_cut_in_the_middle_on_a_narrow_terminal() {
        let lines = plain(sample().lines(Some(22)));
        assert_eq!(lines[1], "    7  a_kerne…ng_name");
        assert!(lines.iter().all(|line| line.width() <= 22));
    }

    #[test]
    fn wide_characters_count_as_wide() {
        assert_eq!(shortened("名前名前名前", 5), "名…前");
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(clipped("grid 64×1×1 block", 9), "grid 64×…");
    }
}
