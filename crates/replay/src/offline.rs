//! Memory contents that are known without a GPU.
//!
//! A recording contains memory before and after the window. In between, contents are known until a call whose result
//! is not in the file: a kernel, or a new allocation. This module applies memcpys with recorded bytes, memcpys of
//! known memory, and memsets. It does not guess: if a kernel can have written the memory, the result is
//! [`Content::Unknown`].

use std::ops::Range;

use tracesmith_format::tables::{CommandKind, MemoryKind};

use crate::error::Error;
use crate::recording::{Buffer, Command, Piece, Recording};

/// The contents of memory at one point of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Its bytes.
    Known(Vec<u8>),
    /// This call can have written the memory, so only a replay shows the contents.
    Unknown {
        /// The number of the call. `None` if the recording does not contain this memory.
        call: Option<u64>,
        /// The name of the kernel, or the kind of call.
        name: String,
    },
}

/// Limit for lookups per request. A memcpy of copied memory needs one more each.
const MOST_LOOKUPS: u32 = 10_000;

impl Recording {
    /// The contents of memory before the call at a position, if the file determines them.
    ///
    /// # Errors
    ///
    /// If the file lacks contents.
    pub fn content_before(&mut self, place: usize, address: u64, bytes: u64) -> Result<Content, Error> {
        let commands = std::mem::take(&mut self.commands);
        let place = place.min(commands.len());
        let range = address..address.saturating_add(bytes);
        let content = self.content_at(&commands, place, &range);
        self.commands = commands;
        content
    }

    fn content_at(
        &mut self,
        commands: &[Command],
        place: usize,
        range: &Range<u64>,
    ) -> Result<Content, Error> {
        let mut lookups = MOST_LOOKUPS;
        let known = if self.is_of_the_host(range) {
            // The program can change it without a call.
            unknown(None)
        } else {
            self.since_begin(commands, place, range, &mut lookups)?
        };
        if matches!(known, Content::Known(_)) {
            return Ok(known);
        }
        // If no later call can change the memory, its contents are those at the end.
        let is_final = place == commands.len()
            || !self.is_of_the_host(range)
                && !commands[place..].iter().any(|command| can_write(command, range));
        if is_final && let Some(bytes) = self.recorded(WindowEdge::End, range)? {
            return Ok(Content::Known(bytes));
        }
        Ok(known)
    }

    /// The recorded contents of a range at one edge of the window.
    pub(crate) fn at_edge(&mut self, edge: WindowEdge, range: &Range<u64>) -> Result<Vec<u8>, Error> {
        let content = self.recorded(edge, range)?;
        content.ok_or_else(|| {
            Error::Unavailable(format!(
                "the recording does not contain the memory at {:#x} at the {} of the window",
                range.start,
                edge.name()
            ))
        })
    }

    /// The positions at which the contents of a range are known: from the start to the first call whose result is not
    /// in the file, and from the last call that can change them.
    pub(crate) fn known_places(&mut self, range: &Range<u64>) -> Result<Vec<Range<usize>>, Error> {
        let commands = std::mem::take(&mut self.commands);
        let known = self.known_places_of(&commands, range);
        self.commands = commands;
        known
    }

    fn known_places_of(
        &mut self,
        commands: &[Command],
        range: &Range<u64>,
    ) -> Result<Vec<Range<usize>>, Error> {
        let count = commands.len();
        let may_write = |command: &Command| can_write(command, range);
        let last = match self.is_of_the_host(range) {
            true => count,
            false => commands.iter().rposition(may_write).map_or(0, |place| place + 1),
        };
        let has_end = self.recorded(WindowEdge::End, range)?.is_some();
        let opaque = commands
            .iter()
            .position(|command| is_opaque(command) && may_write(command));
        // Once contents are unknown, they stay unknown: look for the first such position.
        let (mut known, mut unknown) = (0, opaque.map_or(count + 1, |place| place + 1));
        if self.is_of_the_host(range) {
            unknown = 0;
        }
        while known < unknown {
            let middle = known + (unknown - known) / 2;
            let mut lookups = MOST_LOOKUPS;
            match self.since_begin(commands, middle, range, &mut lookups)? {
                Content::Known(_) => known = middle + 1,
                Content::Unknown { .. } => unknown = middle,
            }
        }
        let mut places = Vec::new();
        if known > 0 {
            places.push(0..known);
        }
        if has_end && last <= count {
            match places.last_mut() {
                Some(first) if first.end >= last => first.end = count + 1,
                _ => places.push(last..count + 1),
            }
        }
        Ok(places)
    }

