/* mpcore/norm.h: layer normalization and RMS normalization. */
#ifndef MPCORE_NORM_H
#define MPCORE_NORM_H

#include "core.h"

MP_BEGIN_C

/** @defgroup norm 9. Layer and RMS normalization
 *  @{ */

/** Statistics by which a vector is normalized. */
typedef enum mp_norm_kind {
  MP_NORM_LAYER = 1, /**< mean and variance */
  MP_NORM_RMS = 2    /**< mean square */
} mp_norm_kind_t;

/** Bits of mp_norm_desc_t.flags. */
typedef enum mp_norm_flags {
  MP_NORM_FLAG_ZERO_CENTERED = 1 << 0, /**< multiplies by 1 + gamma instead of gamma */
  MP_NORM_FLAG_ACCUMULATE = 1 << 1     /**< adds to the previous dgamma and dbeta */
} mp_norm_flags_t;

/** Shape, types and options of a normalization.
 *
 *  A row consists of `groups` vectors of `columns` elements, such as the heads of a token; each is
 *  normalized separately.  Element j of vector g of row i of x and dx is at
 *  i x_row + g x_group + j, that of y and dy at i y_row + g y_group + j.  All other tensors are
 *  dense, rows x groups x columns. */
typedef struct mp_norm_desc {
  uint32_t struct_size;
  mp_norm_kind_t kind;
  mp_dtype_t dtype;          /**< type of x, y, dy and dx */
  mp_dtype_t dtype_residual; /**< type of residual, sum, dsum and dresidual: dtype or MP_FP32 */
  int64_t rows;              /**< >= 0 */
  int64_t columns;           /**< elements of a vector, 1 to 65536 */
  int32_t groups;            /**< vectors per row, >= 1 */
  uint32_t flags;            /**< bitwise or of mp_norm_flags_t */
  /** Distances between rows and between vectors of a row, in elements.  0 = dense: x_group is
   *  columns, x_row is groups x_group.  Vectors must not overlap. */
  int64_t x_row, x_group, y_row, y_group;
  float epsilon;         /**< >= 0; with 0, vectors without deviation become NaN */
  float dropout;         /**< probability in [0, 1) that an element of x becomes 0 */
  uint64_t dropout_seed; /**< any value; read only if dropout > 0 */
} mp_norm_desc_t;

/** Initializes a normalization of full rows: groups = 1, epsilon = 1e-5, dtype_residual = dtype,
 *  dense, no dropout. */
MP_API mp_status_t mp_norm_desc_init(mp_norm_desc_t *desc, size_t struct_size, mp_norm_kind_t kind,
                                     int64_t rows, int64_t columns, mp_dtype_t dtype);
static inline mp_norm_desc_t mp_norm_desc_default(mp_norm_kind_t kind, int64_t rows,
                                                  int64_t columns, mp_dtype_t dtype) {
  mp_norm_desc_t desc;
  mp_norm_desc_init(&desc, sizeof desc, kind, rows, columns, dtype);
  return desc;
}

/** Tensors of a normalization, device.  Each pass ignores the fields that it does not list.
 *  Initialize with MP_INIT_STRUCT. */
typedef struct mp_norm_tensors {
  uint32_t struct_size;
  uint32_t reserved0;             /**< must be 0 */
  const void *x;                  /**< rows x groups x columns */
  const void *residual;           /**< optional: added to x before the normalization */
  const float *gamma;             /**< columns; NULL = 1, also with MP_NORM_FLAG_ZERO_CENTERED */
  const float *beta;              /**< columns; NULL = 0; must be NULL for MP_NORM_RMS */
  const uint64_t *dropout_offset; /**< 1 integer; NULL = 0.  Selects the mask, as in mp_dropout */
  /** residual + dropout(x): written by the forward pass, optional there; read by the backward pass.
   *  NULL without a residual. */
  void *sum;
  void *y;               /**< written */
  float *mean;           /**< rows x groups; MP_NORM_LAYER only */
  float *rstd;           /**< rows x groups: 1 / standard deviation, or 1 / root mean square */
  const void *dy;        /**< gradient of y */
  const void *dsum;      /**< gradient of r (see mp_norm_forward) from its other uses; NULL = 0 */
  void *dx;              /**< gradient of x, written */
  void *dresidual;       /**< gradient of residual, written; NULL without a residual */
  float *dgamma;         /**< columns, overwritten or added to, optional */
  float *dbeta;          /**< columns, overwritten or added to, optional; NULL for MP_NORM_RMS */
  mp_grad_stats_t stats; /**< statistics of dx, dresidual, dgamma and dbeta */
} mp_norm_tensors_t;

