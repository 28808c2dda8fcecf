//! Allowed differences between numbers.
//!
//! As in NumPy's `allclose`: a value is within tolerance if `|found - recorded| <= absolute + relative * |recorded|`.
//! Two NaNs are equal, and so are two infinities with the same sign. A NaN or infinity never equals another value.

/// A floating-point type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float {
    /// Half precision.
    F16,
    /// bfloat16: the upper half of single precision.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

/// The allowed difference for one type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The type.
    pub float: Float,
    /// The absolute difference.
    pub absolute: f64,
    /// The difference relative to the recorded value.
    pub relative: f64,
}

/// A buffer within tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct Close {
    /// The address.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// The type that it was read as.
    pub float: Float,
    /// Elements that differ within tolerance.
    pub elements: u64,
    /// The largest difference.
    pub largest: f64,
}

impl Float {
    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::F16, Self::Bf16, Self::F32, Self::F64];
        all.into_iter().find(|float| float.name() == name)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The number in these bytes. NaN if the length is wrong.
    pub fn number(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Self::F16, [a, b]) => half(u16::from_le_bytes([*a, *b])),
            (Self::Bf16, [a, b]) => f64::from(f32::from_le_bytes([0, 0, *a, *b])),
            (Self::F32, [a, b, c, d]) => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
            (_, [a, b, c, d, e, f, g, h]) => f64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
            _ => f64::NAN,
        }
    }
}

/// Half precision has one sign bit, five exponent bits and ten fraction bits.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3FF) / 1024.0;
    let size = match bits >> 10 & 0x1F {
        0 => fraction * 2.0_f64.powi(-14),
        0x1F if bits & 0x3FF == 0 => f64::INFINITY,
        0x1F => f64::NAN,
        exponent => (1.0 + fraction) * 2.0_f64.powi(i32::from(exponent) - 15),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

impl Tolerance {
    fn admits(&self, recorded: f64, found: f64) -> bool {
        if recorded.is_nan() || found.is_nan() {
            return recorded.is_nan() && found.is_nan();
        }
        if recorded.is_infinite() || found.is_infinite() {
            return recorded.total_cmp(&found).is_eq();
        }
        (found - recorded).abs() <= self.absolute + self.relative * recorded.abs()
    }
}

/// Whether the part of a buffer that was compared is within tolerance.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    tolerance: Tolerance,
    elements: u64,
    largest: f64,
    is_within: bool,
}

impl Attempt {
    pub(crate) fn new(tolerance: Tolerance) -> Self {
        Self {
            tolerance,
            elements: 0,
            largest: 0.0,
            is_within: true,
        }
    }

    /// Compares a part that starts at an element.
    pub(crate) fn compare(&mut self, recorded: &[u8], found: &[u8]) {
        if !self.is_within {
            return;
        }
        let Tolerance { float, .. } = self.tolerance;
        let (recorded, found) = (recorded.chunks(float.bytes()), found.chunks(float.bytes()));
        for (recorded, found) in recorded.zip(found).filter(|(one, other)| one != other) {
            if recorded.len() < float.bytes() {
                // An incomplete last element must be equal.
                self.is_within = false;
                return;
            }
            let (one, other) = (float.number(recorded), float.number(found));
            if !self.tolerance.admits(one, other) {
                self.is_within = false;
                return;
            }
            self.elements += 1;
            // Two NaNs have no difference.
            self.largest = self.largest.max((other - one).abs());
        }
    }

    /// The result for a buffer within tolerance.
    pub(crate) fn close(&self, address: u64, bytes: u64) -> Option<Close> {
        self.is_within.then_some(Close {
            address,
            bytes,
            float: self.tolerance.float,
            elements: self.elements,
            largest: self.largest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(float: Float, absolute: f64, relative: f64, recorded: &[u8], found: &[u8]) -> Option<Close> {
        let mut attempt = Attempt::new(Tolerance {
            float,
            absolute,
            relative,
        });
        attempt.compare(recorded, found);
        attempt.close(0, recorded.len() as u64)
    }

    #[test]
    fn halves_are_read_as_they_are() {
        for (bits, number) in [
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x0001, 2.0_f64.powi(-24)),
            (0x7BFF, 65504.0),
        ] {
            assert_eq!(half(bits), number);
        }
        assert!(half(0x7C01).is_nan() && half(0xFC00) == f64::NEG_INFINITY);
    }

    #[test]
    fn numbers_may_be_apart_by_a_share_or_by_an_amount() {
        let bytes = |numbers: [f32; 2]| numbers.map(f32::to_le_bytes).concat();
        let (recorded, found) = (bytes([100.0, 0.0]), bytes([100.5, 0.0]));
        let close = judged(Float::F32, 0.0, 0.01, &recorded, &found).unwrap();
        assert_eq!((close.elements, close.largest), (1, 0.5));
        assert!(judged(Float::F32, 0.0, 0.001, &recorded, &found).is_none());
        assert!(judged(Float::F32, 0.5, 0.0, &recorded, &found).is_some());
        // A relative tolerance does not apply to zero.
        let found = bytes([100.0, 1e-9]);
        assert!(judged(Float::F32, 0.0, 0.5, &recorded, &found).is_none());
        assert!(judged(Float::F32, 1e-8, 0.0, &recorded, &found).is_some());
    }

    #[test]
    fn what_is_no_number_is_the_same_as_its_kind_only() {
        let bytes = |number: f64| number.to_le_bytes();
        let judged = |one: [u8; 8], other: [u8; 8]| judged(Float::F64, 1.0, 1.0, &one, &other).is_some();
        let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
        assert!(judged(bytes(f64::NAN), bytes(other_nan)));
        assert!(!judged(bytes(f64::NAN), bytes(1.0)));
        assert!(!judged(bytes(f64::INFINITY), bytes(f64::NEG_INFINITY)));
        assert!(!judged(bytes(1.0), bytes(f64::INFINITY)));
    }

    #[test]
    fn a_rest_must_be_the_same() {
        assert!(judged(Float::Bf16, 1.0, 1.0, &[0, 0, 7], &[0, 0, 8]).is_none());
        assert!(judged(Float::Bf16, 1.0, 1.0, &[0, 0, 7], &[1, 0, 7]).is_some());
    }
}
