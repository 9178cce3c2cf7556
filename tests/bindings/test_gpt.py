"""examples/*/gpt.*: training in four languages, files, and logits compared with FP64."""
import math
import re
import struct

import pytest

numpy = pytest.importorskip("numpy", reason="GPT-2 in four languages (no numpy for this Python)")
from tensor_files import read_tensors, write_tensors  # noqa: E402

LAYERS, WIDTH, HEADS, CHARACTERS, STEPS = 2, 64, 2, 96, 20
CHECKPOINT = "mpcore.checkpoint"  # a tensor of saved files


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A text of random words; one character is outside the 96."""
    random = numpy.random.default_rng(1)
    words = ["In", "the", "beginning", "God", "created", "heaven", "and", "earth,", "void;\n", "light\t", "Be!\n"]
    path = tmp_path_factory.mktemp("gpt") / "text"
    path.write_text(" ".join(words[i] for i in random.integers(0, len(words), 2000)), encoding="ascii")
    return path


@pytest.fixture(scope="module")
def gpt(run, build, library_path, text):
    """gpt(option...): the output of the C example, which generates nothing by default."""
    env = {"LD_LIBRARY_PATH": library_path(build), "MP_AUTOCAST": ""}
    return lambda *options, code=0: run(build / "examples/gpt", "--sample", 0, *options, text, code=code, env=env)


@pytest.fixture(scope="module")
def trained(gpt, tmp_path_factory):
    """(output, file) of a run of STEPS steps."""
    path = tmp_path_factory.mktemp("gpt") / "trained.safetensors"
    return gpt("--steps", STEPS, "--save", path), path


def weights(output: str) -> str:
    return re.search(r"^weights ([0-9a-f]{16})$", output, re.MULTILINE)[1]


# ---------------------------------------------------------------- training and files


def test_loss_decreases(trained):
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", trained[0])]
    assert len(losses) == 2 and losses[1] < losses[0] < math.log(CHARACTERS)


@pytest.mark.parametrize("low", ["fp32", "fp16", "bf16"])
def test_resumed_run(gpt, low, tmp_path):
    """The files are equal: weights and checkpoint."""
    whole, half, resumed = (tmp_path / name for name in ("whole", "half", "resumed"))
    options = ("--dtype", low, "--steps", 6)
    output = gpt(*options, "--save", whole)
    assert weights(gpt(*options, "--stop", 3, "--save", half)) != weights(output)
    assert weights(gpt(*options, "--load", half, "--save", resumed)) == weights(output)
    assert resumed.read_bytes() == whole.read_bytes()


def test_tensors_of_a_file(trained):
    tensors, metadata = read_tensors(trained[1])
    assert metadata == {"format": "pt"}
    assert int.from_bytes(trained[1].read_bytes()[:8], "little") % 8 == 0, "data is aligned"
    names = [name for name in tensors if name != CHECKPOINT]
    assert len(names) == 4 + 12 * LAYERS and sum(tensors[name].size for name in names) == 110336
    assert tensors["h.1.attn.c_attn.weight"].shape == (WIDTH, 3 * WIDTH)
    assert tensors[CHECKPOINT].size > 3 * 4 * 110336  # weights and two moments


def test_weights_of_another_type(gpt, trained):
    """Weights of a run in fp16 are loaded for fp32, without its scaler."""
    assert "weights only" in gpt("--dtype", "fp32", "--steps", 0, "--load", trained[1])


def test_file_loads_in_safetensors(trained):
    safetensors = pytest.importorskip("safetensors.numpy", reason="files of gpt in safetensors (no safetensors)")
    tensors, _ = read_tensors(trained[1])
    loaded = safetensors.load_file(trained[1])
    assert loaded.keys() == tensors.keys()
    assert all(numpy.array_equal(loaded[name], tensors[name]) for name in tensors)


def test_generated_text(gpt, trained):
    output = gpt("--steps", STEPS, "--load", trained[1], "--sample", 100, "--prompt", "Be")
    generated = output.split("\n", 1)[1].rsplit("\nweights", 1)[0]
    assert len(generated) == 102 and generated.startswith("Be") and len(set(generated)) > 5


def test_invalid_arguments(gpt, run, build, text, trained, tmp_path):
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(trained[1].read_bytes()[:100000])
    for options, sentence in [
            (["--layers", "two"], "--layers: must be an integer >= 0"),
            (["another"], "FILE: must be one argument"),
            (["--rate", "fast"], "--rate: must be a number > 0"),
            (["--sample", "few"], "--sample: must be an integer >= 0"),
            (["--dtype", "fp64"], "--dtype: must be fp32, fp16 or bf16"),
            (["--gpt2", "7B"], "--gpt2: must be 124M, 355M, 774M or 1558M"),
            (["--load", tmp_path / "missing"], "missing: cannot open file"),
            (["--load", broken], "data_offsets outside the file"),
            (["--width", 32, "--load", trained[1]], "wte.weight: must be in the file")]:
        assert sentence in gpt(*options, code=1)
    assert "--layers: must be" in run(build / "examples/gpt", text, "--layers", "two", code=1), "options after FILE"


@pytest.mark.parametrize("header, error", [
    ('{"a":', "invalid header"),
    ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}', "invalid header"),
    ('{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}}', "invalid header"),
    ('{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}', "invalid header"),
    ('{"a":{"dtype":"F32","shape":[2]}}', "invalid header"),
    ('{"a":{"dtype":"Q8","shape":[8],"data_offsets":[0,8]}}', "unknown dtype"),
    ('{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}', "data_offsets outside the file"),
    ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}', "data_offsets not aligned"),
    ('{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', "shape does not match"),
    ('{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}', "shape does not match"),
    ('{"a\\u0041":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "invalid header"),
    ('{"__metadata__":{},"a\\"":{"shape":[2],"dtype":"F32", "data_offsets":[0, 8]} } ', "wte.weight: must be")])
def test_invalid_file(gpt, tmp_path, header, error):
    path = tmp_path / "invalid"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(8))
    assert error in gpt("--load", path, code=1)


# ---------------------------------------------------------------- languages


@pytest.fixture(scope="module")
def reference(gpt, trained) -> dict:
    """The weights of the C example after STEPS steps."""
    return {"fp16": weights(trained[0]), "bf16": weights(gpt("--dtype", "bf16", "--steps", STEPS))}


@pytest.mark.parametrize("language", ["python", "rust", "fortran"])
def test_language(example, reference, text, language):
    train = example("gpt", language)
    for low, wanted in reference.items():
        assert weights(train(text, low, STEPS)) == wanted, low


# ---------------------------------------------------------------- logits

U32 = 2.0**-24  # unit roundoff of sums, norms and exponentials
SMALL_WIDTH = SMALL_LENGTH = 16


class Reference:
    """The network in FP64.  Every tensor is a pair (value, bound of its error), by running error
    analysis.  Each stored tensor is rounded to the 16-bit type, if any, with unit roundoff u and
    half the smallest subnormal, tiny.  A sum of k products has a relative error of (k + 2) U32."""

    def __init__(self, parameters, u, tiny):
        self.parameters, self.u, self.tiny = parameters, u, tiny

    def rounded(self, value, error):
        return value, error + self.u * (numpy.abs(value) + error) + self.tiny

    def vector(self, name):
        return self.parameters[name].astype(numpy.float64)

    def matrix(self, name):
        return self.rounded(self.vector(name), 0)

    def product(self, x, w):
        (a, ea), (b, eb) = x, w
        size = (numpy.abs(a) + ea) @ (numpy.abs(b) + eb)
        return a @ b, size - numpy.abs(a) @ numpy.abs(b) + (a.shape[-1] + 2) * U32 * size

    def linear(self, x, name):
        value, error = self.product(x, self.matrix(name + ".weight"))
        bias = self.vector(name + ".bias")
        return self.rounded(value + bias, error + U32 * (numpy.abs(value) + numpy.abs(bias)))

    def norm(self, x, name):
        value, error = x
        n = SMALL_WIDTH + 2
        mean = value.mean(-1, keepdims=True)
        d = value - mean
        ed = error + error.mean(-1, keepdims=True) + n * U32 * numpy.abs(value).mean(-1, keepdims=True) + U32 * numpy.abs(d)
        variance = (d * d).mean(-1, keepdims=True) + 1e-5
        ev = ((numpy.abs(d) + ed)**2 * (1 + n * U32) - d * d).mean(-1, keepdims=True)
        r = variance**-0.5
        er = (variance - ev)**-0.5 - r + 4 * U32 * r
        gamma, beta = self.vector(name + ".weight"), self.vector(name + ".bias")
        y = d * r * gamma
        return self.rounded(y + beta, numpy.abs(gamma) * (ed * (r + er) + numpy.abs(d) * er) +
                            4 * U32 * (numpy.abs(y) + numpy.abs(beta)))

    def attention(self, qkv):
        dim = SMALL_WIDTH // HEADS

        def head(i):
            return tuple(part[:, i * dim:(i + 1) * dim] for part in qkv)
        outputs = []
        for i in range(HEADS):
            q, k, v = head(i), head(HEADS + i), head(2 * HEADS + i)
            s, es = self.product(q, tuple(part.T for part in k))
            s, es = s / math.sqrt(dim), es / math.sqrt(dim) + 2 * U32 * numpy.abs(s)
            hidden = numpy.triu(numpy.ones((SMALL_LENGTH, SMALL_LENGTH), bool), 1)
            s[hidden], es[hidden] = -numpy.inf, 0
            p = numpy.exp(s - s.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            # Errors of scores, exponentials, their arguments, the sum, and p in 16 bits.
            largest = numpy.abs(numpy.where(hidden, 0, s)).max()
            relative = numpy.expm1(2 * es.max(-1, keepdims=True)) + (SMALL_LENGTH + 16 + 4 * largest) * U32 + self.u
            outputs.append(self.rounded(*self.product((p, p * relative), v)))
        return tuple(numpy.concatenate(parts, -1) for parts in zip(*outputs))

    def gelu(self, x):
        value, error = x  # the slope is at most 1.13
        tanh = numpy.tanh(math.sqrt(2 / math.pi) * (value + 0.044715 * value**3))
        return self.rounded(0.5 * value * (1 + tanh), 1.13 * error + 8 * U32 * numpy.abs(value))

    def add(self, x, y):
        return self.rounded(x[0] + y[0], x[1] + y[1])

    def logits(self, tokens):
        wte = self.matrix("wte.weight")
        x = self.add(tuple(part[tokens] for part in wte), self.matrix("wpe.weight"))
        for i in range(LAYERS):
            h = self.linear(self.norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")
            x = self.add(x, self.linear(self.attention(h), f"h.{i}.attn.c_proj"))
            h = self.gelu(self.linear(self.norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"))
            x = self.add(x, self.linear(h, f"h.{i}.mlp.c_proj"))
        return self.rounded(*self.product(self.norm(x, "ln_f"), tuple(part.T for part in wte)))


@pytest.fixture(scope="module")
def small():
    """Options of a small network: its error bounds are small, too."""
    return ["--width", SMALL_WIDTH, "--context", SMALL_LENGTH, "--steps", 0]


@pytest.fixture(scope="module")
def random_checkpoint(gpt, small, tmp_path_factory):
    """(parameters, file): random values, also in biases and norms."""
    path, random = tmp_path_factory.mktemp("gpt") / "random.safetensors", numpy.random.default_rng(2)
    gpt(*small, "--save", path)
    parameters = {}
    for name, values in read_tensors(path)[0].items():
        if name == CHECKPOINT:
            continue
        mean = 1 if "ln_" in name and name.endswith("weight") else 0
        # Small matrices keep the bounds small.
        deviation = 0.5 if name.startswith("w") else 0.02 if values.ndim == 2 else 0.1
        parameters[name] = (mean + deviation * random.standard_normal(values.shape)).astype(numpy.float32)
    write_tensors(path, parameters)
    return parameters, path


@pytest.mark.parametrize("low, u, tiny", [("fp32", U32, 0.0), ("fp16", 2.0**-11, 2.0**-25)])
def test_logits(gpt, small, random_checkpoint, tmp_path, text, low, u, tiny):
    parameters, path = random_checkpoint
    gpt(*small, "--dtype", low, "--load", path, "--logits", tmp_path / "logits")
    got, _ = read_tensors(tmp_path / "logits")
    codes = numpy.frombuffer(text.read_bytes()[:SMALL_LENGTH], numpy.uint8).astype(int)
    tokens = numpy.where(codes == 10, 0, numpy.where((codes >= 32) & (codes <= 126), codes - 31, 1))
    assert numpy.array_equal(got["tokens"], tokens)
    value, bound = Reference(parameters, u, tiny).logits(tokens)
    print(low, "largest error", numpy.abs(got["logits"] - value).max(), "bound", bound.max(), "logits", value.std())
    assert numpy.all(numpy.abs(got["logits"] - value) <= bound)
    assert bound.max() < value.std() * (1e-3 if low == "fp32" else 1), "the bound excludes other networks"
