"""What mpdemo does when it is asked: the LSTM, bf16, a loss scaler by its name.  A few steps of each, on the
host target; whole trainings are the demo's own business.
"""
import json
import re

import pytest

import demo_curves

# Of the LSTM of 128 units over 28 rows of 28 pixels, and of the linear layer behind it.
STEPS, PIXELS, HIDDEN, CLASSES, BATCH = 28, 28, 128, 10, 128
WEIGHTS = 4 * HIDDEN * (PIXELS + HIDDEN) + HIDDEN * CLASSES
BIASES = 2 * 4 * HIDDEN + CLASSES
# Bytes that mp_rnn_sizes_t says of the reserve, per step, sequence and unit.
RESERVE = {"FP32": 24, "mixed, none": 14}


@pytest.fixture(scope="module")
def settings(build, run, tmp_path_factory):
    """settings(argument...): of each setting in report.json its runs, by name; and the folder that has all files."""
    def demo(*arguments):
        demo_curves.skip_without_demo(build, *arguments)
        out = tmp_path_factory.mktemp("demo")
        run(build / "mpdemo", "--device", "host", *arguments, "--out", out)
        network, = json.loads((out / "report.json").read_text(encoding="utf-8"))["networks"]
        assert network["passed"] is None, "a few steps are not judged"
        return {one["id"]: {each["name"]: each for each in one["runs"]} for one in network["settings"]}, out
    return demo


@pytest.fixture(scope="module")
def rows(settings):
    return settings("--net", "rows", "--loss-scale", "none", "--epochs", 0.03)[0]


def test_lstm_in_mixed_precision_stays_with_fp32(rows):
    fp32, mixed = rows["standard"].values()
    assert abs(mixed["train_loss"] - fp32["train_loss"]) < 0.002  # 0.0001 was measured
    assert mixed["flushed_weight_gradients"] < 0.01


def test_lstm_with_a_small_weight_needs_a_loss_scale(rows):
    fp32, mixed = rows["small_weight"].values()
    assert fp32["train_loss"] == rows["standard"]["FP32"]["train_loss"], "powers of two cancel"
    assert mixed["flushed_weight_gradients"] > 0.5
    assert mixed["train_loss"] > fp32["train_loss"] + 0.1


@pytest.mark.parametrize("name", RESERVE)
def test_memory_is_all_that_the_network_needs(rows, name):
    memory = {key: value for key, value in rows["standard"][name].items() if key.endswith("_bytes")}
    is_mixed, element = name != "FP32", 2 if name != "FP32" else 4
    assert memory["weight_bytes"] == memory["gradient_bytes"] == element * WEIGHTS + 4 * BIASES
    assert memory["master_bytes"] == (4 * WEIGHTS if is_mixed else 0)
    assert memory["optimizer_bytes"] == 4 * (WEIGHTS + BIASES)
    handed_on = element * BATCH * (STEPS * HIDDEN + HIDDEN + CLASSES)
    assert memory["activation_gradient_bytes"] == handed_on
    kept = memory["activation_bytes"] - handed_on - element * BATCH  # less the ones that sum a bias gradient
    assert 0 <= kept - BATCH * STEPS * HIDDEN * RESERVE[name] < 256
    assert memory["workspace_bytes"] > 0
    together = memory.pop("together_bytes")
    assert together == sum(memory.values())


def test_the_table_says_the_ratio_of_the_totals(build, run, tmp_path):
    demo_curves.skip_without_demo(build)
    said = run(build / "mpdemo", "--device", "host", "--net", "mlp", "--epochs", 0.01, "--out", tmp_path)
    runs = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["networks"][0]["settings"][0]["runs"]
    ratio = float(re.search(r"as a share of FP32's +(\S+)", said).group(1))
    assert abs(ratio - runs[1]["together_bytes"] / runs[0]["together_bytes"]) <= 0.005
    assert 0.9 < ratio < 1, "the masters outweigh the rest"


def test_bf16_needs_no_scaler(settings):
    found, out = settings("--net", "mlp", "--dtype", "bf16", "--epochs", 0.02)
    standard, small = (found[name]["bf16, no scaler"] for name in ("standard", "small_weight"))
    assert standard["final_scale"] is None and "flushed_weight_gradients" not in standard
    assert abs(standard["train_loss"] - found["standard"]["FP32"]["train_loss"]) < 0.02
    assert small["train_loss"] == standard["train_loss"], "bf16 has the exponents of fp32"
    assert "fp16" not in (out / "plots.gp").read_text(encoding="utf-8").partition("id = ")[2]


@pytest.mark.parametrize("word, scale", [("DYNAMIC", 2**16), ("backoff", 2**14), ("128", 128)])
def test_a_scaler_by_its_name(settings, word, scale):
    found, _ = settings("--net", "mlp", "--loss-scale", word, "--epochs", 0.01)
    assert list(found["standard"]) == ["FP32", f"mixed, {word}"]
    assert found["standard"][f"mixed, {word}"]["final_scale"] == scale


@pytest.mark.parametrize("arguments, says", [
    ("--loss-scale backof", "Backoff, LogMax, lognormal, dynamic, none"),
    ("--loss-scale 0", "is not positive"),
    ("--dtype fp32", "--dtype: fp32 not in"),
    ("--net gru", "--net: gru not in"),
])
def test_wrong_options(build, run, arguments, says):
    demo_curves.skip_without_demo(build, arguments)
    assert says in run(build / "mpdemo", *arguments.split(), code=2)
