// One mp_gemm: the main loop, and the passes before and after it that some plans need.
#include "kernels/gemm/gemm_args.h"

namespace mp::MP_TARGET {

namespace {

/// Returns a problem whose A and B are not NULL.  If k = 0, neither is read, so both may be NULL,
/// but the kernels still compute addresses from them.  alpha becomes 0, because an infinite alpha
/// would turn the empty sum into NaN.
GemmProblem with_addresses(GemmProblem problem) {
  if (problem.k > 0) return problem;
  problem.a = problem.b = problem.out.d;
  problem.out.alpha = 0.0f;
  problem.out.epilogue.scale = nullptr;
  return problem;
}

}  // namespace

TileScheduler make_scheduler(int64_t m, int64_t n, int64_t count, int32_t split_k,
                             const GemmKernel &kernel, const Device &device) {
  return {static_cast<uint32_t>(ceil_div<int64_t>(m, kernel.tile_m)),
          static_cast<uint32_t>(ceil_div<int64_t>(n, kernel.tile_n)), static_cast<uint32_t>(count),
          static_cast<uint32_t>(split_k),
          raster_group(kernel.tile_m, kernel.tile_n, device.num_sms)};
}

GemmArgs make_gemm_args(const GemmProblem &problem, const GemmKernel &kernel, int32_t split_k,
                        const Device &device) {
  GemmArgs args{};
  args.problem = with_addresses(problem);
  args.scheduler = make_scheduler(problem.out.m, problem.out.n, problem.out.batch_count, split_k,
                                  kernel, device);
  args.slice_k = k_per_slice(kernel, problem.k, split_k);
  return args;
}

namespace {

/// `problem` reads the copies, if the plan has any.
void multiply(const Device &device, const GemmProblem &problem, const GemmPlan &plan,
              std::byte *workspace, mp_stream_t stream) {
  GemmArgs args = make_gemm_args(problem, *plan.kernel, plan.split_k, device);
  switch (plan.kernel->family) {
    case GemmFamily::wgmma:
      launch_wgmma(plan, device, args, workspace, stream);
      break;
    case GemmFamily::thin:
      launch_thin(plan, device, args, stream);
      break;
    case GemmFamily::gemv:
      launch_gemv(plan, device, args, stream);
      break;
    case GemmFamily::wmma:
    case GemmFamily::simt:
      if (plan.split_k > 1)
        args.partial_sums = reinterpret_cast<float *>(workspace + plan.workspace.partial_sums);
      if (plan.kernel->family == GemmFamily::wmma)
        launch_wmma(plan.name, *plan.kernel, device, args, stream);
      else
        launch_simt(plan, device, args, stream);
      if (plan.split_k > 1)
        launch_split_k_sum(device, problem.out, plan.split_k, args.partial_sums, stream);
      break;
  }
}

}  // namespace

void gemm(const Device &device, const GemmProblem &problem, const GemmPlan &plan,
          const Workspace &workspace, mp_stream_t stream) {
  std::byte *const space = static_cast<std::byte *>(workspace.ptr);
  multiply(device, launch_aligned_copies(device, problem, plan.copies, space, stream), plan, space,
           stream);
  if (plan.dbias) launch_column_sum(device, problem.out, *plan.dbias, space, stream);
}

}  // namespace mp::MP_TARGET