/** Normalizes each vector, in fp32 for every type:
 *
 *      r[j] = residual[j] + dropout(x[j])        without residual: dropout(x[j])
 *      mean = sum_j r[j] / columns               MP_NORM_RMS: 0
 *      rstd = 1 / sqrt(sum_j (r[j] - mean)^2 / columns + epsilon)
 *      y[j] = (r[j] - mean) rstd gamma[j] + beta[j]
 *
 *  - Rounding: with a residual, r is rounded to dtype_residual, and mean, rstd and y are computed
 *    from the rounded values, which `sum` contains.
 *  - Dropout: x[j] mask / (1 - dropout), in fp32.  The mask is that of mp_dropout for a dense
 *    rows x groups x columns tensor with seed = dropout_seed and offset = *dropout_offset.  It is
 *    not stored.
 *  - Non-finite values: a vector becomes NaN if it contains an infinity or NaN, or if its sum of
 *    squares exceeds the range of fp32.  Other vectors are not affected.
 *  - Determinism: the bits of a vector depend on its values, the types and `columns`.
 *
 *  @param tensors  host: x and y, which may be equal if their strides are; optionally residual, sum
 *                  (may be residual), gamma, beta, dropout_offset, mean and rstd.
 *  @source Ba, Kiros & Hinton, Layer Normalization, 2016, section 3; Zhang & Sennrich, Root Mean
 *          Square Layer Normalization, 2019, section 3; Micikevicius et al. 2018, section 3.3
 *          (statistics in fp32). */
MP_API mp_status_t mp_norm_forward(mp_context_t context, const mp_norm_desc_t *desc,
                                   const mp_norm_tensors_t *tensors, mp_stream_t stream);

/** Returns the workspace size that mp_norm_backward requires: at most 16 MiB, 0 if rows is 0.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_norm_backward_workspace_size(mp_context_t context, const mp_norm_desc_t *desc,
                                                   size_t *bytes);

/** Computes the gradients of mp_norm_forward:
 *
 *      xhat[j] = (r[j] - mean) rstd,  g[j] = dy[j] gamma[j]
 *      dr[j] = rstd (g[j] - sum_k g[k] / columns - xhat[j] sum_k g[k] xhat[k] / columns)
 *      dresidual[j] = dsum[j] + dr[j],  dx[j] = dropout(dresidual[j])
 *      dgamma[j] = sum dy[j] xhat[j],  dbeta[j] = sum dy[j]    over all rows and groups
 *
 *  For MP_NORM_RMS, mean and sum_k g[k] / columns are 0.
 *
 *  - r is `sum`, or dropout(x) if sum is NULL; the other one is not read.
 *  - dx has the mask of the forward pass, if *dropout_offset is unchanged.  It is computed from
 *    dresidual before rounding.
 *  - Non-finite values: an infinity or NaN in r or dy makes dr of its vector infinite or NaN, and
 *    dgamma and dbeta of its columns.
 *  - Determinism: the sums for dgamma and dbeta are computed in fp32 for ranges of vectors, at
 *    least 16 each, and combined in fp64.  The order depends only on rows x groups and columns.
 *
 *  rows = 0 writes zeros to dgamma and dbeta, unless MP_NORM_FLAG_ACCUMULATE keeps them.
 *
 *  Not supported: normalization over a batch (see mp_batchnorm_*) or over groups of channels of an
 *  image, and gamma and beta in 16 bits.
 *
 *  @param tensors  host: dy, rstd, for MP_NORM_LAYER mean, and sum or x; dx, dresidual or both.
 *                  Optionally gamma, dropout_offset, dsum, dgamma and dbeta.  dx may be dy if
 *                  their strides are equal, dresidual may be dsum.
 *  @source Ba, Kiros & Hinton 2016, supplementary material; Zhang & Sennrich 2019, section 4. */
MP_API mp_status_t mp_norm_backward(mp_context_t context, const mp_norm_desc_t *desc,
                                    const mp_norm_tensors_t *tensors, void *workspace,
                                    size_t workspace_bytes, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_NORM_H */
