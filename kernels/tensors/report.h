// Counts of pass 1 for tensor reports (mp_tensor_report_t).
//
// Each chunk stores its counts and its first non-finite element.  The last block combines them for
// the list, and a second launch for each tensor.  Integer sums and minima do not depend on the
// order or the launch geometry.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

constexpr int64_t kNoPosition = std::numeric_limits<int64_t>::max();

// ---------------------------------------------------------------------------- one chunk

/// Counts of one thread in a chunk.
struct Tally {
  /// 8 bits each: NaN, infinity, zero, subnormal.
  uint32_t counts = 0;
  uint32_t first_bad = kChunkElems;  ///< first non-finite element; kChunkElems: none

  /// Returns whether all magnitudes between these bounds are finite and normal in FP16.
  static MP_DEVICE bool has_nothing_to_count(uint32_t smallest_bits, uint32_t largest_bits) {
    return smallest_bits >= kSmallestNormalHalf && largest_bits < kInfinityBits;
  }

  /// Contains no branches, because lanes with different kinds of elements would diverge.
  MP_DEVICE void add(float x, uint32_t element) {
    const uint32_t bits = magnitude_bits(x);
    const uint32_t small = bits == 0 ? 1u << 16 : 1u << 24;
    const uint32_t large = bits > kInfinityBits ? 1u : 1u << 8;
    counts += bits < kSmallestNormalHalf ? small : bits >= kInfinityBits ? large : 0u;
    first_bad = bits >= kInfinityBits ? min_of(first_bad, element) : first_bad;
  }

 private:
  static constexpr uint32_t kSmallestNormalHalf = 0x38800000;  // 2^-14
};

/// Widens the counts of a Tally to 16 bits each.
MP_DEVICE uint64_t widened(uint32_t counts) {
  uint64_t wide = 0;
  MP_UNROLL
  for (int i = 0; i < 4; i++) wide |= static_cast<uint64_t>(counts >> (8 * i) & 0xff) << (16 * i);
  return wide;
}

/// Stores the counts of a chunk.  Called by all threads of a block.
template <int kThreads>
MP_DEVICE void store_tally(const ReduceScratch &scratch, int64_t chunk, const Tally &tally) {
  static_assert(kChunkElems / kThreads < 1 << 8 && kChunkElems < 1 << 16);
  const uint64_t counts = block_reduce<kThreads, Sum>(widened(tally.counts));
  const uint32_t first_bad = block_reduce<kThreads, Min>(tally.first_bad);
  if (thread_index() != 0) return;
  scratch.report_counts[chunk] = counts;
  scratch.first_bad[chunk] = first_bad;
}

// ---------------------------------------------------------------------------- several chunks

/// Totals over several chunks.
struct Totals {
  int64_t nan = 0, infinite = 0, zero = 0, subnormal = 0;
  int64_t first_bad = kNoPosition;  ///< chunk * kChunkElems + element of the chunk
  uint32_t amax_bits = 0;

  MP_DEVICE void add(const ReduceScratch &scratch, int64_t chunk) {
    const uint64_t counts = scratch.report_counts[chunk];
    nan += counts & 0xffff;
    infinite += counts >> 16 & 0xffff;
    zero += counts >> 32 & 0xffff;
    subnormal += counts >> 48;
    const int64_t element = scratch.first_bad[chunk];
    if (element < kChunkElems) first_bad = min_of(first_bad, chunk * kChunkElems + element);
    amax_bits = max_of(amax_bits, scratch.amax_bits[chunk]);
  }

  /// Combines the lanes of a warp or the threads of a block; `reduce` combines one field.
  template <class Reduce>
  MP_DEVICE void combine(Reduce reduce) {
    nan = reduce(nan, Sum{});
    infinite = reduce(infinite, Sum{});
    zero = reduce(zero, Sum{});
    subnormal = reduce(subnormal, Sum{});
    first_bad = reduce(first_bad, Min{});
    amax_bits = reduce(amax_bits, Max{});
  }
};

/// Returns the report for `totals`.
MP_DEVICE mp_tensor_report_t report_of(const TensorList &list, int64_t numel,
                                       const Totals &totals) {
  mp_tensor_report_t report{numel,
                            totals.nan,
                            totals.infinite,
                            totals.zero,
                            totals.subnormal,
                            -1,
                            -1,
                            0.0f,
                            float_from_bits(totals.amax_bits)};
  if (totals.first_bad == kNoPosition) return report;
  const Chunk chunk = list.chunks[totals.first_bad / kChunkElems];
  report.bad_tensor = chunk.tensor;
  report.bad_element = chunk.index * kChunkElems + totals.first_bad % kChunkElems;
  float value[1];
  load_vector(value, dtype_of(list, chunk.tensor), data_of(list, chunk.tensor), report.bad_element,
              1);
  report.bad_value = value[0];
  return report;
}

/// Returns the report of tensor `t`.  Called by all lanes of a warp.
MP_DEVICE mp_tensor_report_t report_tensor(const TensorList &list, const ReduceScratch &scratch,
                                           uint32_t t) {
  Totals totals;
  for (int64_t c = list.first_chunk[t] + lane_index(); c < list.first_chunk[t + 1]; c += kWarpSize)
    totals.add(scratch, c);
  totals.combine([](auto value, auto op) { return warp_reduce<decltype(op)>(value); });
  return report_of(list, list.numel[t], totals);
}

template <int kThreads>
MP_DEVICE void report_list(const TensorList &list, const ReduceScratch &scratch,
                           mp_tensor_report_t *report) {
  int64_t numel = 0;
  Totals totals;
  for (uint32_t t = thread_index(); t < list.count; t += kThreads) numel += list.numel[t];
  for (int64_t c = thread_index(); c < list.num_chunks; c += kThreads) totals.add(scratch, c);
  numel = block_reduce<kThreads, Sum>(numel);
  totals.combine([](auto value, auto op) { return block_reduce<kThreads, decltype(op)>(value); });
  if (thread_index() == 0) *report = report_of(list, numel, totals);
}

}  // namespace mp::MP_TARGET
