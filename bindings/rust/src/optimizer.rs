//! Optimizers.

use crate::comm::Comm;
use crate::context::{Context, Data, Stream, TensorReport, View};
use crate::enums::{LrSchedule, OptimizerFlags, OptimizerKind, StepFlags};
use crate::error::{c_string, check, Error, Result};
use crate::owner::Handle;
use crate::scaler::Scaler;
use crate::sys;
use crate::tensors::TensorList;
use std::marker::PhantomData;
use std::mem::{size_of, size_of_val};
use std::ptr;

/// Hyperparameters of a parameter group: the learning rate and others.
pub type ParamGroup = sys::mp_param_group_t;

impl ParamGroup {
    /// Returns the defaults of the papers.
    pub fn new(kind: OptimizerKind, lr: f32) -> Self {
        sys::mp_param_group_default(kind as u32, lr)
    }

    /// Selects the learning rate schedule; its parameters are fields.
    pub fn with_schedule(mut self, schedule: LrSchedule) -> Self {
        self.lr_schedule = schedule as u32;
        self
    }

    fn sized(mut self) -> Self {
        self.struct_size = size_of::<ParamGroup>() as u32; // bytes to read
        self
    }
}

/// Description of an [`Optimizer`].
pub struct OptimizerBuilder<'a> {
    context: &'a Context,
    desc: sys::mp_optimizer_desc_t,
    lists: Vec<(&'static str, &'a TensorList)>, // those in `desc`
    tensors: usize,
    groups: Vec<ParamGroup>,
    tensor_group: Option<Vec<u32>>,
    lr_multipliers: Option<View<'a, f32>>,
    decay_multipliers: Option<View<'a, f32>>,
}

