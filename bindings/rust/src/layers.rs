//! Layout conversion, pooling and batch normalization, in N H W C.

use crate::context::{Context, Data, DeviceBuffer, Float, Stream, View};
use crate::conv::extent;
use crate::enums::{Activation, Dtype, PoolMode};
use crate::epilogue::{operand, GradStats, Operand};
use crate::error::{check, read, Result};
use crate::sys;
use std::marker::PhantomData;

impl Context {
    /// Copies N C H W images in `src` to N H W C images in `dst`, converting the type.  `nchw` are
    /// the dimensions N, C, H and W.
    pub fn nchw_to_nhwc<S: Float, D: Float>(
        &self, nchw: [usize; 4], src: &impl Data<Element = S>, dst: &impl Data<Element = D>,
        stream: Stream,
    ) -> Result<()> {
        let [n, c, h, w] = self.images("nchw_to_nhwc", nchw, operand(src), operand(dst))?;
        let (src, dst) = (src.view().pointer.cast(), dst.view().pointer.cast());
        let (from, to) = (S::DTYPE as u32, D::DTYPE as u32);
        run!(self, mp_nchw_to_nhwc(n, c, h, w, src, from, dst, to, stream.0))
    }

    /// Copies N H W C images in `src` to N C H W images in `dst`, converting the type.  `nchw` are
    /// the dimensions N, C, H and W.
    pub fn nhwc_to_nchw<S: Float, D: Float>(
        &self, nchw: [usize; 4], src: &impl Data<Element = S>, dst: &impl Data<Element = D>,
        stream: Stream,
    ) -> Result<()> {
        let [n, c, h, w] = self.images("nhwc_to_nchw", nchw, operand(src), operand(dst))?;
        let (src, dst) = (src.view().pointer.cast(), dst.view().pointer.cast());
        let (from, to) = (S::DTYPE as u32, D::DTYPE as u32);
        run!(self, mp_nhwc_to_nchw(n, c, h, w, src, from, dst, to, stream.0))
    }

    /// Checks the arrays of a copy of images and returns the extents.
    fn images(
        &self, call: &str, nchw: [usize; 4], src: Operand<'_>, dst: Operand<'_>,
    ) -> Result<[i64; 4]> {
        let mut extents = [0; 4];
        for (to, (name, from)) in extents.iter_mut().zip(["n", "c", "h", "w"].into_iter().zip(nchw))
        {
            *to = extent(call, name, from)?;
        }
        src.check(self.checks(call), "src", elements(extents))?;
        dst.check(self.checks(call), "dst", elements(extents))?;
        Ok(extents.map(i64::from))
    }

    /// Returns a pooling layer with adjacent windows of the given size over N H W C images, without
    /// padding.
    pub fn pool2d(&self, mode: PoolMode, x: [usize; 4], window: (u32, u32)) -> Result<Pool2d> {
        let call = "pool2d";
        let desc = sys::mp_pool2d_desc_default(
            mode as u32,
            extent(call, "n", x[0])?,
            extent(call, "h", x[1])?,
            extent(call, "w", x[2])?,
            extent(call, "c", x[3])?,
            window.0 as i32, // the library rejects negative values
            window.1 as i32,
            sys::MP_DTYPE_NONE,
        );
        Ok(Pool2d { context: self.clone(), desc })
    }
}

fn elements(extents: [i32; 4]) -> i128 {
    extents.iter().map(|&e| i128::from(e)).product()
}

/// A pooling layer.
pub struct Pool2d {
    context: Context,
    desc: sys::mp_pool2d_desc_t,
}

impl Pool2d {
    window_setters! { "Sets the number of rows and columns around the images, less than the window size." }

    setters! {
        /// Rounds P and Q up, like torch.
        fn ceil_mode(self) { self.desc.flags |= sys::MP_POOL_FLAG_CEIL; }
    }

    /// Returns the output height P and width Q.
    pub fn output_size(&self) -> Result<(usize, usize)> {
        let (mut p, mut q) = (0, 0);
        let desc = self.of(Dtype::Fp32);
        // SAFETY: the descriptor lives during the call.
        check(unsafe { sys::mp_pool2d_get_output_size(&desc, &mut p, &mut q) })?;
        Ok((p as usize, q as usize))
    }

