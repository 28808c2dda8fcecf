//! Memory of each kind, copies of each kind, and memory that lies elsewhere.

use tracesmith_fake_cuda::variable;
use tracesmith_format::tables::{CommandKind, MemoryKind, Moment};
use tracesmith_replay::{Placing, Replay};

use crate::support::window::{
    BASE, Call, Long, MODULE, Number, VARIABLE, Window, allocate, copy, copy_planes, fill, free, launch, set,
    texture,
};
use crate::support::{assert_same, difference, floats, planned, replayed, under_fake, verdict, words};

const X: u64 = BASE;
const Y: u64 = BASE + 0x1000;
/// Memory of the host on pages of its own.
const HOST: u64 = BASE + (64 << 20);
/// Where the program had something on its heap.
const HEAP: u64 = 0x5000;

#[test]
fn memory_without_recorded_content_holds_a_pattern_before_each_run() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.kept(X, &words(&[1]));
        window.call(allocate(Y, 32));
        window.call(fill(Y, 3, 4));
        replayed(&window, |replay| {
            for _ in 0..2 {
                replay.go_to(1).unwrap();
                assert_eq!(replay.read(Y, 32).unwrap(), [0xA5; 32]);
                replay.go_to(2).unwrap();
                assert_eq!(
                    replay.read(Y, 32).unwrap(),
                    [words(&[3; 4]), vec![0xA5; 16]].concat()
                );
                assert_same(&replay.run().unwrap().verdict, 1, 4);
            }
            assert!(replay.bytes() >= 4096);
        });
    });
}

/// Memory of the host that could not be mapped, and arrays, are filled by code of their own.
#[test]
fn unmapped_host_memory_and_arrays_hold_a_pattern_before_each_run() {
    under_fake(&[], || {
        let host = BASE + (2 << 20) - 32;
        let mut window = Window::new();
        window.kept(X, &words(&[1]));
        // It begins on a page of the device's, so it is not mapped.
        let mut pinned = allocate(host, 64);
        pinned.row.value = u64::from(MemoryKind::PINNED.0);
        window.call(pinned);
        window.call(array());
        window.call(object(2, 1, 144));
        window.call(copy(host + 36, X, 4));
        window.call(launch("paint", &[Long(2), Long(X), Number(1)]));
        replayed(&window, |replay| {
            for _ in 0..2 {
                replay.go_to(3).unwrap();
                assert_eq!(replay.read(host, 64).unwrap(), [0xA5; 64]);
                assert_eq!(replay.read(ARRAY, 64).unwrap(), [0xA5; 64]);
                replay.go_to(5).unwrap();
                assert_ne!(replay.read(host, 64).unwrap(), [0xA5; 64]);
                assert_ne!(replay.read(ARRAY, 64).unwrap(), [0xA5; 64]);
            }
        });
    });
}

#[test]
fn bytes_that_a_copy_brings_are_those_of_its_time() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0; 4]), &words(&[1, 2, 2, 0]));
        // From the same place on the heap, which the program changes in between; an odd number of bytes last.
        window.bring(copy(X, HEAP, 4).on(0x100), X, &words(&[1]));
        window.bring(copy(X + 4, HEAP, 4).on(0x100), X + 4, &words(&[2]));
        window.bring(copy(X + 8, HEAP, 3), X + 8, &words(&[2])[..3]);
        assert_same(&verdict(&window), 1, 16);
    });
}

#[test]
fn copies_go_between_device_and_mapped_host_memory() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0; 2]), &words(&[4, 9]));
        window.add(Moment::BEGIN, MemoryKind::PINNED, HOST, &words(&[9, 0]));
        window.add(Moment::END, MemoryKind::PINNED, HOST, &words(&[9, 4]));
        window.call(fill(X, 4, 1));
        window.call(copy(HOST + 4, X, 4));
        window.call(copy(X + 4, HOST, 4));
        // To the heap, which nobody looks at.
        window.call(copy(HEAP, X, 4));
        assert_same(&verdict(&window), 2, 16);
    });
}