impl<'a> OptimizerBuilder<'a> {
    setters! {
        /// Sets the 16-bit copies of the masters.
        fn model(self, model: &'a TensorList) { self.desc.model = self.uses("model", model); }
        /// Sets the momentum or first moment.  By default the optimizer allocates it.
        fn m(self, m: &'a TensorList) { self.desc.m = self.uses("m", m); }
        /// Sets the second moment.  By default the optimizer allocates it.
        fn v(self, v: &'a TensorList) { self.desc.v = self.uses("v", v); }
        /// Sets gradients to add after unscaling and clipping.
        fn extra_grads(self, extra_grads: &'a TensorList) {
            self.desc.extra_grads = self.uses("extra_grads", extra_grads);
        }
        /// Sets the flags, replacing the defaults of the kind.
        fn flags(self, flags: OptimizerFlags) { self.desc.flags = flags.bits(); }
        /// Sets the seed of [`OptimizerFlags::STOCHASTIC_ROUNDING`].
        fn rounding_seed(self, seed: u64) { self.desc.rounding_seed = seed; }
        /// Adds a parameter group.
        fn group(self, group: ParamGroup) { self.groups.push(group.sized()); }
        /// Changes the last added group.
        fn change(self, change: impl FnOnce(&mut ParamGroup)) {
            if let Some(group) = self.groups.last_mut() {
                change(group);
                *group = group.sized();
            }
        }
        /// Sets the group of each tensor; default: all in the first.
        fn tensor_group(self, tensor_group: &[u32]) {
            self.tensor_group = Some(tensor_group.to_vec());
        }
        /// Sets one factor per tensor for lr.
        fn lr_multipliers(self, multipliers: &'a impl Data<Element = f32>) {
            self.lr_multipliers = Some(multipliers.view());
        }
        /// Sets one factor per tensor for weight_decay, l1 and l2.
        fn decay_multipliers(self, multipliers: &'a impl Data<Element = f32>) {
            self.decay_multipliers = Some(multipliers.view());
        }
    }

    /// Records a list, in place of an earlier one of this name.
    fn uses(&mut self, name: &'static str, list: &'a TensorList) -> sys::mp_tensor_list_t {
        self.lists.retain(|&(other, _)| other != name);
        self.lists.push((name, list));
        list.as_raw()
    }

    /// Creates the optimizer.  The library checks that the lists match.
    pub fn build(self) -> Result<Optimizer> {
        let (checks, count, mut desc) = (self.context.checks("Optimizer"), self.tensors, self.desc);
        for (name, list) in &self.lists {
            checks.belongs(name, list.context())?;
        }
        if self.tensor_group.as_ref().map_or(false, |groups| groups.len() != count) {
            let sentence =
                format!("Optimizer: tensor_group must have {count} entries, one per tensor");
            return Err(Error::invalid(sentence));
        }
        let multipliers = |name, view| checks.optional(name, view, count as i128);
        desc.num_groups = self.groups.len() as u32;
        desc.groups = self.groups.as_ptr();
        desc.tensor_group =
            self.tensor_group.as_ref().map_or(ptr::null(), |groups| groups.as_ptr());
        desc.lr_multipliers = multipliers("lr_multipliers", self.lr_multipliers)?;
        desc.decay_multipliers = multipliers("decay_multipliers", self.decay_multipliers)?;
        let multipliers = [self.lr_multipliers, self.decay_multipliers];
        let of_lists = self.lists.iter().map(|(_, list)| list.owner());
        let of_multipliers = multipliers.iter().flatten().map(|view| view.owner);
        let used = of_lists.chain(of_multipliers).cloned().collect();
        let handle = create!(self.context, used, mp_optimizer_create(&desc), mp_optimizer_destroy);
        let [mut m, mut v] = [ptr::null_mut(); 2];
        run!(handle, mp_optimizer_get_moments(&mut m, &mut v))?;
        let moments = |raw: sys::mp_tensor_list_t| -> Result<Option<TensorList>> {
            if raw.is_null() {
                return Ok(None);
            }
            // SAFETY: the list lives as long as the optimizer, and has one tensor per master.
            unsafe { TensorList::of_owner(handle.owner(), raw, count) }.map(Some)
        };
        let (m, v) = (moments(m)?, moments(v)?);
        Ok(Optimizer { handle, m, v, tensors: count, groups: self.groups.len() })
    }
}

/// An update rule and the tensors that it updates.  It shares ownership of its lists.  One struct
/// can hold network, optimizer, lists and scaler, and can be sent to another thread.  The programs
/// `train` and `gpt` of `examples/rust` train with one.
#[derive(Debug)]
pub struct Optimizer {
    handle: Handle<sys::mp_optimizer>,
    m: Option<TensorList>,
    v: Option<TensorList>,
    tensors: usize,
    groups: usize,
}

/// Options of a step; `Default` has none.
#[derive(Clone, Copy, Default)]
pub struct StepOptions<'s> {
    /// Maximum of the unscaled global norm, by clipping; 0 = no clipping.
    pub max_grad_norm: f32,
    /// Flags of the step.
    pub flags: StepFlags,
    /// Unscaled norm before clipping: 1 number.
    pub grad_norm: Option<View<'s, f32>>,
    /// 1 if this step was skipped, otherwise 0: 1 number.
    pub found_inf: Option<View<'s, f32>>,
    /// Norm of each tensor: 1 number per tensor.
    pub tensor_norms: Option<View<'s, f32>>,
    /// Largest gradient, for [`StepFlags::CHECKED`]: 1 number, read.
    pub amax: Option<View<'s, f32>>,
    /// Report on all gradients: 1 report.
    pub report: Option<View<'s, TensorReport>>,
    /// Report on each gradient: 1 report per tensor.
    pub tensor_reports: Option<View<'s, TensorReport>>,
    /// Count of 16-bit copies that overflowed: 1 number, increased.
    pub model_overflows: Option<View<'s, i64>>,
    /// Communicator of several ranks, which skip steps together.
    pub comm: Option<&'s Comm>,
    /// Outcome, a [`StepOutcome`](crate::StepOutcome): 1 number.
    pub outcome: Option<View<'s, i32>>,
    /// Count of elements that kept their old values: 1 number, increased.
    pub rejected_updates: Option<View<'s, i64>>,
}

impl Optimizer {
    /// Begins an optimizer of gradients of any type and f32 masters.
    pub fn builder<'a>(
        context: &'a Context, kind: OptimizerKind, grads: &'a TensorList, master: &'a TensorList,
    ) -> OptimizerBuilder<'a> {
        let desc = sys::mp_optimizer_desc_t {
            grads: grads.as_raw(),
            master: master.as_raw(),
            ..sys::mp_optimizer_desc_default(kind as u32)
        };
        OptimizerBuilder {
            context,
            desc,
            lists: vec![("grads", grads), ("master", master)],
            tensors: master.len(),
            groups: Vec::new(),
            tensor_group: None,
            lr_multipliers: None,
            decay_multipliers: None,
        }
    }

