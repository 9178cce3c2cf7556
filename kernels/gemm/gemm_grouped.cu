// Launches of mp_gemm_grouped: the GEMMs of a group as one sequence of tiles, in one launch.
//
// Small launches receive the shapes and pointers of the entries as kernel parameters and fill the
// table from them.  An asynchronous copy has two problems: from pageable memory it may wait for the
// device, and in a captured graph it reads its source at every replay.  Parameters are always
// copied when the launch is enqueued.
//
// A kernel can have 32,764 bytes of parameters on sm_70 and newer, with CUDA 12.1 or newer (CUDA
// C++ Programming Guide, chapter on function parameters).  All of them are copied, used or not, so
// small groups have a separate kernel.
#include "kernels/gemm/wgmma_args.h"
#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

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

}  // namespace mp::MP_TARGET
