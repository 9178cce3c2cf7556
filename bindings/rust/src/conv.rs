//! Convolution of N H W C images.

use crate::context::{Context, Data, Float};
use crate::enums::{ConvOp, Dtype};
use crate::epilogue::{operand, Operand, OutputOptions};
use crate::error::{check, read, read_text, Error, Result};
use crate::kernels::{self, KernelInfo, Plan};
use crate::sys;
use std::ffi::c_void;
use std::ptr;

/// A convolutional layer with its three passes: [`fprop`](Conv2d::fprop), [`dgrad`](Conv2d::dgrad)
/// and [`wgrad`](Conv2d::wgrad).
pub struct Conv2d {
    context: Context,
    desc: sys::mp_conv2d_desc_t,
    plan: Option<Box<Plan>>,
}

// SAFETY: the descriptor has numbers, and a pointer that is NULL until `complete` fills in a copy.
unsafe impl Send for Conv2d {}

/// Converts a dimension to i32.
pub(crate) fn extent(call: &str, name: &str, value: usize) -> Result<i32> {
    i32::try_from(value)
        .map_err(|_| Error::invalid(format!("{call}: {name} = {value} exceeds 2^31 - 1")))
}

/// Name of the call in messages.
const CALL: &str = "conv2d";

impl Context {
    /// Returns a convolution of N H W C images with K R S C/groups filters, which determine the
    /// number of groups.  Stride 1, no padding.
    pub fn conv2d(&self, x: [usize; 4], filter: [usize; 4]) -> Result<Conv2d> {
        let depth = filter[3];
        if depth == 0 || x[3] % depth != 0 {
            return Err(Error::invalid(format!(
                "{CALL}: filter[3] = {depth} must divide x[3] = {}",
                x[3]
            )));
        }
        let mut desc = sys::mp_conv2d_desc_default(
            extent(CALL, "n", x[0])?,
            extent(CALL, "h", x[1])?,
            extent(CALL, "w", x[2])?,
            extent(CALL, "c", x[3])?,
            extent(CALL, "k", filter[0])?,
            extent(CALL, "r", filter[1])?,
            extent(CALL, "s", filter[2])?,
            sys::MP_DTYPE_NONE,
        );
        desc.groups = (x[3] / depth) as i32;
        Ok(Conv2d { context: self.clone(), desc, plan: None })
    }
}

/// Runs a pass on arrays with their numbers of elements; it writes the last one.
macro_rules! pass {
    ($conv:ident, $function:ident($($array:ident: $needed:expr),+), $columns:expr, $options:ident) => {{
        let arrays = [$((stringify!($array), operand($array), $needed)),+];
        let (desc, [$($array),+], epilogue) = $conv.checked(arrays, $columns, $options)?;
        let (space, bytes) = $conv.context.checks(CALL).workspace($options.workspace)?;
        let stream = $options.stream.0;
        run!($conv.context, $function(&desc, $($array),+, &epilogue, space, bytes, stream))
    }};
}

impl Conv2d {
    window_setters! { "Sets the number of zero rows and columns around the images." }

    setters! {
        /// Selects a kernel by name, for tests.
        fn kernel(self, name: &str) { self.plan = kernels::named(name); }
        /// Selects a plan of [`get_plan`](Conv2d::get_plan).
        fn plan(self, plan: &Plan) { self.plan = Some(Box::new(*plan)); }
    }

    /// Returns the output height P and width Q; 0 if the filter is larger than the padded image.
    pub fn output_size(&self) -> Result<(usize, usize)> {
        let (mut p, mut q) = (0, 0);
        let desc = self.complete(Dtype::Fp32, Dtype::Fp32);
        // SAFETY: the descriptor and the plan in it live during the call.
        check(unsafe { sys::mp_conv2d_get_output_size(&desc, &mut p, &mut q) })?;
        Ok((p as usize, q as usize))
    }

    /// Returns the useful workspace size in bytes for inputs of type `I` and an output of type `O`.
    pub fn workspace_size<I: Float, O: Float>(&self, op: ConvOp) -> Result<usize> {
        let desc = self.complete(I::DTYPE, O::DTYPE);
        query!(self.context, read(bytes), mp_conv2d_workspace_size(&desc, op as u32, ptr::null()))
    }

