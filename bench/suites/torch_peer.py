"""Base of the reference programs that use PyTorch, which time batches on request like
bench/timing/timing.cpp.

Commands on stdin, each answered by one line of JSON:
    prepare PROBLEM      data, warm-up, length of a batch
    turn                 times one batch
    result               of all turns; frees the data
"""
import argparse
import json
import os
import sys
import time

BATCH_MS = 2.0
MOST_CALLS = 200
FILLER_BYTES = 64 << 20


class Unsupported(Exception):
    """A problem that the library does not have."""


def dtype_of(torch, name):
    """Returns the type of PyTorch, e.g. torch.float16 for "fp16"."""
    return getattr(torch, name.replace("fp", "float").replace("bf", "bfloat"))


class Timer:
    """Times one problem, whose data sets are used cyclically.  Subclasses fill `sets` and define
    run() and name(), the name of the timed library."""

    def __init__(self, torch, device):
        self.torch = torch
        self.filler = torch.empty(FILLER_BYTES, dtype=torch.uint8, device=device)
        self.enqueue_ms = self.filler_ms = 0.0
        self.calls = 1
        self.times = []
        self.sets, self.next, self.outputs = [], 0, []

    def run(self, one, output):
        """Enqueues a call; `output`: that of forward() if the call consumes it."""
        raise NotImplementedError

    def consumes_forward(self):
        """True if a call is a backward pass, whose forward pass is not timed."""
        return False

    def next_set(self):
        one = self.sets[self.next]
        self.next = (self.next + 1) % len(self.sets)
        return one

    def before_batch(self, calls):
        if self.consumes_forward():
            self.outputs = [(one, one.forward()) for one in (self.next_set() for _ in range(calls))]

    def call(self):
        self.run(*(self.outputs.pop() if self.outputs else (self.next_set(), None)))

    def name(self):
        raise NotImplementedError

    def error(self):
        """Returns the reason why the times are invalid, or None."""
        return None

    def warm_up(self, calls):
        for _ in range(3):
            call_ms = self.time_batch(calls)
        self.filler_ms = self.elapsed_ms(lambda: [self.filler.zero_() for _ in range(50)]) / 50
        self.calls = min(max(1, round(BATCH_MS / call_ms)), MOST_CALLS)
        self.time_batch(self.calls)

    def elapsed_ms(self, work):
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop)

    def time_batch(self, calls):
        """Returns milliseconds per call.  The GPU is kept busy until all calls are enqueued."""
        def batch():
            began = time.perf_counter()
            for _ in range(calls):
                self.call()
            self.enqueue_ms = 1e3 * (time.perf_counter() - began) / calls

        self.before_batch(calls + 1)
        if self.filler_ms > 0:
            for _ in range(round(self.enqueue_ms * (calls + 1) / self.filler_ms)):
                self.filler.zero_()
        self.call()
        return self.elapsed_ms(batch) / calls

    def turn(self):
        self.times.append(self.time_batch(self.calls))
        return {}

    def result(self):
        if self.error():
            return {"error": self.error()}
        quartiles = self.torch.tensor([0.25, 0.5, 0.75]).double()
        times_us = 1e3 * self.torch.tensor(self.times).double()
        q1_us, median_us, q3_us = times_us.quantile(quartiles).tolist()
        return {"peer": self.name(), "batches": len(self.times), "median_us": median_us, "q1_us": q1_us, "q3_us": q3_us}


def sets_beyond_l2(torch, device, bytes_per_set):
    """Returns the number of data sets to alternate, like Machine::sets_beyond_l2."""
    l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    return max(1, -(-2 * l2_bytes // bytes_per_set))


def serve(torch, name, make_timer, commands, answers):
    """Answers commands.  name: the package, for error messages; make_timer(problem): returns a
    Timer."""
    timer = None
    for line in commands:
        command, _, argument = line.strip().partition(" ")
        try:
            if command == "prepare":
                timer = make_timer(argument)
                answer = {}
            elif command == "turn":
                answer = timer.turn()
            else:
                answer = timer.result()
                timer = None
                torch.cuda.empty_cache()
        except torch.cuda.OutOfMemoryError:
            timer = None
            torch.cuda.empty_cache()
            answer = {"error": "not enough device memory"}
        except Unsupported as error:
            answer = {"error": str(error)}
        except (ImportError, RuntimeError) as error:  # missing, or built without CUDA
            timer = None
            answer = {"error": f"{name} cannot be used ({error})".replace('"', "'").replace("\n", " "),
                      "absent": isinstance(error, ImportError)}
        print(json.dumps(answer), file=answers, flush=True)


def main(script, description, serve_script, **option):
    """Runs a reference program.

    @param option  at most one argparse option, by name
    @param serve_script  called with torch, the device, the value of the option, commands and
                         answers
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--device", type=int, default=0, help="CUDA ordinal (0)")
    for name, details in option.items():
        parser.add_argument(f"--{name}", **details)
    arguments = vars(parser.parse_args())
    try:
        import torch
    except ImportError:
        sys.exit(f"{script}: PyTorch cannot be imported")
    if not torch.cuda.is_available():
        sys.exit(f"{script}: no CUDA device is available to PyTorch")
    device = torch.device("cuda", arguments.pop("device"))
    torch.cuda.set_device(device)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of packages goes to stderr
    serve_script(torch, device, *arguments.values(), sys.stdin, answers)
