#!/usr/bin/env python3
"""Times the equivalent of mp_scale_step in PyTorch, batch by batch on request.

torch: converts FP16 gradients to FP32 gradients of the FP32 master weights.  GradScaler.step() runs
the fused AdamW, which checks for non-finite gradients, unscales and updates.  GradScaler.update()
updates the loss scale.  The master weights are copied to the FP16 model.

apex, te: FusedAdam of Apex or Transformer Engine, which reads FP16 gradients, keeps the master
weights and writes the FP16 model.

The calls are captured into a CUDA graph, which excludes host time of PyTorch.  If the capture
fails, they run without a graph.

A problem (torch_peer.py) is NAME=NUMEL[xCOUNT][,NUMEL[xCOUNT]...].
"""
import importlib
import importlib.metadata
import sys

import torch_peer


def parse_layout(text):
    """"x100=2500x100" -> ("x100", [2500] * 100)"""
    name, _, runs = text.partition("=")
    numel = []
    for run in runs.split(","):
        elems, _, count = run.partition("x")
        numel += [int(elems)] * int(count or 1)
    return name, numel


class Step:
    """One data set and the step on it."""

    def __init__(self, torch, device):
        self.torch = torch
        self.device = device
        self.calls = 0
        self.graph = None

    def uniform(self, elems, dtype):
        return self.torch.empty(elems, device=self.device).uniform_(-1, 1).to(dtype)

    def start(self, optimizer, **scale):
        self.optimizer = optimizer
        self.scaler = self.torch.amp.GradScaler(self.device.type, **scale)
        self.scaler.scale(self.torch.zeros((), device=self.device))  # creates the scale

    def capture(self):
        """Captures a CUDA graph after warm-up calls on another stream, as torch.cuda.graph
        requires."""
        stream = self.torch.cuda.Stream()
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            for _ in range(3):
                self()
        self.torch.cuda.current_stream().wait_stream(stream)
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            self.enqueue()
        self.graph = graph

    def __call__(self):
        self.calls += 1
        if self.graph is not None:
            self.graph.replay()
        else:
            self.enqueue()


class AdamW(Step):
    """Fused AdamW of torch on master weights, with a cast before it and a copy after it."""
    NAME, PACKAGE = "torch", "torch"
    BYTES = 2 + 4 + 4 + 4 + 4 + 2  # storage per parameter

    def __init__(self, torch, device, numel):
        super().__init__(torch, device)
        self.grads = [self.uniform(elems, torch.float16) for elems in numel]
        self.master = [self.uniform(elems, torch.float32).requires_grad_() for elems in numel]
        self.model = [weight.detach().half() for weight in self.master]
        for weight in self.master:
            weight.grad = torch.empty_like(weight)
        self.start(torch.optim.AdamW(self.master, lr=1e-3, weight_decay=0.01, fused=True, capturable=True))

    def enqueue(self):
        with self.torch.no_grad():
            self.torch._foreach_copy_([weight.grad for weight in self.master], self.grads)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.torch._foreach_copy_(self.model, self.master)

    def has_applied_all(self):
        """Returns whether all steps were applied: skipped steps write nothing and would look
        fast."""
        return int(self.optimizer.state[self.master[0]]["step"]) == self.calls


class FusedAdam(Step):
    """AdamW of Apex or Transformer Engine, for FP16 parameters with FP32 master weights.

    Both have the same interface.  In Apex, master_weights requires capturable, with which the step
    detects overflows, unscales and counts on the device.  Sources:
    apex/optimizers/fused_adam.py at 6424da3, transformer_engine/pytorch/optimizers/fused_adam.py at
    d0067d0.
    """
    BYTES = 2 + 4 + 4 + 4 + 2

    def __init__(self, torch, device, numel):
        super().__init__(torch, device)
        optimizer = importlib.import_module(self.MODULE).FusedAdam
        self.model = [self.uniform(elems, torch.float16).requires_grad_() for elems in numel]
        for weight in self.model:
            weight.grad = self.uniform(weight.numel(), torch.float16)
        # The step writes back unscaled gradients.  With a constant scale of 1 they do not change.
        self.start(optimizer(self.model, lr=1e-3, weight_decay=0.01, capturable=True, master_weights=True),
                   init_scale=1.0, growth_interval=2**31 - 1)

    def enqueue(self):
        with self.torch.no_grad():
            # GradScaler.step makes this call, but its support is deprecated.
            self.optimizer.step(grad_scaler=self.scaler)
            self.scaler.update()

    def has_applied_all(self):
        """Returns whether all steps were applied; each step counts if the previous one was
        applied."""
        return int(self.optimizer.param_groups[0]["step"]) == self.calls


class ApexAdam(FusedAdam):
    NAME, PACKAGE, MODULE = "Apex FusedAdam", "apex", "apex.optimizers"


class TransformerEngineAdam(FusedAdam):
    NAME, PACKAGE = "Transformer Engine FusedAdam", "transformer_engine"
    MODULE = "transformer_engine.pytorch.optimizers"


STEPS = {"torch": AdamW, "apex": ApexAdam, "te": TransformerEngineAdam}


class Timer(torch_peer.Timer):
    """The steps of one layout."""

    def __init__(self, torch, device, kind, layout):
        super().__init__(torch, device)
        self.kind = kind
        _, numel = layout
        count = torch_peer.sets_beyond_l2(torch, device, sum(numel) * kind.BYTES)
        self.make_steps = lambda: [kind(torch, device, numel) for _ in range(count)]
        self.steps = self.make_steps()
        self.mode = self.capture()
        self.next = 0
        self.warm_up(count)

    def capture(self):
        try:
            for step in self.steps:
                step.capture()
        except RuntimeError as error:
            if isinstance(error, self.torch.cuda.OutOfMemoryError):
                raise
            print(f"torch_step.py: not captured: {error}", file=sys.stderr)
            self.steps = None  # frees the memory
            self.steps = self.make_steps()
            return "eager"
        return "CUDA graph"

    def call(self):
        self.steps[self.next]()
        self.next = (self.next + 1) % len(self.steps)

    def version(self):
        """Returns the versions of torch and of the package."""
        torch = self.torch.__version__
        if self.kind.PACKAGE == "torch":
            return torch
        try:
            return f"{importlib.metadata.version(self.kind.PACKAGE)}, torch {torch}"
        except importlib.metadata.PackageNotFoundError:
            return f"unknown version, torch {torch}"

    def name(self):
        return f"{self.kind.NAME} {self.version()}, {self.mode}"

    def error(self):
        return None if all(step.has_applied_all() for step in self.steps) else "a step with finite gradients was skipped"


def serve(torch, device, kind, commands, answers):
    torch_peer.serve(torch, kind.NAME, lambda problem: Timer(torch, device, kind, parse_layout(problem)), commands, answers)


if __name__ == "__main__":
    torch_peer.main("torch_step.py", __doc__,
                    lambda torch, device, step, commands, answers: serve(torch, device, STEPS[step], commands, answers),
                    step={"choices": STEPS, "default": "torch", "help": "whose optimizer (torch)"})
