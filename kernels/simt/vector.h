// Loads and stores of short vectors: any element type in memory, fp32 in registers.  Aligned
// vectors are accessed in units of 16 bytes, or of their size if that is smaller; other vectors
// element by element.
//
// Most kernels use vectors of kVec elements, but any power of two is possible: a lane of a
// tensor-core accumulator has vectors of 2.
#pragma once

#include "kernels/simt/half.h"
#include "kernels/simt/simt.h"

#if !MP_ON_CUDA && defined(__F16C__) && defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mp::MP_TARGET {

constexpr int kVec = 8;
constexpr int kQuad = 4;  ///< 16 bytes of fp32

/// Number of elements of a vector that one access moves.
template <class T, int kRun>
constexpr int kPackElems = min_of<int>(kRun, 16 / sizeof(T));

/// True if Pack is declared aligned, as GPUs require and UBSan checks.  Elsewhere unaligned
/// accesses are as fast, and GCC 13 miscompiles aligned ones: it merges the accesses of two
/// branches, one for aligned and one for other addresses, and assumes alignment for both.
#if MP_ON_CUDA || defined(__SANITIZE_ADDRESS__)
constexpr bool kArePacksAligned = true;
#else
constexpr bool kArePacksAligned = false;
#endif

template <class T, int kElems>
struct alignas(kArePacksAligned ? kElems * sizeof(T) : alignof(T)) Pack {
  T x[kElems];
};

/// 16 bytes of fp32.  If adjacent lanes access adjacent quads, an access fills every sector of gmem
/// that it touches and has no bank conflicts in smem.
using Quad = Pack<float, kQuad>;

/// Stores to an aligned address in gmem with one instruction.  The compiler may turn an assignment,
/// even of CUDA's vector types, into one store per element.  Floats are passed as floats: as words,
/// wgmma accumulators would be copied in the main loop.
template <class T, int kElems>
MP_DEVICE void store_pack(T *address, const Pack<T, kElems> &pack) {
#if MP_ON_CUDA
  const size_t gmem = __cvta_generic_to_global(address);
  const T(&x)[kElems] = pack.x;
  if constexpr (std::is_same_v<T, float> && kElems == 4) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(gmem), "f"(x[0]), "f"(x[1]),
                 "f"(x[2]), "f"(x[3])
                 : "memory");
  } else if constexpr (std::is_same_v<T, float> && kElems == 2) {
    asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(gmem), "f"(x[0]), "f"(x[1]) : "memory");
  } else if constexpr (sizeof pack == 16) {
    const uint4 words = __builtin_bit_cast(uint4, pack);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(gmem), "r"(words.x), "r"(words.y),
                 "r"(words.z), "r"(words.w)
                 : "memory");
  } else if constexpr (sizeof pack == 8) {
    const uint2 words = __builtin_bit_cast(uint2, pack);
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(gmem), "r"(words.x), "r"(words.y)
                 : "memory");
  } else {
    *reinterpret_cast<Pack<T, kElems> *>(address) = pack;
  }
#else
  *reinterpret_cast<Pack<T, kElems> *>(address) = pack;
#endif
}

template <int kBytes, class T>
MP_DEVICE bool is_aligned(const T *address) {
  return reinterpret_cast<uintptr_t>(address) % kBytes == 0;
}
template <class T>
MP_DEVICE bool is_aligned_16(const T *address) {
  return is_aligned<16>(address);
}

template <class T, int kRun, int kElems, int kPacks>
MP_DEVICE void widen(float (&out)[kRun], const Pack<T, kElems> (&in)[kPacks]) {
  static_assert(kElems * kPacks == kRun);
#if !MP_ON_CUDA && defined(__F16C__) && defined(__AVX2__)
  // Two 8-byte loads: one 16-byte load of elements just written by two stores would miss
  // store-to-load forwarding.
  if constexpr (std::is_same_v<T, half> && kRun == 8) {
    const auto *const quads = reinterpret_cast<const std::byte *>(in);
    const __m128i first = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(quads));
    const __m128i second = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(quads + 8));
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_unpacklo_epi64(first, second)));
    return;
  }
  if constexpr (std::is_same_v<T, float> && kRun == 8) {
    _mm256_storeu_ps(out, _mm256_set_m128(_mm_loadu_ps(in[1].x), _mm_loadu_ps(in[0].x)));
    return;
  }
