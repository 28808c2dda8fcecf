//! Replays textures, surfaces and arrays.
//!
//! Kernels refer to a texture by its handle, which can also be in memory. So each texture gets its recorded handle.
//! An array has no address. The recording stores its bytes at an address that no memory has. For each array there is
//! linear memory next to it. Its contents are copied to the array before the calls, and back after them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_cuda::cupti::parameters::{
    ArrayShape, RESOURCE_ARRAY, RESOURCE_MIPMAPPED, Resource, TEXTURE_BYTES, VIEW_BYTES,
};
use tracesmith_cuda::driver::{Array, Context, InArray, Reading, Setting, Snapshot, Texture, TextureMake};
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::recording::{Command, Recording};
use crate::run::{Moved, Replay};

/// Size of a resource description.
const RESOURCE_BYTES: usize = 144;

/// Arrays and textures of a recording.
#[derive(Default)]
pub(crate) struct Textures {
    /// By the recorded address of their bytes.
    arrays: Vec<(u64, Array)>,
    /// By handle: the number of the defining command, and the texture.
    made: FxHashMap<u64, (u64, Texture)>,
}

impl Textures {
    /// Creates all arrays. Returns the addresses of the linear memory next to them.
    pub(crate) fn make_arrays(context: &Context, recording: &Recording) -> Result<(Self, Vec<Moved>), Error> {
        let mut textures = Self::default();
        let mut moved = Vec::new();
        let told = recording.commands.iter();
        for command in told.filter(|command| command.kind == CommandKind::ARRAY) {
            let failed = || Error::device(format!("creating the array of #{}", command.number));
            let (shape, levels) = shape(&command.parameters)
                .ok_or_else(|| Error::Missing("the shape of an array".to_owned()))?;
            let array = Array::new(context, &shape, levels).map_err(failed())?;
            if array.bytes() != command.bytes {
                return Err(Error::Obstacle(format!(
                    "the array of #{} has {} bytes on this GPU, but {} in the recording",
                    command.number,
                    array.bytes(),
                    command.bytes
                )));
            }
            let was = command.destination..command.destination.saturating_add(command.bytes);
            moved.push(Moved {
                was,
                is: array.address(),
            });
            textures.arrays.push((command.destination, array));
        }
        textures.arrays.sort_by_key(|(base, _)| *base);
        Ok((textures, moved))
    }

    /// Whether there are arrays.
    pub(crate) fn has_arrays(&self) -> bool {
        !self.arrays.is_empty()
    }

    /// Arrays by the recorded address of their bytes, with their sizes.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (u64, u64)> {
        self.arrays.iter().map(|(base, array)| (*base, array.bytes()))
    }

    /// The array that an address refers to, and the offset in it.
    pub(crate) fn place(&self, address: u64) -> Option<InArray<'_>> {
        let behind = self.arrays.partition_point(|(base, _)| *base <= address);
        let (base, array) = self.arrays.get(behind.checked_sub(1)?)?;
        let offset = address - base;
        (offset < array.bytes()).then_some(InArray { array, offset })
    }

    fn each(&self, what: impl Fn(&Array) -> Result<(), tracesmith_cuda::Error>) -> Result<(), Error> {
        let mut arrays = self.arrays.iter();
        arrays
            .try_for_each(|(_, array)| what(array))
            .map_err(Error::device("copying an array"))
    }
}

