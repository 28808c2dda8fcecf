//! The two messages, to the byte.
//!
//! Words are little-endian. The first twelve bytes (magic and version) stay
//! where they are in every version to come, so that builds of any age can tell
//! each other apart; the rest is read only when the versions agree.

use crate::{
    config::{Capacity, Config, Policy},
    error::Error,
    layout::LAYOUT_VERSION,
};

/// The version of the protocol that this build speaks: of the handshake, of control messages and of records.
///
/// Since version 2 correlation IDs have 64 bits.
pub const PROTOCOL_VERSION: u32 = 2;

pub(super) const HELLO_BYTES: usize = 64;
pub(super) const ANSWER_BYTES: usize = 256;

const HELLO_MAGIC: u64 = u64::from_le_bytes(*b"TSHELLO\0");
const ANSWER_MAGIC: u64 = u64::from_le_bytes(*b"TSANSWER");
const REASON_AT: usize = 48;
const REASON_MAX: usize = ANSWER_BYTES - REASON_AT;

const GRANTED: u32 = 0;
const REFUSED: u32 = 1;

/// What a target says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its process, by the number that it knows itself by. In a container that
    /// is not the number that the collector knows: see
    /// [`Peer::process_id`](super::Peer::process_id).
    pub process_id: u32,
    /// The thread that connects, by the number that it knows itself by.
    pub thread_id: u32,
    /// How large a ring it would like.
    pub capacity: Capacity,
    /// What the connection is for.
    pub purpose: Purpose,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A ring for what other records refer to: texts, contexts, streams. It is
    /// read all the time, so nothing in it is ever overwritten.
    Definitions,
    /// A ring for the records that the vendor's library hands out.
    Activity,
    /// A ring for what one thread of the program does.
    Thread,
    /// A ring for the contents of memory, which waits for room.
    ReplayCapture,
    /// No ring: orders and answers, see [`control`](crate::control).
    Control,
}

impl Purpose {
    fn to_raw(self) -> u32 {
        match self {
            Self::Definitions => 1,
            Self::Activity => 2,
            Self::Thread => 3,
            Self::Control => 4,
            Self::ReplayCapture => 5,
        }
    }

    fn from_raw(code: u32) -> Result<Self, Error> {
        match code {
            1 => Ok(Self::Definitions),
            2 => Ok(Self::Activity),
            3 => Ok(Self::Thread),
            4 => Ok(Self::Control),
            5 => Ok(Self::ReplayCapture),
            _ => Err(Error::Malformed {
                message: "hello",
                what: "its purpose is not known",
            }),
        }
    }
}

/// What the collector answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The message brings the memory of a ring like this.
    Granted(Config),
    /// There will be no ring.
    Refused(String),
}

impl Hello {
    pub(super) fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut message = Message::<HELLO_BYTES>::new(HELLO_MAGIC);
        message.put_u32(12, LAYOUT_VERSION);
        message.put_u32(16, self.process_id);
        message.put_u32(20, self.thread_id);
        message.put_u64(24, self.capacity.bytes());
        message.put_u32(32, self.purpose.to_raw());
        message.bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let message = Message::<HELLO_BYTES>::read(bytes, HELLO_MAGIC, "hello")?;
        let theirs = message.u32(12);
        if theirs != LAYOUT_VERSION {
            return Err(Error::Version {
                what: "layout",
                ours: LAYOUT_VERSION,
                theirs,
            });
        }
        Ok(Self {
            process_id: message.u32(16),
            thread_id: message.u32(20),
            capacity: Capacity::exactly(message.u64(24))?,
            purpose: Purpose::from_raw(message.u32(32))?,
        })
    }
}

impl Answer {
    pub(super) fn encode(&self) -> [u8; ANSWER_BYTES] {
        let mut message = Message::<ANSWER_BYTES>::new(ANSWER_MAGIC);
        match self {
            Self::Granted(config) => {
                let (policy, limit_nanos) = config.policy.to_raw();
                message.put_u32(12, GRANTED);
                message.put_u32(16, LAYOUT_VERSION);
                message.put_u32(20, policy);
                message.put_u64(24, config.capacity.bytes());
                message.put_u64(32, limit_nanos);
            }
            Self::Refused(reason) => {
                let reason = cut(reason, REASON_MAX);
                message.put_u32(12, REFUSED);
                message.put_u32(40, reason.len() as u32);
                message.bytes[REASON_AT..REASON_AT + reason.len()].copy_from_slice(reason.as_bytes());
            }
        }
        message.bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let message = Message::<ANSWER_BYTES>::read(bytes, ANSWER_MAGIC, "answer")?;
        match message.u32(12) {
            GRANTED => message.granted().map(Self::Granted),
            REFUSED => Ok(Self::Refused(message.reason())),
            _ => Err(Error::Malformed {
                message: "answer",
                what: "it neither grants nor refuses",
            }),
        }
    }
}

/// The reason for which the other side refused a connection, if these bytes are such an answer. A refusal can arrive where
/// a control message is expected, because nobody waits for the answer to a control connection.
pub(crate) fn refusal(bytes: &[u8]) -> Option<Error> {
    let magic = bytes.first_chunk::<8>()?;
    if u64::from_le_bytes(*magic) != ANSWER_MAGIC {
        return None;
    }
    match Answer::decode(bytes) {
        Ok(Answer::Refused(reason)) => Some(Error::Refused { reason }),
        Ok(Answer::Granted(_)) => None,
        Err(error) => Some(error),
    }
}

