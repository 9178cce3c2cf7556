"""The peers of the step that are written in Python, as far as they go without PyTorch: on stand-ins of it."""
import io
import json
import types

import pytest
import torch_step
import torch_stub

APEX, TE = torch_step.ApexAdam, torch_step.TransformerEngineAdam


def answers(kind, *commands, torch=None):
    out = io.StringIO()
    torch_step.serve(torch or torch_stub.torch(), types.SimpleNamespace(type="cuda"), kind, commands, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_layouts():
    named = torch_step.parse_layout("x100=2500x100")
    assert named == ("x100", [2500] * 100), "the peer reads equal tensors"
    mixed = torch_step.parse_layout("resnet50=9408,64x2,4096")
    assert mixed == ("resnet50", [9408, 64, 64, 4096]), "the peer reads unequal tensors"


def test_torch():
    assert answers(torch_step.AdamW, "prepare a=4,2", "turn", "turn", "result")[-1] == {
        "peer": "torch 2.0.stub, eager", "batches": 2, "median_us": 125.0, "q1_us": 125.0, "q3_us": 125.0}  # 4 of 0.5 ms


@pytest.fixture(params=[(APEX, torch_stub.FusedAdam), (TE, torch_stub.TransformerEngineFusedAdam)],
                ids=["apex", "te"])
def peer(request, monkeypatch):
    """(what is timed, the optimizer that it finds)"""
    kind, optimizer = request.param
    torch_stub.install(monkeypatch, kind.MODULE, optimizer)
    optimizer.made.clear()
    yield request.param


def test_fused_adam(peer, monkeypatch):
    kind, optimizer = peer
    monkeypatch.setattr(torch_step.importlib.metadata, "version", lambda package: f"1.2 of {package}")
    prepared, turned, result = answers(kind, "prepare a=4,2x3", "turn", "result")
    assert prepared == turned == {}
    assert result["peer"] == f"{kind.NAME} 1.2 of {kind.PACKAGE}, torch 2.0.stub, eager"
    made = optimizer.made[-1]
    assert made.master_weights, "the optimizer keeps the master weights"
    assert [weight.numel() for weight in made.param_groups[0]["params"]] == [4, 2, 2, 2]
    # Every call finds the gradients of the first, though the step writes them back unscaled.
    assert made.scaler.init_scale == 1.0 and made.scaler.growth_interval == 2**31 - 1
    assert made.scaler.updates == made.param_groups[0]["step"] > 0, "every step moves the scale"


def test_skipped_steps_have_no_figure(peer, monkeypatch):
    kind, optimizer = peer
    monkeypatch.setattr(optimizer, "skips", True)
    assert answers(kind, "prepare a=4", "turn", "result")[-1] == {"error": "a step with finite gradients was skipped"}


@pytest.mark.parametrize("kind", [APEX, TE])
def test_absent(kind, monkeypatch):
    monkeypatch.setitem(torch_step.sys.modules, kind.MODULE.split(".")[0], None)
    (answer,) = answers(kind, "prepare a=4")
    assert answer["absent"] and answer["error"].startswith(f"{kind.NAME} cannot be used (")


def test_built_without_cuda(peer, monkeypatch):
    kind, optimizer = peer

    def refuse(*_, **__):
        raise RuntimeError('requires "cuda extensions"')

    monkeypatch.setattr(optimizer, "__init__", refuse)
    (answer,) = answers(kind, "prepare a=4")
    assert answer == {"error": f"{kind.NAME} cannot be used (requires 'cuda extensions')", "absent": False}


def test_out_of_memory(peer, monkeypatch):
    kind, _ = peer
    torch = torch_stub.torch()

    def refuse(*_, **__):
        raise torch.cuda.OutOfMemoryError

    torch.empty = refuse
    assert answers(kind, "prepare a=4", torch=torch) == [{"error": "not enough device memory"}]
