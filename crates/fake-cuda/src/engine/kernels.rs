//! The kernels whose work is known, done on the CPU one thread after the other. Each does what the PTX of the same name
//! in `targets/` does on a GPU: a thread works on the element that its global index names, if there is one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::memory::View;
use super::texture;
use crate::code::Code;
use crate::config::config;

/// What a launch hands to a kernel.
pub(crate) struct Arguments<'a> {
    /// The parameter block.
    pub(crate) bytes: &'a [u8],
    pub(crate) parameters: &'a [super::ptx::Parameter],
    /// Threads of the whole grid.
    pub(crate) threads: u64,
    /// The kernel itself.
    pub(crate) function: &'a super::module::Function,
}

/// A known kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Noop,
    Fill,
    FillBeyond,
    Saxpy,
    SaxpyNear,
    VectorAdd,
    Matmul,
    Accumulate,
    Digest,
    Delay,
    Bump,
    Follow,
    Look,
    Paint,
}

impl Body {
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "noop" => Self::Noop,
            "fill" => Self::Fill,
            "fill_beyond" => Self::FillBeyond,
            "saxpy" | "ncclDevKernel_AllReduce_Sum_f32" => Self::Saxpy,
            "saxpy_near" => Self::SaxpyNear,
            "vector_add" => Self::VectorAdd,
            "matmul" => Self::Matmul,
            "accumulate" => Self::Accumulate,
            "digest" => Self::Digest,
            "delay" => Self::Delay,
            "bump" => Self::Bump,
            "follow" => Self::Follow,
            "look" | "look_at_array" => Self::Look,
            "paint" => Self::Paint,
            _ => return None,
        })
    }

    pub(crate) fn run(self, arguments: &Arguments<'_>) -> Result<(), Code> {
        match self {
            Self::Noop => Ok(()),
            Self::Fill => fill(arguments, 0),
            Self::FillBeyond => fill(arguments, 1),
            Self::Saxpy => saxpy(arguments, 0),
            Self::SaxpyNear => saxpy(arguments, 3),
            Self::VectorAdd => vector_add(arguments),
            Self::Matmul => matmul(arguments),
            Self::Accumulate => accumulate(arguments),
            Self::Digest => digest(arguments),
            Self::Delay => delay(arguments),
            Self::Bump => bump(arguments),
            Self::Follow => follow(arguments),
            Self::Look => look(arguments),
            Self::Paint => paint(arguments),
        }
    }
}

impl Arguments<'_> {
    fn bytes_of<const N: usize>(&self, index: usize) -> Result<[u8; N], Code> {
        let parameter = self.parameters.get(index).ok_or(Code::INVALID_VALUE)?;
        let bytes = self.bytes.get(parameter.offset..parameter.offset + N);
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(Code::INVALID_VALUE)
    }

    fn number(&self, index: usize) -> Result<u32, Code> {
        self.bytes_of(index).map(u32::from_le_bytes)
    }

    fn float(&self, index: usize) -> Result<f32, Code> {
        self.bytes_of(index).map(f32::from_le_bytes)
    }

    fn view<T: Copy>(&self, index: usize, count: usize) -> Result<View<T>, Code> {
        View::new(u64::from_le_bytes(self.bytes_of(index)?), count)
    }

    /// How many of `count` elements have a thread.
    fn covered(&self, count: u64) -> usize {
        count.min(self.threads) as usize
    }
}

/// Fills the given number of words, and `beyond` more.
fn fill(arguments: &Arguments<'_>, beyond: usize) -> Result<(), Code> {
    let (value, count) = (
        arguments.number(1)?,
        arguments.covered(arguments.number(2)?.into()) + beyond,
    );
    let target = arguments.view::<u32>(0, count)?;
    (0..count).for_each(|index| target.set(index, value));
    Ok(())
}

/// Sums that are `off` units in the last place beside it, as those of a kernel that was written anew may be.
fn saxpy(arguments: &Arguments<'_>, off: u32) -> Result<(), Code> {
    let (factor, count) = (
        arguments.float(2)?,
        arguments.covered(arguments.number(3)?.into()),
    );
    let y = arguments.view::<f32>(0, count)?;
    let x = arguments.view::<f32>(1, count)?;
    let sum = |index| factor.mul_add(x.get(index), y.get(index));
    (0..count).for_each(|index| y.set(index, f32::from_bits(sum(index).to_bits() + off)));
    Ok(())
}

fn vector_add(arguments: &Arguments<'_>) -> Result<(), Code> {
    let count = arguments.covered(arguments.number(3)?.into());
    let c = arguments.view::<f32>(0, count)?;
    let a = arguments.view::<f32>(1, count)?;
    let b = arguments.view::<f32>(2, count)?;
    (0..count).for_each(|index| c.set(index, a.get(index) + b.get(index)));
    Ok(())
}

