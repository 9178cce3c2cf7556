// out = [out +] weight * in / S over lists, in fp32: mp_unscale, mp_grads_accumulate,
// mp_grads_to_fp32.
//
// What was not finite stays in the sums as an infinity or a NaN, so that a window with an overflow
// is spoilt even if the flag has been cleared since.
#include "kernels/simt/block_reduce.h"
#include "kernels/step/args.h"
#include "kernels/step/outcome.h"
#include "kernels/tensors/chunks.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

/// Bits of the largest |x| so far, on which NaN sorts above infinity.
struct Largest {
  uint32_t grad = 0, sum = 0;
};

MP_DEVICE uint32_t largest_bits(uint32_t bits, const float (&x)[kVec]) {
  MP_UNROLL
  for (int i = 0; i < kVec; i++) bits = max_of(bits, magnitude_bits(x[i]));
  return bits;
}

/// out += factor * in, one rounding each; or, the first time, out = factor * in.
template <bool kFirst>
MP_DEVICE Largest accumulate_chunk(const AccumulateArgs &args, float factor, int64_t number,
                                   Largest largest) {
  const ChunkRange range = chunk_range(args.in, number);
  const uint32_t t = range.tensor;
  for_each_run<kThreads>(range, [&](int64_t at, int valid) {
    float x[kVec], sum[kVec];
    load_run(x, dtype_of(args.in, t), args.in.data[t], at, valid);
    if constexpr (!kFirst) load_run(sum, dtype_of(args.out, t), args.out.data[t], at, valid);
    largest.grad = largest_bits(largest.grad, x);
    if constexpr (kFirst) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) sum[i] = factor * x[i];
    } else {
      multiply_add8(sum, factor, x);
    }
    largest.sum = largest_bits(largest.sum, sum);
    store_run(dtype_of(args.out, t), args.out.data[t], at, sum, valid);
  });
  return largest;
}

/// The flag, and the amax for the scaler's next update.
MP_DEVICE void note(const AccumulateArgs &args, const Largest &block) {
  const bool bad_sum = args.last && block.sum >= kInfinityBits;
  if (block.grad >= kInfinityBits || bad_sum) raise_flag(args.found_inf);
  if (args.scaler == nullptr) return;
  atomic_max(reinterpret_cast<uint32_t *>(&args.scaler->amax), block.grad);
}

template <bool kFirst>
MP_KERNEL(kThreads, 1)
accumulate_list(MP_PARAM(AccumulateArgs) args) {
  const float factor = args.weight * *args.inv_scale;
  Largest largest;
  for (int64_t c = block_index(); c < args.in.num_chunks; c += grid_size())
    largest = accumulate_chunk<kFirst>(args, factor, c, largest);
  largest.grad = block_reduce<kThreads, Max>(largest.grad);
  largest.sum = block_reduce<kThreads, Max>(largest.sum);
  if (thread_index() == 0) note(args, largest);
  if (!args.last || !arrive_last(args.ticket)) return;
  if (thread_index() == 0) publish_outcome(*args.scaler, *args.found_inf != 0.0f);
}

}  // namespace

void accumulate(const Device &device, const AccumulateArgs &args, mp_stream_t stream) {
  const LaunchShape shape{blocks_for(device, args.in.num_chunks), kThreads};
  launch("accumulate", args.first ? accumulate_list<true> : accumulate_list<false>, device, shape,
         stream, args);
}

}  // namespace mp::MP_TARGET
