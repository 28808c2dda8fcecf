//! Kernels whose name changed, but not what they do: other template arguments, another tile size, another number.
//!
//! Autotuning and compilers put numbers into names. Two kernels are the same one when their names without numbers and
//! arguments are equal, they run equally often in a step, and at the same place. Where more than one could be meant,
//! none is.

use std::collections::BTreeMap;

use crate::analysis::short_name::short_name;

/// How far apart in a step two kernels may be, as a share of it, when no other has a similar name.
const NEAR: f64 = 0.1;

/// A kernel that only one of the traces has.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'n> {
    pub(super) name: &'n str,
    /// Launches in a step.
    pub(super) count: f64,
    pub(super) place: Option<Place>,
}

/// Where a kernel first runs in a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    /// From 0 for the first kernel of a step to 1 for the last.
    pub(super) share: f64,
    /// The families of the kernels before and after it.
    pub(super) before: String,
    pub(super) after: String,
}

/// What names of the same kernel have in common: the words of the short name that contain no digit.
pub(super) fn family(name: &str) -> String {
    words(&short_name(name))
}

/// The words of a name that contain no digit.
fn words(name: &str) -> String {
    let words = name
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty() && !word.contains(|letter: char| letter.is_ascii_digit()));
    words.collect::<Vec<_>>().join("_")
}

/// Pairs of kernels that are the same, as places in both lists. Each is in at most one pair. Names that differ in
/// numbers alone come first; then those that share no more than their family.
pub(super) fn pairs(gone: &[Candidate<'_>], new: &[Candidate<'_>]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for key in [words, family] {
        let mut groups: BTreeMap<String, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (at, kernel) in gone.iter().enumerate() {
            if !pairs.iter().any(|(a, _)| *a == at) {
                groups.entry(key(kernel.name)).or_default().0.push(at);
            }
        }
        for (at, kernel) in new.iter().enumerate() {
            if !pairs.iter().any(|(_, b)| *b == at) {
                groups.entry(key(kernel.name)).or_default().1.push(at);
            }
        }
        for (key, (before, after)) in groups {
            if !key.is_empty() {
                add_pairs((gone, &before), (new, &after), &mut pairs);
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Pairs of kernels with similar names for which no other is possible.
fn add_pairs(
    (gone, before): (&[Candidate<'_>], &[usize]),
    (new, after): (&[Candidate<'_>], &[usize]),
    pairs: &mut Vec<(usize, usize)>,
) {
    let is_only_one = before.len() == 1 && after.len() == 1;
    let is_same = |a: usize, b: usize| {
        let (a, b) = (&gone[a], &new[b]);
        a.count == b.count
            && match (&a.place, &b.place) {
                (Some(a), Some(b)) if is_only_one => (a.share - b.share).abs() <= NEAR,
                (Some(a), Some(b)) => a.before == b.before && a.after == b.after,
                _ => false,
            }
    };
    for a in before {
        let mut matches = after.iter().filter(|b| is_same(*a, **b));
        if let (Some(b), None) = (matches.next(), matches.next())
            && before.iter().filter(|other| is_same(**other, *b)).count() == 1
        {
            pairs.push((*a, *b));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel<'n>(name: &'n str, count: f64, share: f64, around: (&str, &str)) -> Candidate<'n> {
        Candidate {
            name,
            count,
            place: Some(Place {
                share,
                before: around.0.to_owned(),
                after: around.1.to_owned(),
            }),
        }
    }

    #[test]
    fn names_without_numbers_and_arguments_are_families() {
        for (one, other) in [
            ("triton_poi_fused_add_0", "triton_poi_fused_add_17"),
            ("void f<4, float>(int)", "void f<8, float>(int)"),
            ("ampere_sgemm_128x64_tn", "ampere_sgemm_32x32_sliced1x4_tn"),
            (
                "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma",
                "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage5_warpsize2x2x1_ffma",
            ),
        ] {
            assert_eq!(family(one), family(other));
        }
        assert_ne!(family("ampere_sgemm_128x64_tn"), family("ampere_sgemm_128x64_nn"));
        assert_ne!(family("triton_poi_fused_add_0"), family("triton_red_fused_add_0"));
    }

    #[test]
    fn a_kernel_with_another_tile_size_is_the_same() {
        let gone = [kernel("gemm_64x64_tn", 2.0, 0.5, ("a", "b"))];
        let new = [kernel("gemm_128x64_tn", 2.0, 0.52, ("a", "c"))];
        assert_eq!(pairs(&gone, &new), [(0, 0)]);
        let often = [kernel("gemm_128x64_tn", 3.0, 0.5, ("a", "b"))];
        assert_eq!(pairs(&gone, &often), [], "it runs more often");
        let late = [kernel("gemm_128x64_tn", 2.0, 0.9, ("a", "b"))];
        assert_eq!(pairs(&gone, &late), [], "it runs elsewhere");
        // Others of the family do not matter when all but the numbers of the names are the same.
        let gone = [
            kernel("void map<4, Add>(int)", 1.0, 0.1, ("a", "b")),
            kernel("void map<4, Mul>(int)", 1.0, 0.2, ("b", "b")),
        ];
        let new = [
            kernel("void map<8, Mul>(int)", 1.0, 0.2, ("c", "b")),
            kernel("void map<8, Add>(int)", 1.0, 0.1, ("c", "b")),
        ];
        assert_eq!(pairs(&gone, &new), [(0, 1), (1, 0)]);
        let unnamed = [kernel("64", 2.0, 0.5, ("a", "b"))];
        assert_eq!(pairs(&unnamed, &unnamed), [], "a number is no family");
    }

    #[test]
    fn similar_kernels_are_told_apart_by_their_neighbors_or_not_at_all() {
        let gone = [
            kernel("triton_add_0", 1.0, 0.1, ("x", "y")),
            kernel("triton_add_1", 1.0, 0.6, ("y", "z")),
        ];
        let new = [
            kernel("triton_add_2", 1.0, 0.6, ("y", "z")),
            kernel("triton_add_3", 1.0, 0.1, ("x", "y")),
        ];
        assert_eq!(pairs(&gone, &new), [(0, 1), (1, 0)]);
        let alike = [
            kernel("triton_add_2", 1.0, 0.1, ("x", "y")),
            kernel("triton_add_3", 1.0, 0.2, ("x", "y")),
        ];
        assert_eq!(pairs(&gone, &alike), [], "both could be the first");
        assert_eq!(pairs(&alike, &gone), []);
    }
}