/// Memory of the host of which one page is the device's stays apart, and copies reach it.
#[test]
fn copies_reach_host_memory_that_is_not_mapped() {
    under_fake(&[], || {
        let other = BASE + (2 << 20);
        let mut window = Window::new();
        window.changed(X, &words(&[0; 2]), &words(&[4, 9]));
        let content = |words: Vec<u8>| [vec![0; 32], words, vec![0; 20]].concat();
        let pinned = MemoryKind::PINNED;
        window.add(Moment::BEGIN, pinned, other - 32, &content(words(&[9, 0, 0])));
        window.add(Moment::END, pinned, other - 32, &content(words(&[9, 4, 9])));
        window.call(fill(X, 4, 1));
        window.call(copy(other + 4, X, 4));
        window.call(copy(X + 4, other, 4));
        window.call(copy(other + 8, other, 4));
        replayed(&window, |replay| {
            for _ in 0..2 {
                assert_same(&replay.run().unwrap().verdict, 2, 8 + 64);
            }
        });
    });
}

#[test]
fn kernels_use_host_memory_and_managed_memory() {
    under_fake(&[], || {
        let mut window = Window::new();
        let managed = BASE + (128 << 20);
        for (kind, address) in [(MemoryKind::PINNED, HOST), (MemoryKind::MANAGED, managed)] {
            window.add(Moment::BEGIN, kind, address, &words(&[0; 4]));
            window.add(Moment::END, kind, address, &words(&[3; 4]));
            window.call(fill(address, 3, 4));
        }
        assert_same(&verdict(&window), 2, 32);
    });
}

/// The program changed memory of the host between two launches that read it.
#[test]
fn what_the_program_changed_before_a_launch_is_there() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.add(Moment::BEGIN, MemoryKind::PINNED, HOST, &floats(&[1.0]));
        window.add(Moment::END, MemoryKind::PINNED, HOST, &floats(&[10.0]));
        window.changed(Y, &floats(&[0.0]), &floats(&[11.0]));
        let add = || launch("vector_add", &[Long(Y), Long(Y), Long(HOST), Number(1)]);
        window.call(add());
        window.bring(add(), HOST, &floats(&[10.0]));
        assert_same(&verdict(&window), 2, 8);
    });
}

/// A stub of a collective, or a function of the host: what it left is put there when its stream has come to it.
#[test]
fn what_a_function_of_the_host_left_is_there() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[1; 2]), &words(&[8, 8]));
        window.changed(Y, &words(&[0; 2]), &words(&[7, 7]));
        window.call(crate::support::window::delay(50).on(0x100));
        window.call(fill(X, 7, 2).on(0x100));
        window.call(copy(Y, X, 8).on(0x100));
        let mut stub = Call::of(CommandKind::HOST_FUNCTION).on(0x100);
        stub.function = "ncclDevKernel_AllReduce_Sum_f32".to_owned();
        window.bring(stub, X, &words(&[8, 8]));
        replayed(&window, |replay| {
            assert_same(&replay.run().unwrap().verdict, 2, 16);
            replay.set_order(tracesmith_replay::Order::Serial);
            assert_same(&replay.run().unwrap().verdict, 2, 16);
        });
    });
}

#[test]
fn elements_of_each_width_and_rows_are_set() {
    under_fake(&[], || {
        let mut window = Window::new();
        let mut after = vec![0; 64];
        after[..3].fill(0xAB);
        after[4..8].copy_from_slice(&[0x34, 0x12, 0x34, 0x12]);
        after[8..12].copy_from_slice(&[0x78, 0x56, 0x34, 0x12]);
        // Two rows of four bytes, sixteen bytes from each other.
        after[32..36].fill(1);
        after[48..52].fill(1);
        window.changed(X, &[0; 64], &after);
        window.call(set(X, 0xAB, 1, 3));
        window.call(set(X + 4, 0x1234, 2, 4));
        window.call(set(X + 8, 0x1234_5678, 4, 4));
        let mut rows = set(X + 32, 1, 1, 4);
        (rows.row.object, rows.row.source) = (2, tracesmith_format::Address(16));
        window.call(rows);
        assert_same(&verdict(&window), 1, 64);
    });
}

