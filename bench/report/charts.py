"""Pictures of the report: matplotlib figures as wide as a phone, or None without data."""
import io
import re

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

from . import published, results, summary  # noqa: E402

# Palette of Okabe and Ito for readers with color vision deficiency: the colors that are visible on
# white and on black, with a slightly lighter blue.
BLUE, ORANGE, GREEN, PINK, YELLOW = "#2b87c8", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
GREY = "#8a8a8a"
# Replaced by the color of the text around the picture, light or dark.
_INK = "#010203"
_PHONE = (5.0, 3.4)  # inches; 1 inch is 72 CSS pixels in the SVG
_LINE = 0.17  # height of small text

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
    """Returns SVG to embed, with the width and text color of its surroundings."""
    # The ids derive from this name, so that they are reproducible and unique on a page.
    with pyplot.rc_context({"svg.hashsalt": name}):
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", text[text.index("<svg"):], count=1)
    text = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace(_INK, "currentColor").replace("<svg ", '<svg role="img" ', 1)


def png(figure, path):
    figure.savefig(path, dpi=160, facecolor="white")


def _scatter(axes, rows: list, x, y):
    """Each set has a color and a marker."""
    colours = (BLUE, ORANGE, GREEN, PINK, YELLOW)
    for index, name in enumerate(sorted({row["set"] for row in rows})):
        own = [row for row in rows if row["set"] == name]
        axes.scatter([x(row) for row in own], [y(row) for row in own], s=18, alpha=0.75,
                     color=colours[index % len(colours)],
                     marker="o^sDv"[index // len(colours) % 5], label=name, linewidths=0)


def _legend(axes):
    """Places the legend above the axes, where it hides no point."""
    columns = 2
    lines = -(-len(axes.get_legend_handles_labels()[0]) // columns)
    axes.figure.set_figheight(_PHONE[1] + _LINE * lines)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=columns, handletextpad=0.2,
                columnspacing=0.9)


def over_gflop(rows: list, field: str, label: str, mark: float):
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


def roofline(device):
    rows = summary.products(device)
    if not rows:
        return None
    figure, axes = pyplot.subplots(figsize=_PHONE)
    _scatter(axes, rows, lambda row: row["flop"] / row["min_bytes"], lambda row: row["tflops"])
    peaks = device.peaks
    issued = [peaks[name]["rate"] for name in ("wgmma", "mma.sync") if name in peaks]
    top = max(issued or (run["peak_tflops"] for row, run in device.latest.values()
                         if "peak_tflops" in run and row.get("dtype", "fp32") != "fp32"), default=None)
    memory = peaks["read"]["rate"] if "read" in peaks else \
        max((row["copy_gb_per_s"] for row in device.rows("step")), default=None)
    intensities = [row["flop"] / row["min_bytes"] for row in rows]
    ends = [min(intensities) / 2, max(intensities) * 2]
    if top and memory:
        ridge = 1e3 * top / memory
        left = min(ends[0], ridge / 2)
        axes.plot([left, ridge, max(ends[1], 2 * ridge)], [1e-3 * memory * left, top, top],
                  color=_INK, linewidth=1)
    elif top:
        axes.plot(ends, [top, top], color=_INK, linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="FLOP per byte, every operand once",
             ylabel="TFLOP/s")
    _legend(axes)
    return figure


# The papers' range: FP32 time / mixed time.
_PAPERS = (2, 6)


def mixed(device, theirs: list):
    """One panel per part, shapes in the order of their operations."""
    ours = {results.name_of(row): row for row in summary.gemms_and_convs(device) + summary.recurrent_layers(device)}
    panels = {}
    for row in theirs:
        panels.setdefault(row.part, []).append(row)
    figure, all_axes = pyplot.subplots(len(panels), figsize=(_PHONE[0], 0.6 + 1.7 * len(panels)), sharey=True)
    for axes, (part, rows) in zip(all_axes, panels.items()):
        rows.sort(key=lambda row: row.gflop)
        places = range(len(rows))
        axes.axhspan(*_PAPERS, color=GREY, alpha=0.15, linewidth=0)
        axes.axhline(1, color=_INK, linewidth=1, dashes=(5, 4))
        axes.scatter(places, [row.speedup for row in rows], s=10, color=GREY, linewidths=0, label=published.V100)
        for field, colour, marker, label in (("fp32", BLUE, "o", "FP32 / mpcore"),
                                             ("tf32", ORANGE, "^", "against TF32")):
            having = [(place, device.speedup(ours[row.name], field)) for place, row in zip(places, rows)
                      if row.name in ours]
            having = [(place, speedup) for place, speedup in having if speedup]
            if having:
                axes.scatter(*zip(*having), s=16, color=colour, marker=marker, linewidths=0, label=label)
        axes.set_title(f"{part}, {len(rows)} shapes by their operations", fontsize=9, loc="left")
        axes.set(yscale="log", xticks=[])
        axes.set_yticks([0.5, 1, 2, 4, 8], minor=False)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    figure.supylabel("FP32 (or TF32) time / mixed time", fontsize=10)
    handles = {label: handle for axes in all_axes
               for handle, label in zip(*axes.get_legend_handles_labels())}
    all_axes[0].legend(handles.values(), handles.keys(), loc="lower center", bbox_to_anchor=(0.5, 1.12),
                       ncols=len(handles), handletextpad=0.1, columnspacing=0.8)
    return figure


def prediction(device):
    rows = [row for row in summary.gemms_and_convs(device) if "predicted_us" in row]
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
