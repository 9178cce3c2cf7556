// The thin kernels by name: every tile and number of blocks that split k.
//
// Requires wgmma: sm_90, or the host target, whose simulator supports it.
#include "gemm_run.h"

using namespace mptest;

namespace {

void check(const GemmCase &c) {
  check_kernels(c, [](const std::string &kernel) { return kernel.starts_with("thin"); });
}

}  // namespace

TEST_CASE("thin: edges of tiles in both orders of B and all types", "[thin][wgmma]") {
  if (!has_wgmma()) return;
  for (const int64_t m : {1, 7, 8, 15, 16, 17, 31, 32})
    for (const int64_t n : {1, 63, 64, 130}) check(gemm_case(m, n, 136, m % 2 == 0 ? "NN" : "NT"));
  for (const char *const op : {"NN", "NT"})
    for (const mp_dtype_t ab : {MP_FP16, MP_BF16})
      for (const mp_dtype_t cd : {MP_FP16, MP_BF16, MP_FP32})
        check(gemm_case(20, 72, 80, op, {ab, cd}));
}

TEST_CASE("thin: k below, at and above the depth of the pipeline of each block", "[thin][wgmma]") {
  if (!has_wgmma()) return;
  // Eight stages of 64 in each of up to eight blocks.  Blocks have different numbers of k-tiles.
  for (const int64_t k : {1, 63, 65, 257, 511, 513, 1025, 4095, 4160, 8500})
    check(gemm_case(17, 72, k, k % 2 == 0 ? "NN" : "NT"));
}

TEST_CASE("thin: unaligned rows are copied", "[thin][wgmma]") {
  if (!has_wgmma()) return;
  for (const char *const op : {"NN", "NT"}) {
    GemmCase c = gemm_case(9, 67, 525, op);
    c.pad = 3;
    check(c);
    c.multiple = 1;
    check(c);
  }
}

TEST_CASE("thin: every part of the epilogue is exact", "[thin][wgmma]") {
  if (!has_wgmma()) return;
  for (const mp_dtype_t cd : {MP_FP16, MP_FP32}) {
    for (const float alpha : {1.0f, 2.0f, -3.0f}) {
      GemmCase c = gemm_case(19, 130, 264, "NT", {MP_FP16, cd});
      c.alpha = alpha;
      c.beta = alpha - 1.0f;
      c.zero_scale = alpha < 0;
      c.bias = MP_FP32;
      c.activation = MP_ACT_RELU;
      c.aux = c.amax = c.found_inf = c.dbias = true;
      check(c);
    }
    GemmCase c = gemm_case(19, 130, 264, "NN", {MP_BF16, cd});
    c.beta = 1.0f;
    c.scale = 2.0f;
    c.in_place = true;
    check(c);
    c.in_place = false;
    c.beta = 0.0f;
    c.fill = Fill::kReal;
    c.aux = c.dbias = true;
    for (const mp_activation_t activation : {MP_ACT_GELU, MP_ACT_DGELU}) {
      c.activation = activation;
      check(c);
    }
  }
}

TEST_CASE("thin: batches by stride and shared operands", "[thin][wgmma]") {
  if (!has_wgmma()) return;
  for (const auto &[shared_a, shared_b] : {std::pair{false, false}, std::pair{true, false},
                                           std::pair{false, true}, std::pair{true, true}}) {
    GemmCase c = gemm_case(18, 72, 600, "NT");
    c.batch = 3;
    c.shared_a = shared_a;
    c.shared_b = shared_b;
    check(c);
  }
}

TEST_CASE("thin: non-finite values affect only their rows and columns", "[thin][wgmma]") {
  if (!has_wgmma()) return;
  for (const Special special : {Special::kInfinity, Special::kNan})
    for (const Place place : {Place::kFirst, Place::kLast})
      for (const char *const op : {"NN", "NT"}) {
        GemmCase c = gemm_case(14, 70, 520, op);
        c.special = special;
        c.place = place;
        c.amax = c.found_inf = true;
        check(c);
      }
}
