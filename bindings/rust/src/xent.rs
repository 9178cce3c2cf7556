//! Losses: softmax cross-entropy and element-wise losses.

use crate::context::{at_least, Context, Data, Float, Integer, Stream, View};
use crate::enums::{Dtype, LossKind, LossReduction};
use crate::epilogue::GradStats;
use crate::error::{check, Result};
use crate::sys;
use std::ptr;

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
        SoftmaxXent {
            context: self,
            desc: sys::mp_xent_desc_default(rows as i64, classes as i64, sys::MP_DTYPE_NONE),
            loss_scale: None,
            count: None,
            lse: None,
            loss: None,
            class_weights: None,
            correct: None,
            stats: GradStats::default(),
            stream: Stream::DEFAULT,
        }
    }
}

impl<'a> SoftmaxXent<'a> {
    /// Sets the factor of loss and gradient.
    pub fn weight(mut self, weight: f32) -> Self {
        self.desc.weight = weight;
        self
    }

    /// Sets the label of rows to ignore; `None`: no rows.
    pub fn ignore_label(mut self, label: Option<i64>) -> Self {
        match label {
            None => self.desc.flags &= !sys::MP_XENT_FLAG_IGNORE_LABEL,
            Some(label) => {
                self.desc.flags |= sys::MP_XENT_FLAG_IGNORE_LABEL;
                self.desc.ignore_label = label;
            }
        }
        self
    }

    /// Sets the label smoothing, in [0, 1): the part of each target that is distributed over all
    /// classes.
    pub fn label_smoothing(mut self, label_smoothing: f32) -> Self {
        self.desc.label_smoothing = label_smoothing;
        self
    }

    /// Sets one weight per class.
    pub fn class_weights<D: Data<Element = f32>>(mut self, class_weights: &'a D) -> Self {
        self.class_weights = Some(class_weights.view());
        self
    }

    /// Computes the negative log-likelihood of log-probabilities instead of logits.
    pub fn log_probabilities(mut self) -> Self {
        self.desc.flags |= sys::MP_XENT_FLAG_LOG_PROBABILITIES;
        self
    }

    /// Sets the weight of the squares of log(sum(exp(logits))).
    pub fn z_loss(mut self, z_loss: f32) -> Self {
        self.desc.z_loss = z_loss;
        self
    }

    /// Multiplies the gradient by 1 number: `&scaler.scale()`.
    pub fn loss_scale<D: Data<Element = f32>>(mut self, loss_scale: &'a D) -> Self {
        self.loss_scale = Some(loss_scale.view());
        self
    }

    /// Divides by 1 number instead of the number of rows that are not ignored, for a mean over
    /// several calls.
    pub fn count<D: Data<Element = f32>>(mut self, count: &'a D) -> Self {
        self.count = Some(count.view());
        self
    }

    /// Stores log(sum(exp(logits))) of every row.
    pub fn lse<D: Data<Element = f32>>(mut self, lse: &'a D) -> Self {
        self.lse = Some(lse.view());
        self
    }

    /// Stores the mean loss: 1 number.
    pub fn loss<D: Data<Element = f32>>(mut self, loss: &'a D) -> Self {
        self.loss = Some(loss.view());
        self
    }

    /// Reports on the gradient.
    pub fn stats(mut self, stats: GradStats<'a>) -> Self {
        self.stats = stats;
        self
    }

    /// Increases 1 number by the number of correct rows.
    pub fn correct<D: Data<Element = i64>>(mut self, correct: &'a D) -> Self {
        self.correct = Some(correct.view());
        self
    }

