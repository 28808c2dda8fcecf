//! The kernels that TraceSmith brings along, to try a GPU with.
//!
//! A launch is safe only where code and arguments are known together. They are
//! here: each kernel has a function that takes the memory it works on, and no
//! thread reaches beyond it.

mod delay;
mod digest;

pub use delay::Delayer;
pub use digest::{Digester, Digests};

use crate::Error;
use crate::driver::{Argument, Context, DeviceMemory, Function, Launch, Stream, Word};

/// The code, as text for the driver's compiler.
pub const PTX: &str = include_str!("kernels.ptx");

/// Threads of a block, where blocks are rows. `accumulate` in the text relies on it.
const ROW: u32 = 256;
/// Rows and columns of a block of `matmul`; the text relies on it.
const TILE: u32 = 16;

/// The kernels, loaded into a context.
pub struct Kernels {
    noop: Function,
    fill: Function,
    saxpy: Function,
    vector_add: Function,
    matmul: Function,
    accumulate: Function,
}

impl Kernels {
    /// Lets the driver compile and load them.
    ///
    /// # Errors
    ///
    /// What the driver says: 222 when it is older than CUDA 9.
    pub fn load(context: &Context) -> Result<Self, Error> {
        let module = context.module(PTX)?;
        Ok(Self {
            noop: module.function(c"noop")?,
            fill: module.function(c"fill")?,
            saxpy: module.function(c"saxpy")?,
            vector_add: module.function(c"vector_add")?,
            matmul: module.function(c"matmul")?,
            accumulate: module.function(c"accumulate")?,
        })
    }

    /// One thread that does nothing.
    ///
    /// # Errors
    ///
    /// What the driver says, here and in all others.
    pub fn noop(&self, stream: &Stream) -> Result<(), Error> {
        // SAFETY: it takes nothing and touches nothing.
        unsafe { self.noop.launch(Launch::line(1, 1), [], stream) }
    }

    /// Every element of `to` becomes `value`.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn fill<T: Word>(&self, to: &DeviceMemory<T>, value: T, stream: &Stream) -> Result<(), Error> {
        let n = count(to.len());
        let arguments = [
            Argument::U64(to.address()),
            Argument::U32(value.bits()),
            Argument::U32(n),
        ];
        // SAFETY: it takes these three and writes to the first n elements only.
        unsafe { self.fill.launch(Launch::line(n, ROW), arguments, stream) }
    }

    /// `y = a·x + y`, element by element.
    ///
    /// # Panics
    ///
    /// When the lengths differ, here and in all others.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn saxpy(
        &self,
        y: &DeviceMemory<f32>,
        x: &DeviceMemory<f32>,
        a: f32,
        stream: &Stream,
    ) -> Result<(), Error> {
        assert_eq!(y.len(), x.len(), "both are as long");
        let n = count(y.len());
        let arguments = [
            Argument::U64(y.address()),
            Argument::U64(x.address()),
            Argument::F32(a),
            Argument::U32(n),
        ];
        // SAFETY: it takes these four and keeps to the first n elements of both.
        unsafe { self.saxpy.launch(Launch::line(n, ROW), arguments, stream) }
    }

    /// `c = a + b`, element by element.
    ///
    /// # Panics
    ///
    /// When the lengths differ.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn vector_add(
        &self,
        c: &DeviceMemory<f32>,
        a: &DeviceMemory<f32>,
        b: &DeviceMemory<f32>,
        stream: &Stream,
    ) -> Result<(), Error> {
        assert!(a.len() == c.len() && b.len() == c.len(), "all are as long");
        let n = count(c.len());
        let arguments = [
            Argument::U64(c.address()),
            Argument::U64(a.address()),
            Argument::U64(b.address()),
            Argument::U32(n),
        ];
        // SAFETY: it takes these four and keeps to the first n elements of all.
        unsafe { self.vector_add.launch(Launch::line(n, ROW), arguments, stream) }
    }

    /// `c = a × b`, matrices of `side` rows and columns, stored by rows.
    ///
    /// # Panics
    ///
    /// When one does not hold that many elements.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn matmul(
        &self,
        c: &DeviceMemory<f32>,
        a: &DeviceMemory<f32>,
        b: &DeviceMemory<f32>,
        side: u32,
        stream: &Stream,
    ) -> Result<(), Error> {
        let elements = side
            .checked_mul(side)
            .expect("a matrix has fewer than 2^32 elements") as usize;
        assert!(
            [c, a, b].iter().all(|matrix| matrix.len() == elements),
            "all are square and as large"
        );
        let blocks = side.div_ceil(TILE).max(1);
        let launch = Launch {
            grid: [blocks, blocks, 1],
            block: [TILE, TILE, 1],
            shared_bytes: 0,
        };
        let arguments = [
            Argument::U64(c.address()),
            Argument::U64(a.address()),
            Argument::U64(b.address()),
            Argument::U32(side),
        ];
        // SAFETY: it takes these four and keeps to side × side elements of all.
        unsafe { self.matmul.launch(launch, arguments, stream) }
    }

    /// Adds all of `x` to the first element of `sum`.
    ///
    /// # Panics
    ///
    /// When `sum` is empty.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn accumulate(
        &self,
        sum: &DeviceMemory<f32>,
        x: &DeviceMemory<f32>,
        stream: &Stream,
    ) -> Result<(), Error> {
        assert!(!sum.is_empty(), "there is an element to add to");
        let n = count(x.len());
        let arguments = [
            Argument::U64(sum.address()),
            Argument::U64(x.address()),
            Argument::U32(n),
        ];
        // SAFETY: it takes these three, reads the first n elements of x and adds to one of sum.
        unsafe { self.accumulate.launch(Launch::line(n, ROW), arguments, stream) }
    }
}

/// As many elements as one launch reaches: beyond 2^32 the rest is left alone.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_holds_every_kernel() {
        for name in ["noop", "fill", "saxpy", "vector_add", "matmul", "accumulate"] {
            assert!(PTX.contains(&format!(".entry {name}(")), "{name}");
        }
        assert!(PTX.is_ascii(), "the driver's compiler reads ASCII");
    }
}
