//! Recurrent layers: RELU cells on small integers, whose sums are exact, compared with plain loops.

mod common;

use common::{context, integers, refused, to_f16, too_short};
use mpcore::*;

const STREAM: Stream = Stream::DEFAULT;
const T: usize = 4;
const N: usize = 3;
const I: usize = 2;
const H: usize = 3;
const STATE: usize = 2 * N * H;

/// Weights of one direction, or their gradients.
#[derive(Clone, Debug, PartialEq)]
struct Weights {
    ih: Vec<f32>,
    hh: Vec<f32>,
    b_ih: Vec<f32>,
    b_hh: Vec<f32>,
}

/// Operands: x\[(t N + n) I + i\], dy\[(t N + n) 2 H + j\]; weights of -1, 0 and 1.
struct Given {
    weights: [Weights; 2],
    x: Vec<f32>,
    h0: Vec<f32>,
    dy: Vec<f32>,
    dhn: Vec<f32>,
}

struct Written {
    y: Vec<f32>,
    hn: Vec<f32>,
    dx: Vec<f32>,
    dh0: Vec<f32>,
    dw: [Weights; 2],
}

fn small(count: usize, seed: usize, most: f32) -> Vec<f32> {
    integers(count, seed).iter().map(|v| v.clamp(-most, most)).collect()
}

fn data() -> Given {
    let weights = |seed: usize| Weights {
        ih: small(H * I, seed, 1.0),
        hh: small(H * H, seed + 1, 1.0),
        b_ih: small(H, seed + 2, 1.0),
        b_hh: small(H, seed + 3, 1.0),
    };
    Given {
        weights: [weights(1), weights(5)],
        x: small(T * N * I, 1, 2.0),
        h0: small(STATE, 2, 2.0),
        dy: small(T * N * 2 * H, 3, 2.0),
        dhn: small(STATE, 4, 2.0),
    }
}

/// The layer in both directions, computed per sequence and unit.
fn by_loops(data: &Given, lengths: [usize; N]) -> Written {
    let zeros = || Weights {
        ih: vec![0.0; H * I],
        hh: vec![0.0; H * H],
        b_ih: vec![0.0; H],
        b_hh: vec![0.0; H],
    };
    let mut r = Written {
        y: vec![0.0; T * N * 2 * H],
        hn: vec![0.0; STATE],
        dx: vec![0.0; T * N * I],
        dh0: vec![0.0; STATE],
        dw: [zeros(), zeros()],
    };
    for (d, n) in (0..2).flat_map(|d| (0..N).map(move |n| (d, n))) {
        let (w, dw, state) = (&data.weights[d], &mut r.dw[d], (d * N + n) * H);
        let x_at = |t: usize| (t * N + n) * I;
        let y_at = |t: usize| (t * N + n) * 2 * H + d * H;
        let mut steps: Vec<usize> = (0..lengths[n]).collect();
        if d == 1 {
            steps.reverse();
        }
        let mut h = vec![data.h0[state..state + H].to_vec()]; // h[i]: before step i
        for &t in &steps {
            let before = &h[h.len() - 1];
            let next: Vec<f32> = (0..H)
                .map(|j| {
                    let p: f32 = (0..I).map(|i| w.ih[j * I + i] * data.x[x_at(t) + i]).sum();
                    let q: f32 = (0..H).map(|k| w.hh[j * H + k] * before[k]).sum();
                    (p + q + w.b_ih[j] + w.b_hh[j]).max(0.0)
                })
                .collect();
            r.y[y_at(t)..y_at(t) + H].copy_from_slice(&next);
            h.push(next);
        }
        r.hn[state..state + H].copy_from_slice(&h[steps.len()]);
        let mut dh = data.dhn[state..state + H].to_vec();
        for (at, &t) in steps.iter().enumerate().rev() {
            let mut below = vec![0.0; H];
            for j in (0..H).filter(|&j| h[at + 1][j] > 0.0) {
                let da = dh[j] + data.dy[y_at(t) + j];
                dw.b_ih[j] += da;
                dw.b_hh[j] += da;
                for i in 0..I {
                    dw.ih[j * I + i] += da * data.x[x_at(t) + i];
                    r.dx[x_at(t) + i] += da * w.ih[j * I + i];
                }
                for k in 0..H {
                    dw.hh[j * H + k] += da * h[at][k];
                    below[k] += da * w.hh[j * H + k];
                }
            }
            dh = below;
        }
        r.dh0[state..state + H].copy_from_slice(&dh);
    }
    r
}

