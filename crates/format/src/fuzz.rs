//! Entry points for fuzzing: each decoder behind a function that takes any bytes and must neither panic nor take more
//! memory than the format's limits allow. `fuzz/` runs them under libFuzzer; `tests/fuzz_corpus.rs` replays its corpus.

use crate::block::{BLOCK_HEADER_BYTES, BlockHeader, MAX_BLOCK_BYTES, MAX_BLOCK_ROWS, SYNC, u32_at};
use crate::codec::{BlockDecoder, Scratch, packed, planes};
use crate::for_each_table;
use crate::header::{FILE_HEADER_BYTES, FileHeader, MAGIC};
use crate::reader::Reader;
use crate::source::Memory;
use crate::table::{Columns, Projection, Table};
use crate::tables::*;
use crate::varint;

/// A decoder that takes any bytes.
pub struct Target {
    /// Its name; in `fuzz/` its program and its corpus folder are named `format_` and this.
    pub name: &'static str,
    /// Runs it once.
    pub run: fn(&[u8]),
}

/// All entry points.
pub const TARGETS: &[Target] = &[
    Target {
        name: "file_header",
        run: file_header,
    },
    Target {
        name: "block_header",
        run: block_header,
    },
    Target {
        name: "packed",
        run: packed_column,
    },
    Target {
        name: "planes",
        run: planes_column,
    },
    Target {
        name: "varint",
        run: varint_number,
    },
    Target {
        name: "block",
        run: block,
    },
    Target {
        name: "file",
        run: file,
    },
    Target {
        name: "mended_file",
        run: mended_file,
    },
];

/// The file header, as it is and with its checksum set right; what was read is written back the same.
pub fn file_header(data: &[u8]) {
    let Some(bytes) = data.first_chunk::<FILE_HEADER_BYTES>() else {
        return;
    };
    let mut bytes = *bytes;
    let _ = FileHeader::from_bytes(&bytes);
    mend_header(&MAGIC, &mut bytes);
    if let Ok(Some(header)) = FileHeader::from_bytes(&bytes) {
        assert_eq!(
            FileHeader::from_bytes(&header.to_bytes()).ok().flatten(),
            Some(header)
        );
    }
}

/// A block header, as it is and with its checksum set right.
pub fn block_header(data: &[u8]) {
    let Some(bytes) = data.first_chunk::<BLOCK_HEADER_BYTES>() else {
        return;
    };
    let mut bytes = *bytes;
    let _ = BlockHeader::from_bytes(&bytes);
    mend_header(&SYNC, &mut bytes);
    if let Ok(header) = BlockHeader::from_bytes(&bytes) {
        assert_eq!(BlockHeader::from_bytes(&header.to_bytes()), Ok(header));
    }
}

