//! Calls on arrays.  Products of integers are exact.

mod common;

use common::{context, integers, product, refused, target, to_f16, too_short};
use mpcore::*;

#[test]
fn library_and_header_have_one_version() {
    assert_eq!(version(), sys::MP_VERSION);
    assert!(build_info().starts_with("mpcore "));
    let info = context().info().unwrap();
    assert_eq!(info.target, Some(target()));
    assert!(!info.name.is_empty());
}

#[test]
fn names_of_single_flags_have_no_prefix() {
    assert_eq!(PoolFlags::CEIL.bits(), sys::MP_POOL_FLAG_CEIL);
    assert_eq!(LossFlags::IGNORE_TARGET.bits(), sys::MP_LOSS_FLAG_IGNORE_TARGET);
    assert_eq!(SoftmaxFlags::LOG.bits(), sys::MP_SOFTMAX_FLAG_LOG);
}

#[test]
fn gemm_multiplies() {
    let (m, n, k) = (5, 7, 6);
    let (a, b) = (integers(m * k, 1), integers(k * n, 2));
    let c = context();
    let d = c.alloc::<f32>(m * n).unwrap();
    let (da, db) = (c.upload(&to_f16(&a)).unwrap(), c.upload(&to_f16(&b)).unwrap());
    c.gemm(m, n, k).run(&da, &db, &d).unwrap();
    assert_eq!(d.to_vec().unwrap(), product(&a, &b, m, n, k));
}

#[test]
fn gemm_reads_transposed_operands() {
    let (m, n, k) = (5, 7, 6);
    let (a, b) = (integers(m * k, 1), integers(k * n, 2));
    let turned_a: Vec<f32> = (0..k * m).map(|i| a[i % m * k + i / m]).collect();
    let turned_b: Vec<f32> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
    let c = context();
    let d = c.alloc::<f32>(m * n).unwrap();
    let (da, db) = (c.upload(&to_f16(&turned_a)).unwrap(), c.upload(&to_f16(&turned_b)).unwrap());
    c.gemm(m, n, k).transpose_a().transpose_b().run(&da, &db, &d).unwrap();
    assert_eq!(d.to_vec().unwrap(), product(&a, &b, m, n, k));
}

#[test]
fn gemm_has_an_epilogue() {
    let (m, n, k) = (4, 8, 8);
    let (a, b, bias, start) =
        (integers(m * k, 1), integers(k * n, 2), integers(n, 3), integers(m * n, 4));
    let c = context();
    let (da, db) = (c.upload(&to_f16(&a)).unwrap(), c.upload(&to_f16(&b)).unwrap());
    let (d, dbias) = (c.upload(&start).unwrap(), c.alloc::<f32>(n).unwrap());
    let (aux, amax) = (c.alloc::<f32>(m * n).unwrap(), c.alloc::<f32>(1).unwrap());
    let db_bias = c.upload(&bias).unwrap();
    c.gemm(m, n, k)
        .alpha(2.0)
        .beta(3.0)
        .bias(&db_bias)
        .activation(Activation::Relu)
        .aux(&aux)
        .dbias(&dbias)
        .amax(&amax)
        .run(&da, &db, &d)
        .unwrap();
    let z: Vec<f32> = product(&a, &b, m, n, k)
        .iter()
        .enumerate()
        .map(|(i, p)| 2.0 * p + 3.0 * start[i] + bias[i % n])
        .collect();
    let y: Vec<f32> = z.iter().map(|&x| x.max(0.0)).collect();
    assert_eq!(aux.to_vec().unwrap(), z);
    assert_eq!(d.to_vec().unwrap(), y);
    assert_eq!(amax.to_vec().unwrap(), [y.iter().copied().fold(0.0, f32::max)]);
    let sums: Vec<f32> = (0..n).map(|j| y.iter().skip(j).step_by(n).sum()).collect();
    assert_eq!(dbias.to_vec().unwrap(), sums);
}

