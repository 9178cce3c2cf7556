// Made by bindings/generate/generate from include/mpcore.h; edit that and run bindings/generate/generate.

//! The C ABI as it is: names, structs and constants of `mpcore.h`, whose manual stands here too.
//!
//! An enum is an integer here, for a library newer than this file may know more values; the
//! crate's own enums are for Rust programs.  The functions with a body are the inline functions of
//! the header: structs by value, as the library fills them in.

#![allow(non_camel_case_types, non_snake_case)]

use core::ffi::c_void;
use std::os::raw::{c_char, c_int};

pub const MP_VERSION_MAJOR: u32 = 0;
pub const MP_VERSION_MINOR: u32 = 1;
pub const MP_VERSION_PATCH: u32 = 0;
/// Version as one integer, comparable with \<: 0.1.0 is 100, 1.2.3 is 10203.
pub const MP_VERSION: u32 = 100;
/// the calling thread's current CUDA device; an error if none
pub const MP_DEVICE_CURRENT: i32 = -1;
/// the CPU
pub const MP_DEVICE_HOST: i32 = -2;
/// CURRENT; if none is usable, HOST with a warning
pub const MP_DEVICE_AUTO: i32 = -3;
/// Number of steps whose outcome [`mp_step_query`] can return.
pub const MP_STEP_QUERY_DEPTH: i32 = 1024;
/// Slot of inputs and outputs that are always fp32, such as statistics of a batch norm or the gain
/// of a layer norm.  Low precision propagates neither from nor to this slot, for any class.
pub const MP_SLOT_FP32: i32 = 255;
/// Maximum number of dimensions of a tensor.
pub const MP_GRAPH_MAX_RANK: i32 = 8;

/// Never made here; see mp_stream_t.
#[repr(C)]
pub struct CUstream_st {
    _opaque: [u8; 0],
}
/// CUDA stream.  The same type as cudaStream\_t, declared here so that no CUDA headers are needed.
/// NULL is the legacy default stream.
pub type mp_stream_t = *mut CUstream_st;

/// Never made here; see mp_context_t.
#[repr(C)]
pub struct mp_context {
    _opaque: [u8; 0],
}
/// one device and its limits
pub type mp_context_t = *mut mp_context;

/// Never made here; see mp_tensor_list_t.
#[repr(C)]
pub struct mp_tensor_list {
    _opaque: [u8; 0],
}
/// many tensors processed as one
pub type mp_tensor_list_t = *mut mp_tensor_list;

/// Never made here; see mp_scaler_t.
#[repr(C)]
pub struct mp_scaler {
    _opaque: [u8; 0],
}
/// a loss scale in device memory
pub type mp_scaler_t = *mut mp_scaler;

/// Never made here; see mp_optimizer_t.
#[repr(C)]
pub struct mp_optimizer {
    _opaque: [u8; 0],
}
/// an update rule and its tensors
pub type mp_optimizer_t = *mut mp_optimizer;

/// Never made here; see mp_autocast_t.
#[repr(C)]
pub struct mp_autocast {
    _opaque: [u8; 0],
}
/// Autocast policy: lists of operations, patterns of node names and a level.  Immutable after its
/// first use, so threads can share it.
pub type mp_autocast_t = *mut mp_autocast;

/// Never made here; see mp_graph_t.
#[repr(C)]
pub struct mp_graph {
    _opaque: [u8; 0],
}
/// a network
pub type mp_graph_t = *mut mp_graph;

/// Receives one log message.
///
/// * `message`: one line without a newline, valid only during the callback.
/// * `user`: the pointer passed to [`mp_set_log_callback`].
pub type mp_log_callback_t = Option<unsafe extern "C" fn(level: mp_log_level_t, message: *const c_char, user: *mut c_void)>;

/// Status codes.  The values are part of the ABI and grouped in ranges by cause.
pub type mp_status_t = u32;
pub const MP_SUCCESS: mp_status_t = 0;
/// a value outside its documented range
pub const MP_ERROR_INVALID_ARGUMENT: mp_status_t = 1;
/// a pointer or ld violates a documented alignment
pub const MP_ERROR_MISALIGNED: mp_status_t = 2;
/// see mp\_\*\_workspace\_size
pub const MP_ERROR_WORKSPACE_TOO_SMALL: mp_status_t = 3;
/// struct\_size is 0 or requests unknown features
pub const MP_ERROR_STRUCT_SIZE: mp_status_t = 4;
/// no kernel for this combination; [`mp_last_error`] names the part
pub const MP_ERROR_UNSUPPORTED: mp_status_t = 20;
/// the build has no code for this device
pub const MP_ERROR_ARCH_MISMATCH: mp_status_t = 21;
/// unknown name, index past the end, missing shared library
pub const MP_ERROR_NOT_FOUND: mp_status_t = 22;
pub const MP_ERROR_OUT_OF_MEMORY: mp_status_t = 40;
/// [`mp_last_error`] contains the CUDA error name
pub const MP_ERROR_CUDA: mp_status_t = 41;
/// a callback of [`mp_comm_t`] failed; [`mp_last_error`] contains its code
pub const MP_ERROR_COMM: mp_status_t = 42;
pub const MP_ERROR_INTERNAL: mp_status_t = 60;

/// Log severity; lower values are more severe.
pub type mp_log_level_t = u32;
/// every error, once; by default only errors that no status returns
pub const MP_LOG_ERROR: mp_log_level_t = 1;
/// slow paths whose cause the caller can change
pub const MP_LOG_WARN: mp_log_level_t = 2;
/// kernel selections, the first time each is made; skipped steps, if the
/// host queries their outcome
pub const MP_LOG_INFO: mp_log_level_t = 3;
/// every call
pub const MP_LOG_DEBUG: mp_log_level_t = 4;

/// Element types.  0 is invalid, so that an unset field is an error.
pub type mp_dtype_t = u32;
pub const MP_DTYPE_NONE: mp_dtype_t = 0;
/// IEEE binary16: 5 exponent bits, 11 significant bits, max 65504
pub const MP_FP16: mp_dtype_t = 1;
/// bfloat16: 8 exponent bits, 8 significant bits
pub const MP_BF16: mp_dtype_t = 2;
/// IEEE binary32
pub const MP_FP32: mp_dtype_t = 3;

/// Target that the kernels of a context are compiled for.
pub type mp_target_t = u32;
pub const MP_TARGET_CUDA: mp_target_t = 1;
pub const MP_TARGET_HOST: mp_target_t = 2;

/// Form of an operand: as stored (N) or transposed (T).
pub type mp_op_t = u32;
pub const MP_OP_N: mp_op_t = 0;
pub const MP_OP_T: mp_op_t = 1;

/// Activation function, or its derivative, applied to each element of a result.
pub type mp_activation_t = u32;
pub const MP_ACT_NONE: mp_activation_t = 0;
pub const MP_ACT_RELU: mp_activation_t = 1;
/// tanh form: 0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))
pub const MP_ACT_GELU: mp_activation_t = 2;
/// backward: multiplies by relu'(aux)
pub const MP_ACT_DRELU: mp_activation_t = 3;
/// backward: multiplies by gelu'(aux)
pub const MP_ACT_DGELU: mp_activation_t = 4;
/// 1 / (1 + exp(-z))
pub const MP_ACT_SIGMOID: mp_activation_t = 5;
pub const MP_ACT_TANH: mp_activation_t = 6;
/// backward: multiplies by sigmoid'(aux)
pub const MP_ACT_DSIGMOID: mp_activation_t = 7;
/// backward: multiplies by tanh'(aux)
pub const MP_ACT_DTANH: mp_activation_t = 8;
/// z / (1 + exp(-z)), also called swish
pub const MP_ACT_SILU: mp_activation_t = 9;
/// backward: multiplies by silu'(aux)
pub const MP_ACT_DSILU: mp_activation_t = 10;
/// exact form: 0.5 z (1 + erf(z / sqrt(2)))
pub const MP_ACT_GELU_ERF: mp_activation_t = 11;
/// backward: multiplies by gelu'(aux) of the exact form
pub const MP_ACT_DGELU_ERF: mp_activation_t = 12;

/// Dimension that is divided among the groups of [`mp_gemm_ragged`].
pub type mp_ragged_t = u32;
/// rows: forward pass and input gradients of experts
pub const MP_RAGGED_M: mp_ragged_t = 0;
/// k: weight gradients of experts
pub const MP_RAGGED_K: mp_ragged_t = 1;

/// Pass of a convolutional layer: forward, input gradient (dgrad) or weight gradient (wgrad).
pub type mp_conv_op_t = u32;
pub const MP_CONV_FPROP: mp_conv_op_t = 0;
pub const MP_CONV_DGRAD: mp_conv_op_t = 1;
pub const MP_CONV_WGRAD: mp_conv_op_t = 2;

/// Policy that adapts the loss scale S to the gradients.  A step is clean if its outcome is
/// [`MP_STEP_TAKEN`]; other steps are skipped.  docs/loss-scaler.md compares the policies.
pub type mp_scaler_policy_t = u32;
/// Constant S.  bf16 training uses this policy with S = 1.
pub const MP_SCALER_STATIC: mp_scaler_policy_t = 0;
/// Multiplicative backoff and growth.  An overflow sets S \*= backoff\_factor.  growth\_interval
/// clean steps in a row set S \*= growth\_factor, unless the product is not finite.
///
/// With hysteresis h \> 1, h - 1 overflows leave S unchanged; further ones back off until the
/// budget is refilled.  S growing refills it (Megatron-LM) or, with [`MP_SCALER_REFILL_EACH_STEP`],
/// every clean step (Apex, update\_scale\_hysteresis).
/// Source: torch.amp.GradScaler.
pub const MP_SCALER_BACKOFF: mp_scaler_policy_t = 1;
/// Statistical model of the gradients.  log2 of the largest unscaled gradient is modeled as
/// normal, with running mean mu (decay beta1) and deviation sigma (decay beta2, at least
/// sigma\_floor):
///
/// ```text
/// S = 2^floor(e - h),  e = floor(log2_max - mu - overflow_std_dev * sigma)
/// ```
///
/// The probability of an overflow is therefore small and fixed.  h is a headroom in bits,
/// initially 0:
///
/// - An overflow does not change mu and sigma, backs off once, and raises h.
/// - Every growth\_interval clean steps, h decreases by one bit.
/// - If overflows precede the first statistics, h begins with the value that leaves S unchanged.
///
/// Without h the policy would livelock if an activation gradient, which the statistics do not
/// include, overflows before the weight gradients do.  A step whose gradients are all zero
/// changes nothing.
/// Source: OpenSeq2Seq LogMaxScaler, with its defects repaired (there an overflow feeds
/// 2^log\_max into a mean of log2 values and pins S at its minimum for ~12,000 steps).
pub const MP_SCALER_LOGNORMAL: mp_scaler_policy_t = 2;
/// OpenSeq2Seq's LogMaxScaler with its defects; see mpcore/compat.h.
pub const MP_SCALER_LOGMAX: mp_scaler_policy_t = 3;

/// Bits of `mp_scaler_config`.flags.
pub type mp_scaler_flags_t = u32;
/// backoff: clean steps refill hysteresis
pub const MP_SCALER_REFILL_EACH_STEP: mp_scaler_flags_t = 1;
/// Backoff: the first clean step, and the first one after each overflow, does not count towards
/// growth\_interval.
/// Source: DeepSpeed FP16\_Optimizer.
pub const MP_SCALER_FIRST_STEP_UNCOUNTED: mp_scaler_flags_t = 2;

/// Health of a scaler.
pub type mp_scaler_status_t = u32;
pub const MP_SCALER_OK: mp_scaler_status_t = 0;
/// diverged\_after skips in a row, or 1/S is not finite
pub const MP_SCALER_DIVERGED: mp_scaler_status_t = 1;

/// Update rule.  Symbols in the formulas:
///
/// ```text
/// g    unscaled, clipped gradient            wd      weight_decay
/// w    fp32 master weight                    b1, b2  beta1, beta2
/// |x|  norm of one tensor, as in mp_l2norm   t       applied (not skipped) steps, including
///                                                    the current one
/// ```
pub type mp_optimizer_kind_t = u32;
/// Stochastic gradient descent with momentum:
///
/// ```text
/// m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m
/// ```
///
/// [`MP_OPT_NESTEROV`]: w -= lr (g + momentum m).  Decay: g += wd w.  With
/// [`MP_OPT_DECAY_AFTER_MOMENTUM`]: w -= lr wd w, which does not enter the momentum.
///
/// [`MP_OPT_LARS`] and [`MP_OPT_LARC`]: g = a (g + wd w) instead, with a trust ratio a per tensor:
///
/// ```text
/// LARS: a = trust |w| / (|g| + wd |w| + eps);   LARC: a = min(1, a_LARS / lr)
/// ```
///
/// a is 1 if |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
/// and tensors that are initially 0 stay near it.)
/// Source: You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
/// algorithm 1; LARC: Apex, apex/parallel/LARC.py.
pub const MP_OPT_SGD: mp_optimizer_kind_t = 1;
/// Adam, and AdamW with [`MP_OPT_DECOUPLED_DECAY`]:
///
/// ```text
/// m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)
/// ```
///
/// mhat and vhat are m and v with bias correction.  Decay: g += wd w.  With
/// [`MP_OPT_DECOUPLED_DECAY`]: w -= lr wd w.
/// Source: Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2.
pub const MP_OPT_ADAM: mp_optimizer_kind_t = 2;
/// LAMB: w -= lr r u with the trust ratio r = |w| / |u|, where w -= lr u is the step of
/// [`MP_OPT_ADAM`] with the same flags, including decay.  r is 1 if |w| or |u| is 0 and, without
/// [`MP_OPT_NVLAMB`], for tensors with wd = 0 (biases, normalization), as in Apex's FusedLAMB.
///
/// The paper's form has [`MP_OPT_DECOUPLED_DECAY`], which [`mp_optimizer_desc_default`] sets.  Apex
/// includes global clipping; here it is `mp_step_options`.max\_grad\_norm.
/// Source: You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2.
pub const MP_OPT_LAMB: mp_optimizer_kind_t = 3;
/// NovoGrad, with one v per tensor:
///
/// ```text
/// v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1)
/// m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m
/// ```
///
/// dampening = b1 averages the gradients, like grad\_averaging of the original implementation.
/// (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
/// corrects the bias of a v that is not biased.  This is the paper's form.)
/// Source: Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
/// algorithm 1.
pub const MP_OPT_NOVOGRAD: mp_optimizer_kind_t = 4;
/// Adagrad: v += g^2;  w -= lr g / (sqrt(v) + eps).
///
/// The initial v may be above 0 (TensorFlow: 0.1).  Decay: g += wd w.  With
/// [`MP_OPT_DECOUPLED_DECAY`]: w -= lr wd w.
/// Source: Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch.
pub const MP_OPT_ADAGRAD: mp_optimizer_kind_t = 5;
/// RMSProp: v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps).
///
/// With momentum: m = momentum m + g / (sqrt(v) + eps);  w -= lr m.  Decay: g += wd w.
/// Source: Tieleman & Hinton, COURSERA: Neural Networks for Machine Learning, 2012, lecture 6.5;
/// eps and momentum as in torch.
pub const MP_OPT_RMSPROP: mp_optimizer_kind_t = 6;

/// Bits of `mp_optimizer_desc`.flags; bit 3 is unused.
pub type mp_optimizer_flags_t = u32;
/// SGD
pub const MP_OPT_NESTEROV: mp_optimizer_flags_t = 1;
/// Adam (then AdamW), LAMB, Adagrad
pub const MP_OPT_DECOUPLED_DECAY: mp_optimizer_flags_t = 2;
/// Adam, LAMB: mhat = m, vhat = v
pub const MP_OPT_NO_BIAS_CORRECTION: mp_optimizer_flags_t = 4;
/// Lets the 16-bit copy of a weight become infinite on overflow.  By default it is clamped to the
/// largest finite value: an infinite weight makes every later gradient non-finite, so every later
/// step would be skipped and training would never recover.
pub const MP_OPT_MODEL_OVERFLOW: mp_optimizer_flags_t = 16;
/// SGD; excludes [`MP_OPT_LARC`] and [`MP_OPT_LARS`]
pub const MP_OPT_DECAY_AFTER_MOMENTUM: mp_optimizer_flags_t = 32;
/// SGD
pub const MP_OPT_LARC: mp_optimizer_flags_t = 64;
/// SGD; excludes [`MP_OPT_LARC`]
pub const MP_OPT_LARS: mp_optimizer_flags_t = 128;
/// LAMB: also adapts tensors without decay
pub const MP_OPT_NVLAMB: mp_optimizer_flags_t = 256;
/// Rounds the 16-bit copy of a weight up or down at random, so that its expected value is the
/// weight.  Changes below half a unit in the last place then survive on average.  Weights that
/// the 16-bit type can represent are unchanged.
///
/// The random numbers depend only on rounding\_seed, t, and the indices of tensor and element.
/// They are equal on all devices and after a resume.  Probabilities are exact (fp16 subnormals:
/// to within 2^-32).
/// Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1;
/// Philox 4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
pub const MP_OPT_STOCHASTIC_ROUNDING: mp_optimizer_flags_t = 512;

/// Learning-rate schedule, evaluated on the device: a skipped step does not advance it, and a
/// captured graph needs no host work.  Every schedule begins with a linear warm-up:
///
/// ```text
/// lr(t) = lr t / warmup_steps   for t <= warmup_steps
/// ```
///
/// In the formulas, s = t - 1 - warmup\_steps counts the steps after the warm-up, so the first of
/// them has s = 0; p = min(s / decay\_steps, 1).  Rates are computed in fp64 and rounded once.
pub type mp_lr_schedule_t = u32;
/// lr(t) = lr
pub const MP_LR_CONSTANT: mp_lr_schedule_t = 0;
/// lr\_end + (lr - lr\_end) (1 - p)^decay\_power; linear if decay\_power is 1
pub const MP_LR_POLYNOMIAL: mp_lr_schedule_t = 1;
/// lr\_end + (lr - lr\_end) (1 + cos(pi p)) / 2
/// Source: Loshchilov & Hutter, SGDR, 2017, equation 5, without restarts.
pub const MP_LR_COSINE: mp_lr_schedule_t = 2;
/// max(lr\_end, lr decay\_rate^(s / decay\_steps))
pub const MP_LR_EXPONENTIAL: mp_lr_schedule_t = 3;
/// lr sqrt(max(warmup\_steps, 1) / t)
/// Source: Vaswani et al., Attention Is All You Need, 2017, equation 3, with lr as its peak.
pub const MP_LR_INVERSE_SQRT: mp_lr_schedule_t = 4;

/// Element-wise reduction across ranks.
pub type mp_reduce_op_t = u32;
pub const MP_REDUCE_SUM: mp_reduce_op_t = 0;
/// finite values \>= 0 only; libraries treat NaN differently
pub const MP_REDUCE_MAX: mp_reduce_op_t = 1;

/// Bits of `mp_step_options`.flags.
pub type mp_step_flags_t = u32;
/// Leaves the scaler and its flag to a later step, for optimizers that share a scaler.  All
/// optimizers except the last use this flag (or all do, and [`mp_scaler_update`](scaler, NULL,
/// stream) follows).  An optimizer skips for its own gradients and those of previous steps.  To
/// skip all of them together, check the later lists first:
///
/// ```text
/// mp_check_nonfinite(grads_of_b, mp_scaler_found_inf(scaler), stream);
/// options.flags = MP_STEP_KEEP_SCALER;
/// mp_scale_step(a, scaler, &options, stream);
/// mp_scale_step(b, scaler, NULL, stream);     // S follows its policy
/// ```
pub const MP_STEP_KEEP_SCALER: mp_step_flags_t = 1;
/// The gradients come from [`mp_grads_accumulate`] or [`mp_grads_to_fp32`]: they already include 1/S, and
/// the scaler uses the amax recorded there, which lognormal and logmax require.  Add
/// [`MP_STEP_CHECKED`] if the last call had [`MP_ACCUMULATE_LAST`].
pub const MP_STEP_UNSCALED: mp_step_flags_t = 2;
/// The producer of the gradients has checked them: the epilogues of GEMMs and convolutions set
/// [`mp_scaler_found_inf`] (without a scaler: that of [`mp_optimizer_get_scaler`]) and update amax.  The
/// step omits pass 1, which saves a launch and one of two reads of every gradient.
///
/// Not supported with outputs and limits that need pass 1: max\_grad\_norm, grad\_norm,
/// tensor\_norms, reports, and a group's max\_tensor\_norm.
pub const MP_STEP_CHECKED: mp_step_flags_t = 4;
/// Sharded optimizer, with comm: every rank owns some tensors, none divided between ranks, and
/// may own none; the norm is that of the tensors of all ranks.  Without this flag all ranks have
/// the same gradients.
pub const MP_STEP_SHARDED: mp_step_flags_t = 8;

/// Flags of [`mp_grads_accumulate`].
pub type mp_accumulate_flags_t = u32;
/// First gradients of a window: sums are overwritten, not read.
pub const MP_ACCUMULATE_FIRST: mp_accumulate_flags_t = 1;
/// Last gradients before an update by an optimizer of the host program: the sums are checked too,
/// and [`mp_step_query`] returns the outcome after this call.  If there are several lists, only the
/// last one has this flag.  Nothing may set the scaler's flag between this call and
/// [`mp_scaler_update`].  The outcome is that of this rank's gradients; with several ranks, call
/// [`mp_grad_all_reduce`] first.
pub const MP_ACCUMULATE_LAST: mp_accumulate_flags_t = 2;

/// Outcome of a step.  If several causes apply: OVERFLOW, then NO\_SCALE, then RANGE.  Queries, the
/// state of the scaler and `mp_step_options` report the same outcome; [`mp_scaler_get_history_sync`] has
/// its own codes.
pub type mp_step_outcome_t = u32;
/// the device has not finished the step
pub const MP_STEP_PENDING: mp_step_outcome_t = 0;
pub const MP_STEP_TAKEN: mp_step_outcome_t = 1;
/// Lower bound of all skips, for comparisons (outcome \>= [`MP_STEP_SKIPPED`]); never reported.  A
/// skipped step updates neither weights nor moments.
pub const MP_STEP_SKIPPED: mp_step_outcome_t = 2;
/// Skipped: the largest |gradient| times the factor that unscales and clips is not below 2^63, or
/// that factor is not finite.  S is unchanged, because no other S would help.
pub const MP_STEP_RANGE: mp_step_outcome_t = 3;
/// Skipped: S is 0, or 1/S is not finite.  The scaler's status becomes [`MP_SCALER_DIVERGED`].  (4 is
/// reserved.)
pub const MP_STEP_NO_SCALE: mp_step_outcome_t = 5;
/// skipped: the flag was set, or a gradient or amax is not finite; S follows its policy
pub const MP_STEP_OVERFLOW: mp_step_outcome_t = 6;

/// Class of an operation: the list that contains it.  Names follow TensorFlow.
pub type mp_autocast_class_t = u32;
/// fp32, independent of its neighbors
pub const MP_CAST_UNLISTED: mp_autocast_class_t = 0;
/// always low precision: numerically safe, and faster
pub const MP_CAST_ALLOW: mp_autocast_class_t = 1;
/// low precision between low-precision nodes, except downstream of a DENY
pub const MP_CAST_INFER: mp_autocast_class_t = 2;
/// fp32.  Propagates downstream through [`MP_CAST_INFER`] nodes, and through [`MP_CAST_CLEAR`] nodes that
/// lead to another [`MP_CAST_INFER`] or [`MP_CAST_DENY`].
pub const MP_CAST_DENY: mp_autocast_class_t = 3;
/// no numerical effect: takes the precision of its neighbors
pub const MP_CAST_CLEAR: mp_autocast_class_t = 4;
/// [`MP_AUTOCAST_PYTORCH`]: low precision if all floating-point inputs are.  Other presets treat it
/// as [`MP_CAST_INFER`].
pub const MP_CAST_PROMOTE: mp_autocast_class_t = 5;

