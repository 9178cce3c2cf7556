// State of one rank: weights, optimizer and scaler.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sign_model.h"

namespace mptest {

/// One fp16 or fp32 buffer per tensor, and their list.
class Tensors {
 public:
  Tensors(mp_context_t context, mp_dtype_t dtype, const std::array<int64_t, 2> &numels = kNumels);

  mp_tensor_list_t list() const { return list_.get(); }
  template <typename T>
  T *at(size_t t) const {
    return buffers_[t].as<T>();
  }
  /// Memory of the host target, as bytes.
  std::string bytes() const;
  /// Restores the output of bytes(); removes it from the front of `bytes`.
  void take(std::string_view &bytes);

 private:
  std::vector<mptools::Buffer> buffers_;
  mptools::TensorList list_;
};

class Trainer {
 public:
  Trainer(mp_context_t context, uint64_t seed, int64_t first_sample, int64_t num_samples);

  /// @return the sum of this rank's losses
  int64_t compute_gradients(const Batch &batch);
  mp_tensor_list_t grads() const { return grads_.list(); }
  mp_status_t step(mp_step_options_t options);

  /// Steps so far, including skipped ones.
  int64_t steps() const { return state().steps; }
  mp_scaler_state_t state() const;
  mp_scaler_t scaler() const { return scaler_.get(); }
  /// Results of the latest step, bit by bit: its outcome, found_inf and the gradients' norm.
  std::string outcome() const;
  bool was_skipped() const { return found_inf_.as<float>()[0] != 0.0f; }
  Tensors &master() { return master_; }

  /// Weights, moments, t and S: all data that a step changes, except for the scaler's counts.  Only
  /// reads memory, so that another thread may call it during a call of the library.
  std::string weights() const;
  /// Checkpoint: weights() and the scaler's state.
  std::string checkpoint() const;
  void restore(std::string_view checkpoint);

 private:
  mptools::Optimizer make_optimizer() const;

  mp_context_t context_;
  Tensors master_, model_, m_, v_, grads_;
  mptools::Buffer grad_norm_, found_inf_;
  mptools::Scaler scaler_;
  mptools::Optimizer optimizer_;
  int64_t first_sample_, num_samples_;
};

}  // namespace mptest
