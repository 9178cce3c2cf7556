//! How to reach the other ranks.

use crate::error::{check, Result};
use crate::sys;
use std::ffi::c_void;

/// A table of callbacks.
#[derive(Clone, Copy)]
pub struct Comm(sys::mp_comm_t);

impl Comm {
    /// One rank: nothing is communicated.
    pub fn single() -> Self {
        Comm(sys::mp_comm_default())
    }

    /// Any table.
    ///
    /// # Safety
    /// Its callbacks do what `mp_comm_t` says, with `user` as it is, for as long as the table is used,
    /// and do not unwind.
    ///
    /// Not a matter of safety: during a callback other calls with the same context wait, so a
    /// callback makes none, and ranks that are threads of one process have a context each.
    pub unsafe fn from_raw(mut raw: sys::mp_comm_t) -> Self {
        raw.struct_size = std::mem::size_of::<sys::mp_comm_t>() as u32; // so many bytes are read
        Comm(raw)
    }

    /// Over NCCL.
    ///
    /// # Safety
    /// An `ncclComm_t`, which outlives the table.
    pub unsafe fn nccl(comm: *mut c_void) -> Result<Self> {
        let mut raw = sys::mp_comm_t::zeroed();
        check(sys::mp_comm_init_nccl(&mut raw, comm))?;
        Ok(Comm(raw))
    }

    /// The number of this rank.
    pub fn rank(&self) -> i32 {
        self.0.rank
    }

    /// How many there are.
    pub fn world_size(&self) -> i32 {
        self.0.world_size
    }

    pub(crate) fn as_raw(&self) -> &sys::mp_comm_t {
        &self.0
    }
}
