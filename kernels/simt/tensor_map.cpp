// The limits of tensor maps, and each thread's cache of them; the same for both targets.
#include "kernels/simt/tensor_map.h"

#include <array>
#include <bit>
#include <memory>
#include <string>

namespace mp {

namespace {

constexpr int64_t kMaxExtent =
    (int64_t{1} << 31) - 1;  // the driver takes 2^32; coordinates are int
constexpr int64_t kStrideLimitBytes = int64_t{1} << 40;
constexpr int64_t kAlignment = 16;  // of base and strides, and the unit of box rows
constexpr int32_t kMaxBox = 256;
constexpr int64_t kSwizzleBytes = 128;

int64_t element_bytes(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

/// Direct-mapped.  A training step of a hundred layers uses a few hundred maps.
///
/// The key is the whole spec and who encodes, but not the device: a map holds an address, and
/// under unified addressing an address belongs to one device.
class Cache {
 public:
  const TensorMap &find(TensorMapEncoder encode, const TensorMapSpec &spec) {
    Entry &entry = entries_[hash(encode, spec) >> (64 - kLog2Entries)];
    if (entry.encode == encode && entry.spec == spec) return entry.map;
    if (const char *const why = why_no_tensor_map(spec))
      throw TargetError(MP_ERROR_INTERNAL, std::string("a tensor map ") + why);
    entry.map = encode(spec);
    entry.spec = spec;
    entry.encode = encode;
    encodes_++;
    return entry.map;
  }
  int64_t encodes() const { return encodes_; }

 private:
  static constexpr int kLog2Entries = 8;
  struct Entry {
    TensorMap map;
    TensorMapSpec spec;
    TensorMapEncoder encode;  ///< NULL = empty
  };

  /// Multiplicative (Knuth, vol. 3, 6.4): the high bits are the good ones.
  static uint64_t hash(TensorMapEncoder encode, const TensorMapSpec &spec) {
    uint64_t sum = std::bit_cast<uint64_t>(encode);
    const auto mix = [&sum](uint64_t word) {
      sum = (std::rotl(sum, 23) ^ word) * 0x9E3779B97F4A7C15u;
    };
    mix(std::bit_cast<uint64_t>(spec.base));
    for (const int64_t extent : spec.extent) mix(static_cast<uint64_t>(extent));
    for (const int64_t stride : spec.stride) mix(static_cast<uint64_t>(stride));
    for (const int32_t box : spec.box) mix(static_cast<uint64_t>(box));
    mix(static_cast<uint64_t>(spec.dtype) << 1 | static_cast<uint64_t>(spec.swizzle_128));
    return sum;
  }

  std::array<Entry, 1 << kLog2Entries> entries_{};
  int64_t encodes_ = 0;
};

// On the heap: thread_local space of a library that is loaded late is scarce.
thread_local std::unique_ptr<Cache> this_thread;

Cache &cache_of_this_thread() {
  if (this_thread == nullptr) this_thread = std::make_unique<Cache>();
  return *this_thread;
}

}  // namespace

/// cuda.h 13.0, cuTensorMapEncodeTiled, but for the stricter rules that are explained below.
const char *why_no_tensor_map(const TensorMapSpec &spec) {
  if (spec.dtype != MP_FP16 && spec.dtype != MP_BF16 && spec.dtype != MP_FP32)
    return "needs elements of fp16, bf16 or fp32";
  if (spec.base == nullptr) return "needs a base";
  if (std::bit_cast<uintptr_t>(spec.base) % kAlignment != 0)
    return "needs a base that is 16-byte aligned";
  for (const int64_t extent : spec.extent)
    if (extent < 1 || extent > kMaxExtent) return "needs extents of 1 to 2^31 - 1";
  const int64_t bytes = element_bytes(spec.dtype);
  for (int i = 0; i < 2; i++) {
    if (spec.extent[i + 1] == 1) continue;
    // Of the matrices only the rows may interleave (heads of an attention, side by side).  A stride
    // of 0 is nowhere promised to work.
    if (i == 0 && spec.stride[i] < spec.extent[0]) return "needs rows that do not overlap";
    if (spec.stride[i] < 1) return "needs matrices at different places";
    if (spec.stride[i] >= kStrideLimitBytes / bytes) return "needs strides of less than 2^40 bytes";
    if (spec.stride[i] * bytes % kAlignment != 0) return "needs strides of a multiple of 16 bytes";
  }
  for (const int32_t box : spec.box)
    if (box < 1 || box > kMaxBox) return "needs boxes of 1 to 256 columns and rows";
  const int64_t box_row_bytes = spec.box[0] * bytes;
  if (box_row_bytes % kAlignment != 0) return "needs box rows of a multiple of 16 bytes";
  // The driver takes shorter rows too, but where those lie in smem is only hinted at: "allocated to
  // accommodate the full swizzle width" (CUDA C++ Programming Guide, TMA swizzle).
  if (spec.swizzle_128 && box_row_bytes != kSwizzleBytes)
    return "needs box rows of 128 bytes under the swizzle";
  return nullptr;
}

int64_t tensor_map_stride_bytes(const TensorMapSpec &spec, int dimension) {
  const int64_t bytes = element_bytes(spec.dtype);
  if (spec.extent[dimension] > 1) return spec.stride[dimension - 1] * bytes;
  if (dimension == 2) return tensor_map_stride_bytes(spec, 1);
  return (spec.extent[0] * bytes + kAlignment - 1) / kAlignment * kAlignment;
}

const TensorMap &cached_tensor_map(TensorMapEncoder encode, const TensorMapSpec &spec) {
  return cache_of_this_thread().find(encode, spec);
}

int64_t tensor_map_encodes() {
  return cache_of_this_thread().encodes();
}

}  // namespace mp
