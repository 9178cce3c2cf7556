//! Tensor lists, the scaler, optimizers and the step.

mod common;

use common::{context, list, plain_sgd, refused, too_short};
use mpcore::*;

const STREAM: Stream = Stream::DEFAULT;
const STREAM_OF_C: sys::mp_stream_t = std::ptr::null_mut();

#[test]
fn training_step_updates_weights() {
    let c = context();
    let (w, g) = (c.upload(&[1.0f32, 2.0]).unwrap(), c.upload(&[8.0f32, -16.0]).unwrap());
    let copy = c.alloc::<F16>(2).unwrap();
    let (master, grads) = (list(&c, &w), list(&c, &g));
    let model = list(&c, &copy);
    let sgd = Optimizer::builder(&c, OptimizerKind::Sgd, &grads, &master)
        .model(&model)
        .group(plain_sgd(0.5))
        .build()
        .unwrap();
    let unsupported = Optimizer::builder(&c, OptimizerKind::Sgd, &grads, &master)
        .group(plain_sgd(0.5))
        .flags(OptimizerFlags::DECOUPLED_DECAY);
    let sentence = "mp_optimizer_create: flags = 0x2: MP_OPT_FLAG_DECOUPLED_DECAY is not \
        supported by MP_OPT_SGD";
    refused(unsupported.build(), sentence);
    let mut config = ScalerConfig::new(ScalerPolicy::Backoff);
    config.init_scale = 8.0;
    config.growth_interval = 1;
    let scaler = Scaler::new(&c, &config).unwrap();

    let (norm, skipped) = (c.alloc::<f32>(1).unwrap(), c.alloc::<f32>(1).unwrap());
    let options = StepOptions {
        grad_norm: Some(norm.view()),
        found_inf: Some(skipped.view()),
        ..Default::default()
    };
    sgd.scale_step(Some(&scaler), &options, STREAM).unwrap();
    assert_eq!(w.to_vec().unwrap(), [0.5, 3.0]); // g = (1, -2)
    assert_eq!(copy.to_vec().unwrap(), [F16::from_f32(0.5), F16::from_f32(3.0)]);
    assert_eq!(norm.to_vec().unwrap(), [5.0f32.sqrt()]);
    assert_eq!(skipped.to_vec().unwrap(), [0.0]);
    assert_eq!(scaler.state(STREAM).unwrap().scale, 16.0);

    g.copy_from(&[f32::NAN, 0.0]).unwrap();
    sgd.scale_step(Some(&scaler), &options, STREAM).unwrap();
    assert_eq!(w.to_vec().unwrap(), [0.5, 3.0]);
    assert_eq!(skipped.to_vec().unwrap(), [1.0]);
    let state = scaler.state(STREAM).unwrap();
    assert_eq!((state.scale, state.steps, state.skipped), (8.0, 2, 1));
    assert_eq!(sgd.get_step(STREAM).unwrap(), 1);

    let again = Scaler::new(&c, &config).unwrap();
    again.set_state(&state, STREAM).unwrap();
    assert_eq!(again.state(STREAM).unwrap().skipped, 1);

    let nothing = c.alloc::<f32>(0).unwrap();
    let options = StepOptions { tensor_norms: Some(nothing.view()), ..Default::default() };
    too_short(sgd.scale_step(None, &options, STREAM), "scale_step: tensor_norms", [0, 1]);
}

