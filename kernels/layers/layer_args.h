// Arguments of the layer kernels other than GEMM and convolution.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/workspace_layout.h"
#include "mpcore/layers.h"
#include "mpcore/sequences.h"

namespace mp {

struct XentArgs {
  mp_dtype_t dtype;
  int64_t rows, classes, ld_logits, ld_dlogits;
  float weight;
  bool ignores;  ///< rows with ignore_label are skipped
  int32_t ignore_label;
  float label_smoothing;
  const void *logits;
  const int32_t *labels;
  const float *loss_scale;  ///< NULL = 1
  float *row_loss;          ///< temporarily also holds the number of rows that count
  float *loss;              ///< optional
  int64_t *correct;         ///< optional
  void *dlogits;            ///< optional
};

/// Largest number of chunks of a loss; one block computes a chunk.
constexpr int64_t kMaxLossChunks = 1024;

/// Partial result of a chunk, in the workspace.
struct LossPartial {
  double loss;
  int64_t counted;  ///< elements that are not ignored
};

struct LossArgs {
  mp_loss_desc_t desc;
  const void *prediction, *target;
  const float *weights, *loss_scale;  ///< NULL = 1
  float *element_loss, *loss;         ///< optional
  void *dprediction;                  ///< optional
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
  const void *x, *dy;
  void *y, *dx;
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

struct EmbeddingArgs {
  mp_embedding_desc_t desc;
  const void *table;
  const int32_t *indices;
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
    if (desc.rows == 0) return;
    WorkspaceLayout layout;
    const size_t rows = static_cast<size_t>(desc.rows);
    for (int i = 0; i < 2; i++) {
      keys[i] = layout.add(rows * sizeof(uint32_t));
      values[i] = layout.add(rows * sizeof(uint32_t));
    }
    begins = layout.add((static_cast<size_t>(desc.vocabulary) + 1) * sizeof(int32_t));
    const int64_t stretches = (desc.rows + kEmbeddingStretch - 1) / kEmbeddingStretch;
    sums = layout.add(2 * static_cast<size_t>(stretches * desc.width) * sizeof(float));
    scratch = layout.add(sort_scratch_bytes(desc.rows));
    bytes = layout.size();
  }
};

struct EmbeddingBackwardArgs {
  mp_embedding_desc_t desc;
  const int32_t *indices;
  const void *dout;
  void *dtable;
  float *found_inf, *amax;  ///< optional
  void *workspace;          ///< NULL without rows
};

struct PointwiseArgs {
  mp_pointwise_desc_t desc;
  const void *a;
  const void *b;  ///< NULL: not read
  void *y;
};

struct DropoutArgs {
  mp_dropout_desc_t desc;
  const uint64_t *offset;  ///< optional
  const void *x;
  void *y;
};

}  // namespace mp