#[test]
fn gemm_supports_batches_leading_dimensions_and_a_workspace() {
    let c = context();
    let (a, b) = (integers(3 * 2 * 4, 1), integers(4 * 5, 2));
    let (da, db) = (c.upload(&to_f16(&a)).unwrap(), c.upload(&to_f16(&b)).unwrap());
    let d = c.upload(&[77.0f32; 3 * 2 * 6]).unwrap();
    let gemm = c.gemm(2, 5, 4).ld(4, 5, 6).batch(3, 8, 0, 12);
    let bytes = gemm.workspace_size::<F16, f32>().unwrap();
    let space = c.alloc::<u8>(bytes.max(256)).unwrap();
    gemm.workspace(&space).run(&da, &db, &d).unwrap();
    let got = d.to_vec().unwrap();
    for i in 0..3 {
        let wanted = product(&a[i * 8..], &b, 2, 5, 4);
        for row in 0..2 {
            let start = i * 12 + row * 6;
            assert_eq!(got[start..start + 5], wanted[row * 5..row * 5 + 5]);
            assert_eq!(got[start + 5], 77.0);
        }
    }
}

#[test]
fn mismatched_buffer_is_rejected_by_name() {
    let c = context();
    let small = c.alloc::<F16>(15).unwrap();
    let right = c.alloc::<F16>(16).unwrap();
    too_short(c.gemm(4, 4, 4).run(&small, &right, &right), "gemm: a", [15, 16]);
    too_short(c.gemm(4, 4, 4).run(&right, &small, &right), "gemm: b", [15, 16]);
    too_short(c.gemm(4, 4, 4).run(&right, &right, &small), "gemm: d", [15, 16]);
    let bias = c.alloc::<f32>(3).unwrap();
    too_short(c.gemm(4, 4, 4).bias(&bias).run(&right, &right, &right), "gemm: bias", [3, 4]);
    let aux = c.alloc::<f32>(16).unwrap();
    refused(
        c.gemm(4, 4, 4).aux(&aux).run(&right, &right, &right),
        "gemm: aux must have the type of the result",
    );
    let other = context();
    let foreign = other.alloc::<F16>(16).unwrap();
    refused(c.gemm(4, 4, 4).run(&right, &foreign, &right), "gemm: b belongs to another context");
    // Three batches of 4 elements and a last one of 2: 14.
    let thirteen = c.alloc::<F16>(13).unwrap();
    let batch = || c.gemm(1, 2, 4).batch(4, 4, 0, 4);
    batch().run(&right, &right, &small).unwrap();
    refused(
        batch().run(&right, &right, &thirteen),
        "gemm: d has 13 elements, but must have at least 14",
    );
}

#[test]
fn errors_of_the_library_name_the_argument() {
    let c = context();
    let (x, d) = (c.alloc::<F16>(16).unwrap(), c.alloc::<F16>(16).unwrap());
    let error = c.gemm(4, 4, 4).kernel("none_such").run(&x, &x, &d).unwrap_err();
    assert_eq!(error.status(), Some(Status::ErrorNotFound));
    assert!(error.to_string().contains("none_such"), "{error}");
    let error = c.gemm(4, 4, 4).ld(3, 4, 4).run(&x, &x, &d).unwrap_err();
    assert!(error.to_string().contains("ld_a = 3"), "{error}");
    let mut config = ScalerConfig::new(ScalerPolicy::Backoff);
    config.growth_factor = 0.5;
    let error = Scaler::new(&c, &config).unwrap_err();
    assert!(error.to_string().contains("growth_factor"), "{error}");
}

#[test]
fn struct_size_of_the_caller_is_replaced() {
    let c = context();
    let mut config = ScalerConfig::preset(ScalerPreset::Torch);
    config.struct_size = 1 << 20;
    Scaler::new(&c, &config).unwrap();
    let mut group = ParamGroup::new(OptimizerKind::Sgd, 1.0);
    group.struct_size = 1 << 20;
    let (w, g) = (c.alloc::<f32>(1).unwrap(), c.alloc::<f32>(1).unwrap());
    let master = TensorList::new(&c, &[Tensor::new(&w)]).unwrap();
    let grads = TensorList::new(&c, &[Tensor::new(&g)]).unwrap();
    group.beta1 = 0.0;
    let sgd = Optimizer::builder(&c, OptimizerKind::Sgd, &grads, &master).group(group).build();
    sgd.unwrap().set_group(0, &group, Stream::DEFAULT).unwrap();
}

