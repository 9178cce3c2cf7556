//! Embeddings and dropout.

use crate::context::{Context, Data, DeviceBuffer, Float, Integer, Stream, View};
use crate::conv::extent;
use crate::epilogue::GradStats;
use crate::error::{check, Result};
use crate::sys;
use std::marker::PhantomData;

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
