"""Automatic mixed precision: selects the type of each operation in a graph (mpcore/autocast.h)."""

from __future__ import annotations

import ctypes
import math
import operator
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _sys
from ._library import Handle, array_of, check, enumerator, fill, flags, is_integer, lib, read_text
from .arrays import DTYPES, NAMES, dtype_name
from .context import Context


class AutocastTensor:
    """A tensor of an AutocastGraph.  All attributes except index and producer can be changed before
    the rewrite.

    dtype   "fp32" can be converted; 16-bit types are kept; None or an integer type: not
            floating-point
    role    "activation", "parameter" or "output" (mp_tensor_role_t)
    amax    largest |x| observed; None: unknown
    slot    output slot of the node that writes the tensor
    """

    def __init__(self, index: int, dtype: Any, role: Any, amax: Optional[float], slot: int):
        self.index, self.dtype, self.role, self.amax, self.slot = index, dtype, role, amax, slot
        self.producer: Optional[int] = None  # index of the node that writes it; None: graph input

    def __repr__(self) -> str:
        return f"<mpcore.AutocastTensor {self.index}>"


class _Node(NamedTuple):
    """Arguments of AutocastGraph.node."""

    op: Optional[str]
    name: Optional[str]
    inputs: List[int]
    slots: List[int]
    flags: int
    node_class: int
    depth: int


