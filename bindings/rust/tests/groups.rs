//! Batched products, kernels by name, and queries of lists and optimizers.

mod common;

use common::{context, fails_with, integers, list, product, refused, to_f16, too_short};
use mpcore::*;

const STREAM: Stream = Stream::DEFAULT;

fn up(c: &Context, count: usize, seed: usize) -> DeviceBuffer<F16> {
    c.upload(&to_f16(&integers(count, seed))).unwrap()
}

#[test]
fn batch_of_pointers_equals_single_products() {
    let (m, n, k) = (3, 5, 4);
    let c = context();
    let a: Vec<_> = (0..3).map(|i| up(&c, m * k, i)).collect();
    let b: Vec<_> = (0..3).map(|i| up(&c, k * n, i + 7)).collect();
    let d: Vec<_> = (0..3).map(|_| c.upload(&[1.0f32; 15]).unwrap()).collect();
    let bias = c.upload(&integers(n, 9)).unwrap();
    let on_a: Vec<_> = a.iter().map(Data::view).collect();
    let on_b: Vec<_> = b.iter().map(Data::view).collect();
    let on_d: Vec<_> = d.iter().map(Data::view).collect();
    let (of_a, of_b) = (Matrices::new(&c, &on_a).unwrap(), Matrices::new(&c, &on_b).unwrap());
    let of_d = Matrices::new(&c, &on_d).unwrap();
    let gemm = || c.gemm(m, n, k).alpha(2.0).beta(3.0).bias(&bias);
    let bytes = gemm().batched_workspace_size::<F16, f32>(3).unwrap();
    let plan = gemm().batched_get_plan::<F16, f32>(3, usize::MAX).unwrap();
    assert!(plan.workspace_bytes <= bytes);
    let space = c.alloc::<u8>(bytes.max(256)).unwrap();
    gemm().plan(&plan).workspace(&space).run_batched(&of_a, &of_b, &of_d).unwrap();
    for (i, got) in d.iter().enumerate() {
        let wanted: Vec<f32> = product(&integers(m * k, i), &integers(k * n, i + 7), m, n, k)
            .iter()
            .enumerate()
            .map(|(j, p)| 2.0 * p + 3.0 + integers(n, 9)[j % n])
            .collect();
        assert_eq!(got.to_vec().unwrap(), wanted);
    }
    let two = Matrices::new(&c, &on_b[..2]).unwrap();
    refused(gemm().run_batched(&of_a, &two, &of_d), "gemm_batched: b has 2 matrices, but a has 3");
    let short = Matrices::new(&c, &[on_b[0], b[1].slice(0, 19), on_b[2]]).unwrap();
    let sentence = "gemm_batched: a matrix of b has 19 elements, but must have at least 20";
    refused(gemm().run_batched(&of_a, &short, &of_d), sentence);
    refused(gemm().batch(0, 0, 0, 0).run_batched(&of_a, &short, &of_d), sentence);
    let sentence = "gemm_batched: c is not supported; C is read from d";
    refused(gemm().c(&d[0]).run_batched(&of_a, &of_b, &of_d), sentence);
    fails_with(gemm().batch(3, 0, 0, 15).run_batched(&of_a, &of_b, &of_d), "stride");
    let other = context();
    refused(Matrices::new(&other, &on_a), "Matrices: matrices[0] belongs to another context");
    c.gemm_grouped::<F16, f32>().run(&OutputOptions::default()).unwrap(); // no products
}

#[test]
fn every_kernel_runs_by_name() {
    let c = context();
    let (a, b) = (up(&c, 256, 1), up(&c, 256, 2));
    let wanted = product(&integers(256, 1), &integers(256, 2), 16, 16, 16);
    let kernels = c.gemm(16, 16, 16).kernels::<F16, f32>().unwrap();
    let able = kernels.iter().take_while(|info| info.reason.is_none()).count();
    assert!(able > 1 && kernels[able..].iter().all(|info| info.reason.is_some()));
    for info in &kernels[..able] {
        let (d, space) =
            (c.alloc::<f32>(256).unwrap(), c.alloc::<u8>(info.workspace_bytes.max(256)).unwrap());
        c.gemm(16, 16, 16).kernel(&info.name).workspace(&space).run(&a, &b, &d).unwrap();
        assert_eq!(d.to_vec().unwrap(), wanted, "{}", info.name);
    }
    let plan = c.gemm(16, 16, 16).get_plan::<F16, f32>(usize::MAX).unwrap();
    for name in [&kernels[0].name, &kernels[able - 1].name] {
        let text = c.gemm(16, 16, 16).kernel(name).explain::<F16, f32>().unwrap();
        assert!(text.lines().any(|line| line.starts_with("kernel ") && line.ends_with(name)));
    }
    let space = c.alloc::<u8>(plan.workspace_bytes.max(256)).unwrap();
    let d = c.alloc::<f32>(256).unwrap();
    c.gemm(16, 16, 16).plan(&plan).workspace(&space).run(&a, &b, &d).unwrap();
    assert_eq!(d.to_vec().unwrap(), wanted);
    c.measure_kernels(2).unwrap();
    c.gemm(16, 16, 16).run(&a, &b, &d).unwrap();
    assert_eq!(d.to_vec().unwrap(), wanted);
    assert!(tuning_text().unwrap().starts_with("fastest "));
}