#[test]
fn slices_and_casts() {
    let c = context();
    let x = c.upload(&[1.0f32, -2.5, 1e6]).unwrap();
    let y = c.alloc::<F16>(2).unwrap();
    c.cast(&x.slice(1, 2), &y, Stream::DEFAULT).unwrap();
    assert_eq!(y.to_vec().unwrap(), [F16::from_f32(-2.5), F16(0x7c00)]);
    assert!(c.cast(&x, &y, Stream::DEFAULT).is_err());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| x.slice(2, 2))).is_err());
}

#[test]
fn pointwise_losses() {
    let c = context();
    let (x, t) = (c.upload(&[1.0f32, 3.0]).unwrap(), c.upload(&[0.0f32, f32::NAN]).unwrap());
    let loss = c.alloc::<f32>(1).unwrap();
    let call = |kind| c.element_loss(kind, 2).loss(&loss).ignore_target(f32::NAN);
    let bytes = call(mpcore::LossKind::Mse).workspace_size().unwrap();
    let space = c.alloc::<u8>(bytes).unwrap();
    let dx = c.alloc::<f32>(2).unwrap();
    let weights = c.upload(&[2.0f32, 1.0]).unwrap();
    let mse = call(mpcore::LossKind::Mse).workspace(&space).weights(&weights).weight(0.5);
    mse.run(&x, &t, Some(&dx)).unwrap();
    assert_eq!((loss.to_vec().unwrap(), dx.to_vec().unwrap()), (vec![1.0], vec![2.0, 0.0]));
    let l1 = call(mpcore::LossKind::L1).workspace(&space).reduction(mpcore::LossReduction::Sum);
    l1.run(&x, &t, Some(&x)).unwrap();
    assert_eq!(x.to_vec().unwrap(), [1.0, 0.0]);
    let huber = call(mpcore::LossKind::Huber).workspace(&space).delta(0.5);
    huber.run(&x, &t, Some(&x)).unwrap();
    assert_eq!((loss.to_vec().unwrap(), x.to_vec().unwrap()), (vec![0.375], vec![0.5, 0.0]));
    let short = call(mpcore::LossKind::L1).run(&x, &t, Some(&x)).unwrap_err();
    assert!(short.to_string().contains("workspace_bytes = 0"), "{short}");
    let error = c.element_loss(mpcore::LossKind::L1, 3).run(&x, &t, Some(&x)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "element_loss: prediction has 2 elements, but must have at least 3"
    );
}

