// A training run of the network, with its own context, graph, optimizer and scaler, and its
// checkpoint.
#pragma once

#include <cstdint>
#include <optional>
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
  explicit Training(const Program &program, const mp_allocator_t *allocator = nullptr);
  Training(const Program &program, const mp_allocator_t *allocator, const Bytes &saved);

  /// @param number  from 1, counted like mp_scaler_state.steps
  void step(int64_t number, const Fault &fault);
  Bytes checkpoint() const;

  mp_step_outcome_t outcome(int64_t number) const;
  mp_scaler_state_t scaler_state() const;
  /// Number of steps that the optimizer has applied.
  int64_t applied() const;
  float scale() const;
  /// Measured amax of the last step, for policies that use it; otherwise 0.
  float scaled_amax() const;

 private:
  /// Tensors m and v, if the optimizer uses them.
  struct Moments {
    mptools::TensorList m, v;
    mptools::Buffer m_memory, v_memory;
  };

  mptools::TensorList zeros(const std::vector<int64_t> &numel, mptools::Buffer &memory) const;
  bool rounds_at_random() const {
    return (program_.rule_flags & MP_OPT_FLAG_STOCHASTIC_ROUNDING) != 0;
  }
  bool learns_from_amax() const {
    return program_.scaler.policy == MP_SCALER_POLICY_LOGNORMAL ||
           program_.scaler.policy == MP_SCALER_POLICY_LOGMAX;
  }
  void put(const Fault &fault);

  Program program_;
  mptools::Context context_;
  Network network_;
  Moments moments_;
  mptools::Buffer report_, fault_value_;
  mptools::Scaler scaler_;
  mptools::Optimizer optimizer_;
};

}  // namespace mptest