/// Lists of operations and rules of propagation.
pub type mp_autocast_preset_t = u32;
/// Names of mpcore, ONNX, TensorFlow and PyTorch.  [`MP_CAST_ALLOW`]: products, convolutions,
/// attention, recurrent layers.  [`MP_CAST_INFER`]: batch norm.  [`MP_CAST_DENY`]: softmax, norms over a
/// row, losses, sums.
pub const MP_AUTOCAST_DEFAULT: mp_autocast_preset_t = 0;
/// lists of TensorFlow 2.21 for fp16
pub const MP_AUTOCAST_TENSORFLOW: mp_autocast_preset_t = 1;
/// lists of TensorFlow 2.21 for bf16
pub const MP_AUTOCAST_TENSORFLOW_BF16: mp_autocast_preset_t = 2;
/// Lists of torch.amp in PyTorch 2.11 for GPUs, names without overload, plus functions composed
/// of listed operations, such as cross\_entropy and interpolate.  Unknown operations are
/// [`MP_CAST_CLEAR`].
///
/// Propagation is that of torch.amp, one pass in execution order: a node is low precision if it
/// is [`MP_CAST_ALLOW`], or if all its floating-point inputs are and no list requires fp32.
/// [`MP_CAST_DENY`] does not propagate.
pub const MP_AUTOCAST_PYTORCH: mp_autocast_preset_t = 3;
/// names of ONNX; the block list of onnxconverter-common is unlisted
pub const MP_AUTOCAST_ONNX: mp_autocast_preset_t = 4;

/// Override of all lists.
pub type mp_autocast_level_t = u32;
/// no override
pub const MP_AUTOCAST_NORMAL: mp_autocast_level_t = 0;
/// conservative: [`MP_CAST_INFER`] becomes [`MP_CAST_DENY`]
pub const MP_AUTOCAST_INFER_AS_DENY: mp_autocast_level_t = 1;
/// all but [`MP_CAST_ALLOW`] become [`MP_CAST_UNLISTED`]
pub const MP_AUTOCAST_TENSOR_CORES_ONLY: mp_autocast_level_t = 2;
/// Low precision wherever possible, except constants, state and cross-entropies.  For tests;
/// [`MP_FP16`] only.
pub const MP_AUTOCAST_FORCE_ALL: mp_autocast_level_t = 3;

/// Bits of `mp_autocast_config`.flags.
pub type mp_autocast_flags_t = u32;
/// ignores environment variables
pub const MP_AUTOCAST_NO_ENVIRONMENT: mp_autocast_flags_t = 1;
/// disables the gate, see [`mp_autocast_gate`]
pub const MP_AUTOCAST_IGNORE_PERFORMANCE: mp_autocast_flags_t = 2;
/// Keeps tensors of role [`MP_TENSOR_OUTPUT`] in fp32 for the caller, who counts as a reader.
pub const MP_AUTOCAST_KEEP_IO: mp_autocast_flags_t = 4;
/// Emulates 16-bit arithmetic: low-precision nodes compute in fp32 on rounded values.  See
/// `mp_autocast_result`.
pub const MP_AUTOCAST_EMULATE: mp_autocast_flags_t = 8;

/// Bits of `mp_autocast_graph`.node\_flags.
pub type mp_node_flags_t = u32;
/// stays fp32: fetched, fed, or requested by the caller
pub const MP_NODE_KEEP: mp_node_flags_t = 1;
/// stays fp32: runs on another device
pub const MP_NODE_ELSEWHERE: mp_node_flags_t = 2;
/// stays fp32: no 16-bit kernel; its class still propagates
pub const MP_NODE_NO_LOW: mp_node_flags_t = 4;
/// converts to the type of its output
pub const MP_NODE_CAST: mp_node_flags_t = 8;
/// Reads a variable in place (Identity or Enter of TensorFlow's reference variables); low
/// precision does not propagate through it.
pub const MP_NODE_READS_VARIABLE: mp_node_flags_t = 16;
/// back edge (NextIteration): follows the rest of its loop
pub const MP_NODE_BACK_EDGE: mp_node_flags_t = 32;
/// reads fp32 and low precision, except on [`MP_SLOT_FP32`]
pub const MP_NODE_READS_EITHER: mp_node_flags_t = 64;
/// can write fp32 or low precision, like [`mp_gemm`] (dtype\_cd)
pub const MP_NODE_WRITES_EITHER: mp_node_flags_t = 128;

/// Role of a tensor.
pub type mp_tensor_role_t = u32;
pub const MP_TENSOR_ACTIVATION: mp_tensor_role_t = 0;
/// an optimizer has its fp32 master and can keep a 16-bit copy
pub const MP_TENSOR_PARAMETER: mp_tensor_role_t = 1;
/// read by the caller
pub const MP_TENSOR_OUTPUT: mp_tensor_role_t = 2;

/// Source of the converted tensor.
pub type mp_cast_kind_t = u32;
/// [`mp_cast`], once for all readers
pub const MP_CAST_BY_KERNEL: mp_cast_kind_t = 1;
/// The 16-bit copy of a parameter that the optimizer writes (`mp_optimizer_desc`.model): no
/// kernel.
pub const MP_CAST_BY_MODEL_COPY: mp_cast_kind_t = 2;

/// Reason for the type of a node: fp32 if \< 32, otherwise low precision.  node\_because is the node
/// in brackets.
pub type mp_autocast_why_t = u32;
/// [`MP_CAST_UNLISTED`]: on no list, or by level
pub const MP_WHY_UNLISTED: mp_autocast_why_t = 1;
/// [`MP_CAST_DENY`] by list, pattern, node\_class or level
pub const MP_WHY_DENY_LIST: mp_autocast_why_t = 2;
/// downstream of an [`MP_CAST_DENY`] \[that node\]
pub const MP_WHY_DENY_UPSTREAM: mp_autocast_why_t = 3;
/// tensor\_amax of a tensor exceeds amax\_limit
pub const MP_WHY_RANGE: mp_autocast_why_t = 4;
/// node\_depth exceeds depth\_limit
pub const MP_WHY_DEPTH: mp_autocast_why_t = 5;
/// [`MP_NODE_KEEP`]
pub const MP_WHY_KEPT: mp_autocast_why_t = 6;
/// [`MP_NODE_ELSEWHERE`]
pub const MP_WHY_ELSEWHERE: mp_autocast_why_t = 7;
/// [`MP_NODE_NO_LOW`]
pub const MP_WHY_NO_KERNEL: mp_autocast_why_t = 8;
/// could be low precision, but none propagates to it
pub const MP_WHY_NO_ALLOW_NEARBY: mp_autocast_why_t = 9;
/// reads and writes no [`MP_FP32`] tensor
pub const MP_WHY_NOT_FLOAT: mp_autocast_why_t = 10;
/// gate closed, see `mp_autocast_result`.gate
pub const MP_WHY_GATE: mp_autocast_why_t = 11;
/// in an fp32 cluster \[the member that requires fp32\]
pub const MP_WHY_CLUSTER_FP32: mp_autocast_why_t = 12;
/// [`MP_CAST_ALLOW`] by list, node\_class or level
pub const MP_WHY_ALLOW_LIST: mp_autocast_why_t = 32;
/// INFER or CLEAR between two [`MP_CAST_ALLOW`] \[the downstream one\]
pub const MP_WHY_BETWEEN_ALLOW: mp_autocast_why_t = 33;
/// Downstream of a low-precision node \[that node\], with [`MP_BF16`] or [`MP_AUTOCAST_PYTORCH`].
pub const MP_WHY_FOLLOWS_ALLOW: mp_autocast_why_t = 34;
/// [`MP_CAST_CLEAR`] connected to a low-precision node \[that node\]
pub const MP_WHY_CLEAR_BESIDE_LOW: mp_autocast_why_t = 35;
/// in a low-precision cluster \[the member that caused it\]
pub const MP_WHY_CLUSTER_LOW: mp_autocast_why_t = 36;
/// cast to fp32 with only low-precision readers \[the first\]
pub const MP_WHY_CAST_ABSORBED: mp_autocast_why_t = 37;
/// [`MP_CAST_ALLOW`] by [`mp_autocast_set_nodes`]
pub const MP_WHY_PATTERN: mp_autocast_why_t = 38;

/// Format of a report.
pub type mp_autocast_form_t = u32;
/// One line per node, "conv1/bn  FusedBatchNormV3  fp16  between conv1/conv and conv2/conv", and
/// a summary.
pub const MP_AUTOCAST_TEXT: mp_autocast_form_t = 0;
pub const MP_AUTOCAST_JSON: mp_autocast_form_t = 1;
/// for Graphviz: low precision green, fp32 red, casts on the edges
pub const MP_AUTOCAST_DOT: mp_autocast_form_t = 2;

/// Bits of [`mp_xent_desc_t`].flags.
pub type mp_xent_flags_t = u32;
/// excludes rows whose label is `ignore_label`
pub const MP_XENT_IGNORE_LABEL: mp_xent_flags_t = 1;

/// Loss l(x, t) of one prediction x and its target t.
pub type mp_loss_kind_t = u32;
/// (x - t)^2
pub const MP_LOSS_MSE: mp_loss_kind_t = 1;
/// |x - t|; derivative 0 at x = t
pub const MP_LOSS_L1: mp_loss_kind_t = 2;
/// -t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x))
pub const MP_LOSS_BCE_WITH_LOGITS: mp_loss_kind_t = 3;

/// Divisor of the sum of element losses.
pub type mp_loss_reduction_t = u32;
/// number of elements that are not ignored
pub const MP_LOSS_MEAN: mp_loss_reduction_t = 0;
/// 1
pub const MP_LOSS_SUM: mp_loss_reduction_t = 1;

/// Bits of [`mp_loss_desc_t`].flags.
pub type mp_loss_flags_t = u32;
/// excludes elements whose target is `ignore_target`
pub const MP_LOSS_IGNORE_TARGET: mp_loss_flags_t = 1;

/// Reduction of a window.
pub type mp_pool_mode_t = u32;
/// largest element; padding is excluded
pub const MP_POOL_MAX: mp_pool_mode_t = 1;
/// sum / number of pixels in the padded image; padding is 0
pub const MP_POOL_AVG_INCLUDE_PAD: mp_pool_mode_t = 2;
/// sum / number of pixels in the image
pub const MP_POOL_AVG_EXCLUDE_PAD: mp_pool_mode_t = 3;

/// Bits of [`mp_pool2d_desc_t`].flags.
pub type mp_pool_flags_t = u32;
/// Rounds P and Q up, like ceil\_mode of torch: the last window may extend beyond the padding, but
/// starts inside the image or the padding before it.
pub const MP_POOL_CEIL: mp_pool_flags_t = 1;

/// Element-wise operation on a and b.
pub type mp_pointwise_op_t = u32;
/// z = a
pub const MP_POINTWISE_COPY: mp_pointwise_op_t = 1;
/// z = a + b
pub const MP_POINTWISE_ADD: mp_pointwise_op_t = 2;
/// z = a b
pub const MP_POINTWISE_MUL: mp_pointwise_op_t = 3;

/// Cell type.
pub type mp_rnn_cell_t = u32;
pub const MP_RNN_TANH: mp_rnn_cell_t = 1;
pub const MP_RNN_RELU: mp_rnn_cell_t = 2;
/// gate order in the rows of the weights: i f g o
pub const MP_RNN_LSTM: mp_rnn_cell_t = 3;
/// gate order in the rows of the weights: r z n
pub const MP_RNN_GRU: mp_rnn_cell_t = 4;

/// Bits of [`mp_rnn_desc_t`].flags.
pub type mp_rnn_flags_t = u32;
pub const MP_RNN_BIDIRECTIONAL: mp_rnn_flags_t = 1;
/// no biases; b\_ih and b\_hh are ignored
pub const MP_RNN_NO_BIAS: mp_rnn_flags_t = 2;
/// Replaces the input product of the first layer by x\_t, which is added to every gate.  W\_ih is
/// ignored; input\_size must equal hidden\_size.
pub const MP_RNN_SKIP_INPUT: mp_rnn_flags_t = 4;
/// Applies the reset gate before the product, [`MP_RNN_GRU`] only: n = tanh(p\_n + (r h) W\_n^T + b\_n).
/// A time step then has two dependent products.
/// Source: Cho et al. 2014; reset\_after=False in TensorFlow and Keras.
pub const MP_RNN_RESET_FIRST: mp_rnn_flags_t = 8;
/// Adds the gradients of weights and biases to the previous values, for micro-batches.  With
/// dtype\_dw = [`MP_FP32`] partial sums are not rounded to 16 bits.
pub const MP_RNN_ACCUMULATE: mp_rnn_flags_t = 16;

/// Bits of [`mp_embedding_desc_t`].flags.
pub type mp_embedding_flags_t = u32;
/// Makes the gradient of row `padding_index` 0.  The forward pass reads that row like any other,
/// as in torch.
pub const MP_EMBEDDING_PADDING: mp_embedding_flags_t = 1;
/// Adds the gradient to the previous value, for micro-batches or a table that is used twice.
/// With dtype\_dtable = [`MP_FP32`] partial sums are not rounded to 16 bits.
pub const MP_EMBEDDING_ACCUMULATE: mp_embedding_flags_t = 2;

/// Mode of a forward pass.
pub type mp_graph_mode_t = u32;
/// BatchNorm uses its states, Dropout is the identity.  The loss and tensors that depend on it
/// are computed only if labels or target are bound.
pub const MP_GRAPH_INFERENCE: mp_graph_mode_t = 0;
/// Prepares [`mp_graph_backward`], which computes the loss together with its gradient, and tensors
/// that depend on the loss.
pub const MP_GRAPH_TRAINING: mp_graph_mode_t = 1;

/// Policies of other systems, with their defaults.  S is equal to theirs after every step while S
/// is a finite fp32 number.  All are [`MP_SCALER_BACKOFF`] except the first and the last; the returned
/// configuration can be modified.
///
/// Differences at the limits: Megatron, DeepSpeed and Keras 3 let S grow beyond the finite numbers,
/// after which every step is lost; here S stops.  Apex raises an error at S = 0, and DeepSpeed's
/// DynamicLossScaler at an overflow with S = 1; here S stays.
pub type mp_scaler_preset_t = u32;
/// This library's lognormal policy: [`mp_scaler_config_default`]([`MP_SCALER_LOGNORMAL`]).
pub const MP_SCALER_PRESET_LOGNORMAL: mp_scaler_preset_t = 0;
/// torch.amp.GradScaler.  Initial S 2^16, interval 2000, no limits.
pub const MP_SCALER_PRESET_TORCH: mp_scaler_preset_t = 1;
/// apex.amp LossScaler, apex/amp/scaler.py (removed from Apex in 2025).  Initial S 2^16, interval
/// 2000, no minimum, maximum 2^24.
pub const MP_SCALER_PRESET_APEX_AMP: mp_scaler_preset_t = 2;
/// Apex csrc/update\_scale\_hysteresis.cu: torch's rule, but S backs off only after 2 overflows
/// without a clean step between them.  The kernel has no defaults; the preset uses torch's, and
/// Megatron's hysteresis of 2.
pub const MP_SCALER_PRESET_APEX_HYSTERESIS: mp_scaler_preset_t = 3;
/// Megatron-LM DynamicGradScaler, core/optimizer/grad\_scaler.py.  Initial S 2^32, interval 1000,
/// minimum 1, hysteresis 2, refilled when S grows.
pub const MP_SCALER_PRESET_MEGATRON: mp_scaler_preset_t = 4;
/// DeepSpeed DynamicLossScaler, runtime/fp16/loss\_scaler.py (ZeRO), with the defaults of the
/// "fp16" section of its configuration: initial S 2^16, interval 1000, minimum 1, hysteresis 2.
/// For consecutive\_hysteresis set [`MP_SCALER_REFILL_EACH_STEP`].
pub const MP_SCALER_PRESET_DEEPSPEED: mp_scaler_preset_t = 5;
/// DeepSpeed FP16\_Optimizer, runtime/fp16/fused\_optimizer.py (without ZeRO).  Like
/// [`MP_SCALER_PRESET_DEEPSPEED`] without hysteresis, but the first growth takes 1001 clean steps.
pub const MP_SCALER_PRESET_DEEPSPEED_FUSED: mp_scaler_preset_t = 6;
/// tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  Initial S 2^15, interval
/// 2000, minimum 1.
pub const MP_SCALER_PRESET_KERAS: mp_scaler_preset_t = 7;
/// keras.optimizers.LossScaleOptimizer of Keras 3.  Initial S 2^15, interval 2000, no limits.
pub const MP_SCALER_PRESET_KERAS_3: mp_scaler_preset_t = 8;
/// OpenSeq2Seq BackoffScaler, optimizers/automatic\_loss\_scaler.py.  Initial S 2^14, interval
/// 2000, minimum 1, maximum 2^14.
pub const MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF: mp_scaler_preset_t = 9;
/// OpenSeq2Seq LogMaxScaler: [`MP_SCALER_LOGMAX`].  Initial S 1, minimum 1, maximum 2^14.
pub const MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX: mp_scaler_preset_t = 10;

/// Device memory allocator.  Called only by mp\_\*\_create, mp\_\*\_destroy, [`mp_graph_compile`] and
/// [`mp_graph_set_batch`].  If a callback throws a C++ exception, the call returns
/// [`MP_ERROR_OUT_OF_MEMORY`]; mp\_\*\_destroy logs an error instead.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_allocator_t {
    pub struct_size: u32,
    /// must be 0
    pub reserved0: u32,
    /// Returns 256-byte aligned memory, or NULL if out of memory.
    pub alloc: Option<unsafe extern "C" fn(bytes: usize, user: *mut c_void) -> *mut c_void>,
    /// Frees memory that enqueued work may still be using.
    pub free: Option<unsafe extern "C" fn(ptr: *mut c_void, bytes: usize, user: *mut c_void)>,
    pub user: *mut c_void,
}

/// Device of a context and limits on its use.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_context_config_t {
    pub struct_size: u32,
    /// CUDA ordinal or MP\_DEVICE\_\*
    pub device: i32,
    /// maximum number of SMs, e.g. to leave room for NCCL; 0 = all
    pub sm_limit: i32,
    /// must be 0
    pub flags: u32,
    /// Host, copied; NULL = cudaMalloc and cudaFree.
    pub allocator: *const mp_allocator_t,
}

/// Device properties.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_device_info_t {
    pub struct_size: u32,
    pub target: mp_target_t,
    /// 80, 90, ...
    pub arch: i32,
    /// SMs in use, at most sm\_limit
    pub num_sms: i32,
    /// bytes of shared memory that a kernel may opt in to
    pub smem_per_block: i64,
    pub l2_bytes: i64,
    /// NUL-terminated
    pub name: [c_char; 64],
}

/// Operations on the fp32 accumulators before they are rounded and stored, in this order:
///
/// ```text
/// z = alpha * *scale * acc + beta * C + bias[col]
/// aux = z                     (if aux != NULL and the activation is not a D* kind)
/// y = activation(z)           (or z * activation'(aux) for the D* kinds)
/// D = round(y)
/// dbias[col] = sum_rows D,  amax = max(amax, |D|),  found_inf |= !isfinite(D)
/// ```
///
/// If alpha \* \*scale is 0, the first term is 0 for any acc, as in BLAS.
///
/// Every activation propagates NaN.  Both forms of gelu and silu map -infinity to -0, their limit.
/// The exact form of gelu has an error of at most 6 ulp, for negative results too, and gives the
/// same bits on every device.
///
/// dbias, amax and found\_inf use y \*after\* rounding to the type of D, because overflow happens in
/// that rounding.  dbias also sums over batch items, in fp32 and in a fixed order.  It is computed
/// by a second pass over D or, on Hopper with a workspace of an eighth of D's size, from partial
/// sums of 16 rows that the kernel writes.  All pointers are device pointers and optional.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_epilogue_t {
    pub struct_size: u32,
    pub activation: mp_activation_t,
    /// 1 float; multiplies alpha, e.g. [`mp_scaler_inv_scale`]()
    pub scale: *const f32,
    /// n elements
    pub bias: *const c_void,
    pub bias_dtype: mp_dtype_t,
    /// must be 0
    pub reserved0: u32,
    /// m x n, type and batch layout of D; written, or read by `MP_ACT_D`\*
    pub aux: *mut c_void,
    /// 0 = ldd
    pub ld_aux: i64,
    /// n floats, overwritten; zeros if m or batch\_count is 0
    pub dbias: *mut f32,
    /// 1 float, updated; clear it first
    pub amax: *mut f32,
    /// 1 float, set to 1 and never cleared (sticky)
    pub found_inf: *mut f32,
}

/// Shape, types and layout of a GEMM.  A descriptor contains no data pointers, so it can be reused
/// and serves as the key for workspace queries and kernel selection.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_gemm_desc_t {
    pub struct_size: u32,
    pub op_a: mp_op_t,
    pub op_b: mp_op_t,
    /// [`MP_FP16`], [`MP_BF16`]: tensor cores; [`MP_FP32`]: CUDA cores
    pub dtype_ab: mp_dtype_t,
    /// any type, independent of dtype\_ab
    pub dtype_cd: mp_dtype_t,
    pub alpha: f32,
    pub beta: f32,
    /// Number of products, \>= 0.  batch\_count = 0 with alpha = 0 is an error: it indicates a
    /// descriptor that [`mp_gemm_desc_init`] has not initialized.
    pub batch_count: i32,
    /// op(A) is m x k, op(B) is k x n, C and D are m x n
    pub m: i64,
    /// op(A) is m x k, op(B) is k x n, C and D are m x n
    pub n: i64,
    /// op(A) is m x k, op(B) is k x n, C and D are m x n
    pub k: i64,
    pub lda: i64,
    pub ldb: i64,
    pub ldc: i64,
    pub ldd: i64,
    /// Elements between batch items.  0 for a or b: all items share one matrix.
    pub stride_a: i64,
    /// Elements between batch items.  0 for a or b: all items share one matrix.
    pub stride_b: i64,
    /// Elements between batch items.  0 for a or b: all items share one matrix.
    pub stride_c: i64,
    /// Elements between batch items.  0 for a or b: all items share one matrix.
    pub stride_d: i64,
    /// host; NULL = automatic; see mpcore/experimental.h
    pub kernel: *const c_char,
}

/// One product of [`mp_gemm_grouped`]: shape and matrices, as in [`mp_gemm`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_gemm_group_item_t {
    /// in an array, also the distance between elements, in bytes
    pub struct_size: u32,
    /// must be 0
    pub reserved0: u32,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub lda: i64,
    pub ldb: i64,
    pub ldc: i64,
    pub ldd: i64,
    /// device
    pub A: *const c_void,
    /// device
    pub B: *const c_void,
    /// device
    pub C: *const c_void,
    /// device
    pub D: *mut c_void,
}

/// Shape, types and layout of a convolution.  Names follow the CUTLASS documentation:
///
/// ```text
/// x, dx    activations  N H W C            dense, C contiguous
/// y, dy    outputs      N P Q K
/// filter   weights      K R S (C/groups)
///
/// P = (pad_top + H + pad_bottom - dilation_h (R - 1) - 1) / stride_h + 1   (rounded down)
/// y[n][p][q][k] = sum over r, s, c of  filter[k][r][s][c]
///     x[n][p stride_h - pad_top + r dilation_h][q stride_w - pad_left + s dilation_w][c]
/// ```
///
/// Q is computed like P; x is 0 outside the image.  This is cross-correlation, which deep learning
/// calls convolution.  Output channel k belongs to group k / (K/groups) and reads only the input
/// channels of that group.  A 1-D convolution has h = r = 1.  If the filter is larger than the
/// padded image, P or Q is 0: y is empty and contributes no gradient.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_conv2d_desc_t {
    pub struct_size: u32,
    /// type of both inputs; 16-bit: tensor cores; [`MP_FP32`]: CUDA cores
    pub dtype: mp_dtype_t,
    /// type of the output: any, independent of dtype
    pub dtype_out: mp_dtype_t,
    /// \>= 0
    pub n: i32,
    /// \>= 1
    pub h: i32,
    /// \>= 1
    pub w: i32,
    /// \>= 1
    pub c: i32,
    /// \>= 1
    pub k: i32,
    /// \>= 1
    pub r: i32,
    /// \>= 1
    pub s: i32,
    /// rows, columns of zeros; \>= 0
    pub pad_top: i32,
    /// rows, columns of zeros; \>= 0
    pub pad_bottom: i32,
    /// rows, columns of zeros; \>= 0
    pub pad_left: i32,
    /// rows, columns of zeros; \>= 0
    pub pad_right: i32,
    /// \>= 1
    pub stride_h: i32,
    /// \>= 1
    pub stride_w: i32,
    /// \>= 1
    pub dilation_h: i32,
    /// \>= 1
    pub dilation_w: i32,
    /// divides c and k; groups = c: depthwise
    pub groups: i32,
    /// out = alpha \* conv + beta \* out; alpha = 0: inputs are not read
    pub alpha: f32,
    /// out = alpha \* conv + beta \* out; alpha = 0: inputs are not read
    pub beta: f32,
    /// must be 0
    pub reserved0: u32,
    /// host; NULL = automatic; see mpcore/experimental.h
    pub kernel: *const c_char,
}

