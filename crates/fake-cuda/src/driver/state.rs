//! Whether the driver is initialised, and its devices.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::code::Code;
use crate::config::config;
use crate::engine::device::Device;

thread_local! {
    static IS_WITHIN_LAUNCH: Cell<bool> = const { Cell::new(false) };
}

static IS_INITIALISED: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_initialised() -> bool {
    IS_INITIALISED.load(Ordering::Acquire)
}

pub(crate) fn set_initialised() {
    IS_INITIALISED.store(true, Ordering::Release);
}

/// What is called back within a launch must not call the driver.
pub(crate) fn within_launch(call_back: impl FnOnce()) {
    IS_WITHIN_LAUNCH.set(true);
    call_back();
    IS_WITHIN_LAUNCH.set(false);
}

/// Every function but a few fails before `cuInit`.
pub(crate) fn check_initialised() -> Result<(), Code> {
    if IS_WITHIN_LAUNCH.get() {
        // A GPU's driver would never come back.
        std::process::abort();
    }
    if is_initialised() {
        Ok(())
    } else {
        Err(Code::NOT_INITIALIZED)
    }
}

pub(crate) fn devices() -> Vec<Device> {
    (0..config().devices).map(|ordinal| Device { ordinal }).collect()
}

pub(crate) fn device(ordinal: i32) -> Result<Device, Code> {
    check_initialised()?;
    match u32::try_from(ordinal) {
        Ok(ordinal) if ordinal < config().devices => Ok(Device { ordinal }),
        _ => Err(Code::INVALID_DEVICE),
    }
}
