//! A number for the content of memory, computed where it lies.

use crate::Error;
use crate::driver::{Argument, Context, DeviceMemory, FixedAddressMemory, Function, Launch, Stream};

const PTX: &str = include_str!("digest.ptx");

/// Threads of a block.
const ROW: u32 = 256;
/// Blocks of a launch, at most: they go on until all is read.
const MOST_BLOCKS: u64 = 4096;

/// Computes digests of the memory of a [`FixedAddressMemory`].
pub struct Digester {
    function: Function,
    context: Context,
}

/// Digests that were begun, in the order in which they were.
pub struct Digests {
    /// Two sums for each: of the memory itself, and of a copy of what is no whole word of it.
    sums: DeviceMemory<u32>,
    begun: usize,
    /// Copies that are still being read.
    copies: Vec<DeviceMemory<u32>>,
}

/// Words of the sums of one digest.
const SUM_WORDS: usize = 4;

/// The kernel reads words at multiples of this.
const WORD: u64 = 4;

impl Digester {
    /// Lets the driver compile and load it.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn load(context: &Context) -> Result<Self, Error> {
        Ok(Self {
            function: context.module(PTX)?.function(c"digest")?,
            context: context.clone(),
        })
    }

    /// Room for so many digests.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn room(&self, count: usize, stream: &Stream) -> Result<Digests, Error> {
        let sums = self.context.memory::<u32>(SUM_WORDS * count)?;
        sums.fill(0, stream)?;
        Ok(Digests {
            sums,
            begun: 0,
            copies: Vec::new(),
        })
    }

    /// Begins the digest of some memory.
    ///
    /// # Panics
    ///
    /// When there is no room for one more.
    ///
    /// # Errors
    ///
    /// When it is not memory of the stage, or what the driver says.
    pub fn begin(
        &self,
        stage: &FixedAddressMemory,
        address: u64,
        bytes: u64,
        digests: &mut Digests,
        stream: &Stream,
    ) -> Result<(), Error> {
        if !stage.holds(address, bytes) {
            return Err(Error::NoMemoryThere { address, bytes });
        }
        let place = SUM_WORDS * digests.begun;
        assert!(place < digests.sums.len(), "there is room for it");
        let to = digests.sums.address() + WORD * place as u64;
        digests.begun += 1;
        // A variable of device code can begin anywhere, and memory can end within a word: that is read from a copy.
        let words = if address.is_multiple_of(WORD) {
            bytes / WORD
        } else {
            0
        };
        self.add(address, words, to, stream)?;
        let (rest, left) = (address + words * WORD, bytes - words * WORD);
        if left == 0 {
            return Ok(());
        }
        let copy = self.context.memory::<u32>(left.div_ceil(WORD) as usize)?;
        copy.fill(0, stream)?;
        stage.copy_out(copy.address(), rest, left, stream)?;
        self.add(copy.address(), copy.len() as u64, to + 2 * WORD, stream)?;
        digests.copies.push(copy);
        Ok(())
    }

    /// Adds words to a sum.
    fn add(&self, address: u64, words: u64, to: u64, stream: &Stream) -> Result<(), Error> {
        if words == 0 {
            return Ok(());
        }
        let blocks = words.div_ceil(u64::from(ROW)).min(MOST_BLOCKS) as u32;
        let arguments = [Argument::U64(address), Argument::U64(words), Argument::U64(to)];
        // SAFETY: it takes these three, reads so many words of memory that our caller has checked or owns, and adds to
        // one word of the sums.
        unsafe {
            self.function
                .launch(Launch::line(blocks * ROW, ROW), arguments, stream)
        }
    }
}

impl Digests {
    /// Waits for all that were begun.
    ///
    /// # Errors
    ///
    /// What went wrong in the work before.
    pub fn read(self, stream: &Stream) -> Result<Vec<u64>, Error> {
        let words = self.sums.read(stream)?;
        let sums = words.as_chunks::<SUM_WORDS>().0.iter().take(self.begun);
        let join = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        Ok(sums
            .map(|[low, high, rest_low, rest_high]| {
                join(*low, *high).rotate_left(1) ^ join(*rest_low, *rest_high)
            })
            .collect())
    }
}

impl std::fmt::Debug for Digester {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digester")
    }
}

impl std::fmt::Debug for Digests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Digests")
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}
