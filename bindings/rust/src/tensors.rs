//! Many tensors treated as one.

use crate::comm::Comm;
use crate::context::{at_least, Context, Data, Float, Plain, Stream, TensorReport, View};
use crate::enums::Dtype;
use crate::error::{check, Error, Result};
use crate::sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

/// How masters become their 16-bit copy; `Default` clamps what is too large.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelOptions<'s> {
    /// `sys::MP_OPT_MODEL_OVERFLOW`, `sys::MP_OPT_STOCHASTIC_ROUNDING`, or-ed.
    pub flags: u32,
    /// Of stochastic rounding.
    pub rounding_seed: u64,
    /// 1 number, for stochastic rounding: the updates that the masters have seen.
    pub t: Option<View<'s, i64>>,
    /// 1 number, increased by the copies that were too large.
    pub overflows: Option<View<'s, i64>>,
}

/// What [`TensorList::stats`] is to write, each optional: 1 element, or one per tensor.
#[derive(Clone, Copy, Default)]
pub struct StatsOutputs<'s> {
    /// Set to 1 if any element is infinite or NaN; never cleared.
    pub found_inf: Option<&'s View<'s, f32>>,
    /// Largest absolute value.
    pub amax: Option<&'s View<'s, f32>>,
    /// Of each tensor.
    pub tensor_amax: Option<&'s View<'s, f32>>,
    /// sqrt(sum x^2).
    pub norm: Option<&'s View<'s, f32>>,
    /// Of each tensor.
    pub tensor_norm: Option<&'s View<'s, f32>>,
    /// What is in the list.
    pub report: Option<&'s View<'s, TensorReport>>,
    /// What is in each tensor.
    pub tensor_reports: Option<&'s View<'s, TensorReport>>,
}

/// One tensor of a list, of any type.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    context: sys::mp_context_t,
    pointer: *mut c_void,
    numel: usize,
    dtype: Dtype,
    borrowed: PhantomData<&'a ()>,
}

impl<'a> Tensor<'a> {
    /// All elements of a buffer or a view.
    pub fn new<D: Data>(data: &'a D) -> Self
    where
        D::Element: Float,
    {
        let view = data.view();
        Tensor {
            context: view.context,
            pointer: if view.len == 0 { ptr::null_mut() } else { view.pointer.cast() },
            numel: view.len,
            dtype: D::Element::DTYPE,
            borrowed: PhantomData,
        }
    }

    /// In the model list of an optimizer: a parameter without a 16-bit copy.
    pub fn absent(numel: usize) -> Self {
        Tensor {
            context: ptr::null_mut(),
            pointer: ptr::null_mut(),
            numel,
            dtype: Dtype::Fp16,
            borrowed: PhantomData,
        }
    }
}

/// Its table of pointers is on the device, so that each call is one launch.
///
/// The list borrows its tensors:
/// ```compile_fail,E0505
/// use mpcore::{Context, Device, Tensor, TensorList};
/// let context = Context::new(Device::Host).unwrap();
/// let buffer = context.alloc::<f32>(1).unwrap();
/// let list = TensorList::new(&context, &[Tensor::new(&buffer)]).unwrap();
/// drop(buffer);
/// list.len();
/// ```
#[derive(Debug)]
pub struct TensorList<'a> {
    context: &'a Context,
    raw: sys::mp_tensor_list_t,
    shapes: Vec<(usize, Dtype)>,
    has_absent: bool,
    is_lent: bool,
}

