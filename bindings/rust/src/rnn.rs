//! Recurrent layers.

use crate::context::{Context, Data, DeviceBuffer, Float, Plain, Stream, View};
use crate::conv::extent;
use crate::enums::RnnCell;
use crate::error::{check, Error, Result};
use crate::kernels::{self, KernelInfo, Plan};
use crate::sys;
use std::marker::PhantomData;

/// Description of recurrent layers, from which [`build`](RnnBuilder::build) creates an [`Rnn`].
pub struct RnnBuilder<'c> {
    context: &'c Context,
    desc: sys::mp_rnn_desc_t,
    is_batch_first: bool,
    plan: Option<Box<Plan>>,
}

impl Context {
    /// Begins one layer with one direction and biases.  x is timesteps x batch x input_size.
    pub fn rnn(&self, cell: RnnCell, x: [usize; 3], hidden_size: usize) -> Result<RnnBuilder<'_>> {
        let [timesteps, batch, input_size] = x;
        let desc = sys::mp_rnn_desc_default(
            cell as u32,
            extent(CALL, "batch", batch)?,
            extent(CALL, "timesteps", timesteps)?,
            extent(CALL, "input_size", input_size)?,
            extent(CALL, "hidden_size", hidden_size)?,
            sys::MP_DTYPE_NONE,
        );
        Ok(RnnBuilder { context: self, desc, is_batch_first: false, plan: None })
    }
}

const CALL: &str = "rnn";

impl<'c> RnnBuilder<'c> {
    setters! {
        /// Sets the number of stacked layers.
        fn layers(self, layers: u32) {
            self.desc.layers = layers as i32; // the library rejects negative values
        }
        /// Adds a second direction, from the last step to the first.
        fn bidirectional(self) { self = self.flag(sys::MP_RNN_FLAG_BIDIRECTIONAL); }
        /// Omits `b_ih` and `b_hh`, which are 0.
        fn no_bias(self) { self = self.flag(sys::MP_RNN_FLAG_NO_BIAS); }
        /// Adds x to the gates of the first layer, which has no `w_ih`.
        fn skip_input(self) { self = self.flag(sys::MP_RNN_FLAG_SKIP_INPUT); }
        /// Applies r before the product in a GRU.
        fn reset_first(self) { self = self.flag(sys::MP_RNN_FLAG_RESET_FIRST); }
        /// Selects the layout batch x timesteps x elements for x, y and their gradients.
        fn batch_first(self) { self.is_batch_first = true; }
        /// Sets the dropout probability between layers in training; `dropout_offset` of the inputs
        /// changes the masks between steps.
        fn dropout(self, dropout: f32, seed: u64) {
            self.desc.dropout = dropout;
            self.desc.dropout_seed = seed;
        }
        /// Clips c of an LSTM to \[-clip, clip\].
        fn clip(self, clip: f32) { self.desc.clip = clip; }
        /// Selects a kernel by name, for tests.
        fn kernel(self, name: &str) { self.plan = kernels::named(name); }
        /// Selects a plan of [`get_plan`](Rnn::get_plan).
        fn plan(self, plan: &Plan) { self.plan = Some(Box::new(*plan)); }
    }

    /// Creates the layers with x, y, h and weights of type `T`, and weight gradients of type `G`.
    pub fn build<T: Float, G: Float>(mut self) -> Result<Rnn<T, G>> {
        self.desc.dtype = T::DTYPE as u32;
        self.desc.dtype_dw = G::DTYPE as u32;
        self.desc.plan = kernels::pointer(&self.plan);
        let mut sizes = sys::mp_rnn_sizes_t::zeroed();
        // SAFETY: descriptor and plan live during the call, which rejects values out of range.
        check(unsafe { sys::mp_rnn_get_sizes(self.context.as_raw(), &self.desc, &mut sizes) })?;
        Ok(Rnn {
            context: self.context.clone(),
            desc: self.desc,
            is_batch_first: self.is_batch_first,
            _plan: self.plan,
            sizes,
            workspace: self.context.alloc(sizes.workspace_bytes)?,
            types: PhantomData,
        })
    }

    fn flag(mut self, flag: u32) -> Self {
        self.desc.flags |= flag;
        self
    }
}

/// Weights of one layer and direction, with G gates and an input of I elements.
#[derive(Clone, Copy, Debug)]
pub struct RnnWeights<'a, T> {
    /// G hidden_size x I; absent in the first layer with `skip_input`.
    pub w_ih: Option<View<'a, T>>,
    /// G hidden_size x hidden_size.
    pub w_hh: View<'a, T>,
    /// G hidden_size; absent with `no_bias`, and so is `b_hh`.
    pub b_ih: Option<View<'a, f32>>,
    /// G hidden_size.
    pub b_hh: Option<View<'a, f32>>,
}

