// mpcore/gemm.h, GEMMs of equal shape: mp_gemm and mp_gemm_batched.  mpcore/layers.h: column sums.
#define MP_ENABLE_EXPERIMENTAL
#include "capi/gemm_problem.h"
#include "capi/kernel_info.h"
#include "capi/nvtx_payload.h"
#include "kernels/gemm/plan_text.h"

using namespace mp;

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

/// Fails if batch items of D or aux overlap.
void require_separate_outputs(const mp_gemm_desc_t &d, const Output &out) {
  if (d.batch_count <= 1) return;
  require_separate_items(matrix_d(d), d.batch_count);
  if (out.epilogue.aux != nullptr)
    require_separate_items(matrix_aux(out, out.epilogue.ld_aux), d.batch_count);
}

/// Fails if the array of outputs is also one of inputs, or if the workspace or an output overlaps
/// an array.  The pointers in the arrays are in device memory.
void require_other_items(const mp_gemm_desc_t &d, const Output &out, const void *const *A,
                         const void *const *B, const void *const *C, const void *const *D,
                         const Workspace &workspace) {
  const bool multiplies = has_product(d);
  MP_REQUIRE(D != A || !multiplies, MP_ERROR_INVALID_ARGUMENT, "D = ", D, " overlaps A");
  MP_REQUIRE(D != B || !multiplies, MP_ERROR_INVALID_ARGUMENT, "D = ", D, " overlaps B");
  const int64_t count = d.batch_count;
  check_overlap(
      out, {},
      {dense_region(multiplies ? A : nullptr, "A", count),
       dense_region(multiplies ? B : nullptr, "B", count),
       dense_region(d.beta != 0.0f ? C : nullptr, "C", count), dense_region(D, "D", count)},
      workspace);
}

/// A query about mp_gemm or, with ItemAccess::pointers, mp_gemm_batched.
struct Query {
  Query(const mp_gemm_desc_t *user, const mp_epilogue_t *epilogue, ItemAccess items)
      : desc(read_desc(user)), requested(desc.plan) {
    GemmProblem problem = gemm_problem(desc);
    problem.out.epilogue = read_epilogue(epilogue, problem.out);
    if (items == ItemAccess::pointers) {
      require_no_strides(desc);
      require_batched_epilogue(problem.out.epilogue);
    } else {
      require_separate_outputs(desc, problem.out);
    }
    shape = shape_of(problem);
    shape.out.items = items;
  }

  /// Returns the plan of the requested kernel even if alpha = 0, when a call does not use it.
  GemmPlan plan(const Context &context, size_t workspace_bytes) const {
    GemmShape planned = shape;
    if (requested.is_set()) planned.k = desc.k;
    return find_plan(context, planned, requested, workspace_bytes);
  }
  mp_kernel_info_t info(const Context &context, int32_t index) const {
    const PlanRequest request = plan_request(context);
    return kernel_info(context, index, rank_gemm(shape, request), gemm_names(),
                       [&](const char *name, const char **why) {
                         GemmPlan plan;
                         return plan_named_gemm(shape, request, name, &plan, why);
                       });
  }
  size_t workspace_bytes(const Context &context) const {
    if (!is_empty(desc))
      return workspace_bytes_of(find_call_plan(context, shape, requested, SIZE_MAX));
    requested.require_known(gemm_names());
    return 0;
  }

  mp_gemm_desc_t desc;
  RequestedPlan requested;
  GemmShape shape;
};

/// Fails for an empty problem, which launches nothing.
void require_product(const mp_gemm_desc_t &d) {
  MP_REQUIRE(!is_empty(d), MP_ERROR_NOT_FOUND, "m = ", d.m, ", n = ", d.n,
             ", batch_count = ", d.batch_count, ": an empty problem requires no kernel");
}

mp_status_t get_workspace_size(const char *function, mp_context_t context,
                               const mp_gemm_desc_t *desc, const mp_epilogue_t *epilogue,
                               ItemAccess items, size_t *bytes) {
  return call(function, context, nvtx_payload(desc), [&](const Context &c) {
    require_pointer(bytes, "bytes");
    *bytes = Query(desc, epilogue, items).workspace_bytes(c);
  });
}

