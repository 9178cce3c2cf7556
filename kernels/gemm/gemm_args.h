// Launch arguments of the GEMM kernels, the launch functions of each family, and the dispatch to
// compiled kernels.
#pragma once

#include <type_traits>
#include <utility>

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tile_scheduler.h"
#include "kernels/gemm/tiles.h"
#include "kernels/simt/half.h"

namespace mp::MP_TARGET {

struct GemmArgs {
  GemmProblem problem;
  TileScheduler scheduler;
  int64_t slice_k;                ///< elements of k per slice; k itself without a split
  float *partial_sums;            ///< NULL without a split; else [slice][batch item][m][n]
  const uint32_t *required_flag;  ///< WMMA: computes D only if it is not 0; NULL = always
  const int32_t *ends;            ///< mp_gemm_ragged: ends of the groups; else NULL
  mp_ragged_t ragged;             ///< the dimension that they are ends in
};

/// Numbers the tiles of `count` products of m x n.
TileScheduler make_scheduler(int64_t m, int64_t n, int64_t count, int32_t split_k,
                             const GemmKernel &, const Device &);
/// Arguments without the partial sums of a split.
GemmArgs make_gemm_args(const GemmProblem &, const GemmKernel &, int32_t split_k, const Device &);

/// Enqueues the copies of a plan, if it has any, at the beginning of the workspace: A's, then B's.
/// Returns the problem that reads them.
GemmProblem launch_aligned_copies(const Device &, const GemmProblem &, const AlignedCopies &,
                                  void *workspace, mp_stream_t);

/// One mp_gemm: the main loop and the passes after it.
void gemm(const Device &, const GemmProblem &, const GemmPlan &, const Workspace &, mp_stream_t);

/// Main loop, with the sum over the slices of k.
void launch_wgmma(const GemmPlan &, const Device &, const GemmArgs &, std::byte *workspace,
                  mp_stream_t);

void launch_wmma(const char *name, const GemmKernel &, const Device &, const GemmArgs &,
                 mp_stream_t);
/// Needs m <= kThinMaxRows.
void launch_thin(const GemmPlan &, const Device &, const GemmArgs &, mp_stream_t);
/// Needs m or n <= 16.
void launch_gemv(const GemmPlan &, const Device &, const GemmArgs &, mp_stream_t);
void launch_simt(const GemmPlan &, const Device &, const GemmArgs &, mp_stream_t);

/// Enqueues D = epilogue(sum of the slices, in order), after a split main loop.
/// @param cancel_flag  the kernel computes D only if it is 0; NULL = always
void launch_split_k_sum(const Device &, const Output &, int32_t split_k, const float *partial_sums,
                        mp_stream_t, const uint32_t *cancel_flag = nullptr);

/// Destination of the subtile sums of the main loop; base is NULL if it stores none.
ColumnPartials column_partials(const std::optional<DbiasPlan> &, void *workspace);
/// Enqueues epilogue.dbias[col] = sum of D over rows and batch items.
void launch_column_sum(const Device &, const Output &, const DbiasPlan &, void *workspace,
                       mp_stream_t);

// ---------------------------------------------------------------------------- dispatch

// From run-time values to the template arguments of compiled kernels; kernels/simt/half.h does the
// same for element types.

template <auto value>
using Value = std::integral_constant<decltype(value), value>;

/// Calls f(op of A, op of B).
MP_CALLS_EITHER
template <class F>
MP_HD void with_ops(mp_op_t a, mp_op_t b, const F &f) {
  const auto with_b = [&](auto of_a) {
    if (b == MP_OP_N)
      f(of_a, Value<MP_OP_N>{});
    else
      f(of_a, Value<MP_OP_T>{});
  };
  if (a == MP_OP_N)
    with_b(Value<MP_OP_N>{});
  else
    with_b(Value<MP_OP_T>{});
}

/// Calls f(shape) for the kernel's tile, which must be in the list.
template <class List, class F>
void with_tile(List, const GemmKernel &kernel, const F &f) {
  const auto call_if_equal = [&]<size_t i>(Value<i>) {
    constexpr GemmTile kTile = static_cast<GemmTile>(i);
    if constexpr ((List::kSet & gemm_tiles(kTile)) != 0) {
      if (kernel.tile == kTile) {
        f(std::type_identity<TileShape<kTile>>{});
        return true;
      }
    }
    return false;
  };
  const auto call_any = [&]<size_t... i>(std::index_sequence<i...>) {
    return (... || call_if_equal(Value<i>{}));
  };
  if (!call_any(std::make_index_sequence<kNumGemmTiles>()))
    throw_target_error(MP_ERROR_INTERNAL, "kernel %s is not compiled", kernel.name);
}

}  // namespace mp::MP_TARGET
