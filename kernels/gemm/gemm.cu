// Launches of mp_gemm: the main loop, and the passes before and after it that some problems need.
#include "kernels/gemm/gemm.h"

#include "kernels/gemm/aligned_copies.h"
#include "kernels/gemm/dispatch.h"

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

GemmArgs make_gemm_args(const GemmProblem &problem, const GemmPlan &choice, const Device &device) {
  const GemmKernel &kernel = *choice.kernel;
  GemmArgs args{};
  args.problem = with_addresses(problem);
  args.scheduler = {static_cast<uint32_t>(ceil_div<int64_t>(problem.out.m, kernel.tile_m)),
                    static_cast<uint32_t>(ceil_div<int64_t>(problem.out.n, kernel.tile_n)),
                    static_cast<uint32_t>(problem.out.batch_count),
                    static_cast<uint32_t>(choice.split_k),
                    raster_group(kernel.tile_m, kernel.tile_n, device.num_sms)};
  args.slice_k = slice_elems(kernel, problem.k, choice.split_k);
  return args;
}

namespace {

/// Launches the main loop over operands that are read in place.
void multiply(const Device &device, const GemmProblem &problem, const GemmPlan &choice,
              const ColumnPartials &sums, std::byte *workspace, mp_stream_t stream) {
  GemmArgs args = make_gemm_args(problem, choice, device);
  args.column_partials = sums;
  switch (choice.kernel->family) {
    case GemmFamily::wgmma:
      launch_wgmma(choice, device, args, workspace, stream);
      break;
    case GemmFamily::gemv:
      launch_gemv(choice, device, args, stream);
      break;
    case GemmFamily::wmma:
    case GemmFamily::simt:
      if (choice.split_k > 1) args.partial_sums = reinterpret_cast<float *>(workspace);
      if (choice.kernel->family == GemmFamily::wmma)
        launch_wmma(choice, device, args, stream);
      else
        launch_simt(choice, device, args, stream);
      if (choice.split_k > 1)
        launch_split_k_sum(device, problem.out, choice.split_k, args.partial_sums, stream);
      break;
  }
}

}  // namespace

void gemm(const Device &device, const GemmProblem &problem, const GemmPlan &choice,
          const Workspace &workspace, mp_stream_t stream) {
  std::byte *const space = static_cast<std::byte *>(workspace.ptr);
  const std::optional<DbiasPlan> dbias = dbias_of(problem.out, choice, workspace.bytes);
  const ColumnPartials sums = column_partials(dbias, space);
  if (choice.reads_copies) {
    const AlignedCopies copies = aligned_copies(problem);
    const GemmProblem copied = launch_aligned_copies(device, problem, copies, space, stream);
    multiply(device, copied, choice, sums, space + copies.bytes(), stream);
  } else {
    multiply(device, problem, choice, sums, space, stream);
  }
  if (dbias) launch_column_sum(device, problem.out, *dbias, space, stream);
}

}  // namespace mp::MP_TARGET
