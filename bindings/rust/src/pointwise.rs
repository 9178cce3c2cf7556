//! Element-wise operations, column sums, sums of repeated rows, gated linear units and strided
//! copies.

use crate::context::{span, Context, Data, DeviceBuffer, Float, Stream};
use crate::enums::{Activation, Dtype, PointwiseOp};
use crate::epilogue::{operand, Epilogue, GradStats};
use crate::error::{read, Result};
use crate::sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

call! {
    /// An element-wise operation, y = activation(op(a, b)): set options, then call
    /// [`run`](Pointwise::run).
    Pointwise: mp_pointwise_desc_t { ; b }
}

impl Context {
    /// Begins an operation on dense rows x columns elements, without an activation.
    pub fn pointwise(&self, op: PointwiseOp, rows: usize, columns: usize) -> Pointwise<'_> {
        let (op, none) = (op as u32, sys::MP_DTYPE_NONE);
        // The library rejects negative values.
        let desc = sys::mp_pointwise_desc_default(op, rows as i64, columns as i64, none);
        Pointwise::begin(self, desc)
    }
}

impl<'a> Pointwise<'a> {
    setters! {
        /// Sets the activation.  With `Copy`, derivatives such as `Drelu` compute y = a
        /// activation'(b).
        fn activation(self, activation: Activation) { self.desc.activation = activation as u32; }
        /// Sets the slope of leaky ReLU; 0.01 by default.
        fn slope(self, slope: f32) { self.desc.slope = slope; }
        /// Sets the bounds of clip; infinite by default.
        fn bounds(self, low: f32, high: f32) {
            self.desc.low = low;
            self.desc.high = high;
        }
        /// Sets b: rows x columns, dense, of any type.
        fn b<E: Float>(self, b: &'a impl Data<Element = E>) {
            let columns = self.desc.columns;
            self = self.rows_of_b(b, columns, 0);
        }
        /// Sets b: rows x columns, with a leading dimension of `ld` elements.
        fn b_with_ld<E: Float>(self, b: &'a impl Data<Element = E>, ld: usize) {
            self = self.rows_of_b(b, ld as i64, 0);
        }
        /// Sets b: one row, used for all rows.
        fn bias<E: Float>(self, b: &'a impl Data<Element = E>) { self = self.rows_of_b(b, 0, 0); }
        /// Sets b: `rows` dense rows, which are repeated, such as a table of positions.
        /// [`sum_rows`](Context::sum_rows) computes its gradient.
        fn repeated<E: Float>(self, b: &'a impl Data<Element = E>, rows: usize) {
            let columns = self.desc.columns;
            self = self.rows_of_b(b, columns, rows as i64); // the library rejects negative values
        }
    }

    fn rows_of_b<E: Float>(mut self, b: &'a impl Data<Element = E>, ld: i64, rows: i64) -> Self {
        self.desc.dtype_b = E::DTYPE as u32;
        self.desc.ld_b = ld;
        self.desc.rows_b = rows;
        self.b = Some(operand(b));
        self
    }

    /// Enqueues the operation on `a` and, if used, b.  y can be a, or a dense b of its type.
    pub fn run<T: Float>(
        self, a: &impl Data<Element = T>, y: &impl Data<Element = T>,
    ) -> Result<()> {
        let (checks, mut desc) = (self.context.checks("pointwise"), self.desc);
        desc.dtype = T::DTYPE as u32;
        let elements = i128::from(desc.rows) * i128::from(desc.columns);
        let a = checks.data("a", a, elements)?.cast();
        let y = checks.data("y", y, elements)?.cast();
        let mut b: *mut c_void = ptr::null_mut();
        if let Some(given) = self.b {
            let of_b = if desc.rows_b == 0 { desc.rows } else { desc.rows.min(desc.rows_b) };
            given.check(checks, "b", span(&[(of_b, desc.ld_b)], desc.columns))?;
            b = given.pointer;
        } else {
            desc.dtype_b = desc.dtype;
        }
        let stats = self.stats.raw(checks)?;
        run!(self.context, mp_pointwise(&desc, a, b, y, &stats, self.stream.0))
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
        let workspace =
            context.alloc(query!(context, read(bytes), mp_column_sum_workspace_size(&desc))?)?;
        Ok(ColumnSum { context: context.clone(), desc, workspace, types: PhantomData })
    }

    /// Computes sum = scale (column sums of x) + beta sum.  Supports `scale`, `amax` and
    /// `found_inf` of `epilogue`.
    pub fn run(
        &self, x: &impl Data<Element = X>, sum: &impl Data<Element = S>, beta: f32,
        epilogue: &Epilogue<'_>, stream: Stream,
    ) -> Result<()> {
        let (checks, desc) =
            (self.context.checks("column_sum"), sys::mp_column_sum_desc_t { beta, ..self.desc });
        let (rows, columns) = (i128::from(desc.rows), i128::from(desc.columns));
        let x = checks.data("x", x, rows * columns)?.cast();
        let sum = checks.data("sum", sum, columns)?.cast();
        let epilogue = epilogue.raw(checks, columns, columns, S::DTYPE)?;
        let (space, bytes) = self.workspace.as_workspace();
        run!(self.context, mp_column_sum(&desc, x, sum, &epilogue, space, bytes, stream.0))
    }
}

impl Context {
    /// Computes sum\[i\] = x\[i\] + x\[i + period\] + ... + beta sum\[i\], the gradient of an
    /// operand that [`repeated`](Pointwise::repeated) sets.  The shape is \[rows, period,
    /// columns\]: x has rows x columns elements, sum period x columns.
    pub fn sum_rows<X: Float, S: Float>(
        &self, shape: [usize; 3], x: &impl Data<Element = X>, sum: &impl Data<Element = S>,
        beta: f32, stats: &GradStats<'_>, stream: Stream,
    ) -> Result<()> {
        let checks = self.checks("sum_rows");
        // The library rejects negative values.
        let [rows, period, columns] = shape.map(|extent| extent as i64);
        let mut desc = sys::mp_sum_rows_desc_default(rows, period, columns, X::DTYPE as u32);
        desc.dtype_sum = S::DTYPE as u32;
        desc.beta = beta;
        let x = checks.data("x", x, span(&[(rows, columns)], columns))?.cast();
        let sum = checks.data("sum", sum, span(&[(period, columns)], columns))?.cast();
        let stats = stats.raw(checks)?;
        run!(self, mp_sum_rows(&desc, x, sum, &stats, stream.0))
    }

