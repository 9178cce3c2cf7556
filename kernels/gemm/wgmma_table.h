// Table of the wgmma kernels for groups, filled on the device: each entry has separate tensor maps,
// made from the templates of make_wgmma_group_args.
#pragma once

#include "kernels/gemm/wgmma_args.h"
#include "kernels/simt/sm90_tma.h"

namespace mp::MP_TARGET {

/// Describes a matrix.  `ld` is ignored if there is only one row.
MP_DEVICE TensorMapMatrix map_matrix(const void *base, int32_t rows, int32_t cols, int64_t ld) {
  constexpr int64_t kElemBytes = 2, kRowUnit = 8;  // elements: 16 bytes
  const int64_t step = rows > 1 ? ld : ceil_div<int64_t>(cols, kRowUnit) * kRowUnit;
  return {base, cols, rows, step * kElemBytes};
}

/// Fills one entry, in one thread.  Even if m0 or k0 is nonzero, the maps begin at row and k 0;
/// they stop at the end of the entry.
MP_DEVICE void store_group_entry(const WgmmaArgs &args, int64_t index,
                                 const GroupEntryShape &product) {
  GroupEntry &item = args.item(index);
  static_cast<GroupEntryShape &>(item) = product;
  const auto operand = [&](const void *base, int32_t mn, int64_t ld, bool by_k) {
    return map_matrix(base, by_k ? mn : product.k, by_k ? product.k : mn, ld);
  };
  const GemmProblem &p = args.problem;
  tensor_map_copy_with_matrix(&item.a, args.a,
                              operand(product.a_data, product.m, product.ld_a, p.op_a == MP_OP_N));
  tensor_map_copy_with_matrix(&item.b, args.b,
                              operand(product.b_data, product.n, product.ld_b, p.op_b == MP_OP_T));
  if (args.store == StorePath::tma)
    tensor_map_copy_with_matrix(&item.d, args.d,
                                map_matrix(product.d_data, product.m, product.n, product.ld_d));
  tensor_map_release();
}

}  // namespace mp::MP_TARGET
