// Tensor maps on CUDA, encoded by the driver.
//
// Driver functions are looked up at run time, so the library does not link libcuda and loads
// without a driver.
//
// If the driver is older than 13.2, CUTLASS clears bit 21 of the second 64-bit word of maps smaller
// than 128 KiB (copy_traits_sm90_tma.hpp).  Its source describes the bit as reserved and without
// effect on Hopper.  Kernels with tensor maps run only on sm_90a, so the map is not modified here.
#include "kernels/simt/tensor_map.h"

#include <cuda.h>

#include <bit>

#include "base/target_error.h"
#include "kernels/simt/simt.h"

namespace mp::cuda {

namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
static_assert(alignof(TensorMap) >= alignof(CUtensorMap));

constexpr char kEncodeTiled[] = "cuTensorMapEncodeTiled";
constexpr char kEncodeIm2col[] = "cuTensorMapEncodeIm2col";

/// Looks up a function of the driver; Function is its pointer type.
template <class Function>
Function look_up(const char *name) {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  constexpr unsigned kSinceVersion = 12000;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, kSinceVersion, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess) cudaGetLastError();
  check_cuda(error, "cudaGetDriverEntryPoint");
  if (found != cudaDriverEntryPointSuccess || function == nullptr)
    throw_target_error(MP_ERROR_CUDA,
                       "the driver does not export %s; CUDA 12.0 or newer is required", name);
  return std::bit_cast<Function>(function);
}

CUtensorMapDataType data_type(mp_dtype_t dtype) {
#define MP_DATA_TYPE(type, name, bytes, tma, ...) CU_TENSOR_MAP_DATA_TYPE_##tma,
  constexpr CUtensorMapDataType kTypes[] = {MP_FLOAT_TYPES(MP_DATA_TYPE)};
#undef MP_DATA_TYPE
  return kTypes[dtype - 1];
}

CUtensorMapSwizzle swizzle_of(bool swizzle_128) {
  return swizzle_128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE;
}

CUresult try_encode(CUtensorMap *map, const TensorMapSpec &spec) {
  static const auto function = look_up<decltype(&cuTensorMapEncodeTiled)>(kEncodeTiled);
  const cuuint64_t extent[3] = {static_cast<cuuint64_t>(spec.extent[0]),
                                static_cast<cuuint64_t>(spec.extent[1]),
                                static_cast<cuuint64_t>(spec.extent[2])};
  const cuuint64_t stride_bytes[2] = {static_cast<cuuint64_t>(tensor_map_stride_bytes(spec, 1)),
                                      static_cast<cuuint64_t>(tensor_map_stride_bytes(spec, 2))};
  const cuuint32_t box[3] = {static_cast<cuuint32_t>(spec.box[0]),
                             static_cast<cuuint32_t>(spec.box[1]), 1};
  const cuuint32_t element_stride[3] = {1, 1, 1};
  return function(map, data_type(spec.dtype), 3, const_cast<void *>(spec.base), extent,
                  stride_bytes, box, element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  swizzle_of(spec.swizzle_128), CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/// Corners are passed in the order of the dimensions, column first, like in CUTLASS
/// (make_im2col_tma_copy_desc); cuda.h lists them in reverse order.
CUresult try_encode(CUtensorMap *map, const Im2colSpec &spec) {
  static const auto function = look_up<decltype(&cuTensorMapEncodeIm2col)>(kEncodeIm2col);
  cuuint64_t extent[4], stride_bytes[3];
  for (int i = 0; i < 4; i++) extent[i] = static_cast<cuuint64_t>(spec.extent[i]);
  for (int i = 0; i < 3; i++)
    stride_bytes[i] = static_cast<cuuint64_t>(tensor_map_stride_bytes(spec, i + 1));
  const cuuint32_t element_stride[4] = {1, static_cast<cuuint32_t>(spec.step[0]),
                                        static_cast<cuuint32_t>(spec.step[1]), 1};
  return function(map, data_type(spec.dtype), 4, const_cast<void *>(spec.base), extent,
                  stride_bytes, spec.lower, spec.upper, static_cast<cuuint32_t>(spec.channels),
                  static_cast<cuuint32_t>(spec.pixels), element_stride,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(spec.swizzle_128),
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/// Creates the context of the device of `base`.  The driver function may need a context, and a
/// thread that has not called CUDA before has none.
void make_context_of(const void *base) {
  cudaPointerAttributes attributes;
  check_cuda(cudaPointerGetAttributes(&attributes, base), "cudaPointerGetAttributes");
  const DeviceScope scope(attributes.device);
  check_cuda(cudaSetDevice(attributes.device), "cudaSetDevice");
}

template <class Spec>
TensorMap encode(const Spec &spec) {
  CUtensorMap map;
  CUresult result = try_encode(&map, spec);
  if (result == CUDA_ERROR_INVALID_CONTEXT) {
    make_context_of(spec.base);
    result = try_encode(&map, spec);
  }
  if (result != CUDA_SUCCESS) {
    constexpr bool kIm2col = std::is_same_v<Spec, Im2colSpec>;
    throw_target_error(MP_ERROR_CUDA, "%s failed: CUresult %d",
                       kIm2col ? kEncodeIm2col : kEncodeTiled, static_cast<int>(result));
  }
  return std::bit_cast<TensorMap>(map);
}

}  // namespace

bool encodes_overlapping_maps(int ordinal) {
  // Windows of seven pixels, two pixels apart.  The driver does not access the base.
  const Im2colSpec spec{.base = std::bit_cast<const void *>(uintptr_t{1} << 20),
                        .dtype = MP_FP16,
                        .extent = {56, 4, 4, 1},
                        .stride = {16, 104, 416},
                        .lower = {0, 0},
                        .upper = {0, 0},
                        .step = {1, 1},
                        .channels = 64,
                        .pixels = 64,
                        .swizzle_128 = true};
  const DeviceScope scope(ordinal);
  check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");  // creates the context, which may be needed
  CUtensorMap map;
  try {
    return try_encode(&map, spec) == CUDA_SUCCESS;
  } catch (const TargetError &) {
    return false;  // a driver without tensor maps
  }
}

const TensorMap &tensor_map(const TensorMapSpec &spec) {
  return cached_tensor_map(encode<TensorMapSpec>, spec);
}
const TensorMap &im2col_map(const Im2colSpec &spec) {
  return cached_tensor_map(encode<Im2colSpec>, spec);
}

}  // namespace mp::cuda
