"""Tests of mptune's measurements, fits and predictions on the target under test."""
import json
import re

import pytest


@pytest.fixture(scope="module")
def mptune(build, run):
    return lambda *arguments, code=0: run(build / "mptune", *arguments, code=code)


@pytest.fixture(scope="module")
def work(mptune, target, tmp_path_factory):
    """Folder with a measurement and a table fitted to it."""
    folder = tmp_path_factory.mktemp("mptune")
    said = mptune("--device", target, "--set", "bench/tune/sample_shapes.csv", "--out", folder / "table.txt",
                  "--json", folder / "measured.json")
    assert "median error of the predictions" in said
    return folder


def indented(path) -> str:
    """JSON of a file with one field per line, so that patterns can change a field."""
    return json.dumps(json.loads(path.read_text()), indent=2) + "\n"


def constants(table) -> list:
    return [line for line in table.read_text().splitlines() if not line.startswith("#")]


def date(table) -> list:
    return [line for line in table.read_text().splitlines() if line.startswith("# date")]


def test_the_library_accepts_the_table(work, build, run):
    said = run(build / "tests/mptests", "the first kernel",
               env={"MP_LOG": "info", "MP_GEMM_TUNING": str(work / "table.txt")})
    assert "using MP_GEMM_TUNING" in said


def test_fits_again(work, mptune, tmp_path):
    mptune("--from", work / "measured.json", "--out", tmp_path / "again.txt", "--json", tmp_path / "again.json")
    assert constants(tmp_path / "again.txt") == constants(work / "table.txt")
    assert date(tmp_path / "again.txt") == date(work / "table.txt") != [], "that of the measurement"
    # The output of a fit is accepted as input.
    mptune("--from", tmp_path / "again.json", "--out", tmp_path / "third.txt")


def test_other_times_other_constants(work, mptune, tmp_path):
    text = indented(work / "measured.json")
    (tmp_path / "changed.json").write_text(re.sub(r'"us": [0-9.e+]+', '"us": 1e9', text, count=1))
    mptune("--from", tmp_path / "changed.json", "--out", tmp_path / "changed.txt")
    assert constants(tmp_path / "changed.txt") not in ([], constants(work / "table.txt"))


@pytest.mark.parametrize("what, pattern, replacement, message", [
    ("a file that ends early", r"[^\n]*\n\Z", "", "parse error"),
    ("not JSON", r"(?s).*", "m,n,k\n", "parse error"),
    ("a kernel that is unknown", r'simt_64x64x16"', 'simt_1x1"', "kernel simt_1x1"),
    ("a field that is missing", r'.*"num_sms".*\n', "", "key 'num_sms' not found"),
    ("text for a number", r'"num_sms": .*,', '"num_sms": "1",', 'num_sms = "1" must be an integer from 1'),
    ("no SM", r'"num_sms": .*,', '"num_sms": 0,', "num_sms = 0 must be an integer from 1"),
    ("no architecture", r'"arch": .*,', '"arch": -90,', "arch = -90 must be an integer from 1"),
    ("a time of 0", r'"us": .*,', '"us": 0,', "us must be positive"),
    ("a time that no table takes", r'"us": .*,', '"us": 1e300,', "us must be at most 1e9"),
    *((f"{extent} = {value}", rf'"{extent}": [0-9]+', f'"{extent}": {value}', f"{extent} = {value} must be an integer")
      for extent in "mnk" for value in ("0", "-1", "64.5", "1e+300", "true", "18446744073709551615")),
    *((f"a newline in {name}", rf'"{name}": .*,', rf'"{name}": "1\\nsm_90 launch_us=1e9",', f"{name} = ")
      for name in ("device", "driver", "date")),
])
def test_invalid_measurements_are_rejected(work, mptune, tmp_path, what, pattern, replacement, message):
    text = indented(work / "measured.json")
    changed = re.sub(pattern, replacement, text)
    assert changed != text, what
    (tmp_path / "broken.json").write_text(changed)
    assert message in mptune("--from", tmp_path / "broken.json", "--out", tmp_path / "none.txt", code=1)
    assert not (tmp_path / "none.txt").exists()


@pytest.mark.parametrize("line", ["0,5,5,NN,a", "5,0,5,NN,a", "5,5,0,NN,a", "-1,5,5,NN,a"])
def test_invalid_shapes_are_rejected(mptune, target, tmp_path, line):
    (tmp_path / "shapes.csv").write_text(f"m,n,k,layout,comment\n{line}\n")
    said = mptune("--device", target, "--set", tmp_path / "shapes.csv", "--out", tmp_path / "none.txt", code=1)
    assert "shapes.csv:2: " in said and "is not an integer from 1 to 1000000000" in said and said.count("\n") == 1
    assert not (tmp_path / "none.txt").exists()


def test_command_with_a_newline_is_one_line_of_a_table(work, mptune, tmp_path):
    mptune("--from", work / "measured.json", "--out", tmp_path / "x\nsm_90 launch_us=1e9")
    table, = (path for path in tmp_path.iterdir())
    assert constants(table) == constants(work / "table.txt")


def test_no_such_file(mptune, tmp_path):
    assert "cannot read" in mptune("--from", tmp_path / "missing.json", "--out", tmp_path / "none.txt", code=1)


def test_a_measured_table_is_not_an_estimate(work):
    lines = constants(work / "table.txt")
    assert " estimated=0" in lines[0] and not any("estimated=1" in line for line in lines)


def test_predicts_for_a_missing_device(mptune, tmp_path):
    for name in ("sm_75", "sm_80", "sm_89", "sm_100", "sm_120"):
        assert f"(estimated constants) for {name}" in mptune("--predict", name, "--set", "llm")
    assert "estimated" not in mptune("--predict", "sm_90", "--json", tmp_path / "predicted.json")
    rows = json.loads((tmp_path / "predicted.json").read_text())["predictions"]
    assert {"llm", "deepbench", "resnet50", "deepbench_conv"} <= {row["set"] for row in rows}
    assert all(row["predicted_us"] > 0 and row["kernel"] and row["flop"] > 0 and row["min_bytes"] > 0 for row in rows)
    assert any("wgmma" in row["kernel"] for row in rows)
    assert "wgmma" not in mptune("--predict", "sm_80", "--set", "llm")


def test_unknown_device(mptune):
    assert "--predict must be" in mptune("--predict", "sm_91", code=2)


def test_minutes(mptune, target, tmp_path):
    """A limit that expires at once leaves one shape, from which a table is made."""
    mptune("--device", target, "--set", "bench/tune/sample_shapes.csv", "--minutes", "0.00001", "--out",
           tmp_path / "table.txt", "--json", tmp_path / "measured.json")
    assert len(json.loads((tmp_path / "measured.json").read_text())["problems"]) == 1
    assert "minutes" in mptune("--minutes", "-1", code=2)
