//! Embeddings and dropout.

use crate::context::{Context, Data, DeviceBuffer, Float, Stream, View};
use crate::conv::extent;
use crate::error::{check, Result};
use crate::sys;
use std::marker::PhantomData;
use std::ptr;

const CALL: &str = "embedding";

impl Context {
    /// Creates an embedding that looks up `rows` vectors of `width` elements in a table of
    /// `vocabulary` vectors of type `T`, with a gradient of type `G`.
    pub fn embedding<T: Float, G: Float>(
        &self,
        rows: usize,
        vocabulary: usize,
        width: usize,
    ) -> Result<Embedding<T, G>> {
        let vocabulary = extent(CALL, "vocabulary", vocabulary)?;
        // The library rejects values that overflowed to negative.
        let (rows, width) = (rows as i64, width as i64);
        let mut desc = sys::mp_embedding_desc_default(rows, vocabulary, width, T::DTYPE as u32);
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
        let offset = optional(self, call, "offset", offset)?;
        let mut desc = sys::mp_dropout_desc_default(x.len as i64, p, X::Element::DTYPE as u32);
        desc.seed = seed;
        let context = self.as_raw();
        // SAFETY: all belong to this context and have the elements that the call uses.
        self.call(|| unsafe {
            let (x, y) = (x.pointer.cast(), y.pointer.cast());
            sys::mp_dropout(context, &desc, offset.cast(), x, y, stream.0)
        })
    }
}

/// Returns the address of a single number.
fn optional<E>(
    context: &Context,
    call: &str,
    name: &str,
    view: Option<View<'_, E>>,
) -> Result<*mut E> {
    let view = match view {
        Some(view) => view,
        None => return Ok(ptr::null_mut()),
    };
    context.holds(call, name, &view, 1)?;
    Ok(view.pointer)
}

/// Options of the table gradient; `Default` overwrites it.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbeddingGradOptions<'a> {
    /// Adds to the previous contents.
    pub accumulate: bool,
    /// Set to 1 if a gradient is infinite or NaN: 1 number.
    pub found_inf: Option<View<'a, f32>>,
    /// Updated to max(amax, |gradient|): 1 number.
    pub amax: Option<View<'a, f32>>,
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
        self.desc.padding_index = extent(CALL, "padding_index", index)?;
        self.desc.flags |= sys::MP_EMBEDDING_FLAG_PADDING;
        Ok(self)
    }

    /// Computes out\[i\] = table\[indices\[i\]\], or NaN for an index out of range.  `out` must not
    /// be the table.
    pub fn forward<A, I, O>(&self, table: &A, indices: &I, out: &O, stream: Stream) -> Result<()>
    where
        A: Data<Element = T>,
        I: Data<Element = i32>,
        O: Data<Element = T>,
    {
        let (table, indices, out) = (table.view(), indices.view(), out.view());
        self.context.holds(CALL, "table", &table, self.of_table())?;
        self.context.holds(CALL, "indices", &indices, self.desc.rows.into())?;
        self.context.holds(CALL, "out", &out, self.of_out())?;
        let context = self.context.as_raw();
        // SAFETY: all belong to this context and have the elements that the call uses.
        self.context.call(|| unsafe {
            let (table, out) = (table.pointer.cast(), out.pointer.cast());
            sys::mp_embedding_forward(context, &self.desc, table, indices.pointer, out, stream.0)
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
        I: Data<Element = i32>,
        O: Data<Element = T>,
        A: Data<Element = G>,
    {
        let (indices, dout, dtable) = (indices.view(), dout.view(), dtable.view());
        self.context.holds(CALL, "indices", &indices, self.desc.rows.into())?;
        self.context.holds(CALL, "dout", &dout, self.of_out())?;
        self.context.holds(CALL, "dtable", &dtable, self.of_table())?;
        let found_inf = optional(&self.context, CALL, "found_inf", options.found_inf)?;
        let amax = optional(&self.context, CALL, "amax", options.amax)?;
        let mut desc = self.desc;
        if options.accumulate {
            desc.flags |= sys::MP_EMBEDDING_FLAG_ACCUMULATE;
        }
        // SAFETY: as in forward; freeing memory waits for the kernels.
        self.context.call(|| unsafe {
            sys::mp_embedding_backward(
                self.context.as_raw(),
                &desc,
                indices.pointer,
                dout.pointer.cast(),
                dtable.pointer.cast(),
                found_inf,
                amax,
                self.workspace.as_ptr().cast(),
                self.workspace.len(),
                stream.0,
            )
        })
    }

    fn of_table(&self) -> i128 {
        i128::from(self.desc.vocabulary) * i128::from(self.desc.width)
    }

    fn of_out(&self) -> i128 {
        i128::from(self.desc.rows) * i128::from(self.desc.width)
    }
}