    /// Sets the stream.
    pub fn stream(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// Computes the loss of every row, and the gradient `dlogits`, which can be the logits.
    pub fn run<L, I, R, D>(
        self,
        logits: &L,
        labels: &I,
        row_loss: &R,
        dlogits: Option<&D>,
    ) -> Result<()>
    where
        L: Data,
        I: Data,
        I::Element: Integer,
        R: Data<Element = f32>,
        D: Data<Element = L::Element>,
        L::Element: Float,
    {
        let rows = i128::from(self.desc.rows);
        self.enqueue(logits, labels, I::Element::DTYPE, rows, row_loss, dlogits)
    }

    /// Like [`run`](SoftmaxXent::run) with a dense target per row and class instead of labels.
    pub fn run_soft<L, T, R, D>(
        self,
        logits: &L,
        targets: &T,
        row_loss: &R,
        dlogits: Option<&D>,
    ) -> Result<()>
    where
        L: Data,
        T: Data,
        T::Element: Float,
        R: Data<Element = f32>,
        D: Data<Element = L::Element>,
        L::Element: Float,
    {
        let elements = i128::from(self.desc.rows) * i128::from(self.desc.classes);
        self.enqueue(logits, targets, T::Element::DTYPE, elements, row_loss, dlogits)
    }

    fn enqueue<L, I, R, D>(
        self,
        logits: &L,
        labels: &I,
        dtype_labels: Dtype,
        num_labels: i128,
        row_loss: &R,
        dlogits: Option<&D>,
    ) -> Result<()>
    where
        L: Data,
        I: Data,
        R: Data<Element = f32>,
        D: Data<Element = L::Element>,
        L::Element: Float,
    {
        let call = "softmax_xent";
        let mut desc = self.desc;
        desc.dtype = L::Element::DTYPE as u32;
        desc.dtype_labels = dtype_labels as u32;
        let elements = i128::from(desc.rows) * i128::from(desc.classes);
        let (logits, labels, row_loss) = (logits.view(), labels.view(), row_loss.view());
        self.context.owns(call, "logits", &logits)?;
        at_least(call, "logits", logits.len, elements)?;
        self.context.owns(call, "labels", &labels)?;
        at_least(call, "labels", labels.len, num_labels)?;
        self.context.owns(call, "row_loss", &row_loss)?;
        at_least(call, "row_loss", row_loss.len, i128::from(desc.rows))?;
        let gradient = dlogits.map(|gradient| gradient.view());
        let tensors = sys::mp_xent_tensors_t {
            x: logits.pointer.cast(),
            labels: labels.pointer.cast(),
            loss_scale: optional(self.context, call, "loss_scale", self.loss_scale, 1)?,
            count: optional(self.context, call, "count", self.count, 1)?,
            row_loss: row_loss.pointer,
            lse: optional(self.context, call, "lse", self.lse, i128::from(desc.rows))?,
            loss: optional(self.context, call, "loss", self.loss, 1)?,
            correct: optional(self.context, call, "correct", self.correct, 1)?,
            dx: optional(self.context, call, "dlogits", gradient, elements)?.cast(),
            stats: self.stats.raw(self.context, call)?,
            class_weights: optional(
                self.context,
                call,
                "class_weights",
                self.class_weights,
                i128::from(desc.classes),
            )?,
            ..sys::mp_xent_tensors_t::zeroed()
        };
        // SAFETY: all pointers belong to this context and have the elements that the call uses.
        self.context.call(|| unsafe {
            sys::mp_softmax_xent(self.context.as_raw(), &desc, &tensors, self.stream.0)
        })
    }
}

pub(crate) fn optional<T>(
    context: &Context,
    call: &str,
    name: &str,
    view: Option<View<'_, T>>,
    needed: i128,
) -> Result<*mut T> {
    match view {
        None => Ok(ptr::null_mut()),
        Some(view) => {
            context.owns(call, name, &view)?;
            at_least(call, name, view.len, needed)?;
            Ok(view.pointer)
        }
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
        let none = sys::MP_DTYPE_NONE;
        ElementLoss {
            context: self,
            desc: sys::mp_loss_desc_default(kind as u32, count as i64, none),
            weights: None,
            loss_scale: None,
            element_loss: None,
            loss: None,
            workspace: None,
            stats: GradStats::default(),
            stream: Stream::DEFAULT,
        }
    }
}

impl<'a> ElementLoss<'a> {
    /// Sets the factor of loss and gradient.
    pub fn weight(mut self, weight: f32) -> Self {
        self.desc.weight = weight;
        self
    }

    /// Sets the reduction of the sum.
    pub fn reduction(mut self, reduction: LossReduction) -> Self {
        self.desc.reduction = reduction as u32;
        self
    }

