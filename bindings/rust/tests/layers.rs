//! Convolution, pooling and batch normalization, compared with plain loops on integers.

mod common;

use common::{context, integers, refused, to_f16, too_short};
use mpcore::*;

const STREAM: Stream = Stream::DEFAULT;
const NO_STATS: GradStats = GradStats { found_inf: None, amax: None };
// 2 images of 5 x 6 pixels and 4 channels, 6 filters of 3 x 2 in two groups, outputs of 2 x 7.
const X: [usize; 4] = [2, 5, 6, 4];
const FILTER: [usize; 4] = [6, 3, 2, 2];
const OF_X: usize = 240;
const OF_FILTER: usize = 72;
const OF_Y: usize = 2 * 2 * 7 * 6;

fn conv(c: &Context) -> Conv2d {
    c.conv2d(X, FILTER).unwrap().stride(2, 1).padding(1, 0, 2, 1).dilation(1, 2)
}

/// Indices into y, the filter and x of every product of the convolution.
fn products() -> Vec<(usize, usize, usize)> {
    let mut all = Vec::new();
    for i in 0..OF_Y * 3 * 2 * 2 {
        let (c, s, r, y) = (i % 2, i / 2 % 2, i / 4 % 3, i / 12);
        let (k, q, p, n) = (y % 6, y / 6 % 7, y / 42 % 2, y / 84);
        let (row, column) = ((p * 2 + r).wrapping_sub(1), (q + s * 2).wrapping_sub(2));
        if row < 5 && column < 6 {
            let x = ((n * 5 + row) * 6 + column) * 4 + k / 3 * 2 + c;
            all.push((y, ((k * 3 + r) * 2 + s) * 2 + c, x));
        }
    }
    all
}

#[test]
fn fprop_dgrad_and_wgrad() {
    let c = context();
    assert_eq!(conv(&c).output_size().unwrap(), (2, 7));
    let (x, filter, dy) = (integers(OF_X, 1), integers(OF_FILTER, 2), integers(OF_Y, 3));
    let (mut y, mut dx, mut dfilter) = ([0.0; OF_Y], [0.0; OF_X], [0.0; OF_FILTER]);
    for (at_y, at_filter, at_x) in products() {
        y[at_y] += x[at_x] * filter[at_filter];
        dx[at_x] += dy[at_y] * filter[at_filter];
        dfilter[at_filter] += dy[at_y] * x[at_x];
    }
    let up = |numbers: &[f32]| c.upload(&to_f16(numbers)).unwrap();
    let (on_x, on_filter, on_dy) = (up(&x), up(&filter), up(&dy));
    for op in [ConvOp::Fprop, ConvOp::Dgrad, ConvOp::Wgrad] {
        let bytes = conv(&c).workspace_size::<F16, f32>(op).unwrap();
        let space = c.alloc::<u8>(bytes.max(256)).unwrap();
        for workspace in [None, Some(space.view())] {
            let options = OutputOptions { workspace, ..Default::default() };
            let out = |len| c.alloc::<f32>(len).unwrap();
            match op {
                ConvOp::Fprop => {
                    let got = out(OF_Y);
                    conv(&c).fprop(&on_x, &on_filter, &got, &options).unwrap();
                    assert_eq!(got.to_vec().unwrap(), y);
                }
                ConvOp::Dgrad => {
                    let got = out(OF_X);
                    conv(&c).dgrad(&on_dy, &on_filter, &got, &options).unwrap();
                    assert_eq!(got.to_vec().unwrap(), dx);
                }
                _ => {
                    let got = out(OF_FILTER);
                    conv(&c).wgrad(&on_x, &on_dy, &got, &options).unwrap();
                    assert_eq!(got.to_vec().unwrap(), dfilter);
                }
            }
        }
    }
}

