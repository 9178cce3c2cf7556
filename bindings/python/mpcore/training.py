"""mpcore/tensors.h, scaler.h, optimizer.h, step.h: lists of tensors, the loss scaler, optimizers, the step."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Iterable, List, Optional, Sequence

from . import _sys
from ._library import Handle, check, enumerator, fill, flags, lib
from .arrays import View
from .context import Context, stream_pointer


class _Object(Handle):
    """What belongs to a context."""

    def __init__(self, context: Context):
        self.context = context

    @property
    def handle(self) -> int:
        """For mpcore._sys."""
        self.context.handle  # raises where that is closed
        return super().handle

    def _create(self, function: Any, desc: Any) -> None:
        handle = ctypes.c_void_p()
        check(function(ctypes.byref(handle), self.context.handle, ctypes.byref(desc)))
        self._handle = handle.value

    def close(self) -> None:
        if self._handle and self.context._handle:
            super().close()
        self._handle = None


def _address(context: Context, array: Any, name: str, size: int, writable: bool = True,
             dtype: str = "float32") -> Optional[int]:
    if array is None:
        return None
    return context.check_array(array, name, dtype=dtype, size=size, writable=writable).address


def nccl_comm(communicator: int) -> Any:
    """mp_comm_t over an ncclComm_t, given by its address, which must outlive it."""
    comm = _sys.mp_comm_t()
    check(lib.mp_comm_init_nccl(ctypes.byref(comm), communicator))
    return comm


class Reports:
    """mp_tensor_report_t on the device, `count` of them: what is in a tensor, or in all of a list."""

    def __init__(self, context: Context, count: int = 1):
        self.count = count
        self.array = context.zeros(count * ctypes.sizeof(_sys.mp_tensor_report_t), "uint8")

    def read(self, stream: Any = None) -> List[Any]:
        """num_nan, num_inf, amax, ... of each; waits for the stream."""
        return list((_sys.mp_tensor_report_t * self.count).from_buffer_copy(self.array.tobytes(stream)))


def _reports(context: Context, reports: Optional[Reports], name: str, count: int) -> Optional[int]:
    if reports is None:
        return None
    if reports.count != count:
        raise ValueError(f"{name} has {reports.count} reports, not {count}")
    return context.check_array(reports.array, name, dtype="uint8", writable=True).address


class TensorList(_Object):
    """Many dense arrays treated as one.  Keeps them alive.  None stands for a parameter without a
    16-bit copy, in the model list of an optimizer; `numels` then says how many elements it has."""

    _destroy = "mp_tensor_list_destroy"

    def __init__(self, context: Context, arrays: Sequence[Any], *, numels: Optional[Sequence[int]] = None):
        super().__init__(context)
        self.arrays: List[Any] = list(arrays)
        views = [None if a is None else context.check_array(a, f"arrays[{i}]")
                 for i, a in enumerate(self.arrays)]
        if any(v is None for v in views) and numels is None:
            raise ValueError("arrays has a None, so numels is needed")
        self.numels = [v.size if v else int(numels[i]) for i, v in enumerate(views)]  # type: ignore
        self.dtypes = [v.dtype if v else None for v in views]
        known = next((v.mp_dtype for v in views if v), _sys.MP_FP32)
        count = len(views)
        data = (ctypes.c_void_p * max(1, count))(*[v.address if v and v.size else None for v in views])
        lengths = (ctypes.c_int64 * max(1, count))(*self.numels)
        dtypes = (ctypes.c_uint32 * max(1, count))(*[v.mp_dtype if v else known for v in views])
        desc = _sys.mp_tensor_list_desc_t(
            dtype=known, count=count, data=ctypes.addressof(data), numel=ctypes.addressof(lengths),
            dtypes=ctypes.addressof(dtypes))
        self._create(lib.mp_tensor_list_create, desc)

    def __len__(self) -> int:
        return len(self.arrays)

    def set_data(self, arrays: Sequence[Any], stream: Any = None) -> None:
        """Point the list at other arrays of the same sizes and types."""
        if len(arrays) != len(self):
            raise ValueError(f"{len(arrays)} arrays for a list of {len(self)}")
        views = [self.context.check_array(a, f"arrays[{i}]", dtype=self.dtypes[i], size=self.numels[i])
                 for i, a in enumerate(arrays)]
        data = (ctypes.c_void_p * max(1, len(views)))(*[v.address if v.size else None for v in views])
        check(lib.mp_tensor_list_set_data(self.handle, ctypes.addressof(data), stream_pointer(stream)))
        self.arrays = list(arrays)

    def check_nonfinite(self, found_inf: Any, stream: Any = None) -> None:
        """Set the float32 to 1 if any element is infinite or NaN; never clears it."""
        check(lib.mp_check_nonfinite(self.handle, _address(self.context, found_inf, "found_inf", 1),
                                     stream_pointer(stream)))

    def amax(self, out: Any = None, *, per_tensor: Any = None, stream: Any = None) -> Any:
        """Largest absolute value, into one float32 (made where `out` is not given)."""
        out = self.context.empty(1) if out is None else out
        check(lib.mp_amax(self.handle, _address(self.context, out, "out", 1),
                          _address(self.context, per_tensor, "per_tensor", len(self)), stream_pointer(stream)))
        return out

    def l2norm(self, out: Any = None, *, per_tensor: Any = None, stream: Any = None) -> Any:
        """sqrt(sum x^2), into one float32 (made where `out` is not given)."""
        out = self.context.empty(1) if out is None else out
        check(lib.mp_l2norm(self.handle, _address(self.context, out, "out", 1),
                            _address(self.context, per_tensor, "per_tensor", len(self)),
                            stream_pointer(stream)))
        return out

    def inspect(self, report: Optional[Reports] = None, tensor_reports: Optional[Reports] = None,
                stream: Any = None) -> None:
        """Look at every element once: NaN, infinities, zeros, what is about to underflow.  See
        mp_inspect."""
        check(lib.mp_inspect(self.handle, _reports(self.context, report, "report", 1),
                             _reports(self.context, tensor_reports, "tensor_reports", len(self)),
                             stream_pointer(stream)))

    def stats(self, *, found_inf: Any = None, amax: Any = None, tensor_amax: Any = None, norm: Any = None,
              tensor_norm: Any = None, report: Optional[Reports] = None,
              tensor_reports: Optional[Reports] = None, stream: Any = None) -> None:
        """What is given of check_nonfinite, amax, l2norm and inspect, in one pass."""
        context, count = self.context, len(self)
        outputs = _sys.mp_stats_outputs_t()
        outputs.found_inf = _address(context, found_inf, "found_inf", 1)
        outputs.amax = _address(context, amax, "amax", 1)
        outputs.tensor_amax = _address(context, tensor_amax, "tensor_amax", count)
        outputs.norm = _address(context, norm, "norm", 1)
        outputs.tensor_norm = _address(context, tensor_norm, "tensor_norm", count)
        outputs.report = _reports(context, report, "report", 1)
        outputs.tensor_reports = _reports(context, tensor_reports, "tensor_reports", count)
        check(lib.mp_tensor_stats(self.handle, ctypes.byref(outputs), stream_pointer(stream)))

    def all_reduce(self, comm: Any, pre: float = 1.0, post: float = 1.0, stream: Any = None) -> None:
        """Gradients of all ranks: post * sum(pre * self), in place.  comm is an mpcore._sys.mp_comm_t:
        nccl_comm, or callbacks of one's own."""
        check(lib.mp_grad_all_reduce(self.handle, ctypes.byref(comm), pre, post, stream_pointer(stream)))

    def unscale(self, out: "TensorList", inv_scale: Any, found_inf: Any = None, stream: Any = None) -> None:
        """out = self * inv_scale, see mp_unscale."""
        if out.numels != self.numels:
            raise ValueError(f"out has tensors of {out.numels} elements, this list of {self.numels}")
        check(lib.mp_unscale(self.handle, out.handle, _address(self.context, inv_scale, "inv_scale", 1, False),
                             _address(self.context, found_inf, "found_inf", 1), stream_pointer(stream)))


