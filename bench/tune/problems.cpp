#include "problems.h"

namespace mptune {

mp::GemmProblem problem_of(const mp_gemm_desc_t &d) {
  mp::GemmProblem p{};
  p.m = d.m;
  p.n = d.n;
  p.k = d.k;
  p.batch_count = d.batch_count;
  p.op_a = d.op_a;
  p.op_b = d.op_b;
  p.dtype_ab = d.dtype_ab;
  p.dtype_cd = d.dtype_cd;
  p.alpha = d.alpha;
  p.beta = d.beta;
  p.a.ld = d.lda;
  p.b.ld = d.ldb;
  p.c.ld = d.ldc;
  p.d.ld = d.ldd;
  return p;
}

namespace {

/// The written tensor as the D of a GEMM.
mp_gemm_desc_t output_matrix(const mpbench::ConvShape &s) {
  const int64_t filter_elems = int64_t{s.r} * s.s * s.c;
  switch (s.op) {
    case MP_CONV_FPROP:
      return mp_gemm_desc_default(s.n * s.p() * s.q(), s.k, 0, kDtype, kDtype);
    case MP_CONV_DGRAD:
      return mp_gemm_desc_default(int64_t{s.n} * s.h * s.w, s.c, 0, kDtype, kDtype);
    default:
      return mp_gemm_desc_default(s.k, filter_elems, 0, kDtype, kDtype);
  }
}

}  // namespace

mp::ConvProblem problem_of(const mpbench::ConvShape &s) {
  return {.op = s.op,
          .shape = {.n = s.n,
                    .h = s.h,
                    .w = s.w,
                    .c = s.c,
                    .k = s.k,
                    .r = s.r,
                    .s = s.s,
                    .p = static_cast<int32_t>(s.p()),
                    .q = static_cast<int32_t>(s.q()),
                    .pad_top = s.pad_h,
                    .pad_left = s.pad_w,
                    .stride_h = s.stride_h,
                    .stride_w = s.stride_w,
                    .dilation_h = 1,
                    .dilation_w = 1,
                    .groups = 1},
          .dtype = kDtype,
          .image = nullptr,
          .other = nullptr,
          .out = problem_of(output_matrix(s))};
}

}  // namespace mptune