/// Addresses, sizes and types of `count` dense tensors.  All arrays are host, copied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_tensor_list_desc_t {
    pub struct_size: u32,
    /// type of all tensors, if `dtypes` is NULL
    pub dtype: mp_dtype_t,
    pub count: u32,
    /// must be 0
    pub reserved0: u32,
    /// `count` device pointers, aligned to the element size.  NULL if numel is 0, or in the model
    /// list of an optimizer.  Tensors may overlap in a list that is only read; every call that writes
    /// to the list rejects overlaps with [`MP_ERROR_INVALID_ARGUMENT`].
    pub data: *const *mut c_void,
    /// `count` sizes in elements, each \>= 0 and in total less than 2^40.
    pub numel: *const i64,
    /// One type per tensor, optional, e.g. for layers that stay in fp32.
    pub dtypes: *const mp_dtype_t,
}

/// Counts of special values in one tensor or in a list.  Kernels write reports into device memory,
/// so the struct has no struct\_size and is 64 bytes in every version.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_tensor_report_t {
    pub numel: i64,
    pub num_nan: i64,
    pub num_inf: i64,
    /// zeros of either sign
    pub num_zero: i64,
    /// 0 \< |x| \< 2^-14, for every type: fp16 stores such values with fewer
    /// significant bits, or as 0
    pub num_subnormal: i64,
    /// Index of the first tensor that contains NaN or infinity, and of the first such element in it;
    /// -1 if there is none.
    pub bad_tensor: i64,
    /// Index of the first tensor that contains NaN or infinity, and of the first such element in it;
    /// -1 if there is none.
    pub bad_element: i64,
    /// value of that element; 0 if there is none
    pub bad_value: f32,
    /// result of [`mp_amax`]
    pub amax: f32,
}

/// Outputs of [`mp_tensor_stats`].  Every pointer is device memory and optional, and receives the
/// result of [`mp_check_nonfinite`], [`mp_amax`], [`mp_l2norm`] or [`mp_inspect`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_stats_outputs_t {
    /// `MP_INIT_STRUCT`: no output is requested
    pub struct_size: u32,
    /// must be 0
    pub reserved0: u32,
    pub found_inf: *mut f32,
    /// 1 float; count floats
    pub amax: *mut f32,
    /// 1 float; count floats
    pub tensor_amax: *mut f32,
    /// 1 float; count floats
    pub norm: *mut f32,
    /// 1 float; count floats
    pub tensor_norm: *mut f32,
    /// 1 report; count reports.  Counting makes the pass slower.
    pub report: *mut mp_tensor_report_t,
    /// 1 report; count reports.  Counting makes the pass slower.
    pub tensor_reports: *mut mp_tensor_report_t,
}

/// Parameters of a policy.  "backoff", "lognormal" and "logmax" name the policies that read a
/// field.  Factors and decays are double, so that 0.99 is equal to Python's 0.99.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_scaler_config_t {
    pub struct_size: u32,
    pub policy: mp_scaler_policy_t,
    /// bitwise or of [`mp_scaler_flags_t`]
    pub flags: u32,
    pub init_scale: f32,
    /// Limits of S, \> 0; may be below 1.  For backoff, 0 disables a limit.  Without min\_scale, S may
    /// become 0.  If 1/S is infinite, [`mp_scale_step`] updates nothing ([`MP_STEP_NO_SCALE`]) and the status
    /// becomes [`MP_SCALER_DIVERGED`].
    pub min_scale: f32,
    /// Limits of S, \> 0; may be below 1.  For backoff, 0 disables a limit.  Without min\_scale, S may
    /// become 0.  If 1/S is infinite, [`mp_scale_step`] updates nothing ([`MP_STEP_NO_SCALE`]) and the status
    /// becomes [`MP_SCALER_DIVERGED`].
    pub max_scale: f32,
    /// backoff; \> 1
    pub growth_factor: f64,
    /// backoff, lognormal; in (0, 1)
    pub backoff_factor: f64,
    /// lognormal, logmax; in \[0, 1)
    pub beta1: f64,
    /// lognormal, logmax; in \[0, 1)
    pub beta2: f64,
    /// lognormal: log2 of the largest finite gradient; logmax: compat.h
    pub log2_max: f32,
    /// lognormal, logmax; 3.09 is the normal quantile of 0.999
    pub overflow_std_dev: f32,
    /// lognormal; in bits
    pub sigma_floor: f32,
    /// \>= 1; clean steps per growth of S or per bit of h
    pub growth_interval: i32,
    /// backoff; overflows per backoff, \>= 1
    pub hysteresis: i32,
    /// Number of consecutive skipped steps after which the status is [`MP_SCALER_DIVERGED`] and S stays
    /// until a step is clean; 0 = never.  No S helps against a NaN of the forward pass, and lowering
    /// S further would end at min\_scale or 0.
    pub diverged_after: i32,
    /// updates kept for [`mp_scaler_get_history_sync`]; at most 2^24
    pub history: i32,
    /// must be 0
    pub reserved0: u32,
}

/// State of a scaler, as saved in checkpoints.  Plain data that can be written to a file unchanged,
/// to be read on machines of the same byte order.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_scaler_state_t {
    pub struct_size: u32,
    pub policy: mp_scaler_policy_t,
    pub scale: f32,
    /// clean steps counted towards growth\_interval; -1: the next one is not
    /// counted ([`MP_SCALER_FIRST_STEP_UNCOUNTED`])
    pub growth_tracker: i32,
    /// overflows until S backs off; 0: every one backs off
    pub hysteresis_left: i32,
    /// lognormal, logmax: decay beta1, not bias-corrected
    pub log2_mean: f32,
    /// lognormal, logmax: decay beta2
    pub log2_mean_slow: f32,
    /// lognormal, logmax: decay beta2
    pub log2_square_slow: f32,
    /// lognormal: h, bits
    pub headroom: f32,
    pub status: mp_scaler_status_t,
    /// lognormal, logmax: beta1^steps, for bias correction
    pub beta1_power: f64,
    pub beta2_power: f64,
    /// updates so far
    pub steps: i64,
    /// skipped steps: overflows + out\_of\_range + no\_scale
    pub skipped: i64,
    /// overflows with a NaN gradient (amax was NaN)
    pub skipped_nan: i64,
    /// skips since the last clean step
    pub skipped_in_row: i64,
    /// Skips per outcome: [`MP_STEP_OVERFLOW`], [`MP_STEP_RANGE`], [`MP_STEP_NO_SCALE`].
    pub overflows: i64,
    /// Skips per outcome: [`MP_STEP_OVERFLOW`], [`MP_STEP_RANGE`], [`MP_STEP_NO_SCALE`].
    pub out_of_range: i64,
    /// Skips per outcome: [`MP_STEP_OVERFLOW`], [`MP_STEP_RANGE`], [`MP_STEP_NO_SCALE`].
    pub no_scale: i64,
}

/// Hyperparameters of one parameter group.  0 disables a limit or a regularizer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_hyper_t {
    /// in an array, also the distance between elements, in bytes
    pub struct_size: u32,
    /// \>= 0
    pub lr: f32,
    /// SGD, RMSProp: momentum; Adam, LAMB, NovoGrad
    pub beta1: f32,
    /// Adam, LAMB, NovoGrad, RMSProp
    pub beta2: f32,
    /// \> 0; SGD with [`MP_OPT_LARC`] or [`MP_OPT_LARS`]: \>= 0
    pub eps: f32,
    /// \>= 0
    pub weight_decay: f32,
    /// SGD, NovoGrad
    pub dampening: f32,
    /// SGD with [`MP_OPT_LARC`] or [`MP_OPT_LARS`]: \> 0
    pub trust: f32,
    /// g \*= min(1, max\_tensor\_norm / (|g| + 1e-6))
    pub max_tensor_norm: f32,
    /// g = clamp(g, -max\_value, max\_value)
    pub max_value: f32,
    /// \>= 0; g += l1 sign(w), sign(0) = 0: the gradient of l1 sum |w|
    pub l1: f32,
    /// \>= 0; g += 2 l2 w: the gradient of l2 sum w^2
    pub l2: f32,
    pub lr_schedule: mp_lr_schedule_t,
    /// \>= 0; 0 = none
    pub warmup_steps: i32,
    /// polynomial, cosine, exponential: \>= 1
    pub decay_steps: i32,
    /// polynomial: \> 0
    pub decay_power: f32,
    /// exponential: \> 0
    pub decay_rate: f32,
    /// polynomial, cosine, exponential: \>= 0, in the unit of lr
    pub lr_end: f32,
}

/// Update rule, hyperparameters and tensors of an optimizer.
///
/// The lists are parallel: equal counts and sizes.  Lists and tensors must outlive the optimizer.
/// Written lists (master, model, m, v) may not overlap any other: [`mp_optimizer_create`] rejects a
/// list, or the address of a tensor, that occurs twice, except in grads and extra\_grads.
///
/// m and v are usually NULL.  [`mp_optimizer_create`] then allocates those that the groups need, filled
/// with 0, by the context's allocator; see [`mp_optimizer_moments`].  If you pass m or v, initialize
/// its tensors yourself.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_optimizer_desc_t {
    pub struct_size: u32,
    pub kind: mp_optimizer_kind_t,
    /// bitwise or of [`mp_optimizer_flags_t`]
    pub flags: u32,
    pub num_groups: u32,
    /// host, num\_groups elements, copied
    pub groups: *const mp_hyper_t,
    /// host, one index per tensor; NULL = all in group 0
    pub tensor_group: *const u32,
    /// any type; only read
    pub grads: mp_tensor_list_t,
    /// [`MP_FP32`]; updated
    pub master: mp_tensor_list_t,
    /// 16-bit copy of master, written; optional.  Parameters with a
    /// NULL data pointer have no 16-bit copy
    pub model: mp_tensor_list_t,
    /// [`MP_FP32`]: momentum or first moment.  NULL: allocated, except for
    /// SGD and RMSProp if every group has beta1 = 0.  Adagrad: NULL
    pub m: mp_tensor_list_t,
    /// [`MP_FP32`]: second moment.  NULL: allocated.  SGD: NULL.
    /// NovoGrad: as many tensors, of one element each
    pub v: mp_tensor_list_t,
    /// Device, one float per tensor, optional; NULL = all 1.  Every step reads them: they may be
    /// rewritten in stream order and must outlive the optimizer.
    ///
    /// lr\_multipliers multiply lr; 0 freezes a tensor, but its m and v are still updated.
    /// decay\_multipliers multiply weight\_decay, l1 and l2.
    pub lr_multipliers: *const f32,
    /// Device, one float per tensor, optional; NULL = all 1.  Every step reads them: they may be
    /// rewritten in stream order and must outlive the optimizer.
    ///
    /// lr\_multipliers multiply lr; 0 freezes a tensor, but its m and v are still updated.
    /// decay\_multipliers multiply weight\_decay, l1 and l2.
    pub decay_multipliers: *const f32,
    /// [`MP_FP32`], parallel to the other lists, optional: added to g after unscaling and clipping, e.g.
    /// the gradient of a custom penalty.  Every step reads it without checking it: an element whose
    /// extra gradient is infinite keeps its weight (`mp_step_options`.rejected\_updates).
    pub extra_grads: mp_tensor_list_t,
    /// for [`MP_OPT_STOCHASTIC_ROUNDING`]; any value
    pub rounding_seed: u64,
}

/// Rounding of fp32 master weights to their 16-bit copy.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_model_options_t {
    pub struct_size: u32,
    /// [`MP_OPT_MODEL_OVERFLOW`], [`MP_OPT_STOCHASTIC_ROUNDING`]
    pub flags: u32,
    /// for [`MP_OPT_STOCHASTIC_ROUNDING`], as in [`mp_optimizer_desc_t`]
    pub rounding_seed: u64,
    /// Device, 1 integer, for [`MP_OPT_STOCHASTIC_ROUNDING`]: number of updates of the weights so far.
    /// With an optimizer of this library: [`mp_optimizer_step_counter`] after its step.
    pub t: *const i64,
    /// see `mp_step_options`.model\_overflows
    pub overflows: *mut i64,
}

/// Communicator: a table of callbacks, so that the library links no communication library.
/// [`mp_comm_init_nccl`] fills it for NCCL, bindings/mpi/mpcore\_mpi.h for MPI on the host target.
///
/// Callbacks run on the calling thread, during the call that received the communicator.  They
/// enqueue on `stream` (on the host target: return after completion), receive `user` as the last
/// argument, may call mpcore, and return 0.  Any other return value, or a C++ exception, ends the
/// call with [`MP_ERROR_COMM`].
///
/// A call with a communicator is collective: all ranks make it, in the same order, with equal
/// numbers of elements, types and flags.  Equality is not validated: a mismatch may deadlock,
/// return an MPI error on some ranks, or give wrong sums.
///
/// As with every collective, a rank whose call fails leaves the others waiting: in the same call
/// or, if they have received all of its data, in the next one.  A call that is rejected (status
/// below 40) has not communicated.  Weights and S of waiting ranks are those before the call.  A
/// program should check every status and end all ranks (MPI\_Abort) if one is not [`MP_SUCCESS`]; for
/// alternatives see docs/multi-gpu.md.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_comm_t {
    pub struct_size: u32,
    /// 0 to world\_size - 1
    pub rank: i32,
    /// \>= 1; with 1, no callback is called and all may be NULL
    pub world_size: i32,
    /// must be 0
    pub reserved0: u32,
    /// Reduces `send` over all ranks into `recv`, with the same bits on every rank.  Device pointers;
    /// recv may be send.
    pub all_reduce: Option<unsafe extern "C" fn(send: *const c_void, recv: *mut c_void, count: usize, dtype: mp_dtype_t, op: mp_reduce_op_t, stream: mp_stream_t, user: *mut c_void) -> c_int>,
    /// optional, with group\_end: begins a batch of all\_reduce calls
    pub group_begin: Option<unsafe extern "C" fn(user: *mut c_void) -> c_int>,
    /// ends the batch, also if an all\_reduce failed
    pub group_end: Option<unsafe extern "C" fn(user: *mut c_void) -> c_int>,
    /// passed to the callbacks, e.g. the ncclComm\_t
    pub user: *mut c_void,
}

/// Options and additional outputs of a step.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_step_options_t {
    pub struct_size: u32,
    /// bitwise or of [`mp_step_flags_t`]
    pub flags: u32,
    /// limit of the unscaled global norm; 0 = no clipping
    pub max_grad_norm: f32,
    /// must be 0
    pub reserved0: u32,
    /// device, 1 float, optional: unscaled norm before clipping
    pub grad_norm: *mut f32,
    /// device, 1 float, optional: 1 if this step was skipped, else 0
    pub found_inf: *mut f32,
    /// device, 1 float per tensor, optional: like grad\_norm
    pub tensor_norms: *mut f32,
    /// Device, 1 float, for [`MP_STEP_CHECKED`]: largest |gradient| as measured, like `amax` of
    /// [`mp_scaler_update`] and required by the same policies.  Infinity or NaN skips the step.  Read but
    /// not cleared: clear it before the epilogues of the next step update it.
    pub amax: *const f32,
    /// Device, 1 report and 1 per tensor, optional: [`mp_inspect`] of the gradients, still multiplied by
    /// S.  Also written if the step is skipped.  Every rank reports on its own gradients.
    pub report: *mut mp_tensor_report_t,
    /// Device, 1 report and 1 per tensor, optional: [`mp_inspect`] of the gradients, still multiplied by
    /// S.  Also written if the step is skipped.  Every rank reports on its own gradients.
    pub tensor_reports: *mut mp_tensor_report_t,
    /// Device, 1 integer, optional: increased by the number of weights whose 16-bit copy exceeded the
    /// largest finite value after rounding, whether clamped or infinite; clear it first.  NaN is not
    /// counted.
    pub model_overflows: *mut i64,
    /// Host, optional: the step is taken by several ranks, with the same decision on all.  If their
    /// scalers have equal initial states, S stays equal.  The call is collective ([`mp_comm_t`]), with
    /// the same flags on every rank.
    pub comm: *const mp_comm_t,
    /// Device, 1 integer, optional: outcome of this step, an [`mp_step_outcome_t`].
    pub outcome: *mut i32,
    /// Device, 1 integer, optional: increased by the number of elements that kept their old weight
    /// and moments because a new one was not finite (see [`mp_scale_step`]); clear it first.
    pub rejected_updates: *mut i64,
}

/// Initial state of a policy.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_autocast_config_t {
    pub struct_size: u32,
    pub preset: mp_autocast_preset_t,
    /// [`MP_FP16`] or [`MP_BF16`]
    pub low: mp_dtype_t,
    pub level: mp_autocast_level_t,
    /// [`mp_autocast_flags_t`], or-ed
    pub flags: u32,
    /// Limit of |x|, \>= 0; 0 = no limit.  A node that reads or writes a tensor with a larger
    /// `mp_autocast_graph`.tensor\_amax is [`MP_CAST_DENY`].  65504 / 64 leaves fp16 a headroom of six
    /// bits.
    pub amax_limit: f32,
    /// Limit of `mp_autocast_graph`.node\_depth, \>= 0; 0 = no limit.  A node that sums more terms is
    /// [`MP_CAST_DENY`].
    pub depth_limit: i64,
}

/// Graph to rewrite: flat arrays in host memory, read during the call.  Cycles are allowed.
/// Optional arrays may be NULL, as if all elements were 0.  Initialize with `MP_INIT_STRUCT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_autocast_graph_t {
    pub struct_size: u32,
    /// each at most 2^31 - 1
    pub num_nodes: u32,
    /// each at most 2^31 - 1
    pub num_tensors: u32,
    pub num_hidden_edges: u32,
    pub num_clusters: u32,
    /// must be 0
    pub reserved0: u32,
    /// names of operations; NULL elements require a node\_class
    pub node_op: *const *const c_char,
    /// optional: 1 + [`mp_autocast_class_t`]; 0 = class of node\_op
    pub node_class: *const u8,
    /// optional, for patterns and reports; elements may be NULL
    pub node_name: *const *const c_char,
    /// optional: [`mp_node_flags_t`], or-ed
    pub node_flags: *const u16,
    /// optional: terms of a sum, e.g. k of a GEMM; 0 = unknown
    pub node_depth: *const i64,
    /// Inputs of node i are \[first\_input\[i\], first\_input\[i + 1\]); num\_nodes + 1 values, the first
    /// is 0.
    pub first_input: *const i32,
    /// tensor of each input; -1 = absent optional input
    pub input_tensor: *const i32,
    /// optional: slot of each input
    pub input_slot: *const u8,
    /// node that writes the tensor; -1 = outside the graph
    pub tensor_producer: *const i32,
    /// optional: slot of the producer that writes the tensor
    pub tensor_slot: *const u8,
    /// [`mp_dtype_t`]: [`MP_FP32`] may become low precision, [`MP_FP16`] and [`MP_BF16`] stay; [`MP_DTYPE_NONE`] is any
    /// other type.
    pub tensor_dtype: *const u8,
    /// optional: [`mp_tensor_role_t`]
    pub tensor_role: *const u8,
    /// optional: largest |x|, e.g. of [`mp_inspect`]; \< 0, NaN = unknown
    pub tensor_amax: *const f32,
    /// Hidden edges, e.g. through a container or through state: precision propagates from slot 0 of
    /// hidden\_src\[i\] to slot 0 of hidden\_dst\[i\] without a tensor of this graph.
    pub hidden_src: *const i32,
    /// Hidden edges, e.g. through a container or through state: precision propagates from slot 0 of
    /// hidden\_src\[i\] to slot 0 of hidden\_dst\[i\] without a tensor of this graph.
    pub hidden_dst: *const i32,
    /// Clusters: members \[first\_member\[i\], first\_member\[i + 1\]) have equal precision in slot 0;
    /// num\_clusters + 1 values, the first is 0.
    pub first_member: *const i32,
    /// nodes of the clusters
    pub member: *const i32,
    /// Rule of each cluster, optional.  0, a container such as a list of tensors: fp32 if a member is
    /// [`MP_CAST_DENY`] or downstream of one, or has [`MP_NODE_KEEP`], \_ELSEWHERE or \_NO\_LOW; otherwise low
    /// precision if any member is, regardless of classes.  1, a loop: low precision if all members
    /// without [`MP_NODE_BACK_EDGE`] are and the others can be; otherwise fp32.
    pub cluster_kind: *const u8,
}

/// Cast of a tensor.  Has no struct\_size: 20 bytes in every version.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_autocast_cast_t {
    pub tensor: i32,
    pub from: mp_dtype_t,
    pub to: mp_dtype_t,
    pub kind: mp_cast_kind_t,
    /// inputs that read the result, plus the caller with [`MP_AUTOCAST_KEEP_IO`]
    pub readers: i32,
}

/// Result of [`mp_autocast_rewrite`].  The arrays belong to the caller; each is optional.  Initialize
/// with `MP_INIT_STRUCT`.
///
/// Input j reads its tensor t as written, in type tensor\_dtype\[t\], or the result of cast
/// input\_cast\[j\] if that is \>= 0.  A tensor has at most one cast.
///
/// [`MP_AUTOCAST_EMULATE`] requires more casts; `casts` must have room for 2 num\_tensors + the number
/// of inputs:
///
/// - All tensors stay [`MP_FP32`].
/// - Each tensor that is read, and written or read by a low-precision node, has one cast to low
/// precision.
/// - Casts back to fp32 read the result of that cast: one for each input of a low-precision node,
/// and one for all fp32 readers of a tensor written by a low-precision node.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_autocast_result_t {
    pub struct_size: u32,
    /// out
    pub num_casts: i32,
    /// out
    pub num_low_nodes: i32,
    /// out: casts of kind [`MP_CAST_BY_MODEL_COPY`]
    pub num_parameters_low: i32,
    /// num\_tensors: type that the producer writes
    pub tensor_dtype: *mut u8,
    /// Type of each node, num\_nodes: [`MP_FP32`] or low precision, for slot 0, or for the lowest eligible
    /// slot if slot 0 is not eligible.  A node without eligible slots is [`MP_FP32`], except in a
    /// low-precision container, e.g. an empty list of 16-bit tensors.
    pub node_dtype: *mut u8,
    /// one per input: index into casts; -1 = no cast
    pub input_cast: *mut i32,
    /// room for num\_tensors; ordered by tensor
    pub casts: *mut mp_autocast_cast_t,
    /// num\_nodes: [`mp_autocast_why_t`]
    pub node_why: *mut u8,
    /// num\_nodes: a node that caused the type, or -1
    pub node_because: *mut i32,
    /// out: reason for a closed gate, static storage; NULL = open
    pub gate: *const c_char,
}

/// Shape and type of a classification loss.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_xent_desc_t {
    pub struct_size: u32,
    /// type of logits and dlogits
    pub dtype: mp_dtype_t,
    /// samples, \>= 0
    pub rows: i64,
    /// \>= 1
    pub classes: i64,
    /// \>= classes
    pub ld_logits: i64,
    /// \>= classes
    pub ld_dlogits: i64,
    /// factor of loss and gradient: a task weight, or 1 / micro-batches
    pub weight: f32,
    /// in \[0, 1): part of each target, shared equally by all classes
    pub label_smoothing: f32,
    /// [`mp_xent_flags_t`], or-ed; 0 = every row counts
    pub flags: u32,
    /// any value; read only with [`MP_XENT_IGNORE_LABEL`]
    pub ignore_label: i32,
}

/// Size and types of an element-wise loss.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_loss_desc_t {
    pub struct_size: u32,
    pub kind: mp_loss_kind_t,
    /// type of prediction and dprediction
    pub dtype: mp_dtype_t,
    /// type of target
    pub dtype_target: mp_dtype_t,
    /// elements, \>= 0
    pub count: i64,
    /// factor of loss and gradient, as in [`mp_xent_desc_t`]
    pub weight: f32,
    pub reduction: mp_loss_reduction_t,
    /// [`mp_loss_flags_t`], or-ed; 0 = every element counts
    pub flags: u32,
    /// any value, NaN included; read only with [`MP_LOSS_IGNORE_TARGET`]
    pub ignore_target: f32,
}

