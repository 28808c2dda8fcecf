//! What a table is, and the macros that define one.
//!
//! A table is written down once, in `tables/`: its rows, its columns with their numbers, and how each is encoded. From
//! that come the row type, the struct of columns, encoding, decoding, the schema in the file, and a generic view of rows.

use crate::blob::{Blob, Blobs};
use crate::block::BlockKind;
use crate::buffer::{ColumnBuffer, ColumnValues};
use crate::codec::{BlockDecoder, BlockEncoder, Transform};
use crate::column_value::{ColumnType, ColumnValue, Meaning, Value};
use crate::error::{Error, Problem};
use crate::ids::{
    ClockId, Codes, DeviceId, FrameId, HostId, ImageId, ProcessId, StackId, StringId, Timestamp,
};

/// A kind of row that a trace can hold.
pub trait Table: Clone + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// The rows as columns.
    type Columns: Columns<Row = Self>;
    /// The kind of block that holds them.
    const KIND: BlockKind;
    /// What a row is, in words.
    const DOC: &'static str;
    /// The columns that [`Columns::times`] looks at: start and end, or none.
    const TIMES: &'static [&'static str];
}

/// Rows of one table, column by column.
pub trait Columns: Clone + Default + std::fmt::Debug + Send + Sync + 'static {
    /// The row type.
    type Row;

    /// Number of rows.
    fn len(&self) -> usize;
    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Adds a row.
    fn push(&mut self, row: &Self::Row);
    /// A row put together from the columns.
    ///
    /// # Panics
    /// When the row does not exist or a column was not read.
    fn row(&self, row: usize) -> Self::Row;
    /// Removes all rows and keeps the memory.
    fn clear(&mut self);
    /// Start and end of a row; equal for an instant, [`Timestamp::NONE`] for a table without times.
    fn times(&self, row: usize) -> (Timestamp, Timestamp);
    /// Adds all columns to a block.
    fn encode(&self, encoder: &mut BlockEncoder);
    /// Reads the wanted columns of a block; the others stay empty.
    fn decode(decoder: &mut BlockDecoder<'_>, wanted: &Projection) -> Result<Self, Problem>;
    /// Describes the columns.
    fn specs() -> Vec<ColumnSpec>;
    /// Calls `f` with every column's id and the row's value in it.
    fn visit(&self, row: usize, f: &mut dyn FnMut(u16, Value));
    /// Calls `f` with every column's id and the column.
    fn visit_columns(&self, f: &mut dyn FnMut(u16, ColumnView<'_>));
    /// Hands on every wanted column with its id, without copying the values of rows.
    fn into_buffers(self, wanted: &Projection, f: &mut dyn FnMut(u16, ColumnBuffer));
    /// Replaces all ids that are the trace's own.
    fn remap(&mut self, map: &mut dyn IdMap);
    /// Bytes that the row of this table takes beyond its fixed columns.
    fn blob_bytes(row: &Self::Row) -> usize;

    /// Earliest start and latest end, unknown times left out; zeros when there is none.
    fn span(&self) -> (u64, u64) {
        let mut span = (u64::MAX, 0);
        for row in 0..self.len() {
            let (start, end) = self.times(row);
            if start.is_some() {
                span = (span.0.min(start.0), span.1.max(start.0).max(end.0));
            }
        }
        if span.0 > span.1 { (0, 0) } else { span }
    }
}

/// Describes one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its number within the table.
    pub id: u16,
    /// The index column of its group, or 0.
    pub group: u16,
    /// Its name; members of a group are named `group.member`.
    pub name: String,
    /// How it is represented.
    pub column_type: ColumnType,
    /// What its numbers stand for.
    pub meaning: Meaning,
    /// The named values, when it holds codes.
    pub codes: Option<&'static Codes>,
    /// What it is, in words.
    pub doc: &'static str,
}

/// One column of a table, for programs that walk columns without knowing their table. Rows that share a value can be
/// told, so that each distinct one is looked at once.
#[derive(Clone, Copy)]
pub struct ColumnView<'a> {
    /// Number of values.
    pub values: usize,
    /// One of the values.
    pub value: &'a dyn Fn(usize) -> Value,
    /// For each row which value it has; without this, each row has its own.
    pub index: Option<&'a [u32]>,
}

