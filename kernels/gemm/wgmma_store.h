// Store path of a wgmma kernel (wgmma_epilogue.h).  Pure: the launch makes the tensor maps of the
// path, and selection predicts its time (predict.h).
#pragma once

#include "kernels/gemm/problem.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

/// Rows of an epilogue subtile, the 64 columns wide part of a tile that a warp stores at a time.
constexpr int kSubtileRows = 16;

enum class StorePath { tma, direct, staged };

/// Matrix of D's shape that the epilogue also reads or writes.
enum class EpilogueSource { none, c, aux_read, aux_written, several };
EpilogueSource wgmma_epilogue_source(const Output &);

/// Returns the epilogue source: aux if present, else C.
Operand wgmma_source_operand(const Output &);

/// Returns the map of `rows` x `cols` matrices, one per batch item, with boxes of 64 columns.
TensorMapSpec wgmma_matrix_spec(const Operand &, mp_dtype_t, int64_t rows, int64_t cols,
                                int64_t batch_count, int box_rows);
/// Returns the map of D (of the epilogue source) for subtiles (wgmma_tma_store.h).
TensorMapSpec wgmma_spec_d(const Output &);
TensorMapSpec wgmma_spec_source(const Output &);

/// Returns the store path.  TMA requires maps of D and the source.  `source_map`: NULL if the
/// source cannot have one.
StorePath wgmma_store_path(const Output &, const TensorMapSpec &d, const TensorMapSpec *source_map);
/// Returns the store path of mp_gemm and mp_gemm_batched for selection: NULL counts as aligned.
StorePath wgmma_store_path(const Output &);
/// Returns `out` with C, D and aux aligned for tensor maps.
Output aligned_for_tma_store(Output);
/// Returns the common store path of all entries of a group.
StorePath wgmma_store_path(const GemmGroup &);

/// Returns the output that replaces `d` if k is split: dense fp32 sums of a slice, base not set.
Output wgmma_slices(const Output &d);

}  // namespace mp
