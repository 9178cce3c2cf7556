/* mpcore/layers.h: the loss, what stands around a convolution, and pointwise functions. */
#ifndef MPCORE_LAYERS_H
#define MPCORE_LAYERS_H

#include "gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup loss 12. What a training loop needs around them
 *  @{ */

/** Bits of mp_xent_desc_t.flags. */
typedef enum mp_xent_flags {
  MP_XENT_IGNORE_LABEL = 1 << 0 /**< rows whose label is `ignore_label` do not count */
} mp_xent_flags_t;

/** Shape and types of a classification loss. */
typedef struct mp_xent_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;   /**< of logits and dlogits */
  int64_t rows;       /**< samples, >= 0 */
  int64_t classes;    /**< >= 1 */
  int64_t ld_logits;  /**< >= classes */
  int64_t ld_dlogits; /**< >= classes */
  float weight;       /**< multiplies loss and gradient: a task weight, or 1/accumulation steps */
  float label_smoothing; /**< in [0, 1): the part of each target that all classes share alike */
  uint32_t flags;        /**< mp_xent_flags_t, or-ed; 0 = every row counts */
  int32_t ignore_label;  /**< any number, a class or not; without its flag it is not looked at */
} mp_xent_desc_t;

/** Dense rows, weight = 1, no smoothing; rows labelled -100 are ignored, which is what torch
 *  ignores and what its data loaders pad with.  Labels that are wrong by a slip (-1, classes) still
 *  show. */
MP_API mp_status_t mp_xent_desc_init(mp_xent_desc_t *desc, size_t struct_size, int64_t rows,
                                     int64_t classes, mp_dtype_t dtype);
static inline mp_xent_desc_t mp_xent_desc_default(int64_t rows, int64_t classes, mp_dtype_t dtype) {
  mp_xent_desc_t desc;
  mp_xent_desc_init(&desc, sizeof desc, rows, classes, dtype);
  return desc;
}

/** Softmax cross-entropy and its gradient, in fp32 whatever the type of the logits:
 *
 *      p = softmax(logits[i])
 *      q[j] = (1 - label_smoothing) (j == labels[i]) + label_smoothing / classes
 *      row_loss[i] = -weight sum_j q[j] log p[j]
 *      loss = sum_i row_loss[i] / counted
 *      dlogits[i][j] = S weight / counted (p[j] - q[j])
 *
 *  A row with the ignored label has loss 0 and a gradient of zeros, whatever its logits, which are
 *  not read; it is not correct either.  `counted` is the number of the other rows, counted on the
 *  device. If it is 0, loss is NaN, the mean of nothing, and the gradient is 0 (both as in
 *  torch).  It is counted per call: the mean of several calls, of ranks or accumulated, is that
 *  over all rows only where each counts as many.
 *
 *  Every other label outside [0, classes) makes the loss and the gradient of its row NaN, so that
 *  the step is skipped and the mistake shows; the host cannot check labels without waiting.
 *
 *  A class with the logit -infinity is masked: p = 0.  With smoothing it makes the loss infinite,
 *  as the formula says, for its q is not 0; so does a masked label.  The gradient stays finite.  A
 *  weight of 0 makes row_loss and dlogits 0, even if the loss is infinite; NaN is preserved.
 *
 *  The gradient of the label is computed from the exponentials of the other classes, and the loss
 *  of a row whose label is its largest logit as log(1 + their sum): both keep their relative
 *  accuracy where the label has nearly all of the probability.
 *
 *  The bits of a row depend on its values, on type and number of its classes, on how many rows
 *  count and on its address modulo 16; not on the size of the device.
 *
 *  @param logits      device, rows x classes.
 *  @param labels      device, rows integers.
 *  @param loss_scale  device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
 *  @param row_loss    device, rows floats, written; not multiplied by S.
 *  @param loss        device, 1 float, optional, written; NaN when rows is 0.
 *  @param correct     device, 1 integer, optional: increased by the number of rows whose
 *                     largest logit (the first, among equals) is the label's.  Clear it first.
 *  @param dlogits     device, rows x classes, optional; may be the same matrix as logits
 *                     (equal ld).  NULL = forward only.
 *  @source Micikevicius et al. 2018, section 3.3 (softmax and loss in fp32), 3.2 (loss scale);
 *  Szegedy et al., Rethinking the Inception Architecture, 2016, section 7 (label smoothing). */
