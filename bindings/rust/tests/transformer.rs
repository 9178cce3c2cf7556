//! Normalization, rotary embeddings, softmax, gated units, repeated rows, strided copies and
//! attention.

mod common;

use common::{context, integers, refused, to_f16, too_short};
use mpcore::*;

const STREAM: Stream = Stream::DEFAULT;
const NO_STATS: GradStats = GradStats { found_inf: None, amax: None };

fn assert_close(got: &[f32], wanted: &[f64]) {
    assert_eq!(got.len(), wanted.len());
    for (i, (&a, &b)) in got.iter().zip(wanted).enumerate() {
        assert!((f64::from(a) - b).abs() <= 2e-6 * b.abs().max(1.0), "{i}: {a}, {b}");
    }
}

/// Vectors of mean 1 and 2 and variance 1; every number is exact.
#[test]
fn layer_norm_with_a_residual() {
    let c = context();
    let up = |numbers: &[f32]| c.upload(numbers).unwrap();
    let x = c.upload(&to_f16(&[0.0, 0.0, 1.0, 1.0, 2.0, 0.0, 2.0, 0.0])).unwrap();
    let residual = up(&[0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let (gamma, beta, y) = (up(&[2.0; 4]), up(&[1.0; 4]), c.alloc::<F16>(8).unwrap());
    let affine = Affine { gamma: Some(gamma.view()), beta: Some(beta.view()) };
    let options = NormOptions { epsilon: 0.0, ..Default::default() };
    let norm = Norm::<F16, f32>::new(&c, NormKind::Layer, 2, 4, &options).unwrap();
    let inputs = NormInputs {
        residual: Some(residual.view()),
        sum: Some(residual.view()),
        ..Default::default()
    };
    norm.forward(&x, &affine, &y, &inputs, STREAM).unwrap();
    assert_eq!(residual.to_vec().unwrap(), [0.0, 0.0, 2.0, 2.0, 3.0, 1.0, 3.0, 1.0]);
    assert_eq!(norm.mean().to_vec().unwrap(), [1.0, 2.0]);
    assert_eq!(norm.rstd().to_vec().unwrap(), [1.0, 1.0]);
    assert_eq!(y.to_vec().unwrap(), to_f16(&[-1.0, -1.0, 3.0, 3.0, 3.0, -1.0, 3.0, -1.0]));

    let dy = c.upload(&to_f16(&[2.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0])).unwrap();
    let (dsum, amax) = (up(&[1.0; 8]), c.alloc(1).unwrap());
    let (dgamma, dbeta) = (up(&[1.0; 4]), up(&[1.0; 4]));
    let grads = Affine { gamma: Some(dgamma.view()), beta: Some(dbeta.view()) };
    let options = NormGradOptions {
        sum: Some(residual.view()),
        dsum: Some(dsum.view()),
        dresidual: Some(dsum.view()),
        accumulate: true,
        stats: GradStats { amax: Some(amax.view()), ..Default::default() },
        ..Default::default()
    };
    let (of_gamma, dx) = (gamma.view(), dy.view());
    norm.backward(None, &dy, Some(&of_gamma), Some(&dx), &grads, &options, STREAM).unwrap();
    let wanted = [3.0, -1.0, 1.0, 1.0, 1.0, 3.0, 1.0, -1.0];
    assert_eq!(dsum.to_vec().unwrap(), wanted);
    assert_eq!(dy.to_vec().unwrap(), to_f16(&wanted));
    assert_eq!(dgamma.to_vec().unwrap(), [-1.0, -1.0, 1.0, 1.0]);
    assert_eq!(dbeta.to_vec().unwrap(), [3.0, 3.0, 1.0, 1.0]);
    assert_eq!(amax.to_vec().unwrap(), [3.0]);
}

#[test]
fn rms_norm_of_heads_in_a_packed_buffer() {
    let c = context();
    let x = c.upload(&[2.0f32, -2.0, 4.0, 4.0, 9.0, 1.0, 1.0, 8.0, -8.0, 9.0]).unwrap();
    let strided = NormOptions {
        groups: 2,
        x_strides: [5, 2],
        y_strides: [5, 2],
        epsilon: 0.0,
        ..Default::default()
    };
    let norm = Norm::<f32, f32>::new(&c, NormKind::Rms, 2, 2, &strided).unwrap();
    let (none, inputs) = (Affine::default(), NormInputs::default());
    let nine = x.slice(0, 9);
    norm.forward(&nine, &none, &nine, &inputs, STREAM).unwrap();
    let wanted = [1.0, -1.0, 1.0, 1.0, 9.0, 1.0, 1.0, 1.0, -1.0, 9.0];
    assert_eq!(x.to_vec().unwrap(), wanted);
    assert_eq!(norm.rstd().to_vec().unwrap(), [0.5, 0.25, 1.0, 0.125]);
    assert!(norm.mean().is_empty());
    too_short(norm.forward(&x.slice(0, 8), &none, &x, &inputs, STREAM), "Norm: x", [8, 9]);
    let short = Affine { gamma: Some(x.slice(0, 1)), beta: None };
    too_short(norm.forward(&x, &short, &x, &inputs, STREAM), "Norm: gamma", [1, 2]);
    let short = NormInputs { residual: Some(x.slice(0, 7)), ..Default::default() };
    too_short(norm.forward(&x, &none, &x, &short, STREAM), "Norm: residual", [7, 8]);
    let wrong = NormOptions { x_strides: [3, 2], ..strided };
    let error = Norm::<f32, f32>::new(&c, NormKind::Rms, 2, 2, &wrong).err().unwrap();
    assert!(error.to_string().contains("x_row = 3, x_group = 2: vectors overlap"), "{error}");
}

#[test]
fn rotary_embedding() {
    let c = context();
    let numbers = integers(3 * 2 * 4, 1);
    let x = c.upload(&numbers).unwrap();
    let (positions, inv_freq) = (c.upload(&[0i32, 1, 0]).unwrap(), c.upload(&[1.0f32]).unwrap());
    for interleaved in [false, true] {
        let mut wanted: Vec<f64> = numbers.iter().map(|&v| v.into()).collect();
        // The heads of row 1.
        for at in [8, 12] {
            let (u, v) = (wanted[at], wanted[at + 1]);
            wanted[at] = u * 1f64.cos() - v * 1f64.sin();
            wanted[at + 1] = v * 1f64.cos() + u * 1f64.sin();
        }
        let rope = || {
            let rope = c.rope(3, 2, 4).unwrap().rotary_dim(2).period(2);
            if interleaved {
                rope.interleaved()
            } else {
                rope
            }
        };
        let (y, amax) = (c.alloc::<f32>(24).unwrap(), c.alloc(1).unwrap());
        rope().run(&x, &y).unwrap();
        assert_close(&y.to_vec().unwrap(), &wanted);
        rope().period(0).positions(&positions).inv_freq(&inv_freq).run(&x, &y).unwrap();
        assert_close(&y.to_vec().unwrap(), &wanted);
        let stats = GradStats { amax: Some(amax.view()), ..Default::default() };
        rope().inverse().stats(stats).run(&y, &y).unwrap();
        let back = y.to_vec().unwrap();
        assert_close(&back, &numbers.iter().map(|&v| v.into()).collect::<Vec<f64>>());
        assert_eq!(amax.to_vec().unwrap(), [back.iter().fold(0.0, |a: f32, v| a.max(v.abs()))]);
    }
    let one_head = c.rope(3, 1, 4).unwrap().strides(8, 0);
    let (short, y) = (x.slice(0, 19), c.alloc::<f32>(24).unwrap());
    too_short(one_head.run(&short, &y), "rope: x", [19, 20]);
    too_short(c.rope(3, 2, 4).unwrap().inv_freq(&inv_freq).run(&x, &y), "rope: inv_freq", [1, 2]);
    refused(c.rope(3, 1 << 31, 4), "rope: heads = 2147483648 exceeds 2^31 - 1");
    refused(
        c.rope(3, 2, 4).unwrap().rotary_dim(3).run(&x, &y),
        "mp_rope: rotary_dim = 3 must be even",
    );
}

/// One matrix of two queries, of which the first sees one key; every number is exact.
#[test]
fn softmax_with_each_mask() {
    let c = context();
    let up = |numbers: &[f32]| c.upload(numbers).unwrap();
    let (x, lengths) = (up(&[0.0; 4]), c.upload(&[1i32, 2]).unwrap());
    let mask = c.upload(&to_f16(&[0.0, f32::NEG_INFINITY, 0.0, 0.0])).unwrap();
    let plain = || c.softmax(2, 2).scale(0.5).stream(STREAM);
    for call in 0..3 {
        let softmax = || match call {
            0 => plain().causal(2),
            1 => plain().lengths(&lengths, 1),
            _ => plain().mask(&mask, 2),
        };
        let (y, dy) = (up(&[9.0; 4]), up(&[4.0, 9.0, 2.0, 6.0]));
        softmax().forward(&x, &y).unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0, 0.0, 0.5, 0.5]);
        softmax().backward(&y, &dy, &y).unwrap();
        assert_eq!(y.to_vec().unwrap(), [0.0, 0.0, -0.5, 0.5]);
    }
    let (y, amax) = (up(&[0.0; 4]), c.alloc(1).unwrap());
    plain().log().forward(&y, &y).unwrap();
    assert_close(&y.to_vec().unwrap(), &[-(2f64.ln()); 4]);
    let stats = GradStats { amax: Some(amax.view()), ..Default::default() };
    plain().log().stats(stats).backward(&y, &up(&[4.0, 0.0, 2.0, 2.0]), &y).unwrap();
    assert_close(&y.to_vec().unwrap(), &[1.0, -1.0, 0.0, 0.0]);
    let most = y.to_vec().unwrap().iter().fold(0.0, |most: f32, v| most.max(v.abs()));
    assert_eq!(amax.to_vec().unwrap(), [most]);

    let (one, three, short) = (lengths.slice(0, 1), mask.slice(0, 3), x.slice(0, 3));
    too_short(c.softmax(2, 3).forward(&x, &x), "softmax: x", [4, 6]);
    too_short(c.softmax(2, 2).ld(3, 2).forward(&x, &y), "softmax: x", [4, 5]);
    too_short(c.softmax(2, 2).lengths(&one, 1).forward(&x, &y), "softmax: mask", [1, 2]);
    too_short(c.softmax(2, 2).mask(&three, 2).forward(&x, &y), "softmax: mask", [3, 4]);
    too_short(c.softmax(2, 2).backward(&y, &short, &y), "softmax: dy", [3, 4]);
}

