// Where the sums of each slice of k wait for split_k.cu to add them up.
#pragma once

#include "kernels/gemm/problem.h"
#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// Elements of one slice.  Layout [slice][batch item][m][n].
MP_HD int64_t slice_elems(const Output &out) {
  return out.batch_count * out.m * out.n;
}

/// Of one slice and batch item at (row, col).
template <class T>
MP_DEVICE T *partial_sum(T *partial_sums, const Output &out, int slice, int64_t item, int64_t row,
                         int64_t col) {
  return partial_sums + slice * slice_elems(out) + (item * out.m + row) * out.n + col;
}

}  // namespace mp::MP_TARGET
