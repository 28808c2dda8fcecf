//! Writes the trace that the bench of analysis reads, to try commands on.
//!
//! `cargo run --release -p tracesmith-bench --example write_trace -- 10000000 big.sbt`

use std::{env, error::Error, path::Path};

use tracesmith_bench::training_trace::write_trace;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let (Some(kernels), Some(path)) = (args.next(), args.next()) else {
        return Err("usage: write_trace KERNELS FILE".into());
    };
    write_trace(Path::new(&path), kernels.parse()?)
}
