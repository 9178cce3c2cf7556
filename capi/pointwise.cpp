// mpcore/layers.h: pointwise functions.
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

/// Fails if the size in bytes of a matrix with the rows and columns of y overflows.
void require_bytes(const mp_pointwise_desc_t &d, int64_t ld, const char *ld_name,
                   mp_dtype_t dtype) {
  int64_t elems;
  MP_REQUIRE(strided_extent(d.rows, ld, d.columns, &elems) && bytes_fit(elems, dtype),
             MP_ERROR_INVALID_ARGUMENT, "rows = ", d.rows, " with ", ld_name, " = ", ld,
             ": size in bytes exceeds 2^63 - 1");
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
  require_unset(d.rows_b, "rows_b");
  require_not_negative(d.rows, "rows");
  require_not_negative(d.columns, "columns");
  MP_REQUIRE(d.ld_b == 0 || d.ld_b >= d.columns, MP_ERROR_INVALID_ARGUMENT, "ld_b = ", d.ld_b,
             " must be 0 or at least columns = ", d.columns);
  require_bytes(d, d.columns, "columns", d.dtype);
  require_bytes(d, d.ld_b, "ld_b", d.dtype_b);
  return d;
}

bool reads_b(const mp_pointwise_desc_t &d) {
  return d.op != MP_POINTWISE_COPY || reads_aux(d.activation);
}

/// Fails if y and b overlap, unless they are equal in address, layout and type.
void require_same_places(const mp_pointwise_desc_t &d, const void *b, const void *y) {
  require_apart_or_same(matrix_region(y, "y", d.rows, d.columns, d.columns, d.dtype),
                        matrix_region(b, "b", d.rows, d.columns, d.ld_b, d.dtype_b));
  if (y != b) return;
  MP_REQUIRE(d.dtype_b == d.dtype, MP_ERROR_INVALID_ARGUMENT, "dtype_b = ", d.dtype_b,
             " must equal dtype = ", d.dtype, " if y = b");
  MP_REQUIRE(d.ld_b == d.columns || d.rows == 1, MP_ERROR_INVALID_ARGUMENT, "ld_b = ", d.ld_b,
             " must equal columns = ", d.columns, " if y = b");
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
