# Made by bindings/generate/generate from include/mpcore.h; edit that and run bindings/generate/generate.
"""The C ABI as it is: names, structs and constants of mpcore.h, through ctypes.

Pointers to plain data, handles and streams are c_void_p: an integer, None or ctypes.byref(x).
Functions are those of Library, which mpcore.lib is; they return a status, which the package's own layer checks.
Integers beyond the range of their C type raise ValueError.  An exception in a callback that returns something ends
the call that it was called from: the callback returns -1 or NULL, and the call raises the exception."""

from __future__ import annotations

import ctypes
import enum
import operator
import threading
from ctypes import (CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_float, c_int, c_int8,
                    c_int16, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64,
                    c_void_p)
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

Handle = Union[int, c_void_p, None]
Pointer = Any  # what ctypes takes for one: an integer, None, ctypes.byref(x), an array


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or hasattr(value, "__index__")


class Structure(ctypes.Structure):
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if _is_whole(value):
            got = getattr(self, name)  # ctypes cuts
            if isinstance(got, int) and got != operator.index(value):
                raise ValueError(f"{name} = {value} is beyond the range of its type")


_raised = threading.local()  # error: of a callback of the call that this thread is in


def _callback(result: Any, *arguments: Any) -> Any:
    """CFUNCTYPE, of which a function of Python may raise."""
    base: Any = CFUNCTYPE(result, *arguments)
    failure = None if result is c_void_p else -1

    def new(cls: Any, *source: Any) -> Any:
        if not (source and callable(source[0])):
            return base.__new__(cls, *source)

        def guarded(*values: Any) -> Any:
            try:
                return source[0](*values)
            except BaseException as error:  # _checked() raises it
                _raised.__dict__.setdefault("error", error)
                return failure

        return base.__new__(cls, guarded)

    return type("Callback", (base,), {"__new__": new, "_flags_": base._flags_, "_restype_": base._restype_,
                                      "_argtypes_": base._argtypes_})


