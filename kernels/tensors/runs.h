// Vector accesses of a thread: 8 elements each, several at a time, so that their loads are in flight
// together.  Waiting for each 16 bytes before the next load would leave the memory of a large GPU
// idle; tools/gpu/codegen/loads_in_flight.py has the calculation and the check.
//
// A vector is two quads.  Eight consecutive fp32 elements per lane would take two requests, each for
// half of every sector.
#pragma once

#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// The runs of a warp make a stretch: first a quad of every lane, then their second quads.
constexpr int kWarpSpan = kWarpSize * kVec;
MP_HD constexpr int place_in_run(int i) {
  return i / kQuad * (kWarpSpan / 2) + i % kQuad;
}

/// As many as have 64 bytes.  With 1024 threads on an SM these are 64 KiB in flight.
template <class T>
constexpr int kVectorsInFlight = 64 / (kVec * sizeof(T));

/// Up to kNumRuns whole runs, kStride elements apart, at addresses that are aligned to 16 bytes.
template <int kNumRuns, int kStride>
struct FullVectors {
  static constexpr int kRuns = kNumRuns;
  int64_t begin;  ///< of the first
  int left;       ///< elements from there to the end of the last stretch, > 0

  /// Element i of a run, and whether there is one.
  MP_DEVICE int64_t at(int run, int i) const { return begin + run * kStride + place_in_run(i); }
  MP_DEVICE bool has(int run, int) const { return run * kStride < left; }

  /// x[run][i] = element i of a run, 0 where there is none.
  template <class T>
  MP_DEVICE void load(float (&x)[kRuns][kVec], const T *base) const {
    using Loaded = Pack<T, kQuad>;
    Loaded loaded[kRuns][2] = {};
    MP_UNROLL
    for (int run = 0; run < kRuns; run++) {
      MP_UNROLL
      for (int q = 0; q < 2; q++)
        if (has(run, 0))
          loaded[run][q] = *reinterpret_cast<const Loaded *>(base + at(run, q * kQuad));
    }
    MP_UNROLL
    for (int run = 0; run < kRuns; run++) widen(x[run], loaded[run]);
  }

  template <class T>
  MP_DEVICE void store(T *base, const float (&x)[kRuns][kVec]) const {
    MP_UNROLL
    for (int run = 0; run < kRuns; run++) {
      if (!has(run, 0)) continue;
      Pack<T, kQuad> stored[2];
      narrow(stored, x[run]);
      MP_UNROLL
      for (int q = 0; q < 2; q++) store_pack(base + at(run, q * kQuad), stored[q]);
    }
  }
};

/// One run of which elements may be missing, at an address of any alignment.
struct PartialVector {
  static constexpr int kRuns = 1;
  int64_t begin;
  int left;  ///< elements from there to the end, > 0

  MP_DEVICE int64_t at(int, int i) const { return begin + place_in_run(i); }
  MP_DEVICE bool has(int, int i) const { return place_in_run(i) < left; }

  template <class T>
  MP_DEVICE void load(float (&x)[1][kVec], const T *base) const {
    MP_UNROLL
    for (int i = 0; i < kVec; i += kQuad)
      load_vector(reinterpret_cast<float(&)[kQuad]>(x[0][i]), base + at(0, i), valid(i));
  }
  template <class T>
  MP_DEVICE void store(T *base, const float (&x)[1][kVec]) const {
    MP_UNROLL
    for (int i = 0; i < kVec; i += kQuad)
      store_vector(base + at(0, i), reinterpret_cast<const float(&)[kQuad]>(x[0][i]), valid(i));
  }

 private:
  /// Of the quad that begins with element i.
  MP_DEVICE int valid(int i) const { return min_of(left - place_in_run(i), kQuad); }
};

/// One run of either kind.
struct Run {
  int64_t begin;
  int left;
  bool is_whole;

  MP_DEVICE bool has(int i) const { return place_in_run(i) < left; }

  /// Calls f(FullVectors) or f(PartialVector): only loads and stores are compiled twice.
  template <class F>
  MP_DEVICE void visit(const F &f) const {
    if (is_whole)
      f(FullVectors<1, kWarpSpan>{begin, kWarpSpan});
    else
      f(PartialVector{begin, left});
  }
};

/// The same for a type known at run time only.
template <class Runs>
MP_DEVICE void load_vectors(float (&x)[Runs::kRuns][kVec], const Runs &runs, mp_dtype_t dtype,
                            const void *base) {
  with_type(dtype, [&](auto type) {
    runs.load(x, static_cast<const typename decltype(type)::type *>(base));
  });
}

template <class Runs>
MP_DEVICE void store_vectors(const Runs &runs, mp_dtype_t dtype, void *base,
                             const float (&x)[Runs::kRuns][kVec]) {
  with_type(dtype,
            [&](auto type) { runs.store(static_cast<typename decltype(type)::type *>(base), x); });
}

/// Of the first run of this thread.
MP_DEVICE int first_element() {
  return warp_index() * kWarpSpan + lane_index() * kQuad;
}

/// Calls visit(runs) until all `count` elements from `begin` on were in one run; a thread gets its runs in
/// ascending order, and the same ones whatever kRuns and is_aligned are.
/// @param is_aligned  whether every address of which visit loads or stores elements `begin` on is a
///                    multiple of 16
template <int kThreads, int kRuns, class Visit>
MP_DEVICE void for_each_vector(int64_t begin, int count, bool is_aligned, const Visit &visit) {
  constexpr int kStride = kThreads * kVec;
  static_assert((kStride & (kStride - 1)) == 0);
  const int first = first_element();
  const int whole = is_aligned ? count / kWarpSpan * kWarpSpan : 0;
  for (int i = first; i < whole; i += kRuns * kStride)
    visit(FullVectors<kRuns, kStride>{begin + i, whole - i});
  for (int i = whole + ((first - whole) & (kStride - 1)); i < count; i += kStride)
    visit(PartialVector{begin + i, count - i});
}

/// The same with visit(Run), for kernels whose single run has loads enough.
template <int kThreads, class Visit>
MP_DEVICE void for_each_single_run(int64_t begin, int count, bool is_aligned, const Visit &visit) {
  const int whole = is_aligned ? count / kWarpSpan * kWarpSpan : 0;
  for (int i = first_element(); i < count; i += kThreads * kVec)
    visit(Run{begin + i, count - i, i < whole});
}

}  // namespace mp::MP_TARGET
