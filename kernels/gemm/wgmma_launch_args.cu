#include "kernels/gemm/wgmma_launch.h"

#include "kernels/gemm/dispatch.h"
#include "kernels/gemm/partial_sums.h"
#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

namespace {

/// Tiles of a cluster in either direction.
struct Pairs {
  uint32_t m, n;
};
Pairs cluster_shape(const GemmPlan &plan) {
  const uint32_t cluster = static_cast<uint32_t>(plan.cluster);
  return plan.kernel->cluster_along_m ? Pairs{cluster, 1} : Pairs{1, cluster};
}

}  // namespace

WgmmaArgs make_wgmma_args(const GemmPlan &plan, const GemmArgs &gemm) {
  const Pairs pair = cluster_shape(plan);
  WgmmaArgs args{};
  args.problem = gemm.problem;
  args.scheduler = gemm.scheduler;
  args.scheduler.tiles_m = ceil_div(gemm.scheduler.tiles_m, pair.m);
  args.scheduler.tiles_n = ceil_div(gemm.scheduler.tiles_n, pair.n);
  args.scheduler.group = ceil_div(gemm.scheduler.group, pair.m);
  args.num_work_tiles = static_cast<uint32_t>(args.scheduler.num_work_tiles());
  args.divisors = TileDivisors(args.scheduler);
  args.slice_k = static_cast<int32_t>(gemm.slice_k);
  if (plan.split_k == 1)
    args.common_k_tiles =
        static_cast<int32_t>(ceil_div<int64_t>(gemm.problem.k, plan.kernel->tile_k));
  return args;
}

TensorMap wgmma_map_a(const GemmProblem &p, const GemmPlan &plan) {
  const bool by_k = p.op_a == MP_OP_N;
  const int rows = wgmma_box_rows(by_k, plan.kernel->tile_m, cluster_shape(plan).n > 1);
  return tensor_map(wgmma_matrix_spec(p.a, p.dtype_ab, by_k ? p.out.m : p.k, by_k ? p.k : p.out.m,
                                      p.out.batch_count, rows));
}
TensorMap wgmma_map_b(const GemmProblem &p, const GemmPlan &plan) {
  const bool by_k = p.op_b == MP_OP_T;
  const int rows = wgmma_box_rows(by_k, plan.kernel->tile_n, cluster_shape(plan).m > 1);
  return tensor_map(wgmma_matrix_spec(p.b, p.dtype_ab, by_k ? p.out.n : p.k, by_k ? p.k : p.out.n,
                                      p.out.batch_count, rows));
}

void set_wgmma_store(const GemmPlan &plan, const TensorMapSpec &d, const TensorMapSpec &source,
                     WgmmaArgs *args) {
  args->source = plan.source;
  args->store = plan.store;
  if (plan.store != StorePath::tma) return;
  args->d = tensor_map(d);
  if (plan.source == EpilogueSource::none) return;
  args->source_map = tensor_map(source);
  args->source_is_shared = source.extent[2] == 1;
}

void set_wgmma_slices(const Output &d, float *partial_sums, WgmmaArgs *args) {
  // The extents of the product itself: its columns may be padded, its items are stride phases.
  const Output &product = args->problem.out;
  Output sums{product.m, product.n, product.batch_count, MP_FP32, 1.0f, 0.0f, {}, {}, {}};
  sums.d = {partial_sums, nullptr, d.n, d.batch_count > 1 ? d.m * d.n : 0};
  args->problem.out = sums;
  args->slice_bytes = slice_elems(d) * int64_t{sizeof(float)};
  args->store = StorePath::direct;
}

WgmmaArgs make_wgmma_group_args(const Device &device, const GemmProblem &common, int64_t count,
                                const GemmPlan &plan, std::byte *workspace) {
  const GemmKernel &kernel = *plan.kernel;
  WgmmaArgs args{};
  args.problem = common;
  args.store = plan.store;
  args.scheduler.group = raster_group(kernel.tile_m, kernel.tile_n, device.num_sms);
  args.group_count = static_cast<int32_t>(count);
  args.table = workspace + plan.workspace.table;

  // Patterns: the table replaces addresses and extents.
  constexpr int64_t kAny = 64;
  const Operand any{args.table, nullptr, kAny, 0};
  GemmProblem p = common;
  p.out.m = p.out.n = p.k = kAny;
  p.out.batch_count = 1;
  p.a = p.b = p.out.d = any;
  args.a = wgmma_map_a(p, plan);
  args.b = wgmma_map_b(p, plan);
  if (plan.store == StorePath::tma) args.d = tensor_map(wgmma_spec_d(p.out));
  return args;
}

}  // namespace mp::MP_TARGET
