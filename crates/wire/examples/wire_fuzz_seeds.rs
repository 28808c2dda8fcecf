//! Writes the first inputs of the fuzz corpora: one of each message, and frames.
//!
//! `cargo run -p tracesmith-wire --example wire_fuzz_seeds -- fuzz/corpus`
#![allow(clippy::unwrap_used, reason = "the panic is shown to the user of the example")]

use std::{env, fs, path::PathBuf, time::Duration};

use tracesmith_wire::{
    Capacity,
    control::{CaptureRange, Kinds, Message, Settings, Steps},
    fuzz,
    record::{ApiCall, IntoBytes, Kernel, Marker, Payload, Text},
};

fn main() {
    let folder = PathBuf::from(env::args().nth(1).unwrap());
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = folder.join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    };
    for (name, message) in messages() {
        write("wire_order", name, &fuzz::seed_order(&message));
    }
    for (name, bytes) in fuzz::seed_greetings() {
        write("wire_greeting", name, &bytes);
    }
    let frames = frames();
    write("wire_frames", "records", &frames);
    write("collect_records", "records", &frames);
}

fn messages() -> Vec<(&'static str, Message)> {
    let settings = |range, steps| Settings {
        collector: PathBuf::from("/run/user/1000/tracesmith-1-0/collector.sock"),
        kinds: Kinds::KERNELS | Kinds::API,
        range,
        steps,
        activity_ring: Capacity::at_least(1 << 25),
        thread_ring: Capacity::at_least(1 << 18),
        memory_bytes: 64 << 20,
        flush_period: Duration::from_millis(100),
    };
    let marker = CaptureRange::Marker {
        name: "step".to_owned(),
        domain: Some("train".to_owned()),
    };
    let steps = Some(Steps { first: 3, last: 9 });
    vec![
        (
            "open",
            Message::Open(Box::new(settings(CaptureRange::Everything, None))),
        ),
        ("open-range", Message::Open(Box::new(settings(marker, steps)))),
        ("close", Message::Close),
        ("done", Message::Done),
        ("failed", Message::Failed("no CUPTI".to_owned())),
        ("dump", Message::Dump),
        ("dumped", Message::Dumped(Ok("a.sbt".to_owned()))),
        ("not-dumped", Message::Dumped(Err("disk full".to_owned()))),
    ]
}

fn frames() -> Vec<u8> {
    let mut frames = Vec::new();
    let text = [Text { id: 7, reserved: 0 }.as_bytes(), b"_Z3addPf"].concat();
    fuzz::seed_frame(&mut frames, Text::KIND, &text);
    let kernel = Kernel {
        start: 10,
        end: 20,
        name: 7,
        ..Kernel::default()
    };
    fuzz::seed_frame(&mut frames, Kernel::KIND, kernel.as_bytes());
    fuzz::seed_frame(&mut frames, ApiCall::KIND, ApiCall::default().as_bytes());
    let of_phase = |phase| Marker {
        phase,
        ..Marker::default()
    };
    let begun = [of_phase(1).as_bytes(), b"step"].concat();
    fuzz::seed_frame(&mut frames, Marker::KIND, &begun);
    fuzz::seed_frame(&mut frames, Marker::KIND, of_phase(2).as_bytes());
    frames
}
