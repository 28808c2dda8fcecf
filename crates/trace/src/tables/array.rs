//! Columns of a block as Arrow arrays. Where a row has a value of its own, the array takes over the column's memory.

use std::sync::{Arc, LazyLock, OnceLock};

use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, StringArray, cast::AsArray,
};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tracesmith_format::{
    ClockId, Codes, ColumnBuffer, ColumnSpec, ColumnValues, Meaning, StringId, Timestamp,
};

use crate::analysis::short_name;
use crate::model::clocks::ClockMap;
use crate::model::strings::Strings;

/// The texts of a trace as one Arrow array, in which a string is at the position of its id.
#[derive(Debug)]
pub(crate) struct Texts {
    values: ArrayRef,
    /// Stands for a string that is lost.
    lost: u32,
    /// The same texts as short names of functions, once a scan needs them.
    short: OnceLock<ArrayRef>,
}

impl Texts {
    /// All strings; `None` if they are more than Arrow can count.
    pub(crate) fn of(strings: &Strings) -> Option<Self> {
        let ids = strings.last_id().checked_add(2)?;
        let texts = || (0..ids).map(|id| strings.get(StringId(id)));
        let bytes: usize = texts().map(str::len).sum();
        if bytes > i32::MAX as usize || ids > i32::MAX as u32 {
            return None;
        }
        Some(Texts {
            values: Arc::new(StringArray::from_iter_values(texts())),
            lost: ids - 1,
            short: OnceLock::new(),
        })
    }

    /// All texts.
    pub(super) fn values(&self) -> ArrayRef {
        Arc::clone(&self.values)
    }

    /// All texts, each as the short name of a function. Several may be equal.
    pub(super) fn short(&self) -> ArrayRef {
        let made = self.short.get_or_init(|| {
            let texts = self.values.as_string::<i32>();
            let short: Vec<String> = (0..texts.len())
                .into_par_iter()
                .map(|at| short_name(texts.value(at)))
                .collect();
            Arc::new(StringArray::from_iter_values(short))
        });
        Arc::clone(made)
    }

    /// A column of strings by their ids. 0 is none.
    pub(super) fn column(&self, mut ids: Vec<u32>) -> Result<ArrayRef, ArrowError> {
        for id in &mut ids {
            *id = (*id).min(self.lost);
        }
        dictionary(ids, self.values(), true)
    }
}

/// What a block's arrays depend on.
pub(super) struct Context<'t> {
    pub(super) texts: &'t Texts,
    pub(super) clocks: &'t ClockMap,
    pub(super) clock: ClockId,
}

/// The array of a column.
pub(super) fn array(
    context: &Context<'_>,
    spec: &ColumnSpec,
    column: ColumnBuffer,
) -> Result<ArrayRef, ArrowError> {
    let ColumnBuffer { values, index } = column;
    let index = index.as_ref().map(|index| index.as_slice());
    let is_optional = is_optional(spec.meaning);
    Ok(match (spec.meaning, values) {
        (Meaning::String, ColumnValues::U32(ids)) => context.texts.column(expand(ids, index))?,
        (Meaning::Code, ColumnValues::U8(codes)) => {
            let keys = codes.into_iter().map(u32::from).collect();
            dictionary(expand(keys, index), code_texts(spec.codes), false)?
        }
        (Meaning::Ordinal, ColumnValues::U32(numbers)) => {
            let numbers = expand(numbers, index);
            let nulls = zeros(&numbers);
            let numbers = numbers
                .into_iter()
                .map(|number| number.saturating_sub(1))
                .collect();
            primitive::<UInt32Type>(numbers, nulls)
        }
        (Meaning::Time, ColumnValues::U64(mut times)) => {
            if context.clock.is_some() && context.clock != context.clocks.reference() {
                let mut line = context.clocks.line(context.clock);
                for time in &mut times {
                    *time = line.convert(Timestamp(*time));
                }
            }
            optional::<UInt64Type>(expand(times, index), true)
        }
        (_, ColumnValues::U8(values)) => optional::<UInt8Type>(expand(values, index), is_optional),
        (_, ColumnValues::U16(values)) => optional::<UInt16Type>(expand(values, index), is_optional),
        (_, ColumnValues::U32(values)) => optional::<UInt32Type>(expand(values, index), is_optional),
        (_, ColumnValues::U64(values)) => optional::<UInt64Type>(expand(values, index), is_optional),
        (_, ColumnValues::I32(values)) => optional::<Int32Type>(expand(values, index), false),
        (_, ColumnValues::I64(values)) => optional::<Int64Type>(expand(values, index), false),
        (_, ColumnValues::F64(values)) => optional::<Float64Type>(expand(values, index), false),
        (_, ColumnValues::Bool(values)) => Arc::new(BooleanArray::from(expand(values, index))),
        (_, ColumnValues::Blobs(values)) => {
            let lengths = values.iter().map(|bytes| bytes.len() as u64).collect();
            optional::<UInt64Type>(expand(lengths, index), false)
        }
    })
}

