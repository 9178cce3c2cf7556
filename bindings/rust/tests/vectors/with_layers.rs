//! Objects with several passes.  `v` is the run, as in `with_arrays.rs`.

use crate::cases::{view, Arg, Number, Run};
use crate::with_arrays::options;
use crate::STREAM;
use mpcore::*;

/// Sets the window of a convolution or a pooling layer.
macro_rules! window {
    ($layer:ident, $v:ident) => {
        if let Some([top, bottom, left, right]) = $v.extents("padding") {
            $layer = $layer.padding(top, bottom, left, right);
        }
        if let Some([h, w]) = $v.extents("stride") {
            $layer = $layer.stride(h, w);
        }
        if let Some([h, w]) = $v.extents("dilation") {
            $layer = $layer.dilation(h, w);
        }
    };
}

pub fn conv2d(v: &Run) -> Result<()> {
    let (x, filter) = (v.extents("x_shape").unwrap(), v.extents("filter_shape").unwrap());
    assert_eq!(v.number("groups").unwrap_or(1), x[3] / filter[3]);
    let mut conv = v.context.conv2d(x, filter)?;
    window!(conv, v);
    let (x, filter, y) = (v.get::<F16>("x"), v.get("filter"), v.get::<f32>("y"));
    let (bias, aux, dbias) = (v.opt::<f32>("bias"), v.opt::<f32>("aux"), v.opt("dbias"));
    let (amax, activation) = (v.opt("amax"), v.named("activation", Activation::from_raw));
    let mut epilogue = Epilogue::default();
    set!(epilogue, bias(&bias), aux(&aux), dbias(&dbias), amax(&amax), activation(activation));
    conv.fprop(&x, &filter, &y, &OutputOptions { epilogue, ..options(v) })?;
    if v.has("dy") {
        let (dy, dx, dfilter) = (v.get("dy"), v.get::<f32>("dx"), v.get::<f32>("dfilter"));
        conv.dgrad(&dy, &filter, &dx, &options(v))?;
        conv.wgrad(&x, &dy, &dfilter, &options(v))?;
    }
    Ok(())
}

pub fn pool2d(v: &Run) -> Result<()> {
    let mode = v.named("mode", PoolMode::from_raw).unwrap();
    let [height, width] = v.extents("window").unwrap();
    let mut pool = v.context.pool2d(mode, v.extents("x_shape").unwrap(), (height, width))?;
    window!(pool, v);
    switch!(pool, v, ceil_mode);
    let (x, y, index) = (v.get::<f32>("x"), v.get("y"), v.opt("index"));
    assert_eq!(pool.output_size()?, (v.shape("y")[1], v.shape("y")[2]));
    pool.forward(&x, &y, view(&index).as_ref(), STREAM)?;
    if v.has("dy") {
        let (dy, dx, stats) = (v.get("dy"), v.get("dx"), v.stats());
        let x = (!v.equals("x", "none")).then(|| x.view());
        pool.backward(x.as_ref(), view(&index).as_ref(), &dy, &dx, &stats.view(), STREAM)?;
    }
    Ok(())
}

