//! CUPTI: what NVIDIA's driver tells about the work it does.
