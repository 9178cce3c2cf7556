// Gradient accumulation in fp32, out = [out +] weight * in / S over lists: mp_unscale,
// mp_grads_accumulate, mp_grads_to_fp32.
//
// Non-finite inputs stay in the sums as infinity or NaN, so a window with an overflow is detected
// even if the flag has been cleared since.
#include "kernels/simt/reduce.h"
#include "kernels/step/outcome.h"
#include "kernels/step/step_args.h"
#include "kernels/tensors/chunks.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

/// Bits of the largest |x| so far; NaN orders above infinity.
struct Largest {
  uint32_t grad = 0, sum = 0;
};

MP_DEVICE uint32_t largest_bits(uint32_t bits, const float (&x)[kVec]) {
  MP_UNROLL
  for (int i = 0; i < kVec; i++) bits = max_of(bits, magnitude_bits(x[i]));
  return bits;
}

/// sum += factor * x with one rounding, or sum = factor * x if kFirst.
template <bool kFirst>
MP_DEVICE void add_run(float (&sum)[kVec], float factor, const float (&x)[kVec]) {
  if constexpr (kFirst) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) sum[i] = factor * x[i];
  } else {
    multiply_add8(sum, factor, x);
  }
}

template <bool kFirst>
MP_DEVICE Largest accumulate_chunk(const AccumulateArgs &args, float factor, int64_t number,
                                   Largest largest) {
  const ChunkRange range = chunk_range(args.in, number);
  const mp_dtype_t in_dtype = dtype_of(args.in, range.tensor);
  const mp_dtype_t out_dtype = dtype_of(args.out, range.tensor);
  const void *const in = data_of(args.in, range.tensor);
  void *const out = data_of(args.out, range.tensor);
  const bool is_aligned = is_aligned_16(in) && is_aligned_16(out);
  constexpr int kRuns = 2;
  for_each_vector<kThreads, kRuns>(range.begin, range.count, is_aligned, [&](auto runs) {
    float x[runs.kRuns][kVec], sum[runs.kRuns][kVec];
    if constexpr (!kFirst) load_vectors(sum, runs, out_dtype, out);
    load_vectors(x, runs, in_dtype, in);
    MP_UNROLL
    for (int run = 0; run < runs.kRuns; run++) {
      largest.grad = largest_bits(largest.grad, x[run]);
      add_run<kFirst>(sum[run], factor, x[run]);
      largest.sum = largest_bits(largest.sum, sum[run]);
    }
    store_vectors(runs, out_dtype, out, sum);
  });
  return largest;
}

/// Updates the flag and the scaler's amax.  A product that overflows belongs to this micro-batch.
/// Sums are checked only at the end of the window: they may contain an earlier overflow, which has
/// already been flagged.
MP_DEVICE void note(const AccumulateArgs &args, float factor, const Largest &block) {
  const bool bad_product = !std::isfinite(factor * float_from_bits(block.grad));
  const bool bad_sum = args.last && block.sum >= kInfinityBits;
  if (bad_product || bad_sum) raise_flag(args.found_inf);
  if (args.scaler == nullptr) return;
  atomic_max(reinterpret_cast<uint32_t *>(&args.scaler->amax), block.grad);
}

template <bool kFirst>
MP_KERNEL(kThreads, 4)
accumulate_list(MP_PARAM(AccumulateArgs) args) {
  const float factor = args.weight * *args.inv_scale;
  Largest largest;
  for (int64_t c = block_index(); c < args.in.num_chunks; c += grid_size())
    largest = accumulate_chunk<kFirst>(args, factor, c, largest);
  largest.grad = block_reduce<kThreads, Max>(largest.grad);
  largest.sum = block_reduce<kThreads, Max>(largest.sum);
  if (thread_index() == 0) note(args, factor, largest);
  if (!args.last || !arrive_last(args.blocks_done)) return;
  if (thread_index() == 0) publish_outcome(*args.scaler, noted_outcome(*args.scaler));
}

}  // namespace

void accumulate(const Device &device, const AccumulateArgs &args, mp_stream_t stream) {
  const LaunchShape shape{blocks_for(device, args.in.num_chunks), kThreads};
  launch("accumulate", args.first ? accumulate_list<true> : accumulate_list<false>, device, shape,
         stream, args);
}

}  // namespace mp::MP_TARGET
