//! LLVM XRay: logs of function calls that programs built with `-fxray-instrument` write, basic and flight recorder mode.
//!
//! Such files have no magic number. What is taken for one has a sane header and nothing but sane records as far as one
//! looks. Functions are numbers in the log; the program that wrote it has their names.

#[cfg(test)]
mod against_llvm;
mod calls;
mod fdr;
mod names;
mod records;
#[cfg(test)]
mod tests;

use std::io::{BufReader, Read};

use tracesmith_format::tables::{ClockKind, HealthCause};
use tracesmith_format::{ImageId, ProcessId};

use crate::error::Error;
use crate::import::{Builder, ImportOptions, Importer, Input};
use calls::Calls;
use fdr::FlightLog;
use names::FunctionNames;
use records::{BasicRecords, Breaks, Header, LogKind, RECORD_BYTES, RecordKind, read_full, u16_at};

pub(super) const IMPORTER: Importer = Importer {
    name: "xray",
    title: "LLVM XRay log",
    sniff,
    read,
};

/// Counters of real processors, in cycles a second. Where the runtime knows none, it writes nanoseconds and says so.
const SANE_FREQUENCIES: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000_000;
/// The largest flight recorder's log that is read: it must be in memory as a whole.
const MAX_FLIGHT_LOG: u64 = 4 << 30;

fn sniff(head: &[u8]) -> bool {
    let Some(header) = Header::parse(head) else {
        return false;
    };
    let Some(records) = head.get(RECORD_BYTES..).filter(|records| !records.is_empty()) else {
        return false;
    };
    SANE_FREQUENCIES.contains(&header.frequency)
        && match header.kind {
            LogKind::Basic => {
                let mut records = records.chunks_exact(RECORD_BYTES).peekable();
                records.peek().is_some() && records.all(is_basic_record)
            }
            LogKind::FlightRecorder => records[0] == fdr::first_byte(header.version),
        }
}

fn is_basic_record(record: &[u8]) -> bool {
    match u16_at(record, 0) {
        Some(0) => RecordKind::of_function(record[3]).is_some(),
        Some(1) => true,
        _ => false,
    }
}

fn read(input: &mut Input, options: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let mut reader = BufReader::with_capacity(256 << 10, input);
    let mut beginning = [0; RECORD_BYTES];
    let count = read_full(&mut reader, &mut beginning)?;
    let header = Header::parse(&beginning[..count]).ok_or_else(|| Error::Foreign {
        format: "xray",
        problem: "no header of a log of version 1 to 3 (basic) or 1 to 5 (flight recorder)".to_owned(),
        position: "byte 0".to_owned(),
    })?;
    let names = match &options.binary {
        Some(program) => FunctionNames::read(program)?,
        None => FunctionNames::default(),
    };
    state_facts(&header, options, builder)?;
    let host = builder.host("")?;
    let image = match &options.binary {
        Some(program) => builder.image(ProcessId::NONE, &program.display().to_string())?,
        None => ImageId::NONE,
    };
    let clock_name = format!("the processor's counter at {} Hz", header.frequency);
    let clock = builder.clock(ClockKind::UNKNOWN, &clock_name)?;
    let mut calls = Calls::new(&names, clock, host, image, header.frequency);
    let breaks = match header.kind {
        LogKind::Basic => {
            let mut records = BasicRecords::new(reader, &header);
            while let Some(record) = records.next()? {
                calls.take(&record, builder)?;
            }
            Breaks {
                first: records.broken().cloned().into_iter().collect(),
                further: 0,
            }
        }
        LogKind::FlightRecorder => {
            let bytes = flight_log(beginning, reader)?;
            let log = FlightLog::new(&bytes, &header);
            if let Some((seconds, nanoseconds)) = log.begun() {
                builder.metadata("xray.begun", &format!("{seconds}.{nanoseconds:09} s"))?;
            }
            log.for_each(|record| calls.take(&record, builder))?
        }
    };
    calls.finish(builder)?;
    note_breaks(&breaks, builder);
    Ok(())
}

fn state_facts(header: &Header, options: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let mode = match header.kind {
        LogKind::Basic => "basic",
        LogKind::FlightRecorder => "flight data recorder",
    };
    builder.metadata("xray.mode", mode)?;
    builder.metadata("xray.version", &header.version.to_string())?;
    builder.metadata("xray.cycle_frequency", &header.frequency.to_string())?;
    builder.metadata("xray.constant_counter", &header.constant_counter.to_string())?;
    builder.metadata("xray.nonstop_counter", &header.nonstop_counter.to_string())?;
    if header.kind == LogKind::FlightRecorder {
        builder.metadata("xray.buffer_bytes", &header.buffer_bytes.to_string())?;
    }
    if header.frequency == 0 {
        builder.doubt(
            HealthCause::OTHER,
            "the log states no frequency: its cycles are taken for nanoseconds",
            1,
        );
    }
    if let Some(program) = &options.binary {
        builder.metadata("xray.binary", &program.display().to_string())?;
    }
    Ok(())
}

fn flight_log(beginning: [u8; RECORD_BYTES], reader: impl Read) -> Result<Vec<u8>, Error> {
    let mut bytes = beginning.to_vec();
    reader
        .take(MAX_FLIGHT_LOG)
        .read_to_end(&mut bytes)
        .map_err(|source| Error::Read { source })?;
    if bytes.len() as u64 >= MAX_FLIGHT_LOG {
        return Err(Error::Foreign {
            format: "xray",
            problem: "a flight recorder's log of more than 4 GiB".to_owned(),
            position: format!("byte {MAX_FLIGHT_LOG}"),
        });
    }
    Ok(bytes)
}

/// Says where records are missing.
fn note_breaks(breaks: &Breaks, builder: &mut Builder<'_, '_>) {
    for broken in &breaks.first {
        builder.cut(&format!("{}, at byte {}", broken.problem, broken.position));
    }
    builder.doubt(HealthCause::CUT, "further damaged buffers", breaks.further);
}
