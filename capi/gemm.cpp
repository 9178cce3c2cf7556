// mpcore/gemm.h, GEMMs of equal shape: mp_gemm and mp_gemm_batched.  mpcore/layers.h: column sums.
#define MP_ENABLE_EXPERIMENTAL
#include <algorithm>
#include <vector>

#include "capi/gemm_problem.h"
#include "capi/kernel_info.h"
#include "capi/nvtx_payload.h"
#include "capi/plan_cache.h"
#include "kernels/gemm/plan_text.h"

namespace mp {

namespace {

mp_gemm_desc_t read_desc(const mp_gemm_desc_t *user) {
  const mp_gemm_desc_t d = read_struct(user, "desc");
  check_operation(d);
  check_shape(d);
  count_tiles(d, tiles_along(d.m), d.batch_count);
  return d;
}

void require_no_strides(const mp_gemm_desc_t &d) {
  for (const Matrix &matrix : {matrix_a(d), matrix_b(d), matrix_c(d), matrix_d(d)}) {
    MP_REQUIRE(matrix.stride == 0, MP_ERROR_INVALID_ARGUMENT, matrix.stride_name, " = ",
               matrix.stride, " must be 0: mp_gemm_batched takes arrays of pointers");
  }
}

void require_batched_epilogue(const Epilogue &e) {
  const auto require_none = [](const void *pointer, const char *name) {
    MP_REQUIRE(pointer == nullptr, MP_ERROR_UNSUPPORTED, name, " = ", pointer,
               " is not supported by mp_gemm_batched");
  };
  require_none(e.aux, "aux");
  require_none(e.dbias, "dbias");
  require_none(e.amax, "stats.amax");
}

/// Fails if the array of outputs is also one of inputs; the pointers in it are in device memory.
void require_other_items(const mp_gemm_desc_t &d, const void *const *A, const void *const *B,
                         const void *const *D) {
  if (!has_product(d)) return;
  MP_REQUIRE(D != A, MP_ERROR_INVALID_ARGUMENT, "D = ", D, " overlaps A");
  MP_REQUIRE(D != B, MP_ERROR_INVALID_ARGUMENT, "D = ", D, " overlaps B");
}

void set_items(GemmProblem &problem, const void *const *A, const void *const *B,
               const void *const *C, const void *const *D) {
  problem.a.items = A;
  problem.b.items = B;
  problem.out.c.items = C;
  problem.out.d.items = D;
}

bool has_strides(const mp_gemm_desc_t &d) {
  return (d.stride_a | d.stride_b | d.stride_c | d.stride_d) != 0;
}

/// Returns the shape of the call that a workspace or kernel query is about: mp_gemm, or without
/// strides of a batch mp_gemm_batched.
GemmShape shape_to_query(const mp_gemm_desc_t &d) {
  GemmShape shape = shape_of(gemm_problem(d));
  if (d.batch_count > 1 && !has_strides(d))
    shape.out.items = ItemAccess::pointers;
  else
    require_separate_items(matrix_d(d), d.batch_count);
  return shape;
}

/// Returns the workspace of mp_gemm_batched with a batch of one, whose descriptor is also that of
/// an mp_gemm.
size_t workspace_of_one_item(const Context &context, const mp_gemm_desc_t &d) {
  GemmShape shape = shape_of(gemm_problem(d));
  shape.out.items = ItemAccess::pointers;
  if (d.kernel == nullptr) return find_plan(context, shape, nullptr, SIZE_MAX).workspace.bytes;
  // Some kernels run in mp_gemm only.
  GemmPlan plan;
  const char *why;
  const bool runs = plan_named_gemm(shape, plan_request(context), d.kernel, &plan, &why);
  return runs ? plan.workspace.bytes : 0;
}

/// Fails for an empty problem, which launches nothing.
void require_product(const mp_gemm_desc_t &d, int32_t index) {
  MP_REQUIRE(!is_empty(d), MP_ERROR_NOT_FOUND, "index = ", index,
             " is outside [0, 0): an empty problem requires no kernel");
}

/// Selects a kernel for a checked problem, logs and launches it.
void run(const Context &context, const char *function, const GemmProblem &problem,
         const char *kernel, const Workspace &workspace, mp_stream_t stream) {
  const GemmShape shape = shape_of(problem);
  const GemmPlan plan =
      find_plan(context, shape, requested_kernel(kernel, problem.out.alpha), workspace.bytes);
  log_slow_plan(context, function, problem.out, plan, workspace.bytes,
                [&] { return slow_path_reason(shape, context.device); });
  log_plan(context, function, problem, plan);
  context.backend.gemm(context.device, problem, plan, workspace, stream);
}

/// Sets dbias to 0, the sum over no rows.
void clear_dbias(const Context &context, const GemmProblem &problem, mp_stream_t stream) {
  if (problem.out.epilogue.dbias == nullptr || problem.out.n == 0) return;
  context.backend.fill(context.device, problem.out.epilogue.dbias, 0,
                       static_cast<size_t>(problem.out.n) * sizeof(float), stream);
}

}  // namespace

}  // namespace mp

