// Contexts, tensor lists, scalers, optimizers and steps: objects that are created, used and
// destroyed within a row.
#include <array>
#include <cmath>
#include <cstddef>

#include "catalog.h"

namespace mptest {

namespace {

constexpr uint32_t kCount = 2;
constexpr int64_t kNumel[kCount] = {300, 9};
constexpr int64_t kOne[kCount] = {1, 1};  // a second moment per tensor
constexpr uint16_t kInfinity = 0x7c00, kHalfOne = 0x3c00;

/// Two tensors and their list.
struct Tensors {
  std::array<void *, kCount> data;
  mp_tensor_list_t list = nullptr;

  /// @param is_input  false: zeros that become part of the results
  Tensors(Caller &c, mp_dtype_t dtype, bool is_input, const int64_t *numel = kNumel) {
    for (uint32_t t = 0; t < kCount; ++t)
      data[t] = is_input ? c.input(dtype, kNumel[t]) : c.output(dtype, kNumel[t]);
    auto desc = initialized<mp_tensor_list_desc_t>();
    desc.count = kCount;
    desc.dtype = dtype;
    desc.data = data.data();
    desc.numel = numel;
    CREATE(c, mp_tensor_list_create, list, c.context(), &desc);
  }
  void record(Caller &c, mp_dtype_t dtype) const {
    for (uint32_t t = 0; t < kCount; ++t)
      c.record_device(data[t], static_cast<size_t>(kNumel[t]) * mp_dtype_size(dtype));
  }
  void destroy(Caller &c) const { DESTROY(c, mp_tensor_list_destroy, list); }
};

mp_scaler_t make_scaler(Caller &c, mp_scaler_policy_t policy) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.growth_interval = 2;
  config.history_length = 8;
  if (policy == MP_SCALER_POLICY_BACKOFF) config.init_scale = 8.0f;
  mp_scaler_t scaler = nullptr;
  CREATE(c, mp_scaler_create, scaler, c.context(), &config);
  return scaler;
}

/// Records all numbers of a scaler.
void finish(Caller &c, mp_scaler_t scaler) {
  std::array<float, 8> scales{};
  std::array<int32_t, 8> skipped{};
  int64_t count = 0;
  CALL(c, mp_scaler_get_history_sync, scaler, scales.size(), scales.data(), skipped.data(), &count,
       nullptr);
  c.record_value(scales);
  c.record_value(skipped);
  c.record_value(count);
  auto state = initialized<mp_scaler_state_t>();
  CALL(c, mp_scaler_get_state_sync, scaler, &state, nullptr);
  c.record_value(state);
  CALL(c, mp_scaler_set_state_sync, scaler, &state, nullptr);
  DESTROY(c, mp_scaler_destroy, scaler);
}

/// An optimizer with all its tensors.
struct Training {
  Tensors grads, master, model, m, v;
  mp_optimizer_t optimizer = nullptr;