/// Whether 0 stands for nothing in a column. Streams are numbered by the runtime, and some runtimes have a stream 0.
pub fn is_optional(meaning: Meaning) -> bool {
    use Meaning::*;
    matches!(
        meaning,
        Time | String
            | Stack
            | Frame
            | Image
            | Host
            | Process
            | Thread
            | Device
            | Context
            | Clock
            | Correlation
            | Graph
            | GraphNode
            | Module
            | Address
    )
}

/// A value for each row.
fn expand<T: Copy>(values: Vec<T>, index: Option<&[u32]>) -> Vec<T> {
    match index {
        Some(index) => index.iter().map(|value| values[*value as usize]).collect(),
        None => values,
    }
}

fn zeros<T: Copy + Default + PartialEq>(values: &[T]) -> Option<NullBuffer> {
    let zero = T::default();
    values
        .contains(&zero)
        .then(|| NullBuffer::from_iter(values.iter().map(|value| *value != zero)))
}

fn primitive<P: ArrowPrimitiveType>(values: Vec<P::Native>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<P>::new(ScalarBuffer::from(values), nulls))
}

fn optional<P: ArrowPrimitiveType>(values: Vec<P::Native>, is_optional: bool) -> ArrayRef
where
    P::Native: PartialEq,
{
    let nulls = if is_optional { zeros(&values) } else { None };
    primitive::<P>(values, nulls)
}

/// Keys as they are, in the same memory: none of them reaches the sign bit.
pub(super) fn dictionary(keys: Vec<u32>, texts: ArrayRef, is_optional: bool) -> Result<ArrayRef, ArrowError> {
    let nulls = if is_optional { zeros(&keys) } else { None };
    let count = keys.len();
    let keys = ScalarBuffer::<i32>::new(Buffer::from_vec(keys), 0, count);
    let keys = PrimitiveArray::<Int32Type>::new(keys, nulls);
    Ok(Arc::new(DictionaryArray::try_new(keys, texts)?))
}

/// The names of a code's values, each at the position of its number; numbers without a name are written as such.
fn code_texts(codes: Option<&'static Codes>) -> ArrayRef {
    static KNOWN: LazyLock<std::sync::Mutex<FxHashMap<&'static str, ArrayRef>>> =
        LazyLock::new(Default::default);
    let make = || -> ArrayRef {
        let named = codes.map_or(&[][..], |codes| codes.values);
        let text = |number: u8| {
            let name = named.iter().find(|(named, ..)| *named == number);
            name.map_or_else(|| number.to_string(), |(_, name, _)| (*name).to_owned())
        };
        Arc::new(StringArray::from_iter_values((0..=u8::MAX).map(text)))
    };
    let name = codes.map_or("", |codes| codes.name);
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Arc::clone(known.entry(name).or_insert_with(make))
}

/// End minus start; nothing where one of them is unknown.
pub(super) fn duration(start: &ArrayRef, end: &ArrayRef) -> ArrayRef {
    let (start, end) = (
        start.as_primitive::<UInt64Type>(),
        end.as_primitive::<UInt64Type>(),
    );
    let pairs = start.values().iter().zip(end.values());
    let lengths = pairs.map(|(start, end)| end.saturating_sub(*start)).collect();
    primitive::<UInt64Type>(lengths, NullBuffer::union(start.nulls(), end.nulls()))
}

/// Some rows of an array.
pub(super) fn take(array: &ArrayRef, rows: &[u32]) -> Result<ArrayRef, ArrowError> {
    fn of<P: ArrowPrimitiveType>(array: &ArrayRef, rows: &[u32]) -> ArrayRef {
        let array = array.as_primitive::<P>();
        let values = array.values();
        let taken = rows.iter().map(|row| values[*row as usize]).collect();
        primitive::<P>(taken, take_nulls(array.nulls(), rows))
    }
    Ok(match array.data_type() {
        DataType::UInt8 => of::<UInt8Type>(array, rows),
        DataType::UInt16 => of::<UInt16Type>(array, rows),
        DataType::UInt32 => of::<UInt32Type>(array, rows),
        DataType::UInt64 => of::<UInt64Type>(array, rows),
        DataType::Int32 => of::<Int32Type>(array, rows),
        DataType::Int64 => of::<Int64Type>(array, rows),
        DataType::Float64 => of::<Float64Type>(array, rows),
        DataType::Boolean => {
            let values = array.as_boolean().values();
            let taken: Vec<bool> = rows.iter().map(|row| values.value(*row as usize)).collect();
            Arc::new(BooleanArray::new(taken.into(), take_nulls(array.nulls(), rows)))
        }
        DataType::Dictionary(..) => {
            let array = array.as_dictionary::<Int32Type>();
            let keys: ArrayRef = Arc::new(array.keys().clone());
            let keys = of::<Int32Type>(&keys, rows).as_primitive::<Int32Type>().clone();
            Arc::new(DictionaryArray::try_new(keys, Arc::clone(array.values()))?)
        }
        other => {
            return Err(ArrowError::NotYetImplemented(format!("rows of {other}")));
        }
    })
}

fn take_nulls(nulls: Option<&NullBuffer>, rows: &[u32]) -> Option<NullBuffer> {
    let nulls = nulls?;
    Some(NullBuffer::from_iter(
        rows.iter().map(|row| nulls.is_valid(*row as usize)),
    ))
}
