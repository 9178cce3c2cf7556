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
"""Version as one integer, comparable with <: 0.1.0 is 100, 1.2.3 is 10203."""
MP_DEVICE_CURRENT = -1
"""the calling thread's current CUDA device; an error if none"""
MP_DEVICE_HOST = -2
"""the CPU"""
MP_DEVICE_AUTO = -3
"""CURRENT; if none is usable, HOST with a warning"""
MP_STEP_QUERY_DEPTH = 1024
"""Number of steps whose outcome mp_step_query can return."""
MP_SLOT_FP32 = 255
"""Slot of inputs and outputs that are always fp32, such as statistics of a batch norm or the gain
of a layer norm.  Low precision propagates neither from nor to this slot, for any class."""
MP_GRAPH_MAX_RANK = 8
"""Maximum number of dimensions of a tensor."""


class mp_status_t(enum.IntEnum):
    """Status codes.  The values are part of the ABI and grouped in ranges by cause."""

    MP_SUCCESS = 0
    MP_ERROR_INVALID_ARGUMENT = 1
    """a value outside its documented range"""
    MP_ERROR_MISALIGNED = 2
    """a pointer or ld violates a documented alignment"""
    MP_ERROR_WORKSPACE_TOO_SMALL = 3
    """see mp_*_workspace_size"""
    MP_ERROR_STRUCT_SIZE = 4
    """struct_size is 0 or requests unknown features"""
    MP_ERROR_UNSUPPORTED = 20
    """no kernel for this combination; mp_last_error names the part"""
    MP_ERROR_ARCH_MISMATCH = 21
    """the build has no code for this device"""
    MP_ERROR_NOT_FOUND = 22
    """unknown name, index past the end, missing shared library"""
    MP_ERROR_OUT_OF_MEMORY = 40
    MP_ERROR_CUDA = 41
    """mp_last_error contains the CUDA error name"""
    MP_ERROR_COMM = 42
    """a callback of mp_comm_t failed; mp_last_error contains its code"""
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
    """Log severity; lower values are more severe."""

    MP_LOG_ERROR = 1
    """every error, once; by default only errors that no status returns"""
    MP_LOG_WARN = 2
    """slow paths whose cause the caller can change"""
    MP_LOG_INFO = 3
    """kernel selections, the first time each is made; skipped steps, if the
    host queries their outcome"""
    MP_LOG_DEBUG = 4
    """every call"""


MP_LOG_ERROR = mp_log_level_t.MP_LOG_ERROR
MP_LOG_WARN = mp_log_level_t.MP_LOG_WARN
MP_LOG_INFO = mp_log_level_t.MP_LOG_INFO
MP_LOG_DEBUG = mp_log_level_t.MP_LOG_DEBUG


class mp_dtype_t(enum.IntEnum):
    """Element types.  0 is invalid, so that an unset field is an error."""

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
    """Target that the kernels of a context are compiled for."""

    MP_TARGET_CUDA = 1
    MP_TARGET_HOST = 2


MP_TARGET_CUDA = mp_target_t.MP_TARGET_CUDA
MP_TARGET_HOST = mp_target_t.MP_TARGET_HOST


class mp_op_t(enum.IntEnum):
    """Form of an operand: as stored (N) or transposed (T)."""

    MP_OP_N = 0
    MP_OP_T = 1


MP_OP_N = mp_op_t.MP_OP_N
MP_OP_T = mp_op_t.MP_OP_T


class mp_activation_t(enum.IntEnum):
    """Activation function, or its derivative, applied to each element of a result."""

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
    """Dimension that is divided among the groups of mp_gemm_ragged."""

    MP_RAGGED_M = 0
    """rows: forward pass and input gradients of experts"""
    MP_RAGGED_K = 1
    """k: weight gradients of experts"""


MP_RAGGED_M = mp_ragged_t.MP_RAGGED_M
MP_RAGGED_K = mp_ragged_t.MP_RAGGED_K


class mp_conv_op_t(enum.IntEnum):
    """Pass of a convolutional layer: forward, input gradient (dgrad) or weight gradient (wgrad)."""

    MP_CONV_FPROP = 0
    MP_CONV_DGRAD = 1
    MP_CONV_WGRAD = 2


MP_CONV_FPROP = mp_conv_op_t.MP_CONV_FPROP
MP_CONV_DGRAD = mp_conv_op_t.MP_CONV_DGRAD
MP_CONV_WGRAD = mp_conv_op_t.MP_CONV_WGRAD


class mp_scaler_policy_t(enum.IntEnum):
    """Policy that adapts the loss scale S to the gradients.  A step is clean if its outcome is
    MP_STEP_TAKEN; other steps are skipped.  docs/loss-scaler.md compares the policies."""

    MP_SCALER_STATIC = 0
    """Constant S.  bf16 training uses this policy with S = 1."""
    MP_SCALER_BACKOFF = 1
    """Multiplicative backoff and growth.  An overflow sets S *= backoff_factor.  growth_interval
    clean steps in a row set S *= growth_factor, unless the product is not finite.

    With hysteresis h > 1, h - 1 overflows leave S unchanged; further ones back off until the
    budget is refilled.  S growing refills it (Megatron-LM) or, with MP_SCALER_REFILL_EACH_STEP,
    every clean step (Apex, update_scale_hysteresis).
    Source: torch.amp.GradScaler."""
    MP_SCALER_LOGNORMAL = 2
    """Statistical model of the gradients.  log2 of the largest unscaled gradient is modeled as
    normal, with running mean mu (decay beta1) and deviation sigma (decay beta2, at least
    sigma_floor):

        S = 2^floor(e - h),  e = floor(log2_max - mu - overflow_std_dev * sigma)

    The probability of an overflow is therefore small and fixed.  h is a headroom in bits,
    initially 0:

    - An overflow does not change mu and sigma, backs off once, and raises h.
    - Every growth_interval clean steps, h decreases by one bit.
    - If overflows precede the first statistics, h begins with the value that leaves S unchanged.

    Without h the policy would livelock if an activation gradient, which the statistics do not
    include, overflows before the weight gradients do.  A step whose gradients are all zero
    changes nothing.
    Source: OpenSeq2Seq LogMaxScaler, with its defects repaired (there an overflow feeds
    2^log_max into a mean of log2 values and pins S at its minimum for ~12,000 steps)."""
    MP_SCALER_LOGMAX = 3
    """OpenSeq2Seq's LogMaxScaler with its defects; see mpcore/compat.h."""


MP_SCALER_STATIC = mp_scaler_policy_t.MP_SCALER_STATIC
MP_SCALER_BACKOFF = mp_scaler_policy_t.MP_SCALER_BACKOFF
MP_SCALER_LOGNORMAL = mp_scaler_policy_t.MP_SCALER_LOGNORMAL
MP_SCALER_LOGMAX = mp_scaler_policy_t.MP_SCALER_LOGMAX


class mp_scaler_flags_t(enum.IntFlag):
    """Bits of mp_scaler_config.flags."""

    MP_SCALER_REFILL_EACH_STEP = 1
    """backoff: clean steps refill hysteresis"""
    MP_SCALER_FIRST_STEP_UNCOUNTED = 2
    """Backoff: the first clean step, and the first one after each overflow, does not count towards
    growth_interval.
    Source: DeepSpeed FP16_Optimizer."""


MP_SCALER_REFILL_EACH_STEP = mp_scaler_flags_t.MP_SCALER_REFILL_EACH_STEP
MP_SCALER_FIRST_STEP_UNCOUNTED = mp_scaler_flags_t.MP_SCALER_FIRST_STEP_UNCOUNTED


class mp_scaler_status_t(enum.IntEnum):
    """Health of a scaler."""

    MP_SCALER_OK = 0
    MP_SCALER_DIVERGED = 1
    """diverged_after skips in a row, or 1/S is not finite"""


MP_SCALER_OK = mp_scaler_status_t.MP_SCALER_OK
MP_SCALER_DIVERGED = mp_scaler_status_t.MP_SCALER_DIVERGED


class mp_optimizer_kind_t(enum.IntEnum):
    """Update rule.  Symbols in the formulas:

        g    unscaled, clipped gradient            wd      weight_decay
        w    fp32 master weight                    b1, b2  beta1, beta2
        |x|  norm of one tensor, as in mp_l2norm   t       applied (not skipped) steps, including
                                                           the current one"""

    MP_OPT_SGD = 1
    """Stochastic gradient descent with momentum:

        m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m

    MP_OPT_NESTEROV: w -= lr (g + momentum m).  Decay: g += wd w.  With
    MP_OPT_DECAY_AFTER_MOMENTUM: w -= lr wd w, which does not enter the momentum.

    MP_OPT_LARS and MP_OPT_LARC: g = a (g + wd w) instead, with a trust ratio a per tensor:

        LARS: a = trust |w| / (|g| + wd |w| + eps);   LARC: a = min(1, a_LARS / lr)

    a is 1 if |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
    and tensors that are initially 0 stay near it.)
    Source: You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
    algorithm 1; LARC: Apex, apex/parallel/LARC.py."""
    MP_OPT_ADAM = 2
    """Adam, and AdamW with MP_OPT_DECOUPLED_DECAY:

        m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)

    mhat and vhat are m and v with bias correction.  Decay: g += wd w.  With
    MP_OPT_DECOUPLED_DECAY: w -= lr wd w.
    Source: Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2."""
    MP_OPT_LAMB = 3
    """LAMB: w -= lr r u with the trust ratio r = |w| / |u|, where w -= lr u is the step of
    MP_OPT_ADAM with the same flags, including decay.  r is 1 if |w| or |u| is 0 and, without
    MP_OPT_NVLAMB, for tensors with wd = 0 (biases, normalization), as in Apex's FusedLAMB.

    The paper's form has MP_OPT_DECOUPLED_DECAY, which mp_optimizer_desc_default sets.  Apex
    includes global clipping; here it is mp_step_options.max_grad_norm.
    Source: You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2."""
    MP_OPT_NOVOGRAD = 4
    """NovoGrad, with one v per tensor:

        v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1)
        m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m

    dampening = b1 averages the gradients, like grad_averaging of the original implementation.
    (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
    corrects the bias of a v that is not biased.  This is the paper's form.)
    Source: Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
    algorithm 1."""
    MP_OPT_ADAGRAD = 5
    """Adagrad: v += g^2;  w -= lr g / (sqrt(v) + eps).

    The initial v may be above 0 (TensorFlow: 0.1).  Decay: g += wd w.  With
    MP_OPT_DECOUPLED_DECAY: w -= lr wd w.
    Source: Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch."""
    MP_OPT_RMSPROP = 6
    """RMSProp: v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps).

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
    """Bits of mp_optimizer_desc.flags; bit 3 is unused."""

    MP_OPT_NESTEROV = 1
    """SGD"""
    MP_OPT_DECOUPLED_DECAY = 2
    """Adam (then AdamW), LAMB, Adagrad"""
    MP_OPT_NO_BIAS_CORRECTION = 4
    """Adam, LAMB: mhat = m, vhat = v"""
    MP_OPT_MODEL_OVERFLOW = 16
    """Lets the 16-bit copy of a weight become infinite on overflow.  By default it is clamped to the
    largest finite value: an infinite weight makes every later gradient non-finite, so every later
    step would be skipped and training would never recover."""
    MP_OPT_DECAY_AFTER_MOMENTUM = 32
    """SGD; excludes MP_OPT_LARC and MP_OPT_LARS"""
    MP_OPT_LARC = 64
    """SGD"""
    MP_OPT_LARS = 128
    """SGD; excludes MP_OPT_LARC"""
    MP_OPT_NVLAMB = 256
    """LAMB: also adapts tensors without decay"""
    MP_OPT_STOCHASTIC_ROUNDING = 512
    """Rounds the 16-bit copy of a weight up or down at random, so that its expected value is the
    weight.  Changes below half a unit in the last place then survive on average.  Weights that
    the 16-bit type can represent are unchanged.

    The random numbers depend only on rounding_seed, t, and the indices of tensor and element.
    They are equal on all devices and after a resume.  Probabilities are exact (fp16 subnormals:
    to within 2^-32).
    Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1;
    Philox 4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011."""


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
    """Learning-rate schedule, evaluated on the device: a skipped step does not advance it, and a
    captured graph needs no host work.  Every schedule begins with a linear warm-up:

        lr(t) = lr t / warmup_steps   for t <= warmup_steps

    In the formulas, s = t - 1 - warmup_steps counts the steps after the warm-up, so the first of
    them has s = 0; p = min(s / decay_steps, 1).  Rates are computed in fp64 and rounded once."""

    MP_LR_CONSTANT = 0
    """lr(t) = lr"""
    MP_LR_POLYNOMIAL = 1
    """lr_end + (lr - lr_end) (1 - p)^decay_power; linear if decay_power is 1"""
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
    """Element-wise reduction across ranks."""

    MP_REDUCE_SUM = 0
    MP_REDUCE_MAX = 1
    """finite values >= 0 only; libraries treat NaN differently"""


MP_REDUCE_SUM = mp_reduce_op_t.MP_REDUCE_SUM
MP_REDUCE_MAX = mp_reduce_op_t.MP_REDUCE_MAX


class mp_step_flags_t(enum.IntFlag):
    """Bits of mp_step_options.flags."""

    MP_STEP_KEEP_SCALER = 1
    """Leaves the scaler and its flag to a later step, for optimizers that share a scaler.  All
    optimizers except the last use this flag (or all do, and mp_scaler_update(scaler, NULL,
    stream) follows).  An optimizer skips for its own gradients and those of previous steps.  To
    skip all of them together, check the later lists first:

        mp_check_nonfinite(grads_of_b, mp_scaler_found_inf(scaler), stream);
        options.flags = MP_STEP_KEEP_SCALER;
        mp_scale_step(a, scaler, &options, stream);
        mp_scale_step(b, scaler, NULL, stream);     // S follows its policy"""
    MP_STEP_UNSCALED = 2
    """The gradients come from mp_grads_accumulate or mp_grads_to_fp32: they already include 1/S, and
    the scaler uses the amax recorded there, which lognormal and logmax require.  Add
    MP_STEP_CHECKED if the last call had MP_ACCUMULATE_LAST."""
    MP_STEP_CHECKED = 4
    """The producer of the gradients has checked them: the epilogues of GEMMs and convolutions set
    mp_scaler_found_inf (without a scaler: that of mp_optimizer_get_scaler) and update amax.  The
    step omits pass 1, which saves a launch and one of two reads of every gradient.

    Not supported with outputs and limits that need pass 1: max_grad_norm, grad_norm,
    tensor_norms, reports, and a group's max_tensor_norm."""
    MP_STEP_SHARDED = 8
    """Sharded optimizer, with comm: every rank owns some tensors, none divided between ranks, and
    may own none; the norm is that of the tensors of all ranks.  Without this flag all ranks have
    the same gradients."""


MP_STEP_KEEP_SCALER = mp_step_flags_t.MP_STEP_KEEP_SCALER
MP_STEP_UNSCALED = mp_step_flags_t.MP_STEP_UNSCALED
MP_STEP_CHECKED = mp_step_flags_t.MP_STEP_CHECKED
MP_STEP_SHARDED = mp_step_flags_t.MP_STEP_SHARDED


class mp_accumulate_flags_t(enum.IntFlag):
    """Flags of mp_grads_accumulate."""

    MP_ACCUMULATE_FIRST = 1
    """First gradients of a window: sums are overwritten, not read."""
    MP_ACCUMULATE_LAST = 2
    """Last gradients before an update by an optimizer of the host program: the sums are checked too,
    and mp_step_query returns the outcome after this call.  If there are several lists, only the
    last one has this flag.  Nothing may set the scaler's flag between this call and
    mp_scaler_update.  The outcome is that of this rank's gradients; with several ranks, call
    mp_grad_all_reduce first."""


MP_ACCUMULATE_FIRST = mp_accumulate_flags_t.MP_ACCUMULATE_FIRST
MP_ACCUMULATE_LAST = mp_accumulate_flags_t.MP_ACCUMULATE_LAST


class mp_step_outcome_t(enum.IntEnum):
    """Outcome of a step.  If several causes apply: OVERFLOW, then NO_SCALE, then RANGE.  Queries, the
    state of the scaler and mp_step_options report the same outcome; mp_scaler_get_history_sync has
    its own codes."""

    MP_STEP_PENDING = 0
    """the device has not finished the step"""
    MP_STEP_TAKEN = 1
    MP_STEP_SKIPPED = 2
    """Lower bound of all skips, for comparisons (outcome >= MP_STEP_SKIPPED); never reported.  A
    skipped step updates neither weights nor moments."""
    MP_STEP_RANGE = 3
    """Skipped: the largest |gradient| times the factor that unscales and clips is not below 2^63, or
    that factor is not finite.  S is unchanged, because no other S would help."""
    MP_STEP_NO_SCALE = 5
    """Skipped: S is 0, or 1/S is not finite.  The scaler's status becomes MP_SCALER_DIVERGED.  (4 is
    reserved.)"""
    MP_STEP_OVERFLOW = 6
    """skipped: the flag was set, or a gradient or amax is not finite; S follows its policy"""


MP_STEP_PENDING = mp_step_outcome_t.MP_STEP_PENDING
MP_STEP_TAKEN = mp_step_outcome_t.MP_STEP_TAKEN
MP_STEP_SKIPPED = mp_step_outcome_t.MP_STEP_SKIPPED
MP_STEP_RANGE = mp_step_outcome_t.MP_STEP_RANGE
MP_STEP_NO_SCALE = mp_step_outcome_t.MP_STEP_NO_SCALE
MP_STEP_OVERFLOW = mp_step_outcome_t.MP_STEP_OVERFLOW


class mp_autocast_class_t(enum.IntEnum):
    """Class of an operation: the list that contains it.  Names follow TensorFlow."""

    MP_CAST_UNLISTED = 0
    """fp32, independent of its neighbors"""
    MP_CAST_ALLOW = 1
    """always low precision: numerically safe, and faster"""
    MP_CAST_INFER = 2
    """low precision between low-precision nodes, except downstream of a DENY"""
    MP_CAST_DENY = 3
    """fp32.  Propagates downstream through MP_CAST_INFER nodes, and through MP_CAST_CLEAR nodes that
    lead to another MP_CAST_INFER or MP_CAST_DENY."""
    MP_CAST_CLEAR = 4
    """no numerical effect: takes the precision of its neighbors"""
    MP_CAST_PROMOTE = 5
    """MP_AUTOCAST_PYTORCH: low precision if all floating-point inputs are.  Other presets treat it
    as MP_CAST_INFER."""


MP_CAST_UNLISTED = mp_autocast_class_t.MP_CAST_UNLISTED
MP_CAST_ALLOW = mp_autocast_class_t.MP_CAST_ALLOW
MP_CAST_INFER = mp_autocast_class_t.MP_CAST_INFER
MP_CAST_DENY = mp_autocast_class_t.MP_CAST_DENY
MP_CAST_CLEAR = mp_autocast_class_t.MP_CAST_CLEAR
MP_CAST_PROMOTE = mp_autocast_class_t.MP_CAST_PROMOTE


class mp_autocast_preset_t(enum.IntEnum):
    """Lists of operations and rules of propagation."""

    MP_AUTOCAST_DEFAULT = 0
    """Names of mpcore, ONNX, TensorFlow and PyTorch.  MP_CAST_ALLOW: products, convolutions,
    attention, recurrent layers.  MP_CAST_INFER: batch norm.  MP_CAST_DENY: softmax, norms over a
    row, losses, sums."""
    MP_AUTOCAST_TENSORFLOW = 1
    """lists of TensorFlow 2.21 for fp16"""
    MP_AUTOCAST_TENSORFLOW_BF16 = 2
    """lists of TensorFlow 2.21 for bf16"""
    MP_AUTOCAST_PYTORCH = 3
    """Lists of torch.amp in PyTorch 2.11 for GPUs, names without overload, plus functions composed
    of listed operations, such as cross_entropy and interpolate.  Unknown operations are
    MP_CAST_CLEAR.

    Propagation is that of torch.amp, one pass in execution order: a node is low precision if it
    is MP_CAST_ALLOW, or if all its floating-point inputs are and no list requires fp32.
    MP_CAST_DENY does not propagate."""
    MP_AUTOCAST_ONNX = 4
    """names of ONNX; the block list of onnxconverter-common is unlisted"""


