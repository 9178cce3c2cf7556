//! Epilogue and output options, shared by GEMM and convolution.

use crate::context::{at_least, Context, Data, Float, Stream, View};
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
    pub(crate) fn check(
        &self,
        context: &Context,
        call: &str,
        name: &str,
        needed: i128,
    ) -> Result<()> {
        context.is(call, name, self.owner.context())?;
        at_least(call, name, self.len, needed)
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
    pub(crate) fn raw(&self, context: &Context, call: &str) -> Result<sys::mp_grad_stats_t> {
        Ok(sys::mp_grad_stats_t {
            found_inf: context.output(call, "found_inf", self.found_inf.as_ref(), 1)?,
            amax: context.output(call, "amax", self.amax.as_ref(), 1)?,
        })
    }
}

/// Operations on the accumulators before they are rounded and stored; `Default` has none.  The
/// methods correspond to the fields of `mp_epilogue_t`.
#[derive(Clone, Copy)]
pub struct Epilogue<'a> {
    pub(crate) activation: Activation,
    pub(crate) bias: Option<Operand<'a>>,
    pub(crate) aux: Option<Operand<'a>>,
    pub(crate) dbias: Option<Operand<'a>>,
    pub(crate) scale: Option<Operand<'a>>,
    pub(crate) amax: Option<Operand<'a>>,
    pub(crate) found_inf: Option<Operand<'a>>,
}

impl Default for Epilogue<'_> {
    fn default() -> Self {
        Epilogue {
            activation: Activation::None,
            bias: None,
            aux: None,
            dbias: None,
            scale: None,
            amax: None,
            found_inf: None,
        }
    }
}

impl<'a> Epilogue<'a> {
    /// Adds a bias, one element per column.
    pub fn bias<D: Data>(mut self, bias: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.bias = Some(operand(bias));
        self
    }

    /// Sets the activation, which is applied last.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Sets aux, which has the shape and type of the result.  It is written before the activation;
    /// derivatives such as `Drelu` read it.
    pub fn aux<D: Data>(mut self, aux: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.aux = Some(operand(aux));
        self
    }

    /// Stores the sum of each column.
    pub fn dbias<D: Data<Element = f32>>(mut self, dbias: &'a D) -> Self {
        self.dbias = Some(operand(dbias));
        self
    }

    /// Multiplies alpha by a number on the device.
    pub fn scale<D: Data<Element = f32>>(mut self, scale: &'a D) -> Self {
        self.scale = Some(operand(scale));
        self
    }

    /// Updates 1 number to max(amax, |result|).
    pub fn amax<D: Data<Element = f32>>(mut self, amax: &'a D) -> Self {
        self.amax = Some(operand(amax));
        self
    }

    /// Sets 1 number to 1 if the result contains an infinity or a NaN: `&scaler.found_inf()`.
    pub fn found_inf<D: Data<Element = f32>>(mut self, found_inf: &'a D) -> Self {
        self.found_inf = Some(operand(found_inf));
        self
    }

    /// Checks all pointers for a result of the given size and returns the raw epilogue.
    pub(crate) fn raw(
        &self,
        context: &Context,
        call: &str,
        columns: i128,
        elements: i128,
        dtype: Dtype,
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
                operand.check(context, call, name, needed)?;
            }
        }
        if self.aux.map_or(false, |aux| aux.dtype != dtype) {
            return Err(Error::invalid(format!("{call}: aux must have the type of the result")));
        }
        let pointer = |o: Option<Operand<'_>>| o.map_or(ptr::null_mut(), |o| o.pointer);
        let mut raw = sys::mp_epilogue_default();
        raw.activation = self.activation as u32;
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

/// Returns the address and size in bytes of a workspace; NULL and 0 if None.
pub(crate) fn workspace_of(
    context: &Context,
    call: &str,
    workspace: Option<&View<'_, u8>>,
) -> Result<(*mut c_void, usize)> {
    match workspace {
        None => Ok((ptr::null_mut(), 0)),
        Some(view) => {
            context.owns(call, "workspace", view)?;
            Ok((view.pointer.cast(), view.len))
        }
    }
}
