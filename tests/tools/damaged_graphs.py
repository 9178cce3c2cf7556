"""Passes damaged graphs to tools/mpautocast; each must be rejected with an error message or be a
valid graph.

    damaged_graphs.py MPAUTOCAST GRAPH COUNT

Prints the number of valid graphs.  Prints the damaged text and fails on any other exception.
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import random
import sys
import tempfile

WORDS = ["", "#", "!", "!keep_fp32", "!green", ">", ">half", ">@3", "@", "x@", "x@256", "x@-1", "=@255", "~", "~9", "~" + "9" * 30, "^",
         "^1e99", "^nan", "-", "hidden", "loop", "container", "parameter", "output", "integer", "half", "\0", "ü", "=", "@@", "*"]


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


def load(path: str):
    loader = importlib.machinery.SourceFileLoader("mpautocast", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mpautocast", loader))
    loader.exec_module(module)
    return module


def main() -> None:
    tool, graph, count = load(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    sys.path.insert(0, str(tool.ROOT / "bindings/python"))
    import mpcore
    text, graphs = graph.read_text(encoding="utf-8"), 0
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = pathlib.Path(folder) / "graph.txt"
        sys.argv = ["mpautocast", str(path), "--json"]
        arguments = tool.parse_arguments()
        for seed in range(count):
            path.write_bytes(damaged(text, random.Random(seed)))
            try:
                graphs += tool.run(mpcore, arguments) == 0
            except (tool.BadInput, mpcore.Error):
                pass
            except Exception:
                print(path.read_bytes(), file=sys.stderr)
                raise
    print(graphs)


main()
