// Limits of tensor maps and the per-thread caches, for both targets.
#include "kernels/simt/tensor_map.h"

#include <algorithm>
#include <bit>
#include <span>

#include "base/cache.h"
#include "base/dtypes.h"
#include "base/lifetime.h"
#include "base/workspace_layout.h"

namespace mp {

namespace {

constexpr int64_t kMaxExtent =
    (int64_t{1} << 31) - 1;  // the driver accepts 2^32, but coordinates are int
constexpr int64_t kStrideLimitBytes = int64_t{1} << 40;
constexpr int64_t kAlignment = 16;  // bytes; of base, strides and box rows
constexpr int32_t kMaxBox = 256;
constexpr int64_t kSwizzleBytes = 128;
constexpr int32_t kMaxPixels = 1024;
constexpr int32_t kMinCorner = -128, kMaxCorner = 127;
constexpr int32_t kMaxStep = 8;

template <class Spec>
void mix_tensor(Hash &hash, const Spec &spec) {
  hash.mix(std::bit_cast<uint64_t>(spec.base));
  hash.mix(spec.extent);
  hash.mix(spec.stride);
  hash.mix(static_cast<uint64_t>(spec.dtype) << 1 | static_cast<uint64_t>(spec.swizzle_128));
}
void mix_fields(Hash &hash, const TensorMapSpec &spec) {
  mix_tensor(hash, spec);
  hash.mix(spec.box);
}
void mix_fields(Hash &hash, const Im2colSpec &spec) {
  mix_tensor(hash, spec);
  hash.mix(spec.lower);
  hash.mix(spec.upper);
  hash.mix(spec.step);
  hash.mix(static_cast<uint64_t>(spec.channels) << 32 | static_cast<uint32_t>(spec.pixels));
}

/// Spec and encoder.  The device is not part of the key: a map contains an address, and under
/// unified addressing an address belongs to one device.
template <class Spec>
struct MapKey {
  TensorMap (*encode)(const Spec &);
  Spec spec;