#[test]
fn scaler_records_its_history_and_clip_factor() {
    let c = context();
    let mut config = ScalerConfig::new(ScalerPolicy::Backoff);
    (config.init_scale, config.growth_interval, config.history_length) = (8.0, 1, 2);
    let scaler = Scaler::new(&c, &config).unwrap();
    let grads = c.upload(&[24.0f32, 32.0]).unwrap();
    let list = list(&c, &grads);
    let (norm, factor) = (c.alloc::<f32>(1).unwrap(), c.alloc::<f32>(1).unwrap());
    list.l2norm(Some(&norm.view()), None, STREAM).unwrap(); // 40, unscaled 5
    scaler.clip_factor(&norm.view(), 2.5, &factor.view(), STREAM).unwrap();
    assert!((factor.to_vec().unwrap()[0] - 0.0625).abs() < 1e-6);
    scaler.clip_factor(&norm.view(), 10.0, &factor.view(), STREAM).unwrap();
    assert_eq!(factor.to_vec().unwrap(), [0.125]);

    list.unscale(&list, &scaler.inv_scale(), Some(&scaler.found_inf()), STREAM).unwrap();
    assert_eq!(grads.to_vec().unwrap(), [3.0, 4.0]);
    scaler.update(None, STREAM).unwrap();
    grads.copy_from(&[f32::INFINITY, 0.0]).unwrap();
    list.unscale(&list, &scaler.inv_scale(), Some(&scaler.found_inf()), STREAM).unwrap();
    scaler.update(None, STREAM).unwrap();
    scaler.update(None, STREAM).unwrap();
    assert_eq!(scaler.history(9, STREAM).unwrap(), [(16.0, 1), (8.0, 0)]);
    assert_eq!(scaler.history(1, STREAM).unwrap(), [(8.0, 0)]);
    assert!(scaler.history(0, STREAM).unwrap().is_empty());
    norm.copy_from(&[f32::NAN]).unwrap();
    scaler.update(Some(&norm.view()), STREAM).unwrap();
    assert_eq!(scaler.history(1, STREAM).unwrap()[0].1, 2, "the largest gradient is NaN");
    let none = c.alloc::<f32>(0).unwrap();
    too_short(
        scaler.clip_factor(&norm.view(), 1.0, &none.view(), STREAM),
        "clip_factor: factor",
        [0, 1],
    );
}

#[test]
fn optimizer_returns_rates_and_regularization() {
    let c = context();
    let (w, v) = (c.upload(&[1.0f32, -2.0]).unwrap(), c.upload(&[4.0f32]).unwrap());
    let (g, h) = (c.alloc::<f32>(2).unwrap(), c.alloc::<f32>(1).unwrap());
    let master = TensorList::new(&c, &[Tensor::new(&w), Tensor::new(&v)]).unwrap();
    let grads = TensorList::new(&c, &[Tensor::new(&g), Tensor::new(&h)]).unwrap();
    let (kind, factors) = (OptimizerKind::Sgd, c.upload(&[3.0f32, 0.25]).unwrap());
    let group = |lr, l1, l2| ParamGroup { l1, l2, beta1: 0.0, ..ParamGroup::new(kind, lr) };
    let sgd = Optimizer::builder(&c, kind, &grads, &master)
        .group(group(0.5, 2.0, 0.0))
        .group(group(0.25, 0.0, 0.5))
        .tensor_group(&[0, 1])
        .decay_multipliers(&factors)
        .build()
        .unwrap();
    let loss = c.alloc::<f32>(1).unwrap();
    sgd.regularization(&loss.view(), STREAM).unwrap();
    assert_eq!(loss.to_vec().unwrap(), [3.0 * 2.0 * 3.0 + 0.25 * 0.5 * 16.0]);
    let rates = c.alloc::<f32>(2).unwrap();
    sgd.scale_step(None, &StepOptions::default(), STREAM).unwrap();
    c.cast(&sgd.lr(), &rates, STREAM).unwrap();
    assert_eq!(rates.to_vec().unwrap(), [0.5, 0.25]);

    let copy = c.alloc::<F16>(3).unwrap();
    let (one, two) = (copy.slice(0, 2), copy.slice(2, 1));
    let model = TensorList::new(&c, &[Tensor::new(&one), Tensor::new(&two)]).unwrap();
    let options = ModelOptions {
        flags: OptimizerFlags::STOCHASTIC_ROUNDING,
        t: Some(sgd.step_counter()),
        ..Default::default()
    };
    master.round_to(&model, None, &options, STREAM).unwrap();
}
