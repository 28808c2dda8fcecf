//! Selecting processes, devices and streams.

use tracesmith_format::tables::{
    Allocation, AllocationShape, Command, CommandKind, Context, Device, HostCall, HostCalls, MemoryOperation,
    Module, Place, Process,
};
use tracesmith_format::{
    Blob, BlockKind, Bytes, Columns, ContextId, CorrelationId, DeviceId, ModuleId, ProcessId, StreamId,
    Table, Timestamp, Writer, WriterOptions,
};
use tracesmith_trace::analysis::{Analysis, Analyzer, KernelKey, KernelsReport};
use tracesmith_trace::reconstruct::{Activity, Window};
use tracesmith_trace::{Error, EventKind, Selected, Selection, TableView, TimeRange, Trace, cut};

use crate::made::{CLOCK, Made};

fn place(process: u32, device: u32, stream: u64) -> Place {
    Place {
        process: ProcessId(process),
        device: DeviceId(device),
        context: ContextId(1),
        stream: StreamId(stream),
        ..Place::default()
    }
}

/// Process 1 works on both devices, process 2 on the first.
fn made() -> Made {
    let mut made = Made::new();
    for (process, device, stream, at) in [(1, 1, 7, 100), (1, 1, 8, 200), (1, 2, 7, 300), (2, 1, 7, 400)] {
        let name = format!("k{process}{device}{stream}");
        made.kernel_row(
            &name,
            (at, at + 50),
            CorrelationId::NONE,
            place(process, device, stream),
        );
    }
    made
}

fn only(processes: &[u32], devices: &[u32], streams: &[u64]) -> Selection {
    let some = |is_empty: bool| (!is_empty).then_some(());
    Selection {
        processes: some(processes.is_empty()).map(|()| processes.iter().copied().map(ProcessId).collect()),
        devices: some(devices.is_empty()).map(|()| devices.iter().copied().map(DeviceId).collect()),
        streams: some(streams.is_empty()).map(|()| streams.iter().copied().map(StreamId).collect()),
    }
}

/// The part of a trace that a selection has.
fn part(trace: &Trace, selection: &Selection) -> Trace {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    cut(trace, TimeRange::default(), selection, &mut writer, &mut |_| {}).unwrap();
    Trace::from_bytes(writer.finish().unwrap()).unwrap()
}

/// The rows of a table, in the order of the file.
fn rows<T: Table>(table: &TableView<T>) -> Vec<T> {
    let of_block = |columns: T::Columns| (0..columns.len()).map(|row| columns.row(row)).collect::<Vec<_>>();
    table
        .stream()
        .flat_map(|(_, columns)| of_block(columns))
        .collect()
}

