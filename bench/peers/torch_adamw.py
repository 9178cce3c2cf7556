#!/usr/bin/env python3
"""Times what a PyTorch user runs where mpcore has mp_scale_step; one line of JSON per layout.

FP16 gradients become FP32 gradients of the FP32 master weights, GradScaler.step() runs the fused
AdamW (which looks for non-finite gradients, unscales and updates), GradScaler.update() moves the
loss scale, and the master weights are copied to the FP16 model.

    torch_adamw.py [--device N] NAME=NUMEL[xCOUNT][,NUMEL[xCOUNT]...] ...
"""
import argparse
import json
import sys

LEAST_BATCHES = 20
BUDGET_MS = 300.0
BATCH_MS = 2.0
MOST_CALLS = 200


def parse_layout(text):
    """"small=2500x4000" -> ("small", [2500] * 4000)"""
    name, _, runs = text.partition("=")
    numel = []
    for run in runs.split(","):
        elems, _, count = run.partition("x")
        numel += [int(elems)] * int(count or 1)
    return name, numel


class Step:
    """One data set and the step on it."""

    def __init__(self, torch, device, numel):
        def uniform(elems, dtype):
            return torch.empty(elems, device=device).uniform_(-1, 1).to(dtype)

        self.torch = torch
        self.grads = [uniform(elems, torch.float16) for elems in numel]
        self.master = [uniform(elems, torch.float32).requires_grad_() for elems in numel]
        self.model = [weight.detach().half() for weight in self.master]
        for weight in self.master:
            weight.grad = torch.empty_like(weight)
        self.optimizer = torch.optim.AdamW(self.master, lr=1e-3, weight_decay=0.01, fused=True)
        self.scaler = torch.amp.GradScaler(device.type)
        self.scaler.scale(torch.zeros((), device=device))  # creates the scale

    def __call__(self):
        with self.torch.no_grad():
            self.torch._foreach_copy_([weight.grad for weight in self.master], self.grads)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.torch._foreach_copy_(self.model, self.master)


def sets_beyond_l2(torch, device, parameters):
    """As Machine::sets_beyond_l2: data sets that calls take in turn."""
    bytes_per_set = parameters * (2 + 4 + 4 + 4 + 4 + 2)
    return max(1, -(-2 * torch.cuda.get_device_properties(device).L2_cache_size // bytes_per_set))


def time_batch(torch, steps, calls):
    """Milliseconds per call, between two events."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for call in range(calls):
        steps[call % len(steps)]()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / calls


def time_layout(torch, device, numel):
    steps = [Step(torch, device, numel) for _ in range(sets_beyond_l2(torch, device, sum(numel)))]
    for _ in range(3):
        time_batch(torch, steps, len(steps))  # warm-up
    call_ms = time_batch(torch, steps, len(steps))
    calls = min(max(1, round(BATCH_MS / call_ms)), MOST_CALLS)
    batches = max(LEAST_BATCHES, round(BUDGET_MS / (call_ms * calls)))
    times = torch.tensor([time_batch(torch, steps, calls) for _ in range(batches)])
    return 1e3 * times.double().quantile(torch.tensor([0.25, 0.5, 0.75]).double())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", type=int, default=0, help="CUDA ordinal (0)")
    parser.add_argument("layouts", nargs="+", type=parse_layout)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("torch_adamw.py: PyTorch is not importable.")
    if not torch.cuda.is_available():
        sys.exit("torch_adamw.py: PyTorch sees no CUDA device.")

    device = torch.device("cuda", arguments.device)
    torch.cuda.set_device(device)
    for name, numel in arguments.layouts:
        try:
            q1_us, median_us, q3_us = time_layout(torch, device, numel).tolist()
        except torch.cuda.OutOfMemoryError:
            print(f"torch_adamw.py: no memory for {name}, {sum(numel)}.", file=sys.stderr)
            continue
        print(json.dumps({"layout": name, "parameters": sum(numel), "torch": torch.__version__,
                          "median_us": median_us, "q1_us": q1_us, "q3_us": q3_us}), flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
