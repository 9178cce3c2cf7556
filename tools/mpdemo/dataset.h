// Fashion-MNIST: 60,000 + 10,000 gray images of 28 x 28 pixels in 10 classes, read from four
// gzipped idx files, and its copy in device memory.
// Source: Xiao et al., Fashion-MNIST, 2017; idx format: LeCun, The MNIST database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "batch.h"
#include "random.h"

namespace mpdemo {

constexpr int64_t kSide = 28;
constexpr int64_t kPixels = kSide * kSide;
constexpr int64_t kClasses = 10;

struct Samples {
  std::vector<uint8_t> images;  ///< count x kPixels
  std::vector<int32_t> labels;  ///< count

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

struct Dataset {
  Samples train;
  Samples test;
};

/// @throws std::runtime_error with one sentence: the missing file and its package, or the error in
/// a file
Dataset load_fashion_mnist(const std::filesystem::path &directory);

void shuffle(Samples &samples, Random &random);

/// Part of each batch that belongs to one rank.  The last batch may be partial, but `ranks` divides
/// every batch.
Samples share_of_rank(const Samples &samples, int64_t batch_rows, int rank, int ranks);

/// Copies all samples to device memory, pixels standardized.  The last batch may have fewer rows.
Batches make_batches(mp_context_t context, const Samples &samples, int64_t batch_rows);

}  // namespace mpdemo
