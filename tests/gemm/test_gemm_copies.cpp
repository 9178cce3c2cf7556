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
  return reads_copies(kernel) && kernel.find("_k") == std::string::npos;
}

GemmCase make_case(int64_t m, int64_t n, int64_t k, const std::string &op, int64_t pad = 0) {
  GemmCase c = gemm_case(m, n, k, op, {MP_FP16, MP_FP32});
  c.multiple = 1;
  c.pad = pad;
  return c;
}

/// Batch items with a stride that is not a multiple of 8; several tiles, and several slices of k.
GemmCase batch_case(const std::string &op) {
  GemmCase c = make_case(70, 131, 601, op, 1);
  c.batch = 2;
  c.bias = MP_FP32;
  c.dbias = c.found_inf = true;
  return c;
}

}  // namespace

TEST_CASE("copies: rows are copied in 2- and 4-byte words in every order of operands",
          "[gemm][wgmma]") {
  const bool has_bf16 = device_info().arch >= 80;
  for (const char *const op : kAllOps) {
    for (const int64_t pad : {0, 1, 2}) {
      GemmCase c = make_case(139, 266, 71 + pad, op, pad);
      if (pad == 1) c.cd = MP_FP32;
      if (pad == 1 && has_bf16) c.ab = MP_BF16;
      c.beta = 1.0f;
      check_kernels(c, reads_unsplit_copies);
    }
  }
}

TEST_CASE("copies: an aligned operand is read in place", "[gemm][wgmma]") {
  check_kernels(make_case(136, 131, 72, "NN"),
                reads_unsplit_copies);  // n is odd: B and D are unaligned
  check_kernels(make_case(131, 136, 72, "TT"), reads_unsplit_copies);  // m is odd: A is unaligned
}

TEST_CASE("copies: batches, shared operands and split-k", "[gemm][wgmma]") {
  for (const char *const op : {"NN", "TT"}) check_kernels(batch_case(op), reads_copies);
  for (const auto &[shared_a, shared_b] :
       {std::pair{true, false}, std::pair{false, true}, std::pair{true, true}}) {
    GemmCase c = batch_case("NT");
    c.shared_a = shared_a;
    c.shared_b = shared_b;
    check_kernels(c, reads_unsplit_copies);
  }
  // Rows of 80 and 136 elements are aligned; item strides, 20 elements longer, are not.
  GemmCase c = batch_case("TN");
  c.m = 72;
  c.pad = 5;
  c.multiple = 4;
  check_kernels(c, reads_unsplit_copies);
}

TEST_CASE("copies: non-finite values affect only their rows and columns", "[gemm][wgmma]") {
  for (const Special special : {Special::kInfinity, Special::kNan}) {
    for (const Place place : {Place::kFirst, Place::kLast}) {
      GemmCase c = batch_case("NN");
      c.special = special;
      c.place = place;
      check_kernels(c, reads_unsplit_copies);
    }
  }
}