    /// Returns the fastest plan of a pass without dbias.
    pub fn get_plan<I: Float, O: Float>(
        &self, op: ConvOp, max_workspace_bytes: usize,
    ) -> Result<Plan> {
        let desc = self.complete(I::DTYPE, O::DTYPE);
        let (op, max) = (op as u32, max_workspace_bytes);
        query!(self.context, kernels::plan(plan), mp_conv2d_get_plan(&desc, op, ptr::null(), max))
    }

    /// Describes the plan of a pass without dbias, for people.
    pub fn explain<I: Float, O: Float>(&self, op: ConvOp) -> Result<String> {
        let desc = self.complete(I::DTYPE, O::DTYPE);
        query!(
            self.context,
            read_text(text, bytes),
            mp_conv2d_explain(&desc, op as u32, ptr::null())
        )
    }

    /// Returns all kernels, first the one that is selected.
    pub fn kernels<I: Float, O: Float>(&self, op: ConvOp) -> Result<Vec<KernelInfo>> {
        let desc = self.complete(I::DTYPE, O::DTYPE);
        query!(self.context, kernels::all(index, info), mp_conv2d_kernel_info(&desc, op as u32))
    }

    /// Computes y = epilogue(alpha conv(x, filter) + beta y).  y is N P Q K and has K columns.
    pub fn fprop<I: Float, O: Float>(
        &self, x: &impl Data<Element = I>, filter: &impl Data<Element = I>,
        y: &impl Data<Element = O>, options: &OutputOptions<'_>,
    ) -> Result<()> {
        let [of_x, of_filter, of_y] = self.elements()?;
        pass!(self, mp_conv2d_fprop(x: of_x, filter: of_filter, y: of_y), self.desc.k, options)
    }

    /// Computes dx = epilogue(alpha conv_transpose(dy, filter) + beta dx), with C columns.
    pub fn dgrad<I: Float, O: Float>(
        &self, dy: &impl Data<Element = I>, filter: &impl Data<Element = I>,
        dx: &impl Data<Element = O>, options: &OutputOptions<'_>,
    ) -> Result<()> {
        let [of_x, of_filter, of_y] = self.elements()?;
        pass!(self, mp_conv2d_dgrad(dy: of_y, filter: of_filter, dx: of_x), self.desc.c, options)
    }

    /// Computes dfilter = alpha conv(x, dy) + beta dfilter, summed over images and pixels.
    pub fn wgrad<I: Float, O: Float>(
        &self, x: &impl Data<Element = I>, dy: &impl Data<Element = I>,
        dfilter: &impl Data<Element = O>, options: &OutputOptions<'_>,
    ) -> Result<()> {
        let [of_x, of_filter, of_y] = self.elements()?;
        let depth = self.desc.c / self.desc.groups;
        pass!(self, mp_conv2d_wgrad(x: of_x, dy: of_y, dfilter: of_filter), depth, options)
    }

    fn complete(&self, read: Dtype, written: Dtype) -> sys::mp_conv2d_desc_t {
        let mut desc = self.desc;
        desc.dtype = read as u32;
        desc.dtype_out = written as u32;
        desc.plan = kernels::pointer(&self.plan);
        desc
    }

    /// Returns the number of elements of x, filter and y.
    fn elements(&self) -> Result<[i128; 3]> {
        let (p, q) = self.output_size()?; // rejects values out of range
        let d = &self.desc;
        let product = |extents: [i32; 4]| extents.iter().map(|&e| i128::from(e)).product();
        Ok([
            product([d.n, d.h, d.w, d.c]),
            product([d.k, d.r, d.s, d.c / d.groups]),
            product([d.n, p as i32, q as i32, d.k]),
        ])
    }

    /// Checks the arrays of a pass.
    fn checked(
        &self, arrays: [(&str, Operand<'_>, i128); 3], columns: i32, options: &OutputOptions<'_>,
    ) -> Result<(sys::mp_conv2d_desc_t, [*mut c_void; 3], sys::mp_epilogue_t)> {
        let checks = self.context.checks(CALL);
        for (name, operand, needed) in arrays {
            operand.check(checks, name, needed)?;
        }
        let [(_, read, _), _, (_, written, elements)] = arrays;
        let mut desc = self.complete(read.dtype, written.dtype);
        desc.alpha = options.alpha;
        desc.beta = options.beta;
        let epilogue = options.epilogue.raw(checks, columns.into(), elements, written.dtype)?;
        Ok((desc, arrays.map(|(_, operand, _)| operand.pointer), epilogue))
    }
}