class AutocastGraph:
    """An FP32 graph for Autocast.rewrite: tensors and nodes, in the order of their creation.

        graph = mpcore.AutocastGraph()
        x, w = graph.input(), graph.parameter()
        y = graph.node("MatMul", [x, w], name="fc1")
        graph.node("Softmax", [y], name="probabilities").role = "output"
    """

    def __init__(self) -> None:
        self.tensors: List[AutocastTensor] = []
        self.nodes: List[_Node] = []
        self._hidden: List[Tuple[int, int]] = []
        self._clusters: List[Tuple[int, List[int]]] = []  # kind, members

    # ---- tensors and nodes

    def tensor(self, dtype: Any = "fp32", *, role: Any = "activation", amax: Optional[float] = None,
               slot: int = 0) -> AutocastTensor:
        """Adds a tensor.  Pass it to `outputs` of the node that writes it, otherwise it is a graph
        input.

        For cycles, and for nodes whose outputs differ in type or slot.
        """
        self.tensors.append(AutocastTensor(len(self.tensors), dtype, role, amax, slot))
        return self.tensors[-1]

    def input(self, dtype: Any = "fp32", *, amax: Optional[float] = None) -> AutocastTensor:
        """Adds a graph input, such as a batch or labels."""
        return self.tensor(dtype, amax=amax)

    def parameter(self, dtype: Any = "fp32", *, amax: Optional[float] = None) -> AutocastTensor:
        """Adds a parameter, whose master weights an optimizer updates."""
        return self.tensor(dtype, role="parameter", amax=amax)

    def node(self, op: Optional[str], inputs: Iterable[Optional[AutocastTensor]] = (), *, name: Optional[str] = None,
             slots: Optional[Sequence[int]] = None, outputs: Union[int, Sequence[AutocastTensor]] = 1,
             node_class: Any = None, depth: int = 0, **node_flags: bool) -> Any:
        """Adds a node.  Returns its output, or a tuple unless there is exactly one.

        inputs      tensors; None: an absent optional input
        slots       one input slot per input; None: all 0.  _sys.MP_AUTOCAST_SLOT_FP32: always FP32
        outputs     number of outputs, or existing tensors
        node_class  "allow", "deny", ... (mp_op_class_t); None: the class of the operation
        depth       number of terms in a sum; 0: unknown
        node_flags  keep_fp32, other_device, no_low, cast, reads_variable, back_edge, reads_either,
                    writes_either (mp_node_flags_t)
        """
        read = [-1 if tensor is None else self._own(tensor, f"inputs[{i}]") for i, tensor in enumerate(inputs)]
        if slots is not None and len(slots) != len(read):
            raise ValueError(f"slots has {len(slots)} elements, but there are {len(read)} inputs")
        number = 0 if node_class is None else 1 + enumerator(_sys.mp_op_class_t, node_class, "node_class")
        bits = flags(_sys.mp_node_flags_t, [flag for flag, is_set in node_flags.items() if is_set], "node_flags")
        written = self._outputs(outputs)
        for tensor in written:
            tensor.producer = len(self.nodes)
        self.nodes.append(_Node(op, name, read, [0] * len(read) if slots is None else list(slots), bits, number,
                                depth))
        return written[0] if len(written) == 1 else written

    def _outputs(self, outputs: Any) -> Tuple[AutocastTensor, ...]:
        if is_integer(outputs):
            if outputs < 0:
                raise ValueError(f"outputs = {outputs} is negative")
            return tuple(self.tensor() for _ in range(outputs))
        for i, tensor in enumerate(outputs):
            self._own(tensor, f"outputs[{i}]")
            if tensor.producer is not None or tensor in outputs[:i]:
                raise ValueError(f"outputs[{i}] is already an output of a node")
        return tuple(outputs)

    # A node is specified by one of its outputs, its index, or its name.

    def hidden(self, src: Any, dst: Any) -> None:
        """Adds a hidden edge, through a container or state, along which precision propagates."""
        self._hidden.append((self.index(src), self.index(dst)))

    def container(self, members: Iterable[Any]) -> None:
        """Forces nodes that share a container, such as a list of tensors, to have equal types."""
        self._clusters.append((0, [self.index(member) for member in members]))

    def loop(self, members: Iterable[Any]) -> None:
        """Forces the nodes of a loop to have equal types, except nodes with the flag back_edge."""
        self._clusters.append((1, [self.index(member) for member in members]))

    def index(self, node: Union[int, str, AutocastTensor]) -> int:
        """Returns the index of the node that has this name or writes this tensor."""
        if isinstance(node, str):
            found = [i for i, one in enumerate(self.nodes) if one.name == node]
            if len(found) != 1:
                raise ValueError(f"node = {node!r}: " + ("unknown name" if not found else f"{len(found)} nodes have this name"))
            return found[0]
        if not isinstance(node, AutocastTensor) and is_integer(node):
            return operator.index(node)
        producer = self.tensors[self._own(node, "node")].producer
        if producer is None:
            raise ValueError(f"node = {node!r} must be an output of a node")
        return producer

    def _own(self, tensor: Any, what: str) -> int:
        if not isinstance(tensor, AutocastTensor):
            raise TypeError(f"{what} = {tensor!r} must be an AutocastTensor")
        if tensor.index >= len(self.tensors) or self.tensors[tensor.index] is not tensor:
            raise ValueError(f"{what} belongs to another graph")
        return tensor.index

    # ---- as arrays

    def _arrays(self) -> Any:
        """Returns an mp_autocast_graph_t, which keeps its arrays alive."""
        graph = _sys.mp_autocast_graph_t()
        graph.arrays = []

        def array(field: str, kind: Any, values: List[Any]) -> None:
            graph.arrays.append(array_of(field, kind, values))
            setattr(graph, field, ctypes.addressof(graph.arrays[-1]))

        def texts(field: str, values: List[Any]) -> None:
            setattr(graph, field, (ctypes.c_char_p * len(values))(
                *[None if text is None else _bytes(text, f"{field}[{i}]") for i, text in enumerate(values)]))

        nodes, tensors, clusters = self.nodes, self.tensors, self._clusters
        roles = {role: enumerator(_sys.mp_tensor_role_t, role, "role") for role in {t.role for t in tensors}}
        fill(graph, {"num_nodes": len(nodes), "num_tensors": len(tensors), "num_hidden_edges": len(self._hidden),
                     "num_clusters": len(clusters)})
        texts("node_op", [node.op for node in nodes])
        texts("node_name", [node.name for node in nodes])
        array("node_class", ctypes.c_uint8, [node.node_class for node in nodes])
        array("node_flags", ctypes.c_uint16, [node.flags for node in nodes])
        array("node_depth", ctypes.c_int64, [node.depth for node in nodes])
        array("input_offsets", ctypes.c_int32, _starts(node.inputs for node in nodes))
        array("input_tensor", ctypes.c_int32, [tensor for node in nodes for tensor in node.inputs])
        array("input_slot", ctypes.c_uint8, [slot for node in nodes for slot in node.slots])
        array("tensor_producer", ctypes.c_int32, [-1 if t.producer is None else t.producer for t in tensors])
        array("tensor_slot", ctypes.c_uint8, [t.slot for t in tensors])
        array("tensor_dtype", ctypes.c_uint8, [_number(t.dtype) for t in tensors])
        array("tensor_role", ctypes.c_uint8, [roles[t.role] for t in tensors])
        array("tensor_amax", ctypes.c_float, [math.nan if t.amax is None else t.amax for t in tensors])
        array("hidden_src", ctypes.c_int32, [src for src, _ in self._hidden])
        array("hidden_dst", ctypes.c_int32, [dst for _, dst in self._hidden])
        array("member_offsets", ctypes.c_int32, _starts(members for _, members in clusters))
        array("member", ctypes.c_int32, [member for _, members in clusters for member in members])
        array("cluster_kind", ctypes.c_uint8, [kind for kind, _ in clusters])
        return graph