class DeviceScalar:
    """Numbers on the device, usually one, that belong to a scaler or an optimizer, and keep it alive."""

    def __init__(self, owner: _Object, address: int, writable: bool, dtype: str = "float32", size: int = 1):
        self._owner, self._address, self._writable = owner, address, writable
        self._dtype, self._size = dtype, size

    def _mpcore_view(self) -> View:
        self._owner.handle  # raises where it is closed
        context = self._owner.context
        return View(self._address, self._dtype, (self._size,), (1,), context.device, self._writable, self)

    def tolist(self, stream: Any = None) -> list:
        """The values now; waits for the stream."""
        view, context = self._mpcore_view(), self._owner.context
        values = ((ctypes.c_float if self._dtype == "float32" else ctypes.c_int64) * self._size)()
        check(lib.mp_memcpy(context.handle, ctypes.addressof(values), view.address, view.nbytes,
                            stream_pointer(stream)))
        context.sync(stream)
        return list(values)

    def item(self, stream: Any = None) -> Any:
        """The first of them now; waits for the stream."""
        return self.tolist(stream)[0]


def clip_factor(scaled_norm: Any, scaler: "Scaler", max_norm: float, out: Any = None, stream: Any = None) -> Any:
    """The factor that unscales and clips at once, for Optimizer.step; see mp_clip_factor.  scaled_norm is
    the norm before unscaling: TensorList.l2norm.  Returns out."""
    context = scaler.context
    out = context.empty(1) if out is None else out
    check(lib.mp_clip_factor(context.handle, _address(context, scaled_norm, "scaled_norm", 1, False),
                             _address(context, scaler.inv_scale, "inv_scale", 1, False), max_norm,
                             _address(context, out, "out", 1), stream_pointer(stream)))
    return out


