//! What is left of a trace that was cut off or damaged.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use std::io::Cursor;

use tracesmith_format::tables::*;
use tracesmith_format::{
    BLOCK_HEADER_BYTES, Block, BlockLookup, ClockId, CorrelationId, Error, FILE_HEADER_BYTES, FileHeader,
    FileSource, FrameId, Memory, Problem, ProcessId, Reader, StreamId, Timestamp, Writer, WriterOptions,
};

/// A trace with several kinds of block, small enough to try every byte of it.
fn writer() -> Writer<Cursor<Vec<u8>>> {
    let options = WriterOptions {
        id: *b"a small trace...",
        rows_per_block: 8,
        ..Default::default()
    };
    let mut writer = Writer::new(Cursor::new(Vec::new()), options).unwrap();
    writer.metadata("command", "python train.py").unwrap();
    let function = writer.string("main").unwrap();
    let frame = writer
        .frame(Frame {
            function,
            line: 3,
            ..Default::default()
        })
        .unwrap();
    assert_eq!(frame, FrameId(1));
    let stack = writer.stack_of([frame]).unwrap();
    writer
        .define(&Process {
            id: ProcessId(1),
            pid: 77,
            ..Default::default()
        })
        .unwrap();
    for i in 0..20u64 {
        let name = writer
            .string(["gemm", "softmax", "copy"][i as usize % 3])
            .unwrap();
        let kernel = Kernel {
            start: Timestamp(1_000_000 + i * 1_000 + i * i % 7),
            end: Timestamp(1_000_500 + i * 1_000),
            correlation: CorrelationId(i),
            stack,
            place: Place {
                stream: StreamId(i % 2),
                ..Default::default()
            },
            shape: KernelShape {
                name,
                grid_x: 1 + i as u32 % 4,
                ..Default::default()
            },
            ..Default::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    let counter = Counter {
        time: Timestamp(1_000_100),
        value: 0.5,
        ..Default::default()
    };
    writer.push(ClockId(1), &counter).unwrap();
    writer
}

fn streamed() -> Vec<u8> {
    writer().finish().unwrap().into_inner()
}

fn sealed() -> Vec<u8> {
    writer().seal().unwrap().into_inner()
}

/// Every block's payload, or the error that reading it gives.
fn payloads(reader: &Reader<Memory<&[u8]>>) -> Vec<(Block, Result<Vec<u8>, Error>)> {
    let mut decoder = reader.decoder();
    reader
        .blocks()
        .iter()
        .map(|block| (*block, decoder.payload(block).map(<[u8]>::to_vec)))
        .collect()
}

fn whole_blocks(file: &[u8]) -> Vec<(Block, Vec<u8>)> {
    let reader = Reader::open(Memory(file)).unwrap();
    assert_eq!(reader.damage(), []);
    assert_eq!(reader.found(), BlockLookup::Index);
    payloads(&reader)
        .into_iter()
        .map(|(block, payload)| (block, payload.unwrap()))
        .collect()
}

#[test]
fn every_cut_keeps_all_whole_blocks_and_says_what_is_lost() {
    for (file, knows_its_length) in [(streamed(), false), (sealed(), true)] {
        let whole = whole_blocks(&file);
        assert!(whole.len() >= 8);
        for cut in FILE_HEADER_BYTES..file.len() {
            let reader = Reader::open(Memory(&file[..cut])).unwrap();
            let expected: Vec<_> = whole
                .iter()
                .filter(|(block, _)| block.offset + block.header.total_length() <= cut as u64)
                .cloned()
                .collect();
            let found: Vec<_> = payloads(&reader)
                .into_iter()
                .map(|(block, payload)| (block, payload.unwrap()))
                .collect();
            assert_eq!(found, expected, "cut at {cut}");

            // The same blocks are found when the file grows, from those that were known before.
            let known = reader.intact_blocks();
            assert_eq!(known.len(), expected.len());
            for length in [(cut + 200).min(file.len() - 1), file.len()] {
                let (after, anew) = (
                    Reader::open_after(Memory(&file[..length]), known).unwrap(),
                    Reader::open(Memory(&file[..length])).unwrap(),
                );
                assert_eq!(after.blocks(), anew.blocks(), "from {cut} to {length}");
                assert_eq!(after.damage(), anew.damage(), "from {cut} to {length}");
            }

            // Everything behind the last whole block is accounted for, and the missing end is noticed.
            let index_end = reader
                .damage()
                .iter()
                .find(|d| d.problem == Problem::Cut)
                .map_or(cut as u64, |d| d.offset);
            let lost: u64 = reader
                .damage()
                .iter()
                .filter(|d| d.problem == Problem::Cut)
                .map(|d| d.length)
                .sum();
            assert_eq!(index_end + lost, cut as u64);
            assert!(
                reader.damage().iter().any(|d| d.problem == Problem::Unfinished),
                "cut at {cut}"
            );
            let missing = reader
                .damage()
                .iter()
                .find(|d| d.problem == Problem::Shortened)
                .map(|d| d.length);
            assert_eq!(missing, knows_its_length.then_some((file.len() - cut) as u64));
        }
        for cut in 1..FILE_HEADER_BYTES {
            assert!(
                matches!(Reader::open(Memory(&file[..cut])), Err(Error::CutHeader { .. })),
                "cut at {cut}"
            );
        }
    }
}

#[test]
fn a_cut_block_says_how_many_rows_it_held() {
    let file = streamed();
    let (last, _) = whole_blocks(&file)
        .into_iter()
        .rfind(|(block, _)| block.header.kind.is_events())
        .unwrap();
    let cut = last.offset as usize + BLOCK_HEADER_BYTES + 3;
    let reader = Reader::open(Memory(&file[..cut])).unwrap();
    let damage = reader
        .damage()
        .iter()
        .find(|d| d.problem == Problem::Cut)
        .unwrap();
    assert_eq!(damage.rows, last.header.rows);
    assert_eq!(damage.kind, Some(last.header.kind));
    assert_eq!(
        damage.to_string(),
        format!(
            "block {} ({}) at byte {}: the file ends inside it (67 bytes, {} rows)",
            last.header.sequence, last.header.kind, last.offset, last.header.rows,
        )
    );
}

#[test]
fn every_flipped_bit_is_found_and_costs_at_most_its_own_block() {
    for file in [streamed(), sealed()] {
        let whole = whole_blocks(&file);
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let at = bit as u64 / 8;
            let reader = Reader::open(Memory(&flipped[..])).unwrap_or_else(|e| panic!("bit {bit}: {e}"));
            let mut damage = reader.damage().to_vec();
            let mut intact = Vec::new();
            for (block, payload) in payloads(&reader) {
                match payload {
                    Ok(payload) => intact.push((block, payload)),
                    Err(Error::Damaged { damage: found }) => damage.push(found),
                    Err(other) => panic!("bit {bit}: {other}"),
                }
            }
            let expected: Vec<_> = whole
                .iter()
                .filter(|(block, _)| {
                    !(block.offset..block.offset + block.header.total_length()).contains(&at)
                })
                .cloned()
                .collect();
            assert_eq!(intact, expected, "bit {bit}");
            assert!(
                damage
                    .iter()
                    .any(|d| (d.offset..d.offset + d.length).contains(&at)),
                "bit {bit} is not reported: {damage:?}"
            );
        }
    }
}

#[test]
fn bytes_behind_the_end_are_noticed_and_harmless() {
    let mut file = sealed();
    let whole = whole_blocks(&file);
    file.extend_from_slice(
        b"a tail that someone appended, longer than a block header, for no good reason at all",
    );
    let reader = Reader::open(Memory(&file[..])).unwrap();
    assert_eq!(reader.blocks().len(), whole.len());
    assert!(matches!(reader.damage(), [d] if d.problem == Problem::Trailing));
}

#[test]
fn a_block_of_an_unknown_kind_is_listed_and_skipped() {
    let file = sealed();
    let mut changed = file.clone();
    let (victim, _) = whole_blocks(&file)
        .into_iter()
        .find(|(b, _)| b.header.kind.is_events())
        .unwrap();
    let mut header = victim.header;
    header.kind = tracesmith_format::BlockKind(999);
    let at = victim.offset as usize;
    changed[at..at + BLOCK_HEADER_BYTES].copy_from_slice(&header.to_bytes());
    let reader = Reader::scan(Memory(&changed[..])).unwrap();
    assert_eq!(reader.damage(), []);
    assert_eq!(reader.blocks().len(), whole_blocks(&file).len());
    assert!(payloads(&reader).iter().all(|(_, payload)| payload.is_ok()));
    // The index still promises the old kind: that block alone is refused.
    let reader = Reader::open(Memory(&changed[..])).unwrap();
    assert_eq!(
        payloads(&reader)
            .iter()
            .filter(|(_, payload)| payload.is_err())
            .count(),
        1
    );
}

#[test]
fn files_that_are_no_traces_are_told_apart() {
    let open = |bytes: &[u8]| Reader::open(Memory(bytes)).err().unwrap().to_string();
    assert_eq!(open(b""), "the file is empty");
    assert_eq!(open(b"{\"traceEvents\": []}"), "not an SBT trace");
    assert_eq!(open(&[0; 4096]), "not an SBT trace");
    assert_eq!(
        open(&sealed()[..20]),
        "the file ends after 20 bytes, inside its header"
    );
    let newer = FileHeader {
        major: 2,
        ..FileHeader::unfinished([0; 16])
    };
    assert_eq!(
        open(&newer.to_bytes()),
        "the trace is of format version 2.0; this program reads versions up to 1.x"
    );
}

#[test]
fn offsets_of_any_size_in_the_header_are_harmless() {
    let file = sealed();
    let header = FileHeader::from_bytes(file[..FILE_HEADER_BYTES].try_into().unwrap())
        .unwrap()
        .unwrap();
    for wild in [1, 65, 1 << 63, u64::MAX] {
        for changed in [
            FileHeader {
                index_offset: wild,
                ..header
            },
            FileHeader {
                file_length: wild,
                ..header
            },
            FileHeader {
                metadata_offset: wild,
                index_offset: wild,
                file_length: wild,
                ..header
            },
        ] {
            let mut wild_file = file.clone();
            wild_file[..FILE_HEADER_BYTES].copy_from_slice(&changed.to_bytes());
            let reader = Reader::open(Memory(&wild_file[..])).unwrap();
            assert_eq!(reader.blocks().len(), whole_blocks(&file).len());
        }
    }
}

#[test]
fn a_directory_is_refused_when_opened() {
    assert!(FileSource::open(std::env::temp_dir().as_path()).is_err());
}

#[test]
fn the_file_source_reads_what_the_memory_source_reads() {
    let file = sealed();
    let path = std::env::temp_dir().join(format!("tracesmith-format-{}.sbt", std::process::id()));
    std::fs::write(&path, &file).unwrap();
    let from_file = Reader::open(FileSource::open(&path).unwrap()).unwrap();
    let mut decoder = from_file.decoder();
    for (block, payload) in whole_blocks(&file) {
        assert_eq!(decoder.payload(&block).unwrap(), payload);
    }
    // Cut under the reader's feet: an error, not a crash.
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(100)
        .unwrap();
    let last = *from_file.blocks().last().unwrap();
    assert!(matches!(decoder.payload(&last), Err(Error::Read { .. })));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_full_disk_is_an_error_that_says_how_far_it_got() {
    struct Small(usize);
    impl std::io::Write for Small {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            let n = bytes.len().min(self.0);
            self.0 -= n;
            Ok(n)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut writer = Writer::new(
        Small(20_000),
        WriterOptions {
            rows_per_block: 100,
            ..Default::default()
        },
    )
    .unwrap();
    let error = (0..u64::MAX)
        .find_map(|i| {
            let start = Timestamp(1 + i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            writer
                .push(
                    ClockId(1),
                    &Kernel {
                        start,
                        end: start,
                        ..Default::default()
                    },
                )
                .err()
        })
        .unwrap();
    assert!(
        matches!(error, Error::Write { written, .. } if written > 5_000 && written <= 20_000),
        "{error:?}"
    );
}
