#include "metric.h"

#include <numbers>

#include "common.h"

namespace mpdemo {

const Metric &accuracy() {
  static const Metric metric = {.id = "test_accuracy",
                                .heading = "accuracy",
                                .more_is_better = true,
                                .largest_gap = 0.005,
                                .gap = "0.5 percentage points",
                                .of =
                                    [](const Evaluation &sums) {
                                      return static_cast<double>(sums.correct) /
                                             static_cast<double>(sums.rows);
                                    },
                                .shown = [](double value) { return text("%.2f %%", 100 * value); }};
  return metric;
}

const Metric &bits_per_character() {
  static const Metric metric = {.id = "test_bits_per_character",
                                .heading = "bits/char",
                                .more_is_better = false,
                                .largest_gap = 0.02,
                                .gap = "0.02 bits",
                                .of =
                                    [](const Evaluation &sums) {
                                      return sums.nats / static_cast<double>(sums.rows) /
                                             std::numbers::ln2;
                                    },
                                .shown = [](double value) { return text("%.4f", value); }};
  return metric;
}

}  // namespace mpdemo
