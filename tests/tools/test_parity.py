"""Tests of tools/parity on reports in the format of mpdemo: page, verdict, comparison."""
import json

import pytest

START, END = "<!-- tables: written by tools/parity -->", "<!-- end of tables -->"
RUNS = {"FP32": (0.85, None), "mixed, backoff": (0.852, 2**16), "mixed, lognormal": (0.848, 2**31),
        "mixed, S = 1": (0.7, 1), "bf16, no scaler": (0.85, None)}


def a_run(name: str, metric: str, value: float, scale) -> dict:
    return {"name": name, metric: value, "final_scale": scale, "skipped": None if scale is None else 3, "seconds": 12.4,
            "together_bytes": (4 if name == "FP32" else 3) * 2**20}


def a_report(net: str, metric: str, largest_gap: float) -> dict:
    runs = [a_run(name, metric, value, scale) for name, (value, scale) in RUNS.items()]
    settings = [{"id": which, "title": which.title(), "length": "0.5 epochs", "runs": runs}
                for which in ("standard", "small_weight")]
    return {"data": "Data", "device": "a CPU", "target": "host", "seed": 1,
            "networks": [{"id": net, "title": f"a {net}", "metric": metric, "largest_gap": largest_gap,
                          "settings": settings}]}


@pytest.fixture
def reports(tmp_path):
    """change(net, setting, run, **fields): modifies report.json of that network; without
    arguments writes all reports."""
    kinds = {"mlp": ("test_accuracy", 0.005), "cnn": ("test_accuracy", 0.005), "rows": ("test_accuracy", 0.005),
             "charlm": ("test_bits_per_character", 0.02), "gpt": ("test_bits_per_character", 0.02)}

    def write(net, report):
        (tmp_path / net).mkdir(exist_ok=True)
        (tmp_path / net / "report.json").write_text(json.dumps(report), encoding="utf-8")

    def change(net, setting, name, /, **fields):
        report = json.loads((tmp_path / net / "report.json").read_text(encoding="utf-8"))
        one, = (each for each in report["networks"][0]["settings"] if each["id"] == setting)
        next(each for each in one["runs"] if each["name"] == name).update(fields)
        write(net, report)

    for net, (metric, largest_gap) in kinds.items():
        write(net, a_report(net, metric, largest_gap))
    return change


@pytest.fixture
def parity(root, run, tmp_path):
    """parity(argument..., code=0): output for these reports."""
    return lambda *arguments, **how: run(root / "tools/parity", "--from", tmp_path, "--page", tmp_path / "page.md",
                                         *arguments, **how)


def test_page(reports, parity, tmp_path):
    (tmp_path / "page.md").write_text(f"# By hand\n\n{START}\nold\n{END}\nNext\n", encoding="utf-8")
    assert "parity: ok, 50 runs" in parity()
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith(f"# By hand\n\n{START}\n\n## Data, a mlp\n\nMeasured on ") and "\nold\n" not in page
    assert page.endswith(f" |\n\n{END}\nNext\n")
    assert "on the host target (a CPU), seed 1; 2 minutes of training.\n\n### charlm: Standard\n\n0.5 epochs." in page
    assert "| FP32 | 85.00 % |  |  |  | 4096 | 1.00 | 12 |\n" in page
    assert "| mixed, lognormal | 84.80 % | -0.20 | 2^31 | 3 | 3072 | 0.75 | 12 |\n" in page
    assert "| mixed, S = 1 | 0.7000 | -0.1500 | 2^0 | 3 | 3072 | 0.75 | 12 |\n" in page
    reports("rows", "standard", "FP32", test_accuracy=0.8512)
    assert "parity: ok, 10 runs" in parity("--net", "rows")
    old = page.splitlines()
    changed = [line for line in (tmp_path / "page.md").read_text(encoding="utf-8").splitlines() if line not in old]
    assert len(changed) == 5 and changed[0].startswith("| FP32 | 85.12 % |"), "rows, ordinary training"


def test_check_repeats(reports, parity):
    parity()
    reports("cnn", "standard", "FP32", seconds=99)
    assert parity("--check") == "parity: ok, 50 runs\n"


