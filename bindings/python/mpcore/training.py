"""Loss scalers, optimizers and the training step (mpcore/scaler.h, optimizer.h, step.h)."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from . import _sys
from ._library import Native, array_of, check, enumerator, fill, flags as flags_of, lib
from .arrays import point
from .context import Context, stream_pointer
from .tensors import DeviceScalar, Object, Reports, TensorList, copies_of, reports_of, view_of, views_of


def clip_factor(scaled_norm: Any, scaler: "Scaler", max_norm: float, out: Any = None, stream: Any = None) -> Any:
    """Computes the factor that unscales and clips, for Optimizer.step; see mp_clip_factor.  Returns
    out.

    scaled_norm is the norm before unscaling: TensorList.l2norm.
    """
    context = scaler.context
    out = context.empty(1) if out is None else out
    check(lib.mp_clip_factor(context.handle, view_of(context, scaled_norm, "scaled_norm", 1, False),
                             view_of(context, scaler.inv_scale, "inv_scale", 1, False), max_norm,
                             view_of(context, out, "out", 1), stream_pointer(stream)))
    return out


def _restored(struct: Any, saved: Dict[str, Any]) -> Any:
    """Calls fill(); raises ValueError for a missing field, because 0 is a valid state."""
    missing = [name for name, *_ in struct._fields_ if name != "struct_size" and name not in saved]
    if missing:
        raise ValueError(f"state has no entry {', '.join(missing)}")
    return fill(struct, saved)


_POLICIES = [policy.name[len("MP_SCALER_POLICY_"):].lower() for policy in _sys.mp_scaler_policy_t]


class Scaler(Object):
    """A loss scaler, whose scale is in device memory.

    Exactly one of these arguments is required:

    policy    "static", "backoff" or "lognormal" (mp_scaler_policy_t); other strings are used as
              name
    preset    "torch", "megatron", ... (mp_scaler_preset_t)
    name      "dynamic", "128", ... (mp_scaler_config_from_name)
    config    an mp_scaler_config_t, e.g. from Autocast.scaler_config

    options   fields of mp_scaler_config_t: init_scale=, growth_interval=, ...
    """

    _destroy = "mp_scaler_destroy"
    _instead = "create another one and call load_state_dict(x.state_dict())"

    def __init__(self, context: Context, policy: Any = None, *, preset: Any = None, name: Any = None,
                 config: Any = None, **options: Any):
        super().__init__(context)
        if sum(given is not None for given in (policy, preset, name, config)) != 1:
            raise TypeError("exactly one of policy, preset, name and config is required")
        if isinstance(policy, str) and policy.lower() not in _POLICIES:
            name, policy = policy, None
        if config is not None:
            config = _sys.mp_scaler_config_t.from_buffer_copy(config)
        elif name is not None:
            config = _sys.mp_scaler_config_t()
            check(lib.mp_scaler_config_from_name(str(name).encode(), config, ctypes.sizeof(config)))
        elif preset is not None:
            config = _sys.mp_scaler_config_preset(enumerator(_sys.mp_scaler_preset_t, preset, "preset"))
        else:
            config = _sys.mp_scaler_config_default(enumerator(_sys.mp_scaler_policy_t, policy, "policy"))
        if "flags" in options:
            options["flags"] = flags_of(_sys.mp_scaler_flags_t, options["flags"], "flags")
        self._start(fill(config, options))

    def _start(self, config: Any) -> None:
        self._create(lib.mp_scaler_create, config)
        self._show(config)

    def _show(self, config: Any) -> None:
        self.config = config
        self.scale = DeviceScalar(self, lib.mp_scaler_get_scale_address(self.handle), False)
        self.inv_scale = DeviceScalar(self, lib.mp_scaler_get_inv_scale_address(self.handle), False)
        self.found_inf = DeviceScalar(self, lib.mp_scaler_get_found_inf_address(self.handle), True)

    @classmethod
    def _of(cls, optimizer: "Optimizer") -> "Scaler":
        self = cls.__new__(cls)
        Object.__init__(self, optimizer.context)
        handle = lib.mp_optimizer_get_scaler(optimizer.handle)
        self._handle = Native.own(handle or 0, None, [optimizer.handle])
        self._show(_sys.mp_scaler_config_default(_sys.MP_SCALER_POLICY_STATIC))
        return self

    @classmethod
    def from_torch(cls, context: Context, state: Dict[str, Any]) -> "Scaler":
        """Creates a scaler that continues from the state_dict() of a torch.amp.GradScaler."""
        known = {"growth_tracker" if key == "_growth_tracker" else key: value for key, value in state.items()}
        saved = _restored(_sys.mp_torch_scaler_t(), known)
        self = cls.__new__(cls)
        Object.__init__(self, context)
        config, begin = _sys.mp_scaler_config_t(), _sys.mp_scaler_state_t()
        check(lib.mp_scaler_from_torch(saved, config, begin))
        self._start(config)
        self._set(begin, None)
        return self

    def to_torch(self, stream: Any = None) -> Dict[str, Any]:
        """Returns a state for GradScaler.load_state_dict.  Waits for the stream."""
        saved = _sys.mp_torch_scaler_t()
        check(lib.mp_scaler_to_torch(self.config, self.state(stream), saved))
        return {"_growth_tracker" if name == "growth_tracker" else name: getattr(saved, name)
                for name, *_ in saved._fields_}

    def update(self, amax: Any = None, stream: Any = None) -> None:
        """Applies the policy once; scale_step already does so."""
        check(lib.mp_scaler_update(self.handle, view_of(self.context, amax, "amax", 1, False), stream_pointer(stream)))

    def scale_loss(self, loss: Any, out: Any = None, stream: Any = None) -> Any:
        """Computes out = loss * S, in place if `out` is None; returns out."""
        out = loss if out is None else out
        got = self.context.check_array(loss, "loss")
        to = self.context.check_array(out, "out", dtype=got.dtype, shape=got.shape, writable=True)
        check(lib.mp_scale_loss(self.handle, got, to, got.mp_dtype, got.size, stream_pointer(stream)))
        return out

    def accumulate(self, grads: TensorList, sums: TensorList, weight: float = 1.0, *, flags: Any = 0,
                   stream: Any = None) -> None:
        """Computes sums += weight / S * grads and checks for overflow; see mp_grads_accumulate.

        flags: "first", "last".
        """
        check(lib.mp_grads_accumulate(self.handle, grads.handle, sums.written("sums"), weight,
                                      flags_of(_sys.mp_accumulate_flags_t, flags, "flags"), stream_pointer(stream)))

    def to_fp32(self, grads: TensorList, out: TensorList, stream: Any = None) -> None:
        """Computes out = grads / S and checks for overflow, for custom optimizers; see
        mp_grads_to_fp32."""
        check(lib.mp_grads_to_fp32(self.handle, grads.handle, out.written("out"), stream_pointer(stream)))

    def query(self, step: int) -> Any:
        """Returns the outcome of a step without waiting: MP_STEP_OUTCOME_PENDING,
        MP_STEP_OUTCOME_TAKEN, or the cause of a skip, such as MP_STEP_OUTCOME_OVERFLOW
        (mpcore._sys).  Steps are numbered from 1, like state().steps."""
        outcome = ctypes.c_uint32()
        check(lib.mp_scaler_query_step(self.handle, step, ctypes.byref(outcome)))
        return _sys.mp_step_outcome_t(outcome.value)

    def history(self, stream: Any = None) -> List[Tuple[float, int]]:
        """Returns (scale, skipped) of the last updates, oldest first.  Waits for the stream.

        The option history_length= sets the number of updates kept; see mp_scaler_get_history_sync.
        """
        capacity = max(1, self.config.history_length)
        scales, skipped = (ctypes.c_float * capacity)(), (ctypes.c_int32 * capacity)()
        count = ctypes.c_int64()
        check(lib.mp_scaler_get_history_sync(self.handle, capacity, ctypes.byref(scales), ctypes.byref(skipped),
                                             ctypes.byref(count), stream_pointer(stream)))
        return list(zip(scales, skipped))[:count.value]

    def state(self, stream: Any = None) -> Any:
        """Returns the mp_scaler_state_t: scale, steps, skipped, ...  Waits for the stream."""
        state = _sys.mp_scaler_state_t()
        check(lib.mp_scaler_get_state_sync(self.handle, state, stream_pointer(stream)))
        return state

    def _set(self, state: Any, stream: Any) -> None:
        check(lib.mp_scaler_set_state_sync(self.handle, state, stream_pointer(stream)))

    def state_dict(self, stream: Any = None) -> Dict[str, Any]:
        """Returns the state as numbers, for a checkpoint.  Waits for the stream."""
        state = self.state(stream)
        return {name: getattr(state, name) for name, *_ in state._fields_ if name != "struct_size"}

    def load_state_dict(self, state: Dict[str, Any], stream: Any = None) -> None:
        """Restores the state_dict() of a scaler with the same policy.  Waits for the stream."""
        self._set(_restored(_sys.mp_scaler_state_t(), state), stream)


# State of each update rule: (m, v).  "tensor": one element per tensor; "momentum": if beta1 != 0.
_STATE = {
    _sys.MP_OPT_SGD: ("momentum", None), _sys.MP_OPT_ADAM: ("full", "full"),
    _sys.MP_OPT_LAMB: ("full", "full"), _sys.MP_OPT_NOVOGRAD: ("full", "tensor"),
    _sys.MP_OPT_ADAGRAD: (None, "full"), _sys.MP_OPT_RMSPROP: ("momentum", "full"),
}


_LISTS = ("master", "m", "v")  # in a state_dict


# torch's names of fields of mp_param_group_t: (fields, kinds that use the name).
_NAMES_OF_TORCH = {
    "momentum": (("beta1",), (_sys.MP_OPT_SGD, _sys.MP_OPT_RMSPROP)),
    "betas": (("beta1", "beta2"), (_sys.MP_OPT_ADAM, _sys.MP_OPT_LAMB, _sys.MP_OPT_NOVOGRAD)),
}


def _names(kinds: Sequence[Any]) -> str:
    names: List[str] = [kind.name[len("MP_OPT_"):].lower() for kind in kinds]
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


class Optimizer(Object):
    """An update rule and the tensors that it updates.

    kind            "sgd", "adam", "lamb", "novograd", "adagrad" or "rmsprop"; "adamw" is "adam"
                    with the flag "decoupled_decay" and, like torch, weight_decay=0.01
    grads, master   parallel TensorLists; master is float32
    model           TensorList of 16-bit copies, optional
    lr, **options   fields of mp_param_group_t for all tensors, or torch's names: momentum is beta1
                    (sgd, rmsprop), betas is (beta1, beta2) (adam, lamb, novograd)
    groups          instead of lr and options: a list of such dictionaries
    tensor_group    index into groups, one per tensor
    flags           "decoupled_decay", ("larc", "nesterov"), ... (mp_optimizer_flags_t); None: the
                    flags of mp_optimizer_desc_default
    m, v            TensorLists of the state; None: allocate zeros

    For checkpoints use save() and restore(), which include the scaler, or state_dict() and
    load_state_dict().  Neither contains the hyperparameters.

    Defaults are those of mp_param_group_default; for example, sgd has a momentum of 0.9.
    Hyperparameters are rounded to float32, while the options of a Scaler keep the precision of
    Python.
    """

    _destroy = "mp_optimizer_destroy"
    _instead = "create another one and call load_state_dict(x.state_dict())"

    def __init__(self, context: Context, kind: Any, grads: TensorList, master: TensorList,
                 model: Optional[TensorList] = None, *, lr: Optional[float] = None,
                 groups: Optional[Sequence[Dict[str, Any]]] = None,
                 tensor_group: Optional[Sequence[int]] = None, flags: Any = None,
                 m: Optional[TensorList] = None, v: Optional[TensorList] = None,
                 lr_multipliers: Any = None, decay_multipliers: Any = None,
                 extra_grads: Optional[TensorList] = None, rounding_seed: int = 0, **options: Any):
        super().__init__(context)
        is_adamw = isinstance(kind, str) and kind.lower() == "adamw"
        self.kind = enumerator(_sys.mp_optimizer_kind_t, "adam" if is_adamw else kind, "kind")
        desc, self._default = _sys.mp_optimizer_desc_t(), _sys.mp_param_group_t()
        check(lib.mp_optimizer_desc_from_name(b"adamw" if is_adamw else _names([self.kind]).encode(), desc,
                                              ctypes.sizeof(desc), self._default, ctypes.sizeof(self._default), 0.0))
        if (lr is None) == (groups is None):
            raise TypeError("exactly one of lr and groups is required")
        self._groups = [self._group(g) for g in (groups or [dict(options, lr=lr)])]
        if groups is not None and options:
            raise TypeError(f"{', '.join(options)} cannot be combined with groups")
        if flags is not None:
            desc.flags = flags_of(_sys.mp_optimizer_flags_t, flags, "flags") | (desc.flags if is_adamw else 0)
        fill(desc, {"rounding_seed": rounding_seed})
        array = (_sys.mp_param_group_t * len(self._groups))(*self._groups)
        desc.num_groups, desc.groups = len(self._groups), array
        if tensor_group is not None:
            if len(tensor_group) != len(master):
                raise ValueError(f"tensor_group has {len(tensor_group)} entries for {len(master)} tensors")
            indices = array_of("tensor_group", ctypes.c_uint32, list(tensor_group) or [0])
            desc.tensor_group = ctypes.addressof(indices)
        self.grads, self.master, self.model, self.extra_grads = grads, master, model, extra_grads
        self.m = self._make(_STATE[self.kind][0]) if m is None else m
        self.v = self._make(_STATE[self.kind][1]) if v is None else v
        self._lists: Dict[str, Native] = {}
        for name in ("grads", "master", "model", "m", "v", "extra_grads"):
            tensors = getattr(self, name)
            if tensors is None:
                continue
            is_read = name in ("grads", "extra_grads")
            self._lists[name] = tensors.handle if is_read else tensors.keep_written(name)
            setattr(desc, name, self._lists[name])
        point(desc, **views_of(context, len(master), False, lr_multipliers=lr_multipliers,
                               decay_multipliers=decay_multipliers))
        # The library reads the views in every step.
        self._create(lib.mp_optimizer_create, desc, list(self._lists.values()), desc.views)

    def _group(self, options: Dict[str, Any]) -> Any:
        if "lr" not in options:
            raise TypeError("lr is required in each of groups")
        return fill(type(self._default).from_buffer_copy(self._default), self._fields(options))

    def _fields(self, options: Dict[str, Any]) -> Dict[str, Any]:
        """Converts options to fields of mp_param_group_t."""
        fields = dict(options)
        if "lr_schedule" in fields:
            fields["lr_schedule"] = enumerator(_sys.mp_lr_schedule_t, fields["lr_schedule"], "lr_schedule")
        for name, (targets, kinds) in _NAMES_OF_TORCH.items():
            if name not in fields:
                continue
            value = fields.pop(name)
            if self.kind not in kinds:
                raise TypeError(f"{name} = {value!r} is not supported by {_names([self.kind])}, only by "
                                f"{_names(kinds)}")
            try:
                numbers = (value,) if len(targets) == 1 else tuple(value)
            except TypeError:  # not a sequence
                numbers = (value,)
            if len(numbers) != len(targets):
                raise TypeError(f"{name} = {value!r} must be two numbers")
            for target, number in zip(targets, numbers):
                if target in fields:
                    raise TypeError(f"{name} = {value!r} cannot be combined with {target}")
                fields[target] = number
        return fields

    def _make(self, what: Optional[str]) -> Optional[TensorList]:
        if what is None or what == "momentum" and all(h.beta1 == 0 for h in self._groups):
            return None
        sizes: Iterable[int] = [1] * len(self.master) if what == "tensor" else self.master.numels
        return TensorList(self.context, [self.context.zeros(n) for n in sizes])

    def set_group(self, index: int = 0, stream: Any = None, **options: Any) -> None:
        """Changes the given hyperparameters of a group, in stream order."""
        group = type(self._groups[index]).from_buffer_copy(self._groups[index])
        fill(group, self._fields(options))
        check(lib.mp_optimizer_set_group(self.handle, index, group, stream_pointer(stream)))
        self._groups[index] = group

    def step(self, grad_scale: Any = None, found_inf: Any = None, stream: Any = None) -> None:
        """Performs one update without a scaler; see mp_optimizer_step.  Most programs use
        scale_step."""
        check(lib.mp_optimizer_step(self.handle, view_of(self.context, grad_scale, "grad_scale", 1, False),
                                    view_of(self.context, found_inf, "found_inf", 1, False), stream_pointer(stream)))

    @property
    def scaler(self) -> Scaler:
        """Scaler that scale_step uses if none is passed: static, S = 1; see
        mp_optimizer_get_scaler."""
        return Scaler._of(self)

    @property
    def lr(self) -> DeviceScalar:
        """Learning rates of the latest applied step, one per group."""
        return DeviceScalar(self, lib.mp_optimizer_get_lr_address(self.handle), False, size=len(self._groups))

    @property
    def step_counter(self) -> DeviceScalar:
        """Number of applied steps, an int64: `t` of masters_to_model."""
        return DeviceScalar(self, lib.mp_optimizer_get_step_address(self.handle), False, "int64")

    def regularization(self, out: Any = None, stream: Any = None) -> Any:
        """Computes the loss term of l1 and l2; returns out (float32, 1 element; allocated if
        None)."""
        out = self.context.empty(1) if out is None else out
        check(lib.mp_optimizer_regularization(self.handle, view_of(self.context, out, "out", 1),
                                              stream_pointer(stream)))
        return out

    def get_step(self, stream: Any = None) -> int:
        """Returns the number of applied steps, for a checkpoint.  Waits for the stream."""
        t = ctypes.c_int64()
        check(lib.mp_optimizer_get_step_sync(self.handle, ctypes.addressof(t), None, stream_pointer(stream)))
        return t.value

    def set_step(self, t: int, stream: Any = None) -> None:
        """Restores the number of applied steps; see mp_optimizer_set_step_sync.  Waits for the
        stream."""
        check(lib.mp_optimizer_set_step_sync(self.handle, t, None, stream_pointer(stream)))

    def write_model(self, stream: Any = None) -> None:
        """Computes model = round(master) with the rounding of this optimizer, after masters were
        loaded."""
        check(lib.mp_optimizer_write_model(self.handle, stream_pointer(stream)))

    def save(self, scaler: Optional[Scaler] = None, stream: Any = None) -> bytes:
        """Returns a checkpoint: masters, m, v, the number of steps, and the state of the scaler.

        scaler = None is the built-in scaler of the optimizer.  See mp_optimizer_save_sync.  Waits
        for the stream.
        """
        raw, size = None if scaler is None else scaler.handle, ctypes.c_size_t()
        check(lib.mp_optimizer_checkpoint_size(self.handle, raw, ctypes.byref(size)))
        checkpoint = ctypes.create_string_buffer(size.value)
        check(lib.mp_optimizer_save_sync(self.handle, raw, checkpoint, size.value, stream_pointer(stream)))
        return checkpoint.raw

    def restore(self, checkpoint: bytes, scaler: Optional[Scaler] = None, stream: Any = None) -> None:
        """Restores a checkpoint of save() and writes the 16-bit copies.  Waits for the stream.

        The optimizer must have the same tensors.  Training continues bit for bit.
        """
        data = (ctypes.c_char * len(checkpoint)).from_buffer_copy(checkpoint)
        check(lib.mp_optimizer_restore_sync(self.handle, None if scaler is None else scaler.handle, data, len(data),
                                            stream_pointer(stream)))

    def state_dict(self, stream: Any = None) -> Dict[str, Any]:
        """Returns kind, t (the number of steps), and master, m and v: float32 bytes per tensor, or
        None.

        Waits for the stream.
        """
        state: Dict[str, Any] = {"kind": _names([self.kind]), "t": self.get_step(stream)}
        for name in _LISTS:
            state[name] = copies_of(self.context, self._lists[name].kept, stream) if name in self._lists else None
        return state

    def load_state_dict(self, state: Dict[str, Any], stream: Any = None) -> None:
        """Restores a state_dict() and writes the 16-bit copies.  Waits for the stream."""
        missing = [name for name in ("kind", "t", *_LISTS) if name not in state]
        if missing:
            raise ValueError(f"state has no entry {', '.join(missing)}")
        if state["kind"] != _names([self.kind]):
            raise ValueError(f"kind = {state['kind']!r} must equal the optimizer's kind = {_names([self.kind])!r}")
        copies = []
        for name in _LISTS:
            saved = state[name]
            if (name in self._lists) != (saved is not None):
                raise ValueError(f"{name} = None, but the optimizer requires it" if saved is None else
                                 f"{name} must be None, like the optimizer's {name}")
            views = self._lists[name].kept if name in self._lists else []
            wanted, given = [got.nbytes for got in views], [len(one) for one in saved or []]
            if given != wanted:
                raise ValueError(f"{name} has tensors of {given} bytes, but the optimizer's have {wanted}")
            copies += list(zip(views, saved or []))
        self.set_step(state["t"], stream)
        for got, saved in copies:
            data = (ctypes.c_char * len(saved)).from_buffer_copy(saved)
            check(lib.mp_memcpy(self.context.handle, got, data, len(data), stream_pointer(stream)))
            self.context.sync(stream)
        self.write_model(stream)


def scale_step(optimizer: Optimizer, scaler: Optional[Scaler] = None, *, max_grad_norm: float = 0.0,
               grad_norm: Any = None, found_inf: Any = None, tensor_norms: Any = None, amax: Any = None,
               report: Optional[Reports] = None, tensor_reports: Optional[Reports] = None,
               model_overflows: Any = None, comm: Any = None, flags: Any = 0, stream: Any = None,
               outcome: Any = None, rejected_updates: Any = None) -> None:
    """Runs a training step after the backward pass, without waiting; see mp_scale_step.

    Checks the gradients, unscales and clips them, updates masters and 16-bit copies, and updates
    the scale.

    grad_norm, found_inf  float32, 1 element, written
    tensor_norms          float32, one per tensor, written
    amax                  float32, 1 element, read with the flag "checked"
    report                Reports of all gradients (1)
    tensor_reports        Reports of each gradient (one per tensor)
    model_overflows       int64, 1 element, increased
    outcome               int32, 1 element, written: mp_step_outcome_t
    rejected_updates      int64, 1 element, increased by the number of elements that kept their old
                          values
    comm                  mpcore._sys.mp_comm_t, for several ranks, which skip steps together; this
                          call raises the exception of a Python function in it
    flags                 "keep_scaler", "checked", ... (mp_step_flags_t)
    """
    context = optimizer.context
    if scaler is not None and scaler.context is not context:
        raise ValueError("optimizer and scaler belong to different contexts")
    count = len(optimizer.master)
    options = fill(_sys.mp_step_options_default(), {
        "max_grad_norm": max_grad_norm, "flags": flags_of(_sys.mp_step_flags_t, flags, "flags")})
    point(options, **views_of(context, 1, grad_norm=grad_norm, found_inf=found_inf),
          **views_of(context, count, tensor_norms=tensor_norms), **views_of(context, 1, False, amax=amax),
          **views_of(context, 1, dtype="int64", model_overflows=model_overflows, rejected_updates=rejected_updates),
          **views_of(context, 1, dtype="int32", outcome=outcome), report=reports_of(context, report, "report", 1),
          tensor_reports=reports_of(context, tensor_reports, "tensor_reports", count))
    if comm is not None:
        options.comm = ctypes.pointer(comm)
    check(lib.mp_scale_step(optimizer.handle, scaler.handle if scaler else None, options, stream_pointer(stream)))


def masters_to_model(master: TensorList, model: TensorList, found_inf: Any = None, *, flags: Any = 0,
                     rounding_seed: int = 0, t: Any = None, overflows: Any = None,
                     stream: Any = None) -> None:
    """Computes model = round(master), for programs that update the masters themselves.

    flags         "model_overflow", "stochastic_rounding"
    t, overflows  int64, 1 element

    See mp_masters_to_model.
    """
    context = master.context
    options = fill(_sys.mp_model_options_default(), {
        "flags": flags_of(_sys.mp_optimizer_flags_t, flags, "flags"), "rounding_seed": rounding_seed})
    point(options, t=view_of(context, t, "t", 1, False, "int64"),
          overflows=view_of(context, overflows, "overflows", 1, dtype="int64"))
    check(lib.mp_masters_to_model(master.handle, model.written("model"),
                                  view_of(context, found_inf, "found_inf", 1, False), options, stream_pointer(stream)))
