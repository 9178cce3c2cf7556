//! Errors of the library.

use crate::enums::Status;
use crate::sys;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::ptr;

/// Result of all functions that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a failed call: a status, and a message that names the argument and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    raw: u32,
    sentence: String,
}

impl Error {
    /// Returns the status, or None if it is unknown to this crate.
    pub fn status(&self) -> Option<Status> {
        Status::from_raw(self.raw)
    }

    /// Returns the status as a number.
    pub fn raw_status(&self) -> u32 {
        self.raw
    }

    /// Creates an error for an argument that this crate rejects.
    pub(crate) fn invalid(sentence: String) -> Self {
        Error { raw: Status::ErrorInvalidArgument as u32, sentence }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}

/// Converts a status.  Call it directly after the failed function: the message is that of the
/// latest failure in this thread.
pub(crate) fn check(status: sys::mp_status_t) -> Result<()> {
    if status == sys::MP_SUCCESS {
        return Ok(());
    }
    // SAFETY: never NULL, NUL-terminated, valid until the next call in this thread.
    let sentence = unsafe { CStr::from_ptr(sys::mp_last_error()) };
    Err(Error { raw: status, sentence: sentence.to_string_lossy().into_owned() })
}

/// Returns the number that a function writes, such as a size in bytes.
pub(crate) fn read<T: Default>(function: impl FnOnce(&mut T) -> sys::mp_status_t) -> Result<T> {
    let mut value = T::default();
    check(function(&mut value))?;
    Ok(value)
}

/// Returns the text that a function writes; the first call returns its size.
pub(crate) fn read_text(
    write: impl Fn(*mut c_char, &mut usize) -> sys::mp_status_t,
) -> Result<String> {
    let mut bytes = 0;
    check(write(ptr::null_mut(), &mut bytes))?;
    let mut text = vec![0u8; bytes];
    check(write(text.as_mut_ptr().cast(), &mut bytes))?;
    text.truncate(bytes - 1); // the NUL
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Converts a string to C.
pub(crate) fn c_string(name: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid(format!("{name} contains a NUL")))
}
