// How kernels walk over a tensor list: chunk by chunk, blocks striding over the chunk table.
#pragma once

#include "kernels/simt/vector.h"
#include "kernels/tensors/lists.h"

namespace mp::MP_TARGET {

/// One chunk, found in the table: elements [begin, begin + count) of tensor `tensor`.
struct ChunkRange {
  uint32_t tensor;
  int64_t begin;
  int count;
};

MP_DEVICE ChunkRange chunk_range(const TensorList &list, int64_t number) {
  const Chunk chunk = list.chunks[number];
  const int64_t begin = chunk.index * kChunkElems;
  const int64_t left = list.numel[chunk.tensor] - begin;
  return {chunk.tensor, begin, static_cast<int>(min_of(left, kChunkElems))};
}

MP_DEVICE mp_dtype_t dtype_of(const TensorList &list, uint32_t tensor) {
  return static_cast<mp_dtype_t>(list.dtype[tensor]);
}

/// Calls visit(offset, valid) for runs of up to 8 elements of the chunk; neighbouring threads get
/// neighbouring runs.
template <int kThreads, class Visit>
MP_DEVICE void for_each_run(const ChunkRange &range, Visit visit) {
  for (int i = thread_index() * kVec; i < range.count; i += kThreads * kVec)
    visit(range.begin + i, min_of(range.count - i, kVec));
}

/// Enough blocks to fill the device, not more than there is work; at least one, so that the work
/// of the last block is done for an empty list too.
inline int64_t blocks_for(const Device &device, int64_t num_pieces) {
  constexpr int64_t kBlocksPerSm = 8;
  return max_of<int64_t>(min_of<int64_t>(num_pieces, device.num_sms * kBlocksPerSm), 1);
}

}  // namespace mp::MP_TARGET
