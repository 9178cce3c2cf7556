"""Tests of the bench report: output of mpbench is valid, slowdowns are found, the page is
self-contained."""
import copy
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("jsonschema", reason="the bench report (no jsonschema)")
from report import injected, kernels, published, results, speed_page  # noqa: E402

SAMPLE = results.BENCH / "results" / "sample_host_1.json"
REWRITES = results.BENCH / "results" / "sample_host_autocast.json"
GRAPHS = results.BENCH / "results" / "sample_host_graph.json"


@pytest.fixture(scope="module")
def tool(root, run):
    """tool(argument..., code=0): output of tools/bench_report."""
    return lambda *arguments, code=0: run(sys.executable, root / "tools/bench_report", *arguments, code=code)


@pytest.fixture
def sample() -> dict:
    return json.loads(SAMPLE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def fresh(build, run, tmp_path_factory) -> pathlib.Path:
    """Results of a run on the host target."""
    file = tmp_path_factory.mktemp("fresh") / "fresh.json"
    run(build / "mpbench", "--quick", "--device", "host", "--peer", "none", "--json", file)
    return file


@pytest.fixture(scope="module")
def made_up_gpu(build, run, tmp_path_factory):
    """made_up_gpu(seed): the fields of a run on a GPU that the host target lacks, with synthetic
    values."""
    path = tmp_path_factory.mktemp("predicted") / "sm_90.json"
    run(build / "mptune", "--predict", "sm_90", "--json", path)
    return lambda seed: injected.run(json.loads(path.read_text())["predictions"], seed)


def write(path: pathlib.Path, run: dict) -> pathlib.Path:
    path.write_text(json.dumps(run), encoding="utf-8")
    return path


def recurrent_layer(run: dict, ratio_to_torch=3, **fields) -> dict:
    """The complete layer for GEMMs in the run, twice as slow as they; fields may be wrong."""
    row = next(row for row in run["rows"] if row["bench"] == "rnn")
    row = {key: value for key, value in row.items() if not key.startswith(("gemm", "predicted_us"))}
    beside = {"what": "forward", "torch": "torch", "ratio_to_torch": ratio_to_torch} | {
        f"{whose}_{field}": us for whose, us in (("mpcore", 1), ("torch", 3)) for field in ("median_us", "q1_us", "q3_us")}
    row |= {"bench": "rnn_layer", "training": True, "reserve_bytes": 1, "time_over_products": 2, "with_w_ih": beside,
            **{f"products_{field}": row[field] / 2 for field in ("median_us", "q1_us", "q3_us")}, **fields}
    return {key: value for key, value in row.items() if value is not None}


def rewrite(**fields) -> dict:
    """A row of autocast; fields may be wrong."""
    return injected.rewrite("chain", 1000, 200) | fields


def graph(**fields) -> dict:
    """A row of graph without the fields that are None; fields may be wrong."""
    return {key: value for key, value in (injected.graph(100, 1.01) | fields).items() if value is not None}


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
    assert benches == {"gemm", "epilogue", "batched", "rnn", "rnn_layer", "conv", "layers", "step", "calls", "startup", "autocast", "graph", "allreduce", *results.TRANSFORMERS}, "all suites are in it"
    twice = [key for key in results.keyed_rows(run) if key[2] > 1]
    assert not twice, "no two rows have one name"
    products = [row for row in run["rows"] if row["bench"] == "rnn"]
    layers = [row for row in run["rows"] if row["bench"] == "rnn_layer"]
    gates = {"vanilla": 1, "lstm": 4, "gru": 3}
    # A pass of a recurrent layer counts DeepBench's operations.
    assert all(row["flop"] == 2 * gates[row["cell"]] * row["hidden"] ** 2 * row["batch"] * row["timesteps"]
               for row in products + layers)
    # Every pass is measured with and without cells, in the same types.
    assert [row["shape"] for row in layers] == [row["shape"] for row in products]
    assert [results.types_of(row) for row in layers] == [results.types_of(row) for row in products]
    assert {row["pass"] for row in layers} == {"fprop", "dgrad", "wgrad"}
    assert all((row["reserve_bytes"] > 0) == row["training"] == (row["set"] == "deepbench_rnn_train") for row in layers)
    assert not any("with_w_ih" in row or "peer" in row for row in layers), "rows without a peer have no peer times"
    steps = [row for row in run["rows"] if row["bench"] == "step"]
    assert {row["tensors"] for row in steps} == {1, 100}, "the step is measured in 1 and 100 tensors"
    layers = [row for row in run["rows"] if row["bench"] in results.TRANSFORMERS]
    forms = ("full", "causal", "window", "packed", "layer", "layer+residual", "rms", "rms+residual", "labels", "swiglu", "geglu")
    # Both passes of every mask, kind of normalization and activation are measured.
    assert {(row["form"], row["pass"]) for row in layers} == {(form, one) for form in forms for one in ("forward", "backward")}
    assert all(("copy_gb_per_s" in row) == (row["bench"] == "norm") for row in layers)
    assert all(("time_over_products" in row) == (row["bench"] == "gated") for row in layers)
    calls = {(row["call"], row["problem"]): row["median_us"] for row in run["rows"] if row["bench"] == "calls"}
    # Argument checks and kernel selection of mp_gemm are timed.
    assert ("mp_gemm", "empty") in calls
    assert ("mp_gemm_workspace_size", "4096x4096x4096") in calls
    # Calls that execute device work on the host target are not timed.
    assert ("mp_gemm", "4096x4096x4096") not in calls
    assert any(note.startswith("calls: on the host target only calls") for note in run["notes"])
    startup = {row["phase"]: row["median_us"] for row in run["rows"] if row["bench"] == "startup"}
    # Each phase of startup is present and shorter than the total.
    assert set(startup) == {"load", "context", "memory", "first", "total", "second"}
    assert all(startup[phase] < startup["total"] for phase in ("load", "context", "memory", "first"))
    assert all((row["tensors"] == 1) == (row["layout"] == "one") for row in steps), "a layout has its name"
    rewrites = [row for row in run["rows"] if row["bench"] == "autocast"]
    # Both graphs are rewritten in a small and a large size.
    assert {(row["graph"], row["nodes"]) for row in rewrites} == {
        (graph, nodes) for graph in ("chain", "random") for nodes in (100, 100000)}
    assert all(0 < row["low_nodes"] < row["nodes"] and row["casts"] > 0 for row in rewrites), "some nodes are low"
    # The library's test has the same bounds for a million nodes.
    assert all(20 < row["bytes_per_node"] < 100 for row in rewrites)
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
    """Each contestant runs alone if the option requests it; on the host target only then."""
    file = tmp_path / "sustained.json"
    command = (build / "mpbench", "gemm", "--device", "host", "--peer", "none", "--filter", "deepbench_infer_device",
               "--limit", "1", "--json", file)
    for flags, seconds in ((("--sustained", "0.02"), 0.02), (("--sustained", "0"), None), ((), None)):
        run(*command, *flags)
        tool("--check", file)
        row, = json.loads(file.read_text())["rows"]
        assert ("sustained" in row) == (seconds is not None)
        if seconds:
            alone = row["sustained"]
            # The second half of the time is measured.
            lasted_us = alone["median_us"] * alone["batches"] * alone["calls_per_batch"]
            assert alone["q1_us"] <= alone["median_us"] <= alone["q3_us"] and alone["batches"] >= 1
            assert lasted_us > 0 and "peer_sustained" not in row


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


@pytest.mark.parametrize("what, change, message", [
    ("a missing field", lambda run: run["rows"][0].pop("q1_us"), "rows[0]: 'q1_us' is a required property"),
    ("an unknown field", lambda run: run.update(extra=1), "'extra' was unexpected"),
    ("an unknown field of a row", lambda run: run["rows"][0].update(extra=1), "rows[0]: Unevaluated properties"),
    ("no number", lambda run: run["rows"][0].update(median_us=float("nan")), "NaN"),
    ("a bench that is none", lambda run: run["rows"][0].update(bench="fft"), "rows[0].bench: 'fft' is not one of"),
    ("a median outside the quartiles", lambda run: run["rows"][0].update(q1_us=2 * run["rows"][0]["q3_us"]),
     "not between the quartiles"),
    ("a rate that the time contradicts", lambda run: run["rows"][0].update(tflops=2 * run["rows"][0]["tflops"]),
     "tflops is"),
    ("a layer that its GEMMs contradict", lambda run: run["rows"].append(recurrent_layer(run, time_over_products=9)),
     "time_over_products is 9, its times give 2"),
    ("a layer without its GEMMs", lambda run: run["rows"].append(recurrent_layer(run, products_median_us=None)),
     "'products_median_us' is a required property"),
    ("a torch that its times contradict", lambda run: run["rows"].append(recurrent_layer(run, ratio_to_torch=9)),
     "ratio_to_torch is 9, its times give 3"),
    ("a ratio without a peer", lambda run: run["rows"][0].update(ratio_to_peer=1), "without 'peer_median_us'"),
    ("a rewrite whose time per node contradicts its time", lambda run: run["rows"].append(rewrite(ns_per_node=300)),
     "ns_per_node is 300, its times give 200"),
    ("a rewrite whose bytes per node contradict its heap", lambda run: run["rows"].append(rewrite(heap_bytes=10)),
     "bytes_per_node is 64.05, its times give 0.01"),
    ("a rewrite on a device", lambda run: run["rows"].append(rewrite(runs_on="cuda")),
     "runs_on: 'host' was expected"),
    ("a rewrite with a peer", lambda run: run["rows"].append(rewrite(peer="made up", peer_median_us=1)),
     "peer: is not allowed here"),
    ("a graph without the same by hand", lambda run: run["rows"].append(graph(by_hand_median_us=None)),
     "'by_hand_median_us' is a required property"),
    ("a graph that the times contradict", lambda run: run["rows"].append(graph(time_over_hand=2, time_over_hand_q3=3)),
     "time_over_hand is 2, its times give"),
    ("a ratio outside its quartiles", lambda run: run["rows"].append(graph(time_over_hand_q1=1.05)),
     "time_over_hand is not between its quartiles"),
    ("a time by hand outside its quartiles", lambda run: run["rows"].append(graph(by_hand_q3_us=1)),
     "perceptron 8 x 32, batch 16 fp16: the median is not between the quartiles"),
    ("a host that its times contradict",
     lambda run: run["rows"].append(graph(host=graph()["host"] | {"by_hand_median_us": 9, "by_hand_q1_us": 9, "by_hand_q3_us": 9})),
     "host: time_over_hand is 1.01, its times give"),
    ("separate host times though the calls are synchronous", lambda run: run["rows"].append(graph(synchronous=True)),
     "host: is not allowed here"),
    ("host times missing though the calls are asynchronous", lambda run: run["rows"].append(graph(host=None)),
     "'host' is a required property"),
    ("a host result that is not called a sample", lambda run: run.pop("sample"), 'has no "sample"'),
])
def test_invalid_results(tool, sample, tmp_path, what, change, message):
    change(sample)
    assert message in tool("--check", write(tmp_path / "broken.json", sample), code=1), f"{what} is found"


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

    calls = [{"bench": "calls", "call": name, "problem": "empty", "median_us": us, "q1_us": us, "q3_us": us,
              "batches": 1, "calls_per_batch": 1, "enqueue_us": us} for name, us in (("one", 1), ("two", 2))]
    was = write(tmp_path / "calls.json", sample | {"rows": calls})
    calls = copy.deepcopy(calls)
    calls[1].update(median_us=5, q1_us=5, q3_us=5)
    said = tool("--compare", was, write(tmp_path / "slow_calls.json", sample | {"rows": calls}), code=1)
    assert said.count("slower:") == 1 and "slower: two, empty: 2.0 -> 5.0 us" in said, "a slower call is listed"

    fewer = copy.deepcopy(sample)
    lost = fewer["rows"].pop(0)
    said = tool("--compare", SAMPLE, write(tmp_path / "fewer.json", fewer), code=None)
    assert f"missing: {lost['set']} {lost['shape']}" in said, "a missing row is listed"
    elsewhere = write(tmp_path / "elsewhere.json", sample | {"device": "another"})
    tool("--compare", SAMPLE, elsewhere, code=2)  # different devices are not compared


def test_figures(tool, made_up_gpu, tmp_path):
    tool("--figures", "--check")  # docs/on-a-gpu.md has the tables of the results
    own = tmp_path / "page.md"
    own.write_text(f"before\n{speed_page.START}\nold\n{speed_page.END}\nbehind\n", encoding="utf-8")
    said = tool("--figures", own, "--check", code=1)
    assert "page.md: differs from bench/results/" in said, "different tables are found"
    tool("--figures", own, SAMPLE)
    text = own.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{speed_page.START}\nNo GPU") and text.endswith(f"{speed_page.END}\nbehind\n")
    assert "|" not in text, "no table without results of a GPU"
    gpu = write(tmp_path / "gpu.json", made_up_gpu(1))
    tool("--figures", own, SAMPLE, gpu)
    text = own.read_text(encoding="utf-8")
    # The results of a GPU appear as a table.
    assert all(part in text for part in ("**made-up <device>**", "\n| llm | ", "\n| scale_step adamw, "))
    assert "EPYC" not in text
    assert text.count(speed_page.START) == text.count(speed_page.END) == 1, "once"
    tool("--figures", own, "--check", SAMPLE, gpu)  # compares with the file
    own.write_text("nothing\n", encoding="utf-8")
    tool("--figures", own, code=1)
    assert own.read_text() == "nothing\n", "a file without the two lines is left alone"


def test_each_row_of_the_figures_has_one_commit_and_file(tool, made_up_gpu, tmp_path):
    commit, page = "mpcore 0.1.0, git {}, targets: host", tmp_path / "page.md"
    older = made_up_gpu(1) | {"date": "2026-01-01T00:00:00Z", "commit": commit.format("a" * 7)}
    newer = made_up_gpu(1) | {"date": "2026-01-02T00:00:00Z", "commit": commit.format("b" * 7)}
    first = next(row for row in newer["rows"] if row["bench"] == "gemm" and row["set"] == "llm")
    newer["rows"] = [row for row in newer["rows"] if row["bench"] == "step" or row is first]
    page.write_text(f"{speed_page.START}\n{speed_page.END}\n", encoding="utf-8")
    tool("--figures", page, write(tmp_path / "older.json", older), write(tmp_path / "newer.json", newer))
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert [row[1:3] for row in rows if row[0] in ("`older.json`", "`newer.json`")] == [
        ["2026-01-01", "aaaaaaa"], ["2026-01-02", "bbbbbbb"]]
    assert ["set", "shapes", "best of 8", "first choice"] in [row[:4] for row in rows]
    # A set measured at two commits has two rows.
    assert [row[-2:] for row in rows if row[0] == "llm"] == [["aaaaaaa", "`older.json`"], ["bbbbbbb", "`newer.json`"]]
    assert {tuple(row[-2:]) for row in rows if row[0].startswith("scale_step")} == {("bbbbbbb", "`newer.json`")}


def test_below(tool, made_up_gpu, tmp_path):
    run = made_up_gpu(1)
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


def test_estimated_costs(tool, made_up_gpu, tmp_path):
    """Each report shows whether the constants of kernel selection were measured."""
    message = "The cost table of sm_90 is estimated"
    page = tmp_path / "page.md"
    for estimated, file in ((True, made_up_gpu(1)), (False, made_up_gpu(2))):
        path = write(tmp_path / "gpu.json", file)
        page.write_text(f"{speed_page.START}\n{speed_page.END}\n", encoding="utf-8")
        tool("--figures", page, path)
        assert (message in page.read_text(encoding="utf-8")) == estimated
        assert (message in tool("--below", "2", path)) == estimated
        assert bool(results.Device("", [file]).estimated_costs) == estimated


def test_published(sample):
    names = {row.name for row in published.read()}
    sets = {name.split()[0] for name in names}
    # For recurrent layers the complete ones are published, not their GEMMs.
    own = {results.recurrent_layer(results.name_of(row)) if row["bench"] == "rnn" else results.name_of(row)
           for row in sample["rows"] if row.get("set") in sets}
    assert own and own <= names, "mpbench's names of DeepBench's rows are known"
    assert "deepbench NN 24000x512x1536" in names, "the misprinted k is put right"


CHARTS = ("ratio", "ratio_best", "roofline", "peak", "mixed", "step", "prediction", "prediction_by_family",
          "recurrent", "over_products", "calls", "startup", "autocast", "allreduce", "change")
PHONE = 390  # CSS pixels


@pytest.fixture(scope="module")
def gpu_page(build, tool, made_up_gpu, tmp_path_factory) -> pathlib.Path:
    pytest.importorskip("matplotlib", reason="the page of the bench report (no matplotlib)")
    out = tmp_path_factory.mktemp("gpu")
    gpu = [write(out / f"gpu{seed}.json", made_up_gpu(seed)) for seed in (1, 2)]
    tool("--check", *gpu)
    tool("--build", build, "--out", out, SAMPLE, *gpu)
    return out / "index.html"


def test_page_of_samples(build, tool, tmp_path):
    pytest.importorskip("matplotlib", reason="the page of the bench report (no matplotlib)")
    tool("--build", build, "--out", tmp_path / "sample", *sorted(SAMPLE.parent.glob("sample_*.json")))
    page = (tmp_path / "sample" / "index.html").read_text(encoding="utf-8").replace("<wbr>", "")
    # Samples are labeled.
    assert "Sample, host target: does not predict the speed of a GPU" in page
    assert "no results of GPUs" in page
    assert all(peer in page for peer in ("cuBLASLt was not", "cuDNN was not", "torch")), "missing peers are named"
    assert published.V100 in page, "published figures are named"
    assert all(row.name in page for row in published.read()), "all of DeepBench is there"

    known = kernels.read()
    # Kernels are listed.
    assert f"CUDA {known.toolkit} " in page
    assert all(f"{arch}: {len(rows)} kernels" in page for arch, rows in known.by_arch.items())
    assert "HMMA 64" in page, "and their instructions"
    assert all(f"{part} {size / 1e6:.1f} MB" in page for part, size in known.library_bytes.items()), "and sizes"


def test_rewrites(build, tool, tmp_path):
    """Picture and table of autocast match the rows of its sample."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the page of the bench report (no matplotlib)")
    from report import charts
    tool("--check", REWRITES)
    run = json.loads(REWRITES.read_text(encoding="utf-8"))
    rows = {(row["graph"], row["nodes"]): row for row in run["rows"]}
    assert set(rows) == {(graph, 10**power) for graph in ("chain", "random") for power in (2, 3, 4, 5, 6)}

    figure = charts.autocast(results.Device("", [run]))
    axes, = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert set(lines) == {"chain", "random", "slope 1"}
    for graph in ("chain", "random"):
        own = sorted((nodes, 1e-6 * row["median_us"]) for (of, nodes), row in rows.items() if of == graph)
        assert [tuple(point) for point in lines[graph].get_xydata()] == own, f"seconds of {graph}"
    (left, low), (right, high) = lines["slope 1"].get_xydata()
    assert high / low == pytest.approx(right / left), "a line of slope 1"
    assert lines["slope 1"].get_linewidth() < lines["chain"].get_linewidth(), "which is thin"
    pyplot.close(figure)

    tool("--build", build, "--out", tmp_path, REWRITES)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    section = page[page.index("<h3>Autocast rewrites of graphs"):]
    section = section[:section.index("</section>")]
    assert "<svg" in section and "seconds per rewrite" in section and (tmp_path / "autocast_1.png").stat().st_size > 0
    shown = [tuple(re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", line))
             for line in section.splitlines() if "<td" in line]
    assert shown == [(graph, str(nodes), f"{row['ns_per_node']:.1f}", f"{row['bytes_per_node']:.1f}")
                     for (graph, nodes), row in sorted(rows.items())], "a line for each row, with its numbers"


def table_of_graphs(page: pathlib.Path):
    """Returns (cells of the lines, paragraph after the table) of the page."""
    text = page.read_text(encoding="utf-8")
    section = text[text.index("<h3>Graphs compared with calls by hand"):]
    section, note = section[:section.index("</p>")].split('<p class="faint">')
    return [[re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", line)]
            for line in section.splitlines() if "<td" in line], note


def test_graphs(build, tool, gpu_page, tmp_path):
    """The table of graphs matches the rows of its sample; a GPU's also has host times."""
    tool("--check", GRAPHS)
    rows = json.loads(GRAPHS.read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 4

    def shown(times: dict) -> list:
        return [f"{times['median_us']:.1f}", f"{times['by_hand_median_us']:.1f}",
                *(f"{times[f'time_over_hand{part}']:.3f}" for part in ("", "_q1", "_q3"))]

    tool("--build", build, "--out", tmp_path, GRAPHS)
    lines, note = table_of_graphs(tmp_path / "index.html")
    assert lines == [[row["network"], row["dtype"], str(row["launches"]), *shown(row), *5 * ["–"]] for row in rows]
    assert f"In {sum(row['time_over_hand'] <= 1.03 for row in rows)} of 4 rows" in note
    lines, note = table_of_graphs(gpu_page)
    made_up = injected.graph(50, 1.02)
    assert lines[0] == [made_up["network"], "fp16", "29", *shown(made_up), *shown(made_up["host"])]
    assert "In 1 of 2 rows" in note and "at most 3 % more" in note, "one of two rows exceeds the limit"


def test_page_of_results(build, tool, tmp_path):
    """The page without files shows bench/results/: its GPUs, and no samples of suites that they
    measured."""
    pytest.importorskip("matplotlib", reason="the page of the bench report (no matplotlib)")
    tool("--build", build, "--out", tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8").replace("<wbr>", "")
    assert "NVIDIA H200" in page and "8192x8192x8192" in page
    assert "no results of GPUs" not in page


def test_page_with_a_peer(gpu_page):
    page = gpu_page.read_text(encoding="utf-8")
    assert "Sample," not in page, "samples give way to results"
    assert page.count('class="gap"') == 0, "every section has something to show"
    assert all(gpu_page.with_name(f"{name}_1.png").stat().st_size > 0 for name in CHARTS), "and a picture"
    # Peaks, libraries and reasons of reduced clocks are listed.
    assert all(text in page.replace("<wbr>", "") for text in (
        "<td>read, GB/s</td>", "3000.5", "Peak, wgmma: made up not to be.", "nvidia/none/lib/lib.so",
        "Power limited them most of the time in"))
    assert "<td>another made-up peer</td>" in page, "all the peers of the step are there"
    assert "<td>made-up torch</td>" in page and "All 231 recurrent layers" in page, "torch's times of recurrent layers"
    assert "deepbench_rnn_train wgrad, layer" in page.replace("<wbr>", ""), "each set has a line"
    assert "Peaks of the device" in page and "% mma.sync" in page, "and the rows nearest to a peak"
    assert "This build" in page and "Prediction, not a measurement" in page, "facts of this build are listed"
    assert "made-up &lt;device&gt;" in page and "<device>" not in page, "names are escaped"
    assert not re.search(r"<script|<link|<img|@import|url\((?!#)", page), "the page is self-contained"
    ids = re.findall(r'\bid="([^"]+)"', page)
    shared = {one for one in ids if ids.count(one) > 1 and f"#{one}" in page}
    assert not shared, "no two pictures share an id that is referred to"


def test_only_tables_scroll_on_a_phone(gpu_page, tmp_path):
    """Only tables scroll sideways on a phone with all details open."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("the width of the page of the bench report (no chromium)")
    # The window of a headless browser has a minimum width, a frame has none.
    (tmp_path / "frame.html").write_text(f"""<iframe id="page" src="{gpu_page}" width="{PHONE}"></iframe>
<p id="width"></p><script>onload = () => {{
  const inside = document.getElementById("page").contentDocument;
  inside.querySelectorAll("details").forEach(one => one.open = true);
  document.getElementById("width").textContent = "width " + inside.documentElement.scrollWidth;
}}</script>""", encoding="utf-8")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                           f"--user-data-dir={tmp_path / 'browser'}", "--virtual-time-budget=20000", "--dump-dom",
                           tmp_path / "frame.html"], text=True, capture_output=True, check=False)
    assert int(re.search(r"width (\d+)", done.stdout)[1]) <= PHONE
