// mpcore/norm.h.
#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/layers/layer_args.h"

using namespace mp;

namespace {

constexpr int64_t kMaxColumns = 65536;

// ---------------------------------------------------------------------------- descriptor

struct Stride {
  int64_t &elems;
  const char *name;
};

/// Sets strides of 0 to their defaults and checks both.
void resolve_strides(const mp_norm_desc_t &d, const Stride &row, const Stride &group) {
  const auto require_stride = [&](const Stride &stride) {
    require_at_least({stride.elems, stride.name}, {d.columns, "columns"});
  };
  const auto require_size = [&](bool fits, const Stride &stride) {
    MP_REQUIRE(fits, MP_ERROR_INVALID_ARGUMENT, stride.name, " = ", stride.elems,
               " with rows = ", d.rows, ", groups = ", d.groups,
               ": size in bytes exceeds 2^63 - 1");
  };
  if (group.elems == 0) group.elems = d.columns;
  require_stride(group);
  int64_t dense_row, row_extent, elems;
  require_size(multiply_add(d.groups, group.elems, 0, &dense_row), group);
  if (row.elems == 0) row.elems = dense_row;
  require_stride(row);
  require_size(strided_extent(d.groups, group.elems, d.columns, &row_extent) &&
                   strided_extent(d.rows, row.elems, row_extent, &elems) &&
                   bytes_fit(elems, d.dtype),
               row);
  // Either the vectors of a row are adjacent, or the rows of a group.
  const bool overlap = d.rows > 1 && d.groups > 1 && row.elems < row_extent &&
                       group.elems < (d.rows - 1) * row.elems + d.columns;
  MP_REQUIRE(!overlap, MP_ERROR_INVALID_ARGUMENT, row.name, " = ", row.elems, ", ", group.name,
             " = ", group.elems, ": vectors overlap");
}

mp_norm_desc_t read_desc(const mp_norm_desc_t *user) {
  mp_norm_desc_t d = read_struct(user, "desc");
  require_enum(d.kind, "kind");
  MP_CHECK_FIELDS(require_dtype, d, dtype, dtype_residual);
  MP_REQUIRE(d.dtype_residual == d.dtype || d.dtype_residual == MP_FP32, MP_ERROR_INVALID_ARGUMENT,
             "dtype_residual = ", d.dtype_residual, " must be dtype = ", d.dtype, " or MP_FP32");
  require_not_negative(d.rows, "rows");
  require_positive(d.columns, "columns");
  require_at_most(d.columns, "columns", kMaxColumns);
  require_positive(d.groups, "groups");
  require_flags(d.flags, MP_NORM_FLAG_ZERO_CENTERED | MP_NORM_FLAG_ACCUMULATE, "flags");
  int64_t elems;
  MP_REQUIRE(multiply_add(d.rows, d.groups * d.columns, 0, &elems) && bytes_fit(elems, MP_FP32),
             MP_ERROR_INVALID_ARGUMENT, "rows = ", d.rows, " with groups = ", d.groups,
             ", columns = ", d.columns, ": size in bytes exceeds 2^63 - 1");
  resolve_strides(d, {d.x_row, "x_row"}, {d.x_group, "x_group"});
  resolve_strides(d, {d.y_row, "y_row"}, {d.y_group, "y_group"});
  require_finite_not_negative(d.epsilon, "epsilon");
  require_fraction(d.dropout, "dropout");
  return d;
}

// ---------------------------------------------------------------------------- tensors

/// Checks an output with the strides of one side that is an input with those of the other.
void require_in_place(const mp_norm_desc_t &d, const void *out, const char *out_name,
                      const void *in, const char *in_name) {
  MP_REQUIRE(out != in || (d.x_row == d.y_row && d.x_group == d.y_group), MP_ERROR_INVALID_ARGUMENT,
             out_name, " = ", in_name, ": strides of x and y must be equal");
}

/// Fails if a tensor of another kind of normalization is present.
void require_layer(const mp_norm_desc_t &d, const float *tensor, const char *name) {
  MP_REQUIRE(d.kind == MP_NORM_LAYER || tensor == nullptr, MP_ERROR_INVALID_ARGUMENT, name, " = ",
             tensor, " must be NULL for MP_NORM_RMS");
}

/// Regions of tensors by layout.
struct Regions {
  const mp_norm_desc_t &d;

