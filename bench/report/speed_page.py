"""The figures of docs/on-a-gpu.md, between two of its lines: whatever the committed results of GPUs say."""
import pathlib

from . import results, summary
from .markup import figure, percent

START = "<!-- bench figures: written by tools/bench_report --figures -->"
END = "<!-- end of bench figures -->"
NONE = """\
No GPU has been measured: bench/results/ has no result of one, and no figure of speed is claimed.
"""


class NoPlace(Exception):
    """The file has not the two lines, each once and in this order."""


def _line(cells: list) -> str:
    return "| " + " | ".join(map(str, cells)) + " |\n"


def _gemms_and_convs(device) -> str:
    found = summary.of_device(device)
    if not found:
        return ""
    text = "\n" + _line(["set", "shapes", "best of 8 / mpcore", "peer / mpcore", f"below {summary.SLOW}",
                         "of the peak", "FP32 / mpcore", "TF32 / mpcore", "commit"]) + "|---|" + 7 * "---:|" + "---|\n"
    for one in found:
        text += _line([one.name, one.rows, figure(one.ratio_best), figure(one.ratio), one.slow,
                       percent(one.percent_of_peak, 0), figure(one.speedup_fp32), figure(one.speedup_tf32),
                       one.commits])
    return text


def _steps(device) -> str:
    """At the largest size of each operation."""
    largest = {}
    for row in device.rows("step"):
        if row["op"] not in largest or row["parameters"] > largest[row["op"]]["parameters"]:
            largest[row["op"]] = row
    if not largest:
        return ""
    text = "\n" + _line(["step", "of a copy's rate", "peer / mpcore", "commit"]) + "|---|---:|---:|---|\n"
    return text + "".join(_line([results.name_of(row), percent(row["percent_of_copy"], 0),
                                 figure(row.get("ratio_to_peer")), device.commits([row])]) for row in largest.values())


def _device(device) -> str:
    files = ", ".join(f"`{run['file']}`" for run in device.runs)
    days = dict.fromkeys(run["date"][:10] for run in device.runs)
    drivers, cudas = (dict.fromkeys(run[name] for run in device.runs) for name in ("driver", "cuda"))
    return (f"**{device.name}**, {', '.join(days)}, driver {', '.join(drivers)}, CUDA {', '.join(cudas)}; {files}; each "
            "row names the commit that was measured. Times of the peer, FP32 and TF32 are divided by mpcore's, "
            "geometric means over the shapes; above 1 mpcore is faster. Best of 8: the fastest of the first eight choices of "
            "the peer's heuristic, as a program that tries them would have it; the column beside it takes the first." +
            (f" {device.estimated_costs}" if device.estimated_costs else "") + "\n" + _gemms_and_convs(device) + _steps(device))


def figures(runs: list) -> str:
    """Of GPUs; samples are none."""
    devices = results.devices_of([run for run in runs if run["target"] == "cuda"])
    return "\n".join(map(_device, devices)) or NONE


def updated(text: str, runs: list) -> str:
    """@raises NoPlace"""
    if text.count(START) != 1 or text.count(END) != 1 or text.index(END) < text.index(START):
        raise NoPlace(f'it has not the lines "{START}" and "{END}", once and in this order')
    before, rest = text.split(START)
    return f"{before}{START}\n{figures(runs)}{END}{rest.split(END)[1]}"


def write_or_check(path: pathlib.Path, runs: list, is_check: bool) -> int:
    """@return exit code: 1 where it has no place for figures, or `is_check` and they differ"""
    old = path.read_text(encoding="utf-8")
    try:
        new = updated(old, runs)
    except NoPlace as error:
        print(f"{path}: {error}")
        return 1
    if is_check:
        says = "the figures are those of the results" if new == old else \
            "the figures are not those of bench/results/: tools/bench_report --figures writes them"
        print(f"{path.name}: {says}")
        return int(new != old)
    if new != old:
        path.write_text(new, encoding="utf-8")
    return 0
