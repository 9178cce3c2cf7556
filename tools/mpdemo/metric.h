// Metrics of a network on test data.
#pragma once

#include <cstdint>
#include <string>

namespace mpdemo {

/// Sums over the test set.
struct Evaluation {
  int64_t rows = 0;
  int64_t correct = 0;
  double nats = 0;  ///< cross-entropy
};

struct Metric {
  const char *id;       ///< in JSON
  const char *heading;  ///< column heading
  bool more_is_better;
  double largest_gap;  ///< allowed between FP32 and mixed precision
  const char *gap;     ///< largest_gap as text
  double (*of)(const Evaluation &sums);
  std::string (*shown)(double value);
};

/// Fraction of correct predictions.
const Metric &accuracy();
/// Cross-entropy of each character given those before it.
const Metric &bits_per_character();

}  // namespace mpdemo
