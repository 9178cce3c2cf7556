/* mpcore/optimizer.h: optimizers, learning-rate schedules, checkpoints. */
#ifndef MPCORE_OPTIMIZER_H
#define MPCORE_OPTIMIZER_H

#include "tensors.h"

MP_BEGIN_C

/** @defgroup optimizer 14. Optimizers
 *  @{ */

/** Update rule.  Symbols in the formulas:
 *
 *      g    unscaled, clipped gradient            wd      weight_decay
 *      w    fp32 master weight                    b1, b2  beta1, beta2
 *      |x|  norm of one tensor, as in mp_l2norm   t       applied (not skipped) steps, including
 *                                                         the current one */
typedef enum mp_optimizer_kind {
  /** Stochastic gradient descent with momentum:
   *
   *      m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m
   *
   *  MP_OPT_FLAG_NESTEROV: w -= lr (g + momentum m).  Decay: g += wd w.  With
   *  MP_OPT_FLAG_DECAY_AFTER_MOMENTUM: w -= lr wd w, which bypasses the momentum.
   *
   *  MP_OPT_FLAG_LARS and MP_OPT_FLAG_LARC: g = a (g + wd w) instead, with a trust ratio a per
   *  tensor:
   *
   *      LARS: a = trust_coefficient |w| / (|g| + wd |w| + eps);   LARC: a = min(1, a_LARS / lr)
   *
   *  a is 1 if |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
   *  and tensors that are initially 0 stay near 0.)
   *  @source You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
   *  algorithm 1; LARC: Apex, apex/parallel/LARC.py. */
  MP_OPT_SGD = 1,

  /** Adam, and AdamW with MP_OPT_FLAG_DECOUPLED_DECAY:
   *
   *      m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)
   *
   *  mhat and vhat are m and v with bias correction.  Decay: g += wd w.  With
   *  MP_OPT_FLAG_DECOUPLED_DECAY: w -= lr wd w.
   *  @source Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2. */
  MP_OPT_ADAM = 2,

  /** LAMB: w -= lr r u with the trust ratio r = |w| / |u|, where w -= lr u is the step of
   *  MP_OPT_ADAM with the same flags, including decay.  r is 1 if |w| or |u| is 0 and, without
   *  MP_OPT_FLAG_NVLAMB, for tensors with wd = 0 (biases, normalization), as in Apex's FusedLAMB.
   *
   *  The paper's form has MP_OPT_FLAG_DECOUPLED_DECAY, which mp_optimizer_desc_default sets.  Apex
   *  includes global clipping; here it is mp_step_options.max_grad_norm.
   *  @source You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2. */
  MP_OPT_LAMB = 3,

  /** NovoGrad, with one v per tensor:
   *
   *      v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1)
   *      m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m
   *
   *  dampening = b1 averages the gradients, like grad_averaging of the original implementation.
   *  (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
   *  corrects the bias of a v that is not biased.  This is the paper's form.)
   *  @source Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
   *  algorithm 1. */
  MP_OPT_NOVOGRAD = 4,

  /** Adagrad: v += g^2;  w -= lr g / (sqrt(v) + eps).
   *
   *  The initial v may be above 0 (TensorFlow: 0.1).  Decay: g += wd w.  With
   *  MP_OPT_FLAG_DECOUPLED_DECAY: w -= lr wd w.
   *  @source Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch. */
  MP_OPT_ADAGRAD = 5,

  /** RMSProp: v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps).
   *
   *  With momentum: m = momentum m + g / (sqrt(v) + eps);  w -= lr m.  Decay: g += wd w.
   *  @source Tieleman & Hinton, COURSERA: Neural Networks for Machine Learning, 2012, lecture 6.5;
   *  eps and momentum as in torch. */
  MP_OPT_RMSPROP = 6
} mp_optimizer_kind_t;

