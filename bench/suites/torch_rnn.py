#!/usr/bin/env python3
"""Times recurrent layers of torch.nn batch by batch on request, as a reference for mpcore: one
layer with one direction.  The input is always multiplied by W_ih, as torch requires.

A problem (torch_peer.py) is CELL HIDDEN BATCH TIMESTEPS TYPE PASS MODE:
    fprop    forward; MODE training saves data for the gradients, MODE inference does not
    dgrad    gradients of x and h_0, after an untimed forward pass
    wgrad    gradients of x, h_0, weights and biases, which torch computes in one call
Calls are not captured into a CUDA graph: autograd creates new nodes each time, with many kernels
each.
"""
import dataclasses

import torch_peer


@dataclasses.dataclass
class Problem:
    cell: str
    hidden: int
    batch: int
    timesteps: int
    dtype: str
    part: str  # "fprop", "dgrad" or "wgrad"
    is_training: bool

    @staticmethod
    def parse(text):
        cell, hidden, batch, timesteps, dtype, part, mode = text.split()
        return Problem(cell, int(hidden), int(batch), int(timesteps), dtype, part, mode == "training")


LAYERS = {"lstm": "LSTM", "gru": "GRU", "vanilla": "RNN"}


class DataSet:
    """A layer with its weights and tensors."""

    def __init__(self, torch, device, problem):
        self.torch, self.problem = torch, problem
        dtype = torch_peer.dtype_of(torch, problem.dtype)
        options = {"nonlinearity": "relu"} if problem.cell == "vanilla" else {}
        self.layer = getattr(torch.nn, LAYERS[problem.cell])(problem.hidden, problem.hidden, device=device, dtype=dtype,
                                                             **options)
        self.layer.train(problem.is_training)
        self.layer.requires_grad_(problem.is_training and problem.part != "dgrad")
        wants_dx = problem.part != "fprop"

        def uniform(*shape):
            return torch.empty(shape, device=device).uniform_(-1, 1).to(dtype).requires_grad_(wants_dx)

        self.x = uniform(problem.timesteps, problem.batch, problem.hidden)
        self.h0 = uniform(1, problem.batch, problem.hidden)
        self.dy = uniform(problem.timesteps, problem.batch, problem.hidden).detach()
        self.wanted = [self.x, self.h0] + (list(self.layer.parameters()) if problem.part == "wgrad" else [])

    def forward(self):
        state = (self.h0, self.torch.zeros_like(self.h0)) if self.problem.cell == "lstm" else self.h0
        with self.torch.set_grad_enabled(self.problem.is_training):
            return self.layer(self.x, state)[0]

    def backward(self, y):
        self.torch.autograd.grad(y, self.wanted, self.dy)


class Timer(torch_peer.Timer):
    def __init__(self, torch, device, problem):
        super().__init__(torch, device)
        self.problem = problem
        elem_bytes = 4 if problem.dtype == "fp32" else 2
        gates = {"lstm": 4, "gru": 3, "vanilla": 1}[problem.cell]
        bytes_per_set = elem_bytes * problem.hidden * (2 * gates * problem.hidden + 2 * problem.batch * problem.timesteps)
        count = torch_peer.sets_beyond_l2(torch, device, bytes_per_set)
        self.sets = [DataSet(torch, device, problem) for _ in range(count)]
        self.warm_up(1)

    def consumes_forward(self):
        return self.problem.part != "fprop"

    def run(self, one, output):
        if self.consumes_forward():
            one.backward(output)
        else:
            one.forward()

    def name(self):
        return f"torch {self.torch.__version__}, nn.{LAYERS[self.problem.cell]}"


def serve(torch, device, commands, answers):
    torch_peer.serve(torch, "torch", lambda problem: Timer(torch, device, Problem.parse(problem)), commands, answers)


if __name__ == "__main__":
    torch_peer.main("torch_rnn.py", __doc__, serve)
