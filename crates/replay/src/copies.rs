//! Replays memcpys. The recording contains the bytes that a program copied from its host memory.

use tracesmith_cuda::cupti::parameters::{Planes, SIDE_UNIFIED, Side};
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::recording::Command;
use crate::run::{Replay, host_slice, missing_content};

/// Alignment of the bytes of a memcpy in the staging buffer.
const ALIGNMENT: usize = 256;

/// The maximum size of the staging buffer.
const MOST_BROUGHT: usize = 4 << 30;

impl Replay<'_> {
    /// Copies host data of memcpys to pinned memory in advance, so that streams can copy it asynchronously.
    pub(crate) fn stage_host_copies(&mut self) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let numbers: Vec<u64> = self
            .recording
            .commands
            .iter()
            .filter(|command| matches!(command.kind, CommandKind::COPY | CommandKind::COPY_PLANES))
            .map(|command| command.number)
            .collect();
        for number in numbers {
            let Some(pieces) = self.recording.brought.get(&number).cloned() else {
                continue;
            };
            let begin = bytes.len().next_multiple_of(ALIGNMENT);
            bytes.resize(begin, 0);
            for piece in pieces {
                let from = bytes.len();
                let content = self.recording.store.piece(piece.hash)?;
                if content.len() as u64 != piece.bytes {
                    return Err(missing_content(&piece));
                }
                bytes.extend_from_slice(content);
                self.to_replay_addresses(piece.address, &mut bytes[from..]);
            }
            if bytes.len() > MOST_BROUGHT {
                // The remaining data is copied when its stream reaches the call.
                bytes.truncate(begin);
                break;
            }
            self.brought_at.insert(number, begin as u64);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let words: Vec<u32> = bytes
            .chunks(4)
            .map(|chunk| {
                let mut word = [0; 4];
                word[..chunk.len()].copy_from_slice(chunk);
                u32::from_ne_bytes(word)
            })
            .collect();
        let failed = || Error::device("allocating host memory");
        let mut memory = self.context.host_memory(words.len()).map_err(failed())?;
        memory.write(&words).map_err(failed())?;
        self.brought = Some(memory);
        Ok(())
    }

    /// Copies the host data of a call to its destination, synchronously.
    pub(crate) fn bring(&mut self, command: &Command) -> Result<(), Error> {
        let pieces = self.recording.brought.get(&command.number).cloned();
        pieces
            .unwrap_or_default()
            .iter()
            .try_for_each(|piece| self.write(piece))
    }

    pub(crate) fn copy(&mut self, command: &Command) -> Result<(), Error> {
        let (to, from, bytes) = (
            self.place(command.destination),
            self.place(command.source),
            command.bytes,
        );
        let is_brought = self.recording.brought.contains_key(&command.number);
        let failed = || Error::device("copying");
        if is_brought
            && self.stage.holds(to, bytes)
            && let (Some(host), Some(offset)) = (&self.brought, self.brought_at.get(&command.number))
        {
            let stream = self.stream(command);
            return self
                .stage
                .bring(to, host, *offset, bytes, stream)
                .map_err(failed());
        }
        if is_brought {
            self.wait_for(command.stream)?;
            return self.bring(command);
        }
        if self.stage.holds(to, bytes) && self.stage.holds(from, bytes) {
            return self
                .stage
                .copy(to, from, bytes, self.stream(command))
                .map_err(failed());
        }
        if !self.stage.holds(from, bytes) {
            return self.copy_from_host(command);
        }
        // Device to host. Only pinned memory of the recording is read later.
        let Some(to) = host_slice(&mut self.host, command.destination, bytes).map(|to| to.len()) else {
            return Ok(());
        };
        self.wait_for(command.stream)?;
        let mut content = vec![0; to];
        self.stage.read(from, &mut content).map_err(failed())?;
        if let Some(to) = host_slice(&mut self.host, command.destination, bytes) {
            to.copy_from_slice(&content);
        }
        Ok(())
    }

    /// Replays a memcpy from host memory whose bytes are not part of the call. The recording must contain the source,
    /// or the destination must be unknown to it.
    fn copy_from_host(&mut self, command: &Command) -> Result<(), Error> {
        let (source, bytes) = (command.source, command.bytes);
        let to = self.place(command.destination);
        let is_looked_at = self.stage.holds(to, 1) || self.recording.buffer(command.destination).is_some();
        if !is_looked_at || bytes == 0 {
            return Ok(());
        }
        self.wait_for(command.stream)?;
        let content = host_slice(&mut self.host, source, bytes).map(|content| content.to_vec());
        let Some(content) = content else {
            return Err(missing_bytes(command));
        };
        if let Some(to) = host_slice(&mut self.host, command.destination, bytes) {
            to.copy_from_slice(&content);
            return Ok(());
        }
        self.stage.write(to, &content).map_err(Error::device("copying"))
    }

    pub(crate) fn copy_planes(&mut self, command: &Command) -> Result<(), Error> {
        let mut planes = planes(&command.parameters)
            .ok_or_else(|| Error::Missing("the sizes of a 2D or 3D memcpy".to_owned()))?;
        let arrays =
            [planes.source.device, planes.destination.device].map(|address| self.textures.place(address));
        for side in [&mut planes.source, &mut planes.destination] {
            side.device = self.place(side.device);
        }
        let brought = match (&self.brought, self.brought_at.get(&command.number)) {
            (Some(host), Some(offset)) => Some((host, *offset)),
            _ => None,
        };
        if brought.is_none() && self.recording.brought.contains_key(&command.number) {
            return Err(Error::Obstacle(format!(
                "#{}: its memcpys read more than {MOST_BROUGHT} bytes of host memory",
                command.number
            )));
        }
        if !self.stage.holds(planes.destination.device, 1) {
            // The destination is host memory that no other call uses.
            return Ok(());
        }
        if brought.is_none() && arrays[0].is_none() && !self.stage.holds(planes.source.device, 1) {
            return Err(missing_bytes(command));
        }
        self.stage
            .copy_planes(&planes, brought, arrays, self.stream(command))
            .map_err(Error::device("copying 2D or 3D memory"))
    }
}

fn missing_bytes(command: &Command) -> Error {
    Error::Missing(format!(
        "the host memory that #{} copies from {:#x}",
        command.number, command.source
    ))
}

/// Decodes a 2D or 3D memcpy.
pub(crate) fn planes(words: &[u8]) -> Option<Planes> {
    let words: Vec<usize> = words
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word) as usize)
        .collect();
    let [
        from,
        from_pitch,
        from_height,
        to,
        to_pitch,
        to_height,
        width,
        height,
        depth,
    ] = words[..]
    else {
        return None;
    };
    let side = |address: usize, pitch, height| Side {
        kind: u64::from(SIDE_UNIFIED),
        device: address as u64,
        pitch,
        height,
        ..Side::default()
    };
    Some(Planes {
        source: side(from, from_pitch, from_height),
        destination: side(to, to_pitch, to_height),
        width,
        height,
        depth,
    })
}
