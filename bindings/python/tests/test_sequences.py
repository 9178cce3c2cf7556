"""Embeddings and dropout: empty arrays and errors."""

import mpcore
from hosts import Case, Floats, values

VOCABULARY, WIDTH = 5, 3
INDICES = [4, 0, 4, 2, 2, 4]
SHAPE = (2, 3)


class Embeddings(Case):
    def setUp(self):
        super().setUp()
        self.indices = self.context.array(Floats(INDICES, SHAPE, "<i4"))

    def embedding(self, dtype="fp32", **options):
        return mpcore.Embedding(self.context, len(INDICES), VOCABULARY, WIDTH, dtype, **options)

    def test_accumulate_applies_to_one_call(self):
        dtable, dout = self.context.zeros((VOCABULARY, WIDTH)), self.array([1] * 18, (*SHAPE, WIDTH))
        embedding = self.embedding()
        for accumulate, count in ((True, 3), (True, 6), (False, 3)):
            embedding.backward(self.indices, dout, dtable, accumulate=accumulate)
            self.assertEqual(values(dtable)[-1], count)

    def test_no_rows(self):
        embedding = mpcore.Embedding(self.context, 0, VOCABULARY, WIDTH, "fp16")
        none, table = self.context.empty(0, "int32"), self.context.zeros(embedding.table_shape, "fp16")
        self.assertEqual(embedding.forward(table, none).shape, (0, WIDTH))
        dtable = embedding.backward(none, self.context.empty((0, WIDTH), "fp16"))
        self.assertEqual((dtable.dtype, dtable.tobytes()), ("float16", bytes(2 * VOCABULARY * WIDTH)))

    def test_refusals(self):
        embedding, dout = self.embedding(), self.context.zeros((*SHAPE, WIDTH))
        for kind, sentence, call, arguments, options in (
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


class Dropout(Case):
    def test_empty_array(self):
        self.assertEqual(mpcore.dropout(self.context, self.context.empty(0), 0.5, 0).tobytes(), b"")

    def test_refusals(self):
        x = self.context.zeros(4)
        for kind, sentence, arguments, options in (
                (mpcore.Error, r"p = 1 is outside \[0, 1\)", (x, 1.0, 0), {}),
                (ValueError, "seed = 18446744073709551616 must be from ", (x, 0.5, 2**64), {})):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                mpcore.dropout(self.context, *arguments, **options)
