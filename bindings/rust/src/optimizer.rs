//! An update rule and the tensors that it updates.

use crate::comm::Comm;
use crate::context::{Context, Data, Stream, TensorReport, View};
use crate::enums::OptimizerKind;
use crate::error::{check, Error, Result};
use crate::scaler::Scaler;
use crate::sys;
use crate::tensors::TensorList;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr;

/// Numbers only: the learning rate and the rest of a parameter group.
pub type Hyper = sys::mp_hyper_t;

impl Hyper {
    /// The defaults of the papers.
    pub fn new(kind: OptimizerKind, lr: f32) -> Self {
        sys::mp_hyper_default(kind as u32, lr)
    }

    fn sized(mut self) -> Self {
        self.struct_size = size_of::<Hyper>() as u32; // so many bytes are read
        self
    }
}

/// What an [`Optimizer`] is made of.
pub struct OptimizerBuilder<'a> {
    context: &'a Context,
    kind: OptimizerKind,
    flags: u32,
    rounding_seed: u64,
    groups: Vec<Hyper>,
    tensor_group: Option<Vec<u32>>,
    grads: &'a TensorList<'a>,
    master: &'a TensorList<'a>,
    model: Option<&'a TensorList<'a>>,
    m: Option<&'a TensorList<'a>>,
    v: Option<&'a TensorList<'a>>,
    extra_grads: Option<&'a TensorList<'a>>,
    lr_multipliers: Option<View<'a, f32>>,
    decay_multipliers: Option<View<'a, f32>>,
}

impl<'a> OptimizerBuilder<'a> {
    /// The 16-bit copies of the masters.
    pub fn model(mut self, model: &'a TensorList<'a>) -> Self {
        self.model = Some(model);
        self
    }

    /// Momentum, or the first moment.
    pub fn m(mut self, m: &'a TensorList<'a>) -> Self {
        self.m = Some(m);
        self
    }

    /// The second moment.
    pub fn v(mut self, v: &'a TensorList<'a>) -> Self {
        self.v = Some(v);
        self
    }

    /// Added to the gradients after unscaling and clipping.
    pub fn extra_grads(mut self, extra_grads: &'a TensorList<'a>) -> Self {
        self.extra_grads = Some(extra_grads);
        self
    }

    /// `sys::MP_OPT_*`, or-ed.
    pub fn flags(mut self, flags: u32) -> Self {
        self.flags = flags;
        self
    }

    /// Of `sys::MP_OPT_STOCHASTIC_ROUNDING`.
    pub fn rounding_seed(mut self, seed: u64) -> Self {
        self.rounding_seed = seed;
        self
    }

    /// One more group of parameters.
    pub fn group(mut self, hyper: Hyper) -> Self {
        self.groups.push(hyper.sized());
        self
    }

    /// The group of each tensor; all are in the first without this.
    pub fn tensor_group(mut self, tensor_group: &[u32]) -> Self {
        self.tensor_group = Some(tensor_group.to_vec());
        self
    }

    /// One factor per tensor for lr.
    pub fn lr_multipliers<D: Data<Element = f32>>(mut self, multipliers: &'a D) -> Self {
        self.lr_multipliers = Some(multipliers.view());
        self
    }

    /// One factor per tensor for weight_decay, l1 and l2.
    pub fn decay_multipliers<D: Data<Element = f32>>(mut self, multipliers: &'a D) -> Self {
        self.decay_multipliers = Some(multipliers.view());
        self
    }

