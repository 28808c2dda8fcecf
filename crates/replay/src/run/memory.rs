//! The memory of a replay: its addresses, its initial contents, and reading it.

use std::ops::Range;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::recording::Piece;
use crate::run::Replay;

impl Replay<'_> {
    /// The current contents of memory.
    ///
    /// # Errors
    ///
    /// If the recording does not contain this memory, or if the driver reports an error.
    pub fn read(&mut self, address: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        self.wait()?;
        self.get_arrays()?;
        let now = self.place(address);
        let mut content = Vec::new();
        match host_slice(&mut self.host, address, bytes) {
            Some(host) => content.extend_from_slice(host),
            None => {
                let failed = Error::device("reading memory");
                if !self.stage.holds(now, bytes) {
                    return Err(failed(tracesmith_cuda::Error::NoMemoryThere { address, bytes }));
                }
                content.resize(bytes as usize, 0);
                self.stage.read(now, &mut content).map_err(failed)?;
            }
        }
        self.to_recorded_addresses(address, &mut content);
        Ok(content)
    }

    /// Checks that pinned host memory used by kernels is at its recorded address.
    pub(crate) fn check_host(&self) -> Result<(), Error> {
        let commands = self.recording.commands.iter();
        for command in commands.filter(|command| command.kind == CommandKind::LAUNCH) {
            for word in command.parameters.as_chunks::<8>().0 {
                let word = u64::from_le_bytes(*word);
                let is_host = self.plan.host.iter().any(|range| range.contains(&word));
                if is_host && !self.stage.holds(self.place(word), 1) {
                    return Err(Error::Obstacle(format!(
                        "#{} {}: its host memory cannot be mapped at {word:#x}",
                        command.number,
                        command.name()
                    )));
                }
            }
        }
        Ok(())
    }

    /// The current address of memory.
    pub(crate) fn place(&self, address: u64) -> u64 {
        let behind = self.moved.partition_point(|moved| moved.was.start <= address);
        let moved = behind.checked_sub(1).map(|before| &self.moved[before]);
        match moved.filter(|moved| moved.was.contains(&address)) {
            Some(moved) => moved.is + (address - moved.was.start),
            None => self.stage.place(address),
        }
    }

    /// Restores the memory of the window's start. Memory without recorded contents gets the fill pattern, so that no
    /// results of an earlier run remain.
    pub(crate) fn restore(&mut self) -> Result<(), Error> {
        self.wait()?;
        self.stage
            .fill(self.pattern)
            .map_err(Error::device("filling memory"))?;
        self.fill_arrays()?;
        self.host.clear();
        let is_own = |range: &&Range<u64>| {
            let now = self.place(range.start);
            !self.stage.holds(now, range.end - range.start)
        };
        let own: Vec<Range<u64>> = self.plan.host.iter().filter(is_own).cloned().collect();
        for range in own {
            let bytes = (range.end - range.start) as usize;
            self.host.insert(range.start, vec![self.pattern; bytes]);
        }
        let begin = std::mem::take(&mut self.recording.begin);
        let restored = begin
            .iter()
            .flat_map(|buffer| &buffer.pieces)
            .try_for_each(|piece| {
                self.progressed(piece.bytes);
                self.write(piece)
            });
        self.recording.begin = begin;
        restored?;
        self.restore_textures(0)?;
        self.put_arrays()
    }

    pub(crate) fn write(&mut self, piece: &Piece) -> Result<(), Error> {
        let address = self.place(piece.address);
        let has_moved_memory = self.has_moved_memory();
        let bytes = self.recording.store.piece(piece.hash)?;
        if bytes.len() as u64 != piece.bytes {
            return Err(missing_content(piece));
        }
        if let Some(host) = host_slice(&mut self.host, piece.address, piece.bytes) {
            host.copy_from_slice(bytes);
            return Ok(());
        }
        let failed = Error::device("restoring memory");
        if !has_moved_memory {
            return self.stage.write(address, bytes).map_err(failed);
        }
        let mut content = bytes.to_vec();
        self.to_replay_addresses(piece.address, &mut content);
        self.stage.write(address, &content).map_err(failed)
    }
}

/// The contents are shorter than the piece.
pub(crate) fn missing_content(piece: &Piece) -> Error {
    Error::Missing(format!("the complete contents of memory at {:#x}", piece.address))
}

/// The host memory that contains an address.
pub(crate) fn host_slice(host: &mut FxHashMap<u64, Vec<u8>>, address: u64, bytes: u64) -> Option<&mut [u8]> {
    host.iter_mut().find_map(|(base, memory)| {
        let offset = address.checked_sub(*base)? as usize;
        memory.get_mut(offset..offset.checked_add(bytes as usize)?)
    })
}