/// Issue 29: the cut of a stream kept contexts and memory of GPUs that it did not define.
#[test]
fn contexts_and_memory_belong_to_devices_of_the_selection() {
    let mut made = Made::new();
    for (id, ordinal) in [(1, 0), (2, 1)] {
        let row = Device {
            id: DeviceId(id),
            ordinal,
            ..Device::default()
        };
        made.writer.define(&row).unwrap();
    }
    // Process 1 works on both, process 2 only has memory on the second.
    made.kernel_row("k", (100, 150), CorrelationId::NONE, place(1, 1, 7));
    made.kernel_row("k", (200, 250), CorrelationId::NONE, place(1, 2, 8));
    for (process, device, at) in [(1, 1, 10), (1, 2, 20), (2, 2, 30)] {
        let context = Context {
            process: ProcessId(process),
            context: ContextId(device),
            device: DeviceId(device),
            ..Context::default()
        };
        made.writer.define(&context).unwrap();
        let allocation = Allocation {
            time: Timestamp(at),
            bytes: Bytes(64),
            place: place(process, device, 0),
            shape: AllocationShape {
                operation: MemoryOperation::ALLOCATE,
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        made.writer.push(CLOCK, &allocation).unwrap();
    }
    let trace = made.finish();
    for (selection, ordinals, memory) in [
        (only(&[], &[], &[7]), &[0][..], 1),
        (only(&[], &[], &[8]), &[1], 1),
        (only(&[], &[], &[7, 8]), &[0, 1], 2),
        (only(&[], &[2], &[]), &[1], 1),
        (only(&[1], &[], &[]), &[0, 1], 2),
        (only(&[2], &[], &[]), &[1], 1),
    ] {
        let cut = part(&trace, &selection);
        let known: Vec<u32> = cut.devices.iter().map(|device| device.ordinal).collect();
        assert_eq!(known, ordinals, "{selection:?}");
        let is_known = |device: DeviceId| cut.device(device).is_some();
        assert!(
            cut.contexts.iter().all(|row| is_known(row.device)),
            "{selection:?}"
        );
        assert_eq!(cut.contexts.len(), memory, "{selection:?}");
        let allocations = rows(&cut.allocations);
        assert!(
            allocations.iter().all(|row| is_known(row.place.device)),
            "{selection:?}"
        );
        assert_eq!(allocations.len(), memory, "{selection:?}");
    }
}

/// Two processes that have the same pid, as those of two containers, and a recording each.
fn two_recordings() -> Made {
    let mut made = Made::new();
    for process in [1, 2] {
        let row = Process {
            id: ProcessId(process),
            pid: 1,
            started: Timestamp(u64::from(process)),
            ..Process::default()
        };
        made.writer.define(&row).unwrap();
        made.kernel_row("k", (100, 150), CorrelationId::NONE, place(process, process, 7));
        let command = Command {
            process: ProcessId(process),
            time: Timestamp(90),
            kind: CommandKind::LAUNCH,
            module: 5,
            ..Command::default()
        };
        made.writer.push(CLOCK, &command).unwrap();
    }
    made
}

/// Issue 29: facts name their process by the pid, and those of the kept process were left out with the others.
#[test]
fn facts_of_a_kept_recording_stay() {
    let mut made = two_recordings();
    made.writer.metadata("process.1.recording.commands", "1").unwrap();
    made.writer.metadata("process.9.recording.commands", "1").unwrap();
    let other = Process {
        id: ProcessId(3),
        pid: 9,
        ..Process::default()
    };
    made.writer.define(&other).unwrap();
    let cut = part(&made.finish(), &only(&[1], &[], &[]));
    let facts: Vec<&str> = cut
        .metadata
        .keys()
        .map(String::as_str)
        .filter(|key| key.contains("recording"))
        .collect();
    assert_eq!(facts, ["process.1.recording.commands"]);
}

/// Issue 29: modules of other processes came over.
#[test]
fn modules_are_those_of_the_selected_processes() {
    let mut made = two_recordings();
    for process in [1, 2] {
        let loaded = Module {
            loaded: Timestamp(u64::from(process)),
            process: ProcessId(process),
            module: ModuleId(4),
            hash_high: 8,
            ..Module::default()
        };
        made.writer.push(CLOCK, &loaded).unwrap();
        let handle = Module {
            handle: 5,
            loaded: Timestamp::NONE,
            ..loaded
        };
        made.writer.define(&handle).unwrap();
    }
    // Both processes use the code. It is stored with the first that loaded it.
    let code = Module {
        process: ProcessId(2),
        module: ModuleId(4),
        hash_high: 8,
        code: Blob(vec![1, 2, 3]),
        ..Module::default()
    };
    made.writer.define(&code).unwrap();
    let unused = Module { hash_high: 9, ..code };
    made.writer.define(&unused).unwrap();
    let cut = part(&made.finish(), &only(&[1], &[], &[]));
    let own = cut.processes[0].id;
    let modules = rows(&cut.modules);
    let count = |wanted: &dyn Fn(&Module) -> bool| modules.iter().filter(|row| wanted(row)).count();
    assert_eq!(count(&|row| row.process == own), 2, "{modules:?}");
    assert_eq!(
        count(&|row| row.code.0 == [1, 2, 3] && !row.process.is_some()),
        1,
        "{modules:?}"
    );
    assert_eq!(modules.len(), 3, "{modules:?}");
}

#[test]
fn the_work_of_a_selection_is_analyzed_and_cut_alike() {
    let trace = made().finish();
    for (selection, expected) in [
        (Selection::default(), &["k117", "k118", "k127", "k217"][..]),
        (only(&[1], &[], &[]), &["k117", "k118", "k127"]),
        (only(&[], &[2], &[]), &["k127"]),
        (only(&[], &[], &[7]), &["k117", "k127", "k217"]),
        (only(&[1], &[1], &[7]), &["k117"]),
        (only(&[2], &[2], &[]), &[]),
    ] {
        let names = |trace: &Trace, selection: &Selection| {
            let activity = Activity::selected(trace, Window::default(), selection).unwrap();
            let names = activity.ops.ids().map(|op| activity.name(trace, op).to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&trace, &selection), expected, "{selection:?}");
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        let range = TimeRange::default();
        let report = cut(&trace, range, &selection, &mut writer, &mut |_| {}).unwrap();
        assert_eq!(report.rows, expected.len() as u64);
        assert_eq!(report.rows_outside, 4 - expected.len() as u64);
        let part = Trace::from_bytes(writer.finish().unwrap()).unwrap();
        assert_eq!(names(&part, &Selection::default()), expected, "{selection:?}");
    }
}

#[test]
fn what_needs_the_work_that_is_left_out_is_refused() {
    let trace = made().finish();
    let check = |selection: &Selection, name: &str| {
        let selected = Selected::of(&trace, selection).unwrap();
        Analyzer::find(name).unwrap().check(&selected)
    };
    // Process 2 works on the device too.
    let first = only(&[1], &[], &[]);
    assert!(matches!(
        check(&first, "idle"),
        Err(Error::SelectionTooNarrow { .. })
    ));
    assert!(matches!(
        check(&first, "findings"),
        Err(Error::SelectionTooNarrow { .. })
    ));
    // The device is its own, and the process has work elsewhere.
    let second = only(&[], &[2], &[]);
    assert!(check(&second, "idle").is_ok() && check(&second, "findings").is_ok());
    assert!(matches!(
        check(&second, "critical-path"),
        Err(Error::SelectionTooNarrow { .. })
    ));
    for name in ["kernels", "copies", "launches", "steps", "utilization", "memory"] {
        assert!(
            check(&first, name).is_ok() && check(&second, name).is_ok(),
            "{name}"
        );
    }
    let stream = only(&[], &[], &[7]);
    assert!(matches!(check(&stream, "memory"), Err(Error::NotByStream { .. })));
    let all = only(&[1, 2], &[], &[]);
    assert!(
        ["idle", "what-if", "slack"]
            .iter()
            .all(|name| check(&all, name).is_ok())
    );
}

#[test]
fn steps_are_those_of_the_selected_processes() {
    let mut made = Made::new();
    for step in 0..5u64 {
        let at = 1_000 * (step + 1);
        made.range(&format!("step {step}"), (at, at + 500));
        made.launched("k", 1, (at + 10, at + 20), (at + 100, at + 200));
        made.launched("rare", 2, (at + 30, at + 40), (at + 250, at + 300));
    }
    made.kernel_row("other", (1_600, 1_700), CorrelationId::NONE, place(2, 2, 9));
    let trace = made.finish();
    let whole = Analysis::of(&trace, Window::default()).unwrap();
    let stream = only(&[], &[], &[2]);
    let selected = Analysis::selected(&trace, Window::default(), &stream).unwrap();
    assert_eq!((whole.steps.steps.len(), selected.steps.steps.len()), (5, 5));
    let step = Analysis::selected_step(&trace, 3, &stream).unwrap();
    assert_eq!(step.kernels(Default::default()).count, 1);
    let other = Analysis::selected_step(&trace, 3, &only(&[2], &[], &[]));
    assert!(
        matches!(other, Err(Error::NoSuchStep { steps: 0, .. })),
        "{other:?}"
    );
}

/// Issue 28: rows were counted in readable blocks only, so that damage changed their numbers.
#[test]
fn a_row_is_found_by_its_number_beside_damage() {
    let options = WriterOptions {
        rows_per_block: 10,
        ..WriterOptions::default()
    };
    let mut made = Made::with(Writer::new(Vec::new(), options).unwrap());
    for at in 0..30 {
        made.kernel("k", 1, 100 * (at + 1), 100 * (at + 1) + 50);
    }
    let mut bytes = made.writer.finish().unwrap();
    let whole = Trace::from_bytes(bytes.clone()).unwrap();
    let blocks = whole.blocks().iter();
    let second = blocks
        .filter(|block| block.header.kind == BlockKind::KERNELS)
        .nth(1)
        .unwrap();
    let last = usize::try_from(second.offset + second.header.total_length()).unwrap() - 1;
    bytes[last] ^= 0xff;
    let trace = Trace::from_bytes(bytes).unwrap();
    let start = |row| trace.with_row(EventKind::Kernel, row, |found| found.event.start.0);
    for row in [0, 9, 20, 29] {
        assert_eq!(start(row).unwrap(), 100 * (row + 1));
    }
    for row in [10, 19] {
        let error = start(row).unwrap_err();
        assert!(
            matches!(error, Error::DamagedRow { table: "kernels", .. }),
            "{error}"
        );
    }
    let error = start(30).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernels has no row 30: it has 30 rows, counted from 0"
    );
    let error = trace.with_row(EventKind::Copy, 0, |_| ()).unwrap_err();
    assert!(matches!(error, Error::NoSuchRow { rows: 0, .. }), "{error}");
}

/// Issue 28: kernels had "no operator" without a word when operators could not be read.
#[test]
fn missing_operators_have_a_reason() {
    let mut made = Made::new();
    made.kernel("k", 1, 100, 200);
    let row = HostCall {
        start: Timestamp(1),
        end: Timestamp(2),
        ..HostCall::default()
    };
    let mut rows = HostCalls::default();
    (0..1 << 18).for_each(|_| rows.push(&row));
    // More than a file of this size can well hold.
    for _ in 0..90 {
        made.writer.push_columns::<HostCall>(CLOCK, &rows).unwrap();
    }
    let trace = made.finish();
    let activity = Activity::of(&trace).unwrap();
    for by in [KernelKey::Operator, KernelKey::Stack] {
        let report = KernelsReport::of(&trace, &activity, by, None);
        let problem = report.places_problem.unwrap_or_default();
        assert!(problem.contains("operators and ranges would take"), "{problem}");
        assert_eq!(report.count, 1);
    }
    let report = KernelsReport::of(&trace, &activity, KernelKey::Name, None);
    assert_eq!(report.places_problem, None);
}
