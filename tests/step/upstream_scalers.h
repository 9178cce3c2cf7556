// Loss scalers of other systems, reimplemented with upstream's variables and arithmetic: Python
// numbers are doubles, tensors are floats.  Class and member names are upstream's.
//
// Constructors take the growth interval, and the hysteresis if there is one, so that short
// sequences cover all branches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "mpcore.h"

namespace mptest::upstream {

class Scaler {
 public:
  virtual ~Scaler() = default;
  /// Returns S in upstream's precision.
  virtual double scale() const = 0;
  /// @param scaled_amax  largest gradient, multiplied by the scale; finite unless `overflow`
  virtual void update(bool overflow, float scaled_amax) = 0;
};

/// aten/src/ATen/native/cuda/AmpKernels.cu: amp_update_scale.
class Torch : public Scaler {
 public:
  explicit Torch(int growth_interval) : growth_interval_(growth_interval) {}
  double scale() const override { return double{current_scale_}; }
  void update(bool overflow, float) override {
    if (overflow) {
      current_scale_ = static_cast<float>(double{current_scale_} * 0.5);
      growth_tracker_ = 0;
      return;
    }
    const int successful = growth_tracker_ + 1;
    if (successful == growth_interval_) {
      const float new_scale = static_cast<float>(double{current_scale_} * 2.0);
      if (std::isfinite(new_scale)) current_scale_ = new_scale;
      growth_tracker_ = 0;
    } else {
      growth_tracker_ = successful;
    }
  }

 private:
  int growth_interval_;
  float current_scale_ = 65536.0f;
  int growth_tracker_ = 0;
};

/// Apex, apex/amp/scaler.py: LossScaler.
class ApexAmp : public Scaler {
 public:
  explicit ApexAmp(int scale_window) : scale_seq_len_(scale_window) {}
  double scale() const override { return loss_scale_; }
  void update(bool overflow, float) override {
    if (overflow) {
      loss_scale_ /= 2.0;
      unskipped_ = 0;
    } else {
      unskipped_ += 1;
    }
    if (unskipped_ == scale_seq_len_) {
      loss_scale_ = std::min(16777216.0, loss_scale_ * 2.0);
      unskipped_ = 0;
    }
  }

 private:
  int scale_seq_len_;
  double loss_scale_ = 65536.0;
  int unskipped_ = 0;
};

/// Apex, csrc/update_scale_hysteresis.cu.
class ApexHysteresis : public Scaler {
 public:
  ApexHysteresis(int growth_interval, int hysteresis)
      : growth_interval_(growth_interval), hysteresis_(hysteresis) {}
  double scale() const override { return double{current_scale_}; }
  void update(bool overflow, float) override {
    if (overflow) {
      hysteresis_tracker_ -= 1;
      if (hysteresis_tracker_ > 0) {
        growth_tracker_ = 0;
        return;
      }
    }
    if (overflow) {
      current_scale_ = current_scale_ * 0.5f;
      growth_tracker_ = 0;
    } else {
      const int successful = growth_tracker_ + 1;
      if (successful == growth_interval_) {
        const float new_scale = current_scale_ * 2.0f;
        if (std::isfinite(new_scale)) current_scale_ = new_scale;
        growth_tracker_ = 0;
      } else {
        growth_tracker_ = successful;
      }
    }
    if (!overflow) hysteresis_tracker_ = hysteresis_;
  }

 private:
  int growth_interval_, hysteresis_;
  float current_scale_ = 65536.0f;
  int growth_tracker_ = 0;
  int hysteresis_tracker_ = hysteresis_;
};

/// Megatron-LM core/optimizer/grad_scaler.py: DynamicGradScaler.
class Megatron : public Scaler {
 public:
  Megatron(int growth_interval, int hysteresis)
      : growth_interval_(growth_interval), hysteresis_(hysteresis) {}
  double scale() const override { return double{scale_}; }
  void update(bool found_inf, float) override {
    if (found_inf) {
      growth_tracker_ = 0;
      hysteresis_tracker_ -= 1;
      if (hysteresis_tracker_ <= 0) scale_ = std::max(scale_ * 0.5f, 1.0f);
    } else {
      growth_tracker_ += 1;
      if (growth_tracker_ == growth_interval_) {
        growth_tracker_ = 0;
        hysteresis_tracker_ = hysteresis_;
        scale_ = scale_ * 2.0f;
      }
    }
  }
  int growth_tracker() const { return growth_tracker_; }
  int hysteresis_tracker() const { return hysteresis_tracker_; }

