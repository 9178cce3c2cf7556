"""Convolution, pooling and other layers, compared with plain loops on integers."""

import math

import mpcore
from hosts import Case, Fleeting, FleetingCopy, Floats, context, integers, needs_host, needs_numpy, numpy, values


def patches(n, h, w, p, q, r, s, stride, padding, dilation=(1, 1)):
    """Pairs of output pixel and filter tap inside the image: (output pixel, tap, input pixel)."""
    for i in range(n * p * q * r * s):
        i, fs = divmod(i, s)
        i, fr = divmod(i, r)
        i, oq = divmod(i, q)
        image, op = divmod(i, p)
        y, x = op * stride[0] - padding[0] + fr * dilation[0], oq * stride[1] - padding[1] + fs * dilation[1]
        if 0 <= y < h and 0 <= x < w:
            yield (image * p + op) * q + oq, fr * s + fs, (image * h + y) * w + x


class Convolution(Case):
    """2 images of 5 x 6 pixels and 4 channels, 6 filters of 3 x 2, strides, dilation, asymmetric
    padding, two groups."""

    X, FILTER, GROUPS = (2, 5, 6, 4), (6, 3, 2, 2), 2

    def setUp(self):
        super().setUp()
        self.conv = mpcore.Conv2d(self.context, self.X, self.FILTER, stride=(2, 1), padding=(1, 0, 2, 1),
                                  dilation=(1, 2), groups=self.GROUPS)
        self.x, self.f = integers(240, 1), integers(72, 2)
        self.n_y = 2 * 2 * 7 * 6
        self.dy = integers(self.n_y, 3)

    def fp16(self, numbers, shape):
        return self.context.array(Floats(numbers, shape), "fp16")

    def loop(self, visit):
        """Calls visit(y=, filter=, x=) with three indices for every product of the convolution."""
        for pixel, tap, source in patches(2, 5, 6, 2, 7, 3, 2, (2, 1), (1, 2), (1, 2)):
            for k in range(6):
                for c in range(2):
                    visit(y=pixel * 6 + k, filter=(k * 6 + tap) * 2 + c, x=source * 4 + k // 3 * 2 + c)

    def wanted(self, count, target):
        numbers = {"y": self.dy, "filter": self.f, "x": self.x}
        one, other = [name for name in numbers if name != target]
        sums = [0] * count

        def visit(**at):
            sums[at[target]] += numbers[one][at[one]] * numbers[other][at[other]]

        self.loop(visit)
        return sums

    def test_fprop_dgrad_wgrad(self):
        conv, shape = self.conv, (2, 2, 7, 6)
        self.assertEqual(conv.y_shape, shape)
        x, f, dy = self.fp16(self.x, self.X), self.fp16(self.f, self.FILTER), self.fp16(self.dy, shape)
        for op in ("fprop", "dgrad", "wgrad"):
            space = self.context.empty(max(256, conv.workspace_size(op, "fp32")), "uint8")
            for workspace in (None, space):
                got = {"fprop": lambda **o: conv.fprop(x, f, **o), "dgrad": lambda **o: conv.dgrad(dy, f, **o),
                       "wgrad": lambda **o: conv.wgrad(x, dy, **o)}[op](dtype="fp32", workspace=workspace)
                target, count = {"fprop": ("y", self.n_y), "dgrad": ("x", 240), "wgrad": ("filter", 72)}[op]
                self.assertEqual(values(got), self.wanted(count, target), op)

    def test_epilogue(self):
        bias, amax = integers(6, 4), self.context.zeros(1)
        start, aux = integers(self.n_y, 5), self.context.zeros(self.conv.y_shape)
        y = self.context.array(Floats(start, self.conv.y_shape))
        out = self.conv.fprop(self.fp16(self.x, self.X), self.fp16(self.f, self.FILTER), y, alpha=2, beta=3,
                              bias=self.context.array(Floats(bias, (6,))), activation="relu", aux=aux, amax=amax)
        self.assertIs(out, y)
        z = [2 * v + 3 * start[i] + bias[i % 6] for i, v in enumerate(self.wanted(self.n_y, "y"))]
        self.assertEqual(values(aux), z)
        self.assertEqual(values(y), [max(0, v) for v in z])
        self.assertEqual(values(amax), [max(z)])

    def test_kernels(self):
        x, f = self.fp16(self.x, self.X), self.fp16(self.f, self.FILTER)
        kernels = self.conv.kernels("fprop", "fp32")
        able = [info.name.decode() for info in kernels if info.reason is None]
        self.assertTrue(able)
        self.assertTrue(all(info.reason or info.predicted_us > 0 for info in kernels))
        self.assertRegex(self.conv.explain("fprop", "fp32"), f"\nkernel +{able[0]}\n")
        named = mpcore.Conv2d(self.context, self.X, self.FILTER, stride=(2, 1), padding=(1, 0, 2, 1),
                              dilation=(1, 2), groups=2, plan=able[-1])
        space = self.context.empty(max(256, kernels[len(able) - 1].workspace_bytes), "uint8")
        self.assertEqual(values(named.fprop(x, f, dtype="fp32", workspace=space)), self.wanted(self.n_y, "y"))

    def test_refusals(self):
        context, conv = self.context, self.conv
        x, f = context.zeros(self.X, "fp16"), context.zeros(self.FILTER, "fp16")
        with self.assertRaisesRegex(ValueError, r"x has shape \(2, 5, 6, 3\), not \(2, 5, 6, 4\)"):
            conv.fprop(context.zeros((2, 5, 6, 3), "fp16"), f)
        with self.assertRaisesRegex(TypeError, "filter has dtype float32, not float16"):
            conv.fprop(x, context.zeros(self.FILTER))
        with self.assertRaisesRegex(ValueError, "dx has shape"):
            conv.dgrad(context.zeros(conv.y_shape, "fp16"), f, context.zeros(240))
        with self.assertRaisesRegex(ValueError, "beta = 1 requires y"):
            conv.fprop(x, f, beta=1)
        with self.assertRaisesRegex(ValueError, "bias has 4 elements, not 6"):
            conv.fprop(x, f, bias=context.zeros(4))
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'biass'"):
            conv.fprop(x, f, biass=None)
        with self.assertRaisesRegex(ValueError, "3 channels in each of 1 groups, but x_shape has 4"):
            mpcore.Conv2d(context, (1, 4, 4, 4), (1, 3, 3, 3))
        with self.assertRaisesRegex(ValueError, "x_shape has 3 dimensions, not 4"):
            mpcore.Conv2d(context, (4, 4, 4), (1, 3, 3, 4))
        with self.assertRaisesRegex(ValueError, "padding has 3 numbers, not 4"):
            mpcore.Conv2d(context, (1, 4, 4, 4), (1, 3, 3, 4), padding=(1, 1, 1))
        with self.assertRaisesRegex(ValueError, "h = 4294967300 must be from "):
            mpcore.Conv2d(context, (1, 2**32 + 4, 4, 4), (1, 3, 3, 4))
        with self.assertRaisesRegex(mpcore.Error, "stride_h = 0"):
            mpcore.Conv2d(context, (1, 4, 4, 4), (1, 3, 3, 4), stride=(0, 1))
        with self.assertRaisesRegex(mpcore.Error, "bias"):
            conv.wgrad(x, context.zeros(conv.y_shape, "fp16"), bias=context.zeros(2))


class Layers(Case):
    def test_layouts(self):
        n, c, h, w = 2, 3, 4, 5
        numbers = integers(n * c * h * w, 1)
        turned = [numbers[((i * c + k) * h + y) * w + x] for i in range(n) for y in range(h) for x in range(w)
                  for k in range(c)]
        half = mpcore.nchw_to_nhwc(self.context, self.array(numbers, (n, c, h, w)), dtype="fp16")
        self.assertEqual((half.shape, half.dtype), ((n, h, w, c), "float16"))
        self.assertEqual(values(self.context.array(half, "fp32")), turned)
        back = mpcore.nhwc_to_nchw(self.context, half, self.context.zeros((n, c, h, w)))
        self.assertEqual(values(back), numbers)
        with self.assertRaisesRegex(ValueError, r"dst has shape \(2, 3, 4, 5\), not \(2, 4, 5, 3\)"):
            mpcore.nchw_to_nhwc(self.context, back, back)
        with self.assertRaisesRegex(ValueError, "src has 1 dimensions, not 4"):
            mpcore.nchw_to_nhwc(self.context, self.context.zeros(4))
        with self.assertRaisesRegex(TypeError, "int32 is not supported"):
            mpcore.nchw_to_nhwc(self.context, self.context.zeros((1, 1, 1, 1), "int32"))

    def test_pool(self):
        n, h, w, c, p, q = 2, 5, 4, 3, 3, 2
        numbers, dy = integers(n * h * w * c, 1), integers(n * p * q * c, 2)
        for mode in ("max", "avg_include_pad"):
            windows = {}
            for pixel, _, source in patches(n, h, w, p, q, 2, 4, (2, 1), (1, 1)):
                for k in range(c):
                    windows.setdefault(pixel * c + k, []).append(source * c + k)
            pool = mpcore.Pool2d(self.context, mode, (n, h, w, c), (2, 4), "fp32", stride=(2, 1),
                                 padding=(1, 0, 1, 0))
            self.assertEqual(pool.y_shape, (n, p, q, c))
            y, dx = [0.0] * len(dy), [0.0] * len(numbers)
            for at, sources in windows.items():
                if mode == "max":
                    best = max(sources, key=lambda i: numbers[i])  # the first of equal maxima
                    y[at] = numbers[best]
                    dx[best] += dy[at]
                else:
                    y[at] = sum(numbers[i] for i in sources) / 8
                    for i in sources:
                        dx[i] += dy[at] / 8
            x = self.array(numbers, (n, h, w, c))
            self.assertEqual(values(pool.forward(x)), y, mode)
            given = x if mode == "max" else None
            self.assertEqual(values(pool.backward(given, self.array(dy, pool.y_shape))), dx, mode)
            if mode == "max":
                index = self.context.empty(pool.y_shape, "uint8")
                self.assertEqual(values(pool.forward(x, index=index)), y)
                self.assertEqual(values(pool.backward(None, self.array(dy, pool.y_shape), index=index)), dx)
        with self.assertRaisesRegex(mpcore.Error, "index"):
            pool.forward(x, index=index)
        with self.assertRaisesRegex(ValueError, "dy has shape"):
            pool.backward(x, x)
        with self.assertRaisesRegex(TypeError, "x has dtype float16, not float32"):
            pool.forward(self.context.zeros((n, h, w, c), "fp16"))
        with self.assertRaisesRegex(mpcore.Error, "x"):
            mpcore.Pool2d(self.context, "max", (1, 2, 2, 1), 1, "fp32").backward(None, self.context.zeros((1, 2, 2, 1)))
        with self.assertRaisesRegex(mpcore.Error, "pad_top = 2"):
            mpcore.Pool2d(self.context, "max", (1, 4, 4, 1), 2, padding=2)
        with self.assertRaisesRegex(ValueError, "mode = 'mean' must be one of: max"):
            mpcore.Pool2d(self.context, "mean", (1, 4, 4, 1), 2)

    def test_pool_with_ceil_mode_and_dilation(self):
        context = self.context
        x = context.array(Floats(list(range(1, 8)), (1, 1, 7, 1)))
        pool = mpcore.Pool2d(context, "max", (1, 1, 7, 1), (1, 2), "fp32", stride=(1, 2), ceil_mode=True)
        self.assertEqual(pool.y_shape, (1, 1, 4, 1))
        self.assertEqual(memoryview(pool.forward(x).tobytes()).cast("f").tolist(), [2, 4, 6, 7])
        pool = mpcore.Pool2d(context, "max", (1, 1, 7, 1), (1, 2), "fp32", stride=1, dilation=(1, 3))
        self.assertEqual(memoryview(pool.forward(x).tobytes()).cast("f").tolist(), [4, 5, 6, 7])

    def test_batch_norm_without_gamma_and_beta(self):
        context = self.context
        x, dx = context.array(Floats([1, 2, 3, 6], (4, 1))), context.array(Floats([1, 0, 0, 0], (4, 1)))
        norm = mpcore.BatchNorm(context, 4, 1, "fp32")
        ones, zeros = context.array(Floats([1], (1,))), context.zeros(1)
        self.assertEqual(norm.forward(x).tobytes(), norm.forward(x, ones, zeros).tobytes())
        given = norm.backward(x, dx, ones, zeros, context.zeros(1), context.zeros(1))
        self.assertEqual(norm.backward(x, dx).tobytes(), given.tobytes())

    def test_batch_norm(self):
        """Two channels of mean 2 and 5, variance 4 and 16; every number is exact."""
        x = self.array([0, 1, 4, 9, 0, 1, 4, 9], (4, 2))
        norm = mpcore.BatchNorm(self.context, 4, 2, "fp32", activation="relu", epsilon=0, momentum=0.5)
        gamma, beta = self.array([2, 3], (2,)), self.array([3, 0], (2,))
        mean, var = self.array([0, 1], (2,)), self.array([0, 0], (2,))
        y = norm.forward(x, gamma, beta, running_mean=mean, running_var=var)
        self.assertEqual(values(norm.mean) + values(norm.inv_std), [2, 5, 0.5, 0.25])
        self.assertEqual(values(y), [1, 0, 5, 3] * 2)
        self.assertEqual(values(mean), [1, 3])
        for got, wanted in zip(values(var), [8 / 3, 32 / 3]):
            self.assertAlmostEqual(got, wanted, places=5)
        # xhat is -1 and 1; g is 0 where y is.
        dgamma, dbeta = self.context.zeros(2), self.context.zeros(2)
        dx = norm.backward(x, self.array([2, 9, 4, 2, 2, 9, 8, 2], (4, 2)), gamma, beta, dgamma, dbeta)
        self.assertEqual(values(dgamma) + values(dbeta), [8, 4, 16, 4])
        self.assertEqual(values(dx), [0, 0, -2, 0, 0, 0, 2, 0])
        out = norm.inference(x, gamma, beta, self.array([1, 1], (2,)), self.array([4, 16], (2,)))
        self.assertEqual(values(out), [2, 0, 6, 6] * 2)
        with self.assertRaisesRegex(ValueError, "x has 6 elements, not 8"):
            norm.forward(self.context.zeros((3, 2)), gamma, beta)
        with self.assertRaisesRegex(ValueError, "gamma has 3 elements, not 2"):
            norm.forward(x, self.context.zeros(3), beta)
        with self.assertRaisesRegex(TypeError, "running_var has dtype float16, not float32"):
            norm.forward(x, gamma, beta, running_var=self.context.zeros(2, "fp16"))
        with self.assertRaisesRegex(mpcore.Error, "epsilon = -1"):
            mpcore.BatchNorm(self.context, 4, 2, epsilon=-1)

    def test_pointwise(self):
        a, b, row = integers(12, 1), integers(12, 2), integers(4, 3)
        x, half = self.array(a, (3, 2, 2)), self.context.array(Floats(b, (3, 2, 2)), "fp16")
        y = mpcore.pointwise(self.context, "add", x, half, activation="relu")
        self.assertEqual((y.shape, y.dtype), ((3, 2, 2), "float32"))
        self.assertEqual(values(y), [max(0, v + w) for v, w in zip(a, b)])
        matrix = self.array(a, (3, 4))
        by_row = mpcore.pointwise(self.context, "mul", matrix, self.array(row, (4,)))
        self.assertEqual(values(by_row), [v * row[i % 4] for i, v in enumerate(a)])
        self.assertEqual(values(mpcore.pointwise(self.context, "copy", x, activation="relu")), [max(0, v) for v in a])
        self.assertEqual(values(mpcore.pointwise(self.context, "sub", x, half)), [v - w for v, w in zip(a, b)])
        self.assertEqual(values(mpcore.pointwise(self.context, "leaky_relu", x, slope=-2)), [max(v, -2 * v) for v in a])
        self.assertEqual(values(mpcore.pointwise(self.context, "clip", x, high=1)), [min(v, 1) for v in a])
        self.assertEqual(values(mpcore.pointwise(self.context, "dclip", x, half, low=0, high=2)),
                         [v if 0 <= w <= 2 else 0 for v, w in zip(a, b)])
        dx = mpcore.pointwise(self.context, "copy", matrix, self.array(b, (3, 4)), matrix, activation="drelu")
        self.assertIs(dx, matrix)
        self.assertEqual(values(dx), [v if w > 0 else 0 for v, w in zip(a, b)])
        self.assertEqual(mpcore.pointwise(self.context, "copy", self.context.empty((3, 0))).tobytes(), b"")

    @needs_numpy
    @needs_host
    def test_column_sum(self):
        x = self.array(list(range(12)), (2, 2, 3))
        amax, found_inf = self.context.zeros(1), self.context.zeros(1)
        columns = mpcore.ColumnSum(self.context, 4, 3, "fp32")
        total = columns.run(x, amax=amax, found_inf=found_inf)
        self.assertEqual((values(total), values(amax), values(found_inf)), ([18, 22, 26], [26], [0]))
        half = self.context.array(Floats([0.5], (1,)), "fp32")
        self.assertIs(columns.run(x, total, beta=2.0, scale=half), total)
        self.assertEqual(values(total), [45, 55, 65])
        empty = mpcore.ColumnSum(self.context, 0, 3, "fp16", sum_dtype="bf16")
        self.assertEqual(empty.run(self.context.empty((0, 3), "fp16")).tobytes(), bytes(6))
        with self.assertRaisesRegex(ValueError, "beta = 1.0 requires sum"):
            columns.run(x, beta=1.0)
        with self.assertRaisesRegex(mpcore.Error, "rows = -1"):
            mpcore.ColumnSum(self.context, -1, 3)

    @needs_host  # context.array() makes the copy contiguous
    def test_pointwise_of_strided_rows(self):
        wide = numpy.arange(30, dtype=numpy.float32).reshape(3, 10)
        y = mpcore.pointwise(self.context, "add", numpy.ones((3, 4), numpy.float32), wide[:, 2:6])
        self.assertEqual(values(y), [1 + v for v in wide[:, 2:6].ravel()])
        with self.assertRaisesRegex(ValueError, "rows of b must be contiguous"):
            mpcore.pointwise(self.context, "add", numpy.ones((3, 4), numpy.float32), wide[:, ::3])

    def test_pointwise_refusals(self):
        x = self.context.zeros((3, 4))
        for kind, sentence, arguments, options in (
                (ValueError, "op = 'pow' must be one of: copy, add, mul", ("pow", x, x), {}),
                (ValueError, r"b has shape \(3,\), not \(3, 4\) or its last dimensions",
                 ("add", x, self.context.zeros(3)), {}),
                (ValueError, r"y has shape \(4,\), not \(3, 4\)", ("add", x, x, self.context.zeros(4)), {}),
                (TypeError, "y has dtype float16, not float32",
                 ("add", x, x, self.context.zeros((3, 4), "fp16")), {}),
                (TypeError, "int32 is not supported", ("add", x, self.context.zeros(4, "int32")), {}),
                (mpcore.Error, "b = NULL", ("add", x), {}),
                (mpcore.Error, "activation = MP_ACT_DTANH requires op = MP_POINTWISE_COPY", ("mul", x, x),
                 {"activation": "dtanh"})):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                mpcore.pointwise(self.context, *arguments, **options)

    @needs_host
    def test_temporary_arguments_outlive_the_call(self):
        """Each array is a temporary whose only reference is the call's argument."""
        context = self.context

        def numbers(kind, count, shape, seed):
            return kind(integers(count, seed), shape)

        def results(kind):
            pool = mpcore.Pool2d(context, "max", (1, 4, 4, 2), 2, "fp32")
            norm = mpcore.BatchNorm(context, 16, 2, "fp32")
            conv = mpcore.Conv2d(context, (1, 4, 4, 2), (3, 3, 3, 2), "fp32")
            rms = mpcore.Norm(context, "rms", 4, 8, "fp32")
            attention = mpcore.Attention(context, 1, 2, 4, 4, 2, "fp32")
            heads = [numbers(Floats, 16, (1, 4, 2, 2), seed) for seed in range(4)]
            dgamma, dbeta, row_loss, dlogits = (context.zeros(2), context.zeros(2), context.zeros(4),
                                                context.zeros((4, 8)))
            outputs = [
                pool.forward(numbers(kind, 32, (1, 4, 4, 2), 1)),
                pool.backward(numbers(kind, 32, (1, 4, 4, 2), 1), numbers(kind, 8, (1, 2, 2, 2), 2)),
                norm.forward(numbers(kind, 32, (16, 2), 1), numbers(kind, 2, (2,), 2), numbers(kind, 2, (2,), 3)),
                norm.backward(numbers(kind, 32, (16, 2), 1), numbers(kind, 32, (16, 2), 4), numbers(kind, 2, (2,), 2),
                              numbers(kind, 2, (2,), 3), dgamma, dbeta), dgamma, dbeta,
                conv.fprop(numbers(kind, 32, (1, 4, 4, 2), 1), numbers(kind, 54, (3, 3, 3, 2), 2),
                           bias=numbers(kind, 3, (3,), 3)),
                mpcore.gemm(context, numbers(kind, 20, (4, 5), 1), numbers(kind, 15, (5, 3), 2),
                            c=numbers(kind, 12, (4, 3), 3), beta=1.0, bias=numbers(kind, 3, (3,), 4)),
                mpcore.nchw_to_nhwc(context, numbers(kind, 24, (1, 2, 3, 4), 1)),
                rms.forward(numbers(kind, 32, (4, 8), 1), numbers(kind, 8, (8,), 2),
                            residual=numbers(kind, 32, (4, 8), 3)),
                rms.backward(numbers(kind, 32, (4, 8), 1), numbers(kind, 32, (4, 8), 2)),
                mpcore.glu_backward(context, "silu", numbers(kind, 32, (4, 8), 1), numbers(kind, 16, (4, 4), 2)),
                mpcore.rope(context, numbers(kind, 32, (2, 2, 8), 1), inv_freq=numbers(kind, 4, (4,), 2)),
                mpcore.softmax_forward(context, numbers(kind, 32, (4, 8), 1), mask=numbers(kind, 8, (8,), 2)),
                mpcore.sum_rows(context, numbers(kind, 32, (4, 8), 1), 2),
                attention.forward(*(numbers(kind, 16, (1, 4, 2, 2), seed) for seed in range(3)),
                                  sinks=numbers(kind, 2, (2,), 3)),
                *attention.backward(*heads, numbers(kind, 16, (1, 4, 2, 2), 4)),
                mpcore.pointwise(context, "add", numbers(kind, 12, (3, 4), 1), numbers(kind, 4, (4,), 2)),
                row_loss, dlogits]
            grouped = context.zeros((4, 3))
            mpcore.gemm_grouped(context, ((numbers(kind, 20, (4, 5), seed), numbers(kind, 15, (5, 3), 2), grouped)
                                          for seed in (1,)))
            mpcore.softmax_xent(context, numbers(kind, 32, (4, 8), 1), context.zeros(4, "int32"), row_loss=row_loss,
                                dlogits=dlogits)
            return [values(output) for output in outputs + [grouped]]

        kept = []

        def lasting(*arguments):
            kept.append(Floats(*arguments))
            return kept[-1]

        wanted = results(lasting)
        self.assertEqual(results(Fleeting), wanted)
        self.assertEqual(results(FleetingCopy), wanted)

    def test_cast(self):
        half = self.context.cast(self.array([1, -2.5, 1e6], (3,)), self.context.zeros(3, "fp16"))
        self.assertEqual(half.tobytes(), b"\x00\x3c\x00\xc1\x00\x7c")
        with self.assertRaisesRegex(ValueError, r"dst has shape \(2,\), not \(3,\)"):
            self.context.cast(half, self.context.zeros(2))

    def test_linear_xent(self):
        array, zeros = self.context.array, self.context.zeros
        x, w = array(Floats([2, 0, 0, 0], (2, 2))), array(Floats([0, 3, 0, 1], (2, 2)))
        # All logits are 0.
        labels, count = array(Floats([0, -100], (2,), "<i4")), zeros(1)
        row_loss, loss, dw, dbias = zeros(2), zeros(1), zeros((2, 2)), zeros(2)
        mpcore.xent_count(self.context, labels, count)
        self.assertEqual(values(count), [1])
        options = {"row_loss": row_loss, "loss": loss, "dw": dw, "dbias": dbias, "count": count}
        with self.assertRaisesRegex(ValueError, r"x has shape \(2, 2\) and w \(1, 4\)"):
            mpcore.linear_xent(self.context, x, zeros((1, 4)), labels, **options)
        mpcore.linear_xent(self.context, x, w, labels, **options)
        mpcore.linear_xent(self.context, x, w, labels, bias=zeros(2), dx=x, accumulate=True, **options)
        self.assertAlmostEqual(values(loss)[0], math.log(2), places=6)
        self.assertEqual((values(dw), values(dbias)), ([-2, 0, 2, 0], [-1, 1]))
        self.assertEqual(values(x), [0, -1, 0, 0])

    def test_element_loss(self):
        def call(kind, x, t, **options):
            prediction, loss = self.context.array(Floats(x, (len(x),))), self.context.zeros(1)
            mpcore.element_loss(self.context, kind, prediction, self.context.array(Floats(t, (len(t),))), loss=loss,
                                dprediction=prediction, **options)
            return values(loss)[0], values(prediction)

        self.assertEqual(call("mse", [1, 3], [0, 1]), (2.5, [1, 2]))
        self.assertEqual(call("l1", [1, -3], [0, 1], reduction="sum", weight=0.5), (2.5, [0.5, -0.5]))
        self.assertEqual(call("bce_with_logits", [0, 0], [0, 1])[1], [0.25, -0.25])
        self.assertEqual(call("mse", [1, 3], [0, math.nan], ignore_target=math.nan), (1, [2, 0]))
        weights = self.context.array(Floats([0, 2], (2,)))
        self.assertEqual(call("mse", [math.inf, 3], [0, 1], weights=weights), (4, [0, 4]))
        self.assertEqual(call("huber", [1, 7], [0, 3], delta=2), (3.25, [0.5, 1]))
        self.assertEqual(call("smooth_l1", [1, 7], [0, 3], delta=2), (1.625, [0.25, 0.5]))
        self.assertEqual(call("linear", [1, 7], [2, 3], loss_scale=self.context.array(Floats([8], (1,)))),
                         (23, [16, 24]))
        with self.assertRaisesRegex(ValueError, "^kind = 'hinge' must be one of: mse, l1, bce_with_logits"):
            call("hinge", [1], [1])
        with self.assertRaisesRegex(ValueError, "target"):
            call("mse", [1, 2], [1])
