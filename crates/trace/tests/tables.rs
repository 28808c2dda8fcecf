//! Tables and views, as scans read them.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use tracesmith_format::tables::Counter;
use tracesmith_format::{ClockId, Timestamp, Writer, WriterOptions};
use tracesmith_trace::tables::{Cancel, ColumnKind, Condition, Scan, TableKind, catalog};
use tracesmith_trace::{Error, ProgressFn, Query, Trace};

fn fixture(name: &str) -> Arc<Trace> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name);
    Arc::new(Trace::open(&path).unwrap())
}

const FIXTURES: [&str; 3] = ["demo-h200.sbt", "synthetic-v1.sbt", "replay-h200.sbt"];

/// A cell as text; nothing for a null.
fn cell(batch: &RecordBatch, column: usize, row: usize) -> Option<String> {
    let array = batch.column(column);
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Dictionary(..) => {
            let array = array.as_dictionary::<Int32Type>();
            let key = array.key(row).unwrap();
            array.values().as_string::<i32>().value(key).to_owned()
        }
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        _ => format!("{:?}", array.slice(row, 1)),
    })
}

fn rows(batches: &[RecordBatch]) -> Vec<Vec<Option<String>>> {
    let of = |batch: &RecordBatch| {
        let columns = 0..batch.num_columns();
        let row = |row| columns.clone().map(|column| cell(batch, column, row)).collect();
        (0..batch.num_rows()).map(row).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

#[test]
fn every_table_of_the_catalog_can_be_read_and_is_what_the_catalog_says() {
    for name in FIXTURES {
        let trace = fixture(name);
        for info in catalog() {
            let table = trace.table(info.name).unwrap();
            let batches = table.read(&Scan::default()).unwrap();
            for batch in &batches {
                assert_eq!(batch.num_columns(), info.columns.len(), "{name} {}", info.name);
                for (column, field) in info.columns.iter().zip(batch.schema().fields()) {
                    assert_eq!(&column.name, field.name());
                    assert_eq!(
                        column.kind.data_type(),
                        *field.data_type(),
                        "{name} {}",
                        info.name
                    );
                    assert!(!column.doc.is_empty(), "{}.{}", info.name, column.name);
                }
            }
            let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
            if let (TableKind::Stored, Some(limit)) = (info.kind, table.row_limit()) {
                assert!(count as u64 <= limit, "{name} {}", info.name);
            }
            let scanned: Vec<RecordBatch> = table
                .scan(&Scan::default())
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(rows(&scanned), rows(&batches), "{name} {}", info.name);
        }
    }
}

#[test]
fn kernels_are_the_events_that_a_query_finds() {
    for name in FIXTURES {
        let trace = fixture(name);
        let scan = Scan::columns(["start", "end", "duration", "demangled", "name"]);
        let batches = trace.table("kernels").unwrap().read(&scan).unwrap();
        let mut scanned: Vec<_> = rows(&batches)
            .into_iter()
            .map(|row| {
                let name = row[3].clone().or_else(|| row[4].clone()).unwrap_or_default();
                (row[0].clone(), row[1].clone(), row[2].clone(), name)
            })
            .collect();
        let query = Query {
            kinds: Some(vec![tracesmith_trace::EventKind::Kernel]),
            ..Query::default()
        };
        let time = |time: u64| (time != 0).then(|| time.to_string());
        let mut found: Vec<_> = trace
            .events(&query)
            .map(|event| {
                let length =
                    (event.start.is_some() && event.end.is_some()).then(|| event.duration().to_string());
                let name = trace.event_name(&event).to_owned();
                (time(event.start.0), time(event.end.0), length, name)
            })
            .collect();
        scanned.sort();
        found.sort();
        assert!(!found.is_empty(), "{name}");
        assert_eq!(scanned, found, "{name}");
    }
}

/// Filters and ranges keep exactly the rows that a look at every row keeps.
#[test]
fn conditions_keep_what_a_look_at_every_row_keeps() {
    let trace = fixture("demo-h200.sbt");
    let table = trace.table("kernels").unwrap();
    let columns = ["start", "end", "duration", "name", "stream", "grid_x"];
    let all = rows(&table.read(&Scan::columns(columns)).unwrap());
    let number = |cell: &Option<String>| cell.as_ref().and_then(|text| text.parse::<u64>().ok());
    let mut durations: Vec<u64> = all.iter().filter_map(|row| number(&row[2])).collect();
    durations.sort_unstable();
    let median = durations[durations.len() / 2];
    let name = all[0][3].clone().unwrap();
    let start = number(&all[all.len() / 2][0]).unwrap();
    type Keeps<'a> = Box<dyn Fn(&[Option<String>]) -> bool + 'a>;
    let cases: Vec<(Scan, Keeps<'_>)> = vec![
        (
            Scan::columns(columns).with("name", Condition::Is(name.as_str().into())),
            Box::new(|row| row[3].as_ref() == Some(&name)),
        ),
        (
            Scan::columns(columns).with("duration", Condition::Above(median.into())),
            Box::new(|row| number(&row[2]).is_some_and(|duration| duration > median)),
        ),
        (
            Scan::columns(columns)
                .with("duration", Condition::AtMost(median.into()))
                .with("start", Condition::AtLeast(start.into())),
            Box::new(|row| number(&row[2]).is_some_and(|d| d <= median) && number(&row[0]) >= Some(start)),
        ),
        (
            Scan::columns(columns).between(Some(start), Some(start + 1_000_000)),
            Box::new(|row| number(&row[1]) >= Some(start) && number(&row[0]) < Some(start + 1_000_000)),
        ),
        (
            Scan::columns(columns).with("name", Condition::Like("*a*".to_owned())),
            Box::new(|row| row[3].as_ref().is_some_and(|name| name.contains('a'))),
        ),
        (
            Scan::columns(columns).with(
                "name",
                Condition::OneOf(vec![name.as_str().into(), "none".into()]),
            ),
            Box::new(|row| row[3].as_ref() == Some(&name)),
        ),
        (
            Scan::columns(columns).with("start", Condition::Below(1_u64.into())),
            Box::new(|_| false),
        ),
    ];
    for (scan, keeps) in cases {
        let expected: Vec<_> = all.iter().filter(|row| keeps(row)).cloned().collect();
        assert!(expected.len() < all.len(), "{scan:?} keeps all");
        assert_eq!(rows(&table.read(&scan).unwrap()), expected, "{scan:?}");
    }
}

#[test]
fn what_does_not_exist_is_named() {
    let trace = fixture("demo-h200.sbt");
    let error = trace.table("kernel").unwrap_err();
    assert!(
        matches!(&error, Error::NoSuchTable { name } if name == "kernel"),
        "{error}"
    );
    let error = trace
        .table("kernels")
        .unwrap()
        .scan(&Scan::columns(["strat"]))
        .unwrap_err();
    assert_eq!(error.to_string(), "the table kernels has no column strat");
}

#[test]
fn a_cancelled_scan_ends_with_an_error() {
    let trace = fixture("demo-h200.sbt");
    let cancel = Cancel::default();
    let scan = Scan {
        cancel: cancel.clone(),
        ..Scan::default()
    };
    let mut batches = trace.table("kernels").unwrap().scan(&scan).unwrap();
    cancel.cancel();
    assert!(matches!(batches.next(), Some(Err(Error::Cancelled))));
    assert!(batches.next().is_none());
}

#[test]
fn a_scan_of_the_first_rows_reads_one_block_at_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.sbt");
    let mut writer = Writer::new(fs::File::create(&path).unwrap(), WriterOptions::default()).unwrap();
    for number in 0..40 {
        let counter = Counter {
            time: Timestamp(number),
            ..Counter::default()
        };
        writer.push(ClockId::NONE, &counter).unwrap();
        writer.flush().unwrap();
    }
    writer.finish().unwrap();
    let trace = Arc::new(Trace::open(&path).unwrap());
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let scan = Scan {
        first_blocks: NonZeroUsize::new(1),
        progress: Some(Arc::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })),
        ..Scan::default()
    };
    let mut batches = trace.table("counters").unwrap().scan(&scan).unwrap();
    assert_eq!(read.load(Ordering::Relaxed), 0, "nothing is needed yet");
    assert_eq!(batches.next().unwrap().unwrap().num_rows(), 1);
    assert_eq!(read.load(Ordering::Relaxed), 1);
    assert_eq!(batches.next().unwrap().unwrap().num_rows(), 1);
    assert_eq!(read.load(Ordering::Relaxed), 3);
    assert_eq!(batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 38);
}

