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
  !> Comparable with <; 0.1.0 is 100, 1.2.3 is 10203.
  integer(c_int), parameter :: MP_VERSION_NUMBER = 100
  !> the calling thread's current CUDA device, or an error
  integer(c_int), parameter :: MP_DEVICE_CURRENT = -1
  !> the CPU
  integer(c_int), parameter :: MP_DEVICE_HOST = -2
  !> as CURRENT; HOST, with a warning, where there is none
  integer(c_int), parameter :: MP_DEVICE_AUTO = -3
  !> Steps that mp_step_query remembers.
  integer(c_int), parameter :: MP_STEP_QUERY_DEPTH = 1024
  !> The slot of inputs and outputs that are fp32 always: statistics of a batch norm, gain of a layer
  !> norm.  Whatever the class of its node, 16 bits spread neither from this slot nor to it.
  integer(c_int), parameter :: MP_SLOT_FP32 = 255
  !> The most dimensions that a tensor has.
  integer(c_int), parameter :: MP_GRAPH_MAX_RANK = 8

  !> Values are part of the ABI.  The decades say whose fault it is.
  enum, bind(c)  ! mp_status_t
    enumerator :: MP_SUCCESS = 0
    !> a value outside its documented range
    enumerator :: MP_ERROR_INVALID_ARGUMENT = 1
    !> a pointer or ld breaks a documented alignment
    enumerator :: MP_ERROR_MISALIGNED = 2
    !> ask mp_*_workspace_size
    enumerator :: MP_ERROR_WORKSPACE_TOO_SMALL = 3
    !> struct_size is 0, or asks for unknown features
    enumerator :: MP_ERROR_STRUCT_SIZE = 4
    !> no kernel for this combination; mp_last_error says which part
    enumerator :: MP_ERROR_UNSUPPORTED = 20
    !> not compiled for this device
    enumerator :: MP_ERROR_ARCH_MISMATCH = 21
    !> name unknown, enumeration exhausted, shared library missing
    enumerator :: MP_ERROR_NOT_FOUND = 22
    enumerator :: MP_ERROR_OUT_OF_MEMORY = 40
    !> mp_last_error has the CUDA error name
    enumerator :: MP_ERROR_CUDA = 41
    !> a callback of mp_comm_t failed; mp_last_error has its code
    enumerator :: MP_ERROR_COMM = 42
    enumerator :: MP_ERROR_INTERNAL = 60
  end enum

  !> How much a message matters; a smaller number matters more.
  enum, bind(c)  ! mp_log_level_t
    !> every error, once; by default only errors that no status returns
    enumerator :: MP_LOG_ERROR = 1
    !> slow paths taken for a reason the caller can change
    enumerator :: MP_LOG_WARN = 2
    !> kernel choices, the first time each is made; skipped steps, where the
    !> host asks for their outcome
    enumerator :: MP_LOG_INFO = 3
    !> every call
    enumerator :: MP_LOG_DEBUG = 4
  end enum

  !> Element types.  0 is deliberately invalid: a forgotten field is an error.
  enum, bind(c)  ! mp_dtype_t
    enumerator :: MP_DTYPE_NONE = 0
    !> IEEE binary16: 5 exponent bits, 11 significant bits, max 65504
    enumerator :: MP_FP16 = 1
    !> bfloat16: 8 exponent bits, 8 significant bits
    enumerator :: MP_BF16 = 2
    !> IEEE binary32
    enumerator :: MP_FP32 = 3
  end enum

  !> What the kernels of a context were compiled for.
  enum, bind(c)  ! mp_target_t
    enumerator :: MP_TARGET_CUDA = 1
    enumerator :: MP_TARGET_HOST = 2
  end enum

  !> An operand as it is stored, or its transpose.
  enum, bind(c)  ! mp_op_t
    enumerator :: MP_OP_N = 0
    enumerator :: MP_OP_T = 1
  end enum

  !> A function applied to each element of a result, or its derivative.
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

  !> The dimension that the groups of mp_gemm_ragged share.
  enum, bind(c)  ! mp_ragged_t
    !> rows: forward pass and input gradients of the experts of a layer
    enumerator :: MP_RAGGED_M = 0
    !> k: their weight gradients
    enumerator :: MP_RAGGED_K = 1
  end enum

  !> The three passes of a convolutional layer.
  enum, bind(c)  ! mp_conv_op_t
    enumerator :: MP_CONV_FPROP = 0
    enumerator :: MP_CONV_DGRAD = 1
    enumerator :: MP_CONV_WGRAD = 2
  end enum

  !> How the loss scale S follows the gradients.
  enum, bind(c)  ! mp_scaler_policy_t
    !> S never changes.  bf16 training uses this with S = 1.
    enumerator :: MP_SCALER_STATIC = 0
    !> Overflow: S *= backoff_factor.  growth_interval clean steps in a row:
    !> S *= growth_factor, unless that is not a finite number.  Source: torch.amp.GradScaler.
    !> hysteresis h > 1 forgives h - 1 overflows; further ones back off, until the budget is
    !> refilled: when S grows (Megatron-LM) or, with MP_SCALER_REFILL_EACH_STEP, by every
    !> clean step (apex update_scale_hysteresis).
    enumerator :: MP_SCALER_BACKOFF = 1
    !> Models log2 of the largest unscaled gradient as normal, with running mean mu (decay
    !> beta1) and deviation sigma (decay beta2, at least sigma_floor), and sets
    !>
    !>     S = 2^floor(log2_max - mu - overflow_std_dev * sigma)
    !> so that overflow has a fixed small probability.  An overflowing step leaves mu and
    !> sigma alone, backs off once, and raises a head-room h (bits) subtracted in the exponent
    !> above; every growth_interval clean steps h shrinks by one bit.  Without h the policy
    !> livelocks when an activation gradient, which no statistic sees, overflows first.  After
    !> overflows before the first statistics, these begin with an h that leaves S as it is.
    !> A step whose gradients are all zero changes nothing.
    !> Source: OpenSeq2Seq LogMaxScaler, with its defects repaired (there an overflow feeds
    !> 2^log_max into a mean of log2 values and pins S at its minimum for ~12,000 steps).
    enumerator :: MP_SCALER_LOGNORMAL = 2
    !> OpenSeq2Seq's LogMaxScaler as it was shipped; see mpcore/compat.h.
    enumerator :: MP_SCALER_LOGMAX = 3
  end enum

  !> Bits of mp_scaler_config.flags.
  enum, bind(c)  ! mp_scaler_flags_t
    !> backoff; see there
    enumerator :: MP_SCALER_REFILL_EACH_STEP = 1
    !> Backoff: the first clean step, and the first after each overflow, does not count towards
    !> growth_interval.  Source: DeepSpeed FP16_Optimizer.
    enumerator :: MP_SCALER_FIRST_STEP_UNCOUNTED = 2
  end enum

  !> Whether a scaler still gets anywhere.
  enum, bind(c)  ! mp_scaler_status_t
    enumerator :: MP_SCALER_OK = 0
    !> see mp_scaler_config.diverged_after; or S has no finite inverse
    enumerator :: MP_SCALER_DIVERGED = 1
  end enum

  !> In all formulas g is the unscaled, clipped gradient, w the fp32 master weight, t the
  !> number of applied (not skipped) steps including this one.  Norms |x| are taken over one tensor,
  !> computed as in mp_l2norm.
  enum, bind(c)  ! mp_optimizer_kind_t
    !> m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m
    !> MP_OPT_NESTEROV: w -= lr (g + momentum m).  Weight decay: g += wd w, or with
    !> MP_OPT_DECAY_AFTER_MOMENTUM w -= lr wd w, which momentum does not see.
    !> MP_OPT_LARS, MP_OPT_LARC: g = a (g + wd w) instead, with one a per tensor:
    !>
    !>     LARS: a = trust |w| / (|g| + wd |w| + eps);   LARC: min(1, that / lr)
    !> a = 1 where |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
    !> and tensors that begin as 0 stay near it.)
    !> Source: You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
    !> algorithm 1; LARC: Apex, apex/parallel/LARC.py.
    enumerator :: MP_OPT_SGD = 1
    !> m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)
    !> Decay: g += wd w, or with MP_OPT_DECOUPLED_DECAY w -= lr wd w (AdamW).
    !> Source: Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2.
    enumerator :: MP_OPT_ADAM = 2
    !> w -= lr r u, where w -= lr u is the step of MP_OPT_ADAM with the same flags, its decay
    !> included, and r = |w| / |u|.  r = 1 where |w| or |u| is 0, and, unless MP_OPT_NVLAMB, for
    !> tensors with wd = 0 (biases, normalisation), as in Apex's FusedLAMB.
    !> The paper's form has MP_OPT_DECOUPLED_DECAY, which mp_optimizer_desc_default sets.  The global
    !> clipping that Apex has inside is mp_step_options.max_grad_norm.
    !> Source: You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2.
    enumerator :: MP_OPT_LAMB = 3
    !> v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1), one number per tensor;
    !> m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m
    !> dampening = b1 averages the gradients, as upstream's grad_averaging does.
    !> (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
    !> corrects the bias of a v that begins without one.  This is the paper's form.)
    !> Source: Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
    !> algorithm 1.
    enumerator :: MP_OPT_NOVOGRAD = 4
    !> v += g^2;  w -= lr g / (sqrt(v) + eps).  v may begin above 0 (TensorFlow: 0.1).
    !> Decay: g += wd w, or with MP_OPT_DECOUPLED_DECAY w -= lr wd w.
    !> Source: Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch.
    enumerator :: MP_OPT_ADAGRAD = 5
    !> v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps)
    !> With momentum: m = momentum m + g / (sqrt(v) + eps);  w -= lr m.  Decay: g += wd w.
    !> Source: Tieleman & Hinton, COURSERA: Neural Networks for Machine Learning, 2012, lecture 6.5;
    !> eps and momentum as in torch.
    enumerator :: MP_OPT_RMSPROP = 6
  end enum

  !> Bits of mp_optimizer_desc.flags.
  enum, bind(c)  ! mp_optimizer_flags_t
    !> SGD
    enumerator :: MP_OPT_NESTEROV = 1
    !> Adam: makes it AdamW; LAMB; Adagrad
    enumerator :: MP_OPT_DECOUPLED_DECAY = 2
    !> Adam, LAMB: mhat = m, vhat = v
    enumerator :: MP_OPT_NO_BIAS_CORRECTION = 4
    !> Let the 16-bit copy of a weight that overflows become infinite.  Without this flag it is
    !> clamped to the largest finite value: an infinite weight makes every later gradient non-finite,
    !> so every later step is skipped and training never recovers.
    enumerator :: MP_OPT_MODEL_OVERFLOW = 16
    !> SGD, not with MP_OPT_LARC or MP_OPT_LARS
    enumerator :: MP_OPT_DECAY_AFTER_MOMENTUM = 32
    !> SGD
    enumerator :: MP_OPT_LARC = 64
    !> SGD, not with MP_OPT_LARC
    enumerator :: MP_OPT_LARS = 128
    !> LAMB: adapts the tensors without decay too
    enumerator :: MP_OPT_NVLAMB = 256
    !> Round the 16-bit copy of a weight up or down at random, so that on average it is the weight: a
    !> change below half a unit of the copy is not lost in every step.  What the type can hold stays
    !> as it is.  The random numbers follow from rounding_seed, t, the tensor's index and the
    !> element's, and from nothing else: not from the device, not from being interrupted and resumed.
    !> Probabilities are exact (fp16 subnormals: to within 2^-32).
    !> Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1;
    !>         Philox
    !> 4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
    enumerator :: MP_OPT_STOCHASTIC_ROUNDING = 512
  end enum

  !> How the learning rate follows t, on the device: a skipped step does not advance it, and a
  !> captured graph needs no host.  Every schedule begins with a linear warm-up,
  !>
  !>     lr(t) = lr t / warmup_steps   for t <= warmup_steps,
  !> and s = t - 1 - warmup_steps counts the steps after it: the first of them has lr itself.
  !> p = min(s / decay_steps, 1).  Computed in fp64, rounded once.
  enum, bind(c)  ! mp_lr_schedule_t
    !> lr
    enumerator :: MP_LR_CONSTANT = 0
    !> lr_end + (lr - lr_end) (1 - p)^decay_power; linear with 1
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

  !> What becomes of equal places in the tensors of all ranks.
  enum, bind(c)  ! mp_reduce_op_t
    enumerator :: MP_REDUCE_SUM = 0
    !> of finite numbers >= 0 only: what NaN does to a maximum is everybody's own
    enumerator :: MP_REDUCE_MAX = 1
  end enum

  !> Bits of mp_step_options.flags.
  enum, bind(c)  ! mp_step_flags_t
    !> Leave the scaler and its flag to a later step, for optimizers that share a scaler: all but
    !> the last have this flag (or all, and mp_scaler_update(scaler, NULL, stream) follows).
    !> An optimizer skips for its own gradients and those before it.  For all to skip together
    !> the lists of the later ones are checked first:
    !>
    !>     mp_check_nonfinite(grads_of_b, mp_scaler_found_inf(scaler), stream);
    !>     options.flags = MP_STEP_KEEP_SCALER;
    !>     mp_scale_step(a, scaler, &options, stream);
    !>     mp_scale_step(b, scaler, NULL, stream);     // S follows its policy
    enumerator :: MP_STEP_KEEP_SCALER = 1
    !> The gradients are those of mp_grads_accumulate or mp_grads_to_fp32: 1/S is in them already,
    !> and the scaler learns from the amax that was noted there.  Lognormal and logmax need one.
    !> With MP_STEP_CHECKED too where the last call had MP_ACCUMULATE_LAST.
    enumerator :: MP_STEP_UNSCALED = 2
    !> Whoever produced the gradients has inspected them: the epilogues of GEMMs and convolutions raise
    !> mp_scaler_found_inf and measure amax.  Pass 1 falls away, which saves a launch and one of the two
    !> readings of every gradient.  Without a scaler the flag is that of mp_optimizer_get_scaler.
    !> Not with what only pass 1 can tell: max_grad_norm, grad_norm, tensor_norms, reports, and the
    !> max_tensor_norm of a group.
    enumerator :: MP_STEP_CHECKED = 4
    !> With comm: every rank has tensors of its own, each of them whole (a sharded optimizer, perhaps
    !> without tensors), and the norm is that of all of them.  Without this flag all ranks have the
    !> same gradients.
    enumerator :: MP_STEP_SHARDED = 8
  end enum

  !> Bits of the `flags` of mp_grads_accumulate.
  enum, bind(c)  ! mp_accumulate_flags_t
    !> The first gradients of a window: sums are overwritten, and not read.
    enumerator :: MP_ACCUMULATE_FIRST = 1
    !> The last ones before the update, by an optimizer of the host program: the sums are inspected
    !> as well, and mp_step_query learns the outcome here already.  Of several lists only the last one
    !> has this flag; nothing may raise the scaler's flag between here and mp_scaler_update.  The
    !> outcome is of this rank's gradients: with several ranks mp_grad_all_reduce comes before.
    enumerator :: MP_ACCUMULATE_LAST = 2
  end enum

  !> Outcome of a step.  If several causes apply: OVERFLOW, then NO_SCALE, then RANGE.  Queries, the
  !> state of the scaler and mp_step_options report the same outcome; mp_scaler_get_history_sync has
  !> its own codes.
  enum, bind(c)  ! mp_step_outcome_t
    !> the device has not come to it yet
    enumerator :: MP_STEP_PENDING = 0
    enumerator :: MP_STEP_TAKEN = 1
    !> Bound for comparisons, never reported: from here on (>=) nothing was updated.
    enumerator :: MP_STEP_SKIPPED = 2
    !> The largest |gradient| times the factor that unscales and clips is not below 2^63, or that
    !> factor is not finite.  S stays: no other S helps.
    enumerator :: MP_STEP_RANGE = 3
    !> (4 is reserved.)  S is 0, or 1/S is not a finite number.  The scaler's status becomes
    !> MP_SCALER_DIVERGED.
    enumerator :: MP_STEP_NO_SCALE = 5
    !> the flag was up, or a gradient or amax was not finite; S follows its policy
    enumerator :: MP_STEP_OVERFLOW = 6
  end enum

  !> What an operation makes of a 16-bit type.
  enum, bind(c)  ! mp_autocast_class_t
    !> fp32, whatever stands around it
    enumerator :: MP_CAST_UNLISTED = 0
    !> always low: it is safe, and faster
    enumerator :: MP_CAST_ALLOW = 1
    !> low between low ones, unless it feels an MP_CAST_DENY
    enumerator :: MP_CAST_INFER = 2
    !> fp32, and so are the MP_CAST_INFER and what lies before these, behind it
    enumerator :: MP_CAST_DENY = 3
    !> no numerical effect: takes the colour of its neighbours
    enumerator :: MP_CAST_CLEAR = 4
    !> MP_AUTOCAST_PYTORCH: low where all its floating-point inputs are.  Elsewhere MP_CAST_INFER.
    enumerator :: MP_CAST_PROMOTE = 5
  end enum

  !> Whose lists of operations, and whose way of colouring.
  enum, bind(c)  ! mp_autocast_preset_t
    !> Names of mpcore, ONNX, TensorFlow and PyTorch at once.  Softmax, norms over a row, losses and
    !> sums are MP_CAST_DENY; batch norm is MP_CAST_INFER; products, convolutions, attention and
    !> recurrent layers are MP_CAST_ALLOW.
    enumerator :: MP_AUTOCAST_DEFAULT = 0
    !> lists of TensorFlow 2.21 for fp16
    enumerator :: MP_AUTOCAST_TENSORFLOW = 1
    !> lists of TensorFlow 2.21 for bf16
    enumerator :: MP_AUTOCAST_TENSORFLOW_BF16 = 2
    !> Lists of torch.amp in PyTorch 2.11 on a GPU, names without overload, and compositions of
    !> listed operations, such as cross_entropy and interpolate.  MP_CAST_DENY does not spread, and
    !> one sweep forward replaces the colouring: a node is low if it is MP_CAST_ALLOW, or else if all
    !> its floating-point inputs are low and no list holds it in fp32.  An unknown operation is
    !> MP_CAST_CLEAR.
    enumerator :: MP_AUTOCAST_PYTORCH = 3
    !> names of ONNX, with the block list of onnxconverter-common unlisted
    enumerator :: MP_AUTOCAST_ONNX = 4
  end enum

  !> How far it goes.
  enum, bind(c)  ! mp_autocast_level_t
    enumerator :: MP_AUTOCAST_NORMAL = 0
    !> the careful one
    enumerator :: MP_AUTOCAST_INFER_AS_DENY = 1
    !> all but MP_CAST_ALLOW is MP_CAST_UNLISTED
    enumerator :: MP_AUTOCAST_TENSOR_CORES_ONLY = 2
    !> For tests, fp16 alone: everything that can, but constants, state and cross-entropies.
    enumerator :: MP_AUTOCAST_FORCE_ALL = 3
  end enum

  !> Bits of mp_autocast_config.flags.
  enum, bind(c)  ! mp_autocast_flags_t
    !> the variables of mp_autocast_create are not read
    enumerator :: MP_AUTOCAST_NO_ENVIRONMENT = 1
    !> no gate: see mp_autocast_gate
    enumerator :: MP_AUTOCAST_IGNORE_PERFORMANCE = 2
    !> Tensors of role MP_TENSOR_OUTPUT leave the graph in fp32: the outside is one more reader.
    enumerator :: MP_AUTOCAST_KEEP_IO = 4
    !> For machines without 16-bit arithmetic: low nodes run in fp32 on rounded values.  See
    !> mp_autocast_result.
    enumerator :: MP_AUTOCAST_EMULATE = 8
  end enum

  !> Bits of mp_autocast_graph.node_flags.
  enum, bind(c)  ! mp_node_flags_t
    !> is not to be touched: fetched, fed, or the caller's wish
    enumerator :: MP_NODE_KEEP = 1
    !> runs on another device, and is not touched either
    enumerator :: MP_NODE_ELSEWHERE = 2
    !> has no 16-bit kernel: fp32; its class still spreads
    enumerator :: MP_NODE_NO_LOW = 4
    !> converts to the type of its output
    enumerator :: MP_NODE_CAST = 8
    !> Reads a variable in place (Identity or Enter of TensorFlow's reference variables): low does not
    !> spread through it.
    enumerator :: MP_NODE_READS_VARIABLE = 16
    !> of a loop: follows the others (NextIteration)
    enumerator :: MP_NODE_BACK_EDGE = 32
    !> reads fp32 and low alike, but for MP_SLOT_FP32
    enumerator :: MP_NODE_READS_EITHER = 64
    !> writes fp32 or low as it is told, like mp_gemm's dtype_cd
    enumerator :: MP_NODE_WRITES_EITHER = 128
  end enum

  !> What a tensor is besides a value.
  enum, bind(c)  ! mp_tensor_role_t
    enumerator :: MP_TENSOR_ACTIVATION = 0
    !> an optimizer has its master, and can keep a 16-bit copy
    enumerator :: MP_TENSOR_PARAMETER = 1
    !> read from outside
    enumerator :: MP_TENSOR_OUTPUT = 2
  end enum

  !> How a tensor comes to its other type.
  enum, bind(c)  ! mp_cast_kind_t
    !> mp_cast, once for all readers
    enumerator :: MP_CAST_BY_KERNEL = 1
    !> No kernel: the 16-bit copy that the optimizer keeps of its master (mp_optimizer_desc.model).
    enumerator :: MP_CAST_BY_MODEL_COPY = 2
  end enum

  !> Why a node has its type.  Below 32 it stays fp32.  node_because names the node in [].
  enum, bind(c)  ! mp_autocast_why_t
    !> no list names its operation
    enumerator :: MP_WHY_UNLISTED = 1
    !> MP_CAST_DENY, by list, pattern or node_class
    enumerator :: MP_WHY_DENY_LIST = 2
    !> behind an MP_CAST_DENY [it]
    enumerator :: MP_WHY_DENY_UPSTREAM = 3
    !> a tensor with |x| > amax_limit
    enumerator :: MP_WHY_RANGE = 4
    !> more terms than depth_limit
    enumerator :: MP_WHY_DEPTH = 5
    !> MP_NODE_KEEP
    enumerator :: MP_WHY_KEPT = 6
    !> MP_NODE_ELSEWHERE
    enumerator :: MP_WHY_ELSEWHERE = 7
    !> MP_NODE_NO_LOW
    enumerator :: MP_WHY_NO_KERNEL = 8
    !> could be low, but nothing low is near enough
    enumerator :: MP_WHY_NO_ALLOW_NEARBY = 9
    !> reads and writes no MP_FP32 tensor
    enumerator :: MP_WHY_NOT_FLOAT = 10
    !> see mp_autocast_result.gate
    enumerator :: MP_WHY_GATE = 11
    !> of a cluster that cannot be low [the member that cannot]
    enumerator :: MP_WHY_CLUSTER_FP32 = 12
    !> MP_CAST_ALLOW, by list or node_class
    enumerator :: MP_WHY_ALLOW_LIST = 32
    !> MP_CAST_INFER or _CLEAR between two low ones [the one behind it]
    enumerator :: MP_WHY_BETWEEN_ALLOW = 33
    !> its inputs are low: bf16, or MP_AUTOCAST_PYTORCH [the first]
    enumerator :: MP_WHY_FOLLOWS_ALLOW = 34
    !> MP_CAST_CLEAR beside a low one [it]
    enumerator :: MP_WHY_CLEAR_BESIDE_LOW = 35
    !> of a cluster that is low [the member that was]
    enumerator :: MP_WHY_CLUSTER_LOW = 36
    !> a cast to fp32 all whose readers are low [the first]
    enumerator :: MP_WHY_CAST_ABSORBED = 37
    !> MP_CAST_ALLOW by mp_autocast_set_nodes
    enumerator :: MP_WHY_PATTERN = 38
  end enum

  !> How a report is written.
  enum, bind(c)  ! mp_autocast_form_t
    !> One line per node, "conv1/bn  FusedBatchNormV3  fp16  between conv1/conv and conv2/conv", and a
    !> summary.
    enumerator :: MP_AUTOCAST_TEXT = 0
    enumerator :: MP_AUTOCAST_JSON = 1
    !> a picture for Graphviz: low green, fp32 red, casts on their edges
    enumerator :: MP_AUTOCAST_DOT = 2
  end enum

  !> Bits of mp_xent_desc_t.flags.
  enum, bind(c)  ! mp_xent_flags_t
    !> rows whose label is `ignore_label` do not count
    enumerator :: MP_XENT_IGNORE_LABEL = 1
  end enum

  !> Losses of one prediction x and one target t.
  enum, bind(c)  ! mp_loss_kind_t
    !> (x - t)^2
    enumerator :: MP_LOSS_MSE = 1
    !> |x - t|; its derivative is 0 for x = t
    enumerator :: MP_LOSS_L1 = 2
    !> -t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x))
    enumerator :: MP_LOSS_BCE_WITH_LOGITS = 3
  end enum

  !> Divisors of a sum of losses.
  enum, bind(c)  ! mp_loss_reduction_t
    !> the number of elements that count
    enumerator :: MP_LOSS_MEAN = 0
    !> 1
    enumerator :: MP_LOSS_SUM = 1
  end enum

  !> Bits of mp_loss_desc_t.flags.
  enum, bind(c)  ! mp_loss_flags_t
    !> elements whose target is `ignore_target` do not count
    enumerator :: MP_LOSS_IGNORE_TARGET = 1
  end enum

  !> What becomes of the pixels of a window.  Padding is never the largest; it counts as zeros in
  !> one of the two means, and not at all in the other.
  enum, bind(c)  ! mp_pool_mode_t
    enumerator :: MP_POOL_MAX = 1
    !> sum / number of pixels inside the padded image
    enumerator :: MP_POOL_AVG_INCLUDE_PAD = 2
    !> sum / number of pixels inside the image
    enumerator :: MP_POOL_AVG_EXCLUDE_PAD = 3
  end enum

  !> Bits of mp_pool2d_desc_t.flags.
  enum, bind(c)  ! mp_pool_flags_t
    !> P and Q are rounded up: the last window may reach past the padding, but begins inside the
    !> image or the padding before it.  As ceil_mode of torch.
    enumerator :: MP_POOL_CEIL = 1
  end enum

  !> What becomes of an element of a and the one of b at its place.
  enum, bind(c)  ! mp_pointwise_op_t
    !> z = a
    enumerator :: MP_POINTWISE_COPY = 1
    !> z = a + b
    enumerator :: MP_POINTWISE_ADD = 2
    !> z = a b
    enumerator :: MP_POINTWISE_MUL = 3
  end enum

  !> What happens in a step.
  enum, bind(c)  ! mp_rnn_cell_t
    enumerator :: MP_RNN_TANH = 1
    enumerator :: MP_RNN_RELU = 2
    !> rows of the weights: i f g o
    enumerator :: MP_RNN_LSTM = 3
    !> rows of the weights: r z n
    enumerator :: MP_RNN_GRU = 4
  end enum

  !> Bits of mp_rnn_desc_t.flags.
  enum, bind(c)  ! mp_rnn_flags_t
    enumerator :: MP_RNN_BIDIRECTIONAL = 1
    !> b_ih and b_hh are 0 and not looked at
    enumerator :: MP_RNN_NO_BIAS = 2
    !> x_t is added to every gate of the first layer in place of its product with W_ih, which is not
    !> looked at; input_size = hidden_size.
    enumerator :: MP_RNN_SKIP_INPUT = 4
    !> MP_RNN_GRU: n = tanh(p_n + (r h) W_n^T + b_n), with two products in a row in every step.
    !> Source: Cho et al. 2014; what TensorFlow and Keras call reset_after=False.
    enumerator :: MP_RNN_RESET_FIRST = 8
    !> Gradients of weights and biases are added to what is there: micro-batches.  dtype_dw = MP_FP32
    !> loses nothing on the way.
    enumerator :: MP_RNN_ACCUMULATE = 16
  end enum

  !> Bits of mp_embedding_desc_t.flags.
  enum, bind(c)  ! mp_embedding_flags_t
    !> The gradient of row `padding_index` is 0, whatever dout is where that index stands; forward the
    !> row is one like any other.  As in torch.
    enumerator :: MP_EMBEDDING_PADDING = 1
    !> The gradient is added to what is there: micro-batches, or a table that is used twice.
    !> dtype_dtable = MP_FP32 loses nothing on the way.
    enumerator :: MP_EMBEDDING_ACCUMULATE = 2
  end enum

  enum, bind(c)  ! mp_graph_mode_t
    !> BatchNorm with its states, no Dropout.  The loss, and all that depends on it, if its labels
    !> are bound.
    enumerator :: MP_GRAPH_INFERENCE = 0
    !> All that mp_graph_backward needs, which computes the loss with its gradient, and all that
    !> depends on the loss.
    enumerator :: MP_GRAPH_TRAINING = 1
  end enum

  !> Policies of other systems: S after every step is theirs, exactly, with their defaults, while S
  !> is a finite fp32 number.  (Megatron, DeepSpeed and Keras 3 let S grow past that, and every
  !> later step is lost; here S stops.  apex amp raises at S = 0, DeepSpeed's DynamicLossScaler at
  !> an overflow with S = 1; here S stays there.)  All are MP_SCALER_BACKOFF but for the first and
  !> the last; change what you like in the config returned.
  enum, bind(c)  ! mp_scaler_preset_t
    !> mp_scaler_config_default(MP_SCALER_LOGNORMAL)
    enumerator :: MP_SCALER_PRESET_LOGNORMAL = 0
    !> torch.amp.GradScaler.  2^16, interval 2000, no limits.
    enumerator :: MP_SCALER_PRESET_TORCH = 1
    !> apex.amp LossScaler, apex/amp/scaler.py (removed from apex in 2025).  2^16, interval 2000, no
    !> minimum, maximum 2^24.
    enumerator :: MP_SCALER_PRESET_APEX_AMP = 2
    !> apex csrc/update_scale_hysteresis.cu: torch's rule, but it takes 2 overflows without a clean
    !> step between them to back off.  The kernel has no defaults: torch's, and Megatron's
    !> hysteresis of 2.
    enumerator :: MP_SCALER_PRESET_APEX_HYSTERESIS = 3
    !> Megatron-LM DynamicGradScaler, core/optimizer/grad_scaler.py.  2^32, interval 1000, minimum
    !> 1, hysteresis 2, refilled when S grows.
    enumerator :: MP_SCALER_PRESET_MEGATRON = 4
    !> DeepSpeed DynamicLossScaler, runtime/fp16/loss_scaler.py (ZeRO), with the defaults of the
    !> "fp16" section of its configuration: 2^16, interval 1000, minimum 1, hysteresis 2.  For
    !> consecutive_hysteresis set MP_SCALER_REFILL_EACH_STEP.
    enumerator :: MP_SCALER_PRESET_DEEPSPEED = 5
    !> DeepSpeed FP16_Optimizer, runtime/fp16/fused_optimizer.py (without ZeRO), which has a rule of
    !> its own: no hysteresis, and the first growth takes 1001 clean steps.
    enumerator :: MP_SCALER_PRESET_DEEPSPEED_FUSED = 6
    !> tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  2^15, interval 2000,
    !> minimum 1.
    enumerator :: MP_SCALER_PRESET_KERAS = 7
    !> keras.optimizers.LossScaleOptimizer of Keras 3: the same without minimum.
    enumerator :: MP_SCALER_PRESET_KERAS_3 = 8
    !> OpenSeq2Seq BackoffScaler, optimizers/automatic_loss_scaler.py.  2^14, which is also the
    !> maximum, interval 2000, minimum 1.
    enumerator :: MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF = 9
    !> OpenSeq2Seq LogMaxScaler as shipped: MP_SCALER_LOGMAX.  1, in [1, 2^14].
    enumerator :: MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX = 10
  end enum

  !> Source of the device memory of objects.  Called only by mp_*_create, mp_*_destroy,
  !> mp_graph_compile and mp_graph_set_batch.  If a callback throws a C++ exception, the call returns
  !> MP_ERROR_OUT_OF_MEMORY; a destroy call logs an error.
  type, bind(c) :: mp_allocator_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> 256-byte aligned, or NULL when out of memory.
    type(c_funptr) :: alloc = c_null_funptr
    !> Work that has been enqueued may still use ptr.
    type(c_funptr) :: free = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
  end type

  !> Which device a context is, and how it is used.
  type, bind(c) :: mp_context_config_t
    integer(c_int32_t) :: struct_size = 24_c_int32_t
    !> CUDA ordinal, or one of MP_DEVICE_*
    integer(c_int32_t) :: device = 0_c_int32_t
    !> use at most this many SMs; 0 = all.  Leaves room for NCCL.
    integer(c_int32_t) :: sm_limit = 0_c_int32_t
    !> must be 0
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> Host, copied; NULL = cudaMalloc / cudaFree.
    type(c_ptr) :: allocator = c_null_ptr
  end type

  !> What a context says of its device.
  type, bind(c) :: mp_device_info_t
    integer(c_int32_t) :: struct_size = 96_c_int32_t
    integer(c_int) :: target = 0
    !> 80, 90, ...
    integer(c_int32_t) :: arch = 0_c_int32_t
    !> after sm_limit
    integer(c_int32_t) :: num_sms = 0_c_int32_t
    !> bytes a kernel may opt in to
    integer(c_int64_t) :: smem_per_block = 0_c_int64_t
    integer(c_int64_t) :: l2_bytes = 0_c_int64_t
    !> NUL-terminated
    character(kind=c_char) :: name(64) = c_null_char
  end type

  !> Work done on the fp32 accumulators before they are rounded and stored.  In order:
  !>
  !>     z = alpha * *scale * acc + beta * C + bias[col]
  !>     aux = z                     (if aux != NULL and the activation is not a D* kind)
  !>     y = activation(z)           (or z * activation'(aux) for the D* kinds)
  !>     D = round(y)
  !>     dbias[col] = sum_rows D,  amax = max(amax, |D|),  found_inf |= !isfinite(D)
  !>
  !> If alpha * *scale is 0, the first term is 0 too, whatever acc is, as in BLAS.
  !> A NaN stays NaN through every activation; both forms of gelu, and silu, of -infinity are -0,
  !> their limit.  The exact form of gelu is within 6 ulp of its value, negative results too, and has
  !> the same bits on every device.
  !>
  !> dbias, amax and found_inf look at y *after* rounding to the type of D, because overflow
  !> happens in that rounding.  dbias sums over batch items too, in fp32 and a fixed order: in a
  !> pass over D, or with workspace for an eighth of D's bytes over sums of 16 rows that kernels
  !> for Hopper leave behind.  All pointers are device and optional.
  type, bind(c) :: mp_epilogue_t
    integer(c_int32_t) :: struct_size = 72_c_int32_t
    integer(c_int) :: activation = 0
    !> 1 float multiplied into alpha, e.g. mp_scaler_inv_scale()
    type(c_ptr) :: scale = c_null_ptr
    !> n elements
    type(c_ptr) :: bias = c_null_ptr
    integer(c_int) :: bias_dtype = 0
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> m x n, type and batch layout of D; written forward, read by MP_ACT_D*
    type(c_ptr) :: aux = c_null_ptr
    !> 0 = ldd
    integer(c_int64_t) :: ld_aux = 0_c_int64_t
    !> n floats, overwritten; zeros when m or batch_count is 0
    type(c_ptr) :: dbias = c_null_ptr
    !> 1 float, updated; clear it first
    type(c_ptr) :: amax = c_null_ptr
    !> 1 float, set to 1 and never cleared (sticky)
    type(c_ptr) :: found_inf = c_null_ptr
  end type

  !> Shape, types and layout of a GEMM; no data pointers, so that one descriptor
  !> serves as a key for workspace queries and kernel choice and can be reused.
  type, bind(c) :: mp_gemm_desc_t
    integer(c_int32_t) :: struct_size = 128_c_int32_t
    integer(c_int) :: op_a = 0
    integer(c_int) :: op_b = 0
    !> MP_FP16, MP_BF16: tensor cores; MP_FP32: CUDA cores
    integer(c_int) :: dtype_ab = 0
    !> any, whatever dtype_ab is
    integer(c_int) :: dtype_cd = 0
    real(c_float) :: alpha = 0.0_c_float
    real(c_float) :: beta = 0.0_c_float
    !> >= 0.  0 together with alpha = 0 is refused: a descriptor without mp_gemm_desc_init.
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
    !> Elements between batch items; 0 in a or b = the same matrix for all items.
    integer(c_int64_t) :: stride_a = 0_c_int64_t
    !> Elements between batch items; 0 in a or b = the same matrix for all items.
    integer(c_int64_t) :: stride_b = 0_c_int64_t
    !> Elements between batch items; 0 in a or b = the same matrix for all items.
    integer(c_int64_t) :: stride_c = 0_c_int64_t
    !> Elements between batch items; 0 in a or b = the same matrix for all items.
    integer(c_int64_t) :: stride_d = 0_c_int64_t
    !> host; NULL = the library's choice; see mpcore/experimental.h
    type(c_ptr) :: kernel = c_null_ptr
  end type

  !> One product of mp_gemm_grouped: its shape and its matrices, as in mp_gemm.
  type, bind(c) :: mp_gemm_group_item_t
    !> in an array, also the distance between elements
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

  !> Shape, types and layout of a convolution.  Names as in the CUTLASS documentation:
  !>
  !>     x, dx    activations  N H W C            dense, C contiguous
  !>     y, dy    outputs      N P Q K
  !>     filter   weights      K R S (C/groups)
  !>
  !>     P = (pad_top + H + pad_bottom - dilation_h (R - 1) - 1) / stride_h + 1   (rounded down)
  !>     y[n][p][q][k] = sum over r, s, c of  filter[k][r][s][c]
  !>         x[n][p stride_h - pad_top + r dilation_h][q stride_w - pad_left + s dilation_w][c]
  !>
  !> Q likewise; x is 0 outside the image.  This is cross-correlation, which deep learning calls
  !> convolution.  Output channel k belongs to group k / (K/groups) and reads the input channels of
  !> that group.  A 1-D convolution has h = r = 1.  Where the filter is larger than the padded image,
  !> P or Q is 0: there are no outputs, and no gradient comes from them.
  type, bind(c) :: mp_conv2d_desc_t
    integer(c_int32_t) :: struct_size = 96_c_int32_t
    !> of the two inputs; MP_FP16, MP_BF16: tensor cores; MP_FP32: CUDA cores
    integer(c_int) :: dtype = 0
    !> of the tensor that is written: any, whatever dtype is
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
    !> rows and columns of zeros, >= 0
    integer(c_int32_t) :: pad_top = 0_c_int32_t
    !> rows and columns of zeros, >= 0
    integer(c_int32_t) :: pad_bottom = 0_c_int32_t
    !> rows and columns of zeros, >= 0
    integer(c_int32_t) :: pad_left = 0_c_int32_t
    !> rows and columns of zeros, >= 0
    integer(c_int32_t) :: pad_right = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: stride_h = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: stride_w = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: dilation_h = 0_c_int32_t
    !> >= 1
    integer(c_int32_t) :: dilation_w = 0_c_int32_t
    !> divides c and k; c = depthwise
    integer(c_int32_t) :: groups = 0_c_int32_t
    !> out = alpha * conv + beta * out; with alpha = 0 the inputs are not read
    real(c_float) :: alpha = 0.0_c_float
    !> out = alpha * conv + beta * out; with alpha = 0 the inputs are not read
    real(c_float) :: beta = 0.0_c_float
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> host; NULL = the library's choice; see mpcore/experimental.h
    type(c_ptr) :: kernel = c_null_ptr
  end type

  !> Describes `count` dense tensors.  Host arrays, copied by create.
  type, bind(c) :: mp_tensor_list_desc_t
    integer(c_int32_t) :: struct_size = 40_c_int32_t
    !> of all tensors, where `dtypes` is NULL
    integer(c_int) :: dtype = 0
    integer(c_int32_t) :: count = 0_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> count device pointers, aligned to the element size; NULL where numel is 0, and in the model
    !> list of an optimizer.  Tensors may overlap in a list that is only read; every call that writes
    !> the list refuses them with MP_ERROR_INVALID_ARGUMENT.
    type(c_ptr) :: data = c_null_ptr
    !> count element counts, >= 0 and together below 2^40; empty tensors are allowed anywhere.
    type(c_ptr) :: numel = c_null_ptr
    !> One type per tensor, optional: layers kept in fp32 beside fp16 ones.
    type(c_ptr) :: dtypes = c_null_ptr
  end type

  !> What is in one tensor, or in all of a list.  Written by kernels into device memory, so it has no
  !> struct_size: 64 bytes in every version.
  type, bind(c) :: mp_tensor_report_t
    integer(c_int64_t) :: numel = 0_c_int64_t
    integer(c_int64_t) :: num_nan = 0_c_int64_t
    integer(c_int64_t) :: num_inf = 0_c_int64_t
    !> of either sign
    integer(c_int64_t) :: num_zero = 0_c_int64_t
    !> 0 < |x| < 2^-14, whatever the type: fp16 holds such numbers with fewer
    !> digits, or as 0
    integer(c_int64_t) :: num_subnormal = 0_c_int64_t
    !> The first NaN or infinity: in the lowest tensor that has one, its lowest element.  -1: none
    integer(c_int64_t) :: bad_tensor = 0_c_int64_t
    !> The first NaN or infinity: in the lowest tensor that has one, its lowest element.  -1: none
    integer(c_int64_t) :: bad_element = 0_c_int64_t
    !> that element; 0: none
    real(c_float) :: bad_value = 0.0_c_float
    !> as of mp_amax
    real(c_float) :: amax = 0.0_c_float
  end type

  !> What mp_tensor_stats writes; every pointer is device memory and optional.
  !> mp_check_nonfinite, mp_amax, mp_l2norm and mp_inspect say what each of them is.
  type, bind(c) :: mp_stats_outputs_t
    !> MP_INIT_STRUCT asks for nothing yet
    integer(c_int32_t) :: struct_size = 64_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    type(c_ptr) :: found_inf = c_null_ptr
    !> 1; count
    type(c_ptr) :: amax = c_null_ptr
    !> 1; count
    type(c_ptr) :: tensor_amax = c_null_ptr
    !> 1; count
    type(c_ptr) :: norm = c_null_ptr
    !> 1; count
    type(c_ptr) :: tensor_norm = c_null_ptr
    !> 1; count.  Costs counters in the pass, which is slower with a report than without.
    type(c_ptr) :: report = c_null_ptr
    !> 1; count.  Costs counters in the pass, which is slower with a report than without.
    type(c_ptr) :: tensor_reports = c_null_ptr
  end type

  !> Decimal fractions are double, so that 0.99 is the 0.99 of Python.
  type, bind(c) :: mp_scaler_config_t
    integer(c_int32_t) :: struct_size = 88_c_int32_t
    integer(c_int) :: policy = 0
    !> mp_scaler_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    real(c_float) :: init_scale = 0.0_c_float
    !> S is clamped to these; both > 0, and may be below 1.  Backoff also takes 0 = no such limit.
    !> Without min_scale S may sink to 0; if 1/S is infinite, mp_scale_step updates nothing
    !> (MP_STEP_NO_SCALE) and the status is MP_SCALER_DIVERGED.
    real(c_float) :: min_scale = 0.0_c_float
    !> S is clamped to these; both > 0, and may be below 1.  Backoff also takes 0 = no such limit.
    !> Without min_scale S may sink to 0; if 1/S is infinite, mp_scale_step updates nothing
    !> (MP_STEP_NO_SCALE) and the status is MP_SCALER_DIVERGED.
    real(c_float) :: max_scale = 0.0_c_float
    !> backoff; > 1
    real(c_double) :: growth_factor = 0.0_c_double
    !> backoff, lognormal; in (0, 1)
    real(c_double) :: backoff_factor = 0.0_c_double
    !> lognormal, logmax; in [0, 1)
    real(c_double) :: beta1 = 0.0_c_double
    !> lognormal, logmax; in [0, 1)
    real(c_double) :: beta2 = 0.0_c_double
    !> lognormal: log2 of the largest finite gradient; logmax: see there
    real(c_float) :: log2_max = 0.0_c_float
    !> lognormal, logmax; 3.09 = normal quantile of 0.999
    real(c_float) :: overflow_std_dev = 0.0_c_float
    !> lognormal; bits
    real(c_float) :: sigma_floor = 0.0_c_float
    !> >= 1; clean steps per growth, or per bit of h given back
    integer(c_int32_t) :: growth_interval = 0_c_int32_t
    !> backoff; overflows per backoff, >= 1
    integer(c_int32_t) :: hysteresis = 0_c_int32_t
    !> After so many skipped steps in a row the state says MP_SCALER_DIVERGED and S stays, until a
    !> step is clean.  No S helps against a NaN of the forward pass, and a scaler that goes on
    !> lowering S ends at its minimum, or at 0.  0 = never.
    integer(c_int32_t) :: diverged_after = 0_c_int32_t
    !> updates that mp_scaler_get_history_sync can look back; at most 2^24
    integer(c_int32_t) :: history = 0_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
  end type

  !> Everything a checkpoint needs; plain data, can be written to disk as it is (same byte
  !> order assumed).
  type, bind(c) :: mp_scaler_state_t
    integer(c_int32_t) :: struct_size = 112_c_int32_t
    integer(c_int) :: policy = 0
    real(c_float) :: scale = 0.0_c_float
    !> clean steps that count towards growth_interval; -1: the next one
    !> does not (MP_SCALER_FIRST_STEP_UNCOUNTED)
    integer(c_int32_t) :: growth_tracker = 0_c_int32_t
    !> overflows still forgiven
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
    !> updates seen
    integer(c_int64_t) :: steps = 0_c_int64_t
    !> steps that were not taken: overflows + out_of_range + no_scale
    integer(c_int64_t) :: skipped = 0_c_int64_t
    !> overflows with a NaN among the gradients: amax was NaN
    integer(c_int64_t) :: skipped_nan = 0_c_int64_t
    !> since the last clean step
    integer(c_int64_t) :: skipped_in_row = 0_c_int64_t
    !> Skips by outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE.
    integer(c_int64_t) :: overflows = 0_c_int64_t
    !> Skips by outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE.
    integer(c_int64_t) :: out_of_range = 0_c_int64_t
    !> Skips by outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE.
    integer(c_int64_t) :: no_scale = 0_c_int64_t
  end type

  !> Hyperparameters of one parameter group.  A limit or a regularizer of 0 is none.
  type, bind(c) :: mp_hyper_t
    !> in an array, also the distance between elements
    integer(c_int32_t) :: struct_size = 72_c_int32_t
    !> >= 0
    real(c_float) :: lr = 0.0_c_float
    !> SGD, RMSProp: momentum; Adam, LAMB, NovoGrad
    real(c_float) :: beta1 = 0.0_c_float
    !> Adam, LAMB, NovoGrad, RMSProp
    real(c_float) :: beta2 = 0.0_c_float
    !> > 0; SGD: >= 0, with MP_OPT_LARC or MP_OPT_LARS
    real(c_float) :: eps = 0.0_c_float
    !> >= 0
    real(c_float) :: weight_decay = 0.0_c_float
    !> SGD, NovoGrad
    real(c_float) :: dampening = 0.0_c_float
    !> SGD with MP_OPT_LARC or MP_OPT_LARS: > 0
    real(c_float) :: trust = 0.0_c_float
    !> g *= min(1, max_tensor_norm / (|g| + 1e-6))
    real(c_float) :: max_tensor_norm = 0.0_c_float
    !> g into [-max_value, max_value]
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

  !> The lists below are parallel: same count and sizes.  They must outlive the optimizer,
  !> as must the tensors.  m and v are usually NULL: mp_optimizer_create then allocates those that
  !> the groups need, filled with 0, with the allocator of the context (mp_optimizer_moments).
  !> Lists of the caller are initialised by the caller.  Written lists (master, model, m, v) may
  !> overlap nothing else: mp_optimizer_create refuses one list, or the address of a tensor, in two
  !> places, unless these are grads and extra_grads.
  type, bind(c) :: mp_optimizer_desc_t
    integer(c_int32_t) :: struct_size = 104_c_int32_t
    integer(c_int) :: kind = 0
    !> mp_optimizer_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    integer(c_int32_t) :: num_groups = 0_c_int32_t
    !> host, num_groups, copied
    type(c_ptr) :: groups = c_null_ptr
    !> host, one index per tensor; NULL = all in group 0
    type(c_ptr) :: tensor_group = c_null_ptr
    !> any type; read, never written
    type(c_ptr) :: grads = c_null_ptr
    !> MP_FP32; updated
    type(c_ptr) :: master = c_null_ptr
    !> MP_FP16/MP_BF16 copy of master, written; optional.  A NULL
    !> data pointer: that parameter has no 16-bit copy
    type(c_ptr) :: model = c_null_ptr
    !> MP_FP32: momentum, or first moment.  NULL: allocated; not for SGD and
    !> RMSProp if every group has beta1 = 0.  Adagrad: NULL
    type(c_ptr) :: m = c_null_ptr
    !> MP_FP32: second moment.  NULL: allocated; SGD: NULL.  NovoGrad: as many
    !> tensors as the others, of one element each
    type(c_ptr) :: v = c_null_ptr
    !> Device, one float per tensor, optional; NULL = all 1.  Each step reads them, so they may be
    !> rewritten in stream order, and must outlive the optimizer.  The first multiplies lr (0 freezes
    !> a tensor; its m and v go on), the second weight_decay, l1 and l2.
    type(c_ptr) :: lr_multipliers = c_null_ptr
    !> Device, one float per tensor, optional; NULL = all 1.  Each step reads them, so they may be
    !> rewritten in stream order, and must outlive the optimizer.  The first multiplies lr (0 freezes
    !> a tensor; its m and v go on), the second weight_decay, l1 and l2.
    type(c_ptr) :: decay_multipliers = c_null_ptr
    !> MP_FP32, parallel to the others, optional: added to g after unscaling and clipping, as the
    !> gradient of a penalty that has its own code.  Read by each step and not inspected: an
    !> element whose extra gradient is infinite keeps its weight
    !> (mp_step_options.rejected_updates).
    type(c_ptr) :: extra_grads = c_null_ptr
    !> MP_OPT_STOCHASTIC_ROUNDING; any value
    integer(c_int64_t) :: rounding_seed = 0_c_int64_t
  end type

  !> How fp32 master weights become their 16-bit copy.
  type, bind(c) :: mp_model_options_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> of mp_optimizer_flags_t: MP_OPT_MODEL_OVERFLOW, MP_OPT_STOCHASTIC_ROUNDING
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> MP_OPT_STOCHASTIC_ROUNDING, as in mp_optimizer_desc_t
    integer(c_int64_t) :: rounding_seed = 0_c_int64_t
    !> MP_OPT_STOCHASTIC_ROUNDING: device, 1 integer: the number of updates that the weights have
    !> seen; of an optimizer of this library, mp_optimizer_step_counter after its step.
    type(c_ptr) :: t = c_null_ptr
    !> as mp_step_options.model_overflows
    type(c_ptr) :: overflows = c_null_ptr
  end type

  !> How to reach the other ranks: a table of callbacks, so that this library links no other.
  !> mp_comm_init_nccl fills it for NCCL, bindings/mpi/mpcore_mpi.h for MPI on the host target.
  !>
  !> Callbacks run on the calling thread, within the call that got the table.  They enqueue on
  !> `stream` (on the host target: they return when the result is there), get `user` last, may call
  !> mpcore, and return 0.  Any other code, or a C++ exception, ends the call with MP_ERROR_COMM.
  !>
  !> A call that gets a table is collective: every rank makes it, in the same order, with equal
  !> numbers of elements, equal types and equal flags.  That they are equal nobody checks: MPI tells some
  !> ranks, the others wait, or have wrong sums.
  !>
  !> As with every collective, a rank that is refused or fails leaves the others waiting: in the same call,
  !> or, where they have heard all of it, in the next one.  A call that is refused has not communicated.
  !> Weights and S of ranks that wait are as before the call.  A program looks at every status, and ends
  !> all ranks (MPI_Abort) where one is not MP_SUCCESS; docs/multi-gpu.md says what else it can do.
  type, bind(c) :: mp_comm_t
    integer(c_int32_t) :: struct_size = 48_c_int32_t
    !> 0 to world_size - 1
    integer(c_int32_t) :: rank = 0_c_int32_t
    !> >= 1; with 1 no callback is called, and all may be NULL
    integer(c_int32_t) :: world_size = 0_c_int32_t
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> recv = send of all ranks combined, the same bits on every rank.  Device pointers; recv may be
    !> send.
    type(c_funptr) :: all_reduce = c_null_funptr
    !> optional, with group_end: around a batch of all_reduce calls
    type(c_funptr) :: group_begin = c_null_funptr
    !> follows also where one of the batch failed
    type(c_funptr) :: group_end = c_null_funptr
    !> e.g. the ncclComm_t
    type(c_ptr) :: user = c_null_ptr
  end type

  !> What else a step does and reports.
  type, bind(c) :: mp_step_options_t
    integer(c_int32_t) :: struct_size = 96_c_int32_t
    !> mp_step_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> clip the unscaled global norm to this; 0 = no clipping
    real(c_float) :: max_grad_norm = 0.0_c_float
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> device, 1 float, optional: unscaled norm before clipping
    type(c_ptr) :: grad_norm = c_null_ptr
    !> device, 1 float, optional: 1 if this step was skipped, else 0
    type(c_ptr) :: found_inf = c_null_ptr
    !> device, 1 float per tensor, optional: as grad_norm, of each
    type(c_ptr) :: tensor_norms = c_null_ptr
    !> MP_STEP_CHECKED: device, 1 float: the largest gradient as it was measured, with the meaning of
    !> `amax` in mp_scaler_update, and needed by the same policies.  Infinity or NaN skips the step.
    !> Read, not cleared: what the epilogues fill is for the caller to clear before the next one.
    type(c_ptr) :: amax = c_null_ptr
    !> Device, 1 report and 1 per tensor, optional: of the gradients as they are, multiplied by S
    !> (mp_inspect).  Also of a step that is skipped; of several ranks, each reports on its own.
    type(c_ptr) :: report = c_null_ptr
    !> Device, 1 report and 1 per tensor, optional: of the gradients as they are, multiplied by S
    !> (mp_inspect).  Also of a step that is skipped; of several ranks, each reports on its own.
    type(c_ptr) :: tensor_reports = c_null_ptr
    !> Device, 1 integer, optional: increased by the number of weights whose 16-bit copy was beyond the
    !> largest finite number after rounding, whether it was clamped or became infinite; clear it
    !> first.  NaN is none of them.
    type(c_ptr) :: model_overflows = c_null_ptr
    !> Host, optional: the step is one of several ranks that take the same decision and, if their
    !> scalers began alike, have the same S ever after.  A collective call (mp_comm_t), with the same
    !> flags on every rank.
    type(c_ptr) :: comm = c_null_ptr
    !> Device, 1 integer, optional: the outcome of this step, a mp_step_outcome_t.
    type(c_ptr) :: outcome = c_null_ptr
    !> Device, 1 integer, optional: increased by the number of elements that kept their old weight
    !> and moments because a new one was not finite (see mp_scale_step); clear it first.
    type(c_ptr) :: rejected_updates = c_null_ptr
  end type

  !> What a policy starts from.
  type, bind(c) :: mp_autocast_config_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    integer(c_int) :: preset = 0
    !> MP_FP16 or MP_BF16
    integer(c_int) :: low = 0
    integer(c_int) :: level = 0
    !> mp_autocast_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> A node that reads or writes a tensor with a larger known |x| is MP_CAST_DENY.  0 = do not look.
    !> 65504 / 64 leaves activations six bits to grow.
    real(c_float) :: amax_limit = 0.0_c_float
    !> a node that sums more terms is MP_CAST_DENY; 0 = do not look
    integer(c_int64_t) :: depth_limit = 0_c_int64_t
  end type

  !> A graph: flat arrays of the host, which are not kept.  It may have cycles.  MP_INIT_STRUCT it.
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
    !> operations; may be NULL where node_class says a class
    type(c_ptr) :: node_op = c_null_ptr
    !> optional: 1 + mp_autocast_class_t; 0 = by node_op
    type(c_ptr) :: node_class = c_null_ptr
    !> optional, as each of its names: for patterns and reports
    type(c_ptr) :: node_name = c_null_ptr
    !> optional: mp_node_flags_t, or-ed
    type(c_ptr) :: node_flags = c_null_ptr
    !> optional: terms of a sum (k of a product); 0 = not known
    type(c_ptr) :: node_depth = c_null_ptr
    !> num_nodes + 1, ascending from 0: inputs of node i are [first_input[i], first_input[i + 1]).
    type(c_ptr) :: first_input = c_null_ptr
    !> -1: an optional input that is absent
    type(c_ptr) :: input_tensor = c_null_ptr
    !> optional: 0
    type(c_ptr) :: input_slot = c_null_ptr
    !> node; -1: from outside
    type(c_ptr) :: tensor_producer = c_null_ptr
    !> optional: 0; the slot of its producer that writes it
    type(c_ptr) :: tensor_slot = c_null_ptr
    !> mp_dtype_t.  MP_FP32 takes part; MP_FP16 and MP_BF16 stay; MP_DTYPE_NONE is anything else.
    type(c_ptr) :: tensor_dtype = c_null_ptr
    !> optional: mp_tensor_role_t
    type(c_ptr) :: tensor_role = c_null_ptr
    !> optional: largest |x| that mp_inspect has seen; NaN or < 0: unknown
    type(c_ptr) :: tensor_amax = c_null_ptr
    !> num_hidden_edges nodes each: colour travels from the slot 0 of one to that of the other, and no
    !> data that this graph shows; through a container, or through state.
    type(c_ptr) :: hidden_src = c_null_ptr
    !> num_hidden_edges nodes each: colour travels from the slot 0 of one to that of the other, and no
    !> data that this graph shows; through a container, or through state.
    type(c_ptr) :: hidden_dst = c_null_ptr
    !> Clusters of nodes whose slots 0 have one colour; num_clusters + 1, as first_input.
    type(c_ptr) :: first_member = c_null_ptr
    type(c_ptr) :: member = c_null_ptr
    !> optional; 0: a container, such as a list of tensors.  A member that is denied, is not to be
    !> touched or has no 16-bit kernel denies all; else one that is low makes all low, of any class.
    !> 1: a loop.  If all members without MP_NODE_BACK_EDGE are low, and the others can be, they are
    !> too; else none is.
    type(c_ptr) :: cluster_kind = c_null_ptr
  end type

  !> One cast.  Without struct_size: 20 bytes in every version.
  type, bind(c) :: mp_autocast_cast_t
    integer(c_int32_t) :: tensor = 0_c_int32_t
    integer(c_int) :: from = 0
    integer(c_int) :: to = 0
    integer(c_int) :: kind = 0
    !> inputs that read the result, and the outside with MP_AUTOCAST_KEEP_IO
    integer(c_int32_t) :: readers = 0_c_int32_t
  end type

  !> What a rewrite says.  Every array is the caller's and optional.  MP_INIT_STRUCT it.
  !>
  !> A reader j of tensor t gets tensor_dtype[t], or if input_cast[j] >= 0 what that cast makes of it;
  !> at most one cast belongs to a tensor.
  !>
  !> With MP_AUTOCAST_EMULATE there are more: `casts` needs room for 2 num_tensors + the number of
  !> inputs.  Every tensor stays MP_FP32.  One that a low node writes for any reader, or reads from an
  !> fp32 node, is cast to low once.  A cast whose `from` is low reads the result of that one: one for
  !> each input of a low node, and one for all fp32 readers of what a low node writes.
  type, bind(c) :: mp_autocast_result_t
    integer(c_int32_t) :: struct_size = 72_c_int32_t
    !> out
    integer(c_int32_t) :: num_casts = 0_c_int32_t
    !> out
    integer(c_int32_t) :: num_low_nodes = 0_c_int32_t
    !> out: casts of kind MP_CAST_BY_MODEL_COPY
    integer(c_int32_t) :: num_parameters_low = 0_c_int32_t
    !> num_tensors: what the producer writes
    type(c_ptr) :: tensor_dtype = c_null_ptr
    !> num_nodes: MP_FP32, or low; of slot 0, or where nothing takes part there of the lowest slot that
    !> does.  A node without such a slot is MP_FP32, but in a container that is low it is low: an
    !> empty list of 16-bit tensors.
    type(c_ptr) :: node_dtype = c_null_ptr
    !> one per input: an index of casts; -1: reads what is written
    type(c_ptr) :: input_cast = c_null_ptr
    !> room for num_tensors; in order of tensors
    type(c_ptr) :: casts = c_null_ptr
    !> num_nodes: mp_autocast_why_t
    type(c_ptr) :: node_why = c_null_ptr
    !> num_nodes: the node that did it, one if there are several; -1
    type(c_ptr) :: node_because = c_null_ptr
    !> out: why nothing was changed, in static storage; NULL
    type(c_ptr) :: gate = c_null_ptr
  end type

  !> Shape and types of a classification loss.
  type, bind(c) :: mp_xent_desc_t
    integer(c_int32_t) :: struct_size = 56_c_int32_t
    !> of logits and dlogits
    integer(c_int) :: dtype = 0
    !> samples, >= 0
    integer(c_int64_t) :: rows = 0_c_int64_t
    !> >= 1
    integer(c_int64_t) :: classes = 0_c_int64_t
    !> >= classes
    integer(c_int64_t) :: ld_logits = 0_c_int64_t
    !> >= classes
    integer(c_int64_t) :: ld_dlogits = 0_c_int64_t
    !> multiplies loss and gradient: a task weight, or 1/accumulation steps
    real(c_float) :: weight = 0.0_c_float
    !> in [0, 1): the part of each target that all classes share alike
    real(c_float) :: label_smoothing = 0.0_c_float
    !> mp_xent_flags_t, or-ed; 0 = every row counts
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> any number, a class or not; without its flag it is not looked at
    integer(c_int32_t) :: ignore_label = 0_c_int32_t
  end type

  !> Shape and types of a loss of single elements.
  type, bind(c) :: mp_loss_desc_t
    integer(c_int32_t) :: struct_size = 40_c_int32_t
    integer(c_int) :: kind = 0
    !> type of prediction and dprediction
    integer(c_int) :: dtype = 0
    !> type of target
    integer(c_int) :: dtype_target = 0
    !> elements, >= 0
    integer(c_int64_t) :: count = 0_c_int64_t
    !> multiplies loss and gradient, as in mp_xent_desc_t
    real(c_float) :: weight = 0.0_c_float
    integer(c_int) :: reduction = 0
    !> mp_loss_flags_t, or-ed; 0 = every element counts
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> any number, also NaN; not read without its flag
    real(c_float) :: ignore_target = 0.0_c_float
  end type

  !> Shape and type of a pooling layer:
  !>
  !>     x, dx    N H W C     dense, C contiguous
  !>     y, dy    N P Q C     P = (pad_top + H + pad_bottom - extent_h) / stride_h + 1 (rounded down)
  !>                          extent_h = dilation_h (window_h - 1) + 1
  !>
  !> Q likewise.  Padding is smaller than the extent of the window, so that every window has a pixel.
  !> With padding before it, a dilation above 1 must not exceed H (or W).  If the window is larger
  !> than the padded image, P or Q is 0: there are no outputs, and dx is
  !> 0.
  type, bind(c) :: mp_pool2d_desc_t
    integer(c_int32_t) :: struct_size = 72_c_int32_t
    !> of x, y, dy and dx; sums are fp32
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
    !> distance of a window's pixels, >= 0; 0 = 1
    integer(c_int32_t) :: dilation_h = 0_c_int32_t
    !> distance of a window's pixels, >= 0; 0 = 1
    integer(c_int32_t) :: dilation_w = 0_c_int32_t
  end type

  !> Batch normalisation of `rows` samples (N H W pixels of images) of `channels` values each.
  type, bind(c) :: mp_batchnorm_desc_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> of x, y, dy and dx; everything else is fp32
    integer(c_int) :: dtype = 0
    !> >= 0
    integer(c_int64_t) :: rows = 0_c_int64_t
    !> >= 0
    integer(c_int32_t) :: channels = 0_c_int32_t
    !> MP_ACT_NONE or MP_ACT_RELU
    integer(c_int) :: activation = 0
    !> >= 0; with 0, a constant channel becomes NaN
    real(c_float) :: epsilon = 0.0_c_float
    !> of the running statistics, in [0, 1]
    real(c_float) :: momentum = 0.0_c_float
  end type

  !> The tensors of a batch normalisation, device; those that a pass does not name below are not
  !> looked at.  Zeros and struct_size are a start: MP_INIT_STRUCT.
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
    !> channels; training writes them for the backward pass
    type(c_ptr) :: saved_mean = c_null_ptr
    !> channels; training writes them for the backward pass
    type(c_ptr) :: saved_inv_std = c_null_ptr
    !> rows x channels, written
    type(c_ptr) :: y = c_null_ptr
    !> rows x channels
    type(c_ptr) :: dy = c_null_ptr
    !> rows x channels, written; may be dy
    type(c_ptr) :: dx = c_null_ptr
    !> channels, overwritten, optional; zeros when rows is 0
    type(c_ptr) :: dgamma = c_null_ptr
    !> channels, overwritten, optional; zeros when rows is 0
    type(c_ptr) :: dbeta = c_null_ptr
  end type

  !> Shape, types and function of a pass over elements:
  !>
  !>     a, y    rows x columns, dense
  !>     b       rows x columns, or with ld_b = 0 a single row of them that stands for all, as a bias does
  !>
  !> Where b has them all, or is not read, a tensor of any shape may be one row.
  type, bind(c) :: mp_pointwise_desc_t
    integer(c_int32_t) :: struct_size = 48_c_int32_t
    integer(c_int) :: op = 0
    !> Of z.  The D* kinds with MP_POINTWISE_COPY alone: y = a activation'(b), which takes a gradient
    !> a back through the activation; b is what went into it, not what came out.
    integer(c_int) :: activation = 0
    !> of a and y
    integer(c_int) :: dtype = 0
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

  !> Shape and types of a sum over the rows of a matrix.
  type, bind(c) :: mp_column_sum_desc_t
    integer(c_int32_t) :: struct_size = 40_c_int32_t
    !> type of x
    integer(c_int) :: dtype = 0
    !> type of sum
    integer(c_int) :: dtype_sum = 0
    !> sum = column sums + beta * sum; 1 accumulates over micro-batches
    real(c_float) :: beta = 0.0_c_float
    !> >= 0
    integer(c_int64_t) :: rows = 0_c_int64_t
    !> >= 0
    integer(c_int64_t) :: columns = 0_c_int64_t
    !> >= columns; elements from row to row of x
    integer(c_int64_t) :: ld = 0_c_int64_t
  end type

  !> Shape, types and layout of a recurrent network.
  type, bind(c) :: mp_rnn_desc_t
    integer(c_int32_t) :: struct_size = 96_c_int32_t
    integer(c_int) :: cell = 0
    !> mp_rnn_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> of x, y, h, the weights and their like; MP_FP32: all is fp32
    integer(c_int) :: dtype = 0
    !> of the gradients of the weights
    integer(c_int) :: dtype_dw = 0
    !> 1 to 65535
    integer(c_int32_t) :: layers = 0_c_int32_t
    !> >= 1, elements of x_t
    integer(c_int32_t) :: input_size = 0_c_int32_t
    !> >= 1, elements of h
    integer(c_int32_t) :: hidden_size = 0_c_int32_t
    !> >= 0, sequences
    integer(c_int32_t) :: batch = 0_c_int32_t
    !> >= 0, steps of the longest
    integer(c_int32_t) :: timesteps = 0_c_int32_t
    !> [0, 1): of the elements between layers that become 0 in training;
    !> the others are divided by 1 - dropout.  Training also sets
    !> mp_rnn_tensors_t.dropout_offset
    real(c_float) :: dropout = 0.0_c_float
    !> MP_RNN_LSTM: c' is kept within [-clip, clip]; 0 = it is not
    real(c_float) :: clip = 0.0_c_float
    !> any number
    integer(c_int64_t) :: dropout_seed = 0_c_int64_t
    !> elements of x and dx from step to step, from sequence to sequence;
    !> 0 = dense, one step after the other
    integer(c_int64_t) :: x_step = 0_c_int64_t
    !> elements of x and dx from step to step, from sequence to sequence;
    !> 0 = dense, one step after the other
    integer(c_int64_t) :: x_row = 0_c_int64_t
    !> the same of y and dy
    integer(c_int64_t) :: y_step = 0_c_int64_t
    !> the same of y and dy
    integer(c_int64_t) :: y_row = 0_c_int64_t
    !> host; NULL = the library's choice; see mpcore/experimental.h
    type(c_ptr) :: kernel = c_null_ptr
  end type

  !> The weights of one layer and direction, device, dense and row-major.  With G gates and the I
  !> elements of the layer's input: w_ih is G hidden_size x I, w_hh G hidden_size x hidden_size, the
  !> biases G hidden_size.  I is input_size in the first layer, directions x hidden_size in the others.
  type, bind(c) :: mp_rnn_weights_t
    type(c_ptr) :: w_ih = c_null_ptr
    type(c_ptr) :: w_hh = c_null_ptr
    type(c_ptr) :: b_ih = c_null_ptr
    type(c_ptr) :: b_hh = c_null_ptr
  end type

  !> Their gradients, device, of the same shapes, each of them optional.
  type, bind(c) :: mp_rnn_weight_grads_t
    type(c_ptr) :: w_ih = c_null_ptr
    type(c_ptr) :: w_hh = c_null_ptr
    type(c_ptr) :: b_ih = c_null_ptr
    type(c_ptr) :: b_hh = c_null_ptr
  end type

  !> What follows from a descriptor, whatever its strides and with or without MP_RNN_ACCUMULATE.
  type, bind(c) :: mp_rnn_sizes_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> 1 or 2
    integer(c_int32_t) :: directions = 0_c_int32_t
    !> 1, 3 or 4
    integer(c_int32_t) :: gates = 0_c_int32_t
    !> layers x directions
    integer(c_int32_t) :: num_weights = 0_c_int32_t
    !> Bytes that a training step keeps between its passes: per step, sequence, hidden unit, layer and
    !> direction 14 for LSTM, 10 for GRU, 4 for the plain cells; 24, 20 and 8 with MP_FP32; and less
    !> than 256 beside that.
    integer(c_size_t) :: reserve_bytes = 0_c_size_t
    !> that suffice for each of the four calls
    integer(c_size_t) :: workspace_bytes = 0_c_size_t
  end type

  !> The data of all calls, device unless said; those that a call does not name below are not looked at.
  !> Zeros and struct_size are a start: MP_INIT_STRUCT.
  type, bind(c) :: mp_rnn_tensors_t
    integer(c_int32_t) :: struct_size = 176_c_int32_t
    !> of the arrays `weights` and `weight_grads`: as in mp_rnn_sizes_t
    integer(c_int32_t) :: num_weights = 0_c_int32_t
    !> host, read before the call returns: [layer x directions + direction]
    type(c_ptr) :: weights = c_null_ptr
    !> 1 integer per sequence, in any order, optional: steps that it has, 0 to timesteps.  Steps behind
    !> its end are never read, neither x nor dy; y and dx are 0 there, and h_n, c_n are those of its
    !> last step, or h_0, c_0 if it has none.  A sequence with another length becomes NaN.
    type(c_ptr) :: lengths = c_null_ptr
    !> Host, 1 integer per step, optional: how many sequences have that step, never more than in the
    !> step before; the longest sequences come first.  x, y, dx and dy are packed: the rows of a step
    !> follow those of the step before, x_row and y_row elements apart, and x_step, y_step play no
    !> part.  Not with `lengths`.
    type(c_ptr) :: batch_sizes = c_null_ptr
    !> 1 integer, optional, 0 if absent: other masks of dropout for every value.  Without it every step
    !> has the same masks: training gives a counter on the device, such as mp_optimizer_step_counter,
    !> which a replayed graph reads too.  The passes of a step need the same.
    type(c_ptr) :: dropout_offset = c_null_ptr
    !> timesteps x batch x input_size
    type(c_ptr) :: x = c_null_ptr
    !> layers x directions x batch x hidden_size, optional: 0
    type(c_ptr) :: h0 = c_null_ptr
    !> the same of c, MP_RNN_LSTM
    type(c_ptr) :: c0 = c_null_ptr
    !> timesteps x batch x directions hidden_size, written
    type(c_ptr) :: y = c_null_ptr
    !> as h0, written, optional: h after the last step; may be h0 in inference
    type(c_ptr) :: hn = c_null_ptr
    !> as c0, written, optional; may be c0 in inference
    type(c_ptr) :: cn = c_null_ptr
    !> 256-byte aligned: what training keeps from pass to pass
    type(c_ptr) :: reserve = c_null_ptr
    integer(c_size_t) :: reserve_bytes = 0_c_size_t
    !> as y
    type(c_ptr) :: dy = c_null_ptr
    !> as h0, optional: 0
    type(c_ptr) :: dhn = c_null_ptr
    !> as c0, optional: 0
    type(c_ptr) :: dcn = c_null_ptr
    !> as x, written, optional
    type(c_ptr) :: dx = c_null_ptr
    !> as h0, written, optional
    type(c_ptr) :: dh0 = c_null_ptr
    !> as c0, written, optional
    type(c_ptr) :: dc0 = c_null_ptr
    !> host, read before the call returns: as `weights`
    type(c_ptr) :: weight_grads = c_null_ptr
    !> 1 float, optional: set to 1 and never cleared, see mp_epilogue_t
    type(c_ptr) :: found_inf = c_null_ptr
    !> 1 float, optional, updated: of the gradients of weights and biases
    type(c_ptr) :: amax = c_null_ptr
  end type

  !> A table of vectors, and how many of them are looked up.
  type, bind(c) :: mp_embedding_desc_t
    integer(c_int32_t) :: struct_size = 64_c_int32_t
    !> of table, out and dout
    integer(c_int) :: dtype = 0
    !> of the gradient
    integer(c_int) :: dtype_dtable = 0
    !> mp_embedding_flags_t, or-ed
    integer(c_int32_t) :: flags = 0_c_int32_t
    !> of out and dout, one for each index; 0 to 2^31 - 1
    integer(c_int64_t) :: rows = 0_c_int64_t
    !> rows of table and dtable, >= 1
    integer(c_int32_t) :: vocabulary = 0_c_int32_t
    !> in [0, vocabulary); without its flag it is not looked at
    integer(c_int32_t) :: padding_index = 0_c_int32_t
    !> elements of a row, >= 1
    integer(c_int64_t) :: width = 0_c_int64_t
    !> >= width, as the two below
    integer(c_int64_t) :: ld_table = 0_c_int64_t
    !> of out and of dout
    integer(c_int64_t) :: ld_out = 0_c_int64_t
    integer(c_int64_t) :: ld_dtable = 0_c_int64_t
  end type

  !> Which elements are dropped, and of how many.
  type, bind(c) :: mp_dropout_desc_t
    integer(c_int32_t) :: struct_size = 32_c_int32_t
    !> of x and y
    integer(c_int) :: dtype = 0
    !> elements, >= 0
    integer(c_int64_t) :: count = 0_c_int64_t
    !> any number; another one for every tensor that is to have a mask of its own
    integer(c_int64_t) :: seed = 0_c_int64_t
    !> [0, 1): of the elements that become 0; the others are divided by 1 - p
    real(c_float) :: p = 0.0_c_float
    !> must be 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
  end type

  !> A named number.  Without struct_size: 16 bytes in every version.
  type, bind(c) :: mp_graph_attribute_t
    type(c_ptr) :: name = c_null_ptr
    real(c_double) :: value = 0.0_c_double
  end type

  !> What became of a tensor.
  type, bind(c) :: mp_graph_tensor_t
    integer(c_int32_t) :: struct_size = 120_c_int32_t
    !> as it is in memory
    integer(c_int) :: dtype = 0
    integer(c_int32_t) :: rank = 0_c_int32_t
    !> of its cast or 16-bit copy; MP_DTYPE_NONE: it has none
    integer(c_int) :: dtype_copy = 0
    !> for the batch that is set
    integer(c_int64_t) :: extent(8) = 0_c_int64_t
    !> lives as long as the graph, once that is compiled
    type(c_ptr) :: name = c_null_ptr
    !> device; NULL where it has no memory that lasts, or is not computed at all
    type(c_ptr) :: data = c_null_ptr
    !> device: of that type; NULL as data is
    type(c_ptr) :: copy = c_null_ptr
    !> device: the gradient of a parameter, or of mp_graph_keep_gradient; else NULL
    type(c_ptr) :: grad = c_null_ptr
    !> of grad
    integer(c_int) :: dtype_grad = 0
    !> out: 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
  end type

  !> Bytes of device memory that a compiled graph holds.  Its sum is what it has allocated, but for
  !> tables of its lists.
  type, bind(c) :: mp_graph_memory_t
    integer(c_int32_t) :: struct_size = 64_c_int32_t
    !> out: 0
    integer(c_int32_t) :: reserved0 = 0_c_int32_t
    !> fp32
    integer(c_int64_t) :: parameters = 0_c_int64_t
    !> of parameters, in 16 bits
    integer(c_int64_t) :: copies = 0_c_int64_t
    !> of parameters, and of mp_graph_keep_gradient
    integer(c_int64_t) :: gradients = 0_c_int64_t
    !> of mp_graph_state, and constants
    integer(c_int64_t) :: states = 0_c_int64_t
    !> and their gradients: memory that they share, one after the other
    integer(c_int64_t) :: activations = 0_c_int64_t
    !> what these would need if each had its own; not in the sum
    integer(c_int64_t) :: activations_alone = 0_c_int64_t
    integer(c_int64_t) :: workspace = 0_c_int64_t
  end type

  !> torch.amp.GradScaler.state_dict(); the keys are the names here, but for "_growth_tracker".
  type, bind(c) :: mp_torch_scaler_t
    real(c_double) :: scale = 0.0_c_double
    real(c_double) :: growth_factor = 0.0_c_double
    real(c_double) :: backoff_factor = 0.0_c_double
    integer(c_int32_t) :: growth_interval = 0_c_int32_t
    integer(c_int32_t) :: growth_tracker = 0_c_int32_t
  end type

  !> DynamicGradScaler.state_dict() of Megatron-LM; the keys are the names here.
  type, bind(c) :: mp_megatron_scaler_t
    real(c_float) :: scale = 0.0_c_float
    integer(c_int32_t) :: growth_tracker = 0_c_int32_t
    !> below 0 after more overflows than hysteresis
    integer(c_int32_t) :: hysteresis_tracker = 0_c_int32_t
  end type

  !> One kernel and what it makes of a problem.
  type, bind(c) :: mp_kernel_info_t
    integer(c_int32_t) :: struct_size = 40_c_int32_t
    !> 1: the constants behind predicted_us were never measured on this
    !> architecture; 0: mptune measured them
    integer(c_int32_t) :: is_estimated = 0_c_int32_t
    !> static storage, e.g. "wmma_128x128x32_s3"
    type(c_ptr) :: name = c_null_ptr
    !> why it cannot run the problem, one clause, static storage; NULL = it can
    type(c_ptr) :: why_not = c_null_ptr
    !> 0 where it cannot, and of recurrent layers, which are chosen by rules
    real(c_double) :: predicted_us = 0.0_c_double
    !> that it needs; 0 where it cannot
    integer(c_size_t) :: workspace_bytes = 0_c_size_t
  end type

  interface
    !> MP_VERSION of the library that is loaded (not of this header).
    function mp_version() result(answer) bind(c, name="mp_version")
      import
      integer(c_int32_t) :: answer
    end function

    !> One line: version, git hash, CUDA version, compiled targets and architectures.
    !> Static storage.  Meant for bug reports; do not parse it.
    function mp_build_info() result(answer) bind(c, name="mp_build_info")
      import
      type(c_ptr) :: answer
    end function

    !> Name of the enumerator, e.g. "MP_ERROR_UNSUPPORTED".  Static storage; any int is accepted.
    function mp_status_string(status) result(answer) bind(c, name="mp_status_string")
      import
      integer(c_int), value :: status
      type(c_ptr) :: answer
    end function

    !> Why the last failing call on this thread failed, in one sentence naming the
    !> offending argument and its value: "mp_gemm: lda = 60 is smaller than k = 64".
    !> Meaningful right after a call that returned an error; valid until the next
    !> mpcore call on this thread.  Never NULL.
    function mp_last_error() result(answer) bind(c, name="mp_last_error")
      import
      type(c_ptr) :: answer
    end function

    !> Send messages of `level` or more important to `callback`, for the whole process.
    !> NULL restores the default: MP_LOG_WARN and above to stderr, without returned errors, which
    !> mp_last_error has.  The environment variable MP_LOG=error|warn|info|debug changes the level and
    !> adds returned errors.  The callback may run on any thread, several at a time, and must not call
    !> mpcore.  If it throws a C++ exception, its line goes to stderr.
    subroutine mp_set_log_callback(callback, user, level) bind(c, name="mp_set_log_callback")
      import
      type(c_funptr), value :: callback
      type(c_ptr), value :: user
      integer(c_int), value :: level
    end subroutine

    !> Bytes per element; 0 for an invalid value.
    function mp_dtype_size(dtype) result(answer) bind(c, name="mp_dtype_size")
      import
      integer(c_int), value :: dtype
      integer(c_size_t) :: answer
    end function

    !> "fp16", "bf16", "fp32"; "none" for MP_DTYPE_NONE, "?" for an invalid value.  Static storage.
    function mp_dtype_name(dtype) result(answer) bind(c, name="mp_dtype_name")
      import
      integer(c_int), value :: dtype
      type(c_ptr) :: answer
    end function

    !> device = MP_DEVICE_AUTO, the whole of it, cudaMalloc.
    function mp_context_config_init(config, struct_size) result(answer) bind(c, &
      name="mp_context_config_init")
      import
      type(mp_context_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Create a context.  It becomes immutable here, which is why it can be shared.
    !> @param config  host, optional; NULL = defaults.
    !> @retval MP_ERROR_ARCH_MISMATCH if this build holds no code for the device.
    function mp_context_create(context, config) result(answer) bind(c, name="mp_context_create")
      import
      type(c_ptr), intent(inout) :: context
      type(mp_context_config_t), intent(in), optional :: config
      integer(c_int) :: answer
    end function

    !> Destroys a context.  Objects created from `context` must have been destroyed before.  Destroying
    !> the last host context ends the worker threads and frees their memory; a later context creates
    !> them again.
    subroutine mp_context_destroy(context) bind(c, name="mp_context_destroy")
      import
      type(c_ptr), value :: context
    end subroutine

    !> @param info  host, out; MP_INIT_STRUCT it before the call.
    function mp_context_get_info(context, info) result(answer) bind(c, &
      name="mp_context_get_info")
      import
      type(c_ptr), value :: context
      type(mp_device_info_t), intent(inout) :: info
      integer(c_int) :: answer
    end function

    !> *ptr = `bytes` of device memory, 256-byte aligned, with anything in it; NULL for 0 bytes.
    function mp_malloc(context, ptr, bytes) result(answer) bind(c, name="mp_malloc")
      import
      type(c_ptr), value :: context
      type(c_ptr), intent(inout) :: ptr
      integer(c_size_t), value :: bytes
      integer(c_int) :: answer
    end function

    !> Release what mp_malloc gave, when all that the device has been given to do is done: it waits.
    !> NULL does nothing.
    subroutine mp_free(context, ptr) bind(c, name="mp_free")
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: ptr
    end subroutine

    !> Either side may be host or device memory; they must not overlap.  Pageable host memory makes the
    !> copy synchronous, as in cudaMemcpyAsync.
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

    !> Each of `bytes` bytes of dst, device memory, becomes `byte`.
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

    !> Wait until everything enqueued on `stream` has finished.
    function mp_stream_sync(context, stream) result(answer) bind(c, name="mp_stream_sync")
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> dst[i] = (dst_dtype) src[i].  dst may be src if the types have equal sizes; any other overlap is
    !> refused.
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

    !> No function, nothing added, nothing measured.
    function mp_epilogue_init(epilogue, struct_size) result(answer) bind(c, &
      name="mp_epilogue_init")
      import
      type(mp_epilogue_t), intent(inout) :: epilogue
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Dense, untransposed, unbatched, alpha = 1, beta = 0; lda = k, ldb = ldc = ldd = n.
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

    !> Bytes of workspace with which mp_gemm (or mp_gemm_batched) runs its fastest kernel for
    !> `desc` and sums dbias fastest; often 0.  dbias, of which a descriptor says nothing, has at most
    !> 32 MiB of it: on Hopper a 16-bit D of more than 256 MiB gains by an eighth of its own bytes,
    !> given in addition.  Of a kernel that desc names: what that cannot do without.
    !>
    !> desc->stride_* say which function is meant: with a stride that is not 0 it is mp_gemm, without
    !> any and with batch_count > 1 mp_gemm_batched.  A batch of one without strides may be either, and
    !> the bytes are enough for both; on Hopper mp_gemm_batched wants some where mp_gemm wants none.
    !> @param bytes  host, out.
    function mp_gemm_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_gemm_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Matrix product with fp32 accumulation:  D = epilogue(alpha op(A) op(B) + beta C).
    !>
    !> @param A  device; m x k with row stride lda (MP_OP_N), or k x m (MP_OP_T).  A and B are not read
    !>           when alpha == 0 (may be NULL, may hold NaN); desc->kernel plays no part then.
    !> @param B  device; k x n with row stride ldb (MP_OP_N), or n x k (MP_OP_T).
    !> @param C  device; m x n.  Not read when beta == 0 (may be NULL, may hold NaN).
    !> @param D  device; m x n.  May be the same matrix as C (equal ld and stride).  Any other overlap
    !>           with an argument is refused.  If both row strides are equal in bytes, elements are
    !>           compared, so D may use columns between A's rows; otherwise address ranges.
    !> @param epilogue   host, optional.
    !> @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
    !>                   mp_gemm_workspace_size the fastest kernel that needs no more is chosen:
    !>                   never an error, perhaps slower.
    !>
    !> Edge cases follow BLAS: m, n or batch_count == 0 does nothing; k == 0 and alpha == 0 compute
    !> epilogue(beta C), without workspace.  There is no minimum alignment: 16-byte aligned pointers
    !> and ld % 8 == 0 take the tensor-core path with asynchronous copies, anything else a slower one.
    !> For another ld or stride of A or B that is the fast one behind a copy in workspace, where this
    !> is predicted to pay.  If aligned operands are predicted to be a fifth faster, the two times are
    !> logged, once, at MP_LOG_WARN.
    !>
    !> Accuracy: products of fp16/bf16 are exact in fp32; they are summed in fp32 the way
    !> the tensor core does it, in an order fixed by (desc, alignment, workspace_bytes, device,
    !> MP_GEMM_TUNING), and rounded once.
    !> Source: Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.3.
    !>
    !> @retval MP_ERROR_INVALID_ARGUMENT a dimension < 0, an ld below the row length, an output that
    !>         overlaps another argument
    !> @retval MP_ERROR_UNSUPPORTED D has 2^31 or more tiles of 16 x 16, those of all items together
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

    !> As mp_gemm, with one pointer per batch item instead of a stride.
    !> @param A,B,C,D  device arrays of desc->batch_count device pointers; C is optional
    !>                 when beta == 0.  desc->stride_* must be 0.  The arrays are read when
    !>                 the kernel runs: keep them alive until then.  As in mp_gemm a matrix
    !>                 needs no alignment but its element's; that one item lacks 16 bytes is
    !>                 found out on the device, costs time and is not logged.
    !> The host does not see the matrices: an item of D that overlaps another matrix, except its own
    !> item of C, is not refused and gives wrong results.
    !> epilogue->aux, dbias, amax are unsupported here.
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

    !> Dense, untransposed, no data yet; lda = k, ldb = ldc = ldd = n.
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

    !> Bytes of workspace with which mp_gemm_grouped is fastest.  Shapes and ld of the items count,
    !> their pointers are not looked at.
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

    !> `count` products of different shapes in one call: the experts of a layer, the weight
    !> gradients of a network.  Each is what mp_gemm computes:
    !>
    !>     D = epilogue(alpha op(A) op(B) + beta C)
    !>
    !> The products may run at the same time, in one launch where a kernel for that exists and in one
    !> launch per product elsewhere (logged once at MP_LOG_WARN where the caller can change that):
    !> never an error, perhaps slower.  So no D may overlap any matrix of another product; A, B and C
    !> may be shared.  Overlaps of a D with the matrices of its own product and with the D before it in
    !> memory are refused; others are not looked for.
    !>
    !> @param desc   op, dtype, alpha and beta of all products.  m, n, k, ld* and stride_* must be 0
    !>               and batch_count 1: mp_gemm_desc_default(0, 0, 0, ab, cd).
    !> @param items  host, count elements, copied: the call can be captured into a CUDA graph, which
    !>               then keeps these shapes and pointers.  May be NULL when count is 0.
    !>               Edge cases as in mp_gemm: m or n == 0 does nothing, k == 0 computes
    !>               epilogue(beta C).
    !> @param epilogue   host, optional: scale and found_inf, shared by all products.  Everything
    !>                   else is unsupported here and must be 0.
    !> @param workspace  device, 256-byte aligned, optional; see mp_gemm_grouped_workspace_size.
    !>
    !> An error names the product, "mp_gemm_grouped: items[3].lda = 60 is smaller than k = 64", and
    !> then none of them has been enqueued.
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

    !> Bytes of workspace with which mp_gemm_ragged is fastest, whatever the ends are.
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

    !> Products of groups whose sizes only the device knows, such as the tokens that each expert of a
    !> layer got.  desc->batch_count groups share the dimension `ragged`; group i has its elements from
    !> ends[i - 1] on (from 0 on, the first) up to and without ends[i]:
    !>
    !>     MP_RAGGED_M:  D[rows of i] = epilogue(alpha op(A)[rows of i] op(B_i) + beta C[rows of i])
    !>     MP_RAGGED_K:  D_i = epilogue(alpha op(A)[:, k of i] op(B)[k of i, :] + beta C_i)
    !>
    !> The host never reads the ends nor waits for them: the call can be captured into a CUDA graph,
    !> and a replay finds the ends that are there then.  What is launched does not depend on them.
    !>
    !> @param desc  of all groups together: in the dimension that they share, m or k is the most that
    !>              the ends may come to.  MP_RAGGED_M: op(A) is m x k, C and D are m x n; B_i = B + i
    !>              stride_b, stride_b = 0 is one B for all, and the other strides must be 0.
    !>              MP_RAGGED_K: op(A) is m x k, op(B) k x n; C_i = C + i stride_c, D_i = D + i
    !>              stride_d, and stride_a and stride_b must be 0.
    !> @param ends  device, desc->batch_count elements that rise (equal ones: an empty group), read
    !>              when the kernels run.  An end that lies before its predecessor counts as equal to
    !>              it, one past m or k as m or k: bad ends never read or write beyond the matrices.
    !> @param A,B,C,D  as in mp_gemm.  MP_RAGGED_M: rows at and past the last end are not read, and
    !>              those of D not written.  MP_RAGGED_K: elements of k past the last end are not read;
    !>              an empty group computes epilogue(beta C_i), zeros with beta = 0.
    !> @param epilogue   host, optional: scale, amax and found_inf, shared by all groups.  Everything
    !>                   else is unsupported here and must be 0.
    !> @param workspace  device, 256-byte aligned, optional; see mp_gemm_ragged_workspace_size.
    !>
    !> Edge cases, alignment and accuracy as in mp_gemm; the order of a sum also depends on where in k
    !> its group begins.  Hopper's kernels need groups that lie one below the other in memory: op_a =
    !> MP_OP_N with MP_RAGGED_M, op_a = MP_OP_T and op_b = MP_OP_N with MP_RAGGED_K.  Other orders take
    !> WMMA's.
    !> Source: jax.lax.ragged_dot; torch._grouped_mm, whose offs are the ends.
    !>
    !> @retval MP_ERROR_INVALID_ARGUMENT a stride that must be 0 is not; D_i that overlap
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

    !> Unit stride and dilation, no padding, one group, alpha = 1, beta = 0, dtype_out = dtype.
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

    !> P and Q of `desc`; 0 where the filter is larger than the padded image.
    !> @param p,q  host, out.
    function mp_conv2d_output_size(desc, p, q) result(answer) bind(c, &
      name="mp_conv2d_output_size")
      import
      type(mp_conv2d_desc_t), intent(in), optional :: desc
      integer(c_int32_t), intent(inout) :: p
      integer(c_int32_t), intent(inout) :: q
      integer(c_int) :: answer
    end function

    !> Bytes of workspace with which that product runs its fastest kernel and sums dbias fastest, as
    !> mp_gemm_workspace_size has it; often 0.  Of a kernel that desc names: what that cannot do without.
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

    !> Forward:  y = epilogue(alpha conv(x, filter) + beta y).
    !>
    !> @param x,filter   device.
    !> @param y          device; read only when beta != 0.  Must not overlap another argument.
    !> @param epilogue   host, optional; sees y as a matrix of N P Q rows and K columns, so bias has K
    !>                   elements; ld_aux 0 = K.
    !> @param workspace  device, 256-byte aligned, optional; less than mp_conv2d_workspace_size is
    !>                   never an error, perhaps slower.
    !>
    !> An implicit GEMM: the matrix of patches (im2col) is never stored.  Accuracy as in mp_gemm.
    !> 16-byte aligned tensors with C/groups and K/groups multiples of 8 are fastest.  Images of other
    !> channels in one group (RGB) are first copied with zeros behind each pixel, forward and for the
    !> gradient of the weights, where that is predicted to pay and the workspace has room.  A 1 x 1
    !> filter with stride 1 and no padding is multiplied by the kernels of mp_gemm.
    !> Zeros that stand for nothing, outside the image or between the strides of dgrad, may or may not
    !> be multiplied.  It shows only beside a non-finite weight (in wgrad: dy), as a NaN.
    !> Limits, beyond which MP_ERROR_UNSUPPORTED: one padded image, one image of y, the filter and the
    !> numbers of pixels N H W and N P Q stay below 2^30 elements; the tensors may be larger.
    !>
    !> Source: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014, section 3.
    !>
    !> @retval MP_ERROR_INVALID_ARGUMENT a number outside its range, groups that do not divide c, k
    !> @retval MP_ERROR_UNSUPPORTED a limit above
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

    !> Gradient of the input:  dx = epilogue(alpha conv_transpose(dy, filter) + beta dx).
    !> The epilogue sees dx as a matrix of N H W rows and C columns: MP_ACT_DRELU with the aux of the
    !> layer below gives that layer's dy, dbias its bias gradient.  Otherwise as mp_conv2d_fprop.
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

    !> Gradient of the weights:  dfilter = alpha conv(x, dy) + beta dfilter, the sum over n, p, q.
    !> beta = 1 accumulates over micro-batches; use dtype_out = MP_FP32 then, or small terms are lost
    !> to rounding.
    !> @param epilogue  host, optional: scale, amax and found_inf.  Everything else is unsupported here
    !>                  and must be 0.
    !> Otherwise as mp_conv2d_fprop; the sum is split over blocks in a fixed order, never atomically.
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

    !> Upload the pointer table once, so that each later call is one kernel launch however
    !> many tensors there are (the idea of apex multi_tensor_apply, without its per-call
    !> packing of metadata into kernel arguments).
    function mp_tensor_list_create(list, context, desc) result(answer) bind(c, &
      name="mp_tensor_list_create")
      import
      type(c_ptr), intent(inout) :: list
      type(c_ptr), value :: context
      type(mp_tensor_list_desc_t), optional :: desc
      integer(c_int) :: answer
    end function

    !> The tensors stay; optimizers made from the list must be gone.
    subroutine mp_tensor_list_destroy(list) bind(c, name="mp_tensor_list_destroy")
      import
      type(c_ptr), value :: list
    end subroutine

    !> Point the list at other buffers of the same sizes, in stream order: for frameworks
    !> that allocate new gradients each step.  Do not capture into a graph.
    !> @param data  host, count device pointers.
    function mp_tensor_list_set_data(list, data, stream) result(answer) bind(c, &
      name="mp_tensor_list_set_data")
      import
      type(c_ptr), value :: list
      type(c_ptr), value :: data
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> One tensor of the list, as it is now.
    !> @param data,numel,dtype  host, out, each optional; data is a device address.
    !> @retval MP_ERROR_NOT_FOUND the list has no tensor of this index
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

    !> Set *found_inf to 1 if any element is NaN or infinite.  Never clears it, so several
    !> lists can share one flag.  A float rather than an int so that it can be all-reduced
    !> with the gradients.
    !> @param found_inf  device, 1 float.
    function mp_check_nonfinite(list, found_inf, stream) result(answer) bind(c, &
      name="mp_check_nonfinite")
      import
      type(c_ptr), value :: list
      type(c_ptr), value :: found_inf
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Largest absolute value; NaN if any element is NaN (fmaxf would lose it).
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

    !> sqrt(sum x^2), over the list and per tensor.  Squares are summed in fp32 inside a chunk of
    !> 16384 elements and in fp64 across chunks, in a fixed order, without atomics: bitwise
    !> reproducible.  A chunk whose largest |x| is below 2^-40, or 2^56 or more, is read twice and
    !> summed with a power of two as factor: the norm is infinite only if it exceeds fp32.
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

    !> Look at every element once, and report: what overflowed, and what is about to underflow.
    !> mp_scale_step reports on its gradients without a pass more (mp_step_options_t).
    !> @param report          device, 1 report, optional: of the list.
    !> @param tensor_reports  device, count reports, optional: of each tensor.
    function mp_inspect(list, report, tensor_reports, stream) result(answer) bind(c, &
      name="mp_inspect")
      import
      type(c_ptr), value :: list
      type(c_ptr), value :: report
      type(c_ptr), value :: tensor_reports
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Several of the four above in one pass over the elements: the same results, bit by bit.
    !> @param outputs  host; at least one of its pointers is set.
    function mp_tensor_stats(list, outputs, stream) result(answer) bind(c, &
      name="mp_tensor_stats")
      import
      type(c_ptr), value :: list
      type(mp_stats_outputs_t), optional :: outputs
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> out = in * *inv_scale, setting *found_inf as mp_check_nonfinite does on `in`, and if a product
    !> overflows fp32.
    !> @param in,out     lists of equal shapes; types may differ (fp16 grads -> fp32 grads);
    !>                   out == in is allowed.
    !> @param inv_scale  device, 1 float.
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

    !> The factor that unscales and clips at once:
    !>
    !>     *grad_scale = *inv_scale * min(1, max_norm / (*inv_scale * *scaled_norm + 1e-6))
    !> Source: Pascanu et al., On the difficulty of training RNNs, ICML 2013, algorithm 1;
    !> the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
    !> @param scaled_norm  device, 1 float: norm of the gradients before unscaling.
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

    !> 65536 is where torch.amp.GradScaler begins; 24 overflows in a row take S from 2^24 to 1.
    !>
    !>     init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
    !>     growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
    !>     beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
    !>     overflow_std_dev 3.0902      sigma_floor 0.5
    function mp_scaler_config_init(config, struct_size, policy) result(answer) bind(c, &
      name="mp_scaler_config_init")
      import
      type(mp_scaler_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: policy
      integer(c_int) :: answer
    end function

    !> The state of a new scaler.
    function mp_scaler_state_init(state, struct_size, config) result(answer) bind(c, &
      name="mp_scaler_state_init")
      import
      type(mp_scaler_state_t), intent(inout) :: state
      integer(c_size_t), value :: struct_size
      type(mp_scaler_config_t), intent(in), optional :: config
      integer(c_int) :: answer
    end function

    !> The scaler allocates nothing after this.  A program may have several, one per loss; several
    !> optimizers may share one, see MP_STEP_KEEP_SCALER.
    function mp_scaler_create(scaler, context, config) result(answer) bind(c, &
      name="mp_scaler_create")
      import
      type(c_ptr), intent(inout) :: scaler
      type(c_ptr), value :: context
      type(mp_scaler_config_t), intent(in), optional :: config
      integer(c_int) :: answer
    end function

    !> Optimizers do not keep it.  No effect on the scaler of mp_optimizer_get_scaler.
    subroutine mp_scaler_destroy(scaler) bind(c, name="mp_scaler_destroy")
      import
      type(c_ptr), value :: scaler
    end subroutine

    !> Device address of S, constant for the life of the scaler.
    function mp_scaler_scale(scaler) result(answer) bind(c, name="mp_scaler_scale")
      import
      type(c_ptr), value :: scaler
      type(c_ptr) :: answer
    end function

    !> Device address of 1/S, constant for the life of the scaler.
    function mp_scaler_inv_scale(scaler) result(answer) bind(c, name="mp_scaler_inv_scale")
      import
      type(c_ptr), value :: scaler
      type(c_ptr) :: answer
    end function

    !> Device address of the scaler's own sticky overflow flag, which mp_scaler_update clears; constant
    !> for the life of the scaler.
    function mp_scaler_found_inf(scaler) result(answer) bind(c, name="mp_scaler_found_inf")
      import
      type(c_ptr), value :: scaler
      type(c_ptr) :: answer
    end function

    !> out[i] = loss[i] * S, before the backward pass.  out == loss is allowed.
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

    !> Apply the policy once, from mp_scaler_found_inf and *amax; then clear the flag.
    !> mp_scale_step does this itself.
    !> @param amax  device, 1 float: largest gradient as measured, still multiplied by S and
    !>              before any clipping; infinity or NaN counts as an overflow even where the
    !>              flag is 0.  Taken together with what steps with MP_STEP_KEEP_SCALER and
    !>              mp_grads_accumulate have measured.  Lognormal and logmax learn from it, and need it
    !>              unless there were such calls.  Else optional: it tells NaN from infinity.
    function mp_scaler_update(scaler, amax, stream) result(answer) bind(c, &
      name="mp_scaler_update")
      import
      type(c_ptr), value :: scaler
      type(c_ptr), value :: amax
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Copy the state to the host; waits for `stream`.
    function mp_scaler_get_state_sync(scaler, state, stream) result(answer) bind(c, &
      name="mp_scaler_get_state_sync")
      import
      type(c_ptr), value :: scaler
      type(mp_scaler_state_t), intent(inout) :: state
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Copy a state from the host; waits for `stream`.  Restoring a saved state and repeating the steps
    !> gives bitwise the same scales.  Restoring empties the history, clears the flag, and forgets what amax
    !> has been kept since the last update: they are of steps that are given up.
    !> @retval MP_ERROR_INVALID_ARGUMENT no scaler of this config can be in that state.  In particular:
    !>         another policy; a scale outside [min_scale, max_scale], which NaN is (logmax);
    !>         growth_tracker >= growth_interval or hysteresis_left > hysteresis, as after lowering
    !>         those: then set growth_tracker to 0 and hysteresis_left to hysteresis; a head-room below
    !>         0; statistics that are not finite, or of lognormal no means of log2 of a float; more
    !>         steps skipped than taken, more of them with a NaN or in a row than at all, skips that
    !>         are not the sum of their causes; counts beyond 2^52
    function mp_scaler_set_state_sync(scaler, state, stream) result(answer) bind(c, &
      name="mp_scaler_set_state_sync")
      import
      type(c_ptr), value :: scaler
      type(mp_scaler_state_t), intent(in), optional :: state
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> The last updates, oldest first, for a plot; waits for `stream`.
    !> @param capacity  elements of the arrays; where fewer than there are, the newest are given
    !> @param scales    host, optional: S with which the step was taken
    !> @param skipped   host, optional: 0 = taken, 1 = overflowed, 2 = overflowed with amax = NaN,
    !>                  MP_STEP_RANGE, MP_STEP_NO_SCALE; not values of mp_step_outcome_t otherwise
    !> @param count     host: elements written, at most config.history
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

    !> The defaults of the cited papers; weight decay where the method is about it.  lr has no sensible
    !> default.  trust is that of LARS; Apex's LARC has 0.02.
    !>
    !>               beta1   beta2   eps     others
    !>     SGD       0.9     0       0       trust 0.001
    !>     Adam      0.9     0.999   1e-8
    !>     LAMB      0.9     0.999   1e-6    weight_decay 0.01
    !>     NovoGrad  0.95    0.98    1e-8
    !>     Adagrad   0       0       1e-10
    !>     RMSProp   0       0.9     1e-8
    !>
    !> decay_power is 1; everything else is 0.
    function mp_hyper_init(hyper, struct_size, kind, lr) result(answer) bind(c, &
      name="mp_hyper_init")
      import
      type(mp_hyper_t), intent(inout) :: hyper
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: kind
      real(c_float), value :: lr
      integer(c_int) :: answer
    end function

    !> One group, no tensors yet; flags 0, or MP_OPT_DECOUPLED_DECAY for MP_OPT_LAMB.
    function mp_optimizer_desc_init(desc, struct_size, kind) result(answer) bind(c, &
      name="mp_optimizer_desc_init")
      import
      type(mp_optimizer_desc_t), intent(inout) :: desc
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: kind
      integer(c_int) :: answer
    end function

    !> Sets desc to the method that a name stands for, with one group: hyper, with its defaults.
    !> Case is ignored.
    !>
    !>     "sgd", "adam", "lamb", "novograd", "adagrad", "rmsprop"   mp_optimizer_kind_t
    !>     "adamw"   MP_OPT_ADAM with MP_OPT_DECOUPLED_DECAY and weight_decay 0.01, as in torch
    !>
    !> @param name   host.
    !> @param desc   host, out, desc_size bytes: desc->groups is hyper.  Zeros after an error.
    !> @param hyper  host, out, hyper_size bytes: must live until mp_optimizer_create.
    !> @retval MP_ERROR_NOT_FOUND the name is unknown
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

    !> Uploads the hyperparameters and allocates the scratch memory of all later steps, and m and v if
    !> the descriptor has none.
    function mp_optimizer_create(optimizer, context, desc) result(answer) bind(c, &
      name="mp_optimizer_create")
      import
      type(c_ptr), intent(inout) :: optimizer
      type(c_ptr), value :: context
      type(mp_optimizer_desc_t), intent(in), optional :: desc
      integer(c_int) :: answer
    end function

    !> Frees what mp_optimizer_create has allocated; lists and tensors of the caller stay.
    subroutine mp_optimizer_destroy(optimizer) bind(c, name="mp_optimizer_destroy")
      import
      type(c_ptr), value :: optimizer
    end subroutine

    !> The lists m and v, of the descriptor or allocated (mp_tensor_list_get has their addresses); they
    !> live as long as the optimizer.
    !> @param m,v  host, out, each optional: NULL if the optimizer has none.
    function mp_optimizer_moments(optimizer, m, v) result(answer) bind(c, &
      name="mp_optimizer_moments")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), intent(inout), optional :: m
      type(c_ptr), intent(inout), optional :: v
      integer(c_int) :: answer
    end function

    !> Replace the hyperparameters of one group, in stream order.
    !> They live on the device: a captured graph picks up the new values when replayed.
    !> @retval MP_ERROR_INVALID_ARGUMENT also for a max_tensor_norm where no group had one when the
    !>         optimizer was created: a step would need another launch
    function mp_optimizer_set_hyper(optimizer, group, hyper, stream) result(answer) bind(c, &
      name="mp_optimizer_set_hyper")
      import
      type(c_ptr), value :: optimizer
      integer(c_int32_t), value :: group
      type(mp_hyper_t), intent(in), optional :: hyper
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> One update of master, m, v and model, in one kernel, however many tensors there are.  LAMB,
    !> NovoGrad, LARC and LARS measure the tensors in another one before it, max_tensor_norm the
    !> gradients in one more (not in mp_scale_step, which measures them anyway).
    !> An element of which the new weight or moment is not finite keeps its old weight and moments.
    !> @param grad_scale  device, 1 float multiplied into every gradient, e.g. 1/S; NULL = 1.
    !>                    Infinity or NaN skips the update as found_inf does.
    !> @param found_inf   device, 1 float; if nonzero when the kernel runs, nothing at all
    !>                    is written and t does not advance.  NULL = always update.
    !>
    !> The decision is taken on the device; the host does not learn of it (and must not ask,
    !> or the GPU idles once per step).
    !> Source of master weights: Micikevicius et al. 2018, section 3.1.
    function mp_optimizer_step(optimizer, grad_scale, found_inf, stream) result(answer) bind(c, &
      name="mp_optimizer_step")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: grad_scale
      type(c_ptr), value :: found_inf
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> To nearest, overflow clamped.
    function mp_model_options_init(options, struct_size) result(answer) bind(c, &
      name="mp_model_options_init")
      import
      type(mp_model_options_t), intent(inout) :: options
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> model = round(master): the copy that an optimizer step writes, for a program that updates its
    !> fp32 weights itself.  Bit for bit the same copy.
    !> @param master     MP_FP32; read.
    !> @param model      MP_FP16/MP_BF16, parallel to master; written.  A NULL data pointer: that
    !>                   parameter has no 16-bit copy.
    !> @param found_inf  device, 1 float, optional; if nonzero when the kernel runs, nothing is
    !>                   written: a skipped step leaves the copy as it leaves the weights.
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

    !> The learning rates that the latest applied step used, before lr_multipliers.
    !> @return device, num_groups floats, 0 before the first step; they live as long as the optimizer.
    !>         NULL if optimizer is NULL
    function mp_optimizer_lr(optimizer) result(answer) bind(c, name="mp_optimizer_lr")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr) :: answer
    end function

    !> What l1 and l2 add to the loss, of the master weights as they are now:
    !>
    !>     sum over tensors of (their decay multiplier) (l1 sum |w| + l2 sum w^2)
    !> in fp32 within a chunk and fp64 across, in a fixed order, as mp_l2norm.  In one kernel.
    !> @param loss  device, 1 float.
    function mp_optimizer_regularization(optimizer, loss, stream) result(answer) bind(c, &
      name="mp_optimizer_regularization")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: loss
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> The scaler that mp_scale_step uses if none is passed: static, S = 1, diverged_after 100.  It
    !> counts their skips and answers mp_step_query, so that bf16 training does not create a scaler.
    !> @return lives as long as the optimizer, which owns it; NULL if optimizer is NULL
    function mp_optimizer_get_scaler(optimizer) result(answer) bind(c, &
      name="mp_optimizer_get_scaler")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr) :: answer
    end function

    !> Device address of the step counter t, which each applied step increases by 1; constant for the
    !> life of the optimizer.  NULL if optimizer is NULL.
    function mp_optimizer_step_counter(optimizer) result(answer) bind(c, &
      name="mp_optimizer_step_counter")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr) :: answer
    end function

    !> model = round(master), bit for bit as in the step that increased t to its value: with the flags
    !> and the rounding_seed of the optimizer.  For masters that the caller has loaded;
    !> mp_optimizer_restore_sync calls it.  (mp_cast differs: it makes overflows infinite, and never
    !> rounds at random.)  Without a list model there is nothing to do.
    function mp_optimizer_write_model(optimizer, stream) result(answer) bind(c, &
      name="mp_optimizer_write_model")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Bytes of a checkpoint: master, m, v, t, and the state of the scaler.
    !> @param scaler  optional; NULL: that of mp_optimizer_get_scaler.
    !> @param bytes   host, out.
    function mp_optimizer_checkpoint_size(optimizer, scaler, bytes) result(answer) bind(c, &
      name="mp_optimizer_checkpoint_size")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: scaler
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Writes a checkpoint into memory of the host; waits for `stream`.  Numbers are little-endian, and
    !> later versions read it.  Not part of it: hyperparameters, the states of a graph (running
    !> statistics), offsets of dropout, and the position in the data.
    !> @param scaler      the scaler given to mp_scale_step: the state of another one is not saved.
    !>                    NULL: that of mp_optimizer_get_scaler.
    !> @param checkpoint  host, out.
    !> @param bytes       room, at least mp_optimizer_checkpoint_size.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL there is less room
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

    !> Restores master, m, v, t and the scaler, then writes model as mp_optimizer_write_model does: the
    !> training goes on bit for bit, given the same descriptor and data.  Waits for `stream`.
    !> @param scaler      as when it was saved, under the rules of mp_scaler_set_state_sync.
    !> @param checkpoint  host, any alignment.
    !> @param bytes       exactly as many as were saved.
    !> @retval MP_ERROR_INVALID_ARGUMENT no checkpoint, or that of other tensors, of another kind or
    !>         scaler; nothing has been written
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

    !> The step counter t; waits for `stream`.
    function mp_optimizer_get_step_sync(optimizer, t, stream) result(answer) bind(c, &
      name="mp_optimizer_get_step_sync")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: t
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Sets t, e.g. from a checkpoint of another format; call mp_optimizer_write_model after it.
    !> Waits for `stream`.
    !> @param t  in [0, 2^52]
    function mp_optimizer_set_step_sync(optimizer, t, stream) result(answer) bind(c, &
      name="mp_optimizer_set_step_sync")
      import
      type(c_ptr), value :: optimizer
      integer(c_int64_t), value :: t
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> One rank, for a program that may have several: nothing is communicated.
    function mp_comm_init(comm, struct_size) result(answer) bind(c, name="mp_comm_init")
      import
      type(mp_comm_t), intent(inout) :: comm
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Fill `comm` from a communicator.  libnccl.so.2 is looked up with dlopen in this call; without it
    !> there is no dependency on NCCL.  The codes of its callbacks are those of ncclResult_t.
    !> @param comm       host, out; MP_INIT_STRUCT it before the call.
    !> @param nccl_comm  an ncclComm_t, blocking (with a nonblocking one the code of "in progress" is
    !>                   taken for a failure); must outlive the calls that get *comm.
    !> @retval MP_ERROR_NOT_FOUND if NCCL cannot be loaded
    !> @retval MP_ERROR_COMM if it does not tell rank or size of nccl_comm
    function mp_comm_init_nccl(comm, nccl_comm) result(answer) bind(c, name="mp_comm_init_nccl")
      import
      type(mp_comm_t), intent(inout) :: comm
      type(c_ptr), value :: nccl_comm
      integer(c_int) :: answer
    end function

    !> grads = post * sum over ranks (pre * grads), in place and in the gradients' own types, every
    !> product rounded.  pre = 1 / world_size, post = 1 averages without overflow, but what is small may
    !> underflow; pre = 1, post = 1 / world_size the reverse; both 1 / sqrt(world_size) is in between.
    !> A factor of 1 costs nothing, any other one pass over the gradients.  With a power of two, ranks with
    !> equal gradients get these back, bit for bit, unless they under- or overflow on the way.
    !>
    !> One all_reduce per tensor that is not empty, in the order of the list, in one batch: NCCL makes
    !> one launch of it.  Neighbours in memory are not joined, for the ranks' addresses may differ;
    !> a list of one tensor over all of them (one buffer for all gradients) does that.
    !>
    !> The gradients may still be multiplied by S.  Infinity and NaN survive the sum, and then every
    !> rank sees them; see mp_step_options.comm for what else must agree.
    !> @param pre,post   > 0, finite.
    !> @retval MP_ERROR_COMM a callback failed: some gradients may have been summed and others not, and all
    !>         have been multiplied by pre
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

    !> No clipping, no reports, one rank.
    function mp_step_options_init(options, struct_size) result(answer) bind(c, &
      name="mp_step_options_init")
      import
      type(mp_step_options_t), intent(inout) :: options
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> Everything between backward and the next forward:
    !>
    !>     1. found_inf |= any non-finite gradient;  norm, amax  one pass over the gradients
    !>     2. found_inf, NaN and amax become those of all ranks, with MP_STEP_SHARDED also the
    !>        norm                                                       only with comm
    !>     3. if the outcome is MP_STEP_TAKEN:
    !>            g = gradient / S, clipped;  optimizer update of master;
    !>            model = round(master);  t += 1                         second pass
    !>     4. S follows its policy;  found_inf is cleared;  not with MP_STEP_KEEP_SCALER
    !>
    !> Finite gradients, weights and moments stay finite.  Norms do not overflow.  A step in which a
    !> square of a gradient could overflow is skipped (MP_STEP_RANGE).  An element of which the new
    !> weight or moment is not finite keeps its old weight and moments, as it does for an infinite
    !> extra gradient; mp_step_options.rejected_updates counts it.
    !>
    !> found_inf is the scaler's own flag (mp_scaler_found_inf): a GEMM epilogue that saw an
    !> overflowing activation gradient may have set it before.
    !>
    !> All on the device, with no host synchronisation.  Bitwise equal to calling
    !> mp_check_nonfinite, mp_l2norm, mp_amax, mp_clip_factor, mp_optimizer_step,
    !> mp_scaler_update in that order; it only saves launches and memory traffic.  Two passes
    !> are the minimum: no weight may change before the last gradient has been inspected
    !> (MP_STEP_CHECKED: it has been).
    !>
    !> With MP_SCALER_STATIC an overflowing step is skipped too.
    !>
    !> Ranks: gradients that went through mp_grad_all_reduce are the same everywhere, but a flag
    !> raised by an epilogue is not, nor is the amax of a sharded optimizer.  2 is one all_reduce of 3
    !> floats (max) and, with MP_STEP_SHARDED, one of 3 floats (sum), in one batch, between two small
    !> kernels.  Causes of a skip travel as a code, so that no maximum meets a NaN.  The sums are
    !> those of squares in fp32: large, small and other ones apart, each with a power of two as factor.
    !>
    !> @param scaler   optional; NULL = the optimizer's own static scaler, S = 1 (bf16):
    !>                 mp_optimizer_get_scaler.
    !> @param options  host, optional; NULL = no clipping, one rank.
    !> @retval MP_ERROR_INVALID_ARGUMENT if optimizer and scaler belong to different contexts
    !> @retval MP_ERROR_COMM a callback of options->comm failed: nothing has been updated, S
    !>         included, but the scaler's flag is up if a gradient is not
    !>         finite.  Other ranks may have taken the step
    function mp_scale_step(optimizer, scaler, options, stream) result(answer) bind(c, &
      name="mp_scale_step")
      import
      type(c_ptr), value :: optimizer
      type(c_ptr), value :: scaler
      type(mp_step_options_t), optional :: options
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> sums += weight / S * grads, or with MP_ACCUMULATE_FIRST  sums = weight / S * grads; in fp32, with
    !> the S of the moment, one rounding of weight / S and one of each sum.  In one pass.
    !>
    !> Raises the scaler's flag for a gradient that is not finite, or whose product with weight / S is
    !> not, and keeps the largest |gradient|,
    !> still multiplied by S and without the weight, for the scaler's next update.  The overflow
    !> stays in the sums too, as infinity or NaN, until the next MP_ACCUMULATE_FIRST: one bad
    !> micro-batch discards its window whatever becomes of the flag.
    !>
    !> Accumulation over k micro-batches; `sums` are the optimizer's grads:
    !>
    !>     for (int i = 0; i < k; i++) {
    !>       const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
    !>       forward_and_backward(i);
    !>       mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
    !>     }
    !>     options.flags = MP_STEP_UNSCALED;
    !>     mp_scale_step(optimizer, scaler, &options, stream);
    !>
    !> (With several ranks, mp_grad_all_reduce of the sums comes before the step, which has options.comm.)
    !> S stays as it is within such a window.  It may also follow its policy after each micro-batch, so
    !> that the rest of a discarded window has a smaller S already.  mp_scaler_state and mp_step_query
    !> count micro-batches then; that the window was discarded, options.found_inf says in both forms:
    !>
    !>     for (int i = 0; i < k; i++) {
    !>       const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
    !>       forward_and_backward(i);
    !>       mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
    !>       mp_scaler_update(scaler, NULL, stream);
    !>     }
    !>     mp_scale_step(optimizer, NULL, &options, stream);
    !>
    !> @param grads   any types; sums == grads is allowed for MP_FP32 gradients.
    !> @param sums    MP_FP32, parallel to grads.
    !> @param weight  finite; 1, 1/k, a task weight.  0 adds nothing, but an overflow is still noticed.
    !> @param flags   mp_accumulate_flags_t, or-ed.
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

    !> out = grads / S in fp32, checked for overflow, in one pass: mp_grads_accumulate of weight 1 with
    !> both flags.  The first half of a step with an optimizer of the host program, which updates
    !> fp32 master weights however it likes:
    !>
    !>     const float *found_inf = mp_scaler_found_inf(scaler);
    !>     mp_grads_to_fp32(scaler, grads, grads32, stream);
    !>     my_optimizer(found_inf); // masters and grads32; does nothing where *found_inf is not 0
    !>     mp_masters_to_model(masters, models, found_inf, NULL, stream);
    !>     mp_scaler_update(scaler, NULL, stream);
    !>
    !> That optimizer runs on the device and reads the flag there.  An optimizer on the host, or one that knows
    !> of no flag, is started by the host, which polls mp_step_query; what else has been enqueued goes
    !> on meanwhile.  n is mp_scaler_state.steps + 1:
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
    !> @param grads  any types; out == grads is allowed for MP_FP32 gradients.
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

    !> What became of a step, from what the device has written into memory of the host.  Neither waits
    !> nor enqueues; any thread may ask at any time, also while another one works with the scaler.
    !>
    !> The queue does not run dry if a step is asked for while it still holds work of the next one:
    !>
    !>     for (int64_t n = 1; n <= steps; n++) {
    !>       mp_step_outcome_t outcome = n > 1 ? MP_STEP_PENDING : MP_STEP_SKIPPED;
    !>       forward_and_backward(n); // enqueued; step n - 1 is done long before this is
    !>       while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n - 1, &outcome);
    !>       if (outcome == MP_STEP_TAKEN) my_learning_rate_advances();
    !>       mp_scale_step(optimizer, scaler, NULL, stream);
    !>     }
    !>
    !> A skipped step is logged at MP_LOG_INFO with its cause, once; not if a later one was logged
    !> before.  The line has S before it and, unless the query comes before the update, after it.
    !>
    !> @param step     >= 1, counted as in mp_scaler_state.steps: the update that makes steps n is step
    !>                 n, also after restoring a state and in a replayed graph.  Its outcome is known
    !>                 at the end of the mp_scale_step or mp_scaler_update that counts it (those with
    !>                 MP_STEP_KEEP_SCALER do not), or after MP_ACCUMULATE_LAST.
    !> @param outcome  host, out.
    !> @retval MP_ERROR_NOT_FOUND the step lies MP_STEP_QUERY_DEPTH or more back, or before the state
    !>         that was restored
    function mp_step_query(scaler, step, outcome) result(answer) bind(c, name="mp_step_query")
      import
      type(c_ptr), value :: scaler
      integer(c_int64_t), value :: step
      integer(c_int), intent(inout) :: outcome
      integer(c_int) :: answer
    end function

    !> Preset MP_AUTOCAST_DEFAULT, level MP_AUTOCAST_NORMAL, no flags and no limits.
    function mp_autocast_config_init(config, struct_size, low) result(answer) bind(c, &
      name="mp_autocast_config_init")
      import
      type(mp_autocast_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: low
      integer(c_int) :: answer
    end function

    !> The loss scaler that belongs to `low`: for MP_FP16 what TensorFlow's rewrite calls "dynamic",
    !> MP_SCALER_PRESET_KERAS; for MP_BF16, and where all stays MP_FP32, S = 1.
    !> @retval MP_ERROR_INVALID_ARGUMENT low is another type
    function mp_autocast_scaler_init(config, struct_size, low) result(answer) bind(c, &
      name="mp_autocast_scaler_init")
      import
      type(mp_scaler_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: low
      integer(c_int) :: answer
    end function

    !> Unless MP_AUTOCAST_NO_ENVIRONMENT is set, the environment is read here.  It wins over `config` and
    !> loses to mp_autocast_set_class and mp_autocast_set_nodes.
    !>
    !>     MP_AUTOCAST=off|fp16|bf16
    !>     MP_AUTOCAST_LEVEL=normal|infer_as_deny|tensor_cores_only|force_all
    !>     MP_AUTOCAST_ALLOW_ADD, _ALLOW_REMOVE, and so for INFER, DENY, CLEAR =Op,Op
    !>     MP_AUTOCAST_IGNORE_PERFORMANCE=1
    !>     MP_AUTOCAST_LOG=folder       every rewrite leaves its lists, its report and two pictures there
    !>
    !> With the presets of TensorFlow the variables TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ of the same
    !> meaning (LEVEL, ALLOWLIST_ADD, WHITELIST_ADD, ..., IGNORE_PERFORMANCE, LOG_PATH) are read first.
    !>
    !> @param config  host, optional; NULL = mp_autocast_config_default(MP_FP16).
    !> @retval MP_ERROR_INVALID_ARGUMENT a variable has another value, or adds an operation that is in
    !>         another list and is not removed there
    function mp_autocast_create(policy, config) result(answer) bind(c, &
      name="mp_autocast_create")
      import
      type(c_ptr), intent(inout) :: policy
      type(mp_autocast_config_t), intent(in), optional :: config
      integer(c_int) :: answer
    end function

    subroutine mp_autocast_destroy(policy) bind(c, name="mp_autocast_destroy")
      import
      type(c_ptr), value :: policy
    end subroutine

    !> Put operations into a class, out of the one that they are in.
    !> @param op_types  host, `count` names, any but NULL; copied.
    !> @retval MP_ERROR_INVALID_ARGUMENT also where the policy has been used
    function mp_autocast_set_class(policy, op_types, count, op_class) result(answer) bind(c, &
      name="mp_autocast_set_class")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: op_types
      integer(c_int32_t), value :: count
      integer(c_int), value :: op_class
      integer(c_int) :: answer
    end function

    !> Give nodes a class by their name, whatever their operation; where several patterns match, the one
    !> that was set last wins.  `encoder/` in 16 bits, `decoder/` in fp32.
    !> @param pattern  host, copied.  * is any text, ? any character, [a-z] one of these, [!a-z] none of
    !>                 these, as in a shell; * also matches "/".
    !> @retval MP_ERROR_INVALID_ARGUMENT also where the policy has been used, or a [ is not closed
    function mp_autocast_set_nodes(policy, pattern, node_class) result(answer) bind(c, &
      name="mp_autocast_set_nodes")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: pattern
      integer(c_int), value :: node_class
      integer(c_int) :: answer
    end function

    !> The class of an operation before the level is applied.  Names are case-sensitive.
    !> MP_CAST_UNLISTED for an unknown one, for NULL, and without a policy; with MP_AUTOCAST_PYTORCH an
    !> unknown one is MP_CAST_CLEAR.
    function mp_autocast_class(policy, op_type) result(answer) bind(c, name="mp_autocast_class")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: op_type
      integer(c_int) :: answer
    end function

    !> Whether 16 bits are worth it on a device.  fp16 needs Tensor Cores, sm_70; bf16 needs sm_80; the
    !> host target has no faster 16-bit arithmetic.  It is a question of speed, so a closed gate is no
    !> error: a rewrite then changes nothing, and the log has one warning.
    !> @param context         optional; NULL: any device, so only the environment can close it.
    !> @param closed_because  host, out: one clause in static storage; NULL = open.
    function mp_autocast_gate(policy, context, closed_because) result(answer) bind(c, &
      name="mp_autocast_gate")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: context
      type(c_ptr), intent(inout) :: closed_because
      integer(c_int) :: answer
    end function

    !> Which nodes run in 16 bits, and the casts between.
    !> @param context  optional: the gate is that of its device; NULL = none.
    !> @param graph    host.
    !> @param result   host, out.
    !> @retval MP_ERROR_INVALID_ARGUMENT something is out of range, named with its array and index; or
    !>         MP_AUTOCAST_FORCE_ALL with MP_BF16
    function mp_autocast_rewrite(policy, context, graph, result) result(answer) bind(c, &
      name="mp_autocast_rewrite")
      import
      type(c_ptr), value :: policy
      type(c_ptr), value :: context
      type(mp_autocast_graph_t), intent(in), optional :: graph
      type(mp_autocast_result_t), intent(inout) :: result
      integer(c_int) :: answer
    end function

    !> The report on a rewrite.
    !> @param graph   host, as it was rewritten.
    !> @param result  host: of its rewrite.  Its arrays are not read.
    !> @param text    host, optional, out: NUL-terminated.
    !> @param bytes   host.  In: room in text.  Out: what is needed, the NUL included.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL text has less room
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

    !> One operation without a graph, for hosts that execute as they go.
    !>
    !>     MP_CAST_ALLOW        every input low; the output too
    !>     MP_CAST_DENY         every input fp32; the output too
    !>     otherwise            inputs of one type stay as they are; of several types, all become fp32
    !>
    !> An input that is MP_DTYPE_NONE, an integer or fp64, is left alone.  Gate and level do not count
    !> here, but for MP_AUTOCAST=off, which leaves everything alone.
    !>
    !> @param input_dtype  host, `count` of mp_dtype_t; NULL for 0.
    !> @param cast_to      host, out, as many: mp_dtype_t; MP_DTYPE_NONE = leave.
    !> @param output       host, out: what the output is; MP_DTYPE_NONE where no input is of a type.
    !> @retval MP_ERROR_UNSUPPORTED the operation is banned; mp_last_error says what to use instead
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

    !> Dense rows, weight = 1, no smoothing; rows labelled -100 are ignored, which is what torch
    !> ignores and what its data loaders pad with.  Labels that are wrong by a slip (-1, classes) still
    !> show.
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

    !> Softmax cross-entropy and its gradient, in fp32 whatever the type of the logits:
    !>
    !>     p = softmax(logits[i])
    !>     q[j] = (1 - label_smoothing) (j == labels[i]) + label_smoothing / classes
    !>     row_loss[i] = -weight sum_j q[j] log p[j]
    !>     loss = sum_i row_loss[i] / counted
    !>     dlogits[i][j] = S weight / counted (p[j] - q[j])
    !>
    !> A row with the ignored label has loss 0 and a gradient of zeros, whatever its logits, which are
    !> not read; it is not correct either.  `counted` is the number of the other rows, counted on the
    !> device. If it is 0, loss is NaN, the mean of nothing, and the gradient is 0 (both as in
    !> torch).  It is counted per call: the mean of several calls, of ranks or accumulated, is that
    !> over all rows only where each counts as many.
    !>
    !> Every other label outside [0, classes) makes the loss and the gradient of its row NaN, so that
    !> the step is skipped and the mistake shows; the host cannot check labels without waiting.
    !>
    !> A class with the logit -infinity is masked: p = 0.  With smoothing it makes the loss infinite,
    !> as the formula says, for its q is not 0; so does a masked label.  The gradient stays finite.  A
    !> weight of 0 makes row_loss and dlogits 0, even if the loss is infinite; NaN is preserved.
    !>
    !> The gradient of the label is computed from the exponentials of the other classes, and the loss
    !> of a row whose label is its largest logit as log(1 + their sum): both keep their relative
    !> accuracy where the label has nearly all of the probability.
    !>
    !> The bits of a row depend on its values, on type and number of its classes, on how many rows
    !> count and on its address modulo 16; not on the size of the device.
    !>
    !> @param logits      device, rows x classes.
    !> @param labels      device, rows integers.
    !> @param loss_scale  device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
    !> @param row_loss    device, rows floats, written; not multiplied by S.
    !> @param loss        device, 1 float, optional, written; NaN when rows is 0.
    !> @param correct     device, 1 integer, optional: increased by the number of rows whose
    !>                    largest logit (the first, among equals) is the label's.  Clear it first.
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

    !> The mean of all elements, weight = 1, target of the type of the prediction.
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

    !> Bytes of workspace that mp_loss needs: at most 16 KiB, 0 for no elements.
    !> @param bytes  host, out.
    function mp_loss_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_loss_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_loss_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Mean squared error, mean absolute error, or binary cross-entropy, and the gradient of each, in
    !> fp32:
    !>
    !>     element_loss[i] = weight weights[i] l(x[i], t[i])
    !>     loss = sum_i element_loss[i] / divisor
    !>     dprediction[i] = S weight weights[i] / divisor dl/dx(x[i], t[i])
    !>
    !> With MP_LOSS_MEAN the divisor is the number of elements that count, whatever their weights are,
    !> as in torch.  An ignored element has loss 0 and gradient 0 and does not count; one whose
    !> weights[i] is 0 has both too, whatever its prediction is, and counts.  If none counts, the mean
    !> is NaN.  A weight of 0 makes element_loss and dprediction 0, even if the loss is infinite; NaN
    !> is preserved.
    !>
    !> A NaN makes loss and gradient of its element NaN.  An infinite prediction, as fp16 makes it of
    !> an overflow, makes the gradient infinite or NaN, so that the step is skipped; but a logit of
    !> -infinity is a masked one, as in mp_softmax_xent: the probability is 0 and the gradient -t.
    !> Logits lose nothing in confident elements: loss and gradient keep their relative accuracy for t
    !> = 0 and 1.
    !>
    !> The order of the sum, in fp64, depends on count alone.
    !>
    !> @param prediction    device, count elements.
    !> @param target        device, count elements.
    !> @param weights       device, count floats, optional: NULL = 1.
    !> @param loss_scale    device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
    !> @param element_loss  device, count floats, optional, written; not multiplied by S.
    !> @param loss          device, 1 float, optional, written; not multiplied by S.
    !> @param dprediction   device, count elements, optional; may be prediction.  NULL = forward only.
    !> @param workspace     device, 256-byte aligned; mp_loss_workspace_size bytes.
    !> Source: torch.nn.MSELoss, L1Loss, BCEWithLogitsLoss; Micikevicius et al. 2018, sections 3.2,
    !>         3.3.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed
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

    !> Images from N C H W to N H W C, the layout of convolutions and of everything here.
    !> Converts the type on the way, as mp_cast does.
    !>
    !> @param n,c,h,w     >= 0, in this order for both; where one is 0 there is nothing to do.
    !> @param src         device, dense, n c h w elements.
    !> @param dst         device, dense, as many; must not overlap src.
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

    !> The way back: images from N H W C to N C H W.  n, c, h, w are in this order here too.
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

    !> Windows side by side, without padding or dilation.
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

    !> P and Q of `desc`.
    !> @param p,q  host, out.
    function mp_pool2d_output_size(desc, p, q) result(answer) bind(c, &
      name="mp_pool2d_output_size")
      import
      type(mp_pool2d_desc_t), intent(in), optional :: desc
      integer(c_int32_t), intent(inout) :: p
      integer(c_int32_t), intent(inout) :: q
      integer(c_int) :: answer
    end function

    !> y = the largest element, or the mean, of each window and channel.  NaN is larger than
    !> everything and makes every mean NaN.
    !> @param x  device.
    !> @param y  device, written; must not overlap x.
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

    !> dx = the gradient of x, overwritten.  MP_POOL_MAX: the pixel that was the largest of its window,
    !> the first one by rows among equals, gets dy; it is found again from x, so y is not needed.
    !> Every pixel sums over the windows that hold it, in fp32 and a fixed order; for MP_POOL_MAX it
    !> reads each of them.
    !> @param x   device; read for MP_POOL_MAX alone, optional otherwise.
    !> @param dy  device.
    !> @param dx  device, written; must not overlap dy, nor x for MP_POOL_MAX.
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

    !> epsilon = 1e-5, momentum = 0.1, no activation.
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

    !> Bytes of workspace that training and backward need: at most 4 KiB per channel.
    !> @param bytes  host, out.
    function mp_batchnorm_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_batchnorm_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_batchnorm_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Normalises each channel with the statistics of these rows:
    !>
    !>     mean = sum_i x[i] / rows,  var = sum_i (x[i] - mean)^2 / rows
    !>     inv_std = 1 / sqrt(var + epsilon)
    !>     y[i] = activation((x[i] - mean) gamma inv_std + beta)
    !>     running_mean = (1 - momentum) running_mean + momentum mean
    !>     running_var  = (1 - momentum) running_var + momentum var rows / (rows - 1)
    !>
    !> @param tensors    host: x, saved_mean, saved_inv_std, y; gamma and beta are optional;
    !>                   running_mean and running_var are too, and updated.
    !> @param workspace  device, 256-byte aligned; mp_batchnorm_workspace_size bytes.
    !>
    !> A channel with an infinity or a NaN in x becomes NaN, and so does one whose rows var is beyond
    !> the range of fp32.  Its mean and variance do not enter the running statistics, so that a step
    !> which the loss scaler skips for it leaves them as they were.  A running value that is itself
    !> infinite or NaN is replaced by the next finite one of a batch, unless momentum is 0.  A step
    !> that is skipped for another reason, such as an overflow of a gradient, has still updated them.
    !>
    !> rows = 1 leaves running_var as it is, for one sample has no unbiased variance; rows = 0 or
    !> channels = 0 writes nothing.
    !>
    !> Means and squared deviations of blocks of rows are combined pairwise, never sums of squares:
    !> accurate also where the mean is large beside the deviation.  The order depends on the shape
    !> alone, not on the device.
    !> Source: Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1; Chan, Golub & LeVeque,
    !> Algorithms for Computing the Sample Variance, 1983; Micikevicius et al. 2018, section 3.3
    !> (statistics in fp32).
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed
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

    !> The same with given statistics; momentum is not looked at.
    !> @param tensors  host: x, running_mean, running_var, which are read here, and y, which may be x;
    !>                 gamma and beta are optional.
    function mp_batchnorm_forward_inference(context, desc, tensors, &
      stream) result(answer) bind(c, name="mp_batchnorm_forward_inference")
      import
      type(c_ptr), value :: context
      type(mp_batchnorm_desc_t), intent(in), optional :: desc
      type(mp_batchnorm_tensors_t), optional :: tensors
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Gradients of mp_batchnorm_forward_training, with g = dy, or with MP_ACT_RELU 0 where the
    !> activation was not positive, which is computed again from x; so y need not be kept:
    !>
    !>     xhat[i] = (x[i] - mean) inv_std
    !>     dbeta = sum_i g[i],  dgamma = sum_i g[i] xhat[i]
    !>     dx[i] = gamma inv_std (g[i] - dbeta / rows - xhat[i] dgamma / rows)
    !>
    !> @param tensors  host: x, gamma, beta, saved_mean and saved_inv_std as in the forward pass, dy,
    !>                 dx; dgamma and dbeta are optional.
    !> An infinity or a NaN in x or g makes dgamma and dx of its channel infinite or NaN.  Workspace
    !> and order of sums as in the forward pass.
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

    !> No activation; b is dense, and of the same type.
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

    !> y = activation(z), for each element.
    !>
    !> Computed in fp32 and rounded once.  A NaN stays NaN, except where MP_ACT_DRELU gives 0: it takes
    !> a where b > 0, and 0 elsewhere, whatever a is.  Activations are those of mp_epilogue_t.
    !>
    !> With rows or columns of 0 nothing is read or written.
    !>
    !> @param a  device, rows x columns.
    !> @param b  device; with MP_POINTWISE_COPY and a forward activation, or none, it is not looked at
    !>           and may be NULL.
    !> @param y  device, rows x columns, written; may be a.  May be b where its elements have the
    !>           places and the type of those of y: dtype_b = dtype, and ld_b = columns or rows = 1.
    !> Source: Hendrycks & Gimpel, Gaussian Error Linear Units, 2016 (both forms of GELU);
    !>         Ramachandran, Zoph & Le, Searching for Activation Functions, 2017 (SiLU).
    !> @retval MP_ERROR_INVALID_ARGUMENT also where a D* kind comes with another op, or y is a b with
    !>         another layout or type, or overlaps a or b otherwise
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

    !> Dense rows, dtype_sum = MP_FP32, beta = 0.
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

    !> Bytes of workspace that mp_column_sum needs: at most 2 KiB per column.
    !> @param bytes  host, out.
    function mp_column_sum_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_column_sum_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_column_sum_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> Sums each column, such as the gradient of a bias where no epilogue of a product makes it:
    !>
    !>     sum[j] = round(*scale * (x[0][j] + x[1][j] + ...) + beta * sum[j])
    !>
    !> Summed in fp32, in an order that depends on rows and columns alone, and rounded once.  rows = 0
    !> leaves beta * sum; columns = 0 does nothing.
    !>
    !> @param x          device, rows x columns.  For images N H W C, rows = N H W.
    !> @param sum        device, columns elements, written; read only when beta != 0.  Must not overlap
    !>                   x.
    !> @param epilogue   host, optional: scale, amax and found_inf.  Everything else is unsupported
    !>                   here and must be 0.
    !> @param workspace  device, 256-byte aligned; mp_column_sum_workspace_size bytes.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed
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

    !> One layer, one direction, with biases, without dropout, clipping and flags; dense; dtype_dw = dtype.
    !> Batch-major tensors, [sequence][step][element], have x_step = input_size and
    !> x_row = timesteps x input_size.
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

    !> What `desc` needs.
    !> @param sizes  host, out; MP_INIT_STRUCT it before the call.
    function mp_rnn_get_sizes(context, desc, sizes) result(answer) bind(c, &
      name="mp_rnn_get_sizes")
      import
      type(c_ptr), value :: context
      type(mp_rnn_desc_t), intent(in), optional :: desc
      type(mp_rnn_sizes_t), intent(inout) :: sizes
      integer(c_int) :: answer
    end function

    !> y, h_n and c_n, and in the reserve what the backward passes need.
    !> @param tensors    host: weights, lengths or batch_sizes, dropout_offset, x, h0, c0, y, hn, cn,
    !>                   reserve.
    !> @param workspace  device, 256-byte aligned; what it holds is of no use afterwards.
    !>
    !> timesteps = 0: h_n = h_0, c_n = c_0, and backward dh_0 = dh_n, dc_0 = dc_n.
    !>
    !> The bits of a sequence depend on its own values, on shape and device, and not on the length of the
    !> longest or on how the others end, where more than 64 rows, a row per step and sequence, are there in
    !> both cases; so a sequence cut into windows, with h and c handed over, comes to the same bits.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes or reserve_bytes is less than is needed: what a
    !>         call does is settled by mp_rnn_get_sizes
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

    !> The same without dropout, and without anything kept: neither dropout_offset nor the reserve is
    !> looked at.
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

    !> dx, dh_0 and dc_0; and in the reserve, in place of the gates, their gradients.
    !> @param tensors  host: what forward read, with the same values, except x; reserve, dy, dhn, dcn, dx, dh0, dc0,
    !>                 found_inf.
    !>
    !> Gradients of gates, dx and dh_0 are rounded to `dtype`; found_inf is raised by the first two.  Where
    !> c' was clipped no gradient passes.
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

    !> The gradients of weights and biases, after mp_rnn_backward_data, summed over all steps and
    !> sequences in fp32 and in a fixed order.  Overwritten, or added to with MP_RNN_ACCUMULATE; of no
    !> steps they are 0.
    !> @param tensors  host: lengths or batch_sizes, dropout_offset, x (optional where no gradient of a W_ih
    !>                 of the first layer is wanted), h0, reserve, weight_grads, found_inf, amax.
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

    !> Dense rows, no flags; dtype_dtable = dtype.
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

    !> out[i] = table[indices[i]].
    !>
    !> An index outside [0, vocabulary) reads nothing and makes its row NaN, so that the step is skipped
    !> and the mistake shows; the host cannot check indices without waiting.
    !>
    !> @param table    device, vocabulary x width.
    !> @param indices  device, rows integers.
    !> @param out      device, rows x width, written; must not overlap table.
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

    !> Bytes of workspace that backward needs: for each row 17 + width / 8, for each row of the table 4, and
    !> less than 128 KiB + 8 width beside that; 0 for no rows.
    !> @param bytes  host, out.
    function mp_embedding_workspace_size(context, desc, bytes) result(answer) bind(c, &
      name="mp_embedding_workspace_size")
      import
      type(c_ptr), value :: context
      type(mp_embedding_desc_t), intent(in), optional :: desc
      integer(c_size_t), intent(inout) :: bytes
      integer(c_int) :: answer
    end function

    !> dtable[v] = sum of dout[i] over all i with indices[i] = v; 0 where there is none.
    !>
    !> Summed in fp32 and in a fixed order, and rounded once; with MP_EMBEDDING_ACCUMULATE what was there
    !> is the last summand.  The order is that of i, by stretches of 64 rows with the same index whose
    !> sums are combined where there are more.  So the bits of a row of dtable depend on the rows of dout
    !> that belong to it, on their order and on width; not on other indices, nor on the device.
    !>
    !> Indices outside [0, vocabulary) add to nothing.  A NaN in dout reaches one row of dtable.
    !>
    !> @param indices    device, rows integers.
    !> @param dout       device, rows x width.
    !> @param dtable     device, vocabulary x width, every element written; with MP_EMBEDDING_ACCUMULATE
    !>                   the rows that an index has, except that of the padding.
    !> @param found_inf  device, 1 float, optional: set to 1 and never cleared, see mp_epilogue_t.
    !> @param amax       device, 1 float, optional, updated: of what is written to dtable, once it is
    !>                   rounded.
    !> @param workspace  device, 256-byte aligned; mp_embedding_workspace_size bytes.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed
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

    !> Without a seed: 0.
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

    !> Forward and backward: y = x mask / (1 - p), where the mask is 0 with probability p and otherwise 1.
    !>
    !> The mask is stored nowhere.  It follows from seed, offset and the place of an element, so a second
    !> call with dy in place of x gives dx.  Element i is dropped where word i % 4 of Philox 4x32-10 is
    !> less than 2^32 p, rounded down; its key is the seed, and its counter, low words first, is i / 4
    !> (1 word), the offset (2), and i / 4 / 2^32 (1).  mp_rnn_* draw other words, with the same seed too.
    !>
    !> A dropped element is 0, NaN or not.  The others are multiplied with 1 / (1 - p) in fp32 and rounded
    !> once.  With p = 0, y is x.
    !>
    !> @param offset  device, 1 integer, optional, 0 if absent: other masks for every value.  Without it
    !>                every step has the same mask: training gives a counter on the device, such as
    !>                mp_optimizer_step_counter, which a replayed graph reads too.  Forward and
    !>                backward of a step need the same.
    !> @param x       device, count elements.
    !> @param y       device, as many, written; may be x.
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

    !> Begin a graph.
    function mp_graph_create(graph, context) result(answer) bind(c, name="mp_graph_create")
      import
      type(c_ptr), intent(inout) :: graph
      type(c_ptr), value :: context
      integer(c_int) :: answer
    end function

    !> Its memory too; work that has been enqueued must be done.  Optimizers made from its lists must
    !> be gone.
    subroutine mp_graph_destroy(graph) bind(c, name="mp_graph_destroy")
      import
      type(c_ptr), value :: graph
    end subroutine

    !> A tensor from outside.
    !> @param name    host, copied; as every name, any text but an empty one.
    !> @param dtype   MP_FP32, which autocast may convert; MP_FP16, MP_BF16: read as it is;
    !>                MP_DTYPE_NONE: integers.
    !> @param extent  host, `rank` elements, >= 1, dense and row-major.  Where rank > 0, extent[0] is
    !>                the batch, the same for all inputs.
    !> @param tensor  host, out: by which the tensor is named from now on.
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

    !> A tensor to train: fp32, the graph's own.  An optimizer has it from mp_graph_lists.
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

    !> A tensor that lives from step to step and is not trained: fp32, the graph's own.
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

    !> An operation of the list above.
    !> @param inputs      host, num_inputs tensors; -1 for an optional one that is absent.
    !> @param attributes  host, num_attributes; copied.  May be NULL for 0.
    !> @param outputs     host, out, num_outputs tensors, from the first on; optional ones may be left
    !>                    out.
    !> @retval MP_ERROR_NOT_FOUND an operation, or an attribute of it, of that name does not exist
    !> @retval MP_ERROR_INVALID_ARGUMENT shapes that do not fit, named with the node
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

    !> The tensor is read from outside: its memory is its own, and holds its value until the next pass.
    !> Those of losses are outputs anyway.  A tensor that depends on the loss is computed with it
    !> (mp_graph_mode_t).
    function mp_graph_output(graph, tensor) result(answer) bind(c, name="mp_graph_output")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      integer(c_int) :: answer
    end function

    !> The gradient of a tensor is read from outside, mp_graph_tensor_t.grad: for those who look at
    !> what fp16 does to it. Parameters need no such call.
    function mp_graph_keep_gradient(graph, tensor) result(answer) bind(c, &
      name="mp_graph_keep_gradient")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      integer(c_int) :: answer
    end function

    !> What is to become small: the loss of a SoftmaxXent, MSE, L1 or BCEWithLogits.  Without one, and
    !> without mp_graph_seed_gradient, the graph has no backward pass.
    function mp_graph_loss(graph, tensor) result(answer) bind(c, name="mp_graph_loss")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      integer(c_int) :: answer
    end function

    !> Declares an input with the gradient of a loss that the caller computes: dL / d(tensor), in fp32,
    !> of the shape of `tensor` and not multiplied by S.  mp_graph_backward multiplies it by S and
    !> starts there, and from the loss of mp_graph_loss if there is one: gradients add up.  The tensor
    !> becomes an output, so that it can be read after mp_graph_forward; its gradient is bound like any
    !> input, before mp_graph_backward.
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

    !> Mixed precision: operations get their types as the policy says.  To be called before
    !> mp_graph_compile; nothing changes, with one warning, where the policy's gate is closed on this
    !> device (mp_autocast_gate).
    !> @param policy  must live until mp_graph_compile has succeeded.  Not with MP_AUTOCAST_EMULATE.
    function mp_graph_autocast(graph, policy) result(answer) bind(c, name="mp_graph_autocast")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: policy
      integer(c_int) :: answer
    end function

    !> Append the backward pass, cast, fuse, and allocate.  Parameters and states are 0 from here on,
    !> and the graph takes no more nodes.
    !> @retval MP_ERROR_INVALID_ARGUMENT a parameter that the loss does not depend on, or none at all
    !> @retval MP_ERROR_OUT_OF_MEMORY nothing was allocated
    function mp_graph_compile(graph) result(answer) bind(c, name="mp_graph_compile")
      import
      type(c_ptr), value :: graph
      integer(c_int) :: answer
    end function

    !> Where an input lies from the next pass on; it may be another place each time.  As many elements
    !> are read as the batch has that is set then.
    !> @param data  device, aligned to its elements, 16 bytes for the fastest kernels.  NULL: unbound.
    function mp_graph_bind(graph, tensor, data) result(answer) bind(c, name="mp_graph_bind")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      type(c_ptr), value :: data
      integer(c_int) :: answer
    end function

    !> How large the batch is from the next pass on.  The first call with a size takes longer on the
    !> host.  A batch that needs more workspace than planned allocates it in this call.
    !> @param batch  1 to extent[0] of the inputs.
    !> @retval MP_ERROR_OUT_OF_MEMORY the batch size is unchanged
    function mp_graph_set_batch(graph, batch) result(answer) bind(c, name="mp_graph_set_batch")
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), value :: batch
      integer(c_int) :: answer
    end function

    !> Set a parameter or a state, and the 16-bit copy of a parameter where there is one, in stream
    !> order.
    !> @param values  host or device, its elements in fp32.
    function mp_graph_write(graph, tensor, values, stream) result(answer) bind(c, &
      name="mp_graph_write")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      type(c_ptr), value :: values
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> All outputs from the inputs that are bound.
    !> @retval MP_ERROR_INVALID_ARGUMENT an input that is not bound
    function mp_graph_forward(graph, mode, stream) result(answer) bind(c, &
      name="mp_graph_forward")
      import
      type(c_ptr), value :: graph
      integer(c_int), value :: mode
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> The loss, and the gradients of all parameters times S, after mp_graph_forward in training.
    !> @param scaler  optional: its S, and its found_inf, which is raised by an overflow on the way.
    !>                NULL: S = 1.
    function mp_graph_backward(graph, scaler, stream) result(answer) bind(c, &
      name="mp_graph_backward")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: scaler
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Returns the step of a graph with Dropout: its forward passes in training so far, replays of a
    !> CUDA graph included.  Part of a checkpoint: a resumed run then draws the masks of the run that
    !> goes on.  Waits for `stream`.
    !> @param t  host, out; 0 for a graph without Dropout, which counts nothing.
    function mp_graph_get_step_sync(graph, t, stream) result(answer) bind(c, &
      name="mp_graph_get_step_sync")
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), intent(inout) :: t
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> Sets the step from a checkpoint; 0 after mp_graph_compile.  Waits for `stream`.
    !> @param t  0 to 2^52.  No effect on a graph without Dropout.
    function mp_graph_set_step_sync(graph, t, stream) result(answer) bind(c, &
      name="mp_graph_set_step_sync")
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), value :: t
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function

    !> The lists of an optimizer: all parameters in the order of their creation.  Borrowed: they live
    !> as long as the graph.  No two gradients share memory.
    !> @param grads,master,model  host, out, each optional.  model is NULL where no parameter has a
    !>                            16-bit copy.
    function mp_graph_lists(graph, grads, master, model) result(answer) bind(c, &
      name="mp_graph_lists")
      import
      type(c_ptr), value :: graph
      type(c_ptr), intent(inout), optional :: grads
      type(c_ptr), intent(inout), optional :: master
      type(c_ptr), intent(inout), optional :: model
      integer(c_int) :: answer
    end function

    !> Before mp_graph_compile it has a name and a shape, and no memory.
    !> @param info  host, out; MP_INIT_STRUCT it before the call.
    function mp_graph_get_tensor(graph, tensor, info) result(answer) bind(c, &
      name="mp_graph_get_tensor")
      import
      type(c_ptr), value :: graph
      integer(c_int32_t), value :: tensor
      type(mp_graph_tensor_t), intent(inout) :: info
      integer(c_int) :: answer
    end function

    !> After mp_graph_compile.
    !> @param memory  host, out; MP_INIT_STRUCT it before the call.
    function mp_graph_get_memory(graph, memory) result(answer) bind(c, &
      name="mp_graph_get_memory")
      import
      type(c_ptr), value :: graph
      type(mp_graph_memory_t), intent(inout) :: memory
      integer(c_int) :: answer
    end function

    !> How the operations came to their types, forward and backward, before fusion: mp_autocast_explain
    !> of the graph. Without mp_graph_autocast nothing has a reason: MP_ERROR_INVALID_ARGUMENT.
    !> @param text   host, optional, out: NUL-terminated.
    !> @param bytes  host.  In: room in text.  Out: what is needed, the NUL included.
    !> @retval MP_ERROR_WORKSPACE_TOO_SMALL text has less room
    function mp_graph_explain(graph, form, text, bytes) result(answer) bind(c, &
      name="mp_graph_explain")
      import
      type(c_ptr), value :: graph
      integer(c_int), value :: form
      type(c_ptr), value :: text
      type(c_ptr), value :: bytes
      integer(c_int) :: answer
    end function

    !> What is called, in order: one line per call with its operations, function, tensors, types and
    !> shapes.  It begins with "forward", "backward", or "inference": in training that call is one of
    !> backward.  After mp_graph_compile; parameters and room as in mp_graph_explain.
    function mp_graph_describe(graph, text, bytes) result(answer) bind(c, &
      name="mp_graph_describe")
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: text
      type(c_ptr), value :: bytes
      integer(c_int) :: answer
    end function

    !> mp_scaler_config_init(MP_SCALER_BACKOFF), with max_scale and diverged_after 0 and what `preset`
    !> says.
    !> @retval MP_ERROR_INVALID_ARGUMENT if there is no such preset
    function mp_scaler_config_init_preset(config, struct_size, preset) result(answer) bind(c, &
      name="mp_scaler_config_init_preset")
      import
      type(mp_scaler_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int), value :: preset
      integer(c_int) :: answer
    end function

    !> What a word of a command line or of another system's configuration stands for:
    !>
    !>     "Backoff"    OpenSeq2Seq's: MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF
    !>     "LogMax"     OpenSeq2Seq's: MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX, as it was shipped
    !>     "lognormal"  MP_SCALER_PRESET_LOGNORMAL
    !>     "dynamic"    Apex's: MP_SCALER_PRESET_APEX_AMP, which begins where torch's GradScaler does
    !>     "none"       MP_SCALER_STATIC with S = 1
    !>     "128"        MP_SCALER_STATIC with S = 128; so every other number that S may be
    !>
    !> Capital letters do not matter.  A static S may lie outside [1, 2^24]: min_scale or max_scale goes
    !> with it.
    !> @param name    host.
    !> @param config  host, out; zeros after an error.
    !> @retval MP_ERROR_NOT_FOUND the word is unknown
    !> @retval MP_ERROR_INVALID_ARGUMENT the number is not positive and finite with a finite reciprocal
    function mp_scaler_config_from_name(name, config, struct_size) result(answer) bind(c, &
      name="mp_scaler_config_from_name")
      import
      type(c_ptr), value :: name
      type(mp_scaler_config_t), intent(inout) :: config
      integer(c_size_t), value :: struct_size
      integer(c_int) :: answer
    end function

    !> What makes a scaler that goes on where torch's stopped.
    !> @param saved   host.
    !> @param config  host, out: for mp_scaler_create; MP_INIT_STRUCT it before the call.
    !> @param state   host, out: for mp_scaler_set_state_sync; MP_INIT_STRUCT it before the call.
    !> @retval MP_ERROR_INVALID_ARGUMENT a scale without finite reciprocal, or a factor or interval that
    !>         no scaler has.  Also a growth_tracker that is not below growth_interval, as
    !>         set_growth_interval can leave it behind: torch compares the two for equality, so there S
    !>         would not grow again before an overflow, and here it would grow at once.  Set
    !>         growth_tracker to 0
    function mp_scaler_from_torch(saved, config, state) result(answer) bind(c, &
      name="mp_scaler_from_torch")
      import
      type(mp_torch_scaler_t), intent(in), optional :: saved
      type(mp_scaler_config_t), intent(inout) :: config
      type(mp_scaler_state_t), intent(inout) :: state
      integer(c_int) :: answer
    end function

    !> For GradScaler.load_state_dict.  Hysteresis, limits and the counts of skips are not torch's.
    !> @param saved  host, out.
    function mp_scaler_to_torch(config, state, saved) result(answer) bind(c, &
      name="mp_scaler_to_torch")
      import
      type(mp_scaler_config_t), intent(in), optional :: config
      type(mp_scaler_state_t), intent(in), optional :: state
      type(mp_torch_scaler_t), intent(inout) :: saved
      integer(c_int) :: answer
    end function

    !> The state, for a scaler made from MP_SCALER_PRESET_MEGATRON.
    !> @param saved  host.
    !> @param state  host, out; MP_INIT_STRUCT it before the call.
    !> @retval MP_ERROR_INVALID_ARGUMENT a scale without finite reciprocal, a growth_tracker below 0.
    !>         What depends on the scaler, mp_scaler_set_state_sync refuses
    function mp_scaler_from_megatron(saved, state) result(answer) bind(c, &
      name="mp_scaler_from_megatron")
      import
      type(mp_megatron_scaler_t), intent(in), optional :: saved
      type(mp_scaler_state_t), intent(inout) :: state
      integer(c_int) :: answer
    end function

    !> For DynamicGradScaler.load_state_dict.
    !> @param saved  host, out.
    function mp_scaler_to_megatron(state, saved) result(answer) bind(c, &
      name="mp_scaler_to_megatron")
      import
      type(mp_scaler_state_t), intent(in), optional :: state
      type(mp_megatron_scaler_t), intent(inout) :: saved
      integer(c_int) :: answer
    end function

    !> The kernels by predicted time, so that index 0 is what mp_gemm would launch, and behind them those
    !> that cannot run `desc`.
    !> @param info  host, out; MP_INIT_STRUCT it before the call.
    !> @retval MP_ERROR_NOT_FOUND when index is past the last kernel.
    function mp_gemm_kernel_info(context, desc, index, info) result(answer) bind(c, &
      name="mp_gemm_kernel_info")
      import
      type(c_ptr), value :: context
      type(mp_gemm_desc_t), intent(in), optional :: desc
      integer(c_int32_t), value :: index
      type(mp_kernel_info_t), intent(inout) :: info
      integer(c_int) :: answer
    end function

    !> The same for one product of a convolution.
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

    !> How the steps of a recurrent layer are done: by products of mp_gemm's kernels and kernels for the cell,
    !> or in one kernel a step.  The one that the library would take comes first.  workspace_bytes is that of the
    !> whole call, as in mp_rnn_get_sizes.
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

  !> device = MP_DEVICE_AUTO, the whole of it, cudaMalloc.
  function mp_context_config_default() result(answer)
    type(mp_context_config_t) :: answer
    if (mp_context_config_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> No function, nothing added, nothing measured.
  function mp_epilogue_default() result(answer)
    type(mp_epilogue_t) :: answer
    if (mp_epilogue_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Dense, untransposed, unbatched, alpha = 1, beta = 0; lda = k, ldb = ldc = ldd = n.
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

  !> Dense, untransposed, no data yet; lda = k, ldb = ldc = ldd = n.
  function mp_gemm_group_item_default(m, n, k) result(answer)
    integer(c_int64_t), value :: m
    integer(c_int64_t), value :: n
    integer(c_int64_t), value :: k
    type(mp_gemm_group_item_t) :: answer
    if (mp_gemm_group_item_init(answer, c_sizeof(answer), m, n, &
      k) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Unit stride and dilation, no padding, one group, alpha = 1, beta = 0, dtype_out = dtype.
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

  !> 65536 is where torch.amp.GradScaler begins; 24 overflows in a row take S from 2^24 to 1.
  !>
  !>     init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
  !>     growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
  !>     beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
  !>     overflow_std_dev 3.0902      sigma_floor 0.5
  function mp_scaler_config_default(policy) result(answer)
    integer(c_int), value :: policy
    type(mp_scaler_config_t) :: answer
    if (mp_scaler_config_init(answer, c_sizeof(answer), &
      policy) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> The state of a new scaler.
  function mp_scaler_state_default(config) result(answer)
    type(mp_scaler_config_t), intent(in) :: config
    type(mp_scaler_state_t) :: answer
    if (mp_scaler_state_init(answer, c_sizeof(answer), &
      config) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> The defaults of the cited papers; weight decay where the method is about it.  lr has no sensible
  !> default.  trust is that of LARS; Apex's LARC has 0.02.
  !>
  !>               beta1   beta2   eps     others
  !>     SGD       0.9     0       0       trust 0.001
  !>     Adam      0.9     0.999   1e-8
  !>     LAMB      0.9     0.999   1e-6    weight_decay 0.01
  !>     NovoGrad  0.95    0.98    1e-8
  !>     Adagrad   0       0       1e-10
  !>     RMSProp   0       0.9     1e-8
  !>
  !> decay_power is 1; everything else is 0.
  function mp_hyper_default(kind, lr) result(answer)
    integer(c_int), value :: kind
    real(c_float), value :: lr
    type(mp_hyper_t) :: answer
    if (mp_hyper_init(answer, c_sizeof(answer), kind, lr) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> One group, no tensors yet; flags 0, or MP_OPT_DECOUPLED_DECAY for MP_OPT_LAMB.
  function mp_optimizer_desc_default(kind) result(answer)
    integer(c_int), value :: kind
    type(mp_optimizer_desc_t) :: answer
    if (mp_optimizer_desc_init(answer, c_sizeof(answer), &
      kind) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> To nearest, overflow clamped.
  function mp_model_options_default() result(answer)
    type(mp_model_options_t) :: answer
    if (mp_model_options_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> One rank, for a program that may have several: nothing is communicated.
  function mp_comm_default() result(answer)
    type(mp_comm_t) :: answer
    if (mp_comm_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> No clipping, no reports, one rank.
  function mp_step_options_default() result(answer)
    type(mp_step_options_t) :: answer
    if (mp_step_options_init(answer, c_sizeof(answer)) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Preset MP_AUTOCAST_DEFAULT, level MP_AUTOCAST_NORMAL, no flags and no limits.
  function mp_autocast_config_default(low) result(answer)
    integer(c_int), value :: low
    type(mp_autocast_config_t) :: answer
    if (mp_autocast_config_init(answer, c_sizeof(answer), &
      low) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> The loss scaler that belongs to `low`: for MP_FP16 what TensorFlow's rewrite calls "dynamic",
  !> MP_SCALER_PRESET_KERAS; for MP_BF16, and where all stays MP_FP32, S = 1.
  !> @retval MP_ERROR_INVALID_ARGUMENT low is another type
  function mp_autocast_scaler_default(low) result(answer)
    integer(c_int), value :: low
    type(mp_scaler_config_t) :: answer
    if (mp_autocast_scaler_init(answer, c_sizeof(answer), &
      low) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Dense rows, weight = 1, no smoothing; rows labelled -100 are ignored, which is what torch
  !> ignores and what its data loaders pad with.  Labels that are wrong by a slip (-1, classes) still
  !> show.
  function mp_xent_desc_default(rows, classes, dtype) result(answer)
    integer(c_int64_t), value :: rows
    integer(c_int64_t), value :: classes
    integer(c_int), value :: dtype
    type(mp_xent_desc_t) :: answer
    if (mp_xent_desc_init(answer, c_sizeof(answer), rows, classes, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> The mean of all elements, weight = 1, target of the type of the prediction.
  function mp_loss_desc_default(kind, count, dtype) result(answer)
    integer(c_int), value :: kind
    integer(c_int64_t), value :: count
    integer(c_int), value :: dtype
    type(mp_loss_desc_t) :: answer
    if (mp_loss_desc_init(answer, c_sizeof(answer), kind, count, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Windows side by side, without padding or dilation.
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

  !> epsilon = 1e-5, momentum = 0.1, no activation.
  function mp_batchnorm_desc_default(rows, channels, dtype) result(answer)
    integer(c_int64_t), value :: rows
    integer(c_int32_t), value :: channels
    integer(c_int), value :: dtype
    type(mp_batchnorm_desc_t) :: answer
    if (mp_batchnorm_desc_init(answer, c_sizeof(answer), rows, channels, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> No activation; b is dense, and of the same type.
  function mp_pointwise_desc_default(op, rows, columns, dtype) result(answer)
    integer(c_int), value :: op
    integer(c_int64_t), value :: rows
    integer(c_int64_t), value :: columns
    integer(c_int), value :: dtype
    type(mp_pointwise_desc_t) :: answer
    if (mp_pointwise_desc_init(answer, c_sizeof(answer), op, rows, columns, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Dense rows, dtype_sum = MP_FP32, beta = 0.
  function mp_column_sum_desc_default(rows, columns, dtype) result(answer)
    integer(c_int64_t), value :: rows
    integer(c_int64_t), value :: columns
    integer(c_int), value :: dtype
    type(mp_column_sum_desc_t) :: answer
    if (mp_column_sum_desc_init(answer, c_sizeof(answer), rows, columns, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> One layer, one direction, with biases, without dropout, clipping and flags; dense; dtype_dw = dtype.
  !> Batch-major tensors, [sequence][step][element], have x_step = input_size and
  !> x_row = timesteps x input_size.
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

  !> Dense rows, no flags; dtype_dtable = dtype.
  function mp_embedding_desc_default(rows, vocabulary, width, dtype) result(answer)
    integer(c_int64_t), value :: rows
    integer(c_int32_t), value :: vocabulary
    integer(c_int64_t), value :: width
    integer(c_int), value :: dtype
    type(mp_embedding_desc_t) :: answer
    if (mp_embedding_desc_init(answer, c_sizeof(answer), rows, vocabulary, width, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> Without a seed: 0.
  function mp_dropout_desc_default(count, p, dtype) result(answer)
    integer(c_int64_t), value :: count
    real(c_float), value :: p
    integer(c_int), value :: dtype
    type(mp_dropout_desc_t) :: answer
    if (mp_dropout_desc_init(answer, c_sizeof(answer), count, p, &
      dtype) /= MP_SUCCESS) answer%struct_size = 0
  end function

  !> mp_scaler_config_init(MP_SCALER_BACKOFF), with max_scale and diverged_after 0 and what `preset`
  !> says.
  !> @retval MP_ERROR_INVALID_ARGUMENT if there is no such preset
  function mp_scaler_config_preset(preset) result(answer)
    integer(c_int), value :: preset
    type(mp_scaler_config_t) :: answer
    if (mp_scaler_config_init_preset(answer, c_sizeof(answer), &
      preset) /= MP_SUCCESS) answer%struct_size = 0
  end function

end module
