//! Which rows a scan keeps.

use std::sync::{Arc, OnceLock};

use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_schema::{ArrowError, DataType};
use serde::{Deserialize, Serialize};

/// A condition on a column. A row without a value never meets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// The column's name.
    pub column: String,
    /// What its value must be.
    pub condition: Condition,
}

/// What a value must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Equal to this.
    Is(Scalar),
    /// Equal to one of these.
    OneOf(Vec<Scalar>),
    /// This or more.
    AtLeast(Scalar),
    /// More than this.
    Above(Scalar),
    /// This or less.
    AtMost(Scalar),
    /// Less than this.
    Below(Scalar),
    /// A text that matches this pattern: `*` stands for any characters, `?` for one.
    Like(String),
}

/// A value to compare with. Numbers of all types compare with each other; a text only with a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number.
    Unsigned(u64),
    /// A whole number that may be negative.
    Integer(i64),
    /// A fraction.
    Float(f64),
    /// Yes or no.
    Flag(bool),
    /// A text.
    Text(String),
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Scalar::Text(text.to_owned())
    }
}

impl From<u64> for Scalar {
    fn from(number: u64) -> Self {
        Scalar::Unsigned(number)
    }
}

impl From<i64> for Scalar {
    fn from(number: i64) -> Self {
        Scalar::Integer(number)
    }
}

impl Scalar {
    /// As a whole number, if it is one.
    fn whole(&self) -> Option<i128> {
        match self {
            Scalar::Unsigned(number) => Some(i128::from(*number)),
            Scalar::Integer(number) => Some(i128::from(*number)),
            Scalar::Flag(flag) => Some(i128::from(*flag)),
            Scalar::Float(_) | Scalar::Text(_) => None,
        }
    }
}

impl From<f64> for Scalar {
    fn from(number: f64) -> Self {
        Scalar::Float(number)
    }
}

impl From<bool> for Scalar {
    fn from(flag: bool) -> Self {
        Scalar::Flag(flag)
    }
}

/// A value of a row, as conditions see it.
#[derive(Clone, Copy, Debug)]
enum Cell<'a> {
    Integer(i128),
    Float(f64),
    Text(&'a str),
}

impl Condition {
    fn holds(&self, cell: Cell<'_>) -> bool {
        use std::cmp::Ordering::*;
        let compare = |scalar: &Scalar| compare(cell, scalar);
        match self {
            Condition::Is(value) => compare(value) == Some(Equal),
            Condition::OneOf(values) => values.iter().any(|value| compare(value) == Some(Equal)),
            Condition::AtLeast(value) => matches!(compare(value), Some(Equal | Greater)),
            Condition::Above(value) => compare(value) == Some(Greater),
            Condition::AtMost(value) => matches!(compare(value), Some(Equal | Less)),
            Condition::Below(value) => compare(value) == Some(Less),
            Condition::Like(pattern) => match cell {
                Cell::Text(text) => is_like(pattern, text),
                _ => false,
            },
        }
    }

    /// The least and the greatest whole number that meets it, for blocks that can be passed over.
    pub(super) fn bounds(&self) -> (i128, i128) {
        let number = Scalar::whole;
        let (least, most) = match self {
            Condition::Is(value) => (number(value), number(value)),
            Condition::AtLeast(value) | Condition::Above(value) => (number(value), None),
            Condition::AtMost(value) | Condition::Below(value) => (None, number(value)),
            Condition::OneOf(_) | Condition::Like(_) => (None, None),
        };
        (least.unwrap_or(i128::MIN), most.unwrap_or(i128::MAX))
    }
}

fn compare(cell: Cell<'_>, scalar: &Scalar) -> Option<std::cmp::Ordering> {
    match (cell, scalar) {
        (Cell::Text(cell), Scalar::Text(text)) => Some(cell.cmp(text.as_str())),
        (Cell::Text(_), _) | (_, Scalar::Text(_)) => None,
        (Cell::Integer(cell), Scalar::Float(number)) => (cell as f64).partial_cmp(number),
        (Cell::Float(cell), Scalar::Float(number)) => cell.partial_cmp(number),
        (Cell::Integer(cell), whole) => Some(cell.cmp(&whole.whole()?)),
        (Cell::Float(cell), whole) => cell.partial_cmp(&(whole.whole()? as f64)),
    }
}