#[test]
fn checking_a_trace_can_be_cancelled() {
    let trace = fixture("demo-h200.sbt");
    let cancel = Cancel::default();
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let progress: ProgressFn = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    cancel.cancel();
    assert!(matches!(trace.verify(&progress, &cancel), Err(Error::Cancelled)));
    assert_eq!(read.load(Ordering::Relaxed), 0);
    trace.verify(&progress, &Cancel::default()).unwrap();
    assert!(read.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_scan_can_be_sent_to_another_thread_and_written_down() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<tracesmith_trace::tables::Table>();
    is_shared::<tracesmith_trace::tables::Batches>();
    is_shared::<Trace>();
    let scan = Scan::columns(["name"]).with("duration", Condition::AtLeast(5_u64.into()));
    let text = serde_json::to_string(&scan).unwrap();
    let again: Scan = serde_json::from_str(&text).unwrap();
    assert_eq!(format!("{again:?}"), format!("{scan:?}"));
}

/// A block that cannot be read is left out and reported.
#[test]
fn damage_is_reported() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/demo-h200.sbt");
    let mut bytes = std::fs::read(path).unwrap();
    let whole = Trace::from_bytes(bytes.clone()).unwrap();
    let block = *whole.kernels.blocks().next().unwrap();
    let middle = block.offset + block.header.total_length() - 8;
    bytes[middle as usize] ^= 0xff;
    let trace = Arc::new(Trace::from_bytes(bytes).unwrap());
    let batches = trace.table("kernels").unwrap().read(&Scan::default()).unwrap();
    let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(count as u64, whole.kernels.rows() - u64::from(block.header.rows));
    assert_eq!(trace.health().damage.len(), 1);
}

