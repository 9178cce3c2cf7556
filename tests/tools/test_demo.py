"""Tests of mpdemo's options: the LSTM, the character model, the GPT, bf16, a loss scaler by name.
Each trains a few steps on the host target.
"""
import gzip
import json
import os
import random
import re

import pytest

import demo_curves

BATCH, ALIGNED = 128, 256  # images; bytes of tensors of a graph


@pytest.fixture(scope="module")
def settings(build, run, tmp_path_factory):
    """settings(argument...): the runs of each setting in report.json, by name; and the folder of
    all files."""
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


def block(*tensors) -> int:
    """Bytes of aligned tensors in the graph's block of memory."""
    return sum(-(-size // ALIGNED) * ALIGNED for size in tensors)


OWN = 64 * 1024  # maximum for scalers, optimizer scratch, tables, step query


@pytest.mark.parametrize("net, epochs", [("mlp", 0.02), ("cnn", 0.004), ("rows", 0.004)])
def test_reported_memory_matches_the_allocator(build, root, run, cc, tmp_path, net, epochs):
    """The held memory returns to that of the dataset after each run."""
    demo_curves.skip_without_demo(build, "--net", net)
    run(*cc, "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", root / "tests/tools/allocations.c", "-ldl",
        "-o", tmp_path / "allocations.so")
    run(build / "mpdemo", "--device", "host", "--net", net, "--epochs", epochs, "--out", tmp_path,
        env={"LD_PRELOAD": str(tmp_path / "allocations.so"), "MP_TEST_ALLOCATIONS": str(tmp_path / "held")})
    held = list(map(int, (tmp_path / "held").read_text().split()))
    network, = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["networks"]
    results = [each for setting in network["settings"] for each in setting["runs"]]
    dataset = held[3]  # images and labels, of training and test
    most = [max(between) - dataset for between in runs_of(held, dataset)]
    assert len(most) == len(results)
    record = 2 * block(4 * round(epochs * -(-60000 // BATCH)))  # loss and scale of each step
    for bytes_, result in zip(most, results):
        beside = bytes_ - result["together_bytes"] - record
        # At the end FP32 creates a second network, to inspect its gradients.
        assert 0 <= beside and (beside <= OWN or result["name"] == "FP32"), result["name"]


def runs_of(held: list, dataset: int) -> list:
    """The values between points at which only the dataset is held."""
    starts = [i for i, each in enumerate(held) if each == dataset]
    return [held[i + 1:j] for i, j in zip(starts, starts[1:])]


def test_the_table_has_the_ratio_of_the_totals(build, run, tmp_path):
    demo_curves.skip_without_demo(build)
    said = run(build / "mpdemo", "--device", "host", "--net", "mlp", "--epochs", 0.01, "--out", tmp_path)
    runs = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["networks"][0]["settings"][0]["runs"]
    ratio = float(re.search(r"relative to FP32 +(\S+)", said).group(1))
    assert abs(ratio - runs[1]["together_bytes"] / runs[0]["together_bytes"]) <= 0.005
    assert 1 < ratio < 1.1, "weight copies and cast images outweigh the halved tensors"


def test_the_table_has_the_reason_of_each_type(build, run, tmp_path):
    demo_curves.skip_without_demo(build)
    said = run(build / "mpdemo", "--device", "host", "--net", "cnn", "--dtype", "bf16", "--epochs", 0.004, "--out", tmp_path)
    table = said.partition("Types assigned by autocast")[2].splitlines()
    assert ["conv1", "Conv2D", "bf16", "on", "the", "allow", "list"] in map(str.split, table)
    assert ["loss", "SoftmaxXent", "fp32", "on", "the", "deny", "list"] in map(str.split, table)
    # Casts of the image; of two filters and two matrices.
    assert any(line.endswith("casts: 1 by a kernel, 4 by the optimizer's copy") for line in table)
    fp32, bf16 = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["networks"][0]["settings"][0]["runs"]
    assert "autocast" not in fp32
    assert bf16["autocast"]["low"] == "bf16" and bf16["autocast"]["num_casts"] == 5


def test_bf16_needs_no_scaler(settings):
    found, out = settings("--net", "mlp", "--dtype", "bf16", "--epochs", 0.02)
    standard, small = (found[name]["bf16, no scaler"] for name in ("standard", "small_weight"))
    assert standard["final_scale"] is None and "flushed_weight_gradients" not in standard
    assert abs(standard["train_loss"] - found["standard"]["FP32"]["train_loss"]) < 0.02
    assert small["train_loss"] == standard["train_loss"], "bf16 has the exponents of fp32"
    assert "fp16" not in (out / "plots.gp").read_text(encoding="utf-8").partition("id = ")[2]


def test_all_types_in_one_table(settings):
    """Equal seeds give equal bits, independent of the other runs."""
    def runs(dtype):
        standard = settings("--net", "mlp", "--dtype", dtype, "--epochs", 0.01)[0]["standard"]
        return {name: {key: value for key, value in one.items() if key != "seconds"} for name, one in standard.items()}
    both, bf16 = runs("all"), runs("bf16")
    assert list(both) == ["FP32", "mixed, backoff", "mixed, lognormal", "mixed, S = 1", "bf16, no scaler"]
    assert bf16 == {name: both[name] for name in ("FP32", "bf16, no scaler")}


@pytest.mark.parametrize("word, scale", [("DYNAMIC", 2**16), ("backoff", 2**14), ("128", 128)])
def test_a_scaler_is_selected_by_name(settings, word, scale):
    found, _ = settings("--net", "mlp", "--loss-scale", word, "--epochs", 0.01)
    assert list(found["standard"]) == ["FP32", f"mixed, {word}"]
    assert found["standard"][f"mixed, {word}"]["final_scale"] == scale


UNITS, VERSES, WINDOW = 256, 32, 64  # units of the LSTM, sequences per batch, steps per window
DRAWN = random.Random(1)
WORDS = "and the lord said unto him in that day he shall not be".split()
LINES = [" ".join(DRAWN.choices(WORDS, k=DRAWN.randint(2, 30))) for _ in range(200)]


def batches_of(net: str, lines: list) -> int:
    """Every fiftieth line, starting at the first, is held out.  A batch of charlm has verses with
    equal numbers of windows; gpt reads all lines as one text."""
    sizes = [len(line) + 1 for i, line in enumerate(lines) if i % 50 != 0]
    if net == "gpt":
        return -(-sum(sizes) // (VERSES * WINDOW))
    counts = [-(-size // WINDOW) for size in sizes]
    return sum(windows * -(-counts.count(windows) // VERSES) for windows in set(counts))


@pytest.fixture(scope="module")
def on_text(build, run, tmp_path_factory):
    """on_text(net, lines, argument..., **how): report.json, its folder, and the output."""
    def demo(net, lines, *arguments, **how):
        demo_curves.skip_without_demo(build, *arguments, data=None)
        out = tmp_path_factory.mktemp(net)
        if lines is not None:
            (out / "text").write_text("\n".join(lines) + "\n", encoding="utf-8")
            arguments += ("--text", out / "text")
        said = run(build / "mpdemo", "--device", "host", "--net", net, "--full", *arguments, "--out", out, **how)
        return json.loads((out / "report.json").read_text(encoding="utf-8")), out, said
    return demo


@pytest.fixture(scope="module", params=[("charlm", 0.5), ("gpt", 2)], ids=["charlm", "gpt"])
def characters(on_text, request):
    """Runs by setting and name, folder, output, network and epochs."""
    net, epochs = request.param
    report, *others = on_text(net, LINES, "--dtype", "fp16", "--loss-scale", "none", "--epochs", epochs)
    settings, = (network["settings"] for network in report["networks"])
    return {one["id"]: {each["name"]: each for each in one["runs"]} for one in settings}, *others, net, epochs


def test_text_model_in_mixed_precision_matches_fp32(characters):
    fp32, mixed = characters[0]["standard"].values()
    assert fp32["test_bits_per_character"] < 4.5, "log2(96) = 6.6 before training"
    assert abs(mixed["test_bits_per_character"] - fp32["test_bits_per_character"]) < 0.02


def test_characters_with_a_small_weight_need_a_loss_scale(characters):
    fp32, mixed = characters[0]["small_weight"].values()
    standard = characters[0]["standard"]["FP32"]
    gap = fp32["test_bits_per_character"] - standard["test_bits_per_character"]
    if characters[3] == "charlm":
        assert fp32["text"] == standard["text"] and gap == 0, "powers of two cancel, in Adam's eps as well"
    assert abs(gap) < 0.02, "only the 1e-6 that clipping adds to the norm does not cancel"
    assert mixed["test_bits_per_character"] > fp32["test_bits_per_character"] + 0.5
    assert mixed["flushed_activation_gradients"] > 0.5


def test_every_window_is_used_in_a_step(characters):
    _, out, _, net, epochs = characters
    rows = (out / f"{net}_standard_training.dat").read_text(encoding="utf-8").split("\n\n")[0]
    assert batches_of(net, LINES) == (14 if net == "charlm" else 7)
    assert rows.count("\n") == batches_of(net, LINES) * epochs


def test_generated_text_is_printed(characters):
    fp32, mixed = (run["text"] for run in characters[0]["standard"].values())
    assert len(fp32) == len(mixed) == 600 and re.fullmatch(r"[ -~\n]+", fp32 + mixed)
    assert f"\n\n  FP32\n\n{fp32}\n\n  mixed, none\n\n{mixed}\n\n" in characters[2]


def test_memory_of_a_text_model(characters):
    """Adam has two moments, and an LSTM carries h and c."""
    memory, mixed = (characters[0]["standard"][name] for name in ("FP32", "mixed, none"))
    numel = 110336 if characters[3] == "gpt" else 96 * 64 + 4 * UNITS * (64 + UNITS + 2) + (UNITS + 1) * 96
    assert 4 * numel <= memory["parameter_bytes"] < 4 * numel + ALIGNED and memory["optimizer_bytes"] == 8 * numel
    assert memory["copy_bytes"] == 0 < mixed["copy_bytes"] <= 2 * numel + ALIGNED
    assert 4 * numel <= memory["gradient_bytes"] and mixed["gradient_bytes"] < memory["gradient_bytes"]
    assert memory["workspace_bytes"] > 0 and memory["activation_bytes"] > mixed["activation_bytes"]
    assert memory["state_bytes"] >= (0 if characters[3] == "gpt" else 2 * 4 * VERSES * UNITS + 4 * VERSES * WINDOW)
    assert memory["together_bytes"] == sum(value for key, value in memory.items() if key.endswith("_bytes")) / 2


def test_verse_labels_are_removed(on_text, tmp_path):
    program = tmp_path / "bible"
    # Including the label, a line would have two windows.
    program.write_text("#!/bin/sh\nfor verse in 1 2 3; do echo \"Ge1:$verse %s\"; done\n" % ("a" * (WINDOW - 1)),
                       encoding="utf-8")
    program.chmod(0o755)
    report, out, _ = on_text("charlm", None, "--loss-scale", "none", "--epochs", 1,
                             env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert report["data"] == "King James Bible"
    rows = (out / "charlm_standard_training.dat").read_text(encoding="utf-8").split("\n\n")[0]
    assert rows.count("\n") == 1


@pytest.mark.parametrize("text, message", [
    (None, "install the Debian package bible-kjv, or pass a text file"),
    ("", "text has fewer than two lines"),
    ("one\ntwo\nthr\u00e9\n", "text, line 3: contains a character that is not printable ASCII"),
])
def test_no_text(build, run, tmp_path, text, message):
    demo_curves.skip_without_demo(build, data=None)
    arguments, nowhere = [], tmp_path / "nowhere"
    if text is not None:
        (tmp_path / "text").write_text(text, encoding="utf-8")
        arguments = ["--text", tmp_path / "text"]
    said = run(build / "mpdemo", "--device", "host", "--net", "charlm", "--out", tmp_path, *arguments, code=1,
               env={"PATH": str(nowhere)})
    assert message in said and said.count("\n") == 1


@pytest.mark.parametrize("arguments, message", [
    ("--loss-scale backof", "Backoff, LogMax, lognormal, dynamic, none"),
    ("--loss-scale 0", "a loss scale must be positive and finite"),
    ("--dtype fp32", "--dtype: fp32 not in"),
    ("--net gru", "--net: gru not in"),
    ("--net charlm --ranks 2", "--net charlm requires --ranks 1"),
    ("--net gpt --ranks 2", "--net gpt requires --ranks 1"),
])
def test_wrong_options(build, run, arguments, message):
    demo_curves.skip_without_demo(build, arguments)
    assert message in run(build / "mpdemo", *arguments.split(), code=2)


# ---------------------------------------------------------------- damaged files


IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"


def idx(extents: list, elements: bytes, magic=b"\0\0\x08") -> bytes:
    return magic + bytes([len(extents)]) + b"".join(extent.to_bytes(4, "big") for extent in extents) + elements


@pytest.mark.parametrize("name, content, message", [
    (IMAGES, idx([60000, 28, 28], b"", b"\0\1\x08"), "is not an idx file of 3-dimensional bytes"),
    (IMAGES, idx([60000, 28], b""), "is not an idx file of 3-dimensional bytes"),
    (IMAGES, idx([2**32 - 1, 28, 28], b""), "has a dimension of 4294967295 instead of 60000"),
    (IMAGES, idx([60000, 28, 28], bytes(1000)), "is damaged: unexpected end of file"),
    (IMAGES, b"", "is not an idx file of 3-dimensional bytes"),
    (LABELS, idx([60000], bytes(59999) + b"\x0a"), "is damaged: label 10 is outside [0, 10)"),
    (LABELS, idx([60000], bytes(60001)), "is damaged: extra bytes after the last element"),
    (LABELS, None, "is missing: install"),
], ids=["type", "rank", "extent", "short", "empty", "label", "long", "missing"])
def test_damaged_images(build, run, tmp_path, name, content, message):
    demo_curves.skip_without_demo(build, "--net", "mlp")
    whole = {IMAGES: idx([60000, 28, 28], bytes(60000 * 28 * 28)), LABELS: idx([60000], bytes(60000))}
    for file, bytes_ in (whole | {name: content}).items():
        if bytes_ is not None:
            (tmp_path / file).write_bytes(gzip.compress(bytes_, 1))
    said = run(build / "mpdemo", "--device", "host", "--net", "mlp", "--data", tmp_path, "--out", tmp_path / "out", code=1)
    assert f"{tmp_path / name} {message}" in said


@pytest.mark.parametrize("place, mask", [(5000, 0x40), (0, 0)], ids=["a pixel", "end"])
def test_a_flipped_bit_of_compressed_data_is_found(build, run, tmp_path, place, mask):
    demo_curves.skip_without_demo(build, "--net", "mlp")
    # Stored blocks, in which every byte is a pixel: only the checksum detects a change.
    images = bytearray(gzip.compress(idx([60000, 28, 28], bytes(60000 * 28 * 28)), 0))
    images[place] ^= mask
    (tmp_path / IMAGES).write_bytes(images if mask else images[:-6])
    (tmp_path / LABELS).write_bytes(gzip.compress(idx([60000], bytes(60000)), 1))
    said = run(build / "mpdemo", "--device", "host", "--net", "mlp", "--data", tmp_path, code=1)
    assert f"{tmp_path / IMAGES} is damaged: " in said and said.count("\n") == 1


# ---------------------------------------------------------------- files and programs


def test_no_file_is_written_unless_a_folder_is_named(build, run, tmp_path):
    demo_curves.skip_without_demo(build)
    (tmp_path / "gnuplot").write_text("#!/bin/sh\n: > started\n", encoding="utf-8")
    (tmp_path / "gnuplot").chmod(0o755)
    said = run(build / "mpdemo", "--device", "host", "--net", "mlp", "--epochs", 0.01, cwd=tmp_path,
               env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert "Ordinary training" in said and "report.json" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["gnuplot"]


def test_programs_of_the_current_folder_are_not_started(build, run, tmp_path):
    demo_curves.skip_without_demo(build)
    trap = tmp_path / "trap"
    trap.mkdir()
    for name in ("gnuplot", "bible"):
        (trap / name).write_text(f"#!/bin/sh\n: > {tmp_path}/started\n", encoding="utf-8")
        (trap / name).chmod(0o755)
    env = {"PATH": f".::../trap:{tmp_path}/nowhere:"}
    said = run(build / "mpdemo", "--device", "host", "--net", "mlp", "--epochs", 0.01, "--out", tmp_path / "out",
               cwd=trap, env=env)
    assert "no plots: gnuplot" in said
    said = run(build / "mpdemo", "--device", "host", "--net", "charlm", cwd=trap, env=env, code=1)
    assert "the command `bible` prints no text" in said
    assert not (tmp_path / "started").exists()
