/* mpcore/loss.h: softmax cross-entropy and element-wise losses. */
#ifndef MPCORE_LOSS_H
#define MPCORE_LOSS_H

#include "core.h"

MP_BEGIN_C

/** @defgroup loss 10. Losses
 *  @{ */

/** Bits of mp_xent_desc_t.flags and mp_linear_xent_desc_t.flags. */
typedef enum mp_xent_flags {
  MP_XENT_FLAG_IGNORE_LABEL = 1 << 0, /**< excludes rows whose label is `ignore_label` */
  /** mp_softmax_xent only: x are log p; negative log-likelihood, no softmax. */
  MP_XENT_FLAG_LOG_PROBABILITIES = 1 << 1,
  MP_XENT_FLAG_ACCUMULATE = 1 << 2 /**< mp_linear_xent only: adds to dw and dbias */
} mp_xent_flags_t;

/** Shape and types of a classification loss. */
typedef struct mp_xent_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;        /**< type of logits and dlogits */
  mp_dtype_t dtype_labels; /**< MP_INT32 or MP_INT64; floating-point: labels are soft targets */
  uint32_t flags;          /**< bitwise or of mp_xent_flags_t; 0 = every row counts */
  int64_t rows;            /**< samples, >= 0 */
  int64_t classes;         /**< >= 1 */
  int64_t ld_logits;       /**< >= classes */
  int64_t ld_dlogits;      /**< >= classes */
  /** Any value; read only with MP_XENT_FLAG_IGNORE_LABEL and integer labels. */
  int64_t ignore_label;
  float weight;          /**< factor of loss and gradient: a task weight, or 1 / micro-batches */
  float label_smoothing; /**< in [0, 1): part of each target, spread evenly over all classes */
  float z_loss;          /**< >= 0: weight of lse^2; 0 with MP_XENT_FLAG_LOG_PROBABILITIES */
  uint32_t reserved0;    /**< must be 0 */
  int64_t ld_labels;     /**< soft targets: >= classes, 0 = classes; otherwise must be 0 */
} mp_xent_desc_t;

/** Initializes a loss of dense rows: labels of type MP_INT32, weight = 1, no smoothing, label -100
 *  ignored.
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

/** Tensors of a classification loss, device.  Initialize with MP_INIT_STRUCT.
 *
 *  The comments describe mp_softmax_xent.  mp_linear_xent has the input of its linear layer in
 *  place of the logits, and w, bias, dw and dbias, which mp_softmax_xent requires to be NULL. */
typedef struct mp_xent_tensors {
  uint32_t struct_size;
  uint32_t reserved0;      /**< must be 0 */
  const void *x;           /**< logits, rows x classes */
  const void *w, *bias;    /**< mp_linear_xent only */
  const void *labels;      /**< rows integers, or soft targets, rows x classes */
  const float *loss_scale; /**< 1 float S, e.g. mp_scaler_get_scale_address(); NULL = 1 */
  /** 1 float, optional: the total of `counted`, over all micro-batches and ranks.  NULL = `counted`
   *  of this call. */
  const float *count;
  float *row_loss; /**< rows floats, written; not multiplied by S */
  /** rows floats, optional, written: log sum_j exp(x[i][j]).  0 if the row is ignored, NaN if its
   *  label is invalid. */
  float *lse;
  /** 1 float, optional, written; not multiplied by S.  rows = 0: 0 with count, NaN without it. */
  float *loss;
  /** 1 integer, optional: increased by the number of rows whose largest logit (the first if several
   *  are equal) is the label's.  Clear it first.  Must be NULL with soft targets. */
  int64_t *correct;
  /** dlogits, rows x classes, optional; may be x (equal ld).  NULL = forward only. */
  void *dx;
  float *dw, *dbias;          /**< mp_linear_xent only */
  mp_grad_stats_t stats;      /**< statistics of dx, dw and dbias */
  const float *class_weights; /**< classes floats c, >= 0; NULL = 1 */
} mp_xent_tensors_t;

