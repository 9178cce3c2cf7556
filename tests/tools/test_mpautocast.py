"""Tests of tools/mpautocast: graphs in files, report formats, errors in files and arguments."""
import contextlib
import json
import pathlib
import random
import re
import runpy
import sys
import types

import pytest

GRAPH = """\
# Two convolutions with a batch norm between.
parameter w
conv1 Conv2D x w !writes_either
norm FusedBatchNormV3 conv1 s@255

relu Relu norm
conv2 Conv2D relu w
exp Exp conv2
output exp
"""


@pytest.fixture
def mpautocast(root, build, run):
    """mpautocast(argument..., code=0): output of the tool."""
    def run_it(*arguments, env=(), **how):
        return run(sys.executable, root / "tools/mpautocast", *arguments, env={"MPCORE_DIR": str(build)} | dict(env),
                   **how)
    return run_it


@pytest.fixture
def graph(tmp_path):
    """graph(text): a file with that graph."""
    def write(text: str = GRAPH) -> pathlib.Path:
        (tmp_path / "graph.txt").write_text(text, encoding="utf-8")
        return tmp_path / "graph.txt"
    return write


def low_nodes(said: str) -> list:
    return [line.split()[0] for line in said.splitlines() if re.search(r"  (fp16|bf16)  ", line)]


# ---------------------------------------------------------------- reports


def test_pictures_of_the_guide(root, mpautocast):
    """The pictures are committed because Graphviz may be missing where the guide is built.

    They are written by dot -Tsvg without comments of nodes and edges: sed '/^<!-- [nt]/d'."""
    graphs = sorted((root / "docs/pictures").glob("*.txt"))
    assert len(graphs) == 2
    for path in graphs:
        picture = path.with_suffix(".svg").read_text(encoding="utf-8")
        drawn = re.findall(r'<title>n(\d+)</title>\n<g .*xlink:title="(\w+: [^"]*)">\n<polygon fill="([^"]+)"', picture)
        nodes = json.loads(mpautocast(path, "--json"))["nodes"]
        colours = {"fp16": "#7ccd7c", "fp32": "lightcoral"}
        assert sorted((int(number), said, colour) for number, said, colour in drawn) == [
            (number, f"{node['dtype']}: {node['text']}", colours[node["dtype"]]) for number, node in enumerate(nodes)]


def test_text(mpautocast, graph):
    assert mpautocast(graph(), "--preset", "tensorflow") == (
        "conv1  Conv2D            fp16  on the allow list\n"
        "norm   FusedBatchNormV3  fp16  between conv1 and conv2\n"
        "relu   Relu              fp16  between conv1 and conv2\n"
        "conv2  Conv2D            fp16  on the allow list\n"
        "exp    Exp               fp32  on the deny list\n"
        "4 of 5 nodes in fp16; casts: 2 by a kernel, 1 by the optimizer's copy\n")


def test_json_agrees_with_the_text(mpautocast, graph):
    text, said = mpautocast(graph()), json.loads(mpautocast(graph(), "--json"))
    lines = [line.split(maxsplit=3) for line in text.splitlines()[:-1]]
    assert [[node[key] for key in ("name", "op", "dtype", "text")] for node in said["nodes"]] == lines
    copies = sum(cast["by"] == "model_copy" for cast in said["casts"])
    assert text.splitlines()[-1] == (
        f"{said['num_low_nodes']} of {said['num_nodes']} nodes in {said['low']}; "
        f"casts: {len(said['casts']) - copies} by a kernel, {copies} by the optimizer's copy")


def test_dot(mpautocast, graph):
    assert mpautocast(graph(), "--dot").startswith("digraph ")


# ---------------------------------------------------------------- options