class Scaler(_Object):
    """A loss scale that lives on the device.

    policy    "static", "backoff" or "lognormal" (mp_scaler_policy_t), or
    preset    "torch", "megatron", ... (mp_scaler_preset_t), or name: "dynamic", "128" (mp_scaler_config_from_name), or
    config    an mp_scaler_config_t: Autocast.scaler_config
    options   fields of mp_scaler_config_t: init_scale=, growth_interval=, ...
    """

    _destroy = "mp_scaler_destroy"

    def __init__(self, context: Context, policy: Any = None, *, preset: Any = None, name: Any = None,
                 config: Any = None, **options: Any):
        super().__init__(context)
        if sum(given is not None for given in (policy, preset, name, config)) != 1:
            raise TypeError("one of policy, preset, name and config is needed")
        if config is not None:
            config = _sys.mp_scaler_config_t.from_buffer_copy(config)
        elif name is not None:
            config = _sys.mp_scaler_config_t()
            check(lib.mp_scaler_config_from_name(name.encode(), config, ctypes.sizeof(config)))
        elif preset is not None:
            config = _sys.mp_scaler_config_preset(enumerator(_sys.mp_scaler_preset_t, preset))
        else:
            config = _sys.mp_scaler_config_default(enumerator(_sys.mp_scaler_policy_t, policy))
        if "flags" in options:
            options["flags"] = flags(_sys.mp_scaler_flags_t, options["flags"])
        self._start(fill(config, options))

    def _start(self, config: Any) -> None:
        self.config = config
        self._create(lib.mp_scaler_create, config)
        self.scale = DeviceScalar(self, lib.mp_scaler_scale(self.handle), False)
        self.inv_scale = DeviceScalar(self, lib.mp_scaler_inv_scale(self.handle), False)
        self.found_inf = DeviceScalar(self, lib.mp_scaler_found_inf(self.handle), True)

    @classmethod
    def from_torch(cls, context: Context, state: Dict[str, Any]) -> "Scaler":
        """Goes on where a torch.amp.GradScaler stopped: its state_dict()."""
        saved = _sys.mp_torch_scaler_t()
        for name, _ in saved._fields_:
            setattr(saved, name, state["_growth_tracker" if name == "growth_tracker" else name])
        self = cls.__new__(cls)
        _Object.__init__(self, context)
        config, begin = _sys.mp_scaler_config_t(), _sys.mp_scaler_state_t()
        check(lib.mp_scaler_from_torch(saved, config, begin))
        self._start(config)
        self._set(begin, None)
        return self

    def to_torch(self, stream: Any = None) -> Dict[str, Any]:
        """For GradScaler.load_state_dict."""
        saved = _sys.mp_torch_scaler_t()
        check(lib.mp_scaler_to_torch(self.config, self.state(stream), saved))
        return {"_growth_tracker" if name == "growth_tracker" else name: getattr(saved, name)
                for name, _ in saved._fields_}

    def update(self, amax: Any = None, stream: Any = None) -> None:
        """Apply the policy once; scale_step does it itself."""
        check(lib.mp_scaler_update(self.handle, _address(self.context, amax, "amax", 1, False),
                                   stream_pointer(stream)))

    def scale_loss(self, loss: Any, out: Any = None, stream: Any = None) -> Any:
        """out = loss * S; in place where `out` is not given.  Returns out."""
        out = loss if out is None else out
        got = self.context.check_array(loss, "loss")
        to = self.context.check_array(out, "out", dtype=got.dtype, shape=got.shape, writable=True)
        check(lib.mp_scale_loss(self.handle, got, to, got.mp_dtype, got.size,
                                stream_pointer(stream)))
        return out

    def accumulate(self, grads: TensorList, sums: TensorList, weight: float = 1.0, *, flags: Any = 0,
                   stream: Any = None) -> None:
        """sums += weight / S * grads, checked for overflow; flags "first", "last".  See
        mp_grads_accumulate."""
        check(lib.mp_grads_accumulate(self.handle, grads.handle, sums.handle, weight,
                                      _accumulate_flags(flags), stream_pointer(stream)))

    def to_fp32(self, grads: TensorList, out: TensorList, stream: Any = None) -> None:
        """out = grads / S, checked for overflow: for an optimizer of one's own.  See mp_grads_to_fp32."""
        check(lib.mp_grads_to_fp32(self.handle, grads.handle, out.handle, stream_pointer(stream)))

    def query(self, step: int) -> Any:
        """What became of a step, without waiting: MP_STEP_PENDING, MP_STEP_TAKEN or MP_STEP_SKIPPED of
        mpcore._sys.  Steps count from 1, as state().steps."""
        outcome = ctypes.c_uint32()
        check(lib.mp_step_query(self.handle, step, ctypes.byref(outcome)))
        return _sys.mp_step_outcome_t(outcome.value)

    def history(self, stream: Any = None) -> List[tuple]:
        """(scale, skipped) of the last updates, oldest first, as many as the option history= keeps; see
        mp_scaler_get_history_sync.  Waits for the stream."""
        capacity = max(1, self.config.history)
        scales, skipped = (ctypes.c_float * capacity)(), (ctypes.c_int32 * capacity)()
        count = ctypes.c_int64()
        check(lib.mp_scaler_get_history_sync(self.handle, capacity, ctypes.byref(scales), ctypes.byref(skipped),
                                             ctypes.byref(count), stream_pointer(stream)))
        return list(zip(scales, skipped))[:count.value]

    def state(self, stream: Any = None) -> Any:
        """mp_scaler_state_t: scale, steps, skipped, ...; waits for the stream."""
        state = _sys.mp_scaler_state_t()
        check(lib.mp_scaler_get_state_sync(self.handle, ctypes.byref(state), stream_pointer(stream)))
        return state

    def _set(self, state: Any, stream: Any) -> None:
        check(lib.mp_scaler_set_state_sync(self.handle, ctypes.byref(state), stream_pointer(stream)))

    def state_dict(self, stream: Any = None) -> Dict[str, Any]:
        """The state as numbers, for a checkpoint."""
        state = self.state(stream)
        return {name: getattr(state, name) for name, *_ in state._fields_ if name != "struct_size"}

    def load_state_dict(self, state: Dict[str, Any], stream: Any = None) -> None:
        self._set(fill(_sys.mp_scaler_state_t(), state), stream)


