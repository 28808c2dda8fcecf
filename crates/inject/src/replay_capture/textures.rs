//! Textures and surfaces, and the arrays that they look at.
//!
//! A kernel knows a texture by its handle, a small number that may also lie in
//! memory. So all that there are when the first kernel of a window is launched
//! are told, and later ones when they are made. An array has no address: its
//! bytes stand in the capture where no memory is.

use std::collections::{BTreeMap, HashMap};

use tracesmith_cuda::{
    cupti::parameters::{
        ArrayShape, LevelPlace, MOST_LEVELS, MakeTexture, RESOURCE_ARRAY, RESOURCE_LINEAR,
        RESOURCE_MIPMAPPED, RESOURCE_PITCHED, Resource, SIDE_ARRAY, Side, TEXTURE_BYTES, VIEW_BYTES,
    },
    driver::{ArrayHandle, ArrayRows},
};
use tracesmith_wire::record::{Buffer, Command};

use super::{
    PIECE_BYTES, Since, State,
    calls::{Call, code},
    memory::{BEGIN, END, Reached},
};

/// `CU_MEMORYTYPE_ARRAY`, as the format has it.
const ARRAY_MEMORY: u8 = 4;

/// Where bytes of arrays stand: above all memory that a device can have, each so
/// far from the next.
const ARRAYS: u64 = 1 << 56;
const APART: u64 = 1 << 40;

/// Handles are small: a larger number is none.
const LARGEST_HANDLE: u64 = 1 << 20;

const UNKNOWN: &str = "a texture or a surface that was made before the recording";
pub(super) const ARRAY: &str = "an array whose format is not known";

/// How a texture or a surface was made.
#[derive(Clone)]
struct Texture {
    kind: TextureKind,
    resource: Resource,
    how: Option<[u8; TEXTURE_BYTES]>,
    view: Option<[u8; VIEW_BYTES]>,
    is_sent: bool,
}

/// The numbers are those of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextureKind {
    Texture = 0,
    Surface = 1,
}

/// An array that is reached.
#[derive(Clone)]
struct Array {
    /// Where its bytes stand.
    base: u64,
    bytes: u64,
    context: u32,
    levels: Vec<Level>,
}

#[derive(Clone, Copy)]
struct Level {
    handle: ArrayHandle,
    place: LevelPlace,
}

/// Where one end of a copy lies, and how its rows do.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) address: u64,
    pub(super) pitch: u64,
    pub(super) height: u64,
    pub(super) reached: Reached,
}

/// What the program has.
#[derive(Default)]
pub(super) struct Textures {
    live: BTreeMap<u64, Texture>,
    /// By their handles.
    arrays: HashMap<u64, Array>,
    /// How many arrays were reached.
    count: u64,
    /// Whether some of those that live may not be told.
    mark_reported: bool,
}

impl Textures {
    /// A window begins, in which nothing is told yet.
    pub(super) fn begin(&mut self) {
        self.arrays.clear();
        for texture in self.live.values_mut() {
            texture.is_sent = false;
        }
        self.mark_reported = true;
    }

    /// The program destroys a texture or a surface.
    pub(super) fn dropped(&mut self, handle: u64) {
        self.live.remove(&handle);
    }

    /// The program frees an array: nothing may read it any more.
    pub(super) fn array_dropped(&mut self, handle: u64) {
        self.arrays.remove(&handle);
        self.live.retain(|_, texture| {
            !matches!(texture.resource.kind, RESOURCE_ARRAY | RESOURCE_MIPMAPPED)
                || texture.resource.words[0] != handle
        });
    }

    /// The array that a handle stands for, or the level of one, and where that
    /// begins.
    fn find(&self, handle: u64) -> Option<(&Array, Level)> {
        self.arrays.values().find_map(|array| {
            let levels = array.levels.iter();
            let own = levels.copied().find(|level| level.handle.0 == handle)?;
            Some((array, own))
        })
    }
}

