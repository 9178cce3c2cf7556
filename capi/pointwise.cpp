// mpcore/layers.h: pointwise functions, sums of repeated rows, gated linear units, strided copies.
#include <algorithm>
#include <numeric>
#include <vector>

#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/gemm/problem.h"
#include "kernels/layers/layer_args.h"

using namespace mp;

namespace {

// ---------------------------------------------------------------------------- pointwise functions

/// Returns the number of different rows of b.
int64_t rows_of_b(const mp_pointwise_desc_t &d) {
  return d.rows_b == 0 ? d.rows : std::min(d.rows_b, d.rows);
}

mp_pointwise_desc_t read_desc(const mp_pointwise_desc_t *user) {
  const mp_pointwise_desc_t d = read_struct(user, "desc");
  require_enum(d.op, "op");
  require_enum(d.activation, "activation");
  MP_REQUIRE(d.op == MP_POINTWISE_COPY || !reads_aux(d.activation), MP_ERROR_INVALID_ARGUMENT,
             "activation = ", d.activation, " requires op = MP_POINTWISE_COPY, but op = ", d.op);
  MP_CHECK_FIELDS(require_dtype, d, dtype, dtype_b);
  MP_CHECK_FIELDS(require_zero, d, reserved0, reserved1);
  if (d.op == MP_POINTWISE_LEAKY_RELU || d.op == MP_POINTWISE_DLEAKY_RELU)
    require_finite(d.slope, "slope");
  MP_REQUIRE((d.op != MP_POINTWISE_CLIP && d.op != MP_POINTWISE_DCLIP) || d.low <= d.high,
             MP_ERROR_INVALID_ARGUMENT, "low = ", d.low, " must not exceed high = ", d.high);
  MP_CHECK_FIELDS(require_not_negative, d, rows_b, rows, columns);
  MP_REQUIRE(d.ld_b == 0 || d.ld_b >= d.columns, MP_ERROR_INVALID_ARGUMENT, "ld_b = ", d.ld_b,
             " must be 0 or at least columns = ", d.columns);
  require_matrix_bytes({d.rows, "rows"}, d.columns, {d.columns, "columns"}, d.dtype);
  require_matrix_bytes({rows_of_b(d), d.rows_b == 0 ? "rows" : "rows_b"}, d.columns,
                       {d.ld_b, "ld_b"}, d.dtype_b);
  return d;
}

bool uses_b(const mp_pointwise_desc_t &d) {
  if (d.op == MP_POINTWISE_COPY) return reads_aux(d.activation);
  return d.op != MP_POINTWISE_LEAKY_RELU && d.op != MP_POINTWISE_CLIP;
}

/// Checks layout and type of b for y = b.
void require_same_layout(const mp_pointwise_desc_t &d) {
  MP_REQUIRE(d.dtype_b == d.dtype, MP_ERROR_INVALID_ARGUMENT, "dtype_b = ", d.dtype_b,
             " must equal dtype = ", d.dtype, " if y = b");
  MP_REQUIRE(d.ld_b == d.columns || d.rows == 1, MP_ERROR_INVALID_ARGUMENT, "ld_b = ", d.ld_b,
             " must equal columns = ", d.columns, " if y = b");
  MP_REQUIRE(rows_of_b(d) == d.rows, MP_ERROR_INVALID_ARGUMENT, "rows_b = ", d.rows_b,
             " must be 0 or at least rows = ", d.rows, " if y = b");
}

// ---------------------------------------------------------------------------- sums of rows

mp_sum_rows_desc_t read_desc(const mp_sum_rows_desc_t *user) {
  const mp_sum_rows_desc_t d = read_struct(user, "desc");
  MP_CHECK_FIELDS(require_dtype, d, dtype, dtype_sum);
  require_finite(d.beta, "beta");
  MP_CHECK_FIELDS(require_not_negative, d, rows, period);
  MP_REQUIRE(d.rows == 0 || d.period > 0, MP_ERROR_INVALID_ARGUMENT,
             "period = 0 must be at least 1 if rows = ", d.rows);
  require_not_negative(d.columns, "columns");
  require_matrix({d.rows, "rows"}, {d.columns, "columns"}, {d.ld_x, "ld_x"}, d.dtype);
  require_matrix({d.period, "period"}, {d.columns, "columns"}, {d.ld_sum, "ld_sum"}, d.dtype_sum);
  return d;
}

// ---------------------------------------------------------------------------- gated linear units

mp_glu_desc_t read_desc(const mp_glu_desc_t *user) {
  const mp_glu_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_enum(d.activation, "activation");
  MP_REQUIRE(!reads_aux(d.activation), MP_ERROR_INVALID_ARGUMENT, "activation = ", d.activation,
             " is a derivative; pass the activation of the forward pass");
  require_zero(d.reserved0, "reserved0");
  MP_CHECK_FIELDS(require_not_negative, d, rows, columns);
  MP_REQUIRE(d.ld_x >= 0 && d.ld_x / 2 >= d.columns, MP_ERROR_INVALID_ARGUMENT, "ld_x = ", d.ld_x,
             " is smaller than 2 columns, columns = ", d.columns);
  require_matrix_bytes({d.rows, "rows"}, 2 * d.columns, {d.ld_x, "ld_x"}, d.dtype);
  require_matrix({d.rows, "rows"}, {d.columns, "columns"}, {d.ld_y, "ld_y"}, d.dtype);
  return d;
}

Region glu_input(const mp_glu_desc_t &d, const void *data, const char *name) {
  return matrix_region(data, name, d.rows, 2 * d.columns, d.ld_x, d.dtype);
}
Region glu_output(const mp_glu_desc_t &d, const void *data, const char *name) {
  return matrix_region(data, name, d.rows, d.columns, d.ld_y, d.dtype);
}

// ---------------------------------------------------------------------------- strided copies

/// Strides of x or y in a descriptor.
struct Strides {
  const char *name;
  int64_t (mp_strided_copy_desc_t::*values)[MP_STRIDED_COPY_MAX_RANK];
};
constexpr Strides kXStride = {"x_stride", &mp_strided_copy_desc_t::x_stride};
constexpr Strides kYStride = {"y_stride", &mp_strided_copy_desc_t::y_stride};

/// Returns the number of elements from the first to the last of a view; fails if their size
/// overflows or, with are_distinct, if two of them may share an address.
int64_t span_of(const mp_strided_copy_desc_t &d, const Strides &strides, bool are_distinct) {
  std::vector<int> order(static_cast<size_t>(d.rank));
  std::iota(order.begin(), order.end(), 0);
  const auto &stride = d.*strides.values;
  std::ranges::sort(order, {}, [&](int i) { return stride[i]; });
  int64_t span = 1;
  for (int n = 0; n < d.rank; n++) {
    const int i = order[static_cast<size_t>(n)];
    if (d.extent[i] <= 1) continue;
    MP_REQUIRE(!are_distinct || stride[i] >= span, MP_ERROR_INVALID_ARGUMENT, strides.name, "[", i,
               "] = ", stride[i], " must be at least ", span,
               ": elements of y may share an address");
    MP_REQUIRE(multiply_add(d.extent[i] - 1, stride[i], span, &span) && bytes_fit(span, d.dtype),
               MP_ERROR_INVALID_ARGUMENT, "extent[", i, "] = ", d.extent[i], " with ", strides.name,
               "[", i, "] = ", stride[i], ": size in bytes exceeds 2^63 - 1");
  }
  return span;
}

bool is_empty(const mp_strided_copy_desc_t &d) {
  return std::ranges::find(d.extent, d.extent + d.rank, 0) != d.extent + d.rank;
}

mp_strided_copy_desc_t read_desc(const mp_strided_copy_desc_t *user) {
  const mp_strided_copy_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_within(d.rank, "rank", 0, MP_STRIDED_COPY_MAX_RANK);
  require_zero(d.reserved0, "reserved0");
  for (int i = 0; i < d.rank; i++) {
    const auto require = [&](int64_t value, const char *name) {
      MP_REQUIRE(value >= 0, MP_ERROR_INVALID_ARGUMENT, name, "[", i, "] = ", value,
                 " is negative");
    };
    require(d.extent[i], "extent");
    require(d.x_stride[i], kXStride.name);
    require(d.y_stride[i], kYStride.name);
  }
  MP_CHECK_FIELDS(require_finite, d, alpha, beta);
  return d;
}

/// Returns the same copy with the fewest dimensions, at least one.
mp_strided_copy_desc_t merged(mp_strided_copy_desc_t d) {
  int rank = 0;
  for (int i = 0; i < d.rank; i++) {
    if (d.extent[i] == 1) continue;
    const auto is_dense = [&](const int64_t *stride) {
      int64_t row;
      return multiply_add(d.extent[i], stride[i], 0, &row) && stride[rank - 1] == row;
    };
    if (rank > 0 && is_dense(d.x_stride) && is_dense(d.y_stride)) {
      d.extent[rank - 1] *= d.extent[i];
    } else {
      d.extent[rank++] = d.extent[i];
    }
    d.x_stride[rank - 1] = d.x_stride[i];
    d.y_stride[rank - 1] = d.y_stride[i];
  }
  if (rank == 0) d.extent[rank++] = 1;
  d.rank = rank;
  return d;
}

}  // namespace