#[test]
fn every_kernel_has_the_epilogue() {
    let c = context();
    let (x, filter, bias, start) =
        (integers(OF_X, 1), integers(OF_FILTER, 2), integers(6, 4), integers(OF_Y, 5));
    let mut z: Vec<f32> = (0..OF_Y).map(|i| 3.0 * start[i] + bias[i % 6]).collect();
    for (at_y, at_filter, at_x) in products() {
        z[at_y] += 2.0 * x[at_x] * filter[at_filter];
    }
    let relu: Vec<f32> = z.iter().map(|&v| v.max(0.0)).collect();
    let (on_x, on_filter) = (c.upload(&to_f16(&x)).unwrap(), c.upload(&to_f16(&filter)).unwrap());
    let on_bias = c.upload(&bias).unwrap();
    let kernels = conv(&c).kernels::<F16, f32>(ConvOp::Fprop).unwrap();
    let able: Vec<_> = kernels.iter().filter(|info| info.reason.is_none()).collect();
    assert!(able.len() > 1 && able.len() < kernels.len());
    let text = conv(&c).explain::<F16, f32>(ConvOp::Fprop).unwrap();
    assert!(text.lines().any(|line| line.starts_with("kernel ") && line.ends_with(&able[0].name)));
    for info in able {
        let (aux, amax) = (c.alloc::<f32>(OF_Y).unwrap(), c.alloc::<f32>(1).unwrap());
        let space = c.alloc::<u8>(info.workspace_bytes.max(256)).unwrap();
        let epilogue = Epilogue::default().bias(&on_bias).activation(Activation::Relu);
        let options = OutputOptions {
            alpha: 2.0,
            beta: 3.0,
            epilogue: epilogue.aux(&aux).amax(&amax),
            workspace: Some(space.view()),
            ..Default::default()
        };
        let y = c.upload(&start).unwrap();
        conv(&c).kernel(&info.name).fprop(&on_x, &on_filter, &y, &options).unwrap();
        assert_eq!(aux.to_vec().unwrap(), z, "{}", info.name);
        assert_eq!(y.to_vec().unwrap(), relu, "{}", info.name);
        assert_eq!(amax.to_vec().unwrap(), [relu.iter().copied().fold(0.0, f32::max)]);
    }
}

#[test]
fn mismatched_convolution_is_rejected() {
    let (c, other) = (context(), context());
    let alloc = |len| c.alloc::<F16>(len).unwrap();
    let (x, filter, y) = (alloc(OF_X), alloc(OF_FILTER), alloc(OF_Y));
    let short = alloc(71);
    let plain = OutputOptions::default();
    let conv = || conv(&c);
    too_short(conv().fprop(&short, &filter, &y, &plain), "conv2d: x", [71, 240]);
    too_short(conv().dgrad(&y, &short, &x, &plain), "conv2d: filter", [71, 72]);
    too_short(conv().wgrad(&x, &y, &short, &plain), "conv2d: dfilter", [71, 72]);
    too_short(conv().fprop(&x, &filter, &short, &plain), "conv2d: y", [71, 168]);
    let five = c.alloc::<f32>(5).unwrap();
    let epilogue = Epilogue::default().bias(&five);
    let options = OutputOptions { epilogue, ..plain };
    refused(
        conv().fprop(&x, &filter, &y, &options),
        "conv2d: bias has 5 elements, but must have at least 6",
    );
    let foreign = other.alloc::<F16>(OF_X).unwrap();
    refused(conv().fprop(&foreign, &filter, &y, &plain), "conv2d: x belongs to another context");
    refused(c.conv2d(X, [1, 3, 3, 3]), "conv2d: filter[3] = 3 must divide x[3] = 4");
    refused(c.conv2d([1, 1 << 40, 1, 4], FILTER), "conv2d: h = 1099511627776 exceeds 2^31 - 1");
    let error = conv().stride(0, 1).fprop(&x, &filter, &y, &plain).unwrap_err();
    assert!(error.to_string().contains("stride_h = 0"), "{error}");
    let error = conv().padding(u32::MAX, 0, 0, 0).output_size().unwrap_err();
    assert!(error.to_string().contains("pad_top = -1"), "{error}");
}

#[test]
fn layouts_are_converted() {
    let c = context();
    let [n, channels, h, w] = [2, 3, 4, 5];
    let numbers = integers(120, 1);
    let turned: Vec<f32> = (0..120)
        .map(|i| {
            let (k, x, y, image) = (i % 3, i / 3 % w, i / 15 % h, i / 60);
            numbers[((image * channels + k) * h + y) * w + x]
        })
        .collect();
    let src = c.upload(&numbers).unwrap();
    let (half, back) = (c.alloc::<F16>(120).unwrap(), c.alloc::<f32>(120).unwrap());
    let nchw = [n, channels, h, w];
    c.nchw_to_nhwc(nchw, &src, &half, STREAM).unwrap();
    assert_eq!(half.to_vec().unwrap(), to_f16(&turned));
    c.nhwc_to_nchw(nchw, &half, &back, STREAM).unwrap();
    assert_eq!(back.to_vec().unwrap(), numbers);
    refused(
        c.nchw_to_nhwc(nchw, &src.slice(0, 119), &half, STREAM),
        "nchw_to_nhwc: src has 119 elements, but must have at least 120",
    );
    too_short(c.nhwc_to_nchw([2, 3, 4, 6], &half, &back, STREAM), "nhwc_to_nchw: src", [120, 144]);
}

