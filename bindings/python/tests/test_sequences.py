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
        context, x = self.context, self.context.zeros((*SHAPE, WIDTH))
        self.all_refused(
            (ValueError, "accumulate requires dtable",
             lambda: self.embedding().backward(self.indices, x, accumulate=True)),
            (ValueError, "num_embeddings = 4294967297 must be from ",
             lambda: mpcore.Embedding(context, 1, 2**32 + 1, 1)),
            (ValueError, "seed = 18446744073709551616 must be from ", lambda: mpcore.dropout(context, x, 0.5, 2**64)))

    def test_dropout_of_an_empty_array(self):
        self.assertEqual(mpcore.dropout(self.context, self.context.empty(0), 0.5, 0).tobytes(), b"")
