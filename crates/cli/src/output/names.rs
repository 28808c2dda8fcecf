//! Names of C++ functions in tables: short enough to read, and still told apart.
//!
//! A name that is too long loses its parameters first, then the namespaces and numbers of its template arguments, then
//! the end of these, and last its middle: the functor of an elementwise kernel stays. Where two names of a column become
//! the same, each shows the part that differs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tracesmith_trace::analysis::{short_name, with_one_spelling, without_parameters};
use unicode_width::UnicodeWidthStr;

use super::table::{clipped, shortened};

/// How names of C++ functions are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// No longer than the terminal is wide, or [`WIDEST`].
    Short,
    /// As they are.
    Whole,
}

/// The most columns that a short name takes where there is no terminal.
pub(super) const WIDEST: usize = 120;

/// What stands for template arguments that are left out.
const LEFT_OUT: &str = "<…>";

/// What stands between the two names of a kernel that was renamed.
pub(crate) const RENAMED: &str = " → ";

/// Names that fit a width. Different ones stay different.
pub(super) fn fitted(names: &[&str], width: usize) -> Vec<String> {
    let names: Vec<Cow<'_, str>> = names.iter().map(|name| with_one_spelling(name)).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let mut short: Vec<String> = distinct
        .iter()
        .map(|name| match name.split_once(RENAMED) {
            Some((old, new)) if name.width() > width => renamed(old, new, width),
            _ => fitted_alone(name, width),
        })
        .collect();
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, short) in short.iter().enumerate() {
        alike.entry(short.clone()).or_default().push(at);
    }
    for group in alike.into_values().filter(|group| group.len() > 1) {
        disambiguate(&distinct, &group, width, &mut short);
    }
    let place = |name: &&str| distinct.partition_point(|other| other < name);
    names.iter().map(|name| short[place(name)].clone()).collect()
}

/// Two names of one kernel: both short, or the short name that they share and what differs.
fn renamed(old: &str, new: &str, width: usize) -> String {
    let half = width.saturating_sub(RENAMED.width()) / 2;
    let (short_old, short_new) = (fitted_alone(old, half), fitted_alone(new, half));
    if short_old != short_new {
        return format!("{short_old}{RENAMED}{short_new}");
    }
    let bare = [without_parameters(old), without_parameters(new)];
    let (word, differs) = common_prefix(&bare);
    let base = short_name(old);
    let rest = width.saturating_sub(base.width() + RENAMED.width() + 3) / 2;
    if rest < 8 {
        return clipped(&short_old, width);
    }
    let from = if differs - word < rest / 2 { word } else { differs };
    let part = |name: &str| clipped(&name[from..], rest);
    format!("{base} …{}{RENAMED}…{}", part(bare[0]), part(bare[1]))
}

fn fitted_alone(name: &str, width: usize) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    let bare = without_parameters(name);
    if bare.width() <= width {
        return bare.to_owned();
    }
    with_main_arguments(name, width).unwrap_or_else(|| shortened(&without_arguments(name), width))
}

/// The fewest columns in which arguments mean something.
const FEWEST: usize = 16;

/// A name with the template arguments that tell what it does; `None` where no room is left for them.
fn with_main_arguments(name: &str, width: usize) -> Option<String> {
    let (base, arguments) = template(name)?;
    let whole = format!("{base}<{}>", arguments.join(", "));
    if whole.width() <= width {
        return Some(whole);
    }
    let rest = width
        .checked_sub(base.width() + 2)
        .filter(|rest| *rest >= FEWEST)?;
    let is_number = |text: &String| text.starts_with(|letter: char| letter.is_ascii_digit());
    let main: Vec<String> = arguments.into_iter().filter(|text| !is_number(text)).collect();
    match main.is_empty() {
        true => None,
        false => Some(format!("{base}<…{}>", clipped(&main.join(", "), rest - 1))),
    }
}

