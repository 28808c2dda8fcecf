//! What a test can ask of the fake, as a type. The shared object reads the same wishes from the environment, so a test
//! sets the variables of [`Options::variables`] for the process it starts.

/// Names of the environment variables; the crate's documentation tells what each does.
pub mod variable {
    /// How many devices there are.
    pub const DEVICES: &str = "FAKE_CUDA_DEVICES";
    /// What `cuDriverGetVersion` answers.
    pub const DRIVER_VERSION: &str = "FAKE_CUDA_DRIVER_VERSION";
    /// The `CUresult` that `cuInit` fails with.
    pub const INIT_ERROR: &str = "FAKE_CUDA_INIT_ERROR";
    /// Every n-th launch fails.
    pub const LAUNCH_FAILURE_EVERY: &str = "FAKE_CUDA_LAUNCH_FAILURE_EVERY";
    /// The least time of a kernel.
    pub const KERNEL_NANOS: &str = "FAKE_CUDA_KERNEL_NANOS";
    /// Whether `accumulate` adds in another order each time.
    pub const RACY: &str = "FAKE_CUDA_RACY";
    /// The name of a kernel that reaches beyond its memory.
    pub const FAULTING_KERNEL: &str = "FAKE_CUDA_FAULTING_KERNEL";
    /// The name of a kernel that does not end.
    pub const HANGING_KERNEL: &str = "FAKE_CUDA_HANGING_KERNEL";
    /// How long a launch takes to begin its kernel.
    pub const SLOW_LAUNCH_MILLIS: &str = "FAKE_CUDA_SLOW_LAUNCH_MILLIS";
    /// The compute capability, without its point.
    pub const CAPABILITY: &str = "FAKE_CUDA_CAPABILITY";
    /// Whether addresses that are asked for are never given.
    pub const ELSEWHERE: &str = "FAKE_CUDA_ELSEWHERE";
    /// The version of CUPTI that is imitated.
    pub const CUPTI_VERSION: &str = "FAKE_CUPTI_VERSION";
    /// Every n-th record is dropped.
    pub const DROP_EVERY: &str = "FAKE_CUPTI_DROP_EVERY";
    /// Every n-th record of device work has zero times.
    pub const ZERO_EVERY: &str = "FAKE_CUPTI_ZERO_EVERY";
    /// Whether records leave in another order than they were made.
    pub const SHUFFLE: &str = "FAKE_CUPTI_SHUFFLE";
    /// Whether another client holds the subscription.
    pub const OTHER_SUBSCRIBER: &str = "FAKE_CUPTI_OTHER_SUBSCRIBER";
    /// The `CUptiResult` that registering functions for buffers fails with.
    pub const REGISTER_ERROR: &str = "FAKE_CUPTI_REGISTER_ERROR";
    /// How long the delivery of each buffer is held up.
    pub const SLOW_FLUSH_MILLIS: &str = "FAKE_CUPTI_SLOW_FLUSH_MILLIS";
}

/// A version of CUPTI whose record layouts the fake knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CuptiVersion {
    /// CUDA 12.4.
    V12_4,
    /// CUDA 12.9.
    V12_9,
    /// CUDA 13.0, the default.
    #[default]
    V13_0,
    /// CUDA 13.4.
    V13_4,
}

impl CuptiVersion {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::V12_4, Self::V12_9, Self::V13_0, Self::V13_4];

    /// As `cuptiGetVersion` numbers it.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::V12_4 => 22,
            Self::V12_9 => 28,
            Self::V13_0 => 130_001,
            Self::V13_4 => 130_401,
        }
    }
}

/// How the fake behaves in a process. The default is a healthy machine with one device and CUPTI 13.0.
///
/// ```
/// use tracesmith_fake_cuda::{CuptiVersion, Options};
///
/// let options = Options {
///     cupti_version: CuptiVersion::V12_4,
///     drop_every: 10,
///     ..Options::default()
/// };
/// let variables = options.variables();
/// assert!(variables.contains(&("FAKE_CUPTI_VERSION", "22".to_owned())));
/// assert!(variables.contains(&("FAKE_CUPTI_DROP_EVERY", "10".to_owned())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many devices there are.
    pub devices: u32,
    /// The version of CUPTI.
    pub cupti_version: CuptiVersion,
    /// The `CUresult` that `cuInit` fails with; 0: it works.
    pub init_error: u32,
    /// Every n-th launch fails with CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES; 0: none.
    pub launch_failure_every: u64,
    /// The least time that a kernel takes, in nanoseconds.
    pub kernel_nanos: u64,
    /// One of so many launches of `accumulate`, by chance, adds in another order, as atomics on a GPU do; 0: none.
    pub racy_of: u64,
    /// Every n-th record is dropped, and counted as dropped; 0: none.
    pub drop_every: u64,
    /// Every n-th record of device work has zero times; 0: none.
    pub zero_every: u64,
    /// Whether records leave a buffer in another order than they were made.
    pub shuffle: bool,
    /// Whether subscribing fails because another client was first.
    pub other_subscriber: bool,
    /// The `CUptiResult` that registering functions for buffers fails with; 0: it works.
    pub register_error: u32,
    /// How long the delivery of each buffer is held up, in milliseconds.
    pub slow_flush_millis: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            devices: 1,
            cupti_version: CuptiVersion::default(),
            init_error: 0,
            launch_failure_every: 0,
            kernel_nanos: 0,
            racy_of: 0,
            drop_every: 0,
            zero_every: 0,
            shuffle: false,
            other_subscriber: false,
            register_error: 0,
            slow_flush_millis: 0,
        }
    }
}

impl Options {
    /// Names and values for the environment of the process that loads the fake.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            (variable::DEVICES, self.devices.to_string()),
            (variable::CUPTI_VERSION, self.cupti_version.number().to_string()),
            (variable::INIT_ERROR, self.init_error.to_string()),
            (
                variable::LAUNCH_FAILURE_EVERY,
                self.launch_failure_every.to_string(),
            ),
            (variable::KERNEL_NANOS, self.kernel_nanos.to_string()),
            (variable::RACY, self.racy_of.to_string()),
            (variable::DROP_EVERY, self.drop_every.to_string()),
            (variable::ZERO_EVERY, self.zero_every.to_string()),
            (variable::SHUFFLE, u8::from(self.shuffle).to_string()),
            (
                variable::OTHER_SUBSCRIBER,
                u8::from(self.other_subscriber).to_string(),
            ),
            (variable::REGISTER_ERROR, self.register_error.to_string()),
            (variable::SLOW_FLUSH_MILLIS, self.slow_flush_millis.to_string()),
        ]
    }
}
