//! A small program with most kinds of GPU work: memcpys in both directions, kernels, memsets, two streams with a
//! dependency, a graph, and a check of the results.
//!
//! Each step resembles a training step. One stream copies and processes a batch. Another stream multiplies matrices
//! after the first is done with its part. A graph of small kernels follows. All results are compared with the CPU's.

use tracesmith_cuda::driver::{Context, DeviceMemory, HostMemory, Stream};
use tracesmith_cuda::kernels::Kernels;

use super::open;
use crate::error::Error;

/// Kernels in the graph.
const GRAPH_KERNELS: u32 = 3;
/// Graph launches per step.
const GRAPH_LAUNCHES: u32 = 4;
/// The factor of the first kernel.
const FACTOR: f32 = 0.5;
/// Rows of the product that are compared. The CPU would need long for all rows.
const CHECKED_ROWS: usize = 4;

/// The parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoPlan {
    /// Number of steps.
    pub steps: u32,
    /// Elements of a batch. At most 4 Mi, so that sums are exact.
    pub elements: u32,
    /// Rows and columns of the matrices.
    pub side: u32,
    /// The CUDA device ordinal.
    pub device: u32,
}

impl Default for DemoPlan {
    fn default() -> Self {
        Self {
            steps: 20,
            elements: 1 << 20,
            side: 512,
            device: 0,
        }
    }
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoReport {
    /// The device's name.
    pub device: String,
    /// Number of kernels, including those of the graph.
    pub kernels: u64,
    /// Memcpys between host and device.
    pub copies: u64,
    /// Memsets.
    pub sets: u64,
    /// Graph launches.
    pub graphs: u64,
    /// Results that were compared with the CPU's. All were correct.
    pub checked: u64,
}

/// Runs the demo.
///
/// # Errors
///
/// If the driver reports an error, or if a result differs from the CPU's.
pub fn run(plan: DemoPlan) -> Result<DemoReport, Error> {
    let context = open(plan.device)?;
    let demo = Demo::new(&context, plan)?;
    let batch = demo.batch_memory(&context)?;
    let matrices = Matrices::new(&context, plan.side, &demo.work)?;

    // The graph computes total = total + batch + batch per element, through a third buffer.
    let graph = demo.work.capture(|stream| {
        demo.kernels.fill(&batch.spare, 0.0, stream)?;
        demo.kernels.saxpy(&batch.spare, &batch.input, 2.0, stream)?;
        demo.kernels
            .vector_add(&batch.total, &batch.total, &batch.spare, stream)
    })?;

    let (ready, multiplied) = (context.event()?, context.event()?);
    for _ in 0..plan.steps {
        batch.total.fill(0.0, &demo.work)?;
        batch.sum.fill(0.0, &demo.work)?;
        batch.input.copy_from_host(&batch.host, &demo.work)?;
        demo.kernels
            .saxpy(&batch.total, &batch.input, FACTOR, &demo.work)?;
        ready.record(&demo.work)?;

        demo.side_work.wait(&ready)?;
        matrices.multiply(&demo.kernels, plan.side, &demo.side_work)?;
        multiplied.record(&demo.side_work)?;

        for _ in 0..GRAPH_LAUNCHES {
            graph.launch(&demo.work)?;
        }
        demo.kernels.accumulate(&batch.sum, &batch.total, &demo.work)?;
        batch.total.copy_to_host(&batch.result, &demo.work)?;
        demo.work.wait(&multiplied)?;
        demo.work.synchronize()?;
    }
    multiplied.synchronize()?;

    let checked = if plan.steps == 0 {
        0
    } else {
        batch.check(&demo)? + matrices.check(plan.side, &demo.work)?
    };
    let steps = u64::from(plan.steps);
    let graphs = steps * u64::from(GRAPH_LAUNCHES);
    Ok(DemoReport {
        device: context.device().name()?,
        kernels: steps * 3 + graphs * u64::from(GRAPH_KERNELS),
        copies: steps * 2 + Matrices::COPIES + Batch::CHECK_COPIES,
        sets: steps * 2,
        graphs,
        checked,
    })
}

struct Demo {
    kernels: Kernels,
    work: Stream,
    side_work: Stream,
    plan: DemoPlan,
}

/// The data of the first stream.
struct Batch {
    /// The input on the host.
    host: HostMemory<f32>,
    /// The output on the host.
    result: HostMemory<f32>,
    input: DeviceMemory<f32>,
    spare: DeviceMemory<f32>,
    total: DeviceMemory<f32>,
    sum: DeviceMemory<f32>,
}

impl Demo {
    fn new(context: &Context, plan: DemoPlan) -> Result<Self, Error> {
        Ok(Self {
            kernels: Kernels::load(context)?,
            work: context.stream()?,
            side_work: context.stream()?,
            plan,
        })
    }

