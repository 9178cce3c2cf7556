# %% [markdown]
# # A training loop in mixed precision
#
# The network is logits = relu(x w1 + b1) w2.  Weights, activations and gradients are fp16, master
# weights and optimizer state fp32.  `examples/c/train.c` trains the same network on the same data;
# on the host target both print the same hash of the weights.  Requires only mpcore.

# %%
import array
import sys

import mpcore

BATCH, IN, HIDDEN, CLASSES, BROKEN_STEP, STEPS = 32, 24, 32, 8, 33, 120
context = mpcore.Context(sys.argv[1] if sys.argv[1:] else "auto")
print(context.name)

# %% [markdown]
# ## Data
# Noise around one of eight points, from a linear congruential generator.  Every value is a multiple
# of 2^-6, exact in fp16.


# %%
class Random:
    def __init__(self, state):
        self.state = state

    def next(self):
        """Returns the upper 8 bits, -128 to 127."""
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 24) - 128


class Floats:
    """A Python array with a shape; replaces numpy.array."""

    def __init__(self, values, shape, typestr="<f4"):
        self.values = array.array("f" if typestr == "<f4" else "i", values)
        self.__array_interface__ = {"shape": shape, "typestr": typestr, "version": 3,
                                    "data": (self.values.buffer_info()[0], True)}


def load_batch(random, step):
    x, labels = [], []
    for _ in range(BATCH):
        label = (random.next() + 128) % CLASSES
        labels.append(label)
        center = Random(label)
        for _ in range(IN):
            x.append((center.next() + random.next()) / 64)
    if step == BROKEN_STEP:
        x[0] = 1e6  # infinity in fp16
    return Floats(x, (BATCH, IN)), Floats(labels, (BATCH,), "<i4")


# %% [markdown]
# ## Network

# %%
shapes = {"w1": (IN, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, CLASSES)}
master = {name: context.zeros(shape, "float32") for name, shape in shapes.items()}
model = {name: context.zeros(shape, "float16") for name, shape in shapes.items()}
# The bias gradient is computed by an epilogue, in fp32.
grad = {name: context.zeros(shape, "float32" if name == "b1" else "float16")
        for name, shape in shapes.items()}

random = Random(1)
for name in ("w1", "w2"):
    rows, columns = shapes[name]
    master[name].copy_from(Floats([random.next() / 512 for _ in range(rows * columns)], shapes[name]))

x = context.zeros((BATCH, IN), "float16")
labels = context.zeros(BATCH, "int32")
h = context.zeros((BATCH, HIDDEN), "float16")
dh = context.zeros((BATCH, HIDDEN), "float16")
logits = context.zeros((BATCH, CLASSES), "float16")
row_loss, loss = context.zeros(BATCH), context.zeros(1)

lists = [mpcore.TensorList(context, list(tensors.values())) for tensors in (grad, master, model)]
optimizer = mpcore.Optimizer(context, "adamw", *lists, lr=0.015625, weight_decay=0.0078125)
optimizer.write_model()  # the fp16 weights from the masters
scaler = mpcore.Scaler(context, "backoff", growth_interval=8)

# %% [markdown]
# ## Training
# To show skipped steps, the scaler grows after every 8 clean steps until gradients overflow, and
# one sample of step 33 is broken.

# %%
for step in range(1, STEPS + 1):
    new_x, new_labels = load_batch(random, step)
    x.copy_from(new_x)
    labels.copy_from(new_labels)

    mpcore.gemm(context, x, model["w1"], h, bias=model["b1"], activation="relu")
    mpcore.gemm(context, h, model["w2"], logits)

    # Computes the loss and replaces the logits with their gradient times S.
    mpcore.softmax_xent(context, logits, labels, row_loss=row_loss, loss=loss, dlogits=logits,
                        loss_scale=scaler.scale)

    mpcore.gemm(context, h.T, logits, grad["w2"])
    # relu'(z) = relu'(relu(z)), so z is not stored.
    mpcore.gemm(context, logits, model["w2"].T, dh, activation="drelu", aux=h, dbias=grad["b1"],
                found_inf=scaler.found_inf)
    mpcore.gemm(context, x.T, dh, grad["w1"])

    mpcore.scale_step(optimizer, scaler, max_grad_norm=1.0)

    if step % 10 == 0:  # the host waits only here
        state = scaler.state()
        value = array.array("f", loss.tobytes())[0]
        print(f"step {step:3}  loss {value:.4f}  scale {state.scale:g}  skipped {state.skipped}")

# %% [markdown]
# ## Result
# FNV-1a hash of the bytes of the master weights.

# %%
digest = 0xCBF29CE484222325
for tensor in master.values():
    for byte in tensor.tobytes():
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
print(f"weights {digest:016x}")
