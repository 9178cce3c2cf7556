"""All results as one self-contained HTML page, and its pictures as PNG."""
import pathlib

from . import charts, compare, counted_page, missing, published, results, static, tables
from .markup import GAP, escape, folded, table

STYLE = pathlib.Path(__file__).with_name("style.css")


def _head(device) -> str:
    runs = [[run["date"][:16].replace("T", " "), run["file"], run["driver"] or GAP, run["cuda"] or GAP,
             run["commit"], run["command"]] for run in device.runs]
    clocks = [[state["during"], *(GAP if state[field] is None else f"{state[field]:g}" for field in (
        "sm_mhz", "max_sm_mhz", "memory_mhz", "power_w", "power_limit_w", "temperature_c"))]
        for run in device.runs for state in run["clocks"]]
    parts = [f"<h2>{escape(device.name + (', host target' if device.sample else ''))}</h2>"]
    if device.sample:
        parts.append(f'<p class="sample">Sample, {escape(device.sample)}.</p>')
    if device.estimated_costs:
        parts.append(f"<p>{escape(device.estimated_costs)}</p>")
    parts.append(folded("Runs, with driver, commit and command", table(
        ["date, UTC", "file", "driver", "CUDA", "commit", "command"], runs)))
    if clocks:
        parts.append(folded("Clocks", table(
            ["during", "SM MHz", "max", "memory MHz", "W", "limit W", "°C"], clocks)))
    return "\n".join(parts + _machine(device))


def _machine(device) -> list:
    """Reference libraries, and limits of the clocks."""
    parts = []
    peers = [[one["name"], one["version"], one["place"], one["file"], run["file"]]
             for run in device.runs for one in run.get("peers", [])]
    if peers:
        parts.append(folded("Reference libraries", table(
            ["library", "version", "found in", "path", "file"], peers)))
    watched = [row for row, _ in device.latest.values() if "gpu_readings" in row]
    if watched:
        capped = {cause: sum(row[f"{cause}_capped"] > 0.5 for row in watched) for cause in ("power", "heat")}
        parts.append(f"<p>Clocks were recorded in {len(watched)} rows. Power limited them most of the time in "
                     f"{capped['power']} rows, heat in {capped['heat']}.</p>")
        parts.append(tables.clocks(device))
    return parts


def _gap_list(device) -> str:
    return "<h3>Missing</h3>\n<ul>" + "".join(f"<li>{escape(gap)}</li>" for gap in missing.of(device)) + "</ul>"