MP_API mp_status_t mp_softmax_xent(mp_context_t context, const mp_xent_desc_t *desc,
                                   const void *logits, const int32_t *labels,
                                   const float *loss_scale, float *row_loss, float *loss,
                                   int64_t *correct, void *dlogits, mp_stream_t stream);

/** Losses of one prediction x and one target t. */
typedef enum mp_loss_kind {
  MP_LOSS_MSE = 1,            /**< (x - t)^2 */
  MP_LOSS_L1 = 2,             /**< |x - t|; its derivative is 0 for x = t */
  MP_LOSS_BCE_WITH_LOGITS = 3 /**< -t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x)) */
} mp_loss_kind_t;

/** Divisors of a sum of losses. */
typedef enum mp_loss_reduction {
  MP_LOSS_MEAN = 0, /**< the number of elements that count */
  MP_LOSS_SUM = 1   /**< 1 */
} mp_loss_reduction_t;

/** Bits of mp_loss_desc_t.flags. */
typedef enum mp_loss_flags {
  MP_LOSS_IGNORE_TARGET = 1 << 0 /**< elements whose target is `ignore_target` do not count */
} mp_loss_flags_t;

/** Shape and types of a loss of single elements. */
typedef struct mp_loss_desc {
  uint32_t struct_size;
  mp_loss_kind_t kind;
  mp_dtype_t dtype;        /**< type of prediction and dprediction */
  mp_dtype_t dtype_target; /**< type of target */
  int64_t count;           /**< elements, >= 0 */
  float weight;            /**< multiplies loss and gradient, as in mp_xent_desc_t */
  mp_loss_reduction_t reduction;
  uint32_t flags;      /**< mp_loss_flags_t, or-ed; 0 = every element counts */
  float ignore_target; /**< any number, also NaN; not read without its flag */
} mp_loss_desc_t;

/** The mean of all elements, weight = 1, target of the type of the prediction. */
MP_API mp_status_t mp_loss_desc_init(mp_loss_desc_t *desc, size_t struct_size, mp_loss_kind_t kind,
                                     int64_t count, mp_dtype_t dtype);
static inline mp_loss_desc_t mp_loss_desc_default(mp_loss_kind_t kind, int64_t count,
                                                  mp_dtype_t dtype) {
  mp_loss_desc_t desc;
  mp_loss_desc_init(&desc, sizeof desc, kind, count, dtype);
  return desc;
}

/** Bytes of workspace that mp_loss needs: at most 16 KiB, 0 for no elements.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_loss_workspace_size(mp_context_t context, const mp_loss_desc_t *desc,
                                          size_t *bytes);

/** Mean squared error, mean absolute error, or binary cross-entropy, and the gradient of each, in
 *  fp32:
 *
 *      element_loss[i] = weight weights[i] l(x[i], t[i])
 *      loss = sum_i element_loss[i] / divisor
 *      dprediction[i] = S weight weights[i] / divisor dl/dx(x[i], t[i])
 *
 *  With MP_LOSS_MEAN the divisor is the number of elements that count, whatever their weights are,
 *  as in torch.  An ignored element has loss 0 and gradient 0 and does not count; one whose
 *  weights[i] is 0 has both too, whatever its prediction is, and counts.  If none counts, the mean
 *  is NaN.  A weight of 0 makes element_loss and dprediction 0, even if the loss is infinite; NaN
 *  is preserved.
 *
 *  A NaN makes loss and gradient of its element NaN.  An infinite prediction, as fp16 makes it of
 *  an overflow, makes the gradient infinite or NaN, so that the step is skipped; but a logit of
 *  -infinity is a masked one, as in mp_softmax_xent: the probability is 0 and the gradient -t.
 *  Logits lose nothing in confident elements: loss and gradient keep their relative accuracy for t
 *  = 0 and 1.
 *
 *  The order of the sum, in fp64, depends on count alone.
 *
 *  @param prediction    device, count elements.
 *  @param target        device, count elements.
 *  @param weights       device, count floats, optional: NULL = 1.
 *  @param loss_scale    device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
 *  @param element_loss  device, count floats, optional, written; not multiplied by S.
 *  @param loss          device, 1 float, optional, written; not multiplied by S.
 *  @param dprediction   device, count elements, optional; may be prediction.  NULL = forward only.
 *  @param workspace     device, 256-byte aligned; mp_loss_workspace_size bytes.
 *  @source torch.nn.MSELoss, L1Loss, BCEWithLogitsLoss; Micikevicius et al. 2018, sections 3.2,
 *          3.3.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed */
