// The thin kernels by name: every tile and number of blocks that split k.
//
// Requires wgmma: sm_90, or the host target, whose simulator supports it.
#include "gemm_run.h"

using namespace mptest;

namespace {

void check(const std::string &line) {
  if (!has_wgmma()) return;
  check_kernels(line, [](const std::string &kernel) { return kernel.starts_with("thin"); });
}

}  // namespace

TEST_CASE("thin: edges of tiles in both orders of B and all types", "[thin][wgmma]") {
  check("op/m=NT/1|NT/7|NN/8|NT/15|NN/16|NT/17|NT/31|NN/32 n=1|63|64|130 k=136 cd=fp16");
  check("m=20 n=72 k=80 op=NN|NT ab=fp16|bf16 cd=fp16|bf16|fp32");
}

TEST_CASE("thin: k below, at and above the depth of the pipeline of each block", "[thin][wgmma]") {
  // Eight stages of 64 in each of up to eight blocks.  Blocks have different numbers of k-tiles.
  check("m=17 n=72 op=NT k=1|63|65|257|511|513|1025|4095 cd=fp16");
  check("m=17 n=72 op=NN k=4160|8500 cd=fp16");
}

TEST_CASE("thin: unaligned rows are copied", "[thin][wgmma]") {
  check("m=9 n=67 k=525 op=NN|NT cd=fp16 pad=3 multiple=8|1");
}

TEST_CASE("thin: every part of the epilogue is exact", "[thin][wgmma]") {
  const std::string shape = "m=19 n=130 k=264 cd=fp16|fp32 ";
  check(shape +
        "op=NT alpha/beta/zero_scale=1/0/0|2/1/0|-3/-4/1 bias=fp32 activation=relu aux=1 amax=1 "
        "found_inf=1 dbias=1");
  check(shape + "ab=bf16 beta=1 scale=2 in_place=1");
  check(shape + "ab=bf16 scale=2 fill=real aux=1 dbias=1 activation=gelu|dgelu");
}

TEST_CASE("thin: batches by stride and shared operands", "[thin][wgmma]") {
  check("m=18 n=72 k=600 op=NT cd=fp16 batch=3 shared_a=0|1 shared_b=0|1");
}

TEST_CASE("thin: non-finite values affect only their rows and columns", "[thin][wgmma]") {
  check("m=14 n=70 k=520 op=NN|NT cd=fp16 special=inf|nan place=first|last amax=1 found_inf=1");
}
