#!/usr/bin/env python3
"""Times layers of transformers in PyTorch or Liger, batch by batch on request, as references for
mpcore.

    --library flash, cudnn   scaled_dot_product_attention with this backend
    --library torch          layer_norm, rms_norm, cross_entropy, and silu or gelu, after linear
    --library liger          the same layers of liger_kernel.ops

A problem (torch_peer.py) is SUITE TYPE PASS FORM EXTENT..., as in the results of mpbench:
"attention fp16 backward causal b8 l2048 h16 kv16 d128 dv128".  The backward pass is timed after an
untimed forward pass; that of linear_xent includes its forward pass, as in mpcore.  Gated units
multiply as in mpcore: forward x [gate | up], backward the gradient of the next layer.
"""
import importlib
import re

import torch_peer

WINDOW = 1024  # kWindow of bench/shapes/layer_shapes.h
EPSILON = 1e-5


class Problem:
    def __init__(self, text):
        self.suite, self.dtype, self.part, self.form, *extents = text.split()
        self.extents = {letters: int(number) for letters, number in (
            re.fullmatch(r"([a-z]+)(\d+)", extent).groups() for extent in extents)}
        self.is_forward = self.part == "forward"

    def __getitem__(self, extent):
        return self.extents[extent]


class Layer:
    """Inputs of one data set.  run() computes the output; `inputs` get gradients."""
    NAME = "torch"
    deterministic = True

    def __init__(self, torch, device, problem):
        self.torch, self.device, self.problem = torch, device, problem
        self.dtype = torch_peer.dtype_of(torch, problem.dtype)
        self.inputs = []
        self.make()

    def uniform(self, *shape, wanted=True, dtype=None):
        values = self.torch.empty(shape, device=self.device).uniform_(-1, 1).to(dtype or self.dtype)
        if wanted and not self.problem.is_forward:
            self.inputs.append(values.requires_grad_())
        return values

    def forward(self):
        with self.torch.set_grad_enabled(not self.problem.is_forward):
            return self.run()

    def backward(self, output):
        self.torch.autograd.grad(output, self.inputs, self.gradient)


class Attention(Layer):
    """SDPA of torch, whose causal mask is aligned at the top left: equal for equal lengths."""
    BACKEND = "FLASH_ATTENTION"
    NAME = "scaled_dot_product_attention, flash"

    def make(self):
        of = self.problem
        if of.form not in ("full", "causal"):
            raise torch_peer.Unsupported(f"scaled_dot_product_attention has no form {of.form}")
        # Rows and heads are stored as in mpcore, (b, l, h, d).
        self.q, self.k, self.v = (self.uniform(of["b"], of["l"], of[heads], of[dim]) for heads, dim in (
            ("h", "d"), ("kv", "d"), ("kv", "dv")))
        self.gradient = self.uniform(of["b"], of["l"], of["h"], of["dv"], wanted=False).transpose(1, 2)
        # The sums of dq are atomic additions without use_deterministic_algorithms().
        self.deterministic = of.is_forward

    def run(self):
        attention = self.torch.nn.attention
        with attention.sdpa_kernel(getattr(attention.SDPBackend, self.BACKEND)):
            return self.torch.nn.functional.scaled_dot_product_attention(
                *(x.transpose(1, 2) for x in (self.q, self.k, self.v)), is_causal=self.problem.form == "causal",
                enable_gqa=self.problem["h"] != self.problem["kv"])


class CudnnAttention(Attention):
    BACKEND = "CUDNN_ATTENTION"
    NAME = "scaled_dot_product_attention, cuDNN"


class Norm(Layer):
    def make(self):
        of = self.problem
        shape = of["n"], of["g"], of["c"]
        self.x, self.gamma = self.uniform(*shape), self.uniform(of["c"])
        self.kind, _, residual = of.form.partition("+")
        self.beta = self.uniform(of["c"]) if self.kind == "layer" else None
        self.residual = self.uniform(*shape) if residual else None
        self.gradient = self.uniform(*shape, wanted=False)
        if residual:
            self.gradient = (self.gradient, self.uniform(*shape, wanted=False))

    def run(self):
        r = self.x if self.residual is None else self.x + self.residual
        y = self.normalize(r)
        return y if self.residual is None else (y, r)

    def normalize(self, r):
        functional, width = self.torch.nn.functional, (self.problem["c"],)
        if self.kind == "layer":
            return functional.layer_norm(r, width, self.gamma, self.beta, EPSILON)
        return functional.rms_norm(r, width, self.gamma, EPSILON)


