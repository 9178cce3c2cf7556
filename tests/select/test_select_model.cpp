// Predicted times: each term of the formula separately, with constants that simplify the
// arithmetic, and plans that result from the built-in constants.
#include <cmath>

#include "select_cases.h"

using namespace mptest;

namespace {

/// Returns a table in which nothing has a cost on any device.
mp::GemmTuning free_of_charge() {
  return {};
}

/// Returns the predicted time of one variant.
double us(const char *name, const mp::GemmProblem &p, const mp::GemmTuning &tuning,
          const mp::Device &device, bool aligned = kAligned) {
  return plan_named(name, p, device, tuning, aligned).predicted_us;
}

struct Fixture {
  mp::GemmTuning tuning = free_of_charge();
  mp::ClassTuning &a100_class = tuning.of(mp::DeviceClass::sm_80);

  double on_a100(const char *name, const mp::GemmProblem &p, bool aligned = kAligned) const {
    return us(name, p, tuning, a100(), aligned);
  }
  mp::KernelTuning &of(const char *name) { return a100_class.of(kernel_named(name)); }
};

}  // namespace

TEST_CASE("model: a device's class follows from its architecture, the CPU has its own") {
  const auto class_name = [](const mp::Device &device) {
    return std::string(name_of(class_of(device)));
  };
  CHECK(class_name(t4()) == "sm_75");
  CHECK(class_name(a100()) == "sm_80");
  CHECK(class_name(cuda_device(89, 128, 99 << 10)) == "sm_80");
  CHECK(class_name(h200()) == "sm_90");
  CHECK(class_name(sm_120()) == "sm_90");
  CHECK(class_name(host_device()) == "host");
}

TEST_CASE("model: partial tiles and partial k steps cost full ones") {
  Fixture f;
  f.of("wmma_256x128x32_s3") = {.tile_us = 2, .k_us = 10};
  const auto us_of = [&](int64_t m, int64_t n, int64_t k) {
    return f.on_a100("wmma_256x128x32_s3", with_batch(problem(m, n, k), 108));
  };
  CHECK(us_of(256, 128, 512) == Approx(7));
  CHECK(us_of(1, 1, 512) == Approx(7));
  CHECK(us_of(257, 128, 512) == Approx(14));
  CHECK(us_of(256, 129, 512) == Approx(14));
  CHECK(us_of(256, 128, 513) == Approx(2 + 10 * 544. / 1024));
  CHECK(us_of(256, 128, 0) == Approx(2));
}

TEST_CASE("model: blocks share an SM, and a single block leaves it partly idle") {
  Fixture f;
  f.of("wmma_64x64x32_s4") = {.tile_us = 1, .k_us = 0};  // 4 share an SM; a single one takes 2
  const auto us_of_tiles = [&](int64_t tiles) {
    return f.on_a100("wmma_64x64x32_s4", problem(64 * tiles, 64, 32));
  };
  CHECK(us_of_tiles(1) == Approx(2));
  CHECK(us_of_tiles(2 * 108) == Approx(2));
  CHECK(us_of_tiles(3 * 108) == Approx(3));
  CHECK(us_of_tiles(4 * 108) == Approx(4));
  CHECK(us_of_tiles(4 * 108 + 1) == Approx(6));
  CHECK(us_of_tiles(6 * 108) == Approx(6));

  // A worker of the simulator runs one block at a time.
  f.tuning.of(mp::DeviceClass::host).of(kernel_named("wmma_64x64x32_s4")) = {.tile_us = 1,
                                                                             .k_us = 0};
  CHECK(us("wmma_64x64x32_s4", problem(64, 64, 32), f.tuning, host_device()) == Approx(1));
  CHECK(us("wmma_64x64x32_s4", problem(3 * 64, 64, 32), f.tuning, host_device()) == Approx(2));
}

TEST_CASE("model: every launch is charged, two for split-k") {
  Fixture f;
  f.a100_class.launch_us = 3;
  CHECK(f.on_a100("simt_64x64x16", problem(64, 64, 4096)) == Approx(3));
  CHECK(f.on_a100("wmma_64x64x32_s4_k4", problem(64, 64, 4096)) == Approx(6));
}