impl State {
    /// The program has made a texture or a surface.
    ///
    /// # Safety
    ///
    /// Its descriptions are as the driver wants them.
    pub(super) unsafe fn made_texture(&mut self, call: &Call<'_>, made: &MakeTexture, kind: TextureKind) {
        // SAFETY: what the driver has written.
        let handle = unsafe { made.handle.as_ref() };
        // SAFETY: what the driver has read too; so below.
        let resource = unsafe { made.resource.as_ref() };
        let (Some(handle), Some(resource)) = (handle.copied(), resource.copied()) else {
            return;
        };
        let mut texture = Texture {
            kind,
            resource,
            how: None,
            view: None,
            is_sent: false,
        };
        // A surface has none of these.
        if kind == TextureKind::Texture {
            // SAFETY: as above.
            texture.how = unsafe { made.texture.as_ref() }.copied();
            // SAFETY: as above.
            texture.view = unsafe { made.view.as_ref() }.copied();
        }
        self.memory.textures.live.insert(handle, texture);
        self.memory.textures.mark_reported = true;
        if self.is_window {
            self.reach_textures(&self.command(call));
        }
    }

    /// A kernel is going to run: tells all textures and surfaces that are not
    /// told, with what they look at.
    pub(super) fn reach_textures(&mut self, command: &Command) {
        if !std::mem::take(&mut self.memory.textures.mark_reported) {
            return;
        }
        let live = self.memory.textures.live.iter();
        let news: Vec<(u64, Texture)> = live
            .filter(|(_, texture)| !texture.is_sent)
            .map(|(handle, texture)| (*handle, texture.clone()))
            .collect();
        for (handle, texture) in news {
            self.send_texture(command, handle, &texture);
            if let Some(texture) = self.memory.textures.live.get_mut(&handle) {
                texture.is_sent = true;
            }
        }
    }

    fn send_texture(&mut self, command: &Command, handle: u64, texture: &Texture) {
        let mut resource = texture.resource;
        let looked_at = resource.words[0];
        match resource.kind {
            RESOURCE_ARRAY | RESOURCE_MIPMAPPED => {
                let Some(base) = self.reach_array(command, looked_at, resource.kind) else {
                    self.refuse_texture(command, ARRAY);
                    return;
                };
                resource.words[0] = base;
            }
            RESOURCE_LINEAR | RESOURCE_PITCHED => {
                if self.mark_reachable(looked_at, command.context) == Reached::Nothing {
                    // Its memory is gone: no kernel can use it.
                    return;
                }
            }
            _ => {
                self.refuse_texture(command, "a texture of a kind that is not known");
                return;
            }
        }
        let mut parameters = Vec::new();
        parameters.extend(resource.kind.to_le_bytes());
        parameters.extend([0; 4]);
        parameters.extend(resource.words.iter().flat_map(|word| word.to_le_bytes()));
        parameters.extend(resource.flags.to_le_bytes());
        parameters.extend([0; 4]);
        parameters.extend(texture.how.iter().flatten());
        parameters.extend(texture.view.iter().flatten());
        let command = Command {
            number: self.commands + 1,
            kind: code::TEXTURE,
            object: handle,
            value: texture.kind as u64,
            ..plain(command)
        };
        self.send_command(command, &[], &parameters, &[], "");
    }

    fn refuse_texture(&mut self, command: &Command, why: &str) {
        let command = Command {
            number: self.commands + 1,
            kind: code::REFUSED,
            ..plain(command)
        };
        self.send_command(command, b"cuTexObjectCreate", &[], &[], why);
    }

    /// Where the bytes of an array stand, which are told the first time.
    fn reach_array(&mut self, command: &Command, handle: u64, kind: u32) -> Option<u64> {
        if let Some(array) = self.memory.textures.arrays.get(&handle) {
            return Some(array.base);
        }
        let whole = ArrayHandle(handle);
        let (first, count) = if kind == RESOURCE_MIPMAPPED {
            let levels = (0..MOST_LEVELS).take_while(|level| self.driver.level(whole, *level).is_some());
            (self.driver.level(whole, 0)?, levels.count() as u32)
        } else {
            (whole, 0)
        };
        let shape = self.driver.array(first)?;
        let (places, bytes) = shape.layout(count)?;
        let mut levels = Vec::new();
        for (level, place) in (0..).zip(places) {
            levels.push(Level {
                handle: if count == 0 {
                    whole
                } else {
                    self.driver.level(whole, level)?
                },
                place,
            });
        }
        let base = ARRAYS + self.memory.textures.count * APART;
        if bytes > APART {
            return None;
        }
        self.memory.textures.count += 1;
        let array = Array {
            base,
            bytes,
            context: command.context,
            levels,
        };
        self.memory.textures.arrays.insert(handle, array.clone());
        let told = Command {
            number: self.commands + 1,
            kind: code::ARRAY,
            destination: base,
            bytes,
            ..plain(command)
        };
        self.send_command(told, &[], &words(&shape, count), &[], "");
        self.synchronize();
        self.read_array(&array, BEGIN);
        Some(base)
    }

