"""Stages and their steps, most valuable first.

The expected durations decide which steps start when little time is left.  Those of layouts and of
the quick benchmark were observed on an H200; the others are estimates.
"""
import functools
import pathlib
import sys

from . import experiments, sanitized
from .runner import Step

STAGES = {
    "layouts": "every hardware primitive, host compared with device",
    "experiments": "benches of changed kernels, compared with predictions: 12 minutes",
    "tests": "the tests on the CUDA target",
    "sanitize": "all tools of compute-sanitizer, on one test per kernel family",
    "bench": "all benchmark sets, as JSON",
    "profile": "ncu on the five slowest shapes of the benchmark",
    "tune": "measurement of a tuning table",
}

TIMED_STAGES = ("experiments", "bench", "profile", "tune")  # run alone
SHARED_STAGES = ("layouts", "tests")  # can share the GPU; compute-sanitizer requires exclusive use

# Cases of tests/conformance, which lists them too.  Each runs in its own process, so one that hangs
# or faults does not hide the others.
CONFORMANCE_CASES = (
    "conversions", "math", "shuffles", "reductions", "atomics", "early launches", "sorts", "maxima", "async copies", "vectors",
    "wmma", "mma", "barriers", "tma load", "tma store", "tma matrix", "tma stored maps", "im2col",
    "overlapping pixels", "im2col store", "multicast", "wgmma", "stmatrix")

# A fault on the device destroys the context of the process and fails all later tests, so the tests
# of the library run in several processes.  The last process runs the remaining tests.
TEST_GROUPS = ("gemm", "conv", "step", "scaler", "optimizer", "rnn", "layers")

NOT_HIDDEN = "~[.]"  # if tags are given, Catch2 also selects hidden tests

SANITIZER_TOOLS = {  # expected seconds
    "memcheck": 100,
    "racecheck": 200,
    "initcheck": 100,
    "synccheck": 100,
}

BENCH_STEPS = {  # arguments and expected seconds, most valuable first
    "quick": (("all", "--quick"), 300),
    "gemm llm": (("gemm", "--set", "llm"), 60),
    "epilogue": (("epilogue",), 40),
    "batched": (("batched",), 30),
    "layers": (("layers",), 40),
    "attention": (("attention",), 60),
    "norm": (("norm",), 30),
    "linear_xent": (("linear_xent",), 30),
    "gated": (("gated",), 20),
    "gemm deepbench": (("gemm", "--set", "deepbench"), 120),
    "conv resnet50": (("conv", "--set", "resnet50"), 100),
    "step": (("step",), 120),
    "conv deepbench": (("conv", "--set", "deepbench_conv"), 200),
    "calls": (("calls",), 30),
    "startup": (("startup",), 30),
    "gemm infer": (("gemm", "--set", "deepbench_infer"), 60),
    "conv infer": (("conv", "--set", "deepbench_conv_infer"), 100),
}

PROFILED = 5


def _layouts(build: str):
    for case in CONFORMANCE_CASES:
        yield Step("layouts", case, (f"{build}/tests/conformance", case), 4, 60, has_tally=True)


def _experiments(build: str, folder: pathlib.Path):
    # Decides about a persistent recurrent kernel: at most 2.2 us per step.  Its log has the times.
    yield Step("experiments", "16 grid barrier", (f"{build}/grid_barrier",), 2, 30)
    for experiment in experiments.read():
        path = folder / "experiments" / (experiment.name.replace(" ", "_") + ".json")
        yield Step("experiments", f"{experiment.row} {experiment.name}", experiment.command(f"{build}/mpbench", path),
                   experiments.SECONDS, 3 * experiments.SECONDS, verdict=functools.partial(experiment.verdict, path))


def _tests(build: str):
    mptests = f"{build}/tests/mptests"
    yield Step("tests", "C ABI", (f"{build}/tests/test_capi",), 20, 120, has_tally=True)
    yield Step("tests", "CUDA graph", (f"{build}/examples/cuda_graph",), 10, 60)
    for group in TEST_GROUPS:
        yield Step("tests", group, (mptests, f"[{group}]{NOT_HIDDEN}"), 30, 240, has_tally=True)
    rest = "".join(f"~[{group}]" for group in TEST_GROUPS)
    yield Step("tests", "other tests", (mptests, rest + NOT_HIDDEN), 30, 240, has_tally=True)


def _sanitize(build: str):
    for tool, seconds in SANITIZER_TOOLS.items():
        command = ("compute-sanitizer", "--tool", tool, "--error-exitcode", "1", "--print-limit", "20",
                   *(("--leak-check", "full") if tool == "memcheck" else ()),
                   f"{build}/tests/mptests", sanitized.test_spec())
        yield Step("sanitize", tool, command, seconds, 2 * seconds, programs=(f"{build}/tests/mptests",),
                   has_tally=True)


def _bench(build: str, folder: pathlib.Path):
    for name, (arguments, seconds) in BENCH_STEPS.items():
        json = folder / "bench" / (name.replace(" ", "_") + ".json")
        yield Step("bench", name, (f"{build}/mpbench", *arguments, "--device", "cuda", "--json", str(json)),
                   seconds, 4 * seconds)


def _profile(build: str, folder: pathlib.Path, tools: pathlib.Path):
    for place in range(1, PROFILED + 1):
        yield Step("profile", f"worst {place}",
                   (sys.executable, str(tools / "profile_worst"), build, "--results", str(folder / "bench"),
                    "--place", str(place), "--out", str(folder / "profile")),
                   40, 120, programs=("ncu", f"{build}/mpbench"))


def steps(build: str, folder: pathlib.Path, tools: pathlib.Path):
    """Returns all steps, grouped by stage."""
    return [
        *_layouts(build),
        *_experiments(build, folder),
        *_tests(build),
        *_sanitize(build),
        *_bench(build, folder),
        *_profile(build, folder, tools),
        Step("tune", "mptune", (f"{build}/mptune", "--device", "cuda", "--out", str(folder / "tuning.txt"),
                                "--json", str(folder / "tuning.json")), 120, 400),
        Step("tune", "fastest kernels", (f"{build}/mpbench", "--tune", "llm", "--device", "cuda",
                                         "--out", str(folder / "fastest.txt"), "--json", str(folder / "fastest.json")),
             60, 240),
    ]
