//! Epilogue and output options, shared by GEMM and convolution.

use crate::context::{Checks, Data, Float, Stream, View};
use crate::enums::{Activation, Dtype};
use crate::error::{Error, Result};
use crate::owner::Owner;
use crate::sys;
use std::ffi::c_void;
use std::ptr;

/// A pointer argument with its number of elements.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) pointer: *mut c_void,
    pub(crate) len: usize,
    pub(crate) dtype: Dtype,
}

pub(crate) fn operand<D: Data>(data: &D) -> Operand<'_>
where
    D::Element: Float,
{
    let view = data.view();
    Operand {
        owner: view.owner,
        pointer: view.pointer.cast(),
        len: view.len,
        dtype: D::Element::DTYPE,
    }
}

impl Operand<'_> {
    /// Checks that the pointer belongs to the context and has enough elements.
    pub(crate) fn check(&self, checks: Checks<'_>, name: &str, needed: i128) -> Result<()> {
        checks.belongs(name, self.owner.context())?;
        checks.at_least(name, self.len, needed)
    }
}

/// Statistics of the gradients that a call stores; `Default` has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct GradStats<'a> {
    /// Set to 1 if a gradient is infinite or NaN: 1 number, `scaler.found_inf()`.
    pub found_inf: Option<View<'a, f32>>,
    /// Updated to max(amax, |gradient|): 1 number.
    pub amax: Option<View<'a, f32>>,
}

impl GradStats<'_> {
    pub(crate) fn raw(&self, checks: Checks<'_>) -> Result<sys::mp_grad_stats_t> {
        Ok(sys::mp_grad_stats_t {
            found_inf: checks.optional("found_inf", self.found_inf, 1)?,
            amax: checks.optional("amax", self.amax, 1)?,
        })
    }
}

/// Operations on the accumulators before they are rounded and stored; `Default` has none.  The
/// methods correspond to the fields of `mp_epilogue_t`.
#[derive(Clone, Copy, Default)]
pub struct Epilogue<'a> {
    pub(crate) activation: Option<Activation>,
    pub(crate) bias: Option<Operand<'a>>,
    pub(crate) aux: Option<Operand<'a>>,
    pub(crate) dbias: Option<Operand<'a>>,
    pub(crate) scale: Option<Operand<'a>>,
    pub(crate) amax: Option<Operand<'a>>,
    pub(crate) found_inf: Option<Operand<'a>>,
}

impl<'a> Epilogue<'a> {
    epilogue_setters! {}

    /// Checks all pointers for a result of the given size and returns the raw epilogue.
    pub(crate) fn raw(
        &self, checks: Checks<'_>, columns: i128, elements: i128, dtype: Dtype,
    ) -> Result<sys::mp_epilogue_t> {
        let needs = [
            ("aux", self.aux, elements),
            ("bias", self.bias, columns),
            ("dbias", self.dbias, columns),
            ("scale", self.scale, 1),
            ("amax", self.amax, 1),
            ("found_inf", self.found_inf, 1),
        ];
        for (name, operand, needed) in needs {
            if let Some(operand) = operand {
                operand.check(checks, name, needed)?;
            }
        }
        if self.aux.map_or(false, |aux| aux.dtype != dtype) {
            let call = checks.call;
            return Err(Error::invalid(format!("{call}: aux must have the type of the result")));
        }
        let pointer = |o: Option<Operand<'_>>| o.map_or(ptr::null_mut(), |o| o.pointer);
        let mut raw = sys::mp_epilogue_default();
        raw.activation = self.activation.unwrap_or(Activation::None) as u32;
        raw.bias = pointer(self.bias);
        raw.dtype_bias = self.bias.map_or(0, |o| o.dtype as u32);
        raw.aux = pointer(self.aux);
        raw.dbias = pointer(self.dbias).cast();
        raw.scale = pointer(self.scale).cast();
        raw.stats.amax = pointer(self.amax).cast();
        raw.stats.found_inf = pointer(self.found_inf).cast();
        Ok(raw)
    }
}

/// Output options of a convolution or a grouped GEMM; `Default` is alpha = 1.
#[derive(Clone, Copy)]
pub struct OutputOptions<'a> {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the previous contents of the output.
    pub beta: f32,
    /// Operations before the result is rounded.
    pub epilogue: Epilogue<'a>,
    /// Workspace.
    pub workspace: Option<View<'a, u8>>,
    /// Stream of the call.
    pub stream: Stream,
}

impl Default for OutputOptions<'_> {
    fn default() -> Self {
        OutputOptions {
            alpha: 1.0,
            beta: 0.0,
            epilogue: Epilogue::default(),
            workspace: None,
            stream: Stream::DEFAULT,
        }
    }
}
