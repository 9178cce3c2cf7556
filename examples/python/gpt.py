"""examples/c/gpt.c in Python: trains its small GPT-2 on a text, with the same bits.

    gpt.py FILE [fp32|fp16|bf16 [STEPS]]
"""
import sys

import mpcore
import numpy

LAYERS, WIDTH, HEADS, LENGTH, CHARACTERS, BATCH = 2, 64, 2, 64, 96, 16

if not 2 <= len(sys.argv) <= 4 or sys.argv[2:3] not in ([], ["fp32"], ["fp16"], ["bf16"]):
    sys.exit(__doc__)
path, low, steps = (sys.argv[1:] + ["fp16", "200"][len(sys.argv) - 2:])[:3]
steps = int(steps)
bytes_of_text = numpy.fromfile(path, numpy.uint8).astype(numpy.int32)
is_printable = (bytes_of_text >= 32) & (bytes_of_text <= 126)
text = numpy.where(bytes_of_text == 10, 0, numpy.where(is_printable, bytes_of_text - 31, 1)).astype(numpy.int32)
if len(text) <= LENGTH:
    sys.exit("FILE must be longer than a context")

context = mpcore.Context()
graph = mpcore.Graph(context)
parameters = []


def parameter(name, *shape):
    parameters.append((name, shape, graph.parameter(name, shape)))
    return parameters[-1][2]


def layer(x, name, inputs, outputs):
    """Adds a Linear or, if inputs is 0, a LayerNorm, and its parameters."""
    w = parameter(f"{name}.weight", *([inputs, outputs] if inputs else [outputs]))
    return graph.node("Linear" if inputs else "LayerNorm", name, [x, w, parameter(f"{name}.bias", outputs)])


tokens, labels = (graph.input(name, (BATCH, LENGTH), "int32") for name in ("tokens", "labels"))
wte = parameter("wte.weight", CHARACTERS, WIDTH)
wpe = parameter("wpe.weight", LENGTH, WIDTH)
x = graph.node("Add", "positions", [graph.node("Embedding", "wte", [wte, tokens]), wpe])
for i in range(LAYERS):
    h = layer(layer(x, f"h.{i}.ln_1", 0, WIDTH), f"h.{i}.attn.c_attn", WIDTH, 3 * WIDTH)
    h = graph.node("Attention", f"h.{i}.attn", [h], heads=HEADS, causal=1)
    h = layer(h, f"h.{i}.attn.c_proj", WIDTH, WIDTH)
    x = graph.node("Add", f"h.{i}.attn/residual", [x, h])
    h = layer(layer(x, f"h.{i}.ln_2", 0, WIDTH), f"h.{i}.mlp.c_fc", WIDTH, 4 * WIDTH)
    h = layer(graph.node("Gelu", f"h.{i}.mlp.gelu", [h]), f"h.{i}.mlp.c_proj", 4 * WIDTH, WIDTH)
    x = graph.node("Add", f"h.{i}.mlp/residual", [x, h])
loss = graph.node("LinearXent", "loss", [layer(x, "ln_f", 0, WIDTH), wte, None, labels])
graph.loss(loss)
if low != "fp32":
    graph.autocast(mpcore.Autocast(low, ignore_performance=True))
graph.compile()


def generate(state, bits):
    """Yields the upper bits of a linear congruential generator."""
    while True:
        state = (state * 1664525 + 1013904223) % 2**32
        yield state >> (32 - bits)


numbers = generate(1, 8)
for name, shape, tensor in parameters:
    values = numpy.full(shape, name.endswith("weight"), numpy.float32)
    if len(shape) == 2:  # the sum of 12 bytes is approximately normal
        deviation = numpy.float32(0.02 / numpy.sqrt(2 * LAYERS if "c_proj" in name else 1))
        sums = numpy.fromiter(numbers, numpy.int32, values.size * 12).reshape(*shape, 12).sum(-1) - 1530
        values = sums.astype(numpy.float32) / numpy.float32(256) * deviation
    graph.write(tensor, values)

rate = numpy.float32(0.01)
group = dict(lr=rate, beta2=0.95, lr_schedule="cosine", warmup_steps=steps // 10, decay_steps=steps - steps // 10,
             lr_end=rate / numpy.float32(10))
optimizer = mpcore.Optimizer(context, "adamw", *graph.lists(),
                             groups=[dict(group, weight_decay=0.1), dict(group, weight_decay=0)],
                             tensor_group=[int(len(shape) == 1) for _, shape, _ in parameters])
scaler = mpcore.Scaler(context, config=mpcore.Autocast.scaler_config(low))
batch = [context.zeros((BATCH, LENGTH), "int32") for _ in range(2)]
graph.bind(tokens, batch[0])
graph.bind(labels, batch[1])
for step in range(1, steps + 1):
    numbers = generate(step * 2654435761 % 2**32, 24)
    first = [(next(numbers) << 24 | next(numbers)) % (len(text) - LENGTH) for _ in range(BATCH)]
    for shift in range(2):
        batch[shift].copy_from(numpy.stack([text[i + shift:i + shift + LENGTH] for i in first]))
    graph.forward("training")
    graph.backward(scaler)
    mpcore.scale_step(optimizer, scaler, max_grad_norm=1)
print(f"step {steps}  loss {float(graph.tensor(loss).data.numpy()):.4f}")

digest = 0xCBF29CE484222325  # FNV-1a hash of the weights
for _, _, tensor in parameters:
    for byte in graph.tensor(tensor).data.tobytes():
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
print(f"weights {digest:016x}")
