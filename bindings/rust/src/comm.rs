//! Communication between ranks.

use crate::error::{check, Result};
use crate::sys;
use std::ffi::c_void;

/// A table of communication callbacks.
#[derive(Clone, Copy)]
pub struct Comm(sys::mp_comm_t);

impl Comm {
    /// Returns a table for a single rank, without communication.
    pub fn single() -> Self {
        Comm(sys::mp_comm_default())
    }

    /// Wraps a table of callbacks.
    ///
    /// # Safety
    /// The callbacks follow the contract of `mp_comm_t` with the given `user` as long as the table
    /// is used, and do not unwind.
    ///
    /// Not required for safety: other calls with the same context wait during a callback.  A
    /// callback must therefore not use the context, and ranks that are threads of one process need
    /// separate contexts.
    pub unsafe fn from_raw(mut raw: sys::mp_comm_t) -> Self {
        raw.struct_size = std::mem::size_of::<sys::mp_comm_t>() as u32; // bytes to read
        Comm(raw)
    }

    /// Returns a table that uses NCCL.
    ///
    /// # Safety
    /// `comm` is an `ncclComm_t` that outlives the table.
    pub unsafe fn nccl(comm: *mut c_void) -> Result<Self> {
        let mut raw = sys::mp_comm_t::zeroed();
        check(sys::mp_comm_init_nccl(&mut raw, comm))?;
        Ok(Comm(raw))
    }

    /// Returns the index of this rank.
    pub fn rank(&self) -> i32 {
        self.0.rank
    }

    /// Returns the number of ranks.
    pub fn world_size(&self) -> i32 {
        self.0.world_size
    }

    pub(crate) fn as_raw(&self) -> &sys::mp_comm_t {
        &self.0
    }
}
