"""Normalization, rotary embeddings, softmax, gated units, repeated rows, strided copies and
attention: strides, packed arrays and errors."""

import mpcore
from hosts import Case, OnlyDlpack, integers, needs_host, needs_numpy, numpy, values


class Norms(Case):
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
        norm.backward(packed[:, :, ::2], dy, dx=OnlyDlpack(dx[:, :, ::2]))
        self.assertEqual(dx[:, :, ::2].tobytes(), wanted_dx.tobytes())
        self.all_refused(
            (ValueError, "dx has strides .* like x", lambda: norm.backward(packed[:, :, ::2], dy)),
            (ValueError, r"x has shape \(2, 5, 4, 2\), which must end with \(2, 4\)",
             lambda: norm.forward(packed[:, :, ::2].transpose(0, 1, 3, 2))))

    def test_unknown_kind(self):
        self.refused(ValueError, "kind = 'batch' must be one of: layer, rms", mpcore.Norm, self.context, "batch", 1, 1)


class Rope(Case):
    @needs_numpy
    @needs_host
    def test_packed_queries_and_keys(self):
        packed = numpy.array(integers(2 * 3 * 5 * 4, 1), numpy.float32).reshape(2, 3, 5, 4)
        wanted = mpcore.rope(self.context, numpy.ascontiguousarray(packed[:, :, :3]), period=3)
        part = packed[:, :, :3]
        mpcore.rope(self.context, part, OnlyDlpack(part), period=3)
        self.assertEqual(part.tobytes(), wanted.tobytes())

    def test_missing_dimension(self):
        with self.assertRaisesRegex(ValueError, "x has 2 dimensions, but must have at least 3"):
            mpcore.rope(self.context, self.context.zeros((3, 4)))


class Softmax(Case):
    @needs_numpy
    @needs_host
    def test_strided_rows_in_place(self):
        wide = numpy.array(integers(24, 1), numpy.float32).reshape(3, 8)
        wanted = mpcore.softmax_forward(self.context, numpy.ascontiguousarray(wide[:, 1:6]))
        part = wide[:, 1:6]
        mpcore.softmax_forward(self.context, OnlyDlpack(part), part)
        self.assertEqual(part.tobytes(), wanted.tobytes())
        dy = numpy.ones_like(part)
        self.refused(ValueError, "dy has strides .* like y", mpcore.softmax_backward, self.context, part, dy)
        self.refused(ValueError, "rows of x must be contiguous", mpcore.softmax_forward, self.context, wide[:, ::2])
        with self.assertRaisesRegex(ValueError, "rows of x must be contiguous"):
            mpcore.softmax_forward(self.context, numpy.broadcast_to(wide[0], (3, 8)))

    def test_refusals(self):
        x = self.context.zeros((2, 3, 4))

        def call(**options):
            return lambda: mpcore.softmax_forward(self.context, x, **options)

        self.all_refused(
            (ValueError, "mutually exclusive", call(causal=True, mask=x)),
            (ValueError, r"mask has shape \(2, 4\), not \(2, 3, 4\) or its", call(mask=self.context.zeros((2, 4)))),
            (ValueError, "lengths has 4 elements, which must divide the 6 rows of x",
             call(lengths=self.context.zeros(4, "int32"))),
            (ValueError, "x has 1 dimensions", lambda: mpcore.softmax_forward(self.context, self.context.zeros(4))))


class GatedUnits(Case):
    def test_refusals(self):
        self.all_refused(
            (ValueError, "x has 3 columns, but must have an even number",
             lambda: mpcore.glu_forward(self.context, "silu", self.context.zeros((2, 3)))),
            (ValueError, "beta = 1 requires sum",
             lambda: mpcore.sum_rows(self.context, self.context.zeros((6, 4)), 3, beta=1)))

    @needs_numpy
    @needs_host
    def test_strided_rows(self):
        wide = numpy.array(integers(30, 1), numpy.float32).reshape(3, 10)
        y = numpy.zeros((3, 5), numpy.float32)
        mpcore.glu_forward(self.context, "none", wide[:, 2:8], y[:, 1:4])
        self.assertEqual(y[:, 1:4].tolist(), (wide[:, 2:5] * wide[:, 5:8]).tolist())
        self.assertEqual(y[:, ::4].tolist(), [[0, 0]] * 3)


class StridedCopies(Case):
    def test_dense_arrays(self):
        a = integers(6, 1)
        x = self.array(a, (2, 3))
        copy = mpcore.strided_copy(self.context, x)
        self.assertEqual((copy.shape, values(copy)), ((2, 3), a))
        self.assertEqual(mpcore.strided_copy(self.context, self.context.zeros((0, 3))).shape, (0, 3))
        self.all_refused(
            (ValueError, "beta = 1 requires y", lambda: mpcore.strided_copy(self.context, x, beta=1)),
            (mpcore.Error, r"rank = 7 is outside \[0, 6\]",
             lambda: mpcore.strided_copy(self.context, self.context.zeros((1,) * 7))))

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
        mpcore.strided_copy(self.context, OnlyDlpack(x.T), OnlyDlpack(y))
        self.assertEqual(y.tolist(), x.T.tolist())
        self.all_refused(
            (mpcore.Error, r"x_stride\[0\] = -12 is negative", lambda: mpcore.strided_copy(self.context, x[::-1])),
            (ValueError, "y is read-only",
             lambda: mpcore.strided_copy(self.context, x, numpy.broadcast_to(x[:1], x.shape))))


class AttentionPasses(Case):
    def test_kernels(self):
        attention = mpcore.Attention(self.context, 1, 1, 4, 4, 1, "fp32")
        self.assertEqual(attention.explain().count("\nkernel        attention_plain\n"), 2)
        self.assertEqual(attention.kernels()[0].name, b"attention_plain")

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
        packed.backward(OnlyDlpack(parts[0]), *parts[1:], o, d_o, *dparts, q_ends=ends, kv_ends=ends)
        plain = mpcore.Attention(self.context, 2, heads, length, length, dim, **options)
        arrays = [padded(part) for part in parts]
        given = {name: numpy.array(lengths, numpy.int32) for name in ("q_lengths", "kv_lengths")}
        wanted = plain.forward(*arrays, **given)
        grads = plain.backward(*arrays, wanted, padded(d_o), **given)
        self.assertEqual(padded(numpy.asarray(o)).tobytes(), wanted.tobytes())
        for part, grad in zip(dparts, grads):
            self.assertEqual(padded(part).tobytes(), grad.tobytes())
        self.refused(ValueError, "dq has strides .* like q", packed.backward, *parts, o, d_o, q_ends=ends, kv_ends=ends)

    def test_unknown_option(self):
        attention, x = mpcore.Attention(self.context, 1, 1, 1, 1, 1, "fp32"), self.context.zeros((1, 1, 1, 1))
        self.refused(TypeError, "unexpected keyword argument 'sink'", attention.forward, x, x, x, sink=None)