  Region like_x(const void *data, const char *name) const {
    return strided_region(data, name, d.columns, {d.groups, d.x_group}, {d.rows, d.x_row}, d.dtype);
  }
  Region like_y(const void *data, const char *name) const {
    return strided_region(data, name, d.columns, {d.groups, d.y_group}, {d.rows, d.y_row}, d.dtype);
  }
  Region residual(const void *data, const char *name) const {
    return dense_region(data, name, d.rows * d.groups * d.columns, d.dtype_residual);
  }
  Region statistics(const float *data, const char *name) const {
    return dense_region(data, name, d.rows * d.groups);
  }
  Region columns(const float *data, const char *name) const {
    return dense_region(data, name, d.columns);
  }
  Region mean(const float *data) const {
    return d.kind == MP_NORM_LAYER ? statistics(data, "tensors->mean") : Region{};
  }
};

/// Checks the forward pass of at least one row.
void require_forward(const mp_norm_desc_t &d, const mp_norm_tensors_t &t) {
  require_layer(d, t.beta, "tensors->beta");
  MP_REQUIRE(t.sum == nullptr || t.residual != nullptr, MP_ERROR_INVALID_ARGUMENT,
             "tensors->sum = ", t.sum, " must be NULL if tensors->residual = NULL");
  require_in_place(d, t.y, "tensors->y", t.x, "tensors->x");
  const Regions of{d};
  require_tensors({{of.like_x(t.x, "tensors->x"), kReads},
                   {of.residual(t.residual, "tensors->residual"), kMayRead},
                   {of.columns(t.gamma, "tensors->gamma"), kMayRead},
                   {of.columns(t.beta, "tensors->beta"), kMayRead},
                   {dense_region(t.dropout_offset, "tensors->dropout_offset"), kMayRead},
                   {of.residual(t.sum, "tensors->sum"), kMayWrite, {"tensors->residual"}},
                   {of.like_y(t.y, "tensors->y"), kWrites, {"tensors->x"}},
                   {of.mean(t.mean), kMayWrite},
                   {of.statistics(t.rstd, "tensors->rstd"), kMayWrite}});
}

/// Checks the backward pass of at least one row.
void require_backward(const mp_norm_desc_t &d, const mp_norm_tensors_t &t,
                      const Region &workspace) {
  MP_REQUIRE(t.sum != nullptr || t.residual == nullptr, MP_ERROR_INVALID_ARGUMENT,
             "tensors->sum = NULL, but tensors->residual requires it");
  MP_REQUIRE(t.sum != nullptr || t.dresidual == nullptr, MP_ERROR_INVALID_ARGUMENT,
             "tensors->dresidual = ", t.dresidual, " must be NULL if tensors->sum = NULL");
  require_in_place(d, t.dx, "tensors->dx", t.dy, "tensors->dy");
  const Regions of{d};
  const TensorAccess dx_access = t.dresidual == nullptr ? kWrites : kMayWrite;
  require_tensors(
      {{t.sum != nullptr ? of.residual(t.sum, "tensors->sum") : of.like_x(t.x, "tensors->x"),
        kReads},
       {of.columns(t.gamma, "tensors->gamma"), kMayRead},
       {dense_region(t.dropout_offset, "tensors->dropout_offset"), kMayRead},
       {of.mean(t.mean), kReads},
       {of.statistics(t.rstd, "tensors->rstd"), kReads},
       {of.like_y(t.dy, "tensors->dy"), kReads},
       {of.residual(t.dsum, "tensors->dsum"), kMayRead},
       {of.residual(t.dresidual, "tensors->dresidual"), kMayWrite, {"tensors->dsum"}},
       {of.like_x(t.dx, "tensors->dx"), dx_access, {"tensors->dy"}},
       {of.columns(t.dgamma, "tensors->dgamma"), kMayWrite},
       {of.columns(t.dbeta, "tensors->dbeta"), kMayWrite},
       {workspace, kMayWrite}},
      t.stats);
}

}  // namespace

mp_status_t mp_norm_forward(mp_context_t context, const mp_norm_desc_t *desc,
                            const mp_norm_tensors_t *tensors, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_norm_tensors_t t = read_tensors(tensors);
    if (d.rows == 0) return;
    require_forward(d, t);
    c.backend.norm_forward(c.device, {t, d, nullptr}, stream);
  });
}

mp_status_t mp_norm_backward_workspace_size(mp_context_t context, const mp_norm_desc_t *desc,
                                            size_t *bytes) {
  return call(__func__, context, desc, read_desc, [&](const auto &, const auto &d) {
    require_pointer(bytes, "bytes") = norm_workspace_bytes(d);
  });
}

mp_status_t mp_norm_backward(mp_context_t context, const mp_norm_desc_t *desc,
                             const mp_norm_tensors_t *tensors, void *workspace,
                             size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_norm_tensors_t t = read_tensors(tensors);
    MP_CHECK_TENSORS(require_aligned, t, dgamma, dbeta);
    require_layer(d, t.dbeta, "tensors->dbeta");
    require_stats(t.stats);
    if (d.rows == 0) {
      if ((d.flags & MP_NORM_FLAG_ACCUMULATE) != 0) return;
      for (float *const sums : {t.dgamma, t.dbeta}) clear_sums(c, sums, d.columns, stream);
      return;
    }
    const size_t bytes = norm_workspace_bytes(d);
    require_workspace(workspace, workspace_bytes, bytes);
    require_backward(d, t, workspace_region(workspace, bytes));
    c.backend.norm_backward(c.device, {t, d, static_cast<float *>(workspace)}, stream);
  });
}
