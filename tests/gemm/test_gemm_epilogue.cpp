// The epilogue of mp_gemm: each option alone, then together, forward and backward.
#include "gemm_run.h"

using namespace mptest;

namespace {

/// Off the tiles in every direction, with its own padding for C, D and aux.
const std::string kBase = "m=131 n=69 k=50 pad=3 ";
const std::string kEachType = kBase + "ab/cd=fp16/fp16|fp16/fp32|bf16/bf16|fp32/fp32 ";

}  // namespace

TEST_CASE("epilogue: scale multiplies alpha", "[gemm][short]") {
  check_every_kernel(kEachType + "alpha=-1 beta=1 fill/scale=exact/2|real/0.33333334");
}

TEST_CASE("epilogue: bias of every type, aligned or not", "[gemm]") {
  check_every_kernel(kEachType + "bias=fp16|bf16|fp32 offset=0|1");
}

TEST_CASE("epilogue: forward activations, with and without aux", "[gemm][short]") {
  check_every_kernel(kEachType + "activation=forward aux/fill=1/exact|0/real");
}

TEST_CASE("epilogue: backward activations read aux", "[gemm][short]") {
  check_every_kernel(kEachType + "activation=backward aux=1 fill=exact|real");
}

TEST_CASE("epilogue: aux with the rows of D", "[gemm]") {
  // ld_aux is 0 if there is no padding.
  check_every_kernel(kBase + "cd=fp16 activation=relu|drelu aux=1 pad=0 offset/multiple=0/8|1/1");
}

TEST_CASE("epilogue: amax and found_inf look at D as rounded", "[gemm][short]") {
  check_every_kernel(kEachType + "amax/found_inf/fill=1/0/exact|0/1/exact|1/1/real");
}

TEST_CASE("epilogue: the forward pass of a layer", "[gemm][short]") {
  check_kernels_and_choice(kBase +
                           "cd=fp16 op=NT bias=fp32 activation=forward aux=1 amax=1 found_inf=1");
}

TEST_CASE("epilogue: the backward pass of a layer", "[gemm][short]") {
  check_kernels_and_choice(
      kBase + "cd=fp16 scale=0.5 fill=real activation=backward aux=1 dbias=1 amax=1 found_inf=1");
}

TEST_CASE("epilogue: everything at once, in place", "[gemm][short]") {
  check_every_kernel(kEachType +
                     "op=TN alpha=-1 beta=-2 scale=2 bias=bf16 activation=relu in_place=1 aux=1 "
                     "dbias=1 amax=1 found_inf=1");
}