MP_API mp_status_t mp_loss(mp_context_t context, const mp_loss_desc_t *desc, const void *prediction,
                           const void *target, const float *weights, const float *loss_scale,
                           float *element_loss, float *loss, void *dprediction, void *workspace,
                           size_t workspace_bytes, mp_stream_t stream);

/** @} */

/** @defgroup layers 13. Layers around a convolution (NHWC), and pointwise functions
 *  @{ */

/** Images from N C H W to N H W C, the layout of convolutions and of everything here.
 *  Converts the type on the way, as mp_cast does.
 *
 *  @param n,c,h,w     >= 0, in this order for both; where one is 0 there is nothing to do.
 *  @param src         device, dense, n c h w elements.
 *  @param dst         device, dense, as many; must not overlap src. */
MP_API mp_status_t mp_nchw_to_nhwc(mp_context_t context, int64_t n, int64_t c, int64_t h, int64_t w,
                                   const void *src, mp_dtype_t src_dtype, void *dst,
                                   mp_dtype_t dst_dtype, mp_stream_t stream);
/** The way back: images from N H W C to N C H W.  n, c, h, w are in this order here too. */
MP_API mp_status_t mp_nhwc_to_nchw(mp_context_t context, int64_t n, int64_t c, int64_t h, int64_t w,
                                   const void *src, mp_dtype_t src_dtype, void *dst,
                                   mp_dtype_t dst_dtype, mp_stream_t stream);

/** What becomes of the pixels of a window.  Padding is never the largest; it counts as zeros in
 *  one of the two means, and not at all in the other. */
typedef enum mp_pool_mode {
  MP_POOL_MAX = 1,
  MP_POOL_AVG_INCLUDE_PAD = 2, /**< sum / number of pixels inside the padded image */
  MP_POOL_AVG_EXCLUDE_PAD = 3  /**< sum / number of pixels inside the image */
} mp_pool_mode_t;

/** Bits of mp_pool2d_desc_t.flags. */
typedef enum mp_pool_flags {
  /** P and Q are rounded up: the last window may reach past the padding, but begins inside the
   *  image or the padding before it.  As ceil_mode of torch. */
  MP_POOL_CEIL = 1 << 0
} mp_pool_flags_t;

/** Shape and type of a pooling layer:
 *
 *      x, dx    N H W C     dense, C contiguous
 *      y, dy    N P Q C     P = (pad_top + H + pad_bottom - extent_h) / stride_h + 1 (rounded down)
 *                           extent_h = dilation_h (window_h - 1) + 1
 *
 *  Q likewise.  Padding is smaller than the extent of the window, so that every window has a pixel.
 *  With padding before it, a dilation above 1 must not exceed H (or W).  If the window is larger
 *  than the padded image, P or Q is 0: there are no outputs, and dx is
 *  0. */
typedef struct mp_pool2d_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< of x, y, dy and dx; sums are fp32 */
  mp_pool_mode_t mode;
  int32_t n;                  /**< >= 0 */
  int32_t h, w, c;            /**< >= 1 */
  int32_t window_h, window_w; /**< >= 1 */
  int32_t pad_top, pad_bottom, pad_left,
      pad_right;                  /**< >= 0 and smaller than the window's extent */
  int32_t stride_h, stride_w;     /**< >= 1 */
  uint32_t flags;                 /**< mp_pool_flags_t, or-ed */
  int32_t dilation_h, dilation_w; /**< distance of a window's pixels, >= 0; 0 = 1 */
} mp_pool2d_desc_t;

/** Windows side by side, without padding or dilation. */
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