mp_status_t mp_pointwise(mp_context_t context, const mp_pointwise_desc_t *desc, const void *a,
                         const void *b, void *y, const mp_grad_stats_t *stats, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_grad_stats_t of_y = read_stats(stats);
    if (d.rows == 0 || d.columns == 0) return;
    const auto matrix = [&](const void *data, const char *name) {
      return matrix_region(data, name, d.rows, d.columns, d.columns, d.dtype);
    };
    const Region of_b = matrix_region(b, "b", rows_of_b(d), d.columns, d.ld_b, d.dtype_b);
    const bool reads_b = uses_b(d);
    require_tensors({{matrix(a, "a"), kReads},
                     {reads_b ? of_b : Region{}, kReads},
                     {matrix(y, "y"), kWrites, {"a", "b"}}},
                    of_y, kStatsArgument);
    if (reads_b && y == b) require_same_layout(d);
    c.backend.pointwise(
        c.device, {.desc = d, .a = a, .b = reads_b ? b : nullptr, .y = y, .stats = of_y}, stream);
  });
}

mp_status_t mp_sum_rows(mp_context_t context, const mp_sum_rows_desc_t *desc, const void *x,
                        void *sum, const mp_grad_stats_t *stats, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_grad_stats_t of_sum = read_stats(stats);
    if (d.period == 0 || d.columns == 0) return;
    require_tensors(
        {{matrix_region(x, "x", d.rows, d.columns, d.ld_x, d.dtype), kReads},
         {matrix_region(sum, "sum", d.period, d.columns, d.ld_sum, d.dtype_sum), kWrites}},
        of_sum, kStatsArgument);
    c.backend.sum_rows(c.device, {.desc = d, .x = x, .sum = sum, .stats = of_sum}, stream);
  });
}