/// Whether a text matches a pattern with `*` and `?`.
fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    // Where the last `*` was, and what it stands for ends.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == text[place] => {
                at += 1;
                place += 1;
            }
            _ => match &mut star {
                Some((after, end)) => {
                    *end += 1;
                    (at, place) = (*after + 1, *end);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

/// Which texts of a dictionary meet a condition. All batches of a scan share their dictionaries.
pub(super) type KnownTexts = OnceLock<(ArrayRef, Vec<bool>)>;

/// Clears the rows that do not meet a condition.
pub(super) fn narrow(
    array: &ArrayRef,
    condition: &Condition,
    known: &KnownTexts,
    kept: &mut [bool],
) -> Result<(), ArrowError> {
    fn numbers<P: ArrowPrimitiveType>(
        array: &ArrayRef,
        condition: &Condition,
        kept: &mut [bool],
        cell: impl Fn(P::Native) -> Cell<'static>,
    ) {
        let array = array.as_primitive::<P>();
        for (row, kept) in kept.iter_mut().enumerate() {
            *kept = *kept && array.is_valid(row) && condition.holds(cell(array.value(row)));
        }
    }
    match array.data_type() {
        DataType::UInt8 => numbers::<UInt8Type>(array, condition, kept, |n| Cell::Integer(n.into())),
        DataType::UInt16 => numbers::<UInt16Type>(array, condition, kept, |n| Cell::Integer(n.into())),
        DataType::UInt32 => numbers::<UInt32Type>(array, condition, kept, |n| Cell::Integer(n.into())),
        DataType::UInt64 => numbers::<UInt64Type>(array, condition, kept, |n| Cell::Integer(n.into())),
        DataType::Int32 => numbers::<Int32Type>(array, condition, kept, |n| Cell::Integer(n.into())),
        DataType::Int64 => numbers::<Int64Type>(array, condition, kept, |n| Cell::Integer(n.into())),
        DataType::Float64 => numbers::<Float64Type>(array, condition, kept, Cell::Float),
        DataType::Boolean => {
            let array = array.as_boolean();
            for (row, kept) in kept.iter_mut().enumerate() {
                let cell = Cell::Integer(i128::from(array.value(row)));
                *kept = *kept && array.is_valid(row) && condition.holds(cell);
            }
        }
        DataType::Dictionary(..) => {
            let array = array.as_dictionary::<Int32Type>();
            let look = |texts: &ArrayRef| -> Vec<bool> {
                let values = texts.as_string::<i32>().iter();
                let holds = |text: Option<&str>| condition.holds(Cell::Text(text.unwrap_or_default()));
                values.map(holds).collect()
            };
            let texts = array.values();
            let (of, meets) = known.get_or_init(|| (Arc::clone(texts), look(texts)));
            let own;
            let meets = if Arc::ptr_eq(of, texts) {
                meets
            } else {
                own = look(texts);
                &own
            };
            for (row, kept) in kept.iter_mut().enumerate() {
                *kept = *kept && array.key(row).is_some_and(|key| meets[key]);
            }
        }
        other => return Err(ArrowError::NotYetImplemented(format!("a condition on {other}"))),
    }
    Ok(())
}

/// Clears the rows that are not in a range: those that end before `from`, or do not start before `to`, or have no start.
pub(super) fn narrow_range(
    start: &ArrayRef,
    end: &ArrayRef,
    from: Option<u64>,
    to: Option<u64>,
    kept: &mut [bool],
) {
    let (start, end) = (
        start.as_primitive::<UInt64Type>(),
        end.as_primitive::<UInt64Type>(),
    );
    for (row, kept) in kept.iter_mut().enumerate() {
        let first = start.value(row);
        // An unknown end is 0.
        let last = end.value(row).max(first);
        *kept = *kept
            && start.is_valid(row)
            && from.is_none_or(|from| last >= from)
            && to.is_none_or(|to| first < to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("gemm", "gemm", true),
            ("gemm", "gemms", false),
            ("*gemm*", "sm90_gemm_tn", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "ä", true),
            ("?", "", false),
            ("**", "", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn numbers_of_all_types_compare_and_texts_do_not_with_numbers() {
        assert!(Condition::AtLeast(3_u64.into()).holds(Cell::Float(3.0)));
        assert!(Condition::Below(3.5.into()).holds(Cell::Integer(3)));
        assert!(Condition::Is(true.into()).holds(Cell::Integer(1)));
        assert!(!Condition::Is(1_u64.into()).holds(Cell::Text("1")));
        assert!(!Condition::Above("1".into()).holds(Cell::Integer(2)));
    }
}
