//! Losses: softmax cross-entropy and element-wise losses.

use crate::context::{Checks, Context, Data, Float, Integer};
use crate::enums::{Dtype, LossKind, LossReduction};
use crate::error::{read, Result};
use crate::sys;

call! {
    /// Softmax cross-entropy of `rows` x `classes` logits: set options, then call
    /// [`run`](SoftmaxXent::run).
    SoftmaxXent: mp_xent_desc_t {
        /// Multiplies the gradient by 1 number: `&scaler.scale()`.
        loss_scale: f32,
        /// Divides by 1 number instead of the number of rows that are not ignored, for a mean over
        /// several calls.
        count: f32,
        /// Stores log(sum(exp(logits))) of every row.
        lse: f32,
        /// Stores the mean loss: 1 number.
        loss: f32,
        /// Sets one weight per class.
        class_weights: f32,
        /// Increases 1 number by the number of correct rows.
        correct: i64,
    }
}

impl Context {
    /// Begins a loss of dense rows with weight 1; rows with label -100 are ignored.
    pub fn softmax_xent(&self, rows: usize, classes: usize) -> SoftmaxXent<'_> {
        let none = sys::MP_DTYPE_NONE;
        SoftmaxXent::begin(self, sys::mp_xent_desc_default(rows as i64, classes as i64, none))
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
        /// Computes the negative log-likelihood of log-probabilities instead of logits.
        fn log_probabilities(self) { self.desc.flags |= sys::MP_XENT_FLAG_LOG_PROBABILITIES; }
        /// Sets the weight of the squares of log(sum(exp(logits))).
        fn z_loss(self, z_loss: f32) { self.desc.z_loss = z_loss; }
    }

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
        run!(self.context, mp_softmax_xent(&desc, &tensors, self.stream.0))
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

call! {
    /// An element-wise loss of `count` elements: set options, then call [`run`](ElementLoss::run).
    ElementLoss: mp_loss_desc_t {
        /// Sets one weight per element.
        weights: f32,
        /// Multiplies the gradient by 1 number: `&scaler.scale()`.
        loss_scale: f32,
        /// Stores the loss of every element.
        element_loss: f32,
        /// Stores the mean or the sum: 1 number.
        loss: f32,
        /// Sets a workspace of at least [`workspace_size`](ElementLoss::workspace_size) bytes.
        workspace: u8,
    }
}

impl Context {
    /// Begins a loss that is the mean of all elements, with weight 1.
    pub fn element_loss(&self, kind: LossKind, count: usize) -> ElementLoss<'_> {
        let none = sys::MP_DTYPE_NONE;
        ElementLoss::begin(self, sys::mp_loss_desc_default(kind as u32, count as i64, none))
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
    }

    /// Returns the required workspace size in bytes for any types; at most 16 KiB.
    pub fn workspace_size(&self) -> Result<usize> {
        let mut desc = self.desc;
        desc.dtype = sys::MP_FP32;
        desc.dtype_target = sys::MP_FP32;
        query!(self.context, read(bytes), mp_loss_workspace_size(&desc))
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
        run!(self.context, mp_loss(&desc, &tensors, space, bytes, self.stream.0))
    }
}
