//! A number for the content of memory, computed where it lies.

use crate::Error;
use crate::driver::{Argument, Context, DeviceMemory, Function, Launch, Stage, Stream};

const PTX: &str = include_str!("digest.ptx");

/// Threads of a block.
const ROW: u32 = 256;
/// Blocks of a launch, at most: they go on until all is read.
const MOST_BLOCKS: u64 = 4096;

/// Computes digests of the memory of a [`Stage`].
pub struct Digester {
    function: Function,
    context: Context,
}

/// Digests that were begun, in the order in which they were.
pub struct Digests {
    sums: DeviceMemory<u32>,
    begun: usize,
}

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
        let sums = self.context.memory::<u32>(2 * count)?;
        sums.fill(0, stream)?;
        Ok(Digests { sums, begun: 0 })
    }

    /// Begins the digest of some memory; what is left behind the last whole word does not count.
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
        stage: &Stage,
        address: u64,
        bytes: u64,
        digests: &mut Digests,
        stream: &Stream,
    ) -> Result<(), Error> {
        let words = bytes / 4;
        if !stage.holds(address, words * 4) {
            return Err(Error::NoMemoryThere { address, bytes });
        }
        assert!(2 * digests.begun < digests.sums.len(), "there is room for it");
        let to = digests.sums.address() + 8 * digests.begun as u64;
        digests.begun += 1;
        if words == 0 {
            return Ok(());
        }
        let blocks = words.div_ceil(u64::from(ROW)).min(MOST_BLOCKS) as u32;
        let arguments = [Argument::U64(address), Argument::U64(words), Argument::U64(to)];
        // SAFETY: it takes these three, reads so many words of the stage, and adds to one word of the sums.
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
        let pairs = words.as_chunks::<2>().0.iter().take(self.begun);
        Ok(pairs
            .map(|[low, high]| u64::from(*high) << 32 | u64::from(*low))
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
