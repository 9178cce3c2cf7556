#include "kernels/gemm/aligned_copies.h"

namespace mp {

namespace {

AlignedCopy copy_of(const Operand &x, int64_t rows, int64_t cols, int64_t batch_count) {
  AlignedCopy copy{rows, cols, x.stride != 0 ? batch_count : 1, (cols + 7) / 8 * 8, 0};
  if ((x.ld | x.stride) % 8 == 0) return copy;
  const size_t bytes = static_cast<size_t>(copy.rows * copy.ld * copy.count) * 2;
  copy.bytes = (bytes + 255) / 256 * 256;
  return copy;
}

bool can_be_counted(const GemmProblem &p) {
  constexpr double kMax = 0x1p60;
  const double items = p.out.batch_count, k = static_cast<double>(p.k) + 8;
  return items * k * (static_cast<double>(p.out.m) + 8) < kMax &&
         items * k * (static_cast<double>(p.out.n) + 8) < kMax;
}

Operand operand_of(const Operand &x, const AlignedCopy &copy, uintptr_t place) {
  if (copy.bytes == 0) return x;
  return {reinterpret_cast<const void *>(place), nullptr, copy.ld,
          x.stride != 0 ? copy.rows * copy.ld : 0};
}

}  // namespace

AlignedCopies aligned_copies(const GemmProblem &p) {
  if (p.dtype_ab == MP_FP32 || p.k == 0 || p.out.d.items != nullptr || !can_be_counted(p))
    return {};
  const bool a_by_k = p.op_a == MP_OP_N, b_by_k = p.op_b == MP_OP_T;
  const int64_t m = p.out.m, n = p.out.n, items = p.out.batch_count;
  return {copy_of(p.a, a_by_k ? m : p.k, a_by_k ? p.k : m, items),
          copy_of(p.b, b_by_k ? n : p.k, b_by_k ? p.k : n, items)};
}

GemmProblem with_copies(const GemmProblem &p, const AlignedCopies &copies, void *workspace) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(workspace);  // NULL for selection
  GemmProblem copied = p;
  copied.a = operand_of(p.a, copies.a, place);
  copied.b = operand_of(p.b, copies.b, place + copies.a.bytes);
  return copied;
}

}  // namespace mp
