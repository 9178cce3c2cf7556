"""Graphs: networks with automatic differentiation and mixed precision (mpcore/graph.h)."""

from __future__ import annotations

import ctypes
import operator
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from . import _sys
from ._library import Native, array_of, check, enumerator, integers, is_integer, lib, read_text
from .arrays import FLOATS, INTEGERS, View, dtype_name
from .autocast import Autocast, _bytes, _name, _number
from .context import Context, DeviceArray, stream_pointer
from .tensors import Object, TensorList
from .training import Scaler


class GraphTensor(NamedTuple):
    """Properties of a tensor of a Graph.

    dtype, shape  in memory, for the current batch
    dtype_copy    type of its cast or 16-bit copy; None: no copy
    dtype_grad    type of its gradient; None: no gradient
    data          inputs: the bound array; other tensors: an array in the memory of the graph, or
                  None if the value does not persist
    copy, grad    arrays of these types, or None
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    dtype_copy: Optional[str]
    dtype_grad: Optional[str]
    data: Any
    copy: Optional[DeviceArray]
    grad: Optional[DeviceArray]


class Graph(Object):
    """A network.  Tensors are integers and are valid only for the graph that returned them.

        graph = mpcore.Graph(context)
        x = graph.input("x", (128, 784))
        w, b = graph.parameter("w", (784, 10)), graph.parameter("b", 10)
        y = graph.node("Linear", "fc", [x, w, b])
        graph.loss(graph.node("SoftmaxXent", "loss", [y, graph.input("labels", 128, "int32")]))
        graph.autocast(mpcore.Autocast("fp16"))  # mixed precision
        graph.compile()
        optimizer = mpcore.Optimizer(context, "sgd", *graph.lists(), lr=0.1)

    mpcore/graph.h lists the operations with their inputs and attributes.  Use a graph in one thread
    at a time.  Its lists, optimizers created from them, and arrays of numpy, torch and cupy that
    share its memory keep the memory alive even if the graph is closed.
    """

    _destroy = "mp_graph_destroy"

    def __init__(self, context: Context):
        super().__init__(context)
        self._policy: Optional[Native] = None
        self._parameters: List[int] = []
        self._inputs: Set[int] = set()
        self._integers: Dict[int, str] = {}  # tensors of MP_DTYPE_NONE, and their element types
        self._bound: Dict[int, Tuple[Any, View]] = {}
        self._has_loss = False
        handle = ctypes.c_void_p()
        check(lib.mp_graph_create(ctypes.byref(handle), context.handle))
        self._own(handle, [context.handle])

    # ---- describing

    def input(self, name: str, shape: Union[int, Sequence[int]], dtype: Any = "fp32") -> int:
        """Adds an input.

        dtype  "fp32": autocast can convert it; 16-bit types: read without conversion; "int32":
               labels, indices, lengths, and offsets of Dropout and Attention, which are one int64
               of shape ()
        """
        number = _number(dtype)
        if number == _sys.MP_DTYPE_NONE and (dtype is None or dtype_name(dtype) not in ("int32", "int64")):
            raise TypeError(f"dtype = {dtype!r} must be one of {', '.join([*FLOATS, *INTEGERS])}")
        tensor = self._add(lib.mp_graph_add_input, name, shape, number)
        self._inputs.add(tensor)
        if number == _sys.MP_DTYPE_NONE:
            self._integers[tensor] = "int32" if self._info(tensor).rank else "int64"
        return tensor

    def parameter(self, name: str, shape: Union[int, Sequence[int]]) -> int:
        """Adds a trainable parameter: float32, in memory of the graph."""
        self._parameters.append(self._add(lib.mp_graph_add_parameter, name, shape))
        return self._parameters[-1]

    def state(self, name: str, shape: Union[int, Sequence[int]]) -> int:
        """Adds a tensor that persists between steps and is not trained: float32, in memory of the
        graph."""
        return self._add(lib.mp_graph_add_state, name, shape)

    def _add(self, function: Any, name: str, shape: Union[int, Sequence[int]], *dtype: int) -> int:
        extent = array_of("shape", ctypes.c_int64, list(integers(shape, "shape")))
        tensor = ctypes.c_int32()
        check(function(self.handle, _bytes(name, "name"), *dtype, len(extent), extent, ctypes.byref(tensor)))
        return tensor.value

    def node(self, op: str, name: str, inputs: Sequence[Optional[int]], outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node.  Returns its output, or a tuple of the first `outputs` outputs unless that
        is 1.

        inputs      tensors; None: an absent optional input
        attributes  integers, floats or lists, e.g. stride=2, or extent=[0, -1] for a Reshape
        """
        given, _lists = _attributes(attributes)
        read = array_of("inputs", ctypes.c_int32, [-1 if tensor is None else tensor for tensor in inputs])
        if not (is_integer(outputs) and 0 <= outputs <= 100):  # the library checks the exact number
            raise ValueError(f"outputs = {outputs} must be an integer from 0 to 100")
        outputs = operator.index(outputs)
        written = (ctypes.c_int32 * outputs)()
        check(lib.mp_graph_add_node(self.handle, _bytes(op, "op"), _bytes(name, "name"), read, len(read), given,
                                    len(given), written, outputs))
        if op in ("SoftmaxXent", "LinearXent") and outputs > 2:
            self._integers[written[2]] = "int64"
        return written[0] if outputs == 1 else tuple(written)

    def output(self, tensor: int) -> None:
        """Marks a tensor as an output: its value stays in its own memory until the next pass."""
        check(lib.mp_graph_add_output(self.handle, _one(tensor)))

    def keep_gradient(self, tensor: int) -> None:
        """Keeps the gradient of a tensor.  Gradients of parameters are always kept."""
        check(lib.mp_graph_keep_gradient(self.handle, _one(tensor)))

    def loss(self, tensor: int) -> None:
        """Sets the loss to minimize: the output of a loss node, such as SoftmaxXent."""
        check(lib.mp_graph_set_loss(self.handle, _one(tensor)))
        self._has_loss = True

    def seed_gradient(self, tensor: int) -> int:
        """Adds a float32 input for dL / d(tensor), with the shape of the tensor, and returns it.

        For losses that you compute yourself: read the tensor after `forward`, and bind the gradient
        before `backward`, which multiplies it by the scale S.
        """
        seed = ctypes.c_int32()
        check(lib.mp_graph_seed_gradient(self.handle, _one(tensor), ctypes.byref(seed)))
        self._inputs.add(seed.value)
        self._has_loss = True
        return seed.value

    def autocast(self, policy: Autocast) -> None:
        """Enables mixed precision by a policy, if the policy is active on this device
        (Autocast.disabled_reason)."""
        check(lib.mp_graph_set_autocast(self.handle, policy.handle))
        self._policy = policy.handle

    def measure_kernels(self, max_kernels: int) -> None:
        """Selects kernels by times that the first passes measure: up to `max_kernels` for each
        product or convolution.  See mp_graph_measure_kernels."""
        check(lib.mp_graph_measure_kernels(self.handle, max_kernels))

    def compile(self) -> None:
        """Compiles the graph: adds the backward pass and casts, fuses operations, allocates memory.

        Call it once.  Parameters and states are initialized to 0.
        """
        check(lib.mp_graph_compile(self.handle))
        self._policy = None

    # ---- running

    def bind(self, tensor: int, array: Any) -> None:
        """Binds an array to an input, from the next pass on; None unbinds it.

        The array must have at least as many rows as the batch.  It is kept alive until it is
        replaced.
        """
        bound = None
        if array is not None and tensor in self._inputs:
            info = self._info(tensor)
            name, shape = info.name.decode(), _shape(info)
            bound = self.context.check_array(array, name, dtype=self._dtype(tensor, info), size=None if shape else 1)
            if shape and (not bound.shape or bound.shape[1:] != shape[1:]):
                raise ValueError(f"{name} has rows of shape {bound.shape[1:]}, not {shape[1:]}")
        check(lib.mp_graph_bind(self.handle, _one(tensor), bound))
        if bound is None:
            self._bound.pop(tensor, None)
        else:
            self._bound[tensor] = array, bound

    def set_batch(self, batch: int) -> None:
        """Sets the batch size of the next passes, at most the size in the description."""
        check(lib.mp_graph_set_batch(self.handle, array_of("batch", ctypes.c_int64, [batch])[0]))

    def write(self, tensor: int, values: Any, stream: Any = None) -> None:
        """Writes a parameter, including its 16-bit copy, or a state.

        `values` is a dense float32 array of equal shape, on the host or on the device.  Waits for
        the stream.
        """
        info = self._info(tensor)
        got = self.context.check_array(values, f"values of {info.name.decode()}", dtype="float32", shape=_shape(info),
                                       from_host=True)
        check(lib.mp_graph_write(self.handle, _one(tensor), got, stream_pointer(stream)))
        self.context.sync(stream)

    def forward(self, mode: Any, stream: Any = None) -> None:
        """Runs the forward pass on the bound inputs; mode: "training" or "inference"
        (mp_graph_mode_t)."""
        self._check_rows()
        check(lib.mp_graph_forward(self.handle, enumerator(_sys.mp_graph_mode_t, mode, "mode"), stream_pointer(stream)))

    def backward(self, scaler: Optional[Scaler] = None, stream: Any = None) -> None:
        """Computes the loss, and the gradients of all parameters times the scale S.

        Requires a preceding forward pass in training mode.
        """
        if scaler is not None and scaler.context is not self.context:
            raise ValueError("graph and scaler belong to different contexts")
        self._check_rows()
        check(lib.mp_graph_backward(self.handle, None if scaler is None else scaler.handle, stream_pointer(stream)))

    def get_step(self, stream: Any = None) -> int:
        """Returns the number of forward passes in training, which determines the masks of Dropout
        and Attention.

        It is 0 without dropout.  Save it in checkpoints.  Waits for the stream.
        """
        t = ctypes.c_int64()
        check(lib.mp_graph_get_step_sync(self.handle, ctypes.addressof(t), stream_pointer(stream)))
        return t.value

    def set_step(self, t: int, stream: Any = None) -> None:
        """Restores the number returned by get_step.  Waits for the stream."""
        check(lib.mp_graph_set_step_sync(self.handle, array_of("t", ctypes.c_int64, [t])[0], stream_pointer(stream)))

    def _check_rows(self) -> None:
        for tensor, (_, bound) in self._bound.items():
            info = self._info(tensor)
            if info.rank and bound.shape[0] < info.extent[0]:
                raise ValueError(f"{info.name.decode()} has {bound.shape[0]} rows, but the batch is {info.extent[0]}")

    # ---- results

    def lists(self) -> Tuple[Optional[TensorList], TensorList, Optional[TensorList]]:
        """Returns (grads, master, model) for an Optimizer: all parameters in the order of their
        creation.

        grads is None without a loss; model is None if no parameter has a 16-bit copy.
        """
        grads, master, model = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        check(lib.mp_graph_get_lists(self.handle, ctypes.byref(grads) if self._has_loss else None, ctypes.byref(master),
                                 ctypes.byref(model)))
        tensors = [self.tensor(parameter) for parameter in self._parameters]
        numels = [t.data.size for t in tensors]
        lent = [_LentList(self, handle.value, arrays, numels) if handle.value else None for handle, arrays in (
            (grads, [t.grad for t in tensors]), (master, [t.data for t in tensors]),
            (model, [t.copy for t in tensors]))]
        return lent[0], lent[1], lent[2]  # type: ignore

    def tensor(self, tensor: int) -> GraphTensor:
        """Returns the properties of a tensor.  Before `compile` it has a name and a shape, but no
        memory."""
        info = self._info(tensor)
        shape, dtype = _shape(info), self._dtype(tensor, info)
        if dtype == "int64":
            shape = ()  # one number; its C shape counts bytes

        def lent(address: Optional[int], name: Optional[str]) -> Optional[DeviceArray]:
            return None if address is None or name is None else _Lent(self, address, shape, name)

        copy, grad = _name(info.dtype_copy), _name(info.dtype_grad)
        data = self._bound.get(tensor, (None,))[0] if tensor in self._inputs else lent(info.data, dtype)
        return GraphTensor(info.name.decode(), dtype, shape, copy, grad, data, lent(info.copy, copy),
                           lent(info.grad, grad))

    def _info(self, tensor: int) -> Any:
        info = _sys.mp_graph_tensor_t()
        check(lib.mp_graph_get_tensor(self.handle, _one(tensor), info))
        return info

    def _dtype(self, tensor: int, info: Any) -> str:
        return self._integers.get(tensor) or _name(info.dtype) or "uint8"

    def memory(self) -> Any:
        """Returns an mp_graph_memory_t: bytes of parameters, copies, gradients, ..."""
        memory = _sys.mp_graph_memory_t()
        check(lib.mp_graph_get_memory(self.handle, memory))
        return memory

    def explain(self, format: Any = "text") -> str:
        """Explains the types of the operations: "text", "json", or "dot" for Graphviz
        (mp_autocast_format_t)."""
        number = enumerator(_sys.mp_autocast_format_t, format, "format")
        return read_text(lambda text, size: lib.mp_graph_explain(self.handle, number, text, size))

    def describe(self) -> str:
        """Lists the launches in order, one per line, with their operations, tensors, types and
        shapes."""
        return read_text(lambda text, size: lib.mp_graph_describe(self.handle, text, size))


