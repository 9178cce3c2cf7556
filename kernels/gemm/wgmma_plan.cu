#include "kernels/gemm/wgmma_plan.h"

#include "kernels/gemm/dispatch.h"
#include "kernels/gemm/partial_sums.h"
#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

namespace {

/// Tiles of a cluster, in either direction.
struct Pairs {
  uint32_t m, n;
};
Pairs cluster_shape(const GemmPlan &choice) {
  const uint32_t cluster = static_cast<uint32_t>(choice.cluster);
  return choice.kernel->cluster_along_m ? Pairs{cluster, 1} : Pairs{1, cluster};
}

}  // namespace

WgmmaArgs plan_wgmma(const GemmPlan &choice, const GemmArgs &gemm) {
  const Pairs pair = cluster_shape(choice);
  WgmmaArgs args{};
  args.problem = gemm.problem;
  args.scheduler = gemm.scheduler;
  args.scheduler.tiles_m = ceil_div(gemm.scheduler.tiles_m, pair.m);
  args.scheduler.tiles_n = ceil_div(gemm.scheduler.tiles_n, pair.n);
  args.scheduler.group = ceil_div(gemm.scheduler.group, pair.m);
  args.num_work_tiles = static_cast<uint32_t>(args.scheduler.num_work_tiles());
  args.divisors = TileDivisors(args.scheduler);
  args.slice_k = static_cast<int32_t>(gemm.slice_k);
  if (choice.split_k == 1)
    args.common_k_tiles =
        static_cast<int32_t>(ceil_div<int64_t>(gemm.problem.k, choice.kernel->tile_k));
  args.column_partials = gemm.column_partials;
  return args;
}

TensorMap wgmma_map_a(const GemmProblem &p, const GemmPlan &choice) {
  const bool by_k = p.op_a == MP_OP_N;
  const int rows = wgmma_box_rows(by_k, choice.kernel->tile_m, cluster_shape(choice).n > 1);
  return tensor_map(wgmma_matrix_spec(p.a, p.dtype_ab, by_k ? p.out.m : p.k, by_k ? p.k : p.out.m,
                                      p.out.batch_count, rows));
}
TensorMap wgmma_map_b(const GemmProblem &p, const GemmPlan &choice) {
  const bool by_k = p.op_b == MP_OP_T;
  const int rows = wgmma_box_rows(by_k, choice.kernel->tile_n, cluster_shape(choice).m > 1);
  return tensor_map(wgmma_matrix_spec(p.b, p.dtype_ab, by_k ? p.out.n : p.k, by_k ? p.k : p.out.n,
                                      p.out.batch_count, rows));
}

void plan_wgmma_store(const TensorMapSpec &d, const TensorMapSpec *source_map, WgmmaArgs *args) {
  const Output &out = args->problem.out;
  args->source = wgmma_epilogue_source(out);
  args->store = wgmma_store_path(out, d, source_map);
  if (args->store != StorePath::tma) {
    if (args->column_partials.base != nullptr)
      throw_target_error(MP_ERROR_INTERNAL, "dbias requires D to be stored through TMA");
    return;
  }
  args->d = tensor_map(d);
  if (args->source == EpilogueSource::none) return;
  args->source_map = tensor_map(*source_map);
  args->source_is_shared = source_map->extent[2] == 1;
}

void plan_wgmma_slices(const Output &d, float *partial_sums, WgmmaArgs *args) {
  Output slices = wgmma_slices(d);
  slices.d.base = partial_sums;
  // The sizes of the product: its columns may be padded, its items stride phases.
  Output &out = args->problem.out;
  slices.m = out.m;
  slices.n = out.n;
  slices.batch_count = out.batch_count;
  out = slices;
  args->slice_bytes = slice_elems(d) * int64_t{sizeof(float)};
  args->store = StorePath::direct;
}

WgmmaArgs plan_wgmma_group(const Device &device, const GemmProblem &common, int64_t count,
                           StorePath store, const GemmPlan &choice, std::byte *workspace) {
  const GemmKernel &kernel = *choice.kernel;
  WgmmaArgs args{};
  args.problem = common;
  args.store = store;
  args.scheduler.group = raster_group(kernel.tile_m, kernel.tile_n, device.num_sms);
  args.group_count = static_cast<int32_t>(count);
  args.table = workspace + wgmma_workspace(count).table;

  constexpr int64_t kAny = 64;
  const Operand any{args.table, nullptr, kAny, 0};
  GemmProblem p = common;
  p.out.m = p.out.n = p.k = kAny;
  p.out.batch_count = 1;
  p.a = p.b = p.out.d = any;
  args.a = wgmma_map_a(p, choice);
  args.b = wgmma_map_b(p, choice);
  if (store == StorePath::tma) args.d = tensor_map(wgmma_spec_d(p.out));
  return args;
}

}  // namespace mp::MP_TARGET
