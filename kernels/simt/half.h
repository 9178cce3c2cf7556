// 16-bit storage types, their conversions, and the dispatch from a run-time type.  Arithmetic is
// always fp32.
//
// fp32 is rounded to fp16 and bf16 to nearest, ties to even; overflow becomes infinity, NaN stays
// NaN.  Both targets give the same bits, except for the payload of a NaN.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/dtypes.h"
#include "kernels/simt/compiler.h"

#if !MP_ON_CUDA && defined(__F16C__)
#include <immintrin.h>
#endif

namespace mp::MP_TARGET {

/// 16-bit types in the order of kHalfTypes: X(type, name in PTX, type of CUDA, enumerator).
#define MP_HALF_TYPES(X)          \
  X(half, "f16", __half, MP_FP16) \
  X(bf16, "bf16", __nv_bfloat16, MP_BF16)

/// Row of a storage type in the table of types.
template <class T>
constexpr FloatType kFloatType = float_type(MP_FP32);

#define MP_STORAGE_TYPE(Type, ptx, Cuda, dtype) \
  struct Type {                                 \
    uint16_t bits;                              \
  };                                            \
  template <>                                   \
  inline constexpr FloatType kFloatType<Type> = float_type(dtype);
MP_HALF_TYPES(MP_STORAGE_TYPE)
#undef MP_STORAGE_TYPE

MP_DEVICE float float_from_bits(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
MP_DEVICE uint32_t bits_of(float x) {
  return __builtin_bit_cast(uint32_t, x);
}

MP_DEVICE float to_float(float x) {
  return x;
}
MP_DEVICE float to_float(bf16 x) {
  return float_from_bits(static_cast<uint32_t>(x.bits) << 16);
}

namespace soft {

/// binary32 -> bfloat16, to nearest even.
MP_DEVICE uint16_t bf16_of_float(float x) {
  const uint32_t bits = bits_of(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;  // the NaN of cvt.rn.bf16.f32
  const uint32_t even = bits >> 16 & 1;
  return static_cast<uint16_t>((bits + 0x7fff + even) >> 16);
}

}  // namespace soft

template <class T>
MP_DEVICE T round_to(float x);
template <>
MP_DEVICE float round_to<float>(float x) {
  return x;
}

#if MP_ON_CUDA

// Inline PTX: cuda_fp16.h and cuda_bf16.h would add a second to the compilation of every file.
MP_DEVICE float to_float(half x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
}
template <>
MP_DEVICE half round_to<half>(float x) {
  half rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
  return rounded;
}

#else

namespace soft {

/// binary16 -> binary32, exact.  Subnormals are normalized by a multiplication by 2^-24.
inline float float_of_half(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t exponent = h >> 10 & 0x1f;
  const uint32_t mantissa = h & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return float_from_bits(sign | bits_of(magnitude));
  }
  if (exponent == 31) {
    const uint32_t quiet = mantissa != 0 ? 0x400000 : 0;
    return float_from_bits(sign | 0x7f800000 | quiet | mantissa << 13);
  }
  return float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/// binary32 -> binary16, to nearest even.
inline uint16_t half_of_float(float x) {
  const uint32_t sign = bits_of(x) >> 16 & 0x8000;
  const uint32_t magnitude = bits_of(x) & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // >= 65520 overflows
  if (magnitude < 0x38800000) {
    // Below 2^-14: adding 0.5 rounds to units of 2^-24 and moves them to the last mantissa bits.
    const float shifted = float_from_bits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of(shifted) - 0x3f000000));
  }
  const uint32_t even = magnitude >> 13 & 1;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + even) >> 13));
}

}  // namespace soft

#if defined(__F16C__) && defined(__AVX2__)
/// Converts eight elements at any address.
inline __m256 to_floats8(const half *x) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(x)));
}
inline __m256 to_floats8(const bf16 *x) {
  const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i *>(x));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
}
#endif

inline float to_float(half x) {
#if defined(__F16C__)
  return _cvtsh_ss(x.bits);
#else
  return soft::float_of_half(x.bits);
#endif
}
template <>
inline half round_to<half>(float x) {
#if defined(__F16C__)
  return {static_cast<uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))};
#else
  return {soft::half_of_float(x)};
#endif
}

#endif

template <>
MP_DEVICE bf16 round_to<bf16>(float x) {
#if MP_ON_CUDA && __CUDA_ARCH__ >= 800
  bf16 rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
  return rounded;
#else
  return {soft::bf16_of_float(x)};
#endif
}

/// Rounds both to T and packs them, `low` in the low 16 bits.
template <class T>
MP_DEVICE uint32_t pack_pair(float low, float high) {
  static_assert(kFloatType<T>.bytes == 2);
#if MP_ON_CUDA && __CUDA_ARCH__ >= 800
  uint32_t pair;
#define MP_PACK(Type, type, ...)         \
  if constexpr (std::is_same_v<T, Type>) \
    asm("cvt.rn." type "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  MP_HALF_TYPES(MP_PACK)
#undef MP_PACK
  return pair;
#else
  return static_cast<uint32_t>(round_to<T>(high).bits) << 16 | round_to<T>(low).bits;
#endif
}

/// Returns the bytes of an element of a floating-point type.
MP_HD constexpr int64_t dtype_bytes(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

/// Bits of an element in memory, in the low bits of a word.
template <class T>
MP_DEVICE uint32_t element_bits(T x) {
  return x.bits;
}
MP_DEVICE uint32_t element_bits(float x) {
  return bits_of(x);
}
template <class T>
MP_DEVICE T element_from(uint32_t bits) {
  return {static_cast<uint16_t>(bits)};
}
template <>
MP_DEVICE float element_from<float>(uint32_t bits) {
  return float_from_bits(bits);
}

/// Bits of |x|: unsigned integers that order like magnitudes, with infinity above all finite values
/// and NaN above infinity.  fmaxf would drop NaN.
MP_DEVICE uint32_t magnitude_bits(float x) {
  return bits_of(x) & 0x7fffffffu;
}
constexpr uint32_t kInfinityBits = 0x7f800000u;
MP_DEVICE bool is_nonfinite(float x) {
  return magnitude_bits(x) >= kInfinityBits;
}

// ---------------------------------------------------------------------------- dispatch by type

// f receives the type as an empty std::type_identity.

/// Calls f with a 16-bit type; the last one needs no comparison.
MP_CALLS_EITHER
template <class F>
MP_HD auto with_half_type(mp_dtype_t dtype, const F &f) {
#define MP_CALL_WITH(Type, ptx, Cuda, number) \
  if (dtype == number || number == kLastHalfType) return f(std::type_identity<Type>{});
  MP_HALF_TYPES(MP_CALL_WITH)
#undef MP_CALL_WITH
  __builtin_unreachable();
}

/// Calls f with float or a 16-bit type.
MP_CALLS_EITHER
template <class F>
MP_HD auto with_type(mp_dtype_t dtype, const F &f) {
  if (dtype == MP_FP32) return f(std::type_identity<float>{});
  return with_half_type(dtype, f);
}

/// Returns element `i` of an array of MP_INT32 or MP_INT64.
MP_DEVICE int64_t load_integer(mp_dtype_t dtype, const void *base, int64_t i) {
  if (dtype == MP_INT64) return static_cast<const int64_t *>(base)[i];
  return static_cast<const int32_t *>(base)[i];
}

}  // namespace mp::MP_TARGET
