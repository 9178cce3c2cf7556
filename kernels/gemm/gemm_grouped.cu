// Launches of mp_gemm_grouped and mp_gemm_ragged.
#include "kernels/gemm/gemm_work.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- mp_gemm_grouped

// The GEMMs of a group are one sequence of tiles, in one launch.
//
// Small launches receive the shapes and pointers of the entries as kernel parameters and fill the
// table from them.  An asynchronous copy has two problems: from pageable memory it may wait for the
// device, and in a captured graph it reads its source at every replay.  Parameters are always
// copied when the launch is enqueued.
//
// A kernel can have 32,764 bytes of parameters on sm_70 and newer, with CUDA 12.1 or newer (CUDA
// C++ Programming Guide, chapter on function parameters).  All of them are copied, used or not, so
// small groups have a separate kernel.

namespace {

constexpr int kThreads = 32;
constexpr int kFewProducts = 24, kManyProducts = kWgmmaProductsPerLaunch;

template <int kProducts>
struct TableArgs {
  WgmmaArgs gemm;
  int32_t first, count;
  GroupEntryShape products[kProducts];
};
static_assert(sizeof(TableArgs<kManyProducts>) <= 32764);

template <int kProducts>
MP_KERNEL(kThreads, 1)
fill_group_table(MP_PARAM(TableArgs<kProducts>) args) {
  wait_for_previous_kernel();
  const int index = static_cast<int>(block_index()) * kThreads + thread_index();
  if (index == 0) args.gemm.header().misaligned = 0;
  if (index < args.count) store_group_entry(args.gemm, args.first + index, args.products[index]);
}

GroupEntryShape product_of(const GemmGroupItem &item, uint32_t first_tile) {
  return {.a_data = item.a,
          .b_data = item.b,
          .c_data = item.c,
          .d_data = item.d,
          .ld_a = item.ld_a,
          .ld_b = item.ld_b,
          .ld_c = item.ld_c,
          .ld_d = item.ld_d,
          .m0 = 0,
          .k0 = 0,
          .m = static_cast<int32_t>(item.m),
          .n = static_cast<int32_t>(item.n),
          .k = static_cast<int32_t>(item.k),
          .first_tile = first_tile};
}

/// Fills the next table entries, as many as one launch supports, and counts their tiles.
template <int kProducts>
int64_t fill_table(const Device &device, const GemmGroup &group, const GemmKernel &kernel,
                   int64_t first, WgmmaArgs *gemm, mp_stream_t stream) {
  TableArgs<kProducts> args;
  args.first = static_cast<int32_t>(first);
  args.count = static_cast<int32_t>(min_of<int64_t>(group.count - first, kProducts));
  for (int32_t i = 0; i < args.count; i++) {
    const GemmGroupItem &item = group.items[first + i];
    args.products[i] = product_of(item, gemm->num_work_tiles);
    gemm->num_work_tiles += static_cast<uint32_t>(ceil_div<int64_t>(item.m, kernel.tile_m) *
                                                  ceil_div<int64_t>(item.n, kernel.tile_n));
  }
  args.gemm = *gemm;
  launch("fill_group_table", fill_group_table<kProducts>, device,
         {.num_blocks = ceil_div<int64_t>(args.count, kThreads),
          .num_threads = kThreads,
          .uses_pdl = true},
         stream, args);
  return args.count;
}

}  // namespace

void gemm_grouped(const Device &device, const GemmGroup &group, const GemmPlan &plan,
                  void *workspace, mp_stream_t stream) {
  WgmmaArgs args = make_wgmma_group_args(device, group.common, group.count, plan,
                                         static_cast<std::byte *>(workspace));
  for (int64_t done = 0; done < group.count;) {
    const auto fill =
        group.count - done <= kFewProducts ? fill_table<kFewProducts> : fill_table<kManyProducts>;
    done += fill(device, group, *plan.kernel, done, &args, stream);
  }
  launch_wgmma_kernel(plan, device, args, stream);
}

// ---------------------------------------------------------------------------- mp_gemm_ragged

// Group sizes are known only on the device.
//
// WMMA and CUDA-core kernels find the group of each tile themselves.  For wgmma, a small launch
// fills the table of a grouped GEMM, in which A, B or D ends with its group.  TMA loads zeros
// beyond the end and stores nothing there, and coordinates may begin anywhere.

