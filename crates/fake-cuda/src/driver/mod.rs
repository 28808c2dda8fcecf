//! The C functions of libcuda.
//! <https://docs.nvidia.com/cuda/cuda-driver-api/index.html>

pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod device;
mod entry_points;
mod errors;
mod event;
pub(crate) mod graph;
mod graph_nodes;
pub(crate) mod init;
pub(crate) mod launch;
pub(crate) mod memory;
mod module;
mod planes;
pub(crate) mod profiler;
pub(crate) mod set;
pub(crate) mod state;
pub(crate) mod stream;
mod texture;
mod virtual_memory;
pub(crate) mod work;
