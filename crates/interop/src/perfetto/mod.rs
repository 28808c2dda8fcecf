//! What the Perfetto exporter and importer share: the wire format, the schema's numbers, and the words that an export of
//! ours uses, so that it can be read back.

pub(crate) mod schema;
pub(crate) mod wire;
pub(crate) mod words;
