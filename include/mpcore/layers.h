/* mpcore/layers.h: layout, pooling, batch normalization, pointwise operations, gated units. */
#ifndef MPCORE_LAYERS_H
#define MPCORE_LAYERS_H

#include "gemm.h"

MP_BEGIN_C

/** @defgroup layers 8. Layout, pooling, batch normalization, pointwise operations, gated units
 *  @{ */

/** Transposes images from NCHW to NHWC, the layout of mp_conv2d_*, mp_pool2d_* and mp_batchnorm_*.
 *  Also converts the type, like mp_cast.
 *
 *  @param n,c,h,w  extents, >= 0; if one is 0 the call does nothing.
 *  @param src      device, n x c x h x w, dense.
 *  @param dst      device, n x h x w x c, dense; must not overlap src. */
MP_API mp_status_t mp_nchw_to_nhwc(mp_context_t context, int64_t n, int64_t c, int64_t h, int64_t w,
                                   const void *src, mp_dtype_t dtype_src, void *dst,
                                   mp_dtype_t dtype_dst, mp_stream_t stream);
/** Transposes images from NHWC to NCHW: the inverse of mp_nchw_to_nhwc, with equal arguments n, c,
 *  h and w. */
MP_API mp_status_t mp_nhwc_to_nchw(mp_context_t context, int64_t n, int64_t c, int64_t h, int64_t w,
                                   const void *src, mp_dtype_t dtype_src, void *dst,
                                   mp_dtype_t dtype_dst, mp_stream_t stream);

/** Reduction of a window. */
typedef enum mp_pool_mode {
  MP_POOL_MAX = 1,             /**< largest element; padding is excluded */
  MP_POOL_AVG_INCLUDE_PAD = 2, /**< sum / number of pixels in the padded image; padding is 0 */
  MP_POOL_AVG_EXCLUDE_PAD = 3  /**< sum / number of pixels in the image */
} mp_pool_mode_t;

/** Bits of mp_pool2d_desc_t.flags. */
typedef enum mp_pool_flags {
  /** Rounds P and Q up, like ceil_mode of torch: the last window may extend beyond the padding, but
   *  starts inside the image or the padding before it. */
  MP_POOL_FLAG_CEIL = 1 << 0
} mp_pool_flags_t;

/** Shape and type of a pooling layer:
 *
 *      x, dx    N H W C     dense, C contiguous
 *      y, dy    N P Q C     P = (pad_top + H + pad_bottom - extent_h) / stride_h + 1 (rounded down)
 *                           extent_h = dilation_h (window_h - 1) + 1
 *
 *  Q likewise.  Every window contains at least one pixel, because padding must be smaller than the
 *  extent of the window, and dilation_h at most H if pad_top > 0 (dilation_w and W likewise).  The
 *  height and width of the padded image must be at most 2^30, and windows must have fewer than 2^31
 *  elements.
 *
 *  If the window is larger than the padded image (with MP_POOL_FLAG_CEIL: by a stride or more), P
 *  or Q is 0: y is empty and dx is 0. */
typedef struct mp_pool2d_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< type of x, y, dy and dx; sums are fp32 */
  mp_pool_mode_t mode;
  int32_t n;                  /**< >= 0 */
  int32_t h, w, c;            /**< >= 1 */
  int32_t window_h, window_w; /**< >= 1 */
  /** >= 0 and smaller than the window's extent. */
  int32_t pad_top, pad_bottom, pad_left, pad_right;
  int32_t stride_h, stride_w;     /**< >= 1 */
  uint32_t flags;                 /**< bitwise or of mp_pool_flags_t */
  int32_t dilation_h, dilation_w; /**< distance between pixels of a window, >= 0; 0 = 1 */
} mp_pool2d_desc_t;

/** Initializes adjacent windows: stride = window, no padding, no dilation. */
MP_API mp_status_t mp_pool2d_desc_init(mp_pool2d_desc_t *desc, size_t struct_size,
                                       mp_pool_mode_t mode, int32_t n, int32_t h, int32_t w,
                                       int32_t c, int32_t window_h, int32_t window_w,
                                       mp_dtype_t dtype);