#[test]
fn views_agree_with_the_analyses_they_come_from() {
    let trace = fixture("demo-h200.sbt");
    let activity = trace.activity().unwrap();
    let count = |name: &str| -> usize {
        let batches = trace.table(name).unwrap().read(&Scan::default()).unwrap();
        batches.iter().map(RecordBatch::num_rows).sum()
    };
    assert_eq!(count("gpu_ops"), activity.ops.len());
    let launched = activity.ops.call.iter().filter(|call| call.is_some()).count();
    assert_eq!(count("launches"), launched);
    assert!(launched > 0);
    let analysis = tracesmith_trace::analysis::Analysis::of(&trace, Default::default()).unwrap();
    let summary = analysis.summary().unwrap();
    assert_eq!(count("steps"), analysis.steps.steps.len());
    let gaps: u64 = summary.idle.devices.iter().map(|device| device.gaps).sum();
    assert_eq!(count("idle_gaps") as u64, gaps);
    // The longest gap has the cause that `analyze` gives it.
    let longest = &summary.idle.devices[0].longest[0];
    let scan = Scan::columns(["cause", "next_name"]).with("start", Condition::Is(longest.from_ns.into()));
    let found = rows(&trace.table("idle_gaps").unwrap().read(&scan).unwrap());
    let cause = serde_json::to_value(longest.cause).unwrap();
    assert_eq!(found[0][0].as_deref(), cause.as_str());
    assert_eq!(found[0][1].as_deref(), Some(longest.next.as_str()));
    assert!(count("states") > activity.lanes.len());
}

#[test]
fn times_have_units_and_texts_are_dictionaries() {
    for info in catalog() {
        for column in &info.columns {
            let is_time = ["start", "end", "duration"].contains(&column.name.as_str());
            if is_time && column.kind != ColumnKind::Text {
                assert_eq!(
                    (column.unit, column.kind),
                    (Some("ns"), ColumnKind::U64),
                    "{}",
                    info.name
                );
            }
            if column.name == "name" {
                assert_eq!(column.kind, ColumnKind::Text, "{}", info.name);
            }
        }
    }
}