# What the update rule keeps beside the masters: (m, v).  "tensor": one element per tensor.
_STATE = {
    _sys.MP_OPT_SGD: ("momentum", None), _sys.MP_OPT_ADAM: ("full", "full"),
    _sys.MP_OPT_LAMB: ("full", "full"), _sys.MP_OPT_NOVOGRAD: ("full", "tensor"),
    _sys.MP_OPT_ADAGRAD: (None, "full"), _sys.MP_OPT_RMSPROP: ("momentum", "full"),
}


class Optimizer(_Object):
    """An update rule and the tensors that it updates.

    kind            "sgd", "adam", "lamb", "novograd", "adagrad", "rmsprop"
    grads, master   TensorLists, parallel; master is float32
    model           TensorList of 16-bit copies, optional
    lr, **options   fields of mp_hyper_t, for all tensors; or
    groups          a list of such dictionaries, and tensor_group one index per tensor
    flags           "decoupled_decay", ("larc", "nesterov"), ... (mp_optimizer_flags_t); by default
                    those of mp_optimizer_desc_default
    m, v            TensorLists of the state; made, of zeros, where they are not given
    """

    _destroy = "mp_optimizer_destroy"

    def __init__(self, context: Context, kind: Any, grads: TensorList, master: TensorList,
                 model: Optional[TensorList] = None, *, lr: Optional[float] = None,
                 groups: Optional[Sequence[Dict[str, Any]]] = None,
                 tensor_group: Optional[Sequence[int]] = None, flags: Any = None,
                 m: Optional[TensorList] = None, v: Optional[TensorList] = None,
                 lr_multipliers: Any = None, decay_multipliers: Any = None,
                 extra_grads: Optional[TensorList] = None, rounding_seed: int = 0, **options: Any):
        super().__init__(context)
        self.kind = enumerator(_sys.mp_optimizer_kind_t, kind)
        if (lr is None) == (groups is None):
            raise TypeError("one of lr and groups is needed")
        self._hypers = [self._hyper(g) for g in (groups or [dict(options, lr=lr)])]
        if groups is not None and options:
            raise TypeError(f"{', '.join(options)} beside groups")
        desc = _sys.mp_optimizer_desc_default(self.kind)
        if flags is not None:
            desc.flags = _flags(flags)
        desc.rounding_seed = rounding_seed
        hypers = (_sys.mp_hyper_t * len(self._hypers))(*self._hypers)
        desc.num_groups, desc.groups = len(self._hypers), hypers
        if tensor_group is not None:
            if len(tensor_group) != len(master):
                raise ValueError(f"tensor_group has {len(tensor_group)} entries for {len(master)} tensors")
            indices = (ctypes.c_uint32 * max(1, len(tensor_group)))(*tensor_group)
            desc.tensor_group = ctypes.addressof(indices)
        self.grads, self.master, self.model, self.extra_grads = grads, master, model, extra_grads
        self.m = m or self._make(_STATE[self.kind][0])
        self.v = v or self._make(_STATE[self.kind][1])
        for name in ("grads", "master", "model", "m", "v", "extra_grads"):
            tensors = getattr(self, name)
            setattr(desc, name, tensors.handle if tensors is not None else None)
        self._multipliers = (lr_multipliers, decay_multipliers)  # kept alive
        desc.lr_multipliers = _address(context, lr_multipliers, "lr_multipliers", len(master), False)
        desc.decay_multipliers = _address(context, decay_multipliers, "decay_multipliers", len(master), False)
        self._create(lib.mp_optimizer_create, desc)

    def _hyper(self, options: Dict[str, Any]) -> Any:
        options = dict(options)
        if "lr_schedule" in options:
            options["lr_schedule"] = enumerator(_sys.mp_lr_schedule_t, options["lr_schedule"])
        return fill(_sys.mp_hyper_default(self.kind, options.pop("lr")), options)

    def _make(self, what: Optional[str]) -> Optional[TensorList]:
        if what is None or what == "momentum" and all(h.beta1 == 0 for h in self._hypers):
            return None
        sizes: Iterable[int] = [1] * len(self.master) if what == "tensor" else self.master.numels
        return TensorList(self.context, [self.context.zeros(n) for n in sizes])

    def set_hyper(self, group: int = 0, stream: Any = None, **options: Any) -> None:
        """Change hyperparameters of a group, in stream order; the others stay."""
        hyper = type(self._hypers[group]).from_buffer_copy(self._hypers[group])
        if "lr_schedule" in options:
            options["lr_schedule"] = enumerator(_sys.mp_lr_schedule_t, options["lr_schedule"])
        fill(hyper, options)
        check(lib.mp_optimizer_set_hyper(self.handle, group, ctypes.byref(hyper), stream_pointer(stream)))
        self._hypers[group] = hyper

    def step(self, grad_scale: Any = None, found_inf: Any = None, stream: Any = None) -> None:
        """One update without a scaler, see mp_optimizer_step; usually scale_step is what is wanted."""
        check(lib.mp_optimizer_step(self.handle, _address(self.context, grad_scale, "grad_scale", 1, False),
                                    _address(self.context, found_inf, "found_inf", 1, False),
                                    stream_pointer(stream)))

    @property
    def lr(self) -> DeviceScalar:
        """The learning rates of the latest applied step, one per group."""
        return DeviceScalar(self, lib.mp_optimizer_lr(self.handle), False, size=len(self._hypers))

    @property
    def step_counter(self) -> DeviceScalar:
        """The number of applied steps, an int64: `t` of masters_to_model."""
        return DeviceScalar(self, lib.mp_optimizer_step_counter(self.handle), False, "int64")

    def regularization(self, out: Any = None, stream: Any = None) -> Any:
        """What l1 and l2 add to the loss, into one float32 (made where `out` is not given)."""
        out = self.context.empty(1) if out is None else out
        check(lib.mp_optimizer_regularization(self.handle, _address(self.context, out, "out", 1),
                                              stream_pointer(stream)))
        return out

    def get_step(self, stream: Any = None) -> int:
        """The number of applied steps, for a checkpoint; waits for the stream."""
        t = ctypes.c_int64()
        check(lib.mp_optimizer_get_step_sync(self.handle, ctypes.addressof(t), stream_pointer(stream)))
        return t.value

    def set_step(self, t: int, stream: Any = None) -> None:
        check(lib.mp_optimizer_set_step_sync(self.handle, t, stream_pointer(stream)))


