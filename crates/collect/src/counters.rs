//! Counters of devices, sampled beside the event loop.
//!
//! A source may be slow: asking a driver takes milliseconds now and then. It is
//! therefore asked on a thread of its own, and the event loop takes what has
//! come together.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Where counters of devices come from.
pub trait CounterSource: Send {
    /// What is known of the machine's devices.
    fn devices(&mut self) -> Vec<DeviceFacts>;

    /// Adds one sample of everything. Times are nanoseconds of
    /// `CLOCK_MONOTONIC`.
    fn sample(&mut self, samples: &mut Vec<Sample>);
}

/// Opens a source; none where there is nothing to count.
///
/// It is called when signals are blocked already: a vendor's library starts
/// threads of its own (NVML does), which inherit that. A signal that found one
/// of them unblocked would end the recorder, and the program's trace with it.
pub type OpenCounters = fn() -> Option<Box<dyn CounterSource>>;

/// What the machine knows of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Tells it from all others.
    pub uuid: [u8; 16],
    /// Its number when all are visible.
    pub ordinal: Option<u32>,
    /// Its name.
    pub name: String,
    /// PCI address.
    pub pci: String,
    /// Driver version.
    pub driver: String,
    /// NUMA node that it is attached to.
    pub numa_node: Option<u32>,
    /// The best generation of PCIe that it and its slot can do.
    pub pcie_generation: Option<u32>,
    /// The most lanes that they can do.
    pub pcie_width: Option<u32>,
    /// NVLinks that are up.
    pub nvlinks: u32,
    /// Bytes a second in each direction over all of them.
    pub nvlink_bandwidth: Option<u64>,
}

/// One value of a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// The counter.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The device, by its uuid.
    pub device: Option<[u8; 16]>,
    /// Which of several of the same name.
    pub instance: u32,
    /// How much.
    pub value: f64,
}

/// Samples that may wait for the event loop, in batches of one moment.
const WAITING: usize = 1024;

/// A source that is being asked.
pub(crate) struct Sampler {
    samples: Receiver<Vec<Sample>>,
    lost: Arc<AtomicU64>,
    /// Dropping it ends the thread.
    _stop: Sender<()>,
}

impl Sampler {
    /// Starts to ask, every `period`. A thread that cannot be had means no
    /// counters.
    pub(crate) fn start(source: Box<dyn CounterSource>, period: Duration) -> Option<Self> {
        let (sender, samples) = sync_channel(WAITING);
        let (stop, stopped) = channel();
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        thread::Builder::new()
            .name("counters".to_owned())
            .spawn(move || sample_periodically(source, period, &sender, &stopped, &counted))
            .ok()?;
        Some(Self {
            samples,
            lost,
            _stop: stop,
        })
    }

    /// What has come since the last time.
    pub(crate) fn take(&self) -> impl Iterator<Item = Sample> + '_ {
        self.samples.try_iter().flatten()
    }

    /// Samples that found nobody to take them.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

fn sample_periodically(
    mut source: Box<dyn CounterSource>,
    period: Duration,
    sender: &SyncSender<Vec<Sample>>,
    stopped: &Receiver<()>,
    lost: &AtomicU64,
) {
    let mut next = Instant::now();
    loop {
        let mut samples = Vec::new();
        source.sample(&mut samples);
        match sender.try_send(samples) {
            Ok(()) => {}
            Err(TrySendError::Full(samples)) => {
                lost.fetch_add(samples.len() as u64, Ordering::Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => return,
        }
        // A source that took longer than the period is asked at the next turn,
        // not several times in a row.
        next = (next + period).max(Instant::now());
        let wait = next.saturating_duration_since(Instant::now());
        if stopped.recv_timeout(wait) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            return;
        }
    }
}
