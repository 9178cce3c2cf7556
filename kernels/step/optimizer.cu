// Optimizer step: one pass over master weights, state and gradients that writes master weights,
// state and the 16-bit copy.  Rules with tensor norms have a pass before it (tensor_ratios.cu).
//
// The outcome is computed on the device; a skipped step changes neither tensors nor t.  Chunks are
// processed from last to first: pass 1 of mp_scale_step has just read the gradients in forward
// order, and the last of them are still in L2.
//
// Source: Micikevicius et al. 2018, section 3.1.
#include "kernels/simt/reduce.h"
#include "kernels/step/loss_scale.h"
#include "kernels/step/step_args.h"
#include "kernels/step/step_tensors.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

/// Returns 0 if all new values are finite, else NaN.  Three sums hide the latency.
template <mp_optimizer_kind_t kind>
MP_DEVICE float finite_probe(const Elements &e) {
  float w = 0.0f, m = 0.0f, v = 0.0f;
  MP_UNROLL
  for (int i = 0; i < kVec; i++) {
    w = fmaf(e.w[0][i], 0.0f, w);
    m = fmaf(e.m[0][i], 0.0f, m);
    if constexpr (Rule<kind>::kHasV) v = fmaf(e.v[0][i], 0.0f, v);
  }
  return w + m + v;
}

/// Restores the old values, still in memory, of elements with a non-finite new value.  An unchanged
/// m was not computed (without momentum it is unused) and is ignored.
/// @return number of restored elements
template <mp_optimizer_kind_t kind>
MP_DEVICE int reject_elements(Elements &e, const Tensors &tensors, const AnyVector &run) {
  Elements old;
  run.visit([&](auto runs) {
    runs.load(old.w, tensors.master);
    if (tensors.m != nullptr) runs.load(old.m, tensors.m);
    if constexpr (Rule<kind>::kHasV) runs.load(old.v, tensors.v);
  });
  int rejected = 0;
  MP_UNROLL
  for (int i = 0; i < kVec; i++) {
    float &w = e.w[0][i], &m = e.m[0][i], &v = e.v[0][i];
    const bool bad_m = !std::isfinite(m) && bits_of(m) != bits_of(old.m[0][i]);
    if (std::isfinite(w) && !bad_m && std::isfinite(v)) continue;
    w = old.w[0][i], m = old.m[0][i], v = old.v[0][i];
    rejected += run.has(i);
  }
  return rejected;
}

/// Returns the number of copies that overflowed.
template <mp_optimizer_kind_t kind, bool kPlainCopy>
MP_DEVICE int update_run(const Tensors &tensors, const RuleParams &params, const UpdateArgs &update,
                         const CopyPolicy &policy, const CopyTarget &place, const AnyVector &run) {
  Elements e;
  load_elements<kind>(e, tensors, params, run);
  MP_UNROLL
  for (int i = 0; i < kVec; i++)
    Rule<kind>::update(params, e.g[0][i], e.w[0][i], e.m[0][i], e.v[0][i]);
  if (finite_probe<kind>(e) != 0.0f) {
    const int rejected = reject_elements<kind>(e, tensors, run);
    if (rejected > 0 && update.rejected_updates != nullptr)
      atomic_add(update.rejected_updates, rejected);
  }
  int overflows = 0;
  run.visit([&](auto runs) {
    runs.store(tensors.master, e.w);
    if (tensors.m != nullptr) runs.store(tensors.m, e.m);
    if constexpr (Rule<kind>::kHasV) runs.store(tensors.v, e.v);
    if (place.model != nullptr) overflows = store_copy<kPlainCopy>(policy, place, runs, e.w);
  });
  return overflows;
}

/// Returns the number of this thread's copies that overflowed.
template <mp_optimizer_kind_t kind, bool kPlainCopy>
MP_DEVICE int update_chunk(const StepArgs &args, int64_t number, int64_t t) {
  MP_SHARED(RuleParams, params, [1]);
  const OptimizerArgs &o = args.optimizer;
  const ChunkRange range = chunk_range(o.grads, number);
  block_sync();  // the previous chunk may still be reading params
  if (thread_index() == 0) {
    params[0] = tensor_params<kind>(args, range.tensor);
    if (has_ratios(o.kind, o.flags)) params[0].ratio = o.ratios.ratio[range.tensor];
  }
  block_sync();
  const Tensors tensors = tensors_of(o, range.tensor);
  const CopyTarget place = copy_place_of(o, range.tensor, t);
  const bool is_aligned = tensors.are_aligned() && is_aligned_16(place.model);
  int overflows = 0;
  for_each_single_vector<kThreads>(range.begin, range.count, is_aligned, [&](const AnyVector &run) {
    overflows += update_run<kind, kPlainCopy>(tensors, params[0], args.update, o.copy, place, run);
  });
  return overflows;
}