#[test]
fn gated_unit() {
    let c = context();
    let x = c.upload(&to_f16(&[2.0, -1.0, 3.0, 5.0, 1.0, 4.0, -2.0, 6.0])).unwrap();
    let (y, amax) = (c.alloc::<F16>(4).unwrap(), c.alloc(1).unwrap());
    c.glu(Activation::Relu, 2, 2).forward(&x, &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), to_f16(&[6.0, 0.0, -2.0, 24.0]));
    let dy = c.upload(&to_f16(&[1.0, 2.0, 3.0, 1.0])).unwrap();
    let stats = GradStats { amax: Some(amax.view()), ..Default::default() };
    c.glu(Activation::Relu, 2, 2).stats(stats).backward(&x, &dy, &x).unwrap();
    let wanted = [3.0, 0.0, 2.0, 0.0, -6.0, 6.0, 3.0, 4.0];
    assert_eq!(x.to_vec().unwrap(), to_f16(&wanted));
    assert_eq!(amax.to_vec().unwrap(), [6.0]);
    refused(
        c.glu(Activation::Silu, 2, 2).ld(5, 2).forward(&x, &y),
        "glu: x has 8 elements, but must have at least 9",
    );
    too_short(c.glu(Activation::Silu, 2, 2).backward(&x, &dy.slice(0, 3), &x), "glu: dy", [3, 4]);
    refused(
        c.glu(Activation::Drelu, 2, 2).forward(&x, &y),
        "mp_glu_forward: activation = MP_ACT_DRELU is a derivative; pass the activation of the \
         forward pass",
    );
}