/// Gradients of [`RnnWeights`], each optional.
#[derive(Clone, Copy, Debug)]
pub struct RnnWeightGrads<'a, G> {
    /// Gradient of `w_ih`.
    pub w_ih: Option<View<'a, G>>,
    /// Gradient of `w_hh`.
    pub w_hh: Option<View<'a, G>>,
    /// Gradient of `b_ih`.
    pub b_ih: Option<View<'a, f32>>,
    /// Gradient of `b_hh`.
    pub b_hh: Option<View<'a, f32>>,
}

/// Lengths of the sequences.
#[derive(Clone, Copy, Debug)]
pub enum RnnSteps<'a> {
    /// All sequences have all steps.
    All,
    /// Length of each sequence.
    Lengths(View<'a, i32>),
    /// Number of sequences in each step, with sequences sorted longest first; x, y and their
    /// gradients are packed.
    Packed(&'a [i32]),
}

/// Inputs of all passes.
#[derive(Clone, Copy, Debug)]
pub struct RnnInputs<'a, T> {
    /// Weights of each layer and direction; directions vary fastest.
    pub weights: &'a [RnnWeights<'a, T>],
    /// Lengths of the sequences.
    pub steps: RnnSteps<'a>,
    /// Input, timesteps x batch x input_size.
    pub x: View<'a, T>,
    /// Initial h, layers x directions x batch x hidden_size; None: 0.
    pub h0: Option<View<'a, T>>,
    /// Initial c of an LSTM, of the same shape; None: 0.
    pub c0: Option<View<'a, f32>>,
    /// Dropout offset, 1 number; each value selects different masks.  In training use a counter,
    /// such as [`step_counter`](crate::Optimizer::step_counter).  None: the same masks in all
    /// steps.
    pub dropout_offset: Option<View<'a, i64>>,
}

/// Outputs of the forward pass, or their gradients in the backward pass.
#[derive(Clone, Copy, Debug)]
pub struct RnnOutputs<'a, T> {
    /// Output, timesteps x batch x directions hidden_size.
    pub y: View<'a, T>,
    /// h after the last step, of the shape of `h0`.
    pub hn: Option<View<'a, T>>,
    /// c after the last step, of the shape of `c0`.
    pub cn: Option<View<'a, f32>>,
}

/// Gradients of x, h0 and c0, each optional.
#[derive(Clone, Copy, Debug)]
pub struct RnnInputGrads<'a, T> {
    /// Gradient of x.
    pub x: Option<View<'a, T>>,
    /// Gradient of `h0`.
    pub h0: Option<View<'a, T>>,
    /// Gradient of `c0`.
    pub c0: Option<View<'a, f32>>,
}

/// Options of the weight gradients; `Default` overwrites them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RnnGradOptions<'a> {
    /// Adds to the previous contents.
    pub accumulate: bool,
    /// Set to 1 if a gradient is infinite or NaN: 1 number.
    pub found_inf: Option<View<'a, f32>>,
    /// Updated to max(amax, |gradient|): 1 number.
    pub amax: Option<View<'a, f32>>,
}

/// Recurrent layers of type `T`, with weight gradients of type `G`.
///
/// Owns its workspace.  [`forward`](Rnn::forward) saves data for the backward passes in a reserve,
/// so several forward passes can precede the first backward pass.
pub struct Rnn<T: Float, G: Float> {
    context: Context,
    desc: sys::mp_rnn_desc_t,
    is_batch_first: bool,
    _plan: Option<Box<Plan>>, // the descriptor points into it
    sizes: sys::mp_rnn_sizes_t,
    workspace: DeviceBuffer<u8>,
    types: PhantomData<(T, G)>,
}

/// Runs a pass with the arguments that have been checked.
macro_rules! pass {
    ($call:ident, $function:ident, $stream:ident) => {{
        let (space, bytes) = $call.rnn.workspace.as_workspace();
        run!($call.rnn.context, $function(&$call.desc, &$call.tensors, space, bytes, $stream.0))
    }};
}

// SAFETY: numbers, and a pointer to a string that moves with the object.
unsafe impl<T: Float, G: Float> Send for Rnn<T, G> {}

impl<T: Float, G: Float> Rnn<T, G> {
    /// Returns layers x directions.
    pub fn num_weights(&self) -> usize {
        self.sizes.num_weights as usize
    }

    /// Returns all kernels, first the one that is selected.
    pub fn kernels(&self) -> Result<Vec<KernelInfo>> {
        query!(self.context, kernels::all(index, info), mp_rnn_kernel_info(&self.desc))
    }

    /// Returns the plan of all passes.
    pub fn get_plan(&self) -> Result<Plan> {
        query!(self.context, kernels::plan(plan), mp_rnn_get_plan(&self.desc))
    }