 private:
  int growth_interval_, hysteresis_;
  float scale_ = 4294967296.0f;
  int growth_tracker_ = 0;
  int hysteresis_tracker_ = hysteresis_;
};

/// DeepSpeed runtime/fp16/loss_scaler.py: DynamicLossScaler, raise_error_at_min_scale = False.
class DeepSpeed : public Scaler {
 public:
  DeepSpeed(int scale_window, int delayed_shift, bool consecutive_hysteresis = false)
      : scale_window_(scale_window),
        delayed_shift_(delayed_shift),
        consecutive_hysteresis_(consecutive_hysteresis) {}
  double scale() const override { return cur_scale_; }
  void update(bool overflow, float) override {
    if (overflow) {
      if (delayed_shift_ == 1 || cur_hysteresis_ == 1) {
        cur_scale_ = std::max(cur_scale_ / 2.0, 1.0);
      } else {
        cur_hysteresis_ -= 1;
      }
      last_overflow_iter_ = cur_iter_;
    } else {
      if (consecutive_hysteresis_) cur_hysteresis_ = delayed_shift_;
      if ((cur_iter_ - last_overflow_iter_) % scale_window_ == 0) {
        if (!consecutive_hysteresis_) cur_hysteresis_ = delayed_shift_;
        cur_scale_ *= 2.0;
      }
    }
    cur_iter_ += 1;
  }

 private:
  int scale_window_, delayed_shift_;
  bool consecutive_hysteresis_;
  double cur_scale_ = 65536.0;
  int64_t cur_iter_ = 0, last_overflow_iter_ = -1;
  int cur_hysteresis_ = delayed_shift_;
};

/// DeepSpeed runtime/fp16/fused_optimizer.py: FP16_Optimizer._update_scale.
class DeepSpeedFused : public Scaler {
 public:
  explicit DeepSpeedFused(int scale_window) : scale_window_(scale_window) {}
  double scale() const override { return cur_scale_; }
  void update(bool skip, float) override {
    if (skip) {
      cur_scale_ = std::max(cur_scale_ / 2.0, 1.0);
      last_overflow_iter_ = cur_iter_;
    } else {
      const int64_t stable_interval = (cur_iter_ - last_overflow_iter_) - 1;
      if (stable_interval > 0 && stable_interval % scale_window_ == 0) cur_scale_ *= 2.0;
    }
    cur_iter_ += 1;
  }

 private:
  int scale_window_;
  double cur_scale_ = 65536.0;
  int64_t cur_iter_ = 0, last_overflow_iter_ = -1;
};

/// tensorflow/python/training/experimental/loss_scale.py: DynamicLossScale.
class Keras : public Scaler {
 public:
  explicit Keras(int increment_period) : increment_period_(increment_period) {}
  double scale() const override { return double{current_loss_scale_}; }
  void update(bool overflow, float) override {
    if (overflow) {
      num_good_steps_ = 0;
      current_loss_scale_ = std::max(current_loss_scale_ / 2.0f, 1.0f);
    } else if (num_good_steps_ + 1 >= increment_period_) {
      const float new_loss_scale = current_loss_scale_ * 2.0f;
      if (std::isfinite(new_loss_scale)) current_loss_scale_ = new_loss_scale;
      num_good_steps_ = 0;
    } else {
      num_good_steps_ += 1;
    }
  }

