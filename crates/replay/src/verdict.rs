//! Whether memory is the same as recorded.

use crate::tolerance::Close;

/// The result of a replay.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// All bytes are the same as recorded.
    Same {
        /// Number of compared buffers.
        buffers: usize,
        /// Their total size.
        bytes: u64,
    },
    /// Some bytes differ, but all numbers are within tolerance.
    Within {
        /// Number of compared buffers.
        buffers: usize,
        /// Their total size.
        bytes: u64,
        /// Buffers that are not bit-identical.
        close: Vec<Close>,
    },
    /// The comparison proves nothing: there is no memory to compare, or the recorded kernel changed no memory.
    Unproven {
        /// The reason.
        why: &'static str,
    },
    /// Memory differs.
    Differs {
        /// The differences, by address.
        differences: Vec<Difference>,
        /// Number of compared buffers.
        buffers: usize,
    },
}

impl Verdict {
    /// The worse of two verdicts of the same run.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (own @ Self::Differs { .. }, _) => own,
            (_, other @ Self::Differs { .. }) => other,
            // One of the two compared memory.
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

    /// Whether memory is the same as recorded, or within tolerance.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Same { .. } | Self::Within { .. })
    }
}

/// A buffer that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The address.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// The offset of the first different byte in the buffer.
    pub offset: u64,
    /// The recorded bytes, or the results of the recorded kernels. At most eight bytes.
    pub expected: Vec<u8>,
    /// The bytes of this run.
    pub found: Vec<u8>,
    /// Number of different bytes. 0 if a difference in one run could not be reproduced.
    pub count: u64,
    /// The call after which the difference was found. `None` at the end.
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
