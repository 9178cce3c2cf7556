// Scenarios of contexts, lists, scalers, optimizers and steps.
#include <array>

#include "scenarios.h"

namespace mptest::faults {

namespace {

constexpr int64_t kNumel[] = {40, 9};
constexpr int64_t kOne[] = {1, 1};  // a second moment per tensor
constexpr uint32_t kCount = 2;

/// Two tensors and their list; the run frees the memory.
struct Tensors {
  std::array<void *, kCount> data;
  mp_tensor_list_t list = nullptr;

  /// @param numel  number of elements of each tensor
  Tensors(Run &run, mp_dtype_t dtype, int seed, const int64_t *numel = kNumel) {
    for (uint32_t t = 0; t < kCount; ++t)
      data[t] = run.tensor(dtype, kNumel[t], seed + static_cast<int>(t));
    mp_tensor_list_desc_t desc;
    MP_INIT_STRUCT(&desc);
    desc.count = kCount;
    desc.dtype = dtype;
    desc.data = data.data();
    desc.numel = numel;
    FAULTY_CREATE(run, mp_tensor_list_create, list, run.context(), &desc);
  }
  void record(Run &run, mp_dtype_t dtype) const {
    for (uint32_t t = 0; t < kCount; ++t)
      run.record_device(data[t], static_cast<size_t>(kNumel[t]) * mp_dtype_size(dtype));
  }
  void destroy(Run &run) const { FAULTY_DESTROY(run, mp_tensor_list_destroy, list); }
};

mp_scaler_t make_scaler(Run &run, mp_scaler_policy_t policy) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.history_length = 5;
  if (policy == MP_SCALER_POLICY_BACKOFF) config.init_scale = 8.0f;
  mp_scaler_t scaler = nullptr;
  FAULTY_CREATE(run, mp_scaler_create, scaler, run.context(), &config);
  return scaler;
}

void record_state(Run &run, mp_scaler_t scaler) {
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  FAULTY_CALL(run, mp_scaler_get_state_sync, scaler, &state, nullptr);
  run.record(&state, sizeof state);
}

/// An optimizer with all its tensors.
struct Training {
  Tensors grads, master, model, m, v;
  mp_optimizer_t optimizer = nullptr;

  Training(Run &run, mp_optimizer_kind_t kind, uint32_t flags = 0)
      : grads(run, MP_FP16, 1),
        master(run, MP_FP32, 2),
        model(run, MP_FP16, 3),
        m(run, MP_FP32, 4),
        v(run, MP_FP32, 4, kind == MP_OPT_NOVOGRAD ? kOne : kNumel) {
    for (uint32_t t = 0; t < kCount; ++t) clear(run, m.data[t], t), clear(run, v.data[t], t);
    mp_param_group_t group = mp_param_group_default(kind, 0.125f);
    group.max_tensor_norm = kind == MP_OPT_SGD ? 3.0f : 0.0f;
    if (kind == MP_OPT_SGD) group.beta1 = 0.5f;
    mp_optimizer_desc_t desc = mp_optimizer_desc_default(kind);
    desc.flags = flags;
    desc.groups = &group;
    desc.grads = grads.list;
    desc.master = master.list;
    desc.model = model.list;
    const bool has_v = kind != MP_OPT_SGD;
    const bool has_m = kind != MP_OPT_ADAGRAD && kind != MP_OPT_RMSPROP;
    if (has_m && kind != MP_OPT_LAMB) desc.m = m.list;  // LAMB allocates them
    if (has_v && kind != MP_OPT_LAMB) desc.v = v.list;
    FAULTY_CREATE(run, mp_optimizer_create, optimizer, run.context(), &desc);
  }
  void finish(Run &run) const {
    int64_t t = 0;
    FAULTY_CALL(run, mp_optimizer_get_step_sync, optimizer, &t, nullptr, nullptr);
    run.record(&t, sizeof t);
    for (const Tensors *tensors : {&master, &m, &v}) tensors->record(run, MP_FP32);
    model.record(run, MP_FP16);
    FAULTY_DESTROY(run, mp_optimizer_destroy, optimizer);
    for (const Tensors *tensors : {&grads, &master, &model, &m, &v}) tensors->destroy(run);
  }

