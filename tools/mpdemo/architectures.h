// Networks that the demo trains, with their training recipes and metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "description.h"

namespace mpdemo {

/// Sums over the test set.
struct Evaluation {
  int64_t rows = 0;
  int64_t correct = 0;
  double nats = 0;  ///< cross-entropy
};

/// Metric of a network on test data.
struct Metric {
  const char *id;       ///< in JSON
  const char *heading;  ///< column heading
  bool more_is_better;
  double largest_gap;  ///< allowed between FP32 and mixed precision
  const char *gap;     ///< largest_gap as text
  double (*of)(const Evaluation &sums);
  std::string (*shown)(double value);
};

/// Optimizer, and learning rate by step.
struct Recipe {
  mp_optimizer_kind_t kind;  ///< MP_OPT_SGD with momentum, or MP_OPT_ADAM
  float peak_lr;
  float beta2 = 0.999f;     ///< Adam
  float matrix_decay = 0;   ///< decoupled weight decay of tensors with at least two dimensions
  float max_grad_norm = 0;  ///< 0: no clipping
  /// Steps of linear warm-up before a cosine that ends at a tenth of peak_lr.  0: the rate
  /// decreases linearly to 0, so that the final result does not depend on the last batch.
  int32_t warmup_steps = 0;
};

struct Architecture {
  std::string id;     ///< in options, file names and JSON
  std::string name;   ///< one or two words
  std::string title;  ///< single line
  void (*describe)(Description &description);
  const Metric *metric;
  std::optional<double> due;  ///< metric that mixed precision must reach; none: not judged
  double epochs = 0;          ///< length of ordinary training; 0: num_steps
  int64_t num_steps = 0;
  bool has_small_weight = true;  ///< is also trained with a small task weight
  Recipe recipe;
  int64_t batch;        ///< images or verses
  int64_t steps;        ///< steps per window of text; images: 1
  int64_t context = 0;  ///< symbols that a text generator reads for the next one; images: 0
  std::vector<mp_dtype_t> mixed_types = {MP_FP16};  ///< unless the user selects others

  bool reads_text() const { return context > 0; }
};

/// Returns all networks.
/// @param full  long enough for the verdict; otherwise just long enough to show learning.
std::vector<Architecture> architectures(bool full);

}  // namespace mpdemo
