/* mpcore/layers.h: losses, pooling, batch normalization and pointwise operations. */
#ifndef MPCORE_LAYERS_H
#define MPCORE_LAYERS_H

#include "gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup loss 12. Losses
 *  @{ */

/** Bits of mp_xent_desc_t.flags. */
typedef enum mp_xent_flags {
  MP_XENT_FLAG_IGNORE_LABEL = 1 << 0 /**< excludes rows whose label is `ignore_label` */
} mp_xent_flags_t;

/** Shape and type of a classification loss. */
typedef struct mp_xent_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;      /**< type of logits and dlogits */
  int64_t rows;          /**< samples, >= 0 */
  int64_t classes;       /**< >= 1 */
  int64_t ld_logits;     /**< >= classes */
  int64_t ld_dlogits;    /**< >= classes */
  float weight;          /**< factor of loss and gradient: a task weight, or 1 / micro-batches */
  float label_smoothing; /**< in [0, 1): part of each target, spread evenly over all classes */
  uint32_t flags;        /**< mp_xent_flags_t, or-ed; 0 = every row counts */
  int32_t ignore_label;  /**< any value; read only with MP_XENT_FLAG_IGNORE_LABEL */
} mp_xent_desc_t;

/** Initializes a loss of dense rows: weight = 1, no smoothing, label -100 ignored.
 *
 *  -100 is the ignore_index of torch.  Other labels outside [0, classes), such as -1 or `classes`,
 *  are still detected. */
MP_API mp_status_t mp_xent_desc_init(mp_xent_desc_t *desc, size_t struct_size, int64_t rows,
                                     int64_t classes, mp_dtype_t dtype);
static inline mp_xent_desc_t mp_xent_desc_default(int64_t rows, int64_t classes, mp_dtype_t dtype) {
  mp_xent_desc_t desc;
  mp_xent_desc_init(&desc, sizeof desc, rows, classes, dtype);
  return desc;
}

/** Computes softmax cross-entropy and its gradient, in fp32 for every type of logits:
 *
 *      p = softmax(logits[i])
 *      q[j] = (1 - label_smoothing) (j == labels[i]) + label_smoothing / classes
 *      row_loss[i] = -weight sum_j q[j] log p[j]
 *      loss = sum_i row_loss[i] / counted
 *      dlogits[i][j] = S weight / counted (p[j] - q[j])
 *
 *  - Ignored rows: `counted` is the number of rows that are not ignored, determined on the
 *    device.  An ignored row has loss 0, a gradient of zeros, and is not counted as correct; its
 *    logits are not read.  If all rows are ignored, loss is NaN and the gradient 0, as in torch.
 *  - Several calls, by ranks or for micro-batches: their mean is the mean over all rows only if
 *    `counted` is equal in all calls.
 *  - Invalid labels: any other label outside [0, classes) makes the loss and the gradient of
 *    its row NaN, so that the step is skipped.  The host cannot check labels without waiting.
 *  - Masked classes: a logit of -infinity gives p = 0.  The loss is infinite if that class is
 *    the label or label_smoothing > 0; the gradient stays finite.
 *  - weight = 0 makes row_loss and dlogits 0, even if the loss is infinite, but keeps NaN.
 *  - Accuracy: the gradient of the label's logit is computed from the exponentials of the other
 *    classes.  If the label has the largest logit, the loss is too: log(1 + their sum).  Both keep
 *    their relative accuracy if the label has nearly all of the probability.
 *  - Determinism: the bits of a row depend on its values, the type, the number of classes,
 *    `counted` and the address of the row modulo 16, not on the size of the device.
 *
 *  @param logits      device, rows x classes.
 *  @param labels      device, rows values.
 *  @param loss_scale  device, 1 float S, e.g. mp_scaler_get_scale_address(); NULL = 1.
 *  @param row_loss    device, rows floats, written; not multiplied by S.
 *  @param loss        device, 1 float, optional, written; not multiplied by S.  NaN if rows is 0.
 *  @param correct     device, 1 value, optional: increased by the number of rows whose largest
 *                     logit (the first if several are equal) is the label's.  Clear it first.
 *  @param dlogits     device, rows x classes, optional; may be the same matrix as logits
 *                     (equal ld).  NULL = forward only.
 *  @source Micikevicius et al. 2018, section 3.3 (softmax and loss in fp32), 3.2 (loss scale);
 *  Szegedy et al., Rethinking the Inception Architecture, 2016, section 7 (label smoothing). */
MP_API mp_status_t mp_softmax_xent(mp_context_t context, const mp_xent_desc_t *desc,
                                   const void *logits, const int32_t *labels,
                                   const float *loss_scale, float *row_loss, float *loss,
                                   int64_t *correct, void *dlogits, mp_stream_t stream);

