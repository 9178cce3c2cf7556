"""Embeddings of small integers, and dropout compared with Philox in plain Python."""

import math

import mpcore
from hosts import Case, Floats, context, integers, values

VOCABULARY, WIDTH = 5, 3
INDICES = [4, 0, 4, 2, 2, 4]
SHAPE = (2, 3)
PADDING = 2


class Embeddings(Case):
    def setUp(self):
        super().setUp()
        self.table = integers(VOCABULARY * WIDTH, 1)
        self.dout = integers(len(INDICES) * WIDTH, 2)
        self.indices = self.context.array(Floats(INDICES, SHAPE, "<i4"))

    def embedding(self, dtype="fp32", **options):
        return mpcore.Embedding(self.context, len(INDICES), VOCABULARY, WIDTH, dtype, **options)

    def dtable(self, padding=None, begin=0):
        sums = [begin] * (VOCABULARY * WIDTH)
        for i, index in enumerate(INDICES):
            if index != padding:
                for j in range(WIDTH):
                    sums[index * WIDTH + j] += self.dout[i * WIDTH + j]
        return sums

    def test_forward(self):
        wanted = [self.table[index * WIDTH + j] for index in INDICES for j in range(WIDTH)]
        for dtype in ("fp32", "fp16", "bf16"):
            embedding = self.embedding(dtype)
            table = self.array(self.table, embedding.table_shape, dtype)
            out = embedding.forward(table, self.indices)
            self.assertEqual((out.shape, out.dtype), ((*SHAPE, WIDTH), embedding.dtype))
            self.assertEqual(values(self.context.array(out, "fp32")), wanted)
            given = self.context.zeros(out.shape, dtype)
            self.assertIs(embedding.forward(table, self.indices, given), given)
            self.assertEqual(given.tobytes(), out.tobytes())

    def test_index_out_of_range_gives_nan(self):
        embedding = self.embedding()
        indices = self.context.array(Floats([VOCABULARY, 1, 1, 1, 1, -1], SHAPE, "<i4"))
        out = values(embedding.forward(self.array(self.table, embedding.table_shape), indices))
        self.assertEqual([math.isnan(v) for v in out], [True] * 3 + [False] * 12 + [True] * 3)

    def test_backward(self):
        for dtype, dtype_dtable in (("fp32", None), ("fp16", "fp32"), ("bf16", None)):
            for padding in (None, PADDING):
                embedding = self.embedding(dtype, dtype_dtable=dtype_dtable, padding_index=padding)
                found_inf, amax = self.context.zeros(1), self.context.zeros(1)
                dtable = embedding.backward(self.indices, self.array(self.dout, (*SHAPE, WIDTH), dtype),
                                            found_inf=found_inf, amax=amax)
                wanted = self.dtable(padding)
                self.assertEqual((dtable.shape, dtable.dtype), (embedding.table_shape, embedding.dtype_dtable))
                self.assertEqual(values(self.context.array(dtable, "fp32")), wanted)
                self.assertEqual(values(found_inf), [0])
                self.assertEqual(values(amax), [max(map(abs, wanted))])

    def test_accumulate(self):
        """The flag applies to one call."""
        embedding, dout = self.embedding(padding_index=PADDING), self.array(self.dout, (*SHAPE, WIDTH))
        dtable = self.array([2] * VOCABULARY * WIDTH, embedding.table_shape)
        self.assertIs(embedding.backward(self.indices, dout, dtable, accumulate=True), dtable)
        self.assertEqual(values(dtable), self.dtable(PADDING, 2))
        embedding.backward(self.indices, dout, dtable)
        self.assertEqual(values(dtable), self.dtable(PADDING))

    def test_found_inf(self):
        dout, found_inf = list(self.dout), self.context.zeros(1)
        dout[4] = float("inf")
        self.embedding().backward(self.indices, self.array(dout, (*SHAPE, WIDTH)), found_inf=found_inf)
        self.assertEqual(values(found_inf), [1])

    def test_no_rows(self):
        embedding = mpcore.Embedding(self.context, 0, VOCABULARY, WIDTH, "fp32")
        none = self.context.empty(0, "int32")
        self.assertEqual(embedding.forward(self.array(self.table, embedding.table_shape), none).shape, (0, WIDTH))
        dtable = embedding.backward(none, self.context.empty((0, WIDTH)))
        self.assertEqual(values(dtable), [0] * VOCABULARY * WIDTH)

    def test_refusals(self):
        embedding, zeros = self.embedding(dtype_dtable="bf16"), self.context.zeros
        table, dout = zeros(embedding.table_shape), zeros((*SHAPE, WIDTH))
        for kind, sentence, call, arguments, options in (
                (TypeError, "indices has dtype uint8, not int32 or int64", embedding.forward,
                 (table, zeros(6, "uint8")), {}),
                (ValueError, "indices has 5 elements, not 6", embedding.backward, (zeros(5, "int32"), dout), {}),
                (ValueError, r"table has shape \(3, 5\), not \(5, 3\)", embedding.forward,
                 (zeros((WIDTH, VOCABULARY)), self.indices), {}),
                (ValueError, r"out has shape \(6, 3\), not \(2, 3, 3\)", embedding.forward,
                 (table, self.indices, zeros((6, WIDTH))), {}),
                (ValueError, r"dout has shape \(6, 3\), not \(2, 3, 3\)", embedding.backward,
                 (self.indices, zeros((6, WIDTH))), {}),
                (TypeError, "dtable has dtype float32, not bfloat16", embedding.backward,
                 (self.indices, dout, table), {}),
                (ValueError, "amax has 3 elements, not 1", embedding.backward, (self.indices, dout),
                 {"amax": zeros(3)}),
                (ValueError, "accumulate requires dtable", embedding.backward,
                 (self.indices, dout), {"accumulate": True}),
                (ValueError, "num_embeddings = 4294967297 must be from ", mpcore.Embedding,
                 (self.context, 1, 2**32 + 1, 1), {}),
                (mpcore.Error, "padding_index = 5 is outside", self.embedding, (), {"padding_index": 5}),
                (mpcore.Error, "out = .* overlaps table", mpcore.Embedding(self.context, 1, 1, 1, "fp32").forward,
                 self.alias(), {})):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                call(*arguments, **options)

    def alias(self):
        one = self.context.zeros((1, 1))
        return one, self.context.zeros(1, "int32"), one


