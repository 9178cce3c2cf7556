//! Tensor lists.

use crate::comm::Comm;
use crate::context::{Checks, Context, Data, Float, Stream, TensorReport, View};
use crate::enums::{Dtype, OptimizerFlags};
use crate::error::{Error, Result};
use crate::owner::{Handle, Owner};
use crate::sys;
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;

/// Options for writing 16-bit copies of masters; `Default` clamps overflows.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelOptions<'s> {
    /// `MODEL_OVERFLOW` and `STOCHASTIC_ROUNDING`.
    pub flags: OptimizerFlags,
    /// Seed of stochastic rounding.
    pub rounding_seed: u64,
    /// Number of updates of the masters, for stochastic rounding: 1 number.
    pub t: Option<View<'s, i64>>,
    /// Count of copies that overflowed: 1 number, increased.
    pub overflows: Option<View<'s, i64>>,
}

/// Outputs of [`TensorList::stats`], each optional: 1 element, or one per tensor.
#[derive(Clone, Copy, Default)]
pub struct StatsOutputs<'s> {
    /// Set to 1 if any element is infinite or NaN; never cleared.
    pub found_inf: Option<&'s View<'s, f32>>,
    /// Largest absolute value.
    pub amax: Option<&'s View<'s, f32>>,
    /// Largest absolute value of each tensor.
    pub tensor_amax: Option<&'s View<'s, f32>>,
    /// sqrt(sum x^2).
    pub norm: Option<&'s View<'s, f32>>,
    /// sqrt(sum x^2) of each tensor.
    pub tensor_norm: Option<&'s View<'s, f32>>,
    /// Report on the list.
    pub report: Option<&'s View<'s, TensorReport>>,
    /// Report on each tensor.
    pub tensor_reports: Option<&'s View<'s, TensorReport>>,
}

/// A tensor of a list, of any type.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    owner: Option<&'a Owner>,
    pointer: *mut c_void,
    numel: usize,
    dtype: Dtype,
}

impl<'a> Tensor<'a> {
    /// Creates a tensor of all elements of a buffer or a view.
    pub fn new<D: Data>(data: &'a D) -> Self
    where
        D::Element: Float,
    {
        let view = data.view();
        Tensor {
            owner: Some(view.owner),
            pointer: if view.len == 0 { ptr::null_mut() } else { view.pointer.cast() },
            numel: view.len,
            dtype: D::Element::DTYPE,
        }
    }

    /// Creates an absent tensor: a parameter without a 16-bit copy in the model list of an
    /// optimizer.
    pub fn absent(numel: usize) -> Self {
        Tensor { owner: None, pointer: ptr::null_mut(), numel, dtype: Dtype::Fp16 }
    }
}

/// A list of tensors that are processed as one.  Its table of pointers is on the device, so each
/// call is one launch.
///
/// The list shares ownership of its buffers and can be sent to another thread:
/// ```
/// use mpcore::{Context, Device, Stream, Tensor, TensorList};
/// # fn main() -> mpcore::Result<()> {
/// let context = Context::new(Device::Host)?;
/// let buffer = context.upload(&[3.0f32, 4.0])?;
/// let list = TensorList::new(&context, &[Tensor::new(&buffer)])?;
/// drop(buffer);
/// let norm = context.alloc::<f32>(1)?;
/// list.l2norm(Some(&norm.slice(0, 1)), None, Stream::DEFAULT)?;
/// assert_eq!(norm.to_vec()?, [5.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TensorList {
    handle: Handle<sys::mp_tensor_list>,
    shapes: Vec<(usize, Dtype)>,
    has_absent: bool,
}