 private:
  static void clear(Run &run, void *data, uint32_t t) {
    const size_t bytes = static_cast<size_t>(kNumel[t]) * sizeof(float);
    FAULTY_CALL(run, mp_memset, run.context(), data, 0, bytes, nullptr);
  }
};

/// Writes an infinity into an fp16 tensor.
void overflow(Run &run, void *data) {
  const uint16_t infinity = 0x7c00;
  FAULTY_CALL(run, mp_memcpy, run.context(), data, &infinity, sizeof infinity, nullptr);
}

void query(Run &run, mp_scaler_t scaler, int64_t step) {
  mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
  FAULTY_CALL(run, mp_scaler_query_step, scaler, step, &outcome);
  run.record(&outcome, sizeof outcome);
}

}  // namespace

void make_context(Run &run) {
  mp_device_info_t info;
  MP_INIT_STRUCT(&info);
  FAULTY_CALL(run, mp_context_get_info, run.context(), &info);
  run.record(&info, sizeof info);
}

void describe_tensors(Run &run) {
  const Tensors in(run, MP_FP16, 1), out(run, MP_FP32, 2);
  float *const numbers = run.floats(8);
  auto *const reports =
      static_cast<mp_tensor_report_t *>(run.bytes((1 + kCount) * sizeof(mp_tensor_report_t)));
  FAULTY_CALL(run, mp_check_nonfinite, in.list, numbers, nullptr);
  FAULTY_CALL(run, mp_amax, in.list, numbers + 1, nullptr, nullptr);
  FAULTY_CALL(run, mp_l2norm, in.list, numbers + 2, numbers + 3, nullptr);
  FAULTY_CALL(run, mp_inspect, in.list, reports, reports + 1, nullptr);
  mp_stats_outputs_t outputs;
  MP_INIT_STRUCT(&outputs);
  outputs.amax = numbers + 5;
  FAULTY_CALL(run, mp_tensor_stats, in.list, &outputs, nullptr);
  FAULTY_CALL(run, mp_unscale, in.list, out.list, numbers + 1, numbers + 6, nullptr);
  FAULTY_CALL(run, mp_clip_factor, run.context(), numbers + 2, numbers + 1, 1.0f, numbers + 7,
              nullptr);
  std::array<void *, kCount> exchanged = {run.tensor(MP_FP16, kNumel[0]),
                                          run.tensor(MP_FP16, kNumel[1])};
  FAULTY_CALL(run, mp_tensor_list_set_data, in.list, exchanged.data(), nullptr);
  FAULTY_CALL(run, mp_amax, in.list, numbers + 4, nullptr, nullptr);
  run.record_device(numbers, 8 * sizeof(float));
  run.record_device(reports, (1 + kCount) * sizeof(mp_tensor_report_t));
  out.record(run, MP_FP32);
  in.destroy(run);
  out.destroy(run);
}

void scale_losses(Run &run) {
  for (const mp_scaler_policy_t policy : {MP_SCALER_POLICY_STATIC, MP_SCALER_POLICY_BACKOFF,
                                          MP_SCALER_POLICY_LOGNORMAL, MP_SCALER_POLICY_LOGMAX}) {
    const mp_scaler_t scaler = make_scaler(run, policy);
    float *const loss = run.floats(4);
    FAULTY_CALL(run, mp_scale_loss, scaler, loss, loss, MP_FP32, 4, nullptr);
    float *const amax = run.floats(1);
    FAULTY_CALL(run, mp_memset, run.context(), amax, 0x3f, sizeof *amax, nullptr);
    for (int step = 0; step < 3; ++step) FAULTY_CALL(run, mp_scaler_update, scaler, amax, nullptr);
    run.record_device(loss, 4 * sizeof *loss);
    float scales[5] = {};
    int32_t skipped[5] = {};
    int64_t count = 0;
    FAULTY_CALL(run, mp_scaler_get_history_sync, scaler, 5, scales, skipped, &count, nullptr);
    run.record(scales, sizeof scales);
    run.record(&count, sizeof count);
    mp_scaler_state_t state;
    MP_INIT_STRUCT(&state);
    FAULTY_CALL(run, mp_scaler_get_state_sync, scaler, &state, nullptr);
    FAULTY_CALL(run, mp_scaler_set_state_sync, scaler, &state, nullptr);
    record_state(run, scaler);
    FAULTY_DESTROY(run, mp_scaler_destroy, scaler);
  }
}

