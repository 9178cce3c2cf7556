// One mp_gemm: the main loop, and the passes behind it that some problems need.
#include "kernels/gemm/gemm.h"

#include "kernels/target.h"

namespace mp::MP_TARGET {

namespace {

/// k = 0 reads neither A nor B, so they may be NULL; the kernels still form addresses from them.
GemmProblem with_addresses(GemmProblem problem) {
  if (problem.k > 0) return problem;
  problem.a = problem.b = problem.d;
  return problem;
}

}  // namespace

void gemm(const Device &device, const GemmProblem &problem, const GemmChoice &choice,
          void *workspace, mp_stream_t stream) {
  const GemmKernel &kernel = *choice.kernel;
  GemmArgs args{};
  args.problem = with_addresses(problem);
  args.schedule = {ceil_div<int64_t>(problem.m, kernel.tile_m),
                   ceil_div<int64_t>(problem.n, kernel.tile_n), problem.batch_count,
                   choice.split_k};
  args.slice_k = slice_elems(kernel, problem.k, choice.split_k);
  args.partial_sums = choice.split_k > 1 ? static_cast<float *>(workspace) : nullptr;

  if (!kernel.tensor_core)
    launch_simt(choice, device, args, stream);
  else if (problem.dtype_ab == MP_FP16)
    launch_wmma_fp16(choice, device, args, stream);
  else
    launch_wmma_bf16(choice, device, args, stream);

  if (choice.split_k > 1) launch_split_k_sum(device, args, stream);
  if (problem.epilogue.dbias != nullptr) launch_column_sum(device, problem, stream);
}

}  // namespace mp::MP_TARGET
