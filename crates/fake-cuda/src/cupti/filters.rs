//! Which calls get records. The kinds DRIVER and RUNTIME mean all calls or none; since 12.5 a client can turn single
//! calls on and off, with or without the kind. Turning a kind on or off overrides what was said of single calls.
//! <https://docs.nvidia.com/cupti/api/group__CUPTI__ACTIVITY__API.html>

use std::sync::atomic::{AtomicU64, Ordering};

use super::subscriber::Domain;

const WORDS: usize = 16;

type Set = [AtomicU64; WORDS];

static DRIVER: Set = [const { AtomicU64::new(0) }; WORDS];
static RUNTIME: Set = [const { AtomicU64::new(0) }; WORDS];

/// What happens to the records of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Keep,
    Skip,
}

fn of(domain: Domain) -> &'static Set {
    match domain {
        Domain::Driver => &DRIVER,
        _ => &RUNTIME,
    }
}

/// Chooses for one call; false when there is no such call.
pub(crate) fn choose(domain: Domain, cbid: u32, choice: Choice) -> bool {
    let Some(word) = of(domain).get(cbid as usize / 64) else {
        return false;
    };
    match choice {
        Choice::Keep => word.fetch_or(1 << (cbid % 64), Ordering::AcqRel),
        Choice::Skip => word.fetch_and(!(1 << (cbid % 64)), Ordering::AcqRel),
    };
    true
}

/// Chooses for all calls.
pub(crate) fn choose_all(domain: Domain, choice: Choice) {
    for word in of(domain) {
        let bits = match choice {
            Choice::Keep => u64::MAX,
            Choice::Skip => 0,
        };
        word.store(bits, Ordering::Release);
    }
}

pub(crate) fn is_recorded(domain: Domain, cbid: u32) -> bool {
    of(domain)
        .get(cbid as usize / 64)
        .is_some_and(|word| word.load(Ordering::Relaxed) & (1 << (cbid % 64)) != 0)
}
