// What the kernels of the layers around GEMM and convolution are launched with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpcore/layers.h"

namespace mp {

struct XentArgs {
  mp_dtype_t dtype;
  int64_t rows, classes, ld_logits, ld_dlogits;
  float weight;
  bool ignores;  ///< rows of ignore_label
  int32_t ignore_label;
  float label_smoothing;
  const void *logits;
  const int32_t *labels;
  const float *loss_scale;  ///< NULL = 1
  float *row_loss;          ///< the kernels also keep there, for a while, how many rows count
  float *loss;              ///< optional
  int64_t *correct;         ///< optional
  void *dlogits;            ///< optional
};

/// `count` matrices of rows x cols, one after the other, each of them transposed.
struct TransposeArgs {
  int64_t count, rows, cols;
  mp_dtype_t src_dtype, dst_dtype;
  const void *src;
  void *dst;
};

/// Both passes; each looks at what it needs.
struct PoolArgs {
  mp_pool2d_desc_t desc;
  int32_t p, q;  ///< 0: no outputs
  const void *x, *dy;
  void *y, *dx;
};

/// How batch normalisation cuts rows x channels into parts, each of them summed by itself.  Of the
/// shape alone, so that no sum depends on the device.
struct BatchNormPartition {
  static constexpr int kThreads = 256;
  static constexpr int kRun = 8;  ///< channels per thread
  static constexpr int64_t kMaxChunks = 512;
  static constexpr int64_t kMinRowsPerThread = 16;

  int lanes;               ///< neighbouring threads that share a row: 1, 2, 4 or 8
  int64_t tiles;           ///< of lanes * kRun channels
  int64_t rows_per_chunk;  ///< rows of a part
  int64_t chunks;

  BatchNormPartition(int64_t rows, int64_t channels) : lanes(1) {
    while (lanes < 8 && lanes * kRun < channels) lanes *= 2;
    tiles = (channels + lanes * kRun - 1) / (lanes * kRun);
    const int64_t least = kThreads / lanes * kMinRowsPerThread;
    const int64_t even = rows / kMaxChunks + (rows % kMaxChunks != 0);
    rows_per_chunk = even > least ? even : least;
    chunks = rows / rows_per_chunk + (rows % rows_per_chunk != 0);
  }

  /// Two numbers per chunk and channel.
  size_t workspace_bytes(int64_t channels) const {
    return static_cast<size_t>(2 * chunks * channels) * sizeof(float);
  }
};

/// All three passes; each looks at the tensors that it needs.
struct BatchNormArgs : mp_batchnorm_tensors_t {
  mp_batchnorm_desc_t desc;
  float *workspace;  ///< inference: NULL
};

}  // namespace mp