class AutocastCast(NamedTuple):
    """A cast of a tensor, which is given by its index (mp_autocast_cast_t)."""

    tensor: int
    from_dtype: str
    to_dtype: str
    kind: _sys.mp_cast_kind_t
    readers: int


class AutocastResult:
    """Result of Autocast.rewrite.

    node_dtypes     type of each node
    reasons         reason for each type (mp_autocast_reason_t)
    causes          index of the node that caused it, or None
    tensor_dtypes   type in which each tensor is written; None: not floating-point
    input_casts     per node, one index into `casts` per input; None: the input is not cast
    casts           AutocastCasts, ordered by tensor
    num_casts, num_low_nodes, num_parameters_low
    disabled_reason  reason why nothing was changed, or None
    """

    def __init__(self, policy: "Autocast", context: Optional[Context], graph: AutocastGraph):
        arrays = graph._arrays()
        nodes, tensors, ends = arrays.num_nodes, arrays.num_tensors, _starts(node.inputs for node in graph.nodes)
        room = tensors + (tensors + ends[-1]) * policy._emulates
        node_dtype, node_reason, node_cause = (ctypes.c_uint8 * nodes)(), (ctypes.c_uint8 * nodes)(), \
            (ctypes.c_int32 * nodes)()
        tensor_dtype, input_cast = (ctypes.c_uint8 * tensors)(), (ctypes.c_int32 * ends[-1])()
        casts = (_sys.mp_autocast_cast_t * room)()
        result = _sys.mp_autocast_result_t(
            tensor_dtype=ctypes.addressof(tensor_dtype), node_dtype=ctypes.addressof(node_dtype),
            input_cast=ctypes.addressof(input_cast), casts=casts, node_reason=ctypes.addressof(node_reason),
            node_cause=ctypes.addressof(node_cause))
        check(lib.mp_autocast_rewrite(policy.handle, context.handle if context is not None else None, arrays, result))
        self.num_casts, self.num_low_nodes = result.num_casts, result.num_low_nodes
        self.num_parameters_low, self.disabled_reason = result.num_parameters_low, _text(result.disabled_reason)
        self.node_dtypes = [_name(dtype) for dtype in node_dtype]
        self.tensor_dtypes = [_name(dtype) for dtype in tensor_dtype]
        self.reasons = [_sys.mp_autocast_reason_t(why) for why in node_reason]
        self.causes = [_index(node) for node in node_cause]
        self.input_casts = [[_index(cast) for cast in input_cast[begin:end]] for begin, end in zip(ends, ends[1:])]
        self.casts = [AutocastCast(cast.tensor, _name(getattr(cast, "from")), _name(cast.to),
                                   _sys.mp_cast_kind_t(cast.kind), cast.readers) for cast in casts[:self.num_casts]]
        # For Autocast.explain, which reads only disabled_reason of the result.
        self._policy, self._graph, self._arrays = policy, graph, arrays
        self._result = _sys.mp_autocast_result_t(disabled_reason=result.disabled_reason)


