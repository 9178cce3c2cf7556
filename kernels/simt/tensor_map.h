// Tensor maps describe, for a bulk tensor copy (sm90_tma.h), a tensor in gmem and the box that the copy
// moves.
//
// A tensor is a stack of matrices.  `extent` and `stride` count elements, and the innermost dimension is
// contiguous.  A box is a rectangle of one matrix; in smem its rows follow each other without gaps, with
// or without the 128-byte swizzle.  Elements of a box that lie outside the tensor are read as zero and
// not written.
//
// An im2col map describes a batch of images.  For one tap of a convolution's filter it reads the pixels
// under that tap while the filter moves over the images: rows of the matrix that im2col would make.
//
// On CUDA the driver encodes maps, which takes time, so every thread has a cache of the maps it used.
#pragma once

#include <cstdint>

#include "base/device_info.h"
#include "kernels/simt/compiler.h"

namespace mp {

struct TensorMapSpec {
  const void *base;   ///< gmem; any aligned address, if the base is replaced later
  mp_dtype_t dtype;   ///< fp16, bf16, fp32
  int64_t extent[3];  ///< columns, rows, matrices
  int64_t stride[2];  ///< between rows, between matrices; ignored where the extent is 1
  int32_t box[2];     ///< columns, rows
  bool swizzle_128;

  bool operator==(const TensorMapSpec &) const = default;
};

/// A batch of images, channels innermost (NHWC), whose pixels are read one by one.
///
/// The pixel box of an image is where a filter's first tap may stand: columns lower[0] to
/// extent[1] - 1 + upper[0] and rows lower[1] to extent[2] - 1 + upper[1], ends included, which may lie
/// outside of the image.  A load starts at a pixel of the box and visits `pixels` of them: it goes on by
/// step[0] columns, at the end of a row to the first column step[1] rows below, and at the end of the
/// box to the next image.  For each visited pixel it reads the pixel at the load's offset from it.  PTX
/// ISA, Tensors, im2col mode.
struct Im2colSpec {
  const void *base;            ///< gmem
  mp_dtype_t dtype;            ///< fp16, bf16, fp32
  int64_t extent[4];           ///< channels, columns (w), rows (h), images
  int64_t stride[3];           ///< between columns, rows, images; ignored where the extent is 1
  int32_t lower[2], upper[2];  ///< corners of the pixel box: column, row
  int32_t step[2];             ///< columns, rows: the stride of the convolution
  int32_t channels, pixels;    ///< of one load
  bool swizzle_128;

  bool operator==(const Im2colSpec &) const = default;
};

/// The distance of a tap from the first one is an operand of the load; it is 0 to this.
constexpr int32_t kMaxIm2colOffset = 255;

/// NULL, or why there is no such map: one clause, as "needs a base that is 16-byte aligned".
const char *why_no_tensor_map(const TensorMapSpec &);
const char *why_no_tensor_map(const Im2colSpec &);

/// On CUDA a CUtensorMap (with the alignment of CUDA 13.0), on the host the fields of host/tensor_map_fields.h.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

template <class Spec>
using TensorMapEncoder = TensorMap (*)(const Spec &);

/// encode(spec), or the calling thread's copy of it: a spec that the thread has used before needs no
/// allocation, no lock and no call of encode, unless another one has replaced it in the cache since.
/// Throws TargetError if there is no such map.  The reference is valid until the thread's next call.
const TensorMap &cached_tensor_map(TensorMapEncoder<TensorMapSpec> encode, const TensorMapSpec &);
const TensorMap &cached_tensor_map(TensorMapEncoder<Im2colSpec> encode, const Im2colSpec &);

/// How many maps the calling thread has encoded so far.
int64_t tensor_map_encodes();

/// The distance of neighbours in a dimension (1 or higher).  Where the extent is 1 it is some stride that
/// the driver accepts, since the copy never uses it.
int64_t tensor_map_stride_bytes(const TensorMapSpec &, int dimension);
int64_t tensor_map_stride_bytes(const Im2colSpec &, int dimension);

namespace MP_TARGET {

/// Host code.  On CUDA, throws TargetError(MP_ERROR_CUDA) if the driver cannot make tensor maps.
/// The reference is valid until the thread's next call: copy the map into the kernel's argument.
const TensorMap &tensor_map(const TensorMapSpec &);
const TensorMap &im2col_map(const Im2colSpec &);

}  // namespace MP_TARGET

}  // namespace mp
