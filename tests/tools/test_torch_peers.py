"""Tests of the Python peers of the step, of recurrent layers and of layers of transformers, with
stubs of PyTorch; of the latter also with PyTorch on the CPU."""
import io
import json
import sys
import types

import pytest
import torch_rnn
import torch_step
import torch_stub
import torch_transformer


def answers(*commands, torch=None):
    out = io.StringIO()
    torch_step.serve(torch or torch_stub.torch(), types.SimpleNamespace(type="cuda"), commands, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_layouts():
    named = torch_step.parse_layout("x100=2500x100")
    assert named == ("x100", [2500] * 100), "the peer reads equal tensors"
    mixed = torch_step.parse_layout("resnet50=9408,64x2,4096")
    assert mixed == ("resnet50", [9408, 64, 64, 4096]), "the peer reads unequal tensors"


def test_torch():
    assert answers("prepare a=4,2", "turn", "turn", "result")[-1] == {
        # Two batches of 4 calls of 0.5 ms.
        "peer": "torch 2.0.stub, eager", "batches": 2, "median_us": 125.0, "q1_us": 125.0, "q3_us": 125.0}


def test_skipped_steps_have_no_time(monkeypatch):
    monkeypatch.setattr(torch_stub.AdamW, "skips", True)
    assert answers("prepare a=4", "turn", "result")[-1] == {"error": "a step with finite gradients was skipped"}


def test_built_without_cuda(monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError('requires "cuda extensions"')

    monkeypatch.setattr(torch_stub.AdamW, "__init__", refuse)
    (answer,) = answers("prepare a=4")
    assert answer == {"error": "torch cannot be used (requires 'cuda extensions')", "absent": False}


def test_out_of_memory():
    torch = torch_stub.torch()

    def refuse(*_, **__):
        raise torch.cuda.OutOfMemoryError

    torch.empty = refuse
    assert answers("prepare a=4", torch=torch) == [{"error": "not enough device memory"}]


@pytest.fixture
def layers():
    torch_stub.Layer.made.clear()
    torch_stub.Autograd.asked.clear()
    return torch_stub.Layer.made


def recurrent(*commands):
    out = io.StringIO()
    torch_rnn.serve(torch_stub.torch(), types.SimpleNamespace(type="cuda"), commands, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("cell, name", [("lstm", "LSTM"), ("gru", "GRU"), ("vanilla", "RNN")])
@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
def test_recurrent_layer(layers, cell, name, dtype):
    answer = recurrent(f"prepare {cell} 32 2 5 {dtype} fprop training", "turn", "turn", "result")[-1]
    # A batch of 2 ms has 4 calls of 0.5 ms.
    assert answer == {"peer": f"torch 2.0.stub, nn.{name}", "batches": 2, "median_us": 125.0, "q1_us": 125.0, "q3_us": 125.0}
    assert {layer.name for layer in layers} == {name} and layers[0].sizes == (32, 32)
    assert layers[0].dtype == {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}[dtype]
    assert layers[0].nonlinearity == ("relu" if cell == "vanilla" else "tanh"), "DeepBench's vanilla cell is ReLU"
    # In training, forward saves data for gradients even if none is computed.
    assert layers[0].is_training and layers[0].wants_grad and not torch_stub.Autograd.asked


def test_recurrent_inference(layers):
    recurrent("prepare gru 32 2 5 fp16 fprop inference", "turn", "result")
    assert not layers[0].is_training and not layers[0].wants_grad


@pytest.mark.parametrize("part, wanted", [("dgrad", 2), ("wgrad", 6)])
def test_gradients_of_recurrent_layers(layers, part, wanted):
    """Each call has a separate forward pass, and computes the gradients of its part."""
    recurrent(f"prepare lstm 32 2 5 fp16 {part} training", "turn", "result")
    assert set(torch_stub.Autograd.asked) == {wanted}, "x and h_0; wgrad also two weights and two biases"
    assert layers[0].wants_grad == (part == "wgrad")
    assert sum(layer.forwards for layer in layers) == len(torch_stub.Autograd.asked)


def transformer(library, *commands):
    out = io.StringIO()
    torch_transformer.serve(torch_stub.torch(), types.SimpleNamespace(type="cuda"), library, commands, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("part", ["forward", "backward"])
def test_layer_of_a_transformer(layers, part):
    answer = transformer("torch", f"prepare norm fp16 {part} rms n8 g1 c16", "turn", "turn", "result")[-1]
    assert answer == {"peer": "torch 2.0.stub, torch", "batches": 2, "median_us": 125.0, "q1_us": 125.0, "q3_us": 125.0,
                      "deterministic": True, "workspace_bytes": 512}
    # A backward pass computes the gradients of x and gamma.
    assert set(torch_stub.Autograd.asked) == ({2} if part == "backward" else set())


@pytest.mark.parametrize("library, problem, error", [
    ("flash", "attention fp16 forward packed b1 l8 h2 kv2 d8 dv8", "has no form packed"),
    ("cudnn", "attention fp16 forward window b1 l8 h2 kv2 d8 dv8", "has no form window"),
    ("liger", "gated fp16 forward geglu n8 f8 k8", "tanh form"),
])
def test_layers_that_a_library_lacks(library, problem, error):
    (answer,) = transformer(library, f"prepare {problem}")
    assert error in answer["error"] and "absent" not in answer


def test_liger_is_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "liger_kernel", None)
    (answer,) = transformer("liger", "prepare norm fp16 forward rms n8 g1 c16")
    assert answer["absent"] and answer["error"].startswith("liger cannot be used (")


@pytest.mark.parametrize("library, problem, outputs", [
    ("flash", "attention fp32 {} full b2 l8 h4 kv4 d8 dv8", [(2, 4, 8, 8)]),
    ("flash", "attention fp32 {} causal b2 l8 h4 kv4 d8 dv8", [(2, 4, 8, 8)]),
    ("torch", "norm fp32 {} layer n6 g2 c16", [(6, 2, 16)]),
    ("torch", "norm fp32 {} rms+residual n6 g2 c16", [(6, 2, 16)] * 2),
    ("torch", "linear_xent fp32 {} labels n6 w8 c16", [()]),
    ("torch", "gated fp32 {} swiglu n6 f8 k16", [(6, 8)]),
    ("torch", "gated fp32 {} geglu n6 f8 k16", [(6, 8)]),
])
@pytest.mark.parametrize("part", ["forward", "backward"])
def test_layers_with_torch(library, problem, outputs, part):
    torch = pytest.importorskip("torch", reason="layers of torch on the CPU (no torch)")
    parsed = torch_transformer.Problem(problem.format(part))
    layer = torch_transformer.LAYERS[library][parsed.suite](torch, torch.device("cpu"), parsed)
    output = layer.forward()
    assert [tuple(each.shape) for each in (output if isinstance(output, tuple) else (output,))] == outputs
    assert bool(layer.inputs) == (part == "backward")
    if part == "backward":
        layer.backward(output)
