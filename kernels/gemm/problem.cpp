// Problems made from descriptors and groups.
#include "kernels/gemm/problem.h"

namespace mp {

namespace {

Operand matrix(int64_t ld, int64_t stride, int32_t batch_count) {
  return {.base = nullptr, .items = nullptr, .ld = ld, .stride = batch_count > 1 ? stride : 0};
}

Operand single(const void *base, int64_t ld) {
  return {.base = base, .items = nullptr, .ld = ld, .stride = 0};
}

}  // namespace

GemmProblem gemm_problem(const mp_gemm_desc_t &d) {
  return {.out = {.m = d.m,
                  .n = d.n,
                  .batch_count = d.batch_count,
                  .dtype = d.dtype_cd,
                  .alpha = d.alpha,
                  .beta = d.beta,
                  .c = matrix(d.ldc, d.stride_c, d.batch_count),
                  .d = matrix(d.ldd, d.stride_d, d.batch_count),
                  .epilogue = {}},
          .k = summed_k(d.k, d.alpha),
          .op_a = d.op_a,
          .op_b = d.op_b,
          .dtype_ab = d.dtype_ab,
          .a = matrix(d.lda, d.stride_a, d.batch_count),
          .b = matrix(d.ldb, d.stride_b, d.batch_count)};
}

GemmProblem item_problem(const GemmGroup &group, const GemmGroupItem &item) {
  GemmProblem problem = group.common;
  problem.out.m = item.m;
  problem.out.n = item.n;
  problem.k = item.k;
  problem.a = single(item.a, item.lda);
  problem.b = single(item.b, item.ldb);
  problem.out.c = single(item.c, item.ldc);
  problem.out.d = single(item.d, item.ldd);
  return problem;
}

}  // namespace mp
