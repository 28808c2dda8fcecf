//! Texts that a program passes.

use std::ffi::{CStr, c_void};

use super::abi::{Attributes, Narrow, Wide, message};
use crate::threads::TEXT_MAX;

/// A text of a mark or range.
pub(super) enum Message<'t> {
    /// As bytes, and whether they were cut.
    Text(&'t [u8], Cut),
    /// By the number of a registered text.
    Registered(u32),
}

/// Whether a text is all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Whole,
    Cut,
}

/// Room for a text that has to be translated.
pub(super) type Room = [u8; TEXT_MAX];

/// The text at `text`, at most as long as a record takes.
///
/// # Safety
///
/// Null, or a text that ends with a zero byte.
pub(super) unsafe fn narrow<'t>(text: Narrow) -> Message<'t> {
    if text.is_null() {
        return Message::Text(b"", Cut::Whole);
    }
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    match bytes.get(..TEXT_MAX) {
        Some(start) if bytes.len() > TEXT_MAX => Message::Text(start, Cut::Cut),
        _ => Message::Text(bytes, Cut::Whole),
    }
}

/// The text at `text` in UTF-8.
///
/// # Safety
///
/// Null, or a text that ends with a zero character.
pub(super) unsafe fn wide(text: Wide, room: &mut Room) -> Message<'_> {
    let mut used = 0;
    let mut next = text;
    while !next.is_null() {
        // SAFETY: the end was not reached yet.
        let character = unsafe { next.read_unaligned() };
        if character == 0 {
            break;
        }
        let character = char::from_u32(character.cast_unsigned()).unwrap_or(char::REPLACEMENT_CHARACTER);
        let Some(space) = room.get_mut(used..used + character.len_utf8()) else {
            return Message::Text(&room[..used], Cut::Cut);
        };
        character.encode_utf8(space);
        used += character.len_utf8();
        next = next.wrapping_add(1);
    }
    Message::Text(&room[..used], Cut::Whole)
}

/// The attributes' text.
///
/// # Safety
///
/// The attributes are as NVTX documents them.
pub(super) unsafe fn of_attributes<'t>(attributes: &Attributes, room: &'t mut Room) -> Message<'t> {
    match attributes.message_kind {
        // SAFETY: the kind says what the address is.
        message::ASCII => unsafe { narrow(attributes.message.cast()) },
        // SAFETY: as above.
        message::UNICODE => unsafe { wide(attributes.message.cast(), room) },
        message::REGISTERED => Message::Registered(number(attributes.message)),
        _ => Message::Text(b"", Cut::Whole),
    }
}

/// Handles that we give out are numbers.
pub(super) fn number(handle: *const c_void) -> u32 {
    handle as usize as u32
}

/// As a handle for the program.
pub(super) fn handle(number: u32) -> *const c_void {
    number as usize as *const c_void
}
