// Statistics of a tensor list in one pass: found_inf, amax and L2 norm, of the list and per tensor.
// A separate kernel instance also computes reports (report.h), so that other passes are not slower.
//
// Each chunk yields the maximum of |x|, compared as bits so that NaN orders above infinity and is
// kept, and a sum of squares (fp32 in a fixed tree; norm.h).  The last block reduces them in a
// fixed order (fp64), so the result does not depend on the launch geometry.
#include "kernels/tensors/lists.h"
#include "kernels/tensors/norm.h"
#include "kernels/tensors/report.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

struct StatisticsArgs {
  TensorList list;
  ReduceScratch scratch;
  StatisticsOutputs out;
  bool has_norms;  ///< true if an output needs sums of squares
};

/// Statistics of one thread in a chunk.
template <bool kReports>
struct TensorStats {
  uint32_t amax_bits = 0;
  float sum_squares = 0.0f;
  Tally tally;

  /// Adds vector `run` of a chunk that begins at element `begin`.
  template <class Runs>
  MP_DEVICE void add(const float (&x)[kVec], const Runs &runs, int run, int64_t begin) {
    uint32_t smallest = ~0u, largest = 0;
    MP_UNROLL
    for (int i = 0; i < kVec; i++) {
      smallest = min_of(smallest, magnitude_bits(x[i]));
      largest = max_of(largest, magnitude_bits(x[i]));
      sum_squares = fmaf(x[i], x[i], sum_squares);
    }
    amax_bits = max_of(amax_bits, largest);
    if constexpr (kReports) {
      if (Tally::has_nothing_to_count(smallest, largest)) return;
      MP_UNROLL
      for (int i = 0; i < kVec; i++)
        if (runs.has(run, i)) tally.add(x[i], static_cast<uint32_t>(runs.at(run, i) - begin));
    }
  }
};

/// Repeats this thread's sum of squares of a chunk in the same order, with scaled elements.
MP_DEVICE float scaled_squares(const TensorList &list, const ChunkRange &range, float factor) {
  const mp_dtype_t dtype = dtype_of(list, range.tensor);
  const void *const data = data_of<const void>(list, range.tensor);
  float sum = 0.0f;
  for_each_vector<kThreads, 1>(range.begin, range.count, is_aligned_16(data), [&](auto runs) {
    float x[1][kVec];
    load_vectors(x, runs, dtype, data);
    unroll<kVec>([&](int i) { sum = fmaf(x[0][i] * factor, x[0][i] * factor, sum); });
  });
  return sum;
}

template <bool kReports>
MP_DEVICE void measure_chunk(const StatisticsArgs &args, int64_t number) {
  const ChunkRange range = chunk_range(args.list, number);
  TensorStats<kReports> stats;
  with_type(dtype_of(args.list, range.tensor), [&]<class T>(std::type_identity<T>) {
    const T *const data = data_of<const T>(args.list, range.tensor);
    constexpr int kRuns = kVectorsInFlight<T>;
    for_each_vector<kThreads, kRuns>(range.begin, range.count, is_aligned_16(data), [&](auto runs) {
      float x[runs.kRuns][kVec];
      runs.load(x, data);
      unroll<runs.kRuns>([&](int run) { stats.add(x[run], runs, run, range.begin); });
    });
  });
  if constexpr (kReports) store_tally<kThreads>(args.scratch, number, stats.tally);
  const uint32_t amax_bits = block_reduce<kThreads, Max>(stats.amax_bits);
  const float factor = args.has_norms ? square_factor(amax_bits) : 1.0f;
  if (factor != 1.0f) stats.sum_squares = scaled_squares(args.list, range, factor);
  const float sum_squares = block_reduce<kThreads, Sum>(stats.sum_squares);
  if (thread_index() != 0) return;
  args.scratch.amax_bits[number] = amax_bits;
  args.scratch.sum_squares[number] = restored_squares(sum_squares, factor);
}

