//! Embeddings, dropout, rotary embeddings and softmax.

use crate::context::{span, Context, Data, DeviceBuffer, Float, Integer, Stream, View};
use crate::conv::extent;
use crate::enums::Dtype;
use crate::epilogue::{operand, GradStats, Operand};
use crate::error::{read, Result};
use crate::sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

const CALL: &str = "embedding";

impl Context {
    /// Creates an embedding that looks up `num_indices` vectors of `embedding_dim` elements in a
    /// table of `num_embeddings` vectors of type `T`, with a gradient of type `G`.
    pub fn embedding<T: Float, G: Float>(
        &self, num_indices: usize, num_embeddings: usize, embedding_dim: usize,
    ) -> Result<Embedding<T, G>> {
        let words = extent(CALL, "num_embeddings", num_embeddings)?;
        // The library rejects values that overflowed to negative.
        let (count, width) = (num_indices as i64, embedding_dim as i64);
        let mut desc = sys::mp_embedding_desc_default(count, words, width, T::DTYPE as u32);
        desc.dtype_dtable = G::DTYPE as u32;
        let bytes = query!(self, read(bytes), mp_embedding_workspace_size(&desc))?;
        let (context, workspace) = (self.clone(), self.alloc(bytes)?);
        Ok(Embedding { context, desc, workspace, types: PhantomData })
    }

    /// Sets elements to 0 with probability p and scales the others by 1 / (1 - p); y can be x.  For
    /// the gradient, pass dy as x with the same seed and offset.
    ///
    /// Use a different `seed` for each tensor.  Each value of `offset` (1 number) selects a
    /// different mask; in training use a counter, such as
    /// [`step_counter`](crate::Optimizer::step_counter).  None: the same mask in all steps.
    pub fn dropout<T: Float>(
        &self, p: f32, seed: u64, offset: Option<View<'_, i64>>, x: &impl Data<Element = T>,
        y: &impl Data<Element = T>, stats: &GradStats<'_>, stream: Stream,
    ) -> Result<()> {
        let (checks, count) = (self.checks("dropout"), x.view().len);
        let x = checks.data("x", x, 0)?.cast();
        let y = checks.data("y", y, count as i128)?.cast();
        let offset = checks.optional("offset", offset, 1)?.cast();
        let stats = stats.raw(checks)?;
        let mut desc = sys::mp_dropout_desc_default(count as i64, p, T::DTYPE as u32);
        desc.seed = seed;
        run!(self, mp_dropout(&desc, offset, x, y, &stats, stream.0))
    }
}

/// Options of the table gradient; `Default` overwrites it.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbeddingGradOptions<'a> {
    /// Adds to the previous contents.
    pub accumulate: bool,
    /// Statistics of the rows that are written.
    pub stats: GradStats<'a>,
}

/// An embedding: a table of vectors of type `T`, with a gradient of type `G`.
///
/// Owns the workspace of the backward pass.
pub struct Embedding<T: Float, G: Float> {
    context: Context,
    desc: sys::mp_embedding_desc_t,
    workspace: DeviceBuffer<u8>,
    types: PhantomData<(T, G)>,
}

impl<T: Float, G: Float> Embedding<T, G> {
    /// Sets the table row whose gradient is 0.  The passes return an error if the row does not
    /// exist.
    pub fn padding(mut self, index: usize) -> Result<Self> {
        self.desc.padding_index = index as i64; // the library rejects negative values
        self.desc.flags |= sys::MP_EMBEDDING_FLAG_PADDING;
        Ok(self)
    }

    /// Computes out\[i\] = table\[indices\[i\]\], or NaN for an index out of range.  `out` must not
    /// be the table.
    pub fn forward<I: Integer>(
        &self, table: &impl Data<Element = T>, indices: &impl Data<Element = I>,
        out: &impl Data<Element = T>, stream: Stream,
    ) -> Result<()> {
        let (checks, desc) = (self.context.checks(CALL), self.with_indices::<I>());
        let table = checks.data("table", table, self.of_table())?.cast();
        let indices = checks.data("indices", indices, desc.num_indices.into())?.cast();
        let out = checks.data("out", out, self.of_out())?.cast();
        run!(self.context, mp_embedding_forward(&desc, table, indices, out, stream.0))
    }

