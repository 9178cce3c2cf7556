//! Kernels for a problem, for tests and tuning.

use crate::error::{check, read_text, Result};
use crate::sys;
use std::ffi::{CStr, CString};
use std::os::raw::c_char;
use std::ptr;

/// A plan: the same plan, descriptor and data give the same bits.  It contains no pointers.
pub type Plan = sys::mp_plan_t;

/// Returns the plan that names a kernel; `None` if the name contains a NUL.
pub(crate) fn named(kernel: &str) -> Option<Box<Plan>> {
    CString::new(kernel).ok().map(|name| Box::new(sys::mp_plan_default(&name)))
}

/// Returns the pointer for a descriptor.
pub(crate) fn pointer(plan: &Option<Box<Plan>>) -> *const Plan {
    plan.as_ref().map_or(ptr::null(), |plan| &**plan)
}

/// Returns the result of an `mp_*_get_plan` function.
pub(crate) fn plan(query: impl FnOnce(*mut Plan) -> sys::mp_status_t) -> Result<Plan> {
    let mut plan = Plan::zeroed();
    check(query(&mut plan))?;
    Ok(plan)
}

/// Returns the kernels that this process has measured ([`Context::measure_kernels`]), as lines for
/// a file `MP_GEMM_TUNING`.
///
/// [`Context::measure_kernels`]: crate::Context::measure_kernels
pub fn tuning_text() -> Result<String> {
    // SAFETY: text is NULL or has `bytes` bytes.
    read_text(|text, bytes| unsafe { sys::mp_tuning_get_text(text, bytes) })
}

/// A kernel and its properties for a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelInfo {
    /// Name, as accepted by `kernel` of a builder.
    pub name: String,
    /// Reason why the kernel does not support the problem.
    pub reason: Option<String>,
    /// Predicted time; 0 if the problem is not supported.
    pub predicted_us: f64,
    /// Required workspace.
    pub workspace_bytes: usize,
}

/// Returns all results of a query, fastest kernel first.
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
            reason: if info.reason.is_null() { None } else { Some(text(info.reason)) },
            predicted_us: info.predicted_us,
            workspace_bytes: info.workspace_bytes,
        });
    }
}
