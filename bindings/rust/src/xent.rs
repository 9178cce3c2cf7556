//! Losses: softmax cross-entropy and element-wise losses.

use crate::context::{Checks, Context, Data, Float, Integer, Stream, View};
use crate::enums::{Dtype, LossKind, LossReduction};
use crate::epilogue::GradStats;
use crate::error::{read, Result};
use crate::sys;

/// Softmax cross-entropy of `rows` x `classes` logits: set options, then call
/// [`run`](SoftmaxXent::run).
pub struct SoftmaxXent<'a> {
    pub(crate) context: &'a Context,
    pub(crate) desc: sys::mp_xent_desc_t,
    pub(crate) loss_scale: Option<View<'a, f32>>,
    pub(crate) count: Option<View<'a, f32>>,
    pub(crate) lse: Option<View<'a, f32>>,
    pub(crate) loss: Option<View<'a, f32>>,
    pub(crate) class_weights: Option<View<'a, f32>>,
    pub(crate) correct: Option<View<'a, i64>>,
    pub(crate) stats: GradStats<'a>,
    pub(crate) stream: Stream,
}

impl Context {
    /// Begins a loss of dense rows with weight 1; rows with label -100 are ignored.
    pub fn softmax_xent(&self, rows: usize, classes: usize) -> SoftmaxXent<'_> {
        let desc = sys::mp_xent_desc_default(rows as i64, classes as i64, sys::MP_DTYPE_NONE);
        let (loss_scale, count, lse, loss, class_weights, correct) = Default::default();
        let (stats, stream) = (GradStats::default(), Stream::DEFAULT);
        SoftmaxXent {
            context: self,
            desc,
            loss_scale,
            count,
            lse,
            loss,
            class_weights,
            correct,
            stats,
            stream,
        }
    }
}

