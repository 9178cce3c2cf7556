// Eight elements at a time between memory of any element type and fp32 registers: one 16-byte
// access (two for fp32) where the address allows it, single elements where it does not.
#pragma once

#include "kernels/simt/simt.h"

#if !MP_ON_CUDA && defined(__F16C__) && defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mp::MP_TARGET {

constexpr int kVec = 8;

template <class T>
struct alignas(16) Pack {
  T x[16 / sizeof(T)];
};

template <class T>
MP_DEVICE bool is_aligned_16(const T *address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

MP_DEVICE void widen(float (&out)[kVec], const Pack<float> (&in)[2]) {
  MP_UNROLL
  for (int i = 0; i < kVec; i++) out[i] = in[i / 4].x[i % 4];
}
template <class T>
MP_DEVICE void widen(float (&out)[kVec], const Pack<T> (&in)[1]) {
#if !MP_ON_CUDA && defined(__F16C__) && defined(__AVX2__)
  if constexpr (std::is_same_v<T, half>) {
    const __m128i raw = _mm_load_si128(reinterpret_cast<const __m128i *>(in));
    _mm256_storeu_ps(out, _mm256_cvtph_ps(raw));
    return;
  }
#endif
  MP_UNROLL
  for (int i = 0; i < kVec; i++) out[i] = to_float(in[0].x[i]);
}
MP_DEVICE void narrow(Pack<float> (&out)[2], const float (&in)[kVec]) {
  MP_UNROLL
  for (int i = 0; i < kVec; i++) out[i / 4].x[i % 4] = in[i];
}
template <class T>
MP_DEVICE void narrow(Pack<T> (&out)[1], const float (&in)[kVec]) {
#if !MP_ON_CUDA && defined(__F16C__) && defined(__AVX2__)
  if constexpr (std::is_same_v<T, half>) {
    const __m128i raw = _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT);
    _mm_store_si128(reinterpret_cast<__m128i *>(out), raw);
    return;
  }
#endif
  MP_UNROLL
  for (int i = 0; i < kVec; i++) out[0].x[i] = round_to<T>(in[i]);
}

/// acc[i] += a * b[i], fused.
MP_DEVICE void multiply_add8(float (&acc)[kVec], float a, const float (&b)[kVec]) {
#if !MP_ON_CUDA && defined(__FMA__)
  _mm256_storeu_ps(acc,
                   _mm256_fmadd_ps(_mm256_set1_ps(a), _mm256_loadu_ps(b), _mm256_loadu_ps(acc)));
#else
  MP_UNROLL
  for (int i = 0; i < kVec; i++) acc[i] = fmaf(a, b[i], acc[i]);
#endif
}

/// x[i] = p[i] for i < valid, else 0.
template <class T>
MP_DEVICE void load8(float (&x)[kVec], const T *p, int valid) {
  if (valid == kVec && is_aligned_16(p)) {
    Pack<T> raw[sizeof(T) * kVec / 16];
    MP_UNROLL
    for (int i = 0; i < static_cast<int>(sizeof(T) * kVec / 16); i++)
      raw[i] = reinterpret_cast<const Pack<T> *>(p)[i];
    widen(x, raw);
    return;
  }
  MP_UNROLL
  for (int i = 0; i < kVec; i++) x[i] = i < valid ? to_float(p[i]) : 0.0f;
}

/// p[i] = round(x[i]) for i < valid.
template <class T>
MP_DEVICE void store8(T *p, const float (&x)[kVec], int valid) {
  if (valid == kVec && is_aligned_16(p)) {
    Pack<T> raw[sizeof(T) * kVec / 16];
    narrow(raw, x);
    MP_UNROLL
    for (int i = 0; i < static_cast<int>(sizeof(T) * kVec / 16); i++)
      reinterpret_cast<Pack<T> *>(p)[i] = raw[i];
    return;
  }
  MP_UNROLL
  for (int i = 0; i < kVec; i++)
    if (i < valid) p[i] = round_to<T>(x[i]);
}

/// The same for a type known at run time only; `index` in elements.
MP_DEVICE void load8(float (&x)[kVec], mp_dtype_t dtype, const void *base, int64_t index,
                     int valid) {
  switch (dtype) {
    case MP_FP16:
      return load8(x, static_cast<const half *>(base) + index, valid);
    case MP_BF16:
      return load8(x, static_cast<const bf16 *>(base) + index, valid);
    default:
      return load8(x, static_cast<const float *>(base) + index, valid);
  }
}
MP_DEVICE void store8(mp_dtype_t dtype, void *base, int64_t index, const float (&x)[kVec],
                      int valid) {
  switch (dtype) {
    case MP_FP16:
      return store8(static_cast<half *>(base) + index, x, valid);
    case MP_BF16:
      return store8(static_cast<bf16 *>(base) + index, x, valid);
    default:
      return store8(static_cast<float *>(base) + index, x, valid);
  }
}

/// x as it will read back from memory of that type.
MP_DEVICE float rounded_to(mp_dtype_t dtype, float x) {
  switch (dtype) {
    case MP_FP16:
      return to_float(round_to<half>(x));
    case MP_BF16:
      return to_float(round_to<bf16>(x));
    default:
      return x;
  }
}

}  // namespace mp::MP_TARGET
