//! A status and its sentence.

use crate::enums::Status;
use crate::sys;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::ptr;

/// What every call here returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed: a status, and a sentence that names the argument and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    raw: u32,
    sentence: String,
}

impl Error {
    /// None where the library is newer than this crate and knows more statuses.
    pub fn status(&self) -> Option<Status> {
        Status::from_raw(self.raw)
    }

    /// The number, known or not.
    pub fn raw_status(&self) -> u32 {
        self.raw
    }

    /// A call that this crate refuses before the library sees it.
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

/// Right after a call, for the sentence is that of the latest failure in this thread.
pub(crate) fn check(status: sys::mp_status_t) -> Result<()> {
    if status == sys::MP_SUCCESS {
        return Ok(());
    }
    // SAFETY: never NULL, NUL-terminated, valid until the next call in this thread.
    let sentence = unsafe { CStr::from_ptr(sys::mp_last_error()) };
    Err(Error { raw: status, sentence: sentence.to_string_lossy().into_owned() })
}

/// A text of a function that writes one, which is asked for its size first.
pub(crate) fn read_text(write: impl Fn(*mut c_char, &mut usize) -> Result<()>) -> Result<String> {
    let mut bytes = 0;
    write(ptr::null_mut(), &mut bytes)?;
    let mut text = vec![0u8; bytes];
    write(text.as_mut_ptr().cast(), &mut bytes)?;
    text.truncate(bytes - 1); // the NUL
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A string of C.
pub(crate) fn c_string(name: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid(format!("{name} has a NUL")))
}