/** Bits of mp_optimizer_desc_t.flags. */
typedef enum mp_optimizer_flags {
  MP_OPT_FLAG_NESTEROV = 1 << 0,           /**< SGD */
  MP_OPT_FLAG_DECOUPLED_DECAY = 1 << 1,    /**< Adam (then AdamW), LAMB, Adagrad */
  MP_OPT_FLAG_NO_BIAS_CORRECTION = 1 << 2, /**< Adam, LAMB: mhat = m, vhat = v */
  /** Lets the 16-bit copy of a weight become infinite on overflow.  By default it is clamped to the
   *  largest finite value: an infinite weight makes every later gradient non-finite, so every later
   *  step would be skipped and training would never recover. */
  MP_OPT_FLAG_MODEL_OVERFLOW = 1 << 3,
  /** SGD; excludes MP_OPT_FLAG_LARC and MP_OPT_FLAG_LARS */
  MP_OPT_FLAG_DECAY_AFTER_MOMENTUM = 1 << 4,
  MP_OPT_FLAG_LARC = 1 << 5,   /**< SGD */
  MP_OPT_FLAG_LARS = 1 << 6,   /**< SGD; excludes MP_OPT_FLAG_LARC */
  MP_OPT_FLAG_NVLAMB = 1 << 7, /**< LAMB: also adapts tensors without decay */
  /** Rounds the 16-bit copy of a weight up or down at random, so that its expected value is the
   *  weight.  Changes below half a unit in the last place then survive on average.  Weights that
   *  the 16-bit type can represent are unchanged.
   *
   *  The random numbers depend only on rounding_seed, t, and the indices of tensor and element.
   *  They are equal on all devices and after a resume.  Probabilities are exact (fp16 subnormals:
   *  to within 2^-32).
   *  @source Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1;
   *  Philox 4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011. */
  MP_OPT_FLAG_STOCHASTIC_ROUNDING = 1 << 8
} mp_optimizer_flags_t;

/** Learning-rate schedule, evaluated on the device: a skipped step does not advance it, and a
 *  captured graph needs no host work.  Every schedule begins with a linear warm-up:
 *
 *      lr(t) = lr t / warmup_steps   for t <= warmup_steps
 *
 *  In the formulas, s = t - 1 - warmup_steps counts the steps after the warm-up, so the first of
 *  them has s = 0; p = min(s / decay_steps, 1).  Rates are computed in fp64 and rounded once. */
typedef enum mp_lr_schedule {
  /** lr(t) = lr */
  MP_LR_CONSTANT = 1,
  /** lr_end + (lr - lr_end) (1 - p)^decay_power; linear if decay_power is 1 */
  MP_LR_POLYNOMIAL = 2,
  /** lr_end + (lr - lr_end) (1 + cos(pi p)) / 2
   *  @source Loshchilov & Hutter, SGDR, 2017, equation 5, without restarts. */
  MP_LR_COSINE = 3,
  /** max(lr_end, lr decay_rate^(s / decay_steps)) */
  MP_LR_EXPONENTIAL = 4,
  /** lr sqrt(max(warmup_steps, 1) / t)
   *  @source Vaswani et al., Attention Is All You Need, 2017, equation 3, with lr as its peak. */
  MP_LR_INVERSE_SQRT = 5
} mp_lr_schedule_t;