pub fn batch_norm(v: &Run) -> Result<()> {
    let BatchNormOptions { activation, epsilon, momentum } = Default::default();
    let activation = v.named("activation", Activation::from_raw).unwrap_or(activation);
    let epsilon = v.number("epsilon").unwrap_or(epsilon);
    let momentum = v.number("momentum").unwrap_or(momentum);
    let (rows, channels) = (v.number("rows").unwrap(), v.number("channels").unwrap());
    let options = BatchNormOptions { activation, epsilon, momentum };
    let norm = BatchNorm::<f32>::new(&v.context, rows, channels, &options)?;
    let (x, y, gamma, beta) = (v.get("x"), v.get("y"), v.opt("gamma"), v.opt("beta"));
    let affine = Affine { gamma: view(&gamma), beta: view(&beta) };
    if v.has("mean") {
        let (mean, var) = (v.get("mean"), v.get("var"));
        let statistics = Statistics { mean: mean.view(), var: var.view() };
        return norm.inference(&x, &affine, &statistics, &y, STREAM);
    }
    let (mean, var) = (v.opt("running_mean"), v.opt("running_var"));
    let running = mean.as_ref().zip(var.as_ref());
    let running = running.map(|(mean, var)| Statistics { mean: mean.view(), var: var.view() });
    norm.forward(&x, &affine, &y, running.as_ref(), STREAM)?;
    v.own("self.mean", norm.mean());
    v.own("self.inv_std", norm.inv_std());
    let (dgamma, dbeta, stats) = (v.opt("dgamma"), v.opt("dbeta"), v.stats());
    let grads = Affine { gamma: view(&dgamma), beta: view(&dbeta) };
    norm.backward(&x, &v.get("dy"), &affine, &v.get("dx"), &grads, &stats.view(), STREAM)
}

pub fn norm_of_any_type(v: &Run) -> Result<()> {
    if v.dtype("x") == "fp16" {
        norm::<F16>(v)
    } else {
        norm::<f32>(v)
    }
}

fn norm<T: Number + Float>(v: &Run) -> Result<()> {
    let options = NormOptions {
        groups: v.number("groups").unwrap_or(1),
        zero_centered: v.is_set("zero_centered"),
        epsilon: v.number("epsilon").unwrap(),
        dropout: v.number("dropout").unwrap_or(0.0),
        dropout_seed: v.number("dropout_seed").unwrap_or(0),
        ..Default::default()
    };
    let kind = v.named("kind", NormKind::from_raw).unwrap();
    let (rows, columns) = (v.number("rows").unwrap(), v.number("columns").unwrap());
    let norm = Norm::<T, f32>::new(&v.context, kind, rows, columns, &options)?;
    let (x, y, gamma, beta) = (v.get("x"), v.get("y"), v.opt("gamma"), v.opt("beta"));
    let (residual, sum, offset) = (v.opt("residual"), v.opt("sum"), v.opt("dropout_offset"));
    let affine = Affine { gamma: view(&gamma), beta: view(&beta) };
    let (residual, sum, dropout_offset) = (view(&residual), view(&sum), view(&offset));
    let inputs = NormInputs { residual, sum, dropout_offset };
    norm.forward(&x, &affine, &y, &inputs, STREAM)?;
    v.own("self.mean", norm.mean());
    v.own("self.rstd", norm.rstd());
    let (dgamma, dbeta, stats) = (v.opt("dgamma"), v.opt("dbeta"), v.stats());
    let (dsum, dresidual, dx) = (v.opt("dsum"), v.opt("dresidual"), v.get("dx"));
    let (dsum, dresidual, accumulate) = (view(&dsum), view(&dresidual), v.is_set("accumulate"));
    let stats = stats.view();
    let options = NormGradOptions { sum, dsum, dresidual, dropout_offset, accumulate, stats };
    let grads = Affine { gamma: view(&dgamma), beta: view(&dbeta) };
    let x = (!v.equals("x", "none")).then(|| x.view());
    let (gamma, dx) = (view(&gamma), dx.view());
    norm.backward(x.as_ref(), &v.get("dy"), gamma.as_ref(), Some(&dx), &grads, &options, STREAM)
}

pub fn embedding(v: &Run) -> Result<()> {
    let (count, words) = (v.number("num_indices").unwrap(), v.number("num_embeddings").unwrap());
    let width = v.number("embedding_dim").unwrap();
    let mut embedding = v.context.embedding::<F16, f32>(count, words, width)?;
    if let Some(index) = v.number("padding_index") {
        embedding = embedding.padding(index)?;
    }
    if v.dtype("indices") == "int32" {
        embedding_passes(v, &embedding, &v.get::<i32>("indices"))
    } else {
        embedding_passes(v, &embedding, &v.get::<i64>("indices"))
    }
}

