//! The picture.

use std::fmt::Write as _;

use tracesmith_trace::units;

use super::tree::{Function, Node, Tree};
use crate::error::Error;
use crate::export::weights::FrameOrigin;
use crate::export::{Out, Weight};

/// All lengths are those of a screen at ordinary size.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: usize = 18;
const HEAD: usize = 58;
const FOOT: usize = 30;
/// Of the letters in `style.css`.
const LETTER: f64 = 6.7;

/// Functions narrower than this share of the whole are not drawn: at ordinary size they are an eighth of a dot wide.
const NARROWEST: f64 = 0.0001;
/// Rows that are drawn: a browser shows no picture without end.
const DEEPEST: usize = 1000;

/// Writes a tree as a picture.
pub(super) fn write(tree: &Tree, weight: Weight, out: &mut Out<'_>) -> Result<(), Error> {
    let mut picture = Picture {
        tree,
        weight,
        frames: Vec::new(),
        rows: 0,
        hidden: 0,
    };
    picture.lay_out();
    picture.head(out)?;
    for frame in &picture.frames {
        out.put(picture.frame(frame).as_bytes())?;
    }
    out.put(b"</g>\n")?;
    out.put(include_bytes!("controls.svg"))?;
    out.put(b"<script><![CDATA[\n")?;
    out.put(include_bytes!("flame.js"))?;
    out.put(b"]]></script>\n</svg>\n")
}

struct Picture<'t> {
    tree: &'t Tree,
    weight: Weight,
    frames: Vec<Drawn<'t>>,
    rows: usize,
    /// Functions that are too narrow or too deep.
    hidden: u64,
}

/// A function with its place: shares of the whole.
struct Drawn<'t> {
    name: &'t str,
    origin: FrameOrigin,
    node: &'t Node,
    from: f64,
    share: f64,
    depth: usize,
}

impl<'t> Picture<'t> {
    /// Places every function that is wide enough, callers first.
    fn lay_out(&mut self) {
        let total = self.tree.total() as f64;
        let mut rest: Vec<Drawn<'t>> = vec![Drawn {
            name: "all",
            origin: FrameOrigin::Work,
            node: &self.tree.root,
            from: 0.0,
            share: 1.0,
            depth: 0,
        }];
        while let Some(drawn) = rest.pop() {
            if drawn.share < NARROWEST || drawn.depth >= DEEPEST {
                self.hidden += 1;
                continue;
            }
            self.rows = self.rows.max(drawn.depth + 1);
            let mut from = drawn.from;
            for (Function { name, origin }, node) in &drawn.node.children {
                let share = node.weight as f64 / total;
                rest.push(Drawn {
                    name,
                    origin: *origin,
                    node,
                    from,
                    share,
                    depth: drawn.depth + 1,
                });
                from += share;
            }
            self.frames.push(drawn);
        }
    }

    fn head(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let height = HEAD + self.rows * ROW + FOOT;
        let title = match self.weight {
            Weight::GpuTime => "GPU time by who launched it",
            Weight::Launches => "GPU work by who launched it",
            Weight::AllocatedBytes => "memory by who allocated it",
            Weight::Samples => "samples",
        };
        let hidden = match self.hidden {
            0 => String::new(),
            hidden => format!("; {} functions are too small to be drawn", units::count(hidden)),
        };
        let total = self.amount(self.tree.total());
        out.put(
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                 <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
                 width=\"{WIDTH}\" height=\"{height}\" data-row=\"{ROW}\" data-letter=\"{LETTER}\">\n\
                 <style>\n{style}</style>\n\
                 <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
                 <text class=\"title\" x=\"{MARGIN}\" y=\"24\">{title}</text>\n\
                 <text class=\"about\" x=\"{MARGIN}\" y=\"44\">{total}{hidden}</text>\n\
                 <text class=\"about\" id=\"details\" x=\"{MARGIN}\" y=\"{below}\"></text>\n\
                 <g id=\"frames\">\n",
                style = include_str!("style.css"),
                below = height - FOOT / 2 + 4,
            )
            .as_bytes(),
        )
    }

    fn frame(&self, drawn: &Drawn<'_>) -> String {
        let inner = WIDTH - 2.0 * MARGIN;
        let x = MARGIN + drawn.from * inner;
        let width = drawn.share * inner;
        let y = HEAD + drawn.depth * ROW;
        let class = match drawn.origin {
            _ if drawn.depth == 0 => "all",
            FrameOrigin::Native => "native",
            FrameOrigin::Python => "python",
            FrameOrigin::Jit => "jit",
            FrameOrigin::Work => "work",
        };
        let mut text = format!("<g class=\"{class} s{shade}\"><title>", shade = shade(drawn.name));
        escape(&mut text, drawn.name);
        let file = self.tree.file(drawn.node.file);
        if !file.is_empty() {
            text.push('\n');
            escape(&mut text, file);
        }
        let _ = writeln!(
            text,
            "\n{}, {:.2} %</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" rx=\"2\"/>\
             <text x=\"{:.2}\" y=\"{}\">{}</text></g>",
            self.amount(drawn.node.weight),
            drawn.share * 100.0,
            ROW - 1,
            x + 4.0,
            y + 13,
            fitting(drawn.name, width),
        ); // a string takes all
        text
    }

    fn amount(&self, weight: u64) -> String {
        match self.weight {
            Weight::GpuTime => units::nanos(weight),
            Weight::Launches => format!("{} launches", units::count(weight)),
            Weight::AllocatedBytes => units::bytes(weight),
            Weight::Samples => format!("{} samples", units::count(weight)),
        }
    }
}

/// As much of a name as there is room for, escaped.
fn fitting(name: &str, width: f64) -> String {
    let room = ((width - 8.0) / LETTER).max(0.0) as usize;
    let mut text = String::new();
    if name.chars().count() <= room {
        escape(&mut text, name);
    } else if room >= 3 {
        let cut: String = name.chars().take(room - 1).collect();
        escape(&mut text, &cut);
        text.push('…');
    }
    text
}

/// Neighbours differ a little, and a function looks the same everywhere.
fn shade(name: &str) -> u32 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash >> 16 & 3
}

/// Text as XML has it. Characters that XML cannot hold are replaced.
fn escape(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_their_boxes() {
        assert_eq!(fitting("gemm", 100.0), "gemm");
        assert_eq!(fitting("vector<int>", 60.0), "vector…");
        assert_eq!(fitting("vector", 20.0), "");
        assert_eq!(fitting("a<b>", 100.0), "a&lt;b&gt;");
    }

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        let mut text = String::new();
        escape(&mut text, "a\u{0}&\"\n");
        assert_eq!(text, "a\u{fffd}&amp;&quot; ");
    }
}
