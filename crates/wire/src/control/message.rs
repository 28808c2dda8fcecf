//! What is said.

use super::{
    codec::{Decoder, Encoder, malformed},
    settings::Settings,
};
use crate::{error::Error, handshake::PROTOCOL_VERSION};

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the target: record, as these settings say.
    Open(Box<Settings>),
    /// To the target: stop recording and hand over what there is.
    Close,
    /// To the target: a range begins, of those that are recorded when the
    /// collector says so. Not answered.
    Begin,
    /// To the target: it ends. Not answered.
    End,
    /// From the target: the last order was carried out.
    Done,
    /// From the target: it was not, and this is why.
    Failed(String),
    /// To the target, which passes it on to its collector: write out what the
    /// flight recorder holds.
    Dump,
    /// From the collector, passed on by the target: it is written, or not, and
    /// where or why.
    Dumped(Result<String, String>),
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.word(u64::from(PROTOCOL_VERSION));
        match self {
            Self::Open(settings) => settings.encode(encoder.word(1)),
            Self::Close => encoder.word(2),
            Self::Done => encoder.word(3),
            Self::Failed(reason) => encoder.word(4).text(reason.as_bytes()),
            Self::Dump => encoder.word(5),
            Self::Dumped(Ok(path)) => encoder.word(6).text(path.as_bytes()),
            Self::Dumped(Err(reason)) => encoder.word(7).text(reason.as_bytes()),
            Self::Begin => encoder.word(8),
            Self::End => encoder.word(9),
        };
        encoder.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut decoder = Decoder::new(bytes);
        let theirs = u32::try_from(decoder.word()?).unwrap_or(u32::MAX);
        if theirs != PROTOCOL_VERSION {
            return Err(Error::Version {
                what: "protocol",
                ours: PROTOCOL_VERSION,
                theirs,
            });
        }
        Ok(match decoder.word()? {
            1 => Self::Open(Box::new(Settings::decode(&mut decoder)?)),
            2 => Self::Close,
            3 => Self::Done,
            4 => Self::Failed(decoder.string()?),
            5 => Self::Dump,
            6 => Self::Dumped(Ok(decoder.string()?)),
            7 => Self::Dumped(Err(decoder.string()?)),
            8 => Self::Begin,
            9 => Self::End,
            _ => return Err(malformed("it is none that this build knows")),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, time::Duration};

    use super::*;
    use crate::{
        Capacity,
        control::{CaptureRange, Kinds, Steps},
    };

    fn settings() -> Settings {
        Settings {
            collector: PathBuf::from("/run/user/1000/x/collector.sock"),
            kinds: Kinds::KERNELS | Kinds::MARKERS,
            range: CaptureRange::Marker {
                name: "step\n".to_owned(),
                domain: Some("train".to_owned()),
            },
            steps: Some(Steps { first: 3, last: 9 }),
            activity_ring: Capacity::at_least(1 << 25),
            thread_ring: Capacity::at_least(1 << 18),
            memory_bytes: 64 << 20,
            flush_period: Duration::from_millis(200),
        }
    }

    #[test]
    fn messages_survive_their_encoding() {
        let mut plain = settings();
        plain.range = CaptureRange::Everything;
        plain.steps = None;
        let mut launch = settings();
        launch.range = CaptureRange::Launch {
            pattern: "flash*".to_owned(),
        };
        let mut order = settings();
        order.range = CaptureRange::Order;
        for message in [
            Message::Open(Box::new(launch)),
            Message::Open(Box::new(order)),
            Message::Begin,
            Message::End,
            Message::Open(Box::new(settings())),
            Message::Open(Box::new(plain)),
            Message::Close,
            Message::Done,
            Message::Failed("no CUPTI".to_owned()),
            Message::Dump,
            Message::Dumped(Ok("/tmp/a.sbt".to_owned())),
            Message::Dumped(Err("disk full".to_owned())),
        ] {
            assert_eq!(Message::decode(&message.encode()).unwrap(), message);
        }
    }

    #[test]
    fn every_cut_is_an_error() {
        let bytes = Message::Open(Box::new(settings())).encode();
        for cut in 0..bytes.len() {
            assert!(Message::decode(&bytes[..cut]).is_err(), "{cut}");
        }
    }
}