def _flags(value: Any) -> int:
    return flags(_sys.mp_optimizer_flags_t, value)


def scale_step(optimizer: Optimizer, scaler: Optional[Scaler] = None, *, max_grad_norm: float = 0.0,
               grad_norm: Any = None, found_inf: Any = None, tensor_norms: Any = None, amax: Any = None,
               report: Optional[Reports] = None, tensor_reports: Optional[Reports] = None,
               model_overflows: Any = None, comm: Any = None, flags: Any = 0, stream: Any = None) -> None:
    """Everything between backward and the next forward, without waiting: check the gradients,
    unscale and clip them, update masters and 16-bit copies, move the scale.  See mp_scale_step.

    grad_norm, found_inf    float32, 1 element, written; tensor_norms one per tensor
    amax                    float32, 1 element, read: with the flag "checked"
    report, tensor_reports  Reports of the gradients: 1, and one per tensor
    model_overflows         int64, 1 element, increased
    comm                    mpcore._sys.mp_comm_t: the step of several ranks, which skip together
    flags                   "keep_scaler", "checked", ... (mp_step_flags_t)
    """
    context = optimizer.context
    if scaler is not None and scaler.context is not context:
        raise ValueError("optimizer and scaler belong to different contexts")
    options = _sys.mp_step_options_default()
    options.max_grad_norm = max_grad_norm
    options.flags = _step_flags(flags)
    options.grad_norm = _address(context, grad_norm, "grad_norm", 1)
    options.found_inf = _address(context, found_inf, "found_inf", 1)
    options.tensor_norms = _address(context, tensor_norms, "tensor_norms", len(optimizer.master))
    options.amax = _address(context, amax, "amax", 1, False)
    options.report = _reports(context, report, "report", 1)
    options.tensor_reports = _reports(context, tensor_reports, "tensor_reports", len(optimizer.master))
    options.model_overflows = _address(context, model_overflows, "model_overflows", 1, dtype="int64")
    if comm is not None:
        options.comm = ctypes.pointer(comm)
    check(lib.mp_scale_step(optimizer.handle, scaler.handle if scaler else None, ctypes.byref(options),
                            stream_pointer(stream)))


def _step_flags(value: Any) -> int:
    return flags(_sys.mp_step_flags_t, value)


def masters_to_model(master: TensorList, model: TensorList, found_inf: Any = None, *, flags: Any = 0,
                     rounding_seed: int = 0, t: Any = None, overflows: Any = None,
                     stream: Any = None) -> None:
    """model = round(master), the copy that a step writes, for a program that updates its masters
    itself.  flags: "model_overflow", "stochastic_rounding"; t and overflows are int64, 1 element.  See
    mp_masters_to_model."""
    context = master.context
    options = _sys.mp_model_options_default()
    options.flags, options.rounding_seed = _flags(flags), rounding_seed
    options.t = _address(context, t, "t", 1, False, "int64")
    options.overflows = _address(context, overflows, "overflows", 1, dtype="int64")
    check(lib.mp_masters_to_model(master.handle, model.handle,
                                  _address(context, found_inf, "found_inf", 1, False),
                                  ctypes.byref(options), stream_pointer(stream)))


def _accumulate_flags(value: Any) -> int:
    return flags(_sys.mp_accumulate_flags_t, value)
