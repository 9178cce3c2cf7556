// mpcore/sequences.h: embeddings, dropout, rotary embeddings, softmax.
#include <algorithm>
#include <limits>

#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/layers/layer_args.h"

using namespace mp;

namespace {

// ---------------------------------------------------------------------------- embeddings

mp_embedding_desc_t read_desc(const mp_embedding_desc_t *user) {
  constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMaxColumns = int64_t{1} << 56;  // two rows of sums fit in 63 bits
  const mp_embedding_desc_t d = read_struct(user, "desc");
  MP_CHECK_FIELDS(require_dtype, d, dtype, dtype_dtable);
  require_integer_dtype(d.dtype_indices, "dtype_indices");
  require_flags(d.flags, MP_EMBEDDING_FLAG_PADDING | MP_EMBEDDING_FLAG_ACCUMULATE, "flags");
  require_not_negative(d.num_indices, "num_indices");
  require_at_most(d.num_indices, "num_indices", kMaxRows);
  require_positive(d.num_embeddings, "num_embeddings");
  MP_REQUIRE((d.flags & MP_EMBEDDING_FLAG_PADDING) == 0 ||
                 (d.padding_index >= 0 && d.padding_index < d.num_embeddings),
             MP_ERROR_INVALID_ARGUMENT, "padding_index = ", d.padding_index,
             " is outside [0, num_embeddings = ", d.num_embeddings, ")");
  require_positive(d.embedding_dim, "embedding_dim");
  MP_REQUIRE(d.embedding_dim <= kMaxColumns, MP_ERROR_INVALID_ARGUMENT,
             "embedding_dim = ", d.embedding_dim, ": size in bytes exceeds 2^63 - 1");
  const NamedNumber embeddings{d.num_embeddings, "num_embeddings"};
  const NamedNumber columns{d.embedding_dim, "embedding_dim"};
  require_matrix(embeddings, columns, {d.ld_table, "ld_table"}, MP_FP32);
  require_matrix({d.num_indices, "num_indices"}, columns, {d.ld_out, "ld_out"}, MP_FP32);
  require_matrix(embeddings, columns, {d.ld_dtable, "ld_dtable"}, MP_FP32);
  return d;
}

// ---------------------------------------------------------------------------- dropout

mp_dropout_desc_t read_desc(const mp_dropout_desc_t *user) {
  const mp_dropout_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_count(d.count, "count", d.dtype);
  require_fraction(d.p, "p");
  require_zero(d.reserved0, "reserved0");
  return d;
}

// ---------------------------------------------------------------------------- rotary embeddings

/// Fails if two elements of a tensor with these strides share an address, or if the size in bytes
/// overflows.
void require_strides(const mp_rope_desc_t &d) {
  if (d.rows == 0 || d.heads == 0) return;
  if (d.heads > 1) require_at_least({d.x_head, "x_head"}, {d.head_dim, "head_dim"});
  if (d.rows > 1) require_at_least({d.x_row, "x_row"}, {d.head_dim, "head_dim"});
  int64_t of_heads, of_rows, elems;
  MP_REQUIRE(strided_extent(d.heads, d.x_head, d.head_dim, &of_heads) &&
                 strided_extent(d.rows, d.x_row, d.head_dim, &of_rows) &&
                 strided_extent(d.rows, d.x_row, of_heads, &elems) && bytes_fit(elems, d.dtype),
             MP_ERROR_INVALID_ARGUMENT, "rows = ", d.rows, " with x_row = ", d.x_row,
             " and x_head = ", d.x_head, ": size in bytes exceeds 2^63 - 1");
  MP_REQUIRE(d.rows == 1 || d.heads == 1 || d.x_row >= of_heads || d.x_head >= of_rows,
             MP_ERROR_INVALID_ARGUMENT, "x_row = ", d.x_row, " with x_head = ", d.x_head,
             ": rows overlap");
}

/// Returns the descriptor with strides and period that are not 0.
mp_rope_desc_t read_desc(const mp_rope_desc_t *user) {
  mp_rope_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  MP_CHECK_FIELDS(require_not_negative, d, rows, heads);
  require_within(d.rotary_dim, "rotary_dim", 2, kMaxRotaryDim);
  MP_REQUIRE(d.rotary_dim % 2 == 0, MP_ERROR_INVALID_ARGUMENT, "rotary_dim = ", d.rotary_dim,
             " must be even");
  require_at_least({d.head_dim, "head_dim"}, {d.rotary_dim, "rotary_dim"});
  require_flags(d.flags, MP_ROPE_FLAG_INTERLEAVED | MP_ROPE_FLAG_INVERSE, "flags");
  MP_CHECK_FIELDS(require_not_negative, d, x_row, x_head);
  require_finite(d.base, "base");
  MP_REQUIRE(d.base > 0.0f, MP_ERROR_INVALID_ARGUMENT, "base = ", d.base, " must be positive");
  require_zero(d.reserved0, "reserved0");
  require_not_negative(d.period, "period");
  if (d.x_head == 0) d.x_head = d.head_dim;
  if (d.x_row == 0)
    MP_REQUIRE(multiply_add(d.heads, d.x_head, 0, &d.x_row), MP_ERROR_INVALID_ARGUMENT,
               "x_head = ", d.x_head, " with heads = ", d.heads,
               ": size in bytes exceeds 2^63 - 1");
  if (d.period == 0) d.period = d.rows;
  require_strides(d);
  return d;
}

Region rope_region(const mp_rope_desc_t &d, const void *data, const char *name) {
  return strided_region(data, name, d.head_dim, {d.heads, d.x_head}, {d.rows, d.x_row}, d.dtype);
}

// ---------------------------------------------------------------------------- softmax

/// Returns the descriptor with mask_rows from 1 to rows, or 0 if rows is 0.
mp_softmax_desc_t read_desc(const mp_softmax_desc_t *user) {
  mp_softmax_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_enum(d.mask, "mask");
  require_flags(d.flags, MP_SOFTMAX_FLAG_LOG, "flags");
  MP_CHECK_FIELDS(require_not_negative, d, rows, columns);
  const NamedNumber rows{d.rows, "rows"}, columns{d.columns, "columns"};
  require_matrix(rows, columns, {d.ld_x, "ld_x"}, d.dtype);
  require_matrix(rows, columns, {d.ld_y, "ld_y"}, d.dtype);
  require_finite(d.scale, "scale");
  require_not_negative(d.mask_rows, "mask_rows");
  if (d.mask_rows == 0) d.mask_rows = d.rows;
  if (d.mask == MP_SOFTMAX_MASK_ADDITIVE) {
    require_dtype(d.dtype_mask, "dtype_mask");
    const int64_t mask_rows = std::min(d.mask_rows, d.rows);
    require_matrix({mask_rows, "rows"}, columns, {d.ld_mask, "ld_mask"}, d.dtype_mask);
  }
  return d;
}

Region softmax_input(const mp_softmax_desc_t &d, const void *data, const char *name) {
  return matrix_region(data, name, d.rows, d.columns, d.ld_x, d.dtype);
}
Region softmax_output(const mp_softmax_desc_t &d, const void *data, const char *name) {
  return matrix_region(data, name, d.rows, d.columns, d.ld_y, d.dtype);
}

/// Returns the region of the lengths, or of an additive mask.
Region mask_region(const mp_softmax_desc_t &d, const void *mask) {
  if (d.mask == MP_SOFTMAX_MASK_LENGTHS)
    return dense_region(mask, "mask", (d.rows - 1) / d.mask_rows + 1, MP_INT32);
  if (d.mask != MP_SOFTMAX_MASK_ADDITIVE) return {};
  return matrix_region(mask, "mask", std::min(d.mask_rows, d.rows), d.columns, d.ld_mask,
                       d.dtype_mask);
}

/// Fails if an output in place of an input has another leading dimension.
void require_same_ld(const mp_softmax_desc_t &d, const Region &out, const Region &in) {
  MP_REQUIRE(out.data != in.data || d.ld_y == d.ld_x, MP_ERROR_INVALID_ARGUMENT, "ld_y = ", d.ld_y,
             " must equal ld_x = ", d.ld_x, " if ", out.name, " = ", in.name);
}

}  // namespace

