//! What the environment asks of the fake, read once when it is first needed. `Options` is the other end.

use std::sync::OnceLock;

use crate::options::variable;

/// The version of CUPTI that is imitated, as `cuptiGetVersion` numbers it.
pub(crate) type CuptiVersion = u32;

/// CUPTI of CUDA 12.5: the first with filters per call.
pub(crate) const CUPTI_12_5: CuptiVersion = 23;
/// CUPTI of CUDA 12.8: copies, syncs and events grew.
pub(crate) const CUPTI_12_8: CuptiVersion = 26;
/// CUPTI of CUDA 12.6: allocations grew.
pub(crate) const CUPTI_12_6: CuptiVersion = 24;
/// CUPTI of CUDA 13.0.
pub(crate) const CUPTI_13_0: CuptiVersion = 130_000;
/// CUPTI of CUDA 13.2.
pub(crate) const CUPTI_13_2: CuptiVersion = 130_200;
/// CUPTI of CUDA 13.4.
pub(crate) const CUPTI_13_4: CuptiVersion = 130_400;

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) devices: u32,
    pub(crate) driver_version: i32,
    pub(crate) cupti_version: CuptiVersion,
    /// What `cuInit` answers instead of success.
    pub(crate) init_error: u32,
    /// Every n-th launch fails; 0: none.
    pub(crate) launch_failure_every: u64,
    /// At least this long does a kernel take.
    pub(crate) kernel_nanos: u64,
    /// Adding up in another order at one of so many launches, as atomics on a GPU do; 0: at none.
    pub(crate) racy_of: u64,
    /// A kernel that reaches beyond its memory; empty: none.
    pub(crate) faulting_kernel: String,
    /// A kernel that does not end; empty: none.
    pub(crate) hanging_kernel: String,
    pub(crate) slow_launch_millis: u64,
    /// The compute capability: 90 is 9.0.
    pub(crate) capability: i32,
    /// Addresses that are asked for are never given.
    pub(crate) is_elsewhere: bool,
    pub(crate) drop_every: u64,
    pub(crate) zero_every: u64,
    /// Records leave a buffer in another order than they were made.
    pub(crate) is_shuffled: bool,
    pub(crate) is_subscribed_by_other: bool,
    /// What registering functions for buffers answers instead of success.
    pub(crate) register_error: u32,
    pub(crate) slow_flush_millis: u64,
}

/// The one configuration of this process.
pub(crate) fn config() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let cupti_version = number(variable::CUPTI_VERSION, 130_001) as CuptiVersion;
        Config {
            devices: number(variable::DEVICES, 1) as u32,
            driver_version: number(variable::DRIVER_VERSION, driver_version_of(cupti_version)) as i32,
            cupti_version,
            init_error: number(variable::INIT_ERROR, 0) as u32,
            launch_failure_every: number(variable::LAUNCH_FAILURE_EVERY, 0),
            kernel_nanos: number(variable::KERNEL_NANOS, 0),
            racy_of: number(variable::RACY, 0),
            faulting_kernel: text(variable::FAULTING_KERNEL),
            hanging_kernel: text(variable::HANGING_KERNEL),
            slow_launch_millis: number(variable::SLOW_LAUNCH_MILLIS, 0),
            capability: number(variable::CAPABILITY, 90) as i32,
            is_elsewhere: number(variable::ELSEWHERE, 0) != 0,
            drop_every: number(variable::DROP_EVERY, 0),
            zero_every: number(variable::ZERO_EVERY, 0),
            is_shuffled: number(variable::SHUFFLE, 0) != 0,
            is_subscribed_by_other: number(variable::OTHER_SUBSCRIBER, 0) != 0,
            register_error: number(variable::REGISTER_ERROR, 0) as u32,
            slow_flush_millis: number(variable::SLOW_FLUSH_MILLIS, 0),
        }
    })
}

/// The driver that came with a CUPTI.
fn driver_version_of(cupti: CuptiVersion) -> u64 {
    match cupti {
        0..=22 => 12040,
        23..=99 => 12090,
        100..=130_199 => 13000,
        _ => 13040,
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(default)
}

fn text(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
