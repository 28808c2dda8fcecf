//! What the timelines of the terminal have in common: how rows are called, cells drawn and times written.

mod axis;
mod charset;
mod labels;
mod palette;

pub(crate) use axis::Axis;
pub(crate) use charset::{Charset, percent};
pub(crate) use labels::Labels;
pub(crate) use palette::color;
