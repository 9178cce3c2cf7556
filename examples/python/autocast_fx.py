"""Prints the type that automatic mixed precision assigns to each operation of a torch.nn.Module.

    python examples/python/autocast_fx.py [fp16 | bf16]

torch.fx traces the module.  Each operation becomes a node of an mpcore.AutocastGraph, and the lists
of torch.amp (preset "pytorch") assign the types.  Requires torch; uses torchvision's resnet18 if it
is installed.
"""
import operator
import sys

import torch
import torch.fx
import torch.nn.functional as F
from torch import nn
from torch.fx.passes.shape_prop import ShapeProp

import mpcore
from mpcore import _sys

TYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
# Operations that read a 16-bit first input together with fp32 parameters.
NORMS = ("batch_norm", "instance_norm")
# Keys have no underscores: the class name BatchNorm2d begins with batchnorm.
FUNCTIONS = {name.replace("_", ""): name for name in dir(F) if not name.startswith("_") and not name.endswith("_")}
# Classes whose function has a different name.
CLASSES = {"CrossEntropyLoss": "cross_entropy", "BCELoss": "binary_cross_entropy", "KLDivLoss": "kl_div",
           "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "MultiheadAttention": "multi_head_attention_forward",
           "LSTMCell": "lstm_cell", "GRUCell": "gru_cell", "RNNCell": "rnn_tanh_cell", "RNN": "rnn_tanh",
           "UpsamplingNearest2d": "interpolate", "UpsamplingBilinear2d": "interpolate"}


def functional_name(module: nn.Module) -> str:
    """Returns the name of a module's function, e.g. conv2d; if none, its lower-case class name."""
    if type(module).__name__ in CLASSES:
        return CLASSES[type(module).__name__]
    name = type(module).__name__.lower()
    return FUNCTIONS.get(name) or FUNCTIONS.get(name[:-2]) or name


def type_of(value):
    """Returns mpcore's name of the type of a value or of a tuple's first item, or None."""
    while isinstance(value, (tuple, list)) and not hasattr(value, "dtype"):
        value = value[0] if value else None
    return TYPES.get(getattr(value, "dtype", None))


def walk(module: nn.Module, *inputs):
    """Returns the traced module, its AutocastGraph, and a dict from nodes to tensors.

    Runs `inputs` through the module once to determine which values are tensors."""
    traced = torch.fx.symbolic_trace(module)
    ShapeProp(traced).propagate(*inputs)
    modules = dict(traced.named_modules())
    graph, tensors, stored = mpcore.AutocastGraph(), {}, {}

    def keep(value):
        """Returns the graph tensor of a parameter or buffer, adding it at its first use."""
        if id(value) not in stored:
            role = "parameter" if isinstance(value, nn.Parameter) else "activation"
            stored[id(value)] = graph.tensor(type_of(value), role=role)
        return stored[id(value)]

    for node in traced.graph.nodes:
        made = type_of(node.meta.get("tensor_meta"))
        if node.op == "placeholder":
            tensors[node] = graph.input(made)
        elif node.op == "get_attr":
            tensors[node] = keep(operator.attrgetter(node.target)(traced))
        elif node.op == "output":
            for each in node.all_input_nodes:
                tensors[each].role = "output"
        else:
            read = [tensors[each] for each in node.all_input_nodes]
            if node.op == "call_module":
                name = functional_name(modules[node.target])
                read += map(keep, modules[node.target].parameters())
            else:
                name = node.target if node.op == "call_method" else node.target.__name__
            first = 1 if name in NORMS else len(read)  # index of the first input that stays fp32
            slots = [_sys.MP_AUTOCAST_SLOT_FP32 if i >= first and tensor.dtype == "fp32" else 0 for i, tensor in enumerate(read)]
            tensors[node] = graph.node(name, read, name=node.name, slots=slots, outputs=[graph.tensor(made)])
    return traced, graph, tensors


class ResidualBlock(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = (nn.BatchNorm2d(channels) for _ in range(2))
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(x + self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x))))))


class ResidualNetwork(nn.Module):
    def __init__(self, channels: int = 8, classes: int = 10):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(ResidualBlock(channels) for _ in range(2)))
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        pooled = F.adaptive_avg_pool2d(F.max_pool2d(self.blocks(self.stem(x)), 2), 1)
        return F.log_softmax(self.head(torch.flatten(pooled, 1)), dim=1)


class TransformerBlock(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.gelu, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x):
        normed = self.norm1(x)
        q, k, v = (each(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(mixed)
        return x + self.down(self.gelu(self.up(self.norm2(x))))


def networks() -> dict:
    """Returns a dict from names to pairs of a module and its input."""
    found = {"TransformerBlock": (TransformerBlock(), torch.randn(2, 5, 32))}
    try:
        from torchvision.models import resnet18
        found["resnet18"] = resnet18(), torch.randn(1, 3, 64, 64)
    except ImportError:
        found["ResidualNetwork"] = ResidualNetwork(), torch.randn(2, 3, 8, 8)
    return found


def main(low: str = "fp16") -> None:
    for name, (module, x) in networks().items():
        _, graph, _ = walk(module.eval(), x)
        with mpcore.Autocast(low, "pytorch") as policy:
            print(f"{name}\n\n{policy.explain(graph, policy.rewrite(graph))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
