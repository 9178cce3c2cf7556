#include "softgpu/isa/proxy_check.h"

#include <vector>

#include "softgpu/machine/faults.h"

namespace softgpu {

void check_proxy_writes(Warp &warp, const Instruction &i, Block &block, uint32_t offset,
                        uint32_t bytes, uint32_t reader_fence, const char *reader) {
  std::vector<uint32_t> fences;
  for (const auto &x : block.warps)
    fences.insert(fences.end(), x->bulk.fenced.begin(), x->bulk.fenced.end());
  const int thread = block.smem.unfenced_writer(offset, bytes, fences, reader_fence);
  if (thread >= 0)
    violation(warp, i, -1,
              "%s reads without fence.proxy.async: thread %d wrote shared memory at %u", reader,
              thread, offset - kReservedSmem);
}

}  // namespace softgpu