/// Shape and type of a pooling layer:
///
/// ```text
/// x, dx    N H W C     dense, C contiguous
/// y, dy    N P Q C     P = (pad_top + H + pad_bottom - extent_h) / stride_h + 1 (rounded down)
///                      extent_h = dilation_h (window_h - 1) + 1
/// ```
///
/// Q likewise.  Every window contains at least one pixel, because padding must be smaller than the
/// extent of the window, and dilation\_h at most H if pad\_top \> 0 (dilation\_w and W likewise).
///
/// If the window is larger than the padded image, P or Q is 0: y is empty and dx is 0.  With
/// [`MP_POOL_CEIL`] this requires an excess of a stride or more.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_pool2d_desc_t {
    pub struct_size: u32,
    /// type of x, y, dy and dx; sums are fp32
    pub dtype: mp_dtype_t,
    pub mode: mp_pool_mode_t,
    /// \>= 0
    pub n: i32,
    /// \>= 1
    pub h: i32,
    /// \>= 1
    pub w: i32,
    /// \>= 1
    pub c: i32,
    /// \>= 1
    pub window_h: i32,
    /// \>= 1
    pub window_w: i32,
    pub pad_top: i32,
    pub pad_bottom: i32,
    pub pad_left: i32,
    /// \>= 0 and smaller than the window's extent
    pub pad_right: i32,
    /// \>= 1
    pub stride_h: i32,
    /// \>= 1
    pub stride_w: i32,
    /// [`mp_pool_flags_t`], or-ed
    pub flags: u32,
    /// distance between pixels of a window, \>= 0; 0 = 1
    pub dilation_h: i32,
    /// distance between pixels of a window, \>= 0; 0 = 1
    pub dilation_w: i32,
}

/// Shape and options of a batch normalization.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_batchnorm_desc_t {
    pub struct_size: u32,
    /// type of x, y, dy and dx; everything else is fp32
    pub dtype: mp_dtype_t,
    /// \>= 0; for images N H W
    pub rows: i64,
    /// \>= 0; for images C
    pub channels: i32,
    /// [`MP_ACT_NONE`] or [`MP_ACT_RELU`]
    pub activation: mp_activation_t,
    /// \>= 0; with 0 a constant channel becomes NaN
    pub epsilon: f32,
    /// weight of the batch in the running statistics, in \[0, 1\]
    pub momentum: f32,
}

/// Tensors of a batch normalization, device.  Each pass ignores the fields that it does not list.
/// Initialize with `MP_INIT_STRUCT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_batchnorm_tensors_t {
    pub struct_size: u32,
    /// must be 0
    pub reserved0: u32,
    /// rows x channels, dense
    pub x: *const c_void,
    /// channels; NULL = 1 and 0
    pub gamma: *const f32,
    /// channels; NULL = 1 and 0
    pub beta: *const f32,
    /// channels
    pub running_mean: *mut f32,
    /// channels
    pub running_var: *mut f32,
    /// channels; written in training, read by backward
    pub saved_mean: *mut f32,
    /// channels; written in training, read by backward
    pub saved_inv_std: *mut f32,
    /// rows x channels, written
    pub y: *mut c_void,
    /// rows x channels
    pub dy: *const c_void,
    /// rows x channels, written; may be dy
    pub dx: *mut c_void,
    /// channels, overwritten, optional; zeros if rows is 0
    pub dgamma: *mut f32,
    /// channels, overwritten, optional; zeros if rows is 0
    pub dbeta: *mut f32,
}

/// Shape, types and operation of [`mp_pointwise`]:
///
/// ```text
/// a, y    rows x columns, dense
/// b       rows x columns with row stride ld_b, or one broadcast row (ld_b = 0), such as a bias
/// ```
///
/// If b is dense or not read, a tensor of any shape can be passed as one row.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_pointwise_desc_t {
    pub struct_size: u32,
    pub op: mp_pointwise_op_t,
    /// Applied to z.  The D\* kinds require [`MP_POINTWISE_COPY`] and compute y = a activation'(b): a is
    /// the gradient of the activation's output, and b the activation's input.
    pub activation: mp_activation_t,
    /// type of a and y
    pub dtype: mp_dtype_t,
    /// type of b
    pub dtype_b: mp_dtype_t,
    /// must be 0
    pub reserved0: u32,
    /// \>= 0
    pub rows: i64,
    /// \>= 0
    pub columns: i64,
    /// \>= columns; 0 = the first row of b for every row
    pub ld_b: i64,
}

/// Shape and types of [`mp_column_sum`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_column_sum_desc_t {
    pub struct_size: u32,
    /// type of x
    pub dtype: mp_dtype_t,
    /// type of sum
    pub dtype_sum: mp_dtype_t,
    /// factor of the previous sum; 1 accumulates over micro-batches
    pub beta: f32,
    /// \>= 0
    pub rows: i64,
    /// \>= 0
    pub columns: i64,
    /// row stride of x in elements, \>= columns
    pub ld: i64,
}

/// Shape, types and layout of a recurrent network.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_rnn_desc_t {
    pub struct_size: u32,
    pub cell: mp_rnn_cell_t,
    /// [`mp_rnn_flags_t`], or-ed
    pub flags: u32,
    /// type of x, y, h, dx, dy, dh and weights; [`MP_FP32`] = all is fp32
    pub dtype: mp_dtype_t,
    /// type of the weight gradients
    pub dtype_dw: mp_dtype_t,
    /// 1 to 65535
    pub layers: i32,
    /// elements of x\_t, \>= 1
    pub input_size: i32,
    /// elements of h, \>= 1
    pub hidden_size: i32,
    /// sequences, \>= 0
    pub batch: i32,
    /// time steps of the longest sequence, \>= 0
    pub timesteps: i32,
    /// probability in \[0, 1) that training zeroes an element between layers;
    /// the others are divided by 1 - dropout.  Also set
    /// [`mp_rnn_tensors_t`].dropout\_offset
    pub dropout: f32,
    /// [`MP_RNN_LSTM`]: clamps c' to \[-clip, clip\]; 0 = no clipping
    pub clip: f32,
    /// any value
    pub dropout_seed: u64,
    /// strides of x and dx between time steps and between sequences, in
    /// elements; 0 = dense \[time step\]\[sequence\]\[element\]
    pub x_step: i64,
    /// strides of x and dx between time steps and between sequences, in
    /// elements; 0 = dense \[time step\]\[sequence\]\[element\]
    pub x_row: i64,
    /// strides of y and dy, likewise
    pub y_step: i64,
    /// strides of y and dy, likewise
    pub y_row: i64,
    /// host; NULL = automatic; see mpcore/experimental.h
    pub kernel: *const c_char,
}

/// Weights of one layer and direction, device, dense:
///
/// ```text
/// w_ih          G hidden_size x I              G = 1, 3 or 4 gates
/// w_hh          G hidden_size x hidden_size    I = input_size in the first layer,
/// b_ih, b_hh    G hidden_size                      directions * hidden_size in the others
/// ```
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_rnn_weights_t {
    pub w_ih: *const c_void,
    pub w_hh: *const c_void,
    pub b_ih: *const f32,
    pub b_hh: *const f32,
}

/// Gradients of [`mp_rnn_weights_t`], device, of the same shapes; each is optional.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_rnn_weight_grads_t {
    pub w_ih: *mut c_void,
    pub w_hh: *mut c_void,
    pub b_ih: *mut f32,
    pub b_hh: *mut f32,
}

/// Sizes derived from a descriptor, independent of strides and [`MP_RNN_ACCUMULATE`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_rnn_sizes_t {
    pub struct_size: u32,
    /// 1 or 2
    pub directions: u32,
    /// 1, 3 or 4
    pub gates: u32,
    /// layers \* directions
    pub num_weights: u32,
    /// Bytes that a training step keeps from the forward to the backward pass.  Per time step,
    /// sequence, hidden unit, layer and direction: 14 for LSTM, 10 for GRU and 4 for plain cells, or
    /// 24, 20 and 8 with [`MP_FP32`]; in addition less than 256.
    pub reserve_bytes: usize,
    /// sufficient for each mp\_rnn\_\* call
    pub workspace_bytes: usize,
}

/// Tensors of the mp\_rnn\_\* calls, device except where noted.  Each call ignores the fields that it
/// does not list.  Initialize with `MP_INIT_STRUCT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_rnn_tensors_t {
    pub struct_size: u32,
    /// length of `weights` and `weight_grads`: layers \* directions
    pub num_weights: u32,
    /// host, read before the call returns; index layer \* directions + direction
    pub weights: *const mp_rnn_weights_t,
    /// Length of each sequence, batch values in \[0, timesteps\] in any order; NULL = timesteps.
    /// Elements of x and dy past the end of a sequence are not read; there y and dx are 0.  hn and cn
    /// are the states of its last time step, or h0 and c0 if its length is 0.  A length outside the
    /// range makes its sequence NaN.  Mutually exclusive with batch\_sizes.
    pub lengths: *const i32,
    /// Number of sequences that have each time step, host, timesteps values, non-increasing; the
    /// longest sequence is first.  NULL = not packed.  x, y, dx and dy are then packed: the rows of a
    /// time step, x\_row or y\_row elements apart, directly follow those of the previous time step;
    /// x\_step and y\_step are ignored.
    pub batch_sizes: *const i32,
    /// Selects the dropout masks: 1 value, optional; NULL = 0.  Use a counter in device memory that
    /// changes in every training step, such as [`mp_optimizer_step_counter`]; otherwise all steps have
    /// equal masks.  A replayed CUDA graph reads its current value.  It must be the same in the
    /// passes of one step.
    pub dropout_offset: *const u64,
    /// timesteps x batch x input\_size
    pub x: *const c_void,
    /// layers x directions x batch x hidden\_size, optional; NULL = 0
    pub h0: *const c_void,
    /// shape of h0, [`MP_RNN_LSTM`], optional; NULL = 0
    pub c0: *const f32,
    /// timesteps x batch x (directions \* hidden\_size), written
    pub y: *mut c_void,
    /// h after the last time step, shape of h0, written, optional; may be h0 in
    /// inference
    pub hn: *mut c_void,
    /// c after the last time step, likewise; may be c0 in inference
    pub cn: *mut f32,
    /// data kept from forward to backward, 256-byte aligned
    pub reserve: *mut c_void,
    pub reserve_bytes: usize,
    /// shape of y
    pub dy: *const c_void,
    /// shape of h0, optional; NULL = 0
    pub dhn: *const c_void,
    /// shape of c0, optional; NULL = 0
    pub dcn: *const f32,
    /// shape of x, written, optional
    pub dx: *mut c_void,
    /// shape of h0, written, optional
    pub dh0: *mut c_void,
    /// shape of c0, written, optional
    pub dc0: *mut f32,
    /// host, read before the call returns; indexed like `weights`
    pub weight_grads: *const mp_rnn_weight_grads_t,
    /// 1 float, optional: set to 1 and never cleared, see [`mp_epilogue_t`]
    pub found_inf: *mut f32,
    /// 1 float, optional, updated: largest |gradient| of weights and biases
    pub amax: *mut f32,
}

/// Shape, types and layout of an embedding lookup.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_embedding_desc_t {
    pub struct_size: u32,
    /// type of table, out and dout
    pub dtype: mp_dtype_t,
    /// type of the gradient
    pub dtype_dtable: mp_dtype_t,
    /// [`mp_embedding_flags_t`], or-ed
    pub flags: u32,
    /// indices, and rows of out and dout; 0 to 2^31 - 1
    pub rows: i64,
    /// rows of table and dtable, \>= 1
    pub vocabulary: i32,
    /// in \[0, vocabulary); read only with [`MP_EMBEDDING_PADDING`]
    pub padding_index: i32,
    /// elements of a row, \>= 1
    pub width: i64,
    /// \>= width
    pub ld_table: i64,
    /// row stride of out and dout, \>= width
    pub ld_out: i64,
    /// \>= width
    pub ld_dtable: i64,
}

/// Size, type and options of a dropout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_dropout_desc_t {
    pub struct_size: u32,
    /// type of x and y
    pub dtype: mp_dtype_t,
    /// elements, \>= 0
    pub count: i64,
    /// any value; tensors with equal seed and offset have equal masks
    pub seed: u64,
    /// probability in \[0, 1) that an element becomes 0
    pub p: f32,
    /// must be 0
    pub reserved0: u32,
}

/// Attribute of an operation.  Has no struct\_size: 16 bytes in every version.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_graph_attribute_t {
    pub name: *const c_char,
    pub value: f64,
}

/// Shape, types and addresses of a tensor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_graph_tensor_t {
    pub struct_size: u32,
    /// type in memory
    pub dtype: mp_dtype_t,
    pub rank: i32,
    /// type of its cast or 16-bit copy; [`MP_DTYPE_NONE`] = none
    pub dtype_copy: mp_dtype_t,
    /// for the current batch
    pub extent: [i64; 8],
    /// if read after [`mp_graph_compile`], valid as long as the graph
    pub name: *const c_char,
    /// device; NULL if other tensors share its memory or it is not computed
    pub data: *mut c_void,
    /// device, of type dtype\_copy; NULL likewise
    pub copy: *mut c_void,
    /// device: gradient of a parameter or of [`mp_graph_keep_gradient`]; else NULL
    pub grad: *mut c_void,
    /// type of grad
    pub dtype_grad: mp_dtype_t,
    /// out: 0
    pub reserved0: u32,
}

/// Device memory of a compiled graph, in bytes.  The sum of all fields without activations\_alone is
/// the allocated memory, except for tables of the lists.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_graph_memory_t {
    pub struct_size: u32,
    /// out: 0
    pub reserved0: u32,
    /// fp32
    pub parameters: i64,
    /// 16-bit copies of parameters
    pub copies: i64,
    /// gradients of parameters and of [`mp_graph_keep_gradient`]
    pub gradients: i64,
    /// states and constants
    pub states: i64,
    /// activations and their gradients, which reuse memory
    pub activations: i64,
    /// activations if no memory were reused; not part of the sum
    pub activations_alone: i64,
    pub workspace: i64,
}

/// Checkpoint of torch.amp.GradScaler, from state\_dict().  Fields are named like its keys, except
/// "\_growth\_tracker".
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_torch_scaler_t {
    pub scale: f64,
    pub growth_factor: f64,
    pub backoff_factor: f64,
    pub growth_interval: i32,
    pub growth_tracker: i32,
}

/// Checkpoint of Megatron-LM's DynamicGradScaler, from state\_dict().  Fields are named like its
/// keys.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_megatron_scaler_t {
    pub scale: f32,
    pub growth_tracker: i32,
    /// negative after more overflows than hysteresis
    pub hysteresis_tracker: i32,
}

/// Kernel, and its suitability for a problem.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mp_kernel_info_t {
    pub struct_size: u32,
    /// 1: predicted\_us uses constants that were not measured on this
    /// architecture; 0: mptune measured them
    pub is_estimated: u32,
    /// static storage, e.g. "wmma\_128x128x32\_s3"
    pub name: *const c_char,
    /// reason why the kernel does not support the problem, a clause in static
    /// storage; NULL if it does
    pub why_not: *const c_char,
    /// 0 if unsupported, and for recurrent layers, which use fixed rules
    pub predicted_us: f64,
    /// minimum workspace; 0 if unsupported
    pub workspace_bytes: usize,
}

macro_rules! zeroed {
    ($about:literal, $finish:expr, $($name:ident)*) => { $(
        impl $name {
            #[doc = $about]
            pub fn zeroed() -> Self {
                // SAFETY: integers, floats, nullable pointers: zeros are a value of each.
                $finish(unsafe { core::mem::zeroed::<Self>() })
            }
        }
    )* };
}

zeroed! {
    "Zeros, and `struct_size`: MP_INIT_STRUCT.",
    |s| Self { struct_size: core::mem::size_of::<Self>() as u32, ..s },
    mp_allocator_t
    mp_context_config_t
    mp_device_info_t
    mp_epilogue_t
    mp_gemm_desc_t
    mp_gemm_group_item_t
    mp_conv2d_desc_t
    mp_tensor_list_desc_t
    mp_stats_outputs_t
    mp_scaler_config_t
    mp_scaler_state_t
    mp_hyper_t
    mp_optimizer_desc_t
    mp_model_options_t
    mp_comm_t
    mp_step_options_t
    mp_autocast_config_t
    mp_autocast_graph_t
    mp_autocast_result_t
    mp_xent_desc_t
    mp_loss_desc_t
    mp_pool2d_desc_t
    mp_batchnorm_desc_t
    mp_batchnorm_tensors_t
    mp_pointwise_desc_t
    mp_column_sum_desc_t
    mp_rnn_desc_t
    mp_rnn_sizes_t
    mp_rnn_tensors_t
    mp_embedding_desc_t
    mp_dropout_desc_t
    mp_graph_tensor_t
    mp_graph_memory_t
    mp_kernel_info_t
}
zeroed! {
    "Zeros.",
    |s| s,
    mp_tensor_report_t
    mp_autocast_cast_t
    mp_rnn_weights_t
    mp_rnn_weight_grads_t
    mp_graph_attribute_t
    mp_torch_scaler_t
    mp_megatron_scaler_t
}

/// Initializes \*config: [`MP_DEVICE_AUTO`], all SMs, cudaMalloc.
pub fn mp_context_config_default() -> mp_context_config_t {
    let mut value = mp_context_config_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_context_config_init(&mut value, size) };
    value
}

/// Initializes an identity epilogue: no activation, bias or statistics.
pub fn mp_epilogue_default() -> mp_epilogue_t {
    let mut value = mp_epilogue_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_epilogue_init(&mut value, size) };
    value
}

/// Initializes a dense, untransposed, unbatched product: alpha = 1, beta = 0, lda = k,
/// ldb = ldc = ldd = n.
pub fn mp_gemm_desc_default(m: i64, n: i64, k: i64, dtype_ab: mp_dtype_t, dtype_cd: mp_dtype_t) -> mp_gemm_desc_t {
    let mut value = mp_gemm_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_gemm_desc_init(&mut value, size, m, n, k, dtype_ab, dtype_cd) };
    value
}

/// Initializes a dense, untransposed item without data: lda = k, ldb = ldc = ldd = n.
pub fn mp_gemm_group_item_default(m: i64, n: i64, k: i64) -> mp_gemm_group_item_t {
    let mut value = mp_gemm_group_item_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_gemm_group_item_init(&mut value, size, m, n, k) };
    value
}

/// Initializes a convolution with unit stride and dilation, no padding and one group; alpha = 1,
/// beta = 0, dtype\_out = dtype.
pub fn mp_conv2d_desc_default(n: i32, h: i32, w: i32, c: i32, k: i32, r: i32, s: i32, dtype: mp_dtype_t) -> mp_conv2d_desc_t {
    let mut value = mp_conv2d_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_conv2d_desc_init(&mut value, size, n, h, w, c, k, r, s, dtype) };
    value
}

/// Initializes the defaults of a policy:
///
/// ```text
/// init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
/// growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
/// beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
/// overflow_std_dev 3.0902      sigma_floor 0.5
/// ```
///
/// 65536 is the initial scale of torch.amp.GradScaler.  24 overflows reduce S from 2^24 to 1.
pub fn mp_scaler_config_default(policy: mp_scaler_policy_t) -> mp_scaler_config_t {
    let mut value = mp_scaler_config_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_scaler_config_init(&mut value, size, policy) };
    value
}

/// Initializes the state of a new scaler.
pub fn mp_scaler_state_default(config: &mp_scaler_config_t) -> mp_scaler_state_t {
    let mut value = mp_scaler_state_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_scaler_state_init(&mut value, size, config) };
    value
}

/// Initializes the defaults of the cited papers.  weight\_decay is 0, except for methods that are
/// defined by it.  lr has no default.  trust is that of LARS; Apex's LARC has 0.02.
///
/// ```text
///           beta1   beta2   eps     others
/// SGD       0.9     0       0       trust 0.001
/// Adam      0.9     0.999   1e-8
/// LAMB      0.9     0.999   1e-6    weight_decay 0.01
/// NovoGrad  0.95    0.98    1e-8
/// Adagrad   0       0       1e-10
/// RMSProp   0       0.9     1e-8
/// ```
///
/// decay\_power is 1; all other fields are 0.
pub fn mp_hyper_default(kind: mp_optimizer_kind_t, lr: f32) -> mp_hyper_t {
    let mut value = mp_hyper_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_hyper_init(&mut value, size, kind, lr) };
    value
}

/// Initializes a descriptor with one group and no tensors.  flags is [`MP_OPT_DECOUPLED_DECAY`] for
/// [`MP_OPT_LAMB`] and 0 for all other kinds.
pub fn mp_optimizer_desc_default(kind: mp_optimizer_kind_t) -> mp_optimizer_desc_t {
    let mut value = mp_optimizer_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_optimizer_desc_init(&mut value, size, kind) };
    value
}

/// Initializes rounding to nearest with clamping on overflow.
pub fn mp_model_options_default() -> mp_model_options_t {
    let mut value = mp_model_options_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_model_options_init(&mut value, size) };
    value
}

/// Initializes a communicator of a single rank, which does not communicate.
pub fn mp_comm_default() -> mp_comm_t {
    let mut value = mp_comm_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_comm_init(&mut value, size) };
    value
}

/// Initializes options without clipping or reports, for one rank.
pub fn mp_step_options_default() -> mp_step_options_t {
    let mut value = mp_step_options_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_step_options_init(&mut value, size) };
    value
}

/// Initializes a configuration: preset [`MP_AUTOCAST_DEFAULT`], level [`MP_AUTOCAST_NORMAL`], no flags, no
/// limits.
pub fn mp_autocast_config_default(low: mp_dtype_t) -> mp_autocast_config_t {
    let mut value = mp_autocast_config_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_autocast_config_init(&mut value, size, low) };
    value
}

/// Initializes the loss scaler for `low`.  [`MP_FP16`]: [`MP_SCALER_PRESET_KERAS`], which TensorFlow calls
/// "dynamic".  [`MP_BF16`] and [`MP_FP32`]: S = 1.
///
/// * [`MP_ERROR_INVALID_ARGUMENT`]: low is any other value
pub fn mp_autocast_scaler_default(low: mp_dtype_t) -> mp_scaler_config_t {
    let mut value = mp_scaler_config_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_autocast_scaler_init(&mut value, size, low) };
    value
}

/// Initializes a loss of dense rows: weight = 1, no smoothing, label -100 ignored.
///
/// -100 is the ignore\_index of torch.  Other labels outside \[0, classes), such as -1 or `classes`,
/// are still detected.
pub fn mp_xent_desc_default(rows: i64, classes: i64, dtype: mp_dtype_t) -> mp_xent_desc_t {
    let mut value = mp_xent_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_xent_desc_init(&mut value, size, rows, classes, dtype) };
    value
}

/// Initializes a mean over all elements: weight = 1, dtype\_target = dtype.
pub fn mp_loss_desc_default(kind: mp_loss_kind_t, count: i64, dtype: mp_dtype_t) -> mp_loss_desc_t {
    let mut value = mp_loss_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_loss_desc_init(&mut value, size, kind, count, dtype) };
    value
}

/// Initializes adjacent windows: stride = window, no padding, no dilation.
pub fn mp_pool2d_desc_default(mode: mp_pool_mode_t, n: i32, h: i32, w: i32, c: i32, window_h: i32, window_w: i32, dtype: mp_dtype_t) -> mp_pool2d_desc_t {
    let mut value = mp_pool2d_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_pool2d_desc_init(&mut value, size, mode, n, h, w, c, window_h, window_w, dtype) };
    value
}

/// Initializes a batch normalization: epsilon = 1e-5, momentum = 0.1, no activation.
pub fn mp_batchnorm_desc_default(rows: i64, channels: i32, dtype: mp_dtype_t) -> mp_batchnorm_desc_t {
    let mut value = mp_batchnorm_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_batchnorm_desc_init(&mut value, size, rows, channels, dtype) };
    value
}

/// Initializes a pass over dense tensors: dtype\_b = dtype, no activation.
pub fn mp_pointwise_desc_default(op: mp_pointwise_op_t, rows: i64, columns: i64, dtype: mp_dtype_t) -> mp_pointwise_desc_t {
    let mut value = mp_pointwise_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_pointwise_desc_init(&mut value, size, op, rows, columns, dtype) };
    value
}

/// Initializes a sum over dense rows: dtype\_sum = [`MP_FP32`], beta = 0.
pub fn mp_column_sum_desc_default(rows: i64, columns: i64, dtype: mp_dtype_t) -> mp_column_sum_desc_t {
    let mut value = mp_column_sum_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_column_sum_desc_init(&mut value, size, rows, columns, dtype) };
    value
}

/// Initializes one unidirectional layer with biases: dense tensors, dtype\_dw = dtype, no dropout,
/// clipping or flags.
///
/// For batch-major tensors, \[sequence\]\[time step\]\[element\], set x\_step = input\_size and
/// x\_row = timesteps \* input\_size, and y\_step and y\_row accordingly.
pub fn mp_rnn_desc_default(cell: mp_rnn_cell_t, batch: i32, timesteps: i32, input_size: i32, hidden_size: i32, dtype: mp_dtype_t) -> mp_rnn_desc_t {
    let mut value = mp_rnn_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_rnn_desc_init(&mut value, size, cell, batch, timesteps, input_size, hidden_size, dtype) };
    value
}

