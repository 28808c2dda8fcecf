//! Records read by offset.
//!
//! CUPTI's structs are packed, grow at the end from version to version and keep
//! what they had, so a record is an array of bytes of a length that the version
//! vouches for, and a field is a number at an offset that the compiler checks
//! against that length.

/// Defines a record: its name, its length in bytes, and accessors at offsets.
macro_rules! layout {
    ($(
        $(#[$meta:meta])*
        $name:ident[$length:literal] { $($(#[$field_meta:meta])* $field:ident: $type:ty = $offset:literal,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'b>(&'b [u8; $length]);

        impl<'b> $name<'b> {
            /// Over the beginning of `bytes`; none when they are too few.
            #[inline]
            pub fn new(bytes: &'b [u8]) -> Option<Self> {
                bytes.first_chunk().map(Self)
            }

            $(
                $(#[$field_meta])*
                #[inline]
                pub fn $field(self) -> $type {
                    const { assert!($offset + size_of::<$type>() <= $length) };
                    let mut bytes = [0; size_of::<$type>()];
                    bytes.copy_from_slice(&self.0[$offset..$offset + size_of::<$type>()]);
                    <$type>::from_ne_bytes(bytes)
                }
            )*
        }
    )*};
}
pub(crate) use layout;