/** Hyperparameters of one parameter group.  0 disables a limit or a regularizer. */
typedef struct mp_param_group {
  uint32_t struct_size;    /**< in an array, also the distance between elements, in bytes */
  float lr;                /**< >= 0 */
  float beta1;             /**< SGD, RMSProp: momentum, >= 0; Adam, LAMB, NovoGrad: [0, 1) */
  float beta2;             /**< Adam, LAMB, NovoGrad, RMSProp: [0, 1) */
  float eps;               /**< > 0; SGD: >= 0, read by MP_OPT_FLAG_LARC and MP_OPT_FLAG_LARS */
  float weight_decay;      /**< >= 0 */
  float dampening;         /**< SGD, NovoGrad: finite */
  float trust_coefficient; /**< SGD with MP_OPT_FLAG_LARC or MP_OPT_FLAG_LARS: > 0 */

  /* g is computed from the gradient in this order: unscale and clip globally (grad_scale), clip by
   * the tensor's norm, clip by value, add the regularizers' gradients, add extra_grads. */
  float max_tensor_norm; /**< >= 0; g *= min(1, max_tensor_norm / (|g| + 1e-6)) */
  float clip_value;      /**< >= 0; g = clamp(g, -clip_value, clip_value) */
  float l1;              /**< >= 0; g += l1 sign(w), sign(0) = 0: the gradient of l1 sum |w| */
  float l2;              /**< >= 0; g += 2 l2 w: the gradient of l2 sum w^2 */

  mp_lr_schedule_t lr_schedule;
  int32_t warmup_steps; /**< >= 0; 0 = none */
  int32_t decay_steps;  /**< polynomial, cosine, exponential: >= 1 */
  float decay_power;    /**< polynomial: > 0 */
  float decay_rate;     /**< exponential: > 0 */
  float lr_end;         /**< polynomial, cosine, exponential: >= 0, absolute like lr */

  /** Decay of mp_optimizer_desc.ema, and 1 to limit it to (1 + t) / (10 + t).  Not supported by
   *  this version: both must be 0. */
  float ema_decay;
  uint32_t ema_warmup;
} mp_param_group_t;

/** Initializes the defaults of the cited papers; lr has no default.  The default of
 *  trust_coefficient is for LARS; Apex's LARC uses 0.02.
 *
 *                beta1   beta2   eps     others
 *      SGD       0.9     0       0       trust_coefficient 0.001
 *      Adam      0.9     0.999   1e-8
 *      LAMB      0.9     0.999   1e-6    weight_decay 0.01
 *      NovoGrad  0.95    0.98    1e-8
 *      Adagrad   0       0       1e-10
 *      RMSProp   0       0.9     1e-8
 *
 *  lr_schedule is MP_LR_CONSTANT and decay_power 1; all other fields are 0. */
MP_API mp_status_t mp_param_group_init(mp_param_group_t *group, size_t struct_size,
                                       mp_optimizer_kind_t kind, float lr);
static inline mp_param_group_t mp_param_group_default(mp_optimizer_kind_t kind, float lr) {
  mp_param_group_t group;
  mp_param_group_init(&group, sizeof group, kind, lr);
  return group;
}

/** Update rule, hyperparameters and tensors of an optimizer.
 *
 *  The lists are parallel: equal counts and sizes.  Lists and tensors must outlive the optimizer.
 *  Written lists (master, model, m, v) must not overlap any other: mp_optimizer_create rejects a
 *  list, or the address of a tensor, that occurs twice, except in grads and extra_grads.
 *
 *  m and v are usually NULL.  mp_optimizer_create then allocates those that the groups need, filled
 *  with 0, by the context's allocator; see mp_optimizer_get_moments.  If you pass m or v,
 *  initialize its tensors yourself. */
