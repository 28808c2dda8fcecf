//! A file as PyTorch's profiler writes it, of any size, made from a seed: operators with shapes, Python functions, calls,
//! arrows, kernels and copies in the proportions of a training job.

use std::io::{self, Write};

use crate::workload::Random;

/// Kernel names of a job.
const NAMES: u64 = 200;
/// The operators of a layer, and the shapes that they see.
const OPERATORS: [&str; 8] = [
    "aten::linear",
    "aten::addmm",
    "aten::native_layer_norm",
    "aten::gelu",
    "aten::add_",
    "aten::scaled_dot_product_attention",
    "aten::empty_strided",
    "autograd::engine::evaluate_function: AddmmBackward0",
];

/// Writes a file of at least `bytes`, and gives how many kernels are in it, and their nanoseconds together.
pub fn write_kineto(out: &mut impl Write, bytes: u64, seed: u64) -> io::Result<(u64, u64)> {
    let mut job = Job {
        out: Counted { out, bytes: 0 },
        random: Random::new(seed),
        names: (0..NAMES).map(kernel_name).collect(),
        host: 1_365_627_862_757_064,
        device: 1_365_627_862_757_064,
        launches: 0,
        events: 0,
        kernel_time: 0,
    };
    job.header()?;
    while job.out.bytes < bytes {
        job.launch()?;
    }
    job.end()?;
    Ok((job.launches, job.kernel_time))
}

struct Job<'o, W> {
    out: Counted<'o, W>,
    random: Random,
    names: Vec<String>,
    host: u64,
    device: u64,
    launches: u64,
    events: u64,
    kernel_time: u64,
}

struct Counted<'o, W> {
    out: &'o mut W,
    bytes: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Nanoseconds as microseconds with their fraction.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

impl<W: Write> Job<'_, W> {
    fn header(&mut self) -> io::Result<()> {
        self.out.write_all(
            br#"{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 132
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "record_shapes": 1, "with_stack": 1,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1767189312000000000,
  "traceEvents": [
"#,
        )
    }

    /// A Python function, an operator within it and one within that, the call, and the work.
    fn launch(&mut self) -> io::Result<()> {
        self.launches += 1;
        let launch = self.launches;
        let random = &mut self.random;
        self.host += 4_000 + random.below(3_000);
        let (ts, call_ts) = (self.host, self.host + 2_500 + random.below(900));
        let name = &self.names[random.below(NAMES) as usize];
        let operator = OPERATORS[random.below(OPERATORS.len() as u64) as usize];
        let (batch, width) = (1 << random.below(6), 256 << random.below(4));
        let (external, correlation, index) = (launch * 2, launch * 3 + 1_000, self.events);
        let duration = 1_500 + random.below(40_000);
        self.device = self.device.max(call_ts + 5_000) + 700;
        self.events += 4;
        // Calls nest up to 32 deep, and the same ones come again with every layer.
        let level = launch % 32;
        let (function, line) = (level / 2, 100 + level * 7 + launch / 32 % 3);
        let (python, parent) = (launch, if level == 0 { 0 } else { launch - 1 });
        let out = &mut self.out;
        write!(
            out,
            r#"  {{
    "ph": "X", "cat": "python_function", "name": "torch/nn/modules/module_{function}.py({line}): _call_impl", "pid": 6583, "tid": 6583,
    "ts": {}, "dur": {},
    "args": {{
      "Python parent id": {parent}, "Python id": {python}, "Ev Idx": {index}
    }}
  }},
  {{
    "ph": "X", "cat": "cpu_op", "name": "{operator}", "pid": 6583, "tid": 6583,
    "ts": {}, "dur": {},
    "args": {{
      "External id": {},"Record function id": 0, "Concrete Inputs": ["", "", "", "1", "1"], "Input type": ["float", "float", "float", "Scalar", "Scalar"], "Input Strides": [[1], [{width}, 1], [1, {width}], [], []], "Input Dims": [[{width}], [{batch}, {width}], [{width}, {width}], [], []], "Ev Idx": {}
    }}
  }},
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::as_strided", "pid": 6583, "tid": 6583,
    "ts": {}, "dur": {},
    "args": {{
      "External id": {external},"Record function id": 0, "Sequence number": {}, "Fwd thread id": 0, "Ev Idx": {}
    }}
  }},
