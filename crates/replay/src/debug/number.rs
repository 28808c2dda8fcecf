//! Element types of memory, for people who look at it.

use crate::tolerance::Float;

/// How the bytes of an element are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Number {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Number {
    /// All types.
    pub const ALL: [Self; 12] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|number| number.name() == name)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The size of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    fn float(self) -> Option<Float> {
        match self {
            Self::F16 => Some(Float::F16),
            Self::Bf16 => Some(Float::Bf16),
            Self::F32 => Some(Float::F32),
            Self::F64 => Some(Float::F64),
            _ => None,
        }
    }

    /// The value of an element. Integers beyond 2^53 are rounded. NaN if the length is wrong.
    pub fn value(self, bytes: &[u8]) -> f64 {
        if bytes.len() != self.bytes() {
            return f64::NAN;
        }
        match self.float() {
            Some(float) => float.number(bytes),
            None if self.is_signed() => self.signed(bytes) as f64,
            None => word(bytes) as f64,
        }
    }

    /// How far two elements are apart. NaN for those that are not finite, or incomplete.
    pub(super) fn distance(self, one: &[u8], other: &[u8]) -> f64 {
        if one.len() != self.bytes() || other.len() != self.bytes() {
            return f64::NAN;
        }
        // Large integers that differ can be equal as floating-point numbers.
        match self.float() {
            None if self.is_signed() => self.signed(one).abs_diff(self.signed(other)) as f64,
            None => word(one).abs_diff(word(other)) as f64,
            Some(_) => (self.value(one) - self.value(other)).abs(),
        }
    }

    /// The element in words: exact, and as short as possible. Incomplete elements are in hex.
    pub fn text(self, bytes: &[u8]) -> String {
        if bytes.len() != self.bytes() {
            return bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        }
        match self {
            Self::F32 => float_text(word(bytes) as u32, f32::from_bits),
            Self::F16 | Self::Bf16 | Self::F64 => float_text(self.value(bytes), |value| value),
            _ if self.is_signed() => self.signed(bytes).to_string(),
            _ => word(bytes).to_string(),
        }
    }

    fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    fn signed(self, bytes: &[u8]) -> i64 {
        let unused = 64 - 8 * self.bytes();
        (word(bytes) << unused) as i64 >> unused
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

/// Very large and very small numbers have an exponent.
fn float_text<B, F: Into<f64> + Copy + std::fmt::Display + std::fmt::LowerExp>(
    bits: B,
    float: impl FnOnce(B) -> F,
) -> String {
    let value = float(bits);
    let size = value.into().abs();
    if size == 0.0 || !size.is_finite() || (1e-5..1e16).contains(&size) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_by_their_type() {
        let bytes = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        let expected = [
            (Number::U8, "254"),
            (Number::I8, "-2"),
            (Number::U16, "65534"),
            (Number::I16, "-2"),
            (Number::U32, "4294967294"),
            (Number::I32, "-2"),
            (Number::U64, "18446744073709551614"),
            (Number::I64, "-2"),
            (Number::F64, "NaN"),
        ];
        for (number, text) in expected {
            assert_eq!(number.text(&bytes[..number.bytes()]), text, "{number:?}");
        }
        assert_eq!(Number::I64.value(&bytes), -2.0);
        assert_eq!(Number::Bf16.text(&[0x80, 0x3F]), "1");
        assert_eq!(Number::F16.text(&[0x00, 0xFC]), "-inf");
        assert_eq!(Number::F32.text(&0.1_f32.to_le_bytes()), "0.1");
        assert_eq!(Number::F32.text(&1e-30_f32.to_le_bytes()), "1e-30");
        assert_eq!(Number::F32.text(&[1, 2]), "0102");
        assert!(Number::F32.value(&[1, 2]).is_nan());
    }

    #[test]
    fn large_integers_that_differ_are_apart() {
        let [one, other] = [u64::MAX, u64::MAX - 1].map(u64::to_le_bytes);
        assert_eq!(Number::U64.distance(&one, &other), 1.0);
        assert_eq!(Number::I64.distance(&one, &1_i64.to_le_bytes()), 2.0);
        assert!(Number::U64.distance(&one, &other[..3]).is_nan());
        assert_eq!(
            Number::F32.distance(&1_f32.to_le_bytes(), &3_f32.to_le_bytes()),
            2.0
        );
    }

    #[test]
    fn every_type_has_a_name_of_its_own() {
        for number in Number::ALL {
            assert_eq!(Number::from_name(number.name()), Some(number));
        }
        assert_eq!(Number::from_name("f8"), None);
    }
}
