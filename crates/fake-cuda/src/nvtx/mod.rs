//! NVTX: the calls that a program marks its ranges with (`client`), and the tool behind them that writes marker records
//! (`tool`), joined by NVTX's injection protocol.
//! <https://github.com/NVIDIA/NVTX>

mod client;
mod protocol;
mod tool;
