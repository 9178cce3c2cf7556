// What the GEMM kernels are launched with, and how gemm.cu reaches each family.
#pragma once

#include "kernels/gemm/operand.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tiles.h"

namespace mp::MP_TARGET {

struct GemmArgs {
  GemmProblem problem;
  TileSchedule schedule;
  int64_t slice_k;      ///< elements of k per slice; k itself without a split
  float *partial_sums;  ///< NULL without a split; else [slice][batch item][m][n]
};

void launch_wmma_fp16(const GemmChoice &, const Device &, const GemmArgs &, mp_stream_t);
void launch_wmma_bf16(const GemmChoice &, const Device &, const GemmArgs &, mp_stream_t);
void launch_simt(const GemmChoice &, const Device &, const GemmArgs &, mp_stream_t);

/// D = epilogue(sum of the slices, in order), after a split main loop.
void launch_split_k_sum(const Device &, const GemmArgs &, mp_stream_t);

/// epilogue.dbias[col] = sum over rows and batch items of D.
void launch_column_sum(const Device &, const GemmProblem &, mp_stream_t);

}  // namespace mp::MP_TARGET