/// Initializes a lookup with dense rows: dtype\_dtable = dtype, no flags.
pub fn mp_embedding_desc_default(rows: i64, vocabulary: i32, width: i64, dtype: mp_dtype_t) -> mp_embedding_desc_t {
    let mut value = mp_embedding_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_embedding_desc_init(&mut value, size, rows, vocabulary, width, dtype) };
    value
}

/// Initializes a dropout of `count` elements with seed 0.
pub fn mp_dropout_desc_default(count: i64, p: f32, dtype: mp_dtype_t) -> mp_dropout_desc_t {
    let mut value = mp_dropout_desc_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_dropout_desc_init(&mut value, size, count, p, dtype) };
    value
}

/// Initializes the configuration of a preset.  In presets of other systems, unlisted fields have
/// the defaults of [`MP_SCALER_BACKOFF`], except that max\_scale and diverged\_after are 0.
///
/// * [`MP_ERROR_INVALID_ARGUMENT`]: unknown preset
pub fn mp_scaler_config_preset(preset: mp_scaler_preset_t) -> mp_scaler_config_t {
    let mut value = mp_scaler_config_t::zeroed();
    let size = core::mem::size_of_val(&value);
    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.
    unsafe { mp_scaler_config_init_preset(&mut value, size, preset) };
    value
}