    /// Begins a gated linear unit of dense rows: `Silu` gives SwiGLU, `Gelu` GeGLU, `Sigmoid` GLU.
    /// x has rows x 2 columns elements, gate in the left half and up in the right half; y has rows
    /// x columns.
    pub fn glu(&self, activation: Activation, rows: usize, columns: usize) -> Glu<'_> {
        let (rows, columns) = (rows as i64, columns as i64); // as above
        let (activation, none) = (activation as u32, sys::MP_DTYPE_NONE);
        let desc = sys::mp_glu_desc_default(activation, rows, columns, none);
        Glu::begin(self, desc)
    }
}

call! {
    /// A gated linear unit y = activation(gate) up: set options, then call
    /// [`forward`](Glu::forward) or [`backward`](Glu::backward).
    Glu: mp_glu_desc_t {}
}

impl<'a> Glu<'a> {
    setters! {
        /// Sets the leading dimensions of x and y, and of their gradients.
        fn ld(self, x: usize, y: usize) {
            self.desc.ld_x = x as i64; // the library rejects negative values
            self.desc.ld_y = y as i64;
        }
    }

    /// Computes y = activation(gate) up.
    pub fn forward<T: Float>(
        self, x: &impl Data<Element = T>, y: &impl Data<Element = T>,
    ) -> Result<()> {
        let (checks, desc) = (self.context.checks("glu"), self.of(T::DTYPE));
        let x = checks.data("x", x, self.of_x())?.cast();
        let y = checks.data("y", y, self.of_y())?.cast();
        run!(self.context, mp_glu_forward(&desc, x, y, self.stream.0))
    }