@pytest.mark.parametrize("options, low", [
    ("", "conv1 norm relu conv2"),
    ("--preset tensorflow_bf16 --low bf16", "conv1 norm relu conv2"),
    ("--level tensor_cores_only", "conv1 conv2"),
    ("--level infer_as_deny", "conv1 relu conv2"),
    ("--deny Relu,Abs", "conv1 conv2"),
    ("--clear FusedBatchNormV3 --infer Exp,Log", "conv1 norm relu conv2"),
    ("--allow Exp --allow Relu --deny Conv2D,FusedBatchNormV3", "relu exp"),
    ("--nodes conv*=deny --nodes conv2=allow", "relu conv2"),
    ("--keep-io --emulate", "conv1 norm relu conv2"),
    ("--device host", ""),
])
def test_options(mpautocast, graph, options, low):
    assert " ".join(low_nodes(mpautocast(graph(), *options.split()))) == low


def test_limits(mpautocast, graph):
    file = graph("first MatMul x ~9 ^1000\nsecond MatMul y ~10 ^7\n")
    assert low_nodes(mpautocast(file, "--depth-limit", 9)) == ["first"]
    assert low_nodes(mpautocast(file, "--amax-limit", 65504 / 64)) == ["first", "second"]
    assert low_nodes(mpautocast(file, "--amax-limit", 999.5)) == ["second"]


def test_environment(mpautocast, graph):
    assert "MP_AUTOCAST = off" in mpautocast(graph(), env={"MP_AUTOCAST": "off"})


@pytest.mark.parametrize("options, code, message", [
    ("--jsno", 2, "unrecognized arguments: --jsno"),
    ("--json --dot", 2, "not allowed with argument"),
    ("--low fp8", 2, "argument --low: invalid choice: 'fp8'"),
    ("--preset caffe", 2, "argument --preset: invalid choice: 'caffe'"),
    ("--depth-limit many", 2, "argument --depth-limit: invalid int value: 'many'"),
    ("--depth-limit 9223372036854775808", 2, "depth_limit = 9223372036854775808 must be from -9223372036854775808 to 9223372036854775807"),
    ("--nodes encoder", 2, "mpautocast: --nodes = encoder: must be PATTERN=CLASS"),
    ("--nodes encoder/*=green", 2, "mpautocast: node_class = 'green' must be one of: unlisted, allow, infer, deny, clear, promote"),
    ("--nodes a[b=deny", 1, "pattern = a[b has an unmatched ["),  # message of the library
    ("--amax-limit -1", 1, "config->amax_limit = -1 is negative"),
    ("--low bf16 --level force_all", 1, "level = MP_AUTOCAST_LEVEL_FORCE_ALL requires dtype_low = MP_FP16"),
])
def test_wrong_arguments(mpautocast, graph, options, code, message):
    assert message in mpautocast(graph(), *options.split(), code=code)


def test_no_library(root, run, graph, tmp_path):
    said = run(sys.executable, root / "tools/mpautocast", graph(), code=1,
               env={"MPCORE_DIR": str(tmp_path), "LD_LIBRARY_PATH": ""})
    assert said.startswith("mpautocast: mpcore: ") and "Traceback" not in said


# ---------------------------------------------------------------- files


def test_all_line_syntax_is_accepted(mpautocast, graph):
    said = json.loads(mpautocast(graph("""\
        integer i
        half h
        merge Merge product back -
        product MatMul x h i
        both Split merge > >@255
        next NextIteration both !back_edge
        back Identity next !reads_variable
        named Mine both.1@3 both.2@255 =@3
        counts Shape merge >none
        rounded Mine merge >half
        hidden product back
        container merge back
        loop merge next
        output named"""), "--json"))
    assert [node["name"] for node in said["nodes"]] == ["merge", "product", "both", "next", "back", "named", "counts",
                                                        "rounded"]
    assert [node["dtype"] for node in said["nodes"]][:4] == ["fp16"] * 4
    assert said["nodes"][3]["reason"] in ("cluster_low", "clear_next_to_low")


