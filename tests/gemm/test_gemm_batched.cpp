// Many products in one call: by stride, with one operand shared, and by arrays of pointers.
#include "gemm_run.h"

using namespace mptest;

namespace {

const std::string kBatch = "m=65 n=37 k=41 batch=3 ";

}  // namespace

TEST_CASE("gemm batch: strides", "[gemm][short]") {
  check_every_kernel(kBatch + "op=NN|NT|TN|TT types=each beta=1 pad/multiple=0/8|3/1");
}

TEST_CASE("gemm batch: stride 0 shares A, B or both", "[gemm][short]") {
  check_every_kernel(kBatch + "op=NT cd=fp16 shared_a/shared_b=1/0|0/1|1/1 pad=3");
}

TEST_CASE("gemm batch: in place", "[gemm][short]") {
  check_every_kernel(kBatch + "op=TN beta=-3 in_place=1");
}

TEST_CASE("gemm batch: the epilogue counts every item", "[gemm][short]") {
  check_kernels_and_choice(
      kBatch + "cd=fp16 pad=3 bias=fp16 activation=relu|drelu aux=1 dbias=1 amax=1 found_inf=1");
}

TEST_CASE("gemm batch: more items than one grid dimension holds", "[gemm]") {
  // gridDim.y and .z end at 65535.
  check_library_choice("m=1 n=1 k=1 multiple=1 batch=65537 ab=fp32");
}

TEST_CASE("gemm batch: arrays of pointers", "[gemm][short]") {
  const std::string line = kBatch + "op=NN|NT|TN|TT types=each pointers=1 beta=1 batch=3|1 ";
  check_every_kernel(line);
  check_kernels_and_choice(line + "offset=1");
}

TEST_CASE("gemm batch: one misaligned pointer among aligned ones", "[gemm][short]") {
  // The host does not see the pointers: every kernel has to cope.
  check_kernels_and_choice(kBatch +
                           "op=NN|TT types=each pointers=1 beta=1 stray=a1|b0|c2|d1|abcd2");
}

TEST_CASE("gemm batch: one misaligned pointer, in place, split and with the epilogue", "[gemm]") {
  // The last product has more tiles than one per item.
  check_every_kernel(kBatch +
                     "op=NT cd=fp16 pointers=1 beta=2 in_place=1 bias=fp32 found_inf=1 "
                     "stray/m/n/k=a0/65/37/600|b2/300/270/96|d1/300/270/96|d1/65/37/600");
}

TEST_CASE("gemm batch: arrays of pointers with shared, in-place and absent matrices",
          "[gemm][short]") {
  const std::string line = kBatch + "op=NT cd=fp16 pointers=1 shared_b=1 bias=fp32 found_inf=1 ";
  check_every_kernel(line + "beta/in_place=0/0|2/1");
  GemmRun without_c(gemm_case(line));
  without_c.null_c = true;
  check_launch(without_c, "", Misaligned::kNo);
}