#[test]
fn softmax_cross_entropy() {
    let c = context();
    let logits = c.upload(&[0.0f32; 4]).unwrap();
    let labels = c.upload(&[0i32, 1]).unwrap();
    let (row_loss, loss) = (c.alloc::<f32>(2).unwrap(), c.alloc::<f32>(1).unwrap());
    let correct = c.alloc::<i64>(1).unwrap();
    let xent = c.softmax_xent(2, 2).loss(&loss).correct(&correct);
    xent.run(&logits, &labels, &row_loss, Some(&logits)).unwrap();
    assert_eq!(logits.to_vec().unwrap(), [-0.25, 0.25, 0.25, -0.25]);
    assert_eq!(correct.to_vec().unwrap(), [1]);
    let (wide, lse) = (c.upload(&[0i64, 1 << 40]).unwrap(), c.alloc::<f32>(2).unwrap());
    let (found_inf, count) = (c.alloc::<f32>(1).unwrap(), c.upload(&[4.0f32]).unwrap());
    let zeros = c.upload(&[0.0f32; 4]).unwrap();
    let stats = mpcore::GradStats { found_inf: Some(found_inf.view()), ..Default::default() };
    let xent = c.softmax_xent(2, 2).ignore_label(Some(1 << 40)).count(&count).lse(&lse);
    xent.stats(stats).run(&zeros, &wide, &row_loss, Some(&zeros)).unwrap();
    assert_eq!(zeros.to_vec().unwrap(), [-0.125, 0.125, 0.0, 0.0]);
    assert_eq!(lse.to_vec().unwrap(), [2f32.ln(), 0.0]);
    assert_eq!(found_inf.to_vec().unwrap(), [0.0]);
    let error = c.softmax_xent(3, 2).run(&logits, &labels, &row_loss, Some(&logits)).unwrap_err();
    assert_eq!(error.to_string(), "softmax_xent: logits has 4 elements, but must have at least 6");

    let gradient = |xent: mpcore::SoftmaxXent| {
        let logits = c.upload(&[0.0f32; 4]).unwrap();
        xent.run(&logits, &labels, &row_loss, Some(&logits)).unwrap();
        logits.to_vec().unwrap()
    };
    assert_eq!(gradient(c.softmax_xent(2, 2).ignore_label(Some(0))), [0.0, 0.0, 0.5, -0.5]);
    assert_eq!(gradient(c.softmax_xent(2, 2).ignore_label(None)), [-0.25, 0.25, 0.25, -0.25]);
    assert_eq!(gradient(c.softmax_xent(2, 2).label_smoothing(0.5)), [-0.125, 0.125, 0.125, -0.125]);
    let weights = c.upload(&[3.0f32, 1.0]).unwrap();
    let weighted = gradient(c.softmax_xent(2, 2).class_weights(&weights));
    assert_eq!(weighted, [-0.375, 0.375, 0.125, -0.125]);
    let targets = c.upload(&[0.25f32, 0.75, 1.0, 0.0]).unwrap();
    let xent = c.softmax_xent(2, 2).log_probabilities();
    xent.run_soft(&zeros, &targets, &row_loss, Some(&zeros)).unwrap();
    assert_eq!(zeros.to_vec().unwrap(), [-0.125, -0.375, -0.5, 0.0]);
}

#[test]
fn linear_cross_entropy() {
    let c = context();
    let x = c.upload(&[2.0f32, 0.0, 0.0, 0.0]).unwrap();
    let w = c.upload(&[0.0f32, 3.0, 0.0, 1.0]).unwrap(); // all logits are 0
    let (labels, count) = (c.upload(&[0i32, -100]).unwrap(), c.upload(&[0.0f32]).unwrap());
    let (row_loss, loss) = (c.alloc::<f32>(2).unwrap(), c.alloc::<f32>(1).unwrap());
    let (dw, dbias) = (c.upload(&[1.0f32; 4]).unwrap(), c.upload(&[1.0f32; 2]).unwrap());
    c.xent_count(&labels, -100, &count.view(), mpcore::Stream::DEFAULT).unwrap();
    assert_eq!(count.to_vec().unwrap(), [1.0]);
    let xent = || c.softmax_xent(2, 2).loss(&loss).count(&count).linear::<f32>(2);
    let space = c.alloc::<u8>(xent().workspace_size().unwrap()).unwrap();
    let short = xent().run(&x, &w, &labels, &row_loss).unwrap_err();
    assert!(short.to_string().contains("workspace_bytes = 0"), "{short}");
    let call = xent().dw(&dw).dbias(&dbias).workspace(&space);
    call.run(&x, &w, &labels, &row_loss).unwrap();
    let call = xent().dx(&x).dw(&dw).dbias(&dbias).accumulate().workspace(&space);
    call.run(&x, &w, &labels, &row_loss).unwrap();
    assert_eq!(dw.to_vec().unwrap(), [-2.0, 0.0, 2.0, 0.0]);
    assert_eq!(dbias.to_vec().unwrap(), [-1.0, 1.0]);
    assert_eq!(x.to_vec().unwrap(), [0.0, -1.0, 0.0, 0.0]);
    assert!((loss.to_vec().unwrap()[0] - 2f32.ln()).abs() < 1e-6);
    let error = c.softmax_xent(3, 2).linear(2).run(&x, &w, &labels, &row_loss).unwrap_err();
    assert_eq!(error.to_string(), "linear_xent: x has 4 elements, but must have at least 6");
    let weighted = c.softmax_xent(2, 2).class_weights(&loss).linear(2);
    let error = weighted.run(&x, &w, &labels, &row_loss).unwrap_err();
    assert!(error.to_string().contains("class_weights has"), "{error}");
}