  Training(Caller &c, mp_optimizer_kind_t kind)
      : grads(c, MP_FP16, true),
        master(c, MP_FP32, false),
        model(c, MP_FP16, false),
        m(c, MP_FP32, false),
        v(c, MP_FP32, false, kind == MP_OPT_NOVOGRAD ? kOne : kNumel) {
    mp_param_group_t group = mp_param_group_default(kind, 0.125f);
    if (kind == MP_OPT_SGD) group.max_tensor_norm = 3.0f, group.beta1 = 0.5f;
    mp_optimizer_desc_t desc = mp_optimizer_desc_default(kind);
    desc.groups = &group;
    desc.grads = grads.list;
    desc.master = master.list;
    desc.model = model.list;
    if (kind == MP_OPT_SGD || kind == MP_OPT_ADAM || kind == MP_OPT_NOVOGRAD) desc.m = m.list;
    if (kind == MP_OPT_ADAM || kind == MP_OPT_NOVOGRAD) desc.v = v.list;
    CREATE(c, mp_optimizer_create, optimizer, c.context(), &desc);
  }
  /// Writes an infinity or 1 into a gradient.
  void set_gradient(Caller &c, uint16_t value) const {
    CALL(c, mp_memcpy, c.context(), grads.data[0], &value, sizeof value, nullptr);
  }
  void finish(Caller &c) const {
    int64_t t = 0;
    CALL(c, mp_optimizer_get_step_sync, optimizer, &t, nullptr, nullptr);
    c.record_value(t);
    DESTROY(c, mp_optimizer_destroy, optimizer);
    for (const Tensors *tensors : {&grads, &master, &model, &m, &v}) tensors->destroy(c);
  }
};

mp_tensor_report_t *reports(Caller &c, int64_t count) {
  const int64_t words = count * static_cast<int64_t>(sizeof(mp_tensor_report_t) / sizeof(int64_t));
  return static_cast<mp_tensor_report_t *>(c.output(MP_INT64, words));
}

void query(Caller &c, mp_scaler_t scaler, int64_t step) {
  mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
  CALL(c, mp_scaler_query_step, scaler, step, &outcome);
  c.record_value(outcome);
}

// ------------------------------------------------------------------------- rows

/// Another context of the same device.
void make_context(Caller &c) {
  auto info = initialized<mp_device_info_t>();
  CALL(c, mp_context_get_info, c.context(), &info);
  mp_context_config_t config = mp_context_config_default();
  config.device = info.target == MP_TARGET_HOST ? MP_DEVICE_HOST : MP_DEVICE_CURRENT;
  config.sm_limit = 3;
  mp_context_t context = nullptr;
  CREATE(c, mp_context_create, context, &config);
  CALL(c, mp_context_get_info, context, &info);
  c.record_value(info.num_sms);
  const mp_gemm_desc_t desc = mp_gemm_desc_default(32, 32, 32, MP_FP16, MP_FP16);
  void *const a = c.input(MP_FP16, 32 * 32), *const b = c.input(MP_FP16, 32 * 32);
  void *const d = c.output(MP_FP16, 32 * 32);
  CALL(c, mp_gemm, context, &desc, a, b, nullptr, d, nullptr, nullptr, size_t{0}, nullptr);
  CALL(c, mp_stream_sync, context, nullptr);
  DESTROY(c, mp_context_destroy, context);
}

void describe_tensors(Caller &c) {
  const Tensors in(c, MP_FP16, true), out(c, MP_FP32, false);
  void *data = nullptr;
  int64_t numel = 0;
  mp_dtype_t dtype = MP_DTYPE_NONE;
  CALL(c, mp_tensor_list_get_tensor, in.list, 1u, &data, &numel, &dtype);
  c.record_value(numel);
  c.record_value(dtype);
  float *const numbers = c.sums(8);
  mp_tensor_report_t *const report = reports(c, 1), *const of_tensors = reports(c, kCount);
  CALL(c, mp_check_nonfinite, in.list, numbers, nullptr);
  CALL(c, mp_amax, in.list, numbers + 1, nullptr, nullptr);
  CALL(c, mp_l2norm, in.list, numbers + 2, numbers + 3, nullptr);
  CALL(c, mp_inspect, in.list, report, of_tensors, nullptr);
  auto outputs = initialized<mp_stats_outputs_t>();
  outputs.found_inf = c.sums(1);
  outputs.amax = c.sums(1), outputs.tensor_amax = c.sums(kCount);
  outputs.norm = c.sums(1), outputs.tensor_norm = c.sums(kCount);
  outputs.report = reports(c, 1), outputs.tensor_reports = reports(c, kCount);
  CALL(c, mp_tensor_stats, in.list, &outputs, nullptr);
  CALL(c, mp_unscale, in.list, out.list, numbers + 1, numbers + 6, nullptr);
  CALL(c, mp_clip_factor, c.context(), numbers + 2, numbers + 1, 1.0f, numbers + 7, nullptr);
  std::array<void *, kCount> exchanged = {c.input(MP_FP16, kNumel[0]), c.input(MP_FP16, kNumel[1])};
  CALL(c, mp_tensor_list_set_data, in.list, exchanged.data(), nullptr);
  float *const amax = c.sums(1);
  CALL(c, mp_amax, in.list, amax, nullptr, nullptr);
  in.destroy(c);
  out.destroy(c);
}

void scale_losses(Caller &c, mp_scaler_policy_t policy) {
  const mp_scaler_t scaler = make_scaler(c, policy);
  const float *const loss = c.floats(4), *const amax = c.number(0.75f);
  float *const out = c.sums(4);
  CALL(c, mp_scale_loss, scaler, loss, out, MP_FP32, 4, nullptr);
  for (int step = 0; step < 3; ++step) CALL(c, mp_scaler_update, scaler, amax, nullptr);
  finish(c, scaler);
}

/// Steps of which every third overflows.
void take_steps(Caller &c, mp_optimizer_kind_t kind, mp_scaler_policy_t policy) {
  const Training training(c, kind);
  const mp_scaler_t scaler = make_scaler(c, policy);
  mp_step_options_t options = mp_step_options_default();
  options.max_grad_norm = 2.0f;
  options.grad_norm = c.sums(1);
  options.tensor_norms = c.sums(kCount);
  options.found_inf = c.sums(1);
  options.report = reports(c, 1), options.tensor_reports = reports(c, kCount);
  options.rejected_updates = c.counter();
  options.outcome = static_cast<int32_t *>(c.output(MP_INT32, 1));
  for (int64_t step = 1; step <= 6; ++step) {
    training.set_gradient(c, step % 3 == 0 ? kInfinity : kHalfOne);
    CALL(c, mp_scale_step, training.optimizer, scaler, &options, nullptr);
    query(c, scaler, step);
  }
  finish(c, scaler);
  training.finish(c);
}

/// Steps without a scaler, hyperparameters and checkpoints.
void use_optimizer(Caller &c, mp_optimizer_kind_t kind) {
  const Training training(c, kind);
  const mp_optimizer_t optimizer = training.optimizer;
  CALL(c, mp_scale_step, optimizer, nullptr, nullptr, nullptr);
  mp_param_group_t group = mp_param_group_default(kind, 0.25f);
  CALL(c, mp_optimizer_set_group, optimizer, 0u, &group, nullptr);
  CALL(c, mp_optimizer_step, optimizer, nullptr, nullptr, nullptr);
  float *const loss = c.sums(1);
  CALL(c, mp_optimizer_regularization, optimizer, loss, nullptr);
  CALL(c, mp_optimizer_set_step_sync, optimizer, int64_t{7}, nullptr, nullptr);
  CALL(c, mp_optimizer_write_model, optimizer, nullptr);
  mp_tensor_list_t m = nullptr, v = nullptr;
  CALL(c, mp_optimizer_get_moments, optimizer, &m, &v);
  size_t bytes = 0;
  CALL(c, mp_optimizer_checkpoint_size, optimizer, nullptr, &bytes);
  std::vector<std::byte> checkpoint(bytes);
  CALL(c, mp_optimizer_save_sync, optimizer, nullptr, checkpoint.data(), bytes, nullptr);
  c.record(checkpoint.data(), bytes);
  CALL(c, mp_optimizer_restore_sync, optimizer, nullptr, checkpoint.data(), bytes, nullptr);
  training.finish(c);
}

// The optimizer has its own flag without a scaler: an overflow found in a failed step must not skip
// the next step.
void give_up_a_step(Caller &c) {
  const mp_comm_t comm = c.comm();
  const Training training(c, MP_OPT_ADAM);
  mp_step_options_t options = mp_step_options_default();
  options.comm = &comm;
  const auto step = [&] { return mp_scale_step(training.optimizer, nullptr, &options, nullptr); };
  training.set_gradient(c, kInfinity);
  (void)c.try_once("mp_scale_step", step);
  training.set_gradient(c, kHalfOne);
  c.repeat_until_success("mp_scale_step", step, [] {});
  training.finish(c);
}

void use_another_optimizer(Caller &c) {
  const Tensors grads(c, MP_FP16, true), wide(c, MP_FP32, false), model(c, MP_BF16, false);
  const mp_scaler_t scaler = make_scaler(c, MP_SCALER_POLICY_BACKOFF);
  CALL(c, mp_grads_to_fp32, scaler, grads.list, wide.list, nullptr);
  wide.record(c, MP_FP32);
  for (const uint32_t flag : {MP_ACCUMULATE_FLAG_FIRST, MP_ACCUMULATE_FLAG_LAST})
    CALL(c, mp_grads_accumulate, scaler, grads.list, wide.list, 0.5f, flag, nullptr);
  float *const found_inf = mp_scaler_get_found_inf_address(scaler);
  mp_model_options_t options = mp_model_options_default();
  options.flags = MP_OPT_FLAG_STOCHASTIC_ROUNDING | MP_OPT_FLAG_MODEL_OVERFLOW;
  options.t = c.counter(), options.overflows = c.counter();
  CALL(c, mp_masters_to_model, wide.list, model.list, found_inf, &options, nullptr);
  CALL(c, mp_scaler_update, scaler, nullptr, nullptr);
  query(c, scaler, 1);
  finish(c, scaler);
  for (const Tensors *tensors : {&grads, &wide, &model}) tensors->destroy(c);
}

// A failed all-reduce leaves some gradients reduced, as documented in the header.
void reduce_over_ranks(Caller &c) {
  const Tensors grads(c, MP_FP16, true), saved(c, MP_FP16, false);
  const auto copy = [&](const Tensors &to, const Tensors &from) {
    for (uint32_t t = 0; t < kCount; ++t)
      (void)mp_memcpy(c.context(), to.data[t], from.data[t],
                      static_cast<size_t>(kNumel[t]) * sizeof(uint16_t), nullptr);
  };
  copy(saved, grads);
  const mp_comm_t grouped = c.comm();
  mp_comm_t single = grouped;
  single.group_begin = single.group_end = nullptr;
  for (const mp_comm_t &comm : {grouped, single}) {
    copy(grads, saved);
    c.call_again([&] { copy(grads, saved); }, "mp_grads_all_reduce", mp_grads_all_reduce,
                 grads.list, &comm, 0.5f, 3.0f, nullptr);
    grads.record(c, MP_FP16);
  }
  grads.destroy(c);
  saved.destroy(c);
}

void step_over_ranks(Caller &c, uint32_t flags) {
  const mp_comm_t comm = c.comm();
  const Training training(c, MP_OPT_ADAM);
  const mp_scaler_t scaler = make_scaler(c, MP_SCALER_POLICY_BACKOFF);
  mp_step_options_t options = mp_step_options_default();
  options.flags = flags;
  options.comm = &comm;
  options.max_grad_norm = flags == MP_STEP_FLAG_CHECKED ? 0.0f : 2.0f;
  for (int64_t step = 1; step <= 3; ++step) {
    training.set_gradient(c, step == 2 ? kInfinity : kHalfOne);
    CALL(c, mp_scale_step, training.optimizer, scaler, &options, nullptr);
    query(c, scaler, step);
  }
  // The flag belongs to the optimizer if there is no scaler.
  if (flags != MP_STEP_FLAG_CHECKED)
    CALL(c, mp_scale_step, training.optimizer, nullptr, &options, nullptr);
  finish(c, scaler);
  training.finish(c);
}

/// Configurations by name, and checkpoints of other systems.
void use_names(Caller &c) {
  auto desc = initialized<mp_optimizer_desc_t>();
  auto group = initialized<mp_param_group_t>();
  CALL(c, mp_optimizer_desc_from_name, "adamw", &desc, sizeof desc, &group, sizeof group, 0.1f);
  c.record_value(group.beta1);
  auto config = initialized<mp_scaler_config_t>();
  CALL(c, mp_scaler_config_from_name, "dynamic", &config, sizeof config);
  c.record_value(config.init_scale);
  mp_scaler_config_t torch = mp_scaler_config_preset(MP_SCALER_PRESET_TORCH);
  mp_scaler_state_t state = mp_scaler_state_default(&torch);
  mp_torch_scaler_t of_torch = {};
  CALL(c, mp_scaler_to_torch, &torch, &state, &of_torch);
  CALL(c, mp_scaler_from_torch, &of_torch, &torch, &state);
  c.record_value(of_torch.scale);
  mp_megatron_scaler_t of_megatron = {};
  const mp_scaler_config_t megatron = mp_scaler_config_preset(MP_SCALER_PRESET_MEGATRON);
  mp_scaler_state_t other = mp_scaler_state_default(&megatron);
  CALL(c, mp_scaler_to_megatron, &other, &of_megatron);
  CALL(c, mp_scaler_from_megatron, &of_megatron, &other);
  c.record_value(of_megatron.scale);
}

}  // namespace