def test_graphs_of_other_tests_are_accepted(mpautocast, root, graph):
    texts = [text for path in sorted((root / "tests/autocast").iterdir())
             for text in re.findall(r'R"\((\n.*?)\)"', path.read_text(encoding="utf-8"), re.S)]
    assert len(texts) > 10
    for text in texts:
        mpautocast(graph(text))


@pytest.mark.parametrize("line, message", [
    ("alone", "'alone' has no operation"),
    ("relu Relu conv1", "node 'relu' is defined twice"),
    ("more Relu conv1 !kep", "unknown flag '!kep'; must be one of keep_fp32, other_device, no_low,"),
    ("more Relu conv1 !depth", "unknown flag '!depth'"),
    ("more Relu conv1@300", "the slot of 'conv1@300' must be from 0 to 255"),
    ("more Relu conv1@one", "the slot of 'conv1@one' must be a number, not 'one'"),
    ("more Relu @3", "an input has no name"),
    ("more Relu >fp32", "unknown option '>fp32'"),
    ("more Relu ~many", "the number of terms must be a number, not 'many'"),
    ("more Relu ^", "the largest value must be a number, not ''"),
    ("parameter", "'parameter' requires 1 names, not 0"),
    ("output relu conv1", "'output' requires 1 names, not 2"),
    ("hidden relu", "'hidden' requires 2 names, not 1"),
    ("hidden relu tanh", "unknown node 'tanh'"),
    ("loop relu tanh", "unknown node 'tanh'"),
])
def test_invalid_lines(mpautocast, graph, line, message):
    file = graph(f"relu Relu x\n\n{line}\nanother invalid line, which is not reported\n")
    assert mpautocast(file, code=2).startswith(f"mpautocast: {file}:3: {message}")


def test_two_writers(mpautocast, graph):
    file = graph("split Split x >\nsplit.1 Relu y\n")
    assert mpautocast(file, code=2) == f"mpautocast: {file}:2: outputs[0] is already an output of a node\n"


def test_library_errors_are_reported(mpautocast, graph):
    assert "graph->node_depth[0] = -3 is negative" in mpautocast(graph("product MatMul x ~-3"), code=1)


def test_no_text(mpautocast, tmp_path):
    assert mpautocast(tmp_path / "none.txt", code=2) == f"mpautocast: {tmp_path}/none.txt: No such file or directory\n"
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    assert mpautocast(tmp_path / "bytes.txt", code=2) == f"mpautocast: {tmp_path}/bytes.txt: is not UTF-8 text\n"


# ---------------------------------------------------------------- ONNX

FLOAT, INT64, DOUBLE = 1, 7, 11
# Operation, name, inputs, outputs.
NODES = [("Conv", "conv1", ["x", "w"], ["c1"]), ("BatchNormalization", "norm", ["c1", "g", "b", "m", "v"], ["n1"]),
         ("Relu", "relu", ["n1"], ["r1"]), ("Conv", "conv2", ["r1", "w"], ["c2"]), ("Cast", "cast", ["i"], ["f"]),
         ("MatMul", "product", ["c2", "f"], ["p"]), ("Clip", "", ["p", "", "most"], ["q"]),
         ("Exp", "exp", ["q"], ["y"]), ("Identity", "same", ["d"], ["e"])]
INITIALIZERS = {"w": [4, 4, 1, 1], "g": [4], "b": [4], "m": [4], "v": [4], "most": []}
INPUTS = {"x": (FLOAT, [1, 4, 4, 4]), "i": (INT64, [4, 4]), "d": (DOUBLE, [1])}
OUTPUTS = {"y": FLOAT, "e": DOUBLE}
# Inputs that only a batch norm reads have no 16-bit copy.
WANTED = """\
conv1    Conv                fp16  on the allow list
norm     BatchNormalization  fp16  between conv1 and conv2
relu     Relu                fp16  between conv1 and conv2
conv2    Conv                fp16  on the allow list
cast     Cast                fp16  cast absorbed by product
product  MatMul              fp16  on the allow list
#6       Clip                fp16  next to product
exp      Exp                 fp32  on the deny list
same     Identity            fp32  reads and writes no fp32 tensor
"""