/// Bit-packed frames: the first two bytes say how many values. What decodes must survive a round trip.
pub fn packed_column(data: &[u8]) {
    let Some((count, mut rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let count = usize::from(u16::from_le_bytes(*count));
    let mut values = Vec::new();
    if packed::decode(&mut rest, count, &mut values).is_some() {
        let mut bytes = Vec::new();
        packed::encode(&values, &mut bytes);
        let mut back = Vec::new();
        assert!(packed::decode(&mut &bytes[..], count, &mut back).is_some());
        assert_eq!(back, values);
    }
}

/// Byte planes: the first two bytes say how many values.
pub fn planes_column(data: &[u8]) {
    let Some((count, rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let count = usize::from(u16::from_le_bytes(*count));
    let mut values = Vec::new();
    if planes::decode(rest, count, &mut values).is_some() {
        let mut bytes = Vec::new();
        planes::encode(&values, (rest.len() / count) as u32, &mut bytes);
        assert_eq!(bytes, rest);
    }
}

/// Variable-length numbers.
pub fn varint_number(data: &[u8]) {
    let mut rest = data;
    if let Some(value) = varint::take(&mut rest) {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, value);
        assert_eq!(varint::take(&mut &bytes[..]), Some(value));
    }
}

/// A payload as every table, its header made to match: the first byte picks the table, three more the rows.
pub fn block(data: &[u8]) {
    let Some((&[table, a, b, c], payload)) = data.split_first_chunk::<4>() else {
        return;
    };
    let rows = u32::from_le_bytes([a, b, c, 0]) % (MAX_BLOCK_ROWS + 1);
    macro_rules! decode {
        ($($field:ident: $row:ident,)*) => {{
            let decoders: &[fn(u32, &[u8])] = &[
                decode_as::<Text>,
                decode_as::<Frame>,
                decode_as::<Stack>,
                decode_as::<SchemaColumn>,
                decode_as::<IndexEntry>,
                $(decode_as::<$row>,)*
            ];
            decoders[usize::from(table) % decoders.len()](rows, payload);
        }};
    }
    for_each_table!(decode);
}

fn decode_as<T: Table>(rows: u32, payload: &[u8]) {
    let header = BlockHeader {
        kind: T::KIND,
        codec: 0,
        payload_length: payload.len() as u32,
        unpacked_length: MAX_BLOCK_BYTES as u32,
        first_time: 0,
        last_time: 0,
        base: 0,
        rows,
        clock: Default::default(),
        sequence: 0,
        payload_crc: 0,
    };
    let mut scratch = Scratch::new();
    if let Ok(mut decoder) = BlockDecoder::new(&header, payload, &mut scratch)
        && let Ok(columns) = T::Columns::decode(&mut decoder, &Projection::all())
    {
        assert_eq!(columns.len(), rows as usize);
        for row in [0, rows as usize / 2, (rows as usize).saturating_sub(1)] {
            if row < columns.len() {
                columns.visit(row, &mut |_, _| {});
            }
        }
        columns.span();
    }
}

/// A whole file: opened, and every block of it read.
pub fn file(data: &[u8]) {
    let Ok(reader) = Reader::open(Memory(data)) else {
        return;
    };
    let mut decoder = reader.decoder();
    for block in reader.blocks() {
        macro_rules! read {
            ($($field:ident: $row:ident,)*) => {
                match block.header.kind {
                    Text::KIND => drop(decoder.read::<Text>(block, &Projection::all())),
                    Frame::KIND => drop(decoder.read::<Frame>(block, &Projection::all())),
                    Stack::KIND => drop(decoder.read::<Stack>(block, &Projection::all())),
                    $(kind if kind == $row::KIND => drop(decoder.read::<$row>(block, &Projection::all())),)*
                    _ => drop(decoder.payload(block)),
                }
            };
        }
        for_each_table!(read);
    }
}

/// A whole file with all checksums set right, so that a fuzzer gets past them without knowing how.
pub fn mended_file(data: &[u8]) {
    file(&mended(data));
}

/// A file with all checksums set right.
pub fn mended(data: &[u8]) -> Vec<u8> {
    let mut mended = data.to_vec();
    if let Some(header) = mended.first_chunk_mut::<FILE_HEADER_BYTES>() {
        mend_header(&MAGIC, header);
    }
    let mut rest = mended.get_mut(FILE_HEADER_BYTES..).unwrap_or_default();
    while let Some((header, behind)) = rest.split_first_chunk_mut::<BLOCK_HEADER_BYTES>() {
        let length = u32_at(header, 8) as usize;
        let Some((payload, next)) = behind.split_at_mut_checked(length) else {
            mend_header(&SYNC, header);
            break;
        };
        header[52..56].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
        mend_header(&SYNC, header);
        rest = next;
    }
    mended
}

/// File and block headers are built alike: they begin with known bytes and end with the checksum of what is before it.
fn mend_header(begin: &[u8], header: &mut [u8; 64]) {
    header[..begin.len()].copy_from_slice(begin);
    let crc = crc32c::crc32c(&header[..60]);
    header[60..].copy_from_slice(&crc.to_le_bytes());
}
