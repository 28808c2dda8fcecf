//! Finds the line of an instruction in a code object's line table.
//!
//! There are three formats. 3.9 has pairs of address and line increments. 3.10 has ranges, and instructions without a
//! line (PEP 626). From 3.11 on, entries have several bytes and also contain columns (CPython's
//! `Objects/locations.md`, PEP 657). All are read byte by byte from the start.

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineTable {
    /// 3.9: `co_lnotab`.
    Changes,
    /// 3.10: `co_linetable` with pairs.
    Ranges,
    /// From 3.11 on: `co_linetable` with entries.
    Locations,
}

impl LineTable {
    /// The line of the instruction at this byte offset. `None` if it has no line, or if the table ends before it.
    pub(crate) fn line(
        self,
        mut table: impl Iterator<Item = u8>,
        first_line: u32,
        instruction: u32,
    ) -> Option<u32> {
        let first_line = i64::from(first_line);
        let line = match self {
            Self::Changes => Some(changes(&mut table, first_line, instruction)),
            Self::Ranges => ranges(&mut table, first_line, instruction),
            Self::Locations => locations(table, first_line, instruction),
        };
        line.and_then(|line| u32::try_from(line).ok()) // a line below 0 or beyond all files is none
    }
}

/// The last increment at or before the instruction applies, even after the end of the table.
fn changes(table: &mut impl Iterator<Item = u8>, first_line: i64, instruction: u32) -> i64 {
    let (mut line, mut address) = (first_line, 0_u64);
    while let (Some(forward), Some(change)) = (table.next(), table.next()) {
        address += u64::from(forward);
        if address > u64::from(instruction) {
            break;
        }
        line += i64::from(change as i8);
    }
    line
}

fn ranges(table: &mut impl Iterator<Item = u8>, first_line: i64, instruction: u32) -> Option<i64> {
    const NO_LINE: i8 = -128;
    let (mut line, mut end) = (first_line, 0_u64);
    while let (Some(length), Some(change)) = (table.next(), table.next()) {
        end += u64::from(length);
        let change = change as i8;
        if change != NO_LINE {
            line += i64::from(change);
        }
        if u64::from(instruction) < end {
            return (change != NO_LINE).then_some(line);
        }
    }
    None
}

fn locations(table: impl Iterator<Item = u8>, first_line: i64, instruction: u32) -> Option<i64> {
    const BEGINS_ENTRY: u8 = 0x80;
    let mut table = table.peekable();
    let (mut line, mut end) = (first_line, 0_u64);
    while let Some(first) = table.next() {
        if first & BEGINS_ENTRY == 0 {
            // Skip columns.
            continue;
        }
        let (form, units) = (first >> 3 & 15, u64::from(first & 7) + 1);
        let has_line = form != 15;
        line += match form {
            11 => 1,
            12 => 2,
            13 | 14 => signed(&mut table)?,
            _ => 0,
        };
        end += units * 2;
        if u64::from(instruction) < end {
            return has_line.then_some(line);
        }
    }
    None
}

/// A number with six bits per byte, lowest first. Its lowest bit is the sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut value = 0_i64;
    for shift in (0..36).step_by(6) {
        let byte = bytes.next()?;
        value |= i64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(if value & 1 == 1 { -(value >> 1) } else { value >> 1 });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(form: LineTable, table: &[u8], first_line: u32, instructions: &[u32]) -> Vec<Option<u32>> {
        let line = |&at| form.line(table.iter().copied(), first_line, at);
        instructions.iter().map(line).collect()
    }

    #[test]
    fn changes_hold_until_the_next_one() {
        // co_lnotab of `def f():\n x = 1\n\n\n y = 2` in 3.9, with a step back added.
        let table = [0, 1, 4, 3, 6, 0xff];
        let found = lines(LineTable::Changes, &table, 10, &[0, 2, 4, 8, 10, 1000]);
        assert_eq!(found, [11, 11, 14, 14, 13, 13].map(Some));
        assert_eq!(lines(LineTable::Changes, &[], 10, &[6]), [Some(10)]);
    }

    #[test]
    fn ranges_may_have_no_line() {
        let table = [4, 1, 2, 0x80, 0, 5, 6, 0xfe];
        let found = lines(LineTable::Ranges, &table, 10, &[0, 3, 4, 6, 11, 12]);
        assert_eq!(found, [Some(11), Some(11), None, Some(14), Some(14), None]);
    }

    #[test]
    fn locations_of_every_form_are_read() {
        let table = [
            0x80 | 10 << 3,
            0,
            0, // one unit, same line, two columns
            0x80 | 12 << 3 | 1,
            0,
            0,              // two units, two lines on
            0x80 | 15 << 3, // one without a line
            0x80 | 13 << 3,
            0x07, // one, three lines back
            0x80 | 14 << 3 | 7,
            0x40 | 0x20,
            0x01,
            0,
            1,
            1, // eight, 48 lines on, with an end and columns
            0x80 | 3 << 3,
            0x11, // one, short form
        ];
        let found = lines(
            LineTable::Locations,
            &table,
            100,
            &[0, 2, 4, 6, 8, 10, 25, 26, 28],
        );
        let expected = [
            Some(100),
            Some(102),
            Some(102),
            None,
            Some(99),
            Some(147),
            Some(147),
            Some(147),
            None,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn tables_that_are_cut_or_wild_give_no_line() {
        assert_eq!(lines(LineTable::Locations, &[0x80 | 13 << 3], 1, &[0]), [None]);
        let endless = [0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f];
        assert_eq!(lines(LineTable::Locations, &endless, 1, &[0]), [None]);
        assert_eq!(lines(LineTable::Ranges, &[4], 1, &[0]), [None]);
        assert_eq!(lines(LineTable::Ranges, &[4, 0x81], 1, &[0]), [None], "line -126");
    }
}