 private:
  int increment_period_;
  float current_loss_scale_ = 32768.0f;
  int64_t num_good_steps_ = 0;
};

/// keras/src/optimizers/loss_scale_optimizer.py of Keras 3.
class Keras3 : public Scaler {
 public:
  explicit Keras3(int dynamic_growth_steps) : dynamic_growth_steps_(dynamic_growth_steps) {}
  double scale() const override { return double{dynamic_scale_}; }
  void update(bool overflow, float) override {
    if (overflow) {
      step_counter_ = 0;
      dynamic_scale_ = dynamic_scale_ / 2.0f;
    } else if (step_counter_ == dynamic_growth_steps_ - 1) {
      step_counter_ = 0;
      dynamic_scale_ = dynamic_scale_ * 2.0f;
    } else {
      step_counter_ += 1;
    }
  }

 private:
  int dynamic_growth_steps_;
  float dynamic_scale_ = 32768.0f;
  int step_counter_ = 0;
};

/// OpenSeq2Seq optimizers/automatic_loss_scaler.py: BackoffScaler.
class OpenSeq2SeqBackoff : public Scaler {
 public:
  explicit OpenSeq2SeqBackoff(int step_window) : step_window_(step_window) {}
  double scale() const override { return double{scale_}; }
  void update(bool overflow, float) override {
    if (overflow) {
      scale_ = std::clamp(scale_ / 2.0f, 1.0f, 16384.0f);
      last_overflow_iteration_ = iteration_;
    } else if ((iteration_ - last_overflow_iteration_) % step_window_ == 0) {
      scale_ = std::clamp(scale_ * 2.0f, 1.0f, 16384.0f);
    }
    iteration_ += 1;
  }

 private:
  int step_window_;
  float scale_ = 16384.0f;
  int64_t iteration_ = 0, last_overflow_iteration_ = -1;
};

/// LogMaxScaler from the same file, which computes in float.  TensorFlow's log and pow are accurate
/// to about an ulp; here they are rounded correctly.
class OpenSeq2SeqLogMax : public Scaler {
 public:
  explicit OpenSeq2SeqLogMax(float scale_max) : scale_max_(scale_max) {}
  double scale() const override { return double{scale_}; }
  void update(bool overflow, float scaled_amax) override {
    const float amax = scaled_amax * static_cast<float>(1.0 / double{scale_});
    const float x = overflow ? 65536.0f : log_of(amax) / log_of(2.0f);
    const float b1 = static_cast<float>(0.99), c1 = static_cast<float>(1 - 0.99);
    const float b2 = static_cast<float>(0.999), c2 = static_cast<float>(1 - 0.999);
    x_hat_ = b1 * x_hat_ + c1 * x;
    b1_correction_ = b1_correction_ * b1;
    slow_x_hat_ = b2 * slow_x_hat_ + c2 * x;
    xsquared_hat_ = b2 * xsquared_hat_ + c2 * (x * x);
    b2_correction_ = b2_correction_ * b2;
    const float mu = x_hat_ / (1 - b1_correction_);
    const float e_xsquared = xsquared_hat_ / (1 - b2_correction_);
    const float slow_mu = slow_x_hat_ / (1 - b2_correction_);
    const float sigma2 = e_xsquared - slow_mu * slow_mu;
    const float sigma = std::sqrt(sigma2 < 0 ? 0 : sigma2);  // keeps NaN
    const float log_cutoff = sigma * static_cast<float>(3.09) + mu;
    const float log_difference = 16 - log_cutoff;
    const float proposed = static_cast<float>(std::pow(2.0, double{log_difference}));
    scale_ = std::isnan(proposed) ? proposed : std::clamp(proposed, 1.0f, scale_max_);
  }

 private:
  static float log_of(float x) { return static_cast<float>(std::log(double{x})); }

