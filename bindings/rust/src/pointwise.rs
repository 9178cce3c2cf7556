//! Element-wise operations and column sums.

use crate::context::{Context, Data, DeviceBuffer, Float, Stream};
use crate::enums::{Activation, PointwiseOp};
use crate::epilogue::{operand, Epilogue, GradStats, Operand};
use crate::error::{check, Result};
use crate::sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

/// An element-wise operation y = activation(a), activation(a + b) or activation(a b): set options,
/// then call [`run`](Pointwise::run).
pub struct Pointwise<'a> {
    context: &'a Context,
    desc: sys::mp_pointwise_desc_t,
    b: Option<Operand<'a>>,
    stats: GradStats<'a>,
    stream: Stream,
}

impl Context {
    /// Begins an operation on dense rows x columns elements, without an activation.
    pub fn pointwise(&self, op: PointwiseOp, rows: usize, columns: usize) -> Pointwise<'_> {
        let (op, none) = (op as u32, sys::MP_DTYPE_NONE);
        // The library rejects negative values.
        let desc = sys::mp_pointwise_desc_default(op, rows as i64, columns as i64, none);
        Pointwise {
            context: self,
            desc,
            b: None,
            stats: GradStats::default(),
            stream: Stream::DEFAULT,
        }
    }
}

impl<'a> Pointwise<'a> {
    /// Sets the activation.  With `Copy`, derivatives such as `Drelu` compute y = a activation'(b).
    pub fn activation(mut self, activation: Activation) -> Self {
        self.desc.activation = activation as u32;
        self
    }

    /// Sets b: rows x columns, dense, of any type.
    pub fn b<B: Data>(self, b: &'a B) -> Self
    where
        B::Element: Float,
    {
        let columns = self.desc.columns;
        self.rows_of_b(b, columns)
    }

    /// Sets b: rows x columns, with a leading dimension of `ld` elements.
    pub fn b_with_ld<B: Data>(self, b: &'a B, ld: usize) -> Self
    where
        B::Element: Float,
    {
        self.rows_of_b(b, ld as i64)
    }

    /// Sets b: one row, used for all rows.
    pub fn bias<B: Data>(self, b: &'a B) -> Self
    where
        B::Element: Float,
    {
        self.rows_of_b(b, 0)
    }

    fn rows_of_b<B: Data>(mut self, b: &'a B, ld: i64) -> Self
    where
        B::Element: Float,
    {
        self.desc.dtype_b = B::Element::DTYPE as u32;
        self.desc.ld_b = ld;
        self.b = Some(operand(b));
        self
    }

    /// Reports on y, if it is a gradient.
    pub fn stats(mut self, stats: GradStats<'a>) -> Self {
        self.stats = stats;
        self
    }

    /// Sets the stream.
    pub fn stream(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// Enqueues the operation on `a` and, if used, b.  y can be a, or a dense b of its type.
    pub fn run<A, Y>(self, a: &A, y: &Y) -> Result<()>
    where
        A: Data,
        Y: Data<Element = A::Element>,
        A::Element: Float,
    {
        let (call, mut desc) = ("pointwise", self.desc);
        desc.dtype = A::Element::DTYPE as u32;
        let (rows, columns) = (i128::from(desc.rows), i128::from(desc.columns));
        let (a, y) = (a.view(), y.view());
        self.context.holds(call, "a", &a, rows * columns)?;
        self.context.holds(call, "y", &y, rows * columns)?;
        let mut b: *mut c_void = ptr::null_mut();
        if let Some(given) = self.b {
            let needed =
                if rows * columns == 0 { 0 } else { (rows - 1) * i128::from(desc.ld_b) + columns };
            given.check(self.context, call, "b", needed)?;
            b = given.pointer;
        } else {
            desc.dtype_b = desc.dtype;
        }
        let stats = self.stats.raw(self.context, call)?;
        // SAFETY: all belong to this context and have the elements that the call uses.
        self.context.call(|| unsafe {
            let (a, y) = (a.pointer.cast(), y.pointer.cast());
            sys::mp_pointwise(self.context.as_raw(), &desc, a, b, y, &stats, self.stream.0)
        })
    }
}

/// Column sums of rows x columns elements of type `X`, such as the gradient of a bias.  The sums
/// have type `S`.
///
/// Owns its workspace, so use it in one stream at a time.
pub struct ColumnSum<X: Float, S: Float> {
    context: Context,
    desc: sys::mp_column_sum_desc_t,
    workspace: DeviceBuffer<u8>,
    types: PhantomData<(X, S)>,
}

impl<X: Float, S: Float> ColumnSum<X, S> {
    /// Allocates the workspace for `columns` columns.
    pub fn new(context: &Context, rows: usize, columns: usize) -> Result<Self> {
        // The library rejects negative values.
        let mut desc =
            sys::mp_column_sum_desc_default(rows as i64, columns as i64, X::DTYPE as u32);
        desc.dtype_sum = S::DTYPE as u32;
        let mut bytes = 0;
        // SAFETY: the descriptor lives during the call, which rejects values out of range.
        check(unsafe { sys::mp_column_sum_workspace_size(context.as_raw(), &desc, &mut bytes) })?;
        let workspace = context.alloc(bytes)?;
        Ok(ColumnSum { context: context.clone(), desc, workspace, types: PhantomData })
    }

    /// Computes sum = scale (column sums of x) + beta sum.  Supports `scale`, `amax` and
    /// `found_inf` of `epilogue`.
    pub fn run<D, T>(
        &self,
        x: &D,
        sum: &T,
        beta: f32,
        epilogue: &Epilogue<'_>,
        stream: Stream,
    ) -> Result<()>
    where
        D: Data<Element = X>,
        T: Data<Element = S>,
    {
        let (call, mut desc) = ("column_sum", self.desc);
        desc.beta = beta;
        let (rows, columns) = (i128::from(desc.rows), i128::from(desc.columns));
        let (x, sum) = (x.view(), sum.view());
        self.context.holds(call, "x", &x, rows * columns)?;
        self.context.holds(call, "sum", &sum, columns)?;
        let raw = epilogue.raw(&self.context, call, columns, columns, S::DTYPE)?;
        // SAFETY: all belong to this context and have the elements that the call uses.
        self.context.call(|| unsafe {
            sys::mp_column_sum(
                self.context.as_raw(),
                &desc,
                x.pointer.cast(),
                sum.pointer.cast(),
                &raw,
                self.workspace.as_ptr().cast(),
                self.workspace.len(),
                stream.0,
            )
        })
    }
}
