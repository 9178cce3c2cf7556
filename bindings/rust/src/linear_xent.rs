//! Softmax cross-entropy of a linear layer.

use crate::context::{Context, Data, Float, Integer, Stream, View};
use crate::error::{read, Result};
use crate::sys;
use crate::xent::SoftmaxXent;

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
    pub fn xent_count<I: Integer>(
        &self, labels: &impl Data<Element = I>, ignore_label: i64, count: &View<'_, f32>,
        stream: Stream,
    ) -> Result<()> {
        let (checks, rows) = (self.checks("xent_count"), labels.view().len as i64);
        let labels = checks.data("labels", labels, 0)?.cast();
        let (count, dtype) = (checks.data("count", count, 1)?, I::DTYPE as u32);
        run!(self, mp_xent_count(rows, dtype, labels, ignore_label, count, stream.0))
    }
}

impl<'a, T: Float> LinearXent<'a, T> {
    setters! {
        /// Adds one number per class to the logits.
        fn bias(self, bias: &'a impl Data<Element = T>) { self.bias = Some(bias.view()); }
        /// Stores the gradient of x, which can be x.
        fn dx(self, dx: &'a impl Data<Element = T>) { self.dx = Some(dx.view()); }
        /// Stores the gradient of w.
        fn dw(self, dw: &'a impl Data<Element = f32>) { self.dw = Some(dw.view()); }
        /// Stores the gradient of the bias.
        fn dbias(self, dbias: &'a impl Data<Element = f32>) { self.dbias = Some(dbias.view()); }
        /// Adds to dw and dbias.
        fn accumulate(self) { self.flags = sys::MP_XENT_FLAG_ACCUMULATE; }
        /// Sets a workspace of at least [`workspace_size`](LinearXent::workspace_size) bytes.
        fn workspace(self, workspace: &'a impl Data<Element = u8>) {
            self.workspace = Some(workspace.view());
        }
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
        let desc = self.desc();
        query!(self.xent.context, read(bytes), mp_linear_xent_workspace_size(&desc))
    }

    /// Computes the loss of every row of logits x w^T + bias, and the gradients.
    /// `x` is rows x width, `w` classes x width.
    pub fn run<I: Integer>(
        self, x: &impl Data<Element = T>, w: &impl Data<Element = T>,
        labels: &impl Data<Element = I>, row_loss: &impl Data<Element = f32>,
    ) -> Result<()> {
        let (context, mut desc) = (self.xent.context, self.desc());
        let checks = context.checks("linear_xent");
        desc.dtype_labels = I::DTYPE as u32;
        let (rows, classes) = (i128::from(desc.rows), i128::from(desc.classes));
        let (of_x, of_w) = (rows * i128::from(desc.width), classes * i128::from(desc.width));
        let tensors = sys::mp_xent_tensors_t {
            x: checks.data("x", x, of_x)?.cast(),
            w: checks.data("w", w, of_w)?.cast(),
            bias: checks.optional("bias", self.bias, classes)?.cast(),
            labels: checks.data("labels", labels, rows)?.cast(),
            row_loss: checks.data("row_loss", row_loss, rows)?,
            dx: checks.optional("dx", self.dx, of_x)?.cast(),
            dw: checks.optional("dw", self.dw, of_w)?,
            dbias: checks.optional("dbias", self.dbias, classes)?,
            ..self.xent.tensors(checks)?
        };
        let ((space, bytes), stream) = (checks.workspace(self.workspace)?, self.xent.stream.0);
        run!(context, mp_linear_xent(&desc, &tensors, space, bytes, stream))
    }
}
