//! What can go wrong with GPUs of this machine.

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver or NVML refused.
    #[error(transparent)]
    Cuda(#[from] tracesmith_cuda::Error),
    /// A GPU computed something else than the CPU.
    #[error("wrong result: {what} is {found} instead of {expected} at element {element}")]
    WrongResult {
        /// What was computed.
        what: &'static str,
        /// The first element that is wrong.
        element: usize,
        /// What the GPU gave.
        found: f32,
        /// What the CPU gave.
        expected: f32,
    },
}
