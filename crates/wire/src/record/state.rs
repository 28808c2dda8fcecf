//! How capture itself goes.

use super::records;

/// [`Window::phase`]: recording begins.
pub const WINDOW_OPENED: u32 = 1;
/// [`Window::phase`]: recording ends.
pub const WINDOW_CLOSED: u32 = 2;

records! {
    /// Two clocks read at the same moment.
    40 ClockPair {
        /// The vendor library's clock.
        device_clock: u64,
        /// `CLOCK_MONOTONIC`.
        host_clock: u64,
        /// How far apart the readings can have been.
        uncertainty: u64,
    }

    /// Records that the vendor library lost, or that had no time or no known
    /// kind, since the last record of this sort.
    41 Losses {
        /// Host clock.
        time: u64,
        /// Dropped by the vendor library.
        dropped: u64,
        /// Without start or end.
        zero_time: u64,
        /// Of a kind that the target does not know.
        unknown: u64,
    }

    /// Something that the user should know; the words stand behind.
    42 Note {
        /// Host clock.
        time: u64,
        /// What happened: a health cause of the format.
        cause: u32,
        /// How many records it concerns.
        count: u32,
    }

    /// The process, when capture begins in it.
    43 ProcessStart {
        /// Host clock.
        time: u64,
        /// Its number.
        process: u32,
        /// Its parent's number.
        parent: u32,
        /// The driver's version, as 13000 for 13.0.
        driver_version: u32,
        /// The vendor library's version.
        library_version: u32,
    }

    /// Something worth knowing of the process; its key and then its value stand
    /// behind.
    44 ProcessFact {
        /// Bytes of the key.
        key_bytes: u32,
        /// Zero.
        reserved: u32,
    }

    /// Recording began or ended.
    45 Window {
        /// Host clock.
        time: u64,
        /// [`WINDOW_OPENED`] or [`WINDOW_CLOSED`].
        phase: u32,
        /// Zero.
        reserved: u32,
    }

    /// The process ends in the ordinary way; all records were handed over.
    46 Goodbye {
        /// Host clock.
        time: u64,
    }
}
