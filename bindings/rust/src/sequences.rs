//! Embeddings, dropout, rotary embeddings and softmax.

use crate::context::{span, Context, Data, DeviceBuffer, Float, Integer, Stream, View};
use crate::conv::extent;
use crate::enums::Dtype;
use crate::epilogue::{operand, GradStats, Operand};
use crate::error::{check, Result};
use crate::sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

const CALL: &str = "embedding";

impl Context {
    /// Creates an embedding that looks up `num_indices` vectors of `embedding_dim` elements in a
    /// table of `num_embeddings` vectors of type `T`, with a gradient of type `G`.
    pub fn embedding<T: Float, G: Float>(
        &self,
        num_indices: usize,
        num_embeddings: usize,
        embedding_dim: usize,
    ) -> Result<Embedding<T, G>> {
        let words = extent(CALL, "num_embeddings", num_embeddings)?;
        // The library rejects values that overflowed to negative.
        let (count, width) = (num_indices as i64, embedding_dim as i64);
        let mut desc = sys::mp_embedding_desc_default(count, words, width, T::DTYPE as u32);
        desc.dtype_dtable = G::DTYPE as u32;
        let mut bytes = 0;
        // SAFETY: the descriptor lives during the call, which rejects values out of range.
        check(unsafe { sys::mp_embedding_workspace_size(self.as_raw(), &desc, &mut bytes) })?;
        let (context, workspace) = (self.clone(), self.alloc(bytes)?);
        Ok(Embedding { context, desc, workspace, types: PhantomData })
    }

    /// Sets elements to 0 with probability p and scales the others by 1 / (1 - p); y can be x.  For
    /// the gradient, pass dy as x with the same seed and offset.
    ///
    /// Use a different `seed` for each tensor.  Each value of `offset` (1 number) selects a
    /// different mask; in training use a counter, such as
    /// [`step_counter`](crate::Optimizer::step_counter).  None: the same mask in all steps.
    pub fn dropout<X, Y>(
        &self,
        p: f32,
        seed: u64,
        offset: Option<View<'_, i64>>,
        x: &X,
        y: &Y,
        stats: &GradStats<'_>,
        stream: Stream,
    ) -> Result<()>
    where
        X: Data,
        Y: Data<Element = X::Element>,
        X::Element: Float,
    {
        let (call, x, y) = ("dropout", x.view(), y.view());
        self.holds(call, "x", &x, 0)?;
        self.holds(call, "y", &y, x.len as i128)?;
        let offset = self.output(call, "offset", offset.as_ref(), 1)?;
        let stats = stats.raw(self, call)?;
        let mut desc = sys::mp_dropout_desc_default(x.len as i64, p, X::Element::DTYPE as u32);
        desc.seed = seed;
        let context = self.as_raw();
        // SAFETY: all belong to this context and have the elements that the call uses.
        self.call(|| unsafe {
            let (x, y) = (x.pointer.cast(), y.pointer.cast());
            sys::mp_dropout(context, &desc, offset.cast(), x, y, &stats, stream.0)
        })
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
    pub fn forward<A, I, O>(&self, table: &A, indices: &I, out: &O, stream: Stream) -> Result<()>
    where
        A: Data<Element = T>,
        I: Data,
        I::Element: Integer,
        O: Data<Element = T>,
    {
        let (table, indices, out) = (table.view(), indices.view(), out.view());
        self.context.holds(CALL, "table", &table, self.of_table())?;
        self.context.holds(CALL, "indices", &indices, self.desc.num_indices.into())?;
        self.context.holds(CALL, "out", &out, self.of_out())?;
        let context = self.context.as_raw();
        let desc = self.with_indices::<I::Element>();
        // SAFETY: all belong to this context and have the elements that the call uses.
        self.context.call(|| unsafe {
            let (table, out) = (table.pointer.cast(), out.pointer.cast());
            sys::mp_embedding_forward(context, &desc, table, indices.pointer.cast(), out, stream.0)
        })
    }

    /// Computes dtable\[v\] = sum of dout\[i\] over all i with indices\[i\] = v.
    pub fn backward<I, O, A>(
        &self,
        indices: &I,
        dout: &O,
        dtable: &A,
        options: &EmbeddingGradOptions<'_>,
        stream: Stream,
    ) -> Result<()>
    where
        I: Data,
        I::Element: Integer,
        O: Data<Element = T>,
        A: Data<Element = G>,
    {
        let (indices, dout, dtable) = (indices.view(), dout.view(), dtable.view());
        self.context.holds(CALL, "indices", &indices, self.desc.num_indices.into())?;
        self.context.holds(CALL, "dout", &dout, self.of_out())?;
        self.context.holds(CALL, "dtable", &dtable, self.of_table())?;
        let stats = options.stats.raw(&self.context, CALL)?;
        let mut desc = self.with_indices::<I::Element>();
        if options.accumulate {
            desc.flags |= sys::MP_EMBEDDING_FLAG_ACCUMULATE;
        }
        // SAFETY: as in forward; freeing memory waits for the kernels.
        self.context.call(|| unsafe {
            sys::mp_embedding_backward(
                self.context.as_raw(),
                &desc,
                indices.pointer.cast(),
                dout.pointer.cast(),
                dtable.pointer.cast(),
                &stats,
                self.workspace.as_ptr().cast(),
                self.workspace.len(),
                stream.0,
            )
        })
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
        Ok(Rope {
            context: self,
            desc,
            positions: None,
            inv_freq: None,
            stats: GradStats::default(),
            stream: Stream::DEFAULT,
        })
    }

    /// Begins a softmax over the columns of dense rows, without a mask.
    pub fn softmax(&self, rows: usize, columns: usize) -> Softmax<'_> {
        let (rows, columns) = (rows as i64, columns as i64);
        let desc = sys::mp_softmax_desc_default(rows, columns, sys::MP_DTYPE_NONE);
        let (stats, stream) = (GradStats::default(), Stream::DEFAULT);
        Softmax { context: self, desc, mask: None, stats, stream }
    }
}