/** Loss l(x, t) of one prediction x and its target t. */
typedef enum mp_loss_kind {
  MP_LOSS_MSE = 1,            /**< (x - t)^2 */
  MP_LOSS_L1 = 2,             /**< |x - t|; derivative 0 at x = t */
  MP_LOSS_BCE_WITH_LOGITS = 3 /**< -t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x)) */
} mp_loss_kind_t;

/** Divisor of the sum of element losses. */
typedef enum mp_loss_reduction {
  MP_LOSS_REDUCTION_MEAN = 0, /**< number of elements that are not ignored */
  MP_LOSS_REDUCTION_SUM = 1   /**< 1 */
} mp_loss_reduction_t;

/** Bits of mp_loss_desc_t.flags. */
typedef enum mp_loss_flags {
  MP_LOSS_FLAG_IGNORE_TARGET = 1 << 0 /**< excludes elements whose target is `ignore_target` */
} mp_loss_flags_t;

/** Size and types of an element-wise loss. */
typedef struct mp_loss_desc {
  uint32_t struct_size;
  mp_loss_kind_t kind;
  mp_dtype_t dtype;        /**< type of prediction and dprediction */
  mp_dtype_t dtype_target; /**< type of target */
  int64_t count;           /**< elements, >= 0 */
  float weight;            /**< factor of loss and gradient, as in mp_xent_desc_t */
  mp_loss_reduction_t reduction;
  uint32_t flags;      /**< mp_loss_flags_t, or-ed; 0 = every element counts */
  float ignore_target; /**< any value, NaN included; read only with MP_LOSS_FLAG_IGNORE_TARGET */
} mp_loss_desc_t;

/** Initializes a mean over all elements: weight = 1, dtype_target = dtype. */
MP_API mp_status_t mp_loss_desc_init(mp_loss_desc_t *desc, size_t struct_size, mp_loss_kind_t kind,
                                     int64_t count, mp_dtype_t dtype);
static inline mp_loss_desc_t mp_loss_desc_default(mp_loss_kind_t kind, int64_t count,
                                                  mp_dtype_t dtype) {
  mp_loss_desc_t desc;
  mp_loss_desc_init(&desc, sizeof desc, kind, count, dtype);
  return desc;
}

/** Returns the workspace size that mp_loss requires: at most 16 KiB, 0 if count is 0.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_loss_workspace_size(mp_context_t context, const mp_loss_desc_t *desc,
                                          size_t *bytes);

/** Computes a mean squared error, mean absolute error or binary cross-entropy and its gradient, in
 *  fp32:
 *
 *      element_loss[i] = weight weights[i] l(x[i], t[i])
 *      loss = sum_i element_loss[i] / divisor
 *      dprediction[i] = S weight weights[i] / divisor dl/dx(x[i], t[i])
 *
 *  - Divisor: with MP_LOSS_REDUCTION_MEAN the number of elements that are not ignored, independent of
 *    their weights, as in torch.  If all are ignored, the mean is NaN.
 *  - Ignored elements, and elements with weights[i] = 0, have loss 0 and gradient 0 for every
 *    prediction.  Elements with weights[i] = 0 are included in the divisor.
 *  - weight = 0 makes element_loss and dprediction 0, even if the loss is infinite, but keeps
 *    NaN.
 *  - NaN in prediction or target makes the loss and the gradient of that element NaN.
 *  - Infinite predictions, such as an overflow of fp16, make the gradient infinite or NaN, so
 *    that the step is skipped.  The exception is a logit of -infinity, which is masked as in
 *    mp_softmax_xent: its probability is 0 and its gradient -t.
 *  - Accuracy: for t = 0 and t = 1, loss and gradient of a logit keep their relative accuracy
 *    at probabilities close to 0 and 1.
 *  - Determinism: the sum is in fp64, in an order that depends only on count.
 *
 *  @param prediction    device, count elements.
 *  @param target        device, count elements.
 *  @param weights       device, count floats, optional; NULL = 1.
 *  @param loss_scale    device, 1 float S, e.g. mp_scaler_get_scale_address(); NULL = 1.
 *  @param element_loss  device, count floats, optional, written; not multiplied by S.
 *  @param loss          device, 1 float, optional, written; not multiplied by S.
 *  @param dprediction   device, count elements, optional; may be prediction.  NULL = forward only.
 *  @param workspace     device, 256-byte aligned; mp_loss_workspace_size bytes.
 *  @source torch.nn.MSELoss, L1Loss, BCEWithLogitsLoss; Micikevicius et al. 2018, sections 3.2,
 *          3.3.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_loss_workspace_size */
MP_API mp_status_t mp_loss(mp_context_t context, const mp_loss_desc_t *desc, const void *prediction,
                           const void *target, const float *weights, const float *loss_scale,
                           float *element_loss, float *loss, void *dprediction, void *workspace,
                           size_t workspace_bytes, mp_stream_t stream);

