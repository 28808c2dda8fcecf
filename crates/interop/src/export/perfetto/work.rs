//! What all work of a device has in common: when and where it ran, and the call that it comes from.

use tracesmith_format::tables::Place;
use tracesmith_format::{CorrelationId, StackId, StringId};

use super::argument::{launch_flow, put_flow, put_unsigned};
use super::item::{Form, Head, Item, Name, Piece, StreamKey, StreamRole, TrackKey};
use super::rows::Stretch;
use crate::perfetto::words::Argument;

/// Work that the device did in a stream, apart from what its kind adds.
pub(super) struct Work {
    pub(super) time: Stretch,
    pub(super) place: Place,
    pub(super) correlation: CorrelationId,
    pub(super) stack: StackId,
    pub(super) name: Name,
    /// A string that an argument of it refers to.
    pub(super) text: StringId,
    pub(super) track: u32,
    /// What its slice begins with.
    pub(super) head: Head,
}

impl Work {
    fn item(&self, form: Form) -> Item {
        Item {
            start: self.time.start,
            end: self.time.end,
            track: self.track,
            form,
            name: self.name,
            text: self.text,
            stack: self.stack,
            head: Head::NONE,
            body: 0,
            body_length: 0,
        }
    }

    /// Ends the slice that was begun at `from` with what all device work has: the call that it comes from.
    pub(super) fn put_slice(&self, piece: &mut Piece, from: usize) {
        if self.correlation.is_some() {
            put_unsigned(&mut piece.bodies, Argument::CORRELATION, self.correlation.0);
            let flow = launch_flow(self.place.process, self.correlation);
            put_flow(&mut piece.bodies, flow);
        }
        piece.push(
            Item {
                head: self.head,
                ..self.item(Form::Slice)
            },
            from,
        );
    }

    /// Ends the render stage that was begun at `from`.
    pub(super) fn put_stage(&self, piece: &mut Piece, form: Form, from: usize) {
        let track = piece.track(TrackKey::Stream(stream_of(&self.place), StreamRole::Stages));
        piece.push(
            Item {
                track,
                ..self.item(form)
            },
            from,
        );
    }
}

/// The stream that a place is in.
pub(super) fn stream_of(place: &Place) -> StreamKey {
    StreamKey {
        device: place.device,
        process: place.process,
        context: place.context,
        stream: place.stream,
    }
}

/// Bytes a second; 0 when nothing can be said.
pub(super) fn bandwidth(bytes: u64, time: &Stretch) -> u64 {
    let Some(duration) = time.duration().filter(|duration| *duration > 0) else {
        return 0;
    };
    u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(duration)).unwrap_or(u64::MAX)
}