def _range(kind: Any) -> Optional[Tuple[int, int]]:
    """Bounds of an integer or a pointer; None for other types."""
    if kind not in (c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p):
        return None
    count = 2 ** (8 * ctypes.sizeof(kind))
    return (-count // 2, count // 2 - 1) if kind(-1).value == -1 else (0, count - 1)


def _checked(function: Any, arguments: Dict[str, Any]) -> Any:
    """The function, with ValueError for integers that ctypes would cut."""
    ranges = [(i, name, _range(kind)) for i, (name, kind) in enumerate(arguments.items())]
    bounds = [(i, name, *limits) for i, name, limits in ranges if limits is not None]

    def call(*values: Any) -> Any:
        if len(values) == len(arguments):
            for i, name, low, high in bounds:
                if _is_whole(values[i]) and not low <= operator.index(values[i]) <= high:
                    raise ValueError(f"{name} = {values[i]} is beyond the range of its type")
        result = function(*values)
        error = _raised.__dict__.pop("error", None)
        if error is not None:
            raise error
        return result

    return call


MP_VERSION_MAJOR = 0
MP_VERSION_MINOR = 1
MP_VERSION_PATCH = 0
MP_VERSION = 100
"""Comparable with <; 0.1.0 is 100, 1.2.3 is 10203."""
MP_DEVICE_CURRENT = -1
"""the calling thread's current CUDA device, or an error"""
MP_DEVICE_HOST = -2
"""the CPU"""
MP_DEVICE_AUTO = -3
"""as CURRENT; HOST, with a warning, where there is none"""
MP_STEP_QUERY_DEPTH = 1024
"""Steps that mp_step_query remembers."""
MP_SLOT_FP32 = 255
"""The slot of inputs and outputs that are fp32 always: statistics of a batch norm, gain of a layer
norm.  Whatever the class of its node, 16 bits spread neither from this slot nor to it."""
MP_GRAPH_MAX_RANK = 8
"""The most dimensions that a tensor has."""


class mp_status_t(enum.IntEnum):
    """Values are part of the ABI.  The decades say whose fault it is."""

    MP_SUCCESS = 0
    MP_ERROR_INVALID_ARGUMENT = 1
    """a value outside its documented range"""
    MP_ERROR_MISALIGNED = 2
    """a pointer or ld breaks a documented alignment"""
    MP_ERROR_WORKSPACE_TOO_SMALL = 3
    """ask mp_*_workspace_size"""
    MP_ERROR_STRUCT_SIZE = 4
    """struct_size is 0, or asks for unknown features"""
    MP_ERROR_UNSUPPORTED = 20
    """no kernel for this combination; mp_last_error says which part"""
    MP_ERROR_ARCH_MISMATCH = 21
    """not compiled for this device"""
    MP_ERROR_NOT_FOUND = 22
    """name unknown, enumeration exhausted, shared library missing"""
    MP_ERROR_OUT_OF_MEMORY = 40
    MP_ERROR_CUDA = 41
    """mp_last_error has the CUDA error name"""
    MP_ERROR_COMM = 42
    """a callback of mp_comm_t failed; mp_last_error has its code"""
    MP_ERROR_INTERNAL = 60


MP_SUCCESS = mp_status_t.MP_SUCCESS
MP_ERROR_INVALID_ARGUMENT = mp_status_t.MP_ERROR_INVALID_ARGUMENT
MP_ERROR_MISALIGNED = mp_status_t.MP_ERROR_MISALIGNED
MP_ERROR_WORKSPACE_TOO_SMALL = mp_status_t.MP_ERROR_WORKSPACE_TOO_SMALL
MP_ERROR_STRUCT_SIZE = mp_status_t.MP_ERROR_STRUCT_SIZE
MP_ERROR_UNSUPPORTED = mp_status_t.MP_ERROR_UNSUPPORTED
MP_ERROR_ARCH_MISMATCH = mp_status_t.MP_ERROR_ARCH_MISMATCH
MP_ERROR_NOT_FOUND = mp_status_t.MP_ERROR_NOT_FOUND
MP_ERROR_OUT_OF_MEMORY = mp_status_t.MP_ERROR_OUT_OF_MEMORY
MP_ERROR_CUDA = mp_status_t.MP_ERROR_CUDA
MP_ERROR_COMM = mp_status_t.MP_ERROR_COMM
MP_ERROR_INTERNAL = mp_status_t.MP_ERROR_INTERNAL


class mp_log_level_t(enum.IntEnum):
    """How much a message matters; a smaller number matters more."""

    MP_LOG_ERROR = 1
    """every error, once; by default only errors that no status returns"""
    MP_LOG_WARN = 2
    """slow paths taken for a reason the caller can change"""
    MP_LOG_INFO = 3
    """kernel choices, the first time each is made; skipped steps, where the
    host asks for their outcome"""
    MP_LOG_DEBUG = 4
    """every call"""


MP_LOG_ERROR = mp_log_level_t.MP_LOG_ERROR
MP_LOG_WARN = mp_log_level_t.MP_LOG_WARN
MP_LOG_INFO = mp_log_level_t.MP_LOG_INFO
MP_LOG_DEBUG = mp_log_level_t.MP_LOG_DEBUG


class mp_dtype_t(enum.IntEnum):
    """Element types.  0 is deliberately invalid: a forgotten field is an error."""

    MP_DTYPE_NONE = 0
    MP_FP16 = 1
    """IEEE binary16: 5 exponent bits, 11 significant bits, max 65504"""
    MP_BF16 = 2
    """bfloat16: 8 exponent bits, 8 significant bits"""
    MP_FP32 = 3
    """IEEE binary32"""


MP_DTYPE_NONE = mp_dtype_t.MP_DTYPE_NONE
MP_FP16 = mp_dtype_t.MP_FP16
MP_BF16 = mp_dtype_t.MP_BF16
MP_FP32 = mp_dtype_t.MP_FP32


class mp_target_t(enum.IntEnum):
    """What the kernels of a context were compiled for."""

    MP_TARGET_CUDA = 1
    MP_TARGET_HOST = 2


MP_TARGET_CUDA = mp_target_t.MP_TARGET_CUDA
MP_TARGET_HOST = mp_target_t.MP_TARGET_HOST


class mp_op_t(enum.IntEnum):
    """An operand as it is stored, or its transpose."""

    MP_OP_N = 0
    MP_OP_T = 1


MP_OP_N = mp_op_t.MP_OP_N
MP_OP_T = mp_op_t.MP_OP_T


class mp_activation_t(enum.IntEnum):
    """A function applied to each element of a result, or its derivative."""

    MP_ACT_NONE = 0
    MP_ACT_RELU = 1
    MP_ACT_GELU = 2
    """tanh form: 0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))"""
    MP_ACT_DRELU = 3
    """backward: multiplies by relu'(aux)"""
    MP_ACT_DGELU = 4
    """backward: multiplies by gelu'(aux)"""
    MP_ACT_SIGMOID = 5
    """1 / (1 + exp(-z))"""
    MP_ACT_TANH = 6
    MP_ACT_DSIGMOID = 7
    """backward: multiplies by sigmoid'(aux)"""
    MP_ACT_DTANH = 8
    """backward: multiplies by tanh'(aux)"""
    MP_ACT_SILU = 9
    """z / (1 + exp(-z)), also called swish"""
    MP_ACT_DSILU = 10
    """backward: multiplies by silu'(aux)"""
    MP_ACT_GELU_ERF = 11
    """exact form: 0.5 z (1 + erf(z / sqrt(2)))"""
    MP_ACT_DGELU_ERF = 12
    """backward: multiplies by gelu'(aux) of the exact form"""


MP_ACT_NONE = mp_activation_t.MP_ACT_NONE
MP_ACT_RELU = mp_activation_t.MP_ACT_RELU
MP_ACT_GELU = mp_activation_t.MP_ACT_GELU
MP_ACT_DRELU = mp_activation_t.MP_ACT_DRELU
MP_ACT_DGELU = mp_activation_t.MP_ACT_DGELU
MP_ACT_SIGMOID = mp_activation_t.MP_ACT_SIGMOID
MP_ACT_TANH = mp_activation_t.MP_ACT_TANH
MP_ACT_DSIGMOID = mp_activation_t.MP_ACT_DSIGMOID
MP_ACT_DTANH = mp_activation_t.MP_ACT_DTANH
MP_ACT_SILU = mp_activation_t.MP_ACT_SILU
MP_ACT_DSILU = mp_activation_t.MP_ACT_DSILU
MP_ACT_GELU_ERF = mp_activation_t.MP_ACT_GELU_ERF
MP_ACT_DGELU_ERF = mp_activation_t.MP_ACT_DGELU_ERF


class mp_ragged_t(enum.IntEnum):
    """The dimension that the groups of mp_gemm_ragged share."""

    MP_RAGGED_M = 0
    """rows: forward pass and input gradients of the experts of a layer"""
    MP_RAGGED_K = 1
    """k: their weight gradients"""


MP_RAGGED_M = mp_ragged_t.MP_RAGGED_M
MP_RAGGED_K = mp_ragged_t.MP_RAGGED_K


class mp_conv_op_t(enum.IntEnum):
    """The three passes of a convolutional layer."""

    MP_CONV_FPROP = 0
    MP_CONV_DGRAD = 1
    MP_CONV_WGRAD = 2


MP_CONV_FPROP = mp_conv_op_t.MP_CONV_FPROP
MP_CONV_DGRAD = mp_conv_op_t.MP_CONV_DGRAD
MP_CONV_WGRAD = mp_conv_op_t.MP_CONV_WGRAD


class mp_scaler_policy_t(enum.IntEnum):
    """How the loss scale S follows the gradients."""

    MP_SCALER_STATIC = 0
    """S never changes.  bf16 training uses this with S = 1."""
    MP_SCALER_BACKOFF = 1
    """Overflow: S *= backoff_factor.  growth_interval clean steps in a row:
    S *= growth_factor, unless that is not a finite number.  Source: torch.amp.GradScaler.
    hysteresis h > 1 forgives h - 1 overflows; further ones back off, until the budget is
    refilled: when S grows (Megatron-LM) or, with MP_SCALER_REFILL_EACH_STEP, by every
    clean step (apex update_scale_hysteresis)."""
    MP_SCALER_LOGNORMAL = 2
    """Models log2 of the largest unscaled gradient as normal, with running mean mu (decay
    beta1) and deviation sigma (decay beta2, at least sigma_floor), and sets

        S = 2^floor(log2_max - mu - overflow_std_dev * sigma)
    so that overflow has a fixed small probability.  An overflowing step leaves mu and
    sigma alone, backs off once, and raises a head-room h (bits) subtracted in the exponent
    above; every growth_interval clean steps h shrinks by one bit.  Without h the policy
    livelocks when an activation gradient, which no statistic sees, overflows first.  After
    overflows before the first statistics, these begin with an h that leaves S as it is.
    A step whose gradients are all zero changes nothing.
    Source: OpenSeq2Seq LogMaxScaler, with its defects repaired (there an overflow feeds
    2^log_max into a mean of log2 values and pins S at its minimum for ~12,000 steps)."""
    MP_SCALER_LOGMAX = 3
    """OpenSeq2Seq's LogMaxScaler as it was shipped; see mpcore/compat.h."""


MP_SCALER_STATIC = mp_scaler_policy_t.MP_SCALER_STATIC
MP_SCALER_BACKOFF = mp_scaler_policy_t.MP_SCALER_BACKOFF
MP_SCALER_LOGNORMAL = mp_scaler_policy_t.MP_SCALER_LOGNORMAL
MP_SCALER_LOGMAX = mp_scaler_policy_t.MP_SCALER_LOGMAX


class mp_scaler_flags_t(enum.IntFlag):
    """Bits of mp_scaler_config.flags."""

    MP_SCALER_REFILL_EACH_STEP = 1
    """backoff; see there"""
    MP_SCALER_FIRST_STEP_UNCOUNTED = 2
    """Backoff: the first clean step, and the first after each overflow, does not count towards
    growth_interval.  Source: DeepSpeed FP16_Optimizer."""


MP_SCALER_REFILL_EACH_STEP = mp_scaler_flags_t.MP_SCALER_REFILL_EACH_STEP
MP_SCALER_FIRST_STEP_UNCOUNTED = mp_scaler_flags_t.MP_SCALER_FIRST_STEP_UNCOUNTED


class mp_scaler_status_t(enum.IntEnum):
    """Whether a scaler still gets anywhere."""

    MP_SCALER_OK = 0
    MP_SCALER_DIVERGED = 1
    """see mp_scaler_config.diverged_after; or S has no finite inverse"""


MP_SCALER_OK = mp_scaler_status_t.MP_SCALER_OK
MP_SCALER_DIVERGED = mp_scaler_status_t.MP_SCALER_DIVERGED


class mp_optimizer_kind_t(enum.IntEnum):
    """In all formulas g is the unscaled, clipped gradient, w the fp32 master weight, t the
    number of applied (not skipped) steps including this one.  Norms |x| are taken over one tensor,
    computed as in mp_l2norm."""

    MP_OPT_SGD = 1
    """m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m
    MP_OPT_NESTEROV: w -= lr (g + momentum m).  Weight decay: g += wd w, or with
    MP_OPT_DECAY_AFTER_MOMENTUM w -= lr wd w, which momentum does not see.
    MP_OPT_LARS, MP_OPT_LARC: g = a (g + wd w) instead, with one a per tensor:

        LARS: a = trust |w| / (|g| + wd |w| + eps);   LARC: min(1, that / lr)
    a = 1 where |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
    and tensors that begin as 0 stay near it.)
    Source: You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
    algorithm 1; LARC: Apex, apex/parallel/LARC.py."""
    MP_OPT_ADAM = 2
    """m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)
    Decay: g += wd w, or with MP_OPT_DECOUPLED_DECAY w -= lr wd w (AdamW).
    Source: Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2."""
    MP_OPT_LAMB = 3
    """w -= lr r u, where w -= lr u is the step of MP_OPT_ADAM with the same flags, its decay
    included, and r = |w| / |u|.  r = 1 where |w| or |u| is 0, and, unless MP_OPT_NVLAMB, for
    tensors with wd = 0 (biases, normalisation), as in Apex's FusedLAMB.
    The paper's form has MP_OPT_DECOUPLED_DECAY, which mp_optimizer_desc_default sets.  The global
    clipping that Apex has inside is mp_step_options.max_grad_norm.
    Source: You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2."""
    MP_OPT_NOVOGRAD = 4
    """v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1), one number per tensor;
    m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m
    dampening = b1 averages the gradients, as upstream's grad_averaging does.
    (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
    corrects the bias of a v that begins without one.  This is the paper's form.)
    Source: Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
    algorithm 1."""
    MP_OPT_ADAGRAD = 5
    """v += g^2;  w -= lr g / (sqrt(v) + eps).  v may begin above 0 (TensorFlow: 0.1).
    Decay: g += wd w, or with MP_OPT_DECOUPLED_DECAY w -= lr wd w.
    Source: Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch."""
    MP_OPT_RMSPROP = 6
    """v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps)
    With momentum: m = momentum m + g / (sqrt(v) + eps);  w -= lr m.  Decay: g += wd w.
    Source: Tieleman & Hinton, COURSERA: Neural Networks for Machine Learning, 2012, lecture 6.5;
    eps and momentum as in torch."""


MP_OPT_SGD = mp_optimizer_kind_t.MP_OPT_SGD
MP_OPT_ADAM = mp_optimizer_kind_t.MP_OPT_ADAM
MP_OPT_LAMB = mp_optimizer_kind_t.MP_OPT_LAMB
MP_OPT_NOVOGRAD = mp_optimizer_kind_t.MP_OPT_NOVOGRAD
MP_OPT_ADAGRAD = mp_optimizer_kind_t.MP_OPT_ADAGRAD
MP_OPT_RMSPROP = mp_optimizer_kind_t.MP_OPT_RMSPROP


class mp_optimizer_flags_t(enum.IntFlag):
    """Bits of mp_optimizer_desc.flags."""

    MP_OPT_NESTEROV = 1
    """SGD"""
    MP_OPT_DECOUPLED_DECAY = 2
    """Adam: makes it AdamW; LAMB; Adagrad"""
    MP_OPT_NO_BIAS_CORRECTION = 4
    """Adam, LAMB: mhat = m, vhat = v"""
    MP_OPT_MODEL_OVERFLOW = 16
    """Let the 16-bit copy of a weight that overflows become infinite.  Without this flag it is
    clamped to the largest finite value: an infinite weight makes every later gradient non-finite,
    so every later step is skipped and training never recovers."""
    MP_OPT_DECAY_AFTER_MOMENTUM = 32
    """SGD, not with MP_OPT_LARC or MP_OPT_LARS"""
    MP_OPT_LARC = 64
    """SGD"""
    MP_OPT_LARS = 128
    """SGD, not with MP_OPT_LARC"""
    MP_OPT_NVLAMB = 256
    """LAMB: adapts the tensors without decay too"""
    MP_OPT_STOCHASTIC_ROUNDING = 512
    """Round the 16-bit copy of a weight up or down at random, so that on average it is the weight: a
    change below half a unit of the copy is not lost in every step.  What the type can hold stays
    as it is.  The random numbers follow from rounding_seed, t, the tensor's index and the
    element's, and from nothing else: not from the device, not from being interrupted and resumed.
    Probabilities are exact (fp16 subnormals: to within 2^-32).
    Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1;
            Philox
    4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011."""


MP_OPT_NESTEROV = mp_optimizer_flags_t.MP_OPT_NESTEROV
MP_OPT_DECOUPLED_DECAY = mp_optimizer_flags_t.MP_OPT_DECOUPLED_DECAY
MP_OPT_NO_BIAS_CORRECTION = mp_optimizer_flags_t.MP_OPT_NO_BIAS_CORRECTION
MP_OPT_MODEL_OVERFLOW = mp_optimizer_flags_t.MP_OPT_MODEL_OVERFLOW
MP_OPT_DECAY_AFTER_MOMENTUM = mp_optimizer_flags_t.MP_OPT_DECAY_AFTER_MOMENTUM
MP_OPT_LARC = mp_optimizer_flags_t.MP_OPT_LARC
MP_OPT_LARS = mp_optimizer_flags_t.MP_OPT_LARS
MP_OPT_NVLAMB = mp_optimizer_flags_t.MP_OPT_NVLAMB
MP_OPT_STOCHASTIC_ROUNDING = mp_optimizer_flags_t.MP_OPT_STOCHASTIC_ROUNDING


class mp_lr_schedule_t(enum.IntEnum):
    """How the learning rate follows t, on the device: a skipped step does not advance it, and a
    captured graph needs no host.  Every schedule begins with a linear warm-up,

        lr(t) = lr t / warmup_steps   for t <= warmup_steps,
    and s = t - 1 - warmup_steps counts the steps after it: the first of them has lr itself.
    p = min(s / decay_steps, 1).  Computed in fp64, rounded once."""

    MP_LR_CONSTANT = 0
    """lr"""
    MP_LR_POLYNOMIAL = 1
    """lr_end + (lr - lr_end) (1 - p)^decay_power; linear with 1"""
    MP_LR_COSINE = 2
    """lr_end + (lr - lr_end) (1 + cos(pi p)) / 2
    Source: Loshchilov & Hutter, SGDR, 2017, equation 5, without restarts."""
    MP_LR_EXPONENTIAL = 3
    """max(lr_end, lr decay_rate^(s / decay_steps))"""
    MP_LR_INVERSE_SQRT = 4
    """lr sqrt(max(warmup_steps, 1) / t)
    Source: Vaswani et al., Attention Is All You Need, 2017, equation 3, with lr as its peak."""


MP_LR_CONSTANT = mp_lr_schedule_t.MP_LR_CONSTANT
MP_LR_POLYNOMIAL = mp_lr_schedule_t.MP_LR_POLYNOMIAL
MP_LR_COSINE = mp_lr_schedule_t.MP_LR_COSINE
MP_LR_EXPONENTIAL = mp_lr_schedule_t.MP_LR_EXPONENTIAL
MP_LR_INVERSE_SQRT = mp_lr_schedule_t.MP_LR_INVERSE_SQRT


class mp_reduce_op_t(enum.IntEnum):
    """What becomes of equal places in the tensors of all ranks."""

    MP_REDUCE_SUM = 0
    MP_REDUCE_MAX = 1
    """of finite numbers >= 0 only: what NaN does to a maximum is everybody's own"""


MP_REDUCE_SUM = mp_reduce_op_t.MP_REDUCE_SUM
MP_REDUCE_MAX = mp_reduce_op_t.MP_REDUCE_MAX


class mp_step_flags_t(enum.IntFlag):
    """Bits of mp_step_options.flags."""

    MP_STEP_KEEP_SCALER = 1
    """Leave the scaler and its flag to a later step, for optimizers that share a scaler: all but
    the last have this flag (or all, and mp_scaler_update(scaler, NULL, stream) follows).
    An optimizer skips for its own gradients and those before it.  For all to skip together
    the lists of the later ones are checked first:

        mp_check_nonfinite(grads_of_b, mp_scaler_found_inf(scaler), stream);
        options.flags = MP_STEP_KEEP_SCALER;
        mp_scale_step(a, scaler, &options, stream);
        mp_scale_step(b, scaler, NULL, stream);     // S follows its policy"""
    MP_STEP_UNSCALED = 2
    """The gradients are those of mp_grads_accumulate or mp_grads_to_fp32: 1/S is in them already,
    and the scaler learns from the amax that was noted there.  Lognormal and logmax need one.
    With MP_STEP_CHECKED too where the last call had MP_ACCUMULATE_LAST."""
    MP_STEP_CHECKED = 4
    """Whoever produced the gradients has inspected them: the epilogues of GEMMs and convolutions raise
    mp_scaler_found_inf and measure amax.  Pass 1 falls away, which saves a launch and one of the two
    readings of every gradient.  Without a scaler the flag is that of mp_optimizer_get_scaler.
    Not with what only pass 1 can tell: max_grad_norm, grad_norm, tensor_norms, reports, and the
    max_tensor_norm of a group."""
    MP_STEP_SHARDED = 8
    """With comm: every rank has tensors of its own, each of them whole (a sharded optimizer, perhaps
    without tensors), and the norm is that of all of them.  Without this flag all ranks have the
    same gradients."""


MP_STEP_KEEP_SCALER = mp_step_flags_t.MP_STEP_KEEP_SCALER
MP_STEP_UNSCALED = mp_step_flags_t.MP_STEP_UNSCALED
MP_STEP_CHECKED = mp_step_flags_t.MP_STEP_CHECKED
MP_STEP_SHARDED = mp_step_flags_t.MP_STEP_SHARDED


class mp_accumulate_flags_t(enum.IntFlag):
    """Bits of the `flags` of mp_grads_accumulate."""

    MP_ACCUMULATE_FIRST = 1
    """The first gradients of a window: sums are overwritten, and not read."""
    MP_ACCUMULATE_LAST = 2
    """The last ones before the update, by an optimizer of the host program: the sums are inspected
    as well, and mp_step_query learns the outcome here already.  Of several lists only the last one
    has this flag; nothing may raise the scaler's flag between here and mp_scaler_update.  The
    outcome is of this rank's gradients: with several ranks mp_grad_all_reduce comes before."""


MP_ACCUMULATE_FIRST = mp_accumulate_flags_t.MP_ACCUMULATE_FIRST
MP_ACCUMULATE_LAST = mp_accumulate_flags_t.MP_ACCUMULATE_LAST


class mp_step_outcome_t(enum.IntEnum):
    """Outcome of a step.  If several causes apply: OVERFLOW, then NO_SCALE, then RANGE.  Queries, the
    state of the scaler and mp_step_options report the same outcome; mp_scaler_get_history_sync has
    its own codes."""

    MP_STEP_PENDING = 0
    """the device has not come to it yet"""
    MP_STEP_TAKEN = 1
    MP_STEP_SKIPPED = 2
    """Bound for comparisons, never reported: from here on (>=) nothing was updated."""
    MP_STEP_RANGE = 3
    """The largest |gradient| times the factor that unscales and clips is not below 2^63, or that
    factor is not finite.  S stays: no other S helps."""
    MP_STEP_NO_SCALE = 5
    """(4 is reserved.)  S is 0, or 1/S is not a finite number.  The scaler's status becomes
    MP_SCALER_DIVERGED."""
    MP_STEP_OVERFLOW = 6
    """the flag was up, or a gradient or amax was not finite; S follows its policy"""


MP_STEP_PENDING = mp_step_outcome_t.MP_STEP_PENDING
MP_STEP_TAKEN = mp_step_outcome_t.MP_STEP_TAKEN
MP_STEP_SKIPPED = mp_step_outcome_t.MP_STEP_SKIPPED
MP_STEP_RANGE = mp_step_outcome_t.MP_STEP_RANGE
MP_STEP_NO_SCALE = mp_step_outcome_t.MP_STEP_NO_SCALE
MP_STEP_OVERFLOW = mp_step_outcome_t.MP_STEP_OVERFLOW


class mp_autocast_class_t(enum.IntEnum):
    """What an operation makes of a 16-bit type."""

    MP_CAST_UNLISTED = 0
    """fp32, whatever stands around it"""
    MP_CAST_ALLOW = 1
    """always low: it is safe, and faster"""
    MP_CAST_INFER = 2
    """low between low ones, unless it feels an MP_CAST_DENY"""
    MP_CAST_DENY = 3
    """fp32, and so are the MP_CAST_INFER and what lies before these, behind it"""
    MP_CAST_CLEAR = 4
    """no numerical effect: takes the colour of its neighbours"""
    MP_CAST_PROMOTE = 5
    """MP_AUTOCAST_PYTORCH: low where all its floating-point inputs are.  Elsewhere MP_CAST_INFER."""


MP_CAST_UNLISTED = mp_autocast_class_t.MP_CAST_UNLISTED
MP_CAST_ALLOW = mp_autocast_class_t.MP_CAST_ALLOW
MP_CAST_INFER = mp_autocast_class_t.MP_CAST_INFER
MP_CAST_DENY = mp_autocast_class_t.MP_CAST_DENY
MP_CAST_CLEAR = mp_autocast_class_t.MP_CAST_CLEAR
MP_CAST_PROMOTE = mp_autocast_class_t.MP_CAST_PROMOTE


class mp_autocast_preset_t(enum.IntEnum):
    """Whose lists of operations, and whose way of colouring."""

    MP_AUTOCAST_DEFAULT = 0
    """Names of mpcore, ONNX, TensorFlow and PyTorch at once.  Softmax, norms over a row, losses and
    sums are MP_CAST_DENY; batch norm is MP_CAST_INFER; products, convolutions, attention and
    recurrent layers are MP_CAST_ALLOW."""
    MP_AUTOCAST_TENSORFLOW = 1
    """lists of TensorFlow 2.21 for fp16"""
    MP_AUTOCAST_TENSORFLOW_BF16 = 2
    """lists of TensorFlow 2.21 for bf16"""
    MP_AUTOCAST_PYTORCH = 3
    """Lists of torch.amp in PyTorch 2.11 on a GPU, names without overload, and compositions of
    listed operations, such as cross_entropy and interpolate.  MP_CAST_DENY does not spread, and
    one sweep forward replaces the colouring: a node is low if it is MP_CAST_ALLOW, or else if all
    its floating-point inputs are low and no list holds it in fp32.  An unknown operation is
    MP_CAST_CLEAR."""
    MP_AUTOCAST_ONNX = 4
    """names of ONNX, with the block list of onnxconverter-common unlisted"""


MP_AUTOCAST_DEFAULT = mp_autocast_preset_t.MP_AUTOCAST_DEFAULT
MP_AUTOCAST_TENSORFLOW = mp_autocast_preset_t.MP_AUTOCAST_TENSORFLOW
MP_AUTOCAST_TENSORFLOW_BF16 = mp_autocast_preset_t.MP_AUTOCAST_TENSORFLOW_BF16
MP_AUTOCAST_PYTORCH = mp_autocast_preset_t.MP_AUTOCAST_PYTORCH
MP_AUTOCAST_ONNX = mp_autocast_preset_t.MP_AUTOCAST_ONNX


class mp_autocast_level_t(enum.IntEnum):
    """How far it goes."""

    MP_AUTOCAST_NORMAL = 0
    MP_AUTOCAST_INFER_AS_DENY = 1
    """the careful one"""
    MP_AUTOCAST_TENSOR_CORES_ONLY = 2
    """all but MP_CAST_ALLOW is MP_CAST_UNLISTED"""
    MP_AUTOCAST_FORCE_ALL = 3
    """For tests, fp16 alone: everything that can, but constants, state and cross-entropies."""


MP_AUTOCAST_NORMAL = mp_autocast_level_t.MP_AUTOCAST_NORMAL
MP_AUTOCAST_INFER_AS_DENY = mp_autocast_level_t.MP_AUTOCAST_INFER_AS_DENY
MP_AUTOCAST_TENSOR_CORES_ONLY = mp_autocast_level_t.MP_AUTOCAST_TENSOR_CORES_ONLY
MP_AUTOCAST_FORCE_ALL = mp_autocast_level_t.MP_AUTOCAST_FORCE_ALL


class mp_autocast_flags_t(enum.IntFlag):
    """Bits of mp_autocast_config.flags."""

    MP_AUTOCAST_NO_ENVIRONMENT = 1
    """the variables of mp_autocast_create are not read"""
    MP_AUTOCAST_IGNORE_PERFORMANCE = 2
    """no gate: see mp_autocast_gate"""
    MP_AUTOCAST_KEEP_IO = 4
    """Tensors of role MP_TENSOR_OUTPUT leave the graph in fp32: the outside is one more reader."""
    MP_AUTOCAST_EMULATE = 8
    """For machines without 16-bit arithmetic: low nodes run in fp32 on rounded values.  See
    mp_autocast_result."""


MP_AUTOCAST_NO_ENVIRONMENT = mp_autocast_flags_t.MP_AUTOCAST_NO_ENVIRONMENT
MP_AUTOCAST_IGNORE_PERFORMANCE = mp_autocast_flags_t.MP_AUTOCAST_IGNORE_PERFORMANCE
MP_AUTOCAST_KEEP_IO = mp_autocast_flags_t.MP_AUTOCAST_KEEP_IO
MP_AUTOCAST_EMULATE = mp_autocast_flags_t.MP_AUTOCAST_EMULATE


class mp_node_flags_t(enum.IntFlag):
    """Bits of mp_autocast_graph.node_flags."""

    MP_NODE_KEEP = 1
    """is not to be touched: fetched, fed, or the caller's wish"""
    MP_NODE_ELSEWHERE = 2
    """runs on another device, and is not touched either"""
    MP_NODE_NO_LOW = 4
    """has no 16-bit kernel: fp32; its class still spreads"""
    MP_NODE_CAST = 8
    """converts to the type of its output"""
    MP_NODE_READS_VARIABLE = 16
    """Reads a variable in place (Identity or Enter of TensorFlow's reference variables): low does not
    spread through it."""
    MP_NODE_BACK_EDGE = 32
    """of a loop: follows the others (NextIteration)"""
    MP_NODE_READS_EITHER = 64
    """reads fp32 and low alike, but for MP_SLOT_FP32"""
    MP_NODE_WRITES_EITHER = 128
    """writes fp32 or low as it is told, like mp_gemm's dtype_cd"""


MP_NODE_KEEP = mp_node_flags_t.MP_NODE_KEEP
MP_NODE_ELSEWHERE = mp_node_flags_t.MP_NODE_ELSEWHERE
MP_NODE_NO_LOW = mp_node_flags_t.MP_NODE_NO_LOW
MP_NODE_CAST = mp_node_flags_t.MP_NODE_CAST
MP_NODE_READS_VARIABLE = mp_node_flags_t.MP_NODE_READS_VARIABLE
MP_NODE_BACK_EDGE = mp_node_flags_t.MP_NODE_BACK_EDGE
MP_NODE_READS_EITHER = mp_node_flags_t.MP_NODE_READS_EITHER
MP_NODE_WRITES_EITHER = mp_node_flags_t.MP_NODE_WRITES_EITHER


class mp_tensor_role_t(enum.IntEnum):
    """What a tensor is besides a value."""

    MP_TENSOR_ACTIVATION = 0
    MP_TENSOR_PARAMETER = 1
    """an optimizer has its master, and can keep a 16-bit copy"""
    MP_TENSOR_OUTPUT = 2
    """read from outside"""


MP_TENSOR_ACTIVATION = mp_tensor_role_t.MP_TENSOR_ACTIVATION
MP_TENSOR_PARAMETER = mp_tensor_role_t.MP_TENSOR_PARAMETER
MP_TENSOR_OUTPUT = mp_tensor_role_t.MP_TENSOR_OUTPUT


class mp_cast_kind_t(enum.IntEnum):
    """How a tensor comes to its other type."""

    MP_CAST_BY_KERNEL = 1
    """mp_cast, once for all readers"""
    MP_CAST_BY_MODEL_COPY = 2
    """No kernel: the 16-bit copy that the optimizer keeps of its master (mp_optimizer_desc.model)."""


MP_CAST_BY_KERNEL = mp_cast_kind_t.MP_CAST_BY_KERNEL
MP_CAST_BY_MODEL_COPY = mp_cast_kind_t.MP_CAST_BY_MODEL_COPY


class mp_autocast_why_t(enum.IntEnum):
    """Why a node has its type.  Below 32 it stays fp32.  node_because names the node in []."""

    MP_WHY_UNLISTED = 1
    """no list names its operation"""
    MP_WHY_DENY_LIST = 2
    """MP_CAST_DENY, by list, pattern or node_class"""
    MP_WHY_DENY_UPSTREAM = 3
    """behind an MP_CAST_DENY [it]"""
    MP_WHY_RANGE = 4
    """a tensor with |x| > amax_limit"""
    MP_WHY_DEPTH = 5
    """more terms than depth_limit"""
    MP_WHY_KEPT = 6
    """MP_NODE_KEEP"""
    MP_WHY_ELSEWHERE = 7
    """MP_NODE_ELSEWHERE"""
    MP_WHY_NO_KERNEL = 8
    """MP_NODE_NO_LOW"""
    MP_WHY_NO_ALLOW_NEARBY = 9
    """could be low, but nothing low is near enough"""
    MP_WHY_NOT_FLOAT = 10
    """reads and writes no MP_FP32 tensor"""
    MP_WHY_GATE = 11
    """see mp_autocast_result.gate"""
    MP_WHY_CLUSTER_FP32 = 12
    """of a cluster that cannot be low [the member that cannot]"""
    MP_WHY_ALLOW_LIST = 32
    """MP_CAST_ALLOW, by list or node_class"""
    MP_WHY_BETWEEN_ALLOW = 33
    """MP_CAST_INFER or _CLEAR between two low ones [the one behind it]"""
    MP_WHY_FOLLOWS_ALLOW = 34
    """its inputs are low: bf16, or MP_AUTOCAST_PYTORCH [the first]"""
    MP_WHY_CLEAR_BESIDE_LOW = 35
    """MP_CAST_CLEAR beside a low one [it]"""
    MP_WHY_CLUSTER_LOW = 36
    """of a cluster that is low [the member that was]"""
    MP_WHY_CAST_ABSORBED = 37
    """a cast to fp32 all whose readers are low [the first]"""
    MP_WHY_PATTERN = 38
    """MP_CAST_ALLOW by mp_autocast_set_nodes"""


MP_WHY_UNLISTED = mp_autocast_why_t.MP_WHY_UNLISTED
MP_WHY_DENY_LIST = mp_autocast_why_t.MP_WHY_DENY_LIST
MP_WHY_DENY_UPSTREAM = mp_autocast_why_t.MP_WHY_DENY_UPSTREAM
MP_WHY_RANGE = mp_autocast_why_t.MP_WHY_RANGE
MP_WHY_DEPTH = mp_autocast_why_t.MP_WHY_DEPTH
MP_WHY_KEPT = mp_autocast_why_t.MP_WHY_KEPT
MP_WHY_ELSEWHERE = mp_autocast_why_t.MP_WHY_ELSEWHERE
MP_WHY_NO_KERNEL = mp_autocast_why_t.MP_WHY_NO_KERNEL
MP_WHY_NO_ALLOW_NEARBY = mp_autocast_why_t.MP_WHY_NO_ALLOW_NEARBY
MP_WHY_NOT_FLOAT = mp_autocast_why_t.MP_WHY_NOT_FLOAT
MP_WHY_GATE = mp_autocast_why_t.MP_WHY_GATE
MP_WHY_CLUSTER_FP32 = mp_autocast_why_t.MP_WHY_CLUSTER_FP32
MP_WHY_ALLOW_LIST = mp_autocast_why_t.MP_WHY_ALLOW_LIST
MP_WHY_BETWEEN_ALLOW = mp_autocast_why_t.MP_WHY_BETWEEN_ALLOW
MP_WHY_FOLLOWS_ALLOW = mp_autocast_why_t.MP_WHY_FOLLOWS_ALLOW
MP_WHY_CLEAR_BESIDE_LOW = mp_autocast_why_t.MP_WHY_CLEAR_BESIDE_LOW
MP_WHY_CLUSTER_LOW = mp_autocast_why_t.MP_WHY_CLUSTER_LOW
MP_WHY_CAST_ABSORBED = mp_autocast_why_t.MP_WHY_CAST_ABSORBED
MP_WHY_PATTERN = mp_autocast_why_t.MP_WHY_PATTERN


class mp_autocast_form_t(enum.IntEnum):
    """How a report is written."""

    MP_AUTOCAST_TEXT = 0
    """One line per node, "conv1/bn  FusedBatchNormV3  fp16  between conv1/conv and conv2/conv", and a
    summary."""
    MP_AUTOCAST_JSON = 1
    MP_AUTOCAST_DOT = 2
    """a picture for Graphviz: low green, fp32 red, casts on their edges"""


MP_AUTOCAST_TEXT = mp_autocast_form_t.MP_AUTOCAST_TEXT
MP_AUTOCAST_JSON = mp_autocast_form_t.MP_AUTOCAST_JSON
MP_AUTOCAST_DOT = mp_autocast_form_t.MP_AUTOCAST_DOT


class mp_xent_flags_t(enum.IntFlag):
    """Bits of mp_xent_desc_t.flags."""

    MP_XENT_IGNORE_LABEL = 1
    """rows whose label is `ignore_label` do not count"""


MP_XENT_IGNORE_LABEL = mp_xent_flags_t.MP_XENT_IGNORE_LABEL


class mp_loss_kind_t(enum.IntEnum):
    """Losses of one prediction x and one target t."""

    MP_LOSS_MSE = 1
    """(x - t)^2"""
    MP_LOSS_L1 = 2
    """|x - t|; its derivative is 0 for x = t"""
    MP_LOSS_BCE_WITH_LOGITS = 3
    """-t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x))"""


MP_LOSS_MSE = mp_loss_kind_t.MP_LOSS_MSE
MP_LOSS_L1 = mp_loss_kind_t.MP_LOSS_L1
MP_LOSS_BCE_WITH_LOGITS = mp_loss_kind_t.MP_LOSS_BCE_WITH_LOGITS


class mp_loss_reduction_t(enum.IntEnum):
    """Divisors of a sum of losses."""

    MP_LOSS_MEAN = 0
    """the number of elements that count"""
    MP_LOSS_SUM = 1
    """1"""


MP_LOSS_MEAN = mp_loss_reduction_t.MP_LOSS_MEAN
MP_LOSS_SUM = mp_loss_reduction_t.MP_LOSS_SUM


class mp_loss_flags_t(enum.IntFlag):
    """Bits of mp_loss_desc_t.flags."""

    MP_LOSS_IGNORE_TARGET = 1
    """elements whose target is `ignore_target` do not count"""


MP_LOSS_IGNORE_TARGET = mp_loss_flags_t.MP_LOSS_IGNORE_TARGET


class mp_pool_mode_t(enum.IntEnum):
    """What becomes of the pixels of a window.  Padding is never the largest; it counts as zeros in
    one of the two means, and not at all in the other."""

    MP_POOL_MAX = 1
    MP_POOL_AVG_INCLUDE_PAD = 2
    """sum / number of pixels inside the padded image"""
    MP_POOL_AVG_EXCLUDE_PAD = 3
    """sum / number of pixels inside the image"""


MP_POOL_MAX = mp_pool_mode_t.MP_POOL_MAX
MP_POOL_AVG_INCLUDE_PAD = mp_pool_mode_t.MP_POOL_AVG_INCLUDE_PAD
MP_POOL_AVG_EXCLUDE_PAD = mp_pool_mode_t.MP_POOL_AVG_EXCLUDE_PAD


class mp_pool_flags_t(enum.IntFlag):
    """Bits of mp_pool2d_desc_t.flags."""

    MP_POOL_CEIL = 1
    """P and Q are rounded up: the last window may reach past the padding, but begins inside the
    image or the padding before it.  As ceil_mode of torch."""


MP_POOL_CEIL = mp_pool_flags_t.MP_POOL_CEIL


class mp_pointwise_op_t(enum.IntEnum):
    """What becomes of an element of a and the one of b at its place."""

    MP_POINTWISE_COPY = 1
    """z = a"""
    MP_POINTWISE_ADD = 2
    """z = a + b"""
    MP_POINTWISE_MUL = 3
    """z = a b"""


MP_POINTWISE_COPY = mp_pointwise_op_t.MP_POINTWISE_COPY
MP_POINTWISE_ADD = mp_pointwise_op_t.MP_POINTWISE_ADD
MP_POINTWISE_MUL = mp_pointwise_op_t.MP_POINTWISE_MUL


class mp_rnn_cell_t(enum.IntEnum):
    """What happens in a step."""

    MP_RNN_TANH = 1
    MP_RNN_RELU = 2
    MP_RNN_LSTM = 3
    """rows of the weights: i f g o"""
    MP_RNN_GRU = 4
    """rows of the weights: r z n"""


MP_RNN_TANH = mp_rnn_cell_t.MP_RNN_TANH
MP_RNN_RELU = mp_rnn_cell_t.MP_RNN_RELU
MP_RNN_LSTM = mp_rnn_cell_t.MP_RNN_LSTM
MP_RNN_GRU = mp_rnn_cell_t.MP_RNN_GRU


class mp_rnn_flags_t(enum.IntFlag):
    """Bits of mp_rnn_desc_t.flags."""

    MP_RNN_BIDIRECTIONAL = 1
    MP_RNN_NO_BIAS = 2
    """b_ih and b_hh are 0 and not looked at"""
    MP_RNN_SKIP_INPUT = 4
    """x_t is added to every gate of the first layer in place of its product with W_ih, which is not
    looked at; input_size = hidden_size."""
    MP_RNN_RESET_FIRST = 8
    """MP_RNN_GRU: n = tanh(p_n + (r h) W_n^T + b_n), with two products in a row in every step.
    Source: Cho et al. 2014; what TensorFlow and Keras call reset_after=False."""
    MP_RNN_ACCUMULATE = 16
    """Gradients of weights and biases are added to what is there: micro-batches.  dtype_dw = MP_FP32
    loses nothing on the way."""


MP_RNN_BIDIRECTIONAL = mp_rnn_flags_t.MP_RNN_BIDIRECTIONAL
MP_RNN_NO_BIAS = mp_rnn_flags_t.MP_RNN_NO_BIAS
MP_RNN_SKIP_INPUT = mp_rnn_flags_t.MP_RNN_SKIP_INPUT
MP_RNN_RESET_FIRST = mp_rnn_flags_t.MP_RNN_RESET_FIRST
MP_RNN_ACCUMULATE = mp_rnn_flags_t.MP_RNN_ACCUMULATE


class mp_embedding_flags_t(enum.IntFlag):
    """Bits of mp_embedding_desc_t.flags."""

    MP_EMBEDDING_PADDING = 1
    """The gradient of row `padding_index` is 0, whatever dout is where that index stands; forward the
    row is one like any other.  As in torch."""
    MP_EMBEDDING_ACCUMULATE = 2
    """The gradient is added to what is there: micro-batches, or a table that is used twice.
    dtype_dtable = MP_FP32 loses nothing on the way."""


MP_EMBEDDING_PADDING = mp_embedding_flags_t.MP_EMBEDDING_PADDING
MP_EMBEDDING_ACCUMULATE = mp_embedding_flags_t.MP_EMBEDDING_ACCUMULATE


class mp_graph_mode_t(enum.IntEnum):
    MP_GRAPH_INFERENCE = 0
    """BatchNorm with its states, no Dropout.  The loss, and all that depends on it, if its labels
    are bound."""
    MP_GRAPH_TRAINING = 1
    """All that mp_graph_backward needs, which computes the loss with its gradient, and all that
    depends on the loss."""


MP_GRAPH_INFERENCE = mp_graph_mode_t.MP_GRAPH_INFERENCE
MP_GRAPH_TRAINING = mp_graph_mode_t.MP_GRAPH_TRAINING


class mp_scaler_preset_t(enum.IntEnum):
    """Policies of other systems: S after every step is theirs, exactly, with their defaults, while S
    is a finite fp32 number.  (Megatron, DeepSpeed and Keras 3 let S grow past that, and every
    later step is lost; here S stops.  apex amp raises at S = 0, DeepSpeed's DynamicLossScaler at
    an overflow with S = 1; here S stays there.)  All are MP_SCALER_BACKOFF but for the first and
    the last; change what you like in the config returned."""

    MP_SCALER_PRESET_LOGNORMAL = 0
    """mp_scaler_config_default(MP_SCALER_LOGNORMAL)"""
    MP_SCALER_PRESET_TORCH = 1
    """torch.amp.GradScaler.  2^16, interval 2000, no limits."""
    MP_SCALER_PRESET_APEX_AMP = 2
    """apex.amp LossScaler, apex/amp/scaler.py (removed from apex in 2025).  2^16, interval 2000, no
    minimum, maximum 2^24."""
    MP_SCALER_PRESET_APEX_HYSTERESIS = 3
    """apex csrc/update_scale_hysteresis.cu: torch's rule, but it takes 2 overflows without a clean
    step between them to back off.  The kernel has no defaults: torch's, and Megatron's
    hysteresis of 2."""
    MP_SCALER_PRESET_MEGATRON = 4
    """Megatron-LM DynamicGradScaler, core/optimizer/grad_scaler.py.  2^32, interval 1000, minimum
    1, hysteresis 2, refilled when S grows."""
    MP_SCALER_PRESET_DEEPSPEED = 5
    """DeepSpeed DynamicLossScaler, runtime/fp16/loss_scaler.py (ZeRO), with the defaults of the
    "fp16" section of its configuration: 2^16, interval 1000, minimum 1, hysteresis 2.  For
    consecutive_hysteresis set MP_SCALER_REFILL_EACH_STEP."""
    MP_SCALER_PRESET_DEEPSPEED_FUSED = 6
    """DeepSpeed FP16_Optimizer, runtime/fp16/fused_optimizer.py (without ZeRO), which has a rule of
    its own: no hysteresis, and the first growth takes 1001 clean steps."""
    MP_SCALER_PRESET_KERAS = 7
    """tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  2^15, interval 2000,
    minimum 1."""
    MP_SCALER_PRESET_KERAS_3 = 8
    """keras.optimizers.LossScaleOptimizer of Keras 3: the same without minimum."""
    MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF = 9
    """OpenSeq2Seq BackoffScaler, optimizers/automatic_loss_scaler.py.  2^14, which is also the
    maximum, interval 2000, minimum 1."""
    MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX = 10
    """OpenSeq2Seq LogMaxScaler as shipped: MP_SCALER_LOGMAX.  1, in [1, 2^14]."""


MP_SCALER_PRESET_LOGNORMAL = mp_scaler_preset_t.MP_SCALER_PRESET_LOGNORMAL
MP_SCALER_PRESET_TORCH = mp_scaler_preset_t.MP_SCALER_PRESET_TORCH
MP_SCALER_PRESET_APEX_AMP = mp_scaler_preset_t.MP_SCALER_PRESET_APEX_AMP
MP_SCALER_PRESET_APEX_HYSTERESIS = mp_scaler_preset_t.MP_SCALER_PRESET_APEX_HYSTERESIS
MP_SCALER_PRESET_MEGATRON = mp_scaler_preset_t.MP_SCALER_PRESET_MEGATRON
MP_SCALER_PRESET_DEEPSPEED = mp_scaler_preset_t.MP_SCALER_PRESET_DEEPSPEED
MP_SCALER_PRESET_DEEPSPEED_FUSED = mp_scaler_preset_t.MP_SCALER_PRESET_DEEPSPEED_FUSED
MP_SCALER_PRESET_KERAS = mp_scaler_preset_t.MP_SCALER_PRESET_KERAS
MP_SCALER_PRESET_KERAS_3 = mp_scaler_preset_t.MP_SCALER_PRESET_KERAS_3
MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF = mp_scaler_preset_t.MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF
MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX = mp_scaler_preset_t.MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX


mp_log_callback_t = CFUNCTYPE(None, c_uint32, c_char_p, c_void_p)
"""@param message  one line without newline; valid during the callback only.
@param user     the pointer given to mp_set_log_callback."""


class _Sized(Structure):
    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class mp_allocator_t(_Sized):
    """Source of the device memory of objects.  Called only by mp_*_create, mp_*_destroy,
    mp_graph_compile and mp_graph_set_batch.  If a callback throws a C++ exception, the call returns
    MP_ERROR_OUT_OF_MEMORY; a destroy call logs an error."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved0", c_uint32),
        ("alloc", _callback(c_void_p, c_size_t, c_void_p)),
        ("free", CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)),
        ("user", c_void_p),
    ]
    struct_size: int
    reserved0: int
    """must be 0"""
    alloc: Any
    """256-byte aligned, or NULL when out of memory."""
    free: Any
    """Work that has been enqueued may still use ptr."""
    user: Pointer


class mp_context_config_t(_Sized):
    """Which device a context is, and how it is used."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("device", c_int32),
        ("sm_limit", c_int32),
        ("flags", c_uint32),
        ("allocator", POINTER(mp_allocator_t)),
    ]
    struct_size: int
    device: int
    """CUDA ordinal, or one of MP_DEVICE_*"""
    sm_limit: int
    """use at most this many SMs; 0 = all.  Leaves room for NCCL."""
    flags: int
    """must be 0"""
    allocator: Pointer
    """Host, copied; NULL = cudaMalloc / cudaFree."""