#endif
  MP_UNROLL
  for (int i = 0; i < kRun; i++) out[i] = to_float(in[i / kElems].x[i % kElems]);
}
template <class T, int kRun, int kElems, int kPacks>
MP_DEVICE void narrow(Pack<T, kElems> (&out)[kPacks], const float (&in)[kRun]) {
  static_assert(kElems * kPacks == kRun);
#if !MP_ON_CUDA && defined(__F16C__) && defined(__AVX2__)
  if constexpr (std::is_same_v<T, half> && kRun == 8) {
    const __m128i raw = _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out), raw);
    return;
  }
#endif
  MP_UNROLL
  for (int i = 0; i < kRun; i++) out[i / kElems].x[i % kElems] = round_to<T>(in[i]);
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

/// Running maximum: if x[i] is larger than largest[i], or is the first NaN, sets largest[i] = x[i]
/// and where[i] = place.
template <int kRun>
MP_DEVICE void keep_larger(float (&largest)[kRun], int32_t (&where)[kRun], const float (&x)[kRun],
                           int32_t place) {
#if !MP_ON_CUDA && defined(__AVX2__)
  if constexpr (kRun == 8) {
    const __m256 old = _mm256_loadu_ps(largest), now = _mm256_loadu_ps(x);
    const __m256 is_larger =
        _mm256_and_ps(_mm256_cmp_ps(now, old, _CMP_NLE_UQ),  // true for NaN, too
                      _mm256_cmp_ps(old, old, _CMP_ORD_Q));
    float *const where_bits = reinterpret_cast<float *>(where);
    const __m256 place_bits = _mm256_castsi256_ps(_mm256_set1_epi32(place));
    _mm256_storeu_ps(largest, _mm256_blendv_ps(old, now, is_larger));
    _mm256_storeu_ps(where_bits,
                     _mm256_blendv_ps(_mm256_loadu_ps(where_bits), place_bits, is_larger));
    return;
  }
#endif
  MP_UNROLL
  for (int i = 0; i < kRun; i++) {
    const bool is_larger = !(x[i] <= largest[i]) && largest[i] == largest[i];
    largest[i] = is_larger ? x[i] : largest[i];
    where[i] = is_larger ? place : where[i];
  }
}

/// 16 bytes of elements in registers, in memory layout, for elements that are loaded long before
/// they are used.  Four words, because a single 16-bit element would occupy a full register.
template <class T>
struct Packed {
  static constexpr int kElems = 16 / sizeof(T);
  static constexpr int kPerWord = 4 / sizeof(T);
  uint32_t words[4];

  /// `p` must be 16-byte aligned.
#if MP_ON_CUDA
  MP_DEVICE void load(const T *p) {
    const uint4 loaded = *reinterpret_cast<const uint4 *>(p);
    words[0] = loaded.x, words[1] = loaded.y, words[2] = loaded.z, words[3] = loaded.w;
  }
  MP_DEVICE void store(T *p) const {
    *reinterpret_cast<uint4 *>(p) = make_uint4(words[0], words[1], words[2], words[3]);
  }
#else
  void load(const T *p) {
    std::memcpy(words, p, sizeof words);
  }
  void store(T *p) const {
    std::memcpy(p, words, sizeof words);
  }
#endif

  /// Loads from an address of any alignment; elements from `valid` on become 0.
  MP_DEVICE void load_elements(const T *p, int valid) {
    MP_UNROLL
    for (int w = 0; w < 4; w++) {
      words[w] = 0;
      MP_UNROLL
      for (int i = 0; i < kPerWord; i++) {
        const int at = w * kPerWord + i;
        if (at < valid) words[w] |= element_bits(p[at]) << (16 * i);
      }
    }
  }