/// A rotary position embedding: set options, then call [`run`](Rope::run).
pub struct Rope<'a> {
    context: &'a Context,
    desc: sys::mp_rope_desc_t,
    positions: Option<View<'a, i32>>,
    inv_freq: Option<View<'a, f32>>,
    stats: GradStats<'a>,
    stream: Stream,
}

impl<'a> Rope<'a> {
    /// Sets the number of leading elements of a head that are rotated; initially all.
    pub fn rotary_dim(mut self, rotary_dim: u32) -> Self {
        self.desc.rotary_dim = rotary_dim as i32;
        self
    }

    /// Rotates pairs of adjacent elements, instead of elements that are rotary_dim / 2 apart.
    pub fn interleaved(mut self) -> Self {
        self.desc.flags |= sys::MP_ROPE_FLAG_INTERLEAVED;
        self
    }

    /// Rotates back: the backward pass, with dy as x.
    pub fn inverse(mut self) -> Self {
        self.desc.flags |= sys::MP_ROPE_FLAG_INVERSE;
        self
    }

    /// Sets the strides of rows and heads, in elements; 0 = dense.
    pub fn strides(mut self, row: usize, head: usize) -> Self {
        self.desc.x_row = row as i64;
        self.desc.x_head = head as i64;
        self
    }

    /// Sets the base of the frequencies base^(-2i / rotary_dim).
    pub fn base(mut self, base: f32) -> Self {
        self.desc.base = base;
        self
    }

    /// Sets the number of tokens of a sequence, after which positions start again from 0.
    pub fn period(mut self, period: usize) -> Self {
        self.desc.period = period as i64;
        self
    }

    /// Sets the position of each row.
    pub fn positions<D: Data<Element = i32>>(mut self, positions: &'a D) -> Self {
        self.positions = Some(positions.view());
        self
    }

    /// Sets the frequency of each pair: rotary_dim / 2 numbers.
    pub fn inv_freq<D: Data<Element = f32>>(mut self, inv_freq: &'a D) -> Self {
        self.inv_freq = Some(inv_freq.view());
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

    /// Rotates x; y can be x.
    pub fn run<X, Y>(self, x: &X, y: &Y) -> Result<()>
    where
        X: Data,
        Y: Data<Element = X::Element>,
        X::Element: Float,
    {
        let (call, context, mut desc) = ("rope", self.context, self.desc);
        desc.dtype = X::Element::DTYPE as u32;
        let (x, y) = (x.view(), y.view());
        let (heads, dim) = (i64::from(desc.heads), i64::from(desc.head_dim));
        let x_head = if desc.x_head == 0 { dim } else { desc.x_head };
        let x_row = if desc.x_row == 0 { heads.saturating_mul(x_head) } else { desc.x_row };
        let needed = span(&[(desc.rows, x_row), (heads, x_head)], dim);
        context.holds(call, "x", &x, needed)?;
        context.holds(call, "y", &y, needed)?;
        let rows = desc.rows as usize; // number of rows given to rope()
        let positions = context.output(call, "positions", self.positions.as_ref(), rows)?;
        let pairs = desc.rotary_dim as usize / 2; // the library rejects negative values
        let inv_freq = context.output(call, "inv_freq", self.inv_freq.as_ref(), pairs)?;
        let (stats, raw) = (self.stats.raw(context, call)?, context.as_raw());
        // SAFETY: all belong to this context and have the elements that the call uses.
        context.call(|| unsafe {
            let (x, y) = (x.pointer.cast(), y.pointer.cast());
            sys::mp_rope(raw, &desc, positions, inv_freq, x, y, &stats, self.stream.0)
        })
    }
}

/// A softmax over the columns of each row: set options, then call [`forward`](Softmax::forward) or
/// [`backward`](Softmax::backward).  The last mask that is set is used.
pub struct Softmax<'a> {
    context: &'a Context,
    desc: sys::mp_softmax_desc_t,
    mask: Option<Operand<'a>>,
    stats: GradStats<'a>,
    stream: Stream,
}

