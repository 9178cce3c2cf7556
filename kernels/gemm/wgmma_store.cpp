#include "kernels/gemm/wgmma_store.h"

#include <algorithm>

namespace mp {

namespace {

/// Returns the map of a matrix of D's shape that a warp reads or writes in subtiles.
TensorMapSpec subtile_spec(const Output &out, const Operand &x) {
  return wgmma_matrix_spec(x, out.dtype, out.m, out.n, out.batch_count, kSubtileRows);
}

bool has_map(const TensorMapSpec &spec) {
  return why_no_tensor_map(spec) == nullptr;
}

alignas(16) constexpr char kAligned = 0;

TensorMapSpec with_base(TensorMapSpec spec) {
  if (spec.base == nullptr) spec.base = &kAligned;
  return spec;
}

/// Returns whether the epilogue needs to skip padded columns, which the TMA store does not support.
bool reads_padded_columns(const Output &out) {
  const Epilogue &e = out.epilogue;
  const bool has_gaps = out.d.ld < out.n;
  return has_gaps && (e.bias != nullptr || e.amax != nullptr || e.found_inf != nullptr);
}

StorePath store_path(const Output &out, bool has_maps) {
  if (out.dtype != MP_FP32)
    return has_maps && !reads_padded_columns(out) ? StorePath::tma : StorePath::staged;
  const Epilogue &e = out.epilogue;
  const bool is_linear = e.bias == nullptr && e.aux == nullptr && e.activation == MP_ACT_NONE;
  return is_linear ? StorePath::direct : StorePath::staged;
}

}  // namespace

EpilogueSource wgmma_epilogue_source(const Output &out) {
  const Epilogue &e = out.epilogue;
  if (out.beta != 0.0f) return e.aux == nullptr ? EpilogueSource::c : EpilogueSource::several;
  if (e.aux == nullptr) return EpilogueSource::none;
  return reads_aux(e.activation) ? EpilogueSource::aux_read : EpilogueSource::aux_written;
}

Operand wgmma_source_operand(const Output &out) {
  const Epilogue &e = out.epilogue;
  return e.aux == nullptr ? out.c : Operand{e.aux, nullptr, e.ld_aux, e.stride_aux};
}

TensorMapSpec wgmma_matrix_spec(const Operand &x, mp_dtype_t dtype, int64_t rows, int64_t cols,
                                int64_t batch_count, int box_rows) {
  TensorMapSpec spec{};
  spec.base = x.base;
  spec.dtype = dtype;
  spec.extent[0] = cols;
  spec.extent[1] = rows;
  // A matrix shared by all items counts as one item.
  spec.extent[2] = x.stride != 0 ? batch_count : 1;
  spec.stride[0] = x.ld;
  spec.stride[1] = x.stride;
  spec.box[0] = 64;
  spec.box[1] = box_rows;
  spec.swizzle_128 = true;
  return spec;
}

TensorMapSpec wgmma_spec_d(const Output &out) {
  return subtile_spec(out, out.d);
}

TensorMapSpec wgmma_spec_source(const Output &out) {
  return subtile_spec(out, wgmma_source_operand(out));
}

StorePath wgmma_store_path(const Output &out, const TensorMapSpec &d,
                           const TensorMapSpec *source_map) {
  const EpilogueSource source = wgmma_epilogue_source(out);
  const bool has_source =
      source != EpilogueSource::several && source_map != nullptr && has_map(*source_map);
  return store_path(out, has_map(d) && (source == EpilogueSource::none || has_source));
}

StorePath wgmma_store_path(const Output &out) {
  const TensorMapSpec source_map = with_base(wgmma_spec_source(out));
  TensorMapSpec d = with_base(wgmma_spec_d(out));
  d.extent[0] = std::min(out.n, out.d.ld);  // without padded columns
  return wgmma_store_path(out, d, out.d.items == nullptr ? &source_map : nullptr);
}

Output aligned_for_tma_store(Output out) {
  const auto align = [](int64_t &elems) { elems = (elems + 7) / 8 * 8; };
  for (Operand *const x : {&out.c, &out.d}) {
    x->base = nullptr;
    align(x->ld);
    align(x->stride);
  }
  Epilogue &e = out.epilogue;
  if (e.aux != nullptr) e.aux = const_cast<char *>(&kAligned);
  align(e.ld_aux);
  align(e.stride_aux);
  return out;
}

Output wgmma_slices(const Output &d) {
  Output slices{d.m, d.n, d.batch_count, MP_FP32, 1, 0, {}, {}, {}};
  slices.d.ld = d.n;
  slices.d.stride = d.batch_count > 1 ? d.m * d.n : 0;
  return slices;
}

StorePath wgmma_store_path(const GemmGroup &group) {
  bool have_maps = wgmma_epilogue_source(group.common.out) == EpilogueSource::none;
  for (int64_t i = 0; have_maps && i < group.count; i++)
    have_maps = has_map(wgmma_spec_d(item_problem(group, group.items[i]).out));
  return store_path(group.common.out, have_maps);
}

}  // namespace mp
