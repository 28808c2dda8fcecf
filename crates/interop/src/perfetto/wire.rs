//! The protobuf wire format, as much as traces need: varints, fixed numbers, bytes.
//!
//! By hand, since it is little and hot: an export writes millions of messages of a few dozen bytes, whose lengths are
//! mostly known before, and an import looks at few of the several hundred fields that the schema has.

use std::fmt;

/// Bytes that a varint takes.
#[inline]
pub(crate) fn varint_length(value: u64) -> usize {
    // Seven bits a byte: (bits + 6) / 7, at least one.
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Adds a varint.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn put_tag(out: &mut Vec<u8>, field: u32, wire: u8) {
    put_varint(out, u64::from(field) << 3 | u64::from(wire));
}

/// Adds a field that holds a number. A negative one is given in two's complement.
#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, field: u32, value: u64) {
    put_tag(out, field, 0);
    put_varint(out, value);
}

/// Adds a field of eight bytes.
#[inline]
pub(crate) fn put_fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    put_tag(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Adds a floating-point field.
#[inline]
pub(crate) fn put_double(out: &mut Vec<u8>, field: u32, value: f64) {
    put_fixed64(out, field, value.to_bits());
}

/// Adds a field that holds bytes, a text or an encoded message.
#[inline]
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_tag(out, field, 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Adds a field that holds the message that `fill` writes.
#[inline]
pub(crate) fn put_message(out: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    put_tag(out, field, 2);
    // Most messages are short: one byte is kept free for the length, and a long message moves over.
    let at = out.len();
    out.push(0);
    fill(out);
    let length = out.len() - at - 1;
    if length < 0x80 {
        out[at] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(10);
    put_varint(&mut prefix, length as u64);
    out.splice(at..=at, prefix);
}

/// A field's value.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    /// A varint.
    Number(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// Bytes, a text or a message.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The value as a number; what is no number is 0, as protobuf reads a field of another type.
    pub(crate) fn number(self) -> u64 {
        match self {
            Value::Number(number) | Value::Fixed64(number) => number,
            Value::Fixed32(number) => u64::from(number),
            Value::Bytes(_) => 0,
        }
    }

    /// The value as a floating-point number.
    pub(crate) fn double(self) -> f64 {
        match self {
            Value::Fixed64(bits) => f64::from_bits(bits),
            Value::Fixed32(bits) => f64::from(f32::from_bits(bits)),
            Value::Number(_) | Value::Bytes(_) => 0.0,
        }
    }

    /// The value's bytes; none for a number.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// The numbers of a repeated field, packed or single.
    pub(crate) fn numbers(self) -> Vec<u64> {
        let Value::Bytes(mut bytes) = self else {
            return vec![self.number()];
        };
        let mut numbers = Vec::new();
        while let Ok(number) = take_varint(&mut bytes) {
            numbers.push(number);
        }
        numbers
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Fixed64(number) => write!(f, "{number:#018x}"),
            Value::Fixed32(number) => write!(f, "{number:#010x}"),
            Value::Bytes(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
        }
    }
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The fields of a message, in the order in which they are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of an encoded message.
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Fields(message)
    }

    /// What is not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    fn take(&mut self) -> Result<(u32, Value<'a>), Malformed> {
        let tag = take_varint(&mut self.0)?;
        let field = u32::try_from(tag >> 3).map_err(|_| Malformed)?;
        if field == 0 {
            return Err(Malformed);
        }
        let value = match tag & 7 {
            0 => Value::Number(take_varint(&mut self.0)?),
            1 => Value::Fixed64(u64::from_le_bytes(self.take_array()?)),
            2 => {
                let length = usize::try_from(take_varint(&mut self.0)?).map_err(|_| Malformed)?;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.take_array()?)),
            // Groups are older than any trace.
            _ => return Err(Malformed),
        };
        Ok((field, value))
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    /// Ends after the first error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.take();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// Takes a varint from the front.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Ok(value);
        }
    }
    Err(Malformed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop on any error")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn varints_come_back_and_their_length_is_known(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(out.len(), varint_length(value));
            prop_assert_eq!(take_varint(&mut &out[..]).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_read_to_their_end(bytes: Vec<u8>) {
            prop_assert!(Fields::new(&bytes).count() <= bytes.len());
        }
    }

    #[test]
    fn every_kind_of_field_comes_back() {
        let long = [7u8; 300];
        let mut out = Vec::new();
        put_number(&mut out, 1, u64::MAX);
        put_fixed64(&mut out, 47, 5);
        put_double(&mut out, 44, 1.5);
        put_message(&mut out, 2, |out| put_bytes(out, 3000, &long));
        put_message(&mut out, 4, |out| put_bytes(out, 1, b"short"));
        let fields: Vec<_> = Fields::new(&out).map(|field| field.unwrap()).collect();
        assert_eq!(fields[0], (1, Value::Number(u64::MAX)));
        assert_eq!(fields[1], (47, Value::Fixed64(5)));
        assert_eq!(fields[2].1.double(), 1.5);
        let inner = Fields::new(fields[3].1.bytes()).next().unwrap().unwrap();
        assert_eq!(inner, (3000, Value::Bytes(&long)));
        assert_eq!(
            Fields::new(fields[4].1.bytes())
                .next()
                .unwrap()
                .unwrap()
                .1
                .bytes(),
            b"short"
        );
    }

    #[test]
    fn packed_and_single_numbers_are_the_same() {
        assert_eq!(Value::Bytes(&[1, 0x80, 1]).numbers(), [1, 128]);
        assert_eq!(Value::Number(9).numbers(), [9]);
    }

    #[test]
    fn what_is_no_message_says_so_once() {
        for bytes in [
            &[0x07u8, 1][..],
            &[0x0a, 5, 1],
            &[0x08],
            &[0x00, 1],
            &[0x0b],
            &[0xff; 12],
        ] {
            let fields: Vec<_> = Fields::new(bytes).collect();
            assert_eq!(fields, [Err(Malformed)], "{bytes:?}");
        }
    }
}
