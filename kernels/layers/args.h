// What the kernels of the layers around GEMM and convolution are launched with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/column_partition.h"
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

/// Two numbers per chunk and channel.
inline size_t batch_norm_workspace_bytes(const mp_batchnorm_desc_t &desc) {
  const ColumnPartition partition(desc.rows, desc.channels);
  return static_cast<size_t>(2 * partition.chunks * desc.channels) * sizeof(float);
}

/// All three passes; each looks at the tensors that it needs.
struct BatchNormArgs : mp_batchnorm_tensors_t {
  mp_batchnorm_desc_t desc;
  float *workspace;  ///< inference: NULL
};

}  // namespace mp
