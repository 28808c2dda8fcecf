//! Device counters, sampled on a separate thread.
//!
//! Reading a counter from the driver can take milliseconds. The event loop must not wait for that, so it receives the
//! samples in batches.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// A source of device counters.
pub trait CounterSource: Send {
    /// The devices of this machine.
    fn devices(&mut self) -> Vec<DeviceFacts>;

    /// Adds one sample of every counter. Times are in nanoseconds of `CLOCK_MONOTONIC`.
    fn sample(&mut self, samples: &mut Vec<Sample>);
}

/// Opens a source. Returns `None` if there are no counters.
///
/// It is called when signals are already blocked. A vendor's library such as NVML starts its own threads, and they
/// inherit the signal mask. If such a thread received a signal, it would end the collector.
pub type OpenCounters = fn() -> Option<Box<dyn CounterSource>>;

/// Properties of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Identifies the device.
    pub uuid: [u8; 16],
    /// The index of the device if all devices are visible.
    pub ordinal: Option<u32>,
    /// Its name.
    pub name: String,
    /// PCI address.
    pub pci: String,
    /// Driver version.
    pub driver: String,
    /// NUMA node that it is attached to.
    pub numa_node: Option<u32>,
    /// The highest PCIe generation that the device and its slot support.
    pub pcie_generation: Option<u32>,
    /// The largest number of PCIe lanes that both support.
    pub pcie_width: Option<u32>,
    /// Number of active NVLinks.
    pub nvlinks: u32,
    /// Bandwidth of all NVLinks per direction, in bytes per second.
    pub nvlink_bandwidth: Option<u64>,
}

/// One value of a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Time in nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// The counter.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The UUID of the device.
    pub device: Option<[u8; 16]>,
    /// Distinguishes counters with the same name.
    pub instance: u32,
    /// The value.
    pub value: f64,
}

/// Batches that can wait for the event loop.
const WAITING: usize = 1024;

/// The sampling thread.
pub(crate) struct Sampler {
    samples: Receiver<Vec<Sample>>,
    lost: Arc<AtomicU64>,
    /// Dropping it ends the thread.
    _stop: Sender<()>,
}

impl Sampler {
    /// Starts to sample every `period`. Returns `None` if no thread can be started.
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

    /// The samples since the last call.
    pub(crate) fn take(&self) -> impl Iterator<Item = Sample> + '_ {
        self.samples.try_iter().flatten()
    }

    /// Samples that were dropped because the event loop did not read them.
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
        // A source that is slower than the period is sampled less often, and not several times in a row.
        next = (next + period).max(Instant::now());
        let wait = next.saturating_duration_since(Instant::now());
        if stopped.recv_timeout(wait) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            return;
        }
    }
}