class LigerNorm(Norm):
    NAME = "Liger"

    def normalize(self, r):
        if self.kind == "layer":
            return liger("layer_norm", "LigerLayerNormFunction").apply(r, self.gamma, self.beta, EPSILON)
        return liger("rms_norm", "LigerRMSNormFunction").apply(r, self.gamma, EPSILON)


class LinearXent(Layer):
    def make(self):
        of = self.problem
        self.x, self.w = self.uniform(of["n"], of["w"]), self.uniform(of["c"], of["w"])
        self.labels = self.torch.randint(of["c"], (of["n"],), device=self.device)
        self.gradient = None

    def run(self):
        functional = self.torch.nn.functional
        return functional.cross_entropy(functional.linear(self.x, self.w), self.labels)


class LigerLinearXent(LinearXent):
    NAME = "Liger"

    def run(self):
        return liger("fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyFunction").apply(
            self.x, self.w, self.labels)[0]


class Gated(Layer):
    def make(self):
        of = self.problem
        self.halves = self.uniform(of["n"], 2 * of["f"])
        self.x = self.uniform(of["n"], of["k"], wanted=False)
        self.w = self.uniform(of["f"] * (2 if of.is_forward else 1), of["k"], wanted=False)

    def run(self):
        """Backward: the unit alone; its product is part of backward()."""
        halves = self.torch.nn.functional.linear(self.x, self.w) if self.problem.is_forward else self.halves
        return self.unit(*halves.chunk(2, -1))

    def unit(self, gate, up):
        functional = self.torch.nn.functional
        return (functional.silu(gate) if self.problem.form == "swiglu" else functional.gelu(gate)) * up

    def backward(self, output):
        self.torch.autograd.grad(output, self.inputs, self.torch.nn.functional.linear(self.x, self.w))


class LigerGated(Gated):
    NAME = "Liger"

    def make(self):
        if self.problem.form == "geglu":
            raise torch_peer.Unsupported("GeGLU of Liger has the tanh form of GELU")
        super().make()

    def unit(self, gate, up):
        return liger("swiglu", "LigerSiLUMulFunction").apply(gate, up)


LAYERS = {
    "flash": {"attention": Attention},
    "cudnn": {"attention": CudnnAttention},
    "torch": {"norm": Norm, "linear_xent": LinearXent, "gated": Gated},
    "liger": {"norm": LigerNorm, "linear_xent": LigerLinearXent, "gated": LigerGated},
}


def liger(module, function):
    """@raises ImportError if Liger is not installed"""
    return getattr(importlib.import_module(f"liger_kernel.ops.{module}"), function)


class Timer(torch_peer.Timer):
    def __init__(self, torch, device, layer, problem):
        super().__init__(torch, device)
        self.problem, self.library = problem, layer.NAME
        first = layer(torch, device, problem)
        tensors = [value for value in vars(first).values() if isinstance(value, torch.Tensor)]
        count = torch_peer.sets_beyond_l2(torch, device, sum(x.numel() * x.element_size() for x in tensors))
        self.sets = [first] + [layer(torch, device, problem) for _ in range(count - 1)]
        self.workspace_bytes = self.measure_workspace(first)
        self.warm_up(1)

    def measure_workspace(self, one):
        """Returns the peak of memory that torch allocated in a call, with its outputs."""
        cuda = self.torch.cuda
        output = one.forward() if self.consumes_forward() else None
        before = cuda.memory_allocated()
        cuda.reset_peak_memory_stats()
        self.run(one, output)
        return cuda.max_memory_allocated() - before

    def consumes_forward(self):
        """A backward pass of linear_xent starts with its forward pass."""
        return not self.problem.is_forward and self.problem.suite != "linear_xent"

    def run(self, one, output):
        if not self.consumes_forward():
            output = one.forward()
        if not self.problem.is_forward:
            one.backward(output)

    def name(self):
        return f"torch {self.torch.__version__}, {self.library}"

    def result(self):
        deterministic = all(one.deterministic for one in self.sets)
        return super().result() | {"deterministic": deterministic, "workspace_bytes": self.workspace_bytes}


def serve(torch, device, library, commands, answers):
    def make_timer(text):
        problem = Problem(text)
        return Timer(torch, device, LAYERS[library][problem.suite], problem)

    torch_peer.serve(torch, library, make_timer, commands, answers)


if __name__ == "__main__":
    torch_peer.main("torch_transformer.py", __doc__, serve,
                    library={"choices": sorted(LAYERS), "required": True, "help": "backend or library"})
