// One mp_gemm_grouped: the products of a group as one sequence of tiles, in one launch.
//
// What the kernel must know of each product goes to the device in the parameters of a small launch,
// so that a captured graph holds its own copy.
#include <cstring>
#include <vector>

#include "kernels/gemm/upload.h"
#include "kernels/gemm/wgmma_plan.h"
#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

namespace {

WgmmaItem table_item(const GemmProblem &p, const GemmChoice &choice, StorePath store,
                     uint32_t first_tile) {
  WgmmaItem item{};
  item.a = wgmma_map_a(p, choice);
  item.b = wgmma_map_b(p, choice);
  if (store == StorePath::strips) item.d = tensor_map(wgmma_spec_d(p.out));
  item.c_data = p.out.c.base;
  item.d_data = const_cast<void *>(p.out.d.base);
  item.ldc = p.out.c.ld;
  item.ldd = p.out.d.ld;
  item.m = static_cast<int32_t>(p.out.m);
  item.n = static_cast<int32_t>(p.out.n);
  item.k = static_cast<int32_t>(p.k);
  item.first_tile = first_tile;
  return item;
}

}  // namespace

void gemm_grouped(const Device &device, const GemmGroup &group, const GemmChoice &choice,
                  void *workspace, mp_stream_t stream) {
  const GemmKernel &kernel = *choice.kernel;
  WgmmaArgs args{};
  args.problem = group.common;
  args.store = wgmma_store_path(group);
  args.scheduler.group = tile_group(kernel.tile_m, kernel.tile_n, device.num_sms);
  args.group_count = static_cast<int32_t>(group.count);
  const size_t table = wgmma_workspace(group.count, 0, 1, kernel.tile_m, kernel.tile_n).table;
  args.table = static_cast<std::byte *>(workspace) + table;

  std::vector<std::byte> image(kWgmmaTableHeaderBytes +
                               static_cast<size_t>(group.count) * kWgmmaItemBytes);
  for (int64_t i = 0; i < group.count; i++) {
    const GemmProblem p = item_problem(group, group.items[i]);
    const WgmmaItem item = table_item(p, choice, args.store, args.num_work_tiles);
    std::memcpy(image.data() + kWgmmaTableHeaderBytes + static_cast<size_t>(i) * kWgmmaItemBytes,
                &item, sizeof item);
    args.num_work_tiles += static_cast<uint32_t>(ceil_div<int64_t>(p.out.m, kernel.tile_m) *
                                                 ceil_div<int64_t>(p.out.n, kernel.tile_n));
  }
  upload(device, args.table, image.data(), image.size(), stream);
  launch_wgmma_kernel(choice, device, args, stream);
}

}  // namespace mp::MP_TARGET
