//! Layout conversion, pooling and batch normalization, in N H W C.

use crate::context::{at_least, Context, Data, DeviceBuffer, Float, Stream, View};
use crate::conv::extent;
use crate::enums::{Activation, Dtype, PoolMode};
use crate::epilogue::GradStats;
use crate::error::{check, Result};
use crate::sys;
use std::marker::PhantomData;
use std::ptr;

impl Context {
    /// Copies N C H W images in `src` to N H W C images in `dst`, converting the type.  `nchw` are
    /// the dimensions N, C, H and W.
    pub fn nchw_to_nhwc<S, D>(
        &self,
        nchw: [usize; 4],
        src: &S,
        dst: &D,
        stream: Stream,
    ) -> Result<()>
    where
        S: Data,
        D: Data,
        S::Element: Float,
        D::Element: Float,
    {
        self.turn("nchw_to_nhwc", sys::mp_nchw_to_nhwc, nchw, src, dst, stream)
    }

    /// Copies N H W C images in `src` to N C H W images in `dst`, converting the type.  `nchw` are
    /// the dimensions N, C, H and W.
    pub fn nhwc_to_nchw<S, D>(
        &self,
        nchw: [usize; 4],
        src: &S,
        dst: &D,
        stream: Stream,
    ) -> Result<()>
    where
        S: Data,
        D: Data,
        S::Element: Float,
        D::Element: Float,
    {
        self.turn("nhwc_to_nchw", sys::mp_nhwc_to_nchw, nchw, src, dst, stream)
    }

    fn turn<S, D>(
        &self,
        call: &str,
        function: Turn,
        nchw: [usize; 4],
        src: &S,
        dst: &D,
        stream: Stream,
    ) -> Result<()>
    where
        S: Data,
        D: Data,
        S::Element: Float,
        D::Element: Float,
    {
        let mut extents = [0; 4];
        for (to, (from, name)) in extents.iter_mut().zip(nchw.iter().zip(["n", "c", "h", "w"])) {
            *to = extent(call, name, *from)?;
        }
        let (from, to) = (src.view(), dst.view());
        self.holds(call, "src", &from, elements(extents))?;
        self.holds(call, "dst", &to, elements(extents))?;
        let [n, c, h, w] = extents.map(i64::from);
        // SAFETY: both belong to this context and have that many elements.
        self.call(|| unsafe {
            function(
                self.as_raw(),
                n,
                c,
                h,
                w,
                from.pointer.cast(),
                S::Element::DTYPE as u32,
                to.pointer.cast(),
                D::Element::DTYPE as u32,
                stream.0,
            )
        })
    }

