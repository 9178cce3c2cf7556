//! Loss scalers.

use crate::context::{Context, Data, Float, Stream, View};
use crate::enums::{
    AccumulateFlags, ScalerFlags, ScalerPolicy, ScalerPreset, ScalerStatus, StepOutcome,
};
use crate::error::{c_string, check, read, Result};
use crate::owner::Handle;
use crate::sys;
use crate::tensors::TensorList;
use std::marker::PhantomData;
use std::mem::size_of;

/// Configuration of a [`Scaler`]; see the manual of its fields.
pub type ScalerConfig = sys::mp_scaler_config_t;
/// State of a [`Scaler`], for checkpoints.
pub type ScalerState = sys::mp_scaler_state_t;

impl ScalerConfig {
    /// Returns the defaults of a policy.
    pub fn new(policy: ScalerPolicy) -> Self {
        sys::mp_scaler_config_default(policy as u32)
    }

    /// Returns the policy of another framework.
    pub fn preset(preset: ScalerPreset) -> Self {
        sys::mp_scaler_config_preset(preset as u32)
    }

    /// Adds flags.
    pub fn with_flags(mut self, flags: ScalerFlags) -> Self {
        self.flags |= flags.bits();
        self
    }

    /// Parses a name from a command line, such as "dynamic" or "128".
    pub fn named(name: &str) -> Result<Self> {
        let name = c_string("name", name)?;
        let mut config = Self::new(ScalerPolicy::Static);
        // SAFETY: the name is read and the config written during the call.
        check(unsafe {
            sys::mp_scaler_config_from_name(name.as_ptr(), &mut config, size_of::<Self>())
        })?;
        Ok(config)
    }
}

impl ScalerState {
    /// Returns `status` as an enum, or None if it is unknown to this crate.
    pub fn scaler_status(&self) -> Option<ScalerStatus> {
        ScalerStatus::from_raw(self.status)
    }
}

/// A loss scaler, whose scale S is in device memory.  It allocates memory only when it is created,
/// and can be sent to another thread.
#[derive(Debug)]
pub struct Scaler {
    handle: Handle<sys::mp_scaler>,
}

impl Scaler {
    /// Creates a scaler with `S = config.init_scale`.
    pub fn new(context: &Context, config: &ScalerConfig) -> Result<Self> {
        let mut config = *config;
        config.struct_size = size_of::<ScalerConfig>() as u32; // bytes to read
        let handle = create!(context, Vec::new(), mp_scaler_create(&config), mp_scaler_destroy);
        Ok(Scaler { handle })
    }

    /// Wraps the scaler of an optimizer.
    pub(crate) fn lent(handle: Handle<sys::mp_scaler>) -> Self {
        Scaler { handle }
    }

    /// Returns the handle, for functions of [`sys`].
    pub fn as_raw(&self) -> sys::mp_scaler_t {
        self.handle.as_raw()
    }

    pub(crate) fn context(&self) -> &Context {
        self.handle.context()
    }