extern "C" {
    /// Returns [`MP_VERSION`] of the loaded library, which may differ from that of this header.
    pub fn mp_version() -> u32;

    /// Returns one line for bug reports: version, git hash, CUDA version, compiled targets and
    /// architectures.  Static storage.  The format is not stable; do not parse it.
    pub fn mp_build_info() -> *const c_char;

    /// Returns the name of a status, e.g. "[`MP_ERROR_UNSUPPORTED`]".  Static storage; accepts any int.
    pub fn mp_status_string(status: mp_status_t) -> *const c_char;

    /// Returns the message of the last failed call on this thread.  It names the offending argument
    /// and its value: "[`mp_gemm`]: lda = 60 is smaller than k = 64".  Meaningful directly after a call
    /// that returned an error; valid until the next mpcore call on this thread.  Never NULL.
    pub fn mp_last_error() -> *const c_char;

    /// Sends messages of severity `level` or higher to `callback`, for the whole process.  The callback
    /// may run on several threads concurrently and must not call mpcore.  If it throws a C++ exception,
    /// its line goes to stderr.
    ///
    /// NULL restores the default: [`MP_LOG_WARN`] and more severe to stderr, without the errors that a call
    /// returns ([`mp_last_error`] has those).  The environment variable `MP_LOG`=error|warn|info|debug
    /// changes the level of the default and adds returned errors.
    pub fn mp_set_log_callback(callback: mp_log_callback_t, user: *mut c_void, level: mp_log_level_t);

    /// Returns the bytes per element, or 0 for an invalid value.
    pub fn mp_dtype_size(dtype: mp_dtype_t) -> usize;

    /// Returns "fp16", "bf16" or "fp32"; "none" for [`MP_DTYPE_NONE`] and "?" for an invalid value.
    /// Static storage.
    pub fn mp_dtype_name(dtype: mp_dtype_t) -> *const c_char;

    /// Initializes \*config: [`MP_DEVICE_AUTO`], all SMs, cudaMalloc.
    pub fn mp_context_config_init(config: *mut mp_context_config_t, struct_size: usize) -> mp_status_t;

    /// Creates a context.  A context is immutable, so threads can share it.
    ///
    /// * `config`: host, optional; NULL = defaults.
    /// * [`MP_ERROR_ARCH_MISMATCH`]: the build has no code for the device
    pub fn mp_context_create(context: *mut mp_context_t, config: *const mp_context_config_t) -> mp_status_t;

    /// Destroys a context.  All objects created from it must be destroyed first.  Destroying the last
    /// host context ends the worker threads and frees their memory; a later context creates them
    /// again.
    pub fn mp_context_destroy(context: mp_context_t);

    /// Returns the properties of a context's device.
    ///
    /// * `info`: host, out; initialize it with `MP_INIT_STRUCT`.
    pub fn mp_context_get_info(context: mp_context_t, info: *mut mp_device_info_t) -> mp_status_t;

    /// Allocates `bytes` of uninitialized device memory, 256-byte aligned.  0 bytes give NULL.
    pub fn mp_malloc(context: mp_context_t, ptr: *mut *mut c_void, bytes: usize) -> mp_status_t;

    /// Waits until the device is idle, then frees memory from [`mp_malloc`].  NULL does nothing.
    pub fn mp_free(context: mp_context_t, ptr: *mut c_void);

    /// Copies between any combination of host and device memory; the two ranges must not overlap.
    /// Pageable host memory makes the copy synchronous, as with cudaMemcpyAsync.
    pub fn mp_memcpy(context: mp_context_t, dst: *mut c_void, src: *const c_void, bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Sets `bytes` bytes of device memory to `byte`.
    pub fn mp_memset(context: mp_context_t, dst: *mut c_void, byte: c_int, bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Waits until all work enqueued on `stream` has finished.
    pub fn mp_stream_sync(context: mp_context_t, stream: mp_stream_t) -> mp_status_t;

    /// Converts elements: dst\[i\] = (dst\_dtype)src\[i\].  dst may be src if both types have equal size;
    /// any other overlap is an error.
    pub fn mp_cast(context: mp_context_t, src: *const c_void, src_dtype: mp_dtype_t, dst: *mut c_void, dst_dtype: mp_dtype_t, count: i64, stream: mp_stream_t) -> mp_status_t;

    /// Initializes an identity epilogue: no activation, bias or statistics.
    pub fn mp_epilogue_init(epilogue: *mut mp_epilogue_t, struct_size: usize) -> mp_status_t;

    /// Initializes a dense, untransposed, unbatched product: alpha = 1, beta = 0, lda = k,
    /// ldb = ldc = ldd = n.
    pub fn mp_gemm_desc_init(desc: *mut mp_gemm_desc_t, struct_size: usize, m: i64, n: i64, k: i64, dtype_ab: mp_dtype_t, dtype_cd: mp_dtype_t) -> mp_status_t;

    /// Returns the workspace size for the fastest kernel and the fastest dbias sum of [`mp_gemm`] (or
    /// [`mp_gemm_batched`]); often 0.  If desc-\>kernel is set, returns the minimum of that kernel instead.
    ///
    /// A descriptor does not include the epilogue, so at most 32 MiB are reserved for dbias.  On Hopper
    /// a 16-bit D of more than 256 MiB benefits from an eighth of its own size in addition.
    ///
    /// desc-\>stride\_\* select the function: [`mp_gemm`] if any stride is not 0, [`mp_gemm_batched`] if all are 0
    /// and batch\_count \> 1.  For batch\_count = 1 without strides the result suffices for both; on
    /// Hopper [`mp_gemm_batched`] may need workspace where [`mp_gemm`] needs none.
    ///
    /// * `bytes`: host, out.
    pub fn mp_gemm_workspace_size(context: mp_context_t, desc: *const mp_gemm_desc_t, bytes: *mut usize) -> mp_status_t;

    /// Computes a matrix product with fp32 accumulation: D = epilogue(alpha op(A) op(B) + beta C).
    ///
    /// * `A`: device; m x k with row stride lda ([`MP_OP_N`]), or k x m ([`MP_OP_T`]).  A and B are not read
    ///   if alpha == 0 (may be NULL, may hold NaN); desc-\>kernel is then checked but not used.
    /// * `B`: device; k x n with row stride ldb ([`MP_OP_N`]), or n x k ([`MP_OP_T`]).
    /// * `C`: device; m x n.  Not read if beta == 0 (may be NULL, may hold NaN).
    /// * `D`: device; m x n.  May be the same matrix as C (equal ld and stride).  Any other overlap
    ///   with an argument is an error.  If both row strides are equal in bytes, elements are
    ///   compared, so D may use the columns between A's rows; otherwise address ranges are
    ///   compared.
    /// * `epilogue`: host, optional.
    /// * `workspace`: device, 256-byte aligned, optional.  With fewer bytes than
    ///   [`mp_gemm_workspace_size`] the fastest kernel that fits is used: possibly
    ///   slower, never an error.
    ///
    /// Edge cases follow BLAS: m, n or batch\_count == 0 writes nothing except dbias; k == 0 or
    /// alpha == 0 computes epilogue(beta C), without workspace.
    ///
    /// Alignment: only that of the elements is required.  16-byte aligned pointers and ld % 8 == 0 take
    /// the tensor-core path with asynchronous copies; anything else is slower.  An A or B with another
    /// ld or stride is first copied into workspace with aligned rows if that is predicted to be faster.
    /// If aligned operands are predicted to be faster by a fifth or more, both times are logged once at
    /// [`MP_LOG_WARN`].
    ///
    /// Accuracy: products of fp16/bf16 are exact in fp32.  They are summed in fp32 as tensor cores sum,
    /// in an order that depends only on (desc, alignment, workspace\_bytes, device, `MP_GEMM_TUNING`), and
    /// rounded once.
    /// Source: Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.3.
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a dimension \< 0, an ld smaller than the row length, or an
    ///   output that overlaps another argument
    /// * [`MP_ERROR_UNSUPPORTED`]: D has 2^31 or more tiles of 16 x 16 over all batch items
    pub fn mp_gemm(context: mp_context_t, desc: *const mp_gemm_desc_t, A: *const c_void, B: *const c_void, C: *const c_void, D: *mut c_void, epilogue: *const mp_epilogue_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Computes a batched product like [`mp_gemm`], with one pointer per batch item instead of a stride.
    ///
    /// * `desc`: desc-\>stride\_\* must be 0.
    /// * `A`, `B`, `C`, `D`: device arrays of desc-\>batch\_count device pointers, read when the kernel runs:
    ///   keep them alive until then.  C is optional if beta == 0.  As in [`mp_gemm`],
    ///   matrices need only the alignment of their elements; an item that is not
    ///   16-byte aligned is detected on the device, costs time and is not logged.
    /// * `epilogue`: host, optional; aux, dbias and amax are not supported.
    ///
    /// The host does not read the pointers, so overlaps are not detected: an item of D that overlaps
    /// any matrix except its own item of C gives wrong results.
    pub fn mp_gemm_batched(context: mp_context_t, desc: *const mp_gemm_desc_t, A: *const *const c_void, B: *const *const c_void, C: *const *const c_void, D: *const *mut c_void, epilogue: *const mp_epilogue_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Initializes a dense, untransposed item without data: lda = k, ldb = ldc = ldd = n.
    pub fn mp_gemm_group_item_init(item: *mut mp_gemm_group_item_t, struct_size: usize, m: i64, n: i64, k: i64) -> mp_status_t;

    /// Returns the workspace size for the fastest [`mp_gemm_grouped`].  It depends on the shapes and
    /// leading dimensions of the items, not on their pointers.
    ///
    /// * `bytes`: host, out.
    pub fn mp_gemm_grouped_workspace_size(context: mp_context_t, desc: *const mp_gemm_desc_t, count: i32, items: *const mp_gemm_group_item_t, bytes: *mut usize) -> mp_status_t;

    /// Computes `count` products of different shapes, such as the experts of a layer or the weight
    /// gradients of a network.  Each is a product as in [`mp_gemm`]:
    ///
    /// ```text
    /// D = epilogue(alpha op(A) op(B) + beta C)
    /// ```
    ///
    /// The products share one launch if a kernel supports the whole group.  Otherwise each takes a
    /// launch: possibly slower, never an error, and logged once at [`MP_LOG_WARN`] if the caller can change
    /// the cause.
    ///
    /// The products may run concurrently, so no D may overlap any matrix of another product; A, B and C
    /// may be shared.  A D that overlaps a matrix of its own product, or the previous D in memory, is
    /// an error; other overlaps are not detected.
    ///
    /// * `desc`: op, dtype, alpha and beta of all products.  m, n, k, ld\* and stride\_\* must be 0
    ///   and batch\_count 1: [`mp_gemm_desc_default`](0, 0, 0, ab, cd).
    /// * `items`: host, count elements, copied; may be NULL if count is 0.  The call can be captured
    ///   into a CUDA graph, which then keeps these shapes and pointers.
    ///   Edge cases as in [`mp_gemm`]: m or n == 0 does nothing, k == 0 computes
    ///   epilogue(beta C).
    /// * `epilogue`: host, optional: scale and found\_inf, shared by all products.  All other fields
    ///   must be 0.
    /// * `workspace`: device, 256-byte aligned, optional; see [`mp_gemm_grouped_workspace_size`].
    ///
    /// If an item is invalid, nothing is enqueued, and the message names the item:
    /// "[`mp_gemm_grouped`]: items\[3\].lda = 60 is smaller than k = 64".
    pub fn mp_gemm_grouped(context: mp_context_t, desc: *const mp_gemm_desc_t, count: i32, items: *const mp_gemm_group_item_t, epilogue: *const mp_epilogue_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Returns the workspace size for the fastest [`mp_gemm_ragged`], for any ends.
    ///
    /// * `bytes`: host, out.
    pub fn mp_gemm_ragged_workspace_size(context: mp_context_t, desc: *const mp_gemm_desc_t, ragged: mp_ragged_t, bytes: *mut usize) -> mp_status_t;

    /// Computes products of groups whose sizes are known only on the device, such as the tokens routed
    /// to each expert of a layer.  The dimension `ragged` is divided among desc-\>batch\_count groups:
    /// group i has the elements \[ends\[i - 1\], ends\[i\]), and the first group begins at 0:
    ///
    /// ```text
    /// MP_RAGGED_M:  D[rows of i] = epilogue(alpha op(A)[rows of i] op(B_i) + beta C[rows of i])
    /// MP_RAGGED_K:  D_i = epilogue(alpha op(A)[:, k of i] op(B)[k of i, :] + beta C_i)
    /// ```
    ///
    /// The host neither reads `ends` nor waits for them, and the launches do not depend on them.  The
    /// call can be captured into a CUDA graph; each replay uses the ends of that moment.
    ///
    /// * `desc`: all groups together: m ([`MP_RAGGED_M`]) or k ([`MP_RAGGED_K`]) is the upper bound of
    ///   `ends`.  [`MP_RAGGED_M`]: op(A) is m x k, C and D are m x n, and B\_i = B + i stride\_b;
    ///   stride\_b = 0 is one B for all groups, the other strides must be 0.  [`MP_RAGGED_K`]:
    ///   op(A) is m x k, op(B) is k x n, C\_i = C + i stride\_c and D\_i = D + i stride\_d;
    ///   stride\_a and stride\_b must be 0.
    /// * `ends`: device, desc-\>batch\_count values in ascending order, read when the kernels run.
    ///   Two equal values make an empty group.  Invalid values are clamped to the previous
    ///   end and to m or k, so they never cause accesses outside the matrices.
    /// * `A`, `B`, `C`, `D`: as in [`mp_gemm`].  [`MP_RAGGED_M`]: rows from the last end on are neither read nor
    ///   written.  [`MP_RAGGED_K`]: elements of k from the last end on are not read; an empty
    ///   group computes epilogue(beta C\_i), which is zero if beta = 0.
    /// * `epilogue`: host, optional: scale, amax and found\_inf, shared by all groups.  All other
    ///   fields must be 0.
    /// * `workspace`: device, 256-byte aligned, optional; see [`mp_gemm_ragged_workspace_size`].
    ///
    /// Edge cases, alignment and accuracy as in [`mp_gemm`]; the order of a sum also depends on the start
    /// of its group in k.  Hopper's wgmma kernels require groups that are consecutive rows in memory:
    /// op\_a = [`MP_OP_N`] with [`MP_RAGGED_M`]; op\_a = [`MP_OP_T`] and op\_b = [`MP_OP_N`] with [`MP_RAGGED_K`].  Other
    /// layouts run on WMMA kernels.
    /// Source: jax.lax.ragged\_dot; torch.\_grouped\_mm, whose offs are the ends.
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a stride that must be 0 is not, or the D\_i overlap
    pub fn mp_gemm_ragged(context: mp_context_t, desc: *const mp_gemm_desc_t, ragged: mp_ragged_t, ends: *const i32, A: *const c_void, B: *const c_void, C: *const c_void, D: *mut c_void, epilogue: *const mp_epilogue_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Initializes a convolution with unit stride and dilation, no padding and one group; alpha = 1,
    /// beta = 0, dtype\_out = dtype.
    pub fn mp_conv2d_desc_init(desc: *mut mp_conv2d_desc_t, struct_size: usize, n: i32, h: i32, w: i32, c: i32, k: i32, r: i32, s: i32, dtype: mp_dtype_t) -> mp_status_t;

    /// Returns the output height P and width Q; 0 if the filter is larger than the padded image.
    ///
    /// * `p`, `q`: host, out.
    pub fn mp_conv2d_output_size(desc: *const mp_conv2d_desc_t, p: *mut i32, q: *mut i32) -> mp_status_t;

    /// Returns the workspace size for the fastest kernel and the fastest dbias sum of the pass `op`,
    /// like [`mp_gemm_workspace_size`]; often 0.  If desc-\>kernel is set, returns the minimum of that
    /// kernel instead.
    ///
    /// * `bytes`: host, out.
    pub fn mp_conv2d_workspace_size(context: mp_context_t, desc: *const mp_conv2d_desc_t, op: mp_conv_op_t, bytes: *mut usize) -> mp_status_t;

    /// Computes the forward pass: y = epilogue(alpha conv(x, filter) + beta y).
    ///
    /// * `x`, `filter`: device.
    /// * `y`: device; read only if beta != 0.  Must not overlap another argument.
    /// * `epilogue`: host, optional.  y is a matrix of N P Q rows and K columns, so bias has K
    ///   elements and ld\_aux = 0 means K.
    /// * `workspace`: device, 256-byte aligned, optional.  With fewer bytes than
    ///   [`mp_conv2d_workspace_size`]: possibly slower, never an error.
    ///
    /// Algorithm: implicit GEMM; the im2col matrix is never stored.  A 1 x 1 filter with stride 1 and
    /// no padding runs on the kernels of [`mp_gemm`].  Accuracy as in [`mp_gemm`].
    ///
    /// Alignment: only that of the elements is required.  16-byte aligned tensors with C/groups and
    /// K/groups multiples of 8 are fastest.  In fprop and wgrad, images of one group with another
    /// number of channels (RGB) are first copied into workspace with zero-padded channels, if there is
    /// room and that is predicted to be faster.
    ///
    /// Implicit zeros, such as padding and the gaps between strided outputs in dgrad, may or may not be
    /// multiplied.  With a non-finite weight (in wgrad: dy) the result may then be NaN.
    ///
    /// Limits: one padded image of x, one image of y and the filter must each have less than 2^30
    /// elements.  x and y must each have less than 2^30 pixels (N H W and N P Q).
    /// Source: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014, section 3.
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a number outside its range, groups that do not divide c and k
    /// * [`MP_ERROR_UNSUPPORTED`]: a limit is exceeded
    pub fn mp_conv2d_fprop(context: mp_context_t, desc: *const mp_conv2d_desc_t, x: *const c_void, filter: *const c_void, y: *mut c_void, epilogue: *const mp_epilogue_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Computes the input gradient: dx = epilogue(alpha conv\_transpose(dy, filter) + beta dx).
    ///
    /// In the epilogue, dx is a matrix of N H W rows and C columns: [`MP_ACT_DRELU`] with the aux of the
    /// layer below computes that layer's dy, and dbias its bias gradient.  Everything else is as in
    /// [`mp_conv2d_fprop`].
    pub fn mp_conv2d_dgrad(context: mp_context_t, desc: *const mp_conv2d_desc_t, dy: *const c_void, filter: *const c_void, dx: *mut c_void, epilogue: *const mp_epilogue_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Computes the weight gradient: dfilter = alpha conv(x, dy) + beta dfilter, summed over n, p, q.
    ///
    /// beta = 1 accumulates over micro-batches.  Use dtype\_out = [`MP_FP32`] for that; otherwise small
    /// terms are lost to rounding.  The sum is split over blocks in a fixed order, without atomics.
    ///
    /// * `epilogue`: host, optional: scale, amax and found\_inf.  All other fields must be 0.
    ///
    /// Everything else is as in [`mp_conv2d_fprop`].
    pub fn mp_conv2d_wgrad(context: mp_context_t, desc: *const mp_conv2d_desc_t, x: *const c_void, dy: *const c_void, dfilter: *mut c_void, epilogue: *const mp_epilogue_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Creates a list of tensors and uploads its pointer table, so that each later call is one kernel
    /// launch for any number of tensors.
    /// Source: Apex, multi\_tensor\_apply, which packs the table into kernel arguments in every call.
    pub fn mp_tensor_list_create(list: *mut mp_tensor_list_t, context: mp_context_t, desc: *const mp_tensor_list_desc_t) -> mp_status_t;

    /// Destroys a list, but not its tensors.  Optimizers that use the list must be destroyed first.
    pub fn mp_tensor_list_destroy(list: mp_tensor_list_t);

    /// Replaces the addresses of the tensors, in stream order; sizes and types stay.  For frameworks
    /// that allocate new gradients in each step.  Do not capture into a CUDA graph.
    ///
    /// * `data`: host, count device pointers.
    pub fn mp_tensor_list_set_data(list: mp_tensor_list_t, data: *const *mut c_void, stream: mp_stream_t) -> mp_status_t;

    /// Returns the current address, size and type of one tensor.
    ///
    /// * `data`, `numel`, `dtype`: host, out, each optional; data is a device address.
    /// * [`MP_ERROR_NOT_FOUND`]: index is not less than count
    pub fn mp_tensor_list_get(list: mp_tensor_list_t, index: u32, data: *mut *mut c_void, numel: *mut i64, dtype: *mut mp_dtype_t) -> mp_status_t;

    /// Sets \*found\_inf to 1 if any element is NaN or infinite.  Never clears it, so several lists can
    /// share one flag.  The flag is a float so that it can be all-reduced with the gradients.
    ///
    /// * `found_inf`: device, 1 float.
    pub fn mp_check_nonfinite(list: mp_tensor_list_t, found_inf: *mut f32, stream: mp_stream_t) -> mp_status_t;

    /// Computes the largest absolute value; NaN if any element is NaN (fmaxf would ignore NaN).
    ///
    /// * `amax`: device, 1 float, optional; 0 for an empty list.
    /// * `per_tensor`: device, count floats, optional.
    pub fn mp_amax(list: mp_tensor_list_t, amax: *mut f32, per_tensor: *mut f32, stream: mp_stream_t) -> mp_status_t;

    /// Computes the Euclidean norm sqrt(sum x^2) of the list and of each tensor.
    ///
    /// Squares are summed in fp32 within chunks of 16384 elements and in fp64 across chunks, in a fixed
    /// order and without atomics, so results are bitwise reproducible.  A chunk whose largest |x| is
    /// below 2^-40, or at least 2^56, is read twice and scaled by a power of two.  The norm is
    /// therefore infinite only if its value exceeds the range of fp32.
    ///
    /// * `norm`: device, 1 float, optional.
    /// * `per_tensor`: device, count floats, optional.
    pub fn mp_l2norm(list: mp_tensor_list_t, norm: *mut f32, per_tensor: *mut f32, stream: mp_stream_t) -> mp_status_t;

    /// Reports overflow and imminent underflow of the elements, in one pass.  [`mp_scale_step`] can report
    /// on its gradients without an additional pass ([`mp_step_options_t`]).
    ///
    /// * `report`: device, 1 report of the list, optional.
    /// * `tensor_reports`: device, one report per tensor, optional.
    pub fn mp_inspect(list: mp_tensor_list_t, report: *mut mp_tensor_report_t, tensor_reports: *mut mp_tensor_report_t, stream: mp_stream_t) -> mp_status_t;

    /// Computes any of [`mp_check_nonfinite`], [`mp_amax`], [`mp_l2norm`] and [`mp_inspect`] in one pass over the
    /// elements, with bitwise equal results.
    ///
    /// * `outputs`: host; at least one of its pointers must be set.
    pub fn mp_tensor_stats(list: mp_tensor_list_t, outputs: *const mp_stats_outputs_t, stream: mp_stream_t) -> mp_status_t;

    /// Computes out = in \* \*inv\_scale.  Sets \*found\_inf to 1, and never clears it, if an element of
    /// `in` is not finite or a product overflows fp32.
    ///
    /// * `in`, `out`: lists of equal shapes; types may differ (fp16 gradients to fp32); out may be
    ///   in.
    /// * `inv_scale`: device, 1 float.
    /// * `found_inf`: device, 1 float.
    pub fn mp_unscale(in_: mp_tensor_list_t, out: mp_tensor_list_t, inv_scale: *const f32, found_inf: *mut f32, stream: mp_stream_t) -> mp_status_t;

    /// Computes the factor that unscales and clips gradients in one multiplication:
    ///
    /// ```text
    /// *grad_scale = *inv_scale * min(1, max_norm / (*inv_scale * *scaled_norm + 1e-6))
    /// ```
    ///
    /// * `scaled_norm`: device, 1 float: norm of the gradients before unscaling.
    /// * `inv_scale`: device, 1 float.
    /// * `grad_scale`: device, 1 float, overwritten.
    ///
    /// Source: Pascanu et al., On the difficulty of training RNNs, ICML 2013, algorithm 1;
    /// the 1e-6 is that of torch.nn.utils.clip\_grad\_norm\_.
    pub fn mp_clip_factor(context: mp_context_t, scaled_norm: *const f32, inv_scale: *const f32, max_norm: f32, grad_scale: *mut f32, stream: mp_stream_t) -> mp_status_t;

    /// Initializes the defaults of a policy:
    ///
    /// ```text
    /// init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
    /// growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
    /// beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
    /// overflow_std_dev 3.0902      sigma_floor 0.5
    /// ```
    ///
    /// 65536 is the initial scale of torch.amp.GradScaler.  24 overflows reduce S from 2^24 to 1.
    pub fn mp_scaler_config_init(config: *mut mp_scaler_config_t, struct_size: usize, policy: mp_scaler_policy_t) -> mp_status_t;

    /// Initializes the state of a new scaler.
    pub fn mp_scaler_state_init(state: *mut mp_scaler_state_t, struct_size: usize, config: *const mp_scaler_config_t) -> mp_status_t;

    /// Creates a scaler and all memory that it needs.  A program may have several, one per loss;
    /// several optimizers may share one, see [`MP_STEP_KEEP_SCALER`].
    pub fn mp_scaler_create(scaler: *mut mp_scaler_t, context: mp_context_t, config: *const mp_scaler_config_t) -> mp_status_t;

    /// Destroys a scaler; no optimizer refers to it.  Does nothing for the scaler of
    /// [`mp_optimizer_get_scaler`].
    pub fn mp_scaler_destroy(scaler: mp_scaler_t);

    /// Returns the device address of S, which is constant for the life of the scaler.
    pub fn mp_scaler_scale(scaler: mp_scaler_t) -> *const f32;

    /// Returns the device address of 1/S, which is constant for the life of the scaler.
    pub fn mp_scaler_inv_scale(scaler: mp_scaler_t) -> *const f32;

    /// Returns the device address of the scaler's sticky overflow flag, which is constant for the life
    /// of the scaler.  [`mp_scaler_update`] clears the flag.
    pub fn mp_scaler_found_inf(scaler: mp_scaler_t) -> *mut f32;

    /// Computes out\[i\] = loss\[i\] \* S, before the backward pass.  out may be loss.
    pub fn mp_scale_loss(scaler: mp_scaler_t, loss: *const c_void, out: *mut c_void, dtype: mp_dtype_t, count: i64, stream: mp_stream_t) -> mp_status_t;

    /// Applies the policy once, from [`mp_scaler_found_inf`] and \*amax, then clears the flag.
    /// [`mp_scale_step`] includes this.
    ///
    /// * `amax`: device, 1 float: largest |gradient| as measured, still multiplied by S and before
    ///   clipping.  Infinity or NaN counts as an overflow even if the flag is 0.  Combined
    ///   with the amax of steps with [`MP_STEP_KEEP_SCALER`] and of [`mp_grads_accumulate`] since
    ///   the last update.  Required by lognormal and logmax, which learn from it, unless
    ///   there were such calls.  Otherwise optional: it distinguishes NaN from infinity.
    pub fn mp_scaler_update(scaler: mp_scaler_t, amax: *const f32, stream: mp_stream_t) -> mp_status_t;

    /// Copies the state to the host; waits for `stream`.
    pub fn mp_scaler_get_state_sync(scaler: mp_scaler_t, state: *mut mp_scaler_state_t, stream: mp_stream_t) -> mp_status_t;

    /// Restores a state from the host; waits for `stream`.  Repeating the steps after it gives bitwise
    /// the same scales.  Empties the history, clears the flag and discards every amax measured since
    /// the last update, because these belong to abandoned steps.
    ///
    /// States that a scaler with this configuration cannot reach are rejected:
    ///
    /// - another policy
    /// - a scale outside \[min\_scale, max\_scale\], including NaN (logmax)
    /// - growth\_tracker \>= growth\_interval or hysteresis\_left \> hysteresis.  After lowering those
    /// limits, set growth\_tracker to 0 and hysteresis\_left to hysteresis.
    /// - a negative headroom; statistics that are not finite or, for lognormal, cannot be means of
    /// log2 of floats
    /// - inconsistent counts: skipped \> steps, skipped\_nan \> overflows, skipped\_in\_row \> skipped, or
    /// skipped not equal to overflows + out\_of\_range + no\_scale
    /// - counts above 2^52
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a state in this list
    pub fn mp_scaler_set_state_sync(scaler: mp_scaler_t, state: *const mp_scaler_state_t, stream: mp_stream_t) -> mp_status_t;

    /// Returns the last updates, oldest first, e.g. for a plot; waits for `stream`.
    ///
    /// * `capacity`: elements of the arrays; if there are more updates, the newest are returned.
    /// * `scales`: host, optional: S during each step.
    /// * `skipped`: host, optional: 0 = taken, 1 = overflow, 2 = overflow with amax = NaN,
    ///   [`MP_STEP_RANGE`] or [`MP_STEP_NO_SCALE`].  0 to 2 differ from [`mp_step_outcome_t`].
    /// * `count`: host: elements written, at most config.history.
    pub fn mp_scaler_get_history_sync(scaler: mp_scaler_t, capacity: i64, scales: *mut f32, skipped: *mut i32, count: *mut i64, stream: mp_stream_t) -> mp_status_t;

    /// Initializes the defaults of the cited papers.  weight\_decay is 0, except for methods that are
    /// defined by it.  lr has no default.  trust is that of LARS; Apex's LARC has 0.02.
    ///
    /// ```text
    ///           beta1   beta2   eps     others
    /// SGD       0.9     0       0       trust 0.001
    /// Adam      0.9     0.999   1e-8
    /// LAMB      0.9     0.999   1e-6    weight_decay 0.01
    /// NovoGrad  0.95    0.98    1e-8
    /// Adagrad   0       0       1e-10
    /// RMSProp   0       0.9     1e-8
    /// ```
    ///
    /// decay\_power is 1; all other fields are 0.
    pub fn mp_hyper_init(hyper: *mut mp_hyper_t, struct_size: usize, kind: mp_optimizer_kind_t, lr: f32) -> mp_status_t;

    /// Initializes a descriptor with one group and no tensors.  flags is [`MP_OPT_DECOUPLED_DECAY`] for
    /// [`MP_OPT_LAMB`] and 0 for all other kinds.
    pub fn mp_optimizer_desc_init(desc: *mut mp_optimizer_desc_t, struct_size: usize, kind: mp_optimizer_kind_t) -> mp_status_t;

    /// Initializes a descriptor with the method of that name and one group, `hyper`, with the method's
    /// defaults.  Case is ignored.
    ///
    /// ```text
    /// "sgd", "adam", "lamb", "novograd", "adagrad", "rmsprop"   mp_optimizer_kind_t
    /// "adamw"   MP_OPT_ADAM with MP_OPT_DECOUPLED_DECAY and weight_decay 0.01, as in torch
    /// ```
    ///
    /// * `name`: host.
    /// * `desc`: host, out, desc\_size bytes; desc-\>groups is hyper.  Zeroed on error.
    /// * `hyper`: host, out, hyper\_size bytes; must live until [`mp_optimizer_create`].
    /// * [`MP_ERROR_NOT_FOUND`]: unknown name
    pub fn mp_optimizer_desc_from_name(name: *const c_char, desc: *mut mp_optimizer_desc_t, desc_size: usize, hyper: *mut mp_hyper_t, hyper_size: usize, lr: f32) -> mp_status_t;

    /// Creates an optimizer: uploads the hyperparameters, and allocates the scratch memory of all steps
    /// and any moments that the descriptor lacks.
    pub fn mp_optimizer_create(optimizer: *mut mp_optimizer_t, context: mp_context_t, desc: *const mp_optimizer_desc_t) -> mp_status_t;

    /// Destroys an optimizer and its allocations, but not the caller's lists and tensors.
    pub fn mp_optimizer_destroy(optimizer: mp_optimizer_t);

    /// Returns the lists m and v, passed or allocated; [`mp_tensor_list_get`] has their addresses.  They
    /// live as long as the optimizer.
    ///
    /// * `m`, `v`: host, out, each optional; NULL if the optimizer has none.
    pub fn mp_optimizer_moments(optimizer: mp_optimizer_t, m: *mut mp_tensor_list_t, v: *mut mp_tensor_list_t) -> mp_status_t;

    /// Replaces the hyperparameters of one group, in stream order.  They are stored on the device, so a
    /// captured graph uses the new values when it is replayed.
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: max\_tensor\_norm is not 0, but was 0 in all groups at creation:
    ///   a step would need an additional launch
    pub fn mp_optimizer_set_hyper(optimizer: mp_optimizer_t, group: u32, hyper: *const mp_hyper_t, stream: mp_stream_t) -> mp_status_t;

    /// Updates master, m, v and model in one kernel for any number of tensors.
    ///
    /// LAMB, NovoGrad, LARC and LARS need one more kernel before it, which computes norms of tensors;
    /// max\_tensor\_norm needs another one (not in [`mp_scale_step`], which computes these norms anyway).  An
    /// element whose new weight or moment is not finite keeps its old weight and moments.
    ///
    /// The device decides whether to update, and the host does not see the decision: waiting for it
    /// would leave the GPU idle once per step.
    ///
    /// * `grad_scale`: device, 1 float multiplied into every gradient, e.g. 1/S; NULL = 1.
    ///   Infinity or NaN skips the update, like found\_inf.
    /// * `found_inf`: device, 1 float; if it is not 0 when the kernel runs, nothing is written and
    ///   t does not advance.  NULL = always update.
    ///
    /// Source: Micikevicius et al. 2018, section 3.1 (master weights).
    pub fn mp_optimizer_step(optimizer: mp_optimizer_t, grad_scale: *const f32, found_inf: *const f32, stream: mp_stream_t) -> mp_status_t;

    /// Initializes rounding to nearest with clamping on overflow.
    pub fn mp_model_options_init(options: *mut mp_model_options_t, struct_size: usize) -> mp_status_t;

    /// Computes model = round(master) for a program that updates its fp32 weights itself.  The result
    /// is bitwise that of an optimizer step.
    ///
    /// * `master`: [`MP_FP32`]; read.
    /// * `model`: [`MP_FP16`] or [`MP_BF16`], parallel to master; written.  Parameters with a NULL data
    ///   pointer have no 16-bit copy.
    /// * `found_inf`: device, 1 float, optional; if it is not 0 when the kernel runs, nothing is
    ///   written, so that a skipped step changes neither weights nor copy.
    /// * `options`: host, optional; NULL = the defaults.
    pub fn mp_masters_to_model(master: mp_tensor_list_t, model: mp_tensor_list_t, found_inf: *const f32, options: *const mp_model_options_t, stream: mp_stream_t) -> mp_status_t;

    /// Returns the learning rates of the last applied step, before lr\_multipliers.
    ///
    /// * returns device, num\_groups floats, 0 before the first step; they live as long as the optimizer.
    ///   NULL if optimizer is NULL
    pub fn mp_optimizer_lr(optimizer: mp_optimizer_t) -> *const f32;

    /// Computes the contribution of l1 and l2 to the loss, for the current master weights, in one
    /// kernel:
    ///
    /// ```text
    /// sum over tensors of (their decay multiplier) (l1 sum |w| + l2 sum w^2)
    /// ```
    ///
    /// Sums are fp32 within a chunk and fp64 across chunks, in a fixed order, as in [`mp_l2norm`].
    ///
    /// * `loss`: device, 1 float.
    pub fn mp_optimizer_regularization(optimizer: mp_optimizer_t, loss: *mut f32, stream: mp_stream_t) -> mp_status_t;

    /// Returns the scaler that [`mp_scale_step`] uses if none is passed: static, S = 1, diverged\_after 100.
    /// It counts skips and serves [`mp_step_query`], so bf16 training needs no other scaler.
    ///
    /// * returns owned by the optimizer, and lives as long; NULL if optimizer is NULL
    pub fn mp_optimizer_get_scaler(optimizer: mp_optimizer_t) -> mp_scaler_t;

    /// Returns the device address of the step counter t, which is constant for the life of the
    /// optimizer.  Every applied step increments t.  NULL if optimizer is NULL.
    pub fn mp_optimizer_step_counter(optimizer: mp_optimizer_t) -> *const i64;

    /// Computes model = round(master) after the caller has loaded masters.  Does nothing if the
    /// optimizer has no model list.
    ///
    /// The result is bitwise that of the step that incremented t to its current value: it uses the
    /// optimizer's flags and rounding\_seed.  ([`mp_cast`] differs: it makes overflows infinite, and never
    /// rounds at random.)  [`mp_optimizer_restore_sync`] includes this call.
    pub fn mp_optimizer_write_model(optimizer: mp_optimizer_t, stream: mp_stream_t) -> mp_status_t;

    /// Returns the size of a checkpoint, which contains master, m, v, t and the state of the scaler.
    ///
    /// * `scaler`: optional; NULL = [`mp_optimizer_get_scaler`].
    /// * `bytes`: host, out.
    pub fn mp_optimizer_checkpoint_size(optimizer: mp_optimizer_t, scaler: mp_scaler_t, bytes: *mut usize) -> mp_status_t;

    /// Writes a checkpoint to host memory; waits for `stream`.  The format is little-endian, and later
    /// versions of the library can read it.  It does not contain hyperparameters, the states of a graph
    /// (running statistics), dropout offsets, or the position in the data.
    ///
    /// * `scaler`: the scaler passed to [`mp_scale_step`]; no other state is saved.
    ///   NULL = [`mp_optimizer_get_scaler`].
    /// * `checkpoint`: host, out.
    /// * `bytes`: size of `checkpoint`, at least [`mp_optimizer_checkpoint_size`].
    /// * [`MP_ERROR_WORKSPACE_TOO_SMALL`]: bytes is smaller
    pub fn mp_optimizer_save_sync(optimizer: mp_optimizer_t, scaler: mp_scaler_t, checkpoint: *mut c_void, bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Restores master, m, v, t and the scaler, then writes model as [`mp_optimizer_write_model`] does.
    /// Given the same descriptor and data, training continues bit for bit.  Waits for `stream`.
    ///
    /// * `scaler`: as in [`mp_optimizer_save_sync`]; its state must satisfy the rules of
    ///   [`mp_scaler_set_state_sync`].
    /// * `checkpoint`: host, any alignment.
    /// * `bytes`: exact size of the saved checkpoint.
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: not a checkpoint, or one of other tensors, another kind or
    ///   another scaler; nothing has been written
    pub fn mp_optimizer_restore_sync(optimizer: mp_optimizer_t, scaler: mp_scaler_t, checkpoint: *const c_void, bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Returns the step counter t; waits for `stream`.
    pub fn mp_optimizer_get_step_sync(optimizer: mp_optimizer_t, t: *mut i64, stream: mp_stream_t) -> mp_status_t;

    /// Sets t, e.g. from a checkpoint of another format; waits for `stream`.  Call
    /// [`mp_optimizer_write_model`] afterwards.
    ///
    /// * `t`: in \[0, 2^52\]
    pub fn mp_optimizer_set_step_sync(optimizer: mp_optimizer_t, t: i64, stream: mp_stream_t) -> mp_status_t;

    /// Initializes a communicator of a single rank, which does not communicate.
    pub fn mp_comm_init(comm: *mut mp_comm_t, struct_size: usize) -> mp_status_t;

    /// Initializes \*comm with the callbacks of an NCCL communicator.  The library does not link NCCL:
    /// this call loads libnccl.so.2 with dlopen.  The callbacks return ncclResult\_t codes.
    ///
    /// * `comm`: host, out; initialize it with `MP_INIT_STRUCT`.
    /// * `nccl_comm`: a blocking ncclComm\_t; must outlive the calls that receive \*comm.  (A
    ///   nonblocking one returns ncclInProgress, which counts as a failure.)
    /// * [`MP_ERROR_NOT_FOUND`]: NCCL cannot be loaded
    /// * [`MP_ERROR_COMM`]: NCCL does not return rank or size of nccl\_comm
    pub fn mp_comm_init_nccl(comm: *mut mp_comm_t, nccl_comm: *mut c_void) -> mp_status_t;

    /// Sums gradients over ranks: grads = post \* sum over ranks (pre \* grads).  In place, in the types
    /// of the gradients, with every product rounded.  Factors that average over n = world\_size ranks:
    ///
    /// ```text
    /// pre = 1/n,        post = 1           no overflow, but small values may underflow
    /// pre = 1,          post = 1/n         small values are kept, but sums may overflow
    /// pre = 1/sqrt(n),  post = 1/sqrt(n)   a compromise
    /// ```
    ///
    /// A factor of 1 costs nothing, any other one pass over the gradients.  If the factors are powers
    /// of two and all ranks have equal gradients, the average has the same bits, unless a value
    /// underflows or overflows on the way.
    ///
    /// Each non-empty tensor is one all\_reduce, in the order of the list, in one batch: NCCL merges
    /// them into one launch.  Adjacent tensors are not merged, because addresses may differ between
    /// ranks.  If one buffer holds all gradients, pass a list with one tensor over that buffer.
    ///
    /// The gradients may still be multiplied by S.  Infinity and NaN remain in the sum, so every rank
    /// detects them; `mp_step_options`.comm covers the other decisions.
    ///
    /// * `grads`: the gradients of this rank; overwritten.
    /// * `pre`, `post`: \> 0, finite.
    /// * [`MP_ERROR_COMM`]: a callback failed: all gradients have been multiplied by pre, and some may
    ///   have been summed
    pub fn mp_grad_all_reduce(grads: mp_tensor_list_t, comm: *const mp_comm_t, pre: f32, post: f32, stream: mp_stream_t) -> mp_status_t;

    /// Initializes options without clipping or reports, for one rank.
    pub fn mp_step_options_init(options: *mut mp_step_options_t, struct_size: usize) -> mp_status_t;

    /// Checks, unscales and clips the gradients, updates the weights, and adapts the loss scale:
    ///
    /// ```text
    /// 1. found_inf |= any non-finite gradient;  norm, amax  one pass over the gradients
    /// 2. found_inf, NaN and amax become those of all ranks, with MP_STEP_SHARDED also the
    ///    norm                                                       only with comm
    /// 3. if the outcome is MP_STEP_TAKEN:
    ///        g = gradient / S, clipped;  optimizer update of master;
    ///        model = round(master);  t += 1                         second pass
    /// 4. S follows its policy;  found_inf is cleared                not with MP_STEP_KEEP_SCALER
    /// ```
    ///
    /// Everything runs on the device, without host synchronization.  The result is bitwise that of
    /// [`mp_check_nonfinite`], [`mp_l2norm`], [`mp_amax`], [`mp_clip_factor`], [`mp_optimizer_step`] and [`mp_scaler_update`]
    /// in this order, with fewer launches and less memory traffic.  Two passes are the minimum, because
    /// no weight may change before the last gradient has been checked; with [`MP_STEP_CHECKED`], one is
    /// enough.
    ///
    /// found\_inf is the scaler's flag ([`mp_scaler_found_inf`]), which a GEMM epilogue may already have set
    /// for an activation gradient.  An overflow skips the step with [`MP_SCALER_STATIC`] too.
    ///
    /// Finite gradients, weights and moments stay finite.  Norms do not overflow.  A step in which the
    /// square of a gradient could overflow is skipped ([`MP_STEP_RANGE`]).  An element whose new weight or
    /// moment is not finite, e.g. because of an infinite extra gradient, keeps its old weight and
    /// moments; `mp_step_options`.rejected\_updates counts it.
    ///
    /// Ranks: after [`mp_grad_all_reduce`] the gradients are equal on all ranks, but a flag set by an
    /// epilogue is not, nor is the amax of a sharded optimizer.  Phase 2 is one all\_reduce of 3 floats
    /// (max) and, with [`MP_STEP_SHARDED`], one of 3 floats (sum), in one batch, between two small kernels.
    /// Causes of a skip are sent as a code, so that no maximum involves NaN.  The sums are sums of
    /// squares in fp32, separate for large, small and other values, each scaled by a power of two.
    ///
    /// * `scaler`: optional; NULL = [`mp_optimizer_get_scaler`]: static, S = 1 (bf16).
    /// * `options`: host, optional; NULL = no clipping, one rank.
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: e.g. optimizer and scaler belong to different contexts
    /// * [`MP_ERROR_COMM`]: a callback of options-\>comm failed: neither weights nor S have been
    ///   updated, but the scaler's flag is set if a gradient is not finite.  Other ranks may have
    ///   taken the step
    pub fn mp_scale_step(optimizer: mp_optimizer_t, scaler: mp_scaler_t, options: *const mp_step_options_t, stream: mp_stream_t) -> mp_status_t;

    /// Accumulates unscaled gradients in fp32: sums += weight / S \* grads or, with [`MP_ACCUMULATE_FIRST`],
    /// sums = weight / S \* grads.  One pass, with the current S; weight / S is rounded once, and so is
    /// each sum.
    ///
    /// Sets the scaler's flag if a gradient or its product with weight / S is not finite.  Records the
    /// largest |gradient|, still multiplied by S and without the weight, for the scaler's next update.
    /// An overflow also remains in the sums, as infinity or NaN, until the next [`MP_ACCUMULATE_FIRST`]:
    /// one bad micro-batch discards its window even if the flag is cleared.
    ///
    /// Accumulation over k micro-batches; `sums` are the optimizer's gradients:
    ///
    /// ```text
    /// for (int i = 0; i < k; i++) {
    ///   const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
    ///   forward_and_backward(i);
    ///   mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
    /// }
    /// options.flags = MP_STEP_UNSCALED;
    /// mp_scale_step(optimizer, scaler, &options, stream);
    /// ```
    ///
    /// With several ranks, call [`mp_grad_all_reduce`] on the sums before the step, and set options.comm.
    ///
    /// S is constant within such a window.  In another form it follows its policy after each
    /// micro-batch, so that the rest of a discarded window uses a smaller S.  Then `mp_scaler_state` and
    /// [`mp_step_query`] count micro-batches.  In both forms options.found\_inf reports a discarded window:
    ///
    /// ```text
    /// for (int i = 0; i < k; i++) {
    ///   const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
    ///   forward_and_backward(i);
    ///   mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
    ///   mp_scaler_update(scaler, NULL, stream);
    /// }
    /// mp_scale_step(optimizer, NULL, &options, stream);
    /// ```
    ///
    /// * `grads`: any types; sums may be grads if all are [`MP_FP32`].
    /// * `sums`: [`MP_FP32`], parallel to grads.
    /// * `weight`: finite: 1, 1/k or a task weight.  0 adds nothing, but overflows are still
    ///   detected.
    /// * `flags`: bitwise or of [`mp_accumulate_flags_t`].
    pub fn mp_grads_accumulate(scaler: mp_scaler_t, grads: mp_tensor_list_t, sums: mp_tensor_list_t, weight: f32, flags: u32, stream: mp_stream_t) -> mp_status_t;

    /// Computes out = grads / S in fp32 and checks for overflow, in one pass: [`mp_grads_accumulate`] with
    /// weight 1 and both flags.  The first half of a step with an optimizer of the host program, which
    /// updates fp32 master weights by any rule:
    ///
    /// ```text
    /// const float *found_inf = mp_scaler_found_inf(scaler);
    /// mp_grads_to_fp32(scaler, grads, grads32, stream);
    /// my_optimizer(found_inf); // masters and grads32; does nothing if *found_inf is not 0
    /// mp_masters_to_model(masters, models, found_inf, NULL, stream);
    /// mp_scaler_update(scaler, NULL, stream);
    /// ```
    ///
    /// This optimizer runs on the device and reads the flag there.  If the optimizer runs on the host
    /// or cannot read the flag, the host polls [`mp_step_query`] and then starts it; other enqueued work
    /// continues meanwhile.  n is `mp_scaler_state`.steps + 1:
    ///
    /// ```text
    /// mp_step_outcome_t outcome = MP_STEP_PENDING;
    /// mp_grads_to_fp32(scaler, grads, grads32, stream);
    /// while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n, &outcome);
    /// if (outcome == MP_STEP_TAKEN) {
    ///   my_host_optimizer();
    ///   mp_masters_to_model(masters, models, NULL, NULL, stream);
    /// }
    /// mp_scaler_update(scaler, NULL, stream);
    /// ```
    ///
    /// * `grads`: any types; out may be grads if all are [`MP_FP32`].
    /// * `out`: [`MP_FP32`], parallel to grads.
    pub fn mp_grads_to_fp32(scaler: mp_scaler_t, grads: mp_tensor_list_t, out: mp_tensor_list_t, stream: mp_stream_t) -> mp_status_t;

    /// Returns the outcome of a step, which the device has written to host memory.  Neither waits nor
    /// enqueues work.  Any thread may call it at any time, even while another one uses the scaler.
    ///
    /// The queue never runs empty if the host queries a step while work of the next one is enqueued:
    ///
    /// ```text
    /// for (int64_t n = 1; n <= steps; n++) {
    ///   mp_step_outcome_t outcome = n > 1 ? MP_STEP_PENDING : MP_STEP_SKIPPED;
    ///   forward_and_backward(n); // enqueued; step n - 1 is done long before this is
    ///   while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n - 1, &outcome);
    ///   if (outcome == MP_STEP_TAKEN) my_learning_rate_advances();
    ///   mp_scale_step(optimizer, scaler, NULL, stream);
    /// }
    /// ```
    ///
    /// A skipped step is logged once at [`MP_LOG_INFO`] with its cause, unless a later one has already been
    /// logged.  The line contains the old S and, unless the query precedes the update, the new S.
    ///
    /// * `step`: \>= 1, counted like `mp_scaler_state`.steps: step n is the update after which steps
    ///   is n, also after restoring a state and in a replayed graph.  Its outcome is
    ///   available at the end of the [`mp_scale_step`] or [`mp_scaler_update`] that counts it
    ///   (steps with [`MP_STEP_KEEP_SCALER`] do not count), or after [`MP_ACCUMULATE_LAST`].
    /// * `outcome`: host, out.
    /// * [`MP_ERROR_NOT_FOUND`]: the step is [`MP_STEP_QUERY_DEPTH`] or more steps old, or precedes a
    ///   restored state
    pub fn mp_step_query(scaler: mp_scaler_t, step: i64, outcome: *mut mp_step_outcome_t) -> mp_status_t;

    /// Initializes a configuration: preset [`MP_AUTOCAST_DEFAULT`], level [`MP_AUTOCAST_NORMAL`], no flags, no
    /// limits.
    pub fn mp_autocast_config_init(config: *mut mp_autocast_config_t, struct_size: usize, low: mp_dtype_t) -> mp_status_t;

    /// Initializes the loss scaler for `low`.  [`MP_FP16`]: [`MP_SCALER_PRESET_KERAS`], which TensorFlow calls
    /// "dynamic".  [`MP_BF16`] and [`MP_FP32`]: S = 1.
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: low is any other value
    pub fn mp_autocast_scaler_init(config: *mut mp_scaler_config_t, struct_size: usize, low: mp_dtype_t) -> mp_status_t;

    /// Creates a policy.  Unless [`MP_AUTOCAST_NO_ENVIRONMENT`] is set, it reads environment variables:
    ///
    /// ```text
    /// MP_AUTOCAST=off|fp16|bf16
    /// MP_AUTOCAST_LEVEL=normal|infer_as_deny|tensor_cores_only|force_all
    /// MP_AUTOCAST_ALLOW_ADD=Op,Op     also INFER, DENY and CLEAR instead of ALLOW
    /// MP_AUTOCAST_ALLOW_REMOVE=Op,Op  likewise
    /// MP_AUTOCAST_IGNORE_PERFORMANCE=1
    /// MP_AUTOCAST_LOG=folder          each rewrite writes its lists, report and two pictures there
    /// ```
    ///
    /// These variables override `config`; [`mp_autocast_set_class`] and [`mp_autocast_set_nodes`] override
    /// them.  With a TensorFlow preset, the corresponding TF\_AUTO\_MIXED\_PRECISION\_GRAPH\_REWRITE\_
    /// variables (LEVEL, ALLOWLIST\_ADD, WHITELIST\_ADD, ..., IGNORE\_PERFORMANCE, LOG\_PATH) are read
    /// first.
    ///
    /// * `config`: host, optional; NULL = [`mp_autocast_config_default`]([`MP_FP16`]).
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a variable has an invalid value, or adds an operation that is
    ///   on another list and is not removed from it
    pub fn mp_autocast_create(policy: *mut mp_autocast_t, config: *const mp_autocast_config_t) -> mp_status_t;

    /// Destroys a policy.
    pub fn mp_autocast_destroy(policy: mp_autocast_t);

    /// Moves operations to a class.
    ///
    /// * `op_types`: host, count names, copied; unknown names are added.
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: also if the policy has been used
    pub fn mp_autocast_set_class(policy: mp_autocast_t, op_types: *const *const c_char, count: u32, op_class: mp_autocast_class_t) -> mp_status_t;

    /// Assigns a class to nodes by name, independent of their operation, e.g. to keep all nodes whose
    /// name begins with "decoder/" in fp32.  If several patterns match, the last one set applies.
    ///
    /// * `pattern`: host, copied.  As in a shell: \* matches any text, including "/", ? any
    ///   character, \[a-z\] one of these and \[!a-z\] any other.
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: also if the policy has been used, or a \[ has no \]
    pub fn mp_autocast_set_nodes(policy: mp_autocast_t, pattern: *const c_char, node_class: mp_autocast_class_t) -> mp_status_t;

    /// Returns the class of an operation, before the level is applied.  Names are case-sensitive.
    /// Returns [`MP_CAST_UNLISTED`] if the operation is unknown (with [`MP_AUTOCAST_PYTORCH`] [`MP_CAST_CLEAR`]),
    /// or if op\_type or policy is NULL.
    pub fn mp_autocast_class(policy: mp_autocast_t, op_type: *const c_char) -> mp_autocast_class_t;

    /// Returns why low precision is not faster on a device, or NULL if it is.
    ///
    /// This gate disables rewrites that would not pay off: fp16 requires Tensor Cores (sm\_70), bf16
    /// requires sm\_80, and the host target has no faster 16-bit arithmetic.  A closed gate is not an
    /// error: [`mp_autocast_rewrite`] leaves the graph unchanged and logs one warning.
    /// [`MP_AUTOCAST_IGNORE_PERFORMANCE`] opens it; `MP_AUTOCAST`=off always closes it.
    ///
    /// * `context`: optional; NULL = any device: only `MP_AUTOCAST`=off closes the gate.
    /// * `closed_because`: host, out: a clause in static storage; NULL = open.
    pub fn mp_autocast_gate(policy: mp_autocast_t, context: mp_context_t, closed_because: *mut *const c_char) -> mp_status_t;

    /// Determines the type of each node and the required casts.
    ///
    /// * `context`: optional: device of the gate, see [`mp_autocast_gate`]; NULL = any device.
    /// * `graph`: host.
    /// * `result`: host, out.
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a value is out of range (the message names array and index),
    ///   or [`MP_AUTOCAST_FORCE_ALL`] with [`MP_BF16`]
    pub fn mp_autocast_rewrite(policy: mp_autocast_t, context: mp_context_t, graph: *const mp_autocast_graph_t, result: *mut mp_autocast_result_t) -> mp_status_t;

    /// Writes a report: the type of each node and the reason.
    ///
    /// * `graph`: host: the graph that was rewritten, unchanged.
    /// * `result`: host: the result of [`mp_autocast_rewrite`]; its arrays are not read.
    /// * `text`: host, optional, out: NUL-terminated; NULL only returns the size.
    /// * `bytes`: host.  In: size of text.  Out: required size, including the NUL.
    /// * [`MP_ERROR_WORKSPACE_TOO_SMALL`]: \*bytes is smaller than the required size
    pub fn mp_autocast_explain(policy: mp_autocast_t, graph: *const mp_autocast_graph_t, result: *const mp_autocast_result_t, form: mp_autocast_form_t, text: *mut c_char, bytes: *mut usize) -> mp_status_t;

    /// Determines the casts of a single operation, for programs that execute eagerly:
    ///
    /// ```text
    /// MP_CAST_ALLOW    inputs and output in low precision
    /// MP_CAST_DENY     inputs and output in fp32
    /// otherwise        inputs of one type stay unchanged; inputs of several types become fp32
    /// ```
    ///
    /// Inputs of [`MP_DTYPE_NONE`], such as integers or fp64, stay unchanged.  Gate and level are ignored,
    /// except that `MP_AUTOCAST`=off disables all casts.
    ///
    /// * `input_dtype`: host, count values of [`mp_dtype_t`]; NULL if count is 0.
    /// * `cast_to`: host, out, count values of [`mp_dtype_t`]; [`MP_DTYPE_NONE`] = no cast.
    /// * `output`: host, out: type of the output; [`MP_DTYPE_NONE`] if all inputs are.
    /// * [`MP_ERROR_UNSUPPORTED`]: the operation is unsafe in 16 bits; the message names a
    ///   replacement
    pub fn mp_autocast_op(policy: mp_autocast_t, op_type: *const c_char, input_dtype: *const u8, count: u32, cast_to: *mut u8, output: *mut mp_dtype_t) -> mp_status_t;

    /// Initializes a loss of dense rows: weight = 1, no smoothing, label -100 ignored.
    ///
    /// -100 is the ignore\_index of torch.  Other labels outside \[0, classes), such as -1 or `classes`,
    /// are still detected.
    pub fn mp_xent_desc_init(desc: *mut mp_xent_desc_t, struct_size: usize, rows: i64, classes: i64, dtype: mp_dtype_t) -> mp_status_t;

    /// Computes softmax cross-entropy and its gradient, in fp32 for every type of logits:
    ///
    /// ```text
    /// p = softmax(logits[i])
    /// q[j] = (1 - label_smoothing) (j == labels[i]) + label_smoothing / classes
    /// row_loss[i] = -weight sum_j q[j] log p[j]
    /// loss = sum_i row_loss[i] / counted
    /// dlogits[i][j] = S weight / counted (p[j] - q[j])
    /// ```
    ///
    /// - Ignored rows: `counted` is the number of rows that are not ignored, determined on the
    /// device.  An ignored row has loss 0, a gradient of zeros, and is not counted as correct; its
    /// logits are not read.  If all rows are ignored, loss is NaN and the gradient 0, as in torch.
    /// - Several calls, by ranks or for micro-batches: their mean is the mean over all rows only if
    /// `counted` is equal in all calls.
    /// - Invalid labels: any other label outside \[0, classes) makes the loss and the gradient of
    /// its row NaN, so that the step is skipped.  The host cannot check labels without waiting.
    /// - Masked classes: a logit of -infinity gives p = 0.  The loss is infinite if that class is
    /// the label or label\_smoothing \> 0; the gradient stays finite.
    /// - weight = 0 makes row\_loss and dlogits 0, even if the loss is infinite, but keeps NaN.
    /// - Accuracy: the gradient of the label's logit is computed from the exponentials of the other
    /// classes.  If the label has the largest logit, so is the loss: log(1 + their sum).  Both keep
    /// their relative accuracy if the label has nearly all of the probability.
    /// - Determinism: the bits of a row depend on its values, the type, the number of classes,
    /// `counted` and the address of the row modulo 16, not on the size of the device.
    ///
    /// * `logits`: device, rows x classes.
    /// * `labels`: device, rows values.
    /// * `loss_scale`: device, 1 float S, e.g. [`mp_scaler_scale`](); NULL = 1.
    /// * `row_loss`: device, rows floats, written; not multiplied by S.
    /// * `loss`: device, 1 float, optional, written; not multiplied by S.  NaN if rows is 0.
    /// * `correct`: device, 1 value, optional: increased by the number of rows whose largest
    ///   logit (the first of equal ones) is the label's.  Clear it first.
    /// * `dlogits`: device, rows x classes, optional; may be the same matrix as logits
    ///   (equal ld).  NULL = forward only.
    ///
    /// Source: Micikevicius et al. 2018, section 3.3 (softmax and loss in fp32), 3.2 (loss scale);
    /// Szegedy et al., Rethinking the Inception Architecture, 2016, section 7 (label smoothing).
    pub fn mp_softmax_xent(context: mp_context_t, desc: *const mp_xent_desc_t, logits: *const c_void, labels: *const i32, loss_scale: *const f32, row_loss: *mut f32, loss: *mut f32, correct: *mut i64, dlogits: *mut c_void, stream: mp_stream_t) -> mp_status_t;

    /// Initializes a mean over all elements: weight = 1, dtype\_target = dtype.
    pub fn mp_loss_desc_init(desc: *mut mp_loss_desc_t, struct_size: usize, kind: mp_loss_kind_t, count: i64, dtype: mp_dtype_t) -> mp_status_t;

    /// Returns the workspace size that [`mp_loss`] requires: at most 16 KiB, 0 if count is 0.
    ///
    /// * `bytes`: host, out.
    pub fn mp_loss_workspace_size(context: mp_context_t, desc: *const mp_loss_desc_t, bytes: *mut usize) -> mp_status_t;

    /// Computes a mean squared error, mean absolute error or binary cross-entropy and its gradient, in
    /// fp32:
    ///
    /// ```text
    /// element_loss[i] = weight weights[i] l(x[i], t[i])
    /// loss = sum_i element_loss[i] / divisor
    /// dprediction[i] = S weight weights[i] / divisor dl/dx(x[i], t[i])
    /// ```
    ///
    /// - Divisor: with [`MP_LOSS_MEAN`] the number of elements that are not ignored, independent of
    /// their weights, as in torch.  If all are ignored, the mean is NaN.
    /// - Ignored elements, and elements with weights\[i\] = 0, have loss 0 and gradient 0 for every
    /// prediction.  Elements with weights\[i\] = 0 are included in the divisor.
    /// - weight = 0 makes element\_loss and dprediction 0, even if the loss is infinite, but keeps
    /// NaN.
    /// - NaN in prediction or target makes the loss and the gradient of that element NaN.
    /// - Infinite predictions, such as an overflow of fp16, make the gradient infinite or NaN, so
    /// that the step is skipped.  The exception is a logit of -infinity, which is masked as in
    /// [`mp_softmax_xent`]: its probability is 0 and its gradient -t.
    /// - Accuracy: for t = 0 and t = 1, loss and gradient of a logit keep their relative accuracy
    /// at probabilities close to 0 and 1.
    /// - Determinism: the sum is in fp64, in an order that depends only on count.
    ///
    /// * `prediction`: device, count elements.
    /// * `target`: device, count elements.
    /// * `weights`: device, count floats, optional; NULL = 1.
    /// * `loss_scale`: device, 1 float S, e.g. [`mp_scaler_scale`](); NULL = 1.
    /// * `element_loss`: device, count floats, optional, written; not multiplied by S.
    /// * `loss`: device, 1 float, optional, written; not multiplied by S.
    /// * `dprediction`: device, count elements, optional; may be prediction.  NULL = forward only.
    /// * `workspace`: device, 256-byte aligned; [`mp_loss_workspace_size`] bytes.
    ///
    /// Source: torch.nn.MSELoss, L1Loss, BCEWithLogitsLoss; Micikevicius et al. 2018, sections 3.2,
    /// ```text
    ///     3.3.
    /// ```
    ///
    /// * [`MP_ERROR_WORKSPACE_TOO_SMALL`]: workspace\_bytes \< [`mp_loss_workspace_size`]
    pub fn mp_loss(context: mp_context_t, desc: *const mp_loss_desc_t, prediction: *const c_void, target: *const c_void, weights: *const f32, loss_scale: *const f32, element_loss: *mut f32, loss: *mut f32, dprediction: *mut c_void, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Transposes images from NCHW to NHWC, the layout of mp\_conv2d\_\*, mp\_pool2d\_\* and mp\_batchnorm\_\*.
    /// Also converts the type, like [`mp_cast`].
    ///
    /// * `n`, `c`, `h`, `w`: extents, \>= 0; if one is 0 the call does nothing.
    /// * `src`: device, n x c x h x w, dense.
    /// * `dst`: device, n x h x w x c, dense; must not overlap src.
    pub fn mp_nchw_to_nhwc(context: mp_context_t, n: i64, c: i64, h: i64, w: i64, src: *const c_void, src_dtype: mp_dtype_t, dst: *mut c_void, dst_dtype: mp_dtype_t, stream: mp_stream_t) -> mp_status_t;

    /// Transposes images from NHWC to NCHW: the inverse of [`mp_nchw_to_nhwc`], with equal arguments n, c,
    /// h and w.
    pub fn mp_nhwc_to_nchw(context: mp_context_t, n: i64, c: i64, h: i64, w: i64, src: *const c_void, src_dtype: mp_dtype_t, dst: *mut c_void, dst_dtype: mp_dtype_t, stream: mp_stream_t) -> mp_status_t;

    /// Initializes adjacent windows: stride = window, no padding, no dilation.
    pub fn mp_pool2d_desc_init(desc: *mut mp_pool2d_desc_t, struct_size: usize, mode: mp_pool_mode_t, n: i32, h: i32, w: i32, c: i32, window_h: i32, window_w: i32, dtype: mp_dtype_t) -> mp_status_t;

    /// Returns the extents P and Q of y.
    ///
    /// * `p`, `q`: host, out.
    pub fn mp_pool2d_output_size(desc: *const mp_pool2d_desc_t, p: *mut i32, q: *mut i32) -> mp_status_t;

    /// Computes the maximum or mean of each window and channel.  A window with a NaN gives NaN.
    ///
    /// * `x`: device, N H W C.
    /// * `y`: device, N P Q C, written; must not overlap x.
    pub fn mp_pool2d_forward(context: mp_context_t, desc: *const mp_pool2d_desc_t, x: *const c_void, y: *mut c_void, stream: mp_stream_t) -> mp_status_t;

    /// Computes the gradient of [`mp_pool2d_forward`].
    ///
    /// Each pixel of dx sums over the windows that contain it, in fp32 and in a fixed order.
    /// [`MP_POOL_MAX`] routes dy to the maximum of each window, the first in row order if several are
    /// equal.  The maximum is recomputed from x, so y is not needed.
    ///
    /// * `x`: device, N H W C; read only for [`MP_POOL_MAX`], otherwise optional.
    /// * `dy`: device, N P Q C.
    /// * `dx`: device, N H W C, overwritten; must not overlap dy, nor x for [`MP_POOL_MAX`].
    pub fn mp_pool2d_backward(context: mp_context_t, desc: *const mp_pool2d_desc_t, x: *const c_void, dy: *const c_void, dx: *mut c_void, stream: mp_stream_t) -> mp_status_t;

    /// Initializes a batch normalization: epsilon = 1e-5, momentum = 0.1, no activation.
    pub fn mp_batchnorm_desc_init(desc: *mut mp_batchnorm_desc_t, struct_size: usize, rows: i64, channels: i32, dtype: mp_dtype_t) -> mp_status_t;

    /// Returns the workspace size that [`mp_batchnorm_forward_training`] and [`mp_batchnorm_backward`] require:
    /// at most 4 KiB per channel.
    ///
    /// * `bytes`: host, out.
    pub fn mp_batchnorm_workspace_size(context: mp_context_t, desc: *const mp_batchnorm_desc_t, bytes: *mut usize) -> mp_status_t;

    /// Normalizes each channel with the statistics of the batch:
    ///
    /// ```text
    /// mean = sum_i x[i] / rows,  var = sum_i (x[i] - mean)^2 / rows
    /// inv_std = 1 / sqrt(var + epsilon)
    /// y[i] = activation((x[i] - mean) gamma inv_std + beta)
    /// running_mean = (1 - momentum) running_mean + momentum mean
    /// running_var  = (1 - momentum) running_var + momentum var rows / (rows - 1)
    /// ```
    ///
    /// * `tensors`: host: x, saved\_mean, saved\_inv\_std and y; optionally gamma, beta, and
    ///   running\_mean and running\_var, which are updated.
    /// * `workspace`: device, 256-byte aligned; [`mp_batchnorm_workspace_size`] bytes.
    ///
    /// - Non-finite values: a channel becomes NaN if its x contains an infinity or NaN, or if
    /// rows var exceeds the range of fp32.  Its running statistics are then not updated, so a step
    /// skipped for this reason leaves them unchanged.  A step skipped for another reason, such as a
    /// gradient overflow, has updated them.
    /// - Recovery: an infinite or NaN running value is replaced by the next finite value of a
    /// batch, unless momentum is 0.
    /// - Small batches: rows = 1 leaves running\_var unchanged, because one sample has no unbiased
    /// variance.  rows = 0 or channels = 0 writes nothing.
    /// - Accuracy: means and squared deviations of row blocks are combined pairwise, so the
    /// variance is accurate even if the mean is much larger than the deviation.  The order depends
    /// only on the shape, not on the device.
    ///
    /// Source: Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1; Chan, Golub & LeVeque,
    /// Algorithms for Computing the Sample Variance, 1983; Micikevicius et al. 2018, section 3.3
    /// (statistics in fp32).
    ///
    /// * [`MP_ERROR_WORKSPACE_TOO_SMALL`]: workspace\_bytes \< [`mp_batchnorm_workspace_size`]
    pub fn mp_batchnorm_forward_training(context: mp_context_t, desc: *const mp_batchnorm_desc_t, tensors: *const mp_batchnorm_tensors_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Normalizes each channel with the running statistics.  desc-\>momentum is ignored.
    ///
    /// * `tensors`: host: x, running\_mean and running\_var (both read), and y, which may be x;
    ///   optionally gamma and beta.
    pub fn mp_batchnorm_forward_inference(context: mp_context_t, desc: *const mp_batchnorm_desc_t, tensors: *const mp_batchnorm_tensors_t, stream: mp_stream_t) -> mp_status_t;

    /// Computes the gradients of [`mp_batchnorm_forward_training`]:
    ///
    /// ```text
    /// g[i] = dy[i], or with MP_ACT_RELU 0 if y[i] was not positive
    /// xhat[i] = (x[i] - mean) inv_std
    /// dbeta = sum_i g[i],  dgamma = sum_i g[i] xhat[i]
    /// dx[i] = gamma inv_std (g[i] - dbeta / rows - xhat[i] dgamma / rows)
    /// ```
    ///
    /// y is not read: its sign is recomputed from x.  An infinity or NaN in x or g makes dgamma and dx
    /// of its channel infinite or NaN.  Workspace and order of sums are those of the forward pass.
    ///
    /// * `tensors`: host: x, gamma, beta, saved\_mean and saved\_inv\_std as in the forward pass, dy
    ///   and dx; optionally dgamma and dbeta.
    pub fn mp_batchnorm_backward(context: mp_context_t, desc: *const mp_batchnorm_desc_t, tensors: *const mp_batchnorm_tensors_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Initializes a pass over dense tensors: dtype\_b = dtype, no activation.
    pub fn mp_pointwise_desc_init(desc: *mut mp_pointwise_desc_t, struct_size: usize, op: mp_pointwise_op_t, rows: i64, columns: i64, dtype: mp_dtype_t) -> mp_status_t;

    /// Computes y = activation(z) for each element, in fp32 and rounded once.
    ///
    /// Activations are those of [`mp_epilogue_t`].  NaN is propagated, with one exception: [`MP_ACT_DRELU`]
    /// returns a if b \> 0, and otherwise 0 even if a is NaN.  rows = 0 or columns = 0 does nothing.
    ///
    /// * `a`: device, rows x columns.
    /// * `b`: device; ignored, and may be NULL, with [`MP_POINTWISE_COPY`] and no D\* activation.
    /// * `y`: device, rows x columns, written; may be a.  May be b if both have the same type and
    ///   layout: dtype\_b = dtype, and ld\_b = columns or rows = 1.
    ///
    /// Source: Hendrycks & Gimpel, Gaussian Error Linear Units, 2016 (both forms of GELU);
    /// ```text
    ///     Ramachandran, Zoph & Le, Searching for Activation Functions, 2017 (SiLU).
    /// ```
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a D\* activation with another op; y is a b of another type or
    ///   layout; y overlaps a or b in any other way
    pub fn mp_pointwise(context: mp_context_t, desc: *const mp_pointwise_desc_t, a: *const c_void, b: *const c_void, y: *mut c_void, stream: mp_stream_t) -> mp_status_t;

    /// Initializes a sum over dense rows: dtype\_sum = [`MP_FP32`], beta = 0.
    pub fn mp_column_sum_desc_init(desc: *mut mp_column_sum_desc_t, struct_size: usize, rows: i64, columns: i64, dtype: mp_dtype_t) -> mp_status_t;

    /// Returns the workspace size that [`mp_column_sum`] requires: at most 2 KiB per column.
    ///
    /// * `bytes`: host, out.
    pub fn mp_column_sum_workspace_size(context: mp_context_t, desc: *const mp_column_sum_desc_t, bytes: *mut usize) -> mp_status_t;

    /// Sums each column of a matrix, e.g. a bias gradient that no GEMM epilogue computes:
    ///
    /// ```text
    /// sum[j] = round(*scale * (x[0][j] + x[1][j] + ...) + beta * sum[j])
    /// ```
    ///
    /// The sum is in fp32, in an order that depends only on rows and columns, and rounded once.
    /// rows = 0 computes beta \* sum; columns = 0 does nothing.
    ///
    /// * `x`: device, rows x columns; for images rows = N H W, columns = C.
    /// * `sum`: device, columns elements, written; read only if beta != 0.  Must not overlap
    ///   x.
    /// * `epilogue`: host, optional: scale, amax and found\_inf.  All other fields must be 0.
    /// * `workspace`: device, 256-byte aligned; [`mp_column_sum_workspace_size`] bytes.
    /// * [`MP_ERROR_WORKSPACE_TOO_SMALL`]: workspace\_bytes \< [`mp_column_sum_workspace_size`]
    pub fn mp_column_sum(context: mp_context_t, desc: *const mp_column_sum_desc_t, x: *const c_void, sum: *mut c_void, epilogue: *const mp_epilogue_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Initializes one unidirectional layer with biases: dense tensors, dtype\_dw = dtype, no dropout,
    /// clipping or flags.
    ///
    /// For batch-major tensors, \[sequence\]\[time step\]\[element\], set x\_step = input\_size and
    /// x\_row = timesteps \* input\_size, and y\_step and y\_row accordingly.
    pub fn mp_rnn_desc_init(desc: *mut mp_rnn_desc_t, struct_size: usize, cell: mp_rnn_cell_t, batch: i32, timesteps: i32, input_size: i32, hidden_size: i32, dtype: mp_dtype_t) -> mp_status_t;

    /// Returns the sizes of reserve and workspace and the number of weights.
    ///
    /// * `sizes`: host, out; initialize it with `MP_INIT_STRUCT`.
    pub fn mp_rnn_get_sizes(context: mp_context_t, desc: *const mp_rnn_desc_t, sizes: *mut mp_rnn_sizes_t) -> mp_status_t;

    /// Computes y, hn and cn, and fills the reserve for the backward passes.
    ///
    /// * `tensors`: host: weights, lengths or batch\_sizes, dropout\_offset, x, h0, c0, y, hn, cn,
    ///   reserve.
    /// * `workspace`: device, 256-byte aligned; its contents are not used by later calls.
    ///
    /// If timesteps is 0, hn = h0 and cn = c0; backward, dh0 = dhn and dc0 = dcn.
    ///
    /// Determinism: the bits of a sequence depend on its own values, the shape and the device, not on
    /// the padding or the lengths of the other sequences.  Likewise, a sequence split into windows that
    /// pass on h and c gives the bits of the unsplit sequence.  Both hold between calls with more than
    /// 64 rows each, where a row is one time step of one sequence.
    ///
    /// * [`MP_ERROR_WORKSPACE_TOO_SMALL`]: workspace\_bytes or reserve\_bytes is smaller than
    ///   [`mp_rnn_get_sizes`] returns; unlike in [`mp_gemm`], neither is optional
    pub fn mp_rnn_forward_training(context: mp_context_t, desc: *const mp_rnn_desc_t, tensors: *const mp_rnn_tensors_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Computes y, hn and cn like [`mp_rnn_forward_training`], but without dropout and without a reserve.
    /// dropout\_offset and reserve are ignored.
    pub fn mp_rnn_forward_inference(context: mp_context_t, desc: *const mp_rnn_desc_t, tensors: *const mp_rnn_tensors_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Computes dx, dh0 and dc0, and overwrites the saved gates in the reserve with their gradients.
    ///
    /// * `tensors`: host: weights, lengths or batch\_sizes, dropout\_offset, h0 and c0 with the values
    ///   of the forward pass; reserve, dy, dhn, dcn, dx, dh0, dc0, found\_inf.
    ///
    /// Gate gradients, dx and dh0 are rounded to desc-\>dtype.  Non-finite gate gradients or dx set
    /// found\_inf.  The gradient of a clipped c' is 0.
    pub fn mp_rnn_backward_data(context: mp_context_t, desc: *const mp_rnn_desc_t, tensors: *const mp_rnn_tensors_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Computes the gradients of weights and biases, after [`mp_rnn_backward_data`].
    ///
    /// They are sums over all time steps and sequences, in fp32 and in a fixed order; 0 if there are no
    /// time steps.  [`MP_RNN_ACCUMULATE`] adds them to the previous values.
    ///
    /// * `tensors`: host: lengths or batch\_sizes, dropout\_offset, x (optional if the first layer's
    ///   w\_ih gradients are NULL), h0, reserve, weight\_grads, found\_inf, amax.
    pub fn mp_rnn_backward_weights(context: mp_context_t, desc: *const mp_rnn_desc_t, tensors: *const mp_rnn_tensors_t, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Initializes a lookup with dense rows: dtype\_dtable = dtype, no flags.
    pub fn mp_embedding_desc_init(desc: *mut mp_embedding_desc_t, struct_size: usize, rows: i64, vocabulary: i32, width: i64, dtype: mp_dtype_t) -> mp_status_t;

    /// Copies rows of a table: out\[i\] = table\[indices\[i\]\].
    ///
    /// An index outside \[0, vocabulary) makes its row of out NaN and reads nothing, so that the step is
    /// skipped.  The host cannot check indices without waiting.
    ///
    /// * `table`: device, vocabulary x width.
    /// * `indices`: device, rows values.
    /// * `out`: device, rows x width, written; must not overlap table or indices.
    pub fn mp_embedding_forward(context: mp_context_t, desc: *const mp_embedding_desc_t, table: *const c_void, indices: *const i32, out: *mut c_void, stream: mp_stream_t) -> mp_status_t;

    /// Returns the workspace size that [`mp_embedding_backward`] requires: less than
    /// rows (17 + width / 8) + 4 vocabulary + 128 KiB + 8 width bytes; 0 if rows is 0.
    ///
    /// * `bytes`: host, out.
    pub fn mp_embedding_workspace_size(context: mp_context_t, desc: *const mp_embedding_desc_t, bytes: *mut usize) -> mp_status_t;

    /// Computes the gradient of the table: dtable\[v\] = sum of dout\[i\] over all i with indices\[i\] = v.
    ///
    /// Rows of dtable without an index become 0.  Indices outside \[0, vocabulary) are skipped.  A NaN
    /// in dout affects one row of dtable.
    ///
    /// Determinism: sums are in fp32 and rounded once.  The rows of dout with equal index are added in
    /// ascending order of i, in blocks of 64 rows whose sums are then combined;
    /// [`MP_EMBEDDING_ACCUMULATE`] adds the previous value last.  The bits of a row of dtable thus depend
    /// on its rows of dout, their order and width, not on other indices or the device.
    ///
    /// * `indices`: device, rows values.
    /// * `dout`: device, rows x width.
    /// * `dtable`: device, vocabulary x width, overwritten.  [`MP_EMBEDDING_ACCUMULATE`] writes only
    ///   rows with an index, without the padding row.
    /// * `found_inf`: device, 1 float, optional: set to 1 and never cleared, see [`mp_epilogue_t`].
    /// * `amax`: device, 1 float, optional, updated: largest |element| written to dtable, after
    ///   rounding.
    /// * `workspace`: device, 256-byte aligned; [`mp_embedding_workspace_size`] bytes.
    /// * [`MP_ERROR_WORKSPACE_TOO_SMALL`]: workspace\_bytes \< [`mp_embedding_workspace_size`]
    pub fn mp_embedding_backward(context: mp_context_t, desc: *const mp_embedding_desc_t, indices: *const i32, dout: *const c_void, dtable: *mut c_void, found_inf: *mut f32, amax: *mut f32, workspace: *mut c_void, workspace_bytes: usize, stream: mp_stream_t) -> mp_status_t;

    /// Initializes a dropout of `count` elements with seed 0.
    pub fn mp_dropout_desc_init(desc: *mut mp_dropout_desc_t, struct_size: usize, count: i64, p: f32, dtype: mp_dtype_t) -> mp_status_t;

    /// Computes y = x mask / (1 - p), where the mask is 0 with probability p and otherwise 1.
    ///
    /// The backward pass is the same call with dy as x and dx as y: the mask is not stored but
    /// recomputed from seed, offset and element index.  Element i is dropped if word i % 4 of
    /// Philox 4x32-10 is less than floor(2^32 p).  The key is the seed; the counter, low words first,
    /// is i / 4 (1 word), the offset (2 words) and i / 4 / 2^32 (1 word).  mp\_rnn\_\* use different
    /// random words, even with the same seed.
    ///
    /// A dropped element is 0 even if x is NaN.  The others are multiplied by 1 / (1 - p) in fp32 and
    /// rounded once.  With p = 0, y equals x.
    ///
    /// * `offset`: device, 1 value, optional; NULL = 0.  Selects the mask: use a counter in device
    ///   memory that changes in every training step, such as [`mp_optimizer_step_counter`];
    ///   otherwise all steps have equal masks.  A replayed CUDA graph reads its current
    ///   value.  It must be the same in the forward and backward pass of a step.
    /// * `x`: device, count elements.
    /// * `y`: device, count elements, written; may be x.
    ///
    /// Source: Srivastava et al., Dropout, 2014; Salmon et al., Parallel Random Numbers, 2011.
    pub fn mp_dropout(context: mp_context_t, desc: *const mp_dropout_desc_t, offset: *const u64, x: *const c_void, y: *mut c_void, stream: mp_stream_t) -> mp_status_t;

    /// Creates an empty graph.
    pub fn mp_graph_create(graph: *mut mp_graph_t, context: mp_context_t) -> mp_status_t;

    /// Destroys a graph and its memory.  Wait for enqueued work first, and destroy optimizers created
    /// from its lists.
    pub fn mp_graph_destroy(graph: mp_graph_t);

    /// Adds an input: a tensor in memory of the caller, see [`mp_graph_bind`].
    ///
    /// * `name`: host, copied, not empty.
    /// * `dtype`: [`MP_FP32`]: autocast may cast it; [`MP_FP16`], [`MP_BF16`]: read as stored; [`MP_DTYPE_NONE`]:
    ///   integers.
    /// * `extent`: host, rank values \>= 1; the tensor is dense and row-major.  If rank \> 0,
    ///   extent\[0\] is the maximum batch, equal for all inputs.
    /// * `tensor`: host, out: index of the tensor in all other calls.
    pub fn mp_graph_input(graph: mp_graph_t, name: *const c_char, dtype: mp_dtype_t, rank: i32, extent: *const i64, tensor: *mut i32) -> mp_status_t;

    /// Adds a trainable tensor: fp32, in memory of the graph.  [`mp_graph_lists`] returns it for an
    /// optimizer.
    ///
    /// * `tensor`: host, out.
    pub fn mp_graph_parameter(graph: mp_graph_t, name: *const c_char, rank: i32, extent: *const i64, tensor: *mut i32) -> mp_status_t;

    /// Adds a tensor that persists between steps and is not trained, such as running statistics: fp32,
    /// in memory of the graph.
    ///
    /// * `tensor`: host, out.
    pub fn mp_graph_state(graph: mp_graph_t, name: *const c_char, rank: i32, extent: *const i64, tensor: *mut i32) -> mp_status_t;

    /// Adds a node: an operation from the list above.
    ///
    /// * `op_type`: host, e.g. "Linear".
    /// * `name`: host, copied, not empty.
    /// * `inputs`: host, num\_inputs tensors; -1 = absent optional input.
    /// * `attributes`: host, num\_attributes values, copied; NULL if num\_attributes is 0.
    /// * `outputs`: host, out, num\_outputs tensors; the last optional outputs can be omitted.
    /// * [`MP_ERROR_NOT_FOUND`]: unknown operation or attribute
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: shapes that do not match; the message names the node
    pub fn mp_graph_node(graph: mp_graph_t, op_type: *const c_char, name: *const c_char, inputs: *const i32, num_inputs: u32, attributes: *const mp_graph_attribute_t, num_attributes: u32, outputs: *mut i32, num_outputs: u32) -> mp_status_t;

    /// Marks an output of a node as readable: it gets memory that is not shared with other tensors and
    /// keeps its value until the next pass.  Outputs of losses are readable anyway.  A tensor that
    /// depends on the loss is computed together with it, see [`mp_graph_mode_t`].
    pub fn mp_graph_output(graph: mp_graph_t, tensor: i32) -> mp_status_t;

    /// Keeps the gradient of an output of a node, so that [`mp_graph_tensor_t`].grad can be read, e.g. to
    /// inspect its range in fp16.  Gradients of parameters are kept anyway.
    pub fn mp_graph_keep_gradient(graph: mp_graph_t, tensor: i32) -> mp_status_t;

    /// Sets the loss to minimize: output 0 of a SoftmaxXent, MSE, L1 or BCEWithLogits.  Without a loss
    /// and without [`mp_graph_seed_gradient`], the graph has no backward pass.
    pub fn mp_graph_loss(graph: mp_graph_t, tensor: i32) -> mp_status_t;

    /// Adds an input for the gradient of a loss that the caller computes: dL / d(tensor), in fp32, with
    /// the shape of `tensor`, not multiplied by S.
    ///
    /// Read `tensor`, which becomes an output, after [`mp_graph_forward`]; bind its gradient before
    /// [`mp_graph_backward`].  [`mp_graph_backward`] multiplies the gradient by S.  Gradients of several seeds
    /// and of [`mp_graph_loss`] add up.
    ///
    /// * `tensor`: floating-point output of a node; at most one seed per tensor.
    /// * `input`: host, out.
    pub fn mp_graph_seed_gradient(graph: mp_graph_t, tensor: i32, input: *mut i32) -> mp_status_t;

    /// Enables mixed precision: the policy determines the type of each operation.  Call it before
    /// [`mp_graph_compile`].  If the policy's gate is closed on this device ([`mp_autocast_gate`]), the graph
    /// stays fp32, with one warning.
    ///
    /// * `policy`: must exist until [`mp_graph_compile`] has succeeded.  [`MP_AUTOCAST_EMULATE`] is not
    ///   supported.
    pub fn mp_graph_autocast(graph: mp_graph_t, policy: mp_autocast_t) -> mp_status_t;

    /// Appends the backward pass, inserts casts, fuses operations and allocates memory.  The graph
    /// cannot be modified afterwards.  Parameters and states are initialized to 0.
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: the loss depends on no parameter, or a parameter has no
    ///   influence on it
    /// * [`MP_ERROR_OUT_OF_MEMORY`]: nothing was allocated
    pub fn mp_graph_compile(graph: mp_graph_t) -> mp_status_t;

    /// Sets the address of an input, from the next pass on.  A pass reads as many elements as the
    /// current batch has.
    ///
    /// * `data`: device, aligned to its element size; 16-byte alignment selects the fastest kernels.
    ///   NULL = unbound.
    pub fn mp_graph_bind(graph: mp_graph_t, tensor: i32, data: *const c_void) -> mp_status_t;

    /// Sets the batch size, from the next pass on.  The first call with a new size takes longer on the
    /// host, and allocates if that size needs more workspace than [`mp_graph_compile`] planned.
    ///
    /// * `batch`: 1 to extent\[0\] of the inputs.
    /// * [`MP_ERROR_OUT_OF_MEMORY`]: the batch size is unchanged
    pub fn mp_graph_set_batch(graph: mp_graph_t, batch: i64) -> mp_status_t;

    /// Copies values to a parameter or state, in stream order, and updates the 16-bit copy of a
    /// parameter if it has one.
    ///
    /// * `values`: host or device, fp32, all elements of the tensor.
    pub fn mp_graph_write(graph: mp_graph_t, tensor: i32, values: *const f32, stream: mp_stream_t) -> mp_status_t;

    /// Computes the outputs from the bound inputs.
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a required input is not bound
    pub fn mp_graph_forward(graph: mp_graph_t, mode: mp_graph_mode_t, stream: mp_stream_t) -> mp_status_t;

    /// Computes the loss, and S times the gradients of all parameters.  The previous pass must be
    /// [`mp_graph_forward`] with [`MP_GRAPH_TRAINING`] and the same batch.
    ///
    /// * `scaler`: optional: provides S and found\_inf, which an overflow in the pass sets.
    ///   NULL: S = 1.
    pub fn mp_graph_backward(graph: mp_graph_t, scaler: mp_scaler_t, stream: mp_stream_t) -> mp_status_t;

    /// Returns the step of a graph with Dropout: the number of forward passes in training, including
    /// replays of a CUDA graph.  Waits for `stream`.  Save it in checkpoints, so that a resumed run has
    /// the same masks as an uninterrupted one.
    ///
    /// * `t`: host, out; 0 for a graph without Dropout.
    pub fn mp_graph_get_step_sync(graph: mp_graph_t, t: *mut i64, stream: mp_stream_t) -> mp_status_t;

    /// Sets the step, e.g. from a checkpoint; [`mp_graph_compile`] sets it to 0.  Waits for `stream`.
    ///
    /// * `t`: 0 to 2^52.  No effect on a graph without Dropout.
    pub fn mp_graph_set_step_sync(graph: mp_graph_t, t: i64, stream: mp_stream_t) -> mp_status_t;

    /// Returns the lists for an optimizer: all parameters, in the order of their creation.  The lists
    /// belong to the graph and exist as long as it does.  No two gradients share memory.
    ///
    /// * `grads`, `master`, `model`: host, out, each optional.  model is NULL if no parameter has a 16-bit
    ///   copy; [`mp_optimizer_desc_t`] accepts that.
    pub fn mp_graph_lists(graph: mp_graph_t, grads: *mut mp_tensor_list_t, master: *mut mp_tensor_list_t, model: *mut mp_tensor_list_t) -> mp_status_t;

    /// Returns the properties of a tensor.  Before [`mp_graph_compile`] it has no addresses.
    ///
    /// * `info`: host, out; initialize it with `MP_INIT_STRUCT`.
    pub fn mp_graph_get_tensor(graph: mp_graph_t, tensor: i32, info: *mut mp_graph_tensor_t) -> mp_status_t;

    /// Returns the device memory of a compiled graph.
    ///
    /// * `memory`: host, out; initialize it with `MP_INIT_STRUCT`.
    pub fn mp_graph_get_memory(graph: mp_graph_t, memory: *mut mp_graph_memory_t) -> mp_status_t;

    /// Writes the reason for the type of each operation, forward and backward, before fusion.  The
    /// report is that of [`mp_autocast_explain`].
    ///
    /// * `text`: host, optional, out: NUL-terminated; NULL only returns the size.
    /// * `bytes`: host.  In: size of text.  Out: required size, including the NUL.
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: compiled without [`mp_graph_autocast`]
    /// * [`MP_ERROR_WORKSPACE_TOO_SMALL`]: \*bytes is smaller than the required size
    pub fn mp_graph_explain(graph: mp_graph_t, form: mp_autocast_form_t, text: *mut c_char, bytes: *mut usize) -> mp_status_t;

    /// Writes the calls of a compiled graph in order, one per line: pass, operations, function,
    /// tensors, types and shapes.
    ///
    /// The pass is "forward", "backward" or "inference".  Lines marked inference compute the loss and
    /// tensors that depend on it: in inference mode they run in the forward pass, in training the
    /// backward pass makes these calls.  `text` and `bytes` as in [`mp_graph_explain`].
    pub fn mp_graph_describe(graph: mp_graph_t, text: *mut c_char, bytes: *mut usize) -> mp_status_t;

    /// Initializes the configuration of a preset.  In presets of other systems, unlisted fields have
    /// the defaults of [`MP_SCALER_BACKOFF`], except that max\_scale and diverged\_after are 0.
    ///
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: unknown preset
    pub fn mp_scaler_config_init_preset(config: *mut mp_scaler_config_t, struct_size: usize, preset: mp_scaler_preset_t) -> mp_status_t;

    /// Initializes a configuration from a name, as used on command lines and in other systems'
    /// configuration files.  Case is ignored.
    ///
    /// ```text
    /// "Backoff"    MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF (OpenSeq2Seq's name)
    /// "LogMax"     MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX (OpenSeq2Seq's name)
    /// "lognormal"  MP_SCALER_PRESET_LOGNORMAL
    /// "dynamic"    MP_SCALER_PRESET_APEX_AMP (Apex's name); the initial S is that of GradScaler
    /// "none"       MP_SCALER_STATIC with S = 1
    /// "128"        MP_SCALER_STATIC with S = 128, and likewise for every other valid S
    /// ```
    ///
    /// If a static S is outside \[1, 2^24\], min\_scale or max\_scale is set to it.
    ///
    /// * `name`: host.
    /// * `config`: host, out; zeroed on error.
    /// * [`MP_ERROR_NOT_FOUND`]: unknown name
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a number \<= 0, not finite, or without a finite reciprocal
    pub fn mp_scaler_config_from_name(name: *const c_char, config: *mut mp_scaler_config_t, struct_size: usize) -> mp_status_t;

    /// Converts a checkpoint of torch into the configuration and state of a scaler that continues it.
    ///
    /// * `saved`: host.
    /// * `config`: host, out, for [`mp_scaler_create`]; initialize it with `MP_INIT_STRUCT`.
    /// * `state`: host, out, for [`mp_scaler_set_state_sync`]; initialize it with `MP_INIT_STRUCT`.
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a scale without a finite reciprocal; a factor or interval out
    ///   of range; or growth\_tracker \>= growth\_interval, which torch's set\_growth\_interval can
    ///   cause. torch compares the two for equality, so S would not grow there before the next
    ///   overflow; here it would grow at once.  Set growth\_tracker to 0
    pub fn mp_scaler_from_torch(saved: *const mp_torch_scaler_t, config: *mut mp_scaler_config_t, state: *mut mp_scaler_state_t) -> mp_status_t;

    /// Converts a configuration and state for GradScaler.load\_state\_dict.  Hysteresis, limits of S and
    /// counts of skips are lost: torch has none.
    ///
    /// * `saved`: host, out.
    pub fn mp_scaler_to_torch(config: *const mp_scaler_config_t, state: *const mp_scaler_state_t, saved: *mut mp_torch_scaler_t) -> mp_status_t;

    /// Converts a checkpoint of Megatron-LM into a state, for a scaler with [`MP_SCALER_PRESET_MEGATRON`].
    ///
    /// * `saved`: host.
    /// * `state`: host, out; initialize it with `MP_INIT_STRUCT`.
    /// * [`MP_ERROR_INVALID_ARGUMENT`]: a scale without a finite reciprocal, or a growth\_tracker \< 0;
    ///   [`mp_scaler_set_state_sync`] checks the limits that depend on the scaler
    pub fn mp_scaler_from_megatron(saved: *const mp_megatron_scaler_t, state: *mut mp_scaler_state_t) -> mp_status_t;

    /// Converts a state for DynamicGradScaler.load\_state\_dict.
    ///
    /// * `saved`: host, out.
    pub fn mp_scaler_to_megatron(state: *const mp_scaler_state_t, saved: *mut mp_megatron_scaler_t) -> mp_status_t;

    /// Returns a kernel for a problem of [`mp_gemm`] with 16-byte aligned operands.  Index 0 is the kernel
    /// that [`mp_gemm`] would launch.  The others follow by predicted time; unsupported kernels are last.
    ///
    /// * `info`: host, out; initialize it with `MP_INIT_STRUCT`.
    /// * [`MP_ERROR_NOT_FOUND`]: index is past the last kernel
    pub fn mp_gemm_kernel_info(context: mp_context_t, desc: *const mp_gemm_desc_t, index: i32, info: *mut mp_kernel_info_t) -> mp_status_t;

    /// Returns a kernel for one pass of a convolution, like [`mp_gemm_kernel_info`].
    pub fn mp_conv2d_kernel_info(context: mp_context_t, desc: *const mp_conv2d_desc_t, op: mp_conv_op_t, index: i32, info: *mut mp_kernel_info_t) -> mp_status_t;

    /// Returns an implementation of the time steps of a recurrent layer: separate GEMM and cell
    /// kernels, or one fused kernel per step.  Index 0 is the one that the library would use.
    /// workspace\_bytes is that of the complete call, as in [`mp_rnn_get_sizes`].
    pub fn mp_rnn_kernel_info(context: mp_context_t, desc: *const mp_rnn_desc_t, index: i32, info: *mut mp_kernel_info_t) -> mp_status_t;
}
