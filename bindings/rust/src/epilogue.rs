//! The epilogue that GEMM and convolution share, and their other options.

use crate::context::{at_least, Context, Data, Float, Stream, View};
use crate::enums::{Activation, Dtype};
use crate::error::{Error, Result};
use crate::owner::Owner;
use crate::sys;
use std::ffi::c_void;
use std::ptr;

/// A pointer of a call: what it points to, and how many elements are there.
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
    /// Whether it belongs to the context and has what the call reads or writes.
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

/// Work on the sums of a product before they are rounded and stored; `Default` is none.  The members
/// are those of `mp_epilogue_t`.
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
    /// One element per column, added to every row.
    pub fn bias<D: Data>(mut self, bias: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.bias = Some(operand(bias));
        self
    }

    /// Applied last.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// As the result, of its type: written before the activation; read by `Drelu` and its like.
    pub fn aux<D: Data>(mut self, aux: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.aux = Some(operand(aux));
        self
    }

    /// The sum of every column.
    pub fn dbias<D: Data<Element = f32>>(mut self, dbias: &'a D) -> Self {
        self.dbias = Some(operand(dbias));
        self
    }

    /// 1 number on the device that multiplies alpha.
    pub fn scale<D: Data<Element = f32>>(mut self, scale: &'a D) -> Self {
        self.scale = Some(operand(scale));
        self
    }

    /// 1 number that becomes max(itself, |result|).
    pub fn amax<D: Data<Element = f32>>(mut self, amax: &'a D) -> Self {
        self.amax = Some(operand(amax));
        self
    }

    /// 1 number that becomes 1 where the result has an infinity or a NaN: `&scaler.found_inf()`.
    pub fn found_inf<D: Data<Element = f32>>(mut self, found_inf: &'a D) -> Self {
        self.found_inf = Some(operand(found_inf));
        self
    }

    /// For a result of so many columns and elements, after a look at every pointer.
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
            return Err(Error::invalid(format!("{call}: aux has not the type of the result")));
        }
        let pointer = |o: Option<Operand<'_>>| o.map_or(ptr::null_mut(), |o| o.pointer);
        let mut raw = sys::mp_epilogue_default();
        raw.activation = self.activation as u32;
        raw.bias = pointer(self.bias);
        raw.bias_dtype = self.bias.map_or(0, |o| o.dtype as u32);
        raw.aux = pointer(self.aux);
        raw.dbias = pointer(self.dbias).cast();
        raw.scale = pointer(self.scale).cast();
        raw.amax = pointer(self.amax).cast();
        raw.found_inf = pointer(self.found_inf).cast();
        Ok(raw)
    }
}

/// What a convolution or a grouped GEMM does with its sums; `Default` is alpha 1 and nothing else.
#[derive(Clone, Copy)]
pub struct OutputOptions<'a> {
    /// Multiplies the product.
    pub alpha: f32,
    /// Multiplies what is in the result before.
    pub beta: f32,
    /// Before the result is rounded.
    pub epilogue: Epilogue<'a>,
    /// Scratch memory.
    pub workspace: Option<View<'a, u8>>,
    /// Where it is enqueued.
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

/// Its address and bytes; nothing where there is none.
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
