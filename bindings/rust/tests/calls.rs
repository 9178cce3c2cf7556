//! Calls on arrays.  Products of integers are exact.

mod common;

use common::{context, fails_with, integers, list, plain_sgd, product, refused, target, to_f16};
use mpcore::*;

#[test]
fn library_and_header_have_one_version() {
    assert_eq!(version(), sys::MP_VERSION);
    assert!(build_info().starts_with("mpcore "));
    let info = context().info().unwrap();
    assert_eq!(info.target, Some(target()));
    assert!(!info.name.is_empty());
    let device = if target() == Target::Host { Device::Host } else { Device::Current };
    assert_eq!(Context::with_sm_limit(device, 1).unwrap().info().unwrap().num_sms, 1);
}

#[test]
fn names_of_single_flags_have_no_prefix() {
    assert_eq!(PoolFlags::CEIL.bits(), sys::MP_POOL_FLAG_CEIL);
    assert_eq!(LossFlags::IGNORE_TARGET.bits(), sys::MP_LOSS_FLAG_IGNORE_TARGET);
    assert_eq!(SoftmaxFlags::LOG.bits(), sys::MP_SOFTMAX_FLAG_LOG);
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
    let (small, right) = (c.alloc::<F16>(15).unwrap(), c.alloc::<F16>(16).unwrap());
    let aux = c.alloc::<f32>(16).unwrap();
    let sentence = "gemm: aux must have the type of the result";
    refused(c.gemm(4, 4, 4).aux(&aux).run(&right, &right, &right), sentence);
    // Three batches of 4 elements and a last one of 2: 14.
    let thirteen = c.alloc::<F16>(13).unwrap();
    let batch = || c.gemm(1, 2, 4).batch(4, 4, 0, 4);
    batch().run(&right, &right, &small).unwrap();
    let sentence = "gemm: d has 13 elements, but must have at least 14";
    refused(batch().run(&right, &right, &thirteen), sentence);
}

#[test]
fn errors_of_the_library_name_the_argument() {
    let c = context();
    let (x, d) = (c.alloc::<F16>(16).unwrap(), c.alloc::<F16>(16).unwrap());
    let error = c.gemm(4, 4, 4).kernel("none_such").run(&x, &x, &d).unwrap_err();
    assert_eq!(error.status(), Some(Status::ErrorNotFound));
    assert!(error.to_string().contains("none_such"), "{error}");
    fails_with(c.gemm(4, 4, 4).ld(3, 4, 4).run(&x, &x, &d), "ld_a = 3");
    let mut config = ScalerConfig::new(ScalerPolicy::Backoff);
    config.growth_factor = 0.5;
    fails_with(Scaler::new(&c, &config), "growth_factor");
}

#[test]
fn struct_size_of_the_caller_is_replaced() {
    let c = context();
    let mut config = ScalerConfig::preset(ScalerPreset::Torch);
    config.struct_size = 1 << 20;
    Scaler::new(&c, &config).unwrap();
    let group = ParamGroup { struct_size: 1 << 20, ..plain_sgd(1.0) };
    let (w, g) = (c.alloc::<f32>(1).unwrap(), c.alloc::<f32>(1).unwrap());
    let (master, grads) = (list(&c, &w), list(&c, &g));
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
    refused(x.copy_to(&mut [0.0; 2]), "copy_to: data has 2 elements, but the buffer has 3");
    refused(x.copy_from(&[0.0; 4]), "copy_from: data has 4 elements, but the buffer has 3");
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| x.slice(2, 2))).is_err());
}
