// Predicted times of epilogues: the store path of a tile, the costs that an epilogue adds, the
// kernels that overlap it with products, and the resulting plans.
#include "kernels/gemm/wgmma_store.h"
#include "select_cases.h"

using namespace mptest;

namespace {

constexpr const char *kCooperative = "wgmma_128x256x64_s4", *kPingPong = "wgmma_128x128x64_s6";
constexpr double kTile = 128. * 256 / (1 << 20);  // elements of the cooperative tile, in Mi

alignas(16) char memory[64];

mp::GemmProblem with_aux(mp::GemmProblem p, mp_activation_t activation) {
  p.out.epilogue.activation = activation;
  p.out.epilogue.aux = memory;
  p.out.epilogue.ld_aux = p.out.d.ld;
  return p;
}

mp::GemmProblem with_bias(mp::GemmProblem p) {
  p.out.epilogue.bias = memory;
  return p;
}

mp::GemmProblem with_dbias(mp::GemmProblem p) {
  p.out.epilogue.dbias = reinterpret_cast<float *>(memory);
  return p;
}

struct Priced {
  mp::GemmTuning tuning{};
  mp::ClassTuning &sm_90 = tuning.of(mp::DeviceClass::sm_90);

  double us(const char *name, const mp::GemmProblem &p, const mp::Device &device = h200()) const {
    return plan_named(name, p, device, tuning).predicted_us;
  }
};

bool is_ping_pong(const mp::GemmProblem &p) {
  return plan_of(p, h200(), mp::builtin_gemm_tuning(), kAligned, SIZE_MAX).kernel->ping_pong;
}

}  // namespace

TEST_CASE("epilogue: the store path of a tile") {
  using mp::StorePath, mp::wgmma_store_path;
  const mp::GemmProblem p = problem(512, 512, 512);
  CHECK(wgmma_store_path(shape(p).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_pointers(p, 3)).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_bias(p)).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_aux(p, MP_ACT_GELU)).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_ld_of_d(p, 513)).out) == StorePath::staged);
  CHECK(wgmma_store_path(shape(with_fp32_d(p, 0)).out) == StorePath::direct);
  CHECK(wgmma_store_path(shape(with_fp32_d(p, 1)).out) == StorePath::direct);
  CHECK(wgmma_store_path(shape(with_bias(with_fp32_d(p, 0))).out) == StorePath::staged);

  mp::GemmProblem q = p;
  q.out.d.base = memory + 8;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::staged);
  q.out.d.base = memory + 16;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::tma);
  // C or aux requires a tensor map too; there is space for one.
  q = p;
  q.out.beta = 1;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_aux(q, MP_ACT_GELU)).out) == StorePath::staged);
  CHECK(wgmma_store_path(shape(with_pointers(q, 3)).out) == StorePath::staged);
  q.out.c.ld = 513;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::staged);
  q.out.beta = 0;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::tma);
  // Columns of the product that D lacks: their values must not be used.
  q = p;
  q.out.n = 640;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_bias(q)).out) == StorePath::staged);
}

TEST_CASE("epilogue: each store path has its cost per tile") {
  Priced f;
  f.sm_90.tma_store_us = 1;
  f.sm_90.direct_store_us = 10;
  f.sm_90.staged_store_us = 100;
  const mp::GemmProblem p = problem(128 * 2, 256 * 66, 512);  // one tile per SM
  CHECK(f.us(kCooperative, p) == Approx(kTile));
  CHECK(f.us(kCooperative, with_ld_of_d(p, 256 * 66 + 1)) == Approx(100 * kTile));
  CHECK(f.us(kCooperative, with_fp32_d(p, 0)) == Approx(10 * kTile));
  CHECK(f.us(kCooperative, with_batch(p, 3)) == Approx(3 * kTile));
  CHECK(f.us("wmma_128x128x32_s3", p) == 0);  // has only one store path
  CHECK(f.us("simt_64x64x16", with_fp32_d(p, 0)) == 0);
  // Direct stores require an even number of columns, and rows of D that start at even elements.
  CHECK(f.us(kCooperative, with_fp32_d(problem(128, 500, 512), 0)) == Approx(10 * kTile));
  CHECK(f.us(kCooperative, with_fp32_d(problem(128, 501, 512), 0)) == Approx(100 * kTile));
  CHECK(f.us(kCooperative, with_ld_of_d(with_fp32_d(p, 0), 256 * 66 + 1)) == Approx(100 * kTile));
  // The stored part of a tile is limited by D.
  CHECK(f.us(kCooperative, problem(32, 64, 512)) == Approx(32. * 64 / (1 << 20)));
}

