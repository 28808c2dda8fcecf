//! Pointers as they come from C. The wrappers are transparent, so they stand in the signatures of the exported
//! functions and in the parameter structs that callbacks see; reading and writing through them is in one place.
//!
//! What makes it sound is the contract of the imitated functions: a caller passes null or a pointer to as many
//! values as the call says.

#![allow(unsafe_code, reason = "reads and writes what C callers point to")]

use std::ffi::{CStr, CString, c_char};

use crate::code::Code;

/// Where a C caller wants a value.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    pub(crate) fn from_address(address: u64) -> Self {
        Self(address as *mut T)
    }

    pub(crate) fn address(self) -> u64 {
        self.0 as u64
    }

    /// Writes the value, or says that there is no place for it.
    pub(crate) fn put(self, value: T) -> Result<(), Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: a caller of the imitated function passes null or a place for a T.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the value if there is a place for it: for results that a caller may leave out.
    pub(crate) fn put_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `put`.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    pub(crate) fn put_all(self, values: &[T])
    where
        T: Copy,
    {
        if !self.0.is_null() {
            // SAFETY: the caller's array has room for what the call was told to write at most.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.0, values.len()) };
        }
    }

    /// What is there now: for parameters that go both ways.
    pub(crate) fn get(self) -> Option<T>
    where
        T: Copy,
    {
        In(self.0.cast_const()).get()
    }
}

/// Text goes into a C buffer of a given length, cut where it must be and always ended.
impl Out<c_char> {
    pub(crate) fn put_text(self, text: &str, capacity: usize) -> Result<(), Code> {
        if self.0.is_null() || capacity == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let mut bytes: Vec<c_char> = text.bytes().take(capacity - 1).map(|b| b as c_char).collect();
        bytes.push(0);
        self.put_all(&bytes);
        Ok(())
    }
}

/// Values that a C caller hands over.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> In<T> {
    pub(crate) fn from_address(address: u64) -> Self {
        Self(address as *const T)
    }

    pub(crate) fn address(self) -> u64 {
        self.0 as u64
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn get(self) -> Option<T>
    where
        T: Copy,
    {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: a caller of the imitated function passes null or a pointer to a T.
        Some(unsafe { self.0.read_unaligned() })
    }

    pub(crate) fn at(self, index: usize) -> Option<T>
    where
        T: Copy,
    {
        if self.0.is_null() {
            return None;
        }
        Self(self.0.wrapping_add(index)).get()
    }

    pub(crate) fn list(self, count: usize) -> Vec<T>
    where
        T: Copy,
    {
        (0..count).filter_map(|index| self.at(index)).collect()
    }
}

impl In<c_char> {
    pub(crate) fn text(self) -> Option<CString> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: a caller passes null or a string that ends with a zero byte.
        let text = unsafe { CStr::from_ptr(self.0) };
        Some(text.to_owned())
    }

    pub(crate) fn string(self) -> Option<String> {
        self.text().map(|text| text.to_string_lossy().into_owned())
    }
}
