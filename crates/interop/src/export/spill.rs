//! Rows that are put in order, as many as there are: what does not fit into memory waits in a temporary file.
//!
//! A row is some words, and rows are ordered by their words, the first one first. For formats that want a timeline's events
//! one behind the other, where a trace holds them by table and time; and to join two sets of rows, by putting both in the
//! same order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use tempfile::SpooledTempFile;

use crate::error::Error;
use crate::export::Out;

/// What rows may take in memory, and what is read of each run at once.
const MEMORY_BYTES: usize = 16 << 20;
const READ_BYTES: usize = 64 << 10;
/// What a text may take in memory.
const TEXT_BYTES: usize = 1 << 20;

/// Rows that come in any order.
pub(super) struct Spill<const N: usize> {
    rows: Vec<[u64; N]>,
    /// Rows that memory has room for.
    most_rows: usize,
    /// Runs of rows in order, one behind the other.
    file: Option<File>,
    /// Rows of each run.
    runs: Vec<u64>,
    /// Why the file could not be written.
    failure: Option<io::Error>,
}

impl<const N: usize> Default for Spill<N> {
    fn default() -> Self {
        Self::with_memory(MEMORY_BYTES)
    }
}

impl<const N: usize> Spill<N> {
    fn with_memory(bytes: usize) -> Self {
        Spill {
            rows: Vec::new(),
            most_rows: (bytes / size_of::<[u64; N]>()).max(1),
            file: None,
            runs: Vec::new(),
            failure: None,
        }
    }

    /// Adds a row. A file that cannot be written shows when the rows are asked for.
    pub(super) fn push(&mut self, row: [u64; N]) {
        if self.failure.is_some() {
            return;
        }
        self.rows.push(row);
        if self.rows.len() >= self.most_rows {
            self.failure = self.write_run().err();
            self.rows.clear();
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.runs.is_empty() && self.failure.is_none()
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.rows.sort_unstable();
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile()?),
        };
        let mut bytes = Vec::with_capacity(READ_BYTES + size_of::<[u64; N]>());
        for row in &self.rows {
            bytes.extend(row.iter().flat_map(|word| word.to_le_bytes()));
            if bytes.len() >= READ_BYTES {
                file.write_all(&bytes)?;
                bytes.clear();
            }
        }
        file.write_all(&bytes)?;
        self.runs.push(self.rows.len() as u64);
        Ok(())
    }

    /// All rows in order.
    pub(super) fn sorted(mut self) -> Result<Sorted<N>, Error> {
        if let Some(source) = self.failure {
            return Err(Error::Spill { source });
        }
        // Taken from behind.
        self.rows.sort_unstable_by(|a, b| b.cmp(a));
        let mut sorted = Sorted {
            rows: self.rows,
            file: self.file,
            runs: Vec::new(),
            heads: BinaryHeap::new(),
            next: None,
        };
        let mut at = 0;
        for rows in self.runs {
            let bytes = rows * size_of::<[u64; N]>() as u64;
            sorted.runs.push(Run {
                at,
                end: at + bytes,
                rows: Vec::new(),
            });
            at += bytes;
        }
        for run in 0..sorted.runs.len() {
            sorted.read_head(run)?;
        }
        sorted.advance()?;
        Ok(sorted)
    }
}

/// Rows in order.
pub(super) struct Sorted<const N: usize> {
    /// Those that were never written, the last first.
    rows: Vec<[u64; N]>,
    file: Option<File>,
    runs: Vec<Run<N>>,
    /// The next row of each run.
    heads: BinaryHeap<Reverse<([u64; N], usize)>>,
    next: Option<[u64; N]>,
}

struct Run<const N: usize> {
    at: u64,
    end: u64,
    /// Read already, the last first.
    rows: Vec<[u64; N]>,
}