/** P and Q of `desc`.
 *  @param p,q  host, out. */
MP_API mp_status_t mp_pool2d_output_size(const mp_pool2d_desc_t *desc, int32_t *p, int32_t *q);

/** y = the largest element, or the mean, of each window and channel.  NaN is larger than
 *  everything and makes every mean NaN.
 *  @param x  device.
 *  @param y  device, written; must not overlap x. */
MP_API mp_status_t mp_pool2d_forward(mp_context_t context, const mp_pool2d_desc_t *desc,
                                     const void *x, void *y, mp_stream_t stream);

/** dx = the gradient of x, overwritten.  MP_POOL_MAX: the pixel that was the largest of its window,
 *  the first one by rows among equals, gets dy; it is found again from x, so y is not needed.
 *  Every pixel sums over the windows that hold it, in fp32 and a fixed order; for MP_POOL_MAX it
 *  reads each of them.
 *  @param x   device; read for MP_POOL_MAX alone, optional otherwise.
 *  @param dy  device.
 *  @param dx  device, written; must not overlap dy, nor x for MP_POOL_MAX. */
MP_API mp_status_t mp_pool2d_backward(mp_context_t context, const mp_pool2d_desc_t *desc,
                                      const void *x, const void *dy, void *dx, mp_stream_t stream);

/** Batch normalisation of `rows` samples (N H W pixels of images) of `channels` values each. */
typedef struct mp_batchnorm_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;           /**< of x, y, dy and dx; everything else is fp32 */
  int64_t rows;               /**< >= 0 */
  int32_t channels;           /**< >= 0 */
  mp_activation_t activation; /**< MP_ACT_NONE or MP_ACT_RELU */
  float epsilon;              /**< >= 0; with 0, a constant channel becomes NaN */
  float momentum;             /**< of the running statistics, in [0, 1] */
} mp_batchnorm_desc_t;

/** epsilon = 1e-5, momentum = 0.1, no activation. */
MP_API mp_status_t mp_batchnorm_desc_init(mp_batchnorm_desc_t *desc, size_t struct_size,
                                          int64_t rows, int32_t channels, mp_dtype_t dtype);
static inline mp_batchnorm_desc_t mp_batchnorm_desc_default(int64_t rows, int32_t channels,
                                                            mp_dtype_t dtype) {
  mp_batchnorm_desc_t desc;
  mp_batchnorm_desc_init(&desc, sizeof desc, rows, channels, dtype);
  return desc;
}

/** The tensors of a batch normalisation, device; those that a pass does not name below are not
 *  looked at.  Zeros and struct_size are a start: MP_INIT_STRUCT. */
typedef struct mp_batchnorm_tensors {
  uint32_t struct_size;
  uint32_t reserved0;                /**< must be 0 */
  const void *x;                     /**< rows x channels, dense */
  const float *gamma, *beta;         /**< channels; NULL = 1 and 0 */
  float *running_mean, *running_var; /**< channels */
  float *saved_mean, *saved_inv_std; /**< channels; training writes them for the backward pass */
  void *y;                           /**< rows x channels, written */
  const void *dy;                    /**< rows x channels */
  void *dx;                          /**< rows x channels, written; may be dy */
  float *dgamma, *dbeta;             /**< channels, overwritten, optional; zeros when rows is 0 */
} mp_batchnorm_tensors_t;