fn embedding_passes<I: Integer>(
    v: &Run, embedding: &Embedding<F16, f32>, indices: &Arg<I>,
) -> Result<()> {
    if v.has("out") {
        embedding.forward(&v.get("table"), indices, &v.get("out"), STREAM)?;
    }
    if v.has("dout") {
        let (accumulate, stats) = (v.is_set("accumulate"), v.stats());
        let options = EmbeddingGradOptions { accumulate, stats: stats.view() };
        embedding.backward(indices, &v.get("dout"), &v.get("dtable"), &options, STREAM)?;
    }
    Ok(())
}

/// Returns \[w_ih, w_hh\] and \[b_ih, b_hh\] of each layer and direction.
fn of_layers<W: Number>(v: &Run, list: &str) -> Vec<([Option<Arg<W>>; 2], [Option<Arg<f32>>; 2])> {
    let ends = ["_l0", "_l0_reverse", "_l1", "_l1_reverse"].into_iter();
    let present = ends.filter(|end| v.has(&format!("{list}.weight_hh{end}")));
    let name = |kind, end| format!("{list}.{kind}{end}");
    let of = |end| {
        let weights = ["weight_ih", "weight_hh"].map(|kind| v.opt(&name(kind, end)));
        (weights, ["bias_ih", "bias_hh"].map(|kind| v.opt(&name(kind, end))))
    };
    present.map(of).collect()
}

pub fn rnn_of_any_type(v: &Run) -> Result<()> {
    if v.dtype("x") == "fp16" {
        rnn::<F16>(v)
    } else {
        rnn::<f32>(v)
    }
}

fn rnn<T: Number + Float>(v: &Run) -> Result<()> {
    let mut x_shape = v.extents("x_shape").unwrap();
    if v.is_set("batch_first") {
        x_shape.swap(0, 1);
    }
    let cell = v.named("cell", RnnCell::from_raw).unwrap();
    let mut rnn = v.context.rnn(cell, x_shape, v.number("hidden_size").unwrap())?;
    set!(rnn, layers(v.number("layers")), clip(v.number("clip")));
    switch!(rnn, v, bidirectional, batch_first, skip_input);
    if v.equals("bias", "none") {
        rnn = rnn.no_bias();
    }
    if let Some((p, seed)) = v.number("dropout").zip(v.number("dropout_seed")) {
        rnn = rnn.dropout(p, seed);
    }
    let rnn = rnn.build::<T, f32>()?;
    let of_weights = of_layers::<T>(v, "weights");
    let weights = of_weights.iter().map(|([w_ih, w_hh], [b_ih, b_hh])| RnnWeights {
        w_ih: view(w_ih),
        w_hh: w_hh.as_ref().unwrap().view(),
        b_ih: view(b_ih),
        b_hh: view(b_hh),
    });
    let weights: Vec<_> = weights.collect();
    let (x, h0, c0, lengths) = (v.get("x"), v.opt("h0"), v.opt("c0"), v.opt("lengths"));
    let (sizes, offset) = (v.extents::<i32, 3>("batch_sizes"), v.opt("dropout_offset"));
    let steps = match (&lengths, &sizes) {
        (Some(lengths), _) => RnnSteps::Lengths(lengths.view()),
        (_, Some(sizes)) => RnnSteps::Packed(sizes),
        _ => RnnSteps::All,
    };
    let inputs = RnnInputs {
        weights: &weights,
        steps,
        x: x.view(),
        h0: view(&h0),
        c0: view(&c0),
        dropout_offset: view(&offset),
    };
    let (y, hn, cn, reserve) = (v.get("y"), v.opt("hn"), v.opt("cn"), rnn.reserve()?);
    let outputs = RnnOutputs { y: y.view(), hn: view(&hn), cn: view(&cn) };
    if !v.has("dy") {
        return rnn.inference(&inputs, &outputs, STREAM);
    }
    rnn.forward(&inputs, &outputs, &reserve, STREAM)?;
    let (dy, dhn, dcn, stats) = (v.get("dy"), v.opt("dhn"), v.opt("dcn"), v.stats());
    let doutputs = RnnOutputs { y: dy.view(), hn: view(&dhn), cn: view(&dcn) };
    let (dx, dh0, dc0) = (v.opt("dx"), v.opt("dh0"), v.opt("dc0"));
    let dinputs = RnnInputGrads { x: view(&dx), h0: view(&dh0), c0: view(&dc0) };
    let GradStats { found_inf, amax } = stats.view();
    rnn.backward_data(&inputs, &doutputs, &dinputs, &reserve, found_inf, STREAM)?;
    let of_grads = of_layers::<f32>(v, "grads");
    let grads = of_grads.iter().map(|([w_ih, w_hh], [b_ih, b_hh])| RnnWeightGrads {
        w_ih: view(w_ih),
        w_hh: view(w_hh),
        b_ih: view(b_ih),
        b_hh: view(b_hh),
    });
    let grads: Vec<_> = grads.collect();
    if grads.is_empty() {
        return Ok(());
    }
    let options = RnnGradOptions { accumulate: v.is_set("accumulate"), found_inf, amax };
    rnn.backward_weights(&inputs, &grads, &reserve, &options, STREAM)
}