static inline mp_pool2d_desc_t mp_pool2d_desc_default(mp_pool_mode_t mode, int32_t n, int32_t h,
                                                      int32_t w, int32_t c, int32_t window_h,
                                                      int32_t window_w, mp_dtype_t dtype) {
  mp_pool2d_desc_t desc;
  mp_pool2d_desc_init(&desc, sizeof desc, mode, n, h, w, c, window_h, window_w, dtype);
  return desc;
}

/** Returns the extents P and Q of y.
 *  @param p,q  host, out. */
MP_API mp_status_t mp_pool2d_get_output_size(const mp_pool2d_desc_t *desc, int32_t *p, int32_t *q);

/** Computes the maximum or mean of each window and channel.  A window with a NaN gives NaN.
 *  @param x      device, N H W C.
 *  @param y      device, N P Q C, written; must not overlap x.
 *  @param index  device, N P Q C, written, optional: position of the maximum in its window, row *
 *                window_w + column, the first in row order if several are equal.  With it,
 *                mp_pool2d_backward does not read x.  Must not overlap x or y, and must be NULL
 *                unless the mode is MP_POOL_MAX and windows have at most 255 elements. */
MP_API mp_status_t mp_pool2d_forward(mp_context_t context, const mp_pool2d_desc_t *desc,
                                     const void *x, void *y, uint8_t *index, mp_stream_t stream);

/** Computes the gradient of mp_pool2d_forward.
 *
 *  Each pixel of dx sums over the windows that contain it, in fp32 and in a fixed order.
 *  MP_POOL_MAX routes dy to the maximum of each window, the first in row order if several are
 *  equal.  Its position is read from index, or else recomputed from x; both give the same bits.  y
 *  is not needed.
 *  @param x      device, N H W C; read only for MP_POOL_MAX without index, otherwise optional.
 *  @param index  device, N P Q C, as written by mp_pool2d_forward with this descriptor, optional;
 *                must be NULL where that function requires it.
 *  @param dy     device, N P Q C.
 *  @param dx     device, N H W C, overwritten; must not overlap a tensor that the call reads.
 *  @param stats  host, optional: of dx. */
MP_API mp_status_t mp_pool2d_backward(mp_context_t context, const mp_pool2d_desc_t *desc,
                                      const void *x, const uint8_t *index, const void *dy, void *dx,
                                      const mp_grad_stats_t *stats, mp_stream_t stream);

/** Shape and options of a batch normalization. */
typedef struct mp_batchnorm_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;           /**< type of x, y, dy and dx; everything else is fp32 */
  int64_t rows;               /**< >= 0; for images N H W */
  int32_t channels;           /**< >= 0; for images C */
  mp_activation_t activation; /**< MP_ACT_NONE or MP_ACT_RELU */
  float epsilon;              /**< >= 0; with 0 a constant channel becomes NaN */
  float momentum;             /**< weight of the batch in the running statistics, in [0, 1] */
} mp_batchnorm_desc_t;

/** Initializes a batch normalization: epsilon = 1e-5, momentum = 0.1, no activation. */
MP_API mp_status_t mp_batchnorm_desc_init(mp_batchnorm_desc_t *desc, size_t struct_size,
                                          int64_t rows, int32_t channels, mp_dtype_t dtype);
static inline mp_batchnorm_desc_t mp_batchnorm_desc_default(int64_t rows, int32_t channels,
                                                            mp_dtype_t dtype) {
  mp_batchnorm_desc_t desc;
  mp_batchnorm_desc_init(&desc, sizeof desc, rows, channels, dtype);
  return desc;
}

/** Tensors of a batch normalization, device.  Each pass ignores the fields that it does not list.
 *  Initialize with MP_INIT_STRUCT. */
