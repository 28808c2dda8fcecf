//! NVML: what a GPU says about itself and how busy it is. Fixed values, some of which move slowly with time.
//! <https://docs.nvidia.com/deploy/nvml-api/index.html>

mod code;
mod identity;
mod links;
mod readings;
mod session;
