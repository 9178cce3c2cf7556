// Store paths of the tiles of a Hopper kernel (wgmma_epilogue.h), and the tensor maps of D and of
// the epilogue source.  Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/plan.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

/// Condition of the fast TMA store, for kernel and cost model: alpha, bias and ReLU only.
/// @param whole_units     TMA stores every column of a row in units of 16 bytes
/// @param sums_subtiles   the epilogue stores column sums of subtiles
MP_HD constexpr bool is_fast_store(bool whole_units, EpilogueSource source,
                                   mp_activation_t activation, bool has_statistics,
                                   bool sums_subtiles) {
  return whole_units && source == EpilogueSource::none &&
         (activation == MP_ACT_NONE || activation == MP_ACT_RELU) && !has_statistics &&
         !sums_subtiles;
}
bool is_fast_store(const OutputShape &);

/// Condition of the direct store, for kernel and cost model: every row of an fp32 matrix begins at
/// a pair.
/// @param address  any number with the alignment of the matrix
MP_HD constexpr bool has_aligned_pairs(uintptr_t address, int64_t ld) {
  return address % (2 * sizeof(float)) == 0 && ld % 2 == 0;
}
bool can_store_directly(const OutputShape &);

EpilogueSource epilogue_source(const OutputShape &);
/// Store path of one product or batch without a split.
StorePath wgmma_store_path(const OutputShape &);
/// Store path of all products of a group.
StorePath wgmma_store_path(const GemmGroup &);
/// C, D and aux aligned for tensor maps, wherever these can exist.
OutputShape aligned_for_tma_store(OutputShape);
/// 16-bit D with tensor maps is stored by TMA, fp32 D with alpha and beta directly, and the rest
/// staged.
StorePath store_path_with(const OutputShape &, bool has_maps);

/// Output of a split main loop in place of `out`: dense fp32 partial sums.
OutputShape split_k_output(const OutputShape &out);

// ---------------------------------------------------------------------------- tensor maps

/// Rows of `cols` elements, `rows` of them per batch item, in boxes of 64 columns.
TensorMapSpec wgmma_matrix_spec(const Operand &, mp_dtype_t, int64_t rows, int64_t cols,
                                int64_t batch_count, int box_rows);
/// D, in boxes of one subtile (wgmma_tma_store.h).
TensorMapSpec wgmma_spec_d(const Output &);
/// C or aux, whichever the epilogue reads or writes.
TensorMapSpec wgmma_spec_source(const Output &);
Operand wgmma_source_operand(const Output &);

// ---------------------------------------------------------------------------- table of products

/// The table of a group or batch by pointers: a header, followed by the entries (wgmma_args.h).
constexpr size_t kWgmmaTableHeaderBytes = 256, kWgmmaItemBytes = 512;
/// mp_gemm_grouped: products in the parameters of one launch that fills the table.
constexpr int kWgmmaProductsPerLaunch = 320;
constexpr int64_t kWgmmaItemsPerBlock = 512;  ///< in the kernel that fills a table

constexpr size_t wgmma_table_bytes(int64_t items) {
  return kWgmmaTableHeaderBytes + static_cast<size_t>(items) * kWgmmaItemBytes;
}

}  // namespace mp
