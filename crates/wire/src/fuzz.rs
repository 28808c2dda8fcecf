//! Entry points for fuzzing: what reads bytes of the other side, behind
//! functions that take any bytes and must not panic. `fuzz/` runs them under
//! libFuzzer; `tests/fuzz_corpus.rs` replays its corpus.

use crate::{
    control::Message,
    frame::{Kind, Parsed, Tag, header_word, parse},
    handshake,
};

/// A decoder that takes any bytes.
pub struct Target {
    /// Its name; in `fuzz/` its program and its corpus folder are named `wire_`
    /// and this.
    pub name: &'static str,
    /// Runs it once.
    pub run: fn(&[u8]),
}

/// All entry points.
pub const TARGETS: &[Target] = &[
    Target {
        name: "order",
        run: order,
    },
    Target {
        name: "greeting",
        run: greeting,
    },
    Target {
        name: "frames",
        run: frames,
    },
];

/// An order or answer; what was read says the same when it is said again.
pub fn order(data: &[u8]) {
    if let Ok(message) = Message::decode(data) {
        let again = Message::decode(&message.encode());
        assert!(again.is_ok_and(|again| again == message));
    }
}

/// The two messages of the handshake.
pub fn greeting(data: &[u8]) {
    handshake::decode_any(data);
}

/// What a ring of 64 KiB holds, frame by frame.
pub fn frames(data: &[u8]) {
    let mut rest = data;
    while let Ok(Parsed::Record { record, frame_bytes }) = parse(rest, 1 << 16) {
        assert!(record.payload.len() <= frame_bytes);
        rest = rest.get(frame_bytes..).unwrap_or_default();
    }
}

/// An order as it travels, for a corpus.
pub fn seed_order(message: &Message) -> Vec<u8> {
    message.encode()
}

/// The messages of the handshake, for a corpus.
pub fn seed_greetings() -> Vec<(&'static str, Vec<u8>)> {
    handshake::encoded_samples()
}

/// Adds a frame to what a ring holds, for a corpus.
pub fn seed_frame(frames: &mut Vec<u8>, kind: Kind, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    frames.extend_from_slice(&header_word(Tag::from(kind), length).to_ne_bytes());
    frames.extend_from_slice(payload);
    frames.resize(frames.len().next_multiple_of(8), 0);
}