impl<'a> Softmax<'a> {
    /// Sets the factor of x.
    pub fn scale(mut self, scale: f32) -> Self {
        self.desc.scale = scale;
        self
    }

    /// Computes the logarithm of the softmax.
    pub fn log(mut self) -> Self {
        self.desc.flags |= sys::MP_SOFTMAX_FLAG_LOG;
        self
    }

    /// Sets the leading dimensions of x and y, and of their gradients.
    pub fn ld(mut self, x: usize, y: usize) -> Self {
        self.desc.ld_x = x as i64;
        self.desc.ld_y = y as i64;
        self
    }

    /// Hides keys after the diagonal of matrices with `queries` rows; the last query sees all keys.
    pub fn causal(self, queries: usize) -> Self {
        self.masked(sys::MP_SOFTMAX_MASK_CAUSAL, None, queries)
    }

    /// Sets the number of visible columns for each `rows` consecutive rows.
    pub fn lengths<D: Data<Element = i32>>(self, lengths: &'a D, rows: usize) -> Self {
        let View { owner, pointer, len, .. } = lengths.view();
        let lengths = Operand { owner, pointer: pointer.cast(), len, dtype: Dtype::Int32 };
        self.masked(sys::MP_SOFTMAX_MASK_LENGTHS, Some(lengths), rows)
    }

    /// Adds a dense mask of `rows` rows, which are repeated.
    pub fn mask<M: Data>(mut self, mask: &'a M, rows: usize) -> Self
    where
        M::Element: Float,
    {
        self.desc.dtype_mask = M::Element::DTYPE as u32;
        self.masked(sys::MP_SOFTMAX_MASK_ADDITIVE, Some(operand(mask)), rows)
    }

    fn masked(mut self, kind: u32, mask: Option<Operand<'a>>, rows: usize) -> Self {
        self.desc.mask = kind;
        self.desc.mask_rows = rows as i64;
        self.mask = mask;
        self
    }

    /// Reports on the gradient.
    pub fn stats(mut self, stats: GradStats<'a>) -> Self {
        self.stats = stats;
        self
    }

    /// Sets the stream.
    pub fn stream(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// Computes y, which can be x.
    pub fn forward<X, Y>(self, x: &X, y: &Y) -> Result<()>
    where
        X: Data,
        Y: Data<Element = X::Element>,
        X::Element: Float,
    {
        let (context, desc) = (self.context, self.of(X::Element::DTYPE));
        let (x, y) = (x.view(), y.view());
        context.holds("softmax", "x", &x, self.rows(desc.ld_x))?;
        context.holds("softmax", "y", &y, self.rows(desc.ld_y))?;
        let mask = self.pointer_of_mask()?;
        // SAFETY: all belong to this context and have the elements that the call uses.
        context.call(|| unsafe {
            let (x, y) = (x.pointer.cast(), y.pointer.cast());
            sys::mp_softmax_forward(context.as_raw(), &desc, x, mask, y, self.stream.0)
        })
    }

    /// Computes dx from the result of [`forward`](Softmax::forward); dx can be y or dy.
    pub fn backward<Y, G, D>(self, y: &Y, dy: &G, dx: &D) -> Result<()>
    where
        Y: Data,
        G: Data<Element = Y::Element>,
        D: Data<Element = Y::Element>,
        Y::Element: Float,
    {
        let (context, desc) = (self.context, self.of(Y::Element::DTYPE));
        let (y, dy, dx) = (y.view(), dy.view(), dx.view());
        context.holds("softmax", "y", &y, self.rows(desc.ld_y))?;
        context.holds("softmax", "dy", &dy, self.rows(desc.ld_y))?;
        context.holds("softmax", "dx", &dx, self.rows(desc.ld_x))?;
        let (mask, stats) = (self.pointer_of_mask()?, self.stats.raw(context, "softmax")?);
        // SAFETY: as in forward.
        context.call(|| unsafe {
            let (y, dy, dx) = (y.pointer.cast(), dy.pointer.cast(), dx.pointer.cast());
            sys::mp_softmax_backward(
                context.as_raw(),
                &desc,
                y,
                dy,
                mask,
                dx,
                &stats,
                self.stream.0,
            )
        })
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
        given.check(self.context, "softmax", "mask", needed)?;
        Ok(given.pointer)
    }
}
