//! The packets of a file, one at a time, unpacked where they are compressed.

use std::io::{BufReader, Read};

use crate::error::Error;
use crate::import::{Builder, Input};
use crate::perfetto::schema::{packet, trace as file};
use crate::perfetto::wire::{Fields, Value};

/// The largest packet that is taken for one. Perfetto's own are below 512 KiB, those of converters some megabytes.
const MAX_PACKET: u64 = 256 << 20;
/// The most that one compressed packet may unpack to.
const MAX_UNPACKED: u64 = 1 << 30;

const FORMAT: &str = "perfetto";

/// A packet's bytes.
pub(super) struct Packet<'p> {
    pub(super) bytes: &'p [u8],
}

/// Reads packets.
pub(super) struct Packets<'i> {
    input: BufReader<&'i mut Input>,
    /// Bytes taken from the input.
    position: u64,
    buffer: Vec<u8>,
    /// Packets that were compressed together: their bytes, and how far they are given out.
    unpacked: Vec<u8>,
    given: usize,
}

impl<'i> Packets<'i> {
    pub(super) fn new(input: &'i mut Input) -> Self {
        Packets {
            input: BufReader::with_capacity(256 << 10, input),
            position: 0,
            buffer: Vec::new(),
            unpacked: Vec::new(),
            given: 0,
        }
    }

    /// The next packet.
    pub(super) fn next(&mut self, builder: &mut Builder<'_, '_>) -> Result<Option<Packet<'_>>, Error> {
        loop {
            if self.given < self.unpacked.len() {
                let Some((start, end)) = self.next_unpacked(builder) else {
                    continue;
                };
                return Ok(Some(Packet {
                    bytes: &self.unpacked[start..end],
                }));
            }
            if !self.fill(builder)? {
                return Ok(None);
            }
            if !self.unpack(builder)? {
                return Ok(Some(Packet { bytes: &self.buffer }));
            }
        }
    }

    /// The place of the next packet among the unpacked ones.
    fn next_unpacked(&mut self, builder: &mut Builder<'_, '_>) -> Option<(usize, usize)> {
        let mut fields = Fields::new(&self.unpacked[self.given..]);
        let field = fields.next();
        let end = self.unpacked.len() - fields.rest().len();
        let found = match field {
            Some(Ok((file::PACKET, Value::Bytes(bytes)))) => Some((end - bytes.len(), end)),
            Some(Ok(_)) => None,
            _ => {
                builder.cut("compressed packets that end within a packet");
                None
            }
        };
        self.given = end;
        found
    }

    /// Reads the next packet of the file into the buffer; false at the end.
    fn fill(&mut self, builder: &mut Builder<'_, '_>) -> Result<bool, Error> {
        loop {
            let start = self.position;
            let Some(tag) = self.varint()? else {
                if self.position > start {
                    builder.cut("the file ends within a packet");
                }
                return Ok(false);
            };
            let (field, wire) = (tag >> 3, tag & 7);
            let length = match wire {
                0 => {
                    self.varint()?;
                    0
                }
                1 => 8,
                5 => 4,
                2 => match self.varint()? {
                    Some(length) => length,
                    None => {
                        builder.cut("the file ends within a packet");
                        return Ok(false);
                    }
                },
                _ => return self.give_up(start, builder),
            };
            if field == 0 || length > MAX_PACKET {
                return self.give_up(start, builder);
            }
            self.buffer.clear();
            let read = (&mut self.input)
                .take(length)
                .read_to_end(&mut self.buffer)
                .map_err(|source| Error::Read { source })?;
            self.position += read as u64;
            if (read as u64) < length {
                builder.cut("the file ends within a packet");
                return Ok(false);
            }
            if field == u64::from(file::PACKET) && wire == 2 {
                return Ok(true);
            }
            builder.skip("fields of the file that are no packets", 1);
        }
    }

    /// Nothing tells where the next packet would begin, so the rest of the file is lost.
    fn give_up(&mut self, at: u64, builder: &mut Builder<'_, '_>) -> Result<bool, Error> {
        if at == 0 {
            return Err(Error::Foreign {
                format: FORMAT,
                problem: "it does not begin with a packet".to_owned(),
                position: "byte 0".to_owned(),
            });
        }
        builder.cut(&format!("from byte {at} on there are no packets"));
        Ok(false)
    }

    /// Unpacks the packet in the buffer if it is a compressed one; says whether it was.
    fn unpack(&mut self, builder: &mut Builder<'_, '_>) -> Result<bool, Error> {
        let compressed =
            Fields::new(&self.buffer)
                .flatten()
                .find_map(|(field, value)| match (field, value) {
                    (packet::COMPRESSED_PACKETS | packet::ZSTD_PACKETS, Value::Bytes(bytes)) => {
                        Some((field, bytes))
                    }
                    _ => None,
                });
        let Some((field, bytes)) = compressed else {
            return Ok(false);
        };
        self.unpacked.clear();
        self.given = 0;
        // A bomb would unpack to thousands of times its size; the file itself is allowed far less.
        let limit = MAX_UNPACKED.min((bytes.len() as u64).saturating_mul(1100) + 4096);
        let result = if field == packet::COMPRESSED_PACKETS {
            flate2::bufread::ZlibDecoder::new(bytes)
                .take(limit)
                .read_to_end(&mut self.unpacked)
        } else {
            zstd::stream::read::Decoder::with_buffer(bytes)
                .and_then(|decoder| decoder.take(limit).read_to_end(&mut self.unpacked))
        };
        if result.is_err() {
            builder.cut("compressed packets that cannot be unpacked to their end");
        } else if self.unpacked.len() as u64 == limit {
            return Err(Error::Foreign {
                format: FORMAT,
                problem: format!("a compressed packet unpacks to more than {limit} bytes"),
                position: format!("byte {}", self.position),
            });
        }
        Ok(true)
    }

    /// A varint of the file; `None` at its end.
    fn varint(&mut self) -> Result<Option<u64>, Error> {
        let mut value = 0;
        for at in 0..10 {
            let mut byte = [0];
            let read = self
                .input
                .read(&mut byte)
                .map_err(|source| Error::Read { source })?;
            if read == 0 {
                return Ok(None);
            }
            self.position += 1;
            value |= u64::from(byte[0] & 0x7f) << (7 * at);
            if byte[0] < 0x80 {
                return Ok(Some(value));
            }
        }
        // Too long to be a number; no tag and no length is that large.
        Ok(Some(u64::MAX))
    }
}
