//! What the records that travel through a ring are.
//!
//! Fixed layouts of plain integers, with text behind them where there is any.
//! The target fills them from whatever its GPU's library hands out; the
//! collector makes rows of a trace from them. Neither side knows the other's
//! types, and both are built from this file, so a layout may change with the
//! protocol's version and is nowhere stored.
//!
//! ```
//! use tracesmith_wire::{Record, record::{self, IntoBytes, Payload, Text}};
//!
//! let header = Text { id: 7, ..Text::default() };
//! let bytes = [header.as_bytes(), b"vector_add"].concat();
//! let record = Record { tag: Text::KIND.into(), payload: &bytes };
//!
//! let (text, tail) = record::read::<Text>(&record).unwrap();
//! assert_eq!((text.id, tail), (7, &b"vector_add"[..]));
//! ```
//!
//! Times are nanoseconds; 0 is not known. `device_clock` times are the vendor
//! library's, `host_clock` times are `CLOCK_MONOTONIC`: [`ClockPair`] joins the
//! two. Codes of vendor enumerations are already translated to the numbers of
//! the trace format's codes. Ids are the target's own.

mod definition;
mod device_work;
mod host_work;
mod marker;
mod replay_capture;
mod state;

pub use definition::*;
pub use device_work::*;
pub use host_work::*;
pub use marker::*;
pub use replay_capture::*;
pub use state::*;
pub use zerocopy::IntoBytes;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::frame::{Kind, Record};

/// A record with a layout; its bytes, as they are pushed, are those of
/// [`IntoBytes::as_bytes`].
pub trait Payload: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + Default {
    /// Its kind in the ring.
    const KIND: Kind;
}

/// The fixed part of a record of kind `T` and what stands behind it; none when
/// it is too short, which no target of this version writes.
pub fn read<'b, T: Payload>(record: &Record<'b>) -> Option<(T, &'b [u8])> {
    T::read_from_prefix(record.payload).ok()
}

/// Defines records: number in the ring, name, fields. Fields stand so that
/// there is no padding, which the derived traits check.
macro_rules! records {
    ($(
        $(#[$meta:meta])*
        $number:literal $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq,
            ::zerocopy::FromBytes, ::zerocopy::IntoBytes, ::zerocopy::Immutable, ::zerocopy::KnownLayout,
        )]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $crate::record::Payload for $name {
            const KIND: $crate::frame::Kind = $crate::frame::Kind::new(
                match ::std::num::NonZeroU16::new($number) {
                    Some(number) => number,
                    None => panic!("0 is no kind"),
                }
            );
        }
    )*};
}
use records;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_records_share_a_number() {
        let kinds = [
            Text::KIND,
            Kernel::KIND,
            MemoryCopy::KIND,
            MemorySet::KIND,
            GraphLaunch::KIND,
            ApiCall::KIND,
            Synchronization::KIND,
            Allocation::KIND,
            Pool::KIND,
            Overhead::KIND,
            Compile::KIND,
            Marker::KIND,
            Category::KIND,
            Context::KIND,
            Stream::KIND,
            Device::KIND,
            Module::KIND,
            ThreadName::KIND,
            Image::KIND,
            Stack::KIND,
            PythonCode::KIND,
            GraphEdges::KIND,
            StreamName::KIND,
            ClockPair::KIND,
            Losses::KIND,
            Note::KIND,
            ProcessStart::KIND,
            ProcessFact::KIND,
            Window::KIND,
            Goodbye::KIND,
            Command::KIND,
            Buffer::KIND,
            Piece::KIND,
            Code::KIND,
            ModuleHandle::KIND,
            ReplayCaptureBegin::KIND,
            ReplayCaptureEnd::KIND,
        ];
        let distinct: BTreeSet<u16> = kinds.iter().map(|kind| kind.number()).collect();
        assert_eq!(distinct.len(), kinds.len());
    }
}