/** Bytes of workspace that training and backward need: at most 4 KiB per channel.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_batchnorm_workspace_size(mp_context_t context,
                                               const mp_batchnorm_desc_t *desc, size_t *bytes);

/** Normalises each channel with the statistics of these rows:
 *
 *      mean = sum_i x[i] / rows,  var = sum_i (x[i] - mean)^2 / rows
 *      inv_std = 1 / sqrt(var + epsilon)
 *      y[i] = activation((x[i] - mean) gamma inv_std + beta)
 *      running_mean = (1 - momentum) running_mean + momentum mean
 *      running_var  = (1 - momentum) running_var + momentum var rows / (rows - 1)
 *
 *  @param tensors    host: x, saved_mean, saved_inv_std, y; gamma and beta are optional;
 *                    running_mean and running_var are too, and updated.
 *  @param workspace  device, 256-byte aligned; mp_batchnorm_workspace_size bytes.
 *
 *  A channel with an infinity or a NaN in x becomes NaN, and so does one whose rows var is beyond
 *  the range of fp32.  Its mean and variance do not enter the running statistics, so that a step
 *  which the loss scaler skips for it leaves them as they were.  A running value that is itself
 *  infinite or NaN is replaced by the next finite one of a batch, unless momentum is 0.  A step
 *  that is skipped for another reason, such as an overflow of a gradient, has still updated them.
 *
 *  rows = 1 leaves running_var as it is, for one sample has no unbiased variance; rows = 0 or
 *  channels = 0 writes nothing.
 *
 *  Means and squared deviations of blocks of rows are combined pairwise, never sums of squares:
 *  accurate also where the mean is large beside the deviation.  The order depends on the shape
 *  alone, not on the device.
 *  @source Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1; Chan, Golub & LeVeque,
 *  Algorithms for Computing the Sample Variance, 1983; Micikevicius et al. 2018, section 3.3
 *  (statistics in fp32).
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed */
MP_API mp_status_t mp_batchnorm_forward_training(mp_context_t context,
                                                 const mp_batchnorm_desc_t *desc,
                                                 const mp_batchnorm_tensors_t *tensors,
                                                 void *workspace, size_t workspace_bytes,
                                                 mp_stream_t stream);

/** The same with given statistics; momentum is not looked at.
 *  @param tensors  host: x, running_mean, running_var, which are read here, and y, which may be x;
 *                  gamma and beta are optional. */
MP_API mp_status_t mp_batchnorm_forward_inference(mp_context_t context,
                                                  const mp_batchnorm_desc_t *desc,
                                                  const mp_batchnorm_tensors_t *tensors,
                                                  mp_stream_t stream);

/** Gradients of mp_batchnorm_forward_training, with g = dy, or with MP_ACT_RELU 0 where the
 *  activation was not positive, which is computed again from x; so y need not be kept:
 *
 *      xhat[i] = (x[i] - mean) inv_std
 *      dbeta = sum_i g[i],  dgamma = sum_i g[i] xhat[i]
 *      dx[i] = gamma inv_std (g[i] - dbeta / rows - xhat[i] dgamma / rows)
 *
 *  @param tensors  host: x, gamma, beta, saved_mean and saved_inv_std as in the forward pass, dy,
 *                  dx; dgamma and dbeta are optional.
 *  An infinity or a NaN in x or g makes dgamma and dx of its channel infinite or NaN.  Workspace
 *  and order of sums as in the forward pass. */
MP_API mp_status_t mp_batchnorm_backward(mp_context_t context, const mp_batchnorm_desc_t *desc,
                                         const mp_batchnorm_tensors_t *tensors, void *workspace,
                                         size_t workspace_bytes, mp_stream_t stream);

/** What becomes of an element of a and the one of b at its place. */
typedef enum mp_pointwise_op {
  MP_POINTWISE_COPY = 1, /**< z = a */
  MP_POINTWISE_ADD = 2,  /**< z = a + b */
  MP_POINTWISE_MUL = 3   /**< z = a b */
} mp_pointwise_op_t;

/** Shape, types and function of a pass over elements:
 *
 *      a, y    rows x columns, dense
 *      b       rows x columns, or with ld_b = 0 a single row of them that stands for all, as a bias does
 *
 *  Where b has them all, or is not read, a tensor of any shape may be one row. */
typedef struct mp_pointwise_desc {
  uint32_t struct_size;
  mp_pointwise_op_t op;
  /** Of z.  The D* kinds with MP_POINTWISE_COPY alone: y = a activation'(b), which takes a gradient
   *  a back through the activation; b is what went into it, not what came out. */
  mp_activation_t activation;
  mp_dtype_t dtype; /**< of a and y */
  mp_dtype_t dtype_b;
  uint32_t reserved0; /**< must be 0 */
  int64_t rows;       /**< >= 0 */
  int64_t columns;    /**< >= 0 */
  int64_t ld_b;       /**< >= columns; 0 = the first row of b for every row */
} mp_pointwise_desc_t;

