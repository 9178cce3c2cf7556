// Arguments of the layer kernels other than GEMM and convolution.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtypes.h"
#include "base/workspace_layout.h"
#include "mpcore/layers.h"
#include "mpcore/loss.h"
#include "mpcore/norm.h"
#include "mpcore/sequences.h"

namespace mp {

/// row_loss temporarily also holds the number of rows that count.
struct XentArgs : mp_xent_tensors_t {
  mp_xent_desc_t desc;   ///< soft targets: ld_labels is not 0
  float *sum = nullptr;  ///< xent_count only: increased by the number of rows

  /// True if a row has a target per class, or x are not logits.
  bool has_targets() const {
    return desc.dtype_labels <= kLastFloatType || class_weights != nullptr ||
           (desc.flags & MP_XENT_FLAG_LOG_PROBABILITIES) != 0;
  }
};

/// Largest number of chunks of a loss; one block computes a chunk.
constexpr int64_t kMaxLossChunks = 1024;

/// Partial result of a chunk, in the workspace.
struct LossPartial {
  double loss;
  int64_t counted;  ///< elements that are not ignored
};

struct LossArgs : mp_loss_tensors_t {
  mp_loss_desc_t desc;
  LossPartial *workspace;

  static constexpr int64_t kAtOnce = 2048;  ///< elements per block and step
  int64_t chunk_elems() const {
    const int64_t steps = (desc.count + kAtOnce - 1) / kAtOnce;
    return (steps + kMaxLossChunks - 1) / kMaxLossChunks * kAtOnce;
  }
  int64_t num_chunks() const { return (desc.count + chunk_elems() - 1) / chunk_elems(); }
};

/// Transposition of `count` consecutive rows x cols matrices.
struct TransposeArgs {
  int64_t count, rows, cols;
  mp_dtype_t dtype_src, dtype_dst;
  const void *src;
  void *dst;
};

/// Arguments of both passes; each reads only some of them.
struct PoolArgs {
  mp_pool2d_desc_t desc;
  int32_t p, q;  ///< 0: no outputs
  const void *x = nullptr, *dy = nullptr;
  void *y = nullptr, *dx = nullptr;
  uint8_t *index = nullptr;  ///< maximum: optional, written by forward, read by backward
  mp_grad_stats_t stats = {};
};

/// Returns the workspace size: two floats per chunk and channel.
inline size_t batch_norm_workspace_bytes(const mp_batchnorm_desc_t &desc) {
  const ColumnPartition partition(desc.rows, desc.channels);
  return static_cast<size_t>(2 * partition.chunks * desc.channels) * sizeof(float);
}

/// Arguments of all three passes; each reads only some of the tensors.
struct BatchNormArgs : mp_batchnorm_tensors_t {
  mp_batchnorm_desc_t desc;
  float *workspace;  ///< inference: NULL
};

/// Arguments of both passes; strides are not 0.
struct NormArgs : mp_norm_tensors_t {
  mp_norm_desc_t desc;
  float *workspace;  ///< forward: NULL

  int64_t num_vectors() const { return desc.rows * desc.groups; }
};

/// Ranges of vectors whose column sums are computed separately.  Depends on the shape only, so that
/// sums are the same on all devices.
struct NormPartition {
  int64_t ranges, vectors_per_range;

  NormPartition(int64_t vectors, int64_t columns) {
    constexpr int64_t kMinVectors = 16, kMinRanges = 32, kMaxSums = int64_t{1} << 20;
    const int64_t most = kMaxSums / columns > kMinRanges ? kMaxSums / columns : kMinRanges;
    vectors_per_range = vectors / most + (vectors % most != 0);
    if (vectors_per_range < kMinVectors) vectors_per_range = kMinVectors;
    ranges = vectors / vectors_per_range + (vectors % vectors_per_range != 0);
  }
};

/// Returns the workspace size: two floats per range and column.
inline size_t norm_workspace_bytes(const mp_norm_desc_t &desc) {
  const NormPartition partition(desc.rows * desc.groups, desc.columns);
  return static_cast<size_t>(2 * partition.ranges * desc.columns) * sizeof(float);
}

struct EmbeddingArgs {
  mp_embedding_desc_t desc;
  const void *table, *indices;
  void *out;
};

/// Rows per stretch, the unit in which rows with the same index are summed.
constexpr int64_t kEmbeddingStretch = 64;

/// Byte offsets in the workspace of the backward pass.
struct EmbeddingWorkspace {
  size_t keys[2] = {}, values[2] = {};  ///< buffers of the sort
  size_t begins = 0, sums = 0, scratch = 0;
  size_t bytes = 0;

  explicit EmbeddingWorkspace(const mp_embedding_desc_t &desc) {
    if (desc.num_indices == 0) return;
    WorkspaceLayout layout;
    const size_t rows = static_cast<size_t>(desc.num_indices);
    for (int i = 0; i < 2; i++) {
      keys[i] = layout.add(rows * sizeof(uint32_t));
      values[i] = layout.add(rows * sizeof(uint32_t));
    }
    begins = layout.add((static_cast<size_t>(desc.num_embeddings) + 1) * sizeof(int32_t));
    const int64_t stretches = (desc.num_indices + kEmbeddingStretch - 1) / kEmbeddingStretch;
    sums = layout.add(2 * static_cast<size_t>(stretches * desc.embedding_dim) * sizeof(float));
    scratch = layout.add(sort_scratch_bytes(desc.num_indices));
    bytes = layout.size();
  }
};

struct EmbeddingBackwardArgs {
  mp_embedding_desc_t desc;
  const void *indices, *dout;
  void *dtable;
  mp_grad_stats_t stats;
  void *workspace;  ///< NULL without indices
};

struct PointwiseArgs {
  mp_pointwise_desc_t desc;
  const void *a;
  const void *b;  ///< NULL: not read
  void *y;
  mp_grad_stats_t stats;
};

struct SumRowsArgs {
  mp_sum_rows_desc_t desc;
  const void *x;
  void *sum;
  mp_grad_stats_t stats;
};

/// Arguments of both passes; each reads only some of them.
struct GluArgs {
  mp_glu_desc_t desc;
  const void *x, *dy = nullptr;
  void *y = nullptr, *dx = nullptr;
  mp_grad_stats_t stats = {};
};

/// The descriptor has rank >= 1 and no extent of 0.
struct StridedCopyArgs {
  mp_strided_copy_desc_t desc;
  const void *x;
  void *y;
  mp_grad_stats_t stats;
};

struct DropoutArgs {
  mp_dropout_desc_t desc;
  const uint64_t *offset;  ///< optional
  const void *x;
  void *y;
  mp_grad_stats_t stats;
};

constexpr int32_t kMaxRotaryDim = 512;

struct RopeArgs {
  mp_rope_desc_t desc;  ///< strides and period are not 0
  const int32_t *positions;
  const float *inv_freq;
  const void *x;
  void *y;
  mp_grad_stats_t stats;
};

/// Arguments of both passes; each reads only some of them.
struct SoftmaxArgs {
  mp_softmax_desc_t desc;  ///< mask_rows is not 0
  const void *mask;
  const void *x = nullptr, *y = nullptr, *dy = nullptr;  ///< forward: x; backward: y and dy
  void *out;                                             ///< y or dx
  mp_grad_stats_t stats = {};
};

}  // namespace mp
