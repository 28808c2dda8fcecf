//! How deep this thread's ranges are nested, by domain.

use std::cell::RefCell;

/// One domain of one thread.
struct Nesting {
    domain: u32,
    depth: i32,
    /// Depths at which a range began that opens the window.
    watched: Vec<i32>,
}

thread_local! {
    static NESTINGS: RefCell<Vec<Nesting>> = const { RefCell::new(Vec::new()) };
}

fn with<T>(domain: u32, otherwise: T, body: impl FnOnce(&mut Nesting) -> T) -> T {
    // A thread that is being torn down has no depths any more.
    NESTINGS
        .try_with(|nestings| {
            let mut nestings = nestings.try_borrow_mut().ok()?;
            let at = match nestings.iter().position(|nesting| nesting.domain == domain) {
                Some(at) => at,
                None => {
                    nestings.push(Nesting {
                        domain,
                        depth: 0,
                        watched: Vec::new(),
                    });
                    nestings.len() - 1
                }
            };
            Some(body(nestings.get_mut(at)?))
        })
        .ok()
        .flatten()
        .unwrap_or(otherwise)
}

/// A range is pushed; its level, counted from 0.
pub(super) fn push(domain: u32) -> i32 {
    with(domain, 0, |nesting| {
        nesting.depth += 1;
        nesting.depth - 1
    })
}

/// A range is popped; its level, or less than 0 when there was none.
pub(super) fn pop(domain: u32) -> i32 {
    with(domain, -1, |nesting| {
        if nesting.depth == 0 {
            return -1;
        }
        nesting.depth -= 1;
        nesting.depth
    })
}

/// The range that was just pushed is one that opens the window.
pub(super) fn watch(domain: u32) {
    with(domain, (), |nesting| nesting.watched.push(nesting.depth - 1));
}

/// Whether the range that was just popped was one that opened the window.
pub(super) fn was_watched(domain: u32) -> bool {
    with(domain, false, |nesting| {
        let watched = nesting.watched.last() == Some(&nesting.depth);
        if watched {
            nesting.watched.pop();
        }
        watched
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watched_range_is_found_at_its_own_pop() {
        assert_eq!(push(7), 0);
        assert_eq!(push(7), 1);
        watch(7);
        assert_eq!(push(7), 2);
        assert_eq!(pop(7), 2);
        assert!(!was_watched(7));
        assert_eq!(pop(7), 1);
        assert!(was_watched(7));
        assert_eq!(pop(7), 0);
        assert!(!was_watched(7));
        assert_eq!(pop(7), -1);
    }
}
