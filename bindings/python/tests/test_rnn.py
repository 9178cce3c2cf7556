"""Recurrent layers: RELU cells on small integers, whose sums are exact, compared with plain loops;
other cells compared with torch, if installed."""

import math
import unittest

import mpcore
from hosts import Case, Fleeting, FleetingCopy, Floats, context, integers, needs_host, values

try:
    import torch
except ImportError:
    torch = None

T, N, I, H, LAYERS = 4, 3, 2, 3, 2
LENGTHS = [4, 2, 1]  # descending, as packed sequences require
BATCH_SIZES = [3, 2, 1, 1]


class Loop:
    """A bidirectional network of RELU cells and its gradients, computed per sequence and unit.  All
    tensors are dicts from indices to numbers: x[t, n, i], h0[layer * 2 + direction, n, j],
    w[name][row, column]."""

    def __init__(self, data, lengths):
        self.data, self.lengths = data, lengths
        self.y, self.hn, self.dx, self.dh0 = {}, {}, {}, {}
        self.dw = {name: dict.fromkeys(w, 0) for name, w in data["weights"].items()}
        inputs, outputs = [data["x"]], []
        for layer in range(LAYERS):
            out = {(t, n, j): 0 for t in range(T) for n in range(N) for j in range(2 * H)}
            for direction in range(2):
                for n in range(N):
                    self.forward(layer, direction, n, inputs[-1], out)
            inputs.append(out)
        self.y = inputs[-1]
        dy = data["dy"]
        for layer in reversed(range(LAYERS)):
            below = dict.fromkeys(inputs[layer], 0)
            for direction in range(2):
                for n in range(N):
                    self.backward(layer, direction, n, inputs[layer], inputs[layer + 1], dy, below)
            dy = below
        self.dx = dy

    def names(self, layer, direction):
        end = f"_l{layer}" + "_reverse" * direction
        return [f"{kind}{end}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def steps(self, direction, n):
        steps = list(range(self.lengths[n]))
        return steps[::-1] if direction else steps

    def forward(self, layer, direction, n, x, out):
        w_ih, w_hh, b_ih, b_hh = [self.data["weights"][name] for name in self.names(layer, direction)]
        h = [self.data["h0"][layer * 2 + direction, n, j] for j in range(H)]
        for t in self.steps(direction, n):
            h = [max(0, b_ih[j,] + b_hh[j,] + sum(w_ih[j, i] * x[t, n, i] for i in range(I if layer == 0 else 2 * H)) +
                     sum(w_hh[j, k] * h[k] for k in range(H))) for j in range(H)]
            for j in range(H):
                out[t, n, direction * H + j] = h[j]
        for j in range(H):
            self.hn[layer * 2 + direction, n, j] = h[j]

    def backward(self, layer, direction, n, x, y, dy, below):
        names, state = self.names(layer, direction), layer * 2 + direction
        w_ih, w_hh = [self.data["weights"][name] for name in names[:2]]
        dw_ih, dw_hh, db_ih, db_hh = [self.dw[name] for name in names]
        steps = self.steps(direction, n)
        dh = [self.data["dhn"][state, n, j] for j in range(H)]
        for at in reversed(range(len(steps))):
            t = steps[at]
            before = [y[steps[at - 1], n, direction * H + k] if at else self.data["h0"][state, n, k] for k in range(H)]
            da = [(dh[j] + dy[t, n, direction * H + j]) * (y[t, n, direction * H + j] > 0) for j in range(H)]
            dh = [sum(da[j] * w_hh[j, k] for j in range(H)) for k in range(H)]
            for j in range(H):
                db_ih[j,] += da[j]
                db_hh[j,] += da[j]
                for k in range(H):
                    dw_hh[j, k] += da[j] * before[k]
                for i in range(I if layer == 0 else 2 * H):
                    dw_ih[j, i] += da[j] * x[t, n, i]
                    below[t, n, i] += da[j] * w_ih[j, i]
        for k in range(H):
            self.dh0[state, n, k] = dh[k]


def numbered(numbers, shape):
    """Dict from the indices of a dense array to its elements."""
    keys = [()]
    for extent in shape:
        keys = [key + (i,) for key in keys for i in range(extent)]
    return dict(zip(keys, numbers))


class Relu(Case):
    def rnn(self, dtype="fp32", x_shape=(T, N, I), **options):
        return mpcore.Rnn(self.context, "relu", x_shape, H, dtype, layers=LAYERS, bidirectional=True, **options)

    def data(self, rnn):
        """Operands of a training step; weights of -1, 0 and 1 keep sums small."""
        def tensor(shape, seed, most=4):
            return numbered([max(-most, min(most, v)) for v in integers(math.prod(shape), seed)], shape)

        states = (2 * LAYERS, N, H)
        weights = {name: tensor(shape, seed, 1) for seed, (name, shape) in enumerate(rnn.weight_shapes.items())}
        return {"x": tensor((T, N, I), 1, 2), "h0": tensor(states, 2, 2), "weights": weights,
                "dy": tensor((T, N, 2 * H), 3, 2), "dhn": tensor(states, 4, 2)}

    def dense(self, numbers, dtype="fp32"):
        shape = tuple(extent + 1 for extent in max(numbers))
        return self.array(numbers.values(), shape, dtype)

    def weights(self, data, dtype="fp32"):
        return {name: self.dense(w, dtype if "weight" in name else "fp32") for name, w in data["weights"].items()}

    def equal(self, got, wanted, keys=None):
        got = self.context.array(got, "fp32")
        self.assertEqual(values(got), [wanted[key] for key in keys or wanted])

    def check_passes(self, rnn, order, shape, **given):
        """Runs a training step and inference on sequences stored in this order of (t, n)."""
        data = self.data(rnn)
        loop = Loop(data, LENGTHS if given else [T] * N)
        keys = {columns: [(t, n, i) for t, n in order for i in range(columns)] for columns in (I, 2 * H)}

        def steps(numbers, columns):
            return self.array([numbers[key] for key in keys[columns]], shape + (columns,), rnn.dtype)

        weights, h0 = self.weights(data, rnn.dtype), self.dense(data["h0"], rnn.dtype)
        x, dy = steps(data["x"], I), steps(data["dy"], 2 * H)
        step = rnn.forward(x, weights, h0=h0, **given)
        self.assertEqual((step.y.shape, step.hn.shape, step.cn), (shape + (2 * H,), rnn.state_shape, None))
        self.equal(step.y, loop.y, keys[2 * H])
        self.equal(step.hn, loop.hn, sorted(loop.hn))
        found_inf, amax = self.context.zeros(1), self.context.zeros(1)
        dx, dh0, dc0 = step.backward_data(dy, dhn=self.dense(data["dhn"], rnn.dtype), found_inf=found_inf)
        self.assertIsNone(dc0)
        self.equal(dx, loop.dx, keys[I])
        self.equal(dh0, loop.dh0, sorted(loop.dh0))
        grads = step.backward_weights(found_inf=found_inf, amax=amax)
        self.assertEqual(list(grads), list(rnn.weight_shapes))
        for name, grad in grads.items():
            self.assertEqual(grad.shape, rnn.weight_shapes[name])
            self.equal(grad, loop.dw[name])
        self.assertEqual(values(found_inf), [0])
        self.assertEqual(values(amax), [max(abs(v) for grad in loop.dw.values() for v in grad.values())])
        y, hn, cn = rnn.inference(x, weights, h0=h0, hn=h0, **given)
        self.assertTrue(hn is h0 and cn is None)
        self.equal(y, loop.y, keys[2 * H])
        self.equal(hn, loop.hn, sorted(loop.hn))

    def test_time_major(self):
        self.check_passes(self.rnn(), [(t, n) for t in range(T) for n in range(N)], (T, N))

    def test_batch_first_in_16_bits(self):
        rnn = self.rnn("fp16", (N, T, I), batch_first=True, dtype_dw="fp32")
        self.check_passes(rnn, [(t, n) for n in range(N) for t in range(T)], (N, T))

    def test_lengths(self):
        lengths = self.context.array(Floats(LENGTHS, (N,), "<i4"))
        self.check_passes(self.rnn(), [(t, n) for t in range(T) for n in range(N)], (T, N), lengths=lengths)

    def test_packed(self):
        order = [(t, n) for t, size in enumerate(BATCH_SIZES) for n in range(size)]
        for options in ({}, {"x_shape": (N, T, I), "batch_first": True}):
            self.check_passes(self.rnn(**options), order, (len(order),), batch_sizes=BATCH_SIZES)

    def test_outputs_are_written_to_given_arrays(self):
        rnn, context = self.rnn(), self.context
        data = self.data(rnn)
        x, weights = self.dense(data["x"]), self.weights(data)
        y, hn = context.zeros(rnn.y_shape), context.zeros(rnn.state_shape)
        reserve = context.empty(rnn.sizes.reserve_bytes, "uint8")
        step = rnn.forward(x, weights, y=y, hn=hn, reserve=reserve)
        self.assertTrue(step.y is y and step.hn is hn)
        dh0 = context.zeros(rnn.state_shape)
        dy = self.dense(data["dy"])
        got = step.backward_data(dy, dh0=dh0, needs_dx=False)
        self.assertTrue(got[0] is None and got[1] is dh0)
        grads = step.backward_weights()
        some = {"weight_hh_l1": self.array([1] * H * H, (H, H))}
        again = rnn.forward(x, weights, reserve=reserve)
        self.assertEqual(again.backward_data(dy)[1], None)  # without h0
        self.assertIs(again.backward_weights(some, accumulate=True), some)
        self.assertEqual(values(some["weight_hh_l1"]), [v + 1 for v in values(grads["weight_hh_l1"])])

    def test_skip_input_without_biases(self):
        """Equals an identity weight_ih and biases of 0."""
        results = []
        for options in ({}, {"skip_input": True, "bias": False}):
            rnn = mpcore.Rnn(self.context, "relu", (T, N, H), H, "fp32", **options)
            weights = {"weight_hh_l0": self.array([1, 0, -1, 0, 1, 0, -1, 1, 0], (H, H))}
            if not options:
                weights["weight_ih_l0"] = self.array([1, 0, 0, 0, 1, 0, 0, 0, 1], (H, H))
                weights.update((name, self.context.zeros(H)) for name in ("bias_ih_l0", "bias_hh_l0"))
            self.assertEqual(set(weights), set(rnn.weight_shapes))
            step = rnn.forward(self.array(integers(T * N * H, 1), (T, N, H)), weights)
            dx, _, _ = step.backward_data(self.array(integers(T * N * H, 2), (T, N, H)))
            results.append([values(got) for got in (step.y, dx, step.backward_weights()["weight_hh_l0"])])
        self.assertTrue(any(results[0][0]))
        self.assertEqual(*results)

    def test_kernels(self):
        kernels = self.rnn("fp16").kernels()
        self.assertEqual(sorted(info.name for info in kernels), [b"rnn_fused_wgmma", b"rnn_fused_wmma", b"rnn_steps"])
        # rnn_fused_wgmma does not support 3 units.
        self.assertEqual([info.name for info in kernels if info.reason], [b"rnn_fused_wgmma"])
        for info in kernels[:2]:
            with self.subTest(kernel=info.name):
                rnn = self.rnn("fp16", plan=info.name.decode())
                self.check_passes(rnn, [(t, n) for t in range(T) for n in range(N)], (T, N))
        fused = next(info for info in self.rnn("fp32").kernels() if info.name == b"rnn_fused_wmma")
        self.assertEqual(fused.reason, b"requires FP16 or BF16")

    def test_dropout(self):
        """All outputs of the first layer are 1: dropout makes some of them 0, others 2."""
        units = 64
        rnn = mpcore.Rnn(self.context, "relu", (2, 1, 1), units, "fp32", layers=2, bias=False, dropout=0.5,
                         dropout_seed=2**64 - 1)
        one = {name: self.context.zeros(shape) for name, shape in rnn.weight_shapes.items()}
        one["weight_ih_l0"] = self.array([1] * units, (units, 1))
        one["weight_ih_l1"] = self.array([int(i % (units + 1) == 0) for i in range(units**2)], (units, units))
        x = self.array([1, 1], (2, 1, 1))
        offsets = [None] + [self.context.array(Floats([number], (1,), "<i8")) for number in (0, 1)]
        absent, first, second = [values(rnn.forward(x, one, dropout_offset=offset).y) for offset in offsets]
        self.assertEqual(set(absent), {0, 2})
        self.assertEqual(absent, first)
        self.assertNotEqual(absent, second)
        self.assertEqual(values(rnn.inference(x, one)[0]), [1] * 2 * units)

    def test_invalid_shapes(self):
        context, rnn = self.context, self.rnn()
        data = self.data(rnn)
        x, weights = self.dense(data["x"]), self.weights(data)

        def refused(sentence, call, *arguments, kind=ValueError, **options):
            with self.assertRaisesRegex(kind, sentence):
                call(*arguments, **options)

        forward = rnn.forward
        refused(r"x has shape \(4, 3, 3\), not \(4, 3, 2\)", forward, context.zeros((T, N, 3)), weights)
        refused("x has dtype float16, not float32", forward, context.zeros((T, N, I), "fp16"), weights,
                kind=TypeError)
        refused("weights has no entry 'weight_hh_l1'", forward, x,
                {k: w for k, w in weights.items() if k != "weight_hh_l1"})
        refused("weights: name 'weight_hr_l0' is unknown; use one of: weight_ih_l0, weight_hh_l0", forward, x,
                dict(weights, weight_hr_l0=x))
        refused(r"weights\['weight_ih_l1'\] has shape \(3, 2\), not \(3, 6\)", forward, x,
                dict(weights, weight_ih_l1=weights["weight_ih_l0"]))
        refused(r"weights\['bias_hh_l0_reverse'\] has dtype float16", forward, x,
                dict(weights, bias_hh_l0_reverse=context.zeros(H, "fp16")), kind=TypeError)
        refused(r"h0 has shape \(3, 3\), not \(4, 3, 3\)", forward, x, weights, h0=context.zeros((N, H)))
        refused("c0 requires cell = 'lstm'", forward, x, weights, c0=context.zeros(rnn.state_shape))
        refused(r"lengths has shape \(4,\), not \(3,\)", forward, x, weights, lengths=context.zeros(T, "int32"))
        refused("batch_sizes has 3 numbers, not 4", forward, x, weights, batch_sizes=[3, 2, 1])
        refused(r"x has shape \(4, 3, 2\), not \(7, 2\)", forward, x, weights, batch_sizes=BATCH_SIZES)
        refused("y has shape", rnn.inference, x, weights, y=x)
        refused("dropout_offset has dtype float32, not int64", forward, x, weights, dropout_offset=x,
                kind=TypeError)
        refused("x_shape has 2 dimensions, not 3", mpcore.Rnn, context, "gru", (T, I), H)
        refused("cell = 'peephole' must be one of: tanh, relu, lstm, gru", mpcore.Rnn, context, "peephole", (T, N, I), H)
        refused("hidden_size = 4294967299 must be from ", mpcore.Rnn, context, "gru", (T, N, I), 2**32 + H)
        step = forward(x, weights)
        refused("backward_weights is out of order: call backward_data next", step.backward_weights)
        refused("dy has shape", step.backward_data, x)
        refused("dx has shape", step.backward_data, self.dense(data["dy"]), dx=self.dense(data["dy"]))
        refused("dcn requires cell = 'lstm'", step.backward_data, self.dense(data["dy"]), dcn=context.zeros(rnn.state_shape))
        step.backward_data(self.dense(data["dy"]))
        refused("backward_data is out of order: call backward_weights next", step.backward_data, self.dense(data["dy"]))
        refused("grads: name 'weight_ih' is unknown; use one of", step.backward_weights, {"weight_ih": x})
        refused(r"grads\['bias_ih_l0'\] has shape", step.backward_weights, {"bias_ih_l0": x})
        refused("accumulate requires grads", step.backward_weights, accumulate=True)

    def test_errors_of_the_library(self):
        context, rnn = self.context, self.rnn()
        data = self.data(rnn)
        x, weights = self.dense(data["x"]), self.weights(data)
        for options, sentence in (({"clip": 1.0}, "clip = 1"), ({"dropout": 1.0}, "dropout = 1"),
                                  ({"reset_first": True}, "MP_RNN_FLAG_RESET_FIRST"),
                                  ({"skip_input": True}, "input_size = 2"), ({"plan": "none"}, "plan->kernel = none is unknown")):
            with self.assertRaisesRegex(mpcore.Error, sentence):
                self.rnn(**options)
        with self.assertRaisesRegex(mpcore.Error, "layers = 0"):
            mpcore.Rnn(context, "tanh", (T, N, I), H, layers=0)
        with self.assertRaisesRegex(mpcore.Error, "reserve_bytes = 256"):
            rnn.forward(x, weights, reserve=context.empty(256, "uint8"))
        with self.assertRaisesRegex(mpcore.Error, r"batch_sizes\[1\] = 4"):
            rnn.forward(context.zeros((7, I)), weights, batch_sizes=[1, 4, 1, 1])
        h0 = context.zeros(rnn.state_shape)
        with self.assertRaisesRegex(mpcore.Error, "hn"):
            rnn.forward(x, weights, h0=h0, hn=h0)

    @needs_host
    def test_arguments_outlive_the_backward_pass(self):
        """Each array is a temporary that only the step references."""
        rnn, kept = self.rnn(), []
        data = self.data(rnn)

        def results(kind):
            def make(numbers):
                return kind(numbers.values(), tuple(extent + 1 for extent in max(numbers)))

            step = rnn.forward(make(data["x"]), {name: make(w) for name, w in data["weights"].items()},
                               h0=make(data["h0"]))
            dx, dh0, _ = step.backward_data(make(data["dy"]), dhn=make(data["dhn"]))
            grads = step.backward_weights()
            return [values(got) for got in (step.y, step.hn, dx, dh0, *grads.values())]

        def lasting(*arguments):
            kept.append(Floats(*arguments))
            return kept[-1]

        wanted = results(lasting)
        self.assertEqual(results(Fleeting), wanted)
        self.assertEqual(results(FleetingCopy), wanted)


class Lstm(unittest.TestCase):
    def test_clip(self):
        """Open gates: c grows by 1 per step up to the bound, where the gradient is 0."""
        here = context()
        rnn = mpcore.Rnn(here, "lstm", (3, 1, 1), 1, "fp32", clip=1.5)
        weights = {"weight_ih_l0": here.zeros((4, 1)), "weight_hh_l0": here.zeros((4, 1)), "bias_hh_l0": here.zeros(4),
                   "bias_ih_l0": here.array(Floats([100] * 4, (4,)))}
        step = rnn.forward(here.zeros((3, 1, 1)), weights, c0=here.array(Floats([-1], (1, 1, 1))))
        self.assertEqual(values(step.cn), [1.5])
        _, dh0, dc0 = step.backward_data(here.zeros((3, 1, 1)), dcn=here.array(Floats([1], (1, 1, 1))))
        self.assertIsNone(dh0)
        self.assertEqual(values(dc0), [0])


@unittest.skipIf(torch is None, "no torch for this Python")
@needs_host
class Torch(unittest.TestCase):
    """Two bidirectional layers in fp32 with torch's weights."""

    T, N, I, H = 7, 5, 6, 8
    LENGTHS = [7, 6, 6, 3, 1]

    def close(self, got, wanted):
        got = torch.frombuffer(bytearray(got.tobytes()), dtype=torch.float32).reshape(got.shape)
        torch.testing.assert_close(got, wanted.detach(), rtol=1e-5, atol=1e-5)

    def compare(self, cell, layout):
        torch.manual_seed(1)
        kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(cell, torch.nn.RNN)
        options = {"nonlinearity": cell} if kind is torch.nn.RNN else {}
        module = kind(self.I, self.H, num_layers=2, bidirectional=True, batch_first=layout == "batch_first", **options)
        shape = (self.N, self.T, self.I) if layout == "batch_first" else (self.T, self.N, self.I)
        x = torch.randn(shape, requires_grad=True)
        states = [torch.randn(4, self.N, self.H, requires_grad=True) for _ in range(2 if cell == "lstm" else 1)]
        given, rows, lengths = {}, x, None
        if layout in ("lengths", "packed"):
            lengths = self.LENGTHS if layout == "packed" else self.LENGTHS[::-1]
            rows = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=layout == "packed")
        out, last = module(rows, tuple(states) if cell == "lstm" else states[0])
        last = last if cell == "lstm" else (last,)
        y = out
        if layout == "packed":
            y, given["batch_sizes"] = out.data, out.batch_sizes
        elif layout == "lengths":
            y = torch.nn.utils.rnn.pad_packed_sequence(out, total_length=self.T)[0]
            given["lengths"] = torch.tensor(lengths, dtype=torch.int32)
        dy, dlast = torch.randn(y.shape), [torch.randn(state.shape) for state in last]
        torch.autograd.backward([y, *last], [dy, *dlast])

        rnn = mpcore.Rnn(context(), cell, shape, self.H, "fp32", layers=2, bidirectional=True,
                         batch_first=layout == "batch_first")
        for name, state in zip(("h0", "c0"), states):
            given[name] = state.detach()
        step = rnn.forward(x.detach() if layout != "packed" else rows.data.detach(), module.state_dict(), **given)
        self.close(step.y, y)
        for got, wanted in zip((step.hn, step.cn), last):
            self.close(got, wanted)
        dx, *dstates = step.backward_data(dy, **dict(zip(("dhn", "dcn"), dlast)))
        wanted = x.grad
        if layout == "packed":
            wanted = torch.nn.utils.rnn.pack_padded_sequence(x.grad, lengths).data
        self.close(dx, wanted)
        for got, state in zip(dstates, states):
            self.close(got, state.grad)
        for name, grad in step.backward_weights().items():
            self.close(grad, getattr(module, name).grad)

    def test_parity(self):
        for cell in ("tanh", "relu", "lstm", "gru"):
            for layout in ("dense", "batch_first", "lengths", "packed"):
                with self.subTest(cell=cell, layout=layout):
                    self.compare(cell, layout)