"#,
            Micros(ts),
            Micros(5_500),
            Micros(ts + 300),
            Micros(5_000),
            external - 1,
            index + 1,
            Micros(ts + 700),
            Micros(900),
            launch / 40,
            index + 2,
        )?;
        let end = write_work(
            out,
            name,
            (external, correlation),
            (call_ts, self.device, duration),
            launch,
        )?;
        if end {
            self.kernel_time += duration;
        }
        self.device += duration;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.launches -= self.launches / 40;
        self.out.write_all(
            br#"  {
    "name": "process_name", "ph": "M", "ts": 1365627862757.064, "pid": 6583, "tid": 0,
    "args": {
      "name": "python3"
    }
  },
  {
    "name": "process_labels", "ph": "M", "ts": 1365627862757.064, "pid": 0, "tid": 0,
    "args": {
      "labels": "GPU 0"
    }
  }
  ],
  "traceName": "bench.json"
}
"#,
        )
    }
}

/// The call and its work: a copy for every fortieth launch, else a kernel. Gives whether it was a kernel.
fn write_work(
    out: &mut impl Write,
    name: &str,
    (external, correlation): (u64, u64),
    (call, start, duration): (u64, u64, u64),
    launch: u64,
) -> io::Result<bool> {
    let is_kernel = !launch.is_multiple_of(40);
    let (call, start, duration) = (Micros(call), Micros(start), Micros(duration));
    let (function, number) = if is_kernel {
        ("cudaLaunchKernel", 211)
    } else {
        ("cudaMemcpyAsync", 41)
    };
    write!(
        out,
        r#"  {{
    "ph": "X", "cat": "cuda_runtime", "name": "{function}", "pid": 6583, "tid": 6583,
    "ts": {call}, "dur": 3.125,
    "args": {{
      "External id": {external},      "cbid": {number}, "correlation": {correlation}
    }}
  }},
  {{
    "ph": "s", "id": {correlation}, "pid": 6583, "tid": 6583, "ts": {call},
    "cat": "ac2g", "name": "ac2g"
  }},
"#
    )?;
    if is_kernel {
        let (grid, block) = (1 + launch % 97 * 8, 32 << (launch % 5));
        write!(
            out,
            r#"  {{
    "ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": 7,
    "ts": {start}, "dur": {duration},
    "args": {{
      "External id": {external},      "queued": 0, "device": 0, "context": 1,      "stream": 7, "correlation": {correlation},      "registers per thread": {},      "shared memory": 49152,      "blocks per SM": 4.740741,      "warps per SM": 75.851852,      "grid": [{grid}, 1, 1],      "block": [{block}, 1, 1],      "est. achieved occupancy %": 75
    }}
  }},
"#,
            16 + launch % 24 * 8
        )?;
    } else {
        write!(
            out,
            r#"  {{
    "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7,
    "ts": {start}, "dur": {duration},
    "args": {{
      "External id": {external},      "device": 0, "context": 1,      "stream": 7, "correlation": {correlation},      "bytes": {},      "memory bandwidth (GB/s)": 12.0625
    }}
  }},
"#,
            launch * 64
        )?;
    }
    write!(
        out,
        r#"  {{
    "ph": "f", "id": {correlation}, "pid": 0, "tid": 7, "ts": {start},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
"#
    )?;
    Ok(is_kernel)
}

/// Names of the lengths that PyTorch's templates have: 60 to 600 bytes.
fn kernel_name(number: u64) -> String {
    const PART: &str =
        "at::native::(anonymous namespace)::CUDAFunctorOnSelf_add<float>, std::array<char*, 2ul>, ";
    let parts = PART.repeat(number as usize % 7);
    format!("void at::native::vectorized_elementwise_kernel<4, {parts}{number}>(int, char*)")
}