    /// Returns S.
    pub fn scale(&self) -> View<'_, f32> {
        // SAFETY: the scaler lives.
        self.number(unsafe { sys::mp_scaler_get_scale_address(self.as_raw()) })
    }

    /// Returns 1 / S.
    pub fn inv_scale(&self) -> View<'_, f32> {
        // SAFETY: the scaler lives.
        self.number(unsafe { sys::mp_scaler_get_inv_scale_address(self.as_raw()) })
    }

    /// Returns the overflow flag, which an update clears.
    pub fn found_inf(&self) -> View<'_, f32> {
        // SAFETY: the scaler lives.
        self.number(unsafe { sys::mp_scaler_get_found_inf_address(self.as_raw()) })
    }

    fn number(&self, address: *const f32) -> View<'_, f32> {
        let (owner, pointer) = (self.handle.owner(), address as *mut f32);
        View { owner, pointer, len: 1, borrowed: PhantomData }
    }

    /// Applies the policy once; `scale_step` of an optimizer already does so.
    pub fn update(&self, amax: Option<&View<'_, f32>>, stream: Stream) -> Result<()> {
        let amax = self.context().checks("update").optional("amax", amax.copied(), 1)?;
        run!(self.handle, mp_scaler_update(amax, stream.0))
    }

    /// Computes out\[i\] = loss\[i\] S.
    pub fn scale_loss<T: Float>(
        &self, loss: &impl Data<Element = T>, out: &impl Data<Element = T>, stream: Stream,
    ) -> Result<()> {
        let (checks, len) = (self.context().checks("scale_loss"), loss.view().len);
        let loss = checks.data("loss", loss, 0)?.cast();
        let out = checks.data("out", out, len as i128)?.cast();
        let dtype = T::DTYPE as u32;
        run!(self.handle, mp_scale_loss(loss, out, dtype, len as i64, stream.0))
    }

    /// Computes sums += weight / S * grads in f32 and checks for overflow.
    pub fn accumulate(
        &self, grads: &TensorList, sums: &TensorList, weight: f32, flags: AccumulateFlags,
        stream: Stream,
    ) -> Result<()> {
        let (grads, sums) = self.pair("accumulate", grads, sums)?;
        run!(self.handle, mp_grads_accumulate(grads, sums, weight, flags.bits(), stream.0))
    }

    /// Computes out = grads / S in f32 and checks for overflow, for custom optimizers.
    pub fn grads_to_fp32(
        &self, grads: &TensorList, out: &TensorList, stream: Stream,
    ) -> Result<()> {
        let (grads, out) = self.pair("grads_to_fp32", grads, out)?;
        run!(self.handle, mp_grads_to_fp32(grads, out, stream.0))
    }

    fn pair(
        &self, call: &str, input: &TensorList, output: &TensorList,
    ) -> Result<(sys::mp_tensor_list_t, sys::mp_tensor_list_t)> {
        for list in [input, output] {
            self.context().checks(call).belongs("a list", list.context())?;
        }
        Ok((input.complete(call)?.0.as_raw(), output.complete(call)?.0.as_raw()))
    }

    /// Returns the outcome of a step without waiting, or None if it is unknown to this crate.
    /// Steps are numbered from 1, like `state().steps`.
    pub fn query(&self, step: i64) -> Result<Option<StepOutcome>> {
        let outcome = query!(self, read(outcome), mp_scaler_query_step(step))?;
        Ok(StepOutcome::from_raw(outcome))
    }

    /// Returns (scale, status) of the last updates, oldest first, at most `capacity` and
    /// `config.history_length`.  Waits for the stream.  The status is 0 = clean, 1 = overflow, 2 =
    /// overflow with NaN, otherwise a [`StepOutcome`].
    pub fn history(&self, capacity: usize, stream: Stream) -> Result<Vec<(f32, i32)>> {
        let (mut scales, mut skipped) = (vec![0.0; capacity], vec![0; capacity]);
        let (mut count, capacity) = (0, capacity as i64);
        let (to_scales, to_skipped) = (scales.as_mut_ptr(), skipped.as_mut_ptr());
        run!(
            self.handle,
            mp_scaler_get_history_sync(capacity, to_scales, to_skipped, &mut count, stream.0)
        )?;
        Ok(scales.into_iter().zip(skipped).take(count as usize).collect())
    }

    /// Computes the factor that unscales and clips, for
    /// [`Optimizer::step`](crate::Optimizer::step).  `scaled_norm` is the norm before unscaling.
    pub fn clip_factor(
        &self, scaled_norm: &View<'_, f32>, max_norm: f32, factor: &View<'_, f32>, stream: Stream,
    ) -> Result<()> {
        let checks = self.context().checks("clip_factor");
        let norm = checks.data("scaled_norm", scaled_norm, 1)?;
        let factor = checks.data("factor", factor, 1)?;
        let inv_scale = self.inv_scale().pointer;
        run!(self.context(), mp_clip_factor(norm, inv_scale, max_norm, factor, stream.0))
    }

    /// Returns the state.  Waits for the stream.
    pub fn state(&self, stream: Stream) -> Result<ScalerState> {
        let mut state = ScalerState::zeroed();
        run!(self.handle, mp_scaler_get_state_sync(&mut state, stream.0))?;
        Ok(state)
    }

    /// Restores a saved state.  Waits for the stream.
    pub fn set_state(&self, state: &ScalerState, stream: Stream) -> Result<()> {
        let mut state = *state;
        state.struct_size = size_of::<ScalerState>() as u32;
        run!(self.handle, mp_scaler_set_state_sync(&state, stream.0))
    }
}
