// Tensor maps: what a TMA copy (sm90_tma.h) needs to know of a tensor in gmem and of the box that
// it moves.
//
// A tensor is a stack of matrices: `extent` and `stride` count elements, the innermost dimension is
// contiguous.  A box is a rectangle of one matrix; in smem its rows follow each other without gaps,
// with the 128-byte swizzle or plain.  Elements of a box that lie outside the tensor are read as
// zero and not written.
//
// Encoding asks the driver on CUDA, so every thread keeps the maps that it used last.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/simt/target.h"

namespace mp {

struct TensorMapSpec {
  const void *base;   ///< gmem; for a map whose base is replaced later, any that is aligned
  mp_dtype_t dtype;   ///< fp16, bf16, fp32
  int64_t extent[3];  ///< columns, rows, matrices
  int64_t stride[2];  ///< between rows, between matrices; not looked at where there is only one
  int32_t box[2];     ///< columns, rows
  bool swizzle_128;

  bool operator==(const TensorMapSpec &) const = default;
};

/// NULL, or why there is no such map: one clause ("needs a base that is 16-byte aligned").  Pure.
const char *why_no_tensor_map(const TensorMapSpec &);

/// A CUtensorMap on CUDA (aligned as of 13.0), on the host the fields of host/tensor_map.h.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

using TensorMapEncoder = TensorMap (*)(const TensorMapSpec &);

/// encode(spec), from the calling thread's cache if it is there: no allocation, no lock, no encode
/// for a spec that was asked for before, unless others have taken its place since.
/// Throws TargetError if there is no such map.  The reference is valid until the thread's next call.
const TensorMap &cached_tensor_map(TensorMapEncoder encode, const TensorMapSpec &);

/// How many maps the calling thread has encoded so far.
int64_t tensor_map_encodes();

/// Distance of neighbours in dimension 1 (rows) or 2 (matrices).  Where there is only one, a stride
/// that is within the limits of the driver: nothing is ever read there.
int64_t tensor_map_stride_bytes(const TensorMapSpec &, int dimension);

namespace MP_TARGET {

/// Host code.  On CUDA, throws TargetError(MP_ERROR_CUDA) if the driver cannot make tensor maps.
/// The reference is valid until the thread's next call: copy the map into the kernel's argument.
const TensorMap &tensor_map(const TensorMapSpec &);

}  // namespace MP_TARGET

}  // namespace mp