    /// Computes dtable\[v\] = sum of dout\[i\] over all i with indices\[i\] = v.
    pub fn backward<I: Integer>(
        &self, indices: &impl Data<Element = I>, dout: &impl Data<Element = T>,
        dtable: &impl Data<Element = G>, options: &EmbeddingGradOptions<'_>, stream: Stream,
    ) -> Result<()> {
        let (checks, mut desc) = (self.context.checks(CALL), self.with_indices::<I>());
        let indices = checks.data("indices", indices, desc.num_indices.into())?.cast();
        let dout = checks.data("dout", dout, self.of_out())?.cast();
        let dtable = checks.data("dtable", dtable, self.of_table())?.cast();
        let stats = options.stats.raw(checks)?;
        if options.accumulate {
            desc.flags |= sys::MP_EMBEDDING_FLAG_ACCUMULATE;
        }
        let (space, bytes) = self.workspace.as_workspace();
        run!(
            self.context,
            mp_embedding_backward(&desc, indices, dout, dtable, &stats, space, bytes, stream.0)
        )
    }

    fn with_indices<I: Integer>(&self) -> sys::mp_embedding_desc_t {
        sys::mp_embedding_desc_t { dtype_indices: I::DTYPE as u32, ..self.desc }
    }

    fn of_table(&self) -> i128 {
        i128::from(self.desc.num_embeddings) * i128::from(self.desc.embedding_dim)
    }

    fn of_out(&self) -> i128 {
        i128::from(self.desc.num_indices) * i128::from(self.desc.embedding_dim)
    }
}

impl Context {
    /// Begins a rotary position embedding of dense rows x heads x head_dim elements with base
    /// 10000.  A row is a token, and its position the number of the row.
    pub fn rope(&self, rows: usize, heads: usize, head_dim: usize) -> Result<Rope<'_>> {
        let (heads, dim) = (extent("rope", "heads", heads)?, extent("rope", "head_dim", head_dim)?);
        let rows = rows as i64; // the library rejects negative values, here and below
        let desc = sys::mp_rope_desc_default(rows, heads, dim, sys::MP_DTYPE_NONE);
        Ok(Rope::begin(self, desc))
    }

    /// Begins a softmax over the columns of dense rows, without a mask.
    pub fn softmax(&self, rows: usize, columns: usize) -> Softmax<'_> {
        let (rows, columns) = (rows as i64, columns as i64);
        let desc = sys::mp_softmax_desc_default(rows, columns, sys::MP_DTYPE_NONE);
        Softmax::begin(self, desc)
    }
}

call! {
    /// A rotary position embedding: set options, then call [`run`](Rope::run).
    Rope: mp_rope_desc_t {
        /// Sets the position of each row.
        positions: i32,
        /// Sets the frequency of each pair: rotary_dim / 2 numbers.
        inv_freq: f32,
    }
}

impl<'a> Rope<'a> {
    setters! {
        /// Sets the number of leading elements of a head that are rotated; initially all.
        fn rotary_dim(self, rotary_dim: u32) { self.desc.rotary_dim = rotary_dim as i32; }
        /// Rotates pairs of adjacent elements, instead of elements that are rotary_dim / 2 apart.
        fn interleaved(self) { self.desc.flags |= sys::MP_ROPE_FLAG_INTERLEAVED; }
        /// Rotates back: the backward pass, with dy as x.
        fn inverse(self) { self.desc.flags |= sys::MP_ROPE_FLAG_INVERSE; }
        /// Sets the strides of rows and heads, in elements; 0 = dense.
        fn strides(self, row: usize, head: usize) {
            self.desc.x_row = row as i64;
            self.desc.x_head = head as i64;
        }
        /// Sets the base of the frequencies base^(-2i / rotary_dim).
        fn base(self, base: f32) { self.desc.base = base; }
        /// Sets the number of tokens of a sequence, after which positions start again from 0.
        fn period(self, period: usize) { self.desc.period = period as i64; }
    }

    /// Rotates x; y can be x.
    pub fn run<T: Float>(
        self, x: &impl Data<Element = T>, y: &impl Data<Element = T>,
    ) -> Result<()> {
        let (checks, mut desc) = (self.context.checks("rope"), self.desc);
        desc.dtype = T::DTYPE as u32;
        let (heads, dim) = (i64::from(desc.heads), i64::from(desc.head_dim));
        let x_head = if desc.x_head == 0 { dim } else { desc.x_head };
        let x_row = if desc.x_row == 0 { heads.saturating_mul(x_head) } else { desc.x_row };
        let needed = span(&[(desc.rows, x_row), (heads, x_head)], dim);
        let x = checks.data("x", x, needed)?.cast();
        let y = checks.data("y", y, needed)?.cast();
        let positions = checks.optional("positions", self.positions, desc.rows.into())?;
        let pairs = desc.rotary_dim / 2; // the library rejects negative values
        let inv_freq = checks.optional("inv_freq", self.inv_freq, pairs.into())?;
        let stats = self.stats.raw(checks)?;
        run!(self.context, mp_rope(&desc, positions, inv_freq, x, y, &stats, self.stream.0))
    }
}

