"""Tables of docs/on-a-gpu.md, between two of its lines: the committed results of GPUs."""
import math
import pathlib
import re

from . import results, summary
from .markup import GAP, cell

START = "<!-- bench figures: written by tools/bench_report --figures -->"
END = "<!-- end of bench figures -->"
NONE = """\
No GPU has been measured: bench/results/ has no results of GPUs.
"""


# Kernels, layers and steps, and the date on which their code was last changed for speed.
CHANGED = {re.compile(names): date for names, date in (
    ("wgmma|conv_|not named", "2026-11-30"), ("rnn_", "2026-11-30"), ("gemv", "2026-11-27"),
    ("maxpool", "2026-11-29"), ("inspect|report", "2026-11-29"))}


class NoPlace(Exception):
    """The file lacks the two lines, or has them more than once or in another order."""


def _table(head: list, rows: list, numbers: range) -> str:
    lines = [head, ["---:" if i in numbers else "---" for i in range(len(head))], *rows] if rows else []
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def _part(title: str, table: str) -> str:
    return f"\n{title}\n\n{table}" if table else ""


def _commit(run: dict, names: list) -> str:
    """Returns the commit of a row, with a star if code of these names has changed since."""
    is_changed = any(run["date"] < date and any(map(pattern.search, names)) for pattern, date in CHANGED.items())
    return results.git_hash(run["commit"]) + (" \\*" if is_changed else "")


def _clocks(run: dict) -> str:
    clocks = [row["sm_mhz"] for row in run["rows"] if row.get("sm_mhz")]
    return " to ".join(dict.fromkeys(f"{clock:.0f}" for clock in (min(clocks), max(clocks)))) if clocks else GAP


def _command(run: dict) -> str:
    """Returns the command without the folder of the build and the name of the result file."""
    words = re.sub(r" --(?:json|device) \S+", "", run["command"]).split(" ", 1)
    return " ".join([words[0].rpartition("/")[2], *words[1:]])


def _runs(device) -> str:
    rows = [[f"`{run['file']}`", run["date"][:10], _commit(run, []), len(run["rows"]), _clocks(run), f"`{_command(run)}`"]
            for run in device.runs]
    return _table(["file", "date", "commit", "rows", "SM clock, MHz", "command"], rows, range(3, 5))


def _gemms_and_convs(device) -> str:
    rows = [[one.name, one.rows, cell(one.ratio_best, ".2f"), cell(one.ratio, ".2f"), one.slow,
             cell(one.percent_of_peak, ".0f%"), cell(one.speedup_fp32, ".2f"), cell(one.speedup_tf32, ".2f"),
             _commit(run, one.kernels), f"`{run['file']}`"] for run, one in summary.of_runs(device)]
    return _table(["set", "shapes", "best of 8", "first choice", f"below {summary.SLOW}", "of the peak", "FP32", "TF32",
                   "commit", "file"], rows, range(1, 8))


def _sustained(device) -> str:
    """Rows that were also measured alone, for seconds."""
    rows = []
    for run in device.runs:
        for row in device.rows_of(run, device.rows("gemm", "conv")):
            if "sustained" in row:
                rates = [1e-6 * row["flop"] / us for us in (
                    row["median_us"], row["sustained"]["median_us"],
                    row.get("peer_median_us", math.nan), row.get("peer_sustained", {}).get("median_us", math.nan))]
                rows.append([results.name_of(row), *(GAP if math.isnan(rate) else f"{rate:.0f}" for rate in rates),
                             _commit(run, [row["kernel"]]), f"`{run['file']}`"])
    return _table(["shape", "mpcore", "mpcore, sustained", "peer", "peer, sustained", "commit", "file"], rows, range(1, 5))


def _steps(device) -> str:
    """Rows of the largest size of each operation."""
    largest = {}
    for row in device.rows("step"):
        if row["op"] not in largest or row["parameters"] > largest[row["op"]]["parameters"]:
            largest[row["op"]] = row
    rows = [[results.name_of(row), cell(row["percent_of_copy"], ".0f%"), cell(row.get("ratio_to_peer"), ".2f"),
             _commit(run, [row["op"]]), f"`{run['file']}`"]
            for row in largest.values() for run in device.runs if device.rows_of(run, [row])]
    return _table(["step", "of a copy's rate", "torch", "commit", "file"], rows, range(1, 3))


def _layers(device) -> str:
    rows = [[results.name_of(row).removeprefix("layers "), cell(row["percent_of_copy"], ".0f%"),
             cell(row.get("ratio_to_peer"), ".2f"), _commit(run, [row["op"]]), f"`{run['file']}`"]
            for run in device.runs for row in device.rows_of(run, device.rows("layers"))]
    return _table(["layer", "of a copy's rate", "cuDNN", "commit", "file"], rows, range(1, 3))


def _device(device) -> str:
    drivers, cudas = (", ".join(dict.fromkeys(run[name] for run in device.runs)) for name in ("driver", "cuda"))
    costs = f" {device.estimated_costs}" if device.estimated_costs else ""
    return (f"**{device.name}**, driver {drivers}, CUDA {cudas}.{costs} Runs:\n\n{_runs(device)}" +
            _part("GEMM, convolution and recurrent layers, 16 bits:", _gemms_and_convs(device)) +
            _part("Sustained rates, TFLOPS:", _sustained(device)) +
            _part("Layers:", _layers(device)) +
            _part("Training step, at the largest size of each operation:", _steps(device)))


def figures(runs: list) -> str:
    """Returns the tables of all GPUs, without samples."""
    devices = results.devices_of([run for run in runs if run["target"] == "cuda"])
    return "\n".join(map(_device, devices)) or NONE


def updated(text: str, runs: list) -> str:
    """@raises NoPlace"""
    if text.count(START) != 1 or text.count(END) != 1 or text.index(END) < text.index(START):
        raise NoPlace(f'must contain the lines "{START}" and "{END}" once, in this order')
    before, rest = text.split(START)
    return f"{before}{START}\n{figures(runs)}{END}{rest.split(END)[1]}"


def write_or_check(path: pathlib.Path, runs: list, is_check: bool) -> int:
    """Returns the exit code: 1 if the file lacks the two lines, or if `is_check` and it differs."""
    old = path.read_text(encoding="utf-8")
    try:
        new = updated(old, runs)
    except NoPlace as error:
        print(f"{path}: {error}")
        return 1
    if is_check:
        state = "matches bench/results/" if new == old else \
            "differs from bench/results/; update it with tools/bench_report --figures"
        print(f"{path.name}: {state}")
        return int(new != old)
    if new != old:
        path.write_text(new, encoding="utf-8")
    return 0
