// The first pass of the rules that look at the norms of a tensor: LAMB, LARC, LARS and NovoGrad.
//
// It computes what the update will compute from the same numbers, and keeps only sums of squares:
// one pair per chunk (fp32 in a fixed tree), added up per tensor in a fixed order (fp64) by the last
// block.  So the result does not depend on the launch geometry, and nothing is written but the
// ratios and NovoGrad's second moments, one number per tensor.
#include "kernels/simt/block_reduce.h"
#include "kernels/step/step_tensors.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

/// The number whose norm the ratio compares with that of the weights.
template <mp_optimizer_kind_t kind>
MP_DEVICE float measured(const RuleParams &params, Elements &e, int i) {
  if constexpr (kind == MP_OPT_LAMB)
    return adam_direction(params, e.g[i], e.w[i], e.m[i], e.v[i]);
  else
    return e.g[i];
}

template <mp_optimizer_kind_t kind>
MP_DEVICE void measure_chunk(const StepArgs &args, int64_t number) {
  MP_SHARED(RuleParams, params, [1]);
  const ChunkRange range = chunk_range(args.optimizer.grads, number);
  block_sync();  // the previous chunk may still be reading params
  if (thread_index() == 0) params[0] = tensor_params(kind, args, range.tensor);
  block_sync();
  const Tensors tensors = tensors_of(args.optimizer, range.tensor);
  float w_squares = 0.0f, u_squares = 0.0f;
  for_each_run<kThreads>(range, [&](int64_t at, int valid) {
    Elements e;
    load_elements<kind>(e, tensors, params[0], at, valid);
    MP_UNROLL
    for (int i = 0; i < kVec; i++) {
      if (i >= valid) continue;  // with eps = 0 the direction of nothing is 0 / 0
      const float u = measured<kind>(params[0], e, i);
      w_squares = fmaf(e.w[i], e.w[i], w_squares);
      u_squares = fmaf(u, u, u_squares);
    }
  });
  w_squares = block_reduce<kThreads, Sum>(w_squares);
  u_squares = block_reduce<kThreads, Sum>(u_squares);
  if (thread_index() != 0) return;
  args.optimizer.ratios.w_squares[number] = w_squares;
  args.optimizer.ratios.u_squares[number] = u_squares;
}

template <mp_optimizer_kind_t kind>
MP_DEVICE float ratio_of(const StepArgs &args, uint32_t tensor, double w_squares,
                         double u_squares) {
  const RuleParams params = tensor_params(kind, args, tensor);
  const float w_norm = static_cast<float>(sqrt(w_squares));
  const float u_norm = static_cast<float>(sqrt(u_squares));
  if constexpr (kind == MP_OPT_LAMB) return lamb_ratio(params, w_norm, u_norm);
  if constexpr (kind == MP_OPT_SGD) return larc_ratio(params, w_norm, u_norm);
  return novograd_ratio(params, u_squares, *static_cast<float *>(args.optimizer.v.data[tensor]));
}

/// A warp per tensor.
template <mp_optimizer_kind_t kind>
MP_DEVICE void reduce_tensors(const StepArgs &args) {
  const TensorList &list = args.optimizer.grads;
  const RatioScratch &ratios = args.optimizer.ratios;
  for (uint32_t t = warp_index(); t < list.count; t += kWarps) {
    double w_squares = 0.0, u_squares = 0.0;
    for (int64_t c = list.first_chunk[t] + lane_index(); c < list.first_chunk[t + 1];
         c += kWarpSize) {
      w_squares += ratios.w_squares[c];
      u_squares += ratios.u_squares[c];
    }
    w_squares = warp_reduce<Sum>(w_squares);
    u_squares = warp_reduce<Sum>(u_squares);
    if (lane_index() == 0) ratios.ratio[t] = ratio_of<kind>(args, t, w_squares, u_squares);
  }
}

template <mp_optimizer_kind_t kind>
MP_KERNEL(kThreads, 2)
measure_tensors(MP_PARAM(StepArgs) args) {
  if (is_skipped(args)) return;
  const OptimizerArgs &o = args.optimizer;
  for (int64_t c = block_index(); c < o.grads.num_chunks; c += grid_size())
    measure_chunk<kind>(args, c);
  if (arrive_last(o.ticket)) reduce_tensors<kind>(args);
}

}  // namespace

void tensor_ratios(const Device &device, const StepArgs &args, mp_stream_t stream) {
  const LaunchShape shape{blocks_for(device, args.optimizer.grads.num_chunks), kThreads};
  switch (args.optimizer.kind) {
    case MP_OPT_LAMB:
      return launch("lamb_ratios", measure_tensors<MP_OPT_LAMB>, device, shape, stream, args);
    case MP_OPT_NOVOGRAD:
      return launch("novograd_ratios", measure_tensors<MP_OPT_NOVOGRAD>, device, shape, stream,
                    args);
    default:
      return launch("larc_ratios", measure_tensors<MP_OPT_SGD>, device, shape, stream, args);
  }
}

}  // namespace mp::MP_TARGET
