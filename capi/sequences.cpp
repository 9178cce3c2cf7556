// mpcore/sequences.h: embeddings and dropout.
#include <limits>

#include "capi/check.h"
#include "capi/context.h"
#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/backend.h"
#include "kernels/layers/layer_args.h"
#include "mpcore.h"

namespace mp {

namespace {

// ---------------------------------------------------------------------------- embeddings

struct NamedRows {
  int64_t rows;
  const char *name;
};

/// Checks the leading dimension of a matrix of embedding_dim columns.
void require_ld(int64_t ld, const char *ld_name, const mp_embedding_desc_t &d,
                const NamedRows &rows) {
  MP_REQUIRE(ld >= d.embedding_dim, MP_ERROR_INVALID_ARGUMENT, ld_name, " = ", ld,
             " is smaller than embedding_dim = ", d.embedding_dim);
  int64_t elems;
  MP_REQUIRE(strided_extent(rows.rows, ld, d.embedding_dim, &elems) && bytes_fit(elems, MP_FP32),
             MP_ERROR_INVALID_ARGUMENT, rows.name, " = ", rows.rows, " with ", ld_name, " = ", ld,
             ": size in bytes exceeds 2^63 - 1");
}

mp_embedding_desc_t read_desc(const mp_embedding_desc_t *user) {
  constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMaxColumns = int64_t{1} << 56;  // two rows of sums fit in 63 bits
  const mp_embedding_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_dtype(d.dtype_dtable, "dtype_dtable");
  require_integer_dtype(d.dtype_indices, "dtype_indices");
  require_flags(d.flags, MP_EMBEDDING_FLAG_PADDING | MP_EMBEDDING_FLAG_ACCUMULATE, "flags");
  require_not_negative(d.num_indices, "num_indices");
  MP_REQUIRE(d.num_indices <= kMaxRows, MP_ERROR_INVALID_ARGUMENT, "num_indices = ", d.num_indices,
             " exceeds ", kMaxRows);
  require_positive(d.num_embeddings, "num_embeddings");
  MP_REQUIRE((d.flags & MP_EMBEDDING_FLAG_PADDING) == 0 ||
                 (d.padding_index >= 0 && d.padding_index < d.num_embeddings),
             MP_ERROR_INVALID_ARGUMENT, "padding_index = ", d.padding_index,
             " is outside [0, num_embeddings = ", d.num_embeddings, ")");
  require_positive(d.embedding_dim, "embedding_dim");
  MP_REQUIRE(d.embedding_dim <= kMaxColumns, MP_ERROR_INVALID_ARGUMENT,
             "embedding_dim = ", d.embedding_dim, ": size in bytes exceeds 2^63 - 1");
  require_ld(d.ld_table, "ld_table", d, {d.num_embeddings, "num_embeddings"});
  require_ld(d.ld_out, "ld_out", d, {d.num_indices, "num_indices"});
  require_ld(d.ld_dtable, "ld_dtable", d, {d.num_embeddings, "num_embeddings"});
  return d;
}

void require_workspace(const mp_embedding_desc_t &d, const void *workspace, size_t bytes) {
  const size_t needed = EmbeddingWorkspace(d).bytes;
  MP_REQUIRE(bytes >= needed, MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes = ", bytes,
             " must be at least ", needed);
  if (needed > 0) require_device(workspace, "workspace", 256);
}

// ---------------------------------------------------------------------------- dropout

mp_dropout_desc_t read_desc(const mp_dropout_desc_t *user) {
  const mp_dropout_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_count(d.count, "count", d.dtype);
  MP_REQUIRE(d.p >= 0.0f && d.p < 1.0f, MP_ERROR_INVALID_ARGUMENT, "p = ", d.p,
             " is outside [0, 1)");
  require_zero(d.reserved0, "reserved0");
  return d;
}

}  // namespace

}  // namespace mp

mp_status_t mp_embedding_forward(mp_context_t context, const mp_embedding_desc_t *desc,
                                 const void *table, const void *indices, void *out,
                                 mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_embedding_desc_t d = mp::read_desc(desc);
    if (d.num_indices == 0) return;
    mp::require_device(table, "table", mp_dtype_size(d.dtype));
    mp::require_device(indices, "indices", mp_dtype_size(d.dtype_indices));
    mp::require_device(out, "out", mp_dtype_size(d.dtype));
    mp::require_apart(
        mp::matrix_region(out, "out", d.num_indices, d.embedding_dim, d.ld_out, d.dtype),
        {mp::matrix_region(table, "table", d.num_embeddings, d.embedding_dim, d.ld_table, d.dtype),
         mp::dense_region(indices, "indices", d.num_indices, d.dtype_indices)});
    c.backend.embedding_forward(
        c.device, {.desc = d, .table = table, .indices = indices, .out = out}, stream);
  });
}

mp_status_t mp_embedding_workspace_size(mp_context_t context, const mp_embedding_desc_t *desc,
                                        size_t *bytes) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    mp::require_context(context);
    const mp_embedding_desc_t d = mp::read_desc(desc);
    mp::require_pointer(bytes, "bytes") = mp::EmbeddingWorkspace(d).bytes;
  });
}

mp_status_t mp_embedding_backward(mp_context_t context, const mp_embedding_desc_t *desc,
                                  const void *indices, const void *dout, void *dtable,
                                  const mp_grad_stats_t *stats, void *workspace,
                                  size_t workspace_bytes, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_embedding_desc_t d = mp::read_desc(desc);
    const mp_grad_stats_t of_dtable = mp::read_stats(stats);
    if (d.num_indices > 0) {
      mp::require_device(indices, "indices", mp_dtype_size(d.dtype_indices));
      mp::require_device(dout, "dout", mp_dtype_size(d.dtype));
    }
    mp::require_device(dtable, "dtable", mp_dtype_size(d.dtype_dtable));
    mp::require_workspace(d, workspace, workspace_bytes);
    const mp::Region written = mp::matrix_region(dtable, "dtable", d.num_embeddings,
                                                 d.embedding_dim, d.ld_dtable, d.dtype_dtable);
    mp::require_stats_apart(of_dtable, mp::kStatsArgument, {written});
    mp::require_apart(
        written,
        {mp::matrix_region(dout, "dout", d.num_indices, d.embedding_dim, d.ld_out, d.dtype),
         mp::dense_region(indices, "indices", d.num_indices, d.dtype_indices)});
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
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_dropout_desc_t d = mp::read_desc(desc);
    mp::require_aligned(offset, "offset");
    const mp_grad_stats_t of_y = mp::read_stats(stats);
    if (d.count == 0) return;
    mp::require_device(x, "x", mp_dtype_size(d.dtype));
    mp::require_device(y, "y", mp_dtype_size(d.dtype));
    const mp::Region written = mp::dense_region(y, "y", d.count, d.dtype);
    mp::require_apart_or_same(written, mp::dense_region(x, "x", d.count, d.dtype));
    mp::require_stats_apart(of_y, mp::kStatsArgument, {written});
    c.backend.dropout(c.device, {.desc = d, .offset = offset, .x = x, .y = y, .stats = of_y},
                      stream);
  });
}