    /// The library checks that the lists fit together.
    pub fn build(self) -> Result<Optimizer<'a>> {
        let count = self.master.len();
        let lists = [
            ("grads", Some(self.grads)),
            ("master", Some(self.master)),
            ("model", self.model),
            ("m", self.m),
            ("v", self.v),
            ("extra_grads", self.extra_grads),
        ];
        for (name, list) in lists {
            if list.map_or(false, |l| l.context().as_raw() != self.context.as_raw()) {
                return Err(Error::invalid(format!(
                    "Optimizer: {name} belongs to another context"
                )));
            }
        }
        if self.tensor_group.as_ref().map_or(false, |groups| groups.len() != count) {
            let sentence =
                format!("Optimizer: tensor_group has not one entry for each of {count} tensors");
            return Err(Error::invalid(sentence));
        }
        let raw_list =
            |list: Option<&TensorList<'_>>| list.map_or(ptr::null_mut(), TensorList::as_raw);
        let multipliers = |name, view: Option<View<'a, f32>>| {
            self.master.output("Optimizer", name, view.as_ref(), count)
        };
        let mut desc = sys::mp_optimizer_desc_default(self.kind as u32);
        desc.flags = self.flags;
        desc.rounding_seed = self.rounding_seed;
        desc.num_groups = self.groups.len() as u32;
        desc.groups = self.groups.as_ptr();
        desc.tensor_group =
            self.tensor_group.as_ref().map_or(ptr::null(), |groups| groups.as_ptr());
        desc.grads = self.grads.as_raw();
        desc.master = self.master.as_raw();
        desc.model = raw_list(self.model);
        desc.m = raw_list(self.m);
        desc.v = raw_list(self.v);
        desc.extra_grads = raw_list(self.extra_grads);
        desc.lr_multipliers = multipliers("lr_multipliers", self.lr_multipliers)?;
        desc.decay_multipliers = multipliers("decay_multipliers", self.decay_multipliers)?;
        let mut raw = ptr::null_mut();
        // SAFETY: groups and tensor_group are copied by the call; lists and multipliers are borrowed for
        // as long as the optimizer lives, and belong to its context.
        check(unsafe { sys::mp_optimizer_create(&mut raw, self.context.as_raw(), &desc) })?;
        Ok(Optimizer {
            context: self.context,
            raw,
            master: self.master,
            groups: self.groups.len(),
            borrowed: PhantomData,
        })
    }
}

/// Borrows the lists that it updates:
/// ```compile_fail,E0505
/// use mpcore::{Context, Device, Hyper, Optimizer, OptimizerKind, Tensor, TensorList};
/// let context = Context::new(Device::Host).unwrap();
/// let buffer = context.alloc::<f32>(1).unwrap();
/// let list = TensorList::new(&context, &[Tensor::new(&buffer)]).unwrap();
/// let kind = OptimizerKind::Sgd;
/// let optimizer = Optimizer::builder(&context, kind, &list, &list)
///     .group(Hyper::new(kind, 1.0)).build().unwrap();
/// drop(list);
/// optimizer.get_step(mpcore::Stream::DEFAULT);
/// ```
#[derive(Debug)]
pub struct Optimizer<'a> {
    context: &'a Context,
    raw: sys::mp_optimizer_t,
    master: &'a TensorList<'a>,
    groups: usize,
    borrowed: PhantomData<&'a ()>,
}

/// What a step does besides; `Default` is nothing.
#[derive(Clone, Copy, Default)]
pub struct StepOptions<'s> {
    /// Clip the unscaled global norm to this; 0 = no clipping.
    pub max_grad_norm: f32,
    /// `sys::MP_STEP_*`, or-ed.
    pub flags: u32,
    /// 1 number: the unscaled norm before clipping.
    pub grad_norm: Option<View<'s, f32>>,
    /// 1 number: 1 if this step was skipped, else 0.
    pub found_inf: Option<View<'s, f32>>,
    /// 1 number per tensor.
    pub tensor_norms: Option<View<'s, f32>>,
    /// 1 number, with `sys::MP_STEP_CHECKED`: the largest gradient as it was measured.
    pub amax: Option<View<'s, f32>>,
    /// 1 report on the gradients.
    pub report: Option<View<'s, TensorReport>>,
    /// 1 report per tensor.
    pub tensor_reports: Option<View<'s, TensorReport>>,
    /// 1 number, increased by the 16-bit copies that were too large.
    pub model_overflows: Option<View<'s, i64>>,
    /// The step is one of several ranks that skip together.
    pub comm: Option<&'s Comm>,
}

