// Driver functions that programs look up through the runtime: tensor maps and error names.
#include <cuda.h>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/tensor_map.h"
#include "softgpu/options.h"
#include "softgpu/runtime/api.h"

namespace softgpu::runtime {

namespace {

// Source for the limits of all arguments: CUDA Driver API, "Tensor Map Object Management".
constexpr uint64_t kMapAlignment = 64, kBaseAlignment = 16, kStrideAlignment = 16;
constexpr uint64_t kMaxSize = uint64_t{1} << 32, kMaxStride = uint64_t{1} << 40;
constexpr uint32_t kMaxBox = 256, kMaxElementStride = 8, kMaxPixels = 1024, kInnerUnit = 16;
constexpr uint32_t kMaxRank = 5, kMinIm2colRank = 3;
/// Limit of the corner coordinates of an im2col pixel box, by rank.
constexpr int kMaxCorner[] = {0, 0, 0, 32768, 128, 16};

/// Exception: reason that a tensor map cannot be encoded.
struct BadMap {
  std::string why;
};
void check(bool condition, const char *why) {
  if (!condition) throw BadMap{why};
}

/// Arguments that tiled and im2col maps share.
struct Tensor {
  CUtensorMapDataType type;
  uint32_t rank;
  void *base;
  const cuuint64_t *sizes, *strides;
  const cuuint32_t *element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapFloatOOBfill fill;
};

bool is_float(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

TensorMap map_of(const Tensor &t, uint32_t min_rank) {
  check(t.type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, "this type is not supported");
  check(t.rank >= min_rank && t.rank <= kMaxRank, "rank");
  check(t.sizes && t.element_strides && (t.strides || t.rank == 1), "a list is missing");
  check(t.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE, "interleave is not supported");
  check(t.base && reinterpret_cast<uint64_t>(t.base) % kBaseAlignment == 0,
        "the base is not a multiple of 16");
  check(t.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || is_float(t.type),
        "NaN fills only tensors of floating-point numbers");
  TensorMap map;
  map.rank = static_cast<uint8_t>(t.rank);
  map.type = static_cast<ElementType>(t.type);
  check(t.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B, "this swizzle is not supported");
  map.swizzle = static_cast<Swizzle>(t.swizzle);
  map.fills_nan = t.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  map.base = reinterpret_cast<uint64_t>(t.base);
  for (uint32_t i = 0; i < t.rank; i++) {
    check(t.sizes[i] >= 1 && t.sizes[i] <= kMaxSize, "the size of a dimension is out of range");
    check(t.element_strides[i] >= 1 && t.element_strides[i] <= kMaxElementStride,
          "an element stride is out of range");
    map.sizes[i] = t.sizes[i];
    map.element_strides[i] = static_cast<uint8_t>(t.element_strides[i]);
  }
  for (uint32_t i = 0; i + 1 < t.rank; i++) {
    check(t.strides[i] % kStrideAlignment == 0, "a stride is not a multiple of 16");
    check(t.strides[i] < kMaxStride, "a stride of 2^40 or more");
    map.strides[i] = t.strides[i];
  }
  return map;
}

void check_box(const TensorMap &map) {
  check(map.row_bytes() % kInnerUnit == 0, "the inner box is not a multiple of 16 bytes");
  check(map.swizzle == Swizzle::kNone || map.row_bytes() <= swizzle_span(map.swizzle),
        "the inner box is wider than the swizzle");
  check(map.box_bytes() <= options().smem_per_block, "the box is larger than shared memory");
}

template <class List>
std::string text_of(const char *name, const List &list, uint32_t count) {
  std::string text = format("  %s", name);
  for (uint32_t i = 0; i < count; i++)
    text += format(i == 0 ? " %lld" : ",%lld", static_cast<long long>(list[i]));
  return text;
}

void trace(const TensorMap &map) {
  std::string text = map.is_im2col ? "im2col" : "tiled";
  text += text_of("sizes", map.sizes, map.rank) + text_of("strides", map.strides, map.rank - 1u) +
          text_of("element strides", map.element_strides, map.rank);
  if (map.is_im2col) {
    text += text_of("lower", map.lower, map.rank - 2u) + text_of("upper", map.upper, map.rank - 2u);
    text += format("  channels %u  pixels %u", map.channels, map.pixels);
  } else {
    text += text_of("box", map.box, map.rank);
  }
  std::fprintf(stderr, "softgpu: tensor map %s  swizzle %d\n", text.c_str(),
               static_cast<int>(map.swizzle));
}

/// Encodes a map by calling `make`, which may throw BadMap.
template <class Make>
CUresult encode(CUtensorMap *map, Make &&make) {
  if (options().arch < 90) return CUDA_ERROR_NOT_SUPPORTED;
  try {
    check(map && reinterpret_cast<uint64_t>(map) % kMapAlignment == 0,
          "its address is not a multiple of 64");
    const TensorMap made = make();
    if (options().traces) trace(made);
    const auto bytes = pack(made);
    static_assert(sizeof bytes == sizeof *map);
    std::memcpy(map, bytes.data(), sizeof *map);
    return CUDA_SUCCESS;
  } catch (const BadMap &bad) {
    std::fprintf(stderr, "softgpu: tensor map: %s\n", bad.why.c_str());
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                      const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                      const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                      CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                      CUtensorMapFloatOOBfill fill) {
  return encode(map, [&] {
    TensorMap made =
        map_of({type, rank, base, sizes, strides, element_strides, interleave, swizzle, fill}, 1);
    check(box, "a list is missing");
    for (uint32_t i = 0; i < rank; i++) {
      check(box[i] >= 1 && box[i] <= kMaxBox, "the size of the box is out of range");
      check(element_strides[i] == 1, "element strides of tiles are not supported");
      made.box[i] = static_cast<uint16_t>(box[i]);
    }
    check_box(made);
    return made;
  });
}

CUresult encode_im2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                       const cuuint64_t *sizes, const cuuint64_t *strides, const int *lower,
                       const int *upper, cuuint32_t channels, cuuint32_t pixels,
                       const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                       CUtensorMapFloatOOBfill fill) {
  return encode(map, [&] {
    TensorMap made =
        map_of({type, rank, base, sizes, strides, element_strides, interleave, swizzle, fill},
               kMinIm2colRank);
    check(lower && upper, "a list is missing");
    const auto fits = [&](int corner) {
      return corner >= -kMaxCorner[rank] && corner < kMaxCorner[rank];
    };
    for (uint32_t i = 0; i + 2 < rank; i++) {
      check(fits(lower[i]) && fits(upper[i]), "a corner of the pixel box is out of range");
      check(static_cast<int64_t>(sizes[1 + i]) + upper[i] - lower[i] >= 1,
            "the pixel box is empty");
      made.lower[i] = static_cast<int16_t>(lower[i]);
      made.upper[i] = static_cast<int16_t>(upper[i]);
    }
    check(channels >= 1 && channels <= kMaxBox, "the number of channels is out of range");
    check(pixels >= 1 && pixels <= kMaxPixels, "the number of pixels is out of range");
    made.is_im2col = true;
    made.channels = static_cast<uint16_t>(channels);
    made.pixels = static_cast<uint16_t>(pixels);
    check_box(made);
    return made;
  });
}

CUresult driver_version(int *version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

struct ErrorName {
  CUresult code;
  const char *name, *text;
};
constexpr ErrorName kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

CUresult find_error(CUresult code, const char **found, const char *ErrorName::*field) {
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  const auto error = std::ranges::find(kErrors, code, &ErrorName::code);
  *found = error == std::end(kErrors) ? nullptr : (*error).*field;
  return *found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult error_name_of(CUresult code, const char **name) {
  return find_error(code, name, &ErrorName::name);
}
CUresult error_text_of(CUresult code, const char **text) {
  return find_error(code, text, &ErrorName::text);
}

struct Function {
  const char *name;
  unsigned since;  ///< driver version that introduced it
  void *address;
};

/// Returns the entry that replaces a driver function by `ours`, which must have the same type.
template <class Theirs>
Function replace(const char *name, unsigned since, Theirs ours) {
  return {name, since, reinterpret_cast<void *>(ours)};
}

const std::vector<Function> &functions() {
  static const std::vector<Function> all = {
      replace<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled", 12000, encode_tiled),
      replace<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col", 12000, encode_im2col),
      replace<decltype(&cuGetErrorName)>("cuGetErrorName", 6000, error_name_of),
      replace<decltype(&cuGetErrorString)>("cuGetErrorString", 6000, error_text_of),
      replace<decltype(&cuDriverGetVersion)>("cuDriverGetVersion", 2020, driver_version),
  };
  return all;
}

cudaError_t look_up(const char *name, void **function, unsigned version,
                    cudaDriverEntryPointQueryResult *result,
                    const char *api = __builtin_FUNCTION()) {
  return call(
      cudaErrorSymbolNotFound,
      [&] {
        require(name && function, cudaErrorInvalidValue);
        *function = nullptr;
        const auto found = std::ranges::find_if(
            functions(), [&](const Function &f) { return std::strcmp(f.name, name) == 0; });
        cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
        if (found == functions().end())
          status = cudaDriverEntryPointSymbolNotFound;
        else if (found->since > version)
          status = cudaDriverEntryPointVersionNotSufficent;
        else
          *function = found->address;
        if (result) *result = status;
      },
      Needs::kProcess, api);
}

}  // namespace

}  // namespace softgpu::runtime

using namespace softgpu::runtime;

extern "C" {

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *result) {
  return look_up(name, function, version, result);
}
#endif

cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long,
                                    cudaDriverEntryPointQueryResult *result) {
  return look_up(name, function, CUDART_VERSION, result);
}

}  // extern "C"