mp_status_t mp_embedding_forward(mp_context_t context, const mp_embedding_desc_t *desc,
                                 const void *table, const void *indices, void *out,
                                 mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    if (d.num_indices == 0) return;
    const int64_t columns = d.embedding_dim;
    require_tensors(
        {{matrix_region(table, "table", d.num_embeddings, columns, d.ld_table, d.dtype), kReads},
         {dense_region(indices, "indices", d.num_indices, d.dtype_indices), kReads},
         {matrix_region(out, "out", d.num_indices, columns, d.ld_out, d.dtype), kWrites}});
    c.backend.embedding_forward(
        c.device, {.desc = d, .table = table, .indices = indices, .out = out}, stream);
  });
}

mp_status_t mp_embedding_workspace_size(mp_context_t context, const mp_embedding_desc_t *desc,
                                        size_t *bytes) {
  return call(__func__, context, desc, read_desc, [&](const auto &, const auto &d) {
    require_pointer(bytes, "bytes") = EmbeddingWorkspace(d).bytes;
  });
}

mp_status_t mp_embedding_backward(mp_context_t context, const mp_embedding_desc_t *desc,
                                  const void *indices, const void *dout, void *dtable,
                                  const mp_grad_stats_t *stats, void *workspace,
                                  size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_grad_stats_t of_dtable = read_stats(stats);
    const size_t bytes = EmbeddingWorkspace(d).bytes;
    require_workspace(workspace, workspace_bytes, bytes);
    const int64_t columns = d.embedding_dim;
    require_tensors(
        {{dense_region(indices, "indices", d.num_indices, d.dtype_indices), kReads},
         {matrix_region(dout, "dout", d.num_indices, columns, d.ld_out, d.dtype), kReads},
         {matrix_region(dtable, "dtable", d.num_embeddings, columns, d.ld_dtable, d.dtype_dtable),
          kWrites},
         {workspace_region(workspace, bytes), kMayWrite}},
        of_dtable, kStatsArgument);
    c.backend.embedding_backward(c.device,
                                 {.desc = d,
                                  .indices = indices,
                                  .dout = dout,
                                  .dtable = dtable,
                                  .stats = of_dtable,
                                  .workspace = workspace},
                                 stream);
  });
}

