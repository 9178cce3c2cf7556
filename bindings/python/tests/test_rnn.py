"""Recurrent layers: kernels and errors."""

import functools
import math

import mpcore
from hosts import Case, integers, values

T, N, I, H, LAYERS = 4, 3, 2, 3, 2
BATCH_SIZES = [3, 2, 1, 1]


class Relu(Case):
    def rnn(self, dtype="fp32", x_shape=(T, N, I), **options):
        return mpcore.Rnn(self.context, "relu", x_shape, H, dtype, layers=LAYERS, bidirectional=True, **options)

    def data(self, rnn):
        """x, weights, h0, dy and dhn; weights of -1, 0 and 1 keep sums exact."""
        def array(shape, seed, most, dtype):
            return self.array([max(-most, min(most, number)) for number in integers(math.prod(shape), seed)], shape, dtype)

        weights = {name: array(shape, seed, 1, rnn.dtype if len(shape) == 2 else "fp32")
                   for seed, (name, shape) in enumerate(rnn.weight_shapes.items())}
        shapes = rnn.x_shape, rnn.state_shape, rnn.y_shape, rnn.state_shape
        x, *others = [array(shape, seed, 2, rnn.dtype) for seed, shape in enumerate(shapes, 1)]
        return [x, weights, *others]

    def results(self, rnn):
        x, weights, h0, dy, dhn = self.data(rnn)
        step = rnn.forward(x, weights, h0=h0)
        dx, dh0, _ = step.backward_data(dy, dhn=dhn)
        grads = step.backward_weights()
        return [values(self.context.array(got, "fp32")) for got in (step.y, step.hn, dx, dh0, *grads.values())]

    def test_outputs_are_written_to_given_arrays(self):
        rnn, context = self.rnn(), self.context
        x, weights, _, dy, _ = self.data(rnn)
        y, hn = context.zeros(rnn.y_shape), context.zeros(rnn.state_shape)
        reserve = context.empty(rnn.sizes.reserve_bytes, "uint8")
        step = rnn.forward(x, weights, y=y, hn=hn, reserve=reserve)
        self.assertTrue(step.y is y and step.hn is hn)
        dh0 = context.zeros(rnn.state_shape)
        got = step.backward_data(dy, dh0=dh0, needs_dx=False)
        self.assertTrue(got[0] is None and got[1] is dh0)
        grads = step.backward_weights()
        some = {"weight_hh_l1": self.array([1] * H * H, (H, H))}
        again = rnn.forward(x, weights, reserve=reserve)
        self.assertEqual(again.backward_data(dy)[1], None)  # without h0
        self.assertIs(again.backward_weights(some, accumulate=True), some)
        self.assertEqual(values(some["weight_hh_l1"]), [v + 1 for v in values(grads["weight_hh_l1"])])

    def test_kernels(self):
        kernels = self.rnn("fp16").kernels()
        self.assertEqual(sorted(info.name for info in kernels), [b"rnn_fused_wgmma", b"rnn_fused_wmma", b"rnn_steps"])
        # rnn_fused_wgmma does not support 3 units.
        self.assertEqual([info.name for info in kernels if info.reason], [b"rnn_fused_wgmma"])
        wanted = self.results(self.rnn("fp16"))
        for info in kernels[:2]:
            self.assertEqual(self.results(self.rnn("fp16", plan=info.name.decode())), wanted, info.name)
        fused = next(info for info in self.rnn("fp32").kernels() if info.name == b"rnn_fused_wmma")
        self.assertIn(b"requires FP16", fused.reason)

    def test_invalid_shapes(self):
        context, rnn = self.context, self.rnn()
        x, weights, _, dy, _ = self.data(rnn)
        refused = functools.partial(self.refused, ValueError)
        forward = rnn.forward
        refused("weights has no entry 'weight_hh_l1'", forward, x,
                {k: w for k, w in weights.items() if k != "weight_hh_l1"})
        refused("weights: name 'weight_hr_l0' is unknown; use one of: weight_ih_l0, weight_hh_l0", forward, x,
                dict(weights, weight_hr_l0=x))
        refused("c0 requires cell = 'lstm'", forward, x, weights, c0=context.zeros(rnn.state_shape))
        refused("batch_sizes has 3 numbers, not 4", forward, x, weights, batch_sizes=[3, 2, 1])
        refused(r"x has shape \(4, 3, 2\), not \(7, 2\)", forward, x, weights, batch_sizes=BATCH_SIZES)
        self.refused(TypeError, "dropout_offset has dtype float32, not int64", forward, x, weights, dropout_offset=x)
        refused("x_shape has 2 dimensions, not 3", mpcore.Rnn, context, "gru", (T, I), H)
        refused("cell = 'peephole' must be one of: tanh, relu, lstm, gru", mpcore.Rnn, context, "peephole", (T, N, I), H)
        refused("hidden_size = 4294967299 must be from ", mpcore.Rnn, context, "gru", (T, N, I), 2**32 + H)
        step = forward(x, weights)
        refused("backward_weights is out of order: call backward_data next", step.backward_weights)
        refused("dcn requires cell = 'lstm'", step.backward_data, dy, dcn=context.zeros(rnn.state_shape))
        step.backward_data(dy)
        refused("backward_data is out of order: call backward_weights next", step.backward_data, dy)
        refused("grads: name 'weight_ih' is unknown; use one of", step.backward_weights, {"weight_ih": x})
        refused("accumulate requires grads", step.backward_weights, accumulate=True)

    def test_errors_of_the_library(self):
        rnn = self.rnn()
        x, weights, *_ = self.data(rnn)
        self.all_refused(
            (mpcore.Error, "MP_RNN_FLAG_RESET_FIRST", lambda: self.rnn(reset_first=True)),
            (mpcore.Error, "plan->kernel = none is unknown", lambda: self.rnn(plan="none")),
            (mpcore.Error, "reserve_bytes = 256",
             lambda: rnn.forward(x, weights, reserve=self.context.empty(256, "uint8"))))
