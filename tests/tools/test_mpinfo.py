"""Tests of mpinfo's output for the target under test."""
import json
import os
import re

import pytest


@pytest.fixture(scope="module")
def mpinfo(build, run, target):
    """mpinfo(argument..., code=0): output for the target under test."""
    return lambda *arguments, **how: run(build / "mpinfo", "--device", target, *arguments, **how)


@pytest.fixture(scope="module")
def as_json(mpinfo):
    return lambda *arguments, **how: json.loads(mpinfo("--json", *arguments, **how))


def test_text(build, run):
    said = run(build / "mpinfo")
    assert "targets: host" in said and "\n  host  " in said


def test_machine(as_json):
    said = as_json()
    assert said["version"] == said["header_version"]
    cpu, *others = said["devices"]
    assert (cpu["device"], cpu["target"]) == ("host", "host")
    assert others and all("name" in one or one["reason"] for one in others), "a GPU or why there is none"
    if "SOFTGPU_ARCH" in os.environ:  # the name shows that it is not hardware
        assert re.fullmatch(rf"softgpu \w+ \(sm_{os.environ['SOFTGPU_ARCH']}\)", others[0]["name"])


def test_environment(root, run, as_json):
    said = {one["name"]: one["value"] for one in as_json(env={"MP_LOG": "info"})["environment"]}
    assert said["MP_LOG"] == "info"
    # mpinfo lists every variable that the library reads: quoted names in the sources, without API
    # constants.
    sources = [path for folder in ("base", "capi", "graph", "host", "kernels")
               for path in (root / folder).rglob("*") if path.is_file()]
    constants = set(run(root / "bindings/generate/generate", "--list", "constants").split())
    quoted = {name for path in sources for name in re.findall(r'"(MP_[A-Z_0-9]+)"', path.read_text(encoding="utf-8"))}
    assert quoted - constants == set(said) - constants


def test_gemm(as_json, mpinfo):
    problem = ["gemm", 512, 256, 1000, "--op", "TN", "--dtype", "bf16", "--out", "fp32"]
    product = as_json(*problem)["problems"][0]
    assert product["problem"] == "GEMM 512 x 256 x 1000, op TN, bf16 to fp32"
    times = [one["predicted_us"] for one in product["kernels"] if "reason" not in one]
    assert len(times) > 10 and times == sorted(times), "ranks by predicted time"
    reasons = [one["reason"] for one in product["kernels"] if "reason" in one]
    assert reasons and all(reasons)
    assert f"  {product['kernels'][0]['name']}  <- selected" in mpinfo(*problem)


def test_explain(as_json, mpinfo):
    text = mpinfo("explain", "gemm", 512, 256, 1000, "--op", "TN")
    best = as_json("gemm", 512, 256, 1000, "--op", "TN")["problems"][0]["kernels"]
    assert f"kernel        {best[0]['name']}\n" in text
    assert "next candidates\n" in text and f"  {best[1]['name']}  " in text
    assert re.search(r"  tiles: main loops +[\d.]+ us\n", text)
    passes = as_json("explain", "conv", 8, 14, 14, 32, 64, 3, 3)["problems"]
    assert len(passes) == 3 and all(any("predicted" in line for line in one["plan"]) for one in passes)


@pytest.mark.parametrize("options, reason", [
    ("64 --dtype fp16", ""), ("60 --dtype fp16", "requires head_dim and head_dim_v that are multiples of 8"),
    ("64 --head-dim-v 12 --dtype fp16", "requires head_dim and head_dim_v that are multiples of 8"),
    ("64 --dtype fp32", "requires FP16")])
def test_attention(as_json, mpinfo, target, options, reason):
    problem = ["attention", 2, 6, 200, 70, *options.split(), "--kv-heads", 3]
    first, second = as_json(*problem)["problems"][0]["kernels"]
    is_plain = target == "host" or reason != ""
    names = ["attention_plain", "attention_mma"]
    assert [first["name"], second["name"]] == names if is_plain else names[::-1]
    found = second.get("reason", "")
    assert first["workspace_bytes"] == 4 * 2 * 6 * 200 and found.startswith(reason) and bool(found) == bool(reason)
    text = mpinfo("explain", *problem)
    assert text.count(f"kernel        {first['name']}\n") == 2, "both passes"
    assert text.count(f"next candidates\n  {second['name']}  {found or 'is slower'}\n") == 2
    # Blocks: tiles of 32 or 128 queries, or of 32 or 128 keys, x sequences x heads.
    launches = [("forward", 84, "32 x 128", 40064), ("dq", 84, "32 x 128", 40064), ("dkv", 18, "32 x 128", 40064)] if is_plain else \
        [("forward", 24, "128 x 64", 32768), ("dq", 24, "128 x 32", 49152), ("dkv", 6, "128 x 32", 49152)]
    suffix = first["name"].removeprefix("attention")
    for name, blocks, tile, smem in launches:
        assert f"  attention_{name}{suffix}  {blocks} blocks, tile {tile}, shared memory {smem} bytes\n" in text
    assert "workspace     0 bytes\n" in text and "workspace     9600 bytes\n" in text


