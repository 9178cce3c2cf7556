// Launch of a Hopper kernel: its arguments and tensor maps, and the table of batch items behind
// pointers.

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/simt/device.h"
#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

namespace {

/// Tiles of a cluster in either direction.
struct ClusterShape {
  uint32_t m, n;
};
ClusterShape cluster_shape(const GemmPlan &plan) {
  const uint32_t cluster = static_cast<uint32_t>(plan.multicast);
  return plan.kernel->cluster_along_m ? ClusterShape{cluster, 1} : ClusterShape{1, cluster};
}

}  // namespace

WgmmaArgs make_wgmma_args(const GemmPlan &plan, const GemmArgs &gemm) {
  const ClusterShape cluster = cluster_shape(plan);
  WgmmaArgs args{};
  args.problem = gemm.problem;
  args.scheduler = gemm.scheduler;
  args.scheduler.tiles_m = ceil_div(gemm.scheduler.tiles_m, cluster.m);
  args.scheduler.tiles_n = ceil_div(gemm.scheduler.tiles_n, cluster.n);
  args.scheduler.group = ceil_div(gemm.scheduler.group, cluster.m);
  args.scheduler.split_k = static_cast<uint32_t>(plan.num_partials());
  args.num_work_tiles = static_cast<uint32_t>(args.scheduler.num_work_tiles());
  args.divisors = TileDivisors(args.scheduler);
  args.multicast_blocks = plan.multicast;
  args.parts = plan.parts;
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
  args->slice_bytes = elems_per_partial(d) * int64_t{sizeof(float)};
  args->store = args->parts > 1 ? StorePath::staged : StorePath::direct;
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
  if (plan.store == StorePath::tma) args.d = tensor_map(wgmma_subtile_spec(p.out, any));
  return args;
}

// ---------------------------------------------------------------------------- batch by pointers

namespace {

constexpr int kItemsPerBlock = static_cast<int>(kWgmmaItemsPerBlock);

/// Fills one table entry from the arrays of pointers.  Returns false if TMA cannot access a matrix.
MP_DEVICE bool fill_item(const WgmmaArgs &args, int64_t index) {
  const GemmProblem &p = args.problem;
  const void *const a = p.a.items[index], *const b = p.b.items[index];
  const bool d_by_tma = args.store == StorePath::tma;
  void *const d = d_by_tma ? const_cast<void *>(p.out.d.items[index]) : nullptr;
  if (!is_aligned_16(a) || !is_aligned_16(b) || !is_aligned_16(d)) return false;
  GroupEntry &item = args.item(index);
  tensor_map_copy_with_base(&item.a, args.a, a);
  tensor_map_copy_with_base(&item.b, args.b, b);
  if (d_by_tma) tensor_map_copy_with_base(&item.d, args.d, d);
  tensor_map_release();
  return true;
}

/// Fills the table and checks the alignment of all items, because the host cannot read their
/// pointers.  A single block writes the flag.  Several blocks only raise it, and launch_table()
/// clears it first.
MP_KERNEL(kItemsPerBlock, 1)
fill_wgmma_table(MP_PARAM(WgmmaArgs) args) {
  wait_for_previous_kernel();
  const int64_t index = block_index() * kItemsPerBlock + thread_index();
  const bool is_bad = index < args.problem.out.batch_count && !fill_item(args, index);
  const uint32_t any_is_bad = block_reduce<kItemsPerBlock, Max>(uint32_t{is_bad});
  if (thread_index() == 0 && (any_is_bad != 0 || grid_size() == 1))
    args.header().misaligned = any_is_bad;
}

void launch_table(const Device &device, const WgmmaArgs &args, mp_stream_t stream) {
  const int64_t blocks = ceil_div<int64_t>(args.problem.out.batch_count, kItemsPerBlock);
  if (blocks > 1) fill(device, &args.header().misaligned, 0, sizeof(uint32_t), stream);
  launch("fill_wgmma_table", fill_wgmma_table, device,
         {.num_blocks = blocks, .num_threads = kItemsPerBlock, .uses_pdl = true}, stream, args);
}

/// Returns WgmmaArgs::tiles_per_series: a power of two that divides the tiles of an item and delays
/// the last tile by at most a thirtieth.  With longer series, concurrent clusters would read too
/// many items for L2.
uint32_t count_tiles_per_series(const TileScheduler &scheduler, int64_t num_clusters) {
  constexpr uint32_t kMaxTiles = 16;
  const auto waves = [&](uint32_t each) {
    return ceil_div(scheduler.num_work_tiles() / each, num_clusters) * each;
  };
  uint32_t tiles = 1;
  for (uint32_t next = 2; next <= kMaxTiles; next *= 2)
    if (scheduler.tiles_m * scheduler.tiles_n % next == 0 && waves(next) * 30 <= waves(1) * 31)
      tiles = next;
  return tiles;
}

/// Pattern for the maps of the items: the first item, at an address that any map accepts.
GemmProblem with_placeholder(GemmProblem problem, const std::byte *workspace) {
  problem.out.batch_count = 1;
  problem.a.base = problem.b.base = problem.out.d.base = workspace;
  return problem;
}

/// Runs the batch without TMA if the table reports a misaligned item.
void launch_fallback(const GemmKernel &kernel, const Device &device, const GemmProblem &p,
                     const uint32_t *required_flag, mp_stream_t stream) {
  GemmArgs args = make_gemm_args(p, kernel, 1, device);
  args.required_flag = required_flag;
  launch_wmma(kernel.name, kernel, device, args, stream);
}

}  // namespace

void launch_wgmma(const GemmPlan &plan, const Device &device, const GemmArgs &gemm,
                  std::byte *workspace, mp_stream_t stream) {
  const GemmProblem &p = gemm.problem;
  const bool by_pointers = plan.fallback != nullptr;
  WgmmaArgs args = make_wgmma_args(plan, gemm);
  args.column_partials = column_partials(plan.dbias, workspace);

  const GemmProblem mapped = by_pointers ? with_placeholder(p, workspace) : p;
  args.a = wgmma_map_a(mapped, plan);
  args.b = wgmma_map_b(mapped, plan);
  const bool is_split = plan.num_partials() > 1;
  float *const partial_sums = reinterpret_cast<float *>(workspace + plan.workspace.partial_sums);
  if (is_split)
    set_wgmma_slices(p.out, partial_sums, &args);
  else
    set_wgmma_store(plan, wgmma_subtile_spec(mapped.out, mapped.out.d),
                    wgmma_subtile_spec(p.out, wgmma_source_operand(p.out)), &args);

  if (by_pointers) {
    args.table = workspace + plan.workspace.table;
    if (plan.parts == 1)
      args.tiles_per_series =
          count_tiles_per_series(args.scheduler, max_of(device.num_sms / plan.multicast, 1));
    launch_table(device, args, stream);
  }
  const uint32_t *const misaligned = by_pointers ? &args.header().misaligned : nullptr;
  launch_wgmma_kernel(plan, device, args, stream);
  if (is_split)
    launch_split_k_sum(device, p.out, plan.num_partials(), partial_sums, stream, misaligned);
  if (by_pointers) launch_fallback(*plan.fallback, device, p, misaligned, stream);
}

}  // namespace mp::MP_TARGET
