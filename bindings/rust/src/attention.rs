//! Scaled dot-product attention.

use crate::context::{span, Context, Data, DeviceBuffer, Float, Stream, View};
use crate::conv::extent;
use crate::epilogue::GradStats;
use crate::error::{read, read_text, Result};
use crate::kernels::{self, KernelInfo};
use crate::sys;
use std::marker::PhantomData;

const CALL: &str = "attention";

/// Description of an attention, from which [`build`](AttentionBuilder::build) creates an
/// [`Attention`].
pub struct AttentionBuilder<'c> {
    context: &'c Context,
    desc: sys::mp_attention_desc_t,
}

impl Context {
    /// Begins an attention of dense padded sequences, in which all keys are visible.  q has batch x
    /// `len[0]` x heads x head_dim elements, k and v have batch x `len[1]` x heads x head_dim.
    pub fn attention(
        &self, batch: usize, heads: usize, len: [usize; 2], head_dim: usize,
    ) -> Result<AttentionBuilder<'_>> {
        let desc = sys::mp_attention_desc_default(
            extent(CALL, "batch", batch)?,
            extent(CALL, "heads", heads)?,
            len[0] as i64, // the library rejects negative values, here and below
            len[1] as i64,
            extent(CALL, "head_dim", head_dim)?,
            sys::MP_DTYPE_NONE,
        );
        Ok(AttentionBuilder { context: self, desc })
    }
}

/// Strides of a tensor of rows and heads, in elements; 0 = dense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttentionLayout {
    /// Distance of sequences; unused in the packed form.
    pub batch: usize,
    /// Distance of rows.
    pub row: usize,
    /// Distance of heads.
    pub head: usize,
}

impl AttentionLayout {
    fn raw(self) -> sys::mp_attention_layout_t {
        let (batch, row, head) = (self.batch as i64, self.row as i64, self.head as i64);
        sys::mp_attention_layout_t { batch, row, head }
    }
}

impl AttentionBuilder<'_> {
    setters! {
        /// Sets the number of heads of k and v, which groups of query heads share.
        fn kv_heads(self, kv_heads: u32) { self.desc.kv_heads = kv_heads as i32; }
        /// Sets the number of elements of a head of v and o.
        fn head_dim_v(self, head_dim_v: u32) { self.desc.head_dim_v = head_dim_v as i32; }
        /// Selects the packed form, with that many rows of q and of k in all sequences.
        fn packed(self, q_rows: usize, kv_rows: usize) {
            self.desc.q_rows = q_rows as i64;
            self.desc.kv_rows = kv_rows as i64;
        }
        /// Sets the layouts of q, k, v and o, and of their gradients.
        fn layouts(self, layouts: [AttentionLayout; 4]) {
            [self.desc.q, self.desc.k, self.desc.v, self.desc.o] = layouts.map(AttentionLayout::raw);
        }
        /// Sets the factor of the scores; initially 1 / sqrt(head_dim).
        fn scale(self, scale: f32) { self.desc.scale = scale; }
        /// Hides the keys after the diagonal.
        fn causal(self) { self.desc.flags |= sys::MP_ATTENTION_FLAG_CAUSAL; }
        /// Sets the number of visible keys before and after the diagonal; -1 = all.
        fn window(self, left: i32, right: i32) {
            self.desc.flags |= sys::MP_ATTENTION_FLAG_WINDOW;
            self.desc.window_left = left;
            self.desc.window_right = right;
        }
        /// Sets the probability that a score is dropped; `dropout_offset` of the inputs changes the
        /// mask between steps.
        fn dropout(self, dropout: f32, seed: u64) {
            self.desc.dropout = dropout;
            self.desc.dropout_seed = seed;
        }
    }

    /// Creates an attention with tensors of type `T`.
    pub fn build<T: Float>(mut self) -> Result<Attention<T>> {
        self.desc.dtype = T::DTYPE as u32;
        let bytes =
            query!(self.context, read(bytes), mp_attention_backward_workspace_size(&self.desc))?;
        Ok(Attention {
            context: self.context.clone(),
            desc: self.desc,
            lse: self.context.alloc(bytes / std::mem::size_of::<f32>())?,
            workspace: self.context.alloc(bytes)?,
            element: PhantomData,
        })
    }
}

