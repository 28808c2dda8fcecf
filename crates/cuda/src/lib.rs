//! The only interface to NVIDIA's libraries.
//!
//! Nothing is linked. Each library is opened when it is needed. A library that is
//! missing, too old or lacks a function is an [`Error`] that names it. The bindings
//! are the few functions and structs that TraceSmith uses. The sizes and offsets of
//! structs are asserted when this crate is compiled.
//!
//! - [`cubin`]: the names in compiled code.
//! - [`cupti`]: activity records and callbacks, of CUDA 12 and 13 alike.
//! - [`driver`]: devices, and work of our own on them; [`kernels`] is that work.
//! - `nvml`: what the management library knows of devices (feature `nvml`).
//! - [`library`]: how a library is found.

#![allow(unsafe_code, reason = "this crate is where C is called")]

pub mod cubin;
pub mod cupti;
pub mod driver;
mod error;
mod functions;
pub mod kernels;
pub mod library;
#[cfg(feature = "nvml")]
pub mod nvml;
mod probe;

pub use error::Error;
pub use probe::cupti_version;
