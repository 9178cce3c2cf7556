"""Baidu's published V100 times of DeepBench's training set, with mpbench's names of shapes.

They follow the shapes of each line of bench/shapes/deepbench_*_train.csv, as FP32/mixed in ms for
each pass.
Source: github.com/baidu-research/DeepBench @ da81ba7, results/train/DeepBench_NV_V100.xlsx, sheets
"Results FP32" and "Results - FP16 ip, Mixed math" (16-bit inputs, FP32 sums).  Tesla V100 in DGX-1,
CUDA 10.1.243, cuDNN 7.6.2.24, driver 418.67.  Times of recurrent layers are those of cuDNN's
complete layer.
"""
import dataclasses
import itertools

from .results import BENCH, recurrent_layer

V100 = "V100, published"
PASSES = ("fprop", "dgrad", "wgrad")


@dataclasses.dataclass
class Published:
    name: str  # as results.name_of
    bench: str  # gemm, conv or rnn_layer
    part: str  # "GEMM", or a pass
    gflop: float
    fp32_us: float
    mixed_us: float

    @property
    def speedup(self) -> float:
        return self.fp32_us / self.mixed_us


def _gemm(_, line: dict) -> tuple:
    """Their matrices are column-major: bench/shapes/shapes.h."""
    m, n, k = int(line["n"]), int(line["m"]), int(line["k"])
    ops = "".join("NT"[int(line[operand])] for operand in ("b_t", "a_t"))
    return f"deepbench {ops} {m}x{n}x{k}", "GEMM", 2e-9 * m * n * k


def _conv(step: str, line: dict) -> tuple:
    def by(what: str) -> str:
        h, w = line[f"{what}_h"], line[f"{what}_w"]
        return h if h == w else f"{h}x{w}"

    size = {name: int(value) for name, value in line.items()}
    p, q = ((size[extent] + 2 * size[f"pad_{extent}"] - size[f"filter_{extent}"]) // size[f"stride_{extent}"] + 1
            for extent in "hw")
    name = "deepbench_conv {step} n{n} {h}x{w}x{c} k{k} {filter_h}x{filter_w} s{stride} p{pad}".format(
        step=step, stride=by("stride"), pad=by("pad"), **line)
    return name, step, 2e-9 * size["n"] * p * q * size["k"] * size["c"] * size["filter_h"] * size["filter_w"]


def _rnn(step: str, line: dict) -> tuple:
    gates = {"vanilla": 1, "lstm": 4, "gru": 3}[line["type"]]
    name = "deepbench_rnn_train {step} {type} h{hidden} n{batch} t{timesteps}".format(step=step, **line)
    return recurrent_layer(name), step, 2e-9 * gates * int(line["hidden"])**2 * int(line["batch"]) * int(line["timesteps"])


def read() -> list:
    rows = []
    for bench, passes, row_of in (("gemm", ("GEMM",), _gemm), ("conv", PASSES, _conv), ("rnn_layer", PASSES, _rnn)):
        path = BENCH / "shapes" / f"deepbench_{bench.partition('_')[0]}_train.csv"
        heading, *lines = (line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
        for line in lines:
            shape, _, times = line.partition("  # ")
            combinations = itertools.product(*(field.split("/") for field in shape.split(",")))
            for (values, step), fp32_and_mixed in zip(itertools.product(combinations, passes), times.split()):
                if fp32_and_mixed != "-":
                    fp32, mixed = map(float, fp32_and_mixed.split("/"))
                    name, part, gflop = row_of(step, dict(zip(heading.split(","), values)))
                    rows.append(Published(name, bench, part, gflop, 1e3 * fp32, 1e3 * mixed))
    return rows
