//! Texts made once for each distinct value of a block and copied for each row.
//!
//! Rows share their places and shapes, and most of an event's text is said by these. A text is made when the first row
//! needs it: a block whose shapes all differ costs no more than its rows.

/// Texts by the number of a value.
pub(super) struct Fragments<'v, G> {
    values: &'v [G],
    spans: Vec<(u32, u32)>,
    text: Vec<u8>,
}

impl<'v, G> Fragments<'v, G> {
    pub(super) fn new(values: &'v [G]) -> Self {
        Fragments {
            values,
            spans: vec![(0, 0); values.len()],
            text: Vec::new(),
        }
    }

    /// The text of a value, made by `make` the first time.
    #[inline]
    pub(super) fn get(&mut self, index: u32, make: impl FnOnce(&mut Vec<u8>, &G)) -> &[u8] {
        let (mut start, mut end) = self.spans[index as usize];
        if end == 0 {
            start = self.text.len() as u32;
            make(&mut self.text, &self.values[index as usize]);
            end = self.text.len() as u32;
            self.spans[index as usize] = (start, end);
        }
        &self.text[start as usize..end as usize]
    }
}