/// Lengths of the sequences.
#[derive(Clone, Copy, Debug)]
pub enum AttentionLengths<'a> {
    /// Padded form: all rows are valid.
    All,
    /// Padded form: valid rows, one number per sequence; None: all rows.
    Padded {
        /// Valid rows of q.
        q: Option<View<'a, i32>>,
        /// Valid rows of k and v.
        kv: Option<View<'a, i32>>,
    },
    /// Packed form: the rows after the last row of each sequence in q, and in k and v.
    Packed(View<'a, i32>, View<'a, i32>),
}

/// Inputs of both passes.
#[derive(Clone, Copy, Debug)]
pub struct AttentionInputs<'a, T> {
    /// Queries, rows x heads x head_dim.
    pub q: View<'a, T>,
    /// Keys, rows x kv_heads x head_dim.
    pub k: View<'a, T>,
    /// Values, rows x kv_heads x head_dim_v.
    pub v: View<'a, T>,
    /// Lengths of the sequences.
    pub lengths: AttentionLengths<'a>,
    /// Logits without a value, one per head; None: no sinks.
    pub sinks: Option<View<'a, f32>>,
    /// Dropout offset, 1 number; each value selects a different mask, as in
    /// [`dropout`](Context::dropout).
    pub dropout_offset: Option<View<'a, i64>>,
}

/// Gradients of the inputs.
#[derive(Clone, Copy, Debug)]
pub struct AttentionGrads<'a, T> {
    /// Gradient of q.
    pub q: View<'a, T>,
    /// Gradient of k.
    pub k: View<'a, T>,
    /// Gradient of v.
    pub v: View<'a, T>,
    /// Gradient of `sinks`, optional.
    pub sinks: Option<View<'a, f32>>,
}

/// Scaled dot-product attention of tensors of type `T`.
///
/// Owns its workspace and the statistics of the last [`forward`](Attention::forward), which
/// [`backward`](Attention::backward) reads: call forward once before each backward.
pub struct Attention<T: Float> {
    context: Context,
    desc: sys::mp_attention_desc_t,
    lse: DeviceBuffer<f32>,
    workspace: DeviceBuffer<u8>,
    element: PhantomData<T>,
}

impl<T: Float> Attention<T> {
    /// Returns the logarithm of the sum of exponentials of the scores in the latest forward pass:
    /// batch x heads x rows, or heads x rows in the packed form.
    pub fn lse(&self) -> &DeviceBuffer<f32> {
        &self.lse
    }

    /// Describes the kernels of both passes for aligned tensors, for people.
    pub fn explain(&self) -> Result<String> {
        query!(self.context, read_text(text, bytes), mp_attention_explain(&self.desc))
    }

    /// Returns all kernels, first the one that is selected for aligned tensors.
    pub fn kernels(&self) -> Result<Vec<KernelInfo>> {
        query!(self.context, kernels::all(index, info), mp_attention_kernel_info(&self.desc))
    }

    /// Computes o, rows x heads x head_dim_v: the mean of v weighted by the softmax of the scores.
    pub fn forward(
        &self, inputs: &AttentionInputs<'_, T>, o: &impl Data<Element = T>, stream: Stream,
    ) -> Result<()> {
        let tensors = self.tensors(inputs, &o.view())?;
        run!(self.context, mp_attention_forward(&self.desc, &tensors, stream.0))
    }

