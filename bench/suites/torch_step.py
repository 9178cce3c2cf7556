#!/usr/bin/env python3
"""Times the equivalent of mp_scale_step in PyTorch, batch by batch on request.

FP16 gradients are converted to FP32 gradients of the FP32 master weights.  GradScaler.step() runs
the fused AdamW, which checks for non-finite gradients, unscales and updates.  GradScaler.update()
updates the loss scale.  The master weights are copied to the FP16 model.

The calls are captured into a CUDA graph, which excludes host time of PyTorch.  If the capture
fails, they run without a graph.

A problem (torch_peer.py) is NAME=NUMEL[xCOUNT][,NUMEL[xCOUNT]...].
"""
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
    """One data set and fused AdamW on its master weights, with a cast before and a copy after."""
    BYTES = 2 + 4 + 4 + 4 + 4 + 2  # storage per parameter

    def __init__(self, torch, device, numel):
        self.torch = torch
        self.calls = 0
        self.graph = None

        def uniform(elems, dtype):
            return torch.empty(elems, device=device).uniform_(-1, 1).to(dtype)

        self.grads = [uniform(elems, torch.float16) for elems in numel]
        self.master = [uniform(elems, torch.float32).requires_grad_() for elems in numel]
        self.model = [weight.detach().half() for weight in self.master]
        for weight in self.master:
            weight.grad = torch.empty_like(weight)
        self.optimizer = torch.optim.AdamW(self.master, lr=1e-3, weight_decay=0.01, fused=True, capturable=True)
        self.scaler = torch.amp.GradScaler(device.type)
        self.scaler.scale(torch.zeros((), device=device))  # creates the scale

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


class Timer(torch_peer.Timer):
    """The steps of one layout."""

    def __init__(self, torch, device, layout):
        super().__init__(torch, device)
        _, numel = layout
        count = torch_peer.sets_beyond_l2(torch, device, sum(numel) * Step.BYTES)
        self.make_steps = lambda: [Step(torch, device, numel) for _ in range(count)]
        self.sets = self.make_steps()
        self.mode = self.capture()
        self.warm_up(count)

    def capture(self):
        try:
            for step in self.sets:
                step.capture()
        except RuntimeError as error:
            if isinstance(error, self.torch.cuda.OutOfMemoryError):
                raise
            print(f"torch_step.py: not captured: {error}", file=sys.stderr)
            self.sets = None  # frees the memory
            self.sets = self.make_steps()
            return "eager"
        return "CUDA graph"

    def run(self, one, output):
        one()

    def name(self):
        return f"torch {self.torch.__version__}, {self.mode}"

    def error(self):
        return None if all(step.has_applied_all() for step in self.sets) else "a step with finite gradients was skipped"


def serve(torch, device, commands, answers):
    torch_peer.serve(torch, "torch", lambda problem: Timer(torch, device, parse_layout(problem)), commands, answers)


if __name__ == "__main__":
    torch_peer.main("torch_step.py", __doc__, serve)