  bool operator==(const MapKey &) const = default;
  uint64_t hash() const {
    Hash hash{std::bit_cast<uint64_t>(encode)};
    mix_fields(hash, spec);
    return hash.sum;
  }
};

template <class Spec>
using MapCache = Cache<MapKey<Spec>, TensorMap>;

// ---------------------------------------------------------------- limits

const char *why_no_base(const void *base) {
  if (base == nullptr) return "requires a base";
  if (std::bit_cast<uintptr_t>(base) % kAlignment != 0) return "requires a 16-byte aligned base";
  return nullptr;
}

const char *why_no_tensor(mp_dtype_t dtype, std::span<const int64_t> extents) {
  if (!is_float(dtype)) return "requires elements of " MP_FLOAT_TYPE_NAMES;
  for (const int64_t extent : extents)
    if (extent < 1 || extent > kMaxExtent) return "requires extents of 1 to 2^31 - 1";
  return nullptr;
}

/// Returns NULL, or why a positive stride is not possible.
const char *why_no_stride(int64_t stride, int64_t element_bytes) {
  if (stride >= kStrideLimitBytes / element_bytes)
    return "requires strides of less than 2^40 bytes";
  if (stride * element_bytes % kAlignment != 0)
    return "requires strides that are multiples of 16 bytes";
  return nullptr;
}

const char *why_no_box_row(int64_t bytes, bool swizzle_128) {
  if (bytes % kAlignment != 0) return "requires box rows that are multiples of 16 bytes";
  // The driver also accepts shorter rows, but their layout in smem is only hinted at: "allocated to
  // accommodate the full swizzle width" (CUDA C++ Programming Guide, TMA swizzle).
  if (swizzle_128 && bytes != kSwizzleBytes)
    return "requires box rows of 128 bytes with the swizzle";
  return nullptr;
}

}  // namespace

/// The rules of cuTensorMapEncodeTiled (cuda.h 13.0), and the stricter ones that are explained
/// below.
const char *why_no_tensor_layout(const TensorMapSpec &spec) {
  if (const char *const why = why_no_tensor(spec.dtype, spec.extent)) return why;
  const int64_t bytes = float_type(spec.dtype).bytes;
  for (int i = 0; i < 2; i++) {
    if (spec.extent[i + 1] == 1) continue;
    // Rows of a matrix must not overlap, but matrices may interleave (adjacent attention heads).  A
    // stride of 0 is not documented to work.
    if (i == 0 && spec.stride[i] < spec.extent[0]) return "requires rows that do not overlap";
    if (spec.stride[i] < 1) return "requires a matrix stride of at least 1";
    if (const char *const why = why_no_stride(spec.stride[i], bytes)) return why;
  }
  for (const int32_t box : spec.box)
    if (box < 1 || box > kMaxBox) return "requires boxes of 1 to 256 columns and rows";
  return why_no_box_row(spec.box[0] * bytes, spec.swizzle_128);
}

/// The rules of cuTensorMapEncodeIm2col (cuda.h 13.0) for rank 4, and the same stricter ones.
const char *why_no_tensor_layout(const Im2colSpec &spec) {
  if (const char *const why = why_no_tensor(spec.dtype, spec.extent)) return why;
  const int64_t bytes = float_type(spec.dtype).bytes;
  int64_t least_stride = spec.extent[0];
  for (int i = 0; i < 3; i++) {
    if (spec.extent[i + 1] == 1) continue;
    if (i == 0 && spec.stride[i] < 1) return "requires a column stride of at least 1";
    if (i > 0 && spec.stride[i] < least_stride)
      return "requires rows and images that do not overlap";
    if (const char *const why = why_no_stride(spec.stride[i], bytes)) return why;
    least_stride = std::max(least_stride, spec.stride[i]);
  }
  for (int i = 0; i < 2; i++) {
    for (const int32_t corner : {spec.lower[i], spec.upper[i]})
      if (corner < kMinCorner || corner > kMaxCorner)
        return "requires corners of the pixel box from -128 to 127";
    if (spec.lower[i] > spec.extent[i + 1] - 1 + spec.upper[i])
      return "requires a pixel box that is not empty";
    if (spec.step[i] < 1 || spec.step[i] > kMaxStep) return "requires steps of 1 to 8";
  }
  if (spec.channels < 1 || spec.channels > kMaxBox) return "requires loads of 1 to 256 channels";
  if (spec.pixels < 1 || spec.pixels > kMaxPixels) return "requires loads of 1 to 1024 pixels";
  return why_no_box_row(spec.channels * bytes, spec.swizzle_128);
}

template <class Spec>
const char *why_no_tensor_map(const Spec &spec) {
  const char *const why = why_no_base(spec.base);
  return why != nullptr ? why : why_no_tensor_layout(spec);
}

template <class Spec>
int64_t tensor_map_stride_bytes(const Spec &spec, int dimension) {
  const int64_t bytes = float_type(spec.dtype).bytes;
  if (spec.extent[dimension] > 1) return spec.stride[dimension - 1] * bytes;
  if (dimension > 1) return tensor_map_stride_bytes(spec, dimension - 1);
  return align_up(spec.extent[0] * bytes, kAlignment);
}

template <class Spec>
const TensorMap &cached_tensor_map(std::type_identity_t<TensorMap (*)(const Spec &)> encode,
                                   const Spec &spec) {
  return ThreadLocal<MapCache<Spec>>::get().find({encode, spec}, [&] {
    if (const char *const why = why_no_tensor_map(spec))
      throw_target_error(MP_ERROR_INTERNAL, "a tensor map %s", why);
    return encode(spec);
  });
}

#define MP_FOR_SPEC(Spec)                                      \
  template const char *why_no_tensor_map(const Spec &);        \
  template int64_t tensor_map_stride_bytes(const Spec &, int); \
  template const TensorMap &cached_tensor_map<Spec>(TensorMap(*)(const Spec &), const Spec &);
MP_FOR_SPEC(TensorMapSpec)
MP_FOR_SPEC(Im2colSpec)
#undef MP_FOR_SPEC

int64_t tensor_map_encodes() {
  return ThreadLocal<MapCache<TensorMapSpec>>::get().misses() +
         ThreadLocal<MapCache<Im2colSpec>>::get().misses();
}

}  // namespace mp