/** Computes softmax cross-entropy and its gradient, in fp32 for every type of logits:
 *
 *      p = softmax(logits[i])
 *      t[j] = j == labels[i], or labels[i][j] of soft targets
 *      q[j] = c[j] ((1 - label_smoothing) t[j] + label_smoothing / classes)
 *      row_loss[i] = weight (z_loss lse[i]^2 - sum_j q[j] log p[j])
 *      loss = sum_i row_loss[i] / counted
 *      dlogits[i][j] = S weight / counted ((sum_k q[k] + 2 z_loss lse[i]) p[j] - q[j])
 *
 *  - Ignored rows: `counted` is the number of rows that are not ignored, determined on the
 *    device.  An ignored row has loss 0, a gradient of zeros, and is not counted as correct; its
 *    logits are not read.  If all rows are ignored, loss is NaN and the gradient 0, as in torch.
 *  - Class weights: `counted` is the sum of c[labels[i]] over the rows that are not ignored, as in
 *    torch.  A row whose q are all 0 has loss 0 and a gradient of zeros.
 *  - Soft targets are >= 0 and need not sum to 1.  No row is ignored, and `counted` is rows, also
 *    with class weights, as in torch.
 *  - MP_XENT_FLAG_LOG_PROBABILITIES: x are log p, e.g. of mp_softmax_forward, and
 *
 *        row_loss[i] = -weight sum_j q[j] x[i][j],  dx[i][j] = -S weight / counted q[j]
 *
 *    From logits, one call without the flag computes the same loss with fewer passes.
 *  - NaN and positive infinity in x make the loss and the gradient of their row NaN.
 *  - Several calls, by ranks or for micro-batches: if all have the same tensors->count, which
 *    replaces `counted`, the sum of their losses is the mean over all rows.  Without it, the mean
 *    of their losses is that mean only if `counted` is equal in all calls.  mp_xent_count computes
 *    count without class weights.
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
 *  Not supported: gradients of soft targets.  With class weights, soft targets or
 *  log-probabilities, the kernel reads x three times instead of once.
 *
 *  @param tensors  host: x, labels and row_loss; the other tensors are optional.
 *  @source Micikevicius et al. 2018, section 3.3 (softmax and loss in fp32), 3.2 (loss scale);
 *  Szegedy et al., Rethinking the Inception Architecture, 2016, section 7 (label smoothing);
 *  Chowdhery et al., PaLM, 2022, section 5 (z_loss); torch.nn.CrossEntropyLoss, NLLLoss (class
 *  weights, soft targets, log-probabilities). */
MP_API mp_status_t mp_softmax_xent(mp_context_t context, const mp_xent_desc_t *desc,
                                   const mp_xent_tensors_t *tensors, mp_stream_t stream);

/** Adds the number of rows whose label is not `ignore_label` to *count, exactly up to 2^24.
 *
 *  A step with several micro-batches or ranks clears a float, adds the rows of all micro-batches,
 *  all-reduces it, and passes it as tensors->count to every call of the loss.  Then the bits of a
 *  row's gradient do not depend on how the batch is divided.  With class weights, add up the
 *  weights of these rows instead.
 *
 *  @param rows          >= 0
 *  @param dtype_labels  MP_INT32 or MP_INT64
 *  @param labels        device, rows integers; may be NULL if rows is 0
 *  @param ignore_label  any value
 *  @param count         device, 1 float, increased */
MP_API mp_status_t mp_xent_count(mp_context_t context, int64_t rows, mp_dtype_t dtype_labels,
                                 const void *labels, int64_t ignore_label, float *count,
                                 mp_stream_t stream);

/** Shape and types of a linear layer and its classification loss. */
typedef struct mp_linear_xent_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;        /**< type of x, w, bias, dx and of the logits; dw and dbias are fp32 */
  mp_dtype_t dtype_labels; /**< MP_INT32 or MP_INT64 */
  uint32_t flags;          /**< bitwise or of mp_xent_flags_t; 0 = every row counts */
  int64_t rows;            /**< samples, >= 0 */
  int64_t width;           /**< inputs of the layer, 1 to 65,536 */
  int64_t classes;         /**< 1 to 2^22 */
  int64_t ld_x, ld_w, ld_dx, ld_dw; /**< >= width; fastest as multiples of 8 */
  int64_t ignore_label;             /**< as in mp_xent_desc_t, like the other fields */
  float weight, label_smoothing, z_loss;
  uint32_t reserved0; /**< must be 0 */
} mp_linear_xent_desc_t;