TEST_CASE("epilogue: C and aux are charged to SMs and DRAM") {
  Priced f;
  f.sm_90.source_us_per_mb = 1;
  mp::GemmProblem p = problem(256, 256 * 66, 512), q = p;
  constexpr double kTileMb = 2e-6 * 128 * 256;
  const double d_mb = 2e-6 * 256 * 256 * 66, ab_mb = 2e-6 * 512 * (256 + 256 * 66);
  q.out.beta = 1;
  CHECK(f.us(kCooperative, p) == 0);
  CHECK(f.us(kCooperative, q) == Approx(kTileMb));
  CHECK(f.us(kCooperative, with_aux(p, MP_ACT_DGELU)) == Approx(kTileMb));
  CHECK(f.us(kCooperative, with_aux(q, MP_ACT_GELU)) == Approx(2 * kTileMb));
  CHECK(f.us(kCooperative, with_fp32_d(p, 1)) == Approx(2 * kTileMb));
  f.sm_90 = {};
  f.sm_90.dram_us_per_mb = 1;
  CHECK(f.us(kCooperative, p) == Approx(ab_mb + d_mb));
  CHECK(f.us(kCooperative, q) == Approx(ab_mb + 2 * d_mb));
  CHECK(f.us(kCooperative, with_aux(p, MP_ACT_DRELU)) == Approx(ab_mb + 2 * d_mb));
  CHECK(f.us(kCooperative, with_aux(q, MP_ACT_GELU)) == Approx(ab_mb + 3 * d_mb));
}

TEST_CASE("epilogue: cost increases with the operations on every kernel") {
  Priced f;
  f.sm_90.op_us = 1;
  const mp::GemmProblem p = problem(512, 512, 512);
  mp::GemmProblem relu = with_bias(p), gelu = relu, amax = p;
  relu.out.epilogue.activation = MP_ACT_RELU;
  gelu.out.epilogue.activation = MP_ACT_GELU;
  amax.out.epilogue.amax = reinterpret_cast<float *>(memory);
  for (const char *const name : {kCooperative, kPingPong, "wmma_128x128x32_s3", "simt_64x64x16"}) {
    CAPTURE(name);
    CHECK(f.us(name, p) == 0);
    CHECK(f.us(name, amax) > 0);
    CHECK(f.us(name, with_bias(p)) > 0);
    CHECK(f.us(name, relu) > f.us(name, with_bias(p)));
    CHECK(f.us(name, gelu) > f.us(name, relu));
    CHECK(f.us(name, with_aux(p, MP_ACT_DGELU)) > f.us(name, with_aux(p, MP_ACT_DRELU)));
  }
  // TMA stores have a fast path for only bias and ReLU; all other epilogues take the general path,
  // with two more operations per element.
  mp::GemmProblem relu_amax = relu;
  relu_amax.out.epilogue.amax = amax.out.epilogue.amax;
  CHECK(f.us(kCooperative, with_bias(p)) == Approx(3 * kTile));
  CHECK(f.us(kCooperative, relu) == Approx(5 * kTile));
  CHECK(f.us(kCooperative, amax) == Approx((2 + 2) * kTile));
  CHECK(f.us(kCooperative, relu_amax) == Approx((5 + 2 + 2) * kTile));
  // The fast path requires rows of D that are multiples of 16 bytes; 1004 elements are not.
  const mp::GemmProblem whole = problem(512, 1008, 512);
  mp::GemmProblem partial = with_ld_of_d(problem(512, 1004, 512), 1008);
  CHECK(f.us(kCooperative, whole) == 0);
  CHECK(f.us(kCooperative, partial) > 0);
  CHECK(f.us(kCooperative, partial) < f.us(kCooperative, with_bias(partial)));
  // A staged store waits for its loads.
  const mp::GemmProblem drelu = with_aux(p, MP_ACT_DRELU);
  CHECK(f.us(kCooperative, with_ld_of_d(drelu, 513)) > 2 * f.us(kCooperative, drelu));
}

TEST_CASE(
    "epilogue: ping-pong kernels overlap all epilogues except the last, cooperative ones none") {
  Priced f;
  const auto tiles = [](int64_t per_sm, int64_t columns) {
    return problem(128 * per_sm, 132 * columns, 1024);
  };
  f.sm_90.of(kernel_named(kCooperative)) = {.tile_us = 1, .k_us = 10};
  f.sm_90.of(kernel_named(kPingPong)) = {.tile_us = 1, .k_us = 10};
  f.sm_90.tma_store_us = 4 / kTile;  // 4 for the large tile, 2 for the other
  CHECK(f.us(kCooperative, tiles(1, 256)) == Approx(11 + 4));
  CHECK(f.us(kCooperative, tiles(5, 256)) == Approx(5 * (11 + 4)));
  CHECK(f.us(kPingPong, tiles(1, 128)) == Approx(11 + 2));
  CHECK(f.us(kPingPong, tiles(5, 128)) == Approx(5 * 11 + 2));
  // An epilogue longer than the products: two tiles take as long as one tile and its epilogue.
  f.sm_90.tma_store_us = 2 * 31 / kTile;
  CHECK(f.us(kPingPong, tiles(1, 128)) == Approx(11 + 31));
  CHECK(f.us(kPingPong, tiles(5, 128)) == Approx(4 * (11 + 31) / 2. + 11 + 31));
  // The simulator runs both warpgroups on one thread.
  mp::ClassTuning &host = f.tuning.of(mp::DeviceClass::host);
  host = f.sm_90;
  CHECK(f.us(kPingPong, problem(128 * 10, 128, 1024), host_device()) == Approx(5 * (11 + 31)));
}