# Stub of the package with the same names that reads JSON.
STAND_IN = """\
import json, types

def load(path, load_external_data=True):
    assert not load_external_data
    with open(path, encoding="utf-8") as file:
        return json.load(file, object_hook=lambda fields: types.SimpleNamespace(**fields))

shape_inference = types.SimpleNamespace(infer_shapes=lambda model: model)
"""


def as_json(nodes: list) -> str:
    def value(name: str, dtype: int) -> dict:
        return {"name": name, "type": {"tensor_type": {"elem_type": dtype}}}

    return json.dumps({"graph": {
        "node": [{"op_type": op, "name": name, "input": read, "output": written} for op, name, read, written in nodes],
        "initializer": [{"name": name, "data_type": FLOAT} for name in INITIALIZERS],
        "input": [value(name, dtype) for name, (dtype, _) in INPUTS.items()],
        "output": [value(name, dtype) for name, dtype in OUTPUTS.items()],
        "value_info": [value("f", FLOAT)]}})


def check_onnx(mpautocast, file, **how):
    said = mpautocast(file, **how)
    assert said == WANTED + said.splitlines()[-1] + "\n"
    assert said.endswith(" by a kernel, 2 by the optimizer's copy\n"), "w, and the input of Clip"
    as_numbers = json.loads(mpautocast(file, "--json", "--keep-io", **how))
    assert as_numbers["num_casts"] == json.loads(mpautocast(file, "--json", **how))["num_casts"]


def test_onnx_stub(mpautocast, tmp_path):
    (tmp_path / "onnx.py").write_text(STAND_IN, encoding="utf-8")
    (tmp_path / "model.onnx").write_text(as_json(NODES), encoding="utf-8")
    path = {"PYTHONPATH": str(tmp_path)}
    check_onnx(mpautocast, tmp_path / "model.onnx", env=path)
    # ONNX operations have the names of a separate preset; --preset selects another one.
    assert low_nodes(mpautocast(tmp_path / "model.onnx", "--preset", "pytorch", env=path)) == []
    (tmp_path / "twice.onnx").write_text(as_json(NODES + NODES[:1]), encoding="utf-8")
    said = mpautocast(tmp_path / "twice.onnx", env=path, code=2)
    assert said == f"mpautocast: {tmp_path}/twice.onnx: outputs[0] is already an output of a node\n"
    (tmp_path / "bad.onnx").write_text("no JSON", encoding="utf-8")
    assert mpautocast(tmp_path / "bad.onnx", env=path, code=2).startswith(f"mpautocast: {tmp_path}/bad.onnx: ")