mp_status_t get_plan(const char *function, mp_context_t context, const mp_gemm_desc_t *desc,
                     const mp_epilogue_t *epilogue, ItemAccess items, size_t max_workspace_bytes,
                     mp_plan_t *plan) {
  return call(function, context, nvtx_payload(desc), [&](const Context &c) {
    require_struct(plan, "plan");
    const Query query(desc, epilogue, items);
    require_product(query.desc);
    const GemmPlan found = query.plan(c, max_workspace_bytes);
    write_struct(plan, "plan", stable_plan(found.name, found));
  });
}

/// Measures the kernels of a new call.
void measure(const Context &context, const GemmProblem &problem, const GemmShape &shape,
             int32_t max_kernels, const Workspace &workspace, mp_stream_t stream) {
  const TunedCall call(context, shape, workspace.bytes);
  if (shape.out.items != ItemAccess::strided || shape.k == 0 || call.kernel() != nullptr) return;
  const PlanRequest request = plan_request(context, workspace.bytes);
  const auto launch = [&](const GemmProblem &measured, const GemmPlan &plan) {
    context.backend.gemm(context.device, measured, plan, workspace, stream);
  };
  call.measure(text_of(shape), problem, fastest_gemm_plans(shape, request, max_kernels), launch,
               stream);
}

/// Selects a kernel for a checked problem, logs and launches it.
void run(const Context &context, const char *function, const GemmProblem &problem,
         const RequestedPlan &requested, const Workspace &workspace, mp_stream_t stream) {
  const GemmShape shape = shape_of(problem);
  const int32_t max_kernels = measured_kernels(context);
  if (max_kernels > 0 && !requested.is_set())
    measure(context, problem, shape, max_kernels, workspace, stream);
  const GemmPlan plan = find_call_plan(context, shape, requested, workspace.bytes);
  log_slow_plan(context, function, problem.out, plan, workspace.bytes,
                [&] { return slow_path_reason(shape, context.device); });
  log_plan(context, function, shape, plan.name, plan.workspace.bytes);
  context.backend.gemm(context.device, problem, plan, workspace, stream);
}

}  // namespace

mp_status_t mp_gemm_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                   const mp_epilogue_t *epilogue, size_t *bytes) {
  return get_workspace_size(__func__, context, desc, epilogue, ItemAccess::strided, bytes);
}

mp_status_t mp_gemm_batched_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                           const mp_epilogue_t *epilogue, size_t *bytes) {
  return get_workspace_size(__func__, context, desc, epilogue, ItemAccess::pointers, bytes);
}

mp_status_t mp_gemm_get_plan(mp_context_t context, const mp_gemm_desc_t *desc,
                             const mp_epilogue_t *epilogue, size_t max_workspace_bytes,
                             mp_plan_t *plan) {
  return get_plan(__func__, context, desc, epilogue, ItemAccess::strided, max_workspace_bytes,
                  plan);
}

mp_status_t mp_gemm_batched_get_plan(mp_context_t context, const mp_gemm_desc_t *desc,
                                     const mp_epilogue_t *epilogue, size_t max_workspace_bytes,
                                     mp_plan_t *plan) {
  return get_plan(__func__, context, desc, epilogue, ItemAccess::pointers, max_workspace_bytes,
                  plan);
}

mp_status_t mp_gemm(mp_context_t context, const mp_gemm_desc_t *desc, const void *A, const void *B,
                    const void *C, void *D, const mp_epilogue_t *epilogue, void *workspace,
                    size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const RequestedPlan requested(d.plan);
    GemmProblem problem = gemm_problem(d);
    problem.out.epilogue = read_epilogue(epilogue, problem.out);
    require_separate_outputs(d, problem.out);
    check_operands({A, B, C, D}, d, mp_dtype_size(d.dtype_ab), mp_dtype_size(d.dtype_cd));
    const Workspace space{workspace, workspace_bytes};
    check_workspace(space);
    if (is_empty(d)) {
      requested.require_known(gemm_names());
      return clear_sums(c, problem.out.epilogue.dbias, problem.out.n, stream);
    }

    check_overlap({A, B, C, D}, d, problem.out, space);
    set_data(problem, {A, B, C, D});
    run(c, "mp_gemm", problem, requested, space, stream);
  });
}