TEST_CASE("epilogue: with split-k it runs once, distributed over all SMs") {
  Priced f;
  f.sm_90.op_us = 1;
  const mp::GemmProblem p = with_bias(problem(128, 256, 8192));
  CHECK(f.us(kCooperative, p) > 0);
  const double ops = 3 * kTile;  // bias, added by the summing threads
  CHECK(f.us("wgmma_128x256x64_s4_k4", p) == Approx(ops / 132));
  CHECK(f.us("wmma_128x128x32_s3", p) == Approx(1.3 * ops / 2));  // one block per SM
  CHECK(f.us("wmma_128x128x32_s3_k4", p) == Approx(ops / 132));
  f.sm_90 = {};
  f.sm_90.dram_us_per_mb = 1;
  f.sm_90.of(kernel_named("wmma_128x128x32_s3")).k_us = 1000;
  const double d_mb = 2e-6 * 128 * 256;
  CHECK(f.us("wmma_128x128x32_s3_k4", p) == Approx(f.us("wmma_128x128x32_s3", p) / 4 + d_mb));
}

TEST_CASE("epilogue: dbias costs one or two passes over D or its partial sums") {
  Priced f;
  f.sm_90.launch_us = 1;
  const mp::GemmProblem large = problem(8192, 4096, 512), small = problem(16, 64, 512);
  CHECK(f.us(kCooperative, large) == Approx(1));
  CHECK(f.us(kCooperative, with_dbias(large)) == Approx(1 + 2));
  CHECK(f.us(kCooperative, with_dbias(small)) == Approx(1 + 1));
  f.sm_90 = {};
  f.sm_90.dram_us_per_mb = 1;
  const auto pass_us = [&](const char *kernel, const mp::GemmProblem &p) {
    return f.us(kernel, with_dbias(p)) - f.us(kernel, p);
  };
  constexpr const char *kWmma = "wmma_128x128x32_s3";
  CHECK(pass_us(kWmma, large) == Approx(2e-6 * 8192 * 4096));
  CHECK(pass_us(kWmma, small) == Approx(2e-6 * 16 * 64 * 132));  // one of 132 SMs
  // All SMs write a row of sums per 16 rows of D, and read it.
  CHECK(pass_us(kCooperative, large) == Approx(2 * 4e-6 * 8192 / 16 * 4096));
  CHECK(pass_us(kCooperative, small) == Approx(4e-6 * 64 * (1 + 132)));
  CHECK(pass_us(kCooperative, with_ld_of_d(large, 4097)) == Approx(2e-6 * 8192 * 4096));
}

TEST_CASE("epilogue: a heavy epilogue after short products selects kernels that overlap it") {
  for (const int64_t k : {512, 768, 1024}) {
    CAPTURE(k);
    const mp::GemmProblem p = problem(8192, 4096, k);
    CHECK(is_ping_pong(with_bias(with_aux(p, MP_ACT_GELU))));
    CHECK(is_ping_pong(with_aux(p, MP_ACT_DGELU)));
  }
  const mp::GemmProblem p = problem(8192, 8192, 8192);
  CHECK(!is_ping_pong(p));
  CHECK(!is_ping_pong(with_fp32_d(p, 1)));
}

TEST_CASE("epilogue: no epilogue reduces the time, and none is free") {
  const mp::GemmProblem p = problem(8192, 4096, 1024);
  for (const mp::Device &device : {t4(), a100(), h200()}) {
    const auto us = [&](const mp::GemmProblem &q) {
      return ranking(q, device).front().predicted_us;
    };
    CAPTURE(device.arch);
    mp::GemmProblem beta = p;
    beta.out.beta = 1;
    for (const mp::GemmProblem &q :
         {with_bias(p), with_aux(p, MP_ACT_GELU), with_aux(p, MP_ACT_DRELU), with_dbias(p), beta})
      CHECK(us(q) > us(p));
  }
}