#[test]
fn repeated_rows_and_their_gradient() {
    let c = context();
    let (a, b) = (integers(12, 1), integers(4, 2));
    let (on_a, on_b) = (c.upload(&a).unwrap(), c.upload(&b).unwrap());
    let (y, sum) = (c.alloc::<f32>(12).unwrap(), c.upload(&to_f16(&[1.0; 4])).unwrap());
    c.pointwise(PointwiseOp::Add, 6, 2).repeated(&on_b, 2).run(&on_a, &y).unwrap();
    let wanted: Vec<f32> = a.iter().enumerate().map(|(i, v)| v + b[i % 4]).collect();
    assert_eq!(y.to_vec().unwrap(), wanted);
    c.sum_rows([6, 2, 2], &y, &sum, 3.0, &NO_STATS, STREAM).unwrap();
    let sums = |i: usize| 3.0 + wanted.iter().skip(i).step_by(4).sum::<f32>();
    assert_eq!(sum.to_vec().unwrap(), to_f16(&[sums(0), sums(1), sums(2), sums(3)]));
    // The last b counts.
    c.pointwise(PointwiseOp::Add, 6, 2).repeated(&on_b, 2).b(&on_a).run(&on_a, &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), a.iter().map(|v| 2.0 * v).collect::<Vec<f32>>());
    refused(
        c.pointwise(PointwiseOp::Add, 6, 2).repeated(&on_b, 3).run(&on_a, &y),
        "pointwise: b has 4 elements, but must have at least 6",
    );
    too_short(c.sum_rows([6, 3, 2], &y, &sum, 0.0, &NO_STATS, STREAM), "sum_rows: sum", [4, 6]);
    refused(
        c.sum_rows([6, 0, 2], &y, &sum, 0.0, &NO_STATS, STREAM),
        "mp_sum_rows: period = 0 must be at least 1 if rows = 6",
    );
}