typedef struct mp_optimizer_desc {
  uint32_t struct_size;
  mp_optimizer_kind_t kind;
  uint32_t flags; /**< bitwise or of mp_optimizer_flags_t */
  uint32_t num_groups;
  const mp_param_group_t *groups; /**< host, num_groups elements, copied */
  const uint32_t *tensor_group;   /**< host, one index per tensor; NULL = all in group 0 */
  mp_tensor_list_t grads;         /**< any type; only read */
  /** MP_FP32; updated.  NULL (the model holds the weights) is not supported by this version. */
  mp_tensor_list_t master;
  /** 16-bit copy of master, written; optional.  Parameters with a NULL data pointer have no 16-bit
   *  copy. */
  mp_tensor_list_t model;
  /** MP_FP32: momentum or first moment.  NULL: allocated, except for SGD and RMSProp if every group
   *  has beta1 = 0.  Adagrad: NULL. */
  mp_tensor_list_t m;
  /** MP_FP32: second moment.  NULL: allocated.  SGD: NULL.  NovoGrad: as many tensors, of one
   *  element each. */
  mp_tensor_list_t v;
  /** Device, one float per tensor, optional; NULL = all 1.  Every step reads them: they may be
   *  rewritten in stream order and must outlive the optimizer.
   *
   *  lr_multipliers multiply lr; 0 freezes a tensor, but its m and v are still updated.
   *  decay_multipliers multiply weight_decay, l1 and l2. */
  const float *lr_multipliers, *decay_multipliers;
  /** MP_FP32, parallel to the other lists, optional: added to g after unscaling and clipping, e.g.
   *  the gradient of a custom penalty.  Every step reads it without checking it: an element whose
   *  extra gradient is infinite keeps its weight (mp_step_options.rejected_updates). */
  mp_tensor_list_t extra_grads;
  uint64_t rounding_seed; /**< for MP_OPT_FLAG_STOCHASTIC_ROUNDING; any value */

  /* Not supported by this version: the fields below must be NULL. */

  /** Host, one per tensor: identifier of the tensor in the random numbers; NULL = its index. */
  const uint32_t *tensor_ids;
  /** Host, one per tensor: index of the first element in the whole tensor, for pieces of a tensor;
   *  a multiple of 256; NULL = 0. */
  const int64_t *first_elements;
  /** Device, one per tensor: 0 = the step does not change the tensor; NULL = all active. */
  const uint32_t *active;
  mp_tensor_list_t ema; /**< MP_FP32: exponential moving average of the weights */
} mp_optimizer_desc_t;

/** Initializes a descriptor with one group and no tensors.  flags is MP_OPT_FLAG_DECOUPLED_DECAY
 *  for MP_OPT_LAMB and 0 for all other kinds. */
MP_API mp_status_t mp_optimizer_desc_init(mp_optimizer_desc_t *desc, size_t struct_size,
                                          mp_optimizer_kind_t kind);
static inline mp_optimizer_desc_t mp_optimizer_desc_default(mp_optimizer_kind_t kind) {
  mp_optimizer_desc_t desc;
  mp_optimizer_desc_init(&desc, sizeof desc, kind);
  return desc;
}

/** Initializes a descriptor for the method `name`, and its only group with the defaults of that
 *  method.  Case is ignored.
 *
 *      "sgd", "adam", "lamb", "novograd", "adagrad", "rmsprop"   mp_optimizer_kind_t
 *      "adamw"   MP_OPT_ADAM with MP_OPT_FLAG_DECOUPLED_DECAY and weight_decay 0.01, as in torch
 *
 *  @param name   host.
 *  @param desc   host, out, desc_size bytes; desc->groups is group.  Zeroed on error.
 *  @param group  host, out, group_size bytes; must live until mp_optimizer_create.
 *  @retval MP_ERROR_NOT_FOUND unknown name */
MP_API mp_status_t mp_optimizer_desc_from_name(const char *name, mp_optimizer_desc_t *desc,
                                               size_t desc_size, mp_param_group_t *group,
                                               size_t group_size, float lr);

/** Creates an optimizer: uploads the hyperparameters, and allocates the scratch memory of all steps
 *  and any moments that the descriptor lacks. */
MP_API mp_status_t mp_optimizer_create(mp_optimizer_t *optimizer, mp_context_t context,
                                       const mp_optimizer_desc_t *desc);
/** Destroys an optimizer and its allocations, but not the caller's lists and tensors. */
MP_API void mp_optimizer_destroy(mp_optimizer_t optimizer);

/** Returns the lists m and v, passed or allocated; mp_tensor_list_get_tensor returns the addresses
 *  of their tensors.  Allocated lists exist as long as the optimizer.
 *  @param m,v  host, out, each optional; NULL if the optimizer has none. */
MP_API mp_status_t mp_optimizer_get_moments(mp_optimizer_t optimizer, mp_tensor_list_t *m,
                                            mp_tensor_list_t *v);

/** Replaces the hyperparameters of one group, in stream order.  They are stored on the device, so a
 *  captured graph uses the new values when it is replayed.
 *  @retval MP_ERROR_INVALID_ARGUMENT max_tensor_norm is not 0, but was 0 in all groups at creation
 *          (a step would need another launch), or momentum is not 0 without a list m */
