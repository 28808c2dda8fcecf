//! Small traces with what a test needs.

use tracesmith_format::tables::{Frame, FrameKind, Kernel, KernelShape, Place};
use tracesmith_format::{
    ClockId, CorrelationId, DeviceId, ProcessId, StreamId, Timestamp, Writer, WriterOptions,
};

/// A trace with one kernel after the other on a stream: names, starts and lengths. Every kernel has a stack with frames in
/// `sources`.
pub fn kernels(kernels: &[(&str, u64, u64)], sources: &[&str]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let frames: Vec<_> = sources
        .iter()
        .zip(1..)
        .map(|(source, line)| {
            let file = writer.string(source).unwrap();
            let function = writer.string(&format!("function_{line}")).unwrap();
            let frame = Frame {
                kind: FrameKind::PYTHON,
                file,
                function,
                line,
                ..Frame::default()
            };
            writer.frame(frame).unwrap()
        })
        .collect();
    for ((name, start, length), number) in kernels.iter().zip(1..) {
        let name = writer.string(name).unwrap();
        let kernel = Kernel {
            start: Timestamp(*start),
            end: Timestamp(start + length),
            correlation: CorrelationId(number),
            stack: writer.stack_of(frames.clone()).unwrap(),
            place: Place {
                process: ProcessId(1),
                device: DeviceId(1),
                stream: StreamId(7),
                ..Place::default()
            },
            shape: KernelShape {
                name,
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    writer.finish().unwrap()
}