/** No activation; b is dense, and of the same type. */
MP_API mp_status_t mp_pointwise_desc_init(mp_pointwise_desc_t *desc, size_t struct_size,
                                          mp_pointwise_op_t op, int64_t rows, int64_t columns,
                                          mp_dtype_t dtype);
static inline mp_pointwise_desc_t mp_pointwise_desc_default(mp_pointwise_op_t op, int64_t rows,
                                                            int64_t columns, mp_dtype_t dtype) {
  mp_pointwise_desc_t desc;
  mp_pointwise_desc_init(&desc, sizeof desc, op, rows, columns, dtype);
  return desc;
}

/** y = activation(z), for each element.
 *
 *  Computed in fp32 and rounded once.  A NaN stays NaN, except where MP_ACT_DRELU gives 0: it takes
 *  a where b > 0, and 0 elsewhere, whatever a is.  Activations are those of mp_epilogue_t.
 *
 *  With rows or columns of 0 nothing is read or written.
 *
 *  @param a  device, rows x columns.
 *  @param b  device; with MP_POINTWISE_COPY and a forward activation, or none, it is not looked at
 *            and may be NULL.
 *  @param y  device, rows x columns, written; may be a.  May be b where its elements have the
 *            places and the type of those of y: dtype_b = dtype, and ld_b = columns or rows = 1.
 *  @source Hendrycks & Gimpel, Gaussian Error Linear Units, 2016 (both forms of GELU);
 *          Ramachandran, Zoph & Le, Searching for Activation Functions, 2017 (SiLU).
 *  @retval MP_ERROR_INVALID_ARGUMENT also where a D* kind comes with another op, or y is a b with
 *          another layout or type, or overlaps a or b otherwise */
MP_API mp_status_t mp_pointwise(mp_context_t context, const mp_pointwise_desc_t *desc,
                                const void *a, const void *b, void *y, mp_stream_t stream);

/** Shape and types of a sum over the rows of a matrix. */
typedef struct mp_column_sum_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;     /**< type of x */
  mp_dtype_t dtype_sum; /**< type of sum */
  float beta;           /**< sum = column sums + beta * sum; 1 accumulates over micro-batches */
  int64_t rows;         /**< >= 0 */
  int64_t columns;      /**< >= 0 */
  int64_t ld;           /**< >= columns; elements from row to row of x */
} mp_column_sum_desc_t;

/** Dense rows, dtype_sum = MP_FP32, beta = 0. */
MP_API mp_status_t mp_column_sum_desc_init(mp_column_sum_desc_t *desc, size_t struct_size,
                                           int64_t rows, int64_t columns, mp_dtype_t dtype);
static inline mp_column_sum_desc_t mp_column_sum_desc_default(int64_t rows, int64_t columns,
                                                              mp_dtype_t dtype) {
  mp_column_sum_desc_t desc;
  mp_column_sum_desc_init(&desc, sizeof desc, rows, columns, dtype);
  return desc;
}

/** Bytes of workspace that mp_column_sum needs: at most 2 KiB per column.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_column_sum_workspace_size(mp_context_t context,
                                                const mp_column_sum_desc_t *desc, size_t *bytes);

/** Sums each column, such as the gradient of a bias where no epilogue of a product makes it:
 *
 *      sum[j] = round(*scale * (x[0][j] + x[1][j] + ...) + beta * sum[j])
 *
 *  Summed in fp32, in an order that depends on rows and columns alone, and rounded once.  rows = 0
 *  leaves beta * sum; columns = 0 does nothing.
 *
 *  @param x          device, rows x columns.  For images N H W C, rows = N H W.
 *  @param sum        device, columns elements, written; read only when beta != 0.  Must not overlap
 *                    x.
 *  @param epilogue   host, optional: scale, amax and found_inf.  Everything else is unsupported
 *                    here and must be 0.
 *  @param workspace  device, 256-byte aligned; mp_column_sum_workspace_size bytes.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed */
MP_API mp_status_t mp_column_sum(mp_context_t context, const mp_column_sum_desc_t *desc,
                                 const void *x, void *sum, const mp_epilogue_t *epilogue,
                                 void *workspace, size_t workspace_bytes, mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_LAYERS_H */
