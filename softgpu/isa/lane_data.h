// Moves between memory and the registers of a warp: a scalar or a vector of 2 or 4 elements per
// lane.
//
// PTX ISA, Operand Size Exceeding Instruction-Type Size: a register wider than the element in
// memory is extended by the sign or zeros when loaded, and truncated when stored.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "softgpu/isa/form.h"
#include "softgpu/isa/lane_addresses.h"
#include "softgpu/machine/lanes.h"
#include "softgpu/machine/warp.h"

namespace softgpu {

template <class T>
inline T load_value(uint64_t place) {
  T value;
  memcpy(&value, reinterpret_cast<const void *>(place), sizeof value);
  return value;
}
template <class T>
inline void store_value(uint64_t place, T value) {
  memcpy(reinterpret_cast<void *>(place), &value, sizeof value);
}

/// Extends an element to a register.
template <class Register, class Element>
inline Word<Register> extend(Element e) {
  return static_cast<Register>(e);
}

/// Four words: of one lane in memory, or of one register in four lanes.
using FourWords [[gnu::vector_size(16), gnu::may_alias]] = uint32_t;

/// Transposes four registers of four lanes to four words of each lane, or back.
inline void transpose(FourWords (&x)[4]) {
  const FourWords low01 = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
  const FourWords low23 = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
  const FourWords high01 = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
  const FourWords high23 = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
  x[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  x[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  x[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  x[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

/// Loads for all lanes: to[e][l] = element e at places[l], for all lanes.
template <class Element, class Register, int n>
inline void gather(const LaneAddresses &places, Word<Register> *const (&to)[n]) {
  using W = Word<Register>;
  if constexpr (n <= 2) {
    if (are_consecutive(places, n * sizeof(Element))) {
      const uint64_t from = places.of[0];
#pragma GCC ivdep
      for (size_t l = 0; l < kWarpSize; l++)
        for (size_t e = 0; e < n; e++)
          to[e][l] = extend<Register>(load_value<Element>(from + (l * n + e) * sizeof(Element)));
      return;
    }
  }
  if constexpr (n == 4 && sizeof(Element) == 4 && sizeof(W) == 4) {
#pragma GCC unroll 2
    for (int l = 0; l < kWarpSize; l += 4) {
      FourWords x[4];
      for (int k = 0; k < 4; k++) x[k] = load_value<FourWords>(places.of[l + k]);
      transpose(x);
      for (int e = 0; e < 4; e++) memcpy(to[e] + l, &x[e], sizeof x[e]);
    }
  } else {
#pragma GCC unroll 8
    for (int l = 0; l < kWarpSize; l++) {
      const auto elements = load_value<std::array<Element, n>>(places.of[l]);
      for (size_t e = 0; e < n; e++) to[e][l] = extend<Register>(elements[e]);
    }
  }
}

/// rows[e] = element e at each place.  The places of all lanes must be readable.
template <class Element, class Register, int n>
inline void load_rows(Warp &warp, Lanes lanes, const LaneAddresses &places,
                      const RegisterSlot *rows) {
  using W = Word<Register>;
  W *to[n];
  for (int e = 0; e < n; e++) to[e] = warp.row<W>(rows[e]);
  if (lanes == kAllLanes) return gather<Element, Register, n>(places, to);

  alignas(64) W values[n][kWarpSize];
  W *all[n];
  for (int e = 0; e < n; e++) all[e] = values[e];
  gather<Element, Register, n>(places, all);
  for (int e = 0; e < n; e++) set_lanes(to[e], lanes, [&](int l) { return values[e][l]; });
}

/// Element e at places[l] = from[e][l].
template <class Element, class W, int n>
inline void store_lane(uint64_t place, const W *const (&from)[n], int lane) {
  std::array<Element, n> elements;
  for (size_t e = 0; e < n; e++) elements[e] = static_cast<Element>(from[e][lane]);
  store_value(place, elements);
}

/// Stores for all lanes: element e at places[l] = from[e][l].
template <class Element, class W, int n>
inline void scatter(const LaneAddresses &places, const W *const (&from)[n]) {
  if constexpr (n == 1) {
    if (are_consecutive(places, sizeof(Element))) {
      const W *__restrict row = from[0];
      const uint64_t to = places.of[0];
#pragma GCC ivdep
      for (size_t l = 0; l < kWarpSize; l++)
        store_value(to + l * sizeof(Element), static_cast<Element>(row[l]));
      return;
    }
  }
  if constexpr (n == 4 && sizeof(Element) == 4 && sizeof(W) == 4) {
#pragma GCC unroll 2
    for (int l = 0; l < kWarpSize; l += 4) {
      FourWords x[4];
      for (int e = 0; e < 4; e++) memcpy(&x[e], from[e] + l, sizeof x[e]);
      transpose(x);
      for (int k = 0; k < 4; k++) store_value(places.of[l + k], x[k]);
    }
  } else {
#pragma GCC unroll 8
    for (int l = 0; l < kWarpSize; l++) store_lane<Element>(places.of[l], from, l);
  }
}

/// Element e at each place = rows[e].  The last of several lanes with the same place wins.
template <class Element, class Register, int n>
inline void store_rows(Warp &warp, Lanes lanes, const LaneAddresses &places,
                       const RegisterSlot *rows) {
  using W = Word<Register>;
  const W *from[n];
  for (int e = 0; e < n; e++) from[e] = warp.row<W>(rows[e]);
  if (lanes == kAllLanes) return scatter<Element>(places, from);
  for_each_lane(lanes, [&](int l) { store_lane<Element>(places.of[l], from, l); });
}

}  // namespace softgpu