#[test]
fn strided_copies() {
    let c = context();
    let x = c.upload(&to_f16(&[1.0, 2.0, 3.0, 4.0])).unwrap();
    let (y, amax) = (c.upload(&to_f16(&[9.0; 8])).unwrap(), c.alloc(1).unwrap());
    c.strided_copy([2, 2]).y_stride([4, 1]).run(&x, &y.slice(1, 6)).unwrap();
    assert_eq!(y.to_vec().unwrap(), to_f16(&[9.0, 1.0, 2.0, 9.0, 9.0, 3.0, 4.0, 9.0]));
    let stats = GradStats { amax: Some(amax.view()), ..Default::default() };
    let turned = c.strided_copy([2, 2]).x_stride([1, 2]).y_stride([4, 1]);
    turned.factors(2.0, -1.0).stats(stats).run(&x, &y.slice(2, 6)).unwrap();
    assert_eq!(y.to_vec().unwrap(), to_f16(&[9.0, 1.0, 0.0, -3.0, 9.0, 3.0, 0.0, -1.0]));
    assert_eq!(amax.to_vec().unwrap(), [3.0]);
    c.strided_copy([4, 2]).x_stride([0, 1]).run(&x.slice(2, 2), &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), to_f16(&[3.0, 4.0, 3.0, 4.0, 3.0, 4.0, 3.0, 4.0]));
    c.strided_copy([0, 8]).run(&x.slice(0, 0), &y).unwrap();
    refused(
        c.strided_copy([2, 2]).x_stride([4, 1]).run(&x, &y),
        "strided_copy: x has 4 elements, but must have at least 6",
    );
    too_short(
        c.strided_copy([2, 2]).y_stride([5, 1]).run(&x, &y.slice(2, 6)),
        "strided_copy: y",
        [6, 7],
    );
    refused(c.strided_copy([1; 7]).run(&x, &y), "mp_strided_copy: rank = 7 is outside [0, 6]");
}

