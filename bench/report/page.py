"""All results as one self-contained HTML page, and its pictures as PNG."""
import pathlib

from . import charts, published, results, summary, tables
from .markup import escape, folded, table

STYLE = pathlib.Path(__file__).with_name("style.css")
V100 = f"Baidu's published times on a {published.V100.split(',')[0]} with cuBLAS and cuDNN of 2019, FP32 / mixed"


def _head(device) -> str:
    def columns(*fields) -> list:
        return [(heading, field, "") for heading, field in fields]

    def parts(field: str) -> list:
        return [one | {"run": run["file"]} for run in device.runs for one in run.get(field, ())]

    notes = dict.fromkeys(note for run in device.runs for note in run["notes"])
    missing = dict.fromkeys(f"Peak, {peak['name']}: {peak['how']}." for peak in parts("peaks") if peak["name"] not in device.peaks)
    lists = [("Runs, with driver, commit and command", columns(
                 ("date, UTC", "date"), ("file", "file"), ("driver", "driver"), ("CUDA", "cuda"), ("commit", "commit"),
                 ("command", "command")), device.runs),
             ("Clocks", columns(
                 ("during", "during"), ("SM MHz", "sm_mhz"), ("max", "max_sm_mhz"), ("memory MHz", "memory_mhz"), ("W", "power_w"),
                 ("limit W", "power_limit_w"), ("°C", "temperature_c")), parts("clocks")),
             ("Reference libraries", columns(
                 ("library", "name"), ("version", "version"), ("found in", "place"), ("path", "file"), ("run", "run")), parts("peers"))]
    return "\n".join([
        f"<h2>{escape(device.name + (', host target' if device.sample else ''))}</h2>",
        f'<p class="sample">Sample, {escape(device.sample)}.</p>' if device.sample else "",
        f"<p>{escape(device.estimated_costs)}</p>" if device.estimated_costs else "",
        *(folded(title, table(head, rows)) for title, head, rows in lists if rows),
        tables.clocks(device), tables.suites(device),
        "<h3>Notes</h3>\n<ul>" + "".join(f"<li>{escape(note)}</li>" for note in {**missing, **notes}) + "</ul>"])


def _charts(device, theirs: list) -> list:
    """Returns (name, title, picture or None, caption, table) of each section."""
    products = [row for row in theirs if row.bench != "rnn_layer"]
    layers = [row for row in theirs if row.bench == "rnn_layer"]
    peak = f": {device.newest['peak_from']}" if "peak_from" in device.newest else ""
    return [
        ("ratio", "Compared with the reference library", charts.over_gflop(
            summary.products(device), "ratio_to_peer", "time of the library / mpcore", 1),
         "Above 1, mpcore is faster. Both alternated in one process.", ""),
        ("ratio_best", "Compared with the library's best choice", charts.over_gflop(
            summary.products(device), "ratio_to_peer_best", "time of its best of 8 / mpcore", 1),
         "The fastest, by timing, of the first 8 algorithms of cuBLASLt's heuristic or the first 8 engines of cuDNN's graph API. "
         "The previous chart has the first choice, which programs usually run.", ""),
        ("roofline", "Roofline", charts.roofline(device),
         "Roofs: measured peaks of tensor cores and of reads; without them, the rates of large squares and of a copy. Data that "
         "stay in the cache may be above the slope.", ""),
        ("peak", "Percent of the peak", charts.over_gflop(
            summary.products(device), "percent_of_peak", "% of the rate of large squares", 100),
         f"100 % is the rate of large squares in the same run{peak}.", ""),
        ("mixed", "Mixed precision compared with FP32, for every row of DeepBench", charts.mixed(device, products),
         f"Grey: {V100}. Blue: the FP32 time of this device / the time of mpcore; orange: TF32. Shaded: the factor of 2 to 6 of "
         "the papers.", tables.mixed(device, products)),
        ("recurrent", "Recurrent layers of DeepBench", charts.mixed(device, layers),
         f"Grey: {V100}, of cuDNN's layers. Blue and orange: layers on this device.", tables.mixed(device, layers)),
        ("over_products", "Recurrent layers compared with their GEMMs", charts.over_gflop(
            summary.recurrent_layers(device), "time_over_products", "time of the layer / of its GEMMs", 1),
         "Time of a pass of a layer / time of its GEMMs alone, in sequence: the additional cost of the cells.",
         tables.recurrent(device)),
        ("prediction", "Predicted and measured time", charts.prediction(device),
         "On the line, the cost model that selects kernels is exact. mptune fits its constants to measurements.",
         tables.prediction(device))]


def _device(device, theirs: list, out: pathlib.Path, number: int) -> str:
    sections = []
    for name, title, figure, caption, text in _charts(device, theirs):
        if figure is None:
            continue
        file = f"{name}_{number}.png"
        if device.sample:
            figure.suptitle("sample, host target: not a GPU", fontsize=9)
        charts.png(figure, out / file)
        sections.append(f"<section><h3>{escape(title)}</h3>\n<figure>{charts.svg(figure, file)}"
                        f"<figcaption>{escape(caption)}</figcaption></figure>{text}</section>")
        charts.pyplot.close(figure)
    return "\n".join([_head(device), tables.summaries(device), tables.worst(device), tables.sustained(device),
                      tables.graph(device), tables.startup(device), tables.calls(device),
                      tables.change(device), tables.peaks(device),
                      '<div class="charts">', *sections, "</div>", tables.all_rows(device)])


def write(runs: list, out: pathlib.Path) -> pathlib.Path:
    """@return the page; it contains the pictures, which are also in its folder"""
    out.mkdir(parents=True, exist_ok=True)
    theirs = published.read()
    devices = results.devices_of(results.without_samples(results.timed(runs)))
    parts = [_device(device, theirs, out, number) for number, device in enumerate(devices, 1)]
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
</body>
</html>
""", encoding="utf-8")
    return page
