/* mpcore/optimizer.h: updates of weights. */
#ifndef MPCORE_OPTIMIZER_H
#define MPCORE_OPTIMIZER_H

#include "tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup optimizer 8. Optimizers
 *  @{ */

/** In all formulas g is the unscaled, clipped gradient, w the fp32 master weight, t the
 *  number of applied (not skipped) steps including this one.  Norms |x| are taken over one tensor,
 *  computed as in mp_l2norm. */
typedef enum mp_optimizer_kind {
  /** m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m
   *  MP_OPT_NESTEROV: w -= lr (g + momentum m).  Weight decay: g += wd w, or with
   *  MP_OPT_DECAY_AFTER_MOMENTUM w -= lr wd w, which momentum does not see.
   *  MP_OPT_LARS, MP_OPT_LARC: g = a (g + wd w) instead, with one a per tensor:
   *
   *      LARS: a = trust |w| / (|g| + wd |w| + eps);   LARC: min(1, that / lr)
   *  a = 1 where |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
   *  and tensors that begin as 0 stay near it.)
   *  @source You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
   *  algorithm 1; LARC: Apex, apex/parallel/LARC.py. */
  MP_OPT_SGD = 1,

  /** m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)
   *  Decay: g += wd w, or with MP_OPT_DECOUPLED_DECAY w -= lr wd w (AdamW).
   *  @source Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2. */
  MP_OPT_ADAM = 2,

  /** w -= lr r u, where w -= lr u is the step of MP_OPT_ADAM with the same flags, its decay
   *  included, and r = |w| / |u|.  r = 1 where |w| or |u| is 0, and, unless MP_OPT_NVLAMB, for
   *  tensors with wd = 0 (biases, normalisation), as in Apex's FusedLAMB.
   *  The paper's form has MP_OPT_DECOUPLED_DECAY, which mp_optimizer_desc_default sets.  The global
   *  clipping that Apex has inside is mp_step_options.max_grad_norm.
   *  @source You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2. */
  MP_OPT_LAMB = 3,

  /** v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1), one number per tensor;
   *  m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m
   *  dampening = b1 averages the gradients, as upstream's grad_averaging does.
   *  (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
   *  corrects the bias of a v that begins without one.  This is the paper's form.)
   *  @source Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
   *  algorithm 1. */
  MP_OPT_NOVOGRAD = 4,

  /** v += g^2;  w -= lr g / (sqrt(v) + eps).  v may begin above 0 (TensorFlow: 0.1).
   *  Decay: g += wd w, or with MP_OPT_DECOUPLED_DECAY w -= lr wd w.
   *  @source Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch. */
  MP_OPT_ADAGRAD = 5,

  /** v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps)
   *  With momentum: m = momentum m + g / (sqrt(v) + eps);  w -= lr m.  Decay: g += wd w.
   *  @source Tieleman & Hinton, COURSERA: Neural Networks for Machine Learning, 2012, lecture 6.5;
   *  eps and momentum as in torch. */
  MP_OPT_RMSPROP = 6
} mp_optimizer_kind_t;

/** Bits of mp_optimizer_desc.flags. */
typedef enum mp_optimizer_flags {
  MP_OPT_NESTEROV = 1 << 0,           /**< SGD */
  MP_OPT_DECOUPLED_DECAY = 1 << 1,    /**< Adam: makes it AdamW; LAMB; Adagrad */
  MP_OPT_NO_BIAS_CORRECTION = 1 << 2, /**< Adam, LAMB: mhat = m, vhat = v */
  /** Let the 16-bit copy of a weight that overflows become infinite.  Without this flag it is
   *  clamped to the largest finite value: an infinite weight makes every later gradient non-finite,
   *  so every later step is skipped and training never recovers. */
  MP_OPT_MODEL_OVERFLOW = 1 << 4,
  MP_OPT_DECAY_AFTER_MOMENTUM = 1 << 5, /**< SGD, not with MP_OPT_LARC or MP_OPT_LARS */
  MP_OPT_LARC = 1 << 6,                 /**< SGD */
  MP_OPT_LARS = 1 << 7,                 /**< SGD, not with MP_OPT_LARC */
  MP_OPT_NVLAMB = 1 << 8,               /**< LAMB: adapts the tensors without decay too */
  /** Round the 16-bit copy of a weight up or down at random, so that on average it is the weight: a
   *  change below half a unit of the copy is not lost in every step.  What the type can hold stays
   *  as it is.  The random numbers follow from rounding_seed, t, the tensor's index and the
   *  element's, and from nothing else: not from the device, not from being interrupted and resumed.
   *  Probabilities are exact (fp16 subnormals: to within 2^-32).
   *  @source Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1;
   *          Philox
   *  4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011. */
  MP_OPT_STOCHASTIC_ROUNDING = 1 << 9
} mp_optimizer_flags_t;

/** How the learning rate follows t, on the device: a skipped step does not advance it, and a
 *  captured graph needs no host.  Every schedule begins with a linear warm-up,
 *
 *      lr(t) = lr t / warmup_steps   for t <= warmup_steps,
 *  and s = t - 1 - warmup_steps counts the steps after it: the first of them has lr itself.
 *  p = min(s / decay_steps, 1).  Computed in fp64, rounded once. */
typedef enum mp_lr_schedule {
  /** lr */
  MP_LR_CONSTANT = 0,
  /** lr_end + (lr - lr_end) (1 - p)^decay_power; linear with 1 */
  MP_LR_POLYNOMIAL = 1,
  /** lr_end + (lr - lr_end) (1 + cos(pi p)) / 2
   *  @source Loshchilov & Hutter, SGDR, 2017, equation 5, without restarts. */
  MP_LR_COSINE = 2,
  /** max(lr_end, lr decay_rate^(s / decay_steps)) */
  MP_LR_EXPONENTIAL = 3,
  /** lr sqrt(max(warmup_steps, 1) / t)
   *  @source Vaswani et al., Attention Is All You Need, 2017, equation 3, with lr as its peak. */
  MP_LR_INVERSE_SQRT = 4
} mp_lr_schedule_t;

/** Hyperparameters of one parameter group.  A limit or a regularizer of 0 is none. */
typedef struct mp_hyper {
  uint32_t struct_size; /**< in an array, also the distance between elements */
  float lr;             /**< >= 0 */
  float beta1;          /**< SGD, RMSProp: momentum; Adam, LAMB, NovoGrad */
  float beta2;          /**< Adam, LAMB, NovoGrad, RMSProp */
  float eps;            /**< > 0; SGD: >= 0, with MP_OPT_LARC or MP_OPT_LARS */
  float weight_decay;   /**< >= 0 */
  float dampening;      /**< SGD, NovoGrad */
  float trust;          /**< SGD with MP_OPT_LARC or MP_OPT_LARS: > 0 */

  /* From gradient to g:  unscale and clip globally (grad_scale), clip by the norm of the tensor,
   * clip by value, add the regularizers' gradients, add extra_grads. */
  float max_tensor_norm; /**< g *= min(1, max_tensor_norm / (|g| + 1e-6)) */
  float max_value;       /**< g into [-max_value, max_value] */
  float l1;              /**< >= 0; g += l1 sign(w), sign(0) = 0: the gradient of l1 sum |w| */
  float l2;              /**< >= 0; g += 2 l2 w: the gradient of l2 sum w^2 */

  mp_lr_schedule_t lr_schedule;
  int32_t warmup_steps; /**< >= 0; 0 = none */
  int32_t decay_steps;  /**< polynomial, cosine, exponential: >= 1 */
  float decay_power;    /**< polynomial: > 0 */
  float decay_rate;     /**< exponential: > 0 */
  float lr_end;         /**< polynomial, cosine, exponential: >= 0, in the unit of lr */
} mp_hyper_t;

/** The defaults of the cited papers; weight decay where the method is about it.  lr has no sensible
 *  default.  trust is that of LARS; Apex's LARC has 0.02.
 *
 *                beta1   beta2   eps     others
 *      SGD       0.9     0       0       trust 0.001
 *      Adam      0.9     0.999   1e-8
 *      LAMB      0.9     0.999   1e-6    weight_decay 0.01
 *      NovoGrad  0.95    0.98    1e-8
 *      Adagrad   0       0       1e-10
 *      RMSProp   0       0.9     1e-8
 *
 *  decay_power is 1; everything else is 0. */
MP_API mp_status_t mp_hyper_init(mp_hyper_t *hyper, size_t struct_size, mp_optimizer_kind_t kind,
                                 float lr);
static inline mp_hyper_t mp_hyper_default(mp_optimizer_kind_t kind, float lr) {
  mp_hyper_t hyper;
  mp_hyper_init(&hyper, sizeof hyper, kind, lr);
  return hyper;
}

/** The lists below are parallel: same count and sizes.  They must outlive the optimizer,
 *  as must the tensors.  m and v are usually NULL: mp_optimizer_create then allocates those that
 *  the groups need, filled with 0, with the allocator of the context (mp_optimizer_moments).
 *  Lists of the caller are initialised by the caller.  Written lists (master, model, m, v) may
 *  overlap nothing else: mp_optimizer_create refuses one list, or the address of a tensor, in two
 *  places, unless these are grads and extra_grads. */
typedef struct mp_optimizer_desc {
  uint32_t struct_size;
  mp_optimizer_kind_t kind;
  uint32_t flags; /**< mp_optimizer_flags_t, or-ed */
  uint32_t num_groups;
  const mp_hyper_t *groups;     /**< host, num_groups, copied */
  const uint32_t *tensor_group; /**< host, one index per tensor; NULL = all in group 0 */
  mp_tensor_list_t grads;       /**< any type; read, never written */
  mp_tensor_list_t master;      /**< MP_FP32; updated */
  mp_tensor_list_t model;       /**< MP_FP16/MP_BF16 copy of master, written; optional.  A NULL
                                     data pointer: that parameter has no 16-bit copy */
  mp_tensor_list_t m; /**< MP_FP32: momentum, or first moment.  NULL: allocated; not for SGD and
                                     RMSProp if every group has beta1 = 0.  Adagrad: NULL */
  mp_tensor_list_t v; /**< MP_FP32: second moment.  NULL: allocated; SGD: NULL.  NovoGrad: as many
                                     tensors as the others, of one element each */
  /** Device, one float per tensor, optional; NULL = all 1.  Each step reads them, so they may be
   *  rewritten in stream order, and must outlive the optimizer.  The first multiplies lr (0 freezes
   *  a tensor; its m and v go on), the second weight_decay, l1 and l2. */
  const float *lr_multipliers, *decay_multipliers;
  /** MP_FP32, parallel to the others, optional: added to g after unscaling and clipping, as the
   *  gradient of a penalty that has its own code.  Read by each step and not inspected: an
   *  element whose extra gradient is infinite keeps its weight
   *  (mp_step_options.rejected_updates). */
  mp_tensor_list_t extra_grads;
  uint64_t rounding_seed; /**< MP_OPT_STOCHASTIC_ROUNDING; any value */
} mp_optimizer_desc_t;

/** One group, no tensors yet; flags 0, or MP_OPT_DECOUPLED_DECAY for MP_OPT_LAMB. */
MP_API mp_status_t mp_optimizer_desc_init(mp_optimizer_desc_t *desc, size_t struct_size,
                                          mp_optimizer_kind_t kind);
static inline mp_optimizer_desc_t mp_optimizer_desc_default(mp_optimizer_kind_t kind) {
  mp_optimizer_desc_t desc;
  mp_optimizer_desc_init(&desc, sizeof desc, kind);
  return desc;
}

/** Sets desc to the method that a name stands for, with one group: hyper, with its defaults.
 *  Case is ignored.
 *
 *      "sgd", "adam", "lamb", "novograd", "adagrad", "rmsprop"   mp_optimizer_kind_t
 *      "adamw"   MP_OPT_ADAM with MP_OPT_DECOUPLED_DECAY and weight_decay 0.01, as in torch
 *
 *  @param name   host.
 *  @param desc   host, out, desc_size bytes: desc->groups is hyper.  Zeros after an error.
 *  @param hyper  host, out, hyper_size bytes: must live until mp_optimizer_create.
 *  @retval MP_ERROR_NOT_FOUND the name is unknown */
MP_API mp_status_t mp_optimizer_desc_from_name(const char *name, mp_optimizer_desc_t *desc,
                                               size_t desc_size, mp_hyper_t *hyper,
                                               size_t hyper_size, float lr);

/** Uploads the hyperparameters and allocates the scratch memory of all later steps, and m and v if
 *  the descriptor has none. */
MP_API mp_status_t mp_optimizer_create(mp_optimizer_t *optimizer, mp_context_t context,
                                       const mp_optimizer_desc_t *desc);
/** Frees what mp_optimizer_create has allocated; lists and tensors of the caller stay. */
MP_API void mp_optimizer_destroy(mp_optimizer_t optimizer);

/** The lists m and v, of the descriptor or allocated (mp_tensor_list_get has their addresses); they
 *  live as long as the optimizer.
 *  @param m,v  host, out, each optional: NULL if the optimizer has none. */
MP_API mp_status_t mp_optimizer_moments(mp_optimizer_t optimizer, mp_tensor_list_t *m,
                                        mp_tensor_list_t *v);

/** Replace the hyperparameters of one group, in stream order.
 *  They live on the device: a captured graph picks up the new values when replayed.
 *  @retval MP_ERROR_INVALID_ARGUMENT also for a max_tensor_norm where no group had one when the
 *          optimizer was created: a step would need another launch */
MP_API mp_status_t mp_optimizer_set_hyper(mp_optimizer_t optimizer, uint32_t group,
                                          const mp_hyper_t *hyper, mp_stream_t stream);

/** One update of master, m, v and model, in one kernel, however many tensors there are.  LAMB,
 *  NovoGrad, LARC and LARS measure the tensors in another one before it, max_tensor_norm the
 *  gradients in one more (not in mp_scale_step, which measures them anyway).
 *  An element of which the new weight or moment is not finite keeps its old weight and moments.
 *  @param grad_scale  device, 1 float multiplied into every gradient, e.g. 1/S; NULL = 1.
 *                     Infinity or NaN skips the update as found_inf does.
 *  @param found_inf   device, 1 float; if nonzero when the kernel runs, nothing at all
 *                     is written and t does not advance.  NULL = always update.
 *
 *  The decision is taken on the device; the host does not learn of it (and must not ask,
 *  or the GPU idles once per step).
 *  Source of master weights: Micikevicius et al. 2018, section 3.1. */
MP_API mp_status_t mp_optimizer_step(mp_optimizer_t optimizer, const float *grad_scale,
                                     const float *found_inf, mp_stream_t stream);

/** How fp32 master weights become their 16-bit copy. */
typedef struct mp_model_options {
  uint32_t struct_size;
  uint32_t flags; /**< of mp_optimizer_flags_t: MP_OPT_MODEL_OVERFLOW, MP_OPT_STOCHASTIC_ROUNDING */
  uint64_t rounding_seed; /**< MP_OPT_STOCHASTIC_ROUNDING, as in mp_optimizer_desc_t */
  /** MP_OPT_STOCHASTIC_ROUNDING: device, 1 integer: the number of updates that the weights have
   *  seen; of an optimizer of this library, mp_optimizer_step_counter after its step. */
  const int64_t *t;
  int64_t *overflows; /**< as mp_step_options.model_overflows */
} mp_model_options_t;

/** To nearest, overflow clamped. */
MP_API mp_status_t mp_model_options_init(mp_model_options_t *options, size_t struct_size);
static inline mp_model_options_t mp_model_options_default(void) {
  mp_model_options_t options;
  mp_model_options_init(&options, sizeof options);
  return options;
}

/** model = round(master): the copy that an optimizer step writes, for a program that updates its
 *  fp32 weights itself.  Bit for bit the same copy.
 *  @param master     MP_FP32; read.
 *  @param model      MP_FP16/MP_BF16, parallel to master; written.  A NULL data pointer: that
 *                    parameter has no 16-bit copy.
 *  @param found_inf  device, 1 float, optional; if nonzero when the kernel runs, nothing is
 *                    written: a skipped step leaves the copy as it leaves the weights.
 *  @param options    host, optional; NULL = the defaults. */
MP_API mp_status_t mp_masters_to_model(mp_tensor_list_t master, mp_tensor_list_t model,
                                       const float *found_inf, const mp_model_options_t *options,
                                       mp_stream_t stream);

/** The learning rates that the latest applied step used, before lr_multipliers.
 *  @return device, num_groups floats, 0 before the first step; they live as long as the optimizer.
 *          NULL if optimizer is NULL */
MP_API const float *mp_optimizer_lr(mp_optimizer_t optimizer);

/** What l1 and l2 add to the loss, of the master weights as they are now:
 *
 *      sum over tensors of (their decay multiplier) (l1 sum |w| + l2 sum w^2)
 *  in fp32 within a chunk and fp64 across, in a fixed order, as mp_l2norm.  In one kernel.
 *  @param loss  device, 1 float. */
MP_API mp_status_t mp_optimizer_regularization(mp_optimizer_t optimizer, float *loss,
                                               mp_stream_t stream);

/** The scaler that mp_scale_step uses if none is passed: static, S = 1, diverged_after 100.  It
 *  counts their skips and answers mp_step_query, so that bf16 training does not create a scaler.
 *  @return lives as long as the optimizer, which owns it; NULL if optimizer is NULL */
MP_API mp_scaler_t mp_optimizer_get_scaler(mp_optimizer_t optimizer);

/** Device address of the step counter t, which each applied step increases by 1; constant for the
 *  life of the optimizer.  NULL if optimizer is NULL. */
MP_API const int64_t *mp_optimizer_step_counter(mp_optimizer_t optimizer);

/** model = round(master), bit for bit as in the step that increased t to its value: with the flags
 *  and the rounding_seed of the optimizer.  For masters that the caller has loaded;
 *  mp_optimizer_restore_sync calls it.  (mp_cast differs: it makes overflows infinite, and never
 *  rounds at random.)  Without a list model there is nothing to do. */
MP_API mp_status_t mp_optimizer_write_model(mp_optimizer_t optimizer, mp_stream_t stream);

/** Bytes of a checkpoint: master, m, v, t, and the state of the scaler.
 *  @param scaler  optional; NULL: that of mp_optimizer_get_scaler.
 *  @param bytes   host, out. */
MP_API mp_status_t mp_optimizer_checkpoint_size(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                                size_t *bytes);
/** Writes a checkpoint into memory of the host; waits for `stream`.  Numbers are little-endian, and
 *  later versions read it.  Not part of it: hyperparameters, the states of a graph (running
 *  statistics), offsets of dropout, and the position in the data.
 *  @param scaler      the scaler given to mp_scale_step: the state of another one is not saved.
 *                     NULL: that of mp_optimizer_get_scaler.
 *  @param checkpoint  host, out.
 *  @param bytes       room, at least mp_optimizer_checkpoint_size.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL there is less room */
MP_API mp_status_t mp_optimizer_save_sync(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                          void *checkpoint, size_t bytes, mp_stream_t stream);
/** Restores master, m, v, t and the scaler, then writes model as mp_optimizer_write_model does: the
 *  training goes on bit for bit, given the same descriptor and data.  Waits for `stream`.
 *  @param scaler      as when it was saved, under the rules of mp_scaler_set_state_sync.
 *  @param checkpoint  host, any alignment.
 *  @param bytes       exactly as many as were saved.
 *  @retval MP_ERROR_INVALID_ARGUMENT no checkpoint, or that of other tensors, of another kind or
 *          scaler; nothing has been written */
MP_API mp_status_t mp_optimizer_restore_sync(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                             const void *checkpoint, size_t bytes,
                                             mp_stream_t stream);

/** The step counter t; waits for `stream`. */
MP_API mp_status_t mp_optimizer_get_step_sync(mp_optimizer_t optimizer, int64_t *t,
                                              mp_stream_t stream);
/** Sets t, e.g. from a checkpoint of another format; call mp_optimizer_write_model after it.
 *  Waits for `stream`.
 *  @param t  in [0, 2^52] */
MP_API mp_status_t mp_optimizer_set_step_sync(mp_optimizer_t optimizer, int64_t t,
                                              mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_OPTIMIZER_H */