MP_API mp_status_t mp_optimizer_set_group(mp_optimizer_t optimizer, uint32_t index,
                                          const mp_param_group_t *group, mp_stream_t stream);

/** Updates master, m, v and model in one kernel for any number of tensors.
 *
 *  LAMB, NovoGrad, LARC and LARS need one more kernel before it, which computes norms of tensors;
 *  max_tensor_norm needs another one (not in mp_scale_step, which computes these norms anyway).  An
 *  element whose new weight or moment is not finite keeps its old weight and moments.
 *
 *  @param grad_scale  device, 1 float multiplied into every gradient, e.g. 1/S; NULL = 1.
 *                     Infinity or NaN skips the update, like found_inf.
 *  @param found_inf   device, 1 float; if it is not 0 when the kernel runs, nothing is written and
 *                     t does not advance.  NULL = always update.
 *  @source Micikevicius et al. 2018, section 3.1 (master weights). */
MP_API mp_status_t mp_optimizer_step(mp_optimizer_t optimizer, const float *grad_scale,
                                     const float *found_inf, mp_stream_t stream);

/** Rounding of fp32 master weights to their 16-bit copy. */
typedef struct mp_model_options {
  uint32_t struct_size;
  uint32_t flags;         /**< MP_OPT_FLAG_MODEL_OVERFLOW, MP_OPT_FLAG_STOCHASTIC_ROUNDING */
  uint64_t rounding_seed; /**< for MP_OPT_FLAG_STOCHASTIC_ROUNDING, as in mp_optimizer_desc_t */
  /** Device, 1 integer, for MP_OPT_FLAG_STOCHASTIC_ROUNDING: number of updates of the weights so
   *  far.  With an optimizer of this library: mp_optimizer_get_step_address after its step. */
  const int64_t *t;
  int64_t *overflows; /**< device, optional: as mp_step_options_t.model_overflows */
  /** Host, one per tensor, as in mp_optimizer_desc_t.  Not supported by this version: must be
   *  NULL. */
  const uint32_t *tensor_ids;
  const int64_t *first_elements;
} mp_model_options_t;

/** Initializes rounding to nearest with clamping on overflow. */
MP_API mp_status_t mp_model_options_init(mp_model_options_t *options, size_t struct_size);
static inline mp_model_options_t mp_model_options_default(void) {
  mp_model_options_t options;
  mp_model_options_init(&options, sizeof options);
  return options;
}

/** Computes model = round(master) for a program that updates its fp32 weights itself.  The result
 *  is bitwise identical to that of an optimizer step.
 *  @param master     MP_FP32; read.
 *  @param model      MP_FP16 or MP_BF16, parallel to master; written.  Parameters with a NULL data
 *                    pointer have no 16-bit copy.
 *  @param found_inf  device, 1 float, optional; if it is not 0 when the kernel runs, nothing is
 *                    written, so that a skipped step changes neither weights nor copy.
 *  @param options    host, optional; NULL = the defaults. */
MP_API mp_status_t mp_masters_to_model(mp_tensor_list_t master, mp_tensor_list_t model,
                                       const float *found_inf, const mp_model_options_t *options,
                                       mp_stream_t stream);

/** Returns the device address of num_groups floats: the learning rates of the last applied step,
 *  before lr_multipliers; 0 before the first step.  The address is constant for the life of the
 *  optimizer.  NULL if optimizer is NULL. */
MP_API const float *mp_optimizer_get_lr_address(mp_optimizer_t optimizer);

/** Computes the contribution of l1 and l2 to the loss, for the current master weights, in one
 *  kernel:
 *
 *      sum over tensors of decay_multiplier (l1 sum |w| + l2 sum w^2)
 *
 *  Sums are fp32 within a chunk and fp64 across chunks, in a fixed order, as in mp_l2norm.
 *  @param loss  device, 1 float. */