class Autocast(Handle):
    """A mixed-precision policy: operation lists and a level.  Immutable after its first use.

    low                 "fp16" or "bf16"
    preset              "default", "tensorflow", "tensorflow_bf16", "pytorch" or "onnx"
                        (mp_autocast_preset_t)
    level               "normal", "infer_as_deny", "tensor_cores_only" or "force_all"
                        (mp_autocast_level_t)
    keep_io             keep graph outputs in FP32
    emulate             run 16-bit nodes in FP32 on rounded values
    ignore_performance  use 16 bits even on devices without fast 16-bit arithmetic
    environment         read the variables MP_AUTOCAST..., which override these arguments
    amax_limit          deny nodes with a tensor of larger known |x|; 0: no limit
    depth_limit         deny nodes that sum more terms; 0: no limit
    """

    _destroy = "mp_autocast_destroy"

    def __init__(self, low: Any = "fp16", preset: Any = "default", level: Any = "normal", *, keep_io: bool = False,
                 emulate: bool = False, ignore_performance: bool = False, environment: bool = True,
                 amax_limit: float = 0.0, depth_limit: int = 0):
        names = {"no_environment": not environment, "ignore_performance": ignore_performance, "keep_io": keep_io,
                 "emulate": emulate}
        self._emulates = bool(emulate)
        config = fill(_sys.mp_autocast_config_default(_number(low)), {
            "preset": enumerator(_sys.mp_autocast_preset_t, preset, "preset"),
            "level": enumerator(_sys.mp_autocast_level_t, level, "level"),
            "flags": flags(_sys.mp_autocast_flags_t, [name for name, is_set in names.items() if is_set], "flags"),
            "amax_limit": amax_limit, "depth_limit": depth_limit})
        handle = ctypes.c_void_p()
        check(lib.mp_autocast_create(ctypes.byref(handle), config))
        self._own(handle)

    # ---- the lists

    def set_class(self, ops: Union[str, Sequence[str]], op_class: Any) -> None:
        """Moves one or more operations to a class: "allow", "deny", ... (mp_op_class_t)."""
        names = [ops] if isinstance(ops, str) else list(ops)
        array = (ctypes.c_char_p * len(names))(*[_bytes(name, f"ops[{i}]") for i, name in enumerate(names)])
        check(lib.mp_autocast_set_class(self.handle, array, len(names),
                                        enumerator(_sys.mp_op_class_t, op_class, "op_class")))

    def set_nodes(self, pattern: str, node_class: Any) -> None:
        """Assigns a class to nodes by name, e.g. "encoder/*"; the last matching pattern applies."""
        check(lib.mp_autocast_set_nodes(self.handle, _bytes(pattern, "pattern"),
                                        enumerator(_sys.mp_op_class_t, node_class, "node_class")))

    def class_of(self, op: str) -> _sys.mp_op_class_t:
        """Returns the class of an operation, before the level is applied."""
        return _sys.mp_op_class_t(lib.mp_autocast_get_class(self.handle, _bytes(op, "op")))

    def disabled_reason(self, context: Optional[Context] = None) -> Optional[str]:
        """Returns the reason why autocast is inactive on this device, or None if it is active.
        Without a device only environment variables can disable it."""
        because = ctypes.c_char_p()
        check(lib.mp_autocast_get_disabled_reason(self.handle, context.handle if context is not None else None,
                                   ctypes.byref(because)))
        return _text(because.value)

    # ---- use

    def rewrite(self, graph: AutocastGraph, context: Optional[Context] = None) -> AutocastResult:
        """Selects the nodes that run in 16 bits and the casts between them; none if
        disabled_reason(context) is not None."""
        return AutocastResult(self, context, graph)

    def explain(self, graph: AutocastGraph, result: AutocastResult, format: Any = "text") -> str:
        """Returns a report on a rewrite by this policy: "text", "json", or "dot" for Graphviz
        (mp_autocast_format_t)."""
        if result._policy is not self or result._graph is not graph:
            raise ValueError("result belongs to another graph or policy")
        number = enumerator(_sys.mp_autocast_format_t, format, "format")
        return read_text(lambda text, size: lib.mp_autocast_explain(
            self.handle, result._arrays, result._result, number, text, size))

    def op(self, op_type: str, dtypes: Sequence[Any]) -> Tuple[List[Optional[str]], Optional[str]]:
        """Returns the casts of a single operation, for eager execution.

        The result is (cast_to, output): the type to cast each input to, or None for no cast; and
        the type of the output, or None if no input is FP32 or 16-bit.
        """
        given = array_of("dtypes", ctypes.c_uint8, [_number(dtype) for dtype in dtypes])
        cast_to, output = (ctypes.c_uint8 * len(given))(), ctypes.c_uint32()
        check(lib.mp_autocast_op(self.handle, _bytes(op_type, "op_type"), given, len(given), cast_to,
                                 ctypes.byref(output)))
        return [_name(dtype) for dtype in cast_to], _name(output.value)

    @staticmethod
    def scaler_config(low: Any = "fp16") -> Any:
        """Returns the mp_scaler_config_t of the recommended loss scaler, for Scaler(context,
        config=...)."""
        config = _sys.mp_scaler_config_t()
        check(lib.mp_autocast_scaler_init(config, ctypes.sizeof(config), _number(low)))
        return config


# ---------------------------------------------------------------------------- conversions


def _number(dtype: Any) -> int:
    """Returns the mp_dtype_t; MP_DTYPE_NONE for None and types that are not floating-point."""
    return int((None if dtype is None else DTYPES[dtype_name(dtype)][1]) or _sys.MP_DTYPE_NONE)


def _name(dtype: int) -> Any:
    return NAMES.get(dtype)


def _index(number: int) -> Optional[int]:
    return None if number < 0 else number


def _text(text: Optional[bytes]) -> Optional[str]:
    return None if text is None else text.decode(errors="replace")


def _bytes(text: str, what: str) -> bytes:
    """Encodes a C string, which cannot contain a NUL."""
    if not isinstance(text, str):
        raise TypeError(f"{what} = {text!r} must be a string")
    if "\0" in text:
        raise ValueError(f"{what} = {text!r} contains a NUL")
    return text.encode()


def _starts(lists: Iterable[Sequence[int]]) -> List[int]:
    """Returns the start of each list in their concatenation, and the end of the last list."""
    starts = [0]
    for one in lists:
        starts.append(starts[-1] + len(one))
    return starts