mp_status_t mp_gemm_batched(mp_context_t context, const mp_gemm_desc_t *desc, const void *const *A,
                            const void *const *B, const void *const *C, void *const *D,
                            const mp_epilogue_t *epilogue, void *workspace, size_t workspace_bytes,
                            mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const RequestedPlan requested(d.plan);
    require_no_strides(d);
    GemmProblem problem = gemm_problem(d);
    problem.out.epilogue = read_epilogue(epilogue, problem.out);
    require_batched_epilogue(problem.out.epilogue);
    check_operands({A, B, C, D}, d, alignof(void *), alignof(void *));
    const Workspace space{workspace, workspace_bytes};
    check_workspace(space);
    if (is_empty(d)) return requested.require_known(gemm_names());

    require_other_items(d, problem.out, A, B, C, D, space);
    problem.a.items = A;
    problem.b.items = B;
    problem.out.c.items = C;
    problem.out.d.items = D;
    run(c, "mp_gemm_batched", problem, requested, space, stream);
  });
}

mp_status_t mp_gemm_kernel_info(mp_context_t context, const mp_gemm_desc_t *desc, int32_t index,
                                mp_kernel_info_t *info) {
  return call(__func__, context, nvtx_payload(desc), [&](const Context &c) {
    const Query query(desc, nullptr, ItemAccess::strided);
    require_struct(info, "info");
    require_not_negative(index, "index");
    require_product(query.desc);
    write_struct(info, "info", query.info(c, index));
  });
}

mp_status_t mp_gemm_explain(mp_context_t context, const mp_gemm_desc_t *desc,
                            const mp_epilogue_t *epilogue, char *text, size_t *bytes) {
  return call(__func__, context, nvtx_payload(desc), [&](const Context &c) {
    const Query query(desc, epilogue, ItemAccess::strided);
    require_product(query.desc);
    const GemmPlan plan = query.plan(c, SIZE_MAX);
    write_text(plan_text(c, text_of(query.shape), plan.name, plan, plan.copies.bytes(),
                         next_candidates(query, c, plan.name)),
               text, bytes);
  });
}

// ---------------------------------------------------------------------------- column sums

namespace {

mp_column_sum_desc_t read_desc(const mp_column_sum_desc_t *user) {
  const mp_column_sum_desc_t d = read_struct(user, "desc");
  MP_CHECK_FIELDS(require_dtype, d, dtype, dtype_sum);
  MP_CHECK_FIELDS(require_not_negative, d, rows, columns);
  require_at_least({d.ld, "ld"}, {d.columns, "columns"});
  constexpr int64_t kMaxColumns = int64_t{1} << 50;  // number of chunks fits in 63 bits
  int64_t elems;
  MP_REQUIRE(d.columns <= kMaxColumns && strided_extent(d.rows, d.ld, d.columns, &elems) &&
                 bytes_fit(elems, d.dtype),
             MP_ERROR_INVALID_ARGUMENT, "rows = ", d.rows, " with columns = ", d.columns,
             " and ld = ", d.ld, ": size in bytes exceeds 2^63 - 1");
  return d;
}

Output input_of(const mp_column_sum_desc_t &d, const void *x) {
  return output_matrix(x, d.rows, d.columns, d.ld, d.dtype);
}

}  // namespace

mp_status_t mp_column_sum_workspace_size(mp_context_t context, const mp_column_sum_desc_t *desc,
                                         size_t *bytes) {
  return call(__func__, context, desc, read_desc, [&](const auto &, const auto &d) {
    require_pointer(bytes, "bytes") =
        d.columns == 0 ? 0 : column_sum_bytes(shape_of(input_of(d, nullptr)));
  });
}

mp_status_t mp_column_sum(mp_context_t context, const mp_column_sum_desc_t *desc, const void *x,
                          void *sum, const mp_epilogue_t *epilogue, void *workspace,
                          size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    Output sums = output_matrix(sum, 1, d.columns, d.columns, d.dtype_sum);
    sums.beta = d.beta;
    sums.epilogue = read_scaling_epilogue(epilogue, "mp_column_sum");
    if (d.columns == 0) return;
    const Output in = input_of(d, x);
    if (d.rows > 0) require_device(x, "x", mp_dtype_size(d.dtype));
    require_device(sum, "sum", mp_dtype_size(d.dtype_sum));
    require_workspace(workspace, workspace_bytes, column_sum_bytes(shape_of(in)));
    check_overlap(sums, dense_region(sum, "sum", d.columns, d.dtype_sum),
                  {matrix_region(x, "x", d.rows, d.columns, d.ld, d.dtype)},
                  {workspace, workspace_bytes});
    c.backend.sum_columns(c.device, in, sums, workspace, stream);
  });
}