mp_status_t mp_dropout(mp_context_t context, const mp_dropout_desc_t *desc, const uint64_t *offset,
                       const void *x, void *y, const mp_grad_stats_t *stats, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    require_aligned(offset, "offset");
    const mp_grad_stats_t of_y = read_stats(stats);
    if (d.count == 0) return;
    require_tensors({{dense_region(offset, "offset"), kMayRead},
                     {dense_region(x, "x", d.count, d.dtype), kReads},
                     {dense_region(y, "y", d.count, d.dtype), kWrites, {"x"}}},
                    of_y, kStatsArgument);
    c.backend.dropout(c.device, {.desc = d, .offset = offset, .x = x, .y = y, .stats = of_y},
                      stream);
  });
}

mp_status_t mp_rope(mp_context_t context, const mp_rope_desc_t *desc, const int32_t *positions,
                    const float *inv_freq, const void *x, void *y, const mp_grad_stats_t *stats,
                    mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    require_aligned(positions, "positions");
    require_aligned(inv_freq, "inv_freq");
    const mp_grad_stats_t of_y = read_stats(stats);
    if (d.rows == 0 || d.heads == 0) return;
    require_tensors({{dense_region(positions, "positions", d.rows), kMayRead},
                     {dense_region(inv_freq, "inv_freq", d.rotary_dim / 2), kMayRead},
                     {rope_region(d, x, "x"), kReads},
                     {rope_region(d, y, "y"), kWrites, {"x"}}},
                    of_y, kStatsArgument);
    c.backend.rope(
        c.device,
        {.desc = d, .positions = positions, .inv_freq = inv_freq, .x = x, .y = y, .stats = of_y},
        stream);
  });
}

mp_status_t mp_softmax_forward(mp_context_t context, const mp_softmax_desc_t *desc, const void *x,
                               const void *mask, void *y, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    if (d.rows == 0 || d.columns == 0) return;
    const Region of_x = softmax_input(d, x, "x"), of_y = softmax_output(d, y, "y");
    require_tensors({{of_x, kReads}, {mask_region(d, mask), kReads}, {of_y, kWrites, {"x"}}});
    require_same_ld(d, of_y, of_x);
    c.backend.softmax_forward(c.device, {.desc = d, .mask = mask, .x = x, .out = y}, stream);
  });
}

mp_status_t mp_softmax_backward(mp_context_t context, const mp_softmax_desc_t *desc, const void *y,
                                const void *dy, const void *mask, void *dx,
                                const mp_grad_stats_t *stats, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, auto d) {
    if (d.mask == MP_SOFTMAX_MASK_ADDITIVE) d.mask = MP_SOFTMAX_MASK_NONE;  // not read
    const mp_grad_stats_t of_dx = read_stats(stats);
    if (d.rows == 0 || d.columns == 0) return;
    const Region of_y = softmax_output(d, y, "y"), of_dy = softmax_output(d, dy, "dy");
    const Region written = softmax_input(d, dx, "dx");
    require_tensors({{of_y, kReads},
                     {of_dy, kReads},
                     {mask_region(d, mask), kReads},
                     {written, kWrites, {"y", "dy"}}},
                    of_dx, kStatsArgument);
    for (const Region &in : {of_y, of_dy}) require_same_ld(d, written, in);
    c.backend.softmax_backward(
        c.device, {.desc = d, .mask = mask, .y = y, .dy = dy, .out = dx, .stats = of_dx}, stream);
  });
}
