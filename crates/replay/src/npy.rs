//! Writes memory as a NumPy array.
//!
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>

use std::io::{self, Write};

/// The element type of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Bytes.
    U8,
    /// 32-bit integers.
    I32,
    /// 64-bit integers.
    I64,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Element {
    /// NumPy's type string, and the size in bytes.
    fn description(self) -> (&'static str, usize) {
        match self {
            Self::U8 => ("|u1", 1),
            Self::I32 => ("<i4", 4),
            Self::I64 => ("<i8", 8),
            Self::F16 => ("<f2", 2),
            Self::F32 => ("<f4", 4),
            Self::F64 => ("<f8", 8),
        }
    }
}

/// Writes bytes as a one-dimensional array. An incomplete last element is left out.
///
/// # Errors
///
/// If writing fails.
pub fn write(to: &mut impl Write, bytes: &[u8], element: Element) -> io::Result<()> {
    const ALIGNMENT: usize = 64;
    let (name, width) = element.description();
    let count = bytes.len() / width;
    let mut header = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': ({count},), }}");
    // The header follows magic, version and length, and ends with a newline.
    let length = (10 + header.len() + 1).next_multiple_of(ALIGNMENT) - 10;
    header.extend(std::iter::repeat_n(' ', length - header.len() - 1));
    header.push('\n');
    to.write_all(b"\x93NUMPY\x01\x00")?;
    to.write_all(&(length as u16).to_le_bytes())?;
    to.write_all(header.as_bytes())?;
    to.write_all(&bytes[..count * width])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_an_aligned_header_and_whole_elements() {
        let mut file = Vec::new();
        write(&mut file, &[1, 0, 0, 0, 2, 0, 0, 0, 9], Element::I32).unwrap();
        let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!(header % 64, 0);
        assert!(file[..header].ends_with(b"\n"));
        let text = String::from_utf8_lossy(&file[10..header]);
        assert!(
            text.contains("'descr': '<i4'") && text.contains("'shape': (2,)"),
            "{text}"
        );
        assert_eq!(&file[header..], [1, 0, 0, 0, 2, 0, 0, 0]);
    }
}