#[test]
fn reductions() {
    let c = context();
    let (x, empty, y) = (
        c.upload(&[3.0f32, -4.0]).unwrap(),
        c.alloc::<f32>(0).unwrap(),
        c.upload(&[12.0f32]).unwrap(),
    );
    let bad = c.upload(&[f32::INFINITY, 0.0]).unwrap();
    let tensors = [Tensor::new(&x), Tensor::new(&empty), Tensor::new(&y)];
    let mut list = TensorList::new(&c, &tensors).unwrap();
    let (one, each) = (c.alloc::<f32>(1).unwrap(), c.alloc::<f32>(3).unwrap());
    list.l2norm(Some(&one.view()), Some(&each.view()), STREAM).unwrap();
    assert_eq!(one.to_vec().unwrap(), [13.0]);
    assert_eq!(each.to_vec().unwrap(), [5.0, 0.0, 12.0]);
    list.amax(Some(&one.view()), None, STREAM).unwrap();
    assert_eq!(one.to_vec().unwrap(), [12.0]);
    assert!(list.amax(None, Some(&one.view()), STREAM).is_err());

    let (norm, amax, norms) = (one.view(), x.view(), each.view());
    let outputs =
        StatsOutputs { norm: Some(&norm), tensor_amax: Some(&norms), ..Default::default() };
    list.stats(&outputs, STREAM).unwrap();
    assert_eq!(one.to_vec().unwrap(), [13.0]);
    assert_eq!(each.to_vec().unwrap(), [4.0, 0.0, 12.0]);
    let short = StatsOutputs { tensor_norm: Some(&amax), ..Default::default() };
    too_short(list.stats(&short, STREAM), "stats: tensor_norm", [2, 3]);
    assert!(list.stats(&StatsOutputs::default(), STREAM).is_err());

    list.set_data(&[Tensor::new(&bad), Tensor::new(&empty), Tensor::new(&y)], STREAM).unwrap();
    one.clear(STREAM).unwrap();
    list.check_nonfinite(&one, STREAM).unwrap();
    assert_eq!(one.to_vec().unwrap(), [1.0]);
    assert!(list.set_data(&tensors[..2], STREAM).is_err());
}

#[test]
fn masters_become_16_bit_copies() {
    let c = context();
    let (w, copy) = (c.upload(&[1.0f32, 70000.0]).unwrap(), c.alloc::<F16>(2).unwrap());
    let skip = c.upload(&[1.0f32]).unwrap();
    let (master, model) = (list(&c, &w), list(&c, &copy));
    let mut options = ModelOptions::default();
    master.round_to(&model, Some(&skip.view()), &options, STREAM).unwrap();
    assert_eq!(copy.to_vec().unwrap(), [F16(0), F16(0)]);
    master.round_to(&model, None, &options, STREAM).unwrap();
    assert_eq!(copy.to_vec().unwrap(), [F16(0x3c00), F16(0x7bff)]);
    options.flags = OptimizerFlags::MODEL_OVERFLOW;
    master.round_to(&model, None, &options, STREAM).unwrap();
    assert_eq!(copy.to_vec().unwrap(), [F16(0x3c00), F16(0x7c00)]);
    let (overflows, t) = (c.alloc::<i64>(1).unwrap(), c.alloc::<i64>(1).unwrap());
    options.flags = OptimizerFlags::STOCHASTIC_ROUNDING;
    options.t = Some(t.view());
    options.overflows = Some(overflows.view());
    master.round_to(&model, None, &options, STREAM).unwrap();
    assert_eq!(overflows.to_vec().unwrap(), [1]);
}

/// An optimizer rounds as `round_to` does with the same seed.
#[test]
fn rounding_seed_selects_the_roundings() {
    let c = context();
    let flags = OptimizerFlags::STOCHASTIC_ROUNDING;
    let copies = |rounding_seed| {
        let (w, g) = (c.upload(&[1.0004f32; 64]).unwrap(), c.alloc::<f32>(64).unwrap());
        let h = c.alloc::<F16>(64).unwrap();
        let (master, grads) = (list(&c, &w), list(&c, &g));
        let model = list(&c, &h);
        let sgd = Optimizer::builder(&c, OptimizerKind::Sgd, &grads, &master).model(&model);
        let sgd = sgd.group(plain_sgd(0.5)).flags(flags).rounding_seed(rounding_seed);
        let sgd = sgd.build().unwrap();
        sgd.write_model(STREAM).unwrap();
        let rounded = h.to_vec().unwrap();
        h.clear(STREAM).unwrap();
        let t = Some(sgd.step_counter());
        let options = ModelOptions { flags, rounding_seed, t, ..Default::default() };
        master.round_to(&model, None, &options, STREAM).unwrap();
        assert_eq!(h.to_vec().unwrap(), rounded);
        rounded
    };
    assert_ne!(copies(5), copies(1 << 40 | 5));
}