Catalog step_calls() {
  struct {
    const char *name;
    mp_optimizer_kind_t kind;
    mp_scaler_policy_t policy;
  } constexpr kRules[] = {{"sgd", MP_OPT_SGD, MP_SCALER_POLICY_STATIC},
                          {"adam", MP_OPT_ADAM, MP_SCALER_POLICY_BACKOFF},
                          {"lamb", MP_OPT_LAMB, MP_SCALER_POLICY_LOGNORMAL},
                          {"novograd", MP_OPT_NOVOGRAD, MP_SCALER_POLICY_LOGMAX},
                          {"adagrad", MP_OPT_ADAGRAD, MP_SCALER_POLICY_BACKOFF},
                          {"rmsprop", MP_OPT_RMSPROP, MP_SCALER_POLICY_BACKOFF}};
  Catalog calls = {
      {"context", make_context},
      {"tensor lists", describe_tensors},
      {"scaler, static", [](Caller &c) { scale_losses(c, MP_SCALER_POLICY_STATIC); }},
      {"scaler, backoff", [](Caller &c) { scale_losses(c, MP_SCALER_POLICY_BACKOFF); }},
      {"scaler, log-normal", [](Caller &c) { scale_losses(c, MP_SCALER_POLICY_LOGNORMAL); }},
      {"scaler, log-max", [](Caller &c) { scale_losses(c, MP_SCALER_POLICY_LOGMAX); }},
      {"ranks: all-reduce", reduce_over_ranks},
      {"ranks: steps", [](Caller &c) { step_over_ranks(c, 0); }},
      {"ranks: sharded steps", [](Caller &c) { step_over_ranks(c, MP_STEP_FLAG_SHARDED); }},
      {"ranks: checked steps", [](Caller &c) { step_over_ranks(c, MP_STEP_FLAG_CHECKED); }},
      {"ranks: a step that is given up", give_up_a_step},
      {"tensor lists of another optimizer", use_another_optimizer},
      {"names", use_names}};
  for (const auto &rule : kRules) {
    calls.push_back({std::string("steps, ") + rule.name,
                     [=](Caller &c) { take_steps(c, rule.kind, rule.policy); }});
    calls.push_back(
        {std::string("optimizer, ") + rule.name, [=](Caller &c) { use_optimizer(c, rule.kind); }});
  }
  return calls;
}

}  // namespace mptest
