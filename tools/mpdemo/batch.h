// What a network reads in one step of training, in device memory.
#pragma once

#include <cstdint>
#include <vector>

#include "common.h"

namespace mpdemo {

/// So many images, or one window of so many sequences: step s of sequence n is element n * steps + s.
struct Batch {
  const void *x;                     ///< pixels as fp32, or symbols as int32_t
  const int32_t *labels;             ///< one per image or step
  int64_t size;                      ///< images or sequences
  int64_t counted;                   ///< labels that are not padding
  const int32_t *lengths = nullptr;  ///< steps that each sequence has; NULL: all of them
  bool continues = false;            ///< the sequences go on where the batch before has left them
};

/// A dataset, cut into batches once, so that nothing is copied during training.
struct Batches {
  /// The batches of a series follow one another: an image batch alone, or the windows of a few verses.
  /// Series may come in any order.
  std::vector<std::vector<Batch>> series;
  std::vector<Buffer> memory;  ///< what the batches point into

  int64_t count() const {
    int64_t sum = 0;
    for (const std::vector<Batch> &batches : series) sum += static_cast<int64_t>(batches.size());
    return sum;
  }
};

}  // namespace mpdemo