namespace {

struct RaggedTableArgs {
  WgmmaArgs gemm;
  const int32_t *ends;
  mp_ragged_t dimension;
  int32_t tile_m;
  uint32_t tiles_m, tiles_n;  ///< per group; tiles_m only with MP_RAGGED_K
};

/// Fills the table.  Each warp iterates over the groups up to its own 32 and stores these.
MP_KERNEL(kWarpSize, 1) fill_ragged_table(MP_PARAM(RaggedTableArgs) args) {
  wait_for_previous_kernel();
  const GemmProblem &p = args.gemm.problem;
  const bool by_m = args.dimension == MP_RAGGED_M;
  RaggedWarp warp(args.ends, p.out.batch_count, by_m ? p.out.m : p.k, args.tile_m);
  for (int64_t i = 0; i <= block_index(); i++) warp.next();
  const uint32_t tiles_of_group = args.tiles_m * args.tiles_n;
  if (!warp.has_more() && lane_index() == 0)
    args.gemm.header() = {0, by_m ? warp.num_tiles() * args.tiles_n
                                  : static_cast<uint32_t>(p.out.batch_count) * tiles_of_group};
  const RaggedGroup &group = warp.own();
  if (group.index >= p.out.batch_count) return;

  // An empty group is not read, but a tensor map cannot be empty.
  const int32_t end = max_of(group.end, 1);
  const int32_t begin = group.begin < group.end ? group.begin : end;
  GroupEntryShape product{};
  product.a_data = p.a.base;
  product.b_data = item_address(p.b, p.dtype_ab, group.index);
  product.c_data = item_address(p.out.c, p.out.dtype, group.index);
  product.d_data = const_cast<void *>(item_address(p.out.d, p.out.dtype, group.index));
  product.ld_a = p.a.ld;
  product.ld_b = p.b.ld;
  product.ld_c = p.out.c.ld;
  product.ld_d = p.out.d.ld;
  product.m0 = by_m ? begin : 0;
  product.k0 = by_m ? 0 : begin;
  product.m = by_m ? end : static_cast<int32_t>(p.out.m);
  product.n = static_cast<int32_t>(p.out.n);
  product.k = by_m ? static_cast<int32_t>(p.k) : end;
  product.first_tile =
      by_m ? group.first_tile * args.tiles_n : static_cast<uint32_t>(group.index) * tiles_of_group;
  store_group_entry(args.gemm, group.index, product);
}

/// Returns the maximum number of tile rows for any group sizes: the last tile of each nonempty
/// group may have a single row.
uint32_t most_tiles_m(const Output &out, int tile_m) {
  const int64_t groups = min_of(out.batch_count, out.m);
  return static_cast<uint32_t>((out.m + groups * (tile_m - 1)) / tile_m);
}

/// `scheduler` counts enough tiles for any ends.
void launch_ragged_wgmma(const Device &device, const RaggedProblem &problem,
                         const TileScheduler &scheduler, const GemmPlan &plan, std::byte *workspace,
                         mp_stream_t stream) {
  const Output &out = problem.all.out;
  RaggedTableArgs args{};
  args.gemm = make_wgmma_group_args(device, problem.all, out.batch_count, plan, workspace);
  args.gemm.num_work_tiles = static_cast<uint32_t>(scheduler.num_work_tiles());
  args.gemm.tiles_in_table = true;
  args.ends = problem.ends;
  args.dimension = problem.dimension;
  args.tile_m = plan.kernel->tile_m;
  args.tiles_m = scheduler.tiles_m;
  args.tiles_n = scheduler.tiles_n;
  launch("fill_ragged_table", fill_ragged_table, device,
         {.num_blocks = ceil_div<int64_t>(out.batch_count, kWarpSize),
          .num_threads = kWarpSize,
          .uses_pdl = true},
         stream, args);
  launch_wgmma_kernel(plan, device, args.gemm, stream);
}

}  // namespace

void gemm_ragged(const Device &device, const RaggedProblem &problem, const GemmPlan &plan,
                 void *workspace, mp_stream_t stream) {
  GemmArgs args = make_gemm_args(problem.all, *plan.kernel, 1, device);
  args.ends = problem.ends;
  args.ragged = problem.dimension;
  if (problem.dimension == MP_RAGGED_M) {
    args.scheduler.tiles_m = most_tiles_m(problem.all.out, plan.kernel->tile_m);
    args.scheduler.batch_count = 1;
  }
  if (plan.kernel->family == GemmFamily::wgmma)
    launch_ragged_wgmma(device, problem, args.scheduler, plan, static_cast<std::byte *>(workspace),
                        stream);
  else if (plan.kernel->family == GemmFamily::wmma)
    launch_wmma(plan.name, *plan.kernel, device, args, stream);
  else
    launch_simt(plan, device, args, stream);
}

}  // namespace mp::MP_TARGET
