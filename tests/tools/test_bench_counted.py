"""Tests of counted results: mpbench on the software device, checks of its counts, and bounds
derived from them."""
import copy
import csv
import json
import shlex
import sys

import pytest

pytest.importorskip("jsonschema", reason="the bench report (no jsonschema)")
from report import counted, results  # noqa: E402

TIME_WORDS = ("_us", "_per_s", "tflops", "percent", "ratio", "seconds")


def path(requests, size, unit, actual, least) -> dict:
    return {"requests": requests, "bytes": size, unit: actual, f"least_{unit}": least}


# A GEMM of 256 x 256 x 256 by two kernels; the second has no tensor core instructions.
MULTIPLIES = {
    "name": "void mp::gemm_wgmma<half, 128>(Args)", "launches": 1, "blocks": 4, "issue_slots": 6000,
    "classes": {"wgmma": 256, "integer": 4000, "move": 1744},
    "tensor": {"instructions": 256, "flops": 2 * 256 ** 3},
    "global": {"tma_load": path(64, 524288, "sectors", 16384, 16384), "store": path(512, 131072, "sectors", 8192, 4096)},
    "shared": {"stmatrix": path(256, 131072, "wavefronts", 2640, 1024)},
    "waits": {"barriers": 32, "mbarrier_waits": 100, "mbarrier_incomplete": 90}}
SUMS = {
    "name": "split_k_sum(Args)", "launches": 1, "blocks": 8, "issue_slots": 4560, "classes": {"fp32": 4560},
    "tensor": {"instructions": 0, "flops": 0}, "global": {"load": path(8, 256, "sectors", 8, 8)}, "shared": {},
    "waits": {"barriers": 0, "mbarrier_waits": 0, "mbarrier_incomplete": 0}}
ROW = {"bench": "gemm", "set": "made", "shape": "NT 256x256x256", "comment": "", "m": 256, "n": 256, "k": 256,
       "dtype": "fp16", "out_dtype": "fp16", "beta": 0, "flop": 2 * 256 ** 3, "min_bytes": 3 * 2 * 256 ** 2,
       "kernel": "wgmma_128x128x64", "workspace_bytes": 0, "counts": [MULTIPLIES, SUMS]}
STEP = {"bench": "step", "op": "scale_step adamw", "layout": "one", "tensors": 1, "parameters": 1000,
        "bytes_per_parameter": 30, "counts": [SUMS]}


@pytest.fixture
def made() -> dict:
    return copy.deepcopy({
        "schema": 1, "counted": True, "device": "made up", "target": "cuda", "arch": 90, "num_sms": 132, "l2_bytes": 1,
        "commit": "none", "command": "none", "date": "2000-01-01T00:00:00Z", "driver": None, "cuda": None,
        "rows": [ROW, STEP], "clocks": [], "notes": []})


@pytest.fixture
def tool(root, run):
    return lambda *arguments, code=0: run(sys.executable, root / "tools/bench_report", *arguments, code=code)


def write(file, run: dict):
    file.write_text(json.dumps(run), encoding="utf-8")
    return file


def test_bounds():
    """Computed by hand.  Each of 132 multiprocessors executes 4096 operations and issues 4
    instructions per clock, all of which may be FP32."""
    bound = counted.bound(ROW, counted.PEAKS[90])
    assert bound.clocks == pytest.approx({
        "tensor cores": 33554432 / (132 * 4096),  # 62.1
        "issue slots": 20.0,  # (6000 + 4560) / 4 / 132
        "FP32": 4560 / 4 / 132,  # 8.6
        "shared memory": 20.0,  # 2640 / 132
        "DRAM": 393216 * 1.83 / 4800,  # 149.9
    })
    assert bound.binds == "DRAM"
    # A T4 has 40 multiprocessors with 1024 operations each.
    assert counted.bound(ROW, counted.PEAKS[75]).clocks["tensor cores"] == 819.2
    # The bytes of a step are those of its algorithm.
    assert counted.bound(STEP, counted.PEAKS[80]).clocks["DRAM"] == pytest.approx(30000 * 1.41 / 1935)


@pytest.mark.parametrize("arch, binds", [(75, "FP32"), (80, "FP32"), (90, "issue slots")])
def test_cuda_core_kernel_is_bound_by_half_rate_fp32_units(arch, binds):
    row = copy.deepcopy(ROW) | {"min_bytes": 1, "counts": [SUMS | {
        "issue_slots": 10000, "classes": {"fp32": 6000, "integer": 4000}}]}
    peaks = counted.PEAKS[arch]
    bound = counted.bound(row, peaks)
    assert bound.binds == binds
    assert bound.clocks["FP32"] == 6000 / (peaks.sms * (4 if arch == 90 else 2))


@pytest.mark.parametrize("arch, tflops, fp32_lanes, gb_per_s, sms", [
    (75, 65, 64, 320, 40), (80, 312, 64, 1935, 108), (90, 989.5, 128, 4800, 132)])
def test_peaks_are_those_of_the_data_sheets(arch, tflops, fp32_lanes, gb_per_s, sms):
    """The lanes are those of the CUDA C++ Programming Guide."""
    peaks = counted.PEAKS[arch]
    assert 1e-3 * peaks.sms * peaks.tensor_flop * peaks.ghz == pytest.approx(tflops, rel=2e-3)
    assert (peaks.sms, peaks.fp32_lanes, peaks.dram_gb_per_s) == (sms, fp32_lanes, gb_per_s)
    assert peaks.dram_bytes * peaks.ghz == pytest.approx(gb_per_s)
    assert all(f"{figure:g}" in peaks.sources for figure in (tflops, gb_per_s if arch < 90 else 1e-3 * gb_per_s))