MP_API mp_status_t mp_optimizer_regularization(mp_optimizer_t optimizer, float *loss,
                                               mp_stream_t stream);

/** Returns the scaler that mp_scale_step uses if none is passed: static, S = 1,
 *  max_consecutive_skips 100.  It counts skips and serves mp_scaler_query_step, so bf16 training
 *  needs no other scaler.
 *  @return owned by the optimizer and destroyed with it; NULL if optimizer is NULL */
MP_API mp_scaler_t mp_optimizer_get_scaler(mp_optimizer_t optimizer);

/** Returns the device address of the step counter t, which is constant for the life of the
 *  optimizer.  Every applied step increments t.  NULL if optimizer is NULL. */
MP_API const int64_t *mp_optimizer_get_step_address(mp_optimizer_t optimizer);

/** Computes model = round(master) after the caller has loaded master.  Does nothing if the
 *  optimizer has no model list.
 *
 *  The result is bitwise identical to that of the step that incremented t to its current value: it
 *  uses the optimizer's flags and rounding_seed.  (mp_cast differs: it makes overflows infinite,
 *  and never rounds at random.)  mp_optimizer_restore_sync includes this call. */
MP_API mp_status_t mp_optimizer_write_model(mp_optimizer_t optimizer, mp_stream_t stream);

/** Returns the size of a checkpoint, which contains master, m, v, t and the state of the scaler.
 *  @param scaler  optional; NULL = mp_optimizer_get_scaler.
 *  @param bytes   host, out. */
MP_API mp_status_t mp_optimizer_checkpoint_size(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                                size_t *bytes);
/** Writes a checkpoint to host memory; waits for `stream`.  The format is little-endian and has
 *  version 2, which later versions of the library can read.  Version 1 (mpcore 0.1) is rejected,
 *  because its scaler policies have other values.  A checkpoint does not contain hyperparameters,
 *  the states of a graph (running statistics), dropout offsets, or the position in the data.
 *  @param scaler      the scaler passed to mp_scale_step; no other state is saved.
 *                     NULL = mp_optimizer_get_scaler.
 *  @param checkpoint  host, out.
 *  @param bytes       size of `checkpoint`, at least mp_optimizer_checkpoint_size.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL bytes is smaller */
MP_API mp_status_t mp_optimizer_save_sync(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                          void *checkpoint, size_t bytes, mp_stream_t stream);
/** Restores master, m, v, t and the scaler, then writes model as mp_optimizer_write_model does.
 *  Given the same descriptor and data, training continues bit for bit.  Waits for `stream`.
 *  @param scaler      as in mp_optimizer_save_sync; its state must satisfy the rules of
 *                     mp_scaler_set_state_sync.
 *  @param checkpoint  host, any alignment.
 *  @param bytes       exact size of the saved checkpoint.
 *  @retval MP_ERROR_INVALID_ARGUMENT not a checkpoint, or its tensors, optimizer kind or scaler
 *          state do not match; nothing has been written */
MP_API mp_status_t mp_optimizer_restore_sync(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                             const void *checkpoint, size_t bytes,
                                             mp_stream_t stream);

/** Returns the step counter t; waits for `stream`.
 *  @param t             host, out.
 *  @param tensor_steps  host, optional, one per tensor, written: number of its updates.  In this
 *                       version t, or 0 for an empty tensor. */
MP_API mp_status_t mp_optimizer_get_step_sync(mp_optimizer_t optimizer, int64_t *t,
                                              int64_t *tensor_steps, mp_stream_t stream);
/** Sets t, e.g. from a checkpoint of another format; waits for `stream`.  Call
 *  mp_optimizer_write_model afterwards.
 *  @param t             in [0, 2^52].
 *  @param tensor_steps  host, optional, one per tensor, as from mp_optimizer_get_step_sync.  Other
 *                       values are not supported by this version. */
MP_API mp_status_t mp_optimizer_set_step_sync(mp_optimizer_t optimizer, int64_t t,
                                              const int64_t *tensor_steps, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_OPTIMIZER_H */
