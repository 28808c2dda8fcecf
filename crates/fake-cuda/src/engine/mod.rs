//! The machine behind the C functions: memory, streams that run work in order, modules, kernels. Knows no C types and
//! no records.

pub(crate) mod context;
pub(crate) mod cubin;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod graph;
pub(crate) mod kernels;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod operation;
pub(crate) mod ptx;
pub(crate) mod registry;
pub(crate) mod stream;
pub(crate) mod texture;
pub(crate) mod ticket;