def philox(key, counter):
    """Philox 4x32-10; the low words of the counter come first."""
    words, keys = list(counter), [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [second >> 32 ^ words[1] ^ keys[0], second & 0xFFFFFFFF,
                 first >> 32 ^ words[3] ^ keys[1], first & 0xFFFFFFFF]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return words


class Dropout(Case):
    COUNT = 50

    def setUp(self):
        super().setUp()
        self.numbers = [v or 5 for v in integers(self.COUNT, 3)]

    def test_philox_has_the_published_values(self):
        self.assertEqual(philox(0, (0, 0, 0, 0)), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])

    def wanted(self, p, seed, offset):
        counter = (offset & 0xFFFFFFFF, offset >> 32 & 0xFFFFFFFF)
        keeps = [philox(seed, (i // 4, *counter, 0))[i % 4] >= 2**32 * p for i in range(self.COUNT)]
        return [v / (1 - p) if keep else 0 for v, keep in zip(self.numbers, keeps)]

    def test_masks(self):
        for p, seed, offset, dtype in ((0.5, 0, None, "fp32"), (0.75, 2**64 - 1, 2**40 + 7, "fp16"),
                                       (0.5, 1234567890123, -1, "bf16"), (0, 1, None, "fp16")):
            with self.subTest(p=p, seed=seed, offset=offset):
                x = self.context.array(Floats(self.numbers, (5, self.COUNT // 5)), dtype)
                counter = None if offset is None else self.context.array(Floats([offset], (1,), "<i8"))
                y = mpcore.dropout(self.context, x, p, seed, offset=counter)
                self.assertEqual((y.shape, y.dtype), (x.shape, x.dtype))
                self.assertEqual(values(self.context.array(y, "fp32")), self.wanted(p, seed, offset or 0))
                self.assertIs(mpcore.dropout(self.context, x, p, seed, x, offset=counter), x)
                self.assertEqual(x.tobytes(), y.tobytes())

    def test_empty_array(self):
        self.assertEqual(mpcore.dropout(self.context, self.context.empty(0), 0.5, 0).tobytes(), b"")

    def test_refusals(self):
        x = self.context.zeros(4)
        for kind, sentence, arguments, options in (
                (mpcore.Error, r"p = 1 is outside \[0, 1\)", (x, 1.0, 0), {}),
                (ValueError, "seed = 18446744073709551616 must be from ", (x, 0.5, 2**64), {}),
                (ValueError, r"y has shape \(3,\), not \(4,\)", (x, 0.5, 0, self.context.zeros(3)), {}),
                (TypeError, "y has dtype float16, not float32", (x, 0.5, 0, self.context.zeros(4, "fp16")), {}),
                (TypeError, "offset has dtype float32, not int64", (x, 0.5, 0), {"offset": x})):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                mpcore.dropout(self.context, *arguments, **options)