MP_AUTOCAST_DEFAULT = mp_autocast_preset_t.MP_AUTOCAST_DEFAULT
MP_AUTOCAST_TENSORFLOW = mp_autocast_preset_t.MP_AUTOCAST_TENSORFLOW
MP_AUTOCAST_TENSORFLOW_BF16 = mp_autocast_preset_t.MP_AUTOCAST_TENSORFLOW_BF16
MP_AUTOCAST_PYTORCH = mp_autocast_preset_t.MP_AUTOCAST_PYTORCH
MP_AUTOCAST_ONNX = mp_autocast_preset_t.MP_AUTOCAST_ONNX


class mp_autocast_level_t(enum.IntEnum):
    """Override of all lists."""

    MP_AUTOCAST_NORMAL = 0
    """no override"""
    MP_AUTOCAST_INFER_AS_DENY = 1
    """conservative: MP_CAST_INFER becomes MP_CAST_DENY"""
    MP_AUTOCAST_TENSOR_CORES_ONLY = 2
    """all but MP_CAST_ALLOW become MP_CAST_UNLISTED"""
    MP_AUTOCAST_FORCE_ALL = 3
    """Low precision wherever possible, except constants, state and cross-entropies.  For tests;
    MP_FP16 only."""


MP_AUTOCAST_NORMAL = mp_autocast_level_t.MP_AUTOCAST_NORMAL
MP_AUTOCAST_INFER_AS_DENY = mp_autocast_level_t.MP_AUTOCAST_INFER_AS_DENY
MP_AUTOCAST_TENSOR_CORES_ONLY = mp_autocast_level_t.MP_AUTOCAST_TENSOR_CORES_ONLY
MP_AUTOCAST_FORCE_ALL = mp_autocast_level_t.MP_AUTOCAST_FORCE_ALL


class mp_autocast_flags_t(enum.IntFlag):
    """Bits of mp_autocast_config.flags."""

    MP_AUTOCAST_NO_ENVIRONMENT = 1
    """ignores environment variables"""
    MP_AUTOCAST_IGNORE_PERFORMANCE = 2
    """disables the gate, see mp_autocast_gate"""
    MP_AUTOCAST_KEEP_IO = 4
    """Keeps tensors of role MP_TENSOR_OUTPUT in fp32 for the caller, who counts as a reader."""
    MP_AUTOCAST_EMULATE = 8
    """Emulates 16-bit arithmetic: low-precision nodes compute in fp32 on rounded values.  See
    mp_autocast_result."""


MP_AUTOCAST_NO_ENVIRONMENT = mp_autocast_flags_t.MP_AUTOCAST_NO_ENVIRONMENT
MP_AUTOCAST_IGNORE_PERFORMANCE = mp_autocast_flags_t.MP_AUTOCAST_IGNORE_PERFORMANCE
MP_AUTOCAST_KEEP_IO = mp_autocast_flags_t.MP_AUTOCAST_KEEP_IO
MP_AUTOCAST_EMULATE = mp_autocast_flags_t.MP_AUTOCAST_EMULATE


class mp_node_flags_t(enum.IntFlag):
    """Bits of mp_autocast_graph.node_flags."""

    MP_NODE_KEEP = 1
    """stays fp32: fetched, fed, or requested by the caller"""
    MP_NODE_ELSEWHERE = 2
    """stays fp32: runs on another device"""
    MP_NODE_NO_LOW = 4
    """stays fp32: no 16-bit kernel; its class still propagates"""
    MP_NODE_CAST = 8
    """converts to the type of its output"""
    MP_NODE_READS_VARIABLE = 16
    """Reads a variable in place (Identity or Enter of TensorFlow's reference variables); low
    precision does not propagate through it."""
    MP_NODE_BACK_EDGE = 32
    """back edge (NextIteration): follows the rest of its loop"""
    MP_NODE_READS_EITHER = 64
    """reads fp32 and low precision, except on MP_SLOT_FP32"""
    MP_NODE_WRITES_EITHER = 128
    """can write fp32 or low precision, like mp_gemm (dtype_cd)"""


MP_NODE_KEEP = mp_node_flags_t.MP_NODE_KEEP
MP_NODE_ELSEWHERE = mp_node_flags_t.MP_NODE_ELSEWHERE
MP_NODE_NO_LOW = mp_node_flags_t.MP_NODE_NO_LOW
MP_NODE_CAST = mp_node_flags_t.MP_NODE_CAST
MP_NODE_READS_VARIABLE = mp_node_flags_t.MP_NODE_READS_VARIABLE
MP_NODE_BACK_EDGE = mp_node_flags_t.MP_NODE_BACK_EDGE
MP_NODE_READS_EITHER = mp_node_flags_t.MP_NODE_READS_EITHER
MP_NODE_WRITES_EITHER = mp_node_flags_t.MP_NODE_WRITES_EITHER


class mp_tensor_role_t(enum.IntEnum):
    """Role of a tensor."""

    MP_TENSOR_ACTIVATION = 0
    MP_TENSOR_PARAMETER = 1
    """an optimizer has its fp32 master and can keep a 16-bit copy"""
    MP_TENSOR_OUTPUT = 2
    """read by the caller"""


MP_TENSOR_ACTIVATION = mp_tensor_role_t.MP_TENSOR_ACTIVATION
MP_TENSOR_PARAMETER = mp_tensor_role_t.MP_TENSOR_PARAMETER
MP_TENSOR_OUTPUT = mp_tensor_role_t.MP_TENSOR_OUTPUT


class mp_cast_kind_t(enum.IntEnum):
    """Source of the converted tensor."""

    MP_CAST_BY_KERNEL = 1
    """mp_cast, once for all readers"""
    MP_CAST_BY_MODEL_COPY = 2
    """The 16-bit copy of a parameter that the optimizer writes (mp_optimizer_desc.model): no
    kernel."""


MP_CAST_BY_KERNEL = mp_cast_kind_t.MP_CAST_BY_KERNEL
MP_CAST_BY_MODEL_COPY = mp_cast_kind_t.MP_CAST_BY_MODEL_COPY


class mp_autocast_why_t(enum.IntEnum):
    """Reason for the type of a node: fp32 if < 32, otherwise low precision.  node_because is the node
    in brackets."""

    MP_WHY_UNLISTED = 1
    """MP_CAST_UNLISTED: on no list, or by level"""
    MP_WHY_DENY_LIST = 2
    """MP_CAST_DENY by list, pattern, node_class or level"""
    MP_WHY_DENY_UPSTREAM = 3
    """downstream of an MP_CAST_DENY [that node]"""
    MP_WHY_RANGE = 4
    """tensor_amax of a tensor exceeds amax_limit"""
    MP_WHY_DEPTH = 5
    """node_depth exceeds depth_limit"""
    MP_WHY_KEPT = 6
    """MP_NODE_KEEP"""
    MP_WHY_ELSEWHERE = 7
    """MP_NODE_ELSEWHERE"""
    MP_WHY_NO_KERNEL = 8
    """MP_NODE_NO_LOW"""
    MP_WHY_NO_ALLOW_NEARBY = 9
    """could be low precision, but none propagates to it"""
    MP_WHY_NOT_FLOAT = 10
    """reads and writes no MP_FP32 tensor"""
    MP_WHY_GATE = 11
    """gate closed, see mp_autocast_result.gate"""
    MP_WHY_CLUSTER_FP32 = 12
    """in an fp32 cluster [the member that requires fp32]"""
    MP_WHY_ALLOW_LIST = 32
    """MP_CAST_ALLOW by list, node_class or level"""
    MP_WHY_BETWEEN_ALLOW = 33
    """INFER or CLEAR between two MP_CAST_ALLOW [the downstream one]"""
    MP_WHY_FOLLOWS_ALLOW = 34
    """Downstream of a low-precision node [that node], with MP_BF16 or MP_AUTOCAST_PYTORCH."""
    MP_WHY_CLEAR_BESIDE_LOW = 35
    """MP_CAST_CLEAR connected to a low-precision node [that node]"""
    MP_WHY_CLUSTER_LOW = 36
    """in a low-precision cluster [the member that caused it]"""
    MP_WHY_CAST_ABSORBED = 37
    """cast to fp32 with only low-precision readers [the first]"""
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
    """Format of a report."""

    MP_AUTOCAST_TEXT = 0
    """One line per node, "conv1/bn  FusedBatchNormV3  fp16  between conv1/conv and conv2/conv", and
    a summary."""
    MP_AUTOCAST_JSON = 1
    MP_AUTOCAST_DOT = 2
    """for Graphviz: low precision green, fp32 red, casts on the edges"""


MP_AUTOCAST_TEXT = mp_autocast_form_t.MP_AUTOCAST_TEXT
MP_AUTOCAST_JSON = mp_autocast_form_t.MP_AUTOCAST_JSON
MP_AUTOCAST_DOT = mp_autocast_form_t.MP_AUTOCAST_DOT


class mp_xent_flags_t(enum.IntFlag):
    """Bits of mp_xent_desc_t.flags."""

    MP_XENT_IGNORE_LABEL = 1
    """excludes rows whose label is `ignore_label`"""


MP_XENT_IGNORE_LABEL = mp_xent_flags_t.MP_XENT_IGNORE_LABEL


class mp_loss_kind_t(enum.IntEnum):
    """Loss l(x, t) of one prediction x and its target t."""

    MP_LOSS_MSE = 1
    """(x - t)^2"""
    MP_LOSS_L1 = 2
    """|x - t|; derivative 0 at x = t"""
    MP_LOSS_BCE_WITH_LOGITS = 3
    """-t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x))"""


MP_LOSS_MSE = mp_loss_kind_t.MP_LOSS_MSE
MP_LOSS_L1 = mp_loss_kind_t.MP_LOSS_L1
MP_LOSS_BCE_WITH_LOGITS = mp_loss_kind_t.MP_LOSS_BCE_WITH_LOGITS


class mp_loss_reduction_t(enum.IntEnum):
    """Divisor of the sum of element losses."""

    MP_LOSS_MEAN = 0
    """number of elements that are not ignored"""
    MP_LOSS_SUM = 1
    """1"""


MP_LOSS_MEAN = mp_loss_reduction_t.MP_LOSS_MEAN
MP_LOSS_SUM = mp_loss_reduction_t.MP_LOSS_SUM


class mp_loss_flags_t(enum.IntFlag):
    """Bits of mp_loss_desc_t.flags."""

    MP_LOSS_IGNORE_TARGET = 1
    """excludes elements whose target is `ignore_target`"""


MP_LOSS_IGNORE_TARGET = mp_loss_flags_t.MP_LOSS_IGNORE_TARGET


class mp_pool_mode_t(enum.IntEnum):
    """Reduction of a window."""

    MP_POOL_MAX = 1
    """largest element; padding is excluded"""
    MP_POOL_AVG_INCLUDE_PAD = 2
    """sum / number of pixels in the padded image; padding is 0"""
    MP_POOL_AVG_EXCLUDE_PAD = 3
    """sum / number of pixels in the image"""


MP_POOL_MAX = mp_pool_mode_t.MP_POOL_MAX
MP_POOL_AVG_INCLUDE_PAD = mp_pool_mode_t.MP_POOL_AVG_INCLUDE_PAD
MP_POOL_AVG_EXCLUDE_PAD = mp_pool_mode_t.MP_POOL_AVG_EXCLUDE_PAD


class mp_pool_flags_t(enum.IntFlag):
    """Bits of mp_pool2d_desc_t.flags."""

    MP_POOL_CEIL = 1
    """Rounds P and Q up, like ceil_mode of torch: the last window may extend beyond the padding, but
    starts inside the image or the padding before it."""


MP_POOL_CEIL = mp_pool_flags_t.MP_POOL_CEIL


class mp_pointwise_op_t(enum.IntEnum):
    """Element-wise operation on a and b."""

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
    """Cell type."""

    MP_RNN_TANH = 1
    MP_RNN_RELU = 2
    MP_RNN_LSTM = 3
    """gate order in the rows of the weights: i f g o"""
    MP_RNN_GRU = 4
    """gate order in the rows of the weights: r z n"""


MP_RNN_TANH = mp_rnn_cell_t.MP_RNN_TANH
MP_RNN_RELU = mp_rnn_cell_t.MP_RNN_RELU
MP_RNN_LSTM = mp_rnn_cell_t.MP_RNN_LSTM
MP_RNN_GRU = mp_rnn_cell_t.MP_RNN_GRU


class mp_rnn_flags_t(enum.IntFlag):
    """Bits of mp_rnn_desc_t.flags."""

    MP_RNN_BIDIRECTIONAL = 1
    MP_RNN_NO_BIAS = 2
    """no biases; b_ih and b_hh are ignored"""
    MP_RNN_SKIP_INPUT = 4
    """Replaces the input product of the first layer by x_t, which is added to every gate.  W_ih is
    ignored; input_size must equal hidden_size."""
    MP_RNN_RESET_FIRST = 8
    """Applies the reset gate before the product, MP_RNN_GRU only: n = tanh(p_n + (r h) W_n^T + b_n).
    A time step then has two dependent products.
    Source: Cho et al. 2014; reset_after=False in TensorFlow and Keras."""
    MP_RNN_ACCUMULATE = 16
    """Adds the gradients of weights and biases to the previous values, for micro-batches.  With
    dtype_dw = MP_FP32 partial sums are not rounded to 16 bits."""


MP_RNN_BIDIRECTIONAL = mp_rnn_flags_t.MP_RNN_BIDIRECTIONAL
MP_RNN_NO_BIAS = mp_rnn_flags_t.MP_RNN_NO_BIAS
MP_RNN_SKIP_INPUT = mp_rnn_flags_t.MP_RNN_SKIP_INPUT
MP_RNN_RESET_FIRST = mp_rnn_flags_t.MP_RNN_RESET_FIRST
MP_RNN_ACCUMULATE = mp_rnn_flags_t.MP_RNN_ACCUMULATE


class mp_embedding_flags_t(enum.IntFlag):
    """Bits of mp_embedding_desc_t.flags."""

    MP_EMBEDDING_PADDING = 1
    """Makes the gradient of row `padding_index` 0.  The forward pass reads that row like any other,
    as in torch."""
    MP_EMBEDDING_ACCUMULATE = 2
    """Adds the gradient to the previous value, for micro-batches or a table that is used twice.
    With dtype_dtable = MP_FP32 partial sums are not rounded to 16 bits."""


MP_EMBEDDING_PADDING = mp_embedding_flags_t.MP_EMBEDDING_PADDING
MP_EMBEDDING_ACCUMULATE = mp_embedding_flags_t.MP_EMBEDDING_ACCUMULATE


class mp_graph_mode_t(enum.IntEnum):
    """Mode of a forward pass."""

    MP_GRAPH_INFERENCE = 0
    """BatchNorm uses its states, Dropout is the identity.  The loss and tensors that depend on it
    are computed only if labels or target are bound."""
    MP_GRAPH_TRAINING = 1
    """Prepares mp_graph_backward, which computes the loss together with its gradient, and tensors
    that depend on the loss."""


MP_GRAPH_INFERENCE = mp_graph_mode_t.MP_GRAPH_INFERENCE
MP_GRAPH_TRAINING = mp_graph_mode_t.MP_GRAPH_TRAINING


class mp_scaler_preset_t(enum.IntEnum):
    """Policies of other systems, with their defaults.  S is equal to theirs after every step while S
    is a finite fp32 number.  All are MP_SCALER_BACKOFF except the first and the last; the returned
    configuration can be modified.

    Differences at the limits: Megatron, DeepSpeed and Keras 3 let S grow beyond the finite numbers,
    after which every step is lost; here S stops.  Apex raises an error at S = 0, and DeepSpeed's
    DynamicLossScaler at an overflow with S = 1; here S stays."""

    MP_SCALER_PRESET_LOGNORMAL = 0
    """This library's lognormal policy: mp_scaler_config_default(MP_SCALER_LOGNORMAL)."""
    MP_SCALER_PRESET_TORCH = 1
    """torch.amp.GradScaler.  Initial S 2^16, interval 2000, no limits."""
    MP_SCALER_PRESET_APEX_AMP = 2
    """apex.amp LossScaler, apex/amp/scaler.py (removed from Apex in 2025).  Initial S 2^16, interval
    2000, no minimum, maximum 2^24."""
    MP_SCALER_PRESET_APEX_HYSTERESIS = 3
    """Apex csrc/update_scale_hysteresis.cu: torch's rule, but S backs off only after 2 overflows
    without a clean step between them.  The kernel has no defaults; the preset uses torch's, and
    Megatron's hysteresis of 2."""
    MP_SCALER_PRESET_MEGATRON = 4
    """Megatron-LM DynamicGradScaler, core/optimizer/grad_scaler.py.  Initial S 2^32, interval 1000,
    minimum 1, hysteresis 2, refilled when S grows."""
    MP_SCALER_PRESET_DEEPSPEED = 5
    """DeepSpeed DynamicLossScaler, runtime/fp16/loss_scaler.py (ZeRO), with the defaults of the
    "fp16" section of its configuration: initial S 2^16, interval 1000, minimum 1, hysteresis 2.
    For consecutive_hysteresis set MP_SCALER_REFILL_EACH_STEP."""
    MP_SCALER_PRESET_DEEPSPEED_FUSED = 6
    """DeepSpeed FP16_Optimizer, runtime/fp16/fused_optimizer.py (without ZeRO).  Like
    MP_SCALER_PRESET_DEEPSPEED without hysteresis, but the first growth takes 1001 clean steps."""
    MP_SCALER_PRESET_KERAS = 7
    """tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  Initial S 2^15, interval
    2000, minimum 1."""
    MP_SCALER_PRESET_KERAS_3 = 8
    """keras.optimizers.LossScaleOptimizer of Keras 3.  Initial S 2^15, interval 2000, no limits."""
    MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF = 9
    """OpenSeq2Seq BackoffScaler, optimizers/automatic_loss_scaler.py.  Initial S 2^14, interval
    2000, minimum 1, maximum 2^14."""
    MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX = 10
    """OpenSeq2Seq LogMaxScaler: MP_SCALER_LOGMAX.  Initial S 1, minimum 1, maximum 2^14."""


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
"""Receives one log message.
@param message  one line without a newline, valid only during the callback.
@param user     the pointer passed to mp_set_log_callback."""


class _Sized(Structure):
    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class mp_allocator_t(_Sized):
    """Device memory allocator.  Called only by mp_*_create, mp_*_destroy, mp_graph_compile and
    mp_graph_set_batch.  If a callback throws a C++ exception, the call returns
    MP_ERROR_OUT_OF_MEMORY; mp_*_destroy logs an error instead."""

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
    """Returns 256-byte aligned memory, or NULL if out of memory."""
    free: Any
    """Frees memory that enqueued work may still be using."""
    user: Pointer