typedef struct mp_batchnorm_tensors {
  uint32_t struct_size;
  uint32_t reserved0;                /**< must be 0 */
  const void *x;                     /**< rows x channels, dense */
  const float *gamma, *beta;         /**< channels; NULL = 1 and 0 */
  float *running_mean, *running_var; /**< channels */
  float *saved_mean, *saved_inv_std; /**< channels; written in training, read by backward */
  void *y;                           /**< rows x channels, written */
  const void *dy;                    /**< rows x channels */
  void *dx;                          /**< rows x channels, written; may be dy */
  float *dgamma, *dbeta;             /**< channels, overwritten, optional; zeros if rows is 0 */
  mp_grad_stats_t stats;             /**< statistics of dx, dgamma and dbeta */
} mp_batchnorm_tensors_t;

/** Returns the workspace size that mp_batchnorm_forward_training and mp_batchnorm_backward require:
 *  at most 4 KiB per channel.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_batchnorm_workspace_size(mp_context_t context,
                                               const mp_batchnorm_desc_t *desc, size_t *bytes);

/** Normalizes each channel with the statistics of the batch:
 *
 *      mean = sum_i x[i] / rows,  var = sum_i (x[i] - mean)^2 / rows
 *      inv_std = 1 / sqrt(var + epsilon)
 *      y[i] = activation((x[i] - mean) gamma inv_std + beta)
 *      running_mean = (1 - momentum) running_mean + momentum mean
 *      running_var  = (1 - momentum) running_var + momentum var rows / (rows - 1)
 *
 *  @param tensors  host: x, saved_mean, saved_inv_std and y; optionally gamma, beta, and
 *                  running_mean and running_var, which are updated.
 *
 *  - Non-finite values: a channel becomes NaN if its x contains an infinity or NaN, or if
 *    rows var exceeds the range of fp32.  Its running statistics are then not updated, so a step
 *    skipped for this reason leaves them unchanged.  A step skipped for another reason, such as a
 *    gradient overflow, has already updated them.
 *  - Recovery: an infinite or NaN running value is replaced by the next finite value of a
 *    batch, unless momentum is 0.
 *  - Small batches: rows = 1 leaves running_var unchanged, because one sample has no unbiased
 *    variance.  rows = 0 or channels = 0 writes nothing.
 *  - Accuracy: means and squared deviations of row blocks are combined pairwise, so the
 *    variance is accurate even if the mean is much larger than the deviation.  The order depends
 *    only on the shape, not on the device.
 *
 *  @source Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1; Chan, Golub & LeVeque,
 *  Algorithms for Computing the Sample Variance, 1983; Micikevicius et al. 2018, section 3.3
 *  (statistics in fp32). */
MP_API mp_status_t mp_batchnorm_forward_training(mp_context_t context,
                                                 const mp_batchnorm_desc_t *desc,
                                                 const mp_batchnorm_tensors_t *tensors,
                                                 void *workspace, size_t workspace_bytes,
                                                 mp_stream_t stream);

/** Normalizes each channel with the running statistics.  desc->momentum is ignored.
 *  @param tensors  host: x, running_mean and running_var (both read), and y, which may be x;
 *                  optionally gamma and beta. */
MP_API mp_status_t mp_batchnorm_forward_inference(mp_context_t context,
                                                  const mp_batchnorm_desc_t *desc,
                                                  const mp_batchnorm_tensors_t *tensors,
                                                  mp_stream_t stream);

/** Computes the gradients of mp_batchnorm_forward_training:
 *
 *      g[i] = dy[i], or with MP_ACT_RELU 0 if y[i] was not positive
 *      xhat[i] = (x[i] - mean) inv_std
 *      dbeta = sum_i g[i],  dgamma = sum_i g[i] xhat[i]
 *      dx[i] = gamma inv_std (g[i] - dbeta / rows - xhat[i] dgamma / rows)
 *
 *  y is not read: its sign is recomputed from x.  An infinity or NaN in x or g makes dgamma and dx
 *  of its channel infinite or NaN.  Workspace and order of sums are those of the forward pass.
 *  @param tensors  host: x, gamma, beta, saved_mean and saved_inv_std as in the forward pass, dy
 *                  and dx; optionally dgamma and dbeta. */