/// Reduces the chunks of every tensor, one warp per tensor.
MP_DEVICE void reduce_tensors(const StatisticsArgs &args) {
  const StatisticsOutputs &out = args.out;
  float *const unscaled_norms = out.clip.tensor_norms;
  if (out.amax_per_tensor == nullptr && out.norm_per_tensor == nullptr &&
      out.wide_norms == nullptr && unscaled_norms == nullptr)
    return;
  for (uint32_t t = warp_index(); t < args.list.count; t += kWarps) {
    uint32_t amax_bits = 0;
    double sum_squares = 0.0;
    const int64_t end = args.list.first_chunk[t + 1];
    for (int64_t c = args.list.first_chunk[t] + lane_index(); c < end; c += kWarpSize) {
      amax_bits = max_of(amax_bits, args.scratch.amax_bits[c]);
      sum_squares += args.scratch.sum_squares[c];
    }
    amax_bits = warp_reduce<Max>(amax_bits);
    sum_squares = warp_reduce<Sum>(sum_squares);
    if (lane_index() != 0) continue;
    if (out.amax_per_tensor != nullptr) out.amax_per_tensor[t] = float_from_bits(amax_bits);
    const double norm = sqrt(sum_squares);
    if (out.norm_per_tensor != nullptr) out.norm_per_tensor[t] = static_cast<float>(norm);
    if (out.wide_norms != nullptr) out.wide_norms[t] = norm;
    if (unscaled_norms != nullptr) unscaled_norms[t] = unscaled_norm(inv_scale_of(out.clip), norm);
  }
}

MP_DEVICE void reduce_list(const StatisticsArgs &args) {
  const StatisticsOutputs &out = args.out;
  uint32_t amax_bits = 0;
  double sum_squares = 0.0;
  for (int64_t c = thread_index(); c < args.list.num_chunks; c += kThreads) {
    amax_bits = max_of(amax_bits, args.scratch.amax_bits[c]);
    sum_squares += args.scratch.sum_squares[c];
  }
  amax_bits = block_reduce<kThreads, Max>(amax_bits);
  sum_squares = block_reduce<kThreads, Sum>(sum_squares);
  if (thread_index() != 0) return;
  if (out.found_inf != nullptr && amax_bits >= kInfinityBits) raise_flag(out.found_inf);
  if (out.amax != nullptr) *out.amax = float_from_bits(amax_bits);
  const double norm = sqrt(sum_squares);
  if (out.norm != nullptr) *out.norm = static_cast<float>(norm);
  if (out.sum_squares != nullptr) *out.sum_squares = sum_squares;
  if (out.clip.grad_scale != nullptr) apply_clip(out.clip, norm);
}

template <bool kReports>
MP_KERNEL(kThreads, 4)
measure_list(MP_PARAM(StatisticsArgs) args) {
  for (int64_t c = block_index(); c < args.list.num_chunks; c += grid_size())
    measure_chunk<kReports>(args, c);
  if (!arrive_last(args.scratch.blocks_done)) return;
  reduce_tensors(args);
  reduce_list(args);
  if constexpr (kReports)
    if (args.out.report != nullptr) report_list<kThreads>(args.list, args.scratch, args.out.report);
}

/// Writes the report of each tensor, after measure_list.  The last block alone, with 8 warps, would
/// delay lists of thousands of tensors.
MP_KERNEL(kThreads, 4)
report_tensors(MP_PARAM(StatisticsArgs) args) {
  const int64_t t = block_index() * kWarps + warp_index();
  if (t >= args.list.count) return;
  const mp_tensor_report_t report =
      report_tensor(args.list, args.scratch, static_cast<uint32_t>(t));
  if (lane_index() == 0) args.out.tensor_reports[t] = report;
}

}  // namespace

void statistics(const Device &device, const TensorList &list, const ReduceScratch &scratch,
                const StatisticsOutputs &out, mp_stream_t stream) {
  const bool has_norms = out.norm != nullptr || out.sum_squares != nullptr ||
                         out.norm_per_tensor != nullptr || out.wide_norms != nullptr ||
                         out.clip.tensor_norms != nullptr || out.clip.grad_scale != nullptr;
  const StatisticsArgs args{list, scratch, out, has_norms};
  const bool reports = out.report != nullptr || out.tensor_reports != nullptr;
  launch("measure_list", reports ? measure_list<true> : measure_list<false>, device,
         {blocks_for(device, list.num_chunks), kThreads}, stream, args);
  if (out.tensor_reports != nullptr && list.count > 0)
    launch("report_tensors", report_tensors, device,
           {ceil_div<int64_t>(list.count, kWarps), kThreads}, stream, args);
}

}  // namespace mp::MP_TARGET
