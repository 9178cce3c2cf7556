// Elementwise passes over arrays, tensor lists and the rows of a matrix.  Blocks stride over chunks
// of a list, threads over vectors of 8 elements.
//
// A thread accesses several vectors at a time, so that their loads are in flight together.  Waiting
// for each 16 bytes before the next load would leave the memory of a large GPU idle;
// tools/gpu/codegen/loads_in_flight.py contains the calculation and the check.
//
// A vector consists of two quads, half a warp span apart.  Eight consecutive fp32 elements per lane
// would take two requests, each for half of every sector.
#pragma once

#include <cstdint>

#include "kernels/simt/simt.h"
#include "kernels/simt/vector.h"
#include "kernels/tensors/lists.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- lists

/// Elements [begin, begin + count) of tensor `tensor`.
struct ChunkRange {
  uint32_t tensor;
  int64_t begin;
  int count;
};

MP_DEVICE ChunkRange chunk_range(const TensorList &list, int64_t number) {
  const Chunk chunk = list.chunks[number];
  const int64_t begin = chunk.index * kChunkElems;
  const int64_t left = list.numel[chunk.tensor] - begin;
  return {chunk.tensor, begin, static_cast<int>(min_of(left, kChunkElems))};
}

MP_DEVICE mp_dtype_t dtype_of(const TensorList &list, uint32_t tensor) {
  return static_cast<mp_dtype_t>(list.dtype[tensor]);
}

/// Returns the elements of a tensor, known to the compiler to be in gmem.
template <class T = void>
MP_DEVICE T *data_of(const TensorList &list, uint32_t tensor) {
  return static_cast<T *>(in_gmem(list.data[tensor]));
}

/// data_of, or NULL if the list or the tensor is absent.
template <class T = void>
MP_DEVICE T *optional_data_of(const TensorList &list, uint32_t tensor) {
  return static_cast<T *>(in_gmem(list.data != nullptr ? list.data[tensor] : nullptr));
}

/// Returns the number of blocks: enough to fill the device, at most num_pieces, and at least one,
/// so that an empty list has a last block.
inline int64_t blocks_for(const Device &device, int64_t num_pieces) {
  constexpr int64_t kBlocksPerSm = 8;
  return max_of<int64_t>(min_of<int64_t>(num_pieces, device.num_sms * kBlocksPerSm), 1);
}

/// Returns a launch of at most as many blocks as can be resident at once, for a kernel that begins
/// with wait_for_previous_kernel().
inline LaunchShape resident_blocks(const Device &device, int64_t pieces, int num_threads) {
  constexpr int64_t kThreadsPerSm = 2048;
  return {.num_blocks = min_of(pieces, device.num_sms * (kThreadsPerSm / num_threads)),
          .num_threads = num_threads,
          .uses_pdl = true};
}

// ---------------------------------------------------------------------------- vectors

/// Elements that a warp covers in one step: first one quad of every lane, then the second quads.
constexpr int kWarpSpan = kWarpSize * kVec;
MP_HD constexpr int place_in_run(int i) {
  return i / kQuad * (kWarpSpan / 2) + i % kQuad;
}

/// Number of vectors in 64 bytes.  With 1024 threads on an SM, 64 KiB are in flight.
template <class T>
constexpr int kVectorsInFlight = 64 / (kVec * sizeof(T));

/// Up to kNumRuns full vectors, kStride elements apart, at 16-byte aligned addresses.
template <int kNumRuns, int kStride>
struct FullVectors {
  static constexpr int kRuns = kNumRuns;
  int64_t begin;  ///< first element of the first vector
  int left;       ///< elements from `begin` to the end of the last warp span, > 0

  /// at() is the index of element i of a vector; has() is true if the element exists.
  MP_DEVICE int64_t at(int run, int i) const { return begin + run * kStride + place_in_run(i); }
  MP_DEVICE bool has(int run, int) const { return run * kStride < left; }

  /// x[run][i] = element i of a vector, or 0 if it does not exist.
  template <class T>
  MP_DEVICE void load(float (&x)[kRuns][kVec], const T *base) const {
    using Loaded = Pack<T, kQuad>;
    Loaded loaded[kRuns][2] = {};
    unroll<kRuns, 2>([&](int run, int q) {
      if (has(run, 0))
        loaded[run][q] = *reinterpret_cast<const Loaded *>(base + at(run, q * kQuad));
    });
    unroll<kRuns>([&](int run) { widen(x[run], loaded[run]); });
  }

  template <class T>
  MP_DEVICE void store(T *base, const float (&x)[kRuns][kVec]) const {
    MP_UNROLL
    for (int run = 0; run < kRuns; run++) {
      if (!has(run, 0)) continue;
      Pack<T, kQuad> stored[2];
      narrow(stored, x[run]);
      unroll<2>([&](int q) { store_pack(base + at(run, q * kQuad), stored[q]); });
    }
  }
};