MP_API mp_status_t mp_batchnorm_backward(mp_context_t context, const mp_batchnorm_desc_t *desc,
                                         const mp_batchnorm_tensors_t *tensors, void *workspace,
                                         size_t workspace_bytes, mp_stream_t stream);

/** Element-wise operation on a and b. */
typedef enum mp_pointwise_op {
  MP_POINTWISE_COPY = 1,        /**< z = a */
  MP_POINTWISE_ADD = 2,         /**< z = a + b */
  MP_POINTWISE_MUL = 3,         /**< z = a b */
  MP_POINTWISE_SUB = 4,         /**< z = a - b */
  MP_POINTWISE_DIV = 5,         /**< z = a / b */
  MP_POINTWISE_LEAKY_RELU = 6,  /**< z = a if a > 0, else slope a */
  MP_POINTWISE_DLEAKY_RELU = 7, /**< z = a if b > 0, else slope a: gradient of leaky ReLU at b */
  MP_POINTWISE_CLIP = 8,        /**< z = min(max(a, low), high) */
  MP_POINTWISE_DCLIP = 9        /**< z = a if low <= b <= high, else 0: gradient of clip at b */
} mp_pointwise_op_t;

/** Shape, types and operation of mp_pointwise:
 *
 *      a, y    rows x columns, dense
 *      b       rows x columns with row stride ld_b; one row for all (ld_b = 0), such as a bias; or
 *              rows_b rows that repeat, such as a table of positions for a batch of sequences
 *
 *  If b is dense or not read, a tensor of any shape can be passed as one row. */
typedef struct mp_pointwise_desc {
  uint32_t struct_size;
  mp_pointwise_op_t op;
  /** Applied to z.  The D* kinds require MP_POINTWISE_COPY and compute y = a activation'(b): a is
   *  the gradient of the activation's output, and b the activation's input. */
  mp_activation_t activation;
  mp_dtype_t dtype;   /**< type of a and y */
  mp_dtype_t dtype_b; /**< type of b */
  uint32_t reserved0; /**< must be 0 */
  int64_t rows;       /**< >= 0 */
  int64_t columns;    /**< >= 0 */
  int64_t ld_b;       /**< >= columns; 0 = the first row of b for every row */
  /** >= 0.  Row i of y uses row i % rows_b of b; 0 = rows.  mp_sum_rows is the gradient of b. */
  int64_t rows_b;
  float slope;        /**< finite; read only by MP_POINTWISE_LEAKY_RELU and its gradient */
  float low, high;    /**< low <= high, may be infinite; read only by MP_POINTWISE_CLIP and DCLIP */
  uint32_t reserved1; /**< must be 0 */
} mp_pointwise_desc_t;

/** Initializes a pass over dense tensors: dtype_b = dtype, no activation, slope = 0.01, low and
 *  high infinite. */
MP_API mp_status_t mp_pointwise_desc_init(mp_pointwise_desc_t *desc, size_t struct_size,
                                          mp_pointwise_op_t op, int64_t rows, int64_t columns,
                                          mp_dtype_t dtype);
static inline mp_pointwise_desc_t mp_pointwise_desc_default(mp_pointwise_op_t op, int64_t rows,
                                                            int64_t columns, mp_dtype_t dtype) {
  mp_pointwise_desc_t desc;
  mp_pointwise_desc_init(&desc, sizeof desc, op, rows, columns, dtype);
  return desc;
}

