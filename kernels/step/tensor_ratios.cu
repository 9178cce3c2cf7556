// First pass of the rules with tensor norms: LAMB, LARC, LARS and NovoGrad.
//
// It computes the same values as the update and stores only sums of squares: one pair per chunk
// (fp32 in a fixed tree; kernels/tensors/norm.h), added per tensor in a fixed order (fp64) by
// the last block.  The result therefore does not depend on the launch geometry.  Outputs are the
// ratios and NovoGrad's second moments, one number per tensor.
#include "kernels/simt/reduce.h"
#include "kernels/step/step_tensors.h"
#include "kernels/tensors/norm.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

/// True if the rule has this pass.  A separate variable: Clang 16 would not find kRatiosName in a
/// generic lambda.
template <mp_optimizer_kind_t kind>
constexpr bool kMeasures = requires {
  Rule<kind>::kRatiosName;
};

/// Sum of squares of one value per element of a chunk, and the bits of the largest.  Non-finite
/// values are skipped: their elements will keep their old values.
struct ScaledSquares {
  float factor;
  float sum = 0.0f;
  uint32_t amax_bits = 0;

  MP_DEVICE void add(float x) {
    if (!std::isfinite(x)) return;
    amax_bits = max_of(amax_bits, magnitude_bits(x));
    sum = fmaf(x * factor, x * factor, sum);
  }
};

template <mp_optimizer_kind_t kind>
MP_DEVICE void measure_chunk(const StepArgs &args, int64_t number) {
  MP_SHARED(RuleParams, params, [1]);
  const ChunkRange range = chunk_range(args.optimizer.grads, number);
  block_sync();  // the previous chunk may still be reading params
  if (thread_index() == 0) params[0] = tensor_params<kind>(args, range.tensor);
  block_sync();
  const Tensors tensors = tensors_of(args.optimizer, range.tensor);
  float w_factor = 1.0f, u_factor = 1.0f;
  for (;;) {
    ScaledSquares w{w_factor}, u{u_factor};
    for_each_single_vector<kThreads>(
        range.begin, range.count, tensors.are_aligned(), [&](const AnyVector &run) {
          Elements e;
          load_elements<kind>(e, tensors, params[0], run);
          unroll<kVec>([&](int i) {
            if (!run.has(i)) return;
            float &weight = e.w[0][i], &m = e.m[0][i], &v = e.v[0][i];
            const float measured = Rule<kind>::measured(params[0], e.g[0][i], weight, m, v);
            w.add(weight);
            u.add(measured);
          });
        });
    w_factor = square_factor(block_reduce<kThreads, Max>(w.amax_bits));
    u_factor = square_factor(block_reduce<kThreads, Max>(u.amax_bits));
    if (w_factor != w.factor || u_factor != u.factor) continue;
    w.sum = block_reduce<kThreads, Sum>(w.sum);
    u.sum = block_reduce<kThreads, Sum>(u.sum);
    if (thread_index() != 0) return;
    args.optimizer.ratios.w_squares[number] = restored_squares(w.sum, w_factor);
    args.optimizer.ratios.u_squares[number] = restored_squares(u.sum, u_factor);
    return;
  }
}

/// Computes the ratio of every tensor, one warp per tensor.
template <mp_optimizer_kind_t kind>
MP_DEVICE void reduce_tensors(const StepArgs &args) {
  const TensorList &list = args.optimizer.grads;
  const RatioScratch &ratios = args.optimizer.ratios;
  for (uint32_t t = warp_index(); t < list.count; t += kWarps) {
    TensorSquares squares{};
    for (int64_t c = list.first_chunk[t] + lane_index(); c < list.first_chunk[t + 1];
         c += kWarpSize) {
      squares.w += ratios.w_squares[c];
      squares.u += ratios.u_squares[c];
    }
    squares = {warp_reduce<Sum>(squares.w), warp_reduce<Sum>(squares.u)};
    if (lane_index() != 0) continue;
    float *const v = optional_data_of<float>(args.optimizer.v, t);
    ratios.ratio[t] = Rule<kind>::ratio(tensor_params<kind>(args, t), squares, v);
  }
}

template <mp_optimizer_kind_t kind>
MP_KERNEL(kThreads, 2)
measure_tensors(MP_PARAM(StepArgs) args) {
  if (outcome_of(args) != MP_STEP_OUTCOME_TAKEN) return;
  const OptimizerArgs &o = args.optimizer;
  for (int64_t c = block_index(); c < o.grads.num_chunks; c += grid_size())
    measure_chunk<kind>(args, c);
  if (arrive_last(o.blocks_done)) reduce_tensors<kind>(args);
}

}  // namespace

void tensor_ratios(const Device &device, const StepArgs &args, mp_stream_t stream) {
  const LaunchShape shape{blocks_for(device, args.optimizer.grads.num_chunks), kThreads};
  with_kind(args.optimizer.kind, [&](auto kind) {
    static_assert(kMeasures<kind> == has_ratios(kind, ~0u), "step_args.h and the rule differ");
    if constexpr (kMeasures<kind>)
      launch(Rule<kind>::kRatiosName, measure_tensors<kind>, device, shape, stream, args);
  });
}

}  // namespace mp::MP_TARGET
