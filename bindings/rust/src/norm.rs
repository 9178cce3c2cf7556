//! Layer and RMS normalization.

use crate::context::{span, Context, Data, DeviceBuffer, Float, Stream, View};
use crate::conv::extent;
use crate::enums::NormKind;
use crate::epilogue::GradStats;
use crate::error::{read, Result};
use crate::layers::Affine;
use crate::sys;
use std::marker::PhantomData;

const CALL: &str = "Norm";

/// Options of a [`Norm`]; `Default` is one vector per row, dense, without dropout.
#[derive(Clone, Copy, Debug)]
pub struct NormOptions {
    /// Vectors of a row that are normalized separately, such as heads.
    pub groups: usize,
    /// Multiplies by 1 + gamma.
    pub zero_centered: bool,
    /// Distances between rows and between vectors of a row of x and dx, in elements; 0 = dense.
    pub x_strides: [usize; 2],
    /// The same for y and dy.
    pub y_strides: [usize; 2],
    /// Constant added to the variance.
    pub epsilon: f32,
    /// Probability that an element of x becomes 0.
    pub dropout: f32,
    /// Any number; use a different one for each layer.
    pub dropout_seed: u64,
}

impl Default for NormOptions {
    fn default() -> Self {
        let desc = sys::mp_norm_desc_default(NormKind::Layer as u32, 0, 0, sys::MP_DTYPE_NONE);
        NormOptions {
            groups: 1,
            zero_centered: false,
            x_strides: [0; 2],
            y_strides: [0; 2],
            epsilon: desc.epsilon,
            dropout: 0.0,
            dropout_seed: 0,
        }
    }
}

/// Optional tensors of a forward pass of a [`Norm`]; `Default` has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NormInputs<'a, R: Float> {
    /// Added to dropout(x): rows x groups x columns, dense.
    pub residual: Option<View<'a, R>>,
    /// The sum, written for the backward pass; can be the residual.
    pub sum: Option<View<'a, R>>,
    /// Dropout offset, 1 number; each value selects a different mask, as in
    /// [`dropout`](Context::dropout).
    pub dropout_offset: Option<View<'a, i64>>,
}

/// Optional tensors of a backward pass of a [`Norm`]; `Default` has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NormGradOptions<'a, R: Float> {
    /// The sum of the forward pass, if it had a residual; x is not read.
    pub sum: Option<View<'a, R>>,
    /// Gradient of the sum from its other uses.
    pub dsum: Option<View<'a, R>>,
    /// Gradient of the residual, written; can be `dsum`.
    pub dresidual: Option<View<'a, R>>,
    /// Dropout offset of the forward pass.
    pub dropout_offset: Option<View<'a, i64>>,
    /// Adds to the previous gradients of gamma and beta.
    pub accumulate: bool,
    /// Statistics of all gradients.
    pub stats: GradStats<'a>,
}

/// Layer or RMS normalization of rows x groups x columns elements of type `T`, with a residual of
/// type `R`: `T` or `f32`.
///
/// Owns its workspace and the statistics of the last [`forward`](Norm::forward), which
/// [`backward`](Norm::backward) reads: call forward once before each backward.
pub struct Norm<T: Float, R: Float> {
    context: Context,
    desc: sys::mp_norm_desc_t,
    workspace: DeviceBuffer<u8>,
    mean: DeviceBuffer<f32>,
    rstd: DeviceBuffer<f32>,
    types: PhantomData<(T, R)>,
}

impl<T: Float, R: Float> Norm<T, R> {
    /// Allocates memory for `rows` rows.
    pub fn new(
        context: &Context, kind: NormKind, rows: usize, columns: usize, options: &NormOptions,
    ) -> Result<Self> {
        // The library rejects negative values.
        let (raw_kind, dtype) = (kind as u32, T::DTYPE as u32);
        let mut desc = sys::mp_norm_desc_default(raw_kind, rows as i64, columns as i64, dtype);
        desc.dtype_residual = R::DTYPE as u32;
        desc.groups = extent(CALL, "groups", options.groups)?;
        if options.zero_centered {
            desc.flags |= sys::MP_NORM_FLAG_ZERO_CENTERED;
        }
        let (x, y) = (options.x_strides.map(|by| by as i64), options.y_strides.map(|by| by as i64));
        (desc.x_row, desc.x_group) = (x[0], x[1]);
        (desc.y_row, desc.y_group) = (y[0], y[1]);
        desc.epsilon = options.epsilon;
        desc.dropout = options.dropout;
        desc.dropout_seed = options.dropout_seed;
        let bytes = query!(context, read(bytes), mp_norm_backward_workspace_size(&desc))?;
        let vectors = rows * options.groups;
        Ok(Norm {
            context: context.clone(),
            desc,
            workspace: context.alloc(bytes)?,
            mean: context.alloc(if kind == NormKind::Layer { vectors } else { 0 })?,
            rstd: context.alloc(vectors)?,
            types: PhantomData,
        })
    }

