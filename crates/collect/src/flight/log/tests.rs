//! Tests of the log of definitions.

use super::*;

fn push<T: Payload>(log: &mut RecordLog, record: &T, behind: &[u8]) {
    let payload = [record.as_bytes(), behind].concat();
    let tag = T::KIND.into();
    log.push(&Record {
        tag,
        payload: &payload,
    });
}

/// The records of one kind that a dump would contain.
fn kept<T: Payload>(log: &RecordLog) -> Vec<(T, Vec<u8>)> {
    let mut kept = Vec::new();
    log.replay(|record| {
        if let Some((row, behind)) = read::<T>(record) {
            kept.push((row, behind.to_vec()));
        }
    });
    kept
}

/// What a program defines that runs for days. Only the strings are new.
fn live(log: &mut RecordLog, rounds: std::ops::Range<u32>) {
    for round in rounds {
        let time = u64::from(round) * 1000 + 1;
        for destroyed in [0, 1] {
            let stream = wire::Stream {
                time,
                context: 1,
                stream: round,
                destroyed,
                ..Default::default()
            };
            push(log, &stream, b"");
            let name = wire::StreamName {
                context: 1,
                stream: round,
            };
            push(log, &name, b"side");
            let module = wire::Module {
                time,
                context: 1,
                module: round,
                unloaded: u32::from(destroyed),
                ..Default::default()
            };
            push(log, &module, b"");
        }
        for phase in [wire::WINDOW_OPENED, wire::WINDOW_CLOSED, wire::WINDOW_OPENED] {
            push(
                log,
                &wire::Window {
                    time,
                    phase,
                    reserved: 0,
                },
                b"",
            );
        }
        let pair = wire::ClockPair {
            host_clock: time,
            device_clock: time,
            uncertainty: 1,
        };
        push(log, &pair, b"");
        let lost = wire::Losses {
            time,
            dropped: 2,
            ..Default::default()
        };
        push(log, &lost, b"");
        let note = wire::Note {
            time,
            cause: 9,
            count: 1,
        };
        push(log, &note, b"it repeats itself");
        let thread = wire::ThreadName {
            thread: round,
            reserved: 0,
        };
        push(log, &thread, b"worker");
        // Two libraries in turn at one place, and one that always comes back.
        for (address, path) in [
            (0x1000, format!("/lib/{}.so", round % 2)),
            (0x9000, "/lib/same.so".into()),
        ] {
            let image = wire::Image {
                address,
                size: 0x1000,
                time,
                ..Default::default()
            };
            push(log, &image, path.as_bytes());
        }
    }
}

#[test]
fn a_log_of_a_program_that_goes_on_stops_growing() {
    let mut log = RecordLog::default();
    push(&mut log, &wire::Text { id: 1, reserved: 0 }, b"first");
    live(&mut log, 0..20_000);
    let bytes = log.bytes;
    assert!(bytes < 20 << 20, "{bytes}");
    live(&mut log, 20_000..50_000);
    assert!(
        log.bytes <= bytes + (1 << 20),
        "{bytes} bytes became {}",
        log.bytes
    );
    push(&mut log, &wire::Text { id: 2, reserved: 0 }, b"last");
    assert_eq!(log.refused(), 0);
    assert!(log.overwritten() > 0);
    let texts: Vec<_> = kept::<wire::Text>(&log)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(texts, [b"first".to_vec(), b"last".to_vec()]);
}

#[test]
fn sums_and_states_stay_true() {
    let mut log = RecordLog::default();
    live(&mut log, 0..10_000);
    let lost = kept::<wire::Losses>(&log);
    assert_eq!((lost.len(), lost[0].0.dropped), (1, 20_000));
    let notes = kept::<wire::Note>(&log);
    assert_eq!((notes.len(), notes[0].0.count), (1, 10_000));
    assert_eq!(notes[0].1, b"it repeats itself");
    // The first opening, and then the last close and opening.
    let windows: Vec<_> = kept::<wire::Window>(&log)
        .iter()
        .map(|(window, _)| (window.time, window.phase))
        .collect();
    let last = 9_999_001;
    assert_eq!(
        windows,
        [
            (1, wire::WINDOW_OPENED),
            (last, wire::WINDOW_CLOSED),
            (last, wire::WINDOW_OPENED)
        ]
    );
    assert!(log.in_window());
    let streams = kept::<wire::Stream>(&log);
    assert_eq!(streams.len(), 2 * MAX_GONE);
    assert!(streams.iter().any(|(stream, _)| stream.stream == 9_999));
    let images = kept::<wire::Image>(&log);
    let last: Vec<_> = images.iter().rev().take(2).map(|(_, path)| &path[..]).collect();
    assert_eq!(
        last,
        [b"/lib/1.so", b"/lib/0.so"],
        "what is mapped now comes last"
    );
    let same = images.iter().filter(|(image, _)| image.address == 0x9000);
    assert_eq!(same.count(), 1);
}

#[test]
fn a_mad_target_finds_no_room() {
    let mut log = RecordLog::default();
    for id in 0..3000 {
        push(&mut log, &wire::Text { id, reserved: 0 }, &[7; 64 << 10]);
    }
    assert!(log.bytes <= MAX_LOG_BYTES);
    assert!(log.refused() > 1000);
}