class _Device:
    """One device's part of the page."""

    def __init__(self, device, theirs: list, out: pathlib.Path, number: int):
        self.device, self.theirs, self.out, self.number = device, theirs, out, number

    def _chart(self, name: str, title: str, figure, says: str, without: str, table: str = "") -> str:
        head = f"<h3>{escape(title)}</h3>\n"
        if figure is None:
            return f'<section class="gap">{head}<p class="faint">{escape(without)}</p></section>'
        file = f"{name}_{self.number}.png"
        if self.device.sample:
            figure.suptitle("sample, host target: not a GPU", fontsize=9)
        charts.png(figure, self.out / file)
        picture = charts.svg(figure, file)
        charts.pyplot.close(figure)
        return (f"<section>{head}<figure>{picture}<figcaption>{escape(says)}</figcaption></figure>"
                f"{table}</section>")

    def _published(self, *benches: str) -> list:
        return [row for row in self.theirs if row.bench in benches]

    def text(self) -> str:
        device = self.device
        previous = {key: row for key, (row, _) in device.previous.items()}
        latest = {key: row for key, (row, _) in device.latest.items()}
        found = compare.changes(previous, latest)
        sections = [
            self._chart("ratio", "Compared with the reference library", charts.ratio(device),
                        "Above 1, mpcore is faster. Both alternated in one process.",
                        "No reference library was found."),
            self._chart("ratio_best", "Compared with the library's best choice", charts.ratio_best(device),
                        "The fastest, by timing, of the first 8 algorithms of cuBLASLt's heuristic or the first 8 engines of cuDNN's "
                        "graph API. The previous chart has the first choice, which programs usually run.",
                        "No best of 8: neither cuBLASLt nor cuDNN was found."),
            self._chart("roofline", "Roofline", charts.roofline(device),
                        "Roofs: measured peaks of tensor cores and of reads; without them, the rates of large squares and "
                        "of a copy. Data that stay in the cache may be above the slope.", "No GEMM or convolution was measured."),
            self._chart("peak", "Percent of the peak", charts.peak(device),
                        f"100 % is the rate of large squares in the same run"
                        f"{': ' + device.newest['peak_from'] if 'peak_from' in device.newest else ''}.",
                        "No peak was measured."),
            self._chart("mixed", "Mixed precision compared with FP32, for every row of DeepBench",
                        charts.mixed(device, self._published("gemm", "conv")),
                        f"Grey: Baidu's published times on a {published.V100.split(',')[0]} with cuBLAS and cuDNN of "
                        "2019, FP32 / mixed. Blue: the FP32 time of this device / the time of mpcore; orange: TF32. Shaded: "
                        "the factor of 2 to 6 of the papers.",
                        "", tables.mixed(device, self._published("gemm", "conv"))),
            self._chart("recurrent", "Recurrent layers of DeepBench",
                        charts.mixed(device, self._published("rnn_layer")),
                        f"Grey: Baidu's published times on a {published.V100.split(',')[0]}, FP32 / mixed, of cuDNN's "
                        "layers. Blue and orange: layers on this device.",
                        "", tables.mixed(device, self._published("rnn_layer"))),
            self._chart("over_products", "Recurrent layers compared with their GEMMs", charts.over_products(device),
                        "Time of a pass of a layer / time of its GEMMs alone, in sequence: the additional cost of the cells.",
                        "No complete recurrent layer was measured.", tables.recurrent(device)),
            self._chart("step", "The step compared with a copy", charts.step(device),
                        "100 %: moves its minimum bytes as fast as a copy of equal size.", "The step was not measured."),
            self._chart("prediction", "Predicted and measured time", charts.prediction(device),
                        "On the line, the cost model that selects kernels is exact.",
                        "No predicted time in these results."),
            self._chart("prediction_by_family", "Predicted / measured, by kernel family",
                        charts.prediction_by_family(device),
                        "Grey: rows; blue: their middle half; orange: the median. mptune fits the constants to its "
                        "measurements.",
                        "No predicted time in these results.", tables.prediction(device)),
            self._chart("calls", "Host cost of calls", charts.calls(device),
                        "Time until the call returns. On the host target, only calls that enqueue nothing are timed.",
                        "Calls were not timed (mpbench calls).", tables.calls(device)),
            self._chart("startup", "Start-up", charts.startup(device),
                        "From dlopen to the first result of a process: load, context, memory, first, and their sum "
                        "\"total\"; \"second\" is the same call again.",
                        "Start-up was not timed (mpbench startup).", tables.startup(device)),
            self._chart("autocast", "Autocast rewrites of graphs", charts.autocast(device),
                        "mp_autocast_rewrite on the host. On a line of slope 1, the cost per node is constant; the thin line "
                        "passes through the lowest cost per node. Chain: each node reads the previous one; random: any "
                        "earlier one. Bytes: peak heap use of the call.",
                        "Autocast was not timed (mpbench autocast).", tables.autocast(device)),
            self._chart("allreduce", "All-reduce of gradients", charts.allreduce(device),
                        "2 (ranks - 1) / ranks times the bytes of one rank's gradients / time: the minimum traffic of a link.",
                        "No all-reduce was timed: it requires two devices and NCCL.", tables.allreduce(device)),
            self._chart("change", "Since the previous result", charts.change(found),
                        "Rows compared with the previous result of this device; the largest changes. "
                        "Grey: the quartiles overlap.",
                        "There is no previous result of this device.", tables.change(found)),
        ]
        return "\n".join([_head(device), _gap_list(device), tables.summaries(device), tables.worst(device),
                          tables.sustained(device), tables.graph(device), tables.peaks(device),
                          '<div class="charts">', *sections, "</div>", tables.all_rows(device)])


def write(runs: list, build, out: pathlib.Path) -> pathlib.Path:
    """@param build  build.Build
    @return the page; it contains the pictures, which are also in its folder"""
    out.mkdir(parents=True, exist_ok=True)
    theirs = published.read()
    devices = results.devices_of(results.without_samples(results.timed(runs)))
    parts = [_Device(device, theirs, out, number).text() for number, device in enumerate(devices, 1)]
    has_gpu = any(device.sample is None for device in devices)
    lead = "Ratios can be compared between machines, times cannot." if has_gpu else \
        "There are no results of GPUs. The samples below only show the report."
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
<p class="faint">Method: bench/README.md.</p>
{chr(10).join(parts)}
{counted_page.section(runs, out)}
{static.section(build)}
</body>
</html>
""", encoding="utf-8")
    return page