fn matmul(arguments: &Arguments<'_>) -> Result<(), Code> {
    let n = arguments.number(3)? as usize;
    let covered = arguments.covered((n * n) as u64);
    let c = arguments.view::<f32>(0, covered)?;
    let a = arguments.view::<f32>(1, n * n)?;
    let b = arguments.view::<f32>(2, n * n)?;
    for index in 0..covered {
        let (row, column) = (index / n, index % n);
        let sum = (0..n).fold(0.0_f32, |sum, k| {
            a.get(row * n + k).mul_add(b.get(k * n + column), sum)
        });
        c.set(index, sum);
    }
    Ok(())
}

/// The sum of all words, each mixed with its place.
fn digest(arguments: &Arguments<'_>) -> Result<(), Code> {
    const MIXER: u64 = 0xD6E8_FEB8_6659_FD93;
    let count = u64::from_le_bytes(arguments.bytes_of(1)?) as usize;
    let from = arguments.view::<u32>(0, count)?;
    let to = arguments.view::<u64>(2, 1)?;
    let mixed = |index: usize| {
        let mut word = u64::from(from.get(index)) ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for _ in 0..2 {
            word = (word ^ word >> 32).wrapping_mul(MIXER);
        }
        word ^ word >> 32
    };
    let sum = (0..count).map(mixed).fold(to.get(0), u64::wrapping_add);
    to.set(0, sum);
    Ok(())
}

/// Hands out the variable `counter` and adds to it.
fn bump(arguments: &Arguments<'_>) -> Result<(), Code> {
    let counter = arguments.function.variable("counter")?;
    let counter = View::<u32>::new(counter.address, 1)?;
    let out = arguments.view::<u32>(0, 1)?;
    out.set(0, counter.get(0));
    counter.set(0, counter.get(0).wrapping_add(arguments.number(1)?));
    Ok(())
}

/// Copies words from where the first word of a table points.
fn follow(arguments: &Arguments<'_>) -> Result<(), Code> {
    let count = arguments.covered(arguments.number(2)?.into());
    let out = arguments.view::<u32>(0, count)?;
    let table = arguments.view::<u64>(1, 1)?;
    let from = View::<u32>::new(table.get(0), count)?;
    (0..count).for_each(|index| out.set(index, from.get(index)));
    Ok(())
}

/// What a texture or a surface looks at, as one line of numbers.
fn looked_at(arguments: &Arguments<'_>, index: usize, count: usize) -> Result<View<f32>, Code> {
    let texture = texture::find(u64::from_le_bytes(arguments.bytes_of(index)?))?;
    if texture.bytes < count as u64 * 4 {
        return Err(Code::ILLEGAL_ADDRESS);
    }
    View::new(texture.base, count)
}

/// Adds what a texture shows to each element of y.
fn look(arguments: &Arguments<'_>) -> Result<(), Code> {
    let count = arguments.covered(arguments.number(2)?.into());
    let y = arguments.view::<f32>(0, count)?;
    let texture = looked_at(arguments, 1, count)?;
    (0..count).for_each(|index| y.set(index, y.get(index) + texture.get(index)));
    Ok(())
}

/// Writes each element of y through a surface.
fn paint(arguments: &Arguments<'_>) -> Result<(), Code> {
    let count = arguments.covered(arguments.number(2)?.into());
    let surface = looked_at(arguments, 0, count)?;
    let y = arguments.view::<f32>(1, count)?;
    (0..count).for_each(|index| surface.set(index, y.get(index)));
    Ok(())
}

/// Lets time pass.
fn delay(arguments: &Arguments<'_>) -> Result<(), Code> {
    let nanoseconds = u64::from_le_bytes(arguments.bytes_of(0)?);
    std::thread::sleep(Duration::from_nanos(nanoseconds));
    Ok(())
}

/// Adds all of x to one sum, as atomic additions do: in no promised order. Here the order is that of the elements,
/// unless the tests asked for one that changes between launches.
fn accumulate(arguments: &Arguments<'_>) -> Result<(), Code> {
    static LAUNCHES: AtomicU64 = AtomicU64::new(1);
    let count = arguments.covered(arguments.number(2)?.into());
    let sum = arguments.view::<f32>(0, 1)?;
    let x = arguments.view::<f32>(1, count)?;
    let first = if config().racy_of > 0 && count > 0 {
        let seed = LAUNCHES.fetch_add(1, Ordering::Relaxed) + u64::from(std::process::id());
        let chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let is_other = chance.is_multiple_of(config().racy_of);
        usize::from(is_other) * (chance as usize % count)
    } else {
        0
    };
    for index in 0..count {
        sum.set(0, sum.get(0) + x.get((first + index) % count));
    }
    Ok(())
}
