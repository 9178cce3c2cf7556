//! Strides, kernels by name, and errors of operations whose values are in bindings/vectors.txt.

mod common;

use common::{context, fails_with, integers, refused, to_f16, too_short};
use mpcore::*;

const STREAM: Stream = Stream::DEFAULT;

/// 2 images of 4 x 3 pixels and 4 channels, 6 filters of 3 x 2 in two groups.
fn conv(c: &Context) -> Conv2d {
    c.conv2d([2, 4, 3, 4], [6, 3, 2, 2]).unwrap().stride(2, 1).padding(1, 0, 2, 1).dilation(1, 2)
}

#[test]
fn every_kernel_of_a_convolution_has_the_epilogue() {
    let c = context();
    let (x, filter) = (to_f16(&integers(96, 1)), to_f16(&integers(72, 2)));
    let (x, filter) = (c.upload(&x).unwrap(), c.upload(&filter).unwrap());
    let bias = c.upload(&integers(6, 4)).unwrap();
    let run = |conv: Conv2d, bytes: usize| {
        let space = c.alloc::<u8>(bytes.max(256)).unwrap();
        let workspace = (bytes > 0).then(|| space.view());
        let (y, aux, amax) = (c.upload(&integers(96, 5)), c.alloc::<f32>(96), c.alloc(1));
        let (y, aux, amax) = (y.unwrap(), aux.unwrap(), amax.unwrap());
        let epilogue = Epilogue::default().bias(&bias).activation(Activation::Relu);
        let epilogue = epilogue.aux(&aux).amax(&amax);
        let (alpha, beta, stream) = (2.0, 3.0, STREAM);
        let options = OutputOptions { alpha, beta, epilogue, workspace, stream };
        conv.fprop(&x, &filter, &y, &options).unwrap();
        [y, aux, amax].map(|array| array.to_vec().unwrap())
    };
    let kernels = conv(&c).kernels::<F16, f32>(ConvOp::Fprop).unwrap();
    let able: Vec<_> = kernels.iter().filter(|info| info.reason.is_none()).collect();
    assert!(able.len() > 1 && able.len() < kernels.len());
    let text = conv(&c).explain::<F16, f32>(ConvOp::Fprop).unwrap();
    assert!(text.lines().any(|line| line.starts_with("kernel ") && line.ends_with(&able[0].name)));
    let wanted = run(conv(&c), 0);
    for info in able {
        let got = run(conv(&c).kernel(&info.name), info.workspace_bytes.max(1));
        assert_eq!(got, wanted, "{}", info.name);
    }
    let plan = conv(&c).get_plan::<F16, f32>(ConvOp::Fprop, usize::MAX).unwrap();
    let bytes = conv(&c).workspace_size::<F16, f32>(ConvOp::Fprop).unwrap();
    assert_eq!(run(conv(&c).plan(&plan), bytes.max(1)), wanted);
}