call! {
    /// A softmax over the columns of each row: set options, then call [`forward`](Softmax::forward)
    /// or [`backward`](Softmax::backward).  The last mask that is set is used.
    Softmax: mp_softmax_desc_t { ; mask }
}

impl<'a> Softmax<'a> {
    setters! {
        /// Sets the factor of x.
        fn scale(self, scale: f32) { self.desc.scale = scale; }
        /// Computes the logarithm of the softmax.
        fn log(self) { self.desc.flags |= sys::MP_SOFTMAX_FLAG_LOG; }
        /// Sets the leading dimensions of x and y, and of their gradients.
        fn ld(self, x: usize, y: usize) {
            self.desc.ld_x = x as i64;
            self.desc.ld_y = y as i64;
        }
        /// Hides keys after the diagonal of matrices with `queries` rows; the last query sees all
        /// keys.
        fn causal(self, queries: usize) {
            self = self.masked(sys::MP_SOFTMAX_MASK_CAUSAL, None, queries);
        }
        /// Sets the number of visible columns for each `rows` consecutive rows.
        fn lengths(self, lengths: &'a impl Data<Element = i32>, rows: usize) {
            let View { owner, pointer, len, .. } = lengths.view();
            let lengths = Operand { owner, pointer: pointer.cast(), len, dtype: Dtype::Int32 };
            self = self.masked(sys::MP_SOFTMAX_MASK_LENGTHS, Some(lengths), rows);
        }
        /// Adds a dense mask of `rows` rows, which are repeated.
        fn mask<M: Float>(self, mask: &'a impl Data<Element = M>, rows: usize) {
            self.desc.dtype_mask = M::DTYPE as u32;
            self = self.masked(sys::MP_SOFTMAX_MASK_ADDITIVE, Some(operand(mask)), rows);
        }
    }

    fn masked(mut self, kind: u32, mask: Option<Operand<'a>>, rows: usize) -> Self {
        self.desc.mask = kind;
        self.desc.mask_rows = rows as i64;
        self.mask = mask;
        self
    }

    /// Computes y, which can be x.
    pub fn forward<T: Float>(
        self, x: &impl Data<Element = T>, y: &impl Data<Element = T>,
    ) -> Result<()> {
        let (checks, desc) = (self.context.checks("softmax"), self.of(T::DTYPE));
        let x = checks.data("x", x, self.rows(desc.ld_x))?.cast();
        let y = checks.data("y", y, self.rows(desc.ld_y))?.cast();
        let mask = self.pointer_of_mask()?;
        run!(self.context, mp_softmax_forward(&desc, x, mask, y, self.stream.0))
    }

    /// Computes dx from the result of [`forward`](Softmax::forward); dx can be y or dy.
    pub fn backward<T: Float>(
        self, y: &impl Data<Element = T>, dy: &impl Data<Element = T>, dx: &impl Data<Element = T>,
    ) -> Result<()> {
        let (checks, desc) = (self.context.checks("softmax"), self.of(T::DTYPE));
        let y = checks.data("y", y, self.rows(desc.ld_y))?.cast();
        let dy = checks.data("dy", dy, self.rows(desc.ld_y))?.cast();
        let dx = checks.data("dx", dx, self.rows(desc.ld_x))?.cast();
        let (mask, stats) = (self.pointer_of_mask()?, self.stats.raw(checks)?);
        run!(self.context, mp_softmax_backward(&desc, y, dy, mask, dx, &stats, self.stream.0))
    }

    fn of(&self, dtype: Dtype) -> sys::mp_softmax_desc_t {
        sys::mp_softmax_desc_t { dtype: dtype as u32, ..self.desc }
    }

    fn rows(&self, ld: i64) -> i128 {
        span(&[(self.desc.rows, ld)], self.desc.columns)
    }

    /// Returns the address of the mask, or NULL.
    fn pointer_of_mask(&self) -> Result<*mut c_void> {
        let given = match &self.mask {
            Some(mask) => mask,
            None => return Ok(ptr::null_mut()),
        };
        let d = &self.desc;
        let rows = if d.mask_rows == 0 { d.rows } else { d.rows.min(d.mask_rows) };
        let needed = if d.mask == sys::MP_SOFTMAX_MASK_ADDITIVE {
            span(&[(rows, d.ld_mask)], d.columns)
        } else if d.rows > 0 && rows > 0 {
            i128::from((d.rows - 1) / rows + 1)
        } else {
            0
        };
        given.check(self.context.checks("softmax"), "mask", needed)?;
        Ok(given.pointer)
    }
}