    fn is_of_the_host(&self, range: &Range<u64>) -> bool {
        let mut buffers = self.begin.iter().chain(&self.end);
        buffers.any(|buffer| {
            let is_device = matches!(buffer.memory, MemoryKind::DEVICE | MemoryKind::ARRAY);
            !is_device && overlaps(&buffer.range(), range)
        })
    }

    fn since_begin(
        &mut self,
        commands: &[Command],
        place: usize,
        range: &Range<u64>,
        lookups: &mut u32,
    ) -> Result<Content, Error> {
        // Stop early if a kernel ran before.
        let may_write = |command: &&Command| is_opaque(command) && can_write(command, range);
        if let Some(command) = commands[..place].iter().find(may_write) {
            return Ok(unknown(Some(command)));
        }
        let Some(mut content) = self.recorded(WindowEdge::Begin, range)? else {
            return Ok(unknown(None));
        };
        for (index, command) in commands[..place].iter().enumerate() {
            if can_write(command, range) && !self.apply(commands, index, range, &mut content, lookups)? {
                return Ok(unknown(Some(command)));
            }
        }
        Ok(Content::Known(content))
    }

    /// Applies a call to contents. Returns false if the file does not determine the result.
    fn apply(
        &mut self,
        commands: &[Command],
        index: usize,
        range: &Range<u64>,
        content: &mut [u8],
        lookups: &mut u32,
    ) -> Result<bool, Error> {
        let command = &commands[index];
        match command.kind {
            CommandKind::SET => {
                set(command, range.start, content);
                Ok(true)
            }
            CommandKind::COPY | CommandKind::HOST_FUNCTION if self.brought.contains_key(&command.number) => {
                let pieces = self.brought[&command.number].clone();
                for piece in pieces.iter().filter(|piece| overlaps(&extent(piece), range)) {
                    let bytes = self.store.piece(piece.hash)?;
                    overlay(content, range.start, piece.address, bytes);
                }
                Ok(true)
            }
            // Its changes to host memory are recorded with it.
            CommandKind::HOST_FUNCTION => Ok(true),
            CommandKind::COPY => {
                let Some(left) = lookups.checked_sub(1) else {
                    return Ok(false);
                };
                *lookups = left;
                let to = destination(command);
                let common = to.start.max(range.start)..to.end.min(range.end);
                let source = command.source.saturating_add(common.start - to.start);
                let source = source..source.saturating_add(common.end - common.start);
                if self.is_of_the_host(&source) {
                    return Ok(false);
                }
                match self.since_begin(commands, index, &source, lookups)? {
                    Content::Known(bytes) => {
                        overlay(content, range.start, common.start, &bytes);
                        Ok(true)
                    }
                    Content::Unknown { .. } => Ok(false),
                }
            }
            _ => Ok(false),
        }
    }

    /// The recorded contents of a range at one edge of the window. `None` if a part is missing.
    fn recorded(&mut self, edge: WindowEdge, range: &Range<u64>) -> Result<Option<Vec<u8>>, Error> {
        let buffers = match edge {
            WindowEdge::Begin => &self.begin,
            WindowEdge::End => &self.end,
        };
        let holds = |buffer: &&Buffer| buffer.address <= range.start && range.end <= buffer.range().end;
        let Some(pieces) = buffers.iter().find(holds).map(|buffer| buffer.pieces.clone()) else {
            return Ok(None);
        };
        // Let it grow as data is read: a file can claim any size.
        let mut content = Vec::new();
        let mut at = range.start;
        for piece in pieces.iter().filter(|piece| overlaps(&extent(piece), range)) {
            let bytes = self.store.piece(piece.hash)?;
            let end = piece.address.saturating_add(bytes.len() as u64).min(range.end);
            if piece.address > at || bytes.len() as u64 != piece.bytes {
                return Ok(None);
            }
            if end > at {
                content
                    .extend_from_slice(&bytes[(at - piece.address) as usize..(end - piece.address) as usize]);
                at = end;
            }
        }
        Ok((at >= range.end).then_some(content))
    }
}

