// Tensor lists, scalers and optimizers for the tests of mp_scale_step, with automatic ownership and
// guarded memory.  Tensors can be misaligned, empty and of mixed types.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/testing.h"

namespace mptest {

// ---------------------------------------------------------------------------- ownership

using UniqueList = mptools::TensorList;
using UniqueScaler = mptools::Scaler;
using UniqueOptimizer = mptools::Optimizer;

UniqueScaler make_scaler(const mp_scaler_config_t &config);
UniqueScaler make_scaler(mp_scaler_policy_t policy);  ///< has the default configuration
mp_scaler_state_t state_of(mp_scaler_t scaler);
void set_state(mp_scaler_t scaler, const mp_scaler_state_t &state);
/// Compares bytes, so that NaN equals itself.
bool same_state(const UniqueScaler &one, const UniqueScaler &other);
bool same_state(const mp_scaler_state_t &one, const mp_scaler_state_t &other);
/// Waits for all enqueued work (mp_scaler_query_step does not), then returns the outcome of a step.
mp_step_outcome_t outcome_sync(const UniqueScaler &scaler, int64_t step);
/// All policies whose S is a number for any gradients.
inline constexpr mp_scaler_policy_t kScalerPolicies[] = {
    MP_SCALER_POLICY_STATIC, MP_SCALER_POLICY_BACKOFF, MP_SCALER_POLICY_LOGNORMAL};

// ---------------------------------------------------------------------------- single floats

float read_float(const float *device);
void write_float(float *device, float value);

float scale_of(const UniqueScaler &scaler);
float flag_of(const UniqueScaler &scaler);
/// Sets the flag like a GEMM epilogue with an overflowing activation gradient.
void raise_flag(const UniqueScaler &scaler, float flag = 1.0f);

/// Compares bits, so that NaN equals itself and -0 differs from 0.
bool same_bits(float x, float y);

// ---------------------------------------------------------------------------- tensors

struct TensorSpec {
  mp_dtype_t dtype;  ///< MP_DTYPE_NONE: a NULL pointer in the list
  int64_t numel;
  int64_t offset = 0;  ///< in elements, from 256-byte alignment
};

/// One vector per tensor.
using TensorValues = std::vector<std::vector<double>>;

/// Tensors between guard zones of NaN, and a list of them.
class TensorSet {
 public:
  explicit TensorSet(const std::vector<TensorSpec> &specs,
                     mp_context_t context = mptest::context());

  size_t count() const { return specs_.size(); }
  const TensorSpec &spec(size_t t) const { return specs_[t]; }
  const std::vector<TensorSpec> &specs() const { return specs_; }
  const DeviceArray &at(size_t t) const { return arrays_[t]; }
  mp_tensor_list_t list() const { return list_.get(); }
  std::vector<void *> pointers() const;
  UniqueList list_in(mp_context_t context) const;

  void upload(const TensorValues &values);
  void fill(double value);
  TensorValues download() const;
  /// Returns the bits of all tensors, to compare states or sets.
  std::vector<uint8_t> bits() const;
  /// Sets the storage bits of an element, to distinguish NaNs.
  void inject(size_t t, int64_t at, uint32_t bits);