    /// Tells what an array holds.
    fn read_array(&mut self, array: &Array, moment: u8) {
        let buffer = Buffer {
            address: array.base,
            bytes: array.bytes,
            context: array.context,
            moment,
            memory: ARRAY_MEMORY,
            ..Buffer::default()
        };
        self.send(&buffer, &[]);
        for level in &array.levels {
            let LevelPlace {
                begin,
                extent: [row, rows, planes],
            } = level.place;
            let at_once = (PIECE_BYTES / row).clamp(1, rows);
            let starts =
                (0..planes).flat_map(|plane| (0..rows).step_by(at_once).map(move |first| (plane, first)));
            for (plane, first) in starts {
                let part = ArrayRows {
                    plane,
                    first,
                    count: at_once.min(rows - first),
                    bytes: row,
                };
                let mut content = vec![0; part.count * row];
                if !self.driver.read_array(level.handle, part, &mut content) {
                    self.mark_incomplete("an array of the program could not be read");
                    return;
                }
                let begin = array.base + begin + ((plane * rows + first) * row) as u64;
                for (index, piece) in content.chunks(PIECE_BYTES).enumerate() {
                    self.send_piece(begin + (index * PIECE_BYTES) as u64, moment, piece);
                }
                self.memory.read_bytes += content.len() as u64;
            }
        }
    }

    /// Tells what arrays hold at the end.
    pub(super) fn read_arrays_at_end(&mut self) {
        let mut arrays: Vec<Array> = self.memory.textures.arrays.values().cloned().collect();
        arrays.sort_by_key(|array| array.base);
        for array in arrays {
            self.read_array(&array, END);
        }
    }

    /// Where one end of a copy lies; none in an array that is not known.
    pub(super) fn end_of(&mut self, side: &Side, command: &Command) -> Option<End> {
        if side.kind as u32 != SIDE_ARRAY {
            let address = side.address()?;
            return Some(End {
                address,
                pitch: side.pitch as u64,
                height: side.height as u64,
                reached: self.mark_reachable(address, command.context),
            });
        }
        if self.memory.textures.find(side.array).is_none() {
            self.reach_array(command, side.array, RESOURCE_ARRAY)?;
        }
        let (array, level) = self.memory.textures.find(side.array)?;
        let LevelPlace {
            begin,
            extent: [row, rows, _],
        } = level.place;
        let offset = side.x + (side.z * rows + side.y) * row;
        Some(End {
            address: array.base + begin + offset as u64,
            pitch: row as u64,
            height: rows as u64,
            reached: Reached::Device,
        })
    }

    /// Why a launch with these parameters cannot be made again: it may be told a
    /// texture that nobody saw being made.
    pub(super) fn unknown_texture(&self, parameters: &[u8]) -> Option<&'static str> {
        if self.since == Since::Start {
            return None;
        }
        let live = &self.memory.textures.live;
        let is_unknown = |word: u64| {
            (1..=LARGEST_HANDLE).contains(&word) && !live.contains_key(&word) && self.driver.has_texture(word)
        };
        super::arguments::words(parameters)
            .any(is_unknown)
            .then_some(UNKNOWN)
    }
}

/// What a command has that only says what there is.
fn plain(command: &Command) -> Command {
    Command {
        time: command.time,
        context: command.context,
        correlation: command.correlation,
        thread: command.thread,
        ..Command::default()
    }
}

/// The shape of an array as the format has it.
fn words(shape: &ArrayShape, levels: u32) -> Vec<u8> {
    let sizes = [shape.width, shape.height, shape.depth].map(|size| size as u64);
    let others = [shape.format, shape.channels, shape.flags, levels].map(u64::from);
    sizes
        .into_iter()
        .chain(others)
        .flat_map(u64::to_le_bytes)
        .collect()
}