  float scale_max_;
  float scale_ = 1;
  float x_hat_ = 0, slow_x_hat_ = 0, xsquared_hat_ = 0;
  float b1_correction_ = 1, b2_correction_ = 1;
};

/// The library's policy: OpenSeq2Seq's with the corrections described in mpcore/scaler.h.
class Lognormal : public Scaler {
 public:
  explicit Lognormal(const mp_scaler_config_t &config)
      : config_(config), scale_(config.init_scale) {}
  double scale() const override { return scale_; }
  void update(bool overflow, float scaled_amax) override {
    if (overflow) {
      clean_ = 0;
      overflowed_ = true;
      const double backed_off = scale_ * config_.backoff_factor;
      if (has_samples_) headroom_ = std::max(headroom_, raw() - std::log2(backed_off));
      scale_ = clipped(backed_off);
      return;
    }
    if (scaled_amax == 0.0f) return;
    const bool is_first = !has_samples_;
    add(std::log2(double{scaled_amax}) - std::log2(scale_));
    if (is_first && overflowed_) headroom_ = std::max(headroom_, raw() - std::log2(scale_));
    if (++clean_ % config_.growth_interval == 0) headroom_ = std::max(headroom_ - 1.0, 0.0);
    scale_ = clipped(std::exp2(std::floor(raw() - headroom_)));
  }

 private:
  double clipped(double scale) const {
    return std::clamp(scale, double{config_.min_scale}, double{config_.max_scale});
  }
  static void mix(float &mean, double beta, double sample) {
    mean = static_cast<float>(beta * double{mean} + (1.0 - beta) * sample);
  }
  void add(double x) {
    has_samples_ = true;
    mix(fast_, config_.beta1, x);
    mix(slow_, config_.beta2, x);
    mix(square_, config_.beta2, x * x);
    fast_weight_ *= config_.beta1;
    slow_weight_ *= config_.beta2;
  }
  double raw() const {
    const double mu = fast_ / (1.0 - fast_weight_), slow_mu = slow_ / (1.0 - slow_weight_);
    const double variance = square_ / (1.0 - slow_weight_) - slow_mu * slow_mu;
    const double sigma = std::max(std::sqrt(std::max(variance, 0.0)), double{config_.sigma_floor});
    return std::floor(double{config_.log2_max} - mu - double{config_.overflow_std_dev} * sigma);
  }

  mp_scaler_config_t config_;
  double scale_, headroom_ = 0.0;
  int64_t clean_ = 0;
  bool has_samples_ = false, overflowed_ = false;
  float fast_ = 0, slow_ = 0, square_ = 0;
  double fast_weight_ = 1.0, slow_weight_ = 1.0;
};

/// Returns the upstream scaler of a preset.
inline std::unique_ptr<Scaler> make_scaler(mp_scaler_preset_t preset, int interval,
                                           int hysteresis) {
  switch (preset) {
    case MP_SCALER_PRESET_LOGNORMAL: {
      mp_scaler_config_t config = mp_scaler_config_preset(preset);
      config.growth_interval = interval;
      return std::make_unique<Lognormal>(config);
    }
    case MP_SCALER_PRESET_TORCH:
      return std::make_unique<Torch>(interval);
    case MP_SCALER_PRESET_APEX_AMP:
      return std::make_unique<ApexAmp>(interval);
    case MP_SCALER_PRESET_APEX_HYSTERESIS:
      return std::make_unique<ApexHysteresis>(interval, hysteresis);
    case MP_SCALER_PRESET_MEGATRON:
      return std::make_unique<Megatron>(interval, hysteresis);
    case MP_SCALER_PRESET_DEEPSPEED:
      return std::make_unique<DeepSpeed>(interval, hysteresis);
    case MP_SCALER_PRESET_DEEPSPEED_FUSED:
      return std::make_unique<DeepSpeedFused>(interval);
    case MP_SCALER_PRESET_KERAS:
      return std::make_unique<Keras>(interval);
    case MP_SCALER_PRESET_KERAS_3:
      return std::make_unique<Keras3>(interval);
    case MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF:
      return std::make_unique<OpenSeq2SeqBackoff>(interval);
    case MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX:
      return std::make_unique<OpenSeq2SeqLogMax>(16384.0f);
  }
  return nullptr;
}

}  // namespace mptest::upstream