/// The short name and the template arguments of its last part, without namespaces and casts. `None` for a name that does
/// not end with arguments.
fn template(name: &str) -> Option<(String, Vec<String>)> {
    let bare = without_parameters(name);
    let open = bare.find('<')?;
    let base = short_name(name);
    let is_plain = bare[..open].replace("(anonymous namespace)", "(anonymous)") == base;
    let inner = bare[open + 1..].strip_suffix('>').filter(|_| is_plain)?;
    let (mut arguments, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, letter) in inner.char_indices() {
        match letter {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(unqualified(&inner[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    arguments.push(unqualified(&inner[start..]));
    Some((base, arguments))
}

/// A type without namespaces and casts: `std::array<char *, (unsigned long)3>` is `array<char *, 3>`.
fn unqualified(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut rest = text.trim().trim_start_matches("void ");
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("::") {
            let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
            let kept = short.trim_end_matches("(anonymous namespace)");
            let kept = kept.trim_end_matches(is_word).len();
            if kept < short.len() {
                short.truncate(kept);
                rest = after;
                continue;
            }
        }
        let cast = ["(int)", "(unsigned int)", "(long)", "(unsigned long)", "(bool)"];
        if let Some(cast) = cast.iter().find(|cast| rest.starts_with(**cast)) {
            let after = &rest[cast.len()..];
            if after.starts_with(|letter: char| letter.is_ascii_digit()) {
                rest = after;
                continue;
            }
        }
        short.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    short
}

/// A name whose template arguments are left out, which is seen where they come last.
fn without_arguments(name: &str) -> String {
    let mut short = short_name(name);
    if without_parameters(name).ends_with('>') && !short.ends_with('>') {
        short.push_str(LEFT_OUT);
    }
    short
}

/// Shortens names that share a prefix to the part after it. Names that are still equal get a number.
fn disambiguate(names: &[&str], group: &[usize], width: usize, short: &mut [String]) {
    let compact = |name: &str| match template(name) {
        Some((base, arguments)) => format!("{base}<{}>", arguments.join(", ")),
        None => without_parameters(name).to_owned(),
    };
    let compact: Vec<String> = group.iter().map(|at| compact(names[*at])).collect();
    let bare: Vec<&str> = group.iter().map(|at| without_parameters(names[*at])).collect();
    // Those that differ in their parameters alone are compared as they are.
    let compared: Vec<&str> = if compact.iter().any(|name| *name != compact[0]) {
        compact.iter().map(String::as_str).collect()
    } else if bare.iter().any(|name| *name != bare[0]) {
        bare
    } else {
        group.iter().map(|at| names[*at]).collect()
    };
    let (word, differs) = common_prefix(&compared);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (text, at) in compared.iter().zip(group) {
        let base = short_name(names[*at]);
        let rest = width.saturating_sub(base.width() + 2);
        let shown = match rest {
            0..8 => shortened(&without_arguments(names[*at]), width),
            _ => {
                let from = if differs - word < rest / 2 { word } else { differs };
                format!("{base} …{}", clipped(&text[from..], rest))
            }
        };
        let number = seen.entry(shown.clone()).or_default();
        *number += 1;
        short[*at] = match number {
            1 => shown,
            number => {
                let suffix = format!(" #{number}");
                clipped(&shown, width.saturating_sub(suffix.len())) + &suffix
            }
        };
    }
}

/// Where texts begin to differ: the start of the word, and the place within it.
fn common_prefix(texts: &[&str]) -> (usize, usize) {
    let first = texts[0];
    let alike = |text: &&str| {
        let pairs = first.char_indices().zip(text.chars());
        let mut differing = pairs.filter(|((_, a), b)| a != b);
        differing
            .next()
            .map_or(first.len().min(text.len()), |((at, _), _)| at)
    };
    let common = texts.iter().map(alike).min().unwrap_or(0);
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let word = first[..common].rfind(|letter| !is_word(letter));
    let word = word.map_or(0, |at| at + first[at..].chars().next().map_or(0, char::len_utf8));
    (word, common)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
    const MUL: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_mul<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_mul<float>, std::array<char*, 3ul>)";

    #[test]
    fn a_name_loses_parameters_then_arguments_then_its_middle() {
        assert_eq!(fitted(&["saxpy(float*, int)"], 20), ["saxpy(float*, int)"]);
        assert_eq!(fitted(&["saxpy(float*, int)"], 10), ["saxpy"]);
        assert_eq!(
            fitted(&[ADD], 120),
            [
                "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
            ]
        );
        assert_eq!(
            fitted(&[ADD], 60),
            ["at::native::vectorized_elementwise_kernel<…CUDAFunctor_add…>"]
        );
        assert_eq!(
            fitted(&[ADD], 90),
            ["at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, array<char*, 3ul>>"]
        );
        assert_eq!(
            fitted(&[ADD], 50),
            ["at::native::vectorized_elementwise_kernel<…>"]
        );
        assert_eq!(fitted(&[ADD], 21), ["at::native…_kernel<…>"]);
    }

    #[test]
    fn arguments_lose_namespaces_and_casts() {
        for (text, short) in [
            ("std::array<char *, (unsigned long)3>", "array<char *, 3>"),
            (
                "at::native::(anonymous namespace)::CopyFunctor<int>",
                "CopyFunctor<int>",
            ),
            (
                "f(at::TensorIteratorBase &)::[lambda(int)]",
                "f(TensorIteratorBase &)::[lambda(int)]",
            ),
            ("void gpu_kernel_impl<c10::Half>", "gpu_kernel_impl<Half>"),
            ("::size", "::size"),
        ] {
            assert_eq!(unqualified(text), short);
        }
    }

    #[test]
    fn both_names_of_a_renamed_kernel_are_shown() {
        let renamed = format!("{ADD}{RENAMED}{MUL}");
        let short = &fitted(&[&renamed], 100)[0];
        assert_eq!(
            short,
            "at::native::vectorized_elementwise_kernel …add<float>, std::array<ch… → …mul<float>, std::array<ch…"
        );
        for width in [60, 80, 100, 120] {
            assert!(fitted(&[&renamed], width)[0].width() <= width);
        }
        let tiles = "gemm_64x64_tn → gemm_128x64_tn";
        assert_eq!(fitted(&[tiles], 40), [tiles]);
        assert_eq!(fitted(&["gemm_64x64_tn(int) → gemm_128x64_tn(int)"], 36), [tiles]);
    }

    #[test]
    fn different_names_stay_different() {
        let short = fitted(&[ADD, MUL, ADD], 70);
        assert_eq!(
            short,
            [
                "at::native::vectorized_elementwise_kernel<…CUDAFunctor_add<float>, a…>",
                "at::native::vectorized_elementwise_kernel<…CUDAFunctor_mul<float>, a…>",
                "at::native::vectorized_elementwise_kernel<…CUDAFunctor_add<float>, a…>",
            ]
        );
        // The first arguments that are shown are the same.
        let binary = |functor: &str| {
            format!(
                "void at::native::elementwise_kernel<128, 2, void at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor\
                 <float, float, float, at::native::binary_internal::{functor}<float>>>(at::TensorIteratorBase &)::[lambda(int)]>(int)"
            )
        };
        let (mul, div) = (binary("MulFunctor"), binary("DivFunctor"));
        assert_eq!(
            fitted(&[&mul, &div], 70),
            [
                "at::native::elementwise_kernel …MulFunctor<float>>>(TensorIteratorBas…",
                "at::native::elementwise_kernel …DivFunctor<float>>>(TensorIteratorBas…",
            ]
        );
        for width in [12, 20, 40, 44, 50, 60, 90] {
            let short = fitted(&[ADD, MUL], width);
            assert_ne!(short[0], short[1], "{width}");
            assert!(
                short.iter().all(|name| name.width() <= width),
                "{width}: {short:?}"
            );
        }
        // Only their parameters differ.
        let overloads = fitted(
            &["scale(float*, int, int, int)", "scale(double*, int, int, int)"],
            24,
        );
        assert_eq!(
            overloads,
            ["scale …float*, int, int…", "scale …double*, int, in…"]
        );
    }
}
