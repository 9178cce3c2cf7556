// Floating-point types of elements: the one table that the library, its programs and its tests
// read.  kernels/simt/half.h has their storage types and conversions.
#pragma once

#include <array>

#include "mpcore/core.h"

/// One row per type, in the order of the enumerators:
/// enumerator without MP_, name, bytes, end of CU_TENSOR_MAP_DATA_TYPE_*, first sm_XX with tensor
/// cores for it (0: none), ncclDataType_t, cudaDataType_t, cudnnDataType_t, significant bits,
/// exponent bits.
#define MP_FLOAT_TYPES(X)                          \
  X(FP16, "fp16", 2, FLOAT16, 70, 6, 2, 2, 11, 5)  \
  X(BF16, "bf16", 2, BFLOAT16, 80, 9, 14, 9, 8, 8) \
  X(FP32, "fp32", 4, FLOAT32, 0, 7, 0, 0, 24, 8)

// Lists of names in messages, and of the 16-bit types.
#define MP_FLOAT_TYPE_NAMES "fp16, bf16 or fp32"
#define MP_HALF_TYPE_NAMES "fp16 or bf16"
#define MP_REQUIRES_HALF_TYPE "requires FP16 or BF16"

namespace mp {

inline constexpr std::array kHalfTypes = {MP_FP16, MP_BF16};
constexpr mp_dtype_t kLastHalfType = kHalfTypes.back();

struct FloatType {
  mp_dtype_t dtype;
  const char *name, *title;  ///< e.g. "fp16" and "FP16"
  int32_t bytes;
  int32_t tensor_core_arch;      ///< first sm_XX with tensor cores for it; 0: none
  const char *tensor_core_rule;  ///< the same as a clause of messages
  int32_t nccl, cuda, cudnn;     ///< ncclDataType_t, cudaDataType_t, cudnnDataType_t
  int32_t significant_bits, exponent_bits;
};

#define MP_FLOAT_TYPE(T, name, bytes, tma, arch, ...) \
  {MP_##T, name, #T, bytes, arch, "requires sm_" #arch " or newer for " #T, __VA_ARGS__},
inline constexpr FloatType kFloatTypes[] = {MP_FLOAT_TYPES(MP_FLOAT_TYPE)};
#undef MP_FLOAT_TYPE

constexpr mp_dtype_t kLastFloatType =
    kFloatTypes[sizeof kFloatTypes / sizeof kFloatTypes[0] - 1].dtype;

/// Returns whether a type is floating-point.
constexpr bool is_float(int32_t dtype) {
  return dtype > MP_DTYPE_NONE && dtype <= kLastFloatType;
}

/// Returns the row of a floating-point type.
constexpr const FloatType &float_type(mp_dtype_t dtype) {
  return kFloatTypes[dtype - 1];
}

/// Returns whether a type is floating-point with 16 bits.
constexpr bool is_half(mp_dtype_t dtype) {
  return is_float(dtype) && float_type(dtype).bytes == 2;
}

/// Returns whether a type has the exponents of fp32, so that gradients need no loss scale.
constexpr bool has_fp32_range(mp_dtype_t dtype) {
  return float_type(dtype).exponent_bits == float_type(MP_FP32).exponent_bits;
}

/// Returns NULL if tensor cores of sm_`arch` multiply the type, else the reason as a clause.
constexpr const char *why_no_tensor_cores(mp_dtype_t dtype, int32_t arch) {
  if (!is_half(dtype)) return MP_REQUIRES_HALF_TYPE;
  if (arch < 70) return "requires sm_70 or newer";
  return arch < float_type(dtype).tensor_core_arch ? float_type(dtype).tensor_core_rule : nullptr;
}

}  // namespace mp