impl<const N: usize> Sorted<N> {
    /// The next row, which stays the next.
    pub(super) fn peek(&self) -> Option<&[u64; N]> {
        self.next.as_ref()
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Result<Option<[u64; N]>, Error> {
        let next = self.next;
        if next.is_some() {
            self.advance()?;
        }
        Ok(next)
    }

    /// The next row, if it is like that.
    pub(super) fn next_if(
        &mut self,
        is_wanted: impl FnOnce(&[u64; N]) -> bool,
    ) -> Result<Option<[u64; N]>, Error> {
        if self.next.as_ref().is_some_and(is_wanted) {
            return self.next();
        }
        Ok(None)
    }

    fn advance(&mut self) -> Result<(), Error> {
        let run = self.heads.peek().map(|Reverse((row, run))| (*row, *run));
        self.next = match (run, self.rows.last()) {
            (Some((row, run)), own) if own.is_none_or(|own| row <= *own) => {
                self.heads.pop();
                self.read_head(run)?;
                Some(row)
            }
            _ => self.rows.pop(),
        };
        Ok(())
    }

    /// Puts the next row of a run among the others'.
    fn read_head(&mut self, number: usize) -> Result<(), Error> {
        let row_bytes = size_of::<[u64; N]>();
        let run = &mut self.runs[number];
        if run.rows.is_empty() && run.at < run.end {
            let most = (READ_BYTES / row_bytes).max(1) * row_bytes;
            let mut bytes = vec![0; most.min((run.end - run.at) as usize)];
            if let Some(file) = &self.file {
                file.read_exact_at(&mut bytes, run.at)
                    .map_err(|source| Error::Spill { source })?;
            }
            run.at += bytes.len() as u64;
            let (words, _) = bytes.as_chunks::<8>();
            let (rows, _) = words.as_chunks::<N>();
            let rows = rows.iter().rev();
            run.rows.extend(rows.map(|row| row.map(u64::from_le_bytes)));
        }
        if let Some(row) = run.rows.pop() {
            self.heads.push(Reverse((row, number)));
        }
        Ok(())
    }
}

/// A text that is written before its place in the file is reached.
pub(super) struct SpillText {
    text: Vec<u8>,
    file: SpooledTempFile,
}

impl SpillText {
    pub(super) fn new() -> Self {
        SpillText {
            text: Vec::new(),
            file: SpooledTempFile::new(TEXT_BYTES),
        }
    }

    /// What was added last, to be added to directly; [`SpillText::settle`] must follow.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Passes the text on when there is enough of it.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        if self.text.len() >= READ_BYTES {
            self.pass_on()?;
        }
        Ok(())
    }

    fn pass_on(&mut self) -> Result<(), Error> {
        let written = self.file.write_all(&self.text);
        written.map_err(|source| Error::Spill { source })?;
        self.text.clear();
        Ok(())
    }

    /// Its place is reached.
    pub(super) fn write(mut self, out: &mut Out<'_>) -> Result<(), Error> {
        self.pass_on()?;
        let failed = |source| Error::Spill { source };
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut bytes = vec![0; READ_BYTES];
        loop {
            match self.file.read(&mut bytes).map_err(failed)? {
                0 => return Ok(()),
                read => out.put(&bytes[..read])?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all<const N: usize>(spill: Spill<N>) -> Vec<[u64; N]> {
        let mut sorted = spill.sorted().unwrap();
        let mut rows = Vec::new();
        while let Some(row) = sorted.next().unwrap() {
            rows.push(row);
        }
        assert_eq!(sorted.peek(), None);
        rows
    }

    proptest! {
        #[test]
        fn rows_come_in_order_however_many_runs_there_are(
            mut rows in proptest::collection::vec(any::<[u64; 3]>(), 0..2000),
            memory in 1..20_000usize,
        ) {
            let mut spill = Spill::with_memory(memory);
            rows.iter().for_each(|row| spill.push(*row));
            prop_assert_eq!(spill.is_empty(), rows.is_empty());
            rows.sort_unstable();
            prop_assert_eq!(all(spill), rows);
        }
    }

    #[test]
    fn a_text_of_any_length_is_written_as_it_was() {
        for length in [0, 1, READ_BYTES, 3 * TEXT_BYTES + 1] {
            let mut text = SpillText::new();
            let wanted: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            for part in wanted.chunks(1000) {
                text.buffer().extend_from_slice(part);
                text.settle().unwrap();
            }
            let mut written = Vec::new();
            let mut out = Out::new(&mut written);
            text.write(&mut out).unwrap();
            out.finish().unwrap();
            assert!(written == wanted, "{length}");
        }
    }

    #[test]
    fn rows_that_could_not_be_written_are_an_error() {
        let mut spill = Spill::<1>::with_memory(8);
        spill.file = Some(File::open("/dev/null").unwrap());
        spill.push([1]);
        spill.push([2]);
        assert!(!spill.is_empty());
        assert!(matches!(spill.sorted(), Err(Error::Spill { .. })));
    }
}