#[test]
fn strides_and_leading_dimensions() {
    let c = context();
    let up = |numbers: &[f32]| c.upload(numbers).unwrap();
    let half = |numbers: &[f32]| c.upload(&to_f16(numbers)).unwrap();
    let x = up(&[2.0, -2.0, 4.0, 4.0, 9.0, 1.0, 1.0, 8.0, -8.0, 9.0]);
    let (groups, x_strides, y_strides, epsilon) = (2, [5, 2], [5, 2], 0.0);
    let strided = NormOptions { groups, x_strides, y_strides, epsilon, ..Default::default() };
    let norm = Norm::<f32, f32>::new(&c, NormKind::Rms, 2, 2, &strided).unwrap();
    let (none, inputs) = (Affine::default(), NormInputs::default());
    norm.forward(&x.slice(0, 9), &none, &x.slice(0, 9), &inputs, STREAM).unwrap();
    let wanted = [1.0, -1.0, 1.0, 1.0, 9.0, 1.0, 1.0, 1.0, -1.0, 9.0];
    assert_eq!(x.to_vec().unwrap(), wanted);
    assert!(norm.mean().is_empty());
    too_short(norm.forward(&x.slice(0, 8), &none, &x, &inputs, STREAM), "Norm: x", [8, 9]);

    let (x, y) = (up(&[1.0, 2.0, 3.0, 4.0]), up(&[9.0; 8]));
    c.strided_copy([2, 2]).y_stride([4, 1]).run(&x, &y.slice(1, 6)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [9.0, 1.0, 2.0, 9.0, 9.0, 3.0, 4.0, 9.0]);
    let turned = c.strided_copy([2, 2]).x_stride([1, 2]).y_stride([4, 1]);
    turned.factors(2.0, -1.0).run(&x, &y.slice(2, 6)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [9.0, 1.0, 0.0, -3.0, 9.0, 3.0, 0.0, -1.0]);
    c.strided_copy([0, 8]).run(&x.slice(0, 0), &y).unwrap();
    let wide = c.strided_copy([2, 2]).x_stride([4, 1]);
    too_short(wide.run(&x, &y), "strided_copy: x", [4, 6]);
    refused(c.strided_copy([1; 7]).run(&x, &y), "mp_strided_copy: rank = 7 is outside [0, 6]");

    let b = up(&[1.0, 2.0, 9.0, 3.0, 4.0]);
    let add = || c.pointwise(PointwiseOp::Add, 2, 2);
    add().b_with_ld(&b, 3).run(&x, &x).unwrap();
    assert_eq!(x.to_vec().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    add().repeated(&b, 1).b(&x).run(&x, &x).unwrap(); // the last b counts
    assert_eq!(x.to_vec().unwrap(), [4.0, 8.0, 12.0, 16.0]);
    too_short(add().b_with_ld(&b, 4).run(&x, &x), "pointwise: b", [5, 6]);

    let (x, y) = (half(&[2.0, 3.0, 9.0, 4.0, 5.0]), half(&[9.0; 3]));
    c.glu(Activation::None, 2, 1).ld(3, 2).forward(&x, &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), to_f16(&[6.0, 9.0, 20.0]));
    too_short(c.glu(Activation::None, 2, 1).ld(4, 2).forward(&x, &y), "glu: x", [5, 6]);
    let (x, y) = (up(&[0.0, 0.0, 9.0, 0.0, 0.0]), up(&[9.0; 6]));
    c.softmax(2, 2).ld(3, 4).forward(&x, &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.5, 0.5, 9.0, 9.0, 0.5, 0.5]);
    too_short(c.softmax(2, 2).ld(4, 2).forward(&x, &y), "softmax: x", [5, 6]);
    let one_head = c.rope(2, 1, 4).unwrap().strides(8, 0);
    too_short(one_head.run(&x, &y), "rope: x", [5, 12]);
}

/// Rows of sequence 1 begin where the padded row of sequence 0 would be.
#[test]
fn layouts_of_attention() {
    let c = context();
    let up = |numbers: &[f32]| c.upload(numbers).unwrap();
    let (q, k, v) = (up(&[0.0; 8]), up(&[1.0, 2.0, 3.0, 0.0]), up(&[4.0, 8.0, 5.0, 0.0]));
    let (lengths, o) = (c.upload(&[2i32, 1]).unwrap(), up(&[9.0; 8]));
    let layout = |heads| AttentionLayout { batch: 2 * heads, row: heads, head: 1 };
    let attention = c.attention(2, 2, [2, 2], 1).unwrap().kv_heads(1).causal();
    let attention = attention.layouts([layout(2), layout(1), layout(1), layout(2)]);
    let attention = attention.build().unwrap();
    let kv = Some(lengths.view());
    let inputs = AttentionInputs {
        q: q.view(),
        k: k.view(),
        v: v.view(),
        lengths: AttentionLengths::Padded { q: None, kv },
        sinks: None,
        dropout_offset: None,
    };
    attention.forward(&inputs, &o, STREAM).unwrap();
    assert_eq!(o.to_vec().unwrap()[4..], [0.0, 0.0, 5.0, 5.0]);
    let plan = attention.explain().unwrap();
    assert_eq!(plan.matches("\nkernel        attention_plain\n").count(), 2, "{plan}");
    too_short(attention.forward(&inputs, &o.slice(0, 7), STREAM), "attention: o", [7, 8]);
}