    /// Computes dx, the gradient of x, which can be x.
    pub fn backward<T: Float>(
        self, x: &impl Data<Element = T>, dy: &impl Data<Element = T>, dx: &impl Data<Element = T>,
    ) -> Result<()> {
        let (checks, desc) = (self.context.checks("glu"), self.of(T::DTYPE));
        let x = checks.data("x", x, self.of_x())?.cast();
        let dy = checks.data("dy", dy, self.of_y())?.cast();
        let dx = checks.data("dx", dx, self.of_x())?.cast();
        let stats = self.stats.raw(checks)?;
        run!(self.context, mp_glu_backward(&desc, x, dy, dx, &stats, self.stream.0))
    }

    fn of(&self, dtype: Dtype) -> sys::mp_glu_desc_t {
        sys::mp_glu_desc_t { dtype: dtype as u32, ..self.desc }
    }

    fn of_x(&self) -> i128 {
        let columns = self.desc.columns.saturating_mul(2);
        span(&[(self.desc.rows, self.desc.ld_x)], columns)
    }

    fn of_y(&self) -> i128 {
        span(&[(self.desc.rows, self.desc.ld_y)], self.desc.columns)
    }
}

/// A copy y = alpha x + beta y of views of `N` dimensions, at most six: set options, then call
/// [`run`](StridedCopy::run).
pub struct StridedCopy<'a, const N: usize> {
    context: &'a Context,
    desc: sys::mp_strided_copy_desc_t,
    stats: GradStats<'a>,
    stream: Stream,
}

/// Number of dimensions that a descriptor can store.
const MAX_RANK: usize = sys::MP_STRIDED_COPY_MAX_RANK as usize;

/// Returns the values of a descriptor.  The library rejects negative values.
fn stored(values: &[usize]) -> [i64; MAX_RANK] {
    std::array::from_fn(|i| values.get(i).map_or(0, |&value| value as i64))
}

impl Context {
    /// Begins a copy of `extent[0]` x `extent[1]` x ... elements, from dense x to dense y.
    pub fn strided_copy<const N: usize>(&self, extent: [usize; N]) -> StridedCopy<'_, N> {
        let (mut dense, mut step) = ([0; N], 1usize);
        for (stride, &extent) in dense.iter_mut().zip(&extent).rev() {
            *stride = step;
            step = step.saturating_mul(extent);
        }
        let desc = sys::mp_strided_copy_desc_t {
            rank: N as i32, // the library rejects more than six
            extent: stored(&extent),
            ..sys::mp_strided_copy_desc_default(sys::MP_DTYPE_NONE)
        };
        let (stats, stream) = (GradStats::default(), Stream::DEFAULT);
        StridedCopy { context: self, desc, stats, stream }.x_stride(dense).y_stride(dense)
    }
}

impl<'a, const N: usize> StridedCopy<'a, N> {
    setters! {
        /// Sets the strides of x in elements; 0 repeats x.
        fn x_stride(self, x_stride: [usize; N]) { self.desc.x_stride = stored(&x_stride); }
        /// Sets the strides of y in elements.  The elements must be distinct.
        fn y_stride(self, y_stride: [usize; N]) { self.desc.y_stride = stored(&y_stride); }
        /// Sets the factors of x and of the previous y; 1 and 0 by default.
        fn factors(self, alpha: f32, beta: f32) {
            self.desc.alpha = alpha;
            self.desc.beta = beta;
        }
    }

    call_setters! {}

    /// Enqueues the copy; x and y start with the first element of their view.
    pub fn run<T: Float>(
        self, x: &impl Data<Element = T>, y: &impl Data<Element = T>,
    ) -> Result<()> {
        let (checks, mut desc) = (self.context.checks("strided_copy"), self.desc);
        desc.dtype = T::DTYPE as u32;
        let needed = |stride: [i64; MAX_RANK]| {
            let levels: Vec<_> = desc.extent.into_iter().zip(stride).take(N).collect();
            span(&levels, 1)
        };
        let x = checks.data("x", x, needed(desc.x_stride))?.cast();
        let y = checks.data("y", y, needed(desc.y_stride))?.cast();
        let stats = self.stats.raw(checks)?;
        run!(self.context, mp_strided_copy(&desc, x, y, &stats, self.stream.0))
    }
}