/** Computes y = activation(z) for each element, in fp32 and rounded once.
 *
 *  Activations are those of mp_epilogue_t.  NaN is propagated, except by comparisons with b:
 *  MP_ACT_DRELU and MP_POINTWISE_DCLIP return a if the comparison holds, and otherwise 0 even if a
 *  or b is NaN; MP_POINTWISE_DLEAKY_RELU returns slope a if b is NaN.  rows = 0 or columns = 0 does
 *  nothing.
 *
 *  With y = a / b, the gradient of a is dy / b and that of b is -(dy y) / b.
 *
 *  mp_column_sum computes the gradient of a row of b that all rows use, mp_sum_rows that of
 *  several.  Epilogues of products do not support leaky ReLU and clip.
 *
 *  @param a      device, rows x columns.
 *  @param b      device; ignored, and may be NULL, with MP_POINTWISE_LEAKY_RELU, MP_POINTWISE_CLIP
 *                and with MP_POINTWISE_COPY without a D* activation.
 *  @param y      device, rows x columns, written; may be a.  May be b if both have the same type
 *                and layout: dtype_b = dtype, and rows = 1 or ld_b = columns without repetition.
 *  @param stats  host, optional: of y, for a y that is a gradient.
 *  @source Hendrycks & Gimpel, Gaussian Error Linear Units, 2016 (both forms of GELU);
 *          Ramachandran, Zoph & Le, Searching for Activation Functions, 2017 (SiLU); Maas, Hannun &
 *          Ng, Rectifier Nonlinearities Improve Neural Network Acoustic Models, 2013 (leaky ReLU);
 *          ONNX Clip.
 *  @retval MP_ERROR_INVALID_ARGUMENT a D* activation with another op; y is b, with another type
 *          or layout; y overlaps a or b in any other way */
MP_API mp_status_t mp_pointwise(mp_context_t context, const mp_pointwise_desc_t *desc,
                                const void *a, const void *b, void *y, const mp_grad_stats_t *stats,
                                mp_stream_t stream);

/** Shape and types of mp_column_sum. */
typedef struct mp_column_sum_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;     /**< type of x */
  mp_dtype_t dtype_sum; /**< type of sum */
  float beta;           /**< factor of the previous sum; 1 accumulates over micro-batches */
  int64_t rows;         /**< >= 0 */
  int64_t columns;      /**< >= 0 */
  int64_t ld;           /**< row stride of x in elements, >= columns */
} mp_column_sum_desc_t;

/** Initializes a sum over dense rows: dtype_sum = MP_FP32, beta = 0. */
MP_API mp_status_t mp_column_sum_desc_init(mp_column_sum_desc_t *desc, size_t struct_size,
                                           int64_t rows, int64_t columns, mp_dtype_t dtype);
static inline mp_column_sum_desc_t mp_column_sum_desc_default(int64_t rows, int64_t columns,
                                                              mp_dtype_t dtype) {
  mp_column_sum_desc_t desc;
  mp_column_sum_desc_init(&desc, sizeof desc, rows, columns, dtype);
  return desc;
}

/** Returns the workspace size that mp_column_sum requires: at most 2 KiB per column.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_column_sum_workspace_size(mp_context_t context,
                                                const mp_column_sum_desc_t *desc, size_t *bytes);

/** Sums each column of a matrix, e.g. a bias gradient that no GEMM epilogue computes:
 *
 *      sum[j] = round(*scale * (x[0][j] + x[1][j] + ...) + beta * sum[j])
 *
 *  The sum is in fp32, in an order that depends only on rows and columns, and rounded once.
 *  rows = 0 computes beta * sum; columns = 0 does nothing.
 *
 *  @param x         device, rows x columns; for images rows = N H W, columns = C.
 *  @param sum       device, columns elements, written; read only if beta != 0.  Must not overlap
 *                   x.
 *  @param epilogue  host, optional: scale, amax and found_inf.  All other fields must be 0. */
MP_API mp_status_t mp_column_sum(mp_context_t context, const mp_column_sum_desc_t *desc,
                                 const void *x, void *sum, const mp_epilogue_t *epilogue,
                                 void *workspace, size_t workspace_bytes, mp_stream_t stream);