    /// Computes y (N P Q C), the maximum or the mean of each window, and optionally the positions
    /// of the maxima.
    pub fn forward<T: Float>(
        &self, x: &impl Data<Element = T>, y: &impl Data<Element = T>,
        index: Option<&View<'_, u8>>, stream: Stream,
    ) -> Result<()> {
        let (checks, (of_x, of_y)) = (self.context.checks("pool2d"), self.elements()?);
        let x = checks.data("x", x, of_x)?.cast();
        let y = checks.data("y", y, of_y)?.cast();
        let index = checks.optional("index", index.copied(), of_y)?;
        let desc = self.of(T::DTYPE);
        run!(self.context, mp_pool2d_forward(&desc, x, y, index, stream.0))
    }

    /// Computes dx, the gradient of x.  Only `PoolMode::Max` requires x, or else index.
    pub fn backward<T: Float>(
        &self, x: Option<&View<'_, T>>, index: Option<&View<'_, u8>>, dy: &impl Data<Element = T>,
        dx: &impl Data<Element = T>, stats: &GradStats<'_>, stream: Stream,
    ) -> Result<()> {
        let (checks, (of_x, of_y)) = (self.context.checks("pool2d"), self.elements()?);
        let x = checks.optional("x", x.copied(), of_x)?.cast();
        let index = checks.optional("index", index.copied(), of_y)?;
        let dy = checks.data("dy", dy, of_y)?.cast();
        let dx = checks.data("dx", dx, of_x)?.cast();
        let (desc, stats) = (self.of(T::DTYPE), stats.raw(checks)?);
        run!(self.context, mp_pool2d_backward(&desc, x, index, dy, dx, &stats, stream.0))
    }

    fn of(&self, dtype: Dtype) -> sys::mp_pool2d_desc_t {
        let mut desc = self.desc;
        desc.dtype = dtype as u32;
        desc
    }

    /// Returns the number of elements of x and y.
    fn elements(&self) -> Result<(i128, i128)> {
        let (p, q) = self.output_size()?; // rejects values out of range
        let d = &self.desc;
        Ok((elements([d.n, d.h, d.w, d.c]), elements([d.n, p as i32, q as i32, d.c])))
    }
}

/// Options of a [`BatchNorm`].
#[derive(Clone, Copy, Debug)]
pub struct BatchNormOptions {
    /// Activation: `None` or `Relu`.
    pub activation: Activation,
    /// Constant added to the variance.
    pub epsilon: f32,
    /// Momentum of the running statistics.
    pub momentum: f32,
}

impl Default for BatchNormOptions {
    fn default() -> Self {
        let desc = sys::mp_batchnorm_desc_default(0, 0, sys::MP_DTYPE_NONE);
        let (epsilon, momentum) = (desc.epsilon, desc.momentum);
        BatchNormOptions { activation: Activation::None, epsilon, momentum }
    }
}

/// Factor and shift of each channel, or their gradients; `Affine::default()` has neither.
#[derive(Clone, Copy, Debug, Default)]
pub struct Affine<'a> {
    /// Factor, one per channel; `None`: 1, or no gradient.
    pub gamma: Option<View<'a, f32>>,
    /// Shift, one per channel; `None`: 0, or no gradient.
    pub beta: Option<View<'a, f32>>,
}

/// Statistics of each channel, usually running averages.
#[derive(Clone, Copy, Debug)]
pub struct Statistics<'a> {
    /// Mean, one per channel.
    pub mean: View<'a, f32>,
    /// Variance, one per channel.
    pub var: View<'a, f32>,
}

/// Batch normalization of rows x channels elements of type `T`; for images, rows is N H W.
///
/// Owns its workspace and the statistics of the last [`forward`](BatchNorm::forward), which
/// [`backward`](BatchNorm::backward) reads: call forward once before each backward.
pub struct BatchNorm<T: Float> {
    context: Context,
    desc: sys::mp_batchnorm_desc_t,
    workspace: DeviceBuffer<u8>,
    mean: DeviceBuffer<f32>,
    inv_std: DeviceBuffer<f32>,
    element: PhantomData<T>,
}

impl<T: Float> BatchNorm<T> {
    /// Allocates memory for `channels` channels.
    pub fn new(
        context: &Context, rows: usize, channels: usize, options: &BatchNormOptions,
    ) -> Result<Self> {
        let count = extent("BatchNorm", "channels", channels)?;
        let mut desc = sys::mp_batchnorm_desc_default(rows as i64, count, T::DTYPE as u32);
        desc.activation = options.activation as u32;
        desc.epsilon = options.epsilon;
        desc.momentum = options.momentum;
        let bytes = query!(context, read(bytes), mp_batchnorm_workspace_size(&desc))?;
        Ok(BatchNorm {
            context: context.clone(),
            desc,
            workspace: context.alloc(bytes)?,
            mean: context.alloc(channels)?,
            inv_std: context.alloc(channels)?,
            element: PhantomData,
        })
    }