class mp_device_info_t(_Sized):
    """What a context says of its device."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("target", c_uint32),
        ("arch", c_int32),
        ("num_sms", c_int32),
        ("smem_per_block", c_int64),
        ("l2_bytes", c_int64),
        ("name", c_char * 64),
    ]
    struct_size: int
    target: int
    arch: int
    """80, 90, ..."""
    num_sms: int
    """after sm_limit"""
    smem_per_block: int
    """bytes a kernel may opt in to"""
    l2_bytes: int
    name: bytes
    """NUL-terminated"""


class mp_epilogue_t(_Sized):
    """Work done on the fp32 accumulators before they are rounded and stored.  In order:

        z = alpha * *scale * acc + beta * C + bias[col]
        aux = z                     (if aux != NULL and the activation is not a D* kind)
        y = activation(z)           (or z * activation'(aux) for the D* kinds)
        D = round(y)
        dbias[col] = sum_rows D,  amax = max(amax, |D|),  found_inf |= !isfinite(D)

    If alpha * *scale is 0, the first term is 0 too, whatever acc is, as in BLAS.
    A NaN stays NaN through every activation; both forms of gelu, and silu, of -infinity are -0,
    their limit.  The exact form of gelu is within 6 ulp of its value, negative results too, and has
    the same bits on every device.

    dbias, amax and found_inf look at y *after* rounding to the type of D, because overflow
    happens in that rounding.  dbias sums over batch items too, in fp32 and a fixed order: in a
    pass over D, or with workspace for an eighth of D's bytes over sums of 16 rows that kernels
    for Hopper leave behind.  All pointers are device and optional."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("activation", c_uint32),
        ("scale", c_void_p),
        ("bias", c_void_p),
        ("bias_dtype", c_uint32),
        ("reserved0", c_uint32),
        ("aux", c_void_p),
        ("ld_aux", c_int64),
        ("dbias", c_void_p),
        ("amax", c_void_p),
        ("found_inf", c_void_p),
    ]
    struct_size: int
    activation: int
    scale: Pointer
    """1 float multiplied into alpha, e.g. mp_scaler_inv_scale()"""
    bias: Pointer
    """n elements"""
    bias_dtype: int
    reserved0: int
    """must be 0"""
    aux: Pointer
    """m x n, type and batch layout of D; written forward, read by MP_ACT_D*"""
    ld_aux: int
    """0 = ldd"""
    dbias: Pointer
    """n floats, overwritten; zeros when m or batch_count is 0"""
    amax: Pointer
    """1 float, updated; clear it first"""
    found_inf: Pointer
    """1 float, set to 1 and never cleared (sticky)"""


class mp_gemm_desc_t(_Sized):
    """Shape, types and layout of a GEMM; no data pointers, so that one descriptor
    serves as a key for workspace queries and kernel choice and can be reused."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("op_a", c_uint32),
        ("op_b", c_uint32),
        ("dtype_ab", c_uint32),
        ("dtype_cd", c_uint32),
        ("alpha", c_float),
        ("beta", c_float),
        ("batch_count", c_int32),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("lda", c_int64),
        ("ldb", c_int64),
        ("ldc", c_int64),
        ("ldd", c_int64),
        ("stride_a", c_int64),
        ("stride_b", c_int64),
        ("stride_c", c_int64),
        ("stride_d", c_int64),
        ("kernel", c_char_p),
    ]
    struct_size: int
    op_a: int
    op_b: int
    dtype_ab: int
    """MP_FP16, MP_BF16: tensor cores; MP_FP32: CUDA cores"""
    dtype_cd: int
    """any, whatever dtype_ab is"""
    alpha: float
    beta: float
    batch_count: int
    """>= 0.  0 together with alpha = 0 is refused: a descriptor without mp_gemm_desc_init."""
    m: int
    """op(A) is m x k, op(B) is k x n, C and D are m x n"""
    n: int
    """op(A) is m x k, op(B) is k x n, C and D are m x n"""
    k: int
    """op(A) is m x k, op(B) is k x n, C and D are m x n"""
    lda: int
    ldb: int
    ldc: int
    ldd: int
    stride_a: int
    """Elements between batch items; 0 in a or b = the same matrix for all items."""
    stride_b: int
    """Elements between batch items; 0 in a or b = the same matrix for all items."""
    stride_c: int
    """Elements between batch items; 0 in a or b = the same matrix for all items."""
    stride_d: int
    """Elements between batch items; 0 in a or b = the same matrix for all items."""
    kernel: Optional[bytes]
    """host; NULL = the library's choice; see mpcore/experimental.h"""


class mp_gemm_group_item_t(_Sized):
    """One product of mp_gemm_grouped: its shape and its matrices, as in mp_gemm."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved0", c_uint32),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("lda", c_int64),
        ("ldb", c_int64),
        ("ldc", c_int64),
        ("ldd", c_int64),
        ("A", c_void_p),
        ("B", c_void_p),
        ("C", c_void_p),
        ("D", c_void_p),
    ]
    struct_size: int
    """in an array, also the distance between elements"""
    reserved0: int
    """must be 0"""
    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldc: int
    ldd: int
    A: Pointer
    """device"""
    B: Pointer
    """device"""
    C: Pointer
    """device"""
    D: Pointer
    """device"""


class mp_conv2d_desc_t(_Sized):
    """Shape, types and layout of a convolution.  Names as in the CUTLASS documentation:

        x, dx    activations  N H W C            dense, C contiguous
        y, dy    outputs      N P Q K
        filter   weights      K R S (C/groups)

        P = (pad_top + H + pad_bottom - dilation_h (R - 1) - 1) / stride_h + 1   (rounded down)
        y[n][p][q][k] = sum over r, s, c of  filter[k][r][s][c]
            x[n][p stride_h - pad_top + r dilation_h][q stride_w - pad_left + s dilation_w][c]

    Q likewise; x is 0 outside the image.  This is cross-correlation, which deep learning calls
    convolution.  Output channel k belongs to group k / (K/groups) and reads the input channels of
    that group.  A 1-D convolution has h = r = 1.  Where the filter is larger than the padded image,
    P or Q is 0: there are no outputs, and no gradient comes from them."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("dtype_out", c_uint32),
        ("n", c_int32),
        ("h", c_int32),
        ("w", c_int32),
        ("c", c_int32),
        ("k", c_int32),
        ("r", c_int32),
        ("s", c_int32),
        ("pad_top", c_int32),
        ("pad_bottom", c_int32),
        ("pad_left", c_int32),
        ("pad_right", c_int32),
        ("stride_h", c_int32),
        ("stride_w", c_int32),
        ("dilation_h", c_int32),
        ("dilation_w", c_int32),
        ("groups", c_int32),
        ("alpha", c_float),
        ("beta", c_float),
        ("reserved0", c_uint32),
        ("kernel", c_char_p),
    ]
    struct_size: int
    dtype: int
    """of the two inputs; MP_FP16, MP_BF16: tensor cores; MP_FP32: CUDA cores"""
    dtype_out: int
    """of the tensor that is written: any, whatever dtype is"""
    n: int
    """>= 0"""
    h: int
    """>= 1"""
    w: int
    """>= 1"""
    c: int
    """>= 1"""
    k: int
    """>= 1"""
    r: int
    """>= 1"""
    s: int
    """>= 1"""
    pad_top: int
    """rows and columns of zeros, >= 0"""
    pad_bottom: int
    """rows and columns of zeros, >= 0"""
    pad_left: int
    """rows and columns of zeros, >= 0"""
    pad_right: int
    """rows and columns of zeros, >= 0"""
    stride_h: int
    """>= 1"""
    stride_w: int
    """>= 1"""
    dilation_h: int
    """>= 1"""
    dilation_w: int
    """>= 1"""
    groups: int
    """divides c and k; c = depthwise"""
    alpha: float
    """out = alpha * conv + beta * out; with alpha = 0 the inputs are not read"""
    beta: float
    """out = alpha * conv + beta * out; with alpha = 0 the inputs are not read"""
    reserved0: int
    """must be 0"""
    kernel: Optional[bytes]
    """host; NULL = the library's choice; see mpcore/experimental.h"""


class mp_tensor_list_desc_t(_Sized):
    """Describes `count` dense tensors.  Host arrays, copied by create."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("count", c_uint32),
        ("reserved0", c_uint32),
        ("data", c_void_p),
        ("numel", c_void_p),
        ("dtypes", c_void_p),
    ]
    struct_size: int
    dtype: int
    """of all tensors, where `dtypes` is NULL"""
    count: int
    reserved0: int
    """must be 0"""
    data: Pointer
    """count device pointers, aligned to the element size; NULL where numel is 0, and in the model
    list of an optimizer.  Tensors may overlap in a list that is only read; every call that writes
    the list refuses them with MP_ERROR_INVALID_ARGUMENT."""
    numel: Pointer
    """count element counts, >= 0 and together below 2^40; empty tensors are allowed anywhere."""
    dtypes: Pointer
    """One type per tensor, optional: layers kept in fp32 beside fp16 ones."""


class mp_tensor_report_t(Structure):
    """What is in one tensor, or in all of a list.  Written by kernels into device memory, so it has no
    struct_size: 64 bytes in every version."""

    _fields_ = [
        ("numel", c_int64),
        ("num_nan", c_int64),
        ("num_inf", c_int64),
        ("num_zero", c_int64),
        ("num_subnormal", c_int64),
        ("bad_tensor", c_int64),
        ("bad_element", c_int64),
        ("bad_value", c_float),
        ("amax", c_float),
    ]
    numel: int
    num_nan: int
    num_inf: int
    num_zero: int
    """of either sign"""
    num_subnormal: int
    """0 < |x| < 2^-14, whatever the type: fp16 holds such numbers with fewer
    digits, or as 0"""
    bad_tensor: int
    """The first NaN or infinity: in the lowest tensor that has one, its lowest element.  -1: none"""
    bad_element: int
    """The first NaN or infinity: in the lowest tensor that has one, its lowest element.  -1: none"""
    bad_value: float
    """that element; 0: none"""
    amax: float
    """as of mp_amax"""


class mp_stats_outputs_t(_Sized):
    """What mp_tensor_stats writes; every pointer is device memory and optional.
    mp_check_nonfinite, mp_amax, mp_l2norm and mp_inspect say what each of them is."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved0", c_uint32),
        ("found_inf", c_void_p),
        ("amax", c_void_p),
        ("tensor_amax", c_void_p),
        ("norm", c_void_p),
        ("tensor_norm", c_void_p),
        ("report", c_void_p),
        ("tensor_reports", c_void_p),
    ]
    struct_size: int
    """MP_INIT_STRUCT asks for nothing yet"""
    reserved0: int
    """must be 0"""
    found_inf: Pointer
    amax: Pointer
    """1; count"""
    tensor_amax: Pointer
    """1; count"""
    norm: Pointer
    """1; count"""
    tensor_norm: Pointer
    """1; count"""
    report: Pointer
    """1; count.  Costs counters in the pass, which is slower with a report than without."""
    tensor_reports: Pointer
    """1; count.  Costs counters in the pass, which is slower with a report than without."""


class mp_scaler_config_t(_Sized):
    """Decimal fractions are double, so that 0.99 is the 0.99 of Python."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("policy", c_uint32),
        ("flags", c_uint32),
        ("init_scale", c_float),
        ("min_scale", c_float),
        ("max_scale", c_float),
        ("growth_factor", c_double),
        ("backoff_factor", c_double),
        ("beta1", c_double),
        ("beta2", c_double),
        ("log2_max", c_float),
        ("overflow_std_dev", c_float),
        ("sigma_floor", c_float),
        ("growth_interval", c_int32),
        ("hysteresis", c_int32),
        ("diverged_after", c_int32),
        ("history", c_int32),
        ("reserved0", c_uint32),
    ]
    struct_size: int
    policy: int
    flags: int
    """mp_scaler_flags_t, or-ed"""
    init_scale: float
    min_scale: float
    """S is clamped to these; both > 0, and may be below 1.  Backoff also takes 0 = no such limit.
    Without min_scale S may sink to 0; if 1/S is infinite, mp_scale_step updates nothing
    (MP_STEP_NO_SCALE) and the status is MP_SCALER_DIVERGED."""
    max_scale: float
    """S is clamped to these; both > 0, and may be below 1.  Backoff also takes 0 = no such limit.
    Without min_scale S may sink to 0; if 1/S is infinite, mp_scale_step updates nothing
    (MP_STEP_NO_SCALE) and the status is MP_SCALER_DIVERGED."""
    growth_factor: float
    """backoff; > 1"""
    backoff_factor: float
    """backoff, lognormal; in (0, 1)"""
    beta1: float
    """lognormal, logmax; in [0, 1)"""
    beta2: float
    """lognormal, logmax; in [0, 1)"""
    log2_max: float
    """lognormal: log2 of the largest finite gradient; logmax: see there"""
    overflow_std_dev: float
    """lognormal, logmax; 3.09 = normal quantile of 0.999"""
    sigma_floor: float
    """lognormal; bits"""
    growth_interval: int
    """>= 1; clean steps per growth, or per bit of h given back"""
    hysteresis: int
    """backoff; overflows per backoff, >= 1"""
    diverged_after: int
    """After so many skipped steps in a row the state says MP_SCALER_DIVERGED and S stays, until a
    step is clean.  No S helps against a NaN of the forward pass, and a scaler that goes on
    lowering S ends at its minimum, or at 0.  0 = never."""
    history: int
    """updates that mp_scaler_get_history_sync can look back; at most 2^24"""
    reserved0: int
    """must be 0"""


class mp_scaler_state_t(_Sized):
    """Everything a checkpoint needs; plain data, can be written to disk as it is (same byte
    order assumed)."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("policy", c_uint32),
        ("scale", c_float),
        ("growth_tracker", c_int32),
        ("hysteresis_left", c_int32),
        ("log2_mean", c_float),
        ("log2_mean_slow", c_float),
        ("log2_square_slow", c_float),
        ("headroom", c_float),
        ("status", c_uint32),
        ("beta1_power", c_double),
        ("beta2_power", c_double),
        ("steps", c_int64),
        ("skipped", c_int64),
        ("skipped_nan", c_int64),
        ("skipped_in_row", c_int64),
        ("overflows", c_int64),
        ("out_of_range", c_int64),
        ("no_scale", c_int64),
    ]
    struct_size: int
    policy: int
    scale: float
    growth_tracker: int
    """clean steps that count towards growth_interval; -1: the next one
    does not (MP_SCALER_FIRST_STEP_UNCOUNTED)"""
    hysteresis_left: int
    """overflows still forgiven"""
    log2_mean: float
    """lognormal, logmax: decay beta1, not bias-corrected"""
    log2_mean_slow: float
    """lognormal, logmax: decay beta2"""
    log2_square_slow: float
    """lognormal, logmax: decay beta2"""
    headroom: float
    """lognormal: h, bits"""
    status: int
    beta1_power: float
    """lognormal, logmax: beta1^steps, for bias correction"""
    beta2_power: float
    steps: int
    """updates seen"""
    skipped: int
    """steps that were not taken: overflows + out_of_range + no_scale"""
    skipped_nan: int
    """overflows with a NaN among the gradients: amax was NaN"""
    skipped_in_row: int
    """since the last clean step"""
    overflows: int
    """Skips by outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE."""
    out_of_range: int
    """Skips by outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE."""
    no_scale: int
    """Skips by outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE."""


class mp_hyper_t(_Sized):
    """Hyperparameters of one parameter group.  A limit or a regularizer of 0 is none."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("lr", c_float),
        ("beta1", c_float),
        ("beta2", c_float),
        ("eps", c_float),
        ("weight_decay", c_float),
        ("dampening", c_float),
        ("trust", c_float),
        ("max_tensor_norm", c_float),
        ("max_value", c_float),
        ("l1", c_float),
        ("l2", c_float),
        ("lr_schedule", c_uint32),
        ("warmup_steps", c_int32),
        ("decay_steps", c_int32),
        ("decay_power", c_float),
        ("decay_rate", c_float),
        ("lr_end", c_float),
    ]
    struct_size: int
    """in an array, also the distance between elements"""
    lr: float
    """>= 0"""
    beta1: float
    """SGD, RMSProp: momentum; Adam, LAMB, NovoGrad"""
    beta2: float
    """Adam, LAMB, NovoGrad, RMSProp"""
    eps: float
    """> 0; SGD: >= 0, with MP_OPT_LARC or MP_OPT_LARS"""
    weight_decay: float
    """>= 0"""
    dampening: float
    """SGD, NovoGrad"""
    trust: float
    """SGD with MP_OPT_LARC or MP_OPT_LARS: > 0"""
    max_tensor_norm: float
    """g *= min(1, max_tensor_norm / (|g| + 1e-6))"""
    max_value: float
    """g into [-max_value, max_value]"""
    l1: float
    """>= 0; g += l1 sign(w), sign(0) = 0: the gradient of l1 sum |w|"""
    l2: float
    """>= 0; g += 2 l2 w: the gradient of l2 sum w^2"""
    lr_schedule: int
    warmup_steps: int
    """>= 0; 0 = none"""
    decay_steps: int
    """polynomial, cosine, exponential: >= 1"""
    decay_power: float
    """polynomial: > 0"""
    decay_rate: float
    """exponential: > 0"""
    lr_end: float
    """polynomial, cosine, exponential: >= 0, in the unit of lr"""


class mp_optimizer_desc_t(_Sized):
    """The lists below are parallel: same count and sizes.  They must outlive the optimizer,
    as must the tensors.  m and v are usually NULL: mp_optimizer_create then allocates those that
    the groups need, filled with 0, with the allocator of the context (mp_optimizer_moments).
    Lists of the caller are initialised by the caller.  Written lists (master, model, m, v) may
    overlap nothing else: mp_optimizer_create refuses one list, or the address of a tensor, in two
    places, unless these are grads and extra_grads."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("flags", c_uint32),
        ("num_groups", c_uint32),
        ("groups", POINTER(mp_hyper_t)),
        ("tensor_group", c_void_p),
        ("grads", c_void_p),
        ("master", c_void_p),
        ("model", c_void_p),
        ("m", c_void_p),
        ("v", c_void_p),
        ("lr_multipliers", c_void_p),
        ("decay_multipliers", c_void_p),
        ("extra_grads", c_void_p),
        ("rounding_seed", c_uint64),
    ]
    struct_size: int
    kind: int
    flags: int
    """mp_optimizer_flags_t, or-ed"""
    num_groups: int
    groups: Pointer
    """host, num_groups, copied"""
    tensor_group: Pointer
    """host, one index per tensor; NULL = all in group 0"""
    grads: Handle
    """any type; read, never written"""
    master: Handle
    """MP_FP32; updated"""
    model: Handle
    """MP_FP16/MP_BF16 copy of master, written; optional.  A NULL
    data pointer: that parameter has no 16-bit copy"""
    m: Handle
    """MP_FP32: momentum, or first moment.  NULL: allocated; not for SGD and
    RMSProp if every group has beta1 = 0.  Adagrad: NULL"""
    v: Handle
    """MP_FP32: second moment.  NULL: allocated; SGD: NULL.  NovoGrad: as many
    tensors as the others, of one element each"""
    lr_multipliers: Pointer
    """Device, one float per tensor, optional; NULL = all 1.  Each step reads them, so they may be
    rewritten in stream order, and must outlive the optimizer.  The first multiplies lr (0 freezes
    a tensor; its m and v go on), the second weight_decay, l1 and l2."""
    decay_multipliers: Pointer
    """Device, one float per tensor, optional; NULL = all 1.  Each step reads them, so they may be
    rewritten in stream order, and must outlive the optimizer.  The first multiplies lr (0 freezes
    a tensor; its m and v go on), the second weight_decay, l1 and l2."""
    extra_grads: Handle
    """MP_FP32, parallel to the others, optional: added to g after unscaling and clipping, as the
    gradient of a penalty that has its own code.  Read by each step and not inspected: an
    element whose extra gradient is infinite keeps its weight
    (mp_step_options.rejected_updates)."""
    rounding_seed: int
    """MP_OPT_STOCHASTIC_ROUNDING; any value"""


class mp_model_options_t(_Sized):
    """How fp32 master weights become their 16-bit copy."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("rounding_seed", c_uint64),
        ("t", c_void_p),
        ("overflows", c_void_p),
    ]
    struct_size: int
    flags: int
    """of mp_optimizer_flags_t: MP_OPT_MODEL_OVERFLOW, MP_OPT_STOCHASTIC_ROUNDING"""
    rounding_seed: int
    """MP_OPT_STOCHASTIC_ROUNDING, as in mp_optimizer_desc_t"""
    t: Pointer
    """MP_OPT_STOCHASTIC_ROUNDING: device, 1 integer: the number of updates that the weights have
    seen; of an optimizer of this library, mp_optimizer_step_counter after its step."""
    overflows: Pointer
    """as mp_step_options.model_overflows"""


class mp_comm_t(_Sized):
    """How to reach the other ranks: a table of callbacks, so that this library links no other.
    mp_comm_init_nccl fills it for NCCL, bindings/mpi/mpcore_mpi.h for MPI on the host target.

    Callbacks run on the calling thread, within the call that got the table.  They enqueue on
    `stream` (on the host target: they return when the result is there), get `user` last, may call
    mpcore, and return 0.  Any other code, or a C++ exception, ends the call with MP_ERROR_COMM.

    A call that gets a table is collective: every rank makes it, in the same order, with equal
    numbers of elements, equal types and equal flags.  That they are equal nobody checks: MPI tells some
    ranks, the others wait, or have wrong sums.

    As with every collective, a rank that is refused or fails leaves the others waiting: in the same call,
    or, where they have heard all of it, in the next one.  A call that is refused has not communicated.
    Weights and S of ranks that wait are as before the call.  A program looks at every status, and ends
    all ranks (MPI_Abort) where one is not MP_SUCCESS; docs/multi-gpu.md says what else it can do."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("rank", c_int32),
        ("world_size", c_int32),
        ("reserved0", c_uint32),
        ("all_reduce", _callback(c_int, c_void_p, c_void_p, c_size_t, c_uint32, c_uint32, c_void_p, c_void_p)),
        ("group_begin", _callback(c_int, c_void_p)),
        ("group_end", _callback(c_int, c_void_p)),
        ("user", c_void_p),
    ]
    struct_size: int
    rank: int
    """0 to world_size - 1"""
    world_size: int
    """>= 1; with 1 no callback is called, and all may be NULL"""
    reserved0: int
    """must be 0"""
    all_reduce: Any
    """recv = send of all ranks combined, the same bits on every rank.  Device pointers; recv may be
    send."""
    group_begin: Any
    """optional, with group_end: around a batch of all_reduce calls"""
    group_end: Any
    """follows also where one of the batch failed"""
    user: Pointer
    """e.g. the ncclComm_t"""


class mp_step_options_t(_Sized):
    """What else a step does and reports."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("max_grad_norm", c_float),
        ("reserved0", c_uint32),
        ("grad_norm", c_void_p),
        ("found_inf", c_void_p),
        ("tensor_norms", c_void_p),
        ("amax", c_void_p),
        ("report", c_void_p),
        ("tensor_reports", c_void_p),
        ("model_overflows", c_void_p),
        ("comm", POINTER(mp_comm_t)),
        ("outcome", c_void_p),
        ("rejected_updates", c_void_p),
    ]
    struct_size: int
    flags: int
    """mp_step_flags_t, or-ed"""
    max_grad_norm: float
    """clip the unscaled global norm to this; 0 = no clipping"""
    reserved0: int
    """must be 0"""
    grad_norm: Pointer
    """device, 1 float, optional: unscaled norm before clipping"""
    found_inf: Pointer
    """device, 1 float, optional: 1 if this step was skipped, else 0"""
    tensor_norms: Pointer
    """device, 1 float per tensor, optional: as grad_norm, of each"""
    amax: Pointer
    """MP_STEP_CHECKED: device, 1 float: the largest gradient as it was measured, with the meaning of
    `amax` in mp_scaler_update, and needed by the same policies.  Infinity or NaN skips the step.
    Read, not cleared: what the epilogues fill is for the caller to clear before the next one."""
    report: Pointer
    """Device, 1 report and 1 per tensor, optional: of the gradients as they are, multiplied by S
    (mp_inspect).  Also of a step that is skipped; of several ranks, each reports on its own."""
    tensor_reports: Pointer
    """Device, 1 report and 1 per tensor, optional: of the gradients as they are, multiplied by S
    (mp_inspect).  Also of a step that is skipped; of several ranks, each reports on its own."""
    model_overflows: Pointer
    """Device, 1 integer, optional: increased by the number of weights whose 16-bit copy was beyond the
    largest finite number after rounding, whether it was clamped or became infinite; clear it
    first.  NaN is none of them."""
    comm: Pointer
    """Host, optional: the step is one of several ranks that take the same decision and, if their
    scalers began alike, have the same S ever after.  A collective call (mp_comm_t), with the same
    flags on every rank."""
    outcome: Pointer
    """Device, 1 integer, optional: the outcome of this step, a mp_step_outcome_t."""
    rejected_updates: Pointer
    """Device, 1 integer, optional: increased by the number of elements that kept their old weight
    and moments because a new one was not finite (see mp_scale_step); clear it first."""


class mp_autocast_config_t(_Sized):
    """What a policy starts from."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("preset", c_uint32),
        ("low", c_uint32),
        ("level", c_uint32),
        ("flags", c_uint32),
        ("amax_limit", c_float),
        ("depth_limit", c_int64),
    ]
    struct_size: int
    preset: int
    low: int
    """MP_FP16 or MP_BF16"""
    level: int
    flags: int
    """mp_autocast_flags_t, or-ed"""
    amax_limit: float
    """A node that reads or writes a tensor with a larger known |x| is MP_CAST_DENY.  0 = do not look.
    65504 / 64 leaves activations six bits to grow."""
    depth_limit: int
    """a node that sums more terms is MP_CAST_DENY; 0 = do not look"""


