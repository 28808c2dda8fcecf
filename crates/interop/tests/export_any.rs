//! Every exporter, over rows of any content in every table: whatever a trace holds, there is an answer.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use tracesmith_format::arbitrary::{Arbitrary, numbers};
use tracesmith_format::tables::*;
use tracesmith_format::{ClockId, Timestamp, Writable, Writer, WriterOptions, for_each_table};
use tracesmith_interop::Error;
use tracesmith_interop::export::{EXPORTERS, ExportOptions, Out, Way, Weight, table_names};
use tracesmith_trace::{Progress, TimeRange, Trace};

fn any_trace(seed: u64, rows: usize) -> Trace {
    let mut next = numbers(seed);
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    for text in ["a", "f(int, \"b;c\")\n", "\u{1}é"] {
        writer.string(text).unwrap();
    }
    let mut push = Rows {
        writer: &mut writer,
        next: &mut next,
        rows,
    };
    macro_rules! each {
        ($($field:ident: $row:ident,)*) => { $(push.some::<$row>();)* };
    }
    for_each_table!(each);
    tracesmith_interop::open_bytes(writer.finish().unwrap()).unwrap()
}

struct Rows<'a> {
    writer: &'a mut Writer<Vec<u8>>,
    next: &'a mut dyn FnMut() -> u64,
    rows: usize,
}

impl Rows<'_> {
    fn some<T: Writable + Arbitrary>(&mut self) {
        for _ in 0..self.rows {
            let row = T::arbitrary(&mut self.next);
            let clock = ClockId((self.next)() as u32 % 3);
            self.writer.push(clock, &row).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn rows_of_any_content_can_be_exported(seed: u64, rows in 0..40usize, from: Option<u64>, which in 0..4usize) {
        let trace = Arc::new(any_trace(seed, rows));
        let options = ExportOptions {
            range: TimeRange { from: from.map(Timestamp), to: None },
            weight: [Weight::GpuTime, Weight::Launches, Weight::AllocatedBytes, Weight::Samples][which],
            ..ExportOptions::default()
        };
        for exporter in EXPORTERS {
            let tables = match exporter.way {
                Way::Tables(_) => table_names(),
                _ => vec![""],
            };
            for table in tables {
                let mut sink = Vec::new();
                let mut out = Out::new(&mut sink);
                let result = match exporter.way {
                    Way::Stream(write) => write(&trace, &options, &mut out),
                    Way::Tables(write) => write(&trace, &options, table, &mut out),
                    Way::File(_) | Way::Folder(_) => continue,
                };
                let is_answer = matches!(
                    result,
                    Ok(_) | Err(Error::Export { .. } | Error::NotBuilt { .. })
                );
                prop_assert!(is_answer, "{:?} {} {:?}", exporter, table, result);
            }
        }
    }
}

#[test]
fn every_export_tells_how_far_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/demo-h200.sbt");
    let trace = tracesmith_interop::open(path.as_ref()).unwrap();
    for exporter in EXPORTERS {
        let Way::Stream(write) = exporter.way else {
            continue;
        };
        let read = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&read);
        let options = ExportOptions {
            progress: Some(Arc::new(move |progress| {
                if let Progress::Read(bytes) = progress {
                    told.fetch_add(bytes, Ordering::Relaxed);
                }
            })),
            ..ExportOptions::default()
        };
        let mut sink = Vec::new();
        write(&trace, &options, &mut Out::new(&mut sink)).unwrap();
        let read = read.load(Ordering::Relaxed);
        assert!(
            read > 0 && read <= trace.file_bytes(),
            "{}: {read} of {} bytes",
            exporter.name,
            trace.file_bytes()
        );
    }
}
