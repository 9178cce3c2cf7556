// mpcore/gemm.h, groups whose sizes are in device memory: mp_gemm_ragged.
#include "capi/gemm_problem.h"
#include "capi/nvtx_payload.h"
#include "kernels/gemm/select_reasons.h"

namespace mp {

namespace {

constexpr char kFunction[] = "mp_gemm_ragged";

/// Fails if a matrix that the groups divide has a stride; its parts are consecutive.
void require_no_stride(const Matrix &matrix, mp_ragged_t ragged) {
  MP_REQUIRE(matrix.stride == 0, MP_ERROR_INVALID_ARGUMENT, matrix.stride_name, " = ",
             matrix.stride, " must be 0: ",
             ragged == MP_RAGGED_M ? "MP_RAGGED_M divides the rows among the groups"
                                   : "MP_RAGGED_K divides k among the groups");
}

mp_gemm_desc_t read_desc(const mp_gemm_desc_t *user, const mp_ragged_t &ragged) {
  const mp_gemm_desc_t d = read_struct(user, "desc");
  require_enum(ragged, "ragged", MP_RAGGED_M, MP_RAGGED_K);
  check_operation(d);
  check_shape(d);
  require_no_stride(matrix_a(d), ragged);
  if (ragged == MP_RAGGED_M) {
    count_tiles(d, tiles_along(d.m) + d.batch_count, 1);  // each group may begin a tile
    require_no_stride(matrix_c(d), ragged);
    require_no_stride(matrix_d(d), ragged);
  } else {
    count_tiles(d, tiles_along(d.m), d.batch_count);
    require_no_stride(matrix_b(d), ragged);
    require_separate_items(matrix_d(d), d.batch_count);
  }
  return d;
}

/// Selects a kernel for a checked problem, logs and launches it.
void run(const Context &context, const RaggedProblem &problem, const char *kernel,
         const Workspace &workspace, mp_stream_t stream) {
  const RaggedShape shape = shape_of(problem);
  const GemmPlan plan = find_plan(context, shape, kernel, workspace.bytes);
  log_slow_plan(context, kFunction, problem.all.out, plan, workspace.bytes,
                [&] { return slow_path_reason(shape.all, context.device); });
  log_plan(context, kFunction, problem.all, plan);
  context.backend.gemm_ragged(context.device, problem, plan, workspace.ptr, stream);
}

}  // namespace

}  // namespace mp

mp_status_t mp_gemm_ragged_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                          mp_ragged_t ragged, size_t *bytes) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    mp::require_pointer(bytes, "bytes");
    const mp_gemm_desc_t d = mp::read_desc(desc, ragged);
    const mp::RaggedProblem problem{mp::gemm_problem(d), ragged, nullptr};
    size_t needed = 0;
    if (!mp::is_empty(d)) {
      needed = mp::find_plan(c, mp::shape_of(problem), d.kernel, SIZE_MAX).workspace.bytes;
    } else {
      mp::require_known_kernel(d.kernel, mp::gemm_names());
    }
    *bytes = needed;
  });
}

mp_status_t mp_gemm_ragged(mp_context_t context, const mp_gemm_desc_t *desc, mp_ragged_t ragged,
                           const int32_t *ends, const void *A, const void *B, const void *C,
                           void *D, const mp_epilogue_t *epilogue, void *workspace,
                           size_t workspace_bytes, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_gemm_desc_t d = mp::read_desc(desc, ragged);
    mp::RaggedProblem problem{mp::gemm_problem(d), ragged, ends};
    problem.all.out.epilogue = mp::read_scaling_epilogue(epilogue, mp::kFunction);
    mp::check_operands({A, B, C, D}, d, mp_dtype_size(d.dtype_ab), mp_dtype_size(d.dtype_cd));
    mp::require_aligned(ends, "ends");
    const mp::Workspace space{workspace, workspace_bytes};
    mp::check_workspace(space);
    if (mp::is_empty(d)) return mp::require_known_kernel(d.kernel, mp::gemm_names());

    mp::require_device(ends, "ends");
    mp::check_overlap({A, B, C, D}, d, problem.all.out,
                      mp::dense_region(ends, "ends", d.batch_count));
    mp::set_data(problem.all, {A, B, C, D});
    mp::run(c, problem, d.kernel, space, stream);
  });
}
