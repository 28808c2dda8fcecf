//! What is refused before anything runs, with its words.

use tracesmith_fake_cuda::variable;
use tracesmith_format::tables::{CommandKind, MemoryKind, Module, Moment};
use tracesmith_format::{Bytes, MAX_BLOCK_BYTES, ProcessId};
use tracesmith_replay::{Error, Obstacle, Origin, Placing, Plan, Recording, Replay};

use crate::support::under_fake;
use crate::support::window::{
    BASE, Call, KERNELS, Long, MODULE, Number, Window, allocate, attribute, copy, copy_planes, fill, launch,
    refused, texture,
};

/// A window that can be replayed.
fn small() -> Window {
    let mut window = Window::new();
    window.changed(BASE, &[0; 64], &[1; 64]);
    window.call(fill(BASE, 0x0101_0101, 16));
    window
}

fn obstacles(bytes: Vec<u8>) -> Vec<Obstacle> {
    let mut recording = Recording::from_bytes(bytes).unwrap();
    Plan::of(&mut recording).unwrap().obstacles
}

/// The reason of the only obstacle, which also keeps a replay from being prepared.
#[track_caller]
fn reason(window: &Window) -> String {
    only_reason(window.bytes())
}

#[track_caller]
fn only_reason(bytes: Vec<u8>) -> String {
    let mut recording = Recording::from_bytes(bytes).unwrap();
    let plan = Plan::of(&mut recording).unwrap();
    let [obstacle] = &plan.obstacles[..] else {
        panic!("{:?}", plan.obstacles)
    };
    let refusal = Replay::prepare(&mut recording, &plan, 0).err().unwrap();
    assert_eq!(refusal.to_string(), format!("not replayable: {obstacle}"));
    assert!(matches!(refusal, Error::Obstacle(_)));
    obstacle.to_string()
}

/// The error of preparing a recording whose plan has no obstacle.
#[track_caller]
fn failure(window: &Window) -> Error {
    let mut recording = window.open();
    let plan = Plan::of(&mut recording).unwrap();
    assert_eq!(plan.obstacles, []);
    Replay::prepare(&mut recording, &plan, 0).err().unwrap()
}

#[test]
fn a_window_without_obstacles_has_none() {
    assert_eq!(obstacles(small().bytes()), []);
}

#[test]
fn a_file_that_is_no_trace_is_refused() {
    for bytes in [
        Vec::new(),
        b"not a trace, but long enough to hold a header of one".repeat(8),
    ] {
        let error = Recording::from_bytes(bytes).err().unwrap();
        assert!(matches!(error, Error::Format(_)), "{error:?}");
    }
    let missing = Recording::open("/nonexistent/step.sbt".as_ref()).err().unwrap();
    assert!(
        matches!(missing, Error::Open(_) | Error::Format(_)),
        "{missing:?}"
    );
}

#[test]
fn a_trace_without_a_recording_is_refused() {
    let mut window = Window::new();
    window.kernels.push((1, "fill".to_owned(), 1_000));
    let error = Recording::from_bytes(window.bytes()).err().unwrap();
    assert!(matches!(error, Error::NoRecording), "{error:?}");
    assert!(error.to_string().contains("tracesmith profile --record"));
}

#[test]
fn a_recording_that_ends_within_its_window_is_refused() {
    let words = only_reason(small().unfinished_bytes());
    assert_eq!(
        words,
        "the replay recording is incomplete: it ends before its window was closed"
    );
}

#[test]
fn a_recording_that_the_recorder_calls_broken_is_refused() {
    let mut window = small();
    let why = "the replay recording is incomplete: memory of the program could not be read";
    window.fact("recording.broken", why);
    assert_eq!(reason(&window), why);
}