@pytest.mark.parametrize("changed, message", [
    ({"test_bits_per_character": 0.8521}, "mixed, backoff, 0.8521, 2^16, 3"),
    ({"final_scale": 2**15}, "mixed, backoff, 0.8520, 2^15, 3"),
    ({"skipped": 4}, "mixed, backoff, 0.8520, 2^16, 4"),
    ({"name": "mixed, dynamic"}, "mixed, dynamic, 0.8520, 2^16, 3"),
])
def test_check_finds_violations(reports, parity, changed, message):
    parity()
    reports("charlm", "standard", "mixed, backoff", **changed)
    said = parity("--check", code=1)
    assert f"parity: not on the page: charlm: Standard, {message}\n" in said and "parity: NOT ok" in said
    assert "parity: only on the page: charlm: Standard, mixed, backoff, 0.8520, 2^16, 3\n" in said
    assert "on another device" not in said, "the device is the same"
    assert parity("--check", "--net", "cnn") == "parity: ok, 10 runs\n"


@pytest.mark.parametrize("net, setting, name, value, message", [
    ("mlp", "standard", "mixed, backoff", 0.856, "mlp, standard, mixed, backoff: +0.60 from FP32, exceeds 0.50"),
    ("charlm", "small_weight", "bf16, no scaler", 0.8201, "bf16, no scaler: -0.0299 from FP32, exceeds 0.0200"),
    ("charlm", "standard", "mixed, lognormal", None, "mixed, lognormal: +nan from FP32"),
    ("rows", "small_weight", "mixed, S = 1", 0.849, "mixed, S = 1: -0.10 from FP32: must fail with a small task weight"),
])
def test_verdict(reports, parity, net, setting, name, value, message):
    key = "test_bits_per_character" if net == "charlm" else "test_accuracy"
    reports(net, setting, name, **{key: value})
    assert message in parity(code=1)
    reports(net, setting, name, **{key: 0.85 if name != "mixed, S = 1" else None})
    assert "parity: ok" in parity()


def test_without_a_scale_ordinary_training_is_not_judged(reports, parity):
    reports("cnn", "standard", "mixed, S = 1", test_accuracy=0.85)
    assert "parity: ok" in parity()


def test_json(reports, parity):
    reports("rows", "standard", "mixed, backoff", test_accuracy=0.5)
    said = json.loads(parity("--json", code=1))
    assert not said["passed"] and len(said["mistakes"]) == 1 and len(said["reports"]) == 5


def test_no_demo(root, run, tmp_path):
    said = run(root / "tools/parity", "--build", tmp_path, "--net", "mlp", code=1)
    assert f"{tmp_path}/mpdemo cannot be started" in said and "Traceback" not in said


def test_demo_that_fails(root, run, tmp_path):
    (tmp_path / "mpdemo").write_text("#!/bin/sh\necho no text >&2\nexit 1\n", encoding="utf-8")
    (tmp_path / "mpdemo").chmod(0o755)
    said = run(root / "tools/parity", "--build", tmp_path, "--net", "charlm", code=1)
    assert "parity: charlm, 1 of 1\nno text\nparity: mpdemo --net charlm failed with exit code 1\n" == said


def test_the_demo_gets_its_arguments(root, run, tmp_path):
    """Progress is read from the demo's stderr; its report is read from the folder of --out."""
    report = json.dumps(a_report("rows", "test_accuracy", 0.005))
    (tmp_path / "mpdemo").write_text('#!/bin/sh\nwhile [ "$1" != --out ]; do said="$said $1"; shift; done\n'
                                     'echo "$said; $MP_HOST_THREADS threads" >&2\nmkdir -p "$2"\n'
                                     f"echo '{report}' | tee \"$2/report.json\"\n", encoding="utf-8")
    (tmp_path / "mpdemo").chmod(0o755)
    said = run(root / "tools/parity", "--build", tmp_path, "--net", "rows", "--page", tmp_path / "page.md",
               env={"MP_HOST_THREADS": "5"})
    assert " --device host --net rows --dtype all --full --json; 2 threads\n" in said
    assert "| mixed, backoff | 85.20 % |" in (tmp_path / "page.md").read_text(encoding="utf-8")
    assert (tmp_path / "parity/rows/report.json").exists()
