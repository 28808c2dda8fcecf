//! Ways into the model: one format a file, told apart by content, never by name alone.

pub(crate) mod sbt;