 private:
  std::vector<TensorSpec> specs_;
  std::deque<DeviceArray> arrays_;
  UniqueList list_;
};

/// Returns integers in [-range, range], or reals in [-range, range).
TensorValues integer_values(const std::vector<TensorSpec> &specs, Random &random, int64_t range);
TensorValues real_values(const std::vector<TensorSpec> &specs, Random &random, double range);
TensorValues constant_values(const std::vector<TensorSpec> &specs, double value);
std::vector<TensorSpec> with_dtype(std::vector<TensorSpec> specs, mp_dtype_t dtype);
/// Counts the elements that differ; NaN equals itself.
int count_differences(const TensorValues &got, const TensorValues &wanted);
/// Makes one random element infinite or NaN in all sets, which have equal shapes and types.
void inject_nonfinite(std::initializer_list<TensorSet *> sets, Random &random);
/// Sets equal random gradients in all sets; in about every third call one is not finite.
/// @return whether one is
bool upload_gradients(std::initializer_list<TensorSet *> sets, Random &random);

/// Tensors of all types, with sizes around 8-element vectors and chunks, misaligned ones, and empty
/// ones at both ends and in the middle.
std::vector<TensorSpec> awkward_tensors();
/// Fewer and smaller tensors, for tests of many steps.
std::vector<TensorSpec> small_tensors();
constexpr int64_t kChunk = 16384;  ///< elements that a block processes at a time

// ---------------------------------------------------------------------------- optimizers

struct OptimizerSpec {
  mp_optimizer_kind_t kind = MP_OPT_SGD;
  uint32_t flags = 0;
  std::vector<mp_param_group_t> groups;
  std::vector<uint32_t> tensor_group;  ///< empty: all in group 0
  std::vector<TensorSpec> grads;
  std::vector<mp_dtype_t> model;  ///< per tensor, MP_DTYPE_NONE = no copy; empty: no list
  bool has_m = true;              ///< used by kinds for which m is optional
  bool has_own_moments = false;   ///< the optimizer allocates m and v
  std::vector<float> lr_multipliers, decay_multipliers;  ///< per tensor; empty: none
  bool has_extra = false;                                ///< passes a list of extra gradients
  uint64_t rounding_seed = 0;
};

mp_param_group_t sgd_hyper(float lr, float momentum, float dampening = 0.0f,
                           float weight_decay = 0.0f);
mp_param_group_t adam_hyper(float lr, float weight_decay = 0.0f);

/// All state that a step can change.
struct OptimizerState {
  int64_t t;
  std::vector<float> lr;
  std::vector<uint8_t> master, model, m, v;
  bool operator==(const OptimizerState &) const = default;
};

/// An optimizer and its tensors.  m and v start at 0, as mpcore/optimizer.h requires.
class OptimizerRun {
 public:
  explicit OptimizerRun(const OptimizerSpec &spec, mp_context_t context = mptest::context());

  const OptimizerSpec &spec() const { return spec_; }
  mp_optimizer_t get() const { return optimizer_.get(); }
  TensorSet &grads() { return grads_; }
  TensorSet &master() { return master_; }
  TensorSet *model() { return model_ ? &*model_ : nullptr; }
  TensorSet *m() { return m_ ? &*m_ : nullptr; }
  TensorSet *v() { return v_ ? &*v_ : nullptr; }
  TensorSet *extra() { return extra_ ? &*extra_ : nullptr; }
  float lr(uint32_t group) const { return read_float(mp_optimizer_get_lr_address(get()) + group); }
  const mp_param_group_t &hyper_of(size_t t) const;

  void step(const float *grad_scale = nullptr, const float *found_inf = nullptr);
  void set_hyper(uint32_t group, const mp_param_group_t &hyper);
  /// Overwrites the caller-owned multipliers, as mpcore/optimizer.h allows.
  void set_lr_multipliers(const std::vector<float> &multipliers);
  int64_t t() const;
  void set_t(int64_t t);
  OptimizerState state() const;

 private:
  OptimizerSpec spec_;
  TensorSet grads_, master_;
  std::optional<TensorSet> model_, m_, v_, extra_;
  std::unique_ptr<DeviceBuffer<float>> lr_multipliers_, decay_multipliers_;  ///< may be NULL
  UniqueOptimizer optimizer_;
};

/// Returns default options except for these.
mp_step_options_t step_options(uint32_t flags = 0, float max_grad_norm = 0.0f);

/// An optimizer, its scaler if there is one, and the values that a step reports.
struct StepRun {
  /// The weights are 1, the copies -7.
  explicit StepRun(const OptimizerSpec &spec,
                   const std::optional<mp_scaler_config_t> &config = std::nullopt);

  /// Returns the scaler, or the optimizer's internal one.
  mp_scaler_t used_scaler() const {
    return scaler ? scaler.get() : mp_optimizer_get_scaler(run.get());
  }
  void set_grads(double value) { run.grads().fill(value); }
  /// Sets the first element of the first tensor that is not empty.
  void inject(double value);
  /// Takes a step with all outputs that the options allow, and with another scaler if it is given.
  mp_status_t try_step(mp_step_options_t options, mp_scaler_t other = nullptr);
  void step(const mp_step_options_t &options = step_options(), mp_scaler_t other = nullptr) {
    require_ok(try_step(options, other));
  }

  OptimizerRun run;
  UniqueScaler scaler;
  bool reports_norms = true;
  DeviceFloat grad_norm{-1.0f}, skipped{-1.0f};
  DeviceBuffer<float> tensor_norms{std::vector<float>(run.grads().count(), -1.0f)};
};

/// Checks the gradients as epilogues do while they write them.
/// @param amax  receives the largest magnitude
void check_gradients(StepRun &side, const DeviceFloat &amax);
/// Compares states, reports and scalers, and checks that no flag is raised.
void check_equal(const StepRun &one, const StepRun &other);

}  // namespace mptest