#[test]
fn a_file_that_is_cut_or_damaged_is_refused() {
    let whole = small().bytes();
    let words = "and may lack a part of the replay recording";
    // Without its end marker; the rows are there.
    let reason = only_reason(whole[..whole.len() - 8].to_vec());
    assert!(
        reason.contains("the file is truncated") && reason.contains(words),
        "{reason}"
    );
    // One byte of some block: wherever it is, the recording is refused, cannot be read, or is not touched.
    let mut refused = 0;
    for place in (128..whole.len()).step_by(37) {
        let mut spoilt = whole.clone();
        spoilt[place] ^= 0x20;
        let Ok(mut recording) = Recording::from_bytes(spoilt) else {
            refused += 1;
            continue;
        };
        let Ok(plan) = Plan::of(&mut recording) else {
            refused += 1;
            continue;
        };
        refused += usize::from(
            plan.obstacles
                .iter()
                .any(|obstacle| obstacle.reason.contains(words)),
        );
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_refused_call_is_named_with_its_reason() {
    let mut window = small();
    window.call(refused("cuMemcpyPeer", "copies between devices"));
    let found = obstacles(window.bytes());
    let expected = Obstacle {
        command: Some(2),
        function: "cuMemcpyPeer".to_owned(),
        reason: "copies between devices".to_owned(),
    };
    assert_eq!(found, [expected]);
    assert_eq!(reason(&window), "#2 cuMemcpyPeer: copies between devices");
}

#[test]
fn all_obstacles_are_listed() {
    let mut window = small();
    window.call(refused("cuMemcpyPeer", "copies between devices"));
    window.call(refused("cuStreamWaitValue32", "waits for a value"));
    window.fact("recording.broken", "no room");
    let found = obstacles(window.bytes());
    let commands: Vec<_> = found.iter().map(|obstacle| obstacle.command).collect();
    assert_eq!(commands, [None, Some(2), Some(3)]);
}

#[test]
fn a_kind_of_call_that_is_newer_than_this_version_is_refused() {
    let mut window = small();
    window.call(Call::of(CommandKind(99)));
    assert_eq!(
        reason(&window),
        "#2 unknown: calls of kind 99 need a newer version of tracesmith"
    );
}

#[test]
fn memory_beyond_the_address_space_is_refused() {
    for (address, bytes) in [((1 << 57) - 4096, 8192), (u64::MAX - 100, 4096)] {
        let mut window = small();
        window.call(allocate(address, bytes));
        let words = reason(&window);
        assert!(words.starts_with(&format!("memory at {address:#x} (")), "{words}");
        assert!(words.ends_with("is outside of the GPU address space"), "{words}");
    }
    let mut window = small();
    window.add(Moment::BEGIN, MemoryKind::PINNED, 1 << 57, &[0; 16]);
    assert!(reason(&window).contains("is outside of the GPU address space"));
}

#[test]
fn a_kernel_whose_code_is_in_no_module_is_refused() {
    let mut window = small();
    window.call(launch("elsewhere", &[]).of_module(0x9000));
    let words = "#2 elsewhere: its module was loaded before the recording began";
    assert_eq!(reason(&window), words);
}

#[test]
fn a_kernel_that_several_modules_contain_is_refused() {
    let mut window = small();
    window.load(
        0x8000,
        KERNELS
            .replace(".visible .global .align 4 .u32 counter;", "")
            .as_bytes(),
    );
    window.call(fill(BASE, 1, 1).of_module(0x9000));
    let words = reason(&window);
    assert!(
        words.starts_with("#2 fill: cannot tell which of 2 modules contains this kernel"),
        "{words}"
    );
    assert!(words.contains("tracesmith profile --record"), "{words}");
}

#[test]
fn an_attribute_of_a_kernel_without_code_is_refused_too() {
    let mut window = small();
    window.call(attribute("elsewhere", 8, 1024).of_module(0x9000));
    assert!(reason(&window).contains("its module was loaded before the recording began"));
}

#[test]
fn a_handle_whose_code_is_not_in_the_file_is_refused() {
    under_fake(&[], || {
        let mut window = small();
        window.modules.push(Module {
            handle: 0x9000,
            hash_low: 5,
            ..window.modules[0].clone()
        });
        let lost = window.modules.last_mut().unwrap();
        (lost.code, lost.hash_high) = (Default::default(), 0);
        window.call(fill(BASE, 1, 1).of_module(0x9000));
        let error = failure(&window);
        assert!(matches!(error, Error::Missing(_)), "{error:?}");
        assert_eq!(
            error.to_string(),
            "the file does not contain the module 00000000000000000000000000000005"
        );
    });
}

/// The header of a cubin; no code follows.
fn cubin_for(capability: u8) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01\x33\x07".to_vec();
    header.resize(64, 0);
    header[18..20].copy_from_slice(&190_u16.to_le_bytes());
    header[48] = capability;
    header.extend(b"\0matmul\0");
    header
}

#[test]
fn code_for_another_architecture_is_refused() {
    under_fake(&[], || {
        for (capability, name) in [(80, "8.0"), (100, "10.0"), (95, "9.5")] {
            let mut window = small();
            window.load(0x8000, &cubin_for(capability));
            window.call(launch("matmul", &[]).of_module(0x8000));
            let error = failure(&window);
            assert!(matches!(error, Error::Obstacle(_)), "{error:?}");
            let words = error.to_string();
            let expected = format!(
                "not replayable: the module of matmul was compiled for compute capability {name}, but "
            );
            assert!(
                words.starts_with(&expected) && words.ends_with("has 9.0"),
                "{words}"
            );
        }
    });
}

#[test]
fn code_for_an_earlier_step_of_the_generation_is_loaded() {
    under_fake(&[(variable::CAPABILITY, "89")], || {
        let mut window = small();
        window.load(0x8000, &cubin_for(86));
        window.call(launch("matmul", &[]).of_module(0x8000));
        // It is not refused; that it is only a header shows when it is loaded.
        let error = failure(&window);
        assert!(matches!(error, Error::Device { .. }), "{error:?}");
        assert!(
            error.to_string().starts_with("loading the module of matmul: "),
            "{error}"
        );
    });
}

#[test]
fn a_kernel_that_the_code_does_not_hold_is_named() {
    under_fake(&[], || {
        let mut window = small();
        window.call(launch("matmul", &[]));
        let error = failure(&window);
        assert!(error.to_string().starts_with("finding matmul: "), "{error}");
    });
}

#[test]
fn a_piece_that_is_too_large_is_refused() {
    let mut window = small();
    window.pieces[0].bytes = Bytes(MAX_BLOCK_BYTES + 1);
    let error = Recording::from_bytes(window.bytes()).err().unwrap();
    assert!(matches!(error, Error::Missing(_)), "{error:?}");
    assert!(error.to_string().contains("more than is possible"), "{error}");
}

#[test]
fn a_content_that_is_not_in_the_file_is_missed() {
    under_fake(&[], || {
        // Of the beginning, of the end, and of what a call brings.
        for moment in [Moment::BEGIN, Moment::END, Moment::CALL] {
            let mut window = small();
            window.bring(copy(BASE, 0x5000, 8), BASE, &[1; 8]);
            let piece = window
                .pieces
                .iter_mut()
                .find(|piece| piece.moment == moment)
                .unwrap();
            piece.hash_low ^= 1;
            let mut recording = window.open();
            let plan = Plan::of(&mut recording).unwrap();
            let prepared = Replay::prepare(&mut recording, &plan, 0);
            let error = prepared.and_then(|mut replay| replay.run()).err().unwrap();
            assert!(matches!(error, Error::Missing(_)), "{moment:?} {error:?}");
            assert!(
                error
                    .to_string()
                    .starts_with("the file does not contain the memory contents "),
                "{error}"
            );
        }
    });
}

#[test]
fn a_copy_whose_bytes_are_missing_is_refused() {
    under_fake(&[], || {
        let host = 0x5000;
        let calls = [
            copy(BASE, host, 16),
            copy_planes([host, 16, 1], [BASE, 16, 1], [16, 1, 1]),
        ];
        for call in calls {
            let mut window = small();
            window.call(call);
            let mut recording = window.open();
            let plan = Plan::of(&mut recording).unwrap();
            let mut replay = Replay::prepare(&mut recording, &plan, 0).unwrap();
            let error = replay.run().err().unwrap();
            assert!(matches!(error, Error::Missing(_)), "{error:?}");
            assert_eq!(
                error.to_string(),
                "the file does not contain the host memory that #2 copies from 0x5000"
            );
        }
    });
}

#[test]
fn a_copy_of_planes_without_its_sizes_is_refused() {
    under_fake(&[], || {
        let mut window = small();
        let mut call = copy_planes([BASE, 4, 1], [BASE + 32, 4, 1], [4, 1, 1]);
        call.row.parameters.0.truncate(64);
        window.call(call);
        let mut recording = window.open();
        let plan = Plan::of(&mut recording).unwrap();
        let mut replay = Replay::prepare(&mut recording, &plan, 0).unwrap();
        let error = replay.run().err().unwrap();
        assert_eq!(
            error.to_string(),
            "the file does not contain the sizes of a 2D or 3D memcpy"
        );
    });
}

#[test]
fn a_variable_whose_size_has_changed_is_refused() {
    under_fake(&[], || {
        let mut window = small();
        window.variable(MODULE, "counter", BASE + 0x0100_0000, &[0; 8], &[0; 8]);
        let error = failure(&window);
        assert_eq!(
            error.to_string(),
            "not replayable: the module global counter has 4 bytes, but 8 in the recording"
        );
    });
}

#[test]
fn a_variable_that_the_code_does_not_have_is_named() {
    under_fake(&[], || {
        let mut window = small();
        window.variable(MODULE, "totals", BASE + 0x0100_0000, &[0; 4], &[0; 4]);
        let error = failure(&window);
        assert!(
            error
                .to_string()
                .starts_with("finding the module global totals: "),
            "{error}"
        );
    });
}

/// Memory of the host of which a page is the device's is not mapped: what is on its other page cannot be reached.
#[test]
fn a_kernel_that_reaches_host_memory_that_cannot_be_mapped_is_refused() {
    under_fake(&[], || {
        let mut window = small();
        let host = BASE + (2 << 20);
        window.add(Moment::BEGIN, MemoryKind::PINNED, host - 64, &[0; 128]);
        window.call(fill(host, 1, 4));
        let error = failure(&window);
        assert!(matches!(error, Error::Obstacle(_)), "{error:?}");
        let words = format!("not replayable: #2 fill: its host memory cannot be mapped at {host:#x}");
        assert_eq!(error.to_string(), words);
    });
}

#[test]
fn a_texture_without_its_description_is_refused() {
    under_fake(&[], || {
        let cut = |bytes: usize| {
            let mut call = texture(1, BASE, 64);
            call.row.parameters.0.truncate(bytes);
            call
        };
        // Cut within the resource, and a texture that does not say how it is read.
        for call in [cut(100), cut(144)] {
            let mut window = small();
            window.call(call);
            let mut recording = window.open();
            let plan = Plan::of(&mut recording).unwrap();
            let mut replay = Replay::prepare(&mut recording, &plan, 0).unwrap();
            let error = replay.run().err().unwrap();
            assert_eq!(
                error.to_string(),
                "the file does not contain a valid description of the texture of #2"
            );
        }
    });
}

#[test]
fn an_array_without_its_shape_or_of_another_size_is_refused() {
    under_fake(&[], || {
        let array = |words: &[u64], bytes: u64| {
            let mut call = Call::of(CommandKind::ARRAY);
            call.row.destination = tracesmith_format::Address(1 << 56);
            call.row.bytes = Bytes(bytes);
            call.row.parameters.0 = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut window = small();
            window.call(call);
            failure(&window).to_string()
        };
        assert_eq!(
            array(&[16, 0], 64),
            "the file does not contain the shape of an array"
        );
        let shape = [16, 0, 0, 0x20, 1, 0, 0];
        assert_eq!(
            array(&shape, 60),
            "not replayable: the array of #2 has 64 bytes on this GPU, but 60 in the recording"
        );
    });
}

#[test]
fn addresses_that_are_taken_are_refused_unless_memory_may_lie_elsewhere() {
    under_fake(&[(variable::ELSEWHERE, "1")], || {
        let window = small();
        let error = failure(&window);
        assert!(error.is_address_taken() && !error.is_fault(), "{error:?}");
        assert!(
            error.to_string().starts_with(
                "allocating memory at the recorded addresses: the addresses from 0x24000000000 on"
            ),
            "{error}"
        );
        let mut recording = window.open();
        let plan = Plan::of(&mut recording).unwrap();
        assert!(Replay::prepare_at(&mut recording, &plan, 0, Placing::Anywhere).is_ok());
    });
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    under_fake(&[], || {
        let mut recording = small().open();
        let plan = Plan::of(&mut recording).unwrap();
        let error = Replay::prepare(&mut recording, &plan, 3).err().unwrap();
        assert!(error.to_string().starts_with("opening the device: "), "{error}");
    });
}

#[test]
fn a_driver_that_does_not_start_is_refused() {
    under_fake(&[(variable::INIT_ERROR, "100")], || {
        let error = failure(&small());
        assert!(error.to_string().starts_with("opening the driver: "), "{error}");
        assert!(!error.is_fault() && !error.is_address_taken());
    });
}

#[test]
fn a_plan_and_the_facts_of_a_recording_need_no_driver() {
    let mut window = small();
    let host = BASE + 0x0100_0000;
    window.add(Moment::BEGIN, MemoryKind::PINNED, host, &[0; 32]);
    window.call(allocate(BASE + 0x1000, 256));
    window.call(fill(BASE, 1, 4).at(2_500));
    window.kernels.push((1, "fill".to_owned(), 700));
    let mut recording = window.open();
    let plan = Plan::of(&mut recording).unwrap();
    assert_eq!(plan.memory, [BASE..BASE + 64, BASE + 0x1000..BASE + 0x1100]);
    assert_eq!((plan.host.len(), &plan.host[0]), (1, &(host..host + 32)));
    assert_eq!(plan.bytes(), (64 + 256, 32));
    assert_eq!((recording.begin_bytes(), recording.end_bytes()), (96, 64));
    assert_eq!(recording.code(), (1, KERNELS.len() as u64));
    assert_eq!(
        (recording.launch("fill", 2), recording.launch("fill", 3)),
        (Some(2), None)
    );
    assert_eq!(
        (recording.launch("fill", 0), recording.places(2..9)),
        (None, 1..3)
    );
    assert_eq!(recording.span().as_nanos(), 3_500);
    assert_eq!(recording.commands[0].recorded.unwrap().as_nanos(), 700);
    assert_eq!(recording.commands[2].recorded, None);
    assert_eq!(recording.argument_buffers(&recording.commands[0]), [(BASE, 64)]);
    let origin = Origin {
        name: "rack7".to_owned(),
        machine_id: "abc".to_owned(),
    };
    assert_eq!((&recording.origin, recording.others), (&origin, 0));
    window.others.push(ProcessId(8));
    assert_eq!(window.open().others, 1);
}

#[test]
fn parameters_that_are_too_few_fail_with_the_call() {
    under_fake(&[], || {
        let mut window = small();
        window.call(launch("fill", &[Long(BASE), Number(1)]));
        let mut recording = window.open();
        let plan = Plan::of(&mut recording).unwrap();
        let mut replay = Replay::prepare(&mut recording, &plan, 0).unwrap();
        let error = replay.run().err().unwrap();
        assert!(matches!(error, Error::Device { call: Some(2), .. }), "{error:?}");
        assert!(error.to_string().starts_with("#2 fill: launching: "), "{error}");
    });
}

/// The file of two processes: the one that is replayed was killed in its window, the other one was not.
#[test]
fn the_end_of_another_process_does_not_count() {
    let mut window = small();
    window.others.push(ProcessId(8));
    window
        .facts
        .push(("process.4243.recording.commands".to_owned(), "1".to_owned()));
    let words = only_reason(window.unfinished_bytes());
    assert_eq!(
        words,
        "the replay recording is incomplete: it ends before its window was closed"
    );
    // Nor does it matter that another one is broken.
    let mut window = small();
    window
        .facts
        .push(("process.4243.recording.broken".to_owned(), "no room".to_owned()));
    assert_eq!(obstacles(window.bytes()), []);
}

#[test]
fn a_file_that_lacks_calls_is_refused() {
    let mut window = small();
    window.fact("recording.commands", "3");
    let words = only_reason(window.unfinished_bytes());
    assert_eq!(
        words,
        "the replay recording is incomplete: the file contains 1 of 3 calls"
    );
    // Where the recorder knows why, its reason counts.
    window.fact("recording.broken", "no room");
    assert_eq!(only_reason(window.unfinished_bytes()), "no room");
}

/// Nothing would differ from memory whose content is not there.
#[test]
fn memory_at_the_end_without_its_content_is_refused() {
    let mut window = small();
    window.changed(BASE + 0x1000, &[0; 96], &[0; 96]);
    let end = |piece: &tracesmith_format::tables::Piece| piece.moment == Moment::END;
    let is_last = |piece: &tracesmith_format::tables::Piece| end(piece) && piece.address.0 > BASE;
    // Without any of it, without its end, and without its beginning.
    for kept in [0..0, 0..80, 16..96, 0..96] {
        let mut window = window.clone();
        window.pieces.retain(|piece| !is_last(piece));
        // In two pieces, as large contents are.
        for half in [kept.start..kept.end.min(48), kept.start.max(48)..kept.end] {
            if !half.is_empty() {
                let address = BASE + 0x1000 + half.start as u64;
                window.piece(Moment::END, 0, address, &vec![0; half.len()]);
            }
        }
        if kept == (0..96) {
            assert_eq!(obstacles(window.bytes()), []);
            continue;
        }
        let words = "the replay recording is incomplete: the file does not contain the final contents of the 96 bytes at 0x24000001000";
        assert_eq!(reason(&window), words, "{kept:?}");
    }
}

/// A content that is shorter than its piece, and agrees as far as it goes.
#[test]
fn a_content_that_is_too_short_is_refused() {
    under_fake(&[], || {
        for moment in [Moment::BEGIN, Moment::END, Moment::CALL] {
            let mut window = small();
            let content = u8::from(moment != Moment::BEGIN);
            let number = window.bring(copy(BASE, 0x5000, 64), BASE, &[1; 64]);
            let mut other = Window::new();
            other.piece(moment, number, BASE, &[content; 32]);
            let mut short = other.pieces.remove(0);
            short.bytes = Bytes(64);
            window.contents.extend(other.contents);
            window.pieces.retain(|piece| piece.moment != moment);
            window.pieces.push(short);
            let mut recording = window.open();
            let plan = Plan::of(&mut recording).unwrap();
            let prepared = Replay::prepare(&mut recording, &plan, 0);
            let error = prepared.and_then(|mut replay| replay.run()).err().unwrap();
            assert_eq!(
                error.to_string(),
                "the file does not contain the complete contents of memory at 0x24000000000",
                "{moment:?}"
            );
        }
    });
}
