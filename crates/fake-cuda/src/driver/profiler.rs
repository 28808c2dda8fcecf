//! The calls that mark a window. They do nothing: profilers watch them.

#![allow(unsafe_code, reason = "exports C functions")]

use super::state::check_initialised;
use crate::call::api;

api! { Driver:
    fn cuProfilerStart = 308 () => check_initialised();
    fn cuProfilerStop = 309 () => check_initialised();
}
