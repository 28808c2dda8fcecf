//! Errors of this crate.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver or NVML reported an error.
    #[error(transparent)]
    Cuda(#[from] tracesmith_cuda::Error),
    /// A GPU result differs from the CPU result.
    #[error("wrong result: {what} is {found} instead of {expected} at element {element}")]
    WrongResult {
        /// What was computed.
        what: &'static str,
        /// The first wrong element.
        element: usize,
        /// The result of the GPU.
        found: f32,
        /// The result of the CPU.
        expected: f32,
    },
}
