// What a thread takes of a stretch of memory: runs of 8 elements, several at a time, so that their loads
// are in flight together.  A thread that waits for each 16 bytes before it asks for the next leaves the
// memory of a large GPU idle: tools/gpu/codegen/loads_in_flight.py has the arithmetic and the gate.
#pragma once

#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// As many as have 64 bytes.  With 1024 threads on an SM these are 64 KiB in flight.
template <class T>
constexpr int kRunsInFlight = 64 / (kVec * sizeof(T));

/// Up to kNumRuns whole runs, kStride elements apart, at addresses that are aligned to 16 bytes.
template <int kNumRuns, int kStride>
struct WholeRuns {
  static constexpr int kRuns = kNumRuns;
  int64_t begin;  ///< of the first
  int left;       ///< elements from there to the end, > 0

  MP_DEVICE int64_t at(int run) const { return begin + run * kStride; }
  MP_DEVICE bool has(int run) const { return run * kStride < left; }
  MP_DEVICE int valid(int run) const { return has(run) ? kVec : 0; }

  /// x[run][i] = element i of a run, 0 where there is none.
  template <class T>
  MP_DEVICE void load(float (&x)[kRuns][kVec], const T *base) const {
    using Loaded = Pack<T, kPackElems<T, kVec>>;
    constexpr int kPacks = sizeof(T) * kVec / sizeof(Loaded);
    Loaded loaded[kRuns][kPacks] = {};
    MP_UNROLL
    for (int run = 0; run < kRuns; run++) {
      MP_UNROLL
      for (int i = 0; i < kPacks; i++)
        if (has(run)) loaded[run][i] = reinterpret_cast<const Loaded *>(base + at(run))[i];
    }
    MP_UNROLL
    for (int run = 0; run < kRuns; run++) widen(x[run], loaded[run]);
  }

  template <class T>
  MP_DEVICE void store(T *base, const float (&x)[kRuns][kVec]) const {
    using Stored = Pack<T, kPackElems<T, kVec>>;
    constexpr int kPacks = sizeof(T) * kVec / sizeof(Stored);
    MP_UNROLL
    for (int run = 0; run < kRuns; run++) {
      if (!has(run)) continue;
      Stored stored[kPacks];
      narrow(stored, x[run]);
      MP_UNROLL
      for (int i = 0; i < kPacks; i++)
        store_pack(base + at(run) + i * kPackElems<T, kVec>, stored[i]);
    }
  }
};

/// One run of up to 8 elements, at an address of any alignment.
struct PartialRun {
  static constexpr int kRuns = 1;
  int64_t begin;
  int count;

  MP_DEVICE int64_t at(int) const { return begin; }
  MP_DEVICE bool has(int) const { return true; }
  MP_DEVICE int valid(int) const { return count; }

  template <class T>
  MP_DEVICE void load(float (&x)[1][kVec], const T *base) const {
    load_run(x[0], base + begin, count);
  }
  template <class T>
  MP_DEVICE void store(T *base, const float (&x)[1][kVec]) const {
    store_run(base + begin, x[0], count);
  }
};

/// One run of either kind.
struct Run {
  int64_t begin;
  int count;
  bool is_whole;

  /// f(WholeRuns) or f(PartialRun): for kernels that compile all but their loads and stores once.
  template <class F>
  MP_DEVICE void visit(const F &f) const {
    if (is_whole)
      f(WholeRuns<1, kVec>{begin, kVec});
    else
      f(PartialRun{begin, count});
  }
};

/// The same for a type known at run time only.
template <class Runs>
MP_DEVICE void load_runs(float (&x)[Runs::kRuns][kVec], const Runs &runs, mp_dtype_t dtype,
                         const void *base) {
  with_type(dtype, [&](auto type) {
    runs.load(x, static_cast<const typename decltype(type)::type *>(base));
  });
}

template <class Runs>
MP_DEVICE void store_runs(const Runs &runs, mp_dtype_t dtype, void *base,
                          const float (&x)[Runs::kRuns][kVec]) {
  with_type(dtype,
            [&](auto type) { runs.store(static_cast<typename decltype(type)::type *>(base), x); });
}

/// Calls visit(runs) until all `count` elements from `begin` on were in one run; neighbouring threads
/// get neighbouring runs, and a thread gets its runs in ascending order, whatever kRuns is.
/// @param is_aligned  whether every address of which visit loads or stores elements `begin` on is a
///                    multiple of 16
template <int kThreads, int kRuns, class Visit>
MP_DEVICE void for_each_run(int64_t begin, int count, bool is_aligned, const Visit &visit) {
  constexpr int kStride = kThreads * kVec;
  static_assert((kStride & (kStride - 1)) == 0);
  const int first = thread_index() * kVec;
  const int whole = is_aligned ? count / kVec * kVec : 0;
  for (int i = first; i < whole; i += kRuns * kStride)
    visit(WholeRuns<kRuns, kStride>{begin + i, whole - i});
  for (int i = whole + ((first - whole) & (kStride - 1)); i < count; i += kStride)
    visit(PartialRun{begin + i, min_of(count - i, kVec)});
}

/// The same with visit(Run), for kernels whose single run has loads enough.
template <int kThreads, class Visit>
MP_DEVICE void for_each_single_run(int64_t begin, int count, bool is_aligned, const Visit &visit) {
  for (int i = thread_index() * kVec; i < count; i += kThreads * kVec) {
    const int left = min_of(count - i, kVec);
    visit(Run{begin + i, left, is_aligned && left == kVec});
  }
}

}  // namespace mp::MP_TARGET
