"""Baidu's published V100 times of DeepBench's training set, with mpbench's names of shapes.

Times of recurrent layers are those of cuDNN's complete layer.
"""
import csv
import dataclasses

from .results import BENCH, recurrent_layer

V100 = "V100, published"
FILE = BENCH / "report" / "deepbench_v100.csv"


@dataclasses.dataclass
class Published:
    name: str  # as results.name_of
    bench: str  # gemm, conv or rnn_layer
    part: str  # "GEMM", or a pass
    remark: str
    gflop: float
    fp32_us: float
    mixed_us: float

    @property
    def speedup(self) -> float:
        return self.fp32_us / self.mixed_us


def _gemm(shape: dict):
    """Their matrices are column-major: bench/shapes/shapes.h."""
    # The workbook prints 1530 for 1536, which DeepBench and mpbench run.
    is_misprint = shape["k"] == "1530"
    m, n, k = shape["n"], shape["m"], "1536" if is_misprint else shape["k"]
    name = f"deepbench {shape['b_t']}{shape['a_t']} {m}x{n}x{k}"
    return name, "printed with k = 1530" if is_misprint else ""


def _by(a: str, b: str) -> str:
    return a if a == b else f"{a}x{b}"


def _conv(step: str, shape: dict):
    return ("deepbench_conv {step} n{n} {h}x{w}x{c} k{k} {fh}x{fw} s{stride} p{pad}".format(
        step=step, stride=_by(shape["sh"], shape["sw"]), pad=_by(shape["ph"], shape["pw"]),
        **shape), "")


_PASSES = {"fwd": "fprop", "bwd_inputs": "dgrad", "bwd_weights": "wgrad"}


def _rnn(op: str, step: str, shape: dict):
    cell, name = op.removeprefix("rnn_"), _PASSES[step]
    layer = "deepbench_rnn_train {} {} h{hidden} n{batch} t{timesteps}".format(name, cell, **shape)
    return recurrent_layer(layer), "", name


def read() -> list:
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines()
             if not line.startswith("#")]
    rows = []
    for line in csv.DictReader(lines):
        shape = dict(field.split("=") for field in line["shape"].split())
        op = line["op"]
        bench = op if op in ("gemm", "conv") else "rnn_layer"
        if bench == "gemm":
            name, remark, part = *_gemm(shape), "GEMM"
        elif bench == "conv":
            name, remark, part = *_conv(line["pass"], shape), line["pass"]
        else:
            name, remark, part = _rnn(op, line["pass"], shape)
        mixed_us = 1e3 * float(line["mixed_ms"])
        rows.append(Published(name=name, bench=bench, part=part, remark=remark, fp32_us=1e3 * float(line["fp32_ms"]),
                              mixed_us=mixed_us,
                              gflop=1e-3 * float(line["mixed_tflops"]) * mixed_us))
    return rows
