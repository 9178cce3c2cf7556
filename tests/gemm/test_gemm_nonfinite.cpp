// mp_gemm with infinities and NaN: they propagate according to IEEE 754, and amax and found_inf
// detect them everywhere.
#include <limits>

#include "gemm_run.h"

using namespace mptest;

namespace {

GemmCase with_special(mp_dtype_t ab, mp_dtype_t cd, Special special, Place place) {
  GemmCase c = gemm_case(70, 67, 43, "NN", {ab, cd});
  c.special = special;
  c.place = place;
  c.dbias = c.amax = c.found_inf = true;
  return c;
}

constexpr Special kSpecials[] = {Special::kInfinity, Special::kNan};
constexpr Place kPlaces[] = {Place::kFirst, Place::kMiddle, Place::kLast};

}  // namespace

TEST_CASE("gemm non-finite: one element of A propagates according to IEEE 754", "[gemm]") {
  for (const mp_dtype_t dtype : {MP_FP16, MP_BF16, MP_FP32}) {
    for (const char *const op : kAllOps) {
      for (const Special special : kSpecials) {
        for (const Place place : kPlaces) {
          GemmCase c = with_special(dtype, dtype, special, place);
          c.op = op;
          check_every_kernel(c);
        }
      }
    }
  }
}

TEST_CASE("gemm non-finite: the last element of A is detected", "[gemm][short]") {
  for (const Special special : kSpecials) {
    check_every_kernel(with_special(MP_FP16, MP_FP32, special, Place::kLast));
  }
}

TEST_CASE("gemm non-finite: the last batch item is detected", "[gemm][short]") {
  for (const Special special : kSpecials) {
    GemmCase c = with_special(MP_BF16, MP_FP32, special, Place::kLast);
    c.batch = 3;
    check_every_kernel(c);
  }
}

TEST_CASE("gemm non-finite: neither NaN nor infinity reaches D if alpha = 0 or *scale = 0",
          "[gemm][short]") {
  struct Way {
    mp_dtype_t cd;
    mp_activation_t activation;
    float beta;
    int64_t k;  // the longer k has split-k kernels
  };
  for (const mp_dtype_t ab : {MP_FP16, MP_FP32})
    for (const Way &way : {Way{MP_FP16, MP_ACT_NONE, 0, 43}, Way{MP_FP16, MP_ACT_RELU, 2, 600},
                           Way{MP_BF16, MP_ACT_DRELU, 0, 43}, Way{MP_FP32, MP_ACT_NONE, 2, 600}})
      for (const bool on_device : {false, true})
        for (const Special special : kSpecials) {
          GemmCase c = with_special(ab, way.cd, special, Place::kMiddle);
          c.k = way.k;
          c.alpha = on_device ? 3.0f : 0.0f;
          c.zero_scale = on_device;
          c.activation = way.activation;
          c.aux = way.activation != MP_ACT_NONE;
          c.beta = way.beta;
          check_every_kernel(c);
          c.m = 1;
          c.batch = 3;
          c.pointers = true;
          c.aux = c.dbias = c.amax = false;
          c.activation = MP_ACT_NONE;
          check_every_kernel(c);
        }
}

TEST_CASE("gemm non-finite: NaN passes through ReLU", "[gemm][short]") {
  GemmCase c = with_special(MP_FP16, MP_FP16, Special::kNan, Place::kMiddle);
  c.activation = MP_ACT_RELU;
  c.aux = true;
  check_every_kernel(c);
}

TEST_CASE("gemm non-finite: an FP16 overflow in the last rounding raises found_inf",
          "[gemm][short]") {
  GemmCase c = with_special(MP_FP16, MP_FP16, Special::kNone, Place::kFirst);
  c.fill = Fill::kRounding;
  const GemmRun run(c);
  // The inputs and y are finite; only D is not.
  REQUIRE(oracle::amax(run.expected().y.values, 0.0) > 65520.0);
  REQUIRE(!oracle::any_nonfinite(run.expected().y.values));
  check_every_kernel(c);
}

TEST_CASE("gemm non-finite: the same values in fp32 do not raise found_inf", "[gemm][short]") {
  GemmCase c = with_special(MP_FP16, MP_FP32, Special::kNone, Place::kFirst);
  c.fill = Fill::kRounding;
  check_every_kernel(c);
}

TEST_CASE("gemm non-finite: found_inf is never cleared, amax never reduced", "[gemm][short]") {
  GemmRun run(with_special(MP_FP16, MP_FP32, Special::kNone, Place::kFirst));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  run.found_inf_start = 1.0f;
  for (const float start : {0.0f, 1e6f, std::numeric_limits<float>::infinity(), nan}) {
    run.amax_start = start;
    for (const std::string &kernel : run.kernels()) {
      CAPTURE(start);
      check_launch(run, kernel, Misaligned::kNo);
    }
  }
}