impl<'a> TensorList<'a> {
    /// Of tensors of this context.
    pub fn new(context: &'a Context, tensors: &[Tensor<'a>]) -> Result<Self> {
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
        let mut raw = ptr::null_mut();
        // SAFETY: three arrays of `count`, copied by the call; the tensors are borrowed for as long as
        // the list lives.
        check(unsafe { sys::mp_tensor_list_create(&mut raw, context.as_raw(), &desc) })?;
        let shapes = tensors.iter().map(|t| (t.numel, t.dtype)).collect();
        let has_absent = tensors.iter().any(|t| t.numel > 0 && t.pointer.is_null());
        Ok(TensorList { context, raw, shapes, has_absent, is_lent: false })
    }

    /// One of a network, which gives it back.
    pub(crate) fn lent(
        context: &'a Context,
        raw: sys::mp_tensor_list_t,
        shapes: Vec<(usize, Dtype)>,
        has_absent: bool,
    ) -> Self {
        TensorList { context, raw, shapes, has_absent, is_lent: true }
    }

    /// Tensors.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// For calls of [`sys`].
    pub fn as_raw(&self) -> sys::mp_tensor_list_t {
        self.raw
    }

    pub(crate) fn context(&self) -> &'a Context {
        self.context
    }

    /// Points the list at other tensors of the same sizes and types.
    pub fn set_data(&mut self, tensors: &[Tensor<'a>], stream: Stream) -> Result<()> {
        belong("set_data", self.context, tensors)?;
        let shapes: Vec<_> = tensors.iter().map(|t| (t.numel, t.dtype)).collect();
        if shapes != self.shapes || tensors.iter().any(|t| t.numel > 0 && t.pointer.is_null()) {
            return Err(Error::invalid("set_data: tensors of other sizes or types".to_string()));
        }
        let data: Vec<_> = tensors.iter().map(|t| t.pointer).collect();
        // SAFETY: as many pointers as the list has tensors, of the sizes that it knows.
        check(unsafe { sys::mp_tensor_list_set_data(self.raw, data.as_ptr(), stream.0) })
    }

    /// Sets the number to 1 if any element is infinite or NaN; never clears it.
    pub fn check_nonfinite<D: Data<Element = f32>>(
        &self,
        found_inf: &D,
        stream: Stream,
    ) -> Result<()> {
        let found_inf = self.output("check_nonfinite", "found_inf", Some(&found_inf.view()), 1)?;
        // SAFETY: one number of this context.
        check(unsafe {
            sys::mp_check_nonfinite(self.complete("check_nonfinite")?, found_inf, stream.0)
        })
    }

    /// Largest absolute value, over the list and of each tensor.
    pub fn amax(
        &self,
        amax: Option<&View<'_, f32>>,
        per_tensor: Option<&View<'_, f32>>,
        stream: Stream,
    ) -> Result<()> {
        let amax = self.output("amax", "amax", amax, 1)?;
        let each = self.output("amax", "per_tensor", per_tensor, self.len())?;
        // SAFETY: one number, and one per tensor, of this context.
        check(unsafe { sys::mp_amax(self.complete("amax")?, amax, each, stream.0) })
    }

    /// sqrt(sum x^2), over the list and of each tensor.
    pub fn l2norm(
        &self,
        norm: Option<&View<'_, f32>>,
        per_tensor: Option<&View<'_, f32>>,
        stream: Stream,
    ) -> Result<()> {
        let norm = self.output("l2norm", "norm", norm, 1)?;
        let each = self.output("l2norm", "per_tensor", per_tensor, self.len())?;
        // SAFETY: one number, and one per tensor, of this context.
        check(unsafe { sys::mp_l2norm(self.complete("l2norm")?, norm, each, stream.0) })
    }

    /// Looks at every element once: NaN, infinities, zeros, what is about to underflow.
    pub fn inspect(
        &self,
        report: Option<&View<'_, TensorReport>>,
        tensor_reports: Option<&View<'_, TensorReport>>,
        stream: Stream,
    ) -> Result<()> {
        let report = self.output("inspect", "report", report, 1)?;
        let each = self.output("inspect", "tensor_reports", tensor_reports, self.len())?;
        // SAFETY: one report, and one per tensor, of this context.
        check(unsafe { sys::mp_inspect(self.complete("inspect")?, report, each, stream.0) })
    }

    /// What is given of the four above, in one pass over the elements.
    pub fn stats(&self, outputs: &StatsOutputs<'_>, stream: Stream) -> Result<()> {
        let (f, n) = ("stats", self.len());
        let raw = sys::mp_stats_outputs_t {
            found_inf: self.output(f, "found_inf", outputs.found_inf, 1)?,
            amax: self.output(f, "amax", outputs.amax, 1)?,
            tensor_amax: self.output(f, "tensor_amax", outputs.tensor_amax, n)?,
            norm: self.output(f, "norm", outputs.norm, 1)?,
            tensor_norm: self.output(f, "tensor_norm", outputs.tensor_norm, n)?,
            report: self.output(f, "report", outputs.report, 1)?,
            tensor_reports: self.output(f, "tensor_reports", outputs.tensor_reports, n)?,
            ..sys::mp_stats_outputs_t::zeroed()
        };
        // SAFETY: what is not NULL has one element or one per tensor, in memory of this context.
        check(unsafe { sys::mp_tensor_stats(self.complete(f)?, &raw, stream.0) })
    }

    /// out = self * inv_scale; `found_inf` becomes 1 where an element is infinite or NaN.
    pub fn unscale(
        &self,
        out: &TensorList<'_>,
        inv_scale: &View<'_, f32>,
        found_inf: Option<&View<'_, f32>>,
        stream: Stream,
    ) -> Result<()> {
        if out.context.as_raw() != self.context.as_raw() {
            return Err(Error::invalid("unscale: out belongs to another context".to_string()));
        }
        let inv_scale = self.output("unscale", "inv_scale", Some(inv_scale), 1)?;
        let found_inf = self.output("unscale", "found_inf", found_inf, 1)?;
        let (list, out) = (self.complete("unscale")?, out.complete("unscale")?);
        // SAFETY: two lists of this context, which the library compares, and one number each.
        check(unsafe { sys::mp_unscale(list, out, inv_scale, found_inf, stream.0) })
    }

    /// Gradients of all ranks: `post` times the sum of `pre` times each rank's, in place.
    pub fn all_reduce(&self, comm: &Comm, pre: f32, post: f32, stream: Stream) -> Result<()> {
        let list = self.complete("all_reduce")?;
        // SAFETY: whoever made the table has said that its callbacks do what they should.
        check(unsafe { sys::mp_grad_all_reduce(list, comm.as_raw(), pre, post, stream.0) })
    }

    /// model = round(self), the copy that a step writes, for a program that updates its masters
    /// itself.  Where `found_inf` is not 0, nothing is written.
    pub fn round_to(
        &self,
        model: &TensorList<'_>,
        found_inf: Option<&View<'_, f32>>,
        options: &ModelOptions<'_>,
        stream: Stream,
    ) -> Result<()> {
        if model.context.as_raw() != self.context.as_raw() {
            return Err(Error::invalid("round_to: model belongs to another context".to_string()));
        }
        let found_inf = self.output("round_to", "found_inf", found_inf, 1)?;
        let mut raw = sys::mp_model_options_default();
        raw.flags = options.flags;
        raw.rounding_seed = options.rounding_seed;
        raw.t = self.output("round_to", "t", options.t.as_ref(), 1)?;
        raw.overflows = self.output("round_to", "overflows", options.overflows.as_ref(), 1)?;
        let list = self.complete("round_to")?;
        // SAFETY: two lists of this context, which the library compares, and NULL or one number.
        check(unsafe { sys::mp_masters_to_model(list, model.raw, found_inf, &raw, stream.0) })
    }

    pub(crate) fn output<T: Plain>(
        &self,
        call: &str,
        name: &str,
        view: Option<&View<'_, T>>,
        needed: usize,
    ) -> Result<*mut T> {
        match view {
            None => Ok(ptr::null_mut()),
            Some(view) => {
                self.context.owns(call, name, view)?;
                at_least(call, name, view.len, needed as i128)?;
                Ok(view.pointer)
            }
        }
    }

    /// The list, for a kernel that reads or writes all of it.
    pub(crate) fn complete(&self, call: &str) -> Result<sys::mp_tensor_list_t> {
        if !self.has_absent {
            return Ok(self.raw);
        }
        Err(Error::invalid(format!("{call}: the list has an absent tensor")))
    }
}

fn belong(call: &str, context: &Context, tensors: &[Tensor<'_>]) -> Result<()> {
    for (i, t) in tensors.iter().enumerate() {
        if !t.pointer.is_null() && t.context != context.as_raw() {
            return Err(Error::invalid(format!("{call}: tensors[{i}] belongs to another context")));
        }
    }
    Ok(())
}

impl Drop for TensorList<'_> {
    fn drop(&mut self) {
        if !self.is_lent {
            // SAFETY: made by mp_tensor_list_create; the optimizers over it have borrowed it and are gone.
            unsafe { sys::mp_tensor_list_destroy(self.raw) }
        }
    }
}