fn unknown(command: Option<&Command>) -> Content {
    Content::Unknown {
        call: command.map(|command| command.number),
        name: command.map(Command::name).unwrap_or_default(),
    }
}

/// The start or the end of the window.
#[derive(Clone, Copy)]
pub(crate) enum WindowEdge {
    Begin,
    End,
}

impl WindowEdge {
    fn name(self) -> &'static str {
        match self {
            Self::Begin => "start",
            Self::End => "end",
        }
    }
}

fn extent(piece: &Piece) -> Range<u64> {
    piece.address..piece.address.saturating_add(piece.bytes)
}

fn overlaps(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Whether the file does not determine what a call writes.
fn is_opaque(command: &Command) -> bool {
    !matches!(
        command.kind,
        CommandKind::COPY | CommandKind::SET | CommandKind::HOST_FUNCTION
    )
}

/// Whether a call can change memory in a range. A kernel can follow pointers that other kernels wrote, so it can
/// write anywhere.
fn can_write(command: &Command, range: &Range<u64>) -> bool {
    match command.kind {
        CommandKind::COPY | CommandKind::ALLOCATE | CommandKind::SET => {
            overlaps(&destination(command), range)
        }
        CommandKind::LAUNCH | CommandKind::COPY_PLANES | CommandKind::HOST_FUNCTION => true,
        kind => kind == CommandKind::REFUSED || kind.name().is_none(),
    }
}

/// The range that a call writes, if it is known.
fn destination(command: &Command) -> Range<u64> {
    let bytes = match command.kind {
        CommandKind::SET => {
            let rows = command.object.max(1);
            (rows - 1)
                .saturating_mul(command.source)
                .saturating_add(command.bytes)
        }
        _ => command.bytes,
    };
    command.destination..command.destination.saturating_add(bytes)
}

/// Applies a memset to contents.
fn set(command: &Command, start: u64, content: &mut [u8]) {
    let element = command.value.to_le_bytes();
    let width = u64::from(command.width).clamp(1, element.len() as u64);
    let pitch = command.source.max(1);
    for (index, byte) in content.iter_mut().enumerate() {
        let Some(offset) = (start + index as u64).checked_sub(command.destination) else {
            continue;
        };
        let (row, column) = if command.object > 1 {
            (offset / pitch, offset % pitch)
        } else {
            (0, offset)
        };
        if row < command.object.max(1) && column < command.bytes {
            *byte = element[(column % width) as usize];
        }
    }
}

/// Copies bytes at one address over contents at another. Returns the number of overlapping bytes.
fn overlay(content: &mut [u8], start: u64, address: u64, bytes: &[u8]) -> usize {
    let end = start.saturating_add(content.len() as u64);
    let first = address.max(start);
    let last = address.saturating_add(bytes.len() as u64).min(end);
    if first >= last {
        return 0;
    }
    let count = (last - first) as usize;
    let (to, from) = ((first - start) as usize, (first - address) as usize);
    content[to..to + count].copy_from_slice(&bytes[from..from + count]);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_laid_over_where_they_meet() {
        let mut content = [0; 4];
        assert_eq!(overlay(&mut content, 10, 8, &[1, 2, 3]), 1);
        assert_eq!(overlay(&mut content, 10, 12, &[4, 5, 6]), 2);
        assert_eq!(overlay(&mut content, 10, 14, &[7]), 0);
        assert_eq!(overlay(&mut content, 10, 0, &[7; 10]), 0);
        assert_eq!(content, [3, 0, 4, 5]);
    }

    #[test]
    fn rows_are_set_with_what_lies_between_them_left() {
        let command = Command {
            kind: CommandKind::SET,
            destination: 100,
            bytes: 4,
            width: 2,
            value: 0x0201,
            source: 6,
            object: 2,
            ..Command::default()
        };
        let mut content = [9; 12];
        set(&command, 100, &mut content);
        assert_eq!(content, [1, 2, 1, 2, 9, 9, 1, 2, 1, 2, 9, 9]);
        assert!(can_write(&command, &(109..110)) && !can_write(&command, &(110..111)));
    }
}