fn owners(tensors: &[Tensor<'_>]) -> Vec<Owner> {
    tensors.iter().filter_map(|t| t.owner.cloned()).collect()
}

impl TensorList {
    /// Creates a list of tensors of this context.
    pub fn new(context: &Context, tensors: &[Tensor<'_>]) -> Result<Self> {
        belong("TensorList::new", context, tensors)?;
        let data: Vec<_> = tensors.iter().map(|t| t.pointer).collect();
        let numel: Vec<_> = tensors.iter().map(|t| t.numel as i64).collect();
        let dtypes: Vec<_> = tensors.iter().map(|t| t.dtype as u32).collect();
        let mut desc = sys::mp_tensor_list_desc_t::zeroed();
        desc.dtype = dtypes.first().copied().unwrap_or(sys::MP_FP32);
        desc.count = tensors.len() as u32;
        desc.data = data.as_ptr();
        desc.numel = numel.as_ptr();
        desc.dtypes = dtypes.as_ptr();
        let used = owners(tensors);
        let handle = create!(context, used, mp_tensor_list_create(&desc), mp_tensor_list_destroy);
        let shapes = tensors.iter().map(|t| (t.numel, t.dtype)).collect();
        let has_absent = tensors.iter().any(|t| t.numel > 0 && t.pointer.is_null());
        Ok(TensorList { handle, shapes, has_absent })
    }

    /// Wraps a list of a network.
    pub(crate) fn lent(
        handle: Handle<sys::mp_tensor_list>, shapes: Vec<(usize, Dtype)>, has_absent: bool,
    ) -> Self {
        TensorList { handle, shapes, has_absent }
    }

    /// Wraps a list of an optimizer.
    ///
    /// # Safety
    /// `raw` has `count` FP32 tensors and lives as long as the objects that `owner` keeps.
    pub(crate) unsafe fn of_owner(
        owner: &Owner, raw: sys::mp_tensor_list_t, count: usize,
    ) -> Result<Self> {
        let numel_of = |index| {
            let (mut numel, no_data, no_dtype) = (0, ptr::null_mut(), ptr::null_mut());
            owner.context().call(|_| {
                sys::mp_tensor_list_get_tensor(raw, index as u32, no_data, &mut numel, no_dtype)
            })?;
            Ok((numel as usize, Dtype::Fp32))
        };
        let shapes: Result<Vec<_>> = (0..count).map(numel_of).collect();
        Ok(TensorList::lent(Handle::lent(owner, raw), shapes?, false))
    }

    /// Returns the number of tensors.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Returns the handle, for functions of [`sys`].
    pub fn as_raw(&self) -> sys::mp_tensor_list_t {
        self.handle.as_raw()
    }

    pub(crate) fn context(&self) -> &Context {
        self.handle.context()
    }

    pub(crate) fn owner(&self) -> &Owner {
        self.handle.owner()
    }

    /// Replaces the tensors by others of equal sizes and types, also for optimizers that use the
    /// list.
    pub fn set_data(&mut self, tensors: &[Tensor<'_>], stream: Stream) -> Result<()> {
        belong("set_data", self.context(), tensors)?;
        let shapes: Vec<_> = tensors.iter().map(|t| (t.numel, t.dtype)).collect();
        if shapes != self.shapes || tensors.iter().any(|t| t.numel > 0 && t.pointer.is_null()) {
            return Err(Error::invalid(
                "set_data: sizes and types of the tensors must not change".to_string(),
            ));
        }
        let data: Vec<_> = tensors.iter().map(|t| t.pointer).collect();
        // Old tensors are freed after the call, which waits for work that uses them.
        let mut old = Vec::new();
        self.handle.call(|list| {
            // SAFETY: as many pointers as the list has tensors, of its sizes.
            let status = unsafe { sys::mp_tensor_list_set_data(list, data.as_ptr(), stream.0) };
            if status == sys::MP_SUCCESS {
                old = self.owner().keep(owners(tensors));
            }
            status
        })
    }

    /// Returns the current elements of one tensor.  Waits for the default stream.
    pub fn to_vec<T: Float>(&self, index: usize) -> Result<Vec<T>> {
        let (numel, dtype) = *self.shapes.get(index).ok_or_else(|| {
            Error::invalid(format!("to_vec: index = {index} is outside [0, {})", self.len()))
        })?;
        if dtype != T::DTYPE {
            let wanted = T::DTYPE;
            let sentence = format!("to_vec: tensor {index} has type {dtype:?}, not {wanted:?}");
            return Err(Error::invalid(sentence));
        }
        let (mut values, mut data) = (vec![T::default(); numel], ptr::null_mut());
        let (bytes, context) = (numel * size_of::<T>(), self.context());
        // SAFETY: `get` writes only the address.  The list keeps its owner, set_data waits for this
        // call, and both sides of the copy have that many bytes.
        self.handle.call(|list| unsafe {
            let no_numel = ptr::null_mut();
            match sys::mp_tensor_list_get_tensor(
                list,
                index as u32,
                &mut data,
                no_numel,
                no_numel.cast(),
            ) {
                sys::MP_SUCCESS if numel > 0 && data.is_null() => sys::MP_SUCCESS,
                sys::MP_SUCCESS => {
                    let to = values.as_mut_ptr().cast();
                    sys::mp_memcpy(context.as_raw(), to, data, bytes, Stream::DEFAULT.0)
                }
                failed => failed,
            }
        })?;
        if numel > 0 && data.is_null() {
            return Err(Error::invalid(format!("to_vec: tensor {index} has no data")));
        }
        context.sync(Stream::DEFAULT)?;
        Ok(values)
    }

    /// Sets the number to 1 if any element is infinite or NaN; never clears it.
    pub fn check_nonfinite<D: Data<Element = f32>>(
        &self, found_inf: &D, stream: Stream,
    ) -> Result<()> {
        let (list, checks) = self.complete("check_nonfinite")?;
        let found_inf = checks.data("found_inf", found_inf, 1)?;
        run!(list, mp_check_nonfinite(found_inf, stream.0))
    }

    /// Computes the largest absolute value of the list and of each tensor.
    pub fn amax(
        &self, amax: Option<&View<'_, f32>>, per_tensor: Option<&View<'_, f32>>, stream: Stream,
    ) -> Result<()> {
        let (list, checks) = self.complete("amax")?;
        let amax = checks.optional("amax", amax.copied(), 1)?;
        let each = checks.optional("per_tensor", per_tensor.copied(), self.len() as i128)?;
        run!(list, mp_amax(amax, each, stream.0))
    }

    /// Computes sqrt(sum x^2) of the list and of each tensor.
    pub fn l2norm(
        &self, norm: Option<&View<'_, f32>>, per_tensor: Option<&View<'_, f32>>, stream: Stream,
    ) -> Result<()> {
        let (list, checks) = self.complete("l2norm")?;
        let norm = checks.optional("norm", norm.copied(), 1)?;
        let each = checks.optional("per_tensor", per_tensor.copied(), self.len() as i128)?;
        run!(list, mp_l2norm(norm, each, stream.0))
    }

    /// Counts NaN, infinities, zeros and values close to underflow in one pass.
    pub fn inspect(
        &self, report: Option<&View<'_, TensorReport>>,
        tensor_reports: Option<&View<'_, TensorReport>>, stream: Stream,
    ) -> Result<()> {
        let (list, checks) = self.complete("inspect")?;
        let report = checks.optional("report", report.copied(), 1)?;
        let each =
            checks.optional("tensor_reports", tensor_reports.copied(), self.len() as i128)?;
        run!(list, mp_inspect(report, each, stream.0))
    }

    /// Computes the given outputs of the four functions above in one pass.
    pub fn stats(&self, outputs: &StatsOutputs<'_>, stream: Stream) -> Result<()> {
        let ((list, checks), n) = (self.complete("stats")?, self.len() as i128);
        let number =
            |name, view: Option<&View<'_, f32>>, n| checks.optional(name, view.copied(), n);
        let (report, reports) = (outputs.report.copied(), outputs.tensor_reports.copied());
        let raw = sys::mp_stats_outputs_t {
            found_inf: number("found_inf", outputs.found_inf, 1)?,
            amax: number("amax", outputs.amax, 1)?,
            tensor_amax: number("tensor_amax", outputs.tensor_amax, n)?,
            norm: number("norm", outputs.norm, 1)?,
            tensor_norm: number("tensor_norm", outputs.tensor_norm, n)?,
            report: checks.optional("report", report, 1)?,
            tensor_reports: checks.optional("tensor_reports", reports, n)?,
            ..sys::mp_stats_outputs_t::zeroed()
        };
        run!(list, mp_tensor_stats(&raw, stream.0))
    }

    /// Computes out = self * inv_scale; sets `found_inf` to 1 if an element is infinite or NaN.
    pub fn unscale(
        &self, out: &TensorList, inv_scale: &View<'_, f32>, found_inf: Option<&View<'_, f32>>,
        stream: Stream,
    ) -> Result<()> {
        let (list, checks) = self.complete("unscale")?;
        checks.belongs("out", out.context())?;
        let inv_scale = checks.data("inv_scale", inv_scale, 1)?;
        let found_inf = checks.optional("found_inf", found_inf.copied(), 1)?;
        let out = out.complete("unscale")?.0.as_raw();
        run!(list, mp_unscale(out, inv_scale, found_inf, stream.0))
    }

    /// Reduces gradients over all ranks in place: post * sum(pre * self).
    pub fn all_reduce(&self, comm: &Comm, pre: f32, post: f32, stream: Stream) -> Result<()> {
        let (list, _) = self.complete("all_reduce")?;
        run!(list, mp_grads_all_reduce(comm.as_raw(), pre, post, stream.0))
    }

    /// Computes model = round(self), for programs that update the masters themselves.  Writes
    /// nothing if `found_inf` is not 0.
    pub fn round_to(
        &self, model: &TensorList, found_inf: Option<&View<'_, f32>>, options: &ModelOptions<'_>,
        stream: Stream,
    ) -> Result<()> {
        let (list, checks) = self.complete("round_to")?;
        checks.belongs("model", model.context())?;
        let found_inf = checks.optional("found_inf", found_inf.copied(), 1)?;
        let mut raw = sys::mp_model_options_default();
        raw.flags = options.flags.bits();
        raw.rounding_seed = options.rounding_seed;
        raw.t = checks.optional("t", options.t, 1)?;
        raw.overflows = checks.optional("overflows", options.overflows, 1)?;
        run!(list, mp_masters_to_model(model.as_raw(), found_inf, &raw, stream.0))
    }

    /// Returns the handle, for a kernel that accesses all tensors, and the checks of its call.
    pub(crate) fn complete<'l>(
        &'l self, call: &'l str,
    ) -> Result<(&'l Handle<sys::mp_tensor_list>, Checks<'l>)> {
        if !self.has_absent {
            return Ok((&self.handle, self.context().checks(call)));
        }
        Err(Error::invalid(format!("{call}: requires a list without absent tensors")))
    }
}

fn belong(call: &str, context: &Context, tensors: &[Tensor<'_>]) -> Result<()> {
    for (i, t) in tensors.iter().enumerate() {
        if let Some(owner) = t.owner {
            context.checks(call).belongs(&format!("tensors[{i}]"), owner.context())?;
        }
    }
    Ok(())
}
