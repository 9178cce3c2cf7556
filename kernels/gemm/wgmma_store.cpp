#include "kernels/gemm/wgmma_store.h"

#include <algorithm>

#include "base/workspace_layout.h"

namespace mp {

namespace {

TensorMapSpec subtile_spec(const Output &out, const Operand &x) {
  return wgmma_matrix_spec(x, out.dtype, out.m, out.n, out.batch_count, kSubtileRows);
}

/// Returns whether TMA can store `cols` columns of a matrix of the size of D.
bool has_map(const OutputShape &out, const MatrixLayout &x, int64_t cols) {
  const TensorMapSpec spec = wgmma_matrix_spec({nullptr, nullptr, x.ld, x.stride}, out.dtype, out.m,
                                               cols, out.batch_count, kSubtileRows);
  return x.alignment == 16 && why_no_tensor_layout(spec) == nullptr;
}

/// D lacks some columns of the product: padding of the taps of wgrad.
bool has_column_gaps(const OutputShape &out) {
  return out.d.ld < out.n;
}

}  // namespace

bool is_fast_store(const OutputShape &out) {
  const EpilogueShape &e = out.epilogue;
  return is_fast_store(has_column_gaps(out) || out.n % 8 == 0, epilogue_source(out), e.activation,
                       e.has_amax || e.has_found_inf, e.has_dbias);
}

bool can_store_directly(const OutputShape &out) {
  const auto is_aligned = [](const MatrixLayout &x) {
    return has_aligned_pairs(static_cast<uintptr_t>(x.alignment), x.ld | x.stride);
  };
  return out.n % 2 == 0 && is_aligned(out.d) && (!out.reads_c || is_aligned(out.c));
}

EpilogueSource epilogue_source(const OutputShape &out) {
  const EpilogueShape &e = out.epilogue;
  if (out.reads_c) return e.has_aux ? EpilogueSource::several : EpilogueSource::c;
  if (!e.has_aux) return EpilogueSource::none;
  return reads_aux(e.activation) ? EpilogueSource::aux_read : EpilogueSource::aux_written;
}

StorePath store_path_with(const OutputShape &out, bool has_maps) {
  const EpilogueShape &e = out.epilogue;
  if (out.dtype == MP_FP32) {
    const bool is_linear = !e.has_bias && !e.has_aux && e.activation == MP_ACT_NONE;
    return is_linear ? StorePath::direct : StorePath::staged;
  }
  // A subtile also contains the columns that D lacks.
  const bool reads_gaps = has_column_gaps(out) && (e.has_bias || e.has_amax || e.has_found_inf);
  return has_maps && !reads_gaps ? StorePath::tma : StorePath::staged;
}

StorePath wgmma_store_path(const OutputShape &out) {
  const EpilogueSource source = epilogue_source(out);
  const MatrixLayout &beside = source == EpilogueSource::c ? out.c : out.epilogue.aux;
  // Only a batch with strides has a map of C or aux.
  const bool has_source = source == EpilogueSource::none ||
                          (source != EpilogueSource::several && out.items == ItemAccess::strided &&
                           has_map(out, beside, out.n));
  return store_path_with(out, has_source && has_map(out, out.d, std::min(out.n, out.d.ld)));
}

StorePath wgmma_store_path(const GemmGroup &group) {
  const OutputShape common = shape_of(group.common.out);
  bool have_maps = epilogue_source(common) == EpilogueSource::none;
  for (int64_t i = 0; have_maps && i < group.count; i++) {
    const OutputShape out = shape_of(item_problem(group, group.items[i]).out);
    have_maps = has_map(out, out.d, out.n);
  }
  return store_path_with(common, have_maps);
}

OutputShape aligned_for_tma_store(OutputShape out) {
  for (MatrixLayout *const x : {&out.c, &out.d, &out.epilogue.aux}) {
    x->alignment = 16;
    x->ld = align_up(x->ld, 8);
    x->stride = align_up(x->stride, 8);
  }
  return out;
}

OutputShape split_k_output(const OutputShape &out) {
  OutputShape sums{};
  sums.m = out.m;
  sums.n = out.n;
  sums.batch_count = out.batch_count;
  sums.dtype = MP_FP32;
  sums.d = {.ld = out.n, .stride = out.batch_count > 1 ? out.m * out.n : 0};
  return sums;
}

// ---------------------------------------------------------------------------- tensor maps

TensorMapSpec wgmma_matrix_spec(const Operand &x, mp_dtype_t dtype, int64_t rows, int64_t cols,
                                int64_t batch_count, int box_rows) {
  TensorMapSpec spec{};
  spec.base = x.base;
  spec.dtype = dtype;
  spec.extent[0] = cols;
  spec.extent[1] = rows;
  spec.extent[2] = x.stride != 0 ? batch_count : 1;  // a matrix that all items share is one item
  spec.stride[0] = x.ld;
  spec.stride[1] = x.stride;
  spec.box[0] = 64;
  spec.box[1] = box_rows;
  spec.swizzle_128 = true;
  return spec;
}

Operand wgmma_source_operand(const Output &out) {
  const Epilogue &e = out.epilogue;
  return e.aux == nullptr ? out.c : Operand{e.aux, nullptr, e.ld_aux, e.stride_aux};
}

TensorMapSpec wgmma_spec_d(const Output &out) {
  return subtile_spec(out, out.d);
}

TensorMapSpec wgmma_spec_source(const Output &out) {
  return subtile_spec(out, wgmma_source_operand(out));
}

}  // namespace mp