void take_steps(Run &run) {
  const Training training(run, MP_OPT_ADAM);
  const mp_scaler_t scaler = make_scaler(run, MP_SCALER_POLICY_BACKOFF);
  float *const norms = run.floats(3);
  mp_step_options_t options = mp_step_options_default();
  options.max_grad_norm = 2.0f;
  options.grad_norm = norms;
  options.tensor_norms = norms + 1;
  options.report = static_cast<mp_tensor_report_t *>(run.bytes(sizeof(mp_tensor_report_t)));
  for (int64_t step = 1; step <= 3; ++step) {
    FAULTY_CALL(run, mp_scale_step, training.optimizer, scaler, &options, nullptr);
    if (step == 2) overflow(run, training.grads.data[1]);
    query(run, scaler, step);
  }
  record_state(run, scaler);
  run.record_device(norms, 3 * sizeof *norms);
  run.record_device(options.report, sizeof(mp_tensor_report_t));
  FAULTY_DESTROY(run, mp_scaler_destroy, scaler);
  training.finish(run);
}

template <mp_optimizer_kind_t kKind>
void take_steps_of(Run &run) {
  const Training training(run, kKind);
  FAULTY_CALL(run, mp_scale_step, training.optimizer, nullptr, nullptr, nullptr);
  mp_param_group_t group = mp_param_group_default(kKind, 0.25f);
  FAULTY_CALL(run, mp_optimizer_set_group, training.optimizer, 0, &group, nullptr);
  FAULTY_CALL(run, mp_optimizer_step, training.optimizer, nullptr, nullptr, nullptr);
  float *const loss = run.floats(1);
  FAULTY_CALL(run, mp_optimizer_regularization, training.optimizer, loss, nullptr);
  run.record_device(loss, sizeof *loss);
  FAULTY_CALL(run, mp_optimizer_set_step_sync, training.optimizer, 7, nullptr, nullptr);
  FAULTY_CALL(run, mp_optimizer_write_model, training.optimizer, nullptr);
  size_t bytes = 0;
  FAULTY_CALL(run, mp_optimizer_checkpoint_size, training.optimizer, nullptr, &bytes);
  std::vector<std::byte> checkpoint(bytes);
  FAULTY_CALL(run, mp_optimizer_save_sync, training.optimizer, nullptr, checkpoint.data(), bytes,
              nullptr);
  run.record(checkpoint.data(), bytes);
  FAULTY_CALL(run, mp_optimizer_restore_sync, training.optimizer, nullptr, checkpoint.data(), bytes,
              nullptr);
  training.finish(run);
}
template void take_steps_of<MP_OPT_SGD>(Run &);
template void take_steps_of<MP_OPT_LAMB>(Run &);
template void take_steps_of<MP_OPT_NOVOGRAD>(Run &);
template void take_steps_of<MP_OPT_ADAGRAD>(Run &);
template void take_steps_of<MP_OPT_RMSPROP>(Run &);

// The optimizer has its own flag without a scaler: an overflow found in a failed step must not skip
// the next step.
void give_up_a_step(Run &run) {
  const mp_comm_t comm = run.comm();
  const Training training(run, MP_OPT_ADAM);
  mp_step_options_t options = mp_step_options_default();
  options.comm = &comm;
  const uint16_t infinity = 0x7c00, one = 0x3c00;
  for (const uint16_t first : {infinity, one}) {
    FAULTY_CALL(run, mp_memcpy, run.context(), training.grads.data[0], &first, sizeof first,
                nullptr);
    const auto step = [&] { return mp_scale_step(training.optimizer, nullptr, &options, nullptr); };
    if (first == infinity)
      run.attempt("mp_scale_step", step);
    else
      run.call("mp_scale_step", step);
  }
  training.finish(run);
}

