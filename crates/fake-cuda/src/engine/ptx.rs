//! Reads from PTX text what a launch needs: the kernels and their parameters. Everything else is skipped.

/// A kernel as PTX declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Parameter>,
    /// Whether it returns at once.
    pub(crate) is_empty: bool,
}

/// Where a parameter lies in the parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// A variable in global or constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) size: usize,
}

/// All variables of a text, in order: declarations outside of kernels, each on a line of its own. They begin as zeros.
pub(crate) fn variables(ptx: &str) -> Vec<Variable> {
    let text = without_comments(ptx);
    let declarations = text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches(".visible").trim_start();
        let is_variable = line.starts_with(".global ") || line.starts_with(".const ");
        line.strip_suffix(';').filter(|_| is_variable)
    });
    declarations
        .map(|declaration| {
            let before = declaration.split(['[', '=']).next().unwrap_or(declaration);
            Variable {
                name: before.split_whitespace().last().unwrap_or_default().to_owned(),
                size: size_and_alignment(declaration).0,
            }
        })
        .collect()
}

/// All `.entry` declarations of a text, in order.
pub(crate) fn entries(ptx: &str) -> Vec<Entry> {
    let text = without_comments(ptx);
    let mut entries = Vec::new();
    for part in text.split(".entry").skip(1) {
        let part = part.trim_start();
        let name_end = part
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
            .unwrap_or(part.len());
        let name = part[..name_end].to_owned();
        let rest = part[name_end..].trim_start();
        let parameters = match (rest.strip_prefix('('), rest.find(')')) {
            (Some(list), Some(end)) => parameters(&list[..end - 1]),
            _ => Vec::new(),
        };
        let body = rest.split_once('{').and_then(|(_, body)| body.split_once('}'));
        entries.push(Entry {
            name,
            parameters,
            is_empty: body.is_some_and(|(body, _)| body.trim() == "ret;"),
        });
    }
    entries
}

fn without_comments(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    let mut rest = ptx;
    while let Some(start) = rest.find("/*") {
        text.push_str(&rest[..start]);
        rest = rest[start..]
            .find("*/")
            .map_or("", |end| &rest[start + end + 2..]);
    }
    text.push_str(rest);
    text.lines()
        .map(|line| line.split("//").next().unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

fn parameters(list: &str) -> Vec<Parameter> {
    let mut offset = 0;
    let mut parameters = Vec::new();
    for declaration in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let (size, alignment) = size_and_alignment(declaration);
        offset = usize::next_multiple_of(offset, alignment);
        parameters.push(Parameter { offset, size });
        offset += size;
    }
    parameters
}

/// Of one declaration such as `.param .u64 x` or `.param .align 8 .b8 y[24]`.
fn size_and_alignment(declaration: &str) -> (usize, usize) {
    let mut element = 4;
    let mut alignment = None;
    let mut words = declaration.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            ".align" => alignment = words.next().and_then(|number| number.parse().ok()),
            // The alignment of what a pointer points to says nothing about the parameter.
            ".ptr" => break,
            _ => element = element_size(word).unwrap_or(element),
        }
    }
    let count = declaration
        .split_once('[')
        .and_then(|(_, rest)| rest.split(']').next())
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(1);
    (element * count, alignment.unwrap_or(element).max(1))
}

fn element_size(word: &str) -> Option<usize> {
    let kind = word.strip_prefix('.')?;
    let bits: usize = kind.strip_prefix(['u', 's', 'b', 'f'])?.parse().ok()?;
    Some(bits / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_lie_where_their_types_put_them() {
        let ptx = "
            .version 7.0
            .visible .entry first( // a comment, with (brackets)
                .param .u64 .ptr .global .align 16 out,
                .param .u32 n,
                .param .f64 scale,
                .param .align 8 .b8 block[24],
                .param .u8 flag
            ) { ret; }
            /* .entry hidden() */
            .visible .global .align 4 .u32 counter;
            .const .align 8 .f64 table[4];
            .visible .entry second() { ld.global.u32 %r1, [counter]; ret; }";
        let found = entries(ptx);
        let offsets: Vec<_> = found[0].parameters.iter().map(|p| (p.offset, p.size)).collect();
        assert_eq!(found[0].name, "first");
        assert_eq!(offsets, [(0, 8), (8, 4), (16, 8), (24, 24), (48, 1)]);
        assert_eq!((found.len(), found[1].name.as_str()), (2, "second"));
        assert!(found[1].parameters.is_empty());
        assert_eq!((found[0].is_empty, found[1].is_empty), (true, false));
        let sizes: Vec<_> = variables(ptx).into_iter().map(|v| (v.name, v.size)).collect();
        assert_eq!(sizes, [("counter".to_owned(), 4), ("table".to_owned(), 32)]);
    }
}
