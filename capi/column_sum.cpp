// mpcore/layers.h: sums over the rows of a matrix.
#include "capi/gemm_problem.h"
#include "capi/nvtx_payload.h"

namespace mp {

namespace {

mp_column_sum_desc_t read_desc(const mp_column_sum_desc_t *user) {
  const mp_column_sum_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_dtype(d.dtype_sum, "dtype_sum");
  require_not_negative(d.rows, "rows");
  require_not_negative(d.columns, "columns");
  MP_REQUIRE(d.ld >= d.columns, MP_ERROR_INVALID_ARGUMENT, "ld = ", d.ld,
             " is smaller than columns = ", d.columns);
  constexpr int64_t kMaxColumns = int64_t{1} << 50;  // number of chunks fits in 63 bits
  int64_t elems;
  MP_REQUIRE(d.columns <= kMaxColumns && strided_extent(d.rows, d.ld, d.columns, &elems) &&
                 bytes_fit(elems, d.dtype),
             MP_ERROR_INVALID_ARGUMENT, "rows = ", d.rows, " with columns = ", d.columns,
             " and ld = ", d.ld, ": size in bytes exceeds 2^63 - 1");
  return d;
}

/// Dense output with one batch item, alpha = 1 and beta = 0.
Output matrix(const void *data, int64_t rows, int64_t columns, int64_t ld, mp_dtype_t dtype) {
  Output out{};
  out.m = rows;
  out.n = columns;
  out.batch_count = 1;
  out.dtype = dtype;
  out.alpha = 1.0f;
  out.c = out.d = {data, nullptr, ld, 0};
  return out;
}

Output input_of(const mp_column_sum_desc_t &d, const void *x) {
  return matrix(x, d.rows, d.columns, d.ld, d.dtype);
}

}  // namespace

}  // namespace mp

mp_status_t mp_column_sum_workspace_size(mp_context_t context, const mp_column_sum_desc_t *desc,
                                         size_t *bytes) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    mp::require_context(context);
    const mp_column_sum_desc_t d = mp::read_desc(desc);
    mp::require_pointer(bytes, "bytes") =
        d.columns == 0 ? 0 : mp::column_sum_bytes(mp::shape_of(mp::input_of(d, nullptr)));
  });
}

mp_status_t mp_column_sum(mp_context_t context, const mp_column_sum_desc_t *desc, const void *x,
                          void *sum, const mp_epilogue_t *epilogue, void *workspace,
                          size_t workspace_bytes, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_column_sum_desc_t d = mp::read_desc(desc);
    mp::Output sums = mp::matrix(sum, 1, d.columns, d.columns, d.dtype_sum);
    sums.beta = d.beta;
    sums.epilogue = mp::read_scaling_epilogue(epilogue, "mp_column_sum");
    if (d.columns == 0) return;
    const mp::Output in = mp::input_of(d, x);
    if (d.rows > 0) mp::require_device(x, "x", mp_dtype_size(d.dtype));
    mp::require_device(sum, "sum", mp_dtype_size(d.dtype_sum));
    const size_t needed = mp::column_sum_bytes(mp::shape_of(in));
    MP_REQUIRE(workspace_bytes >= needed, MP_ERROR_WORKSPACE_TOO_SMALL,
               "workspace_bytes = ", workspace_bytes, " must be at least ", needed);
    if (needed > 0) mp::require_device(workspace, "workspace", 256);
    mp::check_overlap(sums, mp::dense_region(sum, "sum", d.columns, d.dtype_sum),
                      {mp::matrix_region(x, "x", d.rows, d.columns, d.ld, d.dtype)});
    c.backend.sum_columns(c.device, in, sums, workspace, stream);
  });
}