impl<'a> SoftmaxXent<'a> {
    setters! {
        /// Sets the factor of loss and gradient.
        fn weight(self, weight: f32) { self.desc.weight = weight; }
        /// Sets the label of rows to ignore; `None`: no rows.
        fn ignore_label(self, label: Option<i64>) {
            match label {
                None => self.desc.flags &= !sys::MP_XENT_FLAG_IGNORE_LABEL,
                Some(label) => {
                    self.desc.flags |= sys::MP_XENT_FLAG_IGNORE_LABEL;
                    self.desc.ignore_label = label;
                }
            }
        }
        /// Sets the label smoothing, in [0, 1): the part of each target that is distributed over
        /// all classes.
        fn label_smoothing(self, label_smoothing: f32) {
            self.desc.label_smoothing = label_smoothing;
        }
        /// Sets one weight per class.
        fn class_weights(self, class_weights: &'a impl Data<Element = f32>) {
            self.class_weights = Some(class_weights.view());
        }
        /// Computes the negative log-likelihood of log-probabilities instead of logits.
        fn log_probabilities(self) { self.desc.flags |= sys::MP_XENT_FLAG_LOG_PROBABILITIES; }
        /// Sets the weight of the squares of log(sum(exp(logits))).
        fn z_loss(self, z_loss: f32) { self.desc.z_loss = z_loss; }
        /// Multiplies the gradient by 1 number: `&scaler.scale()`.
        fn loss_scale(self, loss_scale: &'a impl Data<Element = f32>) {
            self.loss_scale = Some(loss_scale.view());
        }
        /// Divides by 1 number instead of the number of rows that are not ignored, for a mean over
        /// several calls.
        fn count(self, count: &'a impl Data<Element = f32>) { self.count = Some(count.view()); }
        /// Stores log(sum(exp(logits))) of every row.
        fn lse(self, lse: &'a impl Data<Element = f32>) { self.lse = Some(lse.view()); }
        /// Stores the mean loss: 1 number.
        fn loss(self, loss: &'a impl Data<Element = f32>) { self.loss = Some(loss.view()); }
        /// Increases 1 number by the number of correct rows.
        fn correct(self, correct: &'a impl Data<Element = i64>) {
            self.correct = Some(correct.view());
        }
    }

    call_setters! {}

    /// Computes the loss of every row, and the gradient `dlogits`, which can be the logits.
    pub fn run<T: Float, I: Integer>(
        self, logits: &impl Data<Element = T>, labels: &impl Data<Element = I>,
        row_loss: &impl Data<Element = f32>, dlogits: Option<&impl Data<Element = T>>,
    ) -> Result<()> {
        let rows = i128::from(self.desc.rows);
        self.enqueue(logits, labels, I::DTYPE, rows, row_loss, dlogits)
    }

    /// Like [`run`](SoftmaxXent::run) with a dense target per row and class instead of labels.
    pub fn run_soft<T: Float, P: Float>(
        self, logits: &impl Data<Element = T>, targets: &impl Data<Element = P>,
        row_loss: &impl Data<Element = f32>, dlogits: Option<&impl Data<Element = T>>,
    ) -> Result<()> {
        let elements = i128::from(self.desc.rows) * i128::from(self.desc.classes);
        self.enqueue(logits, targets, P::DTYPE, elements, row_loss, dlogits)
    }

    fn enqueue<T: Float>(
        self, logits: &impl Data<Element = T>, labels: &impl Data, dtype_labels: Dtype,
        num_labels: i128, row_loss: &impl Data<Element = f32>,
        dlogits: Option<&impl Data<Element = T>>,
    ) -> Result<()> {
        let (checks, mut desc) = (self.context.checks("softmax_xent"), self.desc);
        desc.dtype = T::DTYPE as u32;
        desc.dtype_labels = dtype_labels as u32;
        let elements = i128::from(desc.rows) * i128::from(desc.classes);
        let dlogits = dlogits.map(|gradient| gradient.view());
        let tensors = sys::mp_xent_tensors_t {
            x: checks.data("logits", logits, elements)?.cast(),
            labels: checks.data("labels", labels, num_labels)?.cast(),
            row_loss: checks.data("row_loss", row_loss, desc.rows.into())?,
            dx: checks.optional("dlogits", dlogits, elements)?.cast(),
            ..self.tensors(checks)?
        };
        // SAFETY: all pointers belong to this context and have the elements that the call uses.
        self.context.call(|c| unsafe { sys::mp_softmax_xent(c, &desc, &tensors, self.stream.0) })
    }

    /// Returns the tensors that setters have set.
    pub(crate) fn tensors(&self, checks: Checks<'_>) -> Result<sys::mp_xent_tensors_t> {
        let (rows, classes) = (i128::from(self.desc.rows), i128::from(self.desc.classes));
        Ok(sys::mp_xent_tensors_t {
            loss_scale: checks.optional("loss_scale", self.loss_scale, 1)?,
            count: checks.optional("count", self.count, 1)?,
            lse: checks.optional("lse", self.lse, rows)?,
            loss: checks.optional("loss", self.loss, 1)?,
            correct: checks.optional("correct", self.correct, 1)?,
            stats: self.stats.raw(checks)?,
            class_weights: checks.optional("class_weights", self.class_weights, classes)?,
            ..sys::mp_xent_tensors_t::zeroed()
        })
    }
}

/// An element-wise loss of `count` elements: set options, then call [`run`](ElementLoss::run).
pub struct ElementLoss<'a> {
    context: &'a Context,
    desc: sys::mp_loss_desc_t,
    weights: Option<View<'a, f32>>,
    loss_scale: Option<View<'a, f32>>,
    element_loss: Option<View<'a, f32>>,
    loss: Option<View<'a, f32>>,
    workspace: Option<View<'a, u8>>,
    stats: GradStats<'a>,
    stream: Stream,
}

impl Context {
    /// Begins a loss that is the mean of all elements, with weight 1.
    pub fn element_loss(&self, kind: LossKind, count: usize) -> ElementLoss<'_> {
        let desc = sys::mp_loss_desc_default(kind as u32, count as i64, sys::MP_DTYPE_NONE);
        let (weights, loss_scale, element_loss, loss, workspace) = Default::default();
        let (stats, stream) = (GradStats::default(), Stream::DEFAULT);
        ElementLoss {
            context: self,
            desc,
            weights,
            loss_scale,
            element_loss,
            loss,
            workspace,
            stats,
            stream,
        }
    }
}

impl<'a> ElementLoss<'a> {
    setters! {
        /// Sets the factor of loss and gradient.
        fn weight(self, weight: f32) { self.desc.weight = weight; }
        /// Sets the reduction of the sum.
        fn reduction(self, reduction: LossReduction) { self.desc.reduction = reduction as u32; }
        /// Sets the target of elements to ignore, which can be NaN.
        fn ignore_target(self, target: f32) {
            self.desc.flags |= sys::MP_LOSS_FLAG_IGNORE_TARGET;
            self.desc.ignore_target = target;
        }
        /// Sets the distance at which Huber and smooth L1 losses become linear; 1 by default.
        fn delta(self, delta: f32) { self.desc.delta = delta; }
        /// Sets one weight per element.
        fn weights(self, weights: &'a impl Data<Element = f32>) {
            self.weights = Some(weights.view());
        }
        /// Multiplies the gradient by 1 number: `&scaler.scale()`.
        fn loss_scale(self, loss_scale: &'a impl Data<Element = f32>) {
            self.loss_scale = Some(loss_scale.view());
        }
        /// Stores the loss of every element.
        fn element_loss(self, element_loss: &'a impl Data<Element = f32>) {
            self.element_loss = Some(element_loss.view());
        }
        /// Stores the mean or the sum: 1 number.
        fn loss(self, loss: &'a impl Data<Element = f32>) { self.loss = Some(loss.view()); }
        /// Sets a workspace of at least [`workspace_size`](ElementLoss::workspace_size) bytes.
        fn workspace(self, workspace: &'a impl Data<Element = u8>) {
            self.workspace = Some(workspace.view());
        }
    }

    call_setters! {}

    /// Returns the required workspace size in bytes for any types; at most 16 KiB.
    pub fn workspace_size(&self) -> Result<usize> {
        let mut desc = self.desc;
        desc.dtype = sys::MP_FP32;
        desc.dtype_target = sys::MP_FP32;
        let context = self.context.as_raw();
        // SAFETY: the descriptor lives during the call.
        read(|bytes| unsafe { sys::mp_loss_workspace_size(context, &desc, bytes) })
    }

    /// Computes the loss, and the gradient `dprediction`, which can be the prediction.
    pub fn run<T: Float, P: Float>(
        self, prediction: &impl Data<Element = T>, target: &impl Data<Element = P>,
        dprediction: Option<&impl Data<Element = T>>,
    ) -> Result<()> {
        let (checks, mut desc) = (self.context.checks("element_loss"), self.desc);
        desc.dtype = T::DTYPE as u32;
        desc.dtype_target = P::DTYPE as u32;
        let count = i128::from(desc.count);
        let dprediction = dprediction.map(|gradient| gradient.view());
        let tensors = sys::mp_loss_tensors_t {
            prediction: checks.data("prediction", prediction, count)?.cast(),
            target: checks.data("target", target, count)?.cast(),
            weights: checks.optional("weights", self.weights, count)?,
            loss_scale: checks.optional("loss_scale", self.loss_scale, 1)?,
            element_loss: checks.optional("element_loss", self.element_loss, count)?,
            loss: checks.optional("loss", self.loss, 1)?,
            dprediction: checks.optional("dprediction", dprediction, count)?.cast(),
            stats: self.stats.raw(checks)?,
            ..sys::mp_loss_tensors_t::zeroed()
        };
        let (space, bytes) = checks.workspace(self.workspace)?;
        // SAFETY: all pointers belong to this context and have the elements that the call uses.
        self.context
            .call(|c| unsafe { sys::mp_loss(c, &desc, &tensors, space, bytes, self.stream.0) })
    }
}