impl ColumnView<'_> {
    /// A row's value.
    pub fn of_row(&self, row: usize) -> Value {
        (self.value)(self.index.map_or(row, |index| index[row] as usize))
    }
}

impl std::fmt::Debug for ColumnView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ColumnView")
            .field("values", &self.values)
            .field("shared", &self.index.is_some())
            .finish()
    }
}

/// Which columns to read.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    wanted: Option<Vec<(u16, u16)>>,
}

impl Projection {
    /// All columns.
    pub fn all() -> Self {
        Projection { wanted: None }
    }

    /// The named columns of a table, such as `start` or `shape.name`; the name of a group takes all its members.
    pub fn of<T: Table>(names: &[&str]) -> Result<Self, Error> {
        let specs = T::Columns::specs();
        let mut wanted = Vec::new();
        for name in names {
            let before = wanted.len();
            let prefix = format!("{name}.");
            wanted.extend(
                specs
                    .iter()
                    .filter(|spec| spec.name == *name || spec.name.starts_with(&prefix))
                    .map(|spec| (spec.id, spec.group)),
            );
            if wanted.len() == before {
                return Err(Error::NoSuchColumn {
                    table: T::KIND.name().unwrap_or("unnamed"),
                    column: (*name).to_owned(),
                });
            }
        }
        Ok(Projection { wanted: Some(wanted) })
    }

    /// Columns by their descriptions.
    pub fn of_specs<'s>(specs: impl IntoIterator<Item = &'s ColumnSpec>) -> Self {
        let wanted = specs.into_iter().map(|spec| (spec.id, spec.group)).collect();
        Projection { wanted: Some(wanted) }
    }

    pub(crate) fn has(&self, id: u16) -> bool {
        self.wanted
            .as_ref()
            .is_none_or(|wanted| wanted.iter().any(|(column, _)| *column == id))
    }

    pub(crate) fn has_group(&self, index: u16) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| {
            wanted
                .iter()
                .any(|(column, group)| *group == index || *column == index)
        })
    }
}

/// Gives out new ids for the trace's own ids, when rows move to another trace.
pub trait IdMap {
    /// The new id of a string.
    fn string(&mut self, id: StringId) -> StringId;
    /// The new id of a stack.
    fn stack(&mut self, id: StackId) -> StackId;
    /// The new id of a frame.
    fn frame(&mut self, id: FrameId) -> FrameId;
    /// The new id of an image.
    fn image(&mut self, id: ImageId) -> ImageId;
    /// The new id of a host.
    fn host(&mut self, id: HostId) -> HostId;
    /// The new id of a process.
    fn process(&mut self, id: ProcessId) -> ProcessId;
    /// The new id of a device.
    fn device(&mut self, id: DeviceId) -> DeviceId;
    /// The new id of a clock.
    fn clock(&mut self, id: ClockId) -> ClockId;
}

/// A value with all ids of the trace replaced, by what the column means.
#[inline]
pub(crate) fn remap_lane<T: ColumnValue>(value: T, map: &mut dyn IdMap) -> T {
    let id = value.to_word() as u32;
    let new = match T::MEANING {
        Meaning::String => map.string(StringId(id)).0,
        Meaning::Stack => map.stack(StackId(id)).0,
        Meaning::Frame => map.frame(FrameId(id)).0,
        Meaning::Image => map.image(ImageId(id)).0,
        Meaning::Host => map.host(HostId(id)).0,
        Meaning::Process => map.process(ProcessId(id)).0,
        Meaning::Device => map.device(DeviceId(id)).0,
        Meaning::Clock => map.clock(ClockId(id)).0,
        _ => return value,
    };
    T::from_word(u64::from(new))
}

