// mpcore/layers.h: pointwise functions, sums of repeated rows, gated linear units.
#include <algorithm>

#include "capi/check.h"
#include "capi/context.h"
#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/backend.h"
#include "kernels/gemm/problem.h"
#include "kernels/layers/layer_args.h"
#include "mpcore.h"

namespace mp {

namespace {

// ---------------------------------------------------------------------------- pointwise functions

/// Returns the number of different rows of b.
int64_t rows_of_b(const mp_pointwise_desc_t &d) {
  return d.rows_b == 0 ? d.rows : std::min(d.rows_b, d.rows);
}

mp_pointwise_desc_t read_desc(const mp_pointwise_desc_t *user) {
  const mp_pointwise_desc_t d = read_struct(user, "desc");
  require_enum(d.op, "op", MP_POINTWISE_COPY, MP_POINTWISE_MUL);
  require_enum(d.activation, "activation", MP_ACT_NONE, MP_ACT_DGELU_ERF);
  MP_REQUIRE(d.op == MP_POINTWISE_COPY || !reads_aux(d.activation), MP_ERROR_INVALID_ARGUMENT,
             "activation = ", d.activation, " requires op = MP_POINTWISE_COPY, but op = ", d.op);
  require_dtype(d.dtype, "dtype");
  require_dtype(d.dtype_b, "dtype_b");
  require_zero(d.reserved0, "reserved0");
  require_not_negative(d.rows_b, "rows_b");
  require_not_negative(d.rows, "rows");
  require_not_negative(d.columns, "columns");
  MP_REQUIRE(d.ld_b == 0 || d.ld_b >= d.columns, MP_ERROR_INVALID_ARGUMENT, "ld_b = ", d.ld_b,
             " must be 0 or at least columns = ", d.columns);
  require_matrix_bytes({d.rows, "rows"}, d.columns, {d.columns, "columns"}, d.dtype);
  require_matrix_bytes({rows_of_b(d), d.rows_b == 0 ? "rows" : "rows_b"}, d.columns,
                       {d.ld_b, "ld_b"}, d.dtype_b);
  return d;
}

bool reads_b(const mp_pointwise_desc_t &d) {
  return d.op != MP_POINTWISE_COPY || reads_aux(d.activation);
}

/// Fails if y and b overlap, unless they are equal in address, layout and type.
void require_same_places(const mp_pointwise_desc_t &d, const void *b, const void *y) {
  require_apart_or_same(matrix_region(y, "y", d.rows, d.columns, d.columns, d.dtype),
                        matrix_region(b, "b", rows_of_b(d), d.columns, d.ld_b, d.dtype_b));
  if (y != b) return;
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
  require_dtype(d.dtype, "dtype");
  require_dtype(d.dtype_sum, "dtype_sum");
  require_finite(d.beta, "beta");
  require_not_negative(d.rows, "rows");
  require_not_negative(d.period, "period");
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
  require_enum(d.activation, "activation", MP_ACT_NONE, MP_ACT_DGELU_ERF);
  MP_REQUIRE(!reads_aux(d.activation), MP_ERROR_INVALID_ARGUMENT, "activation = ", d.activation,
             " is a derivative; pass the activation of the forward pass");
  require_zero(d.reserved0, "reserved0");
  require_not_negative(d.rows, "rows");
  require_not_negative(d.columns, "columns");
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

}  // namespace

}  // namespace mp

mp_status_t mp_pointwise(mp_context_t context, const mp_pointwise_desc_t *desc, const void *a,
                         const void *b, void *y, const mp_grad_stats_t *stats, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_pointwise_desc_t d = mp::read_desc(desc);
    const mp_grad_stats_t of_y = mp::read_stats(stats);
    if (d.rows == 0 || d.columns == 0) return;
    mp::require_device(a, "a", mp_dtype_size(d.dtype));
    mp::require_device(y, "y", mp_dtype_size(d.dtype));
    const mp::Region written = mp::dense_region(y, "y", d.rows * d.columns, d.dtype);
    mp::require_apart_or_same(written, mp::dense_region(a, "a", d.rows * d.columns, d.dtype));
    mp::require_stats_apart(of_y, mp::kStatsArgument, {written});
    if (mp::reads_b(d)) {
      mp::require_device(b, "b", mp_dtype_size(d.dtype_b));
      mp::require_same_places(d, b, y);
    }
    c.backend.pointwise(
        c.device, {.desc = d, .a = a, .b = mp::reads_b(d) ? b : nullptr, .y = y, .stats = of_y},
        stream);
  });
}

mp_status_t mp_sum_rows(mp_context_t context, const mp_sum_rows_desc_t *desc, const void *x,
                        void *sum, const mp_grad_stats_t *stats, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_sum_rows_desc_t d = mp::read_desc(desc);
    const mp_grad_stats_t of_sum = mp::read_stats(stats);
    if (d.period == 0 || d.columns == 0) return;
    if (d.rows > 0) mp::require_device(x, "x", mp_dtype_size(d.dtype));
    mp::require_device(sum, "sum", mp_dtype_size(d.dtype_sum));
    const mp::Region written =
        mp::matrix_region(sum, "sum", d.period, d.columns, d.ld_sum, d.dtype_sum);
    mp::require_apart(written, mp::matrix_region(x, "x", d.rows, d.columns, d.ld_x, d.dtype));
    mp::require_stats_apart(of_sum, mp::kStatsArgument, {written});
    c.backend.sum_rows(c.device, {.desc = d, .x = x, .sum = sum, .stats = of_sum}, stream);
  });
}

mp_status_t mp_glu_forward(mp_context_t context, const mp_glu_desc_t *desc, const void *x, void *y,
                           mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_glu_desc_t d = mp::read_desc(desc);
    if (d.rows == 0 || d.columns == 0) return;
    mp::require_device(x, "x", mp_dtype_size(d.dtype));
    mp::require_device(y, "y", mp_dtype_size(d.dtype));
    mp::require_apart(mp::glu_output(d, y, "y"), mp::glu_input(d, x, "x"));
    c.backend.glu_forward(c.device, {.desc = d, .x = x, .y = y}, stream);
  });
}

mp_status_t mp_glu_backward(mp_context_t context, const mp_glu_desc_t *desc, const void *x,
                            const void *dy, void *dx, const mp_grad_stats_t *stats,
                            mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_glu_desc_t d = mp::read_desc(desc);
    const mp_grad_stats_t of_dx = mp::read_stats(stats);
    if (d.rows == 0 || d.columns == 0) return;
    mp::require_device(x, "x", mp_dtype_size(d.dtype));
    mp::require_device(dy, "dy", mp_dtype_size(d.dtype));
    mp::require_device(dx, "dx", mp_dtype_size(d.dtype));
    const mp::Region written = mp::glu_input(d, dx, "dx");
    mp::require_apart_or_same(written, mp::glu_input(d, x, "x"));
    mp::require_apart(written, mp::glu_output(d, dy, "dy"));
    mp::require_stats_apart(of_dx, mp::kStatsArgument, {written});
    c.backend.glu_backward(c.device, {.desc = d, .x = x, .dy = dy, .dx = dx, .stats = of_dx},
                           stream);
  });
}