mp_status_t mp_glu_forward(mp_context_t context, const mp_glu_desc_t *desc, const void *x, void *y,
                           mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    if (d.rows == 0 || d.columns == 0) return;
    require_tensors({{glu_input(d, x, "x"), kReads}, {glu_output(d, y, "y"), kWrites}});
    c.backend.glu_forward(c.device, {.desc = d, .x = x, .y = y}, stream);
  });
}

mp_status_t mp_glu_backward(mp_context_t context, const mp_glu_desc_t *desc, const void *x,
                            const void *dy, void *dx, const mp_grad_stats_t *stats,
                            mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_grad_stats_t of_dx = read_stats(stats);
    if (d.rows == 0 || d.columns == 0) return;
    require_tensors({{glu_input(d, x, "x"), kReads},
                     {glu_output(d, dy, "dy"), kReads},
                     {glu_input(d, dx, "dx"), kWrites, {"x"}}},
                    of_dx, kStatsArgument);
    c.backend.glu_backward(c.device, {.desc = d, .x = x, .dy = dy, .dx = dx, .stats = of_dx},
                           stream);
  });
}

mp_status_t mp_strided_copy(mp_context_t context, const mp_strided_copy_desc_t *desc, const void *x,
                            void *y, const mp_grad_stats_t *stats, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_grad_stats_t of_y = read_stats(stats);
    if (is_empty(d)) return;
    const int64_t x_span = span_of(d, kXStride, false);
    const int64_t y_span = span_of(d, kYStride, true);
    require_tensors({{dense_region(x, "x", x_span, d.dtype), kReads},
                     {dense_region(y, "y", y_span, d.dtype), kWrites}},
                    of_y, kStatsArgument);
    c.backend.strided_copy(c.device, {.desc = merged(d), .x = x, .y = y, .stats = of_y}, stream);
  });
}
