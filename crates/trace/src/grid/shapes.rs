//! Shapes: what slices have in common. A trace has few of them, and each is named once.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::track::{TrackKind, categories};
use crate::analysis::short_name;
use crate::model::event::EventName;
use crate::model::trace::Trace;
use crate::overview::ActivityKind;
use crate::reconstruct::CallClass;

/// What slices of one name have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The name, as long as it is.
    pub name: String,
    /// The name of a kernel without what makes it long; the name of everything else.
    pub short_name: String,
    /// What it is. `None` for slices that were added to a grid, such as idle time.
    pub kind: Option<ActivityKind>,
    /// Its place in the list of categories of its track.
    pub category: u8,
}

impl Shape {
    /// That of work of a stream.
    pub(super) fn of_op(name: &str, short_name: String, kind: ActivityKind) -> Self {
        Shape {
            name: name.to_owned(),
            short_name,
            kind: Some(kind),
            category: category(TrackKind::Stream, kind, name),
        }
    }
}

/// A name, what it is and where: what distinguishes shapes while blocks are read.
type Key = (EventName, ActivityKind, TrackKind);

/// Gives numbers to shapes while several threads read blocks. The numbers depend on who comes first.
#[derive(Default)]
pub(super) struct Numbers(Mutex<FxHashMap<Key, u32>>);

impl Numbers {
    /// The numbers of the shapes of a block.
    pub(super) fn of(&self, keys: impl Iterator<Item = Key>) -> Vec<u32> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = keys.map(|key| {
            let next = known.len() as u32;
            *known.entry(key).or_insert(next)
        });
        numbers.collect()
    }

    /// The table of shapes, and for each number the place there. `seen` has the numbers in the order of the file: the
    /// table depends on nothing else. Work of devices comes first, then calls, since the least numbers are drawn
    /// best. What an earlier table has stays where it is.
    pub(super) fn table(
        self,
        trace: &Trace,
        seen: impl Iterator<Item = u32>,
        earlier: &[Shape],
    ) -> (Vec<Shape>, Vec<u32>) {
        let known = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut keys: Vec<Option<Key>> = vec![None; known.len()];
        for (key, number) in known {
            keys[number as usize] = Some(key);
        }
        let mut in_order: Vec<(Rank, u32, Key)> = Vec::with_capacity(keys.len());
        for number in seen {
            if let Some(key) = keys[number as usize].take() {
                in_order.push((rank(key.2), number, key));
            }
        }
        in_order.sort_by_key(|(rank, ..)| *rank);
        let mut places = vec![0; keys.len()];
        let mut shapes: Vec<Shape> = earlier.to_vec();
        // Different ids can be of one text.
        let mut by_text: FxHashMap<(&str, ActivityKind, u8), u32> = FxHashMap::default();
        for (shape, place) in earlier.iter().zip(0..) {
            if let Some(kind) = shape.kind {
                by_text.insert((&shape.name, kind, shape.category), place);
            }
        }
        for (_, number, (name, kind, track)) in in_order {
            let text = match name {
                EventName::Id(id) => trace.string(id),
                EventName::Word(word) => word,
            };
            let category = category(track, kind, text);
            let next = shapes.len() as u32;
            let place = *by_text.entry((text, kind, category)).or_insert(next);
            if place == next {
                shapes.push(Shape {
                    name: text.to_owned(),
                    short_name: match kind {
                        ActivityKind::Kernel | ActivityKind::Communication => short_name(text),
                        _ => text.to_owned(),
                    },
                    kind: Some(kind),
                    category,
                });
            }
            places[number as usize] = place;
        }
        (shapes, places)
    }
}

type Rank = u8;

fn rank(track: TrackKind) -> Rank {
    match track {
        TrackKind::Calls => 1,
        TrackKind::Markers => 2,
        TrackKind::Host => 3,
        _ => 0,
    }
}

/// The place of a shape in the [categories] of its track.
fn category(track: TrackKind, kind: ActivityKind, name: &str) -> u8 {
    let category = match (track, kind) {
        (TrackKind::Calls, _) => match CallClass::of_function(name) {
            CallClass::Launch | CallClass::GraphLaunch => "launch",
            CallClass::Sync | CallClass::Lock => "wait",
            CallClass::Copy | CallClass::PeerCopy | CallClass::Set | CallClass::Allocation => "memory",
            _ => "call",
        },
        (TrackKind::Stream | TrackKind::Collectives, ActivityKind::Kernel) => "compute",
        (TrackKind::Stream | TrackKind::Collectives, ActivityKind::Communication) => "communication",
        (TrackKind::Stream | TrackKind::Collectives, ActivityKind::Copy | ActivityKind::Set) => "copy",
        (TrackKind::Stream | TrackKind::Collectives, _) => "other",
        // There is only one.
        _ => return 0,
    };
    let place = categories(track).iter().position(|known| *known == category);
    place.unwrap_or(0) as u8
}

/// What counting needs of each shape, in a byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Traits(Vec<u8>);

const NO_WORK: u8 = 1 << 7;

impl Traits {
    pub(super) fn of(shapes: &[Shape]) -> Self {
        let traits = shapes.iter().map(|shape| {
            let is_work = shape.kind.is_some_and(ActivityKind::is_work);
            shape.category | if is_work { 0 } else { NO_WORK }
        });
        Traits(traits.collect())
    }

    #[inline]
    pub(super) fn category(&self, shape: u32) -> u8 {
        self.0[shape as usize] & !NO_WORK
    }

    #[inline]
    pub(super) fn is_work(&self, shape: u32) -> bool {
        self.0[shape as usize] & NO_WORK == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.capacity()
    }
}
