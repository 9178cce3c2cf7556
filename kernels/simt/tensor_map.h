// Tensor maps: what a TMA copy (sm90_tma.h) needs to know of a tensor in gmem and of the box that
// it moves.
//
// A tensor is a stack of matrices: `extent` and `stride` count elements, the innermost dimension is
// contiguous.  A box is a rectangle of one matrix; in smem its rows follow each other without gaps,
// with the 128-byte swizzle or plain.  Elements of a box that lie outside the tensor are read as
// zero and not written.
//
// Of a batch of images an im2col map reads, for one tap of a convolution's filter, the pixels that
// the filter meets at successive places: rows of the matrix that im2col would store.
//
// Encoding asks the driver on CUDA, so every thread keeps the maps that it used last.
#pragma once

#include <cstdint>

#include "kernels/device.h"
#include "kernels/simt/compiler.h"

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

/// A batch of images, channels innermost (NHWC), whose pixels are read one by one.
///
/// The pixel box is where a filter's first tap may stand: in each image columns lower[0] to
/// extent[1] - 1 + upper[0] and rows lower[1] to extent[2] - 1 + upper[1], ends included, which may
/// lie outside of the image.  From a place in the box the walk goes on `step` columns further, at
/// the end of a row to the first column `step` rows below, and at the end of the box to the next
/// image, until it has met `pixels`.  What is read at each is the pixel at the offset of the load
/// from it.  PTX ISA, Tensors, im2col mode.
struct Im2colSpec {
  const void *base;   ///< gmem
  mp_dtype_t dtype;   ///< fp16, bf16, fp32
  int64_t extent[4];  ///< channels, columns (w), rows (h), images
  int64_t stride[3];  ///< between columns, rows, images; not looked at where there is only one
  int32_t lower[2], upper[2];  ///< corners of the pixel box: column, row
  int32_t step[2];             ///< columns, rows: the stride of the convolution
  int32_t channels, pixels;    ///< of one load
  bool swizzle_128;

  bool operator==(const Im2colSpec &) const = default;
};

/// A tap's distance from the first one is an operand of the load, with these limits: 0 to this.
constexpr int32_t kMaxIm2colOffset = 255;

/// NULL, or why there is no such map: one clause ("needs a base that is 16-byte aligned").  Pure.
const char *why_no_tensor_map(const TensorMapSpec &);
const char *why_no_tensor_map(const Im2colSpec &);

/// A CUtensorMap on CUDA (aligned as of 13.0), on the host the fields of host/tensor_map.h.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

template <class Spec>
using TensorMapEncoder = TensorMap (*)(const Spec &);

/// encode(spec), from the calling thread's cache if it is there: no allocation, no lock, no encode
/// for a spec that was asked for before, unless others have taken its place since.
/// Throws TargetError if there is no such map.  The reference is valid until the thread's next call.
const TensorMap &cached_tensor_map(TensorMapEncoder<TensorMapSpec> encode, const TensorMapSpec &);
const TensorMap &cached_tensor_map(TensorMapEncoder<Im2colSpec> encode, const Im2colSpec &);

/// How many maps the calling thread has encoded so far.
int64_t tensor_map_encodes();

/// Distance of neighbours in a dimension from 1 on.  Where there is only one, a stride that is within
/// the limits of the driver: nothing is ever read there.
int64_t tensor_map_stride_bytes(const TensorMapSpec &, int dimension);
int64_t tensor_map_stride_bytes(const Im2colSpec &, int dimension);

namespace MP_TARGET {

/// Host code.  On CUDA, throws TargetError(MP_ERROR_CUDA) if the driver cannot make tensor maps.
/// The reference is valid until the thread's next call: copy the map into the kernel's argument.
const TensorMap &tensor_map(const TensorMapSpec &);
const TensorMap &im2col_map(const Im2colSpec &);

}  // namespace MP_TARGET

}  // namespace mp
