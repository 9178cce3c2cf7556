// Layout of the partial sums of each slice of k, which split_k.cu adds.
#pragma once

#include "kernels/gemm/problem.h"
#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// Returns the elements of one slice.  Layout: [slice][batch item][m][n].
MP_HD int64_t slice_elems(const Output &out) {
  return out.batch_count * out.m * out.n;
}

/// Returns the address of the element (row, col) of a slice and batch item.
template <class T>
MP_DEVICE T *partial_sum(T *partial_sums, const Output &out, int slice, int64_t item, int64_t row,
                         int64_t col) {
  return partial_sums + slice * slice_elems(out) + (item * out.m + row) * out.n + col;
}

}  // namespace mp::MP_TARGET
