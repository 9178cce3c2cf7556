// Input of a network for one training step, in device memory; included by all other files.
#pragma once

#include <cstdint>
#include <vector>

#include "support/device.h"
#include "support/text.h"

namespace mpdemo {

using namespace mptools;

/// `size` images, or one window of `size` sequences: step s of sequence n is element n * steps + s.
struct Batch {
  const void *x;                     ///< pixels as fp32, or symbols as int32_t
  const int32_t *labels;             ///< one per image or step
  int64_t size;                      ///< images or sequences
  int64_t counted;                   ///< labels that are not padding
  const int32_t *lengths = nullptr;  ///< steps of each sequence; NULL: all of them
  bool continues = false;            ///< sequences continue those of the previous batch
};

/// A dataset, split into batches once, so that nothing is copied during training.
struct Batches {
  /// The batches of a series are consecutive: a single image batch, or the windows of a few verses.
  /// The order of series is arbitrary.
  std::vector<std::vector<Batch>> series;
  std::vector<Buffer> memory;  ///< memory of the batches

  int64_t count() const {
    int64_t sum = 0;
    for (const std::vector<Batch> &batches : series) sum += static_cast<int64_t>(batches.size());
    return sum;
  }
};

}  // namespace mpdemo