void use_another_optimizer(Run &run) {
  const Tensors grads(run, MP_FP16, 1), wide(run, MP_FP32, 2), model(run, MP_BF16, 3);
  const mp_scaler_t scaler = make_scaler(run, MP_SCALER_POLICY_BACKOFF);
  FAULTY_CALL(run, mp_grads_to_fp32, scaler, grads.list, wide.list, nullptr);
  wide.record(run, MP_FP32);
  const uint32_t flags[] = {MP_ACCUMULATE_FLAG_FIRST, MP_ACCUMULATE_FLAG_LAST};
  for (const uint32_t flag : flags)
    FAULTY_CALL(run, mp_grads_accumulate, scaler, grads.list, wide.list, 0.5f, flag, nullptr);
  FAULTY_CALL(run, mp_masters_to_model, wide.list, model.list,
              mp_scaler_get_found_inf_address(scaler), nullptr, nullptr);
  FAULTY_CALL(run, mp_scaler_update, scaler, nullptr, nullptr);
  query(run, scaler, 1);
  wide.record(run, MP_FP32);
  model.record(run, MP_BF16);
  record_state(run, scaler);
  FAULTY_DESTROY(run, mp_scaler_destroy, scaler);
  for (const Tensors *tensors : {&grads, &wide, &model}) tensors->destroy(run);
}

// A failed all-reduce leaves some gradients reduced, as documented in the header.
void reduce_over_ranks(Run &run) {
  const Tensors grads(run, MP_FP16, 1), saved(run, MP_FP16, 1);
  const auto put_back = [&] {
    for (uint32_t t = 0; t < kCount; ++t)
      (void)mp_memcpy(run.context(), grads.data[t], saved.data[t],
                      static_cast<size_t>(kNumel[t]) * sizeof(uint16_t), nullptr);
  };
  const mp_comm_t grouped = run.comm();
  mp_comm_t single = grouped;
  single.group_begin = single.group_end = nullptr;
  for (const mp_comm_t &comm : {grouped, single}) {
    put_back();
    run.call(
        "mp_grads_all_reduce",
        [&] { return mp_grads_all_reduce(grads.list, &comm, 0.5f, 3.0f, nullptr); }, put_back);
    grads.record(run, MP_FP16);
  }
  grads.destroy(run);
  saved.destroy(run);
}

template <uint32_t kFlags>
void step_over_ranks(Run &run) {
  const mp_comm_t comm = run.comm();
  const Training training(run, MP_OPT_ADAM);
  const mp_scaler_t scaler = make_scaler(run, MP_SCALER_POLICY_BACKOFF);
  mp_step_options_t options = mp_step_options_default();
  options.flags = kFlags;
  options.comm = &comm;
  options.max_grad_norm = kFlags == MP_STEP_FLAG_CHECKED ? 0.0f : 2.0f;
  for (int64_t step = 1; step <= 3; ++step) {
    FAULTY_CALL(run, mp_scale_step, training.optimizer, scaler, &options, nullptr);
    if (step == 1) overflow(run, training.grads.data[0]);
    query(run, scaler, step);
  }
  // The flag belongs to the optimizer if there is no scaler.
  if (kFlags != MP_STEP_FLAG_CHECKED)
    FAULTY_CALL(run, mp_scale_step, training.optimizer, nullptr, &options, nullptr);
  record_state(run, scaler);
  FAULTY_DESTROY(run, mp_scaler_destroy, scaler);
  training.finish(run);
}
template void step_over_ranks<0>(Run &);
template void step_over_ranks<MP_STEP_FLAG_SHARDED>(Run &);
template void step_over_ranks<MP_STEP_FLAG_CHECKED>(Run &);

}  // namespace mptest::faults
