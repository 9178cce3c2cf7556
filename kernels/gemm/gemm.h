// Launch arguments of the GEMM kernels, and the launch functions of each family.
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
  int64_t slice_k;                 ///< elements of k per slice; k itself without a split
  float *partial_sums;             ///< NULL without a split; else [slice][batch item][m][n]
  const uint32_t *only_if;         ///< WMMA: returns at once if 0 when it runs; NULL = always run
  const int32_t *ends;             ///< ends of the groups of mp_gemm_ragged; otherwise NULL
  mp_ragged_t ragged;              ///< dimension of the ends
  ColumnPartials column_partials;  ///< wgmma: destination for dbias, unless base is NULL
};

/// Returns the arguments, without the workspace of split-k.
GemmArgs make_gemm_args(const GemmProblem &, const GemmPlan &, const Device &);

/// Enqueues the copies and returns the problem that reads them.
GemmProblem launch_aligned_copies(const Device &, const GemmProblem &, const AlignedCopies &,
                                  void *workspace, mp_stream_t);

/// Enqueues one mp_gemm: the main loop and the passes before and after it.
void gemm(const Device &, const GemmProblem &, const GemmPlan &, const Workspace &, mp_stream_t);

/// Enqueues the wgmma kernel and, if k is split, the sum of the slices.
void launch_wgmma(const GemmPlan &, const Device &, const GemmArgs &, std::byte *workspace,
                  mp_stream_t);

void launch_wmma(const GemmPlan &, const Device &, const GemmArgs &, mp_stream_t);
/// Enqueues the gemv kernel.  Requires m or n <= 16.
void launch_gemv(const GemmPlan &, const Device &, const GemmArgs &, mp_stream_t);
void launch_simt(const GemmPlan &, const Device &, const GemmArgs &, mp_stream_t);

/// Enqueues D = epilogue(sum of the slices, in order), after a split main loop.
/// @param skip_if  the kernel returns unless this is 0 when it runs; NULL = always run
void launch_split_k_sum(const Device &, const Output &, int32_t split_k, const float *partial_sums,
                        mp_stream_t, const uint32_t *skip_if = nullptr);

/// Returns the destination of the partial column sums; base is NULL if there is none.
ColumnPartials column_partials(const std::optional<DbiasPlan> &, void *workspace);
/// Enqueues epilogue.dbias[col] = sum of D over rows and batch items.
void launch_column_sum(const Device &, const Output &, const DbiasPlan &, void *workspace,
                       mp_stream_t);

}  // namespace mp::MP_TARGET