#[test]
fn planes_are_copied_within_the_device_and_from_the_host() {
    under_fake(&[], || {
        let mut window = Window::new();
        let source: Vec<u8> = (0..64).collect();
        window.kept(X, &source);
        let mut after = vec![0; 64];
        // Two rows of three bytes: pitches of eight and of four.
        after[..3].copy_from_slice(&[0, 1, 2]);
        after[4..7].copy_from_slice(&[8, 9, 10]);
        // Two rows of two bytes that the host brings, row upon row, to a pitch of sixteen.
        after[32..34].copy_from_slice(&[50, 51]);
        after[48..50].copy_from_slice(&[52, 53]);
        window.changed(Y, &[0; 64], &after);
        window.call(copy_planes([X, 8, 2], [Y, 4, 2], [3, 2, 1]));
        let brought = copy_planes([HEAP, 2, 2], [Y + 32, 16, 2], [2, 2, 1]);
        window.bring(brought, Y + 32, &[50, 51, 52, 53]);
        // To the heap, which nobody looks at.
        window.call(copy_planes([X, 8, 2], [HEAP, 4, 2], [3, 2, 1]));
        assert_same(&verdict(&window), 2, 128);
    });
}

/// Addresses in memory, in parameters and in what the host brings are changed, and changed back when memory is read.
#[test]
fn memory_that_lies_elsewhere_comes_out_the_same() {
    under_fake(&[(variable::ELSEWHERE, "1")], || {
        let mut window = Window::new();
        let (target, table, brought) = (Y + 0x100, Y + 0x200, Y + 0x300);
        window.kept(X, &words(&[3, 4]));
        window.changed(target, &words(&[0; 4]), &words(&[3, 4, 3, 4]));
        window.kept(table, &X.to_le_bytes());
        window.changed(brought, &[0; 8], &X.to_le_bytes());
        window.call(launch("follow", &[Long(target), Long(table), Number(2)]));
        window.bring(copy(brought, HEAP, 8), brought, &X.to_le_bytes());
        window.call(launch("follow", &[Long(target + 8), Long(brought), Number(2)]));
        let mut recording = window.open();
        let plan = planned(&mut recording);
        let mut replay = Replay::prepare_at(&mut recording, &plan, 0, Placing::Anywhere).unwrap();
        let moved = replay.relocated();
        assert_eq!((moved.len(), moved[0].0.start), (1, BASE));
        assert_ne!(moved[0].1, BASE);
        assert_same(&replay.run().unwrap().verdict, 4, 8 + 16 + 8 + 8);
        assert_eq!(replay.read(table, 8).unwrap(), X.to_le_bytes());
        assert_eq!(replay.read(target, 8).unwrap(), words(&[3, 4]));
        // Parts and the check work there, too.
        let mut part = tracesmith_replay::Part::whole(3);
        part.places = 2..3;
        assert!(replay.run_part(&part, 1).unwrap()[0].verdict.is_good());
        assert!(matches!(
            replay.check(2).unwrap(),
            tracesmith_replay::Determinism::Repeats { .. }
        ));
    });
}

/// Elsewhere, what differs is reported at the address that the program knew.
#[test]
fn a_difference_elsewhere_has_the_recorded_address() {
    under_fake(&[(variable::ELSEWHERE, "1")], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0]), &words(&[2]));
        window.call(fill(X, 3, 1));
        let mut recording = window.open();
        let plan = planned(&mut recording);
        let mut replay = Replay::prepare_at(&mut recording, &plan, 0, Placing::Anywhere).unwrap();
        let verdict = replay.run().unwrap().verdict;
        assert_eq!(
            (difference(&verdict).address, difference(&verdict).found[0]),
            (X, 3)
        );
    });
}

#[test]
fn memory_that_is_where_it_was_is_not_relocated() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.kept(X, &words(&[1]));
        window.call(launch("noop", &[]));
        let mut recording = window.open();
        let plan = planned(&mut recording);
        let mut replay = Replay::prepare_at(&mut recording, &plan, 0, Placing::Anywhere).unwrap();
        assert!(replay.relocated().is_empty());
        assert_same(&replay.run().unwrap().verdict, 1, 4);
    });
}

/// A handle stands for one memory, and later for another.
#[test]
fn a_texture_shows_what_it_showed_at_its_time() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.kept(X, &floats(&[2.0; 4]));
        window.kept(X + 0x100, &floats(&[10.0; 4]));
        window.changed(Y, &floats(&[0.0; 4]), &floats(&[12.0; 4]));
        let look = || launch("look", &[Long(Y), Long(1), Number(4)]);
        window.call(texture(1, X, 16));
        window.call(look());
        window.call(texture(1, X + 0x100, 16));
        window.call(look());
        replayed(&window, |replay| {
            for _ in 0..2 {
                assert_same(&replay.run().unwrap().verdict, 3, 48);
            }
            replay.keep_snapshots(1).unwrap();
            replay.go_to(4).unwrap();
            replay.go_to(2).unwrap();
            assert_eq!(replay.read(Y, 4).unwrap(), floats(&[2.0]));
            let mut part = tracesmith_replay::Part::whole(4);
            part.places = 1..2;
            assert!(replay.run_part(&part, 2).unwrap()[1].verdict.is_good());
        });
    });
}

