"""Normalization, rotary embeddings, softmax, gated units, repeated rows, strided copies and
attention, compared with plain loops in fp64."""

import math

import mpcore
from hosts import Case, Floats, context, integers, needs_host, needs_numpy, numpy, values


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def split(numbers, length):
    return [numbers[i:i + length] for i in range(0, len(numbers), length)]


class Exporter:
    """An array that has only DLPack."""

    def __init__(self, owner):
        self.owner = owner

    def __dlpack__(self, **options):
        return self.owner.__dlpack__(**options)


class Layers(Case):
    def integers(self, shape, seed, dtype="fp32"):
        numbers = integers(math.prod(shape), seed)
        return self.array(numbers, shape, dtype), numbers

    def assert_close(self, got, wanted, bound=2e-6):
        got = values(got) if hasattr(got, "tobytes") else got
        self.assertEqual(len(got), len(wanted))
        for i, (a, b) in enumerate(zip(got, wanted)):
            self.assertLessEqual(abs(a - b), bound * max(1, abs(b)), f"{i}: {a}, {b}")

    def assert_refused(self, table):
        for kind, sentence, call in table:
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                call()


class Norms(Layers):
    ROWS, GROUPS, COLUMNS = 3, 2, 5

    def wanted(self, kind, r, gamma, beta, dy, dsum):
        """Returns y, dr, dgamma and dbeta for zero-centered gamma and epsilon = 0.25."""
        n, y, dr = self.COLUMNS, [], []
        dgamma, dbeta = [0.0] * n, [0.0] * n
        for vector, grads, others in zip(split(r, n), split(dy, n), split(dsum, n)):
            mean = sum(vector) / n if kind == "layer" else 0
            rstd = 1 / math.sqrt(sum((v - mean) ** 2 for v in vector) / n + 0.25)
            xhat, g = [(v - mean) * rstd for v in vector], [d * (1 + w) for d, w in zip(grads, gamma)]
            y += [h * (1 + w) + b for h, w, b in zip(xhat, gamma, beta)]
            mean_g = sum(g) / n if kind == "layer" else 0
            dr += [rstd * (a - mean_g - h * dot(g, xhat) / n) + s for a, h, s in zip(g, xhat, others)]
            dgamma = [s + d * h for s, d, h in zip(dgamma, grads, xhat)]
            dbeta = [s + d for s, d in zip(dbeta, grads)]
        return y, dr, dgamma, dbeta

    def test_both_passes(self):
        shape = self.ROWS, self.GROUPS, self.COLUMNS
        for kind in ("layer", "rms"):
            norm = mpcore.Norm(self.context, kind, self.ROWS, self.COLUMNS, "fp32", groups=self.GROUPS, epsilon=0.25,
                               zero_centered=True)
            (x, a), (residual, b) = self.integers(shape, 1), self.integers(shape, 2)
            (dy, of_dy), (dsum, of_dsum) = self.integers(shape, 3), self.integers(shape, 4)
            gamma, of_gamma = self.integers((self.COLUMNS,), 5)
            beta, of_beta = self.integers((self.COLUMNS,), 6) if kind == "layer" else (None, [0] * self.COLUMNS)
            y, dr, of_dgamma, of_dbeta = self.wanted(kind, [v + w for v, w in zip(a, b)], of_gamma, of_beta, of_dy,
                                                     of_dsum)
            total, dresidual = self.context.zeros(shape), self.context.zeros(shape)
            self.assert_close(norm.forward(x, gamma, beta, residual=residual, sum=total), y)
            dgamma = self.array([1] * self.COLUMNS, (self.COLUMNS,))
            dbeta = self.context.zeros(self.COLUMNS) if kind == "layer" else None
            amax, found_inf = self.context.zeros(1), self.context.zeros(1)
            dx = norm.backward(None, dy, gamma, dgamma, dbeta, sum=total, dsum=dsum, dresidual=dresidual,
                               accumulate=True, amax=amax, found_inf=found_inf)
            self.assert_close(dx, dr)
            self.assertEqual(dresidual.tobytes(), dx.tobytes())
            self.assert_close(dgamma, [v + 1 for v in of_dgamma])
            stored = values(dx) + values(dgamma)
            if kind == "layer":
                self.assert_close(dbeta, of_dbeta)
                stored += values(dbeta)
            self.assertEqual((values(found_inf), values(amax)), ([0], [max(map(abs, stored))]))

    def test_dropout_in_the_residual_branch(self):
        """The mask is that of dropout()."""
        norm = mpcore.Norm(self.context, "rms", 4, 6, "fp16", dtype_residual="fp32", dropout=0.5, dropout_seed=7)
        x, _ = self.integers((4, 6), 1, "fp16")
        zeros, total = self.context.zeros((4, 6)), self.context.zeros((4, 6))
        offset = self.context.array(Floats([3], (1,), "<i8"))
        norm.forward(x, residual=zeros, sum=total, dropout_offset=offset)
        dropped = mpcore.dropout(self.context, x, 0.5, 7, offset=offset)
        self.assertEqual(values(total), values(self.context.array(dropped, "fp32")))

    @needs_numpy
    @needs_host
    def test_heads_of_a_packed_array(self):
        heads, dim = 3, 4
        packed = numpy.array(integers(2 * 5 * heads * dim, 1), numpy.float32).reshape(2, 5, heads, dim)
        norm = mpcore.Norm(self.context, "layer", 10, dim, "fp32", groups=2)
        dense = numpy.ascontiguousarray(packed[:, :, ::2])
        wanted = norm.forward(dense)
        dy = numpy.array(integers(80, 2), numpy.float32).reshape(2, 5, 2, dim)
        wanted_dx = norm.backward(dense, dy)
        dx, y = numpy.zeros_like(packed), packed.copy()
        part = y[:, :, ::2]
        self.assertIs(norm.forward(part, y=part), part)
        self.assertEqual(part.tobytes(), wanted.tobytes())
        self.assertEqual(y[:, :, 1].tobytes(), packed[:, :, 1].tobytes())
        norm.backward(packed[:, :, ::2], dy, dx=Exporter(dx[:, :, ::2]))
        self.assertEqual(dx[:, :, ::2].tobytes(), wanted_dx.tobytes())
        self.assert_refused((
            (ValueError, "dx has strides .* like x", lambda: norm.backward(packed[:, :, ::2], dy)),
            (ValueError, r"x has shape \(2, 5, 4, 2\), which must end with \(2, 4\)",
             lambda: norm.forward(packed[:, :, ::2].transpose(0, 1, 3, 2)))))

    def test_refusals(self):
        norm, x = mpcore.Norm(self.context, "rms", 3, 4, "fp32"), self.context.zeros((3, 4))
        zeros = self.context.zeros
        self.assert_refused((
            (ValueError, "kind = 'batch' must be one of: layer, rms", lambda: mpcore.Norm(self.context, "batch", 1, 1)),
            (mpcore.Error, "columns = 0", lambda: mpcore.Norm(self.context, "rms", 1, 0)),
            (ValueError, "x has 8 elements, not 12", lambda: norm.forward(zeros((2, 4)))),
            (ValueError, "gamma has 3 elements, not 4", lambda: norm.forward(x, zeros(3))),
            (TypeError, "sum has dtype float16, not float32",
             lambda: norm.forward(x, residual=x, sum=zeros(12, "fp16"))),
            (mpcore.Error, "beta = .* must be NULL for MP_NORM_RMS", lambda: norm.forward(x, beta=zeros(4))),
            (mpcore.Error, "tensors->dx = .* overlaps tensors->x", lambda: norm.backward(x, zeros((3, 4)), dx=x))))