def test_code_for_an_older_architecture(as_json, mpinfo):
    """Kernels whose bodies are empty in the loaded code are not selected."""
    if int(os.environ.get("SOFTGPU_ARCH", 0)) < 80:
        pytest.skip("code for an older architecture than the device (requires the software device)")
    env = {"SOFTGPU_CODE": "75"}
    device = as_json(env=env)["devices"][1]
    assert (device["arch"], device["smem_per_block"]) == (75, 65536)
    for problem in (["attention", 1, 1, 64, 64, 64], ["gemm", 64, 64, 64], ["conv", 1, 8, 8, 8, 8, 1, 1]):
        kernels = as_json(*problem, "--dtype", "bf16", env=env)["problems"][0]["kernels"]
        runnable = [kernel["name"] for kernel in kernels if "reason" not in kernel]
        assert runnable and not [name for name in runnable if re.search("mma", name)]


def test_alignment(as_json):
    workspace = lambda ld_a: {  # noqa: E731
        one["name"]: one["workspace_bytes"]
        for one in as_json("gemm", 512, 256, 1000, "--lda", ld_a)["problems"][0]["kernels"] if "reason" not in one}
    aligned, copied = workspace(1000), workspace(1001)
    if "wgmma_128x256x64_s4" not in aligned:
        pytest.skip("a copy of A for TMA (this device has no wgmma)")
    assert copied["wgmma_128x256x64_s4"] == aligned["wgmma_128x256x64_s4"] + 512 * 1000 * 2, "A is copied"


def test_conv(as_json):
    assert len(as_json("conv", 8, 14, 14, 32, 64, 3, 3, "--pad", 1)["problems"]) == 3, "a convolution has three passes"
    depthwise = as_json("conv", 8, 14, 14, 32, 32, 3, 3, "--groups", 32, "--pass", "dgrad")["problems"][0]["kernels"]
    assert any(one["name"] == "conv_depthwise" and "reason" not in one for one in depthwise)


def test_all_shows_more(mpinfo):
    problem = ["gemm", 4096, 4096, 4096]
    assert mpinfo(*problem, "--all").count("\n") > mpinfo(*problem).count("\n") + 20


def test_library_warnings_are_printed(mpinfo, tmp_path):
    (tmp_path / "table").write_text("no table\n")
    said = mpinfo("gemm", 64, 64, 64, env={"MP_GEMM_TUNING": str(tmp_path / "table"), "MP_LOG": "warn"})
    assert str(tmp_path / "table") in said


@pytest.mark.parametrize("arguments, code, message", [
    ("--jsno", 2, "not expected: --jsno"),
    ("gemv", 2, "not expected: gemv"),
    ("gemm 3 4", 2, "K is required"),
    ("gemm 3 4 5 6", 2, "not expected: 6"),
    ("gemm 3 4 x", 2, "K = x: must be an integer of at least 0"),
    ("gemm -3 4 5", 2, "M = -3: must be an integer of at least 0"),
    ("conv 3000000000 1 1 1 1 1 1", 2, "N = 3000000000: out of range"),
    ("gemm 3 4 5 --dtype", 2, "--dtype"),
    ("gemm 3 4 5 --dtype fp8", 2, "--dtype: fp8 not in"),
    ("gemm 3 4 5 --op XX", 2, "--op: XX not in"),
    ("gemm 3 4 5 --pad 1", 2, "--pad"),
    ("gemm 3 4 5 --lda 1", 1, "ld_a = 1 is smaller than k = 5"),  # message of the library
    ("gemm 0 4 5", 1, "an empty problem requires no kernel"),
    ("attention 1 2 3 4", 2, "D is required"),
    ("attention 1 4 3 3 8 --kv-heads 3", 1, "kv_heads = 3 must divide heads = 4"),
])
def test_wrong_arguments(mpinfo, arguments, code, message):
    assert message in mpinfo(*arguments.split(), code=code)
