//! What `view --timeline` and `top` share: the characters and colors of cells.

mod charset;
mod palette;

pub(crate) use charset::{Charset, percent};
pub(crate) use palette::color;