/** @} */

/** @defgroup layers 13. Layout, pooling, batch normalization, pointwise operations
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
 *  extent of the window, and dilation_h at most H if pad_top > 0 (dilation_w and W likewise).
 *
 *  If the window is larger than the padded image (with MP_POOL_FLAG_CEIL: by a stride or more), P or Q
 *  is 0: y is empty and dx is 0. */
typedef struct mp_pool2d_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< type of x, y, dy and dx; sums are fp32 */
  mp_pool_mode_t mode;
  int32_t n;                  /**< >= 0 */
  int32_t h, w, c;            /**< >= 1 */
  int32_t window_h, window_w; /**< >= 1 */
  int32_t pad_top, pad_bottom, pad_left,
      pad_right;                  /**< >= 0 and smaller than the window's extent */
  int32_t stride_h, stride_w;     /**< >= 1 */
  uint32_t flags;                 /**< mp_pool_flags_t, or-ed */
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
 *  @param x  device, N H W C.
 *  @param y  device, N P Q C, written; must not overlap x. */
MP_API mp_status_t mp_pool2d_forward(mp_context_t context, const mp_pool2d_desc_t *desc,
                                     const void *x, void *y, mp_stream_t stream);

/** Computes the gradient of mp_pool2d_forward.
 *
 *  Each pixel of dx sums over the windows that contain it, in fp32 and in a fixed order.
 *  MP_POOL_MAX routes dy to the maximum of each window, the first in row order if several are
 *  equal.  The maximum is recomputed from x, so y is not needed.
 *  @param x   device, N H W C; read only for MP_POOL_MAX, otherwise optional.
 *  @param dy  device, N P Q C.
 *  @param dx  device, N H W C, overwritten; must not overlap dy, nor x for MP_POOL_MAX. */
MP_API mp_status_t mp_pool2d_backward(mp_context_t context, const mp_pool2d_desc_t *desc,
                                      const void *x, const void *dy, void *dx, mp_stream_t stream);

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
 *  @param tensors    host: x, saved_mean, saved_inv_std and y; optionally gamma, beta, and
 *                    running_mean and running_var, which are updated.
 *  @param workspace  device, 256-byte aligned; mp_batchnorm_workspace_size bytes.
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
 *  (statistics in fp32).
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_batchnorm_workspace_size */
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
  MP_POINTWISE_COPY = 1, /**< z = a */
  MP_POINTWISE_ADD = 2,  /**< z = a + b */
  MP_POINTWISE_MUL = 3   /**< z = a b */
} mp_pointwise_op_t;

/** Shape, types and operation of mp_pointwise:
 *
 *      a, y    rows x columns, dense
 *      b       rows x columns with row stride ld_b, or one broadcast row (ld_b = 0), such as a bias
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
} mp_pointwise_desc_t;

/** Initializes a pass over dense tensors: dtype_b = dtype, no activation. */
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
 *  Activations are those of mp_epilogue_t.  NaN is propagated, with one exception: MP_ACT_DRELU
 *  returns a if b > 0, and otherwise 0 even if a is NaN.  rows = 0 or columns = 0 does nothing.
 *
 *  @param a  device, rows x columns.
 *  @param b  device; ignored, and may be NULL, with MP_POINTWISE_COPY and no D* activation.
 *  @param y  device, rows x columns, written; may be a.  May be b if both have the same type and
 *            layout: dtype_b = dtype, and ld_b = columns or rows = 1.
 *  @source Hendrycks & Gimpel, Gaussian Error Linear Units, 2016 (both forms of GELU);
 *          Ramachandran, Zoph & Le, Searching for Activation Functions, 2017 (SiLU).
 *  @retval MP_ERROR_INVALID_ARGUMENT a D* activation with another op; y is b, with another type
 *          or layout; y overlaps a or b in any other way */
MP_API mp_status_t mp_pointwise(mp_context_t context, const mp_pointwise_desc_t *desc,
                                const void *a, const void *b, void *y, mp_stream_t stream);

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
 *  @param x          device, rows x columns; for images rows = N H W, columns = C.
 *  @param sum        device, columns elements, written; read only if beta != 0.  Must not overlap
 *                    x.
 *  @param epilogue   host, optional: scale, amax and found_inf.  All other fields must be 0.
 *  @param workspace  device, 256-byte aligned; mp_column_sum_workspace_size bytes.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_column_sum_workspace_size */
MP_API mp_status_t mp_column_sum(mp_context_t context, const mp_column_sum_desc_t *desc,
                                 const void *x, void *sum, const mp_epilogue_t *epilogue,
                                 void *workspace, size_t workspace_bytes, mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_LAYERS_H */