    /// Returns the mean in the latest forward pass, one per channel.
    pub fn mean(&self) -> &DeviceBuffer<f32> {
        &self.mean
    }

    /// Returns 1 / sqrt(variance + epsilon) of the latest forward pass, one per channel.
    pub fn inv_std(&self) -> &DeviceBuffer<f32> {
        &self.inv_std
    }

    /// Computes y = activation((x - mean) gamma inv_std + beta) with the statistics of x and
    /// updates `running`.
    pub fn forward(
        &self, x: &impl Data<Element = T>, affine: &Affine<'_>, y: &impl Data<Element = T>,
        running: Option<&Statistics<'_>>, stream: Stream,
    ) -> Result<()> {
        let tensors = sys::mp_batchnorm_tensors_t {
            running_mean: self.channels("mean", running.map(|of| of.mean))?,
            running_var: self.channels("var", running.map(|of| of.var))?,
            y: self.rows("y", y)?.cast(),
            ..self.tensors(x, affine)?
        };
        let (desc, (space, bytes)) = (&self.desc, self.workspace.as_workspace());
        run!(self.context, mp_batchnorm_forward_training(desc, &tensors, space, bytes, stream.0))
    }

    /// Computes y like [`forward`](BatchNorm::forward), but with given statistics; y can be x.
    pub fn inference(
        &self, x: &impl Data<Element = T>, affine: &Affine<'_>, statistics: &Statistics<'_>,
        y: &impl Data<Element = T>, stream: Stream,
    ) -> Result<()> {
        let tensors = sys::mp_batchnorm_tensors_t {
            running_mean: self.channels("mean", Some(statistics.mean))?,
            running_var: self.channels("var", Some(statistics.var))?,
            y: self.rows("y", y)?.cast(),
            ..self.tensors(x, affine)?
        };
        run!(self.context, mp_batchnorm_forward_inference(&self.desc, &tensors, stream.0))
    }

    /// Computes the gradients of the latest forward pass; dx can be dy.
    pub fn backward(
        &self, x: &impl Data<Element = T>, dy: &impl Data<Element = T>, affine: &Affine<'_>,
        dx: &impl Data<Element = T>, grads: &Affine<'_>, stats: &GradStats<'_>, stream: Stream,
    ) -> Result<()> {
        let tensors = sys::mp_batchnorm_tensors_t {
            dy: self.rows("dy", dy)?.cast(),
            dx: self.rows("dx", dx)?.cast(),
            dgamma: self.channels("dgamma", grads.gamma)?,
            dbeta: self.channels("dbeta", grads.beta)?,
            stats: stats.raw(self.context.checks("BatchNorm"))?,
            ..self.tensors(x, affine)?
        };
        let (desc, (space, bytes)) = (&self.desc, self.workspace.as_workspace());
        run!(self.context, mp_batchnorm_backward(desc, &tensors, space, bytes, stream.0))
    }

    /// Returns the tensors of every pass, with the saved statistics.
    fn tensors(
        &self, x: &impl Data<Element = T>, affine: &Affine<'_>,
    ) -> Result<sys::mp_batchnorm_tensors_t> {
        Ok(sys::mp_batchnorm_tensors_t {
            x: self.rows("x", x)?.cast(),
            gamma: self.channels("gamma", affine.gamma)?,
            beta: self.channels("beta", affine.beta)?,
            saved_mean: self.mean.as_ptr(),
            saved_inv_std: self.inv_std.as_ptr(),
            ..sys::mp_batchnorm_tensors_t::zeroed()
        })
    }

    fn rows(&self, name: &str, data: &impl Data<Element = T>) -> Result<*mut T> {
        let needed = i128::from(self.desc.rows) * i128::from(self.desc.channels);
        self.context.checks("BatchNorm").data(name, data, needed)
    }

    fn channels(&self, name: &str, view: Option<View<'_, f32>>) -> Result<*mut f32> {
        self.context.checks("BatchNorm").optional(name, view, self.desc.channels.into())
    }
}