@pytest.mark.parametrize("what, change, message", [
    ("classes that are not all", lambda run: run["rows"][0]["counts"][0]["classes"].update(integer=3999), "is not its issue slots"),
    ("sectors below the least", lambda run: run["rows"][0]["counts"][0]["global"]["store"].update(sectors=4095), "fewer sectors by store"),
    ("wavefronts below the least", lambda run: run["rows"][0]["counts"][0]["shared"]["stmatrix"].update(wavefronts=1), "fewer wavefronts by"),
    ("operations that are missing", lambda run: run["rows"][0]["counts"][0]["tensor"].update(flops=2 * 256 ** 3 - 1), "the shape has"),
    ("more tensor instructions than slots", lambda run: run["rows"][0]["counts"][0]["tensor"].update(instructions=6001), "than issue slots"),
    ("a row without counts", lambda run: run["rows"][0].pop("counts"), "'counts' is a required property"),
    ("no kernel", lambda run: run["rows"][0].update(counts=[]), "rows[0].counts: [] "),
    ("a time", lambda run: run["rows"][0].update(median_us=1), "rows[0]"),
    ("a rate", lambda run: run["rows"][0].update(tflops=1), "rows[0]"),
    ("a peak", lambda run: run.update(peak_tflops=1), "peak_tflops"),
    ("a count that is a part", lambda run: run["rows"][1]["counts"][0].update(issue_slots=0.5), "0.5 is not of type 'integer'"),
    ("counts in a run that is not counted", lambda run: run.pop("counted"), "rows[0]"),
])
def test_inconsistent_counts_are_rejected(tool, made, tmp_path, what, change, message):
    tool("--check", write(tmp_path / "whole.json", made))
    change(made)
    assert message in tool("--check", write(tmp_path / "broken.json", made), code=1), f"{what} is found"


def test_counts_are_not_compared_with_times(tool, made, tmp_path):
    file, sample = write(tmp_path / "counted.json", made), results.BENCH / "results" / "sample_host_1.json"
    for files in ((file, sample), (sample, file), (file, file)):
        assert "counted.json was counted, not timed" in tool("--compare", *files, code=2)
    assert "no results of GPUs" in tool("--below", 0.85, file), "counts are not results of a GPU"


def test_table_of_totals(tool, made, tmp_path):
    made["rows"].append(ROW | {"kernel": "not named"})
    said = tool("--counts", write(tmp_path / "own.json", made), results.BENCH / "results" / "sample_host_1.json")
    heading, *lines = list(csv.reader(said.splitlines()))
    own, step, unnamed = (dict(zip(heading, line)) for line in lines)
    # 16384 + 8192 + 8 sectors of 32 bytes; DRAM is busy for 393216 bytes * 1.83 GHz / 4800 GB/s.
    assert own == {"arch": "90", "suite": "gemm", "set": "made", "shape": "NT 256x256x256", "dtype": "fp16",
                   "kernel": "wgmma_128x128x64", "launches": "2", "issue_slots": "10560", "tensor_flop": "33554432",
                   "bytes_moved": "786688", "least_bytes": "393216", "shared_wavefronts": "2640", "least_wavefronts": "1024",
                   "barriers": "32", "busiest_unit": "DRAM", "its_clocks": "150"}
    assert (step["shape"], step["kernel"]) == ("scale_step adamw, one, 0.001 M", "split_k_sum")
    assert unnamed == own | {"kernel": "gemm_wgmma, split_k_sum"}


def test_mpbench_counts_on_the_software_device(root, build, run, tool, tmp_path):
    if not (build / "softgpu/libmpcore.so").exists():
        pytest.skip("mpbench on the software device (make softgpu)")
    file = tmp_path / "fresh.json"
    command = (root / "softgpu/run", "--arch", "75", "--build", build, build / "mpbench", "step", "--filter",
               "check_nonfinite, ", "--limit", "1", "--json", file)
    run(*command, env={"SOFTGPU_COUNT": "1"})
    tool("--check", file)
    whole = json.loads(file.read_text())
    row, = whole["rows"]
    assert shlex.split(whole["command"]) == list(map(str, command[command.index(build / "mpbench"):]))
    assert whole["counted"] is True and whole["target"] == "cuda" and whole["arch"] == 75
    assert not [name for name in [*whole, *row] if name.endswith(TIME_WORDS) or name.startswith(TIME_WORDS)]
    # Gradients are FP16 and read once.
    loaded = sum(kernel["global"].get("load", {"bytes": 0})["bytes"] for kernel in row["counts"])
    assert 2 * row["parameters"] <= loaded < 2.2 * row["parameters"]
    # Without SOFTGPU_COUNT there is no row, and the reason is reported.
    assert "SOFTGPU_COUNT" in run(*command, env={"SOFTGPU_COUNT": ""}, code=1)


def test_mptune_rejects_software_devices(root, build, run):
    if not (build / "softgpu/libmpcore.so").exists():
        pytest.skip("mptune on the software device (make softgpu)")
    said = run(root / "softgpu/run", "--build", build, build / "mptune", "--device", "cuda", code=1)
    assert "the software device measures no times" in said