    /// Allocates a reserve, which stores data of a forward pass for its backward passes.
    pub fn reserve(&self) -> Result<DeviceBuffer<u8>> {
        self.context.alloc(self.sizes.reserve_bytes)
    }

    /// Runs the forward pass in training mode.
    pub fn forward(
        &self, inputs: &RnnInputs<'_, T>, outputs: &RnnOutputs<'_, T>, reserve: &DeviceBuffer<u8>,
        stream: Stream,
    ) -> Result<()> {
        let mut call = Call::new(self, inputs)?;
        call.outputs(outputs)?;
        call.reserve(reserve)?;
        pass!(call, mp_rnn_forward_training, stream)
    }

    /// Runs the forward pass without dropout and without a reserve; `hn` can be `h0`, and `cn` can
    /// be `c0`.
    pub fn inference(
        &self, inputs: &RnnInputs<'_, T>, outputs: &RnnOutputs<'_, T>, stream: Stream,
    ) -> Result<()> {
        let mut call = Call::new(self, inputs)?;
        call.outputs(outputs)?;
        pass!(call, mp_rnn_forward_inference, stream)
    }

    /// Computes the gradients of the inputs from those of the outputs.  `inputs` and `reserve` are
    /// those of [`forward`](Rnn::forward); `found_inf` is that of a scaler.
    pub fn backward_data(
        &self, inputs: &RnnInputs<'_, T>, doutputs: &RnnOutputs<'_, T>,
        dinputs: &RnnInputGrads<'_, T>, reserve: &DeviceBuffer<u8>,
        found_inf: Option<View<'_, f32>>, stream: Stream,
    ) -> Result<()> {
        let mut call = Call::new(self, inputs)?;
        call.reserve(reserve)?;
        call.tensors.dy = self.required("dy", doutputs.y, call.of_y)?.cast();
        call.tensors.dhn = self.state("dhn", doutputs.hn)?.cast();
        call.tensors.dcn = self.state("dcn", doutputs.cn)?;
        call.tensors.dx = self.optional("dx", dinputs.x, call.of_x)?.cast();
        call.tensors.dh0 = self.state("dh0", dinputs.h0)?.cast();
        call.tensors.dc0 = self.state("dc0", dinputs.c0)?;
        call.tensors.stats.found_inf = self.optional("found_inf", found_inf, 1)?;
        pass!(call, mp_rnn_backward_data, stream)
    }

    /// Computes the gradients of the weights, after [`backward_data`](Rnn::backward_data).
    pub fn backward_weights(
        &self, inputs: &RnnInputs<'_, T>, grads: &[RnnWeightGrads<'_, G>],
        reserve: &DeviceBuffer<u8>, options: &RnnGradOptions<'_>, stream: Stream,
    ) -> Result<()> {
        let mut call = Call::new(self, inputs)?;
        call.reserve(reserve)?;
        exactly("grads", grads.len(), self.sizes.num_weights.into())?;
        let raw: Result<Vec<_>> = (grads.iter().enumerate())
            .map(|(i, g)| {
                let name = |field| format!("grads[{i}].{field}");
                let [of_ih, of_hh, of_bias] = self.elements(i);
                Ok(sys::mp_rnn_weight_grads_t {
                    w_ih: self.optional(&name("w_ih"), g.w_ih, of_ih)?.cast(),
                    w_hh: self.optional(&name("w_hh"), g.w_hh, of_hh)?.cast(),
                    b_ih: self.optional(&name("b_ih"), g.b_ih, of_bias)?,
                    b_hh: self.optional(&name("b_hh"), g.b_hh, of_bias)?,
                    ..sys::mp_rnn_weight_grads_t::zeroed()
                })
            })
            .collect();
        let raw = raw?;
        call.tensors.weight_grads = raw.as_ptr();
        call.tensors.stats.found_inf = self.optional("found_inf", options.found_inf, 1)?;
        call.tensors.stats.amax = self.optional("amax", options.amax, 1)?;
        if options.accumulate {
            call.desc.flags |= sys::MP_RNN_FLAG_ACCUMULATE;
        }
        pass!(call, mp_rnn_backward_weights, stream)
    }

    fn required<E: Plain>(&self, name: &str, view: View<'_, E>, needed: i128) -> Result<*mut E> {
        self.context.checks(CALL).data(name, &view, needed)
    }

    fn optional<E: Plain>(
        &self, name: &str, view: Option<View<'_, E>>, needed: i128,
    ) -> Result<*mut E> {
        self.context.checks(CALL).optional(name, view, needed)
    }

    /// Returns the address of h0 or a tensor of its size, or NULL.
    fn state<E: Plain>(&self, name: &str, view: Option<View<'_, E>>) -> Result<*mut E> {
        let rows = i128::from(self.sizes.num_weights) * i128::from(self.desc.batch);
        self.optional(name, view, rows * i128::from(self.desc.hidden_size))
    }

    /// Returns the number of elements of `w_ih`, `w_hh` and a bias.
    fn elements(&self, index: usize) -> [i128; 3] {
        let hidden = i128::from(self.desc.hidden_size);
        let rows = i128::from(self.sizes.gates) * hidden;
        let inputs = if index < self.sizes.directions as usize {
            self.desc.input_size.into()
        } else {
            i128::from(self.sizes.directions) * hidden
        };
        [rows * inputs, rows * hidden, rows]
    }
}

