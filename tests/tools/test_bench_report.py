"""Tests of the bench report: output of mpbench is valid, slowdowns are found, the page is
self-contained."""
import copy
import json
import pathlib
import re
import subprocess
import sys
import time

import pytest

pytest.importorskip("jsonschema", reason="the bench report (no jsonschema)")
from report import published, results, speed_page  # noqa: E402

RESULTS = results.BENCH / "results"
SAMPLE = RESULTS / "sample_host_1.json"
GPU = RESULTS / "h200_quick.json"


@pytest.fixture(scope="module")
def tool(root, run):
    """tool(argument..., code=0): output of tools/bench_report."""
    return lambda *arguments, code=0: run(sys.executable, root / "tools/bench_report", *arguments, code=code)


def read(path: pathlib.Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def sample() -> dict:
    return read(SAMPLE)


@pytest.fixture(scope="module")
def fresh(build, run, tmp_path_factory) -> pathlib.Path:
    """Results of a run on the host target."""
    file = tmp_path_factory.mktemp("fresh") / "fresh.json"
    run(build / "mpbench", "--quick", "--device", "host", "--peer", "none", "--json", file)
    return file


def write(path: pathlib.Path, run: dict) -> pathlib.Path:
    path.write_text(json.dumps(run), encoding="utf-8")
    return path


def slowed(run: dict, kernel: str, factor: float) -> dict:
    """The same run with `factor` times as long times of this kernel."""
    run = copy.deepcopy(run)
    for row in run["rows"]:
        if row.get("kernel") == kernel:
            for field in ("median_us", "q1_us", "q3_us"):
                row[field] *= factor
            for field in ("tflops", "gb_per_s", "percent_of_peak", "speedup_over_fp32"):
                row[field] /= factor
    return run


@pytest.mark.timing
def test_fresh_run(fresh, tool):
    tool("--check", fresh)
    run = json.loads(fresh.read_text())
    benches = {row["bench"] for row in run["rows"]}
    assert benches == {"gemm", "epilogue", "batched", "rnn", "rnn_layer", "conv", "layers", "step", "calls", "startup", "graph", *results.TRANSFORMERS}, "all suites are in it"
    twice = [key for key in results.keyed_rows(run) if key[2] > 1]
    assert not twice, "no two rows have one name"
    # Rows of layers continue those of older results, which have fewer fields.
    assert len(results.keyed_rows(run).keys() & results.keyed_rows(read(RESULTS / "h200_layers.json")).keys()) == 6
    products, layers = ([row for row in run["rows"] if row["bench"] == bench] for bench in ("rnn", "rnn_layer"))
    # Every pass is measured with and without cells, in the same types.
    assert [(row["shape"], results.types_of(row), row["flop"]) for row in layers] == [
        (row["shape"], results.types_of(row), row["flop"]) for row in products]
    assert {row["pass"] for row in layers} == {"fprop", "dgrad", "wgrad"}
    assert all((row["reserve_bytes"] > 0) == row["training"] == (row["set"] == "deepbench_rnn_train") for row in layers)
    assert not any("with_w_ih" in row or "peer" in row or "sustained" in row for row in run["rows"])
    steps = [row for row in run["rows"] if row["bench"] == "step"]
    assert {(row["tensors"], row["layout"]) for row in steps} == {(1, "one"), (100, "x100")}
    layers = [row for row in run["rows"] if row["bench"] in results.TRANSFORMERS]
    forms = ("full", "causal", "window", "packed", "layer", "layer+residual", "rms", "rms+residual", "labels", "swiglu", "geglu")
    # Both passes of every mask, kind of normalization and activation are measured.
    assert {(row["form"], row["pass"]) for row in layers} == {(form, one) for form in forms for one in ("forward", "backward")}
    assert all(("copy_gb_per_s" in row) == (row["bench"] == "norm") for row in layers)
    assert all(("time_over_products" in row) == (row["bench"] == "gated") for row in layers)
    calls = {(row["call"], row["problem"]) for row in run["rows"] if row["bench"] == "calls"}
    assert {("mp_gemm", "empty"), ("mp_gemm_workspace_size", "4096x4096x4096")} <= calls
    # Calls that execute device work on the host target are not timed.
    assert ("mp_gemm", "4096x4096x4096") not in calls
    assert any(note.startswith("calls: on the host target only calls") for note in run["notes"])
    startup = {row["phase"]: row["median_us"] for row in run["rows"] if row["bench"] == "startup"}
    assert set(startup) == {"load", "context", "memory", "first", "total", "second"}
    assert all(startup[phase] < startup["total"] for phase in ("load", "context", "memory", "first"))
    graphs = {(row["layers"], row["width"], row["batch"], row["dtype"]): row for row in run["rows"] if row["bench"] == "graph"}
    # Both networks have rows in fp32 and mixed precision; a row implies bit-identical results.
    assert set(graphs) == {(*shape, dtype) for shape in ((8, 32, 16), (4, 256, 128)) for dtype in ("fp16", "fp32")}
    for (layers, width, _, dtype), row in graphs.items():
        assert row["parameters"] == (layers + 1) * (width ** 2 + width)
        # Forward, gradients of weights, data and the last bias, the loss after its memset; in mixed
        # precision the cast of the input.
        assert row["launches"] == 3 * layers + 5 + (dtype == "fp16")
        # No limits for times: the test machine has other work.
        assert row["synchronous"] and "host" not in row and 0.5 < row["time_over_hand"] < 2


@pytest.mark.timing
def test_sustained(build, run, tool, tmp_path):
    """Each contestant runs alone if the option requests it."""
    file = tmp_path / "sustained.json"
    run(build / "mpbench", "gemm", "--device", "host", "--peer", "none", "--filter", "deepbench_infer_device", "--limit", "1",
        "--sustained", "0.02", "--json", file)
    tool("--check", file)
    row, = read(file)["rows"]
    alone = row["sustained"]
    assert alone["q1_us"] <= alone["median_us"] <= alone["q3_us"] and alone["batches"] >= 1
    assert alone["median_us"] > 0 and "peer_sustained" not in row


@pytest.mark.timing
def test_predictions(build, run, fresh, tmp_path):
    """mptune --predict selects the same kernels with the same times as the library in mpbench."""
    path = tmp_path / "predicted.json"
    run(build / "mptune", "--predict", "host", "--json", path)
    predicted = {(row["set"], row["shape"]): (row["kernel"], row["predicted_us"], row["flop"], row["min_bytes"])
                 for row in json.loads(path.read_text())["predictions"]}
    rows = [row for row in json.loads(fresh.read_text())["rows"]
            if row["bench"] in ("gemm", "rnn", "conv") and row["dtype"] == "fp16"]
    assert {row["bench"] for row in rows} == {"gemm", "rnn", "conv"}, "products were measured"
    for row in rows:
        own = (row["kernel"], row["predicted_us"], row["flop"], row["min_bytes"])
        seen = predicted.get((row["set"], row["shape"]))
        assert seen == own, f"the prediction for {results.name_of(row)}"


@pytest.mark.timing
def test_killed_run(build, tool, tmp_path):
    """Results measured before a run was killed are saved."""
    file = tmp_path / "killed.json"
    # The first shape is quick on the host target, the others take minutes.
    bench = subprocess.Popen([build / "mpbench", "gemm", "--device", "host", "--filter", "deepbench", "--json", file],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while not file.exists() and bench.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    bench.kill(), bench.wait()
    tool("--check", file)  # a killed run has a valid file
    run = json.loads(file.read_text())
    assert run["rows"] and "interrupted" in run["notes"][-1], "it has rows and a note"


def test_committed_results(tool):
    tool("--check")


def add_host(run: dict, **fields):
    """Makes the first row of graph that of an asynchronous device."""
    row = run["rows"][0]
    times = {name: value for name, value in row.items() if name.endswith("_us") or name.startswith(("time_over", "batches", "calls"))}
    row.update(synchronous=False, host=times | fields)


@pytest.mark.parametrize("what, file, change, message", [
    ("a missing field", "sample_host_1", lambda run: run["rows"][0].pop("q1_us"), "rows[0]: 'q1_us' is a required property"),
    ("an unknown field", "sample_host_1", lambda run: run.update(extra=1), "'extra' was unexpected"),
    ("an unknown field of a row", "sample_host_1", lambda run: run["rows"][0].update(extra=1), "rows[0]: Unevaluated properties"),
    ("no number", "sample_host_1", lambda run: run["rows"][0].update(median_us=float("nan")), "NaN"),
    ("a bench that is none", "sample_host_1", lambda run: run["rows"][0].update(bench="fft"), "rows[0].bench: 'fft' is not one of"),
    ("a median outside the quartiles", "sample_host_1",
     lambda run: run["rows"][0].update(q1_us=2 * run["rows"][0]["q3_us"]), "not between the quartiles"),
    ("a rate that the time contradicts", "sample_host_1",
     lambda run: run["rows"][0].update(tflops=2 * run["rows"][0]["tflops"]), "tflops is"),
    ("a ratio without a peer", "sample_host_1", lambda run: run["rows"][0].update(ratio_to_peer=1), "without 'peer_median_us'"),
    ("a host result that is not called a sample", "sample_host_1", lambda run: run.pop("sample"), 'has no "sample"'),
    ("a layer that its GEMMs contradict", "h200_rnn",
     lambda run: run["rows"][-1].update(time_over_products=9), "time_over_products is 9, its times give"),
    ("a layer without its GEMMs", "h200_rnn",
     lambda run: run["rows"][-1].pop("products_median_us"), "'products_median_us' is a required property"),
    ("a torch that its times contradict", "h200_rnn",
     lambda run: run["rows"][-1]["with_w_ih"].update(ratio_to_torch=9), "ratio_to_torch is 9, its times give"),
    ("a graph without the same by hand", "sample_host_graph",
     lambda run: run["rows"][0].pop("by_hand_median_us"), "'by_hand_median_us' is a required property"),
    ("a graph that the times contradict", "sample_host_graph",
     lambda run: run["rows"][0].update(time_over_hand=2, time_over_hand_q3=3), "time_over_hand is 2, its times give"),
    ("a ratio outside its quartiles", "sample_host_graph",
     lambda run: run["rows"][0].update(time_over_hand_q1=3), "time_over_hand is not between its quartiles"),
    ("a time by hand outside its quartiles", "sample_host_graph",
     lambda run: run["rows"][0].update(by_hand_q3_us=1e-3), "the median is not between the quartiles"),
    ("a host that its times contradict", "sample_host_graph",
     lambda run: add_host(run, time_over_hand=2, time_over_hand_q3=3), "host: time_over_hand is 2, its times give"),
    ("separate host times though the calls are synchronous", "sample_host_graph",
     lambda run: [add_host(run), run["rows"][0].update(synchronous=True)], "host: is not allowed here"),
    ("host times missing though the calls are asynchronous", "sample_host_graph",
     lambda run: run["rows"][0].update(synchronous=False), "'host' is a required property"),
])
def test_invalid_results(tool, tmp_path, what, file, change, message):
    run = read(RESULTS / f"{file}.json")
    change(run)
    assert message in tool("--check", write(tmp_path / "broken.json", run), code=1), f"{what} is found"


@pytest.mark.parametrize("content", [b"", b"set,shape\n", b"\xff\xfe"], ids=["empty", "csv", "binary"])
def test_a_file_that_is_not_json(tool, tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    assert tool("--counts", tmp_path / "file", code=1) == f"{tmp_path}/file: must be JSON without NaN, as written by mpbench --json\n"


def test_compare(tool, sample, tmp_path):
    kernel = "gemv"
    own = [row for row in sample["rows"] if row.get("kernel") == kernel]
    others = [row for row in sample["rows"] if row.get("kernel") not in (kernel, None)]
    slow = write(tmp_path / "slow.json", slowed(sample, kernel, 1.5))
    assert own and others, "the sample has that kernel and others"
    said = tool("--compare", SAMPLE, slow, "--limit", "1.2", code=1)  # a slowed kernel is found
    # Only its rows are named.
    assert said.count("slower:") == len(own)
    assert all(f"slower: {row['set']} {row['shape']}" in said for row in own)
    tool("--compare", SAMPLE, slow, "--limit", "1.6")  # the limit is applied
    tool("--compare", slow, SAMPLE)  # a speedup is not a failure
    tool("--compare", SAMPLE, SAMPLE, "--limit", "1")  # an equal result is equal

    fewer = copy.deepcopy(sample)
    lost = fewer["rows"].pop(0)
    said = tool("--compare", SAMPLE, write(tmp_path / "fewer.json", fewer), code=None)
    assert f"missing: {lost['set']} {lost['shape']}" in said, "a missing row is listed"
    elsewhere = write(tmp_path / "elsewhere.json", sample | {"device": "another"})
    tool("--compare", SAMPLE, elsewhere, code=2)  # different devices are not compared


def test_figures(tool, tmp_path):
    tool("--figures", "--check")  # docs/on-a-gpu.md has the tables of the results
    own = tmp_path / "page.md"
    own.write_text(f"before\n{speed_page.START}\nold\n{speed_page.END}\nbehind\n", encoding="utf-8")
    said = tool("--figures", own, "--check", code=1)
    assert "page.md: differs from bench/results/" in said, "different tables are found"
    tool("--figures", own, SAMPLE)
    text = own.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{speed_page.START}\nNo GPU") and text.endswith(f"{speed_page.END}\nbehind\n")
    assert "|" not in text, "no table without results of a GPU"
    files = (SAMPLE, GPU, RESULTS / "h200_step.json")
    tool("--figures", own, *files)
    text = own.read_text(encoding="utf-8")
    # The results of a GPU appear as a table.
    assert all(part in text for part in ("**NVIDIA H200**", "\n| llm | ", "\n| scale_step adamw, "))
    assert "EPYC" not in text
    assert text.count(speed_page.START) == text.count(speed_page.END) == 1, "once"
    tool("--figures", own, "--check", *files)  # compares with the file
    own.write_text("nothing\n", encoding="utf-8")
    tool("--figures", own, code=1)
    assert own.read_text() == "nothing\n", "a file without the two lines is left alone"


def test_each_row_of_the_figures_has_one_commit_and_file(tool, tmp_path):
    """A commit before the last change of the row's kernels is marked."""
    commit, page = "mpcore 0.1.0, git {}, targets: host", tmp_path / "page.md"
    older = read(GPU) | {"date": "2026-01-01T00:00:00Z", "commit": commit.format("a" * 7)}
    newer = read(GPU) | {"date": "9999-01-02T00:00:00Z", "commit": commit.format("b" * 7)}
    newer["rows"] = [next(row for row in newer["rows"] if row["bench"] == "gemm" and row["set"] == "llm")]
    page.write_text(f"{speed_page.START}\n{speed_page.END}\n", encoding="utf-8")
    tool("--figures", page, write(tmp_path / "older.json", older), write(tmp_path / "newer.json", newer))
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert [row[1:3] for row in rows if row[0] in ("`older.json`", "`newer.json`")] == [
        ["2026-01-01", "aaaaaaa"], ["9999-01-02", "bbbbbbb"]]
    assert ["set", "shapes", "best of 8", "first choice"] in [row[:4] for row in rows]
    # A set measured at two commits has two rows.
    assert [row[-2:] for row in rows if row[0] == "llm"] == [
        ["aaaaaaa \\*", "`older.json`"], ["bbbbbbb", "`newer.json`"]]


@pytest.mark.timing
@pytest.mark.parametrize("of", ("deepbench_infer_device", "transformer", "deepbench_conv_infer_device"))
def test_tune(build, run, tool, tmp_path, of):
    """--tune appends measured kernels to a file; with this file nothing is measured again."""
    file, table = tmp_path / "tuned.json", tmp_path / "new" / "fastest.txt"

    def tuned(**env) -> tuple:
        """(row, lines of the table)"""
        run(build / "mpbench", "--tune", of, "--quick", "--limit", "1", "--device", "host", "--json", file, "--out", table,
            env=env)
        tool("--check", file)
        row, = read(file)["rows"]
        return row, table.read_text().splitlines()

    row, lines = tuned()
    assert [line.split()[::2][:2] for line in lines] == [["fastest", row["kernel"]]]
    assert read(file)["notes"][-1] == f"Measured kernels, appended to {table}: 1."
    table.write_text(f"# mine\n{lines[0]}")
    again, kept = tuned(MP_GEMM_TUNING=str(table))
    assert again["kernel"] == row["kernel"] and kept == ["# mine", *lines]
    if of == "deepbench_infer_device":
        table.write_text(f"{lines[0][:24]} simt_64x64x16\n")
        assert tuned(MP_GEMM_TUNING=str(table))[0]["kernel"] == "simt_64x64x16"


def test_below(tool, tmp_path):
    run = read(GPU)
    run["rows"] = run["rows"][:3]
    for row, ratio in zip(run["rows"], (0.8, 0.5, 0.9)):
        row.update(ratio_to_peer=ratio, **{f"peer_{field}": ratio * row[field] for field in
                                           ("median_us", "q1_us", "q3_us")})
    said = tool("--below", "0.85", write(tmp_path / "below.json", run))
    names = [results.name_of(row) for row in run["rows"]]
    places = [said.find(f"- {name} ") for name in names]
    assert "2 of 3 rows below 0.85" in said
    assert 0 < places[1] < places[0] and places[2] == -1, "rows below the ratio are listed, the slowest first"
    said = tool("--below", "0.85", SAMPLE)
    assert "no results of GPUs" in said, "no results without a GPU"


@pytest.mark.parametrize("is_estimated", [True, False])
def test_estimated_costs(tool, tmp_path, is_estimated):
    """Each report shows whether the constants of kernel selection were measured."""
    message, page = "The cost table of sm_90 is estimated", tmp_path / "page.md"
    path = write(tmp_path / "gpu.json", read(GPU) | {"estimated_costs": is_estimated})
    page.write_text(f"{speed_page.START}\n{speed_page.END}\n", encoding="utf-8")
    tool("--figures", page, path)
    assert (message in page.read_text(encoding="utf-8")) == is_estimated
    assert (message in tool("--below", "2", path)) == is_estimated


def test_published(sample):
    rows = published.read()
    names = {row.name for row in rows}
    sets = {name.split()[0] for name in names}
    # For recurrent layers the complete ones are published, not their GEMMs.
    own = {results.recurrent_layer(results.name_of(row)) if row["bench"] == "rnn" else results.name_of(row)
           for row in sample["rows"] if row.get("set") in sets}
    assert own and own <= names, "mpbench's names of DeepBench's rows are known"
    # 160 GEMMs, three passes of 94 convolutions without 10 data gradients, three of 53 layers.
    assert len(rows) == 160 + 3 * 94 - 10 + 3 * 53
    one = next(row for row in rows if row.name == "deepbench NN 16x1760x1760")
    assert (one.fp32_us, one.mixed_us, one.gflop) == (38, 20, pytest.approx(2e-9 * 16 * 1760 * 1760))
    flop = {results.recurrent_layer(results.name_of(row)) if row["bench"] == "rnn" else results.name_of(row): row["flop"]
            for row in sample["rows"] if row["bench"] in ("gemm", "conv", "rnn")}
    assert all(row.gflop == pytest.approx(1e-9 * flop[row.name]) for row in rows if row.name in flop)


@pytest.fixture(scope="module")
def page_of(tool, tmp_path_factory):
    """page_of(file...): the page of these results, and its folder."""
    pytest.importorskip("matplotlib", reason="the page of the bench report (no matplotlib)")

    def make(*files) -> tuple:
        out = tmp_path_factory.mktemp("page")
        tool("--out", out, *files)
        return (out / "index.html").read_text(encoding="utf-8").replace("<wbr>", ""), out
    return make


def cells_after(page: str, heading: str) -> list:
    """Returns the cells of the first table after a heading, without markup."""
    section = page[page.index(heading):].partition("</table>")[0]
    return [[re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", line)]
            for line in section.splitlines() if "<td" in line]


def test_page_of_samples(page_of):
    page, _ = page_of(*sorted(RESULTS.glob("sample_*.json")))
    # Samples are labeled, and suites without rows or peers are visible.
    assert "Sample, host target: does not predict the speed of a GPU" in page and "no results of GPUs" in page
    assert ["attention", *["0"] * 8] in cells_after(page, "<h3>Rows")
    assert all(row.name in page for row in published.read()), "all of DeepBench is there"
    assert all(heading in page for heading in ("<h3>Start-up", "All 8 calls"))
    # A table has the numbers of its rows.
    graphs = read(RESULTS / "sample_host_graph.json")["rows"]
    assert f"In {sum(row['time_over_hand'] <= 1.03 for row in graphs)} of 4 rows" in page
    hand = graphs[0]
    assert cells_after(page, "<h3>Graphs compared with calls by hand")[0] == [
        hand["network"], hand["dtype"], str(hand["launches"]), f"{hand['median_us']:.1f}", f"{hand['by_hand_median_us']:.1f}",
        *(f"{hand[f'time_over_hand{part}']:.3f}" for part in ("", "_q1", "_q3")), *5 * ["–"]]


def test_page_of_results(page_of):
    """The page without files shows bench/results/: its GPUs, and no samples of suites that they
    measured."""
    page, out = page_of()
    assert "NVIDIA H200" in page and "8192x8192x8192" in page
    assert "no results of GPUs" not in page and "Sample," not in page
    charts = ("ratio", "ratio_best", "roofline", "peak", "mixed", "prediction", "recurrent", "over_products")
    assert all((out / f"{name}_1.png").stat().st_size > 0 for name in charts)
    # Peaks, libraries and reasons of reduced clocks are listed.
    assert all(text in page for text in ("Peaks of the device", "Reference libraries", "rows limited by power", "libcudnn.so.9",
                                         "rows compared with the previous result"))
    row = next(row for row in read(RESULTS / "h200_layers.json")["rows"])
    assert [results.name_of(row), row["comment"], row["dtype"], f"{row['median_us']:.1f}"] in [
        cells[:4] for cells in cells_after(page, "All 16 layers")]
    assert not re.search(r"<script|<link|<img|@import|url\((?!#)", page), "the page is self-contained"
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert not {one for one in ids if ids.count(one) > 1 and f"#{one}" in page}, "no two pictures share an id that is referred to"


@pytest.mark.timing
def test_page_of_a_fresh_run(page_of, fresh, tmp_path):
    """Rows of transformers with several peers have a line for each; names are escaped."""
    run = read(fresh) | {"device": "made-up <device>"}
    norm = next(row for row in run["rows"] if row["bench"] == "norm")
    times = {f"peer_{part}_us": 2 * norm[f"{part}_us"] for part in ("median", "q1", "q3")} | {"ratio_to_peer": 2.0}
    norm.update(times, peer="first peer", peer_agrees=True, peer_deterministic=False, other_peers=[times | {"peer": "second peer"}])
    page, _ = page_of(write(tmp_path / "fresh.json", run))
    assert "made-up &lt;device&gt;" in page and "<device>" not in page
    lines = [cells for cells in cells_after(page, "layers of transformers") if cells[0] == results.name_of(norm)]
    assert [(cells[10], cells[12], cells[13]) for cells in lines] == [("first peer", "2.00", "no"), ("second peer", "2.00", "–")]