impl<'a> Optimizer<'a> {
    /// Gradients of any type, masters of f32.
    pub fn builder(
        context: &'a Context,
        kind: OptimizerKind,
        grads: &'a TensorList<'a>,
        master: &'a TensorList<'a>,
    ) -> OptimizerBuilder<'a> {
        OptimizerBuilder {
            context,
            kind,
            flags: sys::mp_optimizer_desc_default(kind as u32).flags,
            rounding_seed: 0,
            groups: Vec::new(),
            tensor_group: None,
            grads,
            master,
            model: None,
            m: None,
            v: None,
            extra_grads: None,
            lr_multipliers: None,
            decay_multipliers: None,
        }
    }

    /// For calls of [`sys`].
    pub fn as_raw(&self) -> sys::mp_optimizer_t {
        self.raw
    }

    /// Everything between backward and the next forward, without waiting.
    pub fn scale_step(
        &self,
        scaler: Option<&Scaler<'_>>,
        options: &StepOptions<'_>,
        stream: Stream,
    ) -> Result<()> {
        if scaler.map_or(false, |s| s.context().as_raw() != self.context.as_raw()) {
            return Err(Error::invalid(
                "scale_step: the scaler belongs to another context".to_string(),
            ));
        }
        let (call, list, count) = ("scale_step", self.master, self.master.len());
        let mut raw = sys::mp_step_options_default();
        raw.max_grad_norm = options.max_grad_norm;
        raw.flags = options.flags;
        raw.grad_norm = list.output(call, "grad_norm", options.grad_norm.as_ref(), 1)?;
        raw.found_inf = list.output(call, "found_inf", options.found_inf.as_ref(), 1)?;
        raw.tensor_norms =
            list.output(call, "tensor_norms", options.tensor_norms.as_ref(), count)?;
        raw.amax = list.output(call, "amax", options.amax.as_ref(), 1)?;
        raw.report = list.output(call, "report", options.report.as_ref(), 1)?;
        raw.tensor_reports =
            list.output(call, "tensor_reports", options.tensor_reports.as_ref(), count)?;
        raw.model_overflows =
            list.output(call, "model_overflows", options.model_overflows.as_ref(), 1)?;
        raw.comm = options.comm.map_or(ptr::null(), |comm| comm.as_raw());
        let scaler = scaler.map_or(ptr::null_mut(), Scaler::as_raw);
        // SAFETY: the optimizer and what it borrows live; the outputs belong to its context and are
        // large enough; memory that is freed later waits for the kernels.
        check(unsafe { sys::mp_scale_step(self.raw, scaler, &raw, stream.0) })
    }

    /// One update without a scaler, see `mp_optimizer_step`.
    pub fn step(
        &self,
        grad_scale: Option<&View<'_, f32>>,
        found_inf: Option<&View<'_, f32>>,
        stream: Stream,
    ) -> Result<()> {
        let grad_scale = self.master.output("step", "grad_scale", grad_scale, 1)?;
        let found_inf = self.master.output("step", "found_inf", found_inf, 1)?;
        // SAFETY: as in scale_step.
        check(unsafe { sys::mp_optimizer_step(self.raw, grad_scale, found_inf, stream.0) })
    }

    /// Replaces the hyperparameters of a group, in stream order.
    pub fn set_hyper(&self, group: u32, hyper: &Hyper, stream: Stream) -> Result<()> {
        let hyper = hyper.sized();
        // SAFETY: read during the call.
        check(unsafe { sys::mp_optimizer_set_hyper(self.raw, group, &hyper, stream.0) })
    }

    /// The learning rates of the latest applied step, one per group.
    pub fn lr(&self) -> View<'_, f32> {
        // SAFETY: the optimizer lives, and so do its numbers.
        self.numbers(unsafe { sys::mp_optimizer_lr(self.raw) }, self.groups)
    }

    /// The number of applied steps, on the device: `t` of [`ModelOptions`](crate::ModelOptions).
    pub fn step_counter(&self) -> View<'_, i64> {
        // SAFETY: as above.
        self.numbers(unsafe { sys::mp_optimizer_step_counter(self.raw) }, 1)
    }

    fn numbers<T>(&self, address: *const T, len: usize) -> View<'_, T> {
        let context = self.context.as_raw();
        View { context, pointer: address as *mut T, len, borrowed: PhantomData }
    }

    /// 1 number: what l1 and l2 add to the loss.
    pub fn regularization(&self, loss: &View<'_, f32>, stream: Stream) -> Result<()> {
        let loss = self.master.output("regularization", "loss", Some(loss), 1)?;
        // SAFETY: one number of this context.
        check(unsafe { sys::mp_optimizer_regularization(self.raw, loss, stream.0) })
    }

    /// The number of applied steps; waits for the stream.
    pub fn get_step(&self, stream: Stream) -> Result<i64> {
        let mut t = 0;
        // SAFETY: `t` is written during the call.
        check(unsafe { sys::mp_optimizer_get_step_sync(self.raw, &mut t, stream.0) })?;
        Ok(t)
    }

    /// For a checkpoint; waits for the stream.
    pub fn set_step(&self, t: i64, stream: Stream) -> Result<()> {
        // SAFETY: the optimizer lives.
        check(unsafe { sys::mp_optimizer_set_step_sync(self.raw, t, stream.0) })
    }
}

impl Drop for Optimizer<'_> {
    fn drop(&mut self) {
        // SAFETY: made by mp_optimizer_create.
        unsafe { sys::mp_optimizer_destroy(self.raw) }
    }
}
