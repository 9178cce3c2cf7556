//! Which kernels there are for a problem, for tests and tuning.

use crate::error::{check, Result};
use crate::sys;
use std::ffi::CStr;
use std::os::raw::c_char;
use std::ptr;

/// One kernel and what it makes of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelInfo {
    /// What `kernel` of a builder takes.
    pub name: String,
    /// Why it cannot run the problem.
    pub why_not: Option<String>,
    /// 0 where it cannot.
    pub predicted_us: f64,
    /// That it needs.
    pub workspace_bytes: usize,
}

/// All answers of a query, the best kernel first.
pub(crate) fn all(
    mut query: impl FnMut(i32, *mut sys::mp_kernel_info_t) -> sys::mp_status_t,
) -> Result<Vec<KernelInfo>> {
    // SAFETY: NULL, or a string in static storage.
    let text = |s: *const c_char| unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned();
    let mut kernels = Vec::new();
    loop {
        let mut info = sys::mp_kernel_info_t::zeroed();
        let status = query(kernels.len() as i32, ptr::addr_of_mut!(info));
        if status == sys::MP_ERROR_NOT_FOUND {
            return Ok(kernels);
        }
        check(status)?;
        kernels.push(KernelInfo {
            name: text(info.name),
            why_not: if info.why_not.is_null() { None } else { Some(text(info.why_not)) },
            predicted_us: info.predicted_us,
            workspace_bytes: info.workspace_bytes,
        });
    }
}
