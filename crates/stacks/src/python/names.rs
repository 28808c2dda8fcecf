//! The name of a frame. It is read once per code object, on the thread that runs it, while the object is certainly
//! alive.
//!
//! Strings are converted to UTF-8 in pieces, into a buffer of the caller.

use super::Python;
use super::memory::{Bytes, Checked, Memory};
use super::walk::{NOT_BEGUN, PythonFrame};

/// The names in a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeNames<'a> {
    /// The function. From 3.11 on with its enclosing classes and functions.
    pub name: &'a str,
    /// The file, as the program gave it to the compiler.
    pub file: &'a str,
    /// The first line.
    pub first_line: u32,
    /// A name was too long for the buffer.
    pub is_cut: bool,
}

/// Longer line tables are not read. They would belong to hundreds of megabytes of code.
const LONGEST_TABLE: u64 = 1 << 28;

impl Python {
    /// Writes the names of a frame's code to `room`. A quarter of it is for the function. `None` if they cannot be
    /// read.
    ///
    /// The frame must be of the calling thread, and just captured.
    pub fn names<'a>(&self, frame: &PythonFrame, room: &'a mut [u8]) -> Option<CodeNames<'a>> {
        let at = self.layout.code;
        let (name_room, file_room) = room.split_at_mut(room.len() / 4);
        let name = self.text(Checked.word(frame.code, at.name)?, name_room)?;
        let file = self.text(Checked.word(frame.code, at.file)?, file_room)?;
        Some(CodeNames {
            name: name.letters,
            file: file.letters,
            first_line: Checked.half(frame.code, at.first_line)?,
            is_cut: name.is_cut || file.is_cut,
        })
    }

    /// The current line of a frame. `None` for instructions without a line, or if the table cannot be read.
    ///
    /// The frame must be of the calling thread, and just captured.
    pub fn line(&self, frame: &PythonFrame) -> Option<u32> {
        let (at, object) = (self.layout.code, self.layout.object);
        let first_line = Checked.half(frame.code, at.first_line)?;
        if frame.instruction == NOT_BEGUN {
            return Some(first_line);
        }
        let table = Checked.word(frame.code, at.line_table)?;
        if Checked.word(table, object.kind)? != self.symbols.bytes_type {
            return None;
        }
        let length = Checked.word(table, object.size)?;
        if length > LONGEST_TABLE {
            return None;
        }
        let table = Bytes::new(table + object.bytes, length);
        at.line_form.line(table, first_line, frame.instruction)
    }

    fn text<'a>(&self, object: u64, room: &'a mut [u8]) -> Option<Written<'a>> {
        if Checked.word(object, self.layout.object.kind)? != self.symbols.text_type {
            return None;
        }
        let at = self.layout.text;
        let length = Checked.word(object, at.length)?;
        let state = Checked.half(object, at.state)?;
        let kind = Kind::of(at.width(state))?;
        let data = match (at.is_compact(state), at.is_ascii(state)) {
            (true, true) => object + at.ascii,
            (true, false) => object + at.other,
            (false, _) => Checked.word(object, at.other)?,
        };
        // Do not read more characters than fit into the buffer.
        let wanted = length.min(room.len() as u64 + 1);
        let mut bytes = Bytes::new(data, wanted * kind.bytes());
        let letters = (0..wanted).map(|_| kind.letter(&mut bytes));
        write(letters, length, room)
    }
}

/// The character width of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    One,
    Two,
    Four,
}

impl Kind {
    /// From the width in bytes. A string that is not ready (before 3.12) has none, but names of code are always ready.
    fn of(width: u32) -> Option<Self> {
        match width {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            4 => Some(Self::Four),
            _ => None,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    fn letter(self, bytes: &mut impl Iterator<Item = u8>) -> Option<char> {
        let mut number = 0;
        for at in 0..self.bytes() {
            number |= u32::from(bytes.next()?) << (8 * at);
        }
        // Python stores undecodable bytes of a file name as lone surrogates.
        Some(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Written<'a> {
    letters: &'a str,
    is_cut: bool,
}

/// Writes as many characters as fit. `None` if one could not be read.
fn write(letters: impl Iterator<Item = Option<char>>, length: u64, room: &mut [u8]) -> Option<Written<'_>> {
    let (mut used, mut written) = (0, 0);
    for letter in letters {
        let letter = letter?;
        let Some(place) = room.get_mut(used..used + letter.len_utf8()) else {
            break;
        };
        used += letter.encode_utf8(place).len();
        written += 1;
    }
    Some(Written {
        letters: std::str::from_utf8(&room[..used]).ok()?, // it was written as such above
        is_cut: written < length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_every_width_are_read() {
        let read = |kind: Kind, bytes: &[u8]| kind.letter(&mut bytes.iter().copied());
        assert_eq!(read(Kind::One, &[0xe9]), Some('é'));
        assert_eq!(read(Kind::Two, &[0xac, 0x20]), Some('€'));
        assert_eq!(read(Kind::Four, &[0x00, 0xf6, 0x01, 0x00]), Some('😀'));
        assert_eq!(read(Kind::Two, &[0x80, 0xdc]), Some('\u{fffd}'), "half a pair");
        assert_eq!(read(Kind::Four, &[0xff; 4]), Some('\u{fffd}'));
        assert_eq!(read(Kind::Two, &[0x80]), None);
    }

    #[test]
    fn a_long_name_is_cut_between_letters() {
        let mut room = [0; 5];
        let letters = ['a', '€', '€'].map(Some);
        let written = write(letters.into_iter(), 3, &mut room).unwrap();
        assert_eq!((written.letters, written.is_cut), ("a€", true));
        let written = write("ab".chars().map(Some), 2, &mut room).unwrap();
        assert_eq!((written.letters, written.is_cut), ("ab", false));
        assert_eq!(write([Some('a'), None].into_iter(), 2, &mut room), None);
    }
}
