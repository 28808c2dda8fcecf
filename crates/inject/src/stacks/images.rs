//! The program and its libraries, as the unwinder sees them.
//!
//! The unwinder reads a list that never changes. When another library is found, a
//! new list is made. The old one is never freed: an unwind may still use it.

use std::{
    collections::HashSet,
    sync::{
        Mutex, MutexGuard, TryLockError,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
};

use tracesmith_stacks::{Image, Images, program_file};
use tracesmith_wire::record;

use crate::{clock, guard::lock, sink::Sink};

/// Lists that are made without restraint in the life of a process. Beyond these a
/// program that loads and unloads without end is learned at pulses only, and less
/// and less often: lists are never freed.
const MOST_LISTS: u32 = 4096;

#[derive(Default)]
pub(super) struct KnownImages {
    /// Null, or a list that is never freed.
    list: AtomicPtr<Images>,
    /// Held while the list is changed.
    reported: Mutex<ReportedImages>,
    /// Lists that were made.
    made: AtomicU32,
    /// Pulses that learn nothing before the next that does.
    rests: AtomicU32,
}

/// Where the images lie in our memory that were told in this window: lists hold
/// them, so they are never freed either.
#[derive(Default)]
struct ReportedImages(HashSet<usize>);

impl KnownImages {
    /// A window begins: finds and sends all images.
    pub(super) fn begin(&self, sink: &Sink) {
        let mut reported = lock(&self.reported);
        reported.0.clear();
        self.publish(Images::list(self.list()), &mut reported, sink);
    }

    /// Finds what was loaded and unloaded since the last call. Returns whether there
    /// was anything.
    pub(super) fn learn(&self, sink: &Sink) -> bool {
        let rests = self.rests.load(Ordering::Relaxed);
        if rests > 0 {
            self.rests.store(rests - 1, Ordering::Relaxed);
            return false;
        }
        let mut reported = lock(&self.reported);
        self.publish(Images::list(self.list()), &mut reported, sink)
    }

    /// The list.
    #[inline]
    pub(super) fn list(&self) -> Option<&'static Images> {
        // SAFETY: null, or a box that was leaked.
        unsafe { self.list.load(Ordering::Acquire).as_ref() }
    }

    /// Adds the image at an address of the calling thread's stack that is in no known
    /// image. None if there is nothing to add.
    #[cold]
    pub(super) fn add_image_at(&self, stranger: u64, sink: &Sink) -> Option<&'static Images> {
        let mut reported = self.try_reported()?;
        if self.list()?.find(stranger).is_none() {
            self.publish(self.with_image_at(stranger)?, &mut reported, sink);
        }
        self.list()
    }

    /// Reads an image of a new stack again if another image is at its address now.
    /// None if all images are the known ones.
    #[cold]
    pub(super) fn refresh_replaced_image(&self, frames: &[u64], sink: &Sink) -> Option<&'static Images> {
        let replaced = self.list()?.first_replaced(frames)?;
        let mut reported = self.try_reported()?;
        self.publish(self.with_image_at(replaced)?, &mut reported, sink);
        self.list()
    }

    /// The list with the image at an address.
    fn with_image_at(&self, address: u64) -> Option<Images> {
        if self.made.load(Ordering::Relaxed) >= MOST_LISTS {
            return None;
        }
        self.list()?.with_image_at(address)
    }

    /// None when someone else is learning just now: a launch does not wait.
    fn try_reported(&self) -> Option<MutexGuard<'_, ReportedImages>> {
        match self.reported.try_lock() {
            Ok(reported) => Some(reported),
            Err(TryLockError::Poisoned(reported)) => Some(reported.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether the list is another one now.
    fn publish(&self, images: Images, reported: &mut ReportedImages, sink: &Sink) -> bool {
        let known = self.list().filter(|known| known.is_same_as(&images));
        let is_new = known.is_none();
        let images = known.unwrap_or_else(|| {
            let leaked = Box::leak(Box::new(images));
            self.list.store(leaked, Ordering::Release);
            let made = self.made.fetch_add(1, Ordering::Relaxed);
            self.rests
                .store(made.saturating_sub(MOST_LISTS), Ordering::Relaxed);
            leaked
        });
        for image in images.iter() {
            let place = std::ptr::from_ref::<Image>(image) as usize;
            if reported.0.insert(place) {
                send(image, sink);
            }
        }
        is_new
    }
}

fn send(image: &Image, sink: &Sink) {
    let path = if image.path.is_empty() {
        // The loader has no name for the program itself.
        program_file(image.start)
    } else {
        image.path.to_bytes().to_vec()
    };
    let mut text = image.build_id.clone();
    text.extend_from_slice(&path);
    sink.define_with(
        &record::Image {
            address: image.start,
            size: image.end - image.start,
            file_offset: 0,
            bias: image.bias,
            time: clock::now(),
            build_id_bytes: u32::try_from(image.build_id.len()).unwrap_or(0),
            reserved: 0,
        },
        &text,
    );
}