class _Lent(DeviceArray):
    """An array in the memory of a graph.  It keeps the graph alive."""

    def __init__(self, graph: Graph, address: int, shape: Tuple[int, ...], dtype: str):
        self._graph, self._pointer = graph, Native.own(address, None, [graph.handle])
        self.context, self.shape, self.dtype = graph.context, shape, dtype

    @property
    def pointer(self) -> Native:
        self._graph.handle  # raises if the graph is closed
        return super().pointer


class _LentList(TensorList):
    """A list of a graph.  It keeps the graph alive."""

    def __init__(self, graph: Graph, handle: int, arrays: Sequence[Optional[DeviceArray]], numels: List[int]):
        Object.__init__(self, graph.context)
        views = [None if array is None else array._mpcore_view() for array in arrays]
        self._graph, self._handle = graph, Native.own(handle, None, [graph.handle], views)
        self.arrays, self.numels = list(arrays), numels
        self.dtypes = [array.dtype if array is not None else None for array in arrays]

    @property
    def handle(self) -> Native:
        self._graph.handle  # raises if the graph is closed
        return super().handle

    def set_data(self, arrays: Sequence[Any], stream: Any = None) -> None:
        raise TypeError("this list belongs to a graph and cannot be changed")


def _attributes(values: Dict[str, Any]) -> Tuple[Any, List[Any]]:
    """Returns the attributes for C, and the arrays that they point to."""
    kinds, lists, given = _sys.mp_attribute_kind_t, [], []
    for name, value in values.items():
        one = _sys.mp_graph_attribute_t(name=_bytes(name, "attributes"))
        if isinstance(value, (list, tuple)):
            is_int = all(map(is_integer, value))
            lists.append(array_of(f"attributes: {name}", ctypes.c_int64 if is_int else ctypes.c_double, value))
            address = ctypes.addressof(lists[-1])
            one.ints, one.floats = (address, None) if is_int else (None, address)
            one.kind, one.count = kinds.MP_ATTRIBUTE_KIND_INTS if is_int else kinds.MP_ATTRIBUTE_KIND_FLOATS, len(value)
        elif is_integer(value):
            one.kind, number = kinds.MP_ATTRIBUTE_KIND_INT, operator.index(value)
            if number >= 2**63:  # a seed, which is a uint64_t
                number = array_of(f"attributes: {name}", ctypes.c_uint64, [number])[0] - 2**64
            one.int_value = array_of(f"attributes: {name}", ctypes.c_int64, [number])[0]
        else:
            one.kind, one.float_value = kinds.MP_ATTRIBUTE_KIND_FLOAT, array_of(f"attributes: {name}", ctypes.c_double, [value])[0]
        given.append(one)
    return (_sys.mp_graph_attribute_t * len(given))(*given), lists


def _one(tensor: int) -> int:
    return int(array_of("tensor", ctypes.c_int32, [tensor])[0])


def _shape(info: Any) -> Tuple[int, ...]:
    return tuple(info.extent[:info.rank])