#[test]
fn max_and_average_pooling() {
    let c = context();
    let (h, w, channels, p, q) = (5, 4, 3, 3, 2);
    let (x, dy) = (integers(2 * h * w * channels, 1), integers(2 * p * q * channels, 2));
    let (on_x, on_dy) = (c.upload(&x).unwrap(), c.upload(&dy).unwrap());
    for mode in [PoolMode::Max, PoolMode::AvgIncludePad] {
        let pool = c.pool2d(mode, [2, h, w, channels], (2, 4)).unwrap();
        let pool = pool.stride(2, 1).padding(1, 0, 1, 0);
        assert_eq!(pool.output_size().unwrap(), (p, q));
        let (mut y, mut dx) = (vec![0.0; dy.len()], vec![0.0; x.len()]);
        for i in 0..dy.len() {
            let (k, column, row, n) = (i % 3, i / 3 % q, i / 6 % p, i / 18);
            let inside: Vec<usize> = (0..8)
                .map(|j| ((row * 2 + j / 4).wrapping_sub(1), (column + j % 4).wrapping_sub(1)))
                .filter(|&(r, s)| r < h && s < w)
                .map(|(r, s)| ((n * h + r) * w + s) * channels + k)
                .collect();
            if mode == PoolMode::Max {
                // The first of equal maxima.
                let best = inside.iter().fold(inside[0], |a, &b| if x[b] > x[a] { b } else { a });
                y[i] = x[best];
                dx[best] += dy[i];
            } else {
                y[i] = inside.iter().map(|&j| x[j]).sum::<f32>() / 8.0;
                inside.iter().for_each(|&j| dx[j] += dy[i] / 8.0);
            }
        }
        let (got, gradient) = (c.alloc(y.len()).unwrap(), c.alloc(x.len()).unwrap());
        let (of_index, is_max) = (c.alloc::<u8>(y.len()).unwrap(), mode == PoolMode::Max);
        let (view, index) = (on_x.view(), of_index.view());
        let (given, index) = if is_max { (Some(&view), Some(&index)) } else { (None, None) };
        pool.forward(&on_x, &got, index, STREAM).unwrap();
        assert_eq!(got.to_vec().unwrap(), y);
        for (x, index) in [(given, None), (None, index)] {
            pool.backward(x, index, &on_dy, &gradient, &NO_STATS, STREAM).unwrap();
            assert_eq!(gradient.to_vec().unwrap(), dx);
        }
        too_short(pool.forward(&on_dy, &got, index, STREAM), "pool2d: x", [36, 120]);
        let result = pool.backward(given, index, &on_dy, &got, &NO_STATS, STREAM);
        too_short(result, "pool2d: dx", [36, 120]);
        if is_max {
            assert!(pool.backward(None, None, &on_dy, &gradient, &NO_STATS, STREAM).is_err());
        }
        let error = pool.padding(2, 0, 0, 0).output_size().unwrap_err();
        assert!(error.to_string().contains("pad_top = 2"), "{error}");
    }
}

#[test]
fn pooling_with_ceil_mode_and_dilation() {
    let c = context();
    let x = c.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]).unwrap();
    let y = c.alloc::<f32>(4).unwrap();
    let pool = || c.pool2d(PoolMode::Max, [1, 1, 7, 1], (1, 2)).unwrap();
    assert_eq!(pool().output_size().unwrap(), (1, 3));
    pool().ceil_mode().forward(&x, &y, None, STREAM).unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0, 4.0, 6.0, 7.0]);
    pool().stride(1, 1).dilation(1, 3).forward(&x, &y, None, STREAM).unwrap();
    assert_eq!(y.to_vec().unwrap(), [4.0, 5.0, 6.0, 7.0]);
}

