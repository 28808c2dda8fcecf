//! Whether memory came out as it was recorded.

use crate::tolerance::Close;

/// The outcome of a replay.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Every byte is as it was recorded.
    Same {
        /// Buffers that were compared.
        buffers: usize,
        /// Bytes of them.
        bytes: u64,
    },
    /// Some bytes are not, and the numbers that they are part of are near enough.
    Within {
        /// Buffers that were compared.
        buffers: usize,
        /// Bytes of them.
        bytes: u64,
        /// Those that are not the same to the last byte.
        close: Vec<Close>,
    },
    /// Nothing that was compared can show a difference: there is no memory to compare, or the recorded kernel leaves
    /// all of it as it was before.
    Unproven {
        /// Why.
        why: &'static str,
    },
    /// Something is not.
    Differs {
        /// What, by address.
        differences: Vec<Difference>,
        /// Buffers that were compared.
        buffers: usize,
    },
}

impl Verdict {
    /// This verdict, unless another one of the same run is worse.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (own @ Self::Differs { .. }, _) => own,
            (_, other @ Self::Differs { .. }) => other,
            // One of the two has something to show.
            (Self::Unproven { .. }, other) => other,
            (own, Self::Same { .. } | Self::Unproven { .. }) => own,
            (Self::Same { buffers, bytes }, Self::Within { close, .. }) => Self::Within {
                buffers,
                bytes,
                close,
            },
            (
                Self::Within {
                    buffers,
                    bytes,
                    mut close,
                },
                Self::Within { close: more, .. },
            ) => {
                close.extend(more);
                Self::Within {
                    buffers,
                    bytes,
                    close,
                }
            }
        }
    }

    /// Whether it is as it was recorded, or near enough.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Same { .. } | Self::Within { .. })
    }
}

/// A buffer that came out otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The buffer.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// Where the first byte is that differs, from the buffer's beginning.
    pub offset: u64,
    /// What was recorded there, or what the recorded kernels leave there: up to eight bytes.
    pub expected: Vec<u8>,
    /// What is there now.
    pub found: Vec<u8>,
    /// How many bytes differ. None when they did in one run, and in the next, which was to show them, did not.
    pub count: u64,
    /// The call after which it was seen; none at the end.
    pub call: Option<u64>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(call) = self.call {
            write!(f, "after #{call}: ")?;
        }
        if self.count == 0 {
            let (address, bytes) = (self.address, self.bytes);
            return write!(
                f,
                "{address:#x} ({bytes} bytes): differed in one run but not in the next"
            );
        }
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        write!(
            f,
            "{:#x}: {} of {} bytes differ, first at offset {}: expected {}, found {}",
            self.address,
            self.count,
            self.bytes,
            self.offset,
            hex(&self.expected),
            hex(&self.found)
        )
    }
}
