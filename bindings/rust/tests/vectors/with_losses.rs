//! Losses.  `v` is the run, as in `with_arrays.rs`.

use crate::cases::{Arg, Run};
use crate::STREAM;
use mpcore::*;

/// The arrays that both cross-entropies have.
struct Xent([Option<Arg<f32>>; 5], Option<Arg<i64>>);

impl Xent {
    fn new(v: &Run) -> Self {
        let names = ["loss", "count", "lse", "class_weights", "loss_scale"];
        Xent(names.map(|name| v.opt(name)), v.opt("correct"))
    }

    fn begin<'r>(&'r self, v: &'r Run, rows_of: &str, classes: usize) -> SoftmaxXent<'r> {
        let mut xent = v.context.softmax_xent(v.rows::<2>(rows_of)[0], classes);
        let [loss, count, lse, class_weights, loss_scale] = &self.0;
        set!(xent, loss(loss), count(count), lse(lse), class_weights(class_weights));
        set!(xent, loss_scale(loss_scale), correct(&self.1), weight(v.number("weight")));
        set!(xent, label_smoothing(v.number("label_smoothing")), z_loss(v.number("z_loss")));
        switch!(xent, v, log_probabilities);
        if v.is_set("ignore_label") || v.equals("ignore_label", "none") {
            xent = xent.ignore_label(v.number("ignore_label"));
        }
        xent
    }
}

pub fn softmax_xent(v: &Run) -> Result<()> {
    let (more, stats, dlogits) = (Xent::new(v), v.stats(), v.opt("dlogits"));
    let (logits, row_loss, dlogits) = (v.get::<f32>("logits"), v.get("row_loss"), dlogits.as_ref());
    let xent = more.begin(v, "logits", v.rows::<2>("logits")[1]).stats(stats.view());
    match v.dtype("labels") {
        "int32" => xent.run(&logits, &v.get::<i32>("labels"), &row_loss, dlogits),
        "int64" => xent.run(&logits, &v.get::<i64>("labels"), &row_loss, dlogits),
        _ => xent.run_soft(&logits, &v.get::<f32>("labels"), &row_loss, dlogits),
    }
}

pub fn xent_count(v: &Run) -> Result<()> {
    let (labels, count) = (v.get::<i32>("labels"), v.get("count"));
    v.context.xent_count(&labels, v.number("ignore_label").unwrap(), &count.view(), STREAM)
}

pub fn linear_xent(v: &Run) -> Result<()> {
    let ([classes, width], more) = (v.rows("w"), Xent::new(v));
    let (x, w, labels) = (v.get::<f32>("x"), v.get("w"), v.get::<i32>("labels"));
    let (bias, dx, dw, dbias) = (v.opt("bias"), v.opt("dx"), v.opt("dw"), v.opt("dbias"));
    let mut xent = more.begin(v, "x", classes).linear(width);
    let space = v.context.alloc(xent.workspace_size()?)?;
    set!(xent, bias(&bias), dx(&dx), dw(&dw), dbias(&dbias), workspace(Some(&space)));
    switch!(xent, v, accumulate);
    xent.run(&x, &w, &labels, &v.get("row_loss"))
}

pub fn element_loss(v: &Run) -> Result<()> {
    let (kind, [count]) = (v.named("kind", LossKind::from_raw).unwrap(), v.rows("prediction"));
    let (prediction, target) = (v.get::<f32>("prediction"), v.get::<f32>("target"));
    let (weights, scale, stats) = (v.opt("weights"), v.opt("loss_scale"), v.stats());
    let (each, total, dprediction) = (v.opt("element_loss"), v.opt("loss"), v.opt("dprediction"));
    let mut call = v.context.element_loss(kind, count).stats(stats.view());
    let space = v.context.alloc(call.workspace_size()?)?;
    set!(call, weights(&weights), loss_scale(&scale), element_loss(&each), loss(&total));
    set!(call, weight(v.number("weight")), delta(v.number("delta")), workspace(Some(&space)));
    set!(call, reduction(v.named("reduction", LossReduction::from_raw)));
    set!(call, ignore_target(v.number("ignore_target")));
    call.run(&prediction, &target, dprediction.as_ref())
}
