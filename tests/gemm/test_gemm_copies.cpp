// A and B with unaligned rows, with kernels that read aligned copies of them: WMMA kernels whose
// name ends in "_copied", and all wgmma kernels.  Rows, items and the initial workspace end in NaN.
#include "gemm_run.h"

using namespace mptest;

namespace {

bool reads_copies(const std::string &kernel) {
  return kernel.ends_with("_copied") || is_wgmma(kernel);
}
/// True for "wmma_64x64x32_s4_copied", not for "..._k4_copied".
bool reads_unsplit_copies(const std::string &kernel) {
  return reads_copies(kernel) && !splits_k(kernel);
}

/// Rows without alignment.
const std::string kRows = "multiple=1 ";
/// Batch items with a stride that is not a multiple of 8; several tiles, and several slices of k.
const std::string kBatch = kRows + "m=70 n=131 k=601 pad=1 batch=2 bias=fp32 dbias=1 found_inf=1 ";

}  // namespace

TEST_CASE("copies: rows are copied in 2- and 4-byte words in every order of operands",
          "[gemm][wgmma]") {
  const std::string type = device_info().arch >= 80 ? "bf16" : "fp16";
  check_kernels(
      kRows + "m=139 n=266 op=NN|NT|TN|TT beta=1 pad/k/ab=0/71/fp16|1/72/" + type + "|2/73/fp16",
      reads_unsplit_copies);
}

TEST_CASE("copies: an aligned operand is read in place", "[gemm][wgmma]") {
  // First n is odd, so B and D are unaligned; then m, so A is.
  check_kernels(kRows + "op/m/n/k=NN/136/131/72|TT/131/136/72", reads_unsplit_copies);
}

TEST_CASE("copies: batches, shared operands and split-k", "[gemm][wgmma]") {
  check_kernels(kBatch + "op=NN|TT", reads_copies);
  check_kernels(kBatch + "op=NT shared_a/shared_b=1/0|0/1|1/1", reads_unsplit_copies);
  // Rows of 80 and 136 elements are aligned; item strides, 20 elements longer, are not.
  check_kernels(kBatch + "op=TN m=72 pad=5 multiple=4", reads_unsplit_copies);
}

TEST_CASE("copies: non-finite values affect only their rows and columns", "[gemm][wgmma]") {
  check_kernels(kBatch + "special=inf|nan place=first|last", reads_unsplit_copies);
}
