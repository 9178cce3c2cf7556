//! Softmax cross-entropy of a linear layer.

use crate::context::{at_least, Context, Data, Float, Integer, Stream, View};
use crate::error::{check, Result};
use crate::sys;
use crate::xent::{optional, SoftmaxXent};

/// Softmax cross-entropy of a linear layer, without storing all logits: set options, then call
/// [`run`](LinearXent::run).
pub struct LinearXent<'a, T: Float> {
    xent: SoftmaxXent<'a>,
    width: usize,
    flags: u32,
    bias: Option<View<'a, T>>,
    dx: Option<View<'a, T>>,
    dw: Option<View<'a, f32>>,
    dbias: Option<View<'a, f32>>,
    workspace: Option<View<'a, u8>>,
}

impl<'a> SoftmaxXent<'a> {
    /// Fuses the loss with a linear layer of `width` inputs.
    pub fn linear<T: Float>(self, width: usize) -> LinearXent<'a, T> {
        let (bias, dx, dw, dbias, workspace) = (None, None, None, None, None);
        LinearXent { xent: self, width, flags: 0, bias, dx, dw, dbias, workspace }
    }
}

impl Context {
    /// Increases 1 number by the number of labels that are not `ignore_label`.
    pub fn xent_count<I>(
        &self,
        labels: &I,
        ignore_label: i64,
        count: &View<'_, f32>,
        stream: Stream,
    ) -> Result<()>
    where
        I: Data,
        I::Element: Integer,
    {
        let labels = labels.view();
        self.owns("xent_count", "labels", &labels)?;
        self.owns("xent_count", "count", count)?;
        at_least("xent_count", "count", count.len, 1)?;
        let (rows, dtype) = (labels.len as i64, I::Element::DTYPE as u32);
        // SAFETY: all labels and one number, of this context.
        self.call(|| unsafe {
            let labels = labels.pointer.cast();
            let (context, count) = (self.as_raw(), count.pointer);
            sys::mp_xent_count(context, rows, dtype, labels, ignore_label, count, stream.0)
        })
    }
}

impl<'a, T: Float> LinearXent<'a, T> {
    /// Adds one number per class to the logits.
    pub fn bias<D: Data<Element = T>>(mut self, bias: &'a D) -> Self {
        self.bias = Some(bias.view());
        self
    }

    /// Stores the gradient of x, which can be x.
    pub fn dx<D: Data<Element = T>>(mut self, dx: &'a D) -> Self {
        self.dx = Some(dx.view());
        self
    }

    /// Stores the gradient of w.
    pub fn dw<D: Data<Element = f32>>(mut self, dw: &'a D) -> Self {
        self.dw = Some(dw.view());
        self
    }

    /// Stores the gradient of the bias.
    pub fn dbias<D: Data<Element = f32>>(mut self, dbias: &'a D) -> Self {
        self.dbias = Some(dbias.view());
        self
    }

    /// Adds to dw and dbias.
    pub fn accumulate(mut self) -> Self {
        self.flags = sys::MP_XENT_FLAG_ACCUMULATE;
        self
    }

    /// Sets a workspace of at least [`workspace_size`](LinearXent::workspace_size) bytes.
    pub fn workspace<D: Data<Element = u8>>(mut self, workspace: &'a D) -> Self {
        self.workspace = Some(workspace.view());
        self
    }

    fn desc(&self) -> sys::mp_linear_xent_desc_t {
        let xent = &self.xent.desc;
        let (rows, width, classes) = (xent.rows, self.width as i64, xent.classes);
        sys::mp_linear_xent_desc_t {
            flags: xent.flags | self.flags,
            ignore_label: xent.ignore_label,
            weight: xent.weight,
            label_smoothing: xent.label_smoothing,
            z_loss: xent.z_loss,
            ..sys::mp_linear_xent_desc_default(rows, width, classes, T::DTYPE as u32)
        }
    }

    /// Returns the required workspace size in bytes; at most 256 MiB.
    pub fn workspace_size(&self) -> Result<usize> {
        let (desc, mut bytes) = (self.desc(), 0);
        let context = self.xent.context.as_raw();
        // SAFETY: the descriptor lives during the call.
        check(unsafe { sys::mp_linear_xent_workspace_size(context, &desc, &mut bytes) })?;
        Ok(bytes)
    }

    /// Computes the loss of every row of logits x w^T + bias, and the gradients.
    /// `x` is rows x width, `w` classes x width.
    pub fn run<X, W, I, R>(self, x: &X, w: &W, labels: &I, row_loss: &R) -> Result<()>
    where
        X: Data<Element = T>,
        W: Data<Element = T>,
        I: Data,
        I::Element: Integer,
        R: Data<Element = f32>,
    {
        let call = "linear_xent";
        let mut desc = self.desc();
        desc.dtype_labels = I::Element::DTYPE as u32;
        let (context, xent) = (self.xent.context, self.xent);
        let (rows, classes) = (i128::from(desc.rows), i128::from(desc.classes));
        let (of_x, of_w) = (rows * i128::from(desc.width), classes * i128::from(desc.width));
        let bytes = self.workspace.as_ref().map_or(0, |workspace| workspace.len);
        let tensors = sys::mp_xent_tensors_t {
            x: optional(context, call, "x", Some(x.view()), of_x)?.cast(),
            w: optional(context, call, "w", Some(w.view()), of_w)?.cast(),
            bias: optional(context, call, "bias", self.bias, classes)?.cast(),
            labels: optional(context, call, "labels", Some(labels.view()), rows)?.cast(),
            loss_scale: optional(context, call, "loss_scale", xent.loss_scale, 1)?,
            count: optional(context, call, "count", xent.count, 1)?,
            row_loss: optional(context, call, "row_loss", Some(row_loss.view()), rows)?,
            lse: optional(context, call, "lse", xent.lse, rows)?,
            loss: optional(context, call, "loss", xent.loss, 1)?,
            correct: optional(context, call, "correct", xent.correct, 1)?,
            class_weights: optional(context, call, "class_weights", xent.class_weights, classes)?,
            dx: optional(context, call, "dx", self.dx, of_x)?.cast(),
            dw: optional(context, call, "dw", self.dw, of_w)?,
            dbias: optional(context, call, "dbias", self.dbias, classes)?,
            stats: xent.stats.raw(context, call)?,
            ..sys::mp_xent_tensors_t::zeroed()
        };
        let workspace = optional(context, call, "workspace", self.workspace, 0)?;
        let (space, stream) = (workspace.cast(), xent.stream.0);
        // SAFETY: all pointers belong to this context and have the elements that the call uses.
        context.call(|| unsafe {
            sys::mp_linear_xent(context.as_raw(), &desc, &tensors, space, bytes, stream)
        })
    }
}
