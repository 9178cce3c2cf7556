// A training run of the network, with its own context, graph, optimizer and scaler, and its
// checkpoint.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "tests/soak/network.h"

namespace mptest {

/// Parameters of a training run.
struct Program {
  std::string scaler_name, rule_name;
  mp_scaler_config_t scaler;
  mp_optimizer_kind_t rule;
  uint32_t rule_flags;
  mp_param_group_t group;
};

/// A value written into a gradient before the step.
struct Fault {
  /// hot: a gradient of +-2^log2, which overflows in fp16 if S is large.
  enum class Kind { hot, infinity, nan } kind = Kind::hot;
  int log2 = 0;
  bool is_negative = false;
};

class Training {
 public:
  /// @param allocator  optional; allocates device memory
  explicit Training(const Program &program, const mp_allocator_t *allocator = nullptr)
      : program_(program),
        context_(make_own_context(allocator)),
        network_(context_.get()),
        report_(context_.get(), sizeof(mp_tensor_report_t)),
        fault_value_(context_.get(), sizeof(float)),
        scaler_(mptools::make_scaler(context_.get(), program.scaler)) {
    mp_optimizer_desc_t desc = mp_optimizer_desc_default(program.rule);
    desc.flags = program.rule_flags;
    desc.groups = &program.group;
    desc.num_groups = 1;
    desc.grads = network_.grads();
    desc.master = network_.master();
    desc.model = network_.model();
    optimizer_ = mptools::make_optimizer(context_.get(), desc);
  }
  Training(const Program &program, const mp_allocator_t *allocator, const Bytes &saved)
      : Training(program, allocator) {
    const size_t bytes = checkpoint_bytes();
    mptools::check(mp_optimizer_restore_sync(optimizer_.get(), scaler_.get(), saved.data(), bytes,
                                             mptools::kStream));
    network_.restore_states(saved.data() + bytes);
  }

  /// @param number  from 1, counted like mp_scaler_state.steps
  void step(int64_t number, const Fault &fault) {
    network_.forward_and_backward(static_cast<uint64_t>(number), scaler_.get());
    put(fault);
    mp_step_options_t options = mp_step_options_default();
    options.max_grad_norm = 1.0f;
    if (learns_from_amax()) options.report = report_.as<mp_tensor_report_t>();
    mptools::check(mp_scale_step(optimizer_.get(), scaler_.get(), &options, mptools::kStream));
  }

  /// Returns a checkpoint of the optimizer, the running statistics, and the 16-bit copies, which
  /// are not restored but must be equal.
  Bytes checkpoint() const {
    Bytes all(checkpoint_bytes());
    mptools::check(mp_optimizer_save_sync(optimizer_.get(), scaler_.get(), all.data(), all.size(),
                                          mptools::kStream));
    const Bytes others = network_.states_and_copies();
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

  mp_step_outcome_t outcome(int64_t number) const {
    mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
    mptools::check(mp_stream_sync(context_.get(), mptools::kStream));
    mptools::check(mp_scaler_query_step(scaler_.get(), number, &outcome));
    return outcome;
  }

  mp_scaler_state_t scaler_state() const {
    mp_scaler_state_t state;
    MP_INIT_STRUCT(&state);
    mptools::check(mp_scaler_get_state_sync(scaler_.get(), &state, mptools::kStream));
    return state;
  }

  /// Number of steps that the optimizer has applied.
  int64_t applied() const {
    int64_t t = 0;
    mptools::check(mp_optimizer_get_step_sync(optimizer_.get(), &t, nullptr, mptools::kStream));
    return t;
  }

  float scale() const {
    return mptools::download_sync(context_.get(), mp_scaler_get_scale_address(scaler_.get()), 1)
        .front();
  }

  /// Measured amax of the last step, for policies that use it; otherwise 0.
  float scaled_amax() const {
    return mptools::download_sync(context_.get(), report_.as<const mp_tensor_report_t>(), 1)
        .front()
        .amax;
  }

 private:
  static mptools::Context make_own_context(const mp_allocator_t *allocator) {
    mp_context_config_t config = mp_context_config_default();
    config.device = MP_DEVICE_HOST;
    config.allocator = allocator;
    mp_context_t context = nullptr;
    mptools::check(mp_context_create(&context, &config));
    return mptools::Context(context);
  }

  size_t checkpoint_bytes() const {
    size_t bytes = 0;
    mptools::check(mp_optimizer_checkpoint_size(optimizer_.get(), scaler_.get(), &bytes));
    return bytes;
  }
  bool learns_from_amax() const {
    return program_.scaler.policy == MP_SCALER_POLICY_LOGNORMAL ||
           program_.scaler.policy == MP_SCALER_POLICY_LOGMAX;
  }

  /// Writes on the device: the value is multiplied by S and rounded to fp16 there.
  void put(const Fault &fault) {
    const mp_graph_tensor_t weights = network_.first_weights();
    const double magnitude = fault.kind == Fault::Kind::infinity ? HUGE_VAL
                             : fault.kind == Fault::Kind::nan    ? std::nan("")
                                                                 : std::ldexp(1.0, fault.log2);
    const auto value = static_cast<float>(fault.is_negative ? -magnitude : magnitude);
    mp_context_t context = context_.get();
    mptools::check(mp_memcpy(context, fault_value_.data(), &value, sizeof value, mptools::kStream));
    mptools::check(mp_scale_loss(scaler_.get(), fault_value_.data(), fault_value_.data(), MP_FP32,
                                 1, mptools::kStream));
    mptools::check(mp_cast(context, fault_value_.data(), MP_FP32, weights.grad, weights.dtype_grad,
                           1, mptools::kStream));
    mptools::check(mp_stream_sync(context, mptools::kStream));  // `value` is freed
  }

  Program program_;
  mptools::Context context_;
  Network network_;
  mptools::Buffer report_, fault_value_;
  mptools::Scaler scaler_;
  mptools::Optimizer optimizer_;
};

}  // namespace mptest