#[test]
fn inspect_reports_lists_and_tensors() {
    let c = context();
    let (x, y) =
        (c.upload(&[1.0f32, 0.0]).unwrap(), c.upload(&[f32::INFINITY, -8.0, f32::NAN]).unwrap());
    let list = TensorList::new(&c, &[Tensor::new(&x), Tensor::new(&y)]).unwrap();
    let (whole, each) = (c.alloc(1).unwrap(), c.alloc(2).unwrap());
    list.inspect(Some(&whole.view()), Some(&each.view()), STREAM).unwrap();
    let report: TensorReport = whole.to_vec().unwrap()[0];
    assert_eq!((report.numel, report.num_nan, report.num_inf, report.num_zero), (5, 1, 1, 1));
    assert_eq!((report.bad_tensor, report.bad_element), (1, 0));
    assert_eq!(each.to_vec().unwrap()[1].numel, 3);
    too_short(list.inspect(None, Some(&whole.view()), STREAM), "inspect: tensor_reports", [1, 2]);
}

/// All-reduce of two ranks with equal data: doubles each element.
/// @param user  the context
unsafe extern "C" fn twice(
    send: *const std::ffi::c_void, recv: *mut std::ffi::c_void, count: usize,
    _dtype: sys::mp_dtype_t, op: sys::mp_reduce_op_t, _stream: sys::mp_stream_t,
    user: *mut std::ffi::c_void,
) -> i32 {
    let factor = if op == sys::MP_REDUCE_SUM { 2.0 } else { 1.0 };
    let copy = |to, from| match sys::mp_memcpy(user.cast(), to, from, 4 * count, STREAM_OF_C) {
        sys::MP_SUCCESS => sys::mp_stream_sync(user.cast(), STREAM_OF_C),
        failed => failed,
    };
    let mut numbers = vec![0.0f32; count];
    let down = copy(numbers.as_mut_ptr().cast(), send);
    numbers.iter_mut().for_each(|x| *x *= factor);
    let up = copy(recv, numbers.as_ptr().cast());
    (down | up) as i32
}

#[test]
fn all_reduce_sums_and_step_averages() {
    let c = context();
    let mut table = sys::mp_comm_default();
    table.world_size = 2;
    table.all_reduce = Some(twice);
    table.user = c.as_raw().cast();
    // SAFETY: all lists here are of f32, and the context outlives the call.
    let comm = unsafe { Comm::from_raw(table) };
    let (w, g) = (c.upload(&[1.0f32, 2.0]).unwrap(), c.upload(&[8.0f32, -16.0]).unwrap());
    let (master, grads) = (list(&c, &w), list(&c, &g));
    grads.all_reduce(&comm, 1.0, 0.25, STREAM).unwrap();
    assert_eq!(g.to_vec().unwrap(), [4.0, -8.0]);
    let sgd = Optimizer::builder(&c, OptimizerKind::Sgd, &grads, &master).group(plain_sgd(0.5));
    let options = StepOptions { comm: Some(&comm), ..Default::default() };
    let sgd = sgd.build().unwrap();
    sgd.scale_step(None, &options, STREAM).unwrap();
    assert_eq!(w.to_vec().unwrap(), [-1.0, 6.0]);
    let own = sgd.scaler();
    drop(sgd); // the scaler keeps it
    c.sync(STREAM).unwrap();
    assert_eq!(own.query(1).unwrap(), Some(StepOutcome::Taken));
    assert_eq!(own.state(STREAM).unwrap().skipped, 0);
    assert_eq!((Comm::single().rank(), Comm::single().world_size()), (0, 1));
}

#[test]
fn accumulation_and_queries() {
    let c = context();
    let mut config = ScalerConfig::new(ScalerPolicy::Backoff);
    config.init_scale = 4.0;
    let scaler = Scaler::new(&c, &config).unwrap();
    let (g, s) = (c.upload(&[8.0f32, -4.0]).unwrap(), c.upload(&[9.0f32, 9.0]).unwrap());
    let (grads, sums) = (list(&c, &g), list(&c, &s));
    scaler.scale_loss(&g, &s, STREAM).unwrap();
    assert_eq!(s.to_vec().unwrap(), [32.0, -16.0]);
    scaler.accumulate(&grads, &sums, 0.5, AccumulateFlags::FIRST, STREAM).unwrap();
    scaler.accumulate(&grads, &sums, 0.5, AccumulateFlags::default(), STREAM).unwrap();
    assert_eq!(s.to_vec().unwrap(), [2.0, -1.0]);
    g.copy_from(&[f32::NAN, 0.0]).unwrap();
    scaler.grads_to_fp32(&grads, &sums, STREAM).unwrap();
    c.sync(STREAM).unwrap();
    assert_eq!(scaler.query(1).unwrap(), Some(StepOutcome::Overflow));
    scaler.update(None, STREAM).unwrap();
    assert_eq!(scaler.query(2).unwrap(), Some(StepOutcome::Pending));
    assert!(scaler.query(0).is_err());
}

