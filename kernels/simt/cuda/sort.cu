// Sorting with CUB.
#include "kernels/simt/sort.h"

#include <cub/device/device_radix_sort.cuh>

#include "kernels/simt/simt.h"

namespace mp::cuda {

/// CUB reports an error if the scratch is too small.
int sort_pairs(const Device &device, const SortBuffers &buffers, int64_t count, int bits,
               const Workspace &scratch, mp_stream_t stream) {
  const DeviceScope scope(device.ordinal);
  cub::DoubleBuffer<uint32_t> keys(buffers.keys[0], buffers.keys[1]);
  cub::DoubleBuffer<uint32_t> values(buffers.values[0], buffers.values[1]);
  size_t bytes = scratch.bytes;
  check_cuda(cub::DeviceRadixSort::SortPairs(scratch.ptr, bytes, keys, values,
                                             static_cast<int>(count), 0, bits, stream),
             "sort");
  return values.selector;
}

}  // namespace mp::cuda
