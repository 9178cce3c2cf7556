// Loss scalers of other systems, reimplemented with upstream's variables and arithmetic: Python
// numbers are doubles, tensors are floats.  Names of variables are upstream's.
//
// A scaler is a function with state.  The functions that create them take the growth interval, and
// the hysteresis if there is one, so that short sequences cover all branches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "mpcore.h"

namespace mptest::upstream {

/// Makes an update; returns S in upstream's precision.
/// @param scaled_amax  largest gradient, multiplied by the scale; finite unless `overflow`
using Update = std::function<double(bool overflow, float scaled_amax)>;

/// aten/src/ATen/native/cuda/AmpKernels.cu: amp_update_scale.
inline Update torch(int growth_interval) {
  return [=, current_scale = 65536.0f, growth_tracker = 0](bool found_inf, float) mutable {
    if (found_inf) {
      current_scale = static_cast<float>(double{current_scale} * 0.5);
      growth_tracker = 0;
    } else if (const int successful = growth_tracker + 1; successful == growth_interval) {
      const float new_scale = static_cast<float>(double{current_scale} * 2.0);
      if (std::isfinite(new_scale)) current_scale = new_scale;
      growth_tracker = 0;
    } else {
      growth_tracker = successful;
    }
    return current_scale;
  };
}

/// Apex, apex/amp/scaler.py: LossScaler.
inline Update apex_amp(int scale_seq_len) {
  return [=, loss_scale = 65536.0, unskipped = 0](bool has_overflow, float) mutable {
    if (has_overflow) {
      loss_scale /= 2.0;
      unskipped = 0;
    } else {
      unskipped += 1;
    }
    if (unskipped == scale_seq_len) {
      loss_scale = std::min(16777216.0, loss_scale * 2.0);
      unskipped = 0;
    }
    return loss_scale;
  };
}

/// Apex, csrc/update_scale_hysteresis.cu.
inline Update apex_hysteresis(int growth_interval, int hysteresis) {
  return [=, current_scale = 65536.0f, growth_tracker = 0, hysteresis_tracker = hysteresis](
             bool found_inf, float) mutable {
    if (found_inf) {
      hysteresis_tracker -= 1;
      if (hysteresis_tracker > 0) {
        growth_tracker = 0;
        return current_scale;
      }
    }
    if (found_inf) {
      current_scale = current_scale * 0.5f;
      growth_tracker = 0;
    } else if (const int successful = growth_tracker + 1; successful == growth_interval) {
      const float new_scale = current_scale * 2.0f;
      if (std::isfinite(new_scale)) current_scale = new_scale;
      growth_tracker = 0;
    } else {
      growth_tracker = successful;
    }
    if (!found_inf) hysteresis_tracker = hysteresis;
    return current_scale;
  };
}

/// Megatron-LM core/optimizer/grad_scaler.py: DynamicGradScaler.
struct Megatron {
  int growth_interval, hysteresis;
  float scale = 4294967296.0f;
  int growth_tracker = 0;
  int hysteresis_tracker = hysteresis;

