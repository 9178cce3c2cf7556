! Made by bindings/generate/generate from include/mpcore.h; edit that and run bindings/generate/generate.

!> The C ABI as it is: names, types and constants of mpcore.h.  Unsigned integers are signed ones of
!> the same size.  Handles, streams and pointers to plain data are type(c_ptr); a descriptor that C
!> takes as NULL is an optional argument.  A variable of a descriptor type begins with zeros and its
!> struct_size; mp_*_default() has the defaults.  The module mpcore has the rest: arrays and error handling.
module mpcore_c
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int), parameter :: MP_VERSION_MAJOR = 0
  integer(c_int), parameter :: MP_VERSION_MINOR = 1
  integer(c_int), parameter :: MP_VERSION_PATCH = 0
  !> Version as one integer, comparable with <: 0.1.0 is 100, 1.2.3 is 10203.
  integer(c_int), parameter :: MP_VERSION_NUMBER = 100
  !> the calling thread's current CUDA device; an error if none
  integer(c_int), parameter :: MP_DEVICE_CURRENT = -1
  !> the CPU
  integer(c_int), parameter :: MP_DEVICE_HOST = -2
  !> CURRENT; if none is usable, HOST with a warning
  integer(c_int), parameter :: MP_DEVICE_AUTO = -3
  !> Number of steps whose outcome mp_step_query can return.
  integer(c_int), parameter :: MP_STEP_QUERY_DEPTH = 1024
  !> Slot of inputs and outputs that are always fp32, such as statistics of a batch norm or the gain
  !> of a layer norm.  Low precision propagates neither from nor to this slot, for any class.
  integer(c_int), parameter :: MP_SLOT_FP32 = 255
  !> Maximum number of dimensions of a tensor.
  integer(c_int), parameter :: MP_GRAPH_MAX_RANK = 8

  !> Status codes.  The values are part of the ABI and grouped in ranges by cause.
  enum, bind(c)  ! mp_status_t
    enumerator :: MP_SUCCESS = 0
    !> a value outside its documented range
    enumerator :: MP_ERROR_INVALID_ARGUMENT = 1
    !> a pointer or ld violates a documented alignment
    enumerator :: MP_ERROR_MISALIGNED = 2
    !> see mp_*_workspace_size
    enumerator :: MP_ERROR_WORKSPACE_TOO_SMALL = 3
    !> struct_size is 0 or requests unknown features
    enumerator :: MP_ERROR_STRUCT_SIZE = 4
    !> no kernel for this combination; mp_last_error names the part
    enumerator :: MP_ERROR_UNSUPPORTED = 20
    !> the build has no code for this device
    enumerator :: MP_ERROR_ARCH_MISMATCH = 21
    !> unknown name, index past the end, missing shared library
    enumerator :: MP_ERROR_NOT_FOUND = 22
    enumerator :: MP_ERROR_OUT_OF_MEMORY = 40
    !> mp_last_error contains the CUDA error name
    enumerator :: MP_ERROR_CUDA = 41
    !> a callback of mp_comm_t failed; mp_last_error contains its code
    enumerator :: MP_ERROR_COMM = 42
    enumerator :: MP_ERROR_INTERNAL = 60
  end enum

  !> Log severity; lower values are more severe.
  enum, bind(c)  ! mp_log_level_t
    !> every error, once; by default only errors that no status returns
    enumerator :: MP_LOG_ERROR = 1
    !> slow paths whose cause the caller can change
    enumerator :: MP_LOG_WARN = 2
    !> kernel selections, the first time each is made; skipped steps, if the
    !> host queries their outcome
    enumerator :: MP_LOG_INFO = 3
    !> every call
    enumerator :: MP_LOG_DEBUG = 4
  end enum

  !> Element types.  0 is invalid, so that an unset field is an error.
  enum, bind(c)  ! mp_dtype_t
    enumerator :: MP_DTYPE_NONE = 0
    !> IEEE binary16: 5 exponent bits, 11 significant bits, max 65504
    enumerator :: MP_FP16 = 1
    !> bfloat16: 8 exponent bits, 8 significant bits
    enumerator :: MP_BF16 = 2
    !> IEEE binary32
    enumerator :: MP_FP32 = 3
  end enum

  !> Target that the kernels of a context are compiled for.
  enum, bind(c)  ! mp_target_t
    enumerator :: MP_TARGET_CUDA = 1
    enumerator :: MP_TARGET_HOST = 2
  end enum

  !> Form of an operand: as stored (N) or transposed (T).
  enum, bind(c)  ! mp_op_t
    enumerator :: MP_OP_N = 0
    enumerator :: MP_OP_T = 1
  end enum

  !> Activation function, or its derivative, applied to each element of a result.
  enum, bind(c)  ! mp_activation_t
    enumerator :: MP_ACT_NONE = 0
    enumerator :: MP_ACT_RELU = 1
    !> tanh form: 0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))
    enumerator :: MP_ACT_GELU = 2
    !> backward: multiplies by relu'(aux)
    enumerator :: MP_ACT_DRELU = 3
    !> backward: multiplies by gelu'(aux)
    enumerator :: MP_ACT_DGELU = 4
    !> 1 / (1 + exp(-z))
    enumerator :: MP_ACT_SIGMOID = 5
    enumerator :: MP_ACT_TANH = 6
    !> backward: multiplies by sigmoid'(aux)
    enumerator :: MP_ACT_DSIGMOID = 7
    !> backward: multiplies by tanh'(aux)
    enumerator :: MP_ACT_DTANH = 8
    !> z / (1 + exp(-z)), also called swish
    enumerator :: MP_ACT_SILU = 9
    !> backward: multiplies by silu'(aux)
    enumerator :: MP_ACT_DSILU = 10
    !> exact form: 0.5 z (1 + erf(z / sqrt(2)))
    enumerator :: MP_ACT_GELU_ERF = 11
    !> backward: multiplies by gelu'(aux) of the exact form
    enumerator :: MP_ACT_DGELU_ERF = 12
  end enum

  !> Dimension that is divided among the groups of mp_gemm_ragged.
  enum, bind(c)  ! mp_ragged_t
    !> rows: forward pass and input gradients of experts
    enumerator :: MP_RAGGED_M = 0
    !> k: weight gradients of experts
    enumerator :: MP_RAGGED_K = 1
  end enum

  !> Pass of a convolutional layer: forward, input gradient (dgrad) or weight gradient (wgrad).
  enum, bind(c)  ! mp_conv_op_t
    enumerator :: MP_CONV_FPROP = 0
    enumerator :: MP_CONV_DGRAD = 1
    enumerator :: MP_CONV_WGRAD = 2
  end enum

  !> Policy that adapts the loss scale S to the gradients.  A step is clean if its outcome is
  !> MP_STEP_TAKEN; other steps are skipped.  docs/loss-scaler.md compares the policies.
  enum, bind(c)  ! mp_scaler_policy_t
    !> Constant S.  bf16 training uses this policy with S = 1.
    enumerator :: MP_SCALER_STATIC = 0
    !> Multiplicative backoff and growth.  An overflow sets S *= backoff_factor.  growth_interval
    !> clean steps in a row set S *= growth_factor, unless the product is not finite.
    !>
    !> With hysteresis h > 1, h - 1 overflows leave S unchanged; further ones back off until the
    !> budget is refilled.  S growing refills it (Megatron-LM) or, with MP_SCALER_REFILL_EACH_STEP,
    !> every clean step (Apex, update_scale_hysteresis).
    !> Source: torch.amp.GradScaler.
    enumerator :: MP_SCALER_BACKOFF = 1
    !> Statistical model of the gradients.  log2 of the largest unscaled gradient is modeled as
    !> normal, with running mean mu (decay beta1) and deviation sigma (decay beta2, at least
    !> sigma_floor):
    !>
    !>     S = 2^floor(e - h),  e = floor(log2_max - mu - overflow_std_dev * sigma)
    !>
    !> The probability of an overflow is therefore small and fixed.  h is a headroom in bits,
    !> initially 0:
    !>
    !> - An overflow does not change mu and sigma, backs off once, and raises h.
    !> - Every growth_interval clean steps, h decreases by one bit.
    !> - If overflows precede the first statistics, h begins with the value that leaves S unchanged.
    !>
    !> Without h the policy would livelock if an activation gradient, which the statistics do not
    !> include, overflows before the weight gradients do.  A step whose gradients are all zero
    !> changes nothing.
    !> Source: OpenSeq2Seq LogMaxScaler, with its defects repaired (there an overflow feeds
    !> 2^log_max into a mean of log2 values and pins S at its minimum for ~12,000 steps).
    enumerator :: MP_SCALER_LOGNORMAL = 2
    !> OpenSeq2Seq's LogMaxScaler with its defects; see mpcore/compat.h.
    enumerator :: MP_SCALER_LOGMAX = 3
  end enum

  !> Bits of mp_scaler_config.flags.
  enum, bind(c)  ! mp_scaler_flags_t
    !> backoff: clean steps refill hysteresis
    enumerator :: MP_SCALER_REFILL_EACH_STEP = 1
    !> Backoff: the first clean step, and the first one after each overflow, does not count towards
    !> growth_interval.
    !> Source: DeepSpeed FP16_Optimizer.
    enumerator :: MP_SCALER_FIRST_STEP_UNCOUNTED = 2
  end enum

  !> Health of a scaler.
  enum, bind(c)  ! mp_scaler_status_t
    enumerator :: MP_SCALER_OK = 0
    !> diverged_after skips in a row, or 1/S is not finite
    enumerator :: MP_SCALER_DIVERGED = 1
  end enum

  !> Update rule.  Symbols in the formulas:
  !>
  !>     g    unscaled, clipped gradient            wd      weight_decay
  !>     w    fp32 master weight                    b1, b2  beta1, beta2
  !>     |x|  norm of one tensor, as in mp_l2norm   t       applied (not skipped) steps, including
  !>                                                        the current one
  enum, bind(c)  ! mp_optimizer_kind_t
    !> Stochastic gradient descent with momentum:
    !>
    !>     m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m
    !>
    !> MP_OPT_NESTEROV: w -= lr (g + momentum m).  Decay: g += wd w.  With
    !> MP_OPT_DECAY_AFTER_MOMENTUM: w -= lr wd w, which does not enter the momentum.
    !>
    !> MP_OPT_LARS and MP_OPT_LARC: g = a (g + wd w) instead, with a trust ratio a per tensor:
    !>
    !>     LARS: a = trust |w| / (|g| + wd |w| + eps);   LARC: a = min(1, a_LARS / lr)
    !>
    !> a is 1 if |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
    !> and tensors that are initially 0 stay near it.)
    !> Source: You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
    !> algorithm 1; LARC: Apex, apex/parallel/LARC.py.
    enumerator :: MP_OPT_SGD = 1
    !> Adam, and AdamW with MP_OPT_DECOUPLED_DECAY:
    !>
    !>     m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)
    !>
    !> mhat and vhat are m and v with bias correction.  Decay: g += wd w.  With
    !> MP_OPT_DECOUPLED_DECAY: w -= lr wd w.
    !> Source: Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2.
    enumerator :: MP_OPT_ADAM = 2
    !> LAMB: w -= lr r u with the trust ratio r = |w| / |u|, where w -= lr u is the step of
    !> MP_OPT_ADAM with the same flags, including decay.  r is 1 if |w| or |u| is 0 and, without
    !> MP_OPT_NVLAMB, for tensors with wd = 0 (biases, normalization), as in Apex's FusedLAMB.
    !>
    !> The paper's form has MP_OPT_DECOUPLED_DECAY, which mp_optimizer_desc_default sets.  Apex
    !> includes global clipping; here it is mp_step_options.max_grad_norm.
    !> Source: You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2.
    enumerator :: MP_OPT_LAMB = 3
    !> NovoGrad, with one v per tensor:
    !>
    !>     v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1)
    !>     m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m
    !>
    !> dampening = b1 averages the gradients, like grad_averaging of the original implementation.
    !> (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
    !> corrects the bias of a v that is not biased.  This is the paper's form.)
    !> Source: Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
    !> algorithm 1.
    enumerator :: MP_OPT_NOVOGRAD = 4
    !> Adagrad: v += g^2;  w -= lr g / (sqrt(v) + eps).
    !>
    !> The initial v may be above 0 (TensorFlow: 0.1).  Decay: g += wd w.  With
    !> MP_OPT_DECOUPLED_DECAY: w -= lr wd w.
    !> Source: Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch.
    enumerator :: MP_OPT_ADAGRAD = 5
    !> RMSProp: v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps).
    !>
    !> With momentum: m = momentum m + g / (sqrt(v) + eps);  w -= lr m.  Decay: g += wd w.
    !> Source: Tieleman & Hinton, COURSERA: Neural Networks for Machine Learning, 2012, lecture 6.5;
    !> eps and momentum as in torch.
    enumerator :: MP_OPT_RMSPROP = 6
  end enum

  !> Bits of mp_optimizer_desc.flags; bit 3 is unused.
  enum, bind(c)  ! mp_optimizer_flags_t
    !> SGD
    enumerator :: MP_OPT_NESTEROV = 1
    !> Adam (then AdamW), LAMB, Adagrad
    enumerator :: MP_OPT_DECOUPLED_DECAY = 2
    !> Adam, LAMB: mhat = m, vhat = v
    enumerator :: MP_OPT_NO_BIAS_CORRECTION = 4
    !> Lets the 16-bit copy of a weight become infinite on overflow.  By default it is clamped to the
    !> largest finite value: an infinite weight makes every later gradient non-finite, so every later
    !> step would be skipped and training would never recover.
    enumerator :: MP_OPT_MODEL_OVERFLOW = 16
    !> SGD; excludes MP_OPT_LARC and MP_OPT_LARS
    enumerator :: MP_OPT_DECAY_AFTER_MOMENTUM = 32
    !> SGD
    enumerator :: MP_OPT_LARC = 64
    !> SGD; excludes MP_OPT_LARC
    enumerator :: MP_OPT_LARS = 128
    !> LAMB: also adapts tensors without decay
    enumerator :: MP_OPT_NVLAMB = 256
    !> Rounds the 16-bit copy of a weight up or down at random, so that its expected value is the
    !> weight.  Changes below half a unit in the last place then survive on average.  Weights that
    !> the 16-bit type can represent are unchanged.
    !>
    !> The random numbers depend only on rounding_seed, t, and the indices of tensor and element.
    !> They are equal on all devices and after a resume.  Probabilities are exact (fp16 subnormals:
    !> to within 2^-32).
    !> Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1;
    !> Philox 4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
    enumerator :: MP_OPT_STOCHASTIC_ROUNDING = 512
  end enum

  !> Learning-rate schedule, evaluated on the device: a skipped step does not advance it, and a
  !> captured graph needs no host work.  Every schedule begins with a linear warm-up:
  !>
  !>     lr(t) = lr t / warmup_steps   for t <= warmup_steps
  !>
  !> In the formulas, s = t - 1 - warmup_steps counts the steps after the warm-up, so the first of
  !> them has s = 0; p = min(s / decay_steps, 1).  Rates are computed in fp64 and rounded once.
  enum, bind(c)  ! mp_lr_schedule_t
    !> lr(t) = lr
    enumerator :: MP_LR_CONSTANT = 0
    !> lr_end + (lr - lr_end) (1 - p)^decay_power; linear if decay_power is 1
    enumerator :: MP_LR_POLYNOMIAL = 1
    !> lr_end + (lr - lr_end) (1 + cos(pi p)) / 2
    !> Source: Loshchilov & Hutter, SGDR, 2017, equation 5, without restarts.
    enumerator :: MP_LR_COSINE = 2
    !> max(lr_end, lr decay_rate^(s / decay_steps))
    enumerator :: MP_LR_EXPONENTIAL = 3
    !> lr sqrt(max(warmup_steps, 1) / t)
    !> Source: Vaswani et al., Attention Is All You Need, 2017, equation 3, with lr as its peak.
    enumerator :: MP_LR_INVERSE_SQRT = 4
  end enum

  !> Element-wise reduction across ranks.
  enum, bind(c)  ! mp_reduce_op_t
    enumerator :: MP_REDUCE_SUM = 0
    !> finite values >= 0 only; libraries treat NaN differently
    enumerator :: MP_REDUCE_MAX = 1
  end enum

  !> Bits of mp_step_options.flags.
  enum, bind(c)  ! mp_step_flags_t
    !> Leaves the scaler and its flag to a later step, for optimizers that share a scaler.  All
    !> optimizers except the last use this flag (or all do, and mp_scaler_update(scaler, NULL,
    !> stream) follows).  An optimizer skips for its own gradients and those of previous steps.  To
    !> skip all of them together, check the later lists first:
    !>
    !>     mp_check_nonfinite(grads_of_b, mp_scaler_found_inf(scaler), stream);
    !>     options.flags = MP_STEP_KEEP_SCALER;
    !>     mp_scale_step(a, scaler, &options, stream);
    !>     mp_scale_step(b, scaler, NULL, stream);     // S follows its policy
    enumerator :: MP_STEP_KEEP_SCALER = 1
    !> The gradients come from mp_grads_accumulate or mp_grads_to_fp32: they already include 1/S, and
    !> the scaler uses the amax recorded there, which lognormal and logmax require.  Add
    !> MP_STEP_CHECKED if the last call had MP_ACCUMULATE_LAST.
    enumerator :: MP_STEP_UNSCALED = 2
    !> The producer of the gradients has checked them: the epilogues of GEMMs and convolutions set
    !> mp_scaler_found_inf (without a scaler: that of mp_optimizer_get_scaler) and update amax.  The
    !> step omits pass 1, which saves a launch and one of two reads of every gradient.
    !>
    !> Not supported with outputs and limits that need pass 1: max_grad_norm, grad_norm,
    !> tensor_norms, reports, and a group's max_tensor_norm.
    enumerator :: MP_STEP_CHECKED = 4
    !> Sharded optimizer, with comm: every rank owns some tensors, none divided between ranks, and
    !> may own none; the norm is that of the tensors of all ranks.  Without this flag all ranks have
    !> the same gradients.
    enumerator :: MP_STEP_SHARDED = 8
  end enum

  !> Flags of mp_grads_accumulate.
  enum, bind(c)  ! mp_accumulate_flags_t
    !> First gradients of a window: sums are overwritten, not read.
    enumerator :: MP_ACCUMULATE_FIRST = 1
    !> Last gradients before an update by an optimizer of the host program: the sums are checked too,
    !> and mp_step_query returns the outcome after this call.  If there are several lists, only the
    !> last one has this flag.  Nothing may set the scaler's flag between this call and
    !> mp_scaler_update.  The outcome is that of this rank's gradients; with several ranks, call
    !> mp_grad_all_reduce first.
    enumerator :: MP_ACCUMULATE_LAST = 2
  end enum

  !> Outcome of a step.  If several causes apply: OVERFLOW, then NO_SCALE, then RANGE.  Queries, the
  !> state of the scaler and mp_step_options report the same outcome; mp_scaler_get_history_sync has
  !> its own codes.
  enum, bind(c)  ! mp_step_outcome_t
    !> the device has not finished the step
    enumerator :: MP_STEP_PENDING = 0
    enumerator :: MP_STEP_TAKEN = 1
    !> Lower bound of all skips, for comparisons (outcome >= MP_STEP_SKIPPED); never reported.  A
    !> skipped step updates neither weights nor moments.
    enumerator :: MP_STEP_SKIPPED = 2
    !> Skipped: the largest |gradient| times the factor that unscales and clips is not below 2^63, or
    !> that factor is not finite.  S is unchanged, because no other S would help.
    enumerator :: MP_STEP_RANGE = 3
    !> Skipped: S is 0, or 1/S is not finite.  The scaler's status becomes MP_SCALER_DIVERGED.  (4 is
    !> reserved.)
    enumerator :: MP_STEP_NO_SCALE = 5
    !> skipped: the flag was set, or a gradient or amax is not finite; S follows its policy
    enumerator :: MP_STEP_OVERFLOW = 6
  end enum

  !> Class of an operation: the list that contains it.  Names follow TensorFlow.
  enum, bind(c)  ! mp_autocast_class_t
    !> fp32, independent of its neighbors
    enumerator :: MP_CAST_UNLISTED = 0
    !> always low precision: numerically safe, and faster
    enumerator :: MP_CAST_ALLOW = 1
    !> low precision between low-precision nodes, except downstream of a DENY
    enumerator :: MP_CAST_INFER = 2
    !> fp32.  Propagates downstream through MP_CAST_INFER nodes, and through MP_CAST_CLEAR nodes that
    !> lead to another MP_CAST_INFER or MP_CAST_DENY.
    enumerator :: MP_CAST_DENY = 3
    !> no numerical effect: takes the precision of its neighbors
    enumerator :: MP_CAST_CLEAR = 4
    !> MP_AUTOCAST_PYTORCH: low precision if all floating-point inputs are.  Other presets treat it
    !> as MP_CAST_INFER.
    enumerator :: MP_CAST_PROMOTE = 5
  end enum

  !> Lists of operations and rules of propagation.
  enum, bind(c)  ! mp_autocast_preset_t
    !> Names of mpcore, ONNX, TensorFlow and PyTorch.  MP_CAST_ALLOW: products, convolutions,
    !> attention, recurrent layers.  MP_CAST_INFER: batch norm.  MP_CAST_DENY: softmax, norms over a
    !> row, losses, sums.
    enumerator :: MP_AUTOCAST_DEFAULT = 0
    !> lists of TensorFlow 2.21 for fp16
    enumerator :: MP_AUTOCAST_TENSORFLOW = 1
    !> lists of TensorFlow 2.21 for bf16
    enumerator :: MP_AUTOCAST_TENSORFLOW_BF16 = 2
    !> Lists of torch.amp in PyTorch 2.11 for GPUs, names without overload, plus functions composed
    !> of listed operations, such as cross_entropy and interpolate.  Unknown operations are
    !> MP_CAST_CLEAR.
    !>
    !> Propagation is that of torch.amp, one pass in execution order: a node is low precision if it
    !> is MP_CAST_ALLOW, or if all its floating-point inputs are and no list requires fp32.
    !> MP_CAST_DENY does not propagate.
    enumerator :: MP_AUTOCAST_PYTORCH = 3
    !> names of ONNX; the block list of onnxconverter-common is unlisted
    enumerator :: MP_AUTOCAST_ONNX = 4
  end enum

  !> Override of all lists.
  enum, bind(c)  ! mp_autocast_level_t
    !> no override
    enumerator :: MP_AUTOCAST_NORMAL = 0
    !> conservative: MP_CAST_INFER becomes MP_CAST_DENY
    enumerator :: MP_AUTOCAST_INFER_AS_DENY = 1
    !> all but MP_CAST_ALLOW become MP_CAST_UNLISTED
    enumerator :: MP_AUTOCAST_TENSOR_CORES_ONLY = 2
    !> Low precision wherever possible, except constants, state and cross-entropies.  For tests;
    !> MP_FP16 only.
    enumerator :: MP_AUTOCAST_FORCE_ALL = 3
  end enum

  !> Bits of mp_autocast_config.flags.
  enum, bind(c)  ! mp_autocast_flags_t
    !> ignores environment variables
    enumerator :: MP_AUTOCAST_NO_ENVIRONMENT = 1
    !> disables the gate, see mp_autocast_gate
    enumerator :: MP_AUTOCAST_IGNORE_PERFORMANCE = 2
    !> Keeps tensors of role MP_TENSOR_OUTPUT in fp32 for the caller, who counts as a reader.
    enumerator :: MP_AUTOCAST_KEEP_IO = 4
    !> Emulates 16-bit arithmetic: low-precision nodes compute in fp32 on rounded values.  See
    !> mp_autocast_result.
    enumerator :: MP_AUTOCAST_EMULATE = 8
  end enum

  !> Bits of mp_autocast_graph.node_flags.
  enum, bind(c)  ! mp_node_flags_t
    !> stays fp32: fetched, fed, or requested by the caller
    enumerator :: MP_NODE_KEEP = 1
    !> stays fp32: runs on another device
    enumerator :: MP_NODE_ELSEWHERE = 2
    !> stays fp32: no 16-bit kernel; its class still propagates
    enumerator :: MP_NODE_NO_LOW = 4
    !> converts to the type of its output
    enumerator :: MP_NODE_CAST = 8
    !> Reads a variable in place (Identity or Enter of TensorFlow's reference variables); low
    !> precision does not propagate through it.
    enumerator :: MP_NODE_READS_VARIABLE = 16
    !> back edge (NextIteration): follows the rest of its loop
    enumerator :: MP_NODE_BACK_EDGE = 32
    !> reads fp32 and low precision, except on MP_SLOT_FP32
    enumerator :: MP_NODE_READS_EITHER = 64
    !> can write fp32 or low precision, like mp_gemm (dtype_cd)
    enumerator :: MP_NODE_WRITES_EITHER = 128
  end enum

  !> Role of a tensor.
  enum, bind(c)  ! mp_tensor_role_t
    enumerator :: MP_TENSOR_ACTIVATION = 0
    !> an optimizer has its fp32 master and can keep a 16-bit copy
    enumerator :: MP_TENSOR_PARAMETER = 1
    !> read by the caller
    enumerator :: MP_TENSOR_OUTPUT = 2
  end enum

  !> Source of the converted tensor.
  enum, bind(c)  ! mp_cast_kind_t
    !> mp_cast, once for all readers
    enumerator :: MP_CAST_BY_KERNEL = 1
    !> The 16-bit copy of a parameter that the optimizer writes (mp_optimizer_desc.model): no
    !> kernel.
    enumerator :: MP_CAST_BY_MODEL_COPY = 2
  end enum

  !> Reason for the type of a node: fp32 if < 32, otherwise low precision.  node_because is the node
  !> in brackets.
  enum, bind(c)  ! mp_autocast_why_t
    !> MP_CAST_UNLISTED: on no list, or by level
    enumerator :: MP_WHY_UNLISTED = 1
    !> MP_CAST_DENY by list, pattern, node_class or level
    enumerator :: MP_WHY_DENY_LIST = 2
    !> downstream of an MP_CAST_DENY [that node]
    enumerator :: MP_WHY_DENY_UPSTREAM = 3
    !> tensor_amax of a tensor exceeds amax_limit
    enumerator :: MP_WHY_RANGE = 4
    !> node_depth exceeds depth_limit
    enumerator :: MP_WHY_DEPTH = 5
    !> MP_NODE_KEEP
    enumerator :: MP_WHY_KEPT = 6
    !> MP_NODE_ELSEWHERE
    enumerator :: MP_WHY_ELSEWHERE = 7
    !> MP_NODE_NO_LOW
    enumerator :: MP_WHY_NO_KERNEL = 8
    !> could be low precision, but none propagates to it
    enumerator :: MP_WHY_NO_ALLOW_NEARBY = 9
    !> reads and writes no MP_FP32 tensor
    enumerator :: MP_WHY_NOT_FLOAT = 10
    !> gate closed, see mp_autocast_result.gate
    enumerator :: MP_WHY_GATE = 11
    !> in an fp32 cluster [the member that requires fp32]
    enumerator :: MP_WHY_CLUSTER_FP32 = 12
    !> MP_CAST_ALLOW by list, node_class or level
    enumerator :: MP_WHY_ALLOW_LIST = 32
    !> INFER or CLEAR between two MP_CAST_ALLOW [the downstream one]
    enumerator :: MP_WHY_BETWEEN_ALLOW = 33
    !> Downstream of a low-precision node [that node], with MP_BF16 or MP_AUTOCAST_PYTORCH.
    enumerator :: MP_WHY_FOLLOWS_ALLOW = 34
    !> MP_CAST_CLEAR connected to a low-precision node [that node]
    enumerator :: MP_WHY_CLEAR_BESIDE_LOW = 35
    !> in a low-precision cluster [the member that caused it]
    enumerator :: MP_WHY_CLUSTER_LOW = 36
    !> cast to fp32 with only low-precision readers [the first]
    enumerator :: MP_WHY_CAST_ABSORBED = 37
    !> MP_CAST_ALLOW by mp_autocast_set_nodes
    enumerator :: MP_WHY_PATTERN = 38
  end enum

  !> Format of a report.
  enum, bind(c)  ! mp_autocast_form_t
    !> One line per node, "conv1/bn  FusedBatchNormV3  fp16  between conv1/conv and conv2/conv", and
    !> a summary.
    enumerator :: MP_AUTOCAST_TEXT = 0
    enumerator :: MP_AUTOCAST_JSON = 1
    !> for Graphviz: low precision green, fp32 red, casts on the edges
    enumerator :: MP_AUTOCAST_DOT = 2
  end enum

  !> Bits of mp_xent_desc_t.flags.
  enum, bind(c)  ! mp_xent_flags_t
    !> excludes rows whose label is `ignore_label`
    enumerator :: MP_XENT_IGNORE_LABEL = 1
  end enum

  !> Loss l(x, t) of one prediction x and its target t.
  enum, bind(c)  ! mp_loss_kind_t
    !> (x - t)^2
    enumerator :: MP_LOSS_MSE = 1
    !> |x - t|; derivative 0 at x = t
    enumerator :: MP_LOSS_L1 = 2
    !> -t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x))
    enumerator :: MP_LOSS_BCE_WITH_LOGITS = 3
  end enum

  !> Divisor of the sum of element losses.
  enum, bind(c)  ! mp_loss_reduction_t
    !> number of elements that are not ignored
    enumerator :: MP_LOSS_MEAN = 0
    !> 1
    enumerator :: MP_LOSS_SUM = 1
  end enum

  !> Bits of mp_loss_desc_t.flags.
  enum, bind(c)  ! mp_loss_flags_t
    !> excludes elements whose target is `ignore_target`
    enumerator :: MP_LOSS_IGNORE_TARGET = 1
  end enum

  !> Reduction of a window.
  enum, bind(c)  ! mp_pool_mode_t
    !> largest element; padding is excluded
    enumerator :: MP_POOL_MAX = 1
    !> sum / number of pixels in the padded image; padding is 0
    enumerator :: MP_POOL_AVG_INCLUDE_PAD = 2
    !> sum / number of pixels in the image
    enumerator :: MP_POOL_AVG_EXCLUDE_PAD = 3
  end enum

  !> Bits of mp_pool2d_desc_t.flags.
  enum, bind(c)  ! mp_pool_flags_t
    !> Rounds P and Q up, like ceil_mode of torch: the last window may extend beyond the padding, but
    !> starts inside the image or the padding before it.
    enumerator :: MP_POOL_CEIL = 1
  end enum

  !> Element-wise operation on a and b.
  enum, bind(c)  ! mp_pointwise_op_t
    !> z = a
    enumerator :: MP_POINTWISE_COPY = 1
    !> z = a + b
    enumerator :: MP_POINTWISE_ADD = 2
    !> z = a b
    enumerator :: MP_POINTWISE_MUL = 3
  end enum

  !> Cell type.
  enum, bind(c)  ! mp_rnn_cell_t
    enumerator :: MP_RNN_TANH = 1
    enumerator :: MP_RNN_RELU = 2
    !> gate order in the rows of the weights: i f g o
    enumerator :: MP_RNN_LSTM = 3
    !> gate order in the rows of the weights: r z n
    enumerator :: MP_RNN_GRU = 4
  end enum

  !> Bits of mp_rnn_desc_t.flags.
  enum, bind(c)  ! mp_rnn_flags_t
    enumerator :: MP_RNN_BIDIRECTIONAL = 1
    !> no biases; b_ih and b_hh are ignored
    enumerator :: MP_RNN_NO_BIAS = 2
    !> Replaces the input product of the first layer by x_t, which is added to every gate.  W_ih is
    !> ignored; input_size must equal hidden_size.
    enumerator :: MP_RNN_SKIP_INPUT = 4
    !> Applies the reset gate before the product, MP_RNN_GRU only: n = tanh(p_n + (r h) W_n^T + b_n).
    !> A time step then has two dependent products.
    !> Source: Cho et al. 2014; reset_after=False in TensorFlow and Keras.
    enumerator :: MP_RNN_RESET_FIRST = 8
    !> Adds the gradients of weights and biases to the previous values, for micro-batches.  With
    !> dtype_dw = MP_FP32 partial sums are not rounded to 16 bits.
    enumerator :: MP_RNN_ACCUMULATE = 16
  end enum

  !> Bits of mp_embedding_desc_t.flags.
  enum, bind(c)  ! mp_embedding_flags_t
    !> Makes the gradient of row `padding_index` 0.  The forward pass reads that row like any other,
    !> as in torch.
    enumerator :: MP_EMBEDDING_PADDING = 1
    !> Adds the gradient to the previous value, for micro-batches or a table that is used twice.
    !> With dtype_dtable = MP_FP32 partial sums are not rounded to 16 bits.
    enumerator :: MP_EMBEDDING_ACCUMULATE = 2
  end enum

  !> Mode of a forward pass.
  enum, bind(c)  ! mp_graph_mode_t
    !> BatchNorm uses its states, Dropout is the identity.  The loss and tensors that depend on it
    !> are computed only if labels or target are bound.
    enumerator :: MP_GRAPH_INFERENCE = 0
    !> Prepares mp_graph_backward, which computes the loss together with its gradient, and tensors
    !> that depend on the loss.
    enumerator :: MP_GRAPH_TRAINING = 1
  end enum

  !> Policies of other systems, with their defaults.  S is equal to theirs after every step while S
  !> is a finite fp32 number.  All are MP_SCALER_BACKOFF except the first and the last; the returned
  !> configuration can be modified.
  !>
  !> Differences at the limits: Megatron, DeepSpeed and Keras 3 let S grow beyond the finite numbers,
  !> after which every step is lost; here S stops.  Apex raises an error at S = 0, and DeepSpeed's
  !> DynamicLossScaler at an overflow with S = 1; here S stays.
  enum, bind(c)  ! mp_scaler_preset_t
    !> This library's lognormal policy: mp_scaler_config_default(MP_SCALER_LOGNORMAL).
    enumerator :: MP_SCALER_PRESET_LOGNORMAL = 0
    !> torch.amp.GradScaler.  Initial S 2^16, interval 2000, no limits.
    enumerator :: MP_SCALER_PRESET_TORCH = 1
    !> apex.amp LossScaler, apex/amp/scaler.py (removed from Apex in 2025).  Initial S 2^16, interval
    !> 2000, no minimum, maximum 2^24.
    enumerator :: MP_SCALER_PRESET_APEX_AMP = 2
    !> Apex csrc/update_scale_hysteresis.cu: torch's rule, but S backs off only after 2 overflows
    !> without a clean step between them.  The kernel has no defaults; the preset uses torch's, and
    !> Megatron's hysteresis of 2.
    enumerator :: MP_SCALER_PRESET_APEX_HYSTERESIS = 3
    !> Megatron-LM DynamicGradScaler, core/optimizer/grad_scaler.py.  Initial S 2^32, interval 1000,
    !> minimum 1, hysteresis 2, refilled when S grows.
    enumerator :: MP_SCALER_PRESET_MEGATRON = 4
    !> DeepSpeed DynamicLossScaler, runtime/fp16/loss_scaler.py (ZeRO), with the defaults of the
    !> "fp16" section of its configuration: initial S 2^16, interval 1000, minimum 1, hysteresis 2.
    !> For consecutive_hysteresis set MP_SCALER_REFILL_EACH_STEP.
    enumerator :: MP_SCALER_PRESET_DEEPSPEED = 5
    !> DeepSpeed FP16_Optimizer, runtime/fp16/fused_optimizer.py (without ZeRO).  Like
    !> MP_SCALER_PRESET_DEEPSPEED without hysteresis, but the first growth takes 1001 clean steps.
    enumerator :: MP_SCALER_PRESET_DEEPSPEED_FUSED = 6
    !> tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  Initial S 2^15, interval
    !> 2000, minimum 1.
    enumerator :: MP_SCALER_PRESET_KERAS = 7
    !> keras.optimizers.LossScaleOptimizer of Keras 3.  Initial S 2^15, interval 2000, no limits.
    enumerator :: MP_SCALER_PRESET_KERAS_3 = 8
    !> OpenSeq2Seq BackoffScaler, optimizers/automatic_loss_scaler.py.  Initial S 2^14, interval
    !> 2000, minimum 1, maximum 2^14.
    enumerator :: MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF = 9
    !> OpenSeq2Seq LogMaxScaler: MP_SCALER_LOGMAX.  Initial S 1, minimum 1, maximum 2^14.
    enumerator :: MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX = 10
  end enum

  !> Device memory allocator.  Called only by mp_*_create, mp_*_destroy, mp_graph_compile and
  !> mp_graph_set_batch.  If a callback throws a C++ exception, the call returns
  !> MP_ERROR_OUT_OF_MEMORY; mp_*_destroy logs an error instead.
  type, bind(c) :: mp_allocator_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> Returns 256-byte aligned memory, or NULL if out of memory.
    type(c_funptr) :: alloc = c_null_funptr
    !> Frees memory that enqueued work may still be using.
    type(c_funptr) :: free = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
  end type

  !> Device of a context and limits on its use.
  type, bind(c) :: mp_context_config_t
    integer(c_int32_t) :: struct_size = 24_c_int32_t
    !> CUDA ordinal or MP_DEVICE_*
    integer(c_int32_t) :: device = 0_c_int32_t
    !> maximum number of SMs, e.g. to leave room for NCCL; 0 = all
    integer(c_int32_t) :: sm_limit = 0_c_int32_t
    !> must be 0
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> Host, copied; NULL = cudaMalloc and cudaFree.
    type(c_ptr) :: allocator = c_null_ptr
  end type

  !> Device properties.
  type, bind(c) :: mp_device_info_t
    integer(c_int32_t) :: struct_size = 96_c_int32_t
    integer(c_int) :: target = 0
    !> 80, 90, ...
    integer(c_int32_t) :: arch = 0_c_int32_t
    !> SMs in use, at most sm_limit
    integer(c_int32_t) :: num_sms = 0_c_int32_t
    !> bytes of shared memory that a kernel may opt in to
    integer(c_int64_t) :: smem_per_block = 0_c_int64_t
    integer(c_int64_t) :: l2_bytes = 0_c_int64_t
    !> NUL-terminated
    character(kind=c_char) :: name(64) = c_null_char
  end type

  !> Operations on the fp32 accumulators before they are rounded and stored, in this order:
  !>
  !>     z = alpha * *scale * acc + beta * C + bias[col]
  !>     aux = z                     (if aux != NULL and the activation is not a D* kind)
  !>     y = activation(z)           (or z * activation'(aux) for the D* kinds)
  !>     D = round(y)
  !>     dbias[col] = sum_rows D,  amax = max(amax, |D|),  found_inf |= !isfinite(D)
  !>
  !> If alpha * *scale is 0, the first term is 0 for any acc, as in BLAS.
  !>
  !> Every activation propagates NaN.  Both forms of gelu and silu map -infinity to -0, their limit.
  !> The exact form of gelu has an error of at most 6 ulp, for negative results too, and gives the
  !> same bits on every device.
  !>
  !> dbias, amax and found_inf use y *after* rounding to the type of D, because overflow happens in
  !> that rounding.  dbias also sums over batch items, in fp32 and in a fixed order.  It is computed
  !> by a second pass over D or, on Hopper with a workspace of an eighth of D's size, from partial
  !> sums of 16 rows that the kernel writes.  All pointers are device pointers and optional.
  type, bind(c) :: mp_epilogue_t
    integer(c_int32_t) :: struct_size = 72_c_int32_t
    integer(c_int) :: activation = 0
    !> 1 float; multiplies alpha, e.g. mp_scaler_inv_scale()
    type(c_ptr) :: scale = c_null_ptr
    !> n elements
    type(c_ptr) :: bias = c_null_ptr
    integer(c_int) :: bias_dtype = 0
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> m x n, type and batch layout of D; written, or read by MP_ACT_D*
    type(c_ptr) :: aux = c_null_ptr
    !> 0 = ldd
    integer(c_int64_t) :: ld_aux = 0_c_int64_t
    !> n floats, overwritten; zeros if m or batch_count is 0
    type(c_ptr) :: dbias = c_null_ptr
    !> 1 float, updated; clear it first
    type(c_ptr) :: amax = c_null_ptr
    !> 1 float, set to 1 and never cleared (sticky)
    type(c_ptr) :: found_inf = c_null_ptr
  end type

  !> Shape, types and layout of a GEMM.  A descriptor contains no data pointers, so it can be reused
  !> and serves as the key for workspace queries and kernel selection.
  type, bind(c) :: mp_gemm_desc_t
    integer(c_int32_t) :: struct_size = 128_c_int32_t
    integer(c_int) :: op_a = 0
    integer(c_int) :: op_b = 0
    !> MP_FP16, MP_BF16: tensor cores; MP_FP32: CUDA cores
    integer(c_int) :: dtype_ab = 0
    !> any type, independent of dtype_ab
    integer(c_int) :: dtype_cd = 0
    real(c_float) :: alpha = 0.0_c_float
    real(c_float) :: beta = 0.0_c_float
    !> Number of products, >= 0.  batch_count = 0 with alpha = 0 is an error: it indicates a
    !> descriptor that mp_gemm_desc_init has not initialized.
    integer(c_int32_t) :: batch_count = 0_c_int32_t
    !> op(A) is m x k, op(B) is k x n, C and D are m x n
    integer(c_int64_t) :: m = 0_c_int64_t
    !> op(A) is m x k, op(B) is k x n, C and D are m x n
    integer(c_int64_t) :: n = 0_c_int64_t
    !> op(A) is m x k, op(B) is k x n, C and D are m x n
    integer(c_int64_t) :: k = 0_c_int64_t
    integer(c_int64_t) :: lda = 0_c_int64_t
    integer(c_int64_t) :: ldb = 0_c_int64_t
    integer(c_int64_t) :: ldc = 0_c_int64_t
    integer(c_int64_t) :: ldd = 0_c_int64_t
    !> Elements between batch items.  0 for a or b: all items share one matrix.
    integer(c_int64_t) :: stride_a = 0_c_int64_t
    !> Elements between batch items.  0 for a or b: all items share one matrix.
    integer(c_int64_t) :: stride_b = 0_c_int64_t
    !> Elements between batch items.  0 for a or b: all items share one matrix.
    integer(c_int64_t) :: stride_c = 0_c_int64_t
    !> Elements between batch items.  0 for a or b: all items share one matrix.
    integer(c_int64_t) :: stride_d = 0_c_int64_t
    !> host; NULL = automatic; see mpcore/experimental.h
    type(c_ptr) :: kernel = c_null_ptr
  end type

  !> One product of mp_gemm_grouped: shape and matrices, as in mp_gemm.
  type, bind(c) :: mp_gemm_group_item_t
    !> in an array, also the distance between elements, in bytes
    integer(c_int32_t) :: struct_size = 96_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    integer(c_int64_t) :: m = 0_c_int64_t
    integer(c_int64_t) :: n = 0_c_int64_t
    integer(c_int64_t) :: k = 0_c_int64_t
    integer(c_int64_t) :: lda = 0_c_int64_t
    integer(c_int64_t) :: ldb = 0_c_int64_t
    integer(c_int64_t) :: ldc = 0_c_int64_t
    integer(c_int64_t) :: ldd = 0_c_int64_t
    !> device
    type(c_ptr) :: A = c_null_ptr
    !> device
    type(c_ptr) :: B = c_null_ptr
    !> device
    type(c_ptr) :: C = c_null_ptr
    !> device
    type(c_ptr) :: D = c_null_ptr
  end type

  !> Shape, types and layout of a convolution.  Names follow the CUTLASS documentation:
  !>
  !>     x, dx    activations  N H W C            dense, C contiguous
  !>     y, dy    outputs      N P Q K
  !>     filter   weights      K R S (C/groups)
  !>
  !>     P = (pad_top + H + pad_bottom - dilation_h (R - 1) - 1) / stride_h + 1   (rounded down)
  !>     y[n][p][q][k] = sum over r, s, c of  filter[k][r][s][c]
  !>         x[n][p stride_h - pad_top + r dilation_h][q stride_w - pad_left + s dilation_w][c]
  !>
  !> Q is computed like P; x is 0 outside the image.  This is cross-correlation, which deep learning
  !> calls convolution.  Output channel k belongs to group k / (K/groups) and reads only the input
  !> channels of that group.  A 1-D convolution has h = r = 1.  If the filter is larger than the
  !> padded image, P or Q is 0: y is empty and contributes no gradient.
  type, bind(c) :: mp_conv2d_desc_t
    integer(c_int32_t) :: struct_size = 96_c_int32_t
    !> type of both inputs; 16-bit: tensor cores; MP_FP32: CUDA cores
    integer(c_int) :: dtype = 0
    !> type of the output: any, independent of dtype
    integer(c_int) :: dtype_out = 0
    !> >= 0
    integer(c_int32_t) :: n = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: h = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: w = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: c = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: k = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: r = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: s = 0_c_int32_t
    !> rows, columns of zeros; >= 0
    integer(c_int32_t) :: pad_top = 0_c_int32_t
    !> rows, columns of zeros; >= 0
    integer(c_int32_t) :: pad_bottom = 0_c_int32_t
    !> rows, columns of zeros; >= 0
    integer(c_int32_t) :: pad_left = 0_c_int32_t
    !> rows, columns of zeros; >= 0
    integer(c_int32_t) :: pad_right = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: stride_h = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: stride_w = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: dilation_h = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: dilation_w = 0_c_int32_t
    !> divides c and k; groups = c: depthwise
    integer(c_int32_t) :: groups = 0_c_int32_t
    !> out = alpha * conv + beta * out; alpha = 0: inputs are not read
    real(c_float) :: alpha = 0.0_c_float
    !> out = alpha * conv + beta * out; alpha = 0: inputs are not read
    real(c_float) :: beta = 0.0_c_float
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> host; NULL = automatic; see mpcore/experimental.h
    type(c_ptr) :: kernel = c_null_ptr
  end type

  !> Addresses, sizes and types of `count` dense tensors.  All arrays are host, copied.
  type, bind(c) :: mp_tensor_list_desc_t
    integer(c_int32_t) :: struct_size = 40_c_int32_t
    !> type of all tensors, if `dtypes` is NULL
    integer(c_int) :: dtype = 0
    integer(c_int32_t) :: count = 0_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> `count` device pointers, aligned to the element size.  NULL if numel is 0, or in the model
    !> list of an optimizer.  Tensors may overlap in a list that is only read; every call that writes
    !> to the list rejects overlaps with MP_ERROR_INVALID_ARGUMENT.
    type(c_ptr) :: data = c_null_ptr
    !> `count` sizes in elements, each >= 0 and in total less than 2^40.
    type(c_ptr) :: numel = c_null_ptr
    !> One type per tensor, optional, e.g. for layers that stay in fp32.
    type(c_ptr) :: dtypes = c_null_ptr
  end type

  !> Counts of special values in one tensor or in a list.  Kernels write reports into device memory,
  !> so the struct has no struct_size and is 64 bytes in every version.
  type, bind(c) :: mp_tensor_report_t
    integer(c_int64_t) :: numel = 0_c_int64_t
    integer(c_int64_t) :: num_nan = 0_c_int64_t
    integer(c_int64_t) :: num_inf = 0_c_int64_t
    !> zeros of either sign
    integer(c_int64_t) :: num_zero = 0_c_int64_t
    !> 0 < |x| < 2^-14, for every type: fp16 stores such values with fewer
    !> significant bits, or as 0
    integer(c_int64_t) :: num_subnormal = 0_c_int64_t
    !> Index of the first tensor that contains NaN or infinity, and of the first such element in it;
    !> -1 if there is none.
    integer(c_int64_t) :: bad_tensor = 0_c_int64_t
    !> Index of the first tensor that contains NaN or infinity, and of the first such element in it;
    !> -1 if there is none.
    integer(c_int64_t) :: bad_element = 0_c_int64_t
    !> value of that element; 0 if there is none
    real(c_float) :: bad_value = 0.0_c_float
    !> result of mp_amax
    real(c_float) :: amax = 0.0_c_float
  end type

  !> Outputs of mp_tensor_stats.  Every pointer is device memory and optional, and receives the
  !> result of mp_check_nonfinite, mp_amax, mp_l2norm or mp_inspect.
  type, bind(c) :: mp_stats_outputs_t
    !> MP_INIT_STRUCT: no output is requested
    integer(c_int32_t) :: struct_size = 64_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    type(c_ptr) :: found_inf = c_null_ptr
    !> 1 float; count floats
    type(c_ptr) :: amax = c_null_ptr
    !> 1 float; count floats
    type(c_ptr) :: tensor_amax = c_null_ptr
    !> 1 float; count floats
    type(c_ptr) :: norm = c_null_ptr
    !> 1 float; count floats
    type(c_ptr) :: tensor_norm = c_null_ptr
    !> 1 report; count reports.  Counting makes the pass slower.
    type(c_ptr) :: report = c_null_ptr
    !> 1 report; count reports.  Counting makes the pass slower.
    type(c_ptr) :: tensor_reports = c_null_ptr
  end type

  !> Parameters of a policy.  "backoff", "lognormal" and "logmax" name the policies that read a
  !> field.  Factors and decays are double, so that 0.99 is equal to Python's 0.99.
  type, bind(c) :: mp_scaler_config_t
    integer(c_int32_t) :: struct_size = 88_c_int32_t
    integer(c_int) :: policy = 0
    !> bitwise or of mp_scaler_flags_t
    integer(c_int32_t) :: flags = 0_c_int32_t
    real(c_float) :: init_scale = 0.0_c_float
    !> Limits of S, > 0; may be below 1.  For backoff, 0 disables a limit.  Without min_scale, S may
    !> become 0.  If 1/S is infinite, mp_scale_step updates nothing (MP_STEP_NO_SCALE) and the status
    !> becomes MP_SCALER_DIVERGED.
    real(c_float) :: min_scale = 0.0_c_float
    !> Limits of S, > 0; may be below 1.  For backoff, 0 disables a limit.  Without min_scale, S may
    !> become 0.  If 1/S is infinite, mp_scale_step updates nothing (MP_STEP_NO_SCALE) and the status
    !> becomes MP_SCALER_DIVERGED.
    real(c_float) :: max_scale = 0.0_c_float
    !> backoff; > 1
    real(c_double) :: growth_factor = 0.0_c_double
    !> backoff, lognormal; in (0, 1)
    real(c_double) :: backoff_factor = 0.0_c_double
    !> lognormal, logmax; in [0, 1)
    real(c_double) :: beta1 = 0.0_c_double
    !> lognormal, logmax; in [0, 1)
    real(c_double) :: beta2 = 0.0_c_double
    !> lognormal: log2 of the largest finite gradient; logmax: compat.h
    real(c_float) :: log2_max = 0.0_c_float
    !> lognormal, logmax; 3.09 is the normal quantile of 0.999
    real(c_float) :: overflow_std_dev = 0.0_c_float
    !> lognormal; in bits
    real(c_float) :: sigma_floor = 0.0_c_float
    !> >= 1; clean steps per growth of S or per bit of h
    integer(c_int32_t) :: growth_interval = 0_c_int32_t
    !> backoff; overflows per backoff, >= 1
    integer(c_int32_t) :: hysteresis = 0_c_int32_t
    !> Number of consecutive skipped steps after which the status is MP_SCALER_DIVERGED and S stays
    !> until a step is clean; 0 = never.  No S helps against a NaN of the forward pass, and lowering
    !> S further would end at min_scale or 0.
    integer(c_int32_t) :: diverged_after = 0_c_int32_t
    !> updates kept for mp_scaler_get_history_sync; at most 2^24
    integer(c_int32_t) :: history = 0_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
  end type

  !> State of a scaler, as saved in checkpoints.  Plain data that can be written to a file unchanged,
  !> to be read on machines of the same byte order.
  type, bind(c) :: mp_scaler_state_t
    integer(c_int32_t) :: struct_size = 112_c_int32_t
    integer(c_int) :: policy = 0
    real(c_float) :: scale = 0.0_c_float
    !> clean steps counted towards growth_interval; -1: the next one is not
    !> counted (MP_SCALER_FIRST_STEP_UNCOUNTED)
    integer(c_int32_t) :: growth_tracker = 0_c_int32_t
    !> overflows until S backs off; 0: every one backs off
    integer(c_int32_t) :: hysteresis_left = 0_c_int32_t
    !> lognormal, logmax: decay beta1, not bias-corrected
    real(c_float) :: log2_mean = 0.0_c_float
    !> lognormal, logmax: decay beta2
    real(c_float) :: log2_mean_slow = 0.0_c_float
    !> lognormal, logmax: decay beta2
    real(c_float) :: log2_square_slow = 0.0_c_float
    !> lognormal: h, bits
    real(c_float) :: headroom = 0.0_c_float
    integer(c_int) :: status = 0
    !> lognormal, logmax: beta1^steps, for bias correction
    real(c_double) :: beta1_power = 0.0_c_double
    real(c_double) :: beta2_power = 0.0_c_double
    !> updates so far
    integer(c_int64_t) :: steps = 0_c_int64_t
    !> skipped steps: overflows + out_of_range + no_scale
    integer(c_int64_t) :: skipped = 0_c_int64_t
    !> overflows with a NaN gradient (amax was NaN)
    integer(c_int64_t) :: skipped_nan = 0_c_int64_t
    !> skips since the last clean step
    integer(c_int64_t) :: skipped_in_row = 0_c_int64_t
    !> Skips per outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE.
    integer(c_int64_t) :: overflows = 0_c_int64_t
    !> Skips per outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE.
    integer(c_int64_t) :: out_of_range = 0_c_int64_t
    !> Skips per outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE.
    integer(c_int64_t) :: no_scale = 0_c_int64_t
  end type

  !> Hyperparameters of one parameter group.  0 disables a limit or a regularizer.
  type, bind(c) :: mp_hyper_t
    !> in an array, also the distance between elements, in bytes
    integer(c_int32_t) :: struct_size = 72_c_int32_t
    !> >= 0
    real(c_float) :: lr = 0.0_c_float
    !> SGD, RMSProp: momentum; Adam, LAMB, NovoGrad
    real(c_float) :: beta1 = 0.0_c_float
    !> Adam, LAMB, NovoGrad, RMSProp
    real(c_float) :: beta2 = 0.0_c_float
    !> > 0; SGD with MP_OPT_LARC or MP_OPT_LARS: >= 0
    real(c_float) :: eps = 0.0_c_float
    !> >= 0
    real(c_float) :: weight_decay = 0.0_c_float
    !> SGD, NovoGrad
    real(c_float) :: dampening = 0.0_c_float
    !> SGD with MP_OPT_LARC or MP_OPT_LARS: > 0
    real(c_float) :: trust = 0.0_c_float
    !> g *= min(1, max_tensor_norm / (|g| + 1e-6))
    real(c_float) :: max_tensor_norm = 0.0_c_float
    !> g = clamp(g, -max_value, max_value)
    real(c_float) :: max_value = 0.0_c_float
    !> >= 0; g += l1 sign(w), sign(0) = 0: the gradient of l1 sum |w|
    real(c_float) :: l1 = 0.0_c_float
    !> >= 0; g += 2 l2 w: the gradient of l2 sum w^2
    real(c_float) :: l2 = 0.0_c_float
    integer(c_int) :: lr_schedule = 0
    !> >= 0; 0 = none
    integer(c_int32_t) :: warmup_steps = 0_c_int32_t
    !> polynomial, cosine, exponential: >= 1
    integer(c_int32_t) :: decay_steps = 0_c_int32_t
    !> polynomial: > 0
    real(c_float) :: decay_power = 0.0_c_float
    !> exponential: > 0
    real(c_float) :: decay_rate = 0.0_c_float
    !> polynomial, cosine, exponential: >= 0, in the unit of lr
    real(c_float) :: lr_end = 0.0_c_float
  end type

  !> Update rule, hyperparameters and tensors of an optimizer.
  !>
  !> The lists are parallel: equal counts and sizes.  Lists and tensors must outlive the optimizer.
  !> Written lists (master, model, m, v) may not overlap any other: mp_optimizer_create rejects a
  !> list, or the address of a tensor, that occurs twice, except in grads and extra_grads.
  !>
  !> m and v are usually NULL.  mp_optimizer_create then allocates those that the groups need, filled
  !> with 0, by the context's allocator; see mp_optimizer_moments.  If you pass m or v, initialize
  !> its tensors yourself.
  type, bind(c) :: mp_optimizer_desc_t
    integer(c_int32_t) :: struct_size = 104_c_int32_t
    integer(c_int) :: kind = 0
    !> bitwise or of mp_optimizer_flags_t
    integer(c_int32_t) :: flags = 0_c_int32_t
    integer(c_int32_t) :: num_groups = 0_c_int32_t
    !> host, num_groups elements, copied
    type(c_ptr) :: groups = c_null_ptr
    !> host, one index per tensor; NULL = all in group 0
    type(c_ptr) :: tensor_group = c_null_ptr
    !> any type; only read
    type(c_ptr) :: grads = c_null_ptr
    !> MP_FP32; updated
    type(c_ptr) :: master = c_null_ptr
    !> 16-bit copy of master, written; optional.  Parameters with a
    !> NULL data pointer have no 16-bit copy
    type(c_ptr) :: model = c_null_ptr
    !> MP_FP32: momentum or first moment.  NULL: allocated, except for
    !> SGD and RMSProp if every group has beta1 = 0.  Adagrad: NULL
    type(c_ptr) :: m = c_null_ptr
    !> MP_FP32: second moment.  NULL: allocated.  SGD: NULL.
    !> NovoGrad: as many tensors, of one element each
    type(c_ptr) :: v = c_null_ptr
    !> Device, one float per tensor, optional; NULL = all 1.  Every step reads them: they may be
    !> rewritten in stream order and must outlive the optimizer.
    !>
    !> lr_multipliers multiply lr; 0 freezes a tensor, but its m and v are still updated.
    !> decay_multipliers multiply weight_decay, l1 and l2.
    type(c_ptr) :: lr_multipliers = c_null_ptr
    !> Device, one float per tensor, optional; NULL = all 1.  Every step reads them: they may be
    !> rewritten in stream order and must outlive the optimizer.
    !>
    !> lr_multipliers multiply lr; 0 freezes a tensor, but its m and v are still updated.
    !> decay_multipliers multiply weight_decay, l1 and l2.
    type(c_ptr) :: decay_multipliers = c_null_ptr
    !> MP_FP32, parallel to the other lists, optional: added to g after unscaling and clipping, e.g.
    !> the gradient of a custom penalty.  Every step reads it without checking it: an element whose
    !> extra gradient is infinite keeps its weight (mp_step_options.rejected_updates).
    type(c_ptr) :: extra_grads = c_null_ptr
    !> for MP_OPT_STOCHASTIC_ROUNDING; any value
    integer(c_int64_t) :: rounding_seed = 0_c_int64_t
  end type

  !> Rounding of fp32 master weights to their 16-bit copy.
  type, bind(c) :: mp_model_options_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> MP_OPT_MODEL_OVERFLOW, MP_OPT_STOCHASTIC_ROUNDING
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> for MP_OPT_STOCHASTIC_ROUNDING, as in mp_optimizer_desc_t
    integer(c_int64_t) :: rounding_seed = 0_c_int64_t
    !> Device, 1 integer, for MP_OPT_STOCHASTIC_ROUNDING: number of updates of the weights so far.
    !> With an optimizer of this library: mp_optimizer_step_counter after its step.
    type(c_ptr) :: t = c_null_ptr
    !> see mp_step_options.model_overflows
    type(c_ptr) :: overflows = c_null_ptr
  end type

  !> Communicator: a table of callbacks, so that the library links no communication library.
  !> mp_comm_init_nccl fills it for NCCL, bindings/mpi/mpcore_mpi.h for MPI on the host target.
  !>
  !> Callbacks run on the calling thread, during the call that received the communicator.  They
  !> enqueue on `stream` (on the host target: return after completion), receive `user` as the last
  !> argument, may call mpcore, and return 0.  Any other return value, or a C++ exception, ends the
  !> call with MP_ERROR_COMM.
  !>
  !> A call with a communicator is collective: all ranks make it, in the same order, with equal
  !> numbers of elements, types and flags.  Equality is not validated: a mismatch may deadlock,
  !> return an MPI error on some ranks, or give wrong sums.
  !>
  !> As with every collective, a rank whose call fails leaves the others waiting: in the same call
  !> or, if they have received all of its data, in the next one.  A call that is rejected (status
  !> below 40) has not communicated.  Weights and S of waiting ranks are those before the call.  A
  !> program should check every status and end all ranks (MPI_Abort) if one is not MP_SUCCESS; for
  !> alternatives see docs/multi-gpu.md.
  type, bind(c) :: mp_comm_t
    integer(c_int32_t) :: struct_size = 48_c_int32_t
    !> 0 to world_size - 1
    integer(c_int32_t) :: rank = 0_c_int32_t
    !> >= 1; with 1, no callback is called and all may be NULL
    integer(c_int32_t) :: world_size = 0_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> Reduces `send` over all ranks into `recv`, with the same bits on every rank.  Device pointers;
    !> recv may be send.
    type(c_funptr) :: all_reduce = c_null_funptr
    !> optional, with group_end: begins a batch of all_reduce calls
    type(c_funptr) :: group_begin = c_null_funptr
    !> ends the batch, also if an all_reduce failed
    type(c_funptr) :: group_end = c_null_funptr
    !> passed to the callbacks, e.g. the ncclComm_t
    type(c_ptr) :: user = c_null_ptr
  end type

  !> Options and additional outputs of a step.
  type, bind(c) :: mp_step_options_t
    integer(c_int32_t) :: struct_size = 96_c_int32_t
    !> bitwise or of mp_step_flags_t
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> limit of the unscaled global norm; 0 = no clipping
    real(c_float) :: max_grad_norm = 0.0_c_float
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> device, 1 float, optional: unscaled norm before clipping
    type(c_ptr) :: grad_norm = c_null_ptr
    !> device, 1 float, optional: 1 if this step was skipped, else 0
    type(c_ptr) :: found_inf = c_null_ptr
    !> device, 1 float per tensor, optional: like grad_norm
    type(c_ptr) :: tensor_norms = c_null_ptr
    !> Device, 1 float, for MP_STEP_CHECKED: largest |gradient| as measured, like `amax` of
    !> mp_scaler_update and required by the same policies.  Infinity or NaN skips the step.  Read but
    !> not cleared: clear it before the epilogues of the next step update it.
    type(c_ptr) :: amax = c_null_ptr
    !> Device, 1 report and 1 per tensor, optional: mp_inspect of the gradients, still multiplied by
    !> S.  Also written if the step is skipped.  Every rank reports on its own gradients.
    type(c_ptr) :: report = c_null_ptr
    !> Device, 1 report and 1 per tensor, optional: mp_inspect of the gradients, still multiplied by
    !> S.  Also written if the step is skipped.  Every rank reports on its own gradients.
    type(c_ptr) :: tensor_reports = c_null_ptr
    !> Device, 1 integer, optional: increased by the number of weights whose 16-bit copy exceeded the
    !> largest finite value after rounding, whether clamped or infinite; clear it first.  NaN is not
    !> counted.
    type(c_ptr) :: model_overflows = c_null_ptr
    !> Host, optional: the step is taken by several ranks, with the same decision on all.  If their
    !> scalers have equal initial states, S stays equal.  The call is collective (mp_comm_t), with
    !> the same flags on every rank.
    type(c_ptr) :: comm = c_null_ptr
    !> Device, 1 integer, optional: outcome of this step, an mp_step_outcome_t.
    type(c_ptr) :: outcome = c_null_ptr
    !> Device, 1 integer, optional: increased by the number of elements that kept their old weight
    !> and moments because a new one was not finite (see mp_scale_step); clear it first.
    type(c_ptr) :: rejected_updates = c_null_ptr
  end type

  !> Initial state of a policy.
  type, bind(c) :: mp_autocast_config_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    integer(c_int) :: preset = 0
    !> MP_FP16 or MP_BF16
    integer(c_int) :: low = 0
    integer(c_int) :: level = 0
    !> mp_autocast_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> Limit of |x|, >= 0; 0 = no limit.  A node that reads or writes a tensor with a larger
    !> mp_autocast_graph.tensor_amax is MP_CAST_DENY.  65504 / 64 leaves fp16 a headroom of six
    !> bits.
    real(c_float) :: amax_limit = 0.0_c_float
    !> Limit of mp_autocast_graph.node_depth, >= 0; 0 = no limit.  A node that sums more terms is
    !> MP_CAST_DENY.
    integer(c_int64_t) :: depth_limit = 0_c_int64_t
  end type

  !> Graph to rewrite: flat arrays in host memory, read during the call.  Cycles are allowed.
  !> Optional arrays may be NULL, as if all elements were 0.  Initialize with MP_INIT_STRUCT.
  type, bind(c) :: mp_autocast_graph_t
    integer(c_int32_t) :: struct_size = 168_c_int32_t
    !> each at most 2^31 - 1
    integer(c_int32_t) :: num_nodes = 0_c_int32_t
    !> each at most 2^31 - 1
    integer(c_int32_t) :: num_tensors = 0_c_int32_t
    integer(c_int32_t) :: num_hidden_edges = 0_c_int32_t
    integer(c_int32_t) :: num_clusters = 0_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> names of operations; NULL elements require a node_class
    type(c_ptr) :: node_op = c_null_ptr
    !> optional: 1 + mp_autocast_class_t; 0 = class of node_op
    type(c_ptr) :: node_class = c_null_ptr
    !> optional, for patterns and reports; elements may be NULL
    type(c_ptr) :: node_name = c_null_ptr
    !> optional: mp_node_flags_t, or-ed
    type(c_ptr) :: node_flags = c_null_ptr
    !> optional: terms of a sum, e.g. k of a GEMM; 0 = unknown
    type(c_ptr) :: node_depth = c_null_ptr
    !> Inputs of node i are [first_input[i], first_input[i + 1]); num_nodes + 1 values, the first
    !> is 0.
    type(c_ptr) :: first_input = c_null_ptr
    !> tensor of each input; -1 = absent optional input
    type(c_ptr) :: input_tensor = c_null_ptr
    !> optional: slot of each input
    type(c_ptr) :: input_slot = c_null_ptr
    !> node that writes the tensor; -1 = outside the graph
    type(c_ptr) :: tensor_producer = c_null_ptr
    !> optional: slot of the producer that writes the tensor
    type(c_ptr) :: tensor_slot = c_null_ptr
    !> mp_dtype_t: MP_FP32 may become low precision, MP_FP16 and MP_BF16 stay; MP_DTYPE_NONE is any
    !> other type.
    type(c_ptr) :: tensor_dtype = c_null_ptr
    !> optional: mp_tensor_role_t
    type(c_ptr) :: tensor_role = c_null_ptr
    !> optional: largest |x|, e.g. of mp_inspect; < 0, NaN = unknown
    type(c_ptr) :: tensor_amax = c_null_ptr
    !> Hidden edges, e.g. through a container or through state: precision propagates from slot 0 of
    !> hidden_src[i] to slot 0 of hidden_dst[i] without a tensor of this graph.
    type(c_ptr) :: hidden_src = c_null_ptr
    !> Hidden edges, e.g. through a container or through state: precision propagates from slot 0 of
    !> hidden_src[i] to slot 0 of hidden_dst[i] without a tensor of this graph.
    type(c_ptr) :: hidden_dst = c_null_ptr
    !> Clusters: members [first_member[i], first_member[i + 1]) have equal precision in slot 0;
    !> num_clusters + 1 values, the first is 0.
    type(c_ptr) :: first_member = c_null_ptr
    !> nodes of the clusters
    type(c_ptr) :: member = c_null_ptr
    !> Rule of each cluster, optional.  0, a container such as a list of tensors: fp32 if a member is
    !> MP_CAST_DENY or downstream of one, or has MP_NODE_KEEP, _ELSEWHERE or _NO_LOW; otherwise low
    !> precision if any member is, regardless of classes.  1, a loop: low precision if all members
    !> without MP_NODE_BACK_EDGE are and the others can be; otherwise fp32.
    type(c_ptr) :: cluster_kind = c_null_ptr
  end type

  !> Cast of a tensor.  Has no struct_size: 20 bytes in every version.
  type, bind(c) :: mp_autocast_cast_t
    integer(c_int32_t) :: tensor = 0_c_int32_t
    integer(c_int) :: from = 0
    integer(c_int) :: to = 0
    integer(c_int) :: kind = 0
    !> inputs that read the result, plus the caller with MP_AUTOCAST_KEEP_IO
    integer(c_int32_t) :: readers = 0_c_int32_t
  end type

  !> Result of mp_autocast_rewrite.  The arrays belong to the caller; each is optional.  Initialize
  !> with MP_INIT_STRUCT.
  !>
  !> Input j reads its tensor t as written, in type tensor_dtype[t], or the result of cast
  !> input_cast[j] if that is >= 0.  A tensor has at most one cast.
  !>
  !> MP_AUTOCAST_EMULATE requires more casts; `casts` must have room for 2 num_tensors + the number
  !> of inputs:
  !>
  !> - All tensors stay MP_FP32.
  !> - Each tensor that is read, and written or read by a low-precision node, has one cast to low
  !>   precision.
  !> - Casts back to fp32 read the result of that cast: one for each input of a low-precision node,
  !>   and one for all fp32 readers of a tensor written by a low-precision node.
  type, bind(c) :: mp_autocast_result_t
    integer(c_int32_t) :: struct_size = 72_c_int32_t
    !> out
    integer(c_int32_t) :: num_casts = 0_c_int32_t
    !> out
    integer(c_int32_t) :: num_low_nodes = 0_c_int32_t
    !> out: casts of kind MP_CAST_BY_MODEL_COPY
    integer(c_int32_t) :: num_parameters_low = 0_c_int32_t
    !> num_tensors: type that the producer writes
    type(c_ptr) :: tensor_dtype = c_null_ptr
    !> Type of each node, num_nodes: MP_FP32 or low precision, for slot 0, or for the lowest eligible
    !> slot if slot 0 is not eligible.  A node without eligible slots is MP_FP32, except in a
    !> low-precision container, e.g. an empty list of 16-bit tensors.
    type(c_ptr) :: node_dtype = c_null_ptr
    !> one per input: index into casts; -1 = no cast
    type(c_ptr) :: input_cast = c_null_ptr
    !> room for num_tensors; ordered by tensor
    type(c_ptr) :: casts = c_null_ptr
    !> num_nodes: mp_autocast_why_t
    type(c_ptr) :: node_why = c_null_ptr
    !> num_nodes: a node that caused the type, or -1
    type(c_ptr) :: node_because = c_null_ptr
    !> out: reason for a closed gate, static storage; NULL = open
    type(c_ptr) :: gate = c_null_ptr
  end type

  !> Shape and type of a classification loss.
  type, bind(c) :: mp_xent_desc_t
    integer(c_int32_t) :: struct_size = 56_c_int32_t
    !> type of logits and dlogits
    integer(c_int) :: dtype = 0
    !> samples, >= 0
    integer(c_int64_t) :: rows = 0_c_int64_t
    !> >= 1
    integer(c_int64_t) :: classes = 0_c_int64_t
    !> >= classes
    integer(c_int64_t) :: ld_logits = 0_c_int64_t
    !> >= classes
    integer(c_int64_t) :: ld_dlogits = 0_c_int64_t
    !> factor of loss and gradient: a task weight, or 1 / micro-batches
    real(c_float) :: weight = 0.0_c_float
    !> in [0, 1): part of each target, shared equally by all classes
    real(c_float) :: label_smoothing = 0.0_c_float
    !> mp_xent_flags_t, or-ed; 0 = every row counts
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> any value; read only with MP_XENT_IGNORE_LABEL
    integer(c_int32_t) :: ignore_label = 0_c_int32_t
  end type

  !> Size and types of an element-wise loss.
  type, bind(c) :: mp_loss_desc_t
    integer(c_int32_t) :: struct_size = 40_c_int32_t
    integer(c_int) :: kind = 0
    !> type of prediction and dprediction
    integer(c_int) :: dtype = 0
    !> type of target
    integer(c_int) :: dtype_target = 0
    !> elements, >= 0
    integer(c_int64_t) :: count = 0_c_int64_t
    !> factor of loss and gradient, as in mp_xent_desc_t
    real(c_float) :: weight = 0.0_c_float
    integer(c_int) :: reduction = 0
    !> mp_loss_flags_t, or-ed; 0 = every element counts
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> any value, NaN included; read only with MP_LOSS_IGNORE_TARGET
    real(c_float) :: ignore_target = 0.0_c_float
  end type

  !> Shape and type of a pooling layer:
  !>
  !>     x, dx    N H W C     dense, C contiguous
  !>     y, dy    N P Q C     P = (pad_top + H + pad_bottom - extent_h) / stride_h + 1 (rounded down)
  !>                          extent_h = dilation_h (window_h - 1) + 1
  !>
  !> Q likewise.  Every window contains at least one pixel, because padding must be smaller than the
  !> extent of the window, and dilation_h at most H if pad_top > 0 (dilation_w and W likewise).
  !>
  !> If the window is larger than the padded image, P or Q is 0: y is empty and dx is 0.  With
  !> MP_POOL_CEIL this requires an excess of a stride or more.
  type, bind(c) :: mp_pool2d_desc_t
    integer(c_int32_t) :: struct_size = 72_c_int32_t
    !> type of x, y, dy and dx; sums are fp32
    integer(c_int) :: dtype = 0
    integer(c_int) :: mode = 0
    !> >= 0
    integer(c_int32_t) :: n = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: h = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: w = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: c = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: window_h = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: window_w = 0_c_int32_t
    integer(c_int32_t) :: pad_top = 0_c_int32_t
    integer(c_int32_t) :: pad_bottom = 0_c_int32_t
    integer(c_int32_t) :: pad_left = 0_c_int32_t
    !> >= 0 and smaller than the window's extent
    integer(c_int32_t) :: pad_right = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: stride_h = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: stride_w = 0_c_int32_t
    !> mp_pool_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> distance between pixels of a window, >= 0; 0 = 1
    integer(c_int32_t) :: dilation_h = 0_c_int32_t
    !> distance between pixels of a window, >= 0; 0 = 1
    integer(c_int32_t) :: dilation_w = 0_c_int32_t
  end type

  !> Shape and options of a batch normalization.
  type, bind(c) :: mp_batchnorm_desc_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> type of x, y, dy and dx; everything else is fp32
    integer(c_int) :: dtype = 0
    !> >= 0; for images N H W
    integer(c_int64_t) :: rows = 0_c_int64_t
    !> >= 0; for images C
    integer(c_int32_t) :: channels = 0_c_int32_t
    !> MP_ACT_NONE or MP_ACT_RELU
    integer(c_int) :: activation = 0
    !> >= 0; with 0 a constant channel becomes NaN
    real(c_float) :: epsilon = 0.0_c_float
    !> weight of the batch in the running statistics, in [0, 1]
    real(c_float) :: momentum = 0.0_c_float
  end type

  !> Tensors of a batch normalization, device.  Each pass ignores the fields that it does not list.
  !> Initialize with MP_INIT_STRUCT.
  type, bind(c) :: mp_batchnorm_tensors_t
    integer(c_int32_t) :: struct_size = 104_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> rows x channels, dense
    type(c_ptr) :: x = c_null_ptr
    !> channels; NULL = 1 and 0
    type(c_ptr) :: gamma = c_null_ptr
    !> channels; NULL = 1 and 0
    type(c_ptr) :: beta = c_null_ptr
    !> channels
    type(c_ptr) :: running_mean = c_null_ptr
    !> channels
    type(c_ptr) :: running_var = c_null_ptr
    !> channels; written in training, read by backward
    type(c_ptr) :: saved_mean = c_null_ptr
    !> channels; written in training, read by backward
    type(c_ptr) :: saved_inv_std = c_null_ptr
    !> rows x channels, written
    type(c_ptr) :: y = c_null_ptr
    !> rows x channels
    type(c_ptr) :: dy = c_null_ptr
    !> rows x channels, written; may be dy
    type(c_ptr) :: dx = c_null_ptr
    !> channels, overwritten, optional; zeros if rows is 0
    type(c_ptr) :: dgamma = c_null_ptr
    !> channels, overwritten, optional; zeros if rows is 0
    type(c_ptr) :: dbeta = c_null_ptr
  end type

  !> Shape, types and operation of mp_pointwise:
  !>
  !>     a, y    rows x columns, dense
  !>     b       rows x columns with row stride ld_b, or one broadcast row (ld_b = 0), such as a bias
  !>
  !> If b is dense or not read, a tensor of any shape can be passed as one row.
  type, bind(c) :: mp_pointwise_desc_t
    integer(c_int32_t) :: struct_size = 48_c_int32_t
    integer(c_int) :: op = 0
    !> Applied to z.  The D* kinds require MP_POINTWISE_COPY and compute y = a activation'(b): a is
    !> the gradient of the activation's output, and b the activation's input.
    integer(c_int) :: activation = 0
    !> type of a and y
    integer(c_int) :: dtype = 0
    !> type of b
    integer(c_int) :: dtype_b = 0
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> >= 0
    integer(c_int64_t) :: rows = 0_c_int64_t
    !> >= 0
    integer(c_int64_t) :: columns = 0_c_int64_t
    !> >= columns; 0 = the first row of b for every row
    integer(c_int64_t) :: ld_b = 0_c_int64_t
  end type

  !> Shape and types of mp_column_sum.
  type, bind(c) :: mp_column_sum_desc_t
    integer(c_int32_t) :: struct_size = 40_c_int32_t
    !> type of x
    integer(c_int) :: dtype = 0
    !> type of sum
    integer(c_int) :: dtype_sum = 0
    !> factor of the previous sum; 1 accumulates over micro-batches
    real(c_float) :: beta = 0.0_c_float
    !> >= 0
    integer(c_int64_t) :: rows = 0_c_int64_t
    !> >= 0
    integer(c_int64_t) :: columns = 0_c_int64_t
    !> row stride of x in elements, >= columns
    integer(c_int64_t) :: ld = 0_c_int64_t
  end type

  !> Shape, types and layout of a recurrent network.
  type, bind(c) :: mp_rnn_desc_t
    integer(c_int32_t) :: struct_size = 96_c_int32_t
    integer(c_int) :: cell = 0
    !> mp_rnn_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> type of x, y, h, dx, dy, dh and weights; MP_FP32 = all is fp32
    integer(c_int) :: dtype = 0
    !> type of the weight gradients
    integer(c_int) :: dtype_dw = 0
    !> 1 to 65535
    integer(c_int32_t) :: layers = 0_c_int32_t
    !> elements of x_t, >= 1
    integer(c_int32_t) :: input_size = 0_c_int32_t
    !> elements of h, >= 1
    integer(c_int32_t) :: hidden_size = 0_c_int32_t
    !> sequences, >= 0
    integer(c_int32_t) :: batch = 0_c_int32_t
    !> time steps of the longest sequence, >= 0
    integer(c_int32_t) :: timesteps = 0_c_int32_t
    !> probability in [0, 1) that training zeroes an element between layers;
    !> the others are divided by 1 - dropout.  Also set
    !> mp_rnn_tensors_t.dropout_offset
    real(c_float) :: dropout = 0.0_c_float
    !> MP_RNN_LSTM: clamps c' to [-clip, clip]; 0 = no clipping
    real(c_float) :: clip = 0.0_c_float
    !> any value
    integer(c_int64_t) :: dropout_seed = 0_c_int64_t
    !> strides of x and dx between time steps and between sequences, in
    !> elements; 0 = dense [time step][sequence][element]
    integer(c_int64_t) :: x_step = 0_c_int64_t
    !> strides of x and dx between time steps and between sequences, in
    !> elements; 0 = dense [time step][sequence][element]
    integer(c_int64_t) :: x_row = 0_c_int64_t
    !> strides of y and dy, likewise
    integer(c_int64_t) :: y_step = 0_c_int64_t
    !> strides of y and dy, likewise
    integer(c_int64_t) :: y_row = 0_c_int64_t
    !> host; NULL = automatic; see mpcore/experimental.h
    type(c_ptr) :: kernel = c_null_ptr
  end type

  !> Weights of one layer and direction, device, dense:
  !>
  !>     w_ih          G hidden_size x I              G = 1, 3 or 4 gates
  !>     w_hh          G hidden_size x hidden_size    I = input_size in the first layer,
  !>     b_ih, b_hh    G hidden_size                      directions * hidden_size in the others
  type, bind(c) :: mp_rnn_weights_t
    type(c_ptr) :: w_ih = c_null_ptr
    type(c_ptr) :: w_hh = c_null_ptr
    type(c_ptr) :: b_ih = c_null_ptr
    type(c_ptr) :: b_hh = c_null_ptr
  end type

  !> Gradients of mp_rnn_weights_t, device, of the same shapes; each is optional.
  type, bind(c) :: mp_rnn_weight_grads_t
    type(c_ptr) :: w_ih = c_null_ptr
    type(c_ptr) :: w_hh = c_null_ptr
    type(c_ptr) :: b_ih = c_null_ptr
    type(c_ptr) :: b_hh = c_null_ptr
  end type

  !> Sizes derived from a descriptor, independent of strides and MP_RNN_ACCUMULATE.
  type, bind(c) :: mp_rnn_sizes_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> 1 or 2
    integer(c_int32_t) :: directions = 0_c_int32_t
    !> 1, 3 or 4
    integer(c_int32_t) :: gates = 0_c_int32_t
    !> layers * directions
    integer(c_int32_t) :: num_weights = 0_c_int32_t
    !> Bytes that a training step keeps from the forward to the backward pass.  Per time step,
    !> sequence, hidden unit, layer and direction: 14 for LSTM, 10 for GRU and 4 for plain cells, or
    !> 24, 20 and 8 with MP_FP32; in addition less than 256.
    integer(c_size_t) :: reserve_bytes = 0_c_size_t
    !> sufficient for each mp_rnn_* call
    integer(c_size_t) :: workspace_bytes = 0_c_size_t
  end type

  !> Tensors of the mp_rnn_* calls, device except where noted.  Each call ignores the fields that it
  !> does not list.  Initialize with MP_INIT_STRUCT.
  type, bind(c) :: mp_rnn_tensors_t
    integer(c_int32_t) :: struct_size = 176_c_int32_t
    !> length of `weights` and `weight_grads`: layers * directions
    integer(c_int32_t) :: num_weights = 0_c_int32_t
    !> host, read before the call returns; index layer * directions + direction
    type(c_ptr) :: weights = c_null_ptr
    !> Length of each sequence, batch values in [0, timesteps] in any order; NULL = timesteps.
    !> Elements of x and dy past the end of a sequence are not read; there y and dx are 0.  hn and cn
    !> are the states of its last time step, or h0 and c0 if its length is 0.  A length outside the
    !> range makes its sequence NaN.  Mutually exclusive with batch_sizes.
    type(c_ptr) :: lengths = c_null_ptr
    !> Number of sequences that have each time step, host, timesteps values, non-increasing; the
    !> longest sequence is first.  NULL = not packed.  x, y, dx and dy are then packed: the rows of a
    !> time step, x_row or y_row elements apart, directly follow those of the previous time step;
    !> x_step and y_step are ignored.
    type(c_ptr) :: batch_sizes = c_null_ptr
    !> Selects the dropout masks: 1 value, optional; NULL = 0.  Use a counter in device memory that
    !> changes in every training step, such as mp_optimizer_step_counter; otherwise all steps have
    !> equal masks.  A replayed CUDA graph reads its current value.  It must be the same in the
    !> passes of one step.
    type(c_ptr) :: dropout_offset = c_null_ptr
    !> timesteps x batch x input_size
    type(c_ptr) :: x = c_null_ptr
    !> layers x directions x batch x hidden_size, optional; NULL = 0
    type(c_ptr) :: h0 = c_null_ptr
    !> shape of h0, MP_RNN_LSTM, optional; NULL = 0
    type(c_ptr) :: c0 = c_null_ptr
    !> timesteps x batch x (directions * hidden_size), written
    type(c_ptr) :: y = c_null_ptr
    !> h after the last time step, shape of h0, written, optional; may be h0 in
    !> inference
    type(c_ptr) :: hn = c_null_ptr
    !> c after the last time step, likewise; may be c0 in inference
    type(c_ptr) :: cn = c_null_ptr
    !> data kept from forward to backward, 256-byte aligned
    type(c_ptr) :: reserve = c_null_ptr
    integer(c_size_t) :: reserve_bytes = 0_c_size_t
    !> shape of y
    type(c_ptr) :: dy = c_null_ptr
    !> shape of h0, optional; NULL = 0
    type(c_ptr) :: dhn = c_null_ptr
    !> shape of c0, optional; NULL = 0
    type(c_ptr) :: dcn = c_null_ptr
    !> shape of x, written, optional
    type(c_ptr) :: dx = c_null_ptr
    !> shape of h0, written, optional
    type(c_ptr) :: dh0 = c_null_ptr
    !> shape of c0, written, optional
    type(c_ptr) :: dc0 = c_null_ptr
    !> host, read before the call returns; indexed like `weights`
    type(c_ptr) :: weight_grads = c_null_ptr
    !> 1 float, optional: set to 1 and never cleared, see mp_epilogue_t
    type(c_ptr) :: found_inf = c_null_ptr
    !> 1 float, optional, updated: largest |gradient| of weights and biases
    type(c_ptr) :: amax = c_null_ptr
  end type

  !> Shape, types and layout of an embedding lookup.
  type, bind(c) :: mp_embedding_desc_t
    integer(c_int32_t) :: struct_size = 64_c_int32_t
    !> type of table, out and dout
    integer(c_int) :: dtype = 0
    !> type of the gradient
    integer(c_int) :: dtype_dtable = 0
    !> mp_embedding_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> indices, and rows of out and dout; 0 to 2^31 - 1
    integer(c_int64_t) :: rows = 0_c_int64_t
    !> rows of table and dtable, >= 1
    integer(c_int32_t) :: vocabulary = 0_c_int32_t
    !> in [0, vocabulary); read only with MP_EMBEDDING_PADDING
    integer(c_int32_t) :: padding_index = 0_c_int32_t
    !> elements of a row, >= 1
    integer(c_int64_t) :: width = 0_c_int64_t
    !> >= width
    integer(c_int64_t) :: ld_table = 0_c_int64_t
    !> row stride of out and dout, >= width
    integer(c_int64_t) :: ld_out = 0_c_int64_t
    !> >= width
    integer(c_int64_t) :: ld_dtable = 0_c_int64_t
  end type

  !> Size, type and options of a dropout.
  type, bind(c) :: mp_dropout_desc_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> type of x and y
    integer(c_int) :: dtype = 0
    !> elements, >= 0
    integer(c_int64_t) :: count = 0_c_int64_t
    !> any value; tensors with equal seed and offset have equal masks
    integer(c_int64_t) :: seed = 0_c_int64_t
    !> probability in [0, 1) that an element becomes 0
    real(c_float) :: p = 0.0_c_float
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
  end type

  !> Attribute of an operation.  Has no struct_size: 16 bytes in every version.
  type, bind(c) :: mp_graph_attribute_t
    type(c_ptr) :: name = c_null_ptr
    real(c_double) :: value = 0.0_c_double
  end type

  !> Shape, types and addresses of a tensor.
  type, bind(c) :: mp_graph_tensor_t
    integer(c_int32_t) :: struct_size = 120_c_int32_t
    !> type in memory
    integer(c_int) :: dtype = 0
    integer(c_int32_t) :: rank = 0_c_int32_t
    !> type of its cast or 16-bit copy; MP_DTYPE_NONE = none
    integer(c_int) :: dtype_copy = 0
    !> for the current batch
    integer(c_int64_t) :: extent(8) = 0_c_int64_t
    !> if read after mp_graph_compile, valid as long as the graph
    type(c_ptr) :: name = c_null_ptr
    !> device; NULL if other tensors share its memory or it is not computed
    type(c_ptr) :: data = c_null_ptr
    !> device, of type dtype_copy; NULL likewise
    type(c_ptr) :: copy = c_null_ptr
    !> device: gradient of a parameter or of mp_graph_keep_gradient; else NULL
    type(c_ptr) :: grad = c_null_ptr
    !> type of grad
    integer(c_int) :: dtype_grad = 0
    !> out: 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
  end type

  !> Device memory of a compiled graph, in bytes.  The sum of all fields without activations_alone is
  !> the allocated memory, except for tables of the lists.
  type, bind(c) :: mp_graph_memory_t
    integer(c_int32_t) :: struct_size = 64_c_int32_t
    !> out: 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> fp32
    integer(c_int64_t) :: parameters = 0_c_int64_t
    !> 16-bit copies of parameters
    integer(c_int64_t) :: copies = 0_c_int64_t
    !> gradients of parameters and of mp_graph_keep_gradient
    integer(c_int64_t) :: gradients = 0_c_int64_t
    !> states and constants
    integer(c_int64_t) :: states = 0_c_int64_t
    !> activations and their gradients, which reuse memory
    integer(c_int64_t) :: activations = 0_c_int64_t
    !> activations if no memory were reused; not part of the sum
    integer(c_int64_t) :: activations_alone = 0_c_int64_t
    integer(c_int64_t) :: workspace = 0_c_int64_t
  end type

  !> Checkpoint of torch.amp.GradScaler, from state_dict().  Fields are named like its keys, except
  !> "_growth_tracker".
  type, bind(c) :: mp_torch_scaler_t
    real(c_double) :: scale = 0.0_c_double
    real(c_double) :: growth_factor = 0.0_c_double
    real(c_double) :: backoff_factor = 0.0_c_double
    integer(c_int32_t) :: growth_interval = 0_c_int32_t
    integer(c_int32_t) :: growth_tracker = 0_c_int32_t
  end type

  !> Checkpoint of Megatron-LM's DynamicGradScaler, from state_dict().  Fields are named like its
  !> keys.
  type, bind(c) :: mp_megatron_scaler_t
    real(c_float) :: scale = 0.0_c_float
    integer(c_int32_t) :: growth_tracker = 0_c_int32_t
    !> negative after more overflows than hysteresis
    integer(c_int32_t) :: hysteresis_tracker = 0_c_int32_t
  end type

  !> Kernel, and its suitability for a problem.
  type, bind(c) :: mp_kernel_info_t
    integer(c_int32_t) :: struct_size = 40_c_int32_t
    !> 1: predicted_us uses constants that were not measured on this
    !> architecture; 0: mptune measured them
    integer(c_int32_t) :: is_estimated = 0_c_int32_t
    !> static storage, e.g. "wmma_128x128x32_s3"
    type(c_ptr) :: name = c_null_ptr
    !> reason why the kernel does not support the problem, a clause in static
    !> storage; NULL if it does
    type(c_ptr) :: why_not = c_null_ptr
    !> 0 if unsupported, and for recurrent layers, which use fixed rules
    real(c_double) :: predicted_us = 0.0_c_double
    !> minimum workspace; 0 if unsupported
    integer(c_size_t) :: workspace_bytes = 0_c_size_t
  end type

  interface
    !> Returns MP_VERSION of the loaded library, which may differ from that of this header.
    function mp_version() result(answer) bind(c, name="mp_version")
      import
      integer(c_int32_t) :: answer
    end function

    !> Returns one line for bug reports: version, git hash, CUDA version, compiled targets and
    !> architectures.  Static storage.  The format is not stable; do not parse it.
    function mp_build_info() result(answer) bind(c, name="mp_build_info")
      import
      type(c_ptr) :: answer
    end function

    !> Returns the name of a status, e.g. "MP_ERROR_UNSUPPORTED".  Static storage; accepts any int.
    function mp_status_string(status) result(answer) bind(c, name="mp_status_string")
      import
      integer(c_int), value :: status
      type(c_ptr) :: answer
    end function

    !> Returns the message of the last failed call on this thread.  It names the offending argument
    !> and its value: "mp_gemm: lda = 60 is smaller than k = 64".  Meaningful directly after a call
    !> that returned an error; valid until the next mpcore call on this thread.  Never NULL.
    function mp_last_error() result(answer) bind(c, name="mp_last_error")
      import
      type(c_ptr) :: answer
    end function

    !> Sends messages of severity `level` or higher to `callback`, for the whole process.  The callback
    !> may run on several threads concurrently and must not call mpcore.  If it throws a C++ exception,
    !> its line goes to stderr.
    !>
    !> NULL restores the default: MP_LOG_WARN and more severe to stderr, without the errors that a call
    !> returns (mp_last_error has those).  The environment variable MP_LOG=error|warn|info|debug
    !> changes the level of the default and adds returned errors.
    subroutine mp_set_log_callback(callback, user, level) bind(c, name="mp_set_log_callback")
      import
      type(c_funptr), value :: callback
      type(c_ptr), value :: user
      integer(c_int), value :: level
    end subroutine

    !> Returns the bytes per element, or 0 for an invalid value.
    function mp_dtype_size(dtype) result(answer) bind(c, name="mp_dtype_size")
      import
      integer(c_int), value :: dtype
      integer(c_size_t) :: answer
    end function

    !> Returns "fp16", "bf16" or "fp32"; "none" for MP_DTYPE_NONE and "?" for an invalid value.
    !> Static storage.
    function mp_dtype_name(dtype) result(answer) bind(c, name="mp_dtype_name")
      import
      integer(c_int), value :: dtype
      type(c_ptr) :: answer
    end function

    !> Initializes *config: MP_DEVICE_AUTO, all SMs, cudaMalloc.
    function mp_context_config_init(config, struct_size) result(answer) bind(c, &
      name="mp_context_config_init")
      import
      type(mp_context_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Creates a context.  A context is immutable, so threads can share it.
    !> @param config  host, optional; NULL = defaults.
    !> @retval MP_ERROR_ARCH_MISMATCH the build has no code for the device
    function mp_context_create(context, config) result(answer) bind(c, name="mp_context_create")
      import
      type(c_ptr), intent(inout) :: context
      type(mp_context_config_t), intent(in), optional :: config
      integer(c_int) :: answer
    end function

    !> Destroys a context.  All objects created from it must be destroyed first.  Destroying the last
    !> host context ends the worker threads and frees their memory; a later context creates them
    !> again.
    subroutine mp_context_destroy(context) bind(c, name="mp_context_destroy")
      import
      type(c_ptr), value :: context
    end subroutine

    !> Returns the properties of a context's device.
    !> @param info  host, out; initialize it with MP_INIT_STRUCT.
    function mp_context_get_info(context, info) result(answer) bind(c, &
      name="mp_context_get_info")
      import
      type(c_ptr), value :: context
      type(mp_device_info_t), intent(inout) :: info
      integer(c_int) :: answer
    end function

    !> Allocates `bytes` of uninitialized device memory, 256-byte aligned.  0 bytes give NULL.
    function mp_malloc(context, ptr, bytes) result(answer) bind(c, name="mp_malloc")
      import
      type(c_ptr), value :: context
      type(c_ptr), intent(inout) :: ptr
      integer(c_size_t), value :: bytes
      integer(c_int) :: answer
    end function

    !> Waits until the device is idle, then frees memory from mp_malloc.  NULL does nothing.
    subroutine mp_free(context, ptr) bind(c, name="mp_free")
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: ptr
    end subroutine

    !> Copies between any combination of host and device memory; the two ranges must not overlap.
    !> Pageable host memory makes the copy synchronous, as with cudaMemcpyAsync.
    function mp_memcpy(context, dst, src, bytes, stream) result(answer) bind(c, &
      name="mp_memcpy")
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: dst
      type(c_ptr), value :: src
      integer(c_size_t), value :: bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Sets `bytes` bytes of device memory to `byte`.
    function mp_memset(context, dst, byte, bytes, stream) result(answer) bind(c, &
      name="mp_memset")
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: dst
      integer(c_int), value :: byte
      integer(c_size_t), value :: bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Waits until all work enqueued on `stream` has finished.
    function mp_stream_sync(context, stream) result(answer) bind(c, name="mp_stream_sync")
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Converts elements: dst[i] = (dst_dtype)src[i].  dst may be src if both types have equal size;
    !> any other overlap is an error.
    function mp_cast(context, src, src_dtype, dst, dst_dtype, count, &
      stream) result(answer) bind(c, name="mp_cast")
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: src
      integer(c_int), value :: src_dtype
      type(c_ptr), value :: dst
      integer(c_int), value :: dst_dtype
      integer(c_int64_t), value :: count
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes an identity epilogue: no activation, bias or statistics.
    function mp_epilogue_init(epilogue, struct_size) result(answer) bind(c, &
      name="mp_epilogue_init")
      import
      type(mp_epilogue_t), intent(inout) :: epilogue
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Initializes a dense, untransposed, unbatched product: alpha = 1, beta = 0, lda = k,
    !> ldb = ldc = ldd = n.
    function mp_gemm_desc_init(desc, struct_size, m, n, k, dtype_ab, &
      dtype_cd) result(answer) bind(c, name="mp_gemm_desc_init")
      import
      type(mp_gemm_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int64_t), value :: m
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: k
      integer(c_int), value :: dtype_ab
      integer(c_int), value :: dtype_cd
      integer(c_int) :: answer
    end function

    !> Returns the workspace size for the fastest kernel and the fastest dbias sum of mp_gemm (or
    !> mp_gemm_batched); often 0.  If desc->kernel is set, returns the minimum of that kernel instead.
    !>
    !> A descriptor does not include the epilogue, so at most 32 MiB are reserved for dbias.  On Hopper
    !> a 16-bit D of more than 256 MiB benefits from an eighth of its own size in addition.
    !>
    !> desc->stride_* select the function: mp_gemm if any stride is not 0, mp_gemm_batched if all are 0
    !> and batch_count > 1.  For batch_count = 1 without strides the result suffices for both; on
    !> Hopper mp_gemm_batched may need workspace where mp_gemm needs none.
    !> @param bytes  host, out.
    function mp_gemm_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_gemm_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Computes a matrix product with fp32 accumulation: D = epilogue(alpha op(A) op(B) + beta C).
    !>
    !> @param A  device; m x k with row stride lda (MP_OP_N), or k x m (MP_OP_T).  A and B are not read
    !>           if alpha == 0 (may be NULL, may hold NaN); desc->kernel is then checked but not used.
    !> @param B  device; k x n with row stride ldb (MP_OP_N), or n x k (MP_OP_T).
    !> @param C  device; m x n.  Not read if beta == 0 (may be NULL, may hold NaN).
    !> @param D  device; m x n.  May be the same matrix as C (equal ld and stride).  Any other overlap
    !>           with an argument is an error.  If both row strides are equal in bytes, elements are
    !>           compared, so D may use the columns between A's rows; otherwise address ranges are
    !>           compared.
    !> @param epilogue   host, optional.
    !> @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
    !>                   mp_gemm_workspace_size the fastest kernel that fits is used: possibly
    !>                   slower, never an error.
    !>
    !> Edge cases follow BLAS: m, n or batch_count == 0 writes nothing except dbias; k == 0 or
    !> alpha == 0 computes epilogue(beta C), without workspace.
    !>
    !> Alignment: only that of the elements is required.  16-byte aligned pointers and ld % 8 == 0 take
    !> the tensor-core path with asynchronous copies; anything else is slower.  An A or B with another
    !> ld or stride is first copied into workspace with aligned rows if that is predicted to be faster.
    !> If aligned operands are predicted to be faster by a fifth or more, both times are logged once at
    !> MP_LOG_WARN.
    !>
    !> Accuracy: products of fp16/bf16 are exact in fp32.  They are summed in fp32 as tensor cores sum,
    !> in an order that depends only on (desc, alignment, workspace_bytes, device, MP_GEMM_TUNING), and
    !> rounded once.
    !> Source: Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.3.
    !>
    !> @retval MP_ERROR_INVALID_ARGUMENT a dimension < 0, an ld smaller than the row length, or an
    !>         output that overlaps another argument
    !> @retval MP_ERROR_UNSUPPORTED D has 2^31 or more tiles of 16 x 16 over all batch items
    function mp_gemm(context, desc, A, B, C, D, epilogue, workspace, workspace_bytes, &
      stream) result(answer) &
      bind(c, name="mp_gemm")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: A
      type(c_ptr), value :: B
      type(c_ptr), value :: C
      type(c_ptr), value :: D
      type(mp_epilogue_t), optional :: epilogue
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes a batched product like mp_gemm, with one pointer per batch item instead of a stride.
    !>
    !> @param desc     desc->stride_* must be 0.
    !> @param A,B,C,D  device arrays of desc->batch_count device pointers, read when the kernel runs:
    !>                 keep them alive until then.  C is optional if beta == 0.  As in mp_gemm,
    !>                 matrices need only the alignment of their elements; an item that is not
    !>                 16-byte aligned is detected on the device, costs time and is not logged.
    !> @param epilogue  host, optional; aux, dbias and amax are not supported.
    !>
    !> The host does not read the pointers, so overlaps are not detected: an item of D that overlaps
    !> any matrix except its own item of C gives wrong results.
    function mp_gemm_batched(context, desc, A, B, C, D, epilogue, workspace, workspace_bytes, &
      stream) result(answer) &
      bind(c, name="mp_gemm_batched")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: A
      type(c_ptr), value :: B
      type(c_ptr), value :: C
      type(c_ptr), value :: D
      type(mp_epilogue_t), optional :: epilogue
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes a dense, untransposed item without data: lda = k, ldb = ldc = ldd = n.
    function mp_gemm_group_item_init(item, struct_size, m, n, k) result(answer) bind(c, &
      name="mp_gemm_group_item_init")
      import
      type(mp_gemm_group_item_t), intent(inout) :: item
      integer(c_size_t), value :: struct_size
      integer(c_int64_t), value :: m
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: k
      integer(c_int) :: answer
    end function

    !> Returns the workspace size for the fastest mp_gemm_grouped.  It depends on the shapes and
    !> leading dimensions of the items, not on their pointers.
    !> @param bytes  host, out.
    function mp_gemm_grouped_workspace_size(context, desc, count, items, &
      bytes) result(answer) bind(c, name="mp_gemm_grouped_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      integer(c_int32_t), value :: count
      type(mp_gemm_group_item_t) :: items(*)
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Computes `count` products of different shapes, such as the experts of a layer or the weight
    !> gradients of a network.  Each is a product as in mp_gemm:
    !>
    !>     D = epilogue(alpha op(A) op(B) + beta C)
    !>
    !> The products share one launch if a kernel supports the whole group.  Otherwise each takes a
    !> launch: possibly slower, never an error, and logged once at MP_LOG_WARN if the caller can change
    !> the cause.
    !>
    !> The products may run concurrently, so no D may overlap any matrix of another product; A, B and C
    !> may be shared.  A D that overlaps a matrix of its own product, or the previous D in memory, is
    !> an error; other overlaps are not detected.
    !>
    !> @param desc   op, dtype, alpha and beta of all products.  m, n, k, ld* and stride_* must be 0
    !>               and batch_count 1: mp_gemm_desc_default(0, 0, 0, ab, cd).
    !> @param items  host, count elements, copied; may be NULL if count is 0.  The call can be captured
    !>               into a CUDA graph, which then keeps these shapes and pointers.
    !>               Edge cases as in mp_gemm: m or n == 0 does nothing, k == 0 computes
    !>               epilogue(beta C).
    !> @param epilogue   host, optional: scale and found_inf, shared by all products.  All other fields
    !>                   must be 0.
    !> @param workspace  device, 256-byte aligned, optional; see mp_gemm_grouped_workspace_size.
    !>
    !> If an item is invalid, nothing is enqueued, and the message names the item:
    !> "mp_gemm_grouped: items[3].lda = 60 is smaller than k = 64".
    function mp_gemm_grouped(context, desc, count, items, epilogue, workspace, workspace_bytes, &
      stream) result(answer) &
      bind(c, name="mp_gemm_grouped")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      integer(c_int32_t), value :: count
      type(mp_gemm_group_item_t) :: items(*)
      type(mp_epilogue_t), optional :: epilogue
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the workspace size for the fastest mp_gemm_ragged, for any ends.
    !> @param bytes  host, out.
    function mp_gemm_ragged_workspace_size(context, desc, ragged, bytes) result(answer) bind(c, &
      name="mp_gemm_ragged_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      integer(c_int), value :: ragged
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Computes products of groups whose sizes are known only on the device, such as the tokens routed
    !> to each expert of a layer.  The dimension `ragged` is divided among desc->batch_count groups:
    !> group i has the elements [ends[i - 1], ends[i]), and the first group begins at 0:
    !>
    !>     MP_RAGGED_M:  D[rows of i] = epilogue(alpha op(A)[rows of i] op(B_i) + beta C[rows of i])
    !>     MP_RAGGED_K:  D_i = epilogue(alpha op(A)[:, k of i] op(B)[k of i, :] + beta C_i)
    !>
    !> The host neither reads `ends` nor waits for them, and the launches do not depend on them.  The
    !> call can be captured into a CUDA graph; each replay uses the ends of that moment.
    !>
    !> @param desc  all groups together: m (MP_RAGGED_M) or k (MP_RAGGED_K) is the upper bound of
    !>              `ends`.  MP_RAGGED_M: op(A) is m x k, C and D are m x n, and B_i = B + i stride_b;
    !>              stride_b = 0 is one B for all groups, the other strides must be 0.  MP_RAGGED_K:
    !>              op(A) is m x k, op(B) is k x n, C_i = C + i stride_c and D_i = D + i stride_d;
    !>              stride_a and stride_b must be 0.
    !> @param ends  device, desc->batch_count values in ascending order, read when the kernels run.
    !>              Two equal values make an empty group.  Invalid values are clamped to the previous
    !>              end and to m or k, so they never cause accesses outside the matrices.
    !> @param A,B,C,D  as in mp_gemm.  MP_RAGGED_M: rows from the last end on are neither read nor
    !>              written.  MP_RAGGED_K: elements of k from the last end on are not read; an empty
    !>              group computes epilogue(beta C_i), which is zero if beta = 0.
    !> @param epilogue   host, optional: scale, amax and found_inf, shared by all groups.  All other
    !>                   fields must be 0.
    !> @param workspace  device, 256-byte aligned, optional; see mp_gemm_ragged_workspace_size.
    !>
    !> Edge cases, alignment and accuracy as in mp_gemm; the order of a sum also depends on the start
    !> of its group in k.  Hopper's wgmma kernels require groups that are consecutive rows in memory:
    !> op_a = MP_OP_N with MP_RAGGED_M; op_a = MP_OP_T and op_b = MP_OP_N with MP_RAGGED_K.  Other
    !> layouts run on WMMA kernels.
    !> Source: jax.lax.ragged_dot; torch._grouped_mm, whose offs are the ends.
    !>
    !> @retval MP_ERROR_INVALID_ARGUMENT a stride that must be 0 is not, or the D_i overlap
    function mp_gemm_ragged(context, desc, ragged, ends, A, B, C, D, epilogue, workspace, &
      workspace_bytes, stream) result(answer) &
      bind(c, name="mp_gemm_ragged")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      integer(c_int), value :: ragged
      type(c_ptr), value :: ends
      type(c_ptr), value :: A
      type(c_ptr), value :: B
      type(c_ptr), value :: C
      type(c_ptr), value :: D
      type(mp_epilogue_t), optional :: epilogue
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes a convolution with unit stride and dilation, no padding and one group; alpha = 1,
    !> beta = 0, dtype_out = dtype.
    function mp_conv2d_desc_init(desc, struct_size, n, h, w, c, k, r, s, &
      dtype) result(answer) bind(c, name="mp_conv2d_desc_init")
      import
      type(mp_conv2d_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int32_t), value :: n
      integer(c_int32_t), value :: h
      integer(c_int32_t), value :: w
      integer(c_int32_t), value :: c
      integer(c_int32_t), value :: k
      integer(c_int32_t), value :: r
      integer(c_int32_t), value :: s
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Returns the output height P and width Q; 0 if the filter is larger than the padded image.
    !> @param p,q  host, out.
    function mp_conv2d_output_size(desc, p, q) result(answer) bind(c, &
      name="mp_conv2d_output_size")
      import
      type(mp_conv2d_desc_t), intent(in), optional :: desc
      integer(c_int32_t), intent(inout) :: p
      integer(c_int32_t), intent(inout) :: q
      integer(c_int) :: answer
    end function

    !> Returns the workspace size for the fastest kernel and the fastest dbias sum of the pass `op`,
    !> like mp_gemm_workspace_size; often 0.  If desc->kernel is set, returns the minimum of that
    !> kernel instead.
    !> @param bytes  host, out.
    function mp_conv2d_workspace_size(context, desc, op, bytes) result(answer) bind(c, &
      name="mp_conv2d_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_conv2d_desc_t), intent(in), optional :: desc
      integer(c_int), value :: op
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Computes the forward pass: y = epilogue(alpha conv(x, filter) + beta y).
    !>
    !> @param x,filter   device.
    !> @param y          device; read only if beta != 0.  Must not overlap another argument.
    !> @param epilogue   host, optional.  y is a matrix of N P Q rows and K columns, so bias has K
    !>                   elements and ld_aux = 0 means K.
    !> @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
    !>                   mp_conv2d_workspace_size: possibly slower, never an error.
    !>
    !> Algorithm: implicit GEMM; the im2col matrix is never stored.  A 1 x 1 filter with stride 1 and
    !> no padding runs on the kernels of mp_gemm.  Accuracy as in mp_gemm.
    !>
    !> Alignment: only that of the elements is required.  16-byte aligned tensors with C/groups and
    !> K/groups multiples of 8 are fastest.  In fprop and wgrad, images of one group with another
    !> number of channels (RGB) are first copied into workspace with zero-padded channels, if there is
    !> room and that is predicted to be faster.
    !>
    !> Implicit zeros, such as padding and the gaps between strided outputs in dgrad, may or may not be
    !> multiplied.  With a non-finite weight (in wgrad: dy) the result may then be NaN.
    !>
    !> Limits: one padded image of x, one image of y and the filter must each have less than 2^30
    !> elements.  x and y must each have less than 2^30 pixels (N H W and N P Q).
    !> Source: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014, section 3.
    !>
    !> @retval MP_ERROR_INVALID_ARGUMENT a number outside its range, groups that do not divide c and k
    !> @retval MP_ERROR_UNSUPPORTED a limit is exceeded
    function mp_conv2d_fprop(context, desc, x, filter, y, epilogue, workspace, workspace_bytes, &
      stream) result(answer) &
      bind(c, name="mp_conv2d_fprop")
      import
      type(c_ptr), value :: context
      type(mp_conv2d_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: x
      type(c_ptr), value :: filter
      type(c_ptr), value :: y
      type(mp_epilogue_t), optional :: epilogue
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the input gradient: dx = epilogue(alpha conv_transpose(dy, filter) + beta dx).
    !>
    !> In the epilogue, dx is a matrix of N H W rows and C columns: MP_ACT_DRELU with the aux of the
    !> layer below computes that layer's dy, and dbias its bias gradient.  Everything else is as in
    !> mp_conv2d_fprop.
    function mp_conv2d_dgrad(context, desc, dy, filter, dx, epilogue, workspace, &
      workspace_bytes, stream) result(answer) &
      bind(c, name="mp_conv2d_dgrad")
      import
      type(c_ptr), value :: context
      type(mp_conv2d_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: dy
      type(c_ptr), value :: filter
      type(c_ptr), value :: dx
      type(mp_epilogue_t), optional :: epilogue
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the weight gradient: dfilter = alpha conv(x, dy) + beta dfilter, summed over n, p, q.
    !>
    !> beta = 1 accumulates over micro-batches.  Use dtype_out = MP_FP32 for that; otherwise small
    !> terms are lost to rounding.  The sum is split over blocks in a fixed order, without atomics.
    !> @param epilogue  host, optional: scale, amax and found_inf.  All other fields must be 0.
    !>
    !> Everything else is as in mp_conv2d_fprop.
    function mp_conv2d_wgrad(context, desc, x, dy, dfilter, epilogue, workspace, &
      workspace_bytes, stream) result(answer) &
      bind(c, name="mp_conv2d_wgrad")
      import
      type(c_ptr), value :: context
      type(mp_conv2d_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: x
      type(c_ptr), value :: dy
      type(c_ptr), value :: dfilter
      type(mp_epilogue_t), optional :: epilogue
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Creates a list of tensors and uploads its pointer table, so that each later call is one kernel
    !> launch for any number of tensors.
    !> Source: Apex, multi_tensor_apply, which packs the table into kernel arguments in every call.
    function mp_tensor_list_create(list, context, desc) result(answer) bind(c, &
      name="mp_tensor_list_create")
      import
      type(c_ptr), intent(inout) :: list
      type(c_ptr), value :: context
      type(mp_tensor_list_desc_t), optional :: desc
      integer(c_int) :: answer
    end function

    !> Destroys a list, but not its tensors.  Optimizers that use the list must be destroyed first.
    subroutine mp_tensor_list_destroy(list) bind(c, name="mp_tensor_list_destroy")
      import
      type(c_ptr), value :: list
    end subroutine

    !> Replaces the addresses of the tensors, in stream order; sizes and types stay.  For frameworks
    !> that allocate new gradients in each step.  Do not capture into a CUDA graph.
    !> @param data  host, count device pointers.
    function mp_tensor_list_set_data(list, data, stream) result(answer) bind(c, &
      name="mp_tensor_list_set_data")
      import
      type(c_ptr), value :: list
      type(c_ptr), value :: data
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the current address, size and type of one tensor.
    !> @param data,numel,dtype  host, out, each optional; data is a device address.
    !> @retval MP_ERROR_NOT_FOUND index is not less than count
    function mp_tensor_list_get(list, index, data, numel, dtype) result(answer) bind(c, &
      name="mp_tensor_list_get")
      import
      type(c_ptr), value :: list
      integer(c_int32_t), value :: index
      type(c_ptr), intent(inout), optional :: data
      integer(c_int64_t), intent(inout) :: numel
      integer(c_int), intent(inout) :: dtype
      integer(c_int) :: answer
    end function

    !> Sets *found_inf to 1 if any element is NaN or infinite.  Never clears it, so several lists can
    !> share one flag.  The flag is a float so that it can be all-reduced with the gradients.
    !> @param found_inf  device, 1 float.
    function mp_check_nonfinite(list, found_inf, stream) result(answer) bind(c, &
      name="mp_check_nonfinite")
      import
      type(c_ptr), value :: list
      type(c_ptr), value :: found_inf
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the largest absolute value; NaN if any element is NaN (fmaxf would ignore NaN).
    !> @param amax        device, 1 float, optional; 0 for an empty list.
    !> @param per_tensor  device, count floats, optional.
    function mp_amax(list, amax, per_tensor, stream) result(answer) bind(c, name="mp_amax")
      import
      type(c_ptr), value :: list
      type(c_ptr), value :: amax
      type(c_ptr), value :: per_tensor
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the Euclidean norm sqrt(sum x^2) of the list and of each tensor.
    !>
    !> Squares are summed in fp32 within chunks of 16384 elements and in fp64 across chunks, in a fixed
    !> order and without atomics, so results are bitwise reproducible.  A chunk whose largest |x| is
    !> below 2^-40, or at least 2^56, is read twice and scaled by a power of two.  The norm is
    !> therefore infinite only if its value exceeds the range of fp32.
    !> @param norm        device, 1 float, optional.
    !> @param per_tensor  device, count floats, optional.
    function mp_l2norm(list, norm, per_tensor, stream) result(answer) bind(c, name="mp_l2norm")
      import
      type(c_ptr), value :: list
      type(c_ptr), value :: norm
      type(c_ptr), value :: per_tensor
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Reports overflow and imminent underflow of the elements, in one pass.  mp_scale_step can report
    !> on its gradients without an additional pass (mp_step_options_t).
    !> @param report          device, 1 report of the list, optional.
    !> @param tensor_reports  device, one report per tensor, optional.
    function mp_inspect(list, report, tensor_reports, stream) result(answer) bind(c, &
      name="mp_inspect")
      import
      type(c_ptr), value :: list
      type(c_ptr), value :: report
      type(c_ptr), value :: tensor_reports
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes any of mp_check_nonfinite, mp_amax, mp_l2norm and mp_inspect in one pass over the
    !> elements, with bitwise equal results.
    !> @param outputs  host; at least one of its pointers must be set.
    function mp_tensor_stats(list, outputs, stream) result(answer) bind(c, &
      name="mp_tensor_stats")
      import
      type(c_ptr), value :: list
      type(mp_stats_outputs_t), optional :: outputs
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes out = in * *inv_scale.  Sets *found_inf to 1, and never clears it, if an element of
    !> `in` is not finite or a product overflows fp32.
    !> @param in,out     lists of equal shapes; types may differ (fp16 gradients to fp32); out may be
    !>                   in.
    !> @param inv_scale  device, 1 float.
    !> @param found_inf  device, 1 float.
    function mp_unscale(in, out, inv_scale, found_inf, stream) result(answer) bind(c, &
      name="mp_unscale")
      import
      type(c_ptr), value :: in
      type(c_ptr), value :: out
      type(c_ptr), value :: inv_scale
      type(c_ptr), value :: found_inf
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the factor that unscales and clips gradients in one multiplication:
    !>
    !>     *grad_scale = *inv_scale * min(1, max_norm / (*inv_scale * *scaled_norm + 1e-6))
    !>
    !> @param scaled_norm  device, 1 float: norm of the gradients before unscaling.
    !> @param inv_scale    device, 1 float.
    !> @param grad_scale   device, 1 float, overwritten.
    !> Source: Pascanu et al., On the difficulty of training RNNs, ICML 2013, algorithm 1;
    !> the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
    function mp_clip_factor(context, scaled_norm, inv_scale, max_norm, grad_scale, &
      stream) result(answer) &
      bind(c, name="mp_clip_factor")
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: scaled_norm
      type(c_ptr), value :: inv_scale
      real(c_float), value :: max_norm
      type(c_ptr), value :: grad_scale
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes the defaults of a policy:
    !>
    !>     init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
    !>     growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
    !>     beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
    !>     overflow_std_dev 3.0902      sigma_floor 0.5
    !>
    !> 65536 is the initial scale of torch.amp.GradScaler.  24 overflows reduce S from 2^24 to 1.
    function mp_scaler_config_init(config, struct_size, policy) result(answer) bind(c, &
      name="mp_scaler_config_init")
      import
      type(mp_scaler_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: policy
      integer(c_int) :: answer
    end function

    !> Initializes the state of a new scaler.
    function mp_scaler_state_init(state, struct_size, config) result(answer) bind(c, &
      name="mp_scaler_state_init")
      import
      type(mp_scaler_state_t), intent(inout) :: state
      integer(c_size_t), value :: struct_size
      type(mp_scaler_config_t), intent(in), optional :: config
      integer(c_int) :: answer
    end function

    !> Creates a scaler and all memory that it needs.  A program may have several, one per loss;
    !> several optimizers may share one, see MP_STEP_KEEP_SCALER.
    function mp_scaler_create(scaler, context, config) result(answer) bind(c, &
      name="mp_scaler_create")
      import
      type(c_ptr), intent(inout) :: scaler
      type(c_ptr), value :: context
      type(mp_scaler_config_t), intent(in), optional :: config
      integer(c_int) :: answer
    end function

    !> Destroys a scaler; no optimizer refers to it.  Does nothing for the scaler of
    !> mp_optimizer_get_scaler.
    subroutine mp_scaler_destroy(scaler) bind(c, name="mp_scaler_destroy")
      import
      type(c_ptr), value :: scaler
    end subroutine

    !> Returns the device address of S, which is constant for the life of the scaler.
    function mp_scaler_scale(scaler) result(answer) bind(c, name="mp_scaler_scale")
      import
      type(c_ptr), value :: scaler
      type(c_ptr) :: answer
    end function

    !> Returns the device address of 1/S, which is constant for the life of the scaler.
    function mp_scaler_inv_scale(scaler) result(answer) bind(c, name="mp_scaler_inv_scale")
      import
      type(c_ptr), value :: scaler
      type(c_ptr) :: answer
    end function

    !> Returns the device address of the scaler's sticky overflow flag, which is constant for the life
    !> of the scaler.  mp_scaler_update clears the flag.
    function mp_scaler_found_inf(scaler) result(answer) bind(c, name="mp_scaler_found_inf")
      import
      type(c_ptr), value :: scaler
      type(c_ptr) :: answer
    end function

    !> Computes out[i] = loss[i] * S, before the backward pass.  out may be loss.
    function mp_scale_loss(scaler, loss, out, dtype, count, stream) result(answer) bind(c, &
      name="mp_scale_loss")
      import
      type(c_ptr), value :: scaler
      type(c_ptr), value :: loss
      type(c_ptr), value :: out
      integer(c_int), value :: dtype
      integer(c_int64_t), value :: count
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Applies the policy once, from mp_scaler_found_inf and *amax, then clears the flag.
    !> mp_scale_step includes this.
    !> @param amax  device, 1 float: largest |gradient| as measured, still multiplied by S and before
    !>              clipping.  Infinity or NaN counts as an overflow even if the flag is 0.  Combined
    !>              with the amax of steps with MP_STEP_KEEP_SCALER and of mp_grads_accumulate since
    !>              the last update.  Required by lognormal and logmax, which learn from it, unless
    !>              there were such calls.  Otherwise optional: it distinguishes NaN from infinity.
    function mp_scaler_update(scaler, amax, stream) result(answer) bind(c, &
      name="mp_scaler_update")
      import
      type(c_ptr), value :: scaler
      type(c_ptr), value :: amax
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Copies the state to the host; waits for `stream`.
    function mp_scaler_get_state_sync(scaler, state, stream) result(answer) bind(c, &
      name="mp_scaler_get_state_sync")
      import
      type(c_ptr), value :: scaler
      type(mp_scaler_state_t), intent(inout) :: state
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Restores a state from the host; waits for `stream`.  Repeating the steps after it gives bitwise
    !> the same scales.  Empties the history, clears the flag and discards every amax measured since
    !> the last update, because these belong to abandoned steps.
    !>
    !> States that a scaler with this configuration cannot reach are rejected:
    !>
    !> - another policy
    !> - a scale outside [min_scale, max_scale], including NaN (logmax)
    !> - growth_tracker >= growth_interval or hysteresis_left > hysteresis.  After lowering those
    !>   limits, set growth_tracker to 0 and hysteresis_left to hysteresis.
    !> - a negative headroom; statistics that are not finite or, for lognormal, cannot be means of
    !>   log2 of floats
    !> - inconsistent counts: skipped > steps, skipped_nan > overflows, skipped_in_row > skipped, or
    !>   skipped not equal to overflows + out_of_range + no_scale
    !> - counts above 2^52
    !>
    !> @retval MP_ERROR_INVALID_ARGUMENT a state in this list
    function mp_scaler_set_state_sync(scaler, state, stream) result(answer) bind(c, &
      name="mp_scaler_set_state_sync")
      import
      type(c_ptr), value :: scaler
      type(mp_scaler_state_t), intent(in), optional :: state
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the last updates, oldest first, e.g. for a plot; waits for `stream`.
    !> @param capacity  elements of the arrays; if there are more updates, the newest are returned.
    !> @param scales    host, optional: S during each step.
    !> @param skipped   host, optional: 0 = taken, 1 = overflow, 2 = overflow with amax = NaN,
    !>                  MP_STEP_RANGE or MP_STEP_NO_SCALE.  0 to 2 differ from mp_step_outcome_t.
    !> @param count     host: elements written, at most config.history.
    function mp_scaler_get_history_sync(scaler, capacity, scales, skipped, count, &
      stream) result(answer) bind(c, name="mp_scaler_get_history_sync")
      import
      type(c_ptr), value :: scaler
      integer(c_int64_t), value :: capacity
      type(c_ptr), value :: scales
      type(c_ptr), value :: skipped
      type(c_ptr), value :: count
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes the defaults of the cited papers.  weight_decay is 0, except for methods that are
    !> defined by it.  lr has no default.  trust is that of LARS; Apex's LARC has 0.02.
    !>
    !>               beta1   beta2   eps     others
    !>     SGD       0.9     0       0       trust 0.001
    !>     Adam      0.9     0.999   1e-8
    !>     LAMB      0.9     0.999   1e-6    weight_decay 0.01
    !>     NovoGrad  0.95    0.98    1e-8
    !>     Adagrad   0       0       1e-10
    !>     RMSProp   0       0.9     1e-8
    !>
    !> decay_power is 1; all other fields are 0.
    function mp_hyper_init(hyper, struct_size, kind, lr) result(answer) bind(c, &
      name="mp_hyper_init")
      import
      type(mp_hyper_t), intent(inout) :: hyper
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: kind
      real(c_float), value :: lr
      integer(c_int) :: answer
    end function

    !> Initializes a descriptor with one group and no tensors.  flags is MP_OPT_DECOUPLED_DECAY for
    !> MP_OPT_LAMB and 0 for all other kinds.
    function mp_optimizer_desc_init(desc, struct_size, kind) result(answer) bind(c, &
      name="mp_optimizer_desc_init")
      import
      type(mp_optimizer_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: kind
      integer(c_int) :: answer
    end function

    !> Initializes a descriptor with the method of that name and one group, `hyper`, with the method's
    !> defaults.  Case is ignored.
    !>
    !>     "sgd", "adam", "lamb", "novograd", "adagrad", "rmsprop"   mp_optimizer_kind_t
    !>     "adamw"   MP_OPT_ADAM with MP_OPT_DECOUPLED_DECAY and weight_decay 0.01, as in torch
    !>
    !> @param name   host.
    !> @param desc   host, out, desc_size bytes; desc->groups is hyper.  Zeroed on error.
    !> @param hyper  host, out, hyper_size bytes; must live until mp_optimizer_create.
    !> @retval MP_ERROR_NOT_FOUND unknown name
    function mp_optimizer_desc_from_name(name, desc, desc_size, hyper, hyper_size, &
      lr) result(answer) bind(c, name="mp_optimizer_desc_from_name")
      import
      type(c_ptr), value :: name
      type(mp_optimizer_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: desc_size
      type(mp_hyper_t), intent(inout) :: hyper
      integer(c_size_t), value :: hyper_size
      real(c_float), value :: lr
      integer(c_int) :: answer
    end function

    !> Creates an optimizer: uploads the hyperparameters, and allocates the scratch memory of all steps
    !> and any moments that the descriptor lacks.
    function mp_optimizer_create(optimizer, context, desc) result(answer) bind(c, &
      name="mp_optimizer_create")
      import
      type(c_ptr), intent(inout) :: optimizer
      type(c_ptr), value :: context
      type(mp_optimizer_desc_t), intent(in), optional :: desc
      integer(c_int) :: answer
    end function

    !> Destroys an optimizer and its allocations, but not the caller's lists and tensors.
    subroutine mp_optimizer_destroy(optimizer) bind(c, name="mp_optimizer_destroy")
      import
      type(c_ptr), value :: optimizer
    end subroutine

    !> Returns the lists m and v, passed or allocated; mp_tensor_list_get has their addresses.  They
    !> live as long as the optimizer.
    !> @param m,v  host, out, each optional; NULL if the optimizer has none.
    function mp_optimizer_moments(optimizer, m, v) result(answer) bind(c, &
      name="mp_optimizer_moments")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), intent(inout), optional :: m
      type(c_ptr), intent(inout), optional :: v
      integer(c_int) :: answer
    end function

    !> Replaces the hyperparameters of one group, in stream order.  They are stored on the device, so a
    !> captured graph uses the new values when it is replayed.
    !> @retval MP_ERROR_INVALID_ARGUMENT max_tensor_norm is not 0, but was 0 in all groups at creation:
    !>         a step would need an additional launch
    function mp_optimizer_set_hyper(optimizer, group, hyper, stream) result(answer) bind(c, &
      name="mp_optimizer_set_hyper")
      import
      type(c_ptr), value :: optimizer
      integer(c_int32_t), value :: group
      type(mp_hyper_t), intent(in), optional :: hyper
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Updates master, m, v and model in one kernel for any number of tensors.
    !>
    !> LAMB, NovoGrad, LARC and LARS need one more kernel before it, which computes norms of tensors;
    !> max_tensor_norm needs another one (not in mp_scale_step, which computes these norms anyway).  An
    !> element whose new weight or moment is not finite keeps its old weight and moments.
    !>
    !> The device decides whether to update, and the host does not see the decision: waiting for it
    !> would leave the GPU idle once per step.
    !> @param grad_scale  device, 1 float multiplied into every gradient, e.g. 1/S; NULL = 1.
    !>                    Infinity or NaN skips the update, like found_inf.
    !> @param found_inf   device, 1 float; if it is not 0 when the kernel runs, nothing is written and
    !>                    t does not advance.  NULL = always update.
    !> Source: Micikevicius et al. 2018, section 3.1 (master weights).
    function mp_optimizer_step(optimizer, grad_scale, found_inf, stream) result(answer) bind(c, &
      name="mp_optimizer_step")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: grad_scale
      type(c_ptr), value :: found_inf
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes rounding to nearest with clamping on overflow.
    function mp_model_options_init(options, struct_size) result(answer) bind(c, &
      name="mp_model_options_init")
      import
      type(mp_model_options_t), intent(inout) :: options
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Computes model = round(master) for a program that updates its fp32 weights itself.  The result
    !> is bitwise that of an optimizer step.
    !> @param master     MP_FP32; read.
    !> @param model      MP_FP16 or MP_BF16, parallel to master; written.  Parameters with a NULL data
    !>                   pointer have no 16-bit copy.
    !> @param found_inf  device, 1 float, optional; if it is not 0 when the kernel runs, nothing is
    !>                   written, so that a skipped step changes neither weights nor copy.
    !> @param options    host, optional; NULL = the defaults.
    function mp_masters_to_model(master, model, found_inf, options, &
      stream) result(answer) bind(c, name="mp_masters_to_model")
      import
      type(c_ptr), value :: master
      type(c_ptr), value :: model
      type(c_ptr), value :: found_inf
      type(mp_model_options_t), optional :: options
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the learning rates of the last applied step, before lr_multipliers.
    !> @return device, num_groups floats, 0 before the first step; they live as long as the optimizer.
    !>         NULL if optimizer is NULL
    function mp_optimizer_lr(optimizer) result(answer) bind(c, name="mp_optimizer_lr")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr) :: answer
    end function

    !> Computes the contribution of l1 and l2 to the loss, for the current master weights, in one
    !> kernel:
    !>
    !>     sum over tensors of (their decay multiplier) (l1 sum |w| + l2 sum w^2)
    !>
    !> Sums are fp32 within a chunk and fp64 across chunks, in a fixed order, as in mp_l2norm.
    !> @param loss  device, 1 float.
    function mp_optimizer_regularization(optimizer, loss, stream) result(answer) bind(c, &
      name="mp_optimizer_regularization")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: loss
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the scaler that mp_scale_step uses if none is passed: static, S = 1, diverged_after 100.
    !> It counts skips and serves mp_step_query, so bf16 training needs no other scaler.
    !> @return owned by the optimizer, and lives as long; NULL if optimizer is NULL
    function mp_optimizer_get_scaler(optimizer) result(answer) bind(c, &
      name="mp_optimizer_get_scaler")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr) :: answer
    end function

    !> Returns the device address of the step counter t, which is constant for the life of the
    !> optimizer.  Every applied step increments t.  NULL if optimizer is NULL.
    function mp_optimizer_step_counter(optimizer) result(answer) bind(c, &
      name="mp_optimizer_step_counter")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr) :: answer
    end function

    !> Computes model = round(master) after the caller has loaded masters.  Does nothing if the
    !> optimizer has no model list.
    !>
    !> The result is bitwise that of the step that incremented t to its current value: it uses the
    !> optimizer's flags and rounding_seed.  (mp_cast differs: it makes overflows infinite, and never
    !> rounds at random.)  mp_optimizer_restore_sync includes this call.
    function mp_optimizer_write_model(optimizer, stream) result(answer) bind(c, &
      name="mp_optimizer_write_model")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the size of a checkpoint, which contains master, m, v, t and the state of the scaler.
    !> @param scaler  optional; NULL = mp_optimizer_get_scaler.
    !> @param bytes   host, out.
    function mp_optimizer_checkpoint_size(optimizer, scaler, bytes) result(answer) bind(c, &
      name="mp_optimizer_checkpoint_size")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: scaler
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Writes a checkpoint to host memory; waits for `stream`.  The format is little-endian, and later
    !> versions of the library can read it.  It does not contain hyperparameters, the states of a graph
    !> (running statistics), dropout offsets, or the position in the data.
    !> @param scaler      the scaler passed to mp_scale_step; no other state is saved.
    !>                    NULL = mp_optimizer_get_scaler.
    !> @param checkpoint  host, out.
    !> @param bytes       size of `checkpoint`, at least mp_optimizer_checkpoint_size.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL bytes is smaller
    function mp_optimizer_save_sync(optimizer, scaler, checkpoint, bytes, &
      stream) result(answer) bind(c, name="mp_optimizer_save_sync")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: scaler
      type(c_ptr), value :: checkpoint
      integer(c_size_t), value :: bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Restores master, m, v, t and the scaler, then writes model as mp_optimizer_write_model does.
    !> Given the same descriptor and data, training continues bit for bit.  Waits for `stream`.
    !> @param scaler      as in mp_optimizer_save_sync; its state must satisfy the rules of
    !>                    mp_scaler_set_state_sync.
    !> @param checkpoint  host, any alignment.
    !> @param bytes       exact size of the saved checkpoint.
    !> @retval MP_ERROR_INVALID_ARGUMENT not a checkpoint, or one of other tensors, another kind or
    !>         another scaler; nothing has been written
    function mp_optimizer_restore_sync(optimizer, scaler, checkpoint, bytes, &
      stream) result(answer) bind(c, name="mp_optimizer_restore_sync")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: scaler
      type(c_ptr), value :: checkpoint
      integer(c_size_t), value :: bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the step counter t; waits for `stream`.
    function mp_optimizer_get_step_sync(optimizer, t, stream) result(answer) bind(c, &
      name="mp_optimizer_get_step_sync")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: t
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Sets t, e.g. from a checkpoint of another format; waits for `stream`.  Call
    !> mp_optimizer_write_model afterwards.
    !> @param t  in [0, 2^52]
    function mp_optimizer_set_step_sync(optimizer, t, stream) result(answer) bind(c, &
      name="mp_optimizer_set_step_sync")
      import
      type(c_ptr), value :: optimizer
      integer(c_int64_t), value :: t
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes a communicator of a single rank, which does not communicate.
    function mp_comm_init(comm, struct_size) result(answer) bind(c, name="mp_comm_init")
      import
      type(mp_comm_t), intent(inout) :: comm
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Initializes *comm with the callbacks of an NCCL communicator.  The library does not link NCCL:
    !> this call loads libnccl.so.2 with dlopen.  The callbacks return ncclResult_t codes.
    !> @param comm       host, out; initialize it with MP_INIT_STRUCT.
    !> @param nccl_comm  a blocking ncclComm_t; must outlive the calls that receive *comm.  (A
    !>                   nonblocking one returns ncclInProgress, which counts as a failure.)
    !> @retval MP_ERROR_NOT_FOUND NCCL cannot be loaded
    !> @retval MP_ERROR_COMM NCCL does not return rank or size of nccl_comm
    function mp_comm_init_nccl(comm, nccl_comm) result(answer) bind(c, name="mp_comm_init_nccl")
      import
      type(mp_comm_t), intent(inout) :: comm
      type(c_ptr), value :: nccl_comm
      integer(c_int) :: answer
    end function

    !> Sums gradients over ranks: grads = post * sum over ranks (pre * grads).  In place, in the types
    !> of the gradients, with every product rounded.  Factors that average over n = world_size ranks:
    !>
    !>     pre = 1/n,        post = 1           no overflow, but small values may underflow
    !>     pre = 1,          post = 1/n         small values are kept, but sums may overflow
    !>     pre = 1/sqrt(n),  post = 1/sqrt(n)   a compromise
    !>
    !> A factor of 1 costs nothing, any other one pass over the gradients.  If the factors are powers
    !> of two and all ranks have equal gradients, the average has the same bits, unless a value
    !> underflows or overflows on the way.
    !>
    !> Each non-empty tensor is one all_reduce, in the order of the list, in one batch: NCCL merges
    !> them into one launch.  Adjacent tensors are not merged, because addresses may differ between
    !> ranks.  If one buffer holds all gradients, pass a list with one tensor over that buffer.
    !>
    !> The gradients may still be multiplied by S.  Infinity and NaN remain in the sum, so every rank
    !> detects them; mp_step_options.comm covers the other decisions.
    !> @param grads     the gradients of this rank; overwritten.
    !> @param pre,post  > 0, finite.
    !> @retval MP_ERROR_COMM a callback failed: all gradients have been multiplied by pre, and some may
    !>         have been summed
    function mp_grad_all_reduce(grads, comm, pre, post, stream) result(answer) bind(c, &
      name="mp_grad_all_reduce")
      import
      type(c_ptr), value :: grads
      type(mp_comm_t), optional :: comm
      real(c_float), value :: pre
      real(c_float), value :: post
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes options without clipping or reports, for one rank.
    function mp_step_options_init(options, struct_size) result(answer) bind(c, &
      name="mp_step_options_init")
      import
      type(mp_step_options_t), intent(inout) :: options
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Checks, unscales and clips the gradients, updates the weights, and adapts the loss scale:
    !>
    !>     1. found_inf |= any non-finite gradient;  norm, amax  one pass over the gradients
    !>     2. found_inf, NaN and amax become those of all ranks, with MP_STEP_SHARDED also the
    !>        norm                                                       only with comm
    !>     3. if the outcome is MP_STEP_TAKEN:
    !>            g = gradient / S, clipped;  optimizer update of master;
    !>            model = round(master);  t += 1                         second pass
    !>     4. S follows its policy;  found_inf is cleared                not with MP_STEP_KEEP_SCALER
    !>
    !> Everything runs on the device, without host synchronization.  The result is bitwise that of
    !> mp_check_nonfinite, mp_l2norm, mp_amax, mp_clip_factor, mp_optimizer_step and mp_scaler_update
    !> in this order, with fewer launches and less memory traffic.  Two passes are the minimum, because
    !> no weight may change before the last gradient has been checked; with MP_STEP_CHECKED, one is
    !> enough.
    !>
    !> found_inf is the scaler's flag (mp_scaler_found_inf), which a GEMM epilogue may already have set
    !> for an activation gradient.  An overflow skips the step with MP_SCALER_STATIC too.
    !>
    !> Finite gradients, weights and moments stay finite.  Norms do not overflow.  A step in which the
    !> square of a gradient could overflow is skipped (MP_STEP_RANGE).  An element whose new weight or
    !> moment is not finite, e.g. because of an infinite extra gradient, keeps its old weight and
    !> moments; mp_step_options.rejected_updates counts it.
    !>
    !> Ranks: after mp_grad_all_reduce the gradients are equal on all ranks, but a flag set by an
    !> epilogue is not, nor is the amax of a sharded optimizer.  Phase 2 is one all_reduce of 3 floats
    !> (max) and, with MP_STEP_SHARDED, one of 3 floats (sum), in one batch, between two small kernels.
    !> Causes of a skip are sent as a code, so that no maximum involves NaN.  The sums are sums of
    !> squares in fp32, separate for large, small and other values, each scaled by a power of two.
    !>
    !> @param scaler   optional; NULL = mp_optimizer_get_scaler: static, S = 1 (bf16).
    !> @param options  host, optional; NULL = no clipping, one rank.
    !> @retval MP_ERROR_INVALID_ARGUMENT e.g. optimizer and scaler belong to different contexts
    !> @retval MP_ERROR_COMM a callback of options->comm failed: neither weights nor S have been
    !>         updated, but the scaler's flag is set if a gradient is not finite.  Other ranks may have
    !>         taken the step
    function mp_scale_step(optimizer, scaler, options, stream) result(answer) bind(c, &
      name="mp_scale_step")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: scaler
      type(mp_step_options_t), optional :: options
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Accumulates unscaled gradients in fp32: sums += weight / S * grads or, with MP_ACCUMULATE_FIRST,
    !> sums = weight / S * grads.  One pass, with the current S; weight / S is rounded once, and so is
    !> each sum.
    !>
    !> Sets the scaler's flag if a gradient or its product with weight / S is not finite.  Records the
    !> largest |gradient|, still multiplied by S and without the weight, for the scaler's next update.
    !> An overflow also remains in the sums, as infinity or NaN, until the next MP_ACCUMULATE_FIRST:
    !> one bad micro-batch discards its window even if the flag is cleared.
    !>
    !> Accumulation over k micro-batches; `sums` are the optimizer's gradients:
    !>
    !>     for (int i = 0; i < k; i++) {
    !>       const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
    !>       forward_and_backward(i);
    !>       mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
    !>     }
    !>     options.flags = MP_STEP_UNSCALED;
    !>     mp_scale_step(optimizer, scaler, &options, stream);
    !>
    !> With several ranks, call mp_grad_all_reduce on the sums before the step, and set options.comm.
    !>
    !> S is constant within such a window.  In another form it follows its policy after each
    !> micro-batch, so that the rest of a discarded window uses a smaller S.  Then mp_scaler_state and
    !> mp_step_query count micro-batches.  In both forms options.found_inf reports a discarded window:
    !>
    !>     for (int i = 0; i < k; i++) {
    !>       const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
    !>       forward_and_backward(i);
    !>       mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
    !>       mp_scaler_update(scaler, NULL, stream);
    !>     }
    !>     mp_scale_step(optimizer, NULL, &options, stream);
    !>
    !> @param grads   any types; sums may be grads if all are MP_FP32.
    !> @param sums    MP_FP32, parallel to grads.
    !> @param weight  finite: 1, 1/k or a task weight.  0 adds nothing, but overflows are still
    !>                detected.
    !> @param flags   bitwise or of mp_accumulate_flags_t.
    function mp_grads_accumulate(scaler, grads, sums, weight, flags, &
      stream) result(answer) bind(c, name="mp_grads_accumulate")
      import
      type(c_ptr), value :: scaler
      type(c_ptr), value :: grads
      type(c_ptr), value :: sums
      real(c_float), value :: weight
      integer(c_int32_t), value :: flags
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes out = grads / S in fp32 and checks for overflow, in one pass: mp_grads_accumulate with
    !> weight 1 and both flags.  The first half of a step with an optimizer of the host program, which
    !> updates fp32 master weights by any rule:
    !>
    !>     const float *found_inf = mp_scaler_found_inf(scaler);
    !>     mp_grads_to_fp32(scaler, grads, grads32, stream);
    !>     my_optimizer(found_inf); // masters and grads32; does nothing if *found_inf is not 0
    !>     mp_masters_to_model(masters, models, found_inf, NULL, stream);
    !>     mp_scaler_update(scaler, NULL, stream);
    !>
    !> This optimizer runs on the device and reads the flag there.  If the optimizer runs on the host
    !> or cannot read the flag, the host polls mp_step_query and then starts it; other enqueued work
    !> continues meanwhile.  n is mp_scaler_state.steps + 1:
    !>
    !>     mp_step_outcome_t outcome = MP_STEP_PENDING;
    !>     mp_grads_to_fp32(scaler, grads, grads32, stream);
    !>     while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n, &outcome);
    !>     if (outcome == MP_STEP_TAKEN) {
    !>       my_host_optimizer();
    !>       mp_masters_to_model(masters, models, NULL, NULL, stream);
    !>     }
    !>     mp_scaler_update(scaler, NULL, stream);
    !>
    !> @param grads  any types; out may be grads if all are MP_FP32.
    !> @param out    MP_FP32, parallel to grads.
    function mp_grads_to_fp32(scaler, grads, out, stream) result(answer) bind(c, &
      name="mp_grads_to_fp32")
      import
      type(c_ptr), value :: scaler
      type(c_ptr), value :: grads
      type(c_ptr), value :: out
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the outcome of a step, which the device has written to host memory.  Neither waits nor
    !> enqueues work.  Any thread may call it at any time, even while another one uses the scaler.
    !>
    !> The queue never runs empty if the host queries a step while work of the next one is enqueued:
    !>
    !>     for (int64_t n = 1; n <= steps; n++) {
    !>       mp_step_outcome_t outcome = n > 1 ? MP_STEP_PENDING : MP_STEP_SKIPPED;
    !>       forward_and_backward(n); // enqueued; step n - 1 is done long before this is
    !>       while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n - 1, &outcome);
    !>       if (outcome == MP_STEP_TAKEN) my_learning_rate_advances();
    !>       mp_scale_step(optimizer, scaler, NULL, stream);
    !>     }
    !>
    !> A skipped step is logged once at MP_LOG_INFO with its cause, unless a later one has already been
    !> logged.  The line contains the old S and, unless the query precedes the update, the new S.
    !>
    !> @param step     >= 1, counted like mp_scaler_state.steps: step n is the update after which steps
    !>                 is n, also after restoring a state and in a replayed graph.  Its outcome is
    !>                 available at the end of the mp_scale_step or mp_scaler_update that counts it
    !>                 (steps with MP_STEP_KEEP_SCALER do not count), or after MP_ACCUMULATE_LAST.
    !> @param outcome  host, out.
    !> @retval MP_ERROR_NOT_FOUND the step is MP_STEP_QUERY_DEPTH or more steps old, or precedes a
    !>         restored state
    function mp_step_query(scaler, step, outcome) result(answer) bind(c, name="mp_step_query")
      import
      type(c_ptr), value :: scaler
      integer(c_int64_t), value :: step
      integer(c_int), intent(inout) :: outcome
      integer(c_int) :: answer
    end function

    !> Initializes a configuration: preset MP_AUTOCAST_DEFAULT, level MP_AUTOCAST_NORMAL, no flags, no
    !> limits.
    function mp_autocast_config_init(config, struct_size, low) result(answer) bind(c, &
      name="mp_autocast_config_init")
      import
      type(mp_autocast_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: low
      integer(c_int) :: answer
    end function

    !> Initializes the loss scaler for `low`.  MP_FP16: MP_SCALER_PRESET_KERAS, which TensorFlow calls
    !> "dynamic".  MP_BF16 and MP_FP32: S = 1.
    !> @retval MP_ERROR_INVALID_ARGUMENT low is any other value
    function mp_autocast_scaler_init(config, struct_size, low) result(answer) bind(c, &
      name="mp_autocast_scaler_init")
      import
      type(mp_scaler_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: low
      integer(c_int) :: answer
    end function

    !> Creates a policy.  Unless MP_AUTOCAST_NO_ENVIRONMENT is set, it reads environment variables:
    !>
    !>     MP_AUTOCAST=off|fp16|bf16
    !>     MP_AUTOCAST_LEVEL=normal|infer_as_deny|tensor_cores_only|force_all
    !>     MP_AUTOCAST_ALLOW_ADD=Op,Op     also INFER, DENY and CLEAR instead of ALLOW
    !>     MP_AUTOCAST_ALLOW_REMOVE=Op,Op  likewise
    !>     MP_AUTOCAST_IGNORE_PERFORMANCE=1
    !>     MP_AUTOCAST_LOG=folder          each rewrite writes its lists, report and two pictures there
    !>
    !> These variables override `config`; mp_autocast_set_class and mp_autocast_set_nodes override
    !> them.  With a TensorFlow preset, the corresponding TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_
    !> variables (LEVEL, ALLOWLIST_ADD, WHITELIST_ADD, ..., IGNORE_PERFORMANCE, LOG_PATH) are read
    !> first.
    !>
    !> @param config  host, optional; NULL = mp_autocast_config_default(MP_FP16).
    !> @retval MP_ERROR_INVALID_ARGUMENT a variable has an invalid value, or adds an operation that is
    !>         on another list and is not removed from it
    function mp_autocast_create(policy, config) result(answer) bind(c, &
      name="mp_autocast_create")
      import
      type(c_ptr), intent(inout) :: policy
      type(mp_autocast_config_t), intent(in), optional :: config
      integer(c_int) :: answer
    end function

    !> Destroys a policy.
    subroutine mp_autocast_destroy(policy) bind(c, name="mp_autocast_destroy")
      import
      type(c_ptr), value :: policy
    end subroutine

    !> Moves operations to a class.
    !> @param op_types  host, count names, copied; unknown names are added.
    !> @retval MP_ERROR_INVALID_ARGUMENT also if the policy has been used
    function mp_autocast_set_class(policy, op_types, count, op_class) result(answer) bind(c, &
      name="mp_autocast_set_class")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: op_types
      integer(c_int32_t), value :: count
      integer(c_int), value :: op_class
      integer(c_int) :: answer
    end function

    !> Assigns a class to nodes by name, independent of their operation, e.g. to keep all nodes whose
    !> name begins with "decoder/" in fp32.  If several patterns match, the last one set applies.
    !> @param pattern  host, copied.  As in a shell: * matches any text, including "/", ? any
    !>                 character, [a-z] one of these and [!a-z] any other.
    !> @retval MP_ERROR_INVALID_ARGUMENT also if the policy has been used, or a [ has no ]
    function mp_autocast_set_nodes(policy, pattern, node_class) result(answer) bind(c, &
      name="mp_autocast_set_nodes")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: pattern
      integer(c_int), value :: node_class
      integer(c_int) :: answer
    end function

    !> Returns the class of an operation, before the level is applied.  Names are case-sensitive.
    !> Returns MP_CAST_UNLISTED if the operation is unknown (with MP_AUTOCAST_PYTORCH MP_CAST_CLEAR),
    !> or if op_type or policy is NULL.
    function mp_autocast_class(policy, op_type) result(answer) bind(c, name="mp_autocast_class")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: op_type
      integer(c_int) :: answer
    end function

    !> Returns why low precision is not faster on a device, or NULL if it is.
    !>
    !> This gate disables rewrites that would not pay off: fp16 requires Tensor Cores (sm_70), bf16
    !> requires sm_80, and the host target has no faster 16-bit arithmetic.  A closed gate is not an
    !> error: mp_autocast_rewrite leaves the graph unchanged and logs one warning.
    !> MP_AUTOCAST_IGNORE_PERFORMANCE opens it; MP_AUTOCAST=off always closes it.
    !> @param context         optional; NULL = any device: only MP_AUTOCAST=off closes the gate.
    !> @param closed_because  host, out: a clause in static storage; NULL = open.
    function mp_autocast_gate(policy, context, closed_because) result(answer) bind(c, &
      name="mp_autocast_gate")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: context
      type(c_ptr), intent(inout) :: closed_because
      integer(c_int) :: answer
    end function

    !> Determines the type of each node and the required casts.
    !> @param context  optional: device of the gate, see mp_autocast_gate; NULL = any device.
    !> @param graph    host.
    !> @param result   host, out.
    !> @retval MP_ERROR_INVALID_ARGUMENT a value is out of range (the message names array and index),
    !>         or MP_AUTOCAST_FORCE_ALL with MP_BF16
    function mp_autocast_rewrite(policy, context, graph, result) result(answer) bind(c, &
      name="mp_autocast_rewrite")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: context
      type(mp_autocast_graph_t), intent(in), optional :: graph
      type(mp_autocast_result_t), intent(inout) :: result
      integer(c_int) :: answer
    end function

    !> Writes a report: the type of each node and the reason.
    !> @param graph   host: the graph that was rewritten, unchanged.
    !> @param result  host: the result of mp_autocast_rewrite; its arrays are not read.
    !> @param text    host, optional, out: NUL-terminated; NULL only returns the size.
    !> @param bytes   host.  In: size of text.  Out: required size, including the NUL.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL *bytes is smaller than the required size
    function mp_autocast_explain(policy, graph, result, form, text, &
      bytes) result(answer) bind(c, name="mp_autocast_explain")
      import
      type(c_ptr), value :: policy
      type(mp_autocast_graph_t), intent(in), optional :: graph
      type(mp_autocast_result_t), optional :: result
      integer(c_int), value :: form
      type(c_ptr), value :: text
      type(c_ptr), value :: bytes
      integer(c_int) :: answer
    end function

    !> Determines the casts of a single operation, for programs that execute eagerly:
    !>
    !>     MP_CAST_ALLOW    inputs and output in low precision
    !>     MP_CAST_DENY     inputs and output in fp32
    !>     otherwise        inputs of one type stay unchanged; inputs of several types become fp32
    !>
    !> Inputs of MP_DTYPE_NONE, such as integers or fp64, stay unchanged.  Gate and level are ignored,
    !> except that MP_AUTOCAST=off disables all casts.
    !>
    !> @param input_dtype  host, count values of mp_dtype_t; NULL if count is 0.
    !> @param cast_to      host, out, count values of mp_dtype_t; MP_DTYPE_NONE = no cast.
    !> @param output       host, out: type of the output; MP_DTYPE_NONE if all inputs are.
    !> @retval MP_ERROR_UNSUPPORTED the operation is unsafe in 16 bits; the message names a
    !>         replacement
    function mp_autocast_op(policy, op_type, input_dtype, count, cast_to, &
      output) result(answer) bind(c, name="mp_autocast_op")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: op_type
      type(c_ptr), value :: input_dtype
      integer(c_int32_t), value :: count
      integer(c_int8_t), intent(inout) :: cast_to
      integer(c_int), intent(inout) :: output
      integer(c_int) :: answer
    end function

    !> Initializes a loss of dense rows: weight = 1, no smoothing, label -100 ignored.
    !>
    !> -100 is the ignore_index of torch.  Other labels outside [0, classes), such as -1 or `classes`,
    !> are still detected.
    function mp_xent_desc_init(desc, struct_size, rows, classes, dtype) result(answer) bind(c, &
      name="mp_xent_desc_init")
      import
      type(mp_xent_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int64_t), value :: rows
      integer(c_int64_t), value :: classes
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Computes softmax cross-entropy and its gradient, in fp32 for every type of logits:
    !>
    !>     p = softmax(logits[i])
    !>     q[j] = (1 - label_smoothing) (j == labels[i]) + label_smoothing / classes
    !>     row_loss[i] = -weight sum_j q[j] log p[j]
    !>     loss = sum_i row_loss[i] / counted
    !>     dlogits[i][j] = S weight / counted (p[j] - q[j])
    !>
    !> - Ignored rows: `counted` is the number of rows that are not ignored, determined on the
    !>   device.  An ignored row has loss 0, a gradient of zeros, and is not counted as correct; its
    !>   logits are not read.  If all rows are ignored, loss is NaN and the gradient 0, as in torch.
    !> - Several calls, by ranks or for micro-batches: their mean is the mean over all rows only if
    !>   `counted` is equal in all calls.
    !> - Invalid labels: any other label outside [0, classes) makes the loss and the gradient of
    !>   its row NaN, so that the step is skipped.  The host cannot check labels without waiting.
    !> - Masked classes: a logit of -infinity gives p = 0.  The loss is infinite if that class is
    !>   the label or label_smoothing > 0; the gradient stays finite.
    !> - weight = 0 makes row_loss and dlogits 0, even if the loss is infinite, but keeps NaN.
    !> - Accuracy: the gradient of the label's logit is computed from the exponentials of the other
    !>   classes.  If the label has the largest logit, so is the loss: log(1 + their sum).  Both keep
    !>   their relative accuracy if the label has nearly all of the probability.
    !> - Determinism: the bits of a row depend on its values, the type, the number of classes,
    !>   `counted` and the address of the row modulo 16, not on the size of the device.
    !>
    !> @param logits      device, rows x classes.
    !> @param labels      device, rows values.
    !> @param loss_scale  device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
    !> @param row_loss    device, rows floats, written; not multiplied by S.
    !> @param loss        device, 1 float, optional, written; not multiplied by S.  NaN if rows is 0.
    !> @param correct     device, 1 value, optional: increased by the number of rows whose largest
    !>                    logit (the first of equal ones) is the label's.  Clear it first.
    !> @param dlogits     device, rows x classes, optional; may be the same matrix as logits
    !>                    (equal ld).  NULL = forward only.
    !> Source: Micikevicius et al. 2018, section 3.3 (softmax and loss in fp32), 3.2 (loss scale);
    !> Szegedy et al., Rethinking the Inception Architecture, 2016, section 7 (label smoothing).
    function mp_softmax_xent(context, desc, logits, labels, loss_scale, row_loss, loss, correct, &
      dlogits, stream) result(answer) &
      bind(c, name="mp_softmax_xent")
      import
      type(c_ptr), value :: context
      type(mp_xent_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: logits
      type(c_ptr), value :: labels
      type(c_ptr), value :: loss_scale
      type(c_ptr), value :: row_loss
      type(c_ptr), value :: loss
      type(c_ptr), value :: correct
      type(c_ptr), value :: dlogits
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes a mean over all elements: weight = 1, dtype_target = dtype.
    function mp_loss_desc_init(desc, struct_size, kind, count, dtype) result(answer) bind(c, &
      name="mp_loss_desc_init")
      import
      type(mp_loss_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: kind
      integer(c_int64_t), value :: count
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Returns the workspace size that mp_loss requires: at most 16 KiB, 0 if count is 0.
    !> @param bytes  host, out.
    function mp_loss_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_loss_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_loss_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Computes a mean squared error, mean absolute error or binary cross-entropy and its gradient, in
    !> fp32:
    !>
    !>     element_loss[i] = weight weights[i] l(x[i], t[i])
    !>     loss = sum_i element_loss[i] / divisor
    !>     dprediction[i] = S weight weights[i] / divisor dl/dx(x[i], t[i])
    !>
    !> - Divisor: with MP_LOSS_MEAN the number of elements that are not ignored, independent of
    !>   their weights, as in torch.  If all are ignored, the mean is NaN.
    !> - Ignored elements, and elements with weights[i] = 0, have loss 0 and gradient 0 for every
    !>   prediction.  Elements with weights[i] = 0 are included in the divisor.
    !> - weight = 0 makes element_loss and dprediction 0, even if the loss is infinite, but keeps
    !>   NaN.
    !> - NaN in prediction or target makes the loss and the gradient of that element NaN.
    !> - Infinite predictions, such as an overflow of fp16, make the gradient infinite or NaN, so
    !>   that the step is skipped.  The exception is a logit of -infinity, which is masked as in
    !>   mp_softmax_xent: its probability is 0 and its gradient -t.
    !> - Accuracy: for t = 0 and t = 1, loss and gradient of a logit keep their relative accuracy
    !>   at probabilities close to 0 and 1.
    !> - Determinism: the sum is in fp64, in an order that depends only on count.
    !>
    !> @param prediction    device, count elements.
    !> @param target        device, count elements.
    !> @param weights       device, count floats, optional; NULL = 1.
    !> @param loss_scale    device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
    !> @param element_loss  device, count floats, optional, written; not multiplied by S.
    !> @param loss          device, 1 float, optional, written; not multiplied by S.
    !> @param dprediction   device, count elements, optional; may be prediction.  NULL = forward only.
    !> @param workspace     device, 256-byte aligned; mp_loss_workspace_size bytes.
    !> Source: torch.nn.MSELoss, L1Loss, BCEWithLogitsLoss; Micikevicius et al. 2018, sections 3.2,
    !>         3.3.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_loss_workspace_size
    function mp_loss(context, desc, prediction, target, weights, loss_scale, element_loss, loss, &
      dprediction, workspace, workspace_bytes, stream) result(answer) &
      bind(c, name="mp_loss")
      import
      type(c_ptr), value :: context
      type(mp_loss_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: prediction
      type(c_ptr), value :: target
      type(c_ptr), value :: weights
      type(c_ptr), value :: loss_scale
      type(c_ptr), value :: element_loss
      type(c_ptr), value :: loss
      type(c_ptr), value :: dprediction
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Transposes images from NCHW to NHWC, the layout of mp_conv2d_*, mp_pool2d_* and mp_batchnorm_*.
    !> Also converts the type, like mp_cast.
    !>
    !> @param n,c,h,w  extents, >= 0; if one is 0 the call does nothing.
    !> @param src      device, n x c x h x w, dense.
    !> @param dst      device, n x h x w x c, dense; must not overlap src.
    function mp_nchw_to_nhwc(context, n, c, h, w, src, src_dtype, dst, dst_dtype, &
      stream) result(answer) bind(c, name="mp_nchw_to_nhwc")
      import
      type(c_ptr), value :: context
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: c
      integer(c_int64_t), value :: h
      integer(c_int64_t), value :: w
      type(c_ptr), value :: src
      integer(c_int), value :: src_dtype
      type(c_ptr), value :: dst
      integer(c_int), value :: dst_dtype
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Transposes images from NHWC to NCHW: the inverse of mp_nchw_to_nhwc, with equal arguments n, c,
    !> h and w.
    function mp_nhwc_to_nchw(context, n, c, h, w, src, src_dtype, dst, dst_dtype, &
      stream) result(answer) bind(c, name="mp_nhwc_to_nchw")
      import
      type(c_ptr), value :: context
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: c
      integer(c_int64_t), value :: h
      integer(c_int64_t), value :: w
      type(c_ptr), value :: src
      integer(c_int), value :: src_dtype
      type(c_ptr), value :: dst
      integer(c_int), value :: dst_dtype
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes adjacent windows: stride = window, no padding, no dilation.
    function mp_pool2d_desc_init(desc, struct_size, mode, n, h, w, c, window_h, window_w, &
      dtype) result(answer) &
      bind(c, name="mp_pool2d_desc_init")
      import
      type(mp_pool2d_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: mode
      integer(c_int32_t), value :: n
      integer(c_int32_t), value :: h
      integer(c_int32_t), value :: w
      integer(c_int32_t), value :: c
      integer(c_int32_t), value :: window_h
      integer(c_int32_t), value :: window_w
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Returns the extents P and Q of y.
    !> @param p,q  host, out.
    function mp_pool2d_output_size(desc, p, q) result(answer) bind(c, &
      name="mp_pool2d_output_size")
      import
      type(mp_pool2d_desc_t), intent(in), optional :: desc
      integer(c_int32_t), intent(inout) :: p
      integer(c_int32_t), intent(inout) :: q
      integer(c_int) :: answer
    end function

    !> Computes the maximum or mean of each window and channel.  A window with a NaN gives NaN.
    !> @param x  device, N H W C.
    !> @param y  device, N P Q C, written; must not overlap x.
    function mp_pool2d_forward(context, desc, x, y, stream) result(answer) bind(c, &
      name="mp_pool2d_forward")
      import
      type(c_ptr), value :: context
      type(mp_pool2d_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: x
      type(c_ptr), value :: y
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the gradient of mp_pool2d_forward.
    !>
    !> Each pixel of dx sums over the windows that contain it, in fp32 and in a fixed order.
    !> MP_POOL_MAX routes dy to the maximum of each window, the first in row order if several are
    !> equal.  The maximum is recomputed from x, so y is not needed.
    !> @param x   device, N H W C; read only for MP_POOL_MAX, otherwise optional.
    !> @param dy  device, N P Q C.
    !> @param dx  device, N H W C, overwritten; must not overlap dy, nor x for MP_POOL_MAX.
    function mp_pool2d_backward(context, desc, x, dy, dx, stream) result(answer) bind(c, &
      name="mp_pool2d_backward")
      import
      type(c_ptr), value :: context
      type(mp_pool2d_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: x
      type(c_ptr), value :: dy
      type(c_ptr), value :: dx
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes a batch normalization: epsilon = 1e-5, momentum = 0.1, no activation.
    function mp_batchnorm_desc_init(desc, struct_size, rows, channels, &
      dtype) result(answer) bind(c, name="mp_batchnorm_desc_init")
      import
      type(mp_batchnorm_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int64_t), value :: rows
      integer(c_int32_t), value :: channels
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Returns the workspace size that mp_batchnorm_forward_training and mp_batchnorm_backward require:
    !> at most 4 KiB per channel.
    !> @param bytes  host, out.
    function mp_batchnorm_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_batchnorm_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_batchnorm_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Normalizes each channel with the statistics of the batch:
    !>
    !>     mean = sum_i x[i] / rows,  var = sum_i (x[i] - mean)^2 / rows
    !>     inv_std = 1 / sqrt(var + epsilon)
    !>     y[i] = activation((x[i] - mean) gamma inv_std + beta)
    !>     running_mean = (1 - momentum) running_mean + momentum mean
    !>     running_var  = (1 - momentum) running_var + momentum var rows / (rows - 1)
    !>
    !> @param tensors    host: x, saved_mean, saved_inv_std and y; optionally gamma, beta, and
    !>                   running_mean and running_var, which are updated.
    !> @param workspace  device, 256-byte aligned; mp_batchnorm_workspace_size bytes.
    !>
    !> - Non-finite values: a channel becomes NaN if its x contains an infinity or NaN, or if
    !>   rows var exceeds the range of fp32.  Its running statistics are then not updated, so a step
    !>   skipped for this reason leaves them unchanged.  A step skipped for another reason, such as a
    !>   gradient overflow, has updated them.
    !> - Recovery: an infinite or NaN running value is replaced by the next finite value of a
    !>   batch, unless momentum is 0.
    !> - Small batches: rows = 1 leaves running_var unchanged, because one sample has no unbiased
    !>   variance.  rows = 0 or channels = 0 writes nothing.
    !> - Accuracy: means and squared deviations of row blocks are combined pairwise, so the
    !>   variance is accurate even if the mean is much larger than the deviation.  The order depends
    !>   only on the shape, not on the device.
    !>
    !> Source: Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1; Chan, Golub & LeVeque,
    !> Algorithms for Computing the Sample Variance, 1983; Micikevicius et al. 2018, section 3.3
    !> (statistics in fp32).
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_batchnorm_workspace_size
    function mp_batchnorm_forward_training(context, desc, tensors, workspace, workspace_bytes, &
      stream) result(answer) bind(c, name="mp_batchnorm_forward_training")
      import
      type(c_ptr), value :: context
      type(mp_batchnorm_desc_t), intent(in), optional :: desc
      type(mp_batchnorm_tensors_t), optional :: tensors
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Normalizes each channel with the running statistics.  desc->momentum is ignored.
    !> @param tensors  host: x, running_mean and running_var (both read), and y, which may be x;
    !>                 optionally gamma and beta.
    function mp_batchnorm_forward_inference(context, desc, tensors, &
      stream) result(answer) bind(c, name="mp_batchnorm_forward_inference")
      import
      type(c_ptr), value :: context
      type(mp_batchnorm_desc_t), intent(in), optional :: desc
      type(mp_batchnorm_tensors_t), optional :: tensors
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the gradients of mp_batchnorm_forward_training:
    !>
    !>     g[i] = dy[i], or with MP_ACT_RELU 0 if y[i] was not positive
    !>     xhat[i] = (x[i] - mean) inv_std
    !>     dbeta = sum_i g[i],  dgamma = sum_i g[i] xhat[i]
    !>     dx[i] = gamma inv_std (g[i] - dbeta / rows - xhat[i] dgamma / rows)
    !>
    !> y is not read: its sign is recomputed from x.  An infinity or NaN in x or g makes dgamma and dx
    !> of its channel infinite or NaN.  Workspace and order of sums are those of the forward pass.
    !> @param tensors  host: x, gamma, beta, saved_mean and saved_inv_std as in the forward pass, dy
    !>                 and dx; optionally dgamma and dbeta.
    function mp_batchnorm_backward(context, desc, tensors, workspace, workspace_bytes, &
      stream) result(answer) bind(c, name="mp_batchnorm_backward")
      import
      type(c_ptr), value :: context
      type(mp_batchnorm_desc_t), intent(in), optional :: desc
      type(mp_batchnorm_tensors_t), optional :: tensors
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes a pass over dense tensors: dtype_b = dtype, no activation.
    function mp_pointwise_desc_init(desc, struct_size, op, rows, columns, &
      dtype) result(answer) bind(c, name="mp_pointwise_desc_init")
      import
      type(mp_pointwise_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: op
      integer(c_int64_t), value :: rows
      integer(c_int64_t), value :: columns
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Computes y = activation(z) for each element, in fp32 and rounded once.
    !>
    !> Activations are those of mp_epilogue_t.  NaN is propagated, with one exception: MP_ACT_DRELU
    !> returns a if b > 0, and otherwise 0 even if a is NaN.  rows = 0 or columns = 0 does nothing.
    !>
    !> @param a  device, rows x columns.
    !> @param b  device; ignored, and may be NULL, with MP_POINTWISE_COPY and no D* activation.
    !> @param y  device, rows x columns, written; may be a.  May be b if both have the same type and
    !>           layout: dtype_b = dtype, and ld_b = columns or rows = 1.
    !> Source: Hendrycks & Gimpel, Gaussian Error Linear Units, 2016 (both forms of GELU);
    !>         Ramachandran, Zoph & Le, Searching for Activation Functions, 2017 (SiLU).
    !> @retval MP_ERROR_INVALID_ARGUMENT a D* activation with another op; y is a b of another type or
    !>         layout; y overlaps a or b in any other way
    function mp_pointwise(context, desc, a, b, y, stream) result(answer) bind(c, &
      name="mp_pointwise")
      import
      type(c_ptr), value :: context
      type(mp_pointwise_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: a
      type(c_ptr), value :: b
      type(c_ptr), value :: y
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes a sum over dense rows: dtype_sum = MP_FP32, beta = 0.
    function mp_column_sum_desc_init(desc, struct_size, rows, columns, &
      dtype) result(answer) bind(c, name="mp_column_sum_desc_init")
      import
      type(mp_column_sum_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int64_t), value :: rows
      integer(c_int64_t), value :: columns
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Returns the workspace size that mp_column_sum requires: at most 2 KiB per column.
    !> @param bytes  host, out.
    function mp_column_sum_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_column_sum_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_column_sum_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Sums each column of a matrix, e.g. a bias gradient that no GEMM epilogue computes:
    !>
    !>     sum[j] = round(*scale * (x[0][j] + x[1][j] + ...) + beta * sum[j])
    !>
    !> The sum is in fp32, in an order that depends only on rows and columns, and rounded once.
    !> rows = 0 computes beta * sum; columns = 0 does nothing.
    !>
    !> @param x          device, rows x columns; for images rows = N H W, columns = C.
    !> @param sum        device, columns elements, written; read only if beta != 0.  Must not overlap
    !>                   x.
    !> @param epilogue   host, optional: scale, amax and found_inf.  All other fields must be 0.
    !> @param workspace  device, 256-byte aligned; mp_column_sum_workspace_size bytes.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_column_sum_workspace_size
    function mp_column_sum(context, desc, x, sum, epilogue, workspace, workspace_bytes, &
      stream) result(answer) &
      bind(c, name="mp_column_sum")
      import
      type(c_ptr), value :: context
      type(mp_column_sum_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: x
      type(c_ptr), value :: sum
      type(mp_epilogue_t), optional :: epilogue
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes one unidirectional layer with biases: dense tensors, dtype_dw = dtype, no dropout,
    !> clipping or flags.
    !>
    !> For batch-major tensors, [sequence][time step][element], set x_step = input_size and
    !> x_row = timesteps * input_size, and y_step and y_row accordingly.
    function mp_rnn_desc_init(desc, struct_size, cell, batch, timesteps, input_size, &
      hidden_size, dtype) result(answer) &
      bind(c, name="mp_rnn_desc_init")
      import
      type(mp_rnn_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: cell
      integer(c_int32_t), value :: batch
      integer(c_int32_t), value :: timesteps
      integer(c_int32_t), value :: input_size
      integer(c_int32_t), value :: hidden_size
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Returns the sizes of reserve and workspace and the number of weights.
    !> @param sizes  host, out; initialize it with MP_INIT_STRUCT.
    function mp_rnn_get_sizes(context, desc, sizes) result(answer) bind(c, &
      name="mp_rnn_get_sizes")
      import
      type(c_ptr), value :: context
      type(mp_rnn_desc_t), intent(in), optional :: desc
      type(mp_rnn_sizes_t), intent(inout) :: sizes
      integer(c_int) :: answer
    end function

    !> Computes y, hn and cn, and fills the reserve for the backward passes.
    !> @param tensors    host: weights, lengths or batch_sizes, dropout_offset, x, h0, c0, y, hn, cn,
    !>                   reserve.
    !> @param workspace  device, 256-byte aligned; its contents are not used by later calls.
    !>
    !> If timesteps is 0, hn = h0 and cn = c0; backward, dh0 = dhn and dc0 = dcn.
    !>
    !> Determinism: the bits of a sequence depend on its own values, the shape and the device, not on
    !> the padding or the lengths of the other sequences.  Likewise, a sequence split into windows that
    !> pass on h and c gives the bits of the unsplit sequence.  Both hold between calls with more than
    !> 64 rows each, where a row is one time step of one sequence.
    !>
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes or reserve_bytes is smaller than
    !>         mp_rnn_get_sizes returns; unlike in mp_gemm, neither is optional
    function mp_rnn_forward_training(context, desc, tensors, workspace, workspace_bytes, &
      stream) result(answer) bind(c, name="mp_rnn_forward_training")
      import
      type(c_ptr), value :: context
      type(mp_rnn_desc_t), intent(in), optional :: desc
      type(mp_rnn_tensors_t), optional :: tensors
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes y, hn and cn like mp_rnn_forward_training, but without dropout and without a reserve.
    !> dropout_offset and reserve are ignored.
    function mp_rnn_forward_inference(context, desc, tensors, workspace, workspace_bytes, &
      stream) result(answer) bind(c, name="mp_rnn_forward_inference")
      import
      type(c_ptr), value :: context
      type(mp_rnn_desc_t), intent(in), optional :: desc
      type(mp_rnn_tensors_t), optional :: tensors
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes dx, dh0 and dc0, and overwrites the saved gates in the reserve with their gradients.
    !> @param tensors  host: weights, lengths or batch_sizes, dropout_offset, h0 and c0 with the values
    !>                 of the forward pass; reserve, dy, dhn, dcn, dx, dh0, dc0, found_inf.
    !>
    !> Gate gradients, dx and dh0 are rounded to desc->dtype.  Non-finite gate gradients or dx set
    !> found_inf.  The gradient of a clipped c' is 0.
    function mp_rnn_backward_data(context, desc, tensors, workspace, workspace_bytes, &
      stream) result(answer) bind(c, name="mp_rnn_backward_data")
      import
      type(c_ptr), value :: context
      type(mp_rnn_desc_t), intent(in), optional :: desc
      type(mp_rnn_tensors_t), optional :: tensors
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the gradients of weights and biases, after mp_rnn_backward_data.
    !>
    !> They are sums over all time steps and sequences, in fp32 and in a fixed order; 0 if there are no
    !> time steps.  MP_RNN_ACCUMULATE adds them to the previous values.
    !> @param tensors  host: lengths or batch_sizes, dropout_offset, x (optional if the first layer's
    !>                 w_ih gradients are NULL), h0, reserve, weight_grads, found_inf, amax.
    function mp_rnn_backward_weights(context, desc, tensors, workspace, workspace_bytes, &
      stream) result(answer) bind(c, name="mp_rnn_backward_weights")
      import
      type(c_ptr), value :: context
      type(mp_rnn_desc_t), intent(in), optional :: desc
      type(mp_rnn_tensors_t), optional :: tensors
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes a lookup with dense rows: dtype_dtable = dtype, no flags.
    function mp_embedding_desc_init(desc, struct_size, rows, vocabulary, width, &
      dtype) result(answer) bind(c, name="mp_embedding_desc_init")
      import
      type(mp_embedding_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int64_t), value :: rows
      integer(c_int32_t), value :: vocabulary
      integer(c_int64_t), value :: width
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Copies rows of a table: out[i] = table[indices[i]].
    !>
    !> An index outside [0, vocabulary) makes its row of out NaN and reads nothing, so that the step is
    !> skipped.  The host cannot check indices without waiting.
    !>
    !> @param table    device, vocabulary x width.
    !> @param indices  device, rows values.
    !> @param out      device, rows x width, written; must not overlap table or indices.
    function mp_embedding_forward(context, desc, table, indices, out, &
      stream) result(answer) bind(c, name="mp_embedding_forward")
      import
      type(c_ptr), value :: context
      type(mp_embedding_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: table
      type(c_ptr), value :: indices
      type(c_ptr), value :: out
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the workspace size that mp_embedding_backward requires: less than
    !> rows (17 + width / 8) + 4 vocabulary + 128 KiB + 8 width bytes; 0 if rows is 0.
    !> @param bytes  host, out.
    function mp_embedding_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_embedding_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_embedding_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Computes the gradient of the table: dtable[v] = sum of dout[i] over all i with indices[i] = v.
    !>
    !> Rows of dtable without an index become 0.  Indices outside [0, vocabulary) are skipped.  A NaN
    !> in dout affects one row of dtable.
    !>
    !> Determinism: sums are in fp32 and rounded once.  The rows of dout with equal index are added in
    !> ascending order of i, in blocks of 64 rows whose sums are then combined;
    !> MP_EMBEDDING_ACCUMULATE adds the previous value last.  The bits of a row of dtable thus depend
    !> on its rows of dout, their order and width, not on other indices or the device.
    !>
    !> @param indices    device, rows values.
    !> @param dout       device, rows x width.
    !> @param dtable     device, vocabulary x width, overwritten.  MP_EMBEDDING_ACCUMULATE writes only
    !>                   rows with an index, without the padding row.
    !> @param found_inf  device, 1 float, optional: set to 1 and never cleared, see mp_epilogue_t.
    !> @param amax       device, 1 float, optional, updated: largest |element| written to dtable, after
    !>                   rounding.
    !> @param workspace  device, 256-byte aligned; mp_embedding_workspace_size bytes.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_embedding_workspace_size
    function mp_embedding_backward(context, desc, indices, dout, dtable, found_inf, amax, &
      workspace, workspace_bytes, stream) result(answer) &
      bind(c, name="mp_embedding_backward")
      import
      type(c_ptr), value :: context
      type(mp_embedding_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: indices
      type(c_ptr), value :: dout
      type(c_ptr), value :: dtable
      type(c_ptr), value :: found_inf
      type(c_ptr), value :: amax
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Initializes a dropout of `count` elements with seed 0.
    function mp_dropout_desc_init(desc, struct_size, count, p, dtype) result(answer) bind(c, &
      name="mp_dropout_desc_init")
      import
      type(mp_dropout_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int64_t), value :: count
      real(c_float), value :: p
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function

    !> Computes y = x mask / (1 - p), where the mask is 0 with probability p and otherwise 1.
    !>
    !> The backward pass is the same call with dy as x and dx as y: the mask is not stored but
    !> recomputed from seed, offset and element index.  Element i is dropped if word i % 4 of
    !> Philox 4x32-10 is less than floor(2^32 p).  The key is the seed; the counter, low words first,
    !> is i / 4 (1 word), the offset (2 words) and i / 4 / 2^32 (1 word).  mp_rnn_* use different
    !> random words, even with the same seed.
    !>
    !> A dropped element is 0 even if x is NaN.  The others are multiplied by 1 / (1 - p) in fp32 and
    !> rounded once.  With p = 0, y equals x.
    !>
    !> @param offset  device, 1 value, optional; NULL = 0.  Selects the mask: use a counter in device
    !>                memory that changes in every training step, such as mp_optimizer_step_counter;
    !>                otherwise all steps have equal masks.  A replayed CUDA graph reads its current
    !>                value.  It must be the same in the forward and backward pass of a step.
    !> @param x       device, count elements.
    !> @param y       device, count elements, written; may be x.
    !> Source: Srivastava et al., Dropout, 2014; Salmon et al., Parallel Random Numbers, 2011.
    function mp_dropout(context, desc, offset, x, y, stream) result(answer) bind(c, &
      name="mp_dropout")
      import
      type(c_ptr), value :: context
      type(mp_dropout_desc_t), intent(in), optional :: desc
      type(c_ptr), value :: offset
      type(c_ptr), value :: x
      type(c_ptr), value :: y
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Creates an empty graph.
    function mp_graph_create(graph, context) result(answer) bind(c, name="mp_graph_create")
      import
      type(c_ptr), intent(inout) :: graph
      type(c_ptr), value :: context
      integer(c_int) :: answer
    end function

    !> Destroys a graph and its memory.  Wait for enqueued work first, and destroy optimizers created
    !> from its lists.
    subroutine mp_graph_destroy(graph) bind(c, name="mp_graph_destroy")
      import
      type(c_ptr), value :: graph
    end subroutine

    !> Adds an input: a tensor in memory of the caller, see mp_graph_bind.
    !> @param name    host, copied, not empty.
    !> @param dtype   MP_FP32: autocast may cast it; MP_FP16, MP_BF16: read as stored; MP_DTYPE_NONE:
    !>                integers.
    !> @param extent  host, rank values >= 1; the tensor is dense and row-major.  If rank > 0,
    !>                extent[0] is the maximum batch, equal for all inputs.
    !> @param tensor  host, out: index of the tensor in all other calls.
    function mp_graph_input(graph, name, dtype, rank, extent, tensor) result(answer) bind(c, &
      name="mp_graph_input")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: name
      integer(c_int), value :: dtype
      integer(c_int32_t), value :: rank
      type(c_ptr), value :: extent
      integer(c_int32_t), intent(inout) :: tensor
      integer(c_int) :: answer
    end function

    !> Adds a trainable tensor: fp32, in memory of the graph.  mp_graph_lists returns it for an
    !> optimizer.
    !> @param tensor  host, out.
    function mp_graph_parameter(graph, name, rank, extent, tensor) result(answer) bind(c, &
      name="mp_graph_parameter")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: name
      integer(c_int32_t), value :: rank
      type(c_ptr), value :: extent
      integer(c_int32_t), intent(inout) :: tensor
      integer(c_int) :: answer
    end function

    !> Adds a tensor that persists between steps and is not trained, such as running statistics: fp32,
    !> in memory of the graph.
    !> @param tensor  host, out.
    function mp_graph_state(graph, name, rank, extent, tensor) result(answer) bind(c, &
      name="mp_graph_state")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: name
      integer(c_int32_t), value :: rank
      type(c_ptr), value :: extent
      integer(c_int32_t), intent(inout) :: tensor
      integer(c_int) :: answer
    end function

    !> Adds a node: an operation from the list above.
    !> @param op_type     host, e.g. "Linear".
    !> @param name        host, copied, not empty.
    !> @param inputs      host, num_inputs tensors; -1 = absent optional input.
    !> @param attributes  host, num_attributes values, copied; NULL if num_attributes is 0.
    !> @param outputs     host, out, num_outputs tensors; the last optional outputs can be omitted.
    !> @retval MP_ERROR_NOT_FOUND unknown operation or attribute
    !> @retval MP_ERROR_INVALID_ARGUMENT shapes that do not match; the message names the node
    function mp_graph_node(graph, op_type, name, inputs, num_inputs, attributes, num_attributes, &
      outputs, num_outputs) result(answer) &
      bind(c, name="mp_graph_node")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: op_type
      type(c_ptr), value :: name
      type(c_ptr), value :: inputs
      integer(c_int32_t), value :: num_inputs
      type(mp_graph_attribute_t), intent(in), optional :: attributes
      integer(c_int32_t), value :: num_attributes
      integer(c_int32_t), intent(inout) :: outputs
      integer(c_int32_t), value :: num_outputs
      integer(c_int) :: answer
    end function

    !> Marks an output of a node as readable: it gets memory that is not shared with other tensors and
    !> keeps its value until the next pass.  Outputs of losses are readable anyway.  A tensor that
    !> depends on the loss is computed together with it, see mp_graph_mode_t.
    function mp_graph_output(graph, tensor) result(answer) bind(c, name="mp_graph_output")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      integer(c_int) :: answer
    end function

    !> Keeps the gradient of an output of a node, so that mp_graph_tensor_t.grad can be read, e.g. to
    !> inspect its range in fp16.  Gradients of parameters are kept anyway.
    function mp_graph_keep_gradient(graph, tensor) result(answer) bind(c, &
      name="mp_graph_keep_gradient")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      integer(c_int) :: answer
    end function

    !> Sets the loss to minimize: output 0 of a SoftmaxXent, MSE, L1 or BCEWithLogits.  Without a loss
    !> and without mp_graph_seed_gradient, the graph has no backward pass.
    function mp_graph_loss(graph, tensor) result(answer) bind(c, name="mp_graph_loss")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      integer(c_int) :: answer
    end function

    !> Adds an input for the gradient of a loss that the caller computes: dL / d(tensor), in fp32, with
    !> the shape of `tensor`, not multiplied by S.
    !>
    !> Read `tensor`, which becomes an output, after mp_graph_forward; bind its gradient before
    !> mp_graph_backward.  mp_graph_backward multiplies the gradient by S.  Gradients of several seeds
    !> and of mp_graph_loss add up.
    !> @param tensor  floating-point output of a node; at most one seed per tensor.
    !> @param input   host, out.
    function mp_graph_seed_gradient(graph, tensor, input) result(answer) bind(c, &
      name="mp_graph_seed_gradient")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      integer(c_int32_t), intent(inout) :: input
      integer(c_int) :: answer
    end function

    !> Enables mixed precision: the policy determines the type of each operation.  Call it before
    !> mp_graph_compile.  If the policy's gate is closed on this device (mp_autocast_gate), the graph
    !> stays fp32, with one warning.
    !> @param policy  must exist until mp_graph_compile has succeeded.  MP_AUTOCAST_EMULATE is not
    !>                supported.
    function mp_graph_autocast(graph, policy) result(answer) bind(c, name="mp_graph_autocast")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: policy
      integer(c_int) :: answer
    end function

    !> Appends the backward pass, inserts casts, fuses operations and allocates memory.  The graph
    !> cannot be modified afterwards.  Parameters and states are initialized to 0.
    !> @retval MP_ERROR_INVALID_ARGUMENT the loss depends on no parameter, or a parameter has no
    !>         influence on it
    !> @retval MP_ERROR_OUT_OF_MEMORY nothing was allocated
    function mp_graph_compile(graph) result(answer) bind(c, name="mp_graph_compile")
      import
      type(c_ptr), value :: graph
      integer(c_int) :: answer
    end function

    !> Sets the address of an input, from the next pass on.  A pass reads as many elements as the
    !> current batch has.
    !> @param data  device, aligned to its element size; 16-byte alignment selects the fastest kernels.
    !>              NULL = unbound.
    function mp_graph_bind(graph, tensor, data) result(answer) bind(c, name="mp_graph_bind")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      type(c_ptr), value :: data
      integer(c_int) :: answer
    end function

    !> Sets the batch size, from the next pass on.  The first call with a new size takes longer on the
    !> host, and allocates if that size needs more workspace than mp_graph_compile planned.
    !> @param batch  1 to extent[0] of the inputs.
    !> @retval MP_ERROR_OUT_OF_MEMORY the batch size is unchanged
    function mp_graph_set_batch(graph, batch) result(answer) bind(c, name="mp_graph_set_batch")
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), value :: batch
      integer(c_int) :: answer
    end function

    !> Copies values to a parameter or state, in stream order, and updates the 16-bit copy of a
    !> parameter if it has one.
    !> @param values  host or device, fp32, all elements of the tensor.
    function mp_graph_write(graph, tensor, values, stream) result(answer) bind(c, &
      name="mp_graph_write")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      type(c_ptr), value :: values
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the outputs from the bound inputs.
    !> @retval MP_ERROR_INVALID_ARGUMENT a required input is not bound
    function mp_graph_forward(graph, mode, stream) result(answer) bind(c, &
      name="mp_graph_forward")
      import
      type(c_ptr), value :: graph
      integer(c_int), value :: mode
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Computes the loss, and S times the gradients of all parameters.  The previous pass must be
    !> mp_graph_forward with MP_GRAPH_TRAINING and the same batch.
    !> @param scaler  optional: provides S and found_inf, which an overflow in the pass sets.
    !>                NULL: S = 1.
    function mp_graph_backward(graph, scaler, stream) result(answer) bind(c, &
      name="mp_graph_backward")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: scaler
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the step of a graph with Dropout: the number of forward passes in training, including
    !> replays of a CUDA graph.  Waits for `stream`.  Save it in checkpoints, so that a resumed run has
    !> the same masks as an uninterrupted one.
    !> @param t  host, out; 0 for a graph without Dropout.
    function mp_graph_get_step_sync(graph, t, stream) result(answer) bind(c, &
      name="mp_graph_get_step_sync")
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), intent(inout) :: t
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Sets the step, e.g. from a checkpoint; mp_graph_compile sets it to 0.  Waits for `stream`.
    !> @param t  0 to 2^52.  No effect on a graph without Dropout.
    function mp_graph_set_step_sync(graph, t, stream) result(answer) bind(c, &
      name="mp_graph_set_step_sync")
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), value :: t
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the lists for an optimizer: all parameters, in the order of their creation.  The lists
    !> belong to the graph and exist as long as it does.  No two gradients share memory.
    !> @param grads,master,model  host, out, each optional.  model is NULL if no parameter has a 16-bit
    !>                            copy; mp_optimizer_desc_t accepts that.
    function mp_graph_lists(graph, grads, master, model) result(answer) bind(c, &
      name="mp_graph_lists")
      import
      type(c_ptr), value :: graph
      type(c_ptr), intent(inout), optional :: grads
      type(c_ptr), intent(inout), optional :: master
      type(c_ptr), intent(inout), optional :: model
      integer(c_int) :: answer
    end function

    !> Returns the properties of a tensor.  Before mp_graph_compile it has no addresses.
    !> @param info  host, out; initialize it with MP_INIT_STRUCT.
    function mp_graph_get_tensor(graph, tensor, info) result(answer) bind(c, &
      name="mp_graph_get_tensor")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      type(mp_graph_tensor_t), intent(inout) :: info
      integer(c_int) :: answer
    end function

    !> Returns the device memory of a compiled graph.
    !> @param memory  host, out; initialize it with MP_INIT_STRUCT.
    function mp_graph_get_memory(graph, memory) result(answer) bind(c, &
      name="mp_graph_get_memory")
      import
      type(c_ptr), value :: graph
      type(mp_graph_memory_t), intent(inout) :: memory
      integer(c_int) :: answer
    end function

    !> Writes the reason for the type of each operation, forward and backward, before fusion.  The
    !> report is that of mp_autocast_explain.
    !> @param text   host, optional, out: NUL-terminated; NULL only returns the size.
    !> @param bytes  host.  In: size of text.  Out: required size, including the NUL.
    !> @retval MP_ERROR_INVALID_ARGUMENT compiled without mp_graph_autocast
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL *bytes is smaller than the required size
    function mp_graph_explain(graph, form, text, bytes) result(answer) bind(c, &
      name="mp_graph_explain")
      import
      type(c_ptr), value :: graph
      integer(c_int), value :: form
      type(c_ptr), value :: text
      type(c_ptr), value :: bytes
      integer(c_int) :: answer
    end function

    !> Writes the calls of a compiled graph in order, one per line: pass, operations, function,
    !> tensors, types and shapes.
    !>
    !> The pass is "forward", "backward" or "inference".  Lines marked inference compute the loss and
    !> tensors that depend on it: in inference mode they run in the forward pass, in training the
    !> backward pass makes these calls.  `text` and `bytes` as in mp_graph_explain.
    function mp_graph_describe(graph, text, bytes) result(answer) bind(c, &
      name="mp_graph_describe")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: text
      type(c_ptr), value :: bytes
      integer(c_int) :: answer
    end function

    !> Initializes the configuration of a preset.  In presets of other systems, unlisted fields have
    !> the defaults of MP_SCALER_BACKOFF, except that max_scale and diverged_after are 0.
    !> @retval MP_ERROR_INVALID_ARGUMENT unknown preset
    function mp_scaler_config_init_preset(config, struct_size, preset) result(answer) bind(c, &
      name="mp_scaler_config_init_preset")
      import
      type(mp_scaler_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: preset
      integer(c_int) :: answer
    end function

    !> Initializes a configuration from a name, as used on command lines and in other systems'
    !> configuration files.  Case is ignored.
    !>
    !>     "Backoff"    MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF (OpenSeq2Seq's name)
    !>     "LogMax"     MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX (OpenSeq2Seq's name)
    !>     "lognormal"  MP_SCALER_PRESET_LOGNORMAL
    !>     "dynamic"    MP_SCALER_PRESET_APEX_AMP (Apex's name); the initial S is that of GradScaler
    !>     "none"       MP_SCALER_STATIC with S = 1
    !>     "128"        MP_SCALER_STATIC with S = 128, and likewise for every other valid S
    !>
    !> If a static S is outside [1, 2^24], min_scale or max_scale is set to it.
    !> @param name    host.
    !> @param config  host, out; zeroed on error.
    !> @retval MP_ERROR_NOT_FOUND unknown name
    !> @retval MP_ERROR_INVALID_ARGUMENT a number <= 0, not finite, or without a finite reciprocal
    function mp_scaler_config_from_name(name, config, struct_size) result(answer) bind(c, &
      name="mp_scaler_config_from_name")
      import
      type(c_ptr), value :: name
      type(mp_scaler_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Converts a checkpoint of torch into the configuration and state of a scaler that continues it.
    !> @param saved   host.
    !> @param config  host, out, for mp_scaler_create; initialize it with MP_INIT_STRUCT.
    !> @param state   host, out, for mp_scaler_set_state_sync; initialize it with MP_INIT_STRUCT.
    !> @retval MP_ERROR_INVALID_ARGUMENT a scale without a finite reciprocal; a factor or interval out
    !>         of range; or growth_tracker >= growth_interval, which torch's set_growth_interval can
    !>         cause. torch compares the two for equality, so S would not grow there before the next
    !>         overflow; here it would grow at once.  Set growth_tracker to 0
    function mp_scaler_from_torch(saved, config, state) result(answer) bind(c, &
      name="mp_scaler_from_torch")
      import
      type(mp_torch_scaler_t), intent(in), optional :: saved
      type(mp_scaler_config_t), intent(inout) :: config
      type(mp_scaler_state_t), intent(inout) :: state
      integer(c_int) :: answer
    end function

    !> Converts a configuration and state for GradScaler.load_state_dict.  Hysteresis, limits of S and
    !> counts of skips are lost: torch has none.
    !> @param saved  host, out.
    function mp_scaler_to_torch(config, state, saved) result(answer) bind(c, &
      name="mp_scaler_to_torch")
      import
      type(mp_scaler_config_t), intent(in), optional :: config
      type(mp_scaler_state_t), intent(in), optional :: state
      type(mp_torch_scaler_t), intent(inout) :: saved
      integer(c_int) :: answer
    end function

    !> Converts a checkpoint of Megatron-LM into a state, for a scaler with MP_SCALER_PRESET_MEGATRON.
    !> @param saved  host.
    !> @param state  host, out; initialize it with MP_INIT_STRUCT.
    !> @retval MP_ERROR_INVALID_ARGUMENT a scale without a finite reciprocal, or a growth_tracker < 0;
    !>         mp_scaler_set_state_sync checks the limits that depend on the scaler
    function mp_scaler_from_megatron(saved, state) result(answer) bind(c, &
      name="mp_scaler_from_megatron")
      import
      type(mp_megatron_scaler_t), intent(in), optional :: saved
      type(mp_scaler_state_t), intent(inout) :: state
      integer(c_int) :: answer
    end function

    !> Converts a state for DynamicGradScaler.load_state_dict.
    !> @param saved  host, out.
    function mp_scaler_to_megatron(state, saved) result(answer) bind(c, &
      name="mp_scaler_to_megatron")
      import
      type(mp_scaler_state_t), intent(in), optional :: state
      type(mp_megatron_scaler_t), intent(inout) :: saved
      integer(c_int) :: answer
    end function

    !> Returns a kernel for a problem of mp_gemm with 16-byte aligned operands.  Index 0 is the kernel
    !> that mp_gemm would launch.  The others follow by predicted time; unsupported kernels are last.
    !> @param info  host, out; initialize it with MP_INIT_STRUCT.
    !> @retval MP_ERROR_NOT_FOUND index is past the last kernel
    function mp_gemm_kernel_info(context, desc, index, info) result(answer) bind(c, &
      name="mp_gemm_kernel_info")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      integer(c_int32_t), value :: index
      type(mp_kernel_info_t), intent(inout) :: info
      integer(c_int) :: answer
    end function

    !> Returns a kernel for one pass of a convolution, like mp_gemm_kernel_info.
    function mp_conv2d_kernel_info(context, desc, op, index, info) result(answer) bind(c, &
      name="mp_conv2d_kernel_info")
      import
      type(c_ptr), value :: context
      type(mp_conv2d_desc_t), intent(in), optional :: desc
      integer(c_int), value :: op
      integer(c_int32_t), value :: index
      type(mp_kernel_info_t), intent(inout) :: info
      integer(c_int) :: answer
    end function

    !> Returns an implementation of the time steps of a recurrent layer: separate GEMM and cell
    !> kernels, or one fused kernel per step.  Index 0 is the one that the library would use.
    !> workspace_bytes is that of the complete call, as in mp_rnn_get_sizes.
    function mp_rnn_kernel_info(context, desc, index, info) result(answer) bind(c, &
      name="mp_rnn_kernel_info")
      import
      type(c_ptr), value :: context
      type(mp_rnn_desc_t), intent(in), optional :: desc
      integer(c_int32_t), value :: index
      type(mp_kernel_info_t), intent(inout) :: info
      integer(c_int) :: answer
    end function
  end interface

contains

  !> Initializes *config: MP_DEVICE_AUTO, all SMs, cudaMalloc.
  function mp_context_config_default() result(answer)
    type(mp_context_config_t) :: answer
    if (mp_context_config_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes an identity epilogue: no activation, bias or statistics.
  function mp_epilogue_default() result(answer)
    type(mp_epilogue_t) :: answer
    if (mp_epilogue_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a dense, untransposed, unbatched product: alpha = 1, beta = 0, lda = k,
  !> ldb = ldc = ldd = n.
  function mp_gemm_desc_default(m, n, k, dtype_ab, dtype_cd) result(answer)
    integer(c_int64_t), value :: m
    integer(c_int64_t), value :: n
    integer(c_int64_t), value :: k
    integer(c_int), value :: dtype_ab
    integer(c_int), value :: dtype_cd
    type(mp_gemm_desc_t) :: answer
    if (mp_gemm_desc_init(answer, c_sizeof(answer), m, n, k, dtype_ab, &
      dtype_cd) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a dense, untransposed item without data: lda = k, ldb = ldc = ldd = n.
  function mp_gemm_group_item_default(m, n, k) result(answer)
    integer(c_int64_t), value :: m
    integer(c_int64_t), value :: n
    integer(c_int64_t), value :: k
    type(mp_gemm_group_item_t) :: answer
    if (mp_gemm_group_item_init(answer, c_sizeof(answer), m, n, &
      k) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a convolution with unit stride and dilation, no padding and one group; alpha = 1,
  !> beta = 0, dtype_out = dtype.
  function mp_conv2d_desc_default(n, h, w, c, k, r, s, dtype) result(answer)
    integer(c_int32_t), value :: n
    integer(c_int32_t), value :: h
    integer(c_int32_t), value :: w
    integer(c_int32_t), value :: c
    integer(c_int32_t), value :: k
    integer(c_int32_t), value :: r
    integer(c_int32_t), value :: s
    integer(c_int), value :: dtype
    type(mp_conv2d_desc_t) :: answer
    if (mp_conv2d_desc_init(answer, c_sizeof(answer), n, h, w, c, k, r, s, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes the defaults of a policy:
  !>
  !>     init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
  !>     growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
  !>     beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
  !>     overflow_std_dev 3.0902      sigma_floor 0.5
  !>
  !> 65536 is the initial scale of torch.amp.GradScaler.  24 overflows reduce S from 2^24 to 1.
  function mp_scaler_config_default(policy) result(answer)
    integer(c_int), value :: policy
    type(mp_scaler_config_t) :: answer
    if (mp_scaler_config_init(answer, c_sizeof(answer), &
      policy) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes the state of a new scaler.
  function mp_scaler_state_default(config) result(answer)
    type(mp_scaler_config_t), intent(in) :: config
    type(mp_scaler_state_t) :: answer
    if (mp_scaler_state_init(answer, c_sizeof(answer), &
      config) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes the defaults of the cited papers.  weight_decay is 0, except for methods that are
  !> defined by it.  lr has no default.  trust is that of LARS; Apex's LARC has 0.02.
  !>
  !>               beta1   beta2   eps     others
  !>     SGD       0.9     0       0       trust 0.001
  !>     Adam      0.9     0.999   1e-8
  !>     LAMB      0.9     0.999   1e-6    weight_decay 0.01
  !>     NovoGrad  0.95    0.98    1e-8
  !>     Adagrad   0       0       1e-10
  !>     RMSProp   0       0.9     1e-8
  !>
  !> decay_power is 1; all other fields are 0.
  function mp_hyper_default(kind, lr) result(answer)
    integer(c_int), value :: kind
    real(c_float), value :: lr
    type(mp_hyper_t) :: answer
    if (mp_hyper_init(answer, c_sizeof(answer), kind, lr) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a descriptor with one group and no tensors.  flags is MP_OPT_DECOUPLED_DECAY for
  !> MP_OPT_LAMB and 0 for all other kinds.
  function mp_optimizer_desc_default(kind) result(answer)
    integer(c_int), value :: kind
    type(mp_optimizer_desc_t) :: answer
    if (mp_optimizer_desc_init(answer, c_sizeof(answer), &
      kind) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes rounding to nearest with clamping on overflow.
  function mp_model_options_default() result(answer)
    type(mp_model_options_t) :: answer
    if (mp_model_options_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a communicator of a single rank, which does not communicate.
  function mp_comm_default() result(answer)
    type(mp_comm_t) :: answer
    if (mp_comm_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes options without clipping or reports, for one rank.
  function mp_step_options_default() result(answer)
    type(mp_step_options_t) :: answer
    if (mp_step_options_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a configuration: preset MP_AUTOCAST_DEFAULT, level MP_AUTOCAST_NORMAL, no flags, no
  !> limits.
  function mp_autocast_config_default(low) result(answer)
    integer(c_int), value :: low
    type(mp_autocast_config_t) :: answer
    if (mp_autocast_config_init(answer, c_sizeof(answer), &
      low) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes the loss scaler for `low`.  MP_FP16: MP_SCALER_PRESET_KERAS, which TensorFlow calls
  !> "dynamic".  MP_BF16 and MP_FP32: S = 1.
  !> @retval MP_ERROR_INVALID_ARGUMENT low is any other value
  function mp_autocast_scaler_default(low) result(answer)
    integer(c_int), value :: low
    type(mp_scaler_config_t) :: answer
    if (mp_autocast_scaler_init(answer, c_sizeof(answer), &
      low) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a loss of dense rows: weight = 1, no smoothing, label -100 ignored.
  !>
  !> -100 is the ignore_index of torch.  Other labels outside [0, classes), such as -1 or `classes`,
  !> are still detected.
  function mp_xent_desc_default(rows, classes, dtype) result(answer)
    integer(c_int64_t), value :: rows
    integer(c_int64_t), value :: classes
    integer(c_int), value :: dtype
    type(mp_xent_desc_t) :: answer
    if (mp_xent_desc_init(answer, c_sizeof(answer), rows, classes, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a mean over all elements: weight = 1, dtype_target = dtype.
  function mp_loss_desc_default(kind, count, dtype) result(answer)
    integer(c_int), value :: kind
    integer(c_int64_t), value :: count
    integer(c_int), value :: dtype
    type(mp_loss_desc_t) :: answer
    if (mp_loss_desc_init(answer, c_sizeof(answer), kind, count, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes adjacent windows: stride = window, no padding, no dilation.
  function mp_pool2d_desc_default(mode, n, h, w, c, window_h, window_w, dtype) result(answer)
    integer(c_int), value :: mode
    integer(c_int32_t), value :: n
    integer(c_int32_t), value :: h
    integer(c_int32_t), value :: w
    integer(c_int32_t), value :: c
    integer(c_int32_t), value :: window_h
    integer(c_int32_t), value :: window_w
    integer(c_int), value :: dtype
    type(mp_pool2d_desc_t) :: answer
    if (mp_pool2d_desc_init(answer, c_sizeof(answer), mode, n, h, w, c, window_h, window_w, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a batch normalization: epsilon = 1e-5, momentum = 0.1, no activation.
  function mp_batchnorm_desc_default(rows, channels, dtype) result(answer)
    integer(c_int64_t), value :: rows
    integer(c_int32_t), value :: channels
    integer(c_int), value :: dtype
    type(mp_batchnorm_desc_t) :: answer
    if (mp_batchnorm_desc_init(answer, c_sizeof(answer), rows, channels, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a pass over dense tensors: dtype_b = dtype, no activation.
  function mp_pointwise_desc_default(op, rows, columns, dtype) result(answer)
    integer(c_int), value :: op
    integer(c_int64_t), value :: rows
    integer(c_int64_t), value :: columns
    integer(c_int), value :: dtype
    type(mp_pointwise_desc_t) :: answer
    if (mp_pointwise_desc_init(answer, c_sizeof(answer), op, rows, columns, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a sum over dense rows: dtype_sum = MP_FP32, beta = 0.
  function mp_column_sum_desc_default(rows, columns, dtype) result(answer)
    integer(c_int64_t), value :: rows
    integer(c_int64_t), value :: columns
    integer(c_int), value :: dtype
    type(mp_column_sum_desc_t) :: answer
    if (mp_column_sum_desc_init(answer, c_sizeof(answer), rows, columns, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes one unidirectional layer with biases: dense tensors, dtype_dw = dtype, no dropout,
  !> clipping or flags.
  !>
  !> For batch-major tensors, [sequence][time step][element], set x_step = input_size and
  !> x_row = timesteps * input_size, and y_step and y_row accordingly.
  function mp_rnn_desc_default(cell, batch, timesteps, input_size, hidden_size, dtype) result(answer)
    integer(c_int), value :: cell
    integer(c_int32_t), value :: batch
    integer(c_int32_t), value :: timesteps
    integer(c_int32_t), value :: input_size
    integer(c_int32_t), value :: hidden_size
    integer(c_int), value :: dtype
    type(mp_rnn_desc_t) :: answer
    if (mp_rnn_desc_init(answer, c_sizeof(answer), cell, batch, timesteps, input_size, &
      hidden_size, dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a lookup with dense rows: dtype_dtable = dtype, no flags.
  function mp_embedding_desc_default(rows, vocabulary, width, dtype) result(answer)
    integer(c_int64_t), value :: rows
    integer(c_int32_t), value :: vocabulary
    integer(c_int64_t), value :: width
    integer(c_int), value :: dtype
    type(mp_embedding_desc_t) :: answer
    if (mp_embedding_desc_init(answer, c_sizeof(answer), rows, vocabulary, width, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes a dropout of `count` elements with seed 0.
  function mp_dropout_desc_default(count, p, dtype) result(answer)
    integer(c_int64_t), value :: count
    real(c_float), value :: p
    integer(c_int), value :: dtype
    type(mp_dropout_desc_t) :: answer
    if (mp_dropout_desc_init(answer, c_sizeof(answer), count, p, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Initializes the configuration of a preset.  In presets of other systems, unlisted fields have
  !> the defaults of MP_SCALER_BACKOFF, except that max_scale and diverged_after are 0.
  !> @retval MP_ERROR_INVALID_ARGUMENT unknown preset
  function mp_scaler_config_preset(preset) result(answer)
    integer(c_int), value :: preset
    type(mp_scaler_config_t) :: answer
    if (mp_scaler_config_init_preset(answer, c_sizeof(answer), &
      preset) /= MP_SUCCESS) answer%struct_size = 0
  end function

end module