/** Shape and types of mp_sum_rows. */
typedef struct mp_sum_rows_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;     /**< type of x */
  mp_dtype_t dtype_sum; /**< type of sum */
  float beta;           /**< factor of the previous sum; 1 accumulates over micro-batches */
  int64_t rows;         /**< rows of x, >= 0; need not be a multiple of period */
  int64_t period;       /**< rows of sum, >= 0; must not be 0 if rows is not */
  int64_t columns;      /**< >= 0 */
  int64_t ld_x;         /**< >= columns */
  int64_t ld_sum;       /**< >= columns */
} mp_sum_rows_desc_t;

/** Initializes a sum over dense rows: dtype_sum = MP_FP32, beta = 0. */
MP_API mp_status_t mp_sum_rows_desc_init(mp_sum_rows_desc_t *desc, size_t struct_size, int64_t rows,
                                         int64_t period, int64_t columns, mp_dtype_t dtype);
static inline mp_sum_rows_desc_t mp_sum_rows_desc_default(int64_t rows, int64_t period,
                                                          int64_t columns, mp_dtype_t dtype) {
  mp_sum_rows_desc_t desc;
  mp_sum_rows_desc_init(&desc, sizeof desc, rows, period, columns, dtype);
  return desc;
}

/** Sums the rows of a matrix that are `period` rows apart:
 *
 *      sum[i][j] = round(x[i][j] + x[i + period][j] + x[i + 2 period][j] + ... + beta sum[i][j])
 *
 *  This is the gradient of an operand that mp_pointwise repeats (rows_b = period), e.g. a table of
 *  learned positions, or of an additive mask that mp_softmax_forward repeats.  The sum is in fp32,
 *  in ascending order, and rounded once.  Rows of sum without a row of x become beta sum.
 *
 *  Each thread adds one element of sum, so sums of few long columns are slow.  mp_column_sum
 *  computes period = 1 with all SMs.
 *
 *  @param x      device, rows x columns.
 *  @param sum    device, period x columns, written; read only if beta != 0.  Must not overlap x.
 *  @param stats  host, optional: of sum. */
MP_API mp_status_t mp_sum_rows(mp_context_t context, const mp_sum_rows_desc_t *desc, const void *x,
                               void *sum, const mp_grad_stats_t *stats, mp_stream_t stream);

/** Shape, type and activation of a gated linear unit:
 *
 *      x, dx    rows x 2 columns, [gate | up]: gate is the left half, up the right half
 *      y, dy    rows x columns */
typedef struct mp_glu_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< type of x, y, dy and dx */
  /** Applied to gate; any kind except D*.  MP_ACT_SILU: SwiGLU; MP_ACT_GELU and MP_ACT_GELU_ERF:
   *  GeGLU; MP_ACT_SIGMOID: GLU; MP_ACT_RELU: ReGLU; MP_ACT_NONE: the bilinear unit. */
  mp_activation_t activation;
  uint32_t reserved0; /**< must be 0 */
  int64_t rows;       /**< >= 0 */
  int64_t columns;    /**< >= 0 */
  int64_t ld_x;       /**< row stride of x and dx, >= 2 columns */
  int64_t ld_y;       /**< row stride of y and dy, >= columns */
} mp_glu_desc_t;

/** Initializes a gated linear unit with dense rows. */
MP_API mp_status_t mp_glu_desc_init(mp_glu_desc_t *desc, size_t struct_size,
                                    mp_activation_t activation, int64_t rows, int64_t columns,
                                    mp_dtype_t dtype);
static inline mp_glu_desc_t mp_glu_desc_default(mp_activation_t activation, int64_t rows,
                                                int64_t columns, mp_dtype_t dtype) {
  mp_glu_desc_t desc;
  mp_glu_desc_init(&desc, sizeof desc, activation, rows, columns, dtype);
  return desc;
}