mp_status_t mp_gemm_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                   size_t *bytes) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    mp::require_pointer(bytes, "bytes");
    const mp_gemm_desc_t d = mp::read_desc(desc);
    const mp::GemmShape shape = mp::shape_to_query(d);
    size_t needed = 0;
    if (!mp::is_empty(d)) {
      const mp::GemmPlan plan =
          mp::find_plan(c, shape, mp::requested_kernel(d.kernel, d.alpha), SIZE_MAX);
      needed = plan.workspace.bytes;
      // For a named kernel, the result is the minimum, without optional workspace.
      if (d.kernel == nullptr)
        needed = std::max(needed, mp::dbias_workspace_bytes(shape.out, plan));
      if (d.batch_count == 1 && !mp::has_strides(d))
        needed = std::max(needed, mp::workspace_of_one_item(c, d));
    } else {
      mp::require_known_kernel(d.kernel, mp::gemm_names());
    }
    *bytes = needed;
  });
}

mp_status_t mp_gemm(mp_context_t context, const mp_gemm_desc_t *desc, const void *A, const void *B,
                    const void *C, void *D, const mp_epilogue_t *epilogue, void *workspace,
                    size_t workspace_bytes, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_gemm_desc_t d = mp::read_desc(desc);
    mp::GemmProblem problem = mp::gemm_problem(d);
    problem.out.epilogue = mp::read_epilogue(epilogue, problem.out);
    mp::require_separate_items(mp::matrix_d(d), d.batch_count);
    if (problem.out.epilogue.aux != nullptr) {
      mp::require_separate_items(mp::matrix_aux(problem.out, problem.out.epilogue.ld_aux),
                                 d.batch_count);
    }
    mp::check_operands({A, B, C, D}, d, mp_dtype_size(d.dtype_ab), mp_dtype_size(d.dtype_cd));
    const mp::Workspace space{workspace, workspace_bytes};
    mp::check_workspace(space);
    if (mp::is_empty(d)) {
      mp::require_known_kernel(d.kernel, mp::gemm_names());
      return mp::clear_dbias(c, problem, stream);
    }

    mp::check_overlap({A, B, C, D}, d, problem.out);
    mp::set_data(problem, {A, B, C, D});
    mp::run(c, "mp_gemm", problem, d.kernel, space, stream);
  });
}

mp_status_t mp_gemm_batched(mp_context_t context, const mp_gemm_desc_t *desc, const void *const *A,
                            const void *const *B, const void *const *C, void *const *D,
                            const mp_epilogue_t *epilogue, void *workspace, size_t workspace_bytes,
                            mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_gemm_desc_t d = mp::read_desc(desc);
    mp::require_no_strides(d);
    mp::GemmProblem problem = mp::gemm_problem(d);
    problem.out.epilogue = mp::read_epilogue(epilogue, problem.out);
    mp::require_batched_epilogue(problem.out.epilogue);
    mp::check_operands({A, B, C, D}, d, alignof(void *), alignof(void *));
    const mp::Workspace space{workspace, workspace_bytes};
    mp::check_workspace(space);
    if (mp::is_empty(d)) return mp::require_known_kernel(d.kernel, mp::gemm_names());

    mp::require_other_items(d, A, B, D);
    mp::set_items(problem, A, B, C, D);
    mp::run(c, "mp_gemm_batched", problem, d.kernel, space, stream);
  });
}

mp_status_t mp_gemm_kernel_info(mp_context_t context, const mp_gemm_desc_t *desc, int32_t index,
                                mp_kernel_info_t *info) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_gemm_desc_t d = mp::read_desc(desc);
    mp::require_struct(info, "info");
    mp::require_not_negative(index, "index");
    const mp::GemmShape shape = mp::shape_to_query(d);
    mp::require_product(d, index);
    mp::write_struct(info, "info",
                     mp::kernel_info(c, index, mp::rank_gemm(shape, mp::plan_request(c)),
                                     mp::gemm_names(), [&](const char *name, const char **why) {
                                       mp::GemmPlan plan;
                                       return mp::plan_named_gemm(shape, mp::plan_request(c), name,
                                                                  &plan, why);
                                     }));
  });
}

// ---------------------------------------------------------------------------- column sums

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
