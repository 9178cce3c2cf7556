"""examples/c/fashion.c in Python: trains a perceptron on Fashion-MNIST, in fp32 or, by calling
graph.autocast, in mixed precision.

    fashion.py FOLDER [fp32|fp16|bf16 [STEPS]]

FOLDER contains train-images-idx3-ubyte and train-labels-idx1-ubyte, unpacked.
"""
import sys

import mpcore
import numpy

PIXELS, HIDDEN, CLASSES, BATCH = 784, 256, 10, 100

folder, low, steps = (sys.argv[1:] + ["fp16", "600"][len(sys.argv) - 2:])[:3]
images = numpy.fromfile(f"{folder}/train-images-idx3-ubyte", numpy.uint8, offset=16).reshape(-1, BATCH, PIXELS)
labels = numpy.fromfile(f"{folder}/train-labels-idx1-ubyte", numpy.uint8, offset=8).reshape(-1, BATCH)
steps = min(int(steps), len(images))

context = mpcore.Context()
graph = mpcore.Graph(context)
x, y = graph.input("x", (BATCH, PIXELS)), graph.input("labels", BATCH, "int32")
w1, b1 = graph.parameter("w", (PIXELS, HIDDEN)), graph.parameter("b", HIDDEN)
w2, b2 = graph.parameter("w", (HIDDEN, CLASSES)), graph.parameter("b", CLASSES)
hidden = graph.node("Relu", "relu", [graph.node("Linear", "fc1", [x, w1, b1])])
logits = graph.node("Linear", "fc2", [hidden, w2, b2])
loss = graph.node("SoftmaxXent", "loss", [logits, y])
graph.loss(loss)
if low != "fp32":
    # Mixed precision, also on a CPU, although it is not faster.
    graph.autocast(mpcore.Autocast(low, ignore_performance=True))
graph.compile()


def generate(state=1):
    """Yields small values from a linear congruential generator; the biases stay 0."""
    while True:
        state = (state * 1664525 + 1013904223) % 2**32
        yield ((state >> 24) - 127.5) / 2048


numbers = generate()
for w in (w1, w2):
    shape = graph.tensor(w).shape
    graph.write(w, numpy.fromiter(numbers, numpy.float32, shape[0] * shape[1]).reshape(shape))

optimizer = mpcore.Optimizer(context, "sgd", *graph.lists(), lr=0.1, beta1=0)
scaler = mpcore.Scaler(context, config=mpcore.Autocast.scaler_config(low))
x_batch, y_batch = context.zeros((BATCH, PIXELS)), context.zeros(BATCH, "int32")
graph.bind(x, x_batch)
graph.bind(y, y_batch)
total = numpy.float32(0)
for step in range(steps):
    x_batch.copy_from(images[step].astype(numpy.float32) / 256)
    y_batch.copy_from(labels[step].astype(numpy.int32))
    graph.forward("training")
    graph.backward(scaler)
    mpcore.scale_step(optimizer, scaler)
    if step >= steps - 100:  # average the last hundred losses
        total += graph.tensor(loss).data.numpy()
print(f"{low}: loss {float(total) / min(steps, 100):.4f}")