TEST_CASE("model: split-k shortens tiles and charges partial sums twice") {
  Fixture f;
  f.of("wmma_256x128x32_s3") = {.tile_us = 2, .k_us = 10};
  const mp::GemmProblem p = problem(256 * 27, 128, 4096);
  CHECK(f.on_a100("wmma_256x128x32_s3", p) == Approx(2 + 40));
  CHECK(f.on_a100("wmma_256x128x32_s3_k4", p) == Approx(2 + 10));
  CHECK(f.on_a100("wmma_256x128x32_s3_k6", p) == Approx(2 * (2 + 10 * 704. / 1024)));
  f.a100_class.partial_us_per_mb = 100;
  const double partial_mb = 4 * 4e-6 * static_cast<double>(p.out.m * p.out.n);
  CHECK(f.on_a100("wmma_256x128x32_s3", p) == Approx(42));
  CHECK(f.on_a100("wmma_256x128x32_s3_k4", p) == Approx(12 + 2 * 100 * partial_mb));
}

TEST_CASE("model: misaligned rows slow down wmma kernels, not simt kernels") {
  Fixture f;
  f.a100_class.scalar_load_us = 100;
  f.of("wmma_256x128x32_s3") = {.tile_us = 2, .k_us = 10};
  f.of("simt_128x128x16") = {.tile_us = 0, .k_us = 10};
  const mp::GemmProblem p = problem(256, 128, 1024);
  CHECK(f.on_a100("wmma_256x128x32_s3", p) == Approx(2 + 10));
  CHECK(f.on_a100("wmma_256x128x32_s3", p, !kAligned) == Approx(2 + 10 + 100 * 384. / 1024));
  CHECK(f.on_a100("simt_128x128x16", p, !kAligned) == f.on_a100("simt_128x128x16", p));
  // One operand, limited to its actual size.
  mp::GemmProblem q = p;
  q.b.ld += 4;
  CHECK(f.on_a100("wmma_256x128x32_s3", q) == Approx(2 + 10 + 100 * 128. / 1024));
  q.a.ld += 4;
  CHECK(f.on_a100("wmma_256x128x32_s3", q) == Approx(2 + 10 + 100 * 384. / 1024));
  q = problem(256, 3, 1024);
  q.b.ld = 1028;
  CHECK(f.on_a100("wmma_256x128x32_s3", q) == Approx(2 + 10 + 100 * 8. / 1024));
}

TEST_CASE("model: the time is at least that of reading and writing every matrix once") {
  Fixture f;
  f.a100_class.dram_us_per_mb = 1;
  const char *const name = "wmma_256x128x32_s3";
  const mp::GemmProblem p = problem(1000, 2000, 3000);
  CHECK(f.on_a100(name, p) == Approx(6 + 12 + 4));
  mp::GemmProblem q = p;
  q.out.dtype = MP_FP32;
  q.out.beta = 1;
  CHECK(f.on_a100(name, q) == Approx(6 + 12 + 2 * 8));
  q = with_batch(p, 5);
  CHECK(f.on_a100(name, q) == Approx(5 * 22));
  q.b.stride = 0;  // shared by all items
  CHECK(f.on_a100(name, q) == Approx(5 * (6 + 4) + 12));
  CHECK(f.on_a100(name, with_pointers(p, 5)) == Approx(5 * 22));
  f.of(name).k_us = 100;  // one wave of 4 x 16 tiles
  CHECK(f.on_a100(name, p) == Approx(100 * 3008. / 1024));
}

TEST_CASE("model: the time is at least that of the L2 reads of all tiles") {
  Fixture f;
  f.a100_class.l2_us_per_mb = 1;
  // 8 rows of 4 tiles: A is read 4 times, B 8 times.
  const mp::GemmProblem p = problem(2048, 512, 1000);
  CHECK(f.on_a100("wmma_256x128x32_s3", p) == Approx(2e-6 * 1000 * (4 * 2048 + 8 * 512)));
  CHECK(f.on_a100("wmma_256x128x32_s3", with_batch(p, 7)) ==
        Approx(7 * 2e-6 * 1000 * (4 * 2048 + 8 * 512)));
}

TEST_CASE("model: copies cost launches and bytes, and make all rows aligned") {
  Fixture f;
  f.a100_class.launch_us = 3;
  f.a100_class.copy_us_per_mb = 1000;
  f.a100_class.scalar_load_us = 100;
  f.of("wmma_256x128x32_s3") = {.tile_us = 2, .k_us = 10};
  mp::GemmProblem p = problem(256, 128, 1024);
  p.b.ld += 4;
  const double a_us = 3 + 1000 * 256 * 1024 * 2e-6, b_us = 3 + 1000 * 128 * 1024 * 2e-6;
  CHECK(f.on_a100("wmma_256x128x32_s3_copied", p) == Approx(3 + 2 + 10 + b_us));
  p.a.ld += 4;
  CHECK(f.on_a100("wmma_256x128x32_s3_copied", p) == Approx(3 + 2 + 10 + a_us + b_us));
  CHECK(f.on_a100("wmma_256x128x32_s3", p) == Approx(3 + 2 + 10 + 100 * 384. / 1024));
}