    /// Computes the gradients of the latest forward pass from its result `o` and its gradient.
    pub fn backward(
        &self, inputs: &AttentionInputs<'_, T>, o: &impl Data<Element = T>,
        d_o: &impl Data<Element = T>, grads: &AttentionGrads<'_, T>, stats: &GradStats<'_>,
        stream: Stream,
    ) -> Result<()> {
        let (checks, desc) = (self.context.checks(CALL), &self.desc);
        let tensors = sys::mp_attention_tensors_t {
            d_o: self.of_queries("d_o", &d_o.view(), desc.o, self.dim_v())?.cast(),
            dq: self.of_queries("dq", &grads.q, desc.q, desc.head_dim)?.cast(),
            dk: self.of_keys("dk", &grads.k, desc.k, desc.head_dim)?.cast(),
            dv: self.of_keys("dv", &grads.v, desc.v, self.dim_v())?.cast(),
            dsinks: checks.optional("dsinks", grads.sinks, desc.heads.into())?,
            stats: stats.raw(checks)?,
            ..self.tensors(inputs, &o.view())?
        };
        let (space, bytes) = self.workspace.as_workspace();
        run!(self.context, mp_attention_backward(desc, &tensors, space, bytes, stream.0))
    }

    /// Returns the tensors of both passes.
    fn tensors(
        &self, inputs: &AttentionInputs<'_, T>, o: &View<'_, T>,
    ) -> Result<sys::mp_attention_tensors_t> {
        let (d, checks) = (&self.desc, self.context.checks(CALL));
        let offset = checks.optional("dropout_offset", inputs.dropout_offset, 1)?;
        let mut tensors = sys::mp_attention_tensors_t {
            q: self.of_queries("q", &inputs.q, d.q, d.head_dim)?.cast(),
            k: self.of_keys("k", &inputs.k, d.k, d.head_dim)?.cast(),
            v: self.of_keys("v", &inputs.v, d.v, self.dim_v())?.cast(),
            o: self.of_queries("o", o, d.o, self.dim_v())?.cast(),
            lse: self.lse.as_ptr(),
            sinks: checks.optional("sinks", inputs.sinks, d.heads.into())?,
            dropout_offset: offset.cast(),
            ..sys::mp_attention_tensors_t::zeroed()
        };
        let per_sequence = |name, view| checks.optional(name, view, d.batch.into());
        match inputs.lengths {
            AttentionLengths::All => {}
            AttentionLengths::Padded { q, kv } => {
                tensors.q_lengths = per_sequence("q_lengths", q)?;
                tensors.kv_lengths = per_sequence("kv_lengths", kv)?;
            }
            AttentionLengths::Packed(q, kv) => {
                tensors.q_ends = per_sequence("q_ends", Some(q))?;
                tensors.kv_ends = per_sequence("kv_ends", Some(kv))?;
            }
        }
        Ok(tensors)
    }

    fn dim_v(&self) -> i32 {
        if self.desc.head_dim_v == 0 {
            self.desc.head_dim
        } else {
            self.desc.head_dim_v
        }
    }

    fn of_queries(
        &self, name: &str, view: &View<'_, T>, layout: sys::mp_attention_layout_t, dim: i32,
    ) -> Result<*mut T> {
        let d = &self.desc;
        self.strided(name, view, layout, [d.q_len, d.q_rows, d.heads.into(), dim.into()])
    }

    fn of_keys(
        &self, name: &str, view: &View<'_, T>, layout: sys::mp_attention_layout_t, dim: i32,
    ) -> Result<*mut T> {
        let d = &self.desc;
        self.strided(name, view, layout, [d.kv_len, d.kv_rows, d.kv_heads.into(), dim.into()])
    }

    /// Checks the size of a tensor: \[rows of a sequence, rows if packed, heads, elements of a
    /// head\].
    fn strided(
        &self, name: &str, view: &View<'_, T>, layout: sys::mp_attention_layout_t,
        [len, packed_rows, heads, dim]: [i64; 4],
    ) -> Result<*mut T> {
        let or = |stride, dense| if stride == 0 { dense } else { stride };
        let (row, head) = (or(layout.row, heads * dim), or(layout.head, dim));
        let rows = if packed_rows > 0 { packed_rows } else { len };
        let batch = if packed_rows > 0 { 1 } else { self.desc.batch.into() };
        let levels =
            [(batch, or(layout.batch, len.saturating_mul(row))), (rows, row), (heads, head)];
        self.context.checks(CALL).data(name, view, span(&levels, dim))
    }
}
