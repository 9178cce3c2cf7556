"""All results as one HTML page that needs nothing beside it, and its pictures as PNG."""
import html
import pathlib

from . import charts, compare, kernels, published, results

# What no result can have yet, so that nobody looks for it.
NOT_MEASURED = (
    "mpbench does not measure: DeepBench's inference, recurrent and all-reduce sets; cuBLASLt beyond the "
    "heuristic's first choice; cuBLAS in FP32 and TF32 beside a 16-bit GEMM; the issue rate of mma and wgmma; "
    "a read-only pass over memory.")
STYLE = pathlib.Path(__file__).with_name("style.css")
GAP = "–"


def _escape(value) -> str:
    return html.escape(str(value))


def _is_number(text: str) -> bool:
    return text == GAP or text.replace(".", "").replace("%", "").replace("×", "").isdigit()


def _table(head: list, rows: list) -> str:
    """Cells are text; a column of numbers is set to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    classes = [' class="number"' if rows and all(_is_number(row[i]) for row in rows) else ""
               for i in range(len(head))]
    lines = ["<tr>" + "".join(f"<th{kind}>{_escape(cell)}</th>"
                              for cell, kind in zip(head, classes)) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td{kind}>{_escape(cell)}</td>"
                               for cell, kind in zip(row, classes)) + "</tr>" for row in rows]
    return '<div class="scroll"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{_escape(title)}</summary>\n{body}\n</details>"


def _figure(value, digits: int = 2) -> str:
    return GAP if value is None else f"{value:.{digits}f}"


def _time(us) -> str:
    return GAP if us is None else f"{us:.1f}"


def _percent(value) -> str:
    return GAP if value is None else f"{value:.1f} %".replace(" ", "")


# ---------------------------------------------------------------------------- what is missing

def gaps(device) -> list:
    """What a reader may look for and not find, by name."""
    found = []
    peers = {"gemm": "cuBLASLt", "conv": "cuDNN", "step": "torch (fused AdamW, GradScaler)"}
    for bench, peer in peers.items():
        rows = device.rows(bench)
        with_peer = [row for row in rows if "peer" in row]
        if not rows:
            found.append(f"{bench}: not measured.")
        elif not with_peer:
            found.append(f"{bench}: no peer. {peer} was not there: no ratio is given.")
        elif bench != "step" and len(with_peer) < len(rows):
            found.append(f"{bench}: {len(rows) - len(with_peer)} of {len(rows)} rows without a peer.")
        differing = [results.name_of(row) for row in with_peer if row.get("peer_agrees") is False]
        if differing:
            found.append(f"{bench}: results differ from the peer's, no ratio is given: {', '.join(differing)}.")
    products = device.rows("gemm", "conv")
    without_fp32 = [row for row in products if row["dtype"] != "fp32" and not device.fp32_time(row)]
    if without_fp32:
        found.append(f"{len(without_fp32)} products without an FP32 time; mpbench measures it beside convolutions "
                     "where cuDNN is there, and of GEMM with --dtype fp32.")
    if not any("rank" in row for row in products):
        found.append("No kernel was ranked (--rank).")
    if not device.rows("step"):
        found.append("No rate of a copy: the roofline has no slope.")
    if not any(run["clocks"] for run in device.runs):
        found.append("No clocks, power or temperature: NVML, which knows them, was not there.")
    return found + [note for run in device.runs for note in run["notes"]] + [NOT_MEASURED]


# ---------------------------------------------------------------------------- sections

def _head(device) -> str:
    runs = [[run["date"][:16].replace("T", " "), run["file"], run["driver"] or GAP, run["cuda"] or GAP,
             run["commit"], run["command"]] for run in device.runs]
    clocks = [[state["during"], *(GAP if state[field] is None else f"{state[field]:g}" for field in (
        "sm_mhz", "max_sm_mhz", "memory_mhz", "power_w", "power_limit_w", "temperature_c"))]
        for run in device.runs for state in run["clocks"]]
    parts = [f"<h2>{_escape(device.name + (', host target' if device.sample else ''))}</h2>"]
    if device.sample:
        parts.append(f'<p class="sample">Sample, {_escape(device.sample)}.</p>')
    parts.append(_folded("Runs, with driver, commit and command", _table(
        ["date, UTC", "file", "driver", "CUDA", "commit", "command"], runs)))
    if clocks:
        parts.append(_folded("Clocks", _table(
            ["during", "SM MHz", "most", "memory MHz", "W", "limit W", "°C"], clocks)))
    return "\n".join(parts)


def _gap_list(device) -> str:
    return "<h3>Not here</h3>\n<ul>" + "".join(f"<li>{_escape(gap)}</li>" for gap in gaps(device)) + "</ul>"


def _worst(device) -> str:
    field, rows = results.worst(device.rows("gemm", "conv"), 10)
    if not rows:
        return ""
    heading, label, shown = {
        "ratio_to_peer": ("ratio", "ratio to the peer", _figure),
        "percent_of_ceiling": ("% ceiling", "percent of the ceiling, as there is no peer", _percent)}[field]
    return f"<h3>The worst {len(rows)}, by {label}</h3>\n" + _table(
        ["shape", heading, "µs", "kernel", "types"],
        [[results.name_of(row), shown(row[field]), _time(row["median_us"]), row["kernel"], results.types_of(row)]
         for row in rows])


def _all_rows(device) -> str:
    products = [[results.name_of(row), row["comment"], results.types_of(row), row["kernel"],
                 _time(row["median_us"]), _time(row["q1_us"]), _time(row["q3_us"]),
                 f"{row['tflops']:.4g}", _percent(row.get("percent_of_ceiling")),
                 row.get("peer", GAP), _time(row.get("peer_median_us")), _figure(row.get("ratio_to_peer"))]
                for row in device.rows("gemm", "conv")]
    steps = [[results.name_of(row), str(row["tensors"]), _time(row["median_us"]), _time(row["q1_us"]),
              _time(row["q3_us"]), f"{row['gb_per_s']:.4g}", _percent(row["percent_of_copy"]),
              row.get("peer", GAP), _time(row.get("peer_median_us")), _figure(row.get("ratio_to_peer"))]
             for row in device.rows("step")]
    peer = ["peer", "peer µs", "ratio"]
    return _folded(f"All {len(products)} products", _table(
        ["shape", "", "types", "kernel", "µs", "q1", "q3", "TFLOP/s", "% ceiling", *peer], products)) + \
        _folded(f"All {len(steps)} steps", _table(
            ["operation", "tensors", "µs", "q1", "q3", "GB/s", "% copy", *peer], steps))


def _mixed_table(device, theirs: list) -> str:
    ours = {results.name_of(row): row for row in device.rows("gemm", "conv") if row["dtype"] != "fp32"}
    rows = []
    for row in theirs:
        own = ours.get(row.name)
        fp32 = device.fp32_time(own) if own else None
        rows.append([row.name + (f" ({row.remark})" if row.remark else ""),
                     _figure(row.speedup), _figure(fp32[0] / own["median_us"] if fp32 else None),
                     _time(row.fp32_us), _time(row.mixed_us),
                     _time(fp32[0] if fp32 else None), _time(own["median_us"] if own else None),
                     fp32[1] if fp32 else GAP])
    measured = sum(row.name in ours for row in theirs)
    return _folded(f"All {len(theirs)} rows of DeepBench's training set, {measured} of them measured here", _table(
        ["FP32 / mixed", "V100", "here", "V100 FP32 µs", "V100 mixed µs", "FP32 µs here", "mpcore mixed µs here",
         "FP32 here is"], rows))


def _change_table(found: list) -> str:
    return _folded(f"All {len(found)} rows in both", _table(
        ["row", "before µs", "now µs", "now / before", "quartiles", "kernel"],
        [[one.name, _time(one.old["median_us"]), _time(one.new["median_us"]), _figure(one.times_as_slow),
          "overlap" if one.within_noise else "apart", one.kernels] for one in found])) if found else ""


def _prediction_table(device) -> str:
    rows = [[results.name_of(row), row["kernel"], _time(row["predicted_us"]), _time(row["median_us"]),
             _figure(row["predicted_us"] / row["median_us"]),
             f"{row['rank']} of {row['rank_of']}" if "rank" in row else "not ranked",
             row.get("fastest_kernel", GAP),
             _figure(row["chosen_us"] / row["fastest_us"] if "rank" in row else None)]
            for row in device.rows("gemm", "conv")]
    return _folded("Predicted and measured, and the rank of the kernel that was fastest", _table(
        ["shape", "chosen kernel", "predicted µs", "measured µs", "predicted / measured",
         "place of the fastest", "fastest kernel", "chosen / fastest"], rows)) if rows else ""


def _kernels() -> str:
    known = kernels.read()
    sizes = ", ".join(f"{part} {size / 1e6:.1f} MB" for part, size in known.library_bytes.items())
    tables = [_folded(f"{arch}: {len(rows)} kernels", _table(["kernel", *known.head], rows))
              for arch, rows in known.by_arch.items()]
    return (f"<h2>Known without a GPU</h2>\n<p>What CUDA {_escape(known.toolkit)} made of each kernel: registers per "
            "thread, bytes of stack and shared memory, threads per block, and how many of the telling instructions "
            f"its code has. Machine code in libmpcore.so: {_escape(sizes)}. tools/kernel_report has these of a build, "
            "with occupancy and all instructions.</p>\n" + "\n".join(tables))


class _Device:
    """One device's part of the page."""

    def __init__(self, device, theirs: list, out: pathlib.Path, number: int):
        self.device, self.theirs, self.out, self.number = device, theirs, out, number

    def _chart(self, name: str, title: str, figure, says: str, without: str, table: str = "") -> str:
        head = f"<h3>{_escape(title)}</h3>\n"
        if figure is None:
            return f'<section class="gap">{head}<p class="faint">{_escape(without)}</p></section>'
        file = f"{name}_{self.number}.png"
        if self.device.sample:
            figure.suptitle("sample, host target: not a GPU", fontsize=9)
        charts.png(figure, self.out / file)
        picture = charts.svg(figure, file)
        charts.pyplot.close(figure)
        return (f"<section>{head}<figure>{picture}<figcaption>{_escape(says)}</figcaption></figure>"
                f"{table}</section>")

    def text(self) -> str:
        device = self.device
        previous = {key: row for key, (row, _) in device.previous.items()}
        latest = {key: row for key, (row, _) in device.latest.items()}
        found = compare.changes(previous, latest)
        sections = [
            self._chart("ratio", "Against the peer", charts.ratio(device),
                        "Above 1 mpcore is faster. Both took turns in one process.",
                        "No peer was there, so there is no ratio."),
            self._chart("roofline", "Roofline", charts.roofline(device),
                        "Roofs: the best rate of large squares, and of a copy on the device, both of these runs. "
                        "What stays in the cache may lie above the slope.", "No product was measured."),
            self._chart("ceiling", "Percent of the ceiling", charts.ceiling(device),
                        f"100 % is what large squares reached in the same run"
                        f"{': ' + device.newest['ceiling_from'] if 'ceiling_from' in device.newest else ''}.",
                        "No ceiling was measured."),
            self._chart("mixed", "Mixed precision against FP32", charts.mixed(device, self.theirs),
                        f"DeepBench's training set. Grey: Baidu's published times on a {published.V100.split(',')[0]} "
                        "with cuBLAS and cuDNN of 2019. Blue: the FP32 time measured here / the time of mpcore.",
                        "", _mixed_table(device, self.theirs)),
            self._chart("step", "The step against a copy", charts.step(device),
                        "100 % moves its least bytes as fast as a copy moves as many.", "The step was not measured."),
            self._chart("prediction", "Predicted and measured time", charts.prediction(device),
                        "On the line the cost model that chooses kernels is right.",
                        "No predicted time in these results.", _prediction_table(device)),
            self._chart("change", "Since the previous result", charts.change(found),
                        "Each row against the result of this device before it; the largest changes. "
                        "Grey: the quartiles overlap.",
                        "There is no earlier result of this device.", _change_table(found)),
        ]
        return "\n".join([_head(device), _gap_list(device), _worst(device), '<div class="charts">', *sections,
                          "</div>", _all_rows(device)])


def write(runs: list, out: pathlib.Path) -> pathlib.Path:
    """@return the page; pictures lie beside it, and are in it."""
    out.mkdir(parents=True, exist_ok=True)
    theirs = published.read()
    devices = results.devices_of(results.without_samples(runs))
    parts = [_Device(device, theirs, out, number).text() for number, device in enumerate(devices, 1)]
    has_gpu = any(device.sample is None for device in devices)
    lead = "Ratios can be compared between machines, times cannot." if has_gpu else \
        "No result of a GPU is here: mpcore claims no GPU figure. What follows shows how the report looks."
    page = out / "index.html"
    page.write_text(f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>mpcore: bench report</title>
<style>
{STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<h1>mpcore: bench report</h1>
<p{'' if has_gpu else ' class="sample"'}>{lead}</p>
<p class="faint">How it was measured: bench/README.md.</p>
{chr(10).join(parts)}
{_kernels()}
</body>
</html>
""", encoding="utf-8")
    return page
