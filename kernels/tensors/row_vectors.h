// Elementwise kernels over the rows of a matrix, in vectors of kVec adjacent elements of a row.
#pragma once

#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

constexpr int kRowRunThreads = 128;  ///< per block if the grid has more than one

/// Calls visit(row, column, valid) for each of this thread's vectors.
template <class Visit>
MP_DEVICE void for_each_row_run(int64_t rows, int64_t columns, Visit visit) {
  const int64_t runs_per_row = ceil_div<int64_t>(columns, kVec);
  for (int64_t i = block_index() * kRowRunThreads + thread_index(); i < rows * runs_per_row;
       i += grid_size() * kRowRunThreads) {
    const int64_t row = i / runs_per_row, column = (i - row * runs_per_row) * kVec;
    visit(row, column, static_cast<int>(min_of<int64_t>(columns - column, kVec)));
  }
}

/// Launches a kernel that begins with wait_for_previous_kernel() and whose warps are independent.
/// If the grid would exceed `blocks_per_sm` blocks per SM, a thread processes several vectors.  A
/// recurrent step needs few blocks: on the host target, every thread costs as much as a vector.  A
/// single block therefore has only the warps that it needs.
template <class Args>
void launch_row_runs(const char *name, void (*kernel)(MP_PARAM(Args)), const Device &device,
                     int64_t rows, int64_t columns, int blocks_per_sm, const Args &args,
                     mp_stream_t stream) {
  const int64_t runs = rows * ceil_div<int64_t>(columns, kVec);
  if (runs == 0) return;
  const int64_t warps =
      min_of<int64_t>(ceil_div<int64_t>(runs, kWarpSize), kRowRunThreads / kWarpSize);
  launch(name, kernel, device,
         {.num_blocks = min_of(ceil_div<int64_t>(runs, kRowRunThreads),
                               int64_t{device.num_sms} * blocks_per_sm),
          .num_threads = static_cast<int>(warps) * kWarpSize,
          .uses_pdl = true},
         stream, args);
}
constexpr int kBlocksOfStep = 2, kBlocksOfAllRows = 8;  // blocks per SM

}  // namespace mp::MP_TARGET
