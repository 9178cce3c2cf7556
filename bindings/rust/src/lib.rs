//! Mixed-precision training kernels: a safe layer over `mpcore.h`, and the raw declarations in
//! [`sys`].
//!
//! ```
//! use mpcore::{Activation, Context, Device, F16};
//!
//! # fn main() -> mpcore::Result<()> {
//! let context = Context::new(Device::Host)?;
//! let x = context.upload(&[F16::from_f32(1.0); 6])?; // 2 x 3
//! let w = context.upload(&[F16::from_f32(2.0); 12])?; // 3 x 4
//! let y = context.alloc::<f32>(8)?;
//! context.gemm(2, 4, 3).activation(Activation::Relu).run(&x, &w, &y)?;
//! assert_eq!(y.to_vec()?, [6.0; 8]);
//! # Ok(())
//! # }
//! ```
//!
//! # Safety
//!
//! * Objects share ownership of the objects that they use: a context lives as long as its buffers,
//!   buffers as long as lists of them, lists as long as the optimizer.  Types have no lifetimes, so
//!   one struct can hold all objects.
//! * Every call checks that its buffers are large enough and belong to the context.
//! * Device memory is like [`Cell`](std::cell::Cell): Rust never holds a reference into it, it is
//!   written through shared borrows, and threads cannot share buffers, but can send them.  If
//!   threads own objects that share memory, the context serializes their calls.
//!
//! The crate does not order work in different streams on the same buffer.  Missing synchronization
//! can produce wrong numbers, but is memory-safe.

#![warn(missing_docs)]
#![deny(unused_must_use)] // statuses of the library
#![allow(clippy::too_many_arguments)] // as many as the function of C

