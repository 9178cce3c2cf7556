// Tensor maps: descriptions of a tensor in gmem and of the box that a TMA copy (sm90_tma.h) moves.
//
// A tensor is a stack of matrices.  `extent` and `stride` count elements, and the innermost
// dimension is contiguous.  A box is a rectangle of one matrix; in smem its rows are contiguous,
// with or without the 128-byte swizzle.  Elements of a box outside the tensor are loaded as zeros
// and are not stored.
//
// An im2col map describes a batch of images.  For one filter tap, a load reads the pixels under
// that tap as the filter moves over the images: rows of the im2col matrix.  A store writes pixels
// in the same order.
//
// On CUDA the driver encodes maps, which takes time, so every thread has a cache of its maps.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/device_info.h"
#include "kernels/simt/compiler.h"

namespace mp {

struct TensorMapSpec {
  const void *base;   ///< gmem; any aligned address, if the base is replaced later
  mp_dtype_t dtype;   ///< fp16, bf16, fp32
  int64_t extent[3];  ///< columns, rows, matrices
  int64_t stride[2];  ///< row and matrix stride; ignored if the extent is 1
  int32_t box[2];     ///< columns, rows
  bool swizzle_128;

  bool operator==(const TensorMapSpec &) const = default;
};

/// Batch of NHWC images, read pixel by pixel.
///
/// The pixel box of an image contains the possible positions of a filter's first tap: columns
/// lower[0] to extent[1] - 1 + upper[0] and rows lower[1] to extent[2] - 1 + upper[1], inclusive.
/// It may extend beyond the image.
///
/// A load starts at a pixel of the box and visits `pixels` of them.  It advances by step[0]
/// columns, at the end of a row to the first column step[1] rows below, and at the end of the box
/// to the next image.  For each visited pixel it reads the pixel at the load's offset from it.
///
/// Pixels may overlap: the column stride may be less than the number of channels.
///
/// Source: PTX ISA, Tensors, im2col mode.
struct Im2colSpec {
  const void *base;            ///< gmem
  mp_dtype_t dtype;            ///< fp16, bf16, fp32
  int64_t extent[4];           ///< channels, columns (w), rows (h), images
  int64_t stride[3];           ///< column, row and image stride; ignored if the extent is 1
  int32_t lower[2], upper[2];  ///< corners of the pixel box: column, row
  int32_t step[2];             ///< columns, rows: the stride of the convolution
  int32_t channels, pixels;    ///< per load
  bool swizzle_128;

  bool operator==(const Im2colSpec &) const = default;
};

/// Maximum offset of a tap from the first tap; an operand of the load.
constexpr int32_t kMaxIm2colOffset = 255;

// Spec is TensorMapSpec or Im2colSpec.

/// NULL if such a map exists, else the reason, e.g. "requires a 16-byte aligned base".
template <class Spec>
const char *why_no_tensor_map(const Spec &);
/// The same for an aligned base that is not known yet.
const char *why_no_tensor_layout(const TensorMapSpec &);
const char *why_no_tensor_layout(const Im2colSpec &);

/// CUtensorMap on CUDA (aligned as in CUDA 13.0); on the host, see host/tma.cpp.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

/// Returns encode(spec) from the calling thread's cache.  A cache hit does not allocate, lock or
/// call encode.  Throws TargetError if the map is not possible.  The reference is valid until the
/// thread's next call.
template <class Spec>
const TensorMap &cached_tensor_map(std::type_identity_t<TensorMap (*)(const Spec &)> encode,
                                   const Spec &);

/// Number of maps that the calling thread has encoded.
int64_t tensor_map_encodes();

/// Stride in bytes of dimension 1 or higher.  If its extent is 1, the copy never uses the stride,
/// and any stride that the driver accepts is returned.
template <class Spec>
int64_t tensor_map_stride_bytes(const Spec &, int dimension);

namespace MP_TARGET {

/// Returns the map of a spec from the calling thread's cache.  Host code.  On CUDA, throws
/// TargetError(MP_ERROR_CUDA) if the driver cannot encode tensor maps.  The reference is valid
/// until the thread's next call: copy the map into the kernel's argument.
const TensorMap &tensor_map(const TensorMapSpec &);
const TensorMap &im2col_map(const Im2colSpec &);

#if MP_ON_CUDA
/// Returns whether the driver encodes an im2col map whose pixels overlap.  cuda.h lists strides of
/// at least the size of a pixel among the requirements, which drivers may not check.  The case
/// "overlapping pixels" of tests/conformance checks the loads.
bool encodes_overlapping_maps(int ordinal);
#endif

}  // namespace MP_TARGET

}  // namespace mp
