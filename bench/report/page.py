"""All results as one HTML page that needs nothing beside it, and its pictures as PNG."""
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
            ["during", "SM MHz", "most", "memory MHz", "W", "limit W", "°C"], clocks)))
    return "\n".join(parts + _machine(device))


def _machine(device) -> list:
    """What of others was used, and what held the clocks down."""
    parts = []
    peers = [[one["name"], one["version"], one["place"], one["file"], run["file"]]
             for run in device.runs for one in run.get("peers", [])]
    if peers:
        parts.append(folded("Other libraries, and where they were found", table(
            ["library", "version", "place", "path", "file"], peers)))
    watched = [row for row, _ in device.latest.values() if "gpu_readings" in row]
    if watched:
        capped = {cause: sum(row[f"{cause}_capped"] > 0.5 for row in watched) for cause in ("power", "heat")}
        parts.append(f"<p>The clocks were watched in {len(watched)} rows; for most of the time power held them down in "
                     f"{capped['power']}, heat in {capped['heat']}.</p>")
        parts.append(tables.clocks(device))
    return parts


def _gap_list(device) -> str:
    return "<h3>Not here</h3>\n<ul>" + "".join(f"<li>{escape(gap)}</li>" for gap in missing.of(device)) + "</ul>"


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
            self._chart("ratio", "Against the peer", charts.ratio(device),
                        "Above 1 mpcore is faster. Both took turns in one process.",
                        "No peer was there, so there is no ratio."),
            self._chart("ratio_best", "Against the best of the peer's choices", charts.ratio_best(device),
                        "cuBLASLt's heuristic names 8 algorithms, that of cuDNN's graph API 8 engines; the fastest, found by timing. The chart "
                        "before this has its first choice, which is what programs run.",
                        "No best of 8: neither cuBLASLt nor cuDNN was there."),
            self._chart("roofline", "Roofline", charts.roofline(device),
                        "Roofs: the rate at which the tensor cores take instructions and of a pass that reads, where they "
                        "were measured; else of large squares and of a copy. What stays in the cache may lie above "
                        "the slope.", "No GEMM or convolution was measured."),
            self._chart("peak", "Percent of the peak", charts.peak(device),
                        f"100 % is what large squares reached in the same run"
                        f"{': ' + device.newest['peak_from'] if 'peak_from' in device.newest else ''}.",
                        "No peak was measured."),
            self._chart("mixed", "Mixed precision against FP32, for every row of DeepBench",
                        charts.mixed(device, self._published("gemm", "conv")),
                        f"Grey: Baidu's published times on a {published.V100.split(',')[0]} with cuBLAS and cuDNN of "
                        "2019, FP32 / mixed. Blue: the FP32 time measured here / the time of mpcore; orange: the same "
                        "against TF32. Shaded: the 2 to 6 times of the papers.",
                        "", tables.mixed(device, self._published("gemm", "conv"))),
            self._chart("recurrent", "Recurrent layers of DeepBench",
                        charts.mixed(device, self._published("rnn_layer")),
                        f"Grey: Baidu's published times on a {published.V100.split(',')[0]}, FP32 / mixed, of cuDNN's "
                        "layers. Blue and orange: of the layers here.",
                        "", tables.mixed(device, self._published("rnn_layer"))),
            self._chart("over_products", "Recurrent layers against their GEMMs", charts.over_products(device),
                        "Time of a pass of a layer / time of its GEMMs alone, one after the other: what the cells between "
                        "them add.", "No whole recurrent layer was measured.", tables.recurrent(device)),
            self._chart("step", "The step against a copy", charts.step(device),
                        "100 % moves its least bytes as fast as a copy moves as many.", "The step was not measured."),
            self._chart("prediction", "Predicted and measured time", charts.prediction(device),
                        "On the line the cost model that chooses kernels is right.",
                        "No predicted time in these results."),
            self._chart("prediction_by_family", "Predicted / measured, by family of kernels",
                        charts.prediction_by_family(device),
                        "Grey: the rows; blue: the middle half of them; orange: the median. mptune fits the constants "
                        "to what it measures.",
                        "No predicted time in these results.", tables.prediction(device)),
            self._chart("calls", "What a call costs the host", charts.calls(device),
                        "Until the call returns. On the host target only what enqueues nothing is timed.",
                        "Calls were not timed (mpbench calls).", tables.calls(device)),
            self._chart("startup", "Start-up", charts.startup(device),
                        "From dlopen to the first result of a process: load, context, memory, first, together "
                        "\"total\"; \"second\" is the same call once more.",
                        "Start-up was not timed (mpbench startup).", tables.startup(device)),
            self._chart("autocast", "Rewrites of graphs for mixed precision", charts.autocast(device),
                        "mp_autocast_rewrite, on the host whatever the device, with no peer. On a line of slope 1 a node "
                        "costs the same in every graph; the thin one goes through the row whose nodes cost least. Chain: "
                        "each node reads the one before it; random: any before it. Bytes: the most that the call has in "
                        "use.",
                        "Rewrites were not timed (mpbench autocast).", tables.autocast(device)),
            self._chart("allreduce", "All-reduce of gradients", charts.allreduce(device),
                        "2 (ranks - 1) / ranks times the bytes of one rank's gradients / time: what a link carries.",
                        "No all-reduce was timed: it needs two devices and NCCL.", tables.allreduce(device)),
            self._chart("change", "Since the previous result", charts.change(found),
                        "Each row against the result of this device before it; the largest changes. "
                        "Grey: the quartiles overlap.",
                        "There is no earlier result of this device.", tables.change(found)),
        ]
        return "\n".join([_head(device), _gap_list(device), tables.summaries(device), tables.worst(device),
                          tables.sustained(device), tables.graph(device), tables.peaks(device),
                          '<div class="charts">', *sections, "</div>", tables.all_rows(device)])


def write(runs: list, build, out: pathlib.Path) -> pathlib.Path:
    """@param build  build.Build
    @return the page; pictures lie beside it, and are in it."""
    out.mkdir(parents=True, exist_ok=True)
    theirs = published.read()
    devices = results.devices_of(results.without_samples(results.timed(runs)))
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
{counted_page.section(runs, out)}
{static.section(build)}
</body>
</html>
""", encoding="utf-8")
    return page