/** Initializes dense tensors and the loss of mp_xent_desc_init. */
MP_API mp_status_t mp_linear_xent_desc_init(mp_linear_xent_desc_t *desc, size_t struct_size,
                                            int64_t rows, int64_t width, int64_t classes,
                                            mp_dtype_t dtype);
static inline mp_linear_xent_desc_t mp_linear_xent_desc_default(int64_t rows, int64_t width,
                                                                int64_t classes, mp_dtype_t dtype) {
  mp_linear_xent_desc_t desc;
  mp_linear_xent_desc_init(&desc, sizeof desc, rows, width, classes, dtype);
  return desc;
}

/** Returns the workspace size that mp_linear_xent requires: at most 256 MiB, 0 if rows is 0.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_linear_xent_workspace_size(mp_context_t context,
                                                 const mp_linear_xent_desc_t *desc, size_t *bytes);

/** Computes a linear layer, its softmax cross-entropy and gradients, without storing all logits:
 *
 *      logits = round(x w^T + bias)
 *      dlogits = round(...)          as in mp_softmax_xent, also row_loss, lse, loss and correct
 *      dx = dlogits w
 *      dw = dlogits^T x              in fp32; += with MP_XENT_FLAG_ACCUMULATE
 *      dbias = sum of rows(dlogits)  likewise
 *
 *  Rows are processed in chunks of at most 4,096 rows and 224 MiB of logits.
 *
 *  - Tensors: x is rows x width, w is classes x width as an embedding table is, bias and dbias have
 *    `classes` elements.  bias, dx, dw and dbias are optional; dx may be x (equal ld).  Without
 *    gradients, only the losses are computed.
 *  - rows = 0 writes zeros to dw and dbias, or keeps them with MP_XENT_FLAG_ACCUMULATE.
 *  - Ignored rows have dx = 0 and add 0 to dw and dbias, but NaN to dw if their x is not finite.
 *  - Micro-batches: with tensors->count from mp_xent_count, losses and dx are bitwise those of the
 *    whole batch, for micro-batches of any size, if x, dx and w are 16-byte aligned and their ld
 *    are multiples of 8.  Add up dw and dbias with MP_XENT_FLAG_ACCUMULATE; their roundings depend
 *    on the micro-batches.
 *  - Statistics: tensors->stats receives found_inf and amax of the gradients as written.
 *  - Determinism: as mp_gemm, for kernels whose bits do not depend on the number of rows.
 *
 *  @param tensors  host: x, w, labels and row_loss; the other tensors are optional. */
MP_API mp_status_t mp_linear_xent(mp_context_t context, const mp_linear_xent_desc_t *desc,
                                  const mp_xent_tensors_t *tensors, void *workspace,
                                  size_t workspace_bytes, mp_stream_t stream);

/** Loss l(x, t) of one prediction x and its target t. */
typedef enum mp_loss_kind {
  MP_LOSS_MSE = 1,             /**< (x - t)^2 */
  MP_LOSS_L1 = 2,              /**< |x - t|; derivative 0 at x = t */
  MP_LOSS_BCE_WITH_LOGITS = 3, /**< -t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x)) */
  MP_LOSS_HUBER = 4,           /**< d = |x - t|: d^2 / 2 up to delta, then delta (d - delta / 2) */
  MP_LOSS_SMOOTH_L1 = 5,       /**< MP_LOSS_HUBER / delta */
  MP_LOSS_LINEAR = 6           /**< x t; derivative t, a gradient that the caller has computed */
} mp_loss_kind_t;

