// Iteration over a tensor list: blocks stride over the chunk table, threads over the vectors of 8
// elements of a chunk (runs.h).
#pragma once

#include "kernels/simt/simt.h"
#include "kernels/tensors/lists.h"

namespace mp::MP_TARGET {

/// Elements [begin, begin + count) of tensor `tensor`.
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

/// Returns the elements of a tensor, known to the compiler to be in gmem.
template <class T = void>
MP_DEVICE T *data_of(const TensorList &list, uint32_t tensor) {
  return static_cast<T *>(in_gmem(list.data[tensor]));
}

/// data_of, or NULL if the list or the tensor is absent.
template <class T = void>
MP_DEVICE T *optional_data_of(const TensorList &list, uint32_t tensor) {
  return static_cast<T *>(in_gmem(list.data != nullptr ? list.data[tensor] : nullptr));
}

/// Returns the number of blocks: enough to fill the device, at most num_pieces, and at least one,
/// so that an empty list has a last block.
inline int64_t blocks_for(const Device &device, int64_t num_pieces) {
  constexpr int64_t kBlocksPerSm = 8;
  return max_of<int64_t>(min_of<int64_t>(num_pieces, device.num_sms * kBlocksPerSm), 1);
}

}  // namespace mp::MP_TARGET