/// Rows of a tensor of time steps, reordered.
fn in_order(numbers: &[f32], columns: usize, order: &[(usize, usize)]) -> Vec<f32> {
    order.iter().flat_map(|&(t, n)| &numbers[(t * N + n) * columns..][..columns]).copied().collect()
}

fn steps_first() -> Vec<(usize, usize)> {
    (0..T * N).map(|i| (i / N, i % N)).collect()
}

fn relu(c: &Context) -> RnnBuilder<'_> {
    c.rnn(RnnCell::Relu, [T, N, I], H).unwrap().bidirectional()
}

/// Runs all passes in fp16 with fp32 gradients on time steps stored in this order.
fn check_passes(
    c: &Context,
    rnn: RnnBuilder<'_>,
    lengths: [usize; N],
    steps: RnnSteps<'_>,
    order: &[(usize, usize)],
) {
    let (data, rnn) = (data(), rnn.build::<F16, f32>().unwrap());
    let wanted = by_loops(&data, lengths);
    let half = |numbers: &[f32]| c.upload(&to_f16(numbers)).unwrap();
    let full = |numbers: &[f32]| c.upload(numbers).unwrap();
    let same = |got: &DeviceBuffer<F16>, wanted: &[f32], what: &str| {
        let got: Vec<_> = got.to_vec().unwrap().iter().map(|v| v.to_f32()).collect();
        assert_eq!(got, wanted, "{what}");
    };
    let on_device = [0, 1].map(|d| (half(&data.weights[d].ih), half(&data.weights[d].hh)));
    let biases = [0, 1].map(|d| (full(&data.weights[d].b_ih), full(&data.weights[d].b_hh)));
    let weights = [0, 1].map(|d| RnnWeights {
        w_ih: Some(on_device[d].0.view()),
        w_hh: on_device[d].1.view(),
        b_ih: Some(biases[d].0.view()),
        b_hh: Some(biases[d].1.view()),
    });
    let (x, h0) = (half(&in_order(&data.x, I, order)), half(&data.h0));
    let (y, hn) = (half(&vec![9.0; order.len() * 2 * H]), half(&[9.0; STATE]));
    let (dy, dhn) = (half(&in_order(&data.dy, 2 * H, order)), half(&data.dhn));
    let (dx, dh0) = (half(&vec![9.0; order.len() * I]), half(&[9.0; STATE]));
    let found_inf = full(&[0.0]);
    let inputs = RnnInputs {
        weights: &weights,
        steps,
        x: x.view(),
        h0: Some(h0.view()),
        c0: None,
        dropout_offset: None,
    };
    let outputs = RnnOutputs { y: y.view(), hn: Some(hn.view()), cn: None };
    let reserve = rnn.reserve().unwrap();
    rnn.forward(&inputs, &outputs, &reserve, STREAM).unwrap();
    same(&y, &in_order(&wanted.y, 2 * H, order), "y");
    same(&hn, &wanted.hn, "hn");

    let doutputs = RnnOutputs { y: dy.view(), hn: Some(dhn.view()), cn: None };
    let dinputs = RnnInputGrads { x: Some(dx.view()), h0: Some(dh0.view()), c0: None };
    let flag = Some(found_inf.view());
    rnn.backward_data(&inputs, &doutputs, &dinputs, &reserve, flag, STREAM).unwrap();
    same(&dx, &in_order(&wanted.dx, I, order), "dx");
    same(&dh0, &wanted.dh0, "dh0");

    let begin = 2.0;
    let dw =
        [0, 1].map(|_| [H * I, H * H, H, H].map(|count| c.upload(&vec![begin; count]).unwrap()));
    let grads = [0, 1].map(|d| RnnWeightGrads {
        w_ih: Some(dw[d][0].view()),
        w_hh: Some(dw[d][1].view()),
        b_ih: Some(dw[d][2].view()),
        b_hh: Some(dw[d][3].view()),
    });
    let amax = full(&[0.0]);
    for (accumulate, times, more) in [(true, 1.0, begin), (false, 1.0, 0.0), (true, 2.0, 0.0)] {
        let options = RnnGradOptions { accumulate, found_inf: flag, amax: Some(amax.view()) };
        rnn.backward_weights(&inputs, &grads, &reserve, &options, STREAM).unwrap();
        for (got, w) in dw.iter().zip(&wanted.dw) {
            for (got, w) in got.iter().zip([&w.ih, &w.hh, &w.b_ih, &w.b_hh]) {
                let w: Vec<_> = w.iter().map(|v| times * v + more).collect();
                assert_eq!(got.to_vec().unwrap(), w);
            }
        }
    }
    assert_eq!(found_inf.to_vec().unwrap(), [0.0]);
    assert!(amax.to_vec().unwrap()[0] > 0.0);

    // hn overwrites h0.
    let outputs = RnnOutputs { y: y.view(), hn: Some(h0.view()), cn: None };
    y.copy_from(&to_f16(&vec![9.0; order.len() * 2 * H])).unwrap();
    rnn.inference(&inputs, &outputs, STREAM).unwrap();
    same(&y, &in_order(&wanted.y, 2 * H, order), "y of inference");
    same(&h0, &wanted.hn, "hn of inference");
}

