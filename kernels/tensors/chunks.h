// How kernels walk over a tensor list: chunk by chunk, blocks striding over the chunk table, and in a
// chunk by runs of 8 elements (runs.h).
#pragma once

#include "kernels/simt/simt.h"
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

/// The elements of a tensor, known to be in gmem: the table that holds the address does not say so.
template <class T = void>
MP_DEVICE T *data_of(const TensorList &list, uint32_t tensor) {
  return static_cast<T *>(in_gmem(list.data[tensor]));
}

/// NULL also where there is no list.
template <class T = void>
MP_DEVICE T *optional_data_of(const TensorList &list, uint32_t tensor) {
  return static_cast<T *>(in_gmem(list.data != nullptr ? list.data[tensor] : nullptr));
}

/// Enough blocks to fill the device, not more than there is work; at least one, so that the work
/// of the last block is done for an empty list too.
inline int64_t blocks_for(const Device &device, int64_t num_pieces) {
  constexpr int64_t kBlocksPerSm = 8;
  return max_of<int64_t>(min_of<int64_t>(num_pieces, device.num_sms * kBlocksPerSm), 1);
}

}  // namespace mp::MP_TARGET
