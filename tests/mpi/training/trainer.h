// State of one rank: weights, optimizer and scaler.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sign_model.h"

namespace mptest {

using mptools::check;
using mptools::kStream;

template <typename T>
std::string bytes_of(const T &plain) {
  return std::string(reinterpret_cast<const char *>(&plain), sizeof plain);
}

/// Removes data from the front of `bytes`.
inline void take(std::string_view &bytes, void *to, size_t size) {
  if (bytes.size() < size) throw std::runtime_error("the checkpoint ends too early.");
  std::memcpy(to, bytes.data(), size);
  bytes.remove_prefix(size);
}

inline mptools::Scaler make_scaler(mp_context_t context) {
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config.init_scale = config.max_scale = kMaxScale;
  config.growth_interval = 4;
  return mptools::make_scaler(context, config);
}

/// One fp16 or fp32 buffer per tensor, and their list.
class Tensors {
 public:
  Tensors(mp_context_t context, mp_dtype_t dtype, const std::array<int64_t, 2> &numels = kNumels) {
    std::vector<void *> data;
    for (const int64_t numel : numels) {
      buffers_.push_back(mptools::make_buffer(context, numel, dtype));
      data.push_back(buffers_.back().data());
    }
    list_ = mptools::make_list(context, dtype, data, {numels.begin(), numels.end()});
  }

  mp_tensor_list_t list() const { return list_.get(); }
  template <typename T>
  T *at(size_t t) const {
    return buffers_[t].as<T>();
  }
  /// Memory of the host target, as bytes.
  std::string bytes() const {
    std::string bytes;
    for (const mptools::Buffer &buffer : buffers_)
      bytes.append(buffer.as<char>(), static_cast<size_t>(buffer.bytes()));
    return bytes;
  }

  /// Restores the output of bytes(); removes it from the front of `bytes`.
  void take(std::string_view &bytes) {
    for (const mptools::Buffer &buffer : buffers_)
      mptest::take(bytes, buffer.data(), static_cast<size_t>(buffer.bytes()));
  }

 private:
  std::vector<mptools::Buffer> buffers_;
  mptools::TensorList list_;
};

class Trainer {
 public:
  Trainer(mp_context_t context, int64_t first_sample, int64_t num_samples)
      : context_(context),
        master_(context, MP_FP32),
        model_(context, MP_FP16),
        m_(context, MP_FP32),
        v_(context, MP_FP32),
        grads_(context, MP_FP16),
        grad_norm_(mptools::make_buffer(context, 1, MP_FP32)),
        found_inf_(mptools::make_buffer(context, 1, MP_FP32)),
        scaler_(make_scaler(context)),
        optimizer_(make_optimizer()),
        first_sample_(first_sample),
        num_samples_(num_samples) {
    Random random(kSeed + 1);
    for (size_t t = 0; t < kNumels.size(); ++t)
      for (int64_t i = 0; i < kNumels[t]; ++i)
        master_.at<float>(t)[i] = static_cast<float>(random.real(-0.1, 0.1));
    check(mp_masters_to_model(master_.list(), model_.list(), nullptr, nullptr, kStream));
  }

  /// @return the sum of this rank's losses
  int64_t compute_gradients(const Batch &batch) {
    return mptest::compute_gradients(batch, first_sample_, num_samples_,
                                     {model_.at<uint16_t>(0), model_.at<uint16_t>(1)},
                                     {grads_.at<uint16_t>(0), grads_.at<uint16_t>(1)}, scaler());
  }

  mp_tensor_list_t grads() const { return grads_.list(); }
  mp_status_t step(mp_step_options_t options) {
    options.grad_norm = grad_norm_.as<float>();
    options.found_inf = found_inf_.as<float>();
    return mp_scale_step(optimizer_.get(), scaler(), &options, kStream);
  }

  /// Steps so far, including skipped ones.
  int64_t steps() const { return state().steps; }
  mp_scaler_state_t state() const {
    mp_scaler_state_t state;
    MP_INIT_STRUCT(&state);
    check(mp_scaler_get_state_sync(scaler(), &state, kStream));
    return state;
  }

  mp_scaler_t scaler() const { return scaler_.get(); }
  /// Results of the latest step, bit by bit: its outcome, found_inf and the gradients' norm.
  std::string outcome() const {
    mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
    check(mp_scaler_query_step(scaler(), steps(), &outcome));
    return bytes_of(outcome) + bytes_of(*found_inf_.as<float>()) +
           bytes_of(*grad_norm_.as<float>());
  }

  bool was_skipped() const { return found_inf_.as<float>()[0] != 0.0f; }
  Tensors &master() { return master_; }

  /// Weights, moments, t and S: all data that a step changes, except for the scaler's counts.  Only
  /// reads memory, so that another thread may call it during a call of the library.
  std::string weights() const {
    return master_.bytes() + model_.bytes() + m_.bytes() + v_.bytes() +
           bytes_of(*mp_optimizer_get_step_address(optimizer_.get())) +
           bytes_of(*mp_scaler_get_scale_address(scaler()));
  }

  /// Checkpoint: weights() and the scaler's state.
  std::string checkpoint() const { return weights() + bytes_of(state()); }
  void restore(std::string_view checkpoint) {
    for (Tensors *const tensors : {&master_, &model_, &m_, &v_}) tensors->take(checkpoint);
    int64_t t = 0;
    take(checkpoint, &t, sizeof t);
    checkpoint.remove_prefix(sizeof(float));  // S, which is in the state too
    mp_scaler_state_t state;
    take(checkpoint, &state, sizeof state);
    check(mp_optimizer_set_step_sync(optimizer_.get(), t, nullptr, kStream));
    check(mp_scaler_set_state_sync(scaler(), &state, kStream));
  }

 private:
  mptools::Optimizer make_optimizer() const {
    const mp_param_group_t group = mp_param_group_default(MP_OPT_ADAM, 0.01f);
    mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_ADAM);
    desc.groups = &group;
    desc.grads = grads_.list();
    desc.master = master_.list();
    desc.model = model_.list();
    desc.m = m_.list();
    desc.v = v_.list();
    return mptools::make_optimizer(context_, desc);
  }

  mp_context_t context_;
  Tensors master_, model_, m_, v_, grads_;
  mptools::Buffer grad_norm_, found_inf_;
  mptools::Scaler scaler_;
  mptools::Optimizer optimizer_;
  int64_t first_sample_, num_samples_;
};

}  // namespace mptest
