//! A hex dump whose every line says what its bytes are.

use std::fmt::Write;

/// Bytes shown on one line.
const LINE: usize = 16;

pub(crate) struct Dump<'a> {
    bytes: &'a [u8],
    at: usize,
    out: String,
}

impl<'a> Dump<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let out = "```text\noffset  bytes                                            what\n".to_owned();
        Dump { bytes, at: 0, out }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The bytes that are not shown yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn heading(&mut self, text: &str) {
        writeln!(self.out, "\n--- {text}").unwrap();
    }

    pub(crate) fn field(&mut self, length: usize, what: &str) {
        for (i, line) in self.rest()[..length].chunks(LINE).enumerate() {
            let hex: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let what = if i == 0 { what } else { "" };
            let text = format!("{:06x}  {:47}  {what}", self.at, hex.join(" "));
            writeln!(self.out, "{}", text.trim_end()).unwrap();
            self.at += line.len();
        }
    }

    pub(crate) fn varint(&mut self, what: impl Fn(u64) -> String) -> u64 {
        let mut rest = self.rest();
        let value = take_varint(&mut rest);
        self.field(self.rest().len() - rest.len(), &what(value));
        value
    }

    pub(crate) fn finish(mut self) -> String {
        self.out.push_str("```\n");
        self.out
    }
}

pub(crate) fn take_varint(bytes: &mut &[u8]) -> u64 {
    let length = 1 + bytes.iter().take_while(|byte| **byte >= 0x80).count();
    let (number, rest) = bytes.split_at(length);
    *bytes = rest;
    number
        .iter()
        .rev()
        .fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}
