//! Typed ids and units. A bare number never crosses a function.
//!
//! Ids of strings, frames, stacks, images, hosts, processes, devices and clocks are the trace's own, count from 1, and 0
//! means "none". Those of contexts, streams, threads, graphs and correlations are the ones the program's runtime gave out
//! and are unique only within their process.

use serde::{Deserialize, Serialize};

use crate::column_value::{Value, column_value_newtype};

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident($inner:ty), $meaning:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        column_value_newtype!($name, $inner, $meaning, |v: $name| Value::Number(u64::from(v.0)));

        impl $name {
            /// No such thing, or not known.
            pub const NONE: Self = Self(0);

            /// Whether this names something.
            pub fn is_some(self) -> bool {
                self != Self::NONE
            }
        }
    )*};
}

ids! {
    /// An interned string; 0 is the empty string.
    StringId(u32), String;
    /// A node of the stack tree: a frame and, through its parent, all frames above it.
    StackId(u32), Stack;
    /// One place in code.
    FrameId(u32), Frame;
    /// A program or library mapped into a process.
    ImageId(u32), Image;
    /// A machine.
    HostId(u32), Host;
    /// A process of the trace (not the pid, which can repeat across hosts and time).
    ProcessId(u32), Process;
    /// A thread as the operating system numbers it.
    ThreadId(u64), Thread;
    /// A GPU of the trace (not the ordinal, which differs between processes).
    DeviceId(u32), Device;
    /// A context as the runtime numbers it within its process.
    ContextId(u32), Context;
    /// A stream or queue as the runtime numbers it within its context.
    StreamId(u64), Stream;
    /// A clock of the trace.
    ClockId(u32), Clock;
    /// Joins the launch on the host with the work on the device, within one process.
    CorrelationId(u64), Correlation;
    /// A graph or executable graph within one process.
    GraphId(u64), Graph;
    /// A node of a graph within one process.
    GraphNodeId(u64), GraphNode;
    /// A loaded module within one process.
    ModuleId(u32), Module;
    /// A moment in nanoseconds on the clock that its block names; 0 means not known.
    Timestamp(u64), Time;
    /// An address in host or device memory.
    Address(u64), Address;
    /// A number of bytes.
    Bytes(u64), Bytes;
}

/// A small number that counts from 0, or none: a rank, a root, a NUMA node. Stored one higher, so that 0, which every
/// missing column reads as, is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(u32);

impl Ordinal {
    /// None, or not known.
    pub const NONE: Self = Self(0);

    /// The number `value`; the largest 32-bit number cannot be told from none and becomes it.
    pub const fn new(value: u32) -> Self {
        Self(value.wrapping_add(1))
    }

    /// The number, if there is one.
    pub const fn get(self) -> Option<u32> {
        self.0.checked_sub(1)
    }
}

column_value_newtype!(Ordinal, u32, Ordinal, |v: Ordinal| v
    .get()
    .map_or(Value::Missing, |n| Value::Number(u64::from(n))));

/// The named values of a code.
#[derive(Debug, PartialEq, Eq)]
pub struct Codes {
    /// The code's name.
    pub name: &'static str,
    /// What it says, in words.
    pub doc: &'static str,
    /// Its values: number, name, and what each means in words.
    pub values: &'static [(u8, &'static str, &'static str)],
}

/// Defines a one-byte code with named values. Values without a name are kept as they are.
macro_rules! codes {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident { $($(#[doc = $vdoc:literal])* $constant:ident = $number:literal $text:literal),* $(,)? }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u8);

        impl $name {
            $($(#[doc = $vdoc])* pub const $constant: Self = Self($number);)*

            /// All named values.
            pub const ALL: &'static [Self] = &[$(Self($number)),*];

            /// The value's name, if this version has one for it.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        $crate::column_value::column_value_newtype!(
            $name,
            u8,
            Code,
            |v: $name| $crate::column_value::Value::Code(v.name(), u64::from(v.0)),
            codes: &$crate::ids::Codes {
                name: stringify!($name),
                doc: concat!($($doc),*).trim_ascii(),
                values: &[$(($number, $text, concat!($($vdoc),*).trim_ascii())),*],
            }
        );
    )*};
}
pub(crate) use codes;