/// Defines setters of a builder: each changes `self` and returns it.
macro_rules! setters {
    ($($(#[$about:meta])* fn $name:ident$(<$element:ident: Float>)?
        ($self:ident$(, $argument:ident: $kind:ty)*) $body:block)*) => { $(
        $(#[$about])*
        pub fn $name$(<$element: Float>)?(mut $self$(, $argument: $kind)*) -> Self {
            $body
            $self
        }
    )* };
}

/// Defines the setters of an [`Epilogue`], or of a builder with an epilogue in `field`.
macro_rules! epilogue_setters {
    ($($field:ident)?) => { setters! {
        /// Adds a bias, one element per column.
        fn bias<E: Float>(self, bias: &'a impl Data<Element = E>) {
            self.$($field.)?bias = Some(operand(bias));
        }
        /// Sets the activation, which is applied last.
        fn activation(self, activation: Activation) { self.$($field.)?activation = Some(activation); }
        /// Sets aux, which has the shape and type of the result.  It is written before the
        /// activation; derivatives such as `Drelu` read it.
        fn aux<E: Float>(self, aux: &'a impl Data<Element = E>) {
            self.$($field.)?aux = Some(operand(aux));
        }
        /// Stores the sum of each column of the result.
        fn dbias(self, dbias: &'a impl Data<Element = f32>) {
            self.$($field.)?dbias = Some(operand(dbias));
        }
        /// Multiplies alpha by a number on the device.
        fn scale(self, scale: &'a impl Data<Element = f32>) {
            self.$($field.)?scale = Some(operand(scale));
        }
        /// Updates 1 number to max(amax, |result|).
        fn amax(self, amax: &'a impl Data<Element = f32>) {
            self.$($field.)?amax = Some(operand(amax));
        }
        /// Sets 1 number to 1 if the result contains an infinity or a NaN: `&scaler.found_inf()`.
        fn found_inf(self, found_inf: &'a impl Data<Element = f32>) {
            self.$($field.)?found_inf = Some(operand(found_inf));
        }
    } };
}

/// Defines the setters of windows on images, for builders with a descriptor.
macro_rules! window_setters {
    ($padding:literal) => {
        setters! {
            #[doc = $padding]
            fn padding(self, top: u32, bottom: u32, left: u32, right: u32) {
                // The library rejects negative values, here and below.
                self.desc.pad_top = top as i32;
                self.desc.pad_bottom = bottom as i32;
                self.desc.pad_left = left as i32;
                self.desc.pad_right = right as i32;
            }
            /// Sets the distance between windows, in rows and columns.
            fn stride(self, h: u32, w: u32) {
                self.desc.stride_h = h as i32;
                self.desc.stride_w = w as i32;
            }
            /// Sets the distance between pixels of a window, in rows and columns.
            fn dilation(self, h: u32, w: u32) {
                self.desc.dilation_h = h as i32;
                self.desc.dilation_w = w as i32;
            }
        }
    };
}

/// Defines the setters that most calls have.
macro_rules! call_setters {
    () => {
        setters! {
            /// Reports on the result, if it is a gradient.
            fn stats(self, stats: $crate::epilogue::GradStats<'a>) { self.stats = stats; }
            /// Sets the stream.
            fn stream(self, stream: $crate::context::Stream) { self.stream = stream; }
        }
    };
}

/// Defines the builder of a call from its descriptor and optional tensors, with their setters and
/// those of all calls.  A tensor after the semicolon has any type, and a setter written by hand.
macro_rules! call {
    ($(#[$about:meta])* $name:ident: $desc:ident {
        $($(#[$of:meta])* $tensor:ident: $element:ty,)* $(; $operand:ident)?
    }) => {
        $(#[$about])*
        pub struct $name<'a> {
            pub(crate) context: &'a $crate::context::Context,
            pub(crate) desc: $crate::sys::$desc,
            $($tensor: Option<$crate::context::View<'a, $element>>,)*
            $($operand: Option<$crate::epilogue::Operand<'a>>,)?
            stats: $crate::epilogue::GradStats<'a>,
            pub(crate) stream: $crate::context::Stream,
        }

        impl<'a> $name<'a> {
            fn begin(context: &'a $crate::context::Context, desc: $crate::sys::$desc) -> Self {
                $(let $tensor = None;)*
                $(let $operand = None;)?
                let (stats, stream) = (Default::default(), $crate::context::Stream::DEFAULT);
                $name { context, desc, $($tensor,)* $($operand,)? stats, stream }
            }

            setters! {
                $($(#[$of])*
                fn $tensor(self, $tensor: &'a impl $crate::context::Data<Element = $element>) {
                    self.$tensor = Some($tensor.view());
                })*
            }

            call_setters! {}
        }
    };
}

/// Calls `function(context, arguments...)`, or a function of another handle.  Most enqueue work.
macro_rules! run {
    ($of:expr, $function:ident($($argument:expr),*)) => {
        // SAFETY: addresses are those of `Checks`, in this context and with the elements that the
        // call uses, or of values that live during the call; freeing memory waits for kernels.
        $of.call(|of| unsafe { $crate::sys::$function(of, $($argument),*) })
    };
}

/// Returns the results of a function that enqueues nothing: its last arguments, which `reader`
/// passes.
macro_rules! query {
    ($of:expr, $($reader:ident)::+($($result:ident),+), $function:ident($($argument:expr),*)) => {{
        let of = $of.as_raw();
        // SAFETY: all values live during the call, which rejects those that are out of range.
        $($reader)::+(|$($result),+| unsafe {
            $crate::sys::$function(of, $($argument,)* $($result),+)
        })
    }};
}

/// Creates the handle of an object that uses the owners `used`.
macro_rules! create {
    ($context:expr, $used:expr, $create:ident($($argument:expr),*), $destroy:ident) => {{
        let mut raw = std::ptr::null_mut();
        // SAFETY: the arguments live during the call; the new object uses only `used`.
        unsafe {
            $context.call(|c| $crate::sys::$create(&mut raw, c, $($argument),*))?;
            $crate::owner::Handle::new($context, raw, |_, raw| $crate::sys::$destroy(raw), $used)
        }
    }};
}

#[macro_use]
mod macros;

mod attention;
mod autocast;
mod comm;
mod context;
mod conv;
mod epilogue;
mod error;
mod gemm;
mod graph;
mod groups;
mod half;
mod kernels;
mod layers;
mod linear_xent;
mod network;
mod network_builder;
mod norm;
mod optimizer;
mod owner;
mod pointwise;
mod rnn;
mod scaler;
mod sequences;
#[allow(missing_docs, clippy::all)]
#[rustfmt::skip]
pub mod sys;
mod tensors;
mod xent;

mod enums {
    pub use crate::sys::{bits::*, numbers::*};
}

pub use attention::{
    Attention, AttentionBuilder, AttentionGrads, AttentionInputs, AttentionLayout, AttentionLengths,
};
pub use autocast::{Autocast, AutocastConfig, GraphCast, Rewritten, RewrittenNode};
pub use comm::Comm;
pub use context::{
    Context, Data, Device, DeviceBuffer, DeviceInfo, Float, Integer, Plain, Stream, TensorReport,
    View,
};
pub use conv::Conv2d;
pub use enums::*;
pub use epilogue::{Epilogue, GradStats, OutputOptions};
pub use error::{Error, Result};
pub use gemm::Gemm;
pub use graph::{ClusterKind, Graph, GraphNode, GraphTensor, NodeId, TensorId, SLOT_FP32};
pub use groups::{GroupedGemm, Matrices};
pub use half::*;
pub use kernels::{tuning_text, KernelInfo, Plan};
pub use layers::{Affine, BatchNorm, BatchNormOptions, Pool2d, Statistics};
pub use linear_xent::LinearXent;
pub use network::{Network, NetworkMemory, NetworkTensor};
pub use network_builder::{Attribute, NetworkBuilder, NetworkNode};
pub use norm::{Norm, NormGradOptions, NormInputs, NormOptions};
pub use optimizer::{Optimizer, OptimizerBuilder, ParamGroup, StepOptions};
pub use pointwise::{ColumnSum, Glu, Pointwise, StridedCopy};
pub use rnn::{
    Rnn, RnnBuilder, RnnGradOptions, RnnInputGrads, RnnInputs, RnnOutputs, RnnSteps,
    RnnWeightGrads, RnnWeights,
};
pub use scaler::{Scaler, ScalerConfig, ScalerState};
pub use sequences::{Embedding, EmbeddingGradOptions, Rope, Softmax};
pub use tensors::{ModelOptions, StatsOutputs, Tensor, TensorList};
pub use xent::{ElementLoss, SoftmaxXent};

/// Returns `MP_VERSION` of the loaded library: 1.2.3 is 10203.
pub fn version() -> u32 {
    // SAFETY: has no arguments.
    unsafe { sys::mp_version() }
}

/// Returns one line for bug reports: version, git hash, CUDA version, compiled targets.
pub fn build_info() -> String {
    // SAFETY: a NUL-terminated string in static storage.
    unsafe { std::ffi::CStr::from_ptr(sys::mp_build_info()) }.to_string_lossy().into_owned()
}

// Safe code can fill these structs of the library, so they must not contain pointers, which would
// make them !Send.
const _: fn() = || {
    fn numbers_only<T: Send>() {}
    numbers_only::<AutocastConfig>();
    numbers_only::<ScalerConfig>();
    numbers_only::<ScalerState>();
    numbers_only::<ParamGroup>();
    numbers_only::<TensorReport>();
};