/// Where the bytes of the array stand.
const ARRAY: u64 = 1 << 56;

/// Makes an array of 16 numbers.
fn array() -> Call {
    let mut array = Call::of(CommandKind::ARRAY);
    array.row.destination = tracesmith_format::Address(ARRAY);
    array.row.bytes = tracesmith_format::Bytes(64);
    array.row.parameters.0 = [16_u64, 0, 0, 0x20, 1, 2, 0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    array
}

/// Makes a texture (0) or a surface (1) of the array, with a description of so many bytes.
fn object(handle: u64, kind: u64, bytes: usize) -> Call {
    let mut call = texture(handle, ARRAY, 0);
    call.row.parameters.0[..8].copy_from_slice(&0_u64.to_le_bytes());
    call.row.parameters.0.truncate(bytes);
    call.row.value = kind;
    call
}

/// An array has no address: its bytes stand where no memory is. A surface writes it, a texture reads it.
#[test]
fn an_array_is_restored_written_and_compared() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.call(array());
        window.call(object(1, 0, 248));
        window.call(object(2, 1, 144));
        window.changed(Y, &floats(&[1.0; 4]), &floats(&[4.0; 4]));
        window.add(Moment::BEGIN, MemoryKind::ARRAY, ARRAY, &floats(&[3.0; 16]));
        let after = [floats(&[4.0; 4]), floats(&[3.0; 12])].concat();
        window.add(Moment::END, MemoryKind::ARRAY, ARRAY, &after);
        window.call(launch("look_at_array", &[Long(Y), Long(1), Number(4)]));
        window.call(launch("paint", &[Long(2), Long(Y), Number(4)]));
        replayed(&window, |replay| {
            for _ in 0..2 {
                assert_same(&replay.run().unwrap().verdict, 2, 16 + 64);
            }
            replay.go_to(4).unwrap();
            assert_eq!(replay.read(ARRAY, 64).unwrap(), floats(&[3.0; 16]));
        });
        // What is painted counts.
        window
            .pieces
            .retain(|piece| (piece.moment, piece.address.0) != (Moment::END, ARRAY));
        window.piece(Moment::END, 0, ARRAY, &floats(&[3.0; 16]));
        assert_eq!(difference(&verdict(&window)).address, ARRAY);
    });
}

#[test]
fn a_variable_begins_as_it_was_and_is_compared() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.variable(MODULE, "counter", VARIABLE, &words(&[3]), &words(&[11]));
        // The table points to it, and so does a parameter.
        window.changed(X, &words(&[0; 4]), &words(&[3, 7, 11, 11]));
        window.kept(Y, &VARIABLE.to_le_bytes());
        window.call(launch("bump", &[Long(X), Number(4)]));
        window.call(launch("bump", &[Long(X + 4), Number(4)]));
        window.call(launch("follow", &[Long(X + 8), Long(Y), Number(1)]));
        window.call(copy(X + 12, VARIABLE, 4));
        replayed(&window, |replay| {
            for _ in 0..2 {
                assert_same(&replay.run().unwrap().verdict, 3, 4 + 16 + 8);
            }
            assert_eq!(replay.read(VARIABLE, 4).unwrap(), words(&[11]));
            // It is not memory that was moved because its address was taken.
            assert!(replay.relocated().is_empty());
        });
        window.call(fill(VARIABLE, 1, 1));
        assert_eq!(difference(&verdict(&window)).address, VARIABLE);
    });
}

#[test]
fn memory_that_is_freed_in_the_window_is_used_until_then() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0; 4]), &words(&[7; 4]));
        window.begin(Y, &words(&[7; 4]));
        window.call(copy(X, Y, 16));
        window.call(free(Y));
        window.call(allocate(Y, 16));
        window.call(fill(Y, 1, 4));
        window.call(free(Y));
        assert_same(&verdict(&window), 1, 16);
    });
}
