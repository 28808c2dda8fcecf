//! Bytes of memory in use, added up from what is taken and given back.

use rustc_hash::FxHashMap;

use super::item::Change;

/// Memory that is taken and not given back.
#[derive(Default)]
pub(super) struct LiveMemory {
    bytes: i64,
    /// How much each address stands for.
    sizes: FxHashMap<u64, u64>,
}

impl LiveMemory {
    /// Live bytes after a change. A release that does not say how much it gives back gives back what was taken there.
    pub(super) fn after(&mut self, change: Change) -> i64 {
        if change.taken {
            self.sizes.insert(change.address, change.bytes);
            self.bytes = self.bytes.saturating_add_unsigned(change.bytes);
        } else {
            let taken = self.sizes.remove(&change.address).unwrap_or(0);
            let given = if change.bytes > 0 { change.bytes } else { taken };
            self.bytes = self.bytes.saturating_sub_unsigned(given);
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_gives_back_what_was_taken_at_its_address() {
        let mut live = LiveMemory::default();
        let taken = |address, bytes| Change {
            address,
            bytes,
            taken: true,
        };
        let given = |address, bytes| Change {
            address,
            bytes,
            taken: false,
        };
        let changes = [
            taken(16, 100),
            taken(32, 50),
            given(16, 0),
            given(32, 50),
            given(48, 0),
        ];
        assert_eq!(changes.map(|change| live.after(change)), [100, 150, 50, 0, 0]);
    }
}