/// Training of one fp16 weight continues from any checkpoint bit for bit, clamped copies included.
#[test]
fn checkpoint_restores_masters_moments_steps_copies_and_scaler() {
    let c = context();
    let new = || {
        let w = c.upload(&[70000.0f32, 1.0, -3.0]).unwrap();
        let (g, h) = (c.upload(&[1.0f32, -2.0, 0.5]).unwrap(), c.alloc::<F16>(3).unwrap());
        let (master, grads) = (list(&c, &w), list(&c, &g));
        let model = list(&c, &h);
        let adamw = Optimizer::named(&c, "AdamW", 0.125, &grads, &master).unwrap();
        let adamw = adamw.model(&model).change(|group| group.beta2 = 0.75).build().unwrap();
        let scaler = Scaler::new(&c, &ScalerConfig::new(ScalerPolicy::Backoff)).unwrap();
        scaler
            .set_state(&ScalerState { scale: 4.0, ..scaler.state(STREAM).unwrap() }, STREAM)
            .unwrap();
        (adamw, scaler, master, h)
    };
    let step = |adamw: &Optimizer, scaler: &Scaler| {
        adamw.scale_step(Some(scaler), &StepOptions::default(), STREAM).unwrap();
    };
    let (adamw, scaler, master, copy) = new();
    step(&adamw, &scaler);
    let checkpoint = adamw.save(Some(&scaler), STREAM).unwrap();
    let copies = copy.to_vec().unwrap();
    assert_eq!(copies[0], F16(0x7bff), "clamped, not infinite");
    step(&adamw, &scaler);

    let (other, other_scaler, other_master, other_copy) = new();
    other.restore(Some(&other_scaler), &checkpoint, STREAM).unwrap();
    assert_eq!(other_copy.to_vec().unwrap(), copies);
    assert_eq!(other.get_step(STREAM).unwrap(), 1);
    step(&other, &other_scaler);
    assert_eq!(other_master.to_vec::<f32>(0).unwrap(), master.to_vec::<f32>(0).unwrap());
    assert_eq!(other_copy.to_vec().unwrap(), copy.to_vec().unwrap());
    for (a, b) in [(adamw.m(), other.m()), (adamw.v(), other.v())] {
        let [a, b] = [a, b].map(|list| list.unwrap().to_vec::<f32>(0).unwrap());
        assert!(a == b && a.iter().all(|&x| x != 0.0));
    }
    let [a, b] = [scaler, other_scaler].map(|s| s.state(STREAM).unwrap());
    assert_eq!((a.scale, a.steps), (b.scale, b.steps));

    let half = &checkpoint[..checkpoint.len() / 2];
    assert!(other.restore(None, &checkpoint, STREAM).is_err());
    assert!(other.restore(None, half, STREAM).is_err());
    other_copy.clear(STREAM).unwrap();
    other.write_model(STREAM).unwrap();
    assert_eq!(other_copy.to_vec().unwrap(), copy.to_vec().unwrap());
}

#[test]
fn moments_are_allocated_as_required_by_the_groups() {
    let c = context();
    let list = || list(&c, &c.upload(&[1.0f32; 2]).unwrap());
    let (grads, master) = (list(), list());
    let named = |name| Optimizer::named(&c, name, 0.5, &grads, &master);
    let sgd = named("sgd").unwrap().change(|group| group.beta1 = 0.0).build().unwrap();
    assert!(sgd.m().is_none() && sgd.v().is_none());
    let novograd = named("novograd").unwrap().build().unwrap();
    assert_eq!(novograd.m().unwrap().to_vec::<f32>(0).unwrap(), [0.0; 2]);
    assert_eq!(novograd.v().unwrap().to_vec::<f32>(0).unwrap(), [0.0; 1]);
    refused(master.to_vec::<F16>(0), "to_vec: tensor 0 has type Fp32, not Fp16");
    refused(master.to_vec::<f32>(1), "to_vec: index = 1 is outside [0, 1)");
    let absent = TensorList::new(&c, &[Tensor::absent(1)]).unwrap();
    refused(absent.to_vec::<F16>(0), "to_vec: tensor 0 has no data");
    let unknown = named("adan").err().unwrap();
    assert_eq!(unknown.status(), Some(Status::ErrorNotFound));
}