/** Divisor of the sum of element losses. */
typedef enum mp_loss_reduction {
  MP_LOSS_REDUCTION_MEAN = 1, /**< number of elements that are not ignored */
  MP_LOSS_REDUCTION_SUM = 2   /**< 1 */
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
  uint32_t flags;      /**< bitwise or of mp_loss_flags_t; 0 = every element counts */
  float ignore_target; /**< any value, NaN included; read only with MP_LOSS_FLAG_IGNORE_TARGET */
  float delta; /**< > 0, finite; read only by MP_LOSS_HUBER and MP_LOSS_SMOOTH_L1 (beta of torch) */
  uint32_t reserved0; /**< must be 0 */
} mp_loss_desc_t;

/** Initializes a mean over all elements, for MP_LOSS_LINEAR a sum: weight = 1, delta = 1,
 *  dtype_target = dtype. */
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

/** Tensors of an element-wise loss, device.  Initialize with MP_INIT_STRUCT. */
typedef struct mp_loss_tensors {
  uint32_t struct_size;
  uint32_t reserved0; /**< must be 0 */
  /** count elements; MP_LOSS_LINEAR: NULL = 0. */
  const void *prediction;
  const void *target;      /**< count elements */
  const float *weights;    /**< count floats; NULL = 1 */
  const float *loss_scale; /**< 1 float S, e.g. mp_scaler_get_scale_address(); NULL = 1 */
  float *element_loss;     /**< count floats, optional, written; not multiplied by S */
  float *loss;             /**< 1 float, optional, written; not multiplied by S */
  void *dprediction;       /**< count elements; may be prediction.  NULL = forward only */
  mp_grad_stats_t stats;   /**< statistics of dprediction */
} mp_loss_tensors_t;

/** Computes an element-wise loss and its gradient, in fp32:
 *
 *      element_loss[i] = weight weights[i] l(x[i], t[i])
 *      loss = sum_i element_loss[i] / divisor
 *      dprediction[i] = S weight weights[i] / divisor dl/dx(x[i], t[i])
 *
 *  - Divisor: with MP_LOSS_REDUCTION_MEAN the number of elements that are not ignored, independent
 *    of their weights, as in torch.  If all are ignored, the mean is NaN.
 *  - Ignored elements, and elements with weights[i] = 0, have loss 0 and gradient 0 for every
 *    prediction.  Elements with weights[i] = 0 are included in the divisor.
 *  - weight = 0 makes element_loss and dprediction 0, even if the loss is infinite, but keeps
 *    NaN.
 *  - NaN in prediction or target makes the loss and the gradient of that element NaN.
 *  - Infinite predictions, such as an overflow of fp16, make the gradient infinite or NaN, so
 *    that the step is skipped.  The exception is a logit of -infinity, which is masked as in
 *    mp_softmax_xent: its probability is 0 and its gradient -t.
 *  - Gradients of any other loss: MP_LOSS_LINEAR with a target of dl/dx, e.g. in fp32, and
 *    prediction = loss = NULL writes dprediction = S weight dl/dx in the type of the network, with
 *    statistics.  The backward pass starts there.  This gradient depends only on the target, even
 *    if a prediction is infinite or NaN.
 *  - Accuracy: for t = 0 and t = 1, loss and gradient of a logit keep their relative accuracy
 *    at probabilities close to 0 and 1.
 *  - Determinism: the sum is in fp64, in an order that depends only on count.
 *
 *  Not supported: gradients of the target, and a positive weight per class of binary cross-entropy
 *  (pos_weight of torch).
 *
 *  @param tensors  host: prediction and target; the other tensors are optional.
 *  @source torch.nn.MSELoss, L1Loss, BCEWithLogitsLoss, HuberLoss, SmoothL1Loss; Huber, Robust
 *          Estimation of a Location Parameter, 1964; Micikevicius et al. 2018, sections 3.2
 *          and 3.3. */
MP_API mp_status_t mp_loss(mp_context_t context, const mp_loss_desc_t *desc,
                           const mp_loss_tensors_t *tensors, void *workspace,
                           size_t workspace_bytes, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_LOSS_H */