  /// Stores the first `valid` elements to an address of any alignment.
  MP_DEVICE void store_elements(T *p, int valid) const {
    MP_UNROLL
    for (int i = 0; i < kElems; i++)
      if (i < valid) p[i] = element_from<T>(words[i / kPerWord] >> (16 * (i % kPerWord)));
  }

  MP_DEVICE float operator[](int i) const {
    return to_float(element_from<T>(words[i / kPerWord] >> (16 * (i % kPerWord))));
  }
};

template <class T>
MP_DEVICE void widen(float *out, const Packed<T> &in) {
#if !MP_ON_CUDA && defined(__F16C__) && defined(__AVX2__)
  if constexpr (sizeof(T) == 2)
    return _mm256_storeu_ps(out, to_floats8(reinterpret_cast<const T *>(in.words)));
#endif
  MP_UNROLL
  for (int i = 0; i < Packed<T>::kElems; i++) out[i] = in[i];
}

/// True if smem has banks, so that the lanes of an access can conflict.  Host memory has none, and
/// eight contiguous floats fill a register.
constexpr bool kHasBanks = MP_ON_CUDA;

// Vectors of fp32 in smem, adjacent lanes having adjacent vectors.  With 8 elements, four of eight
// lanes access their second quad first, so that the eight lanes access every bank once.
MP_DEVICE void load_smem_run(float (&x)[kVec], const float *smem) {
  const Quad *const quads = reinterpret_cast<const Quad *>(smem);
  const int swapped = kHasBanks ? lane_index() / 4 % 2 : 0;
  const Quad one = quads[swapped], other = quads[1 - swapped];
  MP_UNROLL
  for (int i = 0; i < kQuad; i++) {
    x[i] = swapped ? other.x[i] : one.x[i];
    x[kQuad + i] = swapped ? one.x[i] : other.x[i];
  }
}
MP_DEVICE void load_smem_run(float (&x)[kQuad], const float *smem) {
  const Quad quad = *reinterpret_cast<const Quad *>(smem);
  MP_UNROLL
  for (int i = 0; i < kQuad; i++) x[i] = quad.x[i];
}
MP_DEVICE void store_smem_run(float *smem, const float (&x)[kVec]) {
  Quad *const quads = reinterpret_cast<Quad *>(smem);
  const int swapped = kHasBanks ? lane_index() / 4 % 2 : 0;
  Quad one, other;
  MP_UNROLL
  for (int i = 0; i < kQuad; i++) {
    one.x[i] = swapped ? x[kQuad + i] : x[i];
    other.x[i] = swapped ? x[i] : x[kQuad + i];
  }
  quads[swapped] = one;
  quads[1 - swapped] = other;
}

/// out = in transposed.  Free on the device: registers are only renamed.
template <int kRows, int kCols>
MP_DEVICE void transpose(float (&out)[kCols][kRows], const float (&in)[kRows][kCols]) {
#if !MP_ON_CUDA && defined(__F16C__) && defined(__AVX2__)
  static_assert(kRows % 4 == 0 && kCols % 4 == 0);
  for (int i = 0; i < kRows; i += 4) {
    for (int j = 0; j < kCols; j += 4) {
      __m128 row[4];
      for (int r = 0; r < 4; r++) row[r] = _mm_loadu_ps(&in[i + r][j]);
      _MM_TRANSPOSE4_PS(row[0], row[1], row[2], row[3]);
      for (int r = 0; r < 4; r++) _mm_storeu_ps(&out[j + r][i], row[r]);
    }
  }
#else
  unroll<kRows, kCols>([&](int i, int j) { out[j][i] = in[i][j]; });
#endif
}

/// sum += x[r] for each row in order.
template <int kRows, int kRun>
MP_DEVICE void add_rows(float (&sum)[kRun], const float (&x)[kRows][kRun]) {
  unroll<kRows, kRun>([&](int r, int i) { sum[i] += x[r][i]; });
}

