// Tensor lists on the device, and arguments of the passes over them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpcore/tensors.h"

namespace mp {

/// Elements of a chunk, which one block processes at a time.  Partial results are per chunk, so
/// reductions do not depend on the launch geometry or the device.
constexpr int64_t kChunkElems = 16384;

/// Chunk of a list: elements [index * kChunkElems, ...) of tensor `tensor`.
struct Chunk {
  uint32_t tensor;
  uint32_t index;
};

/// Tensor list on the device.  All pointers are device pointers, owned by capi's list object.
struct TensorList {
  uint32_t count;        ///< tensors
  int64_t num_chunks;    ///< over all tensors; empty tensors have none
  void **data;           ///< count
  int64_t *numel;        ///< count
  uint8_t *dtype;        ///< count, mp_dtype_t
  Chunk *chunks;         ///< num_chunks, in tensor order
  int64_t *first_chunk;  ///< count + 1: chunks of tensor t are [first_chunk[t], first_chunk[t + 1])
};

/// Scratch memory of a reduction over a list of `num_chunks` chunks.
struct ReduceScratch {
  double *sum_squares;      ///< num_chunks
  uint32_t *amax_bits;      ///< num_chunks; bits of |x|; NaN orders above infinity
  uint32_t *blocks_done;    ///< 1, zero between launches; identifies the last block
  uint64_t *report_counts;  ///< num_chunks: four counts of 16 bits (kernels/tensors/report.h)
  uint32_t *first_bad;      ///< num_chunks: first NaN or infinity; kChunkElems: none
};

/// grad_scale = inv_scale, times the clip factor of mp_clip_factor if max_norm > 0.
struct ClipArgs {
  const float *scaled_norm;  ///< mp_clip_factor only; others pass the norm in fp64
  const float *inv_scale;    ///< NULL = 1
  float max_norm;            ///< 0 = no clipping
  float *grad_scale;         ///< out: multiplied into every gradient
  float *grad_norm;          ///< out, optional: unscaled norm before clipping
  float *tensor_norms;       ///< out, optional, count: grad_norm of each tensor
};

/// Outputs of one pass over a list; any may be NULL.
struct StatisticsOutputs {
  float *found_inf;        ///< sticky: set to 1, never cleared
  float *amax;             ///< overwritten
  float *amax_per_tensor;  ///< count, overwritten
  float *norm;             ///< overwritten
  double *sum_squares;     ///< overwritten: square of the norm
  float *norm_per_tensor;  ///< count, overwritten
  double *wide_norms;      ///< count, overwritten: norm_per_tensor before rounding to fp32
  ClipArgs clip;           ///< applied last if clip.grad_scale is set
  mp_tensor_report_t *report, *tensor_reports;  ///< 1; count
};

}  // namespace mp