class mp_autocast_graph_t(_Sized):
    """A graph: flat arrays of the host, which are not kept.  It may have cycles.  MP_INIT_STRUCT it."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("num_nodes", c_uint32),
        ("num_tensors", c_uint32),
        ("num_hidden_edges", c_uint32),
        ("num_clusters", c_uint32),
        ("reserved0", c_uint32),
        ("node_op", POINTER(c_char_p)),
        ("node_class", c_void_p),
        ("node_name", POINTER(c_char_p)),
        ("node_flags", c_void_p),
        ("node_depth", c_void_p),
        ("first_input", c_void_p),
        ("input_tensor", c_void_p),
        ("input_slot", c_void_p),
        ("tensor_producer", c_void_p),
        ("tensor_slot", c_void_p),
        ("tensor_dtype", c_void_p),
        ("tensor_role", c_void_p),
        ("tensor_amax", c_void_p),
        ("hidden_src", c_void_p),
        ("hidden_dst", c_void_p),
        ("first_member", c_void_p),
        ("member", c_void_p),
        ("cluster_kind", c_void_p),
    ]
    struct_size: int
    num_nodes: int
    """each at most 2^31 - 1"""
    num_tensors: int
    """each at most 2^31 - 1"""
    num_hidden_edges: int
    num_clusters: int
    reserved0: int
    """must be 0"""
    node_op: Pointer
    """operations; may be NULL where node_class says a class"""
    node_class: Pointer
    """optional: 1 + mp_autocast_class_t; 0 = by node_op"""
    node_name: Pointer
    """optional, as each of its names: for patterns and reports"""
    node_flags: Pointer
    """optional: mp_node_flags_t, or-ed"""
    node_depth: Pointer
    """optional: terms of a sum (k of a product); 0 = not known"""
    first_input: Pointer
    """num_nodes + 1, ascending from 0: inputs of node i are [first_input[i], first_input[i + 1])."""
    input_tensor: Pointer
    """-1: an optional input that is absent"""
    input_slot: Pointer
    """optional: 0"""
    tensor_producer: Pointer
    """node; -1: from outside"""
    tensor_slot: Pointer
    """optional: 0; the slot of its producer that writes it"""
    tensor_dtype: Pointer
    """mp_dtype_t.  MP_FP32 takes part; MP_FP16 and MP_BF16 stay; MP_DTYPE_NONE is anything else."""
    tensor_role: Pointer
    """optional: mp_tensor_role_t"""
    tensor_amax: Pointer
    """optional: largest |x| that mp_inspect has seen; NaN or < 0: unknown"""
    hidden_src: Pointer
    """num_hidden_edges nodes each: colour travels from the slot 0 of one to that of the other, and no
    data that this graph shows; through a container, or through state."""
    hidden_dst: Pointer
    """num_hidden_edges nodes each: colour travels from the slot 0 of one to that of the other, and no
    data that this graph shows; through a container, or through state."""
    first_member: Pointer
    """Clusters of nodes whose slots 0 have one colour; num_clusters + 1, as first_input."""
    member: Pointer
    cluster_kind: Pointer
    """optional; 0: a container, such as a list of tensors.  A member that is denied, is not to be
    touched or has no 16-bit kernel denies all; else one that is low makes all low, of any class.
    1: a loop.  If all members without MP_NODE_BACK_EDGE are low, and the others can be, they are
    too; else none is."""


class mp_autocast_cast_t(Structure):
    """One cast.  Without struct_size: 20 bytes in every version."""

    _fields_ = [
        ("tensor", c_int32),
        ("from", c_uint32),
        ("to", c_uint32),
        ("kind", c_uint32),
        ("readers", c_int32),
    ]
    tensor: int
    to: int
    kind: int
    readers: int
    """inputs that read the result, and the outside with MP_AUTOCAST_KEEP_IO"""


class mp_autocast_result_t(_Sized):
    """What a rewrite says.  Every array is the caller's and optional.  MP_INIT_STRUCT it.

    A reader j of tensor t gets tensor_dtype[t], or if input_cast[j] >= 0 what that cast makes of it;
    at most one cast belongs to a tensor.

    With MP_AUTOCAST_EMULATE there are more: `casts` needs room for 2 num_tensors + the number of
    inputs.  Every tensor stays MP_FP32.  One that a low node writes for any reader, or reads from an
    fp32 node, is cast to low once.  A cast whose `from` is low reads the result of that one: one for
    each input of a low node, and one for all fp32 readers of what a low node writes."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("num_casts", c_int32),
        ("num_low_nodes", c_int32),
        ("num_parameters_low", c_int32),
        ("tensor_dtype", c_void_p),
        ("node_dtype", c_void_p),
        ("input_cast", c_void_p),
        ("casts", POINTER(mp_autocast_cast_t)),
        ("node_why", c_void_p),
        ("node_because", c_void_p),
        ("gate", c_char_p),
    ]
    struct_size: int
    num_casts: int
    """out"""
    num_low_nodes: int
    """out"""
    num_parameters_low: int
    """out: casts of kind MP_CAST_BY_MODEL_COPY"""
    tensor_dtype: Pointer
    """num_tensors: what the producer writes"""
    node_dtype: Pointer
    """num_nodes: MP_FP32, or low; of slot 0, or where nothing takes part there of the lowest slot that
    does.  A node without such a slot is MP_FP32, but in a container that is low it is low: an
    empty list of 16-bit tensors."""
    input_cast: Pointer
    """one per input: an index of casts; -1: reads what is written"""
    casts: Pointer
    """room for num_tensors; in order of tensors"""
    node_why: Pointer
    """num_nodes: mp_autocast_why_t"""
    node_because: Pointer
    """num_nodes: the node that did it, one if there are several; -1"""
    gate: Optional[bytes]
    """out: why nothing was changed, in static storage; NULL"""


class mp_xent_desc_t(_Sized):
    """Shape and types of a classification loss."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("rows", c_int64),
        ("classes", c_int64),
        ("ld_logits", c_int64),
        ("ld_dlogits", c_int64),
        ("weight", c_float),
        ("label_smoothing", c_float),
        ("flags", c_uint32),
        ("ignore_label", c_int32),
    ]
    struct_size: int
    dtype: int
    """of logits and dlogits"""
    rows: int
    """samples, >= 0"""
    classes: int
    """>= 1"""
    ld_logits: int
    """>= classes"""
    ld_dlogits: int
    """>= classes"""
    weight: float
    """multiplies loss and gradient: a task weight, or 1/accumulation steps"""
    label_smoothing: float
    """in [0, 1): the part of each target that all classes share alike"""
    flags: int
    """mp_xent_flags_t, or-ed; 0 = every row counts"""
    ignore_label: int
    """any number, a class or not; without its flag it is not looked at"""


class mp_loss_desc_t(_Sized):
    """Shape and types of a loss of single elements."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("dtype", c_uint32),
        ("dtype_target", c_uint32),
        ("count", c_int64),
        ("weight", c_float),
        ("reduction", c_uint32),
        ("flags", c_uint32),
        ("ignore_target", c_float),
    ]
    struct_size: int
    kind: int
    dtype: int
    """type of prediction and dprediction"""
    dtype_target: int
    """type of target"""
    count: int
    """elements, >= 0"""
    weight: float
    """multiplies loss and gradient, as in mp_xent_desc_t"""
    reduction: int
    flags: int
    """mp_loss_flags_t, or-ed; 0 = every element counts"""
    ignore_target: float
    """any number, also NaN; not read without its flag"""


class mp_pool2d_desc_t(_Sized):
    """Shape and type of a pooling layer:

        x, dx    N H W C     dense, C contiguous
        y, dy    N P Q C     P = (pad_top + H + pad_bottom - extent_h) / stride_h + 1 (rounded down)
                             extent_h = dilation_h (window_h - 1) + 1

    Q likewise.  Padding is smaller than the extent of the window, so that every window has a pixel.
    With padding before it, a dilation above 1 must not exceed H (or W).  If the window is larger
    than the padded image, P or Q is 0: there are no outputs, and dx is
    0."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("mode", c_uint32),
        ("n", c_int32),
        ("h", c_int32),
        ("w", c_int32),
        ("c", c_int32),
        ("window_h", c_int32),
        ("window_w", c_int32),
        ("pad_top", c_int32),
        ("pad_bottom", c_int32),
        ("pad_left", c_int32),
        ("pad_right", c_int32),
        ("stride_h", c_int32),
        ("stride_w", c_int32),
        ("flags", c_uint32),
        ("dilation_h", c_int32),
        ("dilation_w", c_int32),
    ]
    struct_size: int
    dtype: int
    """of x, y, dy and dx; sums are fp32"""
    mode: int
    n: int
    """>= 0"""
    h: int
    """>= 1"""
    w: int
    """>= 1"""
    c: int
    """>= 1"""
    window_h: int
    """>= 1"""
    window_w: int
    """>= 1"""
    pad_top: int
    pad_bottom: int
    pad_left: int
    pad_right: int
    """>= 0 and smaller than the window's extent"""
    stride_h: int
    """>= 1"""
    stride_w: int
    """>= 1"""
    flags: int
    """mp_pool_flags_t, or-ed"""
    dilation_h: int
    """distance of a window's pixels, >= 0; 0 = 1"""
    dilation_w: int
    """distance of a window's pixels, >= 0; 0 = 1"""


class mp_batchnorm_desc_t(_Sized):
    """Batch normalisation of `rows` samples (N H W pixels of images) of `channels` values each."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("rows", c_int64),
        ("channels", c_int32),
        ("activation", c_uint32),
        ("epsilon", c_float),
        ("momentum", c_float),
    ]
    struct_size: int
    dtype: int
    """of x, y, dy and dx; everything else is fp32"""
    rows: int
    """>= 0"""
    channels: int
    """>= 0"""
    activation: int
    """MP_ACT_NONE or MP_ACT_RELU"""
    epsilon: float
    """>= 0; with 0, a constant channel becomes NaN"""
    momentum: float
    """of the running statistics, in [0, 1]"""


class mp_batchnorm_tensors_t(_Sized):
    """The tensors of a batch normalisation, device; those that a pass does not name below are not
    looked at.  Zeros and struct_size are a start: MP_INIT_STRUCT."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved0", c_uint32),
        ("x", c_void_p),
        ("gamma", c_void_p),
        ("beta", c_void_p),
        ("running_mean", c_void_p),
        ("running_var", c_void_p),
        ("saved_mean", c_void_p),
        ("saved_inv_std", c_void_p),
        ("y", c_void_p),
        ("dy", c_void_p),
        ("dx", c_void_p),
        ("dgamma", c_void_p),
        ("dbeta", c_void_p),
    ]
    struct_size: int
    reserved0: int
    """must be 0"""
    x: Pointer
    """rows x channels, dense"""
    gamma: Pointer
    """channels; NULL = 1 and 0"""
    beta: Pointer
    """channels; NULL = 1 and 0"""
    running_mean: Pointer
    """channels"""
    running_var: Pointer
    """channels"""
    saved_mean: Pointer
    """channels; training writes them for the backward pass"""
    saved_inv_std: Pointer
    """channels; training writes them for the backward pass"""
    y: Pointer
    """rows x channels, written"""
    dy: Pointer
    """rows x channels"""
    dx: Pointer
    """rows x channels, written; may be dy"""
    dgamma: Pointer
    """channels, overwritten, optional; zeros when rows is 0"""
    dbeta: Pointer
    """channels, overwritten, optional; zeros when rows is 0"""


class mp_pointwise_desc_t(_Sized):
    """Shape, types and function of a pass over elements:

        a, y    rows x columns, dense
        b       rows x columns, or with ld_b = 0 a single row of them that stands for all, as a bias does

    Where b has them all, or is not read, a tensor of any shape may be one row."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("op", c_uint32),
        ("activation", c_uint32),
        ("dtype", c_uint32),
        ("dtype_b", c_uint32),
        ("reserved0", c_uint32),
        ("rows", c_int64),
        ("columns", c_int64),
        ("ld_b", c_int64),
    ]
    struct_size: int
    op: int
    activation: int
    """Of z.  The D* kinds with MP_POINTWISE_COPY alone: y = a activation'(b), which takes a gradient
    a back through the activation; b is what went into it, not what came out."""
    dtype: int
    """of a and y"""
    dtype_b: int
    reserved0: int
    """must be 0"""
    rows: int
    """>= 0"""
    columns: int
    """>= 0"""
    ld_b: int
    """>= columns; 0 = the first row of b for every row"""


class mp_column_sum_desc_t(_Sized):
    """Shape and types of a sum over the rows of a matrix."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("dtype_sum", c_uint32),
        ("beta", c_float),
        ("rows", c_int64),
        ("columns", c_int64),
        ("ld", c_int64),
    ]
    struct_size: int
    dtype: int
    """type of x"""
    dtype_sum: int
    """type of sum"""
    beta: float
    """sum = column sums + beta * sum; 1 accumulates over micro-batches"""
    rows: int
    """>= 0"""
    columns: int
    """>= 0"""
    ld: int
    """>= columns; elements from row to row of x"""


class mp_rnn_desc_t(_Sized):
    """Shape, types and layout of a recurrent network."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("cell", c_uint32),
        ("flags", c_uint32),
        ("dtype", c_uint32),
        ("dtype_dw", c_uint32),
        ("layers", c_int32),
        ("input_size", c_int32),
        ("hidden_size", c_int32),
        ("batch", c_int32),
        ("timesteps", c_int32),
        ("dropout", c_float),
        ("clip", c_float),
        ("dropout_seed", c_uint64),
        ("x_step", c_int64),
        ("x_row", c_int64),
        ("y_step", c_int64),
        ("y_row", c_int64),
        ("kernel", c_char_p),
    ]
    struct_size: int
    cell: int
    flags: int
    """mp_rnn_flags_t, or-ed"""
    dtype: int
    """of x, y, h, the weights and their like; MP_FP32: all is fp32"""
    dtype_dw: int
    """of the gradients of the weights"""
    layers: int
    """1 to 65535"""
    input_size: int
    """>= 1, elements of x_t"""
    hidden_size: int
    """>= 1, elements of h"""
    batch: int
    """>= 0, sequences"""
    timesteps: int
    """>= 0, steps of the longest"""
    dropout: float
    """[0, 1): of the elements between layers that become 0 in training;
    the others are divided by 1 - dropout.  Training also sets
    mp_rnn_tensors_t.dropout_offset"""
    clip: float
    """MP_RNN_LSTM: c' is kept within [-clip, clip]; 0 = it is not"""
    dropout_seed: int
    """any number"""
    x_step: int
    """elements of x and dx from step to step, from sequence to sequence;
    0 = dense, one step after the other"""
    x_row: int
    """elements of x and dx from step to step, from sequence to sequence;
    0 = dense, one step after the other"""
    y_step: int
    """the same of y and dy"""
    y_row: int
    """the same of y and dy"""
    kernel: Optional[bytes]
    """host; NULL = the library's choice; see mpcore/experimental.h"""


class mp_rnn_weights_t(Structure):
    """The weights of one layer and direction, device, dense and row-major.  With G gates and the I
    elements of the layer's input: w_ih is G hidden_size x I, w_hh G hidden_size x hidden_size, the
    biases G hidden_size.  I is input_size in the first layer, directions x hidden_size in the others."""

    _fields_ = [
        ("w_ih", c_void_p),
        ("w_hh", c_void_p),
        ("b_ih", c_void_p),
        ("b_hh", c_void_p),
    ]
    w_ih: Pointer
    w_hh: Pointer
    b_ih: Pointer
    b_hh: Pointer


class mp_rnn_weight_grads_t(Structure):
    """Their gradients, device, of the same shapes, each of them optional."""

    _fields_ = [
        ("w_ih", c_void_p),
        ("w_hh", c_void_p),
        ("b_ih", c_void_p),
        ("b_hh", c_void_p),
    ]
    w_ih: Pointer
    w_hh: Pointer
    b_ih: Pointer
    b_hh: Pointer


class mp_rnn_sizes_t(_Sized):
    """What follows from a descriptor, whatever its strides and with or without MP_RNN_ACCUMULATE."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("directions", c_uint32),
        ("gates", c_uint32),
        ("num_weights", c_uint32),
        ("reserve_bytes", c_size_t),
        ("workspace_bytes", c_size_t),
    ]
    struct_size: int
    directions: int
    """1 or 2"""
    gates: int
    """1, 3 or 4"""
    num_weights: int
    """layers x directions"""
    reserve_bytes: int
    """Bytes that a training step keeps between its passes: per step, sequence, hidden unit, layer and
    direction 14 for LSTM, 10 for GRU, 4 for the plain cells; 24, 20 and 8 with MP_FP32; and less
    than 256 beside that."""
    workspace_bytes: int
    """that suffice for each of the four calls"""


class mp_rnn_tensors_t(_Sized):
    """The data of all calls, device unless said; those that a call does not name below are not looked at.
    Zeros and struct_size are a start: MP_INIT_STRUCT."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("num_weights", c_uint32),
        ("weights", POINTER(mp_rnn_weights_t)),
        ("lengths", c_void_p),
        ("batch_sizes", c_void_p),
        ("dropout_offset", c_void_p),
        ("x", c_void_p),
        ("h0", c_void_p),
        ("c0", c_void_p),
        ("y", c_void_p),
        ("hn", c_void_p),
        ("cn", c_void_p),
        ("reserve", c_void_p),
        ("reserve_bytes", c_size_t),
        ("dy", c_void_p),
        ("dhn", c_void_p),
        ("dcn", c_void_p),
        ("dx", c_void_p),
        ("dh0", c_void_p),
        ("dc0", c_void_p),
        ("weight_grads", POINTER(mp_rnn_weight_grads_t)),
        ("found_inf", c_void_p),
        ("amax", c_void_p),
    ]
    struct_size: int
    num_weights: int
    """of the arrays `weights` and `weight_grads`: as in mp_rnn_sizes_t"""
    weights: Pointer
    """host, read before the call returns: [layer x directions + direction]"""
    lengths: Pointer
    """1 integer per sequence, in any order, optional: steps that it has, 0 to timesteps.  Steps behind
    its end are never read, neither x nor dy; y and dx are 0 there, and h_n, c_n are those of its
    last step, or h_0, c_0 if it has none.  A sequence with another length becomes NaN."""
    batch_sizes: Pointer
    """Host, 1 integer per step, optional: how many sequences have that step, never more than in the
    step before; the longest sequences come first.  x, y, dx and dy are packed: the rows of a step
    follow those of the step before, x_row and y_row elements apart, and x_step, y_step play no
    part.  Not with `lengths`."""
    dropout_offset: Pointer
    """1 integer, optional, 0 if absent: other masks of dropout for every value.  Without it every step
    has the same masks: training gives a counter on the device, such as mp_optimizer_step_counter,
    which a replayed graph reads too.  The passes of a step need the same."""
    x: Pointer
    """timesteps x batch x input_size"""
    h0: Pointer
    """layers x directions x batch x hidden_size, optional: 0"""
    c0: Pointer
    """the same of c, MP_RNN_LSTM"""
    y: Pointer
    """timesteps x batch x directions hidden_size, written"""
    hn: Pointer
    """as h0, written, optional: h after the last step; may be h0 in inference"""
    cn: Pointer
    """as c0, written, optional; may be c0 in inference"""
    reserve: Pointer
    """256-byte aligned: what training keeps from pass to pass"""
    reserve_bytes: int
    dy: Pointer
    """as y"""
    dhn: Pointer
    """as h0, optional: 0"""
    dcn: Pointer
    """as c0, optional: 0"""
    dx: Pointer
    """as x, written, optional"""
    dh0: Pointer
    """as h0, written, optional"""
    dc0: Pointer
    """as c0, written, optional"""
    weight_grads: Pointer
    """host, read before the call returns: as `weights`"""
    found_inf: Pointer
    """1 float, optional: set to 1 and never cleared, see mp_epilogue_t"""
    amax: Pointer
    """1 float, optional, updated: of the gradients of weights and biases"""


class mp_embedding_desc_t(_Sized):
    """A table of vectors, and how many of them are looked up."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("dtype_dtable", c_uint32),
        ("flags", c_uint32),
        ("rows", c_int64),
        ("vocabulary", c_int32),
        ("padding_index", c_int32),
        ("width", c_int64),
        ("ld_table", c_int64),
        ("ld_out", c_int64),
        ("ld_dtable", c_int64),
    ]
    struct_size: int
    dtype: int
    """of table, out and dout"""
    dtype_dtable: int
    """of the gradient"""
    flags: int
    """mp_embedding_flags_t, or-ed"""
    rows: int
    """of out and dout, one for each index; 0 to 2^31 - 1"""
    vocabulary: int
    """rows of table and dtable, >= 1"""
    padding_index: int
    """in [0, vocabulary); without its flag it is not looked at"""
    width: int
    """elements of a row, >= 1"""
    ld_table: int
    """>= width, as the two below"""
    ld_out: int
    """of out and of dout"""
    ld_dtable: int


class mp_dropout_desc_t(_Sized):
    """Which elements are dropped, and of how many."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("count", c_int64),
        ("seed", c_uint64),
        ("p", c_float),
        ("reserved0", c_uint32),
    ]
    struct_size: int
    dtype: int
    """of x and y"""
    count: int
    """elements, >= 0"""
    seed: int
    """any number; another one for every tensor that is to have a mask of its own"""
    p: float
    """[0, 1): of the elements that become 0; the others are divided by 1 - p"""
    reserved0: int
    """must be 0"""


class mp_graph_attribute_t(Structure):
    """A named number.  Without struct_size: 16 bytes in every version."""

    _fields_ = [
        ("name", c_char_p),
        ("value", c_double),
    ]
    name: Optional[bytes]
    value: float


class mp_graph_tensor_t(_Sized):
    """What became of a tensor."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("rank", c_int32),
        ("dtype_copy", c_uint32),
        ("extent", c_int64 * 8),
        ("name", c_char_p),
        ("data", c_void_p),
        ("copy", c_void_p),
        ("grad", c_void_p),
        ("dtype_grad", c_uint32),
        ("reserved0", c_uint32),
    ]
    struct_size: int
    dtype: int
    """as it is in memory"""
    rank: int
    dtype_copy: int
    """of its cast or 16-bit copy; MP_DTYPE_NONE: it has none"""
    extent: ctypes.Array[c_int64]
    """for the batch that is set"""
    name: Optional[bytes]
    """lives as long as the graph, once that is compiled"""
    data: Pointer
    """device; NULL where it has no memory that lasts, or is not computed at all"""
    copy: Pointer
    """device: of that type; NULL as data is"""
    grad: Pointer
    """device: the gradient of a parameter, or of mp_graph_keep_gradient; else NULL"""
    dtype_grad: int
    """of grad"""
    reserved0: int
    """out: 0"""


class mp_graph_memory_t(_Sized):
    """Bytes of device memory that a compiled graph holds.  Its sum is what it has allocated, but for
    tables of its lists."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved0", c_uint32),
        ("parameters", c_int64),
        ("copies", c_int64),
        ("gradients", c_int64),
        ("states", c_int64),
        ("activations", c_int64),
        ("activations_alone", c_int64),
        ("workspace", c_int64),
    ]
    struct_size: int
    reserved0: int
    """out: 0"""
    parameters: int
    """fp32"""
    copies: int
    """of parameters, in 16 bits"""
    gradients: int
    """of parameters, and of mp_graph_keep_gradient"""
    states: int
    """of mp_graph_state, and constants"""
    activations: int
    """and their gradients: memory that they share, one after the other"""
    activations_alone: int
    """what these would need if each had its own; not in the sum"""
    workspace: int


class mp_torch_scaler_t(Structure):
    """torch.amp.GradScaler.state_dict(); the keys are the names here, but for "_growth_tracker"."""

    _fields_ = [
        ("scale", c_double),
        ("growth_factor", c_double),
        ("backoff_factor", c_double),
        ("growth_interval", c_int32),
        ("growth_tracker", c_int32),
    ]
    scale: float
    growth_factor: float
    backoff_factor: float
    growth_interval: int
    growth_tracker: int


class mp_megatron_scaler_t(Structure):
    """DynamicGradScaler.state_dict() of Megatron-LM; the keys are the names here."""

    _fields_ = [
        ("scale", c_float),
        ("growth_tracker", c_int32),
        ("hysteresis_tracker", c_int32),
    ]
    scale: float
    growth_tracker: int
    hysteresis_tracker: int
    """below 0 after more overflows than hysteresis"""


