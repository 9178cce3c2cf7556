"""Recurrent layers (mpcore/rnn.h)."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _epilogue, _sys
from ._library import array_of, check, enumerator, fill, flags, integers, lib
from .arrays import DTYPES, View, dtype_name
from .context import Context, DeviceArray, stream_pointer


class Rnn:
    """A stack of recurrent layers with its passes.

    cell          "lstm", "gru", "tanh" or "relu" (mp_rnn_cell_t)
    x_shape       (timesteps, batch, input_size); with batch_first (batch, timesteps, input_size)
    dtype         type of x, y, h and the weights; c and the biases are float32
    dtype_dw      type of the weight gradients; None: dtype
    dropout       probability between layers, in training
    dropout_seed  any number; dropout_offset of forward() changes the masks between steps
    clip          LSTM: clip c to [-clip, clip]; None: no clipping
    skip_input    add x to the gates of the first layer, which has no weight_ih
    reset_first   GRU: apply r before the product, like reset_after=False of TensorFlow
    plan          a plan of get_plan, or the name of a kernel

    Weights are passed as a mapping with the names of torch, such as the state_dict() of a
    torch.nn.LSTM. `weight_shapes` maps all names to shapes: weight_ih_l0, weight_hh_l0, bias_ih_l0,
    bias_hh_l0, then the names that end in _reverse, then layer 1.  `y_shape` is x_shape with
    directions x hidden_size as the last dimension.  `state_shape`, the shape of h and c, is (layers
    x directions, batch, hidden_size).

    For sequences of unequal lengths pass either

    - `lengths`: int32, one per sequence
    - `batch_sizes`: the number of sequences in each time step, on the host.  x, y and their
      gradients are then packed, rows x elements, like a PackedSequence of torch

    The object owns its workspace, so use it in one stream at a time.
    """

    def __init__(self, context: Context, cell: Any, x_shape: Sequence[int], hidden_size: int, dtype: Any = "fp16", *,
                 layers: int = 1, bidirectional: bool = False, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, dropout_seed: int = 0, clip: Optional[float] = None, skip_input: bool = False,
                 reset_first: bool = False, dtype_dw: Any = None, plan: _epilogue.Plan = None):
        self.context, self.dtype = context, dtype_name(dtype)
        self.dtype_dw = dtype_name(dtype_dw or dtype)
        self.x_shape = integers(x_shape, "x_shape")
        if len(self.x_shape) != 3:
            raise ValueError(f"x_shape has {len(self.x_shape)} dimensions, not 3")
        timesteps, batch = self.x_shape[1::-1] if batch_first else self.x_shape[:2]
        names = {"bidirectional": bidirectional, "no_bias": not bias, "skip_input": skip_input,
                 "reset_first": reset_first}
        self.desc = _sys.mp_rnn_desc_default(enumerator(_sys.mp_rnn_cell_t, cell, "cell"), 0, 0, 1, 1,
                                             DTYPES[self.dtype][1] or 0)
        fill(self.desc, {
            "flags": flags(_sys.mp_rnn_flags_t, [name for name, is_set in names.items() if is_set], "flags"),
            "dtype_dw": DTYPES[self.dtype_dw][1] or 0, "layers": layers, "input_size": self.x_shape[2],
            "hidden_size": hidden_size, "batch": batch, "timesteps": timesteps, "dropout": dropout,
            "dropout_seed": dropout_seed, "clip": clip or 0.0})
        _epilogue.set_plan(self.desc, plan)
        self.sizes = _sys.mp_rnn_sizes_t()
        check(lib.mp_rnn_get_sizes(context.handle, self.desc, self.sizes))
        outputs = self.sizes.directions * hidden_size
        if batch_first:
            fill(self.desc, {"x_step": self.x_shape[2], "x_row": timesteps * self.x_shape[2], "y_step": outputs,
                             "y_row": timesteps * outputs})
        self.y_shape = (*self.x_shape[:2], outputs)
        self.state_shape = (self.sizes.num_weights, batch, hidden_size)
        self.weight_shapes: Dict[str, Tuple[int, ...]] = {}
        self._fields = []  # {field: name} of each mp_rnn_weights_t
        rows = self.sizes.gates * hidden_size
        for i in range(self.sizes.num_weights):
            layer, is_reverse = divmod(i, self.sizes.directions)
            shapes = {"w_ih": (rows, outputs if layer else self.x_shape[2]), "w_hh": (rows, hidden_size),
                      "b_ih": (rows,), "b_hh": (rows,)}
            if layer == 0 and skip_input:
                del shapes["w_ih"]
            if not bias:
                del shapes["b_ih"], shapes["b_hh"]
            end = f"_l{layer}" + ("_reverse" if is_reverse else "")
            fields = {field: field.replace("w_", "weight_").replace("b_", "bias_") + end for field in shapes}
            self._fields.append(fields)
            self.weight_shapes.update((name, shapes[field]) for field, name in fields.items())
        self.workspace = context.empty(self.sizes.workspace_bytes, "uint8")

    def kernels(self) -> List[_sys.mp_kernel_info_t]:
        """Returns an mp_kernel_info_t for every kernel, first the one that is selected."""
        return _epilogue.kernels_of(lib.mp_rnn_kernel_info, self.context.handle, self.desc)

    def get_plan(self) -> _sys.mp_plan_t:
        """Returns the plan of all passes."""
        return _epilogue.plan_of(lib.mp_rnn_get_plan, self.context.handle, self.desc)

    def _describe(self, is_packed: bool = False, accumulate: bool = False) -> Any:
        """Returns the descriptor of one call."""
        desc = type(self.desc).from_buffer_copy(self.desc)
        if accumulate:
            desc.flags |= _sys.MP_RNN_FLAG_ACCUMULATE
        if is_packed:  # packed rows are dense, independent of batch_first
            desc.x_step = desc.x_row = desc.y_step = desc.y_row = 0
        return desc

    def forward(self, x: Any, weights: Mapping[str, Any], *, h0: Any = None, c0: Any = None, lengths: Any = None,
                batch_sizes: Optional[Sequence[int]] = None, dropout_offset: Any = None, y: Any = None, hn: Any = None,
                cn: Any = None, reserve: Any = None, stream: Any = None) -> "RnnStep":
        """Runs the forward pass in training mode.

        h0, c0          None: 0
        y, hn, cn       allocated if None
        reserve         uint8, sizes.reserve_bytes elements; allocated if None
        dropout_offset  int64, 1 element; each value selects different masks.  In training use a
                        counter, such as Optimizer.step_counter; None: the same masks in all steps
        """
        fields = self._inputs(x, weights, h0, c0, lengths, batch_sizes, dropout_offset)
        reserve = self.context.empty(self.sizes.reserve_bytes, "uint8") if reserve is None else reserve
        got = self.context.check_array(reserve, "reserve", dtype="uint8", writable=True)
        fields.update(reserve=got, reserve_bytes=got.nbytes)
        outputs = self._outputs(fields, y, hn, cn)
        self._call(lib.mp_rnn_forward_training, fields, stream)
        return RnnStep(self, fields, *outputs)

    def inference(self, x: Any, weights: Mapping[str, Any], *, h0: Any = None, c0: Any = None, lengths: Any = None,
                  batch_sizes: Optional[Sequence[int]] = None, y: Any = None, hn: Any = None, cn: Any = None,
                  stream: Any = None) -> Tuple[Any, Any, Any]:
        """Runs the forward pass without dropout and without a backward pass.  Returns (y, hn, cn).

        cn is None except for LSTM.  hn can be h0, and cn can be c0.
        """
        fields = self._inputs(x, weights, h0, c0, lengths, batch_sizes, None)
        outputs = self._outputs(fields, y, hn, cn)
        self._call(lib.mp_rnn_forward_inference, fields, stream)
        return outputs

    # Fields of mp_rnn_tensors_t stay views until the call, which keeps the arrays alive.

    def _inputs(self, x: Any, weights: Mapping[str, Any], h0: Any, c0: Any, lengths: Any,
                batch_sizes: Optional[Sequence[int]], dropout_offset: Any) -> Dict[str, Any]:
        context, desc = self.context, self.desc
        fields: Dict[str, Any] = {"weights": self._weights(_sys.mp_rnn_weights_t, weights, "weights", self.dtype)}
        if lengths is not None:
            fields["lengths"] = context.check_array(lengths, "lengths", dtype="int32", shape=(desc.batch,))
        if batch_sizes is not None:
            sizes = integers(batch_sizes, "batch_sizes")
            if len(sizes) != desc.timesteps:
                raise ValueError(f"batch_sizes has {len(sizes)} numbers, not {desc.timesteps}")
            fields["batch_sizes"] = array_of("batch_sizes", ctypes.c_int32, sizes)
            fields["rows"] = sum(sizes)
        if dropout_offset is not None:
            fields["dropout_offset"] = context.check_array(dropout_offset, "dropout_offset", dtype="int64", size=1)
        fields["x"] = context.check_array(x, "x", dtype=self.dtype, shape=self._steps(fields, self.x_shape))
        fields.update(self._states(h0=h0, c0=c0))
        return fields

    def _outputs(self, fields: Dict[str, Any], y: Any, hn: Any, cn: Any) -> Tuple[Any, Any, Any]:
        """Returns (y, hn, cn), allocated if None."""
        shape = self._steps(fields, self.y_shape)
        y = DeviceArray(self.context, shape, self.dtype) if y is None else y
        hn = DeviceArray(self.context, self.state_shape, self.dtype) if hn is None else hn
        if cn is None and self.desc.cell == _sys.MP_RNN_LSTM:
            cn = DeviceArray(self.context, self.state_shape)
        fields["y"] = self.context.check_array(y, "y", dtype=self.dtype, shape=shape, writable=True)
        fields.update(self._states(True, hn=hn, cn=cn))
        return y, hn, cn

    @staticmethod
    def _steps(fields: Dict[str, Any], shape: Tuple[int, ...]) -> Tuple[int, ...]:
        """Returns the shape of x or y, packed or not."""
        return (fields["rows"], shape[2]) if "rows" in fields else shape

    def _states(self, writable: bool = False, **arrays: Any) -> Dict[str, Any]:
        """Returns the views of h and, if the name contains a c, of c."""
        views = {}
        for name, array in arrays.items():
            if array is None:
                continue
            if "c" in name and self.desc.cell != _sys.MP_RNN_LSTM:
                raise ValueError(f"{name} requires cell = 'lstm'")
            views[name] = self.context.check_array(array, name, dtype="float32" if "c" in name else self.dtype,
                                                   shape=self.state_shape, writable=writable)
        return views

    def _weights(self, struct: Any, arrays: Mapping[str, Any], what: str, dtype: str, writable: bool = False) -> Any:
        """Returns the array of structs for a mapping from names, which can be incomplete if
        writable."""
        unknown = [name for name in arrays if name not in self.weight_shapes]
        if unknown:
            raise ValueError(f"{what}: name {unknown[0]!r} is unknown; use one of: {', '.join(self.weight_shapes)}")
        structs: Any = (struct * len(self._fields))(*[struct() for _ in self._fields])
        structs.views = []  # keep the arrays alive as long as the structs
        for one, fields in zip(structs, self._fields):
            for field, name in fields.items():
                if name not in arrays and writable:
                    continue
                if name not in arrays:
                    raise ValueError(f"{what} has no entry {name!r}")
                view = self.context.check_array(arrays[name], f"{what}[{name!r}]", writable=writable,
                                                dtype=dtype if field.startswith("w") else "float32",
                                                shape=self.weight_shapes[name])
                structs.views.append(view)
                setattr(one, field, view.address)
        return structs

    def _call(self, function: Any, fields: Dict[str, Any], stream: Any, accumulate: bool = False) -> None:
        desc = self._describe("rows" in fields, accumulate)
        tensors = _sys.mp_rnn_tensors_t(num_weights=self.sizes.num_weights)
        for name, value in fields.items():
            if isinstance(value, View):
                setattr(tensors.stats if hasattr(tensors.stats, name) else tensors, name, value.address)
            elif name == "batch_sizes":
                tensors.batch_sizes = ctypes.addressof(value)
            elif name != "rows":
                setattr(tensors, name, value)
        check(function(self.context.handle, desc, tensors, self.workspace.pointer,
                       self.workspace.nbytes, stream_pointer(stream)))


class RnnStep:
    """A forward pass in training mode: y, hn, cn (LSTM only), and its backward passes.

    Call backward_data once, then backward_weights.  The object keeps the arrays of the forward pass
    alive.  Do not modify them, except y, hn and cn, before the backward passes have finished.
    """

    def __init__(self, rnn: Rnn, fields: Dict[str, Any], y: Any, hn: Any, cn: Any):
        self.rnn, self.y, self.hn, self.cn = rnn, y, hn, cn
        self._fields, self._next = fields, "backward_data"

    def backward_data(self, dy: Any, *, dhn: Any = None, dcn: Any = None, dx: Any = None, dh0: Any = None,
                      dc0: Any = None, needs_dx: bool = True, found_inf: Any = None,
                      stream: Any = None) -> Tuple[Any, Any, Any]:
        """Computes the gradients of x, h0 and c0; returns (dx, dh0, dc0).

        dy, dhn, dcn  gradients of y, hn and cn; None: 0
        dx            allocated if None, unless needs_dx=False saves its product
        dh0, dc0      allocated if None and forward had h0 and c0
        found_inf     float32, 1 element: Scaler.found_inf
        """
        rnn, fields, context = self.rnn, dict(self._fields), self.rnn.context
        self._take_turn("backward_data")
        shape = rnn._steps(fields, rnn.x_shape)
        if dx is None and needs_dx:
            dx = DeviceArray(context, shape, rnn.dtype)
        if dh0 is None and "h0" in fields:
            dh0 = DeviceArray(context, rnn.state_shape, rnn.dtype)
        if dc0 is None and "c0" in fields:
            dc0 = DeviceArray(context, rnn.state_shape)
        fields["dy"] = context.check_array(dy, "dy", dtype=rnn.dtype, shape=rnn._steps(fields, rnn.y_shape))
        if dx is not None:
            fields["dx"] = context.check_array(dx, "dx", dtype=rnn.dtype, shape=shape, writable=True)
        fields.update(rnn._states(dhn=dhn, dcn=dcn), **rnn._states(True, dh0=dh0, dc0=dc0),
                      **self._numbers(found_inf=found_inf))
        rnn._call(lib.mp_rnn_backward_data, fields, stream)
        self._next = "backward_weights"
        return dx, dh0, dc0

    def backward_weights(self, grads: Optional[Mapping[str, Any]] = None, *, accumulate: bool = False,
                         found_inf: Any = None, amax: Any = None, stream: Any = None) -> Any:
        """Computes the gradients of weights and biases, with the names of the weights; returns
        grads.

        grads       mapping of the gradients to compute; None: allocate all
        accumulate  add to the contents of grads
        amax        float32, 1 element, updated to max(amax, |gradients|)
        """
        rnn = self.rnn
        self._take_turn("backward_weights")
        if grads is None:
            if accumulate:
                raise ValueError("accumulate requires grads")
            grads = {name: DeviceArray(rnn.context, shape, rnn.dtype_dw if len(shape) == 2 else "float32")
                     for name, shape in rnn.weight_shapes.items()}
        structs = rnn._weights(_sys.mp_rnn_weight_grads_t, grads, "grads", rnn.dtype_dw, writable=True)
        rnn._call(lib.mp_rnn_backward_weights,
                  dict(self._fields, weight_grads=structs, **self._numbers(found_inf=found_inf, amax=amax)), stream,
                  accumulate)
        return grads

    def _take_turn(self, name: str) -> None:
        if self._next != name:
            raise ValueError(f"{name} is out of order: call {self._next} next")

    def _numbers(self, **arrays: Any) -> Dict[str, Any]:
        return {name: self.rnn.context.check_array(array, name, dtype="float32", size=1, writable=True)
                for name, array in arrays.items() if array is not None}