class mp_context_config_t(_Sized):
    """Device of a context and limits on its use."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("device", c_int32),
        ("sm_limit", c_int32),
        ("flags", c_uint32),
        ("allocator", POINTER(mp_allocator_t)),
    ]
    struct_size: int
    device: int
    """CUDA ordinal or MP_DEVICE_*"""
    sm_limit: int
    """maximum number of SMs, e.g. to leave room for NCCL; 0 = all"""
    flags: int
    """must be 0"""
    allocator: Pointer
    """Host, copied; NULL = cudaMalloc and cudaFree."""


class mp_device_info_t(_Sized):
    """Device properties."""

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
    """SMs in use, at most sm_limit"""
    smem_per_block: int
    """bytes of shared memory that a kernel may opt in to"""
    l2_bytes: int
    name: bytes
    """NUL-terminated"""


class mp_epilogue_t(_Sized):
    """Operations on the fp32 accumulators before they are rounded and stored, in this order:

        z = alpha * *scale * acc + beta * C + bias[col]
        aux = z                     (if aux != NULL and the activation is not a D* kind)
        y = activation(z)           (or z * activation'(aux) for the D* kinds)
        D = round(y)
        dbias[col] = sum_rows D,  amax = max(amax, |D|),  found_inf |= !isfinite(D)

    If alpha * *scale is 0, the first term is 0 for any acc, as in BLAS.

    Every activation propagates NaN.  Both forms of gelu and silu map -infinity to -0, their limit.
    The exact form of gelu has an error of at most 6 ulp, for negative results too, and gives the
    same bits on every device.

    dbias, amax and found_inf use y *after* rounding to the type of D, because overflow happens in
    that rounding.  dbias also sums over batch items, in fp32 and in a fixed order.  It is computed
    by a second pass over D or, on Hopper with a workspace of an eighth of D's size, from partial
    sums of 16 rows that the kernel writes.  All pointers are device pointers and optional."""

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
    """1 float; multiplies alpha, e.g. mp_scaler_inv_scale()"""
    bias: Pointer
    """n elements"""
    bias_dtype: int
    reserved0: int
    """must be 0"""
    aux: Pointer
    """m x n, type and batch layout of D; written, or read by MP_ACT_D*"""
    ld_aux: int
    """0 = ldd"""
    dbias: Pointer
    """n floats, overwritten; zeros if m or batch_count is 0"""
    amax: Pointer
    """1 float, updated; clear it first"""
    found_inf: Pointer
    """1 float, set to 1 and never cleared (sticky)"""


class mp_gemm_desc_t(_Sized):
    """Shape, types and layout of a GEMM.  A descriptor contains no data pointers, so it can be reused
    and serves as the key for workspace queries and kernel selection."""

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
    """any type, independent of dtype_ab"""
    alpha: float
    beta: float
    batch_count: int
    """Number of products, >= 0.  batch_count = 0 with alpha = 0 is an error: it indicates a
    descriptor that mp_gemm_desc_init has not initialized."""
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
    """Elements between batch items.  0 for a or b: all items share one matrix."""
    stride_b: int
    """Elements between batch items.  0 for a or b: all items share one matrix."""
    stride_c: int
    """Elements between batch items.  0 for a or b: all items share one matrix."""
    stride_d: int
    """Elements between batch items.  0 for a or b: all items share one matrix."""
    kernel: Optional[bytes]
    """host; NULL = automatic; see mpcore/experimental.h"""


class mp_gemm_group_item_t(_Sized):
    """One product of mp_gemm_grouped: shape and matrices, as in mp_gemm."""

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
    """in an array, also the distance between elements, in bytes"""
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
    """Shape, types and layout of a convolution.  Names follow the CUTLASS documentation:

        x, dx    activations  N H W C            dense, C contiguous
        y, dy    outputs      N P Q K
        filter   weights      K R S (C/groups)

        P = (pad_top + H + pad_bottom - dilation_h (R - 1) - 1) / stride_h + 1   (rounded down)
        y[n][p][q][k] = sum over r, s, c of  filter[k][r][s][c]
            x[n][p stride_h - pad_top + r dilation_h][q stride_w - pad_left + s dilation_w][c]

    Q is computed like P; x is 0 outside the image.  This is cross-correlation, which deep learning
    calls convolution.  Output channel k belongs to group k / (K/groups) and reads only the input
    channels of that group.  A 1-D convolution has h = r = 1.  If the filter is larger than the
    padded image, P or Q is 0: y is empty and contributes no gradient."""

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
    """type of both inputs; 16-bit: tensor cores; MP_FP32: CUDA cores"""
    dtype_out: int
    """type of the output: any, independent of dtype"""
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
    """rows, columns of zeros; >= 0"""
    pad_bottom: int
    """rows, columns of zeros; >= 0"""
    pad_left: int
    """rows, columns of zeros; >= 0"""
    pad_right: int
    """rows, columns of zeros; >= 0"""
    stride_h: int
    """>= 1"""
    stride_w: int
    """>= 1"""
    dilation_h: int
    """>= 1"""
    dilation_w: int
    """>= 1"""
    groups: int
    """divides c and k; groups = c: depthwise"""
    alpha: float
    """out = alpha * conv + beta * out; alpha = 0: inputs are not read"""
    beta: float
    """out = alpha * conv + beta * out; alpha = 0: inputs are not read"""
    reserved0: int
    """must be 0"""
    kernel: Optional[bytes]
    """host; NULL = automatic; see mpcore/experimental.h"""


class mp_tensor_list_desc_t(_Sized):
    """Addresses, sizes and types of `count` dense tensors.  All arrays are host, copied."""

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
    """type of all tensors, if `dtypes` is NULL"""
    count: int
    reserved0: int
    """must be 0"""
    data: Pointer
    """`count` device pointers, aligned to the element size.  NULL if numel is 0, or in the model
    list of an optimizer.  Tensors may overlap in a list that is only read; every call that writes
    to the list rejects overlaps with MP_ERROR_INVALID_ARGUMENT."""
    numel: Pointer
    """`count` sizes in elements, each >= 0 and in total less than 2^40."""
    dtypes: Pointer
    """One type per tensor, optional, e.g. for layers that stay in fp32."""


class mp_tensor_report_t(Structure):
    """Counts of special values in one tensor or in a list.  Kernels write reports into device memory,
    so the struct has no struct_size and is 64 bytes in every version."""

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
    """zeros of either sign"""
    num_subnormal: int
    """0 < |x| < 2^-14, for every type: fp16 stores such values with fewer
    significant bits, or as 0"""
    bad_tensor: int
    """Index of the first tensor that contains NaN or infinity, and of the first such element in it;
    -1 if there is none."""
    bad_element: int
    """Index of the first tensor that contains NaN or infinity, and of the first such element in it;
    -1 if there is none."""
    bad_value: float
    """value of that element; 0 if there is none"""
    amax: float
    """result of mp_amax"""


class mp_stats_outputs_t(_Sized):
    """Outputs of mp_tensor_stats.  Every pointer is device memory and optional, and receives the
    result of mp_check_nonfinite, mp_amax, mp_l2norm or mp_inspect."""

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
    """MP_INIT_STRUCT: no output is requested"""
    reserved0: int
    """must be 0"""
    found_inf: Pointer
    amax: Pointer
    """1 float; count floats"""
    tensor_amax: Pointer
    """1 float; count floats"""
    norm: Pointer
    """1 float; count floats"""
    tensor_norm: Pointer
    """1 float; count floats"""
    report: Pointer
    """1 report; count reports.  Counting makes the pass slower."""
    tensor_reports: Pointer
    """1 report; count reports.  Counting makes the pass slower."""


class mp_scaler_config_t(_Sized):
    """Parameters of a policy.  "backoff", "lognormal" and "logmax" name the policies that read a
    field.  Factors and decays are double, so that 0.99 is equal to Python's 0.99."""

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
    """bitwise or of mp_scaler_flags_t"""
    init_scale: float
    min_scale: float
    """Limits of S, > 0; may be below 1.  For backoff, 0 disables a limit.  Without min_scale, S may
    become 0.  If 1/S is infinite, mp_scale_step updates nothing (MP_STEP_NO_SCALE) and the status
    becomes MP_SCALER_DIVERGED."""
    max_scale: float
    """Limits of S, > 0; may be below 1.  For backoff, 0 disables a limit.  Without min_scale, S may
    become 0.  If 1/S is infinite, mp_scale_step updates nothing (MP_STEP_NO_SCALE) and the status
    becomes MP_SCALER_DIVERGED."""
    growth_factor: float
    """backoff; > 1"""
    backoff_factor: float
    """backoff, lognormal; in (0, 1)"""
    beta1: float
    """lognormal, logmax; in [0, 1)"""
    beta2: float
    """lognormal, logmax; in [0, 1)"""
    log2_max: float
    """lognormal: log2 of the largest finite gradient; logmax: compat.h"""
    overflow_std_dev: float
    """lognormal, logmax; 3.09 is the normal quantile of 0.999"""
    sigma_floor: float
    """lognormal; in bits"""
    growth_interval: int
    """>= 1; clean steps per growth of S or per bit of h"""
    hysteresis: int
    """backoff; overflows per backoff, >= 1"""
    diverged_after: int
    """Number of consecutive skipped steps after which the status is MP_SCALER_DIVERGED and S stays
    until a step is clean; 0 = never.  No S helps against a NaN of the forward pass, and lowering
    S further would end at min_scale or 0."""
    history: int
    """updates kept for mp_scaler_get_history_sync; at most 2^24"""
    reserved0: int
    """must be 0"""


class mp_scaler_state_t(_Sized):
    """State of a scaler, as saved in checkpoints.  Plain data that can be written to a file unchanged,
    to be read on machines of the same byte order."""

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
    """clean steps counted towards growth_interval; -1: the next one is not
    counted (MP_SCALER_FIRST_STEP_UNCOUNTED)"""
    hysteresis_left: int
    """overflows until S backs off; 0: every one backs off"""
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
    """updates so far"""
    skipped: int
    """skipped steps: overflows + out_of_range + no_scale"""
    skipped_nan: int
    """overflows with a NaN gradient (amax was NaN)"""
    skipped_in_row: int
    """skips since the last clean step"""
    overflows: int
    """Skips per outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE."""
    out_of_range: int
    """Skips per outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE."""
    no_scale: int
    """Skips per outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE."""


class mp_hyper_t(_Sized):
    """Hyperparameters of one parameter group.  0 disables a limit or a regularizer."""

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
    """in an array, also the distance between elements, in bytes"""
    lr: float
    """>= 0"""
    beta1: float
    """SGD, RMSProp: momentum; Adam, LAMB, NovoGrad"""
    beta2: float
    """Adam, LAMB, NovoGrad, RMSProp"""
    eps: float
    """> 0; SGD with MP_OPT_LARC or MP_OPT_LARS: >= 0"""
    weight_decay: float
    """>= 0"""
    dampening: float
    """SGD, NovoGrad"""
    trust: float
    """SGD with MP_OPT_LARC or MP_OPT_LARS: > 0"""
    max_tensor_norm: float
    """g *= min(1, max_tensor_norm / (|g| + 1e-6))"""
    max_value: float
    """g = clamp(g, -max_value, max_value)"""
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
    """Update rule, hyperparameters and tensors of an optimizer.

    The lists are parallel: equal counts and sizes.  Lists and tensors must outlive the optimizer.
    Written lists (master, model, m, v) may not overlap any other: mp_optimizer_create rejects a
    list, or the address of a tensor, that occurs twice, except in grads and extra_grads.

    m and v are usually NULL.  mp_optimizer_create then allocates those that the groups need, filled
    with 0, by the context's allocator; see mp_optimizer_moments.  If you pass m or v, initialize
    its tensors yourself."""

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
    """bitwise or of mp_optimizer_flags_t"""
    num_groups: int
    groups: Pointer
    """host, num_groups elements, copied"""
    tensor_group: Pointer
    """host, one index per tensor; NULL = all in group 0"""
    grads: Handle
    """any type; only read"""
    master: Handle
    """MP_FP32; updated"""
    model: Handle
    """16-bit copy of master, written; optional.  Parameters with a
    NULL data pointer have no 16-bit copy"""
    m: Handle
    """MP_FP32: momentum or first moment.  NULL: allocated, except for
    SGD and RMSProp if every group has beta1 = 0.  Adagrad: NULL"""
    v: Handle
    """MP_FP32: second moment.  NULL: allocated.  SGD: NULL.
    NovoGrad: as many tensors, of one element each"""
    lr_multipliers: Pointer
    """Device, one float per tensor, optional; NULL = all 1.  Every step reads them: they may be
    rewritten in stream order and must outlive the optimizer.

    lr_multipliers multiply lr; 0 freezes a tensor, but its m and v are still updated.
    decay_multipliers multiply weight_decay, l1 and l2."""
    decay_multipliers: Pointer
    """Device, one float per tensor, optional; NULL = all 1.  Every step reads them: they may be
    rewritten in stream order and must outlive the optimizer.

    lr_multipliers multiply lr; 0 freezes a tensor, but its m and v are still updated.
    decay_multipliers multiply weight_decay, l1 and l2."""
    extra_grads: Handle
    """MP_FP32, parallel to the other lists, optional: added to g after unscaling and clipping, e.g.
    the gradient of a custom penalty.  Every step reads it without checking it: an element whose
    extra gradient is infinite keeps its weight (mp_step_options.rejected_updates)."""
    rounding_seed: int
    """for MP_OPT_STOCHASTIC_ROUNDING; any value"""


class mp_model_options_t(_Sized):
    """Rounding of fp32 master weights to their 16-bit copy."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("rounding_seed", c_uint64),
        ("t", c_void_p),
        ("overflows", c_void_p),
    ]
    struct_size: int
    flags: int
    """MP_OPT_MODEL_OVERFLOW, MP_OPT_STOCHASTIC_ROUNDING"""
    rounding_seed: int
    """for MP_OPT_STOCHASTIC_ROUNDING, as in mp_optimizer_desc_t"""
    t: Pointer
    """Device, 1 integer, for MP_OPT_STOCHASTIC_ROUNDING: number of updates of the weights so far.
    With an optimizer of this library: mp_optimizer_step_counter after its step."""
    overflows: Pointer
    """see mp_step_options.model_overflows"""


class mp_comm_t(_Sized):
    """Communicator: a table of callbacks, so that the library links no communication library.
    mp_comm_init_nccl fills it for NCCL, bindings/mpi/mpcore_mpi.h for MPI on the host target.

    Callbacks run on the calling thread, during the call that received the communicator.  They
    enqueue on `stream` (on the host target: return after completion), receive `user` as the last
    argument, may call mpcore, and return 0.  Any other return value, or a C++ exception, ends the
    call with MP_ERROR_COMM.

    A call with a communicator is collective: all ranks make it, in the same order, with equal
    numbers of elements, types and flags.  Equality is not validated: a mismatch may deadlock,
    return an MPI error on some ranks, or give wrong sums.

    As with every collective, a rank whose call fails leaves the others waiting: in the same call
    or, if they have received all of its data, in the next one.  A call that is rejected (status
    below 40) has not communicated.  Weights and S of waiting ranks are those before the call.  A
    program should check every status and end all ranks (MPI_Abort) if one is not MP_SUCCESS; for
    alternatives see docs/multi-gpu.md."""

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
    """>= 1; with 1, no callback is called and all may be NULL"""
    reserved0: int
    """must be 0"""
    all_reduce: Any
    """Reduces `send` over all ranks into `recv`, with the same bits on every rank.  Device pointers;
    recv may be send."""
    group_begin: Any
    """optional, with group_end: begins a batch of all_reduce calls"""
    group_end: Any
    """ends the batch, also if an all_reduce failed"""
    user: Pointer
    """passed to the callbacks, e.g. the ncclComm_t"""


class mp_step_options_t(_Sized):
    """Options and additional outputs of a step."""

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
    """bitwise or of mp_step_flags_t"""
    max_grad_norm: float
    """limit of the unscaled global norm; 0 = no clipping"""
    reserved0: int
    """must be 0"""
    grad_norm: Pointer
    """device, 1 float, optional: unscaled norm before clipping"""
    found_inf: Pointer
    """device, 1 float, optional: 1 if this step was skipped, else 0"""
    tensor_norms: Pointer
    """device, 1 float per tensor, optional: like grad_norm"""
    amax: Pointer
    """Device, 1 float, for MP_STEP_CHECKED: largest |gradient| as measured, like `amax` of
    mp_scaler_update and required by the same policies.  Infinity or NaN skips the step.  Read but
    not cleared: clear it before the epilogues of the next step update it."""
    report: Pointer
    """Device, 1 report and 1 per tensor, optional: mp_inspect of the gradients, still multiplied by
    S.  Also written if the step is skipped.  Every rank reports on its own gradients."""
    tensor_reports: Pointer
    """Device, 1 report and 1 per tensor, optional: mp_inspect of the gradients, still multiplied by
    S.  Also written if the step is skipped.  Every rank reports on its own gradients."""
    model_overflows: Pointer
    """Device, 1 integer, optional: increased by the number of weights whose 16-bit copy exceeded the
    largest finite value after rounding, whether clamped or infinite; clear it first.  NaN is not
    counted."""
    comm: Pointer
    """Host, optional: the step is taken by several ranks, with the same decision on all.  If their
    scalers have equal initial states, S stays equal.  The call is collective (mp_comm_t), with
    the same flags on every rank."""
    outcome: Pointer
    """Device, 1 integer, optional: outcome of this step, an mp_step_outcome_t."""
    rejected_updates: Pointer
    """Device, 1 integer, optional: increased by the number of elements that kept their old weight
    and moments because a new one was not finite (see mp_scale_step); clear it first."""


class mp_autocast_config_t(_Sized):
    """Initial state of a policy."""

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
    """Limit of |x|, >= 0; 0 = no limit.  A node that reads or writes a tensor with a larger
    mp_autocast_graph.tensor_amax is MP_CAST_DENY.  65504 / 64 leaves fp16 a headroom of six
    bits."""
    depth_limit: int
    """Limit of mp_autocast_graph.node_depth, >= 0; 0 = no limit.  A node that sums more terms is
    MP_CAST_DENY."""


class mp_autocast_graph_t(_Sized):
    """Graph to rewrite: flat arrays in host memory, read during the call.  Cycles are allowed.
    Optional arrays may be NULL, as if all elements were 0.  Initialize with MP_INIT_STRUCT."""

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
    """names of operations; NULL elements require a node_class"""
    node_class: Pointer
    """optional: 1 + mp_autocast_class_t; 0 = class of node_op"""
    node_name: Pointer
    """optional, for patterns and reports; elements may be NULL"""
    node_flags: Pointer
    """optional: mp_node_flags_t, or-ed"""
    node_depth: Pointer
    """optional: terms of a sum, e.g. k of a GEMM; 0 = unknown"""
    first_input: Pointer
    """Inputs of node i are [first_input[i], first_input[i + 1]); num_nodes + 1 values, the first
    is 0."""
    input_tensor: Pointer
    """tensor of each input; -1 = absent optional input"""
    input_slot: Pointer
    """optional: slot of each input"""
    tensor_producer: Pointer
    """node that writes the tensor; -1 = outside the graph"""
    tensor_slot: Pointer
    """optional: slot of the producer that writes the tensor"""
    tensor_dtype: Pointer
    """mp_dtype_t: MP_FP32 may become low precision, MP_FP16 and MP_BF16 stay; MP_DTYPE_NONE is any
    other type."""
    tensor_role: Pointer
    """optional: mp_tensor_role_t"""
    tensor_amax: Pointer
    """optional: largest |x|, e.g. of mp_inspect; < 0, NaN = unknown"""
    hidden_src: Pointer
    """Hidden edges, e.g. through a container or through state: precision propagates from slot 0 of
    hidden_src[i] to slot 0 of hidden_dst[i] without a tensor of this graph."""
    hidden_dst: Pointer
    """Hidden edges, e.g. through a container or through state: precision propagates from slot 0 of
    hidden_src[i] to slot 0 of hidden_dst[i] without a tensor of this graph."""
    first_member: Pointer
    """Clusters: members [first_member[i], first_member[i + 1]) have equal precision in slot 0;
    num_clusters + 1 values, the first is 0."""
    member: Pointer
    """nodes of the clusters"""
    cluster_kind: Pointer
    """Rule of each cluster, optional.  0, a container such as a list of tensors: fp32 if a member is
    MP_CAST_DENY or downstream of one, or has MP_NODE_KEEP, _ELSEWHERE or _NO_LOW; otherwise low
    precision if any member is, regardless of classes.  1, a loop: low precision if all members
    without MP_NODE_BACK_EDGE are and the others can be; otherwise fp32."""


class mp_autocast_cast_t(Structure):
    """Cast of a tensor.  Has no struct_size: 20 bytes in every version."""

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
    """inputs that read the result, plus the caller with MP_AUTOCAST_KEEP_IO"""


class mp_autocast_result_t(_Sized):
    """Result of mp_autocast_rewrite.  The arrays belong to the caller; each is optional.  Initialize
    with MP_INIT_STRUCT.

    Input j reads its tensor t as written, in type tensor_dtype[t], or the result of cast
    input_cast[j] if that is >= 0.  A tensor has at most one cast.

    MP_AUTOCAST_EMULATE requires more casts; `casts` must have room for 2 num_tensors + the number
    of inputs:

    - All tensors stay MP_FP32.
    - Each tensor that is read, and written or read by a low-precision node, has one cast to low
      precision.
    - Casts back to fp32 read the result of that cast: one for each input of a low-precision node,
      and one for all fp32 readers of a tensor written by a low-precision node."""

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
    """num_tensors: type that the producer writes"""
    node_dtype: Pointer
    """Type of each node, num_nodes: MP_FP32 or low precision, for slot 0, or for the lowest eligible
    slot if slot 0 is not eligible.  A node without eligible slots is MP_FP32, except in a
    low-precision container, e.g. an empty list of 16-bit tensors."""
    input_cast: Pointer
    """one per input: index into casts; -1 = no cast"""
    casts: Pointer
    """room for num_tensors; ordered by tensor"""
    node_why: Pointer
    """num_nodes: mp_autocast_why_t"""
    node_because: Pointer
    """num_nodes: a node that caused the type, or -1"""
    gate: Optional[bytes]
    """out: reason for a closed gate, static storage; NULL = open"""


class mp_xent_desc_t(_Sized):
    """Shape and type of a classification loss."""

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
    """type of logits and dlogits"""
    rows: int
    """samples, >= 0"""
    classes: int
    """>= 1"""
    ld_logits: int
    """>= classes"""
    ld_dlogits: int
    """>= classes"""
    weight: float
    """factor of loss and gradient: a task weight, or 1 / micro-batches"""
    label_smoothing: float
    """in [0, 1): part of each target, shared equally by all classes"""
    flags: int
    """mp_xent_flags_t, or-ed; 0 = every row counts"""
    ignore_label: int
    """any value; read only with MP_XENT_IGNORE_LABEL"""


class mp_loss_desc_t(_Sized):
    """Size and types of an element-wise loss."""

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
    """factor of loss and gradient, as in mp_xent_desc_t"""
    reduction: int
    flags: int
    """mp_loss_flags_t, or-ed; 0 = every element counts"""
    ignore_target: float
    """any value, NaN included; read only with MP_LOSS_IGNORE_TARGET"""


class mp_pool2d_desc_t(_Sized):
    """Shape and type of a pooling layer:

        x, dx    N H W C     dense, C contiguous
        y, dy    N P Q C     P = (pad_top + H + pad_bottom - extent_h) / stride_h + 1 (rounded down)
                             extent_h = dilation_h (window_h - 1) + 1

    Q likewise.  Every window contains at least one pixel, because padding must be smaller than the
    extent of the window, and dilation_h at most H if pad_top > 0 (dilation_w and W likewise).

    If the window is larger than the padded image, P or Q is 0: y is empty and dx is 0.  With
    MP_POOL_CEIL this requires an excess of a stride or more."""

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
    """type of x, y, dy and dx; sums are fp32"""
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
    """distance between pixels of a window, >= 0; 0 = 1"""
    dilation_w: int
    """distance between pixels of a window, >= 0; 0 = 1"""


class mp_batchnorm_desc_t(_Sized):
    """Shape and options of a batch normalization."""

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
    """type of x, y, dy and dx; everything else is fp32"""
    rows: int
    """>= 0; for images N H W"""
    channels: int
    """>= 0; for images C"""
    activation: int
    """MP_ACT_NONE or MP_ACT_RELU"""
    epsilon: float
    """>= 0; with 0 a constant channel becomes NaN"""
    momentum: float
    """weight of the batch in the running statistics, in [0, 1]"""


class mp_batchnorm_tensors_t(_Sized):
    """Tensors of a batch normalization, device.  Each pass ignores the fields that it does not list.
    Initialize with MP_INIT_STRUCT."""

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
    """channels; written in training, read by backward"""
    saved_inv_std: Pointer
    """channels; written in training, read by backward"""
    y: Pointer
    """rows x channels, written"""
    dy: Pointer
    """rows x channels"""
    dx: Pointer
    """rows x channels, written; may be dy"""
    dgamma: Pointer
    """channels, overwritten, optional; zeros if rows is 0"""
    dbeta: Pointer
    """channels, overwritten, optional; zeros if rows is 0"""


class mp_pointwise_desc_t(_Sized):
    """Shape, types and operation of mp_pointwise:

        a, y    rows x columns, dense
        b       rows x columns with row stride ld_b, or one broadcast row (ld_b = 0), such as a bias

    If b is dense or not read, a tensor of any shape can be passed as one row."""

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
    """Applied to z.  The D* kinds require MP_POINTWISE_COPY and compute y = a activation'(b): a is
    the gradient of the activation's output, and b the activation's input."""
    dtype: int
    """type of a and y"""
    dtype_b: int
    """type of b"""
    reserved0: int
    """must be 0"""
    rows: int
    """>= 0"""
    columns: int
    """>= 0"""
    ld_b: int
    """>= columns; 0 = the first row of b for every row"""


class mp_column_sum_desc_t(_Sized):
    """Shape and types of mp_column_sum."""

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
    """factor of the previous sum; 1 accumulates over micro-batches"""
    rows: int
    """>= 0"""
    columns: int
    """>= 0"""
    ld: int
    """row stride of x in elements, >= columns"""


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
    """type of x, y, h, dx, dy, dh and weights; MP_FP32 = all is fp32"""
    dtype_dw: int
    """type of the weight gradients"""
    layers: int
    """1 to 65535"""
    input_size: int
    """elements of x_t, >= 1"""
    hidden_size: int
    """elements of h, >= 1"""
    batch: int
    """sequences, >= 0"""
    timesteps: int
    """time steps of the longest sequence, >= 0"""
    dropout: float
    """probability in [0, 1) that training zeroes an element between layers;
    the others are divided by 1 - dropout.  Also set
    mp_rnn_tensors_t.dropout_offset"""
    clip: float
    """MP_RNN_LSTM: clamps c' to [-clip, clip]; 0 = no clipping"""
    dropout_seed: int
    """any value"""
    x_step: int
    """strides of x and dx between time steps and between sequences, in
    elements; 0 = dense [time step][sequence][element]"""
    x_row: int
    """strides of x and dx between time steps and between sequences, in
    elements; 0 = dense [time step][sequence][element]"""
    y_step: int
    """strides of y and dy, likewise"""
    y_row: int
    """strides of y and dy, likewise"""
    kernel: Optional[bytes]
    """host; NULL = automatic; see mpcore/experimental.h"""


class mp_rnn_weights_t(Structure):
    """Weights of one layer and direction, device, dense:

        w_ih          G hidden_size x I              G = 1, 3 or 4 gates
        w_hh          G hidden_size x hidden_size    I = input_size in the first layer,
        b_ih, b_hh    G hidden_size                      directions * hidden_size in the others"""

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
    """Gradients of mp_rnn_weights_t, device, of the same shapes; each is optional."""

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
    """Sizes derived from a descriptor, independent of strides and MP_RNN_ACCUMULATE."""

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
    """layers * directions"""
    reserve_bytes: int
    """Bytes that a training step keeps from the forward to the backward pass.  Per time step,
    sequence, hidden unit, layer and direction: 14 for LSTM, 10 for GRU and 4 for plain cells, or
    24, 20 and 8 with MP_FP32; in addition less than 256."""
    workspace_bytes: int
    """sufficient for each mp_rnn_* call"""


class mp_rnn_tensors_t(_Sized):
    """Tensors of the mp_rnn_* calls, device except where noted.  Each call ignores the fields that it
    does not list.  Initialize with MP_INIT_STRUCT."""

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
    """length of `weights` and `weight_grads`: layers * directions"""
    weights: Pointer
    """host, read before the call returns; index layer * directions + direction"""
    lengths: Pointer
    """Length of each sequence, batch values in [0, timesteps] in any order; NULL = timesteps.
    Elements of x and dy past the end of a sequence are not read; there y and dx are 0.  hn and cn
    are the states of its last time step, or h0 and c0 if its length is 0.  A length outside the
    range makes its sequence NaN.  Mutually exclusive with batch_sizes."""
    batch_sizes: Pointer
    """Number of sequences that have each time step, host, timesteps values, non-increasing; the
    longest sequence is first.  NULL = not packed.  x, y, dx and dy are then packed: the rows of a
    time step, x_row or y_row elements apart, directly follow those of the previous time step;
    x_step and y_step are ignored."""
    dropout_offset: Pointer
    """Selects the dropout masks: 1 value, optional; NULL = 0.  Use a counter in device memory that
    changes in every training step, such as mp_optimizer_step_counter; otherwise all steps have
    equal masks.  A replayed CUDA graph reads its current value.  It must be the same in the
    passes of one step."""
    x: Pointer
    """timesteps x batch x input_size"""
    h0: Pointer
    """layers x directions x batch x hidden_size, optional; NULL = 0"""
    c0: Pointer
    """shape of h0, MP_RNN_LSTM, optional; NULL = 0"""
    y: Pointer
    """timesteps x batch x (directions * hidden_size), written"""
    hn: Pointer
    """h after the last time step, shape of h0, written, optional; may be h0 in
    inference"""
    cn: Pointer
    """c after the last time step, likewise; may be c0 in inference"""
    reserve: Pointer
    """data kept from forward to backward, 256-byte aligned"""
    reserve_bytes: int
    dy: Pointer
    """shape of y"""
    dhn: Pointer
    """shape of h0, optional; NULL = 0"""
    dcn: Pointer
    """shape of c0, optional; NULL = 0"""
    dx: Pointer
    """shape of x, written, optional"""
    dh0: Pointer
    """shape of h0, written, optional"""
    dc0: Pointer
    """shape of c0, written, optional"""
    weight_grads: Pointer
    """host, read before the call returns; indexed like `weights`"""
    found_inf: Pointer
    """1 float, optional: set to 1 and never cleared, see mp_epilogue_t"""
    amax: Pointer
    """1 float, optional, updated: largest |gradient| of weights and biases"""


class mp_embedding_desc_t(_Sized):
    """Shape, types and layout of an embedding lookup."""

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
    """type of table, out and dout"""
    dtype_dtable: int
    """type of the gradient"""
    flags: int
    """mp_embedding_flags_t, or-ed"""
    rows: int
    """indices, and rows of out and dout; 0 to 2^31 - 1"""
    vocabulary: int
    """rows of table and dtable, >= 1"""
    padding_index: int
    """in [0, vocabulary); read only with MP_EMBEDDING_PADDING"""
    width: int
    """elements of a row, >= 1"""
    ld_table: int
    """>= width"""
    ld_out: int
    """row stride of out and dout, >= width"""
    ld_dtable: int
    """>= width"""


class mp_dropout_desc_t(_Sized):
    """Size, type and options of a dropout."""

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
    """type of x and y"""
    count: int
    """elements, >= 0"""
    seed: int
    """any value; tensors with equal seed and offset have equal masks"""
    p: float
    """probability in [0, 1) that an element becomes 0"""
    reserved0: int
    """must be 0"""


class mp_graph_attribute_t(Structure):
    """Attribute of an operation.  Has no struct_size: 16 bytes in every version."""

    _fields_ = [
        ("name", c_char_p),
        ("value", c_double),
    ]
    name: Optional[bytes]
    value: float


class mp_graph_tensor_t(_Sized):
    """Shape, types and addresses of a tensor."""

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
    """type in memory"""
    rank: int
    dtype_copy: int
    """type of its cast or 16-bit copy; MP_DTYPE_NONE = none"""
    extent: ctypes.Array[c_int64]
    """for the current batch"""
    name: Optional[bytes]
    """if read after mp_graph_compile, valid as long as the graph"""
    data: Pointer
    """device; NULL if other tensors share its memory or it is not computed"""
    copy: Pointer
    """device, of type dtype_copy; NULL likewise"""
    grad: Pointer
    """device: gradient of a parameter or of mp_graph_keep_gradient; else NULL"""
    dtype_grad: int
    """type of grad"""
    reserved0: int
    """out: 0"""


class mp_graph_memory_t(_Sized):
    """Device memory of a compiled graph, in bytes.  The sum of all fields without activations_alone is
    the allocated memory, except for tables of the lists."""

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
    """16-bit copies of parameters"""
    gradients: int
    """gradients of parameters and of mp_graph_keep_gradient"""
    states: int
    """states and constants"""
    activations: int
    """activations and their gradients, which reuse memory"""
    activations_alone: int
    """activations if no memory were reused; not part of the sum"""
    workspace: int


class mp_torch_scaler_t(Structure):
    """Checkpoint of torch.amp.GradScaler, from state_dict().  Fields are named like its keys, except
    "_growth_tracker"."""

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
    """Checkpoint of Megatron-LM's DynamicGradScaler, from state_dict().  Fields are named like its
    keys."""

    _fields_ = [
        ("scale", c_float),
        ("growth_tracker", c_int32),
        ("hysteresis_tracker", c_int32),
    ]
    scale: float
    growth_tracker: int
    hysteresis_tracker: int
    """negative after more overflows than hysteresis"""


class mp_kernel_info_t(_Sized):
    """Kernel, and its suitability for a problem."""

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
    """1: predicted_us uses constants that were not measured on this
    architecture; 0: mptune measured them"""
    name: Optional[bytes]
    """static storage, e.g. "wmma_128x128x32_s3" """
    why_not: Optional[bytes]
    """reason why the kernel does not support the problem, a clause in static
    storage; NULL if it does"""
    predicted_us: float
    """0 if unsupported, and for recurrent layers, which use fixed rules"""
    workspace_bytes: int
    """minimum workspace; 0 if unsupported"""


def mp_context_config_default() -> mp_context_config_t:
    """Initializes *config: MP_DEVICE_AUTO, all SMs, cudaMalloc."""
    value = mp_context_config_t()
    _library.mp_context_config_init(value, ctypes.sizeof(value))
    return value


def mp_epilogue_default() -> mp_epilogue_t:
    """Initializes an identity epilogue: no activation, bias or statistics."""
    value = mp_epilogue_t()
    _library.mp_epilogue_init(value, ctypes.sizeof(value))
    return value


def mp_gemm_desc_default(m: int, n: int, k: int, dtype_ab: int, dtype_cd: int) -> mp_gemm_desc_t:
    """Initializes a dense, untransposed, unbatched product: alpha = 1, beta = 0, lda = k,
    ldb = ldc = ldd = n."""
    value = mp_gemm_desc_t()
    _library.mp_gemm_desc_init(value, ctypes.sizeof(value), m, n, k, dtype_ab, dtype_cd)
    return value


def mp_gemm_group_item_default(m: int, n: int, k: int) -> mp_gemm_group_item_t:
    """Initializes a dense, untransposed item without data: lda = k, ldb = ldc = ldd = n."""
    value = mp_gemm_group_item_t()
    _library.mp_gemm_group_item_init(value, ctypes.sizeof(value), m, n, k)
    return value


def mp_conv2d_desc_default(n: int, h: int, w: int, c: int, k: int, r: int, s: int, dtype: int) -> mp_conv2d_desc_t:
    """Initializes a convolution with unit stride and dilation, no padding and one group; alpha = 1,
    beta = 0, dtype_out = dtype."""
    value = mp_conv2d_desc_t()
    _library.mp_conv2d_desc_init(value, ctypes.sizeof(value), n, h, w, c, k, r, s, dtype)
    return value


def mp_scaler_config_default(policy: int) -> mp_scaler_config_t:
    """Initializes the defaults of a policy:

        init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
        growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
        beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
        overflow_std_dev 3.0902      sigma_floor 0.5

    65536 is the initial scale of torch.amp.GradScaler.  24 overflows reduce S from 2^24 to 1."""
    value = mp_scaler_config_t()
    _library.mp_scaler_config_init(value, ctypes.sizeof(value), policy)
    return value


def mp_scaler_state_default(config: mp_scaler_config_t) -> mp_scaler_state_t:
    """Initializes the state of a new scaler."""
    value = mp_scaler_state_t()
    _library.mp_scaler_state_init(value, ctypes.sizeof(value), config)
    return value


def mp_hyper_default(kind: int, lr: float) -> mp_hyper_t:
    """Initializes the defaults of the cited papers.  weight_decay is 0, except for methods that are
    defined by it.  lr has no default.  trust is that of LARS; Apex's LARC has 0.02.

                  beta1   beta2   eps     others
        SGD       0.9     0       0       trust 0.001
        Adam      0.9     0.999   1e-8
        LAMB      0.9     0.999   1e-6    weight_decay 0.01
        NovoGrad  0.95    0.98    1e-8
        Adagrad   0       0       1e-10
        RMSProp   0       0.9     1e-8

    decay_power is 1; all other fields are 0."""
    value = mp_hyper_t()
    _library.mp_hyper_init(value, ctypes.sizeof(value), kind, lr)
    return value


def mp_optimizer_desc_default(kind: int) -> mp_optimizer_desc_t:
    """Initializes a descriptor with one group and no tensors.  flags is MP_OPT_DECOUPLED_DECAY for
    MP_OPT_LAMB and 0 for all other kinds."""
    value = mp_optimizer_desc_t()
    _library.mp_optimizer_desc_init(value, ctypes.sizeof(value), kind)
    return value


def mp_model_options_default() -> mp_model_options_t:
    """Initializes rounding to nearest with clamping on overflow."""
    value = mp_model_options_t()
    _library.mp_model_options_init(value, ctypes.sizeof(value))
    return value


def mp_comm_default() -> mp_comm_t:
    """Initializes a communicator of a single rank, which does not communicate."""
    value = mp_comm_t()
    _library.mp_comm_init(value, ctypes.sizeof(value))
    return value


def mp_step_options_default() -> mp_step_options_t:
    """Initializes options without clipping or reports, for one rank."""
    value = mp_step_options_t()
    _library.mp_step_options_init(value, ctypes.sizeof(value))
    return value


def mp_autocast_config_default(low: int) -> mp_autocast_config_t:
    """Initializes a configuration: preset MP_AUTOCAST_DEFAULT, level MP_AUTOCAST_NORMAL, no flags, no
    limits."""
    value = mp_autocast_config_t()
    _library.mp_autocast_config_init(value, ctypes.sizeof(value), low)
    return value


def mp_autocast_scaler_default(low: int) -> mp_scaler_config_t:
    """Initializes the loss scaler for `low`.  MP_FP16: MP_SCALER_PRESET_KERAS, which TensorFlow calls
    "dynamic".  MP_BF16 and MP_FP32: S = 1.
    @retval MP_ERROR_INVALID_ARGUMENT low is any other value"""
    value = mp_scaler_config_t()
    _library.mp_autocast_scaler_init(value, ctypes.sizeof(value), low)
    return value


def mp_xent_desc_default(rows: int, classes: int, dtype: int) -> mp_xent_desc_t:
    """Initializes a loss of dense rows: weight = 1, no smoothing, label -100 ignored.

    -100 is the ignore_index of torch.  Other labels outside [0, classes), such as -1 or `classes`,
    are still detected."""
    value = mp_xent_desc_t()
    _library.mp_xent_desc_init(value, ctypes.sizeof(value), rows, classes, dtype)
    return value


def mp_loss_desc_default(kind: int, count: int, dtype: int) -> mp_loss_desc_t:
    """Initializes a mean over all elements: weight = 1, dtype_target = dtype."""
    value = mp_loss_desc_t()
    _library.mp_loss_desc_init(value, ctypes.sizeof(value), kind, count, dtype)
    return value


def mp_pool2d_desc_default(mode: int, n: int, h: int, w: int, c: int, window_h: int, window_w: int, dtype: int) -> mp_pool2d_desc_t:
    """Initializes adjacent windows: stride = window, no padding, no dilation."""
    value = mp_pool2d_desc_t()
    _library.mp_pool2d_desc_init(value, ctypes.sizeof(value), mode, n, h, w, c, window_h, window_w, dtype)
    return value


def mp_batchnorm_desc_default(rows: int, channels: int, dtype: int) -> mp_batchnorm_desc_t:
    """Initializes a batch normalization: epsilon = 1e-5, momentum = 0.1, no activation."""
    value = mp_batchnorm_desc_t()
    _library.mp_batchnorm_desc_init(value, ctypes.sizeof(value), rows, channels, dtype)
    return value


def mp_pointwise_desc_default(op: int, rows: int, columns: int, dtype: int) -> mp_pointwise_desc_t:
    """Initializes a pass over dense tensors: dtype_b = dtype, no activation."""
    value = mp_pointwise_desc_t()
    _library.mp_pointwise_desc_init(value, ctypes.sizeof(value), op, rows, columns, dtype)
    return value


def mp_column_sum_desc_default(rows: int, columns: int, dtype: int) -> mp_column_sum_desc_t:
    """Initializes a sum over dense rows: dtype_sum = MP_FP32, beta = 0."""
    value = mp_column_sum_desc_t()
    _library.mp_column_sum_desc_init(value, ctypes.sizeof(value), rows, columns, dtype)
    return value


def mp_rnn_desc_default(cell: int, batch: int, timesteps: int, input_size: int, hidden_size: int, dtype: int) -> mp_rnn_desc_t:
    """Initializes one unidirectional layer with biases: dense tensors, dtype_dw = dtype, no dropout,
    clipping or flags.

    For batch-major tensors, [sequence][time step][element], set x_step = input_size and
    x_row = timesteps * input_size, and y_step and y_row accordingly."""
    value = mp_rnn_desc_t()
    _library.mp_rnn_desc_init(value, ctypes.sizeof(value), cell, batch, timesteps, input_size, hidden_size, dtype)
    return value


def mp_embedding_desc_default(rows: int, vocabulary: int, width: int, dtype: int) -> mp_embedding_desc_t:
    """Initializes a lookup with dense rows: dtype_dtable = dtype, no flags."""
    value = mp_embedding_desc_t()
    _library.mp_embedding_desc_init(value, ctypes.sizeof(value), rows, vocabulary, width, dtype)
    return value


def mp_dropout_desc_default(count: int, p: float, dtype: int) -> mp_dropout_desc_t:
    """Initializes a dropout of `count` elements with seed 0."""
    value = mp_dropout_desc_t()
    _library.mp_dropout_desc_init(value, ctypes.sizeof(value), count, p, dtype)
    return value


def mp_scaler_config_preset(preset: int) -> mp_scaler_config_t:
    """Initializes the configuration of a preset.  In presets of other systems, unlisted fields have
    the defaults of MP_SCALER_BACKOFF, except that max_scale and diverged_after are 0.
    @retval MP_ERROR_INVALID_ARGUMENT unknown preset"""
    value = mp_scaler_config_t()
    _library.mp_scaler_config_init_preset(value, ctypes.sizeof(value), preset)
    return value


class Library(ctypes.CDLL):
    """The shared library, each function with its types once declare() has seen it."""

    if TYPE_CHECKING:  # ctypes makes them when they are asked for

        def mp_version(self, /) -> int:
            """Returns MP_VERSION of the loaded library, which may differ from that of this header."""

        def mp_build_info(self, /) -> bytes:
            """Returns one line for bug reports: version, git hash, CUDA version, compiled targets and
            architectures.  Static storage.  The format is not stable; do not parse it."""

        def mp_status_string(self, status: int, /) -> bytes:
            """Returns the name of a status, e.g. "MP_ERROR_UNSUPPORTED".  Static storage; accepts any int."""

        def mp_last_error(self, /) -> bytes:
            """Returns the message of the last failed call on this thread.  It names the offending argument
            and its value: "mp_gemm: lda = 60 is smaller than k = 64".  Meaningful directly after a call
            that returned an error; valid until the next mpcore call on this thread.  Never NULL."""

        def mp_set_log_callback(self, callback: Any, user: Pointer, level: int, /) -> None:
            """Sends messages of severity `level` or higher to `callback`, for the whole process.  The callback
            may run on several threads concurrently and must not call mpcore.  If it throws a C++ exception,
            its line goes to stderr.

            NULL restores the default: MP_LOG_WARN and more severe to stderr, without the errors that a call
            returns (mp_last_error has those).  The environment variable MP_LOG=error|warn|info|debug
            changes the level of the default and adds returned errors."""

        def mp_dtype_size(self, dtype: int, /) -> int:
            """Returns the bytes per element, or 0 for an invalid value."""

        def mp_dtype_name(self, dtype: int, /) -> bytes:
            """Returns "fp16", "bf16" or "fp32"; "none" for MP_DTYPE_NONE and "?" for an invalid value.
            Static storage."""

        def mp_context_config_init(self, config: Pointer, struct_size: int, /) -> int:
            """Initializes *config: MP_DEVICE_AUTO, all SMs, cudaMalloc."""

        def mp_context_create(self, context: Pointer, config: Pointer, /) -> int:
            """Creates a context.  A context is immutable, so threads can share it.
            @param config  host, optional; NULL = defaults.
            @retval MP_ERROR_ARCH_MISMATCH the build has no code for the device"""

        def mp_context_destroy(self, context: Handle, /) -> None:
            """Destroys a context.  All objects created from it must be destroyed first.  Destroying the last
            host context ends the worker threads and frees their memory; a later context creates them
            again."""

        def mp_context_get_info(self, context: Handle, info: Pointer, /) -> int:
            """Returns the properties of a context's device.
            @param info  host, out; initialize it with MP_INIT_STRUCT."""

        def mp_malloc(self, context: Handle, ptr: Pointer, bytes: int, /) -> int:
            """Allocates `bytes` of uninitialized device memory, 256-byte aligned.  0 bytes give NULL."""

        def mp_free(self, context: Handle, ptr: Pointer, /) -> None:
            """Waits until the device is idle, then frees memory from mp_malloc.  NULL does nothing."""

        def mp_memcpy(self, context: Handle, dst: Pointer, src: Pointer, bytes: int, stream: Handle, /) -> int:
            """Copies between any combination of host and device memory; the two ranges must not overlap.
            Pageable host memory makes the copy synchronous, as with cudaMemcpyAsync."""

        def mp_memset(self, context: Handle, dst: Pointer, byte: int, bytes: int, stream: Handle, /) -> int:
            """Sets `bytes` bytes of device memory to `byte`."""

        def mp_stream_sync(self, context: Handle, stream: Handle, /) -> int:
            """Waits until all work enqueued on `stream` has finished."""

        def mp_cast(self, context: Handle, src: Pointer, src_dtype: int, dst: Pointer, dst_dtype: int, count: int, stream: Handle, /) -> int:
            """Converts elements: dst[i] = (dst_dtype)src[i].  dst may be src if both types have equal size;
            any other overlap is an error."""

        def mp_epilogue_init(self, epilogue: Pointer, struct_size: int, /) -> int:
            """Initializes an identity epilogue: no activation, bias or statistics."""

        def mp_gemm_desc_init(self, desc: Pointer, struct_size: int, m: int, n: int, k: int, dtype_ab: int, dtype_cd: int, /) -> int:
            """Initializes a dense, untransposed, unbatched product: alpha = 1, beta = 0, lda = k,
            ldb = ldc = ldd = n."""

        def mp_gemm_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Returns the workspace size for the fastest kernel and the fastest dbias sum of mp_gemm (or
            mp_gemm_batched); often 0.  If desc->kernel is set, returns the minimum of that kernel instead.

            A descriptor does not include the epilogue, so at most 32 MiB are reserved for dbias.  On Hopper
            a 16-bit D of more than 256 MiB benefits from an eighth of its own size in addition.

            desc->stride_* select the function: mp_gemm if any stride is not 0, mp_gemm_batched if all are 0
            and batch_count > 1.  For batch_count = 1 without strides the result suffices for both; on
            Hopper mp_gemm_batched may need workspace where mp_gemm needs none.
            @param bytes  host, out."""

        def mp_gemm(self, context: Handle, desc: Pointer, A: Pointer, B: Pointer, C: Pointer, D: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes a matrix product with fp32 accumulation: D = epilogue(alpha op(A) op(B) + beta C).

            @param A  device; m x k with row stride lda (MP_OP_N), or k x m (MP_OP_T).  A and B are not read
                      if alpha == 0 (may be NULL, may hold NaN); desc->kernel is then checked but not used.
            @param B  device; k x n with row stride ldb (MP_OP_N), or n x k (MP_OP_T).
            @param C  device; m x n.  Not read if beta == 0 (may be NULL, may hold NaN).
            @param D  device; m x n.  May be the same matrix as C (equal ld and stride).  Any other overlap
                      with an argument is an error.  If both row strides are equal in bytes, elements are
                      compared, so D may use the columns between A's rows; otherwise address ranges are
                      compared.
            @param epilogue   host, optional.
            @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
                              mp_gemm_workspace_size the fastest kernel that fits is used: possibly
                              slower, never an error.

            Edge cases follow BLAS: m, n or batch_count == 0 writes nothing except dbias; k == 0 or
            alpha == 0 computes epilogue(beta C), without workspace.

            Alignment: only that of the elements is required.  16-byte aligned pointers and ld % 8 == 0 take
            the tensor-core path with asynchronous copies; anything else is slower.  An A or B with another
            ld or stride is first copied into workspace with aligned rows if that is predicted to be faster.
            If aligned operands are predicted to be faster by a fifth or more, both times are logged once at
            MP_LOG_WARN.

            Accuracy: products of fp16/bf16 are exact in fp32.  They are summed in fp32 as tensor cores sum,
            in an order that depends only on (desc, alignment, workspace_bytes, device, MP_GEMM_TUNING), and
            rounded once.
            Source: Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.3.

            @retval MP_ERROR_INVALID_ARGUMENT a dimension < 0, an ld smaller than the row length, or an
                    output that overlaps another argument
            @retval MP_ERROR_UNSUPPORTED D has 2^31 or more tiles of 16 x 16 over all batch items"""

        def mp_gemm_batched(self, context: Handle, desc: Pointer, A: Pointer, B: Pointer, C: Pointer, D: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes a batched product like mp_gemm, with one pointer per batch item instead of a stride.

            @param desc     desc->stride_* must be 0.
            @param A,B,C,D  device arrays of desc->batch_count device pointers, read when the kernel runs:
                            keep them alive until then.  C is optional if beta == 0.  As in mp_gemm,
                            matrices need only the alignment of their elements; an item that is not
                            16-byte aligned is detected on the device, costs time and is not logged.
            @param epilogue  host, optional; aux, dbias and amax are not supported.

            The host does not read the pointers, so overlaps are not detected: an item of D that overlaps
            any matrix except its own item of C gives wrong results."""

        def mp_gemm_group_item_init(self, item: Pointer, struct_size: int, m: int, n: int, k: int, /) -> int:
            """Initializes a dense, untransposed item without data: lda = k, ldb = ldc = ldd = n."""

        def mp_gemm_grouped_workspace_size(self, context: Handle, desc: Pointer, count: int, items: Pointer, bytes: Pointer, /) -> int:
            """Returns the workspace size for the fastest mp_gemm_grouped.  It depends on the shapes and
            leading dimensions of the items, not on their pointers.
            @param bytes  host, out."""

        def mp_gemm_grouped(self, context: Handle, desc: Pointer, count: int, items: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes `count` products of different shapes, such as the experts of a layer or the weight
            gradients of a network.  Each is a product as in mp_gemm:

                D = epilogue(alpha op(A) op(B) + beta C)

            The products share one launch if a kernel supports the whole group.  Otherwise each takes a
            launch: possibly slower, never an error, and logged once at MP_LOG_WARN if the caller can change
            the cause.

            The products may run concurrently, so no D may overlap any matrix of another product; A, B and C
            may be shared.  A D that overlaps a matrix of its own product, or the previous D in memory, is
            an error; other overlaps are not detected.

            @param desc   op, dtype, alpha and beta of all products.  m, n, k, ld* and stride_* must be 0
                          and batch_count 1: mp_gemm_desc_default(0, 0, 0, ab, cd).
            @param items  host, count elements, copied; may be NULL if count is 0.  The call can be captured
                          into a CUDA graph, which then keeps these shapes and pointers.
                          Edge cases as in mp_gemm: m or n == 0 does nothing, k == 0 computes
                          epilogue(beta C).
            @param epilogue   host, optional: scale and found_inf, shared by all products.  All other fields
                              must be 0.
            @param workspace  device, 256-byte aligned, optional; see mp_gemm_grouped_workspace_size.

            If an item is invalid, nothing is enqueued, and the message names the item:
            "mp_gemm_grouped: items[3].lda = 60 is smaller than k = 64"."""

        def mp_gemm_ragged_workspace_size(self, context: Handle, desc: Pointer, ragged: int, bytes: Pointer, /) -> int:
            """Returns the workspace size for the fastest mp_gemm_ragged, for any ends.
            @param bytes  host, out."""

        def mp_gemm_ragged(self, context: Handle, desc: Pointer, ragged: int, ends: Pointer, A: Pointer, B: Pointer, C: Pointer, D: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes products of groups whose sizes are known only on the device, such as the tokens routed
            to each expert of a layer.  The dimension `ragged` is divided among desc->batch_count groups:
            group i has the elements [ends[i - 1], ends[i]), and the first group begins at 0:

                MP_RAGGED_M:  D[rows of i] = epilogue(alpha op(A)[rows of i] op(B_i) + beta C[rows of i])
                MP_RAGGED_K:  D_i = epilogue(alpha op(A)[:, k of i] op(B)[k of i, :] + beta C_i)

            The host neither reads `ends` nor waits for them, and the launches do not depend on them.  The
            call can be captured into a CUDA graph; each replay uses the ends of that moment.

            @param desc  all groups together: m (MP_RAGGED_M) or k (MP_RAGGED_K) is the upper bound of
                         `ends`.  MP_RAGGED_M: op(A) is m x k, C and D are m x n, and B_i = B + i stride_b;
                         stride_b = 0 is one B for all groups, the other strides must be 0.  MP_RAGGED_K:
                         op(A) is m x k, op(B) is k x n, C_i = C + i stride_c and D_i = D + i stride_d;
                         stride_a and stride_b must be 0.
            @param ends  device, desc->batch_count values in ascending order, read when the kernels run.
                         Two equal values make an empty group.  Invalid values are clamped to the previous
                         end and to m or k, so they never cause accesses outside the matrices.
            @param A,B,C,D  as in mp_gemm.  MP_RAGGED_M: rows from the last end on are neither read nor
                         written.  MP_RAGGED_K: elements of k from the last end on are not read; an empty
                         group computes epilogue(beta C_i), which is zero if beta = 0.
            @param epilogue   host, optional: scale, amax and found_inf, shared by all groups.  All other
                              fields must be 0.
            @param workspace  device, 256-byte aligned, optional; see mp_gemm_ragged_workspace_size.

            Edge cases, alignment and accuracy as in mp_gemm; the order of a sum also depends on the start
            of its group in k.  Hopper's wgmma kernels require groups that are consecutive rows in memory:
            op_a = MP_OP_N with MP_RAGGED_M; op_a = MP_OP_T and op_b = MP_OP_N with MP_RAGGED_K.  Other
            layouts run on WMMA kernels.
            Source: jax.lax.ragged_dot; torch._grouped_mm, whose offs are the ends.

            @retval MP_ERROR_INVALID_ARGUMENT a stride that must be 0 is not, or the D_i overlap"""

        def mp_conv2d_desc_init(self, desc: Pointer, struct_size: int, n: int, h: int, w: int, c: int, k: int, r: int, s: int, dtype: int, /) -> int:
            """Initializes a convolution with unit stride and dilation, no padding and one group; alpha = 1,
            beta = 0, dtype_out = dtype."""

        def mp_conv2d_output_size(self, desc: Pointer, p: Pointer, q: Pointer, /) -> int:
            """Returns the output height P and width Q; 0 if the filter is larger than the padded image.
            @param p,q  host, out."""

        def mp_conv2d_workspace_size(self, context: Handle, desc: Pointer, op: int, bytes: Pointer, /) -> int:
            """Returns the workspace size for the fastest kernel and the fastest dbias sum of the pass `op`,
            like mp_gemm_workspace_size; often 0.  If desc->kernel is set, returns the minimum of that
            kernel instead.
            @param bytes  host, out."""

        def mp_conv2d_fprop(self, context: Handle, desc: Pointer, x: Pointer, filter: Pointer, y: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes the forward pass: y = epilogue(alpha conv(x, filter) + beta y).

            @param x,filter   device.
            @param y          device; read only if beta != 0.  Must not overlap another argument.
            @param epilogue   host, optional.  y is a matrix of N P Q rows and K columns, so bias has K
                              elements and ld_aux = 0 means K.
            @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
                              mp_conv2d_workspace_size: possibly slower, never an error.

            Algorithm: implicit GEMM; the im2col matrix is never stored.  A 1 x 1 filter with stride 1 and
            no padding runs on the kernels of mp_gemm.  Accuracy as in mp_gemm.

            Alignment: only that of the elements is required.  16-byte aligned tensors with C/groups and
            K/groups multiples of 8 are fastest.  In fprop and wgrad, images of one group with another
            number of channels (RGB) are first copied into workspace with zero-padded channels, if there is
            room and that is predicted to be faster.

            Implicit zeros, such as padding and the gaps between strided outputs in dgrad, may or may not be
            multiplied.  With a non-finite weight (in wgrad: dy) the result may then be NaN.

            Limits: one padded image of x, one image of y and the filter must each have less than 2^30
            elements.  x and y must each have less than 2^30 pixels (N H W and N P Q).
            Source: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014, section 3.

            @retval MP_ERROR_INVALID_ARGUMENT a number outside its range, groups that do not divide c and k
            @retval MP_ERROR_UNSUPPORTED a limit is exceeded"""

        def mp_conv2d_dgrad(self, context: Handle, desc: Pointer, dy: Pointer, filter: Pointer, dx: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes the input gradient: dx = epilogue(alpha conv_transpose(dy, filter) + beta dx).

            In the epilogue, dx is a matrix of N H W rows and C columns: MP_ACT_DRELU with the aux of the
            layer below computes that layer's dy, and dbias its bias gradient.  Everything else is as in
            mp_conv2d_fprop."""

        def mp_conv2d_wgrad(self, context: Handle, desc: Pointer, x: Pointer, dy: Pointer, dfilter: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes the weight gradient: dfilter = alpha conv(x, dy) + beta dfilter, summed over n, p, q.

            beta = 1 accumulates over micro-batches.  Use dtype_out = MP_FP32 for that; otherwise small
            terms are lost to rounding.  The sum is split over blocks in a fixed order, without atomics.
            @param epilogue  host, optional: scale, amax and found_inf.  All other fields must be 0.

            Everything else is as in mp_conv2d_fprop."""

        def mp_tensor_list_create(self, list: Pointer, context: Handle, desc: Pointer, /) -> int:
            """Creates a list of tensors and uploads its pointer table, so that each later call is one kernel
            launch for any number of tensors.
            Source: Apex, multi_tensor_apply, which packs the table into kernel arguments in every call."""

        def mp_tensor_list_destroy(self, list: Handle, /) -> None:
            """Destroys a list, but not its tensors.  Optimizers that use the list must be destroyed first."""

        def mp_tensor_list_set_data(self, list: Handle, data: Pointer, stream: Handle, /) -> int:
            """Replaces the addresses of the tensors, in stream order; sizes and types stay.  For frameworks
            that allocate new gradients in each step.  Do not capture into a CUDA graph.
            @param data  host, count device pointers."""

        def mp_tensor_list_get(self, list: Handle, index: int, data: Pointer, numel: Pointer, dtype: Pointer, /) -> int:
            """Returns the current address, size and type of one tensor.
            @param data,numel,dtype  host, out, each optional; data is a device address.
            @retval MP_ERROR_NOT_FOUND index is not less than count"""

        def mp_check_nonfinite(self, list: Handle, found_inf: Pointer, stream: Handle, /) -> int:
            """Sets *found_inf to 1 if any element is NaN or infinite.  Never clears it, so several lists can
            share one flag.  The flag is a float so that it can be all-reduced with the gradients.
            @param found_inf  device, 1 float."""

        def mp_amax(self, list: Handle, amax: Pointer, per_tensor: Pointer, stream: Handle, /) -> int:
            """Computes the largest absolute value; NaN if any element is NaN (fmaxf would ignore NaN).
            @param amax        device, 1 float, optional; 0 for an empty list.
            @param per_tensor  device, count floats, optional."""

        def mp_l2norm(self, list: Handle, norm: Pointer, per_tensor: Pointer, stream: Handle, /) -> int:
            """Computes the Euclidean norm sqrt(sum x^2) of the list and of each tensor.

            Squares are summed in fp32 within chunks of 16384 elements and in fp64 across chunks, in a fixed
            order and without atomics, so results are bitwise reproducible.  A chunk whose largest |x| is
            below 2^-40, or at least 2^56, is read twice and scaled by a power of two.  The norm is
            therefore infinite only if its value exceeds the range of fp32.
            @param norm        device, 1 float, optional.
            @param per_tensor  device, count floats, optional."""

        def mp_inspect(self, list: Handle, report: Pointer, tensor_reports: Pointer, stream: Handle, /) -> int:
            """Reports overflow and imminent underflow of the elements, in one pass.  mp_scale_step can report
            on its gradients without an additional pass (mp_step_options_t).
            @param report          device, 1 report of the list, optional.
            @param tensor_reports  device, one report per tensor, optional."""

        def mp_tensor_stats(self, list: Handle, outputs: Pointer, stream: Handle, /) -> int:
            """Computes any of mp_check_nonfinite, mp_amax, mp_l2norm and mp_inspect in one pass over the
            elements, with bitwise equal results.
            @param outputs  host; at least one of its pointers must be set."""

        def mp_unscale(self, in_: Handle, out: Handle, inv_scale: Pointer, found_inf: Pointer, stream: Handle, /) -> int:
            """Computes out = in * *inv_scale.  Sets *found_inf to 1, and never clears it, if an element of
            `in` is not finite or a product overflows fp32.
            @param in,out     lists of equal shapes; types may differ (fp16 gradients to fp32); out may be
                              in.
            @param inv_scale  device, 1 float.
            @param found_inf  device, 1 float."""

        def mp_clip_factor(self, context: Handle, scaled_norm: Pointer, inv_scale: Pointer, max_norm: float, grad_scale: Pointer, stream: Handle, /) -> int:
            """Computes the factor that unscales and clips gradients in one multiplication:

                *grad_scale = *inv_scale * min(1, max_norm / (*inv_scale * *scaled_norm + 1e-6))

            @param scaled_norm  device, 1 float: norm of the gradients before unscaling.
            @param inv_scale    device, 1 float.
            @param grad_scale   device, 1 float, overwritten.
            Source: Pascanu et al., On the difficulty of training RNNs, ICML 2013, algorithm 1;
            the 1e-6 is that of torch.nn.utils.clip_grad_norm_."""

        def mp_scaler_config_init(self, config: Pointer, struct_size: int, policy: int, /) -> int:
            """Initializes the defaults of a policy:

                init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
                growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
                beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
                overflow_std_dev 3.0902      sigma_floor 0.5

            65536 is the initial scale of torch.amp.GradScaler.  24 overflows reduce S from 2^24 to 1."""

        def mp_scaler_state_init(self, state: Pointer, struct_size: int, config: Pointer, /) -> int:
            """Initializes the state of a new scaler."""

        def mp_scaler_create(self, scaler: Pointer, context: Handle, config: Pointer, /) -> int:
            """Creates a scaler and all memory that it needs.  A program may have several, one per loss;
            several optimizers may share one, see MP_STEP_KEEP_SCALER."""

        def mp_scaler_destroy(self, scaler: Handle, /) -> None:
            """Destroys a scaler; no optimizer refers to it.  Does nothing for the scaler of
            mp_optimizer_get_scaler."""

        def mp_scaler_scale(self, scaler: Handle, /) -> Optional[int]:
            """Returns the device address of S, which is constant for the life of the scaler."""

        def mp_scaler_inv_scale(self, scaler: Handle, /) -> Optional[int]:
            """Returns the device address of 1/S, which is constant for the life of the scaler."""

        def mp_scaler_found_inf(self, scaler: Handle, /) -> Optional[int]:
            """Returns the device address of the scaler's sticky overflow flag, which is constant for the life
            of the scaler.  mp_scaler_update clears the flag."""

        def mp_scale_loss(self, scaler: Handle, loss: Pointer, out: Pointer, dtype: int, count: int, stream: Handle, /) -> int:
            """Computes out[i] = loss[i] * S, before the backward pass.  out may be loss."""

        def mp_scaler_update(self, scaler: Handle, amax: Pointer, stream: Handle, /) -> int:
            """Applies the policy once, from mp_scaler_found_inf and *amax, then clears the flag.
            mp_scale_step includes this.
            @param amax  device, 1 float: largest |gradient| as measured, still multiplied by S and before
                         clipping.  Infinity or NaN counts as an overflow even if the flag is 0.  Combined
                         with the amax of steps with MP_STEP_KEEP_SCALER and of mp_grads_accumulate since
                         the last update.  Required by lognormal and logmax, which learn from it, unless
                         there were such calls.  Otherwise optional: it distinguishes NaN from infinity."""

        def mp_scaler_get_state_sync(self, scaler: Handle, state: Pointer, stream: Handle, /) -> int:
            """Copies the state to the host; waits for `stream`."""

        def mp_scaler_set_state_sync(self, scaler: Handle, state: Pointer, stream: Handle, /) -> int:
            """Restores a state from the host; waits for `stream`.  Repeating the steps after it gives bitwise
            the same scales.  Empties the history, clears the flag and discards every amax measured since
            the last update, because these belong to abandoned steps.

            States that a scaler with this configuration cannot reach are rejected:

            - another policy
            - a scale outside [min_scale, max_scale], including NaN (logmax)
            - growth_tracker >= growth_interval or hysteresis_left > hysteresis.  After lowering those
              limits, set growth_tracker to 0 and hysteresis_left to hysteresis.
            - a negative headroom; statistics that are not finite or, for lognormal, cannot be means of
              log2 of floats
            - inconsistent counts: skipped > steps, skipped_nan > overflows, skipped_in_row > skipped, or
              skipped not equal to overflows + out_of_range + no_scale
            - counts above 2^52

            @retval MP_ERROR_INVALID_ARGUMENT a state in this list"""

        def mp_scaler_get_history_sync(self, scaler: Handle, capacity: int, scales: Pointer, skipped: Pointer, count: Pointer, stream: Handle, /) -> int:
            """Returns the last updates, oldest first, e.g. for a plot; waits for `stream`.
            @param capacity  elements of the arrays; if there are more updates, the newest are returned.
            @param scales    host, optional: S during each step.
            @param skipped   host, optional: 0 = taken, 1 = overflow, 2 = overflow with amax = NaN,
                             MP_STEP_RANGE or MP_STEP_NO_SCALE.  0 to 2 differ from mp_step_outcome_t.
            @param count     host: elements written, at most config.history."""

        def mp_hyper_init(self, hyper: Pointer, struct_size: int, kind: int, lr: float, /) -> int:
            """Initializes the defaults of the cited papers.  weight_decay is 0, except for methods that are
            defined by it.  lr has no default.  trust is that of LARS; Apex's LARC has 0.02.

                          beta1   beta2   eps     others
                SGD       0.9     0       0       trust 0.001
                Adam      0.9     0.999   1e-8
                LAMB      0.9     0.999   1e-6    weight_decay 0.01
                NovoGrad  0.95    0.98    1e-8
                Adagrad   0       0       1e-10
                RMSProp   0       0.9     1e-8

            decay_power is 1; all other fields are 0."""

        def mp_optimizer_desc_init(self, desc: Pointer, struct_size: int, kind: int, /) -> int:
            """Initializes a descriptor with one group and no tensors.  flags is MP_OPT_DECOUPLED_DECAY for
            MP_OPT_LAMB and 0 for all other kinds."""

        def mp_optimizer_desc_from_name(self, name: Optional[bytes], desc: Pointer, desc_size: int, hyper: Pointer, hyper_size: int, lr: float, /) -> int:
            """Initializes a descriptor with the method of that name and one group, `hyper`, with the method's
            defaults.  Case is ignored.

                "sgd", "adam", "lamb", "novograd", "adagrad", "rmsprop"   mp_optimizer_kind_t
                "adamw"   MP_OPT_ADAM with MP_OPT_DECOUPLED_DECAY and weight_decay 0.01, as in torch

            @param name   host.
            @param desc   host, out, desc_size bytes; desc->groups is hyper.  Zeroed on error.
            @param hyper  host, out, hyper_size bytes; must live until mp_optimizer_create.
            @retval MP_ERROR_NOT_FOUND unknown name"""

        def mp_optimizer_create(self, optimizer: Pointer, context: Handle, desc: Pointer, /) -> int:
            """Creates an optimizer: uploads the hyperparameters, and allocates the scratch memory of all steps
            and any moments that the descriptor lacks."""

        def mp_optimizer_destroy(self, optimizer: Handle, /) -> None:
            """Destroys an optimizer and its allocations, but not the caller's lists and tensors."""

        def mp_optimizer_moments(self, optimizer: Handle, m: Pointer, v: Pointer, /) -> int:
            """Returns the lists m and v, passed or allocated; mp_tensor_list_get has their addresses.  They
            live as long as the optimizer.
            @param m,v  host, out, each optional; NULL if the optimizer has none."""

        def mp_optimizer_set_hyper(self, optimizer: Handle, group: int, hyper: Pointer, stream: Handle, /) -> int:
            """Replaces the hyperparameters of one group, in stream order.  They are stored on the device, so a
            captured graph uses the new values when it is replayed.
            @retval MP_ERROR_INVALID_ARGUMENT max_tensor_norm is not 0, but was 0 in all groups at creation:
                    a step would need an additional launch"""

        def mp_optimizer_step(self, optimizer: Handle, grad_scale: Pointer, found_inf: Pointer, stream: Handle, /) -> int:
            """Updates master, m, v and model in one kernel for any number of tensors.

            LAMB, NovoGrad, LARC and LARS need one more kernel before it, which computes norms of tensors;
            max_tensor_norm needs another one (not in mp_scale_step, which computes these norms anyway).  An
            element whose new weight or moment is not finite keeps its old weight and moments.

            The device decides whether to update, and the host does not see the decision: waiting for it
            would leave the GPU idle once per step.
            @param grad_scale  device, 1 float multiplied into every gradient, e.g. 1/S; NULL = 1.
                               Infinity or NaN skips the update, like found_inf.
            @param found_inf   device, 1 float; if it is not 0 when the kernel runs, nothing is written and
                               t does not advance.  NULL = always update.
            Source: Micikevicius et al. 2018, section 3.1 (master weights)."""

        def mp_model_options_init(self, options: Pointer, struct_size: int, /) -> int:
            """Initializes rounding to nearest with clamping on overflow."""

        def mp_masters_to_model(self, master: Handle, model: Handle, found_inf: Pointer, options: Pointer, stream: Handle, /) -> int:
            """Computes model = round(master) for a program that updates its fp32 weights itself.  The result
            is bitwise that of an optimizer step.
            @param master     MP_FP32; read.
            @param model      MP_FP16 or MP_BF16, parallel to master; written.  Parameters with a NULL data
                              pointer have no 16-bit copy.
            @param found_inf  device, 1 float, optional; if it is not 0 when the kernel runs, nothing is
                              written, so that a skipped step changes neither weights nor copy.
            @param options    host, optional; NULL = the defaults."""

        def mp_optimizer_lr(self, optimizer: Handle, /) -> Optional[int]:
            """Returns the learning rates of the last applied step, before lr_multipliers.
            @return device, num_groups floats, 0 before the first step; they live as long as the optimizer.
                    NULL if optimizer is NULL"""

        def mp_optimizer_regularization(self, optimizer: Handle, loss: Pointer, stream: Handle, /) -> int:
            """Computes the contribution of l1 and l2 to the loss, for the current master weights, in one
            kernel:

                sum over tensors of (their decay multiplier) (l1 sum |w| + l2 sum w^2)

            Sums are fp32 within a chunk and fp64 across chunks, in a fixed order, as in mp_l2norm.
            @param loss  device, 1 float."""

        def mp_optimizer_get_scaler(self, optimizer: Handle, /) -> Optional[int]:
            """Returns the scaler that mp_scale_step uses if none is passed: static, S = 1, diverged_after 100.
            It counts skips and serves mp_step_query, so bf16 training needs no other scaler.
            @return owned by the optimizer, and lives as long; NULL if optimizer is NULL"""

        def mp_optimizer_step_counter(self, optimizer: Handle, /) -> Optional[int]:
            """Returns the device address of the step counter t, which is constant for the life of the
            optimizer.  Every applied step increments t.  NULL if optimizer is NULL."""

        def mp_optimizer_write_model(self, optimizer: Handle, stream: Handle, /) -> int:
            """Computes model = round(master) after the caller has loaded masters.  Does nothing if the
            optimizer has no model list.

            The result is bitwise that of the step that incremented t to its current value: it uses the
            optimizer's flags and rounding_seed.  (mp_cast differs: it makes overflows infinite, and never
            rounds at random.)  mp_optimizer_restore_sync includes this call."""

        def mp_optimizer_checkpoint_size(self, optimizer: Handle, scaler: Handle, bytes: Pointer, /) -> int:
            """Returns the size of a checkpoint, which contains master, m, v, t and the state of the scaler.
            @param scaler  optional; NULL = mp_optimizer_get_scaler.
            @param bytes   host, out."""

        def mp_optimizer_save_sync(self, optimizer: Handle, scaler: Handle, checkpoint: Pointer, bytes: int, stream: Handle, /) -> int:
            """Writes a checkpoint to host memory; waits for `stream`.  The format is little-endian, and later
            versions of the library can read it.  It does not contain hyperparameters, the states of a graph
            (running statistics), dropout offsets, or the position in the data.
            @param scaler      the scaler passed to mp_scale_step; no other state is saved.
                               NULL = mp_optimizer_get_scaler.
            @param checkpoint  host, out.
            @param bytes       size of `checkpoint`, at least mp_optimizer_checkpoint_size.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL bytes is smaller"""

        def mp_optimizer_restore_sync(self, optimizer: Handle, scaler: Handle, checkpoint: Pointer, bytes: int, stream: Handle, /) -> int:
            """Restores master, m, v, t and the scaler, then writes model as mp_optimizer_write_model does.
            Given the same descriptor and data, training continues bit for bit.  Waits for `stream`.
            @param scaler      as in mp_optimizer_save_sync; its state must satisfy the rules of
                               mp_scaler_set_state_sync.
            @param checkpoint  host, any alignment.
            @param bytes       exact size of the saved checkpoint.
            @retval MP_ERROR_INVALID_ARGUMENT not a checkpoint, or one of other tensors, another kind or
                    another scaler; nothing has been written"""

        def mp_optimizer_get_step_sync(self, optimizer: Handle, t: Pointer, stream: Handle, /) -> int:
            """Returns the step counter t; waits for `stream`."""

        def mp_optimizer_set_step_sync(self, optimizer: Handle, t: int, stream: Handle, /) -> int:
            """Sets t, e.g. from a checkpoint of another format; waits for `stream`.  Call
            mp_optimizer_write_model afterwards.
            @param t  in [0, 2^52]"""

        def mp_comm_init(self, comm: Pointer, struct_size: int, /) -> int:
            """Initializes a communicator of a single rank, which does not communicate."""

        def mp_comm_init_nccl(self, comm: Pointer, nccl_comm: Pointer, /) -> int:
            """Initializes *comm with the callbacks of an NCCL communicator.  The library does not link NCCL:
            this call loads libnccl.so.2 with dlopen.  The callbacks return ncclResult_t codes.
            @param comm       host, out; initialize it with MP_INIT_STRUCT.
            @param nccl_comm  a blocking ncclComm_t; must outlive the calls that receive *comm.  (A
                              nonblocking one returns ncclInProgress, which counts as a failure.)
            @retval MP_ERROR_NOT_FOUND NCCL cannot be loaded
            @retval MP_ERROR_COMM NCCL does not return rank or size of nccl_comm"""

        def mp_grad_all_reduce(self, grads: Handle, comm: Pointer, pre: float, post: float, stream: Handle, /) -> int:
            """Sums gradients over ranks: grads = post * sum over ranks (pre * grads).  In place, in the types
            of the gradients, with every product rounded.  Factors that average over n = world_size ranks:

                pre = 1/n,        post = 1           no overflow, but small values may underflow
                pre = 1,          post = 1/n         small values are kept, but sums may overflow
                pre = 1/sqrt(n),  post = 1/sqrt(n)   a compromise

            A factor of 1 costs nothing, any other one pass over the gradients.  If the factors are powers
            of two and all ranks have equal gradients, the average has the same bits, unless a value
            underflows or overflows on the way.

            Each non-empty tensor is one all_reduce, in the order of the list, in one batch: NCCL merges
            them into one launch.  Adjacent tensors are not merged, because addresses may differ between
            ranks.  If one buffer holds all gradients, pass a list with one tensor over that buffer.

            The gradients may still be multiplied by S.  Infinity and NaN remain in the sum, so every rank
            detects them; mp_step_options.comm covers the other decisions.
            @param grads     the gradients of this rank; overwritten.
            @param pre,post  > 0, finite.
            @retval MP_ERROR_COMM a callback failed: all gradients have been multiplied by pre, and some may
                    have been summed"""

        def mp_step_options_init(self, options: Pointer, struct_size: int, /) -> int:
            """Initializes options without clipping or reports, for one rank."""

        def mp_scale_step(self, optimizer: Handle, scaler: Handle, options: Pointer, stream: Handle, /) -> int:
            """Checks, unscales and clips the gradients, updates the weights, and adapts the loss scale:

                1. found_inf |= any non-finite gradient;  norm, amax  one pass over the gradients
                2. found_inf, NaN and amax become those of all ranks, with MP_STEP_SHARDED also the
                   norm                                                       only with comm
                3. if the outcome is MP_STEP_TAKEN:
                       g = gradient / S, clipped;  optimizer update of master;
                       model = round(master);  t += 1                         second pass
                4. S follows its policy;  found_inf is cleared                not with MP_STEP_KEEP_SCALER

            Everything runs on the device, without host synchronization.  The result is bitwise that of
            mp_check_nonfinite, mp_l2norm, mp_amax, mp_clip_factor, mp_optimizer_step and mp_scaler_update
            in this order, with fewer launches and less memory traffic.  Two passes are the minimum, because
            no weight may change before the last gradient has been checked; with MP_STEP_CHECKED, one is
            enough.

            found_inf is the scaler's flag (mp_scaler_found_inf), which a GEMM epilogue may already have set
            for an activation gradient.  An overflow skips the step with MP_SCALER_STATIC too.

            Finite gradients, weights and moments stay finite.  Norms do not overflow.  A step in which the
            square of a gradient could overflow is skipped (MP_STEP_RANGE).  An element whose new weight or
            moment is not finite, e.g. because of an infinite extra gradient, keeps its old weight and
            moments; mp_step_options.rejected_updates counts it.

            Ranks: after mp_grad_all_reduce the gradients are equal on all ranks, but a flag set by an
            epilogue is not, nor is the amax of a sharded optimizer.  Phase 2 is one all_reduce of 3 floats
            (max) and, with MP_STEP_SHARDED, one of 3 floats (sum), in one batch, between two small kernels.
            Causes of a skip are sent as a code, so that no maximum involves NaN.  The sums are sums of
            squares in fp32, separate for large, small and other values, each scaled by a power of two.

            @param scaler   optional; NULL = mp_optimizer_get_scaler: static, S = 1 (bf16).
            @param options  host, optional; NULL = no clipping, one rank.
            @retval MP_ERROR_INVALID_ARGUMENT e.g. optimizer and scaler belong to different contexts
            @retval MP_ERROR_COMM a callback of options->comm failed: neither weights nor S have been
                    updated, but the scaler's flag is set if a gradient is not finite.  Other ranks may have
                    taken the step"""

        def mp_grads_accumulate(self, scaler: Handle, grads: Handle, sums: Handle, weight: float, flags: int, stream: Handle, /) -> int:
            """Accumulates unscaled gradients in fp32: sums += weight / S * grads or, with MP_ACCUMULATE_FIRST,
            sums = weight / S * grads.  One pass, with the current S; weight / S is rounded once, and so is
            each sum.

            Sets the scaler's flag if a gradient or its product with weight / S is not finite.  Records the
            largest |gradient|, still multiplied by S and without the weight, for the scaler's next update.
            An overflow also remains in the sums, as infinity or NaN, until the next MP_ACCUMULATE_FIRST:
            one bad micro-batch discards its window even if the flag is cleared.

            Accumulation over k micro-batches; `sums` are the optimizer's gradients:

                for (int i = 0; i < k; i++) {
                  const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
                  forward_and_backward(i);
                  mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
                }
                options.flags = MP_STEP_UNSCALED;
                mp_scale_step(optimizer, scaler, &options, stream);

            With several ranks, call mp_grad_all_reduce on the sums before the step, and set options.comm.

            S is constant within such a window.  In another form it follows its policy after each
            micro-batch, so that the rest of a discarded window uses a smaller S.  Then mp_scaler_state and
            mp_step_query count micro-batches.  In both forms options.found_inf reports a discarded window:

                for (int i = 0; i < k; i++) {
                  const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
                  forward_and_backward(i);
                  mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
                  mp_scaler_update(scaler, NULL, stream);
                }
                mp_scale_step(optimizer, NULL, &options, stream);

            @param grads   any types; sums may be grads if all are MP_FP32.
            @param sums    MP_FP32, parallel to grads.
            @param weight  finite: 1, 1/k or a task weight.  0 adds nothing, but overflows are still
                           detected.
            @param flags   bitwise or of mp_accumulate_flags_t."""

        def mp_grads_to_fp32(self, scaler: Handle, grads: Handle, out: Handle, stream: Handle, /) -> int:
            """Computes out = grads / S in fp32 and checks for overflow, in one pass: mp_grads_accumulate with
            weight 1 and both flags.  The first half of a step with an optimizer of the host program, which
            updates fp32 master weights by any rule:

                const float *found_inf = mp_scaler_found_inf(scaler);
                mp_grads_to_fp32(scaler, grads, grads32, stream);
                my_optimizer(found_inf); // masters and grads32; does nothing if *found_inf is not 0
                mp_masters_to_model(masters, models, found_inf, NULL, stream);
                mp_scaler_update(scaler, NULL, stream);

            This optimizer runs on the device and reads the flag there.  If the optimizer runs on the host
            or cannot read the flag, the host polls mp_step_query and then starts it; other enqueued work
            continues meanwhile.  n is mp_scaler_state.steps + 1:

                mp_step_outcome_t outcome = MP_STEP_PENDING;
                mp_grads_to_fp32(scaler, grads, grads32, stream);
                while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n, &outcome);
                if (outcome == MP_STEP_TAKEN) {
                  my_host_optimizer();
                  mp_masters_to_model(masters, models, NULL, NULL, stream);
                }
                mp_scaler_update(scaler, NULL, stream);

            @param grads  any types; out may be grads if all are MP_FP32.
            @param out    MP_FP32, parallel to grads."""

        def mp_step_query(self, scaler: Handle, step: int, outcome: Pointer, /) -> int:
            """Returns the outcome of a step, which the device has written to host memory.  Neither waits nor
            enqueues work.  Any thread may call it at any time, even while another one uses the scaler.

            The queue never runs empty if the host queries a step while work of the next one is enqueued:

                for (int64_t n = 1; n <= steps; n++) {
                  mp_step_outcome_t outcome = n > 1 ? MP_STEP_PENDING : MP_STEP_SKIPPED;
                  forward_and_backward(n); // enqueued; step n - 1 is done long before this is
                  while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n - 1, &outcome);
                  if (outcome == MP_STEP_TAKEN) my_learning_rate_advances();
                  mp_scale_step(optimizer, scaler, NULL, stream);
                }

            A skipped step is logged once at MP_LOG_INFO with its cause, unless a later one has already been
            logged.  The line contains the old S and, unless the query precedes the update, the new S.

            @param step     >= 1, counted like mp_scaler_state.steps: step n is the update after which steps
                            is n, also after restoring a state and in a replayed graph.  Its outcome is
                            available at the end of the mp_scale_step or mp_scaler_update that counts it
                            (steps with MP_STEP_KEEP_SCALER do not count), or after MP_ACCUMULATE_LAST.
            @param outcome  host, out.
            @retval MP_ERROR_NOT_FOUND the step is MP_STEP_QUERY_DEPTH or more steps old, or precedes a
                    restored state"""

        def mp_autocast_config_init(self, config: Pointer, struct_size: int, low: int, /) -> int:
            """Initializes a configuration: preset MP_AUTOCAST_DEFAULT, level MP_AUTOCAST_NORMAL, no flags, no
            limits."""

        def mp_autocast_scaler_init(self, config: Pointer, struct_size: int, low: int, /) -> int:
            """Initializes the loss scaler for `low`.  MP_FP16: MP_SCALER_PRESET_KERAS, which TensorFlow calls
            "dynamic".  MP_BF16 and MP_FP32: S = 1.
            @retval MP_ERROR_INVALID_ARGUMENT low is any other value"""

        def mp_autocast_create(self, policy: Pointer, config: Pointer, /) -> int:
            """Creates a policy.  Unless MP_AUTOCAST_NO_ENVIRONMENT is set, it reads environment variables:

                MP_AUTOCAST=off|fp16|bf16
                MP_AUTOCAST_LEVEL=normal|infer_as_deny|tensor_cores_only|force_all
                MP_AUTOCAST_ALLOW_ADD=Op,Op     also INFER, DENY and CLEAR instead of ALLOW
                MP_AUTOCAST_ALLOW_REMOVE=Op,Op  likewise
                MP_AUTOCAST_IGNORE_PERFORMANCE=1
                MP_AUTOCAST_LOG=folder          each rewrite writes its lists, report and two pictures there

            These variables override `config`; mp_autocast_set_class and mp_autocast_set_nodes override
            them.  With a TensorFlow preset, the corresponding TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_
            variables (LEVEL, ALLOWLIST_ADD, WHITELIST_ADD, ..., IGNORE_PERFORMANCE, LOG_PATH) are read
            first.

            @param config  host, optional; NULL = mp_autocast_config_default(MP_FP16).
            @retval MP_ERROR_INVALID_ARGUMENT a variable has an invalid value, or adds an operation that is
                    on another list and is not removed from it"""

        def mp_autocast_destroy(self, policy: Handle, /) -> None:
            """Destroys a policy."""

        def mp_autocast_set_class(self, policy: Handle, op_types: Pointer, count: int, op_class: int, /) -> int:
            """Moves operations to a class.
            @param op_types  host, count names, copied; unknown names are added.
            @retval MP_ERROR_INVALID_ARGUMENT also if the policy has been used"""

        def mp_autocast_set_nodes(self, policy: Handle, pattern: Optional[bytes], node_class: int, /) -> int:
            """Assigns a class to nodes by name, independent of their operation, e.g. to keep all nodes whose
            name begins with "decoder/" in fp32.  If several patterns match, the last one set applies.
            @param pattern  host, copied.  As in a shell: * matches any text, including "/", ? any
                            character, [a-z] one of these and [!a-z] any other.
            @retval MP_ERROR_INVALID_ARGUMENT also if the policy has been used, or a [ has no ]"""

        def mp_autocast_class(self, policy: Handle, op_type: Optional[bytes], /) -> int:
            """Returns the class of an operation, before the level is applied.  Names are case-sensitive.
            Returns MP_CAST_UNLISTED if the operation is unknown (with MP_AUTOCAST_PYTORCH MP_CAST_CLEAR),
            or if op_type or policy is NULL."""

        def mp_autocast_gate(self, policy: Handle, context: Handle, closed_because: Pointer, /) -> int:
            """Returns why low precision is not faster on a device, or NULL if it is.

            This gate disables rewrites that would not pay off: fp16 requires Tensor Cores (sm_70), bf16
            requires sm_80, and the host target has no faster 16-bit arithmetic.  A closed gate is not an
            error: mp_autocast_rewrite leaves the graph unchanged and logs one warning.
            MP_AUTOCAST_IGNORE_PERFORMANCE opens it; MP_AUTOCAST=off always closes it.
            @param context         optional; NULL = any device: only MP_AUTOCAST=off closes the gate.
            @param closed_because  host, out: a clause in static storage; NULL = open."""

        def mp_autocast_rewrite(self, policy: Handle, context: Handle, graph: Pointer, result: Pointer, /) -> int:
            """Determines the type of each node and the required casts.
            @param context  optional: device of the gate, see mp_autocast_gate; NULL = any device.
            @param graph    host.
            @param result   host, out.
            @retval MP_ERROR_INVALID_ARGUMENT a value is out of range (the message names array and index),
                    or MP_AUTOCAST_FORCE_ALL with MP_BF16"""

        def mp_autocast_explain(self, policy: Handle, graph: Pointer, result: Pointer, form: int, text: Pointer, bytes: Pointer, /) -> int:
            """Writes a report: the type of each node and the reason.
            @param graph   host: the graph that was rewritten, unchanged.
            @param result  host: the result of mp_autocast_rewrite; its arrays are not read.
            @param text    host, optional, out: NUL-terminated; NULL only returns the size.
            @param bytes   host.  In: size of text.  Out: required size, including the NUL.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL *bytes is smaller than the required size"""

        def mp_autocast_op(self, policy: Handle, op_type: Optional[bytes], input_dtype: Pointer, count: int, cast_to: Pointer, output: Pointer, /) -> int:
            """Determines the casts of a single operation, for programs that execute eagerly:

                MP_CAST_ALLOW    inputs and output in low precision
                MP_CAST_DENY     inputs and output in fp32
                otherwise        inputs of one type stay unchanged; inputs of several types become fp32

            Inputs of MP_DTYPE_NONE, such as integers or fp64, stay unchanged.  Gate and level are ignored,
            except that MP_AUTOCAST=off disables all casts.

            @param input_dtype  host, count values of mp_dtype_t; NULL if count is 0.
            @param cast_to      host, out, count values of mp_dtype_t; MP_DTYPE_NONE = no cast.
            @param output       host, out: type of the output; MP_DTYPE_NONE if all inputs are.
            @retval MP_ERROR_UNSUPPORTED the operation is unsafe in 16 bits; the message names a
                    replacement"""

        def mp_xent_desc_init(self, desc: Pointer, struct_size: int, rows: int, classes: int, dtype: int, /) -> int:
            """Initializes a loss of dense rows: weight = 1, no smoothing, label -100 ignored.

            -100 is the ignore_index of torch.  Other labels outside [0, classes), such as -1 or `classes`,
            are still detected."""

        def mp_softmax_xent(self, context: Handle, desc: Pointer, logits: Pointer, labels: Pointer, loss_scale: Pointer, row_loss: Pointer, loss: Pointer, correct: Pointer, dlogits: Pointer, stream: Handle, /) -> int:
            """Computes softmax cross-entropy and its gradient, in fp32 for every type of logits:

                p = softmax(logits[i])
                q[j] = (1 - label_smoothing) (j == labels[i]) + label_smoothing / classes
                row_loss[i] = -weight sum_j q[j] log p[j]
                loss = sum_i row_loss[i] / counted
                dlogits[i][j] = S weight / counted (p[j] - q[j])

            - Ignored rows: `counted` is the number of rows that are not ignored, determined on the
              device.  An ignored row has loss 0, a gradient of zeros, and is not counted as correct; its
              logits are not read.  If all rows are ignored, loss is NaN and the gradient 0, as in torch.
            - Several calls, by ranks or for micro-batches: their mean is the mean over all rows only if
              `counted` is equal in all calls.
            - Invalid labels: any other label outside [0, classes) makes the loss and the gradient of
              its row NaN, so that the step is skipped.  The host cannot check labels without waiting.
            - Masked classes: a logit of -infinity gives p = 0.  The loss is infinite if that class is
              the label or label_smoothing > 0; the gradient stays finite.
            - weight = 0 makes row_loss and dlogits 0, even if the loss is infinite, but keeps NaN.
            - Accuracy: the gradient of the label's logit is computed from the exponentials of the other
              classes.  If the label has the largest logit, so is the loss: log(1 + their sum).  Both keep
              their relative accuracy if the label has nearly all of the probability.
            - Determinism: the bits of a row depend on its values, the type, the number of classes,
              `counted` and the address of the row modulo 16, not on the size of the device.

            @param logits      device, rows x classes.
            @param labels      device, rows values.
            @param loss_scale  device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
            @param row_loss    device, rows floats, written; not multiplied by S.
            @param loss        device, 1 float, optional, written; not multiplied by S.  NaN if rows is 0.
            @param correct     device, 1 value, optional: increased by the number of rows whose largest
                               logit (the first of equal ones) is the label's.  Clear it first.
            @param dlogits     device, rows x classes, optional; may be the same matrix as logits
                               (equal ld).  NULL = forward only.
            Source: Micikevicius et al. 2018, section 3.3 (softmax and loss in fp32), 3.2 (loss scale);
            Szegedy et al., Rethinking the Inception Architecture, 2016, section 7 (label smoothing)."""

        def mp_loss_desc_init(self, desc: Pointer, struct_size: int, kind: int, count: int, dtype: int, /) -> int:
            """Initializes a mean over all elements: weight = 1, dtype_target = dtype."""

        def mp_loss_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Returns the workspace size that mp_loss requires: at most 16 KiB, 0 if count is 0.
            @param bytes  host, out."""

        def mp_loss(self, context: Handle, desc: Pointer, prediction: Pointer, target: Pointer, weights: Pointer, loss_scale: Pointer, element_loss: Pointer, loss: Pointer, dprediction: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes a mean squared error, mean absolute error or binary cross-entropy and its gradient, in
            fp32:

                element_loss[i] = weight weights[i] l(x[i], t[i])
                loss = sum_i element_loss[i] / divisor
                dprediction[i] = S weight weights[i] / divisor dl/dx(x[i], t[i])

            - Divisor: with MP_LOSS_MEAN the number of elements that are not ignored, independent of
              their weights, as in torch.  If all are ignored, the mean is NaN.
            - Ignored elements, and elements with weights[i] = 0, have loss 0 and gradient 0 for every
              prediction.  Elements with weights[i] = 0 are included in the divisor.
            - weight = 0 makes element_loss and dprediction 0, even if the loss is infinite, but keeps
              NaN.
            - NaN in prediction or target makes the loss and the gradient of that element NaN.
            - Infinite predictions, such as an overflow of fp16, make the gradient infinite or NaN, so
              that the step is skipped.  The exception is a logit of -infinity, which is masked as in
              mp_softmax_xent: its probability is 0 and its gradient -t.
            - Accuracy: for t = 0 and t = 1, loss and gradient of a logit keep their relative accuracy
              at probabilities close to 0 and 1.
            - Determinism: the sum is in fp64, in an order that depends only on count.

            @param prediction    device, count elements.
            @param target        device, count elements.
            @param weights       device, count floats, optional; NULL = 1.
            @param loss_scale    device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
            @param element_loss  device, count floats, optional, written; not multiplied by S.
            @param loss          device, 1 float, optional, written; not multiplied by S.
            @param dprediction   device, count elements, optional; may be prediction.  NULL = forward only.
            @param workspace     device, 256-byte aligned; mp_loss_workspace_size bytes.
            Source: torch.nn.MSELoss, L1Loss, BCEWithLogitsLoss; Micikevicius et al. 2018, sections 3.2,
                    3.3.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_loss_workspace_size"""

        def mp_nchw_to_nhwc(self, context: Handle, n: int, c: int, h: int, w: int, src: Pointer, src_dtype: int, dst: Pointer, dst_dtype: int, stream: Handle, /) -> int:
            """Transposes images from NCHW to NHWC, the layout of mp_conv2d_*, mp_pool2d_* and mp_batchnorm_*.
            Also converts the type, like mp_cast.

            @param n,c,h,w  extents, >= 0; if one is 0 the call does nothing.
            @param src      device, n x c x h x w, dense.
            @param dst      device, n x h x w x c, dense; must not overlap src."""

        def mp_nhwc_to_nchw(self, context: Handle, n: int, c: int, h: int, w: int, src: Pointer, src_dtype: int, dst: Pointer, dst_dtype: int, stream: Handle, /) -> int:
            """Transposes images from NHWC to NCHW: the inverse of mp_nchw_to_nhwc, with equal arguments n, c,
            h and w."""

        def mp_pool2d_desc_init(self, desc: Pointer, struct_size: int, mode: int, n: int, h: int, w: int, c: int, window_h: int, window_w: int, dtype: int, /) -> int:
            """Initializes adjacent windows: stride = window, no padding, no dilation."""

        def mp_pool2d_output_size(self, desc: Pointer, p: Pointer, q: Pointer, /) -> int:
            """Returns the extents P and Q of y.
            @param p,q  host, out."""

        def mp_pool2d_forward(self, context: Handle, desc: Pointer, x: Pointer, y: Pointer, stream: Handle, /) -> int:
            """Computes the maximum or mean of each window and channel.  A window with a NaN gives NaN.
            @param x  device, N H W C.
            @param y  device, N P Q C, written; must not overlap x."""

        def mp_pool2d_backward(self, context: Handle, desc: Pointer, x: Pointer, dy: Pointer, dx: Pointer, stream: Handle, /) -> int:
            """Computes the gradient of mp_pool2d_forward.

            Each pixel of dx sums over the windows that contain it, in fp32 and in a fixed order.
            MP_POOL_MAX routes dy to the maximum of each window, the first in row order if several are
            equal.  The maximum is recomputed from x, so y is not needed.
            @param x   device, N H W C; read only for MP_POOL_MAX, otherwise optional.
            @param dy  device, N P Q C.
            @param dx  device, N H W C, overwritten; must not overlap dy, nor x for MP_POOL_MAX."""

        def mp_batchnorm_desc_init(self, desc: Pointer, struct_size: int, rows: int, channels: int, dtype: int, /) -> int:
            """Initializes a batch normalization: epsilon = 1e-5, momentum = 0.1, no activation."""

        def mp_batchnorm_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Returns the workspace size that mp_batchnorm_forward_training and mp_batchnorm_backward require:
            at most 4 KiB per channel.
            @param bytes  host, out."""

        def mp_batchnorm_forward_training(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Normalizes each channel with the statistics of the batch:

                mean = sum_i x[i] / rows,  var = sum_i (x[i] - mean)^2 / rows
                inv_std = 1 / sqrt(var + epsilon)
                y[i] = activation((x[i] - mean) gamma inv_std + beta)
                running_mean = (1 - momentum) running_mean + momentum mean
                running_var  = (1 - momentum) running_var + momentum var rows / (rows - 1)

            @param tensors    host: x, saved_mean, saved_inv_std and y; optionally gamma, beta, and
                              running_mean and running_var, which are updated.
            @param workspace  device, 256-byte aligned; mp_batchnorm_workspace_size bytes.

            - Non-finite values: a channel becomes NaN if its x contains an infinity or NaN, or if
              rows var exceeds the range of fp32.  Its running statistics are then not updated, so a step
              skipped for this reason leaves them unchanged.  A step skipped for another reason, such as a
              gradient overflow, has updated them.
            - Recovery: an infinite or NaN running value is replaced by the next finite value of a
              batch, unless momentum is 0.
            - Small batches: rows = 1 leaves running_var unchanged, because one sample has no unbiased
              variance.  rows = 0 or channels = 0 writes nothing.
            - Accuracy: means and squared deviations of row blocks are combined pairwise, so the
              variance is accurate even if the mean is much larger than the deviation.  The order depends
              only on the shape, not on the device.

            Source: Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1; Chan, Golub & LeVeque,
            Algorithms for Computing the Sample Variance, 1983; Micikevicius et al. 2018, section 3.3
            (statistics in fp32).
            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_batchnorm_workspace_size"""

        def mp_batchnorm_forward_inference(self, context: Handle, desc: Pointer, tensors: Pointer, stream: Handle, /) -> int:
            """Normalizes each channel with the running statistics.  desc->momentum is ignored.
            @param tensors  host: x, running_mean and running_var (both read), and y, which may be x;
                            optionally gamma and beta."""

        def mp_batchnorm_backward(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes the gradients of mp_batchnorm_forward_training:

                g[i] = dy[i], or with MP_ACT_RELU 0 if y[i] was not positive
                xhat[i] = (x[i] - mean) inv_std
                dbeta = sum_i g[i],  dgamma = sum_i g[i] xhat[i]
                dx[i] = gamma inv_std (g[i] - dbeta / rows - xhat[i] dgamma / rows)

            y is not read: its sign is recomputed from x.  An infinity or NaN in x or g makes dgamma and dx
            of its channel infinite or NaN.  Workspace and order of sums are those of the forward pass.
            @param tensors  host: x, gamma, beta, saved_mean and saved_inv_std as in the forward pass, dy
                            and dx; optionally dgamma and dbeta."""

        def mp_pointwise_desc_init(self, desc: Pointer, struct_size: int, op: int, rows: int, columns: int, dtype: int, /) -> int:
            """Initializes a pass over dense tensors: dtype_b = dtype, no activation."""

        def mp_pointwise(self, context: Handle, desc: Pointer, a: Pointer, b: Pointer, y: Pointer, stream: Handle, /) -> int:
            """Computes y = activation(z) for each element, in fp32 and rounded once.

            Activations are those of mp_epilogue_t.  NaN is propagated, with one exception: MP_ACT_DRELU
            returns a if b > 0, and otherwise 0 even if a is NaN.  rows = 0 or columns = 0 does nothing.

            @param a  device, rows x columns.
            @param b  device; ignored, and may be NULL, with MP_POINTWISE_COPY and no D* activation.
            @param y  device, rows x columns, written; may be a.  May be b if both have the same type and
                      layout: dtype_b = dtype, and ld_b = columns or rows = 1.
            Source: Hendrycks & Gimpel, Gaussian Error Linear Units, 2016 (both forms of GELU);
                    Ramachandran, Zoph & Le, Searching for Activation Functions, 2017 (SiLU).
            @retval MP_ERROR_INVALID_ARGUMENT a D* activation with another op; y is a b of another type or
                    layout; y overlaps a or b in any other way"""

        def mp_column_sum_desc_init(self, desc: Pointer, struct_size: int, rows: int, columns: int, dtype: int, /) -> int:
            """Initializes a sum over dense rows: dtype_sum = MP_FP32, beta = 0."""

        def mp_column_sum_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Returns the workspace size that mp_column_sum requires: at most 2 KiB per column.
            @param bytes  host, out."""

        def mp_column_sum(self, context: Handle, desc: Pointer, x: Pointer, sum: Pointer, epilogue: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Sums each column of a matrix, e.g. a bias gradient that no GEMM epilogue computes:

                sum[j] = round(*scale * (x[0][j] + x[1][j] + ...) + beta * sum[j])

            The sum is in fp32, in an order that depends only on rows and columns, and rounded once.
            rows = 0 computes beta * sum; columns = 0 does nothing.

            @param x          device, rows x columns; for images rows = N H W, columns = C.
            @param sum        device, columns elements, written; read only if beta != 0.  Must not overlap
                              x.
            @param epilogue   host, optional: scale, amax and found_inf.  All other fields must be 0.
            @param workspace  device, 256-byte aligned; mp_column_sum_workspace_size bytes.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_column_sum_workspace_size"""

        def mp_rnn_desc_init(self, desc: Pointer, struct_size: int, cell: int, batch: int, timesteps: int, input_size: int, hidden_size: int, dtype: int, /) -> int:
            """Initializes one unidirectional layer with biases: dense tensors, dtype_dw = dtype, no dropout,
            clipping or flags.

            For batch-major tensors, [sequence][time step][element], set x_step = input_size and
            x_row = timesteps * input_size, and y_step and y_row accordingly."""

        def mp_rnn_get_sizes(self, context: Handle, desc: Pointer, sizes: Pointer, /) -> int:
            """Returns the sizes of reserve and workspace and the number of weights.
            @param sizes  host, out; initialize it with MP_INIT_STRUCT."""

        def mp_rnn_forward_training(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes y, hn and cn, and fills the reserve for the backward passes.
            @param tensors    host: weights, lengths or batch_sizes, dropout_offset, x, h0, c0, y, hn, cn,
                              reserve.
            @param workspace  device, 256-byte aligned; its contents are not used by later calls.

            If timesteps is 0, hn = h0 and cn = c0; backward, dh0 = dhn and dc0 = dcn.

            Determinism: the bits of a sequence depend on its own values, the shape and the device, not on
            the padding or the lengths of the other sequences.  Likewise, a sequence split into windows that
            pass on h and c gives the bits of the unsplit sequence.  Both hold between calls with more than
            64 rows each, where a row is one time step of one sequence.

            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes or reserve_bytes is smaller than
                    mp_rnn_get_sizes returns; unlike in mp_gemm, neither is optional"""

        def mp_rnn_forward_inference(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes y, hn and cn like mp_rnn_forward_training, but without dropout and without a reserve.
            dropout_offset and reserve are ignored."""

        def mp_rnn_backward_data(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes dx, dh0 and dc0, and overwrites the saved gates in the reserve with their gradients.
            @param tensors  host: weights, lengths or batch_sizes, dropout_offset, h0 and c0 with the values
                            of the forward pass; reserve, dy, dhn, dcn, dx, dh0, dc0, found_inf.

            Gate gradients, dx and dh0 are rounded to desc->dtype.  Non-finite gate gradients or dx set
            found_inf.  The gradient of a clipped c' is 0."""

        def mp_rnn_backward_weights(self, context: Handle, desc: Pointer, tensors: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes the gradients of weights and biases, after mp_rnn_backward_data.

            They are sums over all time steps and sequences, in fp32 and in a fixed order; 0 if there are no
            time steps.  MP_RNN_ACCUMULATE adds them to the previous values.
            @param tensors  host: lengths or batch_sizes, dropout_offset, x (optional if the first layer's
                            w_ih gradients are NULL), h0, reserve, weight_grads, found_inf, amax."""

        def mp_embedding_desc_init(self, desc: Pointer, struct_size: int, rows: int, vocabulary: int, width: int, dtype: int, /) -> int:
            """Initializes a lookup with dense rows: dtype_dtable = dtype, no flags."""

        def mp_embedding_forward(self, context: Handle, desc: Pointer, table: Pointer, indices: Pointer, out: Pointer, stream: Handle, /) -> int:
            """Copies rows of a table: out[i] = table[indices[i]].

            An index outside [0, vocabulary) makes its row of out NaN and reads nothing, so that the step is
            skipped.  The host cannot check indices without waiting.

            @param table    device, vocabulary x width.
            @param indices  device, rows values.
            @param out      device, rows x width, written; must not overlap table or indices."""

        def mp_embedding_workspace_size(self, context: Handle, desc: Pointer, bytes: Pointer, /) -> int:
            """Returns the workspace size that mp_embedding_backward requires: less than
            rows (17 + width / 8) + 4 vocabulary + 128 KiB + 8 width bytes; 0 if rows is 0.
            @param bytes  host, out."""

        def mp_embedding_backward(self, context: Handle, desc: Pointer, indices: Pointer, dout: Pointer, dtable: Pointer, found_inf: Pointer, amax: Pointer, workspace: Pointer, workspace_bytes: int, stream: Handle, /) -> int:
            """Computes the gradient of the table: dtable[v] = sum of dout[i] over all i with indices[i] = v.

            Rows of dtable without an index become 0.  Indices outside [0, vocabulary) are skipped.  A NaN
            in dout affects one row of dtable.

            Determinism: sums are in fp32 and rounded once.  The rows of dout with equal index are added in
            ascending order of i, in blocks of 64 rows whose sums are then combined;
            MP_EMBEDDING_ACCUMULATE adds the previous value last.  The bits of a row of dtable thus depend
            on its rows of dout, their order and width, not on other indices or the device.

            @param indices    device, rows values.
            @param dout       device, rows x width.
            @param dtable     device, vocabulary x width, overwritten.  MP_EMBEDDING_ACCUMULATE writes only
                              rows with an index, without the padding row.
            @param found_inf  device, 1 float, optional: set to 1 and never cleared, see mp_epilogue_t.
            @param amax       device, 1 float, optional, updated: largest |element| written to dtable, after
                              rounding.
            @param workspace  device, 256-byte aligned; mp_embedding_workspace_size bytes.
            @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_embedding_workspace_size"""

        def mp_dropout_desc_init(self, desc: Pointer, struct_size: int, count: int, p: float, dtype: int, /) -> int:
            """Initializes a dropout of `count` elements with seed 0."""

        def mp_dropout(self, context: Handle, desc: Pointer, offset: Pointer, x: Pointer, y: Pointer, stream: Handle, /) -> int:
            """Computes y = x mask / (1 - p), where the mask is 0 with probability p and otherwise 1.

            The backward pass is the same call with dy as x and dx as y: the mask is not stored but
            recomputed from seed, offset and element index.  Element i is dropped if word i % 4 of
            Philox 4x32-10 is less than floor(2^32 p).  The key is the seed; the counter, low words first,
            is i / 4 (1 word), the offset (2 words) and i / 4 / 2^32 (1 word).  mp_rnn_* use different
            random words, even with the same seed.

            A dropped element is 0 even if x is NaN.  The others are multiplied by 1 / (1 - p) in fp32 and
            rounded once.  With p = 0, y equals x.

            @param offset  device, 1 value, optional; NULL = 0.  Selects the mask: use a counter in device
                           memory that changes in every training step, such as mp_optimizer_step_counter;
                           otherwise all steps have equal masks.  A replayed CUDA graph reads its current
                           value.  It must be the same in the forward and backward pass of a step.
            @param x       device, count elements.
            @param y       device, count elements, written; may be x.
            Source: Srivastava et al., Dropout, 2014; Salmon et al., Parallel Random Numbers, 2011."""

        def mp_graph_create(self, graph: Pointer, context: Handle, /) -> int:
            """Creates an empty graph."""

        def mp_graph_destroy(self, graph: Handle, /) -> None:
            """Destroys a graph and its memory.  Wait for enqueued work first, and destroy optimizers created
            from its lists."""

        def mp_graph_input(self, graph: Handle, name: Optional[bytes], dtype: int, rank: int, extent: Pointer, tensor: Pointer, /) -> int:
            """Adds an input: a tensor in memory of the caller, see mp_graph_bind.
            @param name    host, copied, not empty.
            @param dtype   MP_FP32: autocast may cast it; MP_FP16, MP_BF16: read as stored; MP_DTYPE_NONE:
                           integers.
            @param extent  host, rank values >= 1; the tensor is dense and row-major.  If rank > 0,
                           extent[0] is the maximum batch, equal for all inputs.
            @param tensor  host, out: index of the tensor in all other calls."""

        def mp_graph_parameter(self, graph: Handle, name: Optional[bytes], rank: int, extent: Pointer, tensor: Pointer, /) -> int:
            """Adds a trainable tensor: fp32, in memory of the graph.  mp_graph_lists returns it for an
            optimizer.
            @param tensor  host, out."""

        def mp_graph_state(self, graph: Handle, name: Optional[bytes], rank: int, extent: Pointer, tensor: Pointer, /) -> int:
            """Adds a tensor that persists between steps and is not trained, such as running statistics: fp32,
            in memory of the graph.
            @param tensor  host, out."""

        def mp_graph_node(self, graph: Handle, op_type: Optional[bytes], name: Optional[bytes], inputs: Pointer, num_inputs: int, attributes: Pointer, num_attributes: int, outputs: Pointer, num_outputs: int, /) -> int:
            """Adds a node: an operation from the list above.
            @param op_type     host, e.g. "Linear".
            @param name        host, copied, not empty.
            @param inputs      host, num_inputs tensors; -1 = absent optional input.
            @param attributes  host, num_attributes values, copied; NULL if num_attributes is 0.
            @param outputs     host, out, num_outputs tensors; the last optional outputs can be omitted.
            @retval MP_ERROR_NOT_FOUND unknown operation or attribute
            @retval MP_ERROR_INVALID_ARGUMENT shapes that do not match; the message names the node"""

        def mp_graph_output(self, graph: Handle, tensor: int, /) -> int:
            """Marks an output of a node as readable: it gets memory that is not shared with other tensors and
            keeps its value until the next pass.  Outputs of losses are readable anyway.  A tensor that
            depends on the loss is computed together with it, see mp_graph_mode_t."""

        def mp_graph_keep_gradient(self, graph: Handle, tensor: int, /) -> int:
            """Keeps the gradient of an output of a node, so that mp_graph_tensor_t.grad can be read, e.g. to
            inspect its range in fp16.  Gradients of parameters are kept anyway."""

        def mp_graph_loss(self, graph: Handle, tensor: int, /) -> int:
            """Sets the loss to minimize: output 0 of a SoftmaxXent, MSE, L1 or BCEWithLogits.  Without a loss
            and without mp_graph_seed_gradient, the graph has no backward pass."""

        def mp_graph_seed_gradient(self, graph: Handle, tensor: int, input: Pointer, /) -> int:
            """Adds an input for the gradient of a loss that the caller computes: dL / d(tensor), in fp32, with
            the shape of `tensor`, not multiplied by S.

            Read `tensor`, which becomes an output, after mp_graph_forward; bind its gradient before
            mp_graph_backward.  mp_graph_backward multiplies the gradient by S.  Gradients of several seeds
            and of mp_graph_loss add up.
            @param tensor  floating-point output of a node; at most one seed per tensor.
            @param input   host, out."""

        def mp_graph_autocast(self, graph: Handle, policy: Handle, /) -> int:
            """Enables mixed precision: the policy determines the type of each operation.  Call it before
            mp_graph_compile.  If the policy's gate is closed on this device (mp_autocast_gate), the graph
            stays fp32, with one warning.
            @param policy  must exist until mp_graph_compile has succeeded.  MP_AUTOCAST_EMULATE is not
                           supported."""

        def mp_graph_compile(self, graph: Handle, /) -> int:
            """Appends the backward pass, inserts casts, fuses operations and allocates memory.  The graph
            cannot be modified afterwards.  Parameters and states are initialized to 0.
            @retval MP_ERROR_INVALID_ARGUMENT the loss depends on no parameter, or a parameter has no
                    influence on it
            @retval MP_ERROR_OUT_OF_MEMORY nothing was allocated"""

        def mp_graph_bind(self, graph: Handle, tensor: int, data: Pointer, /) -> int:
            """Sets the address of an input, from the next pass on.  A pass reads as many elements as the
            current batch has.
            @param data  device, aligned to its element size; 16-byte alignment selects the fastest kernels.
                         NULL = unbound."""

        def mp_graph_set_batch(self, graph: Handle, batch: int, /) -> int:
            """Sets the batch size, from the next pass on.  The first call with a new size takes longer on the
            host, and allocates if that size needs more workspace than mp_graph_compile planned.
            @param batch  1 to extent[0] of the inputs.
            @retval MP_ERROR_OUT_OF_MEMORY the batch size is unchanged"""

        def mp_graph_write(self, graph: Handle, tensor: int, values: Pointer, stream: Handle, /) -> int:
            """Copies values to a parameter or state, in stream order, and updates the 16-bit copy of a
            parameter if it has one.
            @param values  host or device, fp32, all elements of the tensor."""

        def mp_graph_forward(self, graph: Handle, mode: int, stream: Handle, /) -> int:
            """Computes the outputs from the bound inputs.
            @retval MP_ERROR_INVALID_ARGUMENT a required input is not bound"""

        def mp_graph_backward(self, graph: Handle, scaler: Handle, stream: Handle, /) -> int:
            """Computes the loss, and S times the gradients of all parameters.  The previous pass must be
            mp_graph_forward with MP_GRAPH_TRAINING and the same batch.
            @param scaler  optional: provides S and found_inf, which an overflow in the pass sets.
                           NULL: S = 1."""

        def mp_graph_get_step_sync(self, graph: Handle, t: Pointer, stream: Handle, /) -> int:
            """Returns the step of a graph with Dropout: the number of forward passes in training, including
            replays of a CUDA graph.  Waits for `stream`.  Save it in checkpoints, so that a resumed run has
            the same masks as an uninterrupted one.
            @param t  host, out; 0 for a graph without Dropout."""

        def mp_graph_set_step_sync(self, graph: Handle, t: int, stream: Handle, /) -> int:
            """Sets the step, e.g. from a checkpoint; mp_graph_compile sets it to 0.  Waits for `stream`.
            @param t  0 to 2^52.  No effect on a graph without Dropout."""

        def mp_graph_lists(self, graph: Handle, grads: Pointer, master: Pointer, model: Pointer, /) -> int:
            """Returns the lists for an optimizer: all parameters, in the order of their creation.  The lists
            belong to the graph and exist as long as it does.  No two gradients share memory.
            @param grads,master,model  host, out, each optional.  model is NULL if no parameter has a 16-bit
                                       copy; mp_optimizer_desc_t accepts that."""

        def mp_graph_get_tensor(self, graph: Handle, tensor: int, info: Pointer, /) -> int:
            """Returns the properties of a tensor.  Before mp_graph_compile it has no addresses.
            @param info  host, out; initialize it with MP_INIT_STRUCT."""

        def mp_graph_get_memory(self, graph: Handle, memory: Pointer, /) -> int:
            """Returns the device memory of a compiled graph.
            @param memory  host, out; initialize it with MP_INIT_STRUCT."""

        def mp_graph_explain(self, graph: Handle, form: int, text: Pointer, bytes: Pointer, /) -> int:
            """Writes the reason for the type of each operation, forward and backward, before fusion.  The
            report is that of mp_autocast_explain.
            @param text   host, optional, out: NUL-terminated; NULL only returns the size.
            @param bytes  host.  In: size of text.  Out: required size, including the NUL.
            @retval MP_ERROR_INVALID_ARGUMENT compiled without mp_graph_autocast
            @retval MP_ERROR_WORKSPACE_TOO_SMALL *bytes is smaller than the required size"""

        def mp_graph_describe(self, graph: Handle, text: Pointer, bytes: Pointer, /) -> int:
            """Writes the calls of a compiled graph in order, one per line: pass, operations, function,
            tensors, types and shapes.

            The pass is "forward", "backward" or "inference".  Lines marked inference compute the loss and
            tensors that depend on it: in inference mode they run in the forward pass, in training the
            backward pass makes these calls.  `text` and `bytes` as in mp_graph_explain."""

        def mp_scaler_config_init_preset(self, config: Pointer, struct_size: int, preset: int, /) -> int:
            """Initializes the configuration of a preset.  In presets of other systems, unlisted fields have
            the defaults of MP_SCALER_BACKOFF, except that max_scale and diverged_after are 0.
            @retval MP_ERROR_INVALID_ARGUMENT unknown preset"""

        def mp_scaler_config_from_name(self, name: Optional[bytes], config: Pointer, struct_size: int, /) -> int:
            """Initializes a configuration from a name, as used on command lines and in other systems'
            configuration files.  Case is ignored.

                "Backoff"    MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF (OpenSeq2Seq's name)
                "LogMax"     MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX (OpenSeq2Seq's name)
                "lognormal"  MP_SCALER_PRESET_LOGNORMAL
                "dynamic"    MP_SCALER_PRESET_APEX_AMP (Apex's name); the initial S is that of GradScaler
                "none"       MP_SCALER_STATIC with S = 1
                "128"        MP_SCALER_STATIC with S = 128, and likewise for every other valid S

            If a static S is outside [1, 2^24], min_scale or max_scale is set to it.
            @param name    host.
            @param config  host, out; zeroed on error.
            @retval MP_ERROR_NOT_FOUND unknown name
            @retval MP_ERROR_INVALID_ARGUMENT a number <= 0, not finite, or without a finite reciprocal"""

        def mp_scaler_from_torch(self, saved: Pointer, config: Pointer, state: Pointer, /) -> int:
            """Converts a checkpoint of torch into the configuration and state of a scaler that continues it.
            @param saved   host.
            @param config  host, out, for mp_scaler_create; initialize it with MP_INIT_STRUCT.
            @param state   host, out, for mp_scaler_set_state_sync; initialize it with MP_INIT_STRUCT.
            @retval MP_ERROR_INVALID_ARGUMENT a scale without a finite reciprocal; a factor or interval out
                    of range; or growth_tracker >= growth_interval, which torch's set_growth_interval can
                    cause. torch compares the two for equality, so S would not grow there before the next
                    overflow; here it would grow at once.  Set growth_tracker to 0"""

        def mp_scaler_to_torch(self, config: Pointer, state: Pointer, saved: Pointer, /) -> int:
            """Converts a configuration and state for GradScaler.load_state_dict.  Hysteresis, limits of S and
            counts of skips are lost: torch has none.
            @param saved  host, out."""

        def mp_scaler_from_megatron(self, saved: Pointer, state: Pointer, /) -> int:
            """Converts a checkpoint of Megatron-LM into a state, for a scaler with MP_SCALER_PRESET_MEGATRON.
            @param saved  host.
            @param state  host, out; initialize it with MP_INIT_STRUCT.
            @retval MP_ERROR_INVALID_ARGUMENT a scale without a finite reciprocal, or a growth_tracker < 0;
                    mp_scaler_set_state_sync checks the limits that depend on the scaler"""

        def mp_scaler_to_megatron(self, state: Pointer, saved: Pointer, /) -> int:
            """Converts a state for DynamicGradScaler.load_state_dict.
            @param saved  host, out."""

        def mp_gemm_kernel_info(self, context: Handle, desc: Pointer, index: int, info: Pointer, /) -> int:
            """Returns a kernel for a problem of mp_gemm with 16-byte aligned operands.  Index 0 is the kernel
            that mp_gemm would launch.  The others follow by predicted time; unsupported kernels are last.
            @param info  host, out; initialize it with MP_INIT_STRUCT.
            @retval MP_ERROR_NOT_FOUND index is past the last kernel"""

        def mp_conv2d_kernel_info(self, context: Handle, desc: Pointer, op: int, index: int, info: Pointer, /) -> int:
            """Returns a kernel for one pass of a convolution, like mp_gemm_kernel_info."""

        def mp_rnn_kernel_info(self, context: Handle, desc: Pointer, index: int, info: Pointer, /) -> int:
            """Returns an implementation of the time steps of a recurrent layer: separate GEMM and cell
            kernels, or one fused kernel per step.  Index 0 is the one that the library would use.
            workspace_bytes is that of the complete call, as in mp_rnn_get_sizes."""


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