    /// Checks that a view belongs to this context and is large enough.
    pub(crate) fn holds<T>(
        &self,
        call: &str,
        name: &str,
        view: &View<'_, T>,
        needed: i128,
    ) -> Result<()> {
        self.owns(call, name, view)?;
        at_least(call, name, view.len, needed)
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

type Turn = unsafe extern "C" fn(
    sys::mp_context_t,
    i64,
    i64,
    i64,
    i64,
    *const std::ffi::c_void,
    sys::mp_dtype_t,
    *mut std::ffi::c_void,
    sys::mp_dtype_t,
    sys::mp_stream_t,
) -> sys::mp_status_t;

fn elements(extents: [i32; 4]) -> i128 {
    extents.iter().map(|&e| i128::from(e)).product()
}

/// A pooling layer.
pub struct Pool2d {
    context: Context,
    desc: sys::mp_pool2d_desc_t,
}

impl Pool2d {
    /// Sets the number of rows and columns around the images, less than the window size.
    pub fn padding(mut self, top: u32, bottom: u32, left: u32, right: u32) -> Self {
        self.desc.pad_top = top as i32; // the library rejects negative values, here and below
        self.desc.pad_bottom = bottom as i32;
        self.desc.pad_left = left as i32;
        self.desc.pad_right = right as i32;
        self
    }

    /// Sets the distance between windows, in rows and columns.
    pub fn stride(mut self, h: u32, w: u32) -> Self {
        self.desc.stride_h = h as i32;
        self.desc.stride_w = w as i32;
        self
    }

    /// Sets the distance between pixels of a window, in rows and columns.
    pub fn dilation(mut self, h: u32, w: u32) -> Self {
        self.desc.dilation_h = h as i32;
        self.desc.dilation_w = w as i32;
        self
    }

    /// Rounds P and Q up, like torch.
    pub fn ceil_mode(mut self) -> Self {
        self.desc.flags |= sys::MP_POOL_FLAG_CEIL;
        self
    }

    /// Returns the output height P and width Q.
    pub fn output_size(&self) -> Result<(usize, usize)> {
        let (mut p, mut q) = (0, 0);
        let desc = self.of(Dtype::Fp32);
        // SAFETY: the descriptor lives during the call.
        check(unsafe { sys::mp_pool2d_get_output_size(&desc, &mut p, &mut q) })?;
        Ok((p as usize, q as usize))
    }

    /// Computes y (N P Q C), the maximum or the mean of each window.
    pub fn forward<X, Y>(&self, x: &X, y: &Y, stream: Stream) -> Result<()>
    where
        X: Data,
        Y: Data<Element = X::Element>,
        X::Element: Float,
    {
        let (call, (of_x, of_y)) = ("pool2d", self.elements()?);
        let (x, y) = (x.view(), y.view());
        self.context.holds(call, "x", &x, of_x)?;
        self.context.holds(call, "y", &y, of_y)?;
        let desc = self.of(X::Element::DTYPE);
        let context = self.context.as_raw();
        // SAFETY: both belong to this context and have the elements that the call uses.
        self.context.call(|| unsafe {
            let (x, y) = (x.pointer.cast(), y.pointer.cast());
            sys::mp_pool2d_forward(context, &desc, x, y, stream.0)
        })
    }

    /// Computes dx, the gradient of x.  Only `PoolMode::Max` requires x.
    pub fn backward<Y, X>(
        &self,
        x: Option<&View<'_, Y::Element>>,
        dy: &Y,
        dx: &X,
        stats: &GradStats<'_>,
        stream: Stream,
    ) -> Result<()>
    where
        Y: Data,
        X: Data<Element = Y::Element>,
        Y::Element: Float,
    {
        let (call, (of_x, of_y)) = ("pool2d", self.elements()?);
        let (dy, dx) = (dy.view(), dx.view());
        let mut x_pointer = ptr::null_mut();
        if let Some(x) = x {
            self.context.holds(call, "x", x, of_x)?;
            x_pointer = x.pointer;
        }
        self.context.holds(call, "dy", &dy, of_y)?;
        self.context.holds(call, "dx", &dx, of_x)?;
        let desc = self.of(Y::Element::DTYPE);
        let stats = stats.raw(&self.context, call)?;
        let context = self.context.as_raw();
        // SAFETY: all belong to this context and have the elements that the call uses.
        self.context.call(|| unsafe {
            let (dy, dx) = (dy.pointer.cast(), dx.pointer.cast());
            sys::mp_pool2d_backward(context, &desc, x_pointer.cast(), dy, dx, &stats, stream.0)
        })
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
        context: &Context,
        rows: usize,
        channels: usize,
        options: &BatchNormOptions,
    ) -> Result<Self> {
        let count = extent("BatchNorm", "channels", channels)?;
        let mut desc = sys::mp_batchnorm_desc_default(rows as i64, count, T::DTYPE as u32);
        desc.activation = options.activation as u32;
        desc.epsilon = options.epsilon;
        desc.momentum = options.momentum;
        let mut bytes = 0;
        // SAFETY: the descriptor lives during the call, which rejects values out of range.
        check(unsafe { sys::mp_batchnorm_workspace_size(context.as_raw(), &desc, &mut bytes) })?;
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
    pub fn forward<X, Y>(
        &self,
        x: &X,
        affine: &Affine<'_>,
        y: &Y,
        running: Option<&Statistics<'_>>,
        stream: Stream,
    ) -> Result<()>
    where
        X: Data<Element = T>,
        Y: Data<Element = T>,
    {
        let (x, y) = (self.rows("x", x)?, self.rows("y", y)?);
        let (gamma, beta) = self.affine(affine)?;
        let (mean, var) = match running {
            None => (ptr::null_mut(), ptr::null_mut()),
            Some(running) => self.statistics(running)?,
        };
        let tensors = sys::mp_batchnorm_tensors_t {
            running_mean: mean,
            running_var: var,
            y: y.cast(),
            ..self.tensors(x, gamma, beta)
        };
        // SAFETY: all belong to this context and have the elements that the call uses.
        self.context.call(|| unsafe {
            sys::mp_batchnorm_forward_training(
                self.context.as_raw(),
                &self.desc,
                &tensors,
                self.workspace.as_ptr().cast(),
                self.workspace.len(),
                stream.0,
            )
        })
    }

    /// Computes y like [`forward`](BatchNorm::forward), but with given statistics; y can be x.
    pub fn inference<X, Y>(
        &self,
        x: &X,
        affine: &Affine<'_>,
        statistics: &Statistics<'_>,
        y: &Y,
        stream: Stream,
    ) -> Result<()>
    where
        X: Data<Element = T>,
        Y: Data<Element = T>,
    {
        let (x, y) = (self.rows("x", x)?, self.rows("y", y)?);
        let (gamma, beta) = self.affine(affine)?;
        let (mean, var) = self.statistics(statistics)?;
        let tensors = sys::mp_batchnorm_tensors_t {
            running_mean: mean,
            running_var: var,
            y: y.cast(),
            ..self.tensors(x, gamma, beta)
        };
        let context = self.context.as_raw();
        // SAFETY: as in forward.
        self.context.call(|| unsafe {
            sys::mp_batchnorm_forward_inference(context, &self.desc, &tensors, stream.0)
        })
    }

    /// Computes the gradients of the latest forward pass; dx can be dy.
    pub fn backward<X, Y, D>(
        &self,
        x: &X,
        dy: &Y,
        affine: &Affine<'_>,
        dx: &D,
        grads: &Affine<'_>,
        stats: &GradStats<'_>,
        stream: Stream,
    ) -> Result<()>
    where
        X: Data<Element = T>,
        Y: Data<Element = T>,
        D: Data<Element = T>,
    {
        let (x, dy, dx) = (self.rows("x", x)?, self.rows("dy", dy)?, self.rows("dx", dx)?);
        let (gamma, beta) = self.affine(affine)?;
        let tensors = sys::mp_batchnorm_tensors_t {
            dy: dy.cast(),
            dx: dx.cast(),
            dgamma: self.optional("dgamma", &grads.gamma)?,
            dbeta: self.optional("dbeta", &grads.beta)?,
            stats: stats.raw(&self.context, "BatchNorm")?,
            ..self.tensors(x, gamma, beta)
        };
        // SAFETY: as in forward.
        self.context.call(|| unsafe {
            sys::mp_batchnorm_backward(
                self.context.as_raw(),
                &self.desc,
                &tensors,
                self.workspace.as_ptr().cast(),
                self.workspace.len(),
                stream.0,
            )
        })
    }

    /// Returns the tensors of every pass, with the saved statistics.
    fn tensors(&self, x: *mut T, gamma: *mut f32, beta: *mut f32) -> sys::mp_batchnorm_tensors_t {
        sys::mp_batchnorm_tensors_t {
            x: x.cast(),
            gamma,
            beta,
            saved_mean: self.mean.as_ptr(),
            saved_inv_std: self.inv_std.as_ptr(),
            ..sys::mp_batchnorm_tensors_t::zeroed()
        }
    }

    fn rows<D: Data<Element = T>>(&self, name: &str, data: &D) -> Result<*mut T> {
        let view = data.view();
        let needed = i128::from(self.desc.rows) * i128::from(self.desc.channels);
        self.context.holds("BatchNorm", name, &view, needed)?;
        Ok(view.pointer)
    }

    fn channels(&self, name: &str, view: &View<'_, f32>) -> Result<*mut f32> {
        self.context.holds("BatchNorm", name, view, self.desc.channels.into())?;
        Ok(view.pointer)
    }

    fn optional(&self, name: &str, view: &Option<View<'_, f32>>) -> Result<*mut f32> {
        view.as_ref().map_or(Ok(ptr::null_mut()), |view| self.channels(name, view))
    }

    fn affine(&self, affine: &Affine<'_>) -> Result<(*mut f32, *mut f32)> {
        Ok((self.optional("gamma", &affine.gamma)?, self.optional("beta", &affine.beta)?))
    }

    fn statistics(&self, of: &Statistics<'_>) -> Result<(*mut f32, *mut f32)> {
        Ok((self.channels("mean", &of.mean)?, self.channels("var", &of.var)?))
    }
}
