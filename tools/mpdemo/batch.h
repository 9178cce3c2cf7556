// What a network reads in one step of training, in device memory.
#pragma once

#include <cstdint>
#include <vector>

#include "common.h"

namespace mpdemo {

/// The rows of a batch of text: row s * sequences + n is step s of sequence n.
struct Window {
  int32_t sequences = 0;
  int32_t steps = 0;
  const int32_t *lengths = nullptr;  ///< device: steps that each sequence has; NULL: all of them
  bool continues = false;            ///< the sequences go on where the window before has left them
};

struct Batch {
  const void *x;
  const int32_t *labels;  ///< rows
  int64_t rows;
  int64_t counted;  ///< rows that have a label, and are not padding
  Window window;    ///< text only
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