  double operator()(bool found_inf, float) {
    if (found_inf) {
      growth_tracker = 0;
      hysteresis_tracker -= 1;
      if (hysteresis_tracker <= 0) scale = std::max(scale * 0.5f, 1.0f);
    } else {
      growth_tracker += 1;
      if (growth_tracker == growth_interval) {
        growth_tracker = 0;
        hysteresis_tracker = hysteresis;
        scale = scale * 2.0f;
      }
    }
    return double{scale};
  }
};

/// DeepSpeed runtime/fp16/loss_scaler.py: DynamicLossScaler, raise_error_at_min_scale = False.
inline Update deepspeed(int scale_window, int delayed_shift, bool consecutive_hysteresis = false) {
  return [=, cur_scale = 65536.0, cur_iter = int64_t{0}, last_overflow_iter = int64_t{-1},
          cur_hysteresis = delayed_shift](bool overflow, float) mutable {
    if (overflow) {
      if (delayed_shift == 1 || cur_hysteresis == 1) {
        cur_scale = std::max(cur_scale / 2.0, 1.0);
      } else {
        cur_hysteresis -= 1;
      }
      last_overflow_iter = cur_iter;
    } else {
      if (consecutive_hysteresis) cur_hysteresis = delayed_shift;
      if ((cur_iter - last_overflow_iter) % scale_window == 0) {
        if (!consecutive_hysteresis) cur_hysteresis = delayed_shift;
        cur_scale *= 2.0;
      }
    }
    cur_iter += 1;
    return cur_scale;
  };
}

/// DeepSpeed runtime/fp16/fused_optimizer.py: FP16_Optimizer._update_scale.
inline Update deepspeed_fused(int scale_window) {
  return [=, cur_scale = 65536.0, cur_iter = int64_t{0}, last_overflow_iter = int64_t{-1}](
             bool skip, float) mutable {
    if (skip) {
      cur_scale = std::max(cur_scale / 2.0, 1.0);
      last_overflow_iter = cur_iter;
    } else {
      const int64_t stable_interval = (cur_iter - last_overflow_iter) - 1;
      if (stable_interval > 0 && stable_interval % scale_window == 0) cur_scale *= 2.0;
    }
    cur_iter += 1;
    return cur_scale;
  };
}

/// tensorflow/python/training/experimental/loss_scale.py: DynamicLossScale.
inline Update keras(int increment_period) {
  return [=, current_loss_scale = 32768.0f, num_good_steps = 0](bool overflow, float) mutable {
    if (overflow) {
      num_good_steps = 0;
      current_loss_scale = std::max(current_loss_scale / 2.0f, 1.0f);
    } else if (num_good_steps + 1 >= increment_period) {
      const float new_loss_scale = current_loss_scale * 2.0f;
      if (std::isfinite(new_loss_scale)) current_loss_scale = new_loss_scale;
      num_good_steps = 0;
    } else {
      num_good_steps += 1;
    }
    return current_loss_scale;
  };
}

/// keras/src/optimizers/loss_scale_optimizer.py of Keras 3.
inline Update keras_3(int dynamic_growth_steps) {
  return [=, dynamic_scale = 32768.0f, step_counter = 0](bool overflow, float) mutable {
    if (overflow) {
      step_counter = 0;
      dynamic_scale = dynamic_scale / 2.0f;
    } else if (step_counter == dynamic_growth_steps - 1) {
      step_counter = 0;
      dynamic_scale = dynamic_scale * 2.0f;
    } else {
      step_counter += 1;
    }
    return dynamic_scale;
  };
}

/// OpenSeq2Seq optimizers/automatic_loss_scaler.py: BackoffScaler.
inline Update openseq2seq_backoff(int step_window) {
  return [=, scale = 16384.0f, iteration = int64_t{0}, last_overflow_iteration = int64_t{-1}](
             bool overflow, float) mutable {
    if (overflow) {
      scale = std::clamp(scale / 2.0f, 1.0f, 16384.0f);
      last_overflow_iteration = iteration;
    } else if ((iteration - last_overflow_iteration) % step_window == 0) {
      scale = std::clamp(scale * 2.0f, 1.0f, 16384.0f);
    }
    iteration += 1;
    return scale;
  };
}

/// LogMaxScaler from the same file, which computes in float.  TensorFlow's log and pow are accurate
/// to about an ulp; here they are rounded correctly.
struct OpenSeq2SeqLogMax {
  double operator()(bool overflow, float scaled_amax) {
    const float amax = scaled_amax * static_cast<float>(1.0 / double{scale});
    const float x = overflow ? 65536.0f : log_of(amax) / log_of(2.0f);
    const float b1 = static_cast<float>(0.99), c1 = static_cast<float>(1 - 0.99);
    const float b2 = static_cast<float>(0.999), c2 = static_cast<float>(1 - 0.999);
    x_hat = b1 * x_hat + c1 * x;
    b1_correction = b1_correction * b1;
    slow_x_hat = b2 * slow_x_hat + c2 * x;
    xsquared_hat = b2 * xsquared_hat + c2 * (x * x);
    b2_correction = b2_correction * b2;
    const float mu = x_hat / (1 - b1_correction);
    const float e_xsquared = xsquared_hat / (1 - b2_correction);
    const float slow_mu = slow_x_hat / (1 - b2_correction);
    const float sigma2 = e_xsquared - slow_mu * slow_mu;
    const float sigma = std::sqrt(sigma2 < 0 ? 0 : sigma2);  // keeps NaN
    const float log_cutoff = sigma * static_cast<float>(3.09) + mu;
    const float log_difference = 16 - log_cutoff;
    const float proposed = static_cast<float>(std::pow(2.0, double{log_difference}));
    scale = std::isnan(proposed) ? proposed : std::clamp(proposed, 1.0f, 16384.0f);
    return double{scale};
  }

  static float log_of(float x) { return static_cast<float>(std::log(double{x})); }

  float scale = 1;
  float x_hat = 0, slow_x_hat = 0, xsquared_hat = 0;
  float b1_correction = 1, b2_correction = 1;
};

/// The library's policy: OpenSeq2Seq's with the corrections described in mpcore/scaler.h.
class Lognormal {
 public:
  explicit Lognormal(const mp_scaler_config_t &config)
      : config_(config), scale_(config.init_scale) {}
  double operator()(bool overflow, float scaled_amax) {
    if (overflow) {
      clean_ = 0;
      overflowed_ = true;
      const double backed_off = scale_ * config_.backoff_factor;
      if (has_samples_) headroom_ = std::max(headroom_, raw() - std::log2(backed_off));
      return scale_ = clipped(backed_off);
    }
    if (scaled_amax == 0.0f) return scale_;
    const bool is_first = !has_samples_;
    add(std::log2(double{scaled_amax}) - std::log2(scale_));
    if (is_first && overflowed_) headroom_ = std::max(headroom_, raw() - std::log2(scale_));
    if (++clean_ % config_.growth_interval == 0) headroom_ = std::max(headroom_ - 1.0, 0.0);
    return scale_ = clipped(std::exp2(std::floor(raw() - headroom_)));
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
inline Update scaler_of(mp_scaler_preset_t preset, int interval, int hysteresis) {
  switch (preset) {
    case MP_SCALER_PRESET_LOGNORMAL: {
      mp_scaler_config_t config = mp_scaler_config_preset(preset);
      config.growth_interval = interval;
      return Lognormal(config);
    }
    case MP_SCALER_PRESET_TORCH:
      return torch(interval);
    case MP_SCALER_PRESET_APEX_AMP:
      return apex_amp(interval);
    case MP_SCALER_PRESET_APEX_HYSTERESIS:
      return apex_hysteresis(interval, hysteresis);
    case MP_SCALER_PRESET_MEGATRON:
      return Megatron{interval, hysteresis};
    case MP_SCALER_PRESET_DEEPSPEED:
      return deepspeed(interval, hysteresis);
    case MP_SCALER_PRESET_DEEPSPEED_FUSED:
      return deepspeed_fused(interval);
    case MP_SCALER_PRESET_KERAS:
      return keras(interval);
    case MP_SCALER_PRESET_KERAS_3:
      return keras_3(interval);
    case MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF:
      return openseq2seq_backoff(interval);
    case MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX:
      return OpenSeq2SeqLogMax{};
  }
  return {};
}

}  // namespace mptest::upstream
