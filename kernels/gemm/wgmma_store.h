// How the tiles of a wgmma kernel leave (wgmma_epilogue.h): decided here for the launch, which makes the maps, and
// for selection, which prices it (predict.h).  Pure.
#pragma once

#include "kernels/gemm/problem.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

/// A subtile: what one warp stores at a time, 64 columns wide.
constexpr int kSubtileRows = 16;

enum class StorePath { tma, direct, staged };

/// The matrix beside D that an epilogue reads or writes element by element.
enum class EpilogueSource { none, c, aux_read, aux_written, several };
EpilogueSource wgmma_epilogue_source(const Output &);

/// C or aux, where it is one of them.
Operand wgmma_source_operand(const Output &);

/// Rows of `cols` elements, `rows` of them, per batch item; in boxes of 64 columns.
TensorMapSpec wgmma_matrix_spec(const Operand &, mp_dtype_t, int64_t rows, int64_t cols,
                                int64_t batch_count, int box_rows);
/// For subtiles (wgmma_tma_store.h): of D, and of what stands beside it.
TensorMapSpec wgmma_spec_d(const Output &);
TensorMapSpec wgmma_spec_source(const Output &);

/// By subtiles only if these have maps.  `beside`: NULL where what stands beside D can have none.
StorePath wgmma_store_path(const Output &, const TensorMapSpec &d, const TensorMapSpec *source_map);
/// The same of mp_gemm and mp_gemm_batched, as selection sees them: pointers that are NULL are aligned.
StorePath wgmma_store_path(const Output &);
/// With C, D and aux aligned so that they have maps, wherever they can have one.
Output aligned_for_tma_store(Output);
/// One way for all products of a group.
StorePath wgmma_store_path(const GemmGroup &);

/// What leaves in place of `d` where k is split: the fp32 sums of a slice, dense, which have no place yet.
Output wgmma_slices(const Output &d);

}  // namespace mp
