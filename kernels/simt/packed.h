// Vectors of 16 bytes in registers: loads and stores, rounding, and a running maximum with the
// place of the first maximum of each element.
#pragma once

#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Number of vectors that a thread loads before it uses the first.  A CPU overlaps loads by itself.
template <int kOnGpu>
constexpr int kInFlight = MP_ON_CUDA ? kOnGpu : 1;

/// Loads the first `valid` elements from an address of any alignment.
/// @tparam kIsWhole  true: all elements, from an aligned address, without branches
template <bool kIsWhole, class T>
MP_DEVICE Packed<T> load_packed(const T *p, int valid) {
  Packed<T> x;
  if (kIsWhole || (valid == Packed<T>::kElems && is_aligned_16(p)))
    x.load(p);
  else
    x.load_elements(p, valid);
  return x;
}
template <bool kIsWhole, class T>
MP_DEVICE void store_packed(T *p, const Packed<T> &x, int valid) {
  if (kIsWhole || (valid == Packed<T>::kElems && is_aligned_16(p)))
    x.store(p);
  else
    x.store_elements(p, valid);
}

/// Returns x rounded to T.
template <class T>
MP_DEVICE Packed<T> packed(const float (&x)[Packed<T>::kElems]) {
  Packed<T> rounded;
  MP_UNROLL
  for (int w = 0; w < 4; w++) {
    if constexpr (std::is_same_v<T, float>)
      rounded.words[w] = bits_of(x[w]);
    else
      rounded.words[w] = pack_pair<T>(x[2 * w], x[2 * w + 1]);
  }
  return rounded;
}

// ---------------------------------------------------------------------------- maximum

// NaN is larger than everything but another NaN, and zeros of either sign are equal.

/// True if one instruction compares two elements of a word.
#if MP_ON_CUDA && defined(__CUDA_ARCH__)
template <class T>
constexpr bool kComparesPairs = sizeof(T) == 2 && (std::is_same_v<T, half> || __CUDA_ARCH__ >= 900);
#else
template <class T>
constexpr bool kComparesPairs = false;
#endif

#if MP_ON_CUDA

/// Returns a mask of the 16-bit elements of `x` that are larger than those of `largest`, or are the
/// first NaN.
template <class T>
MP_DEVICE uint32_t mask_of_larger(uint32_t x, uint32_t largest) {
  uint32_t larger, is_number;
#define MP_COMPARE(Type, type, ...)                                                  \
  if constexpr (std::is_same_v<T, Type>) {                                           \
    asm("set.gtu.u32." type "x2 %0, %1, %2;" : "=r"(larger) : "r"(x), "r"(largest)); \
    asm("set.num.u32." type "x2 %0, %1, %1;" : "=r"(is_number) : "r"(largest));      \
  }
  MP_HALF_TYPES(MP_COMPARE)
#undef MP_COMPARE
  return larger & is_number;
}

/// Maximum of 16-bit elements, which are not converted.  Places are less than 2^16.
template <class T>
class LargestPairs {
 public:
  /// @param first  place of the first vector
  MP_DEVICE explicit LargestPairs(uint32_t first) {
    // All bits but those of the fraction, in both halves of the word.
    constexpr auto kInfinity = uint16_t(0xffff << (kFloatType<T>.significant_bits - 1));
    constexpr uint32_t kMinusInfinity = kInfinity * 0x10001u;
    unroll<4>([&](int w) { value_.words[w] = kMinusInfinity, places_[w] = twice(first); });
  }
  MP_DEVICE void see(const Packed<T> &x, uint32_t place) {
    MP_UNROLL
    for (int w = 0; w < 4; w++) {
      const uint32_t larger = mask_of_larger<T>(x.words[w], value_.words[w]);
      value_.words[w] = (x.words[w] & larger) | (value_.words[w] & ~larger);
      places_[w] = (twice(place) & larger) | (places_[w] & ~larger);
    }
  }

  MP_DEVICE const Packed<T> &value() const { return value_; }
  /// Returns the places of elements 2 i and 2 i + 1, the first in the low half.
  MP_DEVICE uint32_t pair_of_places(int i) const { return places_[i]; }
  MP_DEVICE uint32_t place(int i) const { return places_[i / 2] >> (16 * (i % 2)) & 0xffffu; }

 private:
  static MP_DEVICE uint32_t twice(uint32_t place) { return place * 0x10001u; }

  Packed<T> value_;
  uint32_t places_[4];
};

#endif

/// Maximum of elements of any type, as fp32.
template <class T>
class LargestFloats {
  static constexpr int kElems = Packed<T>::kElems;

 public:
  MP_DEVICE explicit LargestFloats(uint32_t first) {
    unroll<kElems>([&](int i) { value_[i] = -INFINITY, places_[i] = static_cast<int32_t>(first); });
  }
  MP_DEVICE void see(const Packed<T> &packed, uint32_t place) {
    float x[kElems];
    widen(x, packed);
    keep_larger(value_, places_, x, static_cast<int32_t>(place));
  }

  MP_DEVICE Packed<T> value() const { return packed<T>(value_); }
  MP_DEVICE uint32_t pair_of_places(int i) const { return place(2 * i) | place(2 * i + 1) << 16; }
  MP_DEVICE uint32_t place(int i) const { return static_cast<uint32_t>(places_[i]); }

 private:
  float value_[kElems];
  int32_t places_[kElems];
};

/// Maximum of vectors of T with places that fit in `Place`.
#if MP_ON_CUDA
template <class T, class Place>
using Largest = std::conditional_t<kComparesPairs<T> && sizeof(Place) <= sizeof(uint16_t),
                                   LargestPairs<T>, LargestFloats<T>>;
#else
template <class T, class Place>
using Largest = LargestFloats<T>;
#endif

}  // namespace mp::MP_TARGET
