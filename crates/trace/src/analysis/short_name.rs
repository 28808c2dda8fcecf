//! Names of kernels without what makes them long.

use std::borrow::Cow;

/// What an unnamed namespace is called: demanglers differ.
const ANONYMOUS: &str = "(anonymous namespace)";

/// A name in which unnamed namespaces are called `(anonymous namespace)`. Nsight Systems calls them `<unnamed>`.
pub fn with_one_spelling(name: &str) -> Cow<'_, str> {
    match name.contains(UNNAMED) {
        true => name.replace(UNNAMED, ANONYMOUS).into(),
        false => name.into(),
    }
}

const UNNAMED: &str = "<unnamed>";

/// A name without return type, template arguments, function arguments and namespaces of its last part:
/// `void at::native::vectorized_elementwise_kernel<4, F>(int, F)` is `at::native::vectorized_elementwise_kernel`.
pub fn short_name(name: &str) -> String {
    let name = &*with_one_spelling(name);
    let mut short = String::with_capacity(name.len().min(64));
    let mut depth = 0usize;
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // `operator<` and `operator()` are names, not brackets.
            '<' | '(' if short.ends_with("operator") => {
                short.push(letter);
                if letter == '(' && letters.peek() == Some(&')') {
                    letters.next();
                    short.push(')');
                }
            }
            '(' if depth == 0 && name_follows(letters.clone()) => {
                // `(anonymous namespace)::kernel`
                for inner in letters.by_ref() {
                    if inner == ')' {
                        break;
                    }
                }
                short.push_str("(anonymous)");
            }
            '(' if depth == 0 => break,
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ' ' if letters.peek() == Some(&'[') => break,
            ' ' => short.clear(),
            _ => short.push(letter),
        }
    }
    if short.is_empty() { name.to_owned() } else { short }
}

/// A name without return type and function arguments: `void ns::f<int>(int)` is `ns::f<int>`.
pub fn without_parameters(name: &str) -> &str {
    let (mut start, mut depth, mut at) = (0, 0usize, 0);
    while let Some(letter) = name[at..].chars().next() {
        let rest = &name[at..];
        let step = letter.len_utf8();
        match letter {
            _ if rest.starts_with(ANONYMOUS) => at += ANONYMOUS.len() - step,
            '<' | '(' if name[..at].ends_with("operator") => {
                at += usize::from(rest.starts_with("()"));
            }
            '(' if depth == 0 => return non_empty(&name[start..at], name),
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && rest.starts_with(" [") => return non_empty(&name[start..at], name),
            ' ' if depth == 0 => start = at + step,
            _ => {}
        }
        at += step;
    }
    non_empty(&name[start..], name)
}

fn non_empty<'n>(part: &'n str, name: &'n str) -> &'n str {
    if part.is_empty() { name } else { part }
}

fn name_follows(letters: impl Iterator<Item = char>) -> bool {
    let text: String = letters.take("anonymous namespace)".len()).collect();
    text == "anonymous namespace)"
}

#[cfg(test)]
mod tests {
    use super::{short_name, without_parameters};

    #[test]
    fn parameters_and_return_types_are_left_out_and_template_arguments_kept() {
        for (name, bare) in [
            ("void ns::f<4, g<int> >(int, g<int>)", "ns::f<4, g<int> >"),
            (
                "void ns::f<(anonymous namespace)::g>(int) [clone .kd]",
                "ns::f<(anonymous namespace)::g>",
            ),
            (
                "void (anonymous namespace)::softmax<float>(float*)",
                "(anonymous namespace)::softmax<float>",
            ),
            ("Foo::operator()(int)", "Foo::operator()"),
            ("void f<(ns::Kind)3>(int)", "f<(ns::Kind)3>"),
            ("saxpy", "saxpy"),
            ("", ""),
            ("(x)", "(x)"),
        ] {
            assert_eq!(without_parameters(name), bare);
        }
    }

    #[test]
    fn arguments_and_return_types_are_left_out() {
        for (name, short) in [
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>)",
                "at::native::vectorized_elementwise_kernel",
            ),
            ("saxpy", "saxpy"),
            ("saxpy(float*, int)", "saxpy"),
            (
                "void (anonymous namespace)::softmax<float>(float*)",
                "(anonymous)::softmax",
            ),
            (
                "void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<2> >(char *)",
                "at::native::(anonymous)::CatArrayBatchedCopy",
            ),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop>(Params)",
                "cutlass::Kernel2",
            ),
            ("void ns::f<(anonymous namespace)::g>(int) [clone .kd]", "ns::f"),
            ("Foo::operator()(int)", "Foo::operator()"),
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            ),
            ("", ""),
            ("<>", "<>"),
        ] {
            assert_eq!(short_name(name), short);
        }
    }
}
