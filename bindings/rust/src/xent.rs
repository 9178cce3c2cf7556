//! The loss of a classifier.

use crate::context::{at_least, Context, Data, Float, Stream, View};
use crate::error::Result;
use crate::sys;
use std::ffi::c_void;
use std::ptr;

/// Softmax cross-entropy of `rows` x `classes` logits: what else there is besides, then
/// [`run`](SoftmaxXent::run).
pub struct SoftmaxXent<'a> {
    context: &'a Context,
    desc: sys::mp_xent_desc_t,
    loss_scale: Option<View<'a, f32>>,
    loss: Option<View<'a, f32>>,
    correct: Option<View<'a, i64>>,
    stream: Stream,
}

impl Context {
    /// Dense rows, weight 1; rows labelled -100 are ignored.
    pub fn softmax_xent(&self, rows: usize, classes: usize) -> SoftmaxXent<'_> {
        SoftmaxXent {
            context: self,
            desc: sys::mp_xent_desc_default(rows as i64, classes as i64, sys::MP_DTYPE_NONE),
            loss_scale: None,
            loss: None,
            correct: None,
            stream: Stream::DEFAULT,
        }
    }
}

impl<'a> SoftmaxXent<'a> {
    /// Multiplies loss and gradient.
    pub fn weight(mut self, weight: f32) -> Self {
        self.desc.weight = weight;
        self
    }

    /// Rows with this label do not count; `None`: all do.
    pub fn ignore_label(mut self, label: Option<i32>) -> Self {
        match label {
            None => self.desc.flags &= !sys::MP_XENT_IGNORE_LABEL,
            Some(label) => {
                self.desc.flags |= sys::MP_XENT_IGNORE_LABEL;
                self.desc.ignore_label = label;
            }
        }
        self
    }

    /// In [0, 1): the part of each target that all classes share alike.
    pub fn label_smoothing(mut self, label_smoothing: f32) -> Self {
        self.desc.label_smoothing = label_smoothing;
        self
    }

    /// 1 number that multiplies the gradient: `&scaler.scale()`.
    pub fn loss_scale<D: Data<Element = f32>>(mut self, loss_scale: &'a D) -> Self {
        self.loss_scale = Some(loss_scale.view());
        self
    }

    /// 1 number: the mean loss.
    pub fn loss<D: Data<Element = f32>>(mut self, loss: &'a D) -> Self {
        self.loss = Some(loss.view());
        self
    }

    /// 1 number, increased by how many rows are right.
    pub fn correct<D: Data<Element = i64>>(mut self, correct: &'a D) -> Self {
        self.correct = Some(correct.view());
        self
    }

    /// Where it is enqueued.
    pub fn stream(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// The loss of every row, and the gradient into `dlogits`, which may be the logits.
    pub fn run<L, I, R, D>(
        self,
        logits: &L,
        labels: &I,
        row_loss: &R,
        dlogits: Option<&D>,
    ) -> Result<()>
    where
        L: Data,
        I: Data<Element = i32>,
        R: Data<Element = f32>,
        D: Data<Element = L::Element>,
        L::Element: Float,
    {
        let call = "softmax_xent";
        let mut desc = self.desc;
        desc.dtype = L::Element::DTYPE as u32;
        let elements = i128::from(desc.rows) * i128::from(desc.classes);
        let (logits, labels, row_loss) = (logits.view(), labels.view(), row_loss.view());
        self.context.owns(call, "logits", &logits)?;
        at_least(call, "logits", logits.len, elements)?;
        self.context.owns(call, "labels", &labels)?;
        at_least(call, "labels", labels.len, i128::from(desc.rows))?;
        self.context.owns(call, "row_loss", &row_loss)?;
        at_least(call, "row_loss", row_loss.len, i128::from(desc.rows))?;
        let mut gradient: *mut c_void = ptr::null_mut();
        if let Some(dlogits) = dlogits {
            let view = dlogits.view();
            self.context.owns(call, "dlogits", &view)?;
            at_least(call, "dlogits", view.len, elements)?;
            gradient = view.pointer.cast();
        }
        let loss_scale = one(self.context, "loss_scale", self.loss_scale)?;
        let loss = one(self.context, "loss", self.loss)?;
        let correct = one(self.context, "correct", self.correct)?;
        // SAFETY: all of them belong to this context and have the elements that the call uses.
        self.context.call(|| unsafe {
            sys::mp_softmax_xent(
                self.context.as_raw(),
                &desc,
                logits.pointer.cast(),
                labels.pointer,
                loss_scale,
                row_loss.pointer,
                loss,
                correct,
                gradient,
                self.stream.0,
            )
        })
    }
}

fn one<T>(context: &Context, name: &str, view: Option<View<'_, T>>) -> Result<*mut T> {
    match view {
        None => Ok(ptr::null_mut()),
        Some(view) => {
            context.owns("softmax_xent", name, &view)?;
            at_least("softmax_xent", name, view.len, 1)?;
            Ok(view.pointer)
        }
    }
}