    fn batch_memory(&self, context: &Context) -> Result<Batch, Error> {
        let elements = self.plan.elements as usize;
        let mut host = context.host_memory(elements)?;
        host.write(&batch_values(elements))?;
        Ok(Batch {
            host,
            result: context.host_memory(elements)?,
            input: context.memory(elements)?,
            spare: context.memory(elements)?,
            total: context.memory(elements)?,
            sum: context.memory(1)?,
        })
    }
}

/// Small integers, most of them zero. Sums of 4 Mi of them are exact in any order.
fn batch_values(elements: usize) -> Vec<f32> {
    let value = |at: usize| {
        if at.is_multiple_of(16) {
            (at / 16 % 4) as f32
        } else {
            0.0
        }
    };
    (0..elements).map(value).collect()
}

impl Batch {
    /// Memcpys of the check: the sum.
    const CHECK_COPIES: u64 = 1;

    /// Compares the results with the CPU's.
    fn check(&self, demo: &Demo) -> Result<u64, Error> {
        let added = FACTOR + 2.0 * GRAPH_LAUNCHES as f32;
        let input = batch_values(demo.plan.elements as usize);
        let expected: Vec<f32> = input.iter().map(|value| value * added).collect();
        compare("the batch", &self.result.read()?, &expected)?;
        let sum: f32 = expected.iter().sum();
        compare("the sum", &self.sum.read(&demo.work)?, &[sum])?;
        Ok(expected.len() as u64 + 1)
    }
}

/// The data of the second stream.
struct Matrices {
    a: DeviceMemory<f32>,
    b: DeviceMemory<f32>,
    c: DeviceMemory<f32>,
    a_values: Vec<f32>,
    b_values: Vec<f32>,
}

impl Matrices {
    /// Memcpys for setup and checks.
    const COPIES: u64 = 3;

    fn new(context: &Context, side: u32, stream: &Stream) -> Result<Self, Error> {
        let elements = side as usize * side as usize;
        let a_values: Vec<f32> = (0..elements).map(|at| (at * 7 % 31) as f32 / 31.0).collect();
        let b_values: Vec<f32> = (0..elements)
            .map(|at| (at * 11 % 29) as f32 / 29.0 - 0.5)
            .collect();
        let upload = |values: &[f32]| -> Result<DeviceMemory<f32>, Error> {
            let mut host = context.host_memory(elements)?;
            host.write(values)?;
            let device = context.memory(elements)?;
            device.copy_from_host(&host, stream)?;
            Ok(device)
        };
        Ok(Self {
            a: upload(&a_values)?,
            b: upload(&b_values)?,
            c: context.memory(elements)?,
            a_values,
            b_values,
        })
    }

    fn multiply(&self, kernels: &Kernels, side: u32, stream: &Stream) -> Result<(), Error> {
        Ok(kernels.matmul(&self.c, &self.a, &self.b, side, stream)?)
    }

    /// The kernel adds in the order of this loop, so the results must be bit-identical.
    fn check(&self, side: u32, stream: &Stream) -> Result<u64, Error> {
        let side = side as usize;
        let rows = CHECKED_ROWS.min(side);
        let found = self.c.read(stream)?;
        let expected: Vec<f32> = (0..rows * side)
            .map(|at| {
                let (row, column) = (at / side, at % side);
                (0..side).fold(0.0f32, |sum, k| {
                    self.a_values[row * side + k].mul_add(self.b_values[k * side + column], sum)
                })
            })
            .collect();
        compare("the product", &found[..rows * side], &expected)?;
        Ok(expected.len() as u64)
    }
}

fn compare(what: &'static str, found: &[f32], expected: &[f32]) -> Result<(), Error> {
    let wrong = found.iter().zip(expected).position(|(a, b)| a != b);
    match wrong {
        None => Ok(()),
        Some(element) => Err(Error::WrongResult {
            what,
            element,
            found: found[element],
            expected: expected[element],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_result_names_its_place() {
        assert!(compare("x", &[1.0, 2.0], &[1.0, 2.0]).is_ok());
        let error = compare("the batch", &[1.0, 2.0], &[1.0, 3.0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "wrong result: the batch is 2 instead of 3 at element 1"
        );
    }

    #[test]
    fn what_a_batch_adds_up_to_is_exact() {
        let added = FACTOR + 2.0 * GRAPH_LAUNCHES as f32;
        for value in batch_values(64) {
            let by_steps = (0..GRAPH_LAUNCHES).fold(FACTOR * value, |sum, _| sum + 2.0 * value);
            assert_eq!(by_steps, value * added);
        }
        let all = batch_values(4 << 20);
        let (forward, backward): (f32, f32) = (
            all.iter().map(|value| value * added).sum(),
            all.iter().rev().map(|value| value * added).sum(),
        );
        assert_eq!(forward, backward);
        assert_eq!(f64::from(forward), 393_216.0 * f64::from(added));
    }
}