def test_onnx(mpautocast, tmp_path):
    onnx = pytest.importorskip("onnx", reason="mpautocast reads a real ONNX file (no onnx for this Python)")
    helper = onnx.helper
    model = helper.make_model(helper.make_graph(
        [helper.make_node(op, read, written, name=name, **({"to": FLOAT} if op == "Cast" else {}))
         for op, name, read, written in NODES], "net",
        [helper.make_tensor_value_info(name, *value) for name, value in INPUTS.items()],
        [helper.make_tensor_value_info(name, dtype, None) for name, dtype in OUTPUTS.items()],
        [helper.make_tensor(name, FLOAT, shape, [1.0] * (16 if name == "w" else 4 if shape else 1))
         for name, shape in INITIALIZERS.items()]))
    onnx.save(model, str(tmp_path / "model.onnx"))
    check_onnx(mpautocast, tmp_path / "model.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"\xff\xfe")
    assert mpautocast(tmp_path / "bad.onnx", code=2).startswith(f"mpautocast: {tmp_path}/bad.onnx: ")


def test_no_onnx(mpautocast, tmp_path):
    (tmp_path / "onnx.py").write_text("raise ImportError\n", encoding="utf-8")
    said = mpautocast("model.onnx", env={"PYTHONPATH": str(tmp_path)}, code=2)
    assert said == "mpautocast: model.onnx: requires the Python package onnx\n"


WORDS = ["", "#", "!", "!keep_fp32", "!green", ">", ">half", ">@3", "@", "x@", "x@256", "x@-1", "=@255", "~", "~9", "~" + "9" * 30, "^",
         "^1e99", "^nan", "-", "hidden", "loop", "container", "parameter", "output", "integer", "half", "\0", "\u00fc", "=", "@@", "*"]


def damaged(text: str, choices: random.Random) -> bytes:
    lines = [line.split(" ") for line in text.split("\n")]
    for _ in range(choices.randint(1, 4)):
        line = choices.choice(lines)
        at = choices.randrange(len(line) + 1)
        line[at:at + choices.randint(0, 1)] = choices.sample(WORDS, choices.randint(0, 2))
    choices.shuffle(lines) if choices.random() < 0.2 else None
    content = bytearray("\n".join(map(" ".join, lines)), "utf-8")
    if content and choices.random() < 0.2:
        content[choices.randrange(len(content))] = choices.randrange(256)
    return bytes(content)


def test_damaged_graphs_are_valid_or_rejected(root, build, graph, monkeypatch):
    """Regression test: a NUL in a name raised another exception."""
    monkeypatch.setenv("MPCORE_DIR", str(build))
    import mpcore
    tool, path = types.SimpleNamespace(**runpy.run_path(str(root / "tools/mpautocast"))), graph("")
    monkeypatch.setattr(sys, "argv", ["mpautocast", str(path), "--json"])
    arguments, valid = tool.parse_arguments(), 0
    for seed in range(3000):
        path.write_bytes(damaged(GRAPH + "hidden conv1 conv2\nloop relu norm\n", random.Random(seed)))
        with contextlib.suppress(tool.BadInput, mpcore.Error):
            tool.run(mpcore, arguments)
            valid += 1
    assert 300 < valid < 2700


# ---------------------------------------------------------------- lists


def test_lists_are_compared_with_their_source(root, run, tmp_path):
    """A header generated from lists.txt has no differences; each kind of difference is one line."""
    names = {word: line.split(": ")[1].split() for line in (root / "tests/autocast/lists.txt").read_text().splitlines()
             if line.startswith("pytorch ") for word in [line.split(":")[0].split()[1]]}

    macros = {"allow": "LOWER_PRECISION_FP", "deny": "FP32", "promote": "PROMOTE"}

    def said(code: int, **lists) -> list:
        header = tmp_path / "autocast_mode.h"
        header.write_text("".join(f"#define AT_FORALL_{macro}(_) \\\n" + " \\\n".join(f"  _({n}, x)" for n in lists[word])
                                  + "\n\n" for word, macro in macros.items()))
        return run(sys.executable, root / "tests/autocast/compare_lists", header, code=code).splitlines()

    count = sum(len(names[word]) for word in macros)
    assert said(0, **names) == [f"{count} names compared, 0 differences"]
    lists = {"allow": names["allow"] + ["new", "softmin"], "deny": names["deny"][1:], "promote": names["promote"]}
    assert said(1, **lists) == ["pytorch: new: source allow, lists.txt -",
                                "pytorch: softmin: source allow, lists.txt composite_deny",
                                f"pytorch: {names['deny'][0]}: source -, lists.txt deny",
                                f"{count + 1} names compared, 3 differences"]
    (tmp_path / "amp.md").write_text("nothing")
    assert "amp.md has no list of pytorch" in run(
        sys.executable, root / "tests/autocast/compare_lists", tmp_path / "amp.md", code=2)