/// Two sequences of two and one rows, two query heads, one head of k and v.  Queries of 0 give
/// equal weights to the visible keys.
#[test]
fn attention_of_packed_and_padded_sequences() {
    let c = context();
    let up = |numbers: &[f32]| c.upload(numbers).unwrap();
    let (q, k) = (up(&[0.0; 6]), up(&[1.0, 2.0, 3.0]));
    let (v, d_o) = (up(&[4.0, 8.0, 5.0]), up(&[1.0, 1.0, 2.0, 4.0, 1.0, 3.0]));
    let (ends, lengths) = (c.upload(&[2i32, 3]).unwrap(), c.upload(&[2i32, 1]).unwrap());
    let inputs = |lengths| AttentionInputs {
        q: q.view(),
        k: k.view(),
        v: v.view(),
        lengths,
        sinks: None,
        dropout_offset: None,
    };
    let builder = || c.attention(2, 2, [2, 2], 1).unwrap().kv_heads(1).causal();
    let packed = builder().packed(3, 3).build::<f32>().unwrap();
    let (o, amax) = (c.alloc::<f32>(6).unwrap(), c.alloc(1).unwrap());
    let (dq, dk, dv) = (up(&[9.0; 6]), up(&[9.0; 3]), up(&[9.0; 3]));
    let given = inputs(AttentionLengths::Packed(ends.view(), ends.view()));
    packed.forward(&given, &o, STREAM).unwrap();
    assert_close(&o.to_vec().unwrap(), &[4.0, 4.0, 6.0, 6.0, 5.0, 5.0]);
    let ln2 = 2f64.ln();
    assert_close(&packed.lse().to_vec().unwrap(), &[0.0, ln2, 0.0, 0.0, ln2, 0.0]);
    let grads = AttentionGrads { q: dq.view(), k: dk.view(), v: dv.view(), sinks: None };
    let stats = GradStats { amax: Some(amax.view()), ..Default::default() };
    packed.backward(&given, &o, &d_o, &grads, &stats, STREAM).unwrap();
    // ds of query 1 is -d_o and d_o.
    assert_close(&dq.to_vec().unwrap(), &[0.0, 0.0, 2.0, 4.0, 0.0, 0.0]);
    assert_close(&dk.to_vec().unwrap(), &[0.0; 3]);
    assert_close(&dv.to_vec().unwrap(), &[5.0, 3.0, 4.0]);
    assert_eq!(amax.to_vec().unwrap(), [dv.to_vec().unwrap()[0]]);

    // Rows of sequence 1 begin where the padded row of sequence 0 would be.
    let layout = |heads| AttentionLayout { batch: 2 * heads, row: heads, head: 1 };
    let layouts = [layout(2), layout(1), layout(1), layout(2)];
    let padded = || builder().layouts(layouts);
    let (q, k, v) = (up(&[0.0; 8]), up(&[1.0, 2.0, 3.0, 0.0]), up(&[4.0, 8.0, 5.0, 0.0]));
    let o = up(&[9.0; 8]);
    let kv = Some(lengths.view());
    let of_keys = AttentionLengths::Padded { q: None, kv };
    let lengths = AttentionLengths::Padded { q: kv, kv };
    let given = AttentionInputs { q: q.view(), k: k.view(), v: v.view(), ..inputs(lengths) };
    padded().build().unwrap().forward(&given, &o, STREAM).unwrap();
    assert_close(&o.to_vec().unwrap(), &[4.0, 4.0, 6.0, 6.0, 5.0, 5.0, 0.0, 0.0]);
    let all_queries = AttentionInputs { lengths: of_keys, ..given };
    padded().build().unwrap().forward(&all_queries, &o, STREAM).unwrap();
    assert_close(&o.to_vec().unwrap()[4..], &[0.0, 0.0, 5.0, 5.0]);
    // A sink of weight 1.
    let (sinks, zeros) = (up(&[0.0; 2]), up(&[0.0; 8]));
    let given = AttentionInputs { sinks: Some(sinks.view()), ..given };
    let attention = padded().scale(1.0).build().unwrap();
    let plan = attention.explain().unwrap();
    assert_eq!(plan.matches("\nkernel        attention_plain\n").count(), 2, "{plan}");
    attention.forward(&given, &o, STREAM).unwrap();
    assert_close(&o.to_vec().unwrap(), &[2.0, 2.0, 4.0, 4.0, 2.5, 2.5, 0.0, 0.0]);
    let (dq, dk, dv, ones) = (up(&[9.0; 8]), up(&[9.0; 4]), up(&[9.0; 4]), up(&[1.0; 8]));
    let dsinks = Some(sinks.view());
    let overlapping = AttentionGrads { q: dq.view(), k: dk.view(), v: dv.view(), sinks: dsinks };
    let error = attention.backward(&given, &o, &ones, &overlapping, &NO_STATS, STREAM).unwrap_err();
    assert!(error.to_string().contains("overlaps tensors->sinks"), "{error}");
    let grads = AttentionGrads { sinks: Some(zeros.slice(0, 2)), ..overlapping };
    attention.backward(&given, &o, &ones, &grads, &NO_STATS, STREAM).unwrap();
    let wanted = -(2.0 / 2.0 + 4.0 / 3.0 + 2.5 / 2.0);
    assert_close(&zeros.to_vec().unwrap()[..2], &[wanted, wanted]);
}

