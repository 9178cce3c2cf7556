// Where the sums of each slice of k wait for split_k.cu to add them up.
#pragma once

#include "kernels/gemm/problem.h"
#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// Of one slice and batch item at (row, col).  Layout [slice][batch item][m][n].
template <class T>
MP_DEVICE T *partial_sum(T *partial_sums, const Output &out, int slice, int64_t item, int64_t row,
                         int64_t col) {
  const int64_t matrix = slice * out.batch_count + item;
  return partial_sums + (matrix * out.m + row) * out.n + col;
}

}  // namespace mp::MP_TARGET
