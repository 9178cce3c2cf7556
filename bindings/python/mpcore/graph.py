"""mpcore/graph.h: a network described once, which runs forward and backward in the types it is told."""

from __future__ import annotations

import ctypes
import operator
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from . import _sys
from ._library import Native, array_of, check, enumerator, integers, is_integer, lib
from .arrays import View, dtype_name
from .autocast import Autocast, _bytes, _name, _number
from .context import Context, DeviceArray, stream_pointer
from .tensors import Object, TensorList
from .training import Scaler


class GraphTensor(NamedTuple):
    """What became of a tensor of a Graph.

    dtype, shape  as it is in memory, for the batch that is set
    dtype_copy    of its cast or 16-bit copy; None: it has none
    dtype_grad    of its gradient, likewise
    data          of an input, the array that is bound; else an array in the memory of the graph, or None where that
                  does not last
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
    """A network.  Tensors are numbers, which belong to the graph that gave them.

        graph = mpcore.Graph(context)
        x, w, b = graph.input("x", (128, 784)), graph.parameter("w", (784, 10)), graph.parameter("b", 10)
        y = graph.node("Linear", "fc", [x, w, b])
        graph.loss(graph.node("SoftmaxXent", "loss", [y, graph.input("labels", 128, "int32")]))
        graph.autocast(mpcore.Autocast("fp16"))  # mixed precision
        graph.compile()
        optimizer = mpcore.Optimizer(context, "sgd", *graph.lists(), lr=0.1)

    The operations, their inputs and attributes are listed in mpcore/graph.h.  A graph is used by one thread at a time.
    Its lists, the optimizers made from them, and arrays of numpy, torch and cupy that look into its memory keep that
    alive, even if the graph is closed.
    """

    _destroy = "mp_graph_destroy"

    def __init__(self, context: Context):
        super().__init__(context)
        self._policy: Optional[Native] = None
        self._parameters: List[int] = []
        self._inputs: Set[int] = set()
        self._integers: Dict[int, str] = {}  # tensors of MP_DTYPE_NONE, and what is in them
        self._bound: Dict[int, Tuple[Any, View]] = {}
        self._has_loss = False
        handle = ctypes.c_void_p()
        check(lib.mp_graph_create(ctypes.byref(handle), context.handle))
        self._own(handle, [context.handle])

    # ---- describing

    def input(self, name: str, shape: Union[int, Sequence[int]], dtype: Any = "fp32") -> int:
        """A tensor from outside.

        dtype  "fp32" is what autocast may convert; 16-bit types are read as they are; "int32" is for labels, indices,
               lengths, and for the offset of a Dropout, which is one int64 and has the shape ()
        """
        number = _number(dtype)
        if number == _sys.MP_DTYPE_NONE and (dtype is None or dtype_name(dtype) not in ("int32", "int64")):
            raise TypeError(f"dtype = {dtype!r} is neither a float of at most 32 bits, nor int32 or int64")
        tensor = self._add(lib.mp_graph_input, name, shape, number)
        self._inputs.add(tensor)
        if number == _sys.MP_DTYPE_NONE:
            self._integers[tensor] = "int32"
        return tensor

    def parameter(self, name: str, shape: Union[int, Sequence[int]]) -> int:
        """A tensor to train: float32, the graph's own."""
        self._parameters.append(self._add(lib.mp_graph_parameter, name, shape))
        return self._parameters[-1]

    def state(self, name: str, shape: Union[int, Sequence[int]]) -> int:
        """A tensor that lives from step to step and is not trained: float32, the graph's own."""
        return self._add(lib.mp_graph_state, name, shape)

    def _add(self, function: Any, name: str, shape: Union[int, Sequence[int]], *dtype: int) -> int:
        extent = array_of("shape", ctypes.c_int64, list(integers(shape, "shape")))
        tensor = ctypes.c_int32()
        check(function(self.handle, _bytes(name, "name"), *dtype, len(extent), extent, ctypes.byref(tensor)))
        return tensor.value

    def node(self, op: str, name: str, inputs: Sequence[Optional[int]], outputs: int = 1, **attributes: Any) -> Any:
        """Returns its output, or a tuple of them where more than one is wanted, from the first on.

        inputs      tensors; None for an optional one that is absent
        attributes  numbers: stride=2; extent=[0, -1] of a Reshape
        """
        named = [(_bytes(key, "attributes"), value) for key, given in attributes.items()
                 for value in (given if isinstance(given, (list, tuple)) else [given])]
        values = array_of("attributes", ctypes.c_double, [value for _, value in named])
        pairs = (_sys.mp_graph_attribute_t * len(named))()
        for pair, (key, _), value in zip(pairs, named, values):
            pair.name, pair.value = key, value
        read = array_of("inputs", ctypes.c_int32, [-1 if tensor is None else tensor for tensor in inputs])
        if not (is_integer(outputs) and 0 <= outputs <= 100):  # room; the library says how many there are
            raise ValueError(f"outputs = {outputs} is no number of outputs")
        outputs = operator.index(outputs)
        written = (ctypes.c_int32 * outputs)()
        check(lib.mp_graph_node(self.handle, _bytes(op, "op"), _bytes(name, "name"), read, len(read), pairs, len(pairs),
                                written, outputs))
        if op == "Dropout" and len(read) > 1 and read[1] >= 0:
            self._integers[read[1]] = "int64"
        if op == "SoftmaxXent" and outputs > 2:
            self._integers[written[2]] = "int64"
        return written[0] if outputs == 1 else tuple(written)

    def output(self, tensor: int) -> None:
        """It is read from outside: its memory is its own, and holds its value until the next pass."""
        check(lib.mp_graph_output(self.handle, _one(tensor)))

    def keep_gradient(self, tensor: int) -> None:
        """Its gradient is read from outside; those of parameters can be anyway."""
        check(lib.mp_graph_keep_gradient(self.handle, _one(tensor)))

    def loss(self, tensor: int) -> None:
        """What is to become small: the loss of a SoftmaxXent, MSE, L1 or BCEWithLogits."""
        check(lib.mp_graph_loss(self.handle, _one(tensor)))
        self._has_loss = True

    def seed_gradient(self, tensor: int) -> int:
        """Returns a float32 input of the shape of the tensor: bind dL / d(tensor) to it before `backward`, which
        multiplies it by S.  For losses that you compute yourself; the tensor can be read after `forward`."""
        seed = ctypes.c_int32()
        check(lib.mp_graph_seed_gradient(self.handle, _one(tensor), ctypes.byref(seed)))
        self._inputs.add(seed.value)
        self._has_loss = True
        return seed.value

    def autocast(self, policy: Autocast) -> None:
        """Mixed precision: operations get their types as the policy says, where its gate is open on this device."""
        check(lib.mp_graph_autocast(self.handle, policy.handle))
        self._policy = policy.handle

    def compile(self) -> None:
        """Append the backward pass, cast, fuse, and allocate, once.  Parameters and states are 0 from here on."""
        check(lib.mp_graph_compile(self.handle))
        self._policy = None

    # ---- running

    def bind(self, tensor: int, array: Any) -> None:
        """Where an input lies from the next pass on: an array with at least as many rows as the batch, which is kept
        alive until another is bound.  None: nowhere."""
        bound = None
        if array is not None and tensor in self._inputs:
            info = self._info(tensor)
            name, shape = info.name.decode(), _shape(info)
            bound = self.context.check_array(array, name, dtype=self._dtype(tensor, info), size=None if shape else 1)
            if shape and (not bound.shape or bound.shape[1:] != shape[1:]):
                raise ValueError(f"{name} has rows of the shape {bound.shape[1:]}, not {shape[1:]}")
        check(lib.mp_graph_bind(self.handle, _one(tensor), bound))
        if bound is None:
            self._bound.pop(tensor, None)
        else:
            self._bound[tensor] = array, bound

    def set_batch(self, batch: int) -> None:
        """How large the batch is from the next pass on: at most as it was described."""
        check(lib.mp_graph_set_batch(self.handle, array_of("batch", ctypes.c_int64, [batch])[0]))

    def write(self, tensor: int, values: Any, stream: Any = None) -> None:
        """Set a parameter or a state, and the 16-bit copy of a parameter, from a dense float32 array of its shape, on
        the host or on the device.  Done when it returns."""
        info = self._info(tensor)
        got = self.context.check_array(values, f"values of {info.name.decode()}", dtype="float32", shape=_shape(info),
                                       from_host=True)
        check(lib.mp_graph_write(self.handle, _one(tensor), got, stream_pointer(stream)))
        self.context.sync(stream)

    def forward(self, mode: Any, stream: Any = None) -> None:
        """All outputs from the inputs that are bound; "training" or "inference" (mp_graph_mode_t)."""
        self._check_rows()
        check(lib.mp_graph_forward(self.handle, enumerator(_sys.mp_graph_mode_t, mode, "mode"), stream_pointer(stream)))

    def backward(self, scaler: Optional[Scaler] = None, stream: Any = None) -> None:
        """The loss, and the gradients of all parameters times S, after a forward pass in training."""
        if scaler is not None and scaler.context is not self.context:
            raise ValueError("graph and scaler belong to different contexts")
        self._check_rows()
        check(lib.mp_graph_backward(self.handle, None if scaler is None else scaler.handle, stream_pointer(stream)))

    def get_step(self, stream: Any = None) -> int:
        """Number of forward passes in training, which masks of Dropout follow; 0 without Dropout.
        Part of a checkpoint.  Waits for the stream."""
        t = ctypes.c_int64()
        check(lib.mp_graph_get_step_sync(self.handle, ctypes.addressof(t), stream_pointer(stream)))
        return t.value

    def set_step(self, t: int, stream: Any = None) -> None:
        """Sets that number from a checkpoint.  Waits for the stream."""
        check(lib.mp_graph_set_step_sync(self.handle, array_of("t", ctypes.c_int64, [t])[0],
                                         stream_pointer(stream)))

    def _check_rows(self) -> None:
        for tensor, (_, bound) in self._bound.items():
            info = self._info(tensor)
            if info.rank and bound.shape[0] < info.extent[0]:
                raise ValueError(f"{info.name.decode()} has {bound.shape[0]} rows, but the batch is {info.extent[0]}")

    # ---- what became of it

    def lists(self) -> Tuple[Optional[TensorList], TensorList, Optional[TensorList]]:
        """grads, master and model, for an Optimizer: all parameters in the order of their creation.  grads is None
        without a loss, model where no parameter has a 16-bit copy."""
        grads, master, model = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        check(lib.mp_graph_lists(self.handle, ctypes.byref(grads) if self._has_loss else None, ctypes.byref(master),
                                 ctypes.byref(model)))
        tensors = [self.tensor(parameter) for parameter in self._parameters]
        numels = [t.data.size for t in tensors]
        lent = [_LentList(self, handle.value, arrays, numels) if handle.value else None for handle, arrays in (
            (grads, [t.grad for t in tensors]), (master, [t.data for t in tensors]),
            (model, [t.copy for t in tensors]))]
        return lent[0], lent[1], lent[2]  # type: ignore

    def tensor(self, tensor: int) -> GraphTensor:
        """Before compile it has a name and a shape, and no memory."""
        info = self._info(tensor)
        shape, dtype = _shape(info), self._dtype(tensor, info)
        if dtype == "int64":
            shape = ()  # one number, of which C knows the bytes

        def lent(address: Optional[int], name: Optional[str]) -> Optional[DeviceArray]:
            return None if address is None or name is None else _Lent(self, address, shape, name)

        copy, grad = _name(info.dtype_copy), _name(info.dtype_grad)
        data = self._bound.get(tensor, (None,))[0] if tensor in self._inputs else lent(info.data, dtype)
        return GraphTensor(info.name.decode(), dtype, shape, copy, grad, data, lent(info.copy, copy),
                           lent(info.grad, grad))

    def _info(self, tensor: int) -> Any:
        info = _sys.mp_graph_tensor_t()
        check(lib.mp_graph_get_tensor(self.handle, _one(tensor), ctypes.byref(info)))
        return info

    def _dtype(self, tensor: int, info: Any) -> str:
        return self._integers.get(tensor) or _name(info.dtype) or "uint8"

    def memory(self) -> Any:
        """mp_graph_memory_t: bytes of parameters, copies, gradients, ..."""
        memory = _sys.mp_graph_memory_t()
        check(lib.mp_graph_get_memory(self.handle, ctypes.byref(memory)))
        return memory

    def explain(self, form: Any = "text") -> str:
        """How the operations came to their types: "text", "json", or "dot" for Graphviz (mp_autocast_form_t)."""
        number = enumerator(_sys.mp_autocast_form_t, form, "form")
        return _text(lambda text, size: lib.mp_graph_explain(self.handle, number, text, size))

    def describe(self) -> str:
        """What is launched, in order: one line per launch with its operations, tensors, types and shapes."""
        return _text(lambda text, size: lib.mp_graph_describe(self.handle, text, size))