#[test]
fn all_passes_of_dense_padded_and_packed_sequences() {
    let c = context();
    check_passes(&c, relu(&c), [T; N], RnnSteps::All, &steps_first());
    let batch_first: Vec<_> = (0..T * N).map(|i| (i % T, i / T)).collect();
    check_passes(&c, relu(&c).batch_first(), [T; N], RnnSteps::All, &batch_first);
    let lengths = c.upload(&[2i32, 4, 1]).unwrap();
    let steps = RnnSteps::Lengths(lengths.view());
    check_passes(&c, relu(&c), [2, 4, 1], steps, &steps_first());
    let order = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (3, 0)];
    for rnn in [relu(&c), relu(&c).batch_first()] {
        check_passes(&c, rnn, [4, 2, 1], RnnSteps::Packed(&[3, 2, 1, 1]), &order);
    }
}

/// LSTM with open gates: c grows by 1 per step up to the bound, where the gradient is 0.
#[test]
fn clipped_cells() {
    let c = context();
    let rnn = c.rnn(RnnCell::Lstm, [3, 1, 1], 1).unwrap().clip(1.5).build::<f32, f32>().unwrap();
    let (zeros, open) = (c.upload(&[0f32; 4]).unwrap(), c.upload(&[100f32; 4]).unwrap());
    let (c0, cn, dcn) = (c.upload(&[-1f32]), c.upload(&[9f32]), c.upload(&[1f32]));
    let (c0, cn, dcn) = (c0.unwrap(), cn.unwrap(), dcn.unwrap());
    let (x, y, dc0) =
        (c.upload(&[0f32; 3]).unwrap(), c.alloc(3).unwrap(), c.upload(&[9f32]).unwrap());
    let weights = [RnnWeights {
        w_ih: Some(zeros.view()),
        w_hh: zeros.view(),
        b_ih: Some(open.view()),
        b_hh: Some(zeros.view()),
    }];
    let inputs = RnnInputs {
        weights: &weights,
        steps: RnnSteps::All,
        x: x.view(),
        h0: None,
        c0: Some(c0.view()),
        dropout_offset: None,
    };
    let reserve = rnn.reserve().unwrap();
    let outputs = RnnOutputs { y: y.view(), hn: None, cn: Some(cn.view()) };
    rnn.forward(&inputs, &outputs, &reserve, STREAM).unwrap();
    assert_eq!(cn.to_vec().unwrap(), [1.5]);
    let doutputs = RnnOutputs { y: x.view(), hn: None, cn: Some(dcn.view()) };
    let dinputs = RnnInputGrads { x: None, h0: None, c0: Some(dc0.view()) };
    rnn.backward_data(&inputs, &doutputs, &dinputs, &reserve, None, STREAM).unwrap();
    assert_eq!(dc0.to_vec().unwrap(), [0.0]);
}

