//! What the program itself marked.

use super::records;

/// A moment.
pub const MARK: u8 = 0;
/// A range of this thread begins.
pub const PUSH: u8 = 1;
/// The innermost range of this thread and domain ends.
pub const POP: u8 = 2;
/// A range begins that any thread may end.
pub const START: u8 = 3;
/// Such a range ends.
pub const END: u8 = 4;

/// [`Marker::flags`]: the text behind it was too long and is cut.
pub const TEXT_CUT: u8 = 1;

records! {
    /// A mark, or one end of a range; its text stands behind it unless it was
    /// registered.
    30 Marker {
        /// When, host clock.
        time: u64,
        /// The range's number, for START and END.
        range: u64,
        /// The value given with it, by its bits.
        payload: u64,
        /// The thread.
        thread: u32,
        /// The text with the domain's name; 0 is the default domain.
        domain: u32,
        /// The registered text, or 0 when it stands behind.
        name: u32,
        /// The category's number in its domain.
        category: u32,
        /// Colour: alpha, red, green, blue.
        color: u32,
        /// [`MARK`], [`PUSH`], [`POP`], [`START`] or [`END`].
        phase: u8,
        /// How the payload is read: a code of the format.
        payload_kind: u8,
        /// [`TEXT_CUT`].
        flags: u8,
        /// Zero.
        reserved: u8,
    }

    /// The name of a category; it stands behind.
    31 Category {
        /// The text with the domain's name; 0 is the default domain.
        domain: u32,
        /// The category's number.
        category: u32,
    }

    /// The name that the program gave to a thread; it stands behind.
    32 ThreadName {
        /// The thread.
        thread: u32,
        /// Zero.
        reserved: u32,
    }

    /// The name that the program gave to a stream; it stands behind.
    33 StreamName {
        /// The context.
        context: u32,
        /// The stream.
        stream: u32,
    }
}