/// Finishes a step after all weights have been updated: learning rates, factors of the next step,
/// step counter, scaler, flags.
template <mp_optimizer_kind_t kind>
MP_DEVICE void finish_step(const StepArgs &args, mp_step_outcome_t outcome) {
  const bool skip = outcome != MP_STEP_OUTCOME_TAKEN;
  const OptimizerArgs &o = args.optimizer;
  const UpdateArgs &u = args.update;
  if (!skip) {
    const int64_t t = *o.t + 1;
    for (uint32_t i = thread_index(); i < o.num_groups; i += kThreads) {
      ParamGroup &group = o.groups[i];
      o.lr[i] = factors_of<kind>(o, group, t).lr;
      group.factors = step_factors<kind>(o.flags, group.hyper, t + 1);
    }
  }
  block_sync();  // all threads have read t
  if (thread_index() != 0) return;
  if (!skip) (*o.t)++;
  if (u.skipped != nullptr) *u.skipped = skip ? 1.0f : 0.0f;
  if (u.outcome != nullptr) *u.outcome = static_cast<int32_t>(outcome);
  if (u.scaler == nullptr) return;
  note_amax(*u.scaler, u.scaler_amax);
  if (!u.keep_scaler) {
    update_scaler(*u.scaler, outcome);
  } else if (outcome == MP_STEP_OUTCOME_OUT_OF_RANGE) {
    u.scaler->out_of_range = 1;
  }
}

/// Blocks per SM: rules with less state have fewer loads in flight per block.
template <mp_optimizer_kind_t kind, bool kPlainCopy>
[[maybe_unused]] constexpr int kMinBlocks = Rule<kind>::kHasV || !kPlainCopy ? 2 : 3;

template <mp_optimizer_kind_t kind, bool kPlainCopy>
MP_KERNEL(kThreads, (kMinBlocks<kind, kPlainCopy>))
update_list(MP_PARAM(StepArgs) args) {
  const OptimizerArgs &o = args.optimizer;
  const mp_step_outcome_t outcome = outcome_of(args);
  if (outcome == MP_STEP_OUTCOME_TAKEN) {
    const int64_t t = *o.t + 1;
    int64_t overflows = 0;
    for (int64_t c = o.grads.num_chunks - 1 - block_index(); c >= 0; c -= grid_size())
      overflows += update_chunk<kind, kPlainCopy>(args, c, t);
    if constexpr (!kPlainCopy) add_overflows(args.update.model_overflows, overflows);
  }
  if (arrive_last(o.blocks_done)) finish_step<kind>(args, outcome);
}

struct ScalerArgs {
  ScalerDevice *scaler;
  const float *amax;
};
MP_KERNEL(kWarpSize, 1)
update_scaler_alone(MP_PARAM(ScalerArgs) args) {
  if (thread_index() != 0) return;
  ScalerDevice &scaler = *args.scaler;
  note_amax(scaler, args.amax);
  update_scaler(scaler, noted_outcome(scaler));
}
MP_KERNEL(kWarpSize, 1)
clip_alone(MP_PARAM(ClipArgs) args) {
  if (thread_index() == 0) apply_clip(args, static_cast<double>(*args.scaled_norm));
}

}  // namespace

void optimizer_step(const Device &device, const OptimizerArgs &optimizer, const UpdateArgs &update,
                    mp_stream_t stream) {
  const StepArgs args{optimizer, update};
  if (has_ratios(optimizer.kind, optimizer.flags)) tensor_ratios(device, args, stream);
  const LaunchShape shape{blocks_for(device, optimizer.grads.num_chunks), kThreads};
  const bool plain = is_plain(optimizer.copy, update.model_overflows);
  with_kind(optimizer.kind, [&](auto kind) {
    constexpr mp_optimizer_kind_t rule = updated_as(kind);
    launch(Rule<kind>::kUpdateName, plain ? update_list<rule, true> : update_list<rule, false>,
           device, shape, stream, args);
  });
}

void scaler_update(const Device &device, ScalerDevice *scaler, const float *amax,
                   mp_stream_t stream) {
  launch("update_scaler", update_scaler_alone, device, {1, kWarpSize}, stream,
         ScalerArgs{scaler, amax});
}

void clip_factor(const Device &device, const ClipArgs &clip, mp_stream_t stream) {
  launch("clip_factor", clip_alone, device, {1, kWarpSize}, stream, clip);
}

}  // namespace mp::MP_TARGET
