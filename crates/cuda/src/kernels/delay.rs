//! Time that passes on the device.

use std::time::Duration;

use crate::Error;
use crate::driver::{Context, Function, Launch, Stream};

const PTX: &str = include_str!("delay.ptx");

/// The longest delay: one that is read wrongly must not hold the device for good.
const LONGEST: Duration = Duration::from_secs(1);

/// Keeps streams busy.
pub struct Delayer {
    function: Function,
}

impl Delayer {
    /// Lets the driver compile and load it.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn load(context: &Context) -> Result<Self, Error> {
        Ok(Self {
            function: context.module(PTX)?.function(c"delay")?,
        })
    }

    /// Work that is put into the stream from now on begins later; without a stream, in everyone's.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn delay(&self, time: Duration, stream: Option<&Stream>) -> Result<(), Error> {
        let nanoseconds = time.min(LONGEST).as_nanos() as u64;
        // SAFETY: it takes the one number and touches no memory.
        unsafe {
            self.function
                .launch_with(Launch::line(1, 1), &nanoseconds.to_le_bytes(), &[], stream)
        }
    }
}

impl std::fmt::Debug for Delayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Delayer")
    }
}
