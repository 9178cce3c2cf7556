"""The pictures, each a matplotlib figure as wide as a phone, or None where there is nothing to draw."""
import io
import re
import textwrap

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

from . import published, results  # noqa: E402

# After Okabe and Ito, whose colours people with colour blindness can tell apart: those that show on
# white and on black, the blue a little lighter.
BLUE, ORANGE, GREEN, PINK, YELLOW = "#2b87c8", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
GREY = "#8a8a8a"
# Stands for the colour of the text around the picture, light or dark.
_INK = "#010203"
_PHONE = (5.0, 3.4)  # inches; 1 inch is 72 CSS pixels in the SVG
_LINE = 0.17  # of small text

pyplot.rcParams.update({
    "svg.fonttype": "none",
    "font.size": 10.5,
    "font.family": "sans-serif",
    "text.color": _INK, "axes.labelcolor": _INK, "axes.edgecolor": _INK,
    "xtick.color": _INK, "ytick.color": _INK,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#808080", "grid.alpha": 0.3, "grid.linewidth": 0.6,
    "legend.frameon": False, "legend.fontsize": 9,
    "figure.constrained_layout.use": True,
})


def svg(figure, name: str) -> str:
    """For inlining: takes the width it is given and the colour of the text around it."""
    # The ids in it follow from this name, so that they are the same every time and no two
    # pictures of a page share one.
    with pyplot.rc_context({"svg.hashsalt": name}):
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", text[text.index("<svg"):], count=1)
    text = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace(_INK, "currentColor").replace("<svg ", '<svg role="img" ', 1)


def png(figure, path):
    figure.savefig(path, dpi=160, facecolor="white")


def _products(device):
    """16-bit rows of GEMM and convolution; FP32 is what they are compared with."""
    return [row for row in device.rows("gemm", "conv") if row["dtype"] != "fp32"]


def _group(row: dict) -> str:
    """What shares a colour."""
    return f"{row['set']} {row['shape'].split()[0]}" if row["bench"] == "gemm" else \
        f"{row['set']} {row['pass']}"


def _scatter(axes, rows: list, x, y):
    colours = (BLUE, ORANGE, GREEN, PINK, YELLOW)
    for index, group in enumerate(sorted({_group(row) for row in rows})):
        own = [row for row in rows if _group(row) == group]
        axes.scatter([x(row) for row in own], [y(row) for row in own], s=22, alpha=0.85,
                     color=colours[index % len(colours)],
                     marker="o^sDv"[index // len(colours) % 5], label=group, linewidths=0)


def _legend(axes):
    """Above the axes, where it hides no point."""
    columns = 2
    lines = -(-len(axes.get_legend_handles_labels()[0]) // columns)
    axes.figure.set_figheight(_PHONE[1] + _LINE * lines)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=columns, handletextpad=0.2,
                columnspacing=0.9)


def _bars(labels: list, values: list, colours, label: str):
    lines = sum(text.count("\n") + 1 for text in labels)
    figure, axes = pyplot.subplots(figsize=(_PHONE[0], 1 + 1.3 * _LINE * lines))
    axes.barh(range(len(labels)), values, color=colours, height=0.7)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.grid(axis="y", visible=False)
    axes.margins(y=0.01)
    axes.set_xlabel(label)
    return figure, axes


def _over_gflop(rows: list, field: str, label: str, mark: float):
    rows = [row for row in rows if field in row]
    if not rows:
        return None
    figure, axes = pyplot.subplots(figsize=_PHONE)
    _scatter(axes, rows, lambda row: 1e-9 * row["flop"], lambda row: row[field])
    axes.axhline(mark, color=_INK, linewidth=1, dashes=(5, 4))
    axes.set(xscale="log", xlabel="GFLOP of the shape", ylabel=label)
    axes.set_ylim(bottom=0)
    _legend(axes)
    return figure


def ratio(device):
    return _over_gflop(_products(device), "ratio_to_peer", "peer time / mpcore time", 1)


def ceiling(device):
    return _over_gflop(_products(device), "percent_of_ceiling", "% of the rate of large squares",
                       100)


def roofline(device):
    rows = _products(device)
    if not rows:
        return None
    figure, axes = pyplot.subplots(figsize=_PHONE)
    _scatter(axes, rows, lambda row: row["flop"] / row["min_bytes"], lambda row: row["tflops"])
    top = max((run["ceiling_tflops"] for row, run in device.latest.values()
               if "ceiling_tflops" in run and row.get("dtype", "fp32") != "fp32"), default=None)
    copy = max((row["copy_gb_per_s"] for row in device.rows("step")), default=None)
    intensities = [row["flop"] / row["min_bytes"] for row in rows]
    ends = [min(intensities) / 2, max(intensities) * 2]
    if top and copy:
        ridge = 1e3 * top / copy
        left = min(ends[0], ridge / 2)
        axes.plot([left, ridge, max(ends[1], 2 * ridge)], [1e-3 * copy * left, top, top],
                  color=_INK, linewidth=1)
    elif top:
        axes.plot(ends, [top, top], color=_INK, linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="FLOP per byte, every operand once",
             ylabel="TFLOP/s")
    _legend(axes)
    return figure


def step(device):
    rows = device.rows("step")
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: (row["op"], row["layout"]), reverse=True)
    return _bars([results.name_of(row) for row in rows], [row["percent_of_copy"] for row in rows],
                 BLUE, "% of the rate of a copy")[0]


def mixed(device, theirs: list):
    rows = [(row, device.fp32_time(row)) for row in _products(device)]
    ours = [(1e-9 * row["flop"], fp32[0] / row["median_us"]) for row, fp32 in rows if fp32]
    figure, axes = pyplot.subplots(figsize=_PHONE)
    axes.scatter([row.gflop for row in theirs], [row.speedup for row in theirs], s=14, color=GREY,
                 alpha=0.6, linewidths=0, label=published.V100)
    if ours:
        axes.scatter([x for x, _ in ours], [y for _, y in ours], s=24, color=BLUE, linewidths=0,
                     label=f"mpcore, {device.name[:40]}")
    axes.axhline(1, color=_INK, linewidth=1, dashes=(5, 4))
    axes.set(xscale="log", yscale="log", xlabel="GFLOP of the shape",
             ylabel="FP32 time / mixed time")
    axes.yaxis.set_major_formatter("{x:g}")
    _legend(axes)
    return figure


def change(found: list):
    """The largest in both directions."""
    if not found:
        return None
    most = 10
    shown = found if len(found) <= 2 * most else found[:most] + found[-most:]
    shown = shown[::-1]
    figure, axes = _bars(["\n".join(textwrap.wrap(one.name, 30)) for one in shown],
                         [100 * (one.times_as_slow - 1) for one in shown],
                         [GREY if one.within_noise else ORANGE if one.times_as_slow > 1 else GREEN
                          for one in shown], "change of the time, %")
    axes.axvline(0, color=_INK, linewidth=1)
    return figure


def prediction(device):
    rows = [row for row in _products(device) if "predicted_us" in row]
    if not rows:
        return None
    figure, axes = pyplot.subplots(figsize=_PHONE)
    _scatter(axes, rows, lambda row: row["predicted_us"], lambda row: row["median_us"])
    times = [row[field] for row in rows for field in ("predicted_us", "median_us")]
    axes.plot([min(times), max(times)], [min(times), max(times)], color=_INK, linewidth=1,
              dashes=(5, 4))
    axes.set(xscale="log", yscale="log", xlabel="predicted, µs", ylabel="measured, µs")
    _legend(axes)
    return figure
