//! Putting in order what is nearly so.
//!
//! Records are stored as they were handed over: work as it ended, calls as they returned. Their starts are out of order by a
//! few rows, seldom by many. So short pieces are sorted by themselves, on all cores and within the caches, and joined where
//! neighbours overlap: the time grows with the number of rows, and rows are moved within their columns, since memory that
//! was never touched costs more than the sorting.

use rayon::prelude::*;

/// Rows that are sorted by themselves: what they are compared by stays in a core's own cache.
const PIECE: usize = 1 << 15;

/// Sorts by a key that no two have in common, or of which it does not matter.
pub(crate) fn sort_nearly_sorted<T, K>(items: &mut [T], key: impl Fn(&T) -> K + Sync)
where
    T: Send,
    K: Ord,
{
    items
        .par_chunks_mut(PIECE)
        .filter(|piece| !piece.is_sorted_by_key(&key))
        .for_each(|piece| piece.sort_unstable_by_key(&key));
    let mut may_move = items.len();
    for joint in (PIECE..items.len()).step_by(PIECE) {
        let (last, first) = (key(&items[joint - 1]), key(&items[joint]));
        if last <= first {
            continue;
        }
        let end = items.len().min(joint + PIECE);
        let from = items[..joint].partition_point(|item| key(item) <= first);
        let to = joint + items[joint..end].partition_point(|item| key(item) < last);
        if to - from > may_move {
            // Far from sorted: joining piece by piece would move the same rows again and again.
            items.par_sort_unstable_by_key(&key);
            return;
        }
        may_move -= to - from;
        // Two runs, which this kind of sort finds and merges.
        items[from..to].sort_by_key(&key);
    }
}

/// The order of `count` rows by a key: which row comes first, which second. `None` when they are in order already. Rows of
/// equal keys stay as they are.
pub(super) fn order_by<K: Ord>(count: usize, key: impl Fn(usize) -> K + Sync) -> Option<Vec<u32>> {
    if (0..count).is_sorted_by_key(&key) {
        return None;
    }
    let mut order: Vec<u32> = (0..count as u32).collect();
    sort_nearly_sorted(&mut order, |row| (key(*row as usize), *row));
    Some(order)
}

/// Brings rows into an order by swapping two of them at a time.
pub(super) fn put_in_order(mut order: Vec<u32>, mut swap: impl FnMut(usize, usize)) {
    for first in 0..order.len() {
        let mut at = first;
        loop {
            let next = std::mem::replace(&mut order[at], at as u32) as usize;
            if next == first {
                break;
            }
            swap(at, next);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scattered(count: usize, by: u64) -> Vec<u64> {
        let mut state = 7u64;
        (0..count as u64)
            .map(|at| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                at * 10 + (state >> 33) % (by * 10 + 1)
            })
            .collect()
    }

    #[test]
    fn what_is_nearly_sorted_and_what_is_not_gets_sorted() {
        let count = 3 * PIECE + 17;
        let backwards: Vec<u64> = (0..count as u64).rev().collect();
        for times in [
            Vec::new(),
            vec![3],
            scattered(count, 0),
            scattered(count, 100),
            scattered(count, 2 * PIECE as u64),
            scattered(count, 10 * count as u64),
            vec![5; count],
            backwards,
        ] {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let mut ours = times.clone();
            sort_nearly_sorted(&mut ours, |time| *time);
            assert_eq!(ours, sorted);
            let mut moved = times.clone();
            if let Some(order) = order_by(times.len(), |row| times[row]) {
                let by_order: Vec<u64> = order.iter().map(|row| times[*row as usize]).collect();
                assert_eq!(by_order, sorted);
                put_in_order(order, |a, b| moved.swap(a, b));
            }
            assert_eq!(moved, sorted);
        }
    }

    #[test]
    fn rows_of_equal_keys_stay_as_they_are() {
        let times = [4, 2, 4, 2, 1];
        assert_eq!(order_by(5, |row| times[row]), Some(vec![4, 1, 3, 0, 2]));
        assert_eq!(order_by(2, |_| 0), None);
    }
}