/** Computes y = activation(gate) up, in fp32 and rounded once.
 *
 *  NaN is propagated.  rows = 0 or columns = 0 does nothing.  Rows of 16-byte aligned halves
 *  (ld_x and columns multiples of 8 for 16-bit types) are read with vector loads.
 *
 *  @param x  device, rows x 2 columns.
 *  @param y  device, rows x columns, written; must not overlap x.
 *  @source Shazeer, GLU Variants Improve Transformer, 2020; Dauphin et al., Language Modeling with
 *          Gated Convolutional Networks, 2017. */
MP_API mp_status_t mp_glu_forward(mp_context_t context, const mp_glu_desc_t *desc, const void *x,
                                  void *y, mp_stream_t stream);

/** Computes the gradient of mp_glu_forward, in fp32 and rounded once:
 *
 *      dgate = dy up activation'(gate),  dup = dy activation(gate)
 *
 *  With MP_ACT_RELU, dgate is 0 unless gate > 0, even if dy or up is NaN.
 *
 *  @param x      device, rows x 2 columns, as in the forward pass.
 *  @param dy     device, rows x columns.
 *  @param dx     device, rows x 2 columns, [dgate | dup], written; may be x.  Must not overlap dy.
 *  @param stats  host, optional: of dx. */
MP_API mp_status_t mp_glu_backward(mp_context_t context, const mp_glu_desc_t *desc, const void *x,
                                   const void *dy, void *dx, const mp_grad_stats_t *stats,
                                   mp_stream_t stream);

/** Maximum number of dimensions of mp_strided_copy. */
#define MP_STRIDED_COPY_MAX_RANK 6

/** Shape and strides of mp_strided_copy.  The first `rank` elements of the arrays are read; rank 0
 *  is one element. */
typedef struct mp_strided_copy_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;                           /**< type of x and y */
  int32_t rank;                               /**< 0 to MP_STRIDED_COPY_MAX_RANK */
  uint32_t reserved0;                         /**< must be 0 */
  int64_t extent[MP_STRIDED_COPY_MAX_RANK];   /**< >= 0 */
  int64_t x_stride[MP_STRIDED_COPY_MAX_RANK]; /**< in elements, >= 0; 0 repeats x */
  int64_t y_stride[MP_STRIDED_COPY_MAX_RANK]; /**< in elements, >= 0; see mp_strided_copy */
  float alpha;                                /**< finite */
  float beta;                                 /**< finite; 0 = y is not read */
} mp_strided_copy_desc_t;

/** Initializes a copy of one element: alpha = 1, beta = 0. */
MP_API mp_status_t mp_strided_copy_desc_init(mp_strided_copy_desc_t *desc, size_t struct_size,
                                             mp_dtype_t dtype);
static inline mp_strided_copy_desc_t mp_strided_copy_desc_default(mp_dtype_t dtype) {
  mp_strided_copy_desc_t desc;
  mp_strided_copy_desc_init(&desc, sizeof desc, dtype);
  return desc;
}

/** Copies, permutes, repeats or adds a view:
 *
 *      y[i0 y_stride[0] + i1 y_stride[1] + ...] =
 *          round(alpha x[i0 x_stride[0] + i1 x_stride[1] + ...] + beta y[...])
 *
 *  Concatenation, split, slice, padding, transposition and their gradients are such copies.  The
 *  sum is in fp32 and rounded once.  alpha = 1 and beta = 0 copy every number without a change.
 *  Nothing is accessed if an extent is 0.
 *
 *  Elements of y must be distinct: in the order of growing y_stride, each stride of an extent above
 *  1 must be at least the number of elements that the dimensions before it span.
 *
 *  Adjacent elements of the last dimension (both strides 1) are read and written with 16-byte
 *  accesses if they are aligned.
 *
 *  @param x      device, first element of the view.
 *  @param y      device, first element of the view, written.  The memory from its first to its last
 *                element must not overlap that of x.
 *  @param stats  host, optional: of y. */
MP_API mp_status_t mp_strided_copy(mp_context_t context, const mp_strided_copy_desc_t *desc,
                                   const void *x, void *y, const mp_grad_stats_t *stats,
                                   mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_LAYERS_H */