/// A type that a column can hold: a [`ColumnValue`], or a [`Blob`].
pub trait Field: Clone {
    /// How many of them are kept.
    type Column: Clone + Default + std::fmt::Debug + Send + Sync;
    /// How the column says it is stored.
    const TYPE: ColumnType;
    /// What it stands for.
    const MEANING: Meaning;
    /// The named values, when it is a code.
    const CODES: Option<&'static Codes>;

    /// Adds a value.
    fn push(column: &mut Self::Column, value: &Self);
    /// The value of a row.
    fn get(column: &Self::Column, row: usize) -> Self;
    /// Removes all values.
    fn clear(column: &mut Self::Column);
    /// Adds the column to a block.
    fn encode(column: &Self::Column, id: u16, transform: Transform, encoder: &mut BlockEncoder);
    /// Reads the column of a block.
    fn decode(id: u16, decoder: &mut BlockDecoder<'_>) -> Result<Self::Column, Problem>;
    /// The value for showing.
    fn value(column: &Self::Column, row: usize) -> Value;
    /// The column as plain values, in the same memory.
    fn into_buffer(column: Self::Column) -> ColumnValues;
    /// Replaces the trace's own ids.
    fn remap(column: &mut Self::Column, map: &mut dyn IdMap);
    /// Bytes beyond the fixed width.
    fn blob_bytes(&self) -> usize {
        0
    }
}

impl<T: ColumnValue + std::fmt::Debug> Field for T {
    type Column = Vec<T>;
    const TYPE: ColumnType = <T as ColumnValue>::TYPE;
    const MEANING: Meaning = <T as ColumnValue>::MEANING;
    const CODES: Option<&'static Codes> = <T as ColumnValue>::CODES;

    #[inline]
    fn push(column: &mut Vec<T>, value: &T) {
        column.push(*value);
    }

    #[inline]
    fn get(column: &Vec<T>, row: usize) -> T {
        column[row]
    }

    fn clear(column: &mut Vec<T>) {
        column.clear();
    }

    fn encode(column: &Vec<T>, id: u16, transform: Transform, encoder: &mut BlockEncoder) {
        encoder.column(id, 0, column, transform);
    }

    fn decode(id: u16, decoder: &mut BlockDecoder<'_>) -> Result<Vec<T>, Problem> {
        decoder.column(id)
    }

    fn value(column: &Vec<T>, row: usize) -> Value {
        column[row].value()
    }

    fn into_buffer(column: Vec<T>) -> ColumnValues {
        <T as ColumnValue>::into_buffer(column)
    }

    fn remap(column: &mut Vec<T>, map: &mut dyn IdMap) {
        for value in column {
            *value = remap_lane(*value, map);
        }
    }
}

impl Field for Blob {
    type Column = Blobs;
    const TYPE: ColumnType = ColumnType::Blob;
    const MEANING: Meaning = Meaning::Number;
    const CODES: Option<&'static Codes> = None;

    fn push(column: &mut Blobs, value: &Blob) {
        column.push(&value.0);
    }

    fn get(column: &Blobs, row: usize) -> Blob {
        Blob(column.get(row).to_vec())
    }

    fn clear(column: &mut Blobs) {
        column.clear();
    }

    fn encode(column: &Blobs, id: u16, _: Transform, encoder: &mut BlockEncoder) {
        column.encode(id, encoder);
    }

    fn decode(id: u16, decoder: &mut BlockDecoder<'_>) -> Result<Blobs, Problem> {
        Blobs::decode(id, decoder)
    }

    fn value(column: &Blobs, row: usize) -> Value {
        Value::Blob(column.get(row).len())
    }

    fn into_buffer(column: Blobs) -> ColumnValues {
        ColumnValues::Blobs(column)
    }

    fn remap(_: &mut Blobs, _: &mut dyn IdMap) {}