#[test]
fn memory_has_a_row_for_every_change() {
    use tracesmith_format::tables::{Allocation, AllocationShape, MemoryKind, MemoryOperation, Place};
    use tracesmith_format::{Address, Bytes, ClockId, DeviceId, Timestamp, Writer, WriterOptions};
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    for number in 1..=1500_u64 {
        let row = Allocation {
            time: Timestamp(number),
            address: Address(number << 8),
            bytes: Bytes(2),
            place: Place {
                device: DeviceId(1),
                ..Place::default()
            },
            shape: AllocationShape {
                operation: MemoryOperation::ALLOCATE,
                memory: MemoryKind::DEVICE,
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        writer.push(ClockId(1), &row).unwrap();
    }
    let trace = Arc::new(Trace::from_bytes(writer.finish().unwrap()).unwrap());
    let scan = Scan::columns(["time", "bytes"]);
    let batches = trace.table("memory").unwrap().read(&scan).unwrap();
    let rows = rows(&batches);
    assert_eq!(rows.len(), 1500);
    assert_eq!(rows[1499], [Some("1500".to_owned()), Some("3000".to_owned())]);
}

#[test]
fn collectives_have_their_kernels_and_their_ranges() {
    use tracesmith_format::tables::{
        ApiCall, ApiShape, Caller, Collective, CollectiveShape, Kernel, KernelShape, Marker, MarkerKind,
        MarkerShape, Place,
    };
    use tracesmith_format::{
        ClockId, CorrelationId, DeviceId, ProcessId, StreamId, ThreadId, Timestamp, Writer, WriterOptions,
    };
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let clock = ClockId(1);
    let place = Place {
        process: ProcessId(1),
        device: DeviceId(1),
        stream: StreamId(7),
        ..Place::default()
    };
    let caller = Caller {
        process: ProcessId(1),
        thread: ThreadId(5),
    };
    for (number, name) in [
        (
            1,
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        ),
        (
            2,
            "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        ),
        (3, "gemm"),
    ] {
        let shape = KernelShape {
            name: writer.string(name).unwrap(),
            ..KernelShape::default()
        };
        let kernel = Kernel {
            start: Timestamp(number * 1000),
            end: Timestamp(number * 1000 + 500),
            correlation: CorrelationId(number),
            place,
            shape,
            ..Kernel::default()
        };
        writer.push(clock, &kernel).unwrap();
        let shape = ApiShape {
            name: writer.string("cudaLaunchKernel").unwrap(),
            ..ApiShape::default()
        };
        let call = ApiCall {
            start: Timestamp(number * 100),
            end: Timestamp(number * 100 + 10),
            correlation: CorrelationId(number),
            caller,
            shape,
            ..ApiCall::default()
        };
        writer.push(clock, &call).unwrap();
    }
    for (domain, name, start, end) in [
        ("NCCL", "ncclAllReduce", 90, 120),
        ("NCCL", "ncclBroadcast", 190, 220),
        ("app", "step", 195, 215),
    ] {
        let shape = MarkerShape {
            name: writer.string(name).unwrap(),
            domain: writer.string(domain).unwrap(),
            kind: MarkerKind::NESTED_RANGE,
            ..MarkerShape::default()
        };
        let marker = Marker {
            start: Timestamp(start),
            end: Timestamp(end),
            caller,
            shape,
            ..Marker::default()
        };
        writer.push(clock, &marker).unwrap();
    }
    for (correlation, name) in [(1, "allreduce"), (99, "send")] {
        let shape = CollectiveShape {
            name: writer.string(name).unwrap(),
            ..CollectiveShape::default()
        };
        let row = Collective {
            start: Timestamp(1000),
            end: Timestamp(1500),
            correlation: CorrelationId(correlation),
            place,
            shape,
            ..Collective::default()
        };
        writer.push(clock, &row).unwrap();
    }
    let trace = Arc::new(Trace::from_bytes(writer.finish().unwrap()).unwrap());
    let scan = Scan::columns(["name", "source", "range", "start"]);
    let batches = trace.table("collective_ops").unwrap().read(&scan).unwrap();
    let found: Vec<Vec<String>> = rows(&batches)
        .into_iter()
        .map(|row| row.into_iter().map(Option::unwrap_or_default).collect())
        .collect();
    assert_eq!(
        found,
        [
            ["send", "collectives", "", "1000"],
            ["allreduce", "collectives", "ncclAllReduce", "1000"],
            ["Broadcast", "kernel", "ncclBroadcast", "2000"],
        ]
    );
}