impl Replay<'_> {
    /// Sets all textures to their state before the call at a position. Each handle refers to its latest definition,
    /// or to its first one if there is none yet.
    pub(crate) fn restore_textures(&mut self, place: usize) -> Result<(), Error> {
        let mut told: BTreeMap<u64, &Command> = BTreeMap::new();
        for (at, command) in self.recording.commands.iter().enumerate() {
            if command.kind == CommandKind::TEXTURE {
                let known = told.entry(command.object).or_insert(command);
                if at < place {
                    *known = command;
                }
            }
        }
        // The driver assigns handles in order.
        let told = told.into_values();
        let makes: Vec<(u64, u64, TextureMake)> = told
            .map(|command| Ok((command.object, command.number, self.texture(command)?)))
            .collect::<Result<_, Error>>()?;
        for (handle, number, make) in makes {
            self.make_texture(handle, number, &make)?;
        }
        Ok(())
    }

    /// A copy of all memory, including arrays.
    pub(crate) fn copy_memory(&self) -> Result<Snapshot, Error> {
        self.get_arrays()?;
        self.stage.snapshot().map_err(Error::device("copying the memory"))
    }

    /// Restores memory from a copy.
    pub(crate) fn put_back(&self, copy: &Snapshot) -> Result<(), Error> {
        self.stage
            .restore(copy)
            .map_err(Error::device("copying the memory"))?;
        self.put_arrays()
    }

    /// Redefines a handle.
    pub(crate) fn redefine_texture(&mut self, command: &Command) -> Result<(), Error> {
        let is_there = self.textures.made.get(&command.object);
        if is_there.is_some_and(|(number, _)| *number == command.number) {
            return Ok(());
        }
        self.wait()?;
        let make = self.texture(command)?;
        self.make_texture(command.object, command.number, &make)
    }

    fn make_texture(&mut self, handle: u64, number: u64, make: &TextureMake) -> Result<(), Error> {
        let made = &mut self.textures.made;
        if made.get(&handle).is_some_and(|(other, _)| *other == number) {
            return Ok(());
        }
        made.remove(&handle);
        let texture =
            Texture::with_handle(&self.context, make, handle).map_err(Error::device("creating a texture"))?;
        made.insert(handle, (number, texture));
        Ok(())
    }

    /// Decodes the texture that a command defines.
    fn texture(&self, command: &Command) -> Result<TextureMake, Error> {
        let failed = || {
            Error::Missing(format!(
                "a valid description of the texture of #{}",
                command.number
            ))
        };
        let mut make = texture(&command.parameters).ok_or_else(failed)?;
        if command.value != 0 {
            make.reading = None;
        } else if make.reading.is_none() {
            return Err(failed());
        }
        let looked_at = make.resource.words[0];
        match make.resource.kind {
            RESOURCE_ARRAY | RESOURCE_MIPMAPPED => {
                let place = self.textures.place(looked_at).ok_or_else(failed)?;
                make = make.at_array(place.array);
            }
            _ => make.resource.words[0] = self.place(looked_at),
        }
        Ok(make)
    }

    /// Fills the linear memory next to arrays with the pattern.
    pub(crate) fn fill_arrays(&self) -> Result<(), Error> {
        for (_, array) in &self.textures.arrays {
            let set = Setting {
                address: array.address(),
                value: u32::from(self.pattern),
                width: 1,
                count: array.bytes(),
                rows: 1,
                pitch: 0,
            };
            self.stage
                .set(&set, None)
                .map_err(Error::device("filling memory"))?;
        }
        Ok(())
    }

    /// Copies the linear memory to the arrays.
    pub(crate) fn put_arrays(&self) -> Result<(), Error> {
        if self.textures.has_arrays() {
            self.textures.each(Array::put)?;
            self.wait()?;
        }
        Ok(())
    }

    /// Copies the arrays to the linear memory.
    pub(crate) fn get_arrays(&self) -> Result<(), Error> {
        if self.textures.has_arrays() {
            self.wait()?;
            self.textures.each(Array::get)?;
            self.wait()?;
        }
        Ok(())
    }
}

/// Decodes the shape of an array and the number of mip levels.
fn shape(words: &[u8]) -> Option<(ArrayShape, u32)> {
    let words: Vec<u64> = words
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    let [width, height, depth, format, channels, flags, levels] = words[..] else {
        return None;
    };
    let small = |word: u64| u32::try_from(word).ok();
    let shape = ArrayShape {
        width: width as usize,
        height: height as usize,
        depth: depth as usize,
        format: small(format)?,
        channels: small(channels)?,
        flags: small(flags)?,
        padding: 0,
    };
    Some((shape, small(levels)?))
}

/// Decodes the descriptions of a texture.
fn texture(bytes: &[u8]) -> Option<TextureMake> {
    let (resource, behind) = bytes.split_at_checked(RESOURCE_BYTES)?;
    let word = |at: usize| {
        resource[at..]
            .first_chunk::<8>()
            .map(|word| u64::from_le_bytes(*word))
    };
    let mut words = [0; 16];
    for (index, place) in words.iter_mut().enumerate() {
        *place = word(8 + 8 * index)?;
    }
    let resource = Resource {
        kind: word(0)? as u32,
        padding: 0,
        words,
        flags: word(RESOURCE_BYTES - 8)? as u32,
        padding_behind: 0,
    };
    let reading = match behind.split_first_chunk::<TEXTURE_BYTES>() {
        None if behind.is_empty() => None,
        None => return None,
        Some((how, [])) => Some(Reading {
            how: *how,
            view: None,
        }),
        Some((how, view)) => Some(Reading {
            how: *how,
            view: Some(*view.first_chunk::<VIEW_BYTES>()?),
        }),
    };
    Some(TextureMake { resource, reading })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_or_refused_by_their_length() {
        let mut bytes = vec![0; RESOURCE_BYTES];
        bytes[0] = 2;
        bytes[8] = 7;
        bytes[136] = 9;
        let surface = texture(&bytes).unwrap();
        assert_eq!((surface.resource.kind, surface.resource.words[0]), (2, 7));
        assert_eq!((surface.resource.flags, surface.reading), (9, None));
        bytes.extend([1; TEXTURE_BYTES]);
        assert!(texture(&bytes).unwrap().reading.unwrap().view.is_none());
        bytes.extend([2; VIEW_BYTES]);
        assert!(texture(&bytes).unwrap().reading.unwrap().view.is_some());
        for cut in [0, 100, RESOURCE_BYTES + 1, RESOURCE_BYTES + TEXTURE_BYTES + 1] {
            assert!(texture(&bytes[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn shapes_have_seven_words() {
        let words: Vec<u8> = [8_u64, 4, 0, 0x20, 1, 0, 0]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let (shape_, levels) = shape(&words).unwrap();
        assert_eq!((shape_.bytes(), levels), (Some(128), 0));
        assert!(shape(&words[8..]).is_none());
        assert!(shape(&[0xFF; 56]).is_none());
    }
}
