// The optimizer step: one pass over master, state and gradients that writes master, state and the
// 16-bit copy.  Micikevicius et al. 2018, section 3.1.
//
// found_inf is read here, on the device; a skipped step writes nothing, t included.  Chunks are
// taken from the last to the first: pass 1 of mp_scale_step has just read the gradients in
// forward order, and the last of them are still in L2.
#include "kernels/simt/reduce.h"
#include "kernels/step/clip.h"
#include "kernels/step/loss_scale.h"
#include "kernels/step/update_rules.h"
#include "kernels/target.h"
#include "kernels/tensors/chunks.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

struct StepArgs {
  OptimizerArgs optimizer;
  UpdateArgs update;
};

/// A 16-bit weight that overflows would make every later gradient non-finite.
MP_DEVICE float clamped(float w, mp_dtype_t dtype) {
  const float most = dtype == MP_FP16 ? kHalfMax : kBf16Max;
  return w > most ? most : w < -most ? -most : w;
}

/// What one run of 8 elements needs to find its data.
struct Tensors {
  const void *grad;
  mp_dtype_t grad_dtype;
  float *master;
  void *model;  ///< NULL: no 16-bit copy
  mp_dtype_t model_dtype;
  float *m, *v;  ///< NULL where the rule has none
};

MP_DEVICE Tensors tensors_of(const OptimizerArgs &o, uint32_t t) {
  const bool has_model = o.model.data != nullptr;
  return {o.grads.data[t],
          dtype_of(o.grads, t),
          static_cast<float *>(o.master.data[t]),
          has_model ? o.model.data[t] : nullptr,
          has_model ? dtype_of(o.model, t) : MP_FP16,
          o.m.data != nullptr ? static_cast<float *>(o.m.data[t]) : nullptr,
          o.v.data != nullptr ? static_cast<float *>(o.v.data[t]) : nullptr};
}

template <mp_optimizer_kind_t kind>
MP_DEVICE void update_run(const Tensors &tensors, const RuleParams &params, float grad_scale,
                          int64_t at, int valid) {
  float g[kVec], w[kVec], m[kVec] = {}, v[kVec] = {};
  load_run(g, tensors.grad_dtype, tensors.grad, at, valid);
  load_run(w, tensors.master + at, valid);
  if (tensors.m != nullptr) load_run(m, tensors.m + at, valid);
  if (kind == MP_OPT_ADAM) load_run(v, tensors.v + at, valid);
  MP_UNROLL
  for (int i = 0; i < kVec; i++) {
    if constexpr (kind == MP_OPT_SGD)
      update_sgd(params, g[i] * grad_scale, w[i], m[i]);
    else
      update_adam(params, g[i] * grad_scale, w[i], m[i], v[i]);
  }
  store_run(tensors.master + at, w, valid);
  if (tensors.m != nullptr) store_run(tensors.m + at, m, valid);
  if (kind == MP_OPT_ADAM) store_run(tensors.v + at, v, valid);
  if (tensors.model == nullptr) return;
  if ((params.flags & MP_OPT_MODEL_OVERFLOW) == 0) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) w[i] = clamped(w[i], tensors.model_dtype);
  }
  store_run(tensors.model_dtype, tensors.model, at, w, valid);
}

template <mp_optimizer_kind_t kind>
MP_DEVICE void update_chunk(const StepArgs &args, int64_t number, float grad_scale, int64_t t) {
  MP_SHARED(RuleParams, params, [1]);
  const OptimizerArgs &o = args.optimizer;
  const ChunkRange range = chunk_range(o.grads, number);
  block_sync();  // the previous chunk may still be reading params
  if (thread_index() == 0) {
    const uint32_t group = o.tensor_group[range.tensor];
    params[0] = rule_params(kind, o.flags, o.groups[group], t);
  }
  block_sync();
  const Tensors tensors = tensors_of(o, range.tensor);
  for_each_run<kThreads>(range, [&](int64_t at, int valid) {
    update_run<kind>(tensors, params[0], grad_scale, at, valid);
  });
}

/// What comes after every weight has been updated: the counter, the scaler, the flags.
MP_DEVICE void finish_step(const StepArgs &args, bool skip) {
  const UpdateArgs &u = args.update;
  if (!skip) (*args.optimizer.t)++;
  if (u.skipped != nullptr) *u.skipped = skip ? 1.0f : 0.0f;
  if (u.scaler != nullptr) update_scaler(*u.scaler, u.scaler_amax);
  if (u.clear != nullptr) *u.clear = 0.0f;
}

template <mp_optimizer_kind_t kind>
MP_KERNEL(kThreads, 2)
update_list(MP_PARAM(StepArgs) args) {
  const OptimizerArgs &o = args.optimizer;
  const UpdateArgs &u = args.update;
  const bool skip = u.found_inf != nullptr && *u.found_inf != 0.0f;
  if (!skip) {
    const float grad_scale = u.grad_scale != nullptr ? *u.grad_scale : 1.0f;
    const int64_t t = *o.t + 1;
    for (int64_t c = o.grads.num_chunks - 1 - block_index(); c >= 0; c -= grid_size())
      update_chunk<kind>(args, c, grad_scale, t);
  }
  if (arrive_last(o.ticket) && thread_index() == 0) finish_step(args, skip);
}

struct ScalerArgs {
  ScalerDevice *scaler;
  const float *amax;
};
MP_KERNEL(kWarpSize, 1)
update_scaler_alone(MP_PARAM(ScalerArgs) args) {
  if (thread_index() == 0) update_scaler(*args.scaler, args.amax);
}
MP_KERNEL(kWarpSize, 1)
clip_alone(MP_PARAM(ClipArgs) args) {
  if (thread_index() == 0) apply_clip(args);
}

}  // namespace

void optimizer_step(const Device &device, const OptimizerArgs &optimizer, const UpdateArgs &update,
                    mp_stream_t stream) {
  const StepArgs args{optimizer, update};
  const LaunchShape shape{blocks_for(device, optimizer.grads.num_chunks), kThreads};
  if (optimizer.kind == MP_OPT_SGD)
    launch("update_sgd", update_list<MP_OPT_SGD>, device, shape, stream, args);
  else
    launch("update_adam", update_list<MP_OPT_ADAM>, device, shape, stream, args);
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