/// Vector that may lack elements, at an address of any alignment.
struct PartialVector {
  static constexpr int kRuns = 1;
  int64_t begin;
  int left;  ///< elements from `begin` to the end, > 0

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
  /// Number of elements in the quad that begins with element i.
  MP_DEVICE int valid(int i) const { return min_of(left - place_in_run(i), kQuad); }
};

/// A full or partial vector.
struct AnyVector {
  int64_t begin;
  int left;
  bool is_whole;

  MP_DEVICE bool has(int i) const { return place_in_run(i) < left; }

  /// Calls f(FullVectors) or f(PartialVector); only loads and stores are compiled twice.
  template <class F>
  MP_DEVICE void visit(const F &f) const {
    if (is_whole)
      f(FullVectors<1, kWarpSpan>{begin, kWarpSpan});
    else
      f(PartialVector{begin, left});
  }
};

/// Loads and stores for a run-time type.
template <class Runs>
MP_DEVICE void load_vectors(float (&x)[Runs::kRuns][kVec], const Runs &runs, mp_dtype_t dtype,
                            const void *base) {
  with_type(dtype,
            [&]<class T>(std::type_identity<T>) { runs.load(x, static_cast<const T *>(base)); });
}

template <class Runs>
MP_DEVICE void store_vectors(const Runs &runs, mp_dtype_t dtype, void *base,
                             const float (&x)[Runs::kRuns][kVec]) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) { runs.store(static_cast<T *>(base), x); });
}

/// Returns the first element of this thread's first vector.
MP_DEVICE int first_element() {
  return warp_index() * kWarpSpan + lane_index() * kQuad;
}

/// Calls visit(vectors) for this thread's vectors of the `count` elements from `begin` on, in
/// ascending order.  The assignment of elements to threads does not depend on kRuns and is_aligned.
/// @param is_aligned  true if all elements `begin` that visit loads or stores are 16-byte aligned
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

/// for_each_vector with visit(AnyVector), for kernels that issue enough loads for a single vector.
template <int kThreads, class Visit>
MP_DEVICE void for_each_single_vector(int64_t begin, int count, bool is_aligned,
                                      const Visit &visit) {
  const int whole = is_aligned ? count / kWarpSpan * kWarpSpan : 0;
  for (int i = first_element(); i < count; i += kThreads * kVec)
    visit(AnyVector{begin + i, count - i, i < whole});
}

// ---------------------------------------------------------------------------- rows of a matrix

constexpr int kRowRunThreads = 128;  ///< per block if the grid has more than one

/// Calls visit(row, column, valid) for each of this thread's vectors.
template <class Visit>
MP_DEVICE void for_each_row_run(int64_t rows, int64_t columns, Visit visit) {
  const int64_t runs_per_row = ceil_div<int64_t>(columns, kVec);
  for (int64_t i = block_index() * kRowRunThreads + thread_index(); i < rows * runs_per_row;
       i += grid_size() * kRowRunThreads) {
    const int64_t row = i / runs_per_row, column = (i - row * runs_per_row) * kVec;
    visit(row, column, static_cast<int>(min_of<int64_t>(columns - column, kVec)));
  }
}

/// Launches a kernel that begins with wait_for_previous_kernel() and whose warps are independent.
/// If the grid would exceed `blocks_per_sm` blocks per SM, a thread processes several vectors.  A
/// recurrent step needs few blocks: on the host target, every thread costs as much as a vector.  A
/// single block therefore has only the warps that it needs.
template <class Args>
void launch_row_runs(const char *name, void (*kernel)(MP_PARAM(Args)), const Device &device,
                     int64_t rows, int64_t columns, int blocks_per_sm, const Args &args,
                     mp_stream_t stream) {
  const int64_t runs = rows * ceil_div<int64_t>(columns, kVec);
  if (runs == 0) return;
  const int64_t warps =
      min_of<int64_t>(ceil_div<int64_t>(runs, kWarpSize), kRowRunThreads / kWarpSize);
  launch(name, kernel, device,
         {.num_blocks = min_of(ceil_div<int64_t>(runs, kRowRunThreads),
                               int64_t{device.num_sms} * blocks_per_sm),
          .num_threads = static_cast<int>(warps) * kWarpSize,
          .uses_pdl = true},
         stream, args);
}
constexpr int kBlocksOfStep = 2, kBlocksOfAllRows = 8, kBlocksOfFullSm = 16;  // blocks per SM

// ---------------------------------------------------------------------------- conversion

/// dst[i] = src[i], rounded to the type of dst, to nearest, ties to even.
void cast(const Device &, const void *src, mp_dtype_t, void *dst, mp_dtype_t, int64_t count,
          mp_stream_t);

}  // namespace mp::MP_TARGET