class mp_kernel_info_t(_Sized):
    """One kernel and what it makes of a problem."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("is_estimated", c_uint32),
        ("name", c_char_p),
        ("why_not", c_char_p),
        ("predicted_us", c_double),
        ("workspace_bytes", c_size_t),
    ]
    struct_size: int
    is_estimated: int
    """1: the constants behind predicted_us were never measured on this
    architecture; 0: mptune measured them"""
    name: Optional[bytes]
    """static storage, e.g. "wmma_128x128x32_s3" """
    why_not: Optional[bytes]
    """why it cannot run the problem, one clause, static storage; NULL = it can"""
    predicted_us: float
    """0 where it cannot, and of recurrent layers, which are chosen by rules"""
    workspace_bytes: int
    """that it needs; 0 where it cannot"""


def mp_context_config_default() -> mp_context_config_t:
    """device = MP_DEVICE_AUTO, the whole of it, cudaMalloc."""
    value = mp_context_config_t()
    _library.mp_context_config_init(value, ctypes.sizeof(value))
    return value


def mp_epilogue_default() -> mp_epilogue_t:
    """No function, nothing added, nothing measured."""
    value = mp_epilogue_t()
    _library.mp_epilogue_init(value, ctypes.sizeof(value))
    return value


def mp_gemm_desc_default(m: int, n: int, k: int, dtype_ab: int, dtype_cd: int) -> mp_gemm_desc_t:
    """Dense, untransposed, unbatched, alpha = 1, beta = 0; lda = k, ldb = ldc = ldd = n."""
    value = mp_gemm_desc_t()
    _library.mp_gemm_desc_init(value, ctypes.sizeof(value), m, n, k, dtype_ab, dtype_cd)
    return value


def mp_gemm_group_item_default(m: int, n: int, k: int) -> mp_gemm_group_item_t:
    """Dense, untransposed, no data yet; lda = k, ldb = ldc = ldd = n."""
    value = mp_gemm_group_item_t()
    _library.mp_gemm_group_item_init(value, ctypes.sizeof(value), m, n, k)
    return value


def mp_conv2d_desc_default(n: int, h: int, w: int, c: int, k: int, r: int, s: int, dtype: int) -> mp_conv2d_desc_t:
    """Unit stride and dilation, no padding, one group, alpha = 1, beta = 0, dtype_out = dtype."""
    value = mp_conv2d_desc_t()
    _library.mp_conv2d_desc_init(value, ctypes.sizeof(value), n, h, w, c, k, r, s, dtype)
    return value


def mp_scaler_config_default(policy: int) -> mp_scaler_config_t:
    """65536 is where torch.amp.GradScaler begins; 24 overflows in a row take S from 2^24 to 1.

        init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
        growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
        beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
        overflow_std_dev 3.0902      sigma_floor 0.5"""
    value = mp_scaler_config_t()
    _library.mp_scaler_config_init(value, ctypes.sizeof(value), policy)
    return value


def mp_scaler_state_default(config: mp_scaler_config_t) -> mp_scaler_state_t:
    """The state of a new scaler."""
    value = mp_scaler_state_t()
    _library.mp_scaler_state_init(value, ctypes.sizeof(value), config)
    return value


def mp_hyper_default(kind: int, lr: float) -> mp_hyper_t:
    """The defaults of the cited papers; weight decay where the method is about it.  lr has no sensible
    default.  trust is that of LARS; Apex's LARC has 0.02.

                  beta1   beta2   eps     others
        SGD       0.9     0       0       trust 0.001
        Adam      0.9     0.999   1e-8
        LAMB      0.9     0.999   1e-6    weight_decay 0.01
        NovoGrad  0.95    0.98    1e-8
        Adagrad   0       0       1e-10
        RMSProp   0       0.9     1e-8

    decay_power is 1; everything else is 0."""
    value = mp_hyper_t()
    _library.mp_hyper_init(value, ctypes.sizeof(value), kind, lr)
    return value


def mp_optimizer_desc_default(kind: int) -> mp_optimizer_desc_t:
    """One group, no tensors yet; flags 0, or MP_OPT_DECOUPLED_DECAY for MP_OPT_LAMB."""
    value = mp_optimizer_desc_t()
    _library.mp_optimizer_desc_init(value, ctypes.sizeof(value), kind)
    return value


def mp_model_options_default() -> mp_model_options_t:
    """To nearest, overflow clamped."""
    value = mp_model_options_t()
    _library.mp_model_options_init(value, ctypes.sizeof(value))
    return value


def mp_comm_default() -> mp_comm_t:
    """One rank, for a program that may have several: nothing is communicated."""
    value = mp_comm_t()
    _library.mp_comm_init(value, ctypes.sizeof(value))
    return value


def mp_step_options_default() -> mp_step_options_t:
    """No clipping, no reports, one rank."""
    value = mp_step_options_t()
    _library.mp_step_options_init(value, ctypes.sizeof(value))
    return value


def mp_autocast_config_default(low: int) -> mp_autocast_config_t:
    """Preset MP_AUTOCAST_DEFAULT, level MP_AUTOCAST_NORMAL, no flags and no limits."""
    value = mp_autocast_config_t()
    _library.mp_autocast_config_init(value, ctypes.sizeof(value), low)
    return value


def mp_autocast_scaler_default(low: int) -> mp_scaler_config_t:
    """The loss scaler that belongs to `low`: for MP_FP16 what TensorFlow's rewrite calls "dynamic",
    MP_SCALER_PRESET_KERAS; for MP_BF16, and where all stays MP_FP32, S = 1.
    @retval MP_ERROR_INVALID_ARGUMENT low is another type"""
    value = mp_scaler_config_t()
    _library.mp_autocast_scaler_init(value, ctypes.sizeof(value), low)
    return value


def mp_xent_desc_default(rows: int, classes: int, dtype: int) -> mp_xent_desc_t:
    """Dense rows, weight = 1, no smoothing; rows labelled -100 are ignored, which is what torch
    ignores and what its data loaders pad with.  Labels that are wrong by a slip (-1, classes) still
    show."""
    value = mp_xent_desc_t()
    _library.mp_xent_desc_init(value, ctypes.sizeof(value), rows, classes, dtype)
    return value


def mp_loss_desc_default(kind: int, count: int, dtype: int) -> mp_loss_desc_t:
    """The mean of all elements, weight = 1, target of the type of the prediction."""
    value = mp_loss_desc_t()
    _library.mp_loss_desc_init(value, ctypes.sizeof(value), kind, count, dtype)
    return value


def mp_pool2d_desc_default(mode: int, n: int, h: int, w: int, c: int, window_h: int, window_w: int, dtype: int) -> mp_pool2d_desc_t:
    """Windows side by side, without padding or dilation."""
    value = mp_pool2d_desc_t()
    _library.mp_pool2d_desc_init(value, ctypes.sizeof(value), mode, n, h, w, c, window_h, window_w, dtype)
    return value


def mp_batchnorm_desc_default(rows: int, channels: int, dtype: int) -> mp_batchnorm_desc_t:
    """epsilon = 1e-5, momentum = 0.1, no activation."""
    value = mp_batchnorm_desc_t()
    _library.mp_batchnorm_desc_init(value, ctypes.sizeof(value), rows, channels, dtype)
    return value


def mp_pointwise_desc_default(op: int, rows: int, columns: int, dtype: int) -> mp_pointwise_desc_t:
    """No activation; b is dense, and of the same type."""
    value = mp_pointwise_desc_t()
    _library.mp_pointwise_desc_init(value, ctypes.sizeof(value), op, rows, columns, dtype)
    return value


def mp_column_sum_desc_default(rows: int, columns: int, dtype: int) -> mp_column_sum_desc_t:
    """Dense rows, dtype_sum = MP_FP32, beta = 0."""
    value = mp_column_sum_desc_t()
    _library.mp_column_sum_desc_init(value, ctypes.sizeof(value), rows, columns, dtype)
    return value


def mp_rnn_desc_default(cell: int, batch: int, timesteps: int, input_size: int, hidden_size: int, dtype: int) -> mp_rnn_desc_t:
    """One layer, one direction, with biases, without dropout, clipping and flags; dense; dtype_dw = dtype.
    Batch-major tensors, [sequence][step][element], have x_step = input_size and
    x_row = timesteps x input_size."""
    value = mp_rnn_desc_t()
    _library.mp_rnn_desc_init(value, ctypes.sizeof(value), cell, batch, timesteps, input_size, hidden_size, dtype)
    return value


def mp_embedding_desc_default(rows: int, vocabulary: int, width: int, dtype: int) -> mp_embedding_desc_t:
    """Dense rows, no flags; dtype_dtable = dtype."""
    value = mp_embedding_desc_t()
    _library.mp_embedding_desc_init(value, ctypes.sizeof(value), rows, vocabulary, width, dtype)
    return value


def mp_dropout_desc_default(count: int, p: float, dtype: int) -> mp_dropout_desc_t:
    """Without a seed: 0."""
    value = mp_dropout_desc_t()
    _library.mp_dropout_desc_init(value, ctypes.sizeof(value), count, p, dtype)
    return value


def mp_scaler_config_preset(preset: int) -> mp_scaler_config_t:
    """mp_scaler_config_init(MP_SCALER_BACKOFF), with max_scale and diverged_after 0 and what `preset`
    says.
    @retval MP_ERROR_INVALID_ARGUMENT if there is no such preset"""
    value = mp_scaler_config_t()
    _library.mp_scaler_config_init_preset(value, ctypes.sizeof(value), preset)
    return value


class Library(ctypes.CDLL):
    """The shared library, each function with its types once declare() has seen it."""

    if TYPE_CHECKING:  # ctypes makes them when they are asked for

        def mp_version(self, /) -> int:
            """MP_VERSION of the library that is loaded (not of this header)."""

        def mp_build_info(self, /) -> bytes:
            """One line: version, git hash, CUDA version, compiled targets and architectures.
            Static storage.  Meant for bug reports; do not parse it."""

        def mp_status_string(self, status: int, /) -> bytes:
            """Name of the enumerator, e.g. "MP_ERROR_UNSUPPORTED".  Static storage; any int is accepted."""

        def mp_last_error(self, /) -> bytes:
            """Why the last failing call on this thread failed, in one sentence naming the
            offending argument and its value: "mp_gemm: lda = 60 is smaller than k = 64".
            Meaningful right after a call that returned an error; valid until the next
            mpcore call on this thread.  Never NULL."""

        def mp_set_log_callback(self, callback: Any, user: Pointer, level: int, /) -> None:
            """Send messages of `level` or more important to `callback`, for the whole process.
            NULL restores the default: MP_LOG_WARN and above to stderr, without returned errors, which
            mp_last_error has.  The environment variable MP_LOG=error|warn|info|debug changes the level and
            adds returned errors.  The callback may run on any thread, several at a time, and must not call
            mpcore.  If it throws a C++ exception, its line goes to stderr."""

        def mp_dtype_size(self, dtype: int, /) -> int:
            """Bytes per element; 0 for an invalid value."""

        def mp_dtype_name(self, dtype: int, /) -> bytes:
            """"fp16", "bf16", "fp32"; "none" for MP_DTYPE_NONE, "?" for an invalid value.  Static storage."""

        def mp_context_config_init(self, config: Pointer, struct_size: int, /) -> int:
            """device = MP_DEVICE_AUTO, the whole of it, cudaMalloc."""

        def mp_context_create(self, context: Pointer, config: Pointer, /) -> int:
            """Create a context.  It becomes immutable here, which is why it can be shared.
            @param config  host, optional; NULL = defaults.
            @retval MP_ERROR_ARCH_MISMATCH if this build holds no code for the device."""

        def mp_context_destroy(self, context: Handle, /) -> None:
            """Destroys a context.  Objects created from `context` must have been destroyed before.  Destroying
            the last host context ends the worker threads and frees their memory; a later context creates
            them again."""

        def mp_context_get_info(self, context: Handle, info: Pointer, /) -> int:
            """@param info  host, out; MP_INIT_STRUCT it before the call."""

        def mp_malloc(self, context: Handle, ptr: Pointer, bytes: int, /) -> int:
            """*ptr = `bytes` of device memory, 256-byte aligned, with anything in it; NULL for 0 bytes."""

        def mp_free(self, context: Handle, ptr: Pointer, /) -> None:
            """Release what mp_malloc gave, when all that the device has been given to do is done: it waits.
            NULL does nothing."""

        def mp_memcpy(self, context: Handle, dst: Pointer, src: Pointer, bytes: int, stream: Handle, /) -> int:
            """Either side may be host or device memory; they must not overlap.  Pageable host memory makes the
            copy synchronous, as in cudaMemcpyAsync."""

        def mp_memset(self, context: Handle, dst: Pointer, byte: int, bytes: int, stream: Handle, /) -> int:
            """Each of `bytes` bytes of dst, device memory, becomes `byte`."""

        def mp_stream_sync(self, context: Handle, stream: Handle, /) -> int:
            """Wait until everything enqueued on `stream` has finished."""

        def mp_cast(self, context: Handle, src: Pointer, src_dtype: int, dst: Pointer, dst_dtype: int, count: int, stream: Handle, /) -> int:
            """dst[i] = (dst_dtype) src[i].  dst may be src if the types have equal sizes; any other overlap is
            refused."""

        def mp_epilogue_init(self, epilogue: Pointer, struct_size: int, /) -> int:
            """No function, nothing added, nothing measured."""

        def mp_gemm_desc_init(self, desc: Pointer, struct_size: int, m: int, n: int, k: int, dtype_ab: int, dtype_cd: int, /) -> int:
            """Dense, untransposed, unbatched, alpha = 1, beta = 0; lda = k, ldb = ldc = ldd = n."""

        def mp_gemm_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Bytes of workspace with which mp_gemm (or mp_gemm_batched) runs its fastest kernel for
            `desc` and sums dbias fastest; often 0.  dbias, of which a descriptor says nothing, has at most
            32 MiB of it: on Hopper a 16-bit D of more than 256 MiB gains by an eighth of its own bytes,
            given in addition.  Of a kernel that desc names: what that cannot do without.

            desc->stride_* say which function is meant: with a stride that is not 0 it is mp_gemm, without
            any and with batch_count > 1 mp_gemm_batched.  A batch of one without strides may be either, and
            the bytes are enough for both; on Hopper mp_gemm_batched wants some where mp_gemm wants none.
            @param bytes  host, out."""

        def mp_gemm(self, context: Handle, desc: Pointer, A: Pointer, B: Pointer, C: Pointer, D: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Matrix product with fp32 accumulation:  D = epilogue(alpha op(A) op(B) + beta C).

            @param A  device; m x k with row stride lda (MP_OP_N), or k x m (MP_OP_T).  A and B are not read
                      when alpha == 0 (may be NULL, may hold NaN); desc->kernel plays no part then.
            @param B  device; k x n with row stride ldb (MP_OP_N), or n x k (MP_OP_T).
            @param C  device; m x n.  Not read when beta == 0 (may be NULL, may hold NaN).
            @param D  device; m x n.  May be the same matrix as C (equal ld and stride).  Any other overlap
                      with an argument is refused.  If both row strides are equal in bytes, elements are
                      compared, so D may use columns between A's rows; otherwise address ranges.
            @param epilogue   host, optional.
            @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
                              mp_gemm_workspace_size the fastest kernel that needs no more is chosen:
                              never an error, perhaps slower.

            Edge cases follow BLAS: m, n or batch_count == 0 does nothing; k == 0 and alpha == 0 compute
            epilogue(beta C), without workspace.  There is no minimum alignment: 16-byte aligned pointers
            and ld % 8 == 0 take the tensor-core path with asynchronous copies, anything else a slower one.
            For another ld or stride of A or B that is the fast one behind a copy in workspace, where this
            is predicted to pay.  If aligned operands are predicted to be a fifth faster, the two times are
            logged, once, at MP_LOG_WARN.

            Accuracy: products of fp16/bf16 are exact in fp32; they are summed in fp32 the way
            the tensor core does it, in an order fixed by (desc, alignment, workspace_bytes, device,
            MP_GEMM_TUNING), and rounded once.
            Source: Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.3.

            @retval MP_ERROR_INVALID_ARGUMENT a dimension < 0, an ld below the row length, an output that
                    overlaps another argument
            @retval MP_ERROR_UNSUPPORTED D has 2^31 or more tiles of 16 x 16, those of all items together"""

        def mp_gemm_batched(self, context: Handle, desc: Pointer, A: Pointer, B: Pointer, C: Pointer, D: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """As mp_gemm, with one pointer per batch item instead of a stride.
            @param A,B,C,D  device arrays of desc->batch_count device pointers; C is optional
                            when beta == 0.  desc->stride_* must be 0.  The arrays are read when
                            the kernel runs: keep them alive until then.  As in mp_gemm a matrix
                            needs no alignment but its element's; that one item lacks 16 bytes is
                            found out on the device, costs time and is not logged.
            The host does not see the matrices: an item of D that overlaps another matrix, except its own
            item of C, is not refused and gives wrong results.
            epilogue->aux, dbias, amax are unsupported here."""

        def mp_gemm_group_item_init(self, item: Pointer, struct_size: int, m: int, n: int, k: int, /) -> int:
            """Dense, untransposed, no data yet; lda = k, ldb = ldc = ldd = n."""

        def mp_gemm_grouped_workspace_size(self, context: Handle, desc: Pointer, count: int, items: Pointer, bytes: Pointer, /) -> int:
            """Bytes of workspace with which mp_gemm_grouped is fastest.  Shapes and ld of the items count,
            their pointers are not looked at.
            @param bytes  host, out."""

        def mp_gemm_grouped(self, context: Handle, desc: Pointer, count: int, items: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """`count` products of different shapes in one call: the experts of a layer, the weight
            gradients of a network.  Each is what mp_gemm computes:

                D = epilogue(alpha op(A) op(B) + beta C)

            The products may run at the same time, in one launch where a kernel for that exists and in one
            launch per product elsewhere (logged once at MP_LOG_WARN where the caller can change that):
            never an error, perhaps slower.  So no D may overlap any matrix of another product; A, B and C
            may be shared.  Overlaps of a D with the matrices of its own product and with the D before it in
            memory are refused; others are not looked for.

            @param desc   op, dtype, alpha and beta of all products.  m, n, k, ld* and stride_* must be 0
                          and batch_count 1: mp_gemm_desc_default(0, 0, 0, ab, cd).
            @param items  host, count elements, copied: the call can be captured into a CUDA graph, which
                          then keeps these shapes and pointers.  May be NULL when count is 0.
                          Edge cases as in mp_gemm: m or n == 0 does nothing, k == 0 computes
                          epilogue(beta C).
            @param epilogue   host, optional: scale and found_inf, shared by all products.  Everything
                              else is unsupported here and must be 0.
            @param workspace  device, 256-byte aligned, optional; see mp_gemm_grouped_workspace_size.

            An error names the product, "mp_gemm_grouped: items[3].lda = 60 is smaller than k = 64", and
            then none of them has been enqueued."""

        def mp_gemm_ragged_workspace_size(self, context: Handle, desc: Pointer, ragged: int, bytes: Pointer, /) -> int:
            """Bytes of workspace with which mp_gemm_ragged is fastest, whatever the ends are.
            @param bytes  host, out."""

        def mp_gemm_ragged(self, context: Handle, desc: Pointer, ragged: int, ends: Pointer, A: Pointer, B: Pointer, C: Pointer, D: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Products of groups whose sizes only the device knows, such as the tokens that each expert of a
            layer got.  desc->batch_count groups share the dimension `ragged`; group i has its elements from
            ends[i - 1] on (from 0 on, the first) up to and without ends[i]:

                MP_RAGGED_M:  D[rows of i] = epilogue(alpha op(A)[rows of i] op(B_i) + beta C[rows of i])
                MP_RAGGED_K:  D_i = epilogue(alpha op(A)[:, k of i] op(B)[k of i, :] + beta C_i)

            The host never reads the ends nor waits for them: the call can be captured into a CUDA graph,
            and a replay finds the ends that are there then.  What is launched does not depend on them.

            @param desc  of all groups together: in the dimension that they share, m or k is the most that
                         the ends may come to.  MP_RAGGED_M: op(A) is m x k, C and D are m x n; B_i = B + i
                         stride_b, stride_b = 0 is one B for all, and the other strides must be 0.
                         MP_RAGGED_K: op(A) is m x k, op(B) k x n; C_i = C + i stride_c, D_i = D + i
                         stride_d, and stride_a and stride_b must be 0.
            @param ends  device, desc->batch_count elements that rise (equal ones: an empty group), read
                         when the kernels run.  An end that lies before its predecessor counts as equal to
                         it, one past m or k as m or k: bad ends never read or write beyond the matrices.
            @param A,B,C,D  as in mp_gemm.  MP_RAGGED_M: rows at and past the last end are not read, and
                         those of D not written.  MP_RAGGED_K: elements of k past the last end are not read;
                         an empty group computes epilogue(beta C_i), zeros with beta = 0.
            @param epilogue   host, optional: scale, amax and found_inf, shared by all groups.  Everything
                              else is unsupported here and must be 0.
            @param workspace  device, 256-byte aligned, optional; see mp_gemm_ragged_workspace_size.

            Edge cases, alignment and accuracy as in mp_gemm; the order of a sum also depends on where in k
            its group begins.  Hopper's kernels need groups that lie one below the other in memory: op_a =
            MP_OP_N with MP_RAGGED_M, op_a = MP_OP_T and op_b = MP_OP_N with MP_RAGGED_K.  Other orders take
            WMMA's.
            Source: jax.lax.ragged_dot; torch._grouped_mm, whose offs are the ends.

            @retval MP_ERROR_INVALID_ARGUMENT a stride that must be 0 is not; D_i that overlap"""

        def mp_conv2d_desc_init(self, desc: Pointer, struct_size: int, n: int, h: int, w: int, c: int, k: int, r: int, s: int, dtype: int, /) -> int:
            """Unit stride and dilation, no padding, one group, alpha = 1, beta = 0, dtype_out = dtype."""

        def mp_conv2d_output_size(self, desc: Pointer, p: Pointer, q: Pointer, /) -> int:
            """P and Q of `desc`; 0 where the filter is larger than the padded image.
            @param p,q  host, out."""

        def mp_conv2d_workspace_size(self, context: Handle, desc: Pointer, op: int, bytes: Pointer, /) -> int:
            """Bytes of workspace with which that product runs its fastest kernel and sums dbias fastest, as
            mp_gemm_workspace_size has it; often 0.  Of a kernel that desc names: what that cannot do without.
            @param bytes  host, out."""

        def mp_conv2d_fprop(self, context: Handle, desc: Pointer, x: Pointer, filter: Pointer, y: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Forward:  y = epilogue(alpha conv(x, filter) + beta y).

            @param x,filter   device.
            @param y          device; read only when beta != 0.  Must not overlap another argument.
            @param epilogue   host, optional; sees y as a matrix of N P Q rows and K columns, so bias has K
                              elements; ld_aux 0 = K.
            @param workspace  device, 256-byte aligned, optional; less than mp_conv2d_workspace_size is
                              never an error, perhaps slower.

            An implicit GEMM: the matrix of patches (im2col) is never stored.  Accuracy as in mp_gemm.
            16-byte aligned tensors with C/groups and K/groups multiples of 8 are fastest.  Images of other
            channels in one group (RGB) are first copied with zeros behind each pixel, forward and for the
            gradient of the weights, where that is predicted to pay and the workspace has room.  A 1 x 1
            filter with stride 1 and no padding is multiplied by the kernels of mp_gemm.
            Zeros that stand for nothing, outside the image or between the strides of dgrad, may or may not
            be multiplied.  It shows only beside a non-finite weight (in wgrad: dy), as a NaN.
            Limits, beyond which MP_ERROR_UNSUPPORTED: one padded image, one image of y, the filter and the
            numbers of pixels N H W and N P Q stay below 2^30 elements; the tensors may be larger.

            Source: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014, section 3.

            @retval MP_ERROR_INVALID_ARGUMENT a number outside its range, groups that do not divide c, k
            @retval MP_ERROR_UNSUPPORTED a limit above"""

        def mp_conv2d_dgrad(self, context: Handle, desc: Pointer, dy: Pointer, filter: Pointer, dx: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Gradient of the input:  dx = epilogue(alpha conv_transpose(dy, filter) + beta dx).
            The epilogue sees dx as a matrix of N H W rows and C columns: MP_ACT_DRELU with the aux of the
            layer below gives that layer's dy, dbias its bias gradient.  Otherwise as mp_conv2d_fprop."""

        def mp_conv2d_wgrad(self, context: Handle, desc: Pointer, x: Pointer, dy: Pointer, dfilter: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Gradient of the weights:  dfilter = alpha conv(x, dy) + beta dfilter, the sum over n, p, q.
            beta = 1 accumulates over micro-batches; use dtype_out = MP_FP32 then, or small terms are lost
            to rounding.
            @param epilogue  host, optional: scale, amax and found_inf.  Everything else is unsupported here
                             and must be 0.
            Otherwise as mp_conv2d_fprop; the sum is split over blocks in a fixed order, never atomically."""

        def mp_tensor_list_create(self, list: Pointer, context: Handle, desc: Pointer, /) -> int:
            """Upload the pointer table once, so that each later call is one kernel launch however
            many tensors there are (the idea of apex multi_tensor_apply, without its per-call
            packing of metadata into kernel arguments)."""

        def mp_tensor_list_destroy(self, list: Handle, /) -> None:
            """The tensors stay; optimizers made from the list must be gone."""

        def mp_tensor_list_set_data(self, list: Handle, data: Pointer, stream: Handle, /) -> int:
            """Point the list at other buffers of the same sizes, in stream order: for frameworks
            that allocate new gradients each step.  Do not capture into a graph.
            @param data  host, count device pointers."""

        def mp_tensor_list_get(self, list: Handle, index: int, data: Pointer, numel: Pointer, dtype: Pointer, /) -> int:
            """One tensor of the list, as it is now.
            @param data,numel,dtype  host, out, each optional; data is a device address.
            @retval MP_ERROR_NOT_FOUND the list has no tensor of this index"""

        def mp_check_nonfinite(self, list: Handle, found_inf: Pointer, stream: Handle, /) -> int:
            """Set *found_inf to 1 if any element is NaN or infinite.  Never clears it, so several
            lists can share one flag.  A float rather than an int so that it can be all-reduced
            with the gradients.
            @param found_inf  device, 1 float."""

        def mp_amax(self, list: Handle, amax: Pointer, per_tensor: Pointer, stream: Handle, /) -> int:
            """Largest absolute value; NaN if any element is NaN (fmaxf would lose it).
            @param amax        device, 1 float, optional; 0 for an empty list.
            @param per_tensor  device, count floats, optional."""

        def mp_l2norm(self, list: Handle, norm: Pointer, per_tensor: Pointer, stream: Handle, /) -> int:
            """sqrt(sum x^2), over the list and per tensor.  Squares are summed in fp32 inside a chunk of
            16384 elements and in fp64 across chunks, in a fixed order, without atomics: bitwise
            reproducible.  A chunk whose largest |x| is below 2^-40, or 2^56 or more, is read twice and
            summed with a power of two as factor: the norm is infinite only if it exceeds fp32.
            @param norm        device, 1 float, optional.
            @param per_tensor  device, count floats, optional."""

        def mp_inspect(self, list: Handle, report: Pointer, tensor_reports: Pointer, stream: Handle, /) -> int:
            """Look at every element once, and report: what overflowed, and what is about to underflow.
            mp_scale_step reports on its gradients without a pass more (mp_step_options_t).
            @param report          device, 1 report, optional: of the list.
            @param tensor_reports  device, count reports, optional: of each tensor."""

        def mp_tensor_stats(self, list: Handle, outputs: Pointer, stream: Handle, /) -> int:
            """Several of the four above in one pass over the elements: the same results, bit by bit.
            @param outputs  host; at least one of its pointers is set."""

        def mp_unscale(self, in_: Handle, out: Handle, inv_scale: Pointer, found_inf: Pointer, stream: Handle, /) -> int:
            """out = in * *inv_scale, setting *found_inf as mp_check_nonfinite does on `in`, and if a product
            overflows fp32.
            @param in,out     lists of equal shapes; types may differ (fp16 grads -> fp32 grads);
                              out == in is allowed.
            @param inv_scale  device, 1 float."""

        def mp_clip_factor(self, context: Handle, scaled_norm: Pointer, inv_scale: Pointer, max_norm: float, grad_scale: Pointer, stream: Handle, /) -> int:
            """The factor that unscales and clips at once:

                *grad_scale = *inv_scale * min(1, max_norm / (*inv_scale * *scaled_norm + 1e-6))
            Source: Pascanu et al., On the difficulty of training RNNs, ICML 2013, algorithm 1;
            the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
            @param scaled_norm  device, 1 float: norm of the gradients before unscaling."""

        def mp_scaler_config_init(self, config: Pointer, struct_size: int, policy: int, /) -> int:
            """65536 is where torch.amp.GradScaler begins; 24 overflows in a row take S from 2^24 to 1.

                init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
                growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
                beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
                overflow_std_dev 3.0902      sigma_floor 0.5"""

        def mp_scaler_state_init(self, state: Pointer, struct_size: int, config: Pointer, /) -> int:
            """The state of a new scaler."""

        def mp_scaler_create(self, scaler: Pointer, context: Handle, config: Pointer, /) -> int:
            """The scaler allocates nothing after this.  A program may have several, one per loss; several
            optimizers may share one, see MP_STEP_KEEP_SCALER."""

        def mp_scaler_destroy(self, scaler: Handle, /) -> None:
            """Optimizers do not keep it.  No effect on the scaler of mp_optimizer_get_scaler."""

        def mp_scaler_scale(self, scaler: Handle, /) -> Optional[int]:
            """Device address of S, constant for the life of the scaler."""

        def mp_scaler_inv_scale(self, scaler: Handle, /) -> Optional[int]:
            """Device address of 1/S, constant for the life of the scaler."""

        def mp_scaler_found_inf(self, scaler: Handle, /) -> Optional[int]:
            """Device address of the scaler's own sticky overflow flag, which mp_scaler_update clears; constant
            for the life of the scaler."""

        def mp_scale_loss(self, scaler: Handle, loss: Pointer, out: Pointer, dtype: int, count: int, stream: Handle, /) -> int:
            """out[i] = loss[i] * S, before the backward pass.  out == loss is allowed."""

        def mp_scaler_update(self, scaler: Handle, amax: Pointer, stream: Handle, /) -> int:
            """Apply the policy once, from mp_scaler_found_inf and *amax; then clear the flag.
            mp_scale_step does this itself.
            @param amax  device, 1 float: largest gradient as measured, still multiplied by S and
                         before any clipping; infinity or NaN counts as an overflow even where the
                         flag is 0.  Taken together with what steps with MP_STEP_KEEP_SCALER and
                         mp_grads_accumulate have measured.  Lognormal and logmax learn from it, and need it
                         unless there were such calls.  Else optional: it tells NaN from infinity."""

        def mp_scaler_get_state_sync(self, scaler: Handle, state: Pointer, stream: Handle, /) -> int:
            """Copy the state to the host; waits for `stream`."""

        def mp_scaler_set_state_sync(self, scaler: Handle, state: Pointer, stream: Handle, /) -> int:
            """Copy a state from the host; waits for `stream`.  Restoring a saved state and repeating the steps
            gives bitwise the same scales.  Restoring empties the history, clears the flag, and forgets what amax
            has been kept since the last update: they are of steps that are given up.
            @retval MP_ERROR_INVALID_ARGUMENT no scaler of this config can be in that state.  In particular:
                    another policy; a scale outside [min_scale, max_scale], which NaN is (logmax);
                    growth_tracker >= growth_interval or hysteresis_left > hysteresis, as after lowering
                    those: then set growth_tracker to 0 and hysteresis_left to hysteresis; a head-room below
                    0; statistics that are not finite, or of lognormal no means of log2 of a float; more
                    steps skipped than taken, more of them with a NaN or in a row than at all, skips that
                    are not the sum of their causes; counts beyond 2^52"""

        def mp_scaler_get_history_sync(self, scaler: Handle, capacity: int, scales: Pointer, skipped: Pointer, count: Pointer, stream: Handle, /) -> int:
            """The last updates, oldest first, for a plot; waits for `stream`.
            @param capacity  elements of the arrays; where fewer than there are, the newest are given
            @param scales    host, optional: S with which the step was taken
            @param skipped   host, optional: 0 = taken, 1 = overflowed, 2 = overflowed with amax = NaN,
                             MP_STEP_RANGE, MP_STEP_NO_SCALE; not values of mp_step_outcome_t otherwise
            @param count     host: elements written, at most config.history"""

        def mp_hyper_init(self, hyper: Pointer, struct_size: int, kind: int, lr: float, /) -> int:
            """The defaults of the cited papers; weight decay where the method is about it.  lr has no sensible
            default.  trust is that of LARS; Apex's LARC has 0.02.

                          beta1   beta2   eps     others
                SGD       0.9     0       0       trust 0.001
                Adam      0.9     0.999   1e-8
                LAMB      0.9     0.999   1e-6    weight_decay 0.01
                NovoGrad  0.95    0.98    1e-8
                Adagrad   0       0       1e-10
                RMSProp   0       0.9     1e-8

            decay_power is 1; everything else is 0."""

        def mp_optimizer_desc_init(self, desc: Pointer, struct_size: int, kind: int, /) -> int:
            """One group, no tensors yet; flags 0, or MP_OPT_DECOUPLED_DECAY for MP_OPT_LAMB."""

        def mp_optimizer_desc_from_name(self, name: Optional[bytes], desc: Pointer, desc_size: int, hyper: Pointer, hyper_size: int, lr: float, /) -> int:
            """Sets desc to the method that a name stands for, with one group: hyper, with its defaults.
            Case is ignored.

                "sgd", "adam", "lamb", "novograd", "adagrad", "rmsprop"   mp_optimizer_kind_t
                "adamw"   MP_OPT_ADAM with MP_OPT_DECOUPLED_DECAY and weight_decay 0.01, as in torch

            @param name   host.
            @param desc   host, out, desc_size bytes: desc->groups is hyper.  Zeros after an error.
            @param hyper  host, out, hyper_size bytes: must live until mp_optimizer_create.
            @retval MP_ERROR_NOT_FOUND the name is unknown"""

        def mp_optimizer_create(self, optimizer: Pointer, context: Handle, desc: Pointer, /) -> int:
            """Uploads the hyperparameters and allocates the scratch memory of all later steps, and m and v if
            the descriptor has none."""

        def mp_optimizer_destroy(self, optimizer: Handle, /) -> None:
            """Frees what mp_optimizer_create has allocated; lists and tensors of the caller stay."""

        def mp_optimizer_moments(self, optimizer: Handle, m: Pointer, v: Pointer, /) -> int:
            """The lists m and v, of the descriptor or allocated (mp_tensor_list_get has their addresses); they
            live as long as the optimizer.
            @param m,v  host, out, each optional: NULL if the optimizer has none."""

        def mp_optimizer_set_hyper(self, optimizer: Handle, group: int, hyper: Pointer, stream: Handle, /) -> int:
            """Replace the hyperparameters of one group, in stream order.
            They live on the device: a captured graph picks up the new values when replayed.
            @retval MP_ERROR_INVALID_ARGUMENT also for a max_tensor_norm where no group had one when the
                    optimizer was created: a step would need another launch"""

        def mp_optimizer_step(self, optimizer: Handle, grad_scale: Pointer, found_inf: Pointer, stream: Handle, /) -> int:
            """One update of master, m, v and model, in one kernel, however many tensors there are.  LAMB,
            NovoGrad, LARC and LARS measure the tensors in another one before it, max_tensor_norm the
            gradients in one more (not in mp_scale_step, which measures them anyway).
            An element of which the new weight or moment is not finite keeps its old weight and moments.
            @param grad_scale  device, 1 float multiplied into every gradient, e.g. 1/S; NULL = 1.
                               Infinity or NaN skips the update as found_inf does.
            @param found_inf   device, 1 float; if nonzero when the kernel runs, nothing at all
                               is written and t does not advance.  NULL = always update.

            The decision is taken on the device; the host does not learn of it (and must not ask,
            or the GPU idles once per step).
            Source of master weights: Micikevicius et al. 2018, section 3.1."""

        def mp_model_options_init(self, options: Pointer, struct_size: int, /) -> int:
            """To nearest, overflow clamped."""

        def mp_masters_to_model(self, master: Handle, model: Handle, found_inf: Pointer, options: Pointer, stream: Handle, /) -> int:
            """model = round(master): the copy that an optimizer step writes, for a program that updates its
            fp32 weights itself.  Bit for bit the same copy.
            @param master     MP_FP32; read.
            @param model      MP_FP16/MP_BF16, parallel to master; written.  A NULL data pointer: that
                              parameter has no 16-bit copy.
            @param found_inf  device, 1 float, optional; if nonzero when the kernel runs, nothing is
                              written: a skipped step leaves the copy as it leaves the weights.
            @param options    host, optional; NULL = the defaults."""

        def mp_optimizer_lr(self, optimizer: Handle, /) -> Optional[int]:
            """The learning rates that the latest applied step used, before lr_multipliers.
            @return device, num_groups floats, 0 before the first step; they live as long as the optimizer.
                    NULL if optimizer is NULL"""

        def mp_optimizer_regularization(self, optimizer: Handle, loss: Pointer, stream: Handle, /) -> int:
            """What l1 and l2 add to the loss, of the master weights as they are now:

                sum over tensors of (their decay multiplier) (l1 sum |w| + l2 sum w^2)
            in fp32 within a chunk and fp64 across, in a fixed order, as mp_l2norm.  In one kernel.
            @param loss  device, 1 float."""

        def mp_optimizer_get_scaler(self, optimizer: Handle, /) -> Optional[int]:
            """The scaler that mp_scale_step uses if none is passed: static, S = 1, diverged_after 100.  It
            counts their skips and answers mp_step_query, so that bf16 training does not create a scaler.
            @return lives as long as the optimizer, which owns it; NULL if optimizer is NULL"""

        def mp_optimizer_step_counter(self, optimizer: Handle, /) -> Optional[int]:
            """Device address of the step counter t, which each applied step increases by 1; constant for the
            life of the optimizer.  NULL if optimizer is NULL."""

        def mp_optimizer_write_model(self, optimizer: Handle, stream: Handle, /) -> int:
            """model = round(master), bit for bit as in the step that increased t to its value: with the flags
            and the rounding_seed of the optimizer.  For masters that the caller has loaded;
            mp_optimizer_restore_sync calls it.  (mp_cast differs: it makes overflows infinite, and never
            rounds at random.)  Without a list model there is nothing to do."""

        def mp_optimizer_checkpoint_size(self, optimizer: Handle, scaler: Handle, bytes: Pointer, /) -> int:
            """Bytes of a checkpoint: master, m, v, t, and the state of the scaler.
            @param scaler  optional; NULL: that of mp_optimizer_get_scaler.
            @param bytes   host, out."""

        def mp_optimizer_save_sync(self, optimizer: Handle, scaler: Handle, checkpoint: Pointer, bytes: int, stream: Handle, /) -> int:
            """Writes a checkpoint into memory of the host; waits for `stream`.  Numbers are little-endian, and
            later versions read it.  Not part of it: hyperparameters, the states of a graph (running
            statistics), offsets of dropout, and the position in the data.
            @param scaler      the scaler given to mp_scale_step: the state of another one is not saved.
                               NULL: that of mp_optimizer_get_scaler.
            @param checkpoint  host, out.
            @param bytes       room, at least mp_optimizer_checkpoint_size.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL there is less room"""

        def mp_optimizer_restore_sync(self, optimizer: Handle, scaler: Handle, checkpoint: Pointer, bytes: int, stream: Handle, /) -> int:
            """Restores master, m, v, t and the scaler, then writes model as mp_optimizer_write_model does: the
            training goes on bit for bit, given the same descriptor and data.  Waits for `stream`.
            @param scaler      as when it was saved, under the rules of mp_scaler_set_state_sync.
            @param checkpoint  host, any alignment.
            @param bytes       exactly as many as were saved.
            @retval MP_ERROR_INVALID_ARGUMENT no checkpoint, or that of other tensors, of another kind or
                    scaler; nothing has been written"""

        def mp_optimizer_get_step_sync(self, optimizer: Handle, t: Pointer, stream: Handle, /) -> int:
            """The step counter t; waits for `stream`."""

        def mp_optimizer_set_step_sync(self, optimizer: Handle, t: int, stream: Handle, /) -> int:
            """Sets t, e.g. from a checkpoint of another format; call mp_optimizer_write_model after it.
            Waits for `stream`.
            @param t  in [0, 2^52]"""

        def mp_comm_init(self, comm: Pointer, struct_size: int, /) -> int:
            """One rank, for a program that may have several: nothing is communicated."""

        def mp_comm_init_nccl(self, comm: Pointer, nccl_comm: Pointer, /) -> int:
            """Fill `comm` from a communicator.  libnccl.so.2 is looked up with dlopen in this call; without it
            there is no dependency on NCCL.  The codes of its callbacks are those of ncclResult_t.
            @param comm       host, out; MP_INIT_STRUCT it before the call.
            @param nccl_comm  an ncclComm_t, blocking (with a nonblocking one the code of "in progress" is
                              taken for a failure); must outlive the calls that get *comm.
            @retval MP_ERROR_NOT_FOUND if NCCL cannot be loaded
            @retval MP_ERROR_COMM if it does not tell rank or size of nccl_comm"""

        def mp_grad_all_reduce(self, grads: Handle, comm: Pointer, pre: float, post: float, stream: Handle, /) -> int:
            """grads = post * sum over ranks (pre * grads), in place and in the gradients' own types, every
            product rounded.  pre = 1 / world_size, post = 1 averages without overflow, but what is small may
            underflow; pre = 1, post = 1 / world_size the reverse; both 1 / sqrt(world_size) is in between.
            A factor of 1 costs nothing, any other one pass over the gradients.  With a power of two, ranks with
            equal gradients get these back, bit for bit, unless they under- or overflow on the way.

            One all_reduce per tensor that is not empty, in the order of the list, in one batch: NCCL makes
            one launch of it.  Neighbours in memory are not joined, for the ranks' addresses may differ;
            a list of one tensor over all of them (one buffer for all gradients) does that.

            The gradients may still be multiplied by S.  Infinity and NaN survive the sum, and then every
            rank sees them; see mp_step_options.comm for what else must agree.
            @param pre,post   > 0, finite.
            @retval MP_ERROR_COMM a callback failed: some gradients may have been summed and others not, and all
                    have been multiplied by pre"""

        def mp_step_options_init(self, options: Pointer, struct_size: int, /) -> int:
            """No clipping, no reports, one rank."""

        def mp_scale_step(self, optimizer: Handle, scaler: Handle, options: Pointer, stream: Handle, /) -> int:
            """Everything between backward and the next forward:

                1. found_inf |= any non-finite gradient;  norm, amax  one pass over the gradients
                2. found_inf, NaN and amax become those of all ranks, with MP_STEP_SHARDED also the
                   norm                                                       only with comm
                3. if the outcome is MP_STEP_TAKEN:
                       g = gradient / S, clipped;  optimizer update of master;
                       model = round(master);  t += 1                         second pass
                4. S follows its policy;  found_inf is cleared;  not with MP_STEP_KEEP_SCALER

            Finite gradients, weights and moments stay finite.  Norms do not overflow.  A step in which a
            square of a gradient could overflow is skipped (MP_STEP_RANGE).  An element of which the new
            weight or moment is not finite keeps its old weight and moments, as it does for an infinite
            extra gradient; mp_step_options.rejected_updates counts it.

            found_inf is the scaler's own flag (mp_scaler_found_inf): a GEMM epilogue that saw an
            overflowing activation gradient may have set it before.

            All on the device, with no host synchronisation.  Bitwise equal to calling
            mp_check_nonfinite, mp_l2norm, mp_amax, mp_clip_factor, mp_optimizer_step,
            mp_scaler_update in that order; it only saves launches and memory traffic.  Two passes
            are the minimum: no weight may change before the last gradient has been inspected
            (MP_STEP_CHECKED: it has been).

            With MP_SCALER_STATIC an overflowing step is skipped too.

            Ranks: gradients that went through mp_grad_all_reduce are the same everywhere, but a flag
            raised by an epilogue is not, nor is the amax of a sharded optimizer.  2 is one all_reduce of 3
            floats (max) and, with MP_STEP_SHARDED, one of 3 floats (sum), in one batch, between two small
            kernels.  Causes of a skip travel as a code, so that no maximum meets a NaN.  The sums are
            those of squares in fp32: large, small and other ones apart, each with a power of two as factor.

            @param scaler   optional; NULL = the optimizer's own static scaler, S = 1 (bf16):
                            mp_optimizer_get_scaler.
            @param options  host, optional; NULL = no clipping, one rank.
            @retval MP_ERROR_INVALID_ARGUMENT if optimizer and scaler belong to different contexts
            @retval MP_ERROR_COMM a callback of options->comm failed: nothing has been updated, S
                    included, but the scaler's flag is up if a gradient is not
                    finite.  Other ranks may have taken the step"""

        def mp_grads_accumulate(self, scaler: Handle, grads: Handle, sums: Handle, weight: float, flags: int, stream: Handle, /) -> int:
            """sums += weight / S * grads, or with MP_ACCUMULATE_FIRST  sums = weight / S * grads; in fp32, with
            the S of the moment, one rounding of weight / S and one of each sum.  In one pass.

            Raises the scaler's flag for a gradient that is not finite, or whose product with weight / S is
            not, and keeps the largest |gradient|,
            still multiplied by S and without the weight, for the scaler's next update.  The overflow
            stays in the sums too, as infinity or NaN, until the next MP_ACCUMULATE_FIRST: one bad
            micro-batch discards its window whatever becomes of the flag.

            Accumulation over k micro-batches; `sums` are the optimizer's grads:

                for (int i = 0; i < k; i++) {
                  const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
                  forward_and_backward(i);
                  mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
                }
                options.flags = MP_STEP_UNSCALED;
                mp_scale_step(optimizer, scaler, &options, stream);

            (With several ranks, mp_grad_all_reduce of the sums comes before the step, which has options.comm.)
            S stays as it is within such a window.  It may also follow its policy after each micro-batch, so
            that the rest of a discarded window has a smaller S already.  mp_scaler_state and mp_step_query
            count micro-batches then; that the window was discarded, options.found_inf says in both forms:

                for (int i = 0; i < k; i++) {
                  const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
                  forward_and_backward(i);
                  mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
                  mp_scaler_update(scaler, NULL, stream);
                }
                mp_scale_step(optimizer, NULL, &options, stream);

            @param grads   any types; sums == grads is allowed for MP_FP32 gradients.
            @param sums    MP_FP32, parallel to grads.
            @param weight  finite; 1, 1/k, a task weight.  0 adds nothing, but an overflow is still noticed.
            @param flags   mp_accumulate_flags_t, or-ed."""

        def mp_grads_to_fp32(self, scaler: Handle, grads: Handle, out: Handle, stream: Handle, /) -> int:
            """out = grads / S in fp32, checked for overflow, in one pass: mp_grads_accumulate of weight 1 with
            both flags.  The first half of a step with an optimizer of the host program, which updates
            fp32 master weights however it likes:

                const float *found_inf = mp_scaler_found_inf(scaler);
                mp_grads_to_fp32(scaler, grads, grads32, stream);
                my_optimizer(found_inf); // masters and grads32; does nothing where *found_inf is not 0
                mp_masters_to_model(masters, models, found_inf, NULL, stream);
                mp_scaler_update(scaler, NULL, stream);

            That optimizer runs on the device and reads the flag there.  An optimizer on the host, or one that knows
            of no flag, is started by the host, which polls mp_step_query; what else has been enqueued goes
            on meanwhile.  n is mp_scaler_state.steps + 1:

                mp_step_outcome_t outcome = MP_STEP_PENDING;
                mp_grads_to_fp32(scaler, grads, grads32, stream);
                while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n, &outcome);
                if (outcome == MP_STEP_TAKEN) {
                  my_host_optimizer();
                  mp_masters_to_model(masters, models, NULL, NULL, stream);
                }
                mp_scaler_update(scaler, NULL, stream);

            @param grads  any types; out == grads is allowed for MP_FP32 gradients.
            @param out    MP_FP32, parallel to grads."""

        def mp_step_query(self, scaler: Handle, step: int, outcome: Pointer, /) -> int:
            """What became of a step, from what the device has written into memory of the host.  Neither waits
            nor enqueues; any thread may ask at any time, also while another one works with the scaler.

            The queue does not run dry if a step is asked for while it still holds work of the next one:

                for (int64_t n = 1; n <= steps; n++) {
                  mp_step_outcome_t outcome = n > 1 ? MP_STEP_PENDING : MP_STEP_SKIPPED;
                  forward_and_backward(n); // enqueued; step n - 1 is done long before this is
                  while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n - 1, &outcome);
                  if (outcome == MP_STEP_TAKEN) my_learning_rate_advances();
                  mp_scale_step(optimizer, scaler, NULL, stream);
                }

            A skipped step is logged at MP_LOG_INFO with its cause, once; not if a later one was logged
            before.  The line has S before it and, unless the query comes before the update, after it.

            @param step     >= 1, counted as in mp_scaler_state.steps: the update that makes steps n is step
                            n, also after restoring a state and in a replayed graph.  Its outcome is known
                            at the end of the mp_scale_step or mp_scaler_update that counts it (those with
                            MP_STEP_KEEP_SCALER do not), or after MP_ACCUMULATE_LAST.
            @param outcome  host, out.
            @retval MP_ERROR_NOT_FOUND the step lies MP_STEP_QUERY_DEPTH or more back, or before the state
                    that was restored"""

        def mp_autocast_config_init(self, config: Pointer, struct_size: int, low: int, /) -> int:
            """Preset MP_AUTOCAST_DEFAULT, level MP_AUTOCAST_NORMAL, no flags and no limits."""

        def mp_autocast_scaler_init(self, config: Pointer, struct_size: int, low: int, /) -> int:
            """The loss scaler that belongs to `low`: for MP_FP16 what TensorFlow's rewrite calls "dynamic",
            MP_SCALER_PRESET_KERAS; for MP_BF16, and where all stays MP_FP32, S = 1.
            @retval MP_ERROR_INVALID_ARGUMENT low is another type"""

        def mp_autocast_create(self, policy: Pointer, config: Pointer, /) -> int:
            """Unless MP_AUTOCAST_NO_ENVIRONMENT is set, the environment is read here.  It wins over `config` and
            loses to mp_autocast_set_class and mp_autocast_set_nodes.

                MP_AUTOCAST=off|fp16|bf16
                MP_AUTOCAST_LEVEL=normal|infer_as_deny|tensor_cores_only|force_all
                MP_AUTOCAST_ALLOW_ADD, _ALLOW_REMOVE, and so for INFER, DENY, CLEAR =Op,Op
                MP_AUTOCAST_IGNORE_PERFORMANCE=1
                MP_AUTOCAST_LOG=folder       every rewrite leaves its lists, its report and two pictures there

            With the presets of TensorFlow the variables TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ of the same
            meaning (LEVEL, ALLOWLIST_ADD, WHITELIST_ADD, ..., IGNORE_PERFORMANCE, LOG_PATH) are read first.

            @param config  host, optional; NULL = mp_autocast_config_default(MP_FP16).
            @retval MP_ERROR_INVALID_ARGUMENT a variable has another value, or adds an operation that is in
                    another list and is not removed there"""

        def mp_autocast_destroy(self, policy: Handle, /) -> None:
            ...

        def mp_autocast_set_class(self, policy: Handle, op_types: Pointer, count: int, op_class: int, /) -> int:
            """Put operations into a class, out of the one that they are in.
            @param op_types  host, `count` names, any but NULL; copied.
            @retval MP_ERROR_INVALID_ARGUMENT also where the policy has been used"""

        def mp_autocast_set_nodes(self, policy: Handle, pattern: Optional[bytes], node_class: int, /) -> int:
            """Give nodes a class by their name, whatever their operation; where several patterns match, the one
            that was set last wins.  `encoder/` in 16 bits, `decoder/` in fp32.
            @param pattern  host, copied.  * is any text, ? any character, [a-z] one of these, [!a-z] none of
                            these, as in a shell; * also matches "/".
            @retval MP_ERROR_INVALID_ARGUMENT also where the policy has been used, or a [ is not closed"""

        def mp_autocast_class(self, policy: Handle, op_type: Optional[bytes], /) -> int:
            """The class of an operation before the level is applied.  Names are case-sensitive.
            MP_CAST_UNLISTED for an unknown one, for NULL, and without a policy; with MP_AUTOCAST_PYTORCH an
            unknown one is MP_CAST_CLEAR."""

        def mp_autocast_gate(self, policy: Handle, context: Handle, closed_because: Pointer, /) -> int:
            """Whether 16 bits are worth it on a device.  fp16 needs Tensor Cores, sm_70; bf16 needs sm_80; the
            host target has no faster 16-bit arithmetic.  It is a question of speed, so a closed gate is no
            error: a rewrite then changes nothing, and the log has one warning.
            @param context         optional; NULL: any device, so only the environment can close it.
            @param closed_because  host, out: one clause in static storage; NULL = open."""

        def mp_autocast_rewrite(self, policy: Handle, context: Handle, graph: Pointer, result: Pointer, /) -> int:
            """Which nodes run in 16 bits, and the casts between.
            @param context  optional: the gate is that of its device; NULL = none.
            @param graph    host.
            @param result   host, out.
            @retval MP_ERROR_INVALID_ARGUMENT something is out of range, named with its array and index; or
                    MP_AUTOCAST_FORCE_ALL with MP_BF16"""

        def mp_autocast_explain(self, policy: Handle, graph: Pointer, result: Pointer, form: int, text: Pointer, bytes: Pointer, /) -> int:
            """The report on a rewrite.
            @param graph   host, as it was rewritten.
            @param result  host: of its rewrite.  Its arrays are not read.
            @param text    host, optional, out: NUL-terminated.
            @param bytes   host.  In: room in text.  Out: what is needed, the NUL included.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL text has less room"""

        def mp_autocast_op(self, policy: Handle, op_type: Optional[bytes], input_dtype: Pointer, count: int, cast_to: Pointer, output: Pointer, /) -> int:
            """One operation without a graph, for hosts that execute as they go.

                MP_CAST_ALLOW        every input low; the output too
                MP_CAST_DENY         every input fp32; the output too
                otherwise            inputs of one type stay as they are; of several types, all become fp32

            An input that is MP_DTYPE_NONE, an integer or fp64, is left alone.  Gate and level do not count
            here, but for MP_AUTOCAST=off, which leaves everything alone.

            @param input_dtype  host, `count` of mp_dtype_t; NULL for 0.
            @param cast_to      host, out, as many: mp_dtype_t; MP_DTYPE_NONE = leave.
            @param output       host, out: what the output is; MP_DTYPE_NONE where no input is of a type.
            @retval MP_ERROR_UNSUPPORTED the operation is banned; mp_last_error says what to use instead"""

        def mp_xent_desc_init(self, desc: Pointer, struct_size: int, rows: int, classes: int, dtype: int, /) -> int:
            """Dense rows, weight = 1, no smoothing; rows labelled -100 are ignored, which is what torch
            ignores and what its data loaders pad with.  Labels that are wrong by a slip (-1, classes) still
            show."""

        def mp_softmax_xent(self, context: Handle, desc: Pointer, logits: Pointer, labels: Pointer, loss_scale: Pointer, row_loss: Pointer, loss: Pointer, correct: Pointer, dlogits: Pointer, stream: Handle, /) -> int:
            """Softmax cross-entropy and its gradient, in fp32 whatever the type of the logits:

                p = softmax(logits[i])
                q[j] = (1 - label_smoothing) (j == labels[i]) + label_smoothing / classes
                row_loss[i] = -weight sum_j q[j] log p[j]
                loss = sum_i row_loss[i] / counted
                dlogits[i][j] = S weight / counted (p[j] - q[j])

            A row with the ignored label has loss 0 and a gradient of zeros, whatever its logits, which are
            not read; it is not correct either.  `counted` is the number of the other rows, counted on the
            device. If it is 0, loss is NaN, the mean of nothing, and the gradient is 0 (both as in
            torch).  It is counted per call: the mean of several calls, of ranks or accumulated, is that
            over all rows only where each counts as many.

            Every other label outside [0, classes) makes the loss and the gradient of its row NaN, so that
            the step is skipped and the mistake shows; the host cannot check labels without waiting.

            A class with the logit -infinity is masked: p = 0.  With smoothing it makes the loss infinite,
            as the formula says, for its q is not 0; so does a masked label.  The gradient stays finite.  A
            weight of 0 makes row_loss and dlogits 0, even if the loss is infinite; NaN is preserved.

            The gradient of the label is computed from the exponentials of the other classes, and the loss
            of a row whose label is its largest logit as log(1 + their sum): both keep their relative
            accuracy where the label has nearly all of the probability.

            The bits of a row depend on its values, on type and number of its classes, on how many rows
            count and on its address modulo 16; not on the size of the device.

            @param logits      device, rows x classes.
            @param labels      device, rows integers.
            @param loss_scale  device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
            @param row_loss    device, rows floats, written; not multiplied by S.
            @param loss        device, 1 float, optional, written; NaN when rows is 0.
            @param correct     device, 1 integer, optional: increased by the number of rows whose
                               largest logit (the first, among equals) is the label's.  Clear it first.
            @param dlogits     device, rows x classes, optional; may be the same matrix as logits
                               (equal ld).  NULL = forward only.
            Source: Micikevicius et al. 2018, section 3.3 (softmax and loss in fp32), 3.2 (loss scale);
            Szegedy et al., Rethinking the Inception Architecture, 2016, section 7 (label smoothing)."""

        def mp_loss_desc_init(self, desc: Pointer, struct_size: int, kind: int, count: int, dtype: int, /) -> int:
            """The mean of all elements, weight = 1, target of the type of the prediction."""

        def mp_loss_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Bytes of workspace that mp_loss needs: at most 16 KiB, 0 for no elements.
            @param bytes  host, out."""

        def mp_loss(self, context: Handle, desc: Pointer, prediction: Pointer, target: Pointer, weights: Pointer, loss_scale: Pointer, element_loss: Pointer, loss: Pointer, dprediction: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Mean squared error, mean absolute error, or binary cross-entropy, and the gradient of each, in
            fp32:

                element_loss[i] = weight weights[i] l(x[i], t[i])
                loss = sum_i element_loss[i] / divisor
                dprediction[i] = S weight weights[i] / divisor dl/dx(x[i], t[i])

            With MP_LOSS_MEAN the divisor is the number of elements that count, whatever their weights are,
            as in torch.  An ignored element has loss 0 and gradient 0 and does not count; one whose
            weights[i] is 0 has both too, whatever its prediction is, and counts.  If none counts, the mean
            is NaN.  A weight of 0 makes element_loss and dprediction 0, even if the loss is infinite; NaN
            is preserved.

            A NaN makes loss and gradient of its element NaN.  An infinite prediction, as fp16 makes it of
            an overflow, makes the gradient infinite or NaN, so that the step is skipped; but a logit of
            -infinity is a masked one, as in mp_softmax_xent: the probability is 0 and the gradient -t.
            Logits lose nothing in confident elements: loss and gradient keep their relative accuracy for t
            = 0 and 1.

            The order of the sum, in fp64, depends on count alone.

            @param prediction    device, count elements.
            @param target        device, count elements.
            @param weights       device, count floats, optional: NULL = 1.
            @param loss_scale    device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
            @param element_loss  device, count floats, optional, written; not multiplied by S.
            @param loss          device, 1 float, optional, written; not multiplied by S.
            @param dprediction   device, count elements, optional; may be prediction.  NULL = forward only.
            @param workspace     device, 256-byte aligned; mp_loss_workspace_size bytes.
            Source: torch.nn.MSELoss, L1Loss, BCEWithLogitsLoss; Micikevicius et al. 2018, sections 3.2,
                    3.3.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed"""

        def mp_nchw_to_nhwc(self, context: Handle, n: int, c: int, h: int, w: int, src: Pointer, src_dtype: int, dst: Pointer, dst_dtype: int, stream: Handle, /) -> int:
            """Images from N C H W to N H W C, the layout of convolutions and of everything here.
            Converts the type on the way, as mp_cast does.

            @param n,c,h,w     >= 0, in this order for both; where one is 0 there is nothing to do.
            @param src         device, dense, n c h w elements.
            @param dst         device, dense, as many; must not overlap src."""

        def mp_nhwc_to_nchw(self, context: Handle, n: int, c: int, h: int, w: int, src: Pointer, src_dtype: int, dst: Pointer, dst_dtype: int, stream: Handle, /) -> int:
            """The way back: images from N H W C to N C H W.  n, c, h, w are in this order here too."""

        def mp_pool2d_desc_init(self, desc: Pointer, struct_size: int, mode: int, n: int, h: int, w: int, c: int, window_h: int, window_w: int, dtype: int, /) -> int:
            """Windows side by side, without padding or dilation."""

        def mp_pool2d_output_size(self, desc: Pointer, p: Pointer, q: Pointer, /) -> int:
            """P and Q of `desc`.
            @param p,q  host, out."""

        def mp_pool2d_forward(self, context: Handle, desc: Pointer, x: Pointer, y: Pointer, stream: Handle, /) -> int:
            """y = the largest element, or the mean, of each window and channel.  NaN is larger than
            everything and makes every mean NaN.
            @param x  device.
            @param y  device, written; must not overlap x."""

        def mp_pool2d_backward(self, context: Handle, desc: Pointer, x: Pointer, dy: Pointer, dx: Pointer, stream: Handle, /) -> int:
            """dx = the gradient of x, overwritten.  MP_POOL_MAX: the pixel that was the largest of its window,
            the first one by rows among equals, gets dy; it is found again from x, so y is not needed.
            Every pixel sums over the windows that hold it, in fp32 and a fixed order; for MP_POOL_MAX it
            reads each of them.
            @param x   device; read for MP_POOL_MAX alone, optional otherwise.
            @param dy  device.
            @param dx  device, written; must not overlap dy, nor x for MP_POOL_MAX."""

        def mp_batchnorm_desc_init(self, desc: Pointer, struct_size: int, rows: int, channels: int, dtype: int, /) -> int:
            """epsilon = 1e-5, momentum = 0.1, no activation."""

        def mp_batchnorm_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Bytes of workspace that training and backward need: at most 4 KiB per channel.
            @param bytes  host, out."""

        def mp_batchnorm_forward_training(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Normalises each channel with the statistics of these rows:

                mean = sum_i x[i] / rows,  var = sum_i (x[i] - mean)^2 / rows
                inv_std = 1 / sqrt(var + epsilon)
                y[i] = activation((x[i] - mean) gamma inv_std + beta)
                running_mean = (1 - momentum) running_mean + momentum mean
                running_var  = (1 - momentum) running_var + momentum var rows / (rows - 1)

            @param tensors    host: x, saved_mean, saved_inv_std, y; gamma and beta are optional;
                              running_mean and running_var are too, and updated.
            @param workspace  device, 256-byte aligned; mp_batchnorm_workspace_size bytes.

            A channel with an infinity or a NaN in x becomes NaN, and so does one whose rows var is beyond
            the range of fp32.  Its mean and variance do not enter the running statistics, so that a step
            which the loss scaler skips for it leaves them as they were.  A running value that is itself
            infinite or NaN is replaced by the next finite one of a batch, unless momentum is 0.  A step
            that is skipped for another reason, such as an overflow of a gradient, has still updated them.

            rows = 1 leaves running_var as it is, for one sample has no unbiased variance; rows = 0 or
            channels = 0 writes nothing.

            Means and squared deviations of blocks of rows are combined pairwise, never sums of squares:
            accurate also where the mean is large beside the deviation.  The order depends on the shape
            alone, not on the device.
            Source: Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1; Chan, Golub & LeVeque,
            Algorithms for Computing the Sample Variance, 1983; Micikevicius et al. 2018, section 3.3
            (statistics in fp32).
            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed"""

        def mp_batchnorm_forward_inference(self, context: Handle, desc: Pointer, tensors: Pointer, stream: Handle, /) -> int:
            """The same with given statistics; momentum is not looked at.
            @param tensors  host: x, running_mean, running_var, which are read here, and y, which may be x;
                            gamma and beta are optional."""

        def mp_batchnorm_backward(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Gradients of mp_batchnorm_forward_training, with g = dy, or with MP_ACT_RELU 0 where the
            activation was not positive, which is computed again from x; so y need not be kept:

                xhat[i] = (x[i] - mean) inv_std
                dbeta = sum_i g[i],  dgamma = sum_i g[i] xhat[i]
                dx[i] = gamma inv_std (g[i] - dbeta / rows - xhat[i] dgamma / rows)

            @param tensors  host: x, gamma, beta, saved_mean and saved_inv_std as in the forward pass, dy,
                            dx; dgamma and dbeta are optional.
            An infinity or a NaN in x or g makes dgamma and dx of its channel infinite or NaN.  Workspace
            and order of sums as in the forward pass."""

        def mp_pointwise_desc_init(self, desc: Pointer, struct_size: int, op: int, rows: int, columns: int, dtype: int, /) -> int:
            """No activation; b is dense, and of the same type."""

        def mp_pointwise(self, context: Handle, desc: Pointer, a: Pointer, b: Pointer, y: Pointer, stream: Handle, /) -> int:
            """y = activation(z), for each element.

            Computed in fp32 and rounded once.  A NaN stays NaN, except where MP_ACT_DRELU gives 0: it takes
            a where b > 0, and 0 elsewhere, whatever a is.  Activations are those of mp_epilogue_t.

            With rows or columns of 0 nothing is read or written.

            @param a  device, rows x columns.
            @param b  device; with MP_POINTWISE_COPY and a forward activation, or none, it is not looked at
                      and may be NULL.
            @param y  device, rows x columns, written; may be a.  May be b where its elements have the
                      places and the type of those of y: dtype_b = dtype, and ld_b = columns or rows = 1.
            Source: Hendrycks & Gimpel, Gaussian Error Linear Units, 2016 (both forms of GELU);
                    Ramachandran, Zoph & Le, Searching for Activation Functions, 2017 (SiLU).
            @retval MP_ERROR_INVALID_ARGUMENT also where a D* kind comes with another op, or y is a b with
                    another layout or type, or overlaps a or b otherwise"""

        def mp_column_sum_desc_init(self, desc: Pointer, struct_size: int, rows: int, columns: int, dtype: int, /) -> int:
            """Dense rows, dtype_sum = MP_FP32, beta = 0."""

        def mp_column_sum_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Bytes of workspace that mp_column_sum needs: at most 2 KiB per column.
            @param bytes  host, out."""

        def mp_column_sum(self, context: Handle, desc: Pointer, x: Pointer, sum: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Sums each column, such as the gradient of a bias where no epilogue of a product makes it:

                sum[j] = round(*scale * (x[0][j] + x[1][j] + ...) + beta * sum[j])

            Summed in fp32, in an order that depends on rows and columns alone, and rounded once.  rows = 0
            leaves beta * sum; columns = 0 does nothing.

            @param x          device, rows x columns.  For images N H W C, rows = N H W.
            @param sum        device, columns elements, written; read only when beta != 0.  Must not overlap
                              x.
            @param epilogue   host, optional: scale, amax and found_inf.  Everything else is unsupported
                              here and must be 0.
            @param workspace  device, 256-byte aligned; mp_column_sum_workspace_size bytes.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed"""

        def mp_rnn_desc_init(self, desc: Pointer, struct_size: int, cell: int, batch: int, timesteps: int, input_size: int, hidden_size: int, dtype: int, /) -> int:
            """One layer, one direction, with biases, without dropout, clipping and flags; dense; dtype_dw = dtype.
            Batch-major tensors, [sequence][step][element], have x_step = input_size and
            x_row = timesteps x input_size."""

        def mp_rnn_get_sizes(self, context: Handle, desc: Pointer, sizes: Pointer, /) -> int:
            """What `desc` needs.
            @param sizes  host, out; MP_INIT_STRUCT it before the call."""

        def mp_rnn_forward_training(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """y, h_n and c_n, and in the reserve what the backward passes need.
            @param tensors    host: weights, lengths or batch_sizes, dropout_offset, x, h0, c0, y, hn, cn,
                              reserve.
            @param workspace  device, 256-byte aligned; what it holds is of no use afterwards.

            timesteps = 0: h_n = h_0, c_n = c_0, and backward dh_0 = dh_n, dc_0 = dc_n.

            The bits of a sequence depend on its own values, on shape and device, and not on the length of the
            longest or on how the others end, where more than 64 rows, a row per step and sequence, are there in
            both cases; so a sequence cut into windows, with h and c handed over, comes to the same bits.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes or reserve_bytes is less than is needed: what a
                    call does is settled by mp_rnn_get_sizes"""

        def mp_rnn_forward_inference(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """The same without dropout, and without anything kept: neither dropout_offset nor the reserve is
            looked at."""

        def mp_rnn_backward_data(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """dx, dh_0 and dc_0; and in the reserve, in place of the gates, their gradients.
            @param tensors  host: what forward read, with the same values, except x; reserve, dy, dhn, dcn, dx, dh0, dc0,
                            found_inf.

            Gradients of gates, dx and dh_0 are rounded to `dtype`; found_inf is raised by the first two.  Where
            c' was clipped no gradient passes."""

        def mp_rnn_backward_weights(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """The gradients of weights and biases, after mp_rnn_backward_data, summed over all steps and
            sequences in fp32 and in a fixed order.  Overwritten, or added to with MP_RNN_ACCUMULATE; of no
            steps they are 0.
            @param tensors  host: lengths or batch_sizes, dropout_offset, x (optional where no gradient of a W_ih
                            of the first layer is wanted), h0, reserve, weight_grads, found_inf, amax."""

        def mp_embedding_desc_init(self, desc: Pointer, struct_size: int, rows: int, vocabulary: int, width: int, dtype: int, /) -> int:
            """Dense rows, no flags; dtype_dtable = dtype."""

        def mp_embedding_forward(self, context: Handle, desc: Pointer, table: Pointer, indices: Pointer, out: Pointer, stream: Handle, /) -> int:
            """out[i] = table[indices[i]].

            An index outside [0, vocabulary) reads nothing and makes its row NaN, so that the step is skipped
            and the mistake shows; the host cannot check indices without waiting.

            @param table    device, vocabulary x width.
            @param indices  device, rows integers.
            @param out      device, rows x width, written; must not overlap table."""

        def mp_embedding_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Bytes of workspace that backward needs: for each row 17 + width / 8, for each row of the table 4, and
            less than 128 KiB + 8 width beside that; 0 for no rows.
            @param bytes  host, out."""

        def mp_embedding_backward(self, context: Handle, desc: Pointer, indices: Pointer, dout: Pointer, dtable: Pointer, found_inf: Pointer, amax: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """dtable[v] = sum of dout[i] over all i with indices[i] = v; 0 where there is none.

            Summed in fp32 and in a fixed order, and rounded once; with MP_EMBEDDING_ACCUMULATE what was there
            is the last summand.  The order is that of i, by stretches of 64 rows with the same index whose
            sums are combined where there are more.  So the bits of a row of dtable depend on the rows of dout
            that belong to it, on their order and on width; not on other indices, nor on the device.

            Indices outside [0, vocabulary) add to nothing.  A NaN in dout reaches one row of dtable.

            @param indices    device, rows integers.
            @param dout       device, rows x width.
            @param dtable     device, vocabulary x width, every element written; with MP_EMBEDDING_ACCUMULATE
                              the rows that an index has, except that of the padding.
            @param found_inf  device, 1 float, optional: set to 1 and never cleared, see mp_epilogue_t.
            @param amax       device, 1 float, optional, updated: of what is written to dtable, once it is
                              rounded.
            @param workspace  device, 256-byte aligned; mp_embedding_workspace_size bytes.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed"""

        def mp_dropout_desc_init(self, desc: Pointer, struct_size: int, count: int, p: float, dtype: int, /) -> int:
            """Without a seed: 0."""

        def mp_dropout(self, context: Handle, desc: Pointer, offset: Pointer, x: Pointer, y: Pointer, stream: Handle, /) -> int:
            """Forward and backward: y = x mask / (1 - p), where the mask is 0 with probability p and otherwise 1.

            The mask is stored nowhere.  It follows from seed, offset and the place of an element, so a second
            call with dy in place of x gives dx.  Element i is dropped where word i % 4 of Philox 4x32-10 is
            less than 2^32 p, rounded down; its key is the seed, and its counter, low words first, is i / 4
            (1 word), the offset (2), and i / 4 / 2^32 (1).  mp_rnn_* draw other words, with the same seed too.

            A dropped element is 0, NaN or not.  The others are multiplied with 1 / (1 - p) in fp32 and rounded
            once.  With p = 0, y is x.

            @param offset  device, 1 integer, optional, 0 if absent: other masks for every value.  Without it
                           every step has the same mask: training gives a counter on the device, such as
                           mp_optimizer_step_counter, which a replayed graph reads too.  Forward and
                           backward of a step need the same.
            @param x       device, count elements.
            @param y       device, as many, written; may be x.
            Source: Srivastava et al., Dropout, 2014; Salmon et al., Parallel Random Numbers, 2011."""

        def mp_graph_create(self, graph: Pointer, context: Handle, /) -> int:
            """Begin a graph."""

        def mp_graph_destroy(self, graph: Handle, /) -> None:
            """Its memory too; work that has been enqueued must be done.  Optimizers made from its lists must
            be gone."""

        def mp_graph_input(self, graph: Handle, name: Optional[bytes], dtype: int, rank: int, extent: Pointer, tensor: Pointer, /) -> int:
            """A tensor from outside.
            @param name    host, copied; as every name, any text but an empty one.
            @param dtype   MP_FP32, which autocast may convert; MP_FP16, MP_BF16: read as it is;
                           MP_DTYPE_NONE: integers.
            @param extent  host, `rank` elements, >= 1, dense and row-major.  Where rank > 0, extent[0] is
                           the batch, the same for all inputs.
            @param tensor  host, out: by which the tensor is named from now on."""

        def mp_graph_parameter(self, graph: Handle, name: Optional[bytes], rank: int, extent: Pointer, tensor: Pointer, /) -> int:
            """A tensor to train: fp32, the graph's own.  An optimizer has it from mp_graph_lists.
            @param tensor  host, out."""

        def mp_graph_state(self, graph: Handle, name: Optional[bytes], rank: int, extent: Pointer, tensor: Pointer, /) -> int:
            """A tensor that lives from step to step and is not trained: fp32, the graph's own.
            @param tensor  host, out."""

        def mp_graph_node(self, graph: Handle, op_type: Optional[bytes], name: Optional[bytes], inputs: Pointer, num_inputs: int, attributes: Pointer, num_attributes: int, outputs: Pointer, num_outputs: int, /) -> int:
            """An operation of the list above.
            @param inputs      host, num_inputs tensors; -1 for an optional one that is absent.
            @param attributes  host, num_attributes; copied.  May be NULL for 0.
            @param outputs     host, out, num_outputs tensors, from the first on; optional ones may be left
                               out.
            @retval MP_ERROR_NOT_FOUND an operation, or an attribute of it, of that name does not exist
            @retval MP_ERROR_INVALID_ARGUMENT shapes that do not fit, named with the node"""

        def mp_graph_output(self, graph: Handle, tensor: int, /) -> int:
            """The tensor is read from outside: its memory is its own, and holds its value until the next pass.
            Those of losses are outputs anyway.  A tensor that depends on the loss is computed with it
            (mp_graph_mode_t)."""

        def mp_graph_keep_gradient(self, graph: Handle, tensor: int, /) -> int:
            """The gradient of a tensor is read from outside, mp_graph_tensor_t.grad: for those who look at
            what fp16 does to it. Parameters need no such call."""

        def mp_graph_loss(self, graph: Handle, tensor: int, /) -> int:
            """What is to become small: the loss of a SoftmaxXent, MSE, L1 or BCEWithLogits.  Without one, and
            without mp_graph_seed_gradient, the graph has no backward pass."""

        def mp_graph_seed_gradient(self, graph: Handle, tensor: int, input: Pointer, /) -> int:
            """Declares an input with the gradient of a loss that the caller computes: dL / d(tensor), in fp32,
            of the shape of `tensor` and not multiplied by S.  mp_graph_backward multiplies it by S and
            starts there, and from the loss of mp_graph_loss if there is one: gradients add up.  The tensor
            becomes an output, so that it can be read after mp_graph_forward; its gradient is bound like any
            input, before mp_graph_backward.
            @param tensor  floating-point output of a node; at most one seed per tensor.
            @param input   host, out."""

        def mp_graph_autocast(self, graph: Handle, policy: Handle, /) -> int:
            """Mixed precision: operations get their types as the policy says.  To be called before
            mp_graph_compile; nothing changes, with one warning, where the policy's gate is closed on this
            device (mp_autocast_gate).
            @param policy  must live until mp_graph_compile has succeeded.  Not with MP_AUTOCAST_EMULATE."""

        def mp_graph_compile(self, graph: Handle, /) -> int:
            """Append the backward pass, cast, fuse, and allocate.  Parameters and states are 0 from here on,
            and the graph takes no more nodes.
            @retval MP_ERROR_INVALID_ARGUMENT a parameter that the loss does not depend on, or none at all
            @retval MP_ERROR_OUT_OF_MEMORY nothing was allocated"""

        def mp_graph_bind(self, graph: Handle, tensor: int, data: Pointer, /) -> int:
            """Where an input lies from the next pass on; it may be another place each time.  As many elements
            are read as the batch has that is set then.
            @param data  device, aligned to its elements, 16 bytes for the fastest kernels.  NULL: unbound."""

        def mp_graph_set_batch(self, graph: Handle, batch: int, /) -> int:
            """How large the batch is from the next pass on.  The first call with a size takes longer on the
            host.  A batch that needs more workspace than planned allocates it in this call.
            @param batch  1 to extent[0] of the inputs.
            @retval MP_ERROR_OUT_OF_MEMORY the batch size is unchanged"""

        def mp_graph_write(self, graph: Handle, tensor: int, values: Pointer, stream: Handle, /) -> int:
            """Set a parameter or a state, and the 16-bit copy of a parameter where there is one, in stream
            order.
            @param values  host or device, its elements in fp32."""

        def mp_graph_forward(self, graph: Handle, mode: int, stream: Handle, /) -> int:
            """All outputs from the inputs that are bound.
            @retval MP_ERROR_INVALID_ARGUMENT an input that is not bound"""

        def mp_graph_backward(self, graph: Handle, scaler: Handle, stream: Handle, /) -> int:
            """The loss, and the gradients of all parameters times S, after mp_graph_forward in training.
            @param scaler  optional: its S, and its found_inf, which is raised by an overflow on the way.
                           NULL: S = 1."""

        def mp_graph_get_step_sync(self, graph: Handle, t: Pointer, stream: Handle, /) -> int:
            """Returns the step of a graph with Dropout: its forward passes in training so far, replays of a
            CUDA graph included.  Part of a checkpoint: a resumed run then draws the masks of the run that
            goes on.  Waits for `stream`.
            @param t  host, out; 0 for a graph without Dropout, which counts nothing."""

        def mp_graph_set_step_sync(self, graph: Handle, t: int, stream: Handle, /) -> int:
            """Sets the step from a checkpoint; 0 after mp_graph_compile.  Waits for `stream`.
            @param t  0 to 2^52.  No effect on a graph without Dropout."""

        def mp_graph_lists(self, graph: Handle, grads: Pointer, master: Pointer, model: Pointer, /) -> int:
            """The lists of an optimizer: all parameters in the order of their creation.  Borrowed: they live
            as long as the graph.  No two gradients share memory.
            @param grads,master,model  host, out, each optional.  model is NULL where no parameter has a
                                       16-bit copy."""

        def mp_graph_get_tensor(self, graph: Handle, tensor: int, info: Pointer, /) -> int:
            """Before mp_graph_compile it has a name and a shape, and no memory.
            @param info  host, out; MP_INIT_STRUCT it before the call."""

        def mp_graph_get_memory(self, graph: Handle, memory: Pointer, /) -> int:
            """After mp_graph_compile.
            @param memory  host, out; MP_INIT_STRUCT it before the call."""

        def mp_graph_explain(self, graph: Handle, form: int, text: Pointer, bytes: Pointer, /) -> int:
            """How the operations came to their types, forward and backward, before fusion: mp_autocast_explain
            of the graph. Without mp_graph_autocast nothing has a reason: MP_ERROR_INVALID_ARGUMENT.
            @param text   host, optional, out: NUL-terminated.
            @param bytes  host.  In: room in text.  Out: what is needed, the NUL included.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL text has less room"""

        def mp_graph_describe(self, graph: Handle, text: Pointer, bytes: Pointer, /) -> int:
            """What is called, in order: one line per call with its operations, function, tensors, types and
            shapes.  It begins with "forward", "backward", or "inference": in training that call is one of
            backward.  After mp_graph_compile; parameters and room as in mp_graph_explain."""

        def mp_scaler_config_init_preset(self, config: Pointer, struct_size: int, preset: int, /) -> int:
            """mp_scaler_config_init(MP_SCALER_BACKOFF), with max_scale and diverged_after 0 and what `preset`
            says.
            @retval MP_ERROR_INVALID_ARGUMENT if there is no such preset"""

        def mp_scaler_config_from_name(self, name: Optional[bytes], config: Pointer, struct_size: int, /) -> int:
            """What a word of a command line or of another system's configuration stands for:

                "Backoff"    OpenSeq2Seq's: MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF
                "LogMax"     OpenSeq2Seq's: MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX, as it was shipped
                "lognormal"  MP_SCALER_PRESET_LOGNORMAL
                "dynamic"    Apex's: MP_SCALER_PRESET_APEX_AMP, which begins where torch's GradScaler does
                "none"       MP_SCALER_STATIC with S = 1
                "128"        MP_SCALER_STATIC with S = 128; so every other number that S may be

            Capital letters do not matter.  A static S may lie outside [1, 2^24]: min_scale or max_scale goes
            with it.
            @param name    host.
            @param config  host, out; zeros after an error.
            @retval MP_ERROR_NOT_FOUND the word is unknown
            @retval MP_ERROR_INVALID_ARGUMENT the number is not positive and finite with a finite reciprocal"""

        def mp_scaler_from_torch(self, saved: Pointer, config: Pointer, state: Pointer, /) -> int:
            """What makes a scaler that goes on where torch's stopped.
            @param saved   host.
            @param config  host, out: for mp_scaler_create; MP_INIT_STRUCT it before the call.
            @param state   host, out: for mp_scaler_set_state_sync; MP_INIT_STRUCT it before the call.
            @retval MP_ERROR_INVALID_ARGUMENT a scale without finite reciprocal, or a factor or interval that
                    no scaler has.  Also a growth_tracker that is not below growth_interval, as
                    set_growth_interval can leave it behind: torch compares the two for equality, so there S
                    would not grow again before an overflow, and here it would grow at once.  Set
                    growth_tracker to 0"""

        def mp_scaler_to_torch(self, config: Pointer, state: Pointer, saved: Pointer, /) -> int:
            """For GradScaler.load_state_dict.  Hysteresis, limits and the counts of skips are not torch's.
            @param saved  host, out."""

        def mp_scaler_from_megatron(self, saved: Pointer, state: Pointer, /) -> int:
            """The state, for a scaler made from MP_SCALER_PRESET_MEGATRON.
            @param saved  host.
            @param state  host, out; MP_INIT_STRUCT it before the call.
            @retval MP_ERROR_INVALID_ARGUMENT a scale without finite reciprocal, a growth_tracker below 0.
                    What depends on the scaler, mp_scaler_set_state_sync refuses"""

        def mp_scaler_to_megatron(self, state: Pointer, saved: Pointer, /) -> int:
            """For DynamicGradScaler.load_state_dict.
            @param saved  host, out."""

        def mp_gemm_kernel_info(self, context: Handle, desc: Pointer, index: int, info: Pointer, /) -> int:
            """The kernels by predicted time, so that index 0 is what mp_gemm would launch, and behind them those
            that cannot run `desc`.
            @param info  host, out; MP_INIT_STRUCT it before the call.
            @retval MP_ERROR_NOT_FOUND when index is past the last kernel."""

        def mp_conv2d_kernel_info(self, context: Handle, desc: Pointer, op: int, index: int, info: Pointer, /) -> int:
            """The same for one product of a convolution."""

        def mp_rnn_kernel_info(self, context: Handle, desc: Pointer, index: int, info: Pointer, /) -> int:
            """How the steps of a recurrent layer are done: by products of mp_gemm's kernels and kernels for the cell,
            or in one kernel a step.  The one that the library would take comes first.  workspace_bytes is that of the
            whole call, as in mp_rnn_get_sizes."""


# name: (result, types of its arguments)
FUNCTIONS: Dict[str, Tuple[Any, Dict[str, Any]]] = {
    "mp_version": (c_uint32, {}),
    "mp_build_info": (c_char_p, {}),
    "mp_status_string": (c_char_p, {"status": c_uint32}),
    "mp_last_error": (c_char_p, {}),
    "mp_set_log_callback": (None, {"callback": mp_log_callback_t, "user": c_void_p, "level": c_uint32}),
    "mp_dtype_size": (c_size_t, {"dtype": c_uint32}),
    "mp_dtype_name": (c_char_p, {"dtype": c_uint32}),
    "mp_context_config_init": (c_uint32, {"config": POINTER(mp_context_config_t), "struct_size": c_size_t}),
    "mp_context_create": (c_uint32, {"context": POINTER(c_void_p), "config": POINTER(mp_context_config_t)}),
    "mp_context_destroy": (None, {"context": c_void_p}),
    "mp_context_get_info": (c_uint32, {"context": c_void_p, "info": POINTER(mp_device_info_t)}),
    "mp_malloc": (c_uint32, {"context": c_void_p, "ptr": POINTER(c_void_p), "bytes": c_size_t}),
    "mp_free": (None, {"context": c_void_p, "ptr": c_void_p}),
    "mp_memcpy": (c_uint32, {"context": c_void_p, "dst": c_void_p, "src": c_void_p, "bytes": c_size_t, "stream": c_void_p}),
    "mp_memset": (c_uint32, {"context": c_void_p, "dst": c_void_p, "byte": c_int, "bytes": c_size_t, "stream": c_void_p}),
    "mp_stream_sync": (c_uint32, {"context": c_void_p, "stream": c_void_p}),
    "mp_cast": (c_uint32, {"context": c_void_p, "src": c_void_p, "src_dtype": c_uint32, "dst": c_void_p, "dst_dtype": c_uint32, "count": c_int64, "stream": c_void_p}),
    "mp_epilogue_init": (c_uint32, {"epilogue": POINTER(mp_epilogue_t), "struct_size": c_size_t}),
    "mp_gemm_desc_init": (c_uint32, {"desc": POINTER(mp_gemm_desc_t), "struct_size": c_size_t, "m": c_int64, "n": c_int64, "k": c_int64, "dtype_ab": c_uint32, "dtype_cd": c_uint32}),
    "mp_gemm_workspace_size": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_gemm_desc_t), "bytes": c_void_p}),
    "mp_gemm": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_gemm_desc_t), "A": c_void_p, "B": c_void_p, "C": c_void_p, "D": c_void_p, "epilogue": POINTER(mp_epilogue_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_gemm_batched": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_gemm_desc_t), "A": c_void_p, "B": c_void_p, "C": c_void_p, "D": c_void_p, "epilogue": POINTER(mp_epilogue_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_gemm_group_item_init": (c_uint32, {"item": POINTER(mp_gemm_group_item_t), "struct_size": c_size_t, "m": c_int64, "n": c_int64, "k": c_int64}),
    "mp_gemm_grouped_workspace_size": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_gemm_desc_t), "count": c_int32, "items": POINTER(mp_gemm_group_item_t), "bytes": c_void_p}),
    "mp_gemm_grouped": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_gemm_desc_t), "count": c_int32, "items": POINTER(mp_gemm_group_item_t), "epilogue": POINTER(mp_epilogue_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_gemm_ragged_workspace_size": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_gemm_desc_t), "ragged": c_uint32, "bytes": c_void_p}),
    "mp_gemm_ragged": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_gemm_desc_t), "ragged": c_uint32, "ends": c_void_p, "A": c_void_p, "B": c_void_p, "C": c_void_p, "D": c_void_p, "epilogue": POINTER(mp_epilogue_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_conv2d_desc_init": (c_uint32, {"desc": POINTER(mp_conv2d_desc_t), "struct_size": c_size_t, "n": c_int32, "h": c_int32, "w": c_int32, "c": c_int32, "k": c_int32, "r": c_int32, "s": c_int32, "dtype": c_uint32}),
    "mp_conv2d_output_size": (c_uint32, {"desc": POINTER(mp_conv2d_desc_t), "p": c_void_p, "q": c_void_p}),
    "mp_conv2d_workspace_size": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_conv2d_desc_t), "op": c_uint32, "bytes": c_void_p}),
    "mp_conv2d_fprop": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_conv2d_desc_t), "x": c_void_p, "filter": c_void_p, "y": c_void_p, "epilogue": POINTER(mp_epilogue_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_conv2d_dgrad": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_conv2d_desc_t), "dy": c_void_p, "filter": c_void_p, "dx": c_void_p, "epilogue": POINTER(mp_epilogue_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_conv2d_wgrad": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_conv2d_desc_t), "x": c_void_p, "dy": c_void_p, "dfilter": c_void_p, "epilogue": POINTER(mp_epilogue_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_tensor_list_create": (c_uint32, {"list": POINTER(c_void_p), "context": c_void_p, "desc": POINTER(mp_tensor_list_desc_t)}),
    "mp_tensor_list_destroy": (None, {"list": c_void_p}),
    "mp_tensor_list_set_data": (c_uint32, {"list": c_void_p, "data": c_void_p, "stream": c_void_p}),
    "mp_tensor_list_get": (c_uint32, {"list": c_void_p, "index": c_uint32, "data": POINTER(c_void_p), "numel": c_void_p, "dtype": c_void_p}),
    "mp_check_nonfinite": (c_uint32, {"list": c_void_p, "found_inf": c_void_p, "stream": c_void_p}),
    "mp_amax": (c_uint32, {"list": c_void_p, "amax": c_void_p, "per_tensor": c_void_p, "stream": c_void_p}),
    "mp_l2norm": (c_uint32, {"list": c_void_p, "norm": c_void_p, "per_tensor": c_void_p, "stream": c_void_p}),
    "mp_inspect": (c_uint32, {"list": c_void_p, "report": c_void_p, "tensor_reports": c_void_p, "stream": c_void_p}),
    "mp_tensor_stats": (c_uint32, {"list": c_void_p, "outputs": POINTER(mp_stats_outputs_t), "stream": c_void_p}),
    "mp_unscale": (c_uint32, {"in": c_void_p, "out": c_void_p, "inv_scale": c_void_p, "found_inf": c_void_p, "stream": c_void_p}),
    "mp_clip_factor": (c_uint32, {"context": c_void_p, "scaled_norm": c_void_p, "inv_scale": c_void_p, "max_norm": c_float, "grad_scale": c_void_p, "stream": c_void_p}),
    "mp_scaler_config_init": (c_uint32, {"config": POINTER(mp_scaler_config_t), "struct_size": c_size_t, "policy": c_uint32}),
    "mp_scaler_state_init": (c_uint32, {"state": POINTER(mp_scaler_state_t), "struct_size": c_size_t, "config": POINTER(mp_scaler_config_t)}),
    "mp_scaler_create": (c_uint32, {"scaler": POINTER(c_void_p), "context": c_void_p, "config": POINTER(mp_scaler_config_t)}),
    "mp_scaler_destroy": (None, {"scaler": c_void_p}),
    "mp_scaler_scale": (c_void_p, {"scaler": c_void_p}),
    "mp_scaler_inv_scale": (c_void_p, {"scaler": c_void_p}),
    "mp_scaler_found_inf": (c_void_p, {"scaler": c_void_p}),
    "mp_scale_loss": (c_uint32, {"scaler": c_void_p, "loss": c_void_p, "out": c_void_p, "dtype": c_uint32, "count": c_int64, "stream": c_void_p}),
    "mp_scaler_update": (c_uint32, {"scaler": c_void_p, "amax": c_void_p, "stream": c_void_p}),
    "mp_scaler_get_state_sync": (c_uint32, {"scaler": c_void_p, "state": POINTER(mp_scaler_state_t), "stream": c_void_p}),
    "mp_scaler_set_state_sync": (c_uint32, {"scaler": c_void_p, "state": POINTER(mp_scaler_state_t), "stream": c_void_p}),
    "mp_scaler_get_history_sync": (c_uint32, {"scaler": c_void_p, "capacity": c_int64, "scales": c_void_p, "skipped": c_void_p, "count": c_void_p, "stream": c_void_p}),
    "mp_hyper_init": (c_uint32, {"hyper": POINTER(mp_hyper_t), "struct_size": c_size_t, "kind": c_uint32, "lr": c_float}),
    "mp_optimizer_desc_init": (c_uint32, {"desc": POINTER(mp_optimizer_desc_t), "struct_size": c_size_t, "kind": c_uint32}),
    "mp_optimizer_desc_from_name": (c_uint32, {"name": c_char_p, "desc": POINTER(mp_optimizer_desc_t), "desc_size": c_size_t, "hyper": POINTER(mp_hyper_t), "hyper_size": c_size_t, "lr": c_float}),
    "mp_optimizer_create": (c_uint32, {"optimizer": POINTER(c_void_p), "context": c_void_p, "desc": POINTER(mp_optimizer_desc_t)}),
    "mp_optimizer_destroy": (None, {"optimizer": c_void_p}),
    "mp_optimizer_moments": (c_uint32, {"optimizer": c_void_p, "m": POINTER(c_void_p), "v": POINTER(c_void_p)}),
    "mp_optimizer_set_hyper": (c_uint32, {"optimizer": c_void_p, "group": c_uint32, "hyper": POINTER(mp_hyper_t), "stream": c_void_p}),
    "mp_optimizer_step": (c_uint32, {"optimizer": c_void_p, "grad_scale": c_void_p, "found_inf": c_void_p, "stream": c_void_p}),
    "mp_model_options_init": (c_uint32, {"options": POINTER(mp_model_options_t), "struct_size": c_size_t}),
    "mp_masters_to_model": (c_uint32, {"master": c_void_p, "model": c_void_p, "found_inf": c_void_p, "options": POINTER(mp_model_options_t), "stream": c_void_p}),
    "mp_optimizer_lr": (c_void_p, {"optimizer": c_void_p}),
    "mp_optimizer_regularization": (c_uint32, {"optimizer": c_void_p, "loss": c_void_p, "stream": c_void_p}),
    "mp_optimizer_get_scaler": (c_void_p, {"optimizer": c_void_p}),
    "mp_optimizer_step_counter": (c_void_p, {"optimizer": c_void_p}),
    "mp_optimizer_write_model": (c_uint32, {"optimizer": c_void_p, "stream": c_void_p}),
    "mp_optimizer_checkpoint_size": (c_uint32, {"optimizer": c_void_p, "scaler": c_void_p, "bytes": c_void_p}),
    "mp_optimizer_save_sync": (c_uint32, {"optimizer": c_void_p, "scaler": c_void_p, "checkpoint": c_void_p, "bytes": c_size_t, "stream": c_void_p}),
    "mp_optimizer_restore_sync": (c_uint32, {"optimizer": c_void_p, "scaler": c_void_p, "checkpoint": c_void_p, "bytes": c_size_t, "stream": c_void_p}),
    "mp_optimizer_get_step_sync": (c_uint32, {"optimizer": c_void_p, "t": c_void_p, "stream": c_void_p}),
    "mp_optimizer_set_step_sync": (c_uint32, {"optimizer": c_void_p, "t": c_int64, "stream": c_void_p}),
    "mp_comm_init": (c_uint32, {"comm": POINTER(mp_comm_t), "struct_size": c_size_t}),
    "mp_comm_init_nccl": (c_uint32, {"comm": POINTER(mp_comm_t), "nccl_comm": c_void_p}),
    "mp_grad_all_reduce": (c_uint32, {"grads": c_void_p, "comm": POINTER(mp_comm_t), "pre": c_float, "post": c_float, "stream": c_void_p}),
    "mp_step_options_init": (c_uint32, {"options": POINTER(mp_step_options_t), "struct_size": c_size_t}),
    "mp_scale_step": (c_uint32, {"optimizer": c_void_p, "scaler": c_void_p, "options": POINTER(mp_step_options_t), "stream": c_void_p}),
    "mp_grads_accumulate": (c_uint32, {"scaler": c_void_p, "grads": c_void_p, "sums": c_void_p, "weight": c_float, "flags": c_uint32, "stream": c_void_p}),
    "mp_grads_to_fp32": (c_uint32, {"scaler": c_void_p, "grads": c_void_p, "out": c_void_p, "stream": c_void_p}),
    "mp_step_query": (c_uint32, {"scaler": c_void_p, "step": c_int64, "outcome": c_void_p}),
    "mp_autocast_config_init": (c_uint32, {"config": POINTER(mp_autocast_config_t), "struct_size": c_size_t, "low": c_uint32}),
    "mp_autocast_scaler_init": (c_uint32, {"config": POINTER(mp_scaler_config_t), "struct_size": c_size_t, "low": c_uint32}),
    "mp_autocast_create": (c_uint32, {"policy": POINTER(c_void_p), "config": POINTER(mp_autocast_config_t)}),
    "mp_autocast_destroy": (None, {"policy": c_void_p}),
    "mp_autocast_set_class": (c_uint32, {"policy": c_void_p, "op_types": POINTER(c_char_p), "count": c_uint32, "op_class": c_uint32}),
    "mp_autocast_set_nodes": (c_uint32, {"policy": c_void_p, "pattern": c_char_p, "node_class": c_uint32}),
    "mp_autocast_class": (c_uint32, {"policy": c_void_p, "op_type": c_char_p}),
    "mp_autocast_gate": (c_uint32, {"policy": c_void_p, "context": c_void_p, "closed_because": POINTER(c_char_p)}),
    "mp_autocast_rewrite": (c_uint32, {"policy": c_void_p, "context": c_void_p, "graph": POINTER(mp_autocast_graph_t), "result": POINTER(mp_autocast_result_t)}),
    "mp_autocast_explain": (c_uint32, {"policy": c_void_p, "graph": POINTER(mp_autocast_graph_t), "result": POINTER(mp_autocast_result_t), "form": c_uint32, "text": c_char_p, "bytes": c_void_p}),
    "mp_autocast_op": (c_uint32, {"policy": c_void_p, "op_type": c_char_p, "input_dtype": c_void_p, "count": c_uint32, "cast_to": c_void_p, "output": c_void_p}),
    "mp_xent_desc_init": (c_uint32, {"desc": POINTER(mp_xent_desc_t), "struct_size": c_size_t, "rows": c_int64, "classes": c_int64, "dtype": c_uint32}),
    "mp_softmax_xent": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_xent_desc_t), "logits": c_void_p, "labels": c_void_p, "loss_scale": c_void_p, "row_loss": c_void_p, "loss": c_void_p, "correct": c_void_p, "dlogits": c_void_p, "stream": c_void_p}),
    "mp_loss_desc_init": (c_uint32, {"desc": POINTER(mp_loss_desc_t), "struct_size": c_size_t, "kind": c_uint32, "count": c_int64, "dtype": c_uint32}),
    "mp_loss_workspace_size": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_loss_desc_t), "bytes": c_void_p}),
    "mp_loss": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_loss_desc_t), "prediction": c_void_p, "target": c_void_p, "weights": c_void_p, "loss_scale": c_void_p, "element_loss": c_void_p, "loss": c_void_p, "dprediction": c_void_p, "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_nchw_to_nhwc": (c_uint32, {"context": c_void_p, "n": c_int64, "c": c_int64, "h": c_int64, "w": c_int64, "src": c_void_p, "src_dtype": c_uint32, "dst": c_void_p, "dst_dtype": c_uint32, "stream": c_void_p}),
    "mp_nhwc_to_nchw": (c_uint32, {"context": c_void_p, "n": c_int64, "c": c_int64, "h": c_int64, "w": c_int64, "src": c_void_p, "src_dtype": c_uint32, "dst": c_void_p, "dst_dtype": c_uint32, "stream": c_void_p}),
    "mp_pool2d_desc_init": (c_uint32, {"desc": POINTER(mp_pool2d_desc_t), "struct_size": c_size_t, "mode": c_uint32, "n": c_int32, "h": c_int32, "w": c_int32, "c": c_int32, "window_h": c_int32, "window_w": c_int32, "dtype": c_uint32}),
    "mp_pool2d_output_size": (c_uint32, {"desc": POINTER(mp_pool2d_desc_t), "p": c_void_p, "q": c_void_p}),
    "mp_pool2d_forward": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_pool2d_desc_t), "x": c_void_p, "y": c_void_p, "stream": c_void_p}),
    "mp_pool2d_backward": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_pool2d_desc_t), "x": c_void_p, "dy": c_void_p, "dx": c_void_p, "stream": c_void_p}),
    "mp_batchnorm_desc_init": (c_uint32, {"desc": POINTER(mp_batchnorm_desc_t), "struct_size": c_size_t, "rows": c_int64, "channels": c_int32, "dtype": c_uint32}),
    "mp_batchnorm_workspace_size": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_batchnorm_desc_t), "bytes": c_void_p}),
    "mp_batchnorm_forward_training": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_batchnorm_desc_t), "tensors": POINTER(mp_batchnorm_tensors_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_batchnorm_forward_inference": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_batchnorm_desc_t), "tensors": POINTER(mp_batchnorm_tensors_t), "stream": c_void_p}),
    "mp_batchnorm_backward": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_batchnorm_desc_t), "tensors": POINTER(mp_batchnorm_tensors_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_pointwise_desc_init": (c_uint32, {"desc": POINTER(mp_pointwise_desc_t), "struct_size": c_size_t, "op": c_uint32, "rows": c_int64, "columns": c_int64, "dtype": c_uint32}),
    "mp_pointwise": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_pointwise_desc_t), "a": c_void_p, "b": c_void_p, "y": c_void_p, "stream": c_void_p}),
    "mp_column_sum_desc_init": (c_uint32, {"desc": POINTER(mp_column_sum_desc_t), "struct_size": c_size_t, "rows": c_int64, "columns": c_int64, "dtype": c_uint32}),
    "mp_column_sum_workspace_size": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_column_sum_desc_t), "bytes": c_void_p}),
    "mp_column_sum": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_column_sum_desc_t), "x": c_void_p, "sum": c_void_p, "epilogue": POINTER(mp_epilogue_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_rnn_desc_init": (c_uint32, {"desc": POINTER(mp_rnn_desc_t), "struct_size": c_size_t, "cell": c_uint32, "batch": c_int32, "timesteps": c_int32, "input_size": c_int32, "hidden_size": c_int32, "dtype": c_uint32}),
    "mp_rnn_get_sizes": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_rnn_desc_t), "sizes": POINTER(mp_rnn_sizes_t)}),
    "mp_rnn_forward_training": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_rnn_desc_t), "tensors": POINTER(mp_rnn_tensors_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_rnn_forward_inference": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_rnn_desc_t), "tensors": POINTER(mp_rnn_tensors_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_rnn_backward_data": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_rnn_desc_t), "tensors": POINTER(mp_rnn_tensors_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_rnn_backward_weights": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_rnn_desc_t), "tensors": POINTER(mp_rnn_tensors_t), "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_embedding_desc_init": (c_uint32, {"desc": POINTER(mp_embedding_desc_t), "struct_size": c_size_t, "rows": c_int64, "vocabulary": c_int32, "width": c_int64, "dtype": c_uint32}),
    "mp_embedding_forward": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_embedding_desc_t), "table": c_void_p, "indices": c_void_p, "out": c_void_p, "stream": c_void_p}),
    "mp_embedding_workspace_size": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_embedding_desc_t), "bytes": c_void_p}),
    "mp_embedding_backward": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_embedding_desc_t), "indices": c_void_p, "dout": c_void_p, "dtable": c_void_p, "found_inf": c_void_p, "amax": c_void_p, "workspace": c_void_p, "workspace_bytes": c_size_t, "stream": c_void_p}),
    "mp_dropout_desc_init": (c_uint32, {"desc": POINTER(mp_dropout_desc_t), "struct_size": c_size_t, "count": c_int64, "p": c_float, "dtype": c_uint32}),
    "mp_dropout": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_dropout_desc_t), "offset": c_void_p, "x": c_void_p, "y": c_void_p, "stream": c_void_p}),
    "mp_graph_create": (c_uint32, {"graph": POINTER(c_void_p), "context": c_void_p}),
    "mp_graph_destroy": (None, {"graph": c_void_p}),
    "mp_graph_input": (c_uint32, {"graph": c_void_p, "name": c_char_p, "dtype": c_uint32, "rank": c_int32, "extent": c_void_p, "tensor": c_void_p}),
    "mp_graph_parameter": (c_uint32, {"graph": c_void_p, "name": c_char_p, "rank": c_int32, "extent": c_void_p, "tensor": c_void_p}),
    "mp_graph_state": (c_uint32, {"graph": c_void_p, "name": c_char_p, "rank": c_int32, "extent": c_void_p, "tensor": c_void_p}),
    "mp_graph_node": (c_uint32, {"graph": c_void_p, "op_type": c_char_p, "name": c_char_p, "inputs": c_void_p, "num_inputs": c_uint32, "attributes": POINTER(mp_graph_attribute_t), "num_attributes": c_uint32, "outputs": c_void_p, "num_outputs": c_uint32}),
    "mp_graph_output": (c_uint32, {"graph": c_void_p, "tensor": c_int32}),
    "mp_graph_keep_gradient": (c_uint32, {"graph": c_void_p, "tensor": c_int32}),
    "mp_graph_loss": (c_uint32, {"graph": c_void_p, "tensor": c_int32}),
    "mp_graph_seed_gradient": (c_uint32, {"graph": c_void_p, "tensor": c_int32, "input": c_void_p}),
    "mp_graph_autocast": (c_uint32, {"graph": c_void_p, "policy": c_void_p}),
    "mp_graph_compile": (c_uint32, {"graph": c_void_p}),
    "mp_graph_bind": (c_uint32, {"graph": c_void_p, "tensor": c_int32, "data": c_void_p}),
    "mp_graph_set_batch": (c_uint32, {"graph": c_void_p, "batch": c_int64}),
    "mp_graph_write": (c_uint32, {"graph": c_void_p, "tensor": c_int32, "values": c_void_p, "stream": c_void_p}),
    "mp_graph_forward": (c_uint32, {"graph": c_void_p, "mode": c_uint32, "stream": c_void_p}),
    "mp_graph_backward": (c_uint32, {"graph": c_void_p, "scaler": c_void_p, "stream": c_void_p}),
    "mp_graph_get_step_sync": (c_uint32, {"graph": c_void_p, "t": c_void_p, "stream": c_void_p}),
    "mp_graph_set_step_sync": (c_uint32, {"graph": c_void_p, "t": c_int64, "stream": c_void_p}),
    "mp_graph_lists": (c_uint32, {"graph": c_void_p, "grads": POINTER(c_void_p), "master": POINTER(c_void_p), "model": POINTER(c_void_p)}),
    "mp_graph_get_tensor": (c_uint32, {"graph": c_void_p, "tensor": c_int32, "info": POINTER(mp_graph_tensor_t)}),
    "mp_graph_get_memory": (c_uint32, {"graph": c_void_p, "memory": POINTER(mp_graph_memory_t)}),
    "mp_graph_explain": (c_uint32, {"graph": c_void_p, "form": c_uint32, "text": c_char_p, "bytes": c_void_p}),
    "mp_graph_describe": (c_uint32, {"graph": c_void_p, "text": c_char_p, "bytes": c_void_p}),
    "mp_scaler_config_init_preset": (c_uint32, {"config": POINTER(mp_scaler_config_t), "struct_size": c_size_t, "preset": c_uint32}),
    "mp_scaler_config_from_name": (c_uint32, {"name": c_char_p, "config": POINTER(mp_scaler_config_t), "struct_size": c_size_t}),
    "mp_scaler_from_torch": (c_uint32, {"saved": POINTER(mp_torch_scaler_t), "config": POINTER(mp_scaler_config_t), "state": POINTER(mp_scaler_state_t)}),
    "mp_scaler_to_torch": (c_uint32, {"config": POINTER(mp_scaler_config_t), "state": POINTER(mp_scaler_state_t), "saved": POINTER(mp_torch_scaler_t)}),
    "mp_scaler_from_megatron": (c_uint32, {"saved": POINTER(mp_megatron_scaler_t), "state": POINTER(mp_scaler_state_t)}),
    "mp_scaler_to_megatron": (c_uint32, {"state": POINTER(mp_scaler_state_t), "saved": POINTER(mp_megatron_scaler_t)}),
    "mp_gemm_kernel_info": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_gemm_desc_t), "index": c_int32, "info": POINTER(mp_kernel_info_t)}),
    "mp_conv2d_kernel_info": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_conv2d_desc_t), "op": c_uint32, "index": c_int32, "info": POINTER(mp_kernel_info_t)}),
    "mp_rnn_kernel_info": (c_uint32, {"context": c_void_p, "desc": POINTER(mp_rnn_desc_t), "index": c_int32, "info": POINTER(mp_kernel_info_t)}),
}

_library: Library  # of the functions above, once it is declared


def declare(library: Library) -> Library:
    """Give every function of the library its types; AttributeError where one is missing."""
    global _library
    _library = library
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = list(arguments.values())
        setattr(library, name, _checked(function, arguments))
    return library