/// Checks the length of an array on the host.
fn exactly(name: &str, len: usize, needed: i64) -> Result<()> {
    if len as i64 == needed {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{CALL}: {name} has {len} elements, but must have at least {needed}"
    )))
}

/// A call whose arguments are being checked.
struct Call<'a, T: Float, G: Float> {
    rnn: &'a Rnn<T, G>,
    desc: sys::mp_rnn_desc_t,
    tensors: sys::mp_rnn_tensors_t,
    weights: Vec<sys::mp_rnn_weights_t>, // the tensors point to it
    of_x: i128,
    of_y: i128,
}

impl<'a, T: Float, G: Float> Call<'a, T, G> {
    /// Checks the inputs of all passes.
    fn new(rnn: &'a Rnn<T, G>, inputs: &'a RnnInputs<'_, T>) -> Result<Self> {
        let mut desc = rnn.desc;
        let mut tensors = sys::mp_rnn_tensors_t::zeroed();
        let inner = i64::from(desc.input_size);
        let outer = i64::from(rnn.sizes.directions) * i64::from(desc.hidden_size);
        let (timesteps, batch) = (i64::from(desc.timesteps), i64::from(desc.batch));
        let mut rows = i128::from(timesteps) * i128::from(batch);
        if let RnnSteps::Packed(sizes) = inputs.steps {
            exactly("steps", sizes.len(), timesteps)?;
            rows = sizes.iter().map(|&size| i128::from(size)).sum(); // checked by the library
            tensors.batch_sizes = sizes.as_ptr();
        } else if rnn.is_batch_first {
            (desc.x_step, desc.x_row) = (inner, timesteps * inner);
            (desc.y_step, desc.y_row) = (outer, timesteps * outer);
        }
        let (of_x, of_y) = (rows * i128::from(inner), rows * i128::from(outer));
        let mut call = Call { rnn, desc, tensors, weights: Vec::new(), of_x, of_y };
        exactly("weights", inputs.weights.len(), rnn.sizes.num_weights.into())?;
        for (i, w) in inputs.weights.iter().enumerate() {
            let name = |field| format!("weights[{i}].{field}");
            let [of_ih, of_hh, of_bias] = rnn.elements(i);
            let raw = sys::mp_rnn_weights_t {
                w_ih: rnn.optional(&name("w_ih"), w.w_ih, of_ih)?.cast(),
                w_hh: rnn.required(&name("w_hh"), w.w_hh, of_hh)?.cast(),
                b_ih: rnn.optional(&name("b_ih"), w.b_ih, of_bias)?,
                b_hh: rnn.optional(&name("b_hh"), w.b_hh, of_bias)?,
                ..sys::mp_rnn_weights_t::zeroed()
            };
            call.weights.push(raw);
        }
        call.tensors.num_weights = rnn.sizes.num_weights;
        call.tensors.weights = call.weights.as_ptr();
        if let RnnSteps::Lengths(lengths) = inputs.steps {
            call.tensors.lengths = rnn.required("lengths", lengths, batch.into())?;
        }
        call.tensors.x = rnn.required("x", inputs.x, of_x)?.cast();
        call.tensors.h0 = rnn.state("h0", inputs.h0)?.cast();
        call.tensors.c0 = rnn.state("c0", inputs.c0)?;
        call.tensors.dropout_offset =
            rnn.optional("dropout_offset", inputs.dropout_offset, 1)?.cast();
        Ok(call)
    }

    fn outputs(&mut self, outputs: &RnnOutputs<'_, T>) -> Result<()> {
        self.tensors.y = self.rnn.required("y", outputs.y, self.of_y)?.cast();
        self.tensors.hn = self.rnn.state("hn", outputs.hn)?.cast();
        self.tensors.cn = self.rnn.state("cn", outputs.cn)?;
        Ok(())
    }

    /// Sets the reserve; the library checks its size.
    fn reserve(&mut self, reserve: &DeviceBuffer<u8>) -> Result<()> {
        self.tensors.reserve = self.rnn.required("reserve", reserve.view(), 0)?.cast();
        self.tensors.reserve_bytes = reserve.len();
        Ok(())
    }
}