TEST_CASE("model: the built-in table has constants for every supported kernel") {
  Random random(3);
  for (const mp::Device &device : {t4(), a100(), h200(), sm_120(), host_device()}) {
    const mp::ClassTuning &tuning = mp::builtin_gemm_tuning().of(class_of(device));
    CAPTURE(name_of(class_of(device)));
    CHECK(tuning.launch_us > 0);
    CHECK((tuning.scalar_load_us > 0) == (device.target == MP_TARGET_CUDA));
    for (const mp_dtype_t dtype : {MP_FP16, MP_FP32}) {
      mp::GemmProblem p = problem(4096, 4096, 8192);
      p.dtype_ab = dtype;
      for (const Ranked &choice : ranking(p, device)) {
        CAPTURE(choice.name);
        CHECK(tuning.of(*choice.kernel).k_us > 0);
        CHECK(tuning.of(*choice.kernel).c2 > 0);
      }
    }
  }
}

TEST_CASE("model gemv: time is per element of the matrix, over all SMs, for each padded vector") {
  Fixture f;
  f.of("gemv") = {.tile_us = 10, .k_us = 1};
  constexpr int64_t kK = 1 << 20;
  const auto us_of = [&](int64_t m, int64_t n, int64_t k = 1 << 20) {
    return f.on_a100("gemv", problem(m, n, k));
  };
  CHECK(us_of(1, 10800) == Approx(100 * (10 + 1)));  // 100 rows per SM
  CHECK(us_of(10800, 1) == us_of(1, 10800));
  CHECK(us_of(2, 10800) == Approx(100 * (10 + 4)));
  CHECK(us_of(4, 10800) == us_of(2, 10800));
  CHECK(us_of(5, 10800) == Approx(100 * (10 + 8)));
  CHECK(us_of(16, 10800) == Approx(100 * (10 + 16)));
  // 32 rows are at most two tiles: two SMs.
  CHECK(us_of(1, 32) == Approx(16 * (10 + 1)));
  CHECK(f.on_a100("gemv", with_batch(problem(1, 32, kK), 54)) == Approx(16 * (10 + 1)));
  CHECK(us_of(1, 10800, 0) == 0);
  // A block computes one product, so an SM starts once per product.
  f.of("gemv").start_us = 5;
  CHECK(us_of(1, 10800) == Approx(5 + 100 * (10 + 1)));
  CHECK(f.on_a100("gemv", with_batch(problem(1, 32, kK), 108)) == Approx(5 + 32 * (10 + 1)));
  CHECK(f.on_a100("gemv", with_batch(problem(1, 32, kK), 109)) ==
        Approx(2 * 5 + 109.0 / 108 * 32 * (10 + 1)));
  f.of("gemv").start_us = 0;
  CHECK(f.on_a100("gemv", problem(1, 10800, kK), !kAligned) == us_of(1, 10800));
  f.a100_class.l2_us_per_mb = 1000;
  CHECK(us_of(1, 10800) == Approx(1100));
  f.a100_class.dram_us_per_mb = 1;
  CHECK(us_of(1, 10800) == Approx(2 * 1.048576 * 10801 + 10801e-6 * 2).epsilon(0.01));
}

TEST_CASE("select gemv: supports at most 16 rows or columns of any type and alignment") {
  for (const mp::Device &device : {t4(), a100(), h200(), sm_120(), host_device()}) {
    for (const mp_dtype_t dtype : {MP_FP16, MP_BF16, MP_FP32}) {
      mp::GemmProblem p = problem(16, 1000, 500);
      p.dtype_ab = dtype;
      CHECK(why_not("gemv", p, device, false) == "");
      p = problem(1000, 16, 500);
      p.dtype_ab = dtype;
      CHECK(why_not("gemv", p, device) == "");
      CHECK(plan_named("gemv", with_pointers(p, 3), device).workspace.bytes == 0);
    }
    CHECK(why_not("gemv", problem(17, 17, 500), device) == "requires m or n of at most 16");
    CHECK(why_not("gemv_k2", problem(16, 16, 5000), device) == "unknown");
  }
}

TEST_CASE("select gemv: not selected for thousands of tiny products on the host target") {
  for (const mp_dtype_t dtype : {MP_FP16, MP_FP32}) {
    mp::GemmProblem p = with_batch(problem(8, 8, 8), 2000);
    p.dtype_ab = dtype;
    CHECK(best_name(p, host_device()) != "gemv");
    p = problem(1, 4096, 4096);
    p.dtype_ab = dtype;
    CHECK(best_name(p, host_device()) == "gemv");
  }
}