class Rope(Layers):
    def test_rotation(self):
        rows, heads, dim, rotary = 6, 2, 6, 4
        x, numbers = self.integers((2, 3, heads, dim), 1)
        for interleaved in (False, True):
            wanted = list(numbers)
            for r in range(rows):
                for h in range(heads):
                    for i in range(rotary // 2):
                        start, angle = (r * heads + h) * dim, r % 3 * 100.0 ** (-2 * i / rotary)
                        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + rotary // 2)
                        u, v = numbers[start + a], numbers[start + b]
                        wanted[start + a] = u * math.cos(angle) - v * math.sin(angle)
                        wanted[start + b] = v * math.cos(angle) + u * math.sin(angle)
            options = {"rotary_dim": rotary, "base": 100.0, "interleaved": interleaved}
            y = mpcore.rope(self.context, x, period=3, **options)
            self.assertEqual(y.shape, x.shape)
            self.assert_close(y, wanted)
            positions = self.context.array(Floats([0, 1, 2] * 2, (2, 3), "<i4"))
            given = mpcore.rope(self.context, x, positions=positions, inv_freq=self.array([1, 0.1], (2,)), **options)
            self.assert_close(given, wanted)
            amax = self.context.zeros(1)
            self.assertIs(mpcore.rope(self.context, y, y, period=3, inverse=True, amax=amax, **options), y)
            self.assert_close(y, numbers)
            self.assertEqual(values(amax), [max(map(abs, values(y)))])

    @needs_numpy
    @needs_host
    def test_packed_queries_and_keys(self):
        packed = numpy.array(integers(2 * 3 * 5 * 4, 1), numpy.float32).reshape(2, 3, 5, 4)
        wanted = mpcore.rope(self.context, numpy.ascontiguousarray(packed[:, :, :3]), period=3)
        part = packed[:, :, :3]
        mpcore.rope(self.context, part, Exporter(part), period=3)
        self.assertEqual(part.tobytes(), wanted.tobytes())

    def test_refusals(self):
        x = self.context.zeros((3, 2, 4))
        self.assert_refused((
            (ValueError, "x has 2 dimensions, but must have at least 3",
             lambda: mpcore.rope(self.context, self.context.zeros((3, 4)))),
            (ValueError, "inv_freq has 3 elements, not 2",
             lambda: mpcore.rope(self.context, x, inv_freq=self.context.zeros(3))),
            (TypeError, "positions has dtype int64, not int32",
             lambda: mpcore.rope(self.context, x, positions=self.context.zeros(3, "int64"))),
            (mpcore.Error, "rotary_dim = 3 must be even", lambda: mpcore.rope(self.context, x, rotary_dim=3))))


class Softmax(Layers):
    QUERIES, KEYS = 3, 4  # of each of two matrices

    def wanted(self, dy, scores, log):
        """Returns y and dx for scores of -infinity at excluded elements."""
        y, dx = [], []
        for s, grads in zip(split(scores, self.KEYS), split(dy, self.KEYS)):
            total = sum(map(math.exp, s))
            p = [math.exp(v) / total if total else 0 for v in s]
            y += [v - math.log(total) if total else -math.inf for v in s] if log else p
            shares, mean = (p, sum(g for g, v in zip(grads, p) if v)) if log else (p, dot(grads, p))
            dx += [0.5 * ((g if v else 0) - v * mean if log else v * (g - mean)) for g, v in zip(grads, shares)]
        return y, dx

    def test_masks(self):
        shape = 2, self.QUERIES, self.KEYS
        (x, a), (dy, of_dy) = self.integers(shape, 1), self.integers(shape, 2)
        mask, b = self.integers(shape[1:], 3)
        lengths = self.context.array(Floats([2, 0], (2,), "<i4"))
        cases = (("none", {}, lambda i, q, k: 0),
                 ("causal", {"causal": True}, lambda i, q, k: 0 if k <= q + 1 else -math.inf),
                 ("lengths", {"lengths": lengths}, lambda i, q, k: 0 if k < [2, 0][i] else -math.inf),
                 ("mask", {"mask": mask}, lambda i, q, k: b[q * self.KEYS + k]))
        for name, options, bias in cases:
            for log in (False, True):
                scores = [0.5 * v + bias(*(j // 12, j // 4 % 3, j % 4)) for j, v in enumerate(a)]
                y, dx = self.wanted(of_dy, scores, log)
                with self.subTest(name, log=log):
                    got = mpcore.softmax_forward(self.context, x, scale=0.5, log=log, **options)
                    finite = [(v, w) for v, w in zip(values(got), y) if w > -math.inf]
                    self.assert_close([v for v, _ in finite], [w for _, w in finite])
                    self.assertEqual([v == -math.inf for v in values(got)], [w == -math.inf for w in y])
                    backward = {key: value for key, value in options.items() if key != "mask"}
                    amax = self.context.zeros(1)
                    grads = mpcore.softmax_backward(self.context, got, dy, scale=0.5, log=log, amax=amax, **backward)
                    self.assert_close(grads, dx)
                    self.assertEqual(values(amax), [max(map(abs, values(grads)))])

    @needs_numpy
    @needs_host
    def test_strided_rows_in_place(self):
        wide = numpy.array(integers(24, 1), numpy.float32).reshape(3, 8)
        wanted = mpcore.softmax_forward(self.context, numpy.ascontiguousarray(wide[:, 1:6]))
        part = wide[:, 1:6]
        mpcore.softmax_forward(self.context, Exporter(part), part)
        self.assertEqual(part.tobytes(), wanted.tobytes())
        dy = numpy.ones_like(part)
        with self.assertRaisesRegex(ValueError, "dy has strides .* like y"):
            mpcore.softmax_backward(self.context, part, dy)
        with self.assertRaisesRegex(ValueError, "rows of x must be contiguous"):
            mpcore.softmax_forward(self.context, wide[:, ::2])
        with self.assertRaisesRegex(ValueError, "rows of x must be contiguous"):
            mpcore.softmax_forward(self.context, numpy.broadcast_to(wide[0], (3, 8)))

    def test_refusals(self):
        x = self.context.zeros((2, 3, 4))

        def call(**options):
            return lambda: mpcore.softmax_forward(self.context, x, **options)

        self.assert_refused((
            (ValueError, "mutually exclusive", call(causal=True, mask=x)),
            (ValueError, r"mask has shape \(2, 4\), not \(2, 3, 4\) or its", call(mask=self.context.zeros((2, 4)))),
            (ValueError, "lengths has 4 elements, which must divide the 6 rows of x",
             call(lengths=self.context.zeros(4, "int32"))),
            (ValueError, "x has 1 dimensions", lambda: mpcore.softmax_forward(self.context, self.context.zeros(4))),
            (mpcore.Error, "scale = nan", call(scale=math.nan))))


class GatedUnits(Layers):
    def test_swiglu(self):
        (x, numbers), (dy, of_dy) = self.integers((2, 3, 8), 1), self.integers((2, 3, 4), 2)
        y, dx = [], []
        for row, grads in zip(split(numbers, 8), split(of_dy, 4)):
            s = [1 / (1 + math.exp(-v)) for v in row[:4]]
            y += [g * w * up for g, w, up in zip(row, s, row[4:])]
            dx += [d * up * w * (1 + g * (1 - w)) for d, up, w, g in zip(grads, row[4:], s, row)]
            dx += [d * g * w for d, g, w in zip(grads, row, s)]
        self.assert_close(mpcore.glu_forward(self.context, "silu", x), y)
        amax = self.context.zeros(1)
        self.assertIs(mpcore.glu_backward(self.context, "silu", x, dy, x, amax=amax), x)
        self.assert_close(x, dx)
        self.assertEqual(values(amax), [max(map(abs, values(x)))])
        self.assert_refused((
            (ValueError, "x has 3 columns, but must have an even number",
             lambda: mpcore.glu_forward(self.context, "silu", self.context.zeros((2, 3)))),
            (ValueError, r"dy has shape \(2, 8\), not \(2, 3, 4\)",
             lambda: mpcore.glu_backward(self.context, "silu", x, self.context.zeros((2, 8)))),
            (mpcore.Error, "activation = MP_ACT_DRELU is a derivative",
             lambda: mpcore.glu_forward(self.context, "drelu", x))))

    @needs_numpy
    @needs_host
    def test_strided_rows(self):
        wide = numpy.array(integers(30, 1), numpy.float32).reshape(3, 10)
        y = numpy.zeros((3, 5), numpy.float32)
        mpcore.glu_forward(self.context, "none", wide[:, 2:8], y[:, 1:4])
        self.assertEqual(y[:, 1:4].tolist(), (wide[:, 2:5] * wide[:, 5:8]).tolist())
        self.assertEqual(y[:, ::4].tolist(), [[0, 0]] * 3)

    def test_repeated_rows(self):
        (x, a), (table, b) = self.integers((2, 3, 4), 1), self.integers((3, 4), 2)
        y = mpcore.pointwise(self.context, "add", x, table)
        self.assertEqual(values(y), [v + w for v, w in zip(a, b * 2)])
        found_inf, amax = self.context.zeros(1), self.context.zeros(1)
        total = mpcore.sum_rows(self.context, y, 3, dtype="fp16", found_inf=found_inf, amax=amax)
        wanted = [2 * w + v + u for w, v, u in zip(b, a, a[12:])]
        self.assertEqual((total.shape, values(self.context.array(total, "fp32"))), ((3, 4), wanted))
        self.assertEqual((values(found_inf), values(amax)), ([0], [max(map(abs, wanted))]))
        self.assertIs(mpcore.sum_rows(self.context, y, 3, total, beta=2.0), total)
        self.assertEqual(values(self.context.array(total, "fp32")), [3 * v for v in wanted])
        self.assert_refused((
            (ValueError, "beta = 1 requires sum", lambda: mpcore.sum_rows(self.context, x, 3, beta=1)),
            (ValueError, r"sum has shape \(3, 4\), not \(2, 4\)", lambda: mpcore.sum_rows(self.context, x, 2, total)),
            (mpcore.Error, "period = 0 must be at least 1", lambda: mpcore.sum_rows(self.context, x, 0))))


class StridedCopies(Layers):
    def test_dense_arrays(self):
        (x, a), (y, b) = self.integers((2, 3), 1), self.integers((2, 3), 2)
        copy = mpcore.strided_copy(self.context, x)
        self.assertEqual((copy.shape, values(copy)), ((2, 3), a))
        amax = self.context.zeros(1)
        self.assertIs(mpcore.strided_copy(self.context, x, y, alpha=2.0, beta=-1.0, amax=amax), y)
        wanted = [2 * v - w for v, w in zip(a, b)]
        self.assertEqual((values(y), values(amax)), (wanted, [max(map(abs, wanted))]))
        self.assertEqual(mpcore.strided_copy(self.context, self.context.zeros((0, 3))).shape, (0, 3))
        self.assert_refused((
            (ValueError, "beta = 1 requires y", lambda: mpcore.strided_copy(self.context, x, beta=1)),
            (ValueError, r"y has shape \(3, 2\), not \(2, 3\)",
             lambda: mpcore.strided_copy(self.context, x, self.context.zeros((3, 2)))),
            (TypeError, "y has dtype float16, not float32",
             lambda: mpcore.strided_copy(self.context, x, self.context.zeros((2, 3), "fp16"))),
            (mpcore.Error, r"rank = 7 is outside \[0, 6\]",
             lambda: mpcore.strided_copy(self.context, self.context.zeros((1,) * 7))),
            (mpcore.Error, "alpha = nan", lambda: mpcore.strided_copy(self.context, x, alpha=math.nan))))

    @needs_numpy
    @needs_host
    def test_views(self):
        x = numpy.array(integers(24, 1), numpy.float16).reshape(2, 3, 4)
        for name, part in (("transposed", x.transpose(2, 0, 1)), ("slice", x[:, 1:, ::2]), ("one", x[1, 2, 3]),
                           ("repeated", numpy.broadcast_to(x[0], (5, 3, 4))), ("reversed, one", x[:1][::-1])):
            with self.subTest(name):
                wide = numpy.ones((*part.shape, 3), numpy.float16)
                mpcore.strided_copy(self.context, part, wide[..., 1])
                self.assertEqual(wide[..., 1].tolist(), part.tolist())
                self.assertTrue((wide[..., ::2] == 1).all())
        y = numpy.zeros((4, 3, 2), numpy.float16)
        mpcore.strided_copy(self.context, Exporter(x.T), Exporter(y))
        self.assertEqual(y.tolist(), x.T.tolist())
        self.assert_refused((
            (mpcore.Error, r"x_stride\[0\] = -12 is negative", lambda: mpcore.strided_copy(self.context, x[::-1])),
            (ValueError, "y is read-only",
             lambda: mpcore.strided_copy(self.context, x, numpy.broadcast_to(x[:1], x.shape))),
            (mpcore.Error, "y = ", lambda: mpcore.strided_copy(self.context, x[0], x[0]))))


class AttentionPasses(Layers):
    """Two sequences, four query heads that share two heads of k and v."""

    BATCH, HEADS, KV_HEADS, Q_LEN, KV_LEN, DIM, DIM_V = 2, 4, 2, 3, 5, 4, 2
    Q_LENGTHS, KV_LENGTHS = [3, 2], [4, 5]

    def numbers(self, rows, heads, dim, seed):
        """Rows of heads, scaled so that the scores are small."""
        return [v / 4 for v in integers(rows * heads * dim, seed)]

    def wanted(self, q, k, v, d_o, sinks, causal):
        """Loops over the valid rows of both sequences; rows are lists of heads."""
        o, dq = [[0.0] * self.DIM_V for _ in d_o], [[0.0] * self.DIM for _ in q]
        dk, dv, dsinks = [[0.0] * self.DIM for _ in k], [[0.0] * self.DIM_V for _ in v], [0.0] * self.HEADS
        for b in range(self.BATCH):
            queries, keys = self.Q_LENGTHS[b], self.KV_LENGTHS[b]
            for h in range(self.HEADS):
                for i in range(queries):
                    at = (b * self.Q_LEN + i) * self.HEADS + h
                    seen = [(b * self.KV_LEN + j) * self.KV_HEADS + h // 2 for j in range(keys)
                            if not causal or j <= i + keys - queries]
                    weights = [math.exp(dot(q[at], k[j]) / 2) for j in seen]
                    total = sum(weights) + math.exp(sinks[h])
                    p = [w / total for w in weights]
                    o[at] = [sum(w * v[j][e] for w, j in zip(p, seen)) for e in range(self.DIM_V)]
                    d = dot(d_o[at], o[at])
                    dsinks[h] -= math.exp(sinks[h]) / total * d
                    for w, j in zip(p, seen):
                        ds = w * (dot(d_o[at], v[j]) - d) / 2
                        dq[at] = [s + ds * e for s, e in zip(dq[at], k[j])]
                        dk[j] = [s + ds * e for s, e in zip(dk[j], q[at])]
                        dv[j] = [s + w * e for s, e in zip(dv[j], d_o[at])]
        return (*([e for row in rows for e in row] for rows in (o, dq, dk, dv)), dsinks)

    def attention(self, dtype="fp32", **options):
        return mpcore.Attention(self.context, self.BATCH, self.HEADS, self.Q_LEN, self.KV_LEN, self.DIM, dtype,
                                kv_heads=self.KV_HEADS, head_dim_v=self.DIM_V, **options)

    def test_padded_sequences(self):
        queries, keys = (self.BATCH * self.Q_LEN, self.HEADS), (self.BATCH * self.KV_LEN, self.KV_HEADS)
        shapes = (*queries, self.DIM), (*keys, self.DIM), (*keys, self.DIM_V), (*queries, self.DIM_V)
        numbers = [self.numbers(*shape, seed) for seed, shape in enumerate(shapes)]
        sinks = [v / 4 for v in integers(self.HEADS, 4)]
        for causal in (False, True):
            wanted = self.wanted(*(split(each, shape[2]) for each, shape in zip(numbers, shapes)), sinks, causal)
            attention = self.attention(causal=causal)
            q, k, v, d_o = (self.array(each, shape) for each, shape in zip(
                numbers, (attention.q_shape, attention.k_shape, attention.v_shape, attention.o_shape)))
            options = {"q_lengths": self.context.array(Floats(self.Q_LENGTHS, (2,), "<i4")),
                       "kv_lengths": self.context.array(Floats(self.KV_LENGTHS, (2,), "<i4")),
                       "sinks": self.array(sinks, (self.HEADS,))}
            o, dsinks = attention.forward(q, k, v, **options), self.context.zeros(self.HEADS)
            amax, found_inf = self.context.zeros(1), self.context.zeros(1)
            grads = attention.backward(q, k, v, o, d_o, dsinks=dsinks, amax=amax, found_inf=found_inf, **options)
            for got, each in zip((o, *grads, dsinks), wanted):
                self.assert_close(got, each)
            stored = [abs(e) for grad in grads for e in values(grad)]
            self.assertEqual((values(found_inf), values(amax)), ([0], [max(stored)]))

    def test_window_and_dropout(self):
        """Queries of 0 give equal weights to the visible keys."""
        zeros, v = self.context.zeros((1, 4, 1, 1)), self.array([1, 3, 5, 9], (1, 4, 1, 1))
        attention = mpcore.Attention(self.context, 1, 1, 4, 4, 1, "fp32", window=(1, 0))
        self.assert_close(attention.forward(zeros, zeros, v), [1, 2, 4, 7])
        self.assertEqual(attention.explain().count("\nkernel        attention_plain\n"), 2)

        def dropped(seed, offset):
            attention = mpcore.Attention(self.context, 1, 1, 64, 64, 1, "fp32", dropout=0.5, dropout_seed=seed)
            zeros, v = self.context.zeros((1, 64, 1, 1)), self.array([1] * 64, (1, 64, 1, 1))
            offset = self.context.array(Floats([offset], (1,), "<i8"))
            return values(attention.forward(zeros, zeros, v, dropout_offset=offset))

        self.assertNotEqual(dropped(0, 0), [1] * 64)
        self.assertNotEqual(dropped(0, 0), dropped(1, 0))
        self.assertNotEqual(dropped(0, 0), dropped(0, 1))

    @needs_numpy
    @needs_host
    def test_packed_sequences_in_a_packed_matrix(self):
        """Equal bits as for dense padded arrays, with q, k and v as parts of one matrix."""
        heads, dim, length, lengths = 2, 4, 5, [5, 3]
        rows, ends = sum(lengths), numpy.array([5, 8], numpy.int32)
        qkv = numpy.array(integers(rows * 3 * heads * dim, 1), numpy.float16).reshape(rows, 3 * heads, dim) / 4
        d_o = numpy.array(integers(rows * heads * dim, 2), numpy.float16).reshape(rows, heads, dim)

        def padded(each):
            out = numpy.zeros((2, length, *each.shape[1:]), each.dtype)
            out[0], out[1, :3] = each[:5], each[5:]
            return out

        options = {"window": (2, -1), "dropout": 0.25, "dropout_seed": 5, "scale": 0.5}
        packed = mpcore.Attention(self.context, 2, heads, length, length, dim, q_rows=rows, kv_rows=rows, **options)
        parts = [qkv[:, i * heads:(i + 1) * heads] for i in range(3)]
        gradient = numpy.zeros_like(qkv)
        dparts = [gradient[:, i * heads:(i + 1) * heads] for i in range(3)]
        o = packed.forward(*parts, q_ends=ends, kv_ends=ends)
        packed.backward(Exporter(parts[0]), *parts[1:], o, d_o, *dparts, q_ends=ends, kv_ends=ends)
        plain = mpcore.Attention(self.context, 2, heads, length, length, dim, **options)
        arrays = [padded(part) for part in parts]
        given = {name: numpy.array(lengths, numpy.int32) for name in ("q_lengths", "kv_lengths")}
        wanted = plain.forward(*arrays, **given)
        grads = plain.backward(*arrays, wanted, padded(d_o), **given)
        self.assertEqual(padded(numpy.asarray(o)).tobytes(), wanted.tobytes())
        for part, grad in zip(dparts, grads):
            self.assertEqual(padded(part).tobytes(), grad.tobytes())
        with self.assertRaisesRegex(ValueError, "dq has strides .* like q"):
            packed.backward(*parts, o, d_o, q_ends=ends, kv_ends=ends)

    def test_refusals(self):
        attention, zeros = self.attention(), self.context.zeros
        q, k, v = zeros(attention.q_shape), zeros(attention.k_shape), zeros(attention.v_shape)
        self.assert_refused((
            (mpcore.Error, "kv_heads = 3 must divide heads = 4",
             lambda: mpcore.Attention(self.context, 1, 4, 1, 1, 8, kv_heads=3)),
            (ValueError, r"k has shape \(2, 3, 4, 4\), not \(2, 5, 2, 4\)", lambda: attention.forward(q, q, v)),
            (TypeError, "q has dtype float16, not float32",
             lambda: attention.forward(zeros(attention.q_shape, "fp16"), k, v)),
            (ValueError, "q_lengths has 3 elements, not 2",
             lambda: attention.forward(q, k, v, q_lengths=zeros(3, "int32"))),
            (ValueError, "sinks has 2 elements, not 4", lambda: attention.forward(q, k, v, sinks=zeros(2))),
            (TypeError, "unexpected keyword argument 'sink'", lambda: attention.forward(q, k, v, sink=None)),
            (mpcore.Error, "q_ends = .* is not supported by the padded form",
             lambda: attention.forward(q, k, v, q_ends=zeros(2, "int32"))),
            (mpcore.Error, "sinks = NULL, but tensors->dsinks requires it",
             lambda: attention.backward(q, k, v, zeros(attention.o_shape), zeros(attention.o_shape), dsinks=zeros(4)))))