    fn blob_bytes(&self) -> usize {
        self.0.len()
    }
}

/// Encodes one column in the way its table asks for.
macro_rules! encode_column {
    (plain, $self:ident, $encoder:ident, $id:literal, $field:ident, $type:ty) => {
        <$type as $crate::table::Field>::encode(&$self.$field, $id, $crate::codec::Transform::Plain, $encoder)
    };
    (delta, $self:ident, $encoder:ident, $id:literal, $field:ident, $type:ty) => {
        <$type as $crate::table::Field>::encode(&$self.$field, $id, $crate::codec::Transform::Delta, $encoder)
    };
    (xor, $self:ident, $encoder:ident, $id:literal, $field:ident, $type:ty) => {
        <$type as $crate::table::Field>::encode(&$self.$field, $id, $crate::codec::Transform::Xor, $encoder)
    };
    (after($reference:literal $other:ident), $self:ident, $encoder:ident, $id:literal, $field:ident, $type:ty) => {
        $encoder.column_after($id, &$self.$field, $reference, &$self.$other)
    };
}

/// Start and end of a row, if its table has times.
macro_rules! row_times {
    ($self:ident, $row:ident) => {
        ($crate::ids::Timestamp::NONE, $crate::ids::Timestamp::NONE)
    };
    ($self:ident, $row:ident, $start:ident, $end:ident) => {
        ($self.$start[$row], $self.$end[$row])
    };
}

/// Defines a table: its row type, its columns, and how they are stored.
///
/// `how` is `plain`, `delta`, `xor` or `after(id column)`. Shared groups follow the columns. `times` names the columns
/// of start and end.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        $row:ident, $columns:ident, $kind:ident, times($($start:ident, $end:ident)?);
        $(
            $(#[doc = $cdoc:literal])*
            $id:literal $field:ident: $type:ty, $how:ident $(($($how_args:tt)*))?;
        )*
        $(shared:
            $(
                $(#[doc = $sdoc:literal])*
                $base:literal $group:ident: $group_type:ty;
            )*
        )?
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $row {
            $($(#[doc = $cdoc])* pub $field: $type,)*
            $($($(#[doc = $sdoc])* pub $group: $group_type,)*)?
        }

        #[doc = concat!("Many rows of [`", stringify!($row), "`], column by column.")]
        #[derive(Clone, Debug, Default)]
        pub struct $columns {
            row_count: usize,
            $($(#[doc = $cdoc])* pub $field: <$type as $crate::table::Field>::Column,)*
            $($($(#[doc = $sdoc])* pub $group: $crate::shared::Shared<$group_type>,)*)?
        }

        impl $crate::arbitrary::Arbitrary for $row {
            fn arbitrary(next: &mut dyn FnMut() -> u64) -> Self {
                $row {
                    $($field: $crate::arbitrary::Arbitrary::arbitrary(next),)*
                    $($($group: $crate::arbitrary::Arbitrary::arbitrary(next),)*)?
                }
            }
        }

        impl $crate::table::Table for $row {
            type Columns = $columns;
            const KIND: $crate::block::BlockKind = $crate::block::BlockKind::$kind;
            const DOC: &'static str = concat!($($doc),*).trim_ascii();
            const TIMES: &'static [&'static str] = &[$(stringify!($start), stringify!($end))?];
        }

        impl $crate::table::Columns for $columns {
            type Row = $row;

            fn len(&self) -> usize {
                self.row_count
            }

            #[inline]
            fn push(&mut self, row: &$row) {
                self.row_count += 1;
                $(<$type as $crate::table::Field>::push(&mut self.$field, &row.$field);)*
                $(
                    let context = None;
                    $(let context = Some(self.$group.push(&row.$group, context));)*
                    let _ = context;
                )?
            }

            fn row(&self, row: usize) -> $row {
                $row {
                    $($field: <$type as $crate::table::Field>::get(&self.$field, row),)*
                    $($($group: *self.$group.get(row),)*)?
                }
            }

            fn clear(&mut self) {
                self.row_count = 0;
                $(<$type as $crate::table::Field>::clear(&mut self.$field);)*
                $($(self.$group.clear();)*)?
            }

            #[inline]
            #[allow(unused_variables, reason = "a table without times has no use for the row")]
            fn times(&self, row: usize) -> ($crate::ids::Timestamp, $crate::ids::Timestamp) {
                $crate::table::row_times!(self, row $(, $start, $end)?)
            }

            fn encode(&self, encoder: &mut $crate::codec::BlockEncoder) {
                $($crate::table::encode_column!($how $(($($how_args)*))?, self, encoder, $id, $field, $type);)*
                $($(self.$group.encode($base, encoder);)*)?
            }

            fn decode(
                decoder: &mut $crate::codec::BlockDecoder<'_>,
                wanted: &$crate::table::Projection,
            ) -> Result<Self, $crate::error::Problem> {
                Ok($columns {
                    row_count: decoder.rows(),
                    $($field: if wanted.has($id) {
                        <$type as $crate::table::Field>::decode($id, decoder)?
                    } else {
                        Default::default()
                    },)*
                    $($($group: $crate::shared::Shared::decode($base, decoder, wanted)?,)*)?
                })
            }

            fn specs() -> Vec<$crate::table::ColumnSpec> {
                #[allow(unused_mut, reason = "a table without groups pushes nothing more")]
                let mut specs = vec![$($crate::table::ColumnSpec {
                    id: $id,
                    group: 0,
                    name: stringify!($field).to_owned(),
                    column_type: <$type as $crate::table::Field>::TYPE,
                    meaning: <$type as $crate::table::Field>::MEANING,
                    codes: <$type as $crate::table::Field>::CODES,
                    doc: concat!($($cdoc),*).trim_ascii(),
                },)*];
                $($(
                    specs.push($crate::table::ColumnSpec {
                        id: $base,
                        group: 0,
                        name: stringify!($group).to_owned(),
                        column_type: $crate::column_value::ColumnType::Index,
                        meaning: $crate::column_value::Meaning::Number,
                        codes: None,
                        doc: concat!($($sdoc),*).trim_ascii(),
                    });
                    <$group_type as $crate::shared::Group>::specs($base, stringify!($group), &mut specs);
                )*)?
                specs
            }

            fn visit(&self, row: usize, f: &mut dyn FnMut(u16, $crate::column_value::Value)) {
                $(f($id, <$type as $crate::table::Field>::value(&self.$field, row));)*
                $($($crate::shared::Group::visit(self.$group.get(row), $base, f);)*)?
            }

            fn visit_columns(&self, f: &mut dyn FnMut(u16, $crate::table::ColumnView<'_>)) {
                $(f($id, $crate::table::ColumnView {
                    values: self.row_count,
                    value: &|row| <$type as $crate::table::Field>::value(&self.$field, row),
                    index: None,
                });)*
                $($($crate::shared::Group::visit_columns(&self.$group.values, &self.$group.index, $base, f);)*)?
            }

            fn into_buffers(
                self,
                wanted: &$crate::table::Projection,
                f: &mut dyn FnMut(u16, $crate::buffer::ColumnBuffer),
            ) {
                $(if wanted.has($id) {
                    f($id, $crate::buffer::ColumnBuffer {
                        values: <$type as $crate::table::Field>::into_buffer(self.$field),
                        index: None,
                    });
                })*
                $($(self.$group.into_buffers($base, wanted, f);)*)?
            }

            fn remap(&mut self, map: &mut dyn $crate::table::IdMap) {
                $(<$type as $crate::table::Field>::remap(&mut self.$field, map);)*
                $($(self.$group.remap(map);)*)?
            }

            fn blob_bytes(row: &$row) -> usize {
                0 $(+ $crate::table::Field::blob_bytes(&row.$field))*
            }
        }
    };
}

/// Defines a set of columns that rows with equal values share.
macro_rules! group {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident { $($(#[doc = $fdoc:literal])* $offset:literal $field:ident: $type:ty,)* }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[doc = $fdoc])* pub $field: $type,)*
        }

        impl $crate::arbitrary::Arbitrary for $name {
            fn arbitrary(next: &mut dyn FnMut() -> u64) -> Self {
                $name { $($field: <$type as $crate::column_value::ColumnValue>::from_word(
                    next() & <$type as $crate::column_value::ColumnValue>::MAX,
                ),)* }
            }
        }

        impl $crate::shared::Group for $name {
            #[inline]
            fn hash(&self) -> u64 {
                let sum = 0u64 $(.wrapping_add(
                    $crate::column_value::ColumnValue::to_word(self.$field)
                        .wrapping_mul((($offset as u64 * 2 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1),
                ))*;
                (sum ^ (sum >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
            }

            fn encode(values: &[Self], base: u16, encoder: &mut $crate::codec::BlockEncoder) {
                $({
                    let column: Vec<$type> = values.iter().map(|value| value.$field).collect();
                    encoder.column(base + $offset, base, &column, $crate::codec::Transform::Plain);
                })*
            }

            fn decode(
                distinct: usize,
                base: u16,
                decoder: &mut $crate::codec::BlockDecoder<'_>,
                wanted: &$crate::table::Projection,
            ) -> Result<Vec<Self>, $crate::error::Problem> {
                let mut values = vec![Self::default(); distinct];
                $(if wanted.has(base + $offset) {
                    let column = decoder.column_of::<$type>(base + $offset, base, distinct)?;
                    for (value, member) in values.iter_mut().zip(column) {
                        value.$field = member;
                    }
                })*
                Ok(values)
            }

            fn specs(base: u16, name: &'static str, out: &mut Vec<$crate::table::ColumnSpec>) {
                $(out.push($crate::table::ColumnSpec {
                    id: base + $offset,
                    group: base,
                    name: format!("{name}.{}", stringify!($field)),
                    column_type: <$type as $crate::column_value::ColumnValue>::TYPE,
                    meaning: <$type as $crate::column_value::ColumnValue>::MEANING,
                    codes: <$type as $crate::column_value::ColumnValue>::CODES,
                    doc: concat!($($fdoc),*).trim_ascii(),
                });)*
            }

            fn visit(&self, base: u16, f: &mut dyn FnMut(u16, $crate::column_value::Value)) {
                $(f(base + $offset, $crate::column_value::ColumnValue::value(self.$field));)*
            }

            fn visit_columns(
                values: &[Self],
                index: &[u32],
                base: u16,
                f: &mut dyn FnMut(u16, $crate::table::ColumnView<'_>),
            ) {
                $(f(base + $offset, $crate::table::ColumnView {
                    values: values.len(),
                    value: &|at| $crate::column_value::ColumnValue::value(values[at].$field),
                    index: Some(index),
                });)*
            }

            fn into_buffers(
                values: &[Self],
                index: &std::sync::Arc<Vec<u32>>,
                base: u16,
                wanted: &$crate::table::Projection,
                f: &mut dyn FnMut(u16, $crate::buffer::ColumnBuffer),
            ) {
                $(if wanted.has(base + $offset) {
                    let members: Vec<$type> = values.iter().map(|value| value.$field).collect();
                    f(base + $offset, $crate::buffer::ColumnBuffer {
                        values: $crate::column_value::ColumnValue::into_buffer(members),
                        index: Some(std::sync::Arc::clone(index)),
                    });
                })*
            }

            fn remap(mut self, map: &mut dyn $crate::table::IdMap) -> Self {
                $(self.$field = $crate::table::remap_lane(self.$field, map);)*
                self
            }
        }
    )*};
}
pub(crate) use {encode_column, group, row_times, table};
