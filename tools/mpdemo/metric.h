// What tells how good a network is, on data that it was not trained on.
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
  const char *heading;  ///< of its column
  bool more_is_better;
  double largest_gap;  ///< between FP32 and mixed precision
  const char *gap;     ///< the same in words
  double (*of)(const Evaluation &sums);
  std::string (*shown)(double value);
};

/// Of 1.
const Metric &accuracy();
/// How well each character is foreseen from those before it.
const Metric &bits_per_character();

}  // namespace mpdemo