/// The bytes of a message of one kind.
struct Message<const BYTES: usize> {
    bytes: [u8; BYTES],
}

impl<const BYTES: usize> Message<BYTES> {
    fn new(magic: u64) -> Self {
        let mut message = Self { bytes: [0; BYTES] };
        message.put_u64(0, magic);
        message.put_u32(8, PROTOCOL_VERSION);
        message
    }

    /// Checks what is the same in all versions, then the length.
    fn read(bytes: &[u8], magic: u64, name: &'static str) -> Result<Self, Error> {
        let malformed = |what| Error::Malformed { message: name, what };
        let Some((head, _)) = bytes.split_first_chunk::<12>() else {
            return Err(malformed("it is too short"));
        };
        let start = Message::<12> { bytes: *head };
        if start.u64(0) != magic {
            return Err(malformed("it does not begin as it should"));
        }
        let theirs = start.u32(8);
        if theirs != PROTOCOL_VERSION {
            return Err(Error::Version {
                what: "protocol",
                ours: PROTOCOL_VERSION,
                theirs,
            });
        }
        let bytes = bytes.try_into().map_err(|_| malformed("its length differs"))?;
        Ok(Self { bytes })
    }

    fn granted(&self) -> Result<Config, Error> {
        let theirs = self.u32(16);
        if theirs != LAYOUT_VERSION {
            return Err(Error::Version {
                what: "layout",
                ours: LAYOUT_VERSION,
                theirs,
            });
        }
        Ok(Config {
            capacity: Capacity::exactly(self.u64(24))?,
            policy: Policy::from_raw(self.u32(20), self.u64(32))?,
        })
    }

    fn reason(&self) -> String {
        let length = (self.u32(40) as usize).min(BYTES.saturating_sub(REASON_AT));
        let reason = self.bytes.iter().skip(REASON_AT).take(length).copied();
        String::from_utf8_lossy(&reason.collect::<Vec<_>>()).into_owned()
    }

    fn put_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn u32(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_le_bytes(word)
    }

    fn u64(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(word)
    }
}

/// The longest beginning of `text` within `bytes` that ends between characters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads bytes as either message; what it says is of no interest.
pub(crate) fn decode_any(bytes: &[u8]) {
    // Any outcome but a panic will do.
    let _ = Hello::decode(bytes);
    let _ = Answer::decode(bytes);
}

/// One of each message, as it travels.
pub(crate) fn encoded_samples() -> Vec<(&'static str, Vec<u8>)> {
    let hello = Hello {
        process_id: 7,
        thread_id: 8,
        capacity: Capacity::MIN,
        purpose: Purpose::Activity,
    };
    let config = Config {
        capacity: Capacity::MAX,
        policy: Policy::OverwriteOldest,
    };
    vec![
        ("hello", hello.encode().to_vec()),
        ("granted", Answer::Granted(config).encode().to_vec()),
        ("refused", Answer::Refused("no".to_owned()).encode().to_vec()),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HELLO: Hello = Hello {
        process_id: 7,
        thread_id: 8,
        capacity: Capacity::MIN,
        purpose: Purpose::Thread,
    };

    #[test]
    fn messages_survive_their_encoding() {
        assert_eq!(Hello::decode(&HELLO.encode()).unwrap(), HELLO);
        let limit = Duration::from_millis(3);
        for answer in [
            Answer::Granted(Config {
                capacity: Capacity::MAX,
                policy: Policy::Block { limit },
            }),
            Answer::Refused("the collector is full".to_owned()),
        ] {
            assert_eq!(Answer::decode(&answer.encode()).unwrap(), answer);
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_documentation() {
        let bytes = HELLO.encode();
        assert_eq!(&bytes[..8], b"TSHELLO\0");
        assert_eq!(
            bytes[8..32],
            [
                2, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0
            ]
        );
        assert_eq!(bytes[32..36], [3, 0, 0, 0]);
        assert_eq!(bytes[36..], [0; 28]);
        let bytes = Answer::Refused("no".to_owned()).encode();
        assert_eq!(&bytes[..8], b"TSANSWER");
        assert_eq!(bytes[8..16], [2, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(bytes[40..51], [2, 0, 0, 0, 0, 0, 0, 0, b'n', b'o', 0]);
    }

    #[test]
    fn another_version_is_told_from_garbage() {
        let mut bytes = HELLO.encode();
        bytes[8] = 9;
        // A later version may be longer: its length is not looked at.
        let longer = [&bytes[..], &[0; 9]].concat();
        let Err(Error::Version { what, theirs, .. }) = Hello::decode(&longer) else {
            panic!("the version is what differs");
        };
        assert_eq!((what, theirs), ("protocol", 9));
        assert!(matches!(Hello::decode(&[]), Err(Error::Malformed { .. })));
        assert!(matches!(Hello::decode(&[7; 64]), Err(Error::Malformed { .. })));
        assert!(matches!(
            Hello::decode(&HELLO.encode()[..63]),
            Err(Error::Malformed { .. })
        ));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let answer = Answer::Refused("ü".repeat(300));
        let Ok(Answer::Refused(reason)) = Answer::decode(&answer.encode()) else {
            panic!("a refusal stays one");
        };
        assert_eq!(reason, "ü".repeat(REASON_MAX / 2));
    }
}
