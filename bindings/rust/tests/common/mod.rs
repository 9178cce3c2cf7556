//! Helpers of the tests.

#![allow(dead_code)] // no test program uses all

use mpcore::*;

/// Target under test, from MP_TEST_DEVICE: host (default) or cuda.
pub fn target() -> Target {
    match std::env::var("MP_TEST_DEVICE").as_deref() {
        Err(_) | Ok("host") => Target::Host,
        Ok("cuda") => Target::Cuda,
        Ok(other) => panic!("MP_TEST_DEVICE = {other} is neither host nor cuda"),
    }
}

pub fn context() -> Context {
    let device = if target() == Target::Host { Device::Host } else { Device::Current };
    Context::new(device).unwrap()
}

/// Small integers, whose sums of products are exact.
pub fn integers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + seed * 5) % 9) as f32 - 4.0).collect()
}

pub fn to_f16(values: &[f32]) -> Vec<F16> {
    values.iter().map(|&x| F16::from_f32(x)).collect()
}

pub fn product(a: &[f32], b: &[f32], m: usize, n: usize, k: usize) -> Vec<f32> {
    let at = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
    (0..m * n).map(|i| at(i / n, i % n)).collect()
}

/// A list of one tensor.
pub fn list<E: Float>(c: &Context, data: &impl Data<Element = E>) -> TensorList {
    TensorList::new(c, &[Tensor::new(data)]).unwrap()
}

/// Hyperparameters of gradient descent without momentum.
pub fn plain_sgd(lr: f32) -> ParamGroup {
    ParamGroup { beta1: 0.0, ..ParamGroup::new(OptimizerKind::Sgd, lr) }
}

pub fn refused<T>(result: Result<T>, message: &str) {
    let error = result.err().unwrap();
    assert_eq!(error.to_string(), message);
    assert_eq!(error.status(), Some(Status::ErrorInvalidArgument));
}

pub fn fails_with<T>(result: Result<T>, part: &str) {
    let error = result.err().unwrap().to_string();
    assert!(error.contains(part), "{error}");
}

pub fn too_short<T>(result: Result<T>, argument: &str, [len, needed]: [usize; 2]) {
    refused(result, &format!("{argument} has {len} elements, but must have at least {needed}"));
}
