// What the GEMM kernels are launched with, and how gemm.cu reaches each family.
#pragma once

#include "kernels/gemm/dbias.h"
#include "kernels/gemm/operand.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tile_scheduler.h"
#include "kernels/gemm/tiles.h"

namespace mp {
struct AlignedCopies;
}

namespace mp::MP_TARGET {

struct GemmArgs {
  GemmProblem problem;
  TileScheduler scheduler;
  int64_t slice_k;          ///< elements of k per slice; k itself without a split
  float *partial_sums;      ///< NULL without a split; else [slice][batch item][m][n]
  const uint32_t *only_if;  ///< WMMA: do nothing if this is 0 when the kernel runs; NULL = always
  const int32_t *ends;      ///< of the groups of mp_gemm_ragged; NULL elsewhere
  mp_ragged_t ragged;       ///< the dimension that they are ends in
  ColumnPartials column_partials;  ///< wgmma: to be left there for dbias, unless base is NULL
};

/// Without a split's workspace.
GemmArgs make_gemm_args(const GemmProblem &, const GemmPlan &, const Device &);

/// Enqueues the copies; returns the problem that reads them.
GemmProblem launch_aligned_copies(const Device &, const GemmProblem &, const AlignedCopies &,
                                  void *workspace, mp_stream_t);

/// One mp_gemm: the main loop and the passes behind it.
void gemm(const Device &, const GemmProblem &, const GemmPlan &, const Workspace &, mp_stream_t);

/// The whole of it: also the sum over the slices of k.
void launch_wgmma(const GemmPlan &, const Device &, const GemmArgs &, std::byte *workspace,
                  mp_stream_t);

void launch_wmma(const GemmPlan &, const Device &, const GemmArgs &, mp_stream_t);
/// Needs m or n <= 16.
void launch_gemv(const GemmPlan &, const Device &, const GemmArgs &, mp_stream_t);
void launch_simt(const GemmPlan &, const Device &, const GemmArgs &, mp_stream_t);

/// D = epilogue(sum of the slices, in order), after a split main loop; partial_sums as in GemmArgs.
/// @param skip_if  do nothing unless this is 0 when the kernel runs; NULL = always
void launch_split_k_sum(const Device &, const Output &, int32_t split_k, const float *partial_sums,
                        mp_stream_t, const uint32_t *skip_if = nullptr);

/// Where the main loop is to leave the sums of subtiles, if anywhere.
ColumnPartials column_partials(const std::optional<DbiasPlan> &, void *workspace);
/// epilogue.dbias[col] = sum over rows and batch items of D.
void launch_column_sum(const Device &, const Output &, const DbiasPlan &, void *workspace,
                       mp_stream_t);

}  // namespace mp::MP_TARGET
