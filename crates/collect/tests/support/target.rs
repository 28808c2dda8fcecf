//! What the library in a real target does, as far as the collector can see.

use std::{
    env,
    path::PathBuf,
    process,
    time::{Duration, Instant},
};

use tracesmith_wire::{
    Producer, Pushed,
    control::{Control, Message, Settings},
    handshake::{self, Purpose},
    record::{self, Payload},
};

pub const LIMIT: Duration = Duration::from_secs(20);

/// Device clocks are ahead of the host's by this much.
pub const AHEAD: u64 = 1_000_000_000_000;
pub const DEVICE: u32 = 3;
pub const UUID: [u8; 16] = [7; 16];
pub const KERNEL_NAME: u32 = 1;
pub const CALL_NAME: u32 = 2;
pub const DOMAIN: u32 = 3;
pub const MANGLED: &str = "_Z5saxpyfPKfPf";
pub const DEMANGLED: &str = "saxpy(float, float const*, float*)";

/// A target with its rings.
pub struct Target {
    pub control: Control,
    pub settings: Settings,
    pub definitions: Producer,
    pub activity: Producer,
    pub thread: Option<Producer>,
}

/// Connects to the collector that this process was started under.
pub fn connect() -> Control {
    let collector = env::var_os("TRACESMITH_COLLECTOR").expect("started under a collector");
    handshake::connect_control(&PathBuf::from(collector), LIMIT).unwrap()
}

/// The next message.
pub fn receive(control: &Control) -> Message {
    control.receive(LIMIT).unwrap().expect("the collector is there")
}

impl Target {
    /// Waits until it is told to record and begins.
    pub fn open(control: Control) -> Self {
        loop {
            match receive(&control) {
                Message::Open(settings) => return Self::open_with(control, *settings),
                Message::Close => control.send(&Message::Done, LIMIT).unwrap(),
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn open_with(control: Control, settings: Settings) -> Self {
        let ring = |purpose| handshake::connect(&settings.collector, purpose, settings.activity_ring, LIMIT);
        let mut target = Self {
            definitions: ring(Purpose::Definitions).unwrap(),
            activity: ring(Purpose::Activity).unwrap(),
            thread: None,
            control,
            settings,
        };
        target.control.send(&Message::Done, LIMIT).unwrap();
        let start = record::ProcessStart {
            time: now(),
            process: process::id(),
            parent: 1,
            driver_version: 13_000,
            library_version: 130_001,
        };
        target.define(&start, b"");
        let key = b"cupti.path";
        let fact = record::ProcessFact {
            key_bytes: key.len() as u32,
            ..Default::default()
        };
        target.define(&fact, b"cupti.path/usr/lib/libcupti.so");
        target.window(record::WINDOW_OPENED);
        target.clock_pair();
        target
    }

    /// Pushes a definition with what stands behind it.
    pub fn define<T: Payload>(&mut self, record: &T, behind: &[u8]) {
        push(&mut self.definitions, record, behind);
    }

    pub fn text(&mut self, id: u32, text: &str) {
        self.define(&record::Text { id, reserved: 0 }, text.as_bytes());
    }

    /// The texts and the device that the records below refer to.
    pub fn define_all(&mut self) {
        self.text(KERNEL_NAME, MANGLED);
        self.text(CALL_NAME, "cuLaunchKernel");
        self.text(DOMAIN, "train");
        self.device();
        let context = record::Context {
            time: now(),
            context: 1,
            device: DEVICE,
            default_stream: 7,
            ..Default::default()
        };
        self.define(&context, b"");
    }

    pub fn device(&mut self) {
        let device = record::Device {
            uuid: UUID,
            memory: 141 << 30,
            device: DEVICE,
            capability: [9, 0],
            multiprocessors: 132,
            warp_size: 32,
            warps_per_multiprocessor: 64,
            ..Default::default()
        };
        self.define(&device, b"NVIDIA H200");
    }

    pub fn clock_pair(&mut self) {
        let host_clock = now();
        let pair = record::ClockPair {
            device_clock: host_clock + AHEAD,
            host_clock,
            uncertainty: 50,
        };
        self.define(&pair, b"");
    }

    pub fn window(&mut self, phase: u32) {
        let window = record::Window {
            time: now(),
            phase,
            reserved: 0,
        };
        self.define(&window, b"");
    }

    /// Kernel number `number`, whose correlation it is.
    pub fn kernel(&mut self, number: u32) {
        push(&mut self.activity, &kernel(number), b"");
    }

    /// The call that launched it.
    pub fn call(&mut self, number: u32) {
        let start = now() + AHEAD;
        let call = record::ApiCall {
            start,
            end: start + 500,
            correlation: u64::from(number),
            thread: process::id(),
            name: CALL_NAME,
            function: 307,
            result: 0,
            domain: 1,
            ..record::ApiCall::default()
        };
        push(&mut self.activity, &call, b"");
    }

    /// A marker through the main thread's own ring.
    pub fn marker(&mut self, phase: u8, range: u64, text: &str) {
        let settings = &self.settings;
        let ring = self.thread.get_or_insert_with(|| {
            handshake::connect(&settings.collector, Purpose::Thread, settings.thread_ring, LIMIT).unwrap()
        });
        push(ring, &marker(phase, range), text.as_bytes());
    }

    /// Says that the process ends in order.
    pub fn goodbye(&mut self) {
        self.clock_pair();
        self.define(&record::Goodbye { time: now() }, b"");
    }

    /// Obeys an order to close; the control connection is all that is left.
    pub fn close(mut self) -> Control {
        self.clock_pair();
        self.window(record::WINDOW_CLOSED);
        let Self {
            control,
            definitions,
            activity,
            thread,
            ..
        } = self;
        drop((thread, activity, definitions));
        control.send(&Message::Done, LIMIT).unwrap();
        control
    }
}

pub fn kernel(number: u32) -> record::Kernel {
    let start = now() + AHEAD;
    record::Kernel {
        start,
        end: start + 1000,
        grid_id: i64::from(number),
        correlation: u64::from(number),
        device: DEVICE,
        context: 1,
        stream: 7,
        name: KERNEL_NAME,
        grid: [number % 5 + 1, 1, 1],
        block: [256, 1, 1],
        registers: 40,
        shared_carveout: 255,
        ..Default::default()
    }
}

pub fn marker(phase: u8, range: u64) -> record::Marker {
    record::Marker {
        time: now(),
        range,
        thread: process::id(),
        domain: DOMAIN,
        phase,
        ..Default::default()
    }
}

/// Pushes a record; one that finds no room is the ring's to count.
pub fn push<T: Payload>(ring: &mut Producer, record: &T, behind: &[u8]) {
    let bytes = [record.as_bytes(), behind].concat();
    let _: Pushed = ring.push(T::KIND.into(), &bytes);
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which `Instant` counts by.
pub fn now() -> u64 {
    let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    uptime.tv_sec as u64 * 1_000_000_000 + uptime.tv_nsec as u64
}

/// Does `work` until it says so, or a limit passes.
pub fn until(mut work: impl FnMut() -> bool) {
    let start = Instant::now();
    while !work() {
        assert!(start.elapsed() < LIMIT, "it takes too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}