class _Lent(DeviceArray):
    """An array in the memory of a graph, which it keeps alive."""

    def __init__(self, graph: Graph, address: int, shape: Tuple[int, ...], dtype: str):
        self._graph, self._pointer = graph, Native.own(address, None, [graph.handle])
        self.context, self.shape, self.dtype = graph.context, shape, dtype

    @property
    def pointer(self) -> Native:
        self._graph.handle  # raises where it is closed
        return super().pointer


class _LentList(TensorList):
    """A list of a graph, which it keeps alive."""

    def __init__(self, graph: Graph, handle: int, arrays: Sequence[Optional[DeviceArray]], numels: List[int]):
        Object.__init__(self, graph.context)
        views = [None if array is None else array._mpcore_view() for array in arrays]
        self._graph, self._handle = graph, Native.own(handle, None, [graph.handle], views)
        self.arrays, self.numels = list(arrays), numels
        self.dtypes = [array.dtype if array is not None else None for array in arrays]

    @property
    def handle(self) -> Native:
        self._graph.handle  # raises where it is closed
        return super().handle

    def set_data(self, arrays: Sequence[Any], stream: Any = None) -> None:
        raise TypeError("this list belongs to a graph, whose memory stays where it is")


def _one(tensor: int) -> int:
    return int(array_of("tensor", ctypes.c_int32, [tensor])[0])


def _shape(info: Any) -> Tuple[int, ...]:
    return tuple(info.extent[:info.rank])


def _text(write: Any) -> str:
    size = ctypes.c_size_t()
    check(write(None, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(write(text, ctypes.byref(size)))
    return text.value.decode(errors="replace")
