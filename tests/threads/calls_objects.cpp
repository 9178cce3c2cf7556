// Objects that are created, used and destroyed within a call, so that they belong to the calling
// thread.
#include <array>

#include "calls.h"
#include "tests/soak/network.h"

namespace mptest {

namespace {

using mptools::check;
using mptools::kStream;

constexpr int64_t kNumel = 300;
constexpr int64_t kSteps = 12;

mptools::TensorList list_of(mp_context_t context, mp_dtype_t dtype, void *data) {
  mp_tensor_list_desc_t desc;
  MP_INIT_STRUCT(&desc);
  desc.dtype = dtype;
  desc.count = 1;
  desc.data = &data;
  desc.numel = &kNumel;
  mp_tensor_list_t list = nullptr;
  check(mp_tensor_list_create(&list, context, &desc));
  return mptools::TensorList(list);
}

mptools::Scaler scaler_of(mp_context_t context, mp_scaler_policy_t policy) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.growth_interval = 3;
  config.history_length = 8;
  mp_scaler_t scaler = nullptr;
  check(mp_scaler_create(&scaler, context, &config));
  return mptools::Scaler(scaler);
}

/// Takes steps of which every third overflows.
Bytes step(mp_context_t context, mp_scaler_policy_t policy, mp_optimizer_kind_t kind) {
  Operands operands(context);
  void *const g = operands.input(MP_FP16, kNumel), *const w = operands.output(MP_FP32, kNumel);
  const mptools::TensorList grads = list_of(context, MP_FP16, g),
                            master = list_of(context, MP_FP32, w),
                            model = list_of(context, MP_FP16, operands.output(MP_FP16, kNumel)),
                            m = list_of(context, MP_FP32, operands.output(MP_FP32, kNumel)),
                            v = list_of(context, MP_FP32, operands.output(MP_FP32, kNumel));
  const mp_param_group_t group = mp_param_group_default(kind, 0.01f);
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(kind);
  desc.groups = &group;
  desc.grads = grads.get();
  desc.master = master.get();
  desc.model = model.get();
  desc.m = m.get();
  if (kind != MP_OPT_SGD) desc.v = v.get();
  mp_optimizer_t made = nullptr;
  check(mp_optimizer_create(&made, context, &desc));
  const mptools::Optimizer optimizer(made);
  const mptools::Scaler scaler = scaler_of(context, policy);
  for (int64_t n = 1; n <= kSteps; ++n) {
    constexpr uint16_t kInfinity = 0x7c00, kOne = 0x3c00;
    const uint16_t element = n % 3 == 0 ? kInfinity : kOne;
    check(mp_memcpy(context, g, &element, sizeof element, kStream));
    check(mp_scale_step(optimizer.get(), scaler.get(), nullptr, kStream));
    mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
    check(mp_scaler_query_step(scaler.get(), n, &outcome));
    operands.tell_plain(outcome);
  }
  std::array<float, kSteps> scales{};
  std::array<int32_t, kSteps> skipped{};
  int64_t count = 0;
  check(mp_scaler_get_history_sync(scaler.get(), kSteps, scales.data(), skipped.data(), &count,
                                   kStream));
  operands.tell_plain(scales);
  operands.tell_plain(skipped);
  operands.tell_plain(count);
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  check(mp_scaler_get_state_sync(scaler.get(), &state, kStream));
  operands.tell_plain(state);
  return operands.bytes();
}

Bytes inspect(mp_context_t context) {
  Operands operands(context);
  const mptools::TensorList list = list_of(context, MP_BF16, operands.input(MP_BF16, kNumel));
  auto *const norm = static_cast<float *>(operands.output(MP_FP32, 1));
  auto *const amax = static_cast<float *>(operands.output(MP_FP32, 1));
  check(mp_l2norm(list.get(), norm, nullptr, kStream));
  check(mp_amax(list.get(), amax, nullptr, kStream));
  return operands.bytes();
}

Bytes train_graph(mp_context_t context) {
  Operands operands(context);
  Network network(context);
  const mptools::Scaler scaler = scaler_of(context, MP_SCALER_POLICY_BACKOFF);
  for (uint64_t n = 1; n <= 2; ++n) network.forward_and_backward(n, scaler.get());
  operands.tell(network.describe());
  CheckpointWriter saved;
  network.save(saved);
  Bytes all = operands.bytes();
  all.insert(all.end(), saved.bytes().begin(), saved.bytes().end());
  return all;
}

/// Uses a separate context in addition to the shared one.
Bytes make_context(mp_context_t) {
  const mptools::Context own = mptools::make_context(MP_DEVICE_HOST, 3);
  Operands operands(own.get());
  mp_device_info_t info;
  MP_INIT_STRUCT(&info);
  check(mp_context_get_info(own.get(), &info));
  operands.tell_plain(info.num_sms);
  const mp_gemm_desc_t desc = mp_gemm_desc_default(32, 32, 32, MP_FP16, MP_FP16);
  check(mp_gemm(own.get(), &desc, operands.input(MP_FP16, 1024), operands.input(MP_FP16, 1024),
                nullptr, operands.output(MP_FP16, 1024), nullptr, nullptr, 0, kStream));
  return operands.bytes();
}

Bytes ask_policy(mp_context_t context) {
  Operands operands(context);
  mp_autocast_config_t config = mp_autocast_config_default(MP_BF16);
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
  mp_autocast_t policy = nullptr;
  check(mp_autocast_create(&policy, &config));
  const std::unique_ptr<mp_autocast, mptools::Destroyer<mp_autocast_destroy>> owner(policy);
  const char *const own_op = "Mine";
  check(mp_autocast_set_class(policy, &own_op, 1, MP_OP_CLASS_ALLOW));
  check(mp_autocast_set_nodes(policy, "decoder/*", MP_OP_CLASS_DENY));
  for (const char *const op : {"Conv2D", "Softmax", "Mine", "no such thing"})
    operands.tell_plain(mp_autocast_get_class(policy, op));
  const char *disabled_reason = nullptr;
  check(mp_autocast_get_disabled_reason(policy, context, &disabled_reason));
  operands.tell(disabled_reason != nullptr ? disabled_reason : "");
  return operands.bytes();
}

}  // namespace

void add_objects(std::vector<Call> &calls) {
  constexpr mp_optimizer_kind_t kKinds[] = {MP_OPT_SGD, MP_OPT_ADAM, MP_OPT_LAMB};
  constexpr mp_scaler_policy_t kPolicies[] = {MP_SCALER_POLICY_STATIC, MP_SCALER_POLICY_BACKOFF,
                                              MP_SCALER_POLICY_LOGNORMAL};
  for (size_t i = 0; i < std::size(kKinds); ++i)
    calls.push_back({"scale_step", [kind = kKinds[i], policy = kPolicies[i]](mp_context_t c) {
                       return step(c, policy, kind);
                     }});
  calls.push_back({"l2norm, amax", inspect});
  calls.push_back({"graph", train_graph});
  calls.push_back({"context", make_context});
  calls.push_back({"autocast", ask_policy});
}

}  // namespace mptest