#[test]
fn batch_norm_without_gamma_and_beta() {
    let c = context();
    let x = c.upload(&[1.0f32, 2.0, 3.0, 6.0]).unwrap();
    let (one, zero) = (c.upload(&[1.0f32]).unwrap(), c.upload(&[0.0f32]).unwrap());
    let norm = BatchNorm::<f32>::new(&c, 4, 1, &BatchNormOptions::default()).unwrap();
    let given = Affine { gamma: Some(one.view()), beta: Some(zero.view()) };
    let run = |affine: &Affine| {
        let (y, dx) = (c.alloc::<f32>(4).unwrap(), c.alloc::<f32>(4).unwrap());
        norm.forward(&x, affine, &y, None, STREAM).unwrap();
        norm.backward(&x, &x, affine, &dx, &Affine::default(), &NO_STATS, STREAM).unwrap();
        (y.to_vec().unwrap(), dx.to_vec().unwrap())
    };
    assert_eq!(run(&Affine::default()), run(&given));
}

/// Two channels of mean 2 and 5, variance 4 and 16; every number is exact.
#[test]
fn batch_norm() {
    let c = context();
    let up = |numbers: &[f32]| c.upload(numbers).unwrap();
    let x = up(&[0.0, 1.0, 4.0, 9.0, 0.0, 1.0, 4.0, 9.0]);
    let (gamma, beta) = (up(&[2.0, 3.0]), up(&[3.0, 0.0]));
    let (mean, var) = (up(&[0.0, 1.0]), up(&[0.0, 0.0]));
    let (dgamma, dbeta, y) = (up(&[9.0; 2]), up(&[9.0; 2]), up(&[9.0; 8]));
    let affine = Affine { gamma: Some(gamma.view()), beta: Some(beta.view()) };
    let running = Statistics { mean: mean.view(), var: var.view() };
    let options = BatchNormOptions { activation: Activation::Relu, epsilon: 0.0, momentum: 0.5 };
    let norm = BatchNorm::<f32>::new(&c, 4, 2, &options).unwrap();
    norm.forward(&x, &affine, &y, Some(&running), STREAM).unwrap();
    assert_eq!(norm.mean().to_vec().unwrap(), [2.0, 5.0]);
    assert_eq!(norm.inv_std().to_vec().unwrap(), [0.5, 0.25]);
    assert_eq!(y.to_vec().unwrap(), [1.0, 0.0, 5.0, 3.0, 1.0, 0.0, 5.0, 3.0]);
    assert_eq!(mean.to_vec().unwrap(), [1.0, 3.0]);
    for (got, wanted) in var.to_vec().unwrap().iter().zip([8.0f32 / 3.0, 32.0 / 3.0]) {
        assert!((got - wanted).abs() < 1e-5, "{got}, {wanted}");
    }
    // xhat is -1 and 1; g is 0 where y is.
    let dy = up(&[2.0, 9.0, 4.0, 2.0, 2.0, 9.0, 8.0, 2.0]);
    let grads = Affine { gamma: Some(dgamma.view()), beta: Some(dbeta.view()) };
    norm.backward(&x, &dy, &affine, &dy, &grads, &NO_STATS, STREAM).unwrap();
    assert_eq!(dgamma.to_vec().unwrap(), [8.0, 4.0]);
    assert_eq!(dbeta.to_vec().unwrap(), [16.0, 4.0]);
    assert_eq!(dy.to_vec().unwrap(), [0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
    let (ones, given) = (up(&[1.0, 1.0]), up(&[4.0, 16.0]));
    let statistics = Statistics { mean: ones.view(), var: given.view() };
    norm.inference(&x, &affine, &statistics, &y, STREAM).unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0, 0.0, 6.0, 6.0, 2.0, 0.0, 6.0, 6.0]);

    too_short(norm.forward(&x.slice(0, 7), &affine, &y, None, STREAM), "BatchNorm: x", [7, 8]);
    let short = Affine { gamma: Some(gamma.slice(0, 1)), ..affine };
    too_short(norm.forward(&x, &short, &y, None, STREAM), "BatchNorm: gamma", [1, 2]);
    too_short(
        norm.backward(&x, &dy, &affine, &dy, &short, &NO_STATS, STREAM),
        "BatchNorm: dgamma",
        [1, 2],
    );
    let options = BatchNormOptions { epsilon: -1.0, ..Default::default() };
    let error = BatchNorm::<f32>::new(&c, 4, 2, &options).err().unwrap();
    assert!(error.to_string().contains("epsilon = -1"), "{error}");
}