/// x[i] = p[i] for i < valid, else 0.
template <class T, int kRun>
MP_DEVICE void load_vector(float (&x)[kRun], const T *p, int valid) {
  constexpr int kElems = kPackElems<T, kRun>;
  if (valid == kRun && is_aligned<kElems * sizeof(T)>(p)) {
    Pack<T, kElems> raw[kRun / kElems];
    MP_UNROLL
    for (int i = 0; i < kRun / kElems; i++)
      raw[i] = reinterpret_cast<const Pack<T, kElems> *>(p)[i];
    widen(x, raw);
    return;
  }
  MP_UNROLL
  for (int i = 0; i < kRun; i++) x[i] = i < valid ? to_float(p[i]) : 0.0f;
}

/// p[i] = round(x[i]) for i < valid, in gmem.
template <class T, int kRun>
MP_DEVICE void store_vector(T *p, const float (&x)[kRun], int valid) {
  constexpr int kElems = kPackElems<T, kRun>;
  if (valid == kRun && is_aligned<kElems * sizeof(T)>(p)) {
    Pack<T, kElems> raw[kRun / kElems];
    narrow(raw, x);
    MP_UNROLL
    for (int i = 0; i < kRun / kElems; i++) store_pack(p + i * kElems, raw[i]);
    return;
  }
  MP_UNROLL
  for (int i = 0; i < kRun; i++)
    if (i < valid) p[i] = round_to<T>(x[i]);
}

/// x[r] = the row at first + r * step if r * stride < left, else 0; all rows must be 16-byte
/// aligned.  All loads are issued before the first result is used.
template <class T, int kRows, int kRun>
MP_DEVICE void load_whole_rows(float (&x)[kRows][kRun], const T *first, int64_t step,
                               int64_t stride, int64_t left) {
  using Loaded = Pack<T, kPackElems<T, kRun>>;
  constexpr int kPacks = kRun / kPackElems<T, kRun>;
  Loaded loaded[kRows][kPacks] = {};
  unroll<kRows, kPacks>([&](int r, int i) {
    if (r * stride < left) loaded[r][i] = reinterpret_cast<const Loaded *>(first + r * step)[i];
  });
  unroll<kRows>([&](int r) { widen(x[r], loaded[r]); });
}

/// load_whole_rows for `valid` elements of each row, with any alignment.
template <class T, int kRows, int kRun>
MP_DEVICE void load_rows(float (&x)[kRows][kRun], const T *first, int64_t step, int64_t stride,
                         int64_t left, int valid) {
  if (valid == kRun && is_aligned_16(first) && step % kPackElems<T, kRun> == 0)
    return load_whole_rows(x, first, step, stride, left);
  MP_UNROLL
  for (int r = 0; r < kRows; r++)
    load_vector(x[r], first + r * step, r * stride < left ? valid : 0);
}

/// load_vector and store_vector for a run-time type; `index` in elements.
template <int kRun>
MP_DEVICE void load_vector(float (&x)[kRun], mp_dtype_t dtype, const void *base, int64_t index,
                           int valid) {
  with_type(dtype, [&](auto type) {
    load_vector(x, static_cast<const typename decltype(type)::type *>(base) + index, valid);
  });
}
template <int kRun>
MP_DEVICE void store_vector(mp_dtype_t dtype, void *base, int64_t index, const float (&x)[kRun],
                            int valid) {
  with_type(dtype, [&](auto type) {
    store_vector(static_cast<typename decltype(type)::type *>(base) + index, x, valid);
  });
}

/// Returns x rounded to `dtype`, as fp32.
MP_DEVICE float rounded_to(mp_dtype_t dtype, float x) {
  return with_type(dtype, [&](auto type) {  //
    return to_float(round_to<typename decltype(type)::type>(x));
  });
}

}  // namespace mp::MP_TARGET