    /// Begins an optimizer by name, such as "adamw", with one group of its defaults, which
    /// [`change`](OptimizerBuilder::change) can modify; see `mp_optimizer_desc_from_name`.
    pub fn named<'a>(
        context: &'a Context, name: &str, lr: f32, grads: &'a TensorList, master: &'a TensorList,
    ) -> Result<OptimizerBuilder<'a>> {
        let name = c_string("name", name)?;
        let mut desc = sys::mp_optimizer_desc_t::zeroed();
        let mut group = ParamGroup::zeroed();
        let (of_desc, of_group) = (size_of_val(&desc), size_of::<ParamGroup>());
        // SAFETY: the name is read, and both structs are written during the call.
        check(unsafe {
            let (name, desc) = (name.as_ptr(), &mut desc);
            sys::mp_optimizer_desc_from_name(name, desc, of_desc, &mut group, of_group, lr)
        })?;
        let kind = OptimizerKind::from_raw(desc.kind)
            .ok_or_else(|| Error::invalid(format!("named: kind = {} is unknown", desc.kind)))?;
        let builder = Self::builder(context, kind, grads, master);
        Ok(builder.flags(OptimizerFlags::from_bits(desc.flags)).group(group))
    }

    /// Returns the momentum or first moment, or None if the optimizer has none.
    pub fn m(&self) -> Option<&TensorList> {
        self.m.as_ref()
    }

    /// Returns the second moment, or None if the optimizer has none.
    pub fn v(&self) -> Option<&TensorList> {
        self.v.as_ref()
    }

    /// Returns a checkpoint of masters, moments, the number of steps, and the scaler.  It does not
    /// contain hyperparameters, states of a network, and the position in the data.  Waits for the
    /// stream.
    pub fn save(&self, scaler: Option<&Scaler>, stream: Stream) -> Result<Vec<u8>> {
        let scaler = self.raw_scaler("save", scaler)?;
        let mut bytes = 0;
        run!(self.handle, mp_optimizer_checkpoint_size(scaler, &mut bytes))?;
        let mut checkpoint = vec![0; bytes];
        let to = checkpoint.as_mut_ptr().cast();
        run!(self.handle, mp_optimizer_save_sync(scaler, to, bytes, stream.0))?;
        Ok(checkpoint)
    }

    /// Restores a checkpoint and writes the 16-bit copies with the rounding of the optimizer.
    /// Training continues bit for bit.  The scaler must have the saved policy; `None` is the
    /// built-in scaler of the optimizer.  Waits for the stream.
    pub fn restore(
        &self, scaler: Option<&Scaler>, checkpoint: &[u8], stream: Stream,
    ) -> Result<()> {
        let scaler = self.raw_scaler("restore", scaler)?;
        let (from, bytes) = (checkpoint.as_ptr().cast(), checkpoint.len());
        run!(self.handle, mp_optimizer_restore_sync(scaler, from, bytes, stream.0))
    }

    /// Writes the 16-bit copies after the program has loaded masters, with the rounding of a step.
    pub fn write_model(&self, stream: Stream) -> Result<()> {
        run!(self.handle, mp_optimizer_write_model(stream.0))
    }

    fn raw_scaler(&self, call: &str, scaler: Option<&Scaler>) -> Result<sys::mp_scaler_t> {
        let scaler = match scaler {
            Some(scaler) => scaler,
            None => return Ok(ptr::null_mut()),
        };
        self.handle.context().checks(call).belongs("the scaler", scaler.context())?;
        Ok(scaler.as_raw())
    }

    /// Returns the handle, for functions of [`sys`].
    pub fn as_raw(&self) -> sys::mp_optimizer_t {
        self.handle.as_raw()
    }

    /// Runs a training step after the backward pass, without waiting; see `mp_scale_step`.
    pub fn scale_step(
        &self, scaler: Option<&Scaler>, options: &StepOptions<'_>, stream: Stream,
    ) -> Result<()> {
        let checks = self.handle.context().checks("scale_step");
        let (scaler, count) = (self.raw_scaler(checks.call, scaler)?, self.tensors as i128);
        let mut raw = sys::mp_step_options_default();
        raw.max_grad_norm = options.max_grad_norm;
        raw.flags = options.flags.bits();
        raw.grad_norm = checks.optional("grad_norm", options.grad_norm, 1)?;
        raw.found_inf = checks.optional("found_inf", options.found_inf, 1)?;
        raw.tensor_norms = checks.optional("tensor_norms", options.tensor_norms, count)?;
        raw.amax = checks.optional("amax", options.amax, 1)?;
        raw.report = checks.optional("report", options.report, 1)?;
        raw.tensor_reports = checks.optional("tensor_reports", options.tensor_reports, count)?;
        raw.model_overflows = checks.optional("model_overflows", options.model_overflows, 1)?;
        raw.outcome = checks.optional("outcome", options.outcome, 1)?;
        raw.rejected_updates = checks.optional("rejected_updates", options.rejected_updates, 1)?;
        raw.comm = options.comm.map_or(ptr::null(), |comm| comm.as_raw());
        run!(self.handle, mp_scale_step(scaler, &raw, stream.0))
    }

    /// Performs one update without a scaler; see `mp_optimizer_step`.
    pub fn step(
        &self, grad_scale: Option<&View<'_, f32>>, found_inf: Option<&View<'_, f32>>,
        stream: Stream,
    ) -> Result<()> {
        let checks = self.handle.context().checks("step");
        let grad_scale = checks.optional("grad_scale", grad_scale.copied(), 1)?;
        let found_inf = checks.optional("found_inf", found_inf.copied(), 1)?;
        run!(self.handle, mp_optimizer_step(grad_scale, found_inf, stream.0))
    }

    /// Replaces the hyperparameters of a group, in stream order.
    pub fn set_group(&self, index: u32, group: &ParamGroup, stream: Stream) -> Result<()> {
        let group = group.sized();
        run!(self.handle, mp_optimizer_set_group(index, &group, stream.0))
    }

    /// Returns the scaler that steps use by default: static, S = 1.  It keeps the optimizer alive.
    pub fn scaler(&self) -> Scaler {
        // SAFETY: the scaler lives as long as the optimizer.
        let handle = unsafe {
            let raw = sys::mp_optimizer_get_scaler(self.as_raw());
            Handle::lent(self.handle.owner(), raw)
        };
        Scaler::lent(handle)
    }

    /// Returns the learning rates of the latest applied step, one per group.
    pub fn lr(&self) -> View<'_, f32> {
        // SAFETY: the optimizer lives, and so do its numbers.
        self.numbers(unsafe { sys::mp_optimizer_get_lr_address(self.as_raw()) }, self.groups)
    }

    /// Returns the number of applied steps on the device: `t` of
    /// [`ModelOptions`](crate::ModelOptions).
    pub fn step_counter(&self) -> View<'_, i64> {
        // SAFETY: as above.
        self.numbers(unsafe { sys::mp_optimizer_get_step_address(self.as_raw()) }, 1)
    }

    fn numbers<T>(&self, address: *const T, len: usize) -> View<'_, T> {
        let owner = self.handle.owner();
        View { owner, pointer: address as *mut T, len, borrowed: PhantomData }
    }

    /// Computes the loss term of l1 and l2: 1 number.
    pub fn regularization(&self, loss: &View<'_, f32>, stream: Stream) -> Result<()> {
        let loss = self.handle.context().checks("regularization").data("loss", loss, 1)?;
        run!(self.handle, mp_optimizer_regularization(loss, stream.0))
    }

    /// Returns the number of applied steps.  Waits for the stream.
    pub fn get_step(&self, stream: Stream) -> Result<i64> {
        let mut t = 0;
        run!(self.handle, mp_optimizer_get_step_sync(&mut t, ptr::null_mut(), stream.0))?;
        Ok(t)
    }

    /// Restores the number of applied steps.  Waits for the stream.
    pub fn set_step(&self, t: i64, stream: Stream) -> Result<()> {
        run!(self.handle, mp_optimizer_set_step_sync(t, ptr::null(), stream.0))
    }
}
