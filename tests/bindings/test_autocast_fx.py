"""examples/python/autocast_fx.py: types that the lists of torch.amp give to traced modules,
compared with torch.autocast."""
import importlib.util
import sys

import pytest

torch = pytest.importorskip("torch", reason="the walker over torch.fx graphs (no torch for this Python)")

# Kept in fp32 by the lists for CUDA (those of the preset), and not listed for the CPU.
CUDA_ONLY = {"exp", "layer_norm", "group_norm", "log_softmax", "pow", "softmax", "sum"}


@pytest.fixture(scope="module")
def example(root, build):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPCORE_DIR", str(build))
        spec = importlib.util.spec_from_file_location("autocast_fx", root / "examples/python/autocast_fx.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rewrite(example):
    """rewrite(graph): a rewrite to bf16 with torch's lists."""
    return example.mpcore.Autocast("bf16", "pytorch", environment=False).rewrite


class Operations(torch.nn.Module):
    """Operations of every class of the lists, with inputs of fp32, of bf16 and of both."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.group = torch.nn.Conv1d(4, 4, 1), torch.nn.BatchNorm1d(4), torch.nn.GroupNorm(2, 4)
        self.table, self.slope = torch.nn.Embedding(7, 4), torch.nn.PReLU()
        self.bias = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, indices):
        F = torch.nn.functional
        low = self.norm(self.conv(x))
        rows = self.table(indices)  # an fp32 table and indices
        first, second = torch.split(low, 2, dim=1)
        both = torch.cat([first, torch.relu(second), x[:, :1]], dim=1)
        products = torch.matmul(rows, self.slope(low)), torch.bmm(low, low.transpose(1, 2)), rows @ rows.transpose(1, 2)
        sums = torch.addcmul(products[1], products[2], products[1]), products[0] + self.bias, low * 2
        losses = F.mse_loss(sums[0], products[1]), F.l1_loss(low, low), torch.prod(low)
        as_given = torch.stack([low, torch.sigmoid(low)]), torch.max(low), torch.exp(low), self.group(low), low.shape[0]
        return both, sums, losses, as_given


class UnderAutocast(torch.fx.Interpreter):
    """Runs each operation under torch.autocast, on inputs of the types that the rewrite assigned,
    and records the types of outputs."""

    def __init__(self, traced, decided: dict):
        super().__init__(traced)
        self.decided, self.found = decided, {}

    def run_node(self, node):
        with torch.autocast("cpu", torch.bfloat16):
            got = super().run_node(node)
        if node.op in ("call_module", "call_function", "call_method") and self.decided[node] is not None:
            self.found[node] = str((got[0] if isinstance(got, (tuple, list)) else got).dtype).replace("torch.", "")
            dtype = getattr(torch, self.decided[node])
            got = tuple(each.to(dtype) for each in got) if isinstance(got, (tuple, list)) else got.to(dtype)
        return got


def compare(example, rewrite, module, *inputs) -> dict:
    """Compares the types of all operations with torch's; returns them by name."""
    traced, graph, tensors = example.walk(module, *inputs)
    result = rewrite(graph)
    decided = {node: result.tensor_dtypes[tensor.index] for node, tensor in tensors.items()}
    # The type of a node is that of its output, if floating-point.
    for node, tensor in tensors.items():
        if tensor.producer is not None and decided[node] is not None:
            assert result.node_dtypes[tensor.producer] == decided[node], node
    run = UnderAutocast(traced, decided)
    run.run(*inputs)
    names = {node: graph.nodes[tensors[node].producer].op for node in run.found}
    differ = [(node.name, names[node], decided[node], dtype) for node, dtype in run.found.items()
              if names[node] not in CUDA_ONLY and decided[node] != dtype]
    assert not differ, "(node, operation, what mpcore decides, what torch does)"
    return {node.name: dtype for node, dtype in run.found.items()}


def test_names(example):
    nn = torch.nn
    modules = [nn.Conv2d(1, 1, 1), nn.BatchNorm3d(1), nn.LayerNorm(1), nn.Linear(1, 1), nn.ReLU(), nn.GELU(),
               nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.LogSoftmax(), nn.MSELoss(), nn.Flatten()]
    assert [example.functional_name(module) for module in modules] == [
        "conv2d", "batch_norm", "layer_norm", "linear", "relu", "gelu", "max_pool2d", "adaptive_avg_pool2d",
        "log_softmax", "mse_loss", "flatten"]


def test_networks(example, rewrite):
    for module, x in example.networks().values():
        found = compare(example, rewrite, module.eval(), x)
        assert "bfloat16" in found.values() and len(found) > 15


def test_operations(example, rewrite):
    found = compare(example, rewrite, Operations().eval(), torch.randn(3, 4, 4), torch.randint(7, (3, 4)))
    wanted = {"conv": "bfloat16", "norm": "bfloat16", "table": "float32", "cat": "float32", "matmul": "bfloat16",
              "addcmul": "bfloat16", "mse_loss": "float32", "prod": "float32", "stack": "bfloat16"}
    assert {name: found[name] for name in wanted} == wanted


def test_parameters(example, rewrite):
    """Weights of products have 16-bit copies, norms stay fp32; a parameter of two modules is one
    tensor."""
    twice = torch.nn.Linear(4, 4)
    module = torch.nn.Sequential(twice, torch.nn.BatchNorm1d(4), twice, torch.nn.LayerNorm(4))
    _, graph, _ = example.walk(module.eval(), torch.randn(2, 4))
    result = rewrite(graph)
    assert result.num_parameters_low == 2
    assert [cast.readers for cast in result.casts if cast.kind == example._sys.MP_CAST_KIND_MODEL_COPY] == [2, 2]


def test_report(root, build, run):
    output = run(sys.executable, "-B", "examples/python/autocast_fx.py", "fp16",
               env={"MPCORE_DIR": str(build), "PYTHONPATH": str(root / "bindings/python")})
    assert "scaled_dot_product_attention  fp16  on the allow list\n" in output
    assert " by the optimizer's copy\n" in output