#[test]
fn invalid_options_are_rejected() {
    let c = context();
    refused(c.conv2d([1, 1, 1, 4], [1, 3, 3, 3]), "conv2d: filter[3] = 3 must divide x[3] = 4");
    let sentence = "conv2d: h = 1099511627776 exceeds 2^31 - 1";
    refused(c.conv2d([1, 1 << 40, 1, 4], [6, 3, 2, 2]), sentence);
    fails_with(conv(&c).padding(u32::MAX, 0, 0, 0).output_size(), "pad_top = -1");
    let embedding = c.embedding::<f32, f32>(1, 1 << 31, 1);
    refused(embedding, "embedding: num_embeddings = 2147483648 exceeds 2^31 - 1");
    refused(c.rope(3, 1 << 31, 4), "rope: heads = 2147483648 exceeds 2^31 - 1");
    refused(c.attention(1 << 31, 1, [1, 1], 1), "attention: batch = 2147483648 exceeds 2^31 - 1");
    let relu = || c.rnn(RnnCell::Relu, [4, 3, 2], 3).unwrap().bidirectional();
    let build = |rnn: RnnBuilder<'_>| rnn.build::<f32, f32>();
    fails_with(build(relu().reset_first()), "MP_RNN_FLAG_RESET_FIRST");
    fails_with(build(relu().kernel("none")), "plan->kernel = none is unknown");
    let gru = c.rnn(RnnCell::Gru, [4, 3, 2], 1 << 31).map(|_| ());
    refused(gru, "rnn: hidden_size = 2147483648 exceeds 2^31 - 1");
}

#[test]
fn lists_of_recurrent_layers_are_checked() {
    let c = context();
    let rnn = c.rnn(RnnCell::Relu, [4, 3, 2], 3).unwrap().bidirectional().no_bias();
    let rnn = rnn.build::<f32, f32>().unwrap();
    assert_eq!(rnn.num_weights(), 2);
    let all = c.alloc::<f32>(72).unwrap(); // large enough for everything
    let reserve = rnn.reserve().unwrap();
    let one = RnnWeights { w_ih: Some(all.view()), w_hh: all.view(), b_ih: None, b_hh: None };
    let weights = [one, one];
    let inputs = RnnInputs {
        weights: &weights,
        steps: RnnSteps::All,
        x: all.view(),
        h0: None,
        c0: None,
        dropout_offset: None,
    };
    let outputs = RnnOutputs { y: all.view(), hn: None, cn: None };
    let forward = |inputs: &RnnInputs<'_, f32>| rnn.forward(inputs, &outputs, &reserve, STREAM);
    too_short(forward(&RnnInputs { weights: &weights[..1], ..inputs }), "rnn: weights", [1, 2]);
    let steps = RnnSteps::Packed(&[3, 2, 1]);
    too_short(forward(&RnnInputs { steps, ..inputs }), "rnn: steps", [3, 4]);
    let steps = RnnSteps::Packed(&[1, 3, 1, 1]);
    fails_with(forward(&RnnInputs { steps, ..inputs }), "batch_sizes[1] = 3");
    let without = [one, RnnWeights { w_ih: None, ..one }];
    fails_with(forward(&RnnInputs { weights: &without, ..inputs }), "weights[1].w_ih");
    let nothing = c.alloc::<u8>(256).unwrap();
    fails_with(rnn.forward(&inputs, &outputs, &nothing, STREAM), "reserve_bytes = 256");
    let none = RnnWeightGrads::<f32> { w_ih: None, w_hh: None, b_ih: None, b_hh: None };
    let grads = [none, RnnWeightGrads { w_ih: Some(all.slice(0, 5)), ..none }];
    let options = RnnGradOptions::default();
    let short = rnn.backward_weights(&inputs, &grads, &reserve, &options, STREAM);
    too_short(short, "rnn: grads[1].w_ih", [5, 6]);
}