#[test]
fn mismatched_attention_is_rejected() {
    let c = context();
    let all = c.alloc::<f32>(40).unwrap();
    let part = |start, len| all.slice(start, len);
    let numbers = c.alloc::<i32>(2).unwrap();
    let attention = c.attention(2, 2, [1, 2], 2).unwrap().window(0, -1).build::<f32>().unwrap();
    let inputs = AttentionInputs {
        q: part(0, 8),
        k: part(8, 16),
        v: part(24, 16),
        lengths: AttentionLengths::All,
        sinks: None,
        dropout_offset: None,
    };
    let o = c.alloc::<f32>(8).unwrap();
    let cases = [
        (AttentionInputs { q: part(0, 7), ..inputs }, "q has 7 elements, but must have at least 8"),
        (
            AttentionInputs { k: part(8, 15), ..inputs },
            "k has 15 elements, but must have at least 16",
        ),
        (
            AttentionInputs { sinks: Some(part(0, 1)), ..inputs },
            "sinks has 1 elements, but must have at least 2",
        ),
        (
            AttentionInputs {
                lengths: AttentionLengths::Padded { q: None, kv: Some(numbers.slice(0, 1)) },
                ..inputs
            },
            "kv_lengths has 1 elements, but must have at least 2",
        ),
    ];
    for (wrong, message) in cases {
        refused(attention.forward(&wrong, &o, STREAM), &format!("attention: {message}"));
    }
    refused(
        attention.forward(&inputs, &o.slice(0, 7), STREAM),
        "attention: o has 7 elements, but must have at least 8",
    );
    let grads = AttentionGrads { q: part(0, 8), k: part(0, 16), v: part(0, 15), sinks: None };
    too_short(
        attention.backward(&inputs, &o, &o, &grads, &NO_STATS, STREAM),
        "attention: dv",
        [15, 16],
    );
    refused(
        c.attention(1, 4, [1, 1], 8).unwrap().kv_heads(3).build::<f32>().map(|_| ()),
        "mp_attention_backward_workspace_size: kv_heads = 3 must divide heads = 4",
    );
    refused(c.attention(1 << 31, 1, [1, 1], 1), "attention: batch = 2147483648 exceeds 2^31 - 1");
}
