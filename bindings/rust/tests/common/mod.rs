//! Helpers of the tests.

use mpcore::*;

/// Target under test, from MP_TEST_DEVICE: host (default) or cuda.
#[allow(dead_code)] // some test programs do not use it
pub fn target() -> Target {
    match std::env::var("MP_TEST_DEVICE").as_deref() {
        Err(_) | Ok("host") => Target::Host,
        Ok("cuda") => Target::Cuda,
        Ok(other) => panic!("MP_TEST_DEVICE = {other} is neither host nor cuda"),
    }
}

#[allow(dead_code)] // some test programs do not use it
pub fn context() -> Context {
    let device = if target() == Target::Host { Device::Host } else { Device::Current };
    Context::new(device).unwrap()
}

/// Small integers, whose sums of products are exact.
#[allow(dead_code)] // some test programs do not use it
pub fn integers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + seed * 5) % 9) as f32 - 4.0).collect()
}

#[allow(dead_code)] // some test programs do not use it
pub fn to_f16(values: &[f32]) -> Vec<F16> {
    values.iter().map(|&x| F16::from_f32(x)).collect()
}

#[allow(dead_code)] // some test programs do not use it
pub fn product(a: &[f32], b: &[f32], m: usize, n: usize, k: usize) -> Vec<f32> {
    let at = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
    (0..m * n).map(|i| at(i / n, i % n)).collect()
}

#[allow(dead_code)] // some test programs do not use it
pub fn refused<T>(result: Result<T>, message: &str) {
    let error = result.err().unwrap();
    assert_eq!(error.to_string(), message);
    assert_eq!(error.status(), Some(Status::ErrorInvalidArgument));
}