    /// Returns the mean in the latest forward pass, one per vector; empty for `NormKind::Rms`.
    pub fn mean(&self) -> &DeviceBuffer<f32> {
        &self.mean
    }

    /// Returns 1 / standard deviation, or 1 / root mean square, of the latest forward pass, one per
    /// vector.
    pub fn rstd(&self) -> &DeviceBuffer<f32> {
        &self.rstd
    }

    /// Computes y = (r - mean) rstd gamma + beta of r = residual + dropout(x); y can be x.
    pub fn forward(
        &self, x: &impl Data<Element = T>, affine: &Affine<'_>, y: &impl Data<Element = T>,
        inputs: &NormInputs<'_, R>, stream: Stream,
    ) -> Result<()> {
        let tensors = sys::mp_norm_tensors_t {
            x: self.like_x("x", Some(x.view()))?.cast(),
            y: self.like_y("y", y.view())?.cast(),
            residual: self.residual("residual", inputs.residual)?.cast(),
            gamma: self.columns("gamma", affine.gamma)?,
            beta: self.columns("beta", affine.beta)?,
            sum: self.residual("sum", inputs.sum)?.cast(),
            ..self.tensors(inputs.dropout_offset)?
        };
        run!(self.context, mp_norm_forward(&self.desc, &tensors, stream.0))
    }

    /// Computes the gradients of the latest forward pass.  x is required without a sum; dx can be
    /// dy, and is required without `dresidual`.
    pub fn backward(
        &self, x: Option<&View<'_, T>>, dy: &impl Data<Element = T>, gamma: Option<&View<'_, f32>>,
        dx: Option<&View<'_, T>>, grads: &Affine<'_>, options: &NormGradOptions<'_, R>,
        stream: Stream,
    ) -> Result<()> {
        let tensors = sys::mp_norm_tensors_t {
            x: self.like_x("x", x.copied())?.cast(),
            dy: self.like_y("dy", dy.view())?.cast(),
            dx: self.like_x("dx", dx.copied())?.cast(),
            gamma: self.columns("gamma", gamma.copied())?,
            dgamma: self.columns("dgamma", grads.gamma)?,
            dbeta: self.columns("dbeta", grads.beta)?,
            sum: self.residual("sum", options.sum)?.cast(),
            dsum: self.residual("dsum", options.dsum)?.cast(),
            dresidual: self.residual("dresidual", options.dresidual)?.cast(),
            stats: options.stats.raw(self.context.checks(CALL))?,
            ..self.tensors(options.dropout_offset)?
        };
        let mut desc = self.desc;
        if options.accumulate {
            desc.flags |= sys::MP_NORM_FLAG_ACCUMULATE;
        }
        let (space, bytes) = self.workspace.as_workspace();
        run!(self.context, mp_norm_backward(&desc, &tensors, space, bytes, stream.0))
    }

    /// Returns the tensors of every pass: the statistics and the dropout offset.
    fn tensors(&self, offset: Option<View<'_, i64>>) -> Result<sys::mp_norm_tensors_t> {
        let offset = self.context.checks(CALL).optional("dropout_offset", offset, 1)?;
        Ok(sys::mp_norm_tensors_t {
            dropout_offset: offset.cast(),
            mean: self.mean.as_ptr(),
            rstd: self.rstd.as_ptr(),
            ..sys::mp_norm_tensors_t::zeroed()
        })
    }

    fn like_x(&self, name: &str, view: Option<View<'_, T>>) -> Result<*mut T> {
        self.strided(name, view, self.desc.x_row, self.desc.x_group)
    }

    fn like_y(&self, name: &str, view: View<'_, T>) -> Result<*mut T> {
        self.strided(name, Some(view), self.desc.y_row, self.desc.y_group)
    }

    fn strided(
        &self, name: &str, view: Option<View<'_, T>>, row: i64, group: i64,
    ) -> Result<*mut T> {
        let (d, groups) = (&self.desc, i64::from(self.desc.groups));
        let group = if group == 0 { d.columns } else { group };
        let row = if row == 0 { groups * group } else { row };
        let needed = span(&[(d.rows, row), (groups, group)], d.columns);
        self.context.checks(CALL).optional(name, view, needed)
    }

    fn residual(&self, name: &str, view: Option<View<'_, R>>) -> Result<*mut R> {
        let elements = self.rstd.len() * self.desc.columns as usize;
        self.context.checks(CALL).optional(name, view, elements as i128)
    }

    fn columns(&self, name: &str, view: Option<View<'_, f32>>) -> Result<*mut f32> {
        self.context.checks(CALL).optional(name, view, self.desc.columns.into())
    }
}
