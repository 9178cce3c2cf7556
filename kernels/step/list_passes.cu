// Passes over lists that are separate calls: gradient accumulation, model copies, loss of the
// regularizers.
#include "kernels/simt/reduce.h"
#include "kernels/step/loss_scale.h"
#include "kernels/step/model_copy.h"
#include "kernels/step/step_args.h"
#include "kernels/step/step_tensors.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

// ---------------------------------------------------------------------------- accumulation

// Accumulates in fp32, out = [out +] weight * in / S: mp_unscale, mp_grads_accumulate,
// mp_grads_to_fp32.  Non-finite inputs stay in the sums as infinity or NaN, so a window with an
// overflow is detected even if the flag has been cleared since.

/// Bits of the largest |x| so far; NaN orders above infinity.
struct Largest {
  uint32_t grad = 0, sum = 0;
};

MP_DEVICE uint32_t largest_bits(uint32_t bits, const float (&x)[kVec]) {
  unroll<kVec>([&](int i) { bits = max_of(bits, magnitude_bits(x[i])); });
  return bits;
}

/// kFirst: sum = factor * x, else sum += factor * x with one rounding.
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
    unroll<runs.kRuns>([&](int run) {
      largest.grad = largest_bits(largest.grad, x[run]);
      if constexpr (kFirst)
        unroll<kVec>([&](int i) { sum[run][i] = factor * x[run][i]; });
      else
        multiply_add8(sum[run], factor, x[run]);
      largest.sum = largest_bits(largest.sum, sum[run]);
    });
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

// ---------------------------------------------------------------------------- model copies

// mp_masters_to_model: the 16-bit copy of an optimizer step as a separate call.

namespace {

/// Returns the number of this thread's copies that overflowed.
template <bool kPlain>
MP_DEVICE int copy_chunk(const ModelCopyArgs &args, int64_t number, int64_t t) {
  const ChunkRange range = chunk_range(args.master, number);
  const CopyTarget place{data_of(args.model, range.tensor), dtype_of(args.model, range.tensor),
                         range.tensor, t};
  if (place.model == nullptr) return 0;
  const float *const master = data_of<const float>(args.master, range.tensor);
  const bool is_aligned = is_aligned_16(master) && is_aligned_16(place.model);
  int overflows = 0;
  constexpr int kRuns = kVectorsInFlight<float>;
  for_each_vector<kThreads, kRuns>(range.begin, range.count, is_aligned, [&](auto runs) {
    float w[runs.kRuns][kVec];
    runs.load(w, master);
    overflows += store_copy<kPlain>(args.policy, place, runs, w);
  });
  return overflows;
}

template <bool kPlain>
MP_KERNEL(kThreads, 4)
copy_list(MP_PARAM(ModelCopyArgs) args) {
  if (args.found_inf != nullptr && *args.found_inf != 0.0f) return;
  const int64_t t = args.t != nullptr ? *args.t : 0;
  int64_t overflows = 0;
  for (int64_t c = block_index(); c < args.master.num_chunks; c += grid_size())
    overflows += copy_chunk<kPlain>(args, c, t);
  if constexpr (!kPlain) add_overflows(args.overflows, overflows);
}

}  // namespace

void model_copy(const Device &device, const ModelCopyArgs &args, mp_stream_t stream) {
  const auto kernel = is_plain(args.policy, args.overflows) ? copy_list<true> : copy_list<false>;
  launch("model_copy", kernel, device, {blocks_for(device, args.master.num_chunks), kThreads},
         stream, args);
}

// ------------------------------------------------------------------------ loss of the regularizers

// The sums of |w| and w^2 of a chunk are computed in fp32 and multiplied by the tensor's
// coefficients in fp64.  The last block adds the chunks in fp64, in a fixed order.

namespace {

struct RegularizationArgs {
  OptimizerArgs optimizer;
  ReduceScratch scratch;
  float *loss;
};

MP_DEVICE void measure_chunk(const RegularizationArgs &args, int64_t number) {
  const OptimizerArgs &o = args.optimizer;
  const ChunkRange range = chunk_range(o.master, number);
  const float *const master = data_of<const float>(o.master, range.tensor);
  float sum = 0.0f, squares = 0.0f;
  constexpr int kRuns = kVectorsInFlight<float>;
  for_each_vector<kThreads, kRuns>(range.begin, range.count, is_aligned_16(master), [&](auto runs) {
    float w[runs.kRuns][kVec];
    runs.load(w, master);
    unroll<runs.kRuns, kVec>([&](int run, int i) {
      sum += fabsf(w[run][i]);
      squares = fmaf(w[run][i], w[run][i], squares);
    });
  });
  sum = block_reduce<kThreads, Sum>(sum);
  squares = block_reduce<kThreads, Sum>(squares);
  if (thread_index() != 0) return;
  const mp_param_group_t hyper = tensor_hyper(o, range.tensor);
  // A coefficient of 0 excludes a tensor, whatever its weights.
  double loss = 0.0;
  if (hyper.l1 != 0.0f) loss += static_cast<double>(hyper.l1) * static_cast<double>(sum);
  if (hyper.l2 != 0.0f) loss += static_cast<double>(hyper.l2) * static_cast<double>(squares);
  args.scratch.sum_squares[number] = loss;
}

MP_KERNEL(kThreads, 4)
measure_master(MP_PARAM(RegularizationArgs) args) {
  const int64_t num_chunks = args.optimizer.master.num_chunks;
  for (int64_t c = block_index(); c < num_chunks; c += grid_size()) measure_chunk(args, c);
  if (!arrive_last(args.scratch.blocks_done)) return;
  double loss = 0.0;
  for (int64_t c = thread_index(); c < num_chunks; c += kThreads)
    loss += args.scratch.sum_squares[c];
  loss = block_reduce<kThreads, Sum>(loss);
  if (thread_index() == 0) *args.loss = static_cast<float>(loss);
}

}  // namespace

void regularization(const Device &device, const OptimizerArgs &optimizer,
                    const ReduceScratch &scratch, float *loss, mp_stream_t stream) {
  const RegularizationArgs args{optimizer, scratch, loss};
  launch("regularization", measure_master, device,
         {blocks_for(device, optimizer.master.num_chunks), kThreads}, stream, args);
}

}  // namespace mp::MP_TARGET