    /// Sets the target of elements to ignore, which can be NaN.
    pub fn ignore_target(mut self, target: f32) -> Self {
        self.desc.flags |= sys::MP_LOSS_FLAG_IGNORE_TARGET;
        self.desc.ignore_target = target;
        self
    }

    /// Sets the distance at which Huber and smooth L1 losses become linear; 1 by default.
    pub fn delta(mut self, delta: f32) -> Self {
        self.desc.delta = delta;
        self
    }

    /// Sets one weight per element.
    pub fn weights<D: Data<Element = f32>>(mut self, weights: &'a D) -> Self {
        self.weights = Some(weights.view());
        self
    }

    /// Multiplies the gradient by 1 number: `&scaler.scale()`.
    pub fn loss_scale<D: Data<Element = f32>>(mut self, loss_scale: &'a D) -> Self {
        self.loss_scale = Some(loss_scale.view());
        self
    }

    /// Stores the loss of every element.
    pub fn element_loss<D: Data<Element = f32>>(mut self, element_loss: &'a D) -> Self {
        self.element_loss = Some(element_loss.view());
        self
    }

    /// Stores the mean or the sum: 1 number.
    pub fn loss<D: Data<Element = f32>>(mut self, loss: &'a D) -> Self {
        self.loss = Some(loss.view());
        self
    }

    /// Reports on the gradient.
    pub fn stats(mut self, stats: GradStats<'a>) -> Self {
        self.stats = stats;
        self
    }

    /// Sets a workspace of at least [`workspace_size`](ElementLoss::workspace_size) bytes.
    pub fn workspace<D: Data<Element = u8>>(mut self, workspace: &'a D) -> Self {
        self.workspace = Some(workspace.view());
        self
    }

    /// Sets the stream.
    pub fn stream(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// Returns the required workspace size in bytes for any types; at most 16 KiB.
    pub fn workspace_size(&self) -> Result<usize> {
        let mut desc = self.desc;
        desc.dtype = sys::MP_FP32;
        desc.dtype_target = sys::MP_FP32;
        let mut bytes = 0;
        // SAFETY: the descriptor lives during the call.
        check(unsafe { sys::mp_loss_workspace_size(self.context.as_raw(), &desc, &mut bytes) })?;
        Ok(bytes)
    }

    /// Computes the loss, and the gradient `dprediction`, which can be the prediction.
    pub fn run<P, T, D>(self, prediction: &P, target: &T, dprediction: Option<&D>) -> Result<()>
    where
        P: Data,
        T: Data,
        D: Data<Element = P::Element>,
        P::Element: Float,
        T::Element: Float,
    {
        let call = "element_loss";
        let mut desc = self.desc;
        desc.dtype = P::Element::DTYPE as u32;
        desc.dtype_target = T::Element::DTYPE as u32;
        let count = i128::from(desc.count);
        let (prediction, target) = (prediction.view(), target.view());
        self.context.owns(call, "prediction", &prediction)?;
        at_least(call, "prediction", prediction.len, count)?;
        self.context.owns(call, "target", &target)?;
        at_least(call, "target", target.len, count)?;
        let gradient = dprediction.map(|gradient| gradient.view());
        let bytes = self.workspace.as_ref().map_or(0, |workspace| workspace.len);
        let context = self.context;
        let tensors = sys::mp_loss_tensors_t {
            prediction: prediction.pointer.cast(),
            target: target.pointer.cast(),
            weights: optional(context, call, "weights", self.weights, count)?,
            loss_scale: optional(context, call, "loss_scale", self.loss_scale, 1)?,
            element_loss: optional(context, call, "element_loss", self.element_loss, count)?,
            loss: optional(context, call, "loss", self.loss, 1)?,
            dprediction: optional(context, call, "dprediction", gradient, count)?.cast(),
            stats: self.stats.raw(context, call)?,
            ..sys::mp_loss_tensors_t::zeroed()
        };
        let workspace = optional(context, call, "workspace", self.workspace, 0)?;
        // SAFETY: all pointers belong to this context and have the elements that the call uses.
        context.call(|| unsafe {
            sys::mp_loss(context.as_raw(), &desc, &tensors, workspace.cast(), bytes, self.stream.0)
        })
    }
}
