// mp_gemm with infinities and NaN: they propagate according to IEEE 754, and amax and found_inf
// detect them everywhere.
#include <limits>

#include "gemm_run.h"

using namespace mptest;

namespace {

const std::string kBase = "m=70 n=67 k=43 dbias=1 amax=1 found_inf=1 ";

}  // namespace

TEST_CASE("gemm non-finite: one element of A propagates according to IEEE 754", "[gemm]") {
  check_every_kernel(kBase +
                     "ab/cd=fp16/fp16|bf16/bf16|fp32/fp32 op=NN|NT|TN|TT "
                     "special/place=inf/first|nan/middle|inf/last");
}

TEST_CASE("gemm non-finite: the last element of A is detected", "[gemm][short]") {
  check_every_kernel(kBase + "special=inf|nan place=last beta=0|1");
}

TEST_CASE("gemm non-finite: the last batch item is detected", "[gemm][short]") {
  check_every_kernel(kBase + "ab=bf16 special=inf|nan place=last batch=3");
}

TEST_CASE("gemm non-finite: neither NaN nor infinity reaches D if alpha = 0 or *scale = 0",
          "[gemm][short]") {
  // The longer k has split-k kernels.
  const std::string line =
      kBase +
      "ab=fp16|fp32 cd/activation/aux/beta/k=fp16/none/0/0/43|fp16/relu/1/2/600|bf16/drelu/1/0/43|"
      "fp32/none/0/2/600 alpha/zero_scale/special=0/0/inf|3/1/nan place=middle ";
  check_every_kernel(line);
  check_every_kernel(line + "m=1 batch=3 pointers=1 activation=none aux=0 dbias=0 amax=0");
}

TEST_CASE("gemm non-finite: NaN passes through ReLU", "[gemm][short]") {
  check_every_kernel(kBase + "cd=fp16 special=nan place=middle activation=relu aux=1");
}

TEST_CASE("gemm non-finite: an FP16 overflow in the last rounding raises found_inf",
          "[gemm][short]") {
  const std::string line = kBase + "cd=fp16 fill=rounding";
  const GemmRun run(gemm_case(line));
  // The inputs and y are finite; only D is not.
  REQUIRE(oracle::amax(run.expected().y.values, 0.0) > 65520.0);
  REQUIRE(!oracle::any_nonfinite(run.expected().y.values));
  check_every_kernel(line);
}

TEST_CASE("gemm non-finite: the same values in fp32 do not raise found_inf", "[gemm][short]") {
  check_every_kernel(kBase + "fill=rounding");
}

TEST_CASE("gemm non-finite: found_inf is never cleared, amax never reduced", "[gemm][short]") {
  GemmRun run(gemm_case(kBase));
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
