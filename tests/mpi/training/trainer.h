// State of one rank: weights, optimizer and scaler.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
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

  /// Weights, t and S.  Only reads memory, so that a callback may call it.
  std::string weights() const {
    return master_.bytes() + model_.bytes() +
           bytes_of(*mp_optimizer_get_step_address(optimizer_.get())) +
           bytes_of(*mp_scaler_get_scale_address(scaler()));
  }

  /// weights() and a checkpoint of the optimizer: all data that a step changes.
  std::string checkpoint() const {
    std::string all = weights();
    const size_t start = all.size();
    size_t bytes = 0;
    check(mp_optimizer_checkpoint_size(optimizer_.get(), scaler(), &bytes));
    all.resize(start + bytes);
    check(mp_optimizer_save_sync(optimizer_.get(), scaler(), &all[start], bytes, kStream));
    return all;
  }
  void restore(std::string_view saved) {
    const size_t start = std::min(weights().size(), saved.size());
    check(mp_optimizer_restore_sync(optimizer_.get(), scaler(), saved.data() + start,
                                    saved.size() - start, kStream));
  }

 private:
  mptools::Optimizer make_optimizer() const {
    const mp_param_group_t group = mp_param_group_default(MP_OPT_ADAM, 0.01f);
    mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_ADAM);
    desc.groups = &group;
    desc.grads = grads_.list();
    desc.master = master_.list();
    desc.model = model_.list();
    return mptools::make_optimizer(context_, desc);
  }

  mp_context_t context_;
  Tensors master_, model_, grads_;
  mptools::Buffer grad_norm_, found_inf_;
  mptools::Scaler scaler_;
  mptools::Optimizer optimizer_;
  int64_t first_sample_, num_samples_;
};

}  // namespace mptest