pub fn attention(v: &Run) -> Result<()> {
    let [batch, heads, q_len, kv_len, head_dim] =
        ["batch", "heads", "q_len", "kv_len", "head_dim"].map(|name| v.number(name).unwrap());
    let mut attention = v.context.attention(batch, heads, [q_len, kv_len], head_dim)?;
    set!(attention, kv_heads(v.number("kv_heads")), head_dim_v(v.number("head_dim_v")));
    set!(attention, scale(v.number("scale")));
    switch!(attention, v, causal);
    if let Some([left, right]) = v.extents("window") {
        attention = attention.window(left, right);
    }
    if let Some((p, seed)) = v.number("dropout").zip(v.number("dropout_seed")) {
        attention = attention.dropout(p, seed);
    }
    let packed = v.number("q_rows").zip(v.number("kv_rows"));
    if let Some((q_rows, kv_rows)) = packed {
        attention = attention.packed(q_rows, kv_rows);
    }
    let attention = attention.build::<f32>()?;
    let (q, k, values, o) = (v.get("q"), v.get("k"), v.get("v"), v.get("o"));
    let kind = if packed.is_some() { "ends" } else { "lengths" };
    let [of_q, of_kv] = ["q", "kv"].map(|name| v.opt(&format!("{name}_{kind}")));
    let (sinks, offset) = (v.opt("sinks"), v.opt("dropout_offset"));
    let lengths = match (view(&of_q), view(&of_kv)) {
        (Some(q), Some(kv)) if packed.is_some() => AttentionLengths::Packed(q, kv),
        (None, None) => AttentionLengths::All,
        (q, kv) => AttentionLengths::Padded { q, kv },
    };
    let inputs = AttentionInputs {
        q: q.view(),
        k: k.view(),
        v: values.view(),
        lengths,
        sinks: view(&sinks),
        dropout_offset: view(&offset),
    };
    attention.forward(&inputs, &o, STREAM)?;
    v.own("self.lse", attention.lse());
    if !v.has("d_o") {
        return Ok(());
    }
    let (dq, dk, dv, dsinks) = (v.get("dq"), v.get("dk"), v.get("dv"), v.opt("dsinks"));
    let sinks = view(&dsinks);
    let grads = AttentionGrads { q: dq.view(), k: dk.view(), v: dv.view(), sinks };
    attention.backward(&inputs, &o, &v.get("d_o"), &grads, &v.stats().view(), STREAM)
}