#[test]
fn invalid_arguments_are_rejected() {
    let c = context();
    let said = |rnn: RnnBuilder<'_>, wanted: &str| {
        let error = rnn.build::<f32, f32>().err().unwrap().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    said(relu(&c).layers(0), "layers = 0");
    said(relu(&c).clip(1.0), "clip = 1");
    said(relu(&c).dropout(1.0, 0), "dropout = 1");
    said(relu(&c).reset_first(), "MP_RNN_FLAG_RESET_FIRST");
    said(relu(&c).skip_input(), "input_size = 2");
    said(relu(&c).kernel("none"), "plan->kernel = none is unknown");
    refused(
        c.rnn(RnnCell::Gru, [T, N, I], 1 << 31).map(|_| ()),
        "rnn: hidden_size = 2147483648 exceeds 2^31 - 1",
    );

    let rnn = relu(&c).no_bias().build::<f32, f32>().unwrap();
    assert_eq!(rnn.num_weights(), 2);
    let all = c.alloc::<f32>(T * N * 2 * H).unwrap(); // large enough for everything
    let counts = c.alloc::<i32>(N).unwrap();
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

    let x = all.slice(0, T * N * I - 1);
    refused(
        forward(&RnnInputs { x, ..inputs }),
        "rnn: x has 23 elements, but must have at least 24",
    );
    let h0 = Some(all.slice(0, STATE - 1));
    too_short(forward(&RnnInputs { h0, ..inputs }), "rnn: h0", [17, 18]);
    let short = [one, RnnWeights { w_hh: all.slice(0, H * H - 1), ..one }];
    too_short(forward(&RnnInputs { weights: &short, ..inputs }), "rnn: weights[1].w_hh", [8, 9]);
    too_short(forward(&RnnInputs { weights: &weights[..1], ..inputs }), "rnn: weights", [1, 2]);
    let steps = RnnSteps::Packed(&[3, 2, 1]);
    too_short(forward(&RnnInputs { steps, ..inputs }), "rnn: steps", [3, 4]);
    let steps = RnnSteps::Lengths(counts.slice(0, 2));
    too_short(forward(&RnnInputs { steps, ..inputs }), "rnn: lengths", [2, 3]);
    let steps = RnnSteps::Packed(&[1, 3, 1, 1]);
    let error = forward(&RnnInputs { steps, ..inputs }).unwrap_err().to_string();
    assert!(error.contains("batch_sizes[1] = 3"), "{error}");
    let without = [one, RnnWeights { w_ih: None, ..one }];
    let error = forward(&RnnInputs { weights: &without, ..inputs }).unwrap_err().to_string();
    assert!(error.contains("weights[1].w_ih"), "{error}");
    let nothing = c.alloc::<u8>(256).unwrap();
    let error = rnn.forward(&inputs, &outputs, &nothing, STREAM).unwrap_err().to_string();
    assert!(error.contains("reserve_bytes = 256"), "{error}");

    let y = all.slice(0, T * N * 2 * H - 1);
    too_short(rnn.inference(&inputs, &RnnOutputs { y, ..outputs }, STREAM), "rnn: y", [71, 72]);
    let dinputs = RnnInputGrads { x: Some(x), h0: None, c0: None };
    too_short(
        rnn.backward_data(&inputs, &outputs, &dinputs, &reserve, None, STREAM),
        "rnn: dx",
        [23, 24],
    );
    let none = RnnWeightGrads::<f32> { w_ih: None, w_hh: None, b_ih: None, b_hh: None };
    let grads = [none, RnnWeightGrads { w_ih: Some(all.slice(0, 5)), ..none }];
    too_short(
        rnn.backward_weights(&inputs, &grads, &reserve, &Default::default(), STREAM),
        "rnn: grads[1].w_ih",
        [5, 6],
    );
    let other = context();
    let foreign = other.alloc::<f32>(T * N * I).unwrap();
    refused(
        forward(&RnnInputs { x: foreign.view(), ..inputs }),
        "rnn: x belongs to another context",
    );
}
